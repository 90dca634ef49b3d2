"""What the checks of the chapter *The law of the iterates* try: influences, laws, gains, draws and tests."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta, chisquare, ks_2samp, kstest, norm

from rcbook.experiments.studies import laws_of_calibration as laws
from rcbook.experiments.studies import size_of_the_test as size_study
from rcbook.experiments.studies.choices_in_the_test import vectors
from rcbook.small_families import softmax_rows
from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    KDependenceBayes,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
    calibration_test,
)
from rcpkg.base import Array
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.score_test import score_statistic


def every_pair(X: Array, q: Array) -> tuple[Array, Array, Array]:
    """Rows, labels and weights of a population with weights q, (n, r)."""
    r = q.shape[1]
    return np.tile(X, (r, 1)), np.repeat(np.arange(r), len(X)), q.T.ravel()


class Laws:
    """A model on rows X with weights q of the pairs (row, class)."""

    def __init__(self, model, X, q):
        rows, y, weight = every_pair(X, q)
        self.model, self.X, self.q = model.fit(rows, y, weight), X, q
        self.start = model.statistics(model.family_.encode(X), q)
        self.form = MinimalForm(model.family_, model.family_.encode(X), self.start)
        self.S, self.u = vectors(self.form), self.form.class_weights

    def information(self, theta):
        """I; one in the trivial direction, for the inverse."""
        return self.form.information(theta) + np.outer(self.u, self.u)

    def conditional(self, P):
        return self.form.conditional_curvature(P, self.q.sum(axis=1))

    def path(self, lr, T, q=None):
        """Parameters and posteriors of the iterates 0 … T."""
        q = self.q if q is None else q
        model, encoded, found = self.model, self.model.family_.encode(self.X), []
        s = model.statistics(encoded, q)
        for _ in range(T + 1):
            theta = model.parameters(s)
            P = softmax_rows(model.log_joint(encoded, theta))
            found.append((theta, P))
            W = q - q.sum(axis=1, keepdims=True) * P
            s = s + lr * model.statistics(encoded, W)
        return found

    def natural(self, theta):
        beta = self.form.coefficients(self.model.family_.natural_parameters(theta))
        return beta - self.u * (self.u @ beta) / (self.u @ self.u)

    def influences(self, lr, T):
        """m_0 … m_T of all pairs, each of shape (n, r, p)."""
        path, m, found = self.path(lr, T), None, []
        for theta, P in path:
            if m is None:
                m = self.S - self.form.mean(theta)
            found.append(m)
            expected = np.einsum("iy,iyk->ik", P, self.S)
            score = self.S - expected[:, None]
            mean = np.einsum("iy,iyk->k", self.q, score)
            pull = np.linalg.solve(self.information(theta), self.conditional(P))
            m = m + lr * (score - mean - m @ pull)
        return found

    def covariance(self, m):
        mean = np.einsum("iy,iyk->k", self.q, m)
        about = m - mean
        return np.einsum("iy,iyk,iyl->kl", self.q, about, about, optimize=True)


def models() -> tuple[Array, Callable[..., Any], Array, dict[str, Laws], dict[str, Laws]]:
    """The right and the wrong models."""
    grid = np.arange(-12, 12.05, 0.1)[:, None]

    def of_normals(priors, means, deviations):
        """Weights of the pairs (point of the grid, class) for normal classes."""
        density = norm.pdf(grid, means, deviations)
        return priors * density / density.sum(axis=0)

    bits = np.array(list(np.ndindex(2, 2, 2)), float)
    rates = np.array([[0.3, 0.5, 0.6], [0.6, 0.4, 0.3], [0.5, 0.8, 0.5]])
    of_bits = np.array([0.3, 0.3, 0.4]) * np.prod(np.where(bits[:, None] > 0, rates, 1 - rates), axis=2)
    right = {
        "LDA": Laws(LDA(), grid, of_normals([0.4, 0.6], [0, 1.5], [1, 1])),
        "QDA": Laws(QDA(), grid, of_normals([0.4, 0.6], [0, 1], [1, 1.25])),
        "BernoulliNB": Laws(BernoulliNB(), bits, of_bits),
    }
    rng = np.random.default_rng(901)
    dependent = rng.dirichlet(np.ones(24)).reshape(8, 3)
    skewed = of_normals([0.2, 0.3], [0, 1], [1, 1]) + of_normals([0.3, 0.2], [2, 3], [0.6, 1.5])
    wrong = {
        "LDA": Laws(LDA(), grid, skewed),
        "QDA": Laws(QDA(), grid, skewed),
        "BernoulliNB": Laws(BernoulliNB(), bits, dependent),
        "CategoricalNB": Laws(CategoricalNB(), bits, dependent),
    }
    return grid, of_normals, bits, right, wrong


def influences(
    wrong: Mapping[str, Laws],
) -> tuple[float, int, list[float], list[float], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Moves of iterates under more weight on a pair, and spreads of samples."""
    lr, T, t = 0.5, 8, 1e-5
    off, sizes = [], []
    rng = np.random.default_rng(902)
    for case in wrong.values():
        m, path = case.influences(lr, T), case.path(lr, T)
        for _ in range(5):
            i = rng.integers(len(case.X)), rng.integers(case.q.shape[1])
            bump = -case.q.copy()
            bump[i] += 1  # towards the pair i
            ends = [case.path(lr, T, case.q + sign * t * bump) for sign in (1, -1)]
            for k, (theta, _) in enumerate(path):
                psi = np.linalg.solve(case.information(theta), m[k][i])
                up, down = (case.natural(end[k][0]) for end in ends)
                off.append(np.abs((up - down) / (2 * t) - psi).max())
                sizes.append(np.abs(psi).max())
    stored = laws.tidy(laws.LAW)
    spread = stored[stored.metric == "relative_spread"]
    misfit = spread[spread.case.isin(list(laws.WRONG))]
    many = misfit[misfit.n == misfit.n.max()]
    return lr, T, off, sizes, stored, misfit, many


def covariances(
    right: Mapping[str, Laws], lr: float, T: int, stored: pd.DataFrame
) -> tuple[list[Array], list[Array], list[float], pd.DataFrame, pd.DataFrame]:
    """Covariances of iterates beside the theorem, and spreads of samples."""
    gaps, spectral, between = [], [], []
    for case in right.values():
        theta = case.model.parameters_
        inverse = np.linalg.inv(case.information(theta))
        P = case.model.predict_proba(case.X)
        C = case.conditional(P)
        lambdas, V = eigh(C, case.information(theta))
        noise, B = C - C @ inverse @ C, np.zeros_like(C)
        outside = np.outer(case.u, case.u) / (case.u @ case.u) ** 2
        between += [lambdas.min(), 1 - lambdas.max()]
        for k, m in enumerate(case.influences(lr, T)):
            law = inverse - outside + B @ noise @ B.T
            gaps.append(inverse @ case.covariance(m) @ inverse - law)
            filtered = 1 - (1 - lr * lambdas) ** k
            seen = lambdas > 1e-9
            share = np.where(seen, (1 - lambdas) / np.where(seen, lambdas, 1), 0)
            M = case.information(theta) @ V
            in_directions = M.T @ (law + outside) @ M
            spectral.append(in_directions - np.diag(1 + filtered**2 * share))
            B = B + lr * np.linalg.matrix_power(np.eye(len(C)) - lr * inverse @ C, k) @ inverse
    sampled = stored[~stored.case.isin(list(laws.WRONG)) & stored.value_se.notna()]
    many = sampled[sampled.n == sampled.n.max()]
    return gaps, spectral, between, sampled, many


def at_boundary(case: Laws, z: float) -> Array:
    """What the log odds at the boundary, z on the line of the means, and the slopes across it are of the natural
    parameters, one row each."""
    d = case.X.shape[1]
    points = np.vstack([np.zeros(d), np.eye(d)[1:]])
    points[:, 0] = z
    near = MinimalForm(case.model.family_, case.model.family_.encode(points), case.start)
    found = np.diff(vectors(near), axis=1)[:, 0]
    found[1:] -= found[0]
    return found


def efron(distance: float, pi: float, d: int) -> float:
    """The ratio of the theorem of chapter 1."""
    z, step = np.linspace(-12, 12, 4801, retstep=True)
    one, zero = norm.pdf(z - distance / 2), norm.pdf(z + distance / 2)
    density = one * zero / (pi * one + (1 - pi) * zero)
    A = [step * np.sum(z**k * density) for k in range(3)]
    v = (2 * pi - 1) * distance / 2
    V = [[1 + distance**2 / 4, v], [v, 1 + 2 * pi * (1 - pi) * distance**2]]
    t = np.array([1, -np.log(pi / (1 - pi)) / distance])
    across = 1 + pi * (1 - pi) * distance**2, 1 / A[0]
    return (t @ V @ t + (d - 1) * across[0]) / (t @ np.linalg.solve([A[:2], A[1:]], t) + (d - 1) * across[1])


def efficiency(
    lr: float, grid: Array, of_normals: Callable[..., Any]
) -> tuple[dict[tuple, pd.Series], list[float], list[float]]:
    """Variances of boundaries of normal classes after updates, and without end, in one and in two dimensions."""

    def of_boundary(case, updates, W):
        """Variance of the log odds at the boundary after so many updates, and of the slopes across it."""
        C = case.conditional(case.model.predict_proba(case.X))
        lambdas, V = eigh(C, case.information(case.model.parameters_))
        seen = lambdas > 1e-9
        filtered = 1 - (1 - lr * lambdas[seen]) ** updates
        return np.sum((W @ V)[:, seen] ** 2 * (1 + filtered**2 * (1 / lambdas[seen] - 1)))

    second = np.arange(-8, 8.1, 0.25)
    across = norm.pdf(second) / norm.pdf(second).sum()
    plane = np.array([(a, b) for a in grid[:, 0] for b in second])
    efficiency, off, on_the_way = {}, [], []
    pairs = [(pi, distance, 1) for pi in (0.5, 0.8) for distance in (1.0, 2.0, 3.0)]
    for pi, distance, d in [*pairs, (0.5, 2.0, 2), (0.8, 2.0, 2)]:
        q = of_normals([1 - pi, pi], np.array([-distance / 2, distance / 2]), [1, 1])
        if d == 2:
            q = (q[:, None] * across[:, None]).reshape(-1, 2)
        case = Laws(LDA(), grid if d == 1 else plane, q)
        W = at_boundary(case, -np.log(pi / (1 - pi)) / distance)
        variance = {k: of_boundary(case, k, W) for k in (0, 1, 4, 16, 64, np.inf)}
        ratio = pd.Series(variance[0] / pd.Series(variance))
        if d == 1:
            efficiency[pi, distance] = ratio
        off.append(ratio[np.inf] - efron(distance, pi, d))
        w = np.linalg.solve(case.information(case.model.parameters_), W.T)
        for k, m in enumerate(case.influences(lr, 16)):
            if k in variance:
                on_the_way.append(np.trace(w.T @ case.covariance(m) @ w) / variance[k] - 1)
    return efficiency, off, on_the_way


def tilted(q: Array, rng: np.random.Generator, t: float) -> tuple[Array, Array, Array]:
    """Weights near q, a little more on some pairs, and their derivative."""
    h = q * rng.uniform(-1, 1, size=q.shape)
    h -= q * h.sum()
    return q + t * h, q - t * h, h


def optimum(case: Laws, q: Array, **settings: Any) -> Array:
    """Natural parameters of the optimum with a target, of weighted pairs."""
    rows, y, weight = every_pair(case.X, 1000 * q)
    learner = RiskCalibration(type(case.model)(), step="safe", max_iter=2000, tol=1e-14, **settings)
    return case.natural(learner.fit(rows, y, weight).estimator_.parameters_)


def moved(M: Array, ends: Sequence[Array], t: float) -> Array:
    """Coordinates of a derivative, by differences."""
    return M @ (ends[0] - ends[1]) / (2 * t)


def filters_of_targets(right: Mapping[str, Laws], lr: float) -> tuple[list[float], list[float], list[float]]:
    """Moves of optima and of updates with a target, beside the filters; filters and moves in unseen directions."""
    rng, t, off, filters, unseen = np.random.default_rng(903), 0.01, [], [], []
    for case in right.values():
        theta, P = case.model.parameters_, case.model.predict_proba(case.X)
        information, C = case.information(theta), case.conditional(P)
        lambdas, V = eigh(C, information)
        seen = lambdas > 1e-9
        up, down, h = tilted(case.q, rng, t)
        other_up, other_down, other = tilted(case.q, rng, t)
        score = np.einsum("iy,iyk->k", h - h.sum(axis=1, keepdims=True) * P, case.S)
        closed = V.T @ np.einsum("iy,iyk->k", h, case.S)
        lambdas = np.where(seen, lambdas, 0)
        best = np.divide(V.T @ score, lambdas, out=0 * lambdas, where=seen)
        at = V.T @ np.einsum("iy,iyk->k", other, case.S)
        M = V.T @ information
        for b in (0.1, 10.0):
            f = lambdas / (lambdas + b)
            ends = [optimum(case, q, target="generative", target_weight=b) for q in (up, down)]
            off += [*(moved(M, ends, t) - (f * best + (1 - f) * closed))]
            targets = [type(case.model)().fit(*every_pair(case.X, 1000 * q)) for q in (other_up, other_down)]
            ends = [
                optimum(case, q, target=target, target_weight=b) for q, target in zip((up, down), targets)
            ]
            off += [*(moved(M, ends, t) - (f * best + (1 - f) * at))]
            filters += [*f[seen]]
            unseen += [*moved(M, ends, t)[~seen]]
        for k in (1, 5):
            f = 1 - (1 - lr * lambdas) ** k
            ends = [case.natural(case.path(lr, k, q)[k][0]) for q in (up, down)]
            off += [*(moved(M, ends, t) - (f * best + (1 - f) * closed))]
    return off, filters, unseen


def log_loss_of(q: Array, P: Array) -> Array:
    """Mean log-loss of posteriors under weights of the pairs."""
    return -np.sum(q * np.log(P), axis=(1, 2))


def gains_of_updates(
    grid: Array, lr: float
) -> tuple[
    tuple[int, ...],
    Laws,
    Array,
    tuple[float, float, float],
    int,
    pd.DataFrame,
    dict[tuple, tuple],
    list[float],
    list[float],
    dict[float, Array],
    pd.Series,
    list[float],
    list[float],
    dict[float, bool],
    pd.Series,
    pd.Series,
]:
    """Mean excess of updates beside the theorem, for shares of outliers."""
    coarse = grid[::2, 0]

    def iterates(counts, updates, lr, b=0.0):
        """Posteriors of class 1 by QDA in one dimension, calibrated on each of
        many samples, with the weight b of the generative target; counts have
        the shape (samples, points, 2)."""
        s = start = counts.swapaxes(1, 2) @ coarse[:, None] ** np.arange(3)
        total, found = counts.sum(axis=2), {}
        for t in range(max(updates) + 1):
            mean = s[:, :, 1] / s[:, :, 0]
            variance = s[:, :, 2] / s[:, :, 0] - mean**2
            joint = np.log(s[:, :, 0] / np.sqrt(variance))[:, :, None] - 0.5 * (
                (coarse - mean[:, :, None]) ** 2 / variance[:, :, None]
            )
            P = np.stack([expit(joint[:, 0] - joint[:, 1])] * 2, axis=2)
            P[:, :, 1] = expit(joint[:, 1] - joint[:, 0])
            if t in updates:
                found[t] = P
            change = counts - total[:, :, None] * P
            change = change.swapaxes(1, 2) @ coarse[:, None] ** np.arange(3)
            s = s + lr * (change + b * (start - s))
        return found

    def of_coarse(priors, means, deviations):
        density = norm.pdf(coarse[:, None], means, deviations)
        return priors * density / density.sum(axis=0)

    truth = of_coarse([0.5, 0.5], [0.0, 2.5], [1.0, 1.3])
    outliers = of_coarse([0.5, 0.5], [0.0, -1.0], [1.0, 0.5])
    updates = (0, 1, 2, 4, 8, 16, 32)
    at_truth = Laws(QDA(), coarse[:, None], truth)
    lambdas, V = eigh(
        at_truth.conditional(at_truth.model.predict_proba(at_truth.X)),
        at_truth.information(at_truth.model.parameters_),
    )
    V, lambdas = V[:, lambdas > 1e-9], lambdas[lambdas > 1e-9]

    def displaced(q, n):
        """√n times what the best model of the family is off the closed form."""
        case = Laws(QDA(), coarse[:, None], q)
        P = case.model.predict_proba(case.X)
        score = np.einsum("iy,iyk->k", q - q.sum(axis=1, keepdims=True) * P, case.S)
        own = at_truth.form.features[0], case.form.features[0]
        units = np.tile(own[0] / own[1], 2)
        return np.sqrt(n) * V.T @ (units * score) / lambdas

    def predicted(zeta, t, b=0.0):
        f = lambdas / (lambdas + b) if b else 1 - (1 - lr * lambdas) ** t
        terms = lambdas + (1 - lambdas) * f**2 + lambdas * zeta**2 * (1 - f) ** 2
        return 0.5 * terms.sum()

    def simulated(strength, n, samples, seed):
        """n times the excess log-loss of samples, by number of updates."""
        q = (1 - strength / np.sqrt(n)) * truth + strength / np.sqrt(n) * outliers
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(n, q.ravel(), size=samples)
        counts = counts.reshape(samples, *q.shape).astype(float)
        least = log_loss_of(q, iterates(q[None], (400,), lr)[400])

        def excess(P):
            return n * (log_loss_of(q, P) - least)

        return q, counts, excess, {t: excess(P) for t, P in iterates(counts, updates, lr).items()}

    STRENGTHS, SAMPLES = (0.0, 0.25, 0.5), 400
    excess, drawn, rises, pulled, gains = {}, {}, [], [], {}
    for n in (300, 1_000_000):
        for strength in STRENGTHS:
            q, counts, of_posteriors, found = simulated(strength, n, SAMPLES, 905)
            zeta = displaced(q, n)
            drawn[n, strength] = counts, zeta
            if n == 1_000_000:  # of the same samples, hence with less noise
                for t in updates[1:]:
                    rise = found[t] - found[0]
                    stated = predicted(zeta, t) - predicted(zeta, 0)
                    error = rise.std(ddof=1) / np.sqrt(SAMPLES)
                    rises.append((rise.mean() - stated) / error)
                for b in (0.25, 1.0, 4.0):
                    rise = of_posteriors(iterates(counts, (60,), 1 / (1 + b), b)[60]) - found[0]  # all but .8^60 of it
                    stated = predicted(zeta, 0, b) - predicted(zeta, 0)
                    pulled.append((rise.mean() - stated) / (rise.std(ddof=1) / np.sqrt(SAMPLES)))
                gains[strength] = found[0] - of_posteriors(iterates(counts, (100,), 1.0)[100])
            for t, values in found.items():
                excess[n, strength, t] = {
                    "simulated": values.mean(),
                    "error": values.std(ddof=1) / np.sqrt(SAMPLES),
                    "theorem": predicted(zeta, t),
                }
    excess = pd.DataFrame(excess).T.rename_axis(["n", "strength", "updates"])
    many = excess.loc[1_000_000]
    zetas = {c: drawn[1_000_000, c][1] for c in STRENGTHS}
    # the two parts of the mean without chance: the covariances of the influences,
    # and the excess of a population whose misfit is small
    C = at_truth.conditional(at_truth.model.predict_proba(at_truth.X))
    inverse = np.linalg.inv(at_truth.information(at_truth.model.parameters_))
    noise = {
        t: 0.5 * np.trace(C @ inverse @ at_truth.covariance(m) @ inverse)
        for t, m in enumerate(at_truth.influences(lr, max(updates)))
    }
    cost = [predicted(0 * lambdas, t) / noise[t] - 1 for t in updates]
    few = 1e-4  # share of outliers, 1/√n
    q = (1 - few) * truth + few * outliers
    population = iterates(q[None], (*updates, 400), lr)
    zeta = displaced(q, 1 / few**2)
    loss = {t: log_loss_of(q, P)[0] / few**2 for t, P in population.items()}
    misfit = [(loss[t] - loss[400]) / (predicted(zeta, t) - predicted(0 * zeta, t)) - 1 for t in updates[:4]]
    pays = {c: lambdas @ zeta**2 > np.sum(1 - lambdas) for c, zeta in zetas.items()}
    start, end = many.simulated.xs(0, level=1), many.simulated.xs(32, level=1)
    return (
        updates,
        at_truth,
        lambdas,
        STRENGTHS,
        SAMPLES,
        excess,
        drawn,
        rises,
        pulled,
        gains,
        (many.simulated - many.theorem) / many.error,
        cost,
        misfit,
        pays,
        start,
        end,
    )


def filters_compared() -> tuple[Array, Array, Array, dict[int, list], Array, Array]:
    """Filters of updates and of targets, and the least of their risks."""
    x = np.linspace(1e-6, 60, 400_001)
    flow = -np.expm1(-x) * (1 + x) / x
    a, k = np.linspace(1e-4, 1, 500), np.arange(1, 400)[:, None]
    ratio = -np.expm1(k * np.log1p(-np.minimum(a, 1 - 1e-15))) * (1 + a * k) / (a * k)
    rng = np.random.default_rng(904)
    lam, zeta = rng.uniform(1e-3, 1, 2000), rng.normal(size=2000) * 3
    tau = 10 ** rng.uniform(-2, 3, (50, 1))

    def risk(f):
        return lam + (1 - lam) * f**2 + lam * zeta**2 * (1 - f) ** 2

    worst = risk(-np.expm1(-lam * tau)) / risk(lam * tau / (1 + lam * tau))
    best_of = {}  # part 3: the least mean over weights, and over times
    tau = np.logspace(-2, 7, 4001)[:, None]
    for size in (100, 1_000, 10_000):
        lam, zeta, times = np.array([[0.9, 1 / size], [size, 0], [1, size]])
        best_of[size] = [
            0.5 * (risk(f) @ times).min() for f in (lam * tau / (1 + lam * tau), -np.expm1(-lam * tau))
        ]
    weights, flows = np.transpose([*best_of.values()])
    return flow, ratio, worst, best_of, weights, flows


def arrangements(model: CategoricalNB, X: Array, y: Array) -> set:
    """All rows of bits with the labels and the tables of these."""
    tables, Y = model.statistics_.cells, np.eye(2)[y]
    every = np.array(list(np.ndindex(*[2] * X.size)), float)
    return {
        rows.tobytes()
        for rows in every.reshape(-1, *X.shape)
        if np.array_equal(model.statistics(rows, Y).cells, tables)
    }


def redrawn_rows() -> tuple[int, list[float], list[bool], list[float]]:
    """Which arrangements are drawn with the same tables, how often, and what is kept."""
    bits = np.array([[0, 0, 0], [0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1]], float)
    y, draws, p_values, found_all = np.array([0, 0, 0, 1, 1]), 1000, [], []
    rng = np.random.RandomState(910)
    for model, X in (
        (CategoricalNB(), bits[:, :2]),
        (KDependenceBayes(structure=[[], [0]], prior_strength=0), bits[:, :2]),
        (KDependenceBayes(structure=[[1], []], prior_strength=0), bits[:, :2]),
        (KDependenceBayes(structure=[[], [0], [1]], prior_strength=0), bits[:4]),
    ):
        labels = y[: len(X)]
        model.fit(X, labels)
        every = arrangements(model, X, labels)
        found = [model.family_.redraw(X, labels, rng).tobytes() for _ in range(draws)]
        found_all.append(set(found) == every)
        p_values.append(chisquare([found.count(rows) for rows in every]).pvalue)
    # the statistics of all families, and the angle of three normal rows
    off = []
    for name in laws.CASES:
        model = laws.truth(name)
        rows, labels = model.sample(60, rng)
        Y = np.eye(len(model.classes_))[labels]
        s, again = (
            model.statistics(part, Y).ravel() for part in (rows, model.family_.redraw(rows, labels, rng))
        )
        off.append(np.abs(again - s).max() / np.abs(s).max())
    p_values += laws_of_normal_draws(rng)
    rows, labels = np.array([[0.0], [1], [5], [10], [12], [11]]), np.repeat([0, 1], 3)
    model = QDA().fit(rows, labels)
    normal_rows = np.array([model.family_.redraw(rows, labels, rng)[:3, 0] for _ in range(draws)])
    angle = np.arctan2(
        (normal_rows[:, 0] + normal_rows[:, 1] - 2 * normal_rows[:, 2]) / np.sqrt(3),
        normal_rows[:, 0] - normal_rows[:, 1],
    )
    p_values.append(kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue)
    return draws, p_values, found_all, off


def laws_of_normal_draws(rng: np.random.RandomState, draws: int = 1000) -> list[float]:
    """p-values of what the statistics leave free, by its beta distribution: how far a row lies from its class mean,
    the share of a class in a common scatter, and correlations that naive Bayes does not fix."""
    y, p_values = np.repeat([0, 1], [5, 7]), []
    X = rng.standard_normal((12, 2)) @ np.array([[1.0, 0.8], [0.0, 0.5]])
    for model, shared, naive in (
        (QDA(), False, False),
        (LDA(), True, False),
        (GaussianNB(), False, True),
        (SharedVarianceGaussianNB(), True, True),
    ):
        family, columns = model.fit(X, y).family_, 1 if naive else 2
        free = 10 if shared else 4  # dimensions of what is centred
        distances, shares, correlations = [], [], []
        for _ in range(draws):
            Z = family.redraw(X, y, rng)
            Z = Z - np.array([Z[y == c].mean(axis=0) for c in (0, 1)])[y]
            Q, _ = np.linalg.qr((Z if shared else Z[:5])[:, :columns])
            distances.append(np.sum(Q[0] ** 2) / (1 - 1 / 5))
            shares.append(np.sum(Z[:5, 0] ** 2) / np.sum(Z[:, 0] ** 2))
            correlations.append(np.corrcoef((Z if shared else Z[:5]).T)[0, 1] ** 2)
        p_values.append(kstest(distances, beta(columns / 2, (free - columns) / 2).cdf).pvalue)
        p_values += [kstest(shares, beta(2, 3).cdf).pvalue] if shared else []
        p_values += [kstest(correlations, beta(0.5, (free - 1) / 2).cdf).pvalue] if naive else []
    return p_values


def statistic(model: QDA, X: Array, counts: Array) -> float:
    """T of a sample that has so many rows at each point and class."""
    encoded = model.family_.encode(X)
    s = model.statistics(encoded, counts)
    P = softmax_rows(model.log_joint(encoded, model.parameters(s)))
    return score_statistic(MinimalForm(model.family_, encoded, s), P, counts)


def statistics_by_hand() -> list[float]:
    """T of thirty rows over gᵀ(nC + J)⁺g by hand, less one: of (1, x), for QDA (1, x, x²), or of two bits, by class."""
    rng, off = np.random.RandomState(913), []
    y = np.arange(30) % 3
    x = rng.standard_normal(30) + 0.8 * y
    column, bits = x[:, None], np.column_stack([x > 0, x > 0.8]).astype(float)
    for model, rows, features in (
        (LDA(), column, [x**0, x]),
        (QDA(), column, [x**0, x, x**2]),
        (BernoulliNB(), bits, [x**0, *bits.T]),
    ):
        P = model.fit(rows, y).predict_proba(rows)
        s = np.einsum("ki,yc->iyck", features, np.eye(3)).reshape(30, 3, -1)  # s(x_i, y)
        seen, expected = s[np.arange(30), y], np.einsum("iy,iyk->ik", P, s)
        g, about = np.sum(seen - expected, axis=0), s - expected[:, None]
        C = np.einsum("iy,iyk,iyl->kl", P, about, about)
        by_hand = g @ np.linalg.lstsq(C + np.cov(seen.T, bias=True), g, rcond=1e-12)[0]
        off.append(calibration_test(model, rows, y, n_bootstrap=1, random_state=0).statistic / by_hand - 1)
    return off


def exactness(samples: int = 100, draws: int = 9) -> tuple[float, Array]:
    """Of twelve rows of a right model, tested with nine draws: a p-value of the test that the p-values of LDA are
    equally frequent; and, of naive Bayes of two bits, where statistics tie, how often p ≤ α, less α, in standard
    errors."""
    rng = np.random.RandomState(916)
    y = np.arange(12) % 2
    found = []
    for model, draw in (
        (LDA(), lambda: rng.standard_normal((12, 1)) + y[:, None]),
        (BernoulliNB(), lambda: (rng.uniform(size=(12, 2)) < 0.4 + 0.2 * y[:, None]).astype(float)),
    ):
        p = []
        with warnings.catch_warnings(action="ignore"):  # of rows that tell little
            while len(p) < samples:
                X = draw()
                if np.ptp(X[y == 0], axis=0).all() and np.ptp(X[y == 1], axis=0).all():
                    p.append(calibration_test(model, X, y, n_bootstrap=draws, random_state=rng).p_value)
        found.append(np.round((draws + 1) * np.array(p)))
    of_lda, of_bits = (np.bincount(p.astype(int), minlength=draws + 2)[1:] for p in found)
    alpha = np.arange(1, draws + 1) / (draws + 1)
    over = of_bits.cumsum()[:-1] / samples - alpha
    return chisquare(of_lda).pvalue, over / np.sqrt(alpha * (1 - alpha) / samples)


def law_of_the_test(
    lambdas: Array,
    drawn: Mapping[tuple[int, float], tuple[Array, Array]],
    gains: Mapping[float, Array],
    at_truth: Laws,
    bits: Array,
    wrong: Mapping[str, Laws],
) -> tuple[list[float], list[float], list[float], float, Array, Array, Array]:
    """The statistic of the test: mean, limit, gain, excess and growth."""
    rng, off, distances, told = np.random.default_rng(911), [], [], []
    size = len(lambdas)
    for strength, gain in gains.items():
        counts, zeta = drawn[1_000_000, strength]
        T = np.array([statistic(at_truth.model, at_truth.X, sample) for sample in counts])
        d = rng.standard_normal((20_000, size)) * np.sqrt((1 - lambdas) / lambdas)
        limit = (lambdas * (d + zeta) ** 2).sum(axis=1)
        mean = np.sum(1 - lambdas + lambdas * zeta**2)
        off.append((np.mean(T) - mean) / (np.std(T, ddof=1) / np.sqrt(len(T))))
        distances.append(ks_2samp(T, limit).pvalue)
        promised = gain - (T - 2 * np.sum(1 - lambdas)) / 2  # part 4
        told.append(promised.mean() / (promised.std(ddof=1) / np.sqrt(len(T))))
    # part 3: three bits, of which one tells the class and two depend on each other
    independent = norm.cdf([-0.5, 0.5])
    of_class = np.where(bits[:, [0]] > 0, independent, 1 - independent) / 2
    both = np.where(bits[:, 1] == bits[:, 2], 0.45, 0.05)
    only_posterior = Laws(BernoulliNB(), bits, of_class * both[:, None])
    P = only_posterior.model.predict_proba(bits)
    C = only_posterior.conditional(P)
    information = only_posterior.information(only_posterior.model.parameters_)
    spread = only_posterior.covariance(
        only_posterior.S - only_posterior.form.mean(only_posterior.model.parameters_)
    )
    inverse = np.linalg.inv(information)
    delta = np.trace(C @ (inverse @ spread @ inverse - inverse))
    found = eigh(C, information, eigvals_only=True)
    found = found[found > 1e-9]
    least, many, values = log_loss_of(only_posterior.q[None], P[None])[0], 10**6, []
    for counts in rng.multinomial(many, only_posterior.q.ravel(), size=800):
        counts = counts.reshape(only_posterior.q.shape).astype(float)
        theta = only_posterior.model.parameters(only_posterior.model.statistics(bits, counts))
        own = softmax_rows(only_posterior.model.log_joint(bits, theta))
        excess_of = log_loss_of(only_posterior.q[None], own[None])[0] - least
        values.append((statistic(only_posterior.model, bits, counts), many * excess_of))
    stated = np.sum(1 - found) + delta, (found.sum() + delta) / 2
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    posterior_off = (np.mean(values, axis=0) - stated) / errors
    at_limit = []
    for case in wrong.values():
        theta, P = case.model.parameters_, case.model.predict_proba(case.X)
        expected = np.einsum("iy,iyk->ik", P, case.S)
        gamma = np.einsum("iy,iyk->k", case.q, case.S - expected[:, None])
        C = case.conditional(P)
        rate = gamma @ np.linalg.pinv(C, rcond=1e-9, hermitian=True) @ gamma
        at_limit.append((statistic(case.model, case.X, 1e7 * case.q) / 1e7, rate))
    rates_of_T, theory = np.transpose(at_limit)
    return off, distances, told, delta, posterior_off, rates_of_T, theory


def level_of_the_test(sizes: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Shares rejected of right models, by group."""
    in_group = {
        name: sizes.loc[list(group)]
        for name, group in {
            "right": size_study.RIGHT,
            "learnt": size_study.LEARNT,
            "posterior": size_study.POSTERIOR,
        }.items()
    }
    right_ones = in_group["right"]
    return in_group, right_ones


def limits(model: BernoulliNB, draw: Callable[..., Any], n: int = 40000) -> dict[str, float]:
    """n times the excess of the closed form, as it is and if its model were
    right, and of the optimum; by formula, from many rows."""
    X, y = draw(n, np.random.RandomState(912))
    model = model.fit(X, y)
    encoded, P = model.family_.encode(X), model.predict_proba(X)
    form = MinimalForm(model.family_, encoded, model.statistics_)
    u = form.class_weights
    information = form.information(model.parameters_) + np.outer(u, u)
    C = form.conditional_curvature(P, np.full(n, 1 / n))
    s = form.times_statistics(np.eye(form.size), y, slice(None))
    influence = np.linalg.solve(information, s - s.mean(axis=1, keepdims=True))
    lambdas = eigh(C, information, eigvals_only=True)
    return {
        "closed form": np.trace(C @ influence @ influence.T) / n / 2,
        "if right": lambdas.sum() / 2,
        "optimum": np.sum(lambdas > 1e-9) / 2,
    }


def right_posteriors(
    in_group: Mapping[str, pd.DataFrame],
) -> tuple[pd.DataFrame, int, pd.DataFrame, pd.Series, pd.Series]:
    """Rejections and excess of wrong models with the right posterior."""
    wasted = {n: limits(c.model, c.draw) for n, c in size_study.POSTERIOR.items()}
    wasted = pd.DataFrame(wasted).T
    of_each = size_study.tidy(size_study.SIZE).set_index("case").n_runs[list(wasted.index)].max().astype(int)
    rejected = (100 * in_group["posterior"].rejected).unstack("n").round().astype(int)
    rejected.columns = [f"n = {n}" for n in rejected]
    of_posterior = pd.concat({"rejected in %": rejected, "n × excess": wasted.round(1)}, axis=1).loc[
        list(wasted.index)
    ]
    loses = wasted["closed form"] > wasted.optimum
    often = rejected.loc[loses.index].mean(axis=1) > 20
    return wasted, of_each, of_posterior, loses, often


def share_of_the_bound(rows: int, b: float = 0.5) -> float:
    """The error of a step of Newton's method without a row over its bound, for a model of two class weights alone and
    a target of so many rows. Then F = ⟨s, η⟩ − m lse(η) with the counts s of rows and target, m in all."""
    s = rows * (np.array([0.8, 0.2]) + b * np.array([0.6, 0.4]))
    without = s - np.array([0.0, 1.0])  # a row of the second class
    m, p, exact = without.sum(), s / s.sum(), np.log(without / without.sum())
    q, eta = np.array([0.0, 1.0]) - p, np.log(p)
    newton = eta - np.linalg.pinv(m * (np.diag(p) - np.outer(p, p))) @ q
    log_odds = np.linspace(np.diff(eta), np.diff(exact), 1001)
    odd = expit(log_odds)
    curvature = 2 * m * odd * (1 - odd)  # along (1, −1)/√2
    slope = np.sqrt(2) * curvature * np.abs(1 - 2 * odd)
    c, M = curvature.min(), slope.max()
    return np.ptp(newton - exact) / (np.sqrt(2) * M / (2 * c) * (q @ q) / c**2)


def leave_one_out() -> tuple[list[float], list[float], list[float], list[bool]]:
    """Approximate and exact leave-one-out, steps and bounds."""
    rng, b, LEFT_OUT = np.random.default_rng(906), 0.1, 12
    few_y = np.arange(40) % 2
    few_X = rng.normal(size=(40, 2)) * (1 + 0.5 * few_y[:, None]) + few_y[:, None]
    target = GaussianNB().fit(few_X + rng.normal(size=few_X.shape), few_y)
    settings = {"target": target, "target_weight": b, "step": "safe"}
    settings |= {"stopping": "none", "max_iter": 5000, "tol": 1e-14}

    def optimum_of(case, X, y):
        """Natural parameters of the optimum of rows."""
        fitted = RiskCalibration(GaussianNB(), **settings).fit(X, y).estimator_
        return case.natural(fitted.parameters_), fitted

    def curvature_at(case, theta, rows=slice(None)):
        """H of some rows, and one in the trivial direction."""
        P = softmax_rows(case.model.log_joint(case.model.family_.encode(case.X), theta))
        part = np.zeros(len(case.X))
        part[rows] = 1
        H = case.form.conditional_curvature(P, part)
        size = b * target.statistics_.count.sum()
        return H + size * case.information(theta)

    orders, steps, means, bounds = [], [], [], []
    for copies in (1, 2, 4):
        X, y = np.tile(few_X, (copies, 1)), np.tile(few_y, copies)
        case = Laws(GaussianNB(), X, np.eye(2)[y])
        beta, fitted = optimum_of(case, X, y)
        P, H = fitted.predict_proba(X), curvature_at(case, fitted.parameters_)
        score = case.S @ beta
        errors, corrections, log_P = [], [], []
        for i, S in enumerate(case.S):
            q = S.T @ (np.eye(2)[y[i]] - P[i])
            V = np.diag(P[i]) - np.outer(P[i], P[i])
            pulled = np.linalg.solve(H, S.T)
            fall = np.linalg.solve(np.eye(2) - S @ pulled @ V, pulled.T @ q)
            left_out = score[i] - fall
            log_P.append(left_out[y[i]] - np.logaddexp.reduce(left_out))
            if i >= LEFT_OUT:
                continue
            rest = np.arange(len(y)) != i
            step = -np.linalg.solve(curvature_at(case, fitted.parameters_, rest), q)
            steps.append(np.ptp(S @ step + fall))  # equal but for a constant
            exact, _ = optimum_of(case, X[rest], y[rest])
            errors.append(np.ptp(left_out - S @ exact))
            corrections.append(np.ptp(fall))
            if copies == 1:
                way, at = exact - beta, curvature_at(case, fitted.parameters_, rest)
                slopes = []
                for share in np.linspace(0.05, 1, 20):
                    between = case.form.natural(beta + share * way)
                    middle = case.model.family_.from_natural(between)
                    moved = curvature_at(case, middle, rest)
                    slopes.append(np.linalg.norm(moved - at, 2) / share)
                bound = max(slopes) * np.linalg.norm(way)
                bound /= 2 * np.linalg.eigvalsh(at)[0]
                bounds.append(errors[-1] <= bound * np.linalg.norm(np.diff(S.T)))
        orders.append(np.mean(errors) / np.mean(corrections))
        if copies == 1:
            found = RiskCalibrationCV(GaussianNB(), target=target, target_weights=[b], cv="loo", closed_form=False)
            with warnings.catch_warnings(action="ignore"):  # of rows that tell little
                found = found.fit(X, y).cv_results_.log_loss[0]
            means.append(found + np.mean(log_P))
    # a target that depends on the rows: its change is a further term of q
    from_rows = RiskCalibrationCV(
        GaussianNB(), target="generative", target_weights=[1.0], cv="loo", closed_form=False
    )
    with warnings.catch_warnings(action="ignore"):
        from_rows.fit(few_X, few_y)
    case = Laws(GaussianNB(), few_X, np.eye(2)[few_y])
    theta = from_rows.estimator_.parameters_
    beta, P = case.natural(theta), from_rows.predict_proba(few_X)
    H = case.form.conditional_curvature(P, np.ones(len(few_y)))
    H = H + len(few_y) * case.information(theta)
    log_P = []
    for S, k, p in zip(case.S, few_y, P):
        q = S.T @ (np.eye(2)[k] - p) + S[k] - case.form.mean(theta)
        pulled, V = np.linalg.solve(H, S.T), np.diag(p) - np.outer(p, p)
        fall = np.linalg.solve(np.eye(2) - S @ pulled @ V, pulled.T @ q)
        left_out = S @ beta - fall
        log_P.append(left_out[k] - np.logaddexp.reduce(left_out))
    means.append(from_rows.cv_results_.log_loss[0] + np.mean(log_P))
    return orders, steps, means, bounds


def at_the_top(function: Callable[..., Any]) -> tuple[float, float]:
    """A greatest value, and half the log determinant of the curvature."""
    top = minimize(lambda z: -function(z), np.zeros(3), tol=1e-10).x
    E, h = 1e-3 * np.eye(3), 1e-3
    H = [
        [
            function(top + a - d) + function(top - a + d) - function(top + a + d) - function(top - a - d)
            for a in E
        ]
        for d in E
    ]
    return function(top), np.linalg.slogdet(np.array(H) / (4 * h**2))[1] / 2


def evidence() -> tuple[list[float], list[float], pd.DataFrame]:
    """Evidence of one binary feature by integrals beside Laplace's."""
    rng, differences, by_hand = np.random.default_rng(907), [], []
    x, y = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    target = BernoulliNB().fit(rng.integers(0, 2, (40, 1)), np.arange(40) % 2)
    found = RiskCalibrationCV(
        BernoulliNB(),
        target=target,
        target_weights=[0.5, 1, 2, 4],
        cv="loo",
        closed_form=False,
    )
    with warnings.catch_warnings(action="ignore"):  # of the end of the grid
        found = found.fit(x[:, None], y).cv_results_
    # coefficients of one and of x for both classes, across the trivial direction
    counts, cells = target.statistics_.count, target.statistics_.cells[:, 1]

    def of_both(c, first, second):
        """What rows and target say of coefficients, but for b."""
        scores = {
            (k, v): sign * c + v * slope
            for k, sign, slope in ((0, 1, first), (1, -1, second))
            for v in (0, 1)
        }
        of_target = (counts[0] - counts[1]) * c
        of_target = of_target + cells[0] * first + cells[1] * second
        log_partition = np.logaddexp.reduce([*scores.values()])
        of_rows = sum(
            np.sum((x == v) & (y == k)) * (scores[k, v] - np.logaddexp(scores[0, v], scores[1, v]))
            for k, v in scores
        )
        return of_rows, of_target - counts.sum() * log_partition

    of_rows, of_target = of_both(*np.meshgrid(*[np.linspace(-6, 6, 91)] * 3, indexing="ij"))
    for b, evidence in zip(found.target_weight, found.log_evidence):
        integrals = [np.logaddexp.reduce(terms.ravel()) for terms in (of_rows + b * of_target, b * of_target)]
        differences.append(evidence - integrals[0] + integrals[1])
        (fit, width), (prior, width_of_prior) = (
            at_the_top(lambda z, k=k, b=b: k * of_both(*z)[0] + b * of_both(*z)[1]) for k in (1, 0)
        )
        by_hand.append(evidence - (fit - prior + width_of_prior - width))
    return differences, by_hand, found


