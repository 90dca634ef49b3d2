"""Rows with gaps: marginal and conditional Gaussians, pattern by pattern."""

from itertools import count

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from rcpkg import (
    LDA,
    QDA,
    ConditionalLikelihood,
    GaussianNB,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
)
from rcpkg.calibration import Newton
from rcpkg.families import GaussianParameters, em
from rcpkg.gaps import patterns
from rcpkg.rows import Rows


@pytest.mark.parametrize("largest", [1, 50, 2**19])
def test_patterns_hold_each_row_once_with_what_it_has(largest):
    missing = np.random.default_rng(0).random((60, 11)) < 0.4
    missing[0] = True
    rows = []
    for block in patterns(missing, largest):
        for seen, group in zip(block.seen, block.groups):
            rows.extend(block.rows[group])
            assert (missing[block.rows[group]] == ~seen).all()
    assert_array_equal(np.sort(rows), np.arange(len(missing)))
    assert patterns(missing[:0]) == []


def pattern_rows(seed=0):
    """Rows of iris with gaps, among them complete ones and one of gaps only, and the labels."""
    X, y = load_iris(return_X_y=True)
    gaps = np.where(np.random.default_rng(seed).random(X.shape) < 0.4, np.nan, X)
    gaps[0] = np.nan
    return X, gaps, y


MODELS = [QDA(), LDA(), GaussianNB(), SharedVarianceGaussianNB(), LDA(prior_strength=3.0, prior_mean="grand")]
CALIBRATED = [
    *(RiskCalibration(QDA(), target=target) for target in ("pooled", "generative", "grand")),
    RiskCalibration(QDA(), target_weight=0.0, max_iter=5, tol=0.0),
    RiskCalibration.as_published(GaussianNB()),
    RiskCalibration(SharedVarianceGaussianNB()),
    ConditionalLikelihood(LDA(), target_weight=1.0),
    RiskCalibrationCV(QDA(), target_weights=[1.0, 3.0]),
]


@pytest.fixture(params=MODELS + CALIBRATED, ids=repr, scope="module")
def fitted(request):
    X, gaps, y = pattern_rows()
    return request.param.fit(X, y), gaps[::3]


def covariances(model):
    """Of each class, as matrices, whatever their form."""
    own, r = getattr(model, "estimator_", model).covariances_, len(model.classes_)
    full = isinstance(getattr(model, "estimator_", model), QDA | LDA)
    own = own if own.ndim == 2 + full else np.broadcast_to(own, (r, *own.shape))
    return own if full else own[:, :, None] * np.eye(own.shape[-1])


def test_densities_are_those_of_the_features_that_a_row_has(fitted):
    model, X = fitted
    joint, covariance = model.predict_joint_log_proba(X), covariances(model)
    means = getattr(model, "estimator_", model).means_
    for x, values in zip(X, joint):
        o = ~np.isnan(x)
        known = model.class_log_prior_.copy()
        if o.any():
            known += [multivariate_normal(m[o], S[np.ix_(o, o)]).logpdf(x[o]) for m, S in zip(means, covariance)]
        assert_allclose(values, known, rtol=1e-8, atol=1e-8)
    assert_allclose(model.score_samples(X), logsumexp(joint, axis=1), atol=1e-10)
    assert_allclose(model.predict_log_proba(X[:1])[0], model.class_log_prior_, atol=1e-10)


def test_predictions_of_different_patterns_are_coherent(fitted):
    """E[p(y | x_S, x_j) | x_S] = p(y | x_S), E[E[x | x_S, x_j] | x_S] = E[x | x_S], and p(x_S, x_j) integrates to
    p(x_S): by the trapezium rule over x_j."""
    model, _ = fitted
    row = np.array([[5.8, np.nan, np.nan, 1.6]])
    grid = np.linspace(-15.0, 25.0, 4001)
    filled = np.repeat(row, len(grid), axis=0)
    filled[:, 1] = grid
    weight = np.exp(model.score_samples(filled) - model.score_samples(row)) * (grid[1] - grid[0])
    assert_allclose(weight.sum(), 1.0, rtol=1e-9)
    assert_allclose(weight @ model.predict_proba(filled), model.predict_proba(row)[0], rtol=1e-7, atol=1e-10)
    assert_allclose(weight @ model.conditional_mean(filled), model.conditional_mean(row)[0], rtol=1e-9)


def test_a_feature_that_does_not_vary_may_be_missing():
    X, gaps, y = pattern_rows()
    model = QDA().fit(np.c_[X, np.full(len(X), 7.0)], y)
    plain, constant = QDA().fit(X, y), np.where(np.arange(len(X)) % 2, np.nan, 7.0)
    rows = np.c_[gaps, constant]
    assert_allclose(model.predict_joint_log_proba(rows), plain.predict_joint_log_proba(gaps), rtol=1e-9)
    assert_allclose(model.conditional_mean(rows)[:, 4], 7.0)


TRAINED = [QDA(), LDA(), GaussianNB(), SharedVarianceGaussianNB()]
PRIORS = {"prior_strength": 4.0, "prior_mean": "grand", "prior_covariance": "pooled"}


def log_likelihood(model, parameters, X, y):
    return model.log_joint(X, parameters)[np.arange(len(y)), y].sum()


def em_steps(family, block, parameters):
    """Statistics and parameters of EM, step by step; the first decides on the prior."""
    for step in count():
        statistics = em.expected(family, parameters, block)
        decided = family.fix_prior(statistics, block.n) if step == 0 else None
        parameters = decided or family.parameters(statistics)
        yield statistics, parameters


@pytest.mark.parametrize("model", TRAINED, ids=repr)
def test_training_with_gaps_ends_where_the_likelihood_of_what_is_seen_is_stationary(model):
    """Small moves of the means and of the covariances, of their form, gain nothing to first order."""
    _, X, y = pattern_rows()
    model, rng = clone(model).fit(X, y), np.random.default_rng(1)
    form, (log_prior, mean, S, _) = model.family_.shape, model.parameters_

    def at(t, shift, stretch):
        moved = S + t * (stretch * S if form.independent else stretch @ S + S @ stretch.T)
        whitener = form.whitener(moved, form.diagonal(moved))
        return log_likelihood(model, GaussianParameters(log_prior, mean + t * shift, moved, whitener), X, y)

    d = X.shape[1]
    for _ in range(4):
        move = rng.standard_normal(mean.shape), rng.standard_normal(d if form.independent else (d, d))
        slope = (at(1e-4, *move) - at(-1e-4, *move)) / 2e-4
        curvature = (at(1e-4, *move) + at(-1e-4, *move) - 2 * at(0.0, *move)) / 1e-8
        assert curvature < 0 and abs(slope) < 1e-4 * -curvature


def test_em_finds_the_closed_form_of_a_monotone_pattern():
    """One feature always seen, the other not always: N(x_1) of all rows, the regression of x_2 on x_1 of the complete
    ones (Anderson, 1957)."""
    X, _, y = pattern_rows()
    X = X[:, :2].copy()
    X[::3, 1] = np.nan
    model = QDA(rows_per_feature=0.0).fit(X, y)
    for c in range(3):
        a, b = X[y == c].T
        there = ~np.isnan(b)
        slope, level = np.polyfit(a[there], b[there], 1)
        noise = np.mean((b[there] - level - slope * a[there]) ** 2)
        assert_allclose(model.means_[c], [a.mean(), level + slope * a.mean()], rtol=1e-6)
        known = a.var() * np.array([[1, slope], [slope, slope**2]]) + [[0, 0], [0, noise]]
        assert_allclose(model.covariances_[c], known, rtol=1e-5)


@pytest.mark.parametrize("model", [clone(m).set_params(**p) for m in TRAINED[:2] for p in ({}, PRIORS)], ids=repr)
def test_rows_with_gaps_count_by_their_weights(model):
    _, X, y = pattern_rows()
    w = np.random.default_rng(2).integers(1, 4, size=len(y))
    weighted, repeated = clone(model).fit(X, y, w), clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)


def test_few_rows_with_gaps_have_a_ridge_as_complete_ones_have():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = QDA().fit(X[:60], y[:60])
    assert model.family_.has_prior and model.score(X[60:], y[60:]) > 0.85


@pytest.mark.parametrize("model", TRAINED, ids=repr)
def test_what_training_with_gaps_cannot_do_is_refused(model):
    X, gaps, y = pattern_rows()
    gaps[:, 2] = np.nan
    refused("feature 2 holds missing values only", clone(model).set_params(singular_ridge=0.0).fit, gaps, y)
    gaps[y == 1, 2] = X[y == 1, 2]
    refused("feature 2 has no values within class 0", clone(model).set_params(singular_ridge=0.0).fit, gaps, y)
    gaps = pattern_rows()[1]
    for learner in ConditionalLikelihood(model), RiskCalibration(model, step=Newton()):
        refused("holds missing values .NaN.: each row then has a marginal", learner.fit, gaps, y)
    if isinstance(model, QDA | LDA):
        with pytest.raises(ValueError, match="further portions of rows do not take"):
            clone(model).partial_fit(X, y, classes=[0, 1, 2]).partial_fit(gaps, y)


def test_em_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(em, "MOST_STEPS", 3)
    _, X, y = pattern_rows()
    X[5:, 0] = np.where(np.isnan(X[5:, 2]), X[5:, 0], np.nan)
    n, few = np.count_nonzero(~np.isnan(X[:, 0] + X[:, 2])), "as {} rows have values of both feature 0 and feature 2"
    with pytest.warns(ConvergenceWarning, match=f"EM has not converged after 3 steps.*, {few.format(n)}"):
        QDA().fit(X, y)
    rows = Rows.from_arrays(X, y, block_size=len(y) // 2)
    with pytest.warns(ConvergenceWarning, match=few.format(n)):
        QDA().fit(rows)
    seen = np.arange(len(X)) % 3 == 0  # in rows in which columns 0 and 1 have values, and never one of them alone
    X[:, :2] = np.where(seen[:, None], np.nan_to_num(X[:, :2]), np.nan)
    X[:, 2:] = 1.0
    with pytest.warns(ConvergenceWarning, match="as 50 rows have values of both feature 0 and feature 1"):
        QDA().fit(X, y)
    monkeypatch.setattr(em, "MOST_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="too much is missing for so many parameters. Set"):
        QDA().fit(X[:, :1], y)


@pytest.mark.parametrize("model", [QDA(rows_per_feature=0.0), LDA(), QDA(prior_strength=1.0)], ids=repr)
def test_shortcuts_of_em_end_where_its_steps_do_and_sooner(model, caplog):
    X = np.random.default_rng(0).standard_normal((240, 4)) @ np.triu(np.ones((4, 4)))
    y, X[np.random.default_rng(1).uniform(size=X.shape) < 0.5] = np.arange(240) % 2, np.nan
    with caplog.at_level("DEBUG", "rcpkg"):
        fitted = clone(model).fit(X, y)
    (block,) = model._training_rows(X, y, None)
    places = []
    start = GaussianNB().fit(X, y).parameters_._replace(covariance=np.tile(np.eye(4), (2, 1, 1)))
    for s, theta in em_steps(model.family_, block, start):
        places.append(em.place(model.family_, s, theta))
        if len(places) > 1 and em.length(places[-1] - places[-2]) <= em.EM_TOL * len(y):
            break
    assert_allclose(fitted.parameters_.covariance, theta.covariance, rtol=1e-3, atol=1e-4)
    assert 1 < len(caplog.records) < len(places) / 2
