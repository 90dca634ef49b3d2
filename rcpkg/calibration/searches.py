"""Searches for the optimum of conditional likelihood: Newton's method, and L-BFGS in named coordinates."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from rcpkg.base import Array, log_posterior
from rcpkg.calibration.coordinates import linear_coordinates
from rcpkg.calibration.logistic import Evaluation, LogisticObjective
from rcpkg.calibration.newton import MEMORY, Iterates, first_guess, minimise, plan_of
from rcpkg.calibration.objective import Objective
from rcpkg.calibration.rules import mean_losses, row_losses
from rcpkg.families import FreeCoordinates, Statistics

ILL_CONDITIONED = 1e3  # times tol: a Newton step so long where the slope in the coordinates is tol
TIGHTER = 0.1  # of the slope that L-BFGS ended at, where a Newton step is still too long


class Search:
    """A search for the least f = −[CLL + b (⟨s̄, η⟩ − m̄ψ(η))] per row and pseudo-row, or with l2."""

    def __init__(self, tol: float, penalised: bool) -> None:
        self.iterates = Iterates(tol, penalised)

    def natural(self) -> Statistics:
        """η at the end of the search."""
        raise NotImplementedError

    def minimise(self, max_iter: int) -> str:
        """Search, and tell why it ended."""
        raise NotImplementedError


class NewtonSearch(Search):
    """By `minimise`, from the better of the closed form and what a sample of the rows, or a regression, offers."""

    def __init__(self, objective: LogisticObjective, start: Statistics, tol: float) -> None:
        super().__init__(tol, bool(objective.l2))
        self.objective, self.start = objective, start
        self.V = objective.of(objective.features.coefficients(start))

    def natural(self) -> Statistics:
        return self.objective.features.natural(self.objective.coefficients(self.V), self.start)

    def minimise(self, max_iter: int) -> str:
        at = self.objective(self.V)
        if not self.iterates.enter(at, float(np.abs(at.gradient).max())) and max_iter:
            V, at = first_guess(self.objective, self.V, at)
            self.V, _ = minimise(self.objective, plan_of(self.objective), V, at, self.iterates.record, max_iter)
        return self.iterates.reason(max_iter)


class QuasiNewtonSearch(Search):
    """By scipy's L-BFGS in coordinates z."""

    def __init__(self, start: Array, tol: float, penalised: bool) -> None:
        super().__init__(tol, penalised)
        self.z, self.latest = start, {}

    def at(self, z: Array) -> Evaluation:
        """Value and gradient in z, the losses, and whether all rows are separated."""
        raise NotImplementedError

    def newton_length(self) -> float:
        """Length √(gᵀH⁻¹g) of a Newton step from here, which no coordinates change; zero where it is not to be had."""
        return 0.0

    def minimise(self, max_iter: int) -> str:
        """Where a Newton step shows that the coordinates hide how far the optimum is, go on to a smaller slope."""
        history, slope = self.iterates.history, self.iterates.tol
        while True:
            made = len(history)
            self._search(max_iter, slope)
            reason = self.iterates.reason(max_iter)
            if reason != "converged" or self.newton_length() <= ILL_CONDITIONED * self.iterates.tol:
                return reason
            if len(history) == made:
                return "ill_conditioned"
            slope = TIGHTER * history[-1]["step"]

    def _search(self, max_iter: int, slope: float) -> None:
        """L-BFGS until no entry of the gradient exceeds ``slope``; where rounding ends a line search the next search
        begins, with an empty memory, as long as it gets on."""
        options = {"maxcor": MEMORY, "gtol": slope, "ftol": 0.0, "maxfun": np.inf}
        history = self.iterates.history
        over, before = not history and self._record(self.z, slope), -1

        def callback(intermediate_result: OptimizeResult) -> None:
            nonlocal over
            over = self._record(intermediate_result.x, slope)
            if over:
                raise StopIteration

        while not over and before < len(history) - 1 < max_iter:
            before = len(history) - 1
            options["maxiter"] = max_iter - before
            given = {"method": "L-BFGS-B", "jac": True, "callback": callback, "options": options}
            self.z = minimize(lambda z: self._evaluate(z)[:2], self.z, **given).x  # value and gradient

    def _evaluate(self, z: Array) -> Evaluation:
        key = z.tobytes()
        if key not in self.latest:  # L-BFGS reports each iterate right after its evaluation
            self.latest = {key: self.at(z)}
        return self.latest[key]

    def _record(self, z: Array, slope: float) -> bool:
        at = self._evaluate(z)
        length = float(np.abs(at.gradient).max())
        return self.iterates.enter(at, length) or length <= slope


class LinearSearch(QuasiNewtonSearch):
    """In linear coordinates of the coefficients of features; ``certified`` is the same objective in features of good
    condition, whose Newton steps tell where the search may end."""

    def __init__(
        self,
        objective: LogisticObjective,
        start: Statistics,
        tol: float,
        name: str,
        certified: Callable[[], LogisticObjective | None],
    ) -> None:
        self.objective, self.like, self.certified = objective, start, certified
        self.coordinates = linear_coordinates(name, objective, objective.features.coefficients(start))
        super().__init__(self.coordinates.start.ravel(), tol, bool(objective.l2))

    def natural(self) -> Statistics:
        return self.objective.features.natural(self._coefficients(self.z), self.like)

    def at(self, z: Array) -> Evaluation:
        at = self.objective(self._coefficients(z))
        return at._replace(gradient=self.coordinates.gradient(at.gradient).ravel())

    def newton_length(self) -> float:
        objective = self.certified()
        if objective is None:
            return 0.0
        V = objective.of(objective.features.coefficients(self.natural()))
        return plan_of(objective).curvature(V, 0.0).length(objective(V).gradient.ravel())

    def _coefficients(self, z: Array) -> Array:
        return self.coordinates.coefficients(z.reshape(self.coordinates.start.shape))


class StandardisedSearch(QuasiNewtonSearch):
    """In standardised coordinates, with or without a target."""

    def __init__(self, objective: Objective, coordinates: FreeCoordinates, start: Statistics, tol: float) -> None:
        super().__init__(start.ravel(), tol, objective.target is not None)
        self.objective, self.coordinates, self.start = objective, coordinates, start

    def natural(self) -> Statistics:
        return self.coordinates.natural(self.start.unravel(self.z))

    def at(self, z: Array) -> Evaluation:
        at = self.start.unravel(z)
        f = conditional_objective(self.objective, self.coordinates.natural(at))
        return f._replace(gradient=self.coordinates.gradient(at, f.gradient).ravel())


def conditional_objective(objective: Objective, natural: Statistics) -> Evaluation:
    """f = −[CLL + b (⟨s̄, η⟩ − m̄ψ(η))] per row and pseudo-row, with its gradient in η."""
    model, target = objective.family, objective.target
    scores = model.scores(objective.X, natural)
    log_P = log_posterior(scores, np.zeros(scores.shape[1]))
    by_row = row_losses(log_P, objective.y)
    others = np.where(objective.Y > 0, -np.inf, scores).max(axis=1)
    ahead = scores[np.arange(len(scores)), objective.y] > others
    ahead = ahead if objective.sample_weight is None else ahead[objective.sample_weight > 0]
    losses = mean_losses(by_row, objective.sample_weight)
    value = -objective.total_weight * losses.log_loss
    gradient = model.statistics(objective.X, objective.weights(log_P, slice(None)))
    if target:
        b, size = target.weight, target.size
        mean = model.mean_parameters(model.from_natural(natural))
        value += b * (target.statistics.dot(natural) - size * model.log_partition(natural))
        gradient = gradient + b * (target.statistics - size * mean)
    separated = bool(np.all(ahead)) and not target
    return Evaluation(-value / objective.size, gradient / -objective.size, losses, separated)
