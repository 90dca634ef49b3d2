"""What does leave-one-out over BDA7's 42 models take? Writes the table of times in chapter 14.

Processor time in seconds, the median of three runs, one BLAS thread: refits in plain numpy (of twelve rows, scaled up),
the exact route for every row, and the bounds with the exact route for what they leave undecided; and the share of rows
left undecided. Gaussian classes of random covariances. To regenerate:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=.:tests/benchmarks python \
        tests/benchmarks/compare_leave_one_out.py data/results/benchmark_leave_one_out.csv
"""

import sys

import numpy as np
import pandas as pd
from bench_bayesian_qda import data, dofs, naive_bda7, seconds
from rcbook.bounded_leave_one_out import grid_loo_errors
from rcbook.experiments.runner import commit, environment

from rcpkg.choice import log_class_prior_loo
from rcpkg.gaussians import Sample, grid_log_predictive_loo

SIZES = ((200, 4, 2), (200, 10, 3), (1000, 10, 3), (200, 30, 3), (200, 60, 3))
FOLDS = 12


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


def main(path: str) -> None:
    """Write the table."""
    software, code = environment(), commit()
    table = pd.DataFrame([measure(*size) for size in SIZES]).astype({name: int for name in ("n", "d", "r")})
    table = table.assign(
        commit=code["commit"] + ("+" if code["modified"] else ""),
        versions=", ".join(f"{name} {number}" for name, number in software["packages"].items()),
        hardware=", ".join(str(part) for part in software["hardware"].values()),
    )
    table.to_csv(path, index=False, float_format="%.4g")
    print(table.iloc[:, :7].to_string())


if __name__ == "__main__":
    main(sys.argv[1])
