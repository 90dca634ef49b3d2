"""What every generative classifier of the package shares: one hook, ``log p(x, y)``, and all predictions from it."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from rcpkg._version import __version__

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
    largest = _by_row(np.maximum, joint)
    impossible = np.isneginf(largest[:, 0])
    if impossible.any():
        joint = np.where(impossible[:, None], log_prior, joint)
        largest = _by_row(np.maximum, joint)
    posterior = joint - largest
    posterior -= np.log(_by_row(np.add, np.exp(posterior)))
    return posterior


def _by_row(function: np.ufunc, A: Array) -> Array:
    """The function over each row, shape (n, 1): of two columns many times faster than a reduction, to the same bit."""
    if A.shape[1] == 2:
        return function(A[:, :1], A[:, 1:])
    return function.reduce(A, axis=1, keepdims=True)


def check_number(name: str, value: Any, low: float, *, above: bool = False, integer: bool = False) -> None:
    """Refuse what is not a finite number >= ``low`` (> ``low`` if ``above``), or not an integer if one is needed."""
    kind = Integral if integer else Real
    if not isinstance(value, kind) or not np.isfinite(value) or value < low or (above and value == low):
        what = "an integer" if integer else "a finite number"
        bound = "" if low == -np.inf else f" {'>' if above else '>='} {low}"
        raise ValueError(f"{name} must be {what}{bound}; got {value!r}")


def check_numbers(name: str, values: ArrayLike) -> Array:
    """Refuse what is no array of finite numbers."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers; got {values!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers; got {values!r}")
    return array


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {' or '.join(repr(choice) for choice in choices)}; got {value!r}")


def check_sequence(name: str, values: ArrayLike, low: float, high: float = np.inf, *, above: bool = False) -> Array:
    """Refuse what is no sequence of finite numbers >= ``low`` (> ``low`` if ``above``) and <= ``high``."""
    array = check_numbers(name, values)
    if array.ndim != 1 or len(array) == 0 or array.max() > high or array.min() < low or (above and array.min() == low):
        bounds = f"{'>' if above else '>='} {low}" + (f" and <= {high}" if high < np.inf else "")
        raise ValueError(f"{name} must be a sequence of one or more numbers {bounds}; got {values!r}")
    return array


def check_cost(cost: ArrayLike | None, n_classes: int) -> Array | None:
    """Validate a cost matrix: ``cost[g, h]`` is the cost of predicting class g when the truth is class h."""
    if cost is None:
        return None
    cost = check_numbers("cost", cost)
    if cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost must have shape ({n_classes}, {n_classes}), one row and column a class; got {cost.shape}"
        )
    if np.any(cost < 0):
        raise ValueError("cost must hold non-negative numbers")
    return cost


def check_priors(priors: ArrayLike | None, n_classes: int, name: str = "priors") -> Array | None:
    """Validate class probabilities given by the user: r non-negative numbers that sum to one."""
    if priors is None:
        return None
    priors = check_numbers(name, priors)
    if priors.shape != (n_classes,):
        raise ValueError(
            f"Number of priors must match number of classes: {name} must hold {n_classes} numbers, one a class; "
            f"got shape {priors.shape}"
        )
    if not np.all(priors >= 0):
        raise ValueError(f"Priors must be non-negative: {name} holds {priors.min():.6g}")
    if not np.isclose(priors.sum(), 1.0):
        raise ValueError(f"The sum of the priors should be 1: {name} sum to {priors.sum():.6g}; divide them by it")
    return priors


#: Magnitudes of features whose squares and sums of squares are numbers
LEAST_SPREAD, LARGEST = 1e-150, 1e150


def check_magnitude(X: Array, *, fitting: bool = False) -> Array:
    """Refuse rows whose squares overflow and, in ``fitting``, features whose variances vanish in rounding."""
    if X.size and max(X.max(), -X.min()) > LARGEST:
        j = int(np.abs(X).max(axis=0).argmax())
        raise ValueError(f"X holds {np.abs(X[:, j]).max():g} in feature {j}, whose square overflows: rescale X")
    if fitting:
        spread = np.ptp(X, axis=0)
        lost = np.flatnonzero((spread > 0) & (spread < LEAST_SPREAD))
        if len(lost):
            raise ValueError(
                f"feature {lost[0]} of X varies by {spread[lost[0]]:g} only, whose square vanishes: rescale X"
            )
    return X


def check_weights(sample_weight: ArrayLike | None, n: int) -> Array:
    """Weights of n rows, one each if none are given; refuses what is no finite number >= 0 for each row."""
    try:
        weights = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers, one a row") from None
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold {n} numbers, one a row; got shape {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(bad):
        raise ValueError(f"sample_weight must hold finite numbers >= 0; row {bad[0]} has {weights[bad[0]]:g}")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows; some must have a positive one")
    return weights


class InconsistentVersion(InconsistentVersionWarning):
    """An estimator was saved by another version of rcpkg: a parameter may be missing, or mean something else."""

    def __init__(self, *, estimator_name: str, original_version: str) -> None:
        self.estimator_name = estimator_name
        self.original_version, self.current_version = original_version, __version__

    def __str__(self) -> str:
        return (
            f"{self.estimator_name} was saved by rcpkg {self.original_version} and is read by {self.current_version}, "
            "where it may fail or predict differently: fit it anew, or install the version that saved it"
        )


class Estimator(BaseEstimator):
    """An estimator that is saved with the version of rcpkg, by pickle, joblib or skops; reading warns of another."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_rcpkg_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved_by = state.pop("_rcpkg_version", "(version unknown)")
        if saved_by != __version__:
            warning = InconsistentVersion(estimator_name=type(self).__name__, original_version=saved_by)
            warnings.warn(warning, stacklevel=2)
        super().__setstate__(state)


def column_label(X: Any, j: int) -> str:
    """What to call column j of X, which has not been validated."""
    columns = getattr(X, "columns", None)
    return f"feature {j}" if columns is None else f"feature {columns[j]!r}"


def _is_text(value: Any) -> bool:
    """Whether a value is a string that is no number."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def _explain(estimator: BaseEstimator, X: Any) -> None:
    """Say what is wrong with X, and where, in cases in which numpy, or a package of frames, does not."""
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        raise ValueError(f"X has several columns named {X.columns[X.columns.duplicated()][0]!r}: rename all but one")
    if issparse(X):
        return
    rows = np.asarray(X, dtype=object)
    if isinstance(X, list | tuple) and rows.ndim == 1 and len({np.size(row) for row in X}) > 1:
        raise ValueError("X must be a table; its rows differ in length")
    for j, values in enumerate(rows.T if rows.ndim == 2 else ()):
        text = next(filter(_is_text, values), None)
        if text is not None:
            raise ValueError(
                f"{column_label(X, j)} holds text ({text!r}); {type(estimator).__name__} takes numbers: encode it "
                "(OneHotEncoder, OrdinalEncoder of sklearn.preprocessing), or give it to CategoricalNB, which takes "
                "text, as a block of a ProductModel"
            )


def validated(estimator: BaseEstimator, X: ArrayLike, *y: ArrayLike, reset: bool, dtype: type) -> Any:
    """X, or X and y, as `validate_data` has them; sparse rows and missing values pass where the tags say so."""
    tags = estimator.__sklearn_tags__().input_tags
    checks = {"accept_sparse": "csr" if tags.sparse else False, "dtype": dtype}
    finite = "allow-nan" if tags.allow_nan else True
    labels = np.asarray(y[0], dtype=None if hasattr(y[0], "dtype") else object) if y else np.empty(0)
    if labels.ndim == 1 and pd.isna(labels).any():
        raise ValueError("Input y contains NaN or other missing labels: leave these rows out")
    try:
        found = validate_data(estimator, X, *y, reset=reset, ensure_all_finite=finite, **checks)
    except Exception:
        _explain(estimator, X)
        raise
    X = found[0] if y else found
    X = csr_array(X) if issparse(X) else X
    return (X, found[1]) if y else X


def numbered(y: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """The labels, sorted, and the number of each row's."""
    if y.dtype.kind == "O":  # which may hold what cannot be sorted
        encoder = LabelEncoder().fit(y)
        return encoder.classes_, encoder.transform(y)
    labels = np.unique(y)
    return labels, np.searchsorted(labels, y)


class GenerativeClassifier(ClassifierMixin, Estimator):
    """A classifier through its joint density.

    A subclass sets ``classes_`` and ``class_log_prior_`` in ``fit`` and implements ``_joint_log_proba(X)``, the
    (n, r) array of log p(x, y); the predictions are derived from it here, once. A ``cost`` attribute, where the
    subclass has one, turns `predict` into the minimiser of the expected cost.
    """

    _x_dtype: type = np.float64

    def _joint_log_proba(self, X: Array) -> Array:
        raise NotImplementedError

    def check_X(self, X: ArrayLike) -> Array:
        return validated(self, X, reset=False, dtype=self._x_dtype)

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        """Validated X, and y as labels."""
        X, y = validated(self, X, y, reset=reset, dtype=self._x_dtype)
        if y.dtype.kind not in "biu" or 2 * len(np.unique(y)) > len(y):  # other integers are labels
            check_classification_targets(y)
        return X, y

    def check_X_y(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        """Validated X, and y as indices into ``classes_``, which is set."""
        X, y = self._check_rows(X, y)
        self.classes_, y = numbered(y)
        if len(self.classes_) < 2:
            label = self.classes_.tolist()[0]
            raise ValueError(f"y holds one class only ({label!r}); a classifier needs at least 2 classes")
        check_cost(getattr(self, "cost", None), len(self.classes_))
        return X, y

    def predict_joint_log_proba(self, X: ArrayLike) -> Array:
        """Joint log density log p(x, y) for each row and class, shape (n, r)."""
        check_is_fitted(self)
        return self._joint_log_proba(self.check_X(X))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Log posterior log p(y | x), shape (n, r); a row impossible under every class gets the class prior."""
        return log_posterior(self.predict_joint_log_proba(X), self.class_log_prior_)

    def decision_function(self, X: ArrayLike) -> Array:
        """Log odds log p(y_2 | x) − log p(y_1 | x), shape (n,), of two classes; log p(y | x), shape (n, r), of more."""
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) > 2:
            return log_proba
        with np.errstate(invalid="ignore"):
            return log_proba[:, 1] - log_proba[:, 0]

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


class SquareableRows:
    """Mixin in front of `GenerativeClassifier`: rows whose squares leave the range of numbers are refused."""

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        X, y = super()._check_rows(X, y, reset=reset)
        return check_magnitude(X, fitting=True), y

    def check_X(self, X: ArrayLike) -> Array:
        return check_magnitude(super().check_X(X))


#: Mean log-losses that differ by no more are equal
LOG_LOSS_ROUNDING = 1e-9


def least(values: Array, among: Array, rounding: float) -> Array:
    """Which models of ``among``, boolean, have the least of ``values``, but for ``rounding``."""
    return among & (values <= np.where(among, values, np.inf).min() + rounding)


def mean_log_loss(losses: Array, weights: Array | None = None) -> Array:
    """Mean of log-losses (..., n) over the rows whose class has a density under some model; the others, such as a
    class's only row when it is left out, say nothing of the choice. Infinite where there is no such row."""
    comparable = np.isfinite(losses).any(axis=tuple(range(losses.ndim - 1)))
    if not comparable.any():
        return np.full(losses.shape[:-1], np.inf)
    return np.average(losses[..., comparable], axis=-1, weights=None if weights is None else weights[comparable])
