"""A table of the document tree from rows of texts and nodes, and references in it."""

from collections.abc import Iterable

from docutils import nodes
from sphinx.addnodes import pending_xref

Cell = str | nodes.Node


def table(headings: Iterable[str], rows: Iterable[Iterable[Cell]], name: str) -> nodes.table:
    """A table of class ``name``; a text becomes a paragraph, a container stays what it is."""
    headings = list(headings)
    group = nodes.tgroup("", *(nodes.colspec() for _ in headings), cols=len(headings))
    group += nodes.thead("", _row(headings))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=[name])


def _row(cells: Iterable[Cell]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", _paragraph(cell)) for cell in cells))


def _paragraph(cell: Cell) -> nodes.Element:
    if isinstance(cell, nodes.container):
        return cell
    return nodes.paragraph(text=cell) if isinstance(cell, str) else nodes.paragraph("", "", cell)


def link(domain: str, role: str, target: str, text: str, kind: type[nodes.Element] = nodes.inline) -> pending_xref:
    """A reference with the text given, resolved like that role; a missing target is a warning."""
    options = {"refdomain": domain, "reftype": role, "reftarget": target, "refexplicit": True, "refwarn": True}
    return pending_xref("", kind("", text, classes=[domain, f"{domain}-{role}"]), **options)
