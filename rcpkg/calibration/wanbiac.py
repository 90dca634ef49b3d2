"""Weighted naive Bayes, which is logistic regression in other coordinates: β = w log θ (wanbia2014).

A row is its indicators: a leading one for the class weights, and a one for each state that it holds. ``scale`` holds
log π and log θ, a column a class, and ``weights`` w likewise; ones in the place of ``scale`` are logistic regression.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse import csr_array, hstack, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, log_posterior
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.checks import check_choice, check_number
from rcpkg.families import CategoricalNB, Statistics

SOLVERS = ("lbfgs", "sgd")
ITERATIONS, PASSES = 1000, 1
DECAY = 1e-2  # λ of the source's schedule η₀/(1 + λt)


def with_intercept(indicators: csr_array) -> csr_array:
    """``indicators`` of states, shape (n, K), behind a column of ones."""
    return csr_array(hstack([np.ones((indicators.shape[0], 1)), indicators], format="csr"))


class Table:
    """Given features of rows, as `LogisticObjective` reads them: sparse ones behind a column of ones, or dense ones."""

    def __init__(self, rows: csr_array | Array) -> None:
        (self.n, self.width), sparse = rows.shape, issparse(rows)
        self.block = rows[:, 1:] if sparse else np.ascontiguousarray(rows.T)

    def blocks(self) -> Iterator[tuple[slice, csr_array | Array]]:
        """All rows at a time."""
        yield slice(0, self.n), self.block


def weighted_objective(
    rows: csr_array | Array, Y: Array, scale: Array, penalty: float, center: float
) -> Callable[[Array], tuple[float, Array]]:
    """f(w) = −CLL + C Σ (w − c)² and its gradient, as functions of a vector."""
    likelihood = LogisticObjective(Table(rows), Y.argmax(axis=1), Y.shape[1], Y.sum(axis=1), free=Y.shape[1])

    def objective(w: Array) -> tuple[float, Array]:
        W = w.reshape(scale.shape)
        at, beyond = likelihood((W * scale).T), W - center
        value = likelihood.total * at.value + penalty * float(np.sum(beyond**2))
        return value, (likelihood.total * at.gradient.T * scale + 2 * penalty * beyond).ravel()

    return objective


def maximise_weighted(
    rows: csr_array | Array,
    Y: Array,
    scale: Array,
    *,
    penalty: float = 0.0,
    center: float = 1.0,
    start: Array | None = None,
    max_iter: int = ITERATIONS,
    tol: float = 1e-6,
    relative: float = 0.0,
    callback: Callable[[OptimizeResult], None] | None = None,
) -> OptimizeResult:
    """Maximum of CLL(w ∘ scale) − C Σ (w − c)² by L-BFGS, C = ``penalty``, c = ``center``.

    CLL(β) = Σ_i Σ_y Y_iy log p(y | x_i), p(y | x) ∝ exp(β_y · x); its gradient in w is scale ∘ xᵀ(Y − P).

    Parameters
    ----------
    rows : array of shape (n, 1 + K), sparse or dense
        Indicators, see `with_intercept`, or other features, dense.
    Y : array of shape (n, r)
        One-hot labels, times the weights of the rows.
    scale : array of shape (1 + K, r)
        Log probabilities log π and log θ, or ones.
    penalty, center : float
        C ≥ 0 and c.
    start : array of shape (1 + K, r), optional
        By default all weights are ``center``.
    max_iter, tol, relative : int, float, float
        Ends after so many iterations, where no entry of the gradient per row exceeds ``tol``, or where the objective
        f = −[CLL − C Σ (w − c)²] falls by no more than ``relative`` · max(f, 1) in an iteration.
    callback : callable, optional
        Is given each iterate as ``intermediate_result``, with ``x``, the weights as a vector, and ``fun``, that is f.

    References
    ----------
    wanbia2014, equations (2), (4), (5), and §VI with the sign that makes it a penalty.
    """
    objective, total = weighted_objective(rows, Y, scale, penalty, center), float(Y.sum())
    first = np.full(scale.shape, center, dtype=float) if start is None else start
    options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "gtol": tol * total, "ftol": relative}
    optimum = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", callback=callback, options=options)
    optimum.x = optimum.x.reshape(scale.shape)
    return optimum


@dataclass
class Counts:
    """Counts (1 + K, r) behind naive Bayes, that grow row by row; the first feature is the class itself.

    ``totals`` (1 + d, r) are those of each feature, ``feature`` (1 + K,) tells which one a state belongs to, and each
    distribution has ``strength`` pseudo-rows, ``pseudo`` (1 + K,) a state.
    """

    cells: Array
    totals: Array
    feature: NDArray[np.intp]
    strength: float
    pseudo: Array

    @classmethod
    def none(cls, n_states: NDArray[np.intp], n_classes: int, strength: float) -> "Counts":
        """No rows yet, of features with so many states."""
        return cls.of(np.zeros((1 + n_states.sum(), n_classes)), n_states, strength)

    @classmethod
    def of(cls, cells: Array, n_states: NDArray[np.intp], strength: float) -> "Counts":
        """Given counts, of features with so many states."""
        sizes, r = np.concatenate([[1], n_states]), cells.shape[1]
        pseudo = strength / np.concatenate([[r], np.repeat(n_states, n_states)])
        totals = np.add.reduceat(cells, np.cumsum(sizes) - sizes, axis=0)
        totals[0] = cells[0].sum()
        return cls(cells, totals, np.repeat(np.arange(len(sizes)), sizes), strength, pseudo)

    def log_probabilities(self, columns: NDArray[np.intp]) -> Array:
        """log π or log θ of some states, shape (states, r): MAP with symmetric Dirichlet priors (wanbia2014 §II)."""
        total = self.totals[self.feature[columns]] + self.strength
        return np.log((self.cells[columns] + self.pseudo[columns][:, None]) / total)

    def add(self, columns: NDArray[np.intp], y: int, weight: float = 1.0) -> None:
        """Count one row, the first of whose columns is the class itself, so many times."""
        self.cells[columns, y] += weight
        self.totals[self.feature[columns[1:]], y] += weight
        self.totals[0] += weight


class Steps(NamedTuple):
    """Stochastic steps η_t = η₀/(1 + λt), with ``rate`` η₀ and ``decay`` λ; ``penalty`` is C/n, ``center`` c."""

    rate: float
    decay: float = DECAY
    penalty: float = 0.0
    center: float = 1.0


def stochastic_pass(
    columns: NDArray[np.intp],
    y: NDArray[np.intp],
    weights: Array,
    scale: Array | Counts,
    steps: Steps,
    *,
    done: int = 0,
    sample_weight: Array | None = None,
) -> Array:
    """One pass of stochastic gradient ascent; returns the posteriors P (n, r) of each row before it was learnt from.

    w ← w + η_t [scale ∘ x(Y_t − P_t) − 2C(w − c)/n], with η_t = η₀/(1 + λt). Given `Counts`, log π and log θ are those
    of the rows before, and the counts take in each row after it: probabilities and weights from one pass.

    Parameters
    ----------
    columns : array of shape (n, 1 + d)
        The indicators that are one: 0, and then a state of each feature, −1 where it is missing.
    y : array of shape (n,)
        Class numbers.
    weights : array of shape (1 + K, r)
        Changed in place.
    scale : array of shape (1 + K, r) or Counts
        Log probabilities, or ones, or counts, which are changed in place.
    steps, done : Steps, int
        η₀, λ, C/n and c; and how many rows were learnt from before.
    sample_weight : array of shape (n,), optional
        A row counts so many times, and its slope likewise.

    References
    ----------
    wanbia2014 §V.
    """
    P, complete = np.empty((len(y), weights.shape[1])), columns.min(initial=0) >= 0
    for i, at in enumerate(columns):
        here = at if complete else at[at >= 0]
        log_prob = scale.log_probabilities(here) if isinstance(scale, Counts) else scale[here]
        score = np.einsum("jy,jy->y", weights[here], log_prob)
        P[i] = np.exp(score - score.max())
        P[i] /= P[i].sum()
        slope = -P[i]
        slope[y[i]] += 1
        step, weight = steps.rate / (1 + steps.decay * (done + i)), 1.0 if sample_weight is None else sample_weight[i]
        if steps.penalty:
            weights -= 2 * step * steps.penalty * (weights - steps.center)
        weights[here] += step * weight * slope * log_prob
        if isinstance(scale, Counts):
            scale.add(here, y[i], weight)
    return P


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
    decay : float, default=`DECAY`
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
    A feature that is missing, or holds a state unseen in training, is skipped, in counts, in weights and in
    predictions. Where log θ = 0, with a feature of one state, the weight does not move, and nothing is lost but
    whether the feature is there, which logistic regression would weigh. `predict_joint_log_proba` is the logarithm of
    the product, which is not normalised.

    Without a penalty the weights are not unique, and on separable rows the supremum is not attained: a
    `ConvergenceWarning` says where L-BFGS ended.

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

    def __init__(
        self,
        *,
        penalty: float = 1.0,
        center: float = 1.0,
        prior_strength: float = 1.0,
        solver: str = "lbfgs",
        max_iter: int | None = None,
        tol: float = 1e-6,
        learning_rate: float = 0.1,
        decay: float = DECAY,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.penalty = penalty
        self.center = center
        self.prior_strength = prior_strength
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.decay = decay
        self.random_state = random_state

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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit naive Bayes, then the weights; rows count ``sample_weight`` times."""
        self._check_parameters()
        self.naive_bayes_ = CategoricalNB(prior_strength=self.prior_strength)
        X, Y = self.naive_bayes_.training_data(X, y, sample_weight)
        rows = with_intercept(self.naive_bayes_.encode(X))
        cells = np.ascontiguousarray((rows.T @ Y)[1:].T)
        self.naive_bayes_.set_statistics(Statistics(count=Y.sum(axis=0), cells=cells))
        self._take_over()
        parameters = self.naive_bayes_.parameters_
        scale = np.vstack([parameters.log_prior, parameters.log_prob.T])
        W = np.full(scale.shape, float(self.center))
        if self.solver == "lbfgs":
            limits = {"max_iter": self.max_iter or ITERATIONS, "tol": self.tol}
            optimum = maximise_weighted(rows, Y, scale, penalty=self.penalty, center=self.center, start=W, **limits)
            slope = float(np.abs(optimum.jac).max() / Y.sum())
            self.n_iter_, self.converged_ = optimum.nit, slope <= self.tol
            W = optimum.x
            if not self.converged_:
                self._warn(optimum.nit, slope)
        else:
            self.n_iter_, self.converged_ = self.max_iter or PASSES, False
            W = self._passes(X, Y, W, scale)
        log_P = log_posterior(rows @ (W * scale), self.class_log_prior_)
        self.objective_ = float(np.vdot(Y, log_P) - self.penalty * np.sum((W - self.center) ** 2))
        self._seen = len(Y)
        return self._set_weights(W)

    def _warn(self, n_iter: int, slope: float) -> None:
        warnings.warn(
            f"L-BFGS ended after {n_iter} iterations with a gradient of {slope:.2g} per row; raise max_iter or tol, "
            "or, on rows that may be separable, set penalty > 0",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _passes(self, X: Array, Y: Array, W: Array, scale: Array) -> Array:
        rng, n = check_random_state(self.random_state), len(Y)
        columns, y, weight = self._columns(X), Y.argmax(axis=1), Y.sum(axis=1)
        for done in range(self.n_iter_):
            order = rng.permutation(n)
            at, steps = {"done": done * n, "sample_weight": weight[order]}, self._steps(n)
            stochastic_pass(columns[order], y[order], W, scale, steps, **at)
            self._check_steps(W)
        return W

    def _check_steps(self, W: Array) -> None:
        """Refuse weights that stochastic steps have driven out of the range of numbers."""
        if not np.isfinite(W).all():
            raise ValueError(
                f"the stochastic steps diverge with learning_rate={self.learning_rate!r} and penalty={self.penalty!r}: "
                "lower learning_rate, or the penalty"
            )

    def _steps(self, n: int) -> Steps:
        return Steps(self.learning_rate, self.decay, self.penalty / n, self.center)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn probabilities and weights from further rows, one at a time and in their order.

        Each row is learnt from with the probabilities of the rows before it, so that a stream is read once; the states
        of a feature are those of all calls up to this one, and a penalty counts for the rows of a call. The first call
        names all ``classes``.

        Raises
        ------
        ValueError
            If the steps leave the range of numbers.
        """
        self._check_parameters()
        seen, before, categories = 0, (), None
        if hasattr(self, "weights_"):
            seen, before = self._seen, (self.naive_bayes_.statistics_, self.weights_)
            categories = self.naive_bayes_.categories_
        else:
            self.naive_bayes_ = CategoricalNB(prior_strength=self.prior_strength)
        nb = self.naive_bayes_.partial_fit(X, y, classes)
        codes, labels = nb.check_X(X), np.searchsorted(nb.classes_, np.asarray(y))
        self._take_over()
        cells, W = (np.full((1 + nb.n_states_.sum(), len(nb.classes_)), fill) for fill in (0.0, float(self.center)))
        if before:
            known = np.concatenate([np.isin(new, old) for new, old in zip(nb.categories_, categories, strict=True)])
            for table, old in zip((cells, W), before):
                table[0], table[1:][known] = old.count, old.cells.T
        columns, counts = self._columns(codes), Counts.of(cells, nb.n_states_, self.prior_strength)
        stochastic_pass(columns, labels, W, counts, self._steps(len(labels)), done=seen)
        self._check_steps(W)
        self._seen = seen + len(labels)
        self.n_iter_, self.converged_, self.objective_ = 1, False, None
        return self._set_weights(W)

    def _take_over(self) -> None:
        """What naive Bayes knows of the rows."""
        nb = self.naive_bayes_
        self.classes_, self.class_log_prior_, self.n_features_in_ = nb.classes_, nb.class_log_prior_, nb.n_features_in_
        if hasattr(nb, "feature_names_in_"):
            self.feature_names_in_ = nb.feature_names_in_

    def _columns(self, X: Array) -> NDArray[np.intp]:
        """Columns of the indicators that are one, the leading one first; −1 where a value is missing."""
        nb = self.naive_bayes_
        places = nb.places(X)
        return np.column_stack([np.zeros(len(X), np.intp), np.where(places < 0, -1, places + nb.starts_ + 1)])

    def _set_weights(self, W: Array) -> Self:
        self.weights_ = Statistics(count=W[0], cells=np.ascontiguousarray(W[1:].T))
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        """w_y log π_y + Σ_j w_{y,j,x_j} log θ_{x_j|y}, wanbia2014 equation (6)."""
        check_is_fitted(self)
        nb = self.naive_bayes_
        weighted = Statistics(
            count=self.weights_.count * nb.parameters_.log_prior, cells=self.weights_.cells * nb.parameters_.log_prob
        )
        return nb.scores(nb.indicators(nb.places(X)), weighted)
