"""``{how-to-cite}``: the book, a chapter and the software, ready to copy, from CITATION.cff."""

import json
import re

from docutils import nodes
from rcbook import citation
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

CHAPTER = 4


class HowToCite(SphinxDirective):
    """A line of text and an entry of BibTeX for each of the three."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for name, (text, entry) in citation.works(citation.citation(), CHAPTER, title(CHAPTER)).items():
            found += [
                nodes.paragraph("", "", nodes.strong(text=name)),
                nodes.literal_block(text, text, language="text"),
                nodes.literal_block(entry, entry, language="bibtex"),
            ]
        return found


def title(number: int) -> str:
    """The title of a chapter, as its notebook opens."""
    (path,) = (citation.ROOT / "chapters").glob(f"{number:02}_*.ipynb")
    source = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    return re.search(r"^# (.+)$", source, re.MULTILINE)[1]


def add_version(app: Sphinx, config: Config) -> None:
    """``{{ version }}``, ``{{ released }}`` and ``{{ authors }}`` in any page."""
    entry = citation.citation()
    said = {"version": entry["version"], "released": str(entry["date-released"])}
    said["authors"] = "; ".join(citation.authors(entry))
    config.myst_substitutions = {**config.myst_substitutions, **said}


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("how-to-cite", HowToCite)
    app.connect("config-inited", add_version)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
