"""What is counted in the scorecard: columns and rows that come out."""

import pandas as pd
import pytest

from rcpkg import experiments, published
from rcpkg.experiments.scorecard import VERDICTS


@pytest.fixture(scope="module")
def card():
    return experiments.scorecard()


def test_matches_count_every_printed_number_once(card):
    counts = experiments.matches(card)
    assert counts.printed.sum() == len(published.tables())
    assert (counts[list(VERDICTS)].sum(axis=1) == counts.printed).all()
    one = card[(card.table == "VI") & (card.method == "RC") & (card.metric == "iterations")]
    assert counts.loc["rc2024", "VI", "RC", "iterations"].reproduced == (one.verdict == "reproduced").sum() > 0
    assert list(counts.index.unique("source")) == list(card.source.unique())


def test_a_row_is_exact_if_all_its_numbers_are():
    columns = ["source", "table", "method", "row", "metric", "verdict"]
    rows = [
        ("s", "1", "RC", "a", "error", "reproduced"),
        ("s", "1", "RC", "a", "iterations", "reproduced"),
        ("s", "1", "RC", "b", "error", "reproduced"),
        ("s", "1", "RC", "b", "iterations", "differs: unexplained"),
        ("s", "1", "RC", "c", "error", "reproduced"),
        ("s", "1", "RC", "c", "iterations", "not attempted"),
        ("s", "1", "ML", "a", "error", "reproduced"),
        ("s", "1", "RC", "a", "reach", "differs: unexplained"),
    ]
    found = experiments.exact_rows(("error", "iterations"), pd.DataFrame(rows, columns=columns))
    assert found.loc["s", "1", "RC"].to_dict() == {"compared": 2, "exact": 1}
    assert found.loc["s", "1", "ML"].to_dict() == {"compared": 1, "exact": 1}
