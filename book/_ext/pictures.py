"""The directives ``run-code TAG``: code and what it prints, out of a notebook whose outputs the tests compare, and
``moving-picture NAME``: a picture with a caption, drawn by ``_static/moving.js`` from data that ``rcbook.pages`` stores
under its name or that of ``:data:``. On paper the still figure that the caption names stands for it.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

import nbformat
from docutils import nodes
from docutils.parsers.rst import directives
from rcbook import pages
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]


def executed(tag: str) -> tuple[str, str]:
    """The code of the cell with that tag, and what it printed."""
    for path in sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")]):
        for cell in nbformat.read(path, as_version=4).cells:
            if tag in cell.metadata.get("tags", []):
                return cell.source, "".join(output.get("text", "") for output in cell.outputs)
    raise ExtensionError(f"no cell is tagged {tag}")


class RunCode(SphinxDirective):
    """The cell, as a notebook shows it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        code, printed = executed(self.arguments[0])
        boxes = []
        for text, language, kind in ((code, "ipython3", "cell_input"), (printed, "text", "cell_output")):
            boxes.append(nodes.container("", nodes.literal_block(text, text, language=language), classes=[kind]))
        return [nodes.container("", *boxes, classes=["cell"])]


OPEN = """<figure class="moving" id="moving-{name}" data-picture="{name}">
<noscript><p>This picture needs JavaScript.</p></noscript>
<script type="application/json">{data}</script><figcaption>"""
CLOSE = "</figcaption></figure>"


class MovingPicture(SphinxDirective):
    """A figure that a script fills, with its data in the page: pages opened from a folder may not fetch files."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"data": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        record = pages.record("moving_pictures")[self.options.get("data", name)]
        data = json.dumps(record, separators=(",", ":"))
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        before, after = (nodes.raw("", html, format="html") for html in (OPEN.format(name=name, data=data), CLOSE))
        return [before, *caption.children, after]


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The script, once, on pages that have such a picture."""
    if '<figure class="moving"' in context.get("body", ""):
        app.add_js_file("scorer.js", loading_method="defer")
        app.add_js_file("moving.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("run-code", RunCode)
    app.add_directive("moving-picture", MovingPicture)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
