"""BDA7 beside today's classifiers, with few training rows and with many (chapter 15; ours).

Every classifier meets the same divisions and standardised features, and tunes on its training rows alone. BDA7 and
RDA meet the same divisions once more with the features as they come.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rcbook import datasets, ties
from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Grid, Record, Study, mean_record
from rcpkg.base import Array

STUDY_NAME = "bda7-2026"
# the small sets of thesis2007, and waveform
DATASETS = (
    "diabetes",
    "glass",
    "heart",
    "ionosphere",
    "iris",
    "new_thyroid",
    "sonar",
    "vowel",
    "waveform",
    "wine",
)
FEW_ROWS = 5  # a class; so that tuning by three folds is possible
AMOUNTS = ("few", "half")
MOST_ROWS = 600  # of a data set, drawn anew in every division
RUNS = 20
SCALED_AND_RAW = ("BDA7", "RDA")


def _tuned(model: ClassifierMixin, seed: int, **grid: list) -> GridSearchCV:
    return GridSearchCV(model, grid, cv=StratifiedKFold(3, shuffle=True, random_state=seed))


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """The classifiers of the comparison, before scaling."""
    return {
        "BDA7": ties.BDA7(random_state=seed),
        "RDA": ties.RDA(random_state=seed),
        "shrinkage LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "shrinkage QDA": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
        "logistic regression": _tuned(LogisticRegression(max_iter=5000), seed, C=[0.01, 0.1, 1, 10, 100]),
        "SVM": _tuned(SVC(), seed, C=[0.1, 1, 10, 100, 1000], gamma=["scale", 0.001, 0.01, 0.1]),
        "random forest": RandomForestClassifier(100, random_state=seed),
    }


def divide(y: NDArray, amount: str, seed: int) -> tuple[NDArray, NDArray]:
    """Training and test rows: ``FEW_ROWS`` of each class against the rest, or stratified halves."""
    rng = np.random.RandomState(seed)
    if len(y) > MOST_ROWS:
        rows = next(StratifiedShuffleSplit(1, train_size=MOST_ROWS, random_state=rng).split(y[:, None], y))[0]
    else:
        rows = np.arange(len(y))
    if amount == "half":
        train, test = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=rng).split(y[rows, None], y[rows]))
        return rows[train], rows[test]
    few = [rng.permutation(rows[y[rows] == label])[:FEW_ROWS] for label in np.unique(y)]
    train = np.concatenate(few)
    return train, np.setdiff1d(rows, train)


class Outcome(NamedTuple):
    """Test error of one classifier in one division, and whether it could be fitted."""

    error: float
    fitted: bool


def _outcome(model: ClassifierMixin, X: Array, y: NDArray, train: NDArray, test: NDArray) -> Outcome:
    try:
        predicted, fitted = model.fit(X[train], y[train]).predict(X[test]), True
    except np.linalg.LinAlgError:  # shrinkage QDA, where a class has no covariance of full rank: the largest class
        names, counts = np.unique(y[train], return_counts=True)
        predicted, fitted = names[counts.argmax()], False
    return Outcome(100 * float(np.mean(predicted != y[test])), fitted)


def _scaled(model: ClassifierMixin) -> Pipeline:
    return make_pipeline(StandardScaler(), model)


def _divisions(cell: Cell, seed: int, y: NDArray) -> Iterator[tuple[int, NDArray, NDArray]]:
    """Seed, training rows and test rows of each run."""
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        yield int(run), *divide(y, cell.setting_value, run)


def compare(cell: Cell, seed: int) -> list[Record]:
    """Mean test error of each classifier, and by how much it errs more than BDA7, paired by division."""
    bunch = datasets.load(cell.row, "thesis2007")
    errors: dict[str, list[float]] = {}
    for run, train, test in _divisions(cell, seed, bunch.target):
        for name, model in classifiers(run).items():
            outcome = _outcome(_scaled(model), bunch.data, bunch.target, train, test)
            errors.setdefault(name, []).append(outcome.error)
    records = []
    for name, values in errors.items():
        for metric, v in (
            ("test_error_percent", values),
            ("excess_over_BDA7", np.subtract(values, errors["BDA7"])),
        ):
            records.append(mean_record(name, metric, v))
    return records


def unscaled(cell: Cell, seed: int) -> list[Record]:
    """What the features' scales do, on the divisions of `compare`: test errors of BDA7 and RDA with the features as
    they come, paired with those on standardised ones and with each other; the sizes of the two parts; in how many
    divisions shrinkage QDA cannot be fitted."""
    bunch = datasets.load(cell.row, "thesis2007")
    errors: dict[tuple[str, str], list[float]] = {}
    unfitted, sizes = [], set()
    for run, train, test in _divisions(cell, seed, bunch.target):
        outcome = partial(_outcome, X=bunch.data, y=bunch.target, train=train, test=test)
        sizes.add((len(train), len(test)))
        for name in SCALED_AND_RAW:
            errors.setdefault((name, "raw"), []).append(outcome(classifiers(run)[name]).error)
            errors.setdefault((name, "scaled"), []).append(outcome(_scaled(classifiers(run)[name])).error)
        unfitted.append(100 * (not outcome(_scaled(classifiers(run)["shrinkage QDA"])).fitted))
    ((n_train, n_test),) = sizes
    records = [Record("", "train_rows", n_train), Record("", "test_rows", n_test)]
    for name in SCALED_AND_RAW:
        raw = errors[name, "raw"]
        for metric, v in (
            ("raw_test_error_percent", raw),
            ("raw_excess_over_scaled", np.subtract(raw, errors[name, "scaled"])),
            ("raw_excess_over_raw_BDA7", np.subtract(raw, errors["BDA7", "raw"])),
        ):
            records.append(mean_record(name, metric, v))
    return [*records, mean_record("shrinkage QDA", "unfitted_percent", unfitted)]


Study(
    STUDY_NAME,
    *(
        Grid(
            rows=DATASETS,
            methods=(method,),
            settings=AMOUNTS,
            protocol=protocol,
            arguments={"repetitions": RUNS},
            stream=lambda cell: f"{cell.row}:{cell.setting_value}",
            quick=lambda cell: cell.row in ("iris", "wine"),
        )
        for method, protocol in (("", compare), ("unscaled", unscaled))
    ),
)


tidy = partial(readings.tidy, STUDY_NAME, row="data", setting_value="amount")
