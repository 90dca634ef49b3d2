"""Which one weight of the pooled target does best (chapter 11)? The table behind the default of
`RiskCalibration`.

The honest comparison tunes the weight in each of its splits from 0.3, 3 and 30, and stores the scores of what was tuned
but not the weights. Here each weight is fixed beforehand, on divisions of the same kind of its data sets, the large
ones excepted, with its models, features and number of updates. The table has the mean test log-loss of each weight, and
of the closed form under the weight 0; sets where that does not exist are left out. The default is the weight whose
log-loss is on average least above the least of its set.

"""

import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from rcbook.experiments.cells import Cell, Grid, Row, Study
from rcbook.experiments.studies import honest_comparison as honest
from rcbook.experiments.studies.data_and_models_of_rc import RC_PRIOR, rc_model
from rcpkg import RiskCalibration

WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STARTS = {"NB": "MAP", "QDA": "ML"}  # as in the honest comparison
SETS = honest.DEVELOPMENT | honest.SET_ASIDE
SPLITS = 5


def log_losses(name: str, family: str) -> dict[float, float]:
    """Mean test log-loss of each weight; of the closed form under 0."""
    found: dict[float, list[float]] = {weight: [] for weight in (0.0, *WEIGHTS)}
    for seed in np.random.SeedSequence(0).generate_state(SPLITS):
        data = honest.split(name, SETS[name], int(seed))
        X, X_test = data.features["codes" if family == "NB" else "z"]
        model = rc_model(family, STARTS[family], X, data.y_train.max() + 1, RC_PRIOR[family])
        settings = {"step": "safe", "stopping": "none", "max_iter": honest.PENALISED_ITERATIONS, "tol": 0.0}
        for weight, losses in found.items():
            learner = RiskCalibration(model, target_weight=weight, **settings) if weight else model
            P = learner.fit(X, data.y_train).predict_proba(X_test)
            losses.append(honest.scores(P, data.y_test)["log_loss"])
    return {weight: float(np.mean(losses)) for weight, losses in found.items()}


def excess(table: pd.DataFrame) -> pd.DataFrame:
    """Log-loss above the least of all weights: a row a family and data set, a column a weight."""
    losses = table[table.weight > 0].pivot(index=["family", "dataset"], columns="weight", values="log_loss")
    return losses.sub(losses.min(axis=1), axis=0)


def measure(cell: Cell, seed: int) -> list[Row]:
    """A row a weight."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        found = log_losses(cell.row, cell.method)
    return [{"family": cell.method, "dataset": cell.row, "weight": w, "log_loss": loss} for w, loss in found.items()]


Study("target-weights", *(Grid(rows=SETS, methods=(family,), protocol=measure) for family in STARTS), tolerance=1e-4)
