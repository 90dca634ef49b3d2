"""Table II of wanbia2014, and the numbers behind figures of chapter 8 in the place of its Figures 1 to 8.

All rules below were fixed before anything was run. Data: every set of Table I of which a file holds the printed rows,
at most `ROWS` of them, drawn at random. Numbers are cut by description length on training rows, states are those of
the set. NB is naive Bayes with one pseudo-row; LR and WANBIA-C are the same optimiser, started where all posteriors
are equal, on the same rows: they differ in the coordinates alone. They have no penalty, so that many sets have no
maximum, and end by the source's criterion at `RELATIVE`, not at its 1e-32, or after `MAX_ITER` iterations.

Two-fold cross-validation is repeated `REPETITIONS` times, as published, on sets of at most `SMALL` rows, and
`FEW` times on the others. Bias and variance are those of Kohavi and Wolpert (1996), of 0-1 loss; the RMSE is the root
of the mean over rows of ½ Σ_y (Y − P)², as printed.
"""

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binomtest

from rcbook import datasets, published
from rcbook.experiments import runner
from rcbook.experiments.cells import STUDY, Cell, Record, Study, mean_record
from rcbook.weighted_naive_bayes import maximise_weighted, with_intercept
from rcpkg.base import Array, log_posterior
from rcpkg.discretization import MDLDiscretizer
from rcpkg.families import CategoricalNB, one_hot

SOURCE, VARIANT = "wanbia2014", "wanbia2014"
SETS_STUDY = "wanbiac-sets"
PARTS = ("poker_hand", "localization", "volcanoes")  # a part of the printed rows, or others: not in the counts
LARGEST = ("covtype", "census_income_kdd", "connect_4", "shuttle", "adult")  # of the twelve largest, those held whole
METHODS = ("NB", "LR", "WANBIA-C")
MEASURES = ("bias", "variance", "zero_one_loss", "rmse")
REPETITIONS, FEW, SMALL, ROWS = 20, 5, 7_000, 40_000
QUICK_ROWS = 200
MAX_ITER, TOL, RELATIVE = 500, 1e-6, 1e-9
DRAW = 4  # decimals to which means must agree for a draw


class Design(NamedTuple):
    """Rows of one division as indicators, labels as numbers, and log π and log θ of the training rows."""

    train: csr_array
    test: csr_array
    Y: Array
    y_test: NDArray[np.intp]
    scale: Array


class Rows(NamedTuple):
    """A data set: numbers, or states 0, 1, … of nominal features; missing values are NaN."""

    X: Array
    y: NDArray[np.intp]
    nominal: NDArray[np.bool_]


@lru_cache(maxsize=1)
def rows_of(name: str, most: int = ROWS, seed: int = 0) -> Rows:
    """A set of Table I, at most so many of its rows."""
    bunch = datasets.load(name, VARIANT)
    X, y = bunch.data.copy(), np.unique(bunch.target, return_inverse=True)[1]
    for j in np.flatnonzero(bunch.nominal):
        known = ~np.isnan(X[:, j])
        X[known, j] = np.unique(X[known, j], return_inverse=True)[1]
    if len(y) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(y), most, replace=False))
        X, y = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
    return Rows(X, y, bunch.nominal)


def coded(rows: Rows, train: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """States of all rows, numbers cut on training rows, and how many there are; features of one state are left out."""
    discretizer = MDLDiscretizer(categorical_features=rows.nominal).fit(rows.X[train], rows.y[train])
    states = np.array(
        [
            int(np.nanmax(column, initial=-1)) + 1 if cuts is None else len(cuts) + 1
            for column, cuts in zip(rows.X.T, discretizer.cuts_, strict=True)
        ]
    )
    kept = np.flatnonzero(states > 1)
    kept = kept if len(kept) else np.arange(1)
    return discretizer.transform(rows.X)[:, kept], np.maximum(states[kept], 1)


def design(rows: Rows, train: NDArray[np.intp], test: NDArray[np.intp]) -> Design:
    """Indicators of the states of training and test rows, and the logarithms of naive Bayes."""
    codes, n_states = coded(rows, train)
    naive_bayes = CategoricalNB(n_states=n_states, prior_strength=1.0).fit(codes[train], rows.y[train])
    known, r = naive_bayes.classes_, len(naive_bayes.classes_)
    indicators = with_intercept(_indicators(codes, n_states))
    scale = np.vstack([naive_bayes.parameters_.log_prior, naive_bayes.parameters_.log_prob.T])
    place = np.where(np.isin(rows.y, known), np.searchsorted(known, rows.y), r)
    return Design(indicators[train], indicators[test], one_hot(place[train], r), place[test], scale)


def _indicators(codes: Array, n_states: NDArray[np.intp]) -> csr_array:
    """One-hot rows; a missing value is none."""
    known = ~np.isnan(codes)
    columns = (np.where(known, codes, 0).astype(np.intp) + np.cumsum(n_states) - n_states)[known]
    bounds = np.concatenate([[0], known.sum(axis=1).cumsum()])
    return csr_array((np.ones(len(columns)), columns, bounds), shape=(len(codes), int(n_states.sum())))


def posteriors(rows: csr_array, beta: Array) -> Array:
    """P of softmax scores."""
    scores = rows @ beta
    return np.exp(log_posterior(scores, np.zeros(scores.shape[1])))


def squared_error(P: Array, y: NDArray[np.intp]) -> float:
    """Mean over rows of ½ Σ_y (Y − P)², whose root is the printed RMSE; y = r is a class that P does not know."""
    Y = one_hot(y, P.shape[1] + 1)
    return 0.5 * float(np.mean(((P - Y[:, :-1]) ** 2).sum(axis=1) + Y[:, -1]))


def bias_and_variance(predictions: NDArray[np.intp], y: NDArray[np.intp]) -> tuple[float, float]:
    """Means over rows of ½ Σ_c [1{c = y} − f_c]² and ½ (1 − Σ_c f_c²), f_c the share of predictions (R, n) that are c.

    They sum to the mean 0-1 loss (Kohavi and Wolpert 1996, without noise).
    """
    shares = one_hot(predictions, int(max(predictions.max(), y.max())) + 1).mean(axis=0)
    squares, right = (shares**2).sum(axis=1), shares[np.arange(len(y)), y]
    return float(np.mean(0.5 * (1 - 2 * right + squares))), float(np.mean(0.5 * (1 - squares)))


def _fold(parts: Design) -> dict[str, tuple[Array, int, float]]:
    """Posteriors of the test rows, iterations and processor time of each method."""
    found: dict[str, tuple[Array, int, float]] = {"NB": (posteriors(parts.test, parts.scale), 0, 0.0)}
    for method, scale in ("LR", np.ones_like(parts.scale)), ("WANBIA-C", parts.scale):
        start = time.process_time()
        fit = maximise_weighted(
            parts.train,
            parts.Y,
            scale,
            start=np.zeros_like(scale),
            max_iter=MAX_ITER,
            tol=TOL,
            relative=RELATIVE,
        )
        found[method] = posteriors(parts.test, fit.x * scale), fit.nit, time.process_time() - start
    return found


def compare_on_set(cell: Cell, seed: int) -> list[Record]:
    """Bias, variance, 0-1 loss, RMSE, iterations and time of the three methods on one set."""
    rows, repetitions = rows_of(cell.stream), cell.arguments["repetitions"]
    n, rng = len(rows.y), np.random.RandomState(seed % 2**32)
    predictions = {method: np.empty((repetitions, n), np.intp) for method in METHODS}
    sums: dict[str, dict[str, list[float]]] = {m: {"rmse": [], "iterations": [], "seconds": []} for m in METHODS}
    for round_ in range(repetitions):
        first, second = halves(rows.y, rng)
        errors = dict.fromkeys(METHODS, 0.0)
        for train, test in ((first, second), (second, first)):
            parts = design(rows, train, test)
            known = np.unique(rows.y[train])
            for method, (P, iterations, seconds) in _fold(parts).items():
                predictions[method][round_, test] = known[P.argmax(axis=1)]
                errors[method] += len(test) * squared_error(P, parts.y_test)
                sums[method]["iterations"].append(iterations)
                sums[method]["seconds"].append(seconds)
        for method in METHODS:
            sums[method]["rmse"].append(float(np.sqrt(errors[method] / n)))
    records = []
    for method in METHODS:
        bias, variance = bias_and_variance(predictions[method], rows.y)
        records += [Record(method, "bias", bias), Record(method, "variance", variance)]
        records.append(mean_record(method, "zero_one_loss", (predictions[method] != rows.y).mean(axis=1)))
        records += [mean_record(method, metric, values) for metric, values in sums[method].items()]
    return records


def halves(y: NDArray[np.intp], rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two halves at random, each class in both as far as it has two rows."""
    order = rng.permutation(len(y))
    by_class = order[np.argsort(y[order], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


# Table I -------------------------------------------------------------------------------------------


def size_of_set(cell: Cell, seed: int) -> list[Record]:
    """Cases, attributes, the class among them, and classes of a set, and, not printed, missing values."""
    bunch = datasets.load(cell.stream, VARIANT)
    n, d = bunch.data.shape
    records = [Record("", "cases", n), Record("", "attributes", d + 1), Record("", "classes", len(bunch.target_names))]
    return [*records, Record("", "missing", int(np.isnan(bunch.data).sum()))]


def missing_values() -> dict[str, int]:
    """How many values are missing in each set, as far as Table I has been run."""
    done = runner.read(runner.table_path(SOURCE, "I"))
    return {
        cell.arguments["name"]: int(record.value or 0)
        for cell in done
        for record in cell.records
        if record.metric == "missing"
    }


# Table II: counts over the sets of the study ---------------------------------------------------------


def set_means() -> pd.DataFrame:
    """Our means, indexed by set and measure, a column a method; sets that have been run and are not `PARTS`."""
    path = runner.table_path(STUDY, SETS_STUDY)
    rows = [
        (done.key.split("/")[0], record.metric, record.method, record.value)
        for done in runner.read(path)
        for record in done.records
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "measure", "method", "value"])
    frame = frame[~frame.dataset.isin(PARTS) & frame.measure.isin(MEASURES)]
    return frame.pivot(index=["dataset", "measure"], columns="method", values="value")


def wins_draws_losses(means: pd.DataFrame, other: str, decimals: int = DRAW) -> tuple[int, int, int]:
    """How often WANBIA-C has the smaller, the same or the larger mean, rounded to so many decimals."""
    ours, theirs = means["WANBIA-C"].round(decimals), means[other].round(decimals)
    return int((ours < theirs).sum()), int((ours == theirs).sum()), int((ours > theirs).sum())


def sign_test(won: int, lost: int) -> float:
    """Two-tailed binomial sign test of wins against losses; draws are left out."""
    return float(binomtest(won, won + lost).pvalue) if won + lost else 1.0


def counts_over_sets(cell: Cell, seed: int) -> list[Record]:
    """Shares of wins, draws and losses over our sets, times the printed number of sets.

    The standard deviation is that of the count if each of the printed sets came out with our shares.
    """
    measure, printed = cell.arguments["measure"], cell.arguments["printed_sets"]
    means = set_means().xs(measure, level="measure")
    means = means.loc[means.index.intersection(LARGEST)] if printed == 12 else means
    n, records = len(means), []
    for name, count in zip(("win", "draw", "loss"), wins_draws_losses(means, cell.method.split(" vs ")[1])):
        share = count / n
        records.append(
            Record(cell.method, f"count_{name}", printed * share, printed * float(np.sqrt(share * (1 - share))), n)
        )
    return records


# Cells -----------------------------------------------------------------------------------------------


def registered() -> dict[str, str]:
    """Printed name of a set -> ours, those of which files exist."""
    table = datasets.table()
    table = table[table.variant == VARIANT]
    return dict(zip(table.stated_in.str.split(":").str[2], table.name, strict=True))


@lru_cache
def sizes() -> dict[str, int]:
    """Rows of each set of Table I of which a file exists, small ones first."""
    table = datasets.table()
    table = table[table.variant == VARIANT].sort_values("n_rows", kind="stable")
    return dict(zip(table.name, table.n_rows.astype(int), strict=True))


def _table_one() -> Iterator[Cell]:
    names = registered()
    for row in published.table(SOURCE, "I").drop_duplicates("row").itertuples():
        name = names.get(row.dataset, "")
        reason = "" if name else "no file of this set was to be had"
        yield Cell(SOURCE, "I", row.row, "", arguments={"name": name}, stream=name, reason=reason)


def _table_two() -> Iterator[Cell]:
    for row in published.table(SOURCE, "II").drop_duplicates(["row", "dataset", "method"]).itertuples():
        arguments = {"measure": row.row, "printed_sets": 12 if row.dataset == "top_size_12" else 73}
        yield Cell(SOURCE, "II", row.row, row.method, "", arguments, row.setting_value, dataset=row.dataset)


Study("I", source=SOURCE, rows=_table_one, protocol=size_of_set)
Study("II", source=SOURCE, rows=_table_two, protocol=counts_over_sets)
STOPPED_EARLY = 2e-3  # tolerance of what descents reach that end before their optimum: rounding decides where


def by_rounding(cell: Cell, record: Record) -> bool:
    """Whether a number of such a descent is left to rounding: iterations, errors, which change by whole rows, and all
    that hardly any penalty holds."""
    counted = record.metric.startswith("iterations") or record.metric == "zero_one_loss"
    return counted or record.method.endswith((" 1e-4", " 1e-6"))


OF_DESCENTS: dict[str, Any] = {"tolerance": STOPPED_EARLY, "by_rounding": by_rounding}
Study(
    SETS_STUDY,
    **OF_DESCENTS,
    rows=sizes,
    methods=("all",),
    protocol=compare_on_set,
    arguments=lambda cell: {"repetitions": REPETITIONS if sizes()[cell.row] <= SMALL else FEW},
    stream=lambda cell: cell.row,
    quick=lambda cell: sizes()[cell.row] <= QUICK_ROWS,
)
