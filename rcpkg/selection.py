"""Choice of one model out of a grid by cross-validation, for classifiers whose whole grid is had in closed
form."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, check_cost, check_priors, log_posterior


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


def log_class_prior_loo(y: Array, n_classes: int, rule: str | ArrayLike = "laplace") -> Array:
    """`log_class_prior` without row i, for every i: shape (n, r)."""
    return log_class_prior(np.bincount(y, minlength=n_classes) - np.eye(n_classes)[y], rule)


def own_scores(scores: Array, y: Array) -> Array:
    """The entries of scores (..., n, r) at the own classes y (n,)."""
    return np.take_along_axis(scores, np.broadcast_to(y[:, None], (*scores.shape[:-1], 1)), axis=-1)[..., 0]


def wrong_predictions(scores: Array, y: Array) -> Array:
    """Whether the largest of the scores (..., n, r) is not the own class's; an own class without a density
    (-inf) is an error, whatever the others."""
    return (np.argmax(scores, axis=-1) != y) | np.isneginf(own_scores(scores, y))


def mean_loss(scores: Array, y: Array, cost: Array | None = None) -> Array:
    """Error rate, or mean cost, of deciding by scores log p(x, y) of shape (..., n, r); a row whose own class
    has no density costs the most that a decision can."""
    if cost is None:
        return wrong_predictions(scores, y).mean(axis=-1)
    n_classes = scores.shape[-1]
    posterior = np.exp(log_posterior(scores.reshape(-1, n_classes), np.full(n_classes, -np.log(n_classes))))
    decision = np.argmin(posterior.reshape(scores.shape) @ cost.T, axis=-1)
    return np.where(np.isneginf(own_scores(scores, y)), cost.max(axis=0)[y], cost[decision, y]).mean(axis=-1)


class GridClassifier(GenerativeClassifier):
    """A classifier that picks one of a grid of closed-form models by cross-validation.

    A subclass has the parameters ``cv``, ``cost``, ``class_prior``, ``random_state`` and implements
    ``_grid(X, y, X_new)``, the log densities of new rows, grid axes first and then (n_new, r), and
    ``_grid_loo(X, y)``, those of each row with that row left out; -inf where a class has no density.
    """

    def _grid(self, X: Array, y: Array, X_new: Array) -> Array:
        raise NotImplementedError

    def _grid_loo(self, X: Array, y: Array) -> Array:
        raise NotImplementedError

    def _folds(self, X: Array, y: Array) -> Iterator[tuple[Array, Array]]:
        if isinstance(self.cv, str):
            raise ValueError(f'cv must be "loo", a number of folds or a splitter; got {self.cv!r}')
        return check_cv(self.cv, y, classifier=True).split(X, y)

    def _loo_errors(self, X: Array, y: Array) -> Array:
        """Leave-one-out error rate of every model."""
        return mean_loss(self._grid_loo(X, y) + log_class_prior_loo(y, len(self.classes_), self.class_prior), y)

    def _cv_errors(self, X: Array, y: Array) -> Array:
        """Cross-validated error rate, or mean cost, of every model of the grid."""
        n_classes = len(self.classes_)
        cost = check_cost(self.cost, n_classes)
        if self.cv == "loo":
            if cost is None:
                return self._loo_errors(X, y)
            return mean_loss(self._grid_loo(X, y) + log_class_prior_loo(y, n_classes, self.class_prior), y, cost)
        total, rows = 0.0, 0
        for train, test in self._folds(X, y):
            prior = log_class_prior(np.bincount(y[train], minlength=n_classes), self.class_prior)
            total = total + len(test) * mean_loss(self._grid(X[train], y[train], X[test]) + prior, y[test], cost)
            rows += len(test)
        return total / rows

    def _select(self, X: Array, y: Array) -> tuple[int, ...]:
        """Position of the chosen model: least ``cv_errors_`` among the models under which, fitted to all
        rows, every class has a density; ties uniformly at random by ``random_state``."""
        self.class_log_prior_ = log_class_prior(np.bincount(y), self.class_prior)
        self.cv_errors_ = self._cv_errors(X, y)
        eligible = np.isfinite(self._grid(X, y, X[:1])).all(axis=(-2, -1))
        if not eligible.any():
            raise InvalidStatistics(
                "no model of the grid gives every class a density: too few rows, or features constant within classes"
            )
        errors = np.where(eligible, self.cv_errors_, np.inf)
        unit = 1.0 if self.cost is None else np.max(self.cost)
        best = np.argwhere(errors <= errors.min() + 1e-12 * unit)
        return tuple(best[check_random_state(self.random_state).randint(len(best))])
