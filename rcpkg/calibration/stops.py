"""Paths, and stops, which say whether a path is over and which of its points is meant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.constants import SAFE_TOL
from rcpkg.calibration.objective import Objective, Point
from rcpkg.calibration.rules import Losses, losses
from rcpkg.checks import check_choice, check_number


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
        Why the path ended: "converged", "separable", "max_iter", or what else the stop or the step says.
    history : list of dict
        A row a point: iteration, soft_error, error, log_loss, step, and what the stop measures.
    joint_model : str
        Which model that is, of those with its posteriors: "iterate", or what `optimum` says of its end.
    points : list of Point
        All points, where they were asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import GaussianNB
    >>> from rcpkg.calibration import Fixed, Objective, SoftErrorRises, climb
    >>> X, y = load_iris(return_X_y=True)
    >>> path = climb(Objective.from_estimator(GaussianNB(), X, y), Fixed(0.1), SoftErrorRises(), 63)
    >>> path.best_iter, path.stop_reason
    (63, 'max_iter')
    >>> round(path.chosen.model.score(X, y), 2)
    0.97
    """

    objective: Objective
    point: Point
    chosen: Point
    best_iter: int = 0
    stop_reason: str = ""
    joint_model: str = "iterate"
    history: list[dict[str, float]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Number of the last point."""
        return len(self.history) - 1

    @property
    def value(self) -> float:
        """Minus the objective at the last point, a row and pseudo-row."""
        return -self.point.value / self.objective.size

    @property
    def frame(self) -> pd.DataFrame:
        """The history as a table."""
        return pd.DataFrame(self.history)

    def enter(self, point: Point, stop: Stop) -> None:
        """Add a ``point``; it is chosen if the ``stop`` means it."""
        record = {"iteration": len(self.history), **point.losses._asdict(), "step": point.step}
        self.history.append(record | point.extras | stop.measure(point))
        self.point = point
        if stop.chosen(self) == self.n_iter:
            self.chosen, self.best_iter = point, self.n_iter


@dataclass(frozen=True)
class Stop:
    """A stop that never ends a path and chooses its last point; subclasses change the one or the other.

    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> from rcpkg.calibration import Fixed, climb
    >>> F = Objective.from_estimator(QDA(), *load_iris(return_X_y=True))
    >>> path = climb(F, Fixed(0.1), Stop(), max_iter=9)
    >>> [stop.over(path) for stop in (Stop(), Converged(tol=1.0), SoftErrorRises())]
    ['', 'converged', '']
    >>> Best("error").chosen(path) == path.frame.error.argmin(), Stop().measure(path.point)
    (np.True_, {})
    """

    def over(self, path: Path) -> str:
        """Why a ``path`` ends where it is, or nothing if it goes on."""
        return ""

    def chosen(self, path: Path) -> int:
        """Number of the point that is meant: the last of the ``path``, or what it was before."""
        return len(path.history) - 1

    def measure(self, point: Point) -> dict[str, float]:
        """What a ``point`` enters into the history beside its losses."""
        return {}


@dataclass(frozen=True)
class Converged(Stop):
    """Ends a path where the next step promises a gain of at most ``tol``, in nats a row and pseudo-row; 0: never.

    On safe steps it is the promise of one of length one, `Objective.promised_gain`, by which a model without natural
    parameters never converges. In coordinates it is that of Newton's step, whoever makes the next one. Without a
    penalty a model that separates the rows has no optimum: the path ends, "separable", where the log-loss is below
    √(2 tol). ``certified`` asks the Hessian at the last point, and not what stood for it on the way there.
    """

    tol: float = SAFE_TOL
    certified: bool = True

    def __post_init__(self) -> None:
        check_number("tol", self.tol, 0)

    def over(self, path: Path) -> str:
        point = path.point
        if not self.tol:
            return ""
        if point.separated:
            return "separable" if point.losses.log_loss < np.sqrt(2 * self.tol) else ""
        # the estimate of an optimiser without a curvature costs nothing, and the promise a Hessian
        converged = point.estimate <= self.tol and (not self.certified or point.promise <= self.tol)
        return "converged" if converged else ""


class SoftErrorRises(Stop):
    """Ends a path where the training soft error rises, and chooses the point before (rc2025 Algorithm 1)."""

    def over(self, path: Path) -> str:
        return "soft_error" if self._rises(path) else ""

    def chosen(self, path: Path) -> int:
        return super().chosen(path) - self._rises(path)

    @staticmethod
    def _rises(path: Path) -> bool:
        last = [row["soft_error"] for row in path.history[-2:]]
        return last[-1] > last[0]


@dataclass(frozen=True)
class Best(Stop):
    """Chooses the first point of least ``loss``, a name of the `Losses` (rc2024: "error"), and never ends a path.

    ``held_out`` are validated rows, class numbers and weights (or None) on which the loss is taken, the training rows
    if there are none.
    """

    loss: Literal["soft_error", "error", "log_loss"] = "soft_error"
    held_out: tuple[Any, NDArray[np.intp], Array | None] | None = None

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, Losses._fields)

    def chosen(self, path: Path) -> int:
        values = [row[self._column] for row in path.history]
        return min(range(len(values)), key=values.__getitem__)

    def measure(self, point: Point) -> dict[str, float]:
        if self.held_out is None:
            return {}
        X, y, weight = self.held_out
        log_P = point.log_posterior(point.objective.family.encode_new(X))
        return {self._column: getattr(losses(log_P, y, weight), self.loss)}

    @property
    def _column(self) -> str:
        return self.loss if self.held_out is None else f"validation_{self.loss}"


@dataclass(frozen=True)
class HeldOut:
    """A learner's way to `Best`: the point of least log-loss on a ``fraction`` of the rows, which are held out.

    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA, RiskCalibration
    >>> model = RiskCalibration.as_published(QDA(), stopping=HeldOut(0.2), random_state=0)
    >>> model.fit(*load_iris(return_X_y=True)).history_.columns[-1]
    'validation_log_loss'
    """

    fraction: float = 0.2

    def __post_init__(self) -> None:
        check_number("fraction", self.fraction, 0, above=True)
        if self.fraction >= 1:
            raise ValueError(f"fraction must lie between 0 and 1; got {self.fraction!r}")

    def divided(
        self, y: NDArray[np.intp], sample_weight: Array | None, rng: np.random.RandomState
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Training and held-out rows of class numbers ``y``, each class on both sides, drawn by ``rng``; some of the
        latter must have a positive ``sample_weight``.
        """
        from sklearn.model_selection import train_test_split

        try:
            train, held = train_test_split(np.arange(len(y)), test_size=self.fraction, stratify=y, random_state=rng)
        except ValueError as error:
            raise ValueError(
                f"stopping=HeldOut({self.fraction!r}) does not leave rows of each class on both sides"
            ) from error
        if sample_weight is not None and not sample_weight[held].any():
            raise ValueError("sample_weight is zero for all held-out rows; raise the fraction of HeldOut")
        return train, held
