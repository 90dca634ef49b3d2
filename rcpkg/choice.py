"""Choice of one model out of a grid by cross-validation, for classifiers whose whole grid is had in closed
form."""

from collections.abc import Iterator
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from rcpkg.base import (
    LOG_LOSS_ROUNDING,
    Array,
    GenerativeClassifier,
    InvalidStatistics,
    SquareableRows,
    least,
    log_posterior,
    mean_log_loss,
)
from rcpkg.checks import check_choice, check_cost, check_number, check_priors, check_weights


def log_class_prior(counts: Array, rule: str | ArrayLike = "laplace") -> Array:
    r"""Log class probabilities from class counts (..., r).

    "laplace": :math:`E[\Theta_h]=\frac{n_h+1}{n+r}`, the mean under a flat prior (thesis2007 after 4.15);
    "empirical": :math:`n_h/n`; "uniform"; or r given probabilities.
    """
    counts = np.asarray(counts, dtype=float)
    n_classes = counts.shape[-1]
    if not isinstance(rule, str):
        probabilities = np.broadcast_to(check_priors(rule, n_classes, "class_prior"), counts.shape)
    elif rule == "laplace":
        probabilities = (counts + 1) / (counts.sum(axis=-1, keepdims=True) + n_classes)
    elif rule == "empirical":
        probabilities = counts / counts.sum(axis=-1, keepdims=True)
    elif rule == "uniform":
        probabilities = np.full(counts.shape, 1 / n_classes)
    else:
        raise ValueError(f'class_prior must be "laplace", "empirical", "uniform" or probabilities; got {rule!r}')
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def log_class_prior_loo(
    y: Array, n_classes: int, rule: str | ArrayLike = "laplace", weights: Array | None = None
) -> Array:
    """`log_class_prior` without row i, for every i: shape (n, r); with ``weights``, without one of it at most."""
    lost = 1.0 if weights is None else np.minimum(weights, 1.0)[:, None]
    counts = np.bincount(y, weights, minlength=n_classes)
    return log_class_prior(np.maximum(counts - lost * np.eye(n_classes)[y], 0.0), rule)


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
    n_classes = scores.shape[-1]
    posterior = np.exp(log_posterior(scores.reshape(-1, n_classes), np.full(n_classes, -np.log(n_classes))))
    decision = np.argmin(posterior.reshape(scores.shape) @ cost.T, axis=-1)
    return np.where(np.isneginf(own_scores(scores, y)), cost.max(axis=0)[y], cost[decision, y])


def mean_loss(scores: Array, y: Array, cost: Array | None = None) -> Array:
    """Mean of the `decision_losses`."""
    return decision_losses(scores, y, cost).mean(axis=-1)


def log_losses(scores: Array, y: Array) -> Array:
    """-log p(y | x) from scores log p(x, y) of shape (..., n, r), for each row; infinite where the own class has no
    density."""
    own = own_scores(scores, y)
    without = np.isneginf(own)
    return np.where(without, np.inf, logsumexp(scores - np.where(without, 0.0, own)[..., None], axis=-1))


class MomentClassifier(SquareableRows, GenerativeClassifier):
    """A generative classifier of the classes' counts, means and scatter matrices, which take weights."""

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Array, NDArray[np.intp], Array | None, NDArray[np.bool_]]:
        """Validated X, y as indices into ``classes_``, which is set, the weights, None where all are one, and which
        of the caller's rows these are: rows of weight zero are left out, as if they were not there."""
        X, y = self.check_X_y(X, y)
        kept = np.ones(len(X), dtype=bool)
        if sample_weight is None:
            return X, y, None, kept
        weights = check_weights(sample_weight, len(X))
        kept = weights > 0
        if not kept.all():
            self.classes_, y = np.unique(self.classes_[y[kept]], return_inverse=True)
            X, weights = X[kept], weights[kept]
            if len(self.classes_) < 2:
                raise ValueError(
                    "sample_weight is positive for one class at most; a classifier needs at least 2 classes"
                )
        return X, y, None if (weights == 1).all() else weights, kept


class GridClassifier(MomentClassifier):
    """A classifier that picks one of a grid of closed-form models by cross-validation.

    A subclass has the parameters ``cv``, ``scoring``, ``ties``, ``cost``, ``class_prior``, ``random_state`` and
    implements ``_grid(X, y, X_new, weights)``, the log densities of new rows, grid axes first and then (n_new, r), and
    ``_grid_loo(X, y, weights)``, those of each row with that row left out; -inf where a class has no density.
    """

    def _grid(self, X: Array, y: Array, X_new: Array, weights: Array | None = None) -> Array:
        raise NotImplementedError

    def _grid_loo(self, X: Array, y: Array, weights: Array | None = None) -> Array:
        raise NotImplementedError

    def _loo_errors(self, X: Array, y: Array, weights: Array | None) -> Array:
        """Whether each row is classified wrongly by every model fitted without it, shape (..., n)."""
        prior = log_class_prior_loo(y, len(self.classes_), self.class_prior, weights)
        return wrong_predictions(self._grid_loo(X, y, weights) + prior, y)

    def _folds(self, X: Array, y: Array, kept: Array) -> Iterator[tuple[Array, Array]]:
        """Training and test rows of each fold; a list of folds counts the caller's rows, of which ``kept`` are here."""
        if isinstance(self.cv, str):
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        if isinstance(self.cv, Integral):
            check_number("cv", self.cv, 2, integer=True)
            if self.cv > (most := np.bincount(y).max()):
                raise ValueError(f"cv={self.cv} folds need a class of as many rows; the largest class has {most}")
        listed = not isinstance(self.cv, Integral) and not hasattr(self.cv, "split")
        position = np.cumsum(kept) - 1
        for fold in check_cv(self.cv, y, classifier=True).split(X, y):
            train, test = (position[part[kept[part]]] for part in map(np.asarray, fold)) if listed else fold
            if len(train) and len(test):
                yield train, test

    def _held_out(self, X: Array, y: Array, weights: Array | None, kept: Array) -> Iterator[tuple[Array, Array]]:
        """Held-out rows, and their scores log p(x, y) by every model fitted without them, shape (..., rows, r)."""
        n_classes = len(self.classes_)
        if isinstance(self.cv, str) and self.cv == "loo":
            prior = log_class_prior_loo(y, n_classes, self.class_prior, weights)
            yield np.arange(len(y)), self._grid_loo(X, y, weights) + prior
            return
        for train, test in self._folds(X, y, kept):
            w = None if weights is None else weights[train]
            prior = log_class_prior(np.bincount(y[train], w, minlength=n_classes), self.class_prior)
            yield test, self._grid(X[train], y[train], X[test], w) + prior

    def _cross_validate(self, X: Array, y: Array, weights: Array | None, kept: Array) -> None:
        """Set ``cv_errors_`` and, where it is of use, ``cv_log_loss_``, of every model of the grid."""
        cost = check_cost(self.cost, len(self.classes_))
        self.cv_log_loss_ = None
        if self.scoring == "error" and self.ties == "random" and cost is None and self.cv == "loo":
            self.cv_errors_ = np.average(self._loo_errors(X, y, weights), axis=-1, weights=weights)
            return
        rows, decisions, losses = [], [], []
        for test, scores in self._held_out(X, y, weights, kept):
            rows.append(test)
            decisions.append(decision_losses(scores, y[test], cost))
            losses.append(log_losses(scores, y[test]))
        w = None if weights is None else weights[np.concatenate(rows)]
        self.cv_errors_ = np.average(np.concatenate(decisions, axis=-1), axis=-1, weights=w)
        self.cv_log_loss_ = mean_log_loss(np.concatenate(losses, axis=-1), w)

    def _select(self, X: Array, y: Array, weights: Array | None, kept: Array) -> tuple[int, ...]:
        """Position of the chosen model: the best by ``scoring`` among the models under which, fitted to all rows,
        every class has a density; of equals by ``ties``."""
        check_choice("scoring", self.scoring, ("error", "log_loss"))
        check_choice("ties", self.ties, ("log_loss", "random"))
        self.class_log_prior_ = log_class_prior(np.bincount(y, weights), self.class_prior)
        self._cross_validate(X, y, weights, kept)
        best = np.isfinite(self._grid(X, y, X[:1], weights)).all(axis=(-2, -1))
        if not best.any():
            raise InvalidStatistics(
                "no model of the grid gives every class a density: too few rows, or features constant within classes"
            )
        if self.scoring == "error":
            best = least(self.cv_errors_, best, 1e-12 * (1.0 if self.cost is None else np.max(self.cost)))
        if self.scoring == "log_loss" or self.ties == "log_loss":
            best = least(self.cv_log_loss_, best, LOG_LOSS_ROUNDING)
        if self.scoring == "log_loss" and not np.isfinite(self.cv_log_loss_[best]).any():
            raise InvalidStatistics(
                "every model leaves some held-out row's class without a density, so its log-loss is infinite: "
                'scoring="error" still chooses'
            )
        places = np.argwhere(best)
        return tuple(places[check_random_state(self.random_state).randint(len(places)) if self.ties == "random" else 0])
