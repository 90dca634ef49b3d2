"""Weighted naive Bayes, which is logistic regression in other coordinates: β = w log θ (wanbia2014)."""

from itertools import count
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, constructed
from rcpkg.calibration.constants import MEMORY
from rcpkg.calibration.features import Features
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.checks import check_number, warn
from rcpkg.families import CategoricalNB, Statistics, one_hot
from rcpkg.progress import tell, telling
from rcpkg.rows import Rows, in_memory


@constructed
class WANBIAC(GenerativeClassifier):
    """Naive Bayes with a weight for each class and each state of each feature: logistic regression, scaled by log θ.

    p(y | x) ∝ π_y^{w_y} ∏_j θ_{x_j | y}^{w_{y,j,x_j}}. The probabilities π, θ are those of naive Bayes, the weights
    maximise CLL − C Σ (w − c)², with C = ``penalty`` and c = ``center``. C = 0 is logistic regression; C → ∞ is naive
    Bayes for c = 1, and equal posteriors for c = 0.

    Parameters
    ----------
    penalty : float, default=1.0
        C ≥ 0.
    center : float, default=1.0
        c, towards which all weights are drawn.
    prior_strength : float, default=1.0
        Pseudo-rows m > 0 of each distribution: θ = (N_{y,j,v} + m/K_j) / (N_{y,j} + m) with K_j states, N_{y,j} being
        the rows of class y whose feature j is there.
    max_iter : int, default=1000
        Greatest number of iterations of L-BFGS.
    tol : float, default=1e-6
        L-BFGS ends when no entry of the gradient per row exceeds it.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` ≥ 0: cost of predicting class g when the truth is class h; by default the 0-1 loss.
    verbose : int, default=0
        1: print a line a second while a fit goes on, and at its ends; 2: one an iteration. The logger "rcpkg" gets
        the same, of the levels INFO and DEBUG.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log π.
    naive_bayes_ : CategoricalNB
        The closed form; its ``categories_`` name the states.
    weights_ : Statistics
        Weights of the classes, count (r,), and of the states, cells (r, K), all features side by side.
    objective_ : float
        CLL − C Σ (w − c)² on the training rows.
    n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether the gradient fell below ``tol``.

    Notes
    -----
    A feature that is missing, or holds a state unseen in training, is skipped. Where log θ = 0, with a feature of one
    state, the weight does not move. `predict_joint_log_proba` is the logarithm of the product, which is not normalised.

    Without a penalty the weights are not unique, and on separable rows the supremum is not attained.

    References
    ----------
    wanbia2014, equations (3)-(6), §V and §VI.

    Examples
    --------
    >>> from rcpkg import WANBIAC
    >>> X = [["red", "S"], ["red", "L"], ["blue", "S"], ["blue", "L"]] * 2
    >>> y = ["no", "yes", "yes", "yes", "no", "no", "yes", "no"]
    >>> model = WANBIAC(penalty=0.1).fit(X, y)
    >>> model.predict_proba([["red", "L"], ["blue", "S"]]).round(2)
    array([[0.74, 0.26],
           [0.26, 0.74]])
    >>> model.weights_.cells.round(2)
    array([[1.16, 0.95, 1.  , 1.  ],
           [0.95, 1.16, 1.  , 1.  ]])
    """

    penalty: float = 1.0
    center: float = 1.0
    prior_strength: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-6
    cost: ArrayLike | None = None
    verbose: int = 0

    naive_bayes_: ClassVar[CategoricalNB]
    weights_: ClassVar[Statistics]
    objective_: ClassVar[float]
    n_iter_: ClassVar[int]
    converged_: ClassVar[bool]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = CategoricalNB().__sklearn_tags__().input_tags
        return tags

    def _check_parameters(self) -> None:
        check_number("penalty", self.penalty, 0)
        check_number("center", self.center, -np.inf)
        check_number("prior_strength", self.prior_strength, 0, above=True)
        check_number("max_iter", self.max_iter, 1, integer=True)
        check_number("tol", self.tol, 0, above=True)

    def _check_X(self, X: ArrayLike) -> Array:
        return self.naive_bayes_._check_X(X)

    @telling
    @in_memory
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit naive Bayes, then the weights; rows count ``sample_weight`` times."""
        self._check_parameters()
        nb = CategoricalNB(prior_strength=self.prior_strength)
        block = nb._counting_rows(X, y, sample_weight)
        X, y, weight = block.X, block.y, np.ones(block.n) if block.weight is None else block.weight
        nb._prepare(X)
        family, r = nb.family_, len(nb.classes_)
        encoded = family.encode(X)
        nb._set_statistics(family.statistics(encoded, one_hot(y, r) * weight[:, None]))
        features = Features(family.feature_map(encoded, "natural"))
        objective = LogisticObjective(features, y, r, weight, free=r)
        scale = features.coefficients(family.natural_parameters(nb.parameters_))  # log π and log θ
        C = self.penalty / objective.total

        def loss(w: Array) -> tuple[float, Array]:
            W = w.reshape(scale.shape)
            point, beyond = objective(W * scale), W - self.center
            gradient = (point.gradient * scale + 2 * C * beyond).ravel()
            return point.value + C * float(np.sum(beyond**2)), gradient

        start = np.full(scale.size, float(self.center))
        options = {"maxcor": MEMORY, "gtol": self.tol, "ftol": 0.0, "maxfun": np.inf, "maxiter": self.max_iter}
        steps = count(1)

        def report(intermediate_result: OptimizeResult) -> None:
            tell("iteration %d: %.6g lost a row", next(steps), intermediate_result.fun, iteration=True)

        end = minimize(loss, start, jac=True, method="L-BFGS-B", options=options, callback=report)
        tell("%s after %d iterations", end.message, end.nit)
        slope = float(np.abs(end.jac).max())
        if slope > self.tol:
            warn(
                f"L-BFGS ended after {end.nit} iterations with a gradient of {slope:.2g} per row; raise max_iter or "
                "tol, or, on rows that may be separable, set penalty > 0",
                ConvergenceWarning,
            )
        return self._adopt(nb, end.x.reshape(scale.shape), end.nit, slope <= self.tol, -objective.total * end.fun)

    def _adopt(self, nb: CategoricalNB, W: Array, n_iter: int, converged: bool, objective: float | None) -> Self:
        """Store naive Bayes, what it knows of the rows, and the weights (r, 1 + K)."""
        self.naive_bayes_, self.weights_ = nb, Statistics(count=W[:, 0].copy(), cells=W[:, 1:].copy())
        self.classes_, self.class_log_prior_, self.n_features_in_ = nb.classes_, nb.class_log_prior_, nb.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(nb, "feature_names_in_"):
            self.feature_names_in_ = nb.feature_names_in_
        self.n_iter_, self.converged_, self.objective_ = n_iter, converged, objective
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        """w_y log π_y + Σ_j w_{y,j,x_j} log θ_{x_j|y}, wanbia2014 equation (6)."""
        check_is_fitted(self)
        nb = self.naive_bayes_
        weighted = Statistics(
            count=self.weights_.count * nb.parameters_.log_prior, cells=self.weights_.cells * nb.parameters_.log_prob
        )
        return nb.family_.scores(nb.family_.families_.indicators(nb.family_.places(X)), weighted)
