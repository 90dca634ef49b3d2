"""Captions open with their message: the first sentence of each, of figures and of tables, is set bold."""

import re

from docutils import nodes
from sphinx.application import Sphinx

END = re.compile(r"[.?!](?=\s|$)")


def with_message(caption: nodes.Element) -> None:
    """Set the first sentence bold: it ends at a stop before a space, so captions have no abbreviations in it."""
    message = nodes.strong()
    while caption.children:
        child = caption.pop(0)
        end = END.search(child) if isinstance(child, nodes.Text) else None
        if end is None:
            message += child
            continue
        message += nodes.Text(child[: end.end()])
        if rest := child[end.end() :]:
            caption.insert(0, nodes.Text(rest))
        break
    caption.insert(0, message)


def set_messages(app: Sphinx, doctree: nodes.document) -> None:
    """In every figure and table that has a number and a caption."""
    for caption in doctree.findall(nodes.caption):
        if isinstance(caption.parent, nodes.figure):
            with_message(caption)
    for title in doctree.findall(nodes.title):
        if isinstance(title.parent, nodes.table):
            with_message(title)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", set_messages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
