"""The protocol of thesis2007 Tables 6.1 to 6.3, on synthetic data and on the printed cells."""

import numpy as np
import pytest
from rcbook import published
from rcbook.experiments.cells import cells_of
from rcbook.experiments.studies import tables_of_local_bda as local_tables
from sklearn.datasets import load_iris, load_wine

from rcpkg import QDA, Mixture


@pytest.mark.parametrize("table, n_cells", [("6.1", 42), ("6.2", 42), ("6.3", 84)])
def test_every_printed_cell_has_a_cell(table, n_cells):
    found = cells_of("thesis2007", table)
    assert len(found) == n_cells == len(published.table("thesis2007", table))
    assert not any(cell.reason for cell in found)
    assert {cell.arguments["row"] for cell in found} <= set(local_tables.ROWS)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_mixtures_of_the_tables_are_a_model_of_the_library(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = Mixture(QDA(), n_components=2, prior_strength=0.0, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), local_tables.mixtures(X, y, X, 2, 0))
