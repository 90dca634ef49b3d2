"""Rows with missing values in a Bayesian network: evidence is one more axis of its tables.

Rows that lack the same features, or nearly the same, go together, which the times of the chapter on gaps ask for; the
sums are those of the rows one by one. What all of them know is read off, and its axes go.
The features that one of them lacks make a network of their own, in whose families two passes sum (Lauritzen and
Spiegelhalter, 1988).
"""

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rcpkg.base import Array
from rcpkg.families.cliques import Families, Possible, margin, onto
from rcpkg.families.constants import LARGEST_TABLES, TABLE_ENTRIES
from rcpkg.linalg import AT_A_TIME, Index, log_sum_exp

UNKNOWN = -LARGEST_TABLES  # the place of a state by which each cell that depends on it is negative
ROW_AXIS = -1  # the last axis of tables that are made, after the features
Table = tuple[tuple[int, ...], Array]  # features, and a table (r, states of each …)


class Group(NamedTuple):
    """Rows that go together, and the network of the features to sum over in one of them, which are ``free``.

    ``holders`` are the last free feature in each family of the whole network, whose table takes up what that family
    tells, or −1 where there is none.
    """

    rows: Index
    free: NDArray[np.bool_]
    network: Families
    holders: list[int]

    def divided(self, members: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Members of a family that are free, and those that all rows know."""
        return tuple(f for f in members if self.free[f]), tuple(f for f in members if not self.free[f])


def _network_of(families: Families, free: NDArray[np.bool_], there: NDArray[np.bool_]) -> tuple[Families, list[int]]:
    """The network of the ``free`` features in the families that are ``there``, with the parents filled in that make it
    decomposable."""
    rank = np.argsort(families.order)
    parents: list[set[int]] = [set() for _ in free]
    holders = []
    for members, counts in zip(families.members, there):
        scope = {f for f in members if free[f] and counts}
        holders.append(max(scope, key=rank.__getitem__, default=-1))
        if scope:
            parents[holders[-1]] |= scope - {holders[-1]}
    for j in reversed(families.order):
        if parents[j]:
            last = max(parents[j], key=rank.__getitem__)
            parents[last] |= parents[j] - {last}
    order = [j for j in families.order if free[j]]
    return Families([sorted(pa, key=rank.__getitem__) for pa in parents], families.n_states, order), holders


def _groups(families: Families, summed: NDArray[np.bool_], there: NDArray[np.bool_], r: int) -> Iterator[Group]:
    """Rows with features to sum over, ``summed`` (n, d), in the families that are ``there``, in groups of tables of
    `TABLE_ENTRIES`, or of one row whose tables are larger."""
    rows = np.flatnonzero(summed.any(axis=1))
    parts = [rows[np.lexsort(summed[rows].T)]] if len(rows) else []
    while parts:
        rows = parts.pop()
        free = summed[rows].any(axis=0)
        network, holders = _network_of(families, free, there[rows].any(axis=0))
        sizes = network.sizes[network.order]
        if len(rows) > 1 and len(rows) * r * sizes.sum() > TABLE_ENTRIES * len(sizes):
            parts += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
            continue
        if r * sizes.max() > LARGEST_TABLES:
            raise ValueError(
                f"{free.sum()} values of a row are missing together, and to sum over them takes a table of "
                f"{sizes.max()} cells a class: impute them, give missing values a state of their own, or use "
                "a decomposable network or fewer parents"
            )
        yield Group(rows, free, network, holders)


def _evidence(families: Families, group: Group, places: Index, log_tables: list[Array]) -> tuple[list[Array], Possible]:
    """Log tables (n, r, states of a family of the group …) at what is known of rows with these ``places``, and the
    states that are possible.

    A family that is fully observed in a row contributes 0 there, as does one whose feature is missing and need not be
    summed over.
    """
    # In memory rows come last: sums over the few states of a feature then go through many rows at a time.
    missing = places < 0
    tables: list[Array] = [np.zeros((1, *shape, 1)) for shape in group.network.shapes]
    for j, (members, holder) in enumerate(zip(families.members, group.holders)):
        if holder >= 0:
            scope, known = group.divided(members)
            table = log_tables[j].transpose(0, *(1 + members.index(f) for f in (*scope, *known)))
            table = table.reshape(*table.shape[: 1 + len(scope)], -1)
            if known:
                table = table.take(_places_of(places, known, families.n_states), axis=-1, mode="clip")
            left_out = ~missing[:, members].any(axis=1) | (missing[:, j] & ~group.free[j])
            if left_out.any():
                table = np.where(left_out, 0.0, table)
            of_holder = (*group.network.members[holder], ROW_AXIS)
            tables[holder] = tables[holder] + onto(table, (*scope, ROW_AXIS), of_holder)
    possible = {}
    for j in np.flatnonzero(group.free & ~missing.all(axis=0)):
        states = missing[:, j] | np.equal.outer(np.arange(families.n_states[j]), places[:, j])
        possible[int(j)] = states.T[:, None]
    return [table.transpose(-1, *range(table.ndim - 1)) for table in tables], possible


def _places_of(places: Index, features: tuple[int, ...], n_states: Index) -> Index:
    """Places of the joint states of some ``features`` in a table of them; any place where one is missing."""
    joint = np.zeros(len(places), dtype=np.intp)
    for f in features:
        joint = joint * n_states[f] + places[:, f]
    return joint


def _matter(families: Families, missing: NDArray[np.bool_]) -> list[Any]:
    """Which features are known in rows (n, d), or in one, or have a descendant that is: any other sums to one."""
    matter = [*~missing.T]
    for j in reversed(families.order):
        for f in families.parents[j]:
            matter[f] = matter[f] | matter[j]
    return matter


def log_marginal(families: Families, places: Index, log_tables: list[Array]) -> Array:
    """log Σ over the missing features of ∏_j p(x_j | x_pa(j)) over the families that have one, shape (n, r).

    Places of the states of each row are (n, d), −1 where they are missing; the d ``log_tables`` are log p(x_j |
    x_pa(j), y), of shape (r, states of the parents …, states of j).
    """
    missing, out = places < 0, np.zeros((len(places), len(log_tables[0])))
    matter = np.transpose(_matter(families, missing))
    for group in _groups(families, missing & matter, matter, out.shape[1]):
        out[group.rows] = group.network.collect(*_evidence(families, group, places[group.rows], log_tables))[2]
    return out


class TableSum:
    """Σ of log tables (r, states of some of d features …) at the places of a row's states, shape (r,), but for tables
    of features of which one is `UNKNOWN`.

    The bar is a scorer's time for one row: one index into all cells takes .3 of the time of a loop over the tables of 4
    features, and .07 with 20. The terms are the same.
    """

    def __init__(self, tables: list[Table], r: int, d: int) -> None:
        self.stride, cells = np.zeros((len(tables), d), dtype=np.intp), [np.zeros((r, 1))]
        for stride, (members, table) in zip(self.stride, tables):
            stride[list(members)] = np.cumprod([1, *table.shape[:1:-1]])[::-1]
            cells.append(table.reshape(r, -1))
        self.starts = np.cumsum([part.shape[1] for part in cells])[:-1]
        self.cells = np.ascontiguousarray(np.concatenate(cells, axis=1).T)

    def __call__(self, places: Index) -> Array:
        return np.add.reduce(self.cells.take(self.starts + self.stride.dot(places), 0, None, "clip"))


class RowMarginal:
    """`log_marginal` for one row at a time, shape (r,): keeps the sums for the patterns of missing features that it met
    as tables over the states of known ones, where these are small.

    The bar is a scorer's time for one row with gaps, 9 µs in place of 90 for four features. A test compares the bits.
    """

    def __init__(self, families: Families, log_tables: list[Array]) -> None:
        self.families, self.log_tables = families, log_tables
        # of as many patterns as the tables of the model, which are about as large, go into `AT_A_TIME` numbers
        self.cached = lru_cache(AT_A_TIME // sum(table.size for table in log_tables))(self._sum)

    def __call__(self, places: Index) -> Array:
        if total := self.cached((places < 0).tobytes()):
            return total(places)
        return log_marginal(self.families, np.maximum(places, -1)[None], self.log_tables)[0]

    def _sum(self, pattern: bytes) -> TableSum | None:
        """One table for each set of missing features that hang together; None if it has over `TABLE_ENTRIES` entries.

        Features are summed one by one, and terms in the order of `Families.collect`, which makes the same bits.
        """
        families, r, missing = self.families, len(self.log_tables[0]), np.frombuffer(pattern, dtype=bool)
        matter = _matter(families, missing)
        summed = {j for j in families.order if missing[j] and matter[j]}
        every = zip(families.members, self.log_tables, matter)
        tables = [(members, table) for members, table, matters in every if matters and summed.intersection(members)]
        messages: list[Table] = []
        for j in [j for j in reversed(families.order) if j in summed]:
            here = [[one for one in kind if j in one[0]] for kind in (tables, messages)]
            scope = (*{f for members, _ in here[0] + here[1] for f in members if f != j}, j)
            if r * prod(families.n_states[list(scope)]) > TABLE_ENTRIES:
                return None
            total = sum(sum(onto(table, members, scope) for members, table in kind) for kind in here)
            tables, messages = ([one for one in kind if j not in one[0]] for kind in (tables, messages))
            messages.append((scope[:-1], log_sum_exp(np.ascontiguousarray(total))))
        return TableSum(messages, r, len(missing))


def _posteriors(families: Families, places: Index, log_tables: list[Array]) -> Iterator[tuple[Group, dict[int, Array]]]:
    """p(states of a family of the group | what is known, y), of shape (n, r, …), for all rows with missing values.

    Where what is known is impossible in a class, states that it does not decide on are equally probable there.
    """
    for group in _groups(families, places < 0, np.ones_like(places, dtype=bool), len(log_tables[0])):
        network, lead = group.network, (len(group.rows), len(log_tables[0]))
        tables, possible = _evidence(families, group, places[group.rows], log_tables)
        conditionals = network.conditionals(*network.collect(tables, possible)[:2], possible)
        for j in network.order:
            np.exp(conditionals[j], out=conditionals[j])
        joint = network.distribute(conditionals)
        yield group, {j: np.broadcast_to(joint[j], (*lead, *joint[j].shape[2:])) for j in network.order}


def state_probabilities(families: Families, places: Index, log_tables: list[Array], weights: Array) -> list[Array]:
    """Σ_y W_iy p(x_j = v | what is known of x_i, y) for each feature j, (n, r_j); one of a state that is known."""
    found = [np.equal.outer(column, np.arange(k)).astype(float) for column, k in zip(places.T, families.n_states)]
    if not families.has_arcs:  # nothing is to be summed
        for j, table in enumerate(log_tables):
            gap = places[:, j] < 0
            found[j][gap] = weights[gap] @ np.exp(table)
        return found
    for group, joint in _posteriors(families, places, log_tables):
        for j, table in joint.items():
            gap = places[group.rows, j] < 0
            p = margin(table, group.network.members[j], (j,))[gap]
            found[j][group.rows[gap]] = np.einsum("iyv,iy->iv", p, weights[group.rows[gap]])
    return found


def expected_cells(families: Families, places: Index, log_tables: list[Array], weights: Array) -> Array:
    """Σ_i W_iy p(x_pa(j), x_j | what is known of x_i, y) over the rows in which a member of the family is missing, as
    cells (r, K); arguments are those of `state_probabilities`."""
    cells = np.zeros((weights.shape[1], families.width))
    tables = families.split(cells)
    for group, joint in _posteriors(families, places, log_tables):
        here, W = places[group.rows], weights[group.rows]
        for j, (members, holder) in enumerate(zip(families.members, group.holders)):
            if holder < 0:
                continue
            scope, known = group.divided(members)
            p = margin(joint[holder], group.network.members[holder], scope)
            counted = W * (here[:, members] < 0).any(axis=1, keepdims=True)
            p = (p * counted.reshape(*counted.shape, *[1] * len(scope))).reshape(len(here), -1)
            shape = tuple(families.n_states[list(known)])
            place = _places_of(here, known, families.n_states)
            same_place = csr_array((np.ones(len(here)), (place, np.arange(len(here)))), (prod(shape), len(here)))
            total = (same_place @ p).reshape(*shape, len(cells), *families.n_states[list(scope)])
            axes = [*known, None, *scope]
            tables[j] += total.transpose([axes.index(f) for f in (None, *members)])
    return cells
