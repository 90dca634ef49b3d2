"""Estimates of a uniform distribution: committed numbers come from the code, simulation agrees with theory."""

from pathlib import Path

import numpy as np
import pandas as pd
from rcbook.experiments.studies import estimates_of_the_uniform as estimates

RESULTS = Path(__file__).parents[2] / "data" / "results"


def test_the_committed_table_is_what_the_code_writes(tmp_path):
    estimates.write(tmp_path)
    (file,) = tmp_path.iterdir()
    pd.testing.assert_frame_equal(pd.read_csv(file), pd.read_csv(RESULTS / file.name), rtol=1e-8)


def test_figure_7_1_simulation_agrees_with_the_exact_curves():
    table = estimates.uniform_errors(n_runs=4000, random_state=7)
    finite = table[(table.n >= 4) & (table.setting != "best")]
    z = (finite.simulated - finite.exact) / finite.simulated_se
    assert np.abs(z).max() < 4.5 and 0.6 < np.sqrt((z**2).mean()) < 1.6
    assert table.simulated_se[(table.n <= 2) & (table.estimate != "bayes_parameter")].isna().all()
    first = table[(table.n == 1) & (table.estimate != "bayes_parameter")]
    assert np.isinf(first.exact).all() and np.isfinite(first.simulated).all()
