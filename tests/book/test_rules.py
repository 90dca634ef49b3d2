"""The rules themselves: a chapter that keeps them passes, and each way of breaking one is noticed."""

import checks
import notebooks
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

TEXT = """(ch-example)=
# An example

A number is $x$, and `QDA` is not here but `GenerativeClassifier` is, in `rcpkg.base`.

:::{prf:theorem} A title
:label: thm-one
Statement.
:::

::::{dropdown} Proof
:::{prf:proof}
Proof.
:::
::::
"""
EXERCISE = """:::{{exercise}}
:label: ex-{0}
Question.
:::

:::{{solution}} ex-{0}
:class: dropdown
Answer.
:::
"""
CLOSING = "\n".join(["## Exercises", *map(EXERCISE.format, "abc"), "## Take-away", "- one"])


TABLE = '<table class="dataframe"><tr><th>log_loss</th></tr><tr><td>5</td></tr></table>'


def printed(text: str = "done\n", name: str = "stdout"):
    return new_output("stream", name=name, text=text)


def chapter():
    """A notebook that keeps every rule; each test breaks it in one place."""
    figure = {
        "figure": {"name": "fig-one", "caption": "A caption of more than five words."},
        "image": {"alt": "what one sees in the picture here"},
    }
    cells = [
        new_markdown_cell(TEXT.replace("`QDA` is not here but ", "")),
        new_code_cell(
            'x = 1\nchecked("one number", holds("positive", x > 0))',
            metadata={"tags": ["check:thm-one", "hide-input"]},
            outputs=[printed("checked: one number; positive\n")],
        ),
        new_code_cell(
            "fig = draw()\nshow(fig)",
            metadata={"tags": ["hide-input", "nbval-ignore-output"], "mystnb": figure},
            outputs=[new_output("display_data", data={"image/svg+xml": "<svg/>"})],
        ),
        new_code_cell("print(digest(fig))", metadata={"tags": ["remove-cell"]}, outputs=[printed()]),
        new_code_cell(
            "frame",
            metadata={"mystnb": {"table": {"name": "tab-one", "caption": "A caption of 5 words."}}},
            outputs=[new_output("execute_result", data={"text/html": TABLE}, execution_count=4)],
        ),
        new_markdown_cell(CLOSING),
    ]
    for cell in checks.code_cells(new_notebook(cells=cells)):
        cell.execution_count = 3
    return notebooks.normalised(new_notebook(cells=cells))


TEXT_CELL, CHECK, FIGURE, DIGEST, TABLE_CELL, CLOSE = range(6)


def replaced(cell, old, new):
    """A text of a cell gives way to another."""

    def spoil(n):
        assert old in n.cells[cell].source
        n.cells[cell].source = n.cells[cell].source.replace(old, new)

    return spoil


def added(cell, text):
    return lambda n: n.cells[cell].update(source=n.cells[cell].source + text)


def tagged(cell, *tags):
    """Other tags, or none; with a + in front they are added."""

    def spoil(n):
        new = [tag.removeprefix("+") for tag in tags]
        kept = n.cells[cell].metadata.get("tags", []) if any(tag.startswith("+") for tag in tags) else []
        n.cells[cell].metadata["tags"] = [*kept, *new]

    return spoil


def shown(cell, *outputs):
    return lambda n: n.cells[cell].update(outputs=list(outputs))


def without(cell, *path):
    """A key of the metadata goes, or the cell itself."""

    def spoil(n):
        if not path:
            del n.cells[cell]
            return
        at = n.cells[cell].metadata
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return spoil


def captioned(cell, kind, caption):
    return lambda n: n.cells[cell].metadata["mystnb"][kind].update(caption=caption)


def table_with_a_raw_name(n):
    n.cells[TABLE_CELL].outputs[0].data["text/html"] = TABLE.replace("log_loss", "loss_of_a_raw_name")


def figure_with_tiny_text(n):
    svg = '<svg width="691.2pt"><g transform="translate(3 4) scale(0.08 -0.08)"/></svg>'
    n.cells[FIGURE].outputs[0].data["image/svg+xml"] = svg


VERDICT = 'checked("one number", holds("positive", x > 0))'

# of each rule: ways to break it, each a function that spoils a chapter
BREAKS = {
    "comparison": {
        "skipped": tagged(CHECK, "+nbval-skip"),
        "another output left out of the comparison": tagged(CHECK, "+nbval-ignore-output"),
    },
    "figures": {
        "no name": without(FIGURE, "mystnb", "figure", "name"),
        "caption of a word": captioned(FIGURE, "figure", "Curves."),
        "no alternative text": without(FIGURE, "mystnb", "image"),
        "no options": without(FIGURE, "mystnb"),
        "no picture": shown(FIGURE),
        "a bitmap": shown(FIGURE, new_output("display_data", data={"image/png": "AAAA"})),
        "tiny text": figure_with_tiny_text,
        "prints": lambda n: n.cells[FIGURE].outputs.append(printed()),
        "is compared": tagged(FIGURE, "hide-input"),
        "no digest": without(DIGEST),
        "digest of another figure": replaced(DIGEST, "digest(fig)", "digest(other)"),
        "digest that prints nothing": shown(DIGEST),
        "digest in the open": without(DIGEST, "tags"),
        "digest on the page": tagged(DIGEST, "hide-cell"),
    },
    "tables": {
        "no name": without(TABLE_CELL, "mystnb", "table", "name"),
        "no caption": without(TABLE_CELL, "mystnb"),
        "caption of a word": captioned(TABLE_CELL, "table", "Losses."),
        "caption of another number": captioned(TABLE_CELL, "table", "A caption of 6 words."),
        "caption of no table": shown(TABLE_CELL),
        "raw name": table_with_a_raw_name,
        "table of the text without title": added(TEXT_CELL, "\n| a | b |\n|---|--:|\n| 1 | 2 |\n"),
        "list table without name": added(TEXT_CELL, "\n:::{list-table} A title\n* - a\n:::\n"),
    },
    "verdicts": {
        "of nothing": tagged(CHECK, "check:thm-two", "hide-input"),
        "of two": tagged(CHECK, "+check:def-one"),
        "in the open": tagged(CHECK, "check:thm-one"),
        "none": replaced(CHECK, VERDICT, "x  # checked(x)"),
        "of its own": replaced(CHECK, VERDICT, "assert x > 0\nprint('checked: x is positive')"),
        "may be skipped": replaced(CHECK, "checked", "if x:\n    checked"),
        "two": added(CHECK, "\n" + VERDICT),
        "prints more": shown(CHECK, printed("x = 1\nchecked: one number\n")),
        "without a tag": tagged(CHECK, "hide-input"),
        "printed elsewhere": shown(DIGEST, printed("checked: everything\n")),
    },
    "size": {
        "words": added(TEXT_CELL, "word " * checks.MOST_WORDS),
        "solution in the open": replaced(CLOSE, ":class: dropdown", ":class: tip"),
    },
    "named_symbols": {
        "path": replaced(TEXT_CELL, "rcpkg.base", "rcpkg.base.nothing"),
        "class": replaced(TEXT_CELL, "GenerativeClassifier", "DegenerateClassifier"),
        "attribute": replaced(TEXT_CELL, "GenerativeClassifier", "GenerativeClassifier.predict_nothing"),
        "keyword": replaced(TEXT_CELL, "rcpkg.base", "rcpkg.base.check_cost(cost, states=3)"),
    },
}


@pytest.mark.parametrize("rule", checks.RULES)
def test_good_chapter_passes(rule):
    assert list(checks.RULES[rule](chapter())) == []


@pytest.mark.parametrize(("rule", "way"), [(rule, way) for rule, ways in BREAKS.items() for way in ways])
def test_broken_chapter_is_noticed(rule, way):
    notebook = chapter()
    BREAKS[rule][way](notebook)
    assert list(checks.RULES[rule](notebook)) != []


def test_folded_proofs_are_not_counted_as_words_in_view_and_solutions_are():
    notebook = chapter()
    words = checks.words_in_view(notebook)
    replaced(TEXT_CELL, "Proof.", "Proof " * 100)(notebook)
    assert checks.words_in_view(notebook) == words > 20
    replaced(CLOSE, "Answer.", "answer " * 100)(notebook)
    assert checks.words_in_view(notebook) == words + 99 * notebook.cells[CLOSE].source.count("answer " * 100)


def test_labs_and_captions_are_counted_as_in_view():
    notebook = chapter()
    counts = (checks.words_in_view, checks.lines_in_view, checks.tables_in_view)
    before = [count(notebook) for count in counts]
    table = {"mystnb": {"table": {"name": "tab-lab", "caption": "Of a lab."}}}
    start = new_markdown_cell("```{solution-start} ex\n```\nanswer answer")
    end = new_markdown_cell("```{solution-end}\n```")
    notebook.cells += [start, new_code_cell("1\n2", metadata=table), end]
    assert [count(notebook) for count in counts] == [n + more for n, more in zip(before, (5, 2, 1), strict=True)]


def test_directives_between_backticks_are_prose_and_literal_blocks_are_not():
    text = "a\n```{note}\nb\n```\nc\n```python\nd\n```\ne"
    assert checks.without_literals(text).split() == ["a", "```{note}", "b", "```", "c", "e"]


def test_every_rule_is_tried():
    assert set(BREAKS) == set(checks.RULES)


@pytest.mark.parametrize(
    "code",
    ["`x`", "`RCPKG=1`", "``rcpkg.nothing``", "```\n`rcpkg.nothing`\n```", "`README.md`", "`DataFrame`"],
)
def test_other_inline_code_is_left_alone(code):
    assert list(checks.symbols(f"\n{code}\n")) == []
