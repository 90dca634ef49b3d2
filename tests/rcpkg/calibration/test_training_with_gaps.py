"""Training rows with gaps: expected statistics, EM, and calibration of what there is of each row."""


import numpy as np
import pytest
from numpy.testing import assert_allclose

from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    GaussianNB,
    KDependenceBayes,
    ProductModel,
    RiskCalibration,
    SharedVarianceGaussianNB,
)
from rcpkg.calibration import Converged, Objective, Safe, climb

GRAPH = KDependenceBayes(structure=[[], [0], [0], [1, 2]])
BLOCKS = ProductModel([("numbers", LDA(), [0, 1]), ("states", TAN(), [2, 3])])
MODELS = {
    "QDA": QDA(),
    "LDA": LDA(),
    "GaussianNB": GaussianNB(),
    "shared": SharedVarianceGaussianNB(),
    "TAN": TAN(),
    "KDB": KDependenceBayes(k=2),
    "product": BLOCKS,
    "CategoricalNB": CategoricalNB(prior_strength=1.0),
    "graph": GRAPH,
}
WITH_TARGETS = [name for name in MODELS if name != "graph"]
FULL = [name for name in WITH_TARGETS if name != "CategoricalNB"]  # its statistics count what is seen


def rows(name, n=120, rate=0.25, seed=0):
    """Rows with gaps, numbers or states or both, and labels; the complete rows, too."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    numbers = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    states = (rng.integers(2, size=(n, 4)) + (y[:, None] * [1, 0, 1, 2]) // 2) % 3
    states[:, 3] = (states[:, 1] + states[:, 2] + (rng.random(n) < 0.2)) % 3
    X = {"product": np.c_[numbers[:, :2], states[:, 2:]]}.get(name)
    if X is None:
        X = numbers if name in ("QDA", "LDA", "GaussianNB", "shared") else states.astype(float)
    return np.where(rng.random(X.shape) < rate, np.nan, X), y, X


def prepared(name):
    """An objective of rows with gaps, and its start."""
    X, y, _ = rows(name)
    objective = Objective.from_estimator(MODELS[name], X, y)
    return objective, objective.evaluate(objective.start)


@pytest.mark.parametrize("name", FULL)
def test_expected_statistics_are_the_gradient_of_the_conditional_likelihood_of_what_there_is(name):
    """Fisher's identity, by differences in random directions of η."""
    objective, point = prepared(name)
    family, rng, y = objective.family, np.random.default_rng(1), np.arange(len(objective.y))

    def value(natural):
        joint = family.log_joint(objective.X, family.from_natural(natural))
        return (joint[y, objective.y] - np.logaddexp.reduce(joint, axis=1)).sum()

    def direction(part):
        move = rng.standard_normal(part.shape)
        square = move.ndim > 1 and move.shape[-1] == move.shape[-2] and move.ndim + (name in ("LDA", "product")) > 2
        return move + np.swapaxes(move, -1, -2) if square else move

    def directions(part):
        return part.map(directions) if hasattr(part, "map") else direction(part)

    for _ in range(3):
        d = directions(point.natural)
        slope = (value(point.natural + 1e-5 * d) - value(point.natural + -1e-5 * d)) / 2e-5
        assert_allclose(point.gradient.dot(d), slope, rtol=1e-4, atol=1e-4)


TARGETS = [("pooled", 3.0), ("generative", 0.3), ("grand", 3.0), ("pooled", 0.0)]
# every model with one target, and every target with one model of each family; other pairs are slow
FIRST = "QDA", "TAN", "product"


def pairs(names, targets):
    every = [(name, target) for name in names for target in targets]
    slow = [name not in FIRST and target != targets[0] for name, target in every]
    return pytest.mark.parametrize(
        ("name", "target"), [pytest.param(*case, marks=[pytest.mark.slow] * late) for case, late in zip(every, slow)]
    )


@pairs(MODELS, TARGETS)
def test_steps_of_rows_with_gaps_stay_valid_and_never_fall(name, target):
    X, y, _ = rows(name)
    weight = target[1] if name in WITH_TARGETS else 0.0
    objective = Objective.from_estimator(MODELS[name], X, y, target=target[0], target_weight=weight)
    values = []

    class Watched(Converged):
        def measure(self, point):
            values.append(point.value)
            return {}

    climb(objective, Safe(), Watched(1e-9), max_iter=8)
    assert len(values) > 3 and (np.diff(values) > -1e-9 * np.abs(values[:-1])).all() and values[-1] > values[0]


@pairs(WITH_TARGETS, TARGETS[:3])
def test_calibration_of_rows_with_gaps_converges_and_predicts_them(name, target):
    X, y, _ = rows(name)
    model = RiskCalibration(MODELS[name], target=target[0], target_weight=target[1], tol=1e-4).fit(X, y)
    assert model.converged_
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    nothing = np.full_like(X[:1], np.nan)
    assert_allclose(model.predict_proba(nothing)[0], np.exp(model.class_log_prior_), rtol=1e-6)
