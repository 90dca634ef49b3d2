"""What rows left out say of candidates: optima of several targets and weights, the closed form, class frequencies."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import Conditional, Iterate
from rcpkg.calibration.constants import MOST_BEHIND, MOST_BLOCKS, MOST_SCORES_LEFT_OUT, SAFE_TOL, WORTH_WARNING
from rcpkg.calibration.curvature import MinimalForm, Woodbury
from rcpkg.calibration.logistic import posteriors
from rcpkg.calibration.objective import Objective, log_posterior_of, log_posterior_of_new
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Path, Stop
from rcpkg.calibration.target_path import NotConverged, TargetPath, fall_of_scores, filled_rows
from rcpkg.checks import warn
from rcpkg.choice import FOLDS
from rcpkg.families import ClosedFormClassifier, Family, Unsupported, one_hot
from rcpkg.families.portions import rows_at
from rcpkg.rows import Block, Blocks, Rows

FREQUENCIES, CLOSED_FORM = "frequencies", "closed_form"


class Candidate(NamedTuple):
    """The number of a target and its weight; or `FREQUENCIES` or `CLOSED_FORM`, which have none."""

    target: int | str
    weight: float = np.nan


class Validation(NamedTuple):
    """What rows left out say of candidates.

    - ``losses``: errors and log-losses, shape (n_candidates, 2, n), of n rows, or means over n blocks of these,
    - ``share``: what each of the n counts, shape (n,), or None where all count alike,
    - ``evidence``: the log evidence of each candidate, NaN unless leave-one-out knows it,
    - ``scores``: what a scorer gives each candidate on each fold, if there is one,
    - ``n_folds``: the number of folds, 0 for leave-one-out."""

    losses: Array
    share: Array | None
    evidence: Array
    scores: Array | None = None
    n_folds: int = 0

    def extended(self, further: "Validation") -> "Validation":
        """The same with further candidates after these."""
        names = ["losses", "evidence"] + ["scores"] * (self.scores is not None)
        return self._replace(**{name: np.concatenate([getattr(self, name), getattr(further, name)]) for name in names})


class Fold(NamedTuple):
    """One division of the rows.

    - ``paths``: one a target, of the rows outside the fold,
    - ``held``: the rows in it,
    - ``places``: their numbers, or with ``in_mean`` those of the blocks over which losses are averaged,
    - ``share``: what each of these counts,
    - ``mean``: the mean over the masked copies of a row."""

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
        return self.family.log_joint(self.family.encode_new(X), self.parameters)


def constant_posterior(frequencies: Array, X: Any) -> Array:
    """log p(y) for each row."""
    return np.tile(np.log(frequencies), (X.shape[0], 1))


def judged(log_posterior: Callable[[Any], Array], in_mean: bool, block: Block) -> Array:
    """Errors and log-losses, shape (2, n), of the rows of a block, or their means, (2, 1)."""
    losses = row_losses(log_posterior(block.X), block.y)[1:]
    return np.average(losses, axis=1, weights=block.weight, keepdims=True) if in_mean else losses


def by_leave_one_out(paths: list[TargetPath], candidates: list[Candidate], reached: bool = True) -> Validation:
    """What approximate leave-one-out says of candidates, whose optima are ``reached`` or raise `NotConverged`."""
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
    return Validation(np.array(losses), F.weight, np.array(evidence))


def by_folds(
    folds: Iterable[Fold],
    scorer: Callable[..., float] | None,
    n_jobs: int | None,
    fold_tol: float,
    candidates: list[Candidate],
    reached: bool = False,
) -> Validation:
    """What folds say of candidates, in the mean over those that leave a row out, and over its copies. Raises
    `NotConverged` where optima that are to be ``reached`` are not."""
    each = partial(judged_in_fold, scorer, fold_tol, candidates, reached)
    of_folds = list(map(each, folds)) if isinstance(folds, list) else Parallel(n_jobs=n_jobs)(map(delayed(each), folds))
    if not any(share.any() for _, _, share, _ in of_folds):
        raise ValueError("cv leaves out no row of positive weight: there is nothing to choose by")
    *parts, scores = zip(*of_folds)
    losses, places, share = (np.concatenate(part, axis=-1) for part in parts)
    times = np.bincount(places)
    means, share_of = np.zeros((*losses.shape[:2], len(times))), np.zeros(len(times))
    np.add.at(means, np.s_[:, :, places], losses)
    share_of[places] = share
    tested, none = times > 0, np.full(len(candidates), np.nan)
    if scorer is not None and any(np.isnan(score) for of_fold in scores for score in of_fold):
        raise ValueError("scoring gives NaN in a fold: take fewer folds, or another scorer")
    scores = None if scorer is None else np.transpose(scores)
    return Validation(means[:, :, tested] / times[tested], share_of[tested], none, scores, len(of_folds))


def judged_in_fold(
    scorer: Callable[..., float] | None, fold_tol: float, candidates: list[Candidate], reached: bool, fold: Fold
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
            if reached and path.path.stop_reason == "max_iter":
                raise NotConverged(f"the optimum of target_weight={b:g} was not reached in {path.path.n_iter} steps")
            family, parameters = path.objective.family, path.parameters
        if k != FREQUENCIES:
            posterior = partial(log_posterior_of_new, family, parameters=parameters)
        losses.append(np.hstack(list(fold.held.each(partial(judged, posterior, fold.in_mean)))))
        if scorer is not None:  # which has no say about the class frequencies
            block = fold.held.only("a scorer")
            model = Fitted(family, parameters) if k != FREQUENCIES else None
            scores.append(float(scorer(model, block.X, model.classes_[block.y])) if model else -np.inf)
    return fold.mean(np.array(losses)), fold.places, fold.share, scores


def few_rows(path: TargetPath) -> str:
    """Why rows are too few for approximate leave-one-out, or nothing.

    Where parameters of the log odds outnumber rows, the optimum without a row is far more than one step away. Of a
    class with few rows the target decides what the model says without one; of a single row folds know no better."""
    F, form = path.objective, path.conditional.form
    of_class = np.maximum(F.class_frequencies * F.total_weight, np.bincount(F.y))  # a row that counts twice is two
    if 1 < of_class.min() < FOLDS:
        return f"class {path.prepared.classes_[of_class.argmin()]!s} has {of_class.min():g} rows"
    n, p = max(F.total_weight, len(F.y)), (form.r - 1) * form.width
    return f"{p} parameters of the log odds outnumber {n:g} rows" if p > n else ""


def closed_form_path(path: TargetPath) -> Path:
    """The closed form of a path's rows, with the prior of the model."""
    F = replace(path.objective, family=path.prepared, target=None, start=path.objective.labels)
    of_closed_form = climb(F, Safe(), Stop(), 0)
    of_closed_form.stop_reason = of_closed_form.joint_model = "closed_form"
    return of_closed_form


def closed_form_left_out(F: Objective, family: Family) -> Array:
    """log p(y | x) of the closed form of a ``family`` without each row, shape (n, r), −∞ where none exists without it;
    rows are lost in at most `MOST_BLOCKS` blocks."""
    log_P = np.empty((len(F.y), len(family.classes_)))
    for rows, of_rows in closed_form_on_blocks(F, family, MOST_BLOCKS):
        log_P[rows] = of_rows
    return log_P


def closed_form_on_blocks(
    F: Objective, family: Family, n_blocks: int, seen_first: bool = False
) -> Iterator[tuple[slice, Array]]:
    """Rows of some of ``n_blocks`` blocks, and log p(y | x) of the closed form without the block of each.

    Each ``n_blocks``-th row is of the same block. Where labels repeat in the order of the rows, so that one block has
    all rows of a class, there are one to three blocks more, whichever number spreads classes best: of 6, 7 and 8 one
    has no factor in common with a period below 70 that is a multiple of 5. With ``seen_first`` the log p(y | x) of the
    closed form of all rows comes before those of blocks that are lost in turn.
    """
    counting = F.rows.only("the closed form without each row").weights(len(family.classes_))
    if most_of_a_class(F.y, n_blocks) == 1:
        n_blocks = min(range(n_blocks + 1, n_blocks + 4), key=partial(most_of_a_class, F.y))
    n_blocks = min(len(F.y), n_blocks)
    at_once = family.log_posterior_without_blocks(F.X, counting, F.labels, n_blocks)
    if at_once is not None:
        yield slice(None), at_once
        return
    if seen_first:
        yield slice(None), log_posterior_of(family, F.X, F.closed_form or family.parameters(F.labels))
    for first in range(n_blocks):
        rows = slice(first, None, n_blocks)
        X = rows_at(F.X, rows)
        try:
            parameters = family.parameters(F.labels - family.statistics(X, counting[rows]))
        except InvalidStatistics:
            yield rows, np.full_like(counting[rows], -np.inf)
        else:
            yield rows, log_posterior_of(family, X, parameters)


def most_of_a_class(y: NDArray[np.intp], n_blocks: int) -> float:
    """The greatest part of the rows of a class, if they are several, that is in one of these blocks."""
    r = y.max() + 1
    counts = np.bincount(np.arange(len(y)) % n_blocks * r + y, minlength=n_blocks * r).reshape(n_blocks, r)
    of_class = counts.sum(axis=0)
    return float((counts.max(axis=0) / np.maximum(of_class, 1))[of_class > 1].max(initial=0.0))


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
    errors of the difference, or else that it is at most `MOST_BEHIND` behind its closed form, by one."""
    rivals = ("the class frequencies alone", of_frequencies, 2, 0.0, "take features that tell more, or more rows")
    closed = ("its closed form", of_closed_form, 1, MOST_BEHIND, "the closed form may be as good")
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
    blocks after another for as long as it does better by `WORTH_WARNING` on all rows, those of other blocks seen.
    ``given`` are the validated rows, of which gaps are filled for that.
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
        y = point.objective.data.y
        p, n = (point.objective.r - 1) * point.objective.width, len(y)
        if p > n:
            warn(
                f"rows left out would tell little here, as {p} parameters of the log odds outnumber {n} rows: take "
                "RiskCalibrationCV, which chooses the weight of the target by folds, or a model of fewer parameters"
            )
            return
        losses = losses_left_out(point, target)
    except (Unsupported, InvalidStatistics, NotConverged, np.linalg.LinAlgError):
        return
    share, columns = shares(F.weight, n), np.arange(n)
    loss, closed, of_closed_form = share @ losses, -np.inf, np.empty(n)
    blocks = closed_form_on_blocks(F, prepared, FOLDS, seen_first=True)
    # where it is ahead no longer it is no rival: the losses of further blocks would hardly ever fall
    while loss - closed > WORTH_WARNING and (block := next(blocks, None)):
        rows, log_P = block
        of_closed_form[rows] = -log_P[columns[: len(log_P)], y[rows]]
        closed = share @ of_closed_form
    if loss - closed > WORTH_WARNING:
        warn(
            f"rows left out speak against calibration: log-loss {closed:.3f} of the closed form as it is, {loss:.3f} "
            "calibrated; take RiskCalibrationCV, which chooses among both and weights of the target, or a greater "
            "target_weight"
        )
    else:
        warn_of_rivals(losses, -np.log(F.class_frequencies)[y], None, F.weight)


def losses_left_out(point: Iterate, target: str | ClosedFormClassifier) -> Array:
    """The log-loss of each row where it is left out of an optimum with a target, and of the target, if that is one of
    the rows, shape (n,).

    One step of Newton's method leaves a row out, for at most `MOST_SCORES_LEFT_OUT` scores. Half of them are those of
    the rows of greatest losses, which have most of what losses rise by, and half an even sample of the others, which
    stands for all of these. With the target all rows lose b m̄/m times the mean of that, times the `share_kept`: along
    these coefficients a row moves b s̄ by b m̄/m times itself. That takes no target without a row, and is nearer to what
    these tell than two random draws (Hutchinson 1990) in 63 % of fits to small tables as QDA, and 69 to 80 % as LDA and
    naive Bayes.
    """
    F, data = point.objective, point.objective.data
    V, half = F.scored(point.z), max(MOST_SCORES_LEFT_OUT // data.free // 2, 1)
    index, losses = np.arange(len(data.y)), None
    if len(index) > 2 * half:
        losses = data.losses(V)
        index = np.argsort(-losses, kind="stable")
        index = np.concatenate([index[:half], index[half:][evenly_spaced(len(index) - half, half)]])
    features, y = F.form.rows.dense(index), data.y[index]
    scores, labels = V @ features, one_hot(y, data.r)[:, data.r - data.free :]
    weight = np.ones(len(index)) if data.weight is None else data.weight[index]
    P, before = posteriors(scores, y, data.r)
    losses = before.loss if losses is None else losses
    A, P = covariances_of_scores(point, features, index) / F.size, P.T
    scores -= fall_of_scores(A, P, (A @ (labels - P)[:, :, None])[:, :, 0], weight[:, None]).T
    risen = posteriors(scores, y, data.r)[1].loss - before.loss
    rise = np.zeros(len(losses))
    if len(index) < len(losses):
        rise += weight[half:] @ risen[half:] / weight[half:].sum()
    rise[index] = risen
    with_target = share_kept(F.form, target) * (F.size / F.total_weight - 1)
    return losses + rise + with_target * (shares(data.weight, len(losses)) @ rise)


def share_kept(form: MinimalForm, target: str | ClosedFormClassifier) -> float:
    """The share of a class's coefficients whose statistics a ``target`` of the rows keeps apart for the classes."""
    if not isinstance(target, str) or target == "grand":
        return 0.0
    if target == "pooled":
        return 1 - np.count_nonzero(form.map.totalled) / form.width
    if target == "nested" and hasattr(form.model, "n_states_"):  # of another family it is not known
        return (1 + (form.model.n_states_ - 1).sum()) / form.width
    return 1.0


def covariances_of_scores(point: Iterate, features: Array, index: NDArray[np.intp]) -> Array:
    """S_iᵀ H⁻¹ S_i for the free scores S_i of rows of these ``features``, (K, n), and numbers, shape (n, free, free);
    by the curvature that a search has used last."""
    F, curvature = point.objective, point.curvature
    n, free, K = len(index), F.data.free, F.width
    if isinstance(curvature, Woodbury):
        return curvature.covariances_of_scores(features, index)
    if len(curvature.factors) == 1:
        # scores are the last coordinates, whose part of L alone whitens them
        factor, scores = curvature.factors[0], np.zeros((free, K, free, n))
        scores[range(free), :, range(free)] = features
        last = factor._replace(lower=np.asfortranarray(factor.lower[F.of_scores, F.of_scores]))
        white = last.whiten(scores.reshape(free * K, -1), overwrite=True).reshape(-1, free, n).transpose(2, 0, 1)
        return white.mT @ white
    A = np.zeros((n, free, free))
    for c, factor in zip(range(free), curvature.factors):  # of each class alone
        A[:, c, c] = (factor.whiten(features) ** 2).sum(axis=0)
    return A


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n places, at even distances."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)
