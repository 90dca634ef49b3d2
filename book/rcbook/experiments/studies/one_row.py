"""Time of one row and of a batch beside scikit-learn, and of Shapley values, as ratios of one run (chapter 13; ours).

500 training rows of 20 features and two classes; one row, the same with three values hidden, as a
pattern that the scorer has met and as one that it has not, and 10,000 rows. Each call
is timed by the processor in `ROUNDS` rounds of `CALLS` calls, in turns with scikit-learn's `GaussianNB` on the complete
row or rows, and the least time of each counts. Two runs before were by the clock, while other programs shared the
processor: with 10 calls in a turn, where the caches of the call before count, the scorers took with gaps .105 of that
time (naive Bayes) and .231 (QDA); with 100 calls .017 and .158, since the longer turns of the rival were interrupted.

Shapley values are of one row of 16 features, beside a prediction for all 2^16 sets of them.
"""

import time
import timeit
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB as SklearnNB

from rcbook.experiments.cells import Cell, Record, Study
from rcpkg import LDA, QDA, TAN, CategoricalNB, GaussianNB, KDependenceBayes, RiskCalibration
from rcpkg.base import Array
from rcpkg.explain import contributions
from rcpkg.families.scorer import Scorer

STUDY_NAME = "one-row"
ROUNDS, CALLS, BATCH = 30, 100, 10_000
MODELS = {
    "GaussianNB": GaussianNB(),
    "QDA": QDA(),
    "calibrated QDA": RiskCalibration(QDA()),
    "LDA": LDA(),
    "CategoricalNB": CategoricalNB(prior_strength=1.0),
    "TAN": TAN(),
}
RIVALS = {"scikit-learn GaussianNB": SklearnNB(), "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000)}


def rows(codes: bool, n: int = 500, d: int = 20) -> tuple[Array, Array]:
    """Rows of two classes; ``codes`` are four states."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    X[:, :5] += 0.5 * y[:, None]
    return np.digitize(X, [-0.7, 0.0, 0.7]).astype(float) if codes else X, y


def in_turns(*calls: Callable[[], object], number: int = CALLS, rounds: int = ROUNDS) -> list[float]:
    """The least seconds of each call."""
    timed = partial(timeit.timeit, timer=time.process_time, number=number)
    times = [[timed(call) / number for call in calls] for _ in range(rounds)]
    return np.min(times, axis=0).tolist()


def first_met(scorer: Scorer, row: Array) -> Array:
    """The posterior of a row with a pattern of missing values of which the scorer has kept nothing."""
    for part, _ in scorer._parts:
        if kept := getattr(part.marginals, "kept", None):
            kept.cache_clear()
    return scorer.predict_proba(row)


def timed(cell: Cell, seed: int) -> list[Record]:
    """Seconds, as multiples of those of scikit-learn's GaussianNB in the same turns."""
    name = cell.row
    X, y = rows(name in ("CategoricalNB", "TAN"))
    numbers, _ = rows(False)
    rival, model = SklearnNB().fit(numbers, y), (RIVALS | MODELS)[name].fit(X, y)
    row, hidden, one = X[0].copy(), X[0].copy(), numbers[:1]
    hidden[[3, 7, 11]] = np.nan
    batch, rows_of_rival = np.resize(X, (BATCH, 20)), np.resize(numbers, (BATCH, 20))
    calls = {"one row, predict_proba": lambda: model.predict_proba(row[None])}
    if name in MODELS:
        scorer = model.scorer()
        calls["one row, scorer"] = lambda: scorer.predict_proba(row)
        calls["one row with gaps, scorer"] = lambda: scorer.predict_proba(hidden)
        calls["one row with gaps of a new pattern, scorer"] = lambda: first_met(scorer, hidden)
        calls["one row with gaps, predict_proba"] = lambda: model.predict_proba(hidden[None])
    beside, *times = in_turns(lambda: rival.predict_proba(one), *calls.values())
    records = [Record(name, f"{call}, seconds over those of GaussianNB", t / beside) for call, t in zip(calls, times)]
    beside, of_batch = in_turns(
        lambda: rival.predict_proba(rows_of_rival), lambda: model.predict_proba(batch), number=1, rounds=10
    )
    return [*records, Record(name, "batch, seconds over those of GaussianNB", of_batch / beside)]


def shapley(cell: Cell, seed: int) -> list[Record]:
    """Seconds of a row's Shapley values of log odds, and of the marginals of all sets asked one by one."""
    X, y = rows(cell.row == "chain", d=16)
    chain = KDependenceBayes(structure=[[], *([j] for j in range(15))])
    families = {"GaussianNB": GaussianNB(), "QDA": QDA(), "chain": chain}
    model = families[cell.row].fit(X, y)
    every = np.where((np.arange(2**16)[:, None] >> np.arange(16)) % 2 == 1, X[:1], np.nan)
    fast, slow = in_turns(
        lambda: contributions(model, X[:1], "shapley", "log_odds"),
        lambda: model.predict_log_proba(every),
        number=1,
        rounds=3,
    )
    return [Record(cell.row, "Shapley values, seconds", fast), Record(cell.row, "all sets one by one, seconds", slow)]


Study(
    STUDY_NAME,
    rows=(*RIVALS, *MODELS),
    protocol=timed,
    metered=("seconds",),
    quick=lambda cell: cell.row == "GaussianNB",
)
Study(
    "time-of-reasons",
    rows=("GaussianNB", "chain", "QDA"),
    protocol=shapley,
    metered=("seconds",),
    quick=lambda cell: cell.row == "GaussianNB",
)
