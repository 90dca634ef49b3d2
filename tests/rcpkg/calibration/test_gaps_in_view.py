"""Calibration with gaps in view: the average over patterns, its gradient, its steps, and what is refused."""

from itertools import product

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.strict_naive_bayes import StrictCategoricalNB
from scipy.sparse import csr_array
from test_training_with_gaps import FIRST, FULL, MODELS, TARGETS, WITH_TARGETS, rows

from rcpkg import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
)
from rcpkg.calibration import Objective
from rcpkg.calibration.in_view import PATTERNS, copies
from rcpkg.rows import Rows

each_kind = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in FIRST)) for name in MODELS]
)

EVERY = np.array(list(product([False, True], repeat=4)))[1:]  # patterns of four features that lose something
SOME = EVERY[[0, 4, 10, 14]]


def complete(name, n=120):
    """Rows of a model, and their labels."""
    _, y, X = rows(name, n)
    return X, y


@pytest.mark.parametrize("weight", [False, True], ids=["counted", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_the_objective_is_the_average_over_all_patterns(name, weight):
    """By brute force, of what a fitted classifier says of the rows behind each mask."""
    X, y = complete(name)
    w = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weight else None
    objective = Objective.from_estimator(MODELS[name], X, y, w, gaps_in_view=EVERY)
    point = objective.evaluate(objective.start)
    counts = np.ones(len(y)) if w is None else w
    masks = [np.zeros(4, dtype=bool), *EVERY]
    log_P = [point.model.predict_log_proba(np.where(mask, np.nan, X))[np.arange(len(y)), y] for mask in masks]
    assert_allclose(point.value, np.mean(log_P, axis=0) @ counts, rtol=1e-10)
    assert_allclose(objective.total_weight, counts.sum())
    plain = Objective.from_estimator(MODELS[name], X, y, w)
    assert_array_equal(objective.labels.ravel(), plain.labels.ravel())
    assert_array_equal(objective.start.ravel(), plain.start.ravel())


@pytest.mark.parametrize("name", FULL)
def test_the_gradient_is_that_of_the_average(name):
    """By differences, along the way from the closed form to the optimum without gaps in view."""
    X, y = complete(name)
    objective = Objective.from_estimator(MODELS[name], X, y, target_weight=1.0, gaps_in_view=SOME)
    point = objective.evaluate(objective.start)
    end = RiskCalibration(MODELS[name], target_weight=1.0, tol=1e-3).fit(X, y).estimator_
    d = 0.1 * (objective.family.natural_parameters(end._fitted_parameters()) + -1.0 * point.natural)
    names = np.arange(len(objective.y)), objective.y
    weight, target = objective.weight, objective.target

    def value(natural):
        joint = objective.family.log_joint(objective.X, objective.family.from_natural(natural))
        return weight @ (joint[names] - np.logaddexp.reduce(joint, axis=1))

    slope = (value(point.natural + 1e-4 * d) - value(point.natural + -1e-4 * d)) / 2e-4
    of_rows = point.gradient - target.weight * target.statistics
    assert_allclose(of_rows.dot(d), slope, rtol=1e-4, atol=1e-6)


@each_kind
def test_no_gap_in_view_changes_nothing(name):
    """A rate of 0, patterns that hide nothing, and those of a table without gaps."""
    X, y = complete(name)
    plain = RiskCalibration(MODELS[name], tol=1e-4).fit(X, y).predict_log_proba(X)
    for nothing in (0.0, [0, 0], "training", np.zeros((3, 4), dtype=bool)):
        shown = RiskCalibration(MODELS[name], tol=1e-4, gaps_in_view=nothing).fit(X, y)
        assert_array_equal(shown.predict_log_proba(X), plain)


def test_masks_follow_the_random_state_and_the_weights_of_rows_stay():
    X, y = complete("QDA")
    fits = [RiskCalibration(MODELS["QDA"], gaps_in_view=0.5, tol=1e-3, random_state=k).fit(X, y) for k in (0, 0, 1)]
    P = [fit.predict_proba(X) for fit in fits]
    assert_array_equal(P[0], P[1])
    assert (P[0] != P[2]).any()
    X = np.random.default_rng(0).normal(size=(2000, 6))
    found = copies(X, [0.2, 0.5], np.random.RandomState(0))
    assert_allclose(found.mean(np.ones(len(found.row))), 1)
    lost = np.bincount(found.row, found.share * np.isnan(found.X).mean(axis=1))
    assert lost.mean() == pytest.approx(0.7 / 3, abs=0.02)
    assert len(np.unique(np.isnan(found.X), axis=0)) <= 2 * PATTERNS + 1


def test_gaps_of_the_table_are_shown_to_other_rows():
    X = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
    found = copies(X, "training", np.random.RandomState(1))
    shown = np.isnan(found.X[3:])
    assert (shown == [False, True]).all() and set(found.row[3:]) <= {1, 2}
    assert_array_equal(found.X[:3], X)


@pytest.mark.parametrize("name", ["GaussianNB", pytest.param("TAN", marks=pytest.mark.slow)])
def test_the_weight_of_the_target_is_chosen_by_rows_left_out_behind_masks(name):
    X, y = complete(name)
    weights = {"target": "pooled", "target_weights": [1.0, 100.0], "cv": 3}
    given = RiskCalibrationCV(MODELS[name], **weights, gaps_in_view=SOME).fit(X, y)
    plain = RiskCalibrationCV(MODELS[name], **weights).fit(X, y)
    assert (given.cv_results_.log_loss > plain.cv_results_.log_loss).all()
    zero = RiskCalibrationCV(MODELS[name], **weights, gaps_in_view=0.0, random_state=None).fit(X, y)
    assert_array_equal(*(each.cv_results_.drop(columns="target").to_numpy() for each in (zero, plain)))
    with pytest.warns(UserWarning, match="5 folds take its place"):
        RiskCalibrationCV(MODELS[name], **weights | {"cv": "loo"}, gaps_in_view=SOME).fit(X, y)


BAD = {
    "one": 1.0,
    "negative": [0.2, -0.1],
    "nan": np.nan,
    "none": [],
    "name": "test",
    "flag": True,
    "one pattern": np.zeros(4, dtype=bool),
    "no pattern": np.zeros((0, 4), dtype=bool),
    "numbers": np.zeros((2, 4)),
    "patterns of other columns": np.ones((2, 3), dtype=bool),
}


@pytest.mark.parametrize("learner", [RiskCalibration, RiskCalibrationCV])
@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_pattern_is_refused(learner, bad):
    refused("gaps_in_view", learner(MODELS["QDA"], gaps_in_view=BAD[bad]).fit, *complete("QDA"))


def test_models_and_rows_without_gaps_in_training_are_refused():
    X, y = complete("TAN")
    of_counts = ProductModel([("counts", MultinomialNB(), [0, 1]), ("states", CategoricalNB(), [2, 3])])
    for model in (MultinomialNB(), StrictCategoricalNB(), of_counts):
        refused(r"gaps in training|does not accept", RiskCalibration(model, gaps_in_view=0.5).fit, X, y)
    with pytest.raises(ValueError, match="gaps_in_view takes dense rows"):
        RiskCalibration(BernoulliNB(), gaps_in_view=0.5).fit(csr_array(np.minimum(X, 1)), y)
    with pytest.raises(ValueError, match="gaps_in_view takes rows that are one block"):
        RiskCalibration(GaussianNB(), gaps_in_view=0.5).fit(Rows.from_arrays(X, y, block_size=50))


@pytest.mark.filterwarnings("ignore:not converged")
@each_kind
def test_a_row_of_gaps_only_has_the_class_weights_that_are_given(name):
    """Whatever the target, the steps and the gaps in view: calibration moves p(y) from the shares of the rows."""
    X, y = complete(name)
    y[::3] = 0
    nothing, prior = np.full((2, 4), np.nan), [0.6, 0.3, 0.1]
    learners = [MODELS[name], RiskCalibration(MODELS[name], gaps_in_view=0.5, target_weight=0.0, tol=1e-3, max_iter=5)]
    for target, weight in TARGETS if name in WITH_TARGETS else [("pooled", 0.0)]:
        learners.append(RiskCalibration(MODELS[name], target=target, target_weight=weight, tol=1e-3, max_iter=5))
    for learner in learners:
        model = learner.fit(X, y)
        assert_allclose(model.predict_proba(nothing, class_prior=prior), [prior, prior], rtol=1e-12)
        assert_allclose(model.predict_log_proba(nothing), [model.class_log_prior_] * 2, atol=1e-10)
        one = X[:1].copy()
        one[0, 1:] = np.nan
        shares = np.bincount(y) / len(y) if learner is not MODELS[name] else np.exp(model.class_log_prior_)
        moved = model.predict_proba(one)[0] * prior / shares
        assert_allclose(model.predict_proba(one, class_prior=prior)[0], moved / moved.sum(), rtol=1e-10)
