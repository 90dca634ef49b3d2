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

pytestmark = pytest.mark.benchmark(group="one iteration of risk-based calibration", timer=time.process_time)
ROUNDS = 15


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1):
        yield


def gaussian_rows(n, d, r):
    """Overlapping, well-conditioned Gaussian classes."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    factors = np.eye(d) + 0.5 * rng.standard_normal((r, d, d)) / np.sqrt(d)
    X = rng.standard_normal((n, d))
    for c in range(r):
        X[y == c] = rng.standard_normal(d) + X[y == c] @ factors[c].T
    return X, y


def categorical_rows(n, d, r, states=5):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    return (rng.integers(states, size=(n, d)) + (rng.uniform(size=(n, d)) < 0.3) * y[:, None]) % states, y


def iteration(model, X, y):
    """A function that makes one iteration, from the closed form of the model."""
    X, y = model._check_X_y(X, y)
    model._prepare(X)
    Y = one_hot(y, len(model.classes_))
    objective = Objective(model.family_, model.family_.encode(X), Y)
    start = objective.evaluate(objective.start)
    return lambda: objective.evaluate(objective.moved(start.statistics, start.gradient, 0.1))


def bare_products(n, d, r):
    """The two products that no QDA can do without: whitened rows, and second moments, of each class."""
    rng = np.random.default_rng(0)
    X, A, W = rng.standard_normal((n, d)), rng.standard_normal((r * d, d)), rng.standard_normal((n, r))

    def products():
        X @ A.T
        for w in W.T:
            (X * w[:, None]).T @ X

    return products


def medians(*functions):
    """Median processor time of each function; they take turns."""
    times = np.empty((ROUNDS, len(functions)))
    for function in functions:
        function()
    for i in range(ROUNDS):
        for j, function in enumerate(functions):
            start = time.process_time()
            function()
            times[i, j] = time.process_time() - start
    return np.median(times, axis=0)


@pytest.mark.parametrize("n, d, r, limit", [(6435, 36, 6, 0.65), (5620, 47, 10, 0.7), (20000, 16, 26, 0.35)])
def test_qda(benchmark, n, d, r, limit):
    X, y = gaussian_rows(n, d, r)
    ours = iteration(QDA(), X, y)
    benchmark.pedantic(ours, rounds=5, warmup_rounds=1)
    mine, theirs, bare = medians(
        ours, lambda: QuadraticDiscriminantAnalysis().fit(X, y).predict_log_proba(X), bare_products(n, d, r)
    )
    print(
        f"\nQDA {n}×{d}, {r} classes: {1e3 * mine:.1f} ms, {mine / theirs:.2f} of scikit-learn, {mine / bare:.2f} bare"
    )
    assert mine / theirs <= limit


@pytest.mark.parametrize("n, d, r", [(6435, 36, 6), (20000, 16, 26)])
def test_categorical_nb(benchmark, n, d, r):
    X, y = categorical_rows(n, d, r)
    ours = iteration(CategoricalNB(prior_strength=1.0), X, y)
    benchmark.pedantic(ours, rounds=5, warmup_rounds=1)
    mine, theirs = medians(ours, lambda: SklearnCategoricalNB().fit(X, y).predict_log_proba(X))
    print(f"\nCategoricalNB {n}×{d}, {r} classes: {1e3 * mine:.1f} ms, {mine / theirs:.2f} of scikit-learn")
    assert mine / theirs <= 0.25


@pytest.mark.parametrize(
    "what, shapes",
    {
        "n": [(5000, 16, 8), (10000, 16, 8), (20000, 16, 8), (40000, 16, 8)],
        "d": [(5000, 8, 4), (5000, 16, 4), (5000, 32, 4), (5000, 64, 4)],
        "r": [(10000, 16, 2), (10000, 16, 4), (10000, 16, 8), (10000, 16, 32)],
    }.items(),
)
def test_growth(benchmark, what, shapes):
    """Linear in n; at most quadratic in d, and linear in r, but for the overhead of small arrays."""
    runs = [iteration(QDA(), *gaussian_rows(*shape)) for shape in shapes]
    benchmark.pedantic(runs[0], rounds=5, warmup_rounds=1)
    times = medians(*runs)
    print(f"\nQDA, growth with {what}: " + ", ".join(f"{s}: {1e3 * t:.1f} ms" for s, t in zip(shapes, times)))
    size = np.prod([(n, d * d, r) for n, d, r in (shapes[0], shapes[-1])], axis=1)
    assert times[-1] / times[0] <= 1.5 * size[1] / size[0]


def test_a_growing_factor_of_local_bda_is_twice_as_fast_where_features_are_few(benchmark, monkeypatch):
    Z = np.random.default_rng(0).standard_normal((500, 100, 4))
    benchmark.pedantic(density.local_bda_log_density, args=(Z,), rounds=3)

    def by_one_factor():
        with monkeypatch.context() as patch:
            patch.setattr(density, "UPDATED_NEIGHBOURS", np.inf)
            density.local_bda_log_density(Z)

    ours, theirs = medians(lambda: density.local_bda_log_density(Z), by_one_factor)
    print(f"\nlocal BDA, 100 neighbours of 4 features: {1e3 * ours:.1f} ms, {ours / theirs:.2f} of one K×K factor")
    assert ours / theirs <= 0.5
