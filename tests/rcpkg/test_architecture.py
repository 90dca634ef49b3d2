"""The rooms of the library and of the book's machinery: imports only point down."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Each room, a module or a package, imports from lower floors and from itself only. A room stands as low as it can.
FLOORS = (
    ("rcbook.__main__", "rcbook.pages"),
    ("rcbook.findings",),
    ("rcbook.draw",),
    ("rcbook.trials",),
    ("rcbook.experiments.studies", "rcbook.moving_pictures"),
    ("rcbook.experiments",),
    ("rcbook",),  # its other modules are one room
    ("rcpkg",),  # the public names
    ("rcpkg.rivals",),
    ("rcpkg.table",),
    ("rcpkg.calibration", "rcpkg.local"),
    ("rcpkg.bregman", "rcpkg.discretization", "rcpkg.families", "rcpkg.gaussians", "rcpkg.plotting"),
    ("rcpkg.choice", "rcpkg.class_prior", "rcpkg.explain"),
    ("rcpkg.base",),
    ("rcpkg.progress", "rcpkg.rows"),
    ("rcpkg.checks", "rcpkg.gaps"),
    ("rcpkg.capabilities", "rcpkg.columns", "rcpkg.linalg"),
    ("rcpkg._bases", "rcpkg._docs", "rcpkg._version"),
)
FLOOR = {room: number for number, rooms in enumerate(reversed(FLOORS)) for room in rooms}
SOURCES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root, package in ((ROOT, "rcpkg"), (ROOT / "book", "rcbook"))
    for path in sorted((root / package).rglob("*.py"))
}


def statements(body: list) -> Iterator[ast.stmt]:
    """All statements of a module, those within others among them."""
    for node in body:
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from statements(getattr(node, part, []))


@cache
def import_statements(module: str) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(SOURCES[module].read_text("utf-8"))
    return [node for node in statements(tree.body) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def room(module: str) -> str:
    """The room of a module: the longest name of the table that it begins with; a package itself by its own name."""
    names = [name for name in FLOOR if module == name or (name != "rcpkg" and module.startswith(name + "."))]
    assert names, f"{module} has no floor: give it one in the table"
    return max(names, key=len)


def imports(module: str) -> list[tuple[str, str]]:
    """(module, name) of each of our own names that a module imports; the name is empty for a module as such."""
    found = []
    for node in import_statements(module):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        else:
            assert node.level == 0, f"{module}: imports are absolute"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.append((inside, "") if inside in SOURCES else (node.module, alias.name))
    return [(source, name) for source, name in found if source.split(".")[0] in ("rcpkg", "rcbook")]


def test_imports_point_down():
    for module in SOURCES:
        for source, _ in imports(module):
            below = FLOOR[room(source)] < FLOOR[room(module)]
            assert below or room(source) == room(module), f"{module} imports from {source}, which is not below it"
