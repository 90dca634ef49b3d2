"""A diagonal of the Hessian that follows the iterates, in the place of Figure 4 of wanbia2014 (chapter 8).

The source preconditions L-BFGS of logistic regression by the diagonal of the Hessian, recomputed at each iteration,
on ten data sets that it does not name, and finds fewer iterations on some and more time on all. Here the same is done
on all sets of the study ``wanbiac-coordinates``, same rows and start. ``fixed diagonal`` has that of the start,
``adaptive diagonal`` that of each iterate. Both are the library's L-BFGS with the inverse diagonal for its first
inverse Hessian, so that their seconds compare; ``natural`` and ``closed form`` are those of that study, by scipy.
"""

import time
from collections import deque
from functools import partial

import numpy as np
import pandas as pd

from rcbook.experiments.cells import STUDY, Cell, Record, Study
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies.figures_of_wanbia2014 import GAPS, MAX_ITER, ROWS, first_below, traces_of
from rcbook.experiments.studies.tables_of_wanbia2014 import (
    OF_DESCENTS,
    PARTS,
    QUICK_ROWS,
    Design,
    design,
    rows_of,
    sizes,
)
from rcpkg.base import Array
from rcpkg.calibration.features import Features
from rcpkg.calibration.logistic import Evaluation, LogisticObjective
from rcpkg.calibration.newton import MEMORY, quasi_newton
from rcpkg.families.cliques import Families, TableFeatures
from rcpkg.linalg import backtracked

STUDY_NAME = "wanbiac-adaptive"
FIXED, ADAPTIVE = "fixed diagonal", "adaptive diagonal"
LEAST = 1e-9  # of the largest entry, below which an entry of the diagonal is not taken


def descent(parts: Design, adaptive: bool) -> tuple[list[float], list[float]]:
    """−CLL and processor time at each iterate, from equal posteriors, with a diagonal that is recomputed or not."""
    indicators, (_, r) = parts.train[:, 1:], parts.Y.shape
    width = indicators.shape[1]
    tables = Families([()], np.array([width]))
    tables.lay_out()
    features = Features(TableFeatures(tables, indicators))
    objective = LogisticObjective(features, parts.Y.argmax(axis=1), r, free=r)
    values, seconds, start = [], [], time.process_time()

    V = np.zeros((r, 1 + width))
    at, pairs, h = objective(V), deque(maxlen=MEMORY), None
    for _ in range(MAX_ITER):
        if adaptive or h is None:
            h = objective.diagonal(V).ravel()
            h = np.maximum(h, LEAST * h.max())
        g = at.gradient.ravel()
        step = -quasi_newton(g, lambda rest, h=h: rest / h, pairs)
        valued = partial(_valued, objective)
        end = backtracked(valued, V, at.value, step.reshape(V.shape), float(g @ step))
        if end is None:
            break
        _, moved, _, at = end
        pairs.append(((moved - V).ravel(), at.gradient.ravel() - g))
        V = moved
        values.append(at.value * len(parts.Y))
        seconds.append(time.process_time() - start)
    return values, seconds


def _valued(objective: LogisticObjective, V: Array) -> tuple[float, Evaluation]:
    at = objective(V)
    return at.value, at


def compare_diagonals(cell: Cell, seed: int) -> list[Record]:
    """Iterations and seconds to each gap; None where it is not reached."""
    rows = rows_of(cell.stream, ROWS)
    every = np.arange(len(rows.y))
    parts = design(rows, every, every[:1])
    traces, separable = traces_of(parts, ("natural", "closed form"))
    runs = {name: (trace.values, trace.seconds) for name, trace in traces.items()}
    runs |= {FIXED: descent(parts, False), ADAPTIVE: descent(parts, True)}
    first = float(len(rows.y) * np.log(parts.Y.shape[1]))
    least = 0.0 if separable else min(min(values) for values, _ in runs.values())
    records = [Record("", "separable", float(separable)), Record("", "columns", parts.scale.shape[0])]
    for name, (values, seconds) in runs.items():
        records += first_below(name, (np.array(values) - least) / (first - least), seconds)
    return records


Study(
    STUDY_NAME,
    **OF_DESCENTS,
    rows=sizes,
    methods=("all",),
    protocol=compare_diagonals,
    stream=lambda cell: cell.row,
    quick=lambda cell: sizes()[cell.row] <= QUICK_ROWS,
    where=lambda cell: cell.row not in PARTS,
)


def summary(gap: float = GAPS[0]) -> pd.DataFrame:
    """The adaptive diagonal against the others: sets on which both arrive, on how many it takes fewer iterations, and
    the median of the ratios of iterations and of seconds."""
    found = results(STUDY, STUDY_NAME)
    name = f"1e{round(np.log10(gap))}"
    wide = partial(_wide, found)
    its, seconds = wide(f"iterations_{name}"), wide(f"seconds_{name}")
    rows = {}
    for other in ("natural", "closed form", FIXED):
        both = its[[ADAPTIVE, other]].dropna()
        clock = seconds.loc[both.index]
        rows[other] = {
            "sets": len(both),
            "fewer": int((both[ADAPTIVE] < both[other]).sum()),
            "iterations": float((both[ADAPTIVE] / both[other]).median()),
            "seconds": float((clock[ADAPTIVE] / clock[other]).median()),
        }
    return pd.DataFrame(rows).T


def _wide(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    return found[found.metric == metric].pivot(index="row", columns="method", values="value")
