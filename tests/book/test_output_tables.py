"""Tables of outputs: what pandas writes becomes one look of head, sides, signs and words."""

import numpy as np
import output_tables
import pandas as pd
import pytest
from docutils import nodes
from rcbook.words import RAW, WORDS, in_words
from sphinx.errors import ExtensionError

FRAME = pd.DataFrame(
    [[-0.5, 1e-7, "low"], [np.nan, 2.0, "high"]],
    index=pd.Index([10, 20], name="n_variables"),
    columns=["log_loss", "gap", "which one"],
)
LEVELS = pd.MultiIndex.from_product([["a", "b"], ["c", "d"]])


def rows(html, part):
    """Texts of the entries of head or body, row by row."""
    node = output_tables.table(html)[-1]
    (found,) = node.findall(part)
    return [[entry.astext() for entry in row] for row in found]


def test_the_name_of_the_index_stands_in_the_one_row_of_the_head():
    assert rows(FRAME.to_html(), nodes.thead) == [["variables", "log-loss", "gap", "which one"]]


def test_signs_and_what_is_missing():
    assert rows(FRAME.to_html(), nodes.tbody) == [
        ["10", "−0.5", "1.000000 × 10−7", "low"],
        ["20", "–", "2.000000", "high"],
    ]


def test_numbers_and_their_heads_stand_at_the_right():
    spec, node = output_tables.table(FRAME.to_html())
    sides = [["number" in entry["classes"] for entry in row] for row in node.findall(nodes.row)]
    assert sides == [[True, True, True, False]] * 3
    assert spec["spec"] == "RRRL"


@pytest.mark.parametrize("least", ["inf", "-inf", "∞", "−∞"])
def test_infinite_numbers_stand_at_the_right_as_others_do(least):
    node = output_tables.table(pd.DataFrame({"rises": ["0", "15", least]}).to_html())[-1]
    assert all("number" in entry["classes"] for entry in node.findall(nodes.entry) if entry.astext() in ("0", "15"))


@pytest.mark.parametrize(("text", "written"), [("-1", "−1"), ("x-1", "x-1"), ("2007-2", "2007-2"), ("(-.5)", "(−.5)")])
def test_a_minus_is_one_only_before_a_number_of_its_own(text, written):
    assert output_tables.said(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1e-03", "10−3"),
        ("<1e-10", "<10−10"),
        ("2.5e+04 ± 1e+00", "2.5 × 104 ± 1"),
        ("-inf", "−∞"),
        ("12345", "12,345"),
        ("2310", "2310"),
        ("0.12345", "0.12345"),
        ("12345 rows", "12345 rows"),
        ("1e3x", "1e3x"),
    ],
)
def test_numbers_are_written_as_in_print(text, written):
    assert output_tables.written(output_tables.said(text)).astext() == written


def test_an_exponent_is_a_superscript():
    (power,) = output_tables.written("1e−12").findall(nodes.superscript)
    assert power.astext() == "−12"


def test_entries_over_columns_and_rows():
    frame = pd.DataFrame(np.arange(16).reshape(4, 4), index=LEVELS.set_names(["i", "j"]), columns=LEVELS)
    node = output_tables.table(frame.to_html())[-1]
    (head,), (body,) = node.findall(nodes.thead), node.findall(nodes.tbody)
    assert [entry.astext() for entry in head[0]] == ["i", "j", "a", "b"]
    assert [entry.get("morerows", 0) for entry in head[0]] == [1, 1, 0, 0]
    assert [entry.get("morecols", 0) for entry in head[0]] == [0, 0, 1, 1]
    assert [entry.get("morerows", 0) for entry in body[0]] == [1, 0, 0, 0, 0, 0]
    assert all("number" in entry["classes"] for row in body for entry in row[-4:])
    assert all("number" not in row[-5]["classes"] for row in body)


def test_a_column_beside_entries_over_rows_is_judged_by_its_own_entries():
    index = pd.MultiIndex.from_product([["a"], ["b", "c"]])
    frame = pd.DataFrame({"words": ["+1", "+1 twice"], "numbers": ["1", "2"]}, index=index)
    (body,) = output_tables.table(frame.to_html())[-1].findall(nodes.tbody)
    assert [["number" in entry["classes"] for entry in row[-2:]] for row in body] == [[False, True]] * 2


def test_a_common_name_of_the_columns_goes_above_them():
    frame = FRAME[["gap"]].T.rename_axis(index="loss", columns="n_variables")
    assert rows(frame.to_html(), nodes.thead) == [["loss", "variables"], ["10", "20"]]


def bold(frame, least, reference=()):
    node = output_tables.table(frame.to_html(), least, reference)[-1]
    return [entry.astext() for entry in node.findall(nodes.entry) if list(entry.findall(nodes.strong))]


def test_the_least_number_is_bold():
    frame = pd.DataFrame([[3, -1, "x"], [2, 5, "y"], [2, 7, "z"], [9, 4, "u"]], columns=["cost", "gap", "name"])
    assert bold(frame, ["cost"]) == ["2", "2"]
    assert bold(frame, "column") == ["−1", "2", "2"]
    assert bold(frame[["cost", "gap"]], "row") == ["−1", "2", "2", "4"]
    assert bold(frame.assign(time=-9), {"row": ["cost", "gap"]}) == ["−1", "2", "2", "4"]
    assert bold(frame.set_index([["a", "a", "b", "b"], "name"]), ["gap"]) == ["−1", "4"]
    with pytest.raises(ExtensionError, match="no columns"):
        bold(frame, ["time"])
    with pytest.raises(ExtensionError, match="no columns"):
        bold(frame, {"row": ["cost", "time"]})


def test_a_row_that_does_not_compete_is_not_bold():
    frame = pd.DataFrame({"error": [0.3, 0.2, 0.1]}, index=["closed form", "calibrated", "truth"])
    assert bold(frame, "column") == ["0.1"]
    assert bold(frame, "column", ["truth"]) == ["0.2"]
    with pytest.raises(ExtensionError, match="no rows"):
        bold(frame, "column", ["law"])


def test_a_table_without_an_index_has_no_names_of_rows():
    assert rows(FRAME.to_html(index=False), nodes.tbody)[0] == ["−0.5", "1.000000 × 10−7", "low"]


def test_words_are_no_raw_names_and_arguments_of_calls_stay():
    assert all(RAW.fullmatch(name) and not RAW.search(words) for name, words in WORDS.items())
    assert in_words("QDA(prior_strength=1), log_loss=3") == "QDA(prior_strength=1), log_loss=3"
