"""Rows with gaps: marginal and conditional Gaussians, pattern by pattern."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from rcpkg.gaps import GappyRows, patterns


def gappy(n=60, d=4, rate=0.4, seed=0):
    """Rows with gaps, among them complete ones and rows of gaps only; means and a covariance of many scales."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4, size=d)
    A = rng.standard_normal((2 * d, d))
    X = rng.standard_normal((n, d)) * scale
    X[rng.random((n, d)) < rate] = np.nan
    X[0] = np.nan
    return X, rng.standard_normal((3, d)) * scale, A.T @ A * np.outer(scale, scale)


@pytest.mark.parametrize("largest", [1, 50, 2**19])
def test_patterns_hold_each_row_once_with_what_it_has(largest):
    missing = np.isnan(gappy(d=11)[0])
    rows = []
    for block in patterns(missing, largest):
        for seen, group in zip(block.seen, block.groups):
            rows.extend(block.rows[group])
            assert (missing[block.rows[group]] == ~seen).all()
    assert_array_equal(np.sort(rows), np.arange(len(missing)))
    assert patterns(missing[:0]) == []


def test_marginals_are_those_of_the_blocks():
    X, means, S = gappy()
    rows = GappyRows(X)
    quadratic, log_det = rows.marginals(means, S)
    log_density = -0.5 * (rows.n_seen * np.log(2 * np.pi) + log_det)[:, None] - 0.5 * quadratic
    for x, values in zip(X, log_density):
        o = ~np.isnan(x)
        block = S[np.ix_(o, o)]
        known = [multivariate_normal(m[o], block).logpdf(x[o]) if o.any() else 0.0 for m in means]
        assert_allclose(values, known, rtol=1e-10, atol=1e-10)


def test_completed_rows_are_conditional_means_and_covariances():
    X, means, S = gappy(rate=0.3)
    X[0, 0] = 1.0  # of a row of gaps only there is nothing to solve
    w = np.random.default_rng(1).uniform(size=len(X))
    rows, total = GappyRows(X).completed(means[0], S, w)
    known = np.zeros_like(S)
    for x, weight, filled in zip(X, w, rows):
        o, m = ~np.isnan(x), np.isnan(x)
        slope = np.linalg.lstsq(S[np.ix_(o, o)], S[np.ix_(o, m)], rcond=None)[0].T
        assert_array_equal(filled[o], x[o])
        assert_allclose(filled[m], means[0, m] + slope @ (x[o] - means[0, o]), rtol=1e-9)
        known[np.ix_(m, m)] += weight * (S[np.ix_(m, m)] - slope @ S[np.ix_(o, m)])
    scale = np.sqrt(S.diagonal())
    assert_allclose(total / np.outer(scale, scale), known / np.outer(scale, scale), atol=1e-9)
