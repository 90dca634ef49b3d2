"""``{how-to-cite}``: the book, a chapter and the software, ready to copy, from CITATION.cff."""

from docutils import nodes
from rcbook import citation
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective


class HowToCite(SphinxDirective):
    """A line of text, and an entry of BibTeX for each of the three."""

    def run(self) -> list[nodes.Node]:
        entry = citation.citation()
        book = entry["title"].partition(": ")[0]
        parts = {
            "The book": citation.bibtex(entry, "rcbook", entry["title"]),
            "A chapter": citation.bibtex(
                entry, "rcbook-chapter", "Risk-based calibration", "incollection", f"Chapter 4 of: {book}"
            ),
            "The library": citation.bibtex(entry, "rcpkg", f"rcpkg, the library of: {book}", "software"),
        }
        found: list[nodes.Node] = [nodes.literal_block(citation.plain(entry), citation.plain(entry), language="text")]
        for name, text in parts.items():
            found += [
                nodes.paragraph("", "", nodes.strong(text=name)),
                nodes.literal_block(text, text, language="bibtex"),
            ]
        return found


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
