"""``make measures``: what a reader of library and chapters has to hold in mind. No test asks for these numbers.

Of each chapter what is in view: words, lines of code, tables, results. Of `rcpkg`: by room the lines, the tuned numeric
constants (numbers that a module names, and defaults of its record types' fields) and the record types (named tuples and
data classes); the public names that a fitted estimator shows.
"""

import ast
import warnings
from pathlib import Path

import checks
import nbformat
import pandas as pd
from sklearn.datasets import load_iris

import rcpkg

ROOT = Path(rcpkg.__file__).parent


def is_record(node: ast.AST) -> bool:
    """Whether a class is a named tuple or a data class."""
    above = [*node.bases, *node.decorator_list] if isinstance(node, ast.ClassDef) else []
    return any(word in ast.unparse(part) for part in above for word in ("NamedTuple", "dataclass"))


def numbers(value: ast.expr | None) -> int:
    """How many of the values assigned are numbers: literals, or expressions made of nothing but numbers."""
    if isinstance(value, ast.Tuple):
        return sum(map(numbers, value.elts))
    parts = [] if value is None else [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plain = bool(parts) and all(type(part.value) in (int, float) for part in parts)
    return int(plain and isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp))


def measures(path: Path) -> tuple[str, int, int, int]:
    """Room of a module, its lines, constants and record types."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    records = [node for node in ast.walk(tree) if is_record(node)]
    assigned = [n.value for owner in (tree, *records) for n in owner.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    room = path.relative_to(ROOT).parts[0] if path.parent != ROOT else "(top)"
    return room, len(source.splitlines()), sum(map(numbers, assigned)), len(records)


def main() -> None:
    """Print all measures."""
    warnings.simplefilter("ignore")
    counts = (checks.words_in_view, checks.lines_in_view, checks.tables_in_view, checks.results_in_view)
    chapters = {p.stem: nbformat.read(p, as_version=4) for p in sorted(checks.ROOT.glob("chapters/*.ipynb"))}
    view = {name: [count(notebook) for count in counts] for name, notebook in chapters.items()}
    print(pd.DataFrame.from_dict(view, orient="index", columns=["words", "code", "tables", "results"]), end="\n\n")
    rows = [measures(path) for path in ROOT.rglob("*.py")]
    rooms = pd.DataFrame(rows, columns=["room", "lines", "constants", "records"]).groupby("room").sum()
    print(pd.concat([rooms, rooms.sum().to_frame("all").T]), end="\n\n")
    X, y = load_iris(return_X_y=True)
    for model in (rcpkg.QDA(), rcpkg.CategoricalNB(), rcpkg.RiskCalibrationCV(rcpkg.QDA())):
        shown = sum(not name.startswith("_") for name in dir(model.fit(X.round(), y)))
        print(f"a fitted {type(model).__name__} shows {shown} public names")


if __name__ == "__main__":
    main()
