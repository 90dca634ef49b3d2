"""Errors that a machine plants in what a check compares: factors, signs, transpositions, missing terms, wrong laws.

The code of a check is parsed. Its *comparisons* are the differences, equalities and inequalities that reach the parts
of its verdict; its *terms* are the summands of all sums in it, its *draws* the calls that draw. Each is replaced by a
call that hands the value on, or, when an error is planted there, another value. An error counts if it changes one side
of a comparison and leaves the other as it was: the check must then fail. One that changes both sides, or none, changes
the data of the check and is an identity of it. ``make planted`` tries all chapters of parts I to III, ``make planted
CH=05`` one. `accepted_errors.csv` lists the errors that may pass, each with the reason; any other is a fault of the
check. The slow tests try one error in `SHARE`, the same ones until the code of the check changes.
"""

import ast
import csv
import inspect
import io
import operator
import re
import signal
import sys
import textwrap
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PARTS = ("gap", "measured", "holds")  # ``exceeds`` says that something is large, not what it is
SIDES = {"allclose", "isclose", "array_equal"}  # of numpy, with two sides
FLIPPED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE", "Eq": "NotEq", "NotEq": "Eq"}
COMPARE = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
COMPARE |= {"Eq": operator.eq, "NotEq": operator.ne}
DRAWS = {name for name in vars(np.random.Generator) if not name.startswith("_")} - {"bit_generator", "spawn"}
LONGEST = 30.0  # seconds of the processor that a check may take with an error in it
SHARE = 60  # of as many errors the slow tests try one
Bindings = dict[tuple[str, str], list[ast.expr]]  # function ("" for the cell) and name → values
ACCEPTED = Path(__file__).with_name("accepted_errors.csv")


class Site(NamedTuple):
    """A place of a check where errors are planted, and the comparison that it is a side of (or -1)."""

    text: str
    kinds: tuple[str, ...]
    comparison: int = -1
    part: str = ""


class Skewed(np.random.Generator):
    """A generator whose draws have another law: u² for u, deviations 1.5 times as large, no order changed at random."""

    def random(self, *args: Any, **options: Any) -> Any:
        return super().random(*args, **options) ** 2

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return (
            low
            + (high - np.asarray(low)) * super().uniform(size=size if size is not None else np.shape(low) or None) ** 2
        )

    def standard_normal(self, *args: Any, **options: Any) -> Any:
        return 1.5 * super().standard_normal(*args, **options)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return super().normal(loc, 1.5 * np.asarray(scale), size)

    def multivariate_normal(self, mean: Any, cov: Any, *args: Any, **options: Any) -> Any:
        return super().multivariate_normal(mean, 2.25 * np.asarray(cov), *args, **options)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return np.arange(x) if np.ndim(x) == 0 else np.array(x)

    def permuted(self, x: Any, **options: Any) -> Any:
        return np.array(x)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        pass


def of_twice_the_first(name: str) -> Callable[..., Any]:
    """Draws of `Skewed` whose first argument is twice what is given."""

    def draw(self: Skewed, first: Any = 1.0, *args: Any, **options: Any) -> Any:
        return getattr(np.random.Generator, name)(self, 2 * np.asarray(first), *args, **options)

    return draw


for _name in ("dirichlet", "gamma", "beta", "poisson", "chisquare", "exponential"):
    setattr(Skewed, _name, of_twice_the_first(_name))


class Plants:
    """What the code of a check calls at its sites; `active` is the error that is planted."""

    def __init__(self) -> None:
        self.active: tuple[int, str] | None = None
        self.sides: dict[int, list[np.ndarray | None]] = {}
        self.touched = False

    def term(self, site: int, value: Any) -> Any:
        if self.active is None or self.active[0] != site or isinstance(value, list | tuple | str):
            return value
        wrong = changed(self.active[1], value)
        if wrong is None or same([fingerprint(wrong)], [fingerprint(value)]):
            return value
        self.touched = True
        return wrong

    def side(self, site: int, value: Any) -> Any:
        value = self.term(site, np.asarray(value) if isinstance(value, list | tuple) else value)
        self.sides.setdefault(site, []).append(fingerprint(value))
        return value

    def compare(self, site: int, operator: str, left: Any, right: Any) -> Any:
        kind = self.active[1] if self.active is not None and self.active[0] == site else None
        self.sides.setdefault(site, []).append(fingerprint(left))
        if kind == "reversed":
            self.touched = True
            operator = FLIPPED[operator]
        elif kind == "tighter":
            # by a hundredth of the side that changes, in the direction that makes it false
            shift = 0.01 * np.abs(np.asarray(right, dtype=float))
            self.touched = bool(np.any(shift > 0))
            right = right - shift if operator in ("Lt", "LtE") else right + shift
        self.sides[site].append(fingerprint(right))
        return COMPARE[operator](left, right)

    def draw(self, site: int, generator: Any) -> Any:
        if self.active is None or self.active[0] != site or not isinstance(generator, np.random.Generator):
            return generator
        self.touched = True
        return Skewed(generator.bit_generator)


def changed(kind: str, value: Any) -> Any:
    """The value with an error of a kind in it, or None where it cannot have one."""
    is_bool = getattr(value, "dtype", None) in (bool, np.dtype(bool)) or isinstance(value, bool)
    try:
        if kind == "transposed":
            array = np.asarray(value)
            if array.ndim >= 2 and array.shape[-1] == array.shape[-2] > 1:
                return array.swapaxes(-1, -2)
            return np.roll(array, 1, axis=-1) if array.ndim and array.shape[-1] > 1 else None
        if is_bool:
            return np.logical_not(value) if kind == "sign" else None
        return {"factor": 1.01, "sign": -1.0, "missing": 0.0}[kind] * value
    except (TypeError, ValueError, AttributeError):
        return None


def fingerprint(value: Any) -> np.ndarray | None:
    """The numbers of a value, copied; None where it has none."""
    if hasattr(value, "ravel") and not isinstance(value, np.ndarray):
        try:
            value = value.ravel()
        except TypeError:
            return None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        try:
            return np.array([hash(str(v)) % 1_000_003 for v in np.ravel(np.asarray(value, dtype=object))], dtype=float)
        except (TypeError, ValueError):
            return None
    return array


def same(some: list[np.ndarray | None], others: list[np.ndarray | None]) -> bool:
    """Whether two records of a side are equal but for rounding."""
    if len(some) != len(others):
        return False
    for a, b in zip(some, others):
        if a is None or b is None:
            continue
        if a.shape != b.shape:
            return False
        scale = np.nanmax(np.abs(b), initial=0.0) if b.size else 0.0
        if not np.allclose(a, b, rtol=0, atol=1e-9 * (scale if np.isfinite(scale) else 1.0), equal_nan=True):
            return False
    return True


def called(node: ast.AST) -> str:
    return ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""


def own_statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions in it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
            waiting += [] if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.iter_child_nodes(node)
        elif isinstance(node, ast.excepthandler):
            waiting += node.body


class Instrument(ast.NodeTransformer):
    """Replaces the sites of a check by calls of `Plants`."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.sites: list[Site] = []
        self.found: dict[ast.AST, str] = {}  # comparison → the part of the verdict that it reaches
        self.count = 0
        # the function of `rcbook.trials` that a node stands in: a name of one is not that of another
        self.scope = {n: f.name for f in self.tree.body if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
        bindings = self._bindings()
        for node in ast.walk(self.tree):
            if called(node) in PARTS and len(node.args) > 1:
                self._comparisons(node.args[1], called(node), bindings, depth=4)
        self.tree = ast.fix_missing_locations(self.visit(self.tree))

    def _bindings(self) -> Bindings:
        """What each name of the cell or of a function is bound to, or has appended."""
        found: Bindings = {}
        returns = {
            node.name: [part.value for part in own_statements(node) if isinstance(part, ast.Return) and part.value]
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef)
        }

        def bind(target: ast.AST, value: ast.expr) -> None:
            if isinstance(target, ast.Tuple | ast.List):
                # each name has its own part of what a function returns
                if len(returned := returns.get(called(value), [])) == 1:
                    value = returned[0]
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                for i, part in enumerate(target.elts):
                    bind(part, parts[i] if len(parts) == len(target.elts) else value)
            else:
                while isinstance(target, ast.Subscript | ast.Attribute):
                    target = target.value
                if isinstance(target, ast.Name):
                    found.setdefault((self.scope.get(target, ""), target.id), []).append(value)

        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    bind(target, node.value)
            elif isinstance(node, ast.AugAssign):
                bind(node.target, node.value)
            elif called(node) in ("append", "extend") and isinstance(node.func, ast.Attribute):
                bind(node.func.value, node.args[0])
        for function, values in returns.items():
            found.setdefault(("", function), []).extend(values)
        return found

    def _comparisons(self, node: ast.AST, part: str, bindings: Bindings, depth: int) -> bool:
        """Mark the outermost comparisons in an expression, else in what its names are bound to."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and part != "holds":
            self.found.setdefault(node, part)
            return True
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]).__name__ in FLIPPED:
            left = node.left
            is_close = isinstance(node.ops[0], ast.Lt | ast.LtE) and called(left) in ("abs", "norm", "max")
            if is_close and self._comparisons(left, "gap", bindings, 0):
                return True
            self.found.setdefault(node, part)
            return True
        if called(node) in SIDES:
            self.found.setdefault(node, part)
            return True
        index = node.slice if isinstance(node, ast.Subscript) else None
        children = [child for child in ast.iter_child_nodes(node) if child is not index]
        if any([self._comparisons(child, part, bindings, 0) for child in children]):
            return True
        if depth:
            names = [(self.scope.get(n, ""), n.id) for n in ast.walk(node) if isinstance(n, ast.Name)]
            names = dict.fromkeys(key if key in bindings else ("", key[1]) for key in names)
            bound = [value for key in names for value in bindings.get(key, ())]
            return any([self._comparisons(value, part, bindings, depth - 1) for value in bound])
        return False

    def _site(self, text: str, *kinds: str, comparison: int = -1, part: str = "") -> ast.Constant:
        self.sites.append(Site(" ".join(text.split()), kinds, comparison, part))
        return ast.Constant(len(self.sites) - 1)

    def _call(self, method: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name("_plants", ast.Load()), method, ast.Load()), list(arguments), [])

    def _drawn(self, node: ast.AST, value: ast.expr) -> ast.expr:
        return self._call("draw", self._site(ast.unparse(node), "law"), value) if _is_generator(value) else value

    def visit(self, node: ast.AST) -> Any:
        part = self.found.get(node)
        if part is not None:
            return self._comparison(node, part)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            text = ast.unparse(node)
            for side in ("left", "right"):
                value = getattr(node, side)
                is_sum = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub)
                if not is_sum and not isinstance(value, ast.Constant):
                    site = self._site(f"{ast.unparse(value)} in {text}", "factor", "sign", "missing")
                    setattr(node, side, self._call("term", site, self.visit(value)))
                else:
                    setattr(node, side, self.visit(value))
            return node
        if isinstance(node, ast.Call) and _is_plant(node):
            return node
        if isinstance(node, ast.Attribute) and _is_generator(node.value) and node.attr in DRAWS:
            node.value = self._drawn(node, node.value)
            return node
        if isinstance(node, ast.Call):
            node.args = [self._drawn(node, argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self._drawn(node, keyword.value)
        return super().generic_visit(node)

    def _comparison(self, node: ast.AST, part: str) -> ast.expr:
        number, text = self.count, ast.unparse(node)
        self.count += 1
        if isinstance(node, ast.Compare):
            operator = type(node.ops[0]).__name__
            order = operator not in ("Eq", "NotEq")
            literal = any(
                not {ast.Name, ast.Call} & {type(n) for n in ast.walk(e)} for e in (node.left, node.comparators[0])
            )
            kinds = ("reversed", "tighter") if order and not literal and "bound" in text else ("reversed",)
            left, right = self.visit(node.left), self.visit(node.comparators[0])
            site = self._site(text, *kinds, comparison=number, part="order" if order else "equal")
            return self._call("compare", site, ast.Constant(operator), left, right)
        pair = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args[:2]
        constant = isinstance(pair[1], ast.Constant)
        sides = []
        for i, value in enumerate(pair):
            kinds = ("factor", "sign", "transposed") if bool(i) != constant else ("transposed",)
            kinds = () if isinstance(value, ast.Constant) else kinds
            which = self._site(f"{ast.unparse(value)} in {text}", *kinds, comparison=number, part=part)
            sides.append(self._call("side", which, self.visit(value)))
        if isinstance(node, ast.BinOp):
            node.left, node.right = sides
        else:
            node.args[:2] = sides
        return node


class Outcome(NamedTuple):
    """What came of an error: "seen", "unseen", "identity" (it is none here), "raised" (the code cannot run with it)."""

    site: Site
    kind: str
    result: str


def unaccepted(errors: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Those of the errors (check, kind and text) that may not pass; a listed text of * stands for all of a kind."""
    with ACCEPTED.open(encoding="utf-8", newline="") as file:
        rows = [(row["check"], row["kind"], row["text"], row["reason"].strip()) for row in csv.DictReader(file)]
    assert all(reason for *_, reason in rows), "an accepted error without a reason"
    listed = {tuple(row) for *row, _ in rows}
    return [error for error in errors if not {error, (*error[:2], "*")} & listed]


def rank(check: str, site: Site, kind: str) -> int:
    """Place of an error among `SHARE`, the same until the code changes; the slow tests try those of the place zero."""
    return zlib.crc32(f"{check} {kind} {site.text}".encode()) % SHARE


def with_trials(source: str, namespace: dict[str, Any]) -> tuple[str, dict[str, dict[str, Any]]]:
    """The source of a check behind the functions of `rcbook.trials` that it calls, and the globals of each of these."""
    functions, globals_of = {}, {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = namespace.get(node.value.id)
            function = getattr(module, node.attr, None)
            if getattr(module, "__name__", "").startswith("rcbook.trials") and inspect.isfunction(function):
                text, name = textwrap.dedent(inspect.getsource(function)), f"trial_{node.attr}"
                functions[f"{node.value.id}.{node.attr}"] = text.replace(f"def {node.attr}(", f"def {name}(", 1)
                globals_of[name] = vars(inspect.getmodule(function))
    for name in functions:
        source = re.sub(rf"\b{re.escape(name)}\b", f"trial_{name.split('.')[1]}", source)
    return "\n\n".join([*functions.values(), source]), globals_of


def planted(
    source: str,
    namespace: dict[str, Any],
    restored: Callable,
    rank: Callable[[Site, str], int] = lambda site, kind: 0,
    ranks: int = SHARE,
    longest: float = np.inf,
) -> Iterator[Outcome]:
    """Try a check with the errors of so many ranks, in order, until so many seconds of the processor have gone."""
    source, globals_of = with_trials(source, namespace)
    instrument, plants, end = Instrument(source), Plants(), time.process_time() + longest
    names = {"_plants": plants}
    for node in instrument.tree.body[: len(globals_of)]:
        scope = {**globals_of[node.name], "_plants": plants}
        exec(compile(ast.Module([node], []), "trial", "exec"), scope)
        names[node.name] = scope[node.name]
    body = ast.Module(instrument.tree.body[len(globals_of) : -1], [])
    last = ast.fix_missing_locations(ast.Module(instrument.tree.body[-1:], []))
    first = compile(body, "check", "exec"), compile(last, "check", "exec")
    in_last = {n.args[0].value for n in ast.walk(last) if isinstance(n, ast.Call) and _is_plant(n)}
    errors = [(k, kind) for k, site in enumerate(instrument.sites) for kind in site.kinds]
    place = {error: rank(instrument.sites[error[0]], error[1]) for error in errors}
    errors = sorted((error for error in errors if place[error] < ranks), key=place.__getitem__)
    if not errors:
        return

    def attempt(code: Any, space: dict[str, Any]) -> str:
        try:
            with time_limit(LONGEST):
                exec(code, space)
        except AssertionError:
            return "seen"
        except Exception:  # or it takes too long
            return "raised"
        return "unseen"

    outcomes: dict[tuple[int, str], str] = {}
    with restored(namespace):  # errors in the last statement need no second run of the others
        namespace.update(names)
        found = attempt(first[0], namespace)
        before = {k: list(v) for k, v in plants.sides.items()}
        if {found, attempt(first[1], namespace)} != {"unseen"}:
            raise AssertionError("the check fails as it stands")
        right = plants.sides
        for error in errors:
            if error[0] in in_last and time.process_time() < end:
                plants.active, plants.touched = error, False
                plants.sides = {k: list(v) for k, v in before.items()}
                outcomes[error] = judge(instrument, plants, right, error, attempt(first[1], namespace))
    for error in errors:
        if error[0] not in in_last and time.process_time() < end:
            plants.active, plants.sides, plants.touched = error, {}, False
            with restored(namespace):
                namespace.update(names)
                found = attempt(first[0], namespace)
                found = attempt(first[1], namespace) if found == "unseen" else found
            outcomes[error] = judge(instrument, plants, right, error, found)
    for error in outcomes:
        yield Outcome(instrument.sites[error[0]], error[1], outcomes[error])


def _is_generator(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith("rng")


def _is_plant(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "_plants"


def judge(instrument: Instrument, plants: Plants, right: dict, error: tuple[int, str], result: str) -> str:
    """An error that passed is an identity unless it changed one side of a comparison and left the other.

    Another law of draws is one only for what is measured in units of chance; elsewhere draws are data. A factor of
    1.01 is none there: it is below chance.
    """
    if not plants.touched:
        return "identity"
    if result != "unseen":
        return result
    if error[1] in ("reversed", "tighter"):
        return "unseen"
    counted = {"law": ("measured",), "factor": ("gap", "holds")}.get(error[1], PARTS)
    pairs: dict[int, list[bool]] = {}
    for k, site in enumerate(instrument.sites):
        if site.comparison >= 0 and site.part in counted:
            pairs.setdefault(site.comparison, []).append(not same(plants.sides.get(k, []), right.get(k, [])))
    return "unseen" if any(sum(pair) == 1 for pair in pairs.values()) else "identity"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main(number: str, seconds: float = 60.0) -> int:
    """Print, for each check of a chapter, what was planted and seen, and each error that passed without being
    accepted; return the number of these."""
    from test_planted_errors import as_in_a_kernel, chapter_of, restored, run

    chapter, namespace, passed = chapter_of(number), {"display": lambda *shown: None}, 0
    checks = {i: tag for i, tags in enumerate(chapter.tags) for tag in tags if tag.startswith("check:")}
    with as_in_a_kernel():
        for i in sorted({i for check in checks for i in chapter.rests_on(check)}):
            tried: list[Outcome] = []
            with redirect_stdout(io.StringIO()):
                if i in checks:
                    order = partial(rank, checks[i])
                    tried = list(planted(chapter.sources[i], namespace, restored, order, longest=seconds))
                run(chapter.sources[i], namespace)
            if i in checks:
                print(checks[i], dict(Counter(f"{found.kind} {found.result}" for found in tried)), flush=True)
            unseen = [(checks[i], found.kind, found.site.text) for found in tried if found.result == "unseen"]
            for _, kind, text in unaccepted(unseen):
                print(f"    {kind}: {text}", flush=True)
                passed += 1
    return passed


if __name__ == "__main__":
    from test_planted_errors import SAMPLED

    passed = 0
    for number in sys.argv[1:] or SAMPLED:
        print("chapter", number, flush=True)
        passed += main(number)
    sys.exit(passed > 0)
