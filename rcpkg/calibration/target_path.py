"""Optima of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)] for one weight b of the target after another, and the rows left out of them."""

from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.climb import climb
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.newton import SAMPLES, stratified
from rcpkg.calibration.objective import Objective, check_each, log_posterior_of, target_parameters
from rcpkg.calibration.penalised import NotConverged, PenalisedLikelihood, target_change
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Converged, Outcome
from rcpkg.families import ClosedFormClassifier, Family, Statistics
from rcpkg.linalg import keep_freed_memory
from rcpkg.rows import Rows

MOST_PARAMETERS = 1000  # of a Hessian, or so many products; beyond them safe steps take the place of Newton's
MOST_PRODUCTS = 1e12
TOL = 2e-6  # length √(gᵀH⁻¹g / m) of a Newton step at an optimum, m counting rows and pseudo-rows


class TargetPath:
    """Optima of an ``objective`` with a target by Newton's method, each from the last.

    Where the Hessian is too large, or not definite beyond rounding, or the family has no minimal coordinates, safe
    steps take its place: ``lack`` then says why. Rows can be left out of a target that has a name where the family is
    given, ``prepared``, that made it.
    """

    def __init__(
        self,
        objective: Objective,
        prepared: Family | None = None,
        target: str | ClosedFormClassifier | None = None,
        max_iter: int = 1000,
        n_weights: int = 1,
    ) -> None:
        F = self.objective = objective
        self.prepared, self.target, self.max_iter = prepared, target, max_iter
        self.lack, self.gaps, self.maximum, self.last = "", False, None, None
        try:
            check_each(F.rows, F.family.check_complete)
        except ValueError:
            self.lack, self.gaps = "rows have gaps, or are to have them, which leaves safe steps that take longer", True
            return
        try:
            # a cell that no row shows may have pseudo-rows of the target
            self.form = MinimalForm(F.family, F.X, F.labels + F.target.statistics)
        except NotImplementedError as error:
            self.lack = str(error)
            return
        n, size = len(F.y), self.form.size
        if size > MOST_PARAMETERS or n * size**2 * n_weights > MOST_PRODUCTS:
            self.lack = f"{size} parameters and {n} rows are more than its Hessians are made for"
            return
        keep_freed_memory()
        weight = np.ones(n) if F.weight is None else F.weight
        drawn = self.form.sums(F.target.statistics)
        self.likelihood = PenalisedLikelihood(self.form, F.y, weight, drawn, F.target.size)

    @classmethod
    def of(
        cls,
        model: ClosedFormClassifier,
        target: str | ClosedFormClassifier,
        X: Any,
        y: NDArray[np.intp],
        sample_weight: Array | None = None,
        n_weights: int = 1,
        gaps_in_view: Any = None,
        random_state: np.random.RandomState | None = None,
    ) -> Self:
        """As `of_rows`, on arrays, for a model that knows the classes; it is copied, and prepared for these rows."""
        model = copy(model)
        model._prepare(X)
        return cls.of_rows(model, target, Rows.of(X, y, sample_weight), n_weights, gaps_in_view, random_state)

    @classmethod
    def of_rows(
        cls,
        model: ClosedFormClassifier,
        target: str | ClosedFormClassifier,
        rows: Rows,
        n_weights: int = 1,
        gaps_in_view: Any = None,
        random_state: np.random.RandomState | None = None,
    ) -> Self:
        """The path of ``n_weights`` weights of a target on validated rows with class numbers, for a model that is
        prepared for them; ``gaps_in_view`` as in `RiskCalibration`."""
        view = {"gaps_in_view": gaps_in_view, "random_state": random_state}
        objective = Objective.of_rows(model, rows, target=target, target_weight=1.0, **view)
        return cls(objective, model.family_, target, n_weights=n_weights)

    def follow(self, b: float, tol: float = TOL, safe_tol: float = 1e-8, natural: Statistics | None = None) -> Outcome:
        """The optimum of the weight b, from an η, ``natural``, or else from the last, or from the start of b; safe
        steps end where one promises a gain of ``safe_tol`` nats a row."""
        family = self.objective.family
        if not self.lack:
            try:
                self._maximise(b, tol, natural)
            except NotConverged as error:
                self.lack = str(error)
        if self.lack:
            if natural is not None:
                parameters = family.from_natural(natural)
                self.last = self.objective.total_weight * family.mean_parameters(parameters)
            optimum = by_safe_steps(self.objective.with_weight(b), safe_tol, self.max_iter, self.last)
            self.last = optimum.statistics
            return optimum
        beta, _, history, reason = self.maximum
        parameters = self.likelihood.parameters(beta)
        statistics = self.objective.total_weight * family.mean_parameters(parameters)
        return Outcome.found(statistics, parameters, history[-1]["objective"], history, reason)

    def _maximise(self, b: float, tol: float, natural: Statistics | None) -> None:
        family, guesses = self.objective.family, ()
        self.likelihood = self.likelihood.with_weight(b)
        if natural is None and self.maximum is None:
            F = self.objective.with_weight(b)
            natural = family.natural_parameters(family.parameters(F.start))
            guesses = self._guesses(F, self.form.coefficients(natural))
        beta = self.maximum.beta if natural is None else self.form.coefficients(natural)
        self.maximum = self.likelihood.maximise(beta, tol, self.max_iter, guesses)

    def _guesses(self, F: Objective, beta: Array) -> list[Array]:
        """Where the search may begin better than at the start of F, β: at the optimum on a sample; and, where even the
        target is better since the start is far too sure of itself, between the two."""
        sample, family = self._sample(F), self.objective.family
        if sample is not None:
            return [self.form.coefficients(family.natural_parameters(sample.parameters))]
        if self.likelihood(self.mode).value >= self.likelihood(beta).value:
            return []
        return [self.mode + share * (beta - self.mode) for share in (0.0, *SAMPLES.tempers)]

    def _sample(self, F: Objective) -> Outcome | None:
        """The optimum on a sample of many rows, to the accuracy of that, where the search on all of them begins."""
        n, p = len(F.y), self.form.size
        size = max(n / SAMPLES.part, SAMPLES.per_coefficient * p)
        if size > n / 4:
            return None
        index, weight = stratified(self.likelihood, size, SAMPLES.of_class * self.form.width)
        try:
            path = TargetPath(F.on(index, weight))
            return path.follow(F.target.weight, float(np.sqrt(0.1 * p / size)))
        except InvalidStatistics:
            return None

    def log_posterior(self, X: Any, optimum: Outcome) -> Array:
        """log p(y | x) of rows at an optimum."""
        return log_posterior_of(self.objective.family, X, optimum.parameters)

    def left_out(self) -> tuple[Array, float]:
        """log p(y | x_i) without row i at the last weight, and the log evidence of that weight."""
        if self.lack:
            raise NotConverged(self.lack)
        F, maximum = self.likelihood, self.maximum
        if maximum.stop_reason != "converged":
            raise NotConverged(f"Newton's method ended with {maximum.stop_reason!r} at the weight {F.b:g}")
        return F.leave_one_out(maximum, self.change), F.log_evidence(maximum, self.mode)

    @cached_property
    def change(self) -> Array | None:
        """Derivatives of (s̄, m̄) by a row's statistics, shape (p, p + 1); None for a target that is given."""
        if not isinstance(self.target, str):
            return None
        return target_change(self.form, self.target_of, self.objective.labels, self.target in ("pooled", "grand"))

    def target_of(self, statistics: Statistics) -> tuple[Array, float]:
        """s̄ and m̄ for statistics of the rows."""
        parameters, size = target_parameters(self.prepared, statistics, self.target)
        return size * self.form.sums(self.prepared.mean_parameters(parameters)), size

    @cached_property
    def mode(self) -> Array:
        """β of the target."""
        family = self.objective.family
        return self.form.coefficients(family.natural_parameters(family.parameters(self.objective.target.statistics)))


def by_safe_steps(objective: Objective, tol: float, max_iter: int, start: Statistics | None = None) -> Outcome:
    """The optimum of an ``objective`` by safe steps, until one promises a gain of at most ``tol`` nats a row."""
    return Outcome.of(climb(objective, Safe(), Converged(tol), max_iter, start=start))
