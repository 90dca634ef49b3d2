"""Features φ(x), the same for every class, in which the scores of a model are linear: B_y · φ(x), with φ_0 = 1.

They make conditional likelihood a multinomial logistic regression. Those of a Gaussian model are monomials of the
features of the rows, those of counts the counts themselves. They are formed once where they fit in a stated memory,
and anew in each pass otherwise: dense, sparse or, for categories, as codes of joint states, whichever is faster.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.calibration.joint_codes import JointCodes, groups_of, joint_codes
from rcpkg.families import ConjugateClassifier, Statistics, can
from rcpkg.linalg import slices

BLOCK_ENTRIES = 2**18  # of features in a block: 2 MB, which the second cache holds
LEAST_BLOCK, LARGEST_BLOCK = 512, 16384  # rows
LARGEST_JOINT_BLOCK = 65536  # rows
READING, LOOK_UP, TABLE, SPARSE_PRODUCT = 6.0, 24.0, 1.5e5, 25.0  # in multiplications, of a row
USUAL_ROWS = 1000  # from which the usual size of a feature is taken
SPARSE_FROM = 6  # entries for each one that is not zero: from there on sparse products are faster than dense ones


def has_features(model: ConjugateClassifier) -> bool:
    """Whether the scores of the model are known to be linear in `Features`."""
    return can(model, "l2")


class Features:
    """Features of encoded rows, in blocks, and η as their coefficients B of shape (r, p) and back.

    ``plain``: those of the rows as they are, about zero and with all states, as scikit-learn's `PolynomialFeatures`
    and `OneHotEncoder` make them; ``natural``: such as make the coefficients those of η; otherwise such as are well
    conditioned, with independent indicators.
    """

    def __init__(self, model: ConjugateClassifier, X: Any, kind: str, pooled: Any, cache_size: float) -> None:
        self.map = model.feature_map(X, kind, pooled=pooled)
        self.n, self.width = self.map.n, 1 + self.map.own
        self._choose_form(len(model.classes_))
        self.slices = slices(self.n, self.size)
        self.cached = [self.block(rows) for rows in self.slices] if 8e-6 * self.entries <= cache_size else None

    def _choose_form(self, r: int) -> None:
        """Dense, sparse, or by joint codes: what takes least time; ``work`` are multiplications of a score of a class,
        or what takes as long, but for the time to read a dense block."""
        indicators, nonzero, k = self.map.indicators, self.map.entries, r - 1
        self.sparse, self.joint, self.work = False, None, float(self.width)
        self.size = int(np.clip(BLOCK_ENTRIES // self.width, LEAST_BLOCK, LARGEST_BLOCK))
        self.entries = float(self.width * self.n)
        cost = self.width * (1 + READING / k)
        if self.n * self.map.own > SPARSE_FROM * nonzero:
            self.sparse, self.size = True, LARGEST_BLOCK
            self.entries, self.work = 1.5 * nonzero, 4.0 * nonzero / self.n
            cost = SPARSE_PRODUCT / k * nonzero / self.n
        if indicators is not None:
            groups = groups_of(indicators.n_states, self.n)
            tables = len(groups.starts)
            if tables * (LOOK_UP + TABLE / self.n) < cost:
                self.joint = joint_codes(indicators.columns, groups, indicators.kept)
                self.sparse, self.size = False, LARGEST_JOINT_BLOCK
                self.entries, self.work = tables * self.n, LOOK_UP * tables

    def block(self, index: Any) -> Array | csr_array | JointCodes:
        """φ of some rows: dense, (p, n), sparse and without the constant, (n, p − 1), or by joint codes."""
        if self.joint is not None:
            return self.joint.take(index)
        return self.map.table[index] if self.sparse else self.dense(index)

    def dense(self, index: Any) -> Array:
        """φ of some rows, (p, n)."""
        n = len(range(*index.indices(self.n))) if isinstance(index, slice) else len(index)
        out = np.empty((self.width, n))
        out[0] = 1.0
        self.map.write(index, out[1:])
        return out

    def blocks(self) -> Iterator[tuple[slice, Array | csr_array | JointCodes]]:
        """All rows, block by block."""
        yield from zip(self.slices, self.cached or map(self.block, self.slices))

    def coefficients(self, natural: Statistics) -> Array:
        """B of an η."""
        constant, own, _ = self.map.coefficients(natural)
        return np.hstack([constant[:, None], own])

    def natural(self, B: Array, like: Statistics) -> Statistics:
        """An η of these coefficients; what the posteriors do not depend on is that of ``like``."""
        return self.map.natural(B[:, 0], B[:, 1:], self.map.coefficients(like)[2])

    def ridge(self) -> Array:
        """M of shape (p, q): BM are the slopes of the rows as given, least in norm, with the same scores as B."""
        return np.vstack([np.zeros((1, self.map.ridge().shape[1])), self.map.ridge()])


class Sample:
    """Features of some of the rows, formed once."""

    def __init__(self, features: "Features | Sample", index: NDArray[np.intp]) -> None:
        self.n, self.width, self.size, self.work = len(index), features.width, features.size, features.work
        self.features, self.index = features, index
        self.cached = [(rows, self.block(rows)) for rows in slices(self.n, self.size)]

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
