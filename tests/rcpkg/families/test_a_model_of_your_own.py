"""The page "A model of your own": its Poisson naive Bayes, in at most 80 lines, has all that the library can do."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from model_cases import ML, refused
from numpy.testing import assert_allclose
from rcbook.family_table import REPLACED, capabilities, given_for
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from rcpkg import (
    QDA,
    ConditionalLikelihood,
    Mixture,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    calibration_test,
    climb,
)
from rcpkg.base import constructed, log_posterior
from rcpkg.calibration import HeldOut
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.objective import Objective
from rcpkg.calibration.steps import Fixed
from rcpkg.capabilities import MARGINALS, NEEDS
from rcpkg.families import ConjugateClassifier, Family, Statistics, Unsupported, can, one_hot, require
from rcpkg.families.hooks import Hooks

PAGE = Path(__file__).parents[3] / "book" / "api" / "a_model_of_your_own.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
NAMES = {"__name__": __name__}
exec(compile(BLOCKS[0], PAGE.name, "exec"), NAMES)
# The parameters are named for pickle, which looks for them in this module.
PoissonFamily, PoissonNB, PoissonParameters = (NAMES[f"Poisson{name}"] for name in ("Family", "NB", "Parameters"))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    return rng.negative_binomial(2, 0.4, size=(240, 3)) + rng.poisson(1.0 + y[:, None], size=(240, 3)), y


def test_it_is_short_and_its_second_block_runs():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(BLOCKS) == 2 and len(lines) <= 80
    names = dict(NAMES)
    with warnings.catch_warnings(action="error"):
        exec(compile(BLOCKS[1], PAGE.name, "exec"), names)
    assert names["gain"] < 0.1 and names["calibrated"].target_weight_ > 0


def test_a_step_and_a_target_of_your_own_do_what_their_formulas_say():
    """The blocks of the reference: s_t+1 = s_t + lr s(X, W_t) + momentum (s_t − s_t−1)."""
    page = PAGE.with_name("calibration.md").read_text("utf-8")
    names = {"__name__": __name__}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "calibration.md", "exec"), names)
    step, objective = names["HeavyBall"](0.05, 0.4), names["objective"]
    points = climb(objective, step, max_iter=3, keep_points=True).points
    before, s, after = (point.statistics.ravel() for point in points[1:])
    assert_allclose(after, s + 0.05 * points[2].gradient.ravel() + 0.4 * (s - before), rtol=1e-12)
    assert names["model"].history_.log_loss.iloc[0] > names["model"].history_.log_loss.min()
    drawn = RiskCalibration(QDA(), target="generative", target_weight=0.2).fit(names["X"], names["y"])
    assert_allclose(np.exp(names["path"].point.log_posterior(names["X"])), drawn.predict_proba(names["X"]), atol=1e-3)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_closed_form_prior_and_portions(rows, strength):
    X, y = rows
    model = PoissonNB(prior_strength=strength, class_prior_strength=0.0).fit(X, y)
    sums = np.array([X[y == c].sum(axis=0) for c in range(3)])
    assert_allclose(model.parameters_.rate, (sums + strength) / (80 + strength))
    again = PoissonNB(prior_strength=strength, class_prior_strength=0.0)
    for part in slice(0, 100), slice(100, None):
        again.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    doubled = clone(model).fit(X, y, sample_weight=np.full(240, 2.0))
    assert_allclose(doubled.statistics_.ravel(), 2 * model.statistics_.ravel())


def test_family_is_consistent(rows):
    """log p(x, y) = ⟨η, s(x, y)⟩ + log h(x), ψ = 0, ∇ψ = μ, ∇²ψ = I."""
    X, y = rows
    model = PoissonNB().fit(X, y)
    eta, mu = model.family_.natural_parameters(model.parameters_), model.family_.mean_parameters(model.parameters_)
    assert model.family_.log_partition(eta) == pytest.approx(0, abs=1e-12)
    differences = model.family_.scores(X, eta) - model.log_joint(X, model.parameters_)
    assert_allclose(differences, differences[:, :1] + np.zeros(3), atol=1e-10)
    assert_allclose(mu.ravel(), model.statistics_.ravel() / 240)
    form = MinimalForm(model.family_, X, model.statistics_)
    step = 1e-5 * np.random.default_rng(1).standard_normal(form.size)
    beta = form.coefficients(eta)
    means = [form.mean(model.family_.from_natural(form.natural(beta + sign * step))) for sign in (1, -1)]
    assert_allclose((means[0] - means[1]) / 2, form.information(model.parameters_) @ step, rtol=1e-5, atol=1e-12)


def test_every_route_ends_at_the_same_optimum(rows):
    """Safe steps, Newton's method along the path of weights, and an independent optimiser."""
    X, y = rows
    steps = RiskCalibration(PoissonNB(), target_weight=3.0, tol=1e-13).fit(X, y)
    newton = RiskCalibrationCV(PoissonNB(), target_weights=[3.0], closed_form=False).fit(X, y)
    target = ConditionalLikelihood(PoissonNB(), target_weight=3.0, tol=1e-8).fit(X, y)
    assert_allclose(steps.predict_proba(X), newton.predict_proba(X), atol=1e-4)
    assert_allclose(target.predict_proba(X), newton.predict_proba(X), atol=1e-6)
    free = ConditionalLikelihood(PoissonNB()).fit(X, y)
    slow = ConditionalLikelihood(PoissonNB(), solver="lbfgs").fit(X, y)
    assert_allclose(free.predict_proba(X), slow.predict_proba(X), atol=1e-4)
    Phi, Y = np.hstack([np.ones((240, 1)), X]), one_hot(y, 3)

    def loss(B):
        log_P = log_posterior(Phi @ B.reshape(3, 4).T, np.zeros(3))
        return -(Y * log_P).sum() / 240, ((np.exp(log_P) - Y).T @ Phi).ravel() / 240

    best = minimize(loss, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9}).fun
    assert free.history_.log_loss.iloc[-1] == pytest.approx(best, abs=1e-8)


class ThreeFunctions(Family):
    """What is left of the page's model without all that is not needed for the closed form."""

    statistics, parameters = PoissonFamily.statistics, PoissonFamily.parameters
    _with_prior = PoissonFamily._with_prior

    def log_joint(self, X, parameters):
        return X @ np.log(parameters.rate).T + parameters.log_prior - parameters.rate.sum(axis=1)


def with_methods(*methods):
    """The classifier of the page's family with no methods beside the closed form but these."""
    others = {
        "frozen": lambda self, parameters: [
            {"kind": "gaussian", "columns": np.arange(3), "shared": True, "independent": True}
            | {"log_prior": parameters.log_prior, "mean": parameters.rate}
            | {"covariance": np.ones(3), "whitener": np.ones(3)}
        ],
        "expected_rows": lambda self, X, weights, parameters: np.where(np.isnan(X), weights @ parameters.rate, X),
        **{f"{name}_parameters": PoissonFamily.pooled_parameters for name in ("grand", "nested")},
    }
    family = type("Given", (ThreeFunctions,), {name: others.get(name) or vars(PoissonFamily)[name] for name in methods})
    return type("Classifier", (ConjugateClassifier,), {}, family=family)()


def of_target(name):
    return lambda model, X, y: RiskCalibration(model, step="safe", target=name, target_weight=1.0).fit(X, y)


#: How each capability is used; targets are those of a family that can be drawn to one
USES = {
    "sampling": lambda model, X, y: model.fit(X, y).sample(5, random_state=0),
    MARGINALS: lambda model, X, y: model.fit(X, y).conditional_mean(X) - model.score_samples(X)[:, None],
    "a scorer": lambda model, X, y: model.fit(X, y).scorer().predict_proba(X[0]),
    "a safe step": lambda model, X, y: RiskCalibration(model, step="safe", target_weight=0.0, tol=0.0, max_iter=3).fit(
        X, y
    ),
    "convergence": lambda model, X, y: RiskCalibration(model, step="safe", target_weight=0.0).fit(X, y),
    "distances of joint models": lambda model, X, y: RiskCalibration.as_published(model, tol=1e-3).fit(X, y),
    "target_weight > 0": of_target("generative"),
    "target='pooled'": of_target("pooled"),
    "target='grand'": of_target("grand"),
    "target='nested'": of_target("nested"),
    "ConditionalLikelihood": lambda model, X, y: ConditionalLikelihood(model).fit(X, y),
    "Newton's method": lambda model, X, y: MinimalForm(model.fit(X, y).family_, X, model.statistics_).information(
        model.parameters_
    ),
    "l2": lambda model, X, y: ConditionalLikelihood(model, l2=1.0).fit(X, y),
    "calibration_test": lambda model, X, y: calibration_test(model, X, y, n_bootstrap=2, random_state=0),
    "ProductModel": lambda model, X, y: RiskCalibration(
        ProductModel([("a", model, [0, 1]), ("b", clone(model), [2])]), step=Fixed(0.1), target_weight=0.0
    ).fit(X, y),
}
#: Capabilities without which another is of no use
BESIDE = {
    **{name: ["target_weight > 0"] for name in NEEDS if name.startswith("target=")},
    "l2": ["ConditionalLikelihood"],
}


@pytest.mark.parametrize("capability", NEEDS)
def test_each_row_of_the_table_is_enough_and_needed(rows, capability):
    """A family that gives what a row says can do it, and one that lacks any of it is refused by name."""
    X, y = rows
    methods = {method for name in [capability, *BESIDE.get(capability, [])] for method in given_for(name)}
    model = with_methods(*methods)
    assert {name for name in NEEDS if can(model, name)} == {name for name in NEEDS if methods >= set(given_for(name))}
    USES[capability](model, X.astype(float), y)
    for lacking in given_for(capability):
        with pytest.raises(Unsupported, match=f"{re.escape(capability)} needs .*, which Given does not give"):
            require(with_methods(*methods - {lacking}), capability)


def test_the_tables_of_the_page_name_methods_of_a_family():
    given = {call.partition("(")[0] for _, calls in capabilities() for call in calls}
    assert given == {name for name in vars(Hooks) if not name.startswith("_")}
    assert all(callable(getattr(Family, name)) or name == "has_prior" for names in REPLACED.values() for name in names)


class WithoutLimits(Family):
    """Poisson counts of which 0 log 0 is not taken to be zero."""

    def statistics(self, X, weights):
        return Statistics(count=weights.sum(axis=0), total=weights.T @ X)

    def parameters(self, statistics):
        return statistics.total / statistics.count[:, None]

    def log_joint(self, X, rate):
        with np.errstate(divide="ignore"):
            return (X[:, None] * np.log(rate) - rate).sum(axis=2)


class WithoutLimitsNB(ConjugateClassifier, family=WithoutLimits): ...


def test_a_joint_probability_that_is_no_number_is_not_taken_for_zero():
    """It is a fault of the family, which must be answered neither by the other classes nor by the first one."""
    model = WithoutLimitsNB().fit([[0.0, 1.0], [0.0, 2.0], [3.0, 1.0], [4.0, 2.0]], ["a", "a", "b", "b"])
    for predict in model.predict, model.predict_proba:
        with pytest.warns(RuntimeWarning, match="invalid value"):
            refused("log_joint of WithoutLimits must give .* without NaN", predict, [[0.0, 1.0]])


class Transposed(ThreeFunctions):
    def log_joint(self, X, parameters):
        return super().log_joint(X, parameters).T


class TransposedNB(ConjugateClassifier, family=Transposed): ...


def test_a_method_that_lacks_or_has_another_shape_is_named(rows):
    message = r"log_joint of Transposed .* shape \(n, r\), .* \(240, 3\) it gave \(3, 240\)"
    refused(message, TransposedNB().fit(*rows).predict, rows[0])
    given = {name: vars(ThreeFunctions)[name] for name in ("statistics", "parameters", "log_joint")}
    for name in given:
        methods = {other: method for other, method in given.items() if other != name}
        with pytest.raises(TypeError, match=f"abstract class Lacking .* method '?{name}"):
            type("LackingNB", (ConjugateClassifier,), {}, family=type("Lacking", (Family,), methods))().fit(*rows)


class DozensFamily(PoissonFamily):
    """Counts in dozens, encoded as a tuple of arrays."""

    def encode(self, X):
        return 12 * X, gammaln(12 * X + 1).sum(axis=1)

    def statistics(self, X, weights):
        return super().statistics(X[0], weights)

    def features(self, X):
        return X[0]

    def log_joint(self, X, parameters):
        return self.scores(X, self.natural_parameters(parameters)) - X[1][:, None]


class DozensNB(ConjugateClassifier, family=DozensFamily): ...


@pytest.mark.parametrize(
    "learner",
    [
        lambda model: model,
        RiskCalibration,
        lambda model: RiskCalibration(model, stopping=HeldOut(0.2), random_state=0),
        RiskCalibrationCV,
        lambda model: RiskCalibrationCV(model, cv=3, scoring="neg_log_loss"),
        ConditionalLikelihood,
        lambda model: ProductModel([("all", model, [0, 1, 2])]),
        lambda model: Mixture(model, n_components="cv", random_state=0),
    ],
    ids=["closed", "calibrated", "held out", "chosen", "by folds", "conditional", "product", "mixture"],
)
def test_rows_are_encoded_in_predictions_as_in_training(rows, learner):
    X, y = rows
    models = learner(DozensNB()).fit(X / 12, y), learner(PoissonNB()).fit(X, y)
    assert_allclose(models[0].predict_proba(X / 12), models[1].predict_proba(X), rtol=1e-6, atol=1e-9)


class PeriodicFamily(DozensFamily):
    period: float = 12.0

    def encode(self, X):
        return self.period * X, gammaln(self.period * X + 1).sum(axis=1)


def test_a_setting_reaches_the_family_or_is_refused(rows):
    X, y = rows

    @constructed
    class Constructed(PeriodicFamily):
        period: float = 12.0

    class PeriodicNB(ConjugateClassifier, family=Constructed):
        period: float = 12.0

    model = clone(PeriodicNB(period=4.0)).fit(X / 4, y)
    assert_allclose(model.predict_proba(X / 4), PoissonNB().fit(X, y).predict_proba(X))
    with pytest.raises(TypeError, match=r"period of Lost would never reach .* in PeriodicFamily, .* @constructed"):

        class Lost(ConjugateClassifier, family=PeriodicFamily):
            period: float = 12.0

    with pytest.raises(TypeError, match="period of Lost would never reach"):

        class Lost(ConjugateClassifier, family=PeriodicFamily):
            def __init__(self, period=12.0):
                self.period = period


def test_a_nested_target_of_your_own_is_one_of_every_learner(rows):
    """Also where `RiskCalibration` looks what rows left out say of its weight, and the family has no states."""
    methods = {method for name in NEEDS if name not in ("a scorer", MARGINALS) for method in given_for(name)}
    for learner in RiskCalibration, RiskCalibrationCV, ConditionalLikelihood:
        model = learner(with_methods(*methods), target="nested").fit(*rows)
        same = learner(with_methods(*methods), target="pooled").fit(*rows)
        assert_allclose(model.predict_proba(rows[0]), same.predict_proba(rows[0]), atol=1e-6)


class GappyFamily(PoissonFamily):
    """With what is seen of the counts, each in the share of the rows that have it."""

    def closed_form_statistics(self, rows):
        (block,) = rows
        W, seen = block.weights(len(self.classes_)), ~np.isnan(block.X)
        sums = self.statistics(np.where(seen, block.X, 0.0), W)
        return Statistics(count=sums.count, total=sums.total * sums.count[:, None] / (W.T @ seen))


class GappyNB(ConjugateClassifier, family=GappyFamily):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class ForgetfulNB(GappyNB, family=PoissonFamily): ...


def test_gaps_that_a_family_does_not_expect_are_refused(rows):
    """By the closed form that has been given, in ``fit`` too; by what was not given, not taken for complete rows."""
    X, y = np.array(rows[0], dtype=float), rows[1]
    X[::5, 0] = np.nan
    rates = GappyNB().fit(X, y).parameters_.rate
    assert_allclose(rates, [np.nanmean(X[y == c], axis=0) for c in range(3)])
    assert_allclose(Objective.from_estimator(GappyNB(), X, y).labels.total, rates * 80)
    refused(r"holds missing values \(NaN\)", ConditionalLikelihood(GappyNB()).fit, X, y)
    refused(r"no numbers: .* NaN", ForgetfulNB().fit, X, y)


def test_three_functions_are_enough_for_calibration_as_published(rows):
    """Nothing is inherited that raises in place of an answer."""
    X, y = rows
    model = RiskCalibration(with_methods()).fit(X, y)
    same = RiskCalibration.as_published(PoissonNB()).fit(X, y)
    assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-10)
    refused("sampling needs draw, which Given does not give", with_methods().fit(X, y).sample, 3)
    lacking = [capability for capability in NEEDS if not can(ThreeFunctions(), capability)]
    assert lacking == list(NEEDS)
    for capability in NEEDS:
        refused(f"{capability} needs .*, which ThreeFunctions does not give", require, ThreeFunctions(), capability)


@pytest.mark.parametrize("capability", NEEDS)
def test_each_capability_is_one_of_some_family(capability):
    assert [name for name, model in ML.items() if can(model, capability)]


def test_scikit_learn_accepts_it():
    excused = {"check_decision_proba_consistency": "feeds negative numbers to a model of counts"}
    check_estimator(PoissonNB(), on_skip=None, expected_failed_checks=excused)
