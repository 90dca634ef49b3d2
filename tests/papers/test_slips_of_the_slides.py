"""Slips of gambosi2020 that chapter 1 names: the printed form fails where the corrected one holds."""


import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import norm


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


def test_probit_is_not_canonical():
    """The log odds of a probit model are not affine in its score, and a Bernoulli response alone gives no sigmoid."""
    a = np.linspace(-3, 3, 7)
    assert np.abs(np.diff(norm.logcdf(a) - norm.logsf(a), n=2)).max() > 0.1
    assert np.diff(np.log(expit(a) / expit(-a)), n=2) == pytest.approx(np.zeros(5))
