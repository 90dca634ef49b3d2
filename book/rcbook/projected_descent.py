"""Gradient descent in natural parameters with projections, of rc2025 app. B and rc2024 app. C (chapters 7, 11 and 18).

Only the tables of these sources, and the chapters that compare with them, need it: the optimum that it approaches is
`rcpkg.ConditionalLikelihood`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rcpkg.base import Array, InvalidStatistics, constructed
from rcpkg.calibration.learner import Learner, Settings
from rcpkg.calibration.objective import Objective, Point, sample_size
from rcpkg.calibration.steps import Run, StepOfLength
from rcpkg.calibration.stops import Stop
from rcpkg.checks import check_choice
from rcpkg.families import CategoricalParameters, Family, GaussianParameters, Statistics, Unsupported
from rcpkg.families.gaussian import GaussianFamily
from rcpkg.families.networks import CategoricalFamily
from rcpkg.linalg import EPS

GRADIENTS = ("corrected", "printed")
LEAST_VARIANCE = 1e-2  # the sources' ε


def project_simplex(v: Array) -> Array:
    """Euclidean projection of v, shape (…, k), on the simplex: max(v − τ, 0), with τ such that it sums to one."""
    ordered = -np.sort(-v, axis=-1)
    tau = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, v.shape[-1] + 1)
    last = (ordered > tau).sum(axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(tau, last, axis=-1), 0.0)


def floor_eigenvalues(matrices: Array) -> Array:
    """Symmetric ``matrices``, shape (…, d, d), with eigenvalues below the sources' ε = 0.01 raised to it."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, LEAST_VARIANCE)[..., None, :]) @ vectors.swapaxes(-1, -2)


def _log_distribution(eta: Array, printed: bool) -> Array:
    """Logarithms of exp(η), projected on the simplex if ``printed``, else normalised."""
    with np.errstate(divide="ignore"):
        return np.log(project_simplex(np.exp(eta))) if printed else eta - np.logaddexp.reduce(eta)


def quadratic_gradient(
    weights: Statistics, first: Array, second: Array, printed: bool = False
) -> tuple[Array, Array, Array]:
    """Gradient of CLL in (η_0, η_1, η_2) of QDA, where p(y | x) ∝ exp(η_0y + η_1yᵀx + xᵀη_2y x + A_y(η)).

    ∂η_1y: Σ_i W_iy (x_i + ½ η_2y⁻¹η_1y);  ∂η_2y: Σ_i W_iy (x_i x_iᵀ − ¼ η_2y⁻¹η_1yη_1yᵀη_2y⁻¹ + ½ η_2y⁻¹).

    Parameters
    ----------
    weights : Statistics
        s(X, Y − P) about the origin of x.
    first, second : arrays of shape (r, d) and (r, d, d)
        η_1 and η_2.
    printed : bool, default=False
        Whether tr(η_2y⁻¹), added to every entry, stands for the matrix η_2y⁻¹ (rc2025 app. B, rc2024 app. C).

    Returns
    -------
    arrays of shape (r,), (r, d) and (r, d, d)
    """
    count = weights.count[:, None]
    inverse = np.linalg.inv(second)
    solved = np.linalg.solve(second, first[:, :, None])[:, :, 0]
    last = np.trace(inverse, axis1=1, axis2=2)[:, None, None] if printed else inverse
    mean_power = -0.25 * solved[:, :, None] * solved[:, None, :] + 0.5 * last
    return weights.count, weights.first + 0.5 * count * solved, weights.second + count[:, :, None] * mean_power


def centred_at_zero(s: Statistics, origin: Array | float) -> Statistics:
    """Moments s about the ``origin`` o as moments about zero.

    Σ W x = f + s_y o, Σ W xxᵀ = S + f oᵀ + o fᵀ + s_y ooᵀ, with o of shape (d,), or a number for all features.
    """
    o = np.broadcast_to(origin, s.first.shape)
    cross = s.first[:, :, None] * o[:, None, :]
    outer = s.count[:, None, None] * o[:, :, None] * o[:, None, :]
    return Statistics(
        count=s.count,
        first=s.first + s.count[:, None] * o,
        second=s.second + cross + cross.swapaxes(1, 2) + outer,
    )


def categorical_step(
    family: CategoricalFamily, old: CategoricalParameters, gradient: Statistics, labels: Statistics, printed: bool
) -> CategoricalParameters:
    """η + ``gradient``, made probabilities: ``printed``, exp(η) projected on the simplex; else normalised.

    Normalised, the log-likelihood is a function of η with A_y(η) = −Σ_j log Σ_v exp η_yjv, whose derivative the
    corrected gradient has and the printed one, with its A_y = 0, has not.

    The ``family`` knows its states; ``old`` are the parameters before the step, and ``gradient`` is lr/m times
    s(X, Y − P). ``labels``, lr/m times s(X, Y), are for `linear_step` only.
    """
    log_prior = _log_distribution(old.log_prior + gradient.count, printed)
    if printed:
        cells = np.split(old.log_prob + gradient.cells, family.families_.starts[1:], axis=1)
        return CategoricalParameters(log_prior, np.hstack([_log_distribution(part, printed) for part in cells]))
    cells = old.log_prob + (gradient.cells - gradient.count[:, None] * np.exp(old.log_prob))
    return CategoricalParameters(log_prior, family.families_.normalised(cells)[0])


def quadratic_step(
    family: GaussianFamily, old: GaussianParameters, gradient: Statistics, labels: Statistics, printed: bool
) -> GaussianParameters:
    """η + ``gradient``; p(y) by projection or normalised; covariances −½ η_2⁻¹ with their eigenvalues floored.

    The arguments are those of `categorical_step`: the ``family`` knows the origin of its moments, ``old`` are
    its parameters, ``labels`` are not used, and ``printed`` asks for the gradient and the projection of the sources.

    Raises
    ------
    InvalidStatistics
        If the step makes a matrix η_2 singular.
    """
    precision = old.whitener.swapaxes(1, 2) @ old.whitener
    first, second = (precision @ old.mean[:, :, None])[:, :, 0], -0.5 * precision
    change = quadratic_gradient(centred_at_zero(gradient, family._origin), first, second, printed)
    log_prior, first, second = old.log_prior + change[0], first + change[1], second + change[2]
    if not np.isfinite(second).all() or np.linalg.cond(second).max() > 1 / EPS:
        raise InvalidStatistics("a step of gradient descent made a matrix η_2 singular; lower learning_rate")
    covariance = floor_eigenvalues(-0.5 * np.linalg.inv(second))
    mean = (covariance @ first[:, :, None])[:, :, 0]
    power = np.diagonal(covariance, axis1=1, axis2=2)
    whitener = family._whitener(covariance, power, np.zeros(len(mean)))
    return GaussianParameters(_log_distribution(log_prior, printed), mean, covariance, whitener)


def linear_step(
    family: GaussianFamily, old: GaussianParameters, change: Statistics, labels: Statistics, printed: bool
) -> GaussianParameters:
    """Logistic regression: β_y0 and β_y move by ``change`` about zero; the variances, free in it, stay.

    The arguments are those of `categorical_step`: the ``family`` knows the origin of its moments, ``old`` are
    its parameters, and ``labels``, lr/m times s(X, Y), are the step if that of the sources is ``printed``.

    Raises
    ------
    InvalidStatistics
        If the step leaves the range of numbers.
    """
    change = labels if printed else change
    origin = np.broadcast_to(family._origin, change.first.shape[1])
    shift = change.count + (change.first + change.count[:, None] * origin) @ origin
    natural = family.natural_parameters(old)
    with np.errstate(over="ignore", invalid="ignore"):
        new = family.from_natural(
            Statistics(
                count=natural.count + shift,
                first=natural.first + change.first + change.count[:, None] * origin,
                second=natural.second,
            )
        )
    if np.isnan(new.log_prior).any() or not np.isfinite(new.mean).all():
        raise InvalidStatistics("a step of gradient descent left the range of numbers; lower learning_rate or scale X")
    return new


def _step_of(family: Family) -> Callable[..., Any]:
    """A function of the family, its parameters, lr/m times s(X, Y − P) and s(X, Y), and ``printed``."""
    if isinstance(family, CategoricalFamily):
        return categorical_step
    if isinstance(family, GaussianFamily) and family.shared == family.independent:
        return linear_step if family.shared else quadratic_step
    names = "CategoricalNB, BernoulliNB, QDA and SharedVarianceGaussianNB"
    raise Unsupported(f"ProjectedGradientDescent has steps for {names}, and none for {type(family).__name__}")


@dataclass(frozen=True)
class Projected(StepOfLength):
    """η + (lr/m) ∇CLL(η), m the weight of all rows, then projection: gradient descent on the mean log-loss.

    With lr = ``learning_rate`` > 0, for `CategoricalNB`, `BernoulliNB`, `QDA` and
    `SharedVarianceGaussianNB`. The ``gradient`` is "corrected", or as it is "printed" in the sources.
    """

    gradient: str = "corrected"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gradient", self.gradient, GRADIENTS)

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        _step_of(objective.family)
        return super().begin(objective, rng)

    def _next(self, F: Objective, point: Point, t: int, rng: np.random.RandomState) -> Point:
        family, old, printed = F.family, point.parameters, self.gradient == "printed"
        size = sample_size(point.statistics)
        scale = self.learning_rate / size
        new = _step_of(family)(family, old, F.ascent(point) * scale, F.labels * scale, printed)
        return F.evaluate(size * family.mean_parameters(new), new, self.learning_rate)


@constructed
class ProjectedGradientDescent(Learner):
    """Gradient descent on the mean log-loss in natural parameters, then projection.

    η ← η + (lr/m) ∇CLL(η), m the weight of all rows, for `CategoricalNB`, `QDA` and `SharedVarianceGaussianNB` (the
    logistic regression, which needs no projection); see `Projected`.

    Parameters
    ----------
    estimator : CategoricalNB, QDA or SharedVarianceGaussianNB
        The model; the descent starts at its closed form. Its ``priors`` must be None.
    gradient : {"corrected", "printed"}, default="corrected"
        "printed" keeps to the sources: for QDA a trace in place of a matrix, for naive Bayes A_y = 0 and a projection
        on the simplex, for the logistic regression no posteriors at all.
    learning_rate : float, default=0.1
        lr > 0; the step is lr/m times the gradient of the sum.
    stopping : {"soft_error", "best_soft_error", "best_error", "none"} or Stop, default="none"
        As for `rcpkg.TM`.
    max_iter : int, default=64
        Number of updates; the "64 iterations" of the sources are 63 updates.

    Attributes
    ----------
    classes_, class_log_prior_, estimator_, n_iter_, best_iter_, history_, converged_, stop_reason_
        As for `rcpkg.TM`.

    Raises
    ------
    InvalidStatistics
        In ``fit``, where the closed form does not exist. A step that makes a matrix singular ends the descent.

    References
    ----------
    rc2025 app. B, rc2024 app. C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcbook.projected_descent import ProjectedGradientDescent
    >>> from rcpkg import QDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectedGradientDescent(QDA()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.036, 0.031]
    >>> round(model.score(X, y), 2)
    0.99
    """

    gradient: str = "corrected"
    learning_rate: float = 0.1
    stopping: str | Stop = "none"
    max_iter: int = 64

    @property
    def _needs_complete_rows(self) -> bool:
        return not self.estimator.__sklearn_tags__().input_tags.categorical

    def _settings(self) -> Settings:
        return self._preset(Projected(self.learning_rate, self.gradient))
