"""Bayesian quadratic discriminant analysis: classify by the mean of the Gaussian class densities (thesis2007
chapters 4, 5)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, check_number, check_numbers, check_sequence
from rcpkg.covariance import ClassStatistics, class_statistics
from rcpkg.predictive import (
    BDA7_SEEDS,
    Seed,
    grid_log_predictive,
    grid_log_predictive_loo,
    grid_loo_errors,
    log_predictive,
    seed_matrix,
)
from rcpkg.selection import GridClassifier, log_class_prior, log_class_prior_loo

_NAMED_SEEDS = {
    "trace": Seed("trace_class"),
    "trace_pooled": Seed("trace_pooled"),
    "diag_class": Seed("diag_class"),
    "diag_pooled": Seed("diag_pooled"),
}


class BayesianQDA(GenerativeClassifier):
    r"""Quadratic discriminant analysis with the Gaussians integrated out (thesis2007 Theorems 4.4.1, 4.4.3,
    4.4.4, Corollary 4.4.2).

    .. math:: \hat y = \arg\min_g\sum_h C(g,h)\,E[\mathcal N_h(x)]\,E[\Theta_h]

    Parameters
    ----------
    seed : "trace", "trace_pooled", "diag_class", "diag_pooled" or array of shape (d, d) or (r, d, d)
        B_h of the inverse-Wishart prior (4.20). "trace": tr(Sigma_h)/d I with the class's own
        maximum-likelihood covariance (section 4.4.2); "trace_pooled": with the within-class one; the other two: their
        diagonals.
    dof : float, optional
        q; d + 3 by default (section 4.4.2).
    prior : "inverse_wishart" or "noninformative"
        "noninformative" is (4.25): seed and dof take no part, each class needs more than d rows.
    measure : "fisher" or "lebesgue"
        Distribution-based (4.22, 4.26) or parameter-based (4.24, 4.28).
    cost : array of shape (r, r), optional
        ``cost[g, h]``: cost of predicting g when the truth is h.
    class_prior : "laplace", "empirical", "uniform" or r probabilities

    Attributes
    ----------
    dof_ : float
    seed_ : array of shape (r, d, d)
    statistics_ : ClassStatistics

    Raises
    ------
    PredictiveNotDefined
        In ``fit``, where a class has no predictive density.
    """

    def __init__(
        self,
        *,
        seed: str | ArrayLike = "trace",
        dof: float | None = None,
        prior: str = "inverse_wishart",
        measure: str = "fisher",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
    ):
        self.seed = seed
        self.dof = dof
        self.prior = prior
        self.measure = measure
        self.cost = cost
        self.class_prior = class_prior

    def fit(self, X: ArrayLike, y: ArrayLike) -> "BayesianQDA":
        """Compute the classes' statistics and seeds; every class must have a predictive density."""
        X, y = self._check_Xy(X, y)
        self.statistics_ = class_statistics(X, y, len(self.classes_))
        self.class_log_prior_ = log_class_prior(self.statistics_.counts, self.class_prior)
        self.dof_, self.seed_ = self._prior_parameters(self.statistics_)
        self._log_predictive(X[:1])
        return self

    def _prior_parameters(self, statistics: ClassStatistics) -> tuple[float, Array]:
        n_classes, d = statistics.means.shape
        if self.prior == "noninformative":
            return float(d + 1), np.zeros((n_classes, d, d))
        if self.prior != "inverse_wishart":
            raise ValueError(f'prior must be "inverse_wishart" or "noninformative"; got {self.prior!r}')
        dof = float(d + 3)
        if self.dof is not None:
            check_number("dof", self.dof, -np.inf)
            dof = float(self.dof)
        if isinstance(self.seed, str):
            if self.seed not in _NAMED_SEEDS:
                raise ValueError(f"seed must be one of {', '.join(_NAMED_SEEDS)} or an array; got {self.seed!r}")
            rule = _NAMED_SEEDS[self.seed]
            return dof, np.stack([seed_matrix(rule, dof, statistics, h) for h in range(n_classes)])
        seed = check_numbers("seed", self.seed)
        if seed.shape not in ((d, d), (n_classes, d, d)):
            raise ValueError(f"seed must have shape ({d}, {d}) or ({n_classes}, {d}, {d}); got {seed.shape}")
        if not np.allclose(seed, seed.swapaxes(-2, -1)):
            raise ValueError("seed must be symmetric")
        values = np.linalg.eigvalsh(seed)
        if (values[..., 0] < -1e-10 * np.abs(values).max(axis=-1)).any():
            raise ValueError("seed must be positive semi-definite")
        return dof, np.broadcast_to(seed, (n_classes, d, d)).copy()

    def _log_predictive(self, X: Array) -> Array:
        columns = [
            log_predictive(X, n, mean, scatter, seed=seed, dof=self.dof_, measure=self.measure)
            for n, mean, scatter, seed in zip(*self.statistics_, self.seed_)
        ]
        return np.stack(columns, axis=1)

    def log_predictive(self, X: ArrayLike) -> Array:
        """Log predictive densities log E[N_h](x), normalised in x: shape (n, r)."""
        check_is_fitted(self)
        return self._log_predictive(self._check_X(X))

    def _joint_log_proba(self, X: Array) -> Array:
        return self._log_predictive(X) + self.class_log_prior_


class _PredictiveGrid(GridClassifier):
    """A grid of predictive densities: ``_dofs(d)`` times ``_seeds()``."""

    measure = "fisher"

    def _seeds(self) -> Sequence[Seed]:
        raise NotImplementedError

    def _dofs(self, d: int) -> NDArray:
        return d * check_sequence("dof_multiples", self.dof_multiples, 0, above=True)

    def _grid(self, X: Array, y: Array, X_new: Array) -> Array:
        statistics = class_statistics(X, y, len(self.classes_))
        return grid_log_predictive(X_new, statistics, self._dofs(X.shape[1]), self._seeds(), self.measure)

    def _grid_loo(self, X: Array, y: Array) -> Array:
        dofs = self._dofs(X.shape[1])
        return grid_log_predictive_loo(X, y, len(self.classes_), dofs, self._seeds(), self.measure)

    def _loo_errors(self, X: Array, y: Array) -> Array:
        prior = log_class_prior_loo(y, len(self.classes_), self.class_prior)
        return grid_loo_errors(X, y, prior, self._dofs(X.shape[1]), self._seeds(), self.measure).wrong.mean(axis=-1)

    def fit(self, X: ArrayLike, y: ArrayLike):
        """Choose q and the seed by cross-validation and keep the statistics of all rows."""
        X, y = self._check_Xy(X, y)
        row, column = self._select(X, y)
        self.dof_ = float(self._dofs(X.shape[1])[row])
        self.seed_ = self._seeds()[column]
        self.statistics_ = class_statistics(X, y, len(self.classes_))
        return self

    def log_predictive(self, X: ArrayLike) -> Array:
        """Log predictive densities log E[N_h](x) of the chosen model, normalised in x: shape (n, r)."""
        check_is_fitted(self)
        return self._log_predictive(self._check_X(X))

    def _log_predictive(self, X: Array) -> Array:
        return grid_log_predictive(X, self.statistics_, [self.dof_], [self.seed_], self.measure)[0, 0]

    def _joint_log_proba(self, X: Array) -> Array:
        return self._log_predictive(X) + self.class_log_prior_


class BDA7(_PredictiveGrid):
    r"""Bayesian QDA with q and one of seven data-dependent seeds chosen by cross-validation (thesis2007
    section 5.4).

    Predictive (4.22), q = multiples of d, seeds (5.13). The seeds are recomputed without the held-out rows in
    every fold. Under the diagonal seeds predictions do not change when features are rescaled.

    Parameters
    ----------
    dof_multiples : sequence of float
        Candidates of q / d.
    cv : "loo", int or splitter
        "loo" is exact and closed-form.
    cost : array of shape (r, r), optional
        ``cost[g, h]``: cost of predicting g when the truth is h; then the mean cost is cross-validated.
    class_prior : "laplace", "empirical", "uniform" or r probabilities
    random_state : int, RandomState or None
        Breaks ties of the cross-validation, uniformly at random.

    Attributes
    ----------
    dof_ : float
    seed_ : Seed
        The chosen q and rule of B_h.
    cv_errors_ : array of shape (n_dof, 7)
        Cross-validated error rates (or mean costs), seeds in the order of (5.13). A held-out row whose own
        class has no density without it counts as an error.
    statistics_ : ClassStatistics

    Raises
    ------
    InvalidStatistics
        If under no model every class has a density (all features constant within all classes).
    """

    def __init__(
        self,
        *,
        dof_multiples: Sequence[float] = (1, 2, 3, 4, 5, 6),
        cv="loo",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state=None,
    ):
        self.dof_multiples = dof_multiples
        self.cv = cv
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _seeds(self) -> Sequence[Seed]:
        return BDA7_SEEDS


class QuadraticBayes(_PredictiveGrid):
    r"""Bayesian QDA with the seed k I, q and k chosen by cross-validation (QB, thesis2007 sections 5.1.1 and
    5.5.1).

    The prior of the mean is flat, as in the source's formulas; its text speaks of a normal one.

    Parameters
    ----------
    dof_multiples : sequence of float
        Candidates of q / d.
    scales : sequence of float
        Candidates of k; on the scale of the features' scatter, so standardise the features.
    measure : "fisher" or "lebesgue"
        (4.22) or (4.24). The source calls QB parameter-based but (4.24) does not exist for n_h <= 2d - q + 1.
    cv, cost, class_prior, random_state
        As for `BDA7`.

    Attributes
    ----------
    dof_, seed_, cv_errors_, statistics_
        As for `BDA7`; ``cv_errors_`` has shape (n_dof, n_scales).
    """

    def __init__(
        self,
        *,
        dof_multiples: Sequence[float] = (1, 2, 3, 4, 5, 6),
        scales: Sequence[float] = (1, 2, 3, 4, 5, 6, 7),
        measure: str = "fisher",
        cv="loo",
        cost: ArrayLike | None = None,
        class_prior: str | ArrayLike = "laplace",
        random_state=None,
    ):
        self.dof_multiples = dof_multiples
        self.scales = scales
        self.measure = measure
        self.cv = cv
        self.cost = cost
        self.class_prior = class_prior
        self.random_state = random_state

    def _seeds(self) -> Sequence[Seed]:
        return [Seed("identity", 0, float(k)) for k in check_sequence("scales", self.scales, 0, above=True)]
