"""What the checks of the chapter *Functional Bregman divergences and the uniform* try: variations, estimates, risks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate, optimize, stats

from rcbook.checking import Part, exceeds, gap
from rcbook.experiments.studies import estimates_of_the_uniform
from rcbook.random_functions import RandomFunction
from rcpkg import BregmanDivergence, uniform
from rcpkg.base import Array
from rcpkg.bregman import divergences, mahalanobis
from rcpkg.bregman.functional import (
    FunctionalBregmanDivergence,
    Measure,
    pointwise,
    relative_entropy,
    squared_bias,
    total_squared_difference,
)


def variations(
    smooth: Callable[..., Any], examples: Sequence[FunctionalBregmanDivergence], interval: Measure
) -> tuple[Array, Array]:
    """Orders of remainders of the expansions of functionals."""
    rng = np.random.default_rng(1201)
    f, a, b = smooth(rng, 3)
    remainders = np.empty((len(examples), 2, 3))
    for d, row in zip(examples, remainders):
        for h, entries in zip((1e-2, 1e-3), row):
            increase = d.phi(f + h * a, interval) - d.phi(f, interval)
            first = increase - d.derivative(f, h * a, interval)
            second = first - d.second_derivative(f, h * a, h * a, interval) / 2
            change = d.derivative(f + h * a, b, interval) - d.derivative(f, b, interval)
            third = change - d.second_derivative(f, h * a, b, interval)
            entries[:] = first, second, third
    coarse, fine = np.abs(remainders).transpose(1, 0, 2)
    ratios, exact = coarse / np.maximum(fine, 1e-13), coarse < 1e-12
    return ratios, exact


def examples_of_functionals(
    smooth: Callable[..., Any], interval: Measure, t: Array
) -> tuple[
    Array, Array, Array, Array, float, float, Array, Array, list[float], Array, list[bool], float, float
]:
    """Second variations, biases and entropies of the examples, of functions and of densities."""
    rng = np.random.default_rng(1202)
    f, g = smooth(rng, 2)
    p, q = f / interval.integrate(f), g / interval.integrate(g)
    second = total_squared_difference.second_derivative(g, f - g, f - g, interval)
    l1_squared = interval.integrate(np.abs(f - g)) ** 2
    h = 0.9 * g.min() * np.cos(9 * t)
    integrand = (g + h) * np.log((g + h) / g) - h
    bounds = [0.0, *(interval.integrate(v) for v in (integrand, h**2 / g))]
    bounds.append(np.abs(h).max() * interval.integrate(np.abs(h)) / g.min())
    # 3: the function -2 g on ever smaller cells is small in L2, and g plus it is negative there
    near, negative = [], []
    for n in (10, 100, 1000):
        cells = Measure(np.arange(n) / n, np.full(n, 1 / n))
        at = 1 + cells.nodes
        a = np.where(np.arange(n) == 0, -2 * at, 0.0)
        near.append(np.sqrt(cells.integrate(a**2)))
        negative.append((at + a).min() < 0)
    entropy_p, entropy_f = (interval.integrate(p * np.log(p / q)), interval.integrate(f * np.log(f / g)))
    apart = near * np.sqrt([10, 100, 1000])
    return f, g, p, q, second, l1_squared, h, integrand, bounds, apart, negative, entropy_p, entropy_f


def itakura_saito_functionals(
    itakura_saito: FunctionalBregmanDivergence,
) -> tuple[list[bool], list[float], list[float], list[float]]:
    """The Itakura–Saito functional of power spectra, its remainder and its order."""
    angle = Measure.lebesgue(-np.pi, np.pi, n_nodes=80)
    angle = Measure(angle.nodes, angle.weights / (2 * np.pi))
    F = 1 / (1.3 - np.cos(angle.nodes))
    G = 1 / (1.6 - 1.2 * np.cos(angle.nodes - 0.3))
    direct = {
        relative_entropy: angle.integrate(F * np.log(F / G) - F + G),
        itakura_saito: angle.integrate(F / G - np.log(F / G) - 1),
    }
    m, bounded, definitions, orders, used = F.min(), [], [], [], []
    half = np.full_like(F, -0.5 * m)  # away from the constant m: little to spare
    for d, power in ((relative_entropy, 1), (itakura_saito, 2)):
        increase = d.phi(F, angle) - d.phi(G, angle)
        definition = increase - d.derivative(G, F - G, angle)
        definitions += [definition / direct[d] - 1, d(F, G, angle) / direct[d] - 1]
        remainders = []
        waves = [size * m * np.sin(3 * angle.nodes) for size in (0.5, 0.05)]
        for at, a in ((F, waves[0]), (F, waves[1]), (np.full_like(F, m), half)):
            remainder = d.phi(at + a, angle) - d.phi(at, angle) - d.derivative(at, a, angle)
            bound = np.abs(a).max() ** 2 / m**power
            bounded.append(0 < remainder <= bound)
            remainders.append(remainder)
        used.append(remainder / bound)
        orders.append(np.log10(remainders[0] / remainders[1]))
    return bounded, definitions, orders, used


def counting_measures() -> tuple[np.random.Generator, list[tuple], Array, Array]:
    """Functional and vector divergences under counting measures."""
    rng = np.random.default_rng(1203)
    A = np.array([[2.0, 0.4], [0.4, 1.0]])
    quadratic = FunctionalBregmanDivergence(
        "quadratic",
        functional=lambda g, w: np.sum(g * (g @ A), axis=-1),
        gradient=lambda g, w: 2 * g @ A,
        hessian=lambda g, w, a: 2 * a @ A,
    )
    x, y = rng.normal(size=(2, 50, 2))
    pairs = [(quadratic(x, y, Measure.counting([0.0, 1.0])), mahalanobis(A)(x, y))]
    positive = rng.dirichlet(np.ones(4), size=(2, 50))
    for name in ("squared", "generalized_i", "itakura_saito", "exponential"):
        functional = pointwise(name)(*positive, Measure.counting(np.arange(4.0)))
        pairs.append((functional, divergences[name](*positive)))
    functional, vector = np.swapaxes(pairs, 0, 1)
    return rng, pairs, functional, vector


def pointwise_extensions(
    t: Array,
    interval: Measure,
    smooth: Callable[..., Any],
    rng: np.random.Generator,
    examples: Sequence[FunctionalBregmanDivergence],
) -> tuple[
    dict[str, float],
    list[float],
    FunctionalBregmanDivergence,
    Array,
    Array,
    Array,
    float,
    float,
    dict[str, float],
    float,
]:
    """Two extensions of a pointwise divergence, and sums over disjoint halves."""

    def s(x):
        return x**2 + x

    def s_prime(x):
        return 2 * x + 1

    extensions = {
        "as printed": (lambda x: -s(-x), lambda x: s_prime(-x)),
        "corrected": (lambda x: x + x**2, lambda x: 1 + 2 * x),
    }
    low, high = -3 * np.ones_like(t), np.zeros_like(t)
    bend, joints = {}, []
    for name, (below, slope_below) in extensions.items():

        def phi(f, below=below):
            return interval.integrate(np.where(f >= 0, s(f), below(f)))

        bend[name] = (phi(low) + phi(high)) / 2 - phi((low + high) / 2)
        joints += [slope_below(0.0) - s_prime(0.0), below(0.0) - s(0.0)]
    exponential = pointwise("exponential")
    f, g, h = smooth(rng, 3)
    by_points = interval.integrate(np.exp(f) - np.exp(g) - np.exp(g) * (f - g))
    variation = interval.integrate(np.exp(g) * h)
    left = (t < 0.5).astype(float)
    excess = {
        d.name: d(g + 1, g, interval) - d(g + left, g, interval) - d(g + 1 - left, g, interval)
        for d in (*examples, exponential)
    }
    not_additive = excess.pop(squared_bias.name)
    return bend, joints, exponential, f, g, h, by_points, variation, excess, not_additive


def seven_properties(
    smooth: Callable[..., Any],
    interval: Measure,
    itakura_saito: FunctionalBregmanDivergence,
    examples: Sequence[FunctionalBregmanDivergence],
) -> tuple[
    list[bool],
    dict[str, float],
    float,
    list[float],
    float,
    list[Part],
    list[float],
    list[float],
    list[float],
    list[float],
]:
    """The seven properties of functional divergences on random functions."""
    rng = np.random.default_rng(1204)
    f, g, h, a = smooth(rng, 4)
    psi = {
        total_squared_difference: lambda G: interval.integrate(G**2 / 4),
        relative_entropy: lambda G: interval.integrate(np.exp(G - 1)),
        itakura_saito: lambda G: interval.integrate(-1 - np.log(-G)),
    }
    first, second, fifth, seventh, dual, dual_slope = [], [], [], [], [], []
    for d in examples:

        def value(f, g, d=d):
            return d(f, g, interval)

        def slope(at, direction, d=d):
            return d.derivative(at, direction, interval)

        curve = d.phi(np.linspace(0, 1, 11)[:, None] * (f - g) + g, interval)
        first += [value(f, g) > 0, curve[-1] - curve[0] >= slope(g, f - g)]
        eps = 1e-3
        bend = (value(f + eps * a, g) + value(f - eps * a, g) - 2 * value(f, g)) / eps**2
        second.append(bend / d.second_derivative(f, a, a, interval) - 1)
        heights = d.phi(g, interval) - d.phi(h, interval)
        affine = slope(h, f - h) - slope(g, f - g) - heights
        fifth.append(value(f, g) - value(f, h) - affine)
        three_points = value(f, g) + value(g, h) + slope(g, f - g) - slope(h, f - g)
        seventh.append(value(f, h) / three_points - 1)
        if d in psi:
            F, G = d.gradient(f, interval.weights), d.gradient(g, interval.weights)
            legendre = interval.integrate(g * G) - psi[d](G)  # (T 7.13)
            swapped = psi[d](G) - psi[d](F) - interval.integrate(f * (G - F))
            dual += [d.phi(g, interval) / legendre - 1, value(f, g) / swapped - 1]
            difference = (psi[d](G + 1e-5 * a) - psi[d](G - 1e-5 * a)) / 2e-5
            dual_slope.append(difference / interval.integrate(g * a) - 1)  # (T 7.17)
    mixed = FunctionalBregmanDivergence(
        "2 entropy + 3 bias + affine",
        lambda g, w: (
            2 * relative_entropy.functional(g, w) + 3 * squared_bias.functional(g, w) - 4 * g @ w + 7
        ),
        lambda g, w: 2 * relative_entropy.gradient(g, w) + 3 * squared_bias.gradient(g, w) - 4,
        lambda g, w, a: 2 * relative_entropy.hessian(g, w, a) + 3 * squared_bias.hessian(g, w, a),
    )
    # 1, equality: functions of the same integral apart from one another; 4, "only if": the difference of two
    # generators with other divergences is not affine along a segment
    apart = f / interval.integrate(f), g / interval.integrate(g)
    at_densities = {d.name: d(*apart, interval) for d in examples}
    bias_of_densities = at_densities.pop("squared_bias")
    segment = np.linspace(0, 1, 5)[:, None] * (f - g) + g
    not_affine, other_divergence = [], []
    for i, first_of_two in enumerate(examples):
        for second_of_two in examples[:i]:
            height = first_of_two.phi(segment, interval) - second_of_two.phi(segment, interval)
            not_affine.append(np.abs(np.diff(height, 2)).max())
            other_divergence.append(abs(first_of_two(f, g, interval) - second_of_two(f, g, interval)))
    same_height = (
        mixed.phi(segment, interval)
        - 2 * relative_entropy.phi(segment, interval)
        - 3 * squared_bias.phi(segment, interval)
    )
    parts = 2 * relative_entropy(f, g, interval) + 3 * squared_bias(f, g, interval)
    combined = mixed(f, g, interval) / parts - 1
    generators = [
        gap("4: generators of one divergence differ by an affine one", np.diff(same_height, 2), 1e-10),
        exceeds("generators of others not: bend", not_affine, 1e-3),
        exceeds("their divergences differ by", other_divergence, 1e-3),
    ]
    return first, at_densities, bias_of_densities, second, combined, generators, fifth, dual, dual_slope, seventh


def means_of_random_functions(
    smooth: Callable[..., Any],
    examples: Sequence[FunctionalBregmanDivergence],
    interval: Measure,
    prior: Any,
    line: Measure,
) -> tuple[list[Array], list[Array], list[float], Array]:
    """Both sides of the identity of the mean, a continuous family, and normal densities."""
    rng = np.random.default_rng(1205)
    random = RandomFunction(smooth(rng, 6), rng.dirichlet(np.ones(6)))
    others = smooth(rng, 200)
    identity, worse = [], []
    for d in examples:
        risks = random.expected_divergence(d, others, interval)
        least = random.information(d, interval)
        from_mean = least + d(random.mean(interval), others, interval)
        identity.append((risks - from_mean) / (10 + from_mean))
        worse.append(risks > least)
    # without a grid: normal densities with a normal mean have squared differences in closed form
    drawn = prior.rvs(100_000, random_state=rng)
    flat = 1 / (2 * np.sqrt(np.pi))  # integral of the square of a normal density of variance one
    scores = []
    for width in (0.7, 1.0, np.sqrt(1.64), 2.0):
        overlap = stats.norm(0.4, np.sqrt(1 + width**2)).pdf(drawn)
        losses = flat - 2 * overlap + flat / width
        information = flat - flat / np.sqrt(1.64)
        beside = flat / np.sqrt(1.64) + flat / width
        beside -= 2 * stats.norm(0, np.sqrt(1.64 + width**2)).pdf(0)
        noise = losses.std() / np.sqrt(len(losses))
        scores.append((losses.mean() - information - beside) / noise)
    wider = stats.norm(0.4, np.sqrt(1 + 0.8**2)).pdf(line.nodes)
    return identity, worse, scores, wider


def convergence(
    smooth: Callable[..., Any], examples: Sequence[FunctionalBregmanDivergence], interval: Measure
) -> tuple[Measure, Callable[..., Any], list[bool], list[list], Array, list[float], list[float], list[float]]:
    """Growth, bounds and oscillations of divergences."""
    # midpoints of equal cells; the cosines are resolved by at least 60 cells a period
    fine = Measure((np.arange(1920) + 0.5) / 1920, np.full(1920, 1 / 1920))

    def smoothed(v):
        """Integral of exp(-3 |x - y|) v(y), by running sums to the left and to the right."""
        grow, v = np.exp(3 * fine.nodes), np.asarray(v) / 1920
        left = np.cumsum(v * grow) / grow
        right = np.cumsum((v / grow)[::-1])[::-1] * grow
        return left + right - v

    def Q(v):
        return fine.integrate(v * smoothed(v))

    rng, x = np.random.default_rng(1211), fine.nodes
    smooth(rng, 1)  # the draws that follow are those of the stored numbers
    # 1: away from the mean, along rays, every vector divergence grows
    steps = np.linspace(0, 1, 21)[1:]
    grows = []
    for name in ("squared", "kl", "logistic", "itakura_saito", "exponential"):
        a, b = rng.dirichlet(np.ones(4), size=(2, 50))
        along = [divergences[name](a, a + s * (b - a)) for s in steps]
        grows.append(np.all(np.diff(along, axis=0) > 0))
    # 2: spikes of height n on a set of measure n^-3: divergence to zero, in measure but not uniformly
    spikes = []
    for n in (10, 100, 1000):
        cut = Measure.lebesgue(0, 1, breaks=[n**-3.0])
        spike = np.where(cut.nodes < n**-3.0, float(n), 0.0)
        one = np.ones_like(spike)
        spikes.append([d(one, one + spike, cut) for d in examples])
    # 3: Pinsker; 4: waves
    f, g = smooth(rng, 200), smooth(rng, 200)
    f, g = (v / interval.integrate(v)[:, None] for v in (f, g))
    close = f + 0.01 * (g - f)
    distances = interval.integrate(np.abs(f - g)), interval.integrate(np.abs(f - close))
    entropies = relative_entropy(f, g, interval), relative_entropy(f, close, interval)
    ratio = np.square(distances) / np.array(entropies)
    shifts = [np.cos(2 * np.pi * n * x) for n in (1, 4, 16)]
    waves = [Q(v) for v in shifts]
    norms = [fine.integrate(np.abs(v)) - 2 / np.pi for v in shifts]
    beyond = [fine.integrate((np.abs(v) > 0.5).astype(float)) - 2 / 3 for v in shifts]
    return fine, Q, grows, spikes, ratio, waves, norms, beyond


def restricted_projections(
    t: Array, smooth: Callable[..., Any], itakura_saito: FunctionalBregmanDivergence, interval: Measure
) -> tuple[dict[str, float], dict[str, float]]:
    """Least risks and projections of the mean on a family of exponentials."""
    rng = np.random.default_rng(1207)
    tilts = np.linspace(-2, 2, 401)  # the family of functions exp(c (t - 1/2))
    family_values = np.exp(tilts[:, None] * (t - 0.5))
    random = RandomFunction(smooth(rng, 5), np.ones(5))
    best, nearest = {}, {}
    for d in (total_squared_difference, relative_entropy, itakura_saito):
        best[d.name] = tilts[random.expected_divergence(d, family_values, interval).argmin()]
        nearest[d.name] = tilts[d(random.mean(interval), family_values, interval).argmin()]
    return best, nearest


def uniform_by_quadrature() -> tuple[
    Callable[..., Any], pd.DataFrame, Array, Array, list[float], list[float], list[float], Array
]:
    """Estimates of the uniform by quadrature, for priors and measures."""
    x = np.array([0.2, 0.7, 1.3, 0.9])
    n, M = len(x), x.max()

    def integral(f, low, high=np.inf):
        return integrate.quad(f, low, high, epsabs=1e-13, epsrel=1e-11)[0]

    def mean_of(density):
        return integral(lambda v: v * density(v), M) / integral(density, M)

    def prior_times_likelihood(sign, t1, t2):
        return lambda v: v ** -(n + t1 + 1) * np.exp(sign / (v * t2))

    parameter = pd.DataFrame(
        index=pd.Index([t2 for _, t2 in estimates_of_the_uniform.GAMMA_PRIORS], name="t2"),
        columns=["(T 7.21), sign corrected", "(T 7.21) as printed", "stable form", "(T 7.22) with 1 for a"],
        dtype=float,
    )
    for t1, t2 in estimates_of_the_uniform.GAMMA_PRIORS:
        corrected, printed = (mean_of(prior_times_likelihood(sign, t1, t2)) for sign in (-1, 1))
        chi = [stats.chi2(2 * (n + t1 - i)).cdf(2 / (t2 * M)) for i in (1, 0)]
        ours = uniform.bayes_parameter(x, t1, t2).support()[1]
        parameter.loc[t2] = (corrected, printed, ours, chi[0] / chi[1] / (t2 * (n + t1 - 1)))

    def risk(b, density):
        """Posterior expected squared difference of the uniform density on [0, b], by quadrature."""

        def loss(a):
            return abs(1 / a - 1 / b) * density.pdf(a)

        return integral(loss, M, b) + integral(loss, b)

    def mean_density(at, density):
        return integral(lambda a: density.pdf(a) / a, max(at, M))

    least, ends, heights = [], [], []
    for measure, N in (("fisher", n), ("lebesgue", n + 0.5)):
        end_point = stats.pareto(N, scale=M)
        options = {"bounds": (M, 3 * M), "method": "bounded", "options": {"xatol": 1e-8}}
        best = optimize.minimize_scalar(risk, args=(end_point,), **options).x
        unrestricted = uniform.bayes_unrestricted(x, measure)
        end = uniform.bayes_restricted(x, measure).support()[1]
        least.append(end / best)
        ends += [
            end / other
            for other in (end_point.median(), 2 ** (1 / N) * M, uniform.project(unrestricted).support()[1])
        ]
        points = (0.5, 1.3, 2.0)
        heights += [unrestricted.pdf(v) / mean_density(v, end_point) for v in points]
    corrected, _, ours, from_chi = parameter.to_numpy().T
    return integral, parameter, corrected, ours, least, ends, heights, from_chi


def curve_of_densities(
    integral: Callable[..., Any],
) -> tuple[pd.DataFrame, Array, float, float, float, float, float]:
    """Lengths of the curve of densities in pieces, and its three values."""
    a, b = 1.0, 2.0
    lengths = {}
    for n_pieces in (10, 1000, 100_000):
        cuts = np.linspace(a, b, n_pieces + 1)
        L2 = np.sqrt(np.abs(1 / cuts[1:] - 1 / cuts[:-1])).sum()
        L1 = (2 * (1 - cuts[:-1] / cuts[1:])).sum()
        lengths[n_pieces] = L2, L1
    lengths = pd.DataFrame(lengths, index=["length in L2", "length in L1"]).T.rename_axis("pieces")
    in_l2 = lengths["length in L2"].to_numpy()
    end = 1.7
    score, minus_second = -1 / end, -(end**-2)
    second_moment, mean_score, bend = (
        integral(lambda x: score**2 / end, 0, end),
        integral(lambda x: score / end, 0, end),
        integral(lambda x: minus_second / end, 0, end),
    )
    interior = np.sqrt(integral(lambda x: end**-4, 0, end))
    return lengths, in_l2, end, second_moment, mean_score, bend, interior


def squared_error(density: Callable[..., Any], breaks: Sequence[float], upper: float = np.inf) -> float:
    """Integral of (g - f)^2, f uniform on [0, 1], from the values of g."""
    inner = sorted({b for b in (*breaks, 1.0) if 0 < b < upper})
    measure = Measure.lebesgue(0, upper, breaks=inner, n_nodes=24)
    return total_squared_difference(density, stats.uniform.pdf, measure)


def expected_error(estimate_of: Callable[..., Any], n: int, kink: float, n_nodes: int = 24) -> float:
    """Average of the squared error over the maximum M of n draws, density n M^(n-1), in two pieces."""
    v, w = np.polynomial.legendre.leggauss(n_nodes)
    total = 0.0
    for low, high in ((0, kink), (kink, 1)):
        for M, weight in zip(low + (high - low) * (v + 1) / 2, w * (high - low) / 2):
            density, end = estimate_of(M)
            steps = M * 2.0 ** np.arange(0, np.ceil(-np.log2(M)) + 1)
            upper = max(end, 1.0) if np.isfinite(end) else np.inf
            breaks = [b for b in (*steps, end) if b < upper and (b <= 1 or b == end)]
            total += weight * n * M ** (n - 1) * squared_error(density, breaks, upper)
    return total


def uniform_errors_by_quadrature() -> tuple[
    list[float], list[float], list[float], list[float], pd.DataFrame, float
]:
    """Squared errors of the uniform by quadrature, formulas, limits and special cases."""

    def of_library(make, n, **options):
        def estimate(M):
            made = make(np.full(n, M), **options)
            return made.pdf, made.support()[1]

        return estimate

    cases = {
        "maximum_likelihood": [(uniform.maximum_likelihood, {})],
        "bayes_restricted": [(uniform.bayes_restricted, {"measure": m}) for m in ("fisher", "lebesgue")],
        "bayes_unrestricted": [
            (uniform.bayes_unrestricted, {"measure": m}) for m in ("fisher", "lebesgue", 0.0)
        ],
    }
    from_density, special, best_order, best_factor = [], [], [], []
    exponents, factors = np.linspace(-0.5, 2, 251), np.linspace(1, 3, 2001)
    for n in (2, 3, 10):
        for name, variants in cases.items():
            for make, options in variants:
                end = of_library(make, n, **options)(1.0)[1]
                kink = 1 / end if np.isfinite(end) and end > 1 else 0.5
                found = expected_error(of_library(make, n, **options), n, kink)
                from_density.append(found / uniform.expected_squared_error(name, n, **options) - 1)

    def formula(c, n):
        return 1 - n / (c * (n - 1)) + 2 * c ** -float(n) / (n - 1)

    def unrestricted_error(n, measure="fisher"):
        return uniform.expected_squared_error("bayes_unrestricted", n, measure=measure)

    for n in (2, 3, 10, 100):
        special += [
            uniform.expected_squared_error("maximum_likelihood", n) * (n - 1),
            uniform.expected_squared_error("bayes_restricted", n) / (n / (n - 1) * (1 - 2 ** (-1 / n))),
            unrestricted_error(n) / (n / (n - 1) / (2 * n + 1)),
            unrestricted_error(n, 0.0) * (2 * n - 1),
        ]
        best_order.append(exponents[np.argmin([unrestricted_error(n, c) for c in exponents])])
        best_factor.append(factors[formula(factors, n).argmin()] - 2 ** (1 / (n - 1)))
    sizes = (1, 2, 10, 1000, 10**6)
    limits = dict(zip(uniform.ESTIMATES, (1, 2 / np.e, np.log(2), 0.5)))
    scaled = pd.DataFrame(
        {n: [n * uniform.expected_squared_error(name, n) for name in limits] for n in sizes},
        index=list(limits),
    ).assign(limit=limits.values())
    with_prior = uniform.expected_squared_error("bayes_parameter", 1, t2=1.0)
    return from_density, special, best_order, best_factor, scaled, with_prior


def optimal_shapes() -> tuple[dict[str, tuple], list[float], list[float], Array]:
    """Errors of shapes and Bayes risks by quadrature, and their limit."""
    # four other shapes h, each with the points at which it has a kink
    shapes = {
        "uniform to 1.3": (lambda n: stats.uniform(0, 1.3).pdf, [1.3]),
        "two steps": (lambda n: lambda v: ((v < 1) + (v < 1.5) / 1.5) / 2, [1.0, 1.5]),
        "order n": (lambda n: uniform.uniform_pareto(n).pdf, [1.0]),
        "order n - 1": (lambda n: uniform.uniform_pareto(n - 1).pdf, [1.0]),
        "not a density": (lambda n: lambda v: 0.7 * np.minimum(1, v**-2.0), [1.0]),
    }
    stated, found = [], []
    for n in (2, 3, 10):
        h_star = uniform.uniform_pareto(n - 1).pdf
        tail = Measure.lebesgue(0, np.inf, breaks=[1.0, 1.3, 1.5])
        for make, kinks in shapes.values():
            h = make(n)
            distance = total_squared_difference(h, h_star, tail)
            stated.append(1 / (2 * n - 1) + n / (n - 1) * distance)
            total, edges = 0.0, [0.0, *sorted({1 / k for k in kinks} | {1.0})]
            v, w = np.polynomial.legendre.leggauss(24)
            for low, high in np.column_stack([edges[:-1], edges[1:]]):
                for M, weight in zip(low + (high - low) * (v + 1) / 2, w * (high - low) / 2):
                    steps = M * 2.0 ** np.arange(1, max(np.ceil(-np.log2(M)), 1))
                    breaks = [*(M * k for k in kinks), *steps[steps < 1]]
                    error = squared_error(lambda y, h=h, M=M: h(y / M) / M, breaks)
                    total += weight * n * M ** (n - 1) * error
            found.append(total)

    def bayes_risk(T, n):
        """Least average of the loss when log theta is uniform on [0, T]: closed forms given M, quadrature over it."""
        v, w = np.polynomial.legendre.leggauss(80)
        pieces = np.array([[0, 30], [30, T - 30], [T - 30, T]])
        lengths = np.diff(pieces)
        log_theta = (pieces[:, :1] + lengths * (v + 1) / 2).ravel()[:, None]
        weight = (lengths * w / 2 / T).ravel()
        M = np.exp(log_theta) * ((np.arange(400) + 0.5) / 400) ** (1 / n)
        b = np.exp(T) / np.maximum(M, 1)  # the posterior ends at b, in units of where it begins
        mass = 1 - b**-n
        mean = n / (n - 1) * (1 - b ** (1 - n)) / mass
        square = (1 - b ** (1 - 2 * n)) / (2 * n - 1) + b ** (-2 * n) * (b - 1)
        square = square - 2 * b**-n * (1 - b ** (1 - n)) / (n - 1)
        return 1 - weight @ np.mean((1 + square / mass**2) / mean, axis=1)

    lengths_of_prior = np.array([75.0, 150.0, 300.0, 600.0])
    short_of = np.array(
        [1 / (2 * n - 1) - np.array([bayes_risk(T, float(n)) for T in lengths_of_prior]) for n in (2, 3)]
    )
    return shapes, stated, found, short_of


def bayes_risk_of_interval(T: float, n: int, free_ends: int) -> float:
    """Lower bound, by the proof, of the least average loss under the prior of length T; one or two ends are free."""
    q = np.exp(-np.sqrt(T))  # lengths of the posterior end at 1 / q, in units of where they begin
    v, w = np.polynomial.legendre.leggauss(64)
    s, w = q + (1 - q) * (v + 1) / 2, w * (1 - q) / 2

    def tail(k, s=1.0):
        """Integral of length^(-k - 1) from 1 / s to 1 / q."""
        return (s**k - q**k) / k

    if free_ends == 1:
        mass, holds, mean = tail(n), tail(n, s), tail(n - 1)
        inside = 1 - q**n  # chance that the maximum lies within the prior, far from its end
    else:
        mass, holds, mean = tail(n - 1) - tail(n), tail(n - 1, s) - tail(n, s) / s, tail(n - 2) - tail(n - 1)
        inside = (1 - n * q ** (n - 1) + (n - 1) * q**n) * (1 - 2 / T)
    square = 1 + free_ends * (w @ (holds / mass / s) ** 2)
    return inside * (1 - 1 / np.sqrt(T)) * (1 - square * mass / mean)


def short_of_minimax(n: int) -> Array:
    """What Bayes risks under priors of three lengths lack of the errors of two intervals and of a box, as shares."""
    sides = np.array([1 / (2 * n - 1), 2 * (n - 1) / (n * (2 * n - 3))])  # with one free end and with two
    risks = []
    for T in (1e4, 1e6, 1e8):
        side = np.array([bayes_risk_of_interval(T, n, k) for k in (1, 2)])
        risks.append([*side, 1 - np.prod(1 - side)])
    return 1 - risks / np.array([*sides, 1 - np.prod(1 - sides)])


def boxes() -> tuple[list[float], list[float], int, Callable[..., Any], float, float]:
    """Squared errors of intervals and rectangles by quadrature."""
    v, w = np.polynomial.legendre.leggauss(32)
    v, w = (v + 1) / 2, w / 2

    def best_interval(y, m, R, n):
        distance = np.maximum(np.maximum((y - m) / R, (m + R - y) / R), 1)
        return (n - 2) / (n * R) * distance ** -(n - 1.0)

    def error_of_interval(m, R, n):
        """Integral of (g - f)^2, f uniform on [0, 1]: five pieces, the outer ones by y = end / s."""
        total = 0.0
        for low, high in ((0, m), (m, m + R), (m + R, 1)):
            g = best_interval(low + (high - low) * v, m, R, n)
            total += (high - low) * (w @ (g - 1) ** 2)
        # beyond 1, and below 0 after reflection
        for gap_to_end in (1 - m, m + R):
            distance = gap_to_end / R / v
            g = (n - 2) / (n * R) * distance ** -(n - 1.0)
            total += gap_to_end * (w @ (g**2 / v**2))
        return total

    def expected_over_range(error, n):
        chance = n * (n - 1) * v ** (n - 2) * (1 - v)
        of_R = [w @ [error(m * (1 - R), R, n) for m in v] for R in v]
        return w @ (chance * of_R)

    two_ends, likelihood_error = [], []
    for n in (4, 6, 12):
        two_ends.append(expected_over_range(error_of_interval, n) / (2 * (n - 1) / (n * (2 * n - 3))))
        likelihood_error.append(expected_over_range(lambda m, R, n: 1 / R - 1, n) * (n - 2) / 2)
    # a rectangle with two ends known, n = 5, by quadrature in the plane
    n = 5

    def one_coordinate(M, order):
        """Nodes and weights on the half line with breaks at M and 1; the estimate and the density there."""
        nodes = np.concatenate([M * v, M + (1 - M) * v, 1 / v])
        weights = np.concatenate([M * w, (1 - M) * w, w / v**2])
        return (weights, uniform.uniform_pareto(order, scale=M).pdf(nodes), (nodes < 1) * 1.0)

    def error_of_box(order):
        coordinates = [one_coordinate(M, order) for M in v]
        total = 0.0
        for (a, g1, f1), chance1 in zip(coordinates, w * n * v ** (n - 1)):
            for (b, g2, f2), chance2 in zip(coordinates, w * n * v ** (n - 1)):
                square = (np.outer(g1, g2) - np.outer(f1, f2)) ** 2
                total += chance1 * chance2 * (a @ square @ b)
        return total

    box = error_of_box(n - 1)
    stated_box = 1 - (1 - 1 / (2 * n - 1)) ** 2
    return two_ends, likelihood_error, n, error_of_box, box, stated_box


def stored_errors_compared() -> tuple[
    Callable[..., Any], Callable[..., Any], list[int], Array, Array, Array, Array, int, float, float
]:
    """Exact errors of the estimates, and from which number of draws an estimate is ahead."""

    def exact(name, n, **options):
        return uniform.expected_squared_error(name, n, **options)

    def parameter_errors(n):
        return [exact("bayes_parameter", n, t1=t1, t2=t2) for t1, t2 in estimates_of_the_uniform.GAMMA_PRIORS]

    sizes = [*range(2, 31), 50, 100, 300]
    best_parameter = np.array([min(parameter_errors(n)) for n in sizes])
    likelihood, restricted, unrestricted = (
        np.array([exact(name, n) for n in sizes])
        for name in ("maximum_likelihood", "bayes_restricted", "bayes_unrestricted")
    )
    first = sizes[np.argmax(restricted < best_parameter)]
    at_two, at_ten = (
        exact("bayes_restricted", n, measure="lebesgue") / exact("bayes_restricted", n) for n in (2, 10)
    )
    return (
        exact,
        parameter_errors,
        sizes,
        best_parameter,
        likelihood,
        restricted,
        unrestricted,
        first,
        at_two,
        at_ten,
    )


def covariance_estimates() -> tuple[
    BregmanDivergence,
    Array,
    Array,
    Array,
    Array,
    tuple[float, float, float],
    dict[str, list],
    list[float],
    pd.DataFrame,
    list[Array],
    list[Array],
    list[Array],
    list[float],
    float,
]:
    """Divergences, minimisers and moments of estimates of a covariance."""
    rng = np.random.default_rng(1208)
    stein = divergences["log_det"]
    roots = rng.normal(size=(2, 20, 3, 6))
    S, Sigma = roots @ roots.mT / 3
    ratio = S @ np.linalg.inv(Sigma)
    closed_form = np.trace(ratio, axis1=1, axis2=2) - np.linalg.slogdet(ratio)[1] - 3
    dual = stein(np.linalg.inv(Sigma), np.linalg.inv(S))
    # one dimension: the test of the converse theorem, both orders; Stein's loss in dual coordinates passes it
    quotients = (lambda x, m: 2 / x**2, lambda x, m: 2 * x / m**3, lambda x, m: 1 / m**2)
    losses = {
        "invariant quadratic, truth first": lambda x, s: (s / x - 1) ** 2,
        "invariant quadratic, truth second": lambda x, s: (x / s - 1) ** 2,
        "Stein, precision of the truth first": lambda x, s: x / s - np.log(x / s) - 1,
    }
    h, m, at = 1e-6, 1.4, (0.5, 1.0, 3.0)
    tests = {
        name: [(loss(x, m + h) - loss(x, m - h)) / (2 * h) / (m - x) for x in at]
        for name, loss in losses.items()
    }
    quotient_gap = [
        value / quotient(x, m) - 1
        for values, quotient in zip(tests.values(), quotients)
        for value, x in zip(values, at)
    ]
    # minimisers: by quadrature in one dimension, by simulation in two
    q, B = 6, 2.0
    law = stats.invgamma(q / 2, scale=B / 2)
    chance = (np.arange(20_000) + 0.5) / 20_000
    truth = law.ppf(chance)  # equally likely values of the variance
    one_dimension = {
        "quadratic": (B / (q - 2), lambda v, s: (s - v) ** 2),
        "Stein": (B / q, lambda v, s: s / v - np.log(s / v) - 1),
        "invariant quadratic": (B / (q + 2), lambda v, s: (s / v - 1) ** 2),
    }
    grid = np.linspace(0.1, 0.8, 1401)
    minimisers = pd.DataFrame(
        {
            name: (grid[np.argmin([loss(truth, s).mean() for s in grid])], expected)
            for name, (expected, loss) in one_dimension.items()
        },
        index=["minimiser", "formula"],
    ).T
    q, B = 9, np.array([[2.0, 0.6], [0.6, 1.0]])
    precisions = stats.wishart(q, np.linalg.inv(B)).rvs(40_000, random_state=1)
    truths = np.linalg.inv(precisions)
    stationary = {
        "quadratic": (B / (q - 3), lambda S: S - truths),
        "Stein": (B / q, lambda S: precisions - np.linalg.inv(S)),
        "invariant quadratic": (B / (q + 3), lambda S: precisions @ S @ precisions - precisions),
    }
    scores = []
    for estimate, gradient in stationary.values():
        values = gradient(estimate)
        scores.append(values.mean(axis=0) / (values.std(axis=0) / np.sqrt(len(values))))
    # q between d + 1 and d + 3, d = 1: the second moment grows without bound, differences of losses do not
    unbounded, bounded, best = [], [], []
    for q_small, growth in ((3.5, unbounded), (4.5, bounded)):
        few = stats.invgamma(q_small / 2, scale=1.0)
        decades = [
            integrate.quad(lambda y, few=few: np.exp(3 * y) * few.pdf(np.exp(y)), a, a + np.log(10))[0]
            for a in np.log([1e4, 1e5, 1e6])
        ]
        growth.append(np.divide(decades[1:], decades[:-1]))

        def difference(s, few=few):
            """Expected (s - v)^2 - (1 - v)^2, integrable although its parts are not."""
            return integrate.quad(
                lambda y: ((s - np.exp(y)) ** 2 - (1 - np.exp(y)) ** 2) * few.pdf(np.exp(y)) * np.exp(y),
                -6,
                40,
                limit=200,
            )[0]

        least_at = optimize.minimize_scalar(difference, bounds=(0.1, 3), method="bounded").x
        best.append(least_at - 2 / (q_small - 2))
    # d = 3: a diagonal entry is a multiple of one over a chi-square with q - d + 1 degrees of freedom
    drawn = stats.invwishart(7, np.eye(3)).rvs(4000, random_state=2)[:, 0, 0]
    law_of_entry = stats.kstest(1 / drawn, stats.chi2(7 - 3 + 1).cdf).pvalue
    return (
        stein,
        S,
        Sigma,
        closed_form,
        dual,
        at,
        tests,
        quotient_gap,
        minimisers,
        scores,
        unbounded,
        bounded,
        best,
        law_of_entry,
    )


def void_and_cells(
    smooth: Callable[..., Any], interval: Measure
) -> tuple[Array, Array, Array, Array, float, RandomFunction, Array]:
    """Signs on cells, their mean trace, and strange densities."""
    rng = np.random.default_rng(1206)
    quotients = []
    for n in (4, 16, 64):
        cells = Measure((np.arange(n) + 0.5) / n, np.full(n, 1 / n))
        signs, bump = np.where(rng.random(n) < 0.5, -1.0, 1.0), n * np.eye(n)[0]
        k, C = (
            total_squared_difference.second_derivative(v, v, v, cells) / cells.integrate(np.abs(v)) ** 2
            for v in (signs, bump)
        )
        quotients.append((n, k, C))
    n, k, C = np.transpose(quotients)
    root = rng.normal(size=(8, 8))
    form = root @ root.T
    all_signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    on_average = np.mean(np.einsum("si,ij,sj->s", all_signs, form, all_signs))
    densities = smooth(rng, 6)
    densities /= interval.integrate(densities)[:, None]
    members, stranger = RandomFunction(densities[:5], np.ones(5)), densities[5]
    return n, k, C, form, on_average, members, stranger


def readings(
    fine: Measure, Q: Callable[..., Any], smooth: Callable[..., Any], interval: Measure, t: Array
) -> tuple[Callable[..., Any], list[Array], Array, list[float], float, Array, float, Array]:
    """Quotients of signed functions, oscillations, and the mean density."""
    x = fine.nodes

    def share(v):
        return 2 * Q(v) / fine.integrate(np.abs(v)) ** 2

    rng = np.random.default_rng(1210)
    non_negative = [np.abs(v) for v in rng.normal(size=(50, 8)) @ np.cos(np.pi * np.arange(8)[:, None] * x)]
    non_negative += [(np.abs(x - c) < w).astype(float) for c in (0.1, 0.5) for w in (0.1, 0.001)]
    signed = rng.normal(size=(200, 16)) @ np.cos(np.pi * np.arange(16)[:, None] * x)
    waves = [share(np.cos(2 * np.pi * j * x)) for j in (1, 2, 4, 8, 16, 32)]
    densities = smooth(rng, 6)
    densities /= interval.integrate(densities)[:, None]
    members, stranger = RandomFunction(densities[:5], np.ones(5)), densities[5]
    kernel = np.exp(-3 * np.abs(t[:, None] - t))
    smoothed_difference = FunctionalBregmanDivergence(
        "smoothed difference",
        functional=lambda g, w: np.sum((g * w) @ kernel * (g * w), axis=-1),
        gradient=lambda g, w: 2 * (g * w) @ kernel,
        hessian=lambda g, w, a: 2 * (a * w) @ kernel,
    )
    own = members.expected_divergence(smoothed_difference, densities, interval)
    least = members.information(smoothed_difference, interval)
    bias = members.expected_divergence(squared_bias, densities, interval)
    apart = total_squared_difference(stranger, members.mean(interval), interval)
    return share, non_negative, signed, waves, apart, own, least, bias
