"""A fitted model frozen to arrays, which scores one row in microseconds, here and in other languages."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dtrtrs

from rcpkg.base import Array, by_row, log_posterior
from rcpkg.columns import ARITHMETIC, BYTES, TEXT, is_missing, kind_of, unmasked
from rcpkg.families.blocks import Blocks, Distances
from rcpkg.families.cliques import Families
from rcpkg.families.constants import LARGEST_TABLES
from rcpkg.families.missing_states import log_marginal
from rcpkg.gaps import IndependentMarginals
from rcpkg.linalg import AT_A_TIME, LOG_2PI, correlations

FORMAT = "rcpkg-scorer/1"
ROWS, PLAIN = (np.ndarray, list, tuple), (float, int, str)
UNKNOWN = -LARGEST_TABLES  # the place of a state, by which each cell that depends on it is negative


class Scorer:
    """p(y | x) of one row at a time, from the arrays of a fitted model: ``model.scorer()`` makes it.

    What a call of a model takes is the validation of its rows. A scorer leaves that to you: a row holds the features in
    the order of training, or is a dict or series of them by name; numbers, codes or names, and None, NaN, pd.NA or
    pd.NaT where they are missing. The posteriors are those of ``model.predict_proba`` to the last bit.

    Parameters
    ----------
    content : dict
        What `to_json` writes, where arrays may stand for lists.

    Attributes
    ----------
    classes_ : list of r labels
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> scorer = QDA().fit(*load_iris(return_X_y=True)).scorer()
    >>> scorer.predict_proba([5.9, 3.2, 4.8, None]).round(2)
    array([0.  , 0.43, 0.57])
    >>> text = scorer.to_json()  # a program in another language reads it
    >>> Scorer.from_json(text).classes_
    [0, 1, 2]
    """

    classes_: list[Any]
    n_features_in_: int

    def __init__(self, content: dict[str, Any]) -> None:
        if content.get("format") != FORMAT:
            raise ValueError(f"content must have the format {FORMAT!r}; got {content.get('format')!r}")
        self.content, self._log_prior = content, _array(content["log_prior"])
        self.classes_, self.n_features_in_ = content["classes"], content["n_features"]
        every, parts = list(range(self.n_features_in_)), content["parts"]
        self._columns = [None if (columns := list(part["columns"])) == every else columns for part in parts]
        self._parts = [KINDS[part["kind"]](part, _array(part["log_prior"])) for part in parts]

    def predict_proba(self, row: ArrayLike) -> Array:
        """p(y | x), shape (r,), of one row of d features.

        Raises
        ------
        ValueError
            If the row has another number of features, lacks one of them by its name, or holds text, dates or other
            things where the model has numbers, or the reverse.
        """
        if type(row) not in ROWS and getattr(row, "ndim", 1) == 1:
            row = self._listed(row)
        if (size := len(row) if getattr(row, "ndim", 1) == 1 else row.shape) != self.n_features_in_:
            raise ValueError(f"row must have {self.n_features_in_} features; got {size}")
        joint = self._log_prior
        for part, columns in zip(self._parts, self._columns):
            of_part = part(row if columns is None else [row[c] for c in columns])  # log p_b(x_b, y), shape (1, r)
            joint = joint + of_part - np.nan_to_num(part.log_prior, neginf=0.0) if self.content["product"] else of_part
        largest = by_row(np.maximum, joint)
        if not largest[0, 0] > -np.inf:  # impossible under every class, or too far off to tell
            return np.exp(log_posterior(np.where(np.isnan(joint), -np.inf, joint), self._log_prior))[0]
        posterior = joint - largest  # as `log_posterior`, whose look for such rows takes a fifth of the time
        posterior -= np.log(by_row(np.add, np.exp(posterior)))
        return np.exp(posterior)[0]

    def _listed(self, row: Any) -> list[Any]:
        """The values of a row in another container, by the names of its features if it has them; text and bytes, whose
        items are characters and codes, hold none."""
        if (names := self.content["features"]) and hasattr(row, "keys"):
            if missing := [name for name in names if name not in row]:
                raise ValueError(f"row lacks the feature {missing[0]!r}: give None where it is missing")
            return [row[name] for name in names]
        if not hasattr(row, "__getitem__") or isinstance(row, Mapping) or kind_of(type(row)) in (TEXT, BYTES):
            form = "a sequence of values"
            form += ", a dict or a series" if names else ", since the model knows no names"
            raise ValueError(f"row must be {form}; got {type(row).__name__}")
        return row.to_pylist() if hasattr(row, "to_pylist") else list(unmasked(row))

    def to_json(self) -> str:
        """The arrays as JSON, whose numbers come back to the last bit; null is −∞."""
        return json.dumps(self.content, allow_nan=False, default=_lists)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The scorer that `to_json` has written."""
        return cls(json.loads(text))


class _Gaussian:
    """Gaussian classes; what a row, or another one with the same values missing, does not change is computed once."""

    def __init__(self, part: dict[str, Any], log_prior: Array) -> None:
        mean, A, covariance = (_array(part[name]) for name in ("mean", "whitener", "covariance"))
        d, form = mean.shape[1], Blocks(part["shared"], part["independent"])
        self.distances, self.ones = Distances(form, mean, A), np.ones(d)
        self.log_prior, self.constant = log_prior, log_prior + form.log_det(A) - 0.5 * d * LOG_2PI
        self.by_feature = IndependentMarginals(mean, covariance) if form.independent else None
        if not form.independent:
            self.mean, self.unit, self.patterns = mean, np.eye(d), dict[bytes, tuple[Array, Array]]()
            self.correlation, self.scale = correlations(form.by_class(covariance))

    def __call__(self, values: ArrayLike) -> Array:
        x = _numbers(values)[None]
        if (total := x.dot(self.ones)[0]) == total:
            return self.constant - 0.5 * self.distances(x)
        missing = np.isnan(x)
        squares, log_det = self.by_feature(x, missing) if self.by_feature else self._marginals(x, missing[0])
        return self.log_prior - 0.5 * (squares + log_det + (x.size - np.count_nonzero(missing)) * LOG_2PI)

    def _marginals(self, x: Array, missing: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The expressions of `GappyRows`, for one row and all classes at a time."""
        if (known := self.patterns.get(key := missing.tobytes())) is None:
            d, scale = len(missing), np.where(missing, 1.0, self.scale)
            factors = np.linalg.cholesky(np.where(missing[:, None] | missing, self.unit, self.correlation))
            pivots = factors.reshape(-1, d * d)[:, :: d + 1] * scale
            known = factors.swapaxes(1, 2), 2 * np.add.reduce(np.log(pivots), axis=1)[None]
            # with 20 features a row of a known pattern takes .11 of the time of scikit-learn's naive Bayes, another .21
            # (bar: a fifth), by the same factors
            if (len(self.patterns) + 1) * factors.size <= AT_A_TIME:
                self.patterns[key] = known
        uppers, log_det = known
        deviations = (x - self.mean) / self.scale
        np.copyto(deviations, 0.0, where=missing)
        for y, z in enumerate(deviations):
            dtrtrs(uppers[y % len(uppers)], z, lower=0, trans=1, overwrite_b=1)
        return np.einsum("nd,nd->n", deviations, deviations)[None], log_det


class _Table:
    """Features with states, by their codes or names; each may depend on others."""

    def __init__(self, part: dict[str, Any], log_prior: Array) -> None:
        self.log_prior, log_prob = log_prior, _array(part["log_prob"])
        self.places = [{value: k for k, value in enumerate(states)} for states in part["states"]]
        self.families = families = Families(part["parents"], np.array([*map(len, self.places)]))
        families.lay_out()
        self.cells, self.tables = np.ascontiguousarray(_possible(log_prob).T), families.split(log_prob)
        self.stride = np.zeros((len(self.places), len(self.places)), dtype=np.intp)  # of the states in cells
        for stride, members, shape in zip(self.stride, families.members, families.shapes):
            stride[list(members)] = np.cumprod([1, *shape[:0:-1]])[::-1]

    def __call__(self, values: Any) -> Array:
        if isinstance(values, np.ndarray) and values.dtype.kind not in "mM":  # which may be listed as integers
            values = values.tolist()
        pairs = zip(values, self.places)  # of a state and the places of its feature's states
        places = np.array([known[v] if type(v) in PLAIN and v in known else _place(v, known) for v, known in pairs])
        cells = self.families.starts + self.stride.dot(places)
        known = cells >= 0
        joint = (np.add.reduce(self.cells[cells[known]], axis=0) + self.log_prior)[None]
        if self.families.has_arcs and not known.all():
            joint += log_marginal(self.families, np.maximum(places, -1)[None], self.tables)
        return joint


class _Binary:
    """Features that are one where they exceed a threshold, by the expressions of `BinaryIndicators`."""

    def __init__(self, part: dict[str, Any], log_prior: Array) -> None:
        self.log_prior, terms = log_prior, _possible(_array(part["log_prob"])).T
        self.threshold, self.impossible = part["binarize"], np.isneginf(terms).reshape(-1, 2, terms.shape[1])
        self.zero, one = np.where(self.impossible, 0.0, terms.reshape(self.impossible.shape)).swapaxes(0, 1)
        self.gain, self.none = one - self.zero, self.zero.sum(axis=0)

    def __call__(self, values: ArrayLike) -> Array:
        x = _numbers(values)
        ones, seen = x > self.threshold, ~np.isnan(x)
        total = np.add.reduce(self.gain[ones], axis=0) + self.none - np.add.reduce(self.zero[~seen], axis=0)
        if self.impossible.any():
            total[self.impossible[seen, ones[seen].astype(np.intp)].any(axis=0)] = -np.inf
        return (total + self.log_prior)[None]


KINDS: dict[str, Callable[[dict[str, Any], Array], Any]] = {"gaussian": _Gaussian, "table": _Table, "binary": _Binary}


def _place(value: Any, known: dict[Any, int]) -> int:
    """The place of a state of another type than most, `UNKNOWN` if it is missing or not among those known."""
    if is_missing(value):
        return UNKNOWN
    state, kind = next(iter(known), None), kind_of(type(value))
    if kind != TEXT if isinstance(state, str) else kind not in ARITHMETIC:
        raise ValueError(f"row holds {value!r} where the model has states such as {state!r}")
    return known.get(value, UNKNOWN)


def _numbers(values: Any) -> Array:
    """Values as floats, NaN where they are missing."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
    return values.astype(float, copy=False) if plain else np.array([*map(_number, values)])


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if is_missing(value):
        return np.nan
    if kind_of(type(value)) in ARITHMETIC | {TEXT}:
        with suppress(ValueError, OverflowError):
            return float(value)
    raise ValueError(f"row holds {value!r} where the model has numbers")


def _possible(log_prob: Array) -> Array:
    """Log probabilities (r, K) with 0 for cells that are impossible in every class, which are skipped."""
    return np.where(np.isneginf(log_prob).all(axis=0), 0.0, log_prob)


def _lists(array: Array) -> Any:
    """An array as nested lists, with None for −∞."""
    return (np.where(np.isneginf(array), None, array) if array.dtype.kind == "f" else array).tolist()


def _array(lists: Any) -> Array:
    """The inverse of `_lists`, which leaves an array as it is."""
    array = np.array(lists, dtype=float)  # None is NaN
    return np.where(np.isnan(array), -np.inf, array)
