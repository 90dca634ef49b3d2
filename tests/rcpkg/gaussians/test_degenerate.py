"""Gaussian models on rows that determine no covariance: constant, duplicated, missing, few, far off."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import GAUSSIAN, gaussian_rows
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.experiments import results
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from rcpkg import (
    BDA7,
    EDDA,
    LDA,
    QDA,
    RDA,
    TM,
    CategoricalNB,
    GaussianNB,
    InvalidStatistics,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    Statistics,
)
from rcpkg.linalg import correlations, is_definite

FULL = ["QDA", "LDA"]
RECOMMENDED = {"step": "safe", "stopping": "none", "target_weight": 3.0}


DEGENERATE = {
    "digits": lambda: load_digits(return_X_y=True),
    "redundant": lambda: make_classification(n_samples=400, n_features=20, random_state=0),
    "constant and duplicated": lambda: degenerate_columns(load_iris(return_X_y=True)),
    "fewer rows than features": lambda: [part[:60] for part in load_digits(return_X_y=True)],
    "fewer rows of a class": lambda: [part[::15] for part in load_breast_cancer(return_X_y=True)],
}


def degenerate_columns(data):
    X, y = data
    return np.column_stack([X, np.full(len(X), 0.1), X[:, 0], X[:, 1] - 2 * X[:, 2], np.zeros(len(X))]), y


def held_out_log_loss(model, X, y):
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return log_loss(y, cross_val_predict(model, X, y, cv=folds, method="predict_proba"))


def frequencies_log_loss(y):
    p = np.bincount(y) / len(y)
    return -(p @ np.log(p))


# What the defaults give ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", DEGENERATE)
@pytest.mark.parametrize("name", GAUSSIAN)
def test_held_out_log_loss_is_below_that_of_the_class_frequencies(name, data):
    if data == "fewer rows of a class" and name not in FULL:
        pytest.skip("independent features lack nothing here")
    X, y = DEGENERATE[data]()
    assert held_out_log_loss(clone(GAUSSIAN[name]), X, y) < frequencies_log_loss(y)


def test_stored_log_losses_on_degenerate_rows():
    """In closed form, calibrated by default, or with a prior free of units, below the class frequencies. Columns of no
    use make little difference to calibrated models."""
    table = results("study", "degenerate-rows")
    assert (table.log_loss < table.class_frequencies).all()
    assert len(table) == 4 * 4 * table.dataset.nunique() == 160
    learnt = table[table.learner.isin(["calibrated", "recipe"])].dropna()
    assert np.abs(learnt.log_loss - learnt.without_useless_columns).max() < 0.02


@pytest.mark.parametrize("name", FULL)
def test_dependent_columns_make_no_difference(name):
    """Where a combination of features is constant in all rows, all classes have the same variance of it."""
    X, y = load_iris(return_X_y=True)
    more, _ = degenerate_columns((X, y))
    y = np.where(np.arange(150) < 80, 0, y)  # classes of different sizes
    plain, fit = clone(GAUSSIAN[name]).fit(X, y), clone(GAUSSIAN[name]).fit(more, y)
    assert_allclose(fit.predict_proba(more), plain.predict_proba(X), atol=1e-7)
    calibrated = [
        RiskCalibration.as_published(GAUSSIAN[name], target="grand", max_iter=5, **RECOMMENDED)
        .fit(Z, y)
        .history_.log_loss[0]
        for Z in (X, more[:, [0, 1, 2, 3, 4, 7]])
    ]
    assert_allclose(*calibrated, rtol=1e-12)


@pytest.mark.parametrize("name", GAUSSIAN)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 + 0.1])
def test_constant_features_leave_the_model(name, value):
    X, y = gaussian_rows()
    more = np.insert(X, 1, value, axis=1)
    plain, fit = clone(GAUSSIAN[name]).fit(X, y), clone(GAUSSIAN[name]).fit(more, y)
    assert_array_equal(fit.predict_joint_log_proba(more), plain.predict_joint_log_proba(X))
    assert_array_equal(fit.predict_proba(np.insert(X, 1, -7.0, axis=1)), plain.predict_proba(X))
    assert_array_equal(fit.family_.varying_, [True, False, True, True])
    assert_array_equal(fit.parameters_.mean, plain.parameters_.mean)
    assert_array_equal(fit.means_[:, 1], value)
    assert_array_equal(fit.sample(9, random_state=0)[0][:, 1], value)
    assert_array_equal(np.delete(fit.sample(9, random_state=0)[0], 1, axis=1), plain.sample(9, random_state=0)[0])
    for learner in (
        RiskCalibration.as_published(GAUSSIAN[name], max_iter=9, **RECOMMENDED),
        TM(GAUSSIAN[name], max_iter=3),
    ):
        rc, rc_more = clone(learner).fit(X, y), clone(learner).fit(more, y)
        assert_array_equal(rc_more.predict_proba(more), rc.predict_proba(X))
    covariances = np.delete(fit.covariances_, 1, axis=-1)
    assert_array_equal(np.delete(covariances, 1, axis=-2) if name in FULL else covariances, plain.covariances_)
    assert not fit.covariances_[..., 1].any()


# The prior of few rows -----------------------------------------------------------------------------------------------


def test_the_default_does_best_by_the_criterion_of_its_table():
    table = results("study", "rows-per-feature")
    score = np.log(table.log_loss / table.class_frequencies).groupby(table.rows_per_feature).mean()
    chosen = score.index[score <= score.min() + 0.01].min()
    assert {model.rows_per_feature for model in GAUSSIAN.values()} == {chosen}


@pytest.mark.parametrize("split", [lambda n: [n // 3, 2 * (n // 3)], lambda n: []], ids=["portions", "at once"])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_covariances_of_few_rows_have_their_part_of_the_ridge(name, split):
    """Σ̂ + t (κ − ν/d) V, with V the variances within the classes and ν = (n − r)/r, or n − r where shared."""
    (n, d, r), (t, kappa) = (36, 6, 3), (1.5, 2.5)
    X, y = gaussian_rows(n, d)
    shared = name in ("LDA", "SharedVarianceGaussianNB")
    if shared:
        X, y = X[: n // 3], y[: n // 3]
    model = clone(GAUSSIAN[name]).set_params(singular_ridge=t, rows_per_feature=kappa)
    parts = np.split(np.arange(len(y)), split(len(y)))
    for rows in parts:
        model = model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    own = np.array([np.cov(X[y == c].T, bias=True) for c in range(r)])
    within = np.average(own, axis=0, weights=np.bincount(y))
    degrees = (len(y) - r) / (1 if shared else r)
    assert 0 < kappa - degrees / d < kappa
    expected = (within if shared else own) + t * (kappa - degrees / d) * np.diag(np.diag(within))
    assert_allclose(
        model.covariances_, expected if name in FULL else expected.diagonal(axis1=-2, axis2=-1), rtol=1e-10, atol=1e-12
    )
    plain = clone(model).set_params(rows_per_feature=0.0).fit(X, y)
    enough = clone(model).set_params(rows_per_feature=degrees / d).fit(X, y)
    assert not plain.family_.has_prior and not enough.family_.has_prior and model.family_.has_prior
    assert_array_equal(enough.covariances_, plain.covariances_)


@pytest.mark.parametrize("name, n", [("QDA", 90), ("LDA", 33)])
def test_columns_that_depend_on_others_make_rows_no_fewer(name, n):
    """Rows that are not few for 9 features would be for 11."""
    X, y = gaussian_rows(n, d=9)
    more = np.column_stack([X, X @ np.arange(1.0, 10.0), X[:, 0]])
    plain, fit = clone(GAUSSIAN[name]).fit(X, y), clone(GAUSSIAN[name]).fit(more, y)
    assert not plain.family_.has_prior and fit.family_._want_of_rows(fit.statistics_, n, 11) > 0
    assert_allclose(fit.predict_proba(more), plain.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_no_row_counts_for_less_than_one(name):
    """Weights that sum to one make no rows few; rows of weight zero do not count, and weights are repetitions."""
    X, y = gaussian_rows(n=90, d=4)
    w = np.arange(90.0) % 3
    model = clone(GAUSSIAN[name])
    for learner in model, RiskCalibration(model, max_iter=3, target_weight=0.0, tol=0.0):
        plain = clone(learner).fit(X, y, sample_weight=np.full(90, 1 / 90))
        assert_allclose(plain.predict_proba(X), clone(learner).fit(X, y).predict_proba(X), atol=1e-8)
    few = w * (np.arange(90) < 30)
    repeated = np.repeat(np.arange(90), few.astype(int))
    fit = clone(model).fit(X, y, sample_weight=few)
    again = clone(model).fit(X[repeated], y[repeated])
    assert fit.family_.has_prior == again.family_.has_prior
    assert_allclose(fit.predict_proba(X), again.predict_proba(X), atol=1e-8)


# The prior of singular covariances -----------------------------------------------------------------------------------


def singular_rows(name):
    """Rows of which the closed form of this name needs a prior."""
    if name in FULL:
        return gaussian_rows(n=9, d=8)
    X, y = gaussian_rows(n=60, d=4)
    X[y == 1, 2] = 0.3
    if name == "SharedVarianceGaussianNB":
        X[:, 2] = y
    return X, y


@pytest.mark.filterwarnings("ignore:feature . is constant within each class")
@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_prior_is_one_of_pseudo_statistics(name):
    """θ(s) = argmax ⟨s + s⁰, η⟩ − m ψ(η): the parameters are those of maximum likelihood at s + s⁰, n μ(θ) = s + s⁰."""
    model = clone(GAUSSIAN[name]).fit(*singular_rows(name))
    assert model.family_.has_prior
    s = model.statistics_
    shifted = Statistics(count=s.count, first=s.first, second=s.second + model.family_._pseudo_scatter)
    plain = model.family_.without_prior()
    assert not plain.has_prior
    ours, theirs = model.parameters_, plain.parameters(shifted)
    assert_allclose(ours.covariance, theirs.covariance, rtol=1e-12)
    assert_allclose(s.count.sum() * plain.mean_parameters(theirs).ravel(), shifted.ravel(), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:feature . is constant within each class")
@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_prior_of_the_closed_form_stays_during_calibration(name):
    """Steps from s + s⁰ with maximum likelihood are steps from s with the prior."""
    X, y = singular_rows(name)
    model = clone(GAUSSIAN[name]).fit(X, y)
    rc = RiskCalibration.as_published(model, learning_rate=0.01, max_iter=4, stopping="none").fit(X, y)
    plain, s = model.family_.without_prior(), model.statistics_
    s = Statistics(count=s.count, first=s.first, second=s.second + model.family_._pseudo_scatter)
    Y = np.eye(3)[y]
    for _ in range(rc.n_iter_):
        log_joint = model.log_joint(X, plain.parameters(s))
        P = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])
        s = s + 0.01 * model.statistics(X, Y - P)
    assert rc.n_iter_ > 0
    assert_allclose(rc.predict_joint_log_proba(X), plain.log_joint(X, plain.parameters(s)), rtol=1e-8, atol=1e-7)
    safe = RiskCalibration(model, max_iter=15, target_weight=0.0, tol=0.0, step="safe").fit(X, y)
    assert np.all(np.diff(safe.history_.log_loss) <= 0)
    assert_allclose(safe.history_.log_loss[0], rc.history_.log_loss[0], rtol=1e-7)


@pytest.mark.parametrize("name", GAUSSIAN)
@settings(max_examples=6, deadline=None)
@given(
    logs=st.lists(st.floats(-6, 6), min_size=6, max_size=6),
    shifts=st.lists(st.floats(-100, 100), min_size=6, max_size=6),
)
def test_shift_and_scale_of_features_do_not_matter(name, logs, shifts):
    X, y = gaussian_rows(n=12, d=6)
    Z = (X + shifts) * 10.0 ** np.array(logs)
    for parameters in (
        {},
        {"prior_strength": 2.0, "prior_mean": "grand", "prior_covariance": "diagonal"},
        {"prior_strength": 2.0, "prior_mean": "grand", "prior_covariance": "pooled"},
    ):
        model = clone(GAUSSIAN[name]).set_params(**parameters)
        assert_allclose(clone(model).fit(Z, y).predict_proba(Z), clone(model).fit(X, y).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_named_priors_are_the_numbers_they_stand_for(name):
    X, y = gaussian_rows()
    model = clone(GAUSSIAN[name]).set_params(prior_strength=3.0, prior_mean="grand", prior_covariance="pooled")
    pooled = clone(GAUSSIAN["LDA" if name in FULL else "SharedVarianceGaussianNB"]).fit(X, y).covariances_
    numbers = clone(model).set_params(prior_mean=X.mean(axis=0), prior_covariance=pooled)
    assert_allclose(model.fit(X, y).predict_log_proba(X), numbers.fit(X, y).predict_log_proba(X), atol=1e-9)
    model.set_params(prior_covariance="diagonal")
    variances = pooled.diagonal() if name in FULL else pooled
    numbers.set_params(prior_covariance=np.diag(variances) if name in FULL else variances)
    assert_allclose(model.fit(X, y).predict_log_proba(X), numbers.fit(X, y).predict_log_proba(X), atol=1e-9)
    calibrated = RiskCalibration.as_published(model, max_iter=3, stopping="none").fit(X, y).predict_log_proba(X)
    same = RiskCalibration.as_published(numbers, max_iter=3, stopping="none").fit(X, y).predict_log_proba(X)
    assert_allclose(calibrated, same, atol=1e-8)


def test_messages_name_the_class_its_rows_the_feature_and_the_remedy():
    X, y = gaussian_rows(n=93)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["sum"] = frame.a + frame.b
    labels = np.array(["ant", "bee", "cat"])[y]
    frame.loc[labels == "bee", "c"] = 2.0
    remedy = "set singular_ridge > 0 or prior_strength > 0"
    with pytest.raises(
        InvalidStatistics, match=rf"feature 'c' .* within class bee, with n = 31 rows for d = 4 .*{remedy}"
    ):
        GaussianNB(singular_ridge=0.0).fit(frame, labels)
    with pytest.raises(
        InvalidStatistics, match=rf"feature 'sum' depends .* within the classes, with n = 93 rows .*{remedy}"
    ):
        LDA(singular_ridge=0.0).fit(frame, labels)
    with pytest.raises(InvalidStatistics, match="within the classes, with n = 93 rows"):
        RiskCalibration.as_published(QDA(singular_ridge=0.0), target_weight=1.0).fit(frame, labels)
    with pytest.raises(InvalidStatistics, match="feature 0 has no positive variance within class 0, with n = 3 rows"):
        QDA(singular_ridge=0.0).fit(np.ones((6, 2)), [0, 1] * 3)


SURE = [*GAUSSIAN.values(), ProductModel([("a", GaussianNB(), [0]), ("b", QDA(), [1])]), RiskCalibration(LDA())]


@pytest.mark.parametrize("model", SURE, ids=repr)
def test_a_feature_that_is_the_class_is_named_and_the_surer_the_more_rows(model):
    told = []
    for n in (12, 120, 1200):
        y = np.repeat([0, 1], n // 2)
        X = pd.DataFrame({"it": 3.0 * y + 5, "noise": np.random.default_rng(0).normal(size=n)})
        with pytest.warns(UserWarning, match="feature 'it' is constant within each class, and not the same in all"):
            told.append(clone(model).fit(X, y).predict_proba(X)[np.arange(n), y].min())
    assert told[0] > 0.7 and told[-1] > 1 - 1e-6 and (np.diff(told) >= 0).all()


@pytest.mark.parametrize("model", [BDA7(), RDA(), EDDA()], ids=repr)
def test_a_feature_that_is_the_class_leaves_some_models_of_a_grid(model):
    y = np.repeat([0, 1, 2], 40)
    X = pd.DataFrame({"noise": np.random.default_rng(0).normal(size=120), "it": 3.0 * y + 5})
    with pytest.warns(UserWarning, match="feature 'it' is constant within each class, and not the same in all, which"):
        clone(model).fit(X, y)


# Numbers that are far off --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAUSSIAN)
def test_one_sentinel_does_not_swallow_the_digits_of_the_other_classes(name):
    X, y = gaussian_rows()
    sentinel = X.copy()
    sentinel[np.flatnonzero(y == 0)[0], 1] = 999999999
    model, plain = clone(GAUSSIAN[name]).fit(sentinel, y), clone(GAUSSIAN[name]).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert_allclose(model.means_[1:], plain.means_[1:], rtol=1e-12)
    if name in ("QDA", "GaussianNB"):
        assert not model.family_.has_prior
        assert_allclose(model.covariances_[1:], plain.covariances_[1:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", GAUSSIAN)
@pytest.mark.parametrize("power", [-150, -100, 100, 149])
def test_large_and_small_numbers(name, power):
    X, y = gaussian_rows()
    Z = X * 10.0**power
    with warnings.catch_warnings(action="error"):
        for learner in (clone(GAUSSIAN[name]), RiskCalibration.as_published(GAUSSIAN[name], max_iter=5, **RECOMMENDED)):
            fit, plain = clone(learner).fit(Z, y), clone(learner).fit(X, y)
            assert_allclose(fit.predict_proba(Z), plain.predict_proba(X), atol=1e-8)


# LDA as a linear model; decision functions ---------------------------------------------------------------------------


def centred(model, X):
    scores = model.decision_function(X)
    return scores[:, None] if scores.ndim == 1 else scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_lda_agrees_with_scikit_learn(classes):
    X, y = load_wine(return_X_y=True)
    X, y = X[np.isin(y, classes)], y[np.isin(y, classes)]
    ours = LDA().fit(X, y)
    scores = X @ ours.coef_.T + ours.intercept_
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)  # with ours the covariance of maximum likelihood
    if len(classes) == 2:
        assert_allclose(ours.coef_, exact.coef_, rtol=1e-6)
    assert_allclose(scores - scores.mean(axis=1, keepdims=True) * (len(classes) > 2), centred(exact, X), atol=1e-6)
    joint = ours.predict_joint_log_proba(X)
    if len(classes) == 2:
        assert_allclose(scores[:, 0], ours.decision_function(X), atol=1e-8)
    else:
        assert_allclose(scores - scores[:, :1], joint - joint[:, :1], atol=1e-8)
    assert not hasattr(LDA(), "coef_")


@pytest.mark.parametrize("rows", ["few", "of a singular class", "enough", "with gaps"])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_tiny_prior_changes_next_to_nothing(name, rows):
    """Whether covariances have their ridge is decided by the rows, and not by there being a prior: parameters are
    continuous in its strength."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if rows == "few":
        X, y = X[::9], y[::9]
    elif rows == "of a singular class":
        X[y == 1, 3] = X[y == 1, 5]
        X[y == 2, 4] = 0.0
    elif rows == "with gaps":
        X[::7, 2] = np.nan
    plain = clone(GAUSSIAN[name]).fit(X, y).predict_log_proba(X)
    tiny = clone(GAUSSIAN[name]).set_params(prior_strength=1e-9).fit(X, y).predict_log_proba(X)
    assert_allclose(tiny, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FULL)
def test_a_prior_keeps_the_safeguard_of_few_rows(name):
    """With fewer rows than features a weak prior does no worse than none; the model was far too sure of itself."""
    X, y = make_classification(160, 40, n_informative=6, random_state=1)
    train = np.arange(len(y)) < 60
    models = [clone(GAUSSIAN[name]).set_params(prior_strength=m).fit(X[train], y[train]) for m in (0.0, 0.001, 1.0)]
    losses = [log_loss(y[~train], model.predict_proba(X[~train])) for model in models]
    assert max(losses[1:]) < 1.2 * losses[0]


@pytest.mark.filterwarnings("ignore:feature . is constant within each class")
@pytest.mark.parametrize("model", [LDA(), GaussianNB(), QDA()], ids=repr)
def test_one_row_makes_no_feature_certain(model):
    """One row says that the feature tells classes apart: its squared distance, in variances of all rows, is n / 2."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(200) % 2, 2]
    X = np.column_stack([rng.normal(size=201), y == 2])
    new = np.array([[X[-1, 0], 0.0], [0.0, 1.0]])
    assert clone(model).fit(X, y).predict_log_proba(new).min() > -len(y) / 2


ONE_WEIGHT = partial(RiskCalibrationCV, target="pooled", target_weights=[3.0])
DEPENDENT = list(product([*FULL, "ProductModel"], [False, True], [RiskCalibration, ONE_WEIGHT, RiskCalibrationCV]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "gaps", "learner"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (k not in (0, 4, 6, 9, 15))) for k, case in enumerate(DEPENDENT)],
)
def test_features_that_nearly_depend_on_each_other_leave_a_calibration(name, gaps, learner):
    """Rounding leaves the closed form no model in the coordinates of Newton's method: safe steps take its place."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + np.outer(y, [0, 1, 0])
    X[:, 2] = X[:, 0] + 1e-6 * (rng.normal(size=60) + y)
    if gaps:
        X[::7, 1] = np.nan
    blocks = [("numbers", QDA(), [0, 1, 2]), ("states", CategoricalNB(prior_strength=1.0), [3])]
    model, X = (ProductModel(blocks), np.column_stack([X, y])) if name == "ProductModel" else (GAUSSIAN[name], X)
    assert log_loss(y, learner(clone(model)).fit(X, y).predict_proba(X)) < np.log(2)


def test_definite_is_what_eigenvalues_say_one_matrix_at_a_time_and_many():
    least, tol = np.array([1e-3, 1.01e-10, 0.99e-10, 1e-15, 0.0, -1e-3]), 1e-10
    equal = np.ones((6, 5, 5)) + least[:, None, None] * (np.eye(5) - 1)  # all correlations 1 - least
    units = np.array([1e-9, 1, 1e9, 3, 7])
    matrices = equal * np.outer(units, units)
    for some in (matrices, matrices[:2], matrices[:, None], *matrices[:, None]):
        expected = np.linalg.eigvalsh(correlations(some)[0])[..., 0] > tol
        assert_array_equal(is_definite(some, tol), expected)
    assert is_definite(matrices, tol).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("d", [2, 3, 40])
def test_a_matrix_with_nan_is_not_definite(d):
    matrices = np.broadcast_to(np.eye(d), (4, d, d)).copy()
    matrices[0, 1, 0] = matrices[0, 0, 1] = matrices[1, -1, 0] = matrices[1, 0, -1] = matrices[2, 0, 0] = np.nan
    expected = [False, False, False, True]
    assert is_definite(matrices).tolist() == [bool(is_definite(matrix)) for matrix in matrices] == expected
