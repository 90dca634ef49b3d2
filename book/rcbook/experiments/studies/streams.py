"""Learners that see each row once, judged on each block before they learn from it (chapter 9).

Fixed before anything was measured, but for the last sentence of the second item. Rows as in `rows_beyond_memory`, five
classes in twenty dimensions, in 200 blocks of 500; ``still``: equal class weights; ``drifting``: log weights that move
along a sine of one period, each class a fifth of it behind the last, by up to 2. The log-loss of a block is that before
it is learnt from, of the first ten blocks none is counted; ``late`` is the mean over the last quarter. Learners:

- `RiskCalibration` of `QDA`, ``target="generative"``, with the weights 1 and 0.1; the closed form by ``partial_fit``.
- The same with *running class weights*: ``predict_proba(X, class_prior=π)``, where π is the mean of the class shares of
  the blocks so far, each block counting e^(−1/4) times as much as the next, with a fifth of a row more of each class.
  In a first run calibration was not told of π, and followed the drift: ``partial_fit`` takes ``class_prior`` since, and
  these learners give it; *for predictions alone* is the first run's way.
- `SGDClassifier` with log-loss on quadratic features standardised by the first block: with its defaults, and with
  ``average=True``, a constant rate of 0.001 and no penalty. scikit-learn's ``GaussianNB``.
- river's Gaussian naive Bayes, softmax regression on standardised numbers, and Hoeffding tree, where river is installed
  (0.26.1, in an environment of its own), row by row; on the first 40 blocks alone, as are, for comparison, all others
  in ``early``, blocks 11 to 40.

``seconds`` are of the processor, for all blocks that a learner saw; ``late`` and ``log_loss`` of river's are missing.

"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rcbook.experiments.cells import Cell, Row, Study
from rcbook.experiments.studies.rows_beyond_memory import CLASSES, DIMENSIONS, Quadratic
from rcpkg import QDA, RiskCalibration

BLOCKS, SIZE, FIRST, EARLY, LATE = 200, 500, 10, 40, 150
AMPLITUDE, MEMORY, LEAST = 2.0, np.exp(-0.25), 0.2
LABELS = np.arange(CLASSES)


def blocks(drifts: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """The stream."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=0.3, size=(CLASSES, DIMENSIONS))
    factors = np.eye(DIMENSIONS) + 0.08 * rng.normal(size=(CLASSES, DIMENSIONS, DIMENSIONS))
    rng, found = np.random.default_rng(1), []
    for t in range(BLOCKS):
        log_weight = AMPLITUDE * np.sin(2 * np.pi * (t / BLOCKS + LABELS / CLASSES)) * drifts
        weight = np.exp(log_weight)
        y, X = rng.choice(CLASSES, p=weight / weight.sum(), size=SIZE), rng.normal(size=(SIZE, DIMENSIONS))
        for c in LABELS:
            X[y == c] = X[y == c] @ factors[c].T + means[c]
        found.append((np.sign(X) * np.abs(X) ** 1.2, y))
    return found


class Learner:
    """A model with ``partial_fit``, of changed rows; for ``running`` class weights, of which it ``tells`` the model."""

    def __init__(
        self,
        model: Any,
        change: Callable[[np.ndarray], np.ndarray] = np.asarray,
        running: bool = False,
        tells: bool = False,
    ) -> None:
        self.model, self.change, self.running, self.tells = model, change, running, tells
        self.counts = np.full(CLASSES, LEAST)

    def proba(self, X: np.ndarray) -> np.ndarray:
        """Posteriors."""
        if not self.running:
            return self.model.predict_proba(self.change(X))
        return self.model.predict_proba(X, class_prior=self.counts / self.counts.sum())

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        """Learn from a block."""
        told = {"class_prior": self.counts / self.counts.sum()} if self.tells else {}
        self.model.partial_fit(self.change(X), y, classes=LABELS, **told)
        self.counts = MEMORY * (self.counts - LEAST) + np.bincount(y, minlength=CLASSES) + LEAST


class River:
    """A model of river, row by row."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def proba(self, X: np.ndarray) -> np.ndarray:
        """Posteriors; of classes that the model does not name zero."""
        found = [self.model.predict_proba_one(dict(enumerate(x))) for x in X.tolist()]
        return np.array([[of.get(c, 0.0) for c in range(CLASSES)] for of in found])

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        """Learn from a block."""
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(x)), label)


def learners(first: np.ndarray) -> dict[str, Callable[[], Any]]:
    """By their names, as functions that make them."""
    quadratic = Quadratic.__new__(Quadratic)
    quadratic.polynomial = PolynomialFeatures(2, include_bias=False)
    quadratic.scaler = StandardScaler().fit(quadratic.polynomial.fit_transform(first))
    constant = {"learning_rate": "constant", "eta0": 0.001, "average": True, "penalty": None}
    found: dict[str, Callable[[], Any]] = {}
    for running in (False, True):
        also = ", running class weights" if running else ""
        found["closed form" + also] = lambda running=running: Learner(QDA(), running=running)
        for b in (1.0, 0.1):
            model = RiskCalibration(QDA(), target="generative", target_weight=b)
            name = f"calibrated, b = {b:g}{also}"
            found[name] = lambda model=model, told=running: Learner(clone(model), running=told, tells=told)
            if running:
                found[f"{name}, for predictions alone"] = lambda model=model: Learner(clone(model), running=True)
    found["SGDClassifier"] = lambda: Learner(SGDClassifier(loss="log_loss", random_state=0), quadratic)
    found["SGDClassifier, constant rate, averaged"] = lambda: Learner(
        SGDClassifier(loss="log_loss", random_state=0, **constant), quadratic
    )
    found["scikit-learn's GaussianNB"] = lambda: Learner(TheirGaussianNB())
    try:
        from river import linear_model, naive_bayes, preprocessing, tree
    except ImportError:
        return found
    found["river's GaussianNB"] = lambda: River(naive_bayes.GaussianNB())
    found["river's SoftmaxRegression"] = lambda: River(
        preprocessing.StandardScaler() | linear_model.SoftmaxRegression()
    )
    found["river's HoeffdingTreeClassifier"] = lambda: River(tree.HoeffdingTreeClassifier())
    return found


def prequential(learner: Any, stream: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, float]:
    """Log-losses of the blocks after the first, and seconds of the processor."""
    losses, start = [np.nan], time.process_time()
    for t, (X, y) in enumerate(stream):
        if t:
            own = learner.proba(X)[np.arange(len(y)), y]
            losses.append(-np.log(np.maximum(own, np.finfo(float).eps)).mean())
        learner.learn(X, y)
    return np.array(losses), time.process_time() - start


def measure(cell: Cell, seed: int) -> list[Row]:
    """A row a learner."""
    stream, table = blocks(cell.row == "drifting"), []
    for name, made in learners(stream[0][0]).items():
        of_river = name.startswith("river")
        with warnings.catch_warnings(action="ignore"):
            losses, seconds = prequential(made(), stream[: EARLY if of_river else BLOCKS])
        row = {"stream": cell.row, "learner": name, "early": losses[FIRST:EARLY].mean()}
        if not of_river:
            row |= {"log_loss": losses[FIRST:].mean(), "late": losses[LATE:].mean()}
        table.append(row | {"seconds": seconds, "rows": len(losses) * SIZE})
    return table


Study("streams", rows=("still", "drifting"), protocol=measure, metered=("seconds",), tolerance=1e-5)
