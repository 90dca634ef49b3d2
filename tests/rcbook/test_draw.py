"""rcbook.draw and rcbook.trials: functions of chapters are annotated, explained and used."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for room in ("draw", "trials") for path in sorted((ROOT / "book" / "rcbook" / room).glob("[!_]*.py"))]


@cache
def notebooks() -> list[str]:
    return [page.read_text("utf-8") for page in (*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb"))]


@cache
def imports(notebook: str) -> set[str]:
    """What stands behind the name of the package in a line of a notebook."""
    return {word for line in re.findall(r"rcbook(.*)", notebook) for word in re.findall(r"\w+", line)}


@cache
def words(notebook: str) -> set[str]:
    """Of the cells of a notebook."""
    return set(re.findall(r"\w+", "".join(line for cell in json.loads(notebook)["cells"] for line in cell["source"])))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_functions_of_chapters_are_annotated_explained_and_used(path):
    importing = [text for text in notebooks() if path.stem in imports(text)]
    named, own = set().union(*map(words, importing)), path.read_text("utf-8")
    for function in ast.parse(own).body:
        if isinstance(function, ast.FunctionDef):
            given, name = function.args, function.name
            taken = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            assert function.returns and all(argument.annotation for argument in taken), name
            assert ast.get_docstring(function), f"{name} says nothing of what it gives"
            used = name in named or len(re.findall(rf"\b{name}\b", own)) > 1
            assert used, f"no cell and no other function calls {name}"
