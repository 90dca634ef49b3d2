"""The studies behind thesis2007 Tables 6.2 and 6.3, and the explanations of the scorecard that rest on them."""

import pandas as pd
from rcbook._files import data_folder
from rcbook.experiments.studies import tables_of_local_bda as tables
from rcbook.experiments.studies.printed_sizes_of_local_bda import at_printed_sizes, flatness, printed_sizes, shares
from rcbook.experiments.studies.tables_of_local_bda import CHOSEN_ROWS


def test_printed_sizes_go_by_the_names_of_the_rows():
    sizes = printed_sizes()
    assert set(sizes) == {(row, method) for row in tables.ROWS for method in [*tables.RULES, "GMM"]}
    assert sizes["Letter Rec.", "Local BDA"] == 20 and sizes["USPS (raw)", "k-NN"] == 1


def explained(table):
    rules = pd.read_csv(data_folder() / "explanations.csv", dtype=str, keep_default_na=False)
    rules = rules[(rules["source"] == "thesis2007") & (rules["table"] == table)]
    names = rules["row"].str.replace(r" \(\d+ classes\)", "", regex=True).replace(CHOSEN_ROWS)
    return set(zip(names, rules["method"], strict=True))


def test_errors_are_explained_by_the_printed_size_only_where_they_come_out_there():
    found = at_printed_sizes()
    found = found[found["z"].abs() <= 2]
    assert explained("6.1") <= set(zip(found["dataset"], found["method"], strict=True))


def test_sizes_are_explained_only_where_they_cannot_be_told_from_the_best():
    near = flatness().query("printed_near")
    assert explained("6.3") <= set(zip(near["dataset"], near["method"], strict=True))


def test_test_errors_are_explained_only_where_nine_tenths_of_the_rows_give_them():
    found = shares().query("reference == 'training rows' and abs(all_rows - printed) > 0.006")
    found = found[found["z_0.9"].abs() <= 2]
    assert explained("6.2") <= set(zip(found["dataset"], found["method"], strict=True))
