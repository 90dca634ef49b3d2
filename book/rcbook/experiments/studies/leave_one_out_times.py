"""What does leave-one-out over BDA7's 42 models take (chapter 15)?

Processor time in seconds, the median of three runs, one BLAS thread: refits in plain numpy (of twelve rows, scaled up),
the exact route for every row, and the bounds with the exact route for what they leave undecided; and the share of rows
left undecided. Gaussian classes of random covariances.

"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import gammaln

from rcbook.bounded_leave_one_out import grid_loo_errors
from rcbook.experiments.cells import Cell, Row, Study
from rcpkg.choice import log_class_prior_loo
from rcpkg.gaussians import Sample, grid_log_predictive_loo

SIZES = ((200, 4, 2), (200, 10, 3), (1000, 10, 3), (200, 30, 3), (200, 60, 3))
FOLDS = 12


def data(n: int, d: int, r: int, random_state: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of Gaussian classes of random covariances."""
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, r, n)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(r, d))[y], y


def dofs(d: int) -> list[int]:
    """The six degrees of freedom that BDA7 tries."""
    return [d * k for k in range(1, 7)]


def seconds(function: Callable[[], Any], rounds: int = 3) -> float:
    """Median of the processor's seconds over the rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return float(np.median(times))


def class_fits(X: np.ndarray, y: np.ndarray, r: int, i: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Of each class without row i: rows, mean and scatter."""
    keep = np.arange(len(X)) != i
    A, b = X[keep], y[keep]
    for h in range(r):
        rows = A[b == h]
        mean = rows.mean(axis=0)
        centred = rows - mean
        yield len(rows), mean, centred.T @ centred


def naive_bda7(X: np.ndarray, y: np.ndarray, r: int, folds: np.ndarray) -> np.ndarray:
    """Log-scores of the rows left out by all 42 models, each fitted anew without the row."""
    n, d = X.shape
    out = np.empty((6, 7, len(folds), r))
    for f, i in enumerate(folds):
        fits = list(class_fits(X, y, r, i))
        pooled = sum(np.diag(scatter) for _, _, scatter in fits) / (n - 1)
        for h, (m, mean, scatter) in enumerate(fits):
            own, v = np.diag(scatter) / m, X[i] - mean
            for k, q in enumerate(dofs(d)):
                seeds = (q * pooled, q * own, pooled / q, own / q, pooled, own, np.full(d, pooled.mean() / q))
                a = m + q
                constant = gammaln((a + 1) / 2) - gammaln((a - d + 1) / 2) - d / 2 * np.log(np.pi * (m + 1) / m)
                for j, seed in enumerate(seeds):
                    L = np.linalg.cholesky(scatter + np.diag(seed))
                    u = np.linalg.solve(L, v)
                    log_det = np.log(np.diag(L)).sum()
                    out[k, j, f, h] = constant - log_det - (a + 1) / 2 * np.log1p(m / (m + 1) * u @ u)
    return out


def measure(n: int, d: int, r: int) -> dict[str, float]:
    """Seconds by each route, and the share of rows that the bounds leave undecided."""
    X, y = data(n, d, r)
    prior = log_class_prior_loo(y, r)
    folds = np.linspace(0, n - 1, FOLDS).astype(int)
    return {
        "n": n,
        "d": d,
        "r": r,
        "refits": n / FOLDS * seconds(lambda: naive_bda7(X, y, r, folds)),
        "exact": seconds(lambda: grid_log_predictive_loo(Sample(X, y, r), dofs(d))),
        "bounds": seconds(lambda: grid_loo_errors(Sample(X, y, r), prior, dofs(d))),
        "undecided": grid_loo_errors(Sample(X, y, r), prior, dofs(d)).exact_share,
    }


def measured(cell: Cell, seed: int) -> list[Row]:
    """The row of a size."""
    return [measure(*map(int, cell.row.split(", ")))]


Study(
    "leave-one-out-times",
    rows=[", ".join(map(str, size)) for size in SIZES],
    protocol=measured,
    metered=("refits", "exact", "bounds"),
    tolerance=1e-3,
)
