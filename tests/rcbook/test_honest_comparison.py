"""The honest comparison: what its protocol promises, the scores, and that the stored study is complete."""

import numpy as np
import pandas as pd
import pytest
from holm import holm_by_hand
from numpy.testing import assert_allclose
from rcbook.experiments import comparisons
from rcbook.experiments.studies import honest_comparison as honest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss


def test_scores_by_hand():
    P = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])
    y = np.array([0, 1, 1, 1])
    found = honest.scores(P, y)
    assert found["error_percent"] == 25
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.4, 0.7, 0.9]).mean())
    assert found["brier"] == pytest.approx(2 * np.mean([0.2**2, 0.6**2, 0.3**2, 0.1**2]))
    # four rows, four bins: |0.8 - 1|, |0.6 - 0|, |0.7 - 1|, |0.9 - 1|
    assert found["calibration_error"] == pytest.approx((0.2 + 0.6 + 0.3 + 0.1) / 4)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    P, y = rng.dirichlet(np.ones(4), size=200), rng.integers(0, 4, size=200)
    found = honest.scores(P, y)
    assert found["log_loss"] == pytest.approx(log_loss(y, P, labels=range(4)))
    assert found["brier"] == pytest.approx(brier_score_loss(y, P, labels=range(4)))


def test_contest_counts_and_adjusts():
    rng = np.random.default_rng(2)
    scores = pd.DataFrame(rng.normal([0.0, 0.3, 1.0, 0.0], size=(20, 4)), columns=list("abcd"))
    scores.loc[3, "d"] = np.nan
    pairs = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    table = comparisons.contest(scores, pairs, rope=0.1)
    assert table.sets.tolist() == [20, 20, 19, 19]
    assert (table.better + table.level + table.worse).tolist() == table.sets.tolist()
    assert table.p[1] == pytest.approx(stats.wilcoxon(scores.a - scores.c).pvalue)
    assert_allclose(table.p_holm, holm_by_hand(table.p))


@pytest.mark.parametrize(("n_divisions", "n_train", "n_test"), [(2, 1, 1), (20, 75, 25), (8, 60, 150)])
def test_corrected_standard_error_is_that_of_equally_correlated_values(n_divisions, n_train, n_test):
    """E[s²] = tr(C H)/(J - 1) times the factor is 1ᵀC1/J², the variance of the mean, if C has the guessed ρ."""
    correlation, ones = n_test / (n_test + n_train), np.ones(n_divisions)
    covariance = 3.0 * ((1 - correlation) * np.eye(n_divisions) + correlation)
    mean_square = np.trace(covariance @ (np.eye(n_divisions) - 1 / n_divisions)) / (n_divisions - 1)
    values = np.random.default_rng(3).normal(size=(n_divisions, 4, 2))
    factor = comparisons.corrected_standard_error(values, n_train, n_test) ** 2 / values.var(axis=0, ddof=1)
    assert_allclose(factor * mean_square, ones @ covariance @ ones / n_divisions**2)
