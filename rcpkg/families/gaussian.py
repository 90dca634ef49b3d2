"""What all Gaussian classifiers share, whether their covariances are full or diagonal, shared or not."""

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics
from rcpkg.checks import check_number, gaps_refused
from rcpkg.families.family import equal_class_weights, safe_class_counts
from rcpkg.families.gaussian_features import Monomials
from rcpkg.families.gaussian_moments import GaussianMoments
from rcpkg.families.gaussian_prior import GaussianParameters, per_class
from rcpkg.families.statistics import Statistics

LOG_2PI = np.log(2 * np.pi)
RANGE = 1e-150, 1e150  # of what rows may differ in a feature: its square and the inverse of that can be represented
FAR_MEAN = 1e4  # typical deviations from the median; moments about a mean farther off lose digits
TYPICAL_ROWS = 1000  # rows from which medians and deviations are taken, if there are more


class GaussianFamily(GaussianMoments):
    """What the four Gaussian models share: all but the ``_form`` of their covariances.

    Statistics: Σ W_iy (1, x_i, x_i ⊗ x_i), where ⊗ is the outer product or, for independent features, the product
    feature by feature; the last is summed over the classes where they share their covariance. Moments are taken about
    ``origin_``, the mean of the rows that the model was first fitted to (zero before any fit), so that no digits are
    lost to a large mean; features that are constant in all rows (not ``varying_``) take no part.

    Predictions marginalise what a row lacks. Training rows may have gaps, too: where features are independent the
    statistics then have a further part, the weights ``seen`` (r, d) of the features, in the place of the counts; full
    covariances are estimated by EM, whose statistics are those of the completed rows.
    """

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        missing = np.isnan(X)
        unseen = missing.all(axis=0)
        check_number("singular_ridge", self.singular_ridge, 0)
        if unseen.any():
            if not self.singular_ridge:
                name = self._column_name(int(np.argmax(unseen)))
                raise ValueError(f"{name} holds missing values only: drop it, or set singular_ridge > 0")
            X, missing = np.where(unseen, 0.0, X), missing & ~unseen
        self._incomplete = bool(missing.any()) and not self._form.full
        if missing.any():
            X = np.where(missing, np.nanmedian(X, axis=0), X)
        check_number("rows_per_feature", self.rows_per_feature, 0)
        self.varying_ = np.ones(X.shape[1], dtype=bool)
        self._check_prior(X.shape[1])
        self._pseudo_scatter = self._named_prior = self._completed = None
        self.origin_, varies = self._origin_of(X)
        if self.singular_ridge:
            self.varying_ = varies
        self.origin_[unseen] = np.nan  # which no row tells

    def _origin_of(self, X: Array) -> tuple[Array, NDArray[np.bool_]]:
        """A point amid the rows, and which features vary; refuses differences that cannot be squared."""
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(over="ignore"):
            width = high - low
        self._check_range(width, (width > RANGE[1]) | ((width > 0) & (width < RANGE[0])))
        return np.where(width > 0, amid(X), low), width > 0

    def _check_range(self, width: Array, extreme: NDArray[np.bool_]) -> None:
        if extreme.any():
            j = int(np.argmax(extreme))
            raise InvalidStatistics(
                f"the values of {self._column_name(j)} differ by {width[j]:.3g}, whose square cannot be represented: "
                "rescale it"
            )

    @property
    def unseen(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.isnan(getattr(self, "origin_", 0.0)))

    def encode(self, X: Array) -> Array:
        """The features that vary."""
        varying = getattr(self, "varying_", None)
        return X if varying is None or varying.all() or X.shape[1] < len(varying) else X.compress(varying, axis=1)

    def decode(self, X: Array) -> Array:
        """Rows with the features that do not vary, too: the inverse of `encode`."""
        rows = np.tile(self.origin_, (len(X), 1))
        rows[:, self.varying_] = X
        return rows

    def covariances(self, parameters: GaussianParameters) -> Array:
        """Covariances of all features, zero for those that do not vary."""
        r, d = len(parameters.mean), len(self.varying_)
        covariances = self._form.each(self._form.from_diagonal(np.zeros(d)), r)
        covariances[self._form.block(np.flatnonzero(self.varying_))] = parameters.covariance
        return covariances

    def _feature_name(self, j: int) -> str:
        return self._column_name(int(np.flatnonzero(self.varying_)[j]) if hasattr(self, "varying_") else j)

    def _column_name(self, j: int) -> str:
        return super()._feature_name(j)

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """A feature that was constant so far, at the origin, and is no longer so, joins with moments of zero; likewise
        the weights of what is seen, where values are missing for the first time. Where the rows lie far from the origin
        it moves to them."""
        if self._form.full and np.isnan(X).any():
            raise ValueError(
                f"{self._column_name(int(np.isnan(X).any(axis=0).argmax()))} holds missing values, which further "
                "portions of rows do not take where covariances are full: fit all rows at once, impute the values, or "
                "leave such rows out"
            )
        missing, before = np.isnan(X), self.varying_
        X = np.where(missing, self.origin_, X)
        with np.errstate(over="ignore"):
            width = np.abs(X - self.origin_).max(axis=0)
        self._check_range(width, width > RANGE[1])
        self.varying_ = before | (width > 0)
        index, parts = np.flatnonzero(before[self.varying_]), dict(vars(statistics))
        parts["first"] = np.zeros((len(statistics.count), int(self.varying_.sum())))
        parts["second"] = np.zeros_like(self._form.outer(parts["first"], parts["first"]))
        parts["first"][:, index] = statistics.first
        parts["second"][self._form.block(index)] = statistics.second
        if self._incomplete or missing.any():
            parts["seen"] = np.repeat(statistics.count[:, None], len(parts["first"].T), axis=1)
            parts["seen"][:, index] = self._weight(statistics)
        self._incomplete = "seen" in parts
        return self._recentred(self.encode(X) - self._origin, Statistics(**parts))

    def _recentred(self, X: Array, statistics: Statistics) -> Statistics:
        """Moments about a point amid these further rows X, which are about the origin, in the features of which that
        halves the second moments: of moments about a point far off few digits are left for the scatter."""
        form, weight, first = self._form, self._weight(statistics), statistics.first
        power = form.total(self._power(statistics)) + (X * X).sum(axis=0)
        shift = amid(X)
        change = shift * (weight.sum(axis=0) + len(X)) - 2 * (first.sum(axis=0) + X.sum(axis=0))
        moves = -2 * shift * change > power
        if not moves.any():
            return statistics
        origin = self.origin_.copy()
        origin[self.varying_] += np.where(moves, shift, 0.0)
        shift = np.broadcast_to((origin - self.origin_)[self.varying_], first.shape)
        self.origin_ = origin
        second = statistics.second - (form.outer(first, shift) + form.outer(shift, first - weight * shift))
        return Statistics(**{**vars(statistics), "first": first - weight * shift, "second": second})

    def check_complete(self, X: Array) -> None:
        missing = np.isnan(X).any(axis=0)
        if missing.any():
            j = int(missing.argmax())
            name = self._column_name(j) if len(missing) == len(self.varying_) else self._feature_name(j)
            raise gaps_refused(name, "impute them")

    def same_form(self, other: object) -> bool:
        """With the same features that vary."""
        return super().same_form(other) and np.array_equal(self.varying_, other.varying_)

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + log N(x; μ_y, Σ_y), of the features that are not missing in the row."""
        X, form = self.encode(X), self._form
        log_prior, mean, covariance, A = parameters
        joint = form.distances(X, mean, A)
        joint *= -0.5
        joint += log_prior + form.log_det(A) - 0.5 * X.shape[1] * LOG_2PI
        gaps = np.flatnonzero(np.isnan(joint[:, 0]))
        gaps = gaps[np.isnan(X[gaps]).any(axis=1)]
        if len(gaps):
            seen = np.count_nonzero(~np.isnan(X[gaps]), axis=1)[:, None]
            squares, log_det = form.marginals(X[gaps], mean, covariance, A)
            joint[gaps] = log_prior - 0.5 * (squares + log_det + seen * LOG_2PI)
        return joint

    def expected_rows(self, X: Array, weights: Array, parameters: GaussianParameters) -> Array:
        """Σ_y W_iy E[x_i | what is there of x_i, y], shape (n, d)."""
        filled = self._form.expected(self.encode(X), weights, parameters.mean, parameters.covariance)
        return np.where(np.isnan(X), self.decode(filled), X)

    def scores(self, X: Array, natural: Statistics) -> Array:
        """η_0y + ⟨η_1y, x⟩ + ⟨η_2y, x ⊗ x⟩, with x about the origin."""
        X = self.encode(X) - self._origin
        return X @ natural.first.T + natural.count + self._form.forms(X, natural.second)

    def draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        X = rng.standard_normal((len(y), parameters.mean.shape[1]))
        roots = self._form.by_class(self._form.root(parameters.covariance))
        for c, mean in enumerate(parameters.mean):
            root = roots[0 if self._form.shared else c]
            X[y == c] = mean + self._form.transformed(X[y == c], root)
        return self.decode(X)

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Normal rows, given the means and scatter of these: of each class, or within all classes where shared."""
        X = self.encode(X)
        mean, Z = np.empty_like(X), rng.standard_normal(X.shape)
        classes = [y == c for c in np.unique(y)]
        for rows in classes:
            mean[rows] = X[rows].mean(axis=0)
            Z[rows] -= Z[rows].mean(axis=0)
        for rows in [slice(None)] if self._form.shared else classes:
            Z[rows] = self._form.with_scatter_of(Z[rows], (X - mean)[rows])
        return self.decode(mean + Z)

    def _from_moments(self, count: Array, mean: Array, scatter: Array) -> Statistics:
        first = count[:, None] * mean
        return Statistics(count=count, first=first, second=scatter + self._form.outer(first, mean))

    def settle(self, statistics: Statistics, n_rows: int) -> GaussianParameters | None:
        if statistics is self._completed:
            return None  # EM has decided
        if self._incomplete:
            self._check_seen(self._weight(statistics))
        return super().settle(statistics, n_rows)

    def class_log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super().class_log_prior(count)

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C).

        Where values are missing the weight n_yj of those seen stands in the place of s_0y.
        """
        log_prior = self.class_log_prior(statistics.count)
        if self._incomplete:
            self._check_seen(self._weight(statistics))
        m, (prior_mean, prior_scatter) = self.prior_strength, self._prior(statistics)
        mean = (m * prior_mean + statistics.first) / (m + self._weight(statistics))
        _, scatter, weight = self._moments(statistics)
        covariance = (prior_scatter + scatter) / self._form.over(m + weight)
        power = (self._form.diagonal(prior_scatter) + self._power(statistics)) / (m + weight)
        whitener = self._whitener(covariance, power, self._form.sum(statistics.count))
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts as those of categories, and the means and covariances that ``old`` + ``change`` has with these counts,
        covariances with their shrinkage dampened, so that they stay positive definite."""
        form, m, (_, prior) = self._form, self.prior_strength, self._prior(old)
        mean, scatter, weight = self._moments(old)
        count = safe_class_counts(old.count, change.count)
        if not (count > 0).all():  # in exact arithmetic a class keeps some weight
            raise InvalidStatistics("a class has lost all its weight, below the range of numbers; lower learning_rate")
        moved = count[:, None]
        shift = change.first - mean * change.count[:, None]
        about_mean = form.outer(mean, shift) + form.outer(change.first, mean)
        trial = scatter + change.second - (about_mean + form.outer(shift, shift / moved))
        weight, new_weight = form.over(m + weight), form.over(m + form.sum(moved))
        covariance = form.dampen((prior + trial) / new_weight, (prior + scatter) / weight)
        return self._from_moments(count, mean + shift / moved, new_weight * covariance - prior)

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
        form, (r, d), total = self._form, mean.shape, statistics.count.sum()
        scatter, prior = form.total(scatter), self._prior(statistics)[1]
        prior = prior if prior.ndim == scatter.ndim else prior.sum(axis=0)
        covariance = (prior + (scatter + between)) / (self.prior_strength + total)
        whitener = self._whitener(covariance, form.diagonal(covariance) + (mean**2).max(axis=0), total)
        covariance, whitener = form.each(covariance, r), form.each(whitener, r)
        size = float(r * form.pseudo_rows(d))
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener), size

    def mean_parameters(self, parameters: GaussianParameters) -> Statistics:
        """μ = p(y) (1, μ_y, Σ_y + μ_y ⊗ μ_y), the last summed over y where shared; of a row without gaps."""
        prior, mean = np.exp(parameters.log_prior), parameters.mean - self._origin
        covariance = parameters.covariance
        scatter = covariance if self._form.shared else per_class(prior, covariance) * covariance
        return self._from_moments(prior, mean, scatter)

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η = (log p(y) − ½ [⟨μ, Σ⁻¹μ⟩ + log|2πΣ|], Σ⁻¹μ, −½ Σ⁻¹), with μ about the origin."""
        log_prior, mean, _, A = parameters
        mean, precision = mean - self._origin, self._form.precision(A)
        first = self._form.times(precision, mean)
        count = log_prior - 0.5 * ((mean * first).sum(axis=1) + mean.shape[1] * LOG_2PI) + self._form.log_det(A)
        return Statistics(count=count, first=first, second=-0.5 * precision)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + ½ ⟨η_1y, P_y⁻¹ η_1y⟩ − ½ log|P_y/2π| with P_y = −2 η_2y."""
        precision, d = -2 * natural.second, natural.first.shape[1]
        squares = (natural.first * self._form.solve(precision, natural.first)).sum(axis=1)
        return natural.count + 0.5 * (squares - self._form.log_det_of(precision) + d * LOG_2PI)

    def feature_map(
        self,
        X: Array,
        kind: str = "minimal",
        statistics: Statistics | None = None,
        pooled: GaussianParameters | None = None,
    ) -> Monomials:
        """Monomials about the origin: of their root mean squares ("minimal"), or whitened by ``pooled``."""
        form, centre, factor = self._form, 0.0 if kind == "plain" else self._origin, None
        if kind == "minimal" and pooled is None:
            power = form.total(self._power(statistics))
            factor = form.from_diagonal(1 / np.sqrt(power / statistics.count.sum()))
        elif kind in ("minimal", "conditioned"):
            factor = form.by_class(pooled.whitener)[0].T
        return Monomials(self.encode(X), self._origin, centre, factor, form)

    def from_natural(self, natural: Statistics) -> GaussianParameters:
        """P_y = −2 η_2y, μ_y = P_y⁻¹ η_1y, p(y) ∝ exp(η_0y + A_y), with a common precision added if need be."""
        precision = self._form.definite(-2 * natural.second)
        log_prior = self.class_log_partition(
            Statistics(count=natural.count, first=natural.first, second=-0.5 * precision)
        )
        covariance, whitener = self._form.inverse(precision)
        mean = self._form.times(covariance, natural.first) + self._origin
        return GaussianParameters(log_prior - np.logaddexp.reduce(log_prior), mean, covariance, whitener)


def amid(X: Array) -> Array:
    """The mean of rows or, in features in which it lies far off, their median."""
    mean, some = X.mean(axis=0), X[:: -(-len(X) // TYPICAL_ROWS)]
    median = np.median(some, axis=0)
    return np.where(np.abs(mean - median) > FAR_MEAN * positive_medians(np.abs(some - median)), median, mean)


def positive_medians(columns: Array) -> Array:
    """Median of the positive ones of non-negative numbers (n, d), column by column; ∞ where there are none."""
    columns, n = np.sort(columns, axis=0), len(columns)
    zeros = n - np.count_nonzero(columns, axis=0)
    low, high = (np.minimum((zeros + n - odd) // 2, n - 1) for odd in (1, 0))
    every = np.arange(columns.shape[1])
    return np.where(zeros < n, 0.5 * (columns[low, every] + columns[high, every]), np.inf)
