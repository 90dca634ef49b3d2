"""What the checks of the chapter *Probabilistic classification* try: costs, densities, fits and posteriors."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.optimize import linprog, minimize
from scipy.special import expit, gammaln, log_expit, log_softmax, logsumexp, softmax
from scipy.stats import expon, multinomial, multivariate_normal, norm
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor

from rcbook.checking import Part, gap, holds
from rcbook.experiments.studies import generative_or_discriminative as rows_needed
from rcbook.simulation import clouds
from rcpkg import LDA, GaussianNB, MultinomialNB
from rcpkg.base import Array


def bayes_classifiers() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Costs and errors of all classifiers of small joint distributions, which of them are of least conditional cost
    everywhere, and thresholds of two classes."""
    rng = np.random.default_rng(11)
    joint = rng.dirichlet(np.ones(15), size=20).reshape(20, 5, 3)  # p(x, y)
    costs = rng.uniform(size=(20, 3, 3))
    every = np.stack(np.meshgrid(*[range(3)] * 5), axis=-1).reshape(-1, 5)
    conditional = np.einsum("kgy,kxy->kxg", costs, joint)  # times p(x)
    all_costs = np.array([c[np.arange(5), every].sum(axis=1) for c in conditional])
    bayes = conditional.min(axis=2).sum(axis=1)
    error = (1 - np.eye(3)) @ joint.swapaxes(1, 2)
    least_error = error.min(axis=1).sum(axis=1)
    dear, cheap = rng.uniform(0.1, 1, size=(2, 20, 1))
    two = joint[..., :2] / joint[..., :2].sum(axis=2, keepdims=True)
    least = [(c[np.arange(5), every] == c.min(axis=1)).all(axis=1) for c in conditional]
    return joint, every, all_costs, bayes, np.array(least), least_error, dear, cheap, two


def plug_in_costs() -> tuple[Any, Any, Any, Any]:
    """Excess costs of wrong posteriors beside their bound."""
    rng = np.random.default_rng(12)
    p_x, truth = rng.dirichlet(np.ones(6), 400), rng.dirichlet(np.ones(3), (400, 6))
    noise = rng.dirichlet(np.ones(3), (400, 6))
    estimate = truth + rng.uniform(size=(400, 1, 1)) * (noise - truth)
    costs = rng.uniform(size=(400, 3, 3))
    # unit costs, and an estimate that is on the wrong side by a little
    t = np.linspace(0.05, 0.45, 10)[:, None, None]
    p_x = np.concatenate([p_x, p_x[:10]])
    truth, estimate = (
        np.concatenate([p, np.broadcast_to(0.5 + s * np.array([1, -1, 0]), (10, 6, 3))])
        for p, s in ((truth, t), (estimate, -1e-3))
    )
    truth[400:, :, 2] = estimate[400:, :, 2] = 0
    costs = np.concatenate([costs, np.broadcast_to(1 - np.eye(3), (10, 3, 3))])
    loss = np.einsum("kgy,kxy->kxg", costs, truth)
    chosen = np.einsum("kgy,kxy->kxg", costs, estimate).argmin(axis=2)
    excess = np.take_along_axis(loss, chosen[..., None], 2)[..., 0] - loss.min(axis=2)
    bound = np.abs(estimate - truth).sum(axis=2)
    return p_x, costs, excess, bound


def softmax_and_sigmoid() -> tuple[Array, Array, Array, Array, dict[str, Array]]:
    """Vectors, eigenvalues and derivative of their softmax, points on a line; and what rules of both are off by."""
    rng = np.random.default_rng(13)
    a = np.vstack([rng.normal(scale=3, size=(200, 4)), np.zeros(4)])  # a tie
    p, h = softmax(a, axis=1), 1e-5
    jacobian = np.stack(
        [(softmax(a + h * e, axis=1) - softmax(a - h * e, axis=1)) / (2 * h) for e in np.eye(4)], axis=2
    )
    stated = np.eye(4) * p[:, None] - p[:, :, None] * p[:, None]
    slope = (expit(a + h) - expit(a - h)) / (2 * h)
    eigenvalues = np.linalg.eigvalsh(stated)
    other = rng.normal(size=a.shape)  # not the same in all entries
    by_softmax = np.log(softmax(a + other, axis=1) / p)
    tied = np.array([[2.0, 2.0, -1.0, 2.0], [0.5, 0.5, 0.4, -3.0]])
    shares = np.array([[1, 1, 0, 1], [1, 1, 0, 0]]) / [[3], [2]]
    line = np.linspace(-20, 20, 401)
    off = {
        "derivative": stated - jacobian,
        "slope": slope - expit(a) * expit(-a),
        "arg max": softmax(1000 * a[:100], axis=1) - np.eye(4)[a[:100].argmax(axis=1)],
        "ties": softmax(1000 * tied, axis=1) - shares,
        "shift": softmax(a + other[:, :1], axis=1) - p,
        "ratios": np.diff(by_softmax, axis=1) - np.diff(other, axis=1),
    }
    return a, eigenvalues, stated, line, off


def bounds_of_lse(a: Array) -> Array:
    """Whether the logarithm of the sum of exponentials of each row of four lies between its bounds."""
    lse, largest = logsumexp(a, axis=1), a.max(axis=1)
    return (largest <= lse) & (lse <= largest + np.log(4) + 1e-12)


def laws_of_the_sigmoid(line: Array) -> list[Part]:
    """Symmetry, concavity of the logarithm and greatest slope."""
    return [
        gap("σ(-a) and 1 - σ(a)", expit(-line) - (1 - expit(line)), 1e-12),
        holds("log σ is strictly concave", np.diff(log_expit(line), n=2) < 0),
        holds("σ' is at most 1/4", expit(line) * expit(-line) <= 0.25),
    ]


def sequences_and_bags() -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Posteriors of sequences and of bags of words, and their ratio."""
    rng = np.random.default_rng(14)
    prior, language = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(5), 3)
    documents = rng.integers(0, 5, size=(50, 12))
    bags = np.sum(documents[:, :, None] == np.arange(5), axis=1)
    as_sequence = prior * np.prod(language[:, documents], axis=2).T
    as_bag = prior * np.column_stack([multinomial.pmf(bags, 12, theta) for theta in language])
    linear = softmax(np.log(prior) + bags @ np.log(language).T, axis=1)
    coefficient = np.exp(gammaln(13) - gammaln(bags + 1).sum(axis=1))
    return rng, language, documents, as_sequence, as_bag, linear, coefficient


def smoothed_words(rng: Any, language: Any) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Posterior means and modes of word probabilities, by quadrature and formula."""
    alpha, counts = np.array([0.7, 2.0]), np.array([4, 0])

    def density(theta):
        return theta ** (alpha[0] + counts[0] - 1) * (1 - theta) ** (alpha[1] + counts[1] - 1)

    mean = quad(lambda theta: theta * density(theta), 0, 1)[0] / quad(density, 0, 1)[0]
    grid = np.linspace(0.001, 0.999, 998_001)
    mode = (alpha + counts - 1)[0] / (alpha + counts - 1).sum()
    bags = rng.multinomial(12, language[0], size=30)
    ours = MultinomialNB(prior_strength=5 * 0.7, class_prior_strength=0).fit(
        np.vstack([bags, bags[::-1] + 1]), [0] * 30 + [1] * 30
    )
    return alpha, counts, density, mean, grid, mode, bags, ours


def drawn_documents(
    rng: Any, vocabulary: Any, theta: Any, corpus: Any, train: Any, labels: Any, topics: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Frequencies of words and of pairs of words in drawn documents."""
    many = [rng.choice(vocabulary, size=(4000, 5), p=p) for p in theta]
    shares = np.array([[np.mean(sample == word) for word in vocabulary] for sample in many])
    pairs = {pair for document in corpus for pair in pairwise(document)}
    new = np.mean(
        [pair not in pairs for sample in many for document in sample for pair in pairwise(document)]
    )
    heard = [" ".join(map(" ".join, np.array(corpus)[train & (labels == y)])) for y in topics]
    smooth = np.array([[h.split().count(word) + 0.5 for word in vocabulary] for h in heard])
    smooth /= smooth.sum(axis=1, keepdims=True)
    se = np.sqrt(smooth * (1 - smooth) / many[0].size)
    return many, shares, new, smooth, se


def regions_of_gaussians() -> tuple[Array, Array, Array]:
    """Four Gaussian classes that share a covariance: posteriors less softmax of the affine functions; whether the
    middle of two points of a class is of the class; and, where the covariance is a multiple of the identity, the
    change of the log odds across the difference of two means."""
    rng, d = np.random.default_rng(22), 3
    means, weights, x = rng.normal(size=(4, d)), rng.dirichlet(np.ones(4)), rng.normal(scale=2, size=(300, d))
    root = rng.normal(size=(d, d))
    S = root @ root.T + 0.3 * np.eye(d)

    def log_joint(x, S):
        return np.column_stack([np.log(w) + multivariate_normal.logpdf(x, m, S) for w, m in zip(weights, means)])

    solved = np.linalg.solve(S, means.T)
    affine = x @ solved - 0.5 * np.sum(means.T * solved, axis=0) + np.log(weights)
    off = softmax(log_joint(x, S), axis=1) - softmax(affine, axis=1)
    own = log_joint(x, S).argmax(axis=1)
    i, j = np.triu_indices(len(x), 1)
    pairs = own[i] == own[j]
    convex = log_joint((x[i[pairs]] + x[j[pairs]]) / 2, S).argmax(axis=1) == own[i[pairs]]
    way = rng.normal(size=(len(x), d))
    apart = means[1] - means[0]
    way -= np.outer(way @ apart, apart) / (apart @ apart)
    odds = [np.diff(log_joint(points, 0.7 * np.eye(d))[:, :2]) for points in (x, x + way)]
    return off, convex, odds[1] - odds[0]


def log_odds_of_gaussians() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Log odds of Gaussians and their quadratic and affine forms, and those of the slides."""
    rng = np.random.default_rng(21)
    d, grid = 3, rng.normal(scale=2, size=(300, 3))
    means, weights = rng.normal(size=(2, d)), np.array([0.3, 0.7])
    roots = rng.normal(size=(2, d, d))
    covariances = roots @ roots.swapaxes(1, 2) + 0.3 * np.eye(d)

    def log_odds(covariances):
        logs = [multivariate_normal.logpdf(grid, m, S) for m, S in zip(means, covariances)]
        return np.log(weights[1] / weights[0]) + logs[1] - logs[0]

    def squared(x, S):
        return np.sum(x * np.linalg.solve(S, x.T).T, axis=-1)

    quadratic = 0.5 * (squared(grid - means[0], covariances[0]) - squared(grid - means[1], covariances[1]))
    quadratic += 0.5 * np.log(np.linalg.det(covariances[0]) / np.linalg.det(covariances[1])) + np.log(
        weights[1] / weights[0]
    )
    S = covariances[0]
    beta = np.linalg.solve(S, means[1] - means[0])
    beta_0 = 0.5 * (squared(means[:1], S)[0] - squared(means[1:], S)[0]) + np.log(weights[1] / weights[0])
    upside_down = (
        grid @ beta
        + 0.5 * (squared(means[:1], S)[0] - squared(means[1:], S)[0])
        - np.log(weights[1] / weights[0])
    )
    half = 0.5 * (grid @ np.linalg.solve(S, means.T) - squared(means, S)) + np.log(weights)
    design = np.column_stack([np.ones(300), grid])
    misfit = log_odds(covariances) - design @ np.linalg.lstsq(design, log_odds(covariances))[0]
    return d, grid, covariances, log_odds, quadratic, S, beta, beta_0, upside_down, half, misfit


def regions_of_three(plane: Any, means: Any, own: Any, log_joint: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Log odds and regions of three Gaussian classes on a grid."""
    points = plane[::20, ::20].reshape(-1, 2)

    def log_joint_of(x):
        return np.stack([multivariate_normal.logpdf(x, m, C) for m, C in zip(means, own)])

    u, v = points.T
    straight = np.column_stack([np.ones(len(u)), u, v])
    quadric = np.column_stack([straight, u * u, u * v, v * v])
    odds = log_joint_of(points)[[0, 0, 1]] - log_joint_of(points)[[1, 2, 2]]
    misfits = [np.abs(f @ np.linalg.lstsq(f, odds.T)[0] - odds.T).max(axis=0) for f in (quadric, straight)]
    meeting = minimize(lambda x: np.var(log_joint_of(x)), [-1.0, 1.2], tol=1e-12).x
    decided = log_joint.argmax(axis=0)
    return points, log_joint_of, misfits, meeting, decided


def gaussian_likelihoods() -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Likelihoods beside the maximum, and fits beside scikit-learn."""
    rng = np.random.default_rng(22)
    X, y = (part[20:] for part in load_iris(return_X_y=True))  # unequal classes
    share = np.bincount(y) / len(y)

    def log_likelihood(weights, means, covariances):
        logs = [multivariate_normal.logpdf(X[y == c], means[c], covariances[c]) for c in range(3)]
        return sum(np.sum(part) + (y == c).sum() * np.log(weights[c]) for c, part in enumerate(logs))

    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    own = np.array([np.cov(X[y == c].T, bias=True) for c in range(3)])
    shared = np.tensordot(share, own, axes=1)
    falls = []
    for best in (own, np.stack([shared] * 3)):
        top = log_likelihood(share, means, best)
        for _ in range(100):
            E = rng.normal(scale=0.02, size=(3, 4, 4) if best is own else (4, 4))
            factor = np.linalg.cholesky(best) + np.tril(E)
            other = (
                rng.dirichlet(6000 * share),
                means + rng.normal(scale=0.02, size=(3, 4)),
                factor @ factor.swapaxes(1, 2),
            )
            falls.append(log_likelihood(*other) < top)
    sklearn_lda = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    few = X[:3]  # a singular covariance: the likelihood has no maximum
    flat = np.cov(few.T, bias=True)
    climbs = [
        multivariate_normal.logpdf(few, few.mean(axis=0), flat + e * np.eye(4)).sum()
        for e in 10.0 ** -np.arange(1, 8)
    ]
    return X, y, own, shared, falls, sklearn_lda, climbs


def exponential_families() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Posteriors, weights and log odds of five families of features."""
    rng = np.random.default_rng(23)
    weights = rng.dirichlet(np.ones(3))
    ones = rng.uniform(0.1, 0.9, (3, 4))
    rate = rng.uniform(0.5, 4, (3, 4))
    binary, count = rng.integers(0, 2, (200, 4)), rng.poisson(2, (200, 4))
    wait = rng.exponential(size=(200, 4))
    cases = {  # log p(x | y) for three classes, natural parameters, A
        "binary": (
            binary,
            binary @ np.log(ones).T + (1 - binary) @ np.log(1 - ones).T,
            np.log(ones / (1 - ones)),
            -np.log(1 - ones),
        ),
        "Poisson": (
            count,
            count @ np.log(rate).T - rate.sum(axis=1) - gammaln(count + 1).sum(axis=1)[:, None],
            np.log(rate),
            rate,
        ),
        "exponential": (wait, np.log(rate).sum(axis=1) - wait @ rate.T, -rate, -np.log(rate)),
    }
    gaps = []
    for x, log_density, eta, A in cases.values():
        affine = np.log(weights) - A.sum(axis=1) + x @ eta.T
        gaps.append(softmax(affine, axis=1) - softmax(log_density + np.log(weights), axis=1))
    # part 2: x uniform on (-3, 3), a logistic posterior; classes are an exponential family without a name
    beta_0, slope = 0.4, 1.3

    def carrier(x):
        return 1 / 6 / (1 + np.exp(beta_0 + slope * x))

    pi_1 = quad(lambda x: expit(beta_0 + slope * x) / 6, -3, 3)[0]
    A_1 = np.log(quad(lambda x: carrier(x) * np.exp(slope * x), -3, 3)[0])
    x = np.linspace(-3, 3, 13)
    density = carrier(x) * np.exp(slope * x - A_1)
    # not affine: equal means, different variances; a state coded as a number
    z = np.array([[0.0], [1.0], [2.0]])
    bend = np.diff(norm.logpdf(z, 0, 2) - norm.logpdf(z, 0, 1), n=2, axis=0)
    state = np.diff(np.log([0.2, 0.6, 0.2]) - np.log([0.4, 0.2, 0.4]), n=2)
    return cases, gaps, x, beta_0, slope, pi_1, A_1, density, bend, state


def generalised_regressions(
    families: Any, fit_glm: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Five regressions beside scikit-learn, their means, variances and slopes."""
    rng = np.random.default_rng(31)
    n = 300
    x = rng.uniform(-1, 1, size=(n, 2))
    X = np.column_stack([np.ones(n), x])
    beta = np.array([0.5, 1.0, -0.7])
    never = np.array([-2.0, 0.6, -0.8])  # X @ never < 0
    responses = {
        "normal": X @ beta + rng.normal(size=n),
        "Bernoulli": (rng.uniform(size=n) < expit(X @ beta)).astype(float),
        "Poisson": rng.poisson(np.exp(X @ beta)).astype(float),
        "exponential": rng.exponential(-1 / (X @ never)),
    }
    starts = {name: np.zeros(3) for name in families} | {"exponential": np.array([-1.0, 0, 0])}
    fits = {name: fit_glm(X, u, name, starts[name]) for name, u in responses.items()}

    def sklearn_fit(model, u):
        fitted = model.fit(x, u)
        return np.r_[fitted.intercept_, fitted.coef_.ravel()]

    tight = {"tol": 1e-10, "max_iter": 10_000}
    theirs = {
        "normal": sklearn_fit(LinearRegression(), responses["normal"]),
        "Bernoulli": sklearn_fit(LogisticRegression(C=np.inf, **tight), responses["Bernoulli"]),
        "Poisson": sklearn_fit(
            PoissonRegressor(alpha=0, solver="newton-cholesky", **tight), responses["Poisson"]
        ),
        "exponential": minimize(
            lambda b: -np.sum(expon.logpdf(responses["exponential"], scale=np.maximum(-1 / (X @ b), 1e-9))),
            fits["exponential"] + [-0.3, 0.1, 0.1],
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
        ).x,
    }
    logged = sklearn_fit(GammaRegressor(alpha=0, solver="newton-cholesky", **tight), responses["exponential"])
    score_of_log_link = X.T @ (responses["exponential"] / np.exp(X @ logged) - 1)
    y3 = np.array([rng.choice(3, p=p) for p in softmax(X @ rng.normal(size=(3, 3)), axis=1)])
    softmax_fit = LogisticRegression(C=np.inf, solver="newton-cg", **tight).fit(x, y3)
    theta = np.column_stack([softmax_fit.intercept_, softmax_fit.coef_]).T
    B = np.zeros((3, 3))  # Newton's method with the third class at zero
    for _ in range(20):
        P = softmax(X @ B, axis=1)[:, :2]
        weight = P[:, :, None] * (np.eye(2) - P[:, None])
        H = np.einsum("ij,iyz,ik->yjzk", X, weight, X).reshape(6, 6)
        step = np.linalg.solve(H, (X.T @ (np.eye(3)[y3, :2] - P)).T.ravel())
        B[:, :2] += step.reshape(2, 3).T
    h, slopes = 1e-5, []
    for mean, variance, _ in families.values():
        eta = np.linspace(-2, -0.5, 20)
        slopes.append((mean(eta + h) - mean(eta - h)) / (2 * h) - variance(eta))
    return n, X, responses, fits, theirs, score_of_log_link, theta, B, slopes


def softmax_likelihood() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Gradient, Hessian and kernel of the softmax likelihood, and the last line of the slides."""
    rng = np.random.default_rng(33)
    n, r = 40, 3
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    labels = rng.integers(0, r, n)
    Y, B = np.eye(r)[labels], rng.normal(size=(3, r))

    def log_likelihood(B):
        return np.sum(log_softmax(X @ B, axis=1)[np.arange(n), labels])

    def score(B):
        return X.T @ (Y - softmax(X @ B, axis=1))

    def difference(f, B, h=1e-5):
        steps = h * np.eye(B.size).reshape(B.size, *B.shape)
        return np.array([(f(B + step) - f(B - step)) / (2 * h) for step in steps])

    P = softmax(X @ B, axis=1)
    hessian = -np.einsum("ij,iy,iyz,ik->jykz", X, P, np.eye(r) - P[:, None, :], X).reshape(9, 9)
    values = np.linalg.eigvalsh(hessian)
    slides = np.array([(Y - P).sum(axis=0)[:, None] * row for row in X])  # one row for the sum over rows
    return rng, n, r, B, log_likelihood, score, difference, hessian, values, slides


def separating(X: Any, y: Any) -> Any:
    """The largest sum of z'beta with all z'beta in [0, 1], and whether it is positive: a linear programme."""
    Z = (2 * y - 1)[:, None] * X
    constraints = {"A_ub": np.vstack([-Z, Z]), "b_ub": np.r_[np.zeros(len(y)), np.ones(len(y))]}
    found = linprog(-Z.sum(axis=0), bounds=(None, None), **constraints)
    return -found.fun > 1e-7, found.x


def separated_sets() -> tuple[Any, Any, Any, Any, Any]:
    """Small data sets, whether a linear program separates them, and where Newton ends."""

    def newton(X, y, iterations=30):
        """Gradient and least curvature where Newton's method with a tiny ridge ends."""
        beta, sign = np.zeros(X.shape[1]), 2 * y - 1
        for _ in range(iterations):
            p = expit(X @ beta)
            gradient, hessian = X.T @ (y - p), X.T @ ((p * (1 - p))[:, None] * X)
            step = np.linalg.solve(hessian + 1e-9 * np.eye(len(beta)), gradient - 1e-9 * beta)
            while np.sum(log_expit(sign * (X @ (beta + step)))) < np.sum(log_expit(sign * (X @ beta))) - 1e-9:
                step /= 2
            beta = beta + step
        return np.abs(gradient).max(), np.linalg.eigvalsh(hessian)[0]

    rng = np.random.default_rng(34)
    separated, ends, rises, quasi = [], [], [], []
    for trial in range(80):
        n = rng.integers(6, 16)
        y = rng.permutation(np.arange(n) % 2)
        X = np.column_stack([np.ones(n), rng.normal(size=(n, 2)) + y[:, None]])
        if trial >= 70:  # a plane with four rows of both classes on it
            X[:, 1] = np.abs(X[:, 1]) * (2 * y - 1)
            on = np.r_[np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]]
            X[on, 1:] = [[0, -1], [0, 1], [0, 1], [0, -1]]
        found, direction = separating(X, y)
        quasi.append(found or trial < 70)
        separated.append(found)
        ends.append(newton(X, y))
        if found:
            far = [np.sum(log_expit((2 * y - 1) * (X @ (t * direction)))) for t in (1, 4, 16)]
            rises.append(np.diff(far) > 0)
    separated, (gradient, curvature) = np.array(separated), np.array(ends).T
    return separated, rises, quasi, gradient, curvature


def safe_steps() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Rises of safe steps beside what is stated."""

    def stated_rise(alpha, gradient):
        return alpha / 2 * np.sum(gradient**2)

    rng = np.random.default_rng(41)
    rises = []
    for _ in range(200):
        X = np.column_stack([np.ones(30), rng.normal(size=(30, 3)) * rng.exponential(2, 3)])
        y, beta = rng.integers(0, 2, 30), rng.normal(size=4)
        sign, gradient = 2 * y - 1, X.T @ (y - expit(X @ beta))
        alpha = rng.uniform() * 4 / np.linalg.eigvalsh(X.T @ X)[-1]
        rise = np.sum(log_expit(sign * (X @ (beta + alpha * gradient))) - log_expit(sign * (X @ beta)))
        rises.append(rise - stated_rise(alpha, gradient))
        k = rng.integers(4)
        alpha, move = 4 / (X[:, k] @ X[:, k]), np.zeros(4)
        move[k] = alpha * gradient[k]
        rise = np.sum(log_expit(sign * (X @ (beta + move))) - log_expit(sign * (X @ beta)))
        rises.append(rise - stated_rise(alpha, gradient[k]))
    # one coefficient after another, all that there are, again and again
    X = np.column_stack([np.ones(30), rng.normal(size=(30, 3))])
    y, beta = rng.integers(0, 2, 30), np.zeros(4)
    for t in range(4 * 400):
        k = t % 4
        beta[k] += 4 / np.sum(X[:, k] ** 2) * (X[:, k] @ (y - expit(X @ beta)))
    # the longest step from p = 1/2 with a small gradient: nothing to spare
    n_1 = 500_500  # of a million rows with one constant feature
    gradient, alpha = n_1 - 5e5, 4e-6
    rise = n_1 * log_expit(alpha * gradient) + (1e6 - n_1) * log_expit(-alpha * gradient)
    rise -= 1e6 * np.log(0.5)
    return stated_rise, rises, X, y, beta, gradient, alpha, rise


def newton_iterates() -> tuple[Any, ...]:
    """Newton's iterates beside the bound, one step of least squares, and other coordinates."""
    rng = np.random.default_rng(42)
    path = iterates(lambda z: np.exp(z) - 3, np.exp, 1.3, 5)
    distance = np.abs(path - np.log(3))
    bound = np.exp(1.3) / (2 * 3) * distance[:-1] ** 2  # on [log 3, 1.3]: m = 3, M = exp(1.3)
    X = np.column_stack([np.ones(50), rng.normal(size=(50, 3))])
    target, start = rng.normal(size=50), rng.normal(size=4)
    one_step = start - np.linalg.solve(X.T @ X, X.T @ (X @ start - target))
    y, M = rng.integers(0, 2, 50), rng.normal(size=(4, 4)) + 2 * np.eye(4)

    def logistic_steps(X, beta, newton, steps=4):
        for _ in range(steps):
            p = expit(X @ beta)
            gradient = X.T @ (y - p)
            curvature = X.T @ ((p * (1 - p))[:, None] * X)
            beta = beta + (np.linalg.solve(curvature, gradient) if newton else 0.01 * gradient)
        return beta

    there = {newton: M.T @ logistic_steps(X @ M.T, np.zeros(4), newton) for newton in (True, False)}
    here = {newton: logistic_steps(X, np.zeros(4), newton) for newton in (True, False)}
    y, z = np.array([0, 1, 0, 1]), np.array([-2.0, -1, 1, 2])
    balanced, units = np.column_stack([np.ones(4), z]), np.diag([2.0, 1])
    by_units = units @ logistic_steps(balanced @ units, np.zeros(2), False)
    by_units -= logistic_steps(balanced, np.zeros(2), False)
    sinh = iterates(lambda z: expit(z) - 0.5, lambda z: expit(z) * expit(-z), 2.2, 2)
    return path, distance, bound, X, target, one_step, there, here, by_units, sinh


def reweighted_steps(irls: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Weighted regressions beside Newton's steps, and numbers of steps."""
    rng = np.random.default_rng(43)
    gaps, working, steps, drawn = [], [], [], []
    for _ in range(20):
        X = np.column_stack([np.ones(120), rng.normal(size=(120, 4))])
        y = (rng.uniform(size=120) < expit(X @ rng.normal(size=5))).astype(int)
        beta, count = irls(X, y)
        theirs = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky").fit(X[:, 1:], y)
        drawn.append((X, y, beta))
        gaps.append(beta - np.r_[theirs.intercept_, theirs.coef_[0]])
        steps.append(count)
        start = rng.normal(size=5)
        p = expit(X @ start)
        D = p * (1 - p)
        response, root = X @ start + (y - p) / D, np.sqrt(D)
        regression = np.linalg.lstsq(root[:, None] * X, root * response)[0]
        working.append(regression - start - np.linalg.solve(X.T @ (D[:, None] * X), X.T @ (y - p)))
    apart = []  # where no maximum exists it stops by its tolerance too
    for shift in (0.0, 1.0, 3.0):
        x = np.r_[-3.0, -2, -1, 1, 2, 3] * (1 + shift)
        beta, count = irls(np.column_stack([np.ones(6), x]), x > 0)
        apart.append((beta[1] * (1 + shift) > 10) and 10 < count < 50)
    return gaps, working, steps, drawn, apart


def probit(difference: Any, irls: Any) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Gradient and optimum of the probit likelihood, and its distance from the logit."""
    rng = np.random.default_rng(44)
    X = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    y = (X @ [0.3, 1.0, -0.5] + rng.normal(size=200) > 0).astype(int)
    sign = 2 * y - 1

    def probit_score(beta):
        a = X @ beta
        return X.T @ (sign * np.exp(norm.logpdf(a) - norm.logcdf(sign * a)))

    beta = rng.normal(size=3)
    differences = difference(lambda b: np.sum(norm.logcdf(sign * (X @ b))), beta)
    fit = minimize(
        lambda b: -np.sum(norm.logcdf(sign * (X @ b))),
        np.zeros(3),
        jac=lambda b: -probit_score(b),
        options={"gtol": 1e-8},
    ).x
    logit = irls(X, y)[0]
    a = np.linspace(-6, 6, 2401)
    worst = np.abs(norm.cdf(a) - expit(1.702 * a)).max()
    return X, y, probit_score, beta, differences, fit, logit, a, worst


def simulated_efficiency() -> tuple[Any, Any, Any]:
    """Simulated estimates of discriminant analysis and logistic regression."""
    # the whole formula, for unequal weights in three dimensions
    rng, size = np.random.default_rng(46), (1000, 1500)
    D, pi_1 = 2.5, 0.85
    y = (rng.uniform(size=size) < pi_1).astype(int)
    X = np.concatenate([np.ones((*size, 1)), rng.normal(size=(*size, 3))], axis=2)
    X[..., 1] += (y - 0.5) * D
    rules = [method(X, y) for method in (rows_needed.discriminant_analysis, rows_needed.logistic_regression)]
    rules.append(np.tile([np.log(pi_1 / (1 - pi_1)), D, 0, 0], (size[0], 1)))
    errors = []
    for beta in rules:
        length = np.linalg.norm(beta[:, 1:], axis=1)
        errors.append(
            pi_1 * norm.cdf((-beta[:, 0] - beta[:, 1] * D / 2) / length)
            + (1 - pi_1) * norm.cdf((beta[:, 0] - beta[:, 1] * D / 2) / length)
        )
    lost = np.array(errors[:2]) - errors[2]  # excess errors, of either rule
    unequal = lost[0].mean() / lost[1].mean()
    unequal_se = np.std(lost[0] - unequal * lost[1]) / lost[1].mean() / np.sqrt(lost.shape[1])
    return lost, unequal, unequal_se


def efficiency_of_regression() -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Simulated and asymptotic efficiency, standard errors and variances."""

    def efron(distance, d, pi_1=0.5):
        pi_0 = 1 - pi_1
        z, step = np.linspace(-12, 12, 2401, retstep=True)
        p_1, p_0 = norm.pdf(z - distance / 2), norm.pdf(z + distance / 2)
        mixed = p_1 * p_0 / (pi_1 * p_1 + pi_0 * p_0)
        A = [step * np.sum(z**k * mixed) for k in range(3)]
        off = (pi_1 - pi_0) * distance / 2
        V = np.array([[1 + distance**2 / 4, off], [off, 1 + 2 * pi_1 * pi_0 * distance**2]])
        W = np.linalg.inv([[A[0], A[1]], [A[1], A[2]]])
        t = np.array([1, -np.log(pi_1 / pi_0) / distance])
        gaussian = t @ V @ t + (d - 1) * (1 + pi_1 * pi_0 * distance**2)
        return gaussian / (t @ W @ t + (d - 1) / A[0])

    study = rows_needed.tidy(rows_needed.EFFICIENCY)
    ratio = study[study.metric == "efficiency"].assign(problem=lambda s: s.problem.astype(float))
    most = ratio[ratio.n == ratio.n.max()]
    theory = np.array([efron(D, rows_needed.FEATURES) for D in most.problem])
    # unequal weights: the covariances of many estimates, in one simulation
    rng = np.random.default_rng(45)
    runs, n, D, pi_1 = 1500, 2000, 2.0, 0.8
    y = (rng.uniform(size=(runs, n)) < pi_1).astype(int)
    X = np.stack([np.ones((runs, n)), rng.normal(size=(runs, n)) + (y - 0.5) * D], axis=2)
    lda = rows_needed.discriminant_analysis(X, y)
    off = (2 * pi_1 - 1) * D / 2
    V = np.array([[1 + D**2 / 4, off], [off, 1 + 2 * pi_1 * (1 - pi_1) * D**2]])
    found = n * pi_1 * (1 - pi_1) * np.cov(lda.T)
    se = np.sqrt((np.outer(np.diag(V), np.diag(V)) + V**2) / runs)
    return efron, study, ratio, most, theory, runs, V, found, se


def posterior_modes() -> tuple[Any, Any, Any, Any, Any]:
    """Modes of the posterior from all starts, concavity, sigmoids that depend, and a conjugate prior of few z."""
    rng = np.random.default_rng(51)
    grid = np.linspace(-6, 6, 400)
    columns = [log_expit(z * grid) for z in (1, 2, 3)]
    columns += [np.polynomial.legendre.Legendre.basis(k)(grid / 6) for k in range(5)]
    columns = np.column_stack(columns)
    smallest = np.linalg.svd(columns / np.linalg.norm(columns, axis=0))[1][-1]
    same = np.column_stack([log_expit(grid), log_expit(-grid), grid])  # |z| not distinct
    rank = np.linalg.matrix_rank(same)
    Z = np.column_stack([np.ones(6), np.arange(6) - 2.5]) * np.repeat([[-1], [1]], 3, axis=0)  # separated

    def log_posterior(beta):
        return np.sum(log_expit(Z @ beta)) - beta @ beta / 18

    modes = [
        minimize(lambda b: -log_posterior(b), start, options={"gtol": 1e-9}).x
        for start in rng.normal(scale=5, size=(10, 2))
    ]
    points = rng.normal(scale=4, size=(200, 2, 2))
    middle = np.array(
        [log_posterior(pair.mean(axis=0)) - np.mean([log_posterior(b) for b in pair]) for pair in points]
    )
    # a feature of three values, so six z: the posterior of nine rows beside the prior with their counts added
    phi, labels = np.array([-1.0, 0.5, 2.0])[rng.integers(3, size=9)], rng.integers(2, size=9)
    z_all, exponents = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]), np.array([0.7, 1.3, 2.0, 0.4, 1.0, 1.6])
    p = 1 / (1 + np.exp(-np.outer(grid, phi)))
    by_rows = exponents @ log_expit(np.outer(z_all, grid)) + np.log(np.where(labels == 1, p, 1 - p)).sum(axis=1)
    counts = np.sum(((2 * labels - 1) * phi)[:, None] == z_all, axis=0)
    by_counts = (exponents + counts) @ log_expit(np.outer(z_all, grid))
    conjugate = np.array([by_rows, by_counts])
    return smallest, rank, modes, middle, conjugate


def variational_bounds(
    variational: Any, X: Any, y_train: Any, plane: Any, prior_precision: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Variational bounds of the sigmoid and of the evidence."""
    a, xi = np.meshgrid(np.linspace(-12, 12, 481), np.linspace(0.05, 10, 200))
    lower = log_expit(xi) + (a - xi) / 2 - np.tanh(xi / 2) / (4 * xi) * (a**2 - xi**2)
    touch = log_expit(-xi) - (log_expit(xi) - xi)
    m, S, bounds = variational(X, y_train)
    gaussian = multivariate_normal(m, S).logpdf(plane) + bounds[-1]
    xi = np.sqrt(np.einsum("ij,jk,ik->i", X, S + np.outer(m, m), X))
    scores = (2 * y_train - 1) * (plane @ X.T)
    product = multivariate_normal([0, 0], np.linalg.inv(prior_precision)).logpdf(plane) + np.sum(
        log_expit(xi) + (scores - xi) / 2 - np.tanh(xi / 2) / (4 * xi) * (scores**2 - xi**2), axis=-1
    )
    return a, lower, touch, m, S, bounds, gaussian, product


def averages_of_the_sigmoid() -> tuple[Any, Any, Any, Any, Any, Any]:
    """Means of Φ and σ under Gaussians, and the moderated sigmoid."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def averaged(f, mean, deviation):
        """E f(mean + deviation * standard normal), by Gauss and Hermite."""
        return f(np.add.outer(mean, 0 * nodes) + np.multiply.outer(deviation, nodes)) @ weights

    rng = np.random.default_rng(52)
    a, s = (rng.exponential(2, 300), np.sort(rng.exponential(1.2, (300, 3)), axis=1) + 0.05)
    means = np.array([averaged(expit, a, column) for column in s.T])
    moderate = np.minimum(s[:, 0], 1.5)
    probit_means = averaged(norm.cdf, a, moderate)
    approximate = expit(a / np.sqrt(1 + np.pi * s[:, 1] ** 2 / 8))
    return averaged, a, means, moderate, probit_means, approximate


def posterior_by_quadrature(
    chain: Any, exact: Any, plane: Any, cell: Any, comparison: Any, results: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Evidence, mass and means of the posterior by quadrature and by a chain, apart in standard errors; and which of
    two approximations becomes worse with rows."""
    wider = np.stack(np.meshgrid(np.linspace(-12, 12, 561), np.linspace(-8, 22, 601)), axis=-1)
    size = (24 / 560) * (30 / 600)
    effective = []
    for function in chain.T:
        centred = function - function.mean()
        spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
        correlation = np.fft.irfft(spectrum)[:200] / np.sum(centred**2)
        effective.append(len(chain) / (2 * correlation.sum() - 1))
    moments = np.array([np.sum(exact * plane[..., k]) for k in range(2)]) * cell
    spread = np.sqrt([np.sum(exact * (plane[..., k] - moments[k]) ** 2) * cell for k in range(2)])
    few, many = (comparison.loc[rows, "largest error"] for rows in results)
    ordered = few["variational"] < few["MAP, plugged in"] < few["Laplace"]
    by_rows = np.array(
        [
            [comparison.loc[(rows, name), "total variation"] for rows in results]
            for name in ("variational", "Laplace")
        ]
    )
    apart = (chain.mean(axis=0) - moments) / spread * np.sqrt(effective)
    return wider, size, moments, apart, ordered, many, np.diff(by_rows, axis=1)[:, 0] * [1, -1] > 0


def fits_to_the_clouds() -> Any:
    """Error and log-loss of two Gaussian models and two regressions on the clouds."""

    def both_losses(classifier, rows=lambda X: X):
        """Error and log-loss on fresh rows of the clouds."""
        fitted = classifier.fit(rows(cloud_X), cloud_y)
        P = fitted.predict_proba(rows(fresh_X))
        own = P[np.arange(len(P)), fresh_y]
        return np.mean(P.argmax(axis=1) != fresh_y), -np.log(own).mean()

    draws = np.random.default_rng(40)
    (cloud_X, cloud_y), (fresh_X, fresh_y) = clouds(300, draws), clouds(20_000, draws)
    plain = LogisticRegression(C=np.inf, max_iter=1000)
    return pd.DataFrame(
        {
            "one covariance": both_losses(LDA()),
            "naive Bayes": both_losses(GaussianNB()),
            "logistic regression on x": both_losses(plain),
            "logistic regression on x, x²": both_losses(plain, lambda X: np.hstack([X, X**2])),
        },
        index=["error", "log-loss"],
    ).T


def iterates(f: Callable[..., Any], slope: Callable[..., Any], z: float, steps: int) -> Array:
    """Newton's iterates from ``z``."""
    path = [z]
    for _ in range(steps):
        path.append(path[-1] - f(path[-1]) / slope(path[-1]))
    return np.array(path)
