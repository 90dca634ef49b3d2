"""Rows with gaps: those of one pattern together, and what a Gaussian with full covariance tells of them.

Of a pattern that has the features o, with m missing, the covariance is padded with the identity where features are
missing. Its Cholesky factor then holds that of Σ_oo, so that the patterns of a block are factored as one stack, which
the times of the chapter on gaps ask for.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from rcpkg.linalg import AT_A_TIME, Array, correlations


class Patterns(NamedTuple):
    """Some patterns: what they see (p, d), their rows one pattern after another, and the bounds of each (p + 1,)."""

    seen: NDArray[np.bool_]
    rows: NDArray[np.intp]
    bounds: NDArray[np.intp]

    @property
    def groups(self) -> Iterator[slice]:
        """The places of the rows of each pattern among those of the block."""
        return map(slice, self.bounds[:-1], self.bounds[1:])


def patterns(missing: NDArray[np.bool_], largest: int = AT_A_TIME) -> list[Patterns]:
    """The patterns of rows (n, d), in blocks of few enough that p d² + n d numbers are hardly more than ``largest``.

    A pattern with too many rows for one block is met in several.
    """
    n, d = missing.shape
    packed = np.packbits(missing, axis=1)
    order = np.lexsort(packed.T)
    packed = packed[order]
    starts = np.flatnonzero(np.r_[True, (packed[1:] != packed[:-1]).any(axis=1)][:n])
    most = max(1, largest // d)
    starts = np.concatenate([np.arange(a, b, most) for a, b in zip(starts, np.r_[starts[1:], n])] or [starts])
    ends = np.r_[starts[1:], n][: len(starts)]
    number = np.cumsum(d * d + d * (ends - starts)) // largest
    blocks = []
    for group in np.split(np.arange(len(starts)), np.flatnonzero(np.diff(number)) + 1):
        if len(group):
            first, last = starts[group[0]], ends[group[-1]]
            bounds = np.r_[starts[group], last] - first
            blocks.append(Patterns(~missing[order[starts[group]]], order[first:last], bounds))
    return blocks


class GappyRows:
    """Rows (n, d) with NaN for what is missing, sorted by pattern once for all Gaussians that are asked of them."""

    def __init__(self, X: Array) -> None:
        self.missing = np.isnan(X)
        self.filled = np.where(self.missing, 0.0, X)
        self.blocks = patterns(self.missing)

    @cached_property
    def n_seen(self) -> NDArray[np.intp]:
        """Number of the features that each row has, shape (n,)."""
        return self.missing.shape[1] - self.missing.sum(axis=1)

    def _white(self, block: Patterns, factors: Sequence[Array], mean: Array, scale: Array) -> Array:
        """U⁻ᵀ of the scaled deviations (m, d) from a mean, zero where values are missing."""
        deviations = (self.filled[block.rows] - mean) / scale
        deviations[self.missing[block.rows]] = 0.0
        for factor, group in zip(factors, block.groups):
            dtrtrs(factor, deviations[group].T, lower=0, trans=1, overwrite_b=1)
        return deviations

    def marginals(self, means: Array, covariance: Array) -> tuple[Array, Array]:
        """(x_o − μ_o)ᵀ Σ_oo⁻¹ (x_o − μ_o), shape (n, k), and log|Σ_oo|, shape (n,), with o what the row has.

        Both are 0 where nothing is seen. One ``covariance`` (d, d), positive definite, is for all ``means`` (k, d).
        """
        quadratic, log_det = np.empty((len(self.filled), len(means))), np.empty(len(self.filled))
        correlation, scale = correlations(covariance)
        for block in self.blocks:
            factors, log_dets = _padded_factors(correlation, scale, block.seen)
            log_det[block.rows] = np.repeat(log_dets, np.diff(block.bounds))
            for k, mean in enumerate(means):
                Z = self._white(block, factors, mean, scale)
                quadratic[block.rows, k] = np.vecdot(Z, Z)
        return quadratic, log_det

    def completed(self, mean: Array, covariance: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """E[x_i | what row i has] under N(μ, Σ), shape (n, d), and Σ_i w_i Cov[x_i | what it has], shape (d, d).

        μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o) and Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om; without ``weights`` (n,) the second is zero.
        """
        rows, total = self.filled.copy(), np.zeros_like(covariance)
        correlation, scale = correlations(covariance)
        for block in self.blocks:
            factors, _ = _padded_factors(correlation, scale, block.seen)
            Z = self._white(block, factors, mean, scale)
            for factor, seen, group in zip(factors, block.seen, block.groups):
                dtrtrs(factor, Z[group].T, lower=0, overwrite_b=1)
                if weights is not None:
                    half = dtrtrs(factor, correlation * seen[:, None], lower=0, trans=1)[0]
                    rest = correlation - half.T @ half
                    total += weights[block.rows[group]].sum() * np.where(seen[:, None] | seen, 0.0, rest)
            there = self.missing[block.rows]
            rows[block.rows] = np.where(there, mean + scale * (Z @ correlation), rows[block.rows])
        return rows, total * scale[:, None] * scale

    def marginals_of_classes(self, means: Array, covariances: Array) -> tuple[Array, Array]:
        """`marginals` of each class, by covariances (r, d, d) or (d, d): of shape (n, r), the second also (n, 1)."""
        if covariances.ndim == 2:
            squares, log_det = self.marginals(means, covariances)
            return squares, log_det[:, None]
        squares, log_det = zip(*(self.marginals(mean[None], one) for mean, one in zip(means, covariances)))
        return np.hstack(squares), np.stack(log_det, axis=1)

    def expected(self, weights: Array, means: Array, covariances: Array) -> Array:
        """Σ_y W_iy E[x_i | what row i has, y], shape (n, d), for ``weights`` (n, r) that sum to one in each row."""
        classes = zip(weights.T, means, np.broadcast_to(covariances, (len(means), *covariances.shape[-2:])))
        expected = sum(w[:, None] * self.completed(mean, one)[0] for w, mean, one in classes)
        return np.where(self.missing, expected, self.filled)

    def completed_moments(
        self, weights: Array, means: Array, covariances: Array, origin: Array | float
    ) -> tuple[Array, Array]:
        """Σ_i W_iy E[x_i − o | what row i has, y], (r, d), and Σ_i W_iy E[(x_i − o)(x_i − o)ᵀ | …], (r, d, d)."""
        first, second = np.zeros_like(means), np.zeros((len(means), *covariances.shape[-2:]))
        for y, (w, mean, one) in enumerate(zip(weights.T, means, np.broadcast_to(covariances, second.shape))):
            rows, spread = self.completed(mean, one, w)
            rows -= origin
            first[y], second[y] = w @ rows, (rows * w[:, None]).T @ rows + spread
        return first, second


class IndependentRows:
    """What `GappyRows` gives, for Gaussians with independent features: covariances are variances, (r, d) or (d,)."""

    def __init__(self, X: Array) -> None:
        self.X, self.missing = X, np.isnan(X)

    def marginals_of_classes(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Σ_j (x_j − μ_yj)²/σ²_yj and Σ_j log σ²_yj over what the row has, (n, r), and (n, r) or (n, 1)."""
        return IndependentMarginals(means, variances)(self.X, self.missing)

    def expected(self, weights: Array, means: Array, variances: Array) -> Array:
        """Σ_y W_iy E[x_i | what row i has, y], shape (n, d)."""
        return np.where(self.missing, weights @ means, self.X)

    def completed_moments(
        self, weights: Array, means: Array, variances: Array, origin: Array | float
    ) -> tuple[Array, Array]:
        """Σ_i W_iy E[x_i − o | what row i has, y] and Σ_i W_iy E[(x_i − o)² | …], both (r, d)."""
        means, X = means - origin, np.where(self.missing, 0.0, self.X - origin)
        hidden = weights.T @ self.missing
        return weights.T @ X + hidden * means, weights.T @ (X * X) + hidden * (means * means + variances)


class IndependentMarginals:
    """`IndependentRows.marginals_of_classes`, of which a scorer computes once what no row changes: a row with gaps then
    takes 4 in place of 12 µs, by the same operations."""

    def __init__(self, means: Array, variances: Array) -> None:
        self.centre, precision = means.mean(axis=0), np.atleast_2d(1 / variances)
        means = means - self.centre
        self.offset, self.linear = (means * means * precision).T, 2 * (means * precision).T
        self.square, self.log_square = precision.T, -np.log(precision).T

    def __call__(self, X: Array, missing: NDArray[np.bool_]) -> tuple[Array, Array]:
        X, seen = X - self.centre, (~missing).astype(float)
        np.copyto(X, 0.0, where=missing)  # and `dot`, since of one row @ takes twice as long
        squares = seen.dot(self.offset) - X.dot(self.linear) + (X * X).dot(self.square)
        return squares, seen.dot(self.log_square)


class PatternMarginals:
    """`GappyRows.marginals_of_classes` for one row at a time, by covariances (r, d, d) or (1, d, d): keeps factors.

    The bar is a scorer's time for one row with gaps: of a pattern that it has met 5 µs, and 15 of a new one, in place
    of 110. The factors and the products with them are the same.
    """

    def __init__(self, means: Array, covariances: Array) -> None:
        self.means, (self.correlations, scales) = means, correlations(covariances)
        self.scales = np.tile(scales, (len(means) // len(scales), 1))  # of a shared one, too, which is faster
        self.cached = lru_cache(AT_A_TIME // self.correlations.size)(self._factors)

    def __call__(self, x: Array, missing: NDArray[np.bool_]) -> tuple[Array, Array]:
        factors, log_det = self.cached(missing.tobytes())
        Z = (x - self.means) / self.scales
        np.copyto(Z, 0.0, where=missing)
        for factor, z in zip(factors, Z):
            dtrtrs(factor, z, lower=0, trans=1, overwrite_b=1)
        return np.vecdot(Z, Z)[None], log_det

    def _factors(self, missing: bytes) -> tuple[Sequence[Array], Array]:
        factors, log_det = _padded_factors(self.correlations, self.scales, ~np.frombuffer(missing, dtype=bool))
        return factors * (len(self.means) // len(factors)), log_det


def gappy(X: Array, independent: bool) -> GappyRows | IndependentRows:
    """Rows with gaps, for Gaussians with ``independent`` features or full covariances."""
    return IndependentRows(X) if independent else GappyRows(X)


def _padded_factors(matrices: Array, scale: Array, seen: NDArray[np.bool_]) -> tuple[Sequence[Array], Array]:
    """Cholesky factors U of correlations UᵀU, with the identity in place of what patterns (p, d) do not see, and
    log|Σ_oo| (p,): of one matrix for p patterns, or of p for one. Below its diagonal a factor is of no use."""
    d, seen = seen.shape[-1], seen.astype(float)
    padded = np.multiply(matrices, seen[..., :, None], order="C")  # factored in place
    padded *= seen[..., None, :]
    diagonal = padded.reshape(-1, d * d)[:, :: d + 1]
    diagonal[:] = 1.0
    # numpy's takes twice the time of one matrix, which a scorer asks for; of many a third (d = 8), .7 (20) or 1.5 (60)
    factors, failed = zip(*(dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1) for matrix in padded))
    if any(failed):
        raise np.linalg.LinAlgError("the covariance of the features that a row has is not positive definite")
    return factors, 2 * np.vecdot(np.log(diagonal * scale), seen)
