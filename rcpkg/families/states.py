"""Columns of text, made codes 0, 1, 2, … at the door, whose names are remembered."""

from collections.abc import Mapping
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_numeric_dtype
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.checks import check_sequence, column_label
from rcpkg.columns import in_columns
from rcpkg.families.count_model import CountModel
from rcpkg.families.family import ConjugateClassifier
from rcpkg.families.portions import Seen
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import slices
from rcpkg.rows import Block, Blocks

STATE_OF_GAPS = "give missing values a state of their own"  # in place of gaps that calibration cannot take
UNKNOWN = ("skip", "impossible")  # what a state that is not known does to a row
LARGEST_CODE = 2**20  # a category beyond it is taken for an identifier or a measurement
BLOCK_ENTRIES = 2**20  # of rows that are encoded at a time: the copies stay small


def row_blocks(X: Array) -> list[slice]:
    """Blocks of rows, of some `BLOCK_ENTRIES` entries each."""
    return slices(X.shape[0], max(1, BLOCK_ENTRIES // max(1, X.shape[1])))


def holds_numbers(X: Any) -> bool:
    """Whether no column of X, a frame or what numpy makes an array of, holds text or other objects."""
    if isinstance(X, pd.DataFrame):
        return all(is_numeric_dtype(dtype) for dtype in X.dtypes)
    try:
        return issparse(X) or np.asarray(X).dtype.kind in "biufc"
    except ValueError:  # rows of several lengths, which validation refuses
        return True


class NamedCategories(ConjugateClassifier):
    """A model that takes columns of text: each name is coded by its place among those of the training rows.

    Names that later calls of ``partial_fit`` bring are appended, so that codes keep their meaning. A name unseen in
    training gets the code after the last, a missing one NaN. Numbers stay as they are; "02" and "2" are two names.
    """

    _names: Mapping[int, NDArray[np.object_]] = MappingProxyType({})  # of each column of text, by their codes

    def check_X(self, X: ArrayLike) -> Array:
        return super().check_X(self._coded(X))

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        return super()._check_rows(self._coded(X, learns=True, reset=reset), y, reset)

    def _take_on(self, seen: list[Seen]) -> None:
        super()._take_on(seen)
        columns = {j for of in seen for j in of.names}
        self._names = {j: _merged([of.names[j] for of in seen if j in of.names]) for j in sorted(columns)}

    def _gathered(self, seen: list[Seen]) -> Array:
        """With the codes of the names of all blocks."""
        for of in seen:
            for j, names in of.names.items():
                codes, places = of.X[:, j], _places(names, self._names[j])
                there = ~np.isnan(codes)
                codes[there] = places[codes[there].astype(np.intp)]
        return super()._gathered(seen)

    def _coded(self, X: Any, learns: bool = False, reset: bool = False) -> Any:
        """X with codes in the place of text, columns keeping their names; ``learns`` the names, or further ones."""
        X = in_columns(X)
        if reset:
            self._names = {}
        if (holds_numbers(X) and not self._names) or (not reset and self._has_other_columns(X)):
            return X
        objects = X.to_numpy(dtype=object) if isinstance(X, pd.DataFrame) else np.asarray(X, dtype=object)
        if objects.ndim != 2:
            return X  # which validation refuses
        is_text = [any(isinstance(value, str) for value in column) for column in objects.T]
        if not any(is_text) and not self._names:
            return X
        if not self.__sklearn_tags__().input_tags.string:
            raise ValueError(
                f"{column_label(X, is_text.index(True))} holds text; {type(self).__name__} takes numbers only"
            )
        names = dict(self._names)
        codes = np.empty(objects.shape)
        for j, values in enumerate(objects.T):
            if (j in names) != is_text[j] and not reset and not pd.isna(values).all():
                was, has = ("numbers", "text") if is_text[j] else ("text", "numbers")
                raise ValueError(f"{column_label(X, j)} held {was} when the model was fitted, and holds {has}")
            if is_text[j] and learns:
                names[j] = _with_new(names.get(j, np.empty(0, dtype=object)), values, column_label(X, j))
            codes[:, j] = _places(values, names[j]) if j in names else _numbers(values, column_label(X, j))
        if learns:
            self._names = names
        columns = getattr(X, "columns", None)
        return codes if columns is None else pd.DataFrame(codes, columns=list(columns))

    def _has_other_columns(self, X: Any) -> bool:
        """Whether a frame names other columns than the training rows, or in another order: validation refuses it."""
        known, columns = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        return known is not None and columns is not None and list(columns) != list(known)


class CodedCategories(NamedCategories, CountModel):
    """A model of features with states: the codes of the training rows, or 0 … r_j − 1 for declared numbers of states.

    Codes that are none of them, and missing ones, have no place among the states.
    """

    n_states: int | ArrayLike | None
    prior_strength: float | ArrayLike
    unknown: str
    _layout = "n_states_"  # the attribute without which there are no cells

    def indicators(self, places: NDArray[np.integer]) -> csr_array:
        """Rows with ones in the cells that these places of states stand for, sparse; a place −1 counts nothing."""
        raise NotImplementedError

    def encode(self, X: Array) -> csr_array:
        """Indicators of training rows; raises where a state was not declared."""
        return self.indicators(self.known_places(X))

    def statistics(self, X: Array | csr_array, weights: Array) -> Statistics:
        """Class counts (r,) and cell counts (r, K); a cell counts the rows in which all that it tells of is known."""
        if not issparse(X):
            if not hasattr(self, self._layout):
                self.prepare(X)
                self.learn_structure(Blocks([Block(X, np.maximum(weights, 0.0))]))
            X = self.encode(X)
        return Statistics(count=weights.sum(axis=0), cells=np.ascontiguousarray((X.T @ weights).T))

    def redraw(self, X: Array | csr_array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Each feature permuted among the rows of a class."""
        drawn = X.toarray() if issparse(X) else X.copy()
        for c in np.unique(y):
            rows = drawn[y == c]
            drawn[y == c] = np.take_along_axis(rows, rng.uniform(size=rows.shape).argsort(axis=0), axis=0)
        return drawn

    def _counted(self, log_prob: Array) -> Array:
        """Log probabilities, with 0 for the cells that have probability zero in every class, which are skipped."""
        nowhere = np.isneginf(log_prob).all(axis=0)
        return np.where(nowhere, 0.0, log_prob) if self.unknown == "skip" and nowhere.any() else log_prob

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = self.unknown == "skip"
        return tags

    def _check_strengths(self, d: int) -> None:
        if np.ndim(self.prior_strength) == 0:
            super()._check_strengths(d)
        elif len(check_sequence("prior_strength", self.prior_strength, 0)) != d:
            raise ValueError(f"prior_strength must hold {d} numbers, one a feature; got {len(self.prior_strength)}")

    def representatives(self, X: Array) -> Array:
        """Each state of each feature."""
        columns = [np.unique(column) for column in X.T]
        return np.transpose([np.resize(column, max(map(len, columns))) for column in columns])

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be one of {', '.join(UNKNOWN)}; got {self.unknown!r}")
        self._set_states([np.empty(0, dtype=np.intp)] * X.shape[1], X)

    def _set_states(self, known: list[NDArray[np.intp]], X: Array) -> None:
        """Take on the states of each feature: those declared, or those ``known`` and those of rows X."""
        learns = self.n_states is None and self.unknown == "skip"
        largest = np.array([states.max(initial=-1) for states in known]) + 1
        for rows in row_blocks(X):
            codes = self._codes(X[rows])
            upper = codes.max(axis=0) + 2  # one more than the codes 0, 1, …: the first counts missing values
            largest = np.maximum(largest, upper - 1)
            if learns:
                starts = np.cumsum(upper) - upper
                seen = np.bincount((codes + (starts + 1)).ravel(), minlength=int(upper.sum())) > 0
                by_feature = np.split(seen, starts[1:])
                known = [np.union1d(old, np.flatnonzero(new[1:])) for old, new in zip(known, by_feature)]
        if learns:
            self._states = known
        else:
            sizes = largest if self.n_states is None else self._declared(largest)
            self._states = [np.arange(k) for k in sizes]
        self.categories_ = [self._names[j][s] if j in self._names else s for j, s in enumerate(self._states)]
        self.n_states_ = np.array([len(states) for states in self._states])
        if not self.n_states_.all():
            empty = self._feature_name(int(np.argmin(self.n_states_)))
            way = "begin partial_fit with rows that have some" if self._names else "declare its n_states"
            raise ValueError(f"{empty} holds missing values only: leave it out, or {way}")

    def _declared(self, largest: NDArray[np.intp]) -> NDArray[np.intp]:
        """``n_states``, one a feature, checked against the least numbers that the rows need."""
        if self._names:
            text = self._feature_name(min(self._names))
            raise ValueError(f"n_states must be None for text, whose states are its names; {text} holds text")
        declared = np.asarray(self.n_states)
        if declared.dtype.kind not in "iu" or declared.shape not in ((), largest.shape) or declared.min() < 1:
            raise ValueError(
                f"n_states must be a positive integer or {len(largest)} of them, one a feature; got {self.n_states!r}"
            )
        declared = np.broadcast_to(declared, largest.shape).astype(np.intp)
        if np.any(declared < largest):
            j = int(np.argmax(declared < largest))
            raise ValueError(
                f"{self._feature_name(j)} holds the state {largest[j] - 1}, but n_states declares {declared[j]}; "
                "states are coded 0, 1, … and n_states must exceed the largest"
            )
        return declared

    def _codes(self, X: Array) -> NDArray[np.int32]:
        """Integers, −1 where values are missing."""
        skips, largest = self.unknown == "skip", X.max()
        if skips and np.isnan(largest):
            X = np.where(np.isnan(X), -1.0, X)
            largest = X.max()
        least = -1 if skips else 0
        if X.min() < least or largest > LARGEST_CODE:
            self._refuse_codes(least > X, f"Negative values in data passed to {type(self).__name__} (input X)")
            self._refuse_codes(X > LARGEST_CODE, f"Values above {LARGEST_CODE}")
        codes = X.astype(np.int32)
        self._refuse_codes(codes != X, "Values that are not integers")
        return codes

    def _refuse_codes(self, bad: NDArray[np.bool_], fault: str) -> None:
        """Complain of the first feature that has bad values, if there are any."""
        if bad.any():
            raise ValueError(
                f"{fault}: {self._feature_name(int(np.argmax(bad.any(axis=0))))}; categories must be coded 0, 1, 2, …, "
                "or be text (the classes OrdinalEncoder and KBinsDiscretizer of sklearn.preprocessing make codes)"
            )

    def places(self, X: Array) -> NDArray[np.int32]:
        """Place of each entry of rows X among the states of its feature, shape (n, d); −1 where it is none of them."""
        return self._places_of(self._codes(X))

    def _places_of(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        if all(len(states) == states[-1] + 1 for states in self._states):
            beyond = (codes.max(axis=0, initial=-1) >= self.n_states_).any()
            return np.where(codes >= self.n_states_, -1, codes) if beyond else codes
        places = np.full_like(codes, -1)
        for j, states in enumerate(self._states):
            place = np.searchsorted(states[:-1], codes[:, j])
            places[:, j] = np.where(states[place] == codes[:, j], place, -1)
        return places

    def known_places(self, X: Array) -> NDArray[np.int32]:
        """Places of training rows; raises where a state was not declared."""
        all_places = np.empty(X.shape, dtype=np.int32)
        for rows in row_blocks(X):
            codes = self._codes(X[rows])
            all_places[rows] = places = self._places_of(codes)
            if places is not codes and np.any(unknown := (places < 0) & (codes >= 0)):
                j = int(np.argmax(unknown.any(axis=0)))
                raise ValueError(
                    f"{self._feature_name(j)} holds the state {codes[unknown[:, j], j].max()}, but only "
                    f"{self.n_states_[j]} states are known; declare n_states"
                )
        return all_places


def _with_new(names: NDArray[np.object_], values: NDArray[np.object_], label: str) -> NDArray[np.object_]:
    """Names, and after them those of the values that are new, sorted."""
    present = values[~pd.isna(values)]
    other = next((value for value in present if not isinstance(value, str)), None)
    if other is not None:
        raise ValueError(f"{label} holds text and other values ({other!r}); make all of it text with astype(str)")
    return np.append(names, np.array(sorted(set(present) - set(names)), dtype=object))


def placed(model: CodedCategories, block: Block) -> Block:
    """A block with the places of states, by a ``model``."""
    return block._replace(X=model.known_places(block.X))


def counted_in_parts(model: CodedCategories, block: Block) -> Statistics:
    """The statistics s(X, Y) of a block by a ``model``, encoded a part at a time."""
    X, weights = block.X, block.weights(len(model.classes_))
    parts = [slice(None)] if issparse(X) else row_blocks(X)
    return reduce(add, (model.statistics(model.encode(X[rows]), weights[rows]) for rows in parts))


def _merged(names: list[NDArray[np.object_]]) -> NDArray[np.object_]:
    """All of several lists of names, sorted."""
    return np.array(sorted(set().union(*names)), dtype=object)


def _places(values: NDArray[np.object_], names: NDArray[np.object_]) -> Array:
    """Place of each value among the names, the place after the last where it is none of them, NaN where missing."""
    places = pd.Index(names, dtype=object).get_indexer(pd.Index(values, dtype=object)).astype(float)
    places[places < 0] = len(names)
    places[pd.isna(values)] = np.nan
    return places


def _numbers(values: NDArray[np.object_], label: str) -> Array:
    """Numbers, NaN where they are missing."""
    missing = pd.isna(values)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~missing] = values[~missing]
    except (TypeError, ValueError):
        kind = type(values[~missing][0]).__name__
        raise ValueError(
            f"{label} holds values of type {kind}, neither numbers nor text; make them text with astype(str)"
        ) from None
    return numbers
