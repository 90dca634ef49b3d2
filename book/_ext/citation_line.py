"""The directive ``citation-line``: authors, version and date, and how to cite, as ``CITATION.cff`` has them."""

from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[2] / "CITATION.cff"


def name(person: dict[str, Any]) -> str:
    """Of a person, or of a group."""
    return person.get("name") or f"{person['given-names']} {person['family-names']}"


def line() -> str:
    work = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    authors = ", ".join(map(name, work["authors"]))
    date = work["date-released"]
    cited = f"{authors} ({date.year}). {work['title']}, version {work['version']}."
    return f"By {authors}. Version {work['version']}, {date:%d %B %Y}. Cite as: {cited}"


class CitationLine(SphinxDirective):
    """``{citation-line}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(FILE))
        return [nodes.paragraph(text=line(), classes=["front-line"])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("citation-line", CitationLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
