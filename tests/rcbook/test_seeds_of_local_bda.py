"""The study of local BDA's seeds as rows grow (chapter 16): its problems, its scores, and the stored results."""

import numpy as np
import pytest
from rcbook.experiments.studies import seeds_of_local_bda as study


def test_the_stored_study_shows_what_the_theorem_says():
    stored = study.tidy()
    assert set(stored["n_runs"]) == {study.RUNS}
    assert len(stored) == len(study.PROBLEMS) * len(study.SIZES) * 2 * (len(study.SEEDS) + 1) * 5
    at = stored.set_index(["problem", "k", "metric", "seed", "n"])["value"].sort_index()
    fixed = at["square", "k = 30", "mean_p1"]
    for seed in ("B = I", "trace"):
        assert (np.diff(fixed[seed]) < 0).all()
    assert fixed["B = I", 20_000] == pytest.approx(0.5, abs=0.01)
    assert fixed["neighborhood", 20_000] == pytest.approx(0.8, abs=0.02)
    assert (at["square", "k grows", "mean_p1"].xs(20_000, level="n") - 0.8).abs().max() < 0.05
    assert (at["square", "k grows", "excess_error"].xs(20_000, level="n") == 0).all()
