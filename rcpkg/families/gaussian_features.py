"""Features of Gaussian models, the monomials of first and second degree; their moments, and free coordinates of η."""

from copy import copy
from typing import Any

import numpy as np

from rcpkg.base import Array
from rcpkg.families.features import FeatureMap, FreeCoordinates
from rcpkg.families.statistics import Statistics


class Monomials(FeatureMap):
    """x̃ = Tᵀ(x − c) and its products x̃_a x̃_b (a ≤ b) or, where features are independent, its squares x̃_a².

    Classes that share their covariance share the second. T is a matrix, a vector of scales, or None for the identity.
    η and the moments of the statistics are about the ``origin`` o. Those of x̃ are for c = o; with another c what all
    classes have in common is left out of η.
    """

    def __init__(
        self, X: Array, origin: Array | float, centre: Array | float, factor: Array | None, full: bool, common: bool
    ) -> None:
        self.n, d = X.shape
        self.origin, self.shift = origin, np.broadcast_to(origin - centre, d)  # x − c = (x − o) + shift
        self.factor = np.ones(d) if factor is None else factor
        self.full, self.common = full, common
        moved = X - centre
        if factor is not None:
            moved = moved @ factor if factor.ndim == 2 else moved * factor
        self.x = np.ascontiguousarray(moved.T)
        self.i, self.j = np.triu_indices(d) if full else (np.arange(d), np.arange(d))
        self.own, self.shared = (d, len(self.i)) if common else (d + len(self.i), 0)
        self.twice = np.where(self.i == self.j, 1.0, 2.0) if full else np.ones(d)
        self.totalled, self.entries = np.arange(self.own) >= d, float(self.own * len(X))

    def write(self, index: Any, out: Array) -> None:
        x = self.x[:, index]
        out[: len(x)] = x
        if not self.common:
            self._multiply(x, out[len(x) :])

    def _multiply(self, x: Array, out: Array) -> None:
        """The monomials of second degree."""
        if self.full:
            products(x, out)
        else:
            np.multiply(x, x, out=out)

    def features(self) -> tuple[Array, Array]:
        own, _ = super().features()
        shared = np.empty((self.shared, self.n))
        if self.common:
            self._multiply(self.x, shared)
        return own, np.ascontiguousarray(shared.T)

    def _congruent(self, first: Array, second: Array, M: Array) -> tuple[Array, Array]:
        """Mᵀa and MᵀAM for a matrix M, or a vector, the diagonal of one."""
        if M.ndim == 2:
            return first @ M, M.T @ second @ M
        return first * M, second * (np.multiply.outer(M, M) if self.full else M * M)

    @property
    def _inverse(self) -> Array:
        T = self.factor
        return np.linalg.solve(T, np.eye(len(T))) if T.ndim == 2 else 1 / T

    def _join(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Own and shared entries, from those of each degree."""
        entries = second[..., self.i, self.j] if self.full else second
        return (first, entries) if self.common else (np.hstack([first, entries]), np.empty(0))

    def _split(self, own: Array, shared: Array, each: Array | float = 1.0) -> tuple[Array, Array]:
        """The inverse of `_join`, entries of the second degree times ``each``."""
        d = len(self.x)
        first, entries = (own, shared * each) if self.common else (own[:, :d], own[:, d:] * each)
        if not self.full:
            return first, entries
        square = np.empty((*entries.shape[:-1], d, d))
        square[..., self.i, self.j] = square[..., self.j, self.i] = entries
        return first, square

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return self._join(*self._congruent(statistics.first, statistics.second, self.factor))

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        first, second = self._congruent(*self._split(own, shared), self._inverse)
        return Statistics(count=count, first=first, second=second)

    def _moved(self, natural: Statistics, shift: Array) -> Statistics:
        """η about another point, that many units before the old; what the classes share is left as it is."""
        count, first, second = natural.count, natural.first, natural.second
        count = count - first @ shift
        if self.common or not shift.any():
            return Statistics(count=count, first=first, second=second)
        moved = second @ shift if self.full else second * shift
        return Statistics(count=count + moved @ shift, first=first - 2 * moved, second=second)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        eta = self._moved(natural, self.shift)
        own, shared = self._join(*self._congruent(eta.first, eta.second, self._inverse.T))
        if self.common:
            return eta.count, own, shared * self.twice
        own[:, len(self.x) :] *= self.twice
        return eta.count, own, shared

    def natural(self, constant: Array, own: Array, shared: Array) -> Statistics:
        first, second = self._congruent(*self._split(own, shared, 1 / self.twice), self.factor.T)
        return self._moved(Statistics(count=constant, first=first, second=second), -self.shift)

    def ridge(self) -> Array:
        as_given, d = copy(self), len(self.x)
        as_given.shift, as_given.factor = np.broadcast_to(self.origin, d), np.ones(d)
        natural = self.natural(np.zeros(self.own), np.eye(self.own), np.zeros(self.shared))
        return as_given.coefficients(natural)[1]

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        mean, S = self._congruent(parameters.mean - self.origin, parameters.covariance, self.factor)
        r, d = mean.shape
        if not self.full:
            return _diagonal_moments(mean, np.broadcast_to(S, (r, d)))
        S, i, j, m = np.broadcast_to(S, (r, d, d)), self.i, self.j, mean
        T = S + m[:, :, None] * m[:, None]  # E xxᵀ
        # Isserlis: Cov(x_a, x_i x_j) = S_ai m_j + S_aj m_i, E x_i x_j x_k x_l = T_ij T_kl + T_ik T_jl + T_il T_jk
        # − 2 m_i m_j m_k m_l
        cross = S[:, :, i] * m[:, None, j] + S[:, :, j] * m[:, None, i]
        Ti, Tj, mm = T[:, i], T[:, j], m[:, i] * m[:, j]
        square = Ti[:, :, i] * Tj[:, :, j]
        square += Ti[:, :, j] * Tj[:, :, i]
        square -= 2 * mm[:, :, None] * mm[:, None]
        upper = np.concatenate([S, cross], axis=2)
        lower = np.concatenate([cross.swapaxes(1, 2), square], axis=2)
        return np.hstack([mean, T[:, i, j]]), np.concatenate([upper, lower], axis=1)

    def is_inside(self, natural: Statistics) -> bool:
        if not self.full:
            return bool(np.all(natural.second < 0))
        try:
            np.linalg.cholesky(-natural.second)
        except np.linalg.LinAlgError:
            return False
        return True


def products(x: Array, out: Array) -> None:
    """x_a x_b (a ≤ b) of columns x, shape (d, n), into ``out``, shape (d(d + 1)/2, n)."""
    start = 0
    for j in range(len(x)):
        np.multiply(x[j], x[j:], out=out[start : start + len(x) - j])
        start += len(x) - j


def _diagonal_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Of x and x², feature by feature."""
    r, d = mean.shape
    covariance = np.zeros((r, 2 * d, 2 * d))
    a, b = np.arange(d), np.arange(d, 2 * d)
    covariance[:, a, a] = variance
    covariance[:, a, b] = covariance[:, b, a] = 2 * mean * variance
    covariance[:, b, b] = 2 * variance**2 + 4 * mean**2 * variance
    return np.hstack([mean, variance + mean**2]), covariance


class Whitened(FreeCoordinates):
    """η_1 = Aᵀz_1 and η_2 = Aᵀz_2 A, with the whitening factor A of a common covariance, a matrix or a vector.

    With ``definite``, so that ψ(η) is finite everywhere, η_2 = −½ AᵀLLᵀA instead, z_2 being L with the logarithm of its
    diagonal.
    """

    def __init__(self, A: Array, definite: bool) -> None:
        self.A, self.full, self.definite = A, A.ndim == 2, definite

    def natural(self, z: Statistics) -> Statistics:
        second = z.second
        if self.definite and self.full:
            L = _exp_diagonal(second)
            second = -0.5 * L @ L.swapaxes(-1, -2)
        elif self.definite:
            second = -0.5 * np.exp(2 * second)
        if self.full:
            return Statistics(count=z.count, first=z.first @ self.A, second=self.A.T @ second @ self.A)
        return Statistics(count=z.count, first=z.first * self.A, second=second * self.A**2)

    def gradient(self, z: Statistics, g: Statistics) -> Statistics:
        if not self.full:
            second = g.second * self.A**2
            if self.definite:
                second = -second * np.exp(2 * z.second)
            return Statistics(count=g.count, first=g.first * self.A, second=second)
        second = self.A @ g.second @ self.A.T
        if self.definite:
            L = _exp_diagonal(z.second)
            second = -np.tril(second @ L)
            diagonal = np.arange(len(self.A))
            second[..., diagonal, diagonal] *= L[..., diagonal, diagonal]
        return Statistics(count=g.count, first=g.first @ self.A.T, second=second)

    def of(self, natural: Statistics) -> Statistics:
        if not self.full:
            second = natural.second / self.A**2
            second = 0.5 * np.log(-2 * second) if self.definite else second
            return Statistics(count=natural.count, first=natural.first / self.A, second=second)
        inverse = np.linalg.solve(self.A, np.eye(len(self.A)))
        second = inverse.T @ natural.second @ inverse
        if self.definite:
            second = np.linalg.cholesky(-2 * second)
            diagonal = np.arange(len(self.A))
            second[..., diagonal, diagonal] = np.log(second[..., diagonal, diagonal])
        return Statistics(count=natural.count, first=natural.first @ inverse, second=second)


def _exp_diagonal(z: Array) -> Array:
    """Lower triangles with exp taken of the diagonal."""
    L = np.tril(z, -1)
    diagonal = np.arange(z.shape[-1])
    L[..., diagonal, diagonal] = np.exp(z[..., diagonal, diagonal])
    return L
