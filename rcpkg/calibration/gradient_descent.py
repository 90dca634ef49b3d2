"""The sources' gradient descent on the log-loss, in natural parameters, with its projections."""

from itertools import pairwise
from typing import Any

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.loop import RiskCalibration, Run
from rcpkg.calibration.problem import Iterate, Problem, sample_size
from rcpkg.families import (
    QDA,
    CategoricalNB,
    CategoricalParameters,
    ClosedFormClassifier,
    GaussianParameters,
    SharedVarianceGaussianNB,
    Statistics,
)

EPS = np.finfo(float).eps
GRADIENTS = ("corrected", "printed")
LEAST_VARIANCE = 1e-2  # the sources' ε


def project_simplex(v: Array) -> Array:
    """Euclidean projection of v, shape (…, k), on the simplex: max(v − τ, 0), with τ such that it sums to one."""
    ordered = -np.sort(-v, axis=-1)
    tau = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, v.shape[-1] + 1)
    last = (ordered > tau).sum(axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(tau, last, axis=-1), 0.0)


def floor_eigenvalues(matrices: Array, least: float = LEAST_VARIANCE) -> Array:
    """Symmetric ``matrices``, shape (…, d, d), with eigenvalues below ``least`` raised to it."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, least)[..., None, :]) @ vectors.swapaxes(-1, -2)


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


def categorical_step(model: CategoricalNB, old: CategoricalParameters, gradient: Statistics, printed: bool) -> Any:
    """η + ``gradient``, made probabilities: ``printed``, exp(η) projected on the simplex; else normalised.

    Normalised, the log-likelihood is a function of η with A_y(η) = −Σ_j log Σ_v exp η_yjv, whose derivative the
    corrected gradient has and the printed one, with its A_y = 0, has not.

    Parameters
    ----------
    model : CategoricalNB
        The fitted model, which knows its states.
    old : CategoricalParameters
        Parameters before the step.
    gradient : Statistics
        The step: lr/m times s(X, Y − P).
    printed : bool
        Whether the sources' gradient and projection are taken.

    Returns
    -------
    CategoricalParameters
    """
    if printed:
        log_prior, cells = old.log_prior + gradient.count, np.exp(old.log_prob + gradient.cells)
        starts = np.append(model.starts_, cells.shape[1])
        projected = [project_simplex(cells[:, a:b]) for a, b in pairwise(starts)]
        with np.errstate(divide="ignore"):
            return CategoricalParameters(np.log(project_simplex(np.exp(log_prior))), np.log(np.hstack(projected)))
    change = gradient.cells - gradient.count[:, None] * np.exp(old.log_prob)
    cells = old.log_prob + change
    log_prior = old.log_prior + gradient.count
    return CategoricalParameters(log_prior - np.logaddexp.reduce(log_prior), cells - model._log_totals(cells))


def quadratic_step(model: QDA, old: GaussianParameters, gradient: Statistics, printed: bool) -> GaussianParameters:
    """η + ``gradient``; p(y) by projection or normalised; covariances −½ η_2⁻¹ with their eigenvalues floored.

    Parameters
    ----------
    model : QDA
        The fitted model, which knows the origin of its moments.
    old : GaussianParameters
        Parameters before the step.
    gradient : Statistics
        The step: lr/m times s(X, Y − P).
    printed : bool
        Whether the sources' gradient is taken, and p(y) projected.

    Returns
    -------
    GaussianParameters

    Raises
    ------
    InvalidStatistics
        If the step makes a matrix η_2 singular.
    """
    precision = old.whitener.swapaxes(1, 2) @ old.whitener
    first, second = (precision @ old.mean[:, :, None])[:, :, 0], -0.5 * precision
    change = quadratic_gradient(centred_at_zero(gradient, model._origin), first, second, printed)
    log_prior, first, second = old.log_prior + change[0], first + change[1], second + change[2]
    if not np.isfinite(second).all() or np.linalg.cond(second).max() > 1 / EPS:
        raise InvalidStatistics("a step of gradient descent made a matrix η_2 singular; lower learning_rate")
    covariance = floor_eigenvalues(-0.5 * np.linalg.inv(second))
    mean = (covariance @ first[:, :, None])[:, :, 0]
    with np.errstate(divide="ignore"):
        log_prior = (
            np.log(project_simplex(np.exp(log_prior))) if printed else log_prior - np.logaddexp.reduce(log_prior)
        )
    return GaussianParameters(log_prior, mean, covariance, model._whitener(covariance, covariance, np.zeros(len(mean))))


def linear_step(model: SharedVarianceGaussianNB, old: GaussianParameters, change: Statistics) -> GaussianParameters:
    """Logistic regression: β_y0 and β_y move by ``change`` about zero; the variances, free in it, stay.

    Parameters
    ----------
    model : SharedVarianceGaussianNB
        The fitted model, which knows the origin of its moments.
    old : GaussianParameters
        Parameters before the step.
    change : Statistics
        The step: lr/m times s(X, Y − P), or s(X, Y) as printed.

    Returns
    -------
    GaussianParameters

    Raises
    ------
    InvalidStatistics
        If the step leaves the range of numbers.
    """
    origin = model._origin
    shift = change.count + (change.first + change.count[:, None] * origin) @ np.broadcast_to(
        origin, change.first.shape[1]
    )
    natural = model.natural_parameters(old)
    with np.errstate(over="ignore", invalid="ignore"):
        new = model.from_natural(
            Statistics(
                count=natural.count + shift,
                first=natural.first + change.first + change.count[:, None] * origin,
                second=natural.second,
            )
        )
    if np.isnan(new.log_prior).any() or not np.isfinite(new.mean).all():
        raise InvalidStatistics("a step of gradient descent left the range of numbers; lower learning_rate or scale X")
    return new


class ProjectedGradientDescent(RiskCalibration):
    """Gradient descent on the mean log-loss in natural parameters, then projection.

    η ← η + (lr/m) ∇CLL(η), m the weight of all rows, for `CategoricalNB`, `QDA` and `SharedVarianceGaussianNB` (the
    logistic regression, which needs no projection); see `categorical_step`, `quadratic_step` and `linear_step`.

    Parameters
    ----------
    estimator : CategoricalNB, QDA or SharedVarianceGaussianNB
        The model; the descent starts at its closed form. Its ``priors`` must be None.
    gradient : {"corrected", "printed"}, default="corrected"
        "printed" keeps to the sources: for QDA a trace in place of a matrix, for naive Bayes A_y = 0 and a projection
        on the simplex, for the logistic regression no posteriors at all.
    learning_rate : float, default=0.1
        lr > 0; the step is lr/m times the gradient of the sum.
    max_iter : int, default=64
        Number of updates; the "64 iterations" of the sources are 63 updates.
    stopping : {"soft_error", "best_soft_error", "best_error", "validation", "none"}, default="none"
        "soft_error": stop when the training soft error rises, and return the model before (rc2025). "best_soft_error",
        "best_error" (rc2024): the best of all iterates. "validation": the iterate of least log-loss on held-out rows.
        "none": the last iterate. A held-out row that is impossible under its class makes the log-loss infinite: give
        the estimator a ``prior_strength``.
    validation_fraction : float, optional
        Part of the rows, between 0 and 1, held out for ``stopping="validation"``; it must be given then, and only then.
    tol : float, default=0.0
        Ends where a step of length one promises no more than this gain, in nats a row;
        0: go on to ``max_iter``.
    random_state : int or RandomState, optional
        For the choice of the held-out rows.
    verbose : int, default=0
        1: a progress bar, with the log-loss on the training rows.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of the calibrated model.
    estimator_ : ClosedFormClassifier
        The calibrated model.
    n_iter_ : int
        Updates made.
    best_iter_ : int
        The update that gave ``estimator_``.
    history_ : DataFrame
        A row an iterate: iteration, soft_error, error, log_loss, step, validation_log_loss if rows are held out.
    stop_reason_ : str
        "converged": the promised gain is at most ``tol``; "max_iter"; "soft_error": it rose; "invalid": a step made a
        matrix singular.
    converged_ : bool
        Whether the reason is "converged". A `ConvergenceWarning` tells of a run with ``stopping="none"`` and a ``tol``
        that ended before, and of one whose first update was invalid.

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
    >>> from rcpkg import QDA, ProjectedGradientDescent
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectedGradientDescent(QDA()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.036, 0.031]
    >>> round(model.score(X, y), 2)
    0.99
    """

    _moves_class_weights = True

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        gradient: str = "corrected",
        learning_rate: float = 0.1,
        max_iter: int = 64,
        stopping: str = "none",
        validation_fraction: float | None = None,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            learning_rate=learning_rate,
            max_iter=max_iter,
            stopping=stopping,
            step="fixed",
            target_weight=0.0,
            validation_fraction=validation_fraction,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
        self.gradient = gradient

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.estimator, CategoricalNB | QDA | SharedVarianceGaussianNB):
            raise ValueError(
                f"estimator must be a CategoricalNB, QDA or SharedVarianceGaussianNB; got {self.estimator!r}"
            )
        if self.gradient not in GRADIENTS:
            raise ValueError(f"gradient must be one of {', '.join(GRADIENTS)}; got {self.gradient!r}")

    def _run(self, problem: Problem, rng: np.random.RandomState) -> Run:
        """The iterate that ``stopping`` chooses, without the prior, which has made the start."""
        run = super()._run(problem, rng)
        if problem.model.has_prior:
            problem.model = model = problem.model.without_prior()
            run.chosen.statistics = sample_size(run.chosen.statistics) * model.mean_parameters(run.chosen.parameters)
        return run

    def _fixed_update(self, problem: Problem, current: Iterate, lr: float) -> Iterate:
        model, old, printed = problem.model, current.parameters, self.gradient == "printed"
        size = sample_size(current.statistics)
        change = current.gradient * (lr / size)
        if isinstance(model, CategoricalNB):
            new = categorical_step(model, old, change, printed)
        elif isinstance(model, QDA):
            new = quadratic_step(model, old, change, printed)
        else:
            new = linear_step(model, old, problem.label_statistics() * (lr / size) if printed else change)
        return problem.evaluate(size * model.mean_parameters(new), new)
