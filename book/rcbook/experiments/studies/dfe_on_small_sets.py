"""DFE and risk-based calibration of naive Bayes in batches, on four small sets (supplement of chapter 7; ours).

Twenty divisions, three quarters for training, into states of four equal intervals, or three of grey values; error and
log-loss on the test rows. The supplement, which sets DFE row by row beside them, computed them whenever it ran before
they were stored, so no hypothesis stands before the run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import KBinsDiscretizer

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcpkg import CategoricalNB, DiscriminativeFrequencyEstimate, RiskCalibration
from rcpkg.base import Array

STUDY_NAME, DIVISIONS = "dfe-on-small-sets", 20


class Binned(NamedTuple):
    """A set: what loads it, which features are taken, and where they are cut, or into how many equal intervals."""

    load: Callable[..., Any]
    features: slice
    n_states: int
    levels: tuple[int, ...] | None = None


SETS = {
    "breast cancer": Binned(load_breast_cancer, slice(10), 4),
    "wine": Binned(load_wine, slice(None), 4),
    "iris": Binned(load_iris, slice(None), 4),
    "digits": Binned(load_digits, slice(None, None, 3), 3, (1, 8)),
}
WAYS: dict[str, Callable[[CategoricalNB], Any]] = {
    "closed form": lambda model: model,
    "batch, stopped": lambda model: DiscriminativeFrequencyEstimate(model, max_iter=63),
    "batch, 63 updates": lambda model: DiscriminativeFrequencyEstimate(model, max_iter=63, stopping="none"),
    "RC, safe, pooled target": lambda model: RiskCalibration(model, step="safe", tol=1e-4),
}


def divisions(name: str) -> list[tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]]:
    """Training rows, their labels, test rows and their labels of each division of a set."""
    load, features, n_states, levels = SETS[name]
    X, labels = load(return_X_y=True)
    X, found = X[:, features], []
    splitter = StratifiedShuffleSplit(DIVISIONS, test_size=0.25, random_state=0)
    for train, test in splitter.split(X, labels):
        if levels is not None:
            cut = np.digitize(X, levels)
        else:
            bins = KBinsDiscretizer(n_states, encode="ordinal", strategy="uniform")
            cut = bins.fit(X[train]).transform(X)
        found.append((cut[train], labels[train], cut[test], labels[test]))
    return found


def losses(log_P: Array, labels: NDArray[np.intp]) -> dict[str, float]:
    """Log-loss and error of log posteriors."""
    true = log_P[np.arange(len(labels)), labels]
    return {"log-loss": -true.mean(), "error": np.mean(log_P.argmax(axis=1) != labels)}


def in_batches(cell: Cell, seed: int) -> list[Row]:
    """Losses of one way in each division of a set."""
    found: list[Row] = []
    for division, (rows, y, test, y_test) in enumerate(divisions(cell.row)):
        model = CategoricalNB(n_states=SETS[cell.row].n_states, prior_strength=1.0)
        log_P = clone(WAYS[cell.method](model)).fit(rows, y).predict_log_proba(test)
        found.append({"set": cell.row, "division": division, "way": cell.method, **losses(log_P, y_test)})
    return found


Study(STUDY_NAME, rows=SETS, methods=WAYS, protocol=in_batches, tolerance=SEARCHED)
