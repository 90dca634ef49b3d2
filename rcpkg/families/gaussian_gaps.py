"""Gaps in rows of independent Gaussian features: what a row lacks takes no part in its density, nor in moments."""

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.family import safe_counts
from rcpkg.families.gaussian import LOG_2PI, GaussianClassifier
from rcpkg.families.gaussian_prior import GaussianParameters
from rcpkg.families.statistics import Statistics


class WithGaps(GaussianClassifier):
    """Independent Gaussian features of which training rows may lack some: in front of `DiagonalGaussian`.

    Where values are missing in training, statistics have a further part, the weights ``seen`` (r, d) of the features,
    which stand in the place of the class counts.
    """

    _incomplete = False  # whether values were missing in training

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def prepare(self, X: Array) -> None:
        missing = np.isnan(X)
        self._incomplete = bool(missing.any())
        if self._incomplete and missing.all(axis=0).any():
            name = self._column_name(int(np.argmax(missing.all(axis=0))))
            raise ValueError(f"{name} holds missing values only: drop it")
        super().prepare(np.where(missing, np.nanmedian(X, axis=0), X) if self._incomplete else X)

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """Features that were constant so far and rows without missing values do not bind those that follow."""
        missing = np.isnan(X)
        before = self.varying_
        statistics = super().extend_statistics(np.where(missing, self.origin_, X), statistics)
        if not self._incomplete and not missing.any():
            return statistics
        seen = np.repeat(statistics.count[:, None], self.varying_.sum(), axis=1)
        if self._incomplete:
            seen[:, before[self.varying_]] = vars(statistics)["seen"]
        self._incomplete = True
        return Statistics(**{**vars(statistics), "seen": seen})

    def check_complete(self, X: Array) -> None:
        if np.isnan(X).any():
            j = int(np.isnan(X).any(axis=0).argmax())
            raise ValueError(
                f"{self._feature_name(j)} holds missing values: each row then has a marginal of its own, and "
                "conditional likelihood is not concave. Leave such rows out, impute them, or calibrate with "
                "target_weight=0, whose steps are checked one by one"
            )

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i²), and the weights Σ W_iy of the values that are ``seen`` where some are missing."""
        if not self._incomplete:
            return super().statistics(X, weights)
        X = self.encode(X)
        missing = np.isnan(X)
        complete = super().statistics(np.where(missing, self._origin, X), weights)
        return Statistics(**vars(complete), seen=weights.T @ ~missing)

    def _weight(self, s: Statistics) -> Array:
        return vars(s).get("seen", s.count[:, None])

    def _total_weight(self, s: Statistics) -> Array:
        return vars(s)["seen"].sum(axis=0) if self._incomplete else super()._total_weight(s)

    def _safe_weight(self, old: Statistics, change: Statistics, count: Array) -> Array:
        return safe_counts(self._weight(old), self._weight(change)) if self._incomplete else count[:, None]

    def _from_moments(self, count: Array, weight: Array, mean: Array, scatter: Array) -> Statistics:
        statistics = super()._from_moments(count, weight, mean, scatter)
        return Statistics(**vars(statistics), seen=weight) if self._incomplete else statistics

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_yj/n_yj, variances S_yj/n_yj − μ_yj², n_yj the weight of the values seen, or their MAP versions."""
        self._check_seen(statistics)
        return super().parameters(statistics)

    def settle(self, statistics: Statistics, n_rows: int) -> GaussianParameters | None:
        self._check_seen(statistics)
        return super().settle(statistics, n_rows)

    def _check_seen(self, statistics: Statistics) -> None:
        weight = self._weight(statistics)
        unseen = (weight < 0) | ((weight == 0) & (self.prior_strength == 0))
        if self._incomplete and unseen.any():
            y, j = np.argwhere(unseen)[0]
            raise InvalidStatistics(
                f"{self._feature_name(j)} has no values within {self._class_name(y)}: drop it, or set "
                "prior_strength > 0"
            )

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + Σ_j log N(x_j; μ_yj, σ²_yj), over the features that are not missing in the row."""
        joint = super().log_joint(X, parameters)
        rows = np.isnan(joint).any(axis=1)
        if rows.any():
            log_prior, mean, _, A = parameters
            centre = mean.mean(axis=0)
            X, mean, precision = self.encode(X)[rows] - centre, mean - centre, A * A
            seen = ~np.isnan(X)
            X[~seen] = 0.0
            constant = np.log(A) - 0.5 * (mean * mean * precision + LOG_2PI)
            joint[rows] = log_prior + X @ (mean * precision).T - 0.5 * (X * X) @ precision.T + seen @ constant.T
        return joint

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η; where values were missing, that of ``seen`` has what each feature adds to that of the count."""
        natural = super().natural_parameters(parameters)
        if not self._incomplete:
            return natural
        mean, A = parameters.mean - self._origin, parameters.whitener
        seen = np.log(A) - 0.5 * ((mean * A) ** 2 + LOG_2PI)
        return Statistics(**{**vars(natural), "count": parameters.log_prior}, seen=seen)

    def mean_parameters(self, parameters: GaussianParameters) -> Statistics:
        """μ of a row without missing values."""
        mu = super().mean_parameters(parameters)
        if not self._incomplete:
            return mu
        return Statistics(**vars(mu), seen=np.repeat(mu.count[:, None], parameters.mean.shape[1], axis=1))
