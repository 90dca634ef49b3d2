"""Gaussian classes with independent features: naive Bayes, and the closed-form logistic regression."""

from rcpkg.families._docs import documented
from rcpkg.families.covariance import Diagonal
from rcpkg.families.gaussian import GaussianClassifier
from rcpkg.families.projections import linear_step


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

    _form = Diagonal(shared=False)
    _remedies = "drop constant features, the class, or use SharedVarianceGaussianNB"


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

    _form = Diagonal(shared=True)
    projected_step = linear_step
    _remedies = "drop constant features"
