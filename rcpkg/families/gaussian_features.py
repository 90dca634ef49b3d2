"""Features of Gaussian models, the monomials of first and second degree; their moments."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array

from rcpkg.base import Array
from rcpkg.families.covariances import CovarianceForm
from rcpkg.families.features import FeatureMap, InverseMoments
from rcpkg.families.statistics import Statistics


class Monomials(FeatureMap):
    """x̃ = Tᵀ(x − c) and its products x̃_a x̃_b (a ≤ b) or, where features are independent, its squares x̃_a².

    Classes that share their covariance share the second. T is a matrix, a vector of scales, or None for the identity.
    η and the moments of the statistics are about the ``origin`` o. Those of x̃ are for c = o; with another c what all
    classes have in common is left out of η.
    """

    def __init__(
        self, X: Array, origin: Array | float, centre: Array | float, factor: Array | None, form: CovarianceForm
    ) -> None:
        self.n, d = X.shape
        self.origin, self.shift = origin, np.full(d, origin - centre)  # x − c = (x − o) + shift
        self.form, self.full, self.common = form, not form.independent, form.shared
        self.factor = form.from_diagonal(np.ones(d)) if factor is None else factor
        self.inverse = form.inverted(self.factor)
        moved = X - centre
        self.x = np.ascontiguousarray((moved if factor is None else form.transformed(moved, factor.T)).T)
        self.i, self.j = np.nonzero(np.tri(d, dtype=bool).T) if self.full else (np.arange(d), np.arange(d))
        self.n_by_class, self.n_shared = (d, len(self.i)) if form.shared else (d + len(self.i), 0)
        self.inverts = self.full or not self.common
        self.twice = np.where(self.i == self.j, 1.0, 2.0)
        self.totalled, self.entries = np.arange(self.n_by_class) >= d, float(self.n_by_class * len(X))

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
        by_class, _ = super().features()
        shared = np.empty((self.n_shared, self.n))
        if self.common:
            self._multiply(self.x, shared)
        return by_class, np.ascontiguousarray(shared.T)

    def _congruent(self, first: Array, second: Array, M: Array) -> tuple[Array, Array]:
        """Mᵀa and MᵀAM."""
        return self.form.transformed(first, M.T), self.form.congruent(second, M)

    def _join(self, first: Array, second: Array, each: Array | float = 1.0) -> tuple[Array, Array]:
        """Own and shared entries, from those of each degree, of the second times ``each``."""
        entries = (second[..., self.i, self.j] if self.full else second) * each
        return (first, entries) if self.common else (np.hstack([first, entries]), np.empty(0))

    def _split(self, by_class: Array, shared: Array, each: Array | float = 1.0) -> tuple[Array, Array]:
        """The inverse of `_join`, entries of the second degree times ``each``."""
        d = len(self.x)
        first, entries = (by_class, shared * each) if self.common else (by_class[:, :d], by_class[:, d:] * each)
        if not self.full:
            return first, entries
        square = np.empty((*entries.shape[:-1], d, d))
        square[..., self.i, self.j] = square[..., self.j, self.i] = entries
        return first, square

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return self._join(*self._congruent(statistics.first, statistics.second, self.factor))

    def statistics(self, count: Array, by_class: Array, shared: Array) -> Statistics:
        first, second = self._congruent(*self._split(by_class, shared), self.inverse)
        return Statistics(count=count, first=first, second=second)

    def _moved(self, natural: Statistics, shift: Array) -> Statistics:
        """η about another point, that many units before the old; what the classes share is left as it is."""
        count, first, second = natural.count, natural.first, natural.second
        count = count - first @ shift
        if self.common or not shift.any():
            return Statistics(count=count, first=first, second=second)
        moved = self.form.times(second, np.broadcast_to(shift, first.shape))
        return Statistics(count=count + moved @ shift, first=first - 2 * moved, second=second)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        eta = self._moved(natural, self.shift)
        return eta.count, *self._join(*self._congruent(eta.first, eta.second, self.inverse.T), self.twice)

    def natural(self, constant: Array, by_class: Array, shared: Array) -> Statistics:
        first, second = self._congruent(*self._split(by_class, shared, 1 / self.twice), self.factor.T)
        return self._moved(Statistics(count=constant, first=first, second=second), -self.shift)

    def ridge(self) -> Array:
        natural = self.natural(np.zeros(self.n_by_class), np.eye(self.n_by_class), np.zeros(self.n_shared))
        as_given = self._moved(natural, np.full(len(self.x), self.origin))
        return self._join(as_given.first, as_given.second, self.twice)[0]

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        mean, S = self._congruent(parameters.mean - self.origin, parameters.covariance, self.factor)
        r, d = mean.shape
        if not self.full:
            return _diagonal_moments(mean, np.broadcast_to(S, (r, d)))
        S, i, j, m = np.broadcast_to(S, (r, d, d)), self.i, self.j, mean
        T = S + m[:, :, None] * m[:, None]  # E xxᵀ
        # Isserlis: Cov(x_a, x_i x_j) = S_ai m_j + S_aj m_i, E x_i x_j x_k x_l = T_ij T_kl + T_ik T_jl + T_il T_jk
        # − 2 m_i m_j m_k m_l
        Ti, Tj, mm = T[:, :, i], T[:, :, j], m[:, i] * m[:, j]
        covariance = np.empty((r, d + len(i), d + len(i)))
        covariance[:, :d, :d] = S
        covariance[:, :d, d:] = cross = S[:, :, i] * m[:, None, j] + S[:, :, j] * m[:, None, i]
        covariance[:, d:, :d] = cross.swapaxes(1, 2)
        for a, last in enumerate(np.cumsum(np.arange(d, 0, -1))):  # x_a x_a to x_a x_d
            rows = slice(last - d + a, last)
            rest = slice(rows.start, None)
            square = Ti[:, a, None, rest] * Tj[:, a:, rest]
            square += Tj[:, a, None, rest] * Ti[:, a:, rest]
            square -= 2 * mm[:, rows, None] * mm[:, None, rest]
            covariance[:, d:, d:][:, rows, rest] = square
            covariance[:, d:, d:][:, rest, rows] = square.swapaxes(1, 2)
        return np.hstack([mean, T[:, i, j]]), covariance

    def inverse_moments(self, parameters: Any) -> InverseMoments:
        return Hermite(self, parameters) if self.full else super().inverse_moments(parameters)

    def whitened(self, parameters: Any) -> tuple[Array, list[csr_array]]:
        """For independent features: u = (x − m)/σ and (u² − 1)/√2."""
        mean, variance = self._congruent(parameters.mean - self.origin, parameters.covariance, self.factor)
        whiteners = []
        for m, first, second in zip(mean, variance**-0.5, np.sqrt(0.5) / variance):
            blocks = [[diags_array(first), None], [diags_array(-2 * m * second), diags_array(second)]]
            whiteners.append(block_array(blocks, format="csr"))
        return np.hstack([mean, variance + mean**2]), whiteners


class Hermite:
    """`InverseMoments` of Gaussian classes with full covariances.

    Hermite's polynomials 1, u_a, u_a u_b (a < b) and (u_a² − 1)/√2 of the whitened rows u of a class are uncorrelated,
    and of variance one: of M_y = p(y) E[f fᵀ | y] the inverse is the matrix of their coefficients times its transpose,
    over p(y), which takes d³ multiplications for a vector and d for two rows, where a Cholesky factor takes d⁶/24.
    Where classes share a covariance, those of second degree are added up over them.
    """

    def __init__(self, features: Any, parameters: Any) -> None:
        self.map, self.prior = features, np.exp(parameters.log_prior)
        self.mean = features.form.transformed(parameters.mean - features.origin, features.factor.T)
        whitener, (r, d) = parameters.whitener @ features.inverse.T, self.mean.shape
        self.root = np.zeros((r, 1 + d, 1 + d))  # of (1, u) = root (1, x̃)
        self.root[:, 0, 0], self.root[:, 1:, 1:] = 1.0, whitener
        self.root[:, 1:, 0] = -features.form.times(whitener, self.mean)
        self.precision = self.root.mT @ self.root

    def solve(self, count: Array, by_class: Array, shared: Array) -> tuple[Array, Array, Array]:
        """M⁻¹ of sums: counts, which add up to zero where classes share a covariance, own and shared ones."""
        P, m, common = self.precision, self.mean, self.map.common
        first, second = self.map._split(by_class, shared)
        if common:  # so dealt out among the classes that these agree on the coefficients of second degree
            half = (first - count[:, None] / 2 * m)[:, :, None] * m[:, None]
            about = half + half.mT
            second = about + self.prior[:, None, None] * (second - about.sum(axis=0))
        S = np.empty_like(P)  # Σ (1, x̃)(1, x̃)ᵀ
        S[:, 0, 0], S[:, 0, 1:], S[:, 1:, 0], S[:, 1:, 1:] = count, first, first, second
        lead, some = (P[:, :1] @ S @ P)[:, 0], slice(0, 1) if common else slice(None)
        square = P[some] @ S[some] @ P[some]
        if not common:
            lead -= count[:, None] * P[:, 0]
            square -= count[:, None, None] * P
        lead[:, 0] += (2 if common else m.shape[1] + 3) * count - (P * S).sum(axis=(1, 2))
        lead *= 0.5 / self.prior[:, None]
        square *= 0.5 / self.prior[some, None, None]
        second = square[0 if common else slice(None), 1:, 1:]
        return lead[:, 0], *self.map._join(2 * lead[:, 1:], second, self.map.twice)

    def times_between(self, D: Array) -> Array:
        """M⁻¹ D for the differences from the first of classes that share a covariance: of columns D, shape
        (r − 1, 1 + d, n), in r d² and r² d multiplications each."""
        S, p, own = self.precision[0, 1:, 1:], -self.precision[:, 1:, 0], range(len(self.prior))
        product, prior, out = p @ self.mean.T, self.prior[:, None], np.empty_like(D)
        D = np.concatenate([-D.sum(axis=0)[None], D])
        count, first = D[:, 0], D[:, 1:]
        along = (p @ first).swapaxes(0, 1)  # each mean with the sums of each class
        of_count = ((1 + product.diagonal()[:, None]) * count - along[own, own]) / prior + product**2 @ count / 2
        of_count -= np.einsum("yc,ycn->yn", product, along)
        along = along - product[:, :, None] * count
        along[own, own] -= count / prior
        within = product + np.diag(1 / self.prior)
        out[:, 0] = of_count[1:] - of_count[0]
        out[:, 1:] = np.tensordot(within[1:] - within[0], S @ first, 1)
        out[:, 1:] += p.T @ (along[1:] - along[0])
        return out

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """v = (1, u) of the rows, shape (r, n, 1 + d), and e, shape (r, n), with which f(x_i)ᵀ M_y⁻¹ f(x_j) is
        (⟨v_i, v_j⟩² + e_i + e_j) / 2 p(y)."""
        V = self.map.x.T @ self.root[:, :, 1:].mT + self.root[:, None, :, 0]
        return V, 0.5 * (V.shape[2] + 2) - np.einsum("yid,yid->yi", V, V)

    def kernel(self, y: int, first: Any, second: Any) -> Array:
        V, e = self.rows
        K = V[y, first] @ V[y, second].T
        K *= K
        K += e[y, first, None]
        K += e[y, second]
        K *= 0.5
        return K

    def squares(self) -> Array:
        V, e = self.rows
        return 0.5 * np.einsum("yid,yid->yi", V, V) ** 2 + e


def products(x: Array, out: Array) -> None:
    """x_a x_b (a ≤ b) of columns x, shape (d, n), into ``out``, shape (d(d + 1)/2, n)."""
    start = 0
    for j in range(len(x)):
        np.multiply(x[j], x[j:], out=out[start : start + len(x) - j])
        start += len(x) - j


def _diagonal_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Means and covariances of x and x² within the classes, feature by feature."""
    r, d = mean.shape
    covariance = np.zeros((r, 2 * d, 2 * d))
    a, b = np.arange(d), np.arange(d, 2 * d)
    covariance[:, a, a] = variance
    covariance[:, a, b] = covariance[:, b, a] = 2 * mean * variance
    covariance[:, b, b] = 2 * variance**2 + 4 * mean**2 * variance
    return np.hstack([mean, variance + mean**2]), covariance
