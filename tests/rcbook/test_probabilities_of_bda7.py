"""The study of BDA7's probabilities (chapter 15): its scores, and the stored results beside the earlier comparison."""

import numpy as np
from numpy.testing import assert_allclose
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
