"""What every chapter's page has, without a word of it in the chapters: imports folded, a fold of its symbols, the
learning rate in upright letters, and titles of solutions whose links begin with a letter."""

import json
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_exercise.nodes import solution_node

LEARNING_RATE = re.compile(r"(?<!\\mathrm\{)(?<![\\A-Za-z])lr(?![A-Za-z])")


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


def begin_with_a_letter(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """The space before the name of the exercise belongs to no link."""
    for solution in doctree.findall(solution_node):
        for link in solution[0].findall(nodes.reference):
            first = next(link.findall(nodes.Text))
            if first.startswith(" "):
                first.parent.replace(first, nodes.Text(first.lstrip()))
                link.parent.insert(link.parent.index(link), nodes.Text(" "))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", prepare)
    app.connect("doctree-read", set_upright)
    app.connect("doctree-resolved", begin_with_a_letter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
