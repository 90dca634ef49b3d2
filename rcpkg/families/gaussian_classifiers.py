"""Classifiers with Gaussian classes: quadratic and linear discriminant analysis, naive Bayes, logistic regression."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array
from rcpkg.families._docs import documented
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.gaussian import GaussianFamily
from rcpkg.families.gaussian_prior import GaussianParameters, GaussianSettings


class GaussianClassifier(GaussianSettings, ConjugateClassifier, family=GaussianFamily):
    """What the four Gaussian classifiers share; which of them it is two switches say."""

    _shared: ClassVar[bool]
    _independent: ClassVar[bool]

    def family(self) -> GaussianFamily:
        """The family that these parameters make; ``family_`` is the one that knows the training rows."""
        return self._family_type(shared=self._shared, independent=self._independent, **self._settings())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def means_(self) -> Array:
        """Means of the classes, shape (r, d)."""
        return self.family_.decode(self._of_fitted().mean)

    @property
    def covariances_(self) -> Array:
        """Covariances, or variances, of the shape that the model gives them; zero for features that do not vary."""
        return self.family_.covariances(self._of_fitted())

    def _joint_log_proba(self, X: Array) -> Array:
        """log p(x, y); −∞ where a row lies so far off that its distance from a class cannot be represented."""
        with np.errstate(over="ignore", invalid="ignore"):
            joint = super()._joint_log_proba(X)
        joint[np.isnan(joint)] = -np.inf
        return joint

    def _of_fitted(self) -> GaussianParameters:
        check_is_fitted(self)
        return self._fitted_parameters()


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

    No prior of this class gives the columns MAP of rc2024 Table V and rc2025 Table 9: these were computed with second
    moments about zero, (S_y + m I)/(s_0y + m), from which no mean is subtracted, m = 1 at the start and 10 after it.

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

    _shared, _independent = False, False


@documented()
class LDA(GaussianClassifier):
    """Linear discriminant analysis: x | y ~ N(μ_y, Σ), one covariance for all classes.

    ML: μ_y = s_y/s_0y, and Σ = (S − Σ_y s_0y μ_y μ_yᵀ) / Σ_y s_0y, the pooled within-class covariance. MAP with
    m = ``prior_strength``: μ_y = (m μ₀ + s_y)/(m + s_0y), Σ = (m Σ₀ + n Σ̂)/(m + n), n the weight of all rows.

    %(gaps by EM)s

    Parameters
    ----------
    %(parameters of Gaussians)s

    Attributes
    ----------
    %(attributes of Gaussians)s
    coef_ : array of shape (r, d)
        Slopes of what of log p(x, y) depends on y, a linear function of x; of two classes their difference, (1, d).
    intercept_ : array of shape (r,)
        Its intercepts; of two classes their difference, (1,).

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

    _shared, _independent = True, False

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
        coef = np.zeros((len(mean), len(self.family_.varying_)))
        coef[:, self.family_.varying_] = white @ A
        return coef, log_prior - 0.5 * (white**2).sum(axis=1)


@documented()
class GaussianNB(GaussianClassifier):
    """Naive Bayes with Gaussian features: x_j | y ~ N(μ_yj, σ²_yj).

    ML: mean and variance of each feature within each class. MAP with m = ``prior_strength``:
    μ_yj = (m μ₀ + s_yj)/(m + s_0y), σ²_yj = (m σ²₀ + s_0y σ̂²_yj)/(m + s_0y).

    %(gaps by feature)s

    Parameters
    ----------
    %(parameters of Gaussians)s

    Attributes
    ----------
    %(attributes of Gaussians)s

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

    _shared, _independent = False, True


@documented()
class SharedVarianceGaussianNB(GaussianClassifier):
    """The closed-form logistic regression: x_j | y ~ N(μ_yj, σ²_j), variances shared by the classes.

    ML: σ² = s²/Σ_y s_0y − Σ_y p(y) μ_y². MAP with m = ``prior_strength``: μ_yj = (m μ₀ + s_yj)/(m + s_0y),
    σ²_j = (m σ²₀ + n σ̂²_j)/(m + n), n the weight of all rows. The posterior is a softmax of linear functions of x.

    %(gaps by feature)s

    Parameters
    ----------
    %(parameters of Gaussians)s

    Attributes
    ----------
    %(attributes of Gaussians)s

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

    _shared, _independent = True, True
