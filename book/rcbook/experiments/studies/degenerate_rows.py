"""Held-out log-loss of the Gaussian models, as constructed by default, on rows that determine no covariance, or hardly
(chapter 1).

Each data set is cut in two stratified halves, or as its line says, and each part is held out once; where a set has
columns that are of no use, the same rows without them stand beside it. ``class_frequencies`` is the log-loss of saying
the shares of the classes in the training rows whatever the features. "with a prior" has one of twenty pseudo-rows that
does not depend on units, the remedy where rows are hardly more than features: maximum likelihood exists then, and is
far too sure. "recipe" is README's: standardised features and `RiskCalibration` by its defaults.

"""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.cells import Cell, Row, Study
from rcpkg import LDA, QDA, GaussianNB, RiskCalibration, SharedVarianceGaussianNB

MODELS = QDA, LDA, GaussianNB, SharedVarianceGaussianNB
HALVES = StratifiedKFold(2, shuffle=True, random_state=0)


def few(n: int) -> StratifiedShuffleSplit:
    """Two draws of n training rows, the others held out."""
    return StratifiedShuffleSplit(2, train_size=n, random_state=0)


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray | None, object]]:
    """Name, rows, classes, the rows without the columns that are of no use, and the divisions."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y, X[:, X.std(axis=0) > 0], HALVES
    yield "digits, 80 training rows", X, y, None, few(80)
    yield "digits, 40 training rows", X, y, None, few(40)
    X, y = make_classification(n_samples=1000, n_features=20, shuffle=False, random_state=0)  # columns 2, 3 redundant
    yield "make_classification", X, y, np.delete(X, [2, 3], axis=1), HALVES
    X, y = load_wine(return_X_y=True)
    yield "wine", X, y, None, HALVES
    yield "wine, a constant column", np.c_[X, np.ones(len(X))], y, X, HALVES
    yield "wine, a duplicate column", np.c_[X, X[:, 0]], y, X, HALVES
    rare = np.where(np.arange(len(y)) == np.flatnonzero(y == 0)[0], 3, y)
    yield "wine, a class of one row", X, rare, None, OneRow()
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer, 25 training rows", X, y, None, few(25)
    yield "breast_cancer, 40 training rows", X, y, None, few(40)


class OneRow:
    """Halves of the rows of the classes but the last, whose one row is among the training rows."""

    def split(self, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        only = np.flatnonzero(y == y.max())
        others = np.flatnonzero(y != y.max())
        for train, test in HALVES.split(X[others], y[others]):
            yield np.append(others[train], only), others[test]


def held_out(model: BaseEstimator, X: np.ndarray, y: np.ndarray, divisions: object) -> float:
    """Mean log-loss of the held-out rows."""
    losses = []
    for train, test in divisions.split(X, y):
        P = model.fit(X[train], y[train]).predict_proba(X[test])
        losses.append(log_loss(y[test], P, labels=np.unique(y[train])))
    return float(np.mean(losses))


def rows(only: str) -> Iterator[Row]:
    """A row of the table for each model and way of learning it on a data set."""
    for name, X, y, useful, divisions in data_sets():
        if name != only:
            continue
        frequencies = held_out(DummyClassifier(strategy="prior"), X, y, divisions)
        for kind in MODELS:
            learners = {
                "closed form": kind(),
                "with a prior": kind(prior_strength=20.0, prior_covariance="diagonal", prior_mean="grand"),
                "calibrated": RiskCalibration(kind(), step="safe"),
                "recipe": make_pipeline(StandardScaler(), RiskCalibration(kind(), step="safe")),
            }
            for learner, model in learners.items():
                yield {
                    "dataset": name,
                    "model": kind.__name__,
                    "learner": learner,
                    "log_loss": held_out(model, X, y, divisions),
                    "without_useless_columns": np.nan if useful is None else held_out(model, useful, y, divisions),
                    "class_frequencies": frequencies,
                }


def measure(cell: Cell, seed: int) -> list[Row]:
    """All models on a data set."""
    with warnings.catch_warnings(action="ignore"):
        return list(rows(cell.row))


Study("degenerate-rows", rows=lambda: [name for name, *_ in data_sets()], protocol=measure, tolerance=1e-5)
