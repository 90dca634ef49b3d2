"""Tables 5.1 to 5.22 of thesis2007: designs as stated, every printed cell listed."""

import importlib

import numpy as np
import pytest
from rcbook import published
from rcbook.experiments.studies import more_runs_of_bda7 as more_runs
from rcbook.experiments.studies import readings_of_bda7 as readings
from rcbook.experiments.studies import readings_of_simulations
from rcbook.experiments.studies import tables_of_bda7 as tables

# the function of the same name hides the module
scorecard = importlib.import_module("rcbook.experiments.scorecard")


@pytest.mark.needs_data
@pytest.mark.parametrize("table, rows, features", [("5.5", 178, 13), ("5.1", 7494, 16), ("5.11", 11340, 54)])
def test_data_are_divided_as_stated(table, rows, features):
    X, y, X_test, _ = tables._data(tables.DATA[table])
    assert X.shape == (rows, features) and len(y) == rows
    assert (X_test is None) == (table == "5.5")


# Readings -------------------------------------------------------------------------------------------


def test_leads_of_new_runs_are_differences_of_their_means():
    cells = more_runs.judged_runs()
    leads = more_runs.leads_of_new_runs(cells)
    cells = cells.set_index(["table", "method", "setting_value"])
    assert len(leads) > 50
    for lead in leads[::7].itertuples():
        a, b = (cells.loc[lead.table, name, lead.setting_value] for name in (lead.first, lead.second))
        assert lead.printed == b.printed - a.printed and lead.ours == b.value - a.value
        assert lead.se == pytest.approx(np.hypot(a["std"] / np.sqrt(a.n_runs), b["std"] / np.sqrt(b.n_runs)))


def test_columns_explained_need_every_number_and_as_many_runs():
    whole = published.table("thesis2007", "5.6").query("method == 'QDA'")
    cells = whole.assign(reading="with-replacement", table="5.6", agrees=True, agreed=False, n_runs=100)
    assert readings.columns_explained(cells).accepted.item()
    assert not readings.columns_explained(cells[1:]).accepted.item()
    assert not readings.columns_explained(cells.assign(n_runs=50)).accepted.item()
    assert not readings.columns_explained(cells.assign(agrees=cells.setting_value != "9")).accepted.item()
    assert not readings.columns_explained(cells.assign(agreed=True)).accepted.item()


@pytest.mark.slow  # it judges all tables anew
def test_explanations_by_replacement_are_the_accepted_columns():
    columns = readings.columns_explained(readings.judged_readings())
    accepted = columns[columns.accepted].reset_index()
    rules = scorecard._rules("explanations.csv")
    rules = rules[rules.section == "sec-replacement"]
    assert set(zip(rules.table, rules.method)) == set(zip(accepted.table, accepted.method)) and len(rules)


def test_one_problem_explains_what_no_column_contradicts():
    """No column is rejected as one more problem; with the numbers of the next column half of them are."""
    assert (readings_of_simulations.one_problem_tests().holm >= 0.01).all()
    assert (readings_of_simulations.one_problem_tests(shift=1).holm < 0.01).sum() >= 8
    cells = readings_of_simulations.within_one_problem()
    rules = scorecard._rules("explanations.csv").query("section == 'sec-one-problem'")
    listed = {(r.table, r.method, d) for r in rules.itertuples() for d in r.setting_value.split("|")}
    found = cells[cells.explained]
    assert listed == set(zip(found.table, found.method, found.setting_value))
