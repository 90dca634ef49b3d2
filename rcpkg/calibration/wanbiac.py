"""Weighted naive Bayes, which is logistic regression in other coordinates: β = w log θ (wanbia2014)."""

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, constructed
from rcpkg.calibration.features import Features
from rcpkg.calibration.lbfgs import lbfgs
from rcpkg.calibration.logistic import Evaluation, LogisticObjective
from rcpkg.calibration.newton import Iterates
from rcpkg.calibration.stream import DECAY, Counts, Steps, stochastic_pass
from rcpkg.checks import check_choice, check_number, check_weights
from rcpkg.families import CategoricalNB, Statistics, one_hot
from rcpkg.rows import Rows, in_memory

SOLVERS = ("lbfgs", "sgd")
ITERATIONS, PASSES = 1000, 1


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
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        Whole batches by L-BFGS, or a row at a time in random order, by the source's steps η₀/(1 + λt).
    max_iter : int, optional
        Greatest number of iterations, by default 1000, or of passes, by default 1.
    tol : float, default=1e-6
        L-BFGS ends when no entry of the gradient per row exceeds it.
    learning_rate : float, default=0.1
        η₀ > 0.
    decay : float, default=0.01
        λ ≥ 0; the source has 0.01.
    random_state : int or RandomState, optional
        Order of the rows.

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
        CLL − C Σ (w − c)² on the training rows; None after ``partial_fit``.
    n_iter_ : int
        Iterations or passes made.
    converged_ : bool
        Whether the gradient fell below ``tol``; always False for the stochastic solver.

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
    solver: str = "lbfgs"
    max_iter: int | None = None
    tol: float = 1e-6
    learning_rate: float = 0.1
    decay: float = DECAY
    random_state: int | np.random.RandomState | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = CategoricalNB().__sklearn_tags__().input_tags
        return tags

    def _check_parameters(self) -> None:
        check_number("penalty", self.penalty, 0)
        check_number("center", self.center, -np.inf)
        check_number("prior_strength", self.prior_strength, 0, above=True)
        check_choice("solver", self.solver, SOLVERS)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, 1, integer=True)
        check_number("tol", self.tol, 0, above=True)
        check_number("learning_rate", self.learning_rate, 0, above=True)
        check_number("decay", self.decay, 0)

    def check_X(self, X: ArrayLike) -> Array:
        return self.naive_bayes_.check_X(X)

    @in_memory
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit naive Bayes, then the weights; rows count ``sample_weight`` times."""
        self._check_parameters()
        nb = CategoricalNB(prior_strength=self.prior_strength)
        X, y = nb.check_X_y(X, y)
        weight = check_weights(sample_weight, len(y))
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        nb.prepare(X)
        encoded, r = nb.encode(X), len(nb.classes_)
        nb.set_statistics(nb.statistics(encoded, one_hot(y, r) * weight[:, None]))
        features = Features(nb.feature_map(encoded, "natural"), r)
        objective = LogisticObjective(features, y, r, weight, free=r)
        scale = features.coefficients(nb.natural_parameters(nb.parameters_))  # log π and log θ
        C = self.penalty / objective.total

        def loss(w: Array) -> Evaluation:
            W = w.reshape(scale.shape)
            at, beyond = objective(W * scale), W - self.center
            gradient = (at.gradient * scale + 2 * C * beyond).ravel()
            return at._replace(value=at.value + C * float(np.sum(beyond**2)), gradient=gradient, separated=False)

        W, reason = np.full(scale.shape, float(self.center)), ""
        if self.solver == "lbfgs":
            iterates, n_iter = Iterates(self.tol, penalised=True), self.max_iter or ITERATIONS
            w, reason = lbfgs(loss, W.ravel(), iterates, n_iter)
            W, n_iter = w.reshape(scale.shape), len(iterates.history) - 1
            if reason != "converged":
                self._warn(n_iter, iterates.history[-1]["step"])
        else:
            n_iter, n = self.max_iter or PASSES, len(y)
            rng, columns, W, table = check_random_state(self.random_state), _columns(nb, X), W.T.copy(), scale.T
            for done in range(n_iter):
                order = rng.permutation(n)
                self._ascend(columns[order], y[order], W, table, done=done * n, sample_weight=weight[order])
            W = W.T
        value = -objective.total * loss(W.ravel()).value
        return self._adopt(nb, W, len(y), n_iter, reason == "converged", value)

    def _warn(self, n_iter: int, slope: float) -> None:
        warnings.warn(
            f"L-BFGS ended after {n_iter} iterations with a gradient of {slope:.2g} per row; raise max_iter or tol, "
            "or, on rows that may be separable, set penalty > 0",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _ascend(
        self, columns: NDArray[np.intp], y: NDArray[np.intp], W: Array, scale: Array | Counts, **at: Any
    ) -> None:
        """A stochastic pass that changes weights W; refuses those that it drives out of the range of numbers."""
        steps = Steps(self.learning_rate, self.decay, self.penalty / len(y), self.center)
        stochastic_pass(columns, y, W, scale, steps, **at)
        if not np.isfinite(W).all():
            raise ValueError(
                f"the stochastic steps diverge with learning_rate={self.learning_rate!r} and penalty={self.penalty!r}: "
                "lower learning_rate, or the penalty"
            )

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn probabilities and weights from further rows, one at a time and in their order.

        Each row is learnt from with the probabilities of the rows before it, so that a stream is read once; the states
        of a feature are those of all calls up to this one, and a penalty counts for the rows of a call. The first call
        names all ``classes``. Rows that are refused, here or by a ``ValueError`` of steps that leave the range of
        numbers, leave the model as it was.
        """
        self._check_parameters()
        begun = hasattr(self, "weights_")
        before = self.naive_bayes_ if begun else None
        nb = copy(before) if begun else CategoricalNB(prior_strength=self.prior_strength)
        nb.partial_fit(X, y, classes)
        codes, labels = nb.check_X(X), np.searchsorted(nb.classes_, np.asarray(y))
        cells, W = (np.full((1 + nb.n_states_.sum(), len(nb.classes_)), fill) for fill in (0.0, float(self.center)))
        if begun:
            known = np.concatenate([np.isin(*states) for states in zip(nb.categories_, before.categories_)])
            for table, old in (cells, before.statistics_), (W, self.weights_):
                table[0], table[1:][known] = old.count, old.cells.T
        counts = Counts.of(cells, nb.n_states_, self.prior_strength)
        seen = self._seen if begun else 0
        self._ascend(_columns(nb, codes), labels, W, counts, done=seen)
        return self._adopt(nb, W.T, seen + len(labels), 1, False, None)

    def _adopt(
        self, nb: CategoricalNB, W: Array, seen: int, n_iter: int, converged: bool, objective: float | None
    ) -> Self:
        """Take on naive Bayes, what it knows of the rows, and the weights (r, 1 + K)."""
        self.naive_bayes_, self.weights_ = nb, Statistics(count=W[:, 0].copy(), cells=W[:, 1:].copy())
        self.classes_, self.class_log_prior_, self.n_features_in_ = nb.classes_, nb.class_log_prior_, nb.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(nb, "feature_names_in_"):
            self.feature_names_in_ = nb.feature_names_in_
        self._seen, self.n_iter_, self.converged_, self.objective_ = seen, n_iter, converged, objective
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        """w_y log π_y + Σ_j w_{y,j,x_j} log θ_{x_j|y}, wanbia2014 equation (6)."""
        check_is_fitted(self)
        nb = self.naive_bayes_
        weighted = Statistics(
            count=self.weights_.count * nb.parameters_.log_prior, cells=self.weights_.cells * nb.parameters_.log_prob
        )
        return nb.scores(nb.indicators(nb.places(X)), weighted)


def _columns(nb: CategoricalNB, X: Array) -> NDArray[np.intp]:
    """Columns of the indicators that are one, the leading one first; −1 where a value is missing."""
    places = nb.places(X)
    return np.column_stack([np.zeros(len(X), np.intp), np.where(places < 0, -1, places + nb.starts_ + 1)])
