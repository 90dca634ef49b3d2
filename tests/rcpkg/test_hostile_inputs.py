"""Inputs that nobody prepared: a sample of the pairs, all of them in the slow suite; their outcomes are stored."""

import signal

import numpy as np
import pandas as pd
import pytest
from hostile import DEPTHS, ESTIMATORS, FINE, REFUSED, SILENT, TIMEOUT, Case, blobs, cases, outcome, pairs, title
from rcbook._files import results_folder
from sklearn.base import BaseEstimator, ClassifierMixin

from rcpkg import QDA

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="needs timers of the processor")
PAIRS = pairs()
INPUTS = cases()


@pytest.mark.parametrize("size", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_pairs(size):
    """Finite probabilities that sum to one, or a refusal at the door that names what is wrong; nothing else."""
    results, bad = [], []
    for i in np.random.default_rng(0).choice(len(PAIRS), size=size, replace=False):
        estimator, name = PAIRS[i]
        result, message = outcome(estimator, INPUTS[name])
        results.append(result)
        if result not in (FINE, REFUSED):
            bad.append((result, title(estimator), name, message))
    assert bad == []
    assert min(results.count(FINE), results.count(REFUSED)) > 0.2 * size


def test_stored_outcomes():
    """Those of all pairs, of the estimators and inputs as they are now."""
    table = pd.read_csv(results_folder() / "benchmark_hostile_inputs.csv", index_col="estimator")
    counts = table[[FINE, REFUSED, DEPTHS, TIMEOUT, SILENT]]
    assert list(counts.index) == [title(estimator) for estimator in ESTIMATORS]
    assert counts.to_numpy().sum() == len(PAIRS) >= 2500
    assert (counts[[DEPTHS, TIMEOUT, SILENT]] == 0).all(axis=None)


class Faulty(ClassifierMixin, BaseEstimator):
    """A classifier with a fault."""

    def __init__(self, fault="nan"):
        self.fault = fault

    def fit(self, X, y):
        """Fit what there is to fit."""
        self.classes_ = np.unique(y)
        if self.fault == "raw":
            np.linalg.inv(np.zeros((2, 2)))
        if self.fault == "nameless":
            raise ValueError("wrong")
        if self.fault == "convert":
            np.asarray([["red"]], dtype=float)
        while self.fault == "endless":
            pass
        return self

    def predict(self, X):
        """The first class."""
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        """No numbers."""
        return np.full((len(X), len(self.classes_)), np.nan)

    predict_joint_log_proba = decision_function = predict_proba


@pytest.mark.parametrize(
    "fault, expected",
    [("nan", SILENT), ("raw", DEPTHS), ("nameless", DEPTHS), ("convert", DEPTHS), ("endless", TIMEOUT)],
)
def test_faults_are_found(fault, expected, monkeypatch):
    monkeypatch.setattr("hostile.SECONDS", 0.2)
    X, y = blobs()
    assert outcome(Faulty(fault), Case(X, y, X))[0] == expected
    assert outcome(QDA(), Case(X, y, X))[0] == FINE
    assert outcome(QDA(), Case(X, y[:-1], X))[0] == REFUSED
