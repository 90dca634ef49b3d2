"""The sources' gradient descent: against finite differences, by hand, and where it projects."""

import numpy as np
from model_cases import rows_for
from rcbook.projected_descent import ProjectedGradientDescent, quadratic_gradient
from scipy.optimize import approx_fprime

from rcpkg import QDA, ConditionalLikelihood, SharedVarianceGaussianNB
from rcpkg.families import one_hot


def log_loss(model, X, y):
    return -np.mean(model.predict_log_proba(X)[np.arange(len(y)), y])


def quadratic_likelihood(eta, X, Y):
    """Mean of log p(y | x) with p(y | x) ∝ exp(η_0y + η_1yᵀx + xᵀη_2y x + A_y), A_y from log N(x; μ_y, Σ_y)."""
    r, d = Y.shape[1], X.shape[1]
    zero, one, two = eta[:r], eta[r : r + r * d].reshape(r, d), eta[r + r * d :].reshape(r, d, d)
    joint = np.empty(Y.shape)
    for y in range(r):
        A = 0.25 * one[y] @ np.linalg.solve(two[y], one[y]) + 0.5 * np.linalg.slogdet(-2 * two[y])[1]
        joint[:, y] = zero[y] + X @ one[y] + np.einsum("id,de,ie->i", X, two[y], X) + A
    return np.sum(Y * (joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))


def test_quadratic_gradient_corrected_and_as_printed():
    """rc2025 app. B: right with the matrix η_2⁻¹, and wrong with its trace in every entry."""
    X, y = rows_for("QDA")
    Y = one_hot(y, 3)
    model = QDA().fit(X, y)
    precision = np.linalg.inv(model.parameters_.covariance)
    one, two = np.einsum("yde,ye->yd", precision, model.parameters_.mean), -0.5 * precision
    eta = np.concatenate([model.parameters_.log_prior, one.ravel(), two.ravel()])
    W = Y - model.predict_proba(X)
    about_zero = QDA().statistics(X, W)
    numeric = approx_fprime(eta, quadratic_likelihood, 1e-7, X, Y)

    corrected = np.concatenate([part.ravel() for part in quadratic_gradient(about_zero, one, two)])
    printed = np.concatenate([part.ravel() for part in quadratic_gradient(about_zero, one, two, printed=True)])
    scale = np.abs(numeric).max()
    assert np.allclose(corrected, numeric, rtol=0, atol=1e-4 * scale)
    assert np.abs(printed - numeric).max() > 0.1 * scale
    assert np.array_equal(printed[: 3 + 9], corrected[: 3 + 9])  # η_0 and η_1 are printed right


def test_printed_logistic_regression_ignores_the_posteriors():
    """θ ← θ + (lr/m) Σ φ(x, y) (rc2024 app. C) moves on the optimum too."""
    X, y = rows_for("QDA")
    best = ConditionalLikelihood(SharedVarianceGaussianNB(), tol=1e-9).fit(X, y)
    gradient = SharedVarianceGaussianNB().statistics(X, one_hot(y, 3) - best.predict_proba(X))
    assert np.abs(gradient.first).max() < 1e-4
    history = ProjectedGradientDescent(SharedVarianceGaussianNB(), gradient="printed", max_iter=200).fit(X, y).history_
    assert history.log_loss.iloc[-1] > history.log_loss.min() + 0.01
