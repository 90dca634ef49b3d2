"""Slips of gambosi2020 that chapter 1 names: the printed form fails where the corrected one holds."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import norm


def test_printed_class_weights_do_not_sum_to_one():
    sizes = np.array([30, 70])
    assert 2 * sizes[0] / sizes.sum() != pytest.approx(1)  # |C_1| / (|C_1| + |C_2|) for k = 1 and for k = 2
    assert (sizes / sizes.sum()).sum() == pytest.approx(1)


def test_words_independent_in_pairs_need_not_be_independent():
    documents = [word for word in product((0, 1), repeat=3) if sum(word) % 2 == 0]
    p = 1 / len(documents)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for pair in product((0, 1), repeat=2):
            assert sum(p for d in documents if (d[i], d[j]) == pair) == pytest.approx(1 / 4)
    assert p == pytest.approx(1 / 4) and p != pytest.approx((1 / 2) ** 3)


def test_exchangeable_words_need_not_be_independent():
    """Polya's urn: all orders of a bag are equally probable, so that the bag says all, and the words depend."""

    def urn(words):
        counts, p = np.ones(2), 1.0
        for word in words:
            p *= counts[word] / counts.sum()
            counts[word] += 1
        return p

    assert urn((0, 0, 1)) == pytest.approx(urn((0, 1, 0))) == pytest.approx(urn((1, 0, 0)))
    assert urn((0, 0)) == pytest.approx(1 / 3) and urn((0, 0)) != pytest.approx(urn((0,)) ** 2)


def test_likelihood_alone_does_not_select_the_class_of_largest_posterior():
    likelihood, weights = np.array([0.02, 0.01]), np.array([0.1, 0.9])
    assert likelihood.argmax() != (likelihood * weights).argmax()


def test_log_joint_is_log_posterior_plus_log_evidence():
    joint = np.array([0.3, 0.1])  # p(x, y) at one x
    weights = np.array([0.6, 0.4])
    posterior = joint / joint.sum()
    assert np.log(joint) == pytest.approx(np.log(posterior) + np.log(joint.sum()))
    assert not np.allclose(np.log(joint), np.log(posterior) + np.log(weights))


def test_log_odds_of_an_exponential_family_take_the_logarithm_of_the_class_weights():
    """Poisson classes; the scale 1/s of the slides appears in one line only and would change the posterior."""
    rate, weights, x = np.array([1.0, 3.0]), np.array([0.3, 0.7]), np.arange(8)[:, None]
    exact = softmax(x * np.log(rate) - rate + np.log(weights), axis=1)
    assert not np.allclose(exact, softmax(x * np.log(rate) - rate + weights, axis=1))
    assert not np.allclose(exact, softmax(x * np.log(rate) / 2 - rate + np.log(weights), axis=1))


def test_printed_normal_density_has_mass_one_over_root_two():
    def printed(y, sigma=1.7):
        return np.exp(-((y / sigma) ** 2)) / (np.sqrt(2 * np.pi) * sigma)

    assert quad(printed, -np.inf, np.inf)[0] == pytest.approx(1 / np.sqrt(2))


def test_natural_parameter_of_the_normal_is_the_mean_over_the_variance():
    """eta = mu / sigma^2 for known sigma; the prediction is sigma^2 eta; an unknown sigma needs the statistic y^2."""
    mu, sigma, y = 0.8, 1.7, np.linspace(-3, 3, 7)
    eta = mu / sigma**2
    log_density = eta * y - sigma**2 * eta**2 / 2 + norm.logpdf(y, 0, sigma)
    assert log_density == pytest.approx(norm.logpdf(y, mu, sigma))
    assert sigma**2 * eta == pytest.approx(mu) and eta != pytest.approx(mu)
    with_square = np.column_stack([np.ones(7), y, y**2])
    for columns, fits in ((with_square, True), (with_square[:, :2], False)):
        rest = norm.logpdf(y, mu, sigma) - columns @ np.linalg.lstsq(columns, norm.logpdf(y, mu, sigma))[0]
        assert np.allclose(rest, 0) == fits


def test_categorical_regression_needs_a_reference_class():
    eta = np.array([0.4, -1.0, 0.7])  # the last one not zero
    printed = np.r_[np.exp(eta[:-1]), 1] / np.exp(eta).sum()
    assert printed.sum() != pytest.approx(1)
    eta -= eta[-1]
    assert np.r_[np.exp(eta[:-1]), 1] / np.exp(eta).sum() == pytest.approx(softmax(eta))


def test_iso_surfaces_of_softmax_are_curved():
    x2 = np.array([-2.0, 0.0, 2.0])
    x = np.column_stack([np.log1p(np.exp(x2)), x2])
    assert softmax(np.column_stack([x, np.zeros(3)]), axis=1)[:, 0] == pytest.approx(0.5)
    assert abs(np.linalg.det(np.column_stack([np.ones(3), x]))) > 0.5  # three points that no line holds


def test_probit_is_not_canonical():
    """The log odds of a probit model are not affine in its score, and a Bernoulli response alone gives no sigmoid."""
    a = np.linspace(-3, 3, 7)
    assert np.abs(np.diff(norm.logcdf(a) - norm.logsf(a), n=2)).max() > 0.1
    assert np.diff(np.log(expit(a) / expit(-a)), n=2) == pytest.approx(np.zeros(5))


def test_likelihood_with_one_row_for_all_is_another_function():
    X, t = np.array([[1.0, -1.0], [1.0, 2.0]]), np.array([0, 1])
    w = np.array([0.2, 0.9])
    p = expit(X @ w)
    right = np.prod(np.where(t == 1, p, 1 - p))
    assert all(np.prod(np.where(t == 1, q, 1 - q)) != pytest.approx(right) for q in p)
