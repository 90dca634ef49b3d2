"""WANBIAC: weighted naive Bayes and its limits (wanbia2014)."""

import numpy as np
import pytest
from model_cases import categorical_rows, refused
from numpy.testing import assert_allclose
from rcbook.weighted_naive_bayes import maximise_weighted, with_intercept
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from rcpkg import WANBIAC, CategoricalNB, ConditionalLikelihood

X, y = categorical_rows()
HOLES = np.where(np.random.default_rng(3).uniform(size=X.shape) < 0.15, np.nan, X)


def parts(X=X):
    """Rows, one-hot labels, and log π and log θ of naive Bayes."""
    nb = CategoricalNB(prior_strength=1.0).fit(X, y)
    encoder = OneHotEncoder(categories=[np.arange(k) for k in nb.n_states_], handle_unknown="ignore")
    rows = with_intercept(encoder.fit_transform(X))
    return rows, np.eye(3)[y], np.vstack([nb.parameters_.log_prior, nb.parameters_.log_prob.T])


def objective(W, rows, Y, scale, penalty=0.0, center=1.0):
    """CLL − C Σ (w − c)², as written."""
    scores = rows @ (W * scale)
    log_P = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return np.sum(Y * log_P) - penalty * np.sum((W - center) ** 2)


# Batches ------------------------------------------------------------------------------------------


def test_without_a_penalty_it_is_logistic_regression():
    """Equation (3): the same model, so the same optimum."""
    logistic = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(parts()[0][:, 1:], y)
    P = WANBIAC(penalty=0.0, tol=1e-8).fit(X, y).predict_proba(X)
    assert_allclose(P, logistic.predict_proba(parts()[0][:, 1:]), atol=1e-4)
    for coordinates in ("closed_form", "natural"):
        same = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), coordinates=coordinates, tol=1e-8).fit(X, y)
        assert_allclose(P, same.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_a_strong_penalty_towards_one_gives_naive_bayes(data):
    P = WANBIAC(penalty=1e9).fit(data, y).predict_proba(data)
    assert_allclose(P, CategoricalNB(prior_strength=1.0).fit(data, y).predict_proba(data), atol=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("center", [0.0, 1.0])
def test_the_optimum_is_one(penalty, center):
    rows, Y, scale = parts()
    found = maximise_weighted(rows, Y, scale, penalty=penalty, center=center, tol=1e-9)
    value = objective(found.x, rows, Y, scale, penalty, center)
    assert value == pytest.approx(-found.fun, rel=1e-12)
    rng = np.random.default_rng(4)
    for size in (1e-3, 1e-1):
        moves = rng.normal(size=(20, *scale.shape))
        assert all(objective(found.x + size * move, rows, Y, scale, penalty, center) < value + 1e-7 for move in moves)


def test_objective_of_improbable_labels_is_a_number():
    """Posteriors far below the least number: many copies of one feature, counted as independent."""
    copies = np.repeat(X, 500, axis=1)
    model = WANBIAC(penalty=1e9).fit(copies, y)
    assert model.predict_proba(copies)[np.arange(len(y)), y].min() == 0.0
    log_P = model.predict_log_proba(copies)[np.arange(len(y)), y]
    far = model.penalty * (np.sum((model.weights_.count - 1) ** 2) + np.sum((model.weights_.cells - 1) ** 2))
    assert model.objective_ == pytest.approx(log_P.sum() - far)


def test_joint_is_the_weighted_product():
    """Equation (6)."""
    model = WANBIAC(penalty=0.5).fit(X, y)
    nb, x = model.naive_bayes_, X[7].astype(int)
    at = nb.family_.families_.starts + x
    by_hand = model.weights_.count * nb.parameters_.log_prior
    by_hand = by_hand + (model.weights_.cells * nb.parameters_.log_prob)[:, at].sum(axis=1)
    assert_allclose(model.predict_joint_log_proba(X[[7]])[0], by_hand)


def test_probabilities_are_those_printed_for_missing_values():
    """wanbia2014, footnote 1, with the missing values of the class in the denominator."""
    model = WANBIAC().fit(HOLES, y)
    column, k = HOLES[:, 2], model.naive_bayes_.n_states_[2]
    of_class = y == 1
    counts = np.array([np.sum(of_class & (column == v)) for v in range(k)])
    theta = (counts + 1 / k) / (np.sum(of_class) - np.sum(of_class & np.isnan(column)) + 1)
    assert_allclose(np.exp(model.naive_bayes_.parameters_.log_prob[1, -k:]), theta)


def test_separable_rows_are_reported():
    with pytest.warns(ConvergenceWarning, match="separable"):
        WANBIAC(penalty=0.0, tol=1e-12, max_iter=5).fit([[0], [1], [0], [1]], [0, 1, 0, 1])


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"penalty": -1.0}, "penalty must be a finite number >= 0"),
        ({"center": np.nan}, "center must be a finite number"),
        ({"prior_strength": 0.0}, "prior_strength must be a finite number > 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    refused(message, WANBIAC(**parameters).fit, X, y)


def test_rows_of_numbers_that_are_no_codes_are_refused():
    refused("categories must be coded", WANBIAC().fit, X + 0.5, y)
    refused("one class only", WANBIAC().fit, X, np.zeros(len(X)))


def test_of_a_serial_number_the_rows_so_far_say_nearly_nothing():
    """The exercise on the leak: posteriors of a new state go with n_y/(n_y + m), and not with the class weights."""
    labels, numbers = np.repeat([0, 1], [90, 10]), np.arange(100.0)[:, None]
    nb = CategoricalNB(n_states=201, prior_strength=1.0).fit(numbers, labels)
    new, (first, last) = nb.predict_proba([[150.0]])[0], nb.predict_proba(numbers[[0, -1]])
    stated = (np.array([90, 10]) + 0.5) / (np.array([90, 10]) + 1)
    assert_allclose(new, stated / stated.sum(), atol=1e-12)
    assert_allclose(np.exp(nb.parameters_.log_prior), [0.896, 0.104], atol=1e-3)
    assert first[0] > 0.99 and last[1] > 0.99
