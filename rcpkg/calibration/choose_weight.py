"""The weight of the target, chosen by leave-one-out or cross-validation along the path of weights."""

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, InvalidStatistics, check_numbers, check_weights, log_posterior
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.loop import SAFE_STEPS, RiskCalibration, Run
from rcpkg.calibration.penalised import NotConverged, PenalisedLikelihood, target_change
from rcpkg.calibration.problem import Problem
from rcpkg.calibration.rules import row_losses
from rcpkg.families import ClosedFormClassifier, ConjugateClassifier, Statistics

TARGET_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SCORING = ("log_loss", "error")
MOST_PARAMETERS = 1000  # of a Hessian; beyond it, or beyond so many products, folds take the place of leave-one-out
MOST_PRODUCTS = 1e12
FOLDS = 5
# ends folds that take the place of leave-one-out, times the share of the target in all rows; half of FOLD_TOL then
# bounds what F lacks a row
FOLD_TOL = 1e-4
NEWTON_TOL = 1e-9  # promised gain per row and pseudo-row


class Optimum(NamedTuple):
    """Mean parameters at the optimum of one weight, and the history of the steps to it from that of the next."""

    mean: Statistics
    history: list[dict[str, float]]


class NewtonPath:
    """Optima for one weight of the target after another, each from the last, and the rows left out of them."""

    def __init__(
        self,
        learner: RiskCalibration,
        model: ConjugateClassifier,
        X: Any,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        n_weights: int,
    ) -> None:
        model = copy(model)
        model.prepare(X)
        problem = learner._problem(model, X, y, sample_weight, check_random_state(0))
        start = problem.label_statistics()
        model.settle(start, problem.n_rows)
        learner._set_target(problem, start)
        self.problem, self.start, self.beta = problem, start, None
        self.optima: dict[float, Optimum] = {}
        form = self.form = MinimalForm(problem.model, problem.X, start)
        products = len(y) * form.size**2 * n_weights
        if form.size > MOST_PARAMETERS or products > MOST_PRODUCTS:
            raise NotConverged(f"{form.size} parameters and {len(y)} rows are more than its Hessians are made for")
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.likelihood = PenalisedLikelihood(form, y, weight, form.sums(problem.target), problem.target_size)
        self.change = self._change(learner, model, start)
        at_target, _ = learner._target_of(model, start)
        self.own = form.coefficients(problem.model.natural_parameters(at_target))

    def _change(
        self, learner: RiskCalibration, model: ConjugateClassifier, start: Statistics
    ) -> tuple[Array, Array] | None:
        """Derivatives of s̄ and m̄ by a row's statistics; None for a target that is given."""
        if not isinstance(learner.target, str):
            return None

        def target_of(statistics: Statistics) -> tuple[Array, float]:
            parameters, size = learner._target_of(model, statistics)
            return size * self.form.sums(model.mean_parameters(parameters)), size

        return target_change(self.form, target_of, start, by_total=learner.target in ("pooled", "grand"))

    def follow(self, b: float) -> tuple[Array, float]:
        """log p(y | x_i) without row i at the weight b, and the log evidence of b."""
        form, F, problem = self.form, self.likelihood, self.problem
        if self.beta is None:
            model = problem.model
            first = model.parameters(problem.step(self.start, b * problem.target, 1.0))
            self.beta = form.coefficients(model.natural_parameters(first))
        self.beta, point, H = F.maximise(self.beta, b, NEWTON_TOL)
        self.optima[b] = Optimum(form.statistics(point.mean), F.history)
        change = None
        if self.change is not None:
            target, size = self.change
            change = target - np.outer(point.mean, size)
        return F.leave_one_out(self.beta, point, H, b, change), F.log_evidence(point, H, b, self.own)


class RiskCalibrationCV(RiskCalibration):
    """Risk-based calibration to a target whose weight b is chosen by what it does for rows that were left out.

    For each weight, the optimum of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)], and −log p(y_i | x_i) at the optimum without row i,
    which one step of Newton's method gives without a refit; or the log-loss on held-out folds, with their optima from
    the greatest weight to the least, each from the last. Then `RiskCalibration` with the best weight.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with what distinguishes the classes pooled (covariances,
        distributions of counts), the closed form itself, one that is the same for every class, the network with one
        parent less a feature, or a model of yours.
    target_weights : array-like, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
        Weights b > 0 to choose from.
    cv : "loo", int or splitter, default="loo"
        "loo": approximate leave-one-out. It is too optimistic for small b where rows have great leverage, being few for
        the parameters: ask for folds there. With more than 1,000 parameters, or some 1e12 products, five folds take its
        place, with a warning; so they do for documents of unequal lengths.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the best weight has least of; log-loss decides among equal errors.
    max_iter : int, default=1000
        Greatest number of updates with one weight.
    tol : float, default=1e-8
        Ends an optimisation where a step of length one promises no more than this gain of the objective, in nats a row
        and pseudo-row.
    random_state : int or RandomState, optional
        For a splitter that shuffles; five folds in place of leave-one-out do not.
    verbose : int, default=0
        1: a progress bar of the updates that the last fit makes, where Newton's method did not find its optimum.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of the calibrated model.
    target_weight_ : float
        The weight chosen.
    at_end_ : bool
        Whether it is the least or the greatest of ``target_weights``: the best one may lie beyond.
    cv_results_ : DataFrame
        A row a weight: target_weight, log_loss, error, std_error (of the log-loss), and for leave-one-out log_evidence,
        Laplace's approximation of log p(y | x) under the prior ∝ exp b[⟨s̄, η⟩ − m̄ψ(η)].
    validation_ : str
        "approximate leave-one-out" or the number of folds.
    estimator_ : ClosedFormClassifier
        The calibrated model.
    n_iter_ : int
        Steps to the optimum of the chosen weight, Newton's from that of the next greater one, or updates.
    best_iter_ : int
        The last.
    history_ : DataFrame
        A row an iterate on that way: iteration, soft_error, error, log_loss, step.
    stop_reason_ : str
        Of the last fit: "converged"; "max_iter"; "no_step": no safe step is left that raises the objective.
    converged_ : bool
        Whether the reason is "converged"; a `ConvergenceWarning` tells otherwise.

    Raises
    ------
    InvalidStatistics
        In ``fit``, where the closed form does not exist, or its target lies on the boundary of the model.

    See Also
    --------
    RiskCalibration : The same with a given weight.
    calibration_test : Whether calibration has anything to gain.

    References
    ----------
    This book's. Approximate leave-one-out: Rad and Maleki (2020).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import QDA, RiskCalibrationCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RiskCalibrationCV(QDA()).fit(X, y)
    >>> model.target_weight_, model.validation_
    (1.0, 'approximate leave-one-out')
    """

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        target: str | ClosedFormClassifier = "pooled",
        target_weights: Sequence[float] | Array = TARGET_WEIGHTS,
        cv: Any = "loo",
        scoring: str = "log_loss",
        max_iter: int = SAFE_STEPS,
        tol: float = 1e-8,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        shared = {"target": target, "max_iter": max_iter, "tol": tol, "random_state": random_state, "verbose": verbose}
        super().__init__(estimator, step="safe", stopping="none", target_weight=1.0, **shared)
        self.target_weights = target_weights
        self.cv = cv
        self.scoring = scoring

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the weight of the target, then calibrate with it."""
        weights = self._checked_weights()
        model = clone(self.estimator)
        rows, labels = model.check_X_y(X, y)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(labels))
        self._choose(weights, model, rows, labels, sample_weight)
        super().fit(X, y, sample_weight)
        del self._optimum
        return self

    def _settled(self) -> Self:
        settled = super()._settled()
        settled.target_weight = self.target_weight_
        return settled

    def _run(self, problem: Problem, rng: np.random.RandomState) -> Run:
        """The optimum and the way to it, where Newton's method found them already."""
        if self._optimum is None:
            return super()._run(problem, rng)
        problem.warm_start = problem.total_weight * self._optimum.mean
        chosen = problem.evaluate(self._start(problem))
        return Run(chosen, len(self._optimum.history) - 1, self._optimum.history, "converged")

    @property
    def cv_results_(self) -> pd.DataFrame:
        """What each weight of the target achieved; kept as arrays, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._cv_results)

    def _checked_weights(self) -> Array:
        self._check_parameters()
        if not isinstance(self.estimator, ConjugateClassifier):
            raise ValueError(f"estimator must be an exponential family of rcpkg; got {self.estimator!r}")
        weights = check_numbers("target_weights", self.target_weights)
        if weights.ndim != 1 or not weights.size or not np.all(weights > 0):
            raise ValueError(f"target_weights must be a non-empty list of numbers > 0; got {self.target_weights!r}")
        if self.scoring not in SCORING:
            raise ValueError(f"scoring must be one of {', '.join(SCORING)}; got {self.scoring!r}")
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        return np.unique(weights)

    def _choose(
        self, weights: Array, model: ConjugateClassifier, X: Any, y: NDArray[np.intp], sample_weight: Array | None
    ) -> None:
        """Set what left-out rows say of the weights, and the best of these."""
        optima: dict[float, Optimum] = {}
        if isinstance(self.cv, str):
            try:
                found, optima = self._leave_one_out(weights, model, X, y, sample_weight)
                self.validation_ = "approximate leave-one-out"
            except (NotConverged, NotImplementedError) as error:
                warnings.warn(
                    f'cv="loo" is not to be had: {error}; {FOLDS} folds take its place (cv={FOLDS} asks for them)',
                    UserWarning,
                    stacklevel=3,
                )
                found = self._by_folds(weights, model, X, y, sample_weight, FOLDS, FOLD_TOL)
        else:
            found = self._by_folds(weights, model, X, y, sample_weight, self.cv)
        self._cv_results = {"target_weight": weights, **found}
        first, second = (found[name] for name in (self.scoring, "log_loss"))
        best = int(np.lexsort((-weights, second, first))[0])
        self.target_weight_ = float(weights[best])
        self._optimum = optima.get(self.target_weight_)
        self.at_end_ = len(weights) > 1 and best in (0, len(weights) - 1)
        if self.at_end_:
            end, more = ("greatest", "greater") if best else ("least", "smaller")
            warnings.warn(
                f"target_weight_={self.target_weight_:g} is the {end} of target_weights: the best may lie beyond; add "
                f"{more} ones",
                UserWarning,
                stacklevel=3,
            )

    def _learner(self, weight: float, least_tol: float = 0.0) -> RiskCalibration:
        tol = max(self.tol, least_tol)
        settings = {"step": "safe", "stopping": "none", "max_iter": self.max_iter, "tol": tol}
        return RiskCalibration(self.estimator, target=self.target, target_weight=weight, **settings)

    def _leave_one_out(
        self, weights: Array, model: ConjugateClassifier, X: Any, y: NDArray[np.intp], sample_weight: Array | None
    ) -> tuple[dict[str, Array], dict[float, Optimum]]:
        path = NewtonPath(self._learner(1.0), model, X, y, sample_weight, len(weights))
        losses, evidence = [], []
        for b in weights[::-1]:
            log_P, log_evidence = path.follow(b)
            losses.append(row_losses(log_P, y)[1:])
            evidence.append(log_evidence)
        found = _summary(np.array(losses)[::-1], sample_weight) | {"log_evidence": np.array(evidence)[::-1]}
        return found, path.optima

    def _by_folds(
        self,
        weights: Array,
        model: ConjugateClassifier,
        X: Any,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        cv: Any,
        fold_tol: float = 0.0,
    ) -> dict[str, Array]:
        rng = check_random_state(self.random_state)
        losses = np.full((len(weights), 2, len(y)), np.nan)
        n_folds = 0
        for train, held in _folds(cv, y):
            n_folds += 1
            weight = None if sample_weight is None else sample_weight[train]
            for k, log_P in self._path(weights, model, X, y, train, held, weight, rng, fold_tol):
                losses[k][:, held] = row_losses(log_P, y[held])[1:]
        self.validation_ = f"{n_folds} folds"
        tested = ~np.isnan(losses[0, 0])
        share = tested if sample_weight is None else sample_weight[tested]
        if not np.any(share):
            raise ValueError(f"cv={cv!r} leaves out no row of positive weight: there is nothing to choose by")
        return _summary(losses[:, :, tested], None if sample_weight is None else share)

    def _path(
        self,
        weights: Array,
        model: ConjugateClassifier,
        X: Any,
        y: NDArray[np.intp],
        train: NDArray[np.intp],
        held: NDArray[np.intp],
        sample_weight: Array | None,
        rng: np.random.RandomState,
        fold_tol: float,
    ) -> Iterator[tuple[int, Array]]:
        """Number of each weight, and log posteriors of held-out rows at the optimum of the others, from the last on."""
        absent = np.setdiff1d(np.arange(len(model.classes_)), y[train])
        if absent.size:
            raise ValueError(
                f"class {model.classes_[absent[0]]!s} has no row in the training part of a fold: use fewer folds, or "
                "leave such classes out"
            )
        model = copy(model)
        model.prepare(X[train])
        problem = self._learner(1.0)._problem(model, X[train], y[train], sample_weight, rng)
        last, warm, size = None, None, 0.0
        for k in range(len(weights) - 1, -1, -1):
            of_weight = replace(problem, warm_start=warm)
            share = weights[k] * size / (problem.total_weight + weights[k] * size)
            run = self._learner(weights[k], fold_tol * share)._run(of_weight, rng)
            optimum, parameters = run.chosen.statistics, run.chosen.parameters
            fitted, size = of_weight.model, of_weight.target_size
            warm, last = optimum if last is None else _onwards(fitted, optimum, last), optimum
            yield k, log_posterior(fitted.log_joint(X[held], parameters), fitted.log_class_probabilities(parameters))


def _onwards(model: ConjugateClassifier, optimum: Statistics, last: Statistics) -> Statistics:
    """As far beyond an optimum as it lies from the last, or the optimum where rounding makes that invalid."""
    beyond = model.safe_update(optimum, optimum - last)
    try:
        model.parameters(beyond)
    except InvalidStatistics:
        return optimum
    return beyond


def _folds(cv: Any, y: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Training and held-out rows of each fold that has both."""
    try:
        divisions = list(check_cv(cv, y, classifier=True).split(np.empty((len(y), 1)), y))
    except ValueError as error:
        raise ValueError(f"cv={cv!r} does not divide {len(y)} rows: {error}") from None
    for train, held in divisions:
        if len(train) and len(held):
            yield train, held


def _summary(losses: Array, sample_weight: Array | None) -> dict[str, Array]:
    """Mean error and log-loss of each weight, and the standard error of the latter, from (n_weights, 2, n)."""
    share = np.full(losses.shape[2], 1.0) if sample_weight is None else sample_weight
    share = share / share.sum()
    error, log_loss = (losses @ share).T
    spread = ((losses[:, 1] - log_loss[:, None]) ** 2) @ share**2
    return {"log_loss": log_loss, "error": error, "std_error": np.sqrt(spread)}
