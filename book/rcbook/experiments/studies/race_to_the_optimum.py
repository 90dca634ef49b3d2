"""How long `ConditionalLikelihood` and scikit-learn's solvers take to the same optimum (chapter 9).

The objective is the mean log-loss of the training rows, plus ‖coefficients‖²/(2Cn) where there is a penalty ("l2",
C = 1). scikit-learn gets the features in which the scores of the model are linear: quadratic features (QDA) or
indicators (naive Bayes). The settings were fixed before anything was measured:

- Cases: the ten of `iterations_needed`; covertype, its ten numeric features as QDA and in five states a feature;
  connect-4; census-income; and, of our choice, adult (naive Bayes) and pendigits (QDA). Numeric features are
  standardised for QDA. "none" is without a penalty, on the sets whose rows the model does not separate.
- For "none" scikit-learn's quadratic features are standardised once more, and its indicators lack the first state of
  each feature, as is usual; with "l2", where it would change the objective, neither is done.
- Solvers: lbfgs, newton-cg, newton-cholesky, sag and saga, started at zero as they are, ``tol`` so small that they go
  on. Time counts from the raw features: making those of logistic regression is part of it. It ends at the first
  iterate within the relative gap (f − f*)/f* of 1e-3 or 1e-6, where f* is the least value that any solver finds, ours
  of ``tol=1e-8`` and 150 iterations included. An oracle stops them all; ours, but not scikit-learn's, is charged for
  what follows the last iterate, but for the choice among the joint models with these posteriors, for which regressions
  have no counterpart: its time is in a column of its own. sag and saga keep no account of their iterates: they are
  fitted anew with 1, 2, 3, 5, 8, … passes.
- Time is that of the processor, on one thread; the least of three runs where one takes less than half a second. A
  solver gets twice the time of our long fit, at least 1 and at most 20 seconds; what has not got there is empty.
- Memory is the peak of what the first two iterations allocate, features included, in megabytes.
- The ratio is our time over that of the fastest of the five. Where none gets there in its time, it is our time over
  that limit, an upper bound.

"""

import gzip
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import optimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, _logistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from rcbook import datasets
from rcbook.experiments.cells import Cell, Row, Study
from rcbook.experiments.studies.iterations_needed import problem as earlier_problem
from rcpkg import QDA, CategoricalNB, ConditionalLikelihood
from rcpkg.calibration import optimum, stops
from rcpkg.calibration.conditional import Conditional

GAPS = (1e-3, 1e-6)
SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
EARLIER = ("simulated", "diabetes", "magic", "satellite", "letter")
CASES = [(name, kind) for name in EARLIER for kind in ("QDA", "NB")]
CASES += [("adult", "NB"), ("pendigits", "QDA"), ("connect-4", "NB"), ("census-income", "NB")]
CASES += [("covertype", "QDA"), ("covertype", "NB")]
C = 1.0
SHORT = 0.5  # seconds
MOST = 150  # iterations of our long fit
LEAST_LIMIT, LARGEST_LIMIT, TIMES_OURS = 1.0, 20.0, 2.0
LARGEST_HESSIAN = 6000  # coefficients of newton-cholesky, whose square it keeps
EPOCHS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)
CENSUS_NUMERIC = (0, 5, 16, 17, 18, 30, 39)  # age, wage, gains, losses, dividends, employer's size, weeks worked
CENSUS_WEIGHT = 24  # how many people a row stands for, which is to be ignored
ADULT_NUMERIC = (0, 2, 4, 10, 11, 12)


def five_states(column: np.ndarray) -> np.ndarray:
    """States between the quintiles of a numeric column, fewer where these coincide."""
    return np.searchsorted(np.unique(np.quantile(column, [0.2, 0.4, 0.6, 0.8])), column, side="left")


def codes(column: pd.Series) -> np.ndarray:
    """Numbers of the values of a column."""
    return pd.factorize(column.astype(str), sort=True, use_na_sentinel=False)[0]


def states(table: pd.DataFrame, numeric: tuple[int, ...]) -> np.ndarray:
    """Codes of the columns: five states of the numeric ones, the values of the others, missing ones being a value."""
    columns = [
        five_states(np.asarray(column, float))
        if j in numeric
        else pd.factorize(column.astype(str), sort=True, use_na_sentinel=False)[0]
        for j, (_, column) in enumerate(table.items())
    ]
    return np.column_stack(columns).astype(float)


def raw(*parts: str) -> str:
    """Path of a file of the data sets that the registry does not list."""
    return str(Path(os.environ["RCPKG_DATA"]).joinpath(*parts))


def problem(name: str, kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Model, rows and classes."""
    if name in EARLIER:
        return earlier_problem(name, kind)
    if name == "covertype":
        with gzip.open(raw("covtype", "covtype.data.gz"), "rt") as file:
            table = pd.read_csv(file, header=None)
        X, target = table.iloc[:, :10].to_numpy(float), table.iloc[:, -1]
    elif name == "connect-4":
        table = pd.read_csv(raw("connect_4", "connect-4.tsv.gz"), sep="\t")
        X, target = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1]
    elif name == "census-income":
        files = [raw("census_income_kdd", f"census-income.{part}.gz") for part in ("data", "test")]
        table = pd.concat([pd.read_csv(f, header=None, skipinitialspace=True) for f in files], ignore_index=True)
        target = table.iloc[:, -1].astype(str).str.strip(" .")
        X = states(table.iloc[:, :-1], CENSUS_NUMERIC)
        X = np.delete(X, CENSUS_WEIGHT, axis=1)
    elif name == "adult":
        bunch = datasets.load(name, variant="wanbia2014")
        X, target = states(pd.DataFrame(bunch.data), ADULT_NUMERIC), bunch.target
    else:
        bunch = datasets.load(name)
        X, target = np.asarray(bunch.data, float), bunch.target
    y = np.unique(np.asarray(target), return_inverse=True)[1]
    if kind == "QDA":
        return QDA(), StandardScaler().fit_transform(X), y
    if name == "covertype":
        X = np.column_stack([five_states(column) for column in X.T]).astype(float)
    return CategoricalNB(prior_strength=1.0), X, y


def features(kind: str, penalised: bool) -> Any:
    """scikit-learn's transformer of the raw features."""
    if kind == "NB":
        return OneHotEncoder(handle_unknown="ignore") if penalised else OneHotEncoder(drop="first")
    quadratic = PolynomialFeatures(2, include_bias=False)
    return make_pipeline(quadratic) if penalised else make_pipeline(quadratic, StandardScaler(copy=False))


class TimeIsUp(Exception):
    """A solver has had its time."""


class Account:
    """Iterates of a solver and when it had them; ends it when its time is up."""

    def __init__(self, limit: float) -> None:
        self.limit, self.start = limit, time.process_time()
        self.iterates: list[tuple[float, np.ndarray]] = []

    def add(self, w: np.ndarray) -> None:
        """Enter an iterate."""
        seconds = time.process_time() - self.start
        self.iterates.append((seconds, np.array(w)))
        if seconds > self.limit:
            raise TimeIsUp


@contextmanager
def entered(account: Account) -> Iterator[None]:
    """scikit-learn's solvers enter their iterates into an account."""

    def minimise(function: Callable, w: np.ndarray, **keywords: Any) -> Any:
        return optimize.minimize(function, w, **keywords | {"callback": account.add})

    def newton_cg(grad_hess: Callable, *arguments: Any, **keywords: Any) -> Any:
        def at(w: np.ndarray, *rest: Any) -> Any:
            account.add(w)
            return grad_hess(w, *rest)

        return plain(at, *arguments, **keywords)

    class Cholesky(_logistic.NewtonCholeskySolver):
        def update_gradient_hessian(self, X: Any, y: Any, sample_weight: Any) -> None:
            account.add(self.coef)
            super().update_gradient_hessian(X, y, sample_weight)

        def fallback_lbfgs_solve(self, X: Any, y: Any, sample_weight: Any) -> None:
            raise TimeIsUp  # that is lbfgs, which has its own row

    plain = _logistic._newton_cg
    with (
        mock.patch.object(_logistic, "optimize", SimpleNamespace(minimize=minimise)),
        mock.patch.object(_logistic, "_newton_cg", newton_cg),
        mock.patch.object(_logistic, "NewtonCholeskySolver", Cholesky),
    ):
        yield


class Objective:
    """Mean log-loss, with the penalty, of coefficients on scikit-learn's features."""

    def __init__(self, Z: Any, y: np.ndarray, penalised: bool) -> None:
        self.Z, self.y, self.r = Z, y, int(y.max()) + 1
        self.weight = 1 / (2 * C * len(y)) if penalised else 0.0

    def __call__(self, w: np.ndarray) -> float:
        W = w.reshape(1, -1) if self.r == 2 else w.reshape((self.r, -1), order="F")
        scores = np.asarray(self.Z @ W[:, :-1].T) + W[:, -1]
        if self.r == 2:
            scores = np.hstack([np.zeros_like(scores), scores])
        loss = logsumexp(scores, axis=1) - scores[np.arange(len(self.y)), self.y]
        return float(loss.mean() + self.weight * np.sum(W[:, :-1] ** 2))


def logistic(solver: str, penalised: bool, iterations: int) -> LogisticRegression:
    """scikit-learn's learner."""
    return LogisticRegression(
        C=C if penalised else np.inf, solver=solver, max_iter=iterations, tol=1e-14, random_state=0
    )


def account_of(solver: str, kind: str, penalised: bool, X: np.ndarray, y: np.ndarray, limit: float) -> Account:
    """The iterates of a solver of scikit-learn, with the time for its features."""
    if not solver.startswith("sag"):
        account = Account(limit)
        with entered(account), suppress(TimeIsUp):
            make_pipeline(features(kind, penalised), logistic(solver, penalised, 10**5)).fit(X, y)
        return account
    account = Account(np.inf)
    for epochs in EPOCHS:
        start = time.process_time()
        fit = make_pipeline(features(kind, penalised), logistic(solver, penalised, epochs)).fit(X, y)
        seconds = time.process_time() - start
        last = fit[-1]
        account.iterates.append((seconds, np.hstack([last.coef_, last.intercept_[:, None]]).ravel(order="F")))
        if sum(seconds for seconds, _ in account.iterates) > limit:
            break
    return account


def first_within(times: list[float], value: Callable[[int], float], bound: float) -> tuple[float, int] | None:
    """Time and number of the first iterate of at most this value; that of the last decides whether there is one."""
    if not times or value(len(times) - 1) > bound:
        return None
    low, high = -1, len(times) - 1
    while high - low > 1:  # the solvers descend
        middle = (low + high) // 2
        low, high = (low, middle) if value(middle) <= bound else (middle, high)
    return times[high], high


def ours(learner: ConditionalLikelihood, X: np.ndarray, y: np.ndarray) -> tuple[list[float], list[float]]:
    """When a fit of ours has its iterates, what it does after the last included, and their values.

    The last time is that of the choice of the joint model, which is not among the others.
    """
    times, values, joint = [], [], [0.0]
    enter, choose = stops.Path.enter, optimum.most_probable

    def entered(path: stops.Path, point: Any, stop: stops.Stop) -> None:
        if isinstance(path.objective, Conditional):
            times.append(time.process_time() - start)
            values.append(point.evaluation.value)
        enter(path, point, stop)

    def chosen(*arguments: Any) -> Any:
        begun = time.process_time()
        parameters = choose(*arguments)
        joint[0] += time.process_time() - begun
        return parameters

    with mock.patch.object(stops.Path, "enter", entered), mock.patch.object(optimum, "most_probable", chosen):
        start = time.process_time()
        learner.fit(X, y)
    rest = time.process_time() - start - times[-1] - joint[0]
    return [*(seconds + rest for seconds in times), *joint], values


def megabytes(run: Callable[[], Any]) -> float:
    """Peak of what is allocated."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def quickest(runs: list[list[float]]) -> list[float]:
    """The least time of each iterate."""
    return [min(times) for times in zip(*runs)]


def accounts(kind: str, penalised: bool, X: np.ndarray, y: np.ndarray, width: int, limit: float) -> dict[str, Account]:
    """Those of all solvers that apply: the quickest of three where they take less than a second."""
    found = {}
    for solver in SOLVERS:
        if solver == "newton-cholesky" and (y.max() + 1) * width > LARGEST_HESSIAN:
            continue
        found[solver] = account_of(solver, kind, penalised, X, y, limit)
        if found[solver].iterates and sum(t for t, _ in found[solver].iterates[-1:]) < SHORT:
            again = [account_of(solver, kind, penalised, X, y, limit).iterates for _ in range(2)]
            times = quickest([[t for t, _ in iterates] for iterates in (found[solver].iterates, *again)])
            found[solver].iterates = [(t, w) for t, (_, w) in zip(times, found[solver].iterates)]
    return found


def compare(name: str, kind: str, penalised: bool) -> pd.DataFrame | None:
    """One row a solver, ours first; None where a penalty is lacking and the rows are separable."""
    model, X, y = problem(name, kind)
    settings = {"l2": 1 / C if penalised else 0.0}
    learner = ConditionalLikelihood(model, max_iter=MOST, tol=1e-8, **settings)
    times, values = ours(learner, X, y)
    if learner.separable_:
        return None
    if times[-2] < SHORT:
        times = quickest([times, *(ours(learner, X, y)[0] for _ in range(2))])
    *times, joint = times
    limit = float(np.clip(TIMES_OURS * times[-1], LEAST_LIMIT, LARGEST_LIMIT))
    Z = features(kind, penalised).fit_transform(X)
    objective = Objective(Z, y, penalised)
    solvers = accounts(kind, penalised, X, y, Z.shape[1], limit)
    last = {solver: objective(account.iterates[-1][1]) for solver, account in solvers.items()}
    least = min([*values, *last.values()])
    case = {"dataset": name, "model": kind, "penalty": "l2" if penalised else "none"}
    case |= {"n": len(y), "columns": Z.shape[1], "r": int(y.max()) + 1, "least": least, "limit": limit}
    rows = [case | {"solver": "ours", "final_gap": values[-1] / least - 1, "most": len(values) - 1}]
    short = ConditionalLikelihood(model, max_iter=2, **settings)
    rows[0] |= {"joint_seconds": joint, "megabytes": megabytes(lambda: short.fit(X, y))}
    for solver, account in solvers.items():
        rows.append(case | {"solver": solver, "final_gap": last[solver] / least - 1, "most": len(account.iterates)})
        theirs = make_pipeline(features(kind, penalised), logistic(solver, penalised, 2))
        rows[-1]["megabytes"] = megabytes(lambda: theirs.fit(X, y))  # noqa: B023 (called at once)
    for gap in GAPS:
        bound = least * (1 + gap)
        found = [first_within(times, values.__getitem__, bound)]
        for account in solvers.values():
            iterates = account.iterates
            found.append(first_within([t for t, _ in iterates], lambda k: objective(iterates[k][1]), bound))  # noqa: B023
        for row, reached in zip(rows, found):
            row[f"seconds_{gap:g}"], row[f"iterations_{gap:g}"] = reached or (np.nan, np.nan)
        fastest = min([f[0] for f in found[1:] if f is not None], default=limit)
        rows[0][f"ratio_{gap:g}"] = found[0][0] / fastest if found[0] is not None else np.inf
    return pd.DataFrame(rows)


def race(cell: Cell, seed: int) -> list[Row]:
    """The rows of a case; none where a penalty is lacking and the rows are separable."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        table = compare(cell.row, cell.method, cell.setting_value == "l2")
    return [] if table is None else table.to_dict("records")


MEASURED = ("seconds_0.001", "seconds_1e-06", "ratio_0.001", "ratio_1e-06", "joint_seconds", "megabytes", "limit")
SAME = {
    "methods": lambda cell: [kind for name, kind in CASES if name == cell.row],
    "settings": ("none", "l2"),
    "protocol": race,
    # how far a solver gets in its time depends on the machine
    "metered": (*MEASURED, "final_gap", "most", "iterations_0.001", "iterations_1e-06"),
    "tolerance": 1e-5,
}
Study("race-to-the-optimum", rows=dict.fromkeys(name for name, _ in CASES), **SAME)
