"""The comparison of BDA7 with today's classifiers in chapter 8: its divisions, and the stored results."""

import numpy as np

from rcpkg.experiments import rivals


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
