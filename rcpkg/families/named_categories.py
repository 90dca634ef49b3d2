"""Columns of text, made codes 0, 1, 2, … at the door, whose names are remembered."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_numeric_dtype
from scipy.sparse import issparse

from rcpkg.base import Array
from rcpkg.checks import feature_name, has_other_columns
from rcpkg.columns import in_columns
from rcpkg.families.classifier import ClosedFormClassifier, ConjugateClassifier
from rcpkg.families.portions import BlockSummary


def holds_numbers(X: Any) -> bool:
    """Whether no column of X, a frame or what numpy makes an array of, holds text or other objects."""
    if isinstance(X, pd.DataFrame):
        return all(is_numeric_dtype(dtype) for dtype in X.dtypes)
    try:
        return issparse(X) or np.asarray(X).dtype.kind in "biufc"
    except ValueError:  # rows of several lengths, which validation refuses
        return True


class NamedCategories(ClosedFormClassifier):
    """A classifier that takes columns of text: each name is coded by its place among those of the training rows.

    Names that later calls of ``partial_fit`` bring are appended, so that codes keep their meaning. A name unseen in
    training gets the code after the last, a missing one NaN. Numbers stay as they are; "02" and "2" are two names.
    """

    _names: ClassVar[Mapping[int, NDArray[np.object_]]] = MappingProxyType({})  # of each column of text, by their codes

    def _description(self) -> dict[str, Any]:
        return super()._description() | {"names": self._names}

    def _check_X(self, X: ArrayLike) -> Array:
        return super()._check_X(self._coded(X))

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        return super()._check_rows(self._coded(X, learns=True, reset=reset), y, reset)

    def _set_columns(self, summaries: list[BlockSummary]) -> None:
        super()._set_columns(summaries)
        columns = {j for block in summaries for j in block.names}
        merged = {j: set().union(*(block.names.get(j, ()) for block in summaries)) for j in sorted(columns)}
        self._names = {j: np.array(sorted(names), dtype=object) for j, names in merged.items()}

    def _all_representatives(self, summaries: list[BlockSummary]) -> Array:
        """The representatives of all blocks, whose names are coded by the names of all of them."""
        for block in summaries:
            for j, names in block.names.items():
                codes, places = block.X[:, j], _places(names, self._names[j])
                there = ~np.isnan(codes)
                codes[there] = places[codes[there].astype(np.intp)]
        return super()._all_representatives(summaries)

    def _coded(self, X: Any, learns: bool = False, reset: bool = False) -> Any:
        """X with codes in the place of text, columns keeping their names; ``learns`` the names, or further ones."""
        X = in_columns(X)
        if reset:
            self._names = {}
        if (holds_numbers(X) and not self._names) or (not reset and has_other_columns(self, X)):
            return X
        objects = X.to_numpy(dtype=object) if isinstance(X, pd.DataFrame) else np.asarray(X, dtype=object)
        if objects.ndim != 2:
            return X  # which validation refuses
        is_text = [any(isinstance(value, str) for value in column) for column in objects.T]
        if not any(is_text) and not self._names:
            return X
        if not self.__sklearn_tags__().input_tags.string:
            return X  # likewise
        names = dict(self._names)
        codes = np.empty(objects.shape)
        unseen = () if reset or not hasattr(self, "family_") else self.family_.unseen
        for j, values in enumerate(objects.T):
            if j in unseen:  # the training rows hold nothing to compare values with
                codes[:, j] = np.where(pd.isna(values) | (not learns), np.nan, 0.0)
                continue
            if (j in names) != is_text[j] and not reset and not pd.isna(values).all():
                was, has = ("numbers", "text") if is_text[j] else ("text", "numbers")
                raise ValueError(f"{feature_name(X, j)} held {was} when the model was fitted, and holds {has}")
            if is_text[j] and learns:
                names[j] = _with_new(names.get(j, np.empty(0, dtype=object)), values)
            codes[:, j] = _places(values, names[j]) if j in names else values
        if learns:
            self._names = names
        columns = getattr(X, "columns", None)
        return codes if columns is None else pd.DataFrame(codes, columns=list(columns))


class CategoricalClassifier(NamedCategories, ConjugateClassifier):
    """A classifier of features with states."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def n_states_(self) -> NDArray[np.intp]:
        """Numbers of states of the features, shape (d,)."""
        return self.family_.n_states_

    @property
    def categories_(self) -> list[NDArray]:
        """The states of each feature, codes or names."""
        return self.family_.categories_


def _with_new(names: NDArray[np.object_], values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Names, and after them those of the values that are new, sorted."""
    present = values[~pd.isna(values)]
    return np.append(names, np.array(sorted(set(present) - set(names)), dtype=object))


def _places(values: NDArray[np.object_], names: NDArray[np.object_]) -> Array:
    """Place of each value among the names, the place after the last where it is none of them, NaN where missing."""
    places = pd.Index(names, dtype=object).get_indexer(pd.Index(values, dtype=object)).astype(float)
    places[places < 0] = len(names)
    places[pd.isna(values)] = np.nan
    return places
