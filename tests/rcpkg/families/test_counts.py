"""Models of counts in the reader's hands: unknown and missing categories, text, new states, sparse rows, columns."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn.naive_bayes as sk_nb
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    categorical_rows,
    document_rows,
    gaussian_rows,
    mixed_model,
    mixed_rows,
    peak_memory,
    refused,
    slow,
)
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.strict_naive_bayes import StrictCategoricalNB
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array, csr_matrix
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.exceptions import ConvergenceWarning

from rcpkg import (
    QDA,
    TM,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    SharedVarianceGaussianNB,
    SoftErrorCalibration,
)
from rcpkg.calibration import Batches, Fixed, HeldOut, Objective
from rcpkg.families import safe_counts, states

STRENGTHS = pytest.mark.parametrize("strength", [0.0, 2.0])


def holes(X, share=0.15, seed=0):
    """X without a part of its values, each row keeping its first."""
    gone = np.random.default_rng(seed).uniform(size=X.shape) < share
    gone[:, 0] = False
    return np.where(gone, np.nan, X)


# Unknown and missing categories --------------------------------------------------------------------------------------


@STRENGTHS
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_codes_does_not_matter(strength, seed):
    """Codes named anew give the same posteriors, whether a code that training lacks is the last or in the middle."""
    rng = np.random.default_rng(seed)
    X, y = categorical_rows(n_states=(3, 4, 5))
    train = X[:, 2] != rng.integers(5)
    names = rng.permutation(5).astype(float)
    model = CategoricalNB(prior_strength=strength).fit(X[train], y[train])
    other = CategoricalNB(prior_strength=strength).fit(names[X[train].astype(int)], y[train])
    assert_array_equal(model.n_states_, [3, 4, 4])
    assert_allclose(other.predict_log_proba(names[X.astype(int)]), model.predict_log_proba(X), atol=1e-12)


def test_declared_states_of_no_row():
    """MAP gives them pseudo-rows; under ML, with probability zero in each class, they are skipped."""
    X, y = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), [0, 0, 1, 1]
    rows = [[3, 0], [3, 1]]
    smoothed = CategoricalNB(n_states=4, prior_strength=4.0).fit(X, y)
    assert_allclose(np.exp(smoothed.parameters_.log_prob[:, :4]), np.tile([1 / 3, 1 / 3, 1 / 6, 1 / 6], (2, 1)))
    assert_allclose(
        smoothed.predict_joint_log_proba(rows),
        smoothed.predict_joint_log_proba([[np.nan, 0], [np.nan, 1]]) + np.log(1 / 6),
    )
    exact = CategoricalNB(n_states=4).fit(X, y)
    assert_array_equal(exact.predict_proba(rows), [[1, 0], [0, 1]])
    old_rule = StrictCategoricalNB(n_states=4).fit(X, y)
    assert_array_equal(old_rule.predict_proba(rows), [[0.5, 0.5]] * 2)


# Missing values in training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [RiskCalibration, TM, DiscriminativeFrequencyEstimate, SoftErrorCalibration])
def test_fixed_steps_take_missing_values(learner):
    """Their direction is still one of ascent: Σ_v g_v²/θ_v ≥ (Σ_v g_v)² within each distribution."""
    X, y = categorical_rows()
    options = {} if learner is TM else {"step": Fixed(0.02)}
    options |= {"target_weight": 0.0, "tol": 0.0} if learner is RiskCalibration else {}
    model = learner(CategoricalNB(), stopping="none", max_iter=5, **options).fit(holes(X), y)
    assert model.n_iter_ == 5
    assert np.isfinite(model.history_.log_loss).all()
    if learner is RiskCalibration:
        assert model.history_.log_loss.is_monotonic_decreasing


# Text ----------------------------------------------------------------------------------------------------------------

COLOURS = pd.DataFrame(
    {"colour": ["red", "blue", "red", "green", "blue", "red"], "size": ["02", "2", "2", "02", "02", "2"]}
)
KINDS = [0, 0, 1, 1, 0, 1]
SECOND = pd.DataFrame({"size": ["2"]})


@pytest.mark.parametrize("table", [COLOURS, COLOURS.astype("category"), COLOURS.to_numpy(dtype=object)], ids=type)
def test_text_is_taken_by_name(table):
    model = CategoricalNB(prior_strength=1.0).fit(table, KINDS)
    assert [names.tolist() for names in model.categories_] == [["blue", "green", "red"], ["02", "2"]]
    codes = np.array([[2, 0], [0, 1], [2, 1], [1, 0], [0, 0], [2, 1]])
    expected = CategoricalNB(prior_strength=1.0).fit(codes, KINDS).predict_proba(codes)
    assert_allclose(model.predict_proba(table), expected)
    sampled, _ = model.sample(30, random_state=0)
    assert set(sampled[:, 0]) <= {"blue", "green", "red"}
    known = pd.DataFrame(sampled, columns=table.columns) if isinstance(table, pd.DataFrame) else sampled
    assert np.isfinite(model.predict_log_proba(known)).all()


def test_counts_next_to_zero_grow_and_vanish_without_a_warning():
    with warnings.catch_warnings(action="error"):
        counts = safe_counts(np.array([1e-310, 1e-310, 2.0, 0.0]), np.array([1.0, -1.0, 1.0, 1.0]))
    assert_array_equal(counts, [1, 0, 3, 0])


@pytest.mark.parametrize("weight", [0.01, 1.0])
def test_calibrated_counts_of_documents_of_unequal_lengths_reach_the_optimum(weight):
    """Also where words tell little: the counts of one class fell to zero there, and the search ended short."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 100)
    X = rng.multinomial(rng.integers(0, 40, 100), rng.dirichlet(9 * np.ones(2), 3)[y])
    learner = RiskCalibration(MultinomialNB(prior_strength=1.0), target_weight=weight, tol=1e-12).fit(X, y)
    assert learner.converged_
    target = Objective.from_estimator(clone(learner.estimator), X, y, target="pooled", target_weight=weight).target

    def loss(z):
        log_prior, log_prob = log_softmax(z[:3]), log_softmax(z[3:].reshape(3, 2), axis=1)
        log_P = log_softmax(X @ log_prob.T + log_prior, axis=1)[np.arange(100), y].sum()
        return -log_P - weight * (target.statistics.count @ log_prior + (target.statistics.cells * log_prob).sum())

    found = np.concatenate([np.ravel(part) for part in learner.estimator_.parameters_])
    assert loss(found) <= minimize(loss, np.zeros(9), method="BFGS").fun + 1e-6


def test_counts_that_leave_no_class_but_one_say_that_the_search_has_ended():
    X = 1e9 * np.array([[2, 1], [1, 2], [3, 1], [1, 1], [1, 3], [2, 2]])
    with pytest.warns(ConvergenceWarning):
        RiskCalibration(MultinomialNB(prior_strength=1.0), max_iter=50).fit(X, [0, 1, 0, 1, 1, 0])


def test_names_unseen_and_missing_are_skipped():
    model = CategoricalNB(prior_strength=1.0).fit(COLOURS, KINDS)
    known = model.predict_proba(pd.DataFrame({"colour": ["violet"], "size": ["2"]}))
    assert_allclose(known, CategoricalNB(prior_strength=1.0).fit(COLOURS[["size"]], KINDS).predict_proba(SECOND))
    for colour in (None, pd.NA, np.nan):
        assert_array_equal(model.predict_proba(pd.DataFrame({"colour": [colour], "size": ["2"]})), known)
    prior = np.exp(model.class_log_prior_)[None]
    assert_allclose(model.predict_proba(pd.DataFrame({"colour": [np.nan], "size": [np.nan]})), prior)
    assert_allclose(model.predict_proba(pd.DataFrame({"colour": ["02"], "size": ["red"]})), prior)
    impossible = StrictCategoricalNB(prior_strength=1.0).fit(COLOURS, KINDS)
    assert_allclose(impossible.predict_proba(pd.DataFrame({"colour": ["violet"], "size": ["2"]})), [[0.5, 0.5]])


def test_products_take_text_beside_numbers():
    X, y = gaussian_rows()
    frame = pd.DataFrame({"length": X[:, 0], "width": X[:, 1], "colour": np.array(["red", "blue", "green"])[y]})
    frame.loc[3, "colour"] = None
    model = ProductModel([("kind", CategoricalNB(prior_strength=1.0), ["colour"]), ("size", QDA(), slice(0, 2))])
    fitted = RiskCalibration.as_published(model, target_weight=0.0).fit(frame, y)
    assert fitted.score(frame, y) > 0.9
    rows, _ = fitted.sample(5, random_state=0)
    assert set(rows[:, 2]) <= {"red", "blue", "green"}
    unseen = frame.assign(colour="violet")
    sizes = QDA(class_prior_strength=0.0).fit(X[:, :2], y)
    assert_allclose(clone(model).fit(frame, y).predict_proba(unseen), sizes.predict_proba(X[:, :2]), atol=1e-9)
    with pytest.raises(ValueError, match=r"feature 'colour' of block 'all' holds text, and QDA takes numbers only"):
        ProductModel([("kind", CategoricalNB(), ["width"]), ("all", QDA(), ["length", "colour"])]).fit(
            frame.assign(width=np.arange(len(frame)) % 2), y
        )


# New states ----------------------------------------------------------------------------------------------------------


def test_names_that_come_later_are_learnt():
    later = pd.DataFrame({"colour": ["amber", "red"], "size": ["2", "10"]})
    table, y = pd.concat([COLOURS, later], ignore_index=True), [*KINDS, 0, 1]
    model = CategoricalNB(prior_strength=1.0).partial_fit(COLOURS, KINDS, classes=[0, 1]).partial_fit(later, [0, 1])
    assert [names.tolist() for names in model.categories_] == [["blue", "green", "red", "amber"], ["02", "2", "10"]]
    whole = CategoricalNB(prior_strength=1.0).fit(table, y)
    assert_allclose(model.predict_proba(table), whole.predict_proba(table), atol=1e-12)
    blocks = [("all", CategoricalNB(prior_strength=1.0), slice(None))]
    product = ProductModel(blocks, class_prior_strength=1.0)
    product.partial_fit(COLOURS, KINDS, classes=[0, 1]).partial_fit(later, [0, 1])
    assert_allclose(product.predict_proba(table), whole.predict_proba(table), atol=1e-12)


# scikit-learn's alpha ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0])
def test_conversion_from_alpha(alpha):
    """m₀ = α times the states of a feature, or the words; class weights unsmoothed."""
    X, y = categorical_rows(n_states=(4, 4, 4))
    cases = [(X, 4, CategoricalNB, sk_nb.CategoricalNB), (X, 2, BernoulliNB, sk_nb.BernoulliNB)]
    words, topics = document_rows(d=6)
    cases += [(words, 6, MultinomialNB, sk_nb.MultinomialNB)]
    for rows, n_states, ours, theirs in cases:
        labels = topics if ours is MultinomialNB else y
        model = ours(prior_strength=alpha * n_states, class_prior_strength=0.0).fit(rows, labels)
        expected = theirs(alpha=alpha).fit(rows, labels).predict_log_proba(rows)
        assert_allclose(model.predict_log_proba(rows), expected, atol=1e-10)
    X, y = categorical_rows(n_states=(2, 3, 5))
    strengths = alpha * np.array([2, 3, 5])
    blocks = [(f"x{j}", CategoricalNB(prior_strength=strength), [j]) for j, strength in enumerate(strengths)]
    expected = sk_nb.CategoricalNB(alpha=alpha).fit(X, y).predict_log_proba(X)
    for model in ProductModel(blocks), CategoricalNB(prior_strength=strengths):
        assert_allclose(model.fit(X, y).predict_log_proba(X), expected, atol=1e-10)


# Sparse rows ---------------------------------------------------------------------------------------------------------


def sparse_case(model):
    X, y = document_rows(n=80, d=9, length=6)
    X[:, 3] = 0  # a word of no document
    X[np.arange(len(X)), 0] += 6 - X.sum(axis=1)
    return X, y


def doubled(counts):
    """Sparse rows in which each count is stored as ones, one after another, as lists of words are."""
    rows = [[j for j, k in enumerate(row) for _ in range(int(k))] for row in counts]
    starts = np.cumsum([0, *map(len, rows)])
    return csr_array((np.ones(starts[-1], np.int8), np.concatenate(rows).astype(int), starts), shape=counts.shape)


LEARNERS = {
    "closed form": lambda model: model,
    "RC": lambda model: RiskCalibration.as_published(model, learning_rate=0.02, max_iter=5),
    "RC safe": lambda model: RiskCalibration(model, max_iter=8, target_weight=0.0, tol=0.0, step="safe"),
    "RC target": lambda model: RiskCalibration(model, max_iter=8, target_weight=1.0, tol=0.0, step="safe"),
    "RC batches": lambda model: RiskCalibration.as_published(
        model, max_iter=3, random_state=0, step=Batches(size=20, learning_rate=0.01)
    ),
    "RC validation": lambda model: RiskCalibration.as_published(
        model, stopping=HeldOut(0.3), max_iter=4, random_state=0
    ),
    "TM": lambda model: TM(model, max_iter=2),
    "DFE": lambda model: DiscriminativeFrequencyEstimate(model, max_iter=4),
    "soft error": lambda model: SoftErrorCalibration(model, max_iter=4),
    "L-BFGS": lambda model: ConditionalLikelihood(model, target_weight=1.0, max_iter=8, tol=1e-3),
}


SMOOTH = [MultinomialNB(prior_strength=1.0), BernoulliNB(prior_strength=1.0)]
OF_TWO = BernoulliNB(prior_strength=1.0, binarize=1.5)  # two ones in one place are two


@pytest.mark.parametrize(("model", "learner"), [*product(SMOOTH, LEARNERS), (OF_TWO, "closed form")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_give_what_dense_rows_give(model, learner):
    X, y = sparse_case(model)
    dense = LEARNERS[learner](clone(model)).fit(X, y)
    for rows in csr_array(X), csr_matrix(X), coo_array(X), doubled(X).tocsc(), doubled(X):
        before = rows.copy()
        sparse = LEARNERS[learner](clone(model)).fit(rows, y)
        assert_allclose(sparse.predict_log_proba(rows), dense.predict_log_proba(X), atol=1e-8)
        assert_allclose(sparse.predict_log_proba(X), dense.predict_log_proba(X), atol=1e-8)
        assert_array_equal(rows.data, before.data)


@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_sparse_rows_by_maximum_likelihood(model):
    """Zeros among the probabilities, words of no document and of all, in pieces and with weights."""
    X, y = sparse_case(model)
    X[:, 5] = np.maximum(X[:, 5], 1)
    w = np.random.default_rng(0).integers(0, 3, size=len(y)) / 7
    dense, sparse = clone(model).fit(X, y, sample_weight=w), clone(model).fit(csr_array(X), y, sample_weight=w)
    assert_allclose(sparse.predict_joint_log_proba(csr_array(X)), dense.predict_joint_log_proba(X), atol=1e-10)
    pieces = clone(model)
    for rows in np.array_split(np.arange(len(y)), 3):
        pieces.partial_fit(csr_array(X[rows]), y[rows], classes=[0, 1, 2], sample_weight=w[rows])
    assert_allclose(pieces.predict_joint_log_proba(X), dense.predict_joint_log_proba(X), atol=1e-10)
    if isinstance(model, BernoulliNB):
        same = CategoricalNB(n_states=2).fit(X > 0, y, sample_weight=w)
        assert_allclose(sparse.predict_joint_log_proba(X), same.predict_joint_log_proba(X > 0), atol=1e-10)


@pytest.mark.parametrize(
    "model, change, message",
    [
        (MultinomialNB(), -2.0, "Negative values in data .*: feature 2"),
        (BernoulliNB(binarize=None), 3.0, "feature 2 holds values other than 0 and 1"),
        (BernoulliNB(binarize=-1.0), 1.0, r"binarize must be >= 0 for sparse rows"),
        (BernoulliNB(binarize="no"), 1.0, r"binarize must be a finite number"),
        (ConditionalLikelihood(MultinomialNB(prior_strength=1.0)), 9.0, "rows of unequal sums"),
        (CategoricalNB(), 1.0, "[Ss]parse"),
        (QDA(), 1.0, "[Ss]parse"),
    ],
    ids=repr,
)
def test_sparse_rows_that_are_refused(model, change, message):
    X = np.eye(6)
    X[4, 2] = change
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(csr_array(X), [0, 1] * 3)


@pytest.mark.parametrize("model", SMOOTH, ids=repr)
def test_sparse_rows_are_never_made_dense(model):
    """10⁴ documents of 2·10⁴ words, 0.1 % of them stored: dense they would take 1.6 GB."""
    n, d, r = 10_000, 20_000, 3
    rng = np.random.default_rng(0)
    size = n * d // 1000
    X = csr_array((rng.integers(1, 4, size).astype(float), rng.integers([[n], [d]], size=(2, size))), shape=(n, d))
    y = rng.integers(r, size=n)
    learner = RiskCalibration(model, max_iter=4, target_weight=1.0, tol=0.0, step="safe")
    peak = peak_memory(lambda: learner.fit(X, y).predict_proba(X))
    assert learner.history_.log_loss.iloc[-1] < learner.history_.log_loss.iloc[0]
    assert peak < n * d * 8 / 20


# Rows encoded block by block ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        CategoricalNB(prior_strength=1.0),
        CategoricalNB(prior_strength=1.0, n_states=9),
        StrictCategoricalNB(prior_strength=1.0),
        BernoulliNB(prior_strength=1.0, binarize=1.0),
        mixed_model(1.0),
    ],
    ids=repr,
)
def test_blocks_of_rows_give_the_same_model(model, monkeypatch):
    """Also where a block holds states, or missing values, that no other does, and rows come in portions."""
    X, y = mixed_rows() if isinstance(model, ProductModel) else categorical_rows()
    if not isinstance(model, ProductModel | StrictCategoricalNB):
        X[7, 1], X[100, 2] = np.nan, 8.0
    w = np.arange(len(y)) % 3 + 1.0
    Z = X[::-1].copy()
    Z[3, 0] = 5.0
    whole = clone(model).fit(X, y, sample_weight=w)
    encoded = whole.family_.encode(X)
    monkeypatch.setattr(states, "AT_A_TIME", 7 * X.shape[1])
    fit = clone(model).fit(X, y, sample_weight=w)
    halves = clone(model).partial_fit(X[:50], y[:50], classes=[0, 1, 2], sample_weight=w[:50])
    halves = halves.partial_fit(X[50:], y[50:], sample_weight=w[50:])
    for other in fit, halves:
        if not isinstance(model, ProductModel):  # its Gaussians take their origin from the first portion
            assert_allclose(other.statistics_.ravel(), whole.statistics_.ravel(), rtol=1e-12)
        assert_allclose(other.predict_joint_log_proba(Z), whole.predict_joint_log_proba(Z), rtol=1e-12)
    if not isinstance(model, ProductModel):
        every = np.eye(encoded.shape[1])
        assert_array_equal(encoded @ every, fit.family_.encode(X) @ every)


@pytest.mark.parametrize("model", [CategoricalNB(), *slow(BernoulliNB())], ids=repr)
def test_the_closed_form_keeps_no_copy_of_its_rows(model):
    """Fitting takes less memory than half that of the rows, of which the encoded ones would take more."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 250_000)
    X = rng.integers(0, 2, (len(y), 30)).astype(float)
    assert peak_memory(lambda: model.fit(X, y)) < X.nbytes / 2


# Columns of a product ------------------------------------------------------------------------------------------------


def last_two(X):
    return slice(X.shape[1] - 2, None)


@pytest.mark.parametrize(
    "chosen, expected",
    [
        ([True, False, True, False, False], [0, 2]),
        (pd.Series([False, True, False, False, True]), [1, 4]),
        (["e", "c"], [4, 2]),
        ("b", [1]),
        (pd.Index(["b", "a"]), [1, 0]),
        (range(1, 4), [1, 2, 3]),
        (slice("b", "d"), [1, 2, 3]),
        (slice(None, "b"), [0, 1]),
        (slice(-2, None), [3, 4]),
        (-1, [4]),
        (np.array([3, 0]), [3, 0]),
        (last_two, [3, 4]),
        (make_column_selector(pattern="[bd]"), [1, 3]),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__) if callable(value) else str(value),
)
def test_columns_are_chosen_as_in_column_transformers(chosen, expected):
    X, y = mixed_rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = ProductModel([("block", SharedVarianceGaussianNB(), chosen)]).fit(frame, y)
    assert_array_equal(model.columns_[0], expected)
    numbered = ProductModel([("block", SharedVarianceGaussianNB(), expected)]).fit(X, y)
    assert_allclose(model.predict_proba(frame), numbered.predict_proba(X))
    rc = RiskCalibration.as_published(model, max_iter=2, learning_rate=0.01).fit(frame, y)
    assert_array_equal(rc.estimator_.columns_[0], expected)


@pytest.mark.parametrize(
    "chosen, message",
    [
        ([0.9, 1.7], "by integers, a mask, a slice or a callable, or names"),
        ([[0, 1]], "by integers"),
        (["a", 1], "by integers"),
        (None, "by integers"),
        ([True, False], "by integers, a mask"),
        ([False] * 5, "blocks choose no column of X"),
        ([], "blocks choose no column of X"),
        (slice(0.5, 2), "by integers"),
        (slice("a", "z"), "'z'"),
        (["z"], "by integers.*'z'"),
        ([0, 0], "must not share columns"),
    ],
    ids=str,
)
def test_columns_that_are_refused(chosen, message):
    X, y = mixed_rows()
    refused(message, ProductModel([("block", GaussianNB(), chosen)]).fit, pd.DataFrame(X, columns=list("abcde")), y)
