"""Unknown class weights: the maximum, its certificate, its interval, and what is refused."""

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from rcpkg import LDA, QDA, GaussianNB, RiskCalibration, class_prior, class_prior_of
from rcpkg.class_prior import em

X, y = load_iris(return_X_y=True)


class Posteriors:
    """A classifier whose rows are their posteriors."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, X):
        return np.asarray(X)


def drawn(n=200, seed=0):
    return softmax(np.random.default_rng(seed).normal(scale=2, size=(n, 3)), axis=1)


def test_it_is_the_maximum_of_the_likelihood():
    P, prior = drawn(), np.array([0.2, 0.3, 0.5])

    def minus(z):
        return -np.sum(np.log(P / prior @ softmax([*z, 0.0])))

    best = minimize(minus, np.zeros(2), tol=1e-12)
    found = class_prior_of(Posteriors(), P, training_prior=prior)
    assert_allclose(em(P / prior, prior, 1e-12, 10_000)[0], softmax([*best.x, 0.0]), atol=1e-5)
    assert_allclose(found.log_likelihood, -best.fun - np.sum(np.log(P.sum(axis=1))), atol=1e-6)


def test_it_says_so_where_em_has_not_converged(monkeypatch):
    monkeypatch.setattr(class_prior, "STEPS", 3)
    with pytest.warns(UserWarning, match="EM has not converged in 3 steps"):
        class_prior_of(Posteriors(), drawn(seed=1), training_prior=np.array([0.2, 0.3, 0.5]))


@pytest.mark.parametrize("model", [LDA(), QDA(), RiskCalibration(GaussianNB())], ids=lambda m: type(m).__name__)
def test_it_finds_the_weights_of_a_population(model):
    model.fit(X, y)
    rng = np.random.default_rng(0)
    truth = np.array([0.1, 0.7, 0.2])
    rows = X[np.concatenate([rng.choice(np.flatnonzero(y == c), size) for c, size in enumerate((60, 420, 120))])]
    found = class_prior_of(model, rows)
    assert_allclose(found.class_prior, truth, atol=0.06)
    assert (found.interval[:, 0] <= found.class_prior).all() and (found.class_prior <= found.interval[:, 1]).all()
    holes = np.where(rng.uniform(size=rows.shape) < 0.3, np.nan, rows)
    assert_allclose(class_prior_of(model, holes).class_prior, truth, atol=0.12)


def test_another_classifier_needs_the_weights_of_training():
    logistic = LogisticRegression(max_iter=1000).fit(X, y)
    refused("training_prior must name the class weights", class_prior_of, logistic, X)
    third = dict.fromkeys(range(3), 1 / 3)
    assert_allclose(class_prior_of(logistic, X, training_prior=third).class_prior.sum(), 1)


def test_it_says_so_where_rows_say_nothing():
    with pytest.warns(UserWarning, match="4 rows leave the weight of 'a' between 0.00 and 1.00"):
        class_prior_of(Posteriors(), np.full((4, 3), 1 / 3), training_prior=np.full(3, 1 / 3))


def test_extreme_posteriors_do_no_harm():
    log_P = log_softmax(np.random.default_rng(3).normal(scale=500, size=(50, 3)), axis=1)

    class Sure(Posteriors):
        def predict_log_proba(self, X):
            return log_P

    found = class_prior_of(Sure(), log_P, training_prior=np.full(3, 1 / 3))
    assert np.isfinite(found.class_prior).all() and np.isfinite(found.log_likelihood)
