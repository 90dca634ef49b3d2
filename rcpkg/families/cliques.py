"""Tables of a Bayesian network: for each feature the cells of its family, the feature and its parents, side by side."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rcpkg.base import Array
from rcpkg.families.count_model import StateFeatures
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import slices

LARGEST_TABLES = 2**24  # cells of all classes: 128 MB for each copy of the statistics
BLOCK_ENTRIES = 2**20  # of the networks that are the condition of one cell each

Parents = Sequence[Sequence[int]]


def topological_order(parents: Parents) -> list[int]:
    """Features, parents before children; raises ValueError where these run in a circle."""
    try:
        return list(TopologicalSorter({j: list(of) for j, of in enumerate(parents)}).static_order())
    except CycleError as error:
        raise ValueError(f"structure must have no directed circle; features {error.args[1]} form one") from None


def is_decomposable(parents: Parents) -> bool:
    """Whether any two parents of a feature are joined themselves, one being a parent of the other."""
    return all(a in parents[b] or b in parents[a] for of in parents for i, a in enumerate(of) for b in of[:i])


def onto(array: Array, have: tuple[int, ...], want: tuple[int, ...]) -> Array:
    """A table over the features ``have``, its last axes, in a shape that broadcasts over those of ``want``."""
    lead = array.ndim - len(have)
    moved = array.transpose(*range(lead), *(lead + have.index(f) for f in want if f in have))
    sizes = iter(moved.shape[lead:])
    return moved.reshape(*array.shape[:lead], *(next(sizes) if f in have else 1 for f in want))


def margin(array: Array, have: tuple[int, ...], want: tuple[int, ...]) -> Array:
    """Sums of a table over the features ``have`` for each state of those of ``want``, in their order."""
    lead = array.ndim - len(have)
    left = tuple(f for f in have if f in want)
    summed = np.add.reduce(array, axis=tuple(lead + i for i, f in enumerate(have) if f not in want))
    return summed if left == want else summed.transpose(*range(lead), *(lead + left.index(f) for f in want))


def _log_sum(table: Array) -> Array:
    """log Σ exp over the last axis, −∞ where all is −∞; scipy's `logsumexp` takes twice the passes."""
    top = table.max(axis=-1)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(table - top[..., None]).sum(axis=-1)) + top


class Families:
    """Cells (x_pa(j), x_j) of all features j: those of one conditional distribution follow each other.

    ``parents`` are tuples of feature numbers; ``order`` has parents before children; ``decomposable`` says whether
    the parents of each feature are joined. The tables of arrays below have axes in front, such as that of the class.
    """

    def __init__(self, parents: Parents, n_states: NDArray[np.intp], order: list[int] | None = None) -> None:
        self.parents = [tuple(int(p) for p in of) for of in parents]
        self.n_states = n_states
        self.order = topological_order(self.parents) if order is None else order
        rank = {j: place for place, j in enumerate(self.order)}
        self.last = [max(of, key=rank.__getitem__, default=-1) for of in self.parents]  # which the others precede
        self.decomposable = is_decomposable(self.parents)
        self.members = [(*of, j) for j, of in enumerate(self.parents)]
        self.shapes = [tuple(int(n_states[f]) for f in of) for of in self.members]
        self.sizes = np.array([int(np.prod(shape, dtype=object)) for shape in self.shapes], dtype=object)
        self.width = int(self.sizes.sum())

    def lay_out(self) -> None:
        """Places of the cells; once they are known to be few enough."""
        self.sizes = self.sizes.astype(np.intp)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.lengths = np.repeat(self.n_states, self.sizes // self.n_states)  # of the conditional distributions
        self.firsts = np.cumsum(self.lengths) - self.lengths

    def sums(self, cells: Array) -> Array:
        """Sum of each conditional distribution, from (…, K)."""
        return np.add.reduceat(cells, self.firsts, axis=-1)

    def spread(self, of_distribution: Array) -> Array:
        """A number for each column, that of the conditional distribution that it belongs to."""
        return np.repeat(of_distribution, self.lengths, axis=-1)

    def totals(self, cells: Array) -> Array:
        """Sum of the conditional distribution that each column of (…, K) belongs to."""
        return self.spread(self.sums(cells))

    def split(self, cells: Array) -> list[Array]:
        """Tables of the families, whose last axes are the states of the parents and of the feature, from (…, K)."""
        ends = self.starts + self.sizes
        return [cells[..., a:b].reshape(*cells.shape[:-1], *s) for a, b, s in zip(self.starts, ends, self.shapes)]

    def join(self, tables: list[Array], lead: int = 1) -> Array:
        """The inverse of ``split``, for tables with ``lead`` axes in front."""
        return np.concatenate([table.reshape(*table.shape[:lead], -1) for table in tables], axis=-1)

    def indicators(self, places: NDArray[np.intp]) -> csr_array:
        """Rows with a one in the cell of each family; a family with an unknown member (a place −1) has none."""
        by_feature = np.ascontiguousarray(places.T, dtype=np.int32)
        columns = np.empty_like(by_feature)
        for j, (of, start) in enumerate(zip(self.parents, self.starts)):
            column = np.zeros(len(places), dtype=np.int32)
            for f in (*of, j):
                column *= np.int32(self.n_states[f])
                column += by_feature[f]
            column += np.int32(start)
            columns[j] = column
        n, d = places.shape
        index = np.int32 if n * d < 2**31 else np.int64
        if by_feature.min(initial=0) >= 0:
            columns, rows = columns.T.ravel(), np.arange(0, n * d + 1, d, dtype=index)
        else:
            there = self.complete(by_feature >= 0)
            columns, rows = columns.T[there], np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(index)
        return csr_array((np.ones(len(columns)), columns, rows), shape=(n, self.width))

    def complete(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether all members of each family are known, (n, d), from what is known of the features, (d, n)."""
        return np.array([known[list(of)].all(axis=0) for of in self.members]).T

    def collect(
        self, log_tables: list[Array], possible: Mapping[int, NDArray[np.bool_]] = MappingProxyType({})
    ) -> tuple[list[Array], Array]:
        """Conditional log probabilities of ∏_j exp t_j(x_pa(j), x_j), and the log of its sum over all x.

        From the last feature to the first, Σ over x_j of what has x_j as its last feature is a function of the
        parents of j. In a decomposable network these belong to the family of one of them, whose table takes it up.
        Of some features only the states are summed that are ``possible``, in an array (…, r_j) with the axes in front.
        Under a condition of probability zero these are equally probable.
        """
        tables, total = list(log_tables), 0.0
        for j in reversed(self.order):
            of, table = self.parents[j], tables[j]
            states = np.ones(self.n_states[j], dtype=bool)
            if j in possible:
                states = possible[j].reshape(*possible[j].shape[:-1], *[1] * len(of), -1)
                table = np.where(states, table, -np.inf)
            message = _log_sum(table)
            none = np.isneginf(message)
            tables[j] = table - np.where(none, 0.0, message)[..., None]
            if none.any():
                with np.errstate(divide="ignore"):
                    equal = np.log(states / states.sum(axis=-1, keepdims=True))
                np.copyto(tables[j], equal, where=none[..., None])
            if of:
                carrier = self.last[j]
                tables[carrier] = tables[carrier] + onto(message, of, self.members[carrier])
            else:
                total = total + message
        return tables, np.asarray(total)

    def distribute(self, conditionals: list[Array]) -> list[Array]:
        """Probabilities p(x_pa(j), x_j) of the families of a decomposable network from p(x_j | x_pa(j))."""
        joint: list[Array] = [np.empty(0)] * len(conditionals)
        for j in self.order:
            of, joint[j] = self.parents[j], conditionals[j]
            if of:
                carrier = self.last[j]
                joint[j] = margin(joint[carrier], self.members[carrier], of)[..., None] * joint[j]
        return joint

    def moved(self, cells: Array, others: "Families", places: list[NDArray[np.intp]]) -> Array:
        """Cells in the layout of the same network with more states, where state v of feature j has ``places[j][v]``."""
        new = np.zeros((*cells.shape[:-1], others.width))
        for of, old, table in zip(self.members, self.split(cells), others.split(new)):
            table[np.ix_(np.arange(len(table)), *(places[f] for f in of))] = old
        return new


class TableFeatures(StateFeatures):
    """The tables of a decomposable network, but for one state of each conditional distribution, the most frequent.

    Those left out follow from the others, family by family: the table of j, summed over the states of j, is a margin of
    the table of its last parent, or the count of the class.
    """

    def __init__(self, families: Families, X: csr_array, total: Array) -> None:
        self.families, self.rows, self.n = families, X, X.shape[0]
        best = [np.equal.outer(t.argmax(axis=-1), np.arange(t.shape[-1])) for t in families.split(total)]
        self.left_out = families.join(best, lead=0)
        self.unused, self.group = total <= 0, np.empty(len(total))
        self._keep(np.flatnonzero(~self.unused & ~self.left_out))

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
        mean, second = np.empty((r, self.own)), np.empty((r, self.own, self.own))
        family = np.searchsorted(families.starts, self.kept, side="right") - 1
        tables, at_once = families.split(parameters.log_prob), -(-BLOCK_ENTRIES // (r * families.width))
        for j, table in enumerate(tables):
            of_family = np.flatnonzero(family == j)
            for part in slices(len(of_family), at_once):
                places = of_family[part]
                within, k = self.kept[places] - families.starts[j], len(places)
                only = np.full((k, r, families.sizes[j]), -np.inf)
                only[np.arange(k), :, within] = table.reshape(r, -1)[:, within].T
                conditionals, log_mass = families.collect(
                    [*tables[:j], only.reshape(k, *table.shape), *tables[j + 1 :]]
                )
                joint = families.distribute([np.exp(given) for given in conditionals])
                given = families.join([np.broadcast_to(p, (k, *t.shape)) for p, t in zip(joint, tables)], lead=2)
                mean[:, places] = np.exp(log_mass).T
                second[:, places] = (np.exp(log_mass)[..., None] * given[:, :, self.kept]).swapaxes(0, 1)
        return mean, second - mean[:, :, None] * mean[:, None]
