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


def numbers(value: ast.expr | None) -> list[ast.expr]:
    """The constants of an assigned value: literals, or expressions of literals and EPS."""
    if value is None or isinstance(value, ast.Tuple):
        return [found for part in getattr(value, "elts", ()) for found in numbers(part)]
    literals = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plain = all(isinstance(node, ast.Name) <= (getattr(node, "id", "") == "EPS") for node in ast.walk(value))
    made = isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp)
    return [value] if made and plain and literals and all(type(each) in (int, float) for each in literals) else []


def constants(owner: ast.Module | ast.ClassDef) -> int:
    """How many tuned constants a module names, or a record type has for defaults."""
    assigned = [node for node in owner.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    if isinstance(owner, ast.ClassDef):
        assigned = [n for n in assigned if not (isinstance(n.value, ast.Constant) and not n.value.value)]
    several = [isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) for node in assigned]
    return sum(len(numbers(node.value)[: None if many else 1]) for node, many in zip(assigned, several))


def measures(path: Path) -> tuple[str, int, int, int]:
    """Room of a module, its lines, constants and record types."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    kinds = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    made = {node: {ast.unparse(part).partition("(")[0] for part in node.bases + node.decorator_list} for node in kinds}
    records = [node for node in kinds if made[node] & {"NamedTuple", "dataclass"}]
    room = path.relative_to(ROOT).parts[0] if path.parent != ROOT else "(top)"
    return room, len(source.splitlines()), sum(map(constants, (tree, *records))), len(records)


def main() -> None:
    warnings.simplefilter("ignore")
    view = {"words": checks.words_in_view, "code": checks.lines_in_view}
    view |= {"tables": checks.tables_in_view, "results": checks.results_in_view}
    chapters = {p.stem: nbformat.read(p, as_version=4) for p in sorted(checks.ROOT.glob("chapters/*.ipynb"))}
    print(pd.DataFrame({k: pd.Series(chapters).map(count) for k, count in view.items()}), end="\n\n")
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
