"""The optimum of conditional likelihood, by L-BFGS in coordinates of the natural parameters.

The posteriors of an exponential-family model are softmaxes of the scores ⟨η, s(x, y)⟩. In η the conditional
log-likelihood CLL is concave, with the gradient s(X, Y − P).
"""

import warnings
from typing import Any, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics, check_number, log_posterior
from rcpkg.calibration.loop import RiskCalibration, Run
from rcpkg.calibration.problem import Iterate, Problem
from rcpkg.calibration.rules import Losses, history_row, mean_losses, row_losses
from rcpkg.generative import ClosedFormClassifier, ConjugateClassifier, MultinomialNB, ProductModel, Statistics
from rcpkg.generative.gaussian import GaussianClassifier
from rcpkg.generative.gaussian_full import FullGaussian

EPS = np.finfo(float).eps


class Coordinates:
    """Free coordinates z of natural parameters η, and gradients in them.

    Gaussian parts are whitened by the factor A of the pooled covariance: η_1 = Aᵀz_1, η_2 = Aᵀz_2 A. With
    ``definite``, so that ψ(η) is finite everywhere, η_2 = −½ AᵀLLᵀA instead, z_2 being L with the logarithm of its
    diagonal.
    """

    def __init__(self, model: ConjugateClassifier, pooled: Any, definite: bool) -> None:
        self.definite = definite
        self.gaussian, self.full = isinstance(model, GaussianClassifier), isinstance(model, FullGaussian)
        self.parts = None
        if isinstance(model, ProductModel):
            self.parts = [Coordinates(m, p, definite) for m, p in zip(model.models_, pooled.blocks)]
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
    """Maximum conditional likelihood of an exponential-family model by L-BFGS on its natural parameters.

    Maximises Σ_i w_i log p(y_i | x_i) + b [⟨s̄, η⟩ − m̄ ψ(η)], where p(y | x) ∝ exp⟨η, s(x, y)⟩; the gradient is
    s(X, Y − P) + b (s̄ − m̄ μ). For b = 0 any η will do for the posteriors; a generative model with the same posteriors
    is returned, a common quadratic added to all classes where a precision would not be positive definite.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model; its prior shapes the start, or the target, and nothing else. ``priors`` must be None. `MultinomialNB`
        needs rows of equal length.
    max_iter : int, default=1000
        Greatest number of iterations.
    tol : float, default=1e-7
        Ends when no entry of the gradient per row and pseudo-row, in whitened coordinates, exceeds it; on rows that
        the model separates, where the supremum 0 is not attained, also when the log-loss falls below it.
    target : {"pooled", "generative", "grand"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with what distinguishes the classes pooled (covariances,
        distributions of counts), the closed form itself, one that is the same for every class, or a model of yours.
    target_weight : float, default=0.0
        b ≥ 0. With b > 0 the optimum is finite on separable rows too.
    memory : int, default=20
        Pairs of steps and gradients that L-BFGS keeps.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of the calibrated model.
    estimator_ : ClosedFormClassifier
        The calibrated model.
    n_iter_ : int
        Iterations made.
    best_iter_ : int
        The iteration that gave ``estimator_``, the last.
    history_ : DataFrame
        A row an iterate, row 0 the start: iteration, soft_error, error, log_loss, step,
        the last being the largest entry of the gradient.
    converged_ : bool
        Whether the gradient fell below ``tol``. A `ConvergenceWarning` says so otherwise. This does not certify a
        finite optimum: on rows that are separable in part (a state that occurs in one class only, say) the supremum
        is negative and not attained, and the gradient vanishes on the way there all the same.
    stop_reason_ : str
        "converged"; "separable": see ``separable_``; "max_iter"; "no_step": the line search found no better η.
    separable_ : bool
        b = 0, and the η found gives each row's own class the largest score: no finite optimum exists. Partial
        separation is not looked for.

    References
    ----------
    The optimum that rc2025 §5.2 and wanbia2014 approach; L-BFGS: Byrd et al. (1995).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, ConditionalLikelihood
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # setosa can be told from the others without error
    >>> model = ConditionalLikelihood(LDA()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.069, 0.059]
    >>> model.converged_, model.separable_
    (True, False)
    """

    _moves_class_weights = True
    _needs_complete_rows = True

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
        settings = {"max_iter": max_iter, "target": target, "target_weight": target_weight, "tol": tol}
        super().__init__(estimator, stopping="none", step="fixed", **settings)
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, 0, above=True)
        check_number("memory", self.memory, 1, integer=True)
        if not isinstance(self.estimator, ConjugateClassifier):
            raise ValueError(f"estimator must be an exponential family of rcpkg; got {self.estimator!r}")

    def _run(self, problem: Problem, rng: np.random.RandomState) -> Run:
        """L-BFGS from the closed form; chooses the iterate at its end."""
        problem.model._check_complete(problem.X)
        _check_lengths(problem.model, problem.X)
        start = self._start(problem)
        closed = problem.model.parameters(start)
        coordinates = Coordinates(problem.model, _pooled(problem.model, start), bool(self.target_weight))
        model = problem.model = problem.model.without_prior()
        first = coordinates.of(_finite(model.natural_parameters(closed)))
        descent = _Descent(problem, coordinates, first, self.tol)
        natural = descent.natural(descent.minimise(self.max_iter, self.memory))
        parameters = model.from_natural(natural)
        value, gradient, losses, _ = conditional_objective(problem, natural)
        statistics = problem.total_weight * model.mean_parameters(parameters)
        chosen = Iterate(statistics, parameters, gradient, losses, value)
        n_iter = len(descent.history) - 1
        if descent.separable:
            reason = "separable"
        elif descent.history[-1]["step"] <= self.tol:
            reason = "converged"
        else:
            reason = "max_iter" if n_iter == self.max_iter else "no_step"
        return Run(chosen, n_iter, descent.history, reason)

    def _adopt(self, model: ClosedFormClassifier, run: Run) -> Self:
        self.separable_ = run.stop_reason == "separable"
        return super()._adopt(model, run)

    def _report(self, problem: Problem, run: Run) -> None:
        n_iter, slope = len(run.history) - 1, run.history[-1]["step"]
        if run.stop_reason == "separable":
            message = "the model separates the classes of the training rows, so that no finite optimum exists"
        elif run.stop_reason != "converged":
            message = (
                f"L-BFGS ended after {n_iter} iterations with a gradient of {slope:.2g} per row; raise max_iter or tol"
            )
        else:
            return
        warnings.warn(f"{message}; a target_weight > 0 makes the problem well posed", ConvergenceWarning, stacklevel=3)


class _Descent:
    """L-BFGS on −[CLL + b (⟨s̄, η⟩ − m̄ψ(η))] per row and pseudo-row, a function of coordinates z of η; its history."""

    def __init__(self, problem: Problem, coordinates: Coordinates, start: Statistics, tol: float) -> None:
        self.problem, self.coordinates, self.start, self.tol = problem, coordinates, start, tol
        self.scale = problem.total_weight + problem.target_weight * problem.target_size
        self.history: list[dict[str, float]] = []
        self.separable = False
        self.latest: dict[bytes, tuple[float, Array, Losses, bool]] = {}

    def natural(self, z: Array) -> Statistics:
        """η(z)."""
        return self.coordinates.natural(self.start.unravel(z))

    def minimise(self, max_iter: int, memory: int) -> Array:
        """The z at the end of the descent."""
        z = self.start.ravel()
        options = {"maxiter": max_iter, "maxcor": memory, "gtol": self.tol, "ftol": 0.0, "maxfun": np.inf}
        try:
            self._record(OptimizeResult(x=z))
            if max_iter:
                z = minimize(
                    lambda z: self._evaluate(z)[:2],
                    z,
                    jac=True,
                    method="L-BFGS-B",
                    callback=self._record,
                    options=options,
                ).x
        except StopIteration:
            pass
        return z

    def _evaluate(self, z: Array) -> tuple[float, Array, Losses, bool]:
        """Value and gradient in z, the losses, and whether all rows are classified right."""
        key = z.tobytes()
        if key not in self.latest:  # L-BFGS reports each iterate right after its evaluation
            at = self.start.unravel(z)
            value, gradient, losses, separated = conditional_objective(self.problem, self.coordinates.natural(at))
            slope = self.coordinates.gradient(at, gradient).ravel()
            self.latest = {key: (-value / self.scale, -slope / self.scale, losses, separated)}
        return self.latest[key]

    def _record(self, intermediate_result: OptimizeResult) -> None:
        """Add an iterate to the history; end the descent on separated rows once their log-loss falls below ``tol``."""
        _, gradient, losses, separated = self._evaluate(intermediate_result.x)
        self.history.append(history_row(len(self.history), losses, float(np.abs(gradient).max())))
        self.separable = separated and not self.problem.target_weight
        if self.separable and losses.log_loss < self.tol:
            raise StopIteration


def conditional_objective(problem: Problem, natural: Statistics) -> tuple[float, Statistics, Losses, bool]:
    """CLL + b [⟨s̄, η⟩ − m̄ψ(η)], its gradient in η, the losses, and whether each row that counts is classified right."""
    model = problem.model
    scores = model.scores(problem.X, natural)
    log_P = log_posterior(scores, np.zeros(scores.shape[1]))
    by_row = row_losses(log_P, problem.y)
    others = np.where(problem.Y > 0, -np.inf, scores).max(axis=1)
    ahead = scores[np.arange(len(scores)), problem.y] > others
    separated = bool(np.all(ahead if problem.sample_weight is None else ahead[problem.sample_weight > 0]))
    losses = mean_losses(by_row, problem.sample_weight)
    value = -problem.total_weight * losses.log_loss
    gradient = model.statistics(problem.X, problem.weights(log_P, slice(None)))
    if problem.target_weight:
        b, size = problem.target_weight, problem.target_size
        mean = model.mean_parameters(model.from_natural(natural))
        value += b * (problem.target.dot(natural) - size * model.log_partition(natural))
        gradient = gradient + b * (problem.target - size * mean)
    return value, gradient, losses, separated


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
