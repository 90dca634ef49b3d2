"""Learners compared over data sets: what shows that they are level, and what only fails to show that they are not."""

import numpy as np
import pytest
from baycomp import SignedRankTest
from model_cases import refused
from rcbook.experiments.comparisons import beliefs, equivalence, equivalences
from scipy import stats

RNG = np.random.default_rng(50)


@pytest.mark.parametrize("shift", [-0.02, 0.0, 0.004, 0.02])
def test_two_one_sided_tests_are_the_interval_of_ninety_per_cent(shift):
    d = RNG.normal(shift, 0.01, size=25)
    found = equivalence(d, 0.01)
    assert (found.p_mean < 0.05) == (max(-found.low, found.high) < 0.01)
    half = stats.t.ppf(0.95, 24) * d.std(ddof=1) / 5
    np.testing.assert_allclose((found.low, found.high), (d.mean() - half, d.mean() + half))
    nearer = stats.t.sf((0.01 - abs(d.mean())) / (d.std(ddof=1) / 5), 24)
    np.testing.assert_allclose(found.p_mean, nearer)


def test_one_large_difference_parts_the_mean_from_the_median():
    d = np.append(np.linspace(-0.002, 0.002, 20), 0.5)
    found = equivalence(d, 0.01)
    assert found.p_median < 0.001
    assert found.p_mean > 0.5


def test_the_table_counts_sets_and_leaves_out_what_is_missing():
    table = equivalences({"a": [0.02, -0.02, 0.0, np.nan, -0.03]}, 0.01)
    assert table.loc["a", ["sets", "better", "within", "worse"]].tolist() == [4, 2, 1, 1]


@pytest.mark.parametrize(
    ("differences", "margin", "says"), [([0.1], 1.0, "two data sets"), ([0.1, 0.2], 0.0, "margin")]
)
def test_bad_input_is_named(differences, margin, says):
    refused(says, equivalence, differences, margin)


@pytest.mark.parametrize("shift", [-0.02, -0.008, 0.0, 0.01])
def test_beliefs_are_those_of_baycomp(shift):
    excess = np.append(RNG.normal(shift, 0.01, size=20), 0.02)  # the last a tie with the margin
    theirs = SignedRankTest.probs(-excess, np.zeros(21), rope=0.01, nsamples=2_000, random_state=0)
    np.testing.assert_allclose(beliefs(excess, 0.01, draws=2_000), theirs, atol=1e-3)
