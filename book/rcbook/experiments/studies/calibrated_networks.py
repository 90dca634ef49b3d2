"""What the study of networks compares, calibrated or not: sets, divisions, codes, learners, hypotheses (chapter 10).

Sets: those of wanbia2014's Table I that are held, its parts excepted, from the smallest to the largest. Every fourth,
by name, is set aside: no score of those is looked at until the conclusions from the others are written. All learners
are given the same codes. Numbers are cut by description length on the training rows, missing values are a state of
their own, and rows of classes with fewer than `LEAST_CLASS` rows are left out, and with them a set of which one class
would be left (`ONE_CLASS`). Stratified divisions, a quarter of the rows for testing, `REPETITIONS` of them by the
number of rows. What is tuned is tuned by the log-loss on a fifth of the training rows and refitted on all of them, by
the same code for all learners, each with the settings in `LEARNERS`, sixteen at most.

To see that it runs, and that its grids hold what is wanted, the protocol was tried on three sets (`TRIED`), first with
k from 1, nested targets alone and weights up to 30. There the nested target left networks far too sure of themselves,
and greater weights did better; so k = 0, weights up to 300, and pooled targets for networks as a learner of its own
were added. None of the three is among those set aside. Nothing was changed after that.

Hypotheses, for the nested and the pooled target each, by Wilcoxon's signed-rank test over sets with Holm's correction
for all eight, a difference in log-loss below 0.01 being of no practical weight: the k-dependence network with safe
steps and a target has less log-loss (1) than its closed form, (2) than naive Bayes with safe steps and a pooled target,
(3) than the tuned random forest on sets of at most `FEW_ROWS` rows; and (4) more than tuned gradient boosting on the
others.

The budget was to be a day of two processors. It became about an hour of a third of one, and what follows was changed
for that alone, after the cells of the four smallest sets that are not aside and nine of the fifth had been run with
five divisions each, and from processor times and sizes of tables on one division, without a look at scores. A division
has at most `TRAINING_ROWS` rows for training and `TEST_ROWS` for testing, classes with fewer than `LEAST_CLASS` rows
among those are left out, and `REPETITIONS` are fewer: two from 151 to 1,000 rows at first, which was cut to what stands
there when cells of the seventh set were being run, for the same reason. Of each kind the sets run in the order of their
rows, and those aside after those that are not. The sets in `COSTLY`, on which a network of three parents has more than
200,000 cells with so many rows, run after all others: so they were, from the shortest run on, when conclusions from all
others had been written, aside or not. Not all learners have been run on cylinder_bands, musk_2 and wall_following,
where an update of a network of three parents takes seconds and tuning takes hundreds.

`CURVES` are training sizes on the five largest sets, for the learners that the hypotheses name and logistic regression;
on `COSTLY` sets the networks with safe steps are run up to `FEW_CURVED` rows, and the forest everywhere up to
`FEW_GROWN`. They were three sets at first, covtype with 30,000 rows at most and adult's networks with 3,000; the others
were added when those had been run, for there was time again. Learners, settings and hypotheses are as they were.

Two defects were found when all of this had been run. The cuts read the labels of the rows on which settings are then
compared, and logistic regression ends far from its optimum. `calibrated_networks_mended` runs again what they touch and
keeps the cells that they do not touch. The first run as a whole, its 1,111 cells and what was concluded from them, is
in the history of the repository: commit e2781393, `data/results/study_table_networks.jsonl` and chapter 10.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from rcbook import datasets
from rcbook.experiments.cells import Cell, Record, mean_record
from rcbook.experiments.studies.honest_comparison import Tuned, scores
from rcbook.experiments.studies.tables_of_wanbia2014 import PARTS, rows_of
from rcpkg.base import Array
from rcpkg.calibration import RiskCalibration
from rcpkg.discretization import MDLDiscretizer
from rcpkg.families import TAN, CategoricalNB, KDependenceBayes

VARIANT = "wanbia2014"
LEAST_CLASS = 8
ONE_CLASS = "contact_lenses"
TRIED = ("labor", "hepatitis", "connect_4")
REPETITIONS = {150: 5, 200: 2, 10**9: 1}  # by the greatest number of rows that is divided so often
FEW_ROWS = 2_000
TRAINING_ROWS = 5_000
TEST_ROWS = 10_000
COSTLY = (
    "adult",
    "autos",
    "census_income_kdd",
    "covtype",
    "cylinder_bands",
    "letter",
    "musk_2",
    "nettalk",
    "optdigits",
    "pendigits",
    "satellite",
    "segment",
    "synthetic_control",
    "thyroid_0387",
    "wall_following",
)
CURVES = {
    "connect_4": (300, 1_000, 3_000, 10_000, 30_000),
    "adult": (300, 1_000, 3_000, 10_000, 30_000),
    "shuttle": (300, 1_000, 3_000, 10_000, 30_000),
    "covtype": (3_000, 10_000, 30_000, 100_000, 300_000),
    "census_income_kdd": (3_000, 10_000, 30_000, 100_000, 200_000),
}
FEW_CURVED, FEW_GROWN = 10_000, 30_000
ALL_ROWS = 10**9
STRENGTHS = [0.3, 1.0, 3.0, 10.0]
WEIGHTS = [0.3, 3.0, 30.0, 300.0]
ORDERS = [0, 1, 2, 3]


class Coded(NamedTuple):
    """Codes and labels of training and test rows; ``n_states`` hold for both."""

    X: Array
    y: NDArray[np.intp]
    X_test: Array
    y_test: NDArray[np.intp]
    n_states: NDArray[np.intp]


@lru_cache
def sets() -> dict[str, tuple[int, bool]]:
    """Rows of each set, and whether it is set aside; from the smallest set to the largest."""
    table = datasets.table()
    table = table[(table.variant == VARIANT) & ~table.name.isin(PARTS)].sort_values("name")
    found = {
        name: (int(n), place % 4 == 3 and name not in TRIED)
        for place, (name, n) in enumerate(zip(table.name, table.n_rows))
    }
    del found[ONE_CLASS]
    return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))


class Part(NamedTuple):
    """Rows of a division before they are coded: those for training first, `n_train` of them."""

    X: Array
    y: NDArray[np.intp]
    nominal: NDArray[np.bool_]
    n_train: int


@lru_cache(maxsize=1)
def part(name: str, seed: int, most: int = ALL_ROWS) -> Part:
    """A stratified division, at most so many rows of which are for training, and `TEST_ROWS` for testing."""
    rows = rows_of(name, ALL_ROWS)
    sizes = np.bincount(rows.y)
    kept = np.flatnonzero(sizes[rows.y] * min(1.0, most / (0.75 * len(rows.y))) >= LEAST_CLASS)
    X, y = rows.X[kept], np.unique(rows.y[kept], return_inverse=True)[1]
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
    if most < len(train):
        train, _ = train_test_split(train, train_size=most, stratify=y[train], random_state=seed)
    if len(test) > TEST_ROWS:
        test, _ = train_test_split(test, train_size=TEST_ROWS, stratify=y[test], random_state=seed)
    both = np.concatenate([train, test])
    return Part(X[both], y[both], rows.nominal, len(train))


def coded(rows: Part, fit: NDArray[np.intp], held: NDArray[np.intp]) -> Coded:
    """Codes of the rows ``fit`` and ``held``, numbers cut by the labels of ``fit`` alone.

    A feature of states is left out if it is constant on the rows for training, one of numbers if it is on ``fit``.
    """
    codes = MDLDiscretizer(categorical_features=rows.nominal).fit(rows.X[fit], rows.y[fit]).transform(rows.X)
    missing = np.isnan(codes)
    codes = np.where(missing, np.where(missing, -1.0, codes).max(axis=0) + 1, codes)
    varies = np.where(rows.nominal, np.ptp(codes[: rows.n_train], axis=0), np.ptp(codes[fit], axis=0)) > 0
    codes = codes[:, varies] if varies.any() else codes[:, :1]
    n_states = codes.max(axis=0).astype(np.intp) + 1
    return Coded(codes[fit], rows.y[fit], codes[held], rows.y[held], n_states)


@lru_cache(maxsize=8)
def division(name: str, seed: int, most: int = ALL_ROWS) -> Coded:
    """Codes of the training and of the test rows of a division, cut by the labels of all training rows."""
    rows = part(name, seed, most)
    return coded(rows, *np.split(np.arange(len(rows.y)), [rows.n_train]))


# Learners ------------------------------------------------------------------------------------------

Make = Callable[[Coded, int], Any]


def _safe(model: Any, target: str) -> RiskCalibration:
    return RiskCalibration(model, step="safe", target=target, max_iter=100, tol=1e-6)


def tuned(model: Callable[[NDArray[np.intp]], Any], grid: Mapping[str, list]) -> Make:
    """Tuned over a grid; orders k are less than the number of features."""

    def make(data: Coded, seed: int) -> Tuned:
        orders = [k for k in ORDERS if k < len(data.n_states)]
        return Tuned(
            model(data.n_states), {name: orders if name.endswith("k") else of for name, of in grid.items()}, seed
        )

    return make


def _of(kind: type, **settings: Any) -> Callable[[NDArray[np.intp]], Any]:
    return lambda n_states: kind(n_states=n_states, prior_strength=1.0, **settings)


def one_hot_encoded(classifier: Any, **settings: Any) -> Callable[[NDArray[np.intp]], Any]:
    """``settings`` are of the encoder: a forest grows the same trees on dense indicators, in a quarter of the time."""
    return lambda n_states: make_pipeline(
        OneHotEncoder(categories=[np.arange(k) for k in n_states], **settings), classifier
    )


def _calibrated(kind: type, target: str, **grid: list) -> Make:
    return tuned(lambda n_states: _safe(_of(kind)(n_states), target), {"target_weight": WEIGHTS, **grid})


LEARNERS: dict[str, Make] = {
    "NB": tuned(_of(CategoricalNB), {"prior_strength": STRENGTHS}),
    "TAN": tuned(_of(TAN), {"prior_strength": STRENGTHS}),
    "KDB": tuned(_of(KDependenceBayes), {"k": ORDERS, "prior_strength": STRENGTHS}),
    "NB, RC as published": lambda data, seed: RiskCalibration.as_published(_of(CategoricalNB)(data.n_states)),
    "TAN, RC as published": lambda data, seed: RiskCalibration.as_published(_of(TAN)(data.n_states)),
    "KDB, RC as published": tuned(
        lambda n_states: RiskCalibration.as_published(_of(KDependenceBayes)(n_states)), {"estimator__k": ORDERS}
    ),
    "NB, RC safe, pooled target": _calibrated(CategoricalNB, "pooled"),
    "TAN, RC safe, pooled target": _calibrated(TAN, "pooled"),
    "TAN, RC safe, nested target": _calibrated(TAN, "nested"),
    "KDB, RC safe, pooled target": _calibrated(KDependenceBayes, "pooled", estimator__k=ORDERS),
    "KDB, RC safe, nested target": _calibrated(KDependenceBayes, "nested", estimator__k=ORDERS),
    "logistic regression": tuned(
        one_hot_encoded(LogisticRegression(max_iter=300, tol=1e-3)),
        {"logisticregression__C": [0.01, 0.1, 1.0, 10.0, 100.0]},
    ),
    "random forest": tuned(
        one_hot_encoded(RandomForestClassifier(200, random_state=0), sparse_output=False, dtype=np.float32),
        {
            "randomforestclassifier__min_samples_leaf": [1, 2, 5],
            "randomforestclassifier__max_features": ["sqrt", 0.3],
        },
    ),
    "gradient boosting": tuned(
        lambda n_states: HistGradientBoostingClassifier(
            categorical_features=n_states <= 255, max_iter=200, early_stopping=True, random_state=0
        ),
        {"learning_rate": [0.05, 0.2], "max_leaf_nodes": [4, 31]},
    ),
}

FOREST, BOOSTING, NAIVE = "random forest", "gradient boosting", "NB, RC safe, pooled target"
SAFE_NETWORKS = tuple(f"{kind}, RC safe, {target} target" for kind in ("TAN", "KDB") for target in ("pooled", "nested"))
CURVED = (
    "NB, RC safe, pooled target",
    "KDB",
    *SAFE_NETWORKS,
    "logistic regression",
    "random forest",
    "gradient boosting",
)


# Protocol ------------------------------------------------------------------------------------------


def compare(cell: Cell, seed: int) -> list[Record]:
    """Means over the divisions of the four scores on the test rows, and processor seconds of the tuned fit."""
    runs = []
    for part in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        data = division(cell.row, int(part), cell.arguments["training_rows"])
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = LEARNERS[cell.method](data, int(part)).fit(data.X, data.y)
        seconds = time.process_time() - start
        runs.append(scores(learner.predict_proba(data.X_test), data.y_test) | {"seconds": seconds})
    return [mean_record(cell.method, metric, [run[metric] for run in runs]) for metric in runs[0]]


def in_order() -> list[str]:
    """Sets set aside after the others, those with large tables last."""
    return sorted(sets(), key=lambda name: (name in COSTLY, sets()[name][1]))


def of_set(cell: Cell) -> dict[str, int]:
    n, _ = sets()[cell.row]
    most = ALL_ROWS if 0.75 * n <= TRAINING_ROWS else TRAINING_ROWS
    return {"training_rows": most, "repetitions": next(times for rows, times in REPETITIONS.items() if n <= rows)}
