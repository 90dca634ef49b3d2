"""Which one weight of the pooled target does best? Prints the means behind the default of `RiskCalibration`.

The honest comparison tunes the weight in each of its splits from 0.3, 3 and 30 and stores the scores of what was
tuned, not the weights. Here each weight is fixed beforehand, on divisions of the same kind of its data sets,
with its models, features and number of updates. For each weight: the mean over the data sets of the test
log-loss above the least of all weights there, the number of sets where it is least, and on how many its log-loss is
below that of the closed form, from the same statistics and prior. To regenerate (needs the data sets, `RCPKG_DATA`):

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/compare_target_weights.py
"""

import warnings
from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from rcpkg import InvalidStatistics, RiskCalibration
from rcpkg.experiments.studies import honest_comparison as honest
from rcpkg.experiments.studies.data_and_models_of_rc import RC_PRIOR, rc_model

WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STARTS = {"NB": "MAP", "QDA": "ML"}  # as in the honest comparison
SPLITS = 5
SETS = {"development": honest.DEVELOPMENT, "set aside": honest.SET_ASIDE}


def log_losses(name: str, variant: str, family: str) -> dict[float, float]:
    """Mean test log-loss of each weight; of the closed form under 0."""
    found: dict[float, list[float]] = {weight: [] for weight in (0.0, *WEIGHTS)}
    for seed in np.random.SeedSequence(0).generate_state(SPLITS):
        data = honest.split(name, variant, int(seed))
        X, X_test = data.features["codes" if family == "NB" else "z"]
        model = rc_model(family, STARTS[family], X, data.y_train.max() + 1, RC_PRIOR[family])
        for weight, losses in found.items():
            learner = model
            if weight:
                learner = RiskCalibration(
                    model, step="safe", stopping="none", max_iter=honest.PENALISED_ITERATIONS, target_weight=weight
                )
            P = learner.fit(X, data.y_train).predict_proba(X_test)
            losses.append(honest.scores(P, data.y_test)["log_loss"])
    return {weight: float(np.mean(losses)) for weight, losses in found.items()}


def table(family: str, sets: Mapping[str, str]) -> pd.DataFrame:
    """Test log-loss: a row a data set, a column a weight; sets where the closed form fails are left out."""
    rows = {}
    for name, variant in sets.items():
        try:
            rows[name] = log_losses(name, variant, family)
        except InvalidStatistics:
            continue
    return pd.DataFrame(rows).T


def main() -> None:
    """Print the tables, and their summaries."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for family, (title, sets) in product(STARTS, SETS.items()):
        losses = table(family, sets)
        weights = losses[list(WEIGHTS)]
        excess = weights.sub(weights.min(axis=1), axis=0)
        summary = pd.DataFrame(
            {
                "mean excess": excess.mean(),
                "median excess": excess.median(),
                "greatest excess": excess.max(),
                "least on": excess.eq(0).sum(),
                "below the closed form on": weights.lt(losses[0.0], axis=0).sum(),
            }
        )
        print(
            f"\n{family}, {len(losses)} sets: {title}",
            losses.round(4).to_string(),
            summary.round(4).to_string(),
            sep="\n",
        )


if __name__ == "__main__":
    main()
