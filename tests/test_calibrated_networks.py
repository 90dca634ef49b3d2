"""The study of calibrated networks: what its protocol promises."""

import numpy as np
import pytest
from model_cases import network_rows
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split

from rcpkg import MDLDiscretizer
from rcpkg.experiments.cells import STUDY, cells_of
from rcpkg.experiments.studies import calibrated_networks as study


def test_sets_run_from_the_smallest_and_those_set_aside_last():
    sets = study.sets()
    sizes = [n for n, _ in sets.values()]
    assert len(sets) >= 40 and sizes == sorted(sizes) and sizes[0] < 100 and sizes[-1] > 500_000
    assert not any(sets[name][1] for name in study.TRIED)
    order = list(dict.fromkeys(cell.row for cell in cells_of(STUDY, study.STUDY_NAME)))
    aside = [sets[name][1] for name in order]
    assert aside == sorted(aside) and sum(aside) == 15 and set(order) == set(sets)
    assert set(study.LARGEST) == set(list(sets)[-5:])


def test_cells_share_their_divisions():
    cells = [cell for cell in cells_of(STUDY, study.CURVES_NAME) if cell.row == "covtype"]
    assert {cell.stream for cell in cells} == {"covtype"}
    assert {cell.method for cell in cells} == set(study.LEARNERS)
    assert {cell.arguments["training_rows"] for cell in cells} == set(study.CURVES)


@pytest.mark.parametrize("name", study.LEARNERS)
def test_learners_are_tuned_within_their_grids(name):
    """At most sixteen settings, and orders k that the number of features allows."""
    X, y = network_rows(n=60)
    data = study.Coded(X[:, :2], y, X[:, :2], y, np.array([2, 3]))
    learner = study.LEARNERS[name](data, 0)
    grid = getattr(learner, "grid", {})
    assert np.prod([len(of) for of in grid.values()]) <= 16
    assert [of for key, of in grid.items() if key.endswith("k")] in ([], [[0, 1]])
    if name not in ("random forest", "gradient boosting"):
        P = learner.fit(data.X, data.y).predict_proba(data.X_test)
        np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.needs_data
def test_codes_are_learnt_from_training_rows():
    """Cuts of the training rows, and missing values as a state of their own."""
    data, rows = study.division("hepatitis", 5), study.rows_of("hepatitis", study.ALL_ROWS)
    train, test = train_test_split(np.arange(len(rows.y)), test_size=0.25, stratify=rows.y, random_state=5)
    assert_array_equal(data.y_test, rows.y[test])
    cutter = MDLDiscretizer(categorical_features=rows.nominal).fit(rows.X[train], rows.y[train])
    codes = cutter.transform(rows.X)
    varies = [len(np.unique(column)) > 1 for column in np.where(np.isnan(codes), -1, codes)[train].T]
    expected = codes[:, varies]
    known = ~np.isnan(expected[train])
    assert_array_equal(data.X[known], expected[train][known])
    assert not known.all() and np.isfinite(data.X).all()
    largest = np.nanmax(expected, axis=0)
    assert np.all(np.where(known, largest + 1, data.X) == largest + 1)
    assert_array_equal(data.n_states, np.vstack([data.X, data.X_test]).max(axis=0) + 1)
