"""A block of rows, and tasks whose errors tell of which block they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from rcpkg.linalg import Array, one_hot


class Block(NamedTuple):
    """Some of the rows: X, an array, a frame, a sparse array or a tuple of these; their labels y, or class numbers, or
    weights of the classes (n, r); their weights, if any; and what the block is called in errors."""

    X: Any
    y: Any = None
    weight: Any = None
    name: str = ""

    @property
    def n(self) -> int:
        """Number of rows."""
        X = self.X
        while isinstance(X, tuple):
            X = X[0]
        return X.shape[0] if hasattr(X, "shape") else len(X)

    @property
    def total_weight(self) -> float:
        """Weight of the rows."""
        return float(self.n if self.weight is None else self.weight.sum())

    def weights(self, n_classes: int) -> Array:
        """diag(w) Y, shape (n, ``n_classes``), of class numbers."""
        if np.ndim(self.y) == 2:
            return self.y
        Y = one_hot(self.y, n_classes)
        return Y if self.weight is None else Y * self.weight[:, None]

    def part(self, index: Any) -> Block:
        """Some of the rows."""

        def rows_of(part: Any) -> Any:
            if isinstance(part, tuple):
                return tuple(map(rows_of, part))
            return part if part is None else _safe_indexing(part, index)

        return self._replace(X=rows_of(self.X), y=rows_of(self.y), weight=rows_of(self.weight))

    def counting(self) -> Block:
        """The rows of positive weight: others tell nothing, not even which states there are."""
        if self.weight is None or (present := self.weight > 0).all():
            return self
        return self.part(present)


def check_lengths(block: Block) -> Block:
    """The block; refuses labels or weights of another number than its rows."""
    for name, values in ("y", block.y), ("sample_weight", block.weight):
        if values is not None and (n := _num_samples(values)) != block.n:
            raise ValueError(f"X has {block.n} rows and {name} {n}: it must hold one a row, for the same rows as X")
    return block


def check_names(label: Any, weights: Any) -> None:
    """Refuse what is no name of a column, and one name for labels and weights."""
    for parameter, name in ("label", label), ("weights", weights):
        if name is not None and not isinstance(name, str):
            raise ValueError(f"{parameter} must be the name of a column, a string; got {name!r}")
    if label is not None and label == weights:
        raise ValueError(f"label and weights must be two columns; both are {label!r}")


def attempt(task: Callable[[Block], Any], block: Block) -> Any:
    """What a task makes of a block; its error tells of which block it is."""
    try:
        return task(block)
    except ValueError as error:
        if not block.name or str(error).startswith(block.name):
            raise
        raise type(error)(f"{block.name}: {error}") from error


class OfX:
    """A function of the X of a block."""

    def __init__(self, function: Callable[[Any], Array]) -> None:
        self.function = function

    def __call__(self, block: Block) -> Array:
        return self.function(block.X)
