"""Does the size of its blocks decide what a calibrated stream learns? (chapter 9)

Fixed before the run: connect-4, five draws of 12,000 rows (seeds 0 to 4), of which 9,000 are a stream and 3,000 judge
it at its end. Learners: `RiskCalibration` of naive Bayes with one pseudo-row and the target "generative", with the
weights .1 and 1, by ``partial_fit`` in blocks of 1,000, 200 and 50 rows and by ``fit`` to all rows; and naive Bayes
itself, which counts. Hypotheses, of the mean log-losses over the draws: (a) for either weight no size of blocks is more
than .01 from another; (b) each stream is below counting.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss

from rcbook import datasets
from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcpkg import CategoricalNB, RiskCalibration
from rcpkg.base import GenerativeClassifier

STUDY_NAME = "sizes-of-blocks"
ROWS, NEW, SIZES, WEIGHTS, DRAWS = 9_000, 3_000, (1_000, 200, 50), (0.1, 1.0), 5
COUNTING = CategoricalNB(prior_strength=1.0)


def streamed(model: RiskCalibration, X: np.ndarray, y: np.ndarray, size: int) -> RiskCalibration:
    """The model after a stream of blocks of one size."""
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=np.unique(y))
    return model


def fits(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[float | None, str, GenerativeClassifier]]:
    """The weight, how the rows are given, and the model."""
    yield None, "counting", clone(COUNTING).fit(X, y)
    for weight in WEIGHTS:
        model = RiskCalibration(COUNTING, target="generative", target_weight=weight)
        for size in SIZES:
            yield weight, f"blocks of {size:,}", streamed(clone(model), X, y, size)
        yield weight, "all rows", clone(model).fit(X, y)


def measure(cell: Cell, seed: int) -> list[Row]:
    """A row for each fit: the log-loss of the rows that judge it."""
    table, draw = datasets.load("connect_4"), int(cell.row)
    rows = np.random.default_rng(draw).permutation(len(table.target))[: ROWS + NEW]
    X, y = np.asarray(table.data)[rows], np.asarray(table.target)[rows]
    return [
        {"draw": draw, "weight": weight, "rows": how, "log_loss": log_loss(y[ROWS:], model.predict_proba(X[ROWS:]))}
        for weight, how, model in fits(X[:ROWS], y[:ROWS])
    ]


Study(STUDY_NAME, rows=[str(draw) for draw in range(DRAWS)], protocol=measure, tolerance=SEARCHED)
