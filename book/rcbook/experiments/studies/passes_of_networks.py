"""What networks cost: passes beside naive Bayes's, and fits with calibration beside gradient boosting, one thread
(chapter 10).

Codes of connect-4 and of covertype, whose numbers are cut into ten bins of equally many rows; at most 100,000
rows, three quarters of them for training. ``pass``: processor seconds of one evaluation of the conditional
likelihood and its gradient on encoded rows, the least of five, which is that of one update; ``fit``: processor seconds
of the whole fit, with the encoding, and the most memory
it takes above that of the loaded codes, in a process of its own.

"""

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer

from rcbook import datasets
from rcbook.experiments.cells import Cell, Grid, Row, Study
from rcbook.experiments.measuring import apart
from rcpkg import TAN, CategoricalNB, KDependenceBayes, RiskCalibration
from rcpkg.calibration import Objective
from rcpkg.families import one_hot

SETS = "connect_4", "covtype"
MOST = 100_000  # rows
MODELS = {
    "CategoricalNB": CategoricalNB(prior_strength=1.0),
    "TAN": TAN(),
    **{f"KDependenceBayes k={k}": KDependenceBayes(k=k) for k in (1, 2, 3)},
    "KDependenceBayes k=2, Sahami": KDependenceBayes(k=2, decomposable=False),
}
FITS = {
    "CategoricalNB, calibrated": RiskCalibration(CategoricalNB(prior_strength=1.0), step="safe", max_iter=100),
    "TAN, calibrated": RiskCalibration(TAN(), target="nested", step="safe", max_iter=100),
    "KDependenceBayes k=2": KDependenceBayes(k=2),
    "KDependenceBayes k=2, calibrated": RiskCalibration(
        KDependenceBayes(k=2), target="nested", step="safe", max_iter=100
    ),
    "gradient boosting": HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0),
}
BINS, TIMES = 10, 5


def rows(name: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes 0, 1, … and labels of a set."""
    bunch = datasets.load(name, "wanbia2014")
    X, y = bunch.data, np.unique(bunch.target, return_inverse=True)[1]
    if len(y) > most:
        chosen = np.sort(np.random.default_rng(0).choice(len(y), most, replace=False))
        X, y = X[chosen], y[chosen]
    columns = []
    for column in X.T:
        if len(np.unique(column)) > 2 * BINS:
            cutter = KBinsDiscretizer(BINS, encode="ordinal", quantile_method="averaged_inverted_cdf")
            column = cutter.fit_transform(column[:, None])[:, 0]
        columns.append(np.unique(column, return_inverse=True)[1])
    return np.column_stack(columns).astype(float), y


def pass_seconds(codes: Mapping[str, np.ndarray], label: str) -> dict[str, float]:
    """Processor seconds of one pass over encoded rows."""
    X, y = codes["X"], codes["y"]
    model = MODELS[label].fit(X, y)
    objective = Objective(model.family_, model.family_.encode(X), one_hot(y, y.max() + 1))
    found = []
    for _ in range(TIMES):
        start = time.process_time()
        objective.evaluate(model.statistics_, model.parameters_)
        found.append(time.process_time() - start)
    return {"seconds": min(found), "cells": float(model.statistics_.cells.size)}


def memory(field: str) -> float:
    """Resident memory of this process in megabytes: now (VmRSS), or the most (VmHWM)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(lines[field].split()[0]) / 1024


def fit_once(codes: Mapping[str, np.ndarray], label: str) -> dict[str, float]:
    """Processor seconds and memory of one fit, and its log-loss on the rows left out."""
    X, y, learner = codes["X"], codes["y"], FITS[label]
    if isinstance(learner, HistGradientBoostingClassifier):
        learner = learner.set_params(categorical_features=np.ones(X.shape[1], dtype=bool))
    Path("/proc/self/clear_refs").write_text("5")  # the most memory so far becomes that of now
    before = memory("VmRSS")
    start = time.process_time()
    learner.fit(X, y)
    seconds = time.process_time() - start
    megabytes = memory("VmHWM") - before
    found = {"seconds": seconds, "megabytes": megabytes, "updates": float(getattr(learner, "n_iter_", np.nan))}
    return found | {"log_loss": log_loss(codes["y_test"], learner.predict_proba(codes["X_test"]))}


def one(name: str, kind: str, label: str) -> dict[str, float]:
    """A measurement, in this process."""
    X, y = rows(name, MOST)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    codes = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return {"rows": len(y)} | (pass_seconds if kind == "pass" else fit_once)(codes, label)


def measure(cell: Cell, seed: int) -> list[Row]:
    """A measurement, in a process of its own."""
    kind, label = cell.setting_value, cell.method
    found = apart(one, cell.row, kind, label)
    row = {"dataset": cell.row, "rows": found["rows"], "kind": kind, "learner": label}
    return [row | {name: found.get(name, np.nan) for name in ("seconds", "megabytes", "cells", "log_loss", "updates")}]


Study(
    "passes-of-networks",
    *(
        Grid(rows=(name,), methods=labels, settings=(kind,), protocol=measure)
        for name in SETS
        for kind, labels in (("pass", MODELS), ("fit", FITS))
    ),
    metered=("seconds", "megabytes"),
    tolerance=1e-4,
)
