"""The directive ``family-table``: what a family gives for what, from the signatures of the package."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from table_nodes import table

from rcpkg.families.hooks import REPLACED, capabilities, shown


def call(method: str) -> str:
    """What a family gives, without types; a property is not called."""
    try:
        return shown(method)
    except TypeError:
        return method


def calls(methods: list[str]) -> nodes.inline:
    """Calls as literals, with commas between."""
    found = nodes.inline()
    for place, method in enumerate(methods):
        found += [nodes.Text(", ")] * (place > 0) + [nodes.literal(text=method)]
    return found


class FamilyTable(SphinxDirective):
    """``{family-table} given`` or ``{family-table} replaced``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] == "given":
            return [
                table(("to have", "give"), [[what, calls(given)] for what, given in capabilities()], "family-table")
            ]
        rows = [[what, calls([call(method) for method in methods])] for what, methods in REPLACED.items()]
        return [table(("for", "replace"), rows, "family-table")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("family-table", FamilyTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
