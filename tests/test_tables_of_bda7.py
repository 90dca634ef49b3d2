"""Tables 5.1 to 5.22 of thesis2007: designs as stated, every printed cell listed."""

from dataclasses import replace

import numpy as np
import pytest

from rcpkg import published
from rcpkg.experiments.studies import tables_of_bda7 as tables


@pytest.mark.parametrize("table", [f"5.{k}" for k in range(1, 23)])
def test_every_printed_number_has_a_cell(table):
    printed = published.table("thesis2007", table)
    cells = list(tables.cells(table))
    assert [(c.row, c.method, c.setting_value) for c in cells] == list(
        zip(printed.row, printed.method, printed.setting_value)
    )
    assert len({cell.key for cell in cells}) == len(cells)
    stated = 10 if table == "5.11" else 100
    repetitions = {c.method: c.arguments["repetitions"] for c in cells}
    assert {repetitions[method] for method in ("NM", "LDA", "QDA")} == {stated}
    assert max(repetitions.values()) == stated and min(repetitions.values()) >= 5


def test_draw_rounds_up_within_classes():
    y = np.repeat([0, 1, 2], [50, 71, 3])
    rows = tables.draw(y, 4, np.random.RandomState(0))
    assert np.bincount(y[rows]).tolist() == [2, 3, 1]
    assert len(set(rows)) == len(rows)
    assert len(tables.draw(y, 100, np.random.RandomState(0))) == len(y)


def test_methods_meet_the_same_draws_and_a_simulation_is_reproducible():
    cells = {cell.method: cell for cell in tables.cells("5.13") if cell.setting_value == "6"}
    assert {cell.stream for cell in cells.values()} == {"chapter 5:5.13:6"}
    few = replace(cells["NM"], arguments=cells["NM"].arguments | {"repetitions": 5})
    first, again, other = (tables.simulation(few, seed)[0] for seed in (1, 1, 2))
    assert first == again != other
    assert first.n_runs == 5 and 0 < first.value < 40


@pytest.mark.parametrize("method", ["BDA7", "QB", "RDA", "EDDA", "NM", "LDA", "QDA"])
def test_every_method_runs(method):
    cell = next(c for c in tables.cells("5.19") if c.method == method and c.setting_value == "10")
    record = tables.simulation(replace(cell, arguments=cell.arguments | {"repetitions": 2}), 0)[0]
    assert record.method == method and 0 <= record.value <= 100


@pytest.mark.needs_data
@pytest.mark.parametrize("table, rows, features", [("5.5", 178, 13), ("5.1", 7494, 16), ("5.11", 11340, 54)])
def test_data_are_divided_as_stated(table, rows, features):
    X, y, X_test, _ = tables._data(tables.DATA[table])
    assert X.shape == (rows, features) and len(y) == rows
    assert (X_test is None) == (table == "5.5")


@pytest.mark.needs_data
def test_singular_qda_errs_by_the_prior_alone():
    """Table 5.5 at 5 %: fewer rows a class than features, so QDA predicts the largest class."""
    cell = next(c for c in tables.cells("5.5") if c.method == "QDA" and c.setting_value == "5")
    record = tables.benchmark(replace(cell, arguments=cell.arguments | {"repetitions": 3}), 0)[0]
    printed = published.table("thesis2007", "5.5")
    value = printed.value[(printed.method == "QDA") & (printed.setting_value == "5")].item()
    assert abs(record.value - value) < 0.5
