"""The rooms of the library and of the book's machinery: imports only point down, nothing outgrows a reader."""

import ast
import graphlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FUNCTION = 50  # lines, the docstring among them
LONGEST_FILE = 450

# Each room, a module or a package, imports from lower floors and from itself only. A room stands as low as it can.
FLOORS = (
    ("rcbook.__main__",),
    ("rcbook.experiments.studies", "rcbook.moving_pictures"),
    ("rcbook.experiments",),
    (
        *(
            "rcbook.checking",
            "rcbook.citation",
            "rcbook.datasets",
            "rcbook.figures",
            "rcbook.published",
            "rcbook.simulation",
        ),
        *("rcbook.gap_rivals", "rcbook.network_rivals", "rcbook.small_families", "rcbook.weighted_naive_bayes"),
    ),
    ("rcbook", "rcbook._files", "rcbook.words"),
    ("rcpkg",),  # the public names
    ("rcpkg.calibration", "rcpkg.local"),
    ("rcpkg.bregman", "rcpkg.discretization", "rcpkg.families", "rcpkg.gaussians"),
    ("rcpkg.choice", "rcpkg.explain"),
    ("rcpkg.base",),
    ("rcpkg.rows",),
    ("rcpkg.checks", "rcpkg.gaps"),
    ("rcpkg._docs", "rcpkg._version", "rcpkg.capabilities", "rcpkg.linalg", "rcpkg.plotting"),
)
FLOOR = {room: number for number, rooms in enumerate(reversed(FLOORS)) for room in rooms}
SOURCES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root, package in ((ROOT, "rcpkg"), (ROOT / "book", "rcbook"))
    for path in sorted((root / package).rglob("*.py"))
}
TREES = {module: ast.parse(path.read_text("utf-8")) for module, path in SOURCES.items()}


def room(module: str) -> str:
    """The room of a module: the longest name of the table that it begins with; a package itself by its own name."""
    own = ("rcpkg", "rcbook")
    names = [name for name in FLOOR if module == name or (name not in own and module.startswith(name + "."))]
    assert names, f"{module} has no floor: give it one in the table"
    return max(names, key=len)


def imports(module: str) -> list[tuple[str, str]]:
    """(module, name) of each of our own names that a module imports; the name is empty for a module as such."""
    found = []
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.append((inside, "") if inside in TREES else (node.module, alias.name))
    return [(source, name) for source, name in found if source.split(".")[0] in ("rcpkg", "rcbook")]


def test_imports_point_down():
    for module in TREES:
        for source, _ in imports(module):
            below = FLOOR[room(source)] < FLOOR[room(module)]
            assert below or room(source) == room(module), f"{module} imports from {source}, which is not below it"


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: {source for source, _ in imports(module)} for module in TREES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules of a circle


def test_imports_of_our_own_stand_at_the_top():
    for module, tree in TREES.items():
        top = {id(node) for node in tree.body}
        inner = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) and id(n) not in top]
        names = [getattr(node, "module", None) or node.names[0].name for node in inner]
        hidden = [name for name in names if name.split(".")[0] in ("rcpkg", "rcbook")]
        assert not hidden, f"{module} hides an import in a function"


def test_no_module_uses_what_another_keeps_to_itself():
    for module, tree in TREES.items():
        used = [f"{source}.{name}" for source, name in imports(module) if name.startswith("_") and name[1] != "_"]
        modules = {source.rpartition(".")[2] for source, name in imports(module) if not name}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                hidden = node.attr.startswith("_") and not node.attr.startswith("__")
                used += [f"{node.value.id}.{node.attr}"] if hidden else []
        assert not used, f"{module} uses {used}"


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in ("_replace", "_asdict", "_fields")


def defined(tree: ast.Module) -> set[str]:
    """Private names that a module gives to its own: functions, classes, assignments, attributes of ``self``."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr if isinstance(node.value, ast.Name) and node.value.id == "self" else "")
    return set(filter(private, names))


def test_no_room_uses_what_objects_of_another_keep_to_themselves():
    """Where an attribute begins with one underscore, its object is ``self``, ``cls`` or ``super()``, or the name is one
    that a module of the same room defines. (What named tuples have, such as ``_replace``, is public.) A room is told by
    the table; the modules of a package without one are each other's."""
    of_room = {}
    for module, tree in TREES.items():
        of_room.setdefault(room(module), set()).update(defined(tree))
    for module, tree in TREES.items():
        used = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in of_room[room(module)]:
                owner = node.value.func if isinstance(node.value, ast.Call) else node.value
                own = isinstance(owner, ast.Name) and owner.id in ("self", "cls", "super")
                used += [] if own else [f"{ast.unparse(node)} in line {node.lineno}"]
        assert not used, f"{module} uses {used}"


def test_nothing_is_imported_by_star():
    for module, tree in TREES.items():
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert "*" not in [alias.name for node in nodes for alias in node.names], module


def test_no_function_is_longer_than_a_page():
    for module, tree in TREES.items():
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        long = {f.name: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno - f.lineno >= LONGEST_FUNCTION}
        assert not long, f"{module}: {long}"


def test_no_file_is_longer_than_a_chapter():
    for module, path in SOURCES.items():
        assert len(path.read_text("utf-8").splitlines()) <= LONGEST_FILE, module
