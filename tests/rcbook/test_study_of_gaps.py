"""The study of gaps: what its protocol promises, its rivals, and what is read from its cells."""

import numpy as np
import pandas as pd
import pytest
from holm import holm_by_hand
from numpy.testing import assert_allclose
from rcbook import gap_rivals as rivals
from rcbook.experiments import gappy_divisions as divisions
from rcbook.experiments.comparisons import contest
from rcbook.experiments.studies import gaps as study
from sklearn.linear_model import LinearRegression

# Gaps --------------------------------------------------------------------------------------------------


# Values filled in ----------------------------------------------------------------------------------------


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
