"""Local classifiers on the sine wave of chapter 16 with wrong labels and with outliers (ours).

``flipped-labels-of-the-waves``: eight samples of 200 rows, a share of the labels flipped; errors against the Bayes
decision with the number of neighbours chosen by leave-one-out, and with five. ``outliers-of-the-waves``: forty samples,
a share of the rows moved to random places, five neighbours. The chapter computed both whenever it ran before they were
stored, so no hypothesis stands before the run.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rcbook.experiments.cells import Cell, Row, Study
from rcbook.ties import smallest_size
from rcpkg import BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans
from rcpkg.base import Array

LABELS_STUDY, OUTLIERS_STUDY = "flipped-labels-of-the-waves", "outliers-of-the-waves"
SHARES = (0.0, 0.1, 0.2, 0.3)
MODELS = {
    "k-NN": BregmanKNN(smoothing=0.0),
    "pinv": LocalLinear(),
    "local nearest means": LocalNearestMeans(),
    "local BDA": LocalBDA(),
}
MEANS_AND_BDA = ("local nearest means", "local BDA")


def waves(n: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Rows of a square, of classes that a sine wave parts, but for chance."""
    X = rng.uniform(-1, 1, (n, 2))
    margin = X[:, 1] - 0.5 * np.sin(np.pi * X[:, 0])
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-8 * margin))).astype(int)


def queries() -> tuple[Array, NDArray[np.intp]]:
    """300 rows and their Bayes decisions."""
    X = waves(300, np.random.default_rng(6))[0]
    return X, (X[:, 1] > 0.5 * np.sin(np.pi * X[:, 0])).astype(int)


def flipped() -> Iterator[tuple[float, int, Array, NDArray[np.intp]]]:
    """Samples of the waves with a share of the labels flipped: share, run, rows and labels."""
    rng = np.random.default_rng(64)
    for run in range(8):
        X, y = waves(200, rng)
        order = rng.permutation(200)
        for share in SHARES:
            wrong = y.copy()
            wrong[order[: int(200 * share)]] ^= 1
            yield share, run, X, wrong


def moved() -> Iterator[tuple[int, float, int, Array, NDArray[np.intp]]]:
    """Samples with a share of the rows moved: half-width of the square of new places, share, run, rows and labels."""
    rng = np.random.default_rng(67)
    for run in range(40):
        X, y = waves(200, rng)
        order = rng.permutation(200)
        places = {w: rng.uniform(-w, w, (200, 2)) for w in (1, 3)}
        for share in SHARES:
            for width, place in places.items():
                A = X.copy()
                A[order[: int(200 * share)]] = place[order[: int(200 * share)]]
                yield width, share, run, A, y


def with_wrong_labels(cell: Cell, seed: int) -> list[Row]:
    """Errors of a classifier on each sample, and the number of neighbours that it chooses."""
    (rows, bayes), found = queries(), []
    for share, run, X, y in flipped():
        chosen = smallest_size(clone(MODELS[cell.row]).set_params(n_neighbors="cv").fit(X, y))
        errors: dict[str, Any] = {
            "error, k chosen": (chosen.predict(rows) != bayes).mean(),
            "error, k = 5": (chosen.predict_path(rows, [5])[:, 0] != bayes).mean(),
            "chosen k": chosen.n_neighbors_,
        }
        found.append({"classifier": cell.row, "flipped": share, "run": run} | errors)
    return found


def with_outliers(cell: Cell, seed: int) -> list[Row]:
    """Errors of a classifier with five neighbours on each sample."""
    (rows, bayes), model = queries(), clone(MODELS[cell.row]).set_params(n_neighbors=5)
    found: list[Row] = []
    for width, share, run, X, y in moved():
        error = (model.fit(X, y).predict(rows) != bayes).mean()
        place = {"half-width of places": width, "moved": share, "run": run}
        found.append({"classifier": cell.row, **place, "error": error})
    return found


Study(LABELS_STUDY, rows=MODELS, protocol=with_wrong_labels)
Study(OUTLIERS_STUDY, rows=MEANS_AND_BDA, protocol=with_outliers)
