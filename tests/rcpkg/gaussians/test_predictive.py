"""thesis2007 chapters 4-5 and appendix A.2-A.3: the predictive densities against integration over (mu, Sigma), their
ranges of validity, and the leave-one-out against refits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import ALL_SEEDS, breaking_problem, refused
from numpy.testing import assert_allclose
from rcbook.class_densities import log_marginal_likelihood, log_predictive_loo
from scipy import stats
from scipy.special import gammaln, multigammaln

from rcpkg.gaussians import (
    BDA7_SEEDS,
    PredictiveNotDefined,
    Sample,
    Seed,
    class_statistics,
    grid_log_predictive_loo,
    log_predictive,
    posterior_dof,
    seed_matrix,
)

MEASURES = ("fisher", "lebesgue")


def one_class(n, d, random_state=0):
    X = np.random.default_rng(random_state).normal(size=(n, d))
    statistics = class_statistics(X, np.zeros(n, dtype=int), 1)
    return X, float(n), statistics.means[0], statistics.scatters[0]


# ---------------------------------------------------------------- the integrals of chapter 4


def test_A_6_has_half_of_d_times_d_minus_one():
    """The power of Γ(½); the printed d(d − 1)/d fails but for d = 2."""
    for d in (1, 2, 3, 7):
        a = d / 2 + 1.3
        product = gammaln(a - (d - np.arange(1, d + 1)) / 2).sum()
        assert_allclose(d * (d - 1) / 2 * gammaln(0.5) + product, multigammaln(a, d))
        assert d in (1, 2) or abs((d - 1) * gammaln(0.5) + product - multigammaln(a, d)) > 0.5


@pytest.mark.parametrize("measure", MEASURES)
def test_A_7_to_A_10_chain_rule(measure):
    """alpha with x over alpha without x is the predictive at x (A.7 and, at B = 0, A.9 give A.8 and A.10)."""
    for d, n, q, B in ((3, 9, 8.0, np.diag([1.0, 2, 3])), (3, 9, 4.0, np.zeros((3, 3)))):
        X, count, mean, scatter = one_class(n, d)
        x = np.array([[0.3, -1.0, 2.0]])
        full = class_statistics(np.vstack([X, x]), np.zeros(n + 1, dtype=int), 1).scatters[0]
        ratio = log_marginal_likelihood(count + 1, full, seed=B, dof=q, measure=measure) - log_marginal_likelihood(
            count, scatter, seed=B, dof=q, measure=measure
        )
        ours = log_predictive(x, count, mean, scatter, seed=B, dof=q, measure=measure)[0]
        assert_allclose(ours, ratio, rtol=1e-10)


def printed(n, d, q, S, B, x, mean, gamma_top, gamma_bottom, power):
    """The printed pattern of (4.22), (4.24), (4.26), (4.28), times (2 pi)^(-d/2)."""
    A = (S + n / (n + 1) * np.outer(x - mean, x - mean) + B) / 2
    return (
        -d / 2 * np.log(2 * np.pi) + d / 2 * np.log(n / (n + 1)) + gammaln(gamma_top) - gammaln(gamma_bottom)
        + power * np.linalg.slogdet((S + B) / 2)[1] - (power + 0.5) * np.linalg.slogdet(A)[1]
    )  # fmt: skip


@given(
    n=st.integers(1, 30),
    d=st.integers(1, 6),
    q=st.floats(1, 40),
    measure=st.sampled_from(MEASURES),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_5_4_is_the_multivariate_t(n, d, q, measure, seed):
    _, count, mean, S = one_class(n, d, seed)
    B = np.diag(np.arange(1.0, d + 1))
    a = posterior_dof(count, d, q, measure)
    df = a - d + 1
    x = np.random.default_rng(seed + 1).normal(size=(4, d))
    if df <= 0:
        with pytest.raises(PredictiveNotDefined, match="raise dof"):
            log_predictive(x, count, mean, S, seed=B, dof=q, measure=measure)
        return
    t = stats.multivariate_t(mean, (n + 1) / (n * df) * (S + B), df=df)
    ours = log_predictive(x, count, mean, S, seed=B, dof=q, measure=measure)
    assert_allclose(ours, np.atleast_1d(t.logpdf(x)), rtol=1e-8, atol=1e-8)


def test_5_4_middle_line():
    """(5.4)'s second line prints the exponent of |I + ...| in the denominator with a minus."""
    _, n, _mean, S = one_class(5, 2)
    D, z, power = S + np.eye(2), np.array([1.0, -0.5]), (5 + 6.0 + 1) / 2
    inner = np.linalg.slogdet(np.eye(2) + n / (n + 1) * np.outer(z, z) @ np.linalg.inv(D))[1]
    whole = np.linalg.slogdet(D / 2 + n / (2 * (n + 1)) * np.outer(z, z))[1]
    assert_allclose(whole * power, power * np.linalg.slogdet(D / 2)[1] + power * inner)
    assert inner > 0.1


# ---------------------------------------------------------------- where the formulas exist


def test_ranges_of_validity():
    d, B = 5, np.eye(5)

    def exists(n, q, measure, seed):
        X, count, mean, S = one_class(n, d)
        try:
            return bool(np.isfinite(log_predictive(X[:1], count, mean, S, seed=seed, dof=q, measure=measure)).all())
        except PredictiveNotDefined:
            return False

    # (4.22): q >= d suffices for every n >= 1, and so does q > d - 1 - n
    assert all(exists(n, d, "fisher", B) for n in range(1, 9))
    assert exists(2, d - 2, "fisher", B) and not exists(2, d - 3, "fisher", B)
    # (4.24): exactly n > 2d - q + 1, as stated
    for q in range(d, 2 * d + 4):
        assert [exists(n, q, "lebesgue", B) for n in range(1, 9)] == [n > 2 * d - q + 1 for n in range(1, 9)]
    # (4.26): "any n > 0" is wrong; (4.28): "at least d" is one too few. Both need n >= d + 1, for S to be regular
    for measure in MEASURES:
        exist = [exists(n, d + 1, measure, np.zeros((d, d))) for n in range(1, 9)]
        assert exist == [n >= d + 1 for n in range(1, 9)]


def test_named_errors():
    X, n, mean, S = one_class(4, 3)
    with pytest.raises(PredictiveNotDefined, match="no row"):
        log_predictive(X, 0.0, mean, S, seed=np.eye(3), dof=5)
    with pytest.raises(PredictiveNotDefined, match="singular"):
        log_predictive(X, 2.0, mean, 0 * S, seed=np.diag([1.0, 0.0, 1.0]), dof=5)
    refused("measure", log_predictive, X, n, mean, S, seed=np.eye(3), dof=5, measure="haar")
    refused("seed base", grid_log_predictive_loo, Sample(X, np.array([0, 1, 0, 1]), 2), [3], [Seed("median")])


# ---------------------------------------------------------------- leave-one-out


def refits(X, y, n_classes, dofs, seeds):
    """The definition: every row scored by fits without it, one Cholesky factor a model and class."""
    out = np.full((len(dofs), len(seeds), len(X), n_classes), -np.inf)
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        statistics = class_statistics(X[keep], y[keep], n_classes)
        for h in np.flatnonzero(statistics.counts):
            count, mean, scatter = (part[h] for part in statistics)
            for a, q in enumerate(dofs):
                for b, rule in enumerate(seeds):
                    B = seed_matrix(rule, q, statistics, h)
                    try:
                        score = log_predictive(X[[i]], count, mean, scatter, seed=B, dof=q)
                    except PredictiveNotDefined:
                        continue
                    out[a, b, i, h] = score[0]
    return out


def assert_equal_scores(fast, slow):
    finite = np.isfinite(slow)
    assert (np.isfinite(fast) == finite).all()
    assert np.isneginf(fast[~finite]).all()
    assert_allclose(fast[finite], slow[finite], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 30))])
def test_loo_equals_refits_on_three_hundred_problems(block):
    for trial in range(10 * block, 10 * block + 10):
        X, y, r, d = breaking_problem(trial)
        dofs = [d, 3.0 * d]
        fast = grid_log_predictive_loo(Sample(X, y, r), dofs, ALL_SEEDS)
        assert_equal_scores(fast, refits(X, y, r, dofs, ALL_SEEDS))


@pytest.mark.parametrize("d, n", [(30, 40), (60, 30), pytest.param(60, 90, marks=pytest.mark.slow)])
def test_loo_equals_refits_in_high_dimension(d, n):
    rng = np.random.default_rng(d)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    fast = grid_log_predictive_loo(Sample(X, y, 3), [d, 6.0 * d])
    assert_equal_scores(fast, refits(X, y, 3, [d, 6.0 * d], BDA7_SEEDS))


@given(n=st.integers(2, 20), d=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_closed_form_loo_of_one_class(n, d, seed):
    X, *_ = one_class(n, d, seed)
    B = np.eye(d) + 0.3
    ours = log_predictive_loo(X, seed=B, dof=d + 3.0)
    for i in range(n):
        rest = class_statistics(np.delete(X, i, axis=0), np.zeros(n - 1, dtype=int), 1)
        refit = log_predictive(X[i : i + 1], n - 1.0, rest.means[0], rest.scatters[0], seed=B, dof=d + 3.0)
        assert_allclose(ours[i], refit[0], rtol=1e-9, atol=1e-9)
