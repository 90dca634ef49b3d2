"""The study of calibrated networks: what its sets, codes and learners promise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rcbook.experiments.studies import calibrated_networks as study
from sklearn.model_selection import train_test_split

from rcpkg import MDLDiscretizer


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
