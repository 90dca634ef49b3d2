"""Features in which the scores ⟨η, s(x, y)⟩ of an exponential family are linear, and their moments under the model.

With features f(x) = (1, a(x)), for which each class has coefficients of its own, and b(x), for which all classes share
theirs, the statistics are a linear map of (e_y ⊗ f(x), b(x)): conditional likelihood is a logistic regression on a(x),
and the curvature of a joint model follows from moments within the classes.
"""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.columns import summed
from rcpkg.families.portions import rows_at
from rcpkg.families.statistics import Statistics


class InverseMoments(Protocol):
    """M⁻¹ of the second moments M of (e_y ⊗ f(x), b(x)), M_y = p(y) E[f fᵀ | y], for some rows and parameters."""

    prior: Array  # p(y)

    def solve(self, count: Array, by_class: Array, shared: Array) -> tuple[Array, Array, Array]:
        """M⁻¹ of sums: counts, own and shared ones."""

    def kernel(self, y: int, first: Any, second: Any) -> Array:
        """p(y) f(x_i)ᵀ M_y⁻¹ f(x_j) of rows with some ``first`` and some ``second`` numbers."""

    def squares(self) -> Array:
        """The same of each row with itself, shape (r, n)."""


class FeatureMap:
    """k own and l shared features of some encoded rows, and the coordinates of statistics and of η that they give.

    This one is for a family without shared features whose statistics are sums of ``family.features(X)``: the parts
    beside the count, of shape (r, …), side by side. Other families have maps of their own, of four kinds: "minimal",
    without redundancy; "natural", such that the coefficients are the entries of η; "plain", of the rows as they are;
    "conditioned", for a ridge: without redundancy, whitened by the covariance ``pooled`` over the classes and a further
    variance.

    >>> from rcpkg import MultinomialNB
    >>> X = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    >>> model = MultinomialNB().fit(X, ["a", "b"])
    >>> features = model.family_.feature_map(model.family_.encode(X), statistics=model.statistics_)
    >>> features.n, features.n_by_class
    (2, 2)
    """

    n: int  # rows
    n_by_class: int
    n_shared: int = 0
    inverts = False  # whether ``inverse_moments`` are known
    full = False  # whether features are those of Gaussian classes with full covariances
    totalled: NDArray[np.bool_]  # of the own features: whether targets by totals need but their sum over classes
    table: Array | csr_array | None = None  # the own features (n, k), where they are held and not formed anew
    entries: float  # number of own features of all rows that are not zero

    def __init__(self, family: Any, X: Any) -> None:
        self.family = family
        self._hold(family.features(X))
        self.like = family.statistics(rows_at(X, slice(1)), np.zeros((1, len(family.classes_))))
        self.totalled = np.zeros(self.n_by_class, dtype=bool)

    def _hold(self, table: Array | csr_array) -> None:
        self.table = summed(table) if issparse(table) else table
        self.n, self.n_by_class = table.shape
        self.entries = float(table.nnz) if issparse(table) else float(table.size)

    def write(self, index: Any, out: Array) -> None:
        """The own features of some rows, a row a feature (k, n)."""
        X = self.table[index]
        if not issparse(X):
            out[:] = X.T
            return
        out[:] = 0.0
        out[X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))] = X.data

    def features(self) -> tuple[Array, Array]:
        """Own features of all rows, shape (n, k), and shared ones, shape (n, l)."""
        by_class = np.empty((self.n_by_class, self.n))
        self.write(slice(None), by_class)
        return np.ascontiguousarray(by_class.T), np.empty((self.n, 0))

    @cached_property
    def own(self) -> Array:
        """Own features of all rows, shape (n, k)."""
        return self.features()[0]

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        """The entries of statistics that sum own features, shape (r, k), and shared ones, shape (l,)."""
        _, *parts = statistics
        return np.hstack([part.reshape(len(part), -1) for part in parts]), np.empty(0)

    def statistics(self, count: Array, by_class: Array, shared: Array) -> Statistics:
        """The statistics that have these sums: the inverse of ``sums``."""
        (_, *names), (_, *parts) = vars(self.like), self.like
        pieces = np.split(by_class, np.cumsum([part[0].size for part in parts])[:-1], axis=1)
        shaped = {name: piece.reshape(-1, *part.shape[1:]) for name, piece, part in zip(names, pieces, parts)}
        return Statistics(count=count, **shaped)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        """The constants of an η, shape (r,), its coefficients of own features (r, k) and of shared ones (l,)."""
        return natural.count, *self.sums(natural)

    def natural(self, constant: Array, by_class: Array, shared: Array) -> Statistics:
        """The η with these coefficients."""
        return self.statistics(constant, by_class, shared)

    def ridge(self) -> Array:
        """M of shape (k, q): aM are the coefficients of the rows as given, least in norm, with the same scores as a."""
        return np.eye(self.n_by_class)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """Means (r, k + l) and covariances (r, k + l, k + l) of own and shared features within the classes."""
        mean, covariance = self.family.moments(parameters)
        if covariance.ndim == 2:  # of features that are independent
            covariance = covariance[:, :, None] * np.eye(self.n_by_class)
        return mean, covariance

    def whitened(self, parameters: Any) -> tuple[Array, list[csr_array]]:
        """Means of the own features within the classes, shape (r, k), and sparse W_y with W_yᵀ W_y = Cov(a | y)⁻¹."""
        raise NotImplementedError

    def inverse_moments(self, parameters: Any) -> InverseMoments:
        """M⁻¹, where a map ``inverts``."""
        return Whitened(self, parameters)


class Whitened:
    """`InverseMoments` of features a with sparse W_y, W_yᵀ W_y = Cov(a | y)⁻¹.

    With u = W_y (a − E[a | y]) of the rows f(x_i)ᵀ M_y⁻¹ f(x_j) is (1 + ⟨u_i, u_j⟩) / p(y)."""

    def __init__(self, features: FeatureMap, parameters: Any) -> None:
        self.prior = np.exp(parameters.log_prior)
        self.mean, whiteners = features.whitened(parameters)
        self.rows = [(W @ (features.own - mean).T).T for W, mean in zip(whiteners, self.mean)]
        self.whiteners = whiteners, [W.T for W in whiteners]

    def solve(self, count: Array, by_class: Array, shared: Array) -> tuple[Array, Array, Array]:
        about = (by_class - count[:, None] * self.mean) / self.prior[:, None]
        own = np.array([transposed @ (W @ sums) for W, transposed, sums in zip(*self.whiteners, about)])
        return count / self.prior - (self.mean * own).sum(axis=1), own, shared

    def kernel(self, y: int, first: Any, second: Any) -> Array:
        K = self.rows[y][first] @ self.rows[y][second].T
        K += 1
        return K

    def squares(self) -> Array:
        return 1 + np.array([np.einsum("ik,ik->i", rows, rows) for rows in self.rows])


class ProductFeatures(FeatureMap):
    """Features of conditionally independent blocks: first the own ones of all blocks, then the shared ones."""

    def __init__(self, maps: list[FeatureMap], names: list[str]) -> None:
        self.maps, self.names, self.n = maps, names, maps[0].n
        self.n_by_class, self.n_shared = sum(m.n_by_class for m in maps), sum(m.n_shared for m in maps)
        self.totalled = np.concatenate([m.totalled for m in maps])
        self.ends = np.cumsum([m.n_by_class for m in maps])[:-1], np.cumsum([m.n_shared for m in maps])[:-1]
        self.entries, self.inverts = float(self.n * self.n_by_class), all(m.inverts and not m.n_shared for m in maps)
        if len(maps) == 1:
            self.table, self.entries = maps[0].table, maps[0].entries

    def write(self, index: Any, out: Array) -> None:
        for m, piece in zip(self.maps, np.split(out, self.ends[0])):
            m.write(index, piece)

    def features(self) -> tuple[Array, Array]:
        by_class, shared = zip(*(m.features() for m in self.maps))
        return np.hstack(by_class), np.hstack(shared)

    def _pieces(self, by_class: Array, shared: Array) -> zip:
        return zip(np.split(by_class, self.ends[0], axis=1), np.split(shared, self.ends[1]))

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        by_class, shared = zip(*(m.sums(block) for m, block in zip(self.maps, statistics)))
        return np.hstack(by_class), np.concatenate(shared)

    def statistics(self, count: Array, by_class: Array, shared: Array) -> Statistics:
        blocks = [m.statistics(count, *piece) for m, piece in zip(self.maps, self._pieces(by_class, shared))]
        return Statistics(**dict(zip(self.names, blocks)))

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        constants, by_class, shared = zip(*(m.coefficients(block) for m, block in zip(self.maps, natural)))
        return np.sum(constants, axis=0), np.hstack(by_class), np.concatenate(shared)

    def natural(self, constant: Array, by_class: Array, shared: Array) -> Statistics:
        """The constants go to the first block."""
        blocks = []
        for m, piece in zip(self.maps, self._pieces(by_class, shared)):
            blocks.append(m.natural(constant, *piece))
            constant = np.zeros(len(constant))
        return Statistics(**dict(zip(self.names, blocks)))

    def ridge(self) -> Array:
        return block_diag(*(m.ridge() for m in self.maps))

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        r, K = len(parameters.log_prior), self.n_by_class + self.n_shared
        mean, covariance, first, later = np.empty((r, K)), np.zeros((r, K, K)), 0, self.n_by_class
        for m, block in zip(self.maps, parameters.blocks):
            places = np.r_[first : first + m.n_by_class, later : later + m.n_shared]
            first, later = first + m.n_by_class, later + m.n_shared
            mean[:, places], covariance[:, places[:, None], places] = m.moments(block)
        return mean, covariance

    def inverse_moments(self, parameters: Any) -> InverseMoments:
        return OfBlocks(self, parameters)


class OfBlocks:
    """`InverseMoments` of conditionally independent blocks without shared features: what each adds to 1 / p(y)."""

    def __init__(self, features: ProductFeatures, parameters: Any) -> None:
        self.map, self.prior = features, np.exp(parameters.log_prior)
        blocks = [block._replace(log_prior=parameters.log_prior) for block in parameters.blocks]
        self.parts = [m.inverse_moments(block) for m, block in zip(features.maps, blocks)]

    def solve(self, count: Array, by_class: Array, shared: Array) -> tuple[Array, Array, Array]:
        pieces = zip(self.parts, self.map._pieces(by_class, shared))
        constants, own, _ = zip(*(part.solve(count, *piece) for part, piece in pieces))
        return np.sum(constants, axis=0) - (len(constants) - 1) * count / self.prior, np.hstack(own), shared

    def kernel(self, y: int, first: Any, second: Any) -> Array:
        K = sum(part.kernel(y, first, second) for part in self.parts)
        K -= len(self.parts) - 1
        return K

    def squares(self) -> Array:
        return sum(part.squares() for part in self.parts) - (len(self.parts) - 1)
