"""BayesianQDA, BDA7, QuadraticBayes: decisions (4.13-4.15), seeds (5.13), cross-validation, conventions."""

import numpy as np
import pytest
from model_cases import refused, slow
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import LeaveOneOut
from sklearn.utils.estimator_checks import check_estimator

from rcpkg import (
    BDA7,
    EDDA,
    RDA,
    SVMKNN,
    BayesianQDA,
    BregmanKNN,
    InvalidStatistics,
    LocalBDA,
    LocalLinear,
    LocalNearestMeans,
    NearestMeans,
    QuadraticBayes,
)
from rcpkg.choice import log_class_prior, log_class_prior_loo, log_losses, mean_log_loss
from rcpkg.gaussians import BDA7_SEEDS, Seed, class_statistics, log_predictive, seed_matrix

IRIS = load_iris(return_X_y=True)
OF_NEIGHBOURS = LocalBDA, LocalNearestMeans, LocalLinear, BregmanKNN, SVMKNN


def small_problem(n=40, d=5, r=3, random_state=0):
    rng = np.random.default_rng(random_state)
    y = np.r_[np.arange(r), rng.integers(0, r, n - r)]
    return rng.normal(size=(n, d)) * np.arange(1, d + 1) + 1.5 * rng.normal(size=(r, d))[y], y


@pytest.mark.filterwarnings("ignore:feature . is constant within each class")
@pytest.mark.parametrize(
    "estimator",
    [
        *(BayesianQDA(), BDA7(), EDDA(models=["EII", "VVV"], cv=3), NearestMeans(), LocalBDA(), BregmanKNN()),
        # what they add to these is a grid, or the vote of neighbours
        *slow(BayesianQDA(seed="trace_pooled"), BDA7(cv=3), EDDA(cv=3), QuadraticBayes(), RDA()),
        *slow(LocalNearestMeans(), LocalLinear(), SVMKNN()),
    ],
    ids=repr,
)
def test_check_estimator(estimator):
    gaps = {"check_estimators_nan_inf": "gaps are refused in training, not in prediction"}
    expected, most = ({}, 54) if isinstance(estimator, OF_NEIGHBOURS) else (gaps, 61)  # fewer take weights of rows
    if isinstance(estimator, BayesianQDA) and estimator.seed == "trace":
        alone = "a class of one row has no trace: seed='trace_pooled'"
        expected["check_sample_weight_equivalence_on_dense_data"] = alone
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=expected)
    assert sum(result["status"] == "passed" for result in results) >= most - len(expected)
    assert sorted(result["check_name"] for result in results if result["status"] == "xfail") == sorted(expected)


# ---------------------------------------------------------------- decisions


def test_4_15_decides_by_expected_cost_of_mean_densities():
    X, y = small_problem()
    cost = np.array([[0.0, 1.0, 90.0], [50.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    model = BayesianQDA(cost=cost).fit(X, y)
    expected = np.exp(model.log_predictive(X)) * (np.bincount(y) + 1) / (len(y) + 3)  # E[N_h(x)] E[Theta_h]
    assert (model.predict(X) == np.argmin(expected @ cost.T, axis=1)).all()
    assert (model.predict(X) != BayesianQDA().fit(X, y).predict(X)).any()
    assert_allclose(model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True))


def test_laplace_class_prior_is_the_mean_under_a_flat_prior():
    counts = np.array([0, 3, 7])
    draws = np.random.default_rng(0).dirichlet(counts + 1, size=200_000)
    assert_allclose(np.exp(log_class_prior(counts)), draws.mean(axis=0), atol=3e-3)
    assert np.isneginf(log_class_prior(counts, "empirical")[0])
    assert_allclose(np.exp(log_class_prior(counts, [0.2, 0.3, 0.5])), [0.2, 0.3, 0.5])
    y = np.array([0, 0, 1])
    assert_allclose(np.exp(log_class_prior_loo(y, 2)), [[2 / 4, 2 / 4], [2 / 4, 2 / 4], [3 / 4, 1 / 4]])
    refused("class_prior", log_class_prior, counts, "flat")


@pytest.mark.parametrize(
    "name, base", [("trace", "trace_class"), ("diag_class", "diag_class"), ("diag_pooled", "diag_pooled")]
)
def test_seeds_of_bayesian_qda(name, base):
    X, y = small_problem()
    model = BayesianQDA(seed=name).fit(X, y)
    statistics = class_statistics(X, y, 3)
    covariance = statistics.scatters / statistics.counts[:, None, None]
    expected = {
        "trace": np.stack([np.eye(5) * np.trace(c) / 5 for c in covariance]),
        "diag_class": np.stack([np.diag(np.diag(c)) for c in covariance]),
        "diag_pooled": np.stack([np.diag(np.diag(statistics.pooled / len(y)))] * 3),
    }[name]
    assert_allclose(model.seed_, expected)
    assert model.dof_ == 5 + 3
    assert_allclose(BayesianQDA(seed=expected, dof=8).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_5_13_seeds_as_printed():
    X, y = small_problem()
    statistics, q, d = class_statistics(X, y, 3), 10.0, 5
    pooled, own = np.diag(statistics.pooled) / len(y), np.diag(statistics.scatters[1]) / statistics.counts[1]
    printed = [q * pooled, q * own, pooled / q, own / q, pooled, own, np.full(d, pooled.sum() / (q * d))]
    for seed, diagonal in zip(BDA7_SEEDS, printed):
        assert_allclose(seed_matrix(seed, q, statistics, 1), np.diag(diagonal))


def test_bayesian_qda_predictive_is_that_of_its_class():
    X, y = small_problem()
    for prior in ("inverse_wishart", "noninformative"):
        model = BayesianQDA(prior=prior, dof=13).fit(X, y)
        count, mean, scatter = (part[1] for part in model.statistics_)
        one = log_predictive(X, count, mean, scatter, seed=model.seed_[1], dof=model.dof_)
        assert_allclose(model.log_predictive(X)[:, 1], one)
        assert model.dof_ == (6 if prior == "noninformative" else 13)


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"seed": "median"}, "seed must be one of"),
        ({"seed": np.eye(3)}, "shape"),
        ({"seed": np.triu(np.ones((5, 5)))}, "symmetric"),
        ({"seed": -np.eye(5)}, "semi-definite"),
        ({"dof": -9.0}, "raise dof"),
        ({"prior": "flat"}, "prior must be"),
        ({"class_prior": [1.0]}, "class_prior must hold 3"),
        ({"class_prior": None}, 'class_prior must be "laplace"'),
        ({"seed": np.full((5, 5), np.nan)}, "seed must hold finite numbers"),
        ({"dof": np.nan}, "dof must be a finite number"),
        ({"cost": np.ones((2, 2))}, r"cost must have shape \(3, 3\)"),
        ({"cost": "a"}, "cost must hold numbers"),
    ],
)
def test_bad_parameters_are_named(parameters, match):
    refused(match, BayesianQDA(**parameters).fit, *small_problem())


@pytest.mark.parametrize("values", [[], [-1.0], [np.inf], [np.nan], "ab", 1.0])
@pytest.mark.parametrize(
    "estimator, name", [(RDA, "gammas"), (RDA, "lambdas"), (EDDA, "models")]
)
def test_bad_grids_are_named(estimator, name, values):
    refused(f"{name} must", estimator(**{name: values}).fit, *small_problem())


@pytest.mark.parametrize("random_state", range(20))
def test_a_seed_of_low_rank_is_one(random_state):
    """Its least eigenvalue is zero but for rounding, of either sign."""
    v = np.random.default_rng(random_state).standard_normal(5)
    X, y = small_problem()
    assert np.isfinite(BayesianQDA(seed=np.outer(v, v), dof=7.0).fit(X, y).predict_joint_log_proba(X)).all()


def test_models_tie_by_costs_of_any_unit():
    """Costs of 1e-13 for every error choose the models that costs of one do."""
    X, y = small_problem()
    for unit in (1e-13, 1e13):
        models = [BDA7(cost=u * (1 - np.eye(3))).fit(X, y) for u in (1.0, unit)]
        assert (models[0].dof_, models[0].seed_) == (models[1].dof_, models[1].seed_)


# ---------------------------------------------------------------- BDA7


def test_constant_features_leave_the_trace_seed():
    """A feature without variance within classes makes every diagonal seed singular: those models err on every row."""
    X, y = small_problem(n=50)
    X[:, 2] = 4.2
    with pytest.warns(UserWarning, match="feature 2 is constant in all rows, which leaves 14% of the models"):
        model = BDA7().fit(X, y)
    assert (model.cv_errors_[:, :6] == 1).all()
    assert model.seed_ == Seed("trace_pooled", -1)
    with pytest.raises(InvalidStatistics, match="no model of the grid"):
        BDA7().fit(np.repeat(np.arange(6.0), 4)[:, None] * np.ones((1, 3)), np.repeat(np.arange(6), 4))


def test_classes_absent_from_a_fold():
    X, y = small_problem(n=30)
    y[:] = y % 2
    y[0] = 2
    assert BDA7().fit(X, y).cv_errors_.min() >= 1 / 30
    splitter = [(np.arange(1, 30), np.array([0])), (np.r_[0, 10:30], np.arange(1, 10))]
    assert BDA7(cv=splitter).fit(X, y).cv_errors_.min() >= 1 / 10


GRIDS = [BDA7(), QuadraticBayes(), RDA(), EDDA(models=("EII", "VEI", "VVI", "EEE", "VVV"), tol=1e-12)]
each_grid = pytest.mark.parametrize("model", GRIDS, ids=lambda model: type(model).__name__)


@each_grid
def test_the_same_data_give_the_same_model(model):
    """Fitted again, and with the rows in another order; of the models of fewest errors, that of least log-loss."""
    X, y = small_problem(n=45, d=4)
    first, again = clone(model).fit(X, y), clone(model).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = clone(model).fit(X[order], y[order])
    for other in (again, shuffled):
        assert_allclose(other.predict_proba(X), first.predict_proba(X), rtol=1e-6, atol=1e-9)
    fewest = first.cv_errors_ <= first.cv_errors_.min() + 1e-12
    by_log_loss = clone(model).set_params(scoring="log_loss").fit(X, y)
    assert_allclose(by_log_loss.cv_log_loss_, first.cv_log_loss_)
    assert chosen(first, first.cv_log_loss_) == pytest.approx(first.cv_log_loss_[fewest].min(), abs=1e-8)
    assert chosen(by_log_loss, first.cv_log_loss_) == pytest.approx(first.cv_log_loss_.min(), abs=1e-8)


def chosen(model, table):
    """The entry of a table over the grid at the chosen model."""
    if isinstance(model, EDDA):
        return table[model.models.index(model.model_)]
    if isinstance(model, RDA):
        return table[model.lambdas.index(model.lambda_), model.gammas.index(model.gamma_)]
    grid = model._grid(model.n_features_in_)
    return table[grid.dofs.tolist().index(model.dof_), grid.seeds.index(model.seed_)]


@each_grid
@pytest.mark.parametrize(
    ("weighted", "cost"), [(False, [[0, 1, 5], [1, 0, 1], [2, 1, 0]]), (True, None)], ids=["costs", "weighted"]
)
def test_cv_errors_and_log_losses_equal_refits(model, weighted, cost):
    X, y = small_problem(n=30, d=3)
    model = clone(model).set_params(cost=cost)
    w = np.random.default_rng(1).uniform(0.1, 1.0, len(y)) if weighted else None  # less than one: the row leaves
    ours = clone(model).fit(X, y, sample_weight=w)
    refits = clone(model).set_params(cv=LeaveOneOut()).fit(X, y, sample_weight=w)
    assert_allclose(ours.cv_errors_, refits.cv_errors_, atol=1e-12)
    assert_allclose(ours.cv_log_loss_, refits.cv_log_loss_, rtol=1e-7)


@each_grid
def test_bad_choices_are_named(model):
    refused(r"scoring must be .* got 'first'", clone(model).set_params(scoring="first").fit, *IRIS)


def test_log_loss_passes_over_rows_that_no_model_can_tell():
    losses = np.array([[1.0, np.inf, 2.0], [3.0, np.inf, np.inf]])
    assert mean_log_loss(losses).tolist() == [1.5, np.inf]
    assert mean_log_loss(losses, np.array([1.0, 5.0, 3.0])).tolist() == [1.75, np.inf]
    assert mean_log_loss(losses[:, 1:2]).tolist() == [np.inf, np.inf]
    scores = np.log([[0.3, 0.1], [0.2, 0.2]])
    assert_allclose(log_losses(scores, np.array([1, 0])), [np.log(4), np.log(2)])
    assert np.isposinf(log_losses(np.array([[0.0, -np.inf]]), np.array([1])))


@pytest.mark.parametrize("exponent", [-149, -75, 75, 149])
@pytest.mark.parametrize("model", [BDA7(), RDA(), EDDA(), BayesianQDA(), NearestMeans()], ids=repr)
@pytest.mark.filterwarnings("error")
def test_units_of_any_size(model, exponent):
    """Features in other units, down to those whose squares are barely numbers, give the same decisions."""
    X, y = IRIS[0][::3] - 3, IRIS[1][::3]
    scale = 10.0**exponent
    ours = clone(model).fit(X * scale, y)
    assert np.isfinite(ours.predict_proba(X * scale)).all()
    assert (ours.predict(X * scale) == clone(model).fit(X, y).predict(X)).all()


@pytest.mark.parametrize(
    "scale, match", [(1e200, "feature 0, whose square overflows"), (1e-200, "feature 0 .* vanishes")]
)
@pytest.mark.parametrize(
    "model",
    [*GRIDS, BayesianQDA(), NearestMeans(), *(kind() for kind in OF_NEIGHBOURS)],
    ids=lambda model: type(model).__name__,
)
def test_units_beyond_are_refused(model, scale, match):
    X, y = IRIS
    refused(match, clone(model).fit, X * scale, y)
    refused("square overflows", clone(model).fit(X, y).predict, X * 1e200)
