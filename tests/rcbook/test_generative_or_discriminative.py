"""The studies of chapter 1: stacked fits are those of scikit-learn, excess errors exact, stored results whole."""

import numpy as np
import pytest
from rcbook.experiments.studies import generative_or_discriminative as rows_needed
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, (3, 80))
    X = np.concatenate([np.ones((3, 80, 1)), rng.normal(size=(3, 80, 2)) + y[..., None]], axis=2)
    return X, y


@pytest.mark.parametrize(
    "fit, model",
    [
        (rows_needed.logistic_regression, LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky")),
        (rows_needed.discriminant_analysis, LinearDiscriminantAnalysis(solver="lsqr")),
    ],
)
def test_a_stack_of_fits_is_scikit_learns(data, fit, model):
    for x, labels, beta in zip(*data, fit(*data)):
        model.fit(x[:, 1:], labels)
        np.testing.assert_allclose(beta, np.r_[model.intercept_, model.coef_[0]], atol=1e-4)


def test_separated_rows_have_large_finite_coefficients():
    X = np.array([[[1.0, -2.0], [1.0, -1.0], [1.0, 1.0], [1.0, 2.0]]])
    beta = rows_needed.logistic_regression(X, np.array([[0, 0, 1, 1]]))
    assert np.isfinite(beta).all() and beta[0, 1] > 8


def test_excess_error_of_the_best_rule_is_zero_and_of_a_constant_rule_is_the_rest():
    beta = np.array([[0.0, 2.0, 0.0], [0.5, 2.0, 1.0]])
    best, other = rows_needed.excess_error(beta, 2.0)
    assert best == pytest.approx(0) and other > 0.001
    opposite = rows_needed.excess_error(np.array([[0.0, -1.0, 0.0]]), 2.0)[0]
    assert opposite == pytest.approx(1 - 2 * norm.cdf(-1))
