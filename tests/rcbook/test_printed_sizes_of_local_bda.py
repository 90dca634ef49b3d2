"""The studies behind thesis2007 Tables 6.2 and 6.3, and the explanations of the scorecard that rest on them."""

import numpy as np
import pandas as pd
import pytest
from rcbook._files import data_folder
from rcbook.experiments.cells import Cell
from rcbook.experiments.studies import printed_sizes_of_local_bda as study
from rcbook.experiments.studies import tables_of_local_bda as tables
from rcbook.experiments.studies.printed_sizes_of_local_bda import at_printed_sizes, flatness, printed_sizes, shares
from rcbook.experiments.studies.tables_of_local_bda import CHOSEN_ROWS


@pytest.fixture
def blobs(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 3)) + y[:, None]
    monkeypatch.setattr(tables, "data", lambda *arguments: (X[:100], y[:100], X[100:], y[100:]))
    monkeypatch.setattr(study, "data", lambda *arguments: (X[:100], y[:100], X[100:], y[100:]))
    tables.cross_validated.cache_clear()
    yield
    tables.cross_validated.cache_clear()


def test_curves_are_those_whose_minimum_the_tables_take(blobs):
    arguments = {"row": "Wine", "repetitions": 5, "divisions": 11}
    found = {r.metric: r for r in study.local_curves(Cell("study", "local-curves", "Wine", "k-NN", "", arguments), 0)}
    sizes, errors = tables.cross_validated("Wine", "k-NN", 5, 11)
    best = sizes[tables.least(errors)]
    assert len(found) == 2 * len(sizes)
    assert found[f"excess_percent|k={best}"].value == found[f"excess_percent|k={best}"].std == 0
    for j, k in enumerate(sizes):
        assert found[f"cv_error_percent|k={k}"].value == pytest.approx(errors[:, j].mean())
        paired = errors[:, j] - errors[:, sizes.index(best)]
        assert found[f"excess_percent|k={k}"].std == pytest.approx(paired.std(ddof=1))


def test_test_errors_of_all_rows_and_of_shares(blobs):
    arguments = {"row": "Vowel", "size": 3, "shares": [0.9], "repetitions": 4}
    cell = Cell("study", "local-test-errors", "Vowel", "Local BDA", "", arguments, setting_value="none")
    everything, share = study.local_test_errors(cell, 1)
    X, y, T, t = study.data()
    predicted = tables.path("Local BDA", X, y, T, [3], 0)[:, 0]
    assert everything.value == pytest.approx(100 * np.mean(predicted != t))
    assert share.n_runs == 4 and share.std > 0 and abs(share.value - everything.value) < 10


def test_printed_sizes_go_by_the_names_of_the_rows():
    sizes = printed_sizes()
    assert set(sizes) == {(row, method) for row in tables.ROWS for method in [*tables.RULES, "GMM"]}
    assert sizes["Letter Rec.", "Local BDA"] == 20 and sizes["USPS (raw)", "k-NN"] == 1


def explained(table):
    rules = pd.read_csv(data_folder() / "explanations.csv", dtype=str, keep_default_na=False)
    rules = rules[(rules["source"] == "thesis2007") & (rules["table"] == table)]
    names = rules["row"].str.replace(r" \(\d+ classes\)", "", regex=True).replace(CHOSEN_ROWS)
    return set(zip(names, rules["method"], strict=True))


def test_errors_are_explained_by_the_printed_size_only_where_they_come_out_there():
    found = at_printed_sizes()
    found = found[found["z"].abs() <= 2]
    assert explained("6.1") <= set(zip(found["dataset"], found["method"], strict=True))


def test_sizes_are_explained_only_where_they_cannot_be_told_from_the_best():
    near = flatness().query("printed_near")
    assert explained("6.3") <= set(zip(near["dataset"], near["method"], strict=True))


def test_test_errors_are_explained_only_where_nine_tenths_of_the_rows_give_them():
    found = shares().query("reference == 'training rows' and abs(all_rows - printed) > 0.006")
    found = found[found["z_0.9"].abs() <= 2]
    assert explained("6.2") <= set(zip(found["dataset"], found["method"], strict=True))
