"""The estimation examples of thesis2007: Table 2.2 and the numbers behind Figures 2.1 and 7.1.

``python -m rcpkg.experiments.studies.estimates_of_the_uniform DIRECTORY`` writes the three tables.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from rcpkg import uniform
from rcpkg.bregman import divergences

BROKEN, PARTS = 3, 5
GAMMA_PRIORS = ((1.0, 1.0), (1.0, 3.0), (1.0, 100.0))
SAMPLE_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 80, 120, 154, 155, 156, 200, 300)


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
        errors = {("maximum_likelihood", ""): (uniform.uniform_squared_error(maximum), {})}
        for t1, t2 in GAMMA_PRIORS:
            end = uniform.parameter_mean(maximum, n, t1, t2)
            errors["bayes_parameter", f"t1={t1:g} t2={t2:g}"] = (
                uniform.uniform_squared_error(end),
                {"t1": t1, "t2": t2},
            )
        for measure in uniform.MEASURES:
            end = 2 ** (1 / uniform.order(n, measure)) * maximum
            errors["bayes_restricted", measure] = (uniform.uniform_squared_error(end), {"measure": measure})
            errors["bayes_unrestricted", measure] = (
                uniform.unrestricted_squared_error(maximum, n, measure),
                {"measure": measure},
            )
        for (name, setting), (error, options) in errors.items():
            heavy = n <= 2 and name != "bayes_parameter"
            rows.append(
                {
                    "n": n,
                    "estimate": name,
                    "setting": setting,
                    "simulated": error.mean(),
                    "simulated_se": np.nan if heavy else error.std(ddof=1) / np.sqrt(n_runs),
                    "exact": uniform.expected_squared_error(name, n, **options),
                    "n_runs": n_runs,
                }
            )
        priors = [row for row in rows if row["n"] == n and row["estimate"] == "bayes_parameter"]
        best = min(priors, key=lambda row: row["simulated"])
        rows.append({**best, "setting": "best", "exact": min(row["exact"] for row in priors)})
    return pd.DataFrame(rows)


def write(directory: str | Path) -> None:
    """Write the three tables as CSV files, numbers to 10 significant digits."""
    tables = {
        "thesis2007_table_2.2.csv": bernoulli_estimates(),
        "thesis2007_figure_2_01.csv": bernoulli_likelihood(),
        "thesis2007_figure_7_01.csv": uniform_errors(),
    }
    for name, table in tables.items():
        table.to_csv(Path(directory) / name, index=False, float_format="%.10g", lineterminator="\n")


if __name__ == "__main__":
    write(sys.argv[1])
