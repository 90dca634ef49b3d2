"""CatBoost, LightGBM and explainable boosting beside calibrated models (page *Why not …?*; ours).

The page measured no boosting but scikit-learn's. Here are three libraries more, at their own defaults, as are those of
scikit-learn and ours. Sets of numbers of the study ``what-calibration-keeps`` and others of its kind, with one division
into halves, at most `ROWS` rows for training.

Measured on the rows left out: log-loss, error, and log-loss where each value is hidden with the probability `HIDDEN`,
which no training row has. CatBoost, LightGBM, explainable boosting and scikit-learn's boosting take NaN; logistic
regression has means of training in its place; ours sum out. Further the seconds of a fit, of one row and of a row in a
batch of all test rows (of the processor, least of `ROUNDS`, one thread), and the bytes of the pickle. Our one row is by
`scorer`, of which the bytes are those of its JSON.

Fixed before the first run, over the sets:

1. On complete rows CatBoost has less mean log-loss than both calibrated models.
2. With hidden values calibrated QDA has less log-loss than each of the three libraries on at least 7 of the 10 sets.
3. Our scorers take less time for one row than each rival, on every set.

Nothing was reduced or tuned after a run. The packages are those of ``locks/peers.txt`` (`make peers`); a cell names
their versions.
"""

import pickle
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments import results
from rcbook.experiments.cells import STUDY, Cell, Row, Study
from rcbook.experiments.studies import what_calibration_keeps as keeps
from rcpkg import QDA, GaussianNB, RiskCalibration

STUDY_NAME = "beside-boosting-libraries"
SETS = ("blood_transfusion", "diabetes", "glass", "haberman", "indian_liver", "ionosphere", "iris", "liver_disorder")
SETS += ("redwine", "wine")
ROWS, HIDDEN, ROUNDS = 500, 0.5, 5
LEAST_OF_A_CLASS = 10
CATBOOST, LIGHTGBM, EBM = "CatBoost", "LightGBM", "explainable boosting"
LIBRARIES = {CATBOOST: "catboost", LIGHTGBM: "lightgbm", EBM: "interpret-core"}
OURS = {"QDA, calibrated": RiskCalibration(QDA()), "GaussianNB, calibrated": RiskCalibration(GaussianNB())}
SKLEARN = {
    "scikit-learn boosting": HistGradientBoostingClassifier(random_state=0),
    "logistic regression": make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000)),
}


def learner(name: str) -> Any:
    """A classifier at its defaults, on one thread."""
    if name == CATBOOST:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(thread_count=1, random_seed=0, verbose=False, allow_writing_files=False)
    if name == LIGHTGBM:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)
    if name == EBM:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=1, random_state=0)
    return (SKLEARN | OURS)[name]


def seconds(task: Callable[[], object]) -> float:
    """Least seconds of the processor."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        task()
        found.append(time.process_time() - start)
    return min(found)


def compared(cell: Cell, seed: int) -> list[Row]:
    """The row of a set and a learner."""
    X, y = keeps.rows_of(cell.row)
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 2 * LEAST_OF_A_CLASS))
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    train, test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    train, y = train[:ROWS], y[:ROWS]
    gappy = np.where(np.random.default_rng(0).uniform(size=test.shape) < HIDDEN, np.nan, test)
    model, start = learner(cell.method), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries, on columns and rounds
        model.fit(train, y)
        found: dict[str, Any] = {"data": cell.row, "model": cell.method, "fit": time.process_time() - start}
        P = model.predict_proba(test)
        found |= {"log_loss": keeps.log_loss(P, y_test), "error": float((P.argmax(axis=1) != y_test).mean())}
        found["log_loss_hidden"] = keeps.log_loss(model.predict_proba(gappy), y_test)
        found["batch_row"] = seconds(lambda: model.predict_proba(test)) / len(test)
        scorer = model.scorer() if cell.method in OURS else None
        one = (lambda: scorer.predict_proba(test[0])) if scorer else (lambda: model.predict_proba(test[:1]))
        found["one_row"] = seconds(lambda: [one() for _ in range(20)]) / 20
    found["bytes"] = len(scorer.to_json()) if scorer else len(pickle.dumps(model))
    package = LIBRARIES.get(cell.method, "rcpkg" if scorer else "scikit-learn")
    return [found | {"version": f"{package} {version(package)}"}]


METERED = ("fit", "one_row", "batch_row", "bytes", "version")
Study(
    STUDY_NAME,
    rows=SETS,
    methods=(*LIBRARIES, *SKLEARN, *OURS),
    protocol=compared,
    tolerance=1e-5,
    metered=METERED,
)


def stored() -> pd.DataFrame:
    """A row a set and learner."""
    return results(STUDY, STUDY_NAME)


def summary() -> pd.DataFrame:
    """Of each learner the means over the sets, medians of times and bytes."""
    groups = stored().groupby("model", sort=False)
    means = groups[["log_loss", "error", "log_loss_hidden"]].mean()
    middle = groups[["fit", "one_row", "batch_row", "bytes"]].median()
    units = {"fit": ("fit, s", 1.0), "one_row": ("one row, ms", 1e3), "batch_row": ("row of a batch, µs", 1e6)}
    units["bytes"] = ("size, kB", 1e-3)
    for name, (heading, unit) in units.items():
        means[heading] = middle[name] * unit
    return means.rename(columns={"log_loss": "log-loss", "log_loss_hidden": "log-loss, half hidden"})


def verdicts() -> pd.Series:
    """Whether each hypothesis holds."""
    losses = stored().pivot(index="data", columns="model", values="log_loss")
    hidden = stored().pivot(index="data", columns="model", values="log_loss_hidden")
    row = stored().pivot(index="data", columns="model", values="one_row")
    wins = hidden[[*LIBRARIES]].gt(hidden["QDA, calibrated"], axis=0).sum()
    slower = row.drop(columns=[*OURS]).min(axis=1) / row[[*OURS]].max(axis=1)
    best = losses[CATBOOST].mean() < losses[[*OURS]].mean().min()
    return pd.Series(
        {
            "1. CatBoost has less mean log-loss on complete rows": best,
            f"2. calibrated QDA ahead with hidden values on {wins.min()} to {wins.max()} sets": wins.min() >= 7,
            f"3. rivals take at least {slower.min():.1f} times as long for one row": slower.min() > 1,
        }
    )
