"""The protocols of wanbia2014's tables and figures, on small and synthetic data, and stored cells computed again."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from rcbook import datasets, published
from rcbook.experiments import results
from rcbook.experiments.cells import STUDY, Cell, cells_of
from rcbook.experiments.studies import figures_of_wanbia2014 as figures
from rcbook.experiments.studies import tables_of_wanbia2014 as tables


def drawn(n=300, seed=0):
    """One number and two categories, some values missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.column_stack([y + rng.normal(size=n), (y + rng.integers(2, size=n)) % 3, rng.integers(4, size=n)])
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    return tables.Rows(X.astype(float), y, np.array([False, True, True]))


# Cells --------------------------------------------------------------------------------------------


def test_every_printed_row_has_a_cell():
    sizes = cells_of("wanbia2014", "I")
    assert len(sizes) == 78 and sum(bool(cell.reason) for cell in sizes) == 6
    counts = cells_of("wanbia2014", "II")
    printed = published.table("wanbia2014", "II")
    assert len({cell.key for cell in counts}) == len(counts) == len(printed) / 4 == 12


# Measures -----------------------------------------------------------------------------------------


def test_bias_and_variance_sum_to_the_loss():
    """Kohavi and Wolpert (1996), without noise; a row that is always right has neither."""
    rng = np.random.default_rng(1)
    predictions, y = rng.integers(3, size=(7, 40)), rng.integers(3, size=40)
    assert sum(tables.bias_and_variance(predictions, y)) == pytest.approx(np.mean(predictions != y))
    assert tables.bias_and_variance(np.tile(y, (5, 1)), y) == (0.0, 0.0)
    bias, variance = tables.bias_and_variance(np.array([[0], [1]]), np.array([0]))
    assert (bias, variance) == (0.25, 0.25)


def test_squared_error_has_the_printed_half():
    """wanbia2014 §IV: ½ Σ_y (Y − P)²; a class that no training row has counts as a miss."""
    P = np.array([[0.8, 0.2], [0.5, 0.5], [1.0, 0.0]])
    assert tables.squared_error(P[:2], np.array([0, 1])) == pytest.approx((0.04 + 0.25) / 2)
    assert tables.squared_error(P[2:], np.array([1])) == 1.0
    assert tables.squared_error(P[2:], np.array([2])) == pytest.approx(0.5 * (1 + 1))


def test_p_values_are_cut_and_not_rounded():
    cells = published.table("wanbia2014", "II")
    rows = cells[cells.metric == "p_value_sign_test"]
    rows = rows[~rows.value_printed.str.startswith("<") & (rows.value < 1)]
    cut, rounded = [], []
    for row in rows.itertuples():
        same = (cells.row == row.row) & (cells.dataset == row.dataset) & (cells.method == row.method)
        count = cells[same].set_index("metric").value
        p = tables.sign_test(int(count["count_win"]), int(count["count_loss"]))
        cut.append(np.floor(1000 * p) / 1000 == row.value)
        rounded.append(round(p, 3) == row.value)
    assert all(cut) and len(cut) == 6 and sum(rounded) == 3


def test_draws_are_means_that_agree_when_rounded():
    means = pd.DataFrame({"WANBIA-C": [0.1, 0.20001, 0.3], "LR": [0.2, 0.20004, 0.2]})
    assert tables.wins_draws_losses(means, "LR") == (1, 1, 1)
    assert tables.wins_draws_losses(means, "LR", 6) == (2, 0, 1)
    assert tables.sign_test(0, 0) == 1.0


def test_shares_are_scaled_to_the_printed_number_of_sets(monkeypatch):
    index = pd.MultiIndex.from_tuples([(f"s{i}", "bias") for i in range(10)], names=["dataset", "measure"])
    means = pd.DataFrame({"WANBIA-C": [0.1] * 6 + [0.3] * 4, "LR": 0.2, "NB": 0.2}, index=index)
    monkeypatch.setattr(tables, "set_means", lambda: means)
    cell = next(cell for cell in cells_of("wanbia2014", "II") if cell.row == "bias")
    won, drew, lost = tables.counts_over_sets(cell, 0)
    assert (won.value, drew.value, lost.value) == pytest.approx((0.6 * 73, 0.0, 0.4 * 73))
    assert won.std == pytest.approx(73 * np.sqrt(0.24)) and won.n_runs == 10


# Designs ------------------------------------------------------------------------------------------


def test_numbers_are_cut_on_training_rows():
    rows = drawn()
    train, test = np.arange(0, 300, 2), np.arange(1, 300, 2)
    parts = tables.design(rows, train, test)
    moved = tables.Rows(rows.X.copy(), rows.y, rows.nominal)
    moved.X[test, 0] *= 100
    assert_allclose(tables.design(moved, train, test).scale, parts.scale)
    assert parts.train.shape[0] == 150 and parts.train.shape[1] == len(parts.scale)
    assert_allclose(np.exp(parts.scale[0]).sum(), 1)


def test_naive_bayes_of_a_design_skips_missing_values():
    rows = drawn()
    parts = tables.design(rows, np.arange(300), np.arange(300))
    sums = parts.train.sum(axis=1)
    assert sums.max() == 4 and sums.min() < 4
    by_row = [parts.scale[row > 0].sum(axis=0) for row in parts.test[:5].toarray()]
    by_hand = np.exp(by_row) / np.exp(by_row).sum(axis=1, keepdims=True)
    assert_allclose(tables.posteriors(parts.test[:5], parts.scale), by_hand)


def test_a_set_without_a_telling_feature_keeps_the_class_weights():
    rng = np.random.default_rng(2)
    rows = tables.Rows(rng.normal(size=(100, 3)), rng.integers(2, size=100), np.zeros(3, bool))
    parts = tables.design(rows, np.arange(100), np.arange(100))
    assert_allclose(tables.posteriors(parts.test, parts.scale), np.exp(parts.scale[0])[None].repeat(100, axis=0))


# Figures ------------------------------------------------------------------------------------------


def test_curvature_at_equal_posteriors_is_the_frequency_of_states():
    parts = tables.design(drawn(), np.arange(300), np.arange(3))
    scale = figures.curvature_scale(parts.train, np.zeros_like(parts.scale))
    counts = parts.train.sum(axis=0)
    assert_allclose(scale, np.repeat(1 / np.sqrt(counts * 2 / 9)[:, None], 3, axis=1))


def test_all_systems_arrive_at_the_same_place(monkeypatch):
    monkeypatch.setattr(figures, "rows_of", lambda name, most: drawn())
    records = figures.compare_coordinates(Cell(STUDY, "wanbiac-coordinates", "drawn", "all", stream="drawn"), 0)
    found = {(r.method, r.metric): r.value for r in records}
    assert found["", "separable"] == 0 and found["", "start"] == pytest.approx(300 * np.log(3))
    assert all(found[system, "iterations_1e-6"] for system in figures.SYSTEMS)
    assert all(found[s, "iterations_1e-3"] <= found[s, "iterations_1e-6"] for s in figures.SYSTEMS)


def test_penalties_lead_from_one_model_to_another():
    rows = drawn()
    models = dict(figures.penalised(tables.design(rows, np.arange(0, 300, 2), np.arange(1, 300, 2))))
    assert_allclose(models["WANBIA-C+L2(1) 1e6"], models["NB"], atol=1e-4)
    assert_allclose(models["WANBIA-C+L2(0) 1e6"], 1 / 3, atol=1e-3)
    assert_allclose(models["LR+L2 1e-6"], models["LR"], atol=1e-2)
    assert len(models) == 3 + 3 * len(figures.EXPONENTS)


def test_streams_do_not_look_ahead(monkeypatch):
    """Labels of later rows change the two passes, and not the single one."""
    rows = drawn(n=900)
    monkeypatch.setattr(figures, "BURN_IN", 100)
    monkeypatch.setattr(figures, "LENGTH", 400)
    monkeypatch.setattr(figures, "BLOCK", 200)
    monkeypatch.setattr(figures, "ORDERS", 1)
    cell, found = Cell(STUDY, "wanbiac-streams", "drawn", "all", stream="drawn"), []
    late = np.zeros(900, bool)
    late[np.random.RandomState(0).permutation(900)[300:500]] = True  # the second half of the stream
    for y in (rows.y, np.where(late, (rows.y + 1) % 3, rows.y)):
        monkeypatch.setattr(figures, "rows_of", lambda name, most, y=y: tables.Rows(rows.X, y, rows.nominal))
        found.append({(r.method, r.metric): r.value for r in figures.learn_stream(cell, 0)})
    for learner in figures.LEARNERS:
        first = [run[learner, "squared_error_200"] for run in found]
        assert (first[0] == first[1]) == (learner != "WANBIA-C, two passes"), learner


# Stored results -----------------------------------------------------------------------------------


@pytest.mark.needs_data
def test_localization_has_eleven_classes():
    """erratum-wanbia2014-classes: the axis of Figure 2 begins where eleven classes have equal posteriors, not three."""
    assert len(datasets.load("localization").target_names) == 11
    assert -164_860 * np.log(11) == pytest.approx(-3.95e5, rel=2e-3)
    assert -164_860 * np.log(3) > -2e5


def test_axes_of_figure_2_end_short_of_the_maximum():
    """erratum-wanbia2014-axis: they begin at equal posteriors, and end far below the maximum of CLL."""
    stored = results(STUDY, "wanbiac-coordinates")
    facts = stored[stored.method.fillna("") == ""].pivot(index="row", columns="metric", values="value")
    for name, n, r, begins, ends in (
        ("pendigits", 10_992, 10, -2.6e4, -1.2e4),
        ("census_income_kdd", 299_285, 2, -2.2e5, -1.2e5),
    ):
        start, best = -n * np.log(r), -n * facts.least[name] / facts.rows[name]
        assert begins < start < begins * 0.9
        assert ends < 0.4 * start and best > 0.3 * ends
