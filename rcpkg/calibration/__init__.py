r"""Calibration of closed-form generative classifiers, and conditional likelihood directly.

One idea a noun:

- a *rule* makes signed weights W, n rows and a column a class, of the posteriors P and the one-hot labels Y:
  `calibration_weights` Y − P, `frequency_weights`, `soft_error_weights`;
- an `Objective` is a family, encoded rows, labels, weights of the rows, a rule and, if there is one, a `Target`; it
  evaluates statistics to a `Point` (statistics, parameters, gradient, losses, value) by one pass over the rows, and
  nothing ever changes it;
- a *step* leads from a point to the next: `Fixed`, `Batches`, `Safe`, or at once to the optimum of
  conditional likelihood: `Newton`, `LBFGS`. ``step.begin(objective, rng)`` starts a run, the function (point, t) → next
  point, or None. ``keeps_prior`` says whether the prior of the estimator acts on all points and not on the start alone,
  ``stop_reason`` why there is no further one. A point's ``step`` is the length of the step to it;
- a *stop* says by ``over(path)`` why a path ends where it is, or "", by ``chosen(path)`` which of its points is meant
  (the last, or what it was before), and by ``measure(point)`` what else enters the history: `Converged`,
  `SoftErrorRises`, `Best`; `HeldOut` is the learners' way to a `Best` on rows held out;
- `climb` is the only loop: from the start of an objective, by a step, until a stop, to a `Path`.

The learners are presets of these. `ConditionalLikelihood` moves the natural parameters η, in which the conditional
log-likelihood CLL is concave, with the gradient s(X, Y − P).

Symbols are those of the book's page of notation.
"""

from rcpkg.calibration.choose_weight import RiskCalibrationCV
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional_likelihood import ConditionalLikelihood
from rcpkg.calibration.learner import RiskCalibration
from rcpkg.calibration.newton import LBFGS, Newton
from rcpkg.calibration.objective import Objective, Point, Target
from rcpkg.calibration.presets import TM, DiscriminativeFrequencyEstimate, SoftErrorCalibration
from rcpkg.calibration.rules import (
    Losses,
    Rule,
    calibration_weights,
    frequency_weights,
    losses,
    mean_losses,
    row_losses,
    soft_error_weights,
)
from rcpkg.calibration.score_test import CalibrationTest, calibration_test
from rcpkg.calibration.steps import Batches, Fixed, Run, Safe, Step
from rcpkg.calibration.stops import Best, Converged, HeldOut, Path, SoftErrorRises, Stop
from rcpkg.calibration.wanbiac import WANBIAC

__all__ = [
    "LBFGS",
    "TM",
    "WANBIAC",
    "Batches",
    "Best",
    "CalibrationTest",
    "ConditionalLikelihood",
    "Converged",
    "DiscriminativeFrequencyEstimate",
    "Fixed",
    "HeldOut",
    "Losses",
    "Newton",
    "Objective",
    "Path",
    "Point",
    "RiskCalibration",
    "RiskCalibrationCV",
    "Rule",
    "Run",
    "Safe",
    "SoftErrorCalibration",
    "SoftErrorRises",
    "Step",
    "Stop",
    "Target",
    "calibration_test",
    "calibration_weights",
    "climb",
    "frequency_weights",
    "losses",
    "mean_losses",
    "row_losses",
    "soft_error_weights",
]
