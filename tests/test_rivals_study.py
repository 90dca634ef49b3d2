"""The comparison of BDA7 with today's classifiers in chapter 8: its divisions, and the stored results."""

import numpy as np

from rcpkg.experiments import rivals
from rcpkg.experiments.rivals import classifiers


def test_divisions_hold_what_they_say():
    y = np.repeat([0, 1, 2], [40, 700, 360])
    train, test = rivals.divide(y, "few", 0)
    assert np.bincount(y[train]).tolist() == [5, 5, 5] and len(train) + len(test) == rivals.MOST_ROWS
    train, test = rivals.divide(y, "half", 0)
    assert len(train) == len(test) == rivals.MOST_ROWS / 2
    assert np.abs(np.bincount(y[train]) - np.bincount(y[test])).max() <= 1
    assert not set(train) & set(test)
    small = np.repeat([0, 1], [9, 30])
    train, test = rivals.divide(small, "few", 1)
    assert sorted([*train, *test]) == list(range(39))


def test_where_a_classifier_cannot_be_fitted_it_predicts_the_largest_class():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.repeat(["a", "b"], [16, 14])
    X[y == "a"] = 1.0
    train = np.arange(4, 24)
    error = rivals._error(classifiers(0)["shrinkage QDA"], X, y, train, np.setdiff1d(np.arange(30), train))
    assert error == 60  # 6 of the 10 others are not of the larger class of the 20


def test_the_stored_study_is_complete_and_paired():
    study = rivals.tidy()
    assert set(study["n_runs"]) == {rivals.RUNS}
    wide = study.pivot(index=["data", "amount", "method"], columns="metric", values="value").reset_index()
    assert len(wide) == len(rivals.DATASETS) * len(rivals.AMOUNTS) * len(classifiers(0))
    base = wide[wide["method"] == "BDA7"].set_index(["data", "amount"])
    assert (base["excess_over_BDA7"] == 0).all()
    difference = (
        wide["test_error_percent"].to_numpy()
        - base["test_error_percent"].loc[list(zip(wide["data"], wide["amount"]))].to_numpy()
    )
    np.testing.assert_allclose(wide["excess_over_BDA7"], difference, atol=1e-9)
