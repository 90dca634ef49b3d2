"""The search for the nearest rows, exact to the last tie."""

import numpy as np
from scipy.spatial.distance import cdist

from rcpkg.linalg import AT_A_TIME, ROUNDING, Array, Index, slices


class Neighbors:
    """The k nearest rows of a sample, nearest first, ties by row index; a row may be left out."""

    def __init__(self, X: Array):
        from sklearn.neighbors import NearestNeighbors  # here, as it takes as long to import as rcpkg

        # the search expands |q - x|^2; centred data keep that accurate
        self.X, self.origin = X, X.mean(axis=0)
        centred = X - self.origin
        self.reach = np.linalg.norm(centred, axis=1).max()
        self.index = NearestNeighbors().fit(centred)

    def query(self, Q: Array, k: int, without: Index | None = None) -> tuple[Array, Index]:
        """Distances and rows, each (n, k); the row ``without[i]`` is left out for ``Q[i]``."""
        centred = Q - self.origin
        extra = 1 if without is None else 2
        distance, rows = self.index.kneighbors(centred, min(k + extra, len(self.X)))
        scale = self.reach + np.linalg.norm(centred, axis=1, keepdims=True)
        close = (np.diff(distance**2, axis=1) <= ROUNDING * scale**2).any(axis=1)
        if without is not None:
            other = rows != without[:, None]
            close |= other.all(axis=1)
            keep = np.argsort(~other, axis=1, kind="stable")
            distance, rows = np.take_along_axis(distance, keep, 1), np.take_along_axis(rows, keep, 1)
        distance, rows = distance[:, :k], rows[:, :k]
        if close.any():  # near ties: decided by exact distances, and equal ones by the row index
            excluded = None if without is None else without[close]
            distance[close], rows[close] = self._exact(Q[close], k, excluded)
        return distance, rows

    def _exact(self, Q: Array, k: int, without: Index | None) -> tuple[Array, Index]:
        distance = np.empty((len(Q), k))
        rows = np.empty((len(Q), k), dtype=np.intp)
        for part in batches(len(Q), 24 * len(self.X)):
            D = cdist(Q[part], self.X)  # scikit-learn would expand the square here
            if without is not None:
                D[np.arange(len(D)), without[part]] = np.inf
            rows[part] = np.argsort(D, axis=1, kind="stable")[:, :k]
            distance[part] = np.take_along_axis(D, rows[part], axis=1)
        return distance, rows


def batches(n: int, bytes_per_row: int, limit: int = 8 * AT_A_TIME) -> list[slice]:
    return slices(n, max(1, limit // bytes_per_row))
