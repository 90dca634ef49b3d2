"""Let cells of the built pages run in the reader's browser: put Python, the library and lists of cells under the pages.

The runtime is that of `book/live.lock.json`: its files come from the folder that RCPKG_PYODIDE names, or else from the
official release, and each must have the sha256 of the lock. narwhals, which rcpkg imports and the runtime has not, is
taken from this environment.
"""

import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import narwhals
import nbformat
import pooch

ROOT = Path(__file__).resolve().parents[2]
LOCK = json.loads((ROOT / "book" / "live.lock.json").read_text(encoding="utf-8"))
SCRIPT = re.compile(r"\n?<script>window\.liveCells.*?</script>\n?<script defer [^>]*live\.js[^>]*></script>", re.DOTALL)
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BOOK = ("rcpkg/**/*.py", "rcpkg/*.pyi", "book/rcbook/**/*.py", "data/*.csv", "data/published/*", "data/results/*")


def runtime(target: Path) -> int:
    """Put the files of the lock into a folder, and return how many bytes these are."""
    target.mkdir(parents=True, exist_ok=True)
    folder = os.environ.get("RCPKG_PYODIDE")
    for name, sha256 in LOCK["files"].items():
        if folder and not Path(folder, name).is_file():
            raise SystemExit(f"RCPKG_PYODIDE names {folder}, where {name} is missing")
        source = Path(folder, name) if folder else pooch.retrieve(LOCK["release"] + name, f"sha256:{sha256}", name)
        if pooch.file_hash(source) != sha256:
            raise SystemExit(f"{source} is not the file of the lock: its sha256 differs")
        shutil.copyfile(source, target / name)
    lock = json.loads((target / "pyodide-lock.json").read_text(encoding="utf-8"))
    for package in lock["packages"].values():  # matplotlib's windows in a page are not used
        package["depends"] = [name for name in package["depends"] if name != "matplotlib-pyodide"]
    (target / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return sum((target / name).stat().st_size for name in LOCK["files"])


def archive(target: Path) -> int:
    """The library, the book's machinery and its stored numbers in one file, the same bytes each time; how many."""
    roots = {ROOT: BOOK, Path(narwhals.__file__).parents[1]: ("narwhals/**/*.py",)}
    found = [(path.relative_to(root), path) for root in roots for each in roots[root] for path in root.glob(each)]
    with zipfile.ZipFile(target, "w") as book:
        for name, path in sorted(found):
            book.writestr(zipfile.ZipInfo(name.as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)  # of 1980
        book.writestr(zipfile.ZipInfo("chapters/"), "")
    return target.stat().st_size


def cells(page: str) -> tuple[str, list[dict]]:
    """Where a page shows its cells, as a CSS selector, and all of its cells in order."""
    if not (path := ROOT / f"{page}.ipynb").is_file():
        blocks = FENCED.findall((ROOT / f"{page}.md").read_text(encoding="utf-8"))
        return "div.highlight-python", [{"source": block, "hidden": False, "live": True} for block in blocks]
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    tagged = [(cell.source, cell.metadata.get("tags", ())) for cell in code]
    return "div.cell", [{"source": s, "hidden": "remove-cell" in t, "live": "not-live" not in t} for s, t in tagged]


def main(html: Path = ROOT / "_build" / "html") -> None:
    if not (html / "index.html").is_file():
        raise SystemExit(f"there are no pages in {html}: make book first")
    folder = html / "_static" / "live"
    size = runtime(folder) + archive(folder / "book.zip")
    for page in LOCK["pages"]:
        selector, code = cells(page)
        listed = {"packages": LOCK["packages"], "bytes": size, "selector": selector, "cells": code}
        path, static = html / f"{page}.html", "../" * page.count("/") + "_static/"
        content = json.dumps(listed).replace("</", "<\\/")
        tag = f'\n<script>window.liveCells = {content};</script>\n<script defer src="{static}live.js"></script>'
        text = SCRIPT.sub("", path.read_text(encoding="utf-8"))
        path.write_text(text.replace("</body>", f"{tag}\n</body>"), encoding="utf-8")
    print(f"{len(LOCK['pages'])} pages run their cells, with {size / 1e6:.0f} MB of Python: make serve shows them")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
