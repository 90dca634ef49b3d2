"""Where LDA puts the boundary of two classes, before and after calibration, in many samples (chapter 12; ours).

Two normal classes 2.6 apart in one dimension, without outliers and with: 120 samples of 100 rows and one of 30,000. The
chapter computed them whenever it ran before they were stored, so no hypothesis stands before the run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcpkg import LDA, RiskCalibration
from rcpkg.base import Array

STUDY_NAME, SAMPLES, ROWS, MANY = "clouds-of-estimates", 120, 100, 30_000
OUTLIERS = {"the model is right": 0.0, "the model is wrong: outliers": 0.12}
LEARNERS = {"closed form": LDA(), "calibrated": RiskCalibration(LDA(), target_weight=0.0)}


def sample(size: int, outliers: float, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Rows of both classes; a share of the second lies farther out."""
    y = np.arange(size) % 2
    far = (rng.uniform(size=size) < outliers) & (y == 1)
    return (rng.standard_normal(size) + 2.6 * y + 5 * far)[:, None], y


def line(model: Any, X: Array, y: NDArray[np.intp]) -> dict[str, float]:
    """Where the log odds are zero, and their slope."""
    at = np.diff(clone(model).fit(X, y).predict_log_proba([[0.0], [1.0]]))[:, 0]
    return {"boundary": -at[0] / (at[1] - at[0]), "slope": at[1] - at[0]}


def estimates(cell: Cell, seed: int) -> list[Row]:
    """The lines of both learners on each sample of a case, those of the large samples last."""
    outliers, rng, found = OUTLIERS[cell.row], np.random.default_rng(914), []
    drawn = [sample(ROWS, outliers, rng) for _ in range(SAMPLES)]
    for name, learner in LEARNERS.items():
        named = {"case": cell.row, "learner": name}
        found += [named | {"many": False} | line(learner, *rows) for rows in drawn]
        found.append(named | {"many": True} | line(learner, *sample(MANY, outliers, rng)))
    return found


Study(STUDY_NAME, rows=OUTLIERS, protocol=estimates, tolerance=SEARCHED)
