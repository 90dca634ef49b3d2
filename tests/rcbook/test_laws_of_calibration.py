"""The studies of chapter 12: their formulas, and that the stored results are whole and say what the chapter says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import laws_of_calibration as laws
from scipy.linalg import eigh

from rcpkg.calibration.curvature import MinimalForm
from rcpkg.families import one_hot


def sampled(name, n=3000):
    """A true model, its coordinates, and I and C of rows drawn from it."""
    model = laws.truth(name)
    X, y = model.sample(n, np.random.RandomState(1))
    encoded, y = model.family_.encode(X), np.searchsorted(model.classes_, y)
    form = MinimalForm(model.family_, encoded, model.statistics(encoded, one_hot(y, len(model.classes_))))
    C = form.conditional_curvature(model.predict_proba(X), np.full(n, 1 / n))
    return model, form, encoded, y, laws.information_of(form, model.parameters_), C


@pytest.mark.parametrize("name", laws.CASES)
def test_covariances_are_spectral_filters(name):
    """V_kᵀ I Cov I V_l = 1 + f_t(λ)² (1 − λ)/λ on the diagonal, zero elsewhere (eq-when-filter)."""
    _, form, _, _, information, C = sampled(name)
    lambdas, V = eigh(C, information)
    seen = lambdas > 1e-9
    share = np.where(seen, (1 - lambdas) / np.where(seen, lambdas, 1), 0)
    for t, found in zip(laws.LAW_UPDATES, laws.covariances(form, information, C), strict=True):
        f = 1 - (1 - laws.LAW_RATE * lambdas) ** t
        M = information @ V
        assert_allclose(M.T @ found @ M, np.diag(1 + f**2 * share), atol=1e-7)


@pytest.mark.parametrize("name", ["LDA", "QDA", "CategoricalNB", "ProductModel"])
def test_influences_of_a_right_model_have_the_covariances_of_the_theorem(name):
    """On 20,000 rows drawn from it, within the error of a sample."""
    model, form, encoded, y, _, _ = sampled(name, 20_000)
    Y = one_hot(y, form.r)
    path = laws.iterates(model, encoded, Y, tuple(range(max(laws.LAW_UPDATES) + 1)))
    P = [
        np.exp(laws.log_posterior(model.log_joint(encoded, p), model.family_.log_class_probabilities(p))) for p in path
    ]
    found = laws.influences(form, path, P, y)
    information = laws.information_of(form, path[0])
    C = form.conditional_curvature(P[0], np.full(len(y), 1 / len(y)))
    expected = laws.covariances(form, information, C)
    scale = np.sqrt(np.diag(expected[-1]))
    for ours, theirs in zip(found, expected, strict=True):
        both = np.outer(form.class_weights, form.class_weights)
        theirs = theirs - both / (form.class_weights @ form.class_weights) ** 2
        assert np.abs((ours - both - theirs) / np.outer(scale, scale)).max() < 0.1


def test_stored_spreads_tend_to_those_of_the_law():
    """With 10,000 rows within four standard errors of one, under right and wrong models."""
    stored = laws.tidy(laws.LAW)
    most = stored[(stored.n == max(laws.LAW_SIZES)) & stored.value_se.notna()]
    assert len(most) == 4 * 7 + 3 * 4
    assert (abs(most.value - 1) < 4 * most.value_se).all()
