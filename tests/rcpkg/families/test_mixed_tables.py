"""The recipe for any frame: no column of it stops a fit, in whatever container it comes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_selector

from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    GaussianNB,
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
@pytest.mark.parametrize("container", [pd.DataFrame, polars, arrow, "blocks"])
@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
def test_columns_without_values_say_nothing_and_are_named(model, container):
    X = TABLE if container == "blocks" else container(TABLE)
    with pytest.warns(UserWarning, match="feature 'void' holds missing values only, and so do 1 more") as said:
        fitted = model.fit(Rows.of(X, Y, block_size=30)) if container == "blocks" else model.fit(X, Y)
    assert all(of.filename == __file__ for of in said if "missing values only" in str(of.message))
    told = fitted.predict_proba(TABLE)
    assert_array_equal(fitted.predict_proba(TABLE.assign(void=7.0, mute="new")), told)
    few = TABLE[["size", "kind", "same", "rest"]]
    without = model.fit(Rows.of(few, Y, block_size=30)) if container == "blocks" else model.fit(few, Y)
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


@pytest.mark.parametrize("model", [GaussianNB(), CategoricalNB(prior_strength=1.0)], ids=repr)
def test_values_that_a_stream_brings_late_are_refused(model):
    X = TABLE[["size", "void"]].assign(size=np.arange(N) % 3)
    with pytest.warns(UserWarning, match="'void' holds missing values only"):
        model.partial_fit(X, Y, classes=[0, 1])
    model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="'void' held missing values only so far: begin partial_fit with rows"):
        model.partial_fit(X.assign(void=1.0), Y)


RAW = [
    "annealing",
    "audiology",
    "autos",
    "breast_cancer_wisconsin",
    "cmc",
    "contact_lenses",
    "credit_screening",
    "cylinder_bands",
    "dermatology",
    "echocardiogram",
    "german",
    "heart_cleveland",
    "heart_hungarian",
    "hepatitis",
    "horse_colic",
    "house_votes_84",
    "hypothyroid",
    "labor",
    "lung_cancer",
    "post_operative",
    "primary_tumor",
    "tae",
    "zoo",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", RAW)
def test_raw_tables(name):
    datasets = pytest.importorskip("rcbook.datasets")
    try:
        table = datasets.load(name)
    except (OSError, ValueError) as error:
        pytest.skip(str(error))
    X, y = pd.DataFrame(table.data), np.asarray(table.target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "feature .* (holds missing values only|is constant)")
        for train in (np.arange(len(y)) % 3 != 0, np.arange(len(y)) % 3 != 1):
            told = RECIPE.fit(X[train], y[train]).predict_proba(X[~train])
            assert np.isfinite(told).all()
