"""Predictions of the Gaussian classifiers for rows with gaps: marginals by quadrature."""

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from rcpkg import (
    BDA7,
    EDDA,
    RDA,
    SVMKNN,
    BayesianQDA,
    BregmanKNN,
    LocalBDA,
    LocalLinear,
    LocalNearestMeans,
    NearestMeans,
    QuadraticBayes,
)

RNG = np.random.default_rng(0)
Y = np.arange(40) % 3
X = RNG.normal(size=(40, 4)) @ RNG.normal(size=(4, 4)) + RNG.normal(size=(3, 4))[Y]
COST = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 9.0], [1.0, 1.0, 0.0]])
MODELS = [
    BayesianQDA(seed="diag_pooled", cost=COST),
    BayesianQDA(prior="noninformative"),
    BDA7(cost=COST),
    QuadraticBayes(),
    RDA(),
    EDDA(models=("EEE", "VVV")),
    NearestMeans(),
]


@pytest.fixture(params=MODELS, ids=repr, scope="module")
def model(request):
    return clone(request.param).fit(X, Y)


def completed(model, row, j):
    """Values of feature j, their weights by Gauss-Legendre quadrature of the line, and the row with each of them."""
    t, w = np.polynomial.legendre.leggauss(600)
    angle, scale = np.pi / 2 * t, 3.0
    values = X[:, j].mean() + scale * np.tan(angle)
    rows = np.repeat(row[None], len(t), axis=0)
    rows[:, j] = values
    return values, w * np.pi / 2 * scale / np.cos(angle) ** 2, rows


@pytest.mark.parametrize("others", [[], [0], [0, 3]])
def test_one_feature_more_missing_is_one_more_integral(model, others):
    row = X[5].copy()
    row[others] = np.nan
    values, weights, rows = completed(model, row, 1)
    row[1] = np.nan
    densities = np.exp(model.predict_joint_log_proba(rows))
    marginals = np.exp(model.predict_joint_log_proba(row[None]))[0]
    assert_allclose(weights @ densities, marginals, rtol=1e-7)
    mean = (weights * values) @ densities.sum(axis=1) / marginals.sum()
    filled = model.conditional_mean(row[None])[0]
    assert_allclose(filled[1], mean, rtol=1e-5)
    assert_array_equal(filled[~np.isnan(row)], row[~np.isnan(row)])
    assert_allclose(model.score_samples(row[None]), np.log(marginals.sum()), rtol=1e-12)


def gaps(rate=0.4):
    """Rows of many patterns, among them a complete one and one without any value."""
    Z = np.where(np.random.default_rng(1).random(X.shape) < rate, np.nan, X)
    Z[0], Z[1] = X[0], np.nan
    return Z


def test_rows_one_at_a_time(model):
    Z = gaps()
    assert_allclose(model.predict_proba(Z), np.vstack([model.predict_proba(row[None]) for row in Z]), rtol=1e-12)


def test_a_row_without_any_value_gets_the_class_weights(model):
    nothing = np.full((2, 4), np.nan)
    assert_allclose(model.predict_log_proba(nothing), [model.class_log_prior_] * 2, atol=1e-12)
    assert_allclose(model.score_samples(nothing), 0.0, atol=1e-12)
    weights = np.exp(model.class_log_prior_)
    assert_allclose(model.predict_proba(nothing, class_prior=[0.1, 0.2, 0.7])[0], [0.1, 0.2, 0.7], rtol=1e-12)
    means = model.means_ if isinstance(model, NearestMeans) else model.statistics_.means
    assert_allclose(model.conditional_mean(nothing)[0], weights @ means)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "conditional_mean"])
def test_infinity_and_overflow_are_refused(model, method):
    for bad, message in ((np.inf, "infinity"), (-np.inf, "infinity"), (1e200, "1e.200 in feature 2")):
        row = np.array([[np.nan, 0.0, bad, np.nan]])
        refused(message, getattr(model, method), row)


def test_training_needs_complete_rows(model):
    refused("takes when it predicts, not in training: leave such rows out", clone(model).fit, gaps(), Y)


@pytest.mark.parametrize(
    "classifier", [LocalBDA(), LocalNearestMeans(), LocalLinear(), BregmanKNN(), SVMKNN()], ids=repr
)
def test_neighbourhoods_refuse_gaps_and_say_why(classifier):
    refused(f"NaN.*{type(classifier).__name__} has no rule.*impute", classifier.fit, gaps(), Y)
    refused("choose other neighbours", classifier.fit(X, Y).predict, gaps())
