"""The directive ``results-graph``: which result rests on which, read from the references in the proofs.

A proof belongs to the labelled block before it. It rests on the results that it cites, and on those whose equations it
cites. The picture has a column for each chapter; on paper the table of citations stands for it.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import escape

import nbformat
import yaml
from docutils import nodes
from rcbook.figures import STYLE
from results_index import LABEL, ROOT, Result, results
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator
from table_nodes import link, table

BLOCK = re.compile(
    r"^[ \t]*(?P<fence>:{3,}|`{3,})\{prf:(?P<kind>\w+)\}(?P<body>.*?)^[ \t]*(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)
CITED = re.compile(r"\{(?:prf:ref|eq)\}`(?:[^`<]*<)?([\w-]+)>?`")
EQUATION = re.compile(r"\$\$ \(([\w-]+)\)")
PLANTED = re.compile(r"In(?:Code|Library)\(\s*\"\w+\",\s*\"([\w-]+)\"")
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
    blocks = [block for page in dict.fromkeys(result.page for result in results()) for block in _of_page(page)]
    known = {result.label: result.label for result in results()}
    known |= {name: label for label, proof, text in blocks if not proof for name in EQUATION.findall(text)}
    proofs: dict[str, set[str]] = {}
    for label, proof, text in blocks:
        if proof:
            proofs.setdefault(label, set()).update(known[name] for name in CITED.findall(text) if name in known)
    return {label: [name for name in known if name in cited - {label}] for label, cited in proofs.items()}


def _of_page(page: str) -> Iterator[tuple[str, bool, str]]:
    """Label, whether this is its proof, and text of each block of a result."""
    label = ""
    for cell in nbformat.read(ROOT / f"{page}.ipynb", as_version=4).cells:
        for block in BLOCK.finditer(cell.source if cell.cell_type == "markdown" else ""):
            if block["kind"] != "proof":
                label = LABEL.search(block["body"])[1]
            yield label, block["kind"] == "proof", block["body"]


@cache
def planted() -> Counter[str]:
    """Label of a result -> how many planted errors its check has to find."""
    tests = ROOT / "tests" / "book"
    with open(tests / "planted_errors.csv", newline="", encoding="utf-8") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    return Counter(labels + PLANTED.findall((tests / "test_planted_errors.py").read_text(encoding="utf-8")))


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
    app.add_directive("results-graph", ResultsGraph)
    app.add_node(Graph, html=(write_graph, None), latex=(skip, None), text=(skip, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
