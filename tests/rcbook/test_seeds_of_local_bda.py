"""The study of local BDA's seeds as rows grow (chapter 16): its problems, its scores, and the stored results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import seeds_of_local_bda as study
from scipy.stats import multivariate_normal


def test_the_posterior_of_the_problems_is_the_one_drawn_from():
    rng = np.random.RandomState(0)
    X, y, truth = study.draw("normal", 40_000, rng)
    means = np.zeros((2, 4))
    means[1, 0] = study.NORMAL_SHIFT
    joint = [weight * multivariate_normal(mean).pdf(X) for weight, mean in zip((0.7, 0.3), means)]
    assert_allclose(truth, joint[1] / (joint[0] + joint[1]), rtol=1e-10)
    for name in study.PROBLEMS:
        X, y, truth = study.draw(name, 40_000, rng)
        for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1)):
            among = (truth >= low) & (truth < high)
            if among.any():
                error = np.sqrt((truth * (1 - truth))[among].mean() / among.sum())
                assert abs(y[among].mean() - truth[among].mean()) < 4 * error


def test_scores_by_hand():
    cost = np.array([[0.0, 1.0], [3.0, 0.0]])
    scores = study.judge(np.array([0.9, 0.5, 0.2]), np.array([0.8, 0.8, 0.2]), cost)
    assert_allclose(scores["mean_p1"], 1.6 / 3)
    assert_allclose(scores["p1_distance"], 0.4 / 3)
    # predicting 1 costs 3 (1 - p1), predicting 0 costs p1: 0.6 against 0.8 at the first two rows
    assert_allclose(scores["excess_cost"], 0.2 / 3)
    assert_allclose(scores["excess_error"], 0.6 / 3)  # the tie at 0.5 goes to class 0
    parts = [0.8 * np.log(8 / 9) + 0.2 * np.log(2), 0.8 * np.log(1.6) + 0.2 * np.log(0.4), 0]
    assert_allclose(scores["excess_log_loss"], np.mean(parts))


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
