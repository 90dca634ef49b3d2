"""What all Gaussian classifiers share, whether their covariances are full or diagonal, shared or not."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, InvalidStatistics
from rcpkg.checks import check_number, check_numbers
from rcpkg.families.family import ConjugateClassifier, equal_class_weights, safe_class_counts
from rcpkg.families.gaussian_features import Monomials
from rcpkg.families.statistics import Statistics

EPS = np.finfo(float).eps
LOG_2PI = np.log(2 * np.pi)
INDEFINITE = 1e-12  # least eigenvalue of a precision, relative to the mean size of all, that counts as positive
LEAST_PRECISION = 0.1  # what it is raised to if it does not
ROUNDING = 100 * EPS  # a variance counts as positive if it exceeds this share of the second moment it is taken from
RANGE = 1e-150, 1e150  # of what rows may differ in a feature: its square and the inverse of that can be represented
FAR_MEAN = 1e4  # typical deviations from the median; moments about a mean farther off lose digits
TYPICAL_ROWS = 1000  # rows from which medians and deviations are taken, if there are more


class GaussianParameters(NamedTuple):
    """Class log probabilities (r,), means (r, d), and covariances.

    ``covariance`` is (r, d, d) or, shared by the classes, (d, d); for independent features the variances (r, d) or
    (d,). ``whitener`` is A = L⁻¹ with L the Cholesky factor of the covariance, or 1/σ: A(x − μ) has unit covariance.
    """

    log_prior: Array
    mean: Array
    covariance: Array
    whitener: Array


class GaussianClassifier(ConjugateClassifier):
    """What the four Gaussian models share.

    Statistics: Σ W_iy (1, x_i, x_i ⊗ x_i), where ⊗ is the outer product or, for independent features, the product
    feature by feature; the last is summed over the classes where they share their covariance (``_shared``). Moments
    are taken about ``origin_``, the mean of the rows that the model was first fitted to (zero before any fit), so
    that no digits are lost to a large mean; features that are constant in all rows (not ``varying_``) take no part.

    A covariance that is singular, or of few rows, has a prior, the pseudo-statistics s⁰ = (0, 0, D) of
    `_pseudo_scatter`: θ(s) is the maximum of the likelihood at s + s⁰. They are decided once, by the rows of the closed
    form (`settle`), and do not change with s: learners that move s move s + s⁰, by the same steps, in the same
    exponential family.
    """

    _full: bool
    _shared: bool
    _remedies: str  # what to do about an invalid covariance, beside a prior
    _pseudo_scatter: Array | None = None  # D
    _named_prior: tuple[Array, Array] | None = None  # μ₀ = "grand" and Σ₀ = "pooled", by the rows of the closed form

    def __init__(
        self,
        *,
        prior_strength: float = 0.0,
        prior_mean: str | float | ArrayLike = 0.0,
        prior_covariance: str | float | ArrayLike = 1.0,
        class_prior_strength: float | None = None,
        singular_ridge: float = 2.0,
        rows_per_feature: float = 3.0,
        priors: ArrayLike | None = None,
    ) -> None:
        super().__init__(prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors)
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance
        self.singular_ridge = singular_ridge
        self.rows_per_feature = rows_per_feature

    def _outer(self, a: Array, b: Array) -> Array:
        """a_y ⊗ b_y for each class y."""
        raise NotImplementedError

    def _diagonal(self, covariance: Array) -> Array:
        raise NotImplementedError

    def _from_diagonal(self, variances: Array) -> Array:
        """Covariances with these variances and no correlations."""
        raise NotImplementedError

    def _block(self, index: NDArray[np.intp]) -> tuple:
        """Index of the covariances, or second moments, of some features, after that of the class, if there is one."""
        raise NotImplementedError

    def _constant_directions(self, total: Array, power: Array) -> tuple[Array, int]:
        """A covariance, with variances 1 in proper units, of the directions in which no rows differ; and its rank."""
        raise NotImplementedError

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        """Whitening factors A; `InvalidStatistics` where a covariance is not positive definite beyond rounding.

        The covariance is the difference of ``power`` and a square, and bears rounding errors in proportion to it.
        ``count`` are the rows of each class or, where the covariance is that of all classes, their number.
        """
        raise NotImplementedError

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
        typical = _positive_medians(deviation)
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

    def extended(self, X: Array, statistics: Statistics) -> Statistics:
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

    def settle(self, statistics: Statistics, n_rows: int) -> GaussianParameters | None:
        """Decide by the statistics of the closed form on the prior that is relative to the rows."""
        self._pseudo_scatter = self._named_prior = None
        self._check_positive(statistics.count)
        if not self.varying_.any():
            raise InvalidStatistics("all rows of X are equal: no feature has a variance to tell the classes by")
        if not self.prior_strength and self.singular_ridge:
            if not self._lack(statistics, n_rows, statistics.first.shape[1]):
                try:
                    return self.parameters(statistics)
                except InvalidStatistics:
                    pass  # the ridge is for it
            ridge = self._ridge(statistics, n_rows)
            self._pseudo_scatter = ridge if ridge.any() else None
        elif self.prior_strength and (_is_name(self.prior_mean) or _is_name(self.prior_covariance)):
            self._named_prior = self._rows_as_prior(statistics)
        return None

    def _rows_as_prior(self, statistics: Statistics) -> tuple[Array, Array]:
        """The mean of all rows, about the origin, and their pooled covariance, with the ridge if it is singular."""
        n = self._total_weight(statistics)
        _, scatter, _ = self._moments(statistics)
        within = scatter if self._shared else scatter.sum(axis=0)
        power = statistics.second if self._shared else statistics.second.sum(axis=0)
        try:
            self._whitener(within / n, power / n, statistics.count.sum())
        except InvalidStatistics:
            if not self.singular_ridge:
                raise
            ridge = self._ridge(statistics)
            within = within + (ridge if self._shared else ridge.sum(axis=0))
        return statistics.first.sum(axis=0) / n, within / n

    def _lack(self, statistics: Statistics, n_rows: int, d: int) -> float:
        """The part max(κ − ν/d, 0) of the ridge that all covariances have for want of rows; κ is ``rows_per_feature``.

        d is the dimension of the rows, and ν the degrees of freedom of a covariance: the rows that it is taken from, of
        a class on average, less the means that are estimated from them. Weights count as rows, but the ``n_rows`` do
        not count for less than one each, so that weights that sum to one make no rows few.
        """
        r = len(statistics.count)
        degrees = max(statistics.count.sum(), n_rows) - r
        return max(self.rows_per_feature - max(degrees if self._shared else degrees / r, 0.0) / d, 0.0)

    def _ridge(self, statistics: Statistics, n_rows: int | None = None) -> Array:
        """D: scatter in addition to that of the rows, with t = ``singular_ridge`` times a row's for each row.

        For all classes, variances t in the directions in which the rows do not differ at all, where it makes no
        difference to posteriors; for a class whose covariance is still singular, t times the variance of each feature
        within the classes, or in all rows where it has none within any of them. Where rows are few, all classes have
        the part `_lack` of the latter, more than all of it where that exceeds one; without ``n_rows`` they are not few.
        """
        t, n = self.singular_ridge, self._total_weight(statistics)
        _, scatter, weight = self._moments(statistics)
        within = scatter if self._shared else scatter.sum(axis=0)
        power = (statistics.second if self._shared else statistics.second.sum(axis=0)) / n
        total = (within + self._between(statistics)) / n
        variances = np.ones(statistics.first.shape[1])
        for covariance in total, within / n:
            own = self._diagonal(covariance)
            variances = np.where(own > ROUNDING * self._diagonal(power), own, variances)
        directions, n_constant = self._constant_directions(total, power)
        lack = 0.0 if n_rows is None else self._lack(statistics, n_rows, len(variances) - n_constant)
        base, full = t * directions, t * self._from_diagonal(variances)
        of_few, of_singular = max(1 - lack, 0.0) * base + lack * full, max(1.0, lack) * full
        if self._shared:
            valid = self._is_valid(within / n + base, power + base, statistics.count.sum())
            return n * (of_few if valid else of_singular)
        parts = zip(scatter / weight, statistics.second / weight, statistics.count)
        valid = [self._is_valid((S + base)[None], (P + base)[None], c[None]) for S, P, c in parts]
        return weight * np.where(_like(np.array(valid), weight), of_few, of_singular)

    def _is_valid(self, covariance: Array, power: Array, count: Array) -> bool:
        try:
            self._whitener(covariance, power, count)
        except InvalidStatistics:
            return False
        return True

    def _check_prior(self, d: int) -> None:
        if isinstance(self.prior_mean, str):
            if self.prior_mean != "grand":
                raise ValueError(f"prior_mean must be numbers or 'grand'; got {self.prior_mean!r}")
        elif check_numbers("prior_mean", self.prior_mean).shape not in ((), (d,)):
            raise ValueError(
                f"prior_mean must be 'grand', a finite number or {d} of them, one a feature; got {self.prior_mean!r}"
            )
        if isinstance(self.prior_covariance, str):
            if self.prior_covariance not in ("pooled", "diagonal"):
                raise ValueError(
                    f"prior_covariance must be numbers, 'pooled' or 'diagonal'; got {self.prior_covariance!r}"
                )
            return
        covariance = self._covariance_of(self.prior_covariance, d)
        shape = self._from_diagonal(np.zeros(d)).shape
        symmetric = covariance.shape == shape and np.allclose(covariance, covariance.T)
        if not symmetric or not self._is_valid(covariance, covariance, np.array(1.0)):
            raise ValueError(
                "prior_covariance must be 'pooled', 'diagonal', a positive number, or a symmetric and positive "
                f"definite array of shape {shape}; got {self.prior_covariance!r}"
            )

    def _covariance_of(self, prior: float | ArrayLike, d: int) -> Array:
        """Σ₀ as an array, a number standing for its multiple of the identity."""
        covariance = check_numbers("prior_covariance", prior)
        return covariance * self._from_diagonal(np.ones(d)) if covariance.ndim == 0 else covariance

    def _prior(self, statistics: Statistics) -> tuple[Array | float, Array]:
        """μ₀ about the origin, and the scatter m Σ₀ + D."""
        m, d = self.prior_strength, statistics.first.shape[1]
        if m == 0:
            zero = np.zeros_like(self._from_diagonal(np.zeros(d)))
            return 0.0, zero if self._pseudo_scatter is None else self._pseudo_scatter
        varying = getattr(self, "varying_", np.ones(d, dtype=bool))
        grand, pooled = self._named_prior or (None, None)
        if (_is_name(self.prior_mean) or _is_name(self.prior_covariance)) and grand is None:
            grand, pooled = self._rows_as_prior(statistics)
        mean, covariance = self.prior_mean, self.prior_covariance
        mean = grand if _is_name(mean) else np.broadcast_to(mean, len(varying))[varying] - self._origin
        if not _is_name(covariance):
            index = self._block(np.flatnonzero(varying))
            covariance = self._covariance_of(covariance, len(varying))[index]
        else:
            covariance = pooled if covariance == "pooled" else self._from_diagonal(self._diagonal(pooled))
        return mean, m * covariance

    @property
    def has_prior(self) -> bool:
        """Whether parameters are those of MAP, or a singular covariance has its ridge."""
        return super().has_prior or self._pseudo_scatter is not None

    def without_prior(self) -> Self:
        """This model with the parameters of maximum likelihood."""
        model = super().without_prior()
        model._pseudo_scatter = model._named_prior = None
        return model

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

    @property
    def _origin(self) -> Array | float:
        origin = getattr(self, "origin_", 0.0)
        return origin if np.ndim(origin) == 0 or self.varying_.all() else origin[self.varying_]

    def _sum(self, by_class: Array) -> Array:
        return by_class.sum(axis=0) if self._shared else by_class

    def _weight(self, s: Statistics) -> Array:
        """Weights of the means: (r, 1), those of the classes, or where values are missing (r, d)."""
        return s.count[:, None]

    def _total_weight(self, s: Statistics) -> Array:
        """The weight of all rows or, where values are missing, of those seen of each feature."""
        return s.count.sum()

    def _moments(self, s: Statistics) -> tuple[Array, Array, Array]:
        """Sample means, the scatter about them, and its weight; the last two summed over the classes where shared."""
        weight = self._weight(s)
        mean = np.divide(s.first, weight, out=np.zeros_like(s.first), where=weight > 0)
        outer = self._outer(mean, mean)
        weight = _shaped(weight, outer)
        return mean, s.second - self._sum(weight * outer), self._sum(weight)

    def _from_moments(self, count: Array, weight: Array, mean: Array, scatter: Array) -> Statistics:
        first = weight * mean
        return Statistics(count=count, first=first, second=scatter + self._sum(self._outer(first, mean)))

    def _safe_weight(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Weights of the means after a safe update, which gives the classes these counts."""
        return count[:, None]

    def _log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super()._log_prior(count)

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C)."""
        log_prior = self._log_prior(statistics.count)
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

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """Class after class takes on its new statistics where they give a positive definite covariance."""
        kept, fresh = old, vars(new)
        by_class = [name for name in fresh if not (self._shared and name == "second")]
        for y in range(len(old.count)):
            mine, parts = np.arange(len(old.count)) == y, vars(kept)
            moved = {name: np.where(_like(mine, parts[name]), fresh[name], parts[name]) for name in by_class}
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
        new_weight = self._sum(_shaped(moved, about_mean))
        covariance = self._dampen((prior + trial) / (m + new_weight), (prior + scatter) / (m + weight))
        return self._from_moments(count, moved, mean + shift / moved, (m + new_weight) * covariance - prior)

    def pooled_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Observed class weights and means, and the pooled within-class covariance; r(d + 1) pseudo-rows, or 2r for
        independent features."""
        log_prior = self._log_prior(statistics.count)
        mean, scatter, _ = self._moments(statistics)
        return self._common_covariance(log_prior, mean, scatter, statistics)

    def grand_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Equal class weights, and for every class the mean and the covariance of all rows."""
        log_prior = equal_class_weights(self._log_prior(statistics.count))
        _, scatter, _ = self._moments(statistics)
        mean = np.tile(statistics.first.sum(axis=0) / statistics.count.sum(), (len(statistics.count), 1))
        return self._common_covariance(log_prior, mean, scatter, statistics, self._between(statistics))

    def _between(self, statistics: Statistics) -> Array:
        """Scatter of the class means about the mean of all rows."""
        weight = self._weight(statistics)
        deviation = statistics.first / weight - statistics.first.sum(axis=0) / self._total_weight(statistics)
        return self._outer(deviation * weight, deviation).sum(axis=0)

    def _common_covariance(
        self, log_prior: Array, mean: Array, scatter: Array, statistics: Statistics, between: Array | float = 0.0
    ) -> tuple[GaussianParameters, float]:
        """Parameters with the ML or MAP covariance of all rows, and the pseudo-rows they count for."""
        (r, d), m, total = mean.shape, self.prior_strength, statistics.count.sum()
        prior = self._prior(statistics)[1]
        if not self._shared:
            scatter = scatter.sum(axis=0)
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
            second=self._sum(_like(prior, outer) * (parameters.covariance + outer)),
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
            power = statistics.second if self._shared else statistics.second.sum(axis=0)
            factor = 1 / np.sqrt(self._diagonal(power) / statistics.count.sum())
        elif kind == "conditioned":
            factor = (pooled.whitener if self._shared else pooled.whitener[0]).T
        return Monomials(self.encode(X), self._origin, centre, factor, self._full, self._shared)

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


def _positive_medians(columns: Array) -> Array:
    """Median of the positive ones of non-negative numbers (n, d), column by column; ∞ where there are none."""
    columns, n = np.sort(columns, axis=0), len(columns)
    zeros = n - np.count_nonzero(columns, axis=0)
    low, high = (np.minimum((zeros + n - odd) // 2, n - 1) for odd in (1, 0))
    every = np.arange(columns.shape[1])
    return np.where(zeros < n, 0.5 * (columns[low, every] + columns[high, every]), np.inf)


def _like(by_class: Array, array: Array) -> Array:
    """One number a class, shaped to multiply ``array``, whose first axis is the class."""
    return by_class.reshape(-1, *[1] * (array.ndim - 1))


def _shaped(weight: Array, outer: Array) -> Array:
    """Weights of means, (r, 1) or (r, d), shaped to multiply outer products."""
    return weight if outer.ndim == 2 else weight[:, :, None]


def _is_name(prior: object) -> bool:
    """Whether a prior is named, and hence taken from the rows."""
    return isinstance(prior, str)
