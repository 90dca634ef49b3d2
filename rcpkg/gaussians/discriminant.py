"""Discriminant analysis with regularised or constrained covariances: the classifiers that BDA7 is compared
with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics
from rcpkg.checks import check_number, check_sequence, check_weights
from rcpkg.choice import GridClassifier, MomentClassifier, log_class_prior
from rcpkg.gaussians._docs import documented
from rcpkg.gaussians.edda import EDDA_MODELS, edda_covariances
from rcpkg.gaussians.scatter import ClassStatistics, class_statistics, leave_one_out_statistics, log_normal
from rcpkg.gaussians.shrinkage import (
    FRIEDMAN_GAMMA,
    FRIEDMAN_LAMBDA,
    shrunken_covariances,
    shrunken_log_density,
    shrunken_log_density_loo,
)


@documented()
class RDA(GridClassifier):
    r"""Friedman's regularised discriminant analysis, lambda and gamma chosen by cross-validation.

    .. math:: \hat\Sigma_h(\lambda,\gamma)=(1-\gamma)\hat\Sigma_h(\lambda)+\frac\gamma d\operatorname{tr}
        (\hat\Sigma_h(\lambda))I,\qquad \hat\Sigma_h(\lambda)=\frac{(1-\lambda)S_h+\lambda S}{(1-\lambda)n_h+\lambda n}

    Parameters
    ----------
    lambdas : sequence of float, default=(0, 0.125, 0.354, 0.65, 1)
        Candidates of lambda, in [0, 1]: shrinkage towards the within-class covariance.
    gammas : sequence of float, default=(0, 0.25, 0.5, 0.75, 1)
        Candidates of gamma, in [0, 1]: shrinkage towards a multiple of the identity, so the units matter.
    %(cv)s
    %(choice)s

    Attributes
    ----------
    %(classes and prior)s
    lambda_ : float
        The chosen lambda.
    gamma_ : float
        The chosen gamma.
    cv_errors_ : array of shape (n_lambda, n_gamma)
        Cross-validated error rates (or mean costs).
    cv_log_loss_ : array of shape (n_lambda, n_gamma)
        %(cv_log_loss)s
    covariances_ : array of shape (r, d, d)
        Covariances of the classes.
    %(statistics_)s

    Raises
    ------
    %(no density)s

    References
    ----------
    thesis2007 (5.1), (5.2); Friedman (1989).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import RDA
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RDA().fit(X, y)
    >>> model.lambda_, model.gamma_
    (0.125, 0.0)
    >>> model.cv_errors_[:2, :3].round(3)
    array([[0.006, 0.478, 0.393],
           [0.   , 0.404, 0.354]])
    """

    def __init__(
        self,
        *,
        lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
        gammas: Sequence[float] = FRIEDMAN_GAMMA,
        cv: int | str | BaseCrossValidator = "loo",
        scoring: str = "error",
        ties: str = "log_loss",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.lambdas = lambdas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.ties = ties
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _grid(self, X: Array, y: Array, X_new: Array, weights: Array | None = None) -> Array:
        statistics = class_statistics(X, y, len(self.classes_), weights)
        return shrunken_log_density(X_new, statistics, self.lambdas, self.gammas)

    def _grid_loo(self, X: Array, y: Array, weights: Array | None = None) -> Array:
        return shrunken_log_density_loo(X, y, len(self.classes_), self.lambdas, self.gammas, weights)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "RDA":
        """Choose lambda and gamma, and compute the covariances of all rows. Rows count ``sample_weight`` times;
        leave-one-out leaves out one of them, or all of less than one."""
        X, y, weights, kept = self._training_rows(X, y, sample_weight)
        for name in ("lambdas", "gammas"):
            check_sequence(name, getattr(self, name), 0, 1)
        row, column = self._select(X, y, weights, kept)
        self.lambda_, self.gamma_ = float(self.lambdas[row]), float(self.gammas[column])
        self.statistics_ = class_statistics(X, y, len(self.classes_), weights)
        self.covariances_ = shrunken_covariances(self.statistics_, self.lambda_, self.gamma_)
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        density = shrunken_log_density(X, self.statistics_, [self.lambda_], [self.gamma_])[0, 0]
        return density + self.class_log_prior_


@documented()
class EDDA(GridClassifier):
    r"""Discriminant analysis with one of fourteen eigen-decomposed covariance models.

    :math:`\Sigma_h=\lambda_hD_hA_hD_h^T` with volume, shape and orientation each equal or variable over the
    classes, or trivial; maximum likelihood for every model (`edda_covariances`), the model chosen by
    cross-validation.

    Parameters
    ----------
    models : sequence of str, default=`EDDA_MODELS`
        Some of the fourteen, such as "VEI": volume, shape and orientation Equal, Variable or Identity. Leave EVE and
        VVE out where the iterations take too long.
    tol : float, default=1e-8
        The five iterative models stop when -2 log-likelihood per row falls by at most tol in a sweep (500
        sweeps at most, then a ConvergenceWarning).
    cv : "loo", int or splitter, default="loo"
        "loo" is leave-one-out: scatter matrices are downdated, and the models refitted in batches; an integer is a
        number of stratified folds.
    %(choice)s

    Attributes
    ----------
    %(classes and prior)s
    model_ : str
        The chosen model.
    cv_errors_ : array of shape (n_models,)
        Cross-validated error rates (or mean costs). A model without a maximum of the likelihood in a fold errs there.
    cv_log_loss_ : array of shape (n_models,)
        %(cv_log_loss)s
    covariances_ : array of shape (r, d, d)
        Covariances of the classes.
    %(statistics_)s

    Raises
    ------
    %(no density)s

    References
    ----------
    thesis2007 section 5.1.2; Bensmail and Celeux (1996).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import EDDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDDA(models=["EII", "VVI", "EEE", "VVV"]).fit(X, y)
    >>> model.model_, model.cv_errors_.round(3)
    ('EEE', array([0.08 , 0.047, 0.02 , 0.027]))
    >>> round(model.score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        *,
        models: Sequence[str] = EDDA_MODELS,
        tol: float = 1e-8,
        cv: int | str | BaseCrossValidator = "loo",
        scoring: str = "error",
        ties: str = "log_loss",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.models = models
        self.tol = tol
        self.cv = cv
        self.scoring = scoring
        self.ties = ties
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _log_density(self, statistics: ClassStatistics, rows: Array, model: str, X: Array) -> Array:
        """Log densities (..., n, r) of rows X (..., n, d) for batches (...) of statistics, of so many rows (..., r)."""
        counts, _, scatters = statistics
        covariances, feasible = edda_covariances(counts, scatters, model, self.tol, rows=rows)
        exists = (feasible[..., None] & (statistics.counts > 0))[..., None, :]
        deviations = X[..., :, None, :] - statistics.means[..., None, :, :]
        if not exists.any():
            return np.full(deviations.shape[:-1], -np.inf)
        return np.where(exists, log_normal(deviations, covariances), -np.inf)

    def _grid(self, X: Array, y: Array, X_new: Array, weights: Array | None = None) -> Array:
        statistics = class_statistics(X, y, len(self.classes_), weights)
        rows = np.bincount(y, minlength=len(self.classes_))
        return np.stack([self._log_density(statistics, rows, model, X_new) for model in self.models])

    def _grid_loo(self, X: Array, y: Array, weights: Array | None = None) -> Array:
        n, d = X.shape
        out = np.empty((len(self.models), n, len(self.classes_)))
        step = max(1, 2**21 // (len(self.classes_) * d * d))
        gone = np.ones(n) if weights is None else weights <= 1
        left = np.bincount(y, minlength=len(self.classes_)) - gone[:, None] * np.eye(len(self.classes_))[y]
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            statistics = leave_one_out_statistics(X, y, len(self.classes_), rows, weights)
            for k, model in enumerate(self.models):
                out[k, rows] = self._log_density(statistics, left[rows], model, X[rows, None, :])[:, 0]
        return out

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "EDDA":
        """Choose the model, and estimate it from all rows. Rows count ``sample_weight`` times; leave-one-out leaves
        out one of them, or all of less than one."""
        X, y, weights, kept = self._training_rows(X, y, sample_weight)
        if len(self.models) == 0 or not set(self.models) <= set(EDDA_MODELS):
            raise ValueError(f"models must be some of {', '.join(EDDA_MODELS)}; got {self.models!r}")
        check_number("tol", self.tol, 0, above=True)
        self.model_ = self.models[self._select(X, y, weights, kept)[0]]
        self.statistics_ = class_statistics(X, y, len(self.classes_), weights)
        counts, _, scatters = self.statistics_
        self.covariances_ = edda_covariances(counts, scatters, self.model_, self.tol, rows=np.bincount(y))[0]
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        return log_normal(X[:, None, :] - self.statistics_.means, self.covariances_) + self.class_log_prior_


@documented()
class NearestMeans(MomentClassifier):
    r"""The class of the nearest mean: Gaussians :math:`N(\bar x_h,\sigma^2I)`, equal class probabilities.

    :math:`\sigma^2` is the maximum-likelihood estimate, the mean within-class variance of the features (1
    where that is 0: it does not move the decision). There are no parameters; distances are in the features' units.

    Attributes
    ----------
    %(classes and prior)s
    means_ : array of shape (r, d)
        Means of the classes.
    variance_ : float
        The variance :math:`\sigma^2`.

    References
    ----------
    thesis2007 section 5.5.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import NearestMeans
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NearestMeans().fit(X, y)
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.81, 0.19],
           [0.  , 1.  , 0.  ]])
    >>> round(model.score(X, y), 2)
    0.93
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "NearestMeans":
        """Compute the means and the common variance; rows count ``sample_weight`` times."""
        X, y, weights, _ = self._training_rows(X, y, sample_weight)
        statistics = class_statistics(X, y, len(self.classes_), weights)
        self.means_ = statistics.means
        self.variance_ = float(np.trace(statistics.pooled)) / (X.shape[1] * statistics.counts.sum()) or 1.0
        self.class_log_prior_ = np.full(len(self.classes_), -np.log(len(self.classes_)))
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        squared = ((X[:, None, :] - self.means_) ** 2).sum(axis=-1)
        return self.class_log_prior_ - (X.shape[1] * np.log(2 * np.pi * self.variance_) + squared / self.variance_) / 2


@documented()
class PriorIfSingular(GenerativeClassifier):
    """What the wrapped classifier says or, where its covariance is singular, the largest class prior.

    The rule by which the printed tables 5.1-5.22 of thesis2007 treat LDA and QDA: where the wrapped classifier raises
    `InvalidStatistics` in ``fit``, every row gets the class of the largest prior, ties to the first one.

    Parameters
    ----------
    estimator : GenerativeClassifier
        For the tables ``LDA(class_prior_strength=r, singular_ridge=0)`` or `QDA` likewise: with the ridge that these
        have by default no covariance is singular. It is cloned.
    class_prior : {"laplace", "empirical", "uniform"} or array of shape (r,), default="laplace"
        Class probabilities of the singular case: (n_h + 1)/(n + r), n_h/n, 1/r, or given ones.

    Attributes
    ----------
    %(classes and prior)s
    estimator_ : GenerativeClassifier or None
        The fitted clone, None where singular.

    References
    ----------
    thesis2007 Tables 5.1-5.22, in the reading that their numbers allow.

    Examples
    --------
    >>> from rcpkg import QDA, PriorIfSingular
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "b"]
    >>> model = PriorIfSingular(QDA(singular_ridge=0.0)).fit(X, y)
    >>> model.estimator_ is None, model.predict_proba([[1.0, 1.0]])
    (True, array([[0.4, 0.6]]))
    """

    def __init__(self, estimator: GenerativeClassifier, *, class_prior: str | ArrayLike = "laplace"):
        self.estimator = estimator
        self.class_prior = class_prior

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "PriorIfSingular":
        """Fit a clone of the estimator, or fall back on the class prior; rows count ``sample_weight`` times."""
        X, y = self.check_X_y(X, y)
        weights = None if sample_weight is None else check_weights(sample_weight, len(y))
        options = {} if weights is None else {"sample_weight": weights}
        try:
            self.estimator_ = clone(self.estimator).fit(X, self.classes_[y], **options)
            self.class_log_prior_ = self.estimator_.class_log_prior_
        except InvalidStatistics:
            self.estimator_ = None
            self.class_log_prior_ = log_class_prior(np.bincount(y, weights), self.class_prior)
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        if self.estimator_ is None:
            return np.full((len(X), len(self.classes_)), -np.inf)
        return self.estimator_.predict_joint_log_proba(X)
