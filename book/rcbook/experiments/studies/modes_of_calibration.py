"""What three modes of calibration do to three models on three sets of scikit-learn (chapter 4).

Naive Bayes of five bins with one pseudo-row a distribution, QDA, and the closed-form logistic regression, on iris, wine
and breast cancer; bins, means and scales are learnt from the training rows. Calibration as published, by safe steps,
and by safe steps with the pooled target of weight 3, at most 63 updates each, beside the closed form.

``modes-of-calibration`` has ten splits of each set, three quarters for training; ``modes-by-training-rows`` has eight
splits of breast cancer for each of five numbers of training rows, 150 rows for testing, without the second mode and
QDA. The chapter computed both whenever it ran before they were stored, so no hypothesis stands before the run: it shows
means with their corrected standard errors.
"""

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcpkg import QDA, CategoricalNB, RiskCalibration, SharedVarianceGaussianNB
from rcpkg.base import Array

MODES_STUDY, ROWS_STUDY = "modes-of-calibration", "modes-by-training-rows"
SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
MODELS = {
    "naive Bayes": (
        KBinsDiscretizer(5, encode="ordinal", strategy="kmeans"),
        CategoricalNB(n_states=5, prior_strength=1.0),
    ),
    "QDA": (StandardScaler(), QDA()),
    "logistic": (StandardScaler(), SharedVarianceGaussianNB(rows_per_feature=0.0)),  # maximum likelihood
}
SAFE = partial(RiskCalibration, step="safe", max_iter=63)
MODES = {
    "published": RiskCalibration.as_published,
    "safe": partial(SAFE, target_weight=0.0),
    "safe, target": partial(SAFE, target="pooled", target_weight=3.0),
}
CLOSED = "closed form"
NUMBERS_OF_ROWS, TESTED = (60, 100, 160, 250, 400), 150


def losses(joint: Array, labels: Array) -> tuple[float, float, float]:
    """Soft error, error and log-loss of joint log densities."""
    true = log_softmax(joint, axis=1)[np.arange(len(labels)), labels]
    wrong = joint.argmax(axis=1) != labels
    return np.mean(-np.expm1(true)), np.mean(wrong), np.mean(-true)


def splits(y: Array, number: int, seed: int = 0, **sizes: Any) -> Iterator[tuple[Array, Array]]:
    """Training and test rows of stratified splits, a quarter for testing unless sizes are given."""
    splitter = StratifiedShuffleSplit(number, random_state=seed, **(sizes or {"test_size": 0.25}))
    return splitter.split(np.zeros(len(y)), y)


def compared(cell: Cell, modes: Iterable[str], parts: Iterable[tuple[Array, Array]]) -> Iterator[Row]:
    """Of each split the test losses of the closed form and of the modes, and the updates kept and why a run ended."""
    X, y = SETS[cell.row](return_X_y=True)
    scaler, model = MODELS[cell.method]
    learners = {CLOSED: model} | {mode: MODES[mode](model) for mode in modes}
    for split, (train, test) in enumerate(parts):
        prepared = scaler.fit(X[train]).transform(X)
        for mode, learner in learners.items():
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                fit = clone(learner).fit(prepared[train], y[train])
            _, error, log_loss = losses(fit.predict_joint_log_proba(prepared[test]), y[test])
            end = {} if mode == CLOSED else {"kept": fit.best_iter_, "end": fit.stop_reason_}
            names = {"set": cell.row, "model": cell.method, "split": split, "mode": mode}
            yield names | {"error": error, "log_loss": log_loss} | end


def of_splits(cell: Cell, seed: int) -> list[Row]:
    """Ten splits of a set."""
    _, y = SETS[cell.row](return_X_y=True)
    return list(compared(cell, MODES, splits(y, 10, seed=1)))


def by_training_rows(cell: Cell, seed: int) -> list[Row]:
    """Eight splits of a set with so many training rows."""
    _, y = SETS[cell.row](return_X_y=True)
    size = int(cell.setting_value)
    parts = splits(y, 8, seed=2, train_size=size, test_size=TESTED)
    return [{"size": size} | row for row in compared(cell, ("published", "safe, target"), parts)]


Study(MODES_STUDY, rows=SETS, methods=MODELS, protocol=of_splits, tolerance=SEARCHED)
Study(
    ROWS_STUDY,
    rows=("breast cancer",),
    methods=("naive Bayes", "logistic"),
    settings=NUMBERS_OF_ROWS,
    protocol=by_training_rows,
    tolerance=SEARCHED,
)
