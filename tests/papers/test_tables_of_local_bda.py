"""The protocol of thesis2007 Tables 6.1 to 6.3, on synthetic data and on the printed cells."""

import numpy as np
import pytest
from rcbook.experiments.studies import tables_of_local_bda as local_tables
from sklearn.datasets import load_iris, load_wine

from rcpkg import QDA, Mixture


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_mixtures_of_the_tables_are_a_model_of_the_library(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = Mixture(QDA(), n_components=2, prior_strength=0.0, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), local_tables.mixtures(X, y, X, 2, 0))
