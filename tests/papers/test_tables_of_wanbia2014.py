"""The protocols of wanbia2014's tables and figures, on small and synthetic data, and stored cells computed again."""

import numpy as np
import pandas as pd
import pytest
from rcbook import datasets
from rcbook.experiments import results
from rcbook.experiments.cells import STUDY, cells_of
from rcbook.experiments.studies import tables_of_wanbia2014 as tables

# Measures -----------------------------------------------------------------------------------------


def test_bias_and_variance_sum_to_the_loss():
    """Kohavi and Wolpert (1996), without noise; a row that is always right has neither."""
    rng = np.random.default_rng(1)
    predictions, y = rng.integers(3, size=(7, 40)), rng.integers(3, size=40)
    assert sum(tables.bias_and_variance(predictions, y)) == pytest.approx(np.mean(predictions != y))
    assert tables.bias_and_variance(np.tile(y, (5, 1)), y) == (0.0, 0.0)
    bias, variance = tables.bias_and_variance(np.array([[0], [1]]), np.array([0]))
    assert (bias, variance) == (0.25, 0.25)


def test_shares_are_scaled_to_the_printed_number_of_sets(monkeypatch):
    index = pd.MultiIndex.from_tuples([(f"s{i}", "bias") for i in range(10)], names=["dataset", "measure"])
    means = pd.DataFrame({"WANBIA-C": [0.1] * 6 + [0.3] * 4, "LR": 0.2, "NB": 0.2}, index=index)
    monkeypatch.setattr(tables, "set_means", lambda: means)
    cell = next(cell for cell in cells_of("wanbia2014", "II") if cell.row == "bias")
    won, drew, lost = tables.counts_over_sets(cell, 0)
    assert (won.value, drew.value, lost.value) == pytest.approx((0.6 * 73, 0.0, 0.4 * 73))
    assert won.std == pytest.approx(73 * np.sqrt(0.24)) and won.n_runs == 10


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
