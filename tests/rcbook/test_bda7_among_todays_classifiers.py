"""The comparison of BDA7 with today's classifiers in chapter 15: its divisions, and the stored results."""

import numpy as np
from rcbook.experiments.studies import bda7_among_todays_classifiers as comparison
from rcbook.experiments.studies.bda7_among_todays_classifiers import classifiers


def test_divisions_hold_what_they_say():
    y = np.repeat([0, 1, 2], [40, 700, 360])
    train, test = comparison.divide(y, "few", 0)
    assert np.bincount(y[train]).tolist() == [5, 5, 5] and len(train) + len(test) == comparison.MOST_ROWS
    train, test = comparison.divide(y, "half", 0)
    assert len(train) == len(test) == comparison.MOST_ROWS / 2
    assert np.abs(np.bincount(y[train]) - np.bincount(y[test])).max() <= 1
    assert not set(train) & set(test)
    small = np.repeat([0, 1], [9, 30])
    train, test = comparison.divide(small, "few", 1)
    assert sorted([*train, *test]) == list(range(39))


def test_where_a_classifier_cannot_be_fitted_it_predicts_the_largest_class():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.repeat(["a", "b"], [16, 14])
    X[y == "a"] = 1.0
    train = np.arange(4, 24)
    test = np.setdiff1d(np.arange(30), train)
    # 6 of the 10 others are not of the larger class of the 20
    assert comparison._outcome(classifiers(0)["shrinkage QDA"], X, y, train, test) == (60, False)
    assert comparison._outcome(classifiers(0)["shrinkage LDA"], X, y, train, test).fitted
