"""A check on the page: one quiet line that names what was checked, and behind it the findings and the code."""

from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

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
    app.add_post_transform(QuietChecks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
