"""The study of gaps: what its protocol promises, its rivals, and what is read from its cells."""

import numpy as np
import pandas as pd
import pytest
from holm import holm_by_hand
from numpy.testing import assert_allclose, assert_array_equal
from rcbook import gap_rivals as rivals
from rcbook.experiments import gappy_divisions as divisions
from rcbook.experiments.comparisons import contest
from rcbook.experiments.studies import gaps as study
from sklearn.linear_model import LinearRegression

# Gaps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [rivals.at_random, rivals.in_groups, rivals.by_value])
def test_as_much_is_lost_as_is_said(mechanism):
    X = np.random.default_rng(0).normal(size=(20_000, 7))
    lost = mechanism(X, 0.35, np.random.default_rng(1))
    always = ~lost.any(axis=0)
    assert always.sum() == (mechanism is rivals.by_value)
    assert_allclose(lost[:, ~always].mean(axis=0), 0.35, atol=0.02)


def test_neighbours_are_lost_together_and_by_value_the_greater_lose_more():
    X = np.random.default_rng(0).normal(size=(4_000, 12))
    lost = rivals.in_groups(X, 0.35, np.random.default_rng(1))
    together = (lost[:, :, None] == lost[:, None]).all(axis=0)
    assert together.sum(axis=0).max() == 3 and len(np.unique(together, axis=0)) == rivals.GROUPS
    lost = rivals.by_value(X, 0.35, np.random.default_rng(1))
    reason = X[:, ~lost.any(axis=0)].ravel()
    high, low = (lost[part].sum(axis=1).mean() / 11 for part in (reason > 0, reason < 0))
    assert high == pytest.approx(0.525, abs=0.02) and low == pytest.approx(0.175, abs=0.02)


# Values filled in ----------------------------------------------------------------------------------------


def states(n=400, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(3, size=n)
    second = np.where(rng.uniform(size=n) < 0.9, first, rng.integers(3, size=n))
    return np.column_stack([first, second, rng.integers(2, size=n)]).astype(float), np.array([3, 3, 2])


def test_indicators_and_back():
    codes, n_states = states()
    rows = rivals.indicators(codes, n_states)
    assert rows.shape[1] == 8 and (rows.sum(axis=1) == 3).all()
    assert_array_equal(rivals.most_probable(rows, n_states), codes)
    codes[0, 1] = np.nan
    assert_array_equal(np.isnan(rivals.indicators(codes, n_states)[0]), [False] * 3 + [True] * 3 + [False] * 2)


@pytest.mark.filterwarnings("ignore:.*criterion not reached")
def test_chained_regressions_go_on_where_training_rows_are_complete():
    """After one round from the means they would not have found what two missing values together are."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    X = np.column_stack([z + 0.1 * rng.normal(size=600) for _ in range(4)])
    row = np.array([[2.0, np.nan, np.nan, np.nan]])
    filled = rivals.chained().fit(X).transform(row)
    exact = LinearRegression().fit(X[:, :1], X[:, 1:]).predict([[2.0]])
    assert_allclose(filled[0, 1:], exact[0], atol=0.25)
    draws = rivals.chained(draws=True).fit(X)
    assert (draws.transform(row) != draws.transform(row)).any()


def test_chained_states_find_what_another_feature_says():
    codes, n_states = states()
    rows = rivals.indicators(codes, n_states)
    gaps = codes.copy()
    gaps[:, 1] = np.nan
    filled = rivals.ChainedStates(n_states).fit(rows).transform(rivals.indicators(gaps, n_states))
    assert_allclose(np.add.reduceat(filled, [0, 3, 6], axis=1), 1)
    assert np.mean(rivals.most_probable(filled, n_states)[:, 1] == codes[:, 0]) > 0.99
    assert_array_equal(filled[:, [0, 1, 2, 6, 7]], rows[:, [0, 1, 2, 6, 7]])


def test_a_donor_is_near_and_gives_what_belongs_together():
    codes, n_states = states()
    codes[:, 2] = codes[:, 1] == 0
    rows = rivals.indicators(codes, n_states)
    gaps = codes.copy()
    gaps[:, 1:] = np.nan
    deck = rivals.HotDeck(0).fit(rows)
    found = rivals.most_probable(deck.transform(rivals.indicators(gaps, n_states)), n_states)
    assert_array_equal(found[:, 2], found[:, 1] == 0)
    assert np.mean(found[:, 1] == codes[:, 0]) > 0.8
    nothing = np.full((50, 8), np.nan)
    assert not np.isnan(deck.transform(nothing)).any() and len(np.unique(deck.transform(nothing), axis=0)) > 3


def test_neighbours_know_the_class_weights_of_a_row_without_values():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 4 // 3
    model = rivals.NeighboursWithGaps(5).fit(X, y)
    assert_allclose(model.predict_proba(np.full((1, 3), np.nan)), [[0.75, 0.25]])
    row = np.where([True, False, True], X[:1], np.nan)
    near = y[np.argsort(((X - X[:1])[:, [0, 2]] ** 2).sum(axis=1))[:5]]
    assert_allclose(model.predict_proba(row)[0, 1], (5 * near.mean() + 0.25) / 6)


def test_neighbours_at_the_same_distance_share_their_votes():
    rng = np.random.default_rng(1)
    X = np.where(rng.uniform(size=(60, 5)) < 0.1, np.nan, rng.integers(3, size=(60, 5)) / np.sqrt(3))
    y, k = rng.integers(3, size=60), 7
    model = rivals.NeighboursWithGaps(k).fit(X, y)
    P = model.predict_proba(X[:20])
    for x, found in zip(X[:20], P):
        both = ~np.isnan(x) & ~np.isnan(X)
        with np.errstate(invalid="ignore"):
            distance = np.round(np.sum(np.where(both, x - X, 0.0) ** 2, axis=1) / both.sum(axis=1), 9)
        level = np.sort(distance)[k - 1]
        votes = np.bincount(y[distance < level], minlength=3).astype(float)
        votes += (k - votes.sum()) * np.bincount(y[distance == level], minlength=3) / np.sum(distance == level)
        assert_allclose(found, (votes + np.bincount(y) / 60) / (k + 1))
    order = rng.permutation(60)
    assert_allclose(rivals.NeighboursWithGaps(k).fit(X[order], y[order]).predict_proba(X[:20]), P)


# Protocol --------------------------------------------------------------------------------------------------


@pytest.mark.needs_data
def test_a_division_is_as_the_protocol_says():
    data = divisions.division("numbers", "iris", "original", 3, 0.0)
    assert data.X.shape == (100, 4) and len(data.y_test) == 50 and set(data.tests) == set(divisions.KINDS)
    assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    whole = data.tests["0% at random"]
    assert not np.isnan(whole).any()
    for kind, rows in data.tests.items():
        there = ~np.isnan(rows)
        assert_array_equal(rows[there], whole[there])
        share = divisions.KINDS[kind][1]
        assert 1 - there.mean() == pytest.approx(share, abs=0.12)
    codes = divisions.division("categories", "hepatitis", "original", 3, 0.2)
    assert codes.X.shape[1] == len(codes.n_states) and list(codes.tests) == ["20% at random"]
    assert np.isnan(codes.X).mean() == pytest.approx(0.2, abs=0.03)
    assert np.all(np.nanmax(codes.X, axis=0) < codes.n_states)


# Readings --------------------------------------------------------------------------------------------------


def made_up(arm, n=20, seed=0):
    """Losses of sets on which ours is ahead of all but boosting on masked copies, by 0.1."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([[f"set {i}" for i in range(n)], divisions.KINDS], names=["data set", "kind"])
    columns = [*study.COMPLETE, study.SHOWN_BOOSTING, *study.JOINT[arm]]
    losses = pd.DataFrame(rng.uniform(0.5, 1, (len(index), len(columns))), index, columns)
    losses[study.OURS[arm]] = losses.drop(columns=study.SHOWN_BOOSTING).min(axis=1) - 0.1
    losses[study.SHOWN_BOOSTING] = losses[study.OURS[arm]] - 0.1 - 0.01 * rng.uniform(size=len(index))
    return losses


def test_verdicts_follow_the_rules_of_the_protocol():
    losses = {arm: made_up(arm, seed=seed) for seed, arm in enumerate(study.ASIDE)}
    table = study.hypotheses(losses)
    assert len(table) == 2 * (6 + 6 + 5 + 8)
    assert_allclose(table.p_holm, holm_by_hand(table.p))
    outcome = table.groupby("hypothesis").outcome.unique().map(list)
    assert outcome.to_dict() == {"1": ["as stated"], "1c": ["as stated"], "2": ["refuted"], "3": ["as stated"]}
    ours = study.OURS["numbers"]
    pair = losses["numbers"].xs("50% at random", level="kind")
    row = table[(table.arm == "numbers") & (table.hypothesis == "2") & (table.kind == "50% at random")].iloc[0]
    assert row.p == contest(pair, [(ours, study.SHOWN_BOOSTING)], 0.01).p[0]
    told = study.verdicts(table)
    assert told.loc[("2", "numbers")].to_dict() == {"sets": 20, "as stated": 0, "refuted": 5, "open": 0}


def test_one_set_that_is_worse_leaves_the_third_open_and_one_rival_refutes_the_first():
    losses = made_up("numbers")
    ours = study.OURS["numbers"]
    kind = losses.index.get_level_values("kind")
    losses.loc[("set 0", "0% at random"), ours] += 2
    losses.loc[kind == "80% at random", "nearest neighbours"] = losses[ours] - 0.05
    share = np.flatnonzero(kind == "50% at random")[:5]
    losses.iloc[share, losses.columns.get_loc("forest")] = losses[ours].iloc[share] - 0.05
    table = study.hypotheses({"numbers": losses}).set_index(["hypothesis", "kind"]).outcome
    assert table["3", "0% at random"] == "" and table["3", "10% at random"] == "as stated"
    assert table["1", "80% at random"] == "refuted" and table["1", "50% at random"] == ""
    counted = study.wins(losses, ours, study.COMPLETE)
    assert counted.loc["every one", ["sets", "50% at random"]].tolist() == [20, 15]
    assert counted.loc["nearest neighbours", "80% at random"] == 0 and counted.loc["boosting", "35% by value"] == 20


def test_sets_without_all_learners_are_not_counted_and_nothing_stored_gives_no_verdict():
    losses = made_up("numbers")
    losses.loc["set 3", "forest"] = np.nan
    table = study.hypotheses({"numbers": losses})
    assert set(table[table.hypothesis == "1"].sets) == {19} and set(table[table.hypothesis == "3"].sets) == {20}
    counted = study.wins(losses, study.OURS["numbers"], study.COMPLETE)
    assert counted.loc[["forest", "every one", "boosting"], "sets"].tolist() == [19, 19, 20]
    assert study.candidate("numbers", losses) == study.OURS["numbers"]
    empty = study.hypotheses({"numbers": losses.drop(columns=study.OURS["numbers"])})
    assert empty.empty and study.verdicts(empty).empty
