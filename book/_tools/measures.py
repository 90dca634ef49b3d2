"""The measures of the library, printed: what a reader of the code has to hold in mind. No test asks for them.

Run ``make measures``. The numbers are of `rcpkg` alone:

- lines by room, of code, docstrings, comments, and blank ones;
- tuned numeric constants: numbers that a module names, and defaults of the fields of its record types;
- record types: named tuples and data classes that are no estimators;
- public names that a fitted estimator shows;
- pairs of settings that `ConditionalLikelihood` refuses.
"""

import ast
import io
import itertools
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_iris

import rcpkg

ROOT = Path(rcpkg.__file__).parent
KINDS = ("code", "docstring", "comment", "blank")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
RECORDS = {"NamedTuple", "dataclass"}
#: Values of each parameter of `ConditionalLikelihood` whose combinations are tried; others keep their defaults
SETTINGS = {
    "coordinates": ("whitened", "natural", "closed_form", "curvature"),
    "solver": ("auto", "newton", "lbfgs"),
    "l2": (0.0, 1.0),
    "target_weight": (0.0, 1.0),
}


def lines(source: str) -> Counter[str]:
    """How many lines of each kind a file has. A line with code and a comment is code."""
    kinds = ["blank"] * (len(source.splitlines()) + 1)
    layout = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        for number in range(token.start[0], token.end[0] + 1):
            if token.type == tokenize.COMMENT:
                kinds[number] = "comment" if kinds[number] == "blank" else kinds[number]
            elif token.type not in layout:
                kinds[number] = "code"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            kinds[node.body[0].lineno : node.body[0].end_lineno + 1] = ["docstring"] * (
                node.body[0].end_lineno - node.body[0].lineno + 1
            )
    return Counter(kinds[1:])


def name_of(node: ast.expr) -> str:
    """The last part of a name that may be dotted or called."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_record(node: ast.AST) -> bool:
    """Whether a class is a named tuple or a data class."""
    return isinstance(node, ast.ClassDef) and bool(
        RECORDS & {name_of(part) for part in (*node.bases, *node.decorator_list)}
    )


def numbers(value: ast.expr | None) -> int:
    """How many of the values assigned are numbers: literals, or expressions and calls made of nothing but numbers."""
    if isinstance(value, ast.Tuple):
        return sum(map(numbers, value.elts))
    parts = [] if value is None else [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plain = bool(parts) and all(type(part.value) in (int, float) for part in parts)
    return int(plain and isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp))


def constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and number of the numeric constants of a module, and of the defaults of its records."""
    records = [node for node in ast.walk(tree) if is_record(node)]
    for owner in (tree, *records):
        for node in owner.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and numbers(node.value):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                yield ast.unparse(target), numbers(node.value)


def rooms() -> pd.DataFrame:
    """One row a room: its lines of each kind, its numeric constants and its record types."""
    counted: dict[str, Counter[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        room = counted.setdefault(path.relative_to(ROOT).parts[0] if path.parent != ROOT else "(top)", Counter())
        room += lines(source)
        room["constants"] += sum(number for _, number in constants(tree))
        room["records"] += sum(map(is_record, ast.walk(tree)))
    table = pd.DataFrame(counted).T.reindex(columns=[*KINDS, "constants", "records"]).fillna(0).astype(int)
    table.insert(0, "lines", table[list(KINDS)].sum(axis=1))
    table.loc["all"] = table.sum()
    return table


def public_names() -> dict[str, int]:
    """How many names without an underscore in front a fitted estimator shows."""
    X, y = load_iris(return_X_y=True)
    models = (rcpkg.QDA(), rcpkg.CategoricalNB(), rcpkg.RiskCalibrationCV(rcpkg.QDA()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = {type(model).__name__: dir(model.fit(X.round(), y)) for model in models}
    return {name: sum(not word.startswith("_") for word in words) for name, words in shown.items()}


def refusals() -> list[dict[str, object]]:
    """The settings of two parameters, the others at their defaults, that `ConditionalLikelihood` refuses."""
    X, y = load_iris(return_X_y=True)
    known = {name: SETTINGS[name] for name in SETTINGS if name in rcpkg.ConditionalLikelihood(rcpkg.QDA()).get_params()}
    refused = []
    for (first, ours), (second, theirs) in itertools.combinations(known.items(), 2):
        for settings in ({first: a, second: b} for a in ours for b in theirs):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rcpkg.ConditionalLikelihood(rcpkg.QDA(), max_iter=1, **settings).fit(X, y)
            except ValueError:
                refused.append(settings)
    return refused


def main() -> None:
    """Print all measures."""
    print(rooms().to_string(), end="\n\n")
    for name, number in public_names().items():
        print(f"a fitted {name} shows {number} public names")
    refused = refusals()
    print(f"ConditionalLikelihood refuses {len(refused)} pairs of settings:")
    for settings in refused:
        print("  " + ", ".join(f"{name}={value!r}" for name, value in settings.items()))


if __name__ == "__main__":
    main()
