"""What the seed of local BDA does to its probabilities and costs as the rows grow in number (chapter 16; ours).

Two problems whose posterior is known. The number of neighbours stays at 30 or grows with the rows; pooled nearest
neighbours stand beside, with as many rows in their neighbourhoods.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcpkg.base import Array, GenerativeClassifier
from rcpkg.local import BregmanKNN, LocalBDA, least_cost

STUDY_NAME = "local-seeds"
SIZES = (200, 632, 2000, 6325, 20_000)
QUERIES, RUNS = 400, 10
FIXED_K = 30
SEEDS = {"B = I": 1.0, "trace": "trace", "neighborhood": "neighborhood"}
NORMAL_SHIFT, NORMAL_FEATURES = 1.5, 4


class Problem(NamedTuple):
    """Probability of class 1, and costs of predicting g (row) where h (column) is true."""

    weight: float
    cost: Array


PROBLEMS = {
    # the features say nothing: the posterior is (0.2, 0.8) everywhere, and class 1 of less expected cost
    "square": Problem(0.8, np.array([[0.0, 1.0], [3.0, 0.0]])),
    "normal": Problem(0.3, np.array([[0.0, 3.0], [1.0, 0.0]])),
}


def growing(n: int) -> int:
    """30 at n = 200, and then like n^0.7: so that k (k/n)^(2/d) grows in two and in four dimensions."""
    return round(FIXED_K * (n / SIZES[0]) ** 0.7)


def draw(name: str, n: int, rng: np.random.RandomState) -> tuple[Array, Array, Array]:
    """Rows, labels and the true probability of class 1 at the rows.

    "square": uniform on the unit square. "normal": N(0, I) and N(1.5 e_1, I) in four dimensions.
    """
    weight = PROBLEMS[name].weight
    y = (rng.uniform(size=n) < weight).astype(int)
    if name == "square":
        return rng.uniform(size=(n, 2)), y, np.full(n, weight)
    X = rng.normal(size=(n, NORMAL_FEATURES))
    X[:, 0] += NORMAL_SHIFT * y
    return X, y, expit(np.log(weight / (1 - weight)) + NORMAL_SHIFT * (X[:, 0] - NORMAL_SHIFT / 2))


def judge(p: Array, truth: Array, cost: Array) -> dict[str, float]:
    """Probabilities ``p`` of class 1 beside the true ones: their mean, their distance, and what is lost in log-loss, in
    expected cost and in error by deciding by them, beside the Bayes decision."""
    true, found = (np.column_stack([1 - v, v]) for v in (truth, p))
    tiny = np.finfo(float).tiny
    lost = {}
    for name, C in (("excess_cost", cost), ("excess_error", 1 - np.eye(2))):
        risk = true @ C.T
        lost[name] = float((risk[np.arange(len(p)), least_cost(found, C)] - risk.min(axis=1)).mean())
    return {
        "mean_p1": float(p.mean()),
        "p1_distance": float(np.abs(p - truth).mean()),
        "excess_log_loss": float((true * np.log(true / np.maximum(found, tiny))).sum(axis=1).mean()),
        **lost,
    }


def classifiers(n: int) -> dict[str, GenerativeClassifier]:
    """Local BDA by seed and rule for k, and nearest neighbours with as many rows."""
    models: dict[str, GenerativeClassifier] = {}
    for rule, k in (("k = 30", FIXED_K), ("k grows", growing(n))):
        models |= {f"{name}, {rule}": LocalBDA(n_neighbors=k, seed=seed) for name, seed in SEEDS.items()}
        models[f"k-NN, {rule}"] = BregmanKNN(n_neighbors=2 * k)
    return models


def grow(cell: Cell, seed: int) -> list[Record]:
    """Each classifier after n rows, on new queries: means over runs of what `judge` gives."""
    n, found = int(cell.setting_value), {}
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        rng = np.random.RandomState(run)
        X, y, _ = draw(cell.row, n, rng)
        Q, _, truth = draw(cell.row, QUERIES, rng)
        for name, model in classifiers(n).items():
            P = model.fit(X, y).predict_proba(Q)
            for metric, value in judge(P[:, 1], truth, PROBLEMS[cell.row].cost).items():
                found.setdefault((name, metric), []).append(value)
    return [mean_record(*key, values) for key, values in found.items()]


Study(
    STUDY_NAME,
    rows=PROBLEMS,
    settings=SIZES,
    protocol=grow,
    arguments={"repetitions": RUNS},
    stream=lambda cell: f"{cell.row}:{cell.setting_value}",
    quick=lambda cell: cell.setting_value == str(SIZES[0]),
)


tidy = partial(readings.tidy, STUDY_NAME, row="problem", setting_value="n", method=r"(?P<seed>.*), (?P<k>.*)")
