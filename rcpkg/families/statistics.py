"""Statistics of rows: named arrays that are a vector together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rcpkg.base import Array


class Statistics:
    """Named arrays that add, subtract and scale as one vector; a part may itself be `Statistics`.

    ``Statistics(count=c, first=f)`` has the parts ``.count`` and ``.first``, and unpacks in that order.

    Examples
    --------
    >>> from rcpkg import Statistics
    >>> s = Statistics(count=[1.0, 2.0], first=[[3.0], [4.0]])
    >>> (s + 0.5 * s).count, s.map(np.sqrt).count.round(2)
    (array([1.5, 3. ]), array([1.  , 1.41]))
    >>> s.ravel(), s.unravel(2 * s.ravel()).first.tolist(), s.dot(s)
    (array([1., 2., 3., 4.]), [[6.0], [8.0]], 30.0)
    """

    def __init__(self, /, **parts: Any) -> None:
        if taken := parts.keys() & METHODS:
            raise ValueError(f"a part of Statistics cannot be named {min(taken)!r}, which is one of its methods")
        self.__dict__.update(
            {name: part if isinstance(part, Statistics) else np.asarray(part, float) for name, part in parts.items()}
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.values())

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{name}={part!r}' for name, part in self.__dict__.items())})"

    def map(self, function: Callable, *others: Statistics) -> Statistics:
        """The function of each part, and of the same parts of others."""
        mapped, names = Statistics(), self.__dict__
        for n, part in names.items():
            found = function(part, *(other.__dict__[n] for other in others))
            mapped.__dict__[n] = found if isinstance(found, Statistics) else np.asarray(found, float)
        return mapped

    def __add__(self, other: Statistics) -> Statistics:
        return self.map(lambda a, b: a + b, other)

    def __sub__(self, other: Statistics) -> Statistics:
        return self.map(lambda a, b: a - b, other)

    def __mul__(self, factor: float) -> Statistics:
        return self.map(lambda a: a * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Statistics:
        return self * (1.0 / divisor)

    def ravel(self) -> Array:
        """All entries as one vector."""
        return np.concatenate([part.ravel() for part in self])

    def unravel(self, vector: Array) -> Statistics:
        """Statistics of this structure with the entries of a vector: the inverse of ``ravel``."""
        parts, start = {}, 0
        for name, part in self.__dict__.items():
            piece = vector[start : start + part.ravel().size]
            parts[name] = part.unravel(piece) if isinstance(part, Statistics) else piece.reshape(part.shape)
            start += len(piece)
        return Statistics(**parts)

    def dot(self, natural: Statistics) -> float:
        """Inner product ⟨s, η⟩, with 0 · (−∞) = 0."""
        s, eta = self.ravel(), natural.ravel()
        counts = s != 0
        return float(s @ eta if counts.all() else s[counts] @ eta[counts])


METHODS = frozenset(dir(Statistics))


def finite_sums(sums: Callable[..., Statistics], *rows: Any) -> Statistics:
    """What ``sums`` gives of some rows; refuses it where it overflows, or does not count what is missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        statistics = sums(*rows)
    if not np.isfinite(statistics.ravel()).all():
        raise ValueError(
            "the statistics of the rows are no numbers: X or sample_weight hold numbers so large that they overflow: "
            "rescale them; or X holds NaN, which the family's closed_form_statistics must not add up"
        )
    return statistics


def class_counts(statistics: Statistics) -> Array:
    """The part ``count`` of ``statistics``, or of those of the first block of a product, shape (r,).

    >>> class_counts(Statistics(count=[1.0, 2.0], first=[[3.0], [4.0]]))
    array([1., 2.])
    """
    first = next(iter(statistics))
    return class_counts(first) if isinstance(first, Statistics) else first
