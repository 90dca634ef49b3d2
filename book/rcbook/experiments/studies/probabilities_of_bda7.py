"""BDA7 judged by its probabilities, and where features far outnumber rows (chapter 15; ours).

The divisions are those of `bda7_among_todays_classifiers`, with two sets of handwritten digits more; the problems of
thesis2007 section 5.6 are drawn with 200 features and 40 rows. Each classifier here gives probabilities of its own.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import StandardScaler

from rcbook import datasets
from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Grid, Record, Study, mean_record
from rcbook.experiments.studies import bda7_among_todays_classifiers as rivals
from rcbook.experiments.studies.tables_of_bda7 import TRAINING_ROWS
from rcbook.simulation import chapter5_problem
from rcpkg.base import Array
from rcpkg.gaussians.bayesian import BDA7

STUDY_NAME = "bda7-probabilities"
REFERENCE = "BDA7"
METHODS = (REFERENCE, "BDA7 by log-loss", "RDA", "shrinkage LDA", "logistic regression", "random forest")
DIGITS = ("optdigits", "usps")  # 64 and 256 features, five rows of each of ten classes
CASES, FEATURES, SIMULATIONS, TEST_ROWS = range(1, 11), 200, 10, 300
# Every probability is raised to at least this before its logarithm is taken, for all classifiers alike: that of a
# forest is zero where no tree votes for a class, which would make its log-loss infinite.
FLOOR = 1e-3
METRICS = ("test_error_percent", "log_loss", "overconfidence_points")


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """The classifiers of the comparison, before scaling."""
    known = rivals.classifiers(seed) | {"BDA7 by log-loss": BDA7(scoring="log_loss")}
    return {name: known[name] for name in METHODS}


def judge(P: Array, codes: NDArray) -> dict[str, float]:
    """Error in percent, mean of -log p(y | x) and by how much the probability of the class predicted is larger, on
    average, than the share of right predictions, in points."""
    floored = np.maximum(P, FLOOR)
    floored /= floored.sum(axis=1, keepdims=True)
    right = P.argmax(axis=1) == codes
    return {
        "test_error_percent": 100 * float(1 - right.mean()),
        "log_loss": float(-np.log(floored[np.arange(len(P)), codes]).mean()),
        "overconfidence_points": 100 * float(P.max(axis=1).mean() - right.mean()),
    }


def _judged(seed: int, X: Array, codes: NDArray, X_test: Array, test_codes: NDArray) -> Iterator[tuple[str, dict]]:
    scaler = StandardScaler().fit(X)
    for name, model in classifiers(seed).items():
        P = model.fit(scaler.transform(X), codes).predict_proba(scaler.transform(X_test))
        full = np.zeros((len(P), codes.max() + 1))
        full[:, model.classes_] = P
        yield name, judge(full, test_codes)


def _records(runs: list[dict[str, dict[str, float]]]) -> list[Record]:
    records = []
    for metric in METRICS:
        values = {name: np.array([run[name][metric] for run in runs]) for name in METHODS}
        records += [mean_record(name, metric, v) for name, v in values.items()]
        records += [
            mean_record(name, f"{metric}_over_BDA7", v - values[REFERENCE])
            for name, v in values.items()
            if name != REFERENCE
        ]
    return records


def on_data(cell: Cell, seed: int) -> list[Record]:
    """Error, log-loss and overconfidence on the divisions of a data set, and paired differences from BDA7; the sizes
    of the two parts."""
    bunch = datasets.load(cell.row, "thesis2007")
    codes = np.unique(bunch.target, return_inverse=True)[1]
    runs, sizes = [], set()
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        train, test = rivals.divide(bunch.target, cell.setting_value, int(run))
        sizes.add((len(train), len(test)))
        at = partial(_judged, int(run), bunch.data[train], codes[train])
        runs.append(dict(at(bunch.data[test], codes[test])))
    ((n_train, n_test),) = sizes
    return [Record("", "train_rows", n_train), Record("", "test_rows", n_test), *_records(runs)]


def simulated(cell: Cell, seed: int) -> list[Record]:
    """The same of a problem of section 5.6 with many features, each run drawn anew."""
    runs = []
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        rng = np.random.RandomState(run)
        problem = chapter5_problem(int(cell.row.removeprefix("case ")), FEATURES, rng)
        X, y = problem.sample(TRAINING_ROWS, rng)
        X_test, y_test = problem.sample(TEST_ROWS, rng)
        runs.append(dict(_judged(int(run), X, y, X_test, y_test)))
    return _records(runs)


def _of_data(rows: Iterable[str], amounts: Iterable[str]) -> Grid:
    return Grid(
        rows=rows,
        settings=amounts,
        protocol=on_data,
        arguments={"repetitions": rivals.RUNS},
        stream=lambda cell: f"{cell.row}:{cell.setting_value}",
        quick=lambda cell: cell.row in ("iris", "wine"),
    )


Study(
    STUDY_NAME,
    _of_data(rivals.DATASETS, rivals.AMOUNTS),
    _of_data(DIGITS, ("few",)),
    Grid(
        rows=[f"case {case}" for case in CASES],
        settings=(f"d = {FEATURES}",),
        protocol=simulated,
        arguments={"repetitions": SIMULATIONS},
        stream=lambda cell: f"{cell.row}:{FEATURES}",
    ),
    tolerance=1e-8,  # of points of a percentage: a hundred times that of probabilities
)


tidy = partial(readings.tidy, STUDY_NAME, row="data", setting_value="amount")
