"""The densities of the classes, and what they tell of rows with gaps: each has marginals of its own kind."""

from typing import NamedTuple

import numpy as np

from rcpkg.gaps import GappyRows
from rcpkg.gaussians.predictive import log_bracket, log_t
from rcpkg.gaussians.scatter import gaussian_log_density
from rcpkg.linalg import Array


class Spheres(NamedTuple):
    """Gaussians N(μ_h, σ²I): means (r, d) and the common variance."""

    means: Array
    variance: float

    def log_density(self, X: Array) -> Array:
        """log p(x | h) of what each row has, shape (n, r)."""
        seen = np.count_nonzero(~np.isnan(X), axis=1)[:, None]
        squares = np.nansum((X[:, None, :] - self.means) ** 2, axis=-1)
        return gaussian_log_density(seen, seen * np.log(self.variance), squares / self.variance)

    def expected_rows(self, X: Array, weights: Array) -> Array:
        """Σ_h W_ih E[x_i | what row i has, h], shape (n, d), for weights (n, r) that sum to one in each row."""
        return np.where(np.isnan(X), weights @ self.means, X)


class Gaussians(NamedTuple):
    """Gaussians N(μ_h, Σ_h): means (r, d) and positive definite covariances (r, d, d)."""

    means: Array
    covariances: Array

    def log_density(self, X: Array) -> Array:
        """log p(x | h) of what each row has, shape (n, r): the marginals are Gaussians of sub-blocks."""
        rows = GappyRows(X)
        squares, log_det = rows.marginals_of_classes(self.means, self.covariances)
        return gaussian_log_density(rows.n_seen[:, None], log_det, squares)

    def expected_rows(self, X: Array, weights: Array) -> Array:
        """As `Spheres.expected_rows`: each E[x_m | x_o, h] is the regression μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)."""
        return GappyRows(X).expected(weights, self.means, self.covariances)


class StudentTs(NamedTuple):
    """Predictive t densities: rows (r,) and means (r, d) of the classes, D = S + B (r, d, d), and a (r,)."""

    counts: Array
    means: Array
    scales: Array
    a: Array

    def log_density(self, X: Array) -> Array:
        """log p(x | h) of what each row has, shape (n, r): the marginals have the sub-blocks of D and as many degrees
        of freedom a − d + 1."""
        rows = GappyRows(X)
        squares, log_det = rows.marginals_of_classes(self.means, self.scales)
        seen = rows.n_seen[:, None]
        a = self.a - X.shape[1] + seen
        return log_t(self.counts, a, seen, log_det, log_bracket(self.counts, squares))

    def expected_rows(self, X: Array, weights: Array) -> Array:
        """As `Gaussians.expected_rows`, with D in place of Σ; of a row without any value the centre, as the mean does
        not exist for a − d + 1 ≤ 1."""
        return GappyRows(X).expected(weights, self.means, self.scales)
