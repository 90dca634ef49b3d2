"""The one loop: steps from the start of an objective, until a stop says that the path is over."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from rcpkg.calibration.objective import Objective
from rcpkg.calibration.steps import Step
from rcpkg.calibration.stops import Converged, Path, Stop
from rcpkg.families import Statistics
from rcpkg.linalg import MOST_STEPS
from rcpkg.progress import tell


def climb(
    objective: Objective,
    step: Step,
    stop: Stop | None = None,
    max_iter: int = MOST_STEPS,
    *,
    tol: float = 0.0,
    start: Any = None,
    random_state: int | np.random.RandomState | None = None,
    keep_points: bool = False,
) -> Path:
    """Steps from the start of an objective until the path is over.

    Parameters
    ----------
    objective : Objective
        What is climbed.
    step : Step
        The rule that leads from one point to the next.
    stop : Stop, optional
        Until when, and which point is meant; ``Converged()`` by default.
    max_iter : int, default=1000
        Greatest number of steps.
    tol : float, default=0.0
        Whatever the stop, the path ends where it has `Converged` to this tolerance; 0: it goes on.
    start : Statistics, Point or Iterate, optional
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
    >>> from rcpkg import QDA, climb
    >>> from rcpkg.calibration import Objective, Safe
    >>> X, y = load_iris(return_X_y=True)
    >>> path = climb(Objective.from_estimator(QDA(), X, y, target_weight=1.0), Safe())
    >>> path.stop_reason
    'converged'
    """
    stop, objective = Converged() if stop is None else stop, step.view(objective)
    run, kind = step.begin(objective, check_random_state(random_state)), type(step).__name__
    if not callable(run):
        raise TypeError(f"begin of {kind} must return its run, a function of a point and t; got {run!r}")
    first = objective.evaluate(objective.start) if start is None else start
    first = objective.evaluate(first) if isinstance(first, Statistics) else first
    path = Path(objective, first, first, points=[first] if keep_points else [])
    path.enter(first, stop)
    converged = Converged(tol)
    for t in range(1, max_iter + 1):
        path.stop_reason = stop.over(path) or converged.over(path)
        if path.stop_reason:
            return path
        point = run(path.point, t)
        if point is None:
            path.stop_reason = step.stop_reason
            return path
        if isinstance(point, Statistics):
            raise TypeError(f"the run of {kind} must return a point: objective.evaluate(statistics), not statistics")
        path.enter(point, stop)
        tell("iteration %d: log-loss %.6g of the training rows", t, point.losses.log_loss, iteration=True)
        path.points += [point] if keep_points else []
    path.stop_reason = stop.over(path) or converged.over(path) or "max_iter"
    return path
