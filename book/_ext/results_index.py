"""The directive ``results-index``: every labelled result of the book, made from its block and its check.

A comment below the label says what the result states in a line, where it comes from, and which names of rcpkg and
which tests hold it; the verdict is what the check has stored. ``_static/results.js`` adds the filters.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
from docutils import nodes
from rcbook.words import in_words
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from table_nodes import link, table

ROOT = Path(__file__).resolve().parents[2]
KINDS = "theorem|proposition|lemma|corollary|definition|algorithm"
BLOCK = re.compile(
    rf"^[ \t]*(?::{{3,}}|`{{3,}})\{{prf:(?P<kind>{KINDS})\}}[ \t]*(?P<title>[^\n]*)\n"
    r"(?P<options>(?:[ \t]*:[\w-]+:[^\n]*\n)*)"
    r"(?:[ \t]*<!--\n(?P<notes>(?:[ \t]*\w+: [^\n]*\n)*)[ \t]*-->)?",
    re.MULTILINE,
)
LABEL = re.compile(r":label:[ \t]*(\S+)")
NOTE = re.compile(r"^[ \t]*(statement|origin|names|tests): (.+)$", re.MULTILINE)
REMEDY = """write below its label
<!--
statement: what it states, in a line
origin: the source and its equation, or nothing: then the page says that nobody has reviewed it yet
names: of rcpkg, that hold it (may be left out)
tests: that hold it, such as test_rows.py::test_one_block_is_the_array (may be left out)
-->"""
UNREVIEWED = "not reviewed yet"
PRINTED = 3  # tests of a result that are named on paper
FILTER = """
<form class="results-filter" hidden>
  <label>Kind <select name="kind"></select></label>
  <label>Chapter <select name="chapter"></select></label>
  <label>From <select name="origin"></select></label>
  <label>Words <input name="words" type="text" autocomplete="off" placeholder="posterior rank-one"></label>
</form>
<p class="results-status" role="status"></p>
<script defer src="{root}_static/results.js"></script>
"""


class Result(NamedTuple):
    """A labelled block of ``page`` (chapters/05_mirror_ascent), what its comment says, and the verdict of its check."""

    page: str
    kind: str
    label: str
    title: str
    verdict: str
    statement: str = ""
    origin: str = ""
    names: str = ""
    tests: str = ""


@cache
def results() -> list[Result]:
    """All labelled results, in reading order: that of the table of contents."""
    pages = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [result for page in pages if (ROOT / f"{page}.ipynb").exists() for result in _of_page(page)]


def _of_page(page: str) -> Iterator[Result]:
    notebook = nbformat.read(ROOT / f"{page}.ipynb", as_version=4)
    verdicts = {
        tag.removeprefix("check:"): "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        for tag in cell.metadata.get("tags", ())
        if tag.startswith("check:")
    }
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for block in BLOCK.finditer(cell.source):
                if label := LABEL.search(block["options"]):
                    verdict = verdicts.get(label[1], "").strip().removeprefix("checked: ")
                    notes = dict(NOTE.findall(block["notes"] or ""))
                    yield Result(page, block["kind"], label[1], block["title"].strip(), verdict, **notes)


class ResultsIndex(SphinxDirective):
    """``{results-index}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        if silent := [f"{result.label} in {result.page}" for result in results() if not result.statement]:
            raise self.error(f"{', '.join(silent)}: {REMEDY}")
        rows = [self.row(result) for result in results() if result.page in self.env.found_docs]
        headings = ("result", "what it says, and the verdict of its check", "from", "held by")
        root = "../" * self.env.docname.count("/")
        return [nodes.raw("", FILTER.format(root=root), format="html"), table(headings, rows, "results-index")]

    def row(self, result: Result) -> list[str | nodes.Node]:
        name = nodes.inline("", "", link("prf", "ref", result.label, result.label), nodes.inline("", " "))
        name += self.inline(result.title)
        says = nodes.container("", nodes.paragraph("", "", self.inline(result.statement)))
        if result.verdict:
            says += nodes.paragraph(text=f"✓ {result.verdict}", classes=["verdict"])
        return [name, says, in_words(result.origin) or UNREVIEWED, held(result.names.split(), result.tests.split())]

    def inline(self, text: str) -> nodes.inline:
        return nodes.inline("", "", *self.state.inline_text(text, self.lineno)[0])


def held(names: list[str], tests: list[str]) -> nodes.container:
    """Names of rcpkg, and the tests, behind a fold where there is one: they are many."""
    cell = nodes.container("", nodes.paragraph())
    for name in names:
        documented = name.startswith(("rcpkg.", "rcbook.experiments."))  # the reference has no page of the rest
        shown = link("py", "obj", name, short(name), nodes.literal) if documented else nodes.literal(text=short(name))
        cell[0] += [shown, nodes.Text(" ")]
    if tests:
        count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
        listed = "".join(f"<br><code>{test}</code>" for test in tests)
        cell += nodes.raw("", f"<details><summary>{count}</summary>{listed}</details>", format="html")
        words = "; ".join([*map(sentence, tests[:PRINTED]), *["…"] * (len(tests) > PRINTED)])
        cell += addnodes.only("", nodes.paragraph(text=f"{count}: {words}"), expr="latex")
    return cell


def short(name: str) -> str:
    """A name of rcpkg without its modules.

    >>> short("rcpkg.local.BregmanKNN.neighbor_weights"), short("rcpkg.bregman.gaussian_kl")
    ('BregmanKNN.neighbor_weights', 'gaussian_kl')
    """
    *modules, last = name.split(".")
    return ".".join([part for part in modules if not part.islower()] + [last])


def sentence(test: str) -> str:
    """What a test says, for paper, where its name finds no place to break.

    >>> sentence("test_rows.py::test_one_block_is_the_array[QDA]")
    'one block is the array'
    """
    return test.split("::")[-1].split("[")[0].removeprefix("test_").replace("_", " ")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("results-index", ResultsIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
