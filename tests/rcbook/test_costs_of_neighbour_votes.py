"""The cost study of chapter 3: its accounting, and that the stored results obey the theory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import costs_of_neighbour_votes as costs


def test_costs_of_one_half():
    votes = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0]])
    truth = np.array([1, 1, 0, 1])
    found = costs._costs(votes, truth, 2.1)
    # class 1 wins above 3 / 3.1 = 0.97 votes; with smoothing above 0.97 - (1 - 2 / 3.1) = 0.61
    assert found == pytest.approx(
        {"plain": (2.1 + 1) / 4, "smoothed": (2.1 + 1) / 4, "rare": 0.25, "common": 3 * 2.1 / 4, "saving": 0.0}
    )
    assert costs._costs(votes, truth, 4.1)["smoothed"] == pytest.approx(0.25)  # 4.1 > k + 1: always the rare class


def test_the_stored_study_is_complete_and_obeys_the_theory():
    study = costs.tidy()
    wide = study.pivot_table(index=["dataset", "weights", "k", "cost_ratio"], columns="method", values="mean_cost")
    assert len(wide) == len(costs.DATASETS) * len(costs.WEIGHTS) * len(costs.SIZES) * len(costs.RATIOS)
    assert set(study["n_runs"]) == {costs.RUNS}
    wide = wide.reset_index()
    assert_allclose(wide["plain"] - wide["smoothed"], wide["saving"], atol=1e-9)
    constant = wide["cost_ratio"] > wide["k"] + 1
    assert_allclose(wide.loc[constant, "smoothed"], wide.loc[constant, "rare"], atol=1e-9)
    assert_allclose(wide.loc[wide["cost_ratio"] == 1, "saving"], 0, atol=1e-9)
