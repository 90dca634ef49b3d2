"""Steps: from one point of an objective to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.constants import LONGEST_STEP, PLAIN_EVERY, SECANTS, SHORTEST_STEP
from rcpkg.calibration.objective import Objective, Point, log_posterior_of
from rcpkg.calibration.rules import calibration_weights
from rcpkg.checks import check_choice, check_number
from rcpkg.families import Family, Statistics, can, require
from rcpkg.families.portions import rows_at
from rcpkg.linalg import RESOLVED, SUFFICIENT_GAIN

Run = Callable[[Point, int], Point | None]

ON_INVALID = ("halt", "raise")


@dataclass(frozen=True)
class Step(ABC):
    """A rule that leads from one point of an objective to the next. It holds settings; each run keeps its own memory.

    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> from rcpkg.calibration import LBFGS, Newton, climb
    >>> F = Objective.from_estimator(QDA(), *load_iris(return_X_y=True), target_weight=1.0)
    >>> short = [climb(F, step, max_iter=9, random_state=0) for step in (Fixed(0.1), Batches(0.1, size=50))]
    >>> whole = [climb(F, step) for step in (Safe(), Newton(), LBFGS())]
    >>> [round(float(path.value), 3) for path in short + whole]
    [0.232, 0.242, 0.194, 0.194, 0.194]
    >>> run = Safe().begin(Safe().view(F), np.random.RandomState(0))
    >>> run(F.evaluate(F.start), 1).value > F.evaluate(F.start).value
    True
    """

    keeps_prior = False  # whether all points are of MAP, if the estimator has a prior, and not the start alone
    stop_reason = "no_step"  # of a path whose run finds no further point

    def view(self, objective: Objective) -> Any:
        """The objective as the step sees it: by its statistics, or as a function of coordinates."""
        return objective

    @abstractmethod
    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        """A run on an ``objective``, which draws from ``rng``: the function (point, t) → point t, or None."""


@dataclass(frozen=True)
class StepOfLength(Step):
    """Steps of a length lr = ``learning_rate`` > 0, which end a path where they leave the valid statistics."""

    learning_rate: float = 0.1

    on_invalid = "halt"
    stop_reason = "invalid"

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, 0, above=True)

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        def run(point: Point, t: int) -> Point | None:
            try:
                return self._next(objective, point, t, rng)
            except InvalidStatistics:
                if self.on_invalid == "raise":
                    raise
                return None

        return run

    def _next(self, F: Objective, point: Point, t: int, rng: np.random.RandomState) -> Point:
        """Point t, which follows ``point``; raises `InvalidStatistics`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Fixed(StepOfLength):
    """s + lr · s(X, W) with lr = ``learning_rate`` > 0, as in the sources.

    ``on_invalid`` says what to do when it leaves the valid statistics: "halt", end with the points so far (rc2025), or
    "raise" `InvalidStatistics`.
    """

    on_invalid: Literal["halt", "raise"] = "halt"

    keeps_prior = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("on_invalid", self.on_invalid, ON_INVALID)

    def _next(self, F: Objective, point: Point, t: int, rng: np.random.RandomState) -> Point:
        lr = self.learning_rate
        return F.evaluate(*self._valid(F.family, point.statistics, F.moved(point.statistics, point.gradient, lr)), lr)

    def _valid(self, family: Family, old: Statistics, new: Statistics) -> tuple[Statistics, Any]:
        """New statistics with their parameters; a subclass may mend what is invalid."""
        return new, family.parameters(new)


@dataclass(frozen=True)
class Batches(Fixed):
    """A pass of steps lr t^(−2/3) s(X_B, W_B) over shuffled batches B of ``size`` rows; the last may be smaller.

    At a given model a batch drawn at random gives its share of the rows times a full step on average.
    """

    size: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("size", self.size, 1, integer=True)

    def _next(self, F: Objective, point: Point, t: int, rng: np.random.RandomState) -> Point:
        family, statistics, parameters = F.family, point.statistics, point.parameters
        lr = self.learning_rate * t ** (-2 / 3)
        order = rng.permutation(len(F.y))
        for start in range(0, len(order), self.size):
            index = order[start : start + self.size]
            share = len(index) / len(order)
            X = rows_at(F.X, index)
            log_P = log_posterior_of(family, X, parameters)
            gradient = family.statistics(X, F.weights(log_P, index))
            if F.target:
                gradient = gradient + share * F.target.weight * F.target.statistics
            new = F.moved(statistics, gradient, lr, share)
            statistics, parameters = self._valid(family, statistics, new)
        return F.evaluate(statistics, parameters, lr)


class Safe(StepOfLength):
    """Steps that stay valid and never lower the objective, the first one tried of length ``learning_rate`` > 0.

    Plain ones, halved until they climb enough, and accelerated ones between, which take the curvature of the objective
    F from the last updates: of these a run keeps the changes of statistics, of natural parameters and of the gradient
    g, (Δs_i, Δη_i, Δg_i). It moves by Σ_i γ_i Δs_i + lr g̃, where what remains of the gradient, g̃ = g + Σ_i γ_i Δg_i,
    is orthogonal to all Δη_j (Anderson acceleration of type I): in the span of the Δη_i it goes to the maximum of a
    quadratic model of F. The matrix −⟨Δη_j, Δg_i⟩ of this system, symmetric if F is quadratic, is made so, scaled to a
    unit diagonal, and solved by least squares without the singular values below `RESOLVED`. Every step is bent by
    ``safe_update`` to be valid, and accepted only if F gains enough for the way it goes.
    """

    stop_reason = "no_step"

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        require(objective.family, "a safe step")
        return SafeRun(objective, self.learning_rate)


class SafeRun:
    """What the safe steps on one objective remember: the lengths of the last and the next, and past updates."""

    def __init__(self, objective: Objective, lr: float) -> None:
        self.objective = objective
        self.lr = self.trial = min(lr, LONGEST_STEP)
        self.exponential = can(objective.family, "convergence")
        self.secants: list[tuple[Array, Array, Array]] = []

    def __call__(self, point: Point, t: int) -> Point | None:
        following = None
        if self.secants and t % PLAIN_EVERY:
            following = self._accepted(point, self.accelerated(point), self.lr)
        if following is None:
            following = self._plain(point)
        if following is not None and self.exponential:
            self.remember(point, following)
        return following

    def _plain(self, point: Point) -> Point | None:
        """The longest of the steps lr, lr/2, lr/4, … that climbs enough; doubled next time if it is the first."""
        lr = self.trial
        while lr > self.trial * SHORTEST_STEP:
            change = self.objective.moved(point.statistics, point.gradient, lr) - point.statistics
            following = self._accepted(point, self._conditioned(point, change), lr)
            if following is not None:
                self.lr, self.trial = lr, min(2 * lr, LONGEST_STEP) if lr == self.trial else lr
                return following
            lr /= 2
        return None

    def _accepted(self, point: Point, change: Statistics, lr: float) -> Point | None:
        """The point that a change of the statistics leads to, if it is valid and F gains enough for the way."""
        F = self.objective
        try:
            following = F.evaluate(F.family.safe_update(point.statistics, change), step=lr)
            enough = following.value - point.value >= SUFFICIENT_GAIN * F.distance(point, following)
            return following if enough else None
        except InvalidStatistics:  # rounding can make a covariance singular that is not so in exact arithmetic
            return None

    def accelerated(self, point: Point) -> Statistics:
        """Σ_i γ_i Δs_i + lr g̃."""
        F, s, (ds, deta, dg) = self.objective, point.statistics, map(np.array, zip(*self.secants))
        g = F.ascent(point).ravel()
        curvature = -0.5 * (deta @ dg.T + dg @ deta.T)  # symmetric but for terms of second order
        scale = 1 / np.sqrt(curvature.diagonal())
        curvature *= scale[:, None] * scale
        gamma = scale * np.linalg.lstsq(curvature, scale * (deta @ g), rcond=RESOLVED)[0]
        remaining = self._conditioned(point, s.unravel(g + gamma @ dg))
        return s.unravel(gamma @ ds) + self.lr / (1 + self.lr * F.pull(s)) * remaining

    def _conditioned(self, point: Point, change: Statistics) -> Statistics:
        """A change of the statistics as the family conditions it by s(X, P) = s(X, Y) − s(X, Y − P)."""
        F = self.objective
        if F.rule is not calibration_weights:
            return change
        of_rows = point.gradient - F.target.weight * F.target.statistics if F.target else point.gradient
        return F.family.precondition(point.statistics, F.labels - of_rows, change)

    def remember(self, old: Point, new: Point) -> None:
        """Keep what the update tells of the curvature, unless it is that of no maximum."""
        ds = (new.statistics - old.statistics).ravel()
        dg = (self.objective.ascent(new) - self.objective.ascent(old)).ravel()
        before, after = old.natural.ravel(), new.natural.ravel()
        finite = np.isfinite(before) & np.isfinite(after)  # an empty cell stays empty: it does not count
        deta = np.subtract(after, before, out=np.zeros_like(before), where=finite)
        if -(deta @ dg) > np.finfo(float).tiny:
            self.secants = [*self.secants, (ds, deta, dg)][-SECANTS:]
