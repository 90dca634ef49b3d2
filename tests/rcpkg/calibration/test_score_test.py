"""The test whether calibration has anything to gain: its draws, its statistic, its p value."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from model_cases import ML, fitted, gaussian_rows, refused, rows_for, slow
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import chisquare

from rcpkg import (
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    InvalidStatistics,
    KDependenceBayes,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    calibration_test,
)
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.objective import log_posterior_of
from rcpkg.calibration.score_test import null_of, score_statistic
from rcpkg.families import one_hot
from rcpkg.rows import Rows

each_model = pytest.mark.parametrize("name", ML)


@each_model
def test_rows_drawn_anew_keep_labels_and_statistics(name):
    null = null_of(ML[name], *rows_for(name))
    drawn = null.model.redraw(null.X, null.y, np.random.RandomState(0))
    first, again = (null.model.raw_statistics(Rows.from_arrays(rows, null.y)).ravel() for rows in (null.X, drawn))
    assert_allclose(again, first, atol=1e-10 * np.abs(first).max())
    assert not np.array_equal(drawn, null.X)


def test_sparse_rows_and_unused_columns_are_drawn_anew():
    rng = np.random.RandomState(0)
    X, y = rng.randint(0, 2, (20, 3)).astype(float), np.arange(20) % 2
    model = BernoulliNB().fit(X, y)
    kept = ProductModel([("bits", BernoulliNB(), [0, 2])]).fit(X, y).family_.redraw(X, y, rng)
    assert_array_equal(kept[:, 1], X[:, 1])
    assert_array_equal(model.family_.redraw(csr_array(X), y, rng).sum(axis=0), X.sum(axis=0))


def test_words_are_drawn_anew_of_sparse_rows_as_of_dense_ones_and_only_of_whole_counts():
    rng = np.random.RandomState(0)
    X, y = rng.multinomial(7, [0.1, 0.2, 0.3, 0.4], 20).astype(float), np.arange(20) % 2
    model = MultinomialNB().fit(X, y)
    dense, sparse = (model.family_.redraw(rows, y, np.random.RandomState(1)) for rows in (X, csr_array(X)))
    assert_array_equal(sparse.toarray(), dense)
    assert_array_equal(dense.sum(axis=1), X.sum(axis=1))
    refused("whole counts", calibration_test, MultinomialNB(), X / 2, y)


def frequencies(model, X, y, draws=3000):
    rng = np.random.RandomState(1)
    return Counter(tuple(model.family_.redraw(X, y, rng).astype(int).ravel()) for _ in range(draws))


@pytest.mark.parametrize("structure", [None, [[], [0]], *slow([[1], []])])
def test_all_rows_with_the_same_tables_are_equally_probable(structure):
    """By enumeration of two features of five rows, of naive Bayes and of networks with an arc either way."""
    X, y = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [1, 1]], dtype=float), np.array([0, 0, 0, 1, 1])
    model = CategoricalNB() if structure is None else KDependenceBayes(prior_strength=0.0, structure=structure)
    model.fit(X, y)
    tables = model.statistics_.cells
    every = [
        rows
        for cells in product([0.0, 1.0], repeat=10)
        if np.array_equal(model.statistics(np.reshape(cells, (5, 2)), one_hot(y, 2)).cells, tables)
        for rows in [tuple(np.array(cells, dtype=int))]
    ]
    found = frequencies(model, X, y)
    assert set(found) == set(every) and len(every) > 5
    assert chisquare([found[rows] for rows in every]).pvalue > 1e-3


@each_model
def test_statistic_is_that_of_the_formula(name):
    """gᵀ (Σ_i Cov(s | x_i) + J)⁻¹ g with vectors s(x, y) for each row and class."""
    null = null_of(ML[name], *rows_for(name))
    model, Y = null.model, one_hot(null.y, len(null.model.classes_))
    rows = model.encode(null.X)
    statistics = model.statistics(rows, Y)
    P = np.exp(log_posterior_of(model, rows, model.parameters(statistics)))
    form = MinimalForm(model, rows, statistics)
    r = form.r
    s = np.array([np.hstack([form.features * (c == k) for k in range(r)]) for c in range(r)]).swapaxes(0, 1)
    seen = np.einsum("iy,iyp->ip", Y, s)
    g = seen.sum(axis=0) - np.einsum("iy,iyp->p", P, s)
    centred = s - np.einsum("iy,iyp->ip", P, s)[:, None]
    curvature = np.einsum("iy,iyp,iyq->pq", P, centred, centred) + np.cov(seen.T, bias=True)
    expected = g @ np.linalg.lstsq(curvature, g, rcond=1e-13)[0]
    assert_allclose(score_statistic(form, P, Y), expected, rtol=1e-5)
    assert_allclose(null.observed, expected, rtol=1e-5)


def test_departures_that_matter_are_found_and_others_are_not():
    """A wrong posterior is found; what no score of the family can express is not."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 3)).astype(float)
    agree = X[:, 0] == X[:, 1]
    copied = np.column_stack([X[:, 0], X[:, 0], X[:, 2]])  # naive Bayes counts a feature twice
    label = (rng.uniform(size=2000) < 0.2 + 0.6 * X[:, 0]).astype(int)
    assert calibration_test(BernoulliNB(), X, label, n_bootstrap=49, random_state=0).p_value > 0.05
    found = calibration_test(BernoulliNB(), copied, label, n_bootstrap=49, random_state=0)
    assert found.p_value == 1 / 50 and found.statistic > 2 * found.dof
    joint = (rng.uniform(size=2000) < 0.2 + 0.6 * agree).astype(int)  # seen by no single feature
    assert calibration_test(BernoulliNB(), X, joint, n_bootstrap=49, random_state=0).p_value > 0.05


def test_saturated_model_has_nothing_to_gain():
    X = np.repeat([[0], [1], [2]], [30, 20, 40], axis=0)
    y = np.arange(90) % 7 < 3
    found = calibration_test(CategoricalNB(), X, y, n_bootstrap=9)
    assert found == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9), 1.0)


@pytest.mark.parametrize("name", ["LDA", "CategoricalNB", "ProductModel"])
def test_whole_weights_are_repetitions(name):
    _, X, y, _ = fitted(name)
    times = 1 + np.arange(len(y)) % 3
    options = {"n_bootstrap": 9, "random_state": 0}
    weighted = calibration_test(ML[name], X, y, sample_weight=times, **options)
    assert weighted == calibration_test(ML[name], X.repeat(times, axis=0), y.repeat(times), **options)


def test_a_learnt_structure_is_learnt_again_with_a_warning():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = (rng.uniform(size=(120, 4)) < 0.4 + 0.2 * y[:, None]).astype(float)
    with pytest.warns(UserWarning, match="the structure is learnt from the rows that are tested"):
        calibration_test(TAN(prior_strength=0.0), X, y, n_bootstrap=1)
    null, drawing = null_of(TAN(prior_strength=0.0), X, y), np.random.RandomState(0)
    parents, rows = null.model.parents_, null.model.redraw(X, y, np.random.RandomState(0))
    assert null.drawn(drawing) == pytest.approx(null_of(TAN(prior_strength=0.0), rows, y).observed)
    assert null.model.parents_ == parents
    given = KDependenceBayes(prior_strength=0.0, structure=parents)
    assert calibration_test(given, X, y, n_bootstrap=1).statistic == pytest.approx(null.observed)


def test_bad_input_and_closed_forms_that_do_not_exist_are_named():
    X, y = gaussian_rows()
    refused("calibration_test needs", calibration_test, RiskCalibration.as_published(QDA()), X, y)
    refused("priors of the estimator must be None", calibration_test, QDA(priors=[0.2, 0.3, 0.5]), X, y)
    refused("n_bootstrap must be", calibration_test, QDA(), X, y, n_bootstrap=0)
    with pytest.raises(InvalidStatistics, match="leave out features that are constant or depend on others"):
        calibration_test(QDA(), np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(InvalidStatistics, match=r"set its prior_strength \(and class_prior_strength\) to 0"):
        calibration_test(QDA(prior_strength=1.0), X, y)
    with pytest.raises(ValueError, match="sample_weight must say how many times each row counts, in whole numbers"):
        calibration_test(QDA(), X, y, sample_weight=np.full(len(y), 0.5))
    with pytest.raises(ValueError, match="sample_weight adds up to 9e\\+10 rows, and at most 16,666,666 are drawn"):
        calibration_test(QDA(), X, y, sample_weight=np.full(len(y), 1e9))
    refused("sample_weight must hold numbers, one a row", calibration_test, QDA(), X, y, sample_weight=["one"] * len(y))
    refused("feature 0 holds missing values", calibration_test, QDA(), np.where(X > 1, np.nan, X), y)
    X, y = rows_for("CategoricalNB")
    X = X.copy()
    X[0, 0] = np.nan
    refused("feature 0 holds missing values", calibration_test, CategoricalNB(), X, y)
    bags = X.copy()
    bags[0, 0] = 1 + np.nanmax(X)
    bags = np.nan_to_num(bags)
    refused("X holds rows of unequal sums", calibration_test, MultinomialNB(), bags, y)
