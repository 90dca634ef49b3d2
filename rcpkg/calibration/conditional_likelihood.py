"""The optimum of conditional likelihood, by first- or second-order steps on the natural parameters.

The posteriors of an exponential-family model are softmaxes of the scores ⟨η, s(x, y)⟩. In η the conditional
log-likelihood CLL is concave, with the gradient s(X, Y − P). The scores are linear in features φ(x) that all classes
share, so that its maximum is a multinomial logistic regression.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics, check_choice, check_number, log_posterior
from rcpkg.calibration.coordinates import Standardised, linear_coordinates, refuse_zero_probabilities
from rcpkg.calibration.features import Features, has_features
from rcpkg.calibration.logistic import Evaluation, LogisticObjective
from rcpkg.calibration.loop import RiskCalibration, Run
from rcpkg.calibration.newton import CurvatureSteps, begun, free_rows
from rcpkg.calibration.problem import Problem
from rcpkg.calibration.rules import Losses, history_row, mean_losses, row_losses
from rcpkg.families import ClosedFormClassifier, ConjugateClassifier, MultinomialNB, ProductModel, Statistics

EPS = np.finfo(float).eps
SOLVERS = ("auto", "newton", "lbfgs")
COORDINATES = ("whitened", "natural", "closed_form", "curvature", "standardised")


class Optimum(NamedTuple):
    """Where the search ended: what of an `Iterate` the estimator takes on."""

    statistics: Statistics
    parameters: Any
    value: float


class ConditionalLikelihood(RiskCalibration):
    """Maximum conditional likelihood of an exponential-family model by steps on its natural parameters.

    Maximises Σ_i w_i log p(y_i | x_i) + b [⟨s̄, η⟩ − m̄ ψ(η)] − l2 ‖β‖²/2, where p(y | x) ∝ exp⟨η, s(x, y)⟩; the
    gradient of the first two terms is s(X, Y − P) + b (s̄ − m̄ μ). The scores are β_y · φ(x) with features φ that the
    classes share. For b = 0 any η will do for the posteriors; a generative model with the same posteriors is returned,
    a common quadratic added to all classes where a precision would not be positive definite.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model; its prior shapes the start, or the target, and nothing else. ``priors`` must be None. `MultinomialNB`
        needs rows of equal length.
    coordinates : {"whitened", "natural", "closed_form", "curvature", "standardised"}, default="whitened"
        What L-BFGS moves: the coefficients β as they are ("natural"), as multiples of those of the closed form
        ("closed_form"; for `CategoricalNB` WANBIA-C), times the root of the diagonal of the Hessian at the closed form
        ("curvature"), or such that the features have the identity for second moments ("whitened"). "standardised":
        only the x of a Gaussian model are whitened, by the pooled covariance. A coefficient whose closed form is zero
        does not move in "closed_form", and one that is −∞ (a state of probability zero) is refused.
    solver : {"auto", "newton", "lbfgs"}, default="auto"
        "newton": steps by the Hessian of as many rows as are worth their cost, improved by L-BFGS; they begin on a
        sample of many rows. Where all (r − 1)p coefficients are too many for one Hessian, each class has its own, and
        conjugate gradients take account of the others. "auto": that, unless other coordinates, a target, or features
        by the thousand ask for "lbfgs", the steps of scipy from the closed form.
    l2 : float, default=0.0
        Penalty ≥ 0: scikit-learn's ``LogisticRegression(C=1 / l2)`` on the features 1, x, x_a x_b (a ≤ b) of `QDA`,
        x_a² alone of `GaussianNB`, x of models that share covariances, indicators of all states of `CategoricalNB`,
        the features themselves of other counts. They are those of X as given, constant ones left out. As there, the
        constant is free, and with two classes β is the difference of theirs.
    max_iter : int, default=1000
        Greatest number of iterations.
    tol : float, default=1e-7
        Ends "lbfgs" when no entry of the gradient per row and pseudo-row, in its coordinates, exceeds it, and "newton"
        when the length √(gᵀH⁻¹g) of a Newton step does not; on rows that the model separates, where the supremum 0 is
        not attained, also when the log-loss falls below it.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with what distinguishes the classes pooled (covariances,
        distributions of counts), the closed form itself, one that is the same for every class, the network with one
        parent less a feature, or a model of yours.
    target_weight : float, default=0.0
        b ≥ 0. With b > 0 the optimum is finite on separable rows too; L-BFGS then moves standardised coordinates in
        which precisions stay positive definite, since linear ones leave the domain of a Gaussian target.
    memory : int, default=20
        Pairs of steps and gradients that are kept.
    cache_size : float, default=1000.0
        Megabytes that the features of all rows may take. They are formed once where they fit, and in blocks in each
        pass where they do not.

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
        A row an iterate, row 0 the start: iteration, soft_error, error, log_loss, step, which is what ``tol`` bounds,
        and with a penalty the objective, as in ``objective_``.
    objective_ : float
        What was maximised, with its sign changed, per row and pseudo-row: the mean log-loss with the penalty.
    converged_ : bool
        Whether ``tol`` was reached. A `ConvergenceWarning` says so otherwise. This does not certify a
        finite optimum: on rows that are separable in part (a state that occurs in one class only, say) the supremum
        is negative and not attained, and the gradient vanishes on the way there all the same.
    stop_reason_ : str
        "converged"; "separable": see ``separable_``; "max_iter"; "no_step": the line search found no better η.
    separable_ : bool
        There is no penalty, and the η found gives each row's own class the largest score: no finite optimum exists.
        Partial separation is not looked for.

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
        coordinates: str = "whitened",
        solver: str = "auto",
        l2: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-7,
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        memory: int = 20,
        cache_size: float = 1000.0,
    ) -> None:
        settings = {"max_iter": max_iter, "target": target, "target_weight": target_weight, "tol": tol}
        super().__init__(estimator, stopping="none", step="fixed", **settings)
        self.coordinates, self.solver, self.l2 = coordinates, solver, l2
        self.memory, self.cache_size = memory, cache_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, 0, above=True)
        check_number("memory", self.memory, 1, integer=True)
        check_number("l2", self.l2, 0)
        check_number("cache_size", self.cache_size, 0)
        check_choice("coordinates", self.coordinates, COORDINATES)
        check_choice("solver", self.solver, SOLVERS)
        if self.solver == "newton" and self.coordinates != "whitened":
            raise ValueError(
                f"coordinates={self.coordinates!r} are for solver='lbfgs': Newton steps do not depend on them"
            )
        if self.l2 and (self.target_weight or self.coordinates == "standardised"):
            raise ValueError("l2 > 0 goes neither with a target_weight > 0 nor with coordinates='standardised'")
        if self.target_weight and (self.solver == "newton" or self.coordinates not in ("whitened", "standardised")):
            raise ValueError(
                "target_weight > 0 goes with coordinates='standardised', the default then, and not with "
                "solver='newton': in others a Gaussian model leaves the domain of the target's penalty"
            )
        if not hasattr(self.estimator, "log_partition"):
            raise ValueError(f"estimator must be a full exponential family of rcpkg; got {self.estimator!r}")

    def _run(self, problem: Problem, rng: np.random.RandomState) -> Run:
        """The search from the closed form; chooses the iterate at its end."""
        problem.model.check_complete(problem.X)
        _check_lengths(problem.model, problem.X)
        start = self._start(problem)
        settled = None if self.target_weight else problem.settled
        closed = problem.model.parameters(start) if settled is None else settled
        prepared, model = problem.model, problem.model.without_prior()
        problem.model = model
        natural = model.natural_parameters(closed)
        if self.coordinates == "closed_form":
            refuse_zero_probabilities(natural)
        natural = _finite(natural)
        search = self._search(problem, lambda: _pooled(prepared, start), natural)
        natural = search.natural(search.minimise(self.max_iter, self.memory))
        parameters = model.from_natural(natural)
        chosen = Optimum(problem.total_weight * model.mean_parameters(parameters), parameters, search.value)
        n_iter = len(search.history) - 1
        if search.separable:
            reason = "separable"
        elif search.history[-1]["step"] <= self.tol:
            reason = "converged"
        else:
            reason = "max_iter" if n_iter == self.max_iter else "no_step"
        return Run(chosen, n_iter, search.history, reason)

    def _search(self, problem: Problem, pooled: Callable[[], Any], natural: Statistics) -> "_Search":
        """The search that the parameters, the model and its size ask for."""
        linear = has_features(problem.model)
        if not linear and (self.l2 or self.solver == "newton" or self.coordinates not in ("whitened", "standardised")):
            raise ValueError(
                f"the scores of {type(problem.model).__name__} are not known to be linear in features of the rows: "
                "l2, solver='newton' and linear coordinates are not available; leave them at their defaults"
            )
        if self.target_weight or self.coordinates == "standardised" or not linear:
            coordinates = Standardised(problem.model, pooled(), bool(self.target_weight))
            return _StandardisedSearch(problem, coordinates, coordinates.of(natural), self.tol)
        newton = self.solver == "newton" or (self.solver == "auto" and self.coordinates == "whitened")
        kind = "plain" if self.l2 else "conditioned" if newton else "natural"
        whiteners = pooled() if kind == "conditioned" else None
        features = Features(problem.model, problem.X, kind, whiteners, self.cache_size)
        r = len(problem.model.classes_)
        free = free_rows(r, features.width) if newton else r
        objective = LogisticObjective(features, problem.y, r, problem.sample_weight, self.l2, free or r)
        if newton and free:
            return _NewtonSearch(objective, natural, self.tol)
        name = "curvature" if newton else self.coordinates
        return _LinearSearch(objective, natural, self.tol, name)

    def _adopt(self, model: ClosedFormClassifier, run: Run) -> Self:
        self.separable_, self.objective_ = run.stop_reason == "separable", run.chosen.value
        return super()._adopt(model, run)

    def _report(self, problem: Problem, run: Run) -> None:
        n_iter, slope = len(run.history) - 1, run.history[-1]["step"]
        if run.stop_reason == "separable":
            message = "the model separates the classes of the training rows, so that no finite optimum exists"
        elif run.stop_reason != "converged":
            message = f"the search ended after {n_iter} iterations with a slope of {slope:.2g}; raise max_iter or tol"
        else:
            return
        warnings.warn(f"{message}; a target_weight > 0 makes the problem well posed", ConvergenceWarning, stacklevel=3)


class _Search:
    """A search for the least f = −[CLL + b (⟨s̄, η⟩ − m̄ψ(η))] per row and pseudo-row, or with l2; its history."""

    def __init__(self, tol: float, penalised: bool) -> None:
        self.tol, self.penalised = tol, penalised
        self.history: list[dict[str, float]] = []
        self.separable, self.value = False, np.nan

    def natural(self, z: Array) -> Statistics:
        """η(z)."""
        raise NotImplementedError

    def minimise(self, max_iter: int, memory: int) -> Array:
        """The z at the end of the search."""
        raise NotImplementedError

    def _enter(self, value: float, losses: Losses, separated: bool, step: float) -> bool:
        """Add an iterate to the history; whether the search is over: on separated rows once their log-loss falls below
        ``tol``."""
        row = history_row(len(self.history), losses, step)
        self.history.append(row | {"objective": value} if self.penalised else row)
        self.value, self.separable = value, separated and not self.penalised
        return self.separable and losses.log_loss < self.tol


class _NewtonSearch(_Search):
    """By `CurvatureSteps`."""

    def __init__(self, objective: LogisticObjective, start: Statistics, tol: float) -> None:
        super().__init__(tol, bool(objective.l2))
        self.objective, self.start = objective, start

    def natural(self, z: Array) -> Statistics:
        return self.objective.features.natural(self.objective.coefficients(z), self.start)

    def minimise(self, max_iter: int, memory: int) -> Array:
        objective = self.objective
        V = objective.of(objective.features.coefficients(self.start))
        at = objective(V)
        over = self._enter(at.value, at.losses, at.separated, float(np.abs(at.gradient).max()))
        if over or not max_iter:
            return V
        V, at = begun(objective, V, at, memory)
        return CurvatureSteps(objective, memory).minimise(V, at, self._recorded, max_iter)[0]

    def _recorded(self, V: Array, at: Evaluation, length: float) -> bool:
        return self._enter(at.value, at.losses, at.separated, length) or length <= self.tol


class _QuasiNewtonSearch(_Search):
    """By scipy's L-BFGS in coordinates z."""

    def __init__(self, start: Array, tol: float, penalised: bool) -> None:
        super().__init__(tol, penalised)
        self.z, self.over = start, False
        self.latest: dict[bytes, tuple[float, Array, Losses, bool]] = {}

    def minimise(self, max_iter: int, memory: int) -> Array:
        """Where rounding ends a line search the next search begins, with an empty memory, as long as it gets on."""
        z, before = self.z, -1
        options = {"maxcor": memory, "gtol": self.tol, "ftol": 0.0, "maxfun": np.inf}
        with suppress(StopIteration):
            self._record(OptimizeResult(x=z))
        while not self.over and before < len(self.history) - 1 < max_iter:
            before = len(self.history) - 1
            z = minimize(
                lambda z: self._evaluate(z)[:2],
                z,
                jac=True,
                method="L-BFGS-B",
                callback=self._record,
                options=options | {"maxiter": max_iter - before},
            ).x
        return z

    def _at(self, z: Array) -> tuple[float, Array, Losses, bool]:
        """Value and gradient in z, the losses, and whether all rows are classified right."""
        raise NotImplementedError

    def _evaluate(self, z: Array) -> tuple[float, Array, Losses, bool]:
        key = z.tobytes()
        if key not in self.latest:  # L-BFGS reports each iterate right after its evaluation
            self.latest = {key: self._at(z)}
        return self.latest[key]

    def _record(self, intermediate_result: OptimizeResult) -> None:
        value, gradient, losses, separated = self._evaluate(intermediate_result.x)
        slope = float(np.abs(gradient).max())
        self.over = self._enter(value, losses, separated, slope) or slope <= self.tol
        if self.over:
            raise StopIteration


class _LinearSearch(_QuasiNewtonSearch):
    """In linear coordinates of the coefficients of features."""

    def __init__(self, objective: LogisticObjective, start: Statistics, tol: float, name: str) -> None:
        self.objective, self.like = objective, start
        self.coordinates = linear_coordinates(name, objective, objective.features.coefficients(start))
        super().__init__(self.coordinates.start.ravel(), tol, bool(objective.l2))

    def _coefficients(self, z: Array) -> Array:
        return self.coordinates.coefficients(z.reshape(self.coordinates.start.shape))

    def natural(self, z: Array) -> Statistics:
        return self.objective.features.natural(self._coefficients(z), self.like)

    def _at(self, z: Array) -> tuple[float, Array, Losses, bool]:
        found = self.objective(self._coefficients(z))
        return found.value, self.coordinates.gradient(found.gradient).ravel(), found.losses, found.separated


class _StandardisedSearch(_QuasiNewtonSearch):
    """In standardised coordinates, which a target needs."""

    def __init__(self, problem: Problem, coordinates: Standardised, start: Statistics, tol: float) -> None:
        super().__init__(start.ravel(), tol, bool(problem.target_weight))
        self.problem, self.coordinates, self.start = problem, coordinates, start
        self.scale = problem.total_weight + problem.target_weight * problem.target_size

    def natural(self, z: Array) -> Statistics:
        return self.coordinates.natural(self.start.unravel(z))

    def _at(self, z: Array) -> tuple[float, Array, Losses, bool]:
        at = self.start.unravel(z)
        value, gradient, losses, separated = conditional_objective(self.problem, self.coordinates.natural(at))
        slope = self.coordinates.gradient(at, gradient).ravel()
        return -value / self.scale, -slope / self.scale, losses, separated


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

    return natural.map(replaced)


def _check_lengths(model: ConjugateClassifier, X: Any) -> None:
    """Refuse documents of unequal length: the scores are then more than the model can express."""
    if isinstance(model, ProductModel):
        for part, x in zip(model.models_, X):
            _check_lengths(part, x)
    elif isinstance(model, MultinomialNB) and np.ptp(X.sum(axis=1)) > 0:
        raise ValueError("X holds rows of unequal sums: MultinomialNB is an exponential family for equal sums only")
