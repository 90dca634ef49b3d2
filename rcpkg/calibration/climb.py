"""The one loop: steps from the start of an objective, until a stop says that the path is over."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from rcpkg.calibration.objective import Objective, Point
from rcpkg.calibration.steps import Step
from rcpkg.calibration.stops import Converged, Stop
from rcpkg.families import Statistics


@dataclass
class Path:
    """The way of a `climb`: the losses of all its points, the last of these, and the one that is meant.

    Attributes
    ----------
    objective : Objective
        What was climbed.
    point : Point
        The last point.
    chosen : Point
        The one that the stop chose.
    best_iter : int
        Its number; the start has 0.
    stop_reason : str
        Why the path ended: "max_iter", or what the stop or the step says.
    history : list of dict
        A row a point: iteration, soft_error, error, log_loss, step, and what the stop measures.
    points : list of Point
        All points, where they were asked for.
    """

    objective: Objective
    point: Point
    chosen: Point
    best_iter: int = 0
    stop_reason: str = ""
    history: list[dict[str, float]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Number of the last point."""
        return len(self.history) - 1

    @property
    def frame(self) -> pd.DataFrame:
        """The history as a table."""
        return pd.DataFrame(self.history)

    def _enter(self, point: Point, stop: Stop) -> None:
        record = {"iteration": len(self.history), **point.losses._asdict(), "step": point.step}
        self.history.append(record | stop.measure(point))
        self.point = point
        if stop.chosen(self) == self.n_iter:
            self.chosen, self.best_iter = point, self.n_iter


def climb(
    objective: Objective,
    step: Step,
    stop: Stop | None = None,
    max_iter: int = 1000,
    *,
    start: Statistics | None = None,
    random_state: int | np.random.RandomState | None = None,
    keep_points: bool = False,
) -> Path:
    """Steps from the start of an objective until the path is over.

    Parameters
    ----------
    objective : Objective
        What is climbed.
    step : Step
        How: `Fixed`, `Batches`, `Safe`, `Projected`.
    stop : Stop, optional
        Until when, and which point is meant: `Converged()`, which is the default, `SoftErrorRises`, `Best`, `FirstOf`.
    max_iter : int, default=1000
        Greatest number of steps.
    start : Statistics, optional
        Where to begin, if not at ``objective.start``.
    random_state : int or RandomState, optional
        For steps that draw.
    keep_points : bool, default=False
        Whether ``points`` holds all points, not the history of their losses alone.

    Returns
    -------
    Path

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> from rcpkg.calibration import Fixed, Objective, SoftErrorRises, climb
    >>> objective = Objective.of(QDA(), *load_iris(return_X_y=True))
    >>> path = climb(objective, Fixed(0.1), SoftErrorRises(), max_iter=63)
    >>> path.n_iter, path.chosen.losses.error
    (63, 0.006666666666666667)
    """
    stop = Converged() if stop is None else stop
    run = step.begin(objective, check_random_state(random_state))
    first = objective.at(objective.start if start is None else start)
    path = Path(objective, first, first, points=[first] if keep_points else [])
    path._enter(first, stop)
    for t in range(1, max_iter + 1):
        path.stop_reason = stop.over(path)
        if path.stop_reason:
            return path
        point = run(path.point, t)
        if point is None:
            path.stop_reason = step.stop_reason
            return path
        path._enter(point, stop)
        if keep_points:
            path.points.append(point)
    path.stop_reason = stop.over(path) or "max_iter"
    return path
