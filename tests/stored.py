"""Stored cells, and the same cells computed again: which numbers must come out, and to how many digits."""

import pytest
from rcbook.experiments.gappy_divisions import CATEGORIES
from rcbook.experiments.studies.gaps import STUDY_NAME, TRAINING_NAME
from rcbook.experiments.studies.learners_with_gaps import CONFORMANT, MULTIPLE

# these studies end at optima found by a search with a tolerance of its own (1e-6 of a gradient; the root of machine
# precision where only values are compared, as for a temperature); within it another processor ends elsewhere
SEARCHED = {"honest", "post-hoc", "what-calibration-keeps", "gaps", "gaps-in-training"}


def magnifies_rounding(table, key):
    """Whether processors disagree on all numbers of a cell.

    Descents that are stopped early do (test_tables_of_wanbia2014.py has those studies); so do searches for an optimum
    that is lacking, or all but lacking, without a target, as chapter 13 says.
    """
    return table.startswith("wanbiac-") or not CONFORMANT.keys().isdisjoint(key.split("/"))


def falls_by_rounding(cell, record):
    """Whether a number of the studies of gaps depends on how equal values are sorted, which numpy leaves to the
    processor.

    A hot deck draws from near rows in such an order; bins of equally many rows part equal posteriors.
    """
    if cell.table not in (STUDY_NAME, TRAINING_NAME):
        return False
    hot_deck = record.method.endswith(f", {MULTIPLE}") and cell.arguments["arm"] == CATEGORIES
    return hot_deck or record.metric.startswith("calibration_error")


def assert_computed_again(cell, found, stored):
    """The records of a cell are those stored, but for times and for what falls by rounding."""
    assert [(r.method, r.metric, r.n_runs) for r in found] == [(r.method, r.metric, r.n_runs) for r in stored]
    tolerance = 1e-5 if cell.table in SEARCHED else 1e-10
    for new, old in zip(found, stored, strict=True):
        if "seconds" in new.metric or falls_by_rounding(cell, new):
            continue
        if old.value is None or new.metric in ("iterations", "reach"):
            assert new.value == old.value
        else:
            assert new.value == pytest.approx(old.value, rel=tolerance, abs=tolerance)
