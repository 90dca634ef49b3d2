"""Rivals of calibrated networks: the sampler against exact posteriors, the choice against refits without each row."""

import numpy as np
import pytest
from model_cases import network_rows
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.network_rivals import (
    HierarchicalDirichlet,
    SelectiveKDB,
    hierarchical_means,
    leave_one_out_losses,
    levels_of,
    tables_at,
)
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma

from rcpkg import KDependenceBayes


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


@pytest.mark.parametrize("counts", [[[5, 1], [1, 2], [9, 0]], [[1, 0], [0, 1], [30, 10]]])
def test_means_are_those_of_the_posterior(counts):
    """θ_0 ~ uniform, θ_y ~ Beta(c θ_0), c ~ Gamma(2, 1): by sums over a fine grid of θ_0 and c."""
    X, y = of_counts(counts)
    levels = levels_of(X, y, [()], np.array([2]))
    root, of_class = hierarchical_means(levels, 6_000, 200, np.random.default_rng(1))
    n = np.array(counts)
    theta, c = np.meshgrid((np.arange(400) + 0.5) / 400, (np.arange(600) + 0.5) / 30, indexing="ij")
    a, b = c * theta, c * (1 - theta)
    log_w = gamma.logpdf(c, 2)
    for ones, twos in n:
        log_w += gammaln(a + ones) + gammaln(b + twos) - gammaln(c + ones + twos) - gammaln(a) - gammaln(b) + gammaln(c)
    w = np.exp(log_w - logsumexp(log_w))
    assert root[0] == pytest.approx((w * theta).sum(), abs=0.01)
    for y in range(3):
        exact = (w * (a + n[y, 0]) / (c + n[y].sum())).sum()
        assert of_class[2 * y] == pytest.approx(exact, abs=0.006)


def test_levels_count_each_row_once():
    X, y = network_rows(n=80)
    model = KDependenceBayes(k=2, decomposable=False).fit(X, y)
    places, parents = model.family_.places(X), model.parents_
    levels = levels_of(places, y, parents, model.n_states_)
    counted = [0] * len(parents)
    for depth, at in enumerate(levels):
        for j in range(len(parents)):
            own = at.own[at.feature[at.context] == j]
            if depth == 1 + len(parents[j]):
                counted[j] = own.sum()
            else:
                assert not own.any()
        if depth:
            above = levels[depth - 1]
            assert_array_equal(above.feature[above.context][at.above], at.feature[at.context])
            state, state_above = (np.arange(len(of.own)) - of.first[of.context] for of in (at, above))
            assert_array_equal(state_above[at.above], state)
    assert counted == [len(X)] * len(parents)


def test_contexts_that_do_not_occur_have_the_mean_of_the_next_above():
    X, y = np.array([[0, 0], [0, 1], [1, 0], [0, 0], [0, 1], [0, 1]]), np.array([0, 0, 0, 1, 1, 1])
    network = KDependenceBayes(structure=[[], [0]], n_states=2)
    model = HierarchicalDirichlet(network, n_samples=20, burn_in=5).fit(X, y)
    table = np.exp(model.network_.family_.families_.split(model.parameters_.log_prob)[1])
    assert_allclose(table.sum(axis=-1), 1)
    levels = levels_of(X, y, [(), (0,)], np.array([2, 2]))
    means = hierarchical_means(levels, 20, 5, np.random.default_rng(0))
    at = levels[1]
    of_class = means[1][at.feature[at.context] == 1].reshape(2, 2)
    assert_allclose(table[1, 1], of_class[1])  # no row of class 1 has x_0 = 1
    assert abs(table[0, 1] - of_class[0]).max() > 0.01


def test_losses_are_those_of_networks_fitted_without_each_row():
    X, y = network_rows(n=40)
    whole = KDependenceBayes(k=2, decomposable=False).fit(X, y)
    places, n_states, d = whole.family_.places(X), whole.n_states_, X.shape[1]
    order = sorted(range(d), key=lambda j: [len(whole.parents_[j]), j])
    parents = [tuple(p for p in of if order.index(p) < order.index(j)) for j, of in enumerate(whole.parents_)]
    losses = leave_one_out_losses(places, y, order, parents, n_states, 1.0)
    assert len(losses) == d + 1
    for m in 2, d:
        kept = order[:m]
        structure = [[kept.index(p) for p in parents[j]] for j in kept]
        model = KDependenceBayes(structure=structure, n_states=n_states[kept])
        direct = [
            -np.log(model.fit(X[others][:, kept], y[others]).predict_proba(X[[i]][:, kept])[0, y[i]])
            for i in range(len(y))
            if len(others := np.delete(np.arange(len(y)), i))
        ]
        assert losses[m] == pytest.approx(np.mean(direct), rel=1e-10)


def test_selection_keeps_what_tells_and_takes_the_parents_that_pay():
    rng = np.random.default_rng(3)
    a, b, noise = rng.integers(2, size=400), rng.integers(2, size=400), rng.integers(3, size=(400, 3))
    told = np.where(rng.uniform(size=400) < 0.1, 1 - a, a)
    y = told ^ b  # a parent is worth it
    X = np.column_stack([a, b, noise, np.where(rng.uniform(size=400) < 0.4, 1 - y, y)])
    model = SelectiveKDB(n_states=X.max(axis=0) + 1).fit(X, y)
    assert {0, 1} <= set(model.features_.tolist()) and model.k_ >= 1
    assert np.mean(model.predict_proba(X).argmax(axis=1) == y) > 0.85
    assert model.k_ + len(model.features_) < 3 + X.shape[1]  # something is left out
