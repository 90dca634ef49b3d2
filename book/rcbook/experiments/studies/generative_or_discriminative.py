"""Who needs fewer rows, a Gaussian model or logistic regression: two simulations of chapter 1.

`efficiency` has the ratio of their excess errors where the Gaussian model is right, which Efron (1975) gives for many
rows. `crossing` has learning curves of naive Bayes and logistic regression, as Ng and Jordan (2001) draw them, on
scikit-learn's bundled data and on two simulated problems, one of which is made as naive Bayes wants it.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcpkg.base import Array
from rcpkg.families import SharedVarianceGaussianNB

EFFICIENCY, CROSSING = "efficiency-of-logistic-regression", "generative-or-discriminative"
DISTANCES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
FEATURES, SAMPLES, RUNS, BATCH = 5, (100, 400, 1600), 2000, 200
RIDGE = 1e-6  # of the squared coefficients: makes a maximum where the classes are separable, else nothing
SIZES, SPLITS, TEST_ROWS = (12, 18, 30, 50, 80), 200, 70


def scores(X: Array, beta: Array) -> Array:
    return (X @ beta[..., None])[..., 0]


def logistic_regression(X: Array, y: Array, iterations: int = 40) -> Array:
    """Newton's method with halved steps for a stack of data sets: X is (runs, n, d), y (runs, n); returns (runs, d)."""

    def objective(beta: Array) -> Array:
        return np.sum(np.logaddexp(0, (1 - 2 * y) * scores(X, beta)), axis=1) + RIDGE / 2 * np.sum(beta**2, axis=1)

    beta = np.zeros((len(X), X.shape[2]))
    for _ in range(iterations):
        p = expit(scores(X, beta))
        gradient = scores(X.mT, y - p) - RIDGE * beta
        hessian = X.mT @ ((p * (1 - p))[..., None] * X) + RIDGE * np.eye(X.shape[2])
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        while np.any(worse := objective(beta + step) > objective(beta) + 1e-9):
            step[worse] /= 2
        beta += step
        if np.max(np.abs(step)) <= 1e-12 * np.max(np.abs(beta)):
            break
    return beta


def discriminant_analysis(X: Array, y: Array) -> Array:
    """Coefficients of the Gaussian model with one covariance; the first column of each X is constant."""
    x, Y = X[..., 1:], np.stack([1 - y, y], axis=1)
    count = Y.sum(axis=2)
    mean = Y @ x / count[..., None]
    deviation = x - np.take_along_axis(mean, y[..., None].astype(int), axis=1)
    covariance = deviation.mT @ deviation / x.shape[1]
    slope = np.linalg.solve(covariance, (mean[:, 1] - mean[:, 0])[..., None])[..., 0]
    intercept = np.log(count[:, 1] / count[:, 0]) - np.vecdot(slope, mean.mean(axis=1))
    return np.column_stack([intercept, slope])


def excess_error(beta: Array, distance: float) -> Array:
    """Error of each linear rule beyond the Bayes error, where the means are at -+ distance / 2 of the first axis."""
    length, shift = np.linalg.norm(beta[:, 1:], axis=1), beta[:, 1] * distance / 2
    error = (norm.cdf((beta[:, 0] - shift) / length) + norm.cdf((-beta[:, 0] - shift) / length)) / 2
    return error - norm.cdf(-distance / 2)


def efficiency(cell: Cell, seed: int) -> list[Record]:
    """Mean excess errors and their ratio, with the standard deviation of its linearisation.

    Records also the share of runs whose logistic regression has no maximum, as it fits all rows perfectly.
    """
    distance, rng = float(cell.row), np.random.default_rng(seed)
    shape = (BATCH, int(cell.setting_value))
    runs = []
    for _ in range(max(1, cell.arguments["repetitions"] // BATCH)):
        y = rng.integers(0, 2, shape)
        X = np.concatenate([np.ones((*shape, 1)), rng.normal(size=(*shape, FEATURES))], axis=2)
        X[..., 1] += (y - 0.5) * distance
        logistic = logistic_regression(X, y)
        separated = np.all((2 * y - 1) * scores(X, logistic) > 0, axis=1)
        gaussian = excess_error(discriminant_analysis(X, y), distance)
        runs.append(np.column_stack([gaussian, excess_error(logistic, distance), separated]))
    gaussian, logistic, separated = np.concatenate(runs).T
    ratio = gaussian.mean() / logistic.mean()
    return [
        mean_record("discriminant analysis", "excess_error", gaussian),
        mean_record("logistic regression", "excess_error", logistic),
        mean_record("ratio", "efficiency", ratio + (gaussian - ratio * logistic) / logistic.mean()),
        mean_record("logistic regression", "separated", separated),
    ]


def simulated(correlation: float) -> Callable[[np.random.Generator], tuple[Array, Array]]:
    """Two Gaussian classes in ten dimensions, features of equal variance and correlation."""

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        y = np.repeat([0, 1], 200)
        X = rng.normal(size=(400, 10)) * np.sqrt(1 - correlation) + np.sqrt(correlation) * rng.normal(size=(400, 1))
        return X + np.outer(y - 0.5, np.linspace(0, 1.2, 10)), y

    return draw


def bundled(load: Callable) -> Callable[[np.random.Generator], tuple[Array, Array]]:
    return lambda rng: load(return_X_y=True)


PROBLEMS = {
    "independent features": simulated(0.0),
    "correlated features": simulated(0.7),
    "iris": bundled(load_iris),
    "wine": bundled(load_wine),
    "breast cancer": bundled(load_breast_cancer),
}
CLASSIFIERS = {
    "naive Bayes": SharedVarianceGaussianNB(rows_per_feature=0.0),
    "logistic regression": LogisticRegression(C=np.inf, max_iter=10_000),
    "penalised logistic regression": LogisticRegression(max_iter=10_000),
}


def crossing(cell: Cell, seed: int) -> list[Record]:
    """Mean test errors in percent, and what each logistic regression has more than naive Bayes on the same splits."""
    rng = np.random.default_rng(seed)
    X, y = PROBLEMS[cell.row](rng)
    number, size = cell.arguments["repetitions"], int(cell.setting_value)
    splits = StratifiedShuffleSplit(number, train_size=size, test_size=TEST_ROWS, random_state=seed % 2**32)
    errors = []
    for train, test in splits.split(X, y):
        models = {name: make_pipeline(StandardScaler(), model) for name, model in CLASSIFIERS.items()}
        errors.append({n: 100 * (1 - m.fit(X[train], y[train]).score(X[test], y[test])) for n, m in models.items()})
    table = pd.DataFrame(errors)
    for name in list(CLASSIFIERS)[1:]:
        table[f"{name} - naive Bayes"] = table[name] - table["naive Bayes"]
    return [mean_record(name, "test_error_percent", column) for name, column in table.items()]


Study(
    EFFICIENCY,
    rows=DISTANCES,
    settings=SAMPLES,
    protocol=efficiency,
    arguments={"repetitions": RUNS},
    quick=lambda cell: cell.setting_value == str(SAMPLES[0]),
)
Study(
    CROSSING,
    rows=PROBLEMS,
    settings=SIZES,
    protocol=crossing,
    arguments={"repetitions": SPLITS},
    stream=lambda cell: cell.row,  # the rows of a problem share its splits' seed
    quick=lambda cell: cell.row == "iris",
)


tidy = partial(readings.tidy, row="problem", setting_value="n")  # of one of the two
