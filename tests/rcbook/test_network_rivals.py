"""Rivals of calibrated networks: the sampler against exact posteriors, the choice against refits without each row."""

import numpy as np
import pytest
from model_cases import slow
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.network_rivals import hierarchical_means, levels_of, tables_at
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma


def test_tables_have_their_distribution():
    """P(t) = |s(n, t)| aᵗ / (a (a + 1) … (a + n − 1)), with Stirling numbers of the first kind."""
    n, a = 7, 1.3
    p = np.zeros(n + 1)
    p[0] = 1.0
    for i in range(n):
        p = (np.append(0.0, p[:-1]) * a + p * i) / (a + i)
    draws = tables_at(np.full(50_000, n), np.full(50_000, a), np.random.default_rng(0))
    assert_allclose(np.bincount(draws, minlength=n + 1) / 50_000, p, atol=0.008)
    assert_array_equal(tables_at(np.array([0, 1]), np.array([0.5, 0.5]), np.random.default_rng(0)), [0, 1])


def of_counts(counts):
    """Rows of one binary feature with so many of each state in each class."""
    y, x = np.indices(np.shape(counts)).reshape(2, -1)
    return np.repeat(x, np.ravel(counts))[:, None], np.repeat(y, np.ravel(counts))


@pytest.mark.parametrize("counts", [[[5, 1], [1, 2], [9, 0]], *slow([[1, 0], [0, 1], [30, 10]])])
def test_means_are_those_of_the_posterior(counts):
    """θ_0 ~ uniform, θ_y ~ Beta(c θ_0), c ~ Gamma(2, 1): by sums over a fine grid of θ_0 and c."""
    X, y = of_counts(counts)
    levels = levels_of(X, y, [()], np.array([2]))
    root, of_class = hierarchical_means(levels, 6_000, 200, np.random.default_rng(1))
    n = np.array(counts)
    theta, c = np.meshgrid((np.arange(200) + 0.5) / 200, (np.arange(300) + 0.5) / 15, indexing="ij")
    a, b = c * theta, c * (1 - theta)
    log_w = gamma.logpdf(c, 2)
    for ones, twos in n:
        log_w += gammaln(a + ones) + gammaln(b + twos) - gammaln(c + ones + twos) - gammaln(a) - gammaln(b) + gammaln(c)
    w = np.exp(log_w - logsumexp(log_w))
    assert root[0] == pytest.approx((w * theta).sum(), abs=0.01)
    for y in range(3):
        exact = (w * (a + n[y, 0]) / (c + n[y].sum())).sum()
        assert of_class[2 * y] == pytest.approx(exact, abs=0.006)
