"""Discriminant analysis with regularised or constrained covariances: the classifiers that BDA7 is compared
with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rcpkg.base import constructed
from rcpkg.checks import check_number, check_sequence, refusal
from rcpkg.gaussians.classifier import Grid, GridClassifier, MomentClassifier
from rcpkg.gaussians.edda import EDDA_MODELS, edda_covariances
from rcpkg.gaussians.predictive import Gaussians
from rcpkg.gaussians.scatter import ClassStatistics, Sample, log_normal
from rcpkg.linalg import SINGULAR_RATIO, Array
from rcpkg.rows import Rows, in_memory

#: Friedman's grid of 25 points (1989, section 5; thesis2007 section 5.5.1)
FRIEDMAN_LAMBDA = (0.0, 0.125, 0.354, 0.65, 1.0)
FRIEDMAN_GAMMA = (0.0, 0.25, 0.5, 0.75, 1.0)


def shrunken_covariances(statistics: ClassStatistics, lam: float, gamma: float) -> Array:
    r"""Friedman's :math:`\hat\Sigma_h(\lambda,\gamma)` (thesis2007 5.1, 5.2), (..., r, d, d), λ and γ in [0, 1]:

    .. math:: (1-\gamma)\hat\Sigma_h(\lambda)+\tfrac{\gamma}{d}\operatorname{tr}(\hat\Sigma_h(\lambda))I, \\
        \hat\Sigma_h(\lambda)=\frac{(1-\lambda)S_h+\lambda S}{(1-\lambda)n_h+\lambda n},

    with S the within-class scatter of the ``statistics`` and λ = ``lam``. An empty class at λ = 0 gets zeros. Leading
    axes of the statistics are independent samples.

    >>> s = ClassStatistics(np.array([2, 2]), np.zeros((2, 2)), np.array([np.diag([4.0, 2.0]), np.diag([8.0, 0.0])]))
    >>> shrunken_covariances(s, lam=1.0, gamma=0.5)[0]
    array([[2.375, 0.   ],
           [0.   , 1.125]])
    """
    n_h, d = statistics.counts, statistics.means.shape[-1]
    weight = (1 - lam) * n_h + lam * n_h.sum(axis=-1, keepdims=True)
    scatter = (1 - lam) * statistics.scatters + lam * statistics.scatters.sum(axis=-3, keepdims=True)
    sigma = scatter / np.where(weight > 0, weight, 1.0)[..., None, None]
    trace = np.trace(sigma, axis1=-2, axis2=-1) / d
    return (1 - gamma) * sigma + gamma * trace[..., None, None] * np.eye(d)


@dataclass(frozen=True)
class ShrunkenGrid(Grid):
    """Gaussians of Friedman's shrunken covariances."""

    lambdas: Sequence[float]
    gammas: Sequence[float]

    def class_densities(self, statistics: ClassStatistics, sizes: Array, X: Array) -> Array:
        deviations = X[..., :, None, :] - statistics.means[..., None, :, :]
        grid = [[shrunken_covariances(statistics, lam, gamma) for gamma in self.gammas] for lam in self.lambdas]
        densities = [[log_normal(deviations, covariances, SINGULAR_RATIO) for covariances in row] for row in grid]
        return np.where((statistics.counts > 0)[..., None, :], densities, -np.inf)


@constructed
class RDA(GridClassifier):
    r"""Friedman's regularised discriminant analysis, lambda and gamma chosen by cross-validation.

    .. math:: \hat\Sigma_h(\lambda,\gamma)&=(1-\gamma)\hat\Sigma_h(\lambda)+\tfrac\gamma d\operatorname{tr}
        (\hat\Sigma_h(\lambda))I, \\
        \hat\Sigma_h(\lambda)&=\frac{(1-\lambda)S_h+\lambda S}{(1-\lambda)n_h+\lambda n}

    Missing values (NaN) are integrated out in predictions; training does not take them.

    Parameters
    ----------
    lambdas : sequence of float, default=(0, 0.125, 0.354, 0.65, 1)
        Candidates of lambda, in [0, 1]: shrinkage towards the within-class covariance.
    gammas : sequence of float, default=(0, 0.25, 0.5, 0.75, 1)
        Candidates of gamma, in [0, 1]: shrinkage towards a multiple of the identity, so the units matter.
    cv, scoring, cost
        As in `BDA7`.

    Attributes
    ----------
    lambda_ : float
        The chosen lambda.
    gamma_ : float
        The chosen gamma.
    covariances_ : array of shape (r, d, d)
        Covariances of the classes.
    classes_, class_log_prior_, statistics_
        As in `BDA7`.
    cv_errors_, cv_log_loss_
        As in `BDA7`, of shape (n_lambda, n_gamma).

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

    lambdas: Sequence[float] = FRIEDMAN_LAMBDA
    gammas: Sequence[float] = FRIEDMAN_GAMMA

    lambda_: ClassVar[float]
    gamma_: ClassVar[float]
    covariances_: ClassVar[Array]

    def _grid(self, d: int) -> ShrunkenGrid:
        for name in ("lambdas", "gammas"):
            check_sequence(name, getattr(self, name), 0, 1)
        return ShrunkenGrid(self.lambdas, self.gammas)

    def _adopt(self, grid: ShrunkenGrid, place: tuple[int, ...], sample: Sample) -> None:
        self.lambda_, self.gamma_ = float(grid.lambdas[place[0]]), float(grid.gammas[place[1]])
        self.covariances_ = shrunken_covariances(sample.statistics, self.lambda_, self.gamma_)


@dataclass(frozen=True)
class EDDAGrid(Grid):
    """Gaussians of eigen-constrained covariances."""

    models: Sequence[str]
    tol: float

    def class_densities(self, statistics: ClassStatistics, sizes: Array, X: Array) -> Array:
        counts, means, scatters = statistics
        deviations = X[..., :, None, :] - means[..., None, :, :]
        out = np.full((len(self.models), *deviations.shape[:-1]), -np.inf)
        for values, model in zip(out, self.models):
            covariances, feasible = edda_covariances(counts, scatters, model, self.tol, rows=sizes)
            exists = (feasible[..., None] & (counts > 0))[..., None, :]
            if exists.any():
                np.copyto(values, log_normal(deviations, covariances), where=exists)
        return out


@constructed
class EDDA(GridClassifier):
    r"""Discriminant analysis with one of fourteen eigen-decomposed covariance models.

    :math:`\Sigma_h=\lambda_hD_hA_hD_h^T` with volume, shape and orientation each equal or variable over the
    classes, or trivial; maximum likelihood for every model (`edda_covariances`), the model chosen by
    cross-validation.

    Missing values (NaN) are integrated out in predictions; training does not take them.

    Parameters
    ----------
    models : sequence of str, default=`EDDA_MODELS`
        Some of the fourteen, such as "VEI": volume, shape and orientation Equal, Variable or Identity. Leave EVE and
        VVE out where the iterations take too long.
    tol : float, default=1e-8
        The five iterative models stop when -2 log-likelihood per row falls by at most tol in a sweep (500
        sweeps at most, then a ConvergenceWarning).
    cv, scoring, cost
        As in `BDA7`.

    Attributes
    ----------
    model_ : str
        The chosen model.
    covariances_ : array of shape (r, d, d)
        Covariances of the classes.
    classes_, class_log_prior_, statistics_
        As in `BDA7`.
    cv_errors_, cv_log_loss_
        As in `BDA7`, of shape (n_models,). A model without a maximum of the likelihood in a fold errs there.

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
    """

    models: Sequence[str] = EDDA_MODELS
    tol: float = 1e-8

    model_: ClassVar[str]
    covariances_: ClassVar[Array]

    def _grid(self, d: int) -> EDDAGrid:
        if np.ndim(self.models) != 1 or len(self.models) == 0 or not set(self.models) <= set(EDDA_MODELS):
            raise refusal("models", f"be some of {', '.join(EDDA_MODELS)}", self.models)
        check_number("tol", self.tol, 0, above=True)
        return EDDAGrid(self.models, self.tol)

    def _adopt(self, grid: EDDAGrid, place: tuple[int, ...], sample: Sample) -> None:
        self.model_ = grid.models[place[0]]
        counts, _, scatters = sample.statistics
        self.covariances_ = edda_covariances(counts, scatters, self.model_, self.tol, rows=sample.class_sizes)[0]


@constructed
class NearestMeans(MomentClassifier):
    r"""The class of the nearest mean: Gaussians :math:`N(\bar x_h,\sigma^2I)`, equal class probabilities.

    :math:`\sigma^2` is the maximum-likelihood estimate, the mean within-class variance of the features (1
    where that is 0: without a cost it does not move the decision). Distances are in the features' units.

    Missing values (NaN) are integrated out in predictions, which leaves distances over what the row has; training does
    not take them.

    Parameters
    ----------
    cost : array of shape (r, r), optional
        As in `BDA7`.

    Attributes
    ----------
    means_ : array of shape (r, d)
        Means of the classes.
    variance_ : float
        The variance :math:`\sigma^2`.
    classes_, class_log_prior_
        As in `BDA7`.

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
    """

    cost: ArrayLike | None = None

    means_: ClassVar[Array]
    variance_: ClassVar[float]

    @in_memory
    def fit(
        self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "NearestMeans":
        """Compute the means and the common variance; rows count ``sample_weight`` times."""
        sample = self._sample(X, y, sample_weight)
        self.means_ = sample.statistics.means
        spread = float(np.trace(sample.statistics.pooled))
        self.variance_ = spread / (sample.X.shape[1] * sample.statistics.counts.sum()) or 1.0
        self.class_log_prior_ = np.full(len(self.classes_), -np.log(len(self.classes_)))
        return self

    def _densities(self) -> Gaussians:
        return Gaussians(self.means_, self.variance_ * np.eye(self.means_.shape[1]))
