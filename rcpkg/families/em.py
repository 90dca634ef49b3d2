"""Closed forms of training rows with gaps, by EM (Dempster, Laird and Rubin, 1977)."""

from collections.abc import Iterable
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics
from rcpkg.checks import warn
from rcpkg.families.constants import EM_TOL, SHORT_STEPS
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import MOST_STEPS
from rcpkg.progress import tell
from rcpkg.rows import Block, Rows


def expected(model: Any, parameters: Any, block: Block) -> Statistics:
    """E[s(X, Y) | what there is, θ] of an encoded block, by its weights."""
    return model.expected_statistics(block.X, block.weights(len(model.classes_)), parameters)


def run_em(model: Any, rows: Rows, parameters: Any) -> Statistics:
    """The statistics s = E[s(X, Y) | what there is, θ(s)], to which EM leads from θ = ``parameters``: by steps
    s ← E[s(X, Y) | what there is, θ], θ ← θ(s), of a ``model`` that is a family prepared for the encoded ``rows``.

    What is missing is taken to be missing at random. A prior that is relative to the rows is fixed after the first
    step: of covariances that it has made larger it would grow with each step. The log-likelihood of what there is, with
    the log density of the prior, never falls by a step of EM.

    Every third step is extrapolated (SQUAREM, `_shortcut`), by which the likelihood may fall. The bar is the time of
    training with gaps in the chapter on gaps: where EM converges, fits of QDA, LDA and TAN to four tables with a tenth
    to three tenths of the values missing take a quarter to a half of the time. A step of EM alone ends the search, so
    that it finds a fixed point of EM with extrapolation as without.
    """
    n_rows, path, decided = rows.sum(attrgetter("n")), [], False
    for step in range(MOST_STEPS):
        statistics = rows.sum(partial(expected, model, parameters))
        try:
            parameters = (None if decided else model.fix_prior(statistics, n_rows)) or model.parameters(statistics)
        except InvalidStatistics:  # a covariance has become singular on the way
            parameters = model.fix_prior(statistics, n_rows) or model.parameters(statistics)
        decided, path = True, [*path, place(model, statistics, parameters)]
        if len(path) > 1 and length(path[-1] - path[-2]) <= EM_TOL * statistics.count.sum():
            return statistics
        tell("EM for missing values: step %d", step + 1, iteration=True)
        if len(path) == 3:
            shortcut, path = _shortcut(model, statistics, *path)
            parameters = shortcut or parameters
    warn(
        f"EM has not converged after {MOST_STEPS} steps: too much is missing for so many parameters"
        f"{seldom_together(model, rows)}. Set prior_strength > 0, leave out features of many gaps, or take a model of "
        "independent features",
        ConvergenceWarning,
    )
    return statistics


def seldom_together(model: Any, rows: Rows) -> str:
    """Which two numbers have values in the same row the least, which is all that tells of their covariance."""
    if not all(isinstance(block.X, np.ndarray) and block.X.shape[1] > 1 for block in rows):
        return ""
    together = rows.sum(seen_together)
    np.fill_diagonal(together, np.inf)
    i, j = np.unravel_index(together.argmin(), together.shape)
    return f", as {together[i, j]:.0f} rows have values of both {model._feature_name(i)} and {model._feature_name(j)}"


def seen_together(block: Block) -> Array:
    """Numbers of rows that have values of both of two features, (d, d)."""
    seen = (~np.isnan(block.X)).astype(float)
    return seen.T @ seen


class Ascent(NamedTuple):
    """Where steps of EM have ended, and the penalised log-likelihood, in nats a row, at each of them."""

    statistics: Statistics
    parameters: Any
    values: list[float]
    converged: bool


def ascend(model: Any, rows: Rows, start: Statistics, steps: int, values: list[float] | None = None) -> Ascent | None:
    """Steps s ← E[s(X, Y) | what there is; θ(s)] from ``start``, until one gains no more than ``model.tol`` nats a row
    of the log-likelihood with the log density of the prior, or ``values`` has so many ``steps``.

    None where the statistics have no valid parameters, or the model ``has_lost`` a part of itself.
    """
    statistics, values = start, list(values or [])
    while True:
        try:
            parameters = model.parameters(statistics)
        except InvalidStatistics:
            return None
        total = rows.sum(partial(valued, model, parameters))
        values.append(float(total.value + model.log_prior_density(parameters)) / total.expected.count.sum())
        tell("EM for components: step %d, log-likelihood %.6g a row", len(values), values[-1], iteration=True)
        converged = len(values) > 1 and values[-1] - values[-2] <= model.tol
        if converged or len(values) >= steps or not np.isfinite(values[-1]):
            return Ascent(statistics, parameters, values, converged) if np.isfinite(values[-1]) else None
        statistics = total.expected
        if model.has_lost(statistics):
            return None


def best_ascent(model: Any, rows: Rows, starts: Iterable[Statistics]) -> Ascent | None:
    """The ascent from the start that is the most probable after `SHORT_STEPS`; None where no start keeps all parts."""
    few = min(SHORT_STEPS, model.max_iter)
    found = filter(None, [ascend(model, rows, start, few) for start in starts])
    best = max(found, key=lambda ascent: ascent.values[-1], default=None)
    return best and ascend(model, rows, best.statistics, model.max_iter, best.values[:-1])


def valued(model: Any, parameters: Any, block: Block) -> Statistics:
    """E[s(X, Y) | what there is; θ] of an encoded block, and Σ_i w_i log p(x_i, y_i), by one pass."""
    Y, value = block.weights(len(model.classes_)), 0.0

    def weigh(joint: Array, part: slice) -> Array:
        nonlocal value
        value += (Y[part] * np.where(Y[part] > 0, joint, 0.0)).sum()
        return Y[part]

    expected = model.weighted_statistics(block.X, parameters, weigh)
    return Statistics(value=value, expected=expected)


def place(model: Any, statistics: Statistics, parameters: Any) -> Array:
    """Statistics s and the natural parameters η of their θ(s), as two vectors; no number where a cell is empty."""
    natural = model.natural_parameters(parameters).ravel()
    return np.stack([statistics.ravel(), np.where(np.isfinite(natural), natural, np.nan)])


def length(change: Array) -> float:
    """⟨Δs, Δη⟩ of a difference of places, but for empty cells."""
    return float(abs(np.nansum(change[0] * change[1])))


def _shortcut(model: Any, form: Statistics, first: Array, second: Array, third: Array) -> tuple[Any, list[Array]]:
    """Parameters where steps lead that shorten as the last two have, s₀ + 2α(s₁ − s₀) + α²(s₂ − 2s₁ + s₀), with α² the
    length of the first over that of the bend (SQUAREM, Varadhan and Roland, 2008), and this place; with smaller α where
    it has none, or none at all, and the last place. Statistics have the structure of ``form``."""
    step = second - first
    bend = (third - second) - step
    alpha = np.sqrt(length(step) / length(bend)) if length(bend) > 0 else 0.0
    while alpha > 1:
        statistics = form.unravel(first[0] + 2 * alpha * step[0] + alpha**2 * bend[0])
        try:
            parameters = model.parameters(statistics)
            return parameters, [place(model, statistics, parameters)]
        except (InvalidStatistics, np.linalg.LinAlgError):
            alpha = alpha / 2
    return None, [third]
