"""What says converged is the optimum, and one model whichever optimiser found it; `test_hostile_grid` tries all models
and penalties on all kinds of rows.

The tolerances were fixed before the first run: where a fit says that it converged, its objective is within `VALUE`
nats a row of the least one that scipy's trust-exact finds, relative to it where it is greater than one, and with a
penalty its posteriors are within `POSTERIOR`. Otherwise it warns, and says why.
"""

import warnings
from functools import partial
from itertools import count, product
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from model_cases import ML, gaussian_rows, of_each_family, rows_for, slow
from numpy.testing import assert_allclose
from scipy.linalg import block_diag, solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    KDependenceBayes,
    RiskCalibration,
    RiskCalibrationCV,
)
from rcpkg.calibration import LBFGS, Best, Converged, Newton, Objective, Safe, climb
from rcpkg.calibration.conditional import Conditional
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.optimum import has_most_probable
from rcpkg.calibration.target_path import TargetPath
from rcpkg.linalg import RESOLVED

VALUE, POSTERIOR = 1e-6, 1e-3


class Design(NamedTuple):
    """Features Z of the rows, without a constant, and the quadratic form K of the squared norm of the coefficients of
    the features as given, in terms of those of Z."""

    Z: np.ndarray
    K: np.ndarray


def centred(X, products):
    """Features of z = (x − c)/s; those of x are a triangular map of them, x_a x_b = c_a c_b + c_a s_b z_b + …"""
    c, s = X.mean(axis=0), X.std(axis=0)
    z, d = (X - c) / s, X.shape[1]
    Z, L = [*z.T], np.zeros((d + len(products), d + len(products)))
    L[range(d), range(d)] = s
    for k, (a, b) in enumerate(products, start=d):
        Z.append(z[:, a] * z[:, b])
        L[k, k] = s[a] * s[b]
        L[k, b] += c[a] * s[b]
        L[k, a] += c[b] * s[a]
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    return Design(np.array(Z).T, inverse @ inverse.T)  # scores β·x̃ = (Lᵀβ)·z̃


def indicators(columns):
    """A one for the joint state of each group of columns."""
    Z = np.hstack([(states[:, None] == np.unique(states)).astype(float) for states in columns])
    return Design(Z, np.eye(Z.shape[1]))


def optimum(of, y, l2):
    """Least mean log-loss with the penalty l2 ‖B‖²/2n, and its posteriors, by scipy's trust-exact."""
    n, r = len(y), y.max() + 1
    Phi, K = np.c_[np.ones(n), of.Z], block_diag(0.0, of.K) * l2 / n
    M = Phi.T @ Phi / (4 * n) + K
    scale = np.sqrt(M.diagonal())
    values, vectors = np.linalg.eigh(M / scale / scale[:, None])
    seen = values > 1e-13 * len(M)
    T = vectors[:, seen] / np.sqrt(values[seen]) / scale[:, None]  # in which curvatures are about one
    Z, ridge, q = Phi @ T, T.T @ K @ T, seen.sum()
    share = np.eye(1) if r == 2 else np.eye(r - 1) - 1 / r  # of the coefficients with rows that add up to zero

    def f(w):
        V = w.reshape(r - 1, q)
        S = np.c_[np.zeros(n), Z @ V.T]
        slope = share @ V @ ridge
        g = (softmax(S, axis=1) - np.eye(r)[y])[:, 1:].T @ Z / n + slope
        return np.mean(logsumexp(S, axis=1) - S[np.arange(n), y]) + 0.5 * np.vdot(V, slope), g.ravel()

    def hessian(w):
        P = softmax(np.c_[np.zeros(n), Z @ w.reshape(r - 1, q).T], axis=1)[:, 1:]
        H = np.kron(share, ridge)
        for a, b in product(range(r - 1), repeat=2):
            weight = P[:, a] * ((a == b) - P[:, b]) / n
            H[a * q : (a + 1) * q, b * q : (b + 1) * q] += (Z * weight[:, None]).T @ Z
        return H

    w = minimize(f, np.zeros((r - 1) * q), jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-9}).x
    value, slope = f(w)
    assert np.abs(slope).max() < 1e-7
    return value, softmax(np.c_[np.zeros(n), Z @ w.reshape(r - 1, q).T], axis=1)


def fit(learner, X, y):
    """The fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(X, y)
    return learner, [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.parametrize("apart", [1e-4, *slow(1e-2, 1e-6, 1e-8)])
@pytest.mark.parametrize("model", [QDA(), LDA(), GaussianNB()], ids=repr)
def test_a_ridge_beside_nearly_collinear_features(model, apart):
    """In whitened coordinates the ridge has the curvature of apart⁻⁴, beside which rounding took that of the rows:
    Newton's method said that it had converged at log-losses of up to log 2, also in units that lie far apart."""
    pairs = {"QDA()": np.triu_indices(4), "GaussianNB()": np.diag_indices(4)}.get(repr(model), ((), ()))
    for units, l2 in product(([1, 1, 1, 1], [1, 1e-3, 1e3, 10]), (1e-2, 1.0, 100.0)):
        rng = np.random.RandomState(0)
        X, noise = rng.randn(100, 4), rng.randn(100, 2)
        y = (X[:, 0] + 0.5 * rng.randn(100) > 0).astype(int)
        X[:, 2:] = X[:, :2] + apart * noise
        value, P = optimum(centred(X * units, list(zip(*pairs))), y, l2)
        for solver in ("newton", "lbfgs"):
            learner, said = fit(ConditionalLikelihood(clone(model), l2=l2, solver=solver), X * units, y)
            assert abs(learner.objective_ - value) < VALUE, (units, l2, solver)
            lost = any("rounding loses the posteriors" in message for message in said)  # but not the optimum
            assert lost or np.abs(learner.predict_proba(X * units) - P).max() < POSTERIOR


@pytest.mark.slow
def test_separable_rows_take_few_steps_along_directions_that_no_row_sees(monkeypatch):
    """They took 1,000 steps, 37 of 37 s, and the model was that of the search as well."""
    steps, climb_as_before = {}, climb

    def counted(objective, *args, **options):
        path = climb_as_before(objective, *args, **options)
        steps[type(objective).__name__] = path.n_iter
        return path

    monkeypatch.setattr("rcpkg.calibration.optimum.climb", counted)
    X, y = make_classification(400, 30, n_informative=10, n_classes=3, random_state=0, class_sep=0.5)
    X = X * np.exp(np.random.RandomState(0).randn(30)) + np.random.RandomState(1).randn(400, 30)
    model, said = fit(ConditionalLikelihood(QDA()), X, y)
    assert "no finite optimum exists" in said[0] and model.joint_model_ == "search"
    assert 0 < steps["Fibre"] <= 50


# --- targets ----------------------------------------------------------------------------------------------------------


def off_the_rows(learner, X, y):
    """By how much sums over the classes, and those that classes share, of a calibrated model and of rows differ."""
    rows = Objective.from_estimator(clone(learner.estimator), X, y)
    form = MinimalForm(rows.family, rows.X, rows.labels)
    off = form.sums(learner.estimator_.statistics_) - form.sums(rows.labels)
    return np.abs(np.append(form.by_class(off).sum(axis=0), off[form.r * form.width :])).max()


@pytest.mark.parametrize("name", ML)
def test_without_a_target_the_joint_model_is_the_most_probable_one(name):
    """Its p(y) was close to that of one class alone."""
    X, y = rows_for(name)
    newton = ConditionalLikelihood(clone(ML[name])).fit(X, y)
    assert off_the_rows(newton, X, y) < 1e-5 * len(y)
    assert np.abs(np.exp(newton.class_log_prior_) - np.bincount(y) / len(y)).max() < 0.2


@pytest.mark.parametrize("prior_strength", [0.0, 0.5, 2.0, 4.0])
def test_the_most_probable_model_is_found_from_far_away(prior_strength):
    """The way to it ended where a covariance was all but infinite, or after two hundred steps."""
    X, y = rows_for("QDA", 1)
    model = ConditionalLikelihood(QDA(prior_strength=prior_strength)).fit(X, y).estimator_
    mean, Z = model.family_.mean_parameters(model._fitted_parameters()), X - X.mean(axis=0)
    first = mean.first.sum(axis=0) + model.family_.origin_ - X.mean(axis=0)
    second = mean.second.sum(axis=0) - np.outer(mean.first.sum(axis=0), mean.first.sum(axis=0))
    assert np.abs(first).max() < 1e-5 and np.abs(second - Z.T @ Z / len(y)).max() < 1e-5


@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
def test_the_most_probable_model_is_found_where_rare_states_tell_the_class(seed):
    """It was sought from states all but sure of a class, along which steps crept a thousand times without an end."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(3, size=(20000, 8)).astype(float), rng.integers(2, size=20000)
    for state, column in enumerate(X.T[:6]):  # of ten rows or fewer, all of one class
        column[np.flatnonzero(y == state % 2)[: 2 + 2 * state]] = 3
    newton = ConditionalLikelihood(CategoricalNB(prior_strength=1.0)).fit(X, y)
    assert off_the_rows(newton, X, y) < 1e-5 * len(y)


GAPS = 1e-4  # of posteriors of rows with gaps, by any two optimisers


@pytest.mark.parametrize("name", of_each_family(*ML))
def test_rows_with_gaps_do_not_tell_which_optimiser_found_the_optimum(name):
    X, y = rows_for(name)
    gaps = np.where(np.random.default_rng(5).random(X.shape) < 0.4, np.nan, X)
    model = clone(ML[name])
    newton = ConditionalLikelihood(model, tol=1e-9).fit(X, y)
    P, joint = newton.predict_proba(gaps), newton.score_samples(gaps)
    others = [
        ConditionalLikelihood(model, solver="lbfgs", tol=1e-8),
        ConditionalLikelihood(model, coordinates="natural", tol=1e-8),
        RiskCalibration(model, target_weight=0.0, tol=1e-14),
        *(RiskCalibration(model, target_weight=0.0, step=step, tol=1e-14) for step in ("safe", Newton(), LBFGS())),
    ]
    for learner in others:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # rounding ends L-BFGS before
            fitted = learner.fit(X, y)
        assert fitted.stop_reason_ in ("converged", "no_step"), learner
        assert np.abs(fitted.predict_proba(gaps) - P).max() < GAPS, learner
        assert np.abs(fitted.score_samples(gaps) - joint).max() < 10 * GAPS, learner


@pytest.mark.parametrize("name", of_each_family(*ML))
def test_a_fit_that_chooses_among_iterates_gives_a_raw_path(name):
    X, y = rows_for(name)
    gaps = np.where(np.random.default_rng(5).random(X.shape) < 0.4, np.nan, X)
    chosen = climb(Objective.from_estimator(clone(ML[name]), X, y), Safe(), Best("soft_error"), tol=1e-6).chosen
    learner = RiskCalibration(clone(ML[name]), step="safe", target_weight=0.0, tol=1e-6, stopping="best_soft_error")
    assert np.array_equal(learner.fit(X, y).predict_proba(gaps), chosen.model.predict_proba(gaps))


@pytest.mark.parametrize(
    "learner", [ConditionalLikelihood, partial(RiskCalibration, step="safe", target_weight=0.0, tol=1e-5)]
)
@pytest.mark.parametrize("model", [CategoricalNB(), KDependenceBayes(structure=[[], [0], [1]], prior_strength=0.0)])
def test_the_most_probable_model_has_the_posteriors_where_cells_are_empty(model, learner):
    X, y = load_iris(return_X_y=True)
    X = np.floor(2 * X[:, :3])
    fitted = learner(model).fit(X, y)
    log_loss = -fitted.predict_log_proba(X)[np.arange(len(y)), y].mean()
    assert log_loss == pytest.approx(fitted.history_.log_loss.iloc[-1], abs=1e-9)


@pytest.mark.slow
def test_the_way_along_the_fibre_stays_where_rounding_leaves_a_model():
    """Of separated rows it leads to covariances that are singular but for rounding, which ended in a LinAlgError."""
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="separates"):
        fitted = ConditionalLikelihood(LDA()).fit(1e3 * X, y)
    assert fitted.score(1e3 * X, y) == 1 and fitted.stop_reason_ == "separable"


def skewed_rows():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 50)
    return np.exp(3 * (rng.normal(size=(50, 5)) + 2 * y[:, None] * (np.arange(5) < 2))), y


def rows_with_a_sentinel():
    X, y = load_iris(return_X_y=True)
    index = np.random.default_rng(0).permutation(150)[:60]
    X = X[index]
    X[0, 0] = 99999
    return X, y[index]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "rows, model", [(rows_with_a_sentinel, QDA()), pytest.param(skewed_rows, LDA(), marks=pytest.mark.slow)]
)
def test_what_is_returned_has_the_log_loss_that_was_found(rows, model):
    """The way along the fibre led to models whose covariances round the posteriors away."""
    X, y = rows()
    fitted = ConditionalLikelihood(model).fit(X, y)
    log_loss = -fitted.predict_log_proba(X)[np.arange(len(y)), y].mean()
    assert log_loss == pytest.approx(fitted.history_.log_loss.iloc[-1], abs=RESOLVED)


@pytest.mark.filterwarnings("ignore:the search ended after")
def test_a_model_that_loses_the_posteriors_says_so():
    X, y = load_iris(return_X_y=True)
    X[0] = 9999999
    with pytest.warns(ConvergenceWarning, match="rounding loses the posteriors"):
        ConditionalLikelihood(LDA()).fit(X, y)


def test_fewer_rows_than_features_have_no_most_probable_model():
    """The way to it, of a thousand steps, took a minute for forty features."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 3
    objective = Objective.from_estimator(LDA(), X, y, target_weight=0.0)
    assert not has_most_probable(objective)
    with pytest.warns(ConvergenceWarning, match="separates"):
        assert ConditionalLikelihood(LDA()).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("b", [0.0, 0.3])
@pytest.mark.parametrize("name", of_each_family(*ML))
def test_second_order_steps_are_steps_of_a_climb(name, b):
    """Newton and L-BFGS lead to the optimum, and none of their steps lowers the objective."""
    X, y = rows_for(name)
    objective = Objective.from_estimator(clone(ML[name]), X, y, target_weight=b)
    fitted = ConditionalLikelihood(clone(ML[name]), target_weight=b).fit(X, y)
    for step in Newton(), LBFGS(), *[LBFGS("natural"), LBFGS("curvature")][: 2 * (b == 0)]:
        path = climb(objective, step, Converged(1e-9), max_iter=1000, keep_points=True)
        assert path.stop_reason == "converged"
        assert np.all(np.diff([point.value for point in path.points]) >= -1e-9 * abs(path.point.value))
        assert np.abs(np.exp(path.chosen.log_posterior(objective.X)) - fitted.predict_proba(X)).max() < POSTERIOR


# --- what went wrong --------------------------------------------------------------------------------------------------


def overlapping():
    return make_classification(
        n_samples=600, n_features=4, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=1
    )


@pytest.mark.parametrize(("model", "pairs"), [(GaussianNB(), np.diag_indices(4)), (QDA(), np.triu_indices(4))])
def test_a_ridge_on_features_far_from_zero(model, pairs):
    """It ended at a training log-loss of 176, with converged_, on a start of saturated posteriors."""
    X, y = overlapping()
    first, units = np.array([1.0, 0.0, 0.0, 0.0]), [1e3, 1e-3, 1, 50]
    for far in X + 1e4 * first, X + 1e5 * first, X * units + [1e5, 0, 300, -7]:
        for l2 in 0.01, 1.0, 100.0:
            value, _ = optimum(centred(far, list(zip(*pairs))), y, l2)
            fitted = ConditionalLikelihood(model, l2=l2).fit(far, y)
            assert fitted.converged_ and fitted.objective_ == pytest.approx(value, rel=VALUE)


@pytest.mark.parametrize("model", [LDA(), QDA()])
@pytest.mark.parametrize(
    "learner", [RiskCalibration, RiskCalibrationCV, partial(ConditionalLikelihood, target_weight=1.0)]
)
def test_features_in_units_that_differ_by_twenty_powers_of_ten(model, learner):
    """The model found was taken for indefinite, and all posteriors became equal."""
    X, y = overlapping()
    X, y = X[::4], y[::4]
    P, far = (learner(model).fit(Z, y).predict_proba(Z) for Z in (X, X * [1e10, 1e-10, 1.0, 1.0]))
    assert_allclose(far, P, atol=1e-5)


def test_leave_one_out_gives_way_to_folds_where_a_row_alone_decides_a_parameter(monkeypatch):
    def alone(A, b):
        if A.ndim == 3:  # 1 − A V of the rows
            raise np.linalg.LinAlgError
        return solve(A, b)

    solve = np.linalg.solve
    X, y = overlapping()
    X, y = X[y < 2][:60], y[y < 2][:60]
    linalg = SimpleNamespace(**vars(np.linalg) | {"solve": alone})  # of this module alone
    monkeypatch.setattr("rcpkg.calibration.target_path.np", SimpleNamespace(**vars(np) | {"linalg": linalg}))
    with pytest.warns(UserWarning, match="a row alone decides a parameter; 5 folds take its place"):
        model = RiskCalibrationCV(LDA(), target="pooled", target_weights=[1.0], cv="loo").fit(X, y)
    assert model.validation_ == "5 folds"


def test_coordinates_that_hide_the_optimum_do_not_converge_early():
    """A small slope where a Newton step is long is not convergence: that of a feature in small units is small."""
    X, y = gaussian_rows()
    X = X * [1.0, 1e-9, 1.0]
    best, _ = fit(ConditionalLikelihood(LDA(prior_strength=5.0)), X, y)
    learner, said = fit(ConditionalLikelihood(LDA(prior_strength=5.0), coordinates="natural", tol=1e-4), X, y)
    assert learner.converged_ or said
    assert not learner.converged_ or learner.objective_ == pytest.approx(best.objective_, abs=1e-7)
    whitened, said = fit(ConditionalLikelihood(LDA(), solver="lbfgs", tol=1e-4), X, y)
    assert whitened.converged_ and not said


@pytest.mark.parametrize("model", [KDependenceBayes(k=2), TAN()])
def test_cells_of_no_row_have_the_pseudo_rows_of_the_target(model):
    """`RiskCalibrationCV` left them out, and ended at posteriors that differed by .63."""
    rng = np.random.default_rng(0)

    def drawn(n):
        y = rng.integers(0, 2, n)
        a = rng.integers(0, 6, n)
        b = np.where(rng.random(n) < 0.75, a, rng.integers(0, 6, n))
        return np.c_[a, b, (y + (rng.random(n) < 0.3)) % 2, rng.integers(0, 4, n)], y

    X, y = drawn(80)
    elsewhere, _ = drawn(2000)
    chosen = RiskCalibrationCV(model, target="pooled", cv="loo").fit(X, y)
    b = chosen.target_weight_
    for learner in RiskCalibration(model, target_weight=b), ConditionalLikelihood(model, target_weight=b):
        learner.fit(X, y)
        assert np.abs(learner.predict_proba(elsewhere) - chosen.predict_proba(elsewhere)).max() < POSTERIOR


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_closed_form_that_is_far_too_sure_is_no_bad_start(seed):
    """25 noisy copies of one feature: the search ended 5e-3 nats a row above the optimum, after 364 and 557 updates."""
    rng = np.random.default_rng(seed)
    y = (rng.random(1500) < 0.1).astype(int)
    hidden = rng.normal(size=1500) + y
    copies = [np.clip(np.round(2 * hidden + 0.7 * rng.normal(size=1500)) + 6, 0, 14) for _ in range(25)]
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in copies])
    model = CategoricalNB(prior_strength=1.0)
    found, exact = (RiskCalibration(model, tol=tol, max_iter=3000).fit(X, y) for tol in (1e-8, 1e-13))
    assert found.converged_ and found.n_iter_ < 100
    least = exact.history_.objective.iloc[-1]
    assert least <= found.history_.objective.iloc[-1] < least + 1e-7


def test_newtons_method_is_quick_where_rows_want_a_state_rarer_than_the_target():
    """The target may ask for far more of a state than the optimum has: near it, steps are Newton's all the same."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(30, 4)).astype(float)
    y = rng.integers(0, 3, size=30)
    model = TAN()
    path = TargetPath.from_estimator(model, "nested", *model._check_X_y(X, y))
    for b in (100.0, 10.0, 1.0, 0.1, 0.01):
        end = path.follow(b)
        assert end.stop_reason == "converged" and end.n_iter <= 12


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.01, 0.1])
def test_steps_do_not_run_away_where_rows_hardly_show_a_state(weight):
    """Where neither rows nor model show a state the curvature all but vanishes: a step took its log-odds to -2e5, and
    the search made 80 and 46 updates."""
    rng = np.random.default_rng(2)
    share = 1 / np.arange(1, 31) ** 2.5
    X = rng.choice(30, size=(20000, 7), p=share / share.sum())
    slope = rng.normal(scale=1.5, size=(7, 30))
    y = rng.random(len(X)) < 1 / (1 + np.exp(8 - slope[np.arange(7), X].sum(axis=1)))
    X = np.hstack([X, np.where(rng.random(X.shape) < 0.95, X, 7 * X % 11)]).astype(float)
    learner = RiskCalibration(CategoricalNB(prior_strength=1.0), target_weight=weight).fit(X, y)
    assert learner.converged_ and learner.n_iter_ <= 30


def test_values_that_lack_digits_do_not_end_newtons_method(monkeypatch):
    """Where ⟨s̄, β⟩ is large the value of the objective lacks the digits that tell the gain of the last steps."""

    def rounded(self, z):
        at = evaluated(self, z)
        return at._replace(value=at.value + 1e-10 * next(evaluations))

    X, y = load_iris(return_X_y=True)
    model = QDA()
    X, y = model._check_X_y(X, y)
    path, exact = (TargetPath.from_estimator(model, "pooled", X, y) for _ in range(2))
    evaluated, evaluations = Conditional.__call__, count()
    for b in (100.0, 1.0):
        exact.follow(b, tol=5e-17)
        with monkeypatch.context() as patch:
            patch.setattr(Conditional, "__call__", rounded)
            assert path.follow(b, tol=5e-17).stop_reason == "converged"
        z = exact.path.point.z
        assert np.abs(path.path.point.z - z).max() < 1e-6 * np.abs(z).max()


@pytest.mark.parametrize("learner", [partial(ConditionalLikelihood, solver=s) for s in ("newton", "lbfgs")])
@pytest.mark.parametrize("classes", ["two, separable", "three, of which two are not"])
def test_a_fit_without_a_finite_optimum_says_that_its_model_is_where_the_search_ended(classes, learner):
    """Each optimiser ends elsewhere: joint log-likelihoods of −10,924 and −8,994 for these rows of two classes."""
    rng = np.random.RandomState(0)
    y = rng.randint(2, size=1000) if classes.startswith("two") else np.repeat([0, 1, 2], 300)
    X = rng.randn(len(y), 3) + 12.0 * np.outer(y if y.max() == 1 else y == 2, [1.0, 0.0, 0.0]) + 0.5 * y[:, None]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = learner(QDA()).fit(X, y)
    assert model.joint_model_ == "search"
    overlapping = learner(QDA()).fit(X[y < 2] if y.max() > 1 else X - 12.0 * np.c_[y, 0 * y, 0 * y], y[y < 2])
    assert overlapping.joint_model_ == "most probable"


@pytest.mark.filterwarnings("ignore")  # no such search converges
@pytest.mark.parametrize(
    "n, model, seed, noise", [(60, QDA, 0, 1e-6), (60, QDA, 2, 5e-7), (400, QDA, 0, 1e-6), (400, LDA, 0, 5e-7)]
)
def test_a_target_whose_features_nearly_depend_on_each_other_gives_a_model(n, model, seed, noise):
    """Rounding leaves it no natural parameters, or the system of the rows' scores no Cholesky factor."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(200, 12))
    Z[:, 0] = Z[:, 1] + noise * Z[:, 0]
    X, y = rng.normal(size=(n, 12)), np.arange(n) % 5
    target = model().fit(Z, np.arange(200) % 5)
    for learner in (RiskCalibration, ConditionalLikelihood):
        fitted = learner(model(), target=target, target_weight=0.1, max_iter=20).fit(X, y)
        assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("step", [None, "safe"])
def test_rows_that_are_separated_have_no_optimum_whatever_the_steps(step):
    X = np.random.default_rng(0).normal(size=(40, 25))
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        model = RiskCalibration(LDA(), target_weight=0.0, step=step, max_iter=2000).fit(X, X[:, 0] > 0)
    assert model.stop_reason_ == "separable" and model.joint_model_ == "search" and not model.converged_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:rows left out")
@pytest.mark.parametrize("step", [None, "safe"])
def test_the_optimum_with_a_target_is_none_before_it_is_reached(step):
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, size=(300, 4))
    y = X[:, 0] + rng.logistic(size=300) > 0
    for max_iter, means in ((1, "iterate"), (5000, "optimum")):
        assert RiskCalibration(QDA(), step=step, max_iter=max_iter).fit(X, y).joint_model_ == means
