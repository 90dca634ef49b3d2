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


def text_cell(notebook):
    return notebook.cells[0]


def check_cell(notebook):
    return notebook.cells[1]


def figure_cell(notebook):
    return notebook.cells[2]


def table_cell(notebook):
    return notebook.cells[4]


def replace(cell, old, new):
    assert old in cell.source
    cell.source = cell.source.replace(old, new)


def not_run(n):
    check_cell(n).execution_count = None


def raises(n):
    check_cell(n).outputs = [new_output("error", ename="ValueError", evalue="", traceback=[])]


def warns(n):
    check_cell(n).outputs = [printed("careful", name="stderr")]


def skipped(n):
    check_cell(n).metadata["tags"].append("nbval-skip")


def figure_without_name(n):
    del figure_cell(n).metadata["mystnb"]["figure"]["name"]


def figure_without_caption(n):
    figure_cell(n).metadata["mystnb"]["figure"]["caption"] = "Curves."


def figure_without_alternative(n):
    del figure_cell(n).metadata["mystnb"]["image"]


def figure_without_picture(n):
    figure_cell(n).outputs = []


def figure_without_options(n):
    del figure_cell(n).metadata["mystnb"]


def figure_as_a_bitmap(n):
    figure_cell(n).outputs = [new_output("display_data", data={"image/png": "AAAA"})]


def figure_with_tiny_text(n):
    svg = '<svg width="691.2pt"><g transform="translate(3 4) scale(0.08 -0.08)"/></svg>'
    figure_cell(n).outputs[0].data["image/svg+xml"] = svg


def figure_cell_that_prints(n):
    figure_cell(n).outputs.append(printed())


def figure_that_is_compared(n):
    figure_cell(n).metadata["tags"] = ["hide-input"]


def output_left_out_of_the_comparison(n):
    check_cell(n).metadata["tags"].append("nbval-ignore-output")


def figure_without_digest(n):
    del n.cells[3]


def digest_of_another_figure(n):
    replace(n.cells[3], "digest(fig)", "digest(other)")


def digest_that_prints_nothing(n):
    n.cells[3].outputs = []


def digest_in_the_open(n):
    del n.cells[3].metadata["tags"]


def digest_on_the_page(n):
    n.cells[3].metadata["tags"] = ["hide-cell"]


def table_without_name(n):
    del table_cell(n).metadata["mystnb"]["table"]["name"]


def table_without_caption(n):
    del table_cell(n).metadata["mystnb"]


def caption_of_a_word(n):
    table_cell(n).metadata["mystnb"]["table"]["caption"] = "Losses."


def caption_of_another_number(n):
    table_cell(n).metadata["mystnb"]["table"]["caption"] = "A caption of 6 words."


def caption_of_no_table(n):
    table_cell(n).outputs = []


def table_twice(n):
    n.cells.insert(5, table_cell(n))


def table_with_a_raw_name(n):
    table_cell(n).outputs[0].data["text/html"] = TABLE.replace("log_loss", "loss_of_a_raw_name")


def table_of_the_text_without_title(n):
    text_cell(n).source += "\n| a | b |\n|---|--:|\n| 1 | 2 |\n"


def list_table_without_name(n):
    text_cell(n).source += "\n:::{list-table} A title\n* - a\n:::\n"


def theorem_without_label(n):
    replace(text_cell(n), ":label: thm-one\n", "")


def theorem_without_proof(n):
    replace(text_cell(n), "{prf:proof}", "{prf:remark}")


def proof_after_the_next_theorem(n):
    replace(
        text_cell(n),
        "::::{dropdown}",
        ":::{prf:lemma} Between\n:label: lem-two\nText.\n:::\n\n::::{dropdown}",
    )


def theorem_without_check(n):
    check_cell(n).metadata["tags"] = []


def check_after_the_next_theorem(n):
    n.cells.insert(1, new_markdown_cell(TEXT.split("\n\n", 2)[2].replace("thm-one", "thm-two")))


def check_before_the_theorem(n):
    n.cells.insert(0, n.cells.pop(1))


def check_of_nothing(n):
    check_cell(n).metadata["tags"] = ["check:thm-two", "hide-input"]


def check_of_two(n):
    check_cell(n).metadata["tags"].append("check:def-one")


def check_in_the_open(n):
    check_cell(n).metadata["tags"] = ["check:thm-one"]


def check_without_verdict(n):
    check_cell(n).source = "x = 1  # checked(x)"


def check_with_a_verdict_of_its_own(n):
    check_cell(n).source = "x = 1\nassert x > 0\nprint('checked: x is positive')"


def check_that_may_be_skipped(n):
    replace(check_cell(n), "checked", "if x:\n    checked")


def check_with_two_verdicts(n):
    check_cell(n).source += "\n" + check_cell(n).source.splitlines()[-1]


def check_that_prints_more(n):
    check_cell(n).outputs = [printed("x = 1\nchecked: one number\n")]


def check_without_a_tag(n):
    check_cell(n).metadata["tags"] = ["hide-input"]


def verdict_printed_elsewhere(n):
    n.cells[3].outputs = [printed("checked: everything\n")]


def too_much_code(n):
    del check_cell(n).metadata["tags"]
    check_cell(n).source = "x = 1\n" * (checks.MOST_CODE + 1)


def too_many_words(n):
    text_cell(n).source += "word " * checks.MOST_WORDS


def no_chapter_label(n):
    replace(text_cell(n), "(ch-example)=\n", "")


def no_take_away(n):
    replace(n.cells[-1], "## Take-away", "## The end")


def too_few_exercises(n):
    n.cells[-1].source = "\n".join([EXERCISE.format("a"), "## Take-away"])


def exercise_without_solution(n):
    replace(n.cells[-1], "{solution} ex-a", "{solution} ex-z")


def solution_in_the_open(n):
    replace(n.cells[-1], ":class: dropdown", ":class: tip")


def path_trick(n):
    check_cell(n).source += "\nsys.path.append('..')"


def package_installation(n):
    check_cell(n).source += "\n%pip install numpy"


def own_style(n):
    check_cell(n).source += "\nplt.rcParams['font.size'] = 3"


def silenced_warning(n):
    check_cell(n).source += "\nwarnings.simplefilter('ignore')"


def unknown_path(n):
    replace(text_cell(n), "rcpkg.base", "rcpkg.base.nothing")


def unknown_class(n):
    replace(text_cell(n), "GenerativeClassifier", "DegenerateClassifier")


def unknown_attribute(n):
    replace(text_cell(n), "GenerativeClassifier", "GenerativeClassifier.predict_nothing")


def unknown_keyword(n):
    replace(text_cell(n), "rcpkg.base", "rcpkg.base.check_cost(cost, states=3)")


BREAKS = {
    "execution": [not_run, raises, warns, skipped],
    "figures": [
        figure_without_name,
        figure_without_caption,
        figure_without_alternative,
        figure_without_picture,
        figure_as_a_bitmap,
        figure_with_tiny_text,
        figure_cell_that_prints,
        figure_that_is_compared,
        output_left_out_of_the_comparison,
        figure_without_options,
        figure_without_digest,
        digest_of_another_figure,
        digest_that_prints_nothing,
        digest_in_the_open,
        digest_on_the_page,
    ],
    "tables": [
        table_without_name,
        table_without_caption,
        caption_of_a_word,
        caption_of_another_number,
        caption_of_no_table,
        table_twice,
        table_with_a_raw_name,
        table_of_the_text_without_title,
        list_table_without_name,
    ],
    "statements": [
        theorem_without_label,
        theorem_without_proof,
        proof_after_the_next_theorem,
        theorem_without_check,
        check_after_the_next_theorem,
        check_before_the_theorem,
    ],
    "verdicts": [
        check_of_nothing,
        check_of_two,
        check_in_the_open,
        check_without_verdict,
        check_with_a_verdict_of_its_own,
        check_that_may_be_skipped,
        check_with_two_verdicts,
        check_that_prints_more,
        check_without_a_tag,
        verdict_printed_elsewhere,
    ],
    "size": [too_much_code, too_many_words],
    "shape": [
        no_chapter_label,
        no_take_away,
        too_few_exercises,
        exercise_without_solution,
        solution_in_the_open,
        path_trick,
        package_installation,
        own_style,
        silenced_warning,
    ],
    "named_symbols": [unknown_path, unknown_class, unknown_attribute, unknown_keyword],
}


@pytest.mark.parametrize("rule", checks.RULES)
def test_good_chapter_passes(rule):
    assert checks.RULES[rule](chapter()) == []


@pytest.mark.parametrize(("rule", "spoil"), [(r, s) for r, spoilers in BREAKS.items() for s in spoilers])
def test_broken_chapter_is_noticed(rule, spoil):
    notebook = chapter()
    spoil(notebook)
    assert checks.RULES[rule](notebook) != []


def test_chapter_of_tables_needs_no_exercises():
    notebook = chapter()
    replace(text_cell(notebook), "ch-example", "ch-tables-of-bda7")
    notebook.cells[-1].source = "## Take-away"
    assert checks.shape(notebook) == []


def test_folded_proofs_and_solutions_are_not_counted_as_words_in_view():
    notebook = chapter()
    words = checks.words_in_view(notebook)
    replace(text_cell(notebook), "Proof.", "Proof " * 100)
    replace(notebook.cells[-1], "Answer.", "answer " * 100)
    assert checks.words_in_view(notebook) == words > 20


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
    assert checks.symbols(f"\n{code}\n") == []
