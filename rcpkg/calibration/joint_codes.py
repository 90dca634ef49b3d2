"""Products with the indicators of categories, by tables of joint states.

A row has one indicator of one for each feature, so that its score Σ_j β_{j, x_j} is a sum of as many numbers. Features
of few states are read together: a group of them has a code for each joint state, and a table of the sums that these
give. A score is then a look-up for each group, and the sums Σ_i w_i over the rows of each state are those over the rows
of each joint state, added up.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array

LARGEST_TABLE = 4096  # joint states of a group, whose table the first cache holds
ROWS_OF_STATE = 4  # rows for each joint state, at least: tables are made anew in each pass


class Groups(NamedTuple):
    """Neighbouring features with few joint states: from feature ``starts[g]`` on; ``columns`` are those of each."""

    n_states: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def members(self) -> list[range]:
        """The features of each group."""
        return [range(a, b) for a, b in zip(self.starts, [*self.starts[1:], len(self.n_states)])]

    @property
    def columns(self) -> list[slice]:
        """The columns of the states of each feature."""
        ends = np.cumsum(self.n_states)
        return [slice(end - size, end) for end, size in zip(ends, self.n_states)]


def groups_of(n_states: NDArray[np.intp], n: int) -> Groups:
    """Groups as large as tables for n rows may be."""
    starts, size, largest = [0], 1, min(LARGEST_TABLE, n // ROWS_OF_STATE)
    for j, states in enumerate(n_states):
        if j and size * states > largest:
            starts.append(j)
            size = 1
        size *= states
    return Groups(np.asarray(n_states), np.array(starts))


class JointCodes(NamedTuple):
    """Rows by their joint states, ``codes`` of shape (groups, n); ``kept`` columns have coefficients."""

    groups: Groups
    codes: NDArray[np.intp]
    kept: NDArray[np.intp]

    def take(self, index: slice | NDArray[np.intp]) -> "JointCodes":
        """Some of the rows."""
        return self._replace(codes=np.ascontiguousarray(self.codes[:, index]))

    def scores(self, B: Array) -> Array:
        """Bφ, shape (r, n), with the constant for φ_0."""
        columns = self.groups.columns
        cells = np.zeros((len(B), columns[-1].stop))
        cells[:, self.kept] = B[:, 1:]
        scores = np.empty((len(B), self.codes.shape[1]))
        for g, (members, code) in enumerate(zip(self.groups.members, self.codes)):
            table = np.zeros((len(B), 1)) if g else B[:, :1]
            for j in members:
                table = (table[:, :, None] + cells[:, None, columns[j]]).reshape(len(B), -1)
            for row, entries in zip(scores, table):
                if g:
                    row += entries.take(code)
                else:
                    entries.take(code, out=row, mode="clip")
        return scores

    def moments(self, W: Array) -> Array:
        """Σ_i W_yi φ(x_i), shape (r, p)."""
        columns = self.groups.columns
        cells = np.empty((len(W), columns[-1].stop))
        for members, code in zip(self.groups.members, self.codes):
            size = int(np.prod(self.groups.n_states[members]))
            sums = np.array([np.bincount(code, row, size) for row in W])
            for j in reversed(members):
                sums = sums.reshape(len(W), -1, self.groups.n_states[j])
                cells[:, columns[j]] = sums.sum(axis=1)
                sums = sums.sum(axis=2)
        return np.hstack([W.sum(axis=1, keepdims=True), cells[:, self.kept]])


def joint_codes(ones: NDArray[np.integer], groups: Groups, kept: NDArray[np.intp]) -> JointCodes:
    """Those of rows with ``ones``, shape (d, n), in these columns."""
    codes = np.zeros((len(groups.starts), ones.shape[1]), dtype=np.intp)
    for members, code in zip(groups.members, codes):
        first = 0  # the code of the first states
        for j in members:
            code *= groups.n_states[j]
            code += ones[j]
            first = first * groups.n_states[j] + groups.columns[j].start
        code -= first
    return JointCodes(groups, codes, kept)
