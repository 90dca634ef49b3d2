"""The study of calibrated networks: what its protocol promises."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from holm import holm_by_hand
from model_cases import network_rows
from numpy.testing import assert_array_equal
from rcbook.experiments import runner
from rcbook.experiments.cells import STUDY, cells_of
from rcbook.experiments.studies import calibrated_networks as study
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from rcpkg import MDLDiscretizer


def test_sets_run_from_the_smallest_those_set_aside_after_them_and_those_with_large_tables_last():
    sets = study.sets()
    sizes = [n for n, _ in sets.values()]
    assert len(sets) >= 40 and sizes == sorted(sizes) and sizes[0] < 100 and sizes[-1] > 500_000
    assert not any(sets[name][1] for name in study.TRIED)
    order = list(dict.fromkeys(cell.row for cell in cells_of(STUDY, study.STUDY_NAME)))
    place = [(name in study.COSTLY, sets[name][1], sets[name][0]) for name in order]
    assert place == sorted(place) and set(order) == set(sets) and set(study.COSTLY) < set(sets)
    assert sum(aside for _, aside, _ in place) == 15
    assert set(study.CURVES) == set(list(sets)[-5:])


@pytest.mark.parametrize("name", study.LEARNERS)
def test_learners_are_tuned_within_their_grids(name):
    """At most sixteen settings, and orders k that the number of features allows."""
    X, y = network_rows(n=60)
    data = study.Coded(X[:, :2], y, X[:, :2], y, np.array([2, 3]))
    learner = study.LEARNERS[name](data, 0)
    grid = getattr(learner, "grid", {})
    assert np.prod([len(of) for of in grid.values()]) <= 16
    assert [of for key, of in grid.items() if key.endswith("k")] in ([], [[0, 1]])
    if name not in ("random forest", "gradient boosting"):
        P = learner.fit(data.X, data.y).predict_proba(data.X_test)
        np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.needs_data
def test_codes_are_learnt_from_training_rows():
    """Cuts of the training rows, and missing values as a state of their own."""
    data, rows = study.division("hepatitis", 5), study.rows_of("hepatitis", study.ALL_ROWS)
    train, test = train_test_split(np.arange(len(rows.y)), test_size=0.25, stratify=rows.y, random_state=5)
    assert_array_equal(data.y_test, rows.y[test])
    cutter = MDLDiscretizer(categorical_features=rows.nominal).fit(rows.X[train], rows.y[train])
    codes = cutter.transform(rows.X)
    varies = [len(np.unique(column)) > 1 for column in np.where(np.isnan(codes), -1, codes)[train].T]
    expected = codes[:, varies]
    known = ~np.isnan(expected[train])
    assert_array_equal(data.X[known], expected[train][known])
    assert not known.all() and np.isfinite(data.X).all()
    largest = np.nanmax(expected, axis=0)
    assert np.all(np.where(known, largest + 1, data.X) == largest + 1)
    assert_array_equal(data.n_states, np.vstack([data.X, data.X_test]).max(axis=0) + 1)


def test_a_forest_grows_the_same_trees_on_dense_indicators():
    X, y = network_rows(n=200)
    states = (X.max(axis=0) + 1).astype(int)
    P = []
    for settings in {}, {"sparse_output": False, "dtype": np.float32}:
        forest = study.one_hot_encoded(RandomForestClassifier(20, random_state=0, max_features=0.3), **settings)(states)
        P.append(forest.fit(X, y).predict_proba(X))
    assert_array_equal(*P)


# The stored study --------------------------------------------------------------------------------------

DONE = [done for name in (study.STUDY_NAME, study.CURVES_NAME) for done in runner.read(runner.table_path(STUDY, name))]


def test_hypotheses_are_those_of_the_protocol(monkeypatch):
    """Wilcoxon's test for each of eight pairs, on the sets that the hypothesis is about, adjusted over all eight."""
    sets, rng = study.sets(), np.random.default_rng(0)
    names = [name for name in sets if name not in study.COSTLY]
    losses = pd.DataFrame(rng.uniform(0.2, 1, (len(names), len(study.LEARNERS))), names, list(study.LEARNERS))
    losses["KDB, RC safe, pooled target"] = losses["KDB"] - 0.1
    monkeypatch.setattr(study, "means", lambda metric, of: {"log_loss": losses.loc[list(of)]}[metric])
    table = study.hypotheses(names)
    few = losses.index.map(lambda name: sets[name][0] <= 2_000)
    rivals = ["KDB", "NB, RC safe, pooled target", "random forest", "gradient boosting"]
    p = []
    for row in table.itertuples():
        part = losses if row.hypothesis < 3 else losses[few] if row.hypothesis == 3 else losses[~few]
        rival = rivals[row.hypothesis - 1]
        difference = part[f"KDB, RC safe, {row.target} target"] - part[rival]
        p.append(stats.wilcoxon(difference).pvalue)
        assert (row.against, row.sets) == (rival, len(part))
        assert (row.better, row.worse) == ((difference < -0.01).sum(), (difference > 0.01).sum())
        side = difference.median() > 0 if row.hypothesis == 4 else difference.median() < 0
        assert row.confirmed == (side and row.p_holm < 0.05)
    assert list(zip(table.target, table.hypothesis)) == [(t, h) for t in ("pooled", "nested") for h in range(1, 5)]
    np.testing.assert_allclose(table.p, p)
    np.testing.assert_allclose(table.p_holm, holm_by_hand(p))
    assert table.confirmed[0] and not table.confirmed[4:].all()


def test_what_is_read_is_what_is_stored():
    names = study.stored()
    assert names == [name for name in study.sets() if name in names]
    for aside, costly in product((False, True), repeat=2):
        part = [name for name in names if study.sets()[name][1] == aside and (name in study.COSTLY) == costly]
        assert part and study.stored(aside=aside, costly=costly) == part
    by_key = {done.key: {record.metric: record.value for record in done.records} for done in DONE}
    for metric in study.METRICS:
        table = study.means(metric, names)
        assert list(table.index) == names and list(table) == list(study.LEARNERS)
        assert all(table.loc[n, m] == pytest.approx(by_key[f"{n}/{m}"][metric]) for n in names for m in table)
