"""Gaussian classes: blocks of features with covariances of each class, or shared by all."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics, constructed, log_posterior
from rcpkg.checks import LARGEST, LEAST_SPREAD, check_number, feature_name, gaps_refused, warn
from rcpkg.families.constants import BLOCK, FAR_MEAN, STEEPEST, TYPICAL_ROWS
from rcpkg.families.covariances import CovarianceForm, Distances, Fault, SecondMoments, shape_of
from rcpkg.families.em import run_em
from rcpkg.families.family import equal_class_weights, safe_class_counts
from rcpkg.families.gaussian_features import Monomials, products
from rcpkg.families.gaussian_prior import GaussianParameters, GaussianPrior, per_class
from rcpkg.families.portions import has_gaps
from rcpkg.families.statistics import Statistics
from rcpkg.gaps import gappy
from rcpkg.linalg import AT_A_TIME, EPS, IN_CACHE, LOG_2PI, LOG_ROUNDING, extremes, slices
from rcpkg.rows import Rows


@constructed
class GaussianFamily(GaussianPrior):
    """Gaussian classes. Covariances may be ``shared`` by the classes, and features ``independent`` within them.

    Statistics: Σ W_iy (1, x_i, x_i ⊗ x_i), where ⊗ is the outer product or, for independent features, the product
    feature by feature; the last is summed over the classes where they share their covariance. Moments are taken about
    ``origin_``, the mean of the rows that the model was first fitted to (zero before any fit), so that no digits are
    lost to a large mean; features that are constant in all rows (not ``varying_``) take no part.

    Predictions marginalise what a row lacks. Training rows may have gaps, too: where features are independent the
    statistics then have a further part, the weights ``seen`` (r, d) of the features, in the place of the counts; full
    covariances are estimated by EM, whose statistics are those of the completed rows.
    """

    shared: bool = False
    independent: bool = False
    _incomplete = False  # whether values were missing in training, of independent features
    _completed: Statistics | None = None  # those of EM, at which the prior is decided

    @property
    def shape(self) -> CovarianceForm:
        """The shape of covariances; no features depend on each other where none varies."""
        return shape_of(self.shared, self.independent or not getattr(self, "varying_", np.True_).any())

    @property
    def _remedies(self) -> str:
        """What to do about an invalid covariance, beside a prior."""
        rows = "" if self.independent else "a covariance matrix needs more than d rows; "
        features = "constant" if self.independent else "constant or collinear"
        other = "SharedVarianceGaussianNB" if self.independent else "LDA"
        return f"{rows}drop {features} features{'' if self.shared else f', the class, or use {other}'}"

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        missing = np.isnan(X)
        unseen = missing.all(axis=0) if missing[0].any() else missing[0]
        check_number("singular_ridge", self.singular_ridge, 0)
        if unseen.any():
            if not self.singular_ridge:
                name = feature_name(self, int(np.argmax(unseen)))
                raise ValueError(f"{name} holds missing values only: drop it, or set singular_ridge > 0")
            X, missing = np.where(unseen, 0.0, X), missing & ~unseen
        if missing.any():
            X = np.where(missing, np.nanmedian(X, axis=0), X)
        check_number("rows_per_feature", self.rows_per_feature, 0)
        self.varying_ = np.ones(X.shape[1], dtype=bool)
        self._check_prior(X.shape[1])
        self._pseudo_scatter = self._named_prior = self._completed = None
        self.origin_, varies = self._origin_of(X)
        if self.singular_ridge:
            self.varying_ = varies
        self._incomplete = self.independent and bool(missing[:, self.varying_].any())
        self.origin_[unseen] = np.nan  # which no row tells

    def _origin_of(self, X: Array) -> tuple[Array, NDArray[np.bool_]]:
        """A robust centre of the rows, and which features vary; refuses differences that cannot be squared."""
        low, high = extremes(X)
        with np.errstate(over="ignore"):
            width = high - low
        self._check_range(width, (width > LARGEST) | ((width > 0) & (width < LEAST_SPREAD)))
        return np.where(width > 0, robust_centre(X), low), width > 0

    def _check_range(self, width: Array, extreme: NDArray[np.bool_]) -> None:
        if extreme.any():
            j = int(np.argmax(extreme))
            raise InvalidStatistics(
                f"the values of {feature_name(self, j)} differ by {width[j]:.3g}, whose square cannot be represented: "
                "rescale it"
            )

    @property
    def unseen(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.isnan(getattr(self, "origin_", 0.0)))

    def dependence(self, X: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.full((X.shape[1], X.shape[1]), not self.independent), np.isnan(X)

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
        r, d, form = len(parameters.mean), len(self.varying_), CovarianceForm(self.shared, self.independent)
        covariances = form.each(form.from_diagonal(np.zeros(d)), r)
        if self.varying_.any():
            covariances[form.index(np.flatnonzero(self.varying_))] = parameters.covariance
        return covariances

    def _feature_name(self, j: int) -> str:
        return super()._feature_name(int(np.flatnonzero(self.varying_)[j]) if hasattr(self, "varying_") else j)

    def check_complete(self, X: Array) -> None:
        missing = np.isnan(X)
        if missing.any():
            j = int(missing.any(axis=0).argmax())
            name = feature_name(self, j) if X.shape[1] == len(self.varying_) else self._feature_name(j)
            raise gaps_refused(name, "impute them")

    def same_form(self, other: object) -> bool:
        """Whether the other family also has the same features that vary, and covariances of the same shape."""
        return super().same_form(other) and self.shape == other.shape and np.array_equal(self.varying_, other.varying_)

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i ⊗ x_i), and the weights Σ W_iy of the values that are ``seen`` where some are missing."""
        X, r = self.encode(X), weights.shape[1]
        first, seen = np.zeros((2, r, X.shape[1]))
        second = SecondMoments(self.shape, *first.shape)
        for rows in slices(len(X), max(1, AT_A_TIME // max(1, X.shape[1])) if self.independent else BLOCK):
            x = X[rows] - self._origin
            if self._incomplete:
                there = ~np.isnan(x)
                seen += weights[rows].T @ there
                x[~there] = 0.0
            first += weights[rows].T @ x
            second.add(x, weights[rows])
        parts = {"seen": seen} if self._incomplete else {}
        return Statistics(count=weights.sum(axis=0), first=first, second=second.total(), **parts)

    @np.errstate(over="ignore", invalid="ignore")
    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + log N(x; μ_y, Σ_y), of the features that are not missing in the row; −∞ where a row lies so far
        off that its distance from a class cannot be represented."""
        X, form = self.encode(X), self.shape
        log_prior, mean, covariance, A = parameters
        joint = Distances(form, mean, A)(X)
        joint *= -0.5
        joint += log_prior + form.log_det(A) - 0.5 * X.shape[1] * LOG_2PI
        if np.isnan(joint).any():
            gaps = np.flatnonzero(np.isnan(X).any(axis=1))
            if len(gaps):
                seen = np.count_nonzero(~np.isnan(X[gaps]), axis=1)[:, None]
                squares, log_det = gappy(X[gaps], self.shape.independent).marginals_of_classes(mean, covariance)
                joint[gaps] = log_prior - 0.5 * (squares + log_det + seen * LOG_2PI)
            joint[np.isnan(joint)] = -np.inf
        return joint

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def log_posterior_without_blocks(
        self, X: Array, weights: Array, statistics: Statistics, n_blocks: int
    ) -> Array | None:
        """By `parameters` and `log_joint` with an axis for the block; None where rows lack values or a block leaves no
        model, and where rows are so many that calls of numpy cost little.

        The bar is `RiskCalibrationCV`: of LDA on 345 rows of 5 features it takes half the time, 28 in place of 52 ms. A
        test compares the posteriors with those of blocks that are taken one by one.
        """
        X, form, (n, r) = self.encode(X), self.shape, weights.shape
        d, size = X.shape[1], -(-n // n_blocks)
        large = r * d * max(n, n_blocks * (1 if form.independent else d)) > IN_CACHE
        if large or not d or self._incomplete or self.priors is not None or np.isnan(X.sum()):
            return None
        x, W = np.zeros((size * n_blocks, d)), np.zeros((size * n_blocks, r))
        x[:n], W[:n] = X - self._origin, weights
        x, W = (part.reshape(size, n_blocks, -1).swapaxes(0, 1) for part in (x, W))
        count, first = statistics.count - W.sum(axis=1), statistics.first - W.mT @ x
        if not (count > 0).all():
            return None
        of_second = (W.sum(axis=2, keepdims=True) if form.shared else W).mT
        squares = of_second @ (x * x) if form.independent else (x[:, None] * of_second[..., None]).mT @ x[:, None]
        second = form.by_class(statistics.second) - squares
        mean = first / count[:, :, None]
        between = first * mean if form.independent else first[..., None] * mean[..., None, :]
        between = between.sum(axis=1, keepdims=True) if form.shared else between
        weight = self.prior_strength + (count.sum(axis=1, keepdims=True) if form.shared else count)
        prior_mean, prior_scatter = self._prior(statistics)
        mean = (self.prior_strength * prior_mean + first) / (self.prior_strength + count)[:, :, None]
        over = weight[..., None] if form.independent else weight[..., None, None]
        covariance = (prior_scatter + (second - between)) / over
        A = form.whitener(covariance, (form.diagonal(prior_scatter) + form.diagonal(second)) / weight[..., None])
        if isinstance(A, Fault):
            return None
        white = x[:, None] - mean[:, :, None]
        white = white * A[:, :, None] if form.independent else white @ A.mT
        smoothed = count + self._class_pseudo_rows(r)
        log_prior = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
        joint = (log_prior + form.log_det(A))[:, None] - 0.5 * np.einsum("gyid,gyid->giy", white, white)
        joint = joint.swapaxes(0, 1).reshape(-1, r)[:n]
        joint[np.isnan(joint)] = -np.inf
        return log_posterior(joint, log_prior[np.arange(n) % n_blocks])

    def frozen(self, parameters: GaussianParameters) -> list[dict[str, Any]]:
        columns = np.flatnonzero(self.varying_)
        return [{"kind": "gaussian", "columns": columns, **vars(self.shape), **parameters._asdict()}]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C).

        Where values are missing the weight n_yj of those seen stands in the place of s_0y.
        """
        log_prior = self.class_log_prior(statistics.count)
        if self._incomplete:
            statistics = self._with_imputed_moments(statistics)
        m, (prior_mean, prior_scatter) = self.prior_strength, self._prior(statistics)
        mean = (m * prior_mean + statistics.first) / (m + self._weight(statistics))
        _, scatter, weight = self._means_and_scatter(statistics)
        covariance = (prior_scatter + scatter) / self.shape.over(m + weight)
        power = (self.shape.diagonal(prior_scatter) + self._power(statistics)) / (m + weight)
        whitener = self._whitener(covariance, power, self.shape.sum(statistics.count))
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)

    def _from_moments(self, count: Array, mean: Array, scatter: Array) -> Statistics:
        first = count[:, None] * mean
        return Statistics(count=count, first=first, second=scatter + self.shape.outer(first, mean))

    def fix_prior(self, statistics: Statistics, n_rows: int) -> GaussianParameters | None:
        if statistics is self._completed:
            return None  # EM has decided
        if self._incomplete:
            statistics = self._with_imputed_moments(statistics, aloud=True)
        return super().fix_prior(statistics, n_rows)

    def class_log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super().class_log_prior(count)

    def raw_statistics(self, rows: Rows) -> Statistics:
        """Sums over what is seen, which are additive, if features are independent; else those of the closed form."""
        return super().closed_form_statistics(rows) if self._incomplete else self.closed_form_statistics(rows)

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        """The statistics of the closed form. Where values are missing they are the statistics of completed rows: with
        the moments of what is seen or, if covariances are full, those to which EM converges from there."""
        if not self._incomplete:  # what is missing shows in the sums: no pass for it
            complete = super().closed_form_statistics(rows)
            if not np.isnan(complete.first).any():
                return complete
        if not any(rows.each(has_gaps)):
            return super().closed_form_statistics(rows)
        self._incomplete = True
        filled = self._with_imputed_moments(super().closed_form_statistics(rows), aloud=True)
        self._incomplete = False
        mean, scatter, total = self._means_and_scatter(filled)
        variance = self.shape.diagonal(scatter) / total
        if self.independent:
            return self._from_moments(filled.count, mean, variance * self.shape.sum(filled.count[:, None]))
        variance = np.where(variance > 0, variance, self._of_all(filled)[1])[..., None] * np.eye(mean.shape[1])
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
        rows = gappy(X, self.shape.independent)
        first, second = rows.completed_moments(weights, mean, covariance, self._origin)
        return known + Statistics(count=weights.sum(axis=0), first=first, second=self.shape.sum(second))

    def _of_all(self, s: Statistics) -> tuple[Array, Array]:
        """Mean and variance of what all rows have of each feature."""
        n = self._weight(s).sum(axis=0)
        mean = s.first.sum(axis=0) / n
        return mean, self.shape.total(self._power(s)) / n - mean**2

    def _with_imputed_moments(self, s: Statistics, aloud: bool = False) -> Statistics:
        """Where a class has no value of a feature, give it the mean and variance of all rows (warn if ``aloud``), so
        that the feature says of the class what it says of all; refused without ridge and prior."""
        weight = self._weight(s)
        silent = weight <= 0
        if not silent.any():
            return s
        (y, j), n = np.argwhere(silent)[0], np.count_nonzero(silent)
        fault = f"{self._feature_name(j)} has no values within {self._class_name(y)}"
        if (weight < 0).any() or not (self.singular_ridge or self.prior_strength):
            raise InvalidStatistics(f"{fault}: drop it, or set singular_ridge > 0 or prior_strength > 0")
        if aloud:
            others = f" (and {n - 1} more of a feature and a class)" if n > 1 else ""
            warn(f"{fault}{others}: there it is taken to be distributed as in all rows")
        mean, variance = self._of_all(s)
        second = self.shape.sum(silent * (mean**2 + variance))
        if not self.independent:
            second = second[..., None] * np.eye(len(mean))
        first = s.first + silent * mean
        return Statistics(count=s.count, first=first, second=s.second + second, seen=weight + silent)

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks, which keeps nothing of a row."""
        X, (r, d) = self.encode(X), parameters.mean.shape
        full = not (self.shape.shared or self.shape.independent)
        # with fewer products of two features than whitened features of all classes; both take about as long near that
        if full and d + 1 < 2 * r and not self._lacks(X):
            fused = self._fused_statistics(X, parameters, weigh)
            if fused is not None:
                return fused
        size = max(1, AT_A_TIME // max(r, d, 1))
        blocks = slices(len(X), size)
        if self._lacks(X):  # rows of one pattern together
            gaps = np.isnan(X).any(axis=1)
            blocks = [rows[b] for rows in map(np.flatnonzero, (~gaps, gaps)) for b in slices(len(rows), size)]
        parts = ((X[b], weigh(self.log_joint(X[b], parameters), b)) for b in blocks)
        return reduce(add, (self.expected_statistics(x, W, parameters) for x, W in parts))

    def _fused_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics | None:
        """One pass by quadratic features: the d(d+1)/2 + d + 1 monomials of a block serve the densities and the
        statistics, in one wide matrix product each. The bar for iterations of QDA of many classes and few features asks
        for it: it takes half the arithmetic of the products class by class. The numbers are the same but for rounding,
        which is estimated: None where it exceeds `LOG_ROUNDING`.
        """
        d, origin = parameters.mean.shape[1], self._origin
        features = self.feature_map(X[:0], "natural")
        constant, slopes, _ = features.coefficients(self.natural_parameters(parameters))
        coefficients = np.hstack([constant[:, None], slopes])
        if self._rounding(parameters, coefficients) > LOG_ROUNDING:
            return None
        sums = np.zeros_like(coefficients.T)
        size = max(64, IN_CACHE // coefficients.shape[1])
        monomials = np.empty((coefficients.shape[1], size))
        for rows in slices(len(X), size):
            x = (X[rows] - origin).T.copy()
            block = monomials[:, : x.shape[1]]
            block[0], block[1 : d + 1] = 1.0, x
            products(x, block[d + 1 :])
            sums += block @ weigh((coefficients @ block).T, rows)
        return features.statistics(sums[0], sums[1:].T, np.empty(0))

    def _rounding(self, parameters: GaussianParameters, coefficients: Array) -> float:
        """Rounding error of the polynomial at rows of typical size: near singularity, its terms cancel."""
        mean = parameters.mean - self._origin
        size = np.sqrt((self.shape.diagonal(parameters.covariance) + mean**2).mean(axis=0))
        typical = np.ones(coefficients.shape[1])
        typical[1 : len(size) + 1] = size
        products(size[:, None], typical[len(size) + 1 :, None])
        return EPS * float((np.abs(coefficients) @ typical).max())

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """Extend statistics to what further rows X ask for.

        A feature that varies for the first time joins with moments of zero, since it was at the origin. Where values
        are missing for the first time, the weights of what is seen join. The origin moves to rows far from it.
        """
        if not self.independent and np.isnan(X).any():
            raise ValueError(
                f"{feature_name(self, int(np.isnan(X).any(axis=0).argmax()))} holds missing values, which further "
                "portions of rows do not take where covariances are full: fit all rows at once, impute the values, or "
                "leave such rows out"
            )
        missing, varied = np.isnan(X), self.varying_
        X = np.where(missing, self.origin_, X)
        with np.errstate(over="ignore"):
            width = np.abs(X - self.origin_).max(axis=0)
        self._check_range(width, width > LARGEST)
        self.varying_ = varied | (width > 0)
        index, parts = np.flatnonzero(varied[self.varying_]), dict(vars(statistics))
        parts["first"] = np.zeros((len(statistics.count), int(self.varying_.sum())))
        parts["second"] = np.zeros_like(self.shape.outer(parts["first"], parts["first"]))
        parts["first"][:, index] = statistics.first
        if len(index):
            parts["second"][self.shape.index(index)] = statistics.second
        if self._incomplete or missing.any():
            parts["seen"] = np.repeat(statistics.count[:, None], len(parts["first"].T), axis=1)
            parts["seen"][:, index] = self._weight(statistics)
        self._incomplete = "seen" in parts
        return self._recentred(self.encode(X) - self._origin, Statistics(**parts))

    def _recentred(self, X: Array, statistics: Statistics) -> Statistics:
        """Moments about the centre of these further rows X, which are about the origin, in the features of which that
        halves the second moments: of moments about a point far off few digits are left for the scatter."""
        form, weight, first = self.shape, self._weight(statistics), statistics.first
        power = form.total(self._power(statistics)) + (X * X).sum(axis=0)
        shift = robust_centre(X)
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

    def expected_rows(self, X: Array, weights: Array, parameters: GaussianParameters) -> Array:
        """Σ_y W_iy E[x_i | what is there of x_i, y], shape (n, d)."""
        rows = gappy(self.encode(X), self.shape.independent)
        filled = rows.expected(weights, parameters.mean, parameters.covariance)
        return np.where(np.isnan(X), self.decode(filled), X)

    def scores(self, X: Array, natural: Statistics) -> Array:
        """η_0y + ⟨η_1y, x⟩ + ⟨η_2y, x ⊗ x⟩, with x about the origin."""
        X = self.encode(X) - self._origin
        return X @ natural.first.T + natural.count + self.shape.forms(X, natural.second)

    def draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        X = rng.standard_normal((len(y), parameters.mean.shape[1]))
        roots = self.shape.by_class(self.shape.root(parameters.covariance))
        for c, mean in enumerate(parameters.mean):
            root = roots[0 if self.shape.shared else c]
            X[y == c] = mean + self.shape.transformed(X[y == c], root)
        return self.decode(X)

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Normal rows, given the means and scatter of these: of each class, or within all classes where shared."""
        X = self.encode(X)
        mean, Z = np.empty_like(X), rng.standard_normal(X.shape)
        classes = [y == c for c in np.unique(y)]
        for rows in classes:
            mean[rows] = X[rows].mean(axis=0)
            Z[rows] -= Z[rows].mean(axis=0)
        for rows in [slice(None)] if self.shape.shared else classes:
            Z[rows] = self.shape.with_scatter_of(Z[rows], (X - mean)[rows])
        return self.decode(mean + Z)

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts as those of categories, and the means and covariances that ``old`` + ``change`` has with these counts,
        covariances with their shrinkage dampened, so that they stay positive definite."""
        form, m, (_, prior) = self.shape, self.prior_strength, self._prior(old)
        mean, scatter, weight = self._means_and_scatter(old)
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
        mean, scatter, _ = self._means_and_scatter(statistics)
        return self._common_covariance(log_prior, mean, scatter, statistics)

    def grand_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Equal class weights, and for every class the mean and the covariance of all rows."""
        log_prior = equal_class_weights(self.class_log_prior(statistics.count))
        _, scatter, _ = self._means_and_scatter(statistics)
        mean = np.tile(statistics.first.sum(axis=0) / statistics.count.sum(), (len(statistics.count), 1))
        return self._common_covariance(log_prior, mean, scatter, statistics, self._between(statistics))

    def _common_covariance(
        self, log_prior: Array, mean: Array, scatter: Array, statistics: Statistics, between: Array | float = 0.0
    ) -> tuple[GaussianParameters, float]:
        """Parameters with the ML or MAP covariance of all rows, and the pseudo-rows they count for."""
        form, (r, d), total = self.shape, mean.shape, statistics.count.sum()
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
        scatter = covariance if self.shape.shared else per_class(prior, covariance) * covariance
        return self._from_moments(prior, mean, scatter)

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η = (log p(y) − ½ [⟨μ, Σ⁻¹μ⟩ + log|2πΣ|], Σ⁻¹μ, −½ Σ⁻¹), with μ about the origin."""
        log_prior, mean, _, A = parameters
        mean, precision = mean - self._origin, self.shape.precision(A)
        first = self.shape.times(precision, mean)
        count = log_prior - 0.5 * ((mean * first).sum(axis=1) + mean.shape[1] * LOG_2PI) + self.shape.log_det(A)
        return Statistics(count=count, first=first, second=-0.5 * precision)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + ½ ⟨η_1y, P_y⁻¹ η_1y⟩ − ½ log|P_y/2π| with P_y = −2 η_2y; infinite unless all of these are definite."""
        found = self.shape.quadratic_forms(-2 * natural.second, natural.first)
        if found is None:
            return np.full(len(natural.count), np.inf)
        squares, log_det = found
        return natural.count + 0.5 * (squares - log_det + natural.first.shape[1] * LOG_2PI)

    def feature_map(
        self,
        X: Array,
        kind: str = "minimal",
        statistics: Statistics | None = None,
        pooled: GaussianParameters | None = None,
    ) -> Monomials:
        """Monomials about the origin: of their root mean squares ("minimal"), or whitened by ``pooled``, as if X had a
        further variance below which it counts for little beside a ridge ("conditioned")."""
        form, centre, factor = self.shape, 0.0 if kind == "plain" else self._origin, None
        if kind == "minimal" and pooled is None:
            power = form.total(self._power(statistics))
            factor = form.from_diagonal(1 / np.sqrt(power / statistics.count.sum()))
        elif kind == "minimal":
            factor = form.by_class(pooled.whitener)[0].T
        elif kind == "conditioned":
            factor = form.conditioner(form.by_class(pooled.covariance)[0], STEEPEST**-2)
        return Monomials(self.encode(X), self._origin, centre, factor, form)

    def from_natural(self, natural: Statistics) -> GaussianParameters:
        """P_y = −2 η_2y, μ_y = P_y⁻¹ η_1y, p(y) ∝ exp(η_0y + A_y), with a common precision added if need be."""
        covariance, whitener = self.shape.inverse(-2 * natural.second)
        mean = self.shape.times(covariance, natural.first)
        log_prior = natural.count + 0.5 * (mean * natural.first).sum(axis=1) - self.shape.log_det(whitener)
        log_prior -= np.logaddexp.reduce(log_prior)
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)


def robust_centre(X: Array) -> Array:
    """The mean of rows or, in features in which it lies far off, their median: farther than `FAR_MEAN` times the median
    of the deviations that are not zero."""
    mean, some = X.mean(axis=0), np.ascontiguousarray(X[:: -(-len(X) // TYPICAL_ROWS)].T)
    n = some.shape[1]  # numpy sorts in a seventh of the time in which it finds medians
    median = np.sort(some, axis=1)[:, (n - 1) // 2 : n // 2 + 1].mean(axis=1)
    apart, deviations = np.abs(mean - median), np.abs(some - median[:, None])
    small, none = (each.sum(axis=1) for each in (deviations < apart[:, None] / FAR_MEAN, deviations == 0))
    return np.where(2 * small > n + none, median, mean)
