"""What models of counts share, of states, words and tables: relative frequencies, and steps that keep them positive."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.family import Family, equal_class_weights, safe_class_counts, safe_counts
from rcpkg.families.features import FeatureMap, Indicators
from rcpkg.families.statistics import Statistics

ROUNDING = 1e-12  # of sums over rows, relative to the sum of magnitudes


class CategoricalParameters(NamedTuple):
    """Class log probabilities (r,), and log p(x_j = v | y) as (r, K), features side by side."""

    log_prior: Array
    log_prob: Array


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, and zero where the whole is zero, as in a distribution of which nothing was counted."""
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)


class CountFamily(Family):
    """What the models with counts for statistics share: distributions side by side in the columns of ``cells``."""

    def _pseudo_rows(self, n_columns: int) -> Array:
        """Pseudo-rows of each column of ``cells``."""
        raise NotImplementedError

    def _distribution_sums(self, cells: Array) -> Array:
        """Sum of each distribution."""
        raise NotImplementedError

    def _spread(self, of_distribution: Array) -> Array:
        """Numbers of distributions, such as their sums, in a shape that goes with ``cells``."""
        raise NotImplementedError

    def totals(self, cells: Array) -> Array:
        """Sum of the distribution that each column belongs to, in a shape that divides ``cells``."""
        return self._spread(self._distribution_sums(cells))

    def _cell_name(self, y: int, column: int) -> str:
        raise NotImplementedError

    def _message_of_empty(self, y: int, column: int) -> str:
        """Complaint that the distribution of a column has nothing to count in class y."""
        return f"nothing is left to count in {self._class_name(y)}: give it rows with counts, or a prior_strength"

    def parameters(self, statistics: Statistics) -> CategoricalParameters:
        """Relative frequencies, each distribution normalised over its own states."""
        log_prior = self.class_log_prior(statistics.count)
        cells = self.with_pseudo_rows(statistics).cells
        y, column = np.unravel_index(cells.argmin(), cells.shape)
        if not cells[y, column] >= 0:
            if not cells[y, column] >= -ROUNDING * np.abs(cells).sum():
                raise InvalidStatistics(f"negative count {cells[y, column]:.6g} of {self._cell_name(y, column)}")
            cells = np.maximum(cells, 0.0)
        return CategoricalParameters(log_prior, self._log_frequencies(cells))

    def _log_frequencies(self, cells: Array) -> Array:
        totals = self.totals(cells)
        if np.any(totals <= 0):
            raise InvalidStatistics(self._message_of_empty(*np.argwhere(totals <= 0)[0]))
        with np.errstate(divide="ignore"):
            return np.log(cells / totals)

    def with_pseudo_rows(self, statistics: Statistics) -> Statistics:
        """Statistics with those of the prior, whose maximum likelihood is the MAP of ``statistics``."""
        if not self.has_prior:
            return statistics
        of_class, of_cell = self._class_pseudo_rows(len(statistics.count)), self._pseudo_rows(statistics.cells.shape[1])
        return Statistics(count=statistics.count + of_class, cells=statistics.cells + of_cell)

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """Each count that would turn negative keeps its value; the parameter map normalises what results."""
        of_class, of_cell = self._class_pseudo_rows(len(old.count)), self._pseudo_rows(old.cells.shape[1])
        return Statistics(
            count=np.where(new.count + of_class > 0, new.count, old.count),
            cells=np.where(new.cells + of_cell >= 0, new.cells, old.cells),
        )

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts, those of the prior included, increase by addition and decrease by a factor."""
        of_class, of_cell = self._class_pseudo_rows(len(old.count)), self._pseudo_rows(old.cells.shape[1])
        old = self.with_pseudo_rows(old)
        count = safe_class_counts(old.count, change.count)
        totals = self._safe_sums(old, change, count)
        cells = safe_counts(old.cells, change.cells)
        cells *= self._spread(_ratio(totals, self._distribution_sums(cells)))
        cells -= of_cell
        return Statistics(count=count - of_class, cells=cells)

    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """Δ log θ_v = (g_v − ω θ_v) / max(s_v, s(X, P)_v) for the change g of cells s, ω such that Σ θ_v Δ log θ_v = 0.

        Without the maximum this is ``change``. The curvature of the conditional likelihood is at most d + 1 times
        diag s(X, P), for d features or words a row: so a near-empty cell to which the rows' posteriors give much does
        not shorten the step of all others.
        """
        cells = old.cells + self._pseudo_rows(old.cells.shape[1])
        theta, total = _ratio(cells, self.totals(cells)), self.totals(change.cells)
        scale = np.where(cells > 0, np.maximum(cells, expected.cells), 1.0)
        slope, curvature = theta * change.cells, theta * theta
        slope /= scale
        curvature /= scale
        excess = _ratio(self._distribution_sums(slope), self._distribution_sums(curvature))
        steps = cells * (change.cells - self._spread(excess) * theta)
        steps /= scale
        steps += theta * total
        return Statistics(count=change.count, cells=steps)

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Sums after a change that gives the class counts ``count``: changed as these are, so that with rows of one
        length ℓ they stay ℓ times these."""
        sums = safe_counts(self._distribution_sums(old.cells), self._distribution_sums(change.cells))
        return sums * (count / safe_counts(old.count, change.count))[:, None]

    def pooled_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """Observed class weights, and the same distributions for all classes; r pseudo-rows."""
        cells = statistics.cells.sum(axis=0, keepdims=True)
        pooled = self._log_frequencies(cells + self._pseudo_rows(cells.shape[1]))
        r = len(statistics.count)
        return CategoricalParameters(self.class_log_prior(statistics.count), np.tile(pooled, (r, 1))), float(r)

    def grand_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """As pooled, with equal class weights."""
        parameters, size = self.pooled_parameters(statistics)
        return parameters._replace(log_prior=equal_class_weights(parameters.log_prior)), size

    def natural_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """η = (log p(y), log p(x_j = v | y)), or (log p(y), log p(v | y))."""
        return Statistics(count=parameters.log_prior, cells=parameters.log_prob)

    def _log_totals(self, log_cells: Array) -> Array:
        """log Σ exp over the distribution that each column belongs to, in a shape to subtract from ``log_cells``."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> CategoricalParameters:
        """p(y) ∝ exp(η_y + A_y), and each distribution normalised."""
        log_prior = self.class_log_partition(natural)
        log_prior -= np.logaddexp.reduce(log_prior)
        return CategoricalParameters(log_prior, natural.cells - self._log_totals(natural.cells))

    def scores(self, X: Array | csr_array, natural: Statistics) -> Array:
        """η_y + Σ of the η of what is counted."""
        return (X if issparse(X) else self.encode(X)) @ natural.cells.T + natural.count


class StateFeatures(FeatureMap):
    """Counts of states, side by side, but for those of ``reference``, one of each distribution; none is shared.

    What a row counts of a distribution adds up to ``length``, so that the reference follows from the others. States of
    no row (``unused``) have no part in a minimal map: their natural parameter is −∞.
    """

    def __init__(self, X: Any, total: Array, starts: NDArray[np.intp], kind: str, length: float = 1.0) -> None:
        self.length, self.rows, self.n = length, X, X.shape[0]
        self.group = np.searchsorted(starts, np.arange(len(total)), side="right") - 1
        self.unused, self.reference = np.zeros(len(total), dtype=bool), np.empty(0, dtype=np.intp)
        if kind in ("minimal", "conditioned"):
            self.reference = starts + [int(np.argmax(part)) for part in np.split(total, starts[1:])]
        if kind == "minimal":
            self.unused = total <= 0
        self._keep(np.setdiff1d(np.flatnonzero(~self.unused), self.reference))

    def _keep(self, columns: NDArray[np.intp]) -> None:
        self.kept, self.own = columns, len(columns)
        self.totalled = np.ones(self.own, dtype=bool)

    @cached_property
    def table(self) -> Array | csr_array:  # type: ignore[override]
        """The columns that are kept."""
        every = len(self.kept) == len(self.group)
        self._hold(self.rows if every else self.rows[:, self.kept])
        return self.__dict__["table"]

    @cached_property
    def entries(self) -> float:  # type: ignore[override]
        """Of the columns that are kept."""
        table = self.table
        return float(table.nnz if issparse(table) else table.size)

    def sums(self, statistics: Statistics) -> tuple[Array, Array]:
        return statistics.cells[:, self.kept], np.empty(0)

    def statistics(self, count: Array, own: Array, shared: Array) -> Statistics:
        cells = np.zeros((len(count), len(self.group)))
        cells[:, self.kept] = own
        rest = [cells[:, self.group == g].sum(axis=1) for g in range(len(self.reference))]
        cells[:, self.reference] = self.length * count[:, None] - np.array(rest).T
        return Statistics(count=count, cells=cells)

    def coefficients(self, natural: Statistics) -> tuple[Array, Array, Array]:
        cells = natural.cells
        if not len(self.reference):
            return natural.count, cells[:, self.kept], np.empty(0)
        reference = cells[:, self.reference]
        own = cells[:, self.kept] - reference[:, self.group[self.kept]]
        return natural.count + self.length * reference.sum(axis=1), own, np.empty(0)

    def natural(self, constant: Array, own: Array, shared: Array) -> Statistics:
        cells = np.where(self.unused, -np.inf, np.zeros((len(constant), len(self.unused))))
        cells[:, self.kept] = own
        return Statistics(count=constant, cells=cells)

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        p = np.exp(parameters.log_prob[:, self.kept])
        same = np.equal.outer(self.group[self.kept], self.group[self.kept])
        covariance = self.length * (p[:, :, None] * np.eye(self.own) - np.where(same, p[:, :, None] * p[:, None], 0.0))
        return self.length * p, covariance

    def is_inside(self, natural: Statistics) -> bool:
        return True


class IndicatorFeatures(StateFeatures):
    """States of rows that lack none: each row is the columns of its ones, which are read without a table."""

    def __init__(
        self, X: csr_array, total: Array, starts: NDArray[np.intp], kind: str, n_states: NDArray[np.intp]
    ) -> None:
        super().__init__(X, total, starts, kind)
        columns = np.ascontiguousarray(X.indices.reshape(X.shape[0], -1).T)
        self.indicators = Indicators(columns, n_states, self.kept)

    @cached_property
    def entries(self) -> float:  # type: ignore[override]
        counts = np.bincount(self.rows.indices, minlength=len(self.group))
        return float(counts[self.kept].sum())

    def ridge(self) -> Array:
        """a_v − ā where one state of each feature is left out, since the constant is free."""
        M = np.eye(len(self.group))
        if len(self.reference):
            M -= np.equal.outer(self.group, self.group) / self.indicators.n_states[self.group]
        return M[self.kept]

    def write(self, index: Any, out: Array) -> None:
        columns = self.indicators.columns[:, index]
        np.equal(columns[self.group[self.kept]], self.kept[:, None], out=out)
