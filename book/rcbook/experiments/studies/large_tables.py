"""How long the recommended fits take on large tables, beside scikit-learn's logistic regression
(chapter 9).

Fixed before anything was measured:

- *At one weight* (``large-one-weight``): `RiskCalibration` with its default settings on all of covertype
  (`QDA`, ten standardised numbers), connect-4 and census-income (`CategoricalNB` with one pseudo-row), beside each
  solver of scikit-learn's `LogisticRegression` with its default C = 1 and ``max_iter=1000`` on the features in which
  the scores of the model are linear, standardised quadratic ones or indicators. Each tenth row, from the first on, is
  left out; its log-loss is reported. Making the features is part of the time. A solver gets as much as three times our
  time, and at least 20 seconds; what has not ended by then has no log-loss and that time as a lower bound. Each solver
  is run once, ours before and after all of them: its time is the mean of the two. ``ahead`` is by how much its log-loss
  is less than ours, in the mean over the rows left out, with its standard error: these two were added later. So was,
  for naive Bayes, a target in which all states of a feature are equally frequent (a prior of 10⁸ pseudo-rows), at the
  weight of 1 to 1,000 in quarter decades that has the least log-loss in five folds of the training rows, drawn with
  seed 0. (A first choice, of half decades on one tenth of the training rows, took 100 on census-income.) Its time is
  that of the fit at this weight. And so was lbfgs with a tolerance of 10⁻⁸, which ends at the optimum, without a limit.
- *The choice of the weight* (``large-choice``): `RiskCalibrationCV` with its default settings, nine
  weights, beside `LogisticRegressionCV` with lbfgs, ten values of C, five folds and log-loss as its score, on the first
  30,000 rows of the same sets in a random order of seed 0; 20,000 others give the log-loss. Theirs gets three times
  our time, and at least 60 seconds. Naive Bayes was chosen once more after the log-losses were known, with five folds
  and a target in which all states of a feature are equally frequent (a prior of 10⁶ pseudo-rows).
- *Linear in rows* (``large-scaling``): rows drawn from three Gaussian classes in ten dimensions, and
  their quintiles, 10⁴ to 10⁷ in powers of √10 (naive Bayes) and to 10⁶·⁵ (QDA); seconds of the fit, its updates, and
  the exponent between neighbouring sizes. The optimum is known: the log-loss of the fit on 10⁵ new rows is to fall to
  that of the classes drawn from (QDA).
- Time is that of the processor, on one thread.

"""

import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import make_pipeline

from rcbook.experiments.cells import Cell, Grid, Row, Study
from rcbook.experiments.studies import honest_comparison as honest
from rcbook.experiments.studies.race_to_the_optimum import features, problem
from rcpkg import QDA, CategoricalNB, RiskCalibration, RiskCalibrationCV

CASES = [("connect-4", "NB"), ("census-income", "NB"), ("covertype", "QDA")]
SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
MOST_ITERATIONS, LEAST_LIMIT, LEAST_LIMIT_OF_CHOICE, TIMES_OURS = 1000, 20.0, 60.0, 3.0
EQUAL_STATES, WEIGHTS, FOLDS = 1e8, [round(10 ** (k / 4), 3) for k in range(13)], 5
CHOSEN_FROM, CHOSEN_TESTED = 30_000, 20_000
CLASSES, DIMENSIONS, TESTED = 3, 10, 100_000
SIZES = {"NB": [round(10 ** (k / 2)) for k in range(8, 15)], "QDA": [round(10 ** (k / 2)) for k in range(8, 14)]}


def seconds_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Time of the processor, and what the run gives."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def within(limit: float, run: Callable[[], Any]) -> tuple[float, Any]:
    """The same, in a process of its own, or the limit and None where the processor needs more."""
    if not np.isfinite(limit):
        return seconds_of(run)
    context = multiprocessing.get_context("fork")  # what runs is no function of a module
    here, there = context.Pipe(duplex=False)

    def child() -> None:
        signal.setitimer(signal.ITIMER_PROF, limit)  # whose signal ends the process, also within a solver's loop
        there.send(seconds_of(run))

    process = context.Process(target=child)
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return limit, None
    finally:
        process.join()


def losses(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """−log p(y | x) of rows that were left out, a probability being at least the rounding unit; NaN without a model."""
    if model is None:
        return np.full(len(y), np.nan)
    P = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -np.log(np.maximum(P, np.finfo(float).eps))


def score(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Their mean."""
    return float(losses(model, X, y).mean())


def logistic(kind: str, **settings: Any) -> Any:
    """Logistic regression on the features in which the scores of the model are linear."""
    return make_pipeline(features(kind, kind == "NB"), LogisticRegression(max_iter=MOST_ITERATIONS, **settings))


def equal_states(X: np.ndarray, y: np.ndarray) -> RiskCalibration:
    """Unfitted, at the weight that is best in five folds."""
    model, fold = CategoricalNB(prior_strength=EQUAL_STATES), np.random.default_rng(0).permutation(len(y)) % FOLDS
    candidates = [RiskCalibration(model, target_weight=b) for b in WEIGHTS]
    found = [
        [
            losses(clone(candidate).fit(X[fold != f], y[fold != f]), X[fold == f], y[fold == f]).sum()
            for f in range(FOLDS)
        ]
        for candidate in candidates
    ]
    return candidates[int(np.argmin(np.sum(found, axis=1)))]


def at_one_weight(name: str, kind: str) -> list[dict[str, Any]]:
    """A row a learner."""
    model, X, y = problem(name, kind)
    test = np.arange(len(y)) % 10 == 0
    X_test, y_test, X, y = X[test], y[test], X[~test], y[~test]
    seconds, ours = seconds_of(lambda: RiskCalibration(model).fit(X, y))
    own = losses(ours, X_test, y_test)

    def judged(learner: str, spent: float, fitted: Any, weight: float = np.nan) -> dict[str, Any]:
        theirs = losses(fitted, X_test, y_test)
        ahead = own - theirs
        judgement = {"log_loss": theirs.mean(), "ahead": ahead.mean(), "std_error": ahead.std() / np.sqrt(len(ahead))}
        named = {"learner": learner, "ended": fitted is not None, "seconds": spent}
        return named | judgement | {"weight": weight}

    rows = [judged("RiskCalibration", seconds, ours), judged("closed form", *seconds_of(lambda: model.fit(X, y)))]
    if kind == "NB":
        unfitted = equal_states(X, y)
        of_equal = seconds_of(lambda: unfitted.fit(X, y))
        rows.append(judged("RiskCalibration, equal states", *of_equal, weight=unfitted.target_weight))
    limit = max(LEAST_LIMIT, TIMES_OURS * seconds)
    for solver in SOLVERS:
        theirs = logistic(kind, solver=solver)
        rows.append(judged(solver, *within(limit, lambda: theirs.fit(X, y))))  # noqa: B023 (called at once)
    if kind == "NB":
        to_the_end = logistic(kind, solver="lbfgs", tol=1e-8).set_params(logisticregression__max_iter=100_000)
        rows.append(judged("lbfgs, to the optimum", *seconds_of(lambda: to_the_end.fit(X, y))))
    again, _ = seconds_of(lambda: RiskCalibration(model).fit(X, y))
    rows[0]["seconds"] = (seconds + again) / 2
    named = {"dataset": name, "model": kind, "n": len(y)}
    return [named | row | {"ratio": rows[0]["seconds"] / row["seconds"]} for row in rows]


def choice(name: str, kind: str) -> list[dict[str, Any]]:
    """A row a learner."""
    model, X, y = problem(name, kind)
    order = np.random.default_rng(0).permutation(len(y))[: CHOSEN_FROM + CHOSEN_TESTED]
    (X, X_test), (y, y_test) = (np.split(A[order], [CHOSEN_FROM]) for A in (X, y))
    theirs = LogisticRegressionCV(cv=5, scoring="neg_log_loss", max_iter=MOST_ITERATIONS, use_legacy_attributes=False)
    learners = {
        "RiskCalibrationCV": RiskCalibrationCV(model, **honest.WEIGHT_ALONE),
        "LogisticRegressionCV": make_pipeline(features(kind, kind == "NB"), theirs),
    }
    if kind == "NB":
        learners["RiskCalibrationCV, equal states"] = RiskCalibrationCV(
            CategoricalNB(prior_strength=1e6), **honest.WEIGHT_ALONE | {"cv": 5}
        )
    rows, limit = [], np.inf
    for learner, unfitted in learners.items():
        seconds, fitted = within(limit, lambda: unfitted.fit(X, y))  # noqa: B023 (called at once)
        limit = max(LEAST_LIMIT_OF_CHOICE, TIMES_OURS * seconds) if limit == np.inf else limit
        row = {"dataset": name, "model": kind, "n": len(y), "learner": learner, "seconds": seconds}
        rows.append(row | {"ended": fitted is not None, "log_loss": score(fitted, X_test, y_test)})
    return rows


def drawn(n: int, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of three Gaussian classes, or their quintiles; the classes; the log-posteriors that the classes have."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=0.5, size=(CLASSES, DIMENSIONS))
    factors = np.eye(DIMENSIONS) + 0.15 * rng.normal(size=(CLASSES, DIMENSIONS, DIMENSIONS))
    rng = np.random.default_rng([seed, n])
    y = rng.integers(CLASSES, size=n)
    X = rng.normal(size=(n, DIMENSIONS))
    for c in range(CLASSES):
        X[y == c] = X[y == c] @ factors[c].T + means[c]
    log_joint = np.empty((n, CLASSES))
    for c in range(CLASSES):
        Z = np.linalg.solve(factors[c], (X - means[c]).T)
        log_joint[:, c] = -0.5 * (Z**2).sum(axis=0) - np.linalg.slogdet(factors[c])[1]
    log_posterior = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    if kind == "NB":
        X = np.searchsorted([-0.84, -0.25, 0.25, 0.84], X.ravel()).reshape(X.shape).astype(float)
    return X, y, log_posterior


def scaling(n: int, kind: str) -> list[dict[str, Any]]:
    """One row."""
    X, y, _ = drawn(n, kind, 1)
    model = QDA() if kind == "QDA" else CategoricalNB(prior_strength=1.0)
    seconds, fitted = seconds_of(lambda: RiskCalibration(model).fit(X, y))
    X, y, log_posterior = drawn(TESTED, kind, 2)
    row = {"model": kind, "n": n, "seconds": seconds, "updates": fitted.n_iter_, "log_loss": score(fitted, X, y)}
    return [row | {"least": -log_posterior[np.arange(TESTED), y].mean() if kind == "QDA" else np.nan}]


def measure(cell: Cell, seed: int) -> list[Row]:
    """The rows of a set, or size, and model."""
    with warnings.catch_warnings(action="ignore"):
        if cell.table == "large-scaling":
            return scaling(int(cell.row), cell.method)
        return (at_one_weight if cell.table == "large-one-weight" else choice)(cell.row, cell.method)


KINDS = dict(CASES)
for table in ("large-one-weight", "large-choice"):
    # what a slow solver reaches in its time, and whether, depends on the machine
    Study(
        table,
        rows=KINDS,
        methods=lambda cell: [KINDS[cell.row]],
        protocol=measure,
        metered=("seconds", "ratio", "ended"),
        by_rounding=lambda cell, record: record.method.startswith(SOLVERS),
        tolerance=1e-5,
    )
Study(
    "large-scaling",
    *(Grid(rows=sizes, methods=(kind,), protocol=measure) for kind, sizes in SIZES.items()),
    metered=("seconds",),
    tolerance=1e-5,
)
