"""What the checks of the chapter *Local BDA* try: densities, boundaries, updates, leave-one-out and limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import gammaln
from scipy.stats import gamma, invwishart, kstest, multivariate_t
from sklearn.mixture import GaussianMixture

from rcbook.experiments.studies import seeds_of_local_bda as growth
from rcpkg import SVMKNN, BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans
from rcpkg.base import Array
from rcpkg.local import local_bda_log_density, neighborhood_log_density
from rcpkg.local.density import by_updates, log_density_of_gram

SHARES = np.array([0.2, 0.8])  # of the two classes


def variance_and_bias(wide: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Variance and bias of local classifiers by the number of neighbours."""
    bias, variance = wide["bias"], wide["variance"]
    return bias, variance


def local_predictive() -> tuple[np.random.Generator, int, int, float, float, Array, float]:
    """The local predictive density beside draws from the posterior."""
    rng = np.random.default_rng(62)
    k, d = 4, 2
    sample, x = rng.standard_normal((k, d)), np.array([0.7, -1.1])
    D = (sample - sample.mean(0)).T @ (sample - sample.mean(0)) + np.eye(d)
    ours = local_bda_log_density(sample - x)[-1]
    as_t = multivariate_t(sample.mean(0), (k + 1) / (k * (k + 4)) * D, k + 4).logpdf(x)
    # the posterior drawn: Sigma, then mu given Sigma, then the Gaussian density at x
    Sigma = invwishart(k + d + 3, D).rvs(100_000, random_state=rng)
    mu = sample.mean(0) + np.einsum(
        "nij,nj->ni", np.linalg.cholesky(Sigma / k), rng.standard_normal((100_000, d))
    )
    z = np.linalg.solve(np.linalg.cholesky(Sigma), (x - mu)[..., None])[..., 0]
    density = np.exp(-0.5 * (z**2).sum(1)) / (2 * np.pi * np.sqrt(np.linalg.det(Sigma)))
    error = density.std() / np.sqrt(len(density))
    return rng, k, d, ours, as_t, density, error


def local_boundary() -> tuple[
    Array,
    Array,
    LocalBDA,
    Callable[..., Any],
    Array,
    Array,
    Array,
    Array,
    Array,
    list[tuple],
    list[str],
    pd.DataFrame,
    pd.Series,
    Array,
]:
    """Third differences, jumps and decisions of local BDA on cells."""
    rng = np.random.default_rng(63)
    k = 3
    X = np.vstack([rng.normal([-0.6, 0.0], 0.9, (12, 2)), rng.normal([0.6, 0.3], 0.9, (12, 2))])
    y = np.repeat([0, 1], 12)
    toy = LocalBDA(n_neighbors=k).fit(X, y)

    def neighbourhood(points):
        """The cell of each point, as two sorted triples of rows."""
        near = [
            np.sort(np.argsort(((points[:, None] - X[y == h]) ** 2).sum(2), axis=1)[:, :k], axis=1)
            for h in (0, 1)
        ]
        return np.hstack(near)

    def Q(points):
        """Q_0 and Q_1 up to the common constant, from the joint densities."""
        return np.exp(-2 / (k + 2 + 4) * toy.predict_joint_log_proba(points))

    line = np.column_stack([np.linspace(-2, 2, 4001), np.linspace(-1.5, 1.2, 4001)])
    cell = neighbourhood(line)
    stays = np.array([np.all(cell[i : i + 4] == cell[i]) for i in range(len(line) - 3)])
    third = np.abs(np.diff(Q(line), n=3, axis=0)).max(axis=1)
    first = np.abs(np.diff(Q(line), axis=0)).max(axis=1)
    jumps = np.any(cell[1:] != cell[:-1], axis=1)
    # (i) with costs: the decisions are those of the inequality between the Q_h
    points = np.random.default_rng(11).uniform(-2.6, 2.6, (4000, 2))
    q = Q(points)
    rows = []
    for c01, c10 in ((1, 1), (5, 1), (1, 5)):
        costly = LocalBDA(n_neighbors=k, cost=[[0, c01], [c10, 0]]).fit(X, y)
        one = costly.predict(points) == 1
        wrong = [
            int(((q[:, 1] < (c01 / c10) ** power * q[:, 0]) != one).sum())
            for power in (2 / (k + 2 + 4), 2 / k)
        ]
        rows.append((c01, c10, one.sum(), *wrong))
    columns = ["C01", "C10", "points of class 1"]
    columns += ["wrong by 2/(k+d+4)", "wrong by 2/k"]
    by_cost = pd.DataFrame(rows, columns=columns)
    unequal = by_cost["C01"] != by_cost["C10"]
    # (iii) three classes
    X3, y3 = np.vstack([X, rng.normal([0.0, 1.2], 0.9, (12, 2))]), np.repeat([0, 1, 2], 12)
    three = LocalBDA(n_neighbors=k).fit(X3, y3)
    of_three = three.predict(points) == np.exp(-2 / (k + 6) * three.predict_joint_log_proba(points)).argmin(axis=1)
    return X, y, toy, neighbourhood, stays, third, first, jumps, points, rows, columns, by_cost, unequal, of_three


def one_factor(direct: Callable[..., Any]) -> tuple[Callable[..., Any], list[float], int]:
    """Log densities of all k from one factor, beside the printed formula."""

    def by_k_by_k(Z):
        bordered = np.empty((len(Z) + 1, len(Z) + 1))
        bordered[:-1, :-1] = Z @ Z.T
        return log_density_of_gram(bordered, Z.shape[1])

    rng = np.random.default_rng(65)
    worst, tried = [], 0
    for d in (1, 3, 50, 200):
        sample, x = rng.standard_normal((100, d)), rng.standard_normal(d)
        # a duplicate, and a row at the query itself
        sample[7], sample[40] = sample[8], x
        sample = sample[np.argsort(((sample - x) ** 2).sum(1), kind="stable")]
        sizes = range(1, 101) if d < 200 else (1, 2, 10, 50, 100)
        ours = by_k_by_k(sample - x)[np.array(sizes) - 1]
        theirs = np.array([direct(x, sample[:k]) for k in sizes])
        worst.append(np.abs(ours - theirs).max() / np.abs(theirs).max())
        tried += len(sizes)
    return by_k_by_k, worst, tried


class Counted(np.ndarray):
    """A vector that counts the products of its entries, in `products`."""

    products = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(x) for x in inputs]
        options = {k: tuple(np.asarray(x) for x in v) if k == "out" else v for k, v in options.items()}
        result = getattr(ufunc, method)(*plain, **options)
        Counted.products += np.size(result) * (ufunc is np.multiply)
        return np.asarray(result).view(Counted)


def products_of_a_row(d: int) -> int:
    """Products of entries of vectors in one update of the factor of order d and one forward substitution."""
    Counted.products = 0
    L = grown(np.eye(d).view(Counted), 0.5, np.arange(1.0, d + 1).view(Counted))[0]
    t = np.ones(d)
    for j in range(d):
        t[j + 1 :] -= t[j] * L[j + 1 :, j]
    return Counted.products


def grown(D: Array, alpha: float, u: Array) -> tuple[Array, Array]:
    """Factors of D + alpha u u' from those of D, by the proposition."""
    C = np.linalg.cholesky(D)
    L, p, w = C / np.diag(C), np.diag(C) ** 2, u.copy()
    for j in range(len(p)):
        new = p[j] + alpha * w[j] ** 2
        w[j + 1 :] -= w[j] * L[j + 1 :, j]
        L[j + 1 :, j] += alpha * w[j] / new * w[j + 1 :]
        alpha, p[j] = alpha * p[j] / new, new
    return L, p


def updates_of_the_factor(direct: Callable[..., Any]) -> tuple[list[float], list[float], list[Array]]:
    """Scatter, determinants and densities by updates of a factor."""
    rng = np.random.default_rng(66)
    updated, scatter, routes = [], [], []
    for d in (1, 2, 5, 9):
        Z = rng.standard_normal((40, d))
        for k in (1, 2, 3, 20, 39):
            S = [np.cov(Z[:j].T, bias=True).reshape(d, d) * j for j in (k, k + 1)]
            u = Z[k] - Z[:k].mean(axis=0)
            scatter.append(np.abs(S[0] + k / (k + 1) * np.outer(u, u) - S[1]).max())
            L, p = grown(np.eye(d) + S[0], k / (k + 1), u)
            updated.append(np.abs((L * p) @ L.T - np.eye(d) - S[1]).max())
        long = rng.standard_normal((300, d))
        assert by_updates(300, d)
        direct_way = [direct(np.zeros(d), long[:k]) for k in (1, 2, 50, 300)]
        routes.append(local_bda_log_density(long)[[0, 1, 49, 299]] - direct_way)
    return updated, scatter, routes


def left_out_digits(digits_X: Array, digits_y: Array) -> tuple[list[Array], list[Array]]:
    """Errors and log-losses of rows left out in one pass, and by refits."""
    few = slice(0, 45)  # by brute force on a fortieth of the digits
    few_X, few_y = digits_X[few], digits_y[few]
    kept = [np.arange(len(few_y)) != i for i in range(len(few_y))]
    apart = []
    for seed in (1.0, "trace", "neighborhood"):
        options = {"n_neighbors": [3], "scoring": "log_loss"}
        quick = LocalBDA(seed=seed, **options).fit(few_X, few_y)
        proba = np.array(
            [
                LocalBDA(n_neighbors=3, seed=seed).fit(few_X[m], few_y[m]).predict_log_proba(few_X[[i]])[0]
                for i, m in enumerate(kept)
            ]
        )
        anew = (np.mean(proba.argmax(axis=1) != few_y), -proba[np.arange(len(few_y)), few_y].mean())
        apart.append(np.array([quick.cv_errors_[0], quick.cv_log_loss_[0]]) - anew)
    return kept, apart


class Mixture:
    """One Gaussian mixture for each class, equal priors; singular covariances get 1e-6 I, as in the source."""

    def __init__(self, components):
        self.components = components

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.parts = [
            GaussianMixture(self.components, random_state=0, reg_covar=1e-6).fit(X[y == h])
            for h in self.classes_
        ]
        return self

    def predict(self, X):
        return self.classes_[np.argmax([part.score_samples(X) for part in self.parts], axis=0)]


def roughness(region: Array) -> int:
    """Length of the region's border, in cells of the grid."""
    return int((region[1:] != region[:-1]).sum() + (region[:, 1:] != region[:, :-1]).sum())


def areas_and_borders() -> tuple[Array, Array, dict[str, Array], pd.DataFrame]:
    """Shares of the square and lengths of borders of local rules."""
    rng = np.random.default_rng(61)
    t = np.sort(rng.uniform(-1, 1, 18))
    line = np.column_stack([t, 0.6 * t])
    clutter = rng.uniform(-1, 1, (30, 2))
    X61, y61 = np.vstack([line, clutter]), np.repeat([0, 1], [18, 30])
    panels = {
        "k-NN, k = 5": BregmanKNN(n_neighbors=5, smoothing=0.0),
        "k-NN, k = 10": BregmanKNN(n_neighbors=10, smoothing=0.0),
        "local means, k = 5": LocalNearestMeans(n_neighbors=5),
        "pinv, k = 5": LocalLinear(n_neighbors=5),
        "pinv, k = 10": LocalLinear(n_neighbors=10),
        "local BDA, k = 5": LocalBDA(n_neighbors=5),
        "local BDA, trace seed": LocalBDA(n_neighbors=5, seed="trace"),
        "SVM-KNN, k = 5": SVMKNN(n_neighbors=5),
        "SVM-KNN, k = 10": SVMKNN(n_neighbors=10),
        "Gaussian mixture": Mixture(2),
    }
    side = 36
    axis = np.linspace(-1.1, 1.1, side)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    regions = {name: model.fit(X61, y61).predict(grid).reshape(side, side) for name, model in panels.items()}
    view = pd.DataFrame(
        {
            "circle, % of area": {n: round(100 * float((r == 0).mean()), 1) for n, r in regions.items()},
            "border": {n: roughness(r) for n, r in regions.items()},
        }
    )
    return X61, y61, regions, view


def parts_of_the_score(
    waves: Callable[..., Any], scores: Callable[..., Any], bayes: Array
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of local BDA and parts of its score, by the share of flipped labels."""
    rng = np.random.default_rng(64)  # the samples and flipped labels of above
    records = []
    for run in range(8):
        X, y = waves(200, rng)
        order = rng.permutation(200)
        for share in (0.0, 0.1, 0.2, 0.3):
            flipped = y.copy()
            flipped[order[: int(200 * share)]] ^= 1
            for name, score in scores(X, flipped).items():
                wrong = score.argmax(axis=1) != bayes
                records.append((name, share, run, wrong.mean()))
    parts = pd.DataFrame(records, columns=["score", "flipped", "run", "error"])
    ablated = parts.pivot_table(index="score", columns="flipped", values="error", sort=False)
    return parts, ablated


def attained_seed_bound() -> float:
    """The share of the bound that is used where all rows of one class lie in one place, and those of the other at the
    query, in many dimensions."""
    k, d, reach = 30, 2000, 0.01
    Z = np.zeros((2, k, d))
    Z[1, :, 0] = reach
    return abs(np.diff(local_bda_log_density(Z)[:, -1])[0]) / ((2 * k + d + 4) / 2 * reach**2)


def radii(samples: int = 400, n: int = 2000, k: int = 5) -> tuple[list[float], list[float]]:
    """p-values that n π_h f_h ω_d R_h^d is a sum of k standard exponential variables, for two classes of different
    densities in the square; and how far the posteriors are from one half for scaled rows."""
    rng, found = np.random.default_rng(71), [[], []]
    for _ in range(samples):
        of_class = rng.uniform(size=n) < 0.8
        x = rng.uniform(-1, 1, size=(n, 2)) * np.where(of_class, 1.0, 0.5)[:, None]
        squares = np.sum(x**2, axis=1)
        for h, density in ((0, 0.8 / 4), (1, 0.2 / 1)):
            own = np.sort(squares[of_class == (h == 0)])[k - 1]
            found[h].append(n * density * np.pi * own)
    Z = rng.normal(size=(100, 2, k, 2))
    odds = [np.diff(local_bda_log_density(t * Z)[..., -1], axis=1) for t in (1e-1, 1e-3)]
    apart = [np.abs(np.tanh(part / 2)).max() / 2 for part in odds]
    return [kstest(part, gamma(k).cdf).pvalue for part in found], apart


def limits_of_seeds() -> tuple[
    list[bool], list[float], int, Callable[..., Any], dict[str, float], list[float], list[float], list[Array]
]:
    """Bounds, limits and scales of posteriors with a fixed seed."""
    rng = np.random.default_rng(70)
    # 1: the bound, for k rows within R of the query
    within, used = [], []
    for k, d, reach in ((1, 2, 0.4), (5, 1, 0.2), (12, 6, 0.05)):
        Z = rng.uniform(-1, 1, (200, k, d))
        farthest = np.linalg.norm(Z, axis=2).max(axis=1)
        Z *= (reach * rng.uniform(size=200) / farthest)[:, None, None]
        spread = np.ptp(local_bda_log_density(Z)[:, -1])
        bound = (2 * k + d + 4) / 2 * reach**2
        within.append(spread <= bound)
        used.append(spread / bound)
    # 2: the limit, beside the stored means over queries at a fixed k
    stored = growth.tidy()
    stored = stored[(stored["problem"] == "square") & (stored["k"] == "k = 30")]
    stored = stored[stored["metric"] == "mean_p1"]
    p1 = stored.set_index(["seed", "n"])["value"].sort_index()

    def limit(c, n, k=30, d=2, weights=SHARES):
        tau = k * (k / n) ** (2 / d)
        g = (c + tau / (d + 2) * (np.pi * weights) ** (-2 / d)) ** (-d / 2)
        return g[1] / g.sum()

    # the variance of a uniform variable is 1/12, and so is the trace seed
    seed_sizes = {"B = I": 1.0, "trace": 1 / 12}
    off = [p1[name, n] - limit(c, n) for name, c in seed_sizes.items() for n in growth.SIZES[2:]]
    # 3: at a fixed k the decision is that of the sum in the theorem
    agree = []
    for k, d in ((1, 3), (4, 2), (9, 5)):
        Z = 0.001 * rng.standard_normal((500, 2, k, d))
        decided = local_bda_log_density(Z)[..., -1].argmax(axis=1)
        mean = Z.mean(axis=2)
        trace = ((Z - mean[:, :, None]) ** 2).sum(axis=(2, 3))
        score = k * (k + d + 4) / (k + 1) * (mean**2).sum(axis=2) + trace
        agree.append(np.mean(decided == score.argmin(axis=1)))
    # 4: scaled rows
    Z, d = rng.standard_normal((50, 7, 3)), 3
    at = [neighborhood_log_density(t * Z, [7], np.full(50, 1e-12))[:, 0] for t in (1.0, 1e-3)]
    return within, used, d, limit, seed_sizes, off, agree, at


def growth_of_rows(curves: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Probabilities and costs of the stored study of growth."""
    index = ["problem", "k", "metric", "n", "seed"]
    at = curves.set_index(index)["value"].sort_index()
    square = at["square", "k = 30"]
    p1, lost = square["mean_p1"].unstack(), square["excess_cost"].unstack()
    grown_k = at["square", "k grows"]["mean_p1"].unstack()
    return at, p1, lost, grown_k


def log_constant(k: ArrayLike, d: ArrayLike) -> Array:
    """log c(k, d): what of the log density depends on the number of neighbours and of features alone."""
    return gammaln((k + d + 4) / 2) - gammaln((k + 4) / 2) + d / 2 * np.log(k / (k + 1))
