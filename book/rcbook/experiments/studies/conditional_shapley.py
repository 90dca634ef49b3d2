"""Shapley values given the joint law of the features, where the true ones are known (page *Exact answers*; ours).

Olsen and Christensen (2026) let a tabular foundation model approximate conditional Shapley values, those of
v(S) = E[f(x) | x_S], by one regression of f on x_S for each set S, and compare the errors and the time on simulated
Gaussian features, whose true values are known. Of the paper the abstract, the first page and two summaries could be
read, not its tables. The simulations are those of the code of the first author's earlier comparison (Olsen, Glad,
Jullum and Aas, 2024), in the repository of shapr (inst/simtest): `FEATURES` Gaussian features with mean zero and
covariances ρ^|j−k|, 1,000 rows for training, 250 rows that are explained, the coefficients `FIRST` and `SECOND`, the
functions

- linear: β_0 + Σ_j β_j x_j; with interactions: and γ_1 x_1 x_2 + γ_2 x_3 x_4;
- cosines: β_0 + Σ_j β_j cos x_j; with interactions: and γ_1 (ab + ab² + a²b) of (x_1, x_2), γ_2 times the same of
  (x_3, x_4).

There a model that is fitted to noisy values of f is explained, and the truth is drawn, 2,500 times a set; here f itself
is explained, and the truth is a closed form: means of cosines and products of Gaussian features.

A fifth function is a posterior: f(x) = p(1 | x) of two classes of equal weight, N(0, Σ) and N(β/2, 1.5 Σ). Its
v(S) = p(1 | x_S) is a closed form too.

Ways, each told the training rows, and f on them:

- joint model: the closed form with the mean and covariance of the training rows in place of the true ones. Of the
  posterior: `contributions` of a `QDA` fitted to labels, not told f, so that it explains its own posterior;
- Monte Carlo: 250 draws of the hidden features from the Gaussian of the training rows, given those seen, as shapr's
  approach "gaussian" does;
- linear regression, boosting: a regression of f on x_S for each of the 2^8 sets, as the foundation model is used. Its
  weights are not at hand.

Measured: the mean absolute error of the Shapley values over features and rows, and seconds of the processor for all
that comes after the data, for 250 rows. A first run, with two drawings of the data and boosting of 50 rounds, was
stopped for its time before any of its errors were looked at; one drawing and 25 rounds with twice the rate are left.

Fixed before the first run, over the cells (functions and ρ):

1. For the four functions of the earlier comparison the joint model has the least error in at least 10 of 12 cells.
2. It takes at most a tenth of the time of Monte Carlo, and of boosting, in every cell.
3. For the posterior its error is below that of both regressions at every ρ.
"""

import time
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import beta, expit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcpkg import QDA
from rcpkg.base import Array
from rcpkg.explain import contributions

STUDY_NAME = "conditional-shapley"
FEATURES, TRAINING, EXPLAINED, DRAWS, REPETITIONS = 8, 1000, 250, 250, 1
FIRST = np.array([1.0, 0.2, -0.8, 1.0, 0.5, -0.8, 0.6, -0.7, -0.6])  # β_0 and β_j
SECOND = np.array([0.8, -1.0])  # γ
CORRELATIONS = (0.0, 0.5, 0.9)
LINEAR, INTERACTIONS, COSINES, BOTH = "linear", "linear, interactions", "cosines", "cosines, interactions"
POSTERIOR = "posterior"
FUNCTIONS = (LINEAR, INTERACTIONS, COSINES, BOTH, POSTERIOR)
JOINT, MONTE_CARLO, REGRESSION, BOOSTING = "joint model", "Monte Carlo", "linear regression", "boosting"
WAYS = (JOINT, MONTE_CARLO, REGRESSION, BOOSTING)
SETS = (np.arange(2**FEATURES)[:, None] >> np.arange(FEATURES)) % 2 == 1


def shapley_values(values: Array) -> Array:
    """Σ_S ∋ j (|S| − 1)! (d − |S|)!/d! [v(S) − v(S without j)] for each feature j, from v of all `SETS`."""
    size = SETS.sum(axis=1, keepdims=True)
    share = np.where(SETS, beta(size, FEATURES + 1 - size), -beta(size + 1, FEATURES - size))
    return np.tensordot(share, values, (0, 0))


def covariance(rho: float) -> Array:
    """Σ, with the entries ρ^|j−k|."""
    places = np.arange(FEATURES)
    return rho ** np.abs(places[:, None] - places)


def classes(rho: float) -> list[tuple[Array, Array]]:
    """Mean and covariance of both classes of the posterior."""
    return [(np.zeros(FEATURES), covariance(rho)), (FIRST[1:] / 2, 1.5 * covariance(rho))]


def given(seen: Array, X: Array, mean: Array, cov: Array) -> tuple[Array, Array]:
    """Means (n, d) and covariance (d, d) of the features given those seen, whose deviations are zero."""
    means, left, hidden = X.copy(), np.zeros_like(cov), ~seen
    slopes = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, hidden)])
    means[:, hidden] = mean[hidden] + (X[:, seen] - mean[seen]) @ slopes
    left[np.ix_(hidden, hidden)] = cov[np.ix_(hidden, hidden)] - cov[np.ix_(hidden, seen)] @ slopes
    return means, left


def mean_value(function: str, m: Array, V: Array) -> Array:
    """E[f(x)] of Gaussian features with means m (n, d) and one covariance V; f itself where V is zero."""
    v, cosines = np.diag(V), function in (COSINES, BOTH)
    value = FIRST[0] + (np.cos(m) * np.exp(-v / 2) if cosines else m) @ FIRST[1:]
    if function in (INTERACTIONS, BOTH):
        for gamma, (a, b) in zip(SECOND, ((0, 1), (2, 3))):
            value = value + gamma * (m[:, a] * m[:, b] + V[a, b])
            for j, k in ((a, b), (b, a)) if cosines else ():
                value = value + gamma * (m[:, j] * (m[:, k] ** 2 + v[k]) + 2 * m[:, k] * V[a, b])
    return value


def posterior(seen: Array, X: Array, rho: float) -> Array:
    """p(1 | x_S)."""
    log_p = []
    for mean, cov in classes(rho):
        deviations, block = X[:, seen] - mean[seen], cov[np.ix_(seen, seen)]
        squares = np.einsum("nj,nj->n", deviations @ np.linalg.inv(block), deviations)
        log_p.append(-0.5 * (squares + np.linalg.slogdet(block)[1]))
    return expit(log_p[1] - log_p[0])


def drawn(function: str, rho: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows and labels, which only the posterior has use for."""
    y = rng.integers(2, size=n) if function == POSTERIOR else np.zeros(n, dtype=int)
    parts = np.stack([rng.multivariate_normal(mean, cov, size=n) for mean, cov in classes(rho)])
    return parts[y, np.arange(n)], y


def value_at(function: str, rho: float, X: Array) -> Array:
    """f(x)."""
    if function == POSTERIOR:
        return posterior(np.ones(FEATURES, dtype=bool), X, rho)
    return mean_value(function, X, np.zeros((FEATURES, FEATURES)))


def truth(function: str, rho: float, X: Array) -> Array:
    """The Shapley values (n, d)."""
    if function == POSTERIOR:
        return shapley_values(np.stack([posterior(seen, X, rho) for seen in SETS])).T
    of_set = partial(given, X=X, mean=np.zeros(FEATURES), cov=covariance(rho))
    return shapley_values(np.stack([mean_value(function, *of_set(seen)) for seen in SETS])).T


def estimated(way: str, function: str, rho: float, train: Array, y: Array, X: Array, rng: np.random.Generator) -> Array:
    """The Shapley values (n, d) of rows X by one of the ways."""
    if way == JOINT and function == POSTERIOR:
        return contributions(QDA().fit(train, y), X, "shapley", "proba")[1].to_numpy().reshape(X.shape)
    f = partial(value_at, function, rho)
    of_set = partial(given, X=X, mean=train.mean(axis=0), cov=np.cov(train.T, bias=True))

    def closed_form(seen: Array) -> Array:
        return mean_value(function, *of_set(seen))

    def monte_carlo(seen: Array) -> Array:
        means, left = of_set(seen)
        root = np.linalg.cholesky(left[np.ix_(~seen, ~seen)])
        rows = np.repeat(means[:, None], DRAWS, axis=1)
        rows[..., ~seen] += rng.standard_normal((*rows.shape[:2], len(root))) @ root.T
        return f(rows.reshape(-1, FEATURES)).reshape(len(X), DRAWS).mean(axis=1)

    def regression(seen: Array) -> Array:
        if not seen.any():
            return np.full(len(X), told.mean())
        boosting = HistGradientBoostingRegressor(max_iter=25, learning_rate=0.2)
        kind = LinearRegression() if way == REGRESSION else boosting
        return kind.fit(train[:, seen], told).predict(X[:, seen])

    told = f(train)
    values = {JOINT: closed_form, MONTE_CARLO: monte_carlo}.get(way, regression)
    return shapley_values(np.stack([f(X) if seen.all() else values(seen) for seen in SETS])).T


def compared(cell: Cell, seed: int) -> list[Record]:
    """Mean absolute error and seconds of one way."""
    function, rho, errors, seconds = cell.row, float(cell.setting_value), [], []
    for run in np.random.SeedSequence(seed).spawn(cell.arguments["repetitions"]):
        rng = np.random.default_rng(run)
        (train, y), (X, _) = drawn(function, rho, TRAINING, rng), drawn(function, rho, EXPLAINED, rng)
        right, start = truth(function, rho, X), time.process_time()
        found = estimated(cell.method, function, rho, train, y, X, rng)
        seconds.append(time.process_time() - start)
        errors.append(float(np.abs(found - right).mean()))
    return [mean_record(cell.method, "error", errors), mean_record(cell.method, "seconds", seconds)]


Study(
    STUDY_NAME,
    rows=FUNCTIONS,
    methods=WAYS,
    settings=[str(rho) for rho in CORRELATIONS],
    protocol=compared,
    arguments={"repetitions": REPETITIONS},
    stream=lambda cell: f"{cell.row}/{cell.setting_value}",
    metered=("seconds",),
    quick=lambda cell: cell.method in (JOINT, REGRESSION) and cell.setting_value == "0.5",
)

tidy = partial(readings.tidy, STUDY_NAME, row="function", method="way", setting_value="rho", metric="(?P<score>.+)")


def table(score: str) -> pd.DataFrame:
    """A row a function and ρ, a column a way."""
    stored = tidy()
    chosen = stored[stored["score"] == score].astype({"rho": float})
    found = chosen.pivot(index=["function", "rho"], columns="way", values="value")
    return found[[*WAYS]].reindex(FUNCTIONS, level="function").rename_axis(columns=None)


def verdicts() -> pd.Series:
    """Whether each hypothesis holds, and by how much."""
    error, seconds = table("error"), table("seconds")
    functions, rest = error.drop(POSTERIOR, level="function"), error.loc[POSTERIOR]
    least = int((functions.idxmin(axis=1) == JOINT).sum())
    slower = (seconds[[MONTE_CARLO, BOOSTING]].min(axis=1) / seconds[JOINT]).min()
    ahead = int((rest[JOINT] < rest[[REGRESSION, BOOSTING]].min(axis=1)).sum())
    return pd.Series(
        {
            f"1. least error in {least} of {len(functions)} cells": least >= 10,
            f"2. the others take at least {slower:.1f} times as long": slower >= 10,
            f"3. below both regressions at {ahead} of {len(rest)} correlations": ahead == len(rest),
        }
    )
