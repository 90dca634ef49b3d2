"""The checks of the chapters can fail: errors planted one at a time, in the formula that a check tries or in the
library below it, are found by the check itself.

A chapter runs once, and of it only the cells that the checks in question rest on. When it comes to one of these checks,
the check is tried with each of its errors, with a sample of those that a machine makes, and then as it stands.
"""

import ast
import csv
import importlib
import re
import symtable
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import checks
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import planting
import pytest
from conftest import CHAPTERS, ROOT

from rcpkg.calibration.rules import frequency_weights, soft_error_weights  # noqa: F401  (planted_errors.csv names them)

pytestmark = pytest.mark.slow


class InCode(NamedTuple):
    """In the cell of the check, or else in the cells that it rests on, or else in the modules of the chapter below
    `rcbook.trials` and `rcbook.draw`, ``old`` becomes ``new`` wherever it occurs."""

    chapter: str
    label: str
    old: str
    new: str


class InLibrary(NamedTuple):
    """While the cell of the check runs, what stands at a dotted path of rcpkg becomes ``wrong`` of it."""

    chapter: str
    label: str
    path: str
    wrong: Callable[[Any], Any]


def scaled(factor: float) -> Callable[[Callable], Callable]:
    """Make a function return ``factor`` times its value."""
    return lambda function: lambda *arguments, **options: factor * function(*arguments, **options)


def altered(field: str, factor: float) -> Callable[[Callable], Callable]:
    """Make a method that returns a named tuple return one field ``factor`` times as large."""

    def wrong(method: Callable) -> Callable:
        def altered_method(self: Any, *arguments: Any) -> Any:
            found = method(self, *arguments)
            return found._replace(**{field: factor * getattr(found, field)})

        return altered_method

    return wrong


def of_a_graph_without(places: slice) -> Callable[[Callable], Callable]:
    """Make a nested network lose other parents of each feature than the last: those at ``places``."""

    def wrong(method: Callable) -> Callable:
        def other(self: Any, statistics: Any) -> Any:
            right, size = method(self, statistics)
            tables = []
            for table, of in zip(self.families_.split(statistics.cells), self.families_.parents, strict=True):
                gone = tuple(range(1, 1 + len(of)))[places]
                fewer = table.sum(axis=gone, keepdims=True) + 1 / table.shape[-1] if gone else table
                tables.append(np.broadcast_to(fewer, table.shape))
            cells = self.families_.join(tables)
            return right._replace(log_prob=np.log(cells / self.families_.totals(cells))), size

        return other

    return wrong


def more_by(size: float) -> Callable[[Callable], Callable]:
    """Make a function return its value and ``size`` more."""
    return lambda function: lambda *arguments, **options: function(*arguments, **options) + size


def class_by_class(method: Callable) -> Callable:
    """Make rows be drawn anew with the statistics of each class by itself, shared or not."""

    def other(self: Any, X: Any, y: Any, rng: Any) -> Any:
        drawn = np.empty_like(X)
        for c in np.unique(y):
            drawn[y == c] = method(self, X[y == c], y[y == c], rng)
        return drawn

    return other


def rows_shuffled(method: Callable) -> Callable:
    """Make rows be drawn anew by a permutation of whole rows within each class."""

    def other(self: Any, X: Any, y: Any, rng: Any) -> Any:
        drawn = np.empty_like(X)
        for c in np.unique(y):
            drawn[y == c] = rng.permutation(X[y == c])
        return drawn

    return other


def planted() -> list[InCode | InLibrary]:
    """The errors that ``planted_errors.csv`` lists: where ``old`` is a dotted path, ``new`` makes the wrong of it."""
    with open(Path(__file__).parent / "planted_errors.csv", newline="") as file:
        rows = [InCode(**row) for row in csv.DictReader(file)]
    in_library = re.compile(r"rc(pkg|book)(\.\w+)+")
    return [InLibrary(*row[:3], eval(row.new)) if in_library.fullmatch(row.old) else row for row in rows]


PLANTED = planted()


SECONDS = 1.0  # of the processor: a check that takes longer has no sample, and after them no further error is tried
# parts I to III, of whose checks each error of the sample that passes is accepted with its reason
SAMPLED = tuple(chapter for chapter in dict.fromkeys(row.chapter for row in PLANTED) if chapter < "18" or chapter > "9")


class Names(NamedTuple):
    """Names that a cell binds, those that it changes in place, and those that it uses without binding them first."""

    binds: frozenset[str]
    changes: frozenset[str]
    uses: frozenset[str]


@cache
def names(source: str) -> Names:
    top = symtable.symtable(source, "cell", "exec")
    inner, stack = [], [*top.get_children()]
    while stack:
        table = stack.pop()
        inner += [symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()]
        stack += table.get_children()
    symbols = top.get_symbols()
    binds = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()}
    uses = {s.get_name() for s in symbols if s.is_referenced()}
    return Names(frozenset(binds), changed(source), frozenset(uses | set(inner)))


def changed(source: str) -> frozenset[str]:
    """x of each statement such as ``x[0] = …``, ``x.a = …`` and ``x.method(…)``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(root(node))
        elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "func", None), ast.Attribute):
            found.add(root(node.value.func))  # a function that is called by its name is no object that changes
    return frozenset(found)


def root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class Chapter:
    """The code cells of a chapter, and what came of the errors planted in it."""

    def __init__(self, number: str) -> None:
        pages = [*CHAPTERS, ROOT / "book" / "exact_answers.ipynb"]
        (path,) = (path for path in pages if path.stem.startswith(f"{number}_"))  # 07, 07s: the supplement, or exact
        cells = checks.code_cells(nbformat.read(path, as_version=4))
        self.tags = [checks.tags(cell) for cell in cells]
        self.sources = [checks.plain_python(cell.source) for cell in cells]
        self.planted = [row for row in PLANTED if row.chapter == number]
        self.is_sampled = number in SAMPLED
        self.passed: list[tuple[str, str, str]] = []  # errors made by the machine that a check does not see
        self.modules = [importlib.import_module(f"rcbook.{name}") for name in modules_of("\n".join(self.sources))]

    def check_of(self, label: str) -> int:
        """The check of a labelled result, or, where the label is none, the check that has these words."""
        found = [i for i, tags in enumerate(self.tags) if f"check:{label}" in tags]
        if not found:
            checks_ = [i for i, tags in enumerate(self.tags) if any(tag.startswith("check") for tag in tags)]
            found = [i for i in checks_ if label in self.sources[i]]
        if not found:
            raise LookupError(f"no check is tagged check:{label} or has these words")
        return found[0]

    def rests_on(self, check: int) -> list[int]:
        """The cells, in order and with the check itself, that bind or change what the check uses, and so on."""
        needed, result = set(), []
        for i in range(check, -1, -1):
            cell = names(self.sources[i])
            if i == check or needed & (cell.binds | cell.changes):
                result.append(i)
                needed = needed - cell.binds | cell.uses
        return result[::-1]

    @cache  # noqa: B019  (a chapter lives as long as the tests)
    def outcomes(self) -> dict[InCode | InLibrary | str, BaseException | None]:
        """What each check raises, as it stands (by its label) and with each of its errors; None if nothing."""
        rows = {}
        for row in self.planted:
            rows.setdefault(self.check_of(row.label), []).append(row)
        needed = sorted({i for check in rows for i in self.rests_on(check)})
        result, namespace = {}, {}
        with as_in_a_kernel():
            for i in needed:
                for row in rows.get(i, ()):
                    start = time.process_time()
                    result[row] = self.with_error(row, i, namespace)
                    took = time.process_time() - start
                if i in rows:
                    self.passed += self.unseen(i, namespace) if self.is_sampled and took < SECONDS else []
                    result[rows[i][0].label] = raised(self.sources[i], namespace)
                else:
                    run(self.sources[i], namespace)
        return result

    def unseen(self, check: int, namespace: dict[str, Any]) -> list[tuple[str, str, str]]:
        """Check, kind and text of the errors in the sample of `planting` that a check does not see."""
        (tag,) = (tag for tag in self.tags[check] if tag.startswith("check:"))
        order = partial(planting.rank, tag)
        found = planting.planted(self.sources[check], namespace, restored, order, ranks=1, longest=SECONDS)
        return [(tag, of.kind, of.site.text) for of in found if of.result == "unseen"]

    def with_error(self, row: InCode | InLibrary, check: int, namespace: dict[str, Any]) -> BaseException | None:
        source = self.sources[check]
        if isinstance(row, InLibrary):
            with restored(namespace), wrong_in_library(row, namespace, self.modules):
                return raised(source, namespace)
        if row.old in source:
            with restored(namespace):
                return raised(source.replace(row.old, row.new), namespace)
        before = [self.sources[i] for i in self.rests_on(check)[:-1]]
        fresh: dict[str, Any] = {}
        if any(row.old in cell for cell in before):
            for cell in before:
                run(cell.replace(row.old, row.new), fresh)
            return raised(source, fresh)
        with wrong_in_modules(row, self.modules):
            with restored(namespace):
                if (error := raised(source, namespace)) is not None:
                    return error
            for cell in before:
                run(cell, fresh)
            return raised(source, fresh)


def run(source: str, namespace: dict[str, Any]) -> None:
    exec(compile(source, "cell", "exec"), namespace)
    plt.close("all")


def raised(source: str, namespace: dict[str, Any]) -> BaseException | None:
    try:
        run(source, namespace)
    except Exception as error:
        return error
    return None


@contextmanager
def as_in_a_kernel() -> Iterator[None]:
    """In the folder of the chapters; figures are not shown; warnings do not stop a cell; settings are restored."""
    with pytest.MonkeyPatch.context() as patch, plt.rc_context(), warnings.catch_warnings(record=True):
        patch.chdir(ROOT / "chapters")
        patch.setattr("rcbook.figures.show", lambda figure: None)
        plt.switch_backend("agg")
        warnings.simplefilter("always")
        yield


@contextmanager
def restored(namespace: dict[str, Any]) -> Iterator[None]:
    """Names afterwards mean what they meant, and generators go on as if nothing had been drawn from them."""
    before = dict(namespace)
    generators = [value.bit_generator for value in before.values() if isinstance(value, np.random.Generator)]
    states = [generator.state for generator in generators]
    yield
    namespace.clear()
    namespace.update(before)
    for generator, state in zip(generators, states):
        generator.state = state


def modules_of(source: str) -> list[str]:
    """The modules of `rcbook.trials` and `rcbook.draw` that code imports, such as ``trials.gaps``."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    names |= {str(node.module) for node in nodes}
    return sorted({".".join(name.split(".")[1:3]) for name in names if re.match(r"rcbook\.(?:trials|draw)\.\w", name)})


@contextmanager
def wrong_in_modules(row: InCode, modules: list[ModuleType]) -> Iterator[None]:
    """The functions of those modules in which ``old`` occurs are made of the altered text."""
    found = [module for module in modules if row.old in Path(str(module.__file__)).read_text(encoding="utf-8")]
    if not found:
        raise LookupError(f"{row.label} does not rest on {row.old!r}")
    before = [dict(vars(module)) for module in found]
    try:
        for module in found:
            text = Path(str(module.__file__)).read_text(encoding="utf-8").replace(row.old, row.new)
            exec(compile(text, str(module.__file__), "exec"), vars(module))
        yield
    finally:
        for module, names_ in zip(found, before):
            vars(module).update(names_)


@contextmanager
def wrong_in_library(row: InLibrary, namespace: dict[str, Any], modules: list[ModuleType]) -> Iterator[None]:
    """In rcpkg, and where the chapter or a module of its own has imported it from there."""
    parent, _, name = row.path.rpartition(".")
    owner = resolve(parent)
    right = getattr(owner, name)
    wrong = row.wrong(right)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, wrong)
        namespace |= {key: wrong for key, value in namespace.items() if value is right}
        for module in modules:
            for key in [key for key, value in vars(module).items() if value is right]:
                patch.setattr(module, key, wrong)
        yield


def resolve(path: str) -> Any:
    """A module, or a class in a module."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


chapter_of = cache(Chapter)
CHECKS = list(dict.fromkeys((row.chapter, row.label) for row in PLANTED))


@pytest.mark.parametrize(("number", "label"), CHECKS, ids=lambda value: value)
def test_check_passes_as_it_stands(number, label):
    assert chapter_of(number).outcomes()[label] is None


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: f"{row.chapter}-{row.label}")
def test_check_finds_the_planted_error(row):
    error = chapter_of(row.chapter).outcomes()[row]
    assert isinstance(error, AssertionError), f"{row.label} does not see it: {error!r}"
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    assert frame.tb_frame.f_code.co_name == "checked", "raised, but not by the verdict"


@pytest.mark.parametrize("number", SAMPLED)
def test_checks_see_the_errors_that_a_machine_draws(number):
    chapter = chapter_of(number)
    chapter.outcomes()
    assert not planting.unaccepted(chapter.passed), "mend the check, or say in accepted_errors.csv why it may"
