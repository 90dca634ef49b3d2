"""What rows left out say of candidates: optima of several targets and weights, the closed form, class frequencies."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, log_posterior
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import Conditional, Iterate
from rcpkg.calibration.constants import (
    AHEAD,
    BLOCKS,
    CLOSED_BLOCKS,
    FOLDS,
    GAPPY_TOL,
    LOOKED_AT,
    OF_TARGET,
    SAFE_TOL,
    WORSE,
)
from rcpkg.calibration.objective import Objective, log_posterior_of, rows_at, target_parameters
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Path, Stop
from rcpkg.calibration.target_path import NotConverged, TargetPath, fall_of_scores, filled_rows
from rcpkg.checks import warn
from rcpkg.families import ClosedFormClassifier, Family, Unsupported
from rcpkg.rows import Block, Blocks, Rows

FREQUENCIES, CLOSED_FORM = "frequencies", "closed_form"


class Candidate(NamedTuple):
    """The number of a target and its weight; or `FREQUENCIES` or `CLOSED_FORM`, which have none."""

    target: int | str
    weight: float = np.nan


class Judged(NamedTuple):
    """Errors and log-losses of candidates, shape (n_candidates, 2, n), on n rows left out or in the means over n blocks
    of these; what these count; the log evidence of the candidates, which leave-one-out knows; what a scorer gives them
    on each fold."""

    losses: Array
    share: Array | None
    evidence: Array
    scores: Array | None = None
    n_folds: int = 0

    def extended(self, further: "Judged") -> "Judged":
        """The same with further candidates after these."""
        names = ["losses", "evidence"] + ["scores"] * (self.scores is not None)
        return self._replace(**{name: np.concatenate([getattr(self, name), getattr(further, name)]) for name in names})


class Fold(NamedTuple):
    """The paths, one a target, of the rows outside a fold; those in it, the numbers of these, or of the blocks in the
    mean over which they are judged, and what each counts; the mean over the copies of a row."""

    paths: list[TargetPath]
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


def constant_posterior(frequencies: Array, X: Any) -> Array:
    """log p(y) for each row."""
    return np.tile(np.log(frequencies), (X.shape[0], 1))


def judged(log_posterior: Callable[[Any], Array], in_mean: bool, block: Block) -> Array:
    """Errors and log-losses, shape (2, n), of the rows of a block, or their means, (2, 1)."""
    losses = row_losses(log_posterior(block.X), block.y)[1:]
    return np.average(losses, axis=1, weights=block.weight, keepdims=True) if in_mean else losses


def by_leave_one_out(paths: list[TargetPath], candidates: list[Candidate]) -> Judged:
    """By approximate leave-one-out; raises `NotConverged`."""
    F, losses, evidence = paths[0].objective, [], []
    for k, b in candidates:
        log_evidence = np.nan
        if k == FREQUENCIES:
            log_P = constant_posterior(F.class_frequencies, F.y)
        elif k == CLOSED_FORM:
            log_P = closed_form_left_out(F, paths[0].prepared)
        else:
            paths[k].follow(b)
            log_P, log_evidence = paths[k].left_out()
        losses.append(row_losses(log_P, F.y)[1:])
        evidence.append(log_evidence)
    return Judged(np.array(losses), F.weight, np.array(evidence))


def by_folds(
    folds: Iterable[Fold],
    scorer: Callable[..., float] | None,
    n_jobs: int | None,
    fold_tol: float,
    candidates: list[Candidate],
) -> Judged:
    """In the mean over the folds that leave a row out, and over its copies."""
    task = delayed(judged_in_fold)
    found = Parallel(n_jobs=n_jobs)(task(fold, scorer, fold_tol, candidates) for fold in folds)
    if not any(share.any() for _, _, share, _ in found):
        raise ValueError("cv leaves out no row of positive weight: there is nothing to choose by")
    *parts, scores = zip(*found)
    losses, places, share = (np.concatenate(part, axis=-1) for part in parts)
    times = np.bincount(places)
    means, share_of = np.zeros((*losses.shape[:2], len(times))), np.zeros(len(times))
    np.add.at(means, np.s_[:, :, places], losses)
    share_of[places] = share
    tested, none = times > 0, np.full(len(candidates), np.nan)
    if scorer is not None and any(np.isnan(score) for of_fold in scores for score in of_fold):
        raise ValueError("scoring gives NaN in a fold: take fewer folds, or another scorer")
    scores = None if scorer is None else np.transpose(scores)
    return Judged(means[:, :, tested] / times[tested], share_of[tested], none, scores, len(found))


def judged_in_fold(
    fold: Fold, scorer: Callable[..., float] | None, fold_tol: float, candidates: list[Candidate]
) -> tuple[Array, NDArray[np.intp], Array, list[float]]:
    """Losses and scores on the rows of a fold, at the optima of the others, each from the last; their places, and what
    they count."""
    F, losses, scores = fold.paths[0].objective, [], []
    for k, b in candidates:
        if k == FREQUENCIES:
            posterior = partial(constant_posterior, F.class_frequencies)
        elif k == CLOSED_FORM:
            family = fold.paths[0].prepared
            parameters = family.parameters(F.labels)
        else:
            path = fold.paths[k]
            size = b * path.objective.target.size
            tol = fold_tol * size / (F.total_weight + size)
            point = path.follow(b, SAFE_TOL, max(GAPPY_TOL if path.gaps else SAFE_TOL, tol)).point
            family, parameters = path.objective.family, point.parameters
        if k != FREQUENCIES:
            posterior = partial(log_posterior_of, family, parameters=parameters)
        losses.append(np.hstack(list(fold.held.each(partial(judged, posterior, fold.in_mean)))))
        if scorer is not None:  # which has no say about the class frequencies
            block = fold.held.only("a scorer")
            model = Fitted(family, parameters) if k != FREQUENCIES else None
            scores.append(float(scorer(model, block.X, model.classes_[block.y])) if model else -np.inf)
    return fold.mean(np.array(losses)), fold.places, fold.share, scores


def few_rows(path: TargetPath) -> str:
    """What has too few rows for approximate leave-one-out: the log odds, if parameters outnumber rows, so that a row
    left out is far from one step away; a class, of which the target decides what the model says without a row. Of a
    single row folds know no better."""
    F, form = path.objective, path.conditional.form
    of_class = np.maximum(F.class_frequencies * F.total_weight, np.bincount(F.y))  # a row that counts twice is two
    if 1 < of_class.min() < FOLDS:
        return f"class {path.prepared.classes_[of_class.argmin()]!s} has {of_class.min():g} rows"
    n, p = max(F.total_weight, len(F.y)), (form.r - 1) * form.width
    return f"{p} parameters of the log odds outnumber {n:g} rows" if p > n else ""


def closed_form_path(path: TargetPath) -> Path:
    """The closed form of a path's rows, with the prior of the model."""
    F = replace(path.objective, family=path.prepared, target=None, start=path.objective.labels)
    found = climb(F, Safe(), Stop(), 0)
    found.stop_reason = found.joint_model = "closed_form"
    return found


def closed_form_left_out(F: Objective, family: Family, n_blocks: int = BLOCKS) -> Array:
    """log p(y | x) of the closed form of a ``family`` without each row, shape (n, r), lost in at most ``n_blocks``
    blocks; −∞ where none exists without them."""
    counting = F.rows.only("the closed form without each row").weights(len(family.classes_))
    log_P, n = np.full(counting.shape, -np.inf), len(F.y)
    for first in range(min(n, n_blocks)):
        rows = np.arange(first, n, n_blocks)
        X = rows_at(F.X, rows)
        try:
            parameters = family.parameters(F.labels - family.statistics(X, counting[rows]))
        except InvalidStatistics:
            continue
        log_P[rows] = log_posterior_of(family, X, parameters)
    return log_P


def mean_and_error(losses: Array, share: Array | None) -> tuple[Array, Array]:
    """Means of losses (…, n), and their standard errors."""
    share = np.full(losses.shape[-1], 1.0) if share is None else share
    share = share / share.sum()
    mean = losses @ share
    with np.errstate(invalid="ignore"):  # the closed form may have an infinite loss
        return mean, np.sqrt(((losses - mean[..., None]) ** 2) @ share**2)


def warn_of_rivals(losses: Array, of_frequencies: Array, of_closed_form: Array | None, share: Array | None) -> None:
    """Warn where rows left out do not show that a model does better than the class frequencies alone, by two standard
    errors of the difference, or else that it is at most `WORSE` behind its closed form, by one."""
    rivals = ("the class frequencies alone", of_frequencies, 2, 0.0, "take features that tell more, or more rows")
    closed = ("its closed form", of_closed_form, 1, WORSE, "the closed form may be as good")
    for name, of_rival, n_errors, behind, remedy in (rivals, closed):
        if of_rival is None:
            return
        gain, error = mean_and_error(of_rival - losses, share)
        loss, base = (mean_and_error(each, share)[0] for each in (losses, of_rival))
        if not gain + behind > n_errors * error and np.isfinite(base):
            warn(
                f"rows left out do not show that this model does better than {name}: log-loss {loss:.3f} with it, "
                f"{base:.3f} without (standard error of the difference {error:.2g}); {remedy}"
            )
            return


def warn_of_optimum(path: Path, prepared: Family, target: str | ClosedFormClassifier, given: Rows) -> None:
    """Warn where rows left out, approximately, speak for the class frequencies or the closed form of the ``prepared``
    model against the optimum with a target that a ``path`` has led to, and where parameters outnumber rows, of which
    they then say too little.

    What the optimum and its ``target`` gain by a row that they have seen is taken from `LOOKED_AT` of the rows, which
    one step of Newton's method leaves out with the curvature that the search has used last; the closed form loses
    `CLOSED_BLOCKS` blocks. ``given`` are the validated rows, of which gaps are filled for that.
    """
    F, point = path.objective, path.chosen
    try:
        if isinstance(F, Conditional):
            F = F.source
        else:
            block = given.only("leave-one-out")
            X = filled_rows(prepared, prepared.parameters(F.labels), block.X)
            F = replace(F, rows=Blocks([block._replace(X=F.family.encode(X))]), closed_form=None)
            point = Conditional(F).at_natural(point.natural)
        p, n = (point.objective.r - 1) * point.objective.width, len(F.y)
        if p > n:
            warn(
                f"rows left out would tell little here, as {p} parameters of the log odds outnumber {n} rows: take "
                "RiskCalibrationCV, which chooses the weight of the target by folds, or a model of fewer parameters"
            )
            return
        losses = row_losses(point.log_posterior(F.X), F.y)[2] + optimism(point, prepared, target)
    except (Unsupported, InvalidStatistics, NotConverged, np.linalg.LinAlgError):
        return
    of_closed = row_losses(closed_form_left_out(F, prepared, CLOSED_BLOCKS), F.y)[2]
    (loss, _), (closed, _) = (mean_and_error(each, F.weight) for each in (losses, of_closed))
    if loss - closed > AHEAD:
        warn(
            f"rows left out speak against calibration: log-loss {closed:.3f} of the closed form as it is, {loss:.3f} "
            "calibrated; take RiskCalibrationCV, which chooses among both and weights of the target, or a greater "
            "target_weight"
        )
    else:
        warn_of_rivals(losses, -np.log(F.class_frequencies)[F.y], None, F.weight)


def optimism(point: Iterate, prepared: Family, target: str | ClosedFormClassifier) -> Array:
    """What the log-loss of each row rises by where it is left out of an optimum with a target, and of the target, if
    that is one which a ``prepared`` family makes of its rows, shape (n,).

    `LOOKED_AT` of the rows stand for all. Of the target half of `OF_TARGET` are left out whose log-loss rises most
    without that, since few rows have most of the rise, and as many of the others, which rise by the mean of these.
    """
    F, z, r, K = point.objective, point.z, point.objective.r, point.objective.width
    index = evenly(F.rows, LOOKED_AT)
    features, y = F.form.rows.dense(index), F.data.y[index]
    before = log_posterior((F.data.coefficients(F.scored(z)) @ features).T, np.full(r, -np.log(r)))
    A, free = np.zeros((len(index), r, r)), F.data.free
    for c in range(free):  # of the classes whose scores are not zero
        side = np.zeros((len(z), len(index)))
        side[F.of_scores][c * K : (c + 1) * K] = features
        A[:, r - free :, c + r - free] = scores_solved(point, side, features)
    P, weight = np.exp(before), np.ones(len(index)) if F.data.weight is None else F.data.weight[index]
    lost = A[range(len(index)), y] - np.einsum("nab,nb->na", A, P)

    def rise(rows: Any) -> Array:
        fall = fall_of_scores(A[rows], P[rows], lost[rows], weight[rows, None])
        after = log_posterior(before[rows] - fall, np.full(r, -np.log(r)))
        return (before[rows] - after)[range(len(after)), y[rows]]

    risen = rise(slice(None))
    if isinstance(target, str):
        order, half = np.argsort(-risen, kind="stable"), OF_TARGET // 2
        others = order[half:][evenly(len(order) - half, half)] if len(order) > half else order[half:]
        looked = np.concatenate([order[:half], others])
        pulls = pulls_of_rows(point, prepared, target, index[looked])
        lost[looked, r - free :] += scores_solved(point, pulls, features[:, looked]) / weight[looked, None]
        further = rise(looked) - risen[looked]
        if len(others):
            risen[order[half:]] += np.average(further[half:], weights=weight[others])
        risen[looked] = rise(looked)
    of_all = np.full(F.rows, np.average(risen, weights=weight))
    of_all[index] = risen
    return of_all


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n places, evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def scores_solved(point: Iterate, side: Array, features: Array) -> Array:
    """f_iᵀ H⁻¹ of the i-th column of ``side`` in the coefficients of each score, for features f_i (K, n): (n, free)."""
    F = point.objective
    solved = point.curvature.solve(side)[F.of_scores].reshape(F.data.free, F.width, -1)
    return np.einsum("rkn,kn->nr", solved, features) / F.size


def pulls_of_rows(point: Iterate, prepared: Family, target: str, index: NDArray[np.intp]) -> Array:
    """b [s̄ − s̄_i − (m̄ − m̄_i) μ] in coordinates, a column a row: what each row does to the pull of the target, in
    which s̄_i and m̄_i do without it; zero where there is none without it."""
    F, source = point.objective, point.objective.source
    mean, pulls = F.form.mean(point.parameters), np.zeros((len(index), F.form.size))
    counting = source.rows.only("a target without a row").weights(len(prepared.classes_))
    for k, i in enumerate(index):
        row = prepared.statistics(rows_at(source.X, [i]), counting[[i]])
        try:
            parameters, size = target_parameters(prepared, source.labels - row, target)
        except InvalidStatistics:
            continue
        lost = source.target.statistics - size * prepared.mean_parameters(parameters)
        pulls[k] = F.form.sums(lost) - (source.target.size - size) * mean
    return source.target.weight * (F.form.differences(pulls) if F.dense else pulls).T
