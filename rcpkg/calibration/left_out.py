"""What rows left out say of candidates: optima of several targets and weights, the closed form, class frequencies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, log_posterior
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import Conditional, Iterate
from rcpkg.calibration.objective import Objective, log_posterior_of, rows_at
from rcpkg.calibration.rules import row_losses
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Path, Stop
from rcpkg.calibration.target_path import NotConverged, TargetPath, fall_of_scores
from rcpkg.capabilities import MARGINALS
from rcpkg.checks import warn
from rcpkg.families import Family, Unsupported, can
from rcpkg.rows import Block, Blocks, Rows

FOLDS = 5
BLOCKS = 200  # of rows that the closed form loses in turn, where rows are more than that
# ends folds that take the place of leave-one-out, times the share of the target in all rows; half of FOLD_TOL then
# bounds what F lacks a row
FOLD_TOL = 1e-4
SAFE_TOL = 1e-8  # gain in nats a row at which safe steps end, and Newton's in folds
GAPPY_TOL = 1e-6  # the same of safe steps in folds of rows with gaps, of which each takes longer
LOOKED_AT = 32  # rows whose part in an optimum is looked at after a fit
CLOSED_BLOCKS = 10  # of rows that the closed form then loses in turn
WORTH = 0.01  # nats a row by which the closed form must then do better for a warning


class Candidate(NamedTuple):
    """The number of a target, and its weight."""

    target: int
    weight: float


class Judged(NamedTuple):
    """Errors and log-losses of candidates, of the closed form if it is one, and of the class frequencies, shape
    (n_candidates, 2, n), on n rows left out or in the means over n blocks of these; what these count; scores of all but
    the last on each fold, where a scorer gives them; log evidence of the candidates, and what their log-losses rise by
    where rows are left out, where these are known."""

    losses: Array
    share: Array | None
    scores: Array | None = None
    evidence: Array | None = None
    optimism: Array | None = None
    n_folds: int = 0

    def with_more(self, n: int, more: "Judged") -> "Judged":
        """The same with ``more`` candidates after the first ``n``."""

        k = len(more.losses) - (len(self.losses) - n)  # the others are the closed form and the frequencies, as before

        def joined(before: Array | None, after: Array | None) -> Array | None:
            return None if before is None else np.concatenate([before[:n], after[:k], before[n:]])

        names = "losses", "scores", "evidence", "optimism"
        return self._replace(**{name: joined(getattr(self, name), getattr(more, name)) for name in names})


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


def judged(log_posterior: Callable[[Any], Array], in_mean: bool, block: Block) -> Array:
    """Errors and log-losses, shape (2, n), of the rows of a block, or their means, (2, 1)."""
    losses = row_losses(log_posterior(block.X), block.y)[1:]
    return np.average(losses, axis=1, weights=block.weight, keepdims=True) if in_mean else losses


def frequencies(log_frequencies: Array, X: Array) -> Array:
    """log p(y) for each row."""
    return np.tile(log_frequencies, (X.shape[0], 1))


def by_leave_one_out(paths: list[TargetPath], closed_form: bool, candidates: list[Candidate]) -> Judged:
    """By approximate leave-one-out; raises `NotConverged`."""
    F, losses, evidence, optimism = paths[0].objective, [], [], []
    for k, b in candidates:
        seen = paths[k].follow(b).point.losses.log_loss
        log_P, log_evidence = paths[k].left_out()
        losses.append(row_losses(log_P, F.y)[1:])
        evidence.append(log_evidence)
        optimism.append(mean_and_error(losses[-1][1], F.weight)[0] - seen)
    if closed_form:
        losses.append(row_losses(closed_form_left_out(F, paths[0].prepared), F.y)[1:])
    losses.append(row_losses(np.tile(np.log(F.class_frequencies), (len(F.y), 1)), F.y)[1:])
    return Judged(np.array(losses), F.weight, None, np.array(evidence), np.array(optimism))


def by_folds(
    folds: Iterator[Fold],
    closed_form: bool,
    scorer: Callable[..., float] | None,
    n_jobs: int | None,
    fold_tol: float,
    candidates: list[Candidate],
) -> Judged:
    """In the mean over the folds that leave a row out, and over its copies."""
    task = delayed(judged_in_fold)
    found = Parallel(n_jobs=n_jobs)(task(fold, closed_form, scorer, fold_tol, candidates) for fold in folds)
    if not any(share.any() for _, _, share, _ in found):
        raise ValueError("cv leaves out no row of positive weight: there is nothing to choose by")
    *parts, scores = zip(*found)
    losses, places, share = (np.concatenate(part, axis=-1) for part in parts)
    times = np.bincount(places)
    means, share_of = np.zeros((*losses.shape[:2], len(times))), np.zeros(len(times))
    np.add.at(means, np.s_[:, :, places], losses)
    share_of[places] = share
    tested = times > 0
    scores = None if scorer is None else np.transpose(scores)
    if scores is not None and np.isnan(scores).any():
        raise ValueError("scoring gives NaN in a fold: take fewer folds, or another scorer")
    return Judged(means[:, :, tested] / times[tested], share_of[tested], scores, n_folds=len(found))


def judged_in_fold(
    fold: Fold,
    closed_form: bool,
    scorer: Callable[..., float] | None,
    fold_tol: float,
    candidates: list[Candidate],
) -> tuple[Array, NDArray[np.intp], Array, list[float]]:
    """Losses and scores on the rows of a fold, at the optima of the others, each from the last; their places, and what
    they count."""
    F, at = fold.paths[0].objective, []
    for k, b in candidates:
        path = fold.paths[k]
        size = b * path.objective.target.size
        tol = fold_tol * size / (F.total_weight + size)
        optimum = path.follow(b, SAFE_TOL, max(GAPPY_TOL if path.gaps else SAFE_TOL, tol))
        at.append((path.objective.family, optimum.point.parameters))
    if closed_form:
        prepared = fold.paths[0].prepared
        at.append((prepared, prepared.parameters(F.labels)))
    posteriors = [partial(log_posterior_of, family, parameters=parameters) for family, parameters in at]
    posteriors.append(partial(frequencies, np.log(F.class_frequencies)))
    tasks = [partial(judged, posterior, fold.in_mean) for posterior in posteriors]
    losses = np.array([np.hstack(list(fold.held.each(task))) for task in tasks])
    scores = []
    if scorer is not None:
        block = fold.held.only("a scorer")
        scores = [float(scorer(Fitted(*each), block.X, each[0].classes_[block.y])) for each in at]
    return fold.mean(losses), fold.places, fold.share, scores


def class_of_few_rows(F: Objective, classes: NDArray) -> str:
    """Which class has too few rows for approximate leave-one-out, which keeps what the target makes of it; of a single
    row folds know no better."""
    of_class = np.maximum(F.class_frequencies * F.total_weight, np.bincount(F.y))  # a row that counts twice is two
    few = 1 < of_class.min() < FOLDS
    return f"class {classes[of_class.argmin()]!s} has {of_class.min():g} rows" if few else ""


def filled_rows(family: Family, X: Array, statistics: Any) -> Array | None:
    """Validated rows with what is missing filled by what a closed form expects there, of categories the most probable;
    None where it expects nothing."""
    if not can(family, MARGINALS):
        return None
    parameters = family.parameters(statistics)
    P = np.exp(log_posterior_of(family, X, parameters))
    return _filled(family, X, family.expected_rows(X, P, parameters))


def _filled(family: Family, X: Array, expected: Any) -> Array:
    family, filled = getattr(family, "component", family), np.array(X)
    if isinstance(expected, dict):
        for part, columns, of_block in zip(family.families, family.columns_, expected.values()):
            filled[:, columns] = _filled(part, X[:, columns], of_block)
        return filled
    if isinstance(expected, list):
        expected = np.column_stack([s[p.argmax(axis=1)] for s, p in zip(family._states, expected)])
    elif hasattr(family, "families_"):  # of two states
        expected = np.rint(expected)
    return np.where(np.isnan(filled), expected, filled)


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


def warn_of_frequencies(losses: Array, of_frequencies: Array, share: Array | None) -> None:
    """Warn where rows left out do not show that a model does better than the class frequencies alone: where it does
    not by more than two standard errors of the difference."""
    gain, error = mean_and_error(of_frequencies - losses, share)
    loss, base = (mean_and_error(each, share)[0] for each in (losses, of_frequencies))
    if not gain > 2 * error:
        warn(
            f"rows left out do not show that this model does better than the class frequencies alone: log-loss "
            f"{loss:.3f} with it, {base:.3f} with these (standard error of the difference {error:.2g}); take features "
            "that tell more, more rows or fewer parameters"
        )


def warn_of_optimum(path: Path, prepared: Family, given: Rows) -> None:
    """Warn where rows left out, approximately, speak for the class frequencies or the closed form of the ``prepared``
    model against the optimum with a target that a ``path`` has led to.

    What the optimum gains by a row that it has seen is taken from `LOOKED_AT` of the rows, which one step of Newton's
    method leaves out with the curvature that the search has used last; the closed form loses `CLOSED_BLOCKS` blocks.
    ``given`` are the validated rows, of which gaps are filled for that.
    """
    F, at = path.objective, path.chosen
    try:
        if isinstance(F, Conditional):
            F = F.source
        else:
            block = given.only("leave-one-out")
            X = filled_rows(prepared, block.X, F.labels)
            F = replace(F, rows=Blocks([block._replace(X=F.family.encode(X))]), closed_form=None)
            at = Conditional(F).at_natural(at.natural)
        losses = row_losses(at.log_posterior(F.X), F.y)[2] + optimism(at)
    except (Unsupported, InvalidStatistics, NotConverged, np.linalg.LinAlgError):
        return
    warn_of_frequencies(losses, -np.log(F.class_frequencies)[F.y], F.weight)
    of_closed = row_losses(closed_form_left_out(F, prepared, CLOSED_BLOCKS), F.y)[2]
    (loss, _), (closed, _) = (mean_and_error(each, F.weight) for each in (losses, of_closed))
    gain, error = mean_and_error(losses - of_closed, F.weight)
    if gain > max(error, WORTH):
        warn(
            f"rows left out speak against calibration: log-loss {closed:.3f} of the closed form as it is, {loss:.3f} "
            "calibrated; take RiskCalibrationCV, which chooses among both and weights of the target, or a greater "
            "target_weight"
        )


def optimism(point: Iterate) -> float:
    """What the log-loss of a row rises by, in the mean, where it is left out of an optimum with a target."""
    F, z, r, K = point.objective, point.z, point.objective.r, point.objective.width
    index = np.unique(np.linspace(0, F.rows - 1, LOOKED_AT).astype(np.intp))
    features, y = F.form.rows.dense(index), F.data.y[index]
    before = log_posterior((F.scored(z) @ features).T, np.full(r, -np.log(r)))
    A = np.empty((len(index), r, r))
    for c in range(r):
        side = np.zeros((len(z), len(index)))
        side[c * K : (c + 1) * K] = features
        solved = point.curvature.solve(side)[: r * K].reshape(r, K, -1)
        A[:, :, c] = np.einsum("rkn,kn->nr", solved, features) / F.size
    P, weight = np.exp(before), np.ones(len(index)) if F.data.weight is None else F.data.weight[index]
    lost = A[range(len(index)), y] - np.einsum("nab,nb->na", A, P)
    after = log_posterior(before - fall_of_scores(A, P, lost, weight[:, None]), np.full(r, -np.log(r)))
    risen = (before - after)[range(len(index)), y]
    return float(np.average(risen, weights=weight))
