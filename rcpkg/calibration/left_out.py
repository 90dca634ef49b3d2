"""What rows left out say of candidates: optima of several targets and weights, the closed form, class frequencies."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, log_posterior
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import Conditional, Iterate
from rcpkg.calibration.constants import AHEAD, BLOCKS, DIFFERENCE, LOOKED_AT, PROBES, ROUGH, SAFE_TOL, WORSE
from rcpkg.calibration.curvature import Woodbury, WoodburyByDifferences
from rcpkg.calibration.objective import Objective, log_posterior_of, rows_at, target_parameters
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Path, Stop
from rcpkg.calibration.target_path import NotConverged, TargetPath, filled_rows, system_of_scores
from rcpkg.checks import warn
from rcpkg.choice import FOLDS
from rcpkg.families import ClosedFormClassifier, Family, Unsupported, one_hot
from rcpkg.linalg import IN_CACHE
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


def in_fold(fold: int, n_folds: int, seed: int, held: bool, block: Block) -> Block:
    """The rows of a block that are in a fold, or not; one in ``n_folds`` by chance, the same ones each time."""
    of_rows = np.random.default_rng([seed, block.n]).permutation(block.n) % n_folds
    return block.part(np.flatnonzero((of_rows == fold) == held))


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
            path.follow(b, SAFE_TOL, max(SAFE_TOL, fold_tol * size / (F.total_weight + size)))
            family, parameters = path.objective.family, path.parameters
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


def closed_form_left_out(F: Objective, family: Family) -> Array:
    """log p(y | x) of the closed form of a ``family`` without each row, shape (n, r), lost in at most `BLOCKS` blocks;
    −∞ where none exists without them."""
    log_P = np.empty((len(F.y), len(family.classes_)))
    for rows, of_rows in closed_form_on_blocks(F, family, BLOCKS):
        log_P[rows] = of_rows
    return log_P


def closed_form_on_blocks(F: Objective, family: Family, n_blocks: int) -> Iterator[tuple[slice, Array]]:
    """The rows of each of at most ``n_blocks`` blocks, and log p(y | x) of the closed form without them."""
    counting = F.rows.only("the closed form without each row").weights(len(family.classes_))
    n_blocks = min(len(F.y), n_blocks)
    at_once = family.log_posterior_without_blocks(F.X, counting, F.labels, n_blocks)
    for first in range(n_blocks):
        rows = slice(first, None, n_blocks)
        if at_once is not None:
            yield rows, at_once[rows]
            continue
        X = rows_at(F.X, rows)
        try:
            parameters = family.parameters(F.labels - family.statistics(X, counting[rows]))
        except InvalidStatistics:
            yield rows, np.full_like(counting[rows], -np.inf)
        else:
            yield rows, log_posterior_of(family, X, parameters)


def shares(weight: Array | None, n: int) -> Array:
    """The part of each of n rows in a mean by their weights, if any."""
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()


def mean_and_error(losses: Array, share: Array | None) -> tuple[Array, Array]:
    """Means of losses (…, n), and their standard errors."""
    share = shares(share, losses.shape[-1])
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
        if gain + behind > n_errors * error:
            continue
        loss, base = (mean_and_error(each, share)[0] for each in (losses, of_rival))
        if np.isfinite(base):
            warn(
                f"rows left out do not show that this model does better than {name}: log-loss {loss:.3f} with it, "
                f"{base:.3f} without (standard error of the difference {error:.2g}); {remedy}"
            )
            return


def warn_of_optimum(path: Path, prepared: Family, target: str | ClosedFormClassifier, given: Rows) -> None:
    """Warn where rows left out, approximately, speak for the class frequencies or the closed form of the ``prepared``
    model against the optimum with a target that a ``path`` has led to, and where parameters outnumber rows, of which
    they then say too little.

    What the optimum and its ``target`` gain by a row that they have seen is taken from some rows, which one step of
    Newton's method leaves out with the curvature that the search has used last; the closed form loses one of `FOLDS`
    blocks after another for as long as it does better by `AHEAD` on all rows, those of other blocks seen. ``given``
    are the validated rows, of which gaps are filled for that.
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
            if point.parameters is None:
                raise NotConverged("rounding leaves the model none in these coordinates")
        p, n = (point.objective.r - 1) * point.objective.width, len(F.y)
        if p > n:
            warn(
                f"rows left out would tell little here, as {p} parameters of the log odds outnumber {n} rows: take "
                "RiskCalibrationCV, which chooses the weight of the target by folds, or a model of fewer parameters"
            )
            return
        seen = point.objective.data.losses(point.objective.scored(point.z))
        losses = seen + optimism(point, prepared, target, seen)
    except (Unsupported, InvalidStatistics, NotConverged, np.linalg.LinAlgError):
        return
    share = shares(F.weight, n)
    loss, blocks = share @ losses, closed_form_on_blocks(F, prepared, FOLDS)
    log_P = log_posterior_of(prepared, F.X, F.closed_form or prepared.parameters(F.labels))
    of_closed_form = -log_P[np.arange(n), F.y]
    closed = share @ of_closed_form
    # where it is ahead no longer it is no rival: the losses of further blocks would hardly ever fall
    while loss - closed > AHEAD and (block := next(blocks, None)):
        rows, log_P = block
        of_closed_form[rows] = -log_P[np.arange(len(log_P)), F.y[rows]]
        closed = share @ of_closed_form
    if loss - closed > AHEAD:
        warn(
            f"rows left out speak against calibration: log-loss {closed:.3f} of the closed form as it is, {loss:.3f} "
            "calibrated; take RiskCalibrationCV, which chooses among both and weights of the target, or a greater "
            "target_weight"
        )
    else:
        warn_of_rivals(losses, -np.log(F.class_frequencies)[F.y], None, F.weight)


def optimism(point: Iterate, prepared: Family, target: str | ClosedFormClassifier, losses: Array) -> Array:
    """What the log-loss of each row rises by where it is left out of an optimum with a target, and of the target, if
    that is one which a ``prepared`` family makes of its rows, shape (n,).

    `LOOKED_AT` scores of rows are looked at: half those of the rows of greatest ``losses``, which have most of the
    rise, and half those of some of the others, which stand for all of them. What rows lose with the target is
    Σ_i ⟨g_i, ∂_i(s̄ − m̄ μ)⟩ = E ⟨g_ε, ∂_ε(s̄ − m̄ μ)⟩ for the sums g_ε = Σ_i ε_i g_i and derivatives along Σ_i ε_i
    s(x_i, y_i) with signs ε_i by chance: a mean of `PROBES` draws (Hutchinson 1990), which all rows rise by alike. It
    is about b m̄/m of the rest, and is left out up to `ROUGH`.
    """
    F, r = point.objective, point.objective.r
    half, order = max(LOOKED_AT // F.data.free // 2, 1), np.argsort(-losses, kind="stable")
    index = np.concatenate([order[:half], order[half:][evenly(len(order) - half, half)]])
    times = np.ones(len(index))  # that a row stands for
    times[half:] = (len(order) - half) / max(len(index) - half, 1)
    features, y, equal = F.form.rows.dense(index), F.data.y[index], np.full(r, -np.log(r))
    before = log_posterior((F.data.coefficients(F.scored(point.z)) @ features).T, equal)
    A = covariances_of_scores(point, features, index) / F.size
    P, weight = np.exp(before), np.ones(len(index)) if F.data.weight is None else F.data.weight[index]
    mean, rows = (A @ P[:, :, None])[:, :, 0], np.arange(len(index))
    inverse = np.linalg.inv(system_of_scores(A, P, weight[:, None])) * weight[:, None, None]
    after = log_posterior(before - (inverse @ (A[rows, y] - mean)[:, :, None])[:, :, 0], equal)
    risen = (before - after)[rows, y]
    if isinstance(target, str) and F.size > (1 + ROUGH) * F.total_weight:
        by_score = ((one_hot(y, r) - np.exp(after))[:, None] @ inverse)[:, 0]
        signs = signs_by_chance(PROBES, len(index))
        pulls, curvature = pulls_along(point, prepared, target, index, signs), point.curvature
        by_scores = isinstance(curvature, WoodburyByDifferences)
        pulled = curvature.solve_for_scores(pulls) if by_scores else curvature.solve(pulls)[F.of_scores]
        falls = pulled.T.reshape(PROBES, F.data.free, -1) @ features / F.size  # of the scores, (PROBES, free, n)
        of_target = (falls * by_score[:, r - F.data.free :].T * (signs * times)[:, None]).sum() / PROBES
        risen = risen + max(of_target, 0.0) / (times @ weight)
    of_all = np.full(F.rows, np.average(risen[half:], weights=weight[half:]) if len(index) > half else 0.0)
    of_all[index] = risen
    return of_all


@lru_cache(maxsize=8)
def signs_by_chance(n_draws: int, n: int) -> Array:
    """Signs, (``n_draws``, n), the same ones each time."""
    return 2.0 * np.random.default_rng(0).integers(0, 2, size=(n_draws, n)) - 1


def covariances_of_scores(point: Iterate, features: Array, index: NDArray[np.intp]) -> Array:
    """S_iᵀ H⁻¹ S_i for the scores S_i of rows of these ``features``, (K, n), and numbers, but for what classes have in
    common, shape (n, r, r); by the curvature that a search has used last."""
    F, curvature = point.objective, point.curvature
    n, r, free, K = len(index), F.r, F.data.free, F.width
    A = np.zeros((n, r, r))
    of_scores = A[:, r - free :, r - free :]
    if isinstance(curvature, Woodbury):
        of_scores[:] = curvature.covariances_of_scores(features, index)
    elif not curvature.ends:
        # scores are the last coordinates, whose part of L alone whitens them, and those of a class begin with zeros,
        # which stay: a few classes at a time spare half of the work where it is large
        factor, first = curvature.factors[0], F.of_scores.start
        white, step = np.zeros((free * K, free, n)), -(-free // 4) if n * (free * K) ** 2 > IN_CACHE else free
        for c in range(0, free, step):
            classes = range(min(step, free - c))
            scores = np.zeros((free - c, K, len(classes), n))
            scores[classes, :, classes] = features
            last = factor._replace(lower=np.asfortranarray(factor.lower[first + c * K :, first + c * K :]))
            found = last.whiten(scores.reshape((free - c) * K, -1), overwrite=True)
            white[c * K :, c : c + step] = found.reshape(-1, len(classes), n)
        white = white.transpose(2, 1, 0)
        of_scores[:] = white @ white.mT
    else:  # of each class alone
        for c, factor in zip(range(free), curvature.factors):
            of_scores[:, c, c] = (factor.whiten(features) ** 2).sum(axis=0)
    return A


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n places, evenly."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def pulls_along(point: Iterate, prepared: Family, target: str, index: NDArray[np.intp], signs: Array) -> Array:
    """b ∂(s̄ − m̄ μ) in coordinates along Σ_i ε_i s(x_i, y_i) of some rows, a column for each row of ``signs`` ε, which
    leave no count below zero."""
    F, source = point.objective, point.objective.source
    pulls, X = np.zeros((len(signs), F.form.size)), source.X
    counting = source.rows.only("a target without a row").weights(len(prepared.classes_))
    if len(index) < len(counting):
        X, counting = rows_at(X, index), counting[index]
    else:  # all rows, which may stay where they are
        signs = signs[:, np.argsort(index)]
    for pull, sign in zip(pulls, signs):
        further = prepared.statistics(X, counting * sign[:, None])
        parameters, size = target_parameters(prepared, source.labels - DIFFERENCE * further, target)
        pull[:] = F.joint.statistics - size * F.form.sums(prepared.mean_parameters(parameters))
        if size != source.target.size:
            pull -= (source.target.size - size) * F.form.mean(point.parameters)
    return source.target.weight / DIFFERENCE * (F.form.differences(pulls) if F.dense else pulls).T
