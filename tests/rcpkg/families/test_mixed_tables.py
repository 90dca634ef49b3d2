"""The recipe for any frame: no column of it stops a fit, in whatever container it comes."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import refused, slow
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import make_column_selector

from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    GaussianNB,
    Mixture,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
)
from rcpkg.rows import Rows

RNG = np.random.default_rng(0)
N = 80
Y = np.arange(N) % 2
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=N) + Y,
        "kind": np.where(Y * RNG.random(N) > 0.4, "x", "z"),
        "void": np.nan,
        "mute": pd.Series([None] * N, dtype=object),
        "same": 2.0,
        "rest": RNG.normal(size=N),
    }
)
NUMBERS = GaussianNB(prior_strength=1.0, prior_mean="grand", prior_covariance="diagonal")
RECIPE = ProductModel(
    [
        ("numbers", NUMBERS, make_column_selector(dtype_include="number")),
        ("categories", CategoricalNB(prior_strength=1.0), make_column_selector(dtype_exclude="number")),
    ]
)
LEARNERS = [RECIPE, RiskCalibration(RECIPE), RiskCalibrationCV(RECIPE, cv=3, target_weights=[1.0, 3.0, 10.0])]


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.filterwarnings("ignore:target_weight_|safe steps")
@pytest.mark.parametrize(
    ("model", "container"),
    # what is calibrated is given the columns that the closed form is given
    [
        pytest.param(model, kind, marks=[pytest.mark.slow] * (model is not RECIPE and kind is not pd.DataFrame))
        for model, kind in product(LEARNERS, [pd.DataFrame, polars, arrow, "blocks"])
    ],
)
def test_columns_without_values_say_nothing_and_are_named(model, container):
    X = TABLE if container == "blocks" else container(TABLE)
    with pytest.warns(UserWarning, match="feature 'void' holds missing values only, and so do 1 more") as said:
        fitted = model.fit(Rows.from_arrays(X, Y, block_size=30)) if container == "blocks" else model.fit(X, Y)
    assert all(of.filename == __file__ for of in said if "missing values only" in str(of.message))
    told = fitted.predict_proba(TABLE)
    assert_array_equal(fitted.predict_proba(TABLE.assign(void=7.0, mute="new")), told)
    few = TABLE[["size", "kind", "same", "rest"]]
    without = model.fit(Rows.from_arrays(few, Y, block_size=30)) if container == "blocks" else model.fit(few, Y)
    # with gaps calibration makes safe steps, and Newton's without
    assert_allclose(without.predict_proba(few), told, atol=1e-9 if model is RECIPE else 1e-3)


@pytest.mark.parametrize("columns", [["size", "rest"], ["kind"], ["size", "same"]])
@pytest.mark.parametrize("model", LEARNERS[:2], ids=lambda model: type(model).__name__)
def test_blocks_without_columns_are_skipped(model, columns):
    told = model.fit(TABLE[columns], Y).predict_proba(TABLE[columns])
    kinds = {"kind": CategoricalNB(prior_strength=1.0)}
    blocks = [(name, kinds.get(name, NUMBERS), [name]) for name in columns if name != "same"]
    alone = ProductModel(blocks)
    alone = alone if model is RECIPE else RiskCalibration(alone)
    assert_allclose(alone.fit(TABLE[columns], Y).predict_proba(TABLE[columns]), told, atol=1e-5)


@pytest.mark.parametrize("names", [[2, 1, 0], [7, 5, 2], [("a", 1), ("a", 2), ("b", 1)]])
def test_selectors_choose_columns_whose_names_are_no_strings(names):
    """What they return are names, also where these are integers and might be places."""
    some = TABLE[["kind", "size", "rest"]]
    found = RECIPE.fit(some.set_axis(names, axis=1), Y)
    assert_array_equal(np.concatenate(found.columns_), [1, 2, 0])
    told = found.predict_proba(some.set_axis(names, axis=1))
    assert_array_equal(told, RECIPE.fit(some, Y).predict_proba(some))


@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind", [GaussianNB, QDA, LDA, SharedVarianceGaussianNB, CategoricalNB, TAN], ids=lambda kind: kind.__name__
)
def test_every_model_takes_a_column_without_values(kind, strength):
    codes = issubclass(kind, CategoricalNB | TAN)
    X = TABLE[["kind", "mute"] if codes else ["size", "rest", "void"]]
    with pytest.warns(UserWarning, match="holds missing values only: it says nothing"):
        model = kind(prior_strength=strength).fit(X, Y)
    if not codes:
        without = kind(prior_strength=strength).fit(X[["size", "rest"]], Y)
        assert_allclose(model.predict_proba(X), without.predict_proba(X[["size", "rest"]]), atol=1e-12)
        filled = model.conditional_mean(X.assign(size=np.nan))
        assert np.isnan(filled[:, 2]).all() and np.isfinite(filled[:, :2]).all()
    else:
        without = CategoricalNB(prior_strength=strength).fit(X[["kind"]], Y)
        assert_allclose(model.predict_proba(X), without.predict_proba(X[["kind"]]), atol=1e-12)


SILENT = {
    "constant": lambda v: np.full(N, 3.0),
    "empty": lambda v: np.full(N, np.nan),
    "of one class": lambda v: np.where(Y == 0, v, np.nan),
    "constant, of one class": lambda v: np.where(Y == 0, 3.0, np.nan),
}
KINDS = {**SILENT, "told": lambda v: v + Y, "gaps": lambda v: np.where(np.arange(N) % 3 == 0, np.nan, v)}
COLUMN = st.sampled_from([*KINDS])


@pytest.mark.parametrize("wrap", [clone, partial(RiskCalibration, max_iter=30)], ids=["closed form", "calibrated"])
@pytest.mark.parametrize("strength", [0.0, pytest.param(1e-3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [QDA, SharedVarianceGaussianNB, *slow(GaussianNB, LDA)])
@settings(max_examples=4, deadline=None)
@given(kinds=st.lists(COLUMN, min_size=1, max_size=3), codes=st.lists(COLUMN, max_size=2), seed=st.integers(0, 9))
def test_columns_that_say_nothing_stop_no_fit(kind, strength, wrap, kinds, codes, seed):
    """Whatever its columns lack: within a fold, a class, or altogether; calibration is silent about warnings here."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{j}": KINDS[name](rng.normal(size=N)) for j, name in enumerate(kinds)})
    for j, name in enumerate(codes):
        X[f"c{j}"] = np.abs(np.round(KINDS[name](rng.normal(size=N))))
    numbers, rest = [[c for c in X if c[0] == start] for start in "xc"]
    blocks = [("numbers", kind(prior_strength=strength), numbers), ("rest", CategoricalNB(prior_strength=1.0), rest)]
    with warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", RuntimeWarning)
        told = wrap(ProductModel(blocks)).fit(X, Y).predict_proba(X)
    assert_allclose(told.sum(axis=1), 1.0)
    if {*kinds, *codes} <= {"constant", "empty"}:
        assert_allclose(told, 0.5, atol=1e-6)


@pytest.mark.parametrize("kind", [GaussianNB, QDA, LDA, SharedVarianceGaussianNB], ids=lambda kind: kind.__name__)
def test_a_feature_without_values_in_a_class_says_there_what_it_says_of_all(kind):
    y, X = np.repeat([0, 1, 2], 60), np.random.default_rng(1).normal(50.0, 5.0, size=(180, 2))
    X[y == 0, 0] += 10
    X[y == 2, 0] = np.nan
    with pytest.warns(UserWarning, match="feature 0 has no values within class 2: there it is taken to be distributed"):
        model, stronger = kind().fit(X, y), kind(prior_strength=1e-9).fit(X, y)
    told = model.predict_joint_log_proba([[57.0, np.nan]])[0, 2]
    rest = X[y != 2, 0]
    variance = np.var(rest) if kind in (QDA, GaussianNB) else np.diag(np.atleast_2d(model.parameters_.covariance))[0]
    if kind is SharedVarianceGaussianNB:
        variance = model.parameters_.covariance[0]
    assert_allclose(told, np.log(1 / 3) + norm.logpdf(57.0, rest.mean(), np.sqrt(variance)), rtol=1e-6)
    assert_allclose(stronger.predict_proba(X), model.predict_proba(X), atol=1e-5)  # continuous in the prior


@pytest.mark.parametrize("kind", [GaussianNB, QDA, LDA, SharedVarianceGaussianNB], ids=lambda kind: kind.__name__)
def test_a_table_in_which_no_number_varies_has_the_class_frequencies(kind):
    y, X = np.repeat([0, 1], [20, 60]), np.ones((80, 2))
    with pytest.warns(UserWarning, match="no feature varies or tells classes apart"):
        model, stream = kind().fit(X, y), kind().partial_fit(X[::2], y[::2], classes=[0, 1])
    assert_allclose(model.predict_proba(X[:1] + 5.0), [[0.25, 0.75]])
    assert_allclose(stream.predict_proba(X[:1]), [[0.25, 0.75]])
    X[1::2] += np.random.default_rng(0).normal(size=(40, 2))
    assert_allclose(stream.partial_fit(X[1::2], y[1::2]).predict_proba(X), kind().fit(X, y).predict_proba(X), atol=1e-9)


def test_counts_of_words_in_sparse_rows_of_unequal_lengths_are_calibrated_as_dense_ones():
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    X = rng.poisson(rng.gamma(1.0, size=(3, 8))[y]).astype(float)
    dense, sparse = (RiskCalibration(MultinomialNB(prior_strength=1.0)).fit(rows, y) for rows in (X, csr_array(X)))
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("model", [GaussianNB(), CategoricalNB(prior_strength=1.0)], ids=repr)
def test_values_that_a_stream_brings_late_are_refused(model):
    X = TABLE[["size", "void"]].assign(size=np.arange(N) % 3)
    with pytest.warns(UserWarning, match="'void' holds missing values only"):
        model.partial_fit(X, Y, classes=[0, 1])
    model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="'void' held missing values only so far: begin partial_fit with rows"):
        model.partial_fit(X.assign(void=1.0), Y)


@pytest.mark.parametrize("wrap", [clone, RiskCalibration, lambda model: Mixture(model, n_components=2)])
def test_columns_of_an_array_are_named_by_their_numbers_in_it(wrap):
    X, y = np.column_stack([np.arange(24) % 5, np.arange(24) % 3 + 0.5]), np.arange(24) % 2
    model = wrap(ProductModel([("sizes", GaussianNB(), [0]), ("codes", CategoricalNB(), [1])]))
    refused("Values that are not integers: feature 1;", model.fit, X, y)
    refused("Values that are not integers: feature 1;", model.fit(np.floor(X), y).predict, X)
