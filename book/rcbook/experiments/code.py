"""What code made a stored number: the definitions that its protocol uses, each with a digest.

The definitions are those of the protocol's module and of `rcbook`, followed from name to name; comments, docstrings,
annotations and layout do not count, nor in which module a definition stands. `rcpkg` is left out: its own tests and
the cells that are computed again guard it, and each of its changes would make every number stale. Left out as well is
what downloads, reads and stores files (`GUARDED`): checksums and tests of its own guard that.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

SILENT = {"annotation", "returns", "type_params", "type_comment", "kind", "ctx"}  # fields that change no number
GUARDED = {"rcbook._files", "rcbook.datasets.files"} | {
    f"rcbook.experiments.{name}" for name in ("store", "runner", "scorecard")
}
Name = tuple[str, str]  # module, and what it binds


def _form(node: Any) -> Any:
    """Syntax without docstrings, annotations and what Python's versions write differently."""
    if isinstance(node, list):
        return [_form(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    body = fields.get("body")
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = body[1:]
    return [
        type(node).__name__,
        *([name, _form(value)] for name, value in fields.items() if name not in SILENT and value not in (None, [])),
    ]


def _root(node: ast.AST) -> str | None:
    """The name at the beginning of ``name.attribute[key]``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module binds, or changes as ``name[key] = …`` and ``name.update(…)`` do."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return {_root(function) or ""} if isinstance(function, ast.Attribute) else set()
    stored = (node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Store))
    return {_root(node) or "" for node in stored}


def _imported(module: str, is_package: bool, node: ast.AST) -> Iterator[tuple[str, Name]]:
    """Names that an import binds, each with what it stands for; the name "" of a module is the module itself."""
    match node:
        case ast.Import():
            yield from ((alias.asname or alias.name, (alias.name, "")) for alias in node.names)
        case ast.ImportFrom():
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((alias.asname or alias.name, (origin, alias.name)) for alias in node.names)


class _Module:
    """The definitions of a module by name, and what its imports bind, those within functions among them."""

    def __init__(self, name: str) -> None:
        spec = importlib.util.find_spec(name)
        path = Path(spec.origin if spec and spec.origin else "")
        self.statements: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, Name] = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            for bound in _bound(statement):
                self.statements.setdefault(bound, []).append(statement)
            for node in ast.walk(statement):
                self.imports |= dict(_imported(name, path.stem == "__init__", node))


@cache
def _module(name: str) -> _Module:
    return _Module(name)


def _place(name: Name, home: str) -> Iterator[Name]:
    """Where a name is defined, if in the protocol's module or in `rcbook`; all names of a module that is named."""
    module, bound = name
    if module in GUARDED or (module != home and module.partition(".")[0] != "rcbook"):
        return
    here = _module(module)
    if not bound:
        yield from ((module, other) for other in here.statements)
    elif bound in here.statements:
        yield name
    elif bound in here.imports:
        yield from _place(here.imports[bound], home)
    elif _find(f"{module}.{bound}"):
        yield from _place((f"{module}.{bound}", ""), home)


def _used(module: str, statement: ast.stmt) -> Iterator[Name]:
    """The names of its module and its imports that a statement uses: of a module, only those after the dot."""
    imports, found, dotted = _module(module).imports, [], set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imports:
            origin, bound = imports[node.value.id]
            whole = f"{origin}.{bound}" if bound else origin
            if whole.startswith("rcbook.") and _is_module(origin, bound):
                dotted.add(id(node.value))
                found.append((whole, node.attr))
        elif isinstance(node, ast.Name) and id(node) not in dotted:
            found.append((module, node.id))
    yield from found


@cache
def _is_module(origin: str, bound: str) -> bool:
    """Whether what an import binds is a module, of one that defines nothing of the name."""
    if not bound:
        return True
    here = _module(origin)
    return bound not in here.statements and bound not in here.imports and bool(_find(f"{origin}.{bound}"))


@cache
def _find(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a parent that is no package
        return False


@cache
def _digest_of(name: Name) -> str:
    statements = _module(name[0]).statements[name[1]]
    return hashlib.sha256(repr([_form(statement) for statement in statements]).encode()).hexdigest()[:8]


@cache
def definitions(protocol: str) -> dict[str, str]:
    """Each definition that a protocol uses, itself among them, with a digest of its syntax.

    Parameters
    ----------
    protocol : str
        ``"module:function"``.

    Returns
    -------
    dict
        Keys ``module.name`` in alphabetical order, the package's own name left out.
    """
    home, _, function = protocol.partition(":")
    todo, found = [(home, function)], {}
    while todo:
        for place in _place(todo.pop(), home):
            if place not in found:
                found[place] = _digest_of(place)
                todo += [
                    use for statement in _module(place[0]).statements[place[1]] for use in _used(place[0], statement)
                ]
    return {f"{module.removeprefix('rcbook.')}.{bound}": found[module, bound] for module, bound in sorted(found)}


def changes(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Names of the definitions that two sets of `definitions` do not share, whatever modules they stand in."""
    if before == now:
        return []
    alone = _contents(before) ^ _contents(now)
    return sorted({name for found in (before, now) for name, value in found.items() if (_last(name), value) in alone})


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _contents(found: dict[str, str]) -> set[tuple[str, str]]:
    return {(_last(name), value) for name, value in found.items()}
