r"""Conditional likelihood directly: its optimum by L-BFGS, and the sources' projected gradient descent.

The posteriors of an exponential-family model are softmaxes of the scores ⟨η, s(x, y)⟩. In η the conditional
log-likelihood CLL is concave, with the gradient s(X, Y − P).
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics, check_number, log_posterior
from rcpkg.calibration import Losses, RiskCalibration, _Iterate, _Problem, _sample_size, mean_losses, row_losses
from rcpkg.generative import (
    EPS,
    QDA,
    CategoricalNB,
    CategoricalParameters,
    ClosedFormClassifier,
    ConjugateClassifier,
    GaussianParameters,
    MultinomialNB,
    ProductModel,
    SharedVarianceGaussianNB,
    Statistics,
    _FullGaussian,
    _Gaussian,
)

GRADIENTS = ("corrected", "printed")
LEAST_VARIANCE = 1e-2  # the sources' ε


def project_simplex(v: Array) -> Array:
    """Euclidean projection of the last axis on the simplex: max(v − τ, 0), with τ such that it sums to one."""
    ordered = -np.sort(-v, axis=-1)
    tau = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, v.shape[-1] + 1)
    last = (ordered > tau).sum(axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(tau, last, axis=-1), 0.0)


def floor_eigenvalues(matrices: Array, least: float = LEAST_VARIANCE) -> Array:
    """Symmetric matrices (…, d, d) with eigenvalues below ``least`` raised to it."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, least)[..., None, :]) @ vectors.swapaxes(-1, -2)


def quadratic_gradient(
    weights: Statistics, first: Array, second: Array, printed: bool = False
) -> tuple[Array, Array, Array]:
    r"""Gradient of CLL in (η_0, η_1, η_2) of QDA, where p(y | x) ∝ exp(η_0y + η_1yᵀx + xᵀη_2y x + A_y(η)).

    ∂η_1y: Σ_i W_iy (x_i + ½ η_2y⁻¹η_1y);  ∂η_2y: Σ_i W_iy (x_i x_iᵀ − ¼ η_2y⁻¹η_1yη_1yᵀη_2y⁻¹ + ½ η_2y⁻¹).
    ``printed`` has tr(η_2y⁻¹), added to every entry, for the matrix η_2y⁻¹ (rc2025 app. B, rc2024 app. C).

    Parameters
    ----------
    weights : Statistics
        s(X, Y − P) about the origin of x.
    first, second : arrays of shape (r, d) and (r, d, d)
        η_1 and η_2.
    """
    count = weights.count[:, None]
    inverse = np.linalg.inv(second)
    solved = np.linalg.solve(second, first[:, :, None])[:, :, 0]
    last = np.trace(inverse, axis1=1, axis2=2)[:, None, None] if printed else inverse
    mean_power = -0.25 * solved[:, :, None] * solved[:, None, :] + 0.5 * last
    return weights.count, weights.first + 0.5 * count * solved, weights.second + count[:, :, None] * mean_power


def centred_at_zero(s: Statistics, origin: Array | float) -> Statistics:
    """Moments about the origin o as moments about zero: Σ W x = f + s_y o, Σ W xxᵀ = S + f oᵀ + o fᵀ + s_y ooᵀ."""
    o = np.broadcast_to(origin, s.first.shape)
    cross = s.first[:, :, None] * o[:, None, :]
    outer = s.count[:, None, None] * o[:, :, None] * o[:, None, :]
    return Statistics(
        count=s.count,
        first=s.first + s.count[:, None] * o,
        second=s.second + cross + cross.swapaxes(1, 2) + outer,
    )


def categorical_step(model: CategoricalNB, old: CategoricalParameters, gradient: Statistics, printed: bool) -> Any:
    """η + gradient, made probabilities: ``printed``, exp(η) projected on the simplex; else normalised.

    Normalised, the log-likelihood is a function of η with A_y(η) = −Σ_j log Σ_v exp η_yjv, whose derivative the
    corrected gradient has and the printed one, with its A_y = 0, has not.
    """
    if printed:
        log_prior, cells = old.log_prior + gradient.count, np.exp(old.log_prob + gradient.cells)
        starts = np.append(model._starts, cells.shape[1])
        projected = [project_simplex(cells[:, a:b]) for a, b in pairwise(starts)]
        with np.errstate(divide="ignore"):
            return CategoricalParameters(np.log(project_simplex(np.exp(log_prior))), np.log(np.hstack(projected)))
    change = gradient.cells - gradient.count[:, None] * np.exp(old.log_prob)
    cells = old.log_prob + change
    log_prior = old.log_prior + gradient.count
    return CategoricalParameters(log_prior - np.logaddexp.reduce(log_prior), cells - model._log_totals(cells))


def quadratic_step(model: QDA, old: GaussianParameters, gradient: Statistics, printed: bool) -> GaussianParameters:
    """η + gradient; p(y) by projection or normalised; covariances −½ η_2⁻¹ with their eigenvalues floored."""
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
    """Logistic regression: β_y0 and β_y move by ``change`` about zero; the variances, free in it, stay."""
    origin = model._origin
    shift = change.count + (change.first + change.count[:, None] * origin) @ np.broadcast_to(
        origin, change.first.shape[1]
    )
    natural = model.natural_parameters(old)
    return model.from_natural(
        Statistics(
            count=natural.count + shift,
            first=natural.first + change.first + change.count[:, None] * origin,
            second=natural.second,
        )
    )


class ProjectedGradientDescent(RiskCalibration):
    r"""Gradient descent on the mean log-loss in natural parameters, then projection (rc2025 app. B, rc2024 app. C).

    For `CategoricalNB`, `QDA` and `SharedVarianceGaussianNB` (the logistic regression, which needs no projection).

    Parameters
    ----------
    estimator : CategoricalNB, QDA or SharedVarianceGaussianNB
        The model; the descent starts at its closed form.
    gradient : {"corrected", "printed"}
        "printed" keeps to the sources: for QDA a trace in place of a matrix, for naive Bayes A_y = 0 and a projection
        on the simplex, for the logistic regression no posteriors at all.
    learning_rate, max_iter, stopping, validation_fraction, random_state, verbose
        As in `RiskCalibration`; the step is lr/m times the gradient of the sum.
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
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            learning_rate=learning_rate,
            max_iter=max_iter,
            stopping=stopping,
            validation_fraction=validation_fraction,
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

    def _run(self, problem: _Problem, rng: np.random.RandomState) -> _Iterate:
        """The iterate that ``stopping`` chooses, without the prior, which has made the start."""
        chosen = super()._run(problem, rng)
        if problem.model.has_prior:
            problem.model = model = problem.model.without_prior()
            chosen.statistics = _sample_size(chosen.statistics) * model.mean_parameters(chosen.parameters)
        return chosen

    def _fixed_update(self, problem: _Problem, current: _Iterate, lr: float) -> _Iterate:
        model, old, printed = problem.model, current.parameters, self.gradient == "printed"
        size = _sample_size(current.statistics)
        change = current.gradient * (lr / size)
        if isinstance(model, CategoricalNB):
            new = categorical_step(model, old, change, printed)
        elif isinstance(model, QDA):
            new = quadratic_step(model, old, change, printed)
        else:
            new = linear_step(model, old, problem.label_statistics() * (lr / size) if printed else change)
        return problem.evaluate(size * model.mean_parameters(new), new)


class _Coordinates:
    """Free coordinates z of natural parameters η, and gradients in them.

    Gaussian parts are whitened by the factor A of the pooled covariance: η_1 = Aᵀz_1, η_2 = Aᵀz_2 A. With
    ``definite``, so that ψ(η) is finite everywhere, η_2 = −½ AᵀLLᵀA instead, z_2 being L with the logarithm of its
    diagonal.
    """

    def __init__(self, model: ConjugateClassifier, pooled: Any, definite: bool) -> None:
        self.definite = definite
        self.gaussian, self.full = isinstance(model, _Gaussian), isinstance(model, _FullGaussian)
        self.parts = None
        if isinstance(model, ProductModel):
            self.parts = [_Coordinates(m, p, definite) for m, p in zip(model.models_, pooled.blocks)]
        elif self.gaussian:
            A = pooled.whitener
            self.A = A if A.ndim == (2 if self.full else 1) else A[0]

    def _each(self, method: str, *statistics: Statistics) -> Statistics:
        names = vars(statistics[0])
        return Statistics(
            **{n: getattr(c, method)(*(vars(s)[n] for s in statistics)) for n, c in zip(names, self.parts)}
        )

    def natural(self, z: Statistics) -> Statistics:
        """η(z)."""
        if self.parts is not None:
            return self._each("natural", z)
        if not self.gaussian:
            return z
        second = z.second
        if self.definite and self.full:
            L = _exp_diagonal(second)
            second = -0.5 * L @ L.swapaxes(-1, -2)
        elif self.definite:
            second = -0.5 * np.exp(2 * second)
        if self.full:
            return Statistics(count=z.count, first=z.first @ self.A, second=self.A.T @ second @ self.A)
        return Statistics(count=z.count, first=z.first * self.A, second=second * self.A**2)

    def gradient(self, z: Statistics, g: Statistics) -> Statistics:
        """Gradient in z of a function whose gradient in η is g."""
        if self.parts is not None:
            return self._each("gradient", z, g)
        if not self.gaussian:
            return g
        if not self.full:
            second = g.second * self.A**2
            if self.definite:
                second = -second * np.exp(2 * z.second)
            return Statistics(count=g.count, first=g.first * self.A, second=second)
        second = self.A @ g.second @ self.A.T
        if self.definite:
            L = _exp_diagonal(z.second)
            second = -np.tril(second @ L)
            diagonal = np.arange(len(self.A))
            second[..., diagonal, diagonal] *= L[..., diagonal, diagonal]
        return Statistics(count=g.count, first=g.first @ self.A.T, second=second)

    def of(self, natural: Statistics) -> Statistics:
        """z of an η."""
        if self.parts is not None:
            return self._each("of", natural)
        if not self.gaussian:
            return natural
        if not self.full:
            second = natural.second / self.A**2
            second = 0.5 * np.log(-2 * second) if self.definite else second
            return Statistics(count=natural.count, first=natural.first / self.A, second=second)
        inverse = np.linalg.solve(self.A, np.eye(len(self.A)))
        second = inverse.T @ natural.second @ inverse
        if self.definite:
            second = np.linalg.cholesky(-2 * second)
            diagonal = np.arange(len(self.A))
            second[..., diagonal, diagonal] = np.log(second[..., diagonal, diagonal])
        return Statistics(count=natural.count, first=natural.first @ inverse, second=second)


def _exp_diagonal(z: Array) -> Array:
    """Lower triangles with exp taken of the diagonal."""
    L = np.tril(z, -1)
    diagonal = np.arange(z.shape[-1])
    L[..., diagonal, diagonal] = np.exp(z[..., diagonal, diagonal])
    return L


class ConditionalLikelihood(RiskCalibration):
    r"""Maximum conditional likelihood of an exponential-family model by L-BFGS on its natural parameters.

    Maximises Σ_i w_i log p(y_i | x_i) + b [⟨s̄, η⟩ − m̄ ψ(η)], where p(y | x) ∝ exp⟨η, s(x, y)⟩; the gradient is
    s(X, Y − P) + b (s̄ − m̄ μ). For b = 0 any η will do for the posteriors; a generative model with the same posteriors
    is returned, a common quadratic added to all classes where a precision would not be positive definite.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model; its prior shapes the start, or the target, and nothing else. ``priors`` must be None. `MultinomialNB`
        needs rows of equal length.
    max_iter : int
        Greatest number of iterations.
    tol : float
        Ends when no entry of the gradient per row and pseudo-row, in whitened coordinates, exceeds it; on rows that
        the model separates, where the supremum 0 is not attained, also when the log-loss falls below it.
    target, target_weight
        As in `RiskCalibration`. With b > 0 the optimum is finite on separable rows too.
    memory : int
        Pairs of steps and gradients that L-BFGS keeps.

    Attributes
    ----------
    converged_ : bool
        Whether the gradient fell below ``tol``. A `ConvergenceWarning` says so otherwise. This does not certify a
        finite optimum: on rows that are separable in part (a state that occurs in one class only, say) the supremum
        is negative and not attained, and the gradient vanishes on the way there all the same.
    separable_ : bool
        b = 0, and the η found gives each row's own class the largest score: no finite optimum exists. Partial
        separation is not looked for.
    estimator_, n_iter_, history_
        As in `RiskCalibration`; the column ``step`` holds the largest entry of the gradient.
    """

    _moves_class_weights = True

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        max_iter: int = 1000,
        tol: float = 1e-7,
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        memory: int = 20,
    ) -> None:
        super().__init__(estimator, max_iter=max_iter, stopping="none", target=target, target_weight=target_weight)
        self.tol = tol
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, 0, above=True)
        check_number("memory", self.memory, 1, integer=True)
        if not isinstance(self.estimator, ConjugateClassifier):
            raise ValueError(f"estimator must be an exponential family of rcpkg; got {self.estimator!r}")

    def _run(self, problem: _Problem, rng: np.random.RandomState) -> _Iterate:
        """L-BFGS from the closed form; the iterate at its end."""
        _check_lengths(problem.model, problem.X)
        start = self._start(problem)
        closed = problem.model.parameters(start)
        coordinates = _Coordinates(problem.model, _pooled(problem.model, start), bool(self.target_weight))
        model = problem.model = problem.model.without_prior()
        first = coordinates.of(_finite(model.natural_parameters(closed)))
        size = _weight(problem)
        scale = size + problem.target_weight * problem.target_size
        records: list[dict[str, float]] = []

        latest: dict[bytes, tuple[float, Array, Losses, bool]] = {}

        def evaluate(z: Array) -> tuple[float, Array, Losses, bool]:
            key = z.tobytes()
            if key not in latest:  # L-BFGS reports each iterate right after its evaluation
                at = first.unravel(z)
                value, gradient, losses, separated = conditional_objective(problem, coordinates.natural(at))
                slope = coordinates.gradient(at, gradient).ravel()
                latest.clear()
                latest[key] = -value / scale, -slope / scale, losses, separated
            return latest[key]

        def record(z: Array) -> None:
            _, gradient, losses, separated = evaluate(z)
            step = float(np.abs(gradient).max())
            records.append({"iteration": len(records), **losses._asdict(), "step": step})
            self.separable_ = separated and not self.target_weight
            if self.separable_ and losses.log_loss < self.tol:
                raise StopIteration

        def callback(intermediate_result: OptimizeResult) -> None:
            record(intermediate_result.x)

        z = first.ravel()
        try:
            record(z)
            options = {"maxiter": self.max_iter, "maxcor": self.memory, "gtol": self.tol, "ftol": 0.0, "maxfun": np.inf}
            if self.max_iter:
                z = minimize(
                    lambda z: evaluate(z)[:2], z, jac=True, method="L-BFGS-B", callback=callback, options=options
                ).x
        except StopIteration:
            pass
        self.history_ = pd.DataFrame(records)
        self.n_iter_ = self.best_iter_ = len(records) - 1
        self.converged_ = records[-1]["step"] <= self.tol and not self.separable_
        self._report()
        natural = coordinates.natural(first.unravel(z))
        parameters = model.from_natural(natural)
        value, gradient, losses, _ = conditional_objective(problem, natural)
        return _Iterate(size * model.mean_parameters(parameters), parameters, gradient, losses, value)

    def _report(self) -> None:
        if self.separable_:
            message = "the model separates the classes of the training rows, so that no finite optimum exists"
        elif not self.converged_:
            message = (
                f"L-BFGS ended after {self.n_iter_} iterations with a gradient of "
                f"{self.history_['step'].iloc[-1]:.2g} per row; raise max_iter or tol"
            )
        else:
            return
        warnings.warn(f"{message}; a target_weight > 0 makes the problem well posed", ConvergenceWarning, stacklevel=4)


def conditional_objective(problem: _Problem, natural: Statistics) -> tuple[float, Statistics, Losses, bool]:
    """CLL + b [⟨s̄, η⟩ − m̄ψ(η)], its gradient in η, the losses, and whether each row that counts is classified right."""
    model = problem.model
    scores = model.scores(problem.X, natural)
    log_P = log_posterior(scores, np.zeros(scores.shape[1]))
    by_row = row_losses(log_P, problem.y)
    others = np.where(problem.Y > 0, -np.inf, scores).max(axis=1)
    ahead = scores[np.arange(len(scores)), problem.y] > others
    separated = bool(np.all(ahead if problem.sample_weight is None else ahead[problem.sample_weight > 0]))
    losses = mean_losses(by_row, problem.sample_weight)
    value = -_weight(problem) * losses.log_loss
    gradient = model.statistics(problem.X, problem.weights(log_P, slice(None)))
    if problem.target_weight:
        b, size = problem.target_weight, problem.target_size
        mean = model.mean_parameters(model.from_natural(natural))
        value += b * (problem.target.dot(natural) - size * model.log_partition(natural))
        gradient = gradient + b * (problem.target - size * mean)
    return value, gradient, losses, separated


def _weight(problem: _Problem) -> float:
    """Total weight of the rows."""
    return float(len(problem.y) if problem.sample_weight is None else problem.sample_weight.sum())


def _pooled(model: ConjugateClassifier, statistics: Statistics) -> Any:
    """Pooled parameters of the rows alone, which have their units, if these have a positive definite covariance."""
    try:
        return model.without_prior().pooled_parameters(statistics)[0]
    except InvalidStatistics:
        return model.pooled_parameters(statistics)[0]


def _finite(natural: Statistics) -> Statistics:
    """η with the logarithms of zero probabilities replaced by that of rounding."""

    def replaced(part: Any) -> Any:
        return _finite(part) if isinstance(part, Statistics) else np.where(np.isneginf(part), np.log(EPS), part)

    return natural._map(replaced)


def _check_lengths(model: ConjugateClassifier, X: Any) -> None:
    """Refuse documents of unequal length: the scores are then more than the model can express."""
    if isinstance(model, ProductModel):
        for part, x in zip(model.models_, X):
            _check_lengths(part, x)
    elif isinstance(model, MultinomialNB) and np.ptp(X.sum(axis=1)) > 0:
        raise ValueError("X holds rows of unequal sums: MultinomialNB is an exponential family for equal sums only")
