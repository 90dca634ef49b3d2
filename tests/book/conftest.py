"""What the book's own checks share: where things are, the chapters, and the book built once from stored outputs."""

import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
ALL = os.environ.get("RCPKG_PAGES") == "all"  # as the release and the weekly workflow set it
KINDS_OF_PAGES = (  # opened in a browser if not all are
    "book/intro",
    "book/how_to_classify",
    "chapters/05_mirror_ascent",  # formulas and proofs
    "chapters/11_when_to_calibrate",  # tables and figures
    "chapters/11s_when_to_calibrate",  # exercises and solutions
    "chapters/21_scorecard",
    "book/theorems",
    "book/three_ideas_to_move",
    "book/errata",
    "book/api/calibration",
)
KINDS_OF_LIVE_PAGES = ("book/ten_minutes", "chapters/05_mirror_ascent", "book/project_foundations")


def pytest_generate_tests(metafunc):
    """A test with the argument `chapter` runs on each chapter, one with `page` on each page, or on one of each kind."""
    if "chapter" in metafunc.fixturenames:
        metafunc.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
    if "page" in metafunc.fixturenames:
        opened = pages()
        if "browser" in metafunc.fixturenames and not ALL:
            opened = [name for name in opened if name in KINDS_OF_PAGES]
        metafunc.parametrize("page", opened, ids=lambda name: Path(name).name, scope="module")


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def pages() -> list[str]:
    """The pages of the table of contents, as document names."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(e["file"] for entry in entries for e in (entry, *entry.get("sections", ())))]


@cache
def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, which no test changes."""
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="session")
def html(tmp_path_factory) -> Path:
    """The folder of the rendered book: RCPKG_BOOK, or else built from the stored outputs with warnings as errors."""
    if built := os.environ.get("RCPKG_BOOK"):
        return Path(built)
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    outcome = shared / "book.txt"
    try:
        (shared / "book").mkdir()  # the first of the workers builds for all
    except FileExistsError:
        while not outcome.exists():
            time.sleep(0.5)
    else:
        build(shared / "book", outcome)
    assert outcome.read_text(encoding="utf-8") == ""
    return shared / "book" / "_build" / "html"


def build(target: Path, outcome: Path) -> None:
    """Build the book; what went wrong is written to ``outcome``, nothing if nothing did."""
    command = [sys.executable, str(ROOT / "book" / "_tools" / "build.py"), "--jobs", "1"]
    built = subprocess.run([*command, "--output", str(target / "_build")], capture_output=True, text=True)
    partial = outcome.with_suffix(".part")
    partial.write_text(built.stdout[-3000:] + built.stderr[-3000:] if built.returncode else "", encoding="utf-8")
    partial.rename(outcome)


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium of the system."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    executable = next((path for name in names if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no Chromium on this machine: install Debian's package chromium to run the browser checks")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
