"""Choice of one model out of a grid by its losses on rows that are left out of the fit."""

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rcpkg.base import InvalidStatistics, log_posterior
from rcpkg.checks import check_number, check_priors, refusal
from rcpkg.linalg import LOG_ROUNDING, Array
from rcpkg.linalg import ROUNDING as ERROR_ROUNDING

#: Folds where nobody says how many: for a number of components, in the place of leave-one-out, and blocks that a closed
#: form loses after a calibration. For the number of components of 15 tables ten take 1.9 times as long and choose the
#: same, three take .6 of the time and choose another for one of them.
FOLDS = 5


class Choice(NamedTuple):
    """The place of the chosen model in the grid, and the mean errors and log-losses of all models."""

    place: tuple[int, ...]
    errors: Array
    log_loss: Array | None


def choose(
    errors: Array,
    log_losses: Array | None = None,
    *,
    weights: Array | None = None,
    among: NDArray[np.bool_] | None = None,
    scoring: str = "error",
) -> Choice:
    """The model of a grid that does best on rows left out, or on folds.

    That of the least mean error, or with ``scoring="log_loss"`` the least mean log-loss; of equally good ones that of
    least log-loss, and then the first.

    The ``errors`` (or costs) and ``log_losses``, -log p(y | x), are those of each model of the grid (...) on each of n
    rows, or folds, with ``weights`` (n,); models without probabilities have no log-losses. Only models ``among`` those
    of a boolean array (...) are chosen. Raises `InvalidStatistics` if all log-losses that are asked for are infinite.

    >>> errors, log_losses = np.array([[0, 1], [0, 1]]), np.array([[0.1, 0.9], [0.1, 0.7]])
    >>> choose(errors, log_losses).place, choose(errors, log_losses, scoring="log_loss").log_loss.round(2)
    ((1,), array([0.5, 0.4]))
    """
    error, best = np.average(errors, axis=-1, weights=weights), among
    log_loss = None if log_losses is None else mean_log_loss(log_losses, weights)
    if among is None:
        best = np.ones(error.shape, dtype=bool)
    if scoring == "error":
        best = least(error, best, ERROR_ROUNDING * errors.max())
    elif not np.isfinite(log_loss[best]).any():
        raise InvalidStatistics(
            "under every model the class of some left-out row has probability zero, so its log-loss is infinite: "
            'smooth the probabilities, try other models, or take scoring="error"'
        )
    if log_loss is not None:
        best = least(log_loss, best, LOG_ROUNDING)
    return Choice(tuple(int(i) for i in np.argwhere(best)[0]), error, log_loss)


def least(values: Array, among: NDArray[np.bool_], rounding: float) -> NDArray[np.bool_]:
    """Which models of ``among`` have the least of ``values``, except for ``rounding``."""
    return among & (values <= np.where(among, values, np.inf).min() + rounding)


def mean_log_loss(losses: Array, weights: Array | None = None) -> Array:
    """Mean of log-losses (..., n) over the rows whose class has a density under some model; the others, such as a
    class's only row when it is left out, say nothing of the choice. Infinite where there is no such row."""
    comparable = np.isfinite(losses).any(axis=tuple(range(losses.ndim - 1)))
    if not comparable.any():
        return np.full(losses.shape[:-1], np.inf)
    return np.average(losses[..., comparable], axis=-1, weights=None if weights is None else weights[comparable])


def refuse_groups(groups: ArrayLike | None) -> None:
    """Leave-one-out keeps no groups of rows together."""
    if groups is not None:
        raise ValueError('groups need a splitter that keeps them together, such as cv=GroupKFold(5); got cv="loo"')


def folds(
    cv: Any, X: Array, y: NDArray, present: NDArray[np.bool_], groups: ArrayLike | None = None
) -> Iterator[tuple[NDArray, NDArray]]:
    """Training and test rows of the folds ``cv``: a number of stratified ones, a splitter, which may keep ``groups`` of
    rows together, or a list of folds, which numbers the caller's rows; those ``present`` are X and y."""
    from sklearn.model_selection import check_cv

    if isinstance(cv, str):
        raise refusal("cv", 'be "loo", a number of folds or a splitter', cv)
    if isinstance(cv, Integral):
        check_number("cv", cv, 2, integer=True)
        if cv > (most := np.bincount(y).max()):
            raise ValueError(f"cv={cv} folds need a class of as many rows; the largest class has {most}")
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != present.shape:
            raise ValueError(f"groups must hold {len(present)} labels, one a row; got shape {groups.shape}")
        groups = groups[present]
    listed = not isinstance(cv, Integral) and not hasattr(cv, "split")
    if listed and isinstance(cv, Iterable):
        cv = list(cv)
        for fold in cv:
            if not hasattr(fold, "__len__") or len(fold) != 2:
                need = "hold a pair for each fold, (training rows, test rows) or (~mask, mask)"
                raise ValueError(f"cv must {need}; got one {type(fold).__name__}")
    position = np.cumsum(present) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # whose rows are then in some of the folds
        divided = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    for fold in divided:
        parts = (_places(part, len(present)) for part in fold) if listed else fold
        train, test = (position[part[present[part]]] for part in parts) if listed else parts
        if (twice := np.intersect1d(train, test)).size:
            raise ValueError(
                f"cv has row {twice[0]} in both parts of a fold: rows that a model has seen do not judge it; leave it "
                "out of the first"
            )
        if len(train) and len(test):
            yield train, test


def _places(rows: ArrayLike, n: int) -> NDArray:
    """Numbers of rows, of n, of which a mask may tell."""
    rows = np.asarray(rows) if np.size(rows) else np.empty(0, dtype=np.intp)
    places = np.flatnonzero(rows) if rows.dtype == bool else rows
    if places.ndim != 1 or places.dtype.kind not in "iu" or not ((places >= 0) & (places < n)).all():
        raise refusal("cv", f"number rows from 0 to {n - 1} in each of its folds, or be masks of {n} rows", rows)
    return places


def log_class_prior(counts: Array, rule: str | ArrayLike = "laplace", estimator: Any = None) -> Array:
    r"""Log class probabilities from class counts (..., r).

    "laplace": :math:`E[\Theta_h]=\frac{n_h+1}{n+r}`, the mean under a flat prior (thesis2007 after 4.15), which is
    ``class_prior_strength=r`` of the closed-form models; "empirical": :math:`n_h/n`, theirs by default; "uniform"; or
    r given probabilities, their ``priors``, whose labels, if they have some, are the ``classes_`` of the ``estimator``.
    """
    counts = np.asarray(counts, dtype=float)
    n_classes = counts.shape[-1]
    if rule is not None and not isinstance(rule, str):
        probabilities = np.broadcast_to(check_priors(rule, n_classes, "class_prior", estimator), counts.shape)
    elif rule == "laplace":
        probabilities = (counts + 1) / (counts.sum(axis=-1, keepdims=True) + n_classes)
    elif rule == "empirical":
        probabilities = counts / counts.sum(axis=-1, keepdims=True)
    elif rule == "uniform":
        probabilities = np.full(counts.shape, 1 / n_classes)
    else:
        raise refusal("class_prior", 'be "laplace", "empirical", "uniform" or probabilities', rule)
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def log_class_prior_loo(
    y: Array,
    n_classes: int,
    rule: str | ArrayLike = "laplace",
    weights: Array | None = None,
    rows: Array | None = None,
    estimator: Any = None,
) -> Array:
    """`log_class_prior` without row i, for every i or those of ``rows``: shape (n, r); with ``weights``, without one of
    it at most."""
    rows = np.arange(len(y)) if rows is None else rows
    share = 1.0 if weights is None else np.minimum(weights[rows], 1.0)[:, None]
    counts = np.bincount(y, weights, minlength=n_classes)
    return log_class_prior(np.maximum(counts - share * np.eye(n_classes)[y[rows]], 0.0), rule, estimator)


def own_scores(scores: Array, y: Array) -> Array:
    """The entries of scores (..., n, r) at the own classes y (n,)."""
    return np.take_along_axis(scores, np.broadcast_to(y[:, None], (*scores.shape[:-1], 1)), axis=-1)[..., 0]


def wrong_predictions(scores: Array, y: Array) -> Array:
    """Whether the largest of the scores (..., n, r) is not the own class's; an own class without a density
    (-inf) is an error, whatever the others."""
    return (np.argmax(scores, axis=-1) != y) | np.isneginf(own_scores(scores, y))


def decision_losses(scores: Array, y: Array, cost: Array | None = None) -> Array:
    """Error, or cost, of deciding by scores log p(x, y) of shape (..., n, r), for each row; a row whose own class
    has no density costs the most that a decision can."""
    if cost is None:
        return wrong_predictions(scores, y).astype(float)
    decision = np.argmin(np.exp(log_posterior(scores, 0.0)) @ cost.T, axis=-1)
    return np.where(np.isneginf(own_scores(scores, y)), cost.max(axis=0)[y], cost[decision, y])


def log_losses(scores: Array, y: Array) -> Array:
    """-log p(y | x) from scores log p(x, y) of shape (..., n, r), for each row; infinite where the own class has no
    density."""
    without = np.isneginf(own_scores(scores, y))
    return np.where(without, np.inf, -own_scores(log_posterior(scores, 0.0), y))
