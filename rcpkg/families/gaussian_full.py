"""Gaussian classes with full covariance matrices: quadratic and linear discriminant analysis."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from rcpkg.base import Array, constructed
from rcpkg.checks import check_number
from rcpkg.families._docs import documented
from rcpkg.families.covariance import Full
from rcpkg.families.gaussian import GaussianClassifier
from rcpkg.families.gaussian_features import products
from rcpkg.families.gaussian_prior import GaussianParameters
from rcpkg.families.projections import quadratic_step
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import EPS, slices

BLOCK_ENTRIES = 2**17  # of blocks of quadratic features, which differ in width
LARGEST_ROUNDING = 1e-9  # of a log density; beyond it the products class by class are used, which lose no digits
FUSED_CLASSES_PER_FEATURE = 0.3  # from this ratio r/d on, quadratic features beat class-by-class products


@documented()
class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: x | y ~ N(μ_y, Σ_y).

    ML: μ_y = s_y/s_0y, Σ_y = S_y/s_0y − μ_y μ_yᵀ. MAP with m = ``prior_strength`` (m₁ = m₂ = m in the source):
    μ_y = (m μ₀ + s_y)/(m + s_0y), Σ_y = (m Σ₀ + s_0y Σ̂_y)/(m + s_0y); the default prior suits z-scores.

    %(gaps by EM)s

    Parameters
    ----------
    %(parameters of Gaussians)s

    Attributes
    ----------
    %(attributes of Gaussians)s

    Raises
    ------
    InvalidStatistics
        In ``fit`` with ``singular_ridge=0``, where a covariance is singular: each class needs more than d rows.

    Notes
    -----
    %(another prior)s

    References
    ----------
    rc2025 §3.1, app. C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QDA().fit(X, y)
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.33, 0.67],
           [0.  , 0.  , 1.  ]])
    >>> round(model.score(X, y), 2)
    0.98
    """

    _form = Full(shared=False)
    projected_step = quadratic_step
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features, the class, or use LDA"

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks; where classes are many and features few, by quadratic features.

        The d(d+1)/2 + d + 1 monomials of a block serve the densities and the statistics, in one wide matrix product
        each, at half the arithmetic of the products class by class.
        """
        r, d = parameters.mean.shape
        if r < FUSED_CLASSES_PER_FEATURE * d or self._lacks(X):
            return super().weighted_statistics(X, parameters, weigh)
        X, origin = self.encode(X), self._origin
        features = self.feature_map(X[:0], "natural")
        constant, slopes, _ = features.coefficients(self.natural_parameters(parameters))
        coefficients = np.hstack([constant[:, None], slopes])
        if self._rounding(parameters, coefficients) > LARGEST_ROUNDING:
            return super().weighted_statistics(X, parameters, weigh)
        moments = np.zeros_like(coefficients)
        size = max(64, min(1024, BLOCK_ENTRIES // coefficients.shape[1]))
        monomials = np.empty((coefficients.shape[1], size))
        for rows in slices(len(X), size):
            x = (X[rows] - origin).T.copy()
            block = monomials[:, : x.shape[1]]
            block[0], block[1 : d + 1] = 1.0, x
            products(x, block[d + 1 :])
            moments += weigh((coefficients @ block).T, rows).T @ block.T
        return features.statistics(moments[:, 0], moments[:, 1:], np.empty(0))

    def _rounding(self, parameters: GaussianParameters, coefficients: Array) -> float:
        """Rounding error of the polynomial at rows of typical size: near singularity, its terms cancel."""
        mean = parameters.mean - self._origin
        size = np.sqrt((self._form.diagonal(parameters.covariance) + mean**2).mean(axis=0))
        typical = np.ones(coefficients.shape[1])
        typical[1 : len(size) + 1] = size
        products(size[:, None], typical[len(size) + 1 :, None])
        return EPS * float((np.abs(coefficients) @ typical).max())


@documented()
@constructed
class LDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GaussianClassifier):
    """Linear discriminant analysis: x | y ~ N(μ_y, Σ), one covariance for all classes.

    ML: μ_y = s_y/s_0y, and Σ = (S − Σ_y s_0y μ_y μ_yᵀ) / Σ_y s_0y, the pooled within-class covariance. MAP with
    m = ``prior_strength``: μ_y = (m μ₀ + s_y)/(m + s_0y), Σ = (m Σ₀ + n Σ̂)/(m + n), n the weight of all rows.

    %(gaps by EM)s

    Parameters
    ----------
    n_components : int, optional
        Number of discriminants that ``transform`` gives, at most r − 1 and d, which is the default.
    %(parameters of Gaussians)s

    Attributes
    ----------
    %(attributes of Gaussians)s
    coef_ : array of shape (r, d)
        Slopes of what of log p(x, y) depends on y, a linear function of x; of two classes their difference, (1, d).
    intercept_ : array of shape (r,)
        Its intercepts; of two classes their difference, (1,).
    scalings_ : array of shape (d, k)
        Directions of the discriminants.
    explained_variance_ratio_ : array of shape (k,)
        Share of each discriminant in the variance between the classes.

    Raises
    ------
    InvalidStatistics
        In ``fit`` with ``singular_ridge=0``, where the covariance is singular: it needs at least d + r rows.

    Notes
    -----
    %(another prior)s

    References
    ----------
    rc2025 §3.1, app. C, with one covariance in place of r.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LDA().fit(X, y)
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.25, 0.75],
           [0.  , 0.05, 0.95]])
    >>> round(model.score(X, y), 2)
    0.98
    """

    n_components: int | None = None

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        if self.n_components is not None:
            check_number("n_components", self.n_components, 1, integer=True)
            largest = min(len(self.classes_) - 1, X.shape[1])
            if self.n_components > largest:
                raise ValueError(
                    f"n_components cannot be larger than {largest}, the lesser of the number of features and that of "
                    f"classes less one; got {self.n_components}"
                )

    @property
    def coef_(self) -> Array:
        """Σ⁻¹μ_y for each class, shape (r, d); of two classes their difference, shape (1, d)."""
        coef = self._linear()[0]
        return coef if len(coef) > 2 else coef[1:] - coef[:1]

    @property
    def intercept_(self) -> Array:
        """log p(y) − ½ μ_yᵀΣ⁻¹μ_y for each class, shape (r,); of two classes their difference, shape (1,)."""
        intercept = self._linear()[1]
        return intercept if len(intercept) > 2 else intercept[1:] - intercept[:1]

    def _linear(self) -> tuple[Array, Array]:
        """The part of log p(x, y) that depends on y, wᵀx + b, for each class."""
        log_prior, mean, _, A = self._of_fitted()
        white = mean @ A.T
        coef = np.zeros((len(mean), len(self.varying_)))
        coef[:, self.varying_] = white @ A
        return coef, log_prior - 0.5 * (white**2).sum(axis=1)

    def _discriminants(self) -> tuple[Array, Array]:
        """Directions (d', k) of most variance between the classes, in units of that within them, and these variances.

        With A of unit covariance AΣAᵀ, the right singular vectors of √p(y) A(μ_y − μ), taken back by Aᵀ.
        """
        log_prior, mean, _, A = self._of_fitted()
        p = np.exp(log_prior)
        _, values, vectors = np.linalg.svd(np.sqrt(p)[:, None] * ((mean - p @ mean) @ A.T), full_matrices=False)
        k = min(len(mean) - 1, mean.shape[1])
        directions = A.T @ vectors[:k].T
        directions *= np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(k)])
        return directions, values[:k] ** 2

    @property
    def scalings_(self) -> Array:
        """Directions of the discriminants, shape (d, k): with variance 1 within classes; first the most telling."""
        directions = self._discriminants()[0]
        scalings = np.zeros((len(self.varying_), directions.shape[1]))
        scalings[self.varying_] = directions
        return scalings[:, : self.n_components]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of each discriminant in the variance between the classes, shape (k,)."""
        variances = self._discriminants()[1]
        return (variances / variances.sum())[: self.n_components]

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    def transform(self, X: ArrayLike) -> Array:
        """The discriminants of each row, shape (n, k), about the mean of the classes, weighted by p(y); of a row with
        gaps their expectation."""
        scalings = self.scalings_
        return (self.conditional_mean(X) - np.exp(self.class_log_prior_) @ self.means_) @ scalings

    _form = Full(shared=True)
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features"
