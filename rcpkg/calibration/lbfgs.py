"""L-BFGS from the closed form, in named coordinates: linear ones of the coefficients, or the free ones of a family.

Linear ones are diagonal or other changes of the coefficients B of scores B_y · φ(x); wanbia2014's are those by the
closed form. Free ones keep η in its domain where a target asks for it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.logistic import Evaluation, LogisticObjective, posteriors, row_sums
from rcpkg.calibration.newton import MEMORY, Found, Iterates, plan_of
from rcpkg.calibration.objective import Objective
from rcpkg.calibration.rules import Losses
from rcpkg.families import FreeCoordinates, Statistics, one_hot

LEAST_CURVATURE = 1e-6  # of a coordinate, relative to that at equal posteriors: saturated ones have none
LARGEST_WHITENED = 3000  # features, whose square is kept
LEAST_VARIANCE = 1e-13  # of a combination of as many features of size one: what is less is rounding
ILL_CONDITIONED = 1e3  # times tol: a Newton step so long where the slope in the coordinates is tol
TIGHTER = 0.1  # of the slope that L-BFGS ended at, where a Newton step is still too long


class Linear(NamedTuple):
    """B = z · map, entry by entry, or, ``mixed``, B = zT with a matrix T of orthogonal rows for the ``map``."""

    start: Array  # z of the start
    map: Array
    mixed: bool = False

    def coefficients(self, z: Array) -> Array:
        """B of z."""
        return z @ self.map if self.mixed else z * self.map

    def gradient(self, slope: Array) -> Array:
        """The gradient in z of a function whose gradient in B is ``slope``."""
        return slope @ self.map.T if self.mixed else slope * self.map


def linear_coordinates(name: str, objective: LogisticObjective, B: Array) -> Linear:
    """Coordinates of the coefficients B, shape (r, p), by their name, with B for the start.

    "natural": z = B. "closed_form": B = z B°, with B° that of the closed form, 1 at the start (wanbia2014 eq. 3).
    "curvature": z = √h B, h the diagonal of the Hessian at the closed form. "whitened": B = z Λ^(−1/2) Uᵀ, with UΛUᵀ
    the second moments of the features over the rows and the Hessian of the penalty, without what has neither.
    """
    if name == "natural":
        return Linear(B, np.ones_like(B))
    if name == "closed_form":
        return Linear((B != 0).astype(float), B)
    if name == "curvature":
        flat = objective.diagonal(np.zeros_like(B))
        root = np.sqrt(np.maximum(objective.diagonal(B), LEAST_CURVATURE * np.where(flat > 0, flat, 1.0)))
        return Linear(B * root, 1 / root)
    p = B.shape[1]
    if p > LARGEST_WHITENED:
        raise ValueError(
            f"coordinates='whitened' keeps the square of {p} features, more than {LARGEST_WHITENED}: choose 'curvature'"
        )
    G = objective.second_moments()[0] + objective.penalty_matrix()
    scale = np.sqrt(np.maximum(G.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(G / scale / scale[:, None])  # of features of one size, whatever their units
    seen = values > LEAST_VARIANCE * p
    values, vectors = values[seen], vectors[:, seen]
    return Linear((B * scale) @ vectors * np.sqrt(values), (vectors / np.sqrt(values)).T / scale, mixed=True)


def refuse_zero_probabilities(natural: Statistics) -> None:
    """Complain of −∞, at which a coordinate relative to the closed form cannot start."""
    if np.isneginf(natural.ravel()).any():
        raise InvalidStatistics(
            "a state has probability zero in the closed form, of which coordinates='closed_form' are multiples; set "
            "prior_strength > 0 of the estimator, or choose other coordinates"
        )


def in_linear_coordinates(
    objective: LogisticObjective,
    start: Statistics,
    tol: float,
    max_iter: int,
    name: str,
    certified: Callable[[], LogisticObjective | None],
) -> Found:
    """By L-BFGS in linear coordinates of the coefficients of features.

    ``certified`` is the same objective in features of good condition, whose Newton steps tell where it may end.
    """
    coordinates = linear_coordinates(name, objective, objective.features.coefficients(start))
    shape, iterates = coordinates.start.shape, Iterates(tol, objective.penalised)

    def natural(z: Array) -> Statistics:
        return objective.features.natural(coordinates.coefficients(z.reshape(shape)), start)

    def function(z: Array) -> Evaluation:
        at = objective(coordinates.coefficients(z.reshape(shape)))
        return at._replace(gradient=coordinates.gradient(at.gradient).ravel())

    def newton_length(z: Array) -> float:
        exact = certified()
        if exact is None:
            return 0.0
        V = exact.of(exact.features.coefficients(natural(z)))
        return plan_of(exact).curvature(V, 0.0).length(exact(V).gradient.ravel())

    z, reason = lbfgs(function, coordinates.start.ravel(), iterates, max_iter, newton_length)
    return Found(natural(z), iterates, reason)


def in_free_coordinates(
    objective: Objective, start: Statistics, tol: float, max_iter: int, coordinates: FreeCoordinates
) -> Found:
    """By L-BFGS in the free coordinates of a family, with or without a target."""
    first, iterates = coordinates.of(start), Iterates(tol, objective.target is not None)

    def function(z: Array) -> Evaluation:
        at = first.unravel(z)
        f = conditional_objective(objective, coordinates.natural(at))
        return f._replace(gradient=coordinates.gradient(at, f.gradient).ravel())

    z, reason = lbfgs(function, first.ravel(), iterates, max_iter)
    return Found(coordinates.natural(first.unravel(z)), iterates, reason)


def lbfgs(
    function: Callable[[Array], Evaluation],
    z: Array,
    iterates: Iterates,
    max_iter: int,
    newton_length: Callable[[Array], float] = lambda z: 0.0,
) -> tuple[Array, str]:
    """The z where scipy's L-BFGS ends, from a start z on, and why.

    It ends where no entry of the gradient exceeds the tol of the ``iterates``, which it enters. Where rounding ends a
    line search the next one begins, with an empty memory, as long as it gets on. Where the length √(gᵀH⁻¹g) of a Newton
    step, which no coordinates change, shows that these hide how far the optimum is, it goes on to a smaller slope.
    """
    history, slope, latest = iterates.history, iterates.tol, {}

    def at(z: Array) -> Evaluation:
        key = z.tobytes()
        if key not in latest:  # each iterate is reported right after its evaluation
            latest.clear()
            latest[key] = function(z)
        return latest[key]

    def over(z: Array) -> bool:
        length = float(np.abs(at(z).gradient).max())
        return iterates.enter(at(z), length) or length <= slope

    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal ended
        ended = over(intermediate_result.x)
        if ended:
            raise StopIteration

    ended = over(z)
    while True:
        made, before = len(history), -1
        while not ended and before < len(history) - 1 < max_iter:
            before = len(history) - 1
            options = {"maxcor": MEMORY, "gtol": slope, "ftol": 0.0, "maxfun": np.inf, "maxiter": max_iter - before}
            given = {"method": "L-BFGS-B", "jac": True, "callback": callback, "options": options}
            z = minimize(lambda z: at(z)[:2], z, **given).x  # value and gradient
        reason = iterates.reason(max_iter)
        if reason != "converged" or newton_length(z) <= ILL_CONDITIONED * iterates.tol:
            return z, reason
        if slope < iterates.tol and len(history) == made:
            return z, "ill_conditioned"
        slope, ended = TIGHTER * history[-1]["step"], False


def conditional_objective(objective: Objective, natural: Statistics) -> Evaluation:
    """f = −[CLL + b (⟨s̄, η⟩ − m̄ψ(η))] per row and pseudo-row, with its gradient in η."""
    family, target, weight = objective.family, objective.target, objective.weight
    P, own = posteriors(family.scores(objective.X, natural).T, objective.y, len(objective.family.classes_))
    sums, separated = row_sums(P, own, objective.y, len(P), weight)
    W = P.T - one_hot(objective.y, len(P))
    value, gradient = sums[2], family.statistics(objective.X, W if weight is None else W * weight[:, None])
    if target:
        mean = family.mean_parameters(family.from_natural(natural))
        value += target.weight * (target.size * family.log_partition(natural) - target.statistics.dot(natural))
        gradient = gradient + target.weight * (target.size * mean - target.statistics)
    losses = Losses(*(sums / objective.total_weight).tolist())
    return Evaluation(float(value) / objective.size, gradient / objective.size, losses, separated and not target)
