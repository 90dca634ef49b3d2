"""Tables of the estimation examples: committed numbers come from the code, simulation agrees with theory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

from rcpkg.experiments import scorecard
from rcpkg.experiments.studies import estimates_of_the_uniform as estimation

RESULTS = Path(__file__).parents[1] / "data" / "results"


def test_committed_tables_are_what_the_code_writes(tmp_path):
    estimation.write(tmp_path)
    written = sorted(tmp_path.iterdir())
    assert len(written) == 3
    for file in written:
        pd.testing.assert_frame_equal(pd.read_csv(file), pd.read_csv(RESULTS / file.name), rtol=1e-8)


def test_table_2_2_by_definition():
    """ML and moments coincide at 3/5 (the thesis prints .57 for the latter); the posterior mean is 4/7."""
    values = estimation.bernoulli_estimates().set_index("method")["value"]
    assert values["ML"] == values["MOM"] == 0.6
    assert values["Bayesian estimate with Bregman divergence"] == pytest.approx(4 / 7)


def test_figure_2_1():
    curve = estimation.bernoulli_likelihood(1001)
    assert curve.theta[curve.likelihood.idxmax()] == pytest.approx(0.6)
    np.testing.assert_allclose(curve.likelihood, 10 * (1 - curve.theta) ** 2 * curve.theta**3, atol=1e-15)
    np.testing.assert_allclose(curve.posterior_density, 6 * curve.likelihood, atol=1e-12)
    assert integrate.simpson(curve.posterior_density, curve.theta) == pytest.approx(1)
    for risk in ("expected_squared", "expected_logistic"):
        assert curve.theta[curve[risk].idxmin()] == pytest.approx(4 / 7, abs=1e-3)


def test_figure_7_1_simulation_agrees_with_the_exact_curves():
    table = estimation.uniform_errors(n_runs=4000, random_state=7)
    finite = table[(table.n >= 4) & (table.setting != "best")]
    z = (finite.simulated - finite.exact) / finite.simulated_se
    assert np.abs(z).max() < 4.5 and 0.6 < np.sqrt((z**2).mean()) < 1.6
    assert table.simulated_se[(table.n <= 2) & (table.estimate != "bayes_parameter")].isna().all()
    first = table[(table.n == 1) & (table.estimate != "bayes_parameter")]
    assert np.isinf(first.exact).all() and np.isfinite(first.simulated).all()


def test_table_2_2_in_the_scorecard():
    card = scorecard()
    card = card[(card.source == "thesis2007") & (card.table == "2.2")].set_index("method").verdict
    assert card["MOM"] == "differs: explained"
    assert (card.drop("MOM") == "reproduced").all() and len(card) == 3
