"""Counts, means and scatter matrices of the classes of a sample, with each row left out in turn; Gaussian densities."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.gaussians.constants import LEAST_REST
from rcpkg.linalg import EPS, LOG_2PI, Array, correlations, is_definite


class ClassStatistics(NamedTuple):
    """Rows (r,), means (r, d) and scatter matrices (r, d, d) of the classes."""

    counts: Array
    means: Array
    scatters: Array

    @property
    def pooled(self) -> Array:
        """Within-class scatter matrix, summed over the classes."""
        return self.scatters.sum(axis=0)


def class_statistics(X: Array, y: NDArray[np.intp], n_classes: int, weights: Array | None = None) -> ClassStatistics:
    r""":math:`n_h`, :math:`\bar x_h` and :math:`S_h=\sum_{y_i=h}(x_i-\bar x_h)(x_i-\bar x_h)^T` (thesis2007 4.5, 4.6).

    A feature that is constant within a class gets a variance of exactly zero, an empty class mean and scatter 0.

    Parameters
    ----------
    X : array of shape (n, d)
    y : integer array of shape (n,), values 0, ..., n_classes - 1
    n_classes : int
    weights : array of shape (n,), optional
        How often each row counts, > 0; once by default.

    Examples
    --------
    >>> class_statistics(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), 2).scatters.tolist()
    [[[2.0]], [[0.0]]]
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


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows, and what leaving one of them out makes of their statistics.

    The fields are the parameters of `class_statistics`. Leave-one-out takes one of a row that counts several times, and
    all of a row that counts less than once.

    >>> sample = Sample(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), 2)
    >>> sample.without(1).means.tolist(), sample.without_each(np.array([0, 1])).means[:, 0].tolist()
    ([[0.0], [5.0]], [[2.0], [0.0]])
    >>> sample.take(np.array([0, 2])).y, sample.dominating()
    (array([0, 1]), array([ True,  True, False]))
    """

    X: Array
    y: NDArray[np.intp]
    n_classes: int
    weights: Array | None = None

    @cached_property
    def statistics(self) -> ClassStatistics:
        """The statistics of all rows."""
        return class_statistics(self.X, self.y, self.n_classes, self.weights)

    @cached_property
    def class_sizes(self) -> NDArray[np.intp]:
        """Different rows of each class, whatever their weights: they bound the rank of its scatter."""
        return np.bincount(self.y, minlength=self.n_classes)

    @cached_property
    def deviations(self) -> Array:
        """z_i, of each row from the mean of its class."""
        return self.X - self.statistics.means[self.y]

    @cached_property
    def kappa(self) -> Array:
        """n/(n - 1) for the class of each row: without it S' = S - kappa z z'; 1 for the only row of a class."""
        n = self.statistics.counts[self.y]
        return np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)

    def take(self, rows: NDArray) -> "Sample":
        """The sample of the rows with these numbers."""
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.X[rows], self.y[rows], self.n_classes, weights)

    def dominating(self, pooled: bool = False) -> NDArray[np.bool_]:
        """The rows that hold nearly all of their class's scatter, or of the ``pooled`` one, in some feature: without
        them a difference of sums would leave rounding where little or nothing is left."""
        share = np.where(self.statistics.counts[self.y] > 1, self.kappa, 0.0)[:, None] * self.deviations**2
        spread = np.einsum("hjj->hj", self.statistics.scatters)
        spread = np.broadcast_to(spread.sum(axis=0), self.X.shape) if pooled else spread[self.y]
        return (share > (1 - LEAST_REST) * spread).any(axis=1, where=spread > 0)

    def without(self, i: int) -> ClassStatistics:
        """The statistics without row i, or one of it: its class is computed afresh, the others are taken over."""
        rows, weights = self.y == self.y[i], self.weights
        if weights is None or weights[i] <= 1:
            rows[i] = False
        if weights is not None:
            weights = weights.copy()
            weights[i] = max(weights[i] - 1.0, 0.0)
            weights = weights[rows]
        fresh = class_statistics(self.X[rows], np.zeros(rows.sum(), dtype=int), 1, weights)
        reduced = ClassStatistics(*(part.copy() for part in self.statistics))
        for part, value in zip(reduced, fresh):
            part[self.y[i]] = value[0]
        return reduced

    def without_each(self, rows: NDArray[np.intp]) -> ClassStatistics:
        """The statistics `without` each of the ``rows`` in turn, stacked."""
        return ClassStatistics(*(np.stack(part) for part in zip(*(self.without(i) for i in rows))))


def gaussian_log_density(d: int, log_det: Array | float, quadratic: Array) -> Array:
    """-½ (d log 2π + log|Σ| + (x - μ)' Σ⁻¹ (x - μ)), from the log determinant and the quadratic form."""
    return -0.5 * (d * LOG_2PI + log_det + quadratic)


def log_normal(deviations: Array, covariances: Array, tol: float | None = None) -> Array:
    """Gaussian log densities (..., n, r) of deviations from the class means (..., n, r, d) under covariances
    (..., r, d, d); -inf where an eigenvalue of the correlation matrix is at most ``tol``, by default so small that
    rounding may leave no Cholesky factor (Higham 2002, Theorem 10.7).

    >>> log_normal(np.array([[[0.0]], [[1.0]]]), np.array([[[4.0]]])).round(3).tolist()
    [[-1.612], [-1.737]]
    """
    d = covariances.shape[-1]
    definite = is_definite(covariances, d * (d + 1) * EPS if tol is None else tol)
    correlation, scale = correlations(np.where(definite[..., None, None], covariances, np.eye(d)))
    L = np.linalg.cholesky(correlation)
    U = np.linalg.solve(L, np.moveaxis(deviations / scale[..., None, :, :], -3, -1))
    log_det = 2 * np.log(scale * np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    value = gaussian_log_density(d, log_det[..., None, :], (U**2).sum(axis=-2).swapaxes(-2, -1))
    return np.where(definite[..., None, :], value, -np.inf)
