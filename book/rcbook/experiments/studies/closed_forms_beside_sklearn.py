"""Time and memory of every closed-form model on 10⁶ rows of 50 features, beside scikit-learn's; and of sparse
text (chapter 1).

Each fit runs in a process of its own, on one thread; seconds are those of the processor, and memory is the peak of the
whole process, ``data_megabytes`` of which it has before the fit, with the rows. Text is 10⁵ documents of some 100 words
each out of 10⁵, of 4 classes, in a sparse array that would take 80 gigabytes if it were dense.

"""

import resource
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.discriminant_analysis as da
import sklearn.naive_bayes as nb
from sklearn.exceptions import ConvergenceWarning

import rcpkg
from rcbook.experiments.cells import Cell, Row, Study
from rcbook.experiments.measuring import apart

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


LIBRARIES = "rcpkg", "scikit-learn"


def measured(cell: Cell, seed: int) -> list[Row]:
    """The measurement, in a process of its own."""
    kind, name = cell.row.split(": ")
    found = apart(measure, kind, name, LIBRARIES.index(cell.method))
    return [{"rows": kind, "model": name, "library": cell.method, **found}]


Study(
    "closed-forms-beside-sklearn",
    rows=[f"{kind}: {name}" for kind, table in (("dense", DENSE), ("text", TEXT)) for name in table],
    methods=lambda cell: [
        library
        for library, model in zip(LIBRARIES, (DENSE if cell.row.startswith("dense") else TEXT)[cell.row.split(": ")[1]])
        if model is not None
    ],
    protocol=measured,
    metered=("data_megabytes", "fit_megabytes", "predict_megabytes", "fit_seconds", "predict_seconds"),
)
