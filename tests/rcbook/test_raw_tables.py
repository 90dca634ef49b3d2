"""Twenty registered sets as raw frames, and what should never stop a fit on any of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from rcbook.datasets import DataNotAvailable
from rcbook.experiments.studies import tables_with_rivals as study
from sklearn.compose import make_column_selector
from sklearn.model_selection import StratifiedKFold

from rcpkg import CategoricalNB, GaussianNB, ProductModel, RiskCalibration, TableClassifier

pytestmark = pytest.mark.slow
SETS = (*study.DEVELOPMENT[:12], *study.ASIDE[:8])
ROWS = 200


def harmed(name):
    """A few rows of a set, with a column of nothing but gaps, one that has values in one fold only, and a constant."""
    try:
        X, y = study.frame_of(name)
    except DataNotAvailable as error:
        pytest.skip(str(error))
    rows = np.random.default_rng(0).permutation(len(X))[:ROWS]
    X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    keep = np.isin(y, np.flatnonzero(np.bincount(y) > 3))
    X, y = X[keep].reset_index(drop=True), y[keep]
    fold = next(StratifiedKFold(2).split(X, y))[1]
    rare = pd.Series(np.nan, index=X.index)
    rare[fold] = np.arange(len(fold), dtype=float)
    return X.assign(empty=np.nan, rare=rare, constant=1.0, same="a"), y, fold


def selected():
    """The generic recipe: a block of numbers and a block of the rest, by their types."""
    numbers, rest = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    return ProductModel([("numbers", GaussianNB(), numbers), ("rest", CategoricalNB(prior_strength=1.0), rest)])


@pytest.mark.parametrize("model", ["TableClassifier", "calibrated recipe", "numbers only", "categories only"])
@pytest.mark.parametrize("name", SETS)
def test_no_raw_table_stops_a_fit(name, model):
    X, y, fold = harmed(name)
    if model == "numbers only":
        X = X.select_dtypes("number")
    if model == "categories only":
        X = X.select_dtypes(exclude="number")
    learner = TableClassifier(cv=2, budget=2.0, random_state=0)
    if model != "TableClassifier":
        learner = RiskCalibration(selected())
    train = np.setdiff1d(np.arange(len(X)), fold)
    with warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", RuntimeWarning)
        learner.fit(X.iloc[train].reset_index(drop=True), y[train])
        P = learner.predict_proba(X.iloc[fold])
    assert P.shape == (len(fold), len(np.unique(y[train])))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
