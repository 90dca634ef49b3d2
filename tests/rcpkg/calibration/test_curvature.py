"""Minimal coordinates of each exponential family: information, conditional curvature and scores."""

import numpy as np
import pytest
from model_cases import ML, fitted, random_direction, row_statistics, rows_for
from numpy.testing import assert_allclose
from sklearn.base import clone

from rcpkg import BernoulliNB, CategoricalNB, RiskCalibrationCV
from rcpkg.calibration.curvature import MinimalForm

each_model = pytest.mark.parametrize("name", ML)


def form_of(name):
    model, X, _, Y = fitted(name)
    encoded = model.family_.encode(X)
    return model, X, Y, MinimalForm(model.family_, encoded, model.statistics(encoded, Y))


@each_model
def test_vectors_stand_for_statistics_and_natural_parameters(name):
    model, X, _, form = form_of(name)
    assert_allclose(form.statistics(form.sums(model.statistics_)).ravel(), model.statistics_.ravel(), atol=1e-9)
    beta = form.coefficients(model.family_.natural_parameters(model.parameters_))
    assert_allclose(form.coefficients(form.natural(beta)), beta, atol=1e-10)
    scores, joint = form.features @ form.by_class(beta).T, model.log_joint(X, model.parameters_)
    assert_allclose(scores - scores[:, :1], joint - joint[:, :1], atol=1e-9)
    assert form.map.is_inside(form.natural(beta))


@each_model
def test_information_is_the_derivative_of_the_mean(name):
    model, _, _, form = form_of(name)
    beta = form.coefficients(model.family_.natural_parameters(model.parameters_))
    parameters = model.family_.from_natural(form.natural(beta))
    step = 1e-5 * np.random.default_rng(0).standard_normal(form.size)

    def mean(at):
        return form.mean(model.family_.from_natural(form.natural(at)))

    information = form.information(parameters)
    assert_allclose((mean(beta + step) - mean(beta - step)) / 2, information @ step, rtol=1e-6, atol=1e-12)
    assert np.linalg.matrix_rank(information) == form.size - 1
    assert_allclose(information @ form.class_weights, 0, atol=1e-12)
    d = np.random.default_rng(1).standard_normal(form.size)
    assert_allclose(form.times_covariance(form.second_moments(parameters), d), information @ d, atol=1e-10)


@each_model
def test_conditional_curvature_is_the_sum_of_the_covariances_given_each_row(name):
    model, X, Y, form = form_of(name)
    P, weight = model.predict_proba(X), np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    s = row_statistics(model, X, form.r)
    vectors = np.array([[form.sums(model.statistics_.unravel(v)) for v in of_row] for of_row in s])
    mean = np.einsum("iy,iyp->ip", P, vectors)
    expected = np.einsum("i,iy,iyp,iyq->pq", weight, P, vectors, vectors) - np.einsum("i,ip,iq->pq", weight, mean, mean)
    assert_allclose(form.conditional_curvature(P, weight), expected, atol=1e-9)
    matrix = np.random.default_rng(2).standard_normal((4, form.size))
    y, rows = Y.argmax(axis=1), slice(3, 20)
    own = vectors[np.arange(len(y)), y]
    assert_allclose(form.times_statistics(matrix, y, rows), matrix @ own[rows].T, atol=1e-9)


def test_a_precision_that_is_not_positive_definite_lies_outside():
    for name in "QDA", "LDA", "GaussianNB", "ProductModel":
        model, _, _, form = form_of(name)
        natural = model.family_.natural_parameters(model.parameters_)
        assert not form.map.is_inside(-1.0 * natural)
        assert form.map.is_inside(natural + 1e-9 * random_direction(natural, np.random.default_rng(0)))


@pytest.mark.parametrize("model", [CategoricalNB(n_states=4), BernoulliNB()], ids=repr)
def test_states_of_no_row_have_no_part(model):
    """Minimal coordinates with them are those without them."""
    X, y = rows_for("BernoulliNB")
    X = X.copy()
    X[:, 0], X[:, 1] = 1.0, 0.0
    fitted_model = clone(model).fit(X, y)
    encoded = fitted_model.family_.encode(X)
    form = MinimalForm(fitted_model.family_, encoded, fitted_model.statistics_)
    assert form.width == 3
    assert_allclose(form.statistics(form.sums(fitted_model.statistics_)).ravel(), fitted_model.statistics_.ravel())
    with np.errstate(invalid="raise"):
        beta = form.coefficients(fitted_model.family_.natural_parameters(fitted_model.parameters_))
    parameters = fitted_model.family_.from_natural(form.natural(beta))
    assert_allclose(np.exp(parameters.log_prob), np.exp(fitted_model.parameters_.log_prob), atol=1e-12)
    chosen = RiskCalibrationCV(clone(model), target="pooled", target_weights=[0.3, 3.0], cv="loo").fit(X, y)
    without = RiskCalibrationCV(BernoulliNB(), target="pooled", target_weights=[0.3, 3.0], cv="loo").fit(X[:, 2:], y)
    assert_allclose(*(each.cv_results_.drop(columns="target") for each in (chosen, without)), rtol=1e-5)
