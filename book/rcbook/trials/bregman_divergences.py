"""What the checks of the chapter *Bregman divergences* try: identities, converses, matrices and families."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate, optimize, stats
from scipy.special import gammaln, rel_entr

from rcpkg.base import Array
from rcpkg.bregman import BregmanDivergence, Generator, divergences, gaussian_kl, mahalanobis
from rcpkg.bregman.functional import Measure, relative_entropy, total_squared_difference


def three_losses() -> tuple[Any, Array, Array, Array, Callable[..., Any], float, dict[str, tuple]]:
    """Risks of one posterior under three losses on a grid, and where they are least."""
    posterior = stats.beta(4, 3)
    s = np.linspace(0.4, 0.75, 1401)
    theta = np.linspace(0, 1, 4001)
    density = posterior.pdf(theta)

    def risk(loss):
        return integrate.trapezoid(loss(theta[:, None], s) * density[:, None], theta, axis=0)

    delta = 0.02
    minimisers = {
        "squared": (s[risk(lambda t, s: (t - s) ** 2).argmin()], posterior.mean()),
        "absolute": (s[risk(lambda t, s: np.abs(t - s)).argmin()], posterior.median()),
        "window": (s[np.argmax(posterior.cdf(s + delta) - posterior.cdf(s - delta))], 3 / 5),
    }
    return posterior, s, theta, density, risk, delta, minimisers


def points(rng: np.random.Generator, d: BregmanDivergence, size: int) -> Array:
    """Random interior points of the domain of a divergence, in three dimensions."""
    if d.domain.event_ndim == 2:
        root = rng.normal(size=(size, 3, 6))
        return root @ root.mT / 3
    return rng.dirichlet(np.ones(3), size=size)


def elementary_properties() -> tuple[
    dict[str, Any], list[Array], list[Array], list[Array], list[Array], Array, Array, BregmanDivergence, Array
]:
    """Signs, sums, bisectors and three points of nine divergences."""
    A = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.8]])
    nine = {**divergences, "mahalanobis": mahalanobis(A)}
    rng = np.random.default_rng(202)
    inequalities, zero, three_points, bisectors = [], [], [], []
    for d in nine.values():
        x, y, z = points(rng, d, 500), points(rng, d, 500), points(rng, d, 500)
        axes_ = tuple(range(-d.domain.event_ndim, 0))
        inequalities += [d(x, y) > 0, d((x + z) / 2, y) < (d(x, y) + d(z, y)) / 2]
        zero.append(d(x, x))
        product = np.sum((d.grad(y) - d.grad(z)) * (x - y), axis=axes_)
        three_points.append((d(x, z) - d(x, y) - d(y, z) - product) / (0.01 + np.abs(product)))
        # equidistance is affine: the second difference along a line vanishes
        middle = (x + y) / 2
        bisectors.append(d(x, y) - d(x, z) - 2 * (d(middle, y) - d(middle, z)) + d(y, y) - d(y, z))
    mixed = BregmanDivergence(
        "3 squared + exponential + affine",
        Generator(lambda x: np.sum(3 * x**2 + np.exp(x) - 5 * x + 1, -1), lambda x: 6 * x + np.exp(x) - 5),
    )
    x, y = rng.normal(size=(2, 100, 3))
    sum_of_two = 3 * divergences["squared"](x, y) + divergences["exponential"](x, y)
    return nine, inequalities, zero, three_points, bisectors, x, y, mixed, sum_of_two


def means_of_points(nine: Mapping[str, Any]) -> tuple[list[Array], list[float], list[Array]]:
    """Both sides of the identity of the mean, and other predictors."""
    rng = np.random.default_rng(203)
    identity, information, worse = [], [], []
    for d in nine.values():
        X, s = points(rng, d, 40), points(rng, d, 300)
        weights = rng.dirichlet(np.ones(40))
        mean = np.tensordot(weights, X, axes=1)
        expected = np.tensordot(weights, d(X[:, None], s[None]), axes=1)
        least = weights @ d.phi(X) - d.phi(mean)
        information.append((d.information(X, weights) - least) / (1 + abs(least)))
        identity.append((expected - least - d(mean, s)) / (1 + expected))
        worse.append(expected > least)
    return identity, information, worse


def minimiser(loss: Callable[..., Any], values: Array, chance: Array) -> float:
    """The estimate of least expected loss for a discrete variable."""

    def expected(s):
        return sum(p * loss(v, s) for p, v in zip(chance, values))

    return optimize.minimize_scalar(expected, bounds=(0.15, 0.85), method="bounded").x


def quotients_of_losses() -> tuple[
    Callable[..., Any],
    tuple[str, ...],
    dict[str, Callable[..., Any]],
    float,
    Array,
    Array,
    pd.DataFrame,
    pd.DataFrame,
    pd.DataFrame,
]:
    """Quotients of slopes, and minimisers beside the mean, for ten losses."""

    def slope(loss, x, m, h=1e-6):
        return (loss(x, m + h) - loss(x, m - h)) / (2 * h)

    scalar = ("squared", "generalized_i", "logistic", "itakura_saito", "exponential")
    losses = {name: (lambda x, s, d=divergences[name]: float(d(x, s))) for name in scalar}
    losses |= {
        "absolute": lambda x, s: abs(x - s),
        "fourth power": lambda x, s: (x - s) ** 4,
        "log cosh": lambda x, s: np.log(np.cosh(x - s)),
        "relative (x/s - 1)^2": lambda x, s: (x / s - 1) ** 2,
        "reversed Itakura-Saito": lambda x, s: float(divergences["itakura_saito"](s, x)),
    }
    m, values, chance = 0.45, np.array([0.2, 0.8]), np.array([0.7, 0.3])
    table = pd.DataFrame(index=list(losses), columns=["spread", "minimiser minus mean"], dtype=float)
    for name, loss in losses.items():
        quotients = np.array([slope(loss, x, m) / (m - x) for x in (0.1, 0.3, 0.6, 0.9)])
        spread = np.ptp(quotients) / np.abs(quotients).max()
        table.loc[name] = spread, minimiser(loss, values, chance) - chance @ values
    bregman, others = (table.loc[table.index.isin(scalar) == kind].abs() for kind in (True, False))
    return slope, scalar, losses, m, values, chance, table, bregman, others


def functional_losses() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Additivity, optimal means and generators of six losses of densities."""
    interval = Measure.lebesgue(0, 1, n_nodes=48)
    t = interval.nodes
    kernel = np.exp(-3 * np.abs(t[:, None] - t))

    def weigh(v):
        return v * interval.weights

    risks = {
        "total squared difference": lambda f, g: total_squared_difference(f, g, interval),
        "relative entropy": lambda f, g: relative_entropy(f, g, interval),
        "smoothed difference": lambda f, g: weigh(f - g) @ kernel @ weigh(f - g),
        "reversed relative entropy": lambda f, g: relative_entropy(g, f, interval),
        "squared Hellinger": lambda f, g: interval.integrate((np.sqrt(f) - np.sqrt(g)) ** 2),
        "squared difference, squared": lambda f, g: total_squared_difference(f, g, interval) ** 2,
    }
    m, g0 = 2 + np.cos(3 * t), 1 + t
    u, v, a = (0.5 * np.sin(k * t + k) for k in (1, 3, 5))
    columns = ["sum of T", "step from the mean", "from R[., g0]"]
    table = pd.DataFrame(index=list(risks), columns=columns, dtype=float)
    for name, R in risks.items():

        def T(w, R=R, h=1e-5):
            return (R(m + w, m + h * a) - R(m + w, m - h * a)) / (2 * h)

        scale = max(abs(T(w)) for w in (u, v, u + v))
        defect = abs(T(u) + T(v) + T(-u - v)) / scale
        members = [m + w for w in (u, v, -u - v)]

        def expected(c, R=R, members=members):
            return np.mean([R(w, m + c * a) for w in members])

        options = {"bounds": (-0.5, 0.5), "method": "bounded", "options": {"xatol": 1e-9}}
        best = optimize.minimize_scalar(expected, **options).x
        # the divergence that R[., g0] generates, by a central difference
        h, off = 1e-4, []
        for w in (u, v, -u, -v):
            slope_of = (R(m + h * w, g0) - R(m - h * w, g0)) / (2 * h)
            generated = R(m + w, g0) - R(m, g0) - slope_of
            off.append(abs(generated / R(m + w, m) - 1))
        table.loc[name] = defect, best, max(off)
    bregman, others = table.iloc[:3].abs(), table.iloc[3:].abs()
    return table, bregman, others


def blurred_values() -> tuple[
    dict[str, Callable[..., Any]], tuple[float, float, float], pd.DataFrame, pd.DataFrame, Array
]:
    """Whether the mean is best for losses of blurred values, and what the blur changes."""
    # three probabilities: a variable with three values, blurred by the uniform distribution of the simplex
    steps = np.arange(0.5, 24) / 24
    lattice = np.array([(i, j, 1 - i - j) for i in steps for j in steps if i + j < 0.999])
    corners = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.05, 0.05, 0.9]])
    of_corners = np.array([0.5, 0.3, 0.2])
    of_points = {
        "squared": lambda x, s: np.sum((x - s) ** 2, -1),
        "kl": lambda x, s: np.sum(x * np.log(x / s), -1),
        "absolute": lambda x, s: np.sum(np.abs(x - s), -1),
        "fourth power": lambda x, s: np.sum((x - s) ** 4, -1),
    }
    blurs = (0.1, 0.01, 0.001)
    excess = pd.DataFrame(index=list(of_points), columns=[0.0, *blurs], dtype=float)
    for name, loss in of_points.items():
        for eps in excess.columns:
            blurred = (1 - eps) * corners[:, None] + eps * lattice
            mean = np.tensordot(of_corners, blurred.mean(axis=1), axes=1)
            tried = np.vstack([mean, lattice])
            risk = of_corners @ np.array([loss(part[:, None], tried).mean(axis=0) for part in blurred])
            excess.loc[name, eps] = risk[0] - risk.min()
    alike, worse = (excess.loc[["squared", "kl"]], excess.loc[["absolute", "fourth power"]])
    change = np.abs(worse[list(blurs)].sub(worse[0.0], axis=0)).to_numpy()
    return of_points, blurs, alike, worse, change


def losses_of_densities(of_points: Mapping[str, Callable[..., Any]]) -> tuple[pd.Series, list[float]]:
    """Losses of densities generated by their own values, and generators that are not strict."""
    rng = np.random.default_rng(205)
    first = np.array([1.0, 0.0, 0.0])
    on_simplex = {
        "squared": of_points["squared"],
        "kl": divergences["kl"],
        "logistic": divergences["logistic"],
        "squared difference of the first": lambda x, s: ((x - s) @ first) ** 2,
        "reversed kl": lambda x, s: divergences["kl"](s, x),
        "squared Hellinger": lambda x, s: np.sum((np.sqrt(x) - np.sqrt(s)) ** 2, -1),
    }
    x, s = rng.dirichlet(np.ones(3), size=200), rng.dirichlet(np.full(3, 4), size=200)
    x[:50, 0] = 0  # also on the boundary, where the divergence of phi is a limit
    x /= x.sum(axis=1, keepdims=True)
    s0, h = np.array([0.2, 0.3, 0.5]), 1e-5
    from_generator = {}
    for name, R in on_simplex.items():
        inside = slice(50, None) if name == "reversed kl" else slice(None)
        p, q = x[inside], s[inside]
        v = p - q
        slope_of = (R(q + h * v, s0) - R(q - h * v, s0)) / (2 * h)
        generated = R(p, s0) - R(q, s0) - slope_of
        from_generator[name] = np.abs(generated - R(p, q)).max() / R(p, q).max()
    size = pd.Series(from_generator)
    many = [np.array([0.4, c, 0.6 - c]) for c in (0.1, 0.2, 0.3)]
    theta = 0.9 * np.array([0.4, 0.3, 0.3]) + 0.1 * rng.dirichlet([4, 3, 3], 1000)
    theta += np.array([0.4, 0.3, 0.3]) - theta.mean(axis=0)
    ties = [on_simplex["squared difference of the first"](theta, g).mean() for g in many]
    return size, ties


# 1: a linear programme, for mixtures of 0 and 1 and a grid of estimates; 2: two generators on the plane
def singled_out(statistic: Callable[..., Any]) -> bool:
    """Whether losses R(0, s) and R(1, s) exist with which the statistic of each mixture is best, by a margin of 1."""
    shares = np.linspace(0, 1, 5)
    grid = np.unique([*np.linspace(0, 1, 21), *statistic(shares)])
    rows = []
    for share, best in zip(shares, np.searchsorted(grid, statistic(shares))):
        for other in np.delete(np.arange(len(grid)), best):
            row = np.zeros((2, len(grid)))
            row[:, best] = 1 - share, share
            row[:, other] = share - 1, -share
            rows.append(row.ravel())
    margins = -np.ones(len(rows))
    return optimize.linprog(np.zeros(2 * len(grid)), rows, margins, bounds=(None, None)).success


def means_and_deviations() -> tuple[float, float, list[Array]]:
    """What losses single out of mixtures: mean, deviation or variance."""
    values, chance = np.array([-1.0, 0.5, 2.0]), np.array([0.2, 0.5, 0.3])
    mean = chance @ values
    variance = chance @ (values - mean) ** 2
    moment_pairs = np.stack([values, values**2], axis=1)
    found = []
    for name in ("squared", "exponential"):
        d = divergences[name]

        def expected(q, d=d):
            return chance @ d(moment_pairs, np.array([q[0], q[1] + q[0] ** 2]))

        start = np.array([mean + 0.3, variance + 0.4])
        found.append(optimize.minimize(expected, start, method="Nelder-Mead", tol=1e-10).x)
    return mean, variance, found


def power_integral(a: float, b: float, low: float = 0.0) -> float:
    """Integral of t^a (1 - t)^b from low to 1, by quadrature that knows the powers."""
    if low == 0:
        return integrate.quad(lambda t: 1.0, 0, 1, weight="alg", wvar=(a, b))[0]
    return integrate.quad(lambda x: np.exp((a + 1) * x) * (1 - np.exp(x)) ** b, np.log(low), 0)[0]


def simplex_integral(alpha: tuple[float, float, float]) -> float:
    """Of the product of powers over the triangle t1 + t2 <= 1, with t2 = (1 - t1) v."""
    inner = power_integral(alpha[1], alpha[2])
    return inner * power_integral(alpha[0], alpha[1] + alpha[2] + 1)


def dirichlet_integrals() -> tuple[tuple[tuple, tuple, tuple, tuple], list[Array], Array, Array]:
    """Means and masses of powers on the simplex by quadrature."""
    exponents = ((3.0, 2.0, 0.0), (0.2, 0.5, 0.3), (-0.5, -0.9, 0.3), (-0.7, -0.2, -0.5))
    difference = []
    for alpha in exponents:
        mass = simplex_integral(alpha)
        mean = [simplex_integral(np.add(alpha, step)) / mass for step in np.eye(3)]
        difference.append(np.array(mean) - (np.array(alpha) + 1) / (sum(alpha) + 3))
    cuts = (1e-2, 1e-4, 1e-6)
    at_minus_1, above = (np.diff([power_integral(a, 0.5, low) for low in cuts]) for a in (-1.0, -0.9))
    return exponents, difference, at_minus_1, above


def trace_functions() -> tuple[
    np.random.Generator,
    dict[str, tuple],
    Callable[..., Any],
    Array,
    Array,
    list[Array],
    list[Array],
    list[Array],
    float,
]:
    """Gradients, mixtures and convexity of trace functions of matrices."""
    rng = np.random.default_rng(208)
    functions = {
        "square": (np.square, lambda x: 2 * x, lambda x, y: (x - y) ** 2),
        "-log": (lambda x: -np.log(x), lambda x: -1 / x, divergences["itakura_saito"]),
        "x log x - x": (lambda x: x * np.log(x) - x, np.log, divergences["generalized_i"]),
        "fourth power": (lambda x: x**4, lambda x: 4 * x**3, lambda x, y: x**4 - y**4 - 4 * y**3 * (x - y)),
    }

    def of_matrix(function, X):
        values, vectors = np.linalg.eigh(X)
        return (vectors * function(values)[..., None, :]) @ vectors.mT

    def trace_of(function, X):
        return np.sum(function(np.linalg.eigvalsh(X)), axis=-1)

    roots = rng.normal(size=(2, 200, 4, 8))
    X, Y = roots @ roots.mT / 8 + 0.1 * np.eye(4)
    Y[:20] = np.eye(4)  # with a repeated eigenvalue
    H = rng.normal(size=(200, 4, 4))
    H, h = (H + H.mT) / 10, 1e-5
    slope_gap, mixture, midpoint = [], [], []
    for f, derivative, scalar in functions.values():
        slope_of = (trace_of(f, Y + h * H) - trace_of(f, Y - h * H)) / (2 * h)
        gradient = of_matrix(derivative, Y)
        slope_gap.append(slope_of - np.sum(gradient * H, axis=(-2, -1)))
        direct = trace_of(f, X) - trace_of(f, Y)
        direct = direct - np.sum(gradient * (X - Y), axis=(-2, -1))
        (l, v), (m, w) = np.linalg.eigh(X), np.linalg.eigh(Y)
        pairs = scalar(l[:, :, None, None], m[:, None, :, None]).reshape(200, 4, 4)
        mixture.append(np.sum((v.mT @ w) ** 2 * pairs, axis=(1, 2)) / direct - 1)
        midpoint.append(trace_of(f, (X + Y) / 2) < (trace_of(f, X) + trace_of(f, Y)) / 2)
    # the fourth power is the last: its derivative of the entries is another matrix
    on_entries = np.sum(4 * Y**3 * H, axis=(-2, -1))
    entrywise = np.abs(slope_of - on_entries)[20:].max()
    return rng, functions, of_matrix, X, Y, slope_gap, mixture, midpoint, entrywise


def matrix_divergences(
    rng: np.random.Generator, of_matrix: Callable[..., Any], X: Array, Y: Array
) -> tuple[BregmanDivergence, list[Array], list[Array], list[Array], list[bool], Array, Array, Array]:
    """Divergences of matrices as stated, their centroids and what leaves them unchanged."""
    weights = rng.dirichlet(np.ones(5))
    log_det, von_neumann = divergences["log_det"], divergences["von_neumann"]
    X_log, Y_log = of_matrix(np.log, X), of_matrix(np.log, Y)
    ratio = X @ np.linalg.inv(Y)
    traces = {
        "log_det": np.trace(ratio, axis1=1, axis2=2) - np.linalg.slogdet(ratio)[1] - 4,
        "von_neumann": np.trace(X @ (X_log - Y_log) - X + Y, axis1=1, axis2=2),
    }
    stated = [divergences[name](X, Y) / value - 1 for name, value in traces.items()]
    five, harmonic = (X[:5], np.linalg.inv(np.tensordot(weights, np.linalg.inv(X[:5]), 1)))
    geometric = of_matrix(np.exp, np.tensordot(weights, X_log[:5], axes=1))
    arithmetic = np.tensordot(weights, five, axes=1)
    centroids = {"log_det": harmonic, "von_neumann": geometric}
    right, left, least = [], [], []
    for name, stated_mean in centroids.items():
        d = divergences[name]
        right.append(d.centroid(five, weights, side="right") - stated_mean)
        left.append(d.centroid(five, weights) - arithmetic)
        for mean, risk in (
            (stated_mean, lambda c, d=d: weights @ d(c, five)),
            (arithmetic, lambda c, d=d: weights @ d(five, c)),
        ):
            least += [risk(mean + 0.05 * (other - mean)) > risk(mean) for other in Y]
    A = rng.normal(size=(4, 4))
    moved = log_det(A @ X @ A.T, A @ Y @ A.T) / log_det(X, Y) - 1
    moved_other = von_neumann(A @ X @ A.T, A @ Y @ A.T) / von_neumann(X, Y) - 1
    zero = np.zeros((200, 4))
    return log_det, stated, right, left, least, moved, moved_other, zero


def exponential_families() -> tuple[list[float], Array, list[float], list[float], list[float], Array, float]:
    """Integrals, likelihoods, gradients and maximisers of three families as divergences."""
    # 1: Bernoulli (psi = log(1 + e^eta), conjugate of the logistic generator), Poisson (psi = e^eta), Gaussian
    logistic, exponential, i_div = (
        divergences[name] for name in ("logistic", "exponential", "generalized_i")
    )
    a, b = 0.3, 0.8
    bernoulli = rel_entr([a, 1 - a], [b, 1 - b]).sum()
    k = np.arange(200)
    poisson = rel_entr(stats.poisson(3.0).pmf(k), stats.poisson(5.0).pmf(k)).sum()
    p, q = stats.norm(1.0, 2.0), stats.norm(0.0, 1.0)
    gaussian = integrate.quad(lambda t: p.pdf(t) * (p.logpdf(t) - q.logpdf(t)), -40, 40)[0]

    def log_partition(e):
        """Gaussian, with eta = (mean / variance, -1 / (2 variance))."""
        return -(e[..., 0] ** 2) / (4 * e[..., 1]) - np.log(-2 * e[..., 1]) / 2

    def moments(e):
        mean, variance = -e[..., 0] / (2 * e[..., 1]), -1 / (2 * e[..., 1])
        return np.stack([mean, mean**2 + variance], axis=-1)

    psi = BregmanDivergence("Gaussian log-partition", Generator(log_partition, moments))
    entropies = [
        logistic(a, b) / bernoulli,
        logistic.dual()(logistic.grad(b), logistic.grad(a)) / bernoulli,
        i_div(3.0, 5.0) / poisson,
        exponential(np.log(5.0), np.log(3.0)) / poisson,
        gaussian_kl([1.0], [[4.0]], [0.0], [[1.0]]) / gaussian,
        psi([0.0, -0.5], [0.25, -0.125]) / gaussian,
    ]
    # 2 and 4: maximum likelihood and its penalised form, Poisson counts
    counts = stats.poisson(4.0).rvs(50, random_state=1)
    target, m_bar, weight = 2.0, 10.0, 0.7

    def negative(eta, b):
        penalty = m_bar * target * eta - m_bar * np.exp(eta)
        return -(counts.sum() * eta - 50 * np.exp(eta)) - b * penalty

    maximisers = []
    for b in (0.0, weight):
        best = np.exp(optimize.minimize_scalar(negative, args=(b,), bracket=(0, 2), tol=1e-12).x)
        maximisers.append(best / ((counts.sum() + b * m_bar * target) / (50 + b * m_bar)))
    # the density with respect to the base measure 1/x!
    log_p = np.sum(stats.poisson(3.3).logpmf(counts) + gammaln(counts + 1))
    t = counts.mean()  # the generator x log x differs from psi* by x: hence the last term
    in_all = [-log_p / (50 * (i_div(t, 3.3) - i_div.phi(t) + t)) - 1]
    # Gaussian: phi is infinite at a single statistic and finite at the mean statistic
    draws = q.rvs(20, random_state=2)
    mean, square = draws.mean(), np.mean(draws**2)

    def phi_gaussian(mean, square):
        with np.errstate(divide="ignore"):
            return -(1 + np.log(square - mean**2)) / 2

    at = np.array([0.4, 1.5])  # mean 0.4, second moment 1.5
    eta = np.array([0.4, -0.5]) / (1.5 - 0.4**2)
    d_phi = phi_gaussian(mean, square) - phi_gaussian(*at) - eta @ ([mean, square] - at)
    log_q = stats.norm(0.4, np.sqrt(1.5 - 0.4**2)).logpdf(draws) + np.log(2 * np.pi) / 2
    in_all.append(-log_q.sum() / (20 * (d_phi - phi_gaussian(mean, square))) - 1)
    alone = [phi_gaussian(x, x * x) for x in (2.0, -1.5)]
    # all of 20 Bernoulli draws are ones: t lies outside M, the score never vanishes
    score_of_ones = 20 * (1 - 1 / (1 + np.exp(-np.linspace(-30, 30, 61))))
    h = 1e-6
    gradient = -(negative(1 + h, 0.0) - negative(1 - h, 0.0)) / (2 * h)  # 3
    return entropies, counts, maximisers, in_all, alone, score_of_ones, gradient


def generators_by_algebra() -> tuple[
    tuple[Any, Any, Any], tuple[Any, Any, Any], list[tuple], type, list[tuple], list[bool]
]:
    """The divergences of nine generators by computer algebra, less those of the table."""
    import sympy

    d_ = 3
    x, y = (sympy.symbols(f"{letter}1:{d_ + 1}", positive=True) for letter in "xy")
    entries = list(zip(x, y))
    symmetric = sympy.Matrix(d_, d_, lambda i, j: sympy.Symbol(f"a{min(i, j)}{max(i, j)}"))
    X, Y = sympy.Matrix(x), sympy.Matrix(y)

    def from_generator(phi):
        at_y = dict(entries)
        return phi - phi.subs(at_y) - sum(phi.diff(a).subs(at_y) * (a - b) for a, b in entries)

    def vanishes(difference, coordinates):
        """Whether an expression in x and y is zero: no second derivative in x, and value and slope zero at x = y."""
        at_x_is_y = {w: v for v, w in entries}
        parts = [difference.subs(at_x_is_y), *(difference.diff(v).subs(at_x_is_y) for v in coordinates)]
        parts += [difference.diff(v, w) for v in coordinates for w in coordinates]
        return all(sympy.simplify(sympy.expand_log(part, force=True)) == 0 for part in parts)

    log, a, b = sympy.log, x[0], y[0]
    logistic_form = a * log(a / b) + (1 - a) * log((1 - a) / (1 - b))
    rows = [
        ("R", "squared loss", a**2, (a - b) ** 2),
        ("R+", "(no name)", a * log(a), a * log(a / b) - (a - b)),
        ("[0, 1]", "logistic loss", a * log(a) + (1 - a) * log(1 - a), logistic_form),
        ("R++", "Itakura-Saito", -log(a), a / b - log(a / b) - 1),
        ("R", "(no name)", sympy.exp(a), sympy.exp(a) - sympy.exp(b) - (a - b) * sympy.exp(b)),
        ("R^d", "squared Euclidean", X.dot(X), (X - Y).dot(X - Y)),
        ("R^d", "Mahalanobis", (X.T * symmetric * X)[0], ((X - Y).T * symmetric * (X - Y))[0]),
        ("simplex", "KL, sum restored", sum(v * log(v) for v in x), sum(v * log(v / w) for v, w in entries)),
        (
            "R+^d",
            "I, log restored",
            sum(v * log(v) for v in x),
            sum(v * log(v / w) - (v - w) for v, w in entries),
        ),
    ]
    simplex = {x[2]: 1 - x[0] - x[1], y[2]: 1 - y[0] - y[1]}
    vanishing = []
    for domain, _, phi, divergence in rows:
        difference, free = from_generator(phi) - divergence, x
        if domain == "simplex":
            difference, free = difference.subs(simplex), x[:2]
        vanishing.append(vanishes(difference, free))
    return x, y, entries, log, rows, vanishing


def relative_gradients() -> tuple[
    Array, Array, dict[str, Array], list[Array], list[Array], Array, list[Array], Array
]:
    """Gradients, slopes and divergences of three extensions of negative entropy."""
    rng = np.random.default_rng(201)
    p, q = rng.dirichlet(np.full(4, 4.0), size=(2, 100))
    # three functions on the positive vectors with the same values on the simplex
    extensions = {
        "sum of x log x": (lambda x: np.sum(x * np.log(x), -1), lambda x: 1 + np.log(x)),
        "the same of the normalised x": (
            lambda x: np.sum(x * np.log(x / x.sum(-1, keepdims=True)), -1),
            lambda x: np.log(x / x.sum(-1, keepdims=True)),
        ),
        "plus the square of sum - 1, and 5 (sum - 1)": (
            lambda x: np.sum(x * np.log(x), -1) + (x.sum(-1) - 1) ** 2 + 5 * x.sum(-1) - 5,
            lambda x: 6 + np.log(x) + 2 * (x.sum(-1, keepdims=True) - 1),
        ),
    }
    gradients = {name: grad(q) for name, (_, grad) in extensions.items()}
    by_extension = [
        phi(p) - phi(q) - np.sum(gradients[name] * (p - q), -1) for name, (phi, _) in extensions.items()
    ]
    within = [g - g.mean(axis=-1, keepdims=True) for g in gradients.values()]
    v, h = p - q, 1e-5
    slope = [(phi(q + h * v) - phi(q - h * v)) / (2 * h) for phi, _ in extensions.values()]
    at_p = np.log(p) - np.log(p).mean(axis=-1, keepdims=True)
    monotone = np.sum((at_p - within[0]) * v, -1)
    return p, q, gradients, by_extension, within, v, slope, monotone


def projections(
    nine: dict[str, BregmanDivergence],
) -> tuple[list[float], list[float], list[float], list[float], list[list[float]]]:
    """Projections onto one constraint: whether it is met, Pythagoras, and the dual function beside its minimum."""
    rng = np.random.default_rng(206)
    constraint, pythagoras, normal, slope, rise = [], [], [], [], []
    for d in nine.values():
        y, member = points(rng, d, 2)
        A = rng.normal(size=(1, *y.shape))
        A = (A + A.mT) / 2 if d.domain.event_ndim == 2 else A
        value = np.sum(A[0] * member)
        p = d.project(y, A, [value])
        constraint.append((np.sum(A[0] * p) - value) / (1e-3 + abs(value)))
        pythagoras.append((d(member, p) + d(p, y)) / d(member, y) - 1)
        # the dual function along the normal, at the λ of the projection and a thousandth to each side
        moved, a = d.grad(p) - d.grad(y), A[0]
        if d.name == "kl":  # the parts along the simplex
            moved, a = moved - moved.mean(), a - a.mean()
        λ = np.sum(moved * a) / np.sum(a**2)
        normal.append(np.linalg.norm(moved - λ * a) / np.linalg.norm(moved))
        h = 1e-3 * abs(λ)
        low, least, high = [d.conjugate.phi(d.grad(y) + k * A[0]) - k * value for k in (λ - h, λ, λ + h)]
        slope.append((high - low) / (high - 2 * least + low) / 2)  # distance to the minimum, in steps
        rise.append([low - least, high - least])
    return constraint, pythagoras, normal, slope, rise
