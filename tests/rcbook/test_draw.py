"""rcbook.draw and rcbook.trials: functions of chapters are annotated, explained and used."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for room in ("draw", "trials") for path in sorted((ROOT / "book" / "rcbook" / room).glob("[!_]*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_functions_of_chapters_are_annotated_explained_and_used(path):
    pages = [page.read_text("utf-8") for page in (*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb"))]
    importing = [text for text in pages if re.search(rf"rcbook.*\b{path.stem}\b", text)]
    cells = [cell for text in importing for cell in json.loads(text)["cells"]]
    words, own = re.findall(r"\w+", "".join(line for cell in cells for line in cell["source"])), path.read_text("utf-8")
    for function in ast.parse(own).body:
        if isinstance(function, ast.FunctionDef):
            given, name = function.args, function.name
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            assert function.returns and all(argument.annotation for argument in named), name
            assert ast.get_docstring(function), f"{name} says nothing of what it gives"
            used = name in words or len(re.findall(rf"\b{name}\b", own)) > 1
            assert used, f"no cell and no other function calls {name}"
