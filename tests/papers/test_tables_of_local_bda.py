"""The protocol of thesis2007 Tables 6.1 to 6.3, on synthetic data and on the printed cells."""

import numpy as np
import pytest
from rcbook import published
from rcbook.experiments.cells import Cell, cells_of
from rcbook.experiments.studies import tables_of_local_bda as local_tables
from sklearn.datasets import load_iris, load_wine

from rcpkg import QDA, Mixture


@pytest.mark.parametrize("table, n_cells", [("6.1", 42), ("6.2", 42), ("6.3", 84)])
def test_every_printed_cell_has_a_cell(table, n_cells):
    found = cells_of("thesis2007", table)
    assert len(found) == n_cells == len(published.table("thesis2007", table))
    assert not any(cell.reason for cell in found)
    assert {cell.arguments["row"] for cell in found} <= set(local_tables.ROWS)


@pytest.fixture
def iris(monkeypatch):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    test = np.arange(150) % 5 == 0
    monkeypatch.setattr(local_tables, "data", lambda row: (X[~test], y[~test], X[test], y[test]))
    local_tables.cross_validated.cache_clear()
    yield
    local_tables.cross_validated.cache_clear()


@pytest.mark.parametrize("method", ["k-NN", "pinv", "Local Nearest Means", "Local BDA", "GMM"])
def test_the_three_tables_belong_together(iris, method):
    def record(table):
        cell = Cell("thesis2007", table, "Iris", method, "", {"row": "Iris", "repetitions": 6})
        return local_tables.local_table(cell, 3)[0]

    sizes, errors = local_tables.cross_validated("Iris", method, 6, 3)
    assert errors.shape == (6, len(sizes))
    assert set(np.round(errors.ravel() * 12 / 100, 9) % 1) == {0.0}  # a tenth of 120 rows is tested
    assert record("6.1").value == pytest.approx(errors.mean(axis=0).min()) and record("6.1").n_runs == 6
    assert record("6.3").value == sizes[local_tables.least(errors)]
    assert record("6.2").value * 30 / 100 == pytest.approx(round(record("6.2").value * 30 / 100))
    assert record("6.2").value < 20


def test_equal_counts_of_errors_go_to_the_smallest_size():
    """The same counts in another order have means that differ in the last bit: the first must win all the same."""
    counts = np.array([np.roll([3, 2, 1, 4, 0, 0, 7], j) for j in range(7)]).T
    errors = 100 * (counts / 27)
    assert errors.mean(axis=0).argmin() > 0
    assert local_tables.least(errors) == 0
    errors[0, 0] += 100 / 27
    assert local_tables.least(errors) == 1


def test_the_grid_stops_at_the_smallest_class(iris):
    assert local_tables.cross_validated("Iris", "k-NN", 1, 0)[0] == [*range(1, 21), 30, 40]
    assert local_tables.cross_validated("Iris", "GMM", 1, 0)[0] == list(range(1, 11))


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_mixtures_of_the_tables_are_a_model_of_the_library(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = Mixture(QDA(), n_components=2, prior_strength=0.0, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), local_tables.mixtures(X, y, X, 2, 0))
