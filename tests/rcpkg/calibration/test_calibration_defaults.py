"""What a reader gets: the settings that calibration chooses, how it converges, and what it says of its end."""


import numpy as np
import pytest
from model_cases import MODELS, gaussian_rows, of_each_family, refused, rows_for, slow
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.experiments import results
from rcbook.experiments.studies.target_weights import SETS, excess
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB as SklearnNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcpkg import (
    LDA,
    QDA,
    TM,
    ClosedFormClassifier,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    Family,
    GaussianNB,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
    SoftErrorCalibration,
    Statistics,
)
from rcpkg.calibration import Batches, Converged, Fixed, HeldOut, Objective, Safe, SoftErrorRises, climb
from rcpkg.calibration.learner import TARGET_WEIGHT
from rcpkg.linalg import MOST_STEPS

OF_ITS_KIND = (TM, DiscriminativeFrequencyEstimate, SoftErrorCalibration)


class ExponentialFamily(Family):
    """x | y with density exp(−x/μ_y)/μ_y and equal class weights; it gives no natural parameters."""

    def statistics(self, X, weights):
        return Statistics(count=weights.sum(axis=0), first=weights.T @ X[:, 0])

    def parameters(self, statistics):
        return statistics.first / statistics.count

    def log_joint(self, X, parameters):
        return np.log(0.5) - np.log(parameters) - X / parameters


class Exponential(ClosedFormClassifier, family=ExponentialFamily):
    """The classifier of this family."""


def positive_rows():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    return rng.exponential(1.0 + 2.0 * y)[:, None], y


def same_model(a, b):
    assert_array_equal(a.estimator_.statistics_.ravel(), b.estimator_.statistics_.ravel())
    assert (a.n_iter_, a.best_iter_, a.stop_reason_) == (b.n_iter_, b.best_iter_, b.stop_reason_)


# The settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_each_family(*MODELS))
def test_an_exponential_family_goes_to_the_optimum_with_the_pooled_target(name):
    """Where safe steps end; its history begins where theirs does."""
    X, y = rows_for(name)
    explicit = {"step": "safe", "stopping": "none", "target": "pooled", "max_iter": MOST_STEPS, "tol": 1e-10}
    safe = RiskCalibration(clone(MODELS[name]), target_weight=TARGET_WEIGHT, **explicit).fit(X, y)
    default = RiskCalibration(clone(MODELS[name])).fit(X, y)
    assert_allclose(default.predict_joint_log_proba(X), safe.predict_joint_log_proba(X), atol=0.05)
    assert_allclose(default.predict_proba(X), safe.predict_proba(X), atol=1e-3)
    assert default.converged_ and default.stop_reason_ == "converged"
    assert 0 < default.n_iter_ < 50 and default.best_iter_ == default.n_iter_ == len(default.history_) - 1
    assert default.history_.log_loss[0] == pytest.approx(safe.history_.log_loss[0])
    assert default.get_params(deep=False)["step"] is None  # what is chosen does not overwrite what was asked


@pytest.mark.parametrize(
    "model, options, rows",
    [
        (Exponential(), {}, positive_rows),
        (QDA(), {"step": Fixed()}, gaussian_rows),
        (QDA(), {"step": Batches(size=40), "random_state": 0}, gaussian_rows),
    ],
    ids=["no exponential family", "fixed steps", "batches"],
)
def test_what_cannot_take_safe_steps_is_calibrated_as_published(model, options, rows):
    X, y = rows()
    default = RiskCalibration(clone(model), tol=0.0, **options).fit(X, y)
    same_model(default, RiskCalibration.as_published(clone(model), **options).fit(X, y))


def test_settings_of_the_sources_have_names():
    published = RiskCalibration.as_published(QDA(), learning_rate=0.5, on_invalid="raise", stopping="best_error")
    assert published.step == Fixed(0.5, "raise") and published.stopping == "best_error"
    assert published.max_iter == 63 and published.tol == published.target_weight == 0.0
    assert clone(published).get_params().keys() == RiskCalibration(QDA()).get_params().keys()
    with pytest.raises(TypeError, match="patience"):
        RiskCalibration.as_published(QDA(), patience=1)


# Is it good? -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [QDA(), *slow(GaussianNB(), LDA(), SharedVarianceGaussianNB())], ids=repr)
@pytest.mark.parametrize("load", [load_iris, load_wine, pytest.param(load_breast_cancer, marks=pytest.mark.slow)])
def test_held_out_log_loss_is_no_worse_than_that_of_the_closed_form(load, model):
    """By more than two standard errors of the difference, row by row."""
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)

    def held_out(learner):
        log_P = cross_val_predict(make_pipeline(StandardScaler(), learner), X, y, cv=folds, method="predict_log_proba")
        return -log_P[np.arange(len(y)), y]

    closed, calibrated = held_out(clone(model)), held_out(RiskCalibration(clone(model)))
    assert (calibrated - closed).mean() <= 2 * (calibrated - closed).std(ddof=1) / np.sqrt(len(y))
    if load is load_breast_cancer:
        assert calibrated.mean() < 0.9 * closed.mean()


def test_the_weight_is_the_one_that_does_best_over_the_honest_comparison():
    table = results("study", "target-weights")
    above = excess(table)
    assert len(above.loc["NB"]) == len(SETS) and len(above.loc["QDA"]) > 15
    assert above.mean().idxmin() == TARGET_WEIGHT


# How it ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_each_family(*MODELS))
def test_what_is_left_to_gain_is_at_most_what_the_gradient_promises(name, b=0.3):
    """F* − F ≤ (m + b m̄)²/(2 b m̄) times the promised gain, near the optimum, where it is that of a short step."""
    objective = Objective.from_estimator(clone(MODELS[name]), *rows_for(name), target_weight=b)
    tols = (1e-4, 1e-6, 1e-8, 1e-12)
    ends = {tol: climb(objective, Safe(), Converged(tol)).chosen for tol in tols}
    assert all(objective.promised_gain(end) <= tol for tol, end in ends.items())
    pseudo = b * objective.target.size
    factor = (objective.total_weight + pseudo) ** 2 / (2 * pseudo)

    def moved(lr, end=ends[1e-4]):
        return objective.evaluate(objective.moved(end.statistics, end.gradient, lr)).value

    slope = (moved(1e-3) - moved(-1e-3)) / 2e-3 * objective.total_weight / (objective.total_weight + pseudo) ** 2
    assert objective.promised_gain(ends[1e-4]) == pytest.approx(slope, rel=0.03)
    best = ends.pop(1e-12).value
    for end in ends.values():
        assert best - end.value <= 1.1 * factor * objective.promised_gain(end) + 1e-9


@pytest.mark.parametrize(
    ("learner", "reason", "message"),
    [
        (RiskCalibration(QDA(), max_iter=2), "max_iter", r"after 2 updates: .* than tol=1e-08; raise max_iter"),
        (RiskCalibration(QDA(), target_weight=0.0, max_iter=2), "max_iter", "set a target_weight > 0"),
        (RiskCalibration(LDA(), tol=1e-200), "no_step", "which rounding does not let it reach"),
        (RiskCalibration.as_published(QDA(), learning_rate=50.0), "invalid", r"step, Fixed\(.*=50\.0, .* uncalibrated"),
    ],
)
def test_a_search_that_has_not_converged_says_so(learner, reason, message):
    X, y = gaussian_rows()
    with pytest.warns(ConvergenceWarning, match=message):
        learner.fit(X, y)
    assert learner.stop_reason_ == reason and not learner.converged_
    assert learner.n_iter_ == {"max_iter": 2, "invalid": 0}.get(reason, learner.n_iter_)
    if reason == "invalid":
        assert_array_equal(learner.predict_proba(X), QDA().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("kind", OF_ITS_KIND)
def test_all_of_the_kind_can_converge(kind):
    X, y = gaussian_rows()
    settings = {"max_iter": 5000, "stopping": Converged(2e-3)}
    fitted = kind(SharedVarianceGaussianNB(), **settings).fit(X, y)
    assert fitted.stop_reason_ == "converged" and 0 < fitted.n_iter_ < 5000
    with pytest.warns(ConvergenceWarning, match="not converged after 1 updates"):
        assert not kind(SharedVarianceGaussianNB(), **settings | {"max_iter": 1}).fit(X, y).converged_


def test_a_model_without_natural_parameters_does_not_converge_by_tol():
    rc = RiskCalibration(Exponential(), tol=1e10).fit(*positive_rows())
    assert not rc.converged_ and rc.stop_reason_ in ("soft_error", "max_iter")


# Refusals ----------------------------------------------------------------------------------------------

PRIORS = QDA(priors=[0.2, 0.3, 0.5])
REFUSED = {
    RiskCalibration: [
        (SklearnNB(), {}, r"from rcpkg import .*GaussianNB.*; got GaussianNB\(\) of sklearn.naive_bayes"),
        (QDA, {}, "estimator must be a ClosedFormClassifier"),
        (QDA(), {"max_iter": 2.5}, "max_iter must be an integer >= 0"),
        (QDA(), {"tol": -1.0}, "tol must be a finite number >= 0"),
        (QDA(), {"stopping": "early"}, "stopping must be one of soft_error, .*, or a stop such as .*; got 'early'"),
        (QDA(), {"stopping": SoftErrorRises}, "stopping must be one of soft_error"),
        (QDA(), {"stopping": HeldOut(0.001)}, "HeldOut.* does not leave rows of each class on both sides"),
        (QDA(), {"step": "long"}, "step must be None, 'safe' or a step .*; got 'long'"),
        (QDA(), {"target": "mean"}, "target must be a fitted model or one of pooled, generative, grand"),
        (QDA(), {"target": 3, "target_weight": 1.0}, "target must be a fitted model or one of"),
        (QDA(), {"target_weight": -1.0}, "target_weight must be"),
        (QDA(), {"target_weight": "heavy"}, "target_weight must be"),
        (PRIORS, {"step": "safe"}, "priors of the estimator must be None"),
        (PRIORS, {}, r"would undo them; .* predict_proba\(X, class_prior="),
    ],
    RiskCalibrationCV: [
        (RiskCalibration.as_published(QDA()), {}, "ClosedFormClassifier of rcpkg"),
        (QDA(), {"target_weights": []}, "target_weights must be a non-empty list of numbers > 0"),
        (QDA(), {"target_weights": [0.0, 1.0]}, "target_weights must be a non-empty list of numbers > 0"),
        (QDA(), {"target_weights": "all"}, 'target_weights must be "auto" or numbers > 0'),
        (QDA(), {"scoring": "acuracy"}, "scoring must be one of log_loss, error, the name"),
        (QDA(), {"scoring": lambda *rows: np.nan, "cv": 3, "target_weights": [1.0]}, "gives NaN in a fold"),
        (QDA(), {"cv": "all"}, 'cv must be "auto", "loo", a number of folds or a splitter'),
        (QDA(), {"target": "mine"}, "target must be"),
    ],
    ConditionalLikelihood: [
        ("QDA", {}, "estimator must be a ClosedFormClassifier"),
        (PRIORS, {}, "priors of the estimator must be None"),
        (QDA(), {"tol": 0.0}, "tol must be"),
        (QDA(), {"target": "mine"}, "target must be"),
        (QDA(), {"coordinates": "polar"}, "coordinates must be 'whitened' or 'natural' or"),
        (QDA(), {"solver": "sag"}, "solver must be 'auto' or 'newton' or 'lbfgs'"),
        (QDA(), {"l2": -1.0}, "l2 must be a finite number >= 0"),
        (QDA(), {"l2": 1.0, "target_weight": 1.0}, "are two penalties"),
        (QDA(), {"target_weight": 1.0, "coordinates": "natural"}, "leaves the domain of the target's penalty"),
    ],
}


@pytest.mark.parametrize(
    ("learner", "estimator", "options", "message"), [(kind, *row) for kind, rows in REFUSED.items() for row in rows]
)
def test_bad_settings_are_named(learner, estimator, options, message):
    refused(message, learner(estimator, **options).fit, *gaussian_rows())
