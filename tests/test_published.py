"""rcpkg.published: the printed tables, and what they say about themselves."""

import numpy as np
import pandas as pd
import pytest

from rcpkg import published

ALL = published.tables()


def test_counts_of_the_index():
    index = published.index()
    assert index.groupby("source").size().to_dict() == {"rc2024": 9, "rc2025": 12, "thesis2007": 26, "wanbia2014": 2}
    assert ALL.groupby(["source", "table"]).size().to_dict() == index.set_index(["source", "table"]).n_cells.to_dict()
    assert len(ALL) == 4549


def test_each_number_has_its_own_key_and_is_what_is_printed():
    assert not ALL.duplicated(published.KEY).any()
    number = pd.to_numeric(ALL.value_printed.str.split(" ± ").str[0].str.removeprefix("<"), errors="coerce")
    np.testing.assert_allclose(ALL.value, number)
    assert ALL.value_printed[ALL.value.isna()].isin(["-", "uc"]).all()


def test_table_numbers_are_strings():
    assert published.table("thesis2007", "5.1").dataset.unique().tolist() == ["pen_digits"]
    assert published.table("thesis2007", "5.10").dataset.unique().tolist() == ["ionosphere"]
    with pytest.raises(ValueError, match="must be one of I, II, III"):
        published.table("rc2024", "X")
    with pytest.raises(ValueError, match="source must be one of rc2025"):
        published.table("rc2023", "1")


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


def wide(source, table, metric):
    cells = published.table(source, table)
    cells = cells[(cells.metric == metric) & ~cells.dataset.str.startswith("(all")]
    return cells.assign(row=cells.row.astype(int)).pivot(index="row", columns="method", values="value")


@pytest.mark.parametrize("table, initial, other", [
    ("II", "ML", "GD"), ("III", "MAP", "GD"), ("IV", "ML", "GD"), ("V", "MAP", "GD"), ("VI", "ML", "GD"),
    ("VII", "MAP", "GD"), ("VIII", "Random", "GD"), ("IX", "ML", "DFE"),
])  # fmt: skip
def test_columns_of_rc2024_fit_together(table, initial, other):
    """Iteration 1 is the initial model, no best error is above it, and reach is printed where RC gets there."""
    error, iteration = wide("rc2024", table, "empirical_error_fraction"), wide("rc2024", table, "iterations")
    reach = wide("rc2024", table, "reach").RC
    assert (error[["RC", other]].le(error[initial], axis=0)).all(axis=None)
    assert (error.RC[iteration.RC == 1] == error[initial][iteration.RC == 1]).all()
    assert (iteration.RC[error[initial] == error.RC] == 1).all()
    assert (reach[reach.notna()] <= iteration.RC[reach.notna()]).all()
    assert (error[other] < error.RC)[reach.isna()].all() or (table == "VII" and reach[reach.isna()].index[-1] == 24)
    assert (error[other] >= error.RC)[reach.notna()].all()


def test_claim_of_rc2024_on_table_vii():
    """The text says RC is better than GD in 25 of 29 sets; in the table it is better in 24, and equal in 5."""
    error = wide("rc2024", "VII", "empirical_error_fraction")
    assert (error.RC < error.MAP).sum() == 29
    assert (error.RC < error.GD).sum() == 24
    assert (error.RC == error.GD).sum() == 5


def test_other_claims_of_rc2024():
    for table, improved, better in [("II", 27, 27), ("III", 21, 18), ("IV", 29, 28), ("V", 29, 26), ("VI", 29, 24)]:
        error = wide("rc2024", table, "empirical_error_fraction")
        initial = "ML" if "ML" in error else "MAP"
        assert (error[initial] > error.RC).sum() == improved
        assert ((error[initial] > error.RC) & (error.RC < error.GD)).sum() == better
    error = wide("rc2024", "VIII", "empirical_error_fraction")
    assert ((error.RC < error.GD).sum(), (error.RC == error.GD).sum()) == (27, 2)
    error = wide("rc2024", "IX", "empirical_error_fraction")
    assert ((error.RC < error.DFE).sum(), (error.RC == error.DFE).sum()) == (25, 5)


@pytest.mark.parametrize("table, n_first, equal_train, equal_test", [("3", 4, 2, 3), ("7", 5, 5, 4), ("9", 7, 4, 6)])
def test_iteration_one_of_rc2025_cannot_be_the_initial_model(table, n_first, equal_train, equal_test):
    """Sets on which RC stops at iteration 1.0 in all divisions outnumber those counted as equal to the start."""
    cells = published.table("rc2025", str(int(table) + 1))
    equal = cells[cells.method.isin(["RC vs ML", "RC vs MAP"]) & (cells.metric == "count_equal")].set_index("row").value
    assert equal.to_dict() == {"Training": equal_train, "Test": equal_test}
    assert (wide("rc2025", table, "iterations").RC == 1).sum() == n_first
    assert n_first > min(equal)


def test_claims_of_rc2025_on_reach():
    for table, reached in [("3", 15), ("5", 19)]:
        assert wide("rc2025", table, "reach").RC.notna().sum() == reached
    shared = published.table("rc2025", "3").merge(
        published.table("rc2025", "11"), on=["row", "method", "metric"], suffixes=("", "_11")
    )
    shared = shared[shared.metric != "reach"]
    assert len(shared) == 60 and (shared.value_printed == shared.value_printed_11).all()
