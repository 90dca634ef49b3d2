"""What the checks of the chapter *TM, DFE and gradient descent* try: updates, slopes and projections."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.studies import dfe_on_small_sets as small
from rcbook.projected_descent import ProjectedGradientDescent, project_simplex, quadratic_gradient
from rcbook.simulation import clouds
from rcbook.small_families import derivative, documents, entries, row_statistics
from rcbook.trials.steps_leaves_and_rates import gauss_hermite, gaussian_curvatures, relative_curvature
from rcpkg import (
    QDA,
    TM,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    InvalidStatistics,
    MultinomialNB,
    RiskCalibration,
    Statistics,
)
from rcpkg.base import Array
from rcpkg.calibration import Batches, Fixed
from rcpkg.families.count_model import CategoricalParameters


def numbers(theta: Array) -> Array:
    """All numbers of parameters as one vector."""
    if isinstance(theta, tuple):
        return np.concatenate([numbers(part) for part in theta])
    return np.ravel(theta)


def class_free(statistics: Statistics, r: int = 3) -> Array:
    """The statistics that do not depend on the class: sums over the classes, and what these share."""
    parts = [
        class_free(part, r) if isinstance(part, Statistics) else part.sum(axis=0) if len(part) == r else part
        for part in statistics
    ]
    return numbers(tuple(parts))


def tm_and_rc(
    families: Mapping[str, Any], Y: Array, softmax_rows: Callable[..., Any], n: int, y: Array
) -> tuple[list[float], Array]:
    """Largest gaps between the parameters of TM and of RC with a rate of one, and what TM adds to the statistics a row
    that do not depend on the class."""
    apart, added = [], []
    for model, X in families.values():
        labelled = model.statistics(X, Y)
        theta = model.parameters(labelled)
        for _ in range(6):
            P = softmax_rows(model.log_joint(X, theta))
            T_step = model.statistics(X, P) - n * model.family_.mean_parameters(theta)
            theta = model.parameters(labelled - T_step)
        by_rcpkg = TM(model, max_iter=6, on_invalid="raise").fit(X, y).estimator_
        by_steps = numbers(theta)
        off = np.abs(by_steps - numbers(by_rcpkg.parameters_)).max()
        apart.append(off / max(1.0, np.abs(by_steps).max()))
        added.append(class_free(by_rcpkg.statistics_) / n - class_free(labelled) / n)
    return apart, np.concatenate(added)


def indicators(codes: Array) -> tuple[Array, Array]:
    """One column for each state of each feature, and the features' bounds."""
    sizes = codes.max(axis=0).astype(int) + 1
    phi = np.hstack([np.eye(k)[column] for k, column in zip(sizes, codes.T.astype(int))])
    return phi, np.r_[0, np.cumsum(sizes)]


def moments(X: Array) -> Array:
    """x and x x^T of the rows, side by side."""
    products = np.einsum("ia,ib->iab", X, X)
    return np.hstack([X, products.reshape(len(X), -1)])


def gaussian(nu: Array) -> tuple[Array, Array]:
    """Means and covariances of classes with these moments."""
    r, d = len(nu), int(np.sqrt(nu.shape[1]))
    mean = nu[:, :d]
    second = nu[:, d:].reshape(r, d, d)
    return mean, second - np.einsum("ya,yb->yab", mean, mean)


def scores_of_categories(nu: Array, phi: Array) -> Array:
    """Log joint of categories."""
    return phi @ np.log(nu).T


def scores_of_gaussians(nu: Array, phi: Array) -> Array:
    """Log joint of Gaussians."""
    mean, covariance = gaussian(nu)
    apart = phi[:, None, : mean.shape[1]] - mean
    solved = np.einsum("iya,yab->iyb", apart, np.linalg.inv(covariance))
    log_det = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return -0.5 * (log_det + np.einsum("iya,iya->iy", apart, solved))


def is_valid(scores: Callable[..., Any], nu: Array) -> Array:
    """Probabilities all positive, covariances positive definite; by class."""
    if scores is scores_of_categories:
        return (nu > 0).all(axis=1)
    covariance = gaussian(nu)[1]
    finite = np.isfinite(covariance).all(axis=(1, 2))
    return finite & (np.linalg.eigvalsh(covariance)[:, 0] > 0)


def recognisers(
    y: Array, extended_baum_welch: Callable[..., Any], codes: Array, rows: Array
) -> tuple[type, dict[str, Callable[..., Any]]]:
    """Recognisers in terms of π and ν, for naive Bayes and QDA."""

    class Recogniser:
        """Extended Baum-Welch in terms of pi and nu, without statistics s."""

        def __init__(self, scores, phi, y):
            self.scores, self.phi, self.Y = scores, phi, np.eye(y.max() + 1)[y]
            self.n_y = self.Y.sum(axis=0)
            self.pi, self.nu = self.n_y / len(y), self.Y.T @ phi / self.n_y[:, None]

        def joint(self, pi=None, nu=None):
            pi, nu = (self.pi, self.nu) if pi is None else (pi, nu)
            return np.log(pi) + self.scores(nu, self.phi)

        def log_posterior(self):
            return log_softmax(self.joint(), axis=1)

        def W(self):
            return self.Y - np.exp(self.log_posterior())

        def likelihood(self, pi=None, nu=None):
            joint = self.joint(pi, nu)
            return np.sum(self.Y * joint) - np.logaddexp.reduce(joint, axis=1).sum()

        def after(self, W, D_y, D):
            nu = extended_baum_welch(self.nu, self.phi, W, D_y)
            return self.pi + W.sum(axis=0) / D, nu

        def least_constants(self, W):
            """The least valid D_y of each class, by bisection."""
            low = -W.sum(axis=0)
            high = low + 1e6
            for _ in range(100):
                middle = (low + high) / 2
                nu = extended_baum_welch(self.nu, self.phi, W, middle)
                good = is_valid(self.scores, nu)
                low, high = (
                    np.where(good, low, middle),
                    np.where(good, middle, high),
                )
            return high

    spoken = {
        "CategoricalNB": lambda: Recogniser(scores_of_categories, indicators(codes)[0], y),
        "QDA": lambda: Recogniser(scores_of_gaussians, moments(rows), y),
    }
    return Recogniser, spoken


def extended_updates(
    spoken: Mapping[str, Callable[..., Any]],
    families: Mapping[str, Any],
    n: int,
    calibrated: Callable[..., Any],
    gradient_of: Callable[..., Any],
) -> tuple[list[float], list[float], list[float], list[bool]]:
    """Ten updates of extended Baum–Welch beside RC: posteriors, gains and the longest valid rate."""
    apart, off_constants, gains, longest, lr = [], [], [], [], 0.5
    rng = np.random.default_rng(601)
    for name, make in spoken.items():
        model, X = families[name]
        ebw = make()
        for _ in range(10):
            ebw.pi, ebw.nu = ebw.after(ebw.W(), n * ebw.pi / lr, n / lr)
        by_rc = calibrated(model, lr, 10, X).predict_log_proba(X)
        apart.append(np.abs(ebw.log_posterior() - by_rc).max())
        ebw = make()
        for _ in range(10):  # the constants of another rate for one class
            tilted = n * ebw.pi / lr * np.array([2, 1, 1])
            ebw.pi, ebw.nu = ebw.after(ebw.W(), tilted, n / lr)
        off_constants.append(np.abs(ebw.log_posterior() - by_rc).max())

        ebw, W = make(), make().W()
        slope = W.T @ ebw.phi - W.sum(axis=0)[:, None] * ebw.nu
        before = ebw.likelihood()
        for _ in range(5):
            D_y, D = 1e6 * rng.uniform(1, 5, size=3), 1e6 * rng.uniform(1, 5)
            gain = np.sum(W.sum(axis=0) ** 2 / ebw.pi) / D
            for c in range(3):  # Cov_y phi, of the model
                if name == "QDA":
                    mean, covariance = (part[c] for part in gaussian(ebw.nu))
                    v = slope[c, :2]
                    M = slope[c, 2:].reshape(2, 2)
                    M = M - np.outer(v, mean) - np.outer(mean, v)
                    inverse = np.linalg.inv(covariance)
                    quadratic = v @ inverse @ v
                    quadratic += 0.5 * np.trace(inverse @ M @ inverse @ M)
                else:
                    quadratic = np.sum(slope[c] ** 2 / ebw.nu[c])
                gain += quadratic / D_y[c]
            rise = ebw.likelihood(*ebw.after(W, D_y, D)) - before
            gains.append(rise / gain - 1)

        least = ebw.least_constants(W)
        s = model.statistics_
        binding = least > 0
        ratio = np.min(s.count[binding] / least[binding])
        delta = gradient_of(model, X, s)[1]
        for factor, valid in ((0.999, True), (1.001, False)):
            try:
                model.parameters(s + factor * ratio * delta)
                longest.append(valid)
            except InvalidStatistics:
                longest.append(not valid)
    return apart, off_constants, gains, longest


def forms_of_the_update(
    spoken: Mapping[str, Callable[..., Any]], extended_baum_welch: Callable[..., Any], codes: Array
) -> tuple[Array, list[float]]:
    """Growth transformation of naive Bayes by slopes of its likelihood; moves at the optimum, with random constants."""
    ebw, bounds = spoken["CategoricalNB"](), indicators(codes)[1]
    t, slopes = 1e-6, np.zeros_like(ebw.nu)
    for c, v in np.ndindex(*ebw.nu.shape):
        up, down = (ebw.nu.copy() for _ in range(2))
        up[c, v] += t
        down[c, v] -= t
        slopes[c, v] = (ebw.likelihood(ebw.pi, up) - ebw.likelihood(ebw.pi, down)) / (2 * t)
    D_y = np.array([300.0, 500.0, 900.0])
    grown = ebw.nu * (slopes + D_y[:, None])
    for a, b in pairwise(bounds):
        grown[:, a:b] /= grown[:, a:b].sum(axis=1, keepdims=True)
    rng, moves = np.random.default_rng(606), []
    for make in spoken.values():
        rest = make()
        for _ in range(2000):
            rest.pi, rest.nu = rest.after(rest.W(), 2 * rest.n_y, 2 * rest.n_y.sum())
        pi, nu = rest.after(rest.W(), rest.n_y * rng.uniform(2, 9, size=3), 900.0)
        moves += [np.abs(pi - rest.pi).max(), np.abs(nu - rest.nu).max()]
    return grown - extended_baum_welch(ebw.nu, ebw.phi, ebw.W(), D_y), moves


def published_recogniser(
    extended_baum_welch: Callable[..., Any],
    Recogniser: type,
    codes: Array,
    y: Array,
    rows: Array,
    noisy: Array,
) -> tuple[Array, Array, Array, pd.DataFrame]:
    """Updates of the published rule that raise the log-loss, and how many it needs."""

    def published_constants(ebw, W, E):
        """max(E times the denominator count, twice the least), as in Kaldi."""
        D_y = E * (ebw.Y - W).sum(axis=0) / 2
        while True:
            nu = extended_baum_welch(ebw.nu, ebw.phi, W, D_y)
            good = is_valid(ebw.scores, nu) & (W.sum(axis=0) + D_y > 0)
            if good.all():
                break
            D_y = np.where(good, D_y, 1.1 * D_y)
        worst = np.max(-W.sum(axis=0) / ebw.pi)
        return 2 * D_y, max(2 * D_y.sum(), 2 * worst)

    def run_published(scores, phi, labels, E, T=100):
        ebw, losses = Recogniser(scores, phi, labels), []
        for _ in range(T):
            losses.append(-ebw.likelihood() / len(labels))
            W = ebw.W()
            ebw.pi, ebw.nu = ebw.after(W, *published_constants(ebw, W, E))
        return np.array([*losses, -ebw.likelihood() / len(labels)])

    cancer_X, cancer_y = load_breast_cancer(return_X_y=True)
    cancer_X3 = StandardScaler().fit_transform(cancer_X[:, [1, 4, 8]])
    constants = {}
    for title, model, X, labels in (
        ("categories, NB", CategoricalNB(), codes, y),
        ("heavy tails, QDA", QDA(), rows, y),
        ("three features, QDA", QDA(), noisy[:90], y[:90]),
        ("breast cancer, QDA", QDA(), cancer_X3, cancer_y),
    ):
        spoken_as = (
            (scores_of_categories, indicators(X)[0])
            if title.endswith("NB")
            else (scores_of_gaussians, moments(X))
        )
        exact = ConditionalLikelihood(model, tol=1e-8).fit(X, labels)
        lowest = exact.history_.log_loss.min()
        safe = {"step": "safe", "target_weight": 0.0, "tol": 0.0}
        runs = {
            "RC, 0.1": RiskCalibration.as_published(model, stopping="none", max_iter=100),
            "TM": TM(model, max_iter=100),
            "safe RC": RiskCalibration(model, max_iter=100, **safe),
        }
        losses = {way: run.fit(X, labels).history_.log_loss.to_numpy() for way, run in runs.items()}
        for E in (1, 2):
            losses[f"E = {E}"] = run_published(*spoken_as, labels, E)
        for way, loss in losses.items():
            near = loss - lowest < 1e-3
            constants[title, way] = {
                "updates": np.argmax(near) if near.any() else np.nan,
                "rises": np.sum(np.diff(loss) > 1e-12),
            }
    constants = pd.DataFrame(constants).T.unstack(level=0).swaplevel(axis=1)
    constants = constants.sort_index(axis=1).loc[["RC, 0.1", "TM", "E = 1", "E = 2", "safe RC"]]
    return cancer_X, cancer_y, cancer_X3, constants


def i_smoothing(
    spoken: Mapping[str, Callable[..., Any]],
    families: Mapping[str, Any],
    y: Array,
    n: int,
    Recogniser: type,
    rows: Array,
) -> tuple[list[float], list[float], list[float]]:
    """Posteriors and slopes of I-smoothing beside the generative target."""

    def smoothed(ebw, tau, lr=0.5, T=1000):
        """Extended Baum-Welch with I-smoothing, after T updates."""
        own = ebw.Y.T @ ebw.phi / ebw.n_y[:, None]
        for _ in range(T):
            W = ebw.W()
            D_y, total = len(W) * ebw.pi / lr, len(W) / lr
            count = W.sum(axis=0) + tau
            ebw.nu = W.T @ ebw.phi + tau * own + D_y[:, None] * ebw.nu
            ebw.nu /= (count + D_y)[:, None]
            ebw.pi = (count + total * ebw.pi) / (len(count) * tau + total)
        return ebw

    tau, against = 40.0, []
    for name, make in spoken.items():
        model, X = families[name]
        rest = smoothed(make(), tau)
        target = ConditionalLikelihood(model, target="generative", target_weight=tau / 80, tol=1e-8)
        posterior = np.exp(rest.log_posterior())
        against.append(np.abs(posterior - target.fit(X, y).predict_proba(X)).max())
    few = np.union1d(np.arange(0, n, 9), np.flatnonzero(y > 0))  # of class 0
    unequal = Recogniser(scores_of_gaussians, moments(rows[few]), y[few])
    rest = smoothed(unequal, tau)

    def objective(weights, nu):
        """CLL plus the weighted log-likelihoods of the classes' own rows."""
        own = np.sum(rest.Y * rest.scores(nu, rest.phi), axis=0)
        return rest.likelihood(rest.pi, nu) + weights @ own

    rng, t, flat, steep = np.random.default_rng(602), 1e-5, [], []
    for _ in range(10):
        v = rng.normal(size=rest.nu.shape)
        v[:, 2:] = moments(v[:, :2])[:, 2:]  # symmetric
        for found, weights in (
            (flat, tau / rest.n_y),
            (steep, np.full(3, 3 * tau / len(few))),
        ):
            up, down = (objective(weights, rest.nu + k * v) for k in (t, -t))
            found.append(abs(up - down) / (2 * t))
    return against, flat, steep


def toy_updates(
    toy: Any,
    softmax_rows: Callable[..., Any],
    log_likelihood: Callable[..., Any],
    toy_gradient: Callable[..., Any],
    toy_sets: Sequence[tuple[Array, Array]],
) -> tuple[Callable[..., Any], list[Array], list[Array], list[float], dict[int, list], Statistics]:
    """Slopes and updates of the curved model, by formula and by its statistics."""

    def toy_statistics(X, Y, means):
        """s(X, Y - P) at the means."""
        return toy.statistics(X, Y - softmax_rows(toy.log_joint(X, means)))

    def at_maximum(X, Y_toy, means):
        return minimize(
            lambda m: -log_likelihood(toy, X, m, Y_toy),
            means,
            jac=lambda m: -toy_gradient(m, X, Y_toy)[0],
            options={"gtol": 1e-9},
        ).x

    slopes, updates, stays, moves, lr = [], [], [], {2: [], 3: []}, 0.5
    for X, Y_toy in toy_sets[:20]:
        s = toy.statistics(X, Y_toy)
        means = toy.parameters(s)
        gradient, counts = toy_gradient(means, X, Y_toy)
        seen = [
            log_likelihood(toy, X, means + e, Y_toy) - log_likelihood(toy, X, means - e, Y_toy)
            for e in 1e-6 * np.eye(2)
        ]
        slopes.append((np.array(seen) / 2e-6 - gradient) / (1 + abs(gradient)))
        moved = s + lr * toy_statistics(X, Y_toy, means)
        formula = means + gradient / (s.count / lr + counts)
        updates.append(toy.parameters(moved) - formula)
        best = at_maximum(X, Y_toy, means)
        s = Statistics(count=s.count, total=s.count * best)  # any with these means
        moved = s + lr * toy_statistics(X, Y_toy, best)
        stays.append(np.abs(toy.parameters(moved) - best).max())
        moves[2].append(np.abs(moved.count - s.count).max())
    rng = np.random.default_rng(603)
    labels = np.repeat([0, 1, 2], (10, 20, 60))
    X, Y_toy = rng.normal(1.0 * labels)[:, None], np.eye(3)[labels]
    start = toy.parameters(toy.statistics(X, Y_toy))
    best = at_maximum(X, Y_toy, start)
    s = Statistics(count=Y_toy.sum(axis=0), total=Y_toy.sum(axis=0) * best)
    lasts = 0
    while (s.count > 0).all() and lasts < 10_000:
        moved = s + lr * toy_statistics(X, Y_toy, toy.parameters(s))
        moves[3].append(np.abs(moved.count - s.count).max())
        s, lasts = moved, lasts + 1
    return toy_statistics, slopes, updates, stays, moves, s


def metric_of_the_toy(
    toy: Any,
    softmax_rows: Callable[..., Any],
    toy_gradient: Callable[..., Any],
    toy_sets: Sequence[tuple[Array, Array]],
) -> tuple[list[Array], list[Array], list[bool]]:
    """The natural gradient by the Fisher information of a pair, by quadrature, over 2 lr / m times the slope; the
    first step of RC over it; and whether this step leads upwards."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    natural, taken, upwards, lr, t = [], [], [], 0.5, 1e-4
    for X, Y_toy in toy_sets[:20]:
        s = toy.statistics(X, Y_toy)
        means = toy.parameters(s)
        information = np.zeros((2, 2))
        for c, x in enumerate(means[:, None, None] + nodes[:, None]):  # class c has the weight 1/2
            score = [toy.log_joint(x, means + e)[:, c] - toy.log_joint(x, means - e)[:, c] for e in t * np.eye(2)]
            information += np.einsum("ak,bk,k->ab", score, score, weights) / weights.sum() / 2 / (2 * t) ** 2
        slope = toy_gradient(means, X, Y_toy)[0]
        step = lr / s.count.sum() * np.linalg.solve(information, slope)
        W = Y_toy - softmax_rows(toy.log_joint(X, means))
        move = toy.parameters(s + lr * toy.statistics(X, W)) - means
        natural.append(step / (2 * lr / s.count.sum() * slope))
        taken.append(move / step)
        upwards.append(bool(move @ slope > 0))
    return natural, taken, upwards


def toy_paths(
    toy: Any,
    toy_X: Array,
    toy_Y: Array,
    softmax_rows: Callable[..., Any],
    tm_step: Callable[..., Any],
    toy_gradient: Callable[..., Any],
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Two updates of TM and of RC from the closed form of the curved model."""

    def toy_path(step, T):
        means, path = toy.parameters(toy.statistics(toy_X, toy_Y)), []
        for _ in range(T):
            path.append(means)
            means = step(means)
        return np.array(path)

    def rc_path(lr, T):
        s, path = toy.statistics(toy_X, toy_Y), []
        for _ in range(T):
            try:
                path.append(toy.parameters(s))
            except InvalidStatistics:
                break
            s = s + lr * toy.statistics(toy_X, toy_Y - softmax_rows(toy.log_joint(toy_X, path[-1])))
        return np.array(path)

    tm_means, rc_means = toy_path(tm_step, 3), rc_path(1.0, 3)
    gradient, counts = toy_gradient(tm_means[0])
    n_y = toy_Y.sum(axis=0)
    difference = np.abs(tm_means - rc_means).max(axis=1)
    return tm_means, rc_means, gradient, counts, n_y, difference


def best_value(X: Array, Y_toy: Array) -> float:
    """Maximum of CLL a row: logistic regression on x."""
    sign = 1 - 2 * Y_toy[:, 1]
    return -minimize(
        lambda b: np.logaddexp(0, sign * (b[0] + b[1] * X[:, 0])).mean(),
        [0.0, 1.0],
        tol=1e-10,
    ).fun


def ways_to_the_maximum(
    toy_sets: Sequence[tuple[Array, Array]],
) -> tuple[int, float, int, Array, dict[str, tuple], dict[str, Array]]:
    """Four ways to the maximum of the curved model, and how many sets arrive."""
    T, lr = 60, 0.5
    all_X = np.stack([X[:, 0] for X, _ in toy_sets])
    all_Y = np.stack([Y_toy for _, Y_toy in toy_sets])
    all_n = all_Y.sum(axis=1)
    all_start = np.einsum("siy,si->sy", all_Y, all_X) / all_n

    def slopes_and_counts(means):
        """Derivatives of CLL and sums of the weights, for all sets at once."""
        joint = -0.5 * (all_X[:, :, None] - means[:, None]) ** 2
        log_P = log_softmax(joint, axis=2)
        W = all_Y - np.exp(log_P)
        counts = W.sum(axis=1)
        slope = np.einsum("siy,si->sy", W, all_X) - means * counts
        return slope, counts, np.sum(all_Y * log_P, axis=(1, 2)) / T_rows

    def follow(factor):
        """Means and CLL a row along the way whose steps are factor * slope."""
        means, c, path, values = all_start, all_n.astype(float), [], []
        for _ in range(T + 1):
            slope, counts, value = slopes_and_counts(means)
            path.append(means)
            values.append(value)
            means = means + factor(c, counts) * slope
            c = c + lr * counts
        return np.array(path), np.array(values)

    def of_running_counts(c, counts):
        """RC's factor; NaN once a count has run out."""
        left = c / lr + counts
        return np.where((left > 0).all(axis=1, keepdims=True), 1 / left, np.nan)

    T_rows = all_X.shape[1]
    ways = {
        "RC, lr = 0.5": of_running_counts,
        "D held": lambda c, counts: 1 / (T_rows / (2 * lr) + counts),
        "TM": lambda c, counts: 1 / all_n,
        "gradient": lambda c, counts: 2 * lr / T_rows,
    }
    highest = np.array([best_value(*each) for each in toy_sets])
    ends = {way: follow(factor) for way, factor in ways.items()}
    arrived = {way: np.sum(highest - values < 1e-3, axis=1) for way, (_, values) in ends.items()}
    return T, lr, T_rows, highest, ends, arrived


def rows_of_unequal_lengths(y: Array) -> Array:
    """Counts of three words, with more of the word of the row's class."""
    return np.random.default_rng(8).poisson(1.0 + (y[:, None] == np.arange(3)), size=(len(y), 3)).astype(float)


def multinomial_updates(
    y: Array, n: int, Y: Array, calibrated: Callable[..., Any]
) -> tuple[Array, Array, Array, pd.DataFrame, list[Array], Array, Array]:
    """Updates of the multinomial model by formula, their zero, the drift of words, and, for rows of one length, the
    means after an update less those of mirror ascent."""
    words = rows_of_unequal_lengths(y)
    model = MultinomialNB().fit(words, y)
    s, theta = model.statistics_, np.exp(model.parameters_.log_prob)
    g = model.statistics(words, Y - model.predict_proba(words))
    G, S = g.cells.sum(axis=1, keepdims=True), s.cells.sum(axis=1, keepdims=True)
    after = calibrated(MultinomialNB(), 0.5, 1, words)
    change = np.exp(after.parameters_.log_prob) - theta
    formula = 0.5 / (S + 0.5 * G) * (g.cells - theta * G)
    ratio = pd.DataFrame(
        {
            title: fit.statistics_.cells.sum(axis=1) / fit.statistics_.count
            for title, fit in {
                "as counted": model,
                "after 30 updates": calibrated(MultinomialNB(), 0.5, 30, words),
            }.items()
        }
    ).T
    scaled = Statistics(count=s.count, cells=2 * s.cells)  # the same model
    steps = [
        np.exp(model.parameters(t + 0.5 * g).log_prob) - np.exp(model.parameters(t).log_prob)
        for t in (s, scaled)
    ]

    def free_scores(u):
        """log p(x, y) of twelve free numbers, normalised."""
        return log_softmax(u[:3]) + words @ log_softmax(u[3:].reshape(3, 3), axis=1).T

    best = minimize(
        lambda u: -np.sum(Y * log_softmax(free_scores(u), axis=1)) / n,
        np.zeros(12),
        tol=1e-9,
    ).x
    at_best = (Y - softmax(free_scores(best), axis=1)).T @ words
    p = softmax(best[3:].reshape(3, 3), axis=1)
    force = at_best - p * at_best.sum(axis=1, keepdims=True)
    mirrored = []
    for update in (1, 2):
        before, end = (calibrated(MultinomialNB(), 0.5, T, documents) for T in (update - 1, update))
        means = [
            np.c_[pi, documents[0].sum() * pi[:, None] * theta]
            for pi, theta in ((np.exp(m.parameters_.log_prior), np.exp(m.parameters_.log_prob)) for m in (before, end))
        ]
        W = Y - before.predict_proba(documents)
        mirrored.append(means[1] - means[0] - 0.5 / n * np.c_[W.sum(axis=0), W.T @ documents])
    return words, change, formula, ratio, steps, force, np.array(mirrored)


def frequency_updates(
    Y: Array, softmax_rows: Callable[..., Any], n: int, codes: Array, rows: Array, words: Array, y: Array
) -> tuple[dict[str, Array], list[float], list[float], dict[str, float], dict[str, float], dict[str, float], list]:
    """Updates of DFE: sample sizes, fixed points, the asymmetry of its field, and the derivative by the formula."""

    def rested(model, X, T=200):
        """Statistics at a rest of DFE, by damped steps to the weighted mean."""
        s = model.statistics(X, Y)
        for _ in range(T):
            P = softmax_rows(model.log_joint(X, model.parameters(s)))
            weighted = model.statistics(X, Y * (1 - P))
            s = 0.5 * s + 0.5 * n / np.sum(Y * (1 - P)) * weighted
        return s

    def swirl(model, X, weights_of):
        """Asymmetry of the derivative of a field along two directions; the derivative, and DFE's by part 4."""
        eta = model.family_.natural_parameters(model.parameters_)
        rng, t = np.random.default_rng(604), 1e-5

        def along(v, w):
            """w . (derivative along v)."""
            up, down = (
                model.statistics(X, weights_of(softmax_rows(model.family_.scores(X, eta + k * v))))
                for k in (t, -t)
            )
            return (up - down).dot(w) / (2 * t)

        shapes = {name: part.shape for name, part in vars(eta).items()}
        v, w = (Statistics(**{name: rng.normal(size=k) for name, k in shapes.items()}) for _ in range(2))
        P, S = model.predict_proba(X), row_statistics(model, X)
        of_row = S[np.arange(n), y]
        centred = of_row - np.einsum("iy,iyk->ik", P, S)
        formula = -np.sum(P[np.arange(n), y] * (of_row @ w.ravel()) * (centred @ v.ravel()))
        asymmetry = abs(along(v, w) - along(w, v)) / (1 + abs(along(v, v)))
        return asymmetry, along(v, w) / formula - 1

    growth, ends, moved, rests, score, turning, field = {}, [], [], {}, {}, {}, []
    for title, model, X in (
        ("naive Bayes", CategoricalNB(), codes),
        ("QDA", QDA(), rows),
        ("multinomial", MultinomialNB(), words),
    ):
        fit = DiscriminativeFrequencyEstimate(model, max_iter=400, stopping="none", step=Fixed(0.1)).fit(X, y)
        soft = fit.history_.soft_error.cumsum().to_numpy()
        growth[title] = n + 0.1 * n * np.r_[0, soft[:-1]]
        ends.append(fit.estimator_.statistics_.count.sum() / growth[title][-1] - 1)

        model.fit(X, y)
        s = model.statistics_
        W = Y * (1 - model.predict_proba(X))
        one = DiscriminativeFrequencyEstimate(model, max_iter=1, stopping="none", step=Fixed(0.1)).fit(X, y)
        after = one.estimator_.statistics_
        weighted = model.statistics(X, W).ravel() / W.sum()
        share = 0.1 * W.sum() / after.count.sum()
        change = after.ravel() / after.count.sum() - s.ravel() / n
        moved.append(np.abs(change - share * (weighted - s.ravel() / n)).max())

        s = rested(model, X)
        theta = model.parameters(s)
        W = Y - softmax_rows(model.log_joint(X, theta))
        after = model.parameters(s + model.statistics(X, Y * W))
        scale = max(1.0, np.abs(numbers(theta)).max())
        rests[title] = np.abs(numbers(after) - numbers(theta)).max() / scale
        score[title] = np.abs(model.statistics(X, W).ravel()).max() / n
        if title != "QDA":
            turning[title], off = swirl(model, X, lambda P: Y * (1 - P))
            field.append(off)
            turning["RC, " + title], _ = swirl(model, X, lambda P: Y - P)
    return growth, ends, moved, rests, score, turning, field


def row_by_row_updates(
    codes: Array,
    y: Array,
    row_by_row: Callable[..., Any],
    n: int,
    Y: Array,
    softmax_rows: Callable[..., Any],
    class_scores: Callable[..., Any],
) -> tuple[Callable[..., Any], list[float], Array, CategoricalNB, CategoricalParameters, Array, Array, Array]:
    """DFE row by row beside its batch, by the rate and by the start; of three classes, each against the rest: log odds
    less the nearest linear function of the indicators of states, and log posteriors less those of the counts."""

    def cells_of(codes, states):
        return codes.astype(int) + np.r_[0, np.cumsum(states)[:-1]]

    states = codes.max(axis=0).astype(int) + 1
    Z = cells_of(codes, states)
    empty = Statistics(count=np.zeros(3), cells=np.zeros((3, states.sum())))
    model = CategoricalNB(prior_strength=1.0).fit(codes, y)
    errors = []
    for rate in (1e-3, 5e-4):
        count, cells = row_by_row(Z[:, None], y[:, None], 3, states, lr=rate)
        P = np.full((n, 3), 1 / 3)
        batch = rate * model.statistics(codes, Y * (1 - P))
        # the pseudo-counts that both hold are no statistics
        errors.append(np.abs(count[0] - 1 / 3 - batch.count).max())
    P = softmax_rows(model.log_joint(codes, model.parameters(empty)))
    first = CategoricalNB().fit(codes, y)
    of_empty = first.parameters(first.statistics(codes, Y * (1 - P)))
    two = y < 2
    Z2, y2 = Z[two][:, None], y[two][:, None]
    count, cells = row_by_row(Z2.repeat(2, axis=1), np.hstack([y2, 1 - y2]), 2, states)
    rest = class_scores(count, cells, Z2.repeat(2, axis=1))
    odds = rest[:, :, 0] - rest[:, :, 1]
    each = Z[:, None].repeat(3, axis=1)
    count, cells = row_by_row(each, (y[:, None] != np.arange(3)).astype(int), 2, states)
    of_side = class_scores(count, cells, each)
    returned = log_softmax(of_side[:, :, 0] - of_side[:, :, 1], axis=1)
    phi = indicators(codes)[0]
    log_odds = returned - returned[:, :1]
    bent = log_odds - phi @ np.linalg.lstsq(phi, log_odds)[0]
    apart = returned - log_softmax(of_side[:, :, 0], axis=1)
    return cells_of, errors, P, first, of_empty, odds, bent, apart


def divisions_of_sets(
    stored: pd.DataFrame, cells_of: Callable[..., Any], row_by_row: Callable[..., Any], class_scores: Callable[..., Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Log-loss and error of RC and DFE over twenty divisions of each set: those in batches are ``stored``."""

    def of_rows(parts, r, k, passes, against_rest):
        # scores of the test rows by the row-by-row form, all divisions at once
        states = np.full(parts[0][0].shape[1], k)
        Z = np.stack([cells_of(part[0], states) for part in parts], axis=1)
        side = np.stack([part[1] for part in parts], axis=1)
        if against_rest and r > 2:
            side = (side[:, :, None] != np.arange(r)).reshape(len(side), -1)
            count, cells = row_by_row(Z.repeat(r, axis=1), side.astype(int), 2, states, passes)
        else:
            count, cells = row_by_row(Z, side, r, states, passes)
        for part, *own in zip(parts, np.split(count, 20), np.split(cells, 20)):
            problems = len(own[0])
            z = cells_of(part[2], states)[:, None].repeat(problems, axis=1)
            scores = class_scores(*own, z)
            if problems > 1:
                yield scores[:, :, 0] - scores[:, :, 1]
            else:
                yield scores[:, 0]

    scored = {}
    for title, binned in small.SETS.items():
        parts = small.divisions(title)
        r = parts[0][1].max() + 1
        for way, passes, against_rest in (
            ("rows, 1 pass", 1, True),
            ("rows, 4 passes", 4, True),
            ("rows, one model, 1 pass", 1, False),
        ):
            found = of_rows(parts, r, binned.n_states, passes, against_rest)
            for i, (scores, part) in enumerate(zip(found, parts)):
                scored[title, i, way] = small.losses(log_softmax(scores, axis=1), part[3])
    scored = pd.DataFrame(scored).T
    scored.index.names = ["set", "division", "way"]
    scored = pd.concat([stored.set_index(scored.index.names)[[*scored]], scored])
    means = scored.groupby(["way", "set"], sort=False).mean().unstack()
    return scored, means


def paired_differences(scored: pd.DataFrame) -> tuple[dict[tuple, list], pd.DataFrame]:
    """Mean losses minus those of the batch form, with corrected standard errors."""
    wide = scored.unstack("way").swaplevel(axis=1)
    corrected = np.sqrt(1 / 20 + 0.25 / 0.75)

    def paired(way, than):
        apart = (wide[way] - wide[than]).groupby("set", sort=False)
        return apart.mean(), corrected * apart.std()

    pairs = {}
    for way in ("closed form", "rows, 1 pass", "rows, 4 passes"):
        mean, error = paired(way, "batch, 63 updates")
        for measure in mean:
            pairs[way, measure] = [f"{a:+.3f} ± {b:.3f}" for a, b in zip(mean[measure], error[measure])]
    return pairs, mean


def slopes_of_descent(
    families: Mapping[str, Any], rows: Array, Y: Array, codes: Array, y: Array, n: int
) -> tuple[
    dict[str, float],
    dict[str, float],
    Array,
    Callable[..., Any],
    tuple[int, int],
    Array,
    Array,
    Array,
    Array,
    ProjectedGradientDescent,
]:
    """Slopes of the conditional likelihood beside the printed gradients."""
    rng = np.random.default_rng(506)
    qda = families["QDA"][0]
    precision = np.linalg.inv(qda.parameters_.covariance)
    eta1, eta2 = (
        np.einsum("yab,yb->ya", precision, qda.parameters_.mean),
        -0.5 * precision,
    )

    def normalised_likelihood(eta0, eta1, eta2):
        A = [
            -0.25 * b @ np.linalg.solve(M, b) - 0.5 * np.linalg.slogdet(-2 * M)[1] for b, M in zip(eta1, eta2)
        ]
        scores = eta0 + rows @ eta1.T + np.einsum("ia,yab,ib->iy", rows, eta2, rows) - A
        return np.sum(Y * (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)))

    about_zero = QDA().statistics(rows, Y - qda.predict_proba(rows))
    ways = entries(qda, rows)

    def at(point):
        return normalised_likelihood(*point)

    def slope_by(printed):
        """In each entry, with the matrix or the printed trace."""
        gradient = quadratic_gradient(about_zero, eta1, eta2, printed)
        return np.array([sum(np.sum(d * v) for d, v in zip(gradient, way)) for way in ways])

    eta = Statistics(count=qda.parameters_.log_prior, first=eta1, second=eta2)
    slopes = {
        "finite differences": np.array([derivative(at, eta, way) for way in ways]),
        "corrected": slope_by(False),
        "printed": slope_by(True),
    }
    off = {title: np.abs(found - slopes["finite differences"]).max() / n for title, found in slopes.items()}
    phi, bounds = indicators(codes)

    def normalised_categories(eta0, eta):
        A = sum(np.logaddexp.reduce(eta[:, a:b], axis=1) for a, b in pairwise(bounds))
        return eta0 + phi @ eta.T - A

    shapes = (3, phi.shape[1])
    seen, corrected, printed = [], [], []
    for eta0, eta in ((rng.normal(size=3), rng.normal(size=shapes)) for _ in range(3)):
        W = Y - softmax(normalised_categories(eta0, eta), axis=1)
        theta = np.hstack([softmax(eta[:, a:b], axis=1) for a, b in pairwise(bounds)])
        count, cells = W.sum(axis=0), W.T @ phi
        corrected.append(np.r_[count, np.ravel(cells - theta * count[:, None])])
        printed.append(np.r_[count, cells.ravel()])
        for e in np.eye(3 + eta.size):
            at = [normalised_categories(eta0 + k * e[:3], eta + k * e[3:].reshape(shapes)) for k in (1e-4, -1e-4)]
            up, down = (np.sum(Y * log_softmax(scores, axis=1)) for scores in at)
            seen.append((up - down) / 2e-4)
    seen, corrected, printed = (np.ravel(part) / n for part in (seen, corrected, printed))
    nb = CategoricalNB().fit(codes, y)
    step = nb.statistics(codes, Y - nb.predict_proba(codes)).cells
    step = step - np.exp(nb.parameters_.log_prob) * step[:, :2].sum(axis=1)[:, None]
    moved = nb.parameters_.log_prob + 0.1 / n * step
    moved = np.hstack([log_softmax(moved[:, a:b], axis=1) for a, b in pairwise(bounds)])
    descent = ProjectedGradientDescent(CategoricalNB(), max_iter=1).fit(codes, y)
    return slopes, off, bounds, normalised_categories, shapes, seen, corrected, printed, moved, descent


def projections(
    shapes: tuple[int, int], bounds: Array, normalised_categories: Callable[..., Any]
) -> tuple[
    list[bool], list[float], list[float], float, float, Callable[..., Any], pd.DataFrame, pd.DataFrame
]:
    """Projected and normalised first updates of gradient descent, and the growth of the loss."""
    rng = np.random.default_rng(605)
    zeroed, sums, shifts = [], [], []
    for _ in range(200):
        K = rng.integers(2, 8)
        p = rng.dirichlet(np.full(K, 0.5)) * rng.uniform(1, 1.5)
        projected = project_simplex(p)
        small = p <= (p.sum() - 1) / K
        zeroed += [*(projected[small] == 0)]
        sums.append(projected.sum() - 1)
        eta0, eta = rng.normal(size=3), rng.normal(size=shapes)
        shift = np.repeat(rng.normal(size=(3, len(bounds) - 1)), np.diff(bounds), axis=1)
        before, after = (
            log_softmax(normalised_categories(eta0, each), axis=1) for each in (eta, eta + shift)
        )
        shifts.append(np.abs(after - before).max())
    sigma, floor = 0.03, 0.01
    narrow = np.tile([[sigma], [-sigma], [1.0], [-1.0]], (5, 1))
    widths = np.tile([0, 0, 1, 1], 5)

    def loss_at(v):
        """Mean log-loss with variances v and 1, by the formula."""
        near = np.sqrt(v) * np.exp((sigma**2 / v - sigma**2) / 2)
        far = np.exp((1 - 1 / v) / 2) / np.sqrt(v)
        return (np.log1p(near) + np.log1p(far)) / 2

    first_updates = {}
    for gradient in ("corrected", "printed"):
        for lr in (0.1, 1e-3, 1e-9):
            learner = ProjectedGradientDescent(QDA(), gradient=gradient, learning_rate=lr, max_iter=1)
            first_updates[gradient, f"{lr:g}"] = learner.fit(narrow, widths).history_.log_loss.to_list()
    first_updates = pd.DataFrame(first_updates, index=["before", "after"]).T
    smallest = first_updates.xs("1e-09", level=1)
    return zeroed, sums, shifts, sigma, floor, loss_at, first_updates, smallest


def races(
    y: Array,
    log_likelihood: Callable[..., Any],
    softmax_rows: Callable[..., Any],
    sets: Mapping[str, Any],
    noisy: Array,
) -> tuple[dict[str, Callable[..., Any]], Array, Array, dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Losses of six ways on heavy-tailed rows, and how far above the minimum they are."""

    def only_halved(model, X, y, T, move=lambda s, change: s + change, lr=1.0):
        """RC from a fit, the step halved until it is valid and CLL does not fall."""
        Y = np.eye(y.max() + 1)[y]
        s, theta, values = model.statistics_, model.parameters_, []
        for _ in range(T):
            values.append(log_likelihood(model, X, theta, Y))
            delta = model.statistics(X, Y - softmax_rows(model.log_joint(X, theta)))
            lr *= 2
            while lr > 1e-12:
                try:
                    moved = move(s, lr * delta)
                    new = model.parameters(moved)
                    if log_likelihood(model, X, new, Y) >= values[-1]:
                        s, theta = moved, new
                        break
                except InvalidStatistics:
                    pass
                lr /= 2
        return -np.array(values) / len(y)

    race = {
        "RC, lr = 0.1": lambda m: RiskCalibration.as_published(m, max_iter=100, stopping="none"),
        "TM": lambda m: TM(m, max_iter=100),
        "safe RC": lambda m: RiskCalibration(m, max_iter=100, step="safe", target_weight=0.0, tol=0.0),
        "gradient, lr = 0.1": lambda m: ProjectedGradientDescent(m, max_iter=100),
        "L-BFGS": lambda m: ConditionalLikelihood(m, solver="lbfgs"),
    }

    def gaps_of(model, X, labels):
        """Log-loss above the optimum at each iteration, by learner."""
        losses = {
            title: make(model).fit(X, labels).history_.log_loss.to_numpy() for title, make in race.items()
        }
        model.fit(X, labels)
        losses["safe RC, not accelerated"] = only_halved(
            model, X, labels, 101, model.family_.safe_update, lr=0.1
        )
        exact = ConditionalLikelihood(model, solver="lbfgs", tol=1e-8).fit(X, labels)
        optimum = min(exact.history_.log_loss.min(), min(map(np.min, losses.values())))
        return losses, {title: np.maximum(loss - optimum, 1e-9) for title, loss in losses.items()}

    model, X_race, y_race = sets["heavy tails, QDA"]
    losses, gaps = gaps_of(model, X_race, y_race)
    _small_losses, small_gaps = gaps_of(QDA(), noisy[:90], y[:90])
    return race, X_race, y_race, losses, gaps, small_gaps


def curvature_at_the_limits(
    X_race: Array,
    y_race: Array,
    noisy: Array,
    y: Array,
    calibrated: Callable[..., Any],
    needed: pd.DataFrame,
) -> tuple[dict[str, float], list[float], pd.Series]:
    """The largest relative curvature at the limit of RC, and the iterations of safe RC."""
    largest, moments_off = {}, []
    for side, X, labels in (
        ("left", X_race, y_race),
        ("right", noisy[:90], y[:90]),
    ):
        limit = calibrated(QDA(), 0.2, 200, X, labels)
        joint, S = gauss_hermite(limit)
        mean = limit.family_.mean_parameters(limit.parameters_).ravel()
        moments_off += [*(np.einsum("yi,yik->k", joint, S) - mean)]
        largest[side] = relative_curvature(*gaussian_curvatures(limit, X)).max()
    counts = needed["to 1e-3, left"]
    return largest, moments_off, counts


def relatives_on_the_clouds() -> pd.DataFrame:
    """Training log-loss of the relatives on the clouds, and what they keep."""
    draws = np.random.default_rng(40)
    (cloud_X, cloud_y), (fresh_X, fresh_y) = clouds(300, draws), clouds(20_000, draws)
    relatives = {
        "closed form": GaussianNB(),
        "RC as published": RiskCalibration.as_published(GaussianNB(), stopping="none"),
        "TM": TM(GaussianNB(), max_iter=63),
        "DFE": DiscriminativeFrequencyEstimate(GaussianNB(), max_iter=63, stopping="none"),
        "safe RC": RiskCalibration(GaussianNB(), step="safe", target_weight=0.0, max_iter=63),
        "optimum": ConditionalLikelihood(GaussianNB()),
    }
    found = {}
    for name, learner in relatives.items():
        fit = learner.fit(cloud_X, cloud_y)
        P, P_new = (fit.predict_proba(X) for X in (cloud_X, fresh_X))
        found[name] = {
            "training log-loss": -np.log(P[np.arange(len(P)), cloud_y]).mean(),
            "log-loss": -np.log(P_new[np.arange(len(P_new)), fresh_y]).mean(),
            "error": np.mean(P_new.argmax(axis=1) != fresh_y),
        }
    return pd.DataFrame(found).T


def batches_of_two_rows(
    codes: Array, y: Array, row_statistics: Callable[..., Any], Y: Array, gradient_of: Callable[..., Any]
) -> tuple[Array, Array, Array, list[float], Array, Array, Array]:
    """Mean and covariance of updates by batches of two rows; means of a model after a batch less those of mirror ascent
    on the likelihood of its rows; and whether the rates of
    64 passes, and their squares, keep the bounds by integrals."""
    few = np.arange(12)
    model = CategoricalNB().fit(codes, y)
    z = row_statistics(model, codes[few])
    z = np.einsum("iy,iyk->ik", Y[few] - model.predict_proba(codes[few]), z)
    pairs = np.array([z[i] + z[j] for i in few for j in few[:i]])
    spread = 2 * (12 - 2) / (12 - 1) * np.cov(z.T, bias=True)
    start = model.statistics_
    gradient = gradient_of(model, codes, start)[1]
    errors = []
    for rate in (0.1, 0.05):
        batches = RiskCalibration.as_published(
            CategoricalNB(),
            random_state=0,
            max_iter=1,
            stopping="none",
            step=Batches(size=40, learning_rate=rate),
        )
        moved = batches.fit(codes, y).estimator_.statistics_ - start
        errors.append(np.abs((moved - rate * gradient).ravel()).max())

    def batch_likelihood(eta):
        scores = model.family_.scores(codes[few], eta)
        return np.sum(Y[few] * log_softmax(scores, axis=1))

    eta, mean = (
        way(model.parameters_) for way in (model.family_.natural_parameters, model.family_.mean_parameters)
    )
    after = model.parameters(start + 0.1 * model.statistics(codes[few], Y[few] - model.predict_proba(codes[few])))
    step = len(y) / 0.1 * (model.family_.mean_parameters(after) - mean)
    mirrored = np.array([step.dot(e) - derivative(batch_likelihood, eta, e) for e in entries(model, codes)])
    passes = RiskCalibration.as_published(
        CategoricalNB(), random_state=0, max_iter=64, stopping="none", step=Batches(size=120, learning_rate=0.1)
    )
    rates, t = passes.fit(codes, y).history_.step.to_numpy()[1:] / 0.1, np.arange(1, 65)
    sums = rates.cumsum() >= 3 * ((t + 1) ** (1 / 3) - 1)
    squares = (rates**2).cumsum() <= 4 - 3 * t ** (-1 / 3) + 1e-12
    return z, pairs, spread, errors, mirrored, sums, squares
