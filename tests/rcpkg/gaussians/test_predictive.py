"""thesis2007 chapters 4-5 and appendix A.2-A.3: the predictive densities against integration over (mu, Sigma), their
ranges of validity, and the leave-one-out against refits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import ALL_SEEDS, breaking_problem
from numpy.testing import assert_allclose
from rcbook.class_densities import log_marginal_likelihood, log_predictive_loo
from scipy import integrate, stats
from scipy.special import gammaln, multigammaln

from rcpkg.choice import wrong_predictions
from rcpkg.gaussians import (
    BDA7_SEEDS,
    PredictiveNotDefined,
    Sample,
    Seed,
    class_statistics,
    grid_log_predictive,
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


def measure_power(d, measure):
    """Power of 1/|Sigma| in the element of integration: (4.16), or 0 for Lebesgue."""
    return (d + 2) / 2 if measure == "fisher" else 0.0


# ---------------------------------------------------------------- the integrals of chapter 4


@pytest.mark.parametrize("measure", MEASURES)
def test_4_17_to_4_20_and_4_22_4_24_by_quadrature_in_one_dimension(measure):
    X, n, mean, scatter = one_class(6, 1)
    q, B = 4.0, 1.3

    def posterior(mu, v):  # likelihood (4.1) x prior (4.20) x measure (4.16)
        squares = sum((x - mu) ** 2 for x in X[:, 0])
        likelihood = np.exp(-0.5 * squares / v) / (2 * np.pi * v) ** (n / 2)
        return likelihood * np.exp(-0.5 * B / v) * v ** (-q / 2 - measure_power(1, measure))

    t, log_v = np.meshgrid(np.linspace(-15, 15, 601), np.linspace(-7, 12, 801))
    v, cell = np.exp(log_v), (t[0, 1] - t[0, 0]) * (log_v[1, 0] - log_v[0, 0])
    mu = mean[0] + t * np.sqrt(v / n)

    def integral(f):  # in coordinates t = (mu - mean)/sqrt(v/n) and log v, where the trapezium rule converges fast
        return (f(mu, v) * np.sqrt(v / n) * v).sum() * cell

    alpha = integral(posterior)
    assert_allclose(
        log_marginal_likelihood(n, scatter, seed=np.eye(1) * B, dof=q, measure=measure), np.log(alpha), rtol=1e-6
    )
    for x in (-1.0, 0.4, 3.0):
        expected = integral(lambda mu, v, x=x: posterior(mu, v) * stats.norm.pdf(x, mu, np.sqrt(v))) / alpha
        ours = log_predictive(np.array([[x]]), n, mean, scatter, seed=np.eye(1) * B, dof=q, measure=measure)
        assert_allclose(np.exp(ours[0]), expected, rtol=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("prior", ("inverse_wishart", "noninformative"))
def test_4_22_4_24_4_26_4_28_by_importance_sampling(measure, prior):
    """The integrals of (4.17) as printed, over proposals that are not the posterior; d = 2."""
    d, (_, n, mean, scatter) = 2, one_class(9, 2)
    q, B = (6.0, np.array([[1.0, 0.3], [0.3, 2.0]])) if prior == "inverse_wishart" else (d + 1.0, np.zeros((2, 2)))
    rng = np.random.default_rng(1)
    size, df = 200_000, 7.0
    Sigma = stats.invwishart(df, 0.8 * scatter).rvs(size, random_state=rng)
    L = np.linalg.cholesky(Sigma)
    mu = mean + np.einsum("njk,nk->nj", L, rng.normal(size=(size, d))) / np.sqrt(n / 2)
    log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    precision = np.linalg.inv(Sigma)
    deviation = mu - mean
    mahalanobis = np.einsum("nj,njk,nk->n", deviation, precision, deviation)
    log_likelihood = -0.5 * (np.einsum("njk,jk->n", precision, scatter) + n * mahalanobis + n * log_det)  # (4.19)
    log_prior = -0.5 * (np.einsum("njk,jk->n", precision, B) + q * log_det)  # (4.20), (4.25)
    trace = 0.8 * np.einsum("njk,jk->n", precision, scatter)
    proposal = -0.5 * ((df + d + 1) * log_det + trace + n / 2 * mahalanobis + log_det)
    log_weight = log_likelihood + log_prior - measure_power(d, measure) * log_det - proposal
    weight = np.exp(log_weight - log_weight.max())
    for x in np.array([[0.0, 0.0], [1.5, -1.0]]):
        z = x - mu
        density = np.exp(-0.5 * (np.einsum("nj,njk,nk->n", z, precision, z) + log_det)) / (2 * np.pi)
        estimate = (weight * density).sum() / weight.sum()
        error = np.sqrt((weight**2 * (density - estimate) ** 2).sum()) / weight.sum()
        ours = np.exp(log_predictive(x[None], n, mean, scatter, seed=B, dof=q, measure=measure)[0])
        assert error < 0.02 * estimate
        assert abs(ours - estimate) < 4 * error


def test_A_3_to_A_6():
    """(A.5) numbers an empty line below (A.4)."""
    n, v, xbar = 5, 1.7, 0.3
    value = integrate.quad(lambda mu: np.exp(-n / 2 * (mu - xbar) ** 2 / v), -np.inf, np.inf)[0]
    assert_allclose(value, (2 * np.pi / n) ** 0.5 * v**0.5, rtol=1e-9)  # (A.3)
    for d in (1, 2, 3, 7):  # (A.6), with pi^(1/2) to the power d(d-1)/2; the printed power d(d-1)/d fails but for d = 2
        a = d / 2 + 1.3
        product = gammaln(a - (d - np.arange(1, d + 1)) / 2).sum()
        assert_allclose(d * (d - 1) / 2 * gammaln(0.5) + product, multigammaln(a, d))
        assert d in (1, 2) or abs((d - 1) * gammaln(0.5) + product - multigammaln(a, d)) > 0.5
    q, B = 9.0, np.array([[1.0, 0.4], [0.4, 2.0]])
    # (A.4) for d = 2, in coordinates (log s1, log s2, correlation) of Sigma
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for t1, w1 in zip(4.5 * nodes, 4.5 * weights):
        for t2, w2 in zip(4.5 * nodes, 4.5 * weights):
            s1, s2 = np.exp(t1), np.exp(t2)
            det = s1 * s2 * (1 - nodes**2)
            trace = (s2 * B[0, 0] + s1 * B[1, 1] - 2 * nodes * np.sqrt(s1 * s2) * B[0, 1]) / det
            total += w1 * w2 * (weights * det ** (-q / 2) * np.exp(-trace)).sum() * (s1 * s2) ** 1.5
    assert_allclose(np.log(total), multigammaln((q - 3) / 2, 2) - (q - 3) / 2 * np.log(np.linalg.det(B)), rtol=1e-3)


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


def test_4_21_4_25_are_4_20_without_a_seed():
    """At B = 0, q = d + 1 the prior (4.20) is |Sigma|^(-(d+1)/2), (4.21), (4.25); with Lebesgue measure its density is
    unchanged by Sigma -> G Sigma G', with the Fisher measure only a constant prior is."""
    d, rng = 3, np.random.default_rng(0)
    A, G = rng.normal(size=(d, 5)), rng.normal(size=(d, d))
    Sigma, jacobian = A @ A.T, (d + 1) * np.linalg.slogdet(G)[1]  # log |dSigma'/dSigma|

    def log_prior(Sigma, q):
        return -0.5 * np.trace(np.linalg.solve(Sigma, np.zeros((d, d)))) - q / 2 * np.linalg.slogdet(Sigma)[1]

    assert_allclose(np.exp(log_prior(Sigma, d + 1)), np.linalg.det(Sigma) ** (-(d + 1) / 2))
    moved = G @ Sigma @ G.T
    assert_allclose(log_prior(moved, d + 1) + jacobian, log_prior(Sigma, d + 1))
    fisher = [log_prior(S, 0) - (d + 1) / 2 * np.linalg.slogdet(S)[1] for S in (Sigma, moved)]  # Sigma's part of (4.16)
    assert_allclose(fisher[1] + jacobian, fisher[0])


def printed(n, d, q, S, B, x, mean, gamma_top, gamma_bottom, power):
    """The printed pattern of (4.22), (4.24), (4.26), (4.28), times (2 pi)^(-d/2)."""
    A = (S + n / (n + 1) * np.outer(x - mean, x - mean) + B) / 2
    return (
        -d / 2 * np.log(2 * np.pi) + d / 2 * np.log(n / (n + 1)) + gammaln(gamma_top) - gammaln(gamma_bottom)
        + power * np.linalg.slogdet((S + B) / 2)[1] - (power + 0.5) * np.linalg.slogdet(A)[1]
    )  # fmt: skip


def test_4_22_4_23_4_24_4_26_4_27_4_28_as_printed():
    d, q = 3, 11.0
    _, n, mean, S = one_class(8, d)
    x, B, O = np.array([0.5, 1.0, -2.0]), np.diag([1.0, 2.0, 0.5]), np.zeros((d, d))
    cases = (
        (B, q, "fisher", (n + q + 1) / 2, (n + q - d + 1) / 2, (n + q) / 2),  # (4.22), (A.8)
        (B, q, "lebesgue", (n + q - d - 1) / 2, (n + q - 2 * d - 1) / 2, (n + q - d - 2) / 2),  # (4.24)
        (O, d + 1.0, "fisher", (n + d + 2) / 2, (n + 2) / 2, (n + d + 1) / 2),  # (4.26)
        (O, d + 1.0, "lebesgue", n / 2, (n - d) / 2, (n - 1) / 2),  # (4.28)
    )
    for seed, dof, measure, top, bottom, power in cases:
        ours = log_predictive(x[None], n, mean, S, seed=seed, dof=dof, measure=measure)[0]
        assert_allclose(ours, printed(n, d, dof, S, seed, x, mean, top, bottom, power), rtol=1e-12)
    # erratum: (A.10) prints Gamma((n+d+1)/2) where Gamma((n+2)/2) is needed
    a10 = printed(n, d, d + 1, S, O, x, mean, (n + d + 2) / 2, (n + d + 1) / 2, (n + d + 1) / 2)
    assert abs(a10 - log_predictive(x[None], n, mean, S, seed=O, dof=d + 1)[0]) > 1


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


def test_5_4_middle_line_and_5_5():
    """(5.4)'s second line prints the exponent of |I + ...| in the denominator with a minus; (5.5) by quadrature."""
    d, q = 2, 6.0
    _, n, _mean, S = one_class(5, d)
    D, z = S + np.eye(d), np.array([1.0, -0.5])
    power = (n + q + 1) / 2
    inner = np.linalg.slogdet(np.eye(d) + n / (n + 1) * np.outer(z, z) @ np.linalg.inv(D))[1]
    assert_allclose(
        np.linalg.slogdet(D / 2 + n / (2 * (n + 1)) * np.outer(z, z))[1] * power,
        power * np.linalg.slogdet(D / 2)[1] + power * inner,
    )
    assert inner > 0.1
    nu, A = 5.0, np.array([[2.0, 0.5], [0.5, 1.0]])
    grid = np.tan(np.linspace(-np.pi / 2, np.pi / 2, 2002)[1:-1])
    x, y = np.meshgrid(grid, grid, indexing="ij")
    P = np.linalg.inv(A)
    kernel = (1 + P[0, 0] * x**2 + 2 * P[0, 1] * x * y + P[1, 1] * y**2) ** (-(nu + d) / 2)
    step = np.pi / 2001
    total = (kernel * (1 + x**2) * (1 + y**2)).sum() * step**2
    assert_allclose(
        total, np.pi ** (d / 2) * np.exp(gammaln(nu / 2) - gammaln((nu + d) / 2)) * np.linalg.det(A) ** 0.5, rtol=1e-4
    )


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


def test_substitution_rules():
    """q -> q - d - 2 turns (4.22) into (4.24); n -> n - d - 2 does not turn (4.26) into (4.28)."""
    d = 3
    _, n, mean, S = one_class(6, d)
    x, B, O = np.array([[1.0, 0.0, -1.0]]), np.eye(3), np.zeros((3, 3))
    shifted = log_predictive(x, n, mean, S, seed=B, dof=10.0 - d - 2, measure="fisher")
    assert_allclose(log_predictive(x, n, mean, S, seed=B, dof=10.0, measure="lebesgue"), shifted)
    geisser = log_predictive(x, n, mean, S, seed=O, dof=d + 1, measure="lebesgue")[0]
    substituted = log_predictive(x, n - d - 2, mean, S, seed=O, dof=d + 1, measure="fisher")[0]
    assert abs(substituted - geisser) > 0.1
    assert_allclose(log_predictive(x, n, mean, S, seed=O, dof=d + 1 - d - 2, measure="fisher")[0], geisser)


def test_named_errors():
    X, n, mean, S = one_class(4, 3)
    with pytest.raises(PredictiveNotDefined, match="no row"):
        log_predictive(X, 0.0, mean, S, seed=np.eye(3), dof=5)
    with pytest.raises(PredictiveNotDefined, match="singular"):
        log_predictive(X, 2.0, mean, 0 * S, seed=np.diag([1.0, 0.0, 1.0]), dof=5)
    with pytest.raises(ValueError, match="measure"):
        log_predictive(X, n, mean, S, seed=np.eye(3), dof=5, measure="haar")
    with pytest.raises(ValueError, match="seed base"):
        grid_log_predictive_loo(Sample(X, np.array([0, 1, 0, 1]), 2), [3], [Seed("median")])


# ---------------------------------------------------------------- what the priors do


def test_5_3_mode_and_the_measure():
    """B/q maximises the prior as a function on the Gaussians; as a Lebesgue density, dM included, it is B/(q+d+2)."""
    d, q, B = 2, 5.0, np.array([[2.0, 0.5], [0.5, 1.0]])
    rng = np.random.default_rng(0)

    def log_density(Sigma, power):
        return -0.5 * np.trace(np.linalg.solve(Sigma, B)) - power / 2 * np.linalg.slogdet(Sigma)[1]

    for power, mode in ((q, B / q), (q + d + 2, B / (q + d + 2))):
        for _ in range(50):
            E = rng.normal(size=(d, d)) * 0.01
            assert log_density(mode + (E + E.T) / 2, power) <= log_density(mode, power)


@given(n=st.integers(1, 50), d=st.integers(1, 8), q=st.integers(8, 60), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_5_6_to_5_9_approximation(n, d, q, seed):
    """(5.6) is a lower bound of (5.4), with mass Gamma(k)/(Gamma(k-d/2) k^(d/2)), k = (n+q+1)/2; (5.8) is exact."""
    _, count, mean, S = one_class(n, d, seed)
    B, k = np.eye(d), (n + q + 1) / 2
    D = S + B
    Sigma = (n + 1) / (n + q + 1) * D / n  # (5.7)
    x = mean + np.random.default_rng(seed).normal(size=(5, d))
    constant = gammaln(k) - gammaln(k - d / 2) - d / 2 * np.log(np.pi) - np.linalg.slogdet((n + 1) / n * D)[1] / 2
    z = x - mean
    approximation = constant - 0.5 * np.einsum("nj,nj->n", z, np.linalg.solve(Sigma, z.T).T)
    exact = log_predictive(x, count, mean, S, seed=B, dof=float(q))
    assert (approximation <= exact + 1e-9).all()
    log_mass = constant + d / 2 * np.log(2 * np.pi) + np.linalg.slogdet(Sigma)[1] / 2
    assert_allclose(log_mass, gammaln(k) - gammaln(k - d / 2) - d / 2 * np.log(k), atol=1e-9)
    assert log_mass <= 1e-12
    weight = q / (n + q + 1)
    assert_allclose(Sigma, (1 - weight) * S / n + (n + 1) / n * weight * B / q)  # (5.8)
    approximate = (1 - weight) * S / n + weight * B / q  # (5.9)
    assert_allclose(Sigma - approximate, weight * B / q / n, atol=1e-12)


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


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_loo_equals_refits_on_three_hundred_problems(block):
    for trial in range(30 * block, 30 * block + 30):
        X, y, r, d = breaking_problem(trial)
        dofs = [d, 3.0 * d]
        fast = grid_log_predictive_loo(Sample(X, y, r), dofs, ALL_SEEDS)
        assert_equal_scores(fast, refits(X, y, r, dofs, ALL_SEEDS))


@pytest.mark.parametrize("rows", [2, 3])
def test_loo_of_many_tiny_classes_equals_refits(rows):
    """Every row dominates its class; of the rows of one class a feature is constant, of those of another all are."""
    rng = np.random.default_rng(rows)
    y = np.repeat(np.arange(12), rows)
    X = rng.normal(size=(len(y), 3)) + 2 * rng.normal(size=(12, 3))[y]
    X[y == 0, 0] = 1.0
    X[y == 1] = 2.0
    fast = grid_log_predictive_loo(Sample(X, y, 12), [3.0, 9.0], ALL_SEEDS)
    assert_equal_scores(fast, refits(X, y, 12, [3.0, 9.0], ALL_SEEDS))


@pytest.mark.parametrize("d, n", [(30, 40), (60, 30), (60, 90)])
def test_loo_equals_refits_in_high_dimension(d, n):
    rng = np.random.default_rng(d)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    fast = grid_log_predictive_loo(Sample(X, y, 3), [d, 6.0 * d])
    assert_equal_scores(fast, refits(X, y, 3, [d, 6.0 * d], BDA7_SEEDS))


def test_features_of_any_scale():
    """Under diagonal seeds a rescaling adds the constant -sum log(scale) to every score."""
    X, y, r, d = breaking_problem(10)
    scale = 10.0 ** np.random.default_rng(0).integers(-6, 7, size=d)
    seeds = [seed for seed in BDA7_SEEDS if seed.base.startswith("diag")]
    plain, scaled = (grid_log_predictive_loo(Sample(Z, y, r), [d, 2.0 * d], seeds) for Z in (X, X * scale))
    assert_allclose(scaled + np.log(scale).sum(), plain, rtol=1e-8, atol=1e-8)


def test_an_emptied_class_scores_minus_infinity_and_counts_as_an_error():
    X = np.array([[0.0, 1.0], [0.2, 0.7], [-0.3, 1.2], [9.0, 9.0]])
    y = np.array([0, 0, 0, 1])
    scores = grid_log_predictive_loo(Sample(X, y, 2), [2.0])
    assert np.isneginf(scores[..., 3, 1]).all()
    assert wrong_predictions(scores, y)[..., 3].all()


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


def test_closed_form_loo_of_the_noninformative_prior_needs_d_plus_2_rows():
    X, *_ = one_class(6, 4)
    assert np.isfinite(log_predictive_loo(X, seed=np.zeros((4, 4)), dof=5.0)).all()
    with pytest.raises(PredictiveNotDefined):
        log_predictive_loo(X[:5], seed=np.zeros((4, 4)), dof=5.0)
    assert np.isneginf(log_predictive_loo(X[:1], seed=np.eye(4), dof=5.0)).all()


def test_freezing_the_seed_leaks_the_held_out_row():
    """Seeds computed with the held-out row score it better than seeds without: freezing them is no leave-one-out."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 50)), rng.integers(0, 3, 40)
    n, d = X.shape
    statistics = class_statistics(X, y, 3)
    rule, q = Seed("diag_class", -1), float(d)
    honest = grid_log_predictive_loo(Sample(X, y, 3), [q], [rule])[0, 0]
    frozen = np.column_stack(
        [
            log_predictive_loo(X[y == h], seed=seed_matrix(rule, q, statistics, h), dof=q).mean()
            for h in range(3)
        ]
    )  # fmt: skip
    assert frozen.mean() > honest[np.arange(n), y].mean() + 5


def test_grid_log_predictive_equals_the_single_model():
    X, y, r, d = breaking_problem(0)
    statistics = class_statistics(X, y, r)
    new = np.random.default_rng(1).normal(size=(5, d))
    grid = grid_log_predictive(new, statistics, [d, 2.0 * d], ALL_SEEDS)
    for a, q in enumerate((d, 2.0 * d)):
        for b, rule in enumerate(ALL_SEEDS):
            for h in range(r):
                try:
                    one = log_predictive(
                        new, statistics.counts[h], statistics.means[h], statistics.scatters[h],
                        seed=seed_matrix(rule, q, statistics, h), dof=q,
                    )  # fmt: skip
                except PredictiveNotDefined:
                    one = np.full(5, -np.inf)
                assert_allclose(grid[a, b, :, h], one, rtol=1e-10)


# ---------------------------------------------------------------- the eigenvalues of section 4.2


def test_4_8_to_4_12_corrected():
    """n Sigma_ML is Wishart with n - 1 degrees of freedom: E|Sigma_ML| = |Sigma| prod (n-1-d+j)/n; the printed (4.10)
    has n-d+j, which belongs to a known mean. Its AM-GM bound (4.11-4.12) becomes (1 - (d+1)/(2n))^d."""
    n, d, runs = 12, 4, 40_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(runs, n, d))
    X -= X.mean(axis=1, keepdims=True)
    values = np.linalg.eigvalsh(X.swapaxes(1, 2) @ X / n)
    determinant = values.prod(axis=1)
    error = determinant.std() / np.sqrt(runs)
    j = np.arange(1, d + 1)
    corrected, printed_value = np.prod((n - 1 - d + j) / n), np.prod((n - d + j) / n)
    assert abs(determinant.mean() - corrected) < 4 * error < abs(printed_value - corrected)
    assert corrected <= (1 - (d + 1) / (2 * n)) ** d <= np.exp(-d * (d + 1) / (2 * n))
    assert_allclose(((n - d + j) / n).mean(), 1 - (d - 1) / (2 * n))  # the step (4.11) to (4.12) is an equality
    # (4.8), (4.9): the extreme eigenvalues are biased outwards of the mean (n-1)/n Sigma, which itself is biased
    assert values[:, -1].mean() > (n - 1) / n > values[:, 0].mean()
    one = rng.normal(size=(runs, n)).var(axis=1)
    assert one.mean() < 1 - 0.5 / n  # d = 1: (4.8) as printed would have E lambda_1 >= lambda_1
