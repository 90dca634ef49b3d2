"""Estimates of a uniform distribution: thesis2007 section 7.5 and appendix A.7, equation by equation."""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
from model_cases import refused, slow
from scipy import integrate, optimize, stats

from rcpkg import uniform
from rcpkg.bregman.functional import Measure, total_squared_difference

X = np.array([0.2, 0.7, 1.3, 0.9])
M, n = 1.3, 4


def quad(f, a, b):
    return integrate.quad(f, a, b, epsabs=1e-13, epsrel=1e-11, limit=400)[0]


def posterior_density(a, N, maximum=M):
    return N * maximum**N * a ** -(N + 1.0)


# ---- the estimates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [1, 2, 10, 154, 155, 1000, 10**6])
@pytest.mark.parametrize("t2", [1e-7, 1e-5, 1e-3, 1.0, 3.0, 100.0])
def test_parameter_estimate_against_mpmath_up_to_a_million_draws(draws, t2):
    """(7.22), corrected, in 60 digits."""
    for maximum, t1 in ((0.9, 1.0), (0.5, 0.25)):
        with mp.workdps(60):
            alpha, z = mp.mpf(draws) + mp.mpf(t1), 1 / (mp.mpf(t2) * mp.mpf(maximum))
            ratio = mp.gammainc(alpha - 1, 0, z, regularized=True) / mp.gammainc(alpha, 0, z, regularized=True)
            exact = ratio / (mp.mpf(t2) * (alpha - 1))
        assert float(uniform.parameter_mean(maximum, draws, t1, t2)) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("draws", [3, 7])
def test_flat_likelihood_mean_is_finite_from_three_draws_on(draws):
    """Section 7.5.1 calls the estimate under Lebesgue measure infinite; that holds for n <= 2 only."""
    mean = quad(lambda a: a * a**-draws, M, np.inf) / quad(lambda a: a**-draws, M, np.inf)
    assert mean == pytest.approx(M * (draws - 1) / (draws - 2))


def test_risk_and_derivatives_of_a7():
    """J, J' with its minus sign, and J'' = 1/(b^3 M^(n+1/2)) = 2^(-3/(n+1/2)) M^-(n+7/2)."""
    N = n + 0.5

    def J(b):
        return 2 / (N * (N + 1) * b ** (N + 1)) - 1 / (b * N * M**N) + 1 / ((N + 1) * M ** (N + 1))

    for b in (1.4, 2.0, 3.5):

        def integrand(a, b=b):
            return abs(b - a) / (a * b) * a ** -(n + 1.5)

        assert J(b) == pytest.approx(quad(integrand, M, b) + quad(integrand, b, np.inf), rel=1e-9)
        h = 1e-6
        assert (J(b + h) - J(b - h)) / (2 * h) == pytest.approx(
            -2 / (N * b ** (N + 2)) + 1 / (b**2 * N * M**N), abs=1e-8
        )
    b, h = 2 ** (1 / N) * M, 1e-4
    second = (J(b + h) + J(b - h) - 2 * J(b)) / h**2
    assert second == pytest.approx(1 / (b**3 * M**N), rel=1e-5)
    assert second == pytest.approx(2 ** (-3 / N) * M ** -(n + 3.5), rel=1e-5)
    assert abs(second / (2 ** (-3 / (n + 1 / 6)) * M ** -(n + 3.5)) - 1) > 0.01


@pytest.mark.parametrize("measure", ["fisher", "lebesgue", 0.0])
def test_unrestricted_estimate_is_the_mean_density(measure):
    """(7.20) without restriction is (7.18), here (7.23)."""
    N = float(uniform.order(n, measure))
    g = uniform.bayes_unrestricted(X, measure)
    x = np.array([0.1, 1.2, 1.3, 1.7, 4.0])
    mean = [quad(lambda a: 1 / a * posterior_density(a, N), max(v, M), np.inf) for v in x]
    np.testing.assert_allclose(g.pdf(x), mean, rtol=1e-9)
    if measure == "fisher":
        np.testing.assert_allclose(g.pdf(x), n * M**n / ((n + 1) * np.maximum(x, M) ** (n + 1)))


@pytest.mark.parametrize("measure", ["fisher", "lebesgue"])
def test_unrestricted_estimate_is_a_scipy_distribution(measure):
    g = uniform.bayes_unrestricted(X, measure)
    for v in (0.4, 1.3, 2.5):
        assert g.cdf(v) == pytest.approx(quad(g.pdf, 0, min(v, M)) + (quad(g.pdf, M, v) if v > M else 0))
        assert g.ppf(g.cdf(v)) == pytest.approx(v) and g.sf(v) == pytest.approx(1 - g.cdf(v))
        assert g.logpdf(v) == pytest.approx(np.log(g.pdf(v)))
    assert g.pdf(-0.1) == 0 and g.cdf(-1) == 0
    mean = quad(lambda v: v * g.pdf(v), 0, M) + quad(lambda v: v * g.pdf(v), M, np.inf)
    assert g.mean() == pytest.approx(mean)
    assert stats.kstest(g.rvs(2000, random_state=0), g.cdf).pvalue > 0.01


def test_far_tail_keeps_its_precision():
    g = uniform.bayes_unrestricted(np.ones(10))
    assert g.sf(1e6) == pytest.approx(1e-60 / 11)
    assert g.isf(1e-60) == pytest.approx((11e-60) ** -0.1, rel=1e-9)


@pytest.mark.parametrize("measure", ["fisher", "lebesgue", 0.3])
def test_projection_7_24_equals_the_restricted_estimate(measure):
    """The conjecture after (7.24), and the projection by direct minimisation."""
    g = uniform.bayes_unrestricted(X, measure)
    projected = uniform.project(g).support()[1]
    assert projected == pytest.approx(uniform.bayes_restricted(X, measure).support()[1], rel=1e-9)
    best = optimize.minimize_scalar(lambda a: 1 / a - 2 * g.cdf(a) / a, bounds=(0.5, 5), method="bounded").x
    assert projected == pytest.approx(best, rel=1e-4)


def test_projection_of_other_densities():
    assert uniform.project(stats.uniform(scale=3.0)).support()[1] == pytest.approx(3.0)
    a = uniform.project(stats.expon()).support()[1]
    assert 1 - np.exp(-a) * (1 + a) == pytest.approx(0.5)
    refused("must live on", uniform.project, stats.norm())


# ---- squared errors ----------------------------------------------------------------------------------------


def test_squared_errors_against_quadrature():
    line = Measure.lebesgue(0, np.inf, breaks=[0.6, 1.0, 1.3], n_nodes=60)
    truth = stats.uniform(scale=1.3).pdf
    assert total_squared_difference(stats.uniform(scale=0.6).pdf, truth, line) == pytest.approx(
        float(uniform.uniform_squared_error(0.6, 1.3))
    )
    g = uniform.bayes_unrestricted([0.6, 0.1, 0.2])
    assert total_squared_difference(g.pdf, truth, line) == pytest.approx(
        float(uniform.unrestricted_squared_error(0.6, 3, scale=1.3))
    )


ESTIMATES = [
    ("maximum_likelihood", {}),
    ("bayes_parameter", {"t2": np.inf}),
    ("bayes_parameter", {"t2": 1.0}),
    ("bayes_parameter", {"t2": 100.0, "t1": 0.5}),
    ("bayes_restricted", {"measure": "fisher"}),
    ("bayes_restricted", {"measure": "lebesgue"}),
    ("bayes_unrestricted", {"measure": "fisher"}),
    ("bayes_unrestricted", {"measure": "lebesgue"}),
    ("bayes_unrestricted", {"measure": 0.0}),
]


def realised_error(name, maximum, draws, options):
    if name == "bayes_unrestricted":
        return uniform.unrestricted_squared_error(maximum, draws, **options)
    if name == "maximum_likelihood":
        end = maximum
    elif name == "bayes_restricted":
        end = 2 ** (1 / uniform.order(draws, **options)) * maximum
    else:
        end = uniform.parameter_mean(maximum, draws, options.get("t1", 1.0), options["t2"])
    return uniform.uniform_squared_error(end)


@pytest.mark.parametrize(("name", "options"), ESTIMATES)
@pytest.mark.parametrize("draws", [*slow(2), 3, 10, 155])
def test_expected_squared_error_against_quadrature(name, options, draws):
    """E over M with density n u^(n-1), in the variable e = -n log u."""
    value = uniform.expected_squared_error(name, draws, **options)
    grid = np.linspace(0, 80, 400001) if draws == 2 else np.linspace(0, 60, 100001)
    errors = realised_error(name, np.exp(-grid / draws), draws, options)
    assert value == pytest.approx(integrate.simpson(np.exp(-grid) * errors, x=grid), rel=1e-7)


def test_closed_forms_in_short():
    for draws in (2, 5, 50):
        risk = partial(uniform.expected_squared_error, n=draws)
        assert risk("maximum_likelihood") == pytest.approx(1 / (draws - 1))
        assert risk("bayes_restricted") == pytest.approx(draws * (1 - 2 ** (-1 / draws)) / (draws - 1))
        assert risk("bayes_unrestricted") == pytest.approx(draws / ((draws - 1) * (2 * draws + 1)))
        assert risk("bayes_unrestricted", measure=0.0) == pytest.approx(1 / (2 * draws - 1))
        assert risk("maximum_likelihood", scale=4.0) == pytest.approx(risk("maximum_likelihood") / 4)
        assert risk("bayes_parameter", t2=0.25, scale=4.0) == pytest.approx(risk("bayes_parameter", t2=1.0) / 4)


def test_infinite_where_infinite():
    for name, options in ESTIMATES:
        if options.get("measure") == 0.0:
            continue
        value = uniform.expected_squared_error(name, 1, **options)
        finite = name == "bayes_parameter" and np.isfinite(options["t2"])
        assert np.isfinite(value) == finite, name
    # the integral over M in (eps, 1) grows without bound, like the logarithm of eps
    partial = [quad(lambda u: 1 / u - 1, eps, 1) for eps in (1e-2, 1e-4, 1e-6)]
    assert np.diff(partial) == pytest.approx(np.log(100), rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform.maximum_likelihood([]), "non-empty"),
        (lambda: uniform.maximum_likelihood([-1.0, 2.0]), "non-negative"),
        (lambda: uniform.bayes_restricted([0.0]), "not all of them zero"),
        (lambda: uniform.bayes_restricted(X, measure="jeffreys"), "measure must be one of fisher"),
        (lambda: uniform.bayes_unrestricted([1.0], measure=0.0), "improper"),
        (lambda: uniform.bayes_unrestricted(X, measure=np.nan), "improper"),
        (lambda: uniform.parameter_mean(-1.0, 3), "maximum must be a positive number"),
        (lambda: uniform.bayes_parameter(X, t2=0.0), "t2 positive"),
        (lambda: uniform.bayes_parameter([1.0], t1=0.0), "infinite"),
        (lambda: uniform.expected_squared_error("median", 3), "name must be one of"),
        (lambda: uniform.expected_squared_error("bayes_restricted", 0), "positive whole number"),
        (lambda: uniform.expected_squared_error("bayes_restricted", 3, scale=0.0), "scale must be positive"),
    ],
)
def test_bad_input(call, message):
    refused(message, call)


def test_prior_alone_decides_where_it_outweighs_any_number_of_draws():
    # a library's 1F1(1; 32; z) takes a time in proportion to z, here 1e45
    assert float(uniform.parameter_mean(1e-45, 30, 1.0, 1.0)) == pytest.approx(1 / 30, rel=1e-12)
