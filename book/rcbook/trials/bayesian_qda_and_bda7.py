"""What the checks of the chapter *Bayesian QDA and BDA7* try: priors, densities, leave-one-out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp
from scipy import stats
from scipy.linalg import hessenberg
from scipy.special import gammaln

from rcbook.bounded_leave_one_out import grid_loo_errors
from rcbook.checking import Part, holds, measured
from rcbook.class_densities import log_marginal_likelihood, log_predictive_loo
from rcbook.simulation import chapter5_problem
from rcpkg import PredictiveNotDefined
from rcpkg.base import Array
from rcpkg.choice import log_class_prior_loo, wrong_predictions
from rcpkg.gaussians import (
    BDA7_SEEDS,
    Sample,
    class_statistics,
    grid_log_predictive_loo,
    log_predictive,
    posterior_dof,
    seed_matrix,
)
from rcpkg.gaussians.scatter import ClassStatistics


def determinants_of_scatter() -> tuple[
    int, int, int, np.random.Generator, Array, float, float, float, Array, float, float, float, float
]:
    """Determinants of scatter matrices, drawn and by formula, the inequalities of the trace, and one dimension."""
    n, d, runs = 12, 4, 20_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(runs, n, d))
    X -= X.mean(axis=1, keepdims=True)
    eigenvalues = np.linalg.eigvalsh(X.swapaxes(1, 2) @ X / n)[:, ::-1]
    determinant = eigenvalues.prod(axis=1)
    error = determinant.std() / np.sqrt(runs)
    dims = np.array([1, d])
    expected = [np.prod((n - 1 - k + np.arange(1, k + 1)) / n) for k in dims]
    corrected, printed = expected[1], np.prod((n - d + np.arange(1, d + 1)) / n)
    bounds = np.array([expected, (1 - (dims + 1) / (2 * n)) ** dims, np.exp(-dims * (dims + 1) / (2 * n))])
    largest, least = eigenvalues[:, 0].mean(), eigenvalues[:, -1].mean()
    variances = rng.normal(size=(runs, n)).var(axis=1)
    one, one_off = variances.mean(), (variances.mean() - (n - 1) / n) / (variances.std() / np.sqrt(runs))
    return n, d, runs, rng, determinant, error, corrected, printed, bounds, largest, least, one, one_off


def fisher_determinant(d: int) -> tuple[Any, Any]:
    """The determinant of the Fisher information of N(m, S)."""
    z = sp.symbols(f"z1:{d + 1}")
    mu = sp.symbols(f"m1:{d + 1}")
    s = {(j, k): sp.Symbol(f"s{j}{k}") for j in range(d) for k in range(j, d)}
    Sigma = sp.Matrix(d, d, lambda j, k: s[min(j, k), max(j, k)])
    deviation = sp.Matrix([z[j] - mu[j] for j in range(d)])
    log_density = -sp.log(Sigma.det()) / 2 - (deviation.T * Sigma.inv() * deviation)[0] / 2
    coordinates = [*mu, *s.values()]
    moments = {z[j] * z[k]: Sigma[j, k] for j in range(d) for k in range(j, d)}

    def mean(expression):
        expanded = sp.expand(expression.subs(dict.fromkeys(mu, 0)))
        polynomial = sp.Poly(expanded, *z)
        return sum(
            c
            * moments.get(
                sp.prod(v**e for v, e in zip(z, powers)),
                0 if sum(powers) else 1,
            )
            for powers, c in polynomial.terms()
        )

    information = sp.Matrix(
        len(coordinates),
        len(coordinates),
        lambda a, b: -mean(sp.diff(log_density, coordinates[a], coordinates[b])),
    )
    return sp.factor(sp.simplify(information.det())), Sigma.det()


def information_determinants() -> list[bool]:
    """Second derivatives of log N and determinants of the information, by sympy."""
    equal = []
    for d in (1, 2):
        determinant, size = fisher_determinant(d)
        left = determinant * size ** (d + 2) - sp.Rational(1, 2**d)
        equal.append(sp.simplify(left) == 0)
    return equal


def decades(power: float, D: Array, low: int, high: int) -> Array:
    """Mass of |Sigma|^(-power/2) exp(-tr(D / Sigma) / 2) for d = 2 while the
    larger eigenvalue passes each decade from 10^low to 10^high."""
    angle = np.pi * np.arange(32) / 32
    u = np.stack([np.cos(angle), np.sin(angle)])
    w = np.stack([-u[1], u[0]])
    in_u, in_w = (np.einsum("ja,jk,ka->a", v, D, v) for v in (u, w))
    masses = []
    for start in range(low, high):
        grid = np.log(10) * np.linspace(start, start + 1, 41)
        share = np.linspace(0, 1, 601)[:, None, None]
        floor = np.log(np.linalg.eigvalsh(D)[0]) - 7  # nothing is below
        log_1 = grid[None, :, None]
        log_2 = floor + share * (log_1 - floor)
        form = in_u * np.exp(-log_1) + in_w * np.exp(-log_2)
        density = np.exp(-power / 2 * (log_1 + log_2) - form / 2)
        # dSigma = (l_1 - l_2) dl_1 dl_2 d(angle)
        volume = (np.exp(log_1) - np.exp(log_2)) * np.exp(log_1 + log_2)
        inner = np.trapezoid(density * volume, dx=1 / 600, axis=0)
        inner = inner * (log_1[0] - floor)
        masses.append(np.trapezoid(inner.mean(axis=1), grid))
    return np.pi * np.array(masses)


def slope(masses: Array) -> float:
    """Power of ten by which the last decade's mass exceeds the one before."""
    return np.log10(masses[-1] / masses[-2])


def maxima_of_the_prior() -> tuple[list[bool], list[bool]]:
    """Whether the prior, as a function, is lower beside B/q for two positive q; and grows with the covariance for
    others."""
    rng, B, d = np.random.default_rng(151), np.array([[2.0, 0.5], [0.5, 1.0]]), 2

    def log_prior(Sigma, q):
        return -q / 2 * np.linalg.slogdet(Sigma)[1] - np.trace(np.linalg.solve(Sigma, B)) / 2

    lower = [
        log_prior(B / q + size * (E + E.T), q) < log_prior(B / q, q)
        for q, size in ((9.0, 1e-3), (0.5, 0.1))
        for E in rng.normal(size=(100, d, d))
    ]
    grows = [log_prior(10 * c * B, q) > log_prior(c * B, q) for q in (0.0, -1.0) for c in (1, 10, 100, 1000)]
    return lower, grows


def attained_certificates() -> tuple[float, float]:
    """The remainder of the quadratic form over its bound, less one, and that of the determinant over its, where M is a
    small multiple ρ of the identity."""
    rho, d = 0.01, 4
    powers = np.random.default_rng(152).exponential() * rho ** np.arange(3)  # Q_0, Q_1, Q_2
    quadratic = powers[0] / (1 - rho) - powers.sum()
    determinant = -d * np.log1p(-rho) - d * rho - d * rho**2 / 2
    return quadratic / (rho / (1 - rho) * powers[2]) - 1, determinant / (rho / (3 * (1 - rho)) * d * rho**2)


def prior_of_covariances() -> tuple[int, list[bool], list[Array], list[float], list[float], list[float]]:
    """Mode, mean and mass of the prior on covariances, for both measures."""
    d, q, B = 2, 9.0, np.array([[2.0, 0.5], [0.5, 1.0]])
    n_draws = 50_000
    lower, off = [], []
    for name, power in (("fisher", q + d + 2), ("lebesgue", q)):
        nu = power - d - 1
        draws = stats.invwishart(nu, B).rvs(n_draws, random_state=0)
        mode = B / power
        density = stats.invwishart(nu, B).logpdf
        steps = 0.01 * np.random.default_rng(1).normal(size=(200, d, d))
        lower += [density(mode + E + E.T) < density(mode) for E in steps]
        mean = B / (q - d if name == "fisher" else q - 2 * d - 2)
        # the variance of the entries, finite for nu > d + 3
        products = np.outer(np.diag(B), np.diag(B))
        variance = ((nu - d + 1) * B**2 + (nu - d - 1) * products) / (
            (nu - d) * (nu - d - 1) ** 2 * (nu - d - 3)
        )
        off.append((draws.mean(axis=0) - mean) / np.sqrt(variance / n_draws))
    # the mass of the prior as it stands, on both sides of nu_0 = d - 1
    predicted, found = [], []
    for extra, at_edge in ((d + 2, d - 2), (0, 2 * d)):  # Fisher, Lebesgue
        for q in at_edge + np.array([-1.0, -0.4, 0.0, 0.4, 1.0]):
            found.append(slope(decades(q + extra, B, 3, 6)))
            predicted.append(-(q - at_edge) / 2)
    # the mean of Sigma at q = d: its trace grows with the mass of the decades
    heavy = [slope(decades(q + d + 2, B, 3, 6)) + 1 for q in (d, d + 1.0)]
    return n_draws, lower, off, predicted, found, heavy


def by_sampling(
    x: Array, statistics: ClassStatistics, seed: Array, dof: float, power: float, size: int = 100000
) -> tuple[float, float]:
    """E N(x) and its standard error, over draws of (mu, Sigma)."""
    rng = np.random.default_rng(0)
    n, mean, S = (part[0] for part in statistics)
    d = len(mean)
    Sigma = stats.invwishart(d + 5, 0.8 * S).rvs(size, random_state=rng)
    L = np.linalg.cholesky(Sigma)
    deviation = np.einsum("njk,nk->nj", L, rng.normal(size=(size, d))) / np.sqrt(n / 2)
    log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    T = np.linalg.inv(Sigma)
    m = np.einsum("nj,njk,nk->n", deviation, T, deviation)
    target = np.einsum("njk,jk->n", T, S + seed) + n * m + (n + dof + 2 * power) * log_det
    proposal = 0.8 * np.einsum("njk,jk->n", T, S) + n / 2 * m + (d + 5 + d + 2) * log_det
    weight = np.exp((proposal - target) / 2 - ((proposal - target) / 2).max())
    z = x - mean - deviation
    density = np.exp(-(np.einsum("nj,njk,nk->n", z, T, z) + log_det) / 2) / (2 * np.pi) ** (d / 2)
    estimate = (weight * density).sum() / weight.sum()
    return estimate, np.sqrt((weight**2 * (density - estimate) ** 2).sum()) / weight.sum()


def mass_slopes(n: int, q: float, S: Array, seed: Array) -> Array:
    """Growth of the posterior's mass for d = 2, as it stands but for the
    integral over mu, and the growth that the theorem implies: a pair for
    each measure. Below zero: finite."""
    found = []
    for measure, extra in (("fisher", 4), ("lebesgue", 0)):
        power = n - 1 + q + extra
        a = posterior_dof(n, 2, q, measure)
        found.append((slope(decades(power, S + seed, 3, 6)), -(a - 1) / 2))
    return np.array(found)


cloud = class_statistics(np.random.default_rng(3).normal(size=(9, 2)), np.zeros(9, dtype=int), 1)
n9, mean9, S9 = (part[0] for part in cloud)
point, B2 = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 2.0]])


def agreement(a: Array, b: Array) -> Array:
    """Distance relative to b."""
    return np.abs(a - b) / np.abs(b)


def sampled(seed: Array, dof: float, measure: str) -> tuple[Part, Part]:
    """The closed form beside importance sampling, as parts of a verdict."""
    estimate, error = by_sampling(point, cloud, seed, dof, 2.0 if measure == "fisher" else 0.0)
    formula = np.exp(log_predictive(point[None], n9, mean9, S9, seed=seed, dof=dof, measure=measure)[0])
    return (
        measured("standard errors from 100,000 draws", (estimate - formula) / error, 4),
        holds("each below 2 %", error < 0.02 * formula),
    )


def predictive_densities() -> tuple[list[float], list[float], list[Array]]:
    """Predictive densities and evidence by quadrature, beside the library."""
    data = np.array([-0.3, 0.1, 1.4, 2.0, 0.2])[:, None]
    statistics = class_statistics(data, np.zeros(5, dtype=int), 1)
    n_h, mean, S = 5.0, statistics.means[0], statistics.scatters[0]
    q, B, x = 4.0, 1.3, 2.5
    t, log_v = np.meshgrid(np.linspace(-15, 15, 601), np.linspace(-7, 12, 801))
    v = np.exp(log_v)
    mu = mean[0] + t * np.sqrt(v / n_h)
    cell = (t[0, 1] - t[0, 0]) * (log_v[1, 0] - log_v[0, 0]) * np.sqrt(v / n_h) * v
    quadrature, masses = [], []
    for measure, power in (("fisher", 3 / 2), ("lebesgue", 0.0)):
        squares = sum((value - mu) ** 2 for value in data[:, 0])
        posterior = (
            np.exp(-squares / (2 * v) - B / (2 * v)) * (2 * np.pi * v) ** (-n_h / 2) * v ** (-q / 2 - power)
        )
        alpha = (posterior * cell).sum()
        integral = (posterior * stats.norm.pdf(x, mu, np.sqrt(v)) * cell).sum() / alpha
        options = {"seed": np.array([[B]]), "dof": q, "measure": measure}
        formula = np.exp(log_predictive(np.array([[x]]), n_h, mean, S, **options)[0])
        quadrature += [
            agreement(integral, formula),
            agreement(np.log(alpha), log_marginal_likelihood(n_h, S, **options)),
        ]
        grid = np.linspace(-400, 400, 400_001)
        mass = np.exp(log_predictive(grid[:, None], n_h, mean, S, **options)).sum() * (grid[1] - grid[0])
        masses.append(mass)

    # a = d - 1 = 1 is at q = 0 and at q = 4 for one row, whose scatter is zero
    edges = [
        mass_slopes(1, edge + step, 0 * B2, B2)[which]
        for which, edge in ((0, 0.0), (1, 4.0))
        for step in (-0.5, 0.0, 0.5)
    ]
    return quadrature, masses, edges


def exists(n: int, d: int, q: int, measure: str, seed: Array) -> bool:
    """Whether the library has a predictive density."""
    rows = np.random.default_rng(n).normal(size=(n, d))
    one = class_statistics(rows, np.zeros(n, dtype=int), 1)
    try:
        log_predictive(
            rows[:1],
            *(part[0] for part in one),
            seed=seed,
            dof=q,
            measure=measure,
        )
    except PredictiveNotDefined:
        return False
    return True


def lebesgue_measure() -> tuple[Array, Array, list[bool], list[bool], list[bool]]:
    """Predictive densities with the Lebesgue measure, and where their integrals are finite."""
    shifted = log_predictive(point[None], n9, mean9, S9, seed=B2, dof=8.0 - 2 - 2, measure="fisher")
    lebesgue = log_predictive(point[None], n9, mean9, S9, seed=B2, dof=8.0, measure="lebesgue")
    d = 5
    as_stated = [
        exists(n, d, q, "lebesgue", np.eye(d)) == (n > 2 * d - q + 1)
        for q in range(d, 2 * d + 3)
        for n in range(1, 9)
    ]
    always = [exists(n, d, d, "fisher", np.eye(d)) for n in range(1, 9)]
    # the integral for d = 2 and n rows: finite for n > 5 - q and not for n = 5 - q
    sides = [
        mass_slopes(n, 5 - n + step, (n > 1) * B2, B2)[1, 0] < -0.1
        for n in (1, 2, 5)
        for step in (-0.5, 0, 0.5)
    ]
    return shifted, lebesgue, as_stated, always, sides


def thin_decades(power: int, S: Array, deep: int) -> Array:
    """Mass for d = 2 and a scatter of rank one while the smaller eigenvalue
    falls through each of so many decades, the larger between 10^-2 and 10^2."""
    direction = np.linalg.eigh(S)[1][:, 1]
    size, spread = np.trace(S), np.linspace(-40, 40, 801)
    log_1 = np.log(10) * np.linspace(-2, 2, 101)
    masses = []
    for j in range(deep):
        log_2 = -np.log(10) * np.linspace(4 + j, 5 + j, 41)[:, None, None]
        angle = spread * np.exp(log_2 / 2)  # of the thin axis from the null space
        form = size * (np.sin(angle) ** 2 * np.exp(-log_2) + np.cos(angle) ** 2 * np.exp(-log_1[:, None]))
        log_mass = (1 - power / 2) * (log_1[:, None] + log_2) - form / 2
        log_mass = log_mass + log_1[:, None] + log_2 / 2
        masses.append(np.exp(log_mass).mean())
    assert np.allclose(S, size * np.outer(direction, direction))
    return np.array(masses)


def noninformative_prior(B2: Array) -> tuple[Array, Array, Array, list[bool], float, float]:
    """The limit of no prior: densities, masses and the first number of rows."""
    two = np.array([[1.0, 2.0], [-1.0, -2.0]])  # two rows about their mean
    thin = thin_decades(2 - 1 + 3 + 4, two.T @ two, 3)
    three = mass_slopes(3, 3, B2, 0 * B2)  # three rows: a regular scatter
    found = [exists(n, 5, 6, "fisher", np.zeros((5, 5))) for n in range(1, 9)]
    d, n9 = 2, 9
    a10 = gammaln((n9 + d + 2) / 2) - gammaln((n9 + d + 1) / 2)
    right = gammaln((n9 + d + 2) / 2) - gammaln((n9 + 2) / 2)
    return two, thin, three, found, a10, right


def noninformative_lebesgue(
    point: Array, mean9: Array, S9: Array, two: Array, B2: Array
) -> tuple[float, float, float, list[bool], Array, Array, float]:
    """The limit of no prior with the Lebesgue measure."""
    geisser, by_n, by_q = (
        log_predictive(point[None], n, mean9, S9, seed=np.zeros((2, 2)), dof=q, measure=measure)[0]
        for n, q, measure in (
            (9, 3, "lebesgue"),
            (9 - 4, 3, "fisher"),
            (9, 3 - 4, "fisher"),
        )
    )
    found = [exists(n, 5, 6, "lebesgue", np.zeros((5, 5))) for n in range(1, 9)]
    thin = thin_decades(2 - 1 + 3, two.T @ two, 3)
    three = mass_slopes(3, 3, B2, 0 * B2)
    far = slope(decades(2 - 1 + 3, B2, 3, 6))  # a = 1, were the scatter regular
    return geisser, by_n, by_q, found, thin, three, far


def mass_of_the_approximation(
    cloud: ClassStatistics, B2: Array
) -> tuple[Callable[..., Any], int, int, Array, float, Array, Array, float, Array, Array]:
    """How much of the density an approximation keeps, and its distance."""

    def kept_mass(n_h, d, q):
        k = (n_h + q + 1) / 2
        return np.exp(gammaln(k) - gammaln(k - d / 2) - d / 2 * np.log(k))

    n_h, d, q = 9, 2, 6.0
    _, mean, S = (part[0] for part in cloud)
    D = S + B2
    Sigma = (n_h + 1) / (n_h + q + 1) * D / n_h
    rho = kept_mass(n_h, d, q)
    side = np.linspace(-60, 60, 801)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    exact = np.exp(log_predictive(grid, n_h, mean, S, seed=B2, dof=q))
    gaussian = rho * stats.multivariate_normal(mean, Sigma).pdf(grid)
    distance = np.abs(exact - gaussian).sum() * (side[1] - side[0]) ** 2
    omega = q / (n_h + q + 1)
    shrunk = (1 - omega) * S / n_h + omega * (n_h + 1) / n_h * B2 / q
    printed = (1 - omega) * S / n_h + omega * B2 / q
    too_small = (Sigma - printed) - omega * B2 / (q * n_h)
    return kept_mass, n_h, d, Sigma, rho, exact, gaussian, distance, shrunk, too_small / Sigma


def mean_densities(agreement: Callable[..., Any]) -> tuple[list[float], list[float]]:
    """Both sides of the identity of the mean density, and its rivals."""
    # Gaussian mixtures have their inner products in closed form, so that the
    # squared difference is taken of functions and not of their values on a grid
    rng = np.random.default_rng(5)
    means, sizes = rng.normal(size=200), rng.uniform(0.6, 1.6, size=200)

    def inner(f, g):
        (m, s, weights), (m_2, s_2, weights_2) = f, g
        apart = stats.norm.pdf(m[:, None], m_2, np.hypot(s[:, None], s_2))
        return weights @ apart @ weights_2

    def squared(f, g):
        return inner(f, f) - 2 * inner(f, g) + inner(g, g)

    fine, step = np.linspace(-12, 12, 4801, retstep=True)

    def relative_entropy(f, g):
        return step * np.sum(f(fine) * (np.log(f(fine)) - np.log(g(fine))))

    one = np.ones(1)
    members = [(means[[i]], sizes[[i]], one) for i in range(200)]
    mixture = (means, sizes, np.full(200, 1 / 200))
    wrong_means = [
        (np.array([0.0]), np.array([1.5]), one),
        (np.array([-1.0, 0.8]), np.array([0.7, 1.2]), np.array([0.3, 0.7])),
    ]
    identity, excess = [], []
    for rival in wrong_means:
        at_rival = np.mean([squared(f, rival) for f in members])
        least = np.mean([squared(f, mixture) for f in members])
        identity.append(agreement(at_rival, least + squared(mixture, rival)))
        excess.append(at_rival - least)
    densities = [stats.norm(m, s).pdf for m, s in zip(means[:8], sizes[:8])]

    def mean_density(t):
        return sum(f(t) for f in densities) / len(densities)

    for rival in (stats.norm(0, 1.5).pdf, stats.t(4).pdf):
        at_rival = np.mean([relative_entropy(f, rival) for f in densities])
        least = np.mean([relative_entropy(f, mean_density) for f in densities])
        identity.append(agreement(at_rival, least + relative_entropy(mean_density, rival)))
        excess.append(at_rival - least)
    return identity, excess


def leave_one_out_with_a_seed() -> tuple[Array, list[float], Array, bool]:
    """Leave-one-out densities with a fixed seed and those of refits."""
    rows5 = np.random.default_rng(2).normal(size=(14, 5))
    fast = log_predictive_loo(rows5, seed=np.eye(5), dof=8.0)
    slow = []
    for i in range(14):
        rest = class_statistics(np.delete(rows5, i, axis=0), np.zeros(13, dtype=int), 1)
        slow.append(log_predictive(rows5[[i]], *(part[0] for part in rest), seed=np.eye(5), dof=8.0)[0])
    # d + 1 rows and no seed: without a row the scatter is singular, kappa t = 1
    simplex = np.random.default_rng(3).normal(size=(6, 5))
    centred = simplex - simplex.mean(axis=0)
    t = np.einsum("ij,ij->i", centred, centred @ np.linalg.inv(centred.T @ centred))
    try:
        log_predictive_loo(simplex, seed=np.zeros((5, 5)), dof=8.0)
        refused = False
    except PredictiveNotDefined:
        refused = True
    return fast, slow, t, refused


def scatter_and_diagonal() -> tuple[int, Array, Array, Array]:
    """A singular scatter of d features, the diagonal of a seed, and a deviation."""
    rng, d = np.random.default_rng(4), 6
    A = rng.normal(size=(d, 4))
    return d, A @ A.T, rng.uniform(0.5, 2, size=d), rng.normal(size=d)


DOFS = [6.0 * m for m in range(1, 7)]


def tridiagonal_forms(
    agreement: Callable[..., Any],
) -> tuple[tuple[float, float, float], list[float], Array, Array]:
    """Determinants and forms by a tridiagonal matrix, and leave-one-out densities by refits."""
    d, S, Lambda, v = scatter_and_diagonal()
    root = np.sqrt(Lambda)
    bordered = np.block(
        [
            [np.zeros((1, 1)), (v / root)[None]],
            [(v / root)[:, None], S / np.outer(root, root)],
        ]
    )
    T = hessenberg(bordered)
    multiples, reduced = (0.1, 1.0, 12.0), []
    for c in multiples:
        delta = T[d, d] + c
        log_det = np.log(delta)
        for k in range(d - 1, 0, -1):
            delta = T[k, k] + c - T[k, k + 1] ** 2 / delta
            log_det += np.log(delta)
        A = S + c * np.diag(Lambda)
        reduced += [
            agreement(np.log(Lambda).sum() + log_det, np.linalg.slogdet(A)[1]),
            agreement(T[0, 1] ** 2 / delta, v @ np.linalg.solve(A, v)),
        ]
    X, y = chapter5_problem(7, 6, random_state=1).sample(40, 1)
    fast = grid_log_predictive_loo(Sample(X, y, 3), DOFS)
    slow = np.empty_like(fast)
    for i in range(40):
        rest = class_statistics(np.delete(X, i, axis=0), np.delete(y, i), 3)
        for a, q in enumerate(DOFS):
            for b, rule in enumerate(BDA7_SEEDS):
                for h in range(3):
                    parts = (part[h] for part in rest)
                    slow[a, b, i, h] = log_predictive(
                        X[[i]], *parts, seed=seed_matrix(rule, q, rest, h), dof=q
                    )[0]
    return multiples, reduced, fast, slow


def own_score(log_det: float, t: float, a: float = 9.0, kappa: float = 1.1) -> float:
    """The logarithm of the own score of a row."""
    return -log_det / 2 + a / 2 * np.log(1 - kappa * t)


def certificates(
    d: int, S: Array, Lambda: Array, v: Array, dofs: Sequence[float]
) -> tuple[
    float, float, tuple[float, float], float, list[float], Array, Array, int, list[Array], dict[int, float]
]:
    """Remainders and scores beside their bounds, in 42 models."""
    rng = np.random.default_rng(6)
    c, share = 0.4, rng.uniform(0, 0.2, size=d)
    D0, E, rho = S + c * np.diag(Lambda), np.diag(c * Lambda * share), share.max()
    P = np.linalg.inv(D0)
    traces = [np.trace(P @ E), np.trace(P @ E @ P @ E)]
    remainder = -np.linalg.slogdet(np.eye(d) - P @ E)[1] - traces[0] - traces[1] / 2
    Q = [v @ P @ v, v @ P @ E @ P @ v, v @ P @ E @ P @ E @ P @ v]
    quadratic = v @ np.linalg.solve(D0 - E, v) - sum(Q)
    slack = rho / (3 * (1 - rho)) * traces[1], rho / (1 - rho) * Q[2]
    # a row with kappa t < 1, as every row of the class has
    size = 0.8 / (1.1 * v @ np.linalg.solve(D0 - E, v))
    log_det = np.linalg.slogdet(D0)[1] - sum(traces) + traces[1] / 2
    score = own_score(np.linalg.slogdet(D0 - E)[1], size * v @ np.linalg.solve(D0 - E, v))
    ends = [
        own_score(log_det - slack[0], size * sum(Q)),
        own_score(log_det, size * (sum(Q) + slack[1])),
    ]
    X, y = chapter5_problem(7, 6, random_state=1).sample(40, 1)
    full = class_statistics(X, y, 3).scatters.sum(axis=0).diagonal()
    rest = np.array(
        [
            class_statistics(np.delete(X, i, axis=0), np.delete(y, i), 3).scatters.sum(axis=0).diagonal()
            for i in range(40)
        ]
    )
    rises = (rest / 39 > full / 40).any(axis=1).sum()
    equal, exact_share = [], {}
    for size in (40, 100, 400):
        X, y = chapter5_problem(7, 6, random_state=1).sample(size, 1)
        prior = log_class_prior_loo(y, 3)
        certified = grid_loo_errors(Sample(X, y, 3), prior, dofs)
        exact = wrong_predictions(grid_log_predictive_loo(Sample(X, y, 3), dofs) + prior, y)
        equal.append((certified.wrong == exact).ravel())
        exact_share[size] = 100 * certified.exact_share
    return remainder, quadratic, slack, score, ends, full, rest, rises, equal, exact_share


