"""Calibration: the sources' algorithm and numbers, the rules, stopping, validity, the safe step and the targets."""


import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    ALL,
    GAUSSIAN,
    GAUSSIAN_MAP,
    INVALID,
    ML,
    MODELS,
    OF_ANY_PRIOR,
    categorical_rows,
    document_rows,
    fitted,
    gaussian_rows,
    invalid_rows,
    of_each_family,
    peak_memory,
    random_direction,
    refused,
    row_statistics,
    rows_for,
    slow,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score, train_test_split

from rcpkg import (
    LDA,
    QDA,
    TM,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    InvalidStatistics,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
    SoftErrorCalibration,
)
from rcpkg.base import log_posterior
from rcpkg.calibration import (
    Batches,
    Best,
    Converged,
    Fixed,
    HeldOut,
    Objective,
    Safe,
    Step,
    row_losses,
    soft_error_weights,
)
from rcpkg.families import class_counts, one_hot


def same(a, b, **tolerance):
    assert_allclose(a.ravel(), b.ravel(), **{"rtol": 1e-9, "atol": 1e-9} | tolerance)


def calibrated(name, max_iter=5, **options):
    options = {"step": Fixed(0.05, "raise"), "stopping": "none"} | options
    return RiskCalibration.as_published(clone(MODELS[name]), max_iter=max_iter, **options).fit(*rows_for(name))


# The algorithm -------------------------------------------------------------------------------------------------------


@ALL
def test_risk_calibration_is_equation_4(name):
    """s ← s + lr (s(X, Y) − s(X, h)), and parameters θ(s), by a loop that takes the equation literally."""
    model, X, _, Y = fitted(name)
    s = model.statistics(X, Y)
    for _ in range(5):
        h = np.exp(log_posterior(model.log_joint(X, model.parameters(s)), model.class_log_prior_))
        s = s + 0.05 * (model.statistics(X, Y) - model.statistics(X, h))
    rc = calibrated(name)
    same(rc.estimator_.statistics_, s)
    assert_allclose(rc.predict_joint_log_proba(X), model.log_joint(X, model.parameters(s)), rtol=1e-8, atol=1e-8)
    assert not np.allclose(rc.predict_proba(X), model.predict_proba(X), atol=1e-3)


@OF_ANY_PRIOR
def test_history(name):
    rc = calibrated(name)
    X, y = rows_for(name)
    history = rc.history_
    assert isinstance(history, pd.DataFrame)
    assert list(history.columns) == ["iteration", "soft_error", "error", "log_loss", "step"]
    assert_array_equal(history.iteration, np.arange(6))
    assert_array_equal(history.step, [0] + 5 * [0.05])
    for model, row in (clone(MODELS[name]).fit(X, y), history.iloc[0]), (rc, history.iloc[-1]):
        true = model.predict_proba(X)[np.arange(len(y)), y]
        assert_allclose(row.soft_error, np.mean(1 - true), rtol=1e-8)
        assert_allclose(row.error, np.mean(model.predict(X) != y))
        assert_allclose(row.log_loss, -np.mean(np.log(true)), rtol=1e-8)
    assert (rc.n_iter_, rc.best_iter_) == (5, 5)


@pytest.mark.parametrize("tied", [False, True])
def test_a_row_errs_where_a_class_is_more_probable_or_an_earlier_one_as_probable(tied):
    rng = np.random.default_rng(0)
    scores, y = rng.integers(3, size=(200, 4)) if tied else rng.normal(size=(200, 4)), rng.integers(4, size=200)
    assert_array_equal(row_losses(np.log(softmax(scores, axis=1)), y)[1], scores.argmax(axis=1) != y)


@pytest.mark.parametrize("name", ML)
def test_tm_is_risk_calibration_with_learning_rate_one(name):
    """rc2025 §5.2."""
    X, y = rows_for(name)
    tm = TM(clone(MODELS[name]), max_iter=3).fit(X, y)
    rc = RiskCalibration.as_published(clone(MODELS[name]), learning_rate=1.0, max_iter=3, stopping="none").fit(X, y)
    assert tm.n_iter_ == rc.n_iter_
    same(tm.estimator_.statistics_, rc.estimator_.statistics_, rtol=1e-12, atol=1e-12)


@OF_ANY_PRIOR
def test_frequency_estimates_grow_the_sample(name):
    """DFE adds lr Σ_i (1 − p(y_i|x_i)) rows an update (rc2025 §5.1)."""
    X, y = rows_for(name)
    dfe = DiscriminativeFrequencyEstimate(clone(MODELS[name]), max_iter=4, stopping="none", step=Fixed(0.5))
    dfe.fit(X, y)
    statistics = dfe.estimator_.statistics_
    part = next(iter(statistics)) if name.startswith("Product") else statistics
    assert_allclose(part.count.sum(), len(X) * (1 + 0.5 * dfe.history_.soft_error.iloc[:-1].sum()))


@OF_ANY_PRIOR
def test_soft_error_weights_are_the_gradient(name):
    """∇_η Σ_i P_i,y_i = s(X, W) with W_iy = P_i,y_i (Y_iy − P_iy), by finite differences."""
    model, X, y, Y = fitted(name)
    X, y, Y = X[:25], y[:25], Y[:25]
    S = row_statistics(model, X, 3)
    eta = model.family_.natural_parameters(model.parameters_)

    def total(natural):
        return softmax(S @ natural.ravel(), axis=1)[np.arange(25), y].sum()

    gradient = model.statistics(X, soft_error_weights(softmax(S @ eta.ravel(), axis=1), Y))
    rng = np.random.default_rng(1)
    for _ in range(6):
        v = random_direction(eta, rng)
        slope = (total(eta + 1e-5 * v) - total(eta - 1e-5 * v)) / 2e-5
        assert_allclose(slope, gradient.dot(v), rtol=1e-4, atol=1e-6)


# Stopping ------------------------------------------------------------------------------------------------------------


def overshooting(**options):
    """A run with a step so long that its soft error falls, rises, and is least before the end."""
    X, y = gaussian_rows(n=150, d=4, r=3, seed=1)
    return RiskCalibration.as_published(QDA(), learning_rate=1.0, **{"max_iter": 25} | options).fit(X, y)


def test_soft_error_stops_at_the_first_rise():
    """rc2025 Algorithm 1: stop when ε rises, and return the model before."""
    rc, full = overshooting(stopping="soft_error"), overshooting(stopping="none")
    rise = int(np.argmax(np.diff(full.history_.soft_error) > 0)) + 1
    assert 1 < rise < 25
    assert (rc.n_iter_, rc.best_iter_) == (rise, rise - 1)
    assert_allclose(rc.history_, full.history_.iloc[: rise + 1])
    same(rc.estimator_.statistics_, overshooting(stopping="none", max_iter=rise - 1).estimator_.statistics_)


@pytest.mark.parametrize("stopping, column", [("best_soft_error", "soft_error"), ("best_error", "error")])
def test_best_of_all_iterates(stopping, column):
    """rc2024: the first of the best of max_iter."""
    rc = overshooting(stopping=stopping)
    assert rc.n_iter_ == 25
    assert rc.best_iter_ == rc.history_[column].idxmin()
    assert 0 < rc.best_iter_ < 25
    same(rc.estimator_.statistics_, overshooting(stopping="none", max_iter=rc.best_iter_).estimator_.statistics_)


def test_validation_keeps_the_best_on_held_out_rows():
    X, y = gaussian_rows(n=150, d=4, r=3, seed=1)
    options = {"learning_rate": 0.2, "max_iter": 25, "random_state": 3}
    rc = RiskCalibration.as_published(QDA(), stopping=HeldOut(0.3), **options).fit(X, y)
    assert 0 < rc.best_iter_ < rc.n_iter_
    assert rc.best_iter_ == rc.history_.validation_log_loss.idxmin()
    again = clone(rc).fit(X, y)
    assert_array_equal(again.history_, rc.history_)
    assert not np.array_equal(clone(rc).set_params(random_state=4).fit(X, y).history_, rc.history_)


# Invalid statistics --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the first step, Fixed")
@pytest.mark.parametrize("name", INVALID)
def test_halt_ends_with_the_iterates_so_far_and_raise_names_what_turned_invalid(name):
    (model, lr), rows = INVALID[name], invalid_rows(name)
    rc = RiskCalibration.as_published(model, learning_rate=lr, max_iter=9, stopping="none").fit(*rows)
    assert rc.best_iter_ == rc.n_iter_ == len(rc.history_) - 1 < 8
    with pytest.raises(InvalidStatistics, match=r"negative count|weight|variance|positive definite"):
        clone(rc).set_params(step=Fixed(lr, "raise")).fit(*rows)


# The safe step -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_each_family(*MODELS))
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), lr=st.sampled_from([0.01, 0.3, 3.0, 100.0]))
def test_safe_step_never_lowers_the_conditional_likelihood(name, seed, lr):
    X, y = rows_for(name, seed)
    rc = RiskCalibration(clone(MODELS[name]), max_iter=6, step=Safe(lr), target_weight=0.0, tol=0.0).fit(X, y)
    assert np.all(np.diff(rc.history_.log_loss) <= 1e-12)
    assert np.isfinite(rc.history_).all(axis=None)
    assert rc.history_.log_loss.iloc[-1] < rc.history_.log_loss.iloc[0]


@pytest.mark.parametrize("name", of_each_family(*MODELS))
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([0.1, 1.0, 3.0]))
def test_safe_update_is_valid_where_the_plain_one_is_not(name, seed, size):
    """Along s(X, W) with rows of W that sum to zero; at the longest, most plain updates are invalid."""
    model, X, _, Y = fitted(name)
    W = np.random.default_rng(seed).standard_normal(Y.shape)
    change = model.statistics(X, size * (W - W.mean(axis=1, keepdims=True)))
    model.parameters(model.family_.safe_update(model.statistics_, change))


@ALL
def test_safe_update_is_exact_to_first_order(name):
    model, X, _, Y = fitted(name)
    W = np.random.default_rng(0).standard_normal(Y.shape)
    change = model.statistics(X, W - W.mean(axis=1, keepdims=True))
    errors = []
    for eps in (1e-3, 1e-4):
        bent = model.family_.safe_update(model.statistics_, eps * change)
        errors.append(np.abs((bent - model.statistics_ - eps * change).ravel()).max())
    assert errors[1] < 0.02 * errors[0] + 1e-9


@pytest.mark.parametrize("name", [*GAUSSIAN, *GAUSSIAN_MAP])
def test_safe_update_is_the_plain_one_where_counts_and_covariances_grow(name):
    model, X, _, Y = fitted(name)
    change = model.statistics(5 * X + 3, Y)
    bent = model.family_.safe_update(model.statistics_, change)
    assert_allclose(bent.ravel(), (model.statistics_ + change).ravel(), rtol=1e-10)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_safe_steps_on_separable_data_go_on_without_trouble(name):
    """The gradient vanishes and steps grow without bound; nothing overflows, and the losses fall to zero."""
    X, y = gaussian_rows(n=60, d=2)
    X[:, 0] += 30 * y
    rc = RiskCalibration(clone(GAUSSIAN[name]), max_iter=150, step=Safe(1.0), target_weight=0.0, tol=0.0).fit(X, y)
    assert np.isfinite(rc.history_).all(axis=None)
    assert rc.history_.log_loss.iloc[-1] < 1e-6


@pytest.mark.parametrize("name", ["QDA", "GaussianNB"])
def test_past_updates_shorten_the_way(name):
    """Which without them takes 170 and 157 steps."""
    rc = RiskCalibration(clone(MODELS[name]), step="safe", target="pooled", target_weight=0.03, tol=1e-6, max_iter=300)
    assert rc.fit(*rows_for(name)).converged_ and rc.n_iter_ < 50


def test_safe_steps_of_the_soft_error_never_raise_it():
    X, y = gaussian_rows(n=150, d=4, r=3, seed=1)
    rc = SoftErrorCalibration(GaussianNB(), max_iter=20, step=Safe(5.0), stopping="none").fit(X, y)
    assert np.all(np.diff(rc.history_.soft_error) <= 1e-12)
    assert rc.history_.soft_error.iloc[-1] < rc.history_.soft_error.iloc[0]


# Targets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_each_family(*ML))
@pytest.mark.parametrize("target", ["pooled", "generative", "grand"])
@pytest.mark.parametrize("b", [*slow(1.0), 1e6])
def test_a_heavy_target_is_stable_and_wins(name, target, b):
    """The implicit update is stable for every b; as b → ∞ the target model results, the closed form for one."""
    X, y = rows_for(name)
    rc = calibrated(name, target=target, target_weight=b, max_iter=20)
    assert np.isfinite(rc.history_).all(axis=None)
    assert rc.n_iter_ == 20
    assert_allclose(class_counts(rc.estimator_.statistics_).sum(), len(X), rtol=1e-9)
    if b == 1e6:
        closed_form = clone(MODELS[name]).fit(X, y)
        parameters = {
            "generative": lambda: closed_form.parameters_,
            "pooled": lambda: closed_form.family_.pooled_parameters(closed_form.statistics_)[0],
            "grand": lambda: closed_form.family_.grand_parameters(closed_form.statistics_)[0],
        }[target]()
        assert_allclose(rc.predict_joint_log_proba(X), closed_form.log_joint(X, parameters), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ML)
def test_pooled_and_grand_targets(name):
    """Pooled: observed class weights. Grand: nothing distinguishes the classes."""
    model, X, y, _ = fitted(name)
    pooled, size = model.family_.pooled_parameters(model.statistics_)
    assert_allclose(np.exp(pooled.log_prior), np.bincount(y) / len(y))
    assert size >= 3
    grand, _ = model.family_.grand_parameters(model.statistics_)
    joint = model.log_joint(X, grand)
    assert_allclose(joint, joint[:, :1] * np.ones(3), rtol=1e-9)
    if name in GAUSSIAN:
        assert_allclose(pooled.mean, model.parameters_.mean)
        assert_allclose(grand.mean, np.tile(X.mean(axis=0), (3, 1)))
        assert_allclose(
            np.cov(X.T, bias=True).diagonal(),
            np.asarray(model.family_.shape.diagonal(grand.covariance)).reshape(-1, 3)[0],
        )


def test_a_fitted_model_can_be_the_target():
    X, y = gaussian_rows()
    target = QDA().fit(X[:60], y[:60])
    rc = RiskCalibration.as_published(QDA(), target=target, target_weight=1e6, max_iter=3, stopping="none").fit(X, y)
    assert_allclose(rc.predict_proba(X), target.predict_proba(X), atol=1e-3)
    shifted = QDA().fit(X[:60] + 5.0, y[:60])  # moments about another origin
    rc = RiskCalibration.as_published(QDA(), target=shifted, target_weight=1e8, max_iter=3, stopping="none").fit(X, y)
    assert_allclose(rc.predict_proba(X), shifted.predict_proba(X), atol=1e-3)
    for wrong in (LDA().fit(X, y), QDA().fit(X, y + 1), QDA().fit(X[:, :2], y)):
        with pytest.raises(ValueError, match="target must be a fitted model of the same type"):
            RiskCalibration.as_published(QDA(), target=wrong, target_weight=1.0).fit(X, y)
    few = QDA().partial_fit(X[:2], y[:2], classes=np.unique(y))
    for target, message in (QDA(), "not fitted; clone, .*FrozenEstimator"), (few, "not enough data"):
        refused(message, RiskCalibration.as_published(QDA(), target=target, target_weight=1.0).fit, X, y)


def test_a_frozen_model_is_a_target_that_clones_keep():
    X, y = gaussian_rows()
    target = QDA().fit(X[:60], y[:60])
    for learner in RiskCalibration(QDA()), RiskCalibrationCV(QDA()), ConditionalLikelihood(QDA(), target_weight=1.0):
        frozen = clone(learner).set_params(target=FrozenEstimator(target))
        assert_array_equal(
            clone(frozen).fit(X, y).predict_proba(X), learner.set_params(target=target).fit(X, y).predict_proba(X)
        )
        assert np.isfinite(cross_val_score(frozen, X, y, cv=3, error_score="raise")).all()
    calibrated = RiskCalibration(QDA(), target=FrozenEstimator(TM(QDA())))
    refused("target must be a fitted model or one of", calibrated.fit, X, y)


class NoRun(Step):
    def begin(self, objective, rng):
        pass


class NoPoint(Step):
    def begin(self, objective, rng):
        return lambda point, t: objective.moved(point.statistics, point.gradient, 0.1)


class NoBegin(Step):
    pass


def test_what_lacks_of_a_step_is_named():
    X, y = gaussian_rows()
    for step, message in (NoRun(), "begin of NoRun must return its run"), (NoPoint(), "NoPoint must return a point"):
        with pytest.raises(TypeError, match=message):
            RiskCalibration(QDA(), step=step).fit(X, y)
    with pytest.raises(TypeError, match=r"NoBegin with.* abstract method '?begin"):
        NoBegin()


def test_class_numbers_in_place_of_one_hot_labels_are_refused():
    X, y = gaussian_rows()
    family = QDA().fit(X, y).family_
    for labels in (None, y):
        refused(r"Y must be one-hot labels of shape \(n, r\)", Objective, family, X, labels)


@pytest.mark.parametrize("target", ["pooled", "grand"])
@pytest.mark.parametrize("model", [CategoricalNB(), BernoulliNB()])
def test_states_of_no_row_have_no_part_in_a_target(model, target):
    """η = −∞ with s̄ = 0 adds nothing to ⟨s̄, η⟩: the model is that of the states that occur."""
    X, y = categorical_rows(n_states=(2, 2, 2))
    rc = RiskCalibration(model, target=target).fit(X, y)
    if isinstance(model, BernoulliNB):
        wider, rows = clone(model), np.c_[X, np.zeros(len(X)), np.ones(len(X))]
    else:
        wider, rows = clone(model).set_params(n_states=[4, 2, 3]), X
    also = RiskCalibration(wider, target=target).fit(rows, y)
    assert also.converged_ and also.n_iter_ == rc.n_iter_
    assert_allclose(also.predict_log_proba(rows), rc.predict_log_proba(X), atol=1e-10)
    losses = [
        RiskCalibrationCV(one, target=target, target_weights=[0.3, 3.0], cv="loo").fit(of, y).cv_results_.log_loss
        for one, of in ((model, X), (wider, rows))
    ]
    assert_allclose(*losses, rtol=1e-5)


def test_calibrated_counts_take_weights_as_repetitions_on_rows_of_unequal_sums():
    """The length of the target's documents is the mean by weight."""
    X, y = document_rows()
    X[::2, 0] += 5
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = RiskCalibration(MultinomialNB()).fit(X, y, weight)
    assert weighted.estimator_.family_.length_ == pytest.approx(X[repeated].sum(axis=1).mean())
    expected = RiskCalibration(MultinomialNB()).fit(X[repeated], y[repeated]).predict_log_proba(X)
    assert_allclose(weighted.predict_log_proba(X), expected, atol=1e-9)


def test_a_target_on_the_boundary_is_refused():
    X, y = categorical_rows()
    X[(y == 0) & (X[:, 2] == 4), 2] = 0
    with pytest.raises(InvalidStatistics, match="the target lies on the boundary"):
        RiskCalibration.as_published(CategoricalNB(), target="generative", target_weight=1.0).fit(X, y)
    RiskCalibration.as_published(CategoricalNB(), target="pooled", target_weight=1.0).fit(X, y)
    RiskCalibration.as_published(CategoricalNB(n_states=6, prior_strength=1.0), target_weight=1.0).fit(X, y)
    X, y = gaussian_rows()
    X[:, 1] = 3.0
    with pytest.raises(InvalidStatistics, match="no positive variance"):
        RiskCalibration.as_published(QDA(singular_ridge=0.0), target_weight=1.0).fit(X, y)


def test_a_target_of_another_form_is_refused():
    """Of as many numbers, but for other features or states."""
    X, y = categorical_rows(n_states=(2, 3, 4))
    learner = RiskCalibration.as_published(CategoricalNB(), target_weight=1.0)
    for order in ([1, 0, 2], [2, 1, 0]):
        refused("features and states", clone(learner).set_params(target=CategoricalNB().fit(X[:, order], y)).fit, X, y)
    Z = np.hstack([X, gaussian_rows(n=len(y))[0]])

    def product(columns):
        return ProductModel([("code", CategoricalNB(), [0, 1]), ("size", QDA(), columns)])

    learner = RiskCalibration.as_published(product([3, 4]), target_weight=1.0, max_iter=2)
    learner.set_params(target=product([3, 4]).fit(Z, y)).fit(Z, y)
    refused("features and states", learner.set_params(target=product([4, 3]).fit(Z, y)).fit, Z, y)


def test_held_out_rows_need_weight():
    X, y = gaussian_rows()
    learner = RiskCalibration.as_published(QDA(), random_state=0, stopping=HeldOut(0.2))
    probe = np.zeros(len(y))
    probe[train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)[0]] = 1
    refused("sample_weight is zero for all held-out rows", HeldOut(0.2).divided, y, probe, np.random.RandomState(0))
    left_out = learner.fit(X[probe > 0], y[probe > 0]).predict_proba(X)  # as a learner does with rows of weight zero
    assert_allclose(learner.fit(X, y, sample_weight=probe).predict_proba(X), left_out, rtol=1e-10)


def test_a_product_loses_the_priors_of_its_blocks():
    model = ProductModel([("code", CategoricalNB(prior_strength=2.0), [0, 1])], class_prior_strength=1.0)
    X, y = categorical_rows()
    plain = model.fit(X[:, :2], y).family_.without_prior()
    assert plain.blocks["code"].prior_strength == 0 and plain.class_prior_strength == 0
    calibrated = RiskCalibration(model).fit(X[:, :2], y).estimator_
    assert calibrated.get_params()["code__prior_strength"] == 0 and calibrated.class_prior_strength == 0
    assert model.get_params()["code__prior_strength"] == 2 and model.family_.has_prior and not plain.has_prior


# Mini-batches --------------------------------------------------------------------------------------------------------


def test_one_batch_of_all_rows_is_a_full_step():
    X, y = gaussian_rows()
    batch = RiskCalibration.as_published(
        QDA(), max_iter=1, stopping="none", step=Batches(size=1000, learning_rate=0.05)
    ).fit(X, y)
    full = RiskCalibration.as_published(QDA(), learning_rate=0.05, max_iter=1, stopping="none").fit(X, y)
    same(batch.estimator_.statistics_, full.estimator_.statistics_)


@pytest.mark.parametrize("name", of_each_family(*ML))
@pytest.mark.parametrize("target_weight", [0.0, 1.0])
def test_mini_batches_learn_and_are_reproducible(name, target_weight):
    step = Batches(size=16, learning_rate=0.05, on_invalid="raise")
    options = {"step": step, "max_iter": 4, "target_weight": target_weight}
    first, second = (calibrated(name, random_state=1, **options) for _ in range(2))
    assert_array_equal(first.history_, second.history_)
    assert not np.array_equal(calibrated(name, random_state=2, **options).history_, first.history_)
    assert_allclose(first.history_.step[1:], 0.05 * np.arange(1, 5) ** (-2 / 3))
    if not target_weight:
        assert first.history_.log_loss.iloc[-1] < first.history_.log_loss.iloc[0]


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Fixed(0.0), "learning_rate must be a finite number > 0"),
        (lambda: Fixed(np.nan), "learning_rate must be"),
        (lambda: Safe(np.inf), "learning_rate must be"),
        (lambda: Fixed(on_invalid="ignore"), "on_invalid must be 'halt' or 'raise'"),
        (lambda: Batches(size=0), "size must be an integer >= 1"),
        (lambda: HeldOut(1.5), "fraction must lie between 0 and 1"),
        (lambda: Converged(-1.0), "tol must be a finite number >= 0"),
        (lambda: Best("loss"), "loss must be 'soft_error' or 'error' or 'log_loss'"),
        (lambda: DiscriminativeFrequencyEstimate(QDA(), step="safe").fit(*gaussian_rows()), "step must be a step such"),
        (lambda: TM(QDA(), stopping=HeldOut(0.3)).fit(*gaussian_rows()), r"stopping=HeldOut.* needs a random_state"),
        (lambda: RiskCalibration.as_published(QDA(), step=Safe(), learning_rate=0.5), "are those of fixed steps"),
        (lambda: RiskCalibration.as_published(QDA(), step=Safe(), on_invalid="raise"), "are those of fixed steps"),
    ],
)
def test_bad_steps_and_stops_are_named(make, message):
    refused(message, make)


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["QDA", "QDA fused", "LDA", "GaussianNB", "CategoricalNB", "MultinomialNB"])
def test_peak_memory_of_an_iteration(name):
    """At most three arrays the size of X and four n×r; never n×d²."""
    n, d, r = (4000, 30, 4) if name != "QDA fused" else (20000, 6, 8)
    if name == "CategoricalNB":
        X, y = categorical_rows(n=n, n_states=(3,) * d, r=r)
    elif name == "MultinomialNB":
        X, y = document_rows(n=n, d=d, r=r)
    else:
        X, y = gaussian_rows(n=n, d=d, r=r)
    model = clone(MODELS[name.split()[0]])
    X, y = model._check_X_y(X, y)
    model._prepare(X)
    Y = one_hot(y, r)
    objective = Objective(model.family_, model.family_.encode(X), Y)
    current = objective.evaluate(objective.start)
    step = current.statistics, current.gradient, 0.01
    assert peak_memory(lambda: objective.evaluate(objective.moved(*step))) <= 3 * X.nbytes + 4 * Y.nbytes


# What learners are made of --------------------------------------------------------------------------------------------


def test_advice_names_what_can_be_changed():
    """TM has no learning rate to lower, and a learner without a target none to give a weight."""
    codes, labels = categorical_rows(n=60)
    with pytest.warns(ConvergenceWarning, match=r"Fixed\(learning_rate=1\.0, .*RiskCalibration with step='safe'"):
        TM(CategoricalNB()).fit(np.tile(codes[:, :1], 12), labels)
    with pytest.warns(ConvergenceWarning) as told:
        TM(SharedVarianceGaussianNB(), max_iter=1, stopping=Converged(1e-9)).fit(*gaussian_rows())
    assert "target_weight" not in str(told[0].message)
