"""Entries of docstrings that several classes share, each written once.

A line ``%(name)s`` of a class docstring stands for the block of that name: `help`, `inspect.getdoc` and the reference
show the class in full.
"""

import re
from collections.abc import Callable
from inspect import cleandoc
from textwrap import indent
from typing import TypeVar

Class = TypeVar("Class", bound=type)

#: Blocks of several rooms; a room adds its own
SHARED = {
    "cost": """
        cost : array of shape (r, r), optional
            ``cost[g, h]`` ≥ 0: cost of predicting class g when the truth is class h; by default the 0-1 loss.
        """,
}
_LINE = re.compile(r"^(?P<indent> *)%\((?P<name>[^()]+)\)s$", re.MULTILINE)


def documented(**blocks: str) -> Callable[[Class], Class]:
    """Decorator that fills the ``blocks``, and those of `SHARED`, into the docstring of a class.

    A block may name other blocks. Under ``python -OO`` there is no docstring, and nothing to fill.

    Raises
    ------
    KeyError
        If the docstring names a block that does not exist.
    """
    texts = SHARED | blocks

    def filled(match: re.Match[str]) -> str:
        return indent(_LINE.sub(filled, cleandoc(texts[match["name"]])), match["indent"])

    def decorate(cls: Class) -> Class:
        if cls.__doc__ is not None:
            cls.__doc__ = _LINE.sub(filled, cls.__doc__)
        return cls

    return decorate
