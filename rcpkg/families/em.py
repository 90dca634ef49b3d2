"""Closed forms of training rows with gaps, by EM (Dempster, Laird and Rubin, 1977)."""

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import InvalidStatistics
from rcpkg.checks import warn
from rcpkg.families.constants import EM_STEPS, EM_TOL
from rcpkg.families.statistics import Statistics
from rcpkg.progress import tell
from rcpkg.rows import Block, Rows


def expected(model: Any, parameters: Any, block: Block) -> Statistics:
    """E[s(X, Y) | what there is, θ] of an encoded block, by its weights."""
    return model.expected_statistics(block.X, block.weights(len(model.classes_)), parameters)


def run_em(model: Any, rows: Rows, start: Any) -> Statistics:
    """The statistics s = E[s(X, Y) | what there is, θ(s)], to which the steps of `em` lead from θ = ``start``."""
    last = None
    for step, (statistics, parameters) in zip(range(EM_STEPS), em(model, rows, start)):
        s, natural = statistics.ravel(), model.natural_parameters(parameters).ravel()
        if last:
            with np.errstate(invalid="ignore"):  # of cells that stay empty
                moved = (s - last[0]) * (natural - last[1])
            if abs(np.nansum(moved)) <= EM_TOL * statistics.count.sum():
                return statistics
        last = s, natural
        tell("EM for missing values: step %d", step + 1, iteration=True)
    warn(
        f"EM has not converged after {EM_STEPS} steps: too much is missing for so many parameters. Set "
        "prior_strength > 0, leave out features of many gaps, or take a model of independent features",
        ConvergenceWarning,
    )
    return statistics


def em(model: Any, rows: Rows, parameters: Any) -> Iterator[tuple[Statistics, Any]]:
    """Steps s ← E[s(X, Y) | what there is, θ], θ ← θ(s), from ``parameters`` on.

    What is missing is taken to be missing at random. The log-likelihood of what there is, with the log density of the
    prior, never falls. A prior that is relative to the rows is decided once, at the first step: of covariances that it
    has made larger it would grow with each step. The ``model`` is a family prepared for the encoded ``rows``.
    """
    n_rows, decided = rows.sum(attrgetter("n")), False
    while True:
        statistics = rows.sum(partial(expected, model, parameters))
        try:
            parameters = (None if decided else model.fix_prior(statistics, n_rows)) or model.parameters(statistics)
        except InvalidStatistics:  # a covariance has become singular on the way
            parameters = model.fix_prior(statistics, n_rows) or model.parameters(statistics)
        decided = True
        yield statistics, parameters
