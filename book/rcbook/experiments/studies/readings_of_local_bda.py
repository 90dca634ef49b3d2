"""Readings of the mixtures of thesis2007 Tables 6.1 to 6.3 and of the linear rule of Table 6.2 (chapter 20).

``data/readings.csv`` states each with what had been seen of its columns before it was run.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Grid, Record, Study, cells_of, mean_record
from rcbook.experiments.studies import tables_of_local_bda as tables
from rcbook.experiments.studies.printed_sizes_of_local_bda import printed_sizes
from rcpkg.base import Array
from rcpkg.local import LocalLinear

STUDY_NAME = "gmm-readings"
RUNS, SEEDS = 30, 5
SETTINGS: dict[str, dict[str, Any]] = {
    "gmm-diagonal": {"covariance_type": "diag"},
    "gmm-random-start": {"init_params": "random"},
    "gmm-few-steps": {"max_iter": 10},
    "gmm-ill-posed": {"reg_covar": 0.0},
}
FROM_TWO = "gmm-from-two"  # of numbers of components only: one is not among them


def _predicted(X: Array, y: NDArray, T: Array, components: int, seed: int, **settings: Any) -> NDArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tables.mixtures(X, y, T, components, seed, **settings)


def _errors(cell: Cell, seed: int, first: int, **settings: Any) -> tuple[range, Array]:
    """Numbers of components up to the cap, and the errors of random nine tenths: a row for each division."""
    X, y, _, _ = tables.data(cell.arguments["row"])
    cap = max(1, int(np.unique(y, return_counts=True)[1].min()) // X.shape[1])
    sizes = range(min(first, cap), cap + 1)
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(cell.arguments["repetitions"]):
        test, train = np.split(rng.permutation(len(y)), [len(y) // 10])
        wrong = [_predicted(X[train], y[train], X[test], k, seed, **settings) != y[test] for k in sizes]
        errors.append(100 * np.mean(wrong, axis=1))
    return sizes, np.array(errors)


def least_error(cell: Cell, seed: int) -> list[Record]:
    """The least mean error of random nine tenths over the numbers of components, as in Table 6.1."""
    _, errors = _errors(cell, seed, 1, **SETTINGS[cell.arguments["reading"]])
    return [mean_record(cell.method, "cv_error_percent", errors[:, tables.least(errors)])]


def chosen_size(cell: Cell, seed: int) -> list[Record]:
    """The number of components with the least mean error, as in Table 6.3."""
    name = cell.arguments["reading"].replace("-size", "")
    sizes, errors = _errors(cell, seed, cell.arguments["first"], **SETTINGS.get(name, {}))
    return [Record(cell.method, "chosen_components", sizes[tables.least(errors)])]


def test_error(cell: Cell, seed: int) -> list[Record]:
    """Test errors at the printed number of components, models of all training rows, as in Table 6.2."""
    X, y, T, labels = tables.data(cell.arguments["row"])
    settings = SETTINGS[cell.arguments["reading"].replace("-test", "")]
    seeds = np.random.SeedSequence(seed).generate_state(SEEDS)
    errors = [100 * np.mean(_predicted(X, y, T, cell.arguments["k"], int(s), **settings) != labels) for s in seeds]
    return [mean_record(cell.method, "test_error_percent", errors)]


def intercept(cell: Cell, seed: int) -> list[Record]:
    """Test errors of the linear rule at the printed size with an intercept and without, models of all training rows."""
    X, y, T, labels = tables.data(cell.arguments["row"])
    records = []
    for name, fit_intercept in (("with", True), ("without", False)):
        model = LocalLinear(n_neighbors=cell.arguments["k"], fit_intercept=fit_intercept).fit(X, y)
        records.append(Record(cell.method, name, 100 * float(np.mean(model.predict(T) != labels))))
    return records


def _column(table: str, method: str) -> Iterator[Cell]:
    """The cells of a method in a table, without their number of divisions."""
    for cell in cells_of("thesis2007", table):
        if cell.method == method:
            yield replace(cell, arguments={"row": cell.arguments["row"]})


def _readings(table: str, kind: str, names: Iterable[str] = SETTINGS) -> list[str]:
    return [f"{table}|{name.replace('gmm-', kind)}" for name in names]


def _reading(cell: Cell) -> str:
    return cell.setting_value.split("|")[1]


def _printed_size(cell: Cell) -> int:
    return int(printed_sizes()[cell.arguments["row"], cell.method])


# the mixtures of Tables 6.1 to 6.3 under each reading; and the linear rule of Table 6.2 under its own
Study(
    STUDY_NAME,
    Grid(
        rows=partial(_column, "6.1", "GMM"),
        settings=_readings("6.1", "gmm-"),
        protocol=least_error,
        arguments=lambda cell: {"repetitions": RUNS, "reading": _reading(cell)},
        quick=False,
    ),
    Grid(
        rows=partial(_column, "6.2", "GMM"),
        settings=_readings("6.2", "gmm-test-"),
        protocol=test_error,
        arguments=lambda cell: {"k": _printed_size(cell), "reading": _reading(cell)},
        quick=False,
    ),
    Grid(
        rows=partial(_column, "6.3", "GMM"),
        settings=_readings("6.3", "gmm-size-", (*SETTINGS, FROM_TWO)),
        protocol=chosen_size,
        arguments=lambda cell: {
            "repetitions": RUNS,
            "reading": _reading(cell),
            "first": 2 if _reading(cell) == FROM_TWO.replace("gmm-", "gmm-size-") else 1,
        },
        quick=False,
        where=lambda cell: cell.arguments["row"] not in tables.LARGE,
    ),
)
Study(
    "pinv-intercept",
    rows=partial(_column, "6.2", "pinv"),
    protocol=intercept,
    arguments=lambda cell: {"k": _printed_size(cell), "reading": "pinv-no-intercept"},
    quick=False,
)


judged_readings = partial(readings.judged_readings, STUDY_NAME, ["thesis2007"])
