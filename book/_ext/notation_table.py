"""The directives ``notation-table`` and ``chapter-symbols``: what symbols mean, from ``book/notation.csv``.

A row of that file is one symbol, or a few that belong together. Its first column names the chapters in which the
meaning is meant; where it is empty, the meaning holds in the whole book.
"""

from functools import cache
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[1] / "notation.csv"
ROOT = FILE.parents[1]
HEAD = ["| symbol | meaning | in the code |", "|---|---|---|"]


@cache
def entries() -> pd.DataFrame:
    """The rows of the file, the chapters as a set of numbers."""
    rows = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    return rows.assign(chapters=[frozenset(map(int, of.split(","))) if of else frozenset() for of in rows.chapters])


def of_chapter(number: int) -> pd.DataFrame:
    """The symbols whose meaning is that chapter's."""
    return entries()[[number in chapters for chapters in entries().chapters]]


def shared() -> pd.DataFrame:
    """The symbols that mean the same in the whole book."""
    return entries()[[not chapters for chapters in entries().chapters]]


def markdown(rows: pd.DataFrame) -> list[str]:
    """The lines of a table."""
    return HEAD + [f"| {row.symbol} | {row.meaning} | {row.code} |" for row in rows.itertuples()]


class Written(SphinxDirective):
    """A directive whose page text is made, line by line, and then read like what stands in the page."""

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(FILE))
        box = nodes.container()
        self.state.nested_parse(StringList(self.lines()), self.content_offset, box)
        for table in box.findall(nodes.table):
            table["classes"].append("notation")
        return box.children


class NotationTable(Written):
    """``{notation-table}``: what all chapters share, then the symbols of each chapter under its title."""

    def lines(self) -> list[str]:
        lines = [*markdown(shared()), ""]
        for path in sorted(ROOT.glob("chapters/*.ipynb")):
            rows = of_chapter(int(path.name[:2]))
            if len(rows):
                lines += [f"**Chapter {int(path.name[:2])}: {{doc}}`/chapters/{path.stem}`**", "", *markdown(rows), ""]
        return lines


class ChapterSymbols(Written):
    """``{chapter-symbols}``: a fold with the symbols of the chapter that it stands in."""

    def lines(self) -> list[str]:
        rows = of_chapter(int(Path(self.env.docname).name[:2]))
        if not len(rows):
            return []
        link = "Symbols that the whole book shares are on the page {ref}`notation`."
        return [":::{admonition} Symbols of this chapter", ":class: dropdown", link, "", *markdown(rows), ":::"]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("notation-table", NotationTable)
    app.add_directive("chapter-symbols", ChapterSymbols)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
