"""Covariances of low rank: the M-step and EM with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import low_rank_components as study
from scipy.optimize import minimize


def test_the_step_is_the_most_probable_covariance_of_its_form():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    S, q = A @ A.T / 5, 2

    def loss(C):
        return np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S))

    def of_vector(v):
        W = v[:10].reshape(5, q)
        return W @ W.T + np.exp(v[10]) * np.eye(5)

    found = [minimize(lambda v: loss(of_vector(v)), rng.standard_normal(11)).fun for _ in range(5)]
    assert_allclose(loss(study.of_low_rank(S, q)), min(found), rtol=1e-6)
    assert_allclose(study.of_low_rank(S, 4), S)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_em_never_loses_likelihood():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 4)) + 3 * rng.integers(2, size=(200, 1))
    values = []
    for steps in (1, 2, 3, 5, 10, 20):
        model = study.LowRankMixture(2, 1)
        model.max_iter, model.tol, model.reg_covar = steps, 0.0, 0.0
        values.append(model.fit(X).score(X))
    assert (np.diff(values) >= -1e-9).all() and values[-1] > values[0]
