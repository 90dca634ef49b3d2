"""The weight of the target, chosen by leave-one-out or cross-validation along the path of weights."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, constructed, one_thread_if_small
from rcpkg.calibration._docs import documented
from rcpkg.calibration.climb import climb
from rcpkg.calibration.in_view import check_in_view, copies
from rcpkg.calibration.learner import Learner
from rcpkg.calibration.objective import check_target, log_posterior_of, rows_at
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Path, Stop
from rcpkg.calibration.target_path import NotConverged, TargetPath
from rcpkg.checks import check_number, check_numbers, check_weights, warn
from rcpkg.choice import LOG_LOSS_ROUNDING, choose, least, refuse_groups
from rcpkg.choice import folds as divisions
from rcpkg.families import ClosedFormClassifier, Family, Unsupported, require
from rcpkg.families.portions import numbered
from rcpkg.linalg import slices
from rcpkg.rows import Block, Rows

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
    """Errors and log-losses of candidates on n rows left out, or in the means over n blocks of such rows, shape
    (n_candidates, 2, n), weights from the least on and then, if at all, the closed form; what these rows or blocks
    count, further columns of the results for the weights, how it was done, and what a scorer gives each candidate."""

    losses: Array
    share: Array | None
    more: dict[str, Array]
    validation: str
    scores: Array | None = None


class Fold(NamedTuple):
    """The path of the rows outside a fold; those in it, the numbers of these, or of the blocks in the mean over which
    they are judged, and what each counts; the mean over the copies of a row."""

    path: TargetPath
    held: Rows
    places: NDArray[np.intp]
    share: Array
    mean: Callable[[Array], Array] = np.asarray
    in_mean: bool = False


@dataclass(frozen=True)
class InFold:
    """The rows of a block that are in a fold, or not; one in ``n_folds`` by chance, the same ones each time."""

    fold: int
    n_folds: int
    seed: int
    held: bool

    def __call__(self, block: Block) -> Block:
        fold = np.random.default_rng([self.seed, block.n]).permutation(block.n) % self.n_folds
        return block.part(np.flatnonzero((fold == self.fold) == self.held))


class Fitted(GenerativeClassifier):
    """The classifier of validated rows that a family is at some parameters, as scorers take it."""

    def __init__(self, family: Family, parameters: Any) -> None:
        self.family, self.parameters, self.classes_ = family, parameters, family.classes_
        self.class_log_prior_ = family.log_class_probabilities(parameters)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Itself, which is fitted."""
        return self

    def _check_X(self, X: Any) -> Any:
        return X

    def _joint_log_proba(self, X: Any) -> Array:
        return self.family.log_joint(X, self.parameters)


def judged(family: Family, parameters: Any, in_mean: bool, block: Block) -> Array:
    """Errors and log-losses, shape (2, n), of the rows of a block, or their means, (2, 1)."""
    losses = row_losses(log_posterior_of(family, block.X, parameters), block.y)[1:]
    return np.average(losses, axis=1, weights=block.weight, keepdims=True) if in_mean else losses


def judged_in_fold(
    fold: Fold, weights: Array, closed_form: bool, scorer: Callable[..., float] | None, total: float, fold_tol: float
) -> tuple[Array, NDArray[np.intp], Array, list[float]]:
    """Losses and scores on the rows of a fold, at the optima of the others, each from that of the next greater weight;
    the places of the rows, and what they count. ``total`` is what all rows count."""
    path, candidates = fold.path, []
    least_tol = GAPPY_TOL if path.gaps else SAFE_TOL
    for b in weights[::-1]:
        size = b * path.objective.target.size
        optimum = path.follow(b, safe_tol=max(least_tol, fold_tol * size / (total + size)))
        candidates.insert(0, (path.objective.family, optimum.point.parameters))
    if closed_form:
        candidates.append((path.prepared, path.prepared.parameters(path.objective.labels)))
    tasks = [partial(judged, *at, fold.in_mean) for at in candidates]
    losses = np.array([np.hstack(list(fold.held.each(task))) for task in tasks])
    scores = []
    if scorer is not None:
        block = fold.held.only("a scorer")
        scores = [float(scorer(Fitted(*at), block.X, at[0].classes_[block.y])) for at in candidates]
    return fold.mean(losses), fold.places, fold.share, scores


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
        "loo": approximate leave-one-out, of a row with all of its weight. Where rows are few for the parameters its
        log-losses are off, mostly too low, for small b, and for all b with the targets "generative" and "nested" and
        of models whose classes share a covariance; ``cv=5`` judges all alike, the closed form too. Five folds take its
        place, with a warning, beyond 1,000 parameters or some 1e12 products, for rows with gaps, documents of unequal
        lengths, and `Rows` of several blocks, where rows share a fold by chance and errors are judged by block.
    closed_form : bool, default=True
        Whether the closed form is a candidate. With "loo" it loses the rows in turn, singly or, of
        many, half a per cent at a time.
    scoring : str or callable, default="log_loss"
        What the best candidate has least of, "log_loss" or "error", or most of: a scorer of scikit-learn by its name,
        such as "roc_auc", or a function of a classifier, rows and labels, in the mean over folds, where rows count
        alike and decisions are those of the 0-1 loss. Log-loss decides among equal ones.
    gaps_in_view : float, sequence of floats, "training" or boolean array of shape (K, d), optional
        %(gaps in view)s
        Candidates are judged on rows left out and their masked copies, by five folds in the place of leave-one-out.
    n_jobs : int, optional
        Processes that share the folds, as joblib counts them; leave-one-out takes one.
    random_state : int or RandomState, optional
        The gaps in view, and which rows share a fold, where ``cv`` is a number of folds: these are stratified, and
        shuffled if it is given. A splitter has a random state of its own.
    %(cost)s

    Attributes
    ----------
    %(path)s
        Also "closed_form", where that is chosen. The way is that from the optimum of the next greater weight.
    converged_ : bool
        Whether the reason is "converged" or "closed_form"; a `ConvergenceWarning` tells otherwise.
    target_weight_ : float
        The weight chosen; NaN where the closed form is.
    at_end_ : bool
        Whether it is the least or the greatest of ``target_weights``: the best one may lie beyond.
    cv_results_ : DataFrame
        A row a weight: target_weight, log_loss, error, std_error (of the log-loss), and for leave-one-out log_evidence,
        Laplace's approximation of log p(y | x) under the prior ∝ exp b[⟨s̄, η⟩ − m̄ψ(η)]; the score that a scorer
        gives; a last row, of weight NaN, for the closed form.
    validation_ : str
        "approximate leave-one-out" or the number of folds.

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
    scoring: str | Callable[..., float] = "log_loss"
    gaps_in_view: Any = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    @one_thread_if_small
    def fit(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the weight of the target, then calibrate with it; ``groups`` are for a splitter ``cv``."""
        weights, rng = self._checked_weights(), check_random_state(self.random_state)
        if isinstance(X, Rows) and not X.is_one_block:
            path, folds = self._of_blocks(X, y, sample_weight, groups, len(weights), rng)
        else:
            path, folds = self._of_arrays(X, y, sample_weight, groups, len(weights), rng)
        optima: dict[float, Path] = {}
        if isinstance(self.cv, str):
            refuse_groups(groups)
            try:
                if self.scoring not in SCORING:
                    raise NotConverged(f"scoring={self.scoring!r} judges folds")
                left = self._leave_one_out(path, weights, optima)
            except NotConverged as error:
                warn(f'cv="loo" is not to be had: {error}; {FOLDS} folds take its place (cv={FOLDS} asks for them)')
                left = self._by_folds(path, weights, folds(FOLDS), FOLD_TOL)
        else:
            left = self._by_folds(path, weights, folds(self.cv))
        best = self._best(left)
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
                **({} if left.scores is None else {"score": left.scores}),
            },
        )

    def _best(self, left: LeftOut) -> int:
        """Number of the best candidate; of equally good ones the closed form, or that of the greatest weight."""
        error, log_loss = left.losses[::-1].swapaxes(0, 1)
        if left.scores is None:
            return len(error) - 1 - choose(error, log_loss, weights=left.share, scoring=self.scoring).place[0]
        among = least(-left.scores[::-1], np.ones(len(error), dtype=bool), LOG_LOSS_ROUNDING)
        return len(error) - 1 - choose(error, log_loss, weights=left.share, among=among, scoring="log_loss").place[0]

    def _of_blocks(
        self, rows: Rows, y: Any, sample_weight: Any, groups: Any, n_weights: int, rng: np.random.RandomState
    ) -> tuple[TargetPath, Callable[[Any], Iterator[Fold]]]:
        """The path of rows of several blocks, and a function of ``cv`` that gives their folds."""
        if groups is not None or not isinstance(self.cv, str | Integral):
            raise Unsupported("with Rows of several blocks cv must be a number of folds, and groups None")
        if self.scoring not in SCORING:
            raise Unsupported('with Rows of several blocks scoring must be "log_loss" or "error"')
        model, seed = clone(self.estimator), int(rng.randint(2**31)) if self.random_state is not None else 0
        training, view = model._training_rows(rows, y, sample_weight), (self.gaps_in_view, rng)
        path = TargetPath.of_rows(model, self.target, training, n_weights, *view)

        def folds(n_folds: int) -> Iterator[Fold]:
            first = 0
            check_number("cv", n_folds, 2, integer=True)
            for k in range(n_folds):
                train, held = (rows.map(InFold(k, n_folds, seed, held)) for held in (False, True))
                of_train = clone(self.estimator)
                train = of_train._training_rows(train, None, None)
                self._check_classes(model.classes_, np.isin(model.classes_, of_train.classes_))
                held = held.map(partial(numbered, of_train))
                share = np.array(list(held.each(attrgetter("total_weight"))))
                fold = TargetPath.of_rows(of_train, self.target, train, n_weights)
                yield Fold(fold, held, np.arange(first, first + len(share)), share, in_mean=True)
                first += len(share)

        return path, folds

    def _of_arrays(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, n_weights: int, rng: np.random.RandomState
    ) -> tuple[TargetPath, Callable[[Any], Iterator[Fold]]]:
        """The path of rows in memory, and a function of ``cv`` that gives their folds."""
        if isinstance(X, Rows):
            X, y, sample_weight, _ = X.without(y, sample_weight).only("RiskCalibrationCV")
        model = clone(self.estimator)
        n, block = _num_samples(X), model._counting_rows(X, y, sample_weight)
        present = np.ones(n, dtype=bool) if sample_weight is None else check_weights(sample_weight, n) > 0
        X, y, weight, _ = block
        view = self.gaps_in_view, rng

        def folds(cv: Any) -> Iterator[Fold]:
            if isinstance(cv, Integral) and self.random_state is not None:
                cv = StratifiedKFold(cv, shuffle=True, random_state=check_random_state(self.random_state))
            for train, held in divisions(cv, X, y, present, groups):
                self._check_classes(model.classes_, np.isin(np.arange(len(model.classes_)), y[train]))
                fold = TargetPath.of(model, self.target, *block.part(train)[:3], n_weights, *view)
                seen, share = copies(X[held], *view), np.ones(len(held)) if weight is None else weight[held]
                yield Fold(fold, Rows.of(seen.X, y[held][seen.of]), held, share, seen.mean)

        return TargetPath.of(model, self.target, *block[:3], n_weights, *view), folds

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
        if not callable(self.scoring) and self.scoring not in (*SCORING, *get_scorer_names()):
            raise ValueError(
                f"scoring must be one of {', '.join(SCORING)}, the name of a scorer of scikit-learn, or a function of "
                f"a classifier, rows and labels; got {self.scoring!r}"
            )
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        return np.unique(weights)

    def _warn(self, weight: float, found: Path, end: str) -> None:
        if end:
            warn(
                f"target_weight_={weight:g} is the {end} of target_weights: the best may lie beyond; add "
                f"{'greater' if end == 'greatest' else 'smaller'} ones"
            )
        if found.stop_reason not in ("converged", "closed_form"):
            warn(
                f"the optimum of target_weight={weight:g} was not reached in {found.n_iter} steps "
                f"({found.stop_reason}): drop small target_weights, or rescale numeric features",
                ConvergenceWarning,
            )

    def _leave_one_out(self, path: TargetPath, weights: Array, optima: dict[float, Path]) -> LeftOut:
        """By approximate leave-one-out; puts the optima on all rows into ``optima``."""
        if path.lack:
            raise NotConverged(path.lack)
        losses, evidence, y = [], [], path.objective.y
        for b in weights[::-1]:
            optima[float(b)] = path.follow(b)
            log_P, log_evidence = path.left_out()
            losses.append(row_losses(log_P, y)[1:])
            evidence.append(log_evidence)
        losses.reverse()
        if self.closed_form:
            losses.append(row_losses(_closed_form_left_out(path), y)[1:])
        more = {"log_evidence": np.array(evidence)[::-1]}
        return LeftOut(np.array(losses), path.objective.weight, more, "approximate leave-one-out")

    def _by_folds(self, path: TargetPath, weights: Array, folds: Iterator[Fold], fold_tol: float = 0.0) -> LeftOut:
        """In the mean over the folds that leave a row out, at the optima of the other rows, and over its copies."""
        scorer = None if self.scoring in SCORING else check_scoring(self, self.scoring)
        task, total = delayed(judged_in_fold), path.objective.total_weight
        found = Parallel(n_jobs=self.n_jobs)(
            task(fold, weights, self.closed_form, scorer, total, fold_tol) for fold in folds
        )
        if not any(share.any() for _, _, share, _ in found):
            raise ValueError(f"cv={self.cv!r} leaves out no row of positive weight: there is nothing to choose by")
        *parts, scores = zip(*found)
        losses, places, share = (np.concatenate(part, axis=-1) for part in parts)
        times = np.bincount(places)
        means, share_of = np.zeros((*losses.shape[:2], len(times))), np.zeros(len(times))
        np.add.at(means, np.s_[:, :, places], losses)
        share_of[places] = share
        tested = times > 0
        score = None if scorer is None else np.mean(scores, axis=0)
        if score is not None and np.isnan(score).any():
            raise ValueError(f"scoring={self.scoring!r} gives NaN in a fold: take fewer folds, or another scorer")
        return LeftOut(means[:, :, tested] / times[tested], share_of[tested], {}, f"{len(found)} folds", score)

    @staticmethod
    def _check_classes(classes: NDArray, present: NDArray[np.bool_]) -> None:
        """Refuse a fold whose training part lacks a class."""
        if not present.all():
            raise ValueError(
                f"class {classes[~present][0]!s} has no row in the training part of a fold: use fewer folds, or leave "
                "such classes out"
            )


def _closed_form(path: TargetPath) -> Path:
    """The closed form of a path's rows, with the prior of the model."""
    F = path.objective
    F = replace(F, family=path.prepared, target=None, start=F.labels)
    found = climb(F, Safe(), Stop(), 0)
    found.stop_reason = found.joint_model = "closed_form"
    return found


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
