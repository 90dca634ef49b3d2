"""What every classifier gives of its joint model: densities of rows, gaps filled, other class weights."""

import itertools

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcpkg import (
    QDA,
    TM,
    WANBIAC,
    BernoulliNB,
    BregmanKNN,
    CategoricalNB,
    ConditionalLikelihood,
    LocalBDA,
    MultinomialNB,
    ProductModel,
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
    """Of the conditional optimum the joint model has other class weights, so that they cannot be divided by."""
    keep = np.r_[0:90:3, 1:45:3, 2:90:3]
    model = ConditionalLikelihood(SMOOTH).fit(STATES[keep], Y[keep])
    shares = np.unique(Y[keep], return_counts=True)[1] / len(keep)
    assert np.abs(np.exp(model.class_log_prior_) - shares).max() > 1e-3
    assert_allclose(model.predict_proba(STATES, shares), model.predict_proba(STATES), rtol=1e-10)


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
    refused(message, SMOOTH.fit(STATES, Y).predict_proba, STATES, class_prior=prior)


def test_a_class_without_weight_cannot_be_given_one():
    model = CategoricalNB(prior_strength=1.0, priors=[0.5, 0.5, 0.0]).fit(STATES, Y)
    refused("the weight of 'c', which is zero in the model", model.predict, STATES, class_prior=PRIOR)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("model", [QDA(), RiskCalibration(QDA())], ids=repr)
def test_class_weights_reach_a_model_through_a_pipeline(model, routing):
    X, y = load_iris(return_X_y=True)
    prior = [0.6, 0.3, 0.1]
    with config_context(enable_metadata_routing=routing):
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        scaled = pipeline[0].transform(X)
        for method in "predict", "predict_proba", "predict_log_proba":
            given = getattr(pipeline, method)(X, class_prior=prior)
            assert_array_equal(given, getattr(pipeline[-1], method)(scaled, class_prior=prior))
            assert not hasattr(model, f"set_{method}_request")


@pytest.mark.parametrize("classifier", [WANBIAC(), LocalBDA(), BregmanKNN()], ids=repr)
def test_without_a_joint_density_it_says_so(classifier):
    fitted = classifier.fit(STATES, Y)
    for method in "score_samples", "conditional_mean":
        with pytest.raises(AttributeError, match=method) as error:
            getattr(fitted, method)
        assert isinstance(error.value.__cause__, Unsupported)
        assert "needs expected_rows, which" in str(error.value)


@pytest.mark.parametrize("seed", [0, 2, 17])
def test_states_that_decide_keep_their_frequency(seed):
    """Where the optimum is at infinity a state is far rarer on the way there than in the rows, or far more frequent."""
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 2
    counts = np.column_stack([np.clip(rng.poisson(1.0 + 0.5 * y), 0, 5) for _ in range(8)])
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in counts.T])
    model = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), tol=1e-8).fit(X, y).estimator_
    for j in range(8):
        frequency = np.bincount(X[:, j]) / len(X)
        rows = np.full((len(frequency), 8), np.nan)
        rows[:, j] = np.arange(len(frequency))
        assert_allclose(np.exp(model.score_samples(rows)), frequency, rtol=1e-4)


# Words whose counts are missing --------------------------------------------------------------------------------------

COUNTS = RNG.poisson(1.0 + (Y[:, None] == ["a", "b", "c", "a"]), size=(90, 4)).astype(float)


def test_missing_counts_are_summed_over_with_weights_of_lengths():
    model = MultinomialNB(prior_strength=1.0).fit(COUNTS, Y)
    row, count = np.array([2.0, np.nan, 1.0, 3.0]), np.arange(400.0)
    X = np.tile(row, (400, 1))
    X[:, 1] = count
    weight = np.exp(model.predict_joint_log_proba(X) + gammaln(6 + count)[:, None] - gammaln(1 + count)[:, None])
    weight /= np.exp(gammaln(6))  # (L − 1)! / Π x_v!, but for what the row has
    assert_allclose(np.exp(model.predict_joint_log_proba(row[None])[0]), weight.sum(axis=0), rtol=1e-10)
    mean = (weight.sum(axis=1) @ count) / weight.sum()
    assert_allclose(model.conditional_mean(row[None]), [[2.0, mean, 1.0, 3.0]], rtol=1e-10)


def test_words_without_gaps_or_with_gaps_only_and_sparse():
    model = MultinomialNB(prior_strength=1.0).fit(COUNTS, Y)
    two = [x for x in itertools.product(range(3), repeat=4) if sum(x) == 2]
    assert_allclose(np.exp(model.score_samples(two)).sum(), 1)  # all documents of two words
    assert_array_equal(model.conditional_mean(COUNTS), COUNTS)
    nothing = np.full((1, 4), np.nan)
    assert_allclose(model.predict_log_proba(nothing)[0], model.class_log_prior_)
    words = np.exp(model.class_log_prior_ + np.log(model.family_.length_)) @ np.exp(model.parameters_.log_prob)
    assert_allclose(model.conditional_mean(nothing), words[None])
    gaps = np.where(RNG.random(COUNTS.shape) < 0.3, np.nan, COUNTS)
    assert_allclose(model.predict_log_proba(csr_array(gaps)), model.predict_log_proba(gaps), rtol=1e-10)
    assert_allclose(model.conditional_mean(csr_array(gaps)).toarray(), model.conditional_mean(gaps), rtol=1e-10)
    assert_allclose(model.score_samples(csr_array(gaps)), model.score_samples(gaps), atol=1e-10)
    for X in gaps, csr_array(gaps):
        refused(r"NaN .* not in training", model.fit, X, Y)
        refused("feature 2; counts are >= 0", model.predict, [[np.nan, 0, -1, 2]])


# Blocks --------------------------------------------------------------------------------------------------------------


def mixed():
    blocks = [("state", SMOOTH, [0, 1]), ("size", QDA(), [2, 3]), ("word", MultinomialNB(prior_strength=1.0), [4, 5])]
    numbers = np.random.default_rng(1).standard_normal((90, 2)) + STATES[:, 2:]
    X = np.hstack([STATES[:, :2], numbers, COUNTS[:, :2]])
    return ProductModel(blocks), X


@pytest.mark.parametrize("learner", [lambda m: m, RiskCalibration, TM], ids=["closed form", "RC", "TM"])
def test_blocks_sum_out_their_own_gaps(learner):
    """The log joint density is the sum of those of the blocks of the parameters, each of what it has."""
    product, X = mixed()
    model = learner(product).fit(X, Y)
    gaps = np.where(RNG.random(X.shape) < 0.4, np.nan, X)
    gaps[0] = np.nan
    fitted = getattr(model, "estimator_", model)
    joint, filled = fitted.class_log_prior_, model.conditional_mean(gaps)
    posterior = model.predict_proba(gaps)
    parts = zip(product.blocks, fitted.family_.families, fitted.parameters_.blocks)
    for (name, _, columns), own, block in parts:
        joint = joint + own.log_joint(gaps[:, columns], block) - block.log_prior
        for mine, other in zip(filled[name], own.expected_rows(gaps[:, columns], posterior, block)):
            assert_allclose(mine, other)
    assert_allclose(model.predict_joint_log_proba(gaps), joint, rtol=1e-10)
    assert_allclose(np.log(posterior[0]), fitted.class_log_prior_, rtol=1e-8)
    complete = model.conditional_mean(X)
    assert_allclose(complete["size"], X[:, 2:4])
    assert_array_equal(complete["state"][1].argmax(axis=1), X[:, 1])
    refused("NaN", model.fit, gaps, Y)
