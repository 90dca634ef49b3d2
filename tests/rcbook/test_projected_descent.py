"""The sources' gradient descent: against finite differences, by hand, and where it projects."""

import numpy as np
import pytest
from model_cases import fitted, rows_for
from rcbook.projected_descent import (
    ProjectedGradientDescent,
    floor_eigenvalues,
    project_simplex,
    quadratic_gradient,
)
from scipy.optimize import approx_fprime

from rcpkg import LDA, QDA, CategoricalNB, ConditionalLikelihood, SharedVarianceGaussianNB
from rcpkg.base import log_posterior
from rcpkg.calibration import HeldOut
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


def test_categorical_descent_is_the_gradient_of_the_normalised_model():
    """Corrected: the change of the log-likelihood over a tiny step is the squared length of the gradient."""
    model, X, y, Y = fitted("CategoricalNB")
    lr = 1e-5
    start = ProjectedGradientDescent(CategoricalNB(), max_iter=0).fit(X, y)
    one = ProjectedGradientDescent(CategoricalNB(), learning_rate=lr, max_iter=1).fit(X, y)
    g = model.statistics(X, Y - start.predict_proba(X))
    exact = g.cells - g.count[:, None] * np.exp(model.parameters_.log_prob)
    squared = (np.sum(g.count**2) + np.sum(exact**2)) / len(y) ** 2
    gain = log_loss(start, X, y) - log_loss(one, X, y)
    assert gain == pytest.approx(lr * squared, rel=1e-3)


def test_printed_naive_bayes_by_hand():
    """exp(η + (lr/m) s(X, Y − P)), projected on the simplex distribution by distribution."""
    model, X, y, Y = fitted("CategoricalNB")
    g = model.statistics(X, Y - model.predict_proba(X))
    theta = np.exp(model.parameters_.log_prob + 0.1 / len(y) * g.cells)
    expected = np.hstack([project_simplex(theta[:, :2]), project_simplex(theta[:, 2:5]), project_simplex(theta[:, 5:])])
    ours = ProjectedGradientDescent(CategoricalNB(), gradient="printed", max_iter=1).fit(X, y).estimator_
    assert np.allclose(np.exp(ours.parameters_.log_prob), expected, rtol=0, atol=1e-12)


def test_printed_logistic_regression_ignores_the_posteriors():
    """θ ← θ + (lr/m) Σ φ(x, y) (rc2024 app. C) moves on the optimum too."""
    X, y = rows_for("QDA")
    best = ConditionalLikelihood(SharedVarianceGaussianNB(), tol=1e-9).fit(X, y)
    gradient = SharedVarianceGaussianNB().statistics(X, one_hot(y, 3) - best.predict_proba(X))
    assert np.abs(gradient.first).max() < 1e-4
    history = ProjectedGradientDescent(SharedVarianceGaussianNB(), gradient="printed", max_iter=200).fit(X, y).history_
    assert history.log_loss.iloc[-1] > history.log_loss.min() + 0.01


def test_corrected_logistic_descent_is_gradient_descent():
    """rc2024 Proposition 1: about zero, β ← β + (lr/m) s(X, Y − P)."""
    X, y = rows_for("QDA")
    Y, design = one_hot(y, 3), np.hstack([np.ones((len(y), 1)), X])
    start = SharedVarianceGaussianNB().fit(X, y)
    mean, variance = start.parameters_.mean, start.parameters_.covariance
    beta = np.hstack([(start.parameters_.log_prior - 0.5 * (mean**2 / variance).sum(axis=1))[:, None], mean / variance])
    for _ in range(25):
        P = np.exp(log_posterior(design @ beta.T, np.zeros(3)))
        beta = beta + 0.1 / len(y) * (Y - P).T @ design
    ours = ProjectedGradientDescent(SharedVarianceGaussianNB(), learning_rate=0.1, max_iter=25).fit(X, y)
    expected = np.exp(log_posterior(design @ beta.T, np.zeros(3)))
    assert np.allclose(ours.predict_proba(X), expected, rtol=0, atol=1e-12)


def test_projection_on_the_simplex():
    rng = np.random.default_rng(0)
    v = rng.standard_normal((50, 6))
    p = project_simplex(v)
    assert np.allclose(p.sum(axis=1), 1) and (p >= 0).all()
    others = rng.dirichlet(np.ones(6), size=(200, 1))
    assert np.all(((v - p) ** 2).sum(axis=-1) <= ((v - others) ** 2).sum(axis=-1) + 1e-12)
    assert np.allclose(project_simplex(p), p)


def test_floor_of_eigenvalues():
    matrix = np.array([[2.0, 1.0], [1.0, -3.0]])
    values = np.linalg.eigvalsh(floor_eigenvalues(matrix))
    assert values[0] == pytest.approx(1e-2) and values[1] == pytest.approx(np.linalg.eigvalsh(matrix)[1])


@pytest.mark.parametrize(
    "learner, message",
    [
        (ProjectedGradientDescent(LDA()), "has steps for CategoricalNB, .* and none for GaussianFamily"),
        (ProjectedGradientDescent(QDA(), gradient="exact"), "gradient must be 'corrected' or 'printed'"),
        (ProjectedGradientDescent(QDA(priors=[0.2, 0.3, 0.5])), "priors of the estimator must be None"),
        (ProjectedGradientDescent(QDA(), stopping=HeldOut(0.3)), "stopping=HeldOut.* needs a random_state"),
        (ProjectedGradientDescent(QDA(), learning_rate="fast"), "learning_rate must be"),
    ],
)
def test_what_cannot_be_done_is_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(*rows_for("QDA"))
