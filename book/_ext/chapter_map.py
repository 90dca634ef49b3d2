"""The directive ``chapter-map``: the pages of the book as stops of a few routes, drawn, and in words in a fold below.

A line of its content is the name of a part, or ``page [routes] "short title" after 4, 5: what it is``. A page is
``NN_name`` of a chapter, or ``book/name``; routes, short title and the chapters it rests on may be left out.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
ROUTES = {"theory": "#0072B2", "user": "#009E73", "auditor": "#D55E00"}
ENTRY = re.compile(
    r'(?P<page>\d\d_\w+|\w+/\w+)(?: \[(?P<routes>[\w ]+)\])?(?: "(?P<short>[^"]+)")?'
    r"(?: after (?P<after>[\d, ]+))?: (?P<text>.+)"
)
ROW, PART, GAP, TEXT = 27, 34, 22, 84  # pixels: height of a stop, of a part, between routes, left of the titles


class Stop(NamedTuple):
    """A page on the map, or the name of a part, which no route stops at."""

    docname: str
    title: str
    routes: frozenset[str] = frozenset()
    after: str = ""
    text: str = ""

    @property
    def number(self) -> str:
        """Of a chapter, from its file."""
        return str(int(self.docname[9:11])) if self.docname.startswith("chapters/") else ""


def title_of(docname: str) -> str:
    """The heading of a page, up to a colon."""
    notebook = ROOT / f"{docname}.ipynb"
    text = (
        nbformat.read(notebook, 4).cells[0].source if notebook.exists() else (ROOT / f"{docname}.md").read_text("utf-8")
    )
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1].split(":")[0]


def stop(line: str) -> Stop:
    found = ENTRY.fullmatch(line)
    if not found:
        return Stop("", line)
    page = found["page"] if "/" in found["page"] else f"chapters/{found['page']}"
    routes = frozenset((found["routes"] or "").split())
    if routes - set(ROUTES):
        raise ValueError(f"routes are {', '.join(ROUTES)}; got {line!r}")
    return Stop(page, found["short"] or title_of(page), routes, found["after"] or "", found["text"])


def drawn(stops: list[Stop], root: str) -> str:
    """The map as SVG that takes its colours of text from the page."""
    places, height = [], 0
    for one in stops:
        step = ROW if one.docname else PART
        places.append(height + step - ROW // 2)
        height += step
    pieces = []
    for position, (route, colour) in enumerate(ROUTES.items()):
        x = 14 + GAP * position
        at = [y for one, y in zip(stops, places, strict=True) if route in one.routes]
        pieces.append(f'<path d="M{x} {at[0]}V{at[-1]}" stroke="{colour}" stroke-width="4" />')
        pieces += [f'<circle cx="{x}" cy="{y}" r="7" fill="{colour}" />' for y in at]
    for one, y in zip(stops, places, strict=True):
        if not one.docname:
            pieces.append(f'<text x="{TEXT}" y="{y + 4}" class="part">{escape(one.title)}</text>')
            continue
        label = f"{one.number} {one.title}".strip()
        pieces.append(f'<a href="{root}{one.docname}.html"><text x="{TEXT}" y="{y + 5}">{escape(label)}</text></a>')
        if one.after:
            pieces.append(f'<text x="100%" y="{y + 5}" class="after">after {escape(one.after)}</text>')
    told = "; ".join(
        f"{route}: {', '.join(one.number or one.title for one in stops if route in one.routes)}" for route in ROUTES
    )
    label = escape(f"Routes through the book. {told}")
    head = f'<svg class="chapter-map" height="{height + 6}" role="group" aria-label="{label}">'
    return head + "".join(pieces) + "</svg>"


class ChapterMap(SphinxDirective):
    """The drawing with its legend, then the pages in words."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        stops = [stop(line) for line in self.content if line.strip()]
        legend = "".join(f'<span style="--route: {colour}">{route}</span>' for route, colour in ROUTES.items())
        drawing = drawn(stops, "../" * self.env.docname.count("/"))
        html = f'<div class="chapter-routes"><p class="legend">{legend}</p>{drawing}</div>'
        lines = ["::::{dropdown} The chapters in words", ""]
        for one in stops:
            named = [f"{one.number} {{doc}}`/{one.docname}`".strip(), f": {one.text}", ""]
            lines += named if one.docname else [f"**{one.title}**", ""]
        box = nodes.container()
        self.state.nested_parse(StringList([*lines, "::::"]), self.content_offset, box)
        return [nodes.raw("", html, format="html"), *box.children]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("chapter-map", ChapterMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
