"""What pages print of stored results is what the results give: the files of ``data/pages``, computed again."""

import json

import pandas as pd
import pytest
from rcbook import pages

REMEDY = "python -m rcbook.pages writes what pages print of the results anew"


@pytest.mark.parametrize("name", pages.TABLES)
def test_stored_table_is_what_the_results_give(name):
    computed = pages.TABLES[name]()
    texts = computed.columns[computed.dtypes.map(pd.api.types.is_string_dtype)]
    computed = computed.assign(**computed[texts].fillna(""))
    pd.testing.assert_frame_equal(pages.table(name), computed, check_dtype=False, rtol=1e-9, obj=f"{REMEDY}; {name}")


def test_stored_numbers_are_what_the_results_give():
    assert pages.record("numbers") == pages.numbers(), REMEDY


def numbers_of(record) -> tuple[list[float], str]:
    """All numbers of a record, in order, and the record without their values."""
    found = []
    text = json.dumps(record, default=float)
    rest = json.dumps(json.loads(text, parse_float=lambda digits: found.append(float(digits)) or "a number"))
    return found, rest


def test_stored_pictures_are_what_the_library_gives():
    stored, computed = pages.record("moving_pictures"), pages.moving_pictures()
    (ours, same), (theirs, shape) = numbers_of(computed), numbers_of(stored)
    assert shape == same, REMEDY
    assert theirs == pytest.approx(ours, abs=1.5e-4), REMEDY  # stored with four digits: one may be rounded otherwise
