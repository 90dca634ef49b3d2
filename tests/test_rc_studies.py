"""The studies around the RC tables, and the loops that start from given statistics or parameters."""

import importlib
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from rcpkg import QDA, CategoricalNB, ProjectedGradientDescent, RiskCalibration, SharedVarianceGaussianNB
from rcpkg.calibration import calibration_weights
from rcpkg.experiments import protocols, rc_studies
from rcpkg.generative import one_hot

# the function of the same name hides the module
scorecard = importlib.import_module("rcpkg.experiments.scorecard")
needs_data = pytest.mark.skipif(
    "RCPKG_DATA" not in os.environ, reason="the data sets are not here: RCPKG_DATA names no folder"
)
MODELS = [CategoricalNB(prior_strength=1.0), QDA(), SharedVarianceGaussianNB()]
ROWS, LABELS = StandardScaler().fit_transform(load_iris().data), load_iris().target
Y = one_hot(LABELS, 3)


def rows_for(model):
    return np.digitize(ROWS, [-1, 0, 1]).astype(float) if isinstance(model, CategoricalNB) else ROWS


def errors(iterates):
    return [np.mean(log_P.argmax(axis=1) != LABELS) for log_P in iterates]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_loops_from_given_starts_are_the_learners(model):
    """From the closed form, on the training rows, they give the histories of the estimators."""
    X = rows_for(model)
    model.fit(X, LABELS)
    ours = errors(protocols.calibrated(model, model._encode(X), Y, model.statistics_, calibration_weights))
    theirs = RiskCalibration(model, max_iter=63, stopping="none").fit(X, LABELS).history_.error
    assert ours == pytest.approx(theirs.to_numpy())
    gradient = "corrected" if isinstance(model, SharedVarianceGaussianNB) else "printed"
    ours = errors(protocols._descended(model, model._encode(X), Y, model.parameters_))
    theirs = ProjectedGradientDescent(model, gradient=gradient, max_iter=63).fit(X, LABELS).history_.error
    assert ours == pytest.approx(theirs.to_numpy())


def test_statistics_of_a_random_model_give_the_model_back():
    model = SharedVarianceGaussianNB().fit(ROWS, LABELS)
    start = protocols.random_model(3, 4, np.random.default_rng(1))
    again = model.parameters(150 * model.mean_parameters(start))
    for part, other in zip(start, again):
        np.testing.assert_allclose(part, other, rtol=1e-10)


@pytest.mark.parametrize("ours, others, expected", [([3, 2, 1], [2.5, 2], 2), ([3, 2], [1], None), ([1], [1], 1)])
def test_first_reach(ours, others, expected):
    assert protocols.first_reach(np.array(ours), np.array(others)) == expected


def test_rises():
    assert rc_studies._rises(np.array([3.0, 2.0, 2.0 + 1e-13, 2.5, np.inf, np.inf, 1.0])) == 2


@needs_data
@pytest.mark.parametrize("table", ["3", "5"])
def test_no_iterate_is_better_than_the_best(table):
    """The least test error of all iterates is no larger than that of the closed form on the same divisions."""
    cells = protocols.cells("study", "best-iterate")
    cell = next(c for c in cells if c.stream == "iris" and c.setting_value == f"rc2025:{table}")
    (best,) = rc_studies.best_iterate(cell, 5)
    honest = next(r for r in protocols.rc2025_splits(cell, 5) if r.metric == "test_error_percent")
    assert best.value <= honest.value and best.n_runs == honest.n_runs


@needs_data
@pytest.mark.parametrize("table", ["II", "IV", "VI", "VII"])
def test_gradient_descent_of_rc2024_comes_out_on_two_sets(table):
    """Printed gradients for naive Bayes and QDA, posteriors for the logistic regression; the iterations too."""
    for cell in protocols.cells("rc2024", table):
        if cell.method == "GD" and cell.stream in ("haberman", "climate_model"):
            ours = pd.DataFrame(protocols.rc2024_all_rows(cell, 0)).assign(row=cell.row)
            judged = rc_studies.judged("rc2024", table, ours)
            assert len(judged) == 3 and judged.agrees.all()


def test_explained_cells_are_consistent_with_the_reading_of_their_table():
    """Each fits the reading that its explanation names, and not the stated protocol."""
    rules = scorecard._rules("explanations.csv")
    rules = rules[rules.section == "sec-rc-consistent"]
    assert len(rules)
    agrees = rc_studies.consistency()["agrees"].reset_index(level=["dataset", "value_printed"], drop=True)
    for rule in rules.itertuples():
        cell = agrees.loc[rule.table, rule.row, rule.method, rule.metric]
        assert cell["all" if rule.table in ("5", "9") else "train"] and not cell["75/25"]
