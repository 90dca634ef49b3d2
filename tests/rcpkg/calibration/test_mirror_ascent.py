"""The theory of mirror ascent that the chapters check on fewer models: leaf, empty cells, curvature and safe steps."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from model_cases import COUNTS, GAUSSIAN, ML, fitted, gaussian_rows, random_direction, row_statistics, rows_for
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.base import clone

from rcpkg import CategoricalNB, ConditionalLikelihood, RiskCalibration
from rcpkg.base import log_posterior
from rcpkg.calibration import Objective
from rcpkg.calibration.steps import SafeRun
from rcpkg.families import Statistics

as_published = RiskCalibration.as_published
SAFE = {"step": "safe", "target_weight": 0.0, "tol": 0.0}


def unseen_directions(model, X, r=3):
    """Orthonormal basis of the v with ⟨v, s(x_i, y)⟩ the same for all y (definition of the leaf)."""
    S = row_statistics(model, X, r)
    A = (S - S[:, :1]).reshape(-1, S.shape[-1])
    values, vectors = np.linalg.eigh(A.T @ A)
    return vectors[:, values < 1e-10 * values[-1]].T


@pytest.mark.parametrize("name", ML)
@pytest.mark.parametrize("target", ["generative", "pooled", "another"])
def test_the_path_of_the_weights_stays_on_the_leaf_of_its_target(name, target):
    """⟨v, μ(η_b)⟩ = ⟨v, μ̄⟩ for unseen v (corollary on the path of the weights, part 1)."""
    model, X, y, _ = fitted(name)
    if target == "pooled":
        mu_bar = model.family_.mean_parameters(model.family_.pooled_parameters(model.statistics_)[0])
    elif target == "generative":
        mu_bar = model.family_.mean_parameters(model.parameters_)
    else:
        target = clone(ML[name]).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
        mu_bar = target.family_.mean_parameters(target.parameters_)
    unseen = unseen_directions(model, X)
    for b in (1.0, 10.0):
        best = ConditionalLikelihood(clone(ML[name]), target=target, target_weight=b, tol=1e-6).fit(X, y).estimator_
        off = (best.family_.mean_parameters(best.parameters_) - mu_bar).ravel()
        assert np.abs(unseen @ off).max() < 1e-4  # tol (n + b m̄) / (b m̄), for m̄ = 3 pseudo-rows
    if target == "pooled" and name not in ("LDA", "SharedVarianceGaussianNB"):  # whose pooled model is the closed form
        assert np.abs(off).max() > 1e-3  # there was a way to go


def rows_with_an_empty_cell():
    X, y = rows_for("CategoricalNB")
    X = X.copy()
    X[(X[:, 2] == 4) & (y == 0), 2] = 3  # the last state of the last feature is never seen in class 0
    return X, y


def test_empty_cells_stay_empty_and_have_the_same_supremum():
    """RC on the face ends at the supremum of the whole family (proposition on empty cells)."""
    X, y = rows_with_an_empty_cell()
    closed = CategoricalNB().fit(X, y)
    empty = closed.statistics_.cells == 0
    assert empty.sum() == 1
    whole = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), solver="lbfgs", tol=1e-7).fit(X, y)
    fixed = as_published(CategoricalNB(), learning_rate=0.3, max_iter=3000, stopping="none").fit(X, y)
    safe = RiskCalibration(CategoricalNB(), max_iter=100, **SAFE).fit(X, y)
    for fit in (fixed, safe):
        assert not fit.estimator_.statistics_.cells[empty].any()
        assert fit.history_.log_loss.iloc[-1] == pytest.approx(whole.history_.log_loss.iloc[-1], abs=1e-7)
    assert whole.estimator_.parameters_.log_prob[empty] < -20  # on its way to minus infinity


def posterior_curvature(S, P):
    """−∇²CLL = Σ_i Cov s(x_i, y) under the posteriors."""
    mean = np.einsum("iy,iyk->ik", P, S)
    return np.einsum("iy,iyk,iyl->kl", P, S, S) - mean.T @ mean


def posteriors(model, X, theta):
    joint = model.log_joint(X, theta)
    return np.exp(log_posterior(joint, model.family_.log_class_probabilities(theta)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CategoricalNB", "MultinomialNB"])
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_curvature_is_at_most_d_plus_one_times_what_posteriors_count(name, scale):
    """−∇²CLL ⪯ (d + 1) diag s(X, P), at any model (proposition on the measure of cells, part 1)."""
    model, X, _, _ = fitted(name)
    S = row_statistics(model, X, 3)
    d = X.shape[1] if name == "CategoricalNB" else X[0].sum()
    for seed in range(5):
        eta = model.family_.natural_parameters(model.parameters_)
        eta = eta + scale * random_direction(eta, np.random.default_rng(seed))
        P = posteriors(model, X, model.family_.from_natural(eta))
        root = 1 / np.sqrt(model.statistics(X, P).ravel())
        largest = np.linalg.eigvalsh(posterior_curvature(S, P) * root[:, None] * root)[-1]
        assert largest <= d + 1
        assert largest > 0.3 * (d + 1)  # the bound is of the right size


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CategoricalNB", "LDA"])
def test_weights_lead_to_the_limit_of_calibration(name):
    """With the generative target η_b tends to the limit of RC as b → 0 (the same corollary, part 2)."""
    X, y = rows_for(name)
    rc = RiskCalibration.as_published(clone(ML[name]), learning_rate=0.3, max_iter=1500, stopping="none").fit(X, y)
    limit = rc.estimator_.family_.mean_parameters(rc.estimator_.parameters_)
    off = []
    for b in (0.1, 0.01, 0.001):
        best = ConditionalLikelihood(clone(ML[name]), target="generative", target_weight=b, tol=1e-8).fit(X, y)
        mu = best.estimator_.family_.mean_parameters(best.estimator_.parameters_)
        off.append(np.abs((mu - limit).ravel()).max())
    assert off[2] < 0.2 * off[1] < 0.1 * off[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CategoricalNB", "QDA"])
def test_safe_steps_reduce_what_is_missing_by_a_factor(name):
    """max F − F(η_t) ≤ q^⌊t/3⌋ [max F − F(η_0)], and η_t converges (theorem on the safe step, part 4)."""
    X, y = rows_for(name) if name == "CategoricalNB" else gaussian_rows(n=300, d=2, seed=2)
    paths = [RiskCalibration(clone(ML[name]), max_iter=T, **SAFE).fit(X, y) for T in (6, 12, 24, 80)]
    loss = paths[-1].history_.log_loss.to_numpy()
    missing = (loss - loss[-1])[:40:3]
    seen = missing[missing > 1e-9]
    assert len(seen) > 2
    assert np.all(seen[1:] < 0.9 * seen[:-1])
    etas = [f.estimator_.family_.natural_parameters(f.estimator_.parameters_).ravel() for f in paths]
    apart = [np.linalg.norm(eta - etas[-1]) for eta in etas[:-1]]
    assert apart[2] < 0.1 * apart[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GAUSSIAN, *COUNTS])
def test_a_plain_step_of_any_rate_changes_the_model(name):
    """Unless the gradient is zero (theorem on the safe step, part 3)."""
    model, X, _, Y = fitted(name)
    rng, s = np.random.default_rng(3), model.statistics_
    m = Y.sum()
    for lr in (1e-3, 0.3, 3.0):
        W = Y - softmax(rng.standard_normal(Y.shape), axis=1)
        change = model.family_.precondition(s, model.statistics(X, Y - W), lr * model.statistics(X, W))
        after = model.parameters(model.family_.safe_update(s, change))
        d_mu = model.family_.mean_parameters(after) - s / m
        d_eta = model.family_.natural_parameters(after) - model.family_.natural_parameters(model.parameters_)
        assert d_mu.dot(d_eta) > 1e-3 * min(lr, 1.0) ** 2 * np.sum((model.statistics(X, W) / m).ravel() ** 2)


def quadratic_steps(path, gradient, lr=0.3):
    """Safe steps that remember updates along a path of η, where s = η and F has that gradient; and the last iterate."""
    objective = SimpleNamespace(
        rule=None,
        family=SimpleNamespace(natural_parameters=None),
        ascent=lambda point: point.gradient,
        pull=lambda statistics: 0.0,
    )
    steps = SafeRun(objective, lr)
    iterates = [
        SimpleNamespace(statistics=s, natural=s, gradient=Statistics(part=gradient(s.part)))
        for s in (Statistics(part=eta) for eta in path)
    ]
    for old, new in pairwise(iterates):
        steps.remember(old, new)
    return steps, iterates[-1]


@pytest.mark.parametrize("repeated", [False, True])
def test_accelerated_step_goes_to_the_maximum_over_the_span_of_the_last_updates(repeated):
    """And makes a plain step from there, for a concave quadratic F; also where an update repeats a direction."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((9, 9))
    A, peak = root @ root.T + np.eye(9), rng.standard_normal(9)
    path = np.cumsum(rng.standard_normal((4, 9)), axis=0)
    if repeated:
        path = np.vstack([path, path[-1] + 2.5 * (path[1] - path[0])])
    steps, last = quadratic_steps(path, lambda eta: A @ (peak - eta))
    span = np.diff(path, axis=0)
    assert len(steps.secants) == len(span)
    gamma = np.linalg.lstsq(span @ A @ span.T, span @ A @ (peak - path[-1]), rcond=1e-9)[0]
    best = path[-1] + gamma @ span
    assert_allclose(span @ A @ (peak - best), 0, atol=1e-9)
    assert_allclose(steps.accelerated(last).part, best - path[-1] + 0.3 * A @ (peak - best), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ML)
def test_the_direction_of_ascent_is_that_of_short_steps(name):
    """∂/∂lr of [s + lr (s(X, W) + b s̄)] / (1 + lr b m̄/m) at lr = 0."""
    X, y = rows_for(name)
    F = Objective.from_estimator(clone(ML[name]), X, y, target_weight=2.0)
    point = F.evaluate(F.start)
    ahead, behind = (F.moved(point.statistics, point.gradient, lr) for lr in (1e-6, -1e-6))
    direction = F.ascent(point).ravel()
    assert_allclose((ahead - behind).ravel() / 2e-6, direction, rtol=0, atol=1e-6 * np.abs(direction).max())
