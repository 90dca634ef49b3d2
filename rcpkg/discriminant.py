"""Discriminant analysis with regularised or constrained covariances: the classifiers that BDA7 is compared
with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, check_number, check_sequence
from rcpkg.covariance import (
    EDDA_MODELS,
    FRIEDMAN_GAMMA,
    FRIEDMAN_LAMBDA,
    ClassStatistics,
    class_statistics,
    edda_covariances,
    leave_one_out_statistics,
    log_normal,
    shrunken_covariances,
    shrunken_log_density,
    shrunken_log_density_loo,
)
from rcpkg.selection import GridClassifier, log_class_prior


class RDA(GridClassifier):
    r"""Friedman's regularised discriminant analysis (thesis2007 5.1, 5.2), lambda and gamma chosen by
    cross-validation.

    Parameters
    ----------
    lambdas, gammas : sequences of float in [0, 1]
        The grid: shrinkage towards the within-class covariance, and towards a multiple of the identity.
    cv, cost, class_prior, random_state
        As for `BDA7`; "loo" is exact and closed-form.

    Attributes
    ----------
    lambda_, gamma_ : float
    covariance_ : array of shape (r, d, d)
    statistics_ : ClassStatistics
    cv_errors_ : array of shape (n_lambda, n_gamma)
    """

    def __init__(
        self,
        *,
        lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
        gammas: Sequence[float] = FRIEDMAN_GAMMA,
        cv="loo",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state=None,
    ):
        self.lambdas = lambdas
        self.gammas = gammas
        self.cv = cv
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _grid(self, X: Array, y: Array, X_new: Array) -> Array:
        return shrunken_log_density(X_new, class_statistics(X, y, len(self.classes_)), self.lambdas, self.gammas)

    def _grid_loo(self, X: Array, y: Array) -> Array:
        return shrunken_log_density_loo(X, y, len(self.classes_), self.lambdas, self.gammas)

    def fit(self, X: ArrayLike, y: ArrayLike) -> "RDA":
        """Choose lambda and gamma, and compute the covariances of all rows."""
        X, y = self._check_Xy(X, y)
        for name in ("lambdas", "gammas"):
            check_sequence(name, getattr(self, name), 0, 1)
        row, column = self._select(X, y)
        self.lambda_, self.gamma_ = float(self.lambdas[row]), float(self.gammas[column])
        self.statistics_ = class_statistics(X, y, len(self.classes_))
        self.covariance_ = shrunken_covariances(self.statistics_, self.lambda_, self.gamma_)
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        density = shrunken_log_density(X, self.statistics_, [self.lambda_], [self.gamma_])[0, 0]
        return density + self.class_log_prior_


class EDDA(GridClassifier):
    r"""Discriminant analysis with one of fourteen eigen-decomposed covariance models (Bensmail and Celeux;
    thesis2007 5.1.2).

    :math:`\Sigma_h=\lambda_hD_hA_hD_h^T` with volume, shape and orientation each equal or variable over the
    classes, or trivial; maximum likelihood for every model (`edda_covariances`), the model chosen by
    cross-validation.

    Parameters
    ----------
    models : sequence of str
        Names as in `EDDA_MODELS`; leave EVE and VVE out where the iterations take too long.
    tol : float
        The five iterative models stop when -2 log-likelihood per row falls by at most tol in a sweep (500
        sweeps at most, then a ConvergenceWarning).
    cv, cost, class_prior, random_state
        As for `BDA7`; "loo" downdates the scatter matrices and refits the models in batches.

    Attributes
    ----------
    model_ : str
    covariance_ : array of shape (r, d, d)
    statistics_ : ClassStatistics
    cv_errors_ : array of shape (n_models,)
        A model without a maximum of the likelihood in a fold errs there.
    """

    def __init__(
        self,
        *,
        models: Sequence[str] = EDDA_MODELS,
        tol: float = 1e-8,
        cv="loo",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state=None,
    ):
        self.models = models
        self.tol = tol
        self.cv = cv
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _log_density(self, statistics: ClassStatistics, model: str, X: Array) -> Array:
        """Log densities (..., n, r) of rows X (..., n, d) for batches (...) of statistics."""
        covariances, feasible = edda_covariances(statistics.counts, statistics.scatters, model, self.tol)
        exists = (feasible[..., None] & (statistics.counts > 0))[..., None, :]
        deviations = X[..., :, None, :] - statistics.means[..., None, :, :]
        if not exists.any():
            return np.full(deviations.shape[:-1], -np.inf)
        return np.where(exists, log_normal(deviations, covariances), -np.inf)

    def _grid(self, X: Array, y: Array, X_new: Array) -> Array:
        statistics = class_statistics(X, y, len(self.classes_))
        return np.stack([self._log_density(statistics, model, X_new) for model in self.models])

    def _grid_loo(self, X: Array, y: Array) -> Array:
        n, d = X.shape
        out = np.empty((len(self.models), n, len(self.classes_)))
        step = max(1, 2**21 // (len(self.classes_) * d * d))
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            statistics = leave_one_out_statistics(X, y, len(self.classes_), rows)
            for k, model in enumerate(self.models):
                out[k, rows] = self._log_density(statistics, model, X[rows, None, :])[:, 0]
        return out

    def fit(self, X: ArrayLike, y: ArrayLike) -> "EDDA":
        """Choose the model, and estimate it from all rows."""
        X, y = self._check_Xy(X, y)
        if len(self.models) == 0 or not set(self.models) <= set(EDDA_MODELS):
            raise ValueError(f"models must be some of {', '.join(EDDA_MODELS)}; got {self.models!r}")
        check_number("tol", self.tol, 0, above=True)
        self.model_ = self.models[self._select(X, y)[0]]
        self.statistics_ = class_statistics(X, y, len(self.classes_))
        counts, _, scatters = self.statistics_
        self.covariance_ = edda_covariances(counts, scatters, self.model_, self.tol)[0]
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        return log_normal(X[:, None, :] - self.statistics_.means, self.covariance_) + self.class_log_prior_


class NearestMeans(GenerativeClassifier):
    r"""The class of the nearest mean: Gaussians :math:`N(\bar x_h,\sigma^2I)`, equal class probabilities.

    :math:`\sigma^2` is the maximum-likelihood estimate, the mean within-class variance of the features (1
    where that is 0: it does not move the decision).

    Attributes
    ----------
    means_ : array of shape (r, d)
    variance_ : float
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> "NearestMeans":
        """Compute the means and the common variance."""
        X, y = self._check_Xy(X, y)
        statistics = class_statistics(X, y, len(self.classes_))
        self.means_ = statistics.means
        self.variance_ = float(np.trace(statistics.pooled)) / X.size or 1.0
        self.class_log_prior_ = np.full(len(self.classes_), -np.log(len(self.classes_)))
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        squared = ((X[:, None, :] - self.means_) ** 2).sum(axis=-1)
        return self.class_log_prior_ - (X.shape[1] * np.log(2 * np.pi * self.variance_) + squared / self.variance_) / 2


class PriorIfSingular(GenerativeClassifier):
    """The rule by which the printed tables 5.1-5.22 of thesis2007 treat LDA and QDA: where the wrapped
    classifier raises InvalidStatistics in ``fit`` (a singular covariance), every row gets the largest class
    prior, ties to the first class.

    Parameters
    ----------
    estimator : GenerativeClassifier
        For the tables ``LDA(class_prior_strength=r)`` or ``QDA(class_prior_strength=r)``.
    class_prior : "laplace", "empirical", "uniform" or r probabilities
        The class prior of the singular case.

    Attributes
    ----------
    estimator_ : the fitted clone, or None where singular
    """

    def __init__(self, estimator: GenerativeClassifier, *, class_prior: str | ArrayLike = "laplace"):
        self.estimator = estimator
        self.class_prior = class_prior

    def fit(self, X: ArrayLike, y: ArrayLike) -> "PriorIfSingular":
        """Fit a clone of the estimator, or fall back on the class prior."""
        X, y = self._check_Xy(X, y)
        try:
            self.estimator_ = clone(self.estimator).fit(X, self.classes_[y])
            self.class_log_prior_ = self.estimator_.class_log_prior_
        except InvalidStatistics:
            self.estimator_ = None
            self.class_log_prior_ = log_class_prior(np.bincount(y), self.class_prior)
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        if self.estimator_ is None:
            return np.full((len(X), len(self.classes_)), -np.inf)
        return self.estimator_.predict_joint_log_proba(X)
