"""Refusals of bad input: parameters, weights, labels, rows. Each names what is bad in one sentence, and the fix."""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import signature
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from rcpkg._bases import _BaseComposition
from rcpkg.capabilities import MARGINALS, Unsupported, can
from rcpkg.columns import NESTED, as_labels, as_numbers, in_columns, kind_of, summed, unmasked
from rcpkg.linalg import EPS, MOST_STEPS, Array


def refusal(name: str, need: str, value: Any) -> ValueError:
    """The error that says what a parameter must be, and what it is."""
    return ValueError(f"{name} must {need}; got {value!r}")


#: What the fit that runs, if any, has warned of, by the name of the parameter
_WARNED: ContextVar[dict[str, str] | None] = ContextVar("_WARNED", default=None)


@contextmanager
def one_fit() -> Iterator[dict[str, str]]:
    """What the outermost fit has warned of, once for itself and all fits within it."""
    warned = _WARNED.get()
    if warned is not None:
        yield warned
        return
    token = _WARNED.set({})
    try:
        yield _WARNED.get()
    finally:
        _WARNED.reset(token)


def warn(message: str, category: type[Warning] = UserWarning, parameter: str = "") -> None:
    """A warning at the user's line: the first above this package and above those that may call it for the user; the
    first in a fit of a ``parameter``, if one is named."""
    warned = _WARNED.get() if parameter else None
    if warned is not None and parameter in warned:
        return
    if warned is not None:
        warned[parameter] = message
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("rcpkg", "sklearn", "joblib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def supervised_step(estimator: BaseEstimator) -> str:
    """The class of a step that reads labels, where pipelines fit it before this estimator; or ""."""
    kind, frame = getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", ()), sys._getframe(1)
    while frame := frame.f_back:
        pipeline = frame.f_locals.get("self")
        if isinstance(pipeline, kind) and pipeline.steps[-1][1] is estimator:
            parts = [part for _, step in pipeline.steps[:-1] for part in _parts(step)]
            if reading := next(filter(_reads_labels, parts), None):
                return type(reading).__name__
            estimator = pipeline
    return ""


def _reads_labels(step: BaseEstimator) -> bool:
    """Whether a step needs labels, by its tags or its ``fit``, or selects features by them."""
    y = signature(step.fit).parameters.get("y")
    model = None if getattr(step, "prefit", False) else getattr(step, "estimator", None)
    selects = hasattr(step, "score_func") or (isinstance(model, BaseEstimator) and _reads_labels(model))
    needs = step.__sklearn_tags__().target_tags.required or (y is not None and y.default is y.empty)
    return needs or (hasattr(step, "get_support") and selects)


def _parts(step: Any) -> list[BaseEstimator]:
    """A step of a pipeline, or the steps that it is made of, as far as they have tags."""
    if isinstance(step, _BaseComposition):
        return [part for name, each in step.get_params().items() if "__" not in name for part in _parts(each)]
    return [step] if isinstance(step, BaseEstimator) else []


def check_number(
    name: str, value: Any, low: float, below: float = np.inf, *, above: bool = False, integer: bool = False
) -> None:
    """Refuse what is not a finite number >= ``low`` (> ``low`` if ``above``) and < ``below``, or not an integer if one
    is needed."""
    kind = Integral if integer else Real
    if not isinstance(value, kind) or not isfinite(value) or not low <= value < below or (above and value == low):
        what = "an integer" if integer else "a finite number"
        bound = "" if low == -np.inf else f" {'>' if above else '>='} {low}"
        raise refusal(name, f"be {what}{bound}" + f" and < {below}" * (below < np.inf), value)


def refuse_labels(name: str, values: Any, estimator: Any = None) -> None:
    """Refuse a parameter that goes by place and has labels, where these are not the features or the classes of the
    ``estimator``, in their order."""
    known = [list(getattr(estimator, attribute, ())) for attribute in ("feature_names_in_", "_columns", "classes_")]
    for axis in values.axes if isinstance(values, pd.Series | pd.DataFrame) else ():
        if not isinstance(axis, pd.RangeIndex) and (labels := axis.tolist()) not in known:
            fault = "are in another order than that of the features or of classes_"
            if not any(sorted(map(str, labels)) == sorted(map(str, each)) for each in known):
                named = "" if any(known[:2]) else ", which have no names,"
                fault = f"({labels[0]!r}, …) are not those of the features{named} or of classes_"
            raise ValueError(f"{name} goes by place, and its labels {fault}: give an array")


def check_numbers(name: str, values: ArrayLike, estimator: Any = None) -> Array:
    """Refuse what is no array of finite numbers, or has labels in another order than what is fitted."""
    refuse_labels(name, values, estimator)
    try:
        array = np.asarray(unmasked(values), dtype=float)
    except (TypeError, ValueError):
        raise refusal(name, "hold numbers", values) from None
    if not np.isfinite(array).all():
        raise refusal(name, "hold finite numbers", values)
    return array


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise refusal(name, f"be {' or '.join(repr(choice) for choice in choices)}", value)


def check_sequence(name: str, values: ArrayLike, low: float, high: float = np.inf, estimator: Any = None) -> Array:
    """Refuse what is no sequence of finite numbers >= ``low`` and <= ``high``."""
    array = check_numbers(name, values, estimator)
    if array.ndim != 1 or len(array) == 0 or array.max() > high or array.min() < low:
        bounds = f">= {low}" + (f" and <= {high}" if high < np.inf else "")
        raise refusal(name, f"be a sequence of one or more numbers {bounds}", values)
    return array


def check_cost(cost: ArrayLike | None, classes: NDArray) -> Array | None:
    """Validate a cost matrix: ``cost[g, h]`` is the cost of predicting class g when the truth is class h.

    Rows and columns of a frame are put into the order of ``classes`` by their labels.
    """
    if cost is None:
        return None
    if isinstance(cost, pd.DataFrame):
        labels = classes.tolist()
        for axis in (cost.index, cost.columns):
            if len(axis) != len(labels) or not set(labels) <= set(axis):
                raise ValueError(
                    f"cost must have the labels {labels} on its rows and its columns; got {axis.tolist()}: name them "
                    "so, or give an array in this order"
                )
        cost = cost.reindex(index=labels, columns=labels).to_numpy()  # `loc` takes booleans for a mask
    cost = check_numbers("cost", cost)
    n_classes = len(classes)
    if cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost must have shape ({n_classes}, {n_classes}), one row and column a class; got {cost.shape}"
        )
    if np.any(cost < 0):
        raise ValueError("cost must hold non-negative numbers")
    return cost


def check_priors(priors: ArrayLike | None, n_classes: int, name: str = "priors", estimator: Any = None) -> Array | None:
    """Validate class probabilities given by the user: r non-negative numbers that sum to one."""
    if priors is None:
        return None
    priors = check_numbers(name, priors, estimator)
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


def check_class_prior(class_prior: ArrayLike | Mapping, classes: NDArray) -> Array:
    """Class weights for use: r positive numbers that sum to one, in the order of ``classes`` or by label."""
    class_prior = getattr(class_prior, "class_prior", class_prior)  # of `class_prior_of`
    if isinstance(class_prior, Mapping | pd.Series):
        labels = list(class_prior.keys())
        if len(labels) != len(classes) or any(label not in labels for label in classes.tolist()):
            raise ValueError(f"class_prior must map each of the labels {classes.tolist()} to a weight; got {labels}")
        class_prior = [class_prior[label] for label in classes.tolist()]
    weights = check_priors(class_prior, len(classes), "class_prior")
    if not weights.all():
        raise ValueError("class_prior must hold positive numbers; leave out the columns of classes that cannot occur")
    return weights


#: Magnitudes of features whose squares are numbers, and their sums over 6e7 rows, the root of rounding
LARGEST = float(np.sqrt(np.finfo(float).max * np.sqrt(EPS)))
LEAST_SPREAD = 1 / LARGEST


def check_magnitude(X: Array, *, fitting: bool = False, names: Any = None) -> Array:
    """Refuse rows whose squares overflow and, in ``fitting``, features whose variances vanish in rounding; ``names``
    are those of `feature_name`."""
    largest = max(X.max(initial=0.0), -X.min(initial=0.0))
    if np.isnan(largest):  # of rows with gaps
        largest = np.fmax.reduce(np.abs(X), axis=None)
    if largest > LARGEST:
        j = int(np.nanargmax(np.fmax.reduce(np.abs(X), axis=0)))
        raise ValueError(f"X holds {largest:g} in {feature_name(names, j)}, whose square overflows: rescale X")
    if fitting:
        spread = np.ptp(X, axis=0)
        small = np.flatnonzero((spread > 0) & (spread < LEAST_SPREAD))
        if len(small):
            raise ValueError(
                f"{feature_name(names, small[0])} of X varies by {spread[small[0]]:g} only, whose square vanishes: "
                "rescale X"
            )
    return X


#: At most this many rows may jointly dominate the weights before a warning, each with more than `MOST_STEPS` times the
#: weight of all lighter ones: a search takes about as many steps. With 700 times calibrations of iris end after up to
#: 647 steps, with 7,000 some of them not within 1,000. With three rows of iris, one a class, of weight 1e9
#: `RiskCalibrationCV` of LDA takes minutes, with six .6 s: half would miss such three, twice warns of more rows.
FEW = 5
#: Times the rest from which sums of all rows keep fewer than half of the digits of it, and the row is refused: of 64
#: fits to iris and wine none ended in a singular matrix at 6e3, one at 6e6 and seven at 6e9
DROWNING = 1 / np.sqrt(EPS)


def check_weights(sample_weight: ArrayLike | None, n: int) -> Array:
    """Weights of n rows, one each if none are given; refuses what is no finite number >= 0 for each row, and a row that
    leaves all others no digits."""
    weights = as_numbers(1.0 if sample_weight is None else sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold {n} numbers, one a row; got shape {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(bad):
        raise ValueError(f"sample_weight must hold finite numbers >= 0; row {bad[0]} has {weights[bad[0]]:g}")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows; some must have a positive one")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not LEAST_SPREAD < total < LARGEST:
        raise ValueError(f"sample_weight sums to {total:g}, and products of it leave the range: divide it by its mean")
    heavy = np.argpartition(-weights, min(FEW, n) - 1)[:FEW]
    heavy = heavy[np.argsort(-weights[heavy], kind="stable")]
    light, positive = np.delete(weights, heavy).sum(), np.count_nonzero(weights)
    for k, row in enumerate(heavy, start=1):
        others = light + weights[heavy[k:]].sum()  # of a difference nothing may be left
        if 2 * k > positive or not weights[row] > MOST_STEPS * others > 0:
            continue
        named, have, its = (f"row {row}", "has", "its class is this row") if k == 1 else (
            f"rows {', '.join(map(str, sorted(heavy[:k])))}", "have each", "their classes are these rows"
        )
        message = f"{named} {have} {weights[row] / others:.2g} times the sample_weight of all other rows together"
        if weights[row] > DROWNING * others:
            raise ValueError(f"{message}, and rounding leaves these fewer than half of their digits: clip the weights")
        fault = f"to the model {its}, without a spread for a search to go by"
        warn(f"{message}: {fault}; clip the weights", parameter="sample_weight")
        break
    return weights


def counting(sample_weight: ArrayLike | None, n: int) -> NDArray[np.bool_]:
    """Which of n rows have a positive weight, of weights that `check_weights` has seen."""
    return np.broadcast_to(as_numbers(1.0 if sample_weight is None else sample_weight, "sample_weight") > 0, n)


def gaps_refused(label: str, instead: str) -> Unsupported:
    """The error that says why a fit that rests on a concave likelihood takes no rows with gaps, and what to do."""
    return Unsupported(
        f"{label} holds missing values (NaN): each row then has a marginal of its own, and conditional likelihood is "
        f"not concave, as Newton's method and calibration_test need it. Leave such rows out, {instead}, or take "
        "RiskCalibration, which makes safe steps"
    )


def feature_name(table: Any, j: int) -> str:
    """What messages call the feature of number j of an array, a frame or what was fitted to one: by its name if any."""
    names = getattr(table, "feature_names_in_", getattr(table, "columns", None))
    return f"feature {j}" if names is None else f"feature {names[j]!r}"


def has_other_columns(estimator: Any, X: Any) -> bool:
    """Whether a frame names other columns than the training rows, or in another order."""
    known = getattr(estimator, "feature_names_in_", getattr(estimator, "_columns", None))
    if known is None or not hasattr(X, "columns") or list(X.columns) == list(known):
        return False
    return not pd.Index(known).equals(X.columns)  # of which NaN equals itself


def know_columns(estimator: Any, X: Any) -> None:
    """Remember names of columns that are no strings, of which scikit-learn takes no notice."""
    vars(estimator).pop("_columns", None)
    if isinstance(X, pd.DataFrame) and not hasattr(estimator, "feature_names_in_"):
        estimator._columns = X.columns.tolist()


def check_columns(estimator: Any, X: Any) -> None:
    """Refuse columns of other such names than those of the training rows, or in another order; of text in the place of
    mere numbers of columns scikit-learn warns."""
    if hasattr(estimator, "feature_names_in_") or not has_other_columns(estimator, X):
        return
    numbered = estimator._columns == [*range(len(estimator._columns))]
    if not (numbered and all(isinstance(name, str) for name in X.columns)):
        raise ValueError(
            f"The feature names should match those that were passed during fit, {estimator._columns}, in their order; "
            f"got {list(X.columns)}"
        )


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
    """Say what is wrong with X, and where, in cases in which numpy does not."""
    if issparse(X):
        return
    rows = np.asarray(X, dtype=object)
    if rows.ndim == 0:
        raise ValueError(f"X must be a table of rows, an array or a frame; got {type(X).__name__}")
    if isinstance(X, list | tuple) and rows.ndim == 1 and len({np.size(row) for row in X}) > 1:
        raise ValueError("X must be a table; its rows differ in length")
    if rows.ndim == 1 and len(rows) and kind_of(type(rows[0])) == NESTED:
        kind = type(rows[0]).__name__
        raise ValueError(f"X must be a table; its rows are of type {kind}: give pd.DataFrame(list(X))")
    if isinstance(X, pd.Series):
        raise ValueError("X must be a table, and is a series: one row of a frame is frame.iloc[[i]]")
    for j, values in enumerate(rows.T if rows.ndim == 2 else ()):
        text = next(filter(_is_text, values), None)
        if text is not None:
            raise ValueError(
                f"{feature_name(X, j)} holds text ({text!r}); {type(estimator).__name__} takes numbers: encode it "
                "(OneHotEncoder, OrdinalEncoder of sklearn.preprocessing), give it to CategoricalNB, which takes text, "
                "as a block of a ProductModel, or give the whole table to TableClassifier"
            )


def validate(estimator: BaseEstimator, X: ArrayLike, *y: ArrayLike, reset: bool) -> Any:
    """X, or X and y, as `validate_data` has them; sparse rows and missing values pass where the tags say so, and
    missing values of rows without y where the joint model has marginals."""
    X, *y = in_columns(X), *map(as_labels, y)
    tags = estimator.__sklearn_tags__().input_tags
    if tags.sparse and issparse(X):
        X = summed(X)
    checks = {"accept_sparse": "csr" if tags.sparse else False, "dtype": np.float64}
    if not reset:
        check_columns(estimator, X)
    sums_out = can(estimator, MARGINALS)
    finite = "allow-nan" if tags.allow_nan or (sums_out and not y) else True
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums X: of large numbers ∞ − ∞
            valid = validate_data(estimator, X, *y, reset=reset, ensure_all_finite=finite, **checks)
    except Exception as error:
        if not str(error).startswith("The feature names"):  # which says all
            _explain(estimator, X)
        name = type(estimator).__name__
        why = f"which {name} takes when it predicts, not in training: leave such rows out, or impute them"
        if not sums_out:
            why = getattr(estimator, "_why_no_gaps", "").format(name=name)
        entries = csr_array(X).data if issparse(X) else np.asarray(X, dtype=object)
        if why and finite is True and pd.isna(entries).any():
            raise ValueError(f"X contains NaN or other missing values, {why}") from None
        raise
    if reset:
        know_columns(estimator, X)
    X = valid[0] if y else valid
    X = csr_array(X) if issparse(X) else X
    return (X, valid[1]) if y else X


def number_labels(y: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """The labels, sorted, and the number of each row's."""
    if y.dtype.kind == "O":  # which may hold what cannot be sorted
        from sklearn.preprocessing import LabelEncoder

        encoder = LabelEncoder().fit(y)
        return encoder.classes_, encoder.transform(y)
    labels = np.unique(y)
    return labels, np.searchsorted(labels, y)
