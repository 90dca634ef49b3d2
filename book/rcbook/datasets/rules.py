"""The rules of ``data/variants.csv``: which rows and columns a source used, and categories as numbers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "?", "nan", "NaN")


@dataclass
class Table:
    """The working state of a load: features as strings or numbers, classes, and the part of each row."""

    columns: list[NDArray]
    names: list[str]
    nominal: list[bool]
    target: NDArray
    part: NDArray

    def rows(self, keep: NDArray) -> None:
        self.columns = [column[keep] for column in self.columns]
        self.target, self.part = self.target[keep], self.part[keep]

    def features(self, keep: Iterable[int]) -> None:
        keep = list(keep)
        self.columns = [self.columns[j] for j in keep]
        self.names = [self.names[j] for j in keep]
        self.nominal = [self.nominal[j] for j in keep]


def _missing(column: NDArray) -> NDArray[np.bool_]:
    return np.isin(column, MISSING) if column.dtype == object else np.isnan(column)


def _smallest_class_variance(column: NDArray, target: NDArray) -> float:
    values = column.astype(float)
    return min(values[target == label].var() for label in np.unique(target))


def _drop_missing(table: Table) -> None:
    table.rows(~np.any([_missing(column) for column in table.columns], axis=0))


def _min_class_size(table: Table, size: str) -> None:
    _, inverse, counts = np.unique(table.target, return_inverse=True, return_counts=True)
    table.rows((counts >= int(size))[inverse])


def _min_within_class_variance(table: Table, cut: str) -> None:
    spread = [_smallest_class_variance(column, table.target) for column in table.columns]
    table.features(np.flatnonzero(np.array(spread) >= float(cut)))


def _drop_constant(table: Table) -> None:
    table.features(j for j, column in enumerate(table.columns) if np.any(column != column[0]))


def _bin_class(table: Table, *upper: str) -> None:
    table.target = (
        np.digitize(table.target.astype(float), [float(u) for u in upper], right=True).astype(str).astype(object)
    )


def _strip_class(table: Table, suffix: str) -> None:
    table.target = np.array([label.removesuffix(suffix) for label in table.target], dtype=object)


def _class_from(table: Table, column: str) -> None:
    at = int(column) - 1
    table.target = table.columns[at]
    table.features(j for j in range(len(table.columns)) if j != at)


def _class_letter(table: Table) -> None:
    table.target = np.array([label[0] for label in table.target], dtype=object)


def _nominal(table: Table, *which: str) -> None:
    table.nominal = [nominal or not which or str(j + 1) in which for j, nominal in enumerate(table.nominal)]


RULES: dict[str, Callable[..., None]] = {
    "skip_rows": lambda table, count: table.rows(np.arange(len(table.target)) >= int(count)),
    "drop_missing": _drop_missing,
    "min_class_size": _min_class_size,
    "min_within_class_variance": _min_within_class_variance,
    "drop_constant": _drop_constant,
    "drop_features": lambda table, *which: table.features(
        j for j in range(len(table.columns)) if str(j + 1) not in which
    ),
    "bin_class": _bin_class,
    "strip_class": _strip_class,
    "class_from": _class_from,  # a feature takes the place of the class
    "class_letter": _class_letter,  # the first letter of the class is the class
    "drop_unlabelled": lambda table: table.rows(~_missing(table.target)),
    "nominal": _nominal,  # features, by default all, whose numbers are codes of categories
}


def stack(tables: list[Table]) -> Table:
    """The rows of several tables with the same columns, one below the other."""
    first = tables[0]
    return Table(
        [np.concatenate(columns) for columns in zip(*(t.columns for t in tables), strict=True)],
        first.names,
        first.nominal,
        np.concatenate([t.target for t in tables]),
        np.concatenate([t.part for t in tables]),
    )


def encode(column: NDArray) -> tuple[NDArray[np.float64], list[str] | None]:
    """Numbers as they are; other categories by their rank in alphabetical order; missing values as NaN."""
    missing = _missing(column)
    try:
        return np.where(missing, "nan", column).astype(float) if column.dtype == object else column, None
    except ValueError:
        categories = sorted(set(column[~missing]))
        rank = {category: float(code) for code, category in enumerate(categories)}
        return np.array([rank.get(value, np.nan) for value in column]), categories
