"""Local BDA for every neighbourhood size against other ways to (6.1) of thesis2007, one BLAS thread on both sides.

Run by ``make bench``; cases of one run belong together. Times are processor times, on USPS (d = 256) but for the last.
At a single size the other way is a d×d factor, for all sizes the d×d inverse updated row by row.
"""

import gzip
import os
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from rcpkg import LocalBDA
from rcpkg.local import density

pytestmark = [
    pytest.mark.skipif(
        "RCPKG_DATA" not in os.environ, reason="the USPS digits are needed: set RCPKG_DATA to their folder"
    ),
    pytest.mark.benchmark(group="local BDA, 1000 USPS queries", timer=time.process_time),
]
N_QUERIES = 1000


@pytest.fixture(scope="module")
def usps():
    def load(name):
        with gzip.open(Path(os.environ["RCPKG_DATA"]) / "usps" / name) as file:
            table = np.loadtxt(file)
        return table[:, 1:], table[:, 0].astype(int)

    X, y = load("zip.train.gz")
    return X, y, load("zip.test.gz")[0][:N_QUERIES]


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1):
        yield


def naive(X, y, Q, k):
    """(6.1) as printed, constants dropped: one d x d Cholesky factor and solve per query and class."""
    scores = np.empty((len(Q), 10))
    for h in range(10):
        members = X[y == h]
        rows = NearestNeighbors(n_neighbors=k).fit(members).kneighbors(Q, return_distance=False)
        d = X.shape[1]
        for i, x in enumerate(Q):
            neighbors = members[rows[i]]
            mean = neighbors.mean(axis=0)
            centred = neighbors - mean
            scatter = centred.T @ centred + np.eye(d)
            L = np.linalg.cholesky(scatter)
            distance = (x - mean) @ np.linalg.solve(scatter, x - mean)
            scores[i, h] = -(k + d + 4) / 2 * np.log1p(k / (k + 1) * distance) - np.log(np.diag(L)).sum()
    return scores


def median(benchmark):
    return benchmark.stats.stats.median


RESULTS = {}  # the naive scores and their time, for the ratios of this run


def test_naive_at_k_20(benchmark, usps):
    X, y, Q = usps
    RESULTS["naive scores"] = benchmark.pedantic(naive, args=(X, y, Q, 20), rounds=1)
    RESULTS["naive seconds"] = median(benchmark)


def test_ours_at_k_20_is_thirty_times_faster(benchmark, usps):
    X, y, Q = usps
    model = LocalBDA(n_neighbors=20).fit(X, y)
    scores = benchmark.pedantic(model.predict_joint_log_proba, args=(Q,), rounds=3)
    reference = RESULTS["naive scores"]
    np.testing.assert_allclose(scores - scores[:, :1], reference - reference[:, :1], atol=1e-9)
    ratio = RESULTS["naive seconds"] / median(benchmark)
    benchmark.extra_info["times faster than naive"] = round(ratio, 1)
    assert ratio >= 30


def test_all_k_up_to_100_take_an_eighth_of_naive_k_20(benchmark, usps):
    X, y, Q = usps
    model = LocalBDA(n_neighbors=100).fit(X, y)
    benchmark.pedantic(model.predict_path, args=(Q, range(1, 101)), rounds=3)
    ratio = RESULTS["naive seconds"] / median(benchmark)
    benchmark.extra_info["times faster than naive at one k"] = round(ratio, 1)
    assert ratio >= 8


def test_a_growing_factor_is_twice_as_fast_where_features_are_few(benchmark, monkeypatch):
    Z = np.random.default_rng(0).standard_normal((500, 100, 4))
    ours = benchmark.pedantic(density.local_bda_log_density, args=(Z,), rounds=3)
    monkeypatch.setattr(density, "UPDATED_NEIGHBOURS", np.inf)
    times = []
    for _ in range(3):
        start = time.process_time()
        one_factor = density.local_bda_log_density(Z)
        times.append(time.process_time() - start)
    np.testing.assert_allclose(ours, one_factor, atol=1e-10)
    ratio = np.median(times) / median(benchmark)
    benchmark.extra_info["times faster than one K x K factor"] = round(ratio, 1)
    assert ratio >= 2
