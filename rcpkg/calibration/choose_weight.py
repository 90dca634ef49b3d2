"""The weight of the target, chosen by leave-one-out or cross-validation along the path of weights."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, InvalidStatistics, constructed
from rcpkg.calibration._docs import documented
from rcpkg.calibration.in_view import check_in_view, copies
from rcpkg.calibration.learner import Learner
from rcpkg.calibration.objective import check_target, log_posterior_of, rows_at
from rcpkg.calibration.penalised import NotConverged
from rcpkg.calibration.rules import history_row, row_losses
from rcpkg.calibration.stops import Outcome
from rcpkg.calibration.target_path import TargetPath
from rcpkg.checks import check_numbers, check_weights
from rcpkg.choice import choose
from rcpkg.families import ClosedFormClassifier, require
from rcpkg.linalg import slices
from rcpkg.rows import Rows

TARGET_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SCORING = ("log_loss", "error")
FOLDS = 5
BLOCKS = 200  # of rows that the closed form loses in turn, where rows are more than that
# ends folds that take the place of leave-one-out, times the share of the target in all rows; half of FOLD_TOL then
# bounds what F lacks a row
FOLD_TOL = 1e-4
SAFE_TOL = 1e-8  # gain in nats a row at which safe steps end, where Newton's method is not to be had
GAPPY_TOL = 1e-6  # the same in folds of rows with gaps, of which each step takes longer


class LeftOut(NamedTuple):
    """Errors and log-losses of candidates on rows left out, shape (n_candidates, 2, n), weights from the least on and
    then, if at all, the closed form; what these rows count, further columns of the results, and how it was done."""

    losses: Array
    share: Array | None
    more: dict[str, Array]
    validation: str


@documented()
@constructed
class RiskCalibrationCV(Learner):
    """Risk-based calibration to a target whose weight b is chosen by what it does for rows that were left out.

    For each weight, the optimum of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)], and −log p(y_i | x_i) at the optimum without row i,
    which one step of Newton's method gives without a refit; or the log-loss on held-out folds, with their optima from
    the greatest weight to the least, each from the last. Then `RiskCalibration` with the best weight, or the closed
    form as it is, where that does better than all of them.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        %(target)s
    target_weights : array-like, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
        Weights b > 0 to choose from. With hundreds of classes the least ones take most of the time.
    cv : "loo", int or splitter, default="loo"
        "loo": approximate leave-one-out. It is too optimistic for small b where rows have great leverage, being few for
        the parameters: ask for folds there. With more than 1,000 parameters, or some 1e12 products, five folds take its
        place, with a warning; so they do for documents of unequal lengths.
    closed_form : bool, default=True
        Whether the closed form is a candidate. With "loo" it loses the rows in turn, singly or, of
        many, half a per cent at a time.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the best weight has least of; log-loss decides among equal errors.
    gaps_in_view : float, sequence of floats, "training" or boolean array of shape (K, d), optional
        %(gaps in view)s
        Candidates are judged on rows left out and their masked copies, by five folds in the place of leave-one-out.
    random_state : int or RandomState, optional
        The gaps in view, and which rows share a fold, where ``cv`` is a number of folds: these are stratified, and
        shuffled if it is given. A splitter has a random state of its own.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of the calibrated model.
    target_weight_ : float
        The weight chosen; NaN where the closed form is.
    at_end_ : bool
        Whether it is the least or the greatest of ``target_weights``: the best one may lie beyond.
    cv_results_ : DataFrame
        A row a weight: target_weight, log_loss, error, std_error (of the log-loss), and for leave-one-out log_evidence,
        Laplace's approximation of log p(y | x) under the prior ∝ exp b[⟨s̄, η⟩ − m̄ψ(η)]; a last row, of weight NaN,
        for the closed form.
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
        Of the last fit: "converged"; "max_iter"; "no_step": no step is left that raises the objective; "closed_form".
    converged_ : bool
        Whether the reason is "converged" or "closed_form"; a `ConvergenceWarning` tells otherwise.

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
    >>> from rcpkg import LDA, RiskCalibrationCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RiskCalibrationCV(LDA()).fit(X, y)
    >>> model.target_weight_, model.validation_
    (3.0, 'approximate leave-one-out')
    """

    target: str | ClosedFormClassifier = "pooled"
    target_weights: Sequence[float] | Array = TARGET_WEIGHTS
    cv: Any = "loo"
    closed_form: bool = True
    scoring: str = "log_loss"
    gaps_in_view: Any = None
    random_state: int | np.random.RandomState | None = None

    def fit(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the weight of the target, then calibrate with it; ``groups`` are for a splitter ``cv``."""
        weights = self._checked_weights()
        given = sample_weight
        model, X, y, sample_weight = self._in_memory(X, y, given)
        if groups is not None and len(groups) != len(y):  # rows of weight zero have been left out
            groups = np.asarray(groups)[np.asarray(given) > 0]
        rng = check_random_state(self.random_state)
        path = TargetPath.of(model, self.target, X, y, sample_weight, len(weights), self.gaps_in_view, rng)
        optima: dict[float, Outcome] = {}
        if isinstance(self.cv, str):
            try:
                left = self._leave_one_out(path, weights, y, sample_weight, optima)
            except NotConverged as error:
                warnings.warn(
                    f'cv="loo" is not to be had: {error}; {FOLDS} folds take its place (cv={FOLDS} asks for them)',
                    UserWarning,
                    stacklevel=2,
                )
                left = self._by_folds(path, weights, X, y, sample_weight, rng, FOLDS, groups, FOLD_TOL)
        else:
            left = self._by_folds(path, weights, X, y, sample_weight, rng, self.cv, groups)
        error, log_loss = left.losses[::-1].swapaxes(0, 1)  # of equally good ones the closed form, or the greatest
        best = len(error) - 1 - choose(error, log_loss, weights=left.share, scoring=self.scoring).place[0]
        weight = float(weights[best]) if best < len(weights) else np.nan
        found = _closed_form(path) if best == len(weights) else optima.get(weight) or path.follow(weight)
        at_end = len(weights) > 1 and best in (0, len(weights) - 1)
        self._warn(weight, found, "" if not at_end else "greatest" if best else "least")
        of_candidates = np.append(weights, [np.nan] * self.closed_form)
        missing = [np.nan] * self.closed_form
        return self._adopt(
            path.objective,
            found,
            target_weight_=weight,
            at_end_=at_end,
            validation_=left.validation,
            _cv_results={
                "target_weight": of_candidates,
                **_summary(left.losses, left.share),
                **{name: np.append(column, missing) for name, column in left.more.items()},
            },
        )

    def _in_memory(
        self, X: ArrayLike | Rows, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[ClosedFormClassifier, Any, NDArray[np.intp], Array | None]:
        """A clone of the estimator, its rows, class numbers and weights, if any are given; without the rows of weight
        zero, which tell nothing, not even which states there are, unless a list of folds in ``cv`` numbers them."""
        if isinstance(X, Rows):
            X, y, sample_weight, _ = X.only("RiskCalibrationCV")
        model = clone(self.estimator)
        X, y = model.check_X_y(X, y)
        if sample_weight is None:
            return model, X, y, None
        weight = check_weights(sample_weight, len(y))
        listed = not isinstance(self.cv, str | Integral) and not hasattr(self.cv, "split")
        present = (weight > 0) | listed
        return (model, X, y, weight) if present.all() else (model, X[present], y[present], weight[present])

    @property
    def cv_results_(self) -> pd.DataFrame:
        """What each weight of the target achieved; kept as arrays, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._cv_results)

    def _checked_weights(self) -> Array:
        self._check_estimator()
        check_target(self.target, 1.0)
        check_in_view(self.gaps_in_view)
        require(self.estimator, "target_weight > 0")
        weights = check_numbers("target_weights", self.target_weights)
        if weights.ndim != 1 or not weights.size or not np.all(weights > 0):
            raise ValueError(f"target_weights must be a non-empty list of numbers > 0; got {self.target_weights!r}")
        if self.scoring not in SCORING:
            raise ValueError(f"scoring must be one of {', '.join(SCORING)}; got {self.scoring!r}")
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        return np.unique(weights)

    def _warn(self, weight: float, found: Outcome, end: str) -> None:
        if end:
            warnings.warn(
                f"target_weight_={weight:g} is the {end} of target_weights: the best may lie beyond; add "
                f"{'greater' if end == 'greatest' else 'smaller'} ones",
                UserWarning,
                stacklevel=3,
            )
        if found.stop_reason not in ("converged", "closed_form"):
            warnings.warn(
                f"the optimum of target_weight={weight:g} was not reached in {len(found.history) - 1} steps "
                f"({found.stop_reason}): standardise the features, or leave small weights out of target_weights",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _leave_one_out(
        self,
        path: TargetPath,
        weights: Array,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        optima: dict[float, Outcome],
    ) -> LeftOut:
        """By approximate leave-one-out; puts the optima on all rows into ``optima``."""
        if path.lack:
            raise NotConverged(path.lack)
        losses, evidence = [], []
        for b in weights[::-1]:
            optima[float(b)] = path.follow(b)
            log_P, log_evidence = path.left_out()
            losses.append(row_losses(log_P, y)[1:])
            evidence.append(log_evidence)
        losses.reverse()
        if self.closed_form:
            losses.append(row_losses(_closed_form_left_out(path), y)[1:])
        more = {"log_evidence": np.array(evidence)[::-1]}
        return LeftOut(np.array(losses), sample_weight, more, "approximate leave-one-out")

    def _by_folds(
        self,
        path: TargetPath,
        weights: Array,
        X: Any,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        rng: np.random.RandomState,
        cv: Any,
        groups: ArrayLike | None,
        fold_tol: float = 0.0,
    ) -> LeftOut:
        """In the mean over the folds that leave a row out, at the optima of the other rows, and over its copies."""
        model, total = path.prepared, path.objective.total_weight
        losses, times = np.zeros((len(weights) + self.closed_form, 2, len(y))), np.zeros(len(y))
        folds = self._folds(cv, y, groups)
        for train, held in folds:
            absent = np.setdiff1d(np.arange(len(model.classes_)), y[train])
            if absent.size:
                raise ValueError(
                    f"class {model.classes_[absent[0]]!s} has no row in the training part of a fold: use fewer folds, "
                    "or leave such classes out"
                )
            of_train = None if sample_weight is None else sample_weight[train]
            times[held] += 1
            view = self.gaps_in_view, rng
            fold = TargetPath.of(model, self.target, X[train], y[train], of_train, len(weights), *view)
            judged = copies(X[held], *view)
            y_judged = y[held][judged.of]
            for k in range(len(weights) - 1, -1, -1):
                size = weights[k] * fold.objective.target.size
                least = GAPPY_TOL if fold.gaps else SAFE_TOL
                optimum = fold.follow(weights[k], safe_tol=max(least, fold_tol * size / (total + size)))
                losses[k][:, held] += judged.mean(row_losses(fold.log_posterior(judged.X, optimum), y_judged)[1:])
            if self.closed_form:
                closed = fold.prepared.parameters(fold.objective.labels)
                log_P = log_posterior_of(fold.prepared, judged.X, closed)
                losses[-1][:, held] += judged.mean(row_losses(log_P, y_judged)[1:])
        tested = times > 0
        share = None if sample_weight is None else sample_weight[tested]
        if not np.any(tested if share is None else share):
            raise ValueError(f"cv={cv!r} leaves out no row of positive weight: there is nothing to choose by")
        return LeftOut(losses[:, :, tested] / times[tested], share, {}, f"{len(folds)} folds")

    def _folds(
        self, cv: Any, y: NDArray[np.intp], groups: ArrayLike | None
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and held-out rows of each fold that has both."""
        if isinstance(cv, Integral) and self.random_state is not None:
            cv = StratifiedKFold(cv, shuffle=True, random_state=check_random_state(self.random_state))
        try:
            divisions = list(check_cv(cv, y, classifier=True).split(np.empty((len(y), 1)), y, groups))
        except ValueError as error:
            raise ValueError(f"cv={cv!r} does not divide {len(y)} rows: {error}") from None
        return [(train, held) for train, held in divisions if len(train) and len(held)]


def _closed_form(path: TargetPath) -> Outcome:
    """The closed form of a path's rows, with the prior of the model."""
    F = path.objective
    F = replace(F, family=path.prepared, target=None, start=F.labels)
    point = F.at(F.labels)
    history = [history_row(0, point.losses, 0.0)]
    return Outcome(F.labels, point.parameters, -point.value / F.size, history, "closed_form", 0.0, 0)


def _closed_form_left_out(path: TargetPath) -> Array:
    """log p(y | x) of the closed form without each row, shape (n, r), lost in at most `BLOCKS` blocks; −∞ where none
    exists without them."""
    F, family = path.objective, path.prepared
    counting = F.rows.only("the closed form without each row").weights(len(family.classes_))
    log_P = np.full(counting.shape, -np.inf)
    for rows in slices(len(F.y), -(-len(F.y) // BLOCKS)):
        X = rows_at(F.X, rows)
        try:
            parameters = family.parameters(F.labels - family.statistics(X, counting[rows]))
        except InvalidStatistics:
            continue
        log_P[rows] = log_posterior_of(family, X, parameters)
    return log_P


def _summary(losses: Array, sample_weight: Array | None) -> dict[str, Array]:
    """Mean error and log-loss of each candidate, and the standard error of the latter, from (n_candidates, 2, n)."""
    share = np.full(losses.shape[2], 1.0) if sample_weight is None else sample_weight
    share = share / share.sum()
    error, log_loss = (losses @ share).T
    with np.errstate(invalid="ignore"):  # the closed form may have an infinite loss
        spread = ((losses[:, 1] - log_loss[:, None]) ** 2) @ share**2
    return {"log_loss": log_loss, "error": error, "std_error": np.sqrt(spread)}
