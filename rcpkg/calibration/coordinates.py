"""Named linear coordinates of the coefficients B of scores B_y · φ(x), in which L-BFGS moves.

wanbia2014's are those by the closed form. A change of coordinates z = S⁻¹B changes nothing of L-BFGS but its first
inverse Hessian, SSᵀ in the place of the identity, which is its ``metric``.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.conditional import Conditional, Iterate, Smooth, closed_form_of, finite_natural
from rcpkg.calibration.features import Features
from rcpkg.calibration.logistic import Curvature, Evaluation, LogisticObjective
from rcpkg.calibration.objective import Objective
from rcpkg.families import Statistics
from rcpkg.linalg import RESOLVED

COORDINATES = ("whitened", "natural", "closed_form", "curvature")


def units(name: str, objective: LogisticObjective, B: Array) -> Array:
    """S of B = S z, entry by entry, shape (r, p), by its name, with B for the start.

    "natural": 1. "closed_form": B° of the closed form, so that z is 1 at the start (wanbia2014 eq. 3). "curvature":
    1/√h, h the diagonal of the Hessian at the closed form.
    """
    if name == "natural":
        return np.ones_like(B)
    if name == "closed_form":
        return B
    flat = objective.diagonal(np.zeros_like(B))
    return 1 / np.sqrt(np.maximum(objective.diagonal(B), RESOLVED * np.where(flat > 0, flat, 1.0)))


class Named(Smooth):
    """Conditional likelihood as a function of all coefficients B of the features of η, or, with a ridge, of X as given,
    of which some depend on others. ``minimal`` is the same in coordinates that do not: it tells how far the optimum is.
    """

    def __init__(self, objective: Objective, l2: float, name: str) -> None:
        self.minimal, self.source = Conditional(objective, l2), objective
        self.family, self.name = objective.family, name
        self.size, self.total_weight, self.r = objective.size, objective.total_weight, self.minimal.r
        features = Features(objective.family.feature_map(objective.X, "plain" if l2 else "natural"))
        self.data = LogisticObjective(features, objective.y, self.r, objective.weight, l2, self.r)
        self.rows, self.penalised = self.minimal.rows, self.minimal.penalised

    start = None

    def evaluate(self, statistics: Statistics | None) -> Iterate:
        """The point of ``statistics``, or of the closed form."""
        natural = closed_form_of(self.source, statistics)
        if self.name == "closed_form" and np.isneginf(natural.ravel()).any():
            raise InvalidStatistics(
                "a state has probability zero in the closed form, of which coordinates='closed_form' are multiples; "
                "set prior_strength > 0 of the estimator, or choose other coordinates"
            )
        self.like = finite_natural(natural)
        self.minimal.at_natural(natural)
        return self.iterate(self.data.features.coefficients(self.like).ravel())

    def scored(self, z: Array) -> Array:
        """B."""
        return z.reshape(self.r, -1)

    def __call__(self, z: Array) -> Evaluation:
        evaluation = self.data(self.scored(z))
        return evaluation._replace(gradient=evaluation.gradient.ravel())

    def iterate(self, z: Array, evaluation: Evaluation | None = None, ahead: Array | None = None) -> Iterate:
        return NamedIterate(self, z, self(z) if evaluation is None else evaluation, ahead)

    def natural(self, z: Array) -> Statistics:
        return self.data.features.natural(self.scored(z), self.like)

    def is_attained(self, point: Iterate) -> bool:
        return self.minimal.is_attained(self.minimal.at_natural(point.natural))


class NamedIterate(Iterate):
    """A point whose distance to the optimum minimal coordinates tell."""

    @cached_property
    def promise(self) -> float:
        return self.objective.minimal.at_natural(self.natural).promise

    @cached_property
    def estimate(self) -> float:
        return self.promise if self.ahead is None else super().estimate


def metric(name: str, F: Smooth, z: Array) -> Callable[[Array], Array]:
    """SSᵀ of the coordinates with this name, at the start z."""
    if isinstance(F, Named):
        scale = units(name, F.data, F.scored(z)).ravel() ** 2
        return lambda g: scale * g
    part = F.part or F
    return Curvature.from_blocks([part.reference] if F.dense else part.blocks(None)).solve
