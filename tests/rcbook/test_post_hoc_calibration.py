"""Rescalings of posteriors, and the study in which they are rivals."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.experiments.rescalings import TEMPERATURE, beta_calibrated, rescaled, venn_abers
from scipy.special import expit, logit
from sklearn.datasets import load_iris
from sklearn.isotonic import IsotonicRegression

from rcpkg import GaussianNB


def drawn(n, rng, slope=1.0):
    """Probabilities of two classes, and labels drawn with the slope times their log odds."""
    p = rng.uniform(0.02, 0.98, size=n)
    return np.column_stack([1 - p, p]), (rng.uniform(size=n) < expit(slope * logit(p))).astype(int)


def test_beta_calibration_finds_the_slope_of_the_log_odds():
    P, y = drawn(20_000, np.random.default_rng(0), slope=0.5)
    new = np.array([0.1, 0.5, 0.9])
    found = beta_calibrated(P, y, np.column_stack([1 - new, new]))[:, 1]
    assert_allclose(logit(found), 0.5 * logit(new), atol=0.1)


def test_beta_calibration_never_turns_the_order():
    rng = np.random.default_rng(1)
    P, y = drawn(200, rng, slope=-1.0)
    new = np.linspace(0.01, 0.99, 50)
    found = beta_calibrated(P, y, np.column_stack([1 - new, new]))[:, 1]
    assert np.all(np.diff(found) >= -1e-12)


def test_venn_abers_is_two_isotonic_regressions_merged():
    rng = np.random.default_rng(2)
    P, y = drawn(60, rng)
    P_new, _ = drawn(10, rng)

    def isotonic(p, label):
        fit = IsotonicRegression().fit(np.r_[P[:, 1], p], np.r_[y, label])
        return fit.predict([p])[0]

    low, high = (np.array([isotonic(p, label) for p in P_new[:, 1]]) for label in (0, 1))
    assert_allclose(venn_abers(P, y, P_new)[:, 1], high / (1 - low + high), atol=1e-8)


def test_a_temperature_changes_no_prediction():
    X, y = load_iris(return_X_y=True)
    closed = GaussianNB().fit(X, y)
    P = rescaled(GaussianNB())[TEMPERATURE].fit(X, y).predict_proba(X)
    assert_array_equal(P.argmax(axis=1), closed.predict(X))
