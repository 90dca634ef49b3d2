"""Readings of the benchmark tables of thesis2007 chapter 5, where the stated one leaves numbers unexplained.

``data/readings.csv`` states each with what had been seen of its columns before it was run; a cell of the study is a
printed number under one of them. What is random is drawn anew, by other seeds than those of the tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rcbook import published
from rcbook.experiments import readings
from rcbook.experiments.cells import STUDY, Cell, Record, Study, cells_of, mean_record
from rcbook.experiments.studies import tables_of_bda7 as tables
from rcpkg.base import Array

STUDY_NAME = "bda7-readings"
RUNS = {"with-replacement": 100, "with-replacement-tuned": 25, "with-replacement-edda": 10}  # 50 of the others
RUNS["with-replacement-iris"] = 1000
AS_OFTEN = ("with-replacement-large", "with-replacement-again", "with-replacement-wine")  # runs as in the tables
COSTLY = ("5.4", "5.8", "5.12")  # tables that are left to the end
SINGULAR = 1e-10  # of the largest eigenvalue


# Drawing the training rows --------------------------------------------------------------------------


def with_replacement(y: NDArray, percent: float, rng: np.random.RandomState) -> NDArray:
    """Of each class the stated number of rows, of which some may be the same."""
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.sort(np.concatenate([rng.choice(rows, _ceil(len(rows), percent)) for rows in classes]))


def over_all(y: NDArray, percent: float, rng: np.random.RandomState) -> NDArray:
    """The stated share of all rows, whatever their classes."""
    return np.sort(rng.permutation(len(y))[: _ceil(len(y), percent)])


def rounded_down(y: NDArray, percent: float, rng: np.random.RandomState) -> NDArray:
    """Of each class the stated share, rounded down, but one row at least."""
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.sort(np.concatenate([rng.permutation(c)[: max(int(len(c) * percent / 100), 1)] for c in classes]))


def _ceil(n_rows: int, percent: float) -> int:
    return int(np.ceil(n_rows * percent / 100 - 1e-9))


DRAWINGS = {
    "with-replacement": with_replacement,
    "with-replacement-tuned": with_replacement,
    "with-replacement-edda": with_replacement,
    "with-replacement-large": with_replacement,
    "with-replacement-again": with_replacement,
    "with-replacement-wine": with_replacement,
    "with-replacement-iris": with_replacement,
    "drawn-over-all": over_all,
    "rounded-down": rounded_down,
}


# Singular covariances -------------------------------------------------------------------------------


@dataclass
class Repaired:
    """LDA (``pooled``) or QDA, with ``class_prior`` pseudo-rows a class and a remedy for singular covariances.

    ``singular-pinv``: pseudo-inverse and product of the non-zero eigenvalues; ``singular-ridge``: a millionth of the
    mean variance on the diagonal; ``singular-drop``: only features, from the first, that leave no class singular;
    ``none``: inverse and determinant as rounding leaves them.
    """

    remedy: str
    pooled: bool
    class_prior: float = 1.0

    def fit(self, X: Array, y: NDArray) -> "Repaired":
        self.classes, counts = np.unique(y, return_counts=True)
        self.means = np.array([X[y == label].mean(axis=0) for label in self.classes])
        covariances = np.array([np.cov(X[y == label].T, bias=True, ddof=0) for label in self.classes])
        if self.pooled:
            within = np.einsum("h,hij->ij", counts / len(y), covariances)
            covariances = np.repeat(within[None], len(counts), axis=0)
        if self.remedy == "singular-ridge":
            mean_variance = np.einsum("hii->h", covariances) / X.shape[1]
            covariances = covariances + 1e-6 * mean_variance[:, None, None] * np.eye(X.shape[1])
        self.kept = _regular(covariances) if self.remedy == "singular-drop" else np.arange(X.shape[1])
        self.covariances = covariances[:, self.kept[:, None], self.kept]
        self.log_prior = np.log((counts + self.class_prior) / (len(y) + self.class_prior * len(counts)))
        return self

    def predict(self, X: Array) -> NDArray:
        scores = []
        for mean, covariance, log_prior in zip(self.means, self.covariances, self.log_prior, strict=True):
            if self.remedy == "none":
                centred = X - mean
                distance = np.sum(centred.T * (np.linalg.inv(covariance) @ centred.T), axis=0)
                scores.append(log_prior - 0.5 * distance - 0.5 * np.linalg.slogdet(covariance)[1])
                continue
            values, vectors = np.linalg.eigh(covariance) if self.kept.size else (np.zeros(0), np.zeros((0, 0)))
            large = values > SINGULAR * values.max(initial=0.0)
            z = (X[:, self.kept] - mean[self.kept]) @ vectors[:, large] / np.sqrt(values[large])
            scores.append(log_prior - 0.5 * np.sum(z**2, axis=1) - 0.5 * np.sum(np.log(values[large])))
        return self.classes[np.argmax(scores, axis=0)]


def _regular(covariances: Array) -> NDArray:
    """Features, from the first, that leave all covariances regular."""
    kept: list[int] = []
    for feature in range(covariances.shape[1]):
        tried = [*kept, feature]
        values = np.linalg.eigvalsh(covariances[:, tried][:, :, tried])
        if np.all(values[:, 0] > SINGULAR * values[:, -1]):
            kept = tried
    return np.array(kept, dtype=int)


def _repaired(remedy: str, method: str, n_classes: int, seed: int, large: bool) -> Repaired:
    return Repaired(remedy, pooled=method == "LDA")


# The study ------------------------------------------------------------------------------------------


def reading(cell: Cell, seed: int) -> list[Record]:
    """Mean test error of a printed number under a reading."""
    name = cell.arguments["reading"]
    other: dict[str, Callable[..., Any]] = (
        {"drawing": DRAWINGS[name]} if name in DRAWINGS else {"make": partial(_repaired, name)}
    )
    return [mean_record(cell.method, "test_error_percent", tables.run_errors(cell, seed, **other))]


def _concerned() -> Iterator[Cell]:
    """The printed numbers of the columns that each reading names, costly tables last."""
    of_chapter = readings.stated().query("source == 'thesis2007' and tables.str.startswith('5.')")
    named = [
        (name, table, row["columns"].split()) for name, row in of_chapter.iterrows() for table in row.tables.split()
    ]
    known = (*DRAWINGS, "singular-pinv", "singular-ridge", "singular-drop")  # the other readings have their own studies
    named = [entry for entry in named if entry[1] in tables.DATA and entry[0] in known]
    for name, table, methods in sorted(named, key=lambda entry: entry[1] in COSTLY):
        for cell in cells_of("thesis2007", table):
            if cell.method in methods:
                setting = f"{table}|{cell.setting_value}|{name}"
                yield replace(cell, source=STUDY, table=STUDY_NAME, setting_value=setting)


def _under(cell: Cell) -> dict[str, Any]:
    table, _, name = cell.setting_value.split("|")
    runs = tables.runs(table, cell.method) if name in AS_OFTEN else RUNS.get(name, 50)
    return {"reading": name, "repetitions": runs}


Study(STUDY_NAME, rows=_concerned, protocol=reading, arguments=_under, quick=False)


def judged_readings() -> pd.DataFrame:
    """Each printed number of the columns concerned under each reading that has been run.

    Returns
    -------
    DataFrame
        The rows of `readings.judged_readings`, with ``z``, the difference of print and ours in standard errors.
    """
    cells = readings.judged_readings(STUDY_NAME, ["thesis2007"], by=tables.NUMBER)
    error = cells["std"] * np.sqrt(1 / cells.n_runs + 1 / 100)
    return cells.assign(z=(cells.printed - cells.value) / error.where(error > 1e-9))


def columns_explained(cells: pd.DataFrame) -> pd.DataFrame:
    """Per reading and printed column: how many numbers agree as stated and under the reading.

    Parameters
    ----------
    cells : DataFrame
        Rows of `judged_readings`.

    Returns
    -------
    DataFrame
        Indexed by ``reading, table, method``: ``cells``, ``stated``, ``under`` the reading, and ``accepted``: the whole
        column has been run, and as often as in the table, so that the tolerance is no wider; all its numbers agree
        under the reading, and not all did as stated.
    """
    column = cells.groupby(["reading", "table", "method"], sort=False)
    found = column.agg(
        cells=("agrees", "size"), stated=("agreed", "sum"), under=("agrees", "sum"), runs=("n_runs", "min")
    )
    as_often = [runs >= tables.runs(table, method) for (_, table, method), runs in found.runs.items()]
    printed = published.tables().query("source == 'thesis2007'").groupby(["table", "method"]).size()
    whole = found.cells.to_numpy() == printed.reindex(found.index.droplevel("reading")).to_numpy()
    return found.assign(accepted=whole & as_often & (found.under == found.cells) & (found.stated < found.cells))
