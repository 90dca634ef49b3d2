"""The theory of mirror ascent that the chapters check on fewer models: leaf, empty cells, curvature and safe steps."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from model_cases import ML, fitted, row_statistics, rows_for
from numpy.testing import assert_allclose
from sklearn.base import clone

from rcpkg import ConditionalLikelihood
from rcpkg.calibration import Objective
from rcpkg.calibration.steps import SafeRun
from rcpkg.families import Statistics


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
