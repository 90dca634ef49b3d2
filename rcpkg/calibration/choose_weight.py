"""The weight of the target, chosen by leave-one-out or cross-validation along the path of weights."""

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array
from rcpkg.calibration._docs import documented
from rcpkg.calibration.learner import Learner
from rcpkg.calibration.objective import Objective, check_target
from rcpkg.calibration.penalised import NotConverged
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.target_path import Optimum, TargetPath
from rcpkg.checks import check_numbers
from rcpkg.choice import choose
from rcpkg.families import ClosedFormClassifier, ConjugateClassifier, require

TARGET_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SCORING = ("log_loss", "error")
FOLDS = 5
# ends folds that take the place of leave-one-out, times the share of the target in all rows; half of FOLD_TOL then
# bounds what F lacks a row
FOLD_TOL = 1e-4
SAFE_TOL = 1e-8  # gain in nats a row at which safe steps end, where Newton's method is not to be had


@documented()
class RiskCalibrationCV(Learner):
    """Risk-based calibration to a target whose weight b is chosen by what it does for rows that were left out.

    For each weight, the optimum of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)], and −log p(y_i | x_i) at the optimum without row i,
    which one step of Newton's method gives without a refit; or the log-loss on held-out folds, with their optima from
    the greatest weight to the least, each from the last. Then `RiskCalibration` with the best weight.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        %(target)s
    target_weights : array-like, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
        Weights b > 0 to choose from.
    cv : "loo", int or splitter, default="loo"
        "loo": approximate leave-one-out. It is too optimistic for small b where rows have great leverage, being few for
        the parameters: ask for folds there. With more than 1,000 parameters, or some 1e12 products, five folds take its
        place, with a warning; so they do for documents of unequal lengths.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the best weight has least of; log-loss decides among equal errors.
    random_state : int or RandomState, optional
        Which rows share a fold, where ``cv`` is a number of folds: these are stratified, and shuffled if it is given.
        A splitter has a random state of its own.

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

    _needs_complete_rows = True

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        target: str | ClosedFormClassifier = "pooled",
        target_weights: Sequence[float] | Array = TARGET_WEIGHTS,
        cv: Any = "loo",
        scoring: str = "log_loss",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.target = target
        self.target_weights = target_weights
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the weight of the target, then calibrate with it."""
        weights = self._checked_weights()
        model, X, y, sample_weight = self._validated(X, y, sample_weight)
        path = path_of(model, self.target, X, y, sample_weight, len(weights))
        optimum = self._choose(path, weights, X, y, sample_weight)
        n_iter, reason = len(optimum.history) - 1, optimum.stop_reason
        if reason != "converged":
            warnings.warn(
                f"the optimum of target_weight={self.target_weight_:g} was not reached in {n_iter} steps "
                f"({reason}): standardise the features, or leave small weights out of target_weights",
                ConvergenceWarning,
                stacklevel=2,
            )
        fitted = path.objective.family.set_statistics(optimum.statistics, optimum.parameters)
        return self._adopt(fitted, path.objective, optimum.history, n_iter, reason)

    @property
    def cv_results_(self) -> pd.DataFrame:
        """What each weight of the target achieved; kept as arrays, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._cv_results)

    def _checked_weights(self) -> Array:
        self._check_estimator()
        check_target(self.target, 1.0)
        require(self.estimator, "target_weight > 0")
        weights = check_numbers("target_weights", self.target_weights)
        if weights.ndim != 1 or not weights.size or not np.all(weights > 0):
            raise ValueError(f"target_weights must be a non-empty list of numbers > 0; got {self.target_weights!r}")
        if self.scoring not in SCORING:
            raise ValueError(f"scoring must be one of {', '.join(SCORING)}; got {self.scoring!r}")
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        return np.unique(weights)

    def _choose(
        self, path: TargetPath, weights: Array, X: Any, y: NDArray[np.intp], sample_weight: Array | None
    ) -> Optimum:
        """Set what left-out rows say of the weights and the best of these; its optimum on all rows."""
        optima: dict[float, Optimum] = {}
        more: dict[str, Array] = {}
        if isinstance(self.cv, str):
            try:
                losses, more = _leave_one_out(path, weights, y, optima)
                share = sample_weight
                self.validation_ = "approximate leave-one-out"
            except NotConverged as error:
                warnings.warn(
                    f'cv="loo" is not to be had: {error}; {FOLDS} folds take its place (cv={FOLDS} asks for them)',
                    UserWarning,
                    stacklevel=3,
                )
                losses, share = self._by_folds(path, weights, X, y, sample_weight, FOLDS, FOLD_TOL)
        else:
            losses, share = self._by_folds(path, weights, X, y, sample_weight, self.cv)
        self._cv_results = {"target_weight": weights, **_summary(losses, share), **more}
        error, log_loss = losses[::-1].swapaxes(0, 1)  # of equally good weights the greatest
        choice = choose(error, log_loss, weights=share, scoring=self.scoring)
        best = len(weights) - 1 - choice.place[0]
        self.target_weight_ = float(weights[best])
        self._warn_of_end(best, len(weights))
        return optima.get(self.target_weight_) or path.follow(self.target_weight_)

    def _warn_of_end(self, best: int, n_weights: int) -> None:
        self.at_end_ = n_weights > 1 and best in (0, n_weights - 1)
        if self.at_end_:
            end, more = ("greatest", "greater") if best else ("least", "smaller")
            warnings.warn(
                f"target_weight_={self.target_weight_:g} is the {end} of target_weights: the best may lie beyond; add "
                f"{more} ones",
                UserWarning,
                stacklevel=4,
            )

    def _by_folds(
        self,
        path: TargetPath,
        weights: Array,
        X: Any,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        cv: Any,
        fold_tol: float = 0.0,
    ) -> tuple[Array, Array | None]:
        """Errors and log-losses of each weight on the rows that folds leave out, in the mean over the folds that do,
        shape (n_weights, 2, n), at the optima of the other rows; and what these rows count."""
        model, total = path.prepared, path.objective.total_weight
        losses, times, n_folds = np.zeros((len(weights), 2, len(y))), np.zeros(len(y)), 0
        for train, held in self._folds(cv, y):
            n_folds += 1
            absent = np.setdiff1d(np.arange(len(model.classes_)), y[train])
            if absent.size:
                raise ValueError(
                    f"class {model.classes_[absent[0]]!s} has no row in the training part of a fold: use fewer folds, "
                    "or leave such classes out"
                )
            of_train = None if sample_weight is None else sample_weight[train]
            times[held] += 1
            fold = path_of(model, self.target, X[train], y[train], of_train, len(weights))
            for k in range(len(weights) - 1, -1, -1):
                size = weights[k] * fold.objective.target.size
                optimum = fold.follow(weights[k], safe_tol=max(SAFE_TOL, fold_tol * size / (total + size)))
                losses[k][:, held] += row_losses(fold.log_posterior(X[held], optimum), y[held])[1:]
        self.validation_ = f"{n_folds} folds"
        tested = times > 0
        share = None if sample_weight is None else sample_weight[tested]
        if not np.any(tested if share is None else share):
            raise ValueError(f"cv={cv!r} leaves out no row of positive weight: there is nothing to choose by")
        return losses[:, :, tested] / times[tested], share

    def _folds(self, cv: Any, y: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and held-out rows of each fold that has both."""
        if isinstance(cv, Integral) and self.random_state is not None:
            cv = StratifiedKFold(cv, shuffle=True, random_state=check_random_state(self.random_state))
        try:
            divisions = list(check_cv(cv, y, classifier=True).split(np.empty((len(y), 1)), y))
        except ValueError as error:
            raise ValueError(f"cv={cv!r} does not divide {len(y)} rows: {error}") from None
        for train, held in divisions:
            if len(train) and len(held):
                yield train, held


def path_of(
    model: ConjugateClassifier,
    target: str | ClosedFormClassifier,
    X: Any,
    y: NDArray[np.intp],
    sample_weight: Array | None = None,
    n_weights: int = 1,
) -> TargetPath:
    """The path of ``n_weights`` weights of a target on validated rows and class numbers, for a model that knows the
    classes; it is copied, and prepared for these rows."""
    model = copy(model)
    model.prepare(X)
    objective = Objective.of_rows(model, X, y, sample_weight, target=target, target_weight=1.0)
    return TargetPath(objective, model, target, n_weights=n_weights)


def _leave_one_out(
    path: TargetPath, weights: Array, y: NDArray[np.intp], optima: dict[float, Optimum]
) -> tuple[Array, dict[str, Array]]:
    """Errors and log-losses of each weight by approximate leave-one-out, shape (n_weights, 2, n), and the log evidence;
    puts the optima on all rows into ``optima``."""
    if path.lack:
        raise NotConverged(path.lack)
    losses, evidence = [], []
    for b in weights[::-1]:
        optima[float(b)] = path.follow(b)
        log_P, log_evidence = path.left_out()
        losses.append(row_losses(log_P, y)[1:])
        evidence.append(log_evidence)
    return np.array(losses)[::-1], {"log_evidence": np.array(evidence)[::-1]}


def _summary(losses: Array, sample_weight: Array | None) -> dict[str, Array]:
    """Mean error and log-loss of each weight, and the standard error of the latter, from (n_weights, 2, n)."""
    share = np.full(losses.shape[2], 1.0) if sample_weight is None else sample_weight
    share = share / share.sum()
    error, log_loss = (losses @ share).T
    spread = ((losses[:, 1] - log_loss[:, None]) ** 2) @ share**2
    return {"log_loss": log_loss, "error": error, "std_error": np.sqrt(spread)}
