"""What the checks of the chapter *Preconditioned logistic regression* try: rows, derivatives, descents and streams."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from rcbook.experiments.studies.figures_of_wanbia2014 import curvature_scale, whitened
from rcbook.simulation import clouds
from rcbook.streams import Counts, Steps, stochastic_pass
from rcbook.weighted_naive_bayes import maximise_weighted, with_intercept
from rcpkg import WANBIAC, CategoricalNB, MDLDiscretizer
from rcpkg.base import Array


def binned(load: Callable[..., Any]) -> tuple[CategoricalNB, Array, Array, Any]:
    """A bundled set, cut by description length: naive Bayes fitted to it, codes, labels, indicators."""
    X, y = load(return_X_y=True)
    codes = MDLDiscretizer().fit(X, y).transform(X)
    codes = codes[:, codes.max(axis=0) > 0]
    nb = CategoricalNB(prior_strength=1.0).fit(codes, y)
    return nb, codes, y, with_intercept(nb.family_.encode(codes))


def drawn(
    seed: int, n: int = 400, n_states: tuple[int, int, int] = (2, 3, 5), r: int = 3
) -> tuple[CategoricalNB, Array, Array, Any]:
    """Categories that depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(r, size=n)
    hidden = rng.normal(size=(n, 1)) + 0.5 * y[:, None]
    noisy = hidden + rng.normal(size=(n, len(n_states)))
    codes = [np.digitize(c, np.quantile(c, np.arange(1, k) / k)) for c, k in zip(noisy.T, n_states)]
    codes = np.column_stack(codes).astype(float)
    nb = CategoricalNB(prior_strength=1.0).fit(codes, y)
    return nb, codes, y, with_intercept(nb.family_.encode(codes))


def closed_form(nb: CategoricalNB) -> Array:
    """The matrix of log π and log θ, shape (1 + K, r)."""
    return np.vstack([nb.parameters_.log_prior, nb.parameters_.log_prob.T])


def posterior(Z: Any, beta: Array) -> Array:
    """Posteriors of indicators ``Z`` under weights ``beta``."""
    scores = Z @ beta
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def cll(Z: Any, y: Array, beta: Array) -> float:
    """Conditional log-likelihood of labels ``y``."""
    return np.log(posterior(Z, beta)[np.arange(len(y)), y]).sum()


def hessian(Z: Any, beta: Array) -> Array:
    """−∇²CLL as a matrix, the classes of a coefficient side by side."""
    P = posterior(Z, beta)
    Z = Z.toarray()
    S = np.einsum("iy,yx->iyx", P, np.eye(P.shape[1]))
    S -= np.einsum("iy,ix->iyx", P, P)
    H = np.einsum("ik,il,iyx->kylx", Z, Z, S, optimize=True)
    return H.reshape(2 * (beta.size,))


def effective_condition(H: Array) -> float:
    """Largest over least non-zero eigenvalue."""
    values = np.linalg.eigvalsh(H)
    return values[-1] / values[values > 1e-9 * values[-1]][0]


def four_sets() -> tuple[dict[str, tuple[CategoricalNB, Array, Array, Any]], pd.DataFrame]:
    """Three bundled sets, cut by description length, and one that is drawn; and their sizes."""
    sets = {
        "iris": binned(load_iris),
        "wine": binned(load_wine),
        "breast_cancer": binned(load_breast_cancer),
        "drawn": drawn(0),
    }
    view = pd.DataFrame(
        {name: [len(y), codes.shape[1], Z.shape[1], len(nb.classes_)] for name, (nb, codes, y, Z) in sets.items()},
        index=["rows", "features", "columns", "classes"],
    ).T
    return sets, view


def sparse_rows(
    missing: float, seed: int = 0, n: int = 600, d: int = 6, eps: float = 0.02
) -> tuple[CategoricalNB, Array, Array, Any]:
    """Binary features that are nearly always 0; all but one say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    codes = (rng.uniform(size=(n, d)) < eps).astype(float)
    codes[:, 0] = rng.uniform(size=n) < 0.3 + 0.4 * y
    codes[rng.uniform(size=codes.shape) < missing] = np.nan
    nb = CategoricalNB(n_states=2, prior_strength=1.0).fit(codes, y)
    return nb, codes, y, with_intercept(nb.family_.encode(codes))


def scales(nb: CategoricalNB, Z: Any, y: Array, C: float = 0.01) -> tuple[dict[str, Array], Array]:
    """Diagonals of the four systems, and the ridge optimum in natural ones."""
    D, Y = closed_form(nb), np.eye(len(nb.classes_))[y]
    ones = np.ones_like(D)
    best = maximise_weighted(Z, Y, ones, penalty=C, center=0.0, tol=1e-9).x
    return {
        "natural": ones,
        "closed form": D,
        "curvature at NB": curvature_scale(Z, D),
        "curvature at start": curvature_scale(Z, 0 * D),
    }, best


def best_diagonal(H: Array) -> float:
    """κ⁺ of the best diagonal found: descent on its logarithm, from that of H."""

    def logarithm(s):
        values, V = np.linalg.eigh(np.exp(s)[:, None] * H * np.exp(s))
        k = np.argmax(values > 1e-9 * values[-1])
        slope = 2 * (V[:, -1] ** 2 - V[:, k] ** 2)
        return np.log(values[-1] / values[k]), slope

    s, few = -0.5 * np.log(np.diag(H)), {"maxiter": 150}
    for _ in range(5):  # a search ends early where eigenvalues cross
        found = minimize(logarithm, s, jac=True, method="L-BFGS-B", options=few)
        s = found.x
    return np.exp(found.fun)


def effective_conditions(sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]]) -> pd.DataFrame:
    """Effective condition numbers of the Hessian at the ridge optimum, in each system of coordinates, by set."""
    rows_of_table = {}
    for name, (nb, _, y, Z) in (
        sets
        | {
            "near-constant": sparse_rows(0.0),
            "near-constant, missing": sparse_rows(1 / 3),
        }
    ).items():
        diagonals, best = scales(nb, Z, y)
        H = hessian(Z, best)
        conditions = {
            system: effective_condition(np.outer(s, s) * H)
            for system, s in ((k, v.ravel()) for k, v in diagonals.items())
        }
        J = 1 / np.sqrt(np.diag(H))
        conditions["diagonal of H"] = effective_condition(np.outer(J, J) * H)
        A = whitened(Z)[1]
        big = np.kron(A, np.eye(len(nb.classes_)))
        conditions["whitened"] = effective_condition(big.T @ H @ big)
        conditions["best found"] = best_diagonal(H)
        rows_of_table[name] = conditions
    conditions = pd.DataFrame(rows_of_table).T
    over = conditions["diagonal of H"] / conditions["best found"]
    print(f"condition number with the diagonal of H over the best found: {over.min():.1f} to {over.max():.1f}")
    return conditions


def penalties_on_clouds() -> tuple[Array, Array, Array, Array, pd.DataFrame]:
    """Log-loss and error of WANBIA-C on fresh rows of the clouds, by its penalty."""
    draws = np.random.default_rng(40)
    (cloud_X, cloud_y), (fresh_X, fresh_y) = clouds(300, draws), clouds(20_000, draws)
    fifths = np.quantile(cloud_X, [0.2, 0.4, 0.6, 0.8], axis=0).T
    binned, fresh_binned = (
        np.column_stack([np.digitize(x, cuts) for x, cuts in zip(X.T, fifths)]) for X in (cloud_X, fresh_X)
    )
    found = {}
    for penalty in (1000.0, 10.0, 1.0, 0.1, 1e-3, 1e-5):
        weighted = WANBIAC(penalty=penalty).fit(binned, cloud_y)
        P = weighted.predict_proba(fresh_binned)
        found[f"{penalty:g}"] = {
            "log-loss": -np.log(P[np.arange(len(P)), fresh_y]).mean(),
            "error": np.mean(P.argmax(axis=1) != fresh_y),
        }
    of_clouds = pd.DataFrame(found).T.rename_axis("C")
    return cloud_y, fresh_y, binned, fresh_binned, of_clouds


def derivatives_of_the_likelihood(
    sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]],
) -> tuple[list[float], list[float], list[bool], list[bool]]:
    """Slopes and Hessian of the conditional log-likelihood a row less their differences, entry by entry, and flat
    directions."""
    rng = np.random.default_rng(701)
    slopes, curvatures, flat, dimensions, t = [], [], [], [], 1e-4
    _, gaps, labels, _ = sets["drawn"]
    gaps = np.where(rng.uniform(size=gaps.shape) < 0.2, np.nan, gaps)
    nb = CategoricalNB(prior_strength=1.0).fit(gaps, labels)
    with_gaps = nb, gaps, labels, with_intercept(nb.family_.encode(gaps))
    for nb, codes, y, Z in (*sets.values(), with_gaps):
        r, beta = len(nb.classes_), 0.3 * closed_form(nb)
        g = Z.T @ (np.eye(r)[y] - posterior(Z, beta))
        H = hessian(Z, beta)
        for k, e in enumerate(np.eye(beta.size).reshape(-1, *beta.shape)):
            slopes.append(((cll(Z, y, beta + t * e) - cll(Z, y, beta - t * e)) / (2 * t) - g.ravel()[k]) / len(y))
            up, down = (Z.T @ (np.eye(r)[y] - posterior(Z, beta + s * e)) for s in (t, -t))
            curvatures += [*(((up - down).ravel() / (2 * t) + H[k]) / len(y))]
        rank = np.linalg.matrix_rank(H, tol=1e-9 * np.abs(H).max())
        kernel = Z.shape[1] - np.linalg.matrix_rank(Z.toarray())
        dimensions.append(beta.size - rank == Z.shape[1] + (r - 1) * kernel)
        flat.append(kernel >= codes.shape[1])
    return slopes, curvatures, flat, dimensions


def change_of_coordinates(
    sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]],
) -> tuple[list[float], list[float], list[float], list[float], list[float]]:
    """Slopes and Hessian in the weights of WANBIA-C a row less their differences, entry by entry; and posteriors,
    against products of powers."""
    rng = np.random.default_rng(702)
    chain, bends, joint, naive, uniform = [], [], [], [], []
    for nb, codes, y, Z in sets.values():
        D, r, t = closed_form(nb), len(nb.classes_), 1e-5
        w = 0.3 * rng.normal(size=D.shape)

        def gradient(w, D=D, Z=Z, y=y):
            return D * (Z.T @ (np.eye(D.shape[1])[y] - posterior(Z, w * D)))

        g, stated = gradient(w), D.ravel()[:, None] * hessian(Z, w * D) * D.ravel()
        for k, e in enumerate(np.eye(D.size).reshape(-1, *D.shape)):
            rise = cll(Z, y, (w + t * e) * D) - cll(Z, y, (w - t * e) * D)
            chain.append((rise / (2 * t) - g.ravel()[k]) / len(y))
            bends += [*(((gradient(w + t * e) - gradient(w - t * e)).ravel() / (2 * t) + stated[k]) / len(y))]
        theta = np.exp(D)
        by_hand = np.array([np.prod(theta[z > 0] ** w[z > 0], axis=0) for z in Z.toarray()[:20]])
        by_hand /= by_hand.sum(axis=1, keepdims=True)
        joint.append(np.abs(by_hand - posterior(Z[:20], w * D)).max())
        naive.append(np.abs(posterior(Z, D) - nb.predict_proba(codes)).max())
        uniform.append(np.abs(posterior(Z, 0 * D) - 1 / r).max())
    return chain, bends, joint, naive, uniform


def bfgs_in_two_coordinates(
    negative_cll: Callable[..., Any], sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]]
) -> tuple[list[float], list[float], list[float]]:
    """Largest gap between steps of BFGS in w and in β with the matrix that belongs to it, without the matrix, and
    between gradient steps in w and in β with the square of the matrix."""

    def bfgs(Z, Y, D, G, steps):
        """Iterates of BFGS from 0, as β, with halved steps from 1; G: inverse Hessian."""
        w, path = np.zeros(D.size), []
        f, g = negative_cll(w, Z, Y, D)
        for _ in range(steps):
            direction, t = -G @ g, 1.0
            while negative_cll(w + t * direction, Z, Y, D)[0] > f + 1e-4 * t * (g @ direction):
                t /= 2
            s, before = t * direction, g
            w = w + s
            f, g = negative_cll(w, Z, Y, D)
            u = g - before
            V = np.eye(D.size) - np.outer(s, u) / (s @ u)
            G = V @ G @ V.T + np.outer(s, s) / (s @ u)
            path.append(w * D.ravel())
        return np.array(path)

    offs, wrong, plain_steps = [], [], []
    for name in ("iris", "drawn"):
        nb, _, y, Z = sets[name]
        D, Y = closed_form(nb), np.eye(len(nb.classes_))[y]
        ones, unit = np.ones_like(D), np.eye(D.size) / len(y)
        by_weights = bfgs(Z, Y, D, unit, 8)
        by_matrix = bfgs(Z, Y, ones, np.diag(D.ravel() ** 2) / len(y), 8)
        plain = bfgs(Z, Y, ones, unit, 8)
        size = np.abs(by_weights).max()
        offs.append(np.abs(by_weights - by_matrix).max() / size)
        wrong.append(np.abs(by_weights - plain).max() / size)
        w, d = np.ones(D.size), D.ravel()
        in_w = (w - 0.1 * negative_cll(w, Z, Y, D)[1]) * d
        in_beta = w * d - 0.1 * d**2 * negative_cll(w * d, Z, Y, ones)[1]
        plain_steps.append(np.abs(in_w - in_beta).max() / np.abs(in_w - w * d).max())
    return offs, wrong, plain_steps


def diagonals_of_matrices() -> tuple[list[bool], int, float, float]:
    """Whether the diagonal of a matrix is within its bound of other diagonals, and a case that comes near it."""
    rng = np.random.default_rng(707)
    within = []
    for p, rank in ((6, 6), (8, 5), (12, 3)) * 10:
        F = rng.normal(size=(p, rank)) * np.exp(2 * rng.normal(size=(p, 1)))
        H = F @ F.T
        J = 1 / np.sqrt(np.diag(H))
        own = effective_condition(np.outer(J, J) * H)
        for s in (np.ones(p), *np.exp(2 * rng.normal(size=(5, p)))):
            other = effective_condition(np.outer(s, s) * H)
            within.append(own <= p * other * (1 + 1e-6))
    # a hard case: two features nearly the same, and ten others like them
    p, units = 12, np.r_[1.0, 1.0, 1e3 * np.ones(10)]
    F = np.hstack([np.ones((p, 1)), np.diag(np.r_[0, 1e-3, 0.1 * np.ones(10)])])
    F *= units[:, None] / np.linalg.norm(F, axis=1, keepdims=True)
    H, s = F @ F.T, np.r_[1.0, 1.0, 0.03 * np.ones(10)] / units
    J = 1 / np.sqrt(np.diag(H))
    own, other = (effective_condition(np.outer(a, a) * H) for a in (J, s))
    within.append(own <= p * other)
    return within, p, own, other


def curvatures_at_the_closed_form() -> tuple[list[Array], list[bool], Any]:
    """Gradients and curvatures at naive Bayes of one feature, over what is stated, and the spread of the factor."""
    rng = np.random.default_rng(703)
    natural, scaled, gradients, factors = [], [], [], []
    for _ in range(20):
        counts = rng.integers(1, 60, size=(3, 5))  # a row a class
        y, x = (np.repeat(a.ravel(), counts.ravel()) for a in np.indices((3, 5)))
        Z = with_intercept(CategoricalNB().fit(x[:, None], y).family_.encode(x[:, None].astype(float)))
        pi, theta = counts.sum(axis=1), counts / counts.sum(axis=1, keepdims=True)
        D = np.vstack([np.log(pi / pi.sum()), np.log(theta).T])
        H = np.diag(hessian(Z, D)).reshape(D.shape)[1:]
        rest = pi * (1 - counts / counts.sum(axis=0)).T
        natural.append(H / (rest * theta.T) - 1)
        g = theta * np.log(theta) ** 2
        scaled.append(H * D[1:] ** 2 / (rest * g.T) - 1)
        gradients.append(Z.T @ (np.eye(3)[y] - posterior(Z, D)))
        ends = g.ravel()[[theta.argmin(), theta.argmax()]]
        factors.append(g.max() / g.min() <= 4 * np.exp(-2) / ends.min() * (1 + 1e-12))
    both = (np.concatenate(part, axis=None) for part in (natural, scaled))
    return gradients, factors, both


def near_constant_features() -> tuple[list[Array], list[Array]]:
    """Quotients on the diagonal of the Hessian for a nearly constant feature, over what is stated."""
    ratios, beyond = [], []
    for few in (1, 4, 20, 100, 400, 490):  # of a thousand rows of class 1
        eps, counts = (
            few / 1000,
            np.array([[few, 1000 - few], [3 * few, 3000 - 3 * few]]),
        )
        y, x = (np.repeat(a.ravel(), counts.ravel()) for a in np.indices((2, 2)))
        nb = CategoricalNB().fit(x[:, None], y)
        Z, D = with_intercept(nb.family_.encode(x[:, None].astype(float))), closed_form(nb)
        H = np.diag(hessian(Z, D)).reshape(D.shape)
        plain, scaled = (h[1:].max(axis=0) / h[1:].min(axis=0) for h in (H, H * D**2))
        stated = eps * np.log(eps) ** 2 / ((1 - eps) * np.log(1 - eps) ** 2)
        ratios.append(np.r_[plain / ((1 - eps) / eps), scaled / stated] - 1)
        beyond.append(scaled / plain > max(1, np.log(eps) ** 2))
    return ratios, beyond


def diagonals_of_sets(
    sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]], conditions: pd.DataFrame
) -> tuple[list[float], list[float], Array, list[float]]:
    """Condition number with the diagonal of the Hessian, over the least with others, and as a generalised problem."""
    factor, same = [], []
    rng = np.random.default_rng(704)
    two = np.array([[1.0, 0.6e2], [0.6e2, 1e4]])  # the best diagonal is known
    for name, (nb, _, y, Z) in sets.items():
        diagonals, best = scales(nb, Z, y)
        H = hessian(Z, best)
        own = conditions["diagonal of H"][name]
        values = eigh(H, np.diag(np.diag(H)), eigvals_only=True)
        same.append(own / (values[-1] / values[values > 1e-9 * values[-1]][0]) - 1)
        others = [conditions[k][name] for k in diagonals]
        for _ in range(5):
            s = np.exp(rng.normal(size=len(H)))
            others.append(effective_condition(np.outer(s, s) * H))
        factor.append(own / min(*others, conditions["best found"][name]) / len(H))
    return factor, same, two, others


def limits_of_the_penalty(
    sets: Mapping[str, tuple[CategoricalNB, Array, Array, Any]],
) -> tuple[list[bool], list[float], list[float], list[float], list[float], Array, list[float]]:
    """Maxima of penalised likelihoods: their distance from the centre, their uniqueness and their two ends."""
    bounds, ends, middle, unique, attained = [], [], [], [], []
    for nb, _, y, Z in sets.values():
        D, Y = closed_form(nb), np.eye(len(nb.classes_))[y]
        for c in (0.0, 1.0):
            W = np.full(D.shape, c)
            slope = np.linalg.norm(D * (Z.T @ (Y - posterior(Z, c * D))))
            for C in (0.1, 10.0, 1e5):
                fit = maximise_weighted(Z, Y, D, penalty=C, center=c, tol=1e-10)
                bounds.append(np.linalg.norm(fit.x - W) <= slope / (2 * C) * (1 + 1e-6))
                elsewhere = maximise_weighted(Z, Y, D, penalty=C, center=c, start=W + 1, tol=1e-10)
                unique.append(np.abs(elsewhere.x - fit.x).max())
            far = maximise_weighted(Z, Y, D, penalty=1e9, center=c, tol=1e-12).x
            ends.append(np.abs(posterior(Z, far * D) - posterior(Z, c * D)).max())
            attained.append(np.linalg.norm(far - W) / (slope / 2e9) - 1)
        ridge = maximise_weighted(Z, Y, D, penalty=0.3, center=1.0, tol=1e-10)
        beta = ridge.x * D
        value = cll(Z, y, beta) - 0.3 * np.sum(((beta - D) / D) ** 2)
        middle.append(value + ridge.fun)
    nb, _, y, Z = sets["drawn"]  # not separable
    D, Y = closed_form(nb), np.eye(3)[y]
    best = -maximise_weighted(Z, Y, D, tol=1e-9, max_iter=5000).fun
    falls = [
        best
        - cll(
            Z,
            y,
            D * maximise_weighted(Z, Y, D, penalty=C, tol=1e-10, max_iter=5000).x,
        )
        for C in (1.0, 1e-2, 1e-4)
    ]
    W = np.ones_like(D)  # gradients are orthogonal to flat directions: from W on
    settings = {"center": 1.0, "tol": 1e-10, "max_iter": 5000}
    nearest = maximise_weighted(Z, Y, D, start=W, **settings).x
    aside = maximise_weighted(Z, Y, D, penalty=1e-4, **settings).x - nearest
    return bounds, ends, middle, unique, falls, aside, attained


def updates_of_a_stream(
    y: Array, codes: Array, nb: CategoricalNB, Z: Any
) -> tuple[list[float], Array, list[float], Array, CategoricalNB]:
    """Mean updates of a stream beside gradients at naive Bayes, at its counts and at known probabilities."""
    columns = np.column_stack([np.zeros(len(y), int), codes.astype(int) + nb.family_.families_.starts + 1])
    rng, off = np.random.default_rng(705), []
    W = rng.normal(size=(Z.shape[1], 3))
    for n in (250, 4000):
        counts = Counts.none(nb.n_states_, 3, 1.0)
        for at, label in zip(columns[:n], y):
            counts.add(at, label)
        D_t = counts.log_probabilities(np.arange(len(W)))
        D, Y = closed_form(nb), np.eye(3)[y]
        mean_update = D_t * (Z.T @ (Y - posterior(Z, W * D_t))) / len(y)
        slope = D * (Z.T @ (Y - posterior(Z, W * D))) / len(y)
        off.append(np.abs(mean_update - slope).max())
        if n == 250:  # what the algorithm makes of single rows, and the formula
            sample, moved = slice(1000, 1300), np.zeros_like(W)
            for at, label in zip(columns[sample], y[sample]):
                now, so_far = W.copy(), deepcopy(counts)
                stochastic_pass(at[None], np.array([label]), now, so_far, Steps(1.0, 0.0))
                moved += now - W
            miss = Y[sample] - posterior(Z[sample], W * D_t)
            updates = moved - D_t * (Z[sample].T @ miss)
    known = np.random.default_rng(708)  # a stream whose true Λ is known
    sizes_of = (2, 3, 5)
    truth = [known.dirichlet(5 * np.ones(k), 3) for k in sizes_of]
    cells = np.array(list(np.ndindex(3, *sizes_of)))
    share = np.ones(len(cells)) / 3
    for theta, state in zip(truth, cells.T[1:]):
        share = share * theta[cells[:, 0], state]
    every = nb.family_.encode(cells[:, 1:].astype(float))
    Z_all, Y_all = with_intercept(every), np.eye(3)[cells[:, 0]]
    L = np.log(np.vstack([np.ones((1, 3)) / 3, *(theta.T for theta in truth)]))
    counts, so_far, late = Counts.none(nb.n_states_, 3, 1.0), 0, []
    drawn_cells = cells[known.choice(len(cells), 32_000, p=share)]
    for n in (250, 32_000):
        for label, *state in drawn_cells[so_far:n]:
            counts.add(np.r_[0, np.array(state) + nb.family_.families_.starts + 1], label)
        so_far, D_t = n, counts.log_probabilities(np.arange(len(W)))
        updates_and_gradient = (D * (Z_all.T @ (share[:, None] * (Y_all - posterior(Z_all, W * D)))) for D in (D_t, L))
        late.append(np.abs(np.subtract(*updates_and_gradient)).max())
    still = np.ones(W.shape)
    counts = Counts.none(nb.n_states_, 3, 1.0)
    P = stochastic_pass(columns, y, still, counts, Steps(0.0))
    before = CategoricalNB(n_states=nb.n_states_, prior_strength=1.0)
    before.partial_fit(codes[:999], y[:999], classes=[0, 1, 2])
    return off, updates, late, P, before


def leak_and_ridge() -> tuple[Array, Array, Array, Array, list[float]]:
    """The leak with serial numbers, and condition numbers of two columns with a ridge."""
    # the leak: 90 rows of one class and 10 of the other, a new number each
    serial = np.arange(100.0)[:, None]
    label = (np.arange(100) >= 90).astype(int)
    nb = CategoricalNB(n_states=101, prior_strength=1.0).fit(serial, label)
    new = nb.predict_proba([[100.0]])[0]
    size, weights = np.array([90, 10]), np.array([90.5, 10.5]) / 101
    stated = weights / (size + 1)
    own = nb.predict_proba(serial)[np.arange(100), label]
    # the ridge: the quotient of eigenvalues by the formula, and by its limit
    quotients = []
    for rows, ridge, eps in ((1.0, 1e-5, 0.01), (40.0, 1e-3, 0.02)):
        for u, limit in (
            (1.0, 4 * rows / ridge),
            (np.log(1 - eps), rows / (ridge * eps**2)),
        ):
            H = rows * np.array([[1, u], [u, u**2]])
            H[1, 1] += ridge * u**2
            quotients.append(np.linalg.cond(H) / limit - 1)
    return new, weights, stated, own, quotients
