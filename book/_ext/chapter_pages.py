"""What every chapter's page has, without a word of it in the chapters: imports folded, a fold of its symbols, and the
learning rate in upright letters."""

import json
import re

from docutils import nodes
from sphinx.application import Sphinx

LEARNING_RATE = re.compile(r"(?<![\\A-Za-z])lr(?![A-Za-z])")


def prepared(text: str, symbols: bool) -> str:
    """A notebook, as text, whose first code cell is folded and whose opening ends in the fold of symbols."""
    notebook = json.loads(text)
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if codes:
        tags = codes[0]["metadata"].setdefault("tags", [])
        tags += [] if "hide-input" in tags else ["hide-input"]
    opening = notebook["cells"][0]
    if symbols and opening["cell_type"] == "markdown":
        opening["source"] = "".join(opening["source"]) + "\n\n```{chapter-symbols}\n```\n"
    return json.dumps(notebook)


def prepare(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.env.doc2path(docname).endswith(".ipynb"):
        source[0] = prepared(source[0], symbols=docname.startswith("chapters/"))


def set_upright(app: Sphinx, doctree: nodes.document) -> None:
    """``lr`` is one name in formulas, and not the product of l and r."""
    for formula in doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
        upright = LEARNING_RATE.sub(r"\\mathrm{lr}", formula.astext())
        if upright != formula.astext():
            formula[:] = [nodes.Text(upright)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", prepare)
    app.connect("doctree-read", set_upright)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
