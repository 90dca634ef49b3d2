"""What calibration does to a sample: the law of its iterates (chapter 12).

`law` and `law_of_a_wrong_model` compare the spread of the t-th iterate over samples with the covariance that theorems
give.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.base import clone

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Grid, Record, Study, mean_record
from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration import Fixed, Objective, Stop, climb
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.families import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ConjugateClassifier,
    GaussianNB,
    ProductModel,
    SharedVarianceGaussianNB,
    one_hot,
)

LAW = "law-of-the-iterates"
LAW_SIZES, LAW_REPLICATES, LAW_RATE = (100, 1000, 10_000), 400, 0.5
LAW_UPDATES = (0, 1, 4, 16)
LARGE, POPULATION = 200_000, 20_000  # rows from which the matrices of a law are computed; all there are
WRONG = {"LDA, tails": 0.4, "GaussianNB, correlation": 0.6, "BernoulliNB, copies": 0.9}


TrueRows = Callable[[np.random.Generator], tuple[Array, NDArray[np.intp]]]


class Case(NamedTuple):
    """A family, and rows from which its true parameters are the closed form."""

    model: ConjugateClassifier
    rows: TrueRows


def gaussians(r: int, d: int) -> TrueRows:
    """Overlapping Gaussian classes, with means a standard deviation or so apart and covariances of their own."""

    def draw(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
        y = np.arange(400 * r) % r
        factors = np.eye(d) + 0.3 * rng.standard_normal((r, d, d))
        return rng.standard_normal((r, d))[y] * 0.8 + np.einsum(
            "iab,ib->ia", factors[y], rng.standard_normal((len(y), d))
        ), y

    return draw


def categories(r: int, d: int, k: int) -> TrueRows:
    """Codes with probabilities of at least 0.5 / k each."""

    def draw(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
        y = np.arange(400 * r) % r
        p = 0.5 / k + 0.5 * rng.dirichlet(np.ones(k), size=(r, d))
        u = rng.uniform(size=(len(y), d, 1))
        return (u > p.cumsum(axis=2)[y][:, :, :-1]).sum(axis=2).astype(float), y

    return draw


def mixed(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    X, y = gaussians(2, 2)(rng)
    codes, _ = categories(2, 2, 3)(rng)
    return np.hstack([codes, X]), y


CASES = {
    "QDA": Case(QDA(), gaussians(2, 2)),
    "LDA": Case(LDA(), gaussians(3, 3)),
    "GaussianNB": Case(GaussianNB(), gaussians(2, 4)),
    "SharedVarianceGaussianNB": Case(SharedVarianceGaussianNB(), gaussians(2, 5)),
    "CategoricalNB": Case(CategoricalNB(), categories(2, 4, 3)),
    "BernoulliNB": Case(BernoulliNB(), categories(3, 5, 2)),
    "ProductModel": Case(ProductModel([("codes", CategoricalNB(), [0, 1]), ("sizes", QDA(), [2, 3])]), mixed),
}
TRUTH = 2026  # seed of the true parameters, the same for all sizes


def truth(name: str) -> ConjugateClassifier:
    """The family of a case with its true parameters."""
    case = CASES[name]
    return clone(case.model).fit(*case.rows(np.random.default_rng(TRUTH)))


Draw = Callable[[int, np.random.RandomState], tuple[Array, NDArray]]


def departure(name: str, strength: float) -> tuple[ConjugateClassifier, Draw]:
    """A family and samples that it describes the worse, the greater the ``strength`` is; zero: a sample of its own."""

    def heavy_tails(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        scale = np.exp(strength * rng.standard_normal((n, 1)))
        return rng.standard_normal((n, 3)) * scale + np.array([0.6, -0.6, 0.3]) * (2 * y[:, None] - 1) / 2, y

    def correlation(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        common = np.sqrt(strength) * rng.standard_normal((n, 1))
        return common + np.sqrt(1 - strength) * rng.standard_normal((n, 4)) + 0.4 * y[:, None], y

    def copies(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        X = (rng.uniform(size=(n, 4)) < 0.35 + 0.3 * y[:, None]).astype(float)
        copied = rng.uniform(size=n) < strength
        X[copied, 1] = X[copied, 0]
        return X, y

    return {
        "tails": (LDA(), heavy_tails),
        "correlation": (GaussianNB(), correlation),
        "copies": (BernoulliNB(), copies),
    }[name]


def iterates(model: ConjugateClassifier, X: Any, Y: Array, updates: tuple[int, ...]) -> list[Any]:
    """Parameters after these numbers of updates s ← s + lr s(X, Y − P)."""
    path = climb(Objective(model.family_, X, Y), Fixed(LAW_RATE, "raise"), Stop(), max(updates), keep_points=True)
    return [path.points[t].parameters for t in updates]


class Sampled(NamedTuple):
    """A model at the parameters from which a law starts: its coordinates, and what I and C are there."""

    form: MinimalForm
    eta: list[Array]  # the iterates that samples are compared with
    V: list[Array]  # covariances that the theorem gives, of √n times what a sample's iterates are off
    information: Array
    C: Array


def covariances(form: MinimalForm, information: Array, C: Array) -> list[Array]:
    """I⁻¹ + B_t (C − C I⁻¹ C) B_tᵀ, the covariances of √n (η_t − η) if the model holds."""
    inverse = cho_solve(cho_factor(information), np.eye(form.size))
    noise, B, found = C - C @ inverse @ C, np.zeros_like(C), []
    power_of = inverse
    for t in range(max(LAW_UPDATES) + 1):
        if t in LAW_UPDATES:
            found.append(inverse + B @ noise @ B.T)
        B = B + LAW_RATE * power_of
        power_of = power_of - LAW_RATE * inverse @ C @ power_of
    return found


def information_of(form: MinimalForm, parameters: Any) -> Array:
    """I, and one in the direction that no model depends on."""
    return form.information(parameters) + np.outer(form.class_weights, form.class_weights)


def influences(form: MinimalForm, path: list[Any], P: list[Array], y: NDArray[np.intp]) -> list[Array]:
    """Covariances of I_t⁻¹ m_t over the rows.

    m_0 = s(x, y) − μ_0, m_{t+1} = m_t + lr [s(x, δ_y − p_t) − E s(x, δ_y − p_t) − C_t I_t⁻¹ m_t].
    """
    n, found = len(y), []
    m = form.times_statistics(np.eye(form.size), y, slice(None)).T - form.mean(path[0])
    for t, (parameters, p) in enumerate(zip(path, P)):
        psi = cho_solve(cho_factor(information_of(form, parameters)), m.T)
        if t in LAW_UPDATES:
            found.append(psi @ psi.T / n + np.outer(form.class_weights, form.class_weights))
        score = ((one_hot(y, form.r) - p)[:, :, None] * form.features[:, None]).reshape(n, -1)
        score = np.hstack([score, np.zeros((n, form.size - score.shape[1]))])
        C = form.conditional_curvature(p, np.full(n, 1 / n))
        m = m + LAW_RATE * (score - score.mean(axis=0) - (C @ psi).T)
    return found


def spreads(
    model: ConjugateClassifier, limit: Sampled, draw: Draw, n: int, repetitions: int, seed: int
) -> list[Record]:
    """What samples of n rows do, beside the law: 1 on average each, if it holds.

    ``relative_spread`` is n (η_t − η)ᵀ V⁻¹ (η_t − η) a free direction; ``relative_change`` is n times the square of
    η_t − η_0 about its limit, in the norm of I, by what its variances in that norm add up to if the model holds.
    """
    rng, r, form = np.random.RandomState(seed % 2**32), len(model.classes_), limit.form
    factors = [cho_factor(V) for V in limit.V]
    lambdas = np.clip(eigh(limit.C, limit.information, eigvals_only=True), 1e-12, 1.0)
    filters = [1 - (1 - LAW_RATE * lambdas) ** t for t in LAW_UPDATES]
    moves = [float(np.sum(f**2 * (1 - lambdas) / lambdas)) for f in filters]
    u = form.class_weights / np.linalg.norm(form.class_weights)
    spread, change = ([[] for _ in LAW_UPDATES] for _ in range(2))
    tried = 0
    while len(spread[0]) < repetitions:
        X, y = draw(n, rng)
        tried += 1
        try:
            path = iterates(model, model.family_.encode(X), one_hot(np.searchsorted(model.classes_, y), r), LAW_UPDATES)
        except InvalidStatistics:
            continue
        off = [form.coefficients(model.family_.natural_parameters(p)) - eta for p, eta in zip(path, limit.eta)]
        if not np.isfinite(off).all():  # a cell without rows
            continue
        off = [d - u * (u @ d) for d in off]
        for k, d in enumerate(off):
            spread[k].append(n * float(d @ cho_solve(factors[k], d)) / (form.size - 1))
            moved = d - off[0]
            change[k].append(n * float(moved @ limit.information @ moved) / moves[k] if k else 1.0)
    records = [mean_record(f"{t} updates", "relative_spread", values) for t, values in zip(LAW_UPDATES, spread)]
    records += [mean_record(f"{t} updates", "relative_change", values) for t, values in zip(LAW_UPDATES, change) if t]
    return [*records, Record("samples", "without_all_iterates", float(tried - repetitions))]


def law(cell: Cell, seed: int) -> list[Record]:
    """The law of the iterates of samples of the model itself."""
    model = truth(cell.row)
    X, y = model.sample(LARGE, np.random.RandomState(TRUTH))
    encoded = model.family_.encode(X)
    statistics = model.statistics(encoded, one_hot(np.searchsorted(model.classes_, y), len(model.classes_)))
    form = MinimalForm(model.family_, encoded, statistics)
    information = information_of(form, model.parameters_)
    C = form.conditional_curvature(model.predict_proba(X), np.full(LARGE, 1 / LARGE))
    eta = [form.coefficients(model.family_.natural_parameters(model.parameters_))] * len(LAW_UPDATES)
    limit = Sampled(form, eta, covariances(form, information, C), information, C)
    return spreads(model, limit, model.sample, int(cell.setting_value), cell.arguments["repetitions"], seed)


def law_of_a_wrong_model(cell: Cell, seed: int) -> list[Record]:
    """The law of the iterates of rows drawn, with replacement, from a population that the model describes wrongly."""
    name, strength = cell.row.split(", ")[1], cell.arguments["strength"]
    model, draw = departure(name, strength)
    X, y = draw(POPULATION, np.random.RandomState(TRUTH))
    model = clone(model).fit(X, y)
    encoded, Y, steps = model.family_.encode(X), one_hot(y, 2), tuple(range(max(LAW_UPDATES) + 1))
    form = MinimalForm(model.family_, encoded, model.statistics(encoded, Y))
    path = iterates(model, encoded, Y, steps)
    P = [np.exp(log_posterior(model.log_joint(encoded, p), model.family_.log_class_probabilities(p))) for p in path]
    eta = [form.coefficients(model.family_.natural_parameters(path[t])) for t in LAW_UPDATES]
    C = form.conditional_curvature(P[0], np.full(len(y), 1 / len(y)))
    limit = Sampled(form, eta, influences(form, path, P, y), information_of(form, path[0]), C)

    def rows(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        drawn = rng.randint(0, len(y), n)
        return X[drawn], y[drawn]

    found = spreads(model, limit, rows, int(cell.setting_value), cell.arguments["repetitions"], seed)
    return [record for record in found if record.metric != "relative_change"]


def _smallest(sizes: tuple[int, ...]) -> Callable[[Cell], bool]:
    return lambda cell: cell.setting_value.split("/")[-1] == str(sizes[0])


Study(
    LAW,
    Grid(
        rows=("LDA", "QDA", "GaussianNB", "CategoricalNB"),
        settings=LAW_SIZES,
        protocol=law,
        arguments={"repetitions": LAW_REPLICATES},
        quick=_smallest(LAW_SIZES),
    ),
    Grid(
        rows=WRONG,
        settings=LAW_SIZES,
        protocol=law_of_a_wrong_model,
        arguments=lambda cell: {"repetitions": LAW_REPLICATES, "strength": WRONG[cell.row]},
        quick=_smallest(LAW_SIZES),
    ),
)

tidy = partial(readings.tidy, row="case", setting_value="n")
