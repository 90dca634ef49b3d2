"""Newton's method and L-BFGS, as steps that `climb` takes like any other, on conditional likelihood in coordinates."""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rcpkg.base import Array
from rcpkg.calibration.conditional import Conditional, Iterate, Smooth, conjugate
from rcpkg.calibration.constants import COARSE_TOL, LEAST, MEMORY, MOST_STALLED, PATIENCE, RADIUS, STEADY
from rcpkg.calibration.coordinates import COORDINATES, Named, metric
from rcpkg.calibration.curvature import Woodbury
from rcpkg.calibration.steps import Run, Step
from rcpkg.checks import check_choice
from rcpkg.linalg import EPS, LOG_ROUNDING, backtracked

Solve = Callable[[Array], Array]


class SecondOrder(Step):
    """What Newton's method and L-BFGS have in common: they climb an `Objective` in coordinates."""

    def view(self, objective: Any) -> Smooth:
        """The objective as a function of coordinates."""
        return objective if isinstance(objective, Smooth) else Conditional(objective)


class Newton(SecondOrder):
    """Newton's steps, shortened until they gain enough: by the Hessian of all rows; where rows are many, by L-BFGS with
    that of some rows first; where the Hessian is too large, by conjugate gradients with those of each class.

    Where a whole step fails, the next one adds to the Hessian a share of that at equal posteriors (Levenberg and
    Marquardt), which is not blind where posteriors are certain. Probabilities of a joint model may vanish on the way,
    and their curvature with them: how far a step may go grows and shrinks by what the last one gained of what the
    quadratic model promised (Nocedal and Wright, 2006, algorithm 4.1).
    """

    def begin(self, objective: Any, rng: np.random.RandomState) -> Run:
        return NewtonRun()


class SharedNewton(Newton):
    """Newton's steps of which several share a Hessian of all rows. The first take that which ``solve`` solves with, if
    one is known; ``run.last`` solves with the last."""

    def __init__(self, solve: Solve | None = None) -> None:
        self.run = SharedRun(solve)

    def begin(self, objective: Any, rng: np.random.RandomState) -> Run:
        return self.run


class Stalling:
    """Ends a search after `MOST_STALLED` steps in a row without a better value than before, but for rounding."""

    idle, best = 0, np.inf

    def moved(self, point: Iterate, following: Iterate) -> Iterate | None:
        """The point that follows, or None where rounding has had the say for so many steps."""
        self.best = min(self.best, point.evaluation.value)
        gain = self.best - following.evaluation.value
        self.idle = self.idle + 1 if gain <= 4 * EPS * abs(self.best) else 0
        return following if self.idle < MOST_STALLED else None


class NewtonRun(Stalling):
    """What Newton's steps remember: how much damping the last ones wanted, and how far the next may go."""

    solve: Solve | None = None  # of a factor that serves the next step

    def __init__(self) -> None:
        self.damping, self.radius = 0.0, RADIUS
        self.pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)

    def __call__(self, point: Iterate, t: int) -> Iterate | None:
        if t == 1 and self.solve is None:
            point = search_start(point)
        self.steps = t
        end = self._step(point)
        if end is None and self.damping < 1:
            self.damping = 1.0
            end = self._step(point)
        return end and self.moved(point, end)

    def _step(self, point: Iterate) -> Iterate | None:
        F, g = point.objective, point.evaluation.gradient
        if not F.exact and F.dense and self.steps > F.patience:
            F = F.by_all_rows()
            point = F.iterate(point.z, point.evaluation)
        curvature = F.curvature(point.z, self.damping) if self.damping else point.curvature
        bounded = F.exact and not isinstance(curvature, Woodbury)  # which is at least the target's, that is not blind
        # that of all rows, where it has told a promise or values have no digits for what others do
        exactly = "newton_step" in vars(point) or point.estimate <= EPS * abs(point.evaluation.value)
        if not self.damping and (F.exact or (F.lacks_states and exactly)):
            step = point.newton_step
        elif F.exact:
            step = curvature.solve(g)
        elif self.steps <= F.patience:
            step = quasi_newton(g, curvature.solve, self.pairs)
        else:
            step = conjugate(g, F.product(point.z, self.damping), curvature.solve, self.radius)
        if bounded:
            step = bounded_step(
                F, self.radius, step, curvature.solve, g, lambda nu: F.curvature(point.z, self.damping, nu).solve
            )
        else:
            step = step / max(np.abs(F.beta(step)).max() / self.radius, 1.0)
        end = descended(point, -step)
        if end is None:
            return None
        length, following = end
        if not F.exact:
            self.pairs.append((following.z - point.z, following.evaluation.gradient - g))
        far, gain = length * np.abs(F.beta(step)).max(), point.evaluation.value - following.evaluation.value
        if length < 1:
            self.radius = max(far, LEAST)
        elif not (bounded and F.joint) or gain > 0.75 * (expected := F.quadratic_gain(point, length * step)):
            # a bounded step goes about half as far as it may; with 2 or 8 327 hostile fits take 16 or .5 % more steps
            self.radius = max(self.radius, 4 * far)
        elif gain < 0.25 * expected:
            self.radius = max(0.25 * far, LEAST)
        if length < 1:  # as is usual; with half or twice of the tens these fits take the same steps
            self.damping = min(max(10 * self.damping, LEAST), 1.0)
        else:
            self.damping = 0.1 * self.damping if self.damping > LEAST else 0.0
        return following


class SharedRun(NewtonRun):
    """Newton's steps that take one Hessian's factor, corrected by L-BFGS, until the promise shrinks too slowly: by less
    than ``COARSE_TOL`` in as many steps as a Hessian had better serve, `steps_per_hessian`.

    The bar is `RiskCalibrationCV` on up to 1,000 rows: for QDA on 846 rows of vehicle 41 in place of 63 Hessians for 8
    optima. The optimum is the same, as its Hessian tells the promise with which a path ends.
    """

    def __init__(self, solve: Solve | None) -> None:
        super().__init__()
        self.solve = self.last = solve

    def _step(self, point: Iterate) -> Iterate | None:
        F, g, end = point.objective, point.evaluation.gradient, None
        if not F.exact:
            return super()._step(point)
        if self.solve is not None and "curvature" not in point.__dict__:
            end = descended(point, -point.ahead) if np.abs(F.beta(point.ahead)).max() <= self.radius else None
        if end is not None and end[0] >= 1:
            following = end[1]
        else:
            following = super()._step(point)
            if following is None:
                return None
            self.solve = self.last = point.curvature.solve
            self.pairs.clear()
        after = following.evaluation.gradient
        self.pairs.append((following.z - point.z, after - g))
        ahead = quasi_newton(after, self.solve, self.pairs, scaled=False)
        following = F.iterate(following.z, following.evaluation, ahead)
        if following.estimate > COARSE_TOL ** (1 / F.steps_per_hessian) * point.estimate:
            self.solve = None
        return following


def descended(point: Iterate, direction: Array) -> tuple[float, Iterate] | None:
    """The first of ever shorter steps that falls enough, or the last of ever longer ones along which the slope stays:
    its length, and where it ends; None if none falls."""
    F, before = point.objective, point.evaluation
    slope = float(before.gradient @ direction)
    if not slope < 0:
        return None

    def valued(end: Array) -> tuple[float, Any]:
        after = F(end)
        if -slope > 2 * LOG_ROUNDING or not np.isfinite(after.value):
            return after.value, after
        # the mean slope tells of a gain that the values have no digits for
        return before.value + 0.5 * float((before.gradient + after.gradient) @ (end - point.z)), after

    step = backtracked(valued, point.z, before.value, direction, slope)
    if step is None:
        return None
    length, end, value, after = step
    # a direction without curvature has that which keeps factors definite, and steps would creep
    while length >= 1 and after.gradient @ direction < STEADY * slope:
        longer, before_longer = point.z + 2 * length * direction, value
        value, further = valued(longer)
        if not value < before_longer:
            break
        length, end, after = 2 * length, longer, further
    return length, F.iterate(end, after)


def bounded_step(
    F: Smooth, radius: float, step: Array, solve: Solve, g: Array, damped: Callable[[float], Solve]
) -> Array:
    """Newton's ``step`` H⁻¹g, or (H + νM)⁻¹g in the metric M of F with a ν for which no β goes farther than ``radius``.

    Where neither rows nor model show a state the curvature all but vanishes, and a step would take its log-odds away.
    ν is found as Moré and Sorensen (1983) do, by Newton's method for a step half as long as may be.
    """
    shift = 0.0
    while (far := np.abs(F.beta(step)).max() / radius) > 1:
        beta = F.beta(step) / (far * radius)  # whose square may be infinite
        pulled = F.pulled(beta)
        shift += max(shift, (beta @ beta) / (pulled @ solve(pulled)) * (2 * far - 1))
        solve = damped(shift)
        step = solve(g)
    return step


def search_start(point: Iterate) -> Iterate:
    """Where the search from a point begins.

    It is the optimum of some of the rows, to the accuracy of these, if a step from the point promises more than that.
    Otherwise it is the point, or a model that is less sure of itself where that is better."""
    F = point.objective
    if not np.isfinite(point.evaluation.value):  # rounding leaves it no model in these coordinates
        return F.better_start(point)
    part = F.part or F
    # where a Hessian of the part takes longer than a pass over all rows L-BFGS is there before
    is_searched = part is not F and not (F.lacks_states and F.passes_per_hessian > 1)
    # rows that count twice are two rows: a fit to repeated rows begins, and so ends, where the weighted one does
    enough = COARSE_TOL * len(point.z) / (2 * (part.rows if is_searched else max(F.rows, F.total_weight)))
    if (point.promise if part is F else point.estimate) <= enough:
        return point
    if not is_searched:
        return F.better_start(point)
    run, on_part = NewtonRun(), part.iterate(point.z)
    for t in range(1, PATIENCE + 1):
        following = run(on_part, t)
        if following is None:
            break
        on_part = following
        if on_part.promise <= enough:
            break
    start = F.iterate(on_part.z)
    return start if start.evaluation.value < point.evaluation.value else F.better_start(point)


@dataclass(frozen=True)
class LBFGS(SecondOrder):
    """Steps of L-BFGS from the closed form in one of the ``coordinates`` of `ConditionalLikelihood`, of which its first
    inverse Hessian is the metric."""

    coordinates: Literal["whitened", "natural", "closed_form", "curvature"] = "whitened"

    def __post_init__(self) -> None:
        check_choice("coordinates", self.coordinates, COORDINATES)

    def view(self, objective: Any) -> Smooth:
        if isinstance(objective, Smooth) or self.coordinates == "whitened":
            return super().view(objective)
        return Named(objective, 0.0, self.coordinates)

    def begin(self, objective: Any, rng: np.random.RandomState) -> Run:
        return LBFGSRun(self.coordinates)


class LBFGSRun(Stalling):
    """What L-BFGS remembers: its first inverse Hessian, and the last steps with the changes of the gradient."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
        self.metric: Callable[[Array], Array] | None = None

    def __call__(self, point: Iterate, t: int) -> Iterate | None:
        F, g = point.objective, point.evaluation.gradient
        if self.metric is None:
            self.metric = metric(self.name, F, point.z)
        end = descended(point, -quasi_newton(g, self.metric, self.pairs))
        if end is None and self.pairs:
            self.pairs.clear()
            end = descended(point, -self.metric(g))
        if end is None:
            return None
        following, after = end[1], end[1].evaluation.gradient
        self.pairs.append((following.z - point.z, after - g))
        ahead = quasi_newton(after, self.metric, self.pairs)
        return self.moved(point, F.iterate(following.z, following.evaluation, ahead))


def quasi_newton(
    g: Array, metric: Callable[[Array], Array], pairs: Collection[tuple[Array, Array]], scaled: bool = True
) -> Array:
    """H⁻¹g with the inverse Hessian of L-BFGS, from a first one, ``scaled`` as the last pair tells, and pairs of steps
    and changes of the gradient."""
    pairs = [(s, y, s @ y) for s, y in pairs]
    pairs = [(s, y, sy) for s, y, sy in pairs if sy > EPS * np.sqrt((s @ s) * (y @ y))]
    g, shares = g.copy(), []
    for s, y, sy in reversed(pairs):
        shares.append((s @ g) / sy)
        g -= shares[-1] * y
    g = metric(g)
    if pairs and scaled:
        _, y, sy = pairs[-1]
        g *= sy / (y @ metric(y))
    for (s, y, sy), share in zip(pairs, reversed(shares)):
        g += (share - (y @ g) / sy) * s
    return g
