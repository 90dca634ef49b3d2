"""Safe steps: calibration that stays valid and never lowers its objective."""

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.problem import Iterate, Problem
from rcpkg.calibration.rules import calibration_weights
from rcpkg.families import Statistics

SUFFICIENT_GAIN = 1e-4  # a safe step gains at least this times m [KL(old ‖ new) + KL(new ‖ old)]
LONGEST_STEP = 2.0**40  # of the safe steps, which double: on separable data the gradient vanishes
SHORTEST_STEP = 2.0**-40  # relative to the last accepted safe step; below it the iterate counts as stationary
SECANTS = 5  # past updates from which an accelerated safe step takes the curvature
PLAIN_EVERY = 3  # of the safe steps one in so many is plain: they alone carry the proof of the linear rate
RESOLVED = 1e-6  # singular values of the secants' curvature that count, relative to the largest; the rest is rounding


class SafeSteps:
    """The safe steps of one run: plain ones, halved until they climb enough, and accelerated ones between.

    An accelerated step takes the curvature of the objective F from the last updates, of which it keeps the changes
    of statistics, of natural parameters and of the gradient g, (Δs_i, Δη_i, Δg_i). It moves by
    Σ_i γ_i Δs_i + lr g̃, where what remains of the gradient, g̃ = g + Σ_i γ_i Δg_i, is orthogonal to all Δη_j
    (Anderson acceleration of type I): in the span of the Δη_i it goes to the maximum of a quadratic model of F.
    The matrix −⟨Δη_j, Δg_i⟩ of this system, symmetric if F is quadratic, is made so, scaled to a unit diagonal, and
    solved by least squares without the singular values below `RESOLVED`.
    Every step is bent by ``safe_update`` to be valid, and accepted only if F gains enough for the way it goes.
    """

    def __init__(self, problem: Problem, lr: float) -> None:
        self.problem = problem
        self.lr = self.trial = min(lr, LONGEST_STEP)
        calibrates = problem.rule is calibration_weights
        self.labels = problem.label_statistics() if calibrates else None
        self.exponential = hasattr(problem.model, "natural_parameters")
        self.secants: list[tuple[Array, Array, Array]] = []

    def update(self, t: int, current: Iterate) -> Iterate | None:
        """Iterate t, or None where no step is left that climbs."""
        following = None
        if self.secants and t % PLAIN_EVERY:
            following = self._accepted(current, self._accelerated(current))
        if following is None:
            following = self._plain(current)
        if following is not None and self.exponential:
            self._remember(current, following)
        return following

    def _plain(self, current: Iterate) -> Iterate | None:
        """The longest of the steps lr, lr/2, lr/4, … that climbs enough; doubled next time if it is the first."""
        lr = self.trial
        while lr > self.trial * SHORTEST_STEP:
            change = self.problem.step(current.statistics, current.gradient, lr) - current.statistics
            following = self._accepted(current, self._conditioned(current, change))
            if following is not None:
                self.lr, self.trial = lr, min(2 * lr, LONGEST_STEP) if lr == self.trial else lr
                return following
            lr /= 2
        return None

    def _accepted(self, current: Iterate, change: Statistics) -> Iterate | None:
        """The iterate that a change of the statistics leads to, if it is valid and F gains enough for the way."""
        old, model = current.statistics, self.problem.model
        try:
            following = self.problem.evaluate(model.safe_update(old, change))
            gain = following.objective - current.objective
            return following if gain >= SUFFICIENT_GAIN * self.problem.distance(current, following) else None
        except InvalidStatistics:  # rounding can make a covariance singular that is not so in exact arithmetic
            return None

    def _accelerated(self, current: Iterate) -> Statistics:
        """Σ_i γ_i Δs_i + lr g̃."""
        problem, (ds, deta, dg) = self.problem, map(np.array, zip(*self.secants))
        g = problem.ascent(current).ravel()
        curvature = -0.5 * (deta @ dg.T + dg @ deta.T)  # symmetric but for terms of second order
        scale = 1 / np.sqrt(curvature.diagonal())
        curvature *= scale[:, None] * scale
        gamma = scale * np.linalg.lstsq(curvature, scale * (deta @ g), rcond=RESOLVED)[0]
        remaining = self._conditioned(current, current.statistics.unravel(g + gamma @ dg))
        length = self.lr / (1 + self.lr * problem.pull(current.statistics))
        return current.statistics.unravel(gamma @ ds) + length * remaining

    def _conditioned(self, current: Iterate, change: Statistics) -> Statistics:
        """A change of the statistics as the model conditions it by s(X, P) = s(X, Y) − s(X, Y − P)."""
        if self.labels is None:
            return change
        problem = self.problem
        calibration = (
            current.gradient - problem.target_weight * problem.target if problem.target_weight else current.gradient
        )
        return problem.model.conditioned(current.statistics, self.labels - calibration, change)

    def _remember(self, old: Iterate, new: Iterate) -> None:
        """Keep what the update tells of the curvature, unless it is that of no maximum."""
        problem = self.problem
        ds = (new.statistics - old.statistics).ravel()
        dg = (problem.ascent(new) - problem.ascent(old)).ravel()
        before, after = problem.natural(old).ravel(), problem.natural(new).ravel()
        finite = np.isfinite(before) & np.isfinite(after)  # an empty cell stays empty: it does not count
        deta = np.subtract(after, before, out=np.zeros_like(before), where=finite)
        if -(deta @ dg) > np.finfo(float).tiny:
            self.secants = [*self.secants, (ds, deta, dg)][-SECANTS:]
