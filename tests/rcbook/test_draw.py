"""rcbook.draw and rcbook.trials: a cell, or another function, calls each function of chapters."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for room in ("draw", "trials") for path in sorted((ROOT / "book" / "rcbook" / room).glob("[!_]*.py"))]


@cache
def sources() -> list[str]:
    """The cells of each notebook."""
    pages = *ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")
    books = [json.loads(page.read_text("utf-8")) for page in pages]
    return ["".join(line for cell in book["cells"] for line in cell["source"]) for book in books]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_functions_of_chapters_are_used(path):
    own = path.read_text("utf-8")
    times = Counter(re.findall(r"\w+", " ".join([own, *(text for text in sources() if path.stem in text)])))
    assert [name for name in re.findall(r"^def (\w+)", own, re.MULTILINE) if times[name] == 1] == []
