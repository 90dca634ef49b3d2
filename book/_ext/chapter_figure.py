"""The directives ``chapter-figure NAME`` and ``run-code TAG``: a picture, or code and what it prints, out of a notebook
whose outputs the tests compare. The content of a figure is its caption; ``:alt:`` is that of an image.
"""

import os
from pathlib import Path
from typing import ClassVar

import nbformat
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]


def drawing(name: str) -> str:
    """The SVG of the figure of that name."""
    for path in ROOT.glob("chapters/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == name:
                return cell.outputs[0].data["image/svg+xml"]
    raise ExtensionError(f"no chapter has a figure named {name}")


class ChapterFigure(SphinxDirective):
    """A figure node whose image is written beside those of the notebooks."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        file = Path(self.env.app.outdir).parent / "jupyter_execute" / f"{name}.svg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(drawing(name), encoding="utf-8")
        here = Path(self.env.doc2path(self.env.docname)).parent
        figure = nodes.figure("", nodes.image("", uri=Path(os.path.relpath(file, here)).as_posix(), **self.options))
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        figure += nodes.caption("", "", *caption[0].children)
        return [figure]


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


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("chapter-figure", ChapterFigure)
    app.add_directive("run-code", RunCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
