"""Gaussian classes with independent features: naive Bayes, and the closed-form logistic regression."""

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.families._docs import documented
from rcpkg.families.family import dampened
from rcpkg.families.gaussian import INDEFINITE, LEAST_PRECISION, LOG_2PI, GaussianClassifier
from rcpkg.families.gaussian_gaps import WithGaps
from rcpkg.families.gaussian_prior import ROUNDING, GaussianParameters
from rcpkg.families.projections import linear_step
from rcpkg.families.statistics import Statistics

BLOCK = 2**16  # rows of which centred copies are made at a time


class DiagonalGaussian(GaussianClassifier):
    """Gaussian classes with independent features, variances (r, d), or (d,) where shared."""

    _full = False

    def _outer(self, a: Array, b: Array) -> Array:
        return a * b

    def _diagonal(self, covariance: Array) -> Array:
        return covariance

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        self._check_variances(covariance, power, count)
        return 1 / np.sqrt(covariance)

    def _target_size(self, r: int, d: int) -> float:
        return float(2 * r)

    def _from_diagonal(self, variances: Array) -> Array:
        return variances

    def _block(self, index: NDArray[np.intp]) -> tuple:
        return ..., index

    def _constant_directions(self, total: Array, power: Array) -> tuple[Array, int]:
        constant = ~(total > ROUNDING * power)
        return constant.astype(float), int(constant.sum())

    def _dampen(self, trial: Array, old: Array) -> Array:
        return old * dampened(trial / old)

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i²): count (r,), first (r, d), second (r, d), or (d,) where shared."""
        X, origin = self.encode(X), self._origin
        first = np.zeros((weights.shape[1], X.shape[1]))
        second = np.zeros(X.shape[1]) if self._shared else np.zeros_like(first)
        for start in range(0, len(X), BLOCK):
            x, w = X[start : start + BLOCK] - origin, weights[start : start + BLOCK]
            first += w.T @ x
            np.multiply(x, x, out=x)
            second += w.sum(axis=1) @ x if self._shared else w.T @ x
        return Statistics(count=weights.sum(axis=0), first=first, second=second)

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + Σ_j log N(x_j; μ_yj, σ²_yj), by one matrix product for x and one for x²."""
        log_prior, mean, _, A = parameters
        centre = mean.mean(axis=0)
        X, mean, precision = self.encode(X) - centre, mean - centre, A * A
        constant = log_prior + np.log(A).sum(axis=-1) - 0.5 * mean.shape[1] * LOG_2PI
        joint = X @ (mean * precision).T + (constant - 0.5 * (mean * mean * precision).sum(axis=1))
        np.multiply(X, X, out=X)
        square = X @ (-0.5 * precision).T
        joint += square[:, None] if self._shared else square
        return joint

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η = (log p(y) − ½ Σ_j (μ_j²/σ_j² + log 2πσ_j²), μ/σ², −1/(2σ²)), with μ about the origin."""
        log_prior, mean, _, A = parameters
        mean, precision = mean - self._origin, A * A
        count = log_prior - 0.5 * (mean**2 * precision + LOG_2PI).sum(axis=1) + np.log(A).sum(axis=-1)
        return Statistics(count=count, first=mean * precision, second=-0.5 * precision)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + Σ_j [η_1yj² / (2 p_yj) − ½ log(p_yj / 2π)] with p_y = −2 η_2y."""
        precision = -2 * natural.second
        gaussian = 0.5 * natural.first**2 / precision - 0.5 * np.log(precision / (2 * np.pi))
        return natural.count + gaussian.sum(axis=1)

    def _solved(self, precision: Array, first: Array) -> tuple[Array, Array, Array]:
        return first / precision, 1 / precision, np.sqrt(precision)

    def _definite(self, precision: Array) -> Array:
        common = np.maximum(np.abs(precision).mean(axis=0), np.finfo(float).tiny)
        lowest = (precision / common).min()
        return precision if lowest > INDEFINITE else precision + (LEAST_PRECISION - lowest) * common

    def scores(self, X: Array, natural: Statistics) -> Array:
        """η_0y + Σ_j (η_1yj x_j + η_2yj x_j²), with x about the origin."""
        X = self.encode(X) - self._origin
        square = (X * X) @ natural.second.T
        return X @ natural.first.T + natural.count + (square[:, None] if self._shared else square)

    def draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        deviation = np.broadcast_to(np.sqrt(parameters.covariance), parameters.mean.shape)
        return self._decode(parameters.mean[y] + deviation[y] * rng.standard_normal((len(y), parameters.mean.shape[1])))


@documented()
class GaussianNB(WithGaps, DiagonalGaussian):
    """Naive Bayes with Gaussian features: x_j | y ~ N(μ_yj, σ²_yj).

    ML: mean and variance of each feature within each class. MAP with m = ``prior_strength``:
    μ_yj = (m μ₀ + s_yj)/(m + s_0y), σ²_yj = (m σ²₀ + s_0y σ̂²_yj)/(m + s_0y).

    Missing values (NaN) are marginalised: what a row lacks takes no part in its density, and means and variances are
    those of the values seen. Fixed and safe steps of calibration take such rows, too; targets and
    `ConditionalLikelihood` refuse them.

    Parameters
    ----------
    prior_strength : float, default=0.0
        m ≥ 0, in pseudo-rows, for the mean and the variances of each class; 0 is maximum likelihood.
    %(prior_mean)s
    %(prior variances)s
    %(class_prior_strength)s
    %(ridge of variances)s
    rows_per_feature : float, default=3.0
        Rows are few where a class has, on average, ν < d ``rows_per_feature`` of them beyond one, d being the number of
        %(errors of variances)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    statistics_ : Statistics
        Weighted sums of the rows about ``origin_``: count (r,), first (r, d), second (r, d); and the weights
        ``seen`` (r, d) of the features, where values were missing in training.
    parameters_ : GaussianParameters
        log_prior (r,), mean (r, d), covariance (r, d) and whitener; None where the rows of ``partial_fit``
        do not suffice yet.
    %(means_)s
    covariances_ : array of shape (r, d)
        Variances within the classes.
    %(origin_ and varying_)s

    Raises
    ------
    InvalidStatistics
        In ``fit`` with ``singular_ridge=0``, where without a prior a feature is constant within a class.

    References
    ----------
    rc2025 §3.1, app. C, with diagonal covariances.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB()
    >>> for rows in slice(0, None, 2), slice(1, None, 2):  # rows in portions
    ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.15, 0.85],
           [0.  , 0.97, 0.03]])
    >>> round(model.score(X, y), 2)
    0.96
    """

    _shared = False
    _remedies = "drop constant features, the class, or use SharedVarianceGaussianNB"


@documented()
class SharedVarianceGaussianNB(DiagonalGaussian):
    """The closed-form logistic regression: x_j | y ~ N(μ_yj, σ²_j), variances shared by the classes.

    ML: σ² = s²/Σ_y s_0y − Σ_y p(y) μ_y². MAP with m = ``prior_strength``: μ_yj = (m μ₀ + s_yj)/(m + s_0y),
    σ²_j = (m σ²₀ + n σ̂²_j)/(m + n), n the weight of all rows. The posterior is a softmax of linear functions of x.

    Parameters
    ----------
    prior_strength : float, default=0.0
        m ≥ 0, in pseudo-rows, for the mean of each class and for the common variances; 0 is maximum likelihood.
    %(prior_mean)s
    %(prior variances)s
    %(class_prior_strength)s
    %(ridge of variances)s
    rows_per_feature : float, default=3.0
        Rows are few where there are ν < d ``rows_per_feature`` of them beyond one a class, d being the number of
        %(errors of variances)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    statistics_ : Statistics
        Weighted sums of the rows about ``origin_``: count (r,), first (r, d), second (d,).
    parameters_ : GaussianParameters
        log_prior (r,), mean (r, d), covariance (d,) and whitener; None where the rows of ``partial_fit``
        do not suffice yet.
    %(means_)s
    covariances_ : array of shape (d,)
        Variances within the classes.
    %(origin_ and varying_)s

    Raises
    ------
    InvalidStatistics
        In ``fit`` with ``singular_ridge=0``, where without a prior a feature is constant within every class.

    References
    ----------
    rc2024 §VI-A.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import SharedVarianceGaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SharedVarianceGaussianNB().fit(X, y)
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.26, 0.74],
           [0.  , 1.  , 0.  ]])
    >>> round(model.score(X, y), 2)
    0.96
    """

    _shared = True
    projected_step = linear_step
    _remedies = "drop constant features"
