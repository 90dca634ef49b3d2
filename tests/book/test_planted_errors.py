"""The checks of the chapters can fail: errors planted one at a time by `book/_tools/planted.py` are found by the check
itself."""

import planting
import pytest
from planted import PLANTED, SAMPLED, chapter_of

pytestmark = pytest.mark.slow
CHECKS = list(dict.fromkeys((row.chapter, row.label) for row in PLANTED))


@pytest.mark.parametrize(("number", "label"), CHECKS, ids=lambda value: value)
def test_check_passes_as_it_stands(number, label):
    assert chapter_of(number).outcomes()[label] is None


@pytest.mark.parametrize("row", PLANTED, ids=lambda row: f"{row.chapter}-{row.label}")
def test_check_finds_the_planted_error(row):
    error = chapter_of(row.chapter).outcomes()[row]
    assert isinstance(error, AssertionError), f"{row.label} does not see it: {error!r}"
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    assert frame.tb_frame.f_code.co_name == "checked", "raised, but not by the verdict"


@pytest.mark.parametrize("number", SAMPLED)
def test_checks_see_the_errors_that_a_machine_draws(number):
    chapter = chapter_of(number)
    chapter.outcomes()
    assert not planting.unaccepted(chapter.passed), "mend the check, or say in accepted_errors.csv why it may"
