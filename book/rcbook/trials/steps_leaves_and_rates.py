"""What the checks of the chapter *Steps, leaves and rates* try: steps, curvatures, leaves, rates."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, linprog
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import KBinsDiscretizer

from rcbook.checking import Part, gap, holds
from rcbook.simulation import clouds
from rcbook.small_families import (
    Y,
    calibrated,
    codes,
    documents,
    every_x,
    families,
    log_likelihood,
    n,
    nb,
    posterior_curvature,
    random_like,
    row_statistics,
    rows,
    softmax_rows,
    y,
)
from rcpkg import (
    LDA,
    QDA,
    CategoricalNB,
    ClosedFormClassifier,
    ConditionalLikelihood,
    GaussianNB,
    InvalidStatistics,
    RiskCalibration,
    Statistics,
)
from rcpkg.base import Array
from rcpkg.calibration import Objective, Safe, Stop, climb
from rcpkg.calibration import steps as library
from rcpkg.families.count_model import CategoricalParameters
from rcpkg.families.networks import CategoricalFamily


def outer_states(theta: CategoricalParameters) -> Array:
    """p(x_1 = 0 | y = 0) and p(x_1 = 2 | y = 0); class 1 is the mirror image."""
    return np.exp(theta.log_prob[0, [0, 2]])


def five_ways(
    gradient_of: Callable[..., Any],
) -> tuple[dict[str, Array], dict[str, Array], dict[str, float], list[Array]]:
    """Five ways to the maximisers on rows with three copies of a feature, and what they keep."""
    three = np.repeat(np.tile([0.0, 1.0, 2.0], 2), [50, 30, 20, 20, 30, 50])
    X3, y3 = np.tile(three[:, None], (1, 3)), np.repeat([0, 1], 100)
    Y3, small = np.eye(2)[y3], CategoricalNB().fit(X3, y3)

    def to_target(target, weights):
        fits = [
            ConditionalLikelihood(
                small,
                solver="lbfgs",
                target=target,
                target_weight=b,
                tol=1e-8,
            ).fit(X3, y3)
            for b in weights
        ]
        return np.array([outer_states(f.estimator_.parameters_) for f in fits])

    ways, s = {"RC": []}, small.statistics_ * 1.0
    for _ in range(200):
        theta, g = gradient_of(small, X3, s, Y3)
        ways["RC"].append(outer_states(theta))
        s = s + 0.2 * g
    eta, along = small.family_.natural_parameters(small.parameters_), []
    for _ in range(400):
        along.append(outer_states(small.family_.from_natural(eta)))
        P = softmax_rows(small.family_.scores(X3, eta))
        eta = eta + 0.002 * small.statistics(X3, Y3 - P)
    ways["gradient ascent"] = along
    ways["target: closed form"] = to_target("generative", np.geomspace(1e3, 1e-3, 13))
    ways["target: pooled"] = to_target("pooled", np.geomspace(1e4, 1e-3, 13))
    rarer = CategoricalNB().fit(X3, y3, sample_weight=np.where(three == 1.0, 1.0, 0.3))
    ways["target on another leaf"] = to_target(rarer, np.geomspace(1e4, 1e-3, 13))
    ways = {title: np.array(way) for title, way in ways.items()}
    held = {title: way.sum(axis=1) for title, way in ways.items()}
    odds = {title: way[-1, 0] / way[-1, 1] for title, way in ways.items()}
    free = ConditionalLikelihood(small, solver="lbfgs", tol=1e-8)
    free = free.fit(X3, y3).estimator_
    free_end = outer_states(free.parameters_)
    odds["L-BFGS"] = free_end[0] / free_end[1]
    on_leaf = [held[t] for t in ("RC", "target: closed form", "target: pooled")]
    return ways, held, odds, on_leaf


def longest_by_bisection(model: CategoricalNB, s: Statistics, delta: Statistics) -> float:
    """The longest step along ``delta`` that is valid."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        try:
            model.parameters(s + middle * delta)
            low = middle
        except InvalidStatistics:
            high = middle
    return low


def block_matrix(s: Statistics, c: int) -> Array:
    """The moments of class ``c`` as one symmetric matrix."""
    return np.block([[s.count[c], s.first[c][None]], [s.first[c][:, None], s.second[c]]])


def longest_valid_steps() -> tuple[dict[str, float], list[float]]:
    """Longest valid first steps of naive Bayes and QDA, by the formula and by bisection."""
    formula, found = {}, {}
    for name in ("CategoricalNB", "QDA"):
        model, X = families[name]
        s = model.statistics_
        delta = model.statistics(X, Y - model.predict_proba(X))
        if name == "QDA":
            inverse_lr = max(
                np.linalg.eigvals(np.linalg.solve(block_matrix(s, c), -block_matrix(delta, c))).real.max()
                for c in range(3)
            )
        else:
            inverse_lr = np.max(-delta.ravel() / s.ravel())
        formula[name] = 1 / inverse_lr
        found[name] = longest_by_bisection(model, s, delta)
    off = [formula[name] / found[name] - 1 for name in found]
    return found, off


def cone_of_valid_statistics() -> tuple[list[bool], list[bool], list[bool], list[bool]]:
    """Statistics of weights drawn about the labels, by naive Bayes and QDA: which are valid; whether sums of multiples
    of two valid ones are; the same of halves with a prior; and whether those that only the prior makes valid cease
    to be so as multiples."""
    rng, drawn, sums, halves, multiples = np.random.default_rng(525), [], [], [], []
    for name in ("CategoricalNB", "QDA"):
        model, X = families[name]
        smoothed = type(model)(prior_strength=30.0).fit(X, y)
        weights = [Y + scale * rng.normal(size=Y.shape) for scale in np.repeat((0.3, 1.0, 3.0), 50)]
        draws = [model.statistics(X, W) for W in weights]
        drawn += [is_valid(model, s) for s in draws]
        plain = [s for s in draws if is_valid(model, s)]
        sums += [is_valid(model, a * s + b * t) for s, t in pairwise(plain) for a, b in rng.exponential(size=(3, 2))]
        with_prior = [s for s in draws if is_valid(smoothed, s) and s.count.min() > 0]
        halves += [is_valid(smoothed, 0.5 * s + 0.5 * t) for s, t in pairwise(with_prior)]
        multiples += [not is_valid(smoothed, 1e6 * s) for s in with_prior if not is_valid(model, s)]
    return drawn, sums, halves, multiples


def ends_of_the_leaf() -> list[bool]:
    """Whether CLL is below that of the closed form of naive Bayes just before random ways along the leaf end."""
    s, rng, below = nb.statistics_, np.random.default_rng(524), []
    for _ in range(50):
        weights = rng.normal(size=Y.shape)
        way = nb.statistics(codes, weights - weights.mean(axis=1, keepdims=True))
        end = nb.parameters(s + (1 - 1e-9) * longest_by_bisection(nb, s, way) * way)
        below.append(log_likelihood(nb, codes, end) < log_likelihood(nb, codes, nb.parameters(s)))
    return below


def endless_rise(model: CategoricalNB, X: Array, compared: Array = Y == 0) -> dict[str, Any]:
    """Greatest sum of the <eta, a_iy>, held between 0 and 1: 0, or 1 at least."""
    S = row_statistics(model, X)
    A = (S[np.arange(n), y][:, None] - S)[compared]
    A = np.unique(A.round(12), axis=0)
    return linprog(
        -A.sum(axis=0),
        A_ub=np.vstack([-A, A]),
        b_ub=np.repeat([0.0, 1.0], len(A)),
        bounds=(None, None),
    )


def optima_without_certificate() -> tuple[Array, pd.DataFrame, pd.Series]:
    """Optima of sets without a certificate of separability, with the value of the linear program."""
    one_class = codes.copy()
    one_class[(codes[:, 2] == 3) & (y < 2), 2] = 2
    attained = {}
    for title, model, X, finite in (
        ("categories, NB", CategoricalNB(), codes, True),
        ("heavy tails, LDA", LDA(), rows, True),
        ("heavy tails, QDA", QDA(), rows, True),
        ("a state of one class, NB", CategoricalNB(), one_class, False),
    ):
        program = endless_rise(model.fit(X, y), X)
        fit = ConditionalLikelihood(model, solver="lbfgs").fit(X, y)
        attained[title] = {
            "optimum": "finite" if finite else "not finite",
            "log-loss": fit.history_.log_loss.iloc[-1],
            "converged": fit.converged_,
            "separable": fit.separable_,
            "solved": program.success,
            "rise": -program.fun,
        }
    attained = pd.DataFrame(attained).T
    finite = attained.optimum == "finite"
    return one_class, attained, finite


def spread(points: Array) -> Array:
    """Var(x | y): the height above the boundary."""
    return points[..., 1, :] - points[..., 0, :] ** 2


def paths_of_moments(
    gradient_of: Callable[..., Any],
) -> tuple[dict[float, Array], Array, Array, Array, Array]:
    """Moments on the way of RC, with two rates on overlapping rows, and on separable rows."""

    def moment_path(X, Y, lr, T):
        """E(x | y) and E(x^2 | y) on the way, to the first that is no model."""
        model, path = QDA().fit(X, Y.argmax(axis=1)), []
        s = model.statistics_
        for _ in range(T):
            about = np.stack([s.first[:, 0], s.second[:, 0, 0]]) / s.count
            path.append(about)
            try:
                s = s + lr * gradient_of(model, X, s, Y)[1]
            except InvalidStatistics:
                break
        return np.array(path)

    split = np.random.default_rng(1)
    away = split.uniform(0.9, 2.5, size=40) * np.where(np.arange(40) % 2, 1, -1)
    nested = np.append(away, split.uniform(-0.5, 0.7, size=40))[:, None]
    nested_Y = np.eye(2)[np.repeat([0, 1], 40)]
    moments = {rate: moment_path(rows[:, :1], Y, rate, 40) for rate in (0.5, 2.0)}
    inwards = moment_path(nested, nested_Y, 0.2, 320)[:, :, 1]
    calm, wild = (spread(path) for path in moments.values())
    shrinking = inwards[:, 1] - inwards[:, 0] ** 2
    return moments, inwards, calm, wild, shrinking


def curvatures(
    model: CategoricalNB, theta: CategoricalParameters, weights: Array, X_all: Array, r: int, S: None = None
) -> tuple[Array, Array]:
    """-Hessian of CLL per row, Hessian of psi: weighted rows of a finite space."""
    S = row_statistics(model, X_all, r) if S is None else S
    joint = np.exp(model.log_joint(X_all, theta))
    P = joint / joint.sum(axis=1, keepdims=True)
    mean = np.einsum("iy,iyk->ik", P, S)
    C = np.einsum("i,iy,iyk,iyl->kl", weights, P, S, S) - np.einsum("i,ik,il->kl", weights, mean, mean)
    total = np.einsum("iy,iyk->k", joint, S)
    return C, np.einsum("iy,iyk,iyl->kl", joint, S, S) - np.outer(total, total)


def relative_curvature(C: Array, H: Array) -> Array:
    """Generalised eigenvalues of C relative to H, off the trivial directions."""
    values, vectors = np.linalg.eigh(H)
    keep = values > 1e-10 * values.max()
    root = vectors[:, keep] / np.sqrt(values[keep])
    return np.linalg.eigvalsh(root.T @ C @ root)


def gauss_hermite(model: QDA) -> tuple[Array, Array]:
    """Weights times p(y), and s(x, y), at the nodes of a rule of degree five."""
    theta, r = model.parameters_, len(model.classes_)
    d = theta.mean.shape[1]
    z, w = np.polynomial.hermite_e.hermegauss(3)
    z = np.stack(np.meshgrid(*[z] * d), axis=-1).reshape(-1, d)
    w = np.stack(np.meshgrid(*[w / w.sum()] * d), axis=-1).reshape(-1, d)
    roots = np.linalg.cholesky(theta.covariance)
    S = [row_statistics(model, m + z @ root.T, r)[:, c] for c, (m, root) in enumerate(zip(theta.mean, roots))]
    return np.exp(theta.log_prior)[:, None] * w.prod(axis=1), np.array(S)


def gaussian_curvatures(model: QDA, X: Array) -> tuple[Array, Array]:
    """The same for a fitted QDA and rows of equal weight."""
    joint, S = gauss_hermite(model)
    mean = np.einsum("yi,yik->k", joint, S)
    H = np.einsum("yi,yik,yil->kl", joint, S, S) - np.outer(mean, mean)
    P = model.predict_proba(X)
    S = row_statistics(model, X, len(model.classes_))
    means = np.einsum("iy,iyk->ik", P, S)
    C = np.einsum("iy,iyk,iyl->kl", P, S, S) - means.T @ means
    return C / len(X), H


def relative_curvatures() -> tuple[Array, float, float, pd.DataFrame, bool, list[float]]:
    """Relative curvature at naive Bayes, and gains of steps of several lengths beside the bound.

    The model of two class weights alone has L = 1 everywhere, and its steps gain the bound itself: the last of what
    is returned is the difference.
    """

    def largest_curvature(theta, weights):
        """Of naive Bayes on the categories, at parameters theta."""
        return relative_curvature(*curvatures(nb, theta, weights, every_x, 3)).max()

    log_joint = nb.log_joint(every_x, nb.parameters_)
    observed = np.array([np.mean(np.all(codes == x, axis=1)) for x in every_x])
    at_truth = largest_curvature(nb.parameters_, np.exp(log_joint).sum(axis=1))
    on_data = largest_curvature(nb.parameters_, observed)
    start_eta = nb.family_.natural_parameters(nb.parameters_)
    steps = {}
    for lr in (0.2, 0.5, 0.8, 1.0, 1.5):
        step = calibrated(CategoricalNB(), lr, 1, codes)
        end_eta = step.family_.natural_parameters(step.parameters_)
        L = max(
            largest_curvature(nb.family_.from_natural(start_eta + t * (end_eta - start_eta)), observed)
            for t in np.linspace(0, 1, 9)
        )
        log_new = step.predict_joint_log_proba(every_x)
        kl_new = np.sum(np.exp(log_new) * (log_new - log_joint))
        kl_old = np.sum(np.exp(log_joint) * (log_joint - log_new))
        steps[lr] = {
            "L": L,
            "lr L": lr * L,
            "climbs if lr L is below": 1 + kl_new / kl_old,
            "gain": log_likelihood(nb, codes, step.parameters_) - log_likelihood(nb, codes, nb.parameters_),
            "at least": n / lr * kl_new + (n / lr - L * n) * kl_old,
        }
    steps = pd.DataFrame(steps).T.rename_axis("lr")
    climbing = steps[steps["at least"] > 0]
    longest = climbing["lr L"].max()
    promised = bool(longest > 1 and (climbing["lr L"] < climbing["climbs if lr L is below"]).all())
    share, weights, equal = np.array([0.7, 0.3]), np.array([0.4, 0.6]), []
    for lr in (0.5, 1.0, 1.3):
        new = weights + lr * (share - weights)
        ahead, back = new @ np.log(new / weights), weights @ np.log(weights / new)
        equal.append(share @ np.log(new / weights) - (ahead / lr + (1 / lr - 1) * back))
    return observed, at_truth, on_data, steps, promised, equal


def unbounded_curvature() -> tuple[pd.DataFrame, list[Array], list[float], list[Array]]:
    """Relative curvature at maximisers near the boundary of naive Bayes and of QDA."""
    halves = np.array([0, 0, 1, 1])
    ends = np.array([[0.0], [1.0], [0.0], [1.0]])
    signs = 2 * ends - 1
    binary = CategoricalNB(n_states=2).fit(ends, halves)
    unbounded, posteriors, gradients, moments_off = {}, [], [], []
    for epsilon in (0.25, 0.01, 0.0001):
        theta = binary.parameters_._replace(log_prob=np.log([[1 - epsilon, epsilon]] * 2))
        half, both = np.array([0.5, 0.5]), np.array([[0.0], [1.0]])
        narrow = QDA(rows_per_feature=0.0).fit(np.sqrt(epsilon) * signs, halves)
        joint, S = gauss_hermite(narrow)
        mean = narrow.family_.mean_parameters(narrow.parameters_).ravel()
        moments_off.append(np.einsum("yi,yik->k", joint, S) - mean)
        unbounded[epsilon] = {
            "naive Bayes": relative_curvature(*curvatures(binary, theta, half, both, 2)).max(),
            "QDA": relative_curvature(*gaussian_curvatures(narrow, signs)).max(),
        }
        for model, at, X in (
            (binary, theta, ends),
            (narrow, narrow.parameters_, signs),
        ):  # maximisers of CLL, whatever epsilon
            P = softmax_rows(model.log_joint(X, at))
            posteriors.append(P - 0.5)
            slope = model.statistics(X, np.eye(2)[halves] - P).ravel()
            gradients.append(np.abs(slope).max())
    unbounded = pd.DataFrame(unbounded).T.rename_axis("ε")
    return unbounded, posteriors, gradients, moments_off


def curvature_by_counts(observed: Array) -> tuple[np.random.Generator, list[float], list[float], list[float]]:
    """Curvature in the measure of counts over its bound, and as a diagonal on centred directions."""
    rng = np.random.default_rng(512)
    slack, tight, ratios = [], [], []
    for name in ("CategoricalNB", "MultinomialNB"):
        model, X = families[name]
        S = row_statistics(model, X)
        for scale in np.repeat((0.3, 1.0, 3.0), 10):
            eta = model.family_.natural_parameters(model.parameters_)
            eta = model.family_.natural_parameters(model.family_.from_natural(eta + random_like(eta, rng, scale)))
            theta = model.family_.from_natural(eta)
            P = softmax_rows(model.log_joint(X, theta))
            C, by_rows = posterior_curvature(S, P), model.statistics(X, P).ravel()
            s = n * model.family_.mean_parameters(theta).ravel()
            d = 3 if name == "CategoricalNB" else documents[0].sum()
            for measure, constant in (
                (by_rows, d + 1),
                (np.maximum(s, by_rows), d + 1),
                (s, (d + 1) * np.max(by_rows / s)),
            ):
                root = 1 / np.sqrt(measure)
                largest = np.linalg.eigvalsh(C * root[:, None] * root)[-1]
                slack.append(largest / constant)
            ratios.append(np.max(by_rows / s))
            if name == "CategoricalNB":
                H = curvatures(nb, theta, observed, every_x, 3)[1]
                v = rng.normal(size=len(s))
                v -= v[:3] @ s[:3] / n * np.repeat([1.0, 0.0], [3, len(v) - 3])
                cells = eta.unravel(v)
                of = eta.unravel(s)  # three features with 2, 3 and 4 states
                sums = np.add.reduceat(cells.cells * of.cells, [0, 2, 5], axis=1)
                cells.cells -= np.repeat(sums / of.count[:, None], [2, 3, 4], axis=1)
                v = cells.ravel()
                tight.append(v @ H @ v * n / (v**2 @ s) - 1)
    return rng, slack, tight, ratios


def curvature_of_a_compact_set() -> Array:
    """Relative curvature of naive Bayes on the categories over 4 / min μ, at models whose probabilities are at least ε,
    for three ε, and near the edges of each such set."""
    rng, shares, S = np.random.default_rng(526), [], row_statistics(nb, every_x)
    observed = np.array([np.mean(np.all(codes == x, axis=1)) for x in every_x])
    for epsilon in (0.1, 0.03, 0.01):
        for concentration in np.repeat((1.0, 0.05), 10):
            parts = [rng.dirichlet(np.full(k, concentration), 3) for k in (2, 3, 4)]
            parts = [(1 - epsilon * part.shape[1]) * part + epsilon for part in parts]
            theta = nb.parameters_._replace(log_prob=np.log(np.hstack(parts)))
            smallest = nb.family_.mean_parameters(theta).ravel().min()
            shares.append(relative_curvature(*curvatures(nb, theta, observed, every_x, 3, S)).max() / (4 / smallest))
    return np.array(shares)


def copies_of_a_feature() -> tuple[tuple[int, ...], pd.DataFrame, dict[int, bool], list[float], pd.Series]:
    """Bounds on the rate with copies of a feature, and whether RC climbs with 0.1."""
    sides = np.arange(200) % 2
    one_feature = np.random.default_rng(508).normal(size=200) + 1.6 * sides - 0.8
    one_feature = np.digitize(one_feature, [-1, 0, 1])[:, None]
    Y2 = np.eye(2)[sides]

    def alike(theta, P, d):
        """-Hessian of CLL and Hessian of psi a row, copies moving together."""
        p, pi = np.exp(theta.log_prob[:, :4]), np.exp(theta.log_prior)
        s = np.zeros((200, 2, 10))  # of a row: the class, and d times its state
        for c in range(2):
            s[:, c, c] = 1
            s[np.arange(200), c, 2 + 4 * c + one_feature[:, 0]] = d
        mean = np.einsum("iy,iyk->ik", P, s)
        C = np.einsum("iy,iyk,iyl->kl", P, s, s) - mean.T @ mean
        centres = np.hstack([np.eye(2), d * np.kron(np.eye(2), np.ones(4))])
        centres[:, 2:] *= p.ravel()
        H = (pi[:, None] * centres).T @ centres - np.outer(*[pi @ centres] * 2)
        for c in range(2):
            block = slice(2 + 4 * c, 6 + 4 * c)
            H[block, block] += d * pi[c] * (np.diag(p[c]) - np.outer(p[c], p[c]))
        return C / 200, H

    def of_one_feature(theta, P):
        """The largest ratio R of part 3."""
        C, H = alike(theta, P, 1)
        p = np.exp(theta.log_prob[:, :4])
        null = [np.linalg.svd(row[None])[2][1:] for row in p]
        centred = np.block([[null[0], np.zeros((3, 4))], [np.zeros((3, 4)), null[1]]])
        C, H = (centred @ M[2:, 2:] @ centred.T for M in (C, H))
        return relative_curvature(C, H).max()

    copies = (2, 4, 8, 16, 32, 64)
    limits, climbing, shares = {}, {}, []
    for d in copies:
        X = np.tile(one_feature.astype(float), (1, d))
        model = CategoricalNB().fit(X, sides)
        P = model.predict_proba(X)
        g = model.statistics(X, Y2 - P).ravel()
        path = RiskCalibration.as_published(model, max_iter=100, stopping="none").fit(X, sides)
        climbing[d] = path.history_.log_loss.is_monotonic_decreasing
        near = ConditionalLikelihood(model, target="generative", target_weight=1e-4, tol=1e-6).fit(X, sides)
        best = near.estimator_
        P_best, s_best = best.predict_proba(X), best.statistics_.ravel()
        by_rows = best.statistics(X, P_best).ravel()
        L = relative_curvature(*alike(best.parameters_, P_best, d)).max()
        shares.append(d * of_one_feature(best.parameters_, P_best) / L)
        limits[d] = {
            "longest valid first step": 1 / np.max(-g / model.statistics_.ravel()),
            "1/L at the closed form": 1 / relative_curvature(*alike(model.parameters_, P, d)).max(),
            "2/L at the optimum": 2 / L,
            "2 over the bound of part 2": 2 / (d + 1) / np.max(by_rows / s_best),
        }
    limits = pd.DataFrame(limits).T.rename_axis("copies")
    beyond = limits["2/L at the optimum"] < 0.1
    return copies, limits, climbing, shares, beyond


def unseen_directions(model: CategoricalNB, X: Array) -> Array:
    """Orthonormal basis of the directions that no posterior of the rows sees."""
    S = row_statistics(model, X)
    A = (S - S[:, :1]).reshape(-1, S.shape[-1])
    values, vectors = np.linalg.eigh(A.T @ A)
    return vectors[:, values < 1e-10 * values[-1]].T


def joint_likelihood(model: CategoricalNB, eta: Statistics, s: Statistics) -> float:
    """Joint log-likelihood of the rows with statistics s, a row."""
    return (s.dot(eta) - n * model.family_.log_partition(eta)) / n


def share_of_two_weights(p: float, lr: float) -> tuple[float, float]:
    """The same of two classes without features, equal in the rows, p by RC."""
    q = p + lr * (0.5 - p)
    lacks = [np.log(0.5) - np.log(t * (1 - t)) / 2 for t in (p, q)]
    sigma, tau = 2 * p * (1 - p), 0.5  # of n: the eigenvalues at p, and at 1/2
    return lacks[1] / lacks[0], 1 - lr * sigma / tau


def leaves_and_bounds(
    gradient_of: Callable[..., Any], observed: Array
) -> tuple[
    Callable[..., Any],
    list[Array],
    list[tuple[float, float]],
    list[float],
    list[float],
    list[Array],
    list[Part],
    dict[str, dict[str, float]],
    dict[tuple[str, int], tuple[float, float]],
    dict[str, tuple[Array, Array]],
    pd.DataFrame,
]:
    """Leaves, bounds and inequalities along RC for three models, and other maximisers."""

    draws, lr = np.random.default_rng(11), 0.5

    @cache
    def rc_values(name):
        """CLL on the way of 600 updates of a model with a fixed rate, and the statistics at the end."""
        model, X = families[name]
        s, values, coded = model.statistics(X, Y), [], model.family_.encode(X)
        for _ in range(600):
            theta, g = gradient_of(model, coded, s)
            values.append(log_likelihood(model, coded, theta))
            s = s + lr * g
        return np.array(values), s

    def share_of_the_gap(s, end, lr):
        """lr sigma / (tau m) of a step of naive Bayes from s on the way to its end."""
        theta, g = gradient_of(nb, codes, s)
        eta, last = (nb.family_.natural_parameters(t) for t in (theta, nb.parameters(end)))
        unseen = unseen_directions(nb, codes)
        seen = np.linalg.svd(unseen)[2][len(unseen) :]
        S, sigma, tau = row_statistics(nb, every_x), [], []
        for t in np.linspace(0, 1, 9):
            to_end = nb.family_.from_natural(eta + t * (last - eta))
            C = n * curvatures(nb, to_end, observed, every_x, 3, S)[0]
            sigma.append(np.linalg.eigvalsh(seen @ C @ seen.T)[0])
            to_next = nb.parameters(s + t * lr * g)
            H = curvatures(nb, to_next, observed, every_x, 3, S)[1]
            tau.append(np.linalg.eigvalsh(H)[-1])
        return lr * min(sigma) / max(tau) / n

    def three_points(model, X, eta, s, T):
        """Of each update: what eq-tm-three lacks of an identity, and the two terms left out, per row."""
        best = log_likelihood(model, X, model.family_.from_natural(eta)) / n
        theta, g = gradient_of(model, X, s)
        mu, here, terms = model.family_.mean_parameters(theta), model.family_.natural_parameters(theta), []
        value = log_likelihood(model, X, theta) / n
        for _ in range(T):
            to_end = mu.dot(here - eta)
            by_concavity = value + (g / n).dot(eta - here) - best
            theta, after_g = gradient_of(model, X, s + lr * g)
            there = model.family_.natural_parameters(theta)
            after_value = log_likelihood(model, X, theta) / n
            bend = value + (g / n).dot(there - here) - after_value
            by_step = mu.dot(here - there) / lr - bend
            s, g, mu = s + lr * g, after_g, model.family_.mean_parameters(theta)
            after = mu.dot(there - eta)
            fallen = 1 / lr * (to_end - after)
            lacks = best - after_value
            terms.append((lacks - fallen + by_step + by_concavity, by_step, by_concavity))
            here, value = there, after_value
        return np.array(terms).T

    three, tiny = [], 1e-3
    weights = [share_of_two_weights(0.4, rate) for rate in (0.1, 0.3)]
    near = {rate: share_of_two_weights(0.5 - tiny, rate) for rate in (0.1, 0.3)}
    shares = [(1 - bound) / (1 - f) - 1 / (2 - rate) for rate, (f, bound) in near.items()]
    drift, climbs, likelihoods, likeliest, same_loss = [], [], [], [], []
    leaf, below, short = {}, {}, {}
    for name in ("CategoricalNB", "QDA", "LDA"):
        model, X = families[name]
        start = model.fit(X, y).statistics_
        eta0 = model.family_.natural_parameters(model.parameters_)
        unseen = unseen_directions(model, X)
        values, end = rc_values(name)
        drift.append(np.abs(unseen @ (end - start).ravel()).max() / n)

        eta = model.family_.natural_parameters(model.parameters(end))
        mu0, best = start / n, log_likelihood(model, X, model.parameters(end))
        kl = mu0.dot(eta0 - eta)  # psi = 0 at both
        bound = n / (lr * np.arange(1, len(values))) * kl
        climbs += [np.diff(values) > -1e-9, best - values[1:] < bound + 1e-9]
        three.append(three_points(model, model.family_.encode(X), eta, start, 100))
        for t in (10, 100):
            below[name, t] = max(best - values[t], 0.0), bound[t - 1]
        short[name] = np.maximum(best - values[1:101], 1e-9), bound[:100]

        own = joint_likelihood(model, eta, start)
        for _ in range(100):
            v = eta.unravel(0.02 * unseen.T @ draws.normal(size=len(unseen)))
            if name != "CategoricalNB":  # matrices: the antisymmetric part is trivial
                v.second = (v.second + np.swapaxes(v.second, -1, -2)) / 2
            moved = eta + v
            P = softmax_rows(model.family_.scores(X, moved))
            likelihoods.append(np.log(P[Y > 0]).sum() / best - 1)
            likeliest.append(joint_likelihood(model, moved, start) < own)
        leaf[name] = {
            "directions": unseen.shape[1],
            "unseen": len(unseen),
            "loss, start": -values[0] / n,
            "loss, end": -best / n,
            "RC": own,
        }
        for title, learner in (
            (
                "L-BFGS, brought back",
                ConditionalLikelihood(model, solver="lbfgs", tol=1e-7),
            ),
            (
                "safe RC",
                RiskCalibration(model, step="safe", max_iter=200, target_weight=0.0, tol=0.0),
            ),
        ):
            rival = learner.fit(X, y).estimator_
            at = rival.family_.natural_parameters(rival.parameters_)
            same_loss.append((best - log_likelihood(model, X, rival.parameters_)) / n)
            theirs = joint_likelihood(model, at, start)
            likeliest.append(theirs < own + 1e-6)
            leaf[name][title] = theirs
    rates, s, coded = [], nb.statistics(codes, Y), nb.family_.encode(codes)
    end = rc_values("CategoricalNB")[1]
    best = log_likelihood(nb, coded, nb.parameters(end))
    for t in range(60):
        _theta, g = gradient_of(nb, coded, s)
        missing, share = (best - log_likelihood(nb, coded, nb.parameters(at)) for at in (s, s + lr * g))
        if t in (0, 1, 3, 10, 30, 59):
            rates.append((t, share / missing, 1 - share_of_the_gap(s, end, lr)))
        s = s + lr * g
    rates = pd.DataFrame(rates, columns=["update", "factor", "bound"])
    others = [
        gap("part 3: the others have its CLL", likelihoods, 1e-9),
        gap("L-BFGS and safe RC have it too", same_loss, 1e-6),
        holds("none is likelier than RC's", likeliest),
    ]
    return rc_values, three, [*weights, *near.values()], shares, drift, climbs, others, leaf, below, short, rates


def path_of_targets(
    rc_values: Callable[..., Any],
) -> tuple[list[float], list[float], list[float], list[float]]:
    """How far optima with a target leave its leaf, and their distance from the limit of RC."""
    off_leaf, moved_by, to_limit, from_closed = [], [], [], []
    weights_of_path = np.array([10.0, 0.1, 0.01])
    for name in ("CategoricalNB", "QDA"):
        model, X = families[name]
        model.fit(X, y)
        unseen = unseen_directions(model, X)
        elsewhere = type(model)(prior_strength=60.0).fit(X, y)
        limit = rc_values(name)[1] / n
        for target in ("generative", "pooled", elsewhere):
            if target == "generative":
                mu_bar = model.statistics_ / n
            elif target == "pooled":
                theta = model.family_.pooled_parameters(model.statistics_)[0]
                mu_bar = model.family_.mean_parameters(theta)
            else:
                mu_bar = elsewhere.family_.mean_parameters(elsewhere.parameters_)
            path = []
            for b in weights_of_path:
                fit = ConditionalLikelihood(model, target=target, target_weight=b, tol=1e-8).fit(X, y)
                theta = fit.estimator_.parameters_
                path.append(model.family_.mean_parameters(theta).ravel())
            kept = weights_of_path * (unseen @ (np.array(path) - mu_bar.ravel()).T)
            off_leaf.append(np.abs(kept).max())
            moved_by.append(np.abs(path[-1] - mu_bar.ravel()).max())
            if target == "generative":
                far = np.linalg.norm(np.array(path) - limit.ravel(), axis=1)
                to_limit.append(far[-1] / far[0])
            if target is elsewhere:
                off = unseen @ (mu_bar - model.statistics_ / n).ravel()
                from_closed.append(np.linalg.norm(off))
    return off_leaf, moved_by, to_limit, from_closed


def smoothed_labels(
    hot: Array, wine_X: Array, wine_y: Array, rng: np.random.Generator, soften: pd.DataFrame
) -> tuple[Statistics, Statistics, float, Callable[..., Any], pd.Series, Array]:
    """Slopes and bounds of the likelihood of smoothed labels."""
    soft = 0.9 * hot + 0.1 / 3
    model = LDA().fit(wine_X, wine_y)
    eta = model.family_.natural_parameters(model.parameters_)
    v = random_like(eta, rng)
    P = model.predict_proba(wine_X)
    slope = model.statistics(wine_X, soft - P).dot(v)

    def soft_cll(eta):
        scores = model.family_.scores(wine_X, eta)
        return np.sum(soft * (scores - np.logaddexp.reduce(scores, 1, keepdims=True)))

    entropy = {e: -np.sum(p * np.log(p)) for e in soften.index for p in [np.array([1 - e + e / 3, e / 3, e / 3])]}
    above = soften["soft log-loss"].astype(float) - pd.Series(entropy)
    far = np.array([10.0, 100.0, 1000.0])
    slopes = np.diff([soft_cll(eta + t * v) for t in far]) / np.diff(far)
    return eta, v, slope, soft_cll, above, slopes


def shipped_step(etas: Array, A: Array, peak: Array, lr: float) -> tuple[Array, int]:
    """delta of the library's accelerated step after a path of eta, s = eta."""
    objective = SimpleNamespace(
        rule=None,
        family=SimpleNamespace(natural_parameters=None),
        ascent=lambda point: point.gradient,
        pull=lambda statistics: 0.0,
    )
    run = library.SafeRun(objective, lr)
    path = [
        SimpleNamespace(
            statistics=Statistics(part=eta),
            natural=Statistics(part=eta),
            gradient=Statistics(part=A @ (peak - eta)),
        )
        for eta in etas
    ]
    for old, new in pairwise(path):
        run.remember(old, new)
    return run.accelerated(path[-1]).part, len(run.secants)


def accelerated_steps() -> tuple[list[Array], list[Array], list[Array], list[bool]]:
    """Where the library's accelerated step of a quadratic goes, beside its least point."""
    quad, lr = np.random.default_rng(0), 0.01
    orthogonal, steps_off, lower, ranks = [], [], [], []
    for draw in range(20):
        root, peak = quad.normal(size=(8, 8)), quad.normal(size=8)
        A = root @ root.T  # of F = -(eta - peak) A (eta - peak) / 2
        etas = np.cumsum(quad.normal(size=(4, 8)), axis=0)
        if draw % 2:  # a change twice: the system is singular
            etas = np.vstack([etas, etas[-1] + 1.7 * (etas[1] - etas[0])])
        delta, kept = shipped_step(etas, A, peak, lr)
        span = np.diff(etas, axis=0)
        ranks.append(np.linalg.matrix_rank(span) < kept)
        # delta = (best - eta) + lr A (peak - best), to be solved for best
        best = np.linalg.solve(np.eye(8) - lr * A, delta + etas[-1] - lr * A @ peak)
        orthogonal.append(span @ A @ (peak - best) / np.abs(A).max())
        Q = np.linalg.qr(span.T)[0][:, : np.linalg.matrix_rank(span)]
        steps_off.append((best - etas[-1]) - Q @ (Q.T @ (best - etas[-1])))
        others = best + quad.normal(size=(100, len(span))) @ span
        F = [-0.5 * (e - peak) @ A @ (e - peak) for e in (best, *others)]
        lower.append(np.array(F[1:]) < F[0])
    return orthogonal, steps_off, lower, ranks


def bent_qda(s: Statistics, delta: Statistics) -> tuple[Array, Array, Array]:
    """The bent step of QDA, class by class."""
    ratio = 1 + delta.count / s.count
    c = s.count * np.where(ratio < 1, 1 / (2 - np.minimum(ratio, 1)), ratio)
    c = c * (s.count + delta.count).sum() / c.sum()
    means, covariances = [], []
    for k in range(len(c)):
        mean = s.first[k] / s.count[k]
        old = s.second[k] / s.count[k] - np.outer(mean, mean)
        u = delta.first[k] - delta.count[k] * mean
        cross = np.outer(mean, delta.first[k])
        V = delta.second[k] - cross - cross.T
        V += delta.count[k] * np.outer(mean, mean)
        trial = (s.count[k] * old + V - np.outer(u, u) / c[k]) / c[k]
        L = np.linalg.cholesky(old)
        values, vectors = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, trial).T))
        bent = np.where(values < 1, 1 / (2 - np.minimum(values, 1)), values)
        root = L @ vectors
        means.append(mean + u / c[k])
        covariances.append(root * bent @ root.T)
    return c, np.array(means), np.array(covariances)


def is_valid(model: CategoricalNB, statistics: Statistics) -> bool:
    """Whether statistics are those of a model."""
    try:
        model.parameters(statistics)
    except InvalidStatistics:
        return False
    return True


def bent_steps() -> tuple[list[bool], list[bool], list[float], list[float], list[float]]:
    """Long changes of the statistics, straight and bent: which are valid, and what they keep."""
    rng = np.random.default_rng(505)
    valid, straight, totals, counts, moments_off = [], [], [], [], []
    for name, (model, X) in families.items():
        s = model.fit(X, y).statistics_
        for total in (0.0, -0.9 * n, 3.0 * n):
            W = 5 * rng.normal(size=Y.shape)
            W += total / W.size - W.mean()
            delta = model.statistics(X, W)
            bent = model.family_.safe_update(s, delta)
            valid.append(is_valid(model, bent))
            straight.append(is_valid(model, s + delta))
            block = next(iter(bent)) if name == "ProductModel" else bent
            totals.append(block.count.sum() / (n + total) - 1)
            if name in ("CategoricalNB", "BernoulliNB"):
                sums = np.add.reduceat(bent.cells, model.family_.families_.starts, axis=1)
                counts += [*np.ravel(sums / bent.count[:, None] - 1)]
            if name == "QDA":
                c, means, covariances = bent_qda(s, delta)
                theta = model.parameters(bent)
                counts += [*(c / bent.count - 1)]
                for mine, theirs in (
                    (means + model.family_.origin_, theta.mean),
                    (covariances, theta.covariance),
                ):
                    moments_off += [*np.ravel((mine - theirs) / (1 + abs(theirs)))]
    return valid, straight, totals, counts, moments_off


def fixed_points_and_rates() -> tuple[list[float], list[float], Array, Array]:
    """What steps change, whether they stay at fixed points, and how much three updates leave."""
    rng = np.random.default_rng(513)
    moved, stuck = [], []
    for model, X in families.values():
        s = model.fit(X, y).statistics_
        for _ in range(10):  # labels at random: some gradient, and any rate
            W = rng.dirichlet(np.ones(3), n) - softmax_rows(rng.normal(size=(n, 3)))
            g = model.statistics(X, W)
            expected = model.statistics(X, np.full((n, 3), 1 / 3))
            for lr in (1e-2, 1.0, 1e2):
                change = model.family_.precondition(s, expected, lr * g)
                after = model.parameters(model.family_.safe_update(s, change))
                d_mu = model.family_.mean_parameters(after) - s / n
                d_eta = model.family_.natural_parameters(after)
                d_eta = d_eta - model.family_.natural_parameters(model.parameters_)
                size = min(lr, 1.0) ** 2 * (g.ravel() @ g.ravel()) / n**2
                moved.append(d_mu.dot(d_eta) / size)
        theta = model.parameters(model.family_.safe_update(s, 0.0 * s))
        back = model.family_.mean_parameters(theta) - s / n
        stuck.append(np.abs(back.ravel()).max())
    way = {}
    for name, model, X in (
        ("NB", CategoricalNB(), codes),
        ("QDA", QDA(), rows),
    ):
        trail = climb(Objective.from_estimator(model, X, y), Safe(), Stop(), 160, keep_points=True)
        ends = [min(t, trail.n_iter) for t in (5, 10, 20, 40, 160)]
        etas = np.array([trail.points[t].natural.ravel() for t in ends])
        losses = trail.frame.log_loss.to_numpy()
        way[name] = etas, losses - losses[-1]
    shrinks = []
    for _, missing in way.values():
        every_third = missing[:60:3]
        far = every_third[1:] > 1e-9
        shrinks.append(every_third[1:][far] / every_third[:-1][far])
    shrinks = np.concatenate(shrinks)
    apart = np.array([np.linalg.norm(path[:-1] - path[-1], axis=1) for path, _ in way.values()])
    return moved, stuck, shrinks, apart


def kept_by_a_target(wine_X: Array, wine_y: Array) -> tuple[Array, list[float], Array, Array]:
    """Safe steps of LDA on separable rows, with two weights of a target and from three starts: KL from the target over
    its bound, and what F lacks at the end, a row. KL from the start after 50 and 200 updates, without a target on
    these rows, and where CLL attains its supremum."""

    def apart(trail, eta, mu):
        """KL(p_η ‖ p) of the models p on the way; ψ = 0 at all."""
        return np.array([mu.dot(eta - point.natural) for point in trail.points])

    shares, lacks, size = [], [], len(wine_y)
    for b in (0.1, 1.0):
        objective = Objective.from_estimator(LDA(), wine_X, wine_y, target="generative", target_weight=b)
        family, aim = objective.family, objective.target.statistics
        grand = size * family.mean_parameters(family.grand_parameters(aim)[0])
        best = climb(objective, Safe(), Stop(), 300, keep_points=True).points[-1].value
        for share in (0.0, 0.5, 0.9):
            start = (1 - share) * aim + share * grand
            trail = climb(objective, Safe(), Stop(), 100, start=start, keep_points=True)
            kl = apart(trail, family.natural_parameters(family.parameters(aim)), aim * (1 / size))
            shares.append(kl / (kl[0] + trail.points[0].losses.log_loss / b))
            lacks.append((best - trail.points[-1].value) / size)
    moved = []
    for model, X, labels in ((LDA(), wine_X, wine_y), (CategoricalNB(), codes, y), (QDA(), rows, y)):
        trail = climb(Objective.from_estimator(model, X, labels), Safe(), Stop(), 200, keep_points=True)
        first = trail.points[0]
        kl = apart(trail, first.natural, first.statistics * (1 / len(labels)))
        moved.append((kl[min(50, trail.n_iter)], kl[-1]))
    separable, *attained = np.array(moved)
    return np.concatenate(shares), lacks, separable, np.array(attained)


def to_generative(model: ClosedFormClassifier, b: float) -> ConditionalLikelihood:
    """The optimum with the closed form as target."""
    return ConditionalLikelihood(model, target="generative", target_weight=b)


def heavy(rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows with heavy tails."""
    labels = np.arange(150) % 3
    tails = rng.standard_t(4, size=(150, 2)) * (1 + 0.4 * labels[:, None])
    return tails + 0.8 * labels[:, None], labels


def dependent(rng: np.random.Generator) -> tuple[Array, Array]:
    """Categories that depend on each other."""
    labels = np.arange(150) % 3
    noisy = rng.normal(size=(150, 1)) + 0.7 * (labels[:, None] - 1)
    noisy = noisy + 0.8 * rng.normal(size=(150, 3))
    return np.digitize(noisy, [-0.5, 0.5]).astype(float), labels


def drift_of_safe_steps() -> pd.DataFrame:
    """Divergence from the closed form after safe steps, and of the maximiser on the leaf."""
    rng, drifts = np.random.default_rng(514), {}
    for title, model, sampler in (
        ("naive Bayes", CategoricalNB(), dependent),
        ("QDA", QDA(), heavy),
    ):
        for _ in range(12):
            X, labels = sampler(rng)
            start = model.fit(X, labels)
            mu0 = start.statistics_ / 150
            eta0 = start.family_.natural_parameters(start.parameters_)
            for column, learner in (
                (
                    "safe RC",
                    RiskCalibration(model, step="safe", max_iter=40, target_weight=0.0, tol=0.0),
                ),
                ("maximiser on the leaf", to_generative(model, 1e-5)),
            ):
                end = learner.fit(X, labels).estimator_
                eta = end.family_.natural_parameters(end.parameters_)
                drifts.setdefault((title, column), []).append(mu0.dot(eta0 - eta))
    return pd.DataFrame(drifts)


def only_halved(
    model: CategoricalFamily,
    s: Statistics,
    X: Array,
    y: Array,
    T: int,
    move: Callable[..., Any] = lambda s, change: s + change,
    lr: float = 1.0,
) -> Array:
    """RC from s, the step halved until it is valid and CLL does not fall."""
    X, Y, values = model.encode(X), np.eye(y.max() + 1)[y], []

    def scored(s):
        """Posteriors of the model of these statistics, and their CLL."""
        joint = model.log_joint(X, model.parameters(s))
        log_P = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return np.exp(log_P), log_P[Y > 0].sum()

    P, value = scored(s)
    for _ in range(T):
        values.append(value)
        delta = model.statistics(X, Y - P)
        lr *= 2
        while lr > 1e-12:
            try:
                moved = move(s, lr * delta)
                new_P, new_value = scored(moved)
                if new_value >= value:
                    s, P, value = moved, new_P, new_value
                    break
            except InvalidStatistics:
                pass
            lr /= 2
    return -np.array(values) / len(y)


def safe_bent_and_halved() -> tuple[pd.DataFrame, list[float], list[bool], pd.DataFrame]:
    """Log-loss after a hundred safe, bent and halved steps, on four sets."""
    cancer_X, cancer_y = load_breast_cancer(return_X_y=True)
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="kmeans").fit_transform(cancer_X[:, :10])
    digits_X, digits_y = load_digits(return_X_y=True)
    grey = np.digitize(digits_X[:, ::3], [1, 9]).astype(float)
    grey = grey[:, np.ptp(grey, axis=0) > 0]
    reached, bends, far = {}, [], []
    for title, model, X, labels in (
        ("NB, categories", CategoricalNB(), codes, y),
        ("NB, breast cancer", CategoricalNB(), bins, cancer_y),
        ("NB, digits", CategoricalNB(prior_strength=1.0), grey, digits_y),
        ("QDA", QDA(), rows, y),
    ):
        optimum = ConditionalLikelihood(model).fit(X, labels).history_.log_loss.iloc[-1]
        safe = RiskCalibration(model, step=Safe(1.0), max_iter=100, target_weight=0.0, tol=0.0).fit(X, labels)
        map_fit = model.fit(X, labels).parameters_
        model = model.family_.without_prior()  # all three start there, as ML
        s = len(labels) * model.mean_parameters(map_fit)
        start = model.parameters(s)
        halved = only_halved(model, s, X, labels, 101)
        bent = only_halved(model, s, X, labels, 101, model.safe_update)
        at_start, at_end = (s.dot(model.natural_parameters(theta)) for theta in (start, safe.estimator_.parameters_))
        reached[title] = {
            "optimum": optimum,
            "safe": safe.history_.log_loss.iloc[-1] - optimum,
            "bent": bent[-1] - optimum,
            "halved": halved[-1] - optimum,
            "monotone": safe.history_.log_loss.is_monotonic_decreasing,
            "KL": (at_start - at_end) / len(labels),
        }
        labelled = np.eye(labels.max() + 1)[labels]
        P = softmax_rows(model.log_joint(X, start))
        delta = model.statistics(X, labelled - P)
        errors = [np.abs((model.safe_update(s, t * delta) - s - t * delta).ravel()).max() for t in (1e-2, 1e-3)]
        bends.append(errors[0] / errors[1])
        far.append(is_valid(model, model.safe_update(s, 20 * delta)))
    reached = pd.DataFrame(reached).T
    shown = reached.drop(columns="monotone").astype(float).round(4)
    shown[["safe", "bent", "halved"]] = shown[["safe", "bent", "halved"]].clip(lower=0).abs()
    return reached, bends, far, shown


def starts_that_settle(gradient_of: Callable[..., Any], observed: Array) -> tuple[Array, Array]:
    """Distances from the maximiser after updates with a rate beyond 2 / λ for one λ, over those at the start.

    From three models near it, moved along the fast direction until updates settle (by bisection), and from the
    same models moved a thousandth of their distance further, to both sides.
    """
    s, coded = nb.statistics(codes, Y), nb.family_.encode(codes)
    for _ in range(400):  # of which the last 100 change no more than rounding does
        s = s + gradient_of(nb, coded, s)[1]
    C, H = curvatures(nb, nb.parameters(s), observed, every_x, 3)
    values, vectors = np.linalg.eigh(H)
    keep = values > 1e-10 * values.max()
    root = vectors[:, keep] / np.sqrt(values[keep])
    rates, along = np.linalg.eigh(root.T @ C @ root)
    lr, normal = 2.2 / rates[-1], root @ along[:, -1]  # the fast factor is -1.2
    fast, shape = n * H @ normal, s.ravel()

    def after(start, updates):
        at = s.unravel(start)
        for _ in range(updates):
            at = at + lr * gradient_of(nb, coded, at)[1]
        return at.ravel() - shape

    rng, settled, missed = np.random.default_rng(67), [], []
    for _ in range(3):
        offset = nb.statistics(coded, rng.dirichlet(np.ones(Y.shape[1]), size=n) - Y).ravel()
        offset *= 1e-6 * np.linalg.norm(shape) / np.linalg.norm(offset)
        size = np.linalg.norm(offset) / np.linalg.norm(fast)

        def side(k, offset=offset, size=size):
            return normal @ after(shape + offset + k * size * fast, 50)

        k = brentq(side, -2, 2, xtol=1e-14)
        for change, found in ((0, settled), (-1e-3, missed), (1e-3, missed)):
            start = offset + (k + change) * size * fast
            found.append(np.linalg.norm(after(shape + start, 50)) / np.linalg.norm(start))
    return np.array(settled), np.array(missed)


def convergence_factor(
    gradient_of: Callable[..., Any], observed: Array
) -> tuple[int, Array, float, float, Callable[..., Any], Array, Array]:
    """The convergence factor of RC on naive Bayes, predicted and seen."""
    T = 160
    path, s, coded = [], nb.statistics(codes, Y), nb.family_.encode(codes)
    for _ in range(T):
        path.append(s.ravel())
        s = s + gradient_of(nb, coded, s)[1]
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    eigenvalues = relative_curvature(*curvatures(nb, nb.parameters(s), observed, every_x, 3))
    moving = eigenvalues[eigenvalues > 1e-8]
    predicted = np.abs(1 - moving).max()
    usable = np.flatnonzero(lengths > 1e-7 * lengths[0])[-1]
    seen = lengths[usable] / lengths[usable - 1]

    def swings(lr):
        """Whether updates with lr from near the optimum leave it."""
        at, lengths = s + 0.01 * nb.statistics(codes, Y - 1 / 3), []
        for _ in range(60):
            g = gradient_of(nb, coded, at)[1]
            lengths.append(np.linalg.norm(g.ravel()))
            at = at + lr * g
        return lengths[-1] > lengths[0]

    log_joint = nb.log_joint(every_x, nb.parameters(s))
    p_x = np.exp(log_joint).sum(axis=1)  # rows as the model has them
    S = row_statistics(nb, every_x)
    expected = np.einsum("iy,iyk->ik", softmax_rows(log_joint), S)
    mean = p_x @ expected
    of_x = (p_x[:, None] * expected).T @ expected - np.outer(mean, mean)
    C, H = curvatures(nb, nb.parameters(s), p_x, every_x, 3)
    of_x = relative_curvature(of_x, H)
    fitted = relative_curvature(C, H)
    return T, moving, predicted, seen, swings, of_x, fitted


def leaf_of_the_clouds(
    gradient_of: Callable[..., Any],
) -> tuple[Array, Array, Array, GaussianNB, pd.DataFrame]:
    """Three learners on the clouds: losses, kept means and joint likelihood."""
    cloud_X, cloud_y = clouds(300, np.random.default_rng(40))
    cloud_Y = np.eye(2)[cloud_y]
    cloud_bayes = GaussianNB().fit(cloud_X, cloud_y)
    s = cloud_bayes.statistics_
    for _ in range(3000):
        s = s + 0.5 * gradient_of(cloud_bayes, cloud_X, s, cloud_Y)[1]
    eta = cloud_bayes.family_.natural_parameters(cloud_bayes.parameters_)
    for _ in range(1000):
        theta = cloud_bayes.family_.from_natural(eta)
        P = softmax_rows(cloud_bayes.log_joint(cloud_X, theta))
        eta = eta + 0.01 * cloud_bayes.statistics(cloud_X, cloud_Y - P)
    safe_clouds = RiskCalibration(GaussianNB(), step="safe", target_weight=0.0, tol=1e-9).fit(cloud_X, cloud_y)
    cloud_models = {
        "closed form": cloud_bayes.parameters_,
        "RC": cloud_bayes.parameters(s),
        "safe RC": safe_clouds.estimator_.parameters_,
        "gradient ascent": cloud_bayes.family_.from_natural(eta),
    }

    def description(theta):
        """Training log-loss, means of x_2 and x_2 squared, joint log-likelihood."""
        mu = cloud_bayes.family_.mean_parameters(theta)
        joint = cloud_bayes.log_joint(cloud_X, theta)[cloud_Y > 0].mean()
        loss = -log_likelihood(cloud_bayes, cloud_X, theta, cloud_Y) / 300
        return loss, mu.first[:, 1].sum(), mu.second[:, 1].sum(), joint

    cloud_kept = pd.DataFrame(
        {name: description(theta) for name, theta in cloud_models.items()},
        index=[
            "training log-loss",
            "mean of x₂",
            "mean of x₂²",
            "joint log-likelihood",
        ],
    ).T
    return cloud_X, cloud_y, cloud_Y, cloud_bayes, cloud_kept


def empty_cells(
    one_class: Array,
) -> tuple[Array, CategoricalNB, float, float, list[bool], list[float], dict[str, Any]]:
    """Empty cells under RC, and the likelihood towards and on their face."""
    rng = np.random.default_rng(511)
    model = CategoricalNB().fit(one_class, y)
    empty = model.statistics_.cells == 0
    shut_out = model.family_.encode(one_class) @ empty.T > 0  # where the carrier is 0
    by_rc = calibrated(CategoricalNB(), 0.5, 2000, one_class)
    on_face = log_likelihood(by_rc, one_class, by_rc.parameters_)
    whole = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), solver="lbfgs", tol=1e-7)
    attempt = whole.fit(one_class, y).estimator_
    below = log_likelihood(attempt, one_class, attempt.parameters_)
    inside = CategoricalNB(prior_strength=1.0).fit(one_class, y)
    rng, rises, limits = np.random.default_rng(511), [], []
    for _ in range(20):
        eta = inside.family_.natural_parameters(inside.parameters_)
        eta = eta + random_like(eta, rng)
        values = []
        for t in (0.0, 1.0, 3.0, 30.0, np.inf):
            cells = np.where(empty, eta.cells - t, eta.cells)
            scores = inside.family_.scores(one_class, Statistics(count=eta.count, cells=cells))
            both = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
            values.append(np.sum(both[Y > 0]))
        rises += [*(np.diff(values[:4]) > 0), values[4] >= values[3]]
        limits.append(values[4] - values[3])
    face_rise = endless_rise(model, one_class, (Y == 0) & ~shut_out)
    return empty, by_rc, on_face, below, rises, limits, face_rise
