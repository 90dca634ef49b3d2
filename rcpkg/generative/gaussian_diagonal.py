"""Gaussian classes with independent features: naive Bayes, and the closed-form logistic regression."""

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.generative.closed_form import Statistics, dampened
from rcpkg.generative.gaussian import INDEFINITE, LEAST_PRECISION, LOG_2PI, GaussianClassifier, GaussianParameters


class DiagonalGaussian(GaussianClassifier):
    """Gaussian classes with independent features, variances (r, d), or (d,) where shared."""

    def _outer(self, a: Array, b: Array) -> Array:
        return a * b

    def _diagonal(self, covariance: Array) -> Array:
        return covariance

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        self._check_variances(covariance, power, count)
        return 1 / np.sqrt(covariance)

    def _target_size(self, r: int, d: int) -> float:
        return float(2 * r)

    def _prior_covariance(self, d: int) -> Array:
        prior = np.asarray(self.prior_covariance, dtype=float)
        return np.full(d, prior) if prior.ndim == 0 else prior

    def _dampen(self, trial: Array, old: Array) -> Array:
        return old * dampened(trial / old)

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i²): count (r,), first (r, d), second (r, d), or (d,) where shared."""
        X = X - self._origin
        square = X * X
        second = weights.sum(axis=1) @ square if self._shared else weights.T @ square
        return Statistics(count=weights.sum(axis=0), first=weights.T @ X, second=second)

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + Σ_j log N(x_j; μ_yj, σ²_yj), by one matrix product for x and one for x²."""
        log_prior, mean, _, A = parameters
        centre = mean.mean(axis=0)
        X, mean, precision = X - centre, mean - centre, A * A
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
        X = X - self._origin
        square = (X * X) @ natural.second.T
        return X @ natural.first.T + natural.count + (square[:, None] if self._shared else square)

    def _draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        deviation = np.broadcast_to(np.sqrt(parameters.covariance), parameters.mean.shape)
        return parameters.mean[y] + deviation[y] * rng.standard_normal((len(y), parameters.mean.shape[1]))


class GaussianNB(DiagonalGaussian):
    """Naive Bayes with Gaussian features: x_j | y ~ N(μ_yj, σ²_yj).

    The parameters are those of `QDA`; a ``prior_covariance`` of shape (d,) holds the prior variances.
    """

    _shared = False
    _remedies = "drop constant features, the class, or use SharedVarianceGaussianNB"


class SharedVarianceGaussianNB(DiagonalGaussian):
    r"""The closed-form logistic regression of rc2024 §VI-A: x_j | y ~ N(μ_yj, σ²_j), variances shared by the classes.

    ML: σ² = s²/Σ_y s_0y − Σ_y p(y) μ_y². The posterior is a softmax of linear functions of x. The parameters are
    those of `QDA`; a ``prior_covariance`` of shape (d,) holds the prior variances.
    """

    _shared = True
    _remedies = "drop constant features"
