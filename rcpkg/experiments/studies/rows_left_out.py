"""How near approximate leave-one-out of `RiskCalibrationCV` is to refits, by weight and number of rows (chapter 9)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut

from rcpkg.calibration import RiskCalibration, RiskCalibrationCV
from rcpkg.experiments.cells import STUDY, Cell, Record, mean_record, name_of
from rcpkg.experiments.scorecard import results
from rcpkg.experiments.studies.laws_of_calibration import CASES, truth

STUDY_NAME = "rows-left-out"
FAMILIES = ("LDA", "QDA", "GaussianNB", "CategoricalNB")
SIZES, SAMPLES = (30, 60), 2
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
EXACT = {"tol": 1e-10, "max_iter": 10_000}


def compare(cell: Cell, seed: int) -> list[Record]:
    """Mean log-losses for each weight: of rows left out one by one, the same by one Newton step, the second less the
    first, and of the training rows."""
    model, n, rng = truth(cell.row), int(cell.setting_value), np.random.RandomState(seed % 2**32)
    found: dict[tuple[float, str], list[float]] = {}
    while len(found.get((WEIGHTS[0], "exact"), ())) < cell.arguments["repetitions"]:
        X, y = model.sample(n, rng)
        if np.unique(y, return_counts=True)[1].min() < 4 + model.n_features_in_:  # too few for the closed form
            continue
        estimator = clone(CASES[cell.row].model)
        if cell.row == "CategoricalNB":
            estimator.set_params(n_states=3)
        for name, cv in (("exact", LeaveOneOut()), ("approximate", "loo")):
            table = RiskCalibrationCV(estimator, target_weights=WEIGHTS, cv=cv, **EXACT).fit(X, y).cv_results_
            for b, loss in zip(table.target_weight, table.log_loss):
                found.setdefault((b, name), []).append(loss)
        for b in WEIGHTS:
            fitted = RiskCalibration(estimator, target_weight=b, **EXACT).fit(X, y)
            found.setdefault((b, "training"), []).append(fitted.history_.log_loss.iloc[-1])
    for b in WEIGHTS:
        found[b, "difference"] = [a - e for a, e in zip(found[b, "approximate"], found[b, "exact"])]
    return [mean_record(f"{b:g}", name, values) for (b, name), values in found.items()]


def cells(study: str) -> Iterator[Cell]:
    """A cell for each family and number of rows."""
    for name in FAMILIES:
        for n in SIZES:
            arguments = {"repetitions": SAMPLES}
            yield Cell(STUDY, study, name, "", name_of(compare), arguments, f"{n}", quick=n == SIZES[0])


def tidy() -> pd.DataFrame:
    """The stored study: log-loss and its standard error for each family, number of rows n, weight and way to get it."""
    found = results(STUDY, STUDY_NAME).rename(columns={"row": "family", "setting_value": "n", "method": "weight"})
    found = found.assign(n=found["n"].astype(int), weight=found["weight"].astype(float))
    return found[["family", "n", "weight", "metric", "value", "value_se", "n_runs"]]
