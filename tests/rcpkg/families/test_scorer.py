"""Frozen models: the same bits as the model's, from the model and from JSON, with gaps, text and calibration."""

import json
import pickle
from datetime import date
from decimal import Decimal
from unittest.mock import patch

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from model_cases import MODELS, fitted, gaussian_rows, network_rows, of_each_family, refused
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcpkg import (
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    KDependenceBayes,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    Scorer,
)

pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
FROZEN = [name for name in MODELS if not name.startswith("Multinomial")]


def with_holes(X, seed=0):
    """Rows of which none, a third and two thirds of the values are hidden in turn."""
    rng, rows = np.random.default_rng(seed), X.astype(float)
    hidden = rng.uniform(size=X.shape) < np.resize([0.0, 1 / 3, 2 / 3], len(X))[:, None]
    return np.where(hidden, np.nan, rows)


def assert_same_bits(model, rows):
    for scorer in (scored := model.scorer(), Scorer.from_json(scored.to_json())):
        for row in [*rows, *rows]:  # the second time by what the scorer keeps of the first
            assert_array_equal(scorer.predict_proba(row), model.predict_proba(row[None])[0])


@pytest.mark.parametrize("name", of_each_family(*FROZEN))
def test_posteriors_are_those_of_the_model_to_the_last_bit(name):
    model, X, *_ = fitted(name)
    assert_same_bits(model, [*with_holes(X[:24]), np.full(X.shape[1], np.nan)])


def test_a_scorer_keeps_the_factors_of_so_many_patterns(monkeypatch):
    model, X, *_ = fitted("QDA")
    monkeypatch.setattr("rcpkg.gaps.AT_A_TIME", 2 * model.covariances_.size)
    scorer = model.scorer()
    for row in with_holes(X[:24]):
        assert_array_equal(scorer.predict_proba(row), model.predict_proba(row[None])[0])
    assert scorer._parts[0][0].marginals.cached.cache_info().currsize == 2


def test_networks_that_are_not_decomposable_and_features_that_do_not_vary():
    X, y = network_rows()
    assert_same_bits(KDependenceBayes(k=2, decomposable=False).fit(X, y), with_holes(X[:12]))
    X, y = gaussian_rows()
    for family in QDA(), GaussianNB():
        assert_same_bits(family.fit(np.insert(X, 1, 7.0, axis=1), y), with_holes(np.insert(X, 1, 7.0, axis=1)[:12]))


@pytest.mark.parametrize(("entries", "kept"), [(2**13, 2**20), (60, 2**20), (2**13, 0)])
@hypothesis.settings(max_examples=5, deadline=None)
@hypothesis.example(seed=3096, n_classes=3, strength=0.0)  # a family that does not matter has two parents that do
@hypothesis.given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 9), strength=st.sampled_from([0.0, 1.0]))
def test_networks_of_any_structure_with_gaps(entries, kept, seed, n_classes, strength):
    """Tables are small or too large, patterns are kept or not; of eight numbers or more numpy's sums have an order of
    their own; without pseudo-rows states have probability zero."""
    rng = np.random.default_rng(seed)
    d = rng.integers(2, 8)
    order, parents = rng.permutation(d), [()] * d
    for place, j in enumerate(order):
        parents[j] = rng.choice(order[:place], size=rng.integers(min(place, 3) + 1), replace=False).tolist()
    n_states = rng.choice([1, 2, 3, 4, 9], size=d)
    X, y = rng.integers(n_states, size=(90, d)), np.arange(90) % n_classes
    model = KDependenceBayes(structure=parents, prior_strength=strength).fit(X, y)
    unknown = rng.uniform(size=(15, d)) < 0.1
    with patch.multiple("rcpkg.families.missing_states", TABLE_ENTRIES=entries, AT_A_TIME=kept):
        assert_same_bits(model, with_holes(np.where(unknown, 20, X[:15]), seed))


@pytest.mark.parametrize("n_classes", [2, 3, 8, 20])
def test_posteriors_of_many_classes_and_states(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.integers(12, size=(2000, 6)), np.arange(2000) % n_classes
    for model in TAN(), LDA(), QDA(), GaussianNB():
        assert_same_bits(model.fit(X + y[:, None] % 3, y), with_holes(X[:12]))


@pytest.mark.parametrize("name", ["QDA", "TAN"])
def test_a_scorer_that_has_met_gaps_is_saved(name):
    model, X, *_ = fitted(name)
    scorer, rows = model.scorer(), with_holes(X[:9])
    posteriors = [scorer.predict_proba(row) for row in rows]
    assert_array_equal([pickle.loads(pickle.dumps(scorer)).predict_proba(row) for row in rows], posteriors)


def test_names_unknown_states_and_rows_that_no_class_has():
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]] * 3, dtype=object)
    y = np.array(["no", "yes", "yes", "no"] * 3)
    model = CategoricalNB().fit(X, y)
    rows = [np.array(row, dtype=object) for row in (["a", "x"], ["c", "y"], [None, "x"], [None, None])]
    assert_same_bits(model, rows)
    scorer = model.scorer()
    assert scorer.classes_ == ["no", "yes"] and scorer.n_features_in_ == 2
    assert_array_equal(scorer.predict_proba(["a", "x"]), model.predict_proba([["a", "x"]])[0])
    codes, labels = np.array([[0, 0], [0, 1], [1, 2], [1, 2]]), [0, 0, 1, 1]
    assert_same_bits(CategoricalNB().fit(codes, labels), [np.array([0.0, 2.0]), np.array([1.0, 0.0])])


def test_blocks_with_names_and_columns_of_no_block():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 2
    X[:, 0] = rng.integers(3, size=80)
    codes = CategoricalNB(prior_strength=1.0)
    for Z, numbers, place in (X, [3, 1], 0), (X[:, ::-1], [0, 1], 3), (X[:, ::-1], [0, 1, 2], 3):
        blocks = [("codes", codes, [place]), ("numbers", QDA(), numbers)]
        assert_same_bits(ProductModel(blocks).fit(Z, y), with_holes(Z[:12]))


@pytest.mark.parametrize("learner", [clone, RiskCalibration])
def test_rows_of_numbers_and_names_in_any_container(learner):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = pd.DataFrame({"size": rng.normal(size=60) + y, "kind": np.where(rng.random(60) < 0.3 + 0.4 * y, "a", "b")})
    X = X.assign(wide=rng.random(60) < 0.5)
    blocks = [("n", GaussianNB(), ["size"]), ("c", CategoricalNB(prior_strength=1.0), ["kind"])]
    model = learner(ProductModel([*blocks, ("b", BernoulliNB(prior_strength=1.0), ["wide"])])).fit(X, y)
    gappy = X.astype(object).mask(rng.random(X.shape) < 0.3, None)
    expected = model.predict_proba(gappy)
    for scorer in (scored := model.scorer(), Scorer.from_json(scored.to_json())):
        for (_, row), posterior in zip(gappy.iterrows(), expected):
            turned = dict(reversed(row.to_dict().items()))
            for given in (row.tolist(), row.to_numpy(), row, turned, turned | {"more": 1}):
                assert_array_equal(scorer.predict_proba(given), posterior)
        with pytest.raises(ValueError, match="row lacks the feature 'kind': give None where it is missing"):
            scorer.predict_proba({"size": 1.0, "wide": True})
        refused(r"row must have 3 features; got \(1, 3\)", scorer.predict_proba, X[:1])
    of_array = QDA().fit(*gaussian_rows()).scorer()
    assert_array_equal(of_array.predict_proba(pd.Series([0.1, 0.2, 0.3])), of_array.predict_proba([0.1, 0.2, 0.3]))
    with pytest.raises(ValueError, match="row must be a sequence of values, since the model knows no names; got dict"):
        of_array.predict_proba({"a": 1, "b": 2, "c": 3})


@pytest.mark.parametrize("learner", [clone, RiskCalibration])
@pytest.mark.parametrize("columns", [None, [0, 1, 2], [2, 1, 0], [10, 30, 20]])
def test_integers_that_label_a_row_are_names(learner, columns):
    X, y = gaussian_rows()
    model = learner(QDA()).fit(X if columns is None else pd.DataFrame(X, columns=columns), y)
    names, values = columns or [0, 1, 2], X[0, :3].tolist()
    for scorer in (scored := model.scorer(), Scorer.from_json(scored.to_json())):
        expected = scorer.predict_proba(values)
        for order in [0, 1, 2], [2, 0, 1]:
            row = pd.Series([values[j] for j in order], index=[names[j] for j in order])
            assert_array_equal(scorer.predict_proba(row), expected)
    if columns is None:  # which say nothing of the places
        assert_array_equal(scored.predict_proba(pd.Series(values, index=[7, 9, 8])), expected)


@pytest.mark.parametrize("family", [GaussianNB(), CategoricalNB(prior_strength=1.0)])
def test_what_stands_for_a_missing_value_or_for_none_that_can_be(family):
    X = np.random.default_rng(0).integers(3, size=(40, 3))
    model = family.fit(X, X[:, 0] > 0)
    scorer, posterior = model.scorer(), model.predict_proba([[1.0, np.nan, 2.0]])[0]
    for missing in None, np.nan, pd.NA, pd.NaT, Decimal("nan"):
        row = [1, missing, 2]
        for given in row, tuple(row), pd.array(row, dtype=object), pd.Series(row, dtype=object):
            assert_array_equal(scorer.predict_proba(given), posterior)
    for given in pl.Series([1, None, 2]), pa.array([1, None, 2]), np.ma.array([1, 0, 2], mask=[0, 1, 0]):
        assert_array_equal(scorer.predict_proba(given), posterior)
    for value in "a", date(2020, 1, 1), np.datetime64("2020-01-01"), np.datetime64("NaT"), b"1", 1j, [1], {}:
        for given in [1, value, 2], (1, value, 2):
            refused("row holds", scorer.predict_proba, given)
    for kind in "M8[D]", "M8[ns]", "m8[ns]", "S1", complex:
        refused("row holds", scorer.predict_proba, np.array([1, 0, 2]).astype(kind))
    for given in {0, 1, 2}, "102", b"\x01\x00\x02", bytearray(3), memoryview(b"102"):
        match = f"row must be a sequence of values, since the model knows no names; got {type(given).__name__}"
        refused(match, scorer.predict_proba, given)
    for given in pl.DataFrame({"a": [1], "b": [0], "c": [2]}), pa.table({"a": [1], "b": [0], "c": [2]}):
        refused("row must be a sequence of values", scorer.predict_proba, given)


@pytest.mark.parametrize("name", ["GaussianNB", "LDA", "QDA"])
def test_rows_too_far_off_and_infinite_ones(name):
    model = fitted(name).model
    for row in [-np.inf, 1.0, 1.0], [1.0, None, np.inf]:
        refused("contains infinity", model.predict_proba, [row])
        refused("row holds infinity", model.scorer().predict_proba, row)
    for row in [-1e200, 1.0, 1.0], [1e200, None, 1.0]:
        assert_array_equal(model.scorer().predict_proba(row), model.predict_proba([row])[0])


def test_steps_before_a_model_are_no_part_of_a_scorer():
    X, y = gaussian_rows()
    model = RiskCalibrationCV(make_pipeline("passthrough", QDA()), target_weights=[1.0]).fit(X, y)
    assert_array_equal(model.scorer().predict_proba(X[0]), model.predict_proba(X[:1])[0])
    model = model.set_params(estimator=make_pipeline(StandardScaler(), QDA())).fit(X, y)
    refused("estimator has steps before the model, which a scorer leaves out", model.scorer)
    row = model.preprocessing_.transform(X[:1])[0]
    assert_array_equal(model.estimator_.scorer().predict_proba(row), model.predict_proba(X[:1])[0])
    model = model.set_params(estimator=QDA()).fit(X, y)  # which forgets the steps
    assert_array_equal(model.scorer().predict_proba(X[0]), model.predict_proba(X[:1])[0])


def test_json_is_strict_and_of_one_format():
    model = fitted("CategoricalNB").model
    text = model.scorer().to_json()
    assert "Infinity" not in text and "NaN" not in text
    content = json.loads(text)
    assert content["format"] == "rcpkg-scorer/1" and content["classes"] == [0, 1, 2]
    refused("format", Scorer, content | {"format": "other"})
    refused("row must have 3 features; got 2", model.scorer().predict_proba, [0, 1])
