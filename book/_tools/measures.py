"""``make measures``: what a reader of library and chapters has to hold in mind. No test asks for these numbers.

Of `rcpkg`: by room the lines, the tuned numeric constants (numbers that a module names, and defaults of its record
types' fields) and the record types (named tuples and data classes); the public names that a fitted estimator shows; the
pairs of settings that `ConditionalLikelihood` refuses. Of each chapter what is in view: words, lines of code, tables,
figures, labelled results.
"""

import ast
import itertools
import warnings
from pathlib import Path

import checks
import nbformat
import pandas as pd
from sklearn.datasets import load_iris

import rcpkg

ROOT = Path(rcpkg.__file__).parent
SETTINGS = {  # of `ConditionalLikelihood`: values whose pairs are tried; others keep their defaults
    "coordinates": ("whitened", "natural", "closed_form", "curvature"),
    "solver": ("auto", "newton", "lbfgs"),
    "l2": (0.0, 1.0),
    "target_weight": (0.0, 1.0),
}


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


def rooms() -> pd.DataFrame:
    """One row a room, and one of their sums."""
    rows = []
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        records = [node for node in ast.walk(tree) if is_record(node)]
        assigned = [n for owner in (tree, *records) for n in owner.body if isinstance(n, ast.Assign | ast.AnnAssign)]
        room = path.relative_to(ROOT).parts[0] if path.parent != ROOT else "(top)"
        rows.append((room, len(source.splitlines()), sum(numbers(node.value) for node in assigned), len(records)))
    table = pd.DataFrame(rows, columns=["room", "lines", "constants", "records"]).groupby("room").sum()
    table.loc["all"] = table.sum()
    return table


def chapters() -> pd.DataFrame:
    """One row a chapter or supplement: what a reader has in view."""
    rows = {}
    for path in sorted(checks.ROOT.glob("chapters/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        figures = sum(bool(checks.figure_name(cell)) for cell in checks.code_cells(notebook))
        counts = (checks.words_in_view, checks.lines_in_view, checks.tables_in_view, checks.results_in_view)
        rows[path.stem] = (*(count(notebook) for count in counts), figures)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["words", "code", "tables", "results", "figures"])


def main() -> None:
    """Print all measures."""
    warnings.simplefilter("ignore")
    print(chapters().to_string(), rooms().to_string(), sep="\n\n", end="\n\n")
    X, y = load_iris(return_X_y=True)
    for model in (rcpkg.QDA(), rcpkg.CategoricalNB(), rcpkg.RiskCalibrationCV(rcpkg.QDA())):
        shown = sum(not name.startswith("_") for name in dir(model.fit(X.round(), y)))
        print(f"a fitted {type(model).__name__} shows {shown} public names")
    refused = []
    for (first, ours), (second, theirs) in itertools.combinations(SETTINGS.items(), 2):
        for settings in ({first: a, second: b} for a in ours for b in theirs):
            try:
                rcpkg.ConditionalLikelihood(rcpkg.QDA(), max_iter=1, **settings).fit(X, y)
            except ValueError:
                refused.append(settings)
    print(f"ConditionalLikelihood refuses {len(refused)} pairs of settings:", *refused, sep="\n  ")


if __name__ == "__main__":
    main()
