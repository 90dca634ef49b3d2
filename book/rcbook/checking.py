"""Verdicts of checks: what was tried, how often, and how far it is off, in one line that asserts what it says. ::

    checked("7 models, 300 draws", gap("posteriors", ours - theirs, 1e-10), holds("the loss falls", after < before))

prints ``checked: 7 models, 300 draws; posteriors within 1e-10; the loss falls in all 300`` or raises. A gap of
rounding is shown by its tolerance, since its digits differ from machine to machine; ``measured`` and ``exceeds``
show the number itself, for what is statistical or is meant to be large.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Part", "checked", "exceeds", "gap", "holds", "measured"]


class Part(NamedTuple):
    """One part of a verdict: its text if it passes, and what is wrong if it does not."""

    text: str
    fault: str | None


def checked(tried: str, *parts: Part) -> None:
    """Print the verdict of a check in one line.

    Parameters
    ----------
    tried : str
        What was tried and how much of it, such as "7 models, 300 draws".
    *parts : Part
        One or more of `gap`, `measured`, `exceeds`, `holds`.

    Raises
    ------
    AssertionError
        If a part does not pass, or there is none.
    """
    faults = [part.fault for part in parts if part.fault is not None]
    if faults or not parts:
        raise AssertionError("; ".join(faults) or "a check without a part checks nothing")
    print("; ".join([f"checked: {tried}", *(part.text for part in parts)]))


def gap(what: str, values: ArrayLike, tolerance: float) -> Part:
    """``what``: ``abs(values) <= tolerance``, where the gap is rounding or zero."""
    text = f"{what} within {tolerance:g}" if tolerance else f"{what} equal"
    return Part(text, _fault(what, values, tolerance))


def measured(what: str, values: ArrayLike, tolerance: float, digits: int = 2) -> Part:
    """``what``: ``abs(values) <= tolerance``, the largest shown to ``digits`` significant digits."""
    fault = _fault(what, values, tolerance)
    largest = np.abs(np.asarray(values, dtype=float)).max() if fault is None else np.nan
    return Part(f"{what} {largest:.{digits}g}, at most {tolerance:g}", fault)


def exceeds(what: str, values: ArrayLike, bound: float, digits: int = 2) -> Part:
    """``what``: ``values > bound``, the smallest shown to ``digits`` significant digits."""
    array = np.asarray(values, dtype=float)
    passed = array.size > 0 and bool(np.all(array > bound))
    least = array.min() if array.size else np.nan
    return Part(
        f"{what} {least:.{digits}g}, more than {bound:g}",
        None if passed else f"{what}: {least:g} of {array.size} values does not exceed {bound:g}",
    )


def holds(what: str, conditions: ArrayLike) -> Part:
    """``what``: all conditions are true."""
    array = np.asarray(conditions)
    if array.dtype != bool:
        raise TypeError(f"conditions of a check must be true or false; got values of type {array.dtype}")
    text = what if array.size == 1 else f"{what} in all {array.size:,}"
    failed = int(np.sum(~array))
    return Part(text, f"{what}: fails in {failed} of {array.size}" if failed or not array.size else None)


def _fault(what: str, values: ArrayLike, tolerance: float) -> str | None:
    """What is wrong unless all of at least one value are finite and within the tolerance."""
    array = np.abs(np.asarray(values, dtype=float))
    if array.size and bool(np.all(array <= tolerance)):
        return None
    return f"{what}: {array.max() if array.size else np.nan:g} of {array.size} values is not within {tolerance:g}"
