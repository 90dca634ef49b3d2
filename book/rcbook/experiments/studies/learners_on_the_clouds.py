"""Learners on draws of the clouds: *Ten minutes*, chapters 4, 13 and 15 (ours).

Mean losses on new rows over twenty draws of the training rows. ``ways-on-the-clouds``: 300 rows, naive Bayes calibrated
in five ways and rescaled in three, and logistic regression. ``gaps-on-the-clouds``: 300 rows, with one coordinate of
the new rows hidden. ``averaging-on-the-clouds``: 20, 60 and 300 rows, QDA, averages over Gaussians, and calibration.
The pages computed them whenever they ran before they were stored, so no hypothesis stands before the runs.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcbook.experiments.rescalings import Rescaled, temperature_scaled
from rcbook.simulation import clouds
from rcpkg import BDA7, QDA, BayesianQDA, GaussianNB, RiskCalibration, RiskCalibrationCV
from rcpkg.base import Array

WAYS_STUDY, GAPS_STUDY, AVERAGES_STUDY = "ways-on-the-clouds", "gaps-on-the-clouds", "averaging-on-the-clouds"
DRAWS, NEW_ROWS_WITH_GAPS = 20, 5_000
TUNED = GridSearchCV(LogisticRegression(), {"C": np.logspace(-4, 4, 7)}, scoring="neg_log_loss")
WAYS = {
    "closed form": GaussianNB(),
    "RC as published": RiskCalibration.as_published(GaussianNB()),
    "RC, no target": RiskCalibration(GaussianNB(), target_weight=0),
    "RC, target of weight 1": RiskCalibration(GaussianNB(), target_weight=1.0),
    "RC, weight chosen": RiskCalibrationCV(GaussianNB(), target="pooled", cv="loo"),
    "closed form rescaled: sigmoid": CalibratedClassifierCV(GaussianNB(), method="sigmoid", ensemble=False),
    "closed form rescaled: isotonic": CalibratedClassifierCV(GaussianNB(), method="isotonic", ensemble=False),
    "closed form rescaled: temperature": Rescaled(GaussianNB(), temperature_scaled),
    "logistic regression, penalty tuned": make_pipeline(
        PolynomialFeatures(2, include_bias=False), StandardScaler(), TUNED
    ),
}
BY_SAFE_STEPS = "RC by safe steps, target of weight 1"
SAFE = {BY_SAFE_STEPS: RiskCalibration(GaussianNB(), step="safe", target="pooled", target_weight=1.0)}
WITH_GAPS = {
    "closed form": GaussianNB(),
    "calibrated": RiskCalibration(GaussianNB()),
    "gaps in view": RiskCalibration(GaussianNB(), gaps_in_view=0.5, random_state=0),
    "logistic, mean filled in": make_pipeline(SimpleImputer(), LogisticRegression()),
    "boosting": HistGradientBoostingClassifier(max_iter=50),
}
TRUTH = "truth"
HIDDEN = {"nothing hidden": [], "first hidden": [0], "second hidden": [1]}  # coordinates
CENTRES = {1: [(1.0, 1.4, 0.0)], 0: [(0.65, -0.6, 0.0), (0.35, -4.1, 3.0)]}  # share and place of each cloud of a class
AVERAGES = {
    "QDA": QDA(),
    "averaged Gaussians": BayesianQDA(),
    "BDA7": BDA7(),
    "calibrated QDA": RiskCalibration(QDA()),
}


def fitted(learner: Any, rows: tuple[Array, NDArray[np.intp]]) -> Any:
    """A copy of a learner, fitted; rows left out may speak against calibration, which the losses show."""
    with warnings.catch_warnings(action="ignore"):
        return clone(learner).fit(*rows)


def ways(cell: Cell, seed: int) -> list[Row]:
    """Error and log-loss of one way on the draws."""
    found: list[Row] = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([40, draw])
        rows, (new, label) = clouds(300, rng), clouds(20_000, rng)
        P = fitted((WAYS | SAFE)[cell.row], rows).predict_proba(new)
        losses = {"error": np.mean(P.argmax(axis=1) != label), "log_loss": log_loss(label, P)}
        found.append({"learner": cell.row, "draw": draw} | losses)
    return found


def true_posterior(rows: Array) -> Array:
    """Of the second class, as the clouds are drawn; missing coordinates summed out."""
    density = {
        c: sum(share * np.exp(-np.nansum((rows - centre) ** 2, axis=1) / (2 * 0.6**2)) for share, *centre in parts)
        for c, parts in CENTRES.items()
    }
    return density[1] / (density[0] + density[1])


def with_hidden_coordinates(cell: Cell, seed: int) -> list[Row]:
    """Log-loss of a learner on the draws, or of the true posterior, whatever is hidden."""
    new, label = clouds(NEW_ROWS_WITH_GAPS, np.random.default_rng(139))
    seen = {hiding: np.where(np.isin([0, 1], columns), np.nan, new) for hiding, columns in HIDDEN.items()}

    def losses(draw: int, probability: Any) -> list[Row]:
        named = {"learner": cell.row, "draw": draw}
        return [named | {"hiding": name, "log_loss": log_loss(label, probability(X))} for name, X in seen.items()]

    if cell.row == TRUTH:
        return losses(0, true_posterior)
    found = []
    for draw in range(DRAWS):
        rows = clouds(300, np.random.default_rng([139, draw]))
        found += losses(draw, fitted(WITH_GAPS[cell.row], rows).predict_proba)
    return found


def averages(cell: Cell, seed: int) -> list[Row]:
    """Log-losses of a learner on draws of so many rows."""
    new, label = clouds(20_000, np.random.default_rng(113))
    n, found = int(cell.setting_value), []
    for draw in range(DRAWS):
        rows = clouds(n, np.random.default_rng([140, draw, n]))
        log_P = fitted(AVERAGES[cell.row], rows).predict_log_proba(new)
        loss = -log_P[np.arange(len(label)), label].mean()
        found.append({"learner": cell.row, "rows": n, "draw": draw, "log_loss": loss})
    return found


Study(WAYS_STUDY, rows=WAYS | SAFE, protocol=ways, tolerance=SEARCHED)
Study(GAPS_STUDY, rows=(*WITH_GAPS, TRUTH), protocol=with_hidden_coordinates, tolerance=SEARCHED)
Study(AVERAGES_STUDY, rows=AVERAGES, settings=(20, 60, 300), protocol=averages, tolerance=SEARCHED)
