"""What every classifier gives of its joint model: densities of rows, gaps filled, other class weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from rcpkg import (
    WANBIAC,
    BernoulliNB,
    BregmanKNN,
    CategoricalNB,
    ConditionalLikelihood,
    LocalBDA,
    RiskCalibration,
    RiskCalibrationCV,
)
from rcpkg.families import Unsupported

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[np.arange(90) % 3]
STATES = (RNG.integers(3, size=(90, 3)) + (Y[:, None] == "b") * RNG.integers(2, size=(90, 3))).astype(float)
PRIOR = [0.6, 0.3, 0.1]
SMOOTH = CategoricalNB(prior_strength=1.0)
CLASSIFIERS = [
    SMOOTH,
    BernoulliNB(binarize=1.0, prior_strength=1.0),
    RiskCalibration(SMOOTH),
    ConditionalLikelihood(SMOOTH, target_weight=1.0),
    RiskCalibrationCV(SMOOTH, target_weights=[1.0, 3.0]),
]


@pytest.fixture(params=CLASSIFIERS, ids=repr)
def model(request):
    return request.param.fit(STATES, Y)


def test_density_is_the_sum_over_classes(model):
    X = np.where(RNG.random(STATES.shape) < 0.3, np.nan, STATES)
    assert_allclose(model.score_samples(X), logsumexp(model.predict_joint_log_proba(X), axis=1), atol=1e-14)
    assert_allclose(model.score_samples(np.full((2, 3), np.nan)), 0.0, atol=1e-12)


def test_filled_rows_are_means_over_all_completions(model):
    """Σ p(x | what is there) of each state, by the joint densities of the completed rows."""
    row, filled = np.array([[1.0, np.nan, 2.0]]), model.conditional_mean([[1.0, np.nan, 2.0]])
    completed = np.array([[1.0, v, 2.0] for v in range(4)])
    weight = np.exp(model.score_samples(completed) - model.score_samples(row))
    if isinstance(filled, list):
        assert_allclose(filled[1][0], weight, rtol=1e-10)
        assert_array_equal(filled[0][0], [0, 1, 0, 0])
    else:  # two states, 0 … 1 and 2 … 3
        assert_allclose(filled[0], [0, weight[2], 1], rtol=1e-10)


def test_other_class_weights(model):
    """Posterior odds change as those of the class weights do, whose old ones are those of the model, or of the rows."""
    log_prior = np.log([1 / 3] * 3) if hasattr(model, "estimator_") else model.class_log_prior_
    P, Q = model.predict_proba(STATES), model.predict_proba(STATES, class_prior=PRIOR)
    changed = P * PRIOR / np.exp(log_prior)
    assert_allclose(Q, changed / changed.sum(axis=1, keepdims=True), rtol=1e-10)
    assert_allclose(np.exp(model.predict_log_proba(STATES, PRIOR)), Q)
    assert_array_equal(model.predict(STATES, PRIOR), model.classes_[Q.argmax(axis=1)])
    by_label = {"c": 0.1, "b": 0.3, "a": 0.6}
    for named in by_label, pd.Series(by_label):
        assert_array_equal(model.predict_proba(STATES, class_prior=named), Q)


def test_class_weights_of_a_calibrated_model_are_those_of_its_rows():
    """Of the conditional optimum any class weights of the joint model will do, so that they cannot be divided by."""
    keep = np.r_[0:90:3, 1:45:3, 2:90:3]
    model = ConditionalLikelihood(SMOOTH).fit(STATES[keep], Y[keep])
    shares = np.unique(Y[keep], return_counts=True)[1] / len(keep)
    assert np.abs(np.exp(model.class_log_prior_) - shares).max() > 0.01
    assert_allclose(model.predict_proba(STATES, shares), model.predict_proba(STATES), rtol=1e-10)


def test_weights_of_rows_count():
    w = RNG.uniform(0.5, 2.0, size=90)
    model = RiskCalibration(SMOOTH).fit(STATES, Y, sample_weight=w)
    shares = np.array([w[c == Y].sum() for c in "abc"]) / w.sum()
    assert_allclose(model.predict_proba(STATES, shares), model.predict_proba(STATES), rtol=1e-10)


def test_votes_of_neighbours_are_those_of_the_shares_of_the_rows():
    keep = np.r_[0:90:3, 1:45:3, 2:90:3]
    model = BregmanKNN().fit(STATES[keep], Y[keep])
    shares = np.unique(Y[keep], return_counts=True)[1] / len(keep)
    assert_allclose(model.predict_proba(STATES, shares), model.predict_proba(STATES))
    assert np.abs(model.predict_proba(STATES, PRIOR) - model.predict_proba(STATES)).max() > 0.1


def test_a_row_that_is_impossible_gets_the_class_weights():
    model = CategoricalNB(n_states=5, unknown="impossible").fit(STATES, Y)
    assert_allclose(model.predict_proba([[9.0, 0.0, 0.0]], class_prior=PRIOR), [PRIOR])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], "class_prior must hold 3 numbers"),
        ([0.5, 0.5, 0.5], "class_prior sum to 1.5"),
        ([0.5, 0.5, 0.0], "class_prior must hold positive numbers"),
        ([1.5, -0.25, -0.25], "class_prior holds -0.25"),
        ({"a": 0.5, "b": 0.5}, "class_prior must map each of the labels"),
        ({"a": 0.5, "b": 0.25, "d": 0.25}, "class_prior must map each of the labels"),
        ("balanced", "class_prior must hold numbers"),
    ],
)
def test_bad_class_weights(prior, message):
    with pytest.raises(ValueError, match=message):
        SMOOTH.fit(STATES, Y).predict_proba(STATES, class_prior=prior)


def test_a_class_without_weight_cannot_be_given_one():
    model = CategoricalNB(prior_strength=1.0, priors=[0.5, 0.5, 0.0]).fit(STATES, Y)
    with pytest.raises(ValueError, match="the weight of 'c', which is zero in the model"):
        model.predict(STATES, class_prior=PRIOR)


@pytest.mark.parametrize("classifier", [WANBIAC(), LocalBDA(), BregmanKNN()], ids=repr)
def test_without_a_joint_density_it_says_so(classifier):
    fitted = classifier.fit(STATES, Y)
    for method in "score_samples", "conditional_mean":
        with pytest.raises(AttributeError, match=method) as error:
            getattr(fitted, method)
        assert isinstance(error.value.__cause__, Unsupported)
        assert "needs expected_rows, which" in str(error.value.__cause__)


class OfCompleteRows(CategoricalNB):
    """Categories whose tags say that rows of ``fit`` must not have gaps."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def test_gaps_in_training_are_refused_where_only_predictions_take_them():
    gaps = np.where(RNG.random(STATES.shape) < 0.3, np.nan, STATES)
    for model, fault in (
        (OfCompleteRows(), "takes when it predicts, not in"),
        (ConditionalLikelihood(SMOOTH), "missing"),
    ):
        model.fit(STATES, Y)
        assert_allclose(model.predict_proba(gaps).sum(axis=1), 1)
        with pytest.raises(ValueError, match=fault):
            model.fit(gaps, Y)
