"""The optimum of a regularised conditional likelihood by Newton's method, and what each row left out would change.

F_b(β) = Σ_i w_i log p(y_i | x_i) + b [⟨s̄, β⟩ − m̄ ψ(β)] in the minimal coordinates of `MinimalForm`, with the Hessian
−H, H = C + b m̄ I.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.logistic import Curvature, Evaluation
from rcpkg.calibration.newton import COSTS, Iterates, Plan, cost_of_pass, minimise, stint_of
from rcpkg.calibration.rules import Losses, mean_losses, row_losses
from rcpkg.families import Statistics
from rcpkg.linalg import Factor, jittered_cholesky, slices

JITTER = (0.0, 1e-12, 1e-9)  # shares of the diagonal, added where rounding makes a curvature indefinite
DIFFERENCE = 1e-4  # of a row's statistics, for differences of a target
BLOCK_ENTRIES = 2**22  # of the solutions for all rows, block by block


class Point(NamedTuple):
    """F, its gradient, the log posteriors of the rows, and parameters and mean μ of the joint model at some β."""

    value: float
    gradient: Array
    log_P: Array
    parameters: Any
    mean: Array


class NotConverged(ArithmeticError):
    """Newton's method did not arrive."""


class PenalisedLikelihood:
    """F_b of a model, for the target statistics s̄ of size m̄ as a vector."""

    def __init__(
        self, form: MinimalForm, y: NDArray[np.intp], weight: Array, target: Array, target_size: float
    ) -> None:
        self.form, self.y, self.weight = form, y, weight
        self.target, self.target_size = target, target_size
        self.Y = np.equal.outer(y, np.arange(form.r)).astype(float)
        self.latest: tuple[Array, Array] | None = None  # C and m̄ I where they were last computed
        self.spread: float | None = None  # log|m̄ I| of the target

    def evaluate(self, beta: Array, b: float) -> Point | None:
        """F_b and its gradient; None where ψ is infinite."""
        form = self.form
        natural = form.natural(beta)
        if not form.is_inside(natural):
            return None
        parameters = form.model.from_natural(natural)
        mean = form.mean(parameters)
        scores = form.features @ form.by_class(beta).T
        log_P = log_posterior(scores, np.full(form.r, -np.log(form.r)))
        value = float(self.weight @ log_P[np.arange(len(self.y)), self.y])
        value += b * (self.target @ beta - self.target_size * form.model.log_partition(natural))
        gradient = form.weighted_sums((self.Y - np.exp(log_P)) * self.weight[:, None])
        gradient += b * (self.target - self.target_size * mean)
        return Point(value, gradient, log_P, parameters, mean) if np.isfinite(value) else None

    def curvature(self, point: Point, b: float) -> "Hessian":
        """H = C + b m̄ I at a point, factored."""
        C = self.form.conditional_curvature(np.exp(point.log_P), self.weight)
        self.latest = C, self.target_size * self.form.information(point.parameters)
        return self.factor(b)

    def factor(self, b: float) -> "Hessian":
        """H with the C and I of the point where they were last computed."""
        C, I = self.latest
        return factored(C + b * I, self.form.class_weights)

    def maximise(self, beta: Array, b: float, tol: float, max_iter: int) -> "Maximum":
        """The maximum from β on, where a Newton step has at most the length ``tol``, √(gᵀH⁻¹g / m), m counting rows
        and pseudo-rows.

        C and I serve for several points, and for the first steps of the next weight; in the end they are those of the
        maximum. Raises `NotConverged` where ψ is infinite at the start.
        """
        f, iterates = ScaledLoss(self, b), Iterates(tol, penalised=True)
        at = f(beta)
        if f.point is None:
            raise NotConverged("the start lies outside the domain")
        iterates.enter(at, float(np.abs(at.gradient).max()))
        while True:
            before, made = at.value, len(iterates.history) - 1
            beta, at = minimise(f, f.plan(), beta, at, iterates.record, max_iter - made)
            point = f.at(beta)
            H = self.curvature(point, b)
            iterates.history[-1]["step"] = f.scaled(H).length(at.gradient)
            reason = iterates.reason(max_iter)
            if reason != "no_step" or not at.value < before:
                return Maximum(beta, point, H, iterates.history, reason)

    def leave_one_out(self, beta: Array, point: Point, H: "Hessian", b: float, change: Array | None) -> Array:
        """log p(y | x_i) at the maximum without row i, one Newton step from β, shape (n, r).

        With S_i the statistics s(x_i, y) of row i side by side, V_i = w_i (diag p_i − p_i p_iᵀ), A_i = S_iᵀ H⁻¹ S_i and
        q_i = w_i S_i (e_{y_i} − p_i) + b w_i ∂_i (s̄ − m̄ μ), what row i adds to the gradient, the scores of the row
        fall by (1 − A_i V_i)⁻¹ S_iᵀ H⁻¹ q_i. ``change`` is the derivative of s̄ − m̄ μ by a row's statistics, a matrix,
        or None where the target does not depend on the rows.
        """
        form, P = self.form, np.exp(point.log_P)
        K, r, p = form.width, form.r, form.size
        # one solve for the unit vectors serves all rows, of which each meets r × r numbers fᵀ (H⁻¹)_ab f
        inverse = H.factor.solve(np.eye(p))
        pulls = None if change is None else b * (inverse[: r * K] @ change)
        scores = form.features @ form.by_class(beta).T
        for rows in slices(len(scores), max(1, BLOCK_ENTRIES // p)):
            features, weight = form.features[rows], self.weight[rows, None, None]
            n = len(features)
            A = np.empty((n, r, r))
            for y in range(r):
                products = features @ inverse[y * K : (y + 1) * K, : (y + 1) * K]
                A[:, y, : y + 1] = np.einsum("nrk,nk->nr", products.reshape(n, y + 1, K), features)
                A[:, :y, y] = A[:, y, :y]
            lost = A @ (self.Y[rows] - P[rows])[:, :, None]
            if pulls is not None:
                pulled = form.times_statistics(pulls, self.y, rows).reshape(r, K, n)
                lost += np.einsum("rkn,nk->nr", pulled, features)[:, :, None]
            V = P[rows, :, None] * (np.eye(r) - P[rows, None, :]) * weight
            scores[rows] -= np.linalg.solve(np.eye(r) - A @ V, lost * weight)[:, :, 0]
        return log_posterior(scores, np.full(r, -np.log(r)))

    def log_evidence(self, point: Point, H: "Hessian", b: float, mode: Array) -> float:
        """Laplace's log ∫ ∏_i p(y_i | x_i)^w_i π(β) dβ, π ∝ exp b[⟨s̄, β⟩ − m̄ψ(β)] by Laplace at its ``mode`` too.

        F_b(β̂) − b [⟨s̄, β̄⟩ − m̄ψ(β̄)] + ½ log|b m̄ I(β̄)| − ½ log|H(β̂)|.
        """
        natural = self.form.natural(mode)
        prior = b * (self.target @ mode - self.target_size * self.form.model.log_partition(natural))
        if self.spread is None:
            information = self.form.information(self.form.model.from_natural(natural))
            self.spread = factored(self.target_size * information, self.form.class_weights).log_det
        of_prior = self.spread + (self.form.size - 1) * np.log(b)
        return point.value - prior + 0.5 * (of_prior - H.log_det)


class ScaledLoss:
    """f(β) = −F_b(β) / m per row and pseudo-row, as `minimise` wants it; infinite where ψ is."""

    def __init__(self, likelihood: PenalisedLikelihood, b: float) -> None:
        self.likelihood, self.b = likelihood, b
        self.total = likelihood.weight.sum() + b * likelihood.target_size
        self.beta: Array | None = None
        self.point: Point | None = None  # the last one that was evaluated
        self.known = likelihood.latest is not None  # C and I, of the maximum for another weight

    def at(self, beta: Array) -> Point | None:
        """The point of β, computed once."""
        if self.beta is None or not np.array_equal(beta, self.beta):
            self.beta, self.point = beta, self.likelihood.evaluate(beta, self.b)
        return self.point

    def __call__(self, beta: Array) -> Evaluation:
        point = self.at(beta)
        if point is None:
            return Evaluation(np.inf, np.zeros_like(beta), Losses(np.nan, np.nan, np.nan), False)
        losses = mean_losses(row_losses(point.log_P, self.likelihood.y), self.likelihood.weight)
        return Evaluation(-point.value / self.total, -point.gradient / self.total, losses, False)

    def curvature(self, beta: Array, blur: float = 0.0) -> Curvature:
        """H / m; the first one with the C and I of another weight, if there is one."""
        F, known, self.known = self.likelihood, self.known, False
        return self.scaled(F.factor(self.b) if known else F.curvature(self.at(beta), self.b))

    def scaled(self, H: "Hessian") -> Curvature:
        """H / m."""
        lower = H.factor.lower / np.sqrt(self.total)
        return Curvature([H.factor._replace(lower=lower)])

    def plan(self) -> Plan:
        """A curvature for as many iterations as it costs passes over the rows."""
        form, n = self.likelihood.form, len(self.likelihood.y)
        curvature = COSTS.product * (n * form.width**2 * form.r * (form.r - 1) + form.size**3)
        return Plan(self.curvature, stint_of(curvature, cost_of_pass(4.0 * n * form.width * form.r, n * form.r)))


class Maximum(NamedTuple):
    """Where the search for a maximum ended: β, its point and curvature, the iterates to it, and why."""

    beta: Array
    point: Point
    H: "Hessian"
    history: list[dict[str, float]]
    stop_reason: str


class Hessian(NamedTuple):
    """A curvature H, factored, and its log determinant but for the direction that no model depends on."""

    factor: Factor
    log_det: float


def factored(H: Array, u: Array) -> Hessian:
    """H + c uuᵀ, Hu being zero; c makes this direction count as others do. Raises `NotConverged` if it is singular."""
    c = H.diagonal() @ u / (u @ u) ** 2
    try:
        factor = jittered_cholesky(H + c * np.outer(u, u), JITTER)
    except np.linalg.LinAlgError:
        raise NotConverged("the curvature is not positive definite beyond rounding") from None
    return Hessian(factor, factor.log_det - float(np.log(c)))


def target_change(
    form: MinimalForm, target_of: Callable[[Statistics], tuple[Array, float]], start: Statistics, by_total: bool
) -> tuple[Array, Array]:
    """∂s̄/∂s and ∂m̄/∂s by differences, at the statistics of all rows: what a row does to the target.

    ``by_total``: the target depends on the sums that the form calls totalled only added up over the classes.
    """
    at = form.sums(start)
    (before, weight), target, size = target_of(start), np.empty((form.size, form.size)), np.empty(form.size)
    alike = form.totalled if by_total else np.empty(0, dtype=np.intp)
    later = (alike + form.width * np.arange(1, form.r)[:, None]).ravel()
    for k in np.setdiff1d(np.arange(form.size), later):
        step = np.zeros(form.size)
        step[k] = DIFFERENCE
        try:
            after, more = target_of(form.statistics(at + step))
        except InvalidStatistics as error:
            raise NotConverged("the target lies too near the boundary of the model") from error
        target[:, k], size[k] = (after - before) / DIFFERENCE, (more - weight) / DIFFERENCE
    target[:, later], size[later] = np.tile(target[:, alike], form.r - 1), np.tile(size[alike], form.r - 1)
    return target, size
