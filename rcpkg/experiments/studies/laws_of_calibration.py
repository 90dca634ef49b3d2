"""What calibration does to a sample: the law of its iterates, and the size and power of the test (chapter 9).

`law` compares the spread of the t-th iterate over samples with the covariance that the theorem gives; `size` the test's
levels with the nominal 5 %, its p value taken from χ² and from the bootstrap; `power` the same where the model is wrong
in a stated way. The bootstrap's level is had from one bootstrap draw a sample, all draws together standing for the
distribution of each (Giacomini, Politis and White 2013): a draw for each of 199 in 2,000 samples would take days.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2
from sklearn.base import clone

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.score_test import Null
from rcpkg.experiments.cells import STUDY, Cell, Record, mean_record, name_of
from rcpkg.generative import (
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

LAW, SIZE, POWER = "law-of-the-iterates", "size-of-the-test", "power-of-the-test"
LEVEL, REPLICATES, POWER_REPLICATES = 0.05, 2000, 500
SIZES = (100, 300, 1000)
LAW_SIZES, LAW_REPLICATES, LAW_RATE = (100, 1000, 10_000), 400, 0.5
LAW_UPDATES = (0, 1, 4, 16)
LARGE = 200_000  # rows from which the matrices of a law are computed


class Case(NamedTuple):
    """A family, and rows from which its true parameters are the closed form."""

    model: ConjugateClassifier
    rows: Callable[[np.random.Generator], tuple[Array, NDArray[np.intp]]]


def gaussians(r: int, d: int) -> Callable[[np.random.Generator], tuple[Array, NDArray[np.intp]]]:
    """Overlapping Gaussian classes, with means a standard deviation or so apart and covariances of their own."""

    def draw(rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
        y = np.arange(400 * r) % r
        factors = np.eye(d) + 0.3 * rng.standard_normal((r, d, d))
        return rng.standard_normal((r, d))[y] * 0.8 + np.einsum(
            "iab,ib->ia", factors[y], rng.standard_normal((len(y), d))
        ), y

    return draw


def categories(r: int, d: int, k: int) -> Callable[[np.random.Generator], tuple[Array, NDArray[np.intp]]]:
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


def rejections(model: ConjugateClassifier, draw: Draw, n: int, repetitions: int, seed: int) -> tuple[Array, Array]:
    """Whether the test rejects each of as many samples, by χ² and by the bootstrap, as zeros and ones."""
    rng = np.random.RandomState(seed % 2**32)
    observed, drawn, dof = [], [], 1
    while len(observed) < repetitions:
        X, y = draw(n, rng)
        sample = clone(model)
        try:
            rows, labels = sample._check_Xy(X, y)
            sample._prepare(rows)
            null = Null(sample, sample._encode(rows), labels, np.ones(len(labels)))
            star = null.drawn(rng)
        except (InvalidStatistics, ValueError):  # a class, or a state of one, without rows
            continue
        observed.append(null.observed[0])
        drawn.append(star)
        dof = null.observed[1]
    statistics = np.array(observed)
    return (statistics > chi2.ppf(1 - LEVEL, dof)).astype(float), (statistics > np.quantile(drawn, 1 - LEVEL)).astype(
        float
    )


def size(cell: Cell, seed: int) -> list[Record]:
    """Shares of samples of the model itself that are rejected at the 5 % level."""
    model = truth(cell.row)
    found = rejections(
        CASES[cell.row].model, model.sample, int(cell.setting_value), cell.arguments["repetitions"], seed
    )
    return [mean_record(method, "rejected", of) for method, of in zip(("chi-squared", "bootstrap"), found)]


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


STRENGTHS = {
    "tails": (0.0, 0.2, 0.4, 0.8),
    "correlation": (0.0, 0.1, 0.3, 0.6),
    "copies": (0.0, 0.2, 0.5, 0.9),
}


def power(cell: Cell, seed: int) -> list[Record]:
    """Shares of samples of a wrong model that are rejected at the 5 % level."""
    model, draw = departure(cell.row, cell.arguments["strength"])
    n = int(cell.setting_value.split("/")[1])
    found = rejections(model, draw, n, cell.arguments["repetitions"], seed)
    return [mean_record(method, "rejected", of) for method, of in zip(("chi-squared", "bootstrap"), found)]


def iterates(model: ConjugateClassifier, X: Any, Y: Array, updates: tuple[int, ...]) -> list[Any]:
    """Parameters after these numbers of updates s ← s + lr s(X, Y − P)."""
    statistics, found = model.statistics(X, Y), []
    for t in range(max(updates) + 1):
        parameters = model.parameters(statistics)
        if t in updates:
            found.append(parameters)
        log_P = log_posterior(model.log_joint(X, parameters), model.log_class_probabilities(parameters))
        statistics = statistics + LAW_RATE * model.statistics(X, Y - np.exp(log_P))
    return found


def covariances(form: MinimalForm, parameters: Any, P: Array) -> list[Array]:
    """I⁻¹ + B_t (C − C I⁻¹ C) B_tᵀ, the covariances of √n (η_t − η) if the model holds."""
    information = form.information(parameters) + np.outer(form.class_weights, form.class_weights)
    inverse = cho_solve(cho_factor(information), np.eye(form.size))
    C = form.conditional_curvature(P, np.full(len(P), 1 / len(P)))
    noise, B, found = C - C @ inverse @ C, np.zeros_like(C), []
    power_of = inverse
    for t in range(max(LAW_UPDATES) + 1):
        if t in LAW_UPDATES:
            found.append(inverse + B @ noise @ B.T)
        B = B + LAW_RATE * power_of
        power_of = power_of - LAW_RATE * inverse @ C @ power_of
    return found


def law(cell: Cell, seed: int) -> list[Record]:
    """n (η_t − η)ᵀ V⁻¹ (η_t − η) a free direction, sample by sample: 1 on average if V is the covariance."""
    model, n = truth(cell.row), int(cell.setting_value)
    rng, r = np.random.RandomState(seed % 2**32), len(model.classes_)
    X, y = model.sample(LARGE, rng)
    encoded = model._encode(X)
    form = MinimalForm(model, encoded, model.statistics(encoded, one_hot(np.searchsorted(model.classes_, y), r)))
    predicted = [cho_factor(V) for V in covariances(form, model.parameters_, model.predict_proba(X))]
    eta = form.coefficients(model.natural_parameters(model.parameters_))
    found: list[list[float]] = [[] for _ in LAW_UPDATES]
    u = form.class_weights / np.linalg.norm(form.class_weights)
    while len(found[0]) < cell.arguments["repetitions"]:
        X, y = model.sample(n, rng)
        Y = one_hot(np.searchsorted(model.classes_, y), r)
        try:
            path = iterates(model, model._encode(X), Y, LAW_UPDATES)
        except InvalidStatistics:
            continue
        for values, parameters, factor in zip(found, path, predicted):
            off = form.coefficients(model.natural_parameters(parameters)) - eta
            off -= u * (u @ off)
            values.append(n * float(off @ cho_solve(factor, off)) / (form.size - 1))
    return [mean_record(f"{t} updates", "relative_spread", values) for t, values in zip(LAW_UPDATES, found)]


def cells(study: str) -> Iterator[Cell]:
    """A cell for each family, or departure and strength, and number of rows."""
    if study == LAW:
        for name in ("LDA", "QDA", "GaussianNB", "CategoricalNB"):
            for n in LAW_SIZES:
                quick = n == LAW_SIZES[0]
                yield Cell(STUDY, study, name, "", name_of(law), {"repetitions": LAW_REPLICATES}, f"{n}", quick=quick)
    elif study == SIZE:
        for name in CASES:
            for n in SIZES:
                quick = n == SIZES[0]
                yield Cell(STUDY, study, name, "", name_of(size), {"repetitions": REPLICATES}, f"{n}", quick=quick)
    else:
        for name, strengths in STRENGTHS.items():
            for strength in strengths:
                for n in SIZES:
                    arguments = {"repetitions": POWER_REPLICATES, "strength": strength}
                    yield Cell(
                        STUDY, study, name, "", name_of(power), arguments, f"{strength}/{n}", quick=n == SIZES[0]
                    )
