"""Blocks of training rows: what a model learns of each, what they must have in common, and class numbers for labels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from rcpkg.base import Array
from rcpkg.checks import check_weights, feature_name
from rcpkg.columns import as_labels
from rcpkg.families.constants import BLOCK_SAMPLE, TYPICAL_ROWS
from rcpkg.families.statistics import Statistics
from rcpkg.rows import Block, Rows, check_lengths

COLUMNS = ("n_features_in_", "feature_names_in_", "_columns", "columns_")


class BlockSummary(NamedTuple):
    """What a classifier learns from one block alone.

    Its ``name`` and number of rows that count, its sorted ``labels``, the attributes that describe its ``columns``,
    the ``names`` in those of text, by their numbers, and representatives X.
    """

    name: str
    n: int
    labels: NDArray
    columns: dict[str, Any]
    names: dict[int, NDArray]
    X: Array


def describe_block(model: Any, block: Block) -> BlockSummary:
    """Validate a block, and tell what ``model`` learns from it alone."""
    model = clone(model)
    if block.y is None:
        raise ValueError("it has no labels: name the column with label=…, or take Rows.from_arrays(X, y)")
    weight = weights_of(block)
    X, y = model._check_rows(block.X, block.y)
    counting = Block(X, y, weight).counting()
    columns = {name: value for name, value in vars(model).items() if name in COLUMNS}
    family = model._new_family().describe(**model._description())
    representatives = family.representatives(counting.X) if counting.n else counting.X
    return BlockSummary(block.name, counting.n, pd.unique(counting.y), columns, dict(family.names), representatives)


def check_same_columns(first: BlockSummary, other: BlockSummary) -> None:
    """Refuse two blocks whose columns differ in number or name, or whose labels in kind."""
    names, here = (some.columns.get("feature_names_in_") for some in (first, other))
    for some, others, lacking, having in ((here, names, other, first), (names, here, first, other)):
        absent = [] if some is None or others is None else [name for name in others if name not in some]
        if absent:
            raise ValueError(f"{lacking.name} has no column {absent[0]!r}, which {having.name} has")
    if other.columns["n_features_in_"] != first.columns["n_features_in_"]:
        raise ValueError(
            f"{other.name} has {other.columns['n_features_in_']} columns, and {first.name} has "
            f"{first.columns['n_features_in_']}"
        )
    if (here is None) != (names is None) or (names is not None and (here != names).any()):
        differ = "no names of columns" if here is None or names is None else repr(here[here != names][0])
        raise ValueError(f"{other.name} has {differ} in another place than {first.name}: give both the same columns")
    if other.labels.dtype.kind != first.labels.dtype.kind and "O" in other.labels.dtype.kind + first.labels.dtype.kind:
        raise ValueError(f"{other.name} has labels of another type than {first.name}: make them one type")


def check_blocks(summaries: list[BlockSummary]) -> None:
    """Refuse blocks of which no row counts, or of which a column holds text in one and numbers in another."""
    if not any(block.n for block in summaries):
        raise ValueError("there are no rows of positive weight")
    for j in sorted({j for block in summaries for j in block.names}):
        text = next(block for block in summaries if j in block.names)
        for block in summaries:
            if j not in block.names and block.n and not np.isnan(block.X[:, j]).all():
                name = feature_name(SimpleNamespace(**block.columns), j)
                raise ValueError(f"{block.name}: {name} holds numbers, and text in {text.name}: make it one of them")


def numbered(model: Any, block: Block) -> Block:
    """Validated rows with class numbers, those that count, for a ``model`` that knows all blocks."""
    counting = Block(model._check_X(block.X), as_labels(block.y).ravel(), weights_of(block), block.name).counting()
    pair = model.classes_, counting.y
    classes, y = (pd.Index(labels.astype(int) if labels.dtype.kind == "b" else labels) for labels in pair)
    y = classes.get_indexer(y)
    if y.min(initial=0) < 0:
        raise ValueError("its labels are not those of the first pass: the source has changed; make the Rows anew")
    return counting._replace(y=y)


def encoded(family: Any, block: Block) -> Block:
    """A block as a ``family`` encodes it."""
    return block._replace(X=family.encode(block.X))


def counted(family: Any, block: Block) -> Statistics:
    """The statistics s(X, Y) of an encoded block, by the weights of its rows."""
    return family.statistics(block.X, block.weights(len(family.classes_)))


def chosen(columns: NDArray[np.intp], block: Block) -> Block:
    """Some of the ``columns``."""
    return block._replace(X=block.X[:, columns])


def part_of(place: int, block: Block) -> Block:
    """The columns of an encoded block that belong to the family at this ``place`` of a product."""
    return block._replace(X=block.X[place])


def rows_at(X: Any, index: NDArray[np.intp] | slice) -> Any:
    """Rows of encoded data, which is an array, a sparse array or a tuple of these."""
    return tuple(rows_at(part, index) for part in X) if isinstance(X, tuple) else X[index]


def weights_of(block: Block) -> Array | None:
    """Validated weights of a block, which may all be zero, as long as those of another are not."""
    weight = check_lengths(block).weight
    return weight if weight is None or not np.any(weight) else check_weights(weight, block.n)


def has_gaps(block: Block) -> bool:
    """Whether values are missing."""
    return bool(np.isnan(block.X.sum()))


def typical_rows(X: Array) -> Array:
    """Some `BLOCK_SAMPLE` rows, evenly spread, and of each column the least, the greatest and a missing value."""
    n = X.shape[0]
    some = X[:: max(1, n // BLOCK_SAMPLE)]
    if issparse(X):
        if not X.nnz:
            return X
        extremes = X.tocoo().coords[0][[np.argmin(X.data), np.argmax(X.data)]]
        return X[np.unique([*range(0, n, max(1, n // BLOCK_SAMPLE)), *extremes])]
    missing = np.isnan(X)
    if not missing.any():
        return np.vstack([some, X.min(axis=0), X.max(axis=0)])
    gap = np.where(missing.any(axis=0), np.nan, X[0])
    return np.vstack([some, np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0), gap])


def rows_and_weight(n_classes: int, block: Block) -> Statistics:
    """Rows and weight of each class."""
    numbers = np.bincount(block.y, minlength=n_classes)
    return Statistics(rows=numbers, weight=np.bincount(block.y, block.weight, minlength=n_classes))


def first_rows(rows: Rows, n_classes: int) -> list[NDArray[np.intp]]:
    """The first `TYPICAL_ROWS` rows of each class, each as the number of its block and its place there."""
    found = [np.empty((0, 2), dtype=np.intp)] * n_classes
    for number, block in enumerate(rows):
        for y, known in enumerate(found):
            places = np.flatnonzero(block.y == y)[: TYPICAL_ROWS - len(known)]
            found[y] = np.vstack([known, np.column_stack([np.full(len(places), number), places])])
        if all(len(known) == TYPICAL_ROWS for known in found):
            break
    return found
