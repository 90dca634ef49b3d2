"""What the checks of the chapter *Hidden components* try: the clouds, EM, responsibilities."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from rcbook.simulation import clouds
from rcpkg import GaussianNB, Mixture, RiskCalibration
from rcpkg.base import Array


def law_of_clouds(X: Array) -> Array:
    """log p(x, y) of `rcbook.simulation.clouds`, missing features summed out."""

    def cloud(*mean: float) -> Array:
        return np.where(np.isnan(X), 0.0, norm.logpdf(X, mean, 0.6)).sum(axis=1)

    both = np.logaddexp(np.log(0.65) + cloud(-0.6, 0.0), np.log(0.35) + cloud(-4.1, 3.0))
    return np.log(0.5) + np.column_stack([both, cloud(1.4, 0.0)])


def models_of_clouds() -> tuple[dict[str, Any], tuple[Array, Array], tuple[Array, Array]]:
    """Naive Bayes with one and two components, closed form and calibrated; training rows and fresh ones."""
    rng = np.random.default_rng(14)
    (X, y), fresh = clouds(1_000, rng), clouds(20_000, rng)
    two = Mixture(GaussianNB(), n_components=2, random_state=0)
    models = {
        "one component, closed form": GaussianNB(),
        "one component, calibrated": RiskCalibration(GaussianNB()),
        "two components, closed form": two,
        "two components, calibrated": RiskCalibration(two),
    }
    return {name: model.fit(X, y) for name, model in models.items()}, (X, y), fresh


def log_pairs(X: Array, log_p: Array, means: Array, variances: Array) -> Array:
    """log p(x, y, k) of independent Gaussian features, (n, r, K)."""
    gap = (X[:, None, None] - means) ** 2 / variances
    return log_p - 0.5 * (gap + np.log(2 * np.pi * variances)).sum(axis=-1)


def em_step(X: Array, Y: Array, *model: Array) -> tuple[Array, Array, Array]:
    """log p(y, k), means and variances after a step of EM, written out."""
    joint = log_pairs(X, *model)
    share = Y[:, :, None] * np.exp(joint - logsumexp(joint, axis=2, keepdims=True))
    size = share.sum(axis=0)
    means = np.einsum("nyk,nd->ykd", share, X) / size[..., None]
    gap = (X[:, None, None] - means) ** 2
    return np.log(size / len(X)), means, np.einsum("nyk,nykd->ykd", share, gap) / size[..., None]


def divergence(new: tuple[Array, ...], old: tuple[Array, ...]) -> float:
    """KL(new ‖ old) of the complete rows (x, y, k)."""
    (log_p, means, variances), (log_q, others, scales) = new, old
    gap = (variances + (means - others) ** 2) / scales - 1 - np.log(variances / scales)
    return (np.exp(log_p) * (log_p - log_q + 0.5 * gap.sum(axis=-1))).sum()


def em_of_clouds(X: Array, y: Array) -> tuple[Array, Array, Array]:
    """What the steps of EM gain beyond n KL, slopes where it ends, and a step less that of the library."""
    Y, n = np.eye(2)[y], len(y)

    def likelihood(*model: Array) -> float:
        return logsumexp(log_pairs(X, *model), axis=2)[np.arange(n), y].sum()

    path = [(np.full((2, 2), -np.log(4.0)), X[[0, 1, 2, 3]].reshape(2, 2, 2), np.full((2, 2, 2), 1.0))]
    for _ in range(2_000):
        path.append(em_step(X, Y, *path[-1]))
    gains = np.diff([likelihood(*model) for model in path[:40]])
    spare = gains - [n * divergence(new, old) for old, new in pairwise(path[:40])]

    log_p, means, variances = path[-1]
    slopes = []
    for place in np.ndindex(means.shape):
        step = 1e-5 * (np.arange(means.size).reshape(means.shape) == np.ravel_multi_index(place, means.shape))
        slopes.append(likelihood(log_p, means + step, variances) - likelihood(log_p, means - step, variances))
        up, down = variances * np.exp(step), variances * np.exp(-step)
        slopes.append(likelihood(log_p, means, up) - likelihood(log_p, means, down))

    model = Mixture(GaussianNB(), n_components=2, prior_strength=0.0, random_state=0, max_iter=3, tol=0.0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        family = model.fit(X, y).family_
    theta = model.parameters_
    there = family.parameters(family.expected_statistics(X, Y, theta)).components
    by_hand = em_step(X, Y, *(np.reshape(part, (2, 2, *part.shape[1:])) for part in theta.components[:3]))
    off = [np.ravel(a) - np.ravel(b) for a, b in zip(by_hand, there)]
    return spare, np.array(slopes) / (2e-5 * n), np.concatenate(off)
