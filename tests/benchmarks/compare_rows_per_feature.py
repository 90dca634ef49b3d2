"""From how many rows a feature on is a covariance left to maximum likelihood? Writes the table behind the default.

Each κ of `VALUES` stands for ``rows_per_feature=κ``: 0 is a prior for singular covariances only. Eleven data sets, with
1, 1.5, 2, 3 and 5 times as many training rows as features, but so many that each class has some, drawn twice; of the
other rows up to 1,000 are held out. The four Gaussian models, in closed form and calibrated by default.

The criterion, fixed before a table was made:

1. κ must bring the held-out log-loss below that of the class frequencies for each model and way of learning it in
   ``benchmark_degenerate_rows.csv``;
2. of those, the κ with the least mean of log(log-loss / log-loss of the class frequencies) over this table;
3. a smaller κ, which leaves more to maximum likelihood, where that mean is within 0.01 of the least.

No κ above 3 is a candidate, by decision and not by measure: rows that are many are to be left to maximum likelihood, as
users and sources expect. A first rule, with a share of the ridge for each class that was one at most, was compared by
the same criterion. It left twice as many log-losses of closed forms above those of the class frequencies where rows
were no more than features, and shares of their own made classes of equal scatter unequal; its shape, not κ, was changed
by looking at closed forms on these data sets, so that the table tells less of new data than its size suggests. No
candidate is the grand target for `LDA` and `SharedVarianceGaussianNB`, whose pooled target is their closed form: it
would not help the closed form itself.

To regenerate (resumes; needs the data sets, `RCPKG_DATA`):

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/compare_rows_per_feature.py \
        data/results/benchmark_rows_per_feature.csv
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from compare_degenerate_rows import MODELS, held_out, provenance
from rcbook import datasets
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from tqdm import tqdm

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


def main(path: Path) -> None:
    """Append to the table what it does not hold yet, and print the summary."""
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["dataset", "n"])
    known = set(zip(done.dataset, done.n))
    for name in tqdm((*SETS, "breast_cancer", "digits")):
        X, y = rows_of(name)
        for factor in ROWS:
            least = max(2 * (y.max() + 1), -(-len(y) // np.bincount(y).min()))
            n = max(round(factor * X.shape[1]), int(least))
            if (name, n) in known or n > 0.8 * len(y):
                continue
            known.add((name, n))
            rows = pd.DataFrame(log_losses(X, y, n)).assign(**provenance())
            rows.insert(0, "dataset", name)
            rows.insert(1, "n", n)
            rows.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.6g", lineterminator="\n")
    print(summary(pd.read_csv(path)).round(4).to_string())


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(Path(sys.argv[1]))
