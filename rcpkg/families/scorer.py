"""A fitted model frozen to arrays, which scores one row in microseconds, here and in other languages."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import getitem
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rcpkg.base import Array, log_posterior
from rcpkg.checks import LARGEST
from rcpkg.columns import ARITHMETIC, BYTES, TEXT, is_missing, kind_of, unmasked
from rcpkg.families.cliques import Families
from rcpkg.families.covariances import CovarianceForm, Distances
from rcpkg.families.missing_states import UNKNOWN, RowMarginal, TableSum
from rcpkg.gaps import IndependentMarginals, PatternMarginals
from rcpkg.linalg import LOG_2PI

FORMAT = "rcpkg-scorer/1"
SEQUENCES, PLAIN = (np.ndarray, list, tuple), {float, int, bool, str, type(None)}


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
        In the order of the posteriors.
    n_features_in_ : int
        Number of the features of a row.

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
        every, self._parts = list(range(self.n_features_in_)), []
        for part in content["parts"]:
            columns = None if (columns := list(part["columns"])) == every else columns
            self._parts.append((KINDS[part["kind"]](part, _array(part["log_prior"])), columns))

    def predict_proba(self, row: ArrayLike) -> Array:
        """p(y | x), shape (r,), of one row of d features.

        Raises
        ------
        ValueError
            If the row has another number of features, lacks one of them by its name, or holds text, dates or other
            things where the model has numbers, or the reverse.
        """
        if type(row) not in SEQUENCES and getattr(row, "ndim", 1) == 1:
            row = self._listed(row)
        if (size := len(row) if getattr(row, "ndim", 1) == 1 else row.shape) != self.n_features_in_:
            raise ValueError(f"row must have {self.n_features_in_} features; got {size}")
        joint = self._log_prior
        for part, columns in self._parts:
            of_part = part(row if columns is None else [row[c] for c in columns])  # log p_b(x_b, y), (r,)
            joint = joint + of_part - np.nan_to_num(part.log_prior, neginf=0.0) if self.content["product"] else of_part
        if (largest := max(joint.tolist())) > -np.inf:
            posterior = joint - largest  # as `log_posterior`, which for one row takes twice as long
            p = np.exp(posterior)
            if (total := p[0] + p[1] if len(p) == 2 else np.add.reduce(p)) == total:
                return np.exp(posterior - np.log(total))
        # impossible under every class, or too far off to tell
        return np.exp(log_posterior(np.where(np.isnan(joint), -np.inf, joint), self._log_prior))

    def _listed(self, row: Any) -> list[Any]:
        """The values of a row in another container, by the names of its features if it has them; text and bytes, whose
        items are characters and codes, hold none."""
        names, labels = self.content["features"], set(row.keys()) if hasattr(row, "keys") else set()
        by_number = not names and not isinstance(row, Mapping) and labels == {*range(self.n_features_in_)}
        if labels and (names or by_number):
            names = names or sorted(labels)
            if missing := [name for name in names if name not in row]:
                raise ValueError(f"row lacks the feature {missing[0]!r}: give None where it is missing")
            return [row[name] for name in names]
        other = isinstance(row, Mapping) or kind_of(type(row)) in (TEXT, BYTES)
        if other or not hasattr(row, "__getitem__") or len(getattr(row, "shape", ())) > 1:  # a frame of polars, say
            form = "a sequence of values"
            form += ", a dict or a series" if names else ", since the model knows no names"
            raise ValueError(f"row must be {form}; got {type(row).__name__}")
        return row.to_pylist() if hasattr(row, "to_pylist") else list(unmasked(row))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (self.content,)  # what it keeps of gaps is made again

    def to_json(self) -> str:
        """The arrays as JSON, whose numbers come back to the last bit; null is −∞."""
        return json.dumps(self.content, allow_nan=False, default=_lists)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The scorer that `to_json` has written."""
        return cls(json.loads(text))


class _Gaussian:
    """Gaussian classes; what no row changes is computed once."""

    def __init__(self, part: dict[str, Any], log_prior: Array) -> None:
        mean, A, covariance = (_array(part[name]) for name in ("mean", "whitener", "covariance"))
        d, form = mean.shape[1], CovarianceForm(part["shared"], part["independent"])
        self.distances, self.ones = Distances(form, mean, A, tile=d), np.ones(d)
        self.log_prior, self.constant = log_prior, log_prior + form.log_det(A) - 0.5 * d * LOG_2PI
        marginals = IndependentMarginals if form.independent else PatternMarginals
        self.marginals = marginals(mean, form.by_class(covariance))

    def __call__(self, values: ArrayLike) -> Array:
        x = _numbers(values)[None]
        if -LARGEST < x.dot(self.ones)[0] < LARGEST:
            return (self.constant - 0.5 * self.distances(x))[0]
        missing = np.isnan(x)
        if b"\1" in np.isinf(x).tobytes():  # in a third of the time of `any`
            raise ValueError("row holds infinity, which the model takes for no number")
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers beyond those whose squares are some
            squares, log_det = self.marginals(x, missing)
        seen = missing.tobytes().count(0)  # in a tenth of the time of numpy's sums
        return (self.log_prior - 0.5 * (squares + log_det + seen * LOG_2PI))[0]


class _States(dict[Any, int]):
    """The places of a feature's states."""

    def place(self, value: Any) -> int:
        """The place of a value, `UNKNOWN` if it is missing or not among the states."""
        if is_missing(value):
            return UNKNOWN
        state, kind = next(iter(self), None), kind_of(type(value))
        if kind != TEXT if isinstance(state, str) else kind not in ARITHMETIC:
            raise ValueError(f"row holds {value!r} where the model has states such as {state!r}")
        return self.get(value, UNKNOWN)

    __missing__ = place


class _Table:
    """Features with states, by their codes or names; each may depend on others."""

    def __init__(self, part: dict[str, Any], log_prior: Array) -> None:
        self.log_prior, log_prob = log_prior, _array(part["log_prob"])
        self.states = [_States(zip(states, range(len(states)))) for states in part["states"]]
        families = Families(part["parents"], np.array([*map(len, self.states)]))
        families.lay_out()
        tables = zip(families.members, families.split(_possible(log_prob)))
        self.complete = TableSum([*tables], len(log_prob), len(self.states))
        self.marginals = RowMarginal(families, families.split(log_prob)) if families.has_arcs else None

    def __call__(self, values: Any) -> Array:
        is_plain = isinstance(values, np.ndarray) and values.dtype.kind in "fiubU"
        values = values.tolist() if is_plain else values
        look_up = getitem if is_plain or PLAIN.issuperset(map(type, values)) else _States.place
        found = [*map(look_up, self.states, values)]
        places = np.fromiter(found, np.intp, len(found))
        joint = self.complete(places) + self.log_prior
        return joint + self.marginals(places) if self.marginals and UNKNOWN in found else joint


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
        return total + self.log_prior


KINDS: dict[str, Callable[[dict[str, Any], Array], Any]] = {"gaussian": _Gaussian, "table": _Table, "binary": _Binary}


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
