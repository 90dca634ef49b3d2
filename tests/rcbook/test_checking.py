"""`rcbook.checking`: a verdict asserts what it says, and cannot be had from nothing."""

import numpy as np
import pytest
from rcbook.checking import checked, exceeds, gap, holds, measured


def test_verdict_is_one_line(capsys):
    checked(
        "7 models, 300 draws",
        gap("posteriors", np.full((7, 300), 1e-12), 1e-10),
        gap("orders", 0, 0),
        measured("bias", [0.01234, -0.5], 1.0),
        exceeds("as printed off by", [0.3, 0.4], 0.1),
        holds("the loss falls", np.ones(300, dtype=bool)),
        holds("the sum is exact", True),
    )
    assert capsys.readouterr().out == (
        "checked: 7 models, 300 draws; posteriors within 1e-10; orders equal; bias 0.5, at most 1; "
        "as printed off by 0.3, more than 0.1; the loss falls in all 300; the sum is exact\n"
    )


@pytest.mark.parametrize(
    "part",
    [
        gap("a", [0.0, 2e-10], 1e-10),
        gap("a", [np.nan], 1.0),
        gap("a", [], 1.0),
        gap("a", [np.inf], 1e300),
        gap("a", -1.0, 0.5),
        measured("a", [0.0, -3.0], 2.0),
        measured("a", [np.nan, 0.0], 2.0),
        measured("a", [], 2.0),
        exceeds("a", [0.2, 0.1], 0.1),
        exceeds("a", [np.nan], 0.1),
        exceeds("a", [], 0.1),
        holds("a", [True, False]),
        holds("a", np.array([], dtype=bool)),
    ],
)
def test_failing_part_raises_and_names_itself(part, capsys):
    with pytest.raises(AssertionError, match=r"^a: "):
        checked("one trial", gap("b", 0.0, 1.0), part)
    assert capsys.readouterr().out == ""


def test_verdict_without_a_part_is_refused():
    with pytest.raises(AssertionError, match="nothing"):
        checked("one trial")


def test_conditions_must_be_true_or_false():
    with pytest.raises(TypeError, match="true or false"):
        holds("a", 1.0)
