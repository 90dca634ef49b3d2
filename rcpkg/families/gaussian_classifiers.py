"""Classifiers with Gaussian classes: quadratic and linear discriminant analysis, naive Bayes, logistic regression."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.gaussian import GaussianFamily
from rcpkg.families.gaussian_prior import GaussianParameters, GaussianSettings


class GaussianClassifier(GaussianSettings, ConjugateClassifier, family=GaussianFamily):
    """The four Gaussian classifiers, which differ in two switches: shared covariances, and independent features."""

    _shared: ClassVar[bool]
    _independent: ClassVar[bool]

    def _new_family(self) -> GaussianFamily:
        """The family that these parameters make; ``family_`` is the one that knows the training rows."""
        return self._family_type(shared=self._shared, independent=self._independent, **self._settings())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def means_(self) -> Array:
        """Means of the classes, shape (r, d)."""
        return self.family_.decode(self._fitted().mean)

    @property
    def covariances_(self) -> Array:
        """Covariances, or variances, of the shape that the model gives them; zero for features that do not vary."""
        return self.family_.covariances(self._fitted())

    def _fitted(self) -> GaussianParameters:
        check_is_fitted(self)
        return self._fitted_parameters()


class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: x | y ~ N(μ_y, Σ_y).

    ML: μ_y = s_y/s_0y, Σ_y = S_y/s_0y − μ_y μ_yᵀ. MAP with m = ``prior_strength`` (m₁ = m₂ = m in the source):
    μ_y = (m μ₀ + s_y)/(m + s_0y), Σ_y = (m Σ₀ + s_0y Σ̂_y)/(m + s_0y); the default prior suits z-scores.

    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, EM climbs to a maximum of the likelihood of what is seen. Calibration takes such rows by safe steps;
    `ConditionalLikelihood` refuses them.

    Parameters
    ----------
    prior_strength : float, default=0.0
        m ≥ 0, in pseudo-rows, for each mean and each covariance; 0 is maximum likelihood.
    prior_mean : float, array of shape (d,) or "grand", default=0.0
        μ₀, in the units of the features; "grand" is the mean of all rows.
    prior_covariance : float, array, "pooled" or "diagonal", default=1.0
        Σ₀, (d, d), in squared units of the features. A number stands for that multiple of the identity, "pooled" for
        the covariance within the classes, and "diagonal" for its diagonal; these two do not depend on the units.
    singular_ridge : float, default=2.0
        t. Variance added to a singular covariance, t times that of each feature within the classes, beside the prior
        and only where maximum likelihood fails, or rests on few rows. A feature that is constant within each class but
        not in all rows raises a warning, and gets t/n times its variance in all n rows; one that is constant in all
        rows takes no part; where training rows have gaps and none of a class has a value of a feature, that class gets
        the mean and the variance of all rows, and a warning says so. With 0 and without a prior these are errors, as
        in the sources.
    rows_per_feature : float, default=3.0
        κ. Rows are few where a covariance has ν < κd degrees of freedom: the rows that it is taken from, less the means
        that they give, and ``prior_strength``. All covariances then have the ridge times κ − ν/d; else, or with 0, they
        are those of maximum likelihood and of scikit-learn, or of MAP, unless singular.
    class_prior_strength : float, optional
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; by default as many as ``prior_strength``.
    priors : array of shape (r,), optional
        Class probabilities π_y of the model, in the order of ``classes_``; by default they are estimated.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` ≥ 0: cost of predicting class g when the truth is class h; by default the 0-1 loss.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        Log class probabilities.
    statistics_ : Statistics
        Weighted sums of the rows about the origin of the family: count (r,), first (r, d) and second (r, d, d).
    parameters_ : GaussianParameters
        log_prior (r,), mean (r, d), covariance and whitener; None while the rows of ``partial_fit`` do not suffice.
    means_ : array of shape (r, d)
        Means of the classes.
    covariances_ : array of shape (r, d, d)
        Covariances within the classes.
    family_ : Family
        Its ``origin_`` (d,) lies amid the rows; its ``varying_`` (d,) says which features are not constant. The shapes
        in ``statistics_`` and ``parameters_`` count these.

    Raises
    ------
    InvalidStatistics
        In ``fit`` with ``singular_ridge=0``, where a covariance is singular: each class needs more than d rows. One
        covariance for all r classes needs d + r rows; a variance needs two values of the feature.

    Notes
    -----
    ``prior_strength=20.0, prior_covariance="diagonal", prior_mean="grand"``, say, is a prior that does not depend on
    units, for more rows than ``rows_per_feature`` asks for, too. No prior of this class gives the columns MAP of rc2024
    Table V and rc2025 Table 9, which subtract no mean from second moments.

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
    """

    _shared, _independent = False, False


class LDA(GaussianClassifier):
    """Linear discriminant analysis: x | y ~ N(μ_y, Σ), one covariance for all classes.

    ML: μ_y = s_y/s_0y, and Σ = (S − Σ_y s_0y μ_y μ_yᵀ) / Σ_y s_0y, the pooled within-class covariance. MAP with
    m = ``prior_strength``: μ_y = (m μ₀ + s_y)/(m + s_0y), Σ = (m Σ₀ + n Σ̂)/(m + n), n the weight of all rows.

    Missing values are taken as in `QDA`.

    Parameters
    ----------
    prior_covariance : float, array of shape (d, d), "pooled" or "diagonal", default=1.0
        Σ₀, with the same numbers and names as in `QDA`.
    prior_strength, prior_mean, singular_ridge, rows_per_feature, class_prior_strength, priors, cost
        As in `QDA`.

    Attributes
    ----------
    statistics_, parameters_
        As in `QDA`, with one second moment and one covariance (d, d).
    covariances_ : array of shape (d, d)
        The covariance within the classes, which they share.
    coef_ : array of shape (r, d)
        Slopes of what of log p(x, y) depends on y, a linear function of x; of two classes their difference, (1, d).
    intercept_ : array of shape (r,)
        Its intercepts; of two classes their difference, (1,).
    classes_, class_log_prior_, means_, family_
        As in `QDA`.

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
        log_prior, mean, _, A = self._fitted()
        white = mean @ A.T
        coef = np.zeros((len(mean), len(self.family_.varying_)))
        coef[:, self.family_.varying_] = white @ A
        return coef, log_prior - 0.5 * (white**2).sum(axis=1)


class GaussianNB(GaussianClassifier):
    """Naive Bayes with Gaussian features: x_j | y ~ N(μ_yj, σ²_yj).

    ML: mean and variance of each feature within each class. MAP with m = ``prior_strength``:
    μ_yj = (m μ₀ + s_yj)/(m + s_0y), σ²_yj = (m σ²₀ + s_0y σ̂²_yj)/(m + s_0y).

    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, means and variances are those of the values seen. Calibration takes such rows as those of `QDA`.

    Parameters
    ----------
    prior_covariance : float, array of shape (d,), "pooled" or "diagonal", default=1.0
        Variances σ²₀, in squared units of the features, with the same names as in `QDA`.
    prior_strength, prior_mean, singular_ridge, rows_per_feature, class_prior_strength, priors, cost
        As in `QDA`.

    Attributes
    ----------
    statistics_, parameters_
        As in `QDA`, with second moments and variances (r, d). Where values were missing in training the statistics have
        their weights ``seen`` (r, d), too.
    covariances_ : array of shape (r, d)
        Variances of the features within the classes.
    classes_, class_log_prior_, means_, family_
        As in `QDA`.

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
    """

    _shared, _independent = False, True


class SharedVarianceGaussianNB(GaussianClassifier):
    """The closed-form logistic regression: x_j | y ~ N(μ_yj, σ²_j), variances shared by the classes.

    ML: σ² = s²/Σ_y s_0y − Σ_y p(y) μ_y². MAP with m = ``prior_strength``: μ_yj = (m μ₀ + s_yj)/(m + s_0y),
    σ²_j = (m σ²₀ + n σ̂²_j)/(m + n), n the weight of all rows. The posterior is a softmax of linear functions of x.

    Missing values are taken as in `GaussianNB`.

    Parameters
    ----------
    prior_covariance : float, array of shape (d,), "pooled" or "diagonal", default=1.0
        As in `GaussianNB`.
    prior_strength, prior_mean, singular_ridge, rows_per_feature, class_prior_strength, priors, cost
        As in `QDA`.

    Attributes
    ----------
    statistics_, parameters_
        As in `GaussianNB`, with second moments and variances (d,).
    covariances_ : array of shape (d,)
        Variances of the features within the classes, which share them.
    classes_, class_log_prior_, means_, family_
        As in `QDA`.

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
    """

    _shared, _independent = True, True
