"""Features φ(x), the same for every class, in which the scores of a model are linear: B_y · φ(x), with φ_0 = 1.

Those of a Gaussian model are monomials of the features of the rows, those of counts the counts themselves. They are
formed once where they fit in `CACHE`, and anew in each pass otherwise: dense, sparse or as codes of joint states.
"""

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.families import FeatureMap, Statistics
from rcpkg.linalg import slices

BLOCK_ENTRIES = 2**18  # of features in a block: 2 MB, which the second cache holds
LEAST_BLOCK, LARGEST_BLOCK = 512, 16384  # rows
LARGEST_JOINT_BLOCK = 65536  # rows
USUAL_ROWS = 1000  # from which the usual size of a feature is taken
SPARSE_FROM = 6  # entries for each one that is not zero: from there on sparse products are faster than dense ones
LARGEST_JOINT_GRAM = 2**18  # rows, where two groups are read together
LARGEST_TABLE = 4096  # joint states of a group, whose table the first cache holds
LARGEST_OF_PAIR = 256  # and of each of two groups, whose joint table the second cache holds
ROWS_OF_STATE = 4  # rows for each joint state, at least: tables are made anew in each pass
CACHE = 1000.0  # megabytes that the features of all rows may take; beyond, they are formed anew in each pass


class PassCosts(NamedTuple):
    """What a pass over the rows takes, in multiplications: counts of numpy and scipy, on no data set."""

    reading: float = 6.0  # of an entry of a dense block, for all classes together
    sparse: float = 25.0  # of an entry of a sparse block that is not zero, likewise
    look_up: float = 24.0  # of a code of a row, for each class
    table: float = 1.5e5  # of making a table of joint states, once a pass
    product: float = 0.5  # of an entry of a symmetric matrix product, which BLAS has faster than others
    scaling: float = 30.0  # of a feature that is weighted
    pair: float = 50.0  # of a row's entry in the table of two groups


PASS = PassCosts()


class JointCodes(NamedTuple):
    """Indicators of categories by tables of joint states: ``codes`` of shape (groups, n).

    A row has one indicator of one for each feature. Neighbouring features of few states are read together: a group has
    a code for each joint state, and a table of the sums of coefficients that these give, so that a score is a look-up
    for each group. ``groups`` has the columns of the states of each feature; ``kept`` ones have coefficients.
    """

    groups: list[list[slice]]
    codes: NDArray[np.intp]
    kept: NDArray[np.intp]

    def take(self, index: slice | NDArray[np.intp]) -> "JointCodes":
        """Some of the rows."""
        return self._replace(codes=np.ascontiguousarray(self.codes[:, index]))

    def scores(self, B: Array) -> Array:
        """Bφ, shape (r, n), with the constant for φ_0."""
        cells = np.zeros((len(B), self.groups[-1][-1].stop))
        cells[:, self.kept] = B[:, 1:]
        scores = np.empty((len(B), self.codes.shape[1]))
        for g, (group, code) in enumerate(zip(self.groups, self.codes)):
            table = np.zeros((len(B), 1)) if g else B[:, :1]
            for columns in group:
                table = (table[:, :, None] + cells[:, None, columns]).reshape(len(B), -1)
            for row, entries in zip(scores, table):
                if g:
                    row += entries.take(code)
                else:
                    entries.take(code, out=row, mode="clip")
        return scores

    def moments(self, W: Array) -> Array:
        """Σ_i W_yi φ(x_i), shape (r, p): sums over the rows of each joint state, added up."""
        cells = np.empty((len(W), self.groups[-1][-1].stop))
        for group, code in zip(self.groups, self.codes):
            sizes = [columns.stop - columns.start for columns in group]
            sums = np.array([np.bincount(code, row, int(np.prod(sizes))) for row in W])
            for columns, size in zip(group[::-1], sizes[::-1]):
                sums = sums.reshape(len(W), -1, size)
                cells[:, columns] = sums.sum(axis=1)
                sums = sums.sum(axis=2)
        return np.hstack([W.sum(axis=1, keepdims=True), cells[:, self.kept]])

    def gram(self, weight: Array) -> Array:
        """Σ_i w_i φ(x_i) φ(x_i)ᵀ, shape (p, p): sums over the rows of each joint state of two groups, added up."""
        cells = np.empty((self.groups[-1][-1].stop,) * 2)
        columns, states = zip(*map(states_of, self.groups))
        for a, of_a in enumerate(states):
            sums = np.bincount(self.codes[a], weight, len(of_a))
            cells[columns[a], columns[a]] = of_a.T @ (sums[:, None] * of_a)
            for b, of_b in enumerate(states[:a]):
                code = self.codes[a] * len(of_b)
                code += self.codes[b]
                sums = np.bincount(code, weight, len(of_a) * len(of_b)).reshape(len(of_a), -1)
                cells[columns[a], columns[b]] = of_a.T @ sums @ of_b
                cells[columns[b], columns[a]] = cells[columns[a], columns[b]].T
        G = np.empty((1 + len(self.kept),) * 2)
        G[0, 0], G[1:, 1:] = weight.sum(), cells[np.ix_(self.kept, self.kept)]
        G[0, 1:] = G[1:, 0] = G.diagonal()[1:]
        return G


FeatureBlock = Array | csr_array | JointCodes


def states_of(group: list[slice]) -> tuple[slice, Array]:
    """The columns of a group, and which of them are one in each of its joint states."""
    sizes, first = [columns.stop - columns.start for columns in group], group[0].start
    ones = np.zeros((int(np.prod(sizes)), group[-1].stop - first))
    for columns, of_feature in zip(group, np.unravel_index(np.arange(len(ones)), sizes)):
        ones[np.arange(len(ones)), columns.start - first + of_feature] = 1.0
    return slice(first, group[-1].stop), ones


def groups_of(n_states: NDArray[np.intp], n: int, largest: int = LARGEST_TABLE) -> list[list[slice]]:
    """Groups as large as tables for n rows may be, of at most so many joint states where features are several."""
    groups, size, end = [], np.inf, 0
    for states in n_states.tolist():
        if size * states > min(largest, n // ROWS_OF_STATE):
            groups.append([])
            size = 1
        groups[-1].append(slice(end, end + states))
        size, end = size * states, end + states
    return groups


def joint_codes(ones: NDArray[np.integer], groups: list[list[slice]], kept: NDArray[np.intp]) -> JointCodes:
    """Those of rows with ``ones``, shape (d, n), in these columns."""
    codes, features = np.zeros((len(groups), ones.shape[1]), dtype=np.intp), iter(ones)
    for group, code in zip(groups, codes):
        for columns in group:
            code *= columns.stop - columns.start
            code += next(features)
            code -= columns.start
    return JointCodes(groups, codes, kept)


class Features:
    """Features φ of rows, in blocks, and η as their coefficients B of shape (r, p) and back: those of a ``map``, see
    `FeatureMap` for its kinds.

    A pass takes ``work`` multiplications for the score of a row in a class, or what takes as long, but for the time to
    read a dense block; the products of all features with each other take ``gram_work`` a row.
    """

    def __init__(self, feature_map: FeatureMap, n_classes: int) -> None:
        self.map, self.n, self.width = feature_map, feature_map.n, 1 + feature_map.own
        self.index: NDArray[np.intp] | None = None  # of the rows, if they are not all
        self._choose_form(n_classes - 1)
        self._choose_gram()
        self._keep(CACHE)

    def _choose_form(self, k: int) -> None:
        """Dense, sparse, or by joint codes: what takes least time."""
        indicators, nonzero = self.map.indicators, self.map.entries
        self.sparse, self.joint, self.work = False, None, float(self.width)
        self.block_rows = int(np.clip(BLOCK_ENTRIES // self.width, LEAST_BLOCK, LARGEST_BLOCK))
        self.entries = float(self.width * self.n)
        cost = self.width * (1 + PASS.reading / k)
        if self.n * self.map.own > SPARSE_FROM * nonzero:
            self.sparse, self.block_rows = True, LARGEST_BLOCK
            self.entries, self.work = 1.5 * nonzero, 4.0 * nonzero / self.n
            cost = PASS.sparse / k * nonzero / self.n
        if indicators is not None:
            groups = groups_of(indicators.n_states, self.n)
            tables = len(groups)
            if tables * (PASS.look_up + PASS.table / self.n) < cost:
                self.joint = joint_codes(indicators.columns, groups, indicators.kept)
                self.sparse, self.block_rows = False, LARGEST_JOINT_BLOCK
                self.entries, self.work = tables * self.n, PASS.look_up * tables

    def _choose_gram(self) -> None:
        """Dense, or by joint codes of small groups."""
        self.pairs: list[list[slice]] = []
        self.gram_work = PASS.product * self.width**2 + PASS.scaling * self.width
        if self.map.indicators is None:
            return
        pairs = groups_of(self.map.indicators.n_states, self.n, LARGEST_OF_PAIR)
        joint_states = sum(int(np.prod([columns.stop - columns.start for columns in group])) for group in pairs)
        adding_up = 0.5 * joint_states**2 * self.width / len(pairs)
        work = 0.5 * len(pairs) * (len(pairs) + 1) * PASS.pair + adding_up / self.n
        if work < self.gram_work:
            self.pairs, self.gram_work = pairs, work

    @cached_property
    def _pair_codes(self) -> JointCodes:
        return joint_codes(self.map.indicators.columns, self.pairs, self.map.indicators.kept)

    def _keep(self, megabytes: float) -> None:
        self.slices = slices(self.n, self.block_rows)
        self.cached = [self.block(rows) for rows in self.slices] if 8e-6 * self.entries <= megabytes else None

    def take(self, index: NDArray[np.intp]) -> "Features":
        """Those of some of the rows, formed once."""
        part = copy(self)
        part.n, part.index = len(index), self._places(index)
        part._keep(np.inf)
        return part

    def _places(self, index: Any) -> Any:
        return index if self.index is None else self.index[index]

    def block(self, index: Any) -> FeatureBlock:
        """φ of some rows: dense, (p, n), sparse and without the constant, (n, p − 1), or by joint codes."""
        if self.joint is not None:
            return self.joint.take(self._places(index))
        return self.map.table[self._places(index)] if self.sparse else self.dense(index)

    def dense(self, index: Any) -> Array:
        """φ of some rows, (p, n)."""
        n = len(range(*index.indices(self.n))) if isinstance(index, slice) else len(index)
        out = np.empty((self.width, n))
        out[0] = 1.0
        self.map.write(self._places(index), out[1:])
        return out

    def blocks(self) -> Iterator[tuple[slice, FeatureBlock]]:
        """All rows, block by block."""
        yield from zip(self.slices, self.cached or map(self.block, self.slices))

    def gram_blocks(self) -> Iterator[tuple[slice, Array | JointCodes]]:
        """All rows, block by block, for `gram`: dense and small enough for the cache, or by joint codes."""
        if self.pairs:
            for rows in slices(self.n, LARGEST_JOINT_GRAM):
                yield rows, self._pair_codes.take(self._places(rows))
            return
        for rows, block in self.blocks():
            if isinstance(block, np.ndarray):
                yield rows, block
                continue
            size = max(BLOCK_ENTRIES // self.width, LEAST_BLOCK)
            for start in range(rows.start, rows.stop, size):
                part = slice(start, min(start + size, rows.stop))
                yield part, self.dense(part)

    def usual_squares(self) -> Array:
        """Mean of φ_j² over the rows where φ_j is not zero, of about `USUAL_ROWS` rows; 1 where it always is."""
        some = self.dense(np.arange(0, self.n, -(-self.n // USUAL_ROWS)))
        total, number = np.einsum("ij,ij->i", some, some), np.count_nonzero(some, axis=1)
        return np.divide(total, number, out=np.ones(self.width), where=number > 0)

    def coefficients(self, natural: Statistics) -> Array:
        """B of an η."""
        constant, own, _ = self.map.coefficients(natural)
        return np.hstack([constant[:, None], own])

    def natural(self, B: Array, like: Statistics) -> Statistics:
        """An η of these coefficients; what the posteriors do not depend on is that of ``like``."""
        return self.map.natural(B[:, 0], B[:, 1:], self.map.coefficients(like)[2])

    def ridge(self) -> Array:
        """M of shape (p, q): BM are the slopes of the rows as given, least in norm, with the same scores as B."""
        M = self.map.ridge()
        return np.vstack([np.zeros((1, M.shape[1])), M])


def products(B: Array, block: FeatureBlock) -> Array:
    """Scores Bφ of a block, shape (r, n)."""
    if isinstance(block, JointCodes):
        return block.scores(B)
    if issparse(block):
        return np.ascontiguousarray((block @ B[:, 1:].T).T) + B[:, :1]
    return B @ block


def moments(W: Array, block: FeatureBlock) -> Array:
    """Σ_i W_yi φ(x_i) of a block, shape (r, p)."""
    if isinstance(block, JointCodes):
        return block.moments(W)
    if issparse(block):
        return np.hstack([W.sum(axis=1, keepdims=True), (block.T @ np.ascontiguousarray(W.T)).T])
    return W @ block.T


def gram(block: Array | JointCodes, weight: Array, space: Array | None = None) -> Array:
    """Σ_i w_i φ(x_i) φ(x_i)ᵀ, w ≥ 0, with ``space`` for what is the size of a dense block."""
    if isinstance(block, JointCodes):
        return block.gram(weight)
    root = np.multiply(block, np.sqrt(weight), out=space)
    return root @ root.T


def squared(block: FeatureBlock) -> FeatureBlock:
    """The squares of the features of a block."""
    if isinstance(block, JointCodes):
        return block  # of zeros and ones
    return block.multiply(block) if issparse(block) else block * block
