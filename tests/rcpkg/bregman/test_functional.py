"""Functional Bregman divergences: thesis2007 sections 7.2-7.4, appendices A.4-A.6 and B."""

import numpy as np
import pytest
from rcbook.random_functions import RandomFunction

from rcpkg.bregman import DomainError, divergences
from rcpkg.bregman.functional import (
    FunctionalBregmanDivergence,
    Measure,
    pointwise,
    relative_entropy,
    squared_bias,
    total_squared_difference,
)

INTERVAL = Measure.lebesgue(0, 1, n_nodes=40)
ITAKURA_SAITO = pointwise("itakura_saito")
ALL = [total_squared_difference, squared_bias, relative_entropy, ITAKURA_SAITO, pointwise("exponential")]
each_divergence = pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)


def functions(size, seed):
    """Smooth positive functions on the unit interval, at the nodes."""
    c = np.random.default_rng(seed).normal(size=(size, 3)) / 2
    x = INTERVAL.nodes
    return np.exp(c[:, :1] + c[:, 1:2] * x + c[:, 2:] * np.cos(4 * x))


@each_divergence
def test_divergence_is_its_definition_7_1(d):
    f, g = functions(20, 1), functions(20, 2)
    definition = d.phi(f, INTERVAL) - d.phi(g, INTERVAL) - d.derivative(g, f - g, INTERVAL)
    np.testing.assert_allclose(d(f, g, INTERVAL), definition, rtol=1e-10, atol=1e-11)


@each_divergence
def test_first_variation_b1_against_finite_differences(d):
    """(B.1), and (7.4)-(7.5) for relative entropy: the remainder is of second order in the perturbation."""
    g, a = functions(1, 3)[0], functions(1, 4)[0] - functions(1, 5)[0]
    remainders = [
        abs(d.phi(g + h * a, INTERVAL) - d.phi(g, INTERVAL) - d.derivative(g, h * a, INTERVAL)) for h in (1e-2, 1e-3)
    ]
    assert remainders[0] < 1e-2 and remainders[0] / remainders[1] == pytest.approx(100, rel=0.05)


@each_divergence
def test_second_variation_b2_b3_against_finite_differences(d):
    """(B.2) with its factor 1/2, and (B.3) in two different directions, as (A.22) needs it."""
    g, a, b = functions(3, 6)
    b = b - 1.3
    h = 1e-5
    change = d.derivative(g + h * a, b, INTERVAL) - d.derivative(g - h * a, b, INTERVAL)
    np.testing.assert_allclose(d.second_derivative(g, a, b, INTERVAL), change / (2 * h), rtol=1e-8)
    np.testing.assert_allclose(d.second_derivative(g, a, b, INTERVAL), d.second_derivative(g, b, a, INTERVAL))
    h = 1e-3
    second_order = d.phi(g + h * a, INTERVAL) - d.phi(g, INTERVAL) - d.derivative(g, h * a, INTERVAL)
    assert second_order / h**2 == pytest.approx(d.second_derivative(g, a, a, INTERVAL) / 2, rel=5e-3)


def test_appendix_b_sum_has_one_second_variation_too_many():
    """Before (B.3): with 1/2 d2[f; a, a] once the sum vanishes to second order, printed twice it does not."""
    d = relative_entropy
    f, a = functions(2, 7)
    for h in (1e-2, 1e-3):
        first = d.derivative(f, h * a, INTERVAL) - d.derivative(f + h * a, h * a, INTERVAL)
        halves = [d.second_derivative(at, h * a, h * a, INTERVAL) / 2 for at in (f, f + h * a)]
        assert abs(first + sum(halves)) < 0.2 * h**3
        assert abs(first + sum(halves) + halves[0]) > 0.1 * h**2


def test_closed_forms_of_the_three_examples():
    """Section 7.2.1: squared difference, squared bias with its L1 bound, relative entropy of densities."""
    f, g = functions(2, 8)
    gap = f - g
    assert total_squared_difference(f, g, INTERVAL) == pytest.approx(INTERVAL.integrate(gap**2))
    assert squared_bias(f, g, INTERVAL) == pytest.approx(INTERVAL.integrate(gap) ** 2)
    assert squared_bias(f, g, INTERVAL) <= INTERVAL.integrate(np.abs(gap)) ** 2
    p, q = f / INTERVAL.integrate(f), g / INTERVAL.integrate(g)
    assert relative_entropy(p, q, INTERVAL) == pytest.approx(INTERVAL.integrate(p * np.log(p / q)))
    # of functions with different masses, (7.3) with (7.5) gives the I-divergence
    direct = INTERVAL.integrate(f * np.log(f / g)) - INTERVAL.integrate(gap)
    assert relative_entropy(f, g, INTERVAL) == pytest.approx(direct)


def test_remainder_7_6_lies_between_zero_and_its_bound():
    """(7.6) is pointwise non-negative and at most h^2/g: no Jensen inequality is needed."""
    g, h = functions(1, 9)[0], 0.3 * (functions(1, 10)[0] - 1)
    h = np.maximum(h, -0.9 * g)
    integrand = (g + h) * np.log((g + h) / g) - h
    assert np.all(integrand >= 0) and np.all(integrand <= h**2 / g + 1e-15)
    assert INTERVAL.integrate(integrand) == pytest.approx(relative_entropy(g + h, g, INTERVAL))


def test_simple_functions_7_2_with_zeros():
    """(7.2): the integral of a simple function with 0 log 0 = 0, also where f vanishes with g (f << g)."""
    measure = Measure(np.arange(3.0), np.array([0.5, 2.0, 1.0]))
    g, f = np.array([0.0, 2.0, 3.0]), np.array([0.0, 1.0, 4.0])
    assert relative_entropy.phi(g, measure) == pytest.approx(2 * 2 * np.log(2) + 3 * np.log(3))
    expected = 2 * (np.log(1 / 2) + 1) + (4 * np.log(4 / 3) - 1)
    assert relative_entropy(f, g, measure) == pytest.approx(expected)
    assert relative_entropy(np.array([0.1, 1.0, 4.0]), g, measure) == np.inf


@pytest.mark.parametrize("name", ["squared", "generalized_i", "itakura_saito", "exponential"])
def test_counting_measure_gives_the_vector_divergence_a11(name):
    """(7.7), (A.11): Proposition 7.2.2 on the counting measure."""
    measure = Measure.counting(np.arange(5.0))
    x, y = np.exp(np.random.default_rng(11).normal(size=(2, 5)))
    assert pointwise(name)(x, y, measure) == pytest.approx(divergences[name](x, y))


def test_pointwise_form_7_8_a12():
    f, g, h = functions(3, 13)
    s = divergences["exponential"]
    integrand = s(f[:, None], g[:, None])
    assert pointwise("exponential")(f, g, INTERVAL) == pytest.approx(INTERVAL.integrate(integrand))
    assert pointwise(s).derivative(f, h, INTERVAL) == pytest.approx(INTERVAL.integrate(np.exp(f) * h))


def test_extension_of_a5_is_not_convex():
    """A.5 extends s to x < 0 as -s(-x) + 2 s(0), concave there; Definition 7.2.1 asks for convexity."""

    def printed(x):
        return np.where(x >= 0, x**2 + x, -(x**2 - x))

    def corrected(x):
        return np.where(x >= 0, x**2 + x, x + x**2)

    f, g = np.full(40, -2.0), np.zeros(40)
    midpoint = INTERVAL.integrate(printed((f + g) / 2))
    assert midpoint > INTERVAL.integrate(printed(f) + printed(g)) / 2
    assert INTERVAL.integrate(corrected((f + g) / 2)) < INTERVAL.integrate(corrected(f) + corrected(g)) / 2


def test_squared_bias_is_not_pointwise():
    """(A.13)-(A.17): homogeneity forces f(alpha) = f(1) alpha^2, which misses the product of two disjoint sets."""
    first = (INTERVAL.nodes < 0.5).astype(float)
    second, zero = 1 - first, np.zeros(40)
    for alpha in (0.5, 2.0, 3.0):
        scaled = squared_bias(alpha * first, zero, INTERVAL)
        # (A.13) on a multiple of an indicator, and (A.14) with f(0) = 0
        assert scaled == pytest.approx(alpha**2 * squared_bias(first, zero, INTERVAL))
    for d, cross in ((total_squared_difference, 0.0), (pointwise("exponential"), 0.0), (squared_bias, 0.5)):
        apart = d(first, zero, INTERVAL) + d(second, zero, INTERVAL)
        assert d(first + second, zero, INTERVAL) - apart == pytest.approx(cross, abs=1e-12)
    # the cross term is twice (A.16), the product of the measures; (A.15) and (A.17) make it zero
    assert INTERVAL.integrate(first) * INTERVAL.integrate(second) == pytest.approx(0.25)
    assert INTERVAL.integrate(first * second) == 0


# ---- section 7.3, properties 1-7 ---------------------------------------------------------------------------


@each_divergence
def test_property_1_non_negative(d):
    """(7.9)-(7.12); squared bias is not strictly convex: zero does not mean equal."""
    f, g = functions(30, 14), functions(30, 15)
    assert np.all(d(f, g, INTERVAL) > 0)
    np.testing.assert_allclose(d(f, f, INTERVAL), 0, atol=1e-14)
    t = np.linspace(0, 1, 11)[:, None]
    curve = d.phi(t * f[0] + (1 - t) * g[0], INTERVAL)
    slope = d.derivative(t * f[0] + (1 - t) * g[0], f[0] - g[0], INTERVAL)
    assert curve[-1] - curve[0] >= slope[0] - 1e-12 and np.all(np.diff(slope) > 0)
    p, q = f / INTERVAL.integrate(f)[:, None], g / INTERVAL.integrate(g)[:, None]
    if d is squared_bias:
        np.testing.assert_allclose(d(p, q, INTERVAL), 0, atol=1e-28)
    else:
        assert np.all(d(p, q, INTERVAL) > 1e-6)


@each_divergence
def test_property_2_convex_with_the_full_second_variation(d):
    """The second variation of f -> d[f, g] is that of phi; printed is half of it, against (B.2)."""
    f, g, a = functions(3, 16)
    h = 1e-3
    bend = d(f + h * a, g, INTERVAL) + d(f - h * a, g, INTERVAL) - 2 * d(f, g, INTERVAL)
    assert bend / h**2 == pytest.approx(d.second_derivative(f, a, a, INTERVAL), rel=1e-4)


def test_properties_3_and_4_linear_and_affine_classes():
    f, g = functions(2, 17)

    def combine(c1, d1, c2, d2, slope=0.0, constant=0.0):
        return FunctionalBregmanDivergence(
            "combination",
            lambda g, w: c1 * d1.functional(g, w) + c2 * d2.functional(g, w) + slope * (g @ w) + constant,
            lambda g, w: c1 * d1.gradient(g, w) + c2 * d2.gradient(g, w) + slope,
            lambda g, w, a: c1 * d1.hessian(g, w, a) + c2 * d2.hessian(g, w, a),
        )

    mixed = combine(2.0, relative_entropy, 3.0, squared_bias)
    expected = 2 * relative_entropy(f, g, INTERVAL) + 3 * squared_bias(f, g, INTERVAL)
    assert mixed(f, g, INTERVAL) == pytest.approx(expected)
    shifted = combine(2.0, relative_entropy, 3.0, squared_bias, slope=-4.0, constant=7.0)
    assert shifted(f, g, INTERVAL) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("d", "psi"),
    [
        (total_squared_difference, lambda G: INTERVAL.integrate(G**2 / 4)),
        (relative_entropy, lambda G: INTERVAL.integrate(np.exp(G - 1))),
        (ITAKURA_SAITO, lambda G: INTERVAL.integrate(-1 - np.log(-G))),
        (pointwise("exponential"), lambda G: INTERVAL.integrate(G * np.log(G) - G)),
    ],
    ids=lambda p: getattr(p, "name", ""),
)
def test_property_6_dual_divergence(d, psi):
    """(7.13)-(7.17): the Legendre pair, and d_phi[f, g] = d_psi[G, F] = phi[f] + psi[G] - int f G."""
    f, g, a = functions(3, 19)
    F, G = d.gradient(f, INTERVAL.weights), d.gradient(g, INTERVAL.weights)
    assert d.phi(g, INTERVAL) == pytest.approx(-psi(G) + INTERVAL.integrate(g * G))
    assert d.derivative(g, a, INTERVAL) == pytest.approx(INTERVAL.integrate(G * a))
    h = 1e-5 * a
    assert (psi(G + h) - psi(G - h)) / 2e-5 == pytest.approx(INTERVAL.integrate(g * a), rel=1e-7)
    assert d(f, g, INTERVAL) == pytest.approx(d.phi(f, INTERVAL) + psi(G) - INTERVAL.integrate(f * G))
    assert d(f, g, INTERVAL) == pytest.approx(psi(G) - psi(F) - INTERVAL.integrate(f * (G - F)))


def test_squared_bias_has_no_dual():
    """Its gradient is a constant function and forgets all of g but the integral: (7.14) has no inverse."""
    f, g = functions(2, 20)
    g = g * INTERVAL.integrate(f) / INTERVAL.integrate(g)
    np.testing.assert_allclose(squared_bias.gradient(f, INTERVAL.weights), squared_bias.gradient(g, INTERVAL.weights))


@each_divergence
def test_property_7_pythagorean_identity(d):
    f, g, h = functions(3, 21)
    right = d(f, g, INTERVAL) + d(g, h, INTERVAL)
    right += d.derivative(g, f - g, INTERVAL) - d.derivative(h, f - g, INTERVAL)
    assert d(f, h, INTERVAL) == pytest.approx(right)


# ---- the mean as minimiser ---------------------------------------------------------------------------------


@each_divergence
def test_variations_of_the_risk_a18_to_a30(d):
    """(A.23): dJ[g; a] = -d2phi[g; EF - g, a]; (A.29)-(A.30): at the mean, d2J = d2phi > 0."""
    random = RandomFunction(functions(6, 24), np.ones(6))
    mean, (g, a) = random.mean(INTERVAL), functions(2, 25)

    def risk(at):
        return random.expected_divergence(d, at, INTERVAL)

    h = 1e-5
    slope = (risk(g + h * a) - risk(g - h * a)) / (2 * h)
    assert slope == pytest.approx(-d.second_derivative(g, mean - g, a, INTERVAL), rel=1e-6)
    h = 1e-3
    bend = (risk(mean + h * a) + risk(mean - h * a) - 2 * risk(mean)) / h**2
    assert bend == pytest.approx(d.second_derivative(mean, a, a, INTERVAL), rel=1e-4)


def test_three_readings_of_theorem_7_4_1():
    """Strong positivity for a >= 0: with strict convexity the conclusion holds, for squared bias it is false.

    (In all directions nothing in infinite dimension has it, see the next test.)
    """
    x, w = INTERVAL.nodes, INTERVAL.weights
    kernel = np.exp(-3 * np.abs(x[:, None] - x))
    smoothed = FunctionalBregmanDivergence(
        "smoothed difference",
        functional=lambda g, w: np.sum((g * w) @ kernel * (g * w), axis=-1),
        gradient=lambda g, w: 2 * (g * w) @ kernel,
        hessian=lambda g, w, a: 2 * (a * w) @ kernel,
    )
    a = functions(50, 28)
    norms = INTERVAL.integrate(np.abs(a)) ** 2
    assert np.all(smoothed.second_derivative(a, a, a, INTERVAL) >= 2 * np.exp(-3) * norms)
    np.testing.assert_allclose(squared_bias.second_derivative(a, a, a, INTERVAL), 2 * norms)
    # strictly convex: the form is positive definite; its quotient by the norm falls with the frequency
    assert np.linalg.eigvalsh(np.sqrt(w)[:, None] * kernel * np.sqrt(w)).min() > 0
    waves = [np.cos(2 * np.pi * j * x) for j in (1, 2, 4)]
    shares = [smoothed.second_derivative(v, v, v, INTERVAL) / INTERVAL.integrate(np.abs(v)) ** 2 for v in waves]
    assert shares[0] > 2 * shares[1] > 4 * shares[2] > 0
    densities = functions(6, 26)
    densities = densities / INTERVAL.integrate(densities)[:, None]
    random = RandomFunction(densities[:5], np.ones(5))
    assert np.all(
        random.expected_divergence(smoothed, densities, INTERVAL) > random.information(smoothed, INTERVAL) + 1e-6
    )
    # every density has the least expected squared bias
    np.testing.assert_allclose(random.expected_divergence(squared_bias, densities, INTERVAL), 0, atol=1e-28)
    assert total_squared_difference(densities[5], random.mean(INTERVAL), INTERVAL) > 1e-3


def test_relative_entropy_is_frechet_differentiable_on_bounded_functions():
    """With F >= m > 0 and |a| <= m/2 the remainder of (B.1) is at most |a|^2/m, and |a|^2/m^2 for Itakura-Saito."""
    F = functions(1, 36)[0]
    m = F.min()
    for d, power in ((relative_entropy, 1), (ITAKURA_SAITO, 2)):
        remainders = []
        for size in (0.5, 0.05):
            a = size * m * np.sin(9 * INTERVAL.nodes)
            remainder = d.phi(F + a, INTERVAL) - d.phi(F, INTERVAL) - d.derivative(F, a, INTERVAL)
            assert 0 < remainder <= np.abs(a).max() ** 2 / m**power
            remainders.append(remainder)
        assert remainders[0] / remainders[1] == pytest.approx(100, rel=0.2)


def test_strong_positivity_in_l1_fails_with_the_number_of_cells():
    """A form between k|a|_1^2 and C|a|_1^2 allows C/k disjoint sets at most; 2 int a^2 has C/k = n cells."""
    for n in (4, 16, 64):
        cells = Measure(np.arange(n) / n, np.full(n, 1 / n))
        bump = np.eye(n)[0] * n
        signs = np.ones(n)
        upper = total_squared_difference.second_derivative(signs, bump, bump, cells)
        lower = total_squared_difference.second_derivative(signs, signs, signs, cells)
        norms = cells.integrate(np.abs(bump)) ** 2, cells.integrate(np.abs(signs)) ** 2
        assert (upper / norms[0]) / (lower / norms[1]) == pytest.approx(n)


@pytest.mark.slow
@each_divergence
def test_property_5_equidistant_functions_form_a_hyperplane(d):
    """d[f, g1] - d[f, g2] = Lf - c is affine in f."""
    g1, g2, f1, f2 = functions(4, 18)
    constant = (
        d.phi(g1, INTERVAL) - d.phi(g2, INTERVAL) - d.derivative(g1, g1, INTERVAL) + d.derivative(g2, g2, INTERVAL)
    )
    for f in (f1, f2, 0.4 * f1 + 0.6 * f2):
        difference = d(f, g1, INTERVAL) - d(f, g2, INTERVAL)
        L = d.derivative(g2, f, INTERVAL) - d.derivative(g1, f, INTERVAL)
        assert difference == pytest.approx(L - constant, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "is_bregman"),
    [
        (lambda f, g: relative_entropy(f, g, INTERVAL), True),
        (lambda f, g: ITAKURA_SAITO(f, g, INTERVAL), True),
        (lambda f, g: relative_entropy(g, f, INTERVAL), False),
        (lambda f, g: INTERVAL.integrate((np.sqrt(f) - np.sqrt(g)) ** 2), False),
    ],
    ids=["relative entropy", "Itakura-Saito", "reversed", "Hellinger"],
)
def test_converse_a_loss_is_the_divergence_of_its_first_argument(loss, is_bregman):
    """T(u) + T(v) + T(-u - v) = 0, and R is the divergence of R[., g0]: for Bregman divergences only."""
    x = INTERVAL.nodes
    m, g0, a = 2 + np.cos(3 * x), 1 + x, 0.5 * np.sin(5 * x + 5)
    u, v = 0.5 * np.sin(x + 1), 0.5 * np.sin(3 * x + 3)

    def T(w, h=1e-5):
        return (loss(m + w, m + h * a) - loss(m + w, m - h * a)) / (2 * h)

    scale = max(abs(T(w)) for w in (u, v, u + v))
    assert (abs(T(u) + T(v) + T(-u - v)) < 1e-5 * scale) == is_bregman
    h, off = 1e-4, []
    for w in (u, v, -u, -v):
        slope = (loss(m + h * w, g0) - loss(m - h * w, g0)) / (2 * h)
        off.append(abs((loss(m + w, g0) - loss(m, g0) - slope) / loss(m + w, m) - 1))
    assert (max(off) < 1e-5) == is_bregman


# ---- measures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Measure(np.zeros(2), np.zeros(3)), "same length"),
        (lambda: Measure(np.zeros(2), np.array([1.0, 0.0])), "positive"),
        (lambda: Measure.lebesgue(1, 0), "lower < breaks < upper"),
        (lambda: Measure.grid([0.0, 0.0]), "increasing"),
        (lambda: Measure.lebesgue(0, np.inf), "positive break"),
        (lambda: INTERVAL.integrate(np.ones(3)), "one value a node"),
        (lambda: INTERVAL.integrate(np.full(40, np.nan)), "not finite at the node"),
        (lambda: pointwise("kl"), "no pointwise form"),
        (lambda: RandomFunction(functions(2, 1), [1.0, -1.0]), "probabilities must be 2"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_domain_violations_name_the_node():
    with pytest.raises(DomainError, match=r"relative_entropy: f\[7\] = -1"):
        relative_entropy(np.where(np.arange(40) == 7, -1.0, 1.0), np.ones(40), INTERVAL)
    with pytest.raises(DomainError, match="g"):
        relative_entropy.derivative(np.zeros(40), np.ones(40), INTERVAL)
