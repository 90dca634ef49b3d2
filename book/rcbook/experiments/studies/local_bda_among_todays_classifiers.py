"""Local BDA beside today's classifiers (chapter 16; ours): several seed matrices, halves of nine small data sets."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rcbook import datasets
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcbook.ties import smallest_size
from rcpkg.base import Array
from rcpkg.local import BregmanKNN, LocalBDA

STUDY_NAME = "local-2026"
SMALL = ("glass", "heart", "ionosphere", "iris", "new_thyroid", "segment", "sonar", "vowel", "wine")
HALVES = 10
SVC_GRID = {"C": [1, 10, 100], "gamma": ["scale", 0.01, 0.1]}
REFERENCE = "local BDA"


def _local_bda(A: Array, a: NDArray, seed: float | str = 1.0) -> LocalBDA:
    return smallest_size(LocalBDA(n_neighbors="cv", seed=seed).fit(A, a))


def _seed_chosen(A: Array, a: NDArray) -> LocalBDA:
    """The trace seed times one of four factors, chosen with k by leave-one-out."""
    trace = LocalBDA(n_neighbors=1, seed="trace").fit(A, a).seed_[0, 0]
    tried = [_local_bda(A, a, factor * trace) for factor in (0.01, 0.1, 1.0, 10.0)]
    return min(tried, key=lambda model: model.cv_errors_.min())


CONTENDERS: dict[str, Callable] = {
    REFERENCE: _local_bda,
    "seed trace": lambda A, a: _local_bda(A, a, "trace"),
    "seed diag": lambda A, a: _local_bda(A, a, "diag"),
    "seed chosen": _seed_chosen,
    # B = I on features times u is B = I / u^2 on the features themselves
    "features times 0.1": lambda A, a: _local_bda(A, a, 100.0),
    "features times 10": lambda A, a: _local_bda(A, a, 0.01),
    "k-NN": lambda A, a: smallest_size(BregmanKNN(n_neighbors="cv", smoothing=0.0).fit(A, a)),
    "RBF SVC": lambda A, a: GridSearchCV(SVC(), SVC_GRID, cv=3).fit(A, a),
    "gradient boosting": lambda A, a: HistGradientBoostingClassifier(random_state=0).fit(A, a),
}


def local_2026(cell: Cell, seed: int) -> list[Record]:
    """Test errors over stratified halvings and their paired differences from local BDA as in the source.

    Features are standardised on the training half, those constant there left out, and what can be tuned is tuned there.
    """
    bunch = datasets.load(cell.row, "thesis2007")
    errors: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    division = StratifiedShuffleSplit(cell.arguments["repetitions"], test_size=0.5, random_state=seed % 2**32)
    for train, test in division.split(bunch.data, bunch.target):
        scaler = StandardScaler().fit(bunch.data[train])
        varies = scaler.var_ > 0
        A, T = (scaler.transform(bunch.data[rows])[:, varies] for rows in (train, test))
        for name, fitted in CONTENDERS.items():
            wrong = fitted(A, bunch.target[train]).predict(T) != bunch.target[test]
            errors[name].append(100 * float(np.mean(wrong)))
    difference = {name: np.subtract(runs, errors[REFERENCE]) for name, runs in errors.items()}
    return [
        mean_record(name, metric, table[name])
        for metric, table in (("test_error_percent", errors), ("minus_local_bda", difference))
        for name in CONTENDERS
    ]


Study(
    STUDY_NAME,
    rows=SMALL,
    protocol=local_2026,
    arguments={"repetitions": HALVES},
    stream=lambda cell: cell.row,
    quick=lambda cell: cell.row in ("iris", "wine"),
)
