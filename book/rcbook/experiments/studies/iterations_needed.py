"""How many iterations, how much time and memory the learners of conditional likelihood need (chapter 7).

An iteration is an update; a rejected trial of the safe step or of a line search costs a pass over the data more, which
the time shows. "Within" means a training log-loss at most 1e-3 above the infimum, which L-BFGS or safe RC reaches if
given thousands of iterations; it is 0 where the classes are separable. With the pooled target, which makes those well
posed too, it means: from there on within 1e-3 of the log-loss at the regularised optimum. scikit-learn's logistic
regression without penalty gets the quadratic features (QDA) or the indicators (naive Bayes) that make it the same
model, and the least ``max_iter`` that is within; making the features counts for its time and memory. Time is that of
the processor, on one thread; memory is the peak of what a fit allocates. Where the time goes: ``passes`` over the data
of a fit of ours, and ``features_seconds`` for making the features of scikit-learn's.

"""

import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler

from rcbook import datasets
from rcbook.experiments.cells import Cell, Row, Study
from rcbook.projected_descent import ProjectedGradientDescent
from rcpkg import (
    QDA,
    TM,
    CategoricalNB,
    ConditionalLikelihood,
    RiskCalibration,
)
from rcpkg.calibration import Safe

WITHIN = 1e-3
NAMES = ("simulated", "diabetes", "magic", "satellite", "letter")
TARGET = {"target": "pooled", "target_weight": 3.0}
SAFE = {"stopping": "none", "step": "safe"}
LARGEST_HESSIAN = 3000  # coefficients of newton-cholesky, whose square it keeps


def simulated() -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian classes, so that QDA is well specified."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(1000) % 3)
    scale = np.array([1.0, 1.6, 0.7])[y, None]
    return scale * rng.standard_normal((1000, 5)) + 0.7 * np.eye(3, 5)[y], y


def problem(name: str, kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Model, rows and classes: standardised features, or five states a feature."""
    if name == "simulated":
        X, y = simulated()
    else:
        bunch = datasets.load(name)
        X, y = np.asarray(bunch.data, float), np.unique(np.asarray(bunch.target), return_inverse=True)[1]
    X = StandardScaler().fit_transform(X)
    if kind == "QDA":
        return QDA(), X, y
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="kmeans", random_state=0, subsample=None)
    return CategoricalNB(prior_strength=1.0), bins.fit_transform(X), y


def learners(model: Any, large: bool, penalty: dict[str, Any]) -> dict[str, tuple[Callable[[int], Any], int]]:
    """Makers of the learners of this package, from a number of iterations, and the most they get."""
    most = 100 if large else 300
    safe = SAFE | {"step": Safe(1.0)} | penalty
    found: dict[str, tuple[Callable[[int], Any], int]] = {
        "RC, lr = 0.1": (
            lambda k: RiskCalibration.as_published(model, max_iter=k, stopping="none", **penalty),
            2 * most,
        ),
        "safe RC": (lambda k: RiskCalibration.as_published(model, max_iter=k, **safe), most),
        "L-BFGS": (
            lambda k: ConditionalLikelihood(model, solver="lbfgs", max_iter=k, tol=1e-6, **penalty),
            most,
        ),
    }
    if not penalty:
        found["TM"] = (lambda k: TM(model, max_iter=k), most)
        found["gradient descent, lr = 0.1"] = (lambda k: ProjectedGradientDescent(model, max_iter=k), most)
    return found


def references(model: Any, r: int, d: int, large: bool) -> dict[str, tuple[Callable[[int], Any], int]]:
    """The same for scikit-learn."""
    if isinstance(model, QDA):
        features = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(copy=False))
        width = d * (d + 3) // 2
    else:
        features, width = OneHotEncoder(drop="first"), 4 * d

    def maker(solver: str) -> Callable[[int], Any]:
        return lambda k: make_pipeline(features, LogisticRegression(C=np.inf, solver=solver, max_iter=k, tol=1e-12))

    found = {"scikit-learn lbfgs": (maker("lbfgs"), 150 if large else 500)}
    if r * width <= LARGEST_HESSIAN:
        found["scikit-learn newton-cholesky"] = (maker("newton-cholesky"), 50)
    return found


def log_loss(fit: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Mean of −log p(y_i | x_i)."""
    with np.errstate(divide="ignore"):  # scikit-learn takes the logarithm of probabilities that may be zero
        return float(-np.mean(fit.predict_log_proba(X)[np.arange(len(y)), y]))


def least(within: Callable[[int], bool], most: int) -> int | None:
    """The least k ≤ ``most`` that is within, by doubling and halving; None if ``most`` is not."""
    high = 1
    while not within(high):
        if high == most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def cost(learner: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Seconds of processor time (the least of three fits, one if it takes long) and peak memory in megabytes."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and sum(seconds) < 10):
        start = time.process_time()
        learner.fit(X, y)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    learner.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return min(seconds), peak


def passes(learner: Any, X: np.ndarray, y: np.ndarray) -> int:
    """Passes over the data of one fit: rejected trials are passes too."""

    counted = 0

    class CountedFamily(type(learner.estimator._new_family())):
        def weighted_statistics(self, *arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            return super().weighted_statistics(*arguments)

    class Counted(type(learner.estimator), family=CountedFamily):
        pass

    learner.set_params(estimator=Counted(**learner.estimator.get_params())).fit(X, y)
    return counted


def features_seconds(learner: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of processor time for all steps but the last, the least of three."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        learner[:-1].fit_transform(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def penalised(fit: Any, X: np.ndarray, y: np.ndarray) -> float:
    """CLL + b [⟨s̄, η⟩ − m̄ψ(η)] of a fit with `TARGET`, where ψ(η) = 0."""
    model = clone(fit.estimator).fit(X, y)
    parameters, size = model.family_.pooled_parameters(model.statistics_)
    natural = fit.estimator_.family_.natural_parameters(fit.estimator_.parameters_)
    return TARGET["target_weight"] * size * model.family_.mean_parameters(parameters).dot(natural) - len(y) * log_loss(
        fit, X, y
    )


def needed_iterations(losses: np.ndarray, infimum: float, both_sides: bool) -> int | None:
    """The first iteration within 1e-3 of the infimum; or that from which on all are, on either side."""
    if not both_sides:
        reached = losses - infimum <= WITHIN
        return int(np.argmax(reached)) if reached.any() else None
    beyond = np.flatnonzero(np.abs(losses - infimum) > WITHIN)
    first = beyond[-1] + 1 if beyond.size else 0
    return int(first) if first < len(losses) else None


def compare(name: str, kind: str, target: str) -> pd.DataFrame:
    """One row a learner: iterations, seconds and megabytes to be within 1e-3 of the infimum of the log-loss, or of the
    log-loss at the regularised optimum."""
    penalty = TARGET if target != "none" else {}
    model, X, y = problem(name, kind)
    (n, d), r = X.shape, int(y.max()) + 1
    large = n * r * d > 5 * 10**6
    best = ConditionalLikelihood(model, max_iter=300 if large else 1500, tol=1e-6, **penalty).fit(X, y)
    safe = RiskCalibration.as_published(model, max_iter=150 if large else 600, **SAFE, **penalty).fit(X, y)
    if penalty:
        highest = max((best, safe), key=lambda fit: penalised(fit, X, y))
        infimum = float(highest.history_.log_loss.iloc[-1])
    else:
        infimum = 0.0 if best.separable_ else min(best.history_.log_loss.min(), safe.history_.log_loss.min())
    rows = []

    def add(title: str, maker: Callable[[int], Any], most: int, needed: int | None, final: float) -> None:
        learner = maker(needed or min(most, 20))
        seconds, megabytes = cost(learner, X, y)
        where = {"passes": passes(learner, X, y)} if title == "safe RC" and needed else {}
        if title.startswith("scikit-learn"):
            where = {"features_seconds": features_seconds(learner, X, y)}
        if needed is None:
            seconds = np.nan
        rows.append(
            {"dataset": name, "model": kind, "target": target, "n": n, "d": d, "r": r}
            | {"separable": best.separable_, "infimum": infimum}
            | {"learner": title, "iterations": needed, "most": most, "gap": final - infimum}
            | {"seconds": seconds, "megabytes": megabytes, "passes": None, "features_seconds": None}
            | where
        )

    for title, (maker, most) in learners(model, large, penalty).items():
        losses = maker(most).fit(X, y).history_.log_loss.to_numpy()
        needed = needed_iterations(losses, infimum, bool(penalty))
        nearest = losses[np.abs(losses - infimum).argmin()]
        add(title, maker, most, needed, losses[needed] if needed is not None else nearest)
    for title, (maker, most) in ({} if penalty else references(model, r, d, large)).items():
        needed = least(lambda k: log_loss(maker(k).fit(X, y), X, y) - infimum <= WITHIN, most)  # noqa: B023 (called at once)
        add(title, maker, most, needed, log_loss(maker(needed or most).fit(X, y), X, y))
    return pd.DataFrame(rows).astype({"iterations": "Int64", "passes": "Int64"})


def measure(cell: Cell, seed: int) -> list[Row]:
    """A row a learner."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return compare(cell.row, cell.method, cell.setting_value).astype(object).to_dict("records")


Study(
    "iterations-needed",
    rows=NAMES,
    methods=("QDA", "NB"),
    settings=("none", "pooled"),
    protocol=measure,
    metered=("seconds", "megabytes", "features_seconds"),
    tolerance=1e-5,
)
