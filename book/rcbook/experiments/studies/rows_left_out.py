"""How near approximate leave-one-out of `RiskCalibrationCV` is to refits, by weight and number of rows (chapter 12)."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rcbook.experiments import readings
from rcbook.experiments.cells import SEARCHED, Cell, Grid, Record, Study, mean_record
from rcbook.experiments.studies.laws_of_calibration import CASES, truth
from rcpkg.base import Array
from rcpkg.calibration.target_path import TargetPath
from rcpkg.families import ConjugateClassifier

STUDY_NAME = "rows-left-out"
FAMILIES = ("LDA", "QDA", "GaussianNB", "CategoricalNB")
SIZES, SAMPLES = (30, 90), 2
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)


def newton(estimator: ConjugateClassifier, X: Array, y: NDArray[np.intp]) -> TargetPath:
    """The path of the pooled target's weights."""
    model = clone(estimator)
    return TargetPath.from_estimator(model, "pooled", *model._check_X_y(X, y))


def losses(estimator: ConjugateClassifier, X: Array, y: NDArray[np.intp]) -> dict[tuple[float, str], float]:
    """Mean log-losses for each weight: of rows left out one by one, the same by one Newton step, of training rows."""
    found, own = {}, np.arange(len(y))
    path = newton(estimator, X, y)
    others = [newton(estimator, np.delete(X, i, axis=0), np.delete(y, i)) for i in own]
    for b in WEIGHTS[::-1]:
        fitted = path.log_posterior(X, path.follow(b))
        log_P, _ = path.left_out()
        found[b, "approximate"] = -float(log_P[own, y].mean())
        found[b, "training"] = -float(fitted[own, y].mean())
        left_out = [other.log_posterior(X[[i]], other.follow(b))[0, y[i]] for i, other in enumerate(others)]
        found[b, "exact"] = -float(np.sum(left_out)) / len(y)
        found[b, "difference"] = found[b, "approximate"] - found[b, "exact"]
    return found


def compare(cell: Cell, seed: int) -> list[Record]:
    """The means over samples; one whose closed form does not exist without some row is drawn again."""
    model, n, rng = truth(cell.row), int(cell.setting_value), np.random.RandomState(seed % 2**32)
    estimator = clone(CASES[cell.row].model)
    if cell.row == "CategoricalNB":
        estimator.set_params(n_states=3)
    found: list[dict[tuple[float, str], float]] = []
    while len(found) < cell.arguments["repetitions"]:
        X, y = model.sample(n, rng)
        if np.unique(y, return_counts=True)[1].min() >= 4 + model.n_features_in_:
            found.append(losses(estimator, X, y))
    return [mean_record(f"{b:g}", name, [of[b, name] for of in found]) for b, name in found[0]]


Study(
    STUDY_NAME,
    *(
        Grid(rows=FAMILIES, settings=(n,), protocol=compare, arguments={"repetitions": SAMPLES}, quick=n == SIZES[0])
        for n in SIZES
    ),
    tolerance=SEARCHED,
)


tidy = partial(readings.tidy, STUDY_NAME, row="family", setting_value="n", method="weight")
