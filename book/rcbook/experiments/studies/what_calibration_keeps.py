"""What a joint model can do beside classifying, before and after calibration (chapter 13; ours).

Sets of numbers on which the chapter's method has been tried before. Each run halves the rows; the closed form and two
calibrations are fitted to one half, and judged on the other: reasons for predictions, novelty of a class left out,
other class weights, unlabelled rows, rows drawn.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook import datasets
from rcbook.experiments import readings
from rcbook.experiments.cells import SEARCHED, Cell, Record, Study, mean_record
from rcpkg import QDA, GaussianNB, RiskCalibration
from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, log_posterior
from rcpkg.calibration import Objective
from rcpkg.explain import sufficient_sets

STUDY_NAME = "what-calibration-keeps"
SETS = ("iris", "wine", "breast cancer", "vehicle", "segment", "waveform", "pendigits")
FAMILIES = {"QDA": QDA(), "GaussianNB": GaussianNB()}
RUNS, MOST_ROWS = 5, 1000
LEVEL, LARGEST_SET, EXPLAINED = 0.95, 3, 60  # of sufficient sets, and of test rows that have them
LEFT_OUT = 3  # classes that are new in turn, at most
TIMES = 5.0  # as many rows of one class as of old, in proportion
LABELLED = 8  # rows of each class that have a label
EM_UPDATES = 200
TARGET_WEIGHT = 3.0  # of pooled and grand targets; others count for as many pseudo-rows
FLOOR = 1e-12  # of probabilities, under the logarithm

Scores = dict[tuple[str, str], float]
Topic = Callable[
    [GenerativeClassifier, Array, NDArray[np.intp], Array, NDArray[np.intp], np.random.RandomState], Scores
]


def learners(family: GenerativeClassifier) -> dict[str, GenerativeClassifier]:
    """The closed form, and what calibration makes of it: drawn to the pooled target, or to the closed form itself."""
    return {
        "closed form": clone(family),
        "pooled": RiskCalibration(family),
        "generative": RiskCalibration(family, target="generative", target_weight=1.0),
    }


def rows_of(name: str) -> tuple[Array, NDArray[np.intp]]:
    """Rows and class numbers, at most `MOST_ROWS`; of segment without the feature that is constant."""
    bunch = load_breast_cancer() if name == "breast cancer" else datasets.load(name)
    X, y = np.asarray(bunch.data, dtype=float), np.unique(bunch.target, return_inverse=True)[1]
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    return X[:, np.ptp(X, axis=0) > 0], y


def log_loss(P: Array, y: NDArray[np.intp]) -> float:
    """Mean of −log p(y | x)."""
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], FLOOR)).mean())


def reasons(family: Any, X: Array, y: NDArray, X_test: Array, y_test: NDArray, rng: np.random.RandomState) -> Scores:
    """Of smallest sufficient sets, as far as there are small ones: their share and size, how sure they are of the class
    and how often it is the right one."""
    some, found = rng.permutation(len(y_test))[:EXPLAINED], {}
    for name, model in learners(family).items():
        P = model.fit(X, y).predict_proba(X_test[some])
        features, probability = sufficient_sets(model, X_test[some], LEVEL, LARGEST_SET)
        small = features.sum(axis=1) <= LARGEST_SET
        right = P.argmax(axis=1) == y_test[some]
        found[name, "log_loss"] = log_loss(P, y_test[some])
        found[name, "share"] = float(small.mean())
        if small.any():
            found[name, "size"] = float(features[small].sum(axis=1).mean())
            found[name, "posterior"] = float(probability[small].mean())
            found[name, "right"] = float(right[small].mean())
    return found


def novelty(family: Any, X: Array, y: NDArray, X_test: Array, y_test: NDArray, rng: np.random.RandomState) -> Scores:
    """Mean AUC of −log p(x), of 1 − the greatest posterior and of an isolation forest for a class left out."""
    runs: dict[tuple[str, str], list[float]] = {}
    for k in rng.permutation(y.max() + 1)[:LEFT_OUT]:
        new, known = y_test == k, y != k
        for name, model in learners(family).items():
            model.fit(X[known], y[known])
            runs.setdefault((name, "auc"), []).append(roc_auc_score(new, -model.score_samples(X_test)))
            doubt = 1 - model.predict_proba(X_test).max(axis=1)
            runs.setdefault((name, "auc_of_doubt"), []).append(roc_auc_score(new, doubt))
        forest = IsolationForest(random_state=0).fit(X[known])
        runs.setdefault(("isolation forest", "auc"), []).append(roc_auc_score(new, -forest.score_samples(X_test)))
    return {key: float(np.mean(values)) for key, values in runs.items()}


def reweighted(P: Array, old: Array, new: Array) -> Array:
    """p(y | x) π′_y / π_y, scaled to add up to one."""
    return np.exp(log_posterior(np.log(np.maximum(P, FLOOR)) + np.log(new / old), np.log(new)))


def estimated_weights(P: Array, old: Array, updates: int = EM_UPDATES) -> Array:
    """Class weights of unlabelled rows with posteriors P at old ones, by EM (Saerens and others, 2002)."""
    new = old
    for _ in range(updates):
        new = np.maximum(reweighted(P, old, new).mean(axis=0), FLOOR)
    return new / new.sum()


def weights(family: Any, X: Array, y: NDArray, X_test: Array, y_test: NDArray, rng: np.random.RandomState) -> Scores:
    """Log-loss where a class is more frequent in use: posteriors as they are, for the weights known, and estimated."""
    r, runs = y.max() + 1, {}
    old = np.bincount(y) / len(y)
    rivals = learners(family) | {"logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))}
    fits = {name: model.fit(X, y).predict_proba(X_test) for name, model in rivals.items()}
    for k in range(r):
        change = np.where(np.arange(r) == k, TIMES, 1.0)
        new = old * change / (old @ change)
        rows = rng.choice(len(y_test), len(y_test), p=change[y_test] / change[y_test].sum())
        for name, P in fits.items():
            ways = {"as_they_are": old, "known": new, "estimated": estimated_weights(P[rows], old)}
            for way, at in ways.items():
                runs.setdefault((name, way), []).append(log_loss(reweighted(P[rows], old, at), y_test[rows]))
    return {key: float(np.mean(values)) for key, values in runs.items()}


def with_unlabelled(family: Any, X: Array, y: NDArray[np.intp], others: Array, P: Array) -> GenerativeClassifier:
    """The closed form of labelled rows and of others, each of which counts once a class, by its posterior P."""
    r = P.shape[1]
    rows, codes = np.vstack([X, *[others] * r]), np.append(y, np.repeat(np.arange(r), len(others)))
    return clone(family).fit(rows, codes, sample_weight=np.append(np.ones(len(y)), P.T.ravel()))


def fitted_by_em(family: Any, X: Array, y: NDArray[np.intp], others: Array, updates: int = 50) -> GenerativeClassifier:
    """The model of greatest likelihood of labelled and unlabelled rows, as long as covariances exist."""
    model = clone(family).fit(X, y)
    for _ in range(updates):
        try:
            model = with_unlabelled(family, X, y, others, np.maximum(model.predict_proba(others), FLOOR))
        except InvalidStatistics:
            break
    return model


def unlabelled(family: Any, X: Array, y: NDArray, X_test: Array, y_test: NDArray, rng: np.random.RandomState) -> Scores:
    """Log-loss with few labels: the closed form of the labelled rows, and by EM of all; and calibrated on the labelled
    rows to targets of these rows, or of all, that count for as many pseudo-rows."""
    few = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:LABELLED] for c in range(y.max() + 1)])
    varies = np.ptp(X[few], axis=0) > 0  # a feature that is constant there leaves the model, and fits no target
    X, X_test = X[:, varies], X_test[:, varies]
    X_few, y_few, others = X[few], y[few], np.delete(X, few, axis=0)
    by_em = fitted_by_em(family, X_few, y_few, others)
    at_random = np.full((len(X), y.max() + 1), 1 / (y.max() + 1))
    one_for_all = with_unlabelled(family, X[:0], y[:0], X, at_random)
    size = Objective.from_estimator(family, X_few, y_few, target="grand", target_weight=1.0).target.size
    models = {"closed form": clone(family), "pooled": RiskCalibration(family)}
    models["grand"] = RiskCalibration(family, target="grand", target_weight=TARGET_WEIGHT)
    for name, target in {"grand of all rows": one_for_all, "EM of all rows": by_em}.items():
        models[name] = RiskCalibration(family, target=target, target_weight=TARGET_WEIGHT * size / len(y))
    found = {name: model.fit(X_few, y_few) for name, model in models.items()}
    found |= {"by EM": by_em, "all labels": RiskCalibration(family).fit(X, y)}
    return {(name, "log_loss"): log_loss(model.predict_proba(X_test), y_test) for name, model in found.items()}


def drawn(family: Any, X: Array, y: NDArray, X_test: Array, y_test: NDArray, rng: np.random.RandomState) -> Scores:
    """Of as many rows drawn as there are in training: the log-loss of boosting that learns from them, and the AUC with
    which boosting tells them from real ones (0.5: not at all)."""
    found = {("training rows", "log_loss"): log_loss(_boosting().fit(X, y).predict_proba(X_test), y_test)}
    for name, model in learners(family).items():
        rows, labels = model.fit(X, y).sample(len(y), rng)
        others, _ = model.sample(len(y_test), rng)
        pupil = _boosting().fit(rows, labels)
        P = np.zeros((len(y_test), y.max() + 1))
        P[:, pupil.classes_] = pupil.predict_proba(X_test)
        found[name, "log_loss"] = log_loss(P, y_test)
        judge = _boosting().fit(np.vstack([X, rows]), np.repeat([0, 1], len(y)))
        told = judge.predict_proba(np.vstack([X_test, others]))[:, 1]
        found[name, "auc"] = float(roc_auc_score(np.repeat([0, 1], len(y_test)), told))
        found[name, "log_density"] = float(model.score_samples(X_test).mean())
    return found


def _boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=50, random_state=0)


TOPICS: dict[str, Topic] = {
    "reasons": reasons,
    "novelty": novelty,
    "weights": weights,
    "unlabelled": unlabelled,
    "drawn": drawn,
}


def compared(cell: Cell, seed: int) -> list[Record]:
    """The means over divisions into halves."""
    family, topic = cell.setting_value.split("|")
    X, y = rows_of(cell.row)
    runs: list[Scores] = []
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        halves = train_test_split(X, y, test_size=0.5, stratify=y, random_state=int(run))
        parts = halves[0], halves[2], halves[1], halves[3]
        runs.append(TOPICS[topic](FAMILIES[family], *parts, np.random.RandomState(run)))
    keys = {key: None for scores in runs for key in scores}
    return [mean_record(*key, [scores[key] for scores in runs if key in scores]) for key in keys]


def _settings(cell: Cell) -> Iterator[str]:
    topics = [topic for topic in TOPICS if not (topic == "novelty" and cell.row == "breast cancer")]
    return (f"{family}|{topic}" for family in FAMILIES for topic in topics)


Study(
    STUDY_NAME,
    tolerance=SEARCHED,
    rows=SETS,
    settings=_settings,
    protocol=compared,
    arguments={"repetitions": RUNS},
    stream=lambda cell: cell.row,
    quick=lambda cell: cell.row in ("iris", "wine"),
)


tidy = partial(readings.tidy, STUDY_NAME, row="data", setting_value=r"(?P<family>[^|]+)\|(?P<topic>.+)", method="model")


def means(topic: str, metric: str) -> pd.DataFrame:
    """A row a data set and family, a column a model."""
    stored = tidy()
    chosen = stored[(stored.topic == topic) & (stored.metric == metric)]
    return chosen.pivot(index=["data", "family"], columns="model", values="value").reindex(SETS, level="data")
