"""The directive ``dataset-table``: the registered data sets as a table, made from the registry at each build."""

from docutils import nodes
from rcbook.words import in_words
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from table_nodes import table

HEADINGS = ("name", "rows", "features", "classes", "used by", "citation and licence")
SOURCES = ("rc2024", "rc2025", "thesis2007", "wanbia2014")


def rows() -> list[list[str]]:
    """One row a data set: its size, the sources that use it (with their size where it differs), whom to cite."""
    from rcbook import datasets

    registry = datasets.table()
    found = []
    for name, variants in registry.groupby("name"):
        by_source = variants.set_index("variant")
        original = by_source.loc["original"]
        size = (original.n_rows, original.n_features)
        used = []
        for source in SOURCES:
            if source in by_source.index:
                n, d = by_source.loc[source, ["n_rows", "n_features"]]
                words = in_words(source)
                used.append(words if (n, d) == size else f"{words}: {n} × {d}")
        numbers = [str(original[column]) for column in ("n_rows", "n_features", "n_classes")]
        found.append([name, *numbers, "; ".join(used) or "—", f"{original.citation}. {original.licence}"])
    return found


class DatasetTable(SphinxDirective):
    """``{dataset-table}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        return [table(HEADINGS, rows(), "dataset-table")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("dataset-table", DatasetTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
