"""What the checks of the chapter *Hidden components* try: the clouds, EM, responsibilities."""

import warnings
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

from rcbook.simulation import clouds
from rcpkg import (
    LDA,
    QDA,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    Mixture,
    ProductModel,
    RiskCalibration,
)
from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration import Converged, Objective, Safe, climb
from rcpkg.linalg import log_sum_exp


def law_of_clouds(X: Array) -> Array:
    """log p(x, y) of `rcbook.simulation.clouds`, missing features summed out."""

    def cloud(*mean: float) -> Array:
        return np.where(np.isnan(X), 0.0, norm.logpdf(X, mean, 0.6)).sum(axis=1)

    both = np.logaddexp(np.log(0.65) + cloud(-0.6, 0.0), np.log(0.35) + cloud(-4.1, 3.0))
    return np.log(0.5) + np.column_stack([both, cloud(1.4, 0.0)])


def models_of_clouds() -> tuple[dict[str, Any], tuple[Array, Array], tuple[Array, Array]]:
    """Naive Bayes with one and two components, closed form and calibrated; training rows and fresh ones."""
    rng = np.random.default_rng(14)
    (X, y), fresh = clouds(1_000, rng), clouds(20_000, rng)
    two = Mixture(GaussianNB(), n_components=2, random_state=0)
    models = {
        "one component, closed form": GaussianNB(),
        "one component, calibrated": RiskCalibration(GaussianNB()),
        "two components, closed form": two,
        "two components, calibrated": RiskCalibration(two),
    }
    return {name: model.fit(X, y) for name, model in models.items()}, (X, y), fresh


def log_pairs(X: Array, log_p: Array, means: Array, variances: Array) -> Array:
    """log p(x, y, k) of independent Gaussian features, (n, r, K)."""
    gap = (X[:, None, None] - means) ** 2 / variances
    return log_p - 0.5 * (gap + np.log(2 * np.pi * variances)).sum(axis=-1)


def em_step(X: Array, Y: Array, *model: Array) -> tuple[Array, Array, Array]:
    """log p(y, k), means and variances after a step of EM, written out."""
    joint = log_pairs(X, *model)
    share = Y[:, :, None] * np.exp(joint - log_sum_exp(joint)[..., None])
    size = share.sum(axis=0)
    means = np.einsum("nyk,nd->ykd", share, X) / size[..., None]
    gap = (X[:, None, None] - means) ** 2
    return np.log(size / len(X)), means, np.einsum("nyk,nykd->ykd", share, gap) / size[..., None]


def divergence(new: tuple[Array, ...], old: tuple[Array, ...]) -> float:
    """KL(new ‖ old) of the complete rows (x, y, k)."""
    (log_p, means, variances), (log_q, others, scales) = new, old
    gap = (variances + (means - others) ** 2) / scales - 1 - np.log(variances / scales)
    return (np.exp(log_p) * (log_p - log_q + 0.5 * gap.sum(axis=-1))).sum()


def em_of_clouds(X: Array, y: Array) -> tuple[Array, Array, Array]:
    """What the steps of EM gain beyond n KL, slopes where it ends, and a step less that of the library."""
    Y, n = np.eye(2)[y], len(y)

    def likelihood(*model: Array) -> float:
        return logsumexp(log_pairs(X, *model), axis=2)[np.arange(n), y].sum()

    path = [(np.full((2, 2), -np.log(4.0)), X[[0, 1, 2, 3]].reshape(2, 2, 2), np.full((2, 2, 2), 1.0))]
    for _ in range(2_000):
        path.append(em_step(X, Y, *path[-1]))
    gains = np.diff([likelihood(*model) for model in path[:40]])
    spare = gains - [n * divergence(new, old) for old, new in pairwise(path[:40])]

    log_p, means, variances = path[-1]
    slopes = []
    for place in np.ndindex(means.shape):
        step = 1e-5 * (np.arange(means.size).reshape(means.shape) == np.ravel_multi_index(place, means.shape))
        slopes.append(likelihood(log_p, means + step, variances) - likelihood(log_p, means - step, variances))
        up, down = variances * np.exp(step), variances * np.exp(-step)
        slopes.append(likelihood(log_p, means, up) - likelihood(log_p, means, down))

    model = Mixture(GaussianNB(), n_components=2, prior_strength=0.0, random_state=0, max_iter=3, tol=0.0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        family = model.fit(X, y).family_
    theta = model.parameters_
    there = family.parameters(family.expected_statistics(X, Y, theta)).components
    by_hand = em_step(X, Y, *(np.reshape(part, (2, 2, *part.shape[1:])) for part in theta.components[:3]))
    off = [np.ravel(a) - np.ravel(b) for a, b in zip(by_hand, there)]
    return spare, np.array(slopes) / (2e-5 * n), np.concatenate(off)


def corners(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Four clouds at the corners of a square; the class is the exclusive or of the two sides."""
    side = rng.integers(2, size=(n, 2))
    return side * 2.0 - 1.0 + rng.normal(scale=0.5, size=(n, 2)), side[:, 0] ^ side[:, 1]


def powers(X: Array) -> Array:
    """φ(x) = (1, x, x²) of each row."""
    return np.column_stack([np.ones(len(X)), X, X**2])


def natural(log_p: Array, means: Array, variances: Array) -> Array:
    """Coefficients of φ(x) in log p(x, y, k), (r, K, 1 + 2d)."""
    first = log_p - 0.5 * (means**2 / variances + np.log(2 * np.pi * variances)).sum(axis=-1)
    return np.concatenate([first[..., None], means / variances, -0.5 / variances], axis=-1)


def conditional(eta: Array, X: Array, y: Array) -> tuple[float, Array]:
    """CLL of natural parameters, and s̄(X, Y - P), written out."""
    phi, Y = powers(X), np.eye(eta.shape[0])[y]
    pairs = np.einsum("ykp,np->nyk", eta, phi)
    joint = logsumexp(pairs, axis=2)
    log_P = joint - logsumexp(joint, axis=1, keepdims=True)
    share = (Y - np.exp(log_P))[:, :, None] * np.exp(pairs - joint[:, :, None])
    return log_P[np.arange(len(y)), y].sum(), np.einsum("nyk,np->ykp", share, phi)


def bend(eta: Array, v: Array, X: Array, y: Array) -> float:
    """Second derivative of CLL along v: variances given row and label less those given the row."""
    phi = powers(X)
    pairs, along = (np.einsum("ykp,np->nyk", part, phi) for part in (eta, v))
    of_label = np.arange(len(y)), y

    def variance(log_weights: Array, values: Array) -> Array:
        weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        mean = (weights * values).sum(axis=1, keepdims=True)
        return (weights * (values - mean) ** 2).sum(axis=1)

    flat = (len(y), -1)
    return (variance(pairs[of_label], along[of_label]) - variance(pairs.reshape(flat), along.reshape(flat))).sum()


def gradients(X: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """Finite differences less the formulas, the library's gradient less the formula, and slopes with gaps."""
    X = X - X.mean(axis=0)  # about which the library takes statistics
    model = Mixture(GaussianNB(), n_components=2, random_state=0).fit(X, y)
    theta = model.parameters_.components
    eta = natural(*(np.reshape(part, (2, 2, *part.shape[1:])) for part in theta[:3]))
    by_hand, differences = conditional(eta, X, y)[1], np.empty_like(eta)
    for place in np.ndindex(eta.shape):
        step = np.zeros_like(eta)
        step[place] = 1e-5 * max(1.0, abs(eta[place]))
        up, down = (conditional(eta + sign * step, X, y)[0] for sign in (1, -1))
        differences[place] = (up - down) / (2 * step[place])
    largest = abs(by_hand).max()

    found = Objective.from_estimator(model, X, y)
    found = found.evaluate(found.start).gradient.components
    library = np.concatenate([found.count[:, None], found.first, found.second], axis=1).reshape(eta.shape)

    # the Hessian in the units of the statistics: changes of the gradient less variances along sums and differences
    units = np.broadcast_to(1 / np.sqrt(np.mean(powers(X) ** 2, axis=0)), eta.shape)
    ways = [v.reshape(eta.shape) for v in np.diag(units.ravel())]
    changes = [(conditional(eta + 1e-5 * v, X, y)[1] - conditional(eta - 1e-5 * v, X, y)[1]) / 2e-5 for v in ways]
    bends = [
        (np.sum(change * w) - (bend(eta, v + w, X, y) - bend(eta, v - w, X, y)) / 4) / len(y)
        for change, v in zip(changes, ways)
        for w in ways
    ]
    rng = np.random.default_rng(141)
    return (differences - by_hand) / largest, (library - by_hand) / largest, np.array(bends), slopes_with_gaps(rng)


def tables_with_gaps(rng: np.random.Generator, n: int = 200) -> dict[str, tuple[Mixture, Array, Array]]:
    """Mixtures of four families, and rows with a fifth of the values missing."""
    y, cloud = rng.integers(2, size=n), rng.integers(2, size=n)
    numbers = rng.normal(size=(n, 2)) + np.where(y == cloud, 2.0, -1.0)[:, None] * [1.0, 0.5]
    states = (rng.uniform(size=(n, 3)) < np.where((y + cloud)[:, None] % 2, 0.8, 0.3)).astype(float)
    both = [("states", CategoricalNB(prior_strength=1.0), [0, 1, 2]), ("numbers", GaussianNB(), [3, 4])]
    models = {
        "naive Bayes": (GaussianNB(), numbers),
        "QDA": (QDA(), numbers),
        "categories": (CategoricalNB(prior_strength=1.0), states),
        "both": (ProductModel(both), np.hstack([states, numbers])),
    }
    return {
        name: (Mixture(model, n_components=2, random_state=0), np.where(rng.uniform(size=X.shape) < 0.2, np.nan, X), y)
        for name, (model, X) in models.items()
    }


def slopes_with_gaps(rng: np.random.Generator) -> Array:
    """Differences of CLL along statistics less what the gradient tells, relative, for rows with gaps."""
    off = []
    for model, X, y in tables_with_gaps(rng).values():
        F = Objective.from_estimator(model, X, y)
        start, family = F.evaluate(F.start), F.family
        change = 1e-4 * family.expected_statistics(F.X, rng.uniform(size=(len(y), 2)), start.parameters)
        ends = [family.parameters(start.statistics + sign * change) for sign in (1, -1)]
        up, down = (log_softmax(family.log_joint(F.X, end), axis=1)[np.arange(len(y)), y].sum() for end in ends)
        moved = family.natural_parameters(ends[0]).ravel() - family.natural_parameters(ends[1]).ravel()
        off.append(start.gradient.ravel() @ moved / (up - down) - 1)
    return np.array(off)


def climbs() -> tuple[Array, Array, Array, Array]:
    """Gains of safe steps, what the end still promises, how far ends of other starts differ, lengths not valid."""
    gains, promised, ends, invalid = [], [], [], []
    for model, X, y in tables_with_gaps(np.random.default_rng(142)).values():
        F = Objective.from_estimator(model, X, y, target="pooled", target_weight=0.3)
        path = climb(F, Safe(), Converged(1e-8), 300, keep_points=True)
        gains.extend(np.diff([point.value for point in path.points]))
        promised.append(slope(F, path.point, len(y)) / len(y))
        try:
            F.evaluate(F.start + 1e4 * F.evaluate(F.start).gradient)
        except InvalidStatistics:
            invalid.append(True)
        else:
            invalid.append(False)
    for seed in range(4):
        start = Mixture(GaussianNB(), n_components=3, n_starts=1, random_state=seed)
        X, y = corners(200, np.random.default_rng(143))
        F = Objective.from_estimator(start, X, y, target="pooled", target_weight=0.3)
        ends.append(climb(F, Safe(), Converged(1e-8), 300).point.value)
    return np.array(gains), np.array(promised), np.ptp(ends), np.array(invalid)


def slope(F: Objective, point: Any, n: int) -> float:
    """Largest change of F, to first order, along steps of a thousandth of the statistics of one class."""
    found = []
    for c in range(2):
        weights = np.tile(np.eye(2)[c], (n, 1))
        change = 1e-3 * F.family.expected_statistics(F.X, weights, point.parameters)
        found.append((F.evaluate(point.statistics + change).value - F.evaluate(point.statistics - change).value) / 2)
    return max(map(abs, found))


def between_orders() -> tuple[Array, Array, Array, float]:
    """Shares t of the way from a mixture to itself in another order, log-likelihood and CLL there, the greatest CLL of
    one component; nats a row, rows of the exclusive or."""
    X, y = corners(400, np.random.default_rng(144))
    model = RiskCalibration(Mixture(GaussianNB(), n_components=2, random_state=0)).fit(X, y)
    theta = model.estimator_.parameters_.components
    eta = natural(*(np.reshape(part, (2, 2, *part.shape[1:])) for part in theta[:3]))
    shares, joint, cll = np.linspace(0.0, 1.0, 41), [], []
    for t in shares:
        way = (1 - t) * eta + t * np.stack([eta[0, ::-1], eta[1]])
        cll.append(conditional(way, X, y)[0] / len(y))
        joint.append(likelihood(way, X, y) / len(y))
    one = ConditionalLikelihood(GaussianNB()).fit(X, y)
    best = one.predict_log_proba(X)[np.arange(len(y)), y].mean()
    return shares, np.array(joint), np.array(cll), best


def likelihood(eta: Array, X: Array, y: Array) -> float:
    """Σ_i log p(x_i, y_i) of natural parameters that need not be normalised."""
    first, second = np.split(eta[..., 1:], 2, axis=-1)
    mass = eta[..., 0] + (0.5 * np.log(np.pi / -second) - first**2 / (4 * second)).sum(axis=-1)
    pairs = np.einsum("ykp,np->nyk", eta, powers(X))
    return logsumexp(pairs, axis=2)[np.arange(len(y)), y].sum() - len(y) * logsumexp(mass)


class Components:
    """A component family f_θ(x) = h(x) exp(⟨θ, φ(x)⟩ - A(θ)) on a grid: φ(x), A, log h(x), θ of three components."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        line = np.linspace(-9.0, 9.0, 91)
        X = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        self.log_h, self.cell = np.zeros(len(X)), (line[1] - line[0]) ** 2
        if name == "one covariance":
            self.S = np.array([[1.0, 0.3], [0.3, 0.6]])
            self.phi, self.theta = X, rng.normal(size=(3, 2))
            self.log_h = multivariate_normal([0, 0], self.S).logpdf(X)
            self.beta = rng.normal(size=2)
        elif name == "a covariance each":
            self.phi = np.column_stack([X, X**2, X[:, :1] * X[:, 1:]])
            precisions = np.array([[1.0, 0.2, 1.5], [2.0, -0.5, 1.0], [0.8, 0.0, 0.9]])
            self.theta = np.column_stack([rng.normal(size=(3, 2)), -precisions[:, [0, 2]] / 2, -precisions[:, 1]])
            self.beta = np.array([0.6, -0.8, -0.3, 0.1, 0.2])
        else:
            self.phi = np.array(list(product([0.0, 1.0], repeat=5)))
            self.theta, self.beta = rng.normal(size=(3, 5)), rng.normal(size=5)
            self.log_h, self.cell = np.zeros(len(self.phi)), 1.0

    def log_mass(self, theta: Array) -> Array:
        """A(θ) of each row."""
        if theta.shape[1] == 2:
            return 0.5 * np.einsum("ki,ij,kj->k", theta, self.S, theta)
        if len(self.phi) == 32:
            return np.logaddexp(0.0, theta).sum(axis=1)
        J = -np.stack([2 * theta[:, 2], theta[:, 4], theta[:, 4], 2 * theta[:, 3]], axis=1).reshape(-1, 2, 2)
        solved = np.linalg.solve(J, theta[:, :2, None])[..., 0]
        return 0.5 * (solved * theta[:, :2]).sum(axis=1) - 0.5 * np.log(np.linalg.det(J)) + np.log(2 * np.pi)

    def log_density(self, log_w: Array, theta: Array) -> Array:
        """log Σ_k w_k f_θk(x) of each point of the grid."""
        return self.log_h + logsumexp(log_w + self.phi @ theta.T - self.log_mass(theta), axis=1)

    def curvature(self, log_odds: Array) -> float:
        """How far log odds are from the nearest a + ⟨b, φ(x)⟩."""
        terms = np.column_stack([np.ones(len(self.phi)), self.phi])
        return abs(log_odds - terms @ np.linalg.lstsq(terms, log_odds, rcond=None)[0]).max()


def moved_mixtures() -> tuple[Array, Array, Array, Array]:
    """Masses of densities less one; log odds of mixtures whose components are moved by one vector, less those of the
    theorem; how far other log odds are from those of one component; those of one component fitted to the rows, less
    the truth."""
    rng, masses, same, bent = np.random.default_rng(145), [], [], []
    log_w = np.log([0.5, 0.3, 0.2])
    for name in ("one covariance", "a covariance each", "categories"):
        family = Components(name, rng)
        tilt = family.log_mass(family.theta + family.beta) - family.log_mass(family.theta)
        log_Z = logsumexp(log_w + tilt)
        zero = family.log_density(log_w, family.theta)
        one = family.log_density(log_w + tilt - log_Z, family.theta + family.beta)
        masses.extend(family.cell * np.exp(density).sum() - 1 for density in (zero, one))
        same.extend(one - zero - (family.phi @ family.beta - log_Z))
        near = family.theta + family.beta
        near[0, 0] += 0.3
        others = [(log_w, family.theta + family.beta), (log_w + tilt - log_Z, near), (np.zeros(1), near[1:2])]
        bent.append([family.curvature(family.log_density(*other) - zero) for other in others])
        if name == "one covariance":
            fitted = one_component(family.phi, zero, one)
    return np.array(masses), np.array(same), np.array(bent), fitted


def one_component(X: Array, zero: Array, one: Array) -> Array:
    """Log odds of the calibrated LDA of weighted grid points, less those of the two densities."""
    rows, y = np.vstack([X, X]), np.repeat([0, 1], len(X))
    weight = np.exp(np.concatenate([zero, one]))
    fit = ConditionalLikelihood(LDA(), tol=1e-12).fit(rows, y, sample_weight=weight / weight.mean())
    log_P = fit.predict_log_proba(X)
    return log_P[:, 1] - log_P[:, 0] - (one - zero)


def what_posteriors_miss() -> tuple[Array, Array, Array, Array]:
    """Joint densities in another order, posteriors and densities after a common tilt, and with a gap; and the laws of
    two mixtures of two binary features, less each other."""
    X, y = clouds(300, np.random.default_rng(146))
    model = Mixture(GaussianNB(), n_components=2, random_state=0).fit(X, y)
    theta, family = model.parameters_, model.family_
    joint = family.log_joint(X, theta)
    order = np.array([1, 0, 3, 2])
    swapped = theta._replace(components=type(theta.components)(*(part[order] for part in theta.components)))

    log_p, means, variances = (np.reshape(part, (2, 2, *part.shape[1:])) for part in theta.components[:3])
    tilt = np.array([0.7, -0.4])
    tilted = log_p + (means * tilt + 0.5 * variances * tilt**2).sum(axis=-1)
    tilted = tilted - logsumexp(tilted), means + variances * tilt, variances

    def densities(of: slice) -> list[Array]:
        views = [(a, b[..., of], c[..., of]) for a, b, c in ((log_p, means, variances), tilted)]
        return [logsumexp(log_pairs(X[:, of], *view), axis=2) for view in views]

    (before, after), (gappy, gappy_after) = densities(slice(None)), densities(slice(1))
    unlike = np.abs(log_softmax(gappy_after, axis=1) - log_softmax(gappy, axis=1)).max()
    moved = np.abs(logsumexp(after, axis=1) - logsumexp(before, axis=1)).max()
    laws = [0.5 * np.outer([a, 1 - a], [b, 1 - b]) + 0.5 * np.outer([1 - a, a], [1 - b, b]) for a, b in
            ((0.8, 0.7), (0.9, 0.65))]  # fmt: skip
    same = log_softmax(after, axis=1) - log_softmax(before, axis=1)
    return family.log_joint(X, swapped) - joint, same, np.array([moved, unlike]), laws[0] - laws[1]


def drawn_to_the_target() -> tuple[float, float]:
    """Posteriors of a mixture calibrated with b = 1,000,000 less those of its pooled target, and how far the
    covariances of that target differ."""
    X, y = corners(200, np.random.default_rng(147))
    model = Mixture(QDA(), n_components=2, random_state=0).fit(X, y)
    target = model.family_.pooled_parameters(model.statistics_)[0]
    P = np.exp(log_softmax(model.family_.log_joint(X, target), axis=1))
    drawn = RiskCalibration(model, target_weight=1e6).fit(X, y).predict_proba(X)
    return abs(drawn - P).max(), np.ptp(target.components.covariance, axis=0).max()
