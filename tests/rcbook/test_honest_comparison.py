"""The honest comparison: what its protocol promises, the scores, and that the stored study is complete."""

import numpy as np
import pandas as pd
import pytest
from holm import holm_by_hand
from numpy.testing import assert_allclose, assert_array_equal
from rcbook import datasets
from rcbook.experiments import comparisons, runner
from rcbook.experiments.studies import honest_comparison as honest
from rcbook.experiments.studies.data_and_models_of_rc import five_bins
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.metrics import brier_score_loss, log_loss

SETS = honest.DEVELOPMENT | honest.LARGE | honest.SET_ASIDE


def test_bins_are_those_of_the_published_protocol_but_learnt_from_training_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 4, size=300), rng.exponential(size=300)])
    bins = honest.KMeansBins().fit(X)
    assert_array_equal(bins.transform(X), five_bins(X))
    outside = bins.transform([[-99.0, -1.0, -1.0], [99.0, 9.0, 99.0]])
    assert_array_equal(outside, [[0, 0, 0], [4, 3, 4]])


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


def test_forecasts_that_say_what_happens_are_calibrated():
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(3), size=60_000)
    y = (rng.random((60_000, 1)) > P.cumsum(axis=1)).sum(axis=1)
    assert honest.scores(P, y)["calibration_error"] < 0.01
    assert honest.scores(P[::-1], y)["calibration_error"] > 0.2


class Constant(BaseEstimator):
    """Gives class one the probability p."""

    def __init__(self, p=0.5):
        self.p = p

    def fit(self, X, y):
        self.rows_ = len(y)
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.p, self.p], (len(X), 1))


def test_tuning_takes_the_least_log_loss_and_refits_on_all_rows():
    y = np.repeat([0, 1], [30, 70])
    tuned = honest.Tuned(Constant(), {"p": [0.1, 0.7, 0.9]}, 0).fit(np.zeros((100, 1)), y)
    assert tuned.setting_ == {"p": 0.7}
    assert tuned.estimator_.rows_ == 100


@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "variant"), [("heart", "rc2024-nb"), ("waveform", "original")])
def test_splits_are_stratified_apart_and_prepared_on_training_rows(name, variant):
    data = honest.split(name, variant, 3)
    n = len(datasets.load(name, variant).target)
    assert len(data.y_test) == np.ceil(n / 4)
    assert len(data.y_train) == min(n - len(data.y_test), honest.TRAINING_ROWS)
    shares = [np.bincount(y) / len(y) for y in (data.y_train, data.y_test)]
    assert_allclose(*shares, atol=1 / len(data.y_test))
    train, test = data.features["z"]
    assert_allclose(train.mean(axis=0), 0, atol=1e-9)
    assert_allclose(train.std(axis=0), 1)
    assert np.abs(test.mean(axis=0)).max() > 1e-6
    codes, test_codes = data.features["codes"]
    assert (test_codes.max(axis=0) <= codes.max(axis=0)).all()


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


@pytest.mark.parametrize(
    ("values", "sizes", "message"),
    [
        ([1.0], (3, 1), "at least two divisions"),
        (1.0, (3, 1), "at least two divisions"),
        ([1.0, 2.0], (0, 1), "n_train and n_test"),
        ([1.0, 2.0], (3, 0), "n_train and n_test"),
    ],
)
def test_corrected_standard_error_needs_divisions_and_rows(values, sizes, message):
    with pytest.raises(ValueError, match=message):
        comparisons.corrected_standard_error(values, *sizes)


@pytest.mark.parametrize("family", honest.FAMILIES)
def test_the_compared_learners_exist_on_all_sets_but_where_a_class_is_degenerate(family):
    scores = honest.means("log_loss", list(SETS))[honest.learners(family)]
    assert np.isfinite(scores.drop(columns="RC safe, pooled target (QDA ML)", errors="ignore")).all(axis=None)
    done = {d.key: d for d in runner.read(runner.table_path("study", "honest"))}
    missing = scores.index[scores.isna().any(axis=1)]
    assert all("InvalidStatistics" in done[f"{name}/RC safe, pooled target/QDA ML"].failure for name in missing)
    assert len(missing) <= len(SETS) / 5
