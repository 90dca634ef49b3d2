"""Conditional likelihood and its gradients: against finite differences, scikit-learn, and one another."""

import gc
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from model_cases import GAUSSIAN, ML, classes, fitted, gaussian_rows, of_each_family, random_direction, rows_for, slow
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    KDependenceBayes,
    ProductModel,
    RiskCalibration,
    SharedVarianceGaussianNB,
)
from rcpkg.base import log_posterior
from rcpkg.calibration import Objective, Target, climb
from rcpkg.calibration.conditional import Conditional
from rcpkg.calibration.curvature import Woodbury, WoodburyByDifferences
from rcpkg.calibration.newton import Newton
from rcpkg.calibration.target_path import TargetPath


def log_loss(model, X, y):
    return -np.mean(model.predict_log_proba(X)[np.arange(len(y)), y])


def objective_of(name, b=0.0):
    model, X, _, Y = fitted(name)
    rows = model.family_.encode(X)
    if not b:
        return Objective(model.family_, rows, Y)
    parameters, size = model.family_.pooled_parameters(model.statistics(rows, Y))
    return Objective(model.family_, rows, Y, target=Target(size * model.family_.mean_parameters(parameters), size, b))


def test_a_search_gives_its_memory_back_at_once():
    F = Conditional(objective_of("QDA"))
    gone = weakref.ref(F)
    gc.disable()
    try:
        del F
        assert gone() is None
    finally:
        gc.enable()


# --- scores and what gives them back -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ML)
def test_any_natural_parameter_has_a_model_with_its_posteriors(name):
    """A common quadratic makes every −2η_2y positive definite, and leaves p(y | x) as it is; that of a model has it."""
    model, X, _, _ = fitted(name)
    own, rng = model.family_.natural_parameters(model.parameters_), np.random.default_rng(1)
    again = model.family_.from_natural(own)
    assert np.allclose(model.log_joint(X, again), model.predict_joint_log_proba(X), rtol=0, atol=1e-10)
    for size in np.repeat([0.3, 3.0], 5):
        natural = size * random_direction(own, rng)
        parameters = model.family_.from_natural(natural)
        zero = np.zeros(len(model.classes_))
        ours = log_posterior(model.log_joint(X, parameters), zero)
        assert np.allclose(ours, log_posterior(model.family_.scores(X, natural), zero), rtol=0, atol=1e-7)


# --- gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("b, l2", [(0.0, 0.0), (0.7, 0.0), (0.0, 2.0)])
@pytest.mark.parametrize("name", of_each_family(*ML))
def test_gradient_and_hessian_of_the_objective_in_minimal_coordinates(name, b, l2, dense, monkeypatch):
    """∇_η = s(X, Y − P) + b (s̄ − m̄ μ), and H, pulled back to the coordinates that all searches move in."""
    if not dense:
        monkeypatch.setattr("rcpkg.calibration.conditional.MOST_PARAMETERS", 0)
    F = Conditional(objective_of(name, b), l2)
    z = F.evaluate(None).z
    z = z + 0.03 * np.random.default_rng(0).standard_normal(len(z))
    steps = 1e-5 * np.eye(len(z))
    ends = [(F(z + e), F(z - e)) for e in steps]
    numeric = np.array([(up.value - down.value) / 2e-5 for up, down in ends])
    exact = F(z).gradient
    assert np.allclose(exact, numeric, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
    change = np.array([(up.gradient - down.gradient) / 2e-5 for up, down in ends])
    d, near = np.random.default_rng(1).standard_normal(len(z)), {"rtol": 1e-4, "atol": 1e-6 * np.abs(change).max()}
    if dense:
        H = F.hessian(z) - (F.pinned(np.zeros((len(z), len(z)))) if b else 0.0)
        assert np.allclose(H, change, **near)
        assert np.allclose(F.product(z, 0.0)(d), H @ d, rtol=1e-9, atol=1e-9 * np.abs(H @ d).max())
        return
    assert np.allclose(F.product(z, 0.0)(d), change @ d, **near)
    blocks = F.blocks(z)
    ends = np.cumsum([0, *map(len, blocks)])
    for block, first, last in zip(blocks, ends, ends[1:]):
        assert np.allclose(block, change[first:last, first:last], **near)


# --- one optimum ---------------------------------------------------------------------------------------------------


OF_FEW_ROWS = {
    "QDA": QDA(),
    "LDA": LDA(),
    "GaussianNB": GaussianNB(),
    "CategoricalNB": CategoricalNB(),
    "BernoulliNB": BernoulliNB(),
    "ProductModel": ProductModel(
        [("kind", CategoricalNB(), range(20)), ("form", QDA(), range(20, 24)), ("size", GaussianNB(), [24])]
    ),
}


def of_few_rows(name, r):
    """The objective with a target of 60 weighted rows, of 8 features or so many that a class has more than rows."""
    rng, y = np.random.default_rng(0), np.arange(60) % r
    X = rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8)) + 4 * y[:, None] * rng.normal(size=8)
    if name not in ("QDA", "LDA"):
        means = 0.5 * y[:, None] * rng.normal(size=80)
        numbers, states = rng.normal(size=(60, 80)) + means, rng.integers(4, size=(60, 80))
        states *= rng.uniform(size=(60, 80)) > means
        states[:, 7] = 2  # as in all rows
        X = numbers if name == "GaussianNB" else states
        if name == "ProductModel":
            X = np.hstack([states[:, :20], numbers[:, :5]])
    model = OF_FEW_ROWS[name].fit(X, y)
    path = TargetPath.from_estimator(model, "pooled", X, y, rng.uniform(size=60) + 0.5)
    return path.conditional.with_weight(0.3)


@pytest.mark.parametrize("name", [name for name in OF_FEW_ROWS if name != "LDA"])
def test_kernels_are_those_of_the_second_moments(name):
    """p(y) f(x_i)ᵀ M_y⁻¹ f(x_j), and of each row with itself."""
    F, rows = of_few_rows(name, 3), np.arange(60)
    model, features = F.joint.parameters(F.beta(F.evaluate(None).z)), F.form.features
    inverse, E = F.form.map.inverse_moments(model), F.form.second_moments(model)
    for y, (M, squares) in enumerate(zip(E.per_class, inverse.squares())):
        expected = np.exp(model.log_prior[y]) * features @ np.linalg.solve(M, features.T)
        near = {"rtol": 0, "atol": 1e-8 * np.abs(expected).max()}
        assert np.allclose(inverse.kernel(y, rows, rows), expected, **near)
        assert np.allclose(squares, expected.diagonal(), **near)


@pytest.mark.parametrize("name", OF_FEW_ROWS)
@pytest.mark.parametrize("r", [2, 3])
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_systems_of_few_rows_solve_as_the_hessian_does(name, r, damping, monkeypatch):
    """At a point and at equal posteriors. Damping adds that of the target, and of rows at equal posteriors, or more of
    these where classes share no covariance; rows that are left out are worth no more than their doubts."""
    of_rows = name != "LDA"
    if not of_rows:
        monkeypatch.setattr("rcpkg.calibration.conditional.MOST_PARAMETERS", 30)
    F = of_few_rows(name, r)
    F.doubt_threshold = 0.0
    point = F.evaluate(None)
    g = point.evaluation.gradient
    for z in point.z, None:
        H, found = F.hessian(z), F.curvature(z, damping)
        assert type(found) is (Woodbury if of_rows else WoodburyByDifferences)
        H = H + damping * F.share * F.joint.size * F.form.covariance(F._joint_moments(z))
        if of_rows and damping and z is not None:
            assert g @ found.solve(g) < g @ np.linalg.solve(H, g)
        else:
            H[F.of_scores, F.of_scores] += damping * F.data.curvature(None)
            assert np.allclose(H @ found.solve(g), g, rtol=0, atol=1e-10 * np.abs(g).max())
    if of_rows:
        F.doubt_threshold = 1e-3
        some, of_all = F.curvature(point.z), g @ np.linalg.solve(F.hessian(point.z), g)
        assert len(some.features) < 60  # and 1 + UᵀA⁻¹U is greater by at most this
        assert 1 - 1e-9 <= g @ some.solve(g) / of_all <= 1 + 60 * F.doubt_threshold


@pytest.mark.parametrize("seed", [7, 24, 43])
def test_systems_of_few_rows_are_not_blind_where_a_class_lacks_a_state(seed, monkeypatch):
    """The search had ended without a step: the curvature of a target with a state of probability e⁻⁵⁰ vanishes."""
    rng, y = np.random.default_rng(seed), np.arange(36) % 3
    X = (rng.uniform(size=(36, 40)) < 0.2).astype(float)
    X[:, 0] = y == 0
    found = RiskCalibration(BernoulliNB(), target_weight=1e-3, tol=1e-12).fit(X, y)
    monkeypatch.setattr(Conditional, "_system", lambda F, n: np.inf)
    by_matrix = RiskCalibration(BernoulliNB(), target_weight=1e-3, tol=1e-12).fit(X, y)
    assert found.converged_ and by_matrix.converged_
    assert np.allclose(found.predict_proba(X), by_matrix.predict_proba(X), rtol=0, atol=1e-6)


def test_a_target_that_is_wider_than_the_rows_has_the_same_optimum_by_matrix_and_by_rows(monkeypatch):
    """A prior in the units of features that are 1e8 apart: in those of the rows the matrix had lost all digits, and the
    search said "converged" with posteriors off by .34."""
    rng, y = np.random.default_rng(0), np.arange(45) % 5
    X = (rng.normal(size=(45, 12)) + 0.5 * y[:, None] * rng.normal(size=12)) * 10.0 ** rng.integers(-4, 5, size=12)
    learner = RiskCalibration(QDA(prior_strength=14.0), target="grand", target_weight=0.1, tol=1e-12)
    by_rows = learner.fit(X, y).predict_proba(X)
    monkeypatch.setattr(Conditional, "_system", lambda F, n: np.inf)
    assert np.allclose(learner.fit(X, y).predict_proba(X), by_rows, rtol=0, atol=1e-6)
    assert learner.n_iter_ < 20


def test_rows_that_no_table_has_are_told_by_the_target_alone():
    """A probability had fallen to e⁻⁵⁰ on the way, and its curvature below rounding, which a factor took for that of
    others: the search had "converged" with posteriors of such rows at 0 in place of .5."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(240, 6)).astype(float)
    X[:, 5] = X[:, 4]
    y = rng.uniform(size=240) < 1 / (1 + np.exp(X[:, 2] - X[:, 1]))
    every_row = np.array(list(np.ndindex(*[2] * 6)), dtype=float)
    model = KDependenceBayes(k=2)
    found = RiskCalibration(model, target_weight=0.001, tol=1e-13).fit(X, y)
    by_lbfgs = ConditionalLikelihood(model, solver="lbfgs", target_weight=0.001, tol=1e-14).fit(X, y)
    assert found.converged_ and by_lbfgs.converged_
    assert np.allclose(found.predict_proba(every_row), by_lbfgs.predict_proba(every_row), rtol=0, atol=1e-3)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_search_ends_where_values_go_up_and_down_by_rounding(seed):
    """A pair of features that differ by 1e-5: each of 1,000 steps had gained by its slope, all nothing."""
    rng, y = np.random.default_rng(seed), np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + 0.5 * y[:, None]
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    with warnings.catch_warnings(action="ignore"):
        model = ConditionalLikelihood(LDA(), solver="newton", target_weight=3.0).fit(X, y)
    assert model.n_iter_ < 100


def test_a_trust_region_that_has_become_small_grows_again():
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + y[:, None]
    F = TargetPath.from_estimator(QDA().fit(X, y), "pooled", X, y).conditional
    run, point = Newton().begin(F, rng), F.evaluate(None)
    run.radius = 1e-3 * np.abs(F.beta(point.newton_step)).max()
    for t in range(2, 17):
        point = run(point, t)
    assert point.promise < 1e-12


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", [1e-7, 1e-12, 1e-140])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_ridge_takes_no_other_feature_with_one_of_tiny_units(name, unit):
    """Its slope would have to be large: the optimum is that of the others, and not where the search begins."""
    X, y = gaussian_rows()
    without = ConditionalLikelihood(ML[name], l2=1.0).fit(X[:, 1:], y)
    with_it = ConditionalLikelihood(ML[name], l2=1.0).fit(X * [unit, 1.0, 1.0], y)
    assert np.allclose(with_it.predict_proba(X * [unit, 1.0, 1.0]), without.predict_proba(X[:, 1:]), rtol=0, atol=1e-6)
    assert with_it.converged_ and with_it.n_iter_ < 20


@pytest.mark.parametrize("name", ["QDA", "TAN", *slow(*(n for n in ML if n not in ("QDA", "TAN", "ProductModel")))])
def test_a_prior_shapes_the_target_and_nothing_else(name):
    """With b > 0 the loop is that of maximum likelihood: its optimum is the one of L-BFGS with the same target."""
    X, y = rows_for(name)
    smoothed = clone(ML[name]).set_params(prior_strength=2.0)
    settings = {"target": "generative", "target_weight": 0.2}
    ours = ConditionalLikelihood(smoothed, **settings).fit(X, y)
    options = {"step": "safe", "stopping": "none", "max_iter": 100}
    calibrated = RiskCalibration.as_published(smoothed, **settings, **options).fit(X, y)
    settings["target"] = clone(smoothed).fit(X, y)
    by_model = RiskCalibration.as_published(ML[name], **settings, **options).fit(X, y)
    assert np.allclose(ours.predict_proba(X), calibrated.predict_proba(X), rtol=0, atol=1e-5)
    assert np.allclose(by_model.predict_proba(X), calibrated.predict_proba(X), rtol=0, atol=1e-12)
    model = calibrated.estimator_
    assert np.allclose(
        model.family_.natural_parameters(model.parameters(model.statistics_)).ravel(),
        model.family_.natural_parameters(model.parameters_).ravel(),
    )


@pytest.mark.parametrize("scale", [1e-8, 1e6])
def test_a_prior_in_other_units_does_not_end_the_search(scale):
    """Coordinates are whitened by the rows, not by a prior that dwarfs them."""
    X, y = rows_for("QDA")
    best = log_loss(ConditionalLikelihood(QDA()).fit(X, y), X, y)
    ours = ConditionalLikelihood(QDA(prior_strength=1.0), max_iter=2000).fit(scale * X, y)
    assert ours.converged_
    assert log_loss(ours, scale * X, y) == pytest.approx(best, abs=1e-4)


# --- where no optimum exists ----------------------------------------------------------------------------------------


def separable_rows():
    rng = np.random.default_rng(0)
    y = classes(60, 2, rng)
    return rng.standard_normal((60, 2)) + 8.0 * y[:, None], y


@pytest.mark.parametrize("model", [QDA(), LDA(), GaussianNB(), SharedVarianceGaussianNB()])
def test_separable_rows_are_reported(model):
    X, y = separable_rows()
    learner = ConditionalLikelihood(model)
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        learner.fit(X, y)
    assert learner.separable_ and not learner.converged_
    assert learner.history_.log_loss.iloc[-1] < 1e-6
    assert np.isfinite(learner.predict_log_proba(X)).all() and learner.score(X, y) == 1
    weights = np.append(np.ones(60), 0.0)  # a row that says otherwise, of weight zero
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        learner.fit(np.vstack([X, X[:1]]), np.append(y, 1 - y[0]), sample_weight=weights)
    assert learner.separable_ and not learner.converged_
    with warnings.catch_warnings(action="error"):  # a target makes them well posed
        learner.set_params(target_weight=0.1).fit(X, y)
    assert learner.converged_ and not learner.separable_


@pytest.mark.parametrize("solver, coordinates", [("newton", "whitened"), ("lbfgs", "natural")])
def test_the_search_is_over_once_separated_rows_have_next_to_no_loss(solver, coordinates):
    """No further search begins, though the slope, in units of features with outliers, is still far above tol."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, (60, 3))
    y = X @ [1.0, 0.5, -0.2] > 0.3
    learner = ConditionalLikelihood(LDA(), solver=solver, coordinates=coordinates, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        learner.fit(X * 1e3, y)
    losses = learner.history_.log_loss.to_numpy()
    assert losses[-1] < 1e-3 and (losses[:-1] >= 1e-3).all()
    assert learner.n_iter_ == len(losses) - 1 and learner.history_.step.iloc[-1] > 1e-3


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_promise_that_rounding_has_made_negative_is_no_optimum():
    F = Conditional(Objective.from_estimator(QDA(), *gaussian_rows(), target_weight=1.0))
    point = F.evaluate(None)
    point.curvature = SimpleNamespace(solve=np.negative)  # in place of a Hessian of which rounding has left nothing
    assert point.promise > 0 and point.estimate > 0


@pytest.mark.parametrize("r", [2, 3, 10])
def test_a_row_far_outside_of_the_target_ends_no_search_without_a_word(r):
    """In the system by rows the rounding of its scores exceeds those of all others by far. The optimum of a greater
    weight, which is found, is better at the smaller one than where such a search ended, which said nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 12)), np.arange(60) % r
    X[-1] *= 1e5
    F = Conditional(Objective.from_estimator(QDA(), X, y, target_weight=1e-6))
    greater = climb(F.with_weight(1e-3), Newton())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = RiskCalibration(QDA(), target_weight=1e-6).fit(X, y)
    short = any(issubclass(warning.category, ConvergenceWarning) for warning in said)
    assert short or model.history_.objective.iloc[-1] <= F.iterate(greater.point.z).evaluation.value


@pytest.mark.slow
def test_rows_that_lack_rare_states_lead_to_the_optimum_without_a_hessian_of_all(monkeypatch):
    rng = np.random.RandomState(0)
    n = 40_000
    X = np.minimum(rng.geometric(0.3, (n, 12)) - 1, 29).astype(float)
    y = (X[:, :3].sum(axis=1) + rng.logistic(0, 2, n) > 7).astype(int)
    monkeypatch.delattr(Conditional, "by_all_rows")
    learner = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), tol=1e-8).fit(X, y)
    assert learner.converged_
