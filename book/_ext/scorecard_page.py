"""The scorecard in the book, and the numbers that pages name, from the stored files of `rcbook.pages`.

``{{ reproduced }}`` and the like, in any page, are numbers of the scorecard and of the findings.
``{scorecard-tables}`` counts the verdicts of each table, ``{scorecard-power}`` says what they are worth,
``{scorecard-reasons}`` lists the reasons of a verdict, with links, ``{scorecard-claims}`` what the texts say of their
tables, ``{scorecard-figures}`` where the book draws the figures of the sources: their content is the caption, and
``:name:`` the label. ``{scorecard-cells}`` is the list of all numbers with its filters, which
``_static/scorecard.js`` fills from a script of data written here, since pages opened from a folder may not fetch
files.
"""

import json
import re
import shutil
from pathlib import Path
from typing import ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from rcbook import pages, published
from rcbook.words import in_words
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from table_nodes import link, table

RULES = "stated after the results were known"
# what a row of the list holds, in this order; texts are numbered, since most occur often
COLUMNS = ("source", "table", "row", "dataset", "method", "setting", "metric", "printed", "ours", "verdict", "why")
COLUMNS += ("worth", "width")
WORTH = ("can be decided", "cannot be decided")
SAID_MORE = (
    "agrees: constant",
    "agrees: not with the printed spread",
    "differs: diagnosed",
    "differs: explained jointly",
)
NAMED = re.compile(r"[A-Za-z][^0-9]*")  # a data set, and neither a simulation nor all of them
JOINED = re.compile(r"_|(?<=[a-z])(?=[A-Z(])")  # between two words of its name
LIST = """
<form class="scorecard-filter" hidden>
  <label>Source <select name="source"></select></label>
  <label>Table <select name="table"></select></label>
  <label>Verdict <select name="verdict"></select></label>
  <label>Worth <select name="worth"></select></label>
  <label>Words <input name="words" type="text" autocomplete="off" placeholder="sonar iterations"></label>
</form>
<p class="scorecard-status" role="status"></p>
<div class="scorecard-rows" role="region" aria-label="Printed numbers" tabindex="0" hidden>
<table class="table"><thead><tr><th scope="col">table</th><th scope="col">row</th><th scope="col">method</th>
<th scope="col">quantity</th><th scope="col">printed</th><th scope="col">ours</th><th scope="col">verdict, and why</th>
<th scope="col">what it is worth</th></tr></thead><tbody></tbody></table></div>
<p class="scorecard-pages" hidden><button type="button" name="earlier">Earlier rows</button>
<button type="button" name="later">Later rows</button></p>
<p><a href="{root}_static/scorecard.csv" download>All rows as a file of comma-separated values</a></p>
<noscript><p>The list and its filters need JavaScript; the file has the same rows.</p></noscript>
<script defer src="{root}_static/scorecard_data.js"></script>
<script defer src="{root}_static/scorecard.js"></script>
"""


def add_numbers(app: Sphinx, config) -> None:
    config.myst_substitutions = {**config.myst_substitutions, **pages.record("numbers")}


class Captioned(SphinxDirective):
    """A table whose caption is the content of the directive."""

    has_content = True
    option_spec: ClassVar = {"name": directives.unchanged_required}

    def captioned(self, node: nodes.table) -> list[nodes.Node]:
        """The table with its caption, numbered like any other."""
        caption = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, caption)
        if len(caption) != 1 or not isinstance(caption[0], nodes.paragraph):
            raise self.error("the caption must be one paragraph")
        node.insert(0, nodes.title("", "", *caption[0].children))
        self.add_name(node)
        return [node]


class TableCounts(Captioned):
    """``{scorecard-tables}``: for each table what it holds and how many of its numbers have which verdict."""

    def run(self) -> list[nodes.Node]:
        index = published.index()
        card = pages.table("scorecard")
        verdicts = pd.crosstab([card.source, card.table], card.verdict).reindex(columns=pages.NAMES, fill_value=0)
        rows = []
        for entry in index.itertuples():
            found = verdicts.loc[(entry.source, entry.table)]
            numbers = [str(number) if number else "–" for number in found]
            rows.append([in_words(f"{entry.source} {entry.table}"), entry.caption, *numbers])
        headings = [name.replace("_", " ") for name in pages.NAMES.values()]
        return self.captioned(table(("table", "what it holds", *headings), rows, "scorecard-tables"))


class Power(Captioned):
    """``{scorecard-power}``: for each table how many of its verdicts decide anything, and what these say."""

    def run(self) -> list[nodes.Node]:
        stored = pages.table("power")
        weighed = list(stored.columns[6:-1])
        rows = []
        for row in stored.to_dict("records"):
            shares = [f"{row[name]:.2f}" if row[name] == row[name] else "–" for name in ("width", "others_pass")]
            numbers = [str(row[name]) if row[name] else "–" for name in ("decidable", *weighed)]
            jointly = {"yes": "fits", "no": "does not fit", "": "–"}[row["jointly"]]
            rows.append([in_words(f"{row['source']} {row['table']}"), str(row["compared"]), *shares, *numbers, jointly])
        headings = ("table", "compared", "width", "others pass", "can be decided", *weighed, "jointly")
        return [nodes.paragraph(text=f"Rules {RULES}."), *self.captioned(table(headings, rows, "scorecard-power"))]


class Reasons(Captioned):
    """``{scorecard-reasons} VERDICT``: its reasons, how many numbers of which tables, where the evidence is if any."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        cells = pages.table("scorecard")
        cells = cells[cells.verdict == self.arguments[0]]
        rows = []
        for (source, why, section), part in cells.groupby(["source", "why", "section"], sort=False):
            tables = in_words(f"{source} {', '.join(part.table.unique())}")
            (name, *others) = part.dataset.unique()
            if not others and NAMED.fullmatch(name):
                tables += f": {JOINED.sub(' ', name)}"
            rows.append([tables, str(len(part)), why, link("std", "ref", section, "shown here") if section else "–"])
        headings, shown = ("tables", "numbers", "why", "evidence"), 4 if cells.section.any() else 3
        return self.captioned(table(headings[:shown], [row[:shown] for row in rows], "scorecard-reasons"))


class Claims(Captioned):
    """``{scorecard-claims}``: what the texts say of their tables, what the tables give, and whether it holds."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for claim in pages.table("claims").itertuples():
            outcome = link("std", "ref", claim.erratum, claim.outcome) if claim.erratum else claim.outcome
            said = in_words(claim.claim)
            rows.append([in_words(claim.source), claim.place, said, claim.stated, claim.found, outcome])
        headings = ("source", "place", "claim", "stated", "in the tables", "outcome")
        return self.captioned(table(headings, rows, "scorecard-claims"))


class Figures(Captioned):
    """``{scorecard-figures}``: each figure of the sources, with the figure of the book that shows the same."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for figure in published.figures().itertuples():
            ours = link("std", "numref", figure.label, "Fig. %s")
            rows.append([in_words(figure.source), figure.figure, figure.shows, ours, figure.note])
        headings = ("source", "figure", "what it shows", "in this book", "how it differs")
        return self.captioned(table(headings, rows, "scorecard-figures"))


class CellList(SphinxDirective):
    """``{scorecard-cells}``: all printed numbers, with filters; without JavaScript and on paper, a file."""

    def run(self) -> list[nodes.Node]:
        root = "../" * self.env.docname.count("/")
        rows = f"The {len(pages.table('scorecard')):,} rows of the list"
        on_paper = f"{rows} are the file \\sphinxcode{{scorecard.csv}} beside this document."
        return [nodes.raw("", LIST.format(root=root), format="html"), nodes.raw("", on_paper, format="latex")]


def shown_rows() -> pd.DataFrame:
    """The scorecard as the list shows it: texts only."""
    frame = pages.table("scorecard")
    ours = frame.value.map("{:.4g}".format).where(frame.value.notna(), "")
    error = frame.value_se.map(" ± {:.2g}".format).where(frame.value_se.notna(), "")
    dash = frame.n_runs.notna() & frame.value.isna()
    settings = frame.groupby(["source", "table"]).setting_value.transform("nunique")
    return pd.DataFrame(
        {
            **{name: frame[name] for name in ("source", "table", "row", "method")},
            "dataset": frame.dataset.str.replace("_", " "),
            "setting": frame.setting_value.str.replace("|", ", ").where(settings > 1, ""),
            "metric": frame.metric.str.replace("_", " "),
            "printed": frame.value_printed,
            "ours": (ours + error).where(~dash, "-"),
            "verdict": frame.verdict,
            "why": frame.why,
            "worth": frame.weighed.where(frame.weighed == "", frame.decidable.map({True: WORTH[0], False: WORTH[1]})),
            "width": _width(frame),
        },
        columns=COLUMNS,
    )


def _width(frame: pd.DataFrame) -> pd.Series:
    """Why a number cannot be decided; the half-width of acceptance; how many of the other methods would pass."""
    passing = (frame.others_pass * frame.others).round().fillna(0).astype(int).astype(str)
    others = passing + " of " + frame.others.fillna(0).astype(int).astype(str) + " other methods would pass"
    parts = [
        (frame.undecided + "; ").where(frame.undecided != "", ""),
        "accepted within " + frame.half_width.map("{:.2g}".format),
        ("; " + others).where(frame.others > 0, ""),
        ("; " + frame.weighed).where(frame.weighed.isin(SAID_MORE), ""),
    ]
    return sum(parts[1:], parts[0]).where(frame.weighed != "", "")


def write_data(app: Sphinx, exception: Exception | None) -> None:
    """Write the rows for the list as a script, and as a file to download."""
    if exception is not None or app.builder.format not in ("html", "latex"):
        return
    static = Path(app.outdir, "_static" if app.builder.format == "html" else "")
    shutil.copyfile(pages.folder() / "scorecard.csv", static / "scorecard.csv")
    if app.builder.format == "latex":
        return
    rows = shown_rows()
    texts = pd.unique(rows.to_numpy().ravel()).tolist()
    number = {text: i for i, text in enumerate(texts)}
    card = pages.table("scorecard")
    sections = {why: address(app, label) for why, label in zip(card.why, card.section, strict=True) if label}
    data = {
        "columns": COLUMNS,
        "sources": {source: in_words(source) for source in rows.source.unique()},
        "texts": texts,
        "sections": sections,
        "rows": [[number[text] for text in row] for row in rows.itertuples(index=False)],
    }
    script = "window.scorecard = " + json.dumps(data, ensure_ascii=False, separators=(",", ":")) + ";\n"
    (static / "scorecard_data.js").write_text(script, encoding="utf-8")


def address(app: Sphinx, label: str) -> str:
    """Where a label is, from the root of the book."""
    labels = app.env.get_domain("std").anonlabels
    if label not in labels:
        raise ExtensionError(f"data/explanations.csv names the label {label}, which is nowhere in the book")
    document, anchor = labels[label][:2]
    return f"{app.builder.get_target_uri(document)}#{anchor}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("scorecard-tables", TableCounts)
    app.add_directive("scorecard-power", Power)
    app.add_directive("scorecard-reasons", Reasons)
    app.add_directive("scorecard-claims", Claims)
    app.add_directive("scorecard-figures", Figures)
    app.add_directive("scorecard-cells", CellList)
    app.connect("config-inited", add_numbers)
    app.connect("build-finished", write_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
