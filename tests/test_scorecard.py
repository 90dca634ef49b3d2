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


def test_summaries_say_over_how_many_sets_they_go_and_how_many_are_missing(card):
    """The 126 means, ranks and counts of the RC papers; three of them counted again by hand."""
    why = card.set_index(published.KEY).why
    assert why.str.fullmatch(r"a (mean|mean rank|count) over \d+ data sets, \d+ of which .*").sum() == 126

    def reason(**where):
        found = card[(card[list(where)] == pd.Series(where)).all(axis=1)]
        return found.why.item()

    def missing(source, table, methods, metric):
        cells = card[(card.source == source) & (card.table == table) & (card.metric == metric)]
        cells = cells[cells.method.isin(methods) & (cells.value_printed != "-")]
        return f"{cells.row.nunique()} data sets, {cells[cells.n_runs.isna()].row.nunique()} of which"

    errors = missing("rc2024", "III", ["MAP"], "empirical_error_fraction")
    assert errors in reason(source="rc2024", table="III", method="MAP", metric="mean_empirical_error_fraction")
    reach = missing("rc2024", "III", ["RC"], "reach")
    assert reach in reason(source="rc2024", table="III", method="RC", metric="mean_reach")
    pair = missing("rc2025", "3", ["RC", "ML"], "test_error_percent")
    assert pair in reason(source="rc2025", table="4", row="Test", method="RC vs ML", metric="count_equal")
    ranks = missing("rc2025", "3", ["RC", "ML", "GD"], "train_error_percent")
    assert ranks in reason(source="rc2025", table="3", method="GD", metric="train_avg_rank")
