"""Calibrated QDA and common practice on two small sets, of whose test rows values are hidden (chapter 13; ours).

Wine and breast cancer, five divisions into halves; log-loss on the test rows by the share of values that are hidden at
random. The chapter computed it whenever it ran before it was stored, so no hypothesis stands before the run.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcpkg import QDA, RiskCalibration, mask_copies
from rcpkg.base import Array

STUDY_NAME = "hidden-values-of-small-sets"
SETS = {"wine": load_wine, "breast cancer": load_breast_cancer}
SHARES = [0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8]
COPIES = "boosting, masked copies"
LEARNERS = {
    "QDA": QDA(),
    "QDA, calibrated": RiskCalibration(QDA()),
    "logistic, mean filled in": make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression(max_iter=1000)
    ),
    "logistic, regression filled in": make_pipeline(
        StandardScaler(),
        IterativeImputer(max_iter=5, keep_empty_features=True),
        LogisticRegression(max_iter=1000),
    ),
    "boosting": HistGradientBoostingClassifier(max_iter=50),
    COPIES: HistGradientBoostingClassifier(max_iter=50),
}


def with_gaps(X: Array, share: float, rng: np.random.Generator) -> Array:
    """The rows with each value hidden with probability ``share``."""
    return np.where(rng.uniform(size=X.shape) < share, np.nan, X)


def with_hidden_values(cell: Cell, seed: int) -> list[Row]:
    """Log-loss of each learner at each share, in each division of a set."""
    X, y = SETS[cell.row](return_X_y=True)
    found = []
    for division in range(5):
        rng = np.random.default_rng([13, division])
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=division)
        rows = dict.fromkeys(LEARNERS, (train, y_train)) | {COPIES: mask_copies(train, y_train, random_state=division)}
        with warnings.catch_warnings(action="ignore"):  # of regressions that have not converged in five rounds
            fits = {name: clone(learner).fit(*rows[name]) for name, learner in LEARNERS.items()}
            for share in SHARES:
                hidden, named = with_gaps(test, share, rng), {"set": cell.row, "division": division, "share": share}
                for name, fit in fits.items():
                    P = fit.predict_proba(hidden)[np.arange(len(test)), y_test]
                    found.append(named | {"learner": name, "log_loss": -np.log(np.maximum(P, 1e-15)).mean()})
    return found


Study(STUDY_NAME, rows=SETS, protocol=with_hidden_values, tolerance=SEARCHED)
