"""From how many rows a feature on is a covariance left to maximum likelihood (chapter 1)? The table behind the
default.

Each κ of `VALUES` stands for ``rows_per_feature=κ``: 0 is a prior for singular covariances only. Eleven data sets, with
1, 1.5, 2, 3 and 5 times as many training rows as features, but so many that each class has some, drawn twice; of the
other rows up to 1,000 are held out. The four Gaussian models, in closed form and calibrated by default.

The criterion, fixed before a table was made:

1. κ must bring the held-out log-loss below that of the class frequencies for each model and way of learning it in
   the study ``degenerate-rows``;
2. of those, the κ with the least mean of log(log-loss / log-loss of the class frequencies) over this table;
3. a smaller κ, which leaves more to maximum likelihood, where that mean is within 0.01 of the least.

No κ above 3 is a candidate, by decision and not by measure: rows that are many are to be left to maximum likelihood, as
users and sources expect. A first rule, with a share of the ridge for each class that was one at most, was compared by
the same criterion. It left twice as many log-losses of closed forms above those of the class frequencies where rows
were no more than features, and shares of their own made classes of equal scatter unequal; its shape, not κ, was changed
by looking at closed forms on these data sets, so that the table tells less of new data than its size suggests. No
candidate is the grand target for `LDA` and `SharedVarianceGaussianNB`, whose pooled target is their closed form: it
would not help the closed form itself.

"""

import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedShuffleSplit

from rcbook import datasets
from rcbook.experiments.cells import Cell, Row, Study
from rcbook.experiments.studies.degenerate_rows import MODELS, held_out
from rcpkg import RiskCalibration

VALUES = (0.0, 1.0, 2.0, 3.0)
ROWS = (1.0, 1.5, 2.0, 3.0, 5.0)  # a feature
SETS = ("iris", "wine", "glass", "vehicle", "segment", "waveform", "ionosphere", "sonar", "pendigits")
HELD_OUT = 1000
SPLITS = 2


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and class numbers."""
    if name in ("digits", "breast_cancer"):
        return {"digits": load_digits, "breast_cancer": load_breast_cancer}[name](return_X_y=True)
    data = datasets.load(name)
    return data.data.astype(float), np.unique(data.target, return_inverse=True)[1]


def log_losses(X: np.ndarray, y: np.ndarray, n: int) -> list[dict[str, object]]:
    """Held-out log-losses with n training rows: an entry a model, way of learning and κ."""
    divisions = StratifiedShuffleSplit(SPLITS, train_size=n, test_size=min(HELD_OUT, len(y) - n), random_state=1)
    frequencies = held_out(DummyClassifier(strategy="prior"), X, y, divisions)
    found = []
    for kind in MODELS:
        for kappa in VALUES:
            closed = kind(rows_per_feature=kappa)
            for learner, model in {"closed form": closed, "calibrated": RiskCalibration(closed, step="safe")}.items():
                loss = held_out(model, X, y, divisions)
                found.append(
                    {
                        "model": kind.__name__,
                        "learner": learner,
                        "rows_per_feature": kappa,
                        "log_loss": loss,
                        "class_frequencies": frequencies,
                    }
                )
    return found


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Of each κ the mean of the criterion, and how many log-losses are not below those of the class frequencies."""
    ratio = np.log(table.log_loss / table.class_frequencies)
    by_value = ratio.groupby(table.rows_per_feature)
    return pd.DataFrame({"criterion": by_value.mean(), "not_below": by_value.agg(lambda r: int((r >= 0).sum()))})


def sizes(X: np.ndarray, y: np.ndarray) -> list[int]:
    """Numbers of training rows."""
    least = max(2 * (y.max() + 1), -(-len(y) // np.bincount(y).min()))
    wanted = (max(round(factor * X.shape[1]), int(least)) for factor in ROWS)
    return [n for n in dict.fromkeys(wanted) if n <= 0.8 * len(y)]


def measure(cell: Cell, seed: int) -> list[Row]:
    """All sizes of a data set."""
    X, y = rows_of(cell.row)
    with warnings.catch_warnings(action="ignore"):
        return [{"dataset": cell.row, "n": n} | row for n in sizes(X, y) for row in log_losses(X, y, n)]


Study("rows-per-feature", rows=(*SETS, "breast_cancer", "digits"), protocol=measure, tolerance=1e-5)
