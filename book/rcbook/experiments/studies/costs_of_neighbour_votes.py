"""What smoothing does to the cost of nearest neighbours when errors cost differently (chapter 3; ours).

The conclusion of thesis2007 says that Laplace smoothing of weighted nearest neighbours "can reduce the error rate by a
large multiplicative factor when the misclassification costs are highly asymmetric", and shows no experiment. Here
it is: two-class data sets, an error on the rare class costs ``ratio`` times an error on the other.
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from rcbook import datasets
from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcpkg.base import Array
from rcpkg.local import BregmanKNN, least_cost, smoothed_probabilities

STUDY_NAME = "knn-costs"
DATASETS = (
    "blood_transfusion",
    "diabetes",
    "german",
    "haberman",
    "heart",
    "indian_liver",
    "ionosphere",
    "mammographic",
    "qsar",
    "sonar",
)
SIZES = (1, 3, 5, 9, 15, 25, 51)
RATIOS = (1, 2.1, 5.1, 10.1, 20.1, 50.1)  # a little off whole numbers: no vote ties two expected costs
WEIGHTS = ("uniform", "tricube")
SMOOTHINGS = {"plain": 0.0, "smoothed": 1.0}
RUNS = 50


def knn_costs(cell: Cell, seed: int) -> list[Record]:
    """Mean test cost a row, over stratified halvings, for each k and cost ratio; features standardised.

    Methods "plain" (3.1), "smoothed" (3.5) and "saving", their paired difference; "rare" always predicts the rare
    class, whose errors cost ``ratio``, and "common" never does. Metrics are ``k=…|ratio=…``.
    """
    bunch = datasets.load(cell.row, cell.arguments["variant"])
    counts = np.unique(bunch.target, return_counts=True)
    rare = (bunch.target == counts[0][counts[1].argmin()]).astype(int)
    costs: dict[tuple[str, str], list[float]] = {}
    for train, test in StratifiedShuffleSplit(cell.arguments["repetitions"], test_size=0.5, random_state=seed).split(
        bunch.data, rare
    ):
        scaler = StandardScaler().fit(bunch.data[train])
        A, T = scaler.transform(bunch.data[train]), scaler.transform(bunch.data[test])
        for k in SIZES:
            model = BregmanKNN(n_neighbors=k, weights=cell.arguments["weights"], smoothing=0.0).fit(A, rare[train])
            votes = k * model.predict_proba(T)
            for ratio in RATIOS:
                for method, value in _costs(votes, rare[test], ratio).items():
                    costs.setdefault((method, f"k={k}|ratio={ratio}"), []).append(value)
    return [mean_record(method, metric, v) for (method, metric), v in costs.items()]


def _costs(votes: Array, truth: np.ndarray, ratio: float) -> dict[str, float]:
    """Mean cost of each method on one test half."""
    cost = np.array([[0.0, ratio], [1.0, 0.0]])
    decided = {name: least_cost(smoothed_probabilities(votes, s), cost) for name, s in SMOOTHINGS.items()}
    decided |= {"rare": np.ones(len(truth), dtype=int), "common": np.zeros(len(truth), dtype=int)}
    found = {name: float(cost[d, truth].mean()) for name, d in decided.items()}
    return found | {"saving": found["plain"] - found["smoothed"]}


Study(
    STUDY_NAME,
    rows=DATASETS,
    settings=WEIGHTS,
    protocol=knn_costs,
    arguments=lambda cell: {"variant": "rc2024", "weights": cell.setting_value, "repetitions": RUNS},
    stream=lambda cell: cell.row,  # both weightings meet the same halvings
    quick=lambda cell: cell.row in ("haberman", "heart", "sonar"),
)


def tidy() -> pd.DataFrame:
    """The stored study: mean cost, its standard error and the runs for each data set, weighting, k, ratio, method."""
    setting = r"k=(?P<k>\d+)\|ratio=(?P<cost_ratio>[\d.]+)"
    found = readings.tidy(STUDY_NAME, row="dataset", setting_value="weights", metric=setting)
    return found.rename(columns={"value": "mean_cost"})
