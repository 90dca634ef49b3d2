"""The directives ``results-index``, every labelled result of the book, made from its block and its check, and
``results-graph``: which result rests on which, read from the references in the proofs.

A comment below the label says what the result states in a line, where it comes from, and which names of rcpkg and
which tests hold it; the verdict is what the check has stored. ``_static/results.js`` adds the filters. A proof belongs
to the labelled block before it. It rests on the results that it cites, and on those whose equations it cites. The
picture has a column for each chapter; on paper the table of citations stands for it.
"""

import csv
import re
from collections import Counter
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml
from docutils import nodes
from rcbook.figures import STYLE
from rcbook.words import in_words
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator
from table_nodes import link, table

ROOT = Path(__file__).resolve().parents[2]
KINDS = "theorem|proposition|lemma|corollary|definition|algorithm"
BLOCK = re.compile(
    rf"^[ \t]*(?P<fence>:{{3,}}|`{{3,}})\{{prf:(?P<kind>{KINDS}|proof)\}}[ \t]*(?P<title>[^\n]*)\n"
    r"(?P<body>.*?)^[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LABEL = re.compile(r":label:[ \t]*(\S+)")
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
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
def blocks() -> list[tuple[Result, str, str]]:
    """Each labelled block in reading order, that of the table of contents, with its text and that of its proof."""
    pages = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [block for page in pages if (ROOT / f"{page}.ipynb").exists() for block in _of_page(page)]


def results() -> list[Result]:
    """All labelled results, in reading order."""
    return [result for result, _, _ in blocks()]


def _of_page(page: str) -> list[tuple[Result, str, str]]:
    cells = nbformat.read(ROOT / f"{page}.ipynb", as_version=4).cells
    tagged = ((tag, cell) for cell in cells for tag in cell.metadata.get("tags", ()) if tag.startswith("check:"))
    verdicts = {tag: "".join(output.get("text", "") for output in cell.outputs) for tag, cell in tagged}
    found: list[tuple[Result, str, str]] = []
    for block in BLOCK.finditer("\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")):
        if block["kind"] == "proof":
            found[-1] = (*found[-1][:2], found[-1][2] + block["body"])
            continue
        if not (label := LABEL.search(block["body"])):
            raise ExtensionError(f"{page}: a {block['kind']} without a label")
        verdict = verdicts.get(f"check:{label[1]}", "").strip().removeprefix("checked: ")
        notes = dict(NOTE.findall("".join(COMMENT.findall(block["body"]))))
        found.append(
            (Result(page, block["kind"], label[1], block["title"].strip(), verdict, **notes), block["body"], "")
        )
    return found


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
        statement = result.statement[:1].upper() + result.statement[1:]
        says = nodes.container("", nodes.paragraph("", "", self.inline(statement)))
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
        listed = "<br>".join(f"<code>{test}</code>" for test in tests)
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


CITED = re.compile(r"\{(?:prf:ref|eq)\}`(?:[^`<]*<)?([\w-]+)>?`")
EQUATION = re.compile(r"\$\$ \(([\w-]+)\)")
BLUE, SKY, ORANGE = (STYLE["axes.prop_cycle"].by_key()["color"][place] for place in (0, 5, 4))
STATES = {
    "checked, and the check finds planted errors": (BLUE, "white"),
    "checked": (SKY, "black"),
    "proved": (ORANGE, "black"),
    "stated": ("none", "currentColor"),
}
"""Fill and ink of a box, by what has been done for the result."""

COLUMN, ROW, BOX, TOP = (44, 20), 20, (36, 14), 44  # pixels


@cache
def citations() -> dict[str, list[str]]:
    """Label of a result with a proof -> labels of the results that the proof rests on, in reading order."""
    known = {result.label: result.label for result in results()}
    known |= {name: result.label for result, text, _ in blocks() for name in EQUATION.findall(text)}
    proved = {result.label: proof for result, _, proof in blocks() if proof}
    proofs = {label: {known.get(name) for name in CITED.findall(proof)} - {label} for label, proof in proved.items()}
    return {label: [name for name in known if name in cited] for label, cited in proofs.items()}


@cache
def planted() -> Counter[str]:
    """Label of a result -> how many planted errors its check has to find."""
    with open(ROOT / "tests" / "book" / "planted_errors.csv", newline="", encoding="utf-8") as file:
        return Counter(row["label"] for row in csv.DictReader(file))


def state(result: Result) -> str:
    """That of ``STATES`` which a box shows."""
    done = (result.verdict and result.label in planted(), result.verdict, result.label in citations(), True)
    return next(name for name, holds in zip(STATES, done, strict=True) if holds)


def places(numbers: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, int]]:
    """Corner of the box of each result: its chapter's column, and below those with arrows those without."""
    joined = {label for user, cited in citations().items() if cited for label in (user, *cited)}
    chapters = sorted({chapter for chapter, _ in numbers.values()})
    columns = {c: [label for label, number in numbers.items() if number[0] == c] for c in chapters}
    split = max(len(joined.intersection(column)) for column in columns.values())
    found = {}
    for place, column in enumerate(columns.values()):
        for first, group in ((0, joined), (split + 1, set(numbers) - joined)):
            members = [label for label in column if label in group]
            found |= {name: (COLUMN[0] * place + 4, TOP + ROW * (first + row)) for row, name in enumerate(members)}
    return found


def arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """From the right of one box to the left of another; within a column around at the right."""
    (x, y), (u, v) = start, end
    x, y, v = x + BOX[0], y + BOX[1] // 2, v + BOX[1] // 2
    if x == u + BOX[0]:
        bend = 6 + abs(v - y) // 6
        return f"M{x} {y}C{x + bend} {y} {x + bend} {v} {x + 1} {v}"
    return f"M{x} {y}C{x + 20} {y} {u - 20} {v} {u - 1} {v}"


class Graph(nodes.General, nodes.Element):
    """The picture; numbers and addresses are known only when the page is written."""


def svg(builder: Builder, page: str) -> str:
    env = builder.env
    entries = {r.label: env.proof_list[r.label] for r in results() if r.label in env.proof_list}
    numbers = {
        name: tuple(env.toc_fignumbers[entry["docname"]][entry["countertype"]][name]) for name, entry in entries.items()
    }
    shown = [result for result in results() if result.label in numbers]
    at = places(numbers)
    width, height = (max(corner[axis] for corner in at.values()) + COLUMN[axis] for axis in (0, 1))
    parts = []
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    for part in (part for part in toc["parts"] if part.get("numbered")):
        for place, entry in enumerate(part["chapters"]):
            number = env.toc_secnumbers[entry["file"]][""][0]
            if x := next((at[name][0] for name in at if numbers[name][0] == number), None):
                if not place:
                    caption = escape(part["caption"].partition(":")[0])
                    parts.append(
                        f'<path class="part" d="M{x - 2} 4V{height}"/><text x="{x + 2}" y="14">{caption}</text>'
                    )
                parts.append(f'<text class="chapter" x="{x + BOX[0] / 2}" y="34">{number}</text>')
    arrows = [(cited, user) for user, rests in citations().items() for cited in rests if user in at and cited in at]
    for cited, user in arrows:
        parts.append(f'<path class="arrow" data-ends="{cited} {user}" d="{arrow(at[cited], at[user])}"/>')
    for result in shown:
        (x, y), (fill, ink), entry = at[result.label], STATES[state(result)], entries[result.label]
        number, corner = ".".join(map(str, numbers[result.label])), 1 if result.label in citations() else 7
        title = f": {result.title}" * bool(
            result.title and not set("$`{").intersection(result.title)
        )  # a tip has no TeX
        says = escape(f"{result.kind.title()} {number}{title} ({state(result)})")
        uri = f"{builder.get_relative_uri(page, entry['docname'])}#{result.label}"
        parts.append(
            f'<a href="{uri}" tabindex="-1" data-result="{result.label}"><title>{says}</title>'
            f'<rect x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="{corner}" fill="{fill}"/>'
            f'<text x="{x + BOX[0] / 2}" y="{y + 10.5}" fill="{ink}">{result.kind[0].upper()}{number}</text></a>'
        )
    counts = {name: sum(state(result) == name for result in shown) for name in STATES}
    legend = "".join(
        f'<li><span style="background: {STATES[name][0]}"></span>{name} ({count})</li>'
        for name, count in counts.items()
        if count
    )
    alt = f"Graph of {len(shown)} results with {len(arrows)} arrows from a result to the results whose proofs cite it."
    head = '<marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
    parts.insert(0, f'<defs>{head}<path d="M0 0L6 3L0 6Z"/></marker></defs>')
    root = "../" * page.count("/")
    return (
        f'<figure class="results-graph"><figcaption><ul>{legend}</ul></figcaption><div><svg role="group" '
        f'aria-label="{alt} The table below lists them." viewBox="0 0 {width} {height}" width="{width}">'
        f'{"".join(parts)}</svg></div></figure><script defer src="{root}_static/results_graph.js"></script>'
    )


def write_graph(translator: HTML5Translator, node: Graph) -> None:
    translator.body.append(svg(translator.builder, translator.builder.current_docname))
    raise nodes.SkipNode


def skip(_: nodes.NodeVisitor, node: Graph) -> None:
    raise nodes.SkipNode


class ResultsGraph(SphinxDirective):
    """``{results-graph}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        shown = [result for result in results() if result.page in self.env.found_docs]
        fold = [nodes.raw("", html, format="html") for html in ("<details><summary>As a table</summary>", "</details>")]
        headings = ("result", "rests on", "proved", "checked", "errors planted")
        whole = table(headings, [self.row(result) for result in shown], "results-rests")
        brief = [self.row(result)[:2] for result in shown if citations().get(result.label)]
        paper = addnodes.only("", table(headings[:2], brief, "results-rests"), expr="latex")
        return [Graph(), fold[0], addnodes.only("", whole, expr="html"), fold[1], paper]

    def row(self, result: Result) -> list[str | nodes.Node]:
        name, rests = nodes.inline("", "", self.cited(result.label), nodes.Text(" ")), nodes.inline()
        name += nodes.inline("", "", *self.state.inline_text(result.title, self.lineno)[0])
        for place, label in enumerate(citations().get(result.label, ())):
            rests += [nodes.Text(", ")] * (place > 0) + [self.cited(label)]
        rests += [nodes.Text("–")] * (not rests.children)
        proved, checked = ("yes" if holds else "–" for holds in (result.label in citations(), result.verdict))
        return [name, rests, proved, checked, str(planted()[result.label] or "–")]

    def cited(self, label: str) -> addnodes.pending_xref:
        return link("prf", "ref", label, label)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("results-index", ResultsIndex)
    app.add_directive("results-graph", ResultsGraph)
    app.add_node(Graph, html=(write_graph, None), latex=(skip, None), text=(skip, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
