"""Scatter matrices of the classes, with each row left out in turn, and the density of a Gaussian."""

from typing import NamedTuple

import numpy as np

from rcpkg.linalg import Array, correlations, is_definite

#: A row that holds more than this share of its class's scatter in some feature is refitted, not downdated
_LARGEST_SHARE = 1 - 1e-3


class ClassStatistics(NamedTuple):
    """Rows (r,), means (r, d) and scatter matrices (r, d, d) of the classes."""

    counts: Array
    means: Array
    scatters: Array

    @property
    def pooled(self) -> Array:
        """Within-class scatter matrix, summed over the classes."""
        return self.scatters.sum(axis=0)


def class_statistics(X: Array, y: Array, n_classes: int, weights: Array | None = None) -> ClassStatistics:
    r""":math:`n_h`, :math:`\bar x_h` and :math:`S_h=\sum_{y_i=h}(x_i-\bar x_h)(x_i-\bar x_h)^T` (thesis2007
    4.5, 4.6).

    A feature that is constant within a class gets a variance of exactly zero. An empty class has mean and
    scatter 0.

    Parameters
    ----------
    X : array of shape (n, d)
    y : integer array of shape (n,), values 0, ..., n_classes - 1
    n_classes : int
    weights : array of shape (n,), optional
        How often each row counts, > 0; once by default.
    """
    d = X.shape[1]
    means, scatters = np.zeros((n_classes, d)), np.zeros((n_classes, d, d))
    counts = np.bincount(y, weights, minlength=n_classes)
    for h in np.flatnonzero(counts):
        rows = X[y == h]
        w = None if weights is None else weights[y == h]
        means[h] = np.average(rows, axis=0, weights=w)
        constant = rows.max(axis=0) == rows.min(axis=0)
        means[h, constant] = rows[0, constant]
        centred = rows - means[h]
        scatters[h] = centred.T @ (centred if w is None else w[:, None] * centred)
    return ClassStatistics(counts, means, scatters)


def gaussian_log_density(d: int, log_det, quadratic):
    return -0.5 * (d * np.log(2 * np.pi) + log_det + quadratic)


def log_normal(deviations: Array, covariances: Array) -> Array:
    """Gaussian log densities (..., n, r) of deviations from the class means (..., n, r, d) under covariances
    (..., r, d, d); -inf where a covariance is numerically singular."""
    d = covariances.shape[-1]
    definite = is_definite(covariances, d * np.finfo(float).eps)
    covariances = np.where(definite[..., None, None], covariances, np.eye(d))
    correlation, root = correlations(covariances)
    L = np.linalg.cholesky(correlation)
    U = np.linalg.solve(L, np.moveaxis(deviations / root[..., None, :, :], -3, -1))
    log_det = 2 * np.log(root * np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    value = gaussian_log_density(d, log_det[..., None, :], (U**2).sum(axis=-2).swapaxes(-2, -1))
    return np.where(definite[..., None, :], value, -np.inf)


class LeftOut(NamedTuple):
    """What leaving each row out takes: its deviation z from the mean of its class of n rows, kappa = n/(n - 1)."""

    X: Array
    y: Array
    statistics: ClassStatistics
    z: Array
    kappa: Array


def left_out(X: Array, y: Array, n_classes: int, weights: Array | None = None) -> LeftOut:
    """Each row left out of its class; X, y, n_classes and weights as in `class_statistics`, kappa 1 for the only row of
    a class."""
    statistics = class_statistics(X, y, n_classes, weights)
    n = statistics.counts[y]
    kappa = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
    return LeftOut(X, y, statistics, X - statistics.means[y], kappa)


def reduced_weights(weights: Array) -> Array:
    """What leave-one-out leaves of each row's ``weights``: it takes one away, as of a row that is repeated, or all
    there is of less."""
    return np.maximum(weights - 1.0, 0.0)


def without_row(
    X: Array, y: Array, statistics: ClassStatistics, i: int, weights: Array | None = None
) -> ClassStatistics:
    """The ``statistics`` of the rows X with classes y, without row i or, with ``weights``, one of it: those of its
    class computed afresh, the others taken over.
    """
    rows = y == y[i]
    if weights is None or weights[i] <= 1:
        rows[i] = False
    if weights is not None:
        weights = weights.copy()
        weights[i] = reduced_weights(weights[i])
        weights = weights[rows]
    fresh = class_statistics(X[rows], np.zeros(rows.sum(), dtype=int), 1, weights)
    reduced = ClassStatistics(*(part.copy() for part in statistics))
    for part, value in zip(reduced, fresh):
        part[y[i]] = value[0]
    return reduced


def dominates(X: Array, y: Array, statistics: ClassStatistics, pooled: bool = False) -> Array:
    """The rows of X, with classes y, that hold nearly all of their class's scatter (or of the ``pooled`` one) in some
    feature: without them a difference of sums would leave rounding where little or nothing is left, so the
    ``statistics`` must be refitted.
    """
    n = statistics.counts[y]
    share = np.where(n > 1, n / np.maximum(n - 1, 1), 0.0)[:, None] * (X - statistics.means[y]) ** 2
    spread = np.einsum("hjj->j" if pooled else "hjj->hj", statistics.scatters)
    spread = np.broadcast_to(spread, X.shape) if pooled else spread[y]
    return (share > _LARGEST_SHARE * spread).any(axis=1, where=spread > 0)


def leave_one_out_statistics(
    X: Array, y: Array, n_classes: int, rows: Array, weights: Array | None = None
) -> ClassStatistics:
    r"""Class statistics without each of the given rows in turn, stacked: :math:`\bar x'=\bar x-z/(n-1)`,
    :math:`S'=S-\frac n{n-1}zz^T` for the row's own class, z its deviation from the mean.

    Parameters
    ----------
    X, y, n_classes, weights
        As in `class_statistics`; with weights, every row is left out by `without_row`.
    rows : array of int
        Which rows.
    """
    statistics = class_statistics(X, y, n_classes, weights)
    if weights is not None:
        batch = [without_row(X, y, statistics, i, weights) for i in rows]
        return ClassStatistics(*(np.stack(part) for part in zip(*batch)))
    size, own = np.arange(len(rows)), y[rows]
    counts, means, scatters = (np.repeat(part[None], len(rows), axis=0) for part in statistics)
    left = counts[size, own] - 1
    z = X[rows] - statistics.means[own]
    counts[size, own] = left
    means[size, own] -= z / np.maximum(left, 1)[:, None]
    scatters[size, own] -= ((left + 1) / np.maximum(left, 1))[:, None, None] * z[:, :, None] * z[:, None, :]
    means[size[left == 0], own[left == 0]] = 0.0
    batch = ClassStatistics(counts, means, scatters)
    for k in np.flatnonzero(dominates(X, y, statistics)[rows]):
        for part, value in zip(batch, without_row(X, y, statistics, rows[k])):
            part[k] = value
    return batch
