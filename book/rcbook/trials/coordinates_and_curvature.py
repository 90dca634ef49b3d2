"""What the checks of the chapter *Coordinates and curvature* try: optima, systems, curvatures, samples and streams."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler

from rcbook.simulation import clouds
from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    KDependenceBayes,
    MultinomialNB,
    ProductModel,
)
from rcpkg.base import Array
from rcpkg.calibration.conditional import stratified
from rcpkg.calibration.coordinates import units
from rcpkg.calibration.features import Features
from rcpkg.calibration.logistic import LogisticObjective

LIMIT = 150  # iterations of L-BFGS that are compared; of more the rounding of a processor decides how many


def in_bins(X: Array, k: int = 4) -> Array:
    """Codes of k bins a feature."""
    return KBinsDiscretizer(k, encode="ordinal", strategy="kmeans", random_state=0).fit_transform(X)


def hessian(objective: LogisticObjective, B: Array) -> Array:
    """Hessian of f in B, with the coefficients of a class side by side."""
    phi = objective.features.dense(slice(None))
    S = B @ phi
    P = np.exp(S - np.logaddexp.reduce(S, axis=0))
    r, p = B.shape
    H = np.zeros((r, p, r, p))
    for a in range(r):
        for b in range(r):
            weight = P[a] * ((a == b) - P[b]) / len(objective.y)
            H[a, :, b] = (phi * weight) @ phi.T
    return H.reshape(r * p, r * p)


def optima_of_models() -> tuple[
    Array,
    Array,
    Array,
    Array,
    Array,
    Callable[..., Any],
    Array,
    list[float],
    list[Array],
    list[float],
    list[list],
    Array,
    Array,
    Array,
    list[CategoricalNB | MultinomialNB],
]:
    """Optima of models and sets beside scikit-learn's, and slopes and curvatures of the objective."""
    iris_X, iris_y = load_iris(return_X_y=True)
    iris_X = StandardScaler().fit_transform(iris_X)
    cancer_X, cancer_y = load_breast_cancer(return_X_y=True)
    wine_X, wine_y = load_wine(return_X_y=True)

    def problem_of(model, X, labels, penalty=0.0):
        """Objective and coefficients of the closed form."""
        model.fit(X, labels)
        kind = "plain" if penalty else "natural"
        r = len(model.classes_)
        features = Features(model.family_.feature_map(model.family_.encode(X), kind))
        objective = LogisticObjective(features, labels, r, l2=penalty, free=r)
        return objective, features.coefficients(model.family_.natural_parameters(model.parameters_))

    cancer_codes, wine_codes = in_bins(cancer_X[:, :10]), in_bins(wine_X, 3)
    quadratic = PolynomialFeatures(2, include_bias=False)
    indicators = OneHotEncoder(sparse_output=False)
    of_one_length = np.floor(8 * np.abs(iris_X[:, :3]))
    of_one_length = np.column_stack([of_one_length, 60 - of_one_length.sum(axis=1)])
    bits = (cancer_codes > 0).astype(float)
    tree = KDependenceBayes(structure=[[], [0], [1]], prior_strength=1.0)
    blocks = [("shape", QDA(), [0, 1]), ("rest", GaussianNB(), [2, 3])]

    def families_of(codes):
        """Indicators of the cells of the families of the tree."""
        a, b, c = codes[:, :3].T
        return indicators.fit_transform(np.column_stack([a, 4 * a + b, 4 * b + c]))

    def of_blocks(X):
        return np.hstack([quadratic.fit_transform(X[:, :2]), X[:, 2:], X[:, 2:] ** 2])

    values, posteriors, sums = [], [], []
    rng = np.random.default_rng(2)
    for model, X, labels, features in (
        (QDA(), iris_X, iris_y, quadratic.fit_transform),
        (QDA(), iris_X[50:], iris_y[50:] - 1, quadratic.fit_transform),
        (GaussianNB(), iris_X, iris_y, lambda X: np.hstack([X, X**2])),
        (LDA(), iris_X, iris_y, np.asarray),
        (CategoricalNB(), wine_codes, wine_y, indicators.fit_transform),
        (MultinomialNB(), of_one_length, iris_y, np.asarray),
        (CategoricalNB(), cancer_codes, cancer_y, indicators.fit_transform),
        (BernoulliNB(), bits, cancer_y, np.asarray),
        (tree, cancer_codes[:, :3], cancer_y, families_of),
        (ProductModel(blocks), iris_X, iris_y, of_blocks),
    ):
        Z, penalty = features(X), 0.5
        ours = ConditionalLikelihood(model, l2=penalty).fit(X, labels)
        theirs = LogisticRegression(C=1 / penalty, solver="newton-cg", tol=1e-10, max_iter=1000).fit(
            Z, labels
        )
        log_P = theirs.predict_log_proba(Z)
        loss = -log_P[np.arange(len(Z)), labels].mean()
        norm = np.sum(theirs.coef_**2)
        values.append(ours.objective_ - loss - penalty * norm / (2 * len(Z)))
        posteriors.append(ours.predict_proba(X) - np.exp(log_P))
        if len(theirs.coef_) > 1:
            sums.extend(theirs.coef_.sum(axis=0))
    derivatives = []
    for labels, r in ((iris_y, 3), (iris_y % 2, 2)):
        objective, B = problem_of(QDA(), iris_X[:, :2], labels, penalty=0.5)
        B = 0.3 * B - 0.3 * B.mean(axis=0)  # for r > 2 slopes sum to zero
        phi, n = objective.features.dense(slice(None)), len(labels)
        P = np.exp(B @ phi - np.logaddexp.reduce(B @ phi, axis=0))
        slopes = B[:, 1:] if r > 2 else B[:, 1:] - B[::-1, 1:]
        pull = np.column_stack([np.zeros(r), slopes * 0.5 / n])
        g = (P - np.eye(r)[:, labels]) @ phi.T / n + pull
        ways = np.eye(B.size).reshape(-1, *B.shape)
        ways = ways - ways.mean(axis=1, keepdims=True)  # each entry, off the trivial directions
        H, flat = hessian(objective, B), ways.reshape(len(ways), -1)
        stiff = 0.5 / n * (1 if r > 2 else 2) * np.einsum("vrk,wrk->vw", ways[:, :, 1:], ways[:, :, 1:])
        ends = [[objective(B + t * V) for V in ways] for t in (1e-4, -1e-4)]
        slope = [(up.value - down.value) / 2e-4 for up, down in zip(*ends)]
        change = np.array([np.ravel(up.gradient - down.gradient) / 2e-4 for up, down in zip(*ends)])
        derivatives += [*(slope - flat @ g.ravel()), *np.ravel(change @ flat.T - flat @ H @ flat.T - stiff)]
    draws = rng.dirichlet(np.ones(2), (2, 10_000))  # of two words, or states
    slopes = np.log(draws[0] / draws[1])
    weights = rng.dirichlet(np.ones(2), 10_000)
    by_missing = weights[:, 0] > weights[:, 1]
    by_states = np.all(weights[:, :1] * draws[0] < weights[:, 1:] * draws[1], 1)
    lengths = 2 * np.arange(10) % 7 + 1.0  # of documents; their log odds rise
    counts = np.column_stack([lengths // 2, lengths - lengths // 2])
    refused = []
    for model, X in ((MultinomialNB(), counts), (CategoricalNB(), np.where(counts > 2, np.nan, counts > 1))):
        try:
            ConditionalLikelihood(model).fit(X, np.arange(10) % 2)
        except ValueError:
            refused.append(model)
    return (
        iris_X,
        iris_y,
        cancer_X,
        cancer_y,
        wine_y,
        problem_of,
        wine_codes,
        values,
        posteriors,
        sums,
        derivatives,
        slopes,
        by_missing,
        by_states,
        refused,
    )


def basis(name: str, objective: LogisticObjective, B: Array) -> Array:
    """S of beta = Sz, for features of unit second moments or in units entry by entry."""
    if name != "whitened":
        return np.diag(units(name, objective, B).ravel())
    phi = objective.features.dense(slice(None))
    G = phi @ phi.T / phi.shape[1]
    scale = np.sqrt(np.maximum(G.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(G / scale / scale[:, None])  # of features of one size, whatever their units
    seen = values > 1e-13 * B.shape[1]
    return np.kron(np.eye(len(B)), vectors[:, seen] / np.sqrt(values[seen]) / scale[:, None])


def newton_systems(
    iris_X: Array, iris_y: Array, wine_codes: Array, wine_y: Array, problem_of: Callable[..., Any]
) -> tuple[tuple[str, str, str, str], np.random.Generator, list[Array], list[float], list[Array]]:
    """Newton and gradient steps in several systems of coordinates."""
    systems = ("natural", "closed_form", "curvature", "whitened")
    rng = np.random.default_rng(1)
    steps, lengths, moves = [], [], []
    for model, X, labels, names in (
        (QDA(), iris_X[:, :2], iris_y, systems),
        # the indicators of all states are dependent: they cannot be white
        (CategoricalNB(prior_strength=1.0), wine_codes[:, :4], wine_y, systems[:3]),
    ):
        objective, start = problem_of(model, X, labels)
        B = 0.3 * start
        free = slice(B.shape[1], None)  # the first class stands still
        g = objective(B).gradient.ravel()
        H = hessian(objective, B)
        ridge = 1e-3 * np.eye(len(H) - B.shape[1])  # some features are dependent
        newton = np.linalg.solve(H[free, free] + ridge, g[free])
        for name in names:
            S = basis(name, objective, start)
            T = S[free, free]
            step = np.linalg.solve(T.T @ (H[free, free] + ridge) @ T, T.T @ g[free])
            steps.append((T @ step - newton) / np.abs(newton).max())
            lengths.append(step @ (T.T @ g[free]) / (newton @ g[free]) - 1)
            ways = [1e-3 / np.abs(way).max() * way.reshape(B.shape) for way in S.T]
            ahead = np.array([[objective(B + t * way).value for t in (-2, -1, 1, 2)] for way in ways])
            slope = ahead @ [1, -8, 8, -1] / 12e-3 * np.abs(S).max(axis=0)
            moves.append((S @ slope - S @ S.T @ g) / np.abs(S @ slope).max())
    return systems, rng, steps, lengths, moves


def whitened_curvature(
    rng: np.random.Generator,
) -> tuple[list[float], list[float], list[float], list[float], list[float], list[float], list[float]]:
    """Eigenvalues of whitened and natural curvature over their bounds."""
    lowest, highest, better = [], [], []
    natural, natural_top = [], []
    for trial in range(20):
        n, p, r = 200, 6, 2 + trial % 3
        mixing = rng.normal(size=(p - 1, p - 1)) * 10.0 ** rng.uniform(-2, 2, p - 1)
        phi = np.vstack([np.ones(n), mixing.T @ rng.normal(size=(p - 1, n))])
        R = np.linalg.cholesky(phi @ phi.T / n)
        white = np.linalg.solve(R, phi)
        z = rng.normal(size=(r, p))
        P = np.exp(z @ white - np.logaddexp.reduce(z @ white, axis=0))
        apart = np.kron(np.linalg.svd(np.eye(r) - 1 / r)[0][:, : r - 1], np.eye(p))

        def eigenvalues(phi, P=P, n=n, apart=apart):
            H = sum(np.kron(np.diag(q) - np.outer(q, q), np.outer(f, f)) for q, f in zip(P.T, phi.T)) / n
            return np.linalg.eigvalsh(apart.T @ H @ apart)

        values = eigenvalues(white)
        lowest.append(values[0] / P.min())
        highest.append(values[-1] / 0.5)
        plain = eigenvalues(phi)
        spread = np.linalg.eigvalsh(phi @ phi.T / n)
        natural.append(plain[0] / (P.min() * spread[0]))
        natural_top.append(plain[-1] / (0.5 * spread[-1]))
        better.append((plain[-1] / plain[0]) / (values[-1] / values[0]))
    tight, tight_natural = [], []  # the same posteriors for every row, which reach both bounds
    for q, place, bound in (([0.05, 0.05, 0.9], 0, 0.05), ([0.5, 0.5], -1, 0.5)):
        same = np.tile(np.array(q)[:, None], n)
        directions = np.linalg.svd(np.eye(len(q)) - 1 / len(q))[0][:, :-1]
        found = eigenvalues(white, same, n, np.kron(directions, np.eye(p)))
        tight.append(found[place] - bound)
        found = eigenvalues(phi, same, n, np.kron(directions, np.eye(p)))
        tight_natural.append(found[place] / spread[place] / bound - 1)
    return lowest, highest, better, natural, natural_top, tight, tight_natural


def scalings(rng: np.random.Generator) -> tuple[list[float], Array, Array, float]:
    """Condition numbers of scaled matrices over their bounds."""
    over = []
    for _ in range(300):
        rho, n = rng.uniform(-0.99, 0.99), 4
        A = rng.normal(size=(n, 3 * n))
        A[1] = rho * A[0] + np.sqrt(1 - rho**2) * A[1]
        H = A @ A.T
        real = abs(H[0, 1]) / np.sqrt(H[0, 0] * H[1, 1])
        scale = 10.0 ** rng.uniform(-2, 2, n)
        values = np.linalg.eigvalsh(scale[:, None] * H * scale)
        over.append((values[-1] / values[0]) / ((1 + real) / (1 - real)))
    rho = rng.uniform(-0.99, 0.99, 20)
    alone = [np.linalg.cond([[1, r], [r, 1]]) for r in rho]  # a = b: scaled best
    reached = alone / ((1 + abs(rho)) / (1 - abs(rho))) - 1
    F = np.array([[1, 0.01], [1, -0.01], [0, 1]])  # the third row is dependent
    block = np.linalg.cond(F[:2] @ F[:2].T)
    return over, reached, F, block


def systems_compared(
    cancer_X: Array, cancer_y: Array, problem_of: Callable[..., Any], systems: tuple[str, str, str, str]
) -> tuple[dict[str, tuple], pd.DataFrame, pd.DataFrame, dict[str, Callable[..., Any]]]:
    """Condition numbers and iterations of L-BFGS by set and system."""
    heavy = np.random.default_rng(5)
    heavy_y = np.arange(240) % 3
    heavy_X = heavy.standard_t(4, size=(240, 3)) * (1 + 0.4 * heavy_y[:, None])
    heavy_X = StandardScaler().fit_transform(heavy_X + 0.8 * heavy_y[:, None])
    units = heavy_X * [1.0, 10.0, 100.0]
    tumours = StandardScaler().fit_transform(cancer_X[:, [1, 4, 8]])
    many_y = np.arange(3000) % 3
    shift = 0.5 * (many_y[:, None] - 1)
    common = heavy.normal(size=(3000, 1))
    alike = np.digitize(common + shift + 0.7 * heavy.normal(size=(3000, 6)), [-1, 0, 1]).astype(float)
    apart = np.digitize(shift + heavy.normal(size=(3000, 6)), [-1, 0, 1]).astype(float)
    rare = np.minimum(heavy.geometric(0.5 + 0.1 * (many_y[:, None] - 1), size=(3000, 6)) - 1, 6).astype(float)
    cases = {
        "heavy tails, QDA": (QDA(), heavy_X, heavy_y),
        "the same in other units": (QDA(), units, heavy_y),
        "tumours, QDA": (QDA(), tumours, cancer_y),
        "heavy tails, Gaussian NB": (GaussianNB(), heavy_X, heavy_y),
        "independent states, NB": (CategoricalNB(), apart, many_y),
        "states alike, NB": (CategoricalNB(), alike, many_y),
        "rare states, NB": (CategoricalNB(), rare, many_y),
    }
    rows = []
    for title, (model, X, labels) in cases.items():
        objective, start = problem_of(model, X, labels)
        best = ConditionalLikelihood(model, tol=1e-9).fit(X, labels)
        fitted = best.estimator_
        B = objective.features.coefficients(fitted.family_.natural_parameters(fitted.parameters_))
        H = hessian(objective, B)
        phi = objective.features.dense(slice(None))
        size = np.sqrt((phi**2).mean(axis=1, keepdims=True))
        rank = (len(B) - 1) * np.linalg.matrix_rank(phi / size)
        for name in systems:
            S = basis(name, objective, start)
            values = np.linalg.eigvalsh(S.T @ H @ S)[::-1][:rank]
            with warnings.catch_warnings(record=True):  # of those that never end
                fit = ConditionalLikelihood(model, coordinates=name, solver="lbfgs", max_iter=LIMIT).fit(
                    X, labels
                )
            within = fit.history_.log_loss / best.objective_ - 1 <= 1e-6
            rows.append(
                {
                    "set": title,
                    "coordinates": name,
                    "condition": values[0] / values[-1],
                    "iterations": within.argmax() if within.any() else np.inf,
                }
            )
    table = pd.DataFrame(rows)
    wide = table.pivot(index="set", columns="coordinates", values=["condition", "iterations"])[
        [(v, s) for v in ("condition", "iterations") for s in systems]
    ]
    forms = {
        "condition": "{:#.3g}".format,
        "iterations": "{:.0f}".format,
    }
    return cases, table, wide, forms


def curvature_of_samples(
    problem_of: Callable[..., Any],
) -> tuple[list[float], list[float], Array, np.random.Generator, Array, Array, Array]:
    """Condition numbers and steps with the curvature of samples."""
    kappa, left, bounds = [], [], []
    sample_rng = np.random.default_rng(3)
    n, r = 20000, 3
    big_y = np.arange(n) % r
    big_X = sample_rng.normal(size=(n, 4)) * (1 + 0.3 * big_y[:, None]) + 0.5 * (big_y[:, None] - 1)
    objective, start = problem_of(QDA(), big_X, big_y)
    B = start - start[:1]
    V = B[1:]
    phi = objective.features.dense(slice(None))

    def reduced_hessian(index, weight):
        """Hessian of classes 2 and 3 from some rows, which count by a weight."""
        S = B @ phi[:, index]
        P = np.exp(S - np.logaddexp.reduce(S, axis=0))
        k, p = V.shape
        H = np.empty((k, p, k, p))
        for a in range(k):
            for b in range(k):
                w = P[a + 1] * ((a == b) - P[b + 1]) * weight / weight.sum()
                H[a, :, b] = (phi[:, index] * w) @ phi[:, index].T
        return H.reshape(k * p, k * p)

    def by_differences(M, step=1e-3):
        """Hessian in coordinates z with V = Mz, from differences of the gradient."""
        columns = []
        for direction in M.T:
            shift = step * np.vstack([0 * V[:1], direction.reshape(V.shape)])
            ends = [objective(B + sign * shift).gradient[1:].ravel() for sign in (1, -1)]
            columns.append(M.T @ (ends[0] - ends[1]) / (2 * step))
        return np.array(columns)

    H = reduced_hessian(np.arange(n), np.ones(n))
    for size in (10, 20, 50, 100):
        index, weight = stratified(objective, size * len(H))
        sampled = reduced_hessian(index, weight)
        R = np.linalg.cholesky(sampled)
        values = np.linalg.eigvalsh(by_differences(np.linalg.solve(R.T, np.eye(len(R)))))
        epsilon = np.abs(eigh(sampled, H, eigvals_only=True) - 1).max()
        e = sample_rng.normal(size=(len(H), 200))
        after = e - np.linalg.solve(sampled, H @ e)
        energy = [np.einsum("ij,ij->j", v, H @ v) for v in (after, e)]
        kappa.append(values[-1] / values[0])
        left.append(np.max(energy[0] / energy[1]))
        bounds.append(epsilon)
    bounds = np.array(bounds)
    return kappa, left, bounds, sample_rng, big_y, big_X, H


def attained_by_samples(H: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Condition number and what a step leaves, over their bounds, where all errors of the curvature are ± ε."""
    over = []
    for epsilon in (0.1, 0.5, 0.9):
        values, vectors = np.linalg.eigh(H)
        root = vectors * np.sqrt(values)
        error = np.where(np.arange(len(H)) % 2, epsilon, -epsilon)
        near = root * (1 + error) @ root.T
        relative = eigh(H, near, eigvals_only=True)
        e = np.linalg.solve(root.T, np.where(error < 0, rng.normal(size=len(H)), 0))  # where H is underrated
        after = e - np.linalg.solve(near, H @ e)
        kappa, left = (1 + epsilon) / (1 - epsilon), (epsilon / (1 - epsilon)) ** 2
        over.append((relative[-1] / relative[0] / kappa, (after @ H @ after) / (e @ H @ e) / left))
    return tuple(np.transpose(over))


def sample_of_a_third(
    problem_of: Callable[..., Any], big_X: Array, big_y: Array, sample_rng: np.random.Generator
) -> tuple[list[float], list[float], list[float]]:
    """Eigenvalues of the curvature of samples relative to all rows."""
    lowest, changed = [], []
    for trial in range(20):
        objective, start = problem_of(QDA(), big_X[trial::40], big_y[trial::40])
        objective = LogisticObjective(objective.features, objective.y, 3, free=2)
        V = 3 * sample_rng.normal(size=(2, start.shape[1]))
        H, rough = (objective.curvature(V, negligible=share) for share in (0.0, 0.1))
        R = np.linalg.cholesky(H)
        values = np.linalg.eigvalsh(np.linalg.solve(R, np.linalg.solve(R, rough).T))
        lowest.append(values[0])
        changed.append(np.abs(rough - H).max() / np.abs(H).max())
    short = []  # all rows, and those that doubt most, are left out: hard cases
    for r in (2, 3):
        features = sample_rng.normal(size=(200, 3))
        P = sample_rng.dirichlet(np.ones(r), 200)
        whole, rough = np.zeros((2, r, 3, r, 3))
        for a, b in zip(*np.triu_indices(r, 1)):
            weight = P[:, a] * P[:, b]
            heavy_rows = weight >= np.quantile(weight, 0.7 if r == 3 else 0.0)
            G, kept = (features.T @ (features * w[:, None]) for w in (weight, weight * ~heavy_rows))
            for H, block in ((whole, G), (rough, kept)):
                H[a, :, b] = H[b, :, a] = -block
                H[a, :, a] += G
                H[b, :, b] += G
        short.append(np.linalg.eigvalsh((rough - 0.5 * whole).reshape(3 * r, -1))[0])
    return lowest, changed, short


def optima_by_steps(
    cases: Mapping[str, Any], iris_X: Array, iris_y: Array, problem_of: Callable[..., Any]
) -> tuple[list[float], list[Array], list[float], list[float]]:
    """Optima of Newton's steps beside those of L-BFGS."""
    ends, apart, lengths, counts = [], [], [], []
    for title in ("heavy tails, QDA", "tumours, QDA", "alike", "few rows"):
        if title in cases:
            model, X, labels = cases[title]
        elif title == "alike":
            model, X, labels = cases["states alike, NB"]
        else:  # from a start that is sure of all rows
            model, X, labels = GaussianNB(), 3 * iris_X, iris_y
        settings = {"l2": 0.1, "tol": 1e-8}
        fit = ConditionalLikelihood(model, **settings).fit(X, labels)
        slow = ConditionalLikelihood(model, solver="lbfgs", max_iter=5000, **settings).fit(X, labels)
        ends.append(fit.objective_ / slow.objective_ - 1)
        apart.append(fit.predict_proba(X) - slow.predict_proba(X))
        objective, _ = problem_of(model, X, labels, penalty=0.1)
        fitted = fit.estimator_
        B = objective.features.coefficients(fitted.family_.natural_parameters(fitted.parameters_))
        lengths.append(np.abs(objective(B).gradient).max())
        counts.append(fit.n_iter_ / slow.n_iter_)
    return ends, apart, lengths, counts


def streams_of_rows() -> tuple[int, int, Callable[..., Any], Array, Array, Array, Array, Array, Array, int]:
    """What iterates of streams lack of the optimum, beside both bounds: by divergences, and by G² and c."""
    stream_rng = np.random.default_rng(9)
    r, b, m0, T, runs = 3, 0.5, 50, 2000, 15
    q = stream_rng.dirichlet(np.full(4 * r, 2.0)).reshape(2, 2, r)  # of x1, x2, y
    ones = np.indices((2, 2)).reshape(2, 4)  # of the features in the four cells

    def table_of(mu):
        """p(x, y) of the four cells of x, from p(y) and p(x_j = 1, y); of one model or a stack."""
        prior, joint = mu[..., :1, :], mu[..., 1:, :]
        theta = (joint / prior)[..., None, :]
        each = np.where(ones[:, :, None] == 1, theta, 1 - theta)
        return prior * each.prod(axis=-3)

    def statistics(weights):
        """Counts of the classes and of ones, for weights of cells and classes."""
        return np.concatenate([weights.sum(axis=-2, keepdims=True), ones @ weights], axis=-2)

    def value(mu):
        p = table_of(mu)
        log_P = np.log(p / p.sum(axis=-1, keepdims=True))
        return np.sum(cells_q * (log_P + b * np.log(p)), axis=(-2, -1))

    def divergence(mu_to, mu_from):
        """D of the natural parameters at mu_to and mu_from."""
        p, p_to = table_of(mu_from), table_of(mu_to)
        return np.sum(p * np.log(p / p_to), axis=(-2, -1))

    cells_q = q.reshape(4, r)
    best = closed = statistics(cells_q)
    for _ in range(1000):  # mirror ascent on f itself
        p = table_of(best)
        P = p / p.sum(axis=1, keepdims=True)
        wrong = cells_q - cells_q.sum(axis=1, keepdims=True) * P
        best = best + 0.3 * (statistics(wrong) + b * (closed - best))
    drawn = np.array([stream_rng.choice(4 * r, p=q.ravel(), size=m0 + T) for _ in range(runs)])
    one_hot = np.eye(4 * r).reshape(-1, 4, r)
    mu = statistics((one_hot[drawn[:, :m0]].sum(axis=1) + 0.5) / (m0 + 2 * r))
    began, visited = divergence(best, mu).mean(), []
    lack, moves, squares = np.zeros(T), np.zeros(T), np.zeros(T)
    for t, cell in enumerate(drawn[:, m0:].T, 1):  # all streams at once
        Y, p = one_hot[cell], table_of(mu)
        P = Y.sum(axis=2, keepdims=True) * p / p.sum(axis=2, keepdims=True)
        g = statistics(Y - P) + b * (statistics(Y) - mu)
        new = mu + g / (b * (m0 + t))
        lack[t - 1] = (value(best) - value(mu)).mean()
        moves[t - 1] = divergence(mu, new).mean()
        squares[t - 1] = np.sum(g**2, axis=(1, 2)).mean()
        visited.append(mu)
        mu = new
    slope = best + 1e-4 * stream_rng.normal(size=best.shape)
    weighted = np.cumsum((m0 + np.arange(1, T + 1)) * moves)
    bound = b * (m0 * began + weighted)
    # c: the least curvature of ψ, the covariance of the statistics, at the models of all streams
    s = statistics(one_hot).reshape(4 * r, -1)
    models = np.swapaxes(visited, 0, 1).reshape(-1, 1 + len(ones), r)[::7]
    p = table_of(models).reshape(-1, 4 * r)
    p = p[np.all(p > 0, axis=1)]  # valid, as is supposed
    mean = p @ s
    c = np.linalg.eigvalsh((s.T * p[:, None]) @ s - mean[:, :, None] * mean[:, None])[:, 1].min()
    by_constants = squares.max() / (2 * c * b**2) * np.log1p(np.arange(1, T + 1) / m0)
    tenth = T // 10
    return T, runs, value, best, lack, slope, bound, weighted, by_constants, tenth


def attained_by_streams(T: int = 20_000, m0: int = 50) -> float:
    """Mean shortfall over its bound of a stream of one class, whose rows all are the mean of two bits: the labels teach
    nothing, the gradient is exact, and what the bound gives away is D(η*, η_T+1) alone."""
    best, mu, b = np.array([0.3, 0.6]), np.array([0.7, 0.2]), 0.5

    def divergence(to, start):
        """D of the natural parameters at two means: KL of the models, the other way round."""
        return np.sum(start * np.log(start / to) + (1 - start) * np.log((1 - start) / (1 - to)))

    lack, bound = 0.0, m0 * divergence(best, mu)
    for t in range(1, T + 1):
        lack += b * divergence(mu, best)
        new = mu + (best - mu) / (m0 + t)
        bound += (m0 + t) * divergence(mu, new)
        mu = new
    return lack / (b * bound)


def coordinates_on_the_clouds() -> pd.DataFrame:
    """Iterations from the closed form on the clouds, by system and unit."""
    cloud_X, cloud_y = clouds(300, np.random.default_rng(40))
    ways = {
        name: {"coordinates": name, "solver": "lbfgs", "max_iter": 2000}
        for name in ("natural", "closed_form", "curvature", "whitened")
    }
    ways["newton"] = {}
    counts = {}
    for title, scale in (("as they are", 1.0), ("in another unit", 100.0)):
        with warnings.catch_warnings(record=True):  # of those that never end
            fits = {
                name: ConditionalLikelihood(GaussianNB(), **way).fit(cloud_X * [1.0, scale], cloud_y)
                for name, way in ways.items()
            }
        least = min(fit.history_.log_loss.min() for fit in fits.values())
        within = {name: fit.history_.log_loss / least - 1 <= 1e-6 for name, fit in fits.items()}
        counts[title] = {
            name: f"{reached.argmax()}" if reached.any() else "never" for name, reached in within.items()
        }
    return pd.DataFrame(counts).rename_axis("coordinates, or solver")
