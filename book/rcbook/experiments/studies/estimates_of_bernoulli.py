"""Estimates of a Bernoulli parameter: thesis2007 Table 2.2 and the numbers behind Figure 2.1 (chapter 2).

``python -m rcbook.experiments.studies.estimates_of_bernoulli DIRECTORY`` writes both tables.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from rcbook.experiments.runner import write_tables
from rcpkg.bregman import divergences

BROKEN, PARTS = 3, 5


def bernoulli_estimates() -> pd.DataFrame:
    """Table 2.2: estimates of a Bernoulli parameter after 3 broken parts of 5.

    Maximum likelihood (2.1) and the method of moments both equate the parameter with the sample mean; the
    Bayesian estimate is the mean of the posterior under a uniform prior (2.13).
    """
    sample = np.repeat([1.0, 0.0], [BROKEN, PARTS - BROKEN])
    posterior = stats.beta(BROKEN + 1, PARTS - BROKEN + 1)
    values = {
        "ML": BROKEN / PARTS,
        "MOM": sample.mean(),
        "Bayesian estimate with Bregman divergence": posterior.mean(),
    }
    return pd.DataFrame(
        {
            "source": "thesis2007",
            "table": "2.2",
            "row": list(values),
            "dataset": "bernoulli_3_of_5",
            "n_instances": PARTS,
            "n_features": 1,
            "method": list(values),
            "setting_name": "",
            "setting_value": "",
            "metric": "estimated_theta",
            "value": list(values.values()),
            "std": np.nan,
            "value_se": 0.0,
            "n_runs": 1,
        }
    )


def bernoulli_likelihood(n_points: int = 101) -> pd.DataFrame:
    """Figure 2.1: likelihood of 3 broken parts of 5, posterior density, and two risks of the estimate theta.

    Columns: theta, likelihood, posterior_density, expected_squared, expected_logistic (posterior risks of the
    estimate theta; the second is infinite at 0 and 1).
    """
    theta = np.linspace(0.0, 1.0, n_points)
    posterior = stats.beta(BROKEN + 1, PARTS - BROKEN + 1)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    nodes, weights = (nodes + 1) / 2, weights / 2 * posterior.pdf((nodes + 1) / 2)
    risks = {
        f"expected_{name}": weights @ divergences[name].pairwise(nodes[:, None], theta[:, None])
        for name in ("squared", "logistic")
    }
    return pd.DataFrame(
        {
            "theta": theta,
            "likelihood": stats.binom(PARTS, theta).pmf(BROKEN),
            "posterior_density": posterior.pdf(theta),
            **risks,
        }
    )


def write(directory: str | Path) -> None:
    """Write the two tables as CSV files."""
    write_tables(
        directory,
        {
            "thesis2007_table_2.2.csv": bernoulli_estimates(),
            "thesis2007_figure_2_01.csv": bernoulli_likelihood(),
        },
    )


if __name__ == "__main__":
    write(sys.argv[1])
