"""TAN beside that of pyAgrum, a library of Bayesian networks with a core of its own: the same numbers, and their cost
(chapter 10).

Both learn from the same rows with the same pseudo-counts ``prior`` in every cell; pyAgrum gives a cell of every table,
that of the class among them, that many rows. Compared are log-loss and error on the rows left out, the edges between
features, the largest difference of two posteriors, and that of the posteriors that pyAgrum computes from the network
that `to_bif` writes, on the first rows. ``fit`` and ``predict`` are processor seconds, medians of three, of one thread
in one process; the ratios are pyAgrum's to ours. The sets are connect-4 (its numbers of states are three) and rows
drawn from a TAN with 30 features of eight states and ten classes. pyAgrum bends the probabilities of two classes by a
threshold chosen on the training rows: sets of more classes are compared.

"""

import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from rcbook import datasets
from rcbook.experiments.cells import Cell, Row, Study
from rcpkg import TAN
from rcpkg.families.bif import to_bif

TIMES = 3
PRIORS = 0.01, 1.0
BY_BIF = 200  # rows whose posteriors are computed from the network that was written


def connect_4() -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of all rows."""
    bunch = datasets.load("connect_4", "wanbia2014")
    columns = [np.unique(column, return_inverse=True)[1] for column in bunch.data.T]
    return np.column_stack(columns), np.unique(bunch.target, return_inverse=True)[1]


def drawn(n: int = 62_500, d: int = 30, m: int = 8, r: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a TAN in which feature j hangs on one of those before it, its tables from a Dirichlet distribution."""
    rng = np.random.default_rng(0)
    y = rng.integers(r, size=n)
    X = np.empty((n, d), dtype=int)
    for j in range(d):
        parent = X[:, rng.integers(j)] if j else np.zeros(n, dtype=int)
        edges = rng.dirichlet(np.ones(m), size=(r, m)).cumsum(axis=-1)[y, parent]
        X[:, j] = (rng.uniform(size=(n, 1)) > edges[:, :-1]).sum(axis=1)
    return X, y


SETS = {"connect_4": connect_4, "drawn from a TAN": drawn}


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    """Median of processor seconds, and what the last call gave."""
    seconds = []
    for _ in range(TIMES):
        start = time.process_time()
        found = task()
        seconds.append(time.process_time() - start)
    return median(seconds), found


def theirs_on_bif(model: TAN, X: np.ndarray) -> np.ndarray:
    """Posteriors of rows by pyAgrum's inference in the network that `to_bif` writes."""
    import pyagrum

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.bif"
        path.write_text(to_bif(model), encoding="utf-8")
        network = pyagrum.loadBN(str(path))
    inference, rows = pyagrum.LazyPropagation(network), []
    for x in X:
        inference.setEvidence({f"x{j}": int(np.searchsorted(model.categories_[j], v)) for j, v in enumerate(x)})
        rows.append(inference.posterior("class").toarray())
    return np.array(rows)


def edges(network: Any) -> set[frozenset[str]]:
    """Pairs of features that are joined."""
    named = (tuple(network.variable(i).name() for i in arc) for arc in network.arcs())
    return {frozenset(pair) for pair in named if "class" not in pair}


def compare(X: np.ndarray, y: np.ndarray, prior: float) -> dict[str, float]:
    """Numbers and costs of both with so many pseudo-counts in a cell."""
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    X, X_test, y, y_test = train_test_split(X, y, test_size=12_500, stratify=y, random_state=0)
    names = [f"x{j}" for j in range(X.shape[1])]
    r, sizes = len(np.unique(y)), np.array([len(np.unique(column)) for column in X.T])
    assert all((X_test[:, j] < size).all() for j, size in enumerate(sizes)), "pyAgrum refuses states unseen in training"
    ours = TAN(prior_strength=prior * sizes, class_prior_strength=prior * r)
    theirs = BNClassifier(
        type_processor=DiscreteTypeProcessor(), learningMethod="TAN", prior="Smoothing", priorWeight=prior
    )
    frame, labels = pd.DataFrame(X, columns=names), pd.Series(y, name="class")
    test = pd.DataFrame(X_test, columns=names)
    our_fit, _ = timed(lambda: ours.fit(X, y))
    their_fit, _ = timed(lambda: theirs.fit(frame, labels))
    our_predict, p = timed(lambda: ours.predict_proba(X_test))
    their_predict, q = timed(lambda: theirs.predict_proba(test))
    written = theirs_on_bif(ours, X_test[:BY_BIF])
    joined = {frozenset((f"x{j}", f"x{f}")) for j, of in enumerate(ours.parents_) for f in of}
    found = {"log_loss": log_loss(y_test, p), "log_loss_pyagrum": log_loss(y_test, q)}
    found |= {"error": np.mean(p.argmax(axis=1) != y_test), "error_pyagrum": np.mean(q.argmax(axis=1) != y_test)}
    found |= {"edges": len(joined), "other_edges": len(joined ^ edges(theirs.bn_))}
    found |= {"difference": np.abs(p - q).max(), "difference_by_bif": np.abs(p[:BY_BIF] - written).max()}
    found |= {"fit": our_fit, "fit_pyagrum": their_fit, "fit_ratio": their_fit / our_fit}
    return found | {
        "predict": our_predict,
        "predict_pyagrum": their_predict,
        "predict_ratio": their_predict / our_predict,
    }


def measure(cell: Cell, seed: int) -> list[Row]:
    """The row of a set and prior."""
    X, y = SETS[cell.row]()
    prior = float(cell.method)
    found = {"dataset": cell.row, "rows": len(y) - 12_500, "prior": prior} | compare(X, y, prior)
    return [found | {"pyagrum": version("pyagrum")}]


Study(
    "beside-pyagrum",
    rows=SETS,
    methods=PRIORS,
    protocol=measure,
    metered=("fit", "fit_pyagrum", "fit_ratio", "predict", "predict_pyagrum", "predict_ratio", "difference"),
    tolerance=1e-6,
)
