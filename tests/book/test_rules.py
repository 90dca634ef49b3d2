"""The rules themselves: chapters keep them (`test_chapters`), and each way of breaking one in a chapter is noticed."""

from copy import deepcopy

import checks
import pytest
from conftest import ROOT, read
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

TABLE = "<table><tr><th>loss_of_a_raw_name</th></tr></table>"
TINY = '<svg width="691.2pt"><g transform="translate(3 4) scale(0.08 -0.08)"/></svg>'
BITMAP = new_output("display_data", data={"image/png": "AAAA"})
# where a chapter is broken: what it is about, its first figure and the digest of that, the first table in view, check
# and text with a solution
PLACES = {
    "text": lambda before, cell: True,
    "figure": lambda before, cell: checks.captions(cell, "figure"),
    "digest": lambda before, cell: checks.captions(before, "figure"),
    "table": lambda before, cell: checks.captions(cell, "table") and not checks.UNSEEN & set(checks.tags(cell)),
    "check": lambda before, cell: any(tag.startswith("check:") for tag in checks.tags(cell)),
    "solution": lambda before, cell: ":class: dropdown" in cell.source,
}


@pytest.fixture
def notebook():
    """A chapter that keeps every rule; each test breaks it in one place."""
    return deepcopy(read(ROOT / "chapters" / "05_mirror_ascent.ipynb"))


def printed(text):
    return new_output("stream", name="stdout", text=text)


def replaced(old, new):
    """A text of a cell gives way to another."""

    def spoil(cell):
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return spoil


def added(text):
    return lambda cell: cell.update(source=cell.source + text)


def tagged(*tags):
    """Further tags."""
    return lambda cell: cell.metadata.tags.extend(tags)


def only_tagged(*tags):
    return lambda cell: cell.metadata.update(tags=list(tags))


def shown(*outputs):
    return lambda cell: cell.update(outputs=list(outputs))


# of each rule: ways to break it, each the place and a function that spoils its cell
BREAKS = {
    "comparison": {
        "skipped": ("check", tagged("nbval-skip")),
        "another output left out of the comparison": ("check", tagged("nbval-ignore-output")),
    },
    "figures": {
        "no name": ("figure", lambda cell: cell.metadata.mystnb.figure.pop("name")),
        "caption of a word": ("figure", lambda cell: cell.metadata.mystnb.figure.update(caption="Curves.")),
        "no alternative text": ("figure", lambda cell: cell.metadata.mystnb.pop("image")),
        "no options": ("figure", lambda cell: cell.metadata.pop("mystnb")),
        "no picture": ("figure", shown()),
        "a bitmap": ("figure", shown(BITMAP)),
        "tiny text": ("figure", lambda cell: cell.outputs[0].data.update({"image/svg+xml": TINY})),
        "prints": ("figure", lambda cell: cell.outputs.append(printed("done\n"))),
        "is compared": ("figure", only_tagged("hide-input")),
        "digest of another figure": ("digest", replaced("digest(figure)", "digest(other)")),
        "digest that prints nothing": ("digest", shown()),
        "digest in the open": ("digest", only_tagged()),
        "digest on the page": ("digest", only_tagged("hide-cell")),
    },
    "tables": {
        "no name": ("table", lambda cell: cell.metadata.mystnb.table.pop("name")),
        "no caption": ("table", lambda cell: cell.metadata.pop("mystnb")),
        "caption of a word": ("table", lambda cell: cell.metadata.mystnb.table.update(caption="Losses.")),
        "caption of another number": ("table", lambda cell: cell.metadata.mystnb.table.update(caption=5 * "of 8.5 ")),
        "caption of no table": ("table", shown()),
        "raw name": ("table", lambda cell: cell.outputs[0].data.update({"text/html": TABLE})),
        "table of the text without title": ("text", added("\n| a | b |\n|---|--:|\n| 1 | 2 |\n")),
        "list table without name": ("text", added("\n:::{list-table} A title\n* - a\n:::\n")),
    },
    "verdicts": {
        "of nothing": ("check", only_tagged("check:thm-of-nothing", "hide-input")),
        "of two": ("check", tagged("check:def-one")),
        "in the open": ("check", lambda cell: cell.metadata.tags.remove("hide-input")),
        "none": ("check", lambda cell: cell.update(source="x  # checked(x)")),
        "of its own": ("check", lambda cell: cell.update(source="print('checked: x is positive')")),
        "may be skipped": ("check", lambda cell: cell.update(source="if x:\n    checked('x', holds('y', x > 0))")),
        "two": ("check", added("\nchecked('x', holds('y', x > 0))")),
        "prints more": ("check", lambda cell: cell.outputs.append(printed("x = 1\n"))),
        "without a tag": ("check", only_tagged("hide-input")),
        "printed elsewhere": ("digest", shown(printed("checked: everything\n"))),
    },
    "size": {
        "words": ("text", added("word " * checks.MOST_WORDS)),
        "solution in the open": ("solution", replaced(":class: dropdown", ":class: tip")),
    },
    "named_symbols": {
        "path": ("text", added("\n`rcpkg.base.nothing`")),
        "class": ("text", added("\n`DegenerateClassifier`")),
        "attribute": ("text", added("\n`GenerativeClassifier.predict_nothing`")),
        "keyword": ("text", added("\n`rcpkg.base.check_cost(cost, states=3)`")),
    },
}


@pytest.mark.parametrize(("rule", "way"), [(rule, way) for rule in checks.RULES for way in BREAKS[rule]])
def test_broken_chapter_is_noticed(notebook, rule, way):
    place, spoil = BREAKS[rule][way]
    pairs = zip([notebook.cells[0], *notebook.cells], notebook.cells)
    spoil(next(cell for before, cell in pairs if PLACES[place](before, cell)))
    assert list(checks.RULES[rule](notebook)) != []


def test_labs_solutions_and_captions_are_counted_as_in_view_and_proofs_are_not(notebook):
    counts = checks.words_in_view, checks.lines_in_view, checks.tables_in_view
    before = [count(notebook) for count in counts]
    table = {"mystnb": {"table": {"name": "tab-lab", "caption": "Of a lab."}}}
    start = new_markdown_cell("```{solution-start} ex\n```\nanswer answer")
    proof = new_markdown_cell("::::{dropdown} Proof\n:::{prf:proof}\nOne, two, three.\n:::\n::::")
    notebook.cells += [start, new_code_cell("1\n2", metadata=table), new_markdown_cell("```{solution-end}\n```"), proof]
    assert [count(notebook) for count in counts] == [n + more for n, more in zip(before, (5, 2, 1), strict=True)]


def test_directives_between_backticks_are_prose_and_literal_blocks_are_not():
    text = "a\n```{note}\nb\n```\nc\n```python\nd\n```\ne"
    assert checks.without_literals(text).split() == ["a", "```{note}", "b", "```", "c", "e"]


@pytest.mark.parametrize(
    "code",
    ["`x`", "`RCPKG=1`", "``rcpkg.nothing``", "```\n`rcpkg.nothing`\n```", "`README.md`", "`DataFrame`"],
)
def test_other_inline_code_is_left_alone(code):
    assert list(checks.symbols(f"\n{code}\n")) == []
