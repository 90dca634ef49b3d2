"""Bayesian quadratic discriminant analysis: classify by the mean of the Gaussian class densities (thesis2007
chapters 4, 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import constructed
from rcpkg.checks import check_choice, check_number, check_numbers, refusal
from rcpkg.choice import log_class_prior
from rcpkg.gaussians.classifier import Grid, GridClassifier, MomentClassifier
from rcpkg.gaussians.grid import BDA7_SEEDS, Seed, grid_log_predictive, seed_matrices
from rcpkg.gaussians.leave_one_out import grid_log_predictive_loo
from rcpkg.gaussians.predictive import StudentTs, posterior_factor
from rcpkg.gaussians.scatter import ClassStatistics, Sample
from rcpkg.linalg import SINGULAR_RATIO, Array, Numbers
from rcpkg.rows import Rows, in_memory

SeedName = Literal["trace", "trace_pooled", "diag_class", "diag_pooled"]
ClassPriorName = Literal["laplace", "empirical", "uniform"]
NAMED_SEEDS = {"trace": Seed("trace_class")} | {
    base: Seed(base) for base in ("trace_pooled", "diag_class", "diag_pooled")
}


class PredictiveDensities:
    """Mixin of the classifiers by predictive densities, of the ``seed_`` and ``dof_`` of a prior."""

    def log_predictive(self, X: ArrayLike) -> Array:
        """Log predictive densities log E[N_h](x) of what each row has, normalised in x: shape (n, r)."""
        check_is_fitted(self)
        return self._densities().log_density(self._check_X(X))

    def _densities(self) -> StudentTs:
        counts, means, scatters = self.statistics_
        seeds = self.seed_
        if isinstance(seeds, Seed):
            seeds = seed_matrices(seeds, self.dof_, self.statistics_)
        return StudentTs(counts, means, scatters + seeds, counts + self.dof_)


@constructed
class BayesianQDA(PredictiveDensities, MomentClassifier):
    r"""Quadratic discriminant analysis with the Gaussians integrated out.

    .. math:: \hat y = \arg\min_g\sum_h C(g,h)\,E[\mathcal N_h(x)]\,E[\Theta_h]

    Missing values (NaN) are integrated out in predictions; training does not take them.

    Parameters
    ----------
    seed : {"trace", "trace_pooled", "diag_class", "diag_pooled"} or array, default="trace"
        Matrices B_h of the inverse-Wishart prior (4.20), in squared units of the features: tr(Sigma_h)/d I of the
        maximum-likelihood covariance of class h (section 4.4.2), the same of the within-class covariance, the diagonals
        of these two, or an array (d, d) or (r, d, d), positive semi-definite.
    dof : float, optional
        Exponent q of the prior; the default is d + 3 (section 4.4.2).
    prior : {"inverse_wishart", "noninformative"}, default="inverse_wishart"
        "noninformative" is (4.25): it ignores ``seed`` and ``dof``, and each class needs more than d rows.
    cost, class_prior
        As in `BDA7`.

    Attributes
    ----------
    dof_ : float
        The exponent q in use.
    seed_ : array of shape (r, d, d)
        The matrices B_h.
    classes_, class_log_prior_, statistics_
        As in `BDA7`.

    Raises
    ------
    PredictiveNotDefined
        In ``fit``, where a class has no predictive density.

    References
    ----------
    thesis2007 Theorems 4.4.1, 4.4.3, 4.4.4, Corollary 4.4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import BayesianQDA
    >>> X, y = load_wine(return_X_y=True)
    >>> few = X[::12], y[::12]  # 15 rows of 13 features: too few for `QDA`
    >>> model = BayesianQDA(seed="diag_pooled").fit(*few)
    >>> model.predict_proba(X[[0, 70]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.54, 0.46]])
    """

    seed: SeedName | Numbers = "trace"
    dof: float | None = None
    prior: Literal["inverse_wishart", "noninformative"] = "inverse_wishart"
    cost: ArrayLike | None = None
    class_prior: ClassPriorName | Numbers = "laplace"

    dof_: ClassVar[float]
    seed_: ClassVar[Array]
    statistics_: ClassVar[ClassStatistics]

    @in_memory
    def fit(
        self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "BayesianQDA":
        """Compute the classes' statistics and seeds; every class must have a predictive density. Rows count
        ``sample_weight`` times."""
        sample = self._sample(X, y, sample_weight)
        self.statistics_ = sample.statistics
        self.class_log_prior_ = log_class_prior(self.statistics_.counts, self.class_prior, self)
        self.dof_, self.seed_ = self._prior_parameters(self.statistics_)
        for count, _, scatter, seed in zip(*self.statistics_, self.seed_):
            posterior_factor(count, scatter, seed, self.dof_)
        return self

    def _prior_parameters(self, statistics: ClassStatistics) -> tuple[float, Array]:
        n_classes, d = statistics.means.shape
        check_choice("prior", self.prior, ("inverse_wishart", "noninformative"))
        if self.prior == "noninformative":
            return float(d + 1), np.zeros((n_classes, d, d))
        dof = float(d + 3)
        if self.dof is not None:
            check_number("dof", self.dof, -np.inf)
            dof = float(self.dof)
        if isinstance(self.seed, str):
            if self.seed not in NAMED_SEEDS:
                raise refusal("seed", f"be one of {', '.join(NAMED_SEEDS)} or an array", self.seed)
            return dof, seed_matrices(NAMED_SEEDS[self.seed], dof, statistics)
        seed = check_numbers("seed", self.seed, self)
        if seed.shape not in ((d, d), (n_classes, d, d)):
            raise ValueError(f"seed must have shape ({d}, {d}) or ({n_classes}, {d}, {d}); got {seed.shape}")
        if not np.allclose(seed, seed.swapaxes(-2, -1)):
            raise ValueError("seed must be symmetric")
        values = np.linalg.eigvalsh(seed)
        if (values[..., 0] < -SINGULAR_RATIO * np.abs(values).max(axis=-1)).any():
            raise ValueError("seed must be positive semi-definite")
        return dof, np.broadcast_to(seed, (n_classes, d, d)).copy()


@dataclass(frozen=True)
class PredictiveGrid(Grid):
    """A grid of predictive densities, numbers of degrees of freedom times seeds."""

    dofs: Array
    seeds: Sequence[Seed]

    def log_density(self, sample: Sample, X: Array) -> Array:
        return grid_log_predictive(X, sample.statistics, self.dofs, self.seeds)

    def left_out(self, sample: Sample, rows: Array) -> Array:
        return grid_log_predictive_loo(sample, self.dofs, self.seeds, rows)


class PredictiveClassifier(PredictiveDensities, GridClassifier):
    """A classifier by the predictive densities of one (q, seed) of a grid: q is d, 2d, …, 6d, and the ``seeds`` are
    those of the class."""

    seeds: ClassVar[Sequence[Seed]]
    dof_: ClassVar[float]
    seed_: ClassVar[Seed]

    def _grid(self, d: int) -> PredictiveGrid:
        return PredictiveGrid(d * np.arange(1.0, 7.0), self.seeds)

    def _adopt(self, grid: PredictiveGrid, place: tuple[int, ...], sample: Sample) -> None:
        self.dof_, self.seed_ = float(grid.dofs[place[0]]), grid.seeds[place[1]]


@constructed
class BDA7(PredictiveClassifier):
    """Bayesian QDA with q and one of seven data-dependent seeds chosen by cross-validation.

    Predictive density (4.22), q one of d, 2d, …, 6d, seeds (5.13). These are recomputed without the held-out rows in
    every fold. Under the diagonal seeds predictions do not change when features are rescaled.

    Missing values (NaN) are integrated out in predictions; training does not take them.

    Parameters
    ----------
    class_prior : {"laplace", "empirical", "uniform"} or array of shape (r,), default="laplace"
        Class probabilities of the model: (n_h + 1)/(n + r), which the closed-form models call
        ``class_prior_strength=r``; n_h/n; 1/r; or given ones, their ``priors``.
    cv : "loo", int or splitter, default="loo"
        "loo" is leave-one-out, exact and in closed form; an integer is the number of stratified folds.
    scoring : {"error", "log_loss"}, default="error"
        What is compared on held-out rows: the error rate (with a ``cost``, the mean cost), or the mean of
        -log p(y | x), which suits uses of probabilities. The log-loss, then the order, decides between equal models.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` ≥ 0 is the cost of predicting class g when the truth is class h. It is then what is
        cross-validated, and predictions minimise its expectation. The default is the 0-1 loss.

    Attributes
    ----------
    dof_ : float
        The chosen q.
    seed_ : Seed
        The chosen rule of B_h.
    cv_errors_ : array of shape (6, 7)
        Cross-validated error rates (or mean costs), seeds in the order of (5.13). A held-out row whose own
        class has no density without it counts as an error.
    cv_log_loss_ : array of shape (6, 7)
        Cross-validated log-losses, averaged over the rows whose class has a density under some model without them.
    statistics_ : ClassStatistics
        Counts (r,), means (r, d) and scatter matrices (r, d, d) of all rows.
    classes_, class_log_prior_
        As in `QDA`.

    Raises
    ------
    InvalidStatistics
        If under no model of the grid every class has a density: too few rows, or features constant within classes.

    References
    ----------
    thesis2007 section 5.4.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import BDA7
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BDA7().fit(X[::3], y[::3])
    >>> model.dof_, model.seed_.base
    (78.0, 'diag_class')
    """

    seeds = BDA7_SEEDS

    class_prior: ClassPriorName | Numbers = "laplace"


@constructed
class QuadraticBayes(PredictiveClassifier):
    """Bayesian QDA with the seed k I, q and k chosen by cross-validation (QB).

    Predictive density (4.22), q one of d, 2d, …, 6d, and k one of 1, 2, …, 7, on the scale of the features' scatter: so
    standardise the features. The source calls this classifier parameter-based, but (4.24) does not
    exist for n_h <= 2d - q + 1.

    Missing values (NaN) are integrated out in predictions; training does not take them.

    Parameters
    ----------
    cv, scoring, cost
        As in `BDA7`.

    Attributes
    ----------
    seed_ : Seed
        The rule k I, k being its ``scale``.
    classes_, class_log_prior_, dof_, statistics_
        As in `BDA7`.
    cv_errors_, cv_log_loss_
        As in `BDA7`.

    References
    ----------
    thesis2007 sections 5.1.1 and 5.5.1.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rcpkg import QuadraticBayes
    >>> X, y = load_wine(return_X_y=True)
    >>> model = QuadraticBayes().fit(scale(X)[::3], y[::3])
    >>> model.dof_, model.seed_.scale
    (78.0, 2.0)
    """

    seeds = tuple(Seed("identity", scale=float(k)) for k in range(1, 8))
