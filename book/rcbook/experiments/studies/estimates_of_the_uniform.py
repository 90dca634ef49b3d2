"""Estimates of a uniform distribution: the numbers behind thesis2007 Figure 7.1 (chapter 17).

``python -m rcbook.experiments.studies.estimates_of_the_uniform DIRECTORY`` writes the table.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rcbook.experiments.runner import write_tables
from rcpkg import uniform
from rcpkg.base import Array

GAMMA_PRIORS = ((1.0, 1.0), (1.0, 3.0), (1.0, 100.0))
SAMPLE_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 80, 120, 154, 155, 156, 200, 300)


def _errors(maximum: Array, n: int) -> Iterator[tuple[str, str, dict[str, Any], Array]]:
    """Estimate, setting, keywords of the setting, and the squared error of each run, from the runs' maxima of n."""
    yield "maximum_likelihood", "", {}, uniform.uniform_squared_error(maximum)
    for t1, t2 in GAMMA_PRIORS:
        end = uniform.parameter_mean(maximum, n, t1, t2)
        yield "bayes_parameter", f"t1={t1:g} t2={t2:g}", {"t1": t1, "t2": t2}, uniform.uniform_squared_error(end)
    for measure in uniform.MEASURES:
        end = 2 ** (1 / uniform.order(n, measure)) * maximum
        yield "bayes_restricted", measure, {"measure": measure}, uniform.uniform_squared_error(end)
        error = uniform.unrestricted_squared_error(maximum, n, measure)
        yield "bayes_unrestricted", measure, {"measure": measure}, error


def uniform_errors(
    sample_sizes: tuple[int, ...] = SAMPLE_SIZES, n_runs: int = 1000, random_state: int = 0
) -> pd.DataFrame:
    """Figure 7.1: squared error of estimates of a uniform distribution, simulated (7.5.2) and exact.

    Each run draws n numbers from [0, 1]; all estimates see the same runs. ``bayes_parameter, best`` is the
    least of the three averages over the gamma priors, as the figure plots it.

    Returns
    -------
    DataFrame
        Columns: n, estimate, setting, simulated (mean over runs), simulated_se, exact, n_runs. There is no
        standard error at n <= 2 where the error has infinite variance.
    """
    rng = np.random.default_rng(random_state)
    rows = []
    for n in sample_sizes:
        maximum = rng.uniform(size=(n_runs, n)).max(axis=1)
        for name, setting, keywords, error in _errors(maximum, n):
            heavy = n <= 2 and name != "bayes_parameter"
            rows.append(
                {
                    "n": n,
                    "estimate": name,
                    "setting": setting,
                    "simulated": error.mean(),
                    "simulated_se": np.nan if heavy else error.std(ddof=1) / np.sqrt(n_runs),
                    "exact": uniform.expected_squared_error(name, n, **keywords),
                    "n_runs": n_runs,
                }
            )
        priors = [row for row in rows if row["n"] == n and row["estimate"] == "bayes_parameter"]
        best = min(priors, key=lambda row: row["simulated"])
        rows.append({**best, "setting": "best", "exact": min(row["exact"] for row in priors)})
    return pd.DataFrame(rows)


def write(directory: str | Path) -> None:
    """Write the table as a CSV file."""
    write_tables(directory, {"thesis2007_figure_7_01.csv": uniform_errors()})


if __name__ == "__main__":
    write(sys.argv[1])
