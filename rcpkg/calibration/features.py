"""Features φ(x), the same for every class, in which the scores of a model are linear: B_y · φ(x), with φ_0 = 1.

They make conditional likelihood a multinomial logistic regression. Those of a Gaussian model are monomials of the
features of the rows, those of counts the counts themselves. They are formed once where they fit in a stated memory,
and anew in each pass otherwise: dense, sparse or, for categories, as codes of joint states, whichever is faster.
"""

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.calibration.joint_codes import JointCodes, groups_of, joint_codes
from rcpkg.families import BernoulliNB, CategoricalNB, ConjugateClassifier, ProductModel, Statistics
from rcpkg.families.counts import CountModel
from rcpkg.families.gaussian import GaussianClassifier
from rcpkg.families.gaussian_full import FullGaussian

BLOCK_ENTRIES = 2**18  # of features in a block: 2 MB, which the second cache holds
LEAST_BLOCK, LARGEST_BLOCK = 512, 16384  # rows
LARGEST_JOINT_BLOCK = 65536  # rows
READING, LOOK_UP, TABLE, SPARSE_PRODUCT = 6.0, 24.0, 1.5e5, 25.0  # in multiplications, of a row
USUAL_ROWS = 1000  # from which the usual size of a feature is taken
SPARSE_FROM = 6  # entries for each one that is not zero: from there on sparse products are faster than dense ones


class Part(Protocol):
    """Features of a model, without the constant one."""

    width: int

    def write(self, index: Any, out: Array) -> None:
        """The features of some rows, a row a feature (width, n)."""

    def coefficients(self, natural: Statistics) -> tuple[Array, Array]:
        """What η adds to the constant, shape (r,), and the coefficients of the features, shape (r, width)."""

    def natural(self, constant: Array, slopes: Array, like: Statistics) -> Statistics:
        """An η with these coefficients; what the posteriors do not depend on is that of ``like``."""

    def ridge(self) -> Array:
        """M of shape (width, q): bM are the slopes of the rows as given, least in norm, with the same scores as b."""


class Monomials:
    """Features of a Gaussian model: those of x, and their squares or products where the classes do not share them.

    With ``centre`` c and ``factor`` T they are those of x̃ = Tᵀ(x − c); T is a matrix or, for independent features,
    a vector. η itself is about ``origin``.
    """

    def __init__(self, model: GaussianClassifier, X: Array, centre: Array | float, factor: Array | None) -> None:
        self.origin = np.broadcast_to(model._origin, X.shape[1])
        self.shift = self.origin - centre  # x − c = (x − origin) + shift
        self.factor, self.full, self.shared = factor, isinstance(model, FullGaussian), model._shared
        moved = X - centre
        if factor is not None:
            moved = moved @ factor if self.full else moved * factor
        self.x = np.ascontiguousarray(moved.T)
        d = len(self.x)
        self.upper = np.triu_indices(d)
        self.width = d if self.shared else d + (len(self.upper[0]) if self.full else d)

    def write(self, index: Any, out: Array) -> None:
        x = self.x[:, index]
        d = len(x)
        out[:d] = x
        if self.shared:
            return
        if not self.full:
            np.multiply(x, x, out=out[d:])
            return
        start = d
        for j in range(d):
            np.multiply(x[j], x[j:], out=out[start : start + d - j])
            start += d - j

    def coefficients(self, natural: Statistics) -> tuple[Array, Array]:
        first, o = natural.first, self.shift
        if self.shared:
            return natural.count - first @ o, self._pulled(first)
        second = natural.second
        if self.full:
            moved = second @ o
            count = natural.count - first @ o + moved @ o
            first = self._pulled(first - 2 * moved)
            if self.factor is not None:
                second = _solved(self.factor, _solved(self.factor, second).swapaxes(1, 2))
            weight = np.where(self.upper[0] == self.upper[1], 1.0, 2.0)
            return count, np.hstack([first, second[:, self.upper[0], self.upper[1]] * weight])
        count = natural.count - first @ o + second @ o**2
        first = self._pulled(first - 2 * second * o)
        return count, np.hstack([first, second if self.factor is None else second / self.factor**2])

    def _pulled(self, first: Array) -> Array:
        """Coefficients of x̃ from those of x − c."""
        if self.factor is None:
            return first
        return _solved(self.factor, first[..., None])[..., 0] if self.full else first / self.factor

    def natural(self, constant: Array, slopes: Array, like: Statistics) -> Statistics:
        d, o = len(self.x), self.shift
        first, second = slopes[:, :d], like.second
        if self.factor is not None:
            first = first @ self.factor.T if self.full else first * self.factor
        count = constant + first @ o
        if self.shared:
            return Statistics(count=count, first=first, second=second)
        if self.full:
            second = np.empty((len(slopes), d, d))
            weight = np.where(self.upper[0] == self.upper[1], 1.0, 0.5)
            second[:, self.upper[0], self.upper[1]] = slopes[:, d:] * weight
            second[:, self.upper[1], self.upper[0]] = slopes[:, d:] * weight
            if self.factor is not None:
                second = self.factor @ second @ self.factor.T
            moved = second @ o
            return Statistics(count=count + moved @ o, first=first + 2 * moved, second=second)
        second = slopes[:, d:] if self.factor is None else slopes[:, d:] * self.factor**2
        return Statistics(count=count + second @ o**2, first=first + 2 * second * o, second=second)

    def ridge(self) -> Array:
        as_given = copy(self)
        as_given.shift, as_given.factor = self.origin, None
        natural = self.natural(np.zeros(self.width), np.eye(self.width), Statistics(second=0.0))
        _, slopes = as_given.coefficients(natural)
        return slopes


def _solved(factor: Array, columns: Array) -> Array:
    """T⁻¹ M for each matrix M of a stack."""
    return np.linalg.solve(factor[None], columns)


class Counts:
    """Features of what is counted: the columns of the encoded rows."""

    def __init__(self, X: Array | csr_array) -> None:
        self.dense = True
        if issparse(X):
            X = X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self.dense = bool(np.prod(X.shape, dtype=float) <= SPARSE_FROM * X.nnz)
        self.X, self.width = X, X.shape[1]

    def write(self, index: Any, out: Array) -> None:
        X = self.X[index]
        if not issparse(X):
            out[:] = X.T
            return
        out[:] = 0.0
        out[X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))] = X.data

    def coefficients(self, natural: Statistics) -> tuple[Array, Array]:
        return natural.count, natural.cells

    def natural(self, constant: Array, slopes: Array, like: Statistics) -> Statistics:
        return Statistics(count=constant, cells=slopes)

    def ridge(self) -> Array:
        return np.eye(self.width)


class Indicators(Counts):
    """Features of categories, for rows that lack none: indicators of all states or, if it ``drops`` one, of all but the
    most frequent of each feature.

    A dropped column is the sum of the others of its feature, taken from one: its coefficient is part of the constant
    and of those.
    """

    def __init__(self, X: csr_array, n_states: NDArray[np.intp], drops: bool) -> None:
        n, K = X.shape
        self.rows, self.n_states, self.groups = X, n_states, np.repeat(np.arange(len(n_states)), n_states)
        self.columns = np.ascontiguousarray(X.indices.reshape(n, -1).T)  # of the ones, a row a feature
        self.dropped, entries = np.empty(0, dtype=np.intp), X.nnz
        if drops:
            counts, starts = np.bincount(X.indices, minlength=K), np.cumsum(n_states) - n_states
            self.dropped = starts + [of_feature.argmax() for of_feature in np.split(counts, starts[1:])]
            entries -= counts[self.dropped].sum()
        self.kept = np.setdiff1d(np.arange(K), self.dropped)
        self.width = len(self.kept)
        self.dense = bool(n * self.width <= SPARSE_FROM * entries)

    @cached_property
    def X(self) -> csr_array:  # type: ignore[override]
        """The columns kept, sparse."""
        return self.rows[:, self.kept]

    def joint(self) -> JointCodes:
        """The rows by their joint states."""
        return joint_codes(self.columns, groups_of(self.n_states, self.columns.shape[1]), self.kept)

    def write(self, index: Any, out: Array) -> None:
        np.equal(self.columns[:, index][self.groups[self.kept]], self.kept[:, None], out=out)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array]:
        cells = natural.cells
        if not len(self.dropped):
            return natural.count, cells
        reference = cells[:, self.dropped]
        return natural.count + reference.sum(axis=1), cells[:, self.kept] - reference[:, self.groups[self.kept]]

    def natural(self, constant: Array, slopes: Array, like: Statistics) -> Statistics:
        cells = np.zeros_like(like.cells)
        cells[:, self.kept] = slopes
        return Statistics(count=constant, cells=cells)

    def ridge(self) -> Array:
        """b_v − b̄ for each feature whose most frequent state is dropped, since the constant is free."""
        M = np.eye(len(self.groups))
        if len(self.dropped):
            M -= np.equal.outer(self.groups, self.groups) / self.n_states[self.groups]
        return M[self.kept]


class Ones(Counts):
    """Features of binary ones: the entries that are one; their states zero have the coefficient zero."""

    def __init__(self, X: tuple[csr_array, csr_array]) -> None:
        super().__init__(X[0])

    def coefficients(self, natural: Statistics) -> tuple[Array, Array]:
        zero, one = natural.cells[:, ::2], natural.cells[:, 1::2]
        return natural.count + zero.sum(axis=1), one - zero

    def natural(self, constant: Array, slopes: Array, like: Statistics) -> Statistics:
        cells = np.zeros_like(like.cells)
        cells[:, 1::2] = slopes
        return Statistics(count=constant, cells=cells)


def part_of(model: ConjugateClassifier, X: Any, kind: str, pooled: Any) -> Part:
    """The features of a model that is not a product; `has_features` says whether there are any."""
    if isinstance(model, GaussianClassifier):
        if kind == "plain":
            return Monomials(model, model.encode(X), 0.0, None)
        A = pooled.whitener if kind == "conditioned" else None
        if A is not None:
            A = A if A.ndim == (2 if isinstance(model, FullGaussian) else 1) else A[0]
            A = A.T if A.ndim == 2 else A
        return Monomials(model, model.encode(X), model._origin, A)
    if isinstance(model, BernoulliNB):
        return Ones(X)
    if kind == "natural" or type(model) is not CategoricalNB or X.nnz < X.shape[0] * len(model.n_states_):
        return Counts(X)
    return Indicators(X, model.n_states_, drops=kind == "conditioned")


def has_features(model: ConjugateClassifier) -> bool:
    """Whether the scores of the model are known to be linear in `Features`."""
    if isinstance(model, ProductModel):
        return all(map(has_features, model.models_))
    linear = isinstance(model, BernoulliNB) or type(model).scores is CountModel.scores
    return isinstance(model, GaussianClassifier) or linear


class Features:
    """Features of encoded rows, in blocks, and η as their coefficients B of shape (r, p) and back.

    ``plain``: those of the rows as they are, about zero and with all states, as scikit-learn's `PolynomialFeatures`
    and `OneHotEncoder` make them; ``natural``: such as make the coefficients those of η; otherwise such as are well
    conditioned, with independent indicators.
    """

    def __init__(self, model: ConjugateClassifier, X: Any, kind: str, pooled: Any, cache_size: float) -> None:
        product = isinstance(model, ProductModel)
        self.nested = product
        models, encoded = (model.models_, X) if product else ([model], [X])
        whiteners = pooled.blocks if product and kind == "conditioned" else [pooled] * len(models)
        self.parts = [part_of(m, x, kind, p) for m, x, p in zip(models, encoded, whiteners)]
        self.n = _n_rows(encoded[0])
        self.width = 1 + sum(part.width for part in self.parts)
        self._choose_form(len(models[0].classes_))
        self.slices = [slice(start, min(start + self.size, self.n)) for start in range(0, self.n, self.size)]
        self.cached = [self.block(rows) for rows in self.slices] if 8e-6 * self.entries <= cache_size else None

    def _choose_form(self, r: int) -> None:
        """Dense, sparse, or by joint codes: what takes least time; ``work`` are multiplications of a score of a class,
        or what takes as long, but for the time to read a dense block."""
        part, k = self.parts[0], r - 1
        self.sparse, self.joint, self.work = False, None, float(self.width)
        self.size = int(np.clip(BLOCK_ENTRIES // self.width, LEAST_BLOCK, LARGEST_BLOCK))
        self.entries = float(self.width * self.n)
        if len(self.parts) > 1 or not isinstance(part, Counts):
            return
        cost = self.width * (1 + READING / k)
        if not part.dense:
            self.sparse, self.size = True, LARGEST_BLOCK
            self.entries, self.work = 1.5 * part.X.nnz, 4.0 * part.X.nnz / self.n
            cost = SPARSE_PRODUCT / k * part.X.nnz / self.n
        if isinstance(part, Indicators):
            tables = len(groups_of(part.n_states, self.n).starts)
            if tables * (LOOK_UP + TABLE / self.n) < cost:
                self.sparse, self.joint, self.size = False, part.joint(), LARGEST_JOINT_BLOCK
                self.entries, self.work = tables * self.n, LOOK_UP * tables

    def block(self, index: Any) -> Array | csr_array | JointCodes:
        """φ of some rows: dense, (p, n), sparse and without the constant, (n, p − 1), or by joint codes."""
        if self.joint is not None:
            return self.joint.take(index)
        return self.parts[0].X[index] if self.sparse else self.dense(index)

    def dense(self, index: Any) -> Array:
        """φ of some rows, (p, n)."""
        n = len(range(*index.indices(self.n))) if isinstance(index, slice) else len(index)
        out = np.empty((self.width, n))
        out[0], start = 1.0, 1
        for part in self.parts:
            part.write(index, out[start : start + part.width])
            start += part.width
        return out

    def blocks(self) -> Iterator[tuple[slice, Array | csr_array | JointCodes]]:
        """All rows, block by block."""
        yield from zip(self.slices, self.cached or map(self.block, self.slices))

    def coefficients(self, natural: Statistics) -> Array:
        """B of an η."""
        found = [part.coefficients(eta) for part, eta in zip(self.parts, natural if self.nested else [natural])]
        return np.hstack([sum(constant for constant, _ in found)[:, None], *(slopes for _, slopes in found)])

    def natural(self, B: Array, like: Statistics) -> Statistics:
        """An η of these coefficients; what the posteriors do not depend on is that of ``like``."""
        parts, start, constant = [], 1, B[:, 0]
        for part, eta in zip(self.parts, like if self.nested else [like]):
            parts.append(part.natural(constant, B[:, start : start + part.width], eta))
            start, constant = start + part.width, np.zeros(len(B))
        return Statistics(**dict(zip(vars(like), parts))) if self.nested else parts[0]

    def ridge(self) -> Array:
        """M of shape (p, q): BM are the slopes of the rows as given, least in norm, with the same scores as B."""
        return block_diag(np.empty((1, 0)), *(part.ridge() for part in self.parts))


class Sample:
    """Features of some of the rows, formed once."""

    def __init__(self, features: "Features | Sample", index: NDArray[np.intp]) -> None:
        self.n, self.width, self.size, self.work = len(index), features.width, features.size, features.work
        self.features, self.index = features, index
        slices = [slice(start, min(start + self.size, self.n)) for start in range(0, self.n, self.size)]
        self.cached = [(rows, self.block(rows)) for rows in slices]

    def block(self, index: Any) -> Array | csr_array | JointCodes:
        """φ of some of these rows."""
        return self.features.block(self.index[index])

    def dense(self, index: Any) -> Array:
        """φ of some of these rows, (p, n)."""
        return self.features.dense(self.index[index])

    def blocks(self) -> Iterator[tuple[slice, Array | csr_array | JointCodes]]:
        """The rows, block by block."""
        yield from self.cached


def dense_blocks(features: Features | Sample) -> Iterator[tuple[slice, Array]]:
    """All rows, block by block, dense and small enough for the cache."""
    for rows, block in features.blocks():
        if isinstance(block, np.ndarray):
            yield rows, block
            continue
        size = max(BLOCK_ENTRIES // features.width, LEAST_BLOCK)
        for start in range(rows.start, rows.stop, size):
            part = slice(start, min(start + size, rows.stop))
            yield part, features.dense(part)


def usual_squares(features: Features | Sample) -> Array:
    """Mean of φ_j² over the rows where φ_j is not zero, of about `USUAL_ROWS` rows; 1 where it always is."""
    some = features.dense(np.arange(0, features.n, -(-features.n // USUAL_ROWS)))
    total, number = np.einsum("ij,ij->i", some, some), np.count_nonzero(some, axis=1)
    return np.divide(total, number, out=np.ones(features.width), where=number > 0)


def products(B: Array, block: Array | csr_array | JointCodes) -> Array:
    """Scores Bφ of a block, shape (r, n)."""
    if isinstance(block, JointCodes):
        return block.scores(B)
    if issparse(block):
        return np.ascontiguousarray((block @ B[:, 1:].T).T) + B[:, :1]
    return B @ block


def moments(W: Array, block: Array | csr_array | JointCodes) -> Array:
    """Σ_i W_yi φ(x_i) of a block, shape (r, p)."""
    if isinstance(block, JointCodes):
        return block.moments(W)
    if issparse(block):
        return np.hstack([W.sum(axis=1, keepdims=True), (block.T @ np.ascontiguousarray(W.T)).T])
    return W @ block.T


def squared(block: Array | csr_array | JointCodes) -> Array | csr_array | JointCodes:
    """The squares of the features of a block."""
    if isinstance(block, JointCodes):
        return block  # of zeros and ones
    return block.multiply(block) if issparse(block) else block * block


def _n_rows(X: Any) -> int:
    return X[0].shape[0] if isinstance(X, tuple) else X.shape[0]
