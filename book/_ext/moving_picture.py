"""The directive ``moving-picture NAME``: a picture with sliders, drawn by ``_static/moving.js`` from data that
``rcbook.pages`` stores; its content is the caption. On paper the still figure that the caption names stands for it.
"""

import json
from typing import Any

from docutils import nodes
from rcbook import pages
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

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
        app.add_js_file("moving.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("moving-picture", MovingPicture)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
