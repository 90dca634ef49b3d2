"""Leave-one-out over BDA7's 42 models: ours against plain numpy, and against scikit-learn's grid search.

Naive is what the definition asks for: per fold one scatter matrix a class, per model and class one Cholesky factor and
solve; no estimator is called. Its folds cost alike, so it runs on evenly spaced ones and its time is scaled up.
Processor time, one BLAS thread on both sides, ratios of medians within one run.
"""

import time

import numpy as np
import pytest
from rcbook.experiments.studies.leave_one_out_times import data, dofs, naive_bda7, seconds
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from threadpoolctl import threadpool_limits

from rcpkg import BDA7
from rcpkg.gaussians import (
    grid_log_predictive_loo,
)

pytestmark = pytest.mark.benchmark(timer=time.process_time, min_rounds=3, max_time=2)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def naive_seconds(function, X, y, r, n_folds):
    folds = np.linspace(0, len(X) - 1, n_folds).astype(int)
    return seconds(lambda: function(X, y, r, folds)) * len(X) / n_folds, folds


def report(benchmark, **figures):
    benchmark.extra_info.update(figures)
    print("  " + ", ".join(f"{key} {value:.3g}" for key, value in figures.items()))


@pytest.mark.parametrize("d, n_folds, required", [(10, 60, 20), (60, 20, 20)])
def test_exact_loo_against_naive(benchmark, d, n_folds, required):
    X, y = data(2000, d, 3)
    scores = benchmark(grid_log_predictive_loo, X, y, 3, dofs(d))
    naive, folds = naive_seconds(naive_bda7, X, y, 3, n_folds)
    np.testing.assert_allclose(scores[:, :, folds], naive_bda7(X, y, 3, folds), rtol=1e-7, atol=1e-6)
    ratio = naive / benchmark.stats.stats.median
    report(benchmark, d=d, naive=naive, exact=benchmark.stats.stats.median, ratio=ratio)
    assert ratio >= required


def test_whole_fit_against_grid_search(benchmark):
    X, y = load_wine(return_X_y=True)
    benchmark(lambda: BDA7().fit(X, y))
    search = GridSearchCV(QuadraticDiscriminantAnalysis(), {"reg_param": np.linspace(0, 1, 42)}, cv=LeaveOneOut())
    sklearn = seconds(lambda: search.fit(X, y), rounds=1)
    ratio = sklearn / benchmark.stats.stats.median
    report(benchmark, grid_search=sklearn, bda7=benchmark.stats.stats.median, ratio=ratio)
    assert ratio >= 100
