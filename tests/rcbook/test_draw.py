"""rcbook.draw: what figures and tables of chapters show is what they are given."""

import importlib
import inspect
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from rcbook.draw import functional_bregman_and_the_uniform as uniform

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_risks_of_the_uniform_tend_to_their_limits():
    """n times the squared error: 2 and 1 for two unknown ends, and of squares twice the errors of a side."""
    found = uniform.risks_times_n((10_000,))[10_000]
    assert found["two unknown ends", "best"] == pytest.approx(1, abs=1e-3)
    assert found["two unknown ends", "maximum likelihood"] == pytest.approx(2, abs=1e-3)
    assert found["square", "best, four unknown sides"] == pytest.approx(2, abs=1e-3)


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
