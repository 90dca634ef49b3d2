"""Priors of Gaussian classes: of MAP, named or given, and the ridge of covariances that are singular or of few rows."""

from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics, constructed
from rcpkg.checks import LARGEST, check_numbers, refusal, warn
from rcpkg.families.constants import VARIANCE_ROUNDING
from rcpkg.families.covariances import CovarianceForm, Fault
from rcpkg.families.family import Family, PriorSettings
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import Numbers, ratio


class GaussianParameters(NamedTuple):
    """Class log probabilities (r,), means (r, d), and covariances.

    ``covariance`` is (r, d, d) or, shared by the classes, (d, d); for independent features the variances (r, d) or
    (d,). ``whitener`` is A with AᵀA = Σ⁻¹, or 1/σ, so that A(x − μ) has unit covariance: L⁻¹ with L the Cholesky factor
    of the covariance or, where natural parameters give the model, the upper Cholesky factor of the precision.

    >>> from rcpkg import GaussianNB
    >>> theta = GaussianNB(rows_per_feature=0.0).fit([[0.0], [2.0], [5.0], [9.0]], [0, 0, 1, 1]).parameters_
    >>> theta.mean.tolist(), theta.covariance.tolist(), theta.whitener.tolist()
    ([[1.0], [7.0]], [[1.0], [4.0]], [[1.0], [0.5]])
    """

    log_prior: Array
    mean: Array
    covariance: Array
    whitener: Array


@constructed
class GaussianSettings(PriorSettings):
    """Settings of the Gaussian models: their prior, and the ridge of covariances that are singular or of few rows."""

    prior_strength: float = 0.0
    prior_mean: float | Numbers | Literal["grand"] = 0.0
    prior_covariance: float | Numbers | Literal["pooled", "diagonal"] = 1.0
    singular_ridge: float = 2.0
    rows_per_feature: float = 3.0


class GaussianPrior(GaussianSettings, Family):
    """Class weights, moments and their prior; whether covariances are full or diagonal a subclass says.

    A covariance that is singular, or of few rows, has a prior, the pseudo-statistics s⁰ = (0, 0, D) of
    `_pseudo_scatter`: θ(s) is the maximum of the likelihood at s + s⁰. They are decided once, by the rows of the closed
    form (`fix_prior`), and do not change with s: learners that move s move s + s⁰, by the same steps, in the same
    exponential family.
    """

    shape: CovarianceForm
    _remedies: str
    varying_: ClassVar[NDArray[np.bool_]]  # of the features, whether they take part
    _pseudo_scatter: ClassVar[Array | None] = None  # D
    _named_prior: ClassVar[tuple[Array, Array] | None] = None  # μ₀ and Σ₀, by the rows of the closed form

    @property
    def _origin(self) -> Array | float:
        origin = getattr(self, "origin_", 0.0)
        return origin if np.ndim(origin) == 0 or self.varying_.all() else origin[self.varying_]

    def _weight(self, s: Statistics) -> Array:
        """Weights of the means: (r, 1), those of the classes, or where values are missing (r, d), of those seen."""
        return vars(s).get("seen", s.count[:, None])

    def _means_and_scatter(self, s: Statistics) -> tuple[Array, Array, Array]:
        """Sample means, the scatter about them, and its weight by feature; the last two summed where shared."""
        weight = self._weight(s)
        mean = ratio(s.first, weight)
        return mean, s.second - self.shape.outer(weight * mean, mean), self.shape.sum(weight)

    def _between(self, statistics: Statistics) -> Array:
        """Scatter of the class means about the mean of all rows."""
        weight = self._weight(statistics)
        deviation = self._means_and_scatter(statistics)[0] - statistics.first.sum(axis=0) / weight.sum(axis=0)
        return self.shape.total(self.shape.outer(deviation * weight, deviation))

    def _power(self, statistics: Statistics) -> Array:
        """Second moments of each feature, beneath its variance."""
        return self.shape.diagonal(statistics.second)

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        """Whiteners; `InvalidStatistics` where a covariance is not positive definite beyond the rounding of ``power``.

        ``count`` are the rows of each class or, where the covariance is that of all classes, their number.
        """
        found = self.shape.whitener(covariance, power)
        if not isinstance(found, Fault):
            return found
        where, n = ("the classes", count) if np.ndim(count) == 0 else (self._class_name(found.y), count[found.y])
        name = self._feature_name(found.feature)
        fault = f"the covariance matrix is not positive definite ({name} depends on others)"
        ridge = "" if self.singular_ridge else "singular_ridge > 0 or "
        raise InvalidStatistics(
            f"{fault if found.depends else f'{name} has no positive variance'} within {where}, with n = {n:.6g} rows "
            f"for d = {power.shape[-1]} features (too few or degenerate rows, or an update of the statistics that went "
            f"too far): {self._remedies}, or set {ridge}prior_strength > 0"
        )

    def fix_prior(self, statistics: Statistics, n_rows: int) -> GaussianParameters | None:
        """Decide by the statistics of the closed form on the prior that is relative to the rows."""
        self._pseudo_scatter = self._named_prior = None
        self._check_positive(statistics.count)
        if not self.varying_.any():
            name = super()._feature_name(0)
            warn(f"all rows of X are equal, or of a block of it ({name}, …): no feature varies or tells classes apart")
            return None
        if self.prior_strength and (_is_name(self.prior_mean) or _is_name(self.prior_covariance)):
            self._named_prior = self._rows_as_prior(statistics)
        if self.prior_strength:
            self._check_units(statistics)
        if not self.singular_ridge:
            return None
        if not self._want_of_rows(statistics, n_rows, statistics.first.shape[1]):
            try:  # by the rows alone, so that parameters are continuous in the prior_strength
                found = self.without_prior().parameters(statistics)
                return None if self.has_prior else found
            except InvalidStatistics:
                pass  # the ridge is for it
        ridge = self._ridge(statistics, n_rows)
        self._pseudo_scatter = ridge if ridge.any() else None
        return None

    def _check_units(self, statistics: Statistics) -> None:
        """Refuse a prior so far from the rows, in units of their variances, that its fourth moments overflow."""
        total, (mean, scatter) = self._weight(statistics).sum(axis=0), self._prior(statistics)
        variance = self.shape.total(self._power(statistics)) / total
        with np.errstate(over="ignore"):
            squares = {"prior_covariance": self.shape.diagonal(scatter) / self.prior_strength, "prior_mean": mean**2}
            for name, square in squares.items():
                if (square / variance > np.sqrt(LARGEST)).any():
                    raise refusal(name, "be in the units of X, whose variances are lost beside it", getattr(self, name))

    def _rows_as_prior(self, statistics: Statistics) -> tuple[Array, Array]:
        """The mean of all rows, about the origin, and their pooled covariance, with the ridge if it is singular."""
        form, n = self.shape, self._weight(statistics).sum(axis=0)
        within, power = form.total(self._means_and_scatter(statistics)[1]), form.total(self._power(statistics))
        try:
            self._whitener(within / form.over(n), power / n, statistics.count.sum())
        except InvalidStatistics:
            if not self.singular_ridge:
                raise
            within = within + form.total(self._ridge(statistics))
        return statistics.first.sum(axis=0) / n, within / form.over(n)

    def _want_of_rows(self, statistics: Statistics, n_rows: int, d: int) -> float:
        """The part max(κ − ν/d, 0) of the ridge that all covariances have for want of rows; κ is ``rows_per_feature``.

        d is the dimension of the rows, and ν the degrees of freedom of a covariance: the rows that it is taken from, of
        a class on average, less the means that are estimated from them, and the pseudo-rows of the prior. Weights count
        as rows, but the ``n_rows`` do not count for less than one each, so that weights that sum to one make no rows
        few.
        """
        r = len(statistics.count)
        degrees = max(statistics.count.sum(), n_rows) - r
        degrees = max(degrees if self.shape.shared else degrees / r, 0.0) + self.prior_strength
        return max(self.rows_per_feature - degrees / d, 0.0)

    def _ridge(self, statistics: Statistics, n_rows: int | None = None) -> Array:
        """D: scatter in addition to that of the rows, with t = ``singular_ridge`` times a row's for each row.

        For all classes, variances t in the directions in which the rows do not differ at all; for a class whose
        covariance is still singular, t times the variance of each feature within the classes, or in all rows, divided
        by the number of those off the commonest value, where it has none within any class but differs between them.
        Where rows are few, all classes have the part `_want_of_rows` of the latter; without ``n_rows`` they are not.
        """
        form, t, n = self.shape, self.singular_ridge, self._weight(statistics).sum(axis=0)
        _, scatter, weight = self._means_and_scatter(statistics)
        within, power = form.total(scatter), form.total(self._power(statistics)) / n
        total, within = (within + self._between(statistics)) / form.over(n), within / form.over(n)
        variances = np.ones(statistics.first.shape[1])
        by_total, by_within = (form.diagonal(covariance) > VARIANCE_ROUNDING * power for covariance in (total, within))
        variances[by_total] = form.diagonal(total)[by_total]
        rows = max(n.max(), n_rows or 0.0)
        tells = by_total & ~by_within  # the classes apart, all by itself: the more surely, the more rows say so
        if tells.any() and rows > len(statistics.count):
            name = self._feature_name(int(np.argmax(tells)))
            warn(
                f"{name} is constant within each class, and not the same in all: it tells classes apart without error, "
                "and its variance is taken for singular_ridge times that in all rows, divided by the number of those "
                "off its commonest value. Give it to CategoricalNB, as a block of a ProductModel, if it is a category; "
                "see whether it was made from the labels"
            )
            variances[tells] /= np.maximum(rows * self._off_the_commonest(statistics)[tells], 1.0)
        variances[by_within] = form.diagonal(within)[by_within]
        (base, n_constant), full = form.constant_directions(total, power), t * form.from_diagonal(variances)
        lack = 0.0 if n_rows is None else self._want_of_rows(statistics, n_rows, len(variances) - n_constant)
        if lack >= 1:
            return form.over(weight) * form.each(lack * full, len(statistics.count))
        base = t * base
        of_few = (1 - lack) * base + lack * full
        rows = np.where(weight > 0, weight, 1.0)  # of a class that has no values of a feature
        parts = zip(*map(form.by_class, (scatter / form.over(rows), self._power(statistics) / rows)))
        valid = [not isinstance(form.whitener((S + base)[None], P + form.diagonal(base)), Fault) for S, P in parts]
        chosen = [of_few if sound else full for sound in valid]
        return form.over(weight) * (chosen[0] if form.shared else np.array(chosen))

    def _off_the_commonest(self, statistics: Statistics) -> Array:
        """The share of rows that differ from the commonest value of a feature that is constant within each class: so
        many rows say that it tells classes apart. Values are equal where a class that had both would be constant."""
        weight = self._weight(statistics)
        values, power = ratio(statistics.first, weight), self.shape.total(self._power(statistics)) / weight.sum(axis=0)
        near = np.square(values[:, None] - values) <= VARIANCE_ROUNDING * power
        return 1 - np.einsum("abj,bj->aj", near, np.broadcast_to(weight, values.shape)).max(axis=0) / weight.sum(axis=0)

    def _check_prior(self, d: int) -> None:
        if _is_name(self.prior_mean):
            if self.prior_mean != "grand":
                raise refusal("prior_mean", "be numbers or 'grand'", self.prior_mean)
        elif check_numbers("prior_mean", self.prior_mean, self).shape not in ((), (d,)):
            raise refusal("prior_mean", f"be 'grand', a finite number or {d} of them, one a feature", self.prior_mean)
        if _is_name(self.prior_covariance):
            if self.prior_covariance not in ("pooled", "diagonal"):
                raise refusal("prior_covariance", "be numbers, 'pooled' or 'diagonal'", self.prior_covariance)
            return
        covariance = check_numbers("prior_covariance", self.prior_covariance, self)
        shape = self.shape.from_diagonal(np.zeros(d)).shape
        if covariance.ndim == 0:
            valid = covariance > 0
        else:
            valid = covariance.shape == shape and np.allclose(covariance, covariance.T)
            valid = valid and not isinstance(self.shape.whitener(covariance, self.shape.diagonal(covariance)), Fault)
        if not valid:
            need = f"be 'pooled', 'diagonal', a positive number, or a positive definite array of shape {shape}"
            raise refusal("prior_covariance", need, self.prior_covariance)

    def _prior(self, statistics: Statistics) -> tuple[Array | float, Array]:
        """μ₀ about the origin, and the scatter m Σ₀ + D."""
        m, d = self.prior_strength, statistics.first.shape[1]
        ridge = np.zeros_like(self.shape.from_diagonal(np.zeros(d)))
        if self._pseudo_scatter is not None:
            ridge = self._pseudo_scatter
        if m == 0:
            return 0.0, ridge
        varying = getattr(self, "varying_", np.ones(d, dtype=bool))
        grand, pooled = self._named_prior or (None, None)
        if (_is_name(self.prior_mean) or _is_name(self.prior_covariance)) and grand is None:
            grand, pooled = self._rows_as_prior(statistics)
        mean, covariance = self.prior_mean, self.prior_covariance
        mean = grand if _is_name(mean) else np.broadcast_to(mean, len(varying))[varying] - self._origin
        if not _is_name(covariance):
            index = self.shape.index(np.flatnonzero(varying))
            covariance = check_numbers("prior_covariance", covariance, self)
            unit = self.shape.from_diagonal(np.ones(len(varying))) if covariance.ndim == 0 else 1.0
            covariance = (covariance * unit)[index]
        else:
            covariance = pooled if covariance == "pooled" else self.shape.from_diagonal(self.shape.diagonal(pooled))
        return mean, m * covariance + ridge

    @property
    def has_prior(self) -> bool:
        """Whether parameters are those of MAP, or a singular covariance has its ridge."""
        return super().has_prior or self._pseudo_scatter is not None

    def without_prior(self) -> Self:
        """This model with the parameters of maximum likelihood."""
        model = super().without_prior()
        model._pseudo_scatter = model._named_prior = None
        return model


def per_class(by_class: Array, array: Array) -> Array:
    """One number a class, shaped to multiply ``array``, whose first axis is the class."""
    return by_class.reshape(-1, *[1] * (array.ndim - 1))


def _is_name(prior: object) -> bool:
    """Whether a prior is named, and hence taken from the rows."""
    return isinstance(prior, str)
