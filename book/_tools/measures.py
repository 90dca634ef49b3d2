"""``make measures``: what a reader of library and chapters has to hold in mind. No test asks for these numbers.

Of each chapter what is in view: words, lines of code, tables, results. Of `rcpkg`: by room the lines, the tuned numeric
constants and the record types (named tuples and data classes); the public names that a fitted estimator shows, and how
many of them are its own: neither those of scikit-learn's estimator of that kind nor the ``set_…_request`` that
scikit-learn makes.

A tuned constant is a number that a module names, or the default of a field of a record type. Several numbers under one
name are one decision, a grid; what is computed from another such constant is none of its own; and 0 as a default, like
None, says that there is nothing.
"""

import ast
import warnings
from pathlib import Path

import checks
import nbformat
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegressionCV
from sklearn.naive_bayes import CategoricalNB

import rcpkg

ROOT = Path(rcpkg.__file__).parent


def is_record(node: ast.AST) -> bool:
    """Whether a class is a named tuple or a data class."""
    above = [*node.bases, *node.decorator_list] if isinstance(node, ast.ClassDef) else []
    return any(ast.unparse(part).partition("(")[0] in ("NamedTuple", "dataclass") for part in above)


def numbers(value: ast.expr | None, grid: bool) -> int:
    """How many constants an assigned value is: a literal, an expression of literals and EPS, or several of these."""
    if isinstance(value, ast.Tuple):
        found = [numbers(part, grid) for part in value.elts]
        return min(sum(found), 1) if grid else sum(found)
    parts = [] if value is None else list(ast.walk(value))
    literals = [node.value for node in parts if isinstance(node, ast.Constant)]
    derived = any(isinstance(node, ast.Name) and node.id != "EPS" for node in parts)
    plain = bool(literals) and not derived and all(type(each) in (int, float) for each in literals)
    return int(plain and isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp))


def constants(owner: ast.Module | ast.ClassDef) -> int:
    """How many tuned constants a module names, or a record type has for defaults."""
    count = 0
    for node in owner.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            nothing = isinstance(owner, ast.ClassDef) and isinstance(node.value, ast.Constant) and not node.value.value
            several = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
            count += 0 if nothing else numbers(node.value, grid=not several)
    return count


def measures(path: Path) -> tuple[str, int, int, int]:
    """Room of a module, its lines, constants and record types."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    records = [node for node in ast.walk(tree) if is_record(node)]
    room = path.relative_to(ROOT).parts[0] if path.parent != ROOT else "(top)"
    return room, len(source.splitlines()), sum(map(constants, (tree, *records))), len(records)


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
    rivals = (QuadraticDiscriminantAnalysis, CategoricalNB, LogisticRegressionCV)
    for model, rival in zip((rcpkg.QDA(), rcpkg.CategoricalNB(), rcpkg.RiskCalibrationCV(rcpkg.QDA())), rivals):
        shown, known = ({name for name in dir(each.fit(X.round(), y)) if name[0] != "_"} for each in (model, rival()))
        own = [name for name in shown - known if not name.endswith("_request")]
        print(f"a fitted {type(model).__name__} shows {len(shown)} public names, {len(own)} of them its own")


if __name__ == "__main__":
    main()
