"""The directive ``classifier-table``: which classifier when, from ``book/classifiers.csv`` and the classes."""

import inspect
from pathlib import Path

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from table_nodes import link, table

FILE = Path(__file__).resolve().parents[1] / "classifiers.csv"
HEADINGS = ("classifier", "it assumes", "cost of a fit", "takes", "missing, unknown", "choose it for")


def entries() -> pd.DataFrame:
    return pd.read_csv(FILE, dtype=str)


def takes(name: str) -> str:
    """What a classifier of rcpkg takes beside a table of numbers, as the class itself says."""
    import rcpkg

    kind = getattr(rcpkg, name)
    wraps = "estimator" in inspect.signature(kind).parameters
    first = [rcpkg.QDA()] if wraps else [[("block", rcpkg.QDA(), [0])]] if name == "ProductModel" else []
    model = kind(*first)
    found = {
        "weights": "sample_weight" in inspect.signature(kind.fit).parameters,
        "portions": hasattr(kind, "partial_fit"),
        "costs": "cost" in model.get_params(),
        "sparse": not wraps and model.__sklearn_tags__().input_tags.sparse,
    }
    return ", ".join(what for what, does in found.items() if does) or "–"


def documented(name: str) -> str:
    """Where the reference documents a class: in its room."""
    import rcpkg

    return ".".join([*getattr(rcpkg, name).__module__.split(".")[:2], name])


def classifiers() -> set[str]:
    """Names of all classifiers that `rcpkg` exports, without the abstract ones."""
    from sklearn.base import ClassifierMixin

    import rcpkg

    abstract = ("GenerativeClassifier", "ClosedFormClassifier")
    exported = {name: getattr(rcpkg, name) for name in rcpkg.__all__ if name not in abstract}
    return {n for n, kind in exported.items() if inspect.isclass(kind) and issubclass(kind, ClassifierMixin)}


class ClassifierTable(SphinxDirective):
    """``{classifier-table}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(FILE))
        rows = [
            [
                link("py", "obj", documented(entry.name), entry.name, nodes.literal),
                entry.assumes,
                entry.cost,
                takes(entry.name),
                entry.unknown,
                nodes.inline("", f"{entry.when}: ", link("std", "numref", entry.chapter, "chapter %s")),
            ]
            for entry in entries().itertuples(index=False)
        ]
        return [table(HEADINGS, rows, "classifier-table")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("classifier-table", ClassifierTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
