"""The optimum of conditional likelihood with a target by Newton's method, and what each row left out would change."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.curvature import MinimalForm, SecondMoments, is_state, within_reach
from rcpkg.calibration.logistic import Curvature, Evaluation, LogisticObjective
from rcpkg.calibration.newton import Iterates, minimise, plan_of
from rcpkg.families import Statistics
from rcpkg.linalg import EPS, Factor, jittered_cholesky, slices

JITTER = (0.0, 1e-12, 1e-9)  # shares of the diagonal, added where rounding makes a curvature indefinite
DIFFERENCE = 1e-4  # of a row's statistics, for differences of a target
SAME = 1e-7  # share of such a difference that rounding may make of it
BLOCK_ENTRIES = 2**22  # of the solutions for all rows, block by block


class NotConverged(ArithmeticError):
    """Newton's method did not arrive."""


class Split(NamedTuple):
    """I in coordinates γ, δ of β = (γ, γ + δ_1, …), of which posteriors depend on δ alone; γ has the shared entries,
    too. L is the factor of the part of γ, with 1 for the constant that no model depends on, X = I_δγ L⁻ᵀ, and
    S = I_δδ − X Xᵀ what γ leaves of the part of δ."""

    factor: Factor
    X: Array
    S: Array

    @classmethod
    def of(cls, E: SecondMoments, more: Array | None = None) -> "Split":
        """I, with ``more`` on its diagonal."""
        (own, shared), (r, K, width) = E, E.own.shape
        if more is not None:
            own, shared = own.copy(), shared + np.diag(more[r * K :])
            np.einsum("ykk->yk", own[:, :, :K])[:] += more[: r * K].reshape(r, K)
        total, later, mean = own.sum(axis=0), np.arange(r - 1), own[1:, :, 0].ravel()
        across = np.outer(mean, -total[0])
        across += own[1:].reshape(-1, width)
        across[:, 0] = 0.0
        A = np.outer(total[0], -total[0])
        A[:K] += total
        A[K:, :K] += total[:, K:].T
        A[K:, K:] += shared
        A[0], A[:, 0], A[0, 0] = 0.0, 0.0, 1.0
        factor = factored(A)
        X = factor.whiten(across.T, overwrite=True).T
        S = X @ X.T
        S += np.outer(mean, mean)
        S *= -1.0
        S.reshape(r - 1, K, r - 1, K)[later, :, later] += own[1:, :, :K]
        return cls(factor, X, S)


def log_det_information(E: SecondMoments) -> float:
    """log |I| without the direction u that no model depends on: log |E s sᵀ|, since E s sᵀ u = μ."""
    K, value, rest = E.own.shape[1], 0.0, E.shared.copy()
    for own in E.own:
        factor = factored(own[:, :K])
        across = factor.whiten(own[:, K:]) if rest.size else own[:, K:]
        rest -= across.T @ across
        value += factor.log_det
    return value + factored(rest).log_det if rest.size else value


class Hessian(NamedTuple):
    """H = C + c I in γ and δ of `Split`, c = b m̄: the factor of C + c S, and of the rest what the split has."""

    split: Split
    of_delta: Factor
    c: float
    width: int  # K, entries of a class

    @property
    def log_det(self) -> float:
        """log |H| without the direction that no model depends on."""
        fixed = self.split.factor
        return fixed.log_det + (len(fixed.lower) - 1) * float(np.log(self.c)) + self.of_delta.log_det

    def divided(self, by: float) -> "Hessian":
        """H / by."""
        lower = self.of_delta.lower / np.sqrt(by)
        return self._replace(of_delta=self.of_delta._replace(lower=lower), c=self.c / by)

    def parts(self, g: Array) -> tuple[Array, Array]:
        """g_γ and g_δ for g by classes, a vector or rows of a matrix."""
        end = len(self.split.X) + self.width
        total = g[..., :end].reshape(*g.shape[:-1], -1, self.width).sum(axis=-2)
        total[..., 0] = 0.0  # but for rounding
        return np.concatenate([total, g[..., end:]], axis=-1), g[..., self.width : end]

    def reduced(self, of_gamma: Array, of_delta: Array) -> tuple[Array, Array]:
        """a = L⁻¹ g_γ and g_δ − X a."""
        a = self.split.factor.whiten(of_gamma.T).T
        rest = a @ self.split.X.T
        return a, np.subtract(of_delta, rest, out=rest)

    def whiten(self, g: Array) -> Array:
        """A vector of the squared length gᵀ H⁻¹ g."""
        a, rest = self.reduced(*self.parts(g))
        return np.concatenate([a / np.sqrt(self.c), self.of_delta.whiten(rest)])

    def solve(self, g: Array) -> Array:
        """H⁻¹ g for a vector g: (C + c S) δ = g_δ − X a and Lᵀ γ = a / c − Xᵀ δ."""
        a, rest = self.reduced(*self.parts(g))
        delta = self.of_delta.solve(rest)
        gamma = self.split.factor.whiten(a / self.c - self.split.X.T @ delta, transposed=True)
        first, shared = np.split(gamma, [self.width])
        return np.concatenate([first, (first + delta.reshape(-1, self.width)).ravel(), shared])


class Maximum(NamedTuple):
    """Where the search for a maximum ended: β, its curvature, the iterates to it, and why."""

    beta: Array
    H: Hessian
    history: list[dict[str, float]]
    stop_reason: str


class PenalisedLikelihood(LogisticObjective):
    """f(β) = −F_b(β) / (m + b m̄), F_b(β) = Σ_i w_i log p(y_i | x_i) + b [⟨s̄, β⟩ − m̄ ψ(β)]; infinite where ψ is.

    β are the minimal coordinates of a ``form``, and ``target`` is s̄ in them, of size m̄. F has the Hessian −H,
    H = C + b m̄ I.
    """

    divisible = False

    def __init__(
        self, form: MinimalForm, y: NDArray[np.intp], weight: Array, target: Array, target_size: float, b: float = 1.0
    ) -> None:
        super().__init__(form.rows, y, form.r, weight, free=form.r)
        self.form, self.target, self.target_size = form, target, target_size
        self.full, self.penalised, self.size = True, True, form.size
        self.b, self.total = b, self.rows_weight + b * target_size
        self.latest: tuple[Array, SecondMoments, Split] | None = None  # C of δ and I where last computed, and
        self.to_use = False  # whether the next curvature is of these: of another weight, or of the same place
        self.place: tuple[Array, Statistics, Any] | None = None  # the last β, its η, and θ where ψ is finite
        self.prior: tuple[float, float] | None = None  # ⟨s̄, β⟩ − m̄ψ and log|I| of the target
        self.slope: tuple[Array, Array] | None = None  # the last β of a pass, and the gradient there
        self.moved: tuple[Array, Array, Array] | None = None  # what each row does to s̄, of γ and δ, and to m̄

    def with_weight(self, b: float) -> "PenalisedLikelihood":
        """The same for another weight, which begins with the C and I of this one."""
        other = copy(self)
        other.b, other.total = b, self.rows_weight + b * self.target_size
        other.to_use, other.slope = self.latest is not None, None
        return other

    def __call__(self, V: Array) -> Evaluation:
        """One pass over the rows."""
        at = super().__call__(V)
        self.slope = V, at.gradient
        return at

    def _joint_model(self, beta: Array) -> tuple[Statistics, Any]:
        """η and θ at β, computed once; θ is None where ψ is infinite."""
        if self.place is None or not np.array_equal(beta, self.place[0]):
            natural = self.form.natural(beta)
            inside = self.form.map.is_inside(natural)
            self.place = beta, natural, self.form.model.from_natural(natural) if inside else None
        return self.place[1:]

    def parameters(self, beta: Array) -> Any:
        """θ of the joint model at β."""
        return self._joint_model(beta)[1]

    def penalty(self, V: Array) -> tuple[float, Array]:
        """−b [⟨s̄, β⟩ − m̄ ψ(β)] / (m + b m̄), and its gradient."""
        natural, parameters = self._joint_model(V)
        if parameters is None:
            return np.inf, np.zeros_like(V)
        value = self.target_size * self.form.model.log_partition(natural) - self.target @ V
        share = self.b / self.total
        return share * value, share * (self.target_size * self.form.mean(parameters) - self.target)

    def hessian_at(self, beta: Array) -> Hessian:
        """H, with C and I anew."""
        self._measure(beta)
        return self._latest_hessian()

    def _measure(self, beta: Array) -> None:
        """C and I anew, and which coordinates are log-odds of states."""
        C = self.total * self.information(beta)
        E = self.form.second_moments(self.parameters(beta))
        self.states = is_state(E.variances, E.mean) & (self.form.class_weights == 0)
        self.latest = C.reshape(len(C) * self.form.width, -1), E, Split.of(E)

    def _latest_hessian(self, more: Array | None = None) -> Hessian:
        """H of the latest C and I, with ``more`` on its diagonal."""
        (C, E, split), c = self.latest, self.b * self.target_size
        if more is not None and more.any():
            split = Split.of(E, more / c)
        H = c * split.S
        H += C
        return Hessian(split, factored(H), c, self.form.width)

    def curvature(self, V: Array, blur: float = 0.0, pseudo: Array | None = None, negligible: float = 0.0) -> Curvature:
        """H / (m + b m̄); the first one with the C and I of another weight, or of the same place, if there is one.

        Where it has to keep a step `within_reach` it serves once."""
        if not self.to_use:
            self._measure(V)
        self.to_use = False
        if self.slope is None or not np.array_equal(V, self.slope[0]):
            self(V)
        H, more = within_reach(self._latest_hessian, self.total * self.slope[1], self.states)
        return Curvature([H.divided(self.total)], serves_once=more > 0)

    def maximise(self, beta: Array, tol: float, max_iter: int, guesses: Sequence[Array] = ()) -> Maximum:
        """The maximum of F from β on, or from the best of ``guesses`` if that is better, where a Newton step of f has
        at most the length ``tol``, √(gᵀH⁻¹g).

        C and I serve for several points, and for the first steps of the next weight; in the end they are those of the
        maximum. The steps aim at half of ``tol``, since by older C and I they look shorter than they are. Raises
        `NotConverged` where ψ is infinite at the start.

        Where they ended too soon, the search goes on as long as it gains or its Newton step halves.
        """
        iterates, at = Iterates(tol, penalised=True), self(beta)
        if not np.isfinite(at.value):
            raise NotConverged("the start lies outside the domain")
        iterates.enter(at, float(np.abs(at.gradient).max()))
        if max_iter:
            beta, at = min([(beta, at), *((guess, self(guess)) for guess in guesses)], key=lambda pair: pair[1].value)

        def ended(at: Evaluation, length: float) -> bool:
            return iterates.enter(at, length) or length <= tol / 2

        length = np.inf
        while True:
            before, last, made = at.value, length, len(iterates.history) - 1
            beta, at = minimise(self, plan_of(self), beta, at, ended, max_iter - made)
            H = self.hessian_at(beta)
            iterates.history[-1]["step"] = length = float(np.sqrt(self.total) * np.linalg.norm(H.whiten(at.gradient)))
            reason = iterates.reason(max_iter)
            self.to_use = True
            stuck = before - at.value <= 4 * EPS * abs(before) and length > 0.5 * last
            if reason != "no_step" or stuck:
                return Maximum(beta, H, iterates.history, reason)

    def log_posterior(self, beta: Array) -> Array:
        """log p(y | x) of the rows, shape (n, r)."""
        scores = self.form.features @ self.form.by_class(beta).T
        return log_posterior(scores, np.full(self.r, -np.log(self.r)))

    def leave_one_out(self, maximum: Maximum, change: Array | None) -> Array:
        """log p(y | x_i) at the maximum without row i, one Newton step from β, shape (n, r).

        With S_i the statistics s(x_i, y) side by side, V_i = w_i (diag p_i − p_i p_iᵀ), A_i = S_iᵀ H⁻¹ S_i and
        q_i = w_i S_i (e_{y_i} − p_i) + b w_i ∂_i (s̄ − m̄ μ) the scores of row i fall by (1 − A_i V_i)⁻¹ S_iᵀ H⁻¹ q_i.
        ``change`` are the derivatives of (s̄, m̄) by a row's statistics, shape (p, p + 1), or None where there are none.
        """
        scores, r = self.log_posterior(maximum.beta), self.r
        by = self.rows_by_solving if len(scores) <= self.form.width else self.rows_by_inverse
        for rows, A, pulled in by(maximum, change):
            P, weight = np.exp(scores[rows]), self.weight[rows, None]
            mean = A @ P[:, :, None]
            lost = A[range(len(P)), self.y[rows], :, None] - mean + pulled[:, :, None]
            system = mean - A  # 1 − A V, as A V = (A − A p 1ᵀ) w diag p
            system *= (weight * P)[:, None]
            system[:, range(r), range(r)] += 1
            try:
                scores[rows] -= np.linalg.solve(system, lost * weight[:, None])[:, :, 0]
            except np.linalg.LinAlgError:
                raise NotConverged("a row alone decides a parameter") from None
        return log_posterior(scores, np.full(r, -np.log(r)))

    def rows_by_solving(self, maximum: Maximum, change: Array | None) -> Iterator[tuple[slice, Array, Array]]:
        """Rows with their A_i and b S_iᵀ H⁻¹ ∂_i (s̄ − m̄ μ), by solving for s(x_i, y) − s(x_i, 0) in the place of S_i.

        What all classes have in common moves no posterior: these are entries of δ.
        """
        form, r, n, H = self.form, self.r, len(self.y), maximum.H
        rows, later = slice(0, n), np.arange(r - 1)
        S = np.zeros((r - 1, n, r - 1, form.width))  # of a row side by side, as LAPACK wants them
        S[later, :, later] = form.features
        solved = H.of_delta.solve(S.reshape((r - 1) * n, -1).T, overwrite=True).T.reshape(S.shape)
        A, pulled = np.zeros((n, r, r)), np.zeros((n, r))
        A[:, 1:, 1:] = np.einsum("znyk,nk->nyz", solved, form.features)
        if change is not None:
            if self.moved is None:
                moved = form.times_statistics(change.T, self.y, rows).T
                self.moved = *H.parts(moved[:, :-1]), moved[:, -1]
            *moved, more = self.moved
            if more.any():
                mean = H.parts(form.mean(self.parameters(maximum.beta)))
                moved = [part - np.outer(more, one) for part, one in zip(moved, mean)]
            _, rest = H.reduced(*moved)
            pulled[:, 1:] = self.b * np.einsum("znp,np->nz", solved.reshape(r - 1, n, -1), rest)
        yield rows, A, pulled

    def rows_by_inverse(self, maximum: Maximum, change: Array | None) -> Iterator[tuple[slice, Array, Array]]:
        """The same by the inverse Δ of H of δ, of which each row meets (r − 1)² numbers fᵀ Δ_ab f.

        They are pairs of features times its entries, where these are fewer than pairs of classes, or found by blocks.
        """
        form, K, r, H = self.form, self.form.width, self.r, maximum.H
        inverse, pulls = H.of_delta.inverse(), None
        if change is not None:
            moved = change[:, :-1] - np.outer(change[:, -1], form.mean(self.parameters(maximum.beta)))
            pulls = self.b * (inverse @ H.reduced(*H.parts(moved))[1].T)
        own, (j, k) = inverse.reshape(r - 1, K, r - 1, K), np.triu_indices(K)
        pairs_of_classes = (r - 1) ** 2
        of_pairs = (own[:, j, :, k] + own[:, k, :, j]).reshape(-1, pairs_of_classes) if pairs_of_classes > K else None
        for rows in slices(len(self.y), -(-BLOCK_ENTRIES // (form.size + r * r))):
            features = form.features[rows]
            n = len(features)
            A, pulled = np.zeros((n, r, r)), np.zeros((n, r))
            met = A[:, 1:, 1:]  # a view
            if of_pairs is not None:
                pairs = features[:, j] * features[:, k] * np.where(j == k, 0.5, 1.0)
                met[:] = (pairs @ of_pairs).reshape(met.shape)
            for y in range(r - 1 if of_pairs is None else 0):
                products = features @ own[y, :, : y + 1].reshape(K, -1)
                met[:, y, : y + 1] = np.einsum("nrk,nk->nr", products.reshape(n, y + 1, K), features)
                met[:, :y, y] = met[:, y, :y]
            if pulls is not None:
                of_rows = form.times_statistics(pulls, self.y, rows).reshape(r - 1, K, n)
                pulled[:, 1:] = np.einsum("rkn,nk->nr", of_rows, features)
            yield rows, A, pulled

    def log_evidence(self, maximum: Maximum, mode: Array) -> float:
        """Laplace's log ∫ ∏_i p(y_i | x_i)^w_i π(β) dβ, π ∝ exp b[⟨s̄, β⟩ − m̄ψ(β)] by Laplace at its ``mode`` too.

        F_b(β̂) − b [⟨s̄, β̄⟩ − m̄ψ(β̄)] + ½ log|b m̄ I(β̄)| − ½ log|H(β̂)|.
        """
        if self.prior is None:
            value = -self.total / self.b * self.penalty(mode)[0]
            self.prior = value, log_det_information(self.form.second_moments(self.parameters(mode)))
        value, spread = self.prior
        gain = -self.total * maximum.history[-1]["objective"] - self.b * value
        return gain + 0.5 * (spread + (self.size - 1) * np.log(self.b * self.target_size) - maximum.H.log_det)


def factored(H: Array) -> Factor:
    """H, which should be definite. Raises `NotConverged` if it is singular."""
    try:
        return jittered_cholesky(H, JITTER)
    except np.linalg.LinAlgError:
        raise NotConverged("the curvature is not positive definite beyond rounding") from None


def target_change(
    form: MinimalForm, target_of: Callable[[Statistics], tuple[Array, float]], start: Statistics, by_total: bool
) -> Array:
    """∂(s̄, m̄)/∂s_k by differences, row by row, at the statistics of all rows: what a row does to the target.

    ``by_total``: the target depends on the sums that the form calls totalled only added up over the classes. Mostly
    each of them moves but itself in the target; then one difference tells of all, as another one confirms.
    """
    at, (before, weight) = form.sums(start), target_of(start)

    def change(places: NDArray[np.intp] | int, by: Array | float = 1.0) -> Array:
        step = np.zeros(form.size)
        step[places] = by
        try:
            after, more = target_of(form.statistics(at + DIFFERENCE * step))
        except InvalidStatistics as error:
            raise NotConverged("the target lies too near the boundary of the model") from error
        return np.append(after - before, more - weight) / DIFFERENCE

    found = np.zeros((form.size, form.size + 1))
    alike = form.totalled if by_total else np.empty(0, dtype=np.intp)
    everywhere = alike + form.width * np.arange(form.r)[:, None]
    alone = np.setdiff1d(np.arange(form.size), everywhere)
    if len(alike):
        found[alike, everywhere] = change(alike)[everywhere]
        uneven = np.cos(alike)
        mixed = change(alike, uneven)
        if mixed[-1] or np.abs(uneven @ found[alike] - mixed).max() > SAME * np.abs(mixed).max():
            alone = np.union1d(alone, alike)
    for k in alone:
        found[k] = change(k)
    found[everywhere[1:]] = found[alike]
    return found
