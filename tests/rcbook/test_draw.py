"""rcbook.draw and rcbook.trials: functions of chapters are annotated, explained and used."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


FOLDED_MODULES = sorted(
    f"rcbook.{room}.{path.stem}"
    for room in ("draw", "trials")
    for path in (ROOT / "book" / "rcbook" / room).glob("*.py")
    if path.stem != "__init__"
)


def functions(module):
    return {name: f for name, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__}


@pytest.mark.parametrize("name", FOLDED_MODULES)
def test_functions_of_chapters_are_annotated_explained_and_used(name):
    module = importlib.import_module(name)
    page = name.split(".")[-1]  # of a chapter, with its supplement, or another
    notebooks = [*ROOT.glob(f"chapters/*_{page}.ipynb"), *ROOT.glob(f"book/{page}.ipynb")]
    text = "".join(notebook.read_text(encoding="utf-8") for notebook in notebooks)
    own = inspect.getsource(module)
    for function, value in functions(module).items():
        unnamed = [p.name for p in inspect.signature(value).parameters.values() if p.annotation is p.empty]
        assert not unnamed and inspect.signature(value).return_annotation is not inspect.Signature.empty, function
        assert value.__doc__, f"{function} says nothing of what it gives"
        used = re.search(rf"\b{function}\b", text) or len(re.findall(rf"\b{function}\b", own)) > 1
        assert used, f"no cell and no other function calls {function}"
