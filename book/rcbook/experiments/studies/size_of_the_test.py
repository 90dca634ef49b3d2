"""Size and power of the test whether to calibrate, by rows and by degrees of freedom (chapter 12; ours).

Fixed before the first run. A sample is rejected at the level of 5 % if its statistic exceeds those of 19 draws, which
is p ≤ 0.05 of `calibration_test` with ``n_bootstrap=19``; as the first draw that reaches it decides, no more are made.
There are three groups:

- `RIGHT`: samples of the model, its structure, if it has one, given or learnt. *Criterion*: each cell rejects between 3
  and 7 % of its 2,000 samples. Where a group of cells fails it, `calibration_test` is to warn there and say so.
- `POSTERIOR`: samples that the model describes wrongly but for the posterior, 150 each. There is no criterion: the
  share is reported.

``n_per_degree`` is n over the (r − 1) K free components of the update, for K coefficients of a score.

Changed while it ran, for the time, before the cells concerned were run: 300 samples of a case of `POSTERIOR` became
150. Seven families with few features (`FEW`) and trees learnt from 2,000 rows, left out then but for one cell, were run
later; they and `POWER`, samples of wrong models without a criterion, were fixed before their first cell was run. Of
these the times of ten to thirty samples, and powers of sixty samples at one strength each, had been seen. 1,000 samples
of a wrong model became 400, for the time, after three cells, which were run again.

Before all, pilots of 200 samples were seen: of thirty bits with 40 to 1,000 rows (by another program), and of trees
learnt from 8 bits.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Grid, Record, Study, mean_record
from rcbook.experiments.studies.laws_of_calibration import (
    CASES,
    TRUTH,
    Draw,
    TrueRows,
    categories,
    departure,
    gaussians,
    truth,
)
from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.score_test import Null, null_of
from rcpkg.families import (
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    ConjugateClassifier,
    GaussianNB,
    KDependenceBayes,
    one_hot,
)
from rcpkg.rows import Rows

SIZE, POWER = "size-of-the-test", "power-of-the-test"
LEVEL, DRAWS = 0.05, 19
REPLICATES, POSTERIOR_REPLICATES, POWER_REPLICATES = 2000, 150, 400
STATED = (0.03, 0.07)  # of the criterion


class Case(NamedTuple):
    """A family, samples to test it on, and their numbers of rows."""

    model: ConjugateClassifier
    draw: Draw
    sizes: tuple[int, ...]


def of_model(model: ConjugateClassifier, rows: TrueRows, sizes: tuple[int, ...]) -> Case:
    """Samples of a model with the parameters that are the closed form of some rows."""
    return Case(model, clone(model).fit(*rows(np.random.default_rng(TRUTH))).sample, sizes)


def bits(tells: Array, d: int, copied: bool = False) -> Draw:
    """d bits: the first tell the class, each by that much; the others copy one bit in 60 % of the rows if asked to."""

    def draw(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        X = rng.uniform(size=(n, d)) < 0.5
        one = rng.uniform(size=(n, 1)) < 0.5
        X = np.where(copied & (rng.uniform(size=X.shape) < 0.6), one, X)
        shares = 0.5 + np.outer(2 * y - 1, tells)
        X[:, : len(tells)] = rng.uniform(size=shares.shape) < shares
        return X.astype(float), y

    return draw


def chain(d: int, copies: float) -> Draw:
    """d bits that tell the class, each a copy of the one before it in that share of the rows."""

    def draw(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        X = (rng.uniform(size=(n, d)) < 0.35 + 0.3 * y[:, None]).astype(float)
        for j in range(1, d):
            copied = rng.uniform(size=n) < copies
            X[copied, j] = X[copied, j - 1]
        return X, y

    return draw


def normals(separation: float, share: float = 0.5, wide: float = 1.0) -> Draw:
    """Two normal features, the second class of that share, ``wide`` times as wide and moved."""

    def draw(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = (rng.uniform(size=n) < share).astype(int)
        scale = np.where(y == 1, wide, 1.0)[:, None]
        return scale * rng.standard_normal((n, 2)) + separation * y[:, None], y

    return draw


def skewed_feature(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
    """One normal feature, and an exponential one that has nothing to do with the class."""
    y = rng.randint(0, 2, n)
    return np.column_stack([rng.standard_normal(n) + 1.5 * y, rng.standard_exponential(n)]), y


def two_of_ten(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
    """Two normal features that tell the class, and eight that depend on each other alone."""
    y = rng.randint(0, 2, n)
    others = np.sqrt(0.6) * rng.standard_normal((n, 1)) + np.sqrt(0.4) * rng.standard_normal((n, 8))
    return np.hstack([rng.standard_normal((n, 2)) + 0.8 * y[:, None], others]), y


def dependent_features(matter: int) -> Draw:
    """As many bits that tell the class, and two that depend on each other alone."""

    def draw(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        first = [rng.uniform(size=n) < 0.3 + 0.4 * y for _ in range(matter)]
        second = rng.uniform(size=n) < 0.5
        third = np.where(rng.uniform(size=n) < 0.8, second, ~second)
        return np.column_stack([*first, second, third]).astype(float), y

    return draw


THREE, TREE = (100, 300, 1000), TAN(prior_strength=0.0)
GIVEN = KDependenceBayes(k=1, prior_strength=0.0, structure=[[], *([j] for j in range(11))])
RIGHT = {
    "BernoulliNB, 30 bits": Case(BernoulliNB(), bits(np.full(30, 0.15), 30), (40, 150, 300)),
    "BernoulliNB, 60 bits": Case(BernoulliNB(), bits(np.full(60, 0.1), 60), (60, 250)),
    "CategoricalNB, 12 of 5 states": of_model(CategoricalNB(), categories(2, 12, 5), (40, 150)),
    "GaussianNB, 30 features": of_model(GaussianNB(), gaussians(2, 30), (40, 150)),
    "QDA, 8 features": of_model(QDA(), gaussians(2, 8), (50, 150)),
    "LDA, 95 to 5": Case(LDA(), normals(1.0, 0.05), (300,)),
    "QDA, 95 to 5": Case(QDA(), normals(1.0, 0.05, 1.5), (300,)),
    "TAN, tree given, 12 bits": Case(GIVEN, chain(12, 0.5), (60,)),
}
FEW = {name: Case(case.model, truth(name).sample, THREE) for name, case in CASES.items()}
RIGHT |= FEW
LEARNT = {
    "TAN, tree learnt, 8 bits": Case(TREE, chain(8, 0.5), (150, 500, 2000)),
    "TAN, tree learnt, 12 bits": Case(TREE, chain(12, 0.5), (300, 2000)),
    "TAN, tree learnt, none there": Case(TREE, chain(8, 0.0), (150, 500, 2000)),
}
POSTERIOR = {
    "BernoulliNB, 3 of 30 bits": Case(BernoulliNB(), bits(np.full(3, 0.2), 30, copied=True), THREE),
    "BernoulliNB, 1 of 3 bits": Case(BernoulliNB(), dependent_features(1), THREE),
    "BernoulliNB, 3 of 5 bits": Case(BernoulliNB(), dependent_features(3), THREE),
    "GaussianNB, 2 of 10 features": Case(GaussianNB(), two_of_ten, THREE),
    "LDA, skewed feature": Case(LDA(), skewed_feature, THREE),
}
SIZED = LEARNT | RIGHT | POSTERIOR

#: How a family may be wrong, and how much
STRENGTHS = {
    "tails": (0.4, 0.8),
    "correlation": (0.15, 0.3),
    "copies": (0.25, 0.5),
    "pairs": (0.15, 0.3),
    "width": (1.5, 2.0),
}
POWER_SIZES = (50, 100, 300, 1000)


def departed(name: str, strength: float) -> tuple[ConjugateClassifier, Draw]:
    """A family and samples that it describes the worse, the greater the ``strength`` is.

    Those of the law of the iterates, and two more: thirty bits, every other of which copies the one before it in that
    share of the rows (``pairs``), and LDA where the second class is so many times as wide (``width``).
    """

    def pairs(n: int, rng: np.random.RandomState) -> tuple[Array, NDArray]:
        y = rng.randint(0, 2, n)
        X = (rng.uniform(size=(n, 30)) < 0.35 + 0.3 * y[:, None]).astype(float)
        copied = rng.uniform(size=(n, 15)) < strength
        X[:, 1::2] = np.where(copied, X[:, ::2], X[:, 1::2])
        return X, y

    if name == "pairs":
        return BernoulliNB(), pairs
    return (LDA(), normals(1.0, wide=strength)) if name == "width" else departure(name, strength)


def rejections(model: ConjugateClassifier, draw: Draw, n: int, repetitions: int, seed: int) -> list[Record]:
    """Share of as many samples that the test rejects, n a degree of freedom, and samples without a closed form."""
    rng, rejected, tried, per_degree = np.random.RandomState(seed % 2**32), [], 0, 0.0
    valid = null_of(model, *draw(n, np.random.RandomState(0))).model  # validation once takes half of the time
    while len(rejected) < repetitions:
        X, y = draw(n, rng)
        tried += 1
        try:
            valid.prepare(X)
            valid.learn_structure(Rows.from_arrays(X, y))
            null = Null(valid, X, y)
        except InvalidStatistics:  # a class without rows, or with too few
            continue
        per_degree = per_degree or n / degrees(model, X, y)
        rejected.append(all(null.drawn(rng) < null.least for _ in range(DRAWS)))
    return [
        mean_record("test", "rejected", np.array(rejected, dtype=float)),
        Record("samples", "n_per_degree", per_degree),
        Record("samples", "without_a_closed_form", float(tried - repetitions)),
    ]


def degrees(model: ConjugateClassifier, X: Array, y: NDArray) -> int:
    """(r − 1) K, the free components of the update of these rows."""
    fitted = clone(model).fit(X, y)
    encoded = fitted.family_.encode(fitted._check_X(X))
    labels = one_hot(np.searchsorted(fitted.classes_, y), len(fitted.classes_))
    form = MinimalForm(fitted.family_, encoded, fitted.statistics(encoded, labels))
    return (form.r - 1) * form.width


def size(cell: Cell, seed: int) -> list[Record]:
    """Rejections where the model is right, or its posterior."""
    case = SIZED[cell.row]
    return rejections(case.model, case.draw, int(cell.setting_value), cell.arguments["repetitions"], seed)


def power(cell: Cell, seed: int) -> list[Record]:
    """Rejections of a wrong model."""
    strength, n = cell.setting_value.split("/")
    return rejections(*departed(cell.row, float(strength)), int(n), cell.arguments["repetitions"], seed)


def _strengths_and_sizes(cell: Cell) -> Iterator[str]:
    for strength in STRENGTHS[cell.row]:
        yield from (f"{strength}/{n}" for n in POWER_SIZES)


def _sized(rows: dict[str, Case], repetitions: int) -> Grid:
    return Grid(
        rows=rows,
        settings=lambda cell: rows[cell.row].sizes,
        protocol=size,
        arguments={"repetitions": repetitions},
        quick=lambda cell: cell.setting_value == str(rows[cell.row].sizes[0]),
    )


Study(
    SIZE,
    _sized(LEARNT | RIGHT, REPLICATES),
    _sized(POSTERIOR, POSTERIOR_REPLICATES),
)

Study(
    POWER,
    rows=STRENGTHS,
    settings=_strengths_and_sizes,
    protocol=power,
    arguments={"repetitions": POWER_REPLICATES},
    quick=lambda cell: cell.setting_value.endswith(f"/{POWER_SIZES[0]}"),
)

#: Stored shares by case, strength (of `POWER`) and n
tidy = partial(readings.tidy, row="case", setting_value=r"(?:(?P<strength>[\d.]+)/)?(?P<n>\d+)")
