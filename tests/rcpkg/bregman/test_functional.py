"""Functional Bregman divergences: thesis2007 sections 7.2-7.4, appendices A.4-A.6 and B."""

import numpy as np
import pytest
from model_cases import refused
from rcbook.random_functions import RandomFunction

from rcpkg.bregman import DomainError, divergences
from rcpkg.bregman.functional import Measure, pointwise, relative_entropy, squared_bias, total_squared_difference

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


# ---- section 7.3, properties 1-7 ---------------------------------------------------------------------------


def test_a_combination_with_a_negative_coefficient_is_not_convex():
    """Property 3: relative entropy less total squared difference has second variation int a^2 (1/g - 2), g > 1 here."""
    f, g = 1 + functions(2, 21)
    line = np.stack([f, (f + g) / 2, g])
    assert np.diff(relative_entropy.phi(line, INTERVAL) - total_squared_difference.phi(line, INTERVAL), 2) < 0
    assert relative_entropy(f, g, INTERVAL) - total_squared_difference(f, g, INTERVAL) < 0


def test_squared_bias_has_no_dual():
    """Its gradient is a constant function and forgets all of g but the integral: (7.14) has no inverse."""
    f, g = functions(2, 20)
    g = g * INTERVAL.integrate(f) / INTERVAL.integrate(g)
    np.testing.assert_allclose(squared_bias.gradient(f, INTERVAL.weights), squared_bias.gradient(g, INTERVAL.weights))
    assert np.abs(f - g).max() > 0.1


# ---- measures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Measure(np.zeros(2), np.zeros(3)), "same length"),
        (lambda: Measure(np.zeros(2), np.array([1.0, 0.0])), "positive"),
        (lambda: Measure.lebesgue(1, 0), "lower < breaks < upper"),
        (lambda: Measure.lebesgue(0, np.inf), "positive break"),
        (lambda: INTERVAL.integrate(np.ones(3)), "one value a node"),
        (lambda: INTERVAL.integrate(np.full(40, np.nan)), "not finite at the node"),
        (lambda: pointwise("kl"), "no pointwise form"),
        (lambda: RandomFunction(functions(2, 1), [1.0, -1.0]), "probabilities must be 2"),
    ],
)
def test_bad_input(call, message):
    refused(message, call)


def test_domain_violations_name_the_node():
    with pytest.raises(DomainError, match=r"relative_entropy: f\[7\] = -1"):
        relative_entropy(np.where(np.arange(40) == 7, -1.0, 1.0), np.ones(40), INTERVAL)
    with pytest.raises(DomainError, match="g"):
        relative_entropy.derivative(np.zeros(40), np.ones(40), INTERVAL)
