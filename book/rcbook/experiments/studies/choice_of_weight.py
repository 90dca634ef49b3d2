"""What does `RiskCalibrationCV` save over a grid search, and does it choose as well? (chapter 11)

Fixed before anything was measured, but for the numbers of rows and of cases, which were cut for time when nine cases,
of other sizes, had been timed:

- Cases: naive Bayes on bins (`CategoricalNB` with one pseudo-row), `GaussianNB`, `QDA` and `LDA` in turn on the 33 data
  sets of the honest comparison, with its features, on its first division: at most 300 of its training rows, stratified,
  and at most 1,000 of its test rows; and beyond the size of a Hessian the three of `BEYOND`. Classes of fewer than ten
  training rows are left out, with their test rows. A case whose closed form does not exist on all rows or on those of a
  fold has no row in the table. QDA on segment and on digits was left out for the time; cases beyond the size were timed
  again when the folds had been made faster.
- Against it: `GridSearchCV` over the same nine weights, with five folds of `RiskCalibration` and its default settings,
  scored by log-loss, refitted.
- Time is that of the processor for ``fit``, on one thread; the least of three runs where the first takes less than half
  a second.
- Where a model has at most 1,000 parameters the median ratio of the times is to be at least 10; beyond, where folds
  take the place of leave-one-out, at least 3.
- The difference of the test log-losses, ours less that of the grid search, averaged over the models of a set: its mean
  over the sets is to be within 0.01 of zero, with its interval of 95 % (Student's, the sets being independent).

"""

import time
import warnings
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from rcbook.experiments.cells import Cell, Row, Study
from rcbook.experiments.studies import honest_comparison as honest
from rcpkg import LDA, QDA, CategoricalNB, GaussianNB, InvalidStatistics, RiskCalibration, RiskCalibrationCV
from rcpkg.calibration.choose_weight import FOLDS, TARGET_WEIGHTS
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.target_path import MOST_PARAMETERS

SETS = honest.DEVELOPMENT | honest.SET_ASIDE | honest.LARGE
MODELS = {"NB": CategoricalNB(prior_strength=1.0), "GaussianNB": GaussianNB(), "QDA": QDA(), "LDA": LDA()}
CASES = [(name, kind) for name, kind in zip(SETS, cycle(MODELS)) if name != "segment"]
BEYOND = [("digits", "GaussianNB"), ("optdigits", "NB"), ("satellite", "QDA")]
TRAINING_ROWS, TEST_ROWS, LEAST_OF_A_CLASS = 300, 1000, 10
SHORT = 0.5  # seconds
KEY = ["dataset", "model"]


def at_most(n: int, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """At most n of the rows, stratified."""
    return rows if len(rows) <= n else train_test_split(rows, train_size=n, stratify=y[rows], random_state=0)[0]


def digits() -> honest.Split:
    """Pixels as they are, a quarter of the rows for testing."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    return honest.Split(y, y_test, {"z": (X, X_test)})


def rows_of(
    name: str, kind: str, n_train: int = TRAINING_ROWS, least: int = LEAST_OF_A_CLASS
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """At most n training rows, their classes, of which each has so many rows at least, test rows and their classes."""
    data = (
        digits()
        if name == "digits"
        else honest.split(name, SETS[name], int(np.random.SeedSequence(0).generate_state(1)[0]))
    )
    X, X_test = data.features["codes" if kind == "NB" else "z"]
    y, y_test = data.y_train, data.y_test
    train = at_most(n_train, np.arange(len(y)), y)
    kept = np.flatnonzero(np.bincount(y[train]) >= least)
    train, test = train[np.isin(y[train], kept)], np.flatnonzero(np.isin(y_test, kept))
    test = at_most(TEST_ROWS, test, y_test)
    return X[train], np.searchsorted(kept, y[train]), X_test[test], np.searchsorted(kept, y_test[test])


def fitted(learner: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """A fit, and the processor's seconds for it."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and seconds[0] < SHORT):
        start = time.process_time()
        learner = clone(learner).fit(X, y)
        seconds.append(time.process_time() - start)
    return learner, min(seconds)


def compare(name: str, kind: str) -> dict[str, Any]:
    """The row of a case; raises `InvalidStatistics` or `ValueError` where some closed form does not exist."""
    X, y, X_test, y_test = rows_of(name, kind)
    model = clone(MODELS[kind]).fit(X, y)
    form = MinimalForm(model.family_, model.family_.encode(model._check_X(X)), model.statistics_)
    folds = GridSearchCV(
        RiskCalibration(MODELS[kind], step="safe"),
        {"target_weight": TARGET_WEIGHTS},
        scoring="neg_log_loss",
        cv=FOLDS,
        error_score="raise",
    )
    ours, seconds = fitted(RiskCalibrationCV(MODELS[kind], closed_form=False, **honest.WEIGHT_ALONE), X, y)
    grid, grid_seconds = fitted(folds, X, y)
    found = [honest.scores(fit.predict_proba(X_test), y_test) for fit in (ours, grid)]
    return {
        "dataset": name,
        "model": kind,
        "n": len(y),
        "parameters": form.size,
        "validation": ours.validation_,
        "seconds": seconds,
        "grid_seconds": grid_seconds,
        "ratio": grid_seconds / seconds,
        "weight": ours.target_weight_,
        "grid_weight": grid.best_params_["target_weight"],
        "log_loss": found[0]["log_loss"],
        "grid_log_loss": found[1]["log_loss"],
        "error_percent": found[0]["error_percent"],
        "grid_error_percent": found[1]["error_percent"],
    }


def summary(table: pd.DataFrame) -> pd.Series:
    """Median ratios of time, within and beyond the size of a Hessian, and the difference of log-loss over the sets."""
    within = table.parameters <= MOST_PARAMETERS
    difference = (table.log_loss - table.grid_log_loss).groupby(table.dataset).mean()
    half = stats.t.ppf(0.975, len(difference) - 1) * stats.sem(difference)
    return pd.Series(
        {
            "cases within": within.sum(),
            "median ratio within": table.ratio[within].median(),
            "least ratio within": table.ratio[within].min(),
            "cases beyond": (~within).sum(),
            "median ratio beyond": table.ratio[~within].median(),
            "least ratio beyond": table.ratio[~within].min(),
            "sets": len(difference),
            "mean difference": difference.mean(),
            "lower end": difference.mean() - half,
            "upper end": difference.mean() + half,
        }
    )


def measure(cell: Cell, seed: int) -> list[Row]:
    """The row of a case; none where some closed form does not exist."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return [compare(cell.row, cell.method)]
    except ValueError as error:
        raise InvalidStatistics(str(error)) from error


Study(
    "choice-of-weight",
    rows=dict.fromkeys(name for name, _ in CASES + BEYOND),
    methods=lambda cell: [kind for name, kind in CASES + BEYOND if name == cell.row],
    protocol=measure,
    metered=("seconds", "grid_seconds", "ratio"),
    tolerance=1e-4,
)
