"""Calibration with gaps in view: rows stand beside copies of themselves from which values are hidden.

The objective is then an average over patterns, Σ_i w_i (K+1)⁻¹ Σ_k log p(y_i | what copy k keeps of x_i), of which the
row as it is is the copy k = 0. A copy is a row with gaps, so that steps which are safe for such rows are so for it.
"""

from copy import copy
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from rcpkg.base import Array
from rcpkg.calibration.constants import PATTERNS
from rcpkg.checks import check_choice, check_sequence, refusal, refuse_labels
from rcpkg.families import ClosedFormClassifier
from rcpkg.rows import Block

MASKS = "be None, rates in [0, 1), 'training', or a boolean array of patterns (K, d), True where a value is hidden"


class Copies(NamedTuple):
    """Rows X and masked copies of them, the ``row`` of which each is a copy, and its ``share`` of the row's weight."""

    X: Array
    row: NDArray[np.intp]
    share: Array

    def mean(self, values: Array) -> Array:
        """``values`` (…, N) of the copies averaged over those of each row, shape (…, n)."""
        n = int(self.row.max(initial=-1)) + 1
        means = [np.bincount(self.row, self.share * row, n) for row in values.reshape(-1, len(self.row))]
        return np.reshape(means, (*values.shape[:-1], n))


def check_in_view(gaps_in_view: Any) -> Array | None:
    """Patterns, of type bool, or rates; None for neither. Refuses what says of no pattern which values it hides."""
    if gaps_in_view is None:
        return None
    if isinstance(gaps_in_view, str):
        check_choice("gaps_in_view", gaps_in_view, ("training",))
        return None
    given = np.asarray(gaps_in_view)
    patterns = given.dtype == bool
    if not patterns:
        given = check_sequence("gaps_in_view", [gaps_in_view] if isinstance(gaps_in_view, Real) else gaps_in_view, 0.0)
    if (given.ndim != 2 or not len(given)) if patterns else given.max() >= 1:
        raise refusal("gaps_in_view", MASKS, gaps_in_view)
    return given


def copies(X: Array, gaps_in_view: Any, rng: np.random.RandomState) -> Copies:
    """Validated rows X (n, d) and their masked copies; those that lose nothing are one with their row.

    There is a copy for each rate or pattern, or with "training" one with the gaps of another row beside its own. For a
    rate `PATTERNS` patterns are drawn, and dealt out evenly. Patterns that are not of d features, and sparse X, raise
    ValueError.
    """
    n = X.shape[0]
    if gaps_in_view is None:
        return Copies(X, np.arange(n), np.ones(n))
    if issparse(X):
        raise ValueError("gaps_in_view takes dense rows: a sparse one says of no value that it is missing")
    present, numbers, parts = ~np.isnan(X), [np.arange(n)], [X]
    masks = list(_masks(present, gaps_in_view, rng))
    for mask in masks:
        lost = mask & present
        loses = np.flatnonzero(lost.any(axis=1))
        numbers.append(loses)
        parts.append(np.where(lost[loses], np.nan, X[loses]))
    whole = np.concatenate(numbers)
    share = np.full(len(whole), 1.0)
    share[:n] += len(masks) + 1 - np.bincount(whole, minlength=n)
    return Copies(np.concatenate(parts), whole, share / (len(masks) + 1))


def _masks(present: NDArray[np.bool_], gaps_in_view: Any, rng: np.random.RandomState) -> Any:
    """What each set of copies hides, to be broadcast against the rows (n, d)."""
    n, d = present.shape
    given = check_in_view(gaps_in_view)
    if given is None:  # "training"
        yield ~present[rng.permutation(n)]
        return
    if given.dtype == bool:
        if given.shape[1] != d:
            raise ValueError(f"gaps_in_view must have a column for each of {d} features; its shape is {given.shape}")
        yield from given
        return
    for rate in given:
        drawn = rng.uniform(size=(PATTERNS, d)) < rate
        yield drawn[rng.permutation(n) % PATTERNS]


def shown(block: Block, model: ClosedFormClassifier, gaps_in_view: Any, rng: np.random.RandomState) -> Block:
    """A block of validated rows with masked copies beside them, which share its weights.

    Raises
    ------
    ValueError
        Where the ``model`` takes no gaps in training, or as `copies` does.
    """
    if hasattr(gaps_in_view, "iloc"):
        refuse_labels("gaps_in_view", gaps_in_view.iloc[0], model)
    masked = copies(block.X, gaps_in_view, rng)
    if len(masked.X) == block.n:
        return block
    if not model.__sklearn_tags__().input_tags.allow_nan:
        raise ValueError(
            f"gaps_in_view needs a model that takes gaps in training, which {type(model).__name__} does not"
        )
    copy(model)._prepare(masked.X)  # refuses them where a block of a product takes none
    weight = masked.share if block.weight is None else masked.share * block.weight[masked.row]
    return Block(masked.X, block.y[masked.row], weight, block.name)
