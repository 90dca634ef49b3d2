"""The test whether calibration has anything to gain: its statistic, its degrees of freedom, its p value."""

import numpy as np
import pytest
from model_cases import ML, fitted, gaussian_rows, rows_for
from numpy.testing import assert_allclose
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.datasets import load_iris

from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    InvalidStatistics,
    MultinomialNB,
    RiskCalibration,
    calibration_test,
)
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.score_test import score_statistic
from rcpkg.families import one_hot

each_model = pytest.mark.parametrize("name", ML)


def test_a_table_with_named_columns_is_tested_without_a_word():
    """Samples drawn for the bootstrap have no names."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    named, plain = (calibration_test(LDA(), rows[50:], y[50:], n_bootstrap=9, random_state=0) for rows in (X, X.values))
    assert named == plain


@each_model
def test_covariance_of_the_first_update_is_that_of_the_theory(name):
    """On 4,000 rows drawn from the model Σ u uᵀ / n is C − C I⁻¹ C, within the error of a sample; T by brute force."""
    model = fitted(name).model
    X, y = model.sample(4000, 0)
    model = clone(ML[name]).fit(X, y)
    y, Y = np.searchsorted(model.classes_, y), one_hot(y, len(model.classes_))
    encoded, P, weight = model.encode(X), model.predict_proba(X), np.ones(len(y))
    form = MinimalForm(model, encoded, model.statistics_)
    found, dof = score_statistic(form, model.parameters_, P, y, weight)
    K, r, n = form.width, form.r, len(y)
    s = np.array([np.hstack([*(form.features * (c == k) for k in range(r)), form.shared_features]) for c in range(r)])
    own = s[y, np.arange(n)]
    C, inverse = form.conditional_curvature(P, weight) / n, np.linalg.pinv(form.information(model.parameters_))
    u = own - np.einsum("iy,yip->ip", P, s) - (own - form.mean(model.parameters_)) @ inverse @ C
    g, covariance = form.sums(model.statistics(encoded, Y - P)), u.T @ u
    assert_allclose(u.sum(axis=0), g, atol=1e-6 * n)
    assert_allclose(found, g @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ g, rtol=1e-4)
    assert dof == (r - 1) * K
    theory = C - C @ inverse @ C
    scale = np.sqrt(C.diagonal()[: r * K])
    gap = (covariance / n - theory)[: r * K, : r * K] / np.outer(scale, scale)
    assert np.abs(gap).max() < 0.15


def test_statistic_has_its_distribution_in_large_samples():
    """Mean and 95 % point of 400 draws from an LDA of 2,000 rows, within four standard errors of those of χ²."""
    X, y = gaussian_rows(n=300, d=2, r=2)
    model = LDA().fit(X, y)
    drawn = [calibration_test(LDA(), *model.sample(2000, seed), n_bootstrap=0) for seed in range(400)]
    statistics, dof = np.array([test.statistic for test in drawn]), drawn[0].dof
    assert dof == 3
    assert abs(statistics.mean() - dof) < 4 * np.sqrt(2 * dof / 400)
    assert abs(np.mean(statistics > chi2.ppf(0.95, dof)) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)


def test_p_value_of_the_bootstrap_is_a_rank_among_samples():
    X, y = load_iris(return_X_y=True)
    first, again = (calibration_test(LDA(), X[:, :2], y, n_bootstrap=19, random_state=1) for _ in range(2))
    assert first == again
    assert (first.p_value * 20) == pytest.approx(round(first.p_value * 20)) and 1 / 20 <= first.p_value <= 1


def test_departures_that_matter_are_found_and_others_are_not():
    """A wrong marginal of x which leaves the posterior as it is moves nothing; labels that depend otherwise do."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 3)).astype(float)
    agree = X[:, 0] == X[:, 1]
    copied = np.column_stack([X[:, 0], X[:, 0], X[:, 2]])  # naive Bayes counts a feature twice
    label = (rng.uniform(size=2000) < 0.2 + 0.6 * X[:, 0]).astype(int)
    assert calibration_test(BernoulliNB(), X, label, n_bootstrap=49, random_state=0).p_value > 0.05
    assert calibration_test(BernoulliNB(), copied, label, n_bootstrap=49, random_state=0).p_value == 1 / 50
    joint = (rng.uniform(size=2000) < 0.2 + 0.6 * agree).astype(int)  # seen by no single feature
    assert calibration_test(BernoulliNB(), X, joint, n_bootstrap=49, random_state=0).p_value > 0.05


def test_saturated_model_has_nothing_to_gain():
    X = np.repeat([[0], [1], [2]], [30, 20, 40], axis=0)
    y = np.arange(90) % 7 < 3
    found = calibration_test(CategoricalNB(), X, y, n_bootstrap=0)
    assert found == (pytest.approx(0, abs=1e-9), 0, 1.0)


@pytest.mark.parametrize("name", ["LDA", "CategoricalNB", "ProductModel"])
def test_whole_weights_are_repetitions(name):
    _, X, y, _ = fitted(name)
    twice = np.arange(len(y)) % 2 == 0
    weighted = calibration_test(ML[name], X, y, sample_weight=1.0 + twice, n_bootstrap=0)
    repeated = calibration_test(ML[name], np.vstack([X, X[twice]]), np.append(y, y[twice]), n_bootstrap=0)
    assert_allclose(weighted, repeated, rtol=1e-6)
    few = slice(0, 45)  # fewer than four for each degree of freedom, until they count five times
    five, repeated, options = np.full(45, 5.0), np.repeat(np.arange(45), 5), {"n_bootstrap": 9, "random_state": 0}
    weighted = calibration_test(ML[name], X[few], y[few], sample_weight=five, **options)
    assert_allclose(weighted, calibration_test(ML[name], X[repeated], y[repeated], **options), rtol=1e-6)


def test_statistic_does_not_depend_on_units_or_origin():
    X, y = gaussian_rows(n=150)
    moved = X * [1e3, 1e-3, 1.0] + [1e4, 0.0, -5.0]
    for model in QDA(), LDA():
        assert_allclose(
            calibration_test(model, moved, y, n_bootstrap=0), calibration_test(model, X, y, n_bootstrap=0), rtol=1e-5
        )


def test_closed_forms_that_do_not_exist_say_what_to_do():
    X, y = gaussian_rows()
    with pytest.raises(InvalidStatistics, match="leave out features that are constant or depend on others"):
        calibration_test(QDA(), np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(InvalidStatistics, match=r"set its prior_strength \(and class_prior_strength\) to 0"):
        calibration_test(QDA(prior_strength=1.0), X, y)


def test_bad_input_is_named():
    X, y = gaussian_rows()
    with pytest.raises(ValueError, match="calibration_test needs"):
        calibration_test(RiskCalibration.as_published(QDA()), X, y)
    with pytest.raises(ValueError, match="priors of the estimator must be None"):
        calibration_test(QDA(priors=[0.2, 0.3, 0.5]), X, y)
    with pytest.raises(ValueError, match="n_bootstrap must be"):
        calibration_test(QDA(), X, y, n_bootstrap=-1)
    with pytest.raises(ValueError, match="n_bootstrap must be positive with 90 rows for 72 degrees of freedom"):
        calibration_test(QDA(), np.hstack([X, X**2, np.sin(X)])[:, :7], y, n_bootstrap=0)
    with pytest.raises(ValueError, match=r"sample_weight must say how many times .* adds up to 1 for 3"):
        calibration_test(QDA(), X, y, sample_weight=np.full(len(y), 1 / len(y)))
    with pytest.raises(ValueError, match="n_bootstrap must be 0 with 9e\\+10 rows"):
        calibration_test(QDA(), X, y, sample_weight=np.full(len(y), 1e9))
    with pytest.raises(ValueError, match="sample_weight must hold numbers, one a row"):
        calibration_test(QDA(), X, y, sample_weight=["one"] * len(y))
    with pytest.raises(ValueError, match="feature 0 holds missing values"):
        calibration_test(QDA(), np.where(X > 1, np.nan, X), y)
    X, y = rows_for("CategoricalNB")
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="feature 0 holds missing values"):
        calibration_test(CategoricalNB(), X, y)
    bags = X.copy()
    bags[0, 0] = 1 + np.nanmax(X)
    bags = np.nan_to_num(bags)
    with pytest.raises(ValueError, match="X holds rows of unequal sums"):
        calibration_test(MultinomialNB(), bags, y, n_bootstrap=0)
