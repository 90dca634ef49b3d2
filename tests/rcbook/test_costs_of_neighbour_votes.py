"""The cost study of chapter 3: its accounting, and that the stored results obey the theory."""

from numpy.testing import assert_allclose
from rcbook.experiments.studies import costs_of_neighbour_votes as costs


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
