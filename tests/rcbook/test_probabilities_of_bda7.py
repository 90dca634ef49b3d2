"""The study of BDA7's probabilities (chapter 14): its scores, and the stored results beside the earlier comparison."""

import numpy as np
from numpy.testing import assert_allclose
from rcbook.experiments.studies import bda7_among_todays_classifiers as rivals
from rcbook.experiments.studies import probabilities_of_bda7 as study
from sklearn.metrics import log_loss


def test_scores_are_those_of_scikit_learn_and_by_hand():
    rng = np.random.default_rng(0)
    P, codes = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    P = 0.02 + 0.94 * P
    scores = study.judge(P, codes)
    assert_allclose(scores["log_loss"], log_loss(codes, P, labels=[0, 1, 2]))
    assert_allclose(scores["test_error_percent"], 100 * np.mean(P.argmax(axis=1) != codes))
    sure = study.judge(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    assert_allclose(sure["overconfidence_points"], 50)
    floored = study.FLOOR / (1 + study.FLOOR)
    assert_allclose(sure["log_loss"], -0.5 * np.log(floored * (1 - floored)))


def test_the_stored_study_is_complete_and_paired():
    stored = study.tidy()
    scored = stored[stored["metric"].isin(study.METRICS)]
    cells = len(rivals.DATASETS) * 2 + len(study.DIGITS) + len(study.CASES)
    assert len(scored) == cells * len(study.METHODS) * len(study.METRICS)
    assert set(scored["n_runs"]) == {rivals.RUNS, study.SIMULATIONS}
    for metric in study.METRICS:
        wide = scored[scored["metric"] == metric].pivot(index=["data", "amount"], columns="method", values="value")
        over = stored[stored["metric"] == f"{metric}_over_BDA7"]
        over = over.pivot(index=["data", "amount"], columns="method", values="value")
        assert_allclose(over, wide[over.columns].sub(wide["BDA7"], axis=0), atol=1e-9)


def test_errors_are_those_of_the_earlier_comparison_on_the_same_divisions():
    index = ["data", "amount", "method"]
    ours, theirs = (
        table[table["metric"] == "test_error_percent"].set_index(index)["value"]
        for table in (study.tidy(), rivals.tidy())
    )
    common = ours.index.intersection(theirs.index)
    assert len(common) == 2 * len(rivals.DATASETS) * 5
    assert_allclose(ours[common], theirs[common], atol=1e-9)
