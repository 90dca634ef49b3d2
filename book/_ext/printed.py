"""The book on paper: vector figures, the code that teaches, and none of the code that a page folds."""

import os
import subprocess

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter

FOLDED = {"tag_hide-input", "tag_hide-cell"}


class VectorFigures(ImageConverter):
    """SVG to PDF by ``rsvg-convert``."""

    conversion_rules = [("image/svg+xml", "application/pdf")]

    def is_available(self) -> bool:
        return True

    def convert(self, _from: str | os.PathLike[str], _to: str | os.PathLike[str]) -> bool:
        """Convert one figure."""
        try:
            subprocess.run(["rsvg-convert", "--format=pdf", "--output", _to, _from], check=True)
        except FileNotFoundError as missing:
            raise ExtensionError("figures in print need rsvg-convert (Debian: librsvg2-bin)") from missing
        return True


class WithoutFoldedCode(SphinxPostTransform):
    """Take the code out that the pages fold; what it shows stays."""

    default_priority = 5
    formats = ("latex",)

    def run(self, **kwargs: object) -> None:
        for cell in list(self.document.findall(lambda n: isinstance(n, nodes.container) and "cell" in n["classes"])):
            if FOLDED & set(cell["classes"]):
                for part in [child for child in cell if "cell_input" in child.get("classes", ())]:
                    cell.remove(part)


def prefer_vectors(app: Sphinx, config: Config) -> None:
    """Let LaTeX take the vector graphics of a cell."""
    config.nb_mime_priority_overrides = [*config.nb_mime_priority_overrides, ("latex", "image/svg+xml", 2)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(VectorFigures)
    app.add_post_transform(WithoutFoldedCode)
    app.connect("config-inited", prefer_vectors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
