"""The directives ``chapter-figure NAME`` and ``run-code TAG``: a picture, or code and what it prints, out of a notebook
whose outputs the tests compare; ``moving-picture NAME``: a picture with sliders, drawn by ``_static/moving.js`` from
data that ``rcbook.pages`` stores. The content of a figure is its caption; ``:alt:`` is that of an image. On paper the
still figure that the caption of a moving picture names stands for it.
"""

import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
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


def drawing(name: str) -> str:
    """The SVG of the figure of that name."""
    for path in ROOT.glob("chapters/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == name:
                return cell.outputs[0].data["image/svg+xml"]
    raise ExtensionError(f"no chapter has a figure named {name}")


FRAME = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="M (\S+) \S+ L (\S+)')
SIZE = re.compile(r'width="\S+pt" height="(\S+)pt" viewBox="0 0 (\S+) \S+"')


def panels(svg: str) -> Iterator[str]:
    """The panels of a row, one picture each: a phone shows them below each other."""
    frames = [(float(left), float(right)) for left, right in FRAME.findall(svg)]
    height, whole = map(float, SIZE.search(svg).groups())
    between = [(right + left) / 2 for (_, right), (left, _) in pairwise(frames)]
    for left, right in zip([0.0, *between], [*between, whole], strict=True):
        cut = f'width="{right - left}pt" height="{height}pt" viewBox="{left} 0 {right - left} {height}"'
        yield SIZE.sub(cut, svg, count=1)


class ChapterFigure(SphinxDirective):
    """A figure node whose images are written beside those of the notebooks: the picture, and its panels."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        svg = drawing(name)
        figure = nodes.figure("", self.image(name, svg, "whole", self.options["alt"]))
        for number, panel in enumerate(panels(svg), start=1):
            alt = f"Panel {number} of the picture" if number > 1 else self.options["alt"]
            figure += self.image(f"{name}-{number}", panel, "panel", alt)
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        figure += nodes.caption("", "", *caption[0].children)
        return [figure]

    def image(self, name: str, svg: str, kind: str, alt: str) -> nodes.image:
        file = Path(self.env.app.outdir).parent / "jupyter_execute" / f"{name}.svg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(svg, encoding="utf-8")
        here = Path(self.env.doc2path(self.env.docname)).parent
        return nodes.image("", uri=Path(os.path.relpath(file, here)).as_posix(), alt=alt, classes=[kind])


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

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        data = json.dumps(pages.record("moving_pictures")[name], separators=(",", ":"))
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
    app.add_directive("chapter-figure", ChapterFigure)
    app.add_directive("run-code", RunCode)
    app.add_directive("moving-picture", MovingPicture)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
