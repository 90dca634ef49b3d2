"""Directives that show a register of the repository: ``notation-table``, ``chapter-symbols`` (``book/notation.csv``),
``classifier-table`` and the page of models (``book/classifiers.csv`` and the classes), ``family-table`` (the signatures
of the package), ``dataset-table`` (``data/datasets.csv``), ``how-to-cite`` (``CITATION.cff``), ``chapter-list``
(``_toc.yml`` and the comment below each chapter's title); links from the errata to tests.

A row of ``book/notation.csv`` is one symbol, or a few that belong together. Its first column names the chapters in
which the meaning is meant; where it is empty, the meaning holds in the whole book.
"""

import inspect
import json
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from docutils import nodes
from docutils.statemachine import StringList
from rcbook import citation
from rcbook.words import in_words
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from table_nodes import link, table

NOTATION = Path(__file__).resolve().parents[1] / "notation.csv"
ROOT = NOTATION.parents[1]
HEAD = "| symbol | meaning | in the code |"


@cache
def symbols() -> pd.DataFrame:
    """The rows of the file, the chapters as a set of numbers."""
    rows = pd.read_csv(NOTATION, dtype=str, keep_default_na=False)
    return rows.assign(chapters=[frozenset(map(int, of.split(","))) if of else frozenset() for of in rows.chapters])


def of_chapter(number: int) -> pd.DataFrame:
    """The symbols whose meaning is that chapter's."""
    return symbols()[[number in chapters for chapters in symbols().chapters]]


def shared() -> pd.DataFrame:
    """The symbols that mean the same in the whole book."""
    return symbols()[[not chapters for chapters in symbols().chapters]]


def markdown(rows: pd.DataFrame) -> list[str]:
    """The lines of a table; names in the code have a column if there are any."""
    lines = [HEAD, "|---|---|---|", *(f"| {row.symbol} | {row.meaning} | {row.code} |" for row in rows.itertuples())]
    return lines if rows.code.any() else [line.rsplit("|", 2)[0] + "|" for line in lines]


class Written(SphinxDirective):
    """A directive whose page text is made, line by line, and then read like what stands in the page."""

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(NOTATION))
        box = nodes.container()
        self.state.nested_parse(StringList(self.lines()), self.content_offset, box)
        for found in box.findall(nodes.table):
            found["classes"].append("notation")
        return box.children


class NotationTable(Written):
    """``{notation-table}``: what all chapters share, then the symbols of each chapter under its title."""

    def lines(self) -> list[str]:
        lines = [*markdown(shared()), ""]
        for path in sorted(ROOT.glob("chapters/??_*.ipynb")):
            rows = of_chapter(int(path.name[:2]))
            if len(rows):
                lines += [f"**Chapter {int(path.name[:2])}: {{doc}}`/chapters/{path.stem}`**", "", *markdown(rows), ""]
        return lines


class ChapterSymbols(Written):
    """``{chapter-symbols}``: a fold with the symbols of the chapter that it stands in."""

    def lines(self) -> list[str]:
        rows = of_chapter(int(Path(self.env.docname).name[:2]))
        if not len(rows):
            return []
        link = "Symbols that the whole book shares are on the page {ref}`notation`."
        return [":::{dropdown} Symbols of this chapter", link, "", *markdown(rows), ":::"]


SUMMARY = re.compile(r"^<!-- summary: (.+) -->$", re.MULTILINE)


class ChapterList(Written):
    """``{chapter-list}``: the chapters of each numbered part, with what the comment below their titles says of them."""

    def lines(self) -> list[str]:
        toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
        lines = []
        numbered = [part for part in toc["parts"] if part.get("numbered")]
        for numeral, part in zip_longest(("I ", "II ", "III "), numbered, fillvalue=""):
            lines += [f"**{numeral}{part['caption']}**", ""]
            for name in (entry["file"] for entry in part["chapters"]):
                if not (said := SUMMARY.search(opening(ROOT / f"{name}.ipynb"))):
                    raise self.error(f"{name}.ipynb: write <!-- summary: its subject, in a line --> below its title")
                lines += [f"{int(Path(name).name[:2])} {{doc}}`/{name}`", f": {said[1]}", ""]
        return lines


def opening(chapter: Path) -> str:
    """The text of a chapter's first cell."""
    return "".join(json.loads(chapter.read_text(encoding="utf-8"))["cells"][0]["source"])


CLASSIFIERS = Path(__file__).resolve().parents[1] / "classifiers.csv"
ABOUT_CLASSIFIERS = ("classifier", "it assumes", "cost of a fit", "takes", "missing, unknown", "choose it for")


def classifier_entries() -> pd.DataFrame:
    return pd.read_csv(CLASSIFIERS, dtype=str)


def takes(name: str) -> str:
    """What a classifier of rcpkg takes beside a table of numbers, as the class itself says."""
    import rcpkg

    kind = getattr(rcpkg, name)
    wraps = "estimator" in inspect.signature(kind).parameters
    of_models = {"ProductModel": [[("block", rcpkg.QDA(), [0])]], "Mixture": [rcpkg.QDA()]}
    first = [rcpkg.QDA()] if wraps else of_models.get(name, [])
    model = kind(*first)
    found = {
        "weights": "sample_weight" in inspect.signature(kind.fit).parameters,
        "portions": hasattr(kind if wraps else model, "partial_fit") and not isinstance(kind.partial_fit, property),
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


def example(name: str) -> list[str]:
    """The lines of the example in a docstring of rcpkg, which a test runs."""
    import rcpkg

    text = inspect.getdoc(getattr(rcpkg, name))
    lines = text.partition("Examples\n--------\n")[2].splitlines()
    return lines[: next((k for k, line in enumerate(lines) if set(line) == {"-"}), len(lines) + 1) - 1]


CARDS, MARK = "book/api/models", "<!-- one section a classifier -->"


def classifier_card(entry: Any) -> list[str]:
    """The section of a classifier: idea, formula, when to take it and when not, code, cost, gaps, see also."""
    entries = classifier_entries()
    rooms = entries.name.map(documented).str.rpartition(".")[0]
    room = rooms[entries.name == entry.name].item()
    same = (entries.chapter == entry.chapter) & (rooms == room)
    near = same if same.sum() > 1 else rooms == room
    beside = entries.name[near & (entries.name != entry.name)]
    see = [f"{{numref}}`Chapter %s <{entry.chapter}>`", f"{{py:obj}}`all parameters <{documented(entry.name)}>`"]
    said = {
        "Idea": entry.assumes,
        "Take it for": entry.when,
        "Do not take it for": entry.not_for,
        "Cost of a fit": entry.cost,
        "Missing values": entry.unknown.removeprefix("missing: "),
        "It takes": takes(entry.name),
        "See also": ", ".join([*see, *(f"{{ref}}`{name} <models-{name.lower()}>`" for name in beside)]),
    }
    items = [f"- **{place}**: {text}." for place, text in said.items()]
    code = ["```pycon", *(line for line in example(entry.name) if line), "```"]
    head = [f"(models-{entry.name.lower()})=", f"## {entry.name}", "", items[0], "", "$$", entry.formula, "$$"]
    return [*head, "", *items[1:3], "", *code, "", *items[3:], ""]


def add_cards(app: Sphinx, document: str, source: list[str]) -> None:
    if document == CARDS:
        cards = [line for entry in classifier_entries().itertuples(index=False) for line in classifier_card(entry)]
        source[0] = source[0].replace(MARK, "\n".join(cards))


class ClassifierTable(SphinxDirective):
    """``{classifier-table}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CLASSIFIERS))
        rows = [
            [
                link("py", "obj", documented(entry.name), entry.name, nodes.literal),
                entry.assumes,
                entry.cost,
                takes(entry.name),
                entry.unknown,
                nodes.inline("", f"{entry.when}: ", link("std", "numref", entry.chapter, "chapter %s")),
            ]
            for entry in classifier_entries().itertuples(index=False)
        ]
        return [table(ABOUT_CLASSIFIERS, rows, "classifier-table")]


def call(method: str) -> str:
    """What a family gives, without types; a property is not called."""
    from rcbook.family_table import shown

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
        from rcbook.family_table import REPLACED, capabilities

        if self.arguments[0] == "given":
            return [
                table(("to have", "give"), [[what, calls(given)] for what, given in capabilities()], "family-table")
            ]
        rows = [[what, calls([call(method) for method in methods])] for what, methods in REPLACED.items()]
        return [table(("for", "replace"), rows, "family-table")]


ABOUT_DATASETS = ("name", "rows", "features", "classes", "used by", "citation and licence")
SOURCES = ("rc2024", "rc2025", "thesis2007", "wanbia2014")


def dataset_rows() -> list[list[str]]:
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
        return [table(ABOUT_DATASETS, dataset_rows(), "dataset-table")]


ERRATA = "book/errata"
TEST = re.compile(r"`(?:\w+\.py::)?(test_\w+)`")


@cache
def test_files(folder: Path) -> dict[str, str]:
    """Name of a test -> the file below ``folder`` that it stands in."""
    found = {}
    for path in sorted(folder.rglob("test_*.py")):
        names = re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        found |= dict.fromkeys(names, path.relative_to(folder).as_posix())
    return found


def link_tests(app: Sphinx, document: str, source: list[str]) -> None:
    if document == ERRATA:
        source[0] = TEST.sub(lambda name: test_link(app, name[1]), source[0])


def test_link(app: Sphinx, test: str) -> str:
    known = test_files(Path(app.srcdir, "tests"))
    if test not in known:
        raise ExtensionError(f"{ERRATA} names {test}, which is no test")
    return f"{{download}}`{test} </tests/{known[test]}>`"


CITED_CHAPTER = 4


class HowToCite(SphinxDirective):
    """A line of text and an entry of BibTeX for each of the three."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        works = citation.works(citation.citation(), CITED_CHAPTER, chapter_title(CITED_CHAPTER))
        for name, (text, entry) in works.items():
            found += [
                nodes.paragraph("", "", nodes.strong(text=name)),
                nodes.literal_block(text, text, language="text"),
                nodes.literal_block(entry, entry, language="bibtex"),
            ]
        return found


def chapter_title(number: int) -> str:
    """The title of a chapter, as its notebook opens."""
    (path,) = (citation.ROOT / "chapters").glob(f"{number:02}_*.ipynb")
    return re.search(r"^# (.+)$", opening(path), re.MULTILINE)[1]


def add_version(app: Sphinx, config: Config) -> None:
    """``{{ version }}``, ``{{ released }}`` and ``{{ authors }}`` in any page."""
    entry = citation.citation()
    said = {"version": entry["version"], "released": str(entry["date-released"])}
    said["authors"] = "; ".join(citation.authors(entry))
    config.myst_substitutions = {**config.myst_substitutions, **said}


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("notation-table", NotationTable)
    app.add_directive("chapter-symbols", ChapterSymbols)
    app.add_directive("chapter-list", ChapterList)
    app.add_directive("classifier-table", ClassifierTable)
    app.add_directive("family-table", FamilyTable)
    app.add_directive("dataset-table", DatasetTable)
    app.connect("source-read", link_tests)
    app.connect("source-read", add_cards)
    app.add_directive("how-to-cite", HowToCite)
    app.connect("config-inited", add_version)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
