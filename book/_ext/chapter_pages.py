"""What every chapter's page has, without a word of it in the chapters: imports folded, a fold of its symbols, no
comments (which the index of results and the front page read), the learning rate in upright letters, titles of solutions
whose links begin with a letter, per cent signs beside their numbers, captions whose first sentence is bold, and checks
as one quiet line that names what was checked, with the findings and the code behind it.
"""

import json
import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import solution_node

COMMENT = re.compile(r"^[ \t]*<!--.*?-->\n", re.MULTILINE | re.DOTALL)
LEARNING_RATE = re.compile(r"(?<!\\mathrm\{)(?<![\\A-Za-z])lr(?![A-Za-z])")


def prepared(text: str, symbols: bool) -> str:
    """A notebook, as text, whose first code cell is folded and whose opening ends in the fold of symbols."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = COMMENT.sub("", "".join(cell["source"]))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if codes:
        tags = codes[0]["metadata"].setdefault("tags", [])
        tags += [] if "hide-input" in tags else ["hide-input"]
    opening = notebook["cells"][0]
    if symbols and opening["cell_type"] == "markdown":
        opening["source"] += "\n\n```{chapter-symbols}\n```\n"
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


PERCENT = re.compile(r"(?<=\d) %")
AS_TYPED = nodes.literal | nodes.literal_block | nodes.raw | nodes.math | nodes.math_block | nodes.comment


def keep_percent(app: Sphinx, doctree: nodes.document) -> None:
    """No line begins with a per cent sign: the space before it does not break."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, AS_TYPED) or "%" not in text:
            continue
        place = text.parent.index(text)
        before = text.parent[place - 1].astext()[-1:] if place else ""  # a number that is filled in is a node by itself
        kept = PERCENT.sub("\u00a0%", before + text).removeprefix(before)
        text.parent[place] = nodes.Text(kept)


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


PREFIX = "checked: "


class QuietChecks(SphinxPostTransform):
    """Make a cell tagged ``check`` a fold whose summary is the first part of its verdict."""

    default_priority = 190  # before myst-nb folds the code by itself
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") == "cell_code" and any(c.startswith("tag_check") for c in cell["classes"]):
                self.fold(cell)

    def fold(self, cell: nodes.container) -> None:
        source, output = cell.children
        about, *found = output.astext().strip().removeprefix(PREFIX).split("; ")
        listed = "".join(f"<li>{escape(part)}</li>" for part in (about, *found))
        opening = f'<details class="check"><summary>✓ checked <span>{escape(about)}</span></summary><ul>{listed}</ul>'
        cell.attributes.pop("hide_mode", None)
        cell.children = []
        cell += [nodes.raw("", opening, format="html"), source, nodes.raw("", "</details>", format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", prepare)
    app.connect("doctree-read", set_upright)
    app.connect("doctree-resolved", begin_with_a_letter)
    app.connect("doctree-read", keep_percent)
    app.connect("doctree-read", set_messages)
    app.add_post_transform(QuietChecks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
