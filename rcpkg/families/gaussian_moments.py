"""Statistics of Gaussian rows, complete or with gaps: the sums of a pass, and those of the closed form."""

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.em import led_to
from rcpkg.families.gaussian_prior import GaussianParameters, GaussianPrior
from rcpkg.families.portions import has_gaps
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import slices
from rcpkg.rows import Rows

PASS_BLOCK = 2**12  # rows of one call of `weigh`
GAPPY_BLOCK = 2**15  # the same where values are missing


class GaussianMoments(GaussianPrior):
    """What a Gaussian model sums over rows."""

    _incomplete = False  # whether values were missing in training, of independent features
    _completed: Statistics | None = None  # those of EM, at which the prior is settled

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i ⊗ x_i), and the weights Σ W_iy of the values that are ``seen`` where some are missing."""
        X, form, r = self.encode(X), self._form, weights.shape[1]
        first, seen = np.zeros((2, r, X.shape[1]))
        second = np.zeros_like(form.by_class(form.outer(first, first)))
        weights_of_second = weights.sum(axis=1, keepdims=True) if form.shared else weights
        for rows in slices(len(X), form.rows_at_once(weights, X.shape[1])):
            x = X[rows] - self._origin
            if self._incomplete:
                there = ~np.isnan(x)
                seen += weights[rows].T @ there
                x[~there] = 0.0
            first += weights[rows].T @ x
            form.add_moments(second, x, weights_of_second[rows])
        parts = {"seen": seen} if self._incomplete else {}
        return Statistics(count=weights.sum(axis=0), first=first, second=second[0] if form.shared else second, **parts)

    def raw_statistics(self, rows: Rows) -> Statistics:
        """Where features are independent, those of what is seen: they are additive."""
        return super().raw_statistics(rows) if self._incomplete else self.closed_form_statistics(rows)

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        """Where values are missing those of completed rows, which have the moments of what is seen or, where
        covariances are full, those that EM leads to from independent features."""
        if not self._incomplete:  # what is missing shows in the sums: no pass for it
            complete = super().raw_statistics(rows)
            if not np.isnan(complete.first).any():
                return complete
        if not any(rows.each(has_gaps)):
            return super().raw_statistics(rows)
        self._incomplete = True
        seen = super().raw_statistics(rows)
        self._incomplete, weight = False, self._weight(seen)
        self._check_seen(weight)
        mean, scatter, total = self._moments(seen)
        of_all = seen.first.sum(axis=0) / weight.sum(axis=0)
        power = self._form.total(self._power(seen)) / weight.sum(axis=0)
        variance = np.divide(self._form.diagonal(scatter), total, out=np.zeros_like(total), where=total > 0)
        variance = np.where(total > 0, variance, power - of_all**2)
        mean = np.where(weight > 0, mean, of_all)  # of a class that has a feature by the prior alone
        if not self._form.full:
            return self._from_moments(seen.count, mean, variance * self._form.sum(seen.count[:, None]))
        variance = np.where(variance > 0, variance, power - of_all**2)[..., None] * np.eye(mean.shape[1])
        start = GaussianParameters(np.empty(0), mean + self._origin, variance, np.empty(0))
        self._completed = led_to(self, rows, start)
        return self._completed

    def _lacks(self, X: Array) -> bool:
        """Whether the statistics of rows are expected ones: values are missing, and not counted by what is seen."""
        return not self._incomplete and bool(np.isnan(X.sum()))

    def expected_statistics(self, X: Array, weights: Array, parameters: GaussianParameters) -> Statistics:
        """Σ W_iy (1, x̂_i, x̂_i ⊗ x̂_i + C_i), with the mean x̂ and the covariance C of a row of class y given what there
        is of it, or s(X, W) where this counts what is ``seen``."""
        X, (_, mean, covariance, _) = self.encode(X), parameters
        if not self._lacks(X):
            return self.statistics(X, weights)
        gaps = np.isnan(X).any(axis=1)
        known = self.statistics(X[~gaps], weights[~gaps])
        X, weights = X[gaps], weights[gaps]
        first, second = self._form.completed_moments(X, weights, mean, covariance, self._origin)
        return known + Statistics(count=weights.sum(axis=0), first=first, second=self._form.sum(second))

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks, which keeps nothing of a row."""
        X = self.encode(X)
        blocks = list(slices(len(X), max(PASS_BLOCK, self._form.block_of_rows)))
        if self._lacks(X):  # rows of one pattern together
            gaps = np.isnan(X).any(axis=1)
            blocks = [rows[b] for rows in map(np.flatnonzero, (~gaps, gaps)) for b in slices(len(rows), GAPPY_BLOCK)]
        parts = ((X[b], weigh(self.log_joint(X[b], parameters), b)) for b in blocks)
        return reduce(add, (self.expected_statistics(x, W, parameters) for x, W in parts))

    def _check_seen(self, weight: Array) -> None:
        """Refuse weights (r, d) of what is seen that are zero without a prior."""
        unseen = (weight < 0) | ((weight == 0) & (self.prior_strength == 0))
        if unseen.any():
            y, j = np.argwhere(unseen)[0]
            raise InvalidStatistics(
                f"{self._feature_name(j)} has no values within {self._class_name(y)}: drop it, or set "
                "prior_strength > 0"
            )
