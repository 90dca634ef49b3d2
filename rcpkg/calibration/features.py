"""Features φ(x) = (1, g(x)) of rows, in blocks; the scores of a model are linear in them, B_y · φ(x).

Those of a Gaussian model are monomials of the features of the rows, those of counts the counts themselves. They are
formed once where they fit in `MOST_KEPT` entries, and anew in each pass otherwise: dense, of shape (p, n), or, where
most of them are zero, sparse, of shape (n, p − 1), without the constant.
"""

from collections.abc import Iterator
from copy import copy
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.calibration.constants import MOST_KEPT, SPEEDUP
from rcpkg.families import FeatureMap, Statistics
from rcpkg.linalg import AT_A_TIME, IN_CACHE, slices

FeatureBlock = Array | csr_array


class Features:
    """φ of rows in blocks, and coefficients B of shape (r, p) as natural parameters; for a family's ``map``."""

    def __init__(self, feature_map: FeatureMap) -> None:
        self.map, self.n, self.width = feature_map, feature_map.n, 1 + feature_map.n_by_class
        self.index: NDArray[np.intp] | None = None  # of the rows, if they are not all
        self.sparse = self.n * feature_map.n_by_class > max(SPEEDUP * feature_map.entries, IN_CACHE)
        self._keep(MOST_KEPT)

    def _keep(self, most_entries: float) -> None:
        rows = self._rows_in_cache
        if self.sparse:  # what is made of a block is small, too
            rows = min(IN_CACHE, max(1, int(AT_A_TIME * self.map.n / max(self.map.entries, 1.0))))
        self.slices = slices(self.n, rows)
        # a number of a sparse matrix has an index, which is half as long
        kept = 1.5 * self.map.entries if self.sparse else float(self.n * self.width)
        self.cached = [self.block(rows) for rows in self.slices] if kept <= most_entries else None

    @property
    def _rows_in_cache(self) -> int:
        """Rows of a dense block: as many as the cache holds, or of many features, whose products of few rows are slow,
        as it holds of as many features as rows."""
        return max(2 * IN_CACHE // self.width, isqrt(2 * IN_CACHE))

    @property
    def entries(self) -> float:
        """Of dense features that a pass takes as long for."""
        return SPEEDUP * self.map.entries if self.sparse else float(self.n * self.width)

    def take(self, index: NDArray[np.intp]) -> "Features":
        """Those of some of the rows, formed once."""
        part = copy(self)
        part.n, part.index = len(index), self._places(index)
        part._keep(np.inf)
        return part

    def _places(self, index: Any) -> Any:
        return index if self.index is None else self.index[index]

    def block(self, index: Any) -> FeatureBlock:
        """φ of some rows, dense or sparse."""
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

    def dense_blocks(self) -> Iterator[tuple[slice, Array]]:
        """All rows in dense blocks, small enough for the cache."""
        if not self.sparse:
            yield from self.blocks()
            return
        for rows in slices(self.n, self._rows_in_cache):
            yield rows, self.dense(rows)

    def coefficients(self, natural: Statistics) -> Array:
        """B of an η."""
        constant, slopes, _ = self.map.coefficients(natural)
        return np.hstack([constant[:, None], slopes])

    def natural(self, B: Array, like: Statistics) -> Statistics:
        """An η of these coefficients; what the posteriors do not depend on is that of ``like``."""
        return self.map.natural(B[:, 0], B[:, 1:], self.map.coefficients(like)[2])

    def ridge(self) -> Array:
        """M of shape (p, q): BM are the slopes of the rows as given, least in norm, with the same scores as B."""
        M = self.map.ridge()
        return np.vstack([np.zeros((1, M.shape[1])), M])


def linear_scores(B: Array, block: FeatureBlock) -> Array:
    """Scores Bφ of a block, shape (r, n)."""
    if issparse(block):
        return np.ascontiguousarray((block @ B[:, 1:].T).T) + B[:, :1]
    return B @ block


def weighted_sums(W: Array, block: FeatureBlock) -> Array:
    """Σ_i W_yi φ(x_i) of a block, shape (r, p)."""
    if issparse(block):
        return np.hstack([W.sum(axis=1, keepdims=True), (block.T @ np.ascontiguousarray(W.T)).T])
    return W @ block.T


def gram(block: Array, weight: Array, space: Array | None = None) -> Array:
    """Σ_i w_i φ(x_i) φ(x_i)ᵀ of a dense block, w ≥ 0, with ``space`` for what is its size."""
    root = np.multiply(block, np.sqrt(weight), out=space)
    return root @ root.T


def squared(block: FeatureBlock) -> FeatureBlock:
    """The squares of the features of a block."""
    return block.multiply(block) if issparse(block) else block * block
