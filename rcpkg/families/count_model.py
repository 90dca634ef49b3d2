"""Families of counts, of states and of words: relative frequencies, and steps that keep them positive."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.cliques import Families
from rcpkg.families.family import Family, equal_class_weights, safe_class_counts, safe_counts
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import ROUNDING, ratio


class CategoricalParameters(NamedTuple):
    """Class log probabilities (r,), and log p(x_j = v | y) as (r, K), features side by side.

    >>> from rcpkg import CategoricalNB
    >>> np.exp(CategoricalNB().fit([[0], [1], [1], [1]], [0, 0, 1, 1]).parameters_.log_prob)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    log_prior: Array
    log_prob: Array


class CountFamily(Family):
    """What the families with counts for statistics share: distributions side by side in the columns of ``cells``.

    A row adds one to its class and ``length_`` to the distributions without a condition.
    """

    families_: Families  # the tables that the columns are
    length_: float = 1.0

    def _pseudo_rows(self, n_columns: int) -> Array:
        """Pseudo-rows of each column of ``cells``."""
        raise NotImplementedError

    def _cell_name(self, y: int, column: int) -> str:
        raise NotImplementedError

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
        """Logarithms of relative frequencies; where nothing is counted the states are equally probable."""
        families, sums = self.families_, self.families_.sums(cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_frequencies = cells / families.spread(sums)
            np.log(log_frequencies, out=log_frequencies)
        if not (sums > 0).all():
            equal = -np.log(families.spread(families.lengths))
            np.copyto(log_frequencies, equal, where=families.spread(sums <= 0))
        return log_frequencies

    def with_pseudo_rows(self, statistics: Statistics) -> Statistics:
        """Statistics with those of the prior, whose maximum likelihood is the MAP of ``statistics``."""
        if not self.has_prior:
            return statistics
        of_class, of_cell = self._class_pseudo_rows(len(statistics.count)), self._pseudo_rows(statistics.cells.shape[1])
        return Statistics(count=statistics.count + of_class, cells=statistics.cells + of_cell)

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts, those of the prior included, increase by addition and decrease by a factor."""
        of_class, of_cell = self._class_pseudo_rows(len(old.count)), self._pseudo_rows(old.cells.shape[1])
        old = self.with_pseudo_rows(old)
        count = safe_class_counts(old.count, change.count)
        sums = self._safe_sums(old, change, count)
        cells = safe_counts(old.cells, change.cells)
        cells *= self.families_.spread(ratio(sums, self.families_.sums(cells)))
        cells -= of_cell
        return Statistics(count=count - of_class, cells=cells)

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Sums of the distributions after a change that gives the class counts ``count``."""
        raise NotImplementedError

    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """Δ log θ_v = (g_v − ω θ_v) / max(s_v, s(X, P)_v) for the change g of cells s, ω such that Σ θ_v Δ log θ_v = 0.

        Without the maximum this is ``change``. The curvature of the conditional likelihood is at most d + 1 times
        diag s(X, P), for d features or words a row: so a near-empty cell to which the rows' posteriors give much does
        not shorten the step of all others.
        """
        families, cells = self.families_, old.cells + self._pseudo_rows(old.cells.shape[1])
        theta, total = ratio(cells, families.totals(cells)), families.totals(change.cells)
        scale = np.where(cells > 0, np.maximum(cells, expected.cells), 1.0)
        slope, curvature = theta * change.cells, theta * theta
        slope /= scale
        curvature /= scale
        excess = ratio(families.sums(slope), families.sums(curvature))
        steps = cells * (change.cells - families.spread(excess) * theta)
        steps /= scale
        steps += theta * total
        return Statistics(count=change.count, cells=steps)

    def pooled_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """Observed class weights, and the same distributions for all classes; r pseudo-rows."""
        cells = statistics.cells.sum(axis=0, keepdims=True)
        pooled = self._log_frequencies(cells + self._pseudo_rows(cells.shape[1]))
        r = len(statistics.count)
        return CategoricalParameters(self.class_log_prior(statistics.count), np.tile(pooled, (r, 1))), float(r)

    def grand_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """The distributions of all rows for each class, and equal class weights; r pseudo-rows."""
        parameters, size = self.pooled_parameters(statistics)
        return parameters._replace(log_prior=equal_class_weights(parameters.log_prior)), size

    def natural_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """η = (log p(y), log p(x_j = v | x_pa(j), y)), or (log p(y), log p(v | y))."""
        return Statistics(count=parameters.log_prior, cells=parameters.log_prob)

    def mean_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """μ = (p(y), L p(y) p(x_pa(j), x_j | y)), with L = ``length_``."""
        prior = np.exp(parameters.log_prior)
        joint = self.families_.joint(np.exp(parameters.log_prob))
        return Statistics(count=prior, cells=self.length_ * prior[:, None] * joint)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_y + L log Σ_x exp Σ_j η_y(x_pa(j), x_j), with L = ``length_``."""
        return natural.count + self.length_ * self.families_.normalised(natural.cells)[1]

    def from_natural(self, natural: Statistics) -> CategoricalParameters:
        """p(y) ∝ exp(η_y + A_y), and p(x_j | x_pa(j), y) ∝ the exponential of η and of what the children add."""
        log_prob, total = self.families_.normalised(natural.cells)
        log_prior = natural.count + self.length_ * total
        return CategoricalParameters(log_prior - np.logaddexp.reduce(log_prior), log_prob)

    def scores(self, X: Array | csr_array | Any, natural: Statistics) -> Array:
        """η_y + Σ of the η of what is counted in encoded rows."""
        return X @ natural.cells.T + natural.count
