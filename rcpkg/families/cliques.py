"""Tables of a Bayesian network: for each feature the cells of its family, the feature and its parents, side by side."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.families.features import FeatureMap
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import AT_A_TIME, log_sum_exp, slices

Parents = Sequence[Sequence[int]]
Possible = Mapping[int, NDArray[np.bool_]]  # states (…, r_j) of some features j that are summed over, of others all
ANY: Possible = MappingProxyType({})


def topological_order(parents: Parents) -> list[int]:
    """Features, parents before children; raises ValueError where these run in a circle."""
    if not any(parents):
        return list(range(len(parents)))
    try:
        return list(TopologicalSorter({j: list(pa) for j, pa in enumerate(parents)}).static_order())
    except CycleError as error:
        raise ValueError(f"structure must have no directed circle; features {error.args[1]} form one") from None


def is_decomposable(parents: Parents) -> bool:
    """Whether any two parents of a feature are joined themselves, one being a parent of the other."""
    return all(a in parents[b] or b in parents[a] for pa in parents for i, a in enumerate(pa) for b in pa[:i])


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


class Families:
    """Cells (x_pa(j), x_j) of all features j: those of one conditional distribution follow each other.

    ``parents`` are tuples of feature numbers; ``order`` has parents before children. The tables of arrays below have
    axes in front, such as that of the class. Where no feature has parents, one operation on all cells takes the place
    of a loop over the features, which the bar for iterations of naive Bayes asks for (.25 of scikit-learn's closed
    form); the sums are the same.
    """

    def __init__(self, parents: Parents, n_states: NDArray[np.intp], order: list[int] | None = None) -> None:
        self.parents = [tuple(int(p) for p in pa) for pa in parents]
        self.n_states = n_states
        self.order = topological_order(self.parents) if order is None else order
        rank = {j: place for place, j in enumerate(self.order)}
        self.last = [max(pa, key=rank.__getitem__, default=-1) for pa in self.parents]  # which the others precede
        self.decomposable, self.has_arcs = is_decomposable(self.parents), any(self.parents)
        self.members = [(*pa, j) for j, pa in enumerate(self.parents)]
        self.shapes = [tuple(int(n_states[f]) for f in pa) for pa in self.members]
        self.sizes = np.array([prod(shape) for shape in self.shapes], dtype=object)
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

    def indicators(self, places: NDArray[np.integer]) -> csr_array:
        """Rows with a one in the cell of each family; a family with an unknown member (a place −1) has none."""
        n, d = places.shape
        if self.has_arcs:
            by_feature = np.ascontiguousarray(places.T, dtype=np.int32)
            columns = np.empty_like(by_feature)
            for j, (pa, start) in enumerate(zip(self.parents, self.starts)):
                column = np.zeros(n, dtype=np.int32)
                for f in (*pa, j):
                    column *= np.int32(self.n_states[f])
                    column += by_feature[f]
                columns[j] = column + np.int32(start)
            columns, there = columns.T, self.complete(by_feature >= 0)
        else:
            columns, there = places + self.starts.astype(np.int32), places >= 0
        index = np.int32 if n * d < 2**31 else np.int64
        if there.all():
            columns, rows = columns.ravel(), np.arange(0, n * d + 1, d, dtype=index)
        else:
            columns, rows = columns[there], np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(index)
        return csr_array((np.ones(len(columns)), columns, rows), shape=(n, self.width))

    def complete(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether all members of each family are known, (n, d), from what is known of the features, (d, n)."""
        return np.array([known[list(pa)].all(axis=0) for pa in self.members]).T

    def collect(self, log_tables: list[Array], possible: Possible = ANY) -> tuple[list[Array], list[Array], Array]:
        """Sums of ∏_j exp t_j(x_pa(j), x_j) over all x, feature by feature: tables, messages, and the log of the sum.

        Features are summed out children first. Each sum is a function of the parents of its feature, a message, which
        is added to the table of the last of them.
        """
        tables, messages, total = list(log_tables), list(log_tables), 0.0
        heard: list[Any] = [0.0] * len(tables)  # all that a table takes up, which is smaller than the table
        for j, states in possible.items():
            heard[j] = np.where(self._before_parents(states, j), 0.0, -np.inf)
        for j in reversed(self.order):
            pa = self.parents[j]
            tables[j] = tables[j] + heard[j]
            messages[j] = log_sum_exp(tables[j])
            if pa:
                carrier = self.last[j]
                heard[carrier] = heard[carrier] + onto(messages[j], pa, self.members[carrier])
            else:
                total = total + messages[j]
        return tables, messages, np.asarray(total)

    def _before_parents(self, states: Array, j: int) -> Array:
        """An array (…, r_j) in a shape that broadcasts over the states of the parents of j, too."""
        return states.reshape(*states.shape[:-1], *[1] * len(self.parents[j]), -1)

    def conditionals(self, tables: list[Array], messages: list[Array], possible: Possible = ANY) -> list[Array]:
        """Log probabilities of x_j under the condition of x_pa(j), from what `collect` gives; under one of probability
        zero, possible states are equally probable."""
        found = list(tables)
        for j in self.order:
            none = np.isneginf(messages[j])
            found[j] = tables[j] - np.where(none, 0.0, messages[j])[..., None]
            if none.any():
                states = self._before_parents(possible.get(j, np.ones(self.n_states[j], dtype=bool)), j)
                with np.errstate(divide="ignore"):
                    equal = np.log(states / states.sum(axis=-1, keepdims=True))
                np.copyto(found[j], equal, where=none[..., None])
        return found

    def distribute(self, conditionals: list[Array]) -> list[Array]:
        """Probabilities p(x_pa(j), x_j) of the families of a decomposable network from p(x_j | x_pa(j))."""
        joint: list[Array] = [np.empty(0)] * len(conditionals)
        for j in self.order:
            pa, joint[j] = self.parents[j], conditionals[j]
            if pa:
                carrier = self.last[j]
                joint[j] = margin(joint[carrier], self.members[carrier], pa)[..., None] * joint[j]
        return joint

    def normalised(self, log_cells: Array) -> tuple[Array, Array]:
        """`collect` for cells (…, K), and as cells."""
        if not self.has_arcs:
            sums = np.logaddexp.reduceat(log_cells, self.firsts, axis=-1)
            return log_cells - self.spread(sums), sums.sum(axis=-1)
        tables, messages, total = self.collect(self.split(log_cells))
        return self.join(self.conditionals(tables, messages)), total

    def joint(self, cells: Array) -> Array:
        """Probabilities p(x_pa(j), x_j) from p(x_j | x_pa(j)), both (…, K), in a decomposable network."""
        return self.join(self.distribute(self.split(cells))) if self.has_arcs else cells

    def moved(self, cells: Array, others: "Families", places: list[NDArray[np.intp]]) -> Array:
        """Cells in the layout of the same network with more states, where state v of feature j has ``places[j][v]``."""
        new = np.zeros((*cells.shape[:-1], others.width))
        for pa, old, table in zip(self.members, self.split(cells), others.split(new)):
            table[np.ix_(np.arange(len(table)), *(places[f] for f in pa))] = old
        return new


class TableFeatures(FeatureMap):
    """Counts of the cells of a decomposable network's tables, ``length`` of them in each table of a row.

    Cells that are ``left_out``, one of each conditional distribution, follow from the others, family by family: the
    table of j, summed over the states of j, is a margin of the table of its last parent, or ``length`` times the count
    of the class. Cells of no row (``unused``) have no part in a minimal map: their natural parameter is −∞.
    """

    def __init__(
        self,
        families: Families,
        X: Any,
        left_out: NDArray[np.bool_] | None = None,
        unused: NDArray[np.bool_] | None = None,
        length: float = 1.0,
    ) -> None:
        self.families, self.rows, self.n, self.length = families, X, X.shape[0], length
        nothing = np.zeros(families.width, dtype=bool)
        self.left_out = nothing if left_out is None else left_out
        self.unused = nothing if unused is None else unused
        self.kept = np.flatnonzero(~self.unused & ~self.left_out)
        self.n_by_class = len(self.kept)
        self.totalled = np.ones(self.n_by_class, dtype=bool)

    @cached_property
    def table(self) -> Array | csr_array:  # type: ignore[override]
        """The columns that are kept."""
        self._hold(self._columns(self.rows))
        return self.__dict__["table"]

    def _columns(self, X: Any) -> Any:
        return X if self.n_by_class == X.shape[1] else X[:, self.kept]

    @cached_property
    def entries(self) -> float:  # type: ignore[override]
        """Number of entries that are not zero in the columns that are kept."""
        table = self.table
        return float(table.nnz if issparse(table) else table.size)

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return statistics.cells[:, self.kept], np.empty(0)

    def statistics(self, count: Array, by_class: Array, shared: Array) -> Statistics:
        families, cells = self.families, np.zeros((len(count), self.families.width))
        cells[:, self.kept] = by_class
        if not families.has_arcs:
            rest = self.length * count[:, None] - families.sums(cells)
            return Statistics(count=count, cells=np.where(self.left_out, families.spread(rest), cells))
        tables, left_out = families.split(cells), families.split(self.left_out)
        for j in families.order:
            pa, carrier, whole = families.parents[j], families.last[j], count
            if pa:
                whole = margin(tables[carrier], families.members[carrier], pa)
            rest = whole[..., None] - tables[j].sum(axis=-1, keepdims=True)
            tables[j] = np.where(left_out[j], rest, tables[j])
        return Statistics(count=count, cells=families.join(tables))

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        families, constant = self.families, natural.count
        if not self.left_out.any():
            return constant, natural.cells[:, self.kept], np.empty(0)
        cells = np.where(self.unused, 0.0, natural.cells)
        if not families.has_arcs:
            base = families.sums(np.where(self.left_out, cells, 0.0))
            by_class = (cells - families.spread(base))[:, self.kept]
            return constant + self.length * base.sum(axis=1), by_class, np.empty(0)
        tables, left_out = families.split(cells), families.split(self.left_out)
        for j in reversed(families.order):
            pa, base = families.parents[j], np.where(left_out[j], tables[j], 0.0).sum(axis=-1)
            tables[j] = tables[j] - base[..., None]
            if pa:
                carrier = families.last[j]
                tables[carrier] = tables[carrier] + onto(base, pa, families.members[carrier])
            else:
                constant = constant + base
        return constant, families.join(tables)[:, self.kept], np.empty(0)

    def natural(self, constant: Array, by_class: Array, shared: Array) -> Statistics:
        cells = np.where(self.unused, -np.inf, np.zeros((len(constant), len(self.unused))))
        cells[:, self.kept] = by_class
        return Statistics(count=constant, cells=cells)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """Means and covariances of the counts of cells: E[1_a 1_b | y] = p(a | y) p(b | a, y).

        The second factor is that of the network whose table has no other cell than a.
        """
        if not self.families.has_arcs:
            group = np.repeat(np.arange(len(self.families.lengths)), self.families.lengths)[self.kept]
            p, places = np.exp(parameters.log_prob[:, self.kept]), np.arange(self.n_by_class)
            covariance = (-self.length * p)[:, :, None] * p[:, None]
            covariance *= np.equal.outer(group, group)
            covariance[:, places, places] += self.length * p
            return self.length * p, covariance
        families, r = self.families, len(parameters.log_prob)
        mean, second = np.empty((r, self.n_by_class)), np.empty((r, self.n_by_class, self.n_by_class))
        family = np.searchsorted(families.starts, self.kept, side="right") - 1
        tables, at_once = families.split(parameters.log_prob), -(-AT_A_TIME // (r * families.width))
        for j, table in enumerate(tables):
            of_family = np.flatnonzero(family == j)
            for part in slices(len(of_family), at_once):
                places = of_family[part]
                within, k = self.kept[places] - families.starts[j], len(places)
                only = np.full((k, r, families.sizes[j]), -np.inf)
                only[np.arange(k), :, within] = table.reshape(r, -1)[:, within].T
                collected = families.collect([*tables[:j], only.reshape(k, *table.shape), *tables[j + 1 :]])
                log_mass = collected[2]
                joint = families.distribute([np.exp(p) for p in families.conditionals(*collected[:2])])
                others = families.join([np.broadcast_to(p, (k, *t.shape)) for p, t in zip(joint, tables)], lead=2)
                mean[:, places] = np.exp(log_mass).T
                second[:, places] = (np.exp(log_mass)[..., None] * others[:, :, self.kept]).swapaxes(0, 1)
        return mean, second - mean[:, :, None] * mean[:, None]


def most_frequent(families: Families, total: Array) -> NDArray[np.bool_]:
    """The cell of greatest ``total`` in each conditional distribution, the first of equal ones."""
    best = [np.equal.outer(t.argmax(axis=-1), np.arange(t.shape[-1])) for t in families.split(total)]
    return families.join(best, lead=0)


class IndicatorFeatures(TableFeatures):
    """States of features without parents, in rows that lack none: each row is the columns of its ones.

    Blocks of features are written from these without a table, as the race for the conditional optimum asks for: the
    entries are the same zeros and ones.
    """

    inverts = True

    def __init__(self, families: Families, X: csr_array, *left: NDArray[np.bool_] | None) -> None:
        super().__init__(families, X, *left)
        self.columns = np.ascontiguousarray(X.indices.reshape(X.shape[0], -1).T)
        self.feature = np.repeat(np.arange(len(families.n_states)), families.n_states)

    @cached_property
    def entries(self) -> float:  # type: ignore[override]
        counts = np.bincount(self.rows.indices, minlength=self.families.width)
        return float(counts[self.kept].sum())

    def ridge(self) -> Array:
        """a_v − ā where one state of each feature is left out, since the constant is free."""
        M = np.eye(self.families.width)
        if self.left_out.any():
            M -= np.equal.outer(self.feature, self.feature) / self.families.n_states[self.feature]
        return M[self.kept]

    def write(self, index: Any, out: Array) -> None:
        columns = self.columns[:, index]
        np.equal(columns[self.feature[self.kept]], self.kept[:, None], out=out)

    def whitened(self, parameters: Any) -> tuple[Array, list[csr_array]]:
        """u = (1_v − p_v)/√p_v of all states v. Of a state that is left out 1_v − p_v is minus the sum of the others of
        its feature."""
        p, kept, k = np.exp(parameters.log_prob), self.kept, self.n_by_class
        of_kept, places = self.feature[kept], np.arange(k)
        where = np.concatenate([places, k + of_kept]), np.concatenate([places, places])
        scales = np.hstack([p[:, kept], p[:, self.left_out][:, of_kept]]) ** -0.5
        scales[:, k:] *= -1
        return p[:, kept], [csr_array((scale, where), shape=(k + len(self.columns), k)) for scale in scales]
