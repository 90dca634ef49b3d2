"""rcbook.published: the printed tables, and what they say about themselves."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from rcbook import pages, published
from rcbook.experiments.claims import _outcome

ROOT = Path(__file__).resolve().parents[2]

ALL = published.tables()


def test_each_number_has_its_own_key_and_is_what_is_printed():
    assert not ALL.duplicated(published.KEY).any()
    number = pd.to_numeric(ALL.value_printed.str.split(" ± ").str[0].str.removeprefix("<"), errors="coerce")
    np.testing.assert_allclose(ALL.value, number)
    assert ALL.value_printed[ALL.value.isna()].isin(["-", "uc"]).all()


def test_table_numbers_are_strings():
    assert published.table("thesis2007", "5.1").dataset.unique().tolist() == ["pen_digits"]
    assert published.table("thesis2007", "5.10").dataset.unique().tolist() == ["ionosphere"]
    refused("must be one of I, II, III", published.table, "rc2024", "X")
    refused("source must be one of rc2025", published.table, "rc2023", "1")


def test_one_metric_of_a_table_as_printed():
    errors = published.wide("rc2024", "II", "empirical_error_fraction")
    assert errors.columns.tolist() == ["ML", "RC", "GD"] and errors.index.tolist() == [str(i) for i in range(1, 31)]
    assert errors.loc["26"].tolist() == [0.150, 0.000, 0.034]
    refused("metric of rc2024:II must be one of empirical_error_fraction", published.wide, "rc2024", "II", "error")


# Summaries against the cells they summarise ---------------------------------------------------------


def test_bounds_of_a_rank_and_of_counts():
    """Errors cut to whole per cents: equal ones may hide any order, different ones none."""
    errors = pd.DataFrame({"RC": [3.0, 5.0], "ML": [4.0, 5.0], "GD": [4.0, 5.0]})
    assert published._rank_bounds(errors, "RC") == (1.0, 2.0)
    assert published._rank_bounds(errors, "ML") == (1.5, 3.0)
    assert published._count_bounds(errors, "RC vs ML", "better") == (1, 2)
    assert published._count_bounds(errors, "RC vs ML", "worse") == (0, 1)


def test_printed_means_ranks_and_counts_are_possible():
    """The 48 means of rc2024, the 24 ranks and 54 counts of rc2025 agree with the cells of their tables."""
    summaries = published.summaries()
    assert len(summaries) == 48 + 24 + 54
    assert summaries.possible.all()


@pytest.mark.parametrize("table, initial, other", [
    ("II", "ML", "GD"), ("III", "MAP", "GD"), ("IV", "ML", "GD"), ("V", "MAP", "GD"), ("VI", "ML", "GD"),
    ("VII", "MAP", "GD"), ("VIII", "Random", "GD"), ("IX", "ML", "DFE"),
])  # fmt: skip
def test_columns_of_rc2024_fit_together(table, initial, other):
    """Iteration 1 is the initial model, no best error is above it, and reach is printed where RC gets there."""
    error, iteration = (
        published.wide("rc2024", table, "empirical_error_fraction"),
        published.wide("rc2024", table, "iterations"),
    )
    reach = published.wide("rc2024", table, "reach").RC
    assert (error[["RC", other]].le(error[initial], axis=0)).all(axis=None)
    assert (error.RC[iteration.RC == 1] == error[initial][iteration.RC == 1]).all()
    assert (iteration.RC[error[initial] == error.RC] == 1).all()
    assert (reach[reach.notna()] <= iteration.RC[reach.notna()]).all()
    assert (error[other] < error.RC)[reach.isna()].all() or (table == "VII" and reach[reach.isna()].index[-1] == "24")
    assert (error[other] >= error.RC)[reach.notna()].all()


@pytest.mark.parametrize("table, n_first, equal_train, equal_test", [("3", 4, 2, 3), ("7", 5, 5, 4), ("9", 7, 4, 6)])
def test_iteration_one_of_rc2025_cannot_be_the_initial_model(table, n_first, equal_train, equal_test):
    """Sets on which RC stops at iteration 1.0 in all divisions outnumber those counted as equal to the start."""
    cells = published.table("rc2025", str(int(table) + 1))
    equal = cells[cells.method.isin(["RC vs ML", "RC vs MAP"]) & (cells.metric == "count_equal")].set_index("row").value
    assert equal.to_dict() == {"Training": equal_train, "Test": equal_test}
    assert (published.wide("rc2025", table, "iterations").RC == 1).sum() == n_first
    assert n_first > min(equal)


def test_caption_of_table_12_names_a_comparison_that_it_lacks():
    assert published.table("rc2025", "12").method.unique().tolist() == ["RC vs DFE"]


# Claims of the texts --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked():
    """As stored; `test_pages` computes them again."""
    return pages.table("claims")


def test_every_claim_that_fails_has_its_erratum(checked):
    errata = (ROOT / "book" / "errata.md").read_text(encoding="utf-8")
    assert set(checked.outcome) <= {"holds", "possible", "does not hold", "not checkable"}
    assert ((checked.outcome == "does not hold") == (checked.erratum != "")).all()
    assert all(f"({label})=" in errata for label in checked.erratum if label)
    assert not checked.duplicated(["source", "claim"]).any()


@pytest.mark.parametrize(
    "stated, found, outcome",
    [
        ("5", "5", "holds"),
        ("5", "4", "does not hold"),
        ("7", "0 to 9", "possible"),
        ("12", "0 to 9", "does not hold"),
        ("≤ 2", "2", "holds"),
        ("≤ 2", "4", "does not hold"),
        ("4 to 512", "4 to 512", "holds"),
        ("", "", "not checkable"),
    ],
)
def test_outcome_of_a_claim(stated, found, outcome):
    assert _outcome(stated, found) == outcome
