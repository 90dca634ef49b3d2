"""Optima of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)] for one weight b of the target after another, and the rows left out of them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import Conditional, Iterate, finite_natural
from rcpkg.calibration.constants import COARSE_TOL, DIFFERENCE, MOST_PARAMETERS, NEWTON_TOL, SAFE_TOL
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.newton import SharedNewton, Solve
from rcpkg.calibration.objective import Objective, check_each, log_posterior_of_new, target_of, target_parameters
from rcpkg.calibration.optimum import in_coordinates
from rcpkg.calibration.steps import Safe
from rcpkg.calibration.stops import Converged, Path, Stop
from rcpkg.capabilities import MARGINALS
from rcpkg.families import ClosedFormClassifier, Family, Statistics, Unsupported, can
from rcpkg.linalg import AT_A_TIME, Factor, jittered_cholesky, slices
from rcpkg.rows import Block, Rows


class NotConverged(ArithmeticError):
    """There is no approximate leave-one-out; the message says why."""


class TargetPath:
    """Optima of an ``objective`` with a target by Newton's method, each from that of the nearest weight.

    Where the family or its rows have no coordinates for it, safe steps take its place: ``why_not`` then says why, and
    ``gaps`` whether rows with missing values are the reason. Rows can be left out of a target that has a name where the
    model is given, ``prepared``, that made it.
    """

    def __init__(
        self,
        objective: Objective,
        prepared: Family | None = None,
        target: str | ClosedFormClassifier | None = None,
    ) -> None:
        self.objective, self.prepared, self.target = objective, prepared, target
        self.why_not, self.gaps, self.path, self.conditional = "", False, None, None
        self._paths: dict[float, Path] = {}  # to the optima, by their weights
        self._solves: dict[float, Solve | None] = {}  # by the last factors on the way to these
        self._naturals: dict[float, Array] = {}  # of these, where they lead others
        # paths of other targets of the same rows, and of the same target in other folds, in the same form
        self.other_targets: list[Self] = []
        self.fold_paths: list[Self] = []
        try:
            check_each(objective.rows, objective.family.check_complete)
        except Unsupported:
            self.why_not = "rows have gaps, or are to have them, which leaves safe steps that take longer"
            self.gaps = True
            return
        try:
            F = self.conditional = in_coordinates(objective)
            F.doubt_threshold = COARSE_TOL**2
        except Unsupported as error:
            self.why_not = str(error)
            return
        if F.form.size > MOST_PARAMETERS:
            self.why_not = f"{F.form.size} parameters are more than its Hessians are made for"

    @classmethod
    def from_estimator(
        cls,
        model: ClosedFormClassifier,
        target: str | ClosedFormClassifier,
        *rows: Any,
        gaps_in_view: Any = None,
        random_state: np.random.RandomState | None = None,
        fills: bool = False,
    ) -> Self:
        """The path over weights of a target on validated ``rows`` with class numbers: `Rows`, for which the
        ``model`` is prepared, or arrays (X, y) or (X, y, sample_weight), for which a copy of it is.

        ``gaps_in_view`` as in `RiskCalibration`. With ``fills`` that of the rows with what is missing filled by what
        the closed form expects there, where it can: a path of safe steps takes up to 200 times as long.
        """
        if not isinstance(rows[0], Rows):
            model = copy(model)
            model._prepare(rows[0])
            rows = (Rows.from_arrays(*rows),)
        view = {"gaps_in_view": gaps_in_view, "random_state": random_state}
        objective = Objective.from_rows(model, *rows, target=target, target_weight=1.0, **view)
        path = cls(objective, model.family_, target)
        if not (fills and path.gaps and can(path.prepared, MARGINALS)):
            return path
        fill = partial(filled_block, copy(path.prepared), path.prepared.parameters(objective.labels))
        return cls.from_estimator(model, target, rows[0].map(fill))

    def towards(self, target: str | ClosedFormClassifier) -> Self:
        """The path of another target on the same rows, in half of the time that one from these takes."""
        drawn = target_of(self.prepared, self.objective.labels, target, 1.0)
        return type(self)(replace(self.objective, target=drawn, start=None), self.prepared, target)

    def follow(self, b: float, tol: float = NEWTON_TOL, safe_tol: float = SAFE_TOL) -> Path:
        """The path to the optimum of the weight b, where a step promises at most ``tol`` nats a row, or ``safe_tol`` if
        it is a safe one. It begins where known optima predict that of b, or else at the start of b. With the ``tol`` of
        rows to be left out the Hessian at the end tells the promise."""
        if b in self._paths:
            self.path = self._paths[b]
            return self.path
        others = sorted(self._paths, key=lambda weight: abs(np.log(weight / b)))
        near = self._paths[others[0]] if others else None
        if self.conditional is None:
            F, start = self.objective.with_weight(b), near and near.point.statistics
            self.path = climb(F, Safe(), Converged(safe_tol), start=start)
        else:
            F = self.conditional = (near.objective if near else self.conditional).with_weight(b)
            start, solve = self._start(F, others)
            newton = SharedNewton(solve)
            self.path = climb(F, newton, Converged(tol, tol <= NEWTON_TOL), start=start)
            related = (*self.fold_paths, *self.other_targets)
            if any(each._solves.get(b) is solve is newton.run.last is not None for each in related):
                tol = max(COARSE_TOL * tol, NEWTON_TOL)  # by the factor of other rows a promise may come out too low
                self.path = climb(F, newton, Converged(tol, tol <= NEWTON_TOL), start=self.path.point)
            self._solves[b] = newton.run.last
        self.path.joint_model = "optimum" if self.path.stop_reason == "converged" else "iterate"
        self._paths[b] = self.path
        return self.path

    def finish(self, b: float) -> Path:
        """The same and on, by the Hessian at its end, until rounding has the say: so it ends at the same model wherever
        other optima have let it begin, and a row of weight two is two rows."""
        path, solve = self.follow(b), None
        while self.conditional and path.stop_reason == "converged" and path.point.objective.exact:
            point = path.point
            solve = solve or point.curvature.solve
            end = point.objective.iterate(point.z - solve(point.evaluation.gradient))
            end.ahead = solve(end.evaluation.gradient)
            if end.estimate > COARSE_TOL * point.estimate:
                break
            path.enter(end, Stop())
        return path

    def _start(self, F: Conditional, weights: list[float]) -> tuple[Iterate, Solve | None]:
        """Where a search begins, and by which factor, if one is known that serves there.

        It begins where optima of other folds or, if these are nearer, of another target lead; without folds, at the
        best of that and of what optima of the nearest ``weights`` predict. The factor is that of the other path, or
        that of the nearest weight.

        The bar is `RiskCalibrationCV` on up to 1,000 rows: one pass in place of three or four tells the start, which is
        6 % of a choice by folds. The optimum is the same, whose promise ends the search.
        """
        z, solve = self._start_by_related_paths(F, weights)
        if not F.exact or F._has_fewer_rows:  # whose systems cost little for what the rows of a fold change
            solve = None

        def begun(point: Iterate) -> Iterate:
            return F.iterate(point.z, point.evaluation, solve(point.evaluation.gradient)) if solve else point

        best = None if z is None else F.iterate(z)
        by_parts = best is not None and any(F.target.weight in each._paths for each in self.fold_paths)
        if not (by_parts and np.isfinite(best.evaluation.value) and (not solve or F.is_credible(begun(best)))):
            starts = self._predicted(F, weights) if weights else [F.evaluate(None)]
            best = min([*starts, best or starts[0]], key=lambda point: point.evaluation.value)
            if not (by_parts or weights or F.is_credible(begun(best))):
                best = F.iterate(F.anchor)
        if solve is None and weights and F.exact and F.steps_per_hessian > 1:
            solve = F.curvature_nearby(best.z).solve
        return begun(best), solve

    def _start_by_related_paths(self, F: Conditional, weights: list[float]) -> tuple[Array | None, Solve | None]:
        """Where the optima of other folds, in the mean, or of another target lead, and the last factor of these, if
        there are any: of the two whichever is nearer to the own optimum at the nearest weight.

        The start is as far from theirs as the own optima are at the nearest ``weights``, by a polynomial in log b.
        Towards b = ∞, the target, that one is taken in, too, and log (1/b + m̄/m), which is about log b or 1/b.
        """
        b, least, start = F.target.weight, np.inf, (None, None)
        for others in (self.fold_paths, self.other_targets):
            others = [each for each in others if b in each._paths and each.conditional]
            if not others:
                continue
            near = [weight for weight in weights if all(weight in each._paths for each in others)]
            near = near[: 2 if self.fold_paths else 1]
            towards = bool(self.fold_paths) and (not near or b > min(near))
            near += [np.inf] * towards
            end, *begun = np.mean([[each._natural(weight) for weight in (b, *near)] for each in others], axis=0)
            apart = [self._natural(weight) - natural for weight, natural in zip(near, begun)]
            form = others[0]._paths[b].point.natural
            far = np.linalg.norm(F.place(form.unravel(apart[0]))) if near else 0.0
            if near and not self.fold_paths and 2 * far >= np.linalg.norm(F.place(form.unravel(end - begun[0]))):
                continue  # without folds the other target alone leads, and from far apart it leads astray
            with suppress(np.linalg.LinAlgError):  # two places are one but for rounding
                places = np.log(1 / np.array([b, *near]) + towards * F.target.size / F.total_weight)
                natural = end + interpolated(places[1:] - places[0], apart) if near else end
                if far < least:
                    solve = next((each._solves[b] for each in others[::-1] if each._solves.get(b)), None)
                    least, start = far, (F.place(form.unravel(natural)), solve)
        return start

    def _natural(self, b: float) -> Array:
        """η of the optimum of a weight, or of the target, that of b = ∞, as a vector."""
        if b not in self._naturals:
            natural = self._paths[b].point.natural if b < np.inf else self.conditional.natural(self.conditional.anchor)
            self._naturals[b] = finite_natural(natural).ravel()
        return self._naturals[b]

    def _predicted(self, F: Conditional, weights: list[float]) -> list[Iterate]:
        """Starts by polynomials through the optima of these ``weights``: in log b, and in 1/(m + b m̄) with that of
        b = ∞, the target. Where rounding leaves both no model, the nearest optimum."""
        b, optima = F.target.weight, [self._paths[weight].point.z for weight in weights]
        sizes = np.array([self._paths[weight].objective.size for weight in weights])
        in_sizes, starts = (np.append(F.size / sizes, 0.0) - 1, [*optima, F.anchor]), []
        for places, ends in ((np.log(np.divide(weights, b)), optima), in_sizes):
            with suppress(np.linalg.LinAlgError):  # two places are one but for rounding
                starts.append(F.iterate(interpolated(places, ends)))
        has_model = any(np.isfinite(point.evaluation.value) for point in starts)
        return starts if has_model else [F.iterate(optima[0])]

    @property
    def parameters(self) -> Any:
        """θ at the last optimum, after one step more if the search has computed it to tell its promise: a fold then
        needs fewer steps to the same digits."""
        point = self.path.point
        known = self.path.stop_reason == "converged" and getattr(point, "ahead", None) is not None
        after = self.conditional.parameters(point.z - point.ahead) if known else None
        return point.parameters if after is None else after

    def log_posterior(self, X: Any, path: Path) -> Array:
        """log p(y | x) of rows at an optimum."""
        return log_posterior_of_new(self.objective.family, X, path.point.parameters)

    def left_out(self) -> tuple[Array, float]:
        """log p(y | x_i) without row i at the last weight, shape (n, r), and the log evidence of that weight."""
        if self.why_not:
            raise NotConverged(self.why_not)
        if self.path.stop_reason != "converged":
            b = self.conditional.target.weight
            raise NotConverged(f"Newton's method ended with {self.path.stop_reason!r} at the weight {b:g}")
        F, point = self.conditional, self.path.point
        try:
            curvature = F.dense_curvature(point)
        except np.linalg.LinAlgError:
            raise NotConverged("the curvature is not positive definite beyond rounding") from None
        H = curvature.factors[0]
        H = H._replace(lower=np.sqrt(F.size) * H.lower)
        return self._log_posterior_left_out(H), self._log_evidence(H.log_det)

    def _log_posterior_left_out(self, H: Factor) -> Array:
        """log p(y | x_i) one Newton step from the optimum, at that without row i, for H of all rows.

        With S_i the statistics s(x_i, y) − s(x_i, 1) side by side, V_i = w_i (diag p_i − p_i p_iᵀ), A_i = S_iᵀ H⁻¹ S_i
        and q_i = w_i S_i (e_{y_i} − p_i) + b w_i ∂_i (s̄ − m̄ μ) row i's scores fall by (1 − A_i V_i)⁻¹ S_iᵀ H⁻¹ q_i
        but for what all classes have in common.
        """
        F = self.conditional
        form, r, K, y = F.form, F.r, F.width, F.data.y
        weight = np.ones(len(y)) if F.data.weight is None else F.data.weight
        first = form.size - (r - 1) * K  # of δ, which alone posteriors see: half of H's rows where classes are two
        of_delta = H._replace(lower=np.asfortranarray(H.lower[first:, first:]))
        of_class, drawn = of_delta.inverse().reshape(r - 1, K, r - 1, K), None
        if self.change is not None:
            change, places = self.change
            moved = change[:, :-1] - np.outer(change[:, -1], form.mean(self.path.point.parameters))
            of_rows = H.whiten(form.differences(moved).T, overwrite=True)[first:]
            drawn = F.target.weight * of_delta.whiten(of_rows, transposed=True)[:, places]
        B = F.data.coefficients(F.scored(self.path.point.z))
        scores = log_posterior(form.features @ B.T, np.full(r, -np.log(r)))
        for rows in slices(len(y), -(-AT_A_TIME // (form.size + r * r))):
            features, P, w = form.features[rows], np.exp(scores[rows]), weight[rows, None]
            A = np.zeros((len(P), r, r))
            for a in range(1, r):
                for c in range(1, a + 1):
                    A[:, a, c] = A[:, c, a] = np.einsum("nk,nk->n", features @ of_class[a - 1, :, c - 1], features)
            lost = A[range(len(P)), y[rows]] - np.einsum("nab,nb->na", A, P)
            if drawn is not None:
                pulls = form.times_statistics(drawn, y, rows).reshape(r - 1, K, -1)
                lost[:, 1:] += np.einsum("rkn,nk->nr", pulls, features)
            scores[rows] -= fall_of_scores(A, P, lost, w)
        return log_posterior(scores, np.full(r, -np.log(r)))

    def _log_evidence(self, log_det: float) -> float:
        """Laplace's log ∫ ∏_i p(y_i | x_i)^w_i π(β) dβ, π ∝ exp b[⟨s̄, β⟩ − m̄ψ(β)] by Laplace at its mode β̄ too.

        F_b(β̂) − b [⟨s̄, β̄⟩ − m̄ψ(β̄)] + ½ log|b m̄ I(β̄)| − ½ log|H(β̂)|, for log|H|, both without the direction that no
        model depends on.
        """
        b, (value, spread) = self.conditional.target.weight, self.of_mode
        spread += (self.conditional.form.size - 1) * np.log(b)
        return self.path.point.value + b * value + 0.5 * (spread - log_det)

    @cached_property
    def of_mode(self) -> tuple[float, float]:
        """m̄ψ(β̄) − ⟨s̄, β̄⟩ and log|m̄ I(β̄)| at the mode β̄ of the target."""
        F, joint = self.conditional, self.conditional.joint
        I = joint.size * F.form.covariance(joint.second_moments(joint.mode))
        I += F.size * F.pinned(np.zeros_like(I))
        return joint(joint.mode)[0], jittered_cholesky(I).log_det

    @cached_property
    def change(self) -> tuple[Array, Array] | None:
        """∂(s̄, m̄)/∂s, what a row's statistics do to the target, of its p rows one for those of all classes
        that are the same, and the places of all p among these; None for a target that is given."""
        if not isinstance(self.target, str):
            return None
        form = self.conditional.form
        totalled = form.totalled if self.target in ("pooled", "grand") else np.empty(0, dtype=np.intp)
        change = target_change(form, self.target_of, self.objective.labels, totalled)
        of_one = np.arange(form.size)  # classes for which it is the same
        of_one[totalled + form.width * np.arange(form.r)[:, None]] = totalled
        rows, places = np.unique(of_one, return_inverse=True)
        return change[rows], places

    def target_of(self, statistics: Statistics) -> tuple[Array, float]:
        """s̄ and m̄ for statistics of the rows."""
        parameters, size = target_parameters(self.prepared, statistics, self.target)
        return size * self.conditional.form.sums(self.prepared.mean_parameters(parameters)), size


def interpolated(places: Sequence[float], ends: Sequence[Array]) -> Array:
    """The value at zero of the polynomial through ``ends`` at some places."""
    return np.linalg.inv(np.vander(places, increasing=True))[0] @ np.array(ends)


def filled_rows(family: Family, parameters: Any, X: Array) -> Array:
    """Validated rows with what is missing filled by what a model expects there, of categories the most probable."""
    if issparse(X):
        if not np.isnan(X.data).any():
            return X
        X = X.toarray()
    P = np.exp(log_posterior_of_new(family, X, parameters))
    return _filled(family, X, family.expected_rows(X, P, parameters))


def filled_block(family: Family, parameters: Any, block: Block) -> Block:
    """A block with its rows filled."""
    return block._replace(X=filled_rows(family, parameters, block.X))


def _filled(family: Family, X: Array, expected: Any) -> Array:
    family, filled = getattr(family, "component", family), np.array(X)
    if isinstance(expected, dict):
        for part, columns, of_block in zip(family.families, family.columns_, expected.values()):
            filled[:, columns] = _filled(part, X[:, columns], of_block)
        return filled
    if isinstance(expected, list):
        expected = np.column_stack([s[p.argmax(axis=1)] for s, p in zip(family._states, expected)])
    elif hasattr(family, "families_"):  # of two states
        expected = np.rint(expected)
    return np.where(np.isnan(filled), expected, filled)


def system_of_scores(A: Array, P: Array, weight: Array) -> Array:
    """1 − A_i V_i for each row i, shape (n, r, r), V_i = w_i (diag p_i − p_i p_iᵀ)."""
    system = np.einsum("nab,nb->na", A, P)[:, :, None] - A  # as A V = (A − A p 1ᵀ) w diag p
    system *= (weight * P)[:, None]
    system += np.eye(P.shape[1])
    return system


def fall_of_scores(A: Array, P: Array, lost: Array, weight: Array) -> Array:
    """(1 − A_i V_i)⁻¹ w_i ``lost``_i for each row i, shape (n, r)."""
    try:
        return np.linalg.solve(system_of_scores(A, P, weight), (lost * weight)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        raise NotConverged("a row alone decides a parameter") from None


def target_change(
    form: MinimalForm, target_of: Callable[[Statistics], tuple[Array, float]], start: Statistics, totalled: Array
) -> Array:
    """∂(s̄, m̄)/∂s by differences. A target that depends on the ``totalled`` sums of the first class only added up over
    the classes has the same derivatives for each class; and where each of these totals moves its own entries alone, as
    two differences along all of them at once show, or each sum of shared features, one difference tells what one for
    each would: 65 targets in place of 527 for QDA and LDA on breast cancer, whose `RiskCalibrationCV` has a bar."""
    sums, before = form.sums(start), np.append(*target_of(start))

    def difference(step: Array) -> Array:
        try:
            after = np.append(*target_of(form.statistics(sums + DIFFERENCE * step)))
        except InvalidStatistics as error:
            raise NotConverged("the target lies too near the boundary of the model") from error
        return (after - before) / DIFFERENCE

    change, end = np.zeros((form.size, form.size + 1)), form.r * form.width
    alike = totalled + form.width * np.arange(form.r)[:, None]
    each, mover = np.setdiff1d(np.arange(form.size), alike[1:]), np.full(form.size + 1, -1)
    mover[alike], mover[end:-1] = totalled, np.arange(end, form.size)
    if (mover >= 0).any():
        signs = np.random.RandomState(0).choice([-1.0, 1.0], form.size) * np.isin(np.arange(form.size), mover)
        together, apart = difference(np.abs(signs)), difference(signs)
        expected = np.where(mover >= 0, signs[mover] * together, 0.0)
        if np.abs(apart - expected).max() <= DIFFERENCE * np.abs(together).max():
            moved = np.flatnonzero(mover >= 0)
            change[mover[moved], moved], each = together[moved], np.setdiff1d(each, mover)
    for k in each:
        change[k] = difference(np.arange(form.size) == k)
    change[alike] = change[totalled]
    return change
