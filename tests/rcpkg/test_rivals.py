"""Masked copies, and the card that says whether it is worth it."""

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import t as student
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression

from rcpkg import QDA, SVMKNN, RiskCalibration, Rows, compare, mask_copies
from rcpkg.rivals import BOOSTING, LOGISTIC, ON_COPIES, OURS, _card, _verdict, rivals
from rcpkg.table import TableColumns


def mixed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame({"size": rng.standard_normal(n) + y, "kind": np.where(rng.random(n) < 0.3 + 0.4 * y, "a", "b")})
    return X, np.where(y, "ill", "well")


def test_copies_hide_values_and_nothing_else():
    X, y = mixed()
    copies, labels, weight = mask_copies(X, y, rates=(0.2, 0.7), random_state=0)
    assert_array_equal(copies[: len(X)], X)
    assert list(copies.columns) == list(X.columns)
    seen = copies["size"].dropna()
    assert set(seen) <= set(X["size"])
    for value, label in zip(copies["size"], labels):
        if not np.isnan(value):
            assert label == y[np.flatnonzero(X["size"] == value)[0]]
    assert_allclose(weight.sum(), len(X))
    assert copies[len(X) :].isna().any(axis=1).all()


@pytest.mark.parametrize("levels", [["low", "high", "mid"], [3, 1, 2]])
def test_copies_of_ordered_categories_have_their_values(levels):
    """Not their places, which boosting would have learnt from, and then been asked of the values."""
    grade = pd.Categorical(np.resize(levels[::-1], 20), levels, ordered=True)
    copies = mask_copies(pd.DataFrame({"grade": grade}), np.arange(20) % 2, random_state=0).X
    assert copies.grade.dtype == grade.dtype
    assert_array_equal(copies.grade[:20], grade)


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_copies_hide_at_the_rate(rate):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 10)), np.arange(2000) % 2
    copies = mask_copies(X, y, rates=rate, random_state=0).X
    hidden = np.isnan(copies[2000:]).sum() / X.size  # copies that lose nothing are left out
    patterns = 64 * 10
    assert abs(hidden - rate) < 5 * np.sqrt(rate * (1 - rate) / patterns)
    assert isinstance(copies, np.ndarray)
    assert_array_equal(copies, mask_copies(X, y, rates=rate, random_state=0).X)


def test_what_is_not_compared():
    for X in (Rows.from_arrays(np.eye(4), np.arange(4)), np.arange(4.0), csr_array(np.eye(4))):
        for call in (compare, mask_copies):
            refused("X must be a table of rows, an array or a frame; got", call, X, np.arange(4) % 2)
    for other in (SVMKNN(), LinearRegression()):
        refused("estimator must be a classifier with predict_proba; got", compare, *mixed(), other)
    for rate in 1.0, 1.5:
        refused("rates must be a finite number >= 0 and < 1", mask_copies, *mixed(), rates=rate)
    refused("hidden must be a finite number >= 0 and < 1", compare, *mixed(), hidden=30)
    refused("level must be a finite number > 0 and < 1", compare, *mixed(), level=5)
    refused("200 rows and y 3", mask_copies, mixed()[0], [0, 1, 0])


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_rivals_take_gaps_and_new_categories(output):
    if output != "default":
        pytest.importorskip(output)
    X, y = mixed()
    for rival in rivals().values():
        frame = TableColumns().fit(X).transform(X)
        frame = frame.assign(kind=np.where(np.arange(len(X)) < 150, frame.kind, "c")).mask(frame == "b")
        with config_context(transform_output=output):
            P = rival.fit(frame[:150], y[:150]).predict_proba(frame)
        assert np.isfinite(P).all()


@pytest.mark.parametrize(
    ("more", "width", "verdict"),
    [
        (0.005, 0.01, "tie"),
        (-0.005, 0.001, "tie"),
        (0.015, 0.01, "use it"),
        (0.1, 0.05, "use it"),
        (-0.1, 0.05, "take boosting"),
        (0.1, 0.2, "undecided"),
        (0.0, 0.03, "undecided"),
    ],
)
def test_verdicts(more, width, verdict):
    assert _verdict(more, width, 0.02, "boosting") == verdict


def test_the_card_has_the_variance_of_nadeau_and_bengio():
    rng = np.random.default_rng(0)
    found = rng.uniform(size=(3, 2, 2, 5))
    found[1, 0, 1] = found[0, 0, 1] + np.array([0.3, 0.35, 0.32, 0.31, 0.3])
    found[2, 0, 1] = found[0, 0, 1] + 5.0
    card = _card([OURS, "near", "far"], found, 0.02, 0.05)
    more = found[1, 0, 1] - found[0, 0, 1]
    row = card.table[(card.table.condition == "complete") & (card.table.learner == "near")].iloc[0]
    variance = ((more - more.mean()) ** 2).sum() / 4
    assert_allclose([row.difference, row.std_error], [more.mean(), np.sqrt((1 / 5 + 1 / 4) * variance)])
    assert more.mean() > row.std_error * student.ppf(0.95, 4)
    assert card.verdicts["complete"] == "use it"
    assert _card([OURS, "near", "far"], found, 0.02, 1e-9).verdicts["complete"] == "undecided"
    assert str(card).endswith(f"hidden: {card.verdicts['hidden']}")


def test_a_model_that_is_right_is_used_and_noise_is_not(capsys):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = rng.standard_normal((240, 6)) * np.where(y, 0.7, 1.4)[:, None]
    card = compare(X, y, RiskCalibration(QDA()), cv=3)
    assert card.table.learner.unique().tolist() == [OURS, LOGISTIC, BOOSTING, ON_COPIES]
    assert card.verdicts["complete"] == "use it"
    X, y = load_iris(return_X_y=True)
    useless = compare(X[::3], y[::3], DummyClassifier(strategy="prior"), cv=2, verbose=1)
    assert useless.verdicts["complete"].startswith("take ")
    assert capsys.readouterr().out.startswith("fold 1 of 2, rcpkg: log-loss ")


@pytest.mark.slow
def test_a_raw_table_is_compared():
    X, y = mixed(80)
    card = compare(X.mask(np.random.default_rng(1).random(X.shape) < 0.1), y, cv=2)
    assert np.isfinite(card.table.log_loss).all()
    again = compare(X.mask(np.random.default_rng(1).random(X.shape) < 0.1), y, cv=2)
    pd.testing.assert_frame_equal(card.table, again.table)
    assert (card.table[card.table.learner == OURS].difference == 0).all()
    assert set(card.verdicts) == {"complete", "hidden"}
