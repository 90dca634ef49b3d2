"""What all Gaussian classifiers share, whether their covariances are full or diagonal, shared or not."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from rcpkg.base import Array, InvalidStatistics
from rcpkg.generative.closed_form import ConjugateClassifier, Statistics, equal_class_weights, safe_class_counts

EPS = np.finfo(float).eps
LOG_2PI = np.log(2 * np.pi)
INDEFINITE = 1e-12  # least eigenvalue of a precision, relative to the mean size of all, that counts as positive
LEAST_PRECISION = 0.1  # what it is raised to if it does not


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
    that no digits are lost to a large mean.
    """

    _shared: bool
    _remedies: str  # what to do about an invalid covariance, beside a prior

    def __init__(
        self,
        *,
        prior_strength: float = 0.0,
        prior_mean: float | ArrayLike = 0.0,
        prior_covariance: float | ArrayLike = 1.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
    ) -> None:
        super().__init__(prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors)
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance

    def _outer(self, a: Array, b: Array) -> Array:
        """a_y ⊗ b_y for each class y."""
        raise NotImplementedError

    def _diagonal(self, covariance: Array) -> Array:
        raise NotImplementedError

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        """Whitening factors A; `InvalidStatistics` where a covariance is not positive definite beyond rounding.

        The covariance is the difference of ``power`` and a square, and bears rounding errors in proportion to it.
        """
        raise NotImplementedError

    def _target_size(self, r: int, d: int) -> float:
        """Size of the pooled and grand targets: as many rows as make their statistics interior."""
        raise NotImplementedError

    def _dampen(self, trial: Array, old: Array) -> Array:
        """``trial`` covariances made positive definite: its eigenvalues relative to ``old`` go through `dampened`."""
        raise NotImplementedError

    def _prepare(self, X: Array) -> None:
        super()._prepare(X)
        self._check_prior(X.shape[1])
        self.origin_ = X.mean(axis=0)

    def _check_prior(self, d: int) -> None:
        mean, covariance = np.asarray(self.prior_mean, dtype=float), self._prior_covariance(d)
        if mean.shape not in ((), (d,)) or not np.isfinite(mean).all():
            raise ValueError(
                f"prior_mean must be a finite number or {d} of them, one a feature; got {self.prior_mean!r}"
            )
        shape = self._outer(np.zeros((1, d)), np.zeros((1, d))).shape[1:]
        try:
            if covariance.shape != shape or not np.allclose(covariance, covariance.T):
                raise InvalidStatistics
            self._whitener(covariance, covariance, np.ones(1))
        except InvalidStatistics:
            raise ValueError(
                "prior_covariance must be a positive number, or a symmetric and positive definite array of shape "
                f"{shape}; got {self.prior_covariance!r}"
            ) from None

    @property
    def _origin(self) -> Array | float:
        return getattr(self, "origin_", 0.0)

    def _sum(self, by_class: Array) -> Array:
        return by_class.sum(axis=0) if self._shared else by_class

    def _moments(self, s: Statistics) -> tuple[Array, Array, Array]:
        """Sample means, the scatter about them, and its weight; the last two summed over the classes where shared."""
        mean = s.first / s.count[:, None]
        outer = self._outer(mean, mean)
        count = _like(s.count, outer)
        return mean, s.second - self._sum(count * outer), self._sum(count)

    def _from_moments(self, count: Array, mean: Array, scatter: Array) -> Statistics:
        first = count[:, None] * mean
        return Statistics(count=count, first=first, second=scatter + self._sum(self._outer(first, mean)))

    def _log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super()._log_prior(count)

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C)."""
        log_prior = self._log_prior(statistics.count)
        m, prior = self.prior_strength, self._prior_covariance(statistics.first.shape[1])
        mean = (m * (np.asarray(self.prior_mean) - self._origin) + statistics.first) / (m + statistics.count)[:, None]
        _, scatter, weight = self._moments(statistics)
        covariance = (m * prior + scatter) / (m + weight)
        power = (m * prior + statistics.second) / (m + weight)
        whitener = self._whitener(covariance, power, statistics.count)
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)

    def _check_variances(self, covariance: Array, power: Array, count: Array) -> None:
        low = ~(self._diagonal(covariance) > 100 * EPS * np.abs(self._diagonal(power)))
        if low.any():
            y, j = np.argwhere(np.atleast_2d(low))[0]
            self._refuse(f"{self._feature_name(j)} has no positive variance", y, count, low.shape[-1])

    def _refuse(self, fault: str, y: int, count: Array, d: int) -> None:
        where = "the classes" if self._shared else self._class_name(y)
        n = count.sum() if self._shared else count[y]
        raise InvalidStatistics(
            f"{fault} within {where}, with n = {n:.6g} rows for d = {d} features (too few or degenerate rows, or an "
            f"update of the statistics that went too far): {self._remedies}, or set prior_strength > 0"
        )

    def _prior_covariance(self, d: int) -> Array:
        """Σ₀ as an array, a number standing for its multiple of the identity."""
        raise NotImplementedError

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """Class after class takes on its new statistics where they give a positive definite covariance."""
        kept = old
        for y in range(len(old.count)):
            mine = np.arange(len(old.count)) == y
            second = kept.second if self._shared else np.where(_like(mine, old.second), new.second, kept.second)
            kept = self._if_valid(
                Statistics(
                    count=np.where(mine, new.count, kept.count),
                    first=np.where(mine[:, None], new.first, kept.first),
                    second=second,
                ),
                kept,
            )
        if self._shared:
            kept = self._if_valid(Statistics(count=kept.count, first=kept.first, second=new.second), kept)
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
        m, prior = self.prior_strength, self._prior_covariance(old.first.shape[1])
        mean, scatter, weight = self._moments(old)
        count = safe_class_counts(old.count, change.count)
        shift = change.first - mean * change.count[:, None]
        about_mean = self._outer(mean, shift) + self._outer(change.first, mean)
        trial = scatter + change.second - self._sum(about_mean + self._outer(shift, shift / count[:, None]))
        new_weight = self._sum(_like(count, about_mean))
        covariance = self._dampen((m * prior + trial) / (m + new_weight), (m * prior + scatter) / (m + weight))
        return self._from_moments(count, mean + shift / count[:, None], (m + new_weight) * covariance - m * prior)

    def pooled_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Observed class weights and means, and the pooled within-class covariance; r(d + 1) pseudo-rows, or 2r for
        independent features."""
        log_prior = self._log_prior(statistics.count)
        mean, scatter, _ = self._moments(statistics)
        within = scatter if self._shared else scatter.sum(axis=0)
        return self._common_covariance(log_prior, mean, within, statistics.count.sum())

    def grand_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Equal class weights, and for every class the mean and the covariance of all rows."""
        log_prior = equal_class_weights(self._log_prior(statistics.count))
        _, scatter, _ = self._moments(statistics)
        total, r = statistics.count.sum(), len(statistics.count)
        mean = np.tile(statistics.first.sum(axis=0) / total, (r, 1))
        within = scatter if self._shared else scatter.sum(axis=0)
        deviation = statistics.first / statistics.count[:, None] - mean
        between = self._outer(deviation * statistics.count[:, None], deviation).sum(axis=0)
        return self._common_covariance(log_prior, mean, within + between, total)

    def _common_covariance(
        self, log_prior: Array, mean: Array, scatter: Array, total: float
    ) -> tuple[GaussianParameters, float]:
        """Parameters with the ML or MAP covariance of all rows, and the pseudo-rows they count for."""
        r, d = mean.shape
        m, prior = self.prior_strength, self._prior_covariance(d)
        covariance = (m * prior + scatter) / (m + total)
        if not self._shared:
            covariance = np.tile(covariance, (r, *[1] * covariance.ndim))
        power = covariance + self._outer(mean, mean).max(axis=0)
        whitener = self._whitener(covariance, power, np.full(r, total))
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
        return GaussianParameters(log_prior - logsumexp(log_prior), mean + self._origin, covariance, whitener)


def _like(by_class: Array, array: Array) -> Array:
    """One number a class, shaped to multiply ``array``, whose first axis is the class."""
    return by_class.reshape(-1, *[1] * (array.ndim - 1))
