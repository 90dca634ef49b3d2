"""Time and memory of every closed-form model on 10⁶ rows of 50 features, beside scikit-learn's; and of sparse text.

Each fit runs in a process of its own, on one thread; seconds are those of the processor, and memory is the peak of the
whole process, ``data_megabytes`` of which it has before the fit, with the rows. Text is 10⁵ documents of some 100 words
each out of 10⁵, of 4 classes, in a sparse array that would take 80 gigabytes if it were dense. To regenerate:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/compare_closed_forms.py \
        data/results/benchmark_closed_forms.csv
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn.discriminant_analysis as da
import sklearn.naive_bayes as nb
from compare_degenerate_rows import provenance
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

import rcpkg

ROWS, FEATURES, CLASSES, STATES = 10**6, 50, 4, 5
DOCUMENTS, WORDS, LENGTH = 10**5, 10**5, 100
DENSE = {
    "QDA": (rcpkg.QDA, da.QuadraticDiscriminantAnalysis),
    "LDA": (rcpkg.LDA, da.LinearDiscriminantAnalysis),
    "GaussianNB": (rcpkg.GaussianNB, nb.GaussianNB),
    "SharedVarianceGaussianNB": (rcpkg.SharedVarianceGaussianNB, None),
    "CategoricalNB": (rcpkg.CategoricalNB, nb.CategoricalNB),
    "BernoulliNB": (rcpkg.BernoulliNB, nb.BernoulliNB),
    "MultinomialNB": (rcpkg.MultinomialNB, nb.MultinomialNB),
}
TEXT = {
    "BernoulliNB": (rcpkg.BernoulliNB, nb.BernoulliNB),
    "MultinomialNB": (rcpkg.MultinomialNB, nb.MultinomialNB),
    "calibrated BernoulliNB": (lambda: rcpkg.RiskCalibration(rcpkg.BernoulliNB(prior_strength=1.0)), None),
    "calibrated MultinomialNB": (lambda: rcpkg.RiskCalibration(rcpkg.MultinomialNB(prior_strength=1.0)), None),
}


def dense(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows that suit the model of this name, as reals."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    if name in ("CategoricalNB", "BernoulliNB", "MultinomialNB"):
        states = 2 if name == "BernoulliNB" else STATES
        X = rng.integers(0, states, size=(ROWS, FEATURES), dtype=np.int8).astype(float)
        X[:, 0] = np.minimum(X[:, 0], y % 2)
        return X, y
    X = rng.standard_normal((ROWS, FEATURES))
    X[:, 0] += y
    return X, y


def text() -> tuple[sp.csr_array, np.ndarray]:
    """Documents of words by Zipf's law; each class has words of its own for a tenth of what it says."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, DOCUMENTS)
    words = np.minimum(rng.zipf(1.3, size=(DOCUMENTS, LENGTH)), WORDS) - 1
    own = rng.random((DOCUMENTS, LENGTH)) < 0.1
    words[own] = (rng.integers(0, 1000, own.sum()) * CLASSES + np.repeat(y, own.sum(axis=1))) + 1000
    rows = np.repeat(np.arange(DOCUMENTS), LENGTH)
    return sp.csr_array((np.ones(words.size), (rows, words.ravel())), shape=(DOCUMENTS, WORDS)), y


def megabytes() -> float:
    """Peak of the memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(kind: str, name: str, library: int) -> dict[str, Any]:
    """Seconds to fit and to give the probabilities of a tenth of the rows, memory, and updates if it is calibrated."""
    X, y = text() if kind == "text" else dense(name)
    model = (TEXT if kind == "text" else DENSE)[name][library]()
    before, start = megabytes(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    fitted, peak = time.process_time(), megabytes()
    model.predict_proba(X[: X.shape[0] // 10])
    return {
        "data_megabytes": before,
        "fit_megabytes": peak,
        "predict_megabytes": megabytes(),
        "fit_seconds": fitted - start,
        "predict_seconds": time.process_time() - fitted,
        "updates": getattr(model, "n_iter_", None) if name.startswith("calibrated") else None,
    }


def main(path: Path) -> None:
    """Measure what the table does not hold yet, each in a process of its own."""
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["rows", "model", "library"])
    known = set(zip(done.rows, done.model, done.library))
    jobs = [(kind, name, k) for kind, table in (("dense", DENSE), ("text", TEXT)) for name in table for k in (0, 1)]
    for kind, name, k in tqdm(jobs):
        library = ("rcpkg", "scikit-learn")[k]
        if (TEXT if kind == "text" else DENSE)[name][k] is None or (kind, name, library) in known:
            continue
        command = [sys.executable, __file__, kind, name, str(k)]
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        row = pd.DataFrame([{"rows": kind, "model": name, "library": library, **found, **provenance()}])
        row.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
