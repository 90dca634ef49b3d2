"""What autodoc hands to the pages of the reference."""

import pytest
import reference_pages
from docutils import nodes
from docutils.core import publish_doctree
from rcbook.checking import Part

from rcpkg.calibration import Losses


@pytest.mark.parametrize("owner", [Losses, Part])
def test_fields_of_named_tuples_have_no_entry_and_methods_have(owner):
    def skipped(name):
        return reference_pages.skipped(None, "class", name, getattr(owner, name), False, None)

    assert all(map(skipped, owner._fields))
    assert skipped("_replace") is None


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("(a, history=<factory>)", "(a, history=...)"),
        ("(rule=<function calibration_weights>, b=0.0)", "(rule=calibration_weights, b=0.0)"),
        ("(chosen=<function <lambda>>)", "(chosen=...)"),
        ("(by_rounding=<function Study.<lambda>>, a=())", "(by_rounding=..., a=())"),
        ("(*, hidden=0.3333333333333333)", "(*, hidden=1/3)"),
    ],
)
def test_defaults_are_as_a_reader_would_write_them(arguments, shown):
    assert reference_pages.signature(None, "class", "", None, None, arguments, None) == (shown, None)


def test_a_colon_in_the_docstring_of_a_property_is_no_type():
    lines = ["Rows and pseudo-rows: m + b m̄.", ""]
    reference_pages.docstring(None, "property", "", None, None, lines)
    assert lines == ["Rows and pseudo-rows:", "m + b m̄.", ""]


def test_attributes_that_share_a_description_are_fields_each():
    lines = [":ivar classes_, means_: As in", "    `QDA`.", ":vartype a_, b_: float", ":ivar c_: An array: (d,).", ""]
    reference_pages.spread(None, "class", "", None, None, lines)
    assert lines == [
        *[":ivar classes_: As in", "    `QDA`.", ":ivar means_: As in", "    `QDA`."],
        *[":vartype a_: float", ":vartype b_: float", ":ivar c_: An array: (d,).", ""],
    ]


def test_name_of_a_default_stands_without_backticks_in_a_type():
    lines = [":param models: Some.", ":type models: sequence of str, default=`EDDA_MODELS`"]
    reference_pages.spread(None, "class", "", None, None, lines)
    assert lines[1] == ":type models: sequence of str, default=EDDA_MODELS"


def test_names_in_a_row_with_one_description_share_an_item():
    text = "Of a function:\n\n:Parameters:\n" + "".join(
        f"    * **{name}** (*int*) – {'No' if name == 'd' else 'As in A'}.\n" for name in "abcde"
    )
    doctree = publish_doctree(text)
    reference_pages.merge(None, doctree)
    items = [item.astext() for item in doctree.findall(nodes.list_item)]
    assert items == ["a, b, c (int) – As in A.", "d (int) – No.", "e (int) – As in A."]
