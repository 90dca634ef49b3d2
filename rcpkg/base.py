"""What every generative classifier of the package shares: one hook, ``log p(x, y)``, and all predictions from it."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Array = NDArray[np.float64]


class InvalidStatistics(ValueError):
    """Statistics from which no valid parameters follow (a negative count, a singular covariance, ...)."""


def log_posterior(joint: Array, log_prior: Array) -> Array:
    r"""Log posterior :math:`\log p(y\mid x) = \log p(x, y) - \log\sum_{y'} p(x, y')`.

    A row that is impossible under every class (all entries -inf) gets the class prior.

    Parameters
    ----------
    joint : array of shape (n, r)
        Joint log densities log p(x, y).
    log_prior : array of shape (r,)
        Log class probabilities log p(y), normalised.

    Returns
    -------
    array of shape (n, r)
    """
    largest = joint.max(axis=1, keepdims=True)
    impossible = np.isneginf(largest[:, 0])
    if impossible.any():
        joint = np.where(impossible[:, None], log_prior, joint)
        largest = joint.max(axis=1, keepdims=True)
    posterior = joint - largest
    posterior -= np.log(np.exp(posterior).sum(axis=1, keepdims=True))
    return posterior


def check_number(name: str, value: Any, low: float, *, above: bool = False, integer: bool = False) -> None:
    """Refuse what is not a finite number >= ``low`` (> ``low`` if ``above``), or not an integer if one is needed."""
    kind = Integral if integer else Real
    if not isinstance(value, kind) or not low <= value < np.inf or (above and value == low):
        what = "an integer" if integer else "a finite number"
        raise ValueError(f"{name} must be {what} {'>' if above else '>='} {low}; got {value!r}")


def check_cost(cost: ArrayLike | None, n_classes: int) -> Array | None:
    """Validate a cost matrix: ``cost[g, h]`` is the cost of predicting class g when the truth is class h."""
    if cost is None:
        return None
    cost = np.asarray(cost, dtype=float)
    if cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost must have shape ({n_classes}, {n_classes}), one row and column a class; got {cost.shape}"
        )
    if not np.all(np.isfinite(cost)) or np.any(cost < 0):
        raise ValueError("cost must hold finite non-negative numbers")
    return cost


def check_priors(priors: ArrayLike | None, n_classes: int) -> Array | None:
    """Validate class probabilities given by the user: r non-negative numbers that sum to one."""
    if priors is None:
        return None
    priors = np.asarray(priors, dtype=float)
    if priors.shape != (n_classes,):
        raise ValueError(f"priors must hold {n_classes} numbers, one a class; got shape {priors.shape}")
    if not np.all(priors >= 0) or not np.isclose(priors.sum(), 1.0):
        raise ValueError("priors must be non-negative and sum to one; divide them by their sum")
    return priors


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """A classifier through its joint density.

    A subclass sets ``classes_`` and ``class_log_prior_`` in ``fit`` and implements ``_joint_log_proba(X)``, the
    (n, r) array of log p(x, y); the predictions are derived from it here, once. A ``cost`` attribute, where the
    subclass has one, turns `predict` into the minimiser of the expected cost.
    """

    _x_dtype: type = np.float64

    def _joint_log_proba(self, X: Array) -> Array:
        raise NotImplementedError

    def _check_X(self, X: ArrayLike) -> Array:
        return validate_data(self, X, reset=False, dtype=self._x_dtype)

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        """Validated X, and y as labels."""
        X, y = validate_data(self, X, y, reset=reset, dtype=self._x_dtype)
        check_classification_targets(y)
        return X, y

    def _check_Xy(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        """Validated X, and y as indices into ``classes_``, which is set."""
        X, y = self._check_rows(X, y)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); a classifier needs at least 2 classes")
        return X, encoder.transform(y)

    def predict_joint_log_proba(self, X: ArrayLike) -> Array:
        """Joint log density log p(x, y) for each row and class, shape (n, r)."""
        check_is_fitted(self)
        return self._joint_log_proba(self._check_X(X))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Log posterior log p(y | x), shape (n, r); a row impossible under every class gets the class prior."""
        return log_posterior(self.predict_joint_log_proba(X), self.class_log_prior_)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Posterior p(y | x), shape (n, r)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> NDArray:
        """Class of largest posterior or, with a ``cost``, of least expected cost; ties go to the first class."""
        log_proba = self.predict_log_proba(X)
        cost = check_cost(getattr(self, "cost", None), len(self.classes_))
        if cost is None:
            return self.classes_[np.argmax(log_proba, axis=1)]
        return self.classes_[np.argmin(np.exp(log_proba) @ cost.T, axis=1)]
