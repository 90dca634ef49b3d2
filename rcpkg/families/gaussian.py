"""What all Gaussian classifiers share, whether their covariances are full or diagonal, shared or not."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, InvalidStatistics
from rcpkg.checks import check_number
from rcpkg.families.family import equal_class_weights, safe_class_counts
from rcpkg.families.gaussian_features import Monomials, Whitened
from rcpkg.families.gaussian_prior import ROUNDING, GaussianParameters, GaussianPrior, for_outer, per_class
from rcpkg.families.statistics import Statistics

LOG_2PI = np.log(2 * np.pi)
INDEFINITE = 1e-12  # least eigenvalue of a precision, relative to the mean size of all, that counts as positive
LEAST_PRECISION = 0.1  # what it is raised to if it does not
RANGE = 1e-150, 1e150  # of what rows may differ in a feature: its square and the inverse of that can be represented
FAR_MEAN = 1e4  # typical deviations from the median; moments about a mean farther off lose digits
TYPICAL_ROWS = 1000  # rows from which medians and deviations are taken, if there are more


class GaussianClassifier(GaussianPrior):
    """What the four Gaussian models share.

    Statistics: Σ W_iy (1, x_i, x_i ⊗ x_i), where ⊗ is the outer product or, for independent features, the product
    feature by feature; the last is summed over the classes where they share their covariance (``_shared``). Moments
    are taken about ``origin_``, the mean of the rows that the model was first fitted to (zero before any fit), so
    that no digits are lost to a large mean; features that are constant in all rows (not ``varying_``) take no part.
    """

    _full: bool
    _shared: bool
    _remedies: str  # what to do about an invalid covariance, beside a prior

    def _target_size(self, r: int, d: int) -> float:
        """Size of the pooled and grand targets: as many rows as make their statistics interior."""
        raise NotImplementedError

    def _dampen(self, trial: Array, old: Array) -> Array:
        """``trial`` covariances made positive definite: its eigenvalues relative to ``old`` go through `dampened`."""
        raise NotImplementedError

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        check_number("singular_ridge", self.singular_ridge, 0)
        check_number("rows_per_feature", self.rows_per_feature, 0)
        self.varying_ = np.ones(X.shape[1], dtype=bool)
        self._check_prior(X.shape[1])
        self._pseudo_scatter = self._named_prior = None
        self.origin_, varies = self._origin_of(X)
        if self.singular_ridge:
            self.varying_ = varies

    def _origin_of(self, X: Array) -> tuple[Array, NDArray[np.bool_]]:
        """A point amid the rows, and which features vary; refuses differences that cannot be squared."""
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(over="ignore"):
            width = high - low
        extreme = (width > RANGE[1]) | ((width > 0) & (width < RANGE[0]))
        if extreme.any():
            j = int(np.argmax(extreme))
            raise InvalidStatistics(
                f"the values of {self._column_name(j)} differ by {width[j]:.3g}, whose square cannot be represented: "
                "rescale it"
            )
        mean = X.mean(axis=0)
        some = X[:: -(-len(X) // TYPICAL_ROWS)]
        median = np.median(some, axis=0)
        deviation = np.abs(some - median)
        typical = positive_medians(deviation)
        origin = np.where(np.abs(mean - median) > FAR_MEAN * typical, median, mean)
        return np.where(width > 0, origin, low), width > 0

    def encode(self, X: Array) -> Array:
        """The features that vary."""
        varying = getattr(self, "varying_", None)
        return X if varying is None or varying.all() or X.shape[1] < len(varying) else X.compress(varying, axis=1)

    def _decode(self, X: Array) -> Array:
        """Rows with the features that do not vary, too: the inverse of `encode`."""
        rows = np.tile(self.origin_, (len(X), 1))
        rows[:, self.varying_] = X
        return rows

    def _feature_name(self, j: int) -> str:
        return self._column_name(int(np.flatnonzero(self.varying_)[j]) if hasattr(self, "varying_") else j)

    def _column_name(self, j: int) -> str:
        return super()._feature_name(j)

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """A feature that was constant so far, at the origin, and is no longer so, joins with moments of zero."""
        varying = self.varying_ | (self.origin_ != X).any(axis=0)
        if varying.sum() == self.varying_.sum():
            return statistics
        index = np.flatnonzero(self.varying_[varying])
        self.varying_ = varying
        first = np.zeros((len(statistics.count), int(varying.sum())))
        second = np.zeros_like(self._sum(self._outer(first, first)))
        first[:, index] = statistics.first
        second[self._block(index)] = statistics.second
        return Statistics(count=statistics.count, first=first, second=second)

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Normal rows, given the means and scatter of these: of each class, or within all classes where shared."""
        X = self.encode(X)
        mean, Z = np.empty_like(X), rng.standard_normal(X.shape)
        classes = [y == c for c in np.unique(y)]
        for rows in classes:
            mean[rows] = X[rows].mean(axis=0)
            Z[rows] -= Z[rows].mean(axis=0)
        for rows in [slice(None)] if self._shared else classes:
            within = (X - mean)[rows]
            if self._full:
                Q, R = np.linalg.qr(Z[rows])
                Z[rows] = Q * np.sign(R.diagonal()) @ np.linalg.qr(within, mode="r")
            else:
                Z[rows] *= np.sqrt((within**2).sum(axis=0) / (Z[rows] ** 2).sum(axis=0))
        return self._decode(mean + Z)

    def same_form(self, other: object) -> bool:
        """With the same features that vary."""
        return super().same_form(other) and np.array_equal(self.varying_, other.varying_)

    @property
    def means_(self) -> Array:
        """Means of the classes, shape (r, d)."""
        return self._decode(self._of_fitted().mean)

    @property
    def covariances_(self) -> Array:
        """Covariances, or variances, of the shape that the model gives them; zero for features that do not vary."""
        parameters = self._of_fitted()
        r, d = len(parameters.mean), len(self.varying_)
        zeros = self._from_diagonal(np.zeros(d))
        covariances = zeros if self._shared else np.tile(zeros, (r, *[1] * zeros.ndim))
        covariances[self._block(np.flatnonzero(self.varying_))] = parameters.covariance
        return covariances

    def _joint_log_proba(self, X: Array) -> Array:
        """log p(x, y); −∞ where a row lies so far off that its distance from a class cannot be represented."""
        with np.errstate(over="ignore", invalid="ignore"):
            joint = super()._joint_log_proba(X)
        joint[np.isnan(joint)] = -np.inf
        return joint

    def _of_fitted(self) -> GaussianParameters:
        check_is_fitted(self)
        return self.fitted_parameters()

    def _from_moments(self, count: Array, weight: Array, mean: Array, scatter: Array) -> Statistics:
        first = weight * mean
        return Statistics(count=count, first=first, second=scatter + self._sum(self._outer(first, mean)))

    def _safe_weight(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Weights of the means after a safe update, which gives the classes these counts."""
        return count[:, None]

    def class_log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super().class_log_prior(count)

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C)."""
        log_prior = self.class_log_prior(statistics.count)
        m, (prior_mean, prior_scatter) = self.prior_strength, self._prior(statistics)
        mean = (m * prior_mean + statistics.first) / (m + self._weight(statistics))
        _, scatter, weight = self._moments(statistics)
        covariance = (prior_scatter + scatter) / (m + weight)
        power = (prior_scatter + statistics.second) / (m + weight)
        count = statistics.count.sum() if self._shared else statistics.count
        whitener = self._whitener(covariance, power, count)
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)

    def _check_variances(self, covariance: Array, power: Array, count: Array) -> None:
        low = ~(self._diagonal(covariance) > ROUNDING * np.abs(self._diagonal(power)))
        if low.any():
            y, j = np.argwhere(np.atleast_2d(low))[0]
            self._refuse(f"{self._feature_name(j)} has no positive variance", y, count, low.shape[-1])

    def _refuse(self, fault: str, y: int, count: Array, d: int) -> None:
        where, n = ("the classes", count) if np.ndim(count) == 0 else (self._class_name(y), count[y])
        ridge = "" if self.singular_ridge else "singular_ridge > 0 or "
        raise InvalidStatistics(
            f"{fault} within {where}, with n = {n:.6g} rows for d = {d} features (too few or degenerate rows, or an "
            f"update of the statistics that went too far): {self._remedies}, or set {ridge}prior_strength > 0"
        )

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """Class after class takes on its new statistics where they give a positive definite covariance."""
        kept, fresh = old, vars(new)
        by_class = [name for name in fresh if not (self._shared and name == "second")]
        for y in range(len(old.count)):
            mine, parts = np.arange(len(old.count)) == y, vars(kept)
            moved = {name: np.where(per_class(mine, parts[name]), fresh[name], parts[name]) for name in by_class}
            kept = self._if_valid(Statistics(**{**parts, **moved}), kept)
        if self._shared:
            kept = self._if_valid(Statistics(**{**vars(kept), "second": new.second}), kept)
        return kept

    def _if_valid(self, trial: Statistics, otherwise: Statistics) -> Statistics:
        try:
            self.parameters(trial)
        except InvalidStatistics:
            return otherwise
        return trial

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts as those of categories, and the means and covariances that ``old`` + ``change`` has with these counts,
        covariances with their shrinkage dampened, so that they stay positive definite."""
        m, (_, prior) = self.prior_strength, self._prior(old)
        mean, scatter, weight = self._moments(old)
        count = safe_class_counts(old.count, change.count)
        moved = self._safe_weight(old, change, count)
        shift = change.first - mean * self._weight(change)
        about_mean = self._outer(mean, shift) + self._outer(change.first, mean)
        trial = scatter + change.second - self._sum(about_mean + self._outer(shift, shift / moved))
        new_weight = self._sum(for_outer(moved, about_mean))
        covariance = self._dampen((prior + trial) / (m + new_weight), (prior + scatter) / (m + weight))
        return self._from_moments(count, moved, mean + shift / moved, (m + new_weight) * covariance - prior)

    def pooled_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Observed class weights and means, and the pooled within-class covariance; r(d + 1) pseudo-rows, or 2r for
        independent features."""
        log_prior = self.class_log_prior(statistics.count)
        mean, scatter, _ = self._moments(statistics)
        return self._common_covariance(log_prior, mean, scatter, statistics)

    def grand_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Equal class weights, and for every class the mean and the covariance of all rows."""
        log_prior = equal_class_weights(self.class_log_prior(statistics.count))
        _, scatter, _ = self._moments(statistics)
        mean = np.tile(statistics.first.sum(axis=0) / statistics.count.sum(), (len(statistics.count), 1))
        return self._common_covariance(log_prior, mean, scatter, statistics, self._between(statistics))

    def _common_covariance(
        self, log_prior: Array, mean: Array, scatter: Array, statistics: Statistics, between: Array | float = 0.0
    ) -> tuple[GaussianParameters, float]:
        """Parameters with the ML or MAP covariance of all rows, and the pseudo-rows they count for."""
        (r, d), m, total = mean.shape, self.prior_strength, statistics.count.sum()
        scatter, prior = self._total(scatter), self._prior(statistics)[1]
        prior = prior if prior.ndim == scatter.ndim else prior.sum(axis=0)
        covariance = (prior + (scatter + between)) / (m + total)
        power = covariance + self._outer(mean, mean).max(axis=0)
        whitener = self._whitener(covariance, power, total)
        if not self._shared:
            covariance, whitener = (np.tile(one, (r, *[1] * one.ndim)) for one in (covariance, whitener))
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener), self._target_size(r, d)

    def mean_parameters(self, parameters: GaussianParameters) -> Statistics:
        """μ = p(y) (1, μ_y, Σ_y + μ_y ⊗ μ_y), the last summed over y where shared."""
        prior, mean = np.exp(parameters.log_prior), parameters.mean - self._origin
        outer = self._outer(mean, mean)
        return Statistics(
            count=prior,
            first=prior[:, None] * mean,
            second=self._sum(per_class(prior, outer) * (parameters.covariance + outer)),
        )

    def feature_map(
        self,
        X: Array,
        kind: str = "minimal",
        statistics: Statistics | None = None,
        pooled: GaussianParameters | None = None,
    ) -> Monomials:
        """Monomials about the origin: of their root mean squares ("minimal"), or whitened by ``pooled``."""
        centre, factor = (0.0 if kind == "plain" else self._origin), None
        if kind == "minimal":
            power = self._diagonal(self._total(statistics.second))
            factor = 1 / np.sqrt(power / statistics.count.sum())
        elif kind == "conditioned":
            factor = (pooled.whitener if self._shared else pooled.whitener[0]).T
        return Monomials(self.encode(X), self._origin, centre, factor, self._full, self._shared)

    def free_coordinates(self, pooled: GaussianParameters, definite: bool) -> Whitened:
        """Whitened by the pooled covariance."""
        return Whitened(pooled.whitener if self._shared else pooled.whitener[0], definite)

    def _solved(self, precision: Array, first: Array) -> tuple[Array, Array, Array]:
        """Means, covariances and whiteners of precisions P and linear terms P μ."""
        raise NotImplementedError

    def _definite(self, precision: Array) -> Array:
        """Precisions of shape (r, …), a common one added where they are not all positive definite."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> GaussianParameters:
        """P_y = −2 η_2y, μ_y = P_y⁻¹ η_1y, p(y) ∝ exp(η_0y + A_y), with a common precision added if need be."""
        precision = -2 * natural.second
        precision = self._definite(precision[None])[0] if self._shared else self._definite(precision)
        log_prior = self.class_log_partition(
            Statistics(count=natural.count, first=natural.first, second=-0.5 * precision)
        )
        mean, covariance, whitener = self._solved(precision, natural.first)
        return GaussianParameters(log_prior - np.logaddexp.reduce(log_prior), mean + self._origin, covariance, whitener)


def positive_medians(columns: Array) -> Array:
    """Median of the positive ones of non-negative numbers (n, d), column by column; ∞ where there are none."""
    columns, n = np.sort(columns, axis=0), len(columns)
    zeros = n - np.count_nonzero(columns, axis=0)
    low, high = (np.minimum((zeros + n - odd) // 2, n - 1) for odd in (1, 0))
    every = np.arange(columns.shape[1])
    return np.where(zeros < n, 0.5 * (columns[low, every] + columns[high, every]), np.inf)
