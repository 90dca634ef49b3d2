r"""Calibration of closed-form generative classifiers, and conditional likelihood directly.

`RiskCalibration` and its relatives are one loop, a rule for the weights, one pass an iteration: they change the
statistics by s ← s + lr · s(X, W), with a matrix W of signed weights, n rows and a column a class, that a *rule* makes
of the posteriors P and the one-hot labels Y, and take the parameters θ(s) anew. `ProjectedGradientDescent` and
`ConditionalLikelihood` move the natural parameters η instead, in which the conditional log-likelihood CLL is concave,
with the gradient s(X, Y − P).
"""

from rcpkg.calibration.choose_weight import RiskCalibrationCV
from rcpkg.calibration.conditional_likelihood import ConditionalLikelihood
from rcpkg.calibration.gradient_descent import (
    ProjectedGradientDescent,
    categorical_step,
    centred_at_zero,
    floor_eigenvalues,
    linear_step,
    project_simplex,
    quadratic_gradient,
    quadratic_step,
)
from rcpkg.calibration.loop import AS_PUBLISHED, RiskCalibration
from rcpkg.calibration.relatives import TM, DiscriminativeFrequencyEstimate, SoftErrorCalibration
from rcpkg.calibration.rules import (
    Losses,
    calibration_weights,
    frequency_weights,
    losses,
    mean_losses,
    row_losses,
    soft_error_weights,
)
from rcpkg.calibration.safe_steps import RESOLVED
from rcpkg.calibration.score_test import CalibrationTest, calibration_test
from rcpkg.calibration.wanbiac import WANBIAC, maximise_weighted, stochastic_pass, with_intercept

__all__ = [
    "AS_PUBLISHED",
    "RESOLVED",
    "TM",
    "WANBIAC",
    "CalibrationTest",
    "ConditionalLikelihood",
    "DiscriminativeFrequencyEstimate",
    "Losses",
    "ProjectedGradientDescent",
    "RiskCalibration",
    "RiskCalibrationCV",
    "SoftErrorCalibration",
    "calibration_test",
    "calibration_weights",
    "categorical_step",
    "centred_at_zero",
    "floor_eigenvalues",
    "frequency_weights",
    "linear_step",
    "losses",
    "maximise_weighted",
    "mean_losses",
    "project_simplex",
    "quadratic_gradient",
    "quadratic_step",
    "row_losses",
    "soft_error_weights",
    "stochastic_pass",
    "with_intercept",
]
