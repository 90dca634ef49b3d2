"""What networks cost: passes beside naive Bayes's, and fits with calibration beside gradient boosting, one thread.

Codes of connect-4 and of covertype, whose numbers are cut into ten bins of equally many rows; at most so many rows as
are asked for, three quarters of them for training. ``pass``: processor seconds of one evaluation of the conditional
likelihood and its gradient on encoded rows, the least of five, which is that of one update; ``fit``: processor seconds
of the whole fit, with the encoding, and the most memory
it takes above that of the loaded codes, in a process of its own. To regenerate (needs the data sets, `RCPKG_DATA`):

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/compare_networks.py \
        data/results/benchmark_networks.csv 100000
"""

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from rcbook import datasets
from rcbook.experiments.runner import commit, environment
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer

from rcpkg import TAN, CategoricalNB, KDependenceBayes, RiskCalibration
from rcpkg.calibration import Objective
from rcpkg.families import one_hot

SETS = "connect_4", "covtype"
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
        objective.at(model.statistics_, model.parameters_)
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


def main(path: str, most: int, kinds: tuple[str, ...]) -> None:
    """Each measurement in a process of its own, appended to the table at once."""
    software, code = environment(), commit()
    where = {
        "commit": code["commit"] + ("+" if code["modified"] else ""),
        "versions": ", ".join(f"{name} {number}" for name, number in software["packages"].items()),
        "hardware": ", ".join(str(part) for part in software["hardware"].values()),
    }
    for name in SETS:
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            X, y = rows(name, most)
            X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
            np.savez(file, X=X_train, y=y_train, X_test=X_test, y_test=y_test)
            file.flush()
            labels = [("pass", label) for label in MODELS] + [("fit", label) for label in FITS]
            for kind, label in (pair for pair in labels if pair[0] in kinds):
                command = [sys.executable, __file__, "--one", kind, file.name, label]
                line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
                found = dict(zip(line.split()[::2], map(float, line.split()[1::2]), strict=True))
                row = {"dataset": name, "rows": len(y_train), "kind": kind, "learner": label}
                columns = {c: found.get(c, np.nan) for c in ("seconds", "megabytes", "cells", "log_loss", "updates")}
                table = pd.DataFrame([row | columns | where])
                table.to_csv(path, mode="a", header=not Path(path).exists(), index=False, float_format="%.5g")
                print(row, found, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    if sys.argv[1] == "--one":
        codes = np.load(sys.argv[3])
        measured = pass_seconds if sys.argv[2] == "pass" else fit_once
        result = measured(codes, sys.argv[4])
        print(" ".join(f"{key} {float(value)!r}" for key, value in result.items()))
    else:
        main(sys.argv[1], int(sys.argv[2]), tuple(sys.argv[3:]) or ("pass", "fit"))
