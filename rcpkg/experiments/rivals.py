"""BDA7 beside today's classifiers, with few training rows and with many (chapter 8; ours).

Every classifier meets the same divisions and standardised features, and tunes on its training rows alone.
"""

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rcpkg import datasets
from rcpkg.base import Array
from rcpkg.bayesian_qda import BDA7
from rcpkg.discriminant import RDA
from rcpkg.experiments.protocols import STUDY, Cell, Record, mean_record
from rcpkg.experiments.scorecard import results

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


def _tuned(model: ClassifierMixin, seed: int, **grid: list) -> GridSearchCV:
    return GridSearchCV(model, grid, cv=StratifiedKFold(3, shuffle=True, random_state=seed))


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """The classifiers of the comparison, before scaling."""
    return {
        "BDA7": BDA7(random_state=seed),
        "RDA": RDA(random_state=seed),
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


def _error(model: ClassifierMixin, X: Array, y: NDArray, train: NDArray, test: NDArray) -> float:
    try:
        predicted = make_pipeline(StandardScaler(), model).fit(X[train], y[train]).predict(X[test])
    except np.linalg.LinAlgError:  # shrinkage QDA, where a class has no covariance of full rank: the largest class
        names, counts = np.unique(y[train], return_counts=True)
        predicted = names[counts.argmax()]
    return 100 * float(np.mean(predicted != y[test]))


def compare(cell: Cell, seed: int) -> list[Record]:
    """Mean test error of each classifier, and by how much it errs more than BDA7, paired by division."""
    bunch = datasets.load(cell.row, "thesis2007")
    errors: dict[str, list[float]] = {}
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        train, test = divide(bunch.target, cell.setting_value, run)
        error = partial(_error, X=bunch.data, y=bunch.target, train=train, test=test)
        for name, model in classifiers(int(run)).items():
            errors.setdefault(name, []).append(error(model))
    records = []
    for name, values in errors.items():
        for metric, v in (
            ("test_error_percent", values),
            ("excess_over_BDA7", np.subtract(values, errors["BDA7"])),
        ):
            records.append(mean_record(name, metric, v))
    return records


def cells() -> list[Cell]:
    """One cell for each data set and amount of training rows."""
    return [
        Cell(
            STUDY,
            "bda7-2026",
            name,
            "",
            f"{__name__}:compare",
            {"repetitions": RUNS},
            setting_value=amount,
            stream=f"{name}:{amount}",
            quick=name in ("iris", "wine"),
        )
        for name in DATASETS
        for amount in AMOUNTS
    ]


def tidy() -> pd.DataFrame:
    """The stored study: error or excess, its standard error and the runs for each data set, amount and method."""
    study = results(STUDY, "bda7-2026").rename(columns={"setting_value": "amount"})
    return study[["row", "amount", "method", "metric", "value", "value_se", "n_runs"]].rename(columns={"row": "data"})
