"""Cells of a page outside of a notebook: they share names, and what they print and show is kept as data.

The pages call this in the reader's browser, where no IPython is; the tests call it here.
"""

import ast
import builtins
import linecache
import sys
import traceback
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from types import ModuleType
from typing import Any

RICH = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


class Output(list[dict[str, str]]):
    """What a cell has shown so far: entries with a ``kind``, "stdout", "stderr" or a MIME type, and a ``text``."""

    def add(self, kind: str, text: str) -> None:
        """Append ``text``, to the last entry if that is a stream of the same kind."""
        if self and self[-1]["kind"] == kind and kind in ("stdout", "stderr"):
            self[-1]["text"] += text
        else:
            self.append({"kind": kind, "text": text})

    def show(self, value: Any, raw: bool = False) -> None:
        """What a notebook shows of a ``value``: its richest form, or with ``raw`` the first of a dict of MIME types."""
        if raw:
            self.add(*next(iter(value.items())))
            return
        for kind, method in RICH.items():
            if hasattr(value, method) and not isinstance(value, type) and (text := getattr(value, method)()):
                self.add(kind, text)
                return
        self.add("text/plain", repr(value))


class Stream:
    """A file that writes to an `Output`."""

    def __init__(self, output: Output, kind: str) -> None:
        self.output, self.kind = output, kind

    def write(self, text: str) -> int:
        if text:
            self.output.add(self.kind, text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def run(source: str, names: dict[str, Any], label: str = "cell") -> tuple[Output, list[str]]:
    """Run the ``source`` of a cell in a namespace ``names``.

    Parameters
    ----------
    source : str
        Python code; the value of a last expression is shown, unless a semicolon follows it or it is None.
    names : dict
        The namespace that the cells of a page share; it is changed.
    label : str, default="cell"
        What a traceback calls the code.

    Returns
    -------
    Output
        What the cell printed and showed, in this order.
    list of str
        The lines of the traceback if the cell raised an error, of which the last names it; else empty.
    """
    output, name = Output(), f"<{label}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    stand_in = ModuleType("IPython.display")  # the book's `show` imports `display` from here when it is called
    stand_in.display = output.show  # type: ignore[attr-defined]
    package = ModuleType("IPython")
    package.version_info, package.get_ipython = (9, 0), lambda: None  # type: ignore[attr-defined]  # matplotlib asks
    before = {key: sys.modules.get(key) for key in ("IPython", "IPython.display")}
    sys.modules["IPython"], sys.modules["IPython.display"] = package, stand_in
    try:
        with redirect_stdout(Stream(output, "stdout")), redirect_stderr(Stream(output, "stderr")):
            tree = ast.parse(source, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), name, "eval"), names)
                if value is not None and not source.rstrip().endswith(";"):
                    output.show(value)
    except BaseException as error:  # an interrupt, too, is told below the cell
        frames = traceback.TracebackException.from_exception(error)
        ours = [k for k, frame in enumerate(frames.stack) if frame.filename == name]
        frames.stack = traceback.StackSummary.from_list(frames.stack[min(ours, default=len(frames.stack)) :])
        return output, "".join(frames.format()).rstrip().splitlines()
    finally:
        for key, module in before.items():
            if module is None:
                del sys.modules[key]
            else:
                sys.modules[key] = module
    return output, []


def needed(sources: Iterable[str], source: str) -> list[int]:
    """Numbers of the cells among ``sources``, in order, that make the names which ``source`` uses, or those which these
    cells use in turn."""
    cells = [_names(cell) for cell in sources]
    wanted, found = _names(source)[1], []
    for number in range(len(cells) - 1, -1, -1):
        bound, used = cells[number]
        if bound & wanted:
            found.append(number)
            wanted = wanted | used
    return found[::-1]


def _names(source: str) -> tuple[set[str], set[str]]:
    """Names that code binds, and names that it uses; none of code that does not parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set(), set()
    bound, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    return bound, used - set(dir(builtins))
