"""What is counted in the scorecard: columns and rows that come out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rcbook import experiments, published
from rcbook._files import results_folder
from rcbook.experiments import power, store
from rcbook.experiments.scorecard import judged
from scipy import stats


@pytest.fixture(scope="module")
def card():
    return experiments.scorecard()


def test_a_changed_cell_changes_the_scorecard(card, monkeypatch, tmp_path):
    path = tmp_path / "rc2024_table_III.jsonl"
    first, *others = store.read(results_folder() / path.name)
    record, *more = first.records
    store.write(path, [replace(first, records=[record._replace(value=record.value + 1), *more]), *others])
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    tables = published.index().query("source == 'rc2024' and table == 'III'")
    monkeypatch.setattr(published, "index", lambda: tables)
    changed = experiments.scorecard()
    differ = changed.compare(card[(card.source == "rc2024") & (card.table == "III")].reset_index(drop=True))
    assert len(differ) == 1 and differ.value.self.item() == pytest.approx(1 + differ.value.other.item())
    monkeypatch.delenv("RCPKG_RESULTS")
    pd.testing.assert_frame_equal(experiments.scorecard(), card)


def test_a_row_is_exact_if_all_its_numbers_are():
    columns = ["source", "table", "method", "row", "metric", "verdict"]
    rows = [
        ("s", "1", "RC", "a", "error", "reproduced"),
        ("s", "1", "RC", "a", "iterations", "reproduced"),
        ("s", "1", "RC", "b", "error", "reproduced"),
        ("s", "1", "RC", "b", "iterations", "differs: unexplained"),
        ("s", "1", "RC", "c", "error", "reproduced"),
        ("s", "1", "RC", "c", "iterations", "not attempted"),
        ("s", "1", "ML", "a", "error", "reproduced"),
        ("s", "1", "RC", "a", "reach", "differs: unexplained"),
    ]
    found = experiments.exact_rows(("error", "iterations"), pd.DataFrame(rows, columns=columns))
    assert found.loc["s", "1", "RC"].to_dict() == {"compared": 2, "exact": 1}
    assert found.loc["s", "1", "ML"].to_dict() == {"compared": 1, "exact": 1}


def test_summaries_say_over_how_many_sets_they_go_and_how_many_are_missing(card):
    """The 126 means, ranks and counts of the RC papers; three of them counted again by hand."""
    why = card.set_index(published.KEY).why
    assert why.str.fullmatch(r"a (mean|mean rank|count) over \d+ data sets, \d+ of which .*").sum() == 126

    def reason(**where):
        found = card[(card[list(where)] == pd.Series(where)).all(axis=1)]
        return found.why.item()

    def missing(source, table, methods, metric):
        cells = card[(card.source == source) & (card.table == table) & (card.metric == metric)]
        cells = cells[cells.method.isin(methods) & (cells.value_printed != "-")]
        return f"{cells.row.nunique()} data sets, {cells[cells.n_runs.isna()].row.nunique()} of which"

    errors = missing("rc2024", "III", ["MAP"], "empirical_error_fraction")
    assert errors in reason(source="rc2024", table="III", method="MAP", metric="mean_empirical_error_fraction")
    reach = missing("rc2024", "III", ["RC"], "reach")
    assert reach in reason(source="rc2024", table="III", method="RC", metric="mean_reach")
    pair = missing("rc2025", "3", ["RC", "ML"], "test_error_percent")
    assert pair in reason(source="rc2025", table="4", row="Test", method="RC vs ML", metric="count_equal")
    ranks = missing("rc2025", "3", ["RC", "ML", "GD"], "train_error_percent")
    assert ranks in reason(source="rc2025", table="3", method="GD", metric="train_avg_rank")


# What a verdict is worth ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weighed(card):
    return power.power(card)


def test_what_can_be_decided_does_not_depend_on_the_verdict(card, weighed):
    """Ours moved by ten per cent, with the same spread: other verdicts, the same power."""
    part = card[(card.source == "thesis2007") & (card.table == "5.7")]
    moved = part.assign(value=1.1 * part.value, verdict="differs: unexplained")
    columns = ["half_width", "others", "others_pass", "range", "decidable", "undecided"]
    pd.testing.assert_frame_equal(power.power(moved)[columns], weighed.loc[part.index, columns], check_dtype=False)


def test_half_width_is_where_the_verdict_turns(weighed):
    """At a half-width from the middle of the print a number still passes the tolerance, beyond it no more."""
    cells = weighed[(weighed.table == "5.13") & (weighed.method == "NM")]
    ours = cells.assign(std=cells.value_se * np.sqrt(cells.n_runs))
    middle = pd.to_numeric(cells.value_printed)
    for shift, passes in ((0.999, True), (1.001, False)):
        for sign in (-1, 1):
            value = middle + sign * shift * cells.half_width
            keys = ["row", "method", "metric", "setting_value"]
            found = judged("thesis2007", "5.13", ours.assign(value=value)[[*keys, "value", "std", "n_runs"]], by=keys)
            assert (found.agrees == passes).all()


def test_others_that_would_pass_counted_by_hand(weighed):
    row = weighed[(weighed.table == "5.9") & (weighed.setting_value == "5")].set_index("method")
    printed = pd.to_numeric(row.value_printed)
    for method in row.index:
        others = printed.drop(method)
        near = (others - printed[method]).abs() <= row.half_width[method] + 1e-9
        assert row.others[method] == 6 and row.others_pass[method] == pytest.approx(near.mean())
        width, spread = 2 * row.half_width[method], np.ptp(printed)
        assert row.decidable[method] == (width <= spread / 2 and width <= printed[method])


def test_allowed_distances():
    """z σ̂ sqrt(1/n + 1/p) + a; and Welch's test with the printed spread at its upper end, a 2 that may be 2.99…."""
    cells = pd.DataFrame(
        {
            "kind": ["statistical", "deterministic"],
            "z": 3.0,
            "slack": 0.5,
            "published_runs": 5.0,
            "n_runs": [20.0, 1.0],
            "value_se": [4 / np.sqrt(20), np.nan],
            "printed_std": 2.0,
            "half_unit": 0.5,
            "level": 0.01,
        }
    )
    own, welch = power.allowed_distances(cells)
    np.testing.assert_allclose(own, [3 * 4 * np.sqrt(1 / 20 + 1 / 5) + 0.5, 0.0])
    a, b = 16 / 20, 9 / 5
    dof = (a + b) ** 2 / (a**2 / 19 + b**2 / 4)
    np.testing.assert_allclose(welch, [stats.t.isf(0.005, dof) * np.sqrt(a + b), np.inf])


def test_tests_of_tables_on_a_right_and_a_wrong_table(card):
    """Prints drawn as the rule supposes pass; a shift of a standard error in each, or one number far off, does not."""
    part = card[(card.source == "thesis2007") & (card.table == "5.13")].copy()
    printed = published.table("thesis2007", "5.13").value.to_numpy()
    rng = np.random.default_rng(3)
    part["value_se"], part["n_runs"] = 0.5, 100.0
    right = part.assign(value=printed + 0.5 * np.sqrt(2) * rng.standard_normal(len(part)))
    assert power.table_tests(right).fits.all()
    shifted = power.table_tests(right.assign(value=right.value + 0.5 * np.sqrt(2)))
    assert not shifted.fits_table_mean.any()
    far = right.value.copy()
    far.iloc[0] = printed[0] + 6 * 0.5 * np.sqrt(2)
    found = power.table_tests(right.assign(value=far))
    assert not found.fits_table_largest.any() and found.fits_table_mean.all()
