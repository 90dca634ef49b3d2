"""The curvature of a regularised conditional likelihood, in minimal coordinates of an exponential family.

With features f(x) = (1, own(x)) that each class has for itself and shared(x) that all classes have in common, the
statistics are s(x, y) = (e_y ⊗ f(x), shared(x)), and a natural parameter η is a vector β of r(1 + k) + l entries. In
these coordinates, which carry no redundancy but that of the class weights (their statistics add up to one),

    I = ∇²ψ = Cov s(x, y) under the model,        C = Σ_i w_i Cov(s(x_i, y) | x_i)

are the information of the joint model and, up to its sign, the Hessian of the conditional log-likelihood.
"""

from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.families import BernoulliNB, CategoricalNB, ConjugateClassifier, MultinomialNB, ProductModel, Statistics
from rcpkg.families.cliques import margin, onto
from rcpkg.families.gaussian import GaussianClassifier
from rcpkg.families.gaussian_full import FullGaussian
from rcpkg.families.networks import NetworkModel

BLOCK_ENTRIES = 2**18  # of the features that are weighted at a time, which then stay in the cache


class Part(Protocol):
    """Coordinates of a model that is no product: k own features and l shared ones."""

    own: int
    shared: int
    totalled: Array  # of the own features: whether a pooled or grand target depends on their sums over all classes only

    def rows(self, X: Any) -> tuple[Array, Array]:
        """Own features, shape (n, k), and shared ones, shape (n, l)."""

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        """Those of the own features, shape (r, k), and of the shared ones, shape (l,), in statistics."""

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        """The statistics that have these sums: the inverse of ``sums``."""

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        """Of an η: what it adds to the constants, shape (r,), the own coefficients (r, k) and the shared ones (l,)."""

    def natural(self, constant: Array, own: Array, shared: Array) -> Statistics:
        """The η with these coefficients."""

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """Means (r, k + l) and covariances (r, k + l, k + l) of own and shared features within the classes."""

    def is_inside(self, natural: Statistics) -> bool:
        """Whether ψ(η) is finite."""


class Quadratic:
    """Gaussian models: x, and its products or squares, about the origin and in units of their standard deviations."""

    def __init__(self, model: GaussianClassifier, statistics: Statistics) -> None:
        self.model, self.full, self.common = model, isinstance(model, FullGaussian), model._shared
        n = statistics.count.sum()
        power = statistics.second if self.common else statistics.second.sum(axis=0)
        self.scale = np.sqrt((power.diagonal() if self.full else power) / n)
        d = len(self.scale)
        self.i, self.j = np.triu_indices(d) if self.full else (np.arange(d), np.arange(d))
        self.own = d if self.common else d + len(self.i)
        self.shared = len(self.i) if self.common else 0
        self.totalled = np.arange(self.own) >= d
        self.units = self.scale[self.i] * self.scale[self.j]
        self.twice = np.where(self.i == self.j, 1.0, 2.0) if self.full else np.ones(d)

    def rows(self, X: Array) -> tuple[Array, Array]:
        z = (self.model.encode(X) - self.model._origin) / self.scale
        square = z[:, self.i] * z[:, self.j]
        return (z, square) if self.common else (np.hstack([z, square]), np.empty((len(z), 0)))

    def _of_square(self, square: Array) -> Array:
        return square[..., self.i, self.j] if self.full else square

    def _square(self, entries: Array) -> Array:
        if not self.full:
            return entries
        d = len(self.scale)
        square = np.empty((*entries.shape[:-1], d, d))
        square[..., self.i, self.j] = square[..., self.j, self.i] = entries
        return square

    def _join(self, first: Array, second: Array) -> tuple[Array, Array]:
        if self.common:
            return first, second
        return np.hstack([first, second]), np.empty(0)

    def _split(self, own: Array, shared: Array) -> tuple[Array, Array]:
        d = len(self.scale)
        return (own, shared) if self.common else (own[:, :d], own[:, d:])

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return self._join(statistics.first / self.scale, self._of_square(statistics.second) / self.units)

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        first, second = self._split(own, shared)
        return Statistics(count=count, first=first * self.scale, second=self._square(second * self.units))

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        second = self._of_square(natural.second) * self.units * self.twice
        return natural.count, *self._join(natural.first * self.scale, second)

    def natural(self, constant: Array, own: Array, shared: Array) -> Statistics:
        first, second = self._split(own, shared)
        square = self._square(second / (self.units * self.twice))
        return Statistics(count=constant, first=first / self.scale, second=square)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        mean = (parameters.mean - self.model._origin) / self.scale
        r, d = mean.shape
        if not self.full:
            return self._diagonal_moments(mean, np.broadcast_to(parameters.covariance / self.scale**2, (r, d)))
        S = np.broadcast_to(parameters.covariance / np.outer(self.scale, self.scale), (r, d, d))
        i, j, m = self.i, self.j, mean
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

    def _diagonal_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        r, d = mean.shape
        covariance = np.zeros((r, 2 * d, 2 * d))
        a, b = np.arange(d), np.arange(d, 2 * d)
        covariance[:, a, a] = variance
        covariance[:, a, b] = covariance[:, b, a] = 2 * mean * variance
        covariance[:, b, b] = 2 * variance**2 + 4 * mean**2 * variance
        return np.hstack([mean, variance + mean**2]), covariance

    def is_inside(self, natural: Statistics) -> bool:
        if not self.full:
            return bool(np.all(natural.second < 0))
        try:
            np.linalg.cholesky(-natural.second)
        except np.linalg.LinAlgError:
            return False
        return True


class Frequencies:
    """Counts of states but for one of each distribution, the most frequent; they have no shared features.

    States of no row have no part in the model: their natural parameter is −∞.
    """

    shared = 0

    def __init__(self, model: ConjugateClassifier, statistics: Statistics, length: float = 1.0) -> None:
        self.length = length  # of a row: what the counts of a distribution add up to
        k = statistics.cells.shape[1]
        starts = model.starts_ if isinstance(model, CategoricalNB) else np.zeros(1, dtype=np.intp)
        self.group = np.searchsorted(starts, np.arange(k), side="right") - 1
        total = statistics.cells.sum(axis=0)
        self.reference = np.array([s + int(np.argmax(part)) for s, part in zip(starts, np.split(total, starts[1:]))])
        self.unused = total <= 0
        self.kept = np.setdiff1d(np.flatnonzero(~self.unused), self.reference)
        self.own = len(self.kept)
        self.totalled = np.ones(self.own, dtype=bool)

    def rows(self, X: Any) -> tuple[Array, Array]:
        X = X[:, self.kept]
        return X.toarray() if issparse(X) else X, np.empty((X.shape[0], 0))

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return statistics.cells[:, self.kept], np.empty(0)

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        cells = np.zeros((len(count), len(self.group)))
        cells[:, self.kept] = own
        rest = [cells[:, self.group == g].sum(axis=1) for g in range(len(self.reference))]
        cells[:, self.reference] = self.length * count[:, None] - np.array(rest).T
        return Statistics(count=count, cells=cells)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        reference = natural.cells[:, self.reference]
        own = natural.cells[:, self.kept] - reference[:, self.group[self.kept]]
        return natural.count + self.length * reference.sum(axis=1), own, np.empty(0)

    def natural(self, constant: Array, own: Array, shared: Array) -> Statistics:
        cells = np.where(self.unused, -np.inf, np.zeros((len(constant), len(self.unused))))
        cells[:, self.kept] = own
        return Statistics(count=constant, cells=cells)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        p = np.exp(parameters.log_prob[:, self.kept])
        same = np.equal.outer(self.group[self.kept], self.group[self.kept])
        covariance = self.length * (p[:, :, None] * np.eye(self.own) - np.where(same, p[:, :, None] * p[:, None], 0.0))
        return self.length * p, covariance

    def is_inside(self, natural: Statistics) -> bool:
        return True


class Cells(Frequencies):
    """The tables of a decomposable network, but for one state of each conditional distribution, the most frequent.

    Those left out follow from the others, family by family: the table of j, summed over the states of j, is a margin of
    the table of its last parent, or the count of the class.
    """

    def __init__(self, model: NetworkModel, statistics: Statistics) -> None:
        self.families = model.families_
        total = statistics.cells.sum(axis=0)
        best = [np.equal.outer(t.argmax(axis=-1), np.arange(t.shape[-1])) for t in self.families.split(total)]
        self.left_out = self.families.join(best, lead=0)
        self.unused = total <= 0
        self.kept = np.flatnonzero(~self.unused & ~self.left_out)
        self.own = len(self.kept)
        self.totalled = np.ones(self.own, dtype=bool)

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        families, cells = self.families, np.zeros((len(count), len(self.unused)))
        cells[:, self.kept] = own
        tables, left_out = families.split(cells), families.split(self.left_out)
        for j in families.order:
            of, carrier, whole = families.parents[j], families.last[j], count
            if of:
                whole = margin(tables[carrier], families.members[carrier], of)
            rest = whole[..., None] - tables[j].sum(axis=-1, keepdims=True)
            tables[j] = np.where(left_out[j], rest, tables[j])
        return Statistics(count=count, cells=families.join(tables))

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        families, constant = self.families, natural.count
        tables, left_out = families.split(np.where(self.unused, 0.0, natural.cells)), families.split(self.left_out)
        for j in reversed(families.order):
            of, base = families.parents[j], np.where(left_out[j], tables[j], 0.0).sum(axis=-1)
            tables[j] = tables[j] - base[..., None]
            if of:
                carrier = families.last[j]
                tables[carrier] = tables[carrier] + onto(base, of, families.members[carrier])
            else:
                constant = constant + base
        return constant, families.join(tables)[:, self.kept], np.empty(0)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """The mean products of two cells are the probability of one, and of the other under the condition of the first:
        that of the network whose table has no other cell."""
        families, r = self.families, len(parameters.log_prob)
        mean = np.empty((r, self.own))
        second = np.empty((r, self.own, self.own))
        family = np.searchsorted(families.starts, self.kept, side="right") - 1
        for place, (cell, j) in enumerate(zip(self.kept, family)):
            tables = families.split(parameters.log_prob)
            only = np.full((r, families.sizes[j]), -np.inf)
            within = cell - families.starts[j]
            only[:, within] = tables[j].reshape(r, -1)[:, within]
            tables[j] = only.reshape(tables[j].shape)
            conditionals, log_mass = families.collect(tables)
            given = families.join(families.distribute([np.exp(table) for table in conditionals]))
            mean[:, place] = np.exp(log_mass)
            second[:, place] = mean[:, [place]] * given[:, self.kept]
        return mean, second - mean[:, :, None] * mean[:, None]


class Ones(Frequencies):
    """Binary features: whether they are one."""

    def __init__(self, model: BernoulliNB, statistics: Statistics) -> None:
        super().__init__(model, statistics)
        both = ~self.unused[::2] & ~self.unused[1::2]
        self.kept = np.flatnonzero(both) * 2 + 1
        self.reference = 2 * np.arange(len(both)) + self.unused[::2]  # a feature that is always one has the state one
        self.own = len(self.kept)
        self.totalled = np.ones(self.own, dtype=bool)

    def rows(self, X: tuple[csr_array, csr_array]) -> tuple[Array, Array]:
        return X[0][:, self.kept // 2].toarray(), np.empty((X[0].shape[0], 0))


def part_of(model: ConjugateClassifier, X: Any, statistics: Statistics) -> Part:
    """Minimal coordinates of a model that is no product; X are its encoded rows."""
    if isinstance(model, GaussianClassifier):
        return Quadratic(model, statistics)
    if isinstance(model, BernoulliNB):
        return Ones(model, statistics)
    if isinstance(model, CategoricalNB):
        return Frequencies(model, statistics)
    if isinstance(model, NetworkModel) and model.families_.decomposable:
        return Cells(model, statistics)
    if isinstance(model, MultinomialNB):
        lengths = np.asarray(X.sum(axis=1)).ravel()
        if lengths.min() < lengths.max():
            raise NotImplementedError("documents of unequal lengths are no full exponential family")
        return Frequencies(model, statistics, float(lengths[0]))
    raise NotImplementedError(f"the minimal coordinates of {type(model).__name__} are not known")


class MinimalForm:
    """A model on its rows in minimal coordinates: vectors β of a natural parameter, or of statistics."""

    def __init__(self, model: ConjugateClassifier, X: Any, statistics: Statistics) -> None:
        self.model, self.like = model, statistics
        self.nested = isinstance(model, ProductModel)
        models, rows = (model.models_, X) if self.nested else ([model], [X])
        self.parts = [part_of(m, x, s) for m, x, s in zip(models, rows, self._blocks(statistics))]
        self.rows = list(rows)
        self.r, self.width = len(self._blocks(statistics)[0].count), 1 + sum(part.own for part in self.parts)
        self.size = self.r * self.width + sum(part.shared for part in self.parts)

    @cached_property
    def features(self) -> Array:
        """f(x_i), shape (n, 1 + k)."""
        own = [part.rows(x)[0] for part, x in zip(self.parts, self.rows)]
        return np.hstack([np.ones((len(own[0]), 1)), *own])

    @cached_property
    def shared_features(self) -> Array:
        """Shared features of the rows, shape (n, l)."""
        return np.hstack([part.rows(x)[1] for part, x in zip(self.parts, self.rows)])

    def _blocks(self, statistics: Statistics) -> list[Statistics]:
        return list(statistics) if self.nested else [statistics]

    def _nest(self, blocks: list[Statistics]) -> Statistics:
        return Statistics(**dict(zip(vars(self.like), blocks))) if self.nested else blocks[0]

    def _vector(self, count: Array, own: list[Array], shared: list[Array]) -> Array:
        return np.concatenate([np.hstack([count[:, None], *own]).ravel(), *shared])

    def by_class(self, vector: Array) -> Array:
        """The entries of the constant and the own features, shape (r, 1 + k)."""
        return vector[: self.r * self.width].reshape(self.r, self.width)

    def _pieces(self, vector: Array) -> list[tuple[Array, Array]]:
        own = np.split(self.by_class(vector)[:, 1:], np.cumsum([p.own for p in self.parts])[:-1], axis=1)
        shared = np.split(vector[self.r * self.width :], np.cumsum([p.shared for p in self.parts])[:-1])
        return list(zip(own, shared))

    def sums(self, statistics: Statistics) -> Array:
        """Statistics as a vector."""
        blocks = self._blocks(statistics)
        found = [part.sums(block) for part, block in zip(self.parts, blocks)]
        return self._vector(blocks[0].count, [own for own, _ in found], [shared for _, shared in found])

    def statistics(self, vector: Array) -> Statistics:
        """The statistics of a vector: the inverse of `sums`."""
        count = self.by_class(vector)[:, 0]
        return self._nest([part.statistics(count, *piece) for part, piece in zip(self.parts, self._pieces(vector))])

    def coefficients(self, natural: Statistics) -> Array:
        """A natural parameter as a vector β."""
        found = [part.coefficients(block) for part, block in zip(self.parts, self._blocks(natural))]
        return self._vector(sum(c for c, _, _ in found), [own for _, own, _ in found], [sh for _, _, sh in found])

    def natural(self, beta: Array) -> Statistics:
        """The natural parameter of a vector β."""
        constant, blocks = self.by_class(beta)[:, 0], []
        for part, piece in zip(self.parts, self._pieces(beta)):
            blocks.append(part.natural(constant, *piece))
            constant = np.zeros(self.r)
        return self._nest(blocks)

    def is_inside(self, natural: Statistics) -> bool:
        """Whether ψ(η) is finite."""
        return all(part.is_inside(block) for part, block in zip(self.parts, self._blocks(natural)))

    def mean(self, parameters: Any) -> Array:
        """μ of a joint model."""
        return self.sums(self.model.mean_parameters(parameters))

    def information(self, parameters: Any) -> Array:
        """I = ∇²ψ, the covariance of the statistics s(x, y) under a joint model, shape (p, p)."""
        blocks = parameters.blocks if self.nested else [parameters]
        found = [part.moments(block) for part, block in zip(self.parts, blocks)]
        prior, K, own_first = np.exp(parameters.log_prior), self.width, self._order()
        I, common = np.zeros((self.size, self.size)), slice(self.r * self.width, self.size)
        for y in range(self.r):
            centre = np.concatenate([[1.0], *(m[y] for m, _ in found)])[own_first]
            second = block_diag(np.zeros((1, 1)), *(V[y] for _, V in found))[np.ix_(own_first, own_first)]
            second = prior[y] * (second + np.outer(centre, centre))
            own = slice(y * K, (y + 1) * K)
            I[own, own] = second[:K, :K]
            I[own, common], I[common, own] = second[:K, K:], second[K:, :K]
            I[common, common] += second[K:, K:]
        mean = self.mean(parameters)
        return I - np.outer(mean, mean)

    def _order(self) -> NDArray[np.intp]:
        """Places of the constant, the own features of all parts, and the shared ones, among those part by part."""
        own, shared, start = [np.zeros(1, dtype=np.intp)], [], 1
        for part in self.parts:
            own.append(np.arange(start, start + part.own))
            shared.append(np.arange(start + part.own, start + part.own + part.shared))
            start += part.own + part.shared
        return np.concatenate([*own, *shared])

    def conditional_curvature(self, P: Array, weight: Array) -> Array:
        """C = Σ_i w_i Cov(s(x_i, y) | x_i) for posteriors P, shape (p, p); zero for the shared features.

        Its rows add up to zero over the classes, so that the blocks of two different classes give the others.
        """
        C, K = np.zeros((self.size, self.size)), self.width
        size = max(1, BLOCK_ENTRIES // K)
        of_class = [slice(y * K, (y + 1) * K) for y in range(self.r)]
        for rows in (slice(start, start + size) for start in range(0, len(P), size)):
            Phi, weighted = self.features[rows], P[rows] * weight[rows, None]
            for a, b in combinations(range(self.r), 2):
                block = (Phi * (weighted[:, a] * P[rows, b])[:, None]).T @ Phi
                C[of_class[a], of_class[a]] += block
                C[of_class[b], of_class[b]] += block
                C[of_class[a], of_class[b]] -= block
                C[of_class[b], of_class[a]] -= block
        return C

    def times_statistics(self, matrix: Array, y: NDArray[np.intp], rows: slice) -> Array:
        """The columns M s(x_i, y_i) for a matrix M and some rows."""
        K, own = self.width, self.features[rows]
        out = np.empty((len(matrix), len(own)))
        for c in range(self.r):
            of_class = np.flatnonzero(y[rows] == c)
            out[:, of_class] = matrix[:, c * K : (c + 1) * K] @ own[of_class].T
        return out + matrix[:, self.r * K :] @ self.shared_features[rows].T

    def weighted_sums(self, W: Array) -> Array:
        """s(X, W) for weights that add up to zero in each row, as a vector: nothing is left of the shared features."""
        return np.concatenate([(W.T @ self.features).ravel(), np.zeros(self.size - self.r * self.width)])

    @property
    def totalled(self) -> NDArray[np.intp]:
        """Places of the sums of the first class that a pooled or grand target adds up over the classes."""
        return 1 + np.flatnonzero(np.concatenate([part.totalled for part in self.parts]))

    @property
    def class_weights(self) -> Array:
        """The direction that adds the same to all classes' constants: no model depends on it."""
        u = np.zeros(self.size)
        u[: self.r * self.width : self.width] = 1.0
        return u
