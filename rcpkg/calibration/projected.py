"""The sources' gradient descent on the log-loss, in natural parameters, with its projections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rcpkg.base import InvalidStatistics
from rcpkg.calibration.objective import Objective, Point, sample_size
from rcpkg.calibration.steps import Run, Step
from rcpkg.checks import check_choice, check_number
from rcpkg.families import require

GRADIENTS = ("corrected", "printed")


@dataclass(frozen=True)
class Projected(Step):
    """η + (lr/m) ∇CLL(η), m the weight of all rows, then projection: gradient descent on the mean log-loss.

    With lr = ``learning_rate`` > 0, for `CategoricalNB`, `QDA` and `SharedVarianceGaussianNB`; see `categorical_step`,
    `quadratic_step` and `linear_step`. The ``gradient`` is "corrected", or as it is "printed" in the sources.
    """

    learning_rate: float = 0.1
    gradient: str = "corrected"

    stop_reason = "invalid"

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, 0, above=True)
        check_choice("gradient", self.gradient, GRADIENTS)

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        require(objective.family, "ProjectedGradientDescent")

        def run(point: Point, t: int) -> Point | None:
            try:
                return self._next(objective, point)
            except InvalidStatistics:
                return None

        return run

    def _next(self, F: Objective, point: Point) -> Point:
        family, old, printed = F.family, point.parameters, self.gradient == "printed"
        size = sample_size(point.statistics)
        scale = self.learning_rate / size
        new = family.projected_step(old, F.ascent(point) * scale, F.labels * scale, printed)
        return F.at(size * family.mean_parameters(new), new, self.learning_rate)
