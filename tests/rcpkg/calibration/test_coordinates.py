"""Features, coordinates and solvers of conditional likelihood: against brute force, scikit-learn, and one another."""

import re

import numpy as np
import pytest
from model_cases import COUNTS, GAUSSIAN, ML, categorical_rows, fitted, gaussian_rows, of_each_family, refused, rows_for
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.utils.metaestimators import available_if

from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    InvalidStatistics,
    MultinomialNB,
    SharedVarianceGaussianNB,
)
from rcpkg.base import log_posterior
from rcpkg.calibration.conditional import Conditional
from rcpkg.calibration.features import Features, linear_scores
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.calibration.objective import Objective
from rcpkg.capabilities import can

KINDS = ("plain", "natural", "conditioned")


def features_of(name, kind="natural", seed=0):
    """Fitted model, its features and the coefficients of its η."""
    model, X, y, Y = fitted(name, seed)
    encoded = model.family_.encode(X)
    pooled = model.family_.pooled_parameters(model.statistics(encoded, Y))[0]
    features = Features(model.family_.feature_map(encoded, kind, pooled=pooled))
    return model, X, y, features, model.family_.natural_parameters(model.parameters_)


# --- features ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ML)
def test_scores_are_linear_in_the_features(name, kind):
    """⟨η, s(x, y)⟩ = B_y · φ(x), up to what the classes share; and B(η(B)) = B."""
    model, X, _, features, natural = features_of(name, kind)
    B = np.random.default_rng(0).standard_normal((len(model.classes_), features.width))
    eta = features.natural(B, natural)
    assert np.allclose(features.coefficients(eta), B, rtol=0, atol=1e-9)
    for of_scores, coefficients, atol in (natural, features.coefficients(natural), 1e-9), (eta, B, 1e-8):
        difference = (coefficients @ features.dense(slice(None))).T - model.family_.scores(X, of_scores)
        assert np.ptp(difference, axis=1).max() < atol


@pytest.mark.parametrize("name", ML)
def test_features_in_blocks_are_those_of_the_cache(name, monkeypatch):
    monkeypatch.setattr("rcpkg.calibration.features.IN_CACHE", 16)
    cached = features_of(name)[3]
    monkeypatch.setattr("rcpkg.calibration.features.MOST_KEPT", 0)
    formed = features_of(name)[3]
    assert cached.cached is not None and formed.cached is None
    B = np.random.default_rng(0).normal(size=(3, cached.width))
    for (rows, one), (same, other) in zip(cached.blocks(), formed.blocks(), strict=True):
        assert rows == same and rows.stop - rows.start <= 16
        assert np.array_equal(linear_scores(B, one), linear_scores(B, other))


def test_plain_features_are_those_of_scikit_learn():
    X, _ = gaussian_rows()
    features = features_of("QDA", "plain")[3].dense(slice(None))
    theirs = PolynomialFeatures(2).fit_transform(X)
    assert np.allclose(features.T, theirs, rtol=0, atol=1e-12)
    X, _ = categorical_rows()
    features = features_of("CategoricalNB", "plain")[3].dense(slice(None))
    assert np.array_equal(features[1:].T, OneHotEncoder(sparse_output=False).fit_transform(X))


def test_sparse_features_have_the_objective_of_dense_ones():
    """Many states of many rows make the products sparse."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 40, size=(2000, 3)).astype(float), np.arange(2000) % 3
    model = CategoricalNB(prior_strength=1.0).fit(X, y)
    encoded = model.family_.encode(X)
    features = Features(model.family_.feature_map(encoded, "conditioned"))
    B = rng.standard_normal((3, features.width))
    objective = LogisticObjective(features, y, 3, None, 0.3)
    block = next(features.blocks())[1]
    assert isinstance(block, csr_array)
    scores = (B @ features.dense(slice(None))).T
    P = np.exp(log_posterior(scores, np.zeros(3)))
    found = objective(objective.contrasts(B))
    expected = ((P - np.eye(3)[y]).T @ features.dense(slice(None)).T)[1:] / 2000
    assert found.losses.log_loss == pytest.approx(-np.log(P[np.arange(2000), y]).mean(), rel=1e-12)
    assert np.allclose(found.gradient - objective.penalty(objective.contrasts(B))[1], expected, rtol=0, atol=1e-14)


# --- the objective ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CategoricalNB", "QDA"])
def test_diagonal_of_the_hessian(name):
    _, _, y, features, natural = features_of(name)
    objective = LogisticObjective(features, y, 3, 0.5 + np.arange(len(y)) % 3, 1.5, 3)
    B = features.coefficients(natural)
    h = objective.diagonal(B)
    for index in [(0, 0), (1, 2), (2, 4)]:
        e = np.zeros_like(B)
        e[index] = 1e-5
        change = objective(B + e).gradient[index] - objective(B - e).gradient[index]
        assert h[index] == pytest.approx(change / 2e-5, rel=1e-5)


# --- one optimum in all coordinates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [2, 3])
def test_many_rows_begin_on_a_sample(r):
    """The sample shortens the way, and the optimum is that of all rows, a class of few rows included."""
    X, y = gaussian_rows(n=6000, d=2, r=r)
    keep = (y > 0) | (np.arange(6000) % 40 < 3)
    X, y = X[keep], y[keep]
    best = ConditionalLikelihood(QDA(), tol=1e-9).fit(X, y)
    slow = ConditionalLikelihood(QDA(), solver="lbfgs").fit(X, y)
    assert best.converged_ and best.objective_ == pytest.approx(slow.objective_, abs=1e-8)
    assert best.n_iter_ < slow.n_iter_


@pytest.mark.parametrize("b", [0.0, 0.3])
@pytest.mark.parametrize("name", ["QDA", "LDA", "CategoricalNB"])
def test_what_stands_for_a_hessian_leads_to_the_same_optimum(name, b, monkeypatch):
    """Blocks of the classes, or a diagonal, by L-BFGS and conjugate gradients, where H is too large."""
    X, y = rows_for(name)
    best = ConditionalLikelihood(ML[name], target_weight=b, tol=1e-8).fit(X, y)
    monkeypatch.setattr("rcpkg.calibration.conditional.MOST_PARAMETERS", 1)
    ways = [{"SPEEDUP": 1e9}, {"SPEEDUP": 0.1}, *[{"MOST_KEPT": 1}][: b == 0]]
    for way in ways:
        with monkeypatch.context() as patch:
            for constant, value in way.items():
                patch.setattr(f"rcpkg.calibration.conditional.{constant}", value)
            other = ConditionalLikelihood(ML[name], target_weight=b, tol=1e-8).fit(X, y)
        assert other.converged_ and other.objective_ == pytest.approx(best.objective_, abs=1e-10)
        assert np.allclose(other.predict_proba(X), best.predict_proba(X), rtol=0, atol=1e-5)


# --- wanbia2014's change of variables -------------------------------------------------------------------------------


def test_a_coordinate_whose_closed_form_is_zero_does_not_move():
    """A feature with one state has log θ = 0: 0 · w = 0."""
    X, y = rows_for("CategoricalNB")
    ours = ConditionalLikelihood(CategoricalNB(), coordinates="closed_form").fit(np.c_[X, np.zeros(len(y))], y)
    assert ours.objective_ == pytest.approx(ConditionalLikelihood(CategoricalNB()).fit(X, y).objective_, abs=1e-8)


def test_zero_probabilities_are_refused_as_units():
    X, y = rows_for("CategoricalNB")
    X[:, 2] = np.where((X[:, 2] == 4) & (y == 0), 0, X[:, 2])
    with pytest.raises(InvalidStatistics, match=r"probability zero in the closed form.*prior_strength > 0"):
        ConditionalLikelihood(CategoricalNB(), coordinates="closed_form").fit(X, y)
    smoothed = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), coordinates="closed_form", max_iter=3)
    with pytest.warns(ConvergenceWarning):
        smoothed.fit(X, y)


# --- scikit-learn's penalty ------------------------------------------------------------------------------------------

PENALISED = {
    "QDA": (QDA(), PolynomialFeatures(2, include_bias=False).fit_transform),
    "GaussianNB": (GaussianNB(), lambda X: np.hstack([X, X**2])),
    "LDA": (LDA(), lambda X: X),
    "SharedVarianceGaussianNB": (SharedVarianceGaussianNB(), lambda X: X),
    "CategoricalNB": (CategoricalNB(), OneHotEncoder(sparse_output=False).fit_transform),
    "BernoulliNB": (BernoulliNB(), lambda X: (X > 0).astype(float)),
    "MultinomialNB": (MultinomialNB(), lambda X: X),
}


@pytest.mark.parametrize("coordinates", ["whitened", "natural", "curvature"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", of_each_family(*PENALISED))
def test_l2_is_the_penalty_of_logistic_regression(name, classes, coordinates):
    """Same objective and same optimum as ``LogisticRegression(C=1/l2)`` on the same features."""
    model, features = PENALISED[name]
    X, y = rows_for(name)
    X, y = X[y < classes], y[y < classes]
    if name == "LDA":
        X = X + 2.0  # the features are those of X as given
    Z, l2 = features(X), 0.7
    theirs = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=5000, solver="newton-cg").fit(Z, y)
    value = -theirs.predict_log_proba(Z)[np.arange(len(y)), y].mean() + l2 * np.sum(theirs.coef_**2) / (2 * len(y))
    ours = ConditionalLikelihood(model, l2=l2, coordinates=coordinates, max_iter=5000).fit(X, y)
    assert ours.converged_ and ours.objective_ == pytest.approx(value, abs=1e-9)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(Z), rtol=0, atol=2e-5)


# --- refusals ---------------------------------------------------------------------------------------------------------


class OtherFamily(type(CategoricalNB()._new_family())):
    """Scores that no features are known for."""

    feature_map = available_if(lambda self: False)(type(CategoricalNB()._new_family()).feature_map)


class OtherScores(CategoricalNB, family=OtherFamily):
    """Its classifier."""


def test_a_model_without_features_has_safe_steps():
    X, y = rows_for("CategoricalNB")
    assert not can(OtherScores(), "l2") and all(can(model, "l2") for model in (*GAUSSIAN.values(), *COUNTS.values()))
    ours = ConditionalLikelihood(OtherScores(), tol=1e-6).fit(X, y)
    same = ConditionalLikelihood(CategoricalNB(), tol=1e-6).fit(X, y)
    assert ours.joint_model_ == "search" and same.joint_model_ == "most probable"
    assert np.allclose(ours.predict_proba(X), same.predict_proba(X), rtol=0, atol=1e-4)
    refused("needs feature_map", ConditionalLikelihood(OtherScores(), l2=1.0).fit, X, y)


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_many_rows_of_many_coefficients_have_a_curvature_of_some_rows_by_class(l2, monkeypatch):
    """A sample of the rows for blocks of the classes: 60,000 rows of twenty classes once ended in an AttributeError."""
    rng = np.random.RandomState(0)
    y = np.arange(3000) % 3
    X = (rng.randint(4, size=(3000, 2)) + (y[:, None] > [0, 1])).clip(0, 3).astype(float)
    expected = ConditionalLikelihood(CategoricalNB(), l2=l2).fit(X, y)
    monkeypatch.setattr("rcpkg.calibration.conditional.MOST_PARAMETERS", 5)
    F = Conditional(Objective.from_estimator(CategoricalNB(), X, y), l2)
    assert not F.dense and F.part.rows < F.rows
    found = ConditionalLikelihood(CategoricalNB(), l2=l2).fit(X, y)
    assert found.converged_ and expected.converged_
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-6)


def test_the_distance_that_a_search_is_short_of_is_told_by_the_hessian():
    """Features far from zero, in the natural coordinates: what L-BFGS holds for the curvature is far from it."""
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + 0.5 * y[:, None] + 1e4
    with pytest.warns(ConvergenceWarning, match="5 iterations") as caught:
        short = ConditionalLikelihood(QDA(), coordinates="natural", max_iter=5).fit(X, y)
    told = float(re.search(r"about (\S+) from the optimum", str(caught[0].message)).group(1))
    lacking = short.objective_ - ConditionalLikelihood(QDA(), solver="newton").fit(X, y).objective_
    assert told == pytest.approx(np.sqrt(2 * lacking), rel=0.05)
