"""One iteration of risk-based calibration against one scikit-learn fit and prediction, one BLAS thread on both sides.

An iteration is what the loop does: the step, the parameters, and one pass over the data for densities, losses and
weighted statistics. Times are processor times; the sides of a ratio take turns, and their medians are compared.
Run by ``make bench``.
"""

import time

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB as SklearnCategoricalNB
from threadpoolctl import threadpool_limits

from rcpkg import QDA, CategoricalNB
from rcpkg.calibration import Objective
from rcpkg.families import one_hot
from rcpkg.local import density

ROUNDS = 15


def gaussian_rows(n, d, r):
    """Overlapping Gaussian classes, well-conditioned for any number of features."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    factors = np.eye(d) + 0.5 * rng.standard_normal((r, d, d)) / np.sqrt(d)
    X = rng.standard_normal((n, d))
    for c in range(r):
        X[y == c] = rng.standard_normal(d) + X[y == c] @ factors[c].T
    return X, y


def categorical_rows(n, d, r, states=5):
    """Codes that depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    return (rng.integers(states, size=(n, d)) + (rng.uniform(size=(n, d)) < 0.3) * y[:, None]) % states, y


def iteration(model, X, y):
    """A function that makes one iteration, from the closed form of the model."""
    X, y = model._check_X_y(X, y)
    model._prepare(X)
    objective = Objective(model.family_, model.family_.encode(X), one_hot(y, len(model.classes_)))
    start = objective.evaluate(objective.start)
    return lambda: objective.evaluate(objective.moved(start.statistics, start.gradient, 0.1))


def medians(*functions):
    """Median processor time of each function, in milliseconds; they take turns."""
    times = np.empty((ROUNDS, len(functions)))
    with threadpool_limits(1):
        for function in functions:
            function()
        for i, j in np.ndindex(times.shape):
            start = time.process_time()
            functions[j]()
            times[i, j] = time.process_time() - start
    return 1e3 * np.median(times, axis=0)


QDA_ROWS = [(6435, 36, 6, 0.65), (5620, 47, 10, 0.7), (20000, 16, 26, 0.35)]
CASES = [(QDA(), QuadraticDiscriminantAnalysis(), gaussian_rows(n, d, r), limit) for n, d, r, limit in QDA_ROWS]
CASES += [
    (CategoricalNB(prior_strength=1.0), SklearnCategoricalNB(), categorical_rows(n, d, r), 0.25)
    for n, d, r in ((6435, 36, 6), (20000, 16, 26))
]


@pytest.mark.parametrize("model, rival, rows, limit", CASES)
def test_iteration(model, rival, rows, limit):
    ours, theirs = medians(iteration(model, *rows), lambda: rival.fit(*rows).predict_log_proba(rows[0]))
    print(f"\n{model} {rows[0].shape}: {ours:.1f} ms, {ours / theirs:.2f} of scikit-learn")
    assert ours / theirs <= limit


@pytest.mark.parametrize("other, power", [((40000, 16, 8), 1), ((5000, 64, 8), 2), ((5000, 16, 64), 1)])
def test_growth(other, power):
    """Linear in n; at most quadratic in d, and linear in r, but for the overhead of small arrays."""
    first = (5000, 16, 8)
    small, large = medians(*(iteration(QDA(), *gaussian_rows(*shape)) for shape in (first, other)))
    print(f"\nQDA {first}: {small:.1f} ms, {other}: {large:.1f} ms")
    assert large / small <= 1.5 * (np.prod(other) / np.prod(first)) ** power


def test_a_growing_factor_of_local_bda_is_twice_as_fast_where_features_are_few(monkeypatch):
    Z = np.random.default_rng(0).standard_normal((500, 100, 4))

    def by_one_factor():
        with monkeypatch.context() as patch:
            patch.setattr(density, "UPDATED_NEIGHBOURS", np.inf)
            density.local_bda_log_density(Z)

    ours, theirs = medians(lambda: density.local_bda_log_density(Z), by_one_factor)
    print(f"\nlocal BDA, 100 neighbours of 4 features: {ours:.1f} ms, {ours / theirs:.2f} of one K×K factor")
    assert ours / theirs <= 0.5
