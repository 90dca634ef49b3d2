"""Training rows with gaps of Gaussian classes with full covariances, by EM (Dempster, Laird and Rubin, 1977)."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.statistics import Statistics
from rcpkg.gaps import GappyRows

MAX_STEPS = 1000
TOL = 1e-12  # symmetric Kullback-Leibler divergence of joint models, in nats, of two steps that end the search


def expected_statistics(model: Any, X: Array, W: Array) -> Statistics:
    """The statistics s = E[s(X, W) | what rows have, θ(s)], to which the steps of `em` lead.

    Warns
    -----
    ConvergenceWarning
        Where after `MAX_STEPS` the model still moves.
    """
    last = None
    for _, (statistics, parameters) in zip(range(MAX_STEPS), em(model, X, W)):
        mean, natural = model.mean_parameters(parameters), model.natural_parameters(parameters)
        if last and abs((mean - last[0]).dot(natural - last[1])) <= TOL:
            return statistics
        last = mean, natural
    warnings.warn(
        f"EM has not converged after {MAX_STEPS} steps: too much is missing for so many covariances. Set "
        "prior_strength > 0, leave out features of many gaps, or take GaussianNB",
        ConvergenceWarning,
        stacklevel=4,
    )
    return statistics


def em(model: Any, X: Array, W: Array) -> Iterator[tuple[Statistics, Any]]:
    """Steps s ← E[s(X, W) | what rows have, θ], θ ← θ(s), from independent features with the moments of what is seen.

    The log-likelihood of what is seen never falls without a prior. One that is relative to the rows is decided once,
    where features are still independent: of covariances that it has made larger it would grow with each step.

    Parameters
    ----------
    model : QDA or LDA
        Prepared for the rows.
    X : array of shape (n, d)
        Encoded rows, NaN for what is missing.
    W : array of shape (n, r)
        Labels, times the weights of the rows.
    """
    n_rows, gaps = int(np.count_nonzero(W.any(axis=1))), np.isnan(X).any(axis=1)
    known, X_gaps, W_gaps = model.statistics(X[~gaps], W[~gaps]), X[gaps], W[gaps]
    by_class = [(GappyRows(X_gaps[w > 0]), w[w > 0]) for w in W_gaps.T]
    mean, covariance = _of_what_is_seen(X, W)
    settled = False
    while True:
        parts = [_completed(*rows, *moments, model._origin) for rows, *moments in zip(by_class, mean, covariance)]
        first, second = map(np.array, zip(*parts))
        second = second.sum(axis=0) if known.second.ndim == 2 else second
        statistics = known + Statistics(count=W_gaps.sum(axis=0), first=first, second=second)
        try:
            parameters = (None if settled else model.settle(statistics, n_rows)) or model.parameters(statistics)
        except InvalidStatistics:  # a covariance has become singular on the way
            parameters = model.settle(statistics, n_rows) or model.parameters(statistics)
        settled = True
        yield statistics, parameters
        mean, covariance = parameters.mean, np.broadcast_to(parameters.covariance, covariance.shape)


def _of_what_is_seen(X: Array, W: Array) -> tuple[Array, Array]:
    """Means (r, d) and variances, as matrices (r, d, d); of all rows where those of a class have none."""
    seen = ~np.isnan(X)
    filled = np.where(seen, X - np.nanmean(X, axis=0), 0.0)
    weight = W.T @ seen
    some = np.maximum(weight, np.finfo(float).tiny)
    mean = W.T @ filled / some
    variance = np.maximum(W.T @ filled**2 / some - mean**2, 0.0)
    variance = np.where(variance > 0, variance, (filled**2).sum(axis=0) / seen.sum(axis=0))
    return mean + np.nanmean(X, axis=0), variance[:, :, None] * np.eye(X.shape[1])


def _completed(rows: GappyRows, w: Array, mean: Array, covariance: Array, origin: Array | float) -> tuple[Array, Array]:
    """E Σ_i w_i x_i and E Σ_i w_i x_i x_iᵀ of one class, about the origin."""
    X, spread = rows.completed(mean, covariance, w)
    X = X - origin
    return w @ X, (X * w[:, None]).T @ X + spread
