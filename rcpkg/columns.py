"""What is in the columns of a table, in labels and in weights: decided once, by types, before conversion.

Whatever holds a column (a frame of any package, an array, a list, sparse rows), it is taken for numbers or for text, or
refused by its name, in the same way.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

BEYOND = 2 ** (np.finfo(float).nmant + 1)  # floats, of 53 binary digits, tell smaller integers apart
MISSING, BOOLEANS, INTEGERS, NUMBERS, TEXT = "missing values", "booleans", "integers", "numbers", "text"
DATES, DURATIONS, BYTES, COMPLEX, NESTED = "dates or times", "durations", "bytes", "complex numbers", "nested values"
ARITHMETIC = {BOOLEANS, INTEGERS, NUMBERS}
#: What is refused -> what to make of it
REMEDIES = {
    DATES: "make numbers of them, such as days since the first",
    DURATIONS: "make numbers of them, such as seconds",
    BYTES: "decode them, to text or numbers",
    COMPLEX: "give their real and imaginary parts as features",
    NESTED: "make a feature of each of their parts",
}
_OF_TYPES = (
    ((type(None), type(pd.NA), type(pd.NaT)), MISSING),
    ((bool, np.bool_), BOOLEANS),
    ((timedelta, np.timedelta64, pd.offsets.BaseOffset), DURATIONS),  # numpy's count as integers
    (Integral, INTEGERS),
    ((Real, Decimal), NUMBERS),
    (Complex, COMPLEX),
    (str, TEXT),
    ((bytes, bytearray, memoryview), BYTES),
    ((date, time, np.datetime64, pd.Period), DATES),
    ((Collection, np.ndarray, np.void), NESTED),
)
EXACT = {Decimal: "decimal numbers", Fraction: "fractions"}  # numbers that are no labels
_OF_KINDS = {"M": DATES, "m": DURATIONS, "c": COMPLEX, "S": BYTES, "V": NESTED}  # of dtypes of numpy


@cache
def kind_of(value: type) -> str:
    """What a value of this type is: one of the kinds, or its name."""
    return next((kind for types, kind in _OF_TYPES if issubclass(value, types)), f"values of type {value.__name__}")


def _refuse(label: str, kind: str) -> NoReturn:
    """Name a column that holds neither numbers nor text, and what to make of it."""
    what = f"{label} holds {kind}: {REMEDIES.get(kind, 'make them text with astype(str)')}"
    if kind == COMPLEX:
        raise ValueError(f"Complex data not supported: {what}")
    if kind == NESTED:  # a type of error that the checks of scikit-learn ask for
        raise TypeError(f"each argument must be a string or a number; {what}")
    raise ValueError(what)


def _check_integers(label: str, least: Any, greatest: Any) -> None:
    if greatest >= BEYOND or least <= -BEYOND:
        raise ValueError(f"{label} holds integers beyond 2**53, which floats cannot tell apart: subtract an offset")


def is_missing(value: Any) -> bool:
    """Whether a value is None, pd.NA, pd.NaT or NaN."""
    if type(value) is float:  # as in most rows that a scorer reads
        return value != value
    kind = kind_of(type(value))
    return kind == MISSING or (kind == NUMBERS and (value.is_nan() if isinstance(value, Decimal) else value != value))


def _kinds(values: NDArray[np.object_]) -> tuple[set[str], NDArray[np.bool_]]:
    """The kinds of some Python objects, and which of them are missing."""
    kinds = {kind_of(cls) for cls in set(map(type, values))}
    if not kinds & {MISSING, NUMBERS}:
        return kinds, np.zeros(len(values), dtype=bool)
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    return {kind_of(cls) for cls in set(map(type, values[~missing]))}, missing


def _of_objects(values: NDArray[np.object_], label: str) -> NDArray:
    """A column of Python objects as floats, or as text with None where it is missing."""
    kinds, missing = _kinds(values)
    if odd := sorted(kinds - ARITHMETIC - {TEXT}):
        _refuse(label, odd[0])
    if kinds == {TEXT}:
        return np.where(missing, None, values) if missing.any() else values
    if TEXT in kinds:
        other = next(value for value in values[~missing] if not isinstance(value, str))
        raise ValueError(f"{label} holds text and other values ({other!r}); make all of it text with astype(str)")
    whole = [value for value in values[~missing] if not isinstance(value, float | np.floating)]
    if whole and not any(isinstance(value, Decimal) and value.is_infinite() for value in whole):  # refused later
        _check_integers(label, min(whole), max(whole))
    column = np.full(len(values), np.nan)
    column[~missing] = values[~missing]
    return column


def _of_series(series: nw.Series, label: str) -> NDArray:
    """A column of a frame."""
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if not dtype.is_numeric() and dtype != nw.Boolean:
        return _of_objects(_objects(series), label)
    exact = dtype.is_integer() or dtype.is_decimal()
    if exact and len(series) > series.null_count():
        _check_integers(label, series.min(), series.max())
    if series.null_count() or dtype.is_decimal() or dtype == nw.Int128:
        series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy())


def _series(values: Any) -> nw.Series | None:
    """A column of any package of frames; None of other values, among them those that numpy knows."""
    if isinstance(values, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v2 as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _objects(series: nw.Series) -> NDArray[np.object_]:
    """The values of a column as Python objects."""
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return values


def unmasked(X: Any) -> Any:
    """X, with NaN in the place of what a mask hides."""
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.array(X)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.any(X.mask):
        return X.data
    return X.astype(float if X.dtype.kind in "biuf" else object).filled(np.nan)


def in_table(X: Any) -> Any:
    """X, batches of rows and arrays of pyarrow as the tables and columns that other packages know, and tuples of rows
    as lists, since tuples of tables are the parts of encoded rows; refuses frames that are not in memory."""
    if isinstance(X, tuple) and not any(len(getattr(part, "shape", ())) > 1 for part in X[:1]):
        return list(X)
    if type(X).__module__ == "pyarrow.lib":
        import pyarrow

        if isinstance(X, pyarrow.RecordBatch):
            return pyarrow.Table.from_batches([X])
        if isinstance(X, pyarrow.Array):
            return pyarrow.chunked_array([X])
    if hasattr(X, "collect") or hasattr(X, "compute"):
        import narwhals.stable.v2 as nw

        if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
            raise ValueError(
                f"X and y must be in memory; got a {type(X).__name__} of {type(X).__module__.partition('.')[0]}: "
                "collect or compute it first, or take Rows.from_dask"
            )
    return X


def in_columns(X: Any) -> Any:
    """X as a frame of pandas if it is any frame, or as an array or sparse rows, with columns of numbers or of text.

    Numbers of a frame are floats, integers or booleans of numpy, and NaN where they are missing; text are strings, and
    None or NaN where they are missing. What is no table is left to validation.

    Raises
    ------
    ValueError or TypeError
        Naming the first column that holds something else, text beside numbers, or integers that floats cannot tell
        apart; or a name that several columns have.
    """
    X = in_table(unmasked(X))
    if issparse(X):
        if X.dtype.kind in _OF_KINDS:
            _refuse("X", _OF_KINDS[X.dtype.kind])
        if X.dtype.kind in "iu" and X.nnz:
            data = csr_array(X).data
            _check_integers("X", data.min(), data.max())
        return X
    if isinstance(X, pd.DataFrame):
        return _pandas(X)
    if isinstance(X, np.ndarray | list | tuple):
        return _array(X)
    import narwhals.stable.v2 as nw

    if isinstance(names := getattr(X, "column_names", None), list):
        _check_names(names)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return _array(X)
    columns = {name: _of_series(frame[name], f"feature {name!r}") for name in frame.columns}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)), copy=False)


def _check_names(names: Collection[Any]) -> None:
    repeated = pd.Index(names, dtype=object)
    if not repeated.is_unique:
        raise ValueError(f"X has several columns named {repeated[repeated.duplicated()][0]!r}: rename all but one")


def _pandas(X: pd.DataFrame) -> pd.DataFrame:
    """A frame of pandas; itself where all of its columns are of numpy's numbers or of text."""
    if not X.shape[1]:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required")
    if not X.columns.is_unique:
        _check_names(X.columns)
    changed = {}
    for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes)):
        label = f"feature {name!r}"
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            if dtype.kind in "iu" and len(X):
                _check_integers(label, X.iloc[:, j].min(), X.iloc[:, j].max())
        elif (
            isinstance(dtype, pd.CategoricalDtype)
            and _of_objects(dtype.categories.to_numpy(object), label).dtype == object
        ):
            pass
        elif not isinstance(dtype, pd.StringDtype) or X.iloc[:, j].isna().any():  # pd.NA is no float
            changed[j] = _of_series(_series(X.iloc[:, j]), label)
    if not changed:
        return X
    made = pd.DataFrame({j: changed.get(j, X.iloc[:, j]) for j in range(X.shape[1])}, index=X.index, copy=False)
    return made.set_axis(X.columns, axis=1)


def _array(X: Any) -> Any:
    """An array, whose objects, if it holds some, are in each column numbers or text; X where it is no table."""
    try:
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError:  # parts of several lengths
        array = np.asarray(X, dtype=object)
    if not isinstance(X, np.ndarray) and array.dtype.kind not in "biuO" and array.ndim == 2:
        with np.errstate(invalid="ignore"):  # whether numpy has made all of it text, or floats of large integers
            if array.dtype.kind != "f" or (np.abs(array) >= BEYOND).any():
                array = np.asarray(X, dtype=object)
    kind = array.dtype.kind
    if array.dtype.names:
        raise ValueError("X is an array of records: give it as a frame, pd.DataFrame(X)")
    if kind in _OF_KINDS:
        _refuse("feature 0" if array.ndim == 2 else "X", _OF_KINDS[kind])
    if array.ndim == 2 and array.size:
        if kind in "iu":
            for j in np.flatnonzero((array.max(axis=0) >= BEYOND) | (array.min(axis=0) <= -BEYOND))[:1]:
                _check_integers(f"feature {j}", array[:, j].min(), array[:, j].max())
        if kind == "O":
            return np.column_stack([_of_objects(column, f"feature {j}") for j, column in enumerate(array.T)])
    return array if array.ndim == 2 else X


def summed(X: Any) -> csr_array:
    """Sparse rows with one entry where several are stored at a place, of which the matrix holds the sum."""
    X = csr_array(X)
    if X.has_canonical_format:
        return X
    X = X.copy() if X.dtype.kind == "b" else X.astype(float)  # in which sums of small integers do not overflow
    X.sum_duplicates()
    return X


def _in_array(values: Any) -> NDArray:
    """Labels or weights as an array, of Python objects where they are not of a type of numpy."""
    values = in_table(unmasked(values))
    if (series := _series(values)) is not None:
        values = series.to_numpy() if isinstance(getattr(values, "dtype", None), np.dtype) else _objects(series)
    return np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)


def as_labels(y: Any, name: str = "y") -> Any:
    """Labels as integers, booleans, floats or strings, whatever holds them.

    Raises
    ------
    ValueError
        Saying what y holds, if it is no label, or several kinds of labels, or none in some rows.
    """
    if y is None:
        return y
    array = _in_array(y)
    if array.dtype.kind == "O" and array.ndim == 0:
        raise ValueError(f"{name} must be a column of labels, an array or a list; got {type(y).__name__}")
    labels = array.astype(object).ravel() if array.dtype.kind == "T" else array.ravel()
    missing: Any = labels.dtype.kind == "f" and np.isnan(labels)
    if labels.dtype.kind == "O":
        kinds, missing = _kinds(labels)
    else:
        kinds = {_OF_KINDS.get(labels.dtype.kind, NUMBERS)}
    if np.any(missing):
        raise ValueError(f"Input {name} contains NaN or other missing labels: leave these rows out")
    odd = sorted(kinds - ARITHMETIC - {TEXT})
    if not odd and labels.dtype.kind == "O":
        odd = [EXACT[cls] for cls in EXACT.keys() & set(map(type, labels))]
    if odd:
        raise ValueError(f"{name} holds {odd[0]}, which are no labels: make them text with astype(str)")
    if len(kinds) > 1 and kinds != {INTEGERS, NUMBERS}:
        raise ValueError(
            f"{name} holds {TEXT if TEXT in kinds else BOOLEANS} and other labels: make all of it text with astype(str)"
        )
    if labels.dtype.kind == "O" and len(labels) and kinds != {TEXT}:
        exact = [int(label) for label in labels] if kinds == {INTEGERS} else labels.tolist()  # of one type
        labels = np.array(exact)
        expected = "iu" if kinds == {INTEGERS} else "bf"
        if labels.dtype.kind not in expected or labels.tolist() != exact:  # floats of large integers
            raise ValueError(
                f"{name} holds integers beyond 64 bits, or that floats cannot tell apart: make them text by astype(str)"
            )
    return labels.reshape(array.shape)


def as_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """The weights of rows, which must be numbers, as floats, NaN where they are missing."""
    array = _in_array(values)
    kinds = {_OF_KINDS.get(array.dtype.kind, TEXT if array.dtype.kind in "UT" else NUMBERS)}
    if array.dtype.kind == "O":
        kinds, missing = _kinds(array.ravel())
        array = np.where(missing.reshape(array.shape), np.nan, array)
    if odd := sorted(kinds - ARITHMETIC):
        raise ValueError(f"{name} must hold numbers, one a row; it holds {odd[0]}")
    return array.astype(float)
