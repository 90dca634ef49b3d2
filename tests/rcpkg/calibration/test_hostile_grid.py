"""Every model, penalty and kind of hostile rows: the optimum of an independent optimiser, or a word why not.

The tolerances are those of `test_optimum` and were fixed before the grid was run. A fit without a target that says
"converged" or "separable" has the least log-loss that scipy's trust-exact finds on scikit-learn's features, and with a
ridge its posteriors. One with a target has next to no gradient in the metric of the joint model. Newton's method,
L-BFGS and safe steps end at one model, on rows outside of the training table and on rows with a missing value too,
unless the fit says that its model is where the search ended.
"""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from test_optimum import POSTERIOR, VALUE, centred, fit, indicators, optimum

from rcpkg import (
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
)
from rcpkg.base import InvalidStatistics
from rcpkg.calibration import Objective

MODELS = {
    "QDA": QDA(),
    "LDA": LDA(),
    "GaussianNB": GaussianNB(),
    "CategoricalNB": CategoricalNB(prior_strength=1.0),
    "MultinomialNB": MultinomialNB(prior_strength=1.0),
    "BernoulliNB": BernoulliNB(prior_strength=1.0),
    "TAN": TAN(prior_strength=1.0),
    "ProductModel": ProductModel([("states", CategoricalNB(prior_strength=1.0), [0, 1]), ("numbers", QDA(), [2, 3])]),
}
CONTINUOUS, COUNTS = ("QDA", "LDA", "GaussianNB"), ("MultinomialNB",)
KINDS = (
    "plain", "tiny units", "huge units", "far from zero", "separable", "nearly separable", "collinear", "constant",
    "one-row class", "many classes", "rare state", "repeated rows",
)  # fmt: skip
PENALTIES = {"none": {}, "ridge": {"l2": 1.0}, "target": {"target_weight": 1.0}}
OTHER_TARGETS = {name: {"target": name, "target_weight": 0.3} for name in ("generative", "grand")}  # of plain rows
WRONG_FOR = {  # kinds that a model has no rows of
    "discrete": {"tiny units", "huge units", "far from zero"},
    "continuous": {"rare state"},
}
SAID = {"separable": "no finite optimum exists", "max_iter": "raise max_iter", "no_step": "rounding"}


def numbers(kind, y, rng):
    """Three continuous features."""
    apart = {"separable": 30.0, "nearly separable": 30.0}.get(kind, 1.0)
    X = rng.randn(len(y), 3) + apart * np.outer(y % 5, [1.0, 0.5, 0.0]) + 0.5 * np.outer(y, [0.0, 1.0, 1.0])
    if kind == "nearly separable":
        X[:2] = X[-2:] + 0.01
    if kind == "collinear":
        X[:, 2] = X[:, 0] + 1e-7 * rng.randn(len(y))
    if kind == "constant":
        X[:, 2] = 3.0
    return X * {"tiny units": 1e-8, "huge units": 1e8}.get(kind, 1.0) + 1e5 * (kind == "far from zero")


def states(kind, y, rng, n_states=3):
    """Three discrete features."""
    X = (rng.randint(n_states, size=(len(y), 3)) + (y[:, None] + [0, 1, 2]) % 3 // 2).clip(0, n_states - 1)
    if kind in ("separable", "nearly separable"):
        X[:, 0] = np.minimum(y, n_states - 1)
        X[:2, 0] = X[-2:, 0] if kind.startswith("nearly") else X[:2, 0]
    if kind == "collinear":
        X[:, 2] = X[:, 1]
    if kind == "constant":
        X[:, 2] = 1
    if kind == "rare state":
        X[:, 1] = X[:, 1].clip(0, 1)
        X[3, 1] = n_states - 1
    return X.astype(float)


def rows_of(name, kind):
    """Rows and classes."""
    rng = np.random.RandomState(len(name) + 7 * KINDS.index(kind))
    r = 8 if kind == "many classes" else 2 if name == "BernoulliNB" or "separable" in kind else 3
    y = np.arange(40 * r) % r
    if kind == "one-row class":
        y = np.append(y, r)
    if name in CONTINUOUS:
        X = numbers(kind, y, rng)
    elif name == "MultinomialNB":  # rows of equal length
        X = states(kind, y, rng)
        X = np.c_[X, 8 - X.sum(axis=1)]
    elif name == "ProductModel":
        X = np.c_[states(kind, y, rng)[:, :2], numbers(kind, y, rng)[:, :2]]
    else:
        X = states(kind, y, rng, 2 if name == "BernoulliNB" else 3)
    return (np.repeat(X, 3, axis=0), np.repeat(y, 3)) if kind == "repeated rows" else (X, y)


def design(name, X, parents):
    """Features of the logistic regression that the model is; a column that is constant is none of a Gaussian model."""
    X = X if name == "TAN" else X[:, np.ptp(X, axis=0) > 0]
    pairs = {"QDA": np.triu_indices(X.shape[1]), "GaussianNB": np.diag_indices(X.shape[1]), "LDA": ((), ())}
    if name in CONTINUOUS:
        return centred(X, list(zip(*pairs[name])))
    if name in ("BernoulliNB", "MultinomialNB"):
        return type(centred(X, []))(X, np.eye(X.shape[1]))
    if name == "ProductModel":
        one, two = indicators(X[:, :-2].T), centred(X[:, -2:], [(0, 0), (0, 1), (1, 1)])
        zero = np.zeros((one.K.shape[0], two.K.shape[0]))
        return type(one)(np.hstack([one.Z, two.Z]), np.block([[one.K, zero], [zero.T, two.K]]))
    if name == "TAN":
        return indicators([X[:, [*of, j]] @ 10.0 ** np.arange(len(of) + 1) for j, of in enumerate(parents)])
    return indicators(X.T)


CASES = [
    (name, kind, penalty)
    for name, kind, penalty in [*product(MODELS, KINDS, PENALTIES), *product(MODELS, ["plain"], OTHER_TARGETS)]
    if kind not in WRONG_FOR["continuous" if name in CONTINUOUS else "discrete"]
]
PARTLY = [pytest.param(*case, marks=[pytest.mark.slow] * bool(k % 17)) for k, case in enumerate(CASES)]


@pytest.mark.parametrize(("name", "kind", "penalty"), PARTLY)
def test_hostile_rows(name, kind, penalty):
    """All optimisers on one case."""
    X, y = rows_of(name, kind)
    options = {**PENALTIES, **OTHER_TARGETS}[penalty]
    b = options.get("target_weight", 0.0)
    learners = [
        ConditionalLikelihood(clone(MODELS[name]), **options),
        ConditionalLikelihood(clone(MODELS[name]), solver="lbfgs", **options),
    ]
    if penalty != "ridge":
        settings = {"target_weight": 0.0, **options, "step": "safe", "tol": 1e-12, "max_iter": 2000}
        learners.append(RiskCalibration(clone(MODELS[name]), **settings))
    if not b and kind in ("plain", "tiny units", "far from zero"):
        every = ("natural", "closed_form", "curvature")
        learners += [ConditionalLikelihood(clone(MODELS[name]), coordinates=each, **options) for each in every]
    if b and kind == "plain":
        settings = {"target": options.get("target", "pooled"), "target_weights": [b], "closed_form": False, "cv": 3}
        learners.append(RiskCalibrationCV(clone(MODELS[name]), **settings))
    ended = []
    for learner in learners:
        try:
            learner, said = fit(learner, X, y)
        except InvalidStatistics as error:  # no closed form to begin at
            assert str(error)
            continue
        assert bool(said) != learner.converged_, (learner.stop_reason_, said)
        assert learner.converged_ or SAID[learner.stop_reason_][:10] in said[0] or isinstance(learner, RiskCalibration)
        ended.append(learner)
    done = [learner for learner in ended if learner.stop_reason_ in ("converged", "separable")]
    if not b and done:
        parents = getattr(done[0].estimator_, "parents_", None)
        value, P = optimum(design(name, X, parents), y, options.get("l2", 0.0))
        for learner in done:
            loss = learner.objective_ if hasattr(learner, "objective_") else learner.history_.log_loss.iloc[-1]
            near = VALUE * max(1.0, value)
            assert value - near <= loss <= value + near, (type(learner).__name__, learner.stop_reason_, loss, value)
            if options:
                assert np.abs(learner.predict_proba(X) - P).max() < POSTERIOR
    if b:
        for learner in done:
            F, model = Objective.from_estimator(learner.estimator, X, y, **options), learner.estimator_
            gain = F.promised_gain(F.evaluate(model.statistics_, model.parameters_))
            # F is strongly concave relative to ψ: this bounds what it lacks of its maximum a row and pseudo-row
            assert F.size / (2 * b * F.target.size) * gain < VALUE
    same = [learner for learner in done if getattr(learner, "joint_model_", "optimum") in ("optimum", "most probable")]
    rng = np.random.RandomState(0)
    others = np.array([rng.permutation(column) for column in X.T]).T[:50]
    gaps = np.where(np.arange(X.shape[1]) == 1, np.nan, others)
    for learner, rows in product(same[1:], (X, others, gaps)):
        assert np.abs(learner.predict_proba(rows) - same[0].predict_proba(rows)).max() < POSTERIOR
