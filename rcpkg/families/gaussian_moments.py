"""Statistics of Gaussian rows, complete or with gaps: the sums of a pass, and those of the closed form."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics
from rcpkg.checks import number_labels
from rcpkg.families.covariance import Diagonal, Full
from rcpkg.families.em import run_em
from rcpkg.families.gaussian_prior import GaussianParameters, GaussianPrior
from rcpkg.families.portions import has_gaps
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import slices
from rcpkg.rows import Block, Rows

PASS_BLOCK = 2**12  # rows of one call of `weigh`
GAPPY_BLOCK = 2**15  # the same where values are missing


@dataclass(frozen=True)
class PartMoments:
    """Of some rows the sorted ``labels`` and, for each, the weight, the mean, about an ``origin`` amid the rows, and
    the scatter about the mean, which is summed over the labels where the ``form`` shares it."""

    form: Full | Diagonal
    origin: Array
    labels: NDArray
    count: Array
    mean: Array
    scatter: Array

    def among(self, labels: NDArray) -> "PartMoments":
        """The same with further ``labels``, of no weight."""
        place, r = np.searchsorted(labels, self.labels), len(labels)
        count, mean = np.zeros(r), np.zeros((r, self.mean.shape[1]))
        count[place], mean[place] = self.count, self.mean
        scatter = self.scatter
        if not self.form.shared:
            scatter = np.zeros((r, *scatter.shape[1:]))
            scatter[place] = self.scatter
        return PartMoments(self.form, self.origin, labels, count, mean, scatter)

    def __add__(self, other: "PartMoments") -> "PartMoments":
        """Of both together (Chan, Golub & LeVeque 1979): no moments are taken about a point far from the rows."""
        labels = number_labels(np.concatenate([self.labels, other.labels]))[0]
        a, b = self.among(labels), other.among(labels)
        count, shift = a.count + b.count, b.mean - a.mean + (b.origin - a.origin)
        share = np.divide(b.count, count, out=np.zeros_like(count), where=count > 0)[:, None]
        between = self.form.outer(a.count[:, None] * share * shift, shift)
        return PartMoments(self.form, a.origin, labels, count, a.mean + share * shift, a.scatter + b.scatter + between)


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

    def part_at_sight(self, block: Block) -> PartMoments:
        """Moments of complete rows, NaN where one is not."""
        model, (codes, labels) = copy(self), pd.factorize(block.y, sort=True)
        model.origin_, model.varying_ = block.X.mean(axis=0), np.ones(block.X.shape[1], dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):  # `prepare` refuses such numbers with the block's name
            s = model.statistics(block.X, block._replace(y=codes).weights(len(labels)))
            mean, scatter, _ = model._moments(s)
        return PartMoments(model._form, model.origin_, labels, s.count, mean, scatter)

    def raw_statistics(self, rows: Rows) -> Statistics:
        """Those found at sight, if the rows are complete. Where features are independent, those of what is seen: they
        are additive."""
        if rows.summed is not None and not np.isnan(rows.summed.mean).any():
            found, varying = rows.summed.among(self.classes_), np.flatnonzero(self.varying_)
            mean = (found.mean + (found.origin - self.origin_))[:, varying]
            return self._from_moments(found.count, mean, found.scatter[self._form.block(varying)])
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
        self._completed = run_em(self, rows, start)
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
