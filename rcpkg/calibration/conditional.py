"""Conditional likelihood in minimal coordinates: the one objective of all second-order searches.

f(z) = −[CLL + b (⟨s̄, β⟩ − m̄ ψ(β))] / (m + b m̄) + l2 ‖slopes‖² / 2m, with a target (b > 0), a ridge (l2 > 0) or
neither. Without a target posteriors depend on differences of classes alone: z are δ_y = β_y − β_1. With one they are
(γ, what classes share, δ) of β = (γ, γ + δ), and f is infinite where ψ is. Where the Hessian is too large, that of each
class stands for it, and z are all of β. `Conditional` gives f with its gradient, its Hessian H, and products with H;
`Fibre` is the joint log-likelihood along the directions that no training row sees.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.constants import (
    COARSE_TOL,
    MOST_KEPT,
    MOST_PARAMETERS,
    MOST_PRODUCTS,
    PATIENCE,
    RADIUS,
    ROWS_PER_COORDINATE,
    SPEEDUP,
)
from rcpkg.calibration.curvature import JointMoments, MinimalForm, Woodbury, WoodburyByDifferences
from rcpkg.calibration.features import Features, linear_scores, squared, weighted_sums
from rcpkg.calibration.logistic import Curvature, Diagonal, Evaluation, LogisticObjective
from rcpkg.calibration.objective import Objective, log_posterior_of
from rcpkg.calibration.rules import Losses
from rcpkg.families import Statistics, Unsupported, can
from rcpkg.linalg import EPS, ROUNDING, SINGULAR_RATIO, cholesky


class Iterate:
    """A point z of a search in coordinates, and what one pass over the rows tells of it.

    The model, and what the next Newton step promises, are computed when they are asked for. ``ahead`` is the
    optimiser's approximation of that step, if it has one."""

    def __init__(self, objective: "Smooth", z: Array, evaluation: Evaluation, ahead: Array | None = None) -> None:
        self.objective, self.z, self.evaluation = objective, z, evaluation
        self.losses, self.separated, self.ahead = evaluation.losses, evaluation.separated, ahead

    @property
    def value(self) -> float:
        """F, what is climbed."""
        return -self.objective.size * self.evaluation.value

    @property
    def extras(self) -> dict[str, float]:
        """What enters the history beside the losses: f, where it is not the log-loss."""
        return {"objective": self.evaluation.value} if self.objective.penalised else {}

    @cached_property
    def curvature(self) -> Curvature | Diagonal:
        """H, or what stands for it."""
        return self.objective.curvature(self.z, gradient=self.evaluation.gradient)

    @cached_property
    def newton_step(self) -> Array:
        """H⁻¹g, which the next step of Newton's method subtracts."""
        F, g, solve = self.objective, self.evaluation.gradient, self.curvature.solve
        return solve(g) if F.exact else conjugate(g, F.product(self.z, 0.0), solve)

    @cached_property
    def promise(self) -> float:
        """What `newton_step` gains, |gᵀH⁻¹g| / 2 nats a row and pseudo-row; one that rounding makes negative counts."""
        return abs(0.5 * float(self.evaluation.gradient @ self.newton_step))

    @cached_property
    def estimate(self) -> float:
        """The promise as the optimiser estimates it, or else by what stands for the curvature."""
        if self.ahead is None and self.objective.exact:
            return self.promise
        g = self.evaluation.gradient
        return abs(0.5 * float(g @ (self.curvature.solve(g) if self.ahead is None else self.ahead)))

    @property
    def step(self) -> float:
        """The length √(gᵀH⁻¹g) of the next Newton step, by the estimate."""
        return float(np.sqrt(2 * self.estimate))

    @cached_property
    def natural(self) -> Statistics:
        """η."""
        return self.objective.natural(self.z)

    @cached_property
    def parameters(self) -> Any:
        """θ."""
        return self.objective.parameters(self.z)

    @cached_property
    def statistics(self) -> Statistics:
        """s with θ(s) = θ, of as many rows as there are."""
        return self.objective.total_weight * self.objective.family.mean_parameters(self.parameters)

    @property
    def model(self) -> Any:
        """A fitted classifier."""
        return self.objective.source.classifier(self.statistics, self.parameters)

    def log_posterior(self, X: Any) -> Array:
        """log p(y | x) of validated or encoded rows X, shape (n, r)."""
        return log_posterior_of(self.objective.family, X, self.parameters)


class Smooth:
    """A convex function of coordinates z with a curvature, as Newton's method takes it."""

    rows, penalised = 1, False  # number of rows; whether f is more than the log-loss
    _hessian_cache: tuple[Array, Array] | None = None  # the last z of a Hessian, and that
    exact = True  # whether ``curvature`` is the Hessian, and not what stands for it
    part: "Conditional | None" = None  # the same on the rows of the curvature, where these are some
    size: float
    total_weight: float
    family: Any
    joint: "JointLikelihood | None" = None  # the joint likelihood in it

    def __call__(self, z: Array) -> Evaluation:
        raise NotImplementedError

    def hessian(self, z: Array | None) -> Array:
        """H at z, or, for None, at a model of equal posteriors, which has the curvature of no row's certainty."""
        raise NotImplementedError

    def curvature(
        self, z: Array, damping: float = 0.0, shift: float = 0.0, gradient: Array | None = None
    ) -> Curvature | Diagonal:
        """H at z, factored, with a share ``damping`` of that at equal posteriors, and ``shift`` times the metric.

        Where a probability of a joint model has vanished, and its curvature with it, the ``gradient`` tells that of a
        step as far as one may go: the factor would take what is flat for steep, and a search end far from the optimum.
        """
        if self._hessian_cache is None or self._hessian_cache[0] is not z:
            self._hessian_cache = z, self.hessian(z)
        H = self._hessian_cache[1]
        if shift:
            H = H + shift * self.pulled(self.pulled(np.eye(len(H))).T)
        if damping:
            H = H + damping * self.reference
        if self.joint and gradient is not None:
            flat = (H.diagonal() <= EPS * H.diagonal().max()) & (np.abs(gradient) > ROUNDING)
            H = H + np.diag(flat * np.abs(gradient) / RADIUS) if flat.any() else H
        return Curvature.from_blocks([H])

    def quadratic_gain(self, point: Iterate, step: Array) -> float:
        """gᵀs − sᵀHs/2, by the Hessian that was last factored, at the point."""
        return float(point.evaluation.gradient @ step - 0.5 * step @ (self._hessian_cache[1] @ step))

    def beta(self, z: Array) -> Array:
        """β, the coefficients in which the length of a step is measured: a linear map of z."""
        return z

    def pulled(self, sums: Array) -> Array:
        """The adjoint of the map `beta`."""
        return sums

    def product(self, z: Array, damping: float) -> Callable[[Array], Array]:
        """The map d ↦ Hd, damped as in `curvature`, where H is not factored."""
        raise NotImplementedError

    @cached_property
    def reference(self) -> Array:
        """H at equal posteriors."""
        return self.hessian(None)

    def iterate(self, z: Array, evaluation: Evaluation | None = None, ahead: Array | None = None) -> Iterate:
        """The point of z."""
        return Iterate(self, z, self(z) if evaluation is None else evaluation, ahead)

    def natural(self, z: Array) -> Statistics:
        """η(z)."""
        raise NotImplementedError

    def parameters(self, z: Array) -> Any:
        """θ of the model at z."""
        return self.family.from_natural(self.natural(z))

    def better_start(self, point: Iterate) -> Iterate:
        """Where a search from a point had better begin."""
        return point


class JointLikelihood:
    """β ↦ m̄ ψ(β) − ⟨s̄, β⟩, what the likelihood of m̄ pseudo-rows of statistics s̄ lacks; infinite where ψ is."""

    def __init__(self, form: MinimalForm, statistics: Array, size: float) -> None:
        self.form, self.statistics, self.size = form, statistics, size
        self._last: tuple[Array, float, Any] | None = None  # β, ψ and θ there, or None outside the domain

    def _model(self, beta: Array) -> tuple[Array, float, Any]:
        if self._last is None or (beta != self._last[0]).any():
            natural, parameters = self.form.natural(beta), None
            with np.errstate(all="ignore"):
                psi = self.form.model.log_partition(natural)
            if np.isfinite(psi):
                with suppress(np.linalg.LinAlgError):  # inside but for rounding
                    parameters = self.form.model.from_natural(natural)
            self._last = beta, psi, parameters
        return self._last

    def parameters(self, beta: Array) -> Any:
        """θ at β, or None where ψ is infinite."""
        return self._model(beta)[2]

    def __call__(self, beta: Array) -> tuple[float, Array]:
        """The value and its gradient m̄ μ − s̄."""
        _, psi, parameters = self._model(beta)
        if parameters is None:
            return np.inf, np.zeros_like(beta)
        value = self.size * psi - self.statistics @ beta
        return value, self.size * self.form.mean(parameters) - self.statistics

    def nearer(self, beta: Array, share: float) -> Any:
        """θ of the mean parameters between those at β and those of the statistics, which have a ``share`` of one."""
        mean = self.form.mean(self.parameters(beta)) + share * self.statistics / self.size
        return self.form.model.parameters(self.form.statistics(self.size * mean / (1 + share)))

    def second_moments(self, beta: Array) -> JointMoments:
        """E s sᵀ of the model at β."""
        return self.form.second_moments(self.parameters(beta))

    @cached_property
    def mode(self) -> Array:
        """β of the statistics themselves."""
        family = self.form.model
        model = family.parameters(self.form.statistics(self.statistics))
        return self.form.coefficients(family.natural_parameters(model))

    @cached_property
    def least(self) -> float:
        """The value there."""
        return self(self.mode)[0]


class Conditional(Smooth):
    """An `Objective` of `calibration_weights`, all rows of which are at hand, as a function of coordinates.

    Raises `Unsupported` for families without minimal coordinates, and what rows with missing values do.
    """

    doubt_threshold = 0.0  # doubt of a row below which `Woodbury` leaves it out
    lacks_states = False  # whether some rows of sparse features stand for all
    _curvature_cache, _passes = None, 0  # what stands for H, and how many passes it has served
    _terms_cache: tuple[Array, Array, Array] | None = None  # the last z of a Hessian with a target, and C and m̄ I there

    def __init__(self, objective: Objective, l2: float = 0.0) -> None:
        F, family = objective, objective.family
        family.check_complete(F.X)
        family.check_full(F.X)
        self.source, self.family, self.target = F, family, F.target
        self.size, self.total_weight, self.penalised = F.size, F.total_weight, bool(F.target or l2)
        # a cell that no row shows may have pseudo-rows of the target
        shown = F.labels + F.target.statistics if F.target else F.labels
        self.form = MinimalForm(family, F.X, shown, pooled_parameters(F), "conditioned" if l2 else "minimal")
        self.r, self.width, features = self.form.r, self.form.width, self.form.rows
        ridge = features.ridge() if l2 else None
        # in the differences from one class the diagonal blocks of many would be a poor curvature
        if F.target:
            self.dense = self.form.size <= MOST_PARAMETERS or self._system(len(F.y)) <= 4 * MOST_PARAMETERS
        else:
            self.dense = (self.r - 1) ** 1.5 * self.width <= MOST_PARAMETERS
        free = self.r - 1 if self.dense else self.r
        end = self.form.size if F.target and self.dense else free * self.width
        self.of_scores = slice(end - free * self.width, end)  # places of the coefficients of scores in z
        self.data = LogisticObjective(features, F.y, self.r, F.weight, l2, free, ridge, F.size)
        self.joint = (
            JointLikelihood(self.form, self.form.sums(F.target.statistics), F.target.size) if F.target else None
        )
        if self.joint and self.joint.parameters(self.joint.mode) is None:
            raise Unsupported(
                "features of the target nearly depend on each other: rounding leaves no model in coordinates; drop "
                "one, or give the model that is the target prior_strength > 0"
            )
        self._choose_curvature()

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.data.y)

    def _choose_curvature(self) -> None:
        """Dense, of some of the rows, of each class alone, or its diagonal."""
        n, K = len(self.data.y), self.width
        p = self.form.size if self.joint else self.data.size
        self.by_class = self.r * (K + (self.form.map.n_shared if self.joint else 0)) ** 2 <= MOST_KEPT
        if self.joint and not (self.by_class or self.dense):
            raise Unsupported(f"{K} features of {self.r} classes are more than its Hessians are made for")
        least, self.exact = ROWS_PER_COORDINATE * (p if self.dense else K), self.dense
        self.passes_per_hessian = K * (self.data.free if self.dense else 1) / SPEEDUP  # by their multiplications
        # L-BFGS makes up for the rows that a sample lacks, and, where a ridge bends all directions, for classes that do
        # not act apart: on pendigits and letter a fifth faster, as the race asks for; else conjugate gradients
        self.patience = PATIENCE if self.dense or self.data.l2 or n < ROWS_PER_COORDINATE * K else 0
        if self.by_class and least < n / 2:
            index, weight = stratified(self.data, least, ROWS_PER_COORDINATE * K)
            if len(index) < n:
                self.lacks_states = self.dense and self.data.features.sparse
                self.part, self.exact = self.on(index, weight), False
                if self.lacks_states:  # L-BFGS for as long as ten Hessians of all rows take
                    self.passes_per_hessian *= n * K / self.data.features.entries  # a pass has fewer multiplications
                    self.patience = self.passes_per_hessian / COARSE_TOL
                self.passes_per_hessian *= len(index) / n

    def on(self, index: NDArray[np.intp], weight: Array) -> "Conditional":
        """The same on some rows, that count by ``weight``, as exact as these few can be."""
        part = copy(self)
        part.__dict__.pop("reference", None)
        part.data = self.data.on(index, weight)
        if self.lacks_states:  # a ridge of these rows bends what others show: on census-income without a penalty L-BFGS
            # reaches the optimum in 4 s, and Hessians of all rows in 60 s
            part.data.l2 = self.data.l2 or COARSE_TOL * self.rows / len(index)
        part.part, part.exact = None, self.dense
        part._curvature_cache = part._hessian_cache = part._terms_cache = None
        return part

    def by_all_rows(self) -> "Conditional":
        """The same with the Hessian of all rows in the place of that of some."""
        whole = copy(self)
        whole.part, whole.exact = None, True
        return whole

    def with_weight(self, b: float) -> "Conditional":
        """The same with another weight of the target."""
        other = copy(self)
        other.__dict__.pop("reference", None)
        other.source, other._curvature_cache, other._hessian_cache = self.source.with_weight(b), None, None
        other.target, other.size = other.source.target, other.source.size
        other.data = copy(self.data)
        other.data.total = other.size
        other.part = self.part and self.part.with_weight(b)
        return other

    # --- coordinates --------------------------------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """Weight of the joint likelihood in f."""
        return self.target.weight / self.size if self.target else 0.0

    def scored(self, z: Array) -> Array:
        """The coefficients of the scores in z, as `LogisticObjective` takes them."""
        return z[self.of_scores].reshape(self.data.free, self.width)

    def beta(self, z: Array) -> Array:
        return self.form.combined(z) if self.joint and self.dense else z

    def pulled(self, sums: Array) -> Array:
        return self.form.differences(sums) if self.joint and self.dense else sums

    start = None  # of a climb: the closed form, or with a target where its path begins

    def evaluate(self, statistics: Statistics | None) -> Iterate:
        """The point of ``statistics``, or of the closed form. Where rounding leaves that no model it is the target, and
        where its penalty overflows it is equal posteriors."""
        point = self.at_natural(closed_form_of(self.source, statistics))
        return self.iterate(self.anchor) if np.isinf(point.evaluation.value) else point

    def at_natural(self, natural: Statistics) -> Iterate:
        """The point of an η."""
        if self.joint:
            return self.iterate(self.place(natural))
        natural = finite_natural(natural)
        B = self.form.by_class(self.form.coefficients(natural))
        # what the posteriors do not see stays with the model, near which others then are
        self.like, self.middle = natural, B.mean(axis=0)
        return self.iterate(self.data.contrasts(B - self.middle).ravel())

    def place(self, natural: Statistics) -> Array:
        """z of an η with a target, but for what no model depends on."""
        beta = self.form.coefficients(finite_natural(natural))
        beta -= beta[0] * self.form.class_weights
        return self.form.contrasts(beta) if self.dense else beta

    def natural(self, z: Array) -> Statistics:
        if self.joint:
            return self.form.natural(self.beta(z))
        B = self.data.coefficients(self.scored(z)) + self.middle
        return self.form.rows.natural(B, self.like)

    def parameters(self, z: Array) -> Any:
        return self.joint.parameters(self.beta(z)) if self.joint else super().parameters(z)

    # --- f ------------------------------------------------------------------------------------------------------------

    def __call__(self, z: Array) -> Evaluation:
        value, pull = self.joint(self.beta(z)) if self.joint else (0.0, 0.0)
        if np.isinf(value):
            nothing = Losses(np.nan, np.nan, np.inf)
            return Evaluation(np.inf, pull, nothing, False)
        of_rows = self.data(self.scored(z))
        self._passes += 1
        if not self.joint:
            return Evaluation(of_rows.value, of_rows.gradient.ravel(), of_rows.losses, of_rows.separated)
        gradient = self.share * self.pulled(pull)
        gradient[self.of_scores] += of_rows.gradient.ravel()
        return Evaluation(of_rows.value + self.share * value, gradient, of_rows.losses, False)

    def is_credible(self, point: Iterate) -> bool:
        """Whether the next step to a target promises no more than f can fall, to a log-loss of zero at the target."""
        return point.estimate <= point.evaluation.value - self.share * self.joint.least

    def hessian(self, z: Array | None) -> Array:
        if self.joint and z is not None and self._terms_cache and self._terms_cache[0] is z:  # of another weight
            _, C, I = self._terms_cache
        else:
            rough = COARSE_TOL if self.data.sampled else 0.0
            C = self.data.curvature(None if z is None else self.scored(z), negligible=rough)
            if not self.joint:
                return C if self.unseen is None else C + self.unseen
            C *= self.size
            I = self.form.covariance(self._joint_moments(z))
            self._terms_cache = None if z is None else (z, C, I)
        return self._combined(C, I)

    def _combined(self, C: Array, I: Array) -> Array:
        H = self.share * self.joint.size * I
        H[self.of_scores, self.of_scores] += C / self.size
        return self.pinned(H)

    @property
    def steps_per_hessian(self) -> float:
        """Steps that had better share a Hessian, the more, the more passes it costs."""
        return max(self.passes_per_hessian / SPEEDUP, 1.0)

    def curvature_nearby(self, z: Array) -> Curvature | Woodbury:
        """H at z, or, as a matrix, where the last one of another weight was formed."""
        if self._terms_cache is None or self._has_fewer_rows:
            return self.curvature(z)
        return Curvature.from_blocks([self._combined(*self._terms_cache[1:])])

    def _joint_moments(self, z: Array | None) -> JointMoments:
        return self.joint.second_moments(self.joint.mode if z is None else self.beta(z))

    @cached_property
    def unseen(self) -> Array | None:
        """What keeps the curvature definite where combinations of features vanish on all rows."""
        N = None if self.data.l2 else null_space([self.form.rows])
        if N is None or not N.size:
            return None
        N = N / np.linalg.norm(N, axis=0)
        return np.kron(np.eye(self.data.free), N @ N.T)

    def pinned(self, H: Array) -> Array:
        """H, in place, with what keeps it definite along the constant of all classes, on which no model depends."""
        direction = self.pulled(self.form.class_weights)
        places = np.flatnonzero(direction)
        pin = self.total_weight / (self.r * self.size) * np.outer(direction[places], direction[places])
        H[np.ix_(places, places)] += pin
        return H

    def curvature(
        self, z: Array | None, damping: float = 0.0, shift: float = 0.0, gradient: Array | None = None
    ) -> Curvature | Diagonal | Woodbury:
        """H; or what stands for it, for as many passes over the rows as it costs; of rows that lack states first that
        at equal posteriors, with which a search begins."""
        if self.exact:
            by_rows = self._has_fewer_rows and not shift
            return self._curvature_by_rows(z, damping) if by_rows else super().curvature(z, damping, shift, gradient)
        if self._curvature_cache is None or self._passes >= self.passes_per_hessian:
            is_first = self._curvature_cache is None and self.lacks_states
            self._curvature_cache, self._passes = self._curvature_of_part(None if is_first else z, damping), 0
        return self._curvature_cache

    def dense_curvature(self, point: Iterate) -> Curvature:
        """H of all rows at a point as a matrix, factored: that of the search, if it was one."""
        known = self.exact and isinstance(point.curvature, Curvature)
        return point.curvature if known else super().curvature(point.z)

    @property
    def _has_fewer_rows(self) -> bool:
        """Whether systems of the rows, or of differences of classes, take the place of H."""
        # with shared covariances they lose digits where a feature hardly varies in classes: H, where it fits
        fits = self.form.size <= MOST_PARAMETERS and self.form.map.n_shared
        return bool(self.joint) and not fits and self._system(self.rows) < self.form.size

    def _system(self, n: int) -> float:
        """The order of what `Woodbury` solves for, as one matrix of as many entries; infinite if it does not."""
        features = self.form.map
        if features.inverts and features.n_shared:
            return (self.r - 1) * self.width
        # unless a pair of rows takes few multiplications, kernels pay where they are smaller than blocks of classes
        few = (features.full or n < self.width) and self.r * n * self.width <= MOST_KEPT
        return n * np.sqrt(self.r if self.r > 2 else 1) if features.inverts and few else np.inf

    def _curvature_by_rows(self, z: Array | None, damping: float) -> Woodbury:
        """H at z, or for None at equal posteriors, with a share ``damping`` of the target's part, and of the rows' at
        equal posteriors or more."""
        beta = self.joint.mode if z is None else self.beta(z)
        # the target's curvature is blind where probabilities vanish, but not at its mode
        nearer = damping and z is not None and not self.form.map.n_shared
        model = self.joint.nearer(beta, damping) if nearer else self.joint.parameters(beta)
        inverse, size = self.form.map.inverse_moments(model), (1 + damping) * self.share * self.joint.size
        if self.form.map.n_shared:
            C = self.data.curvature(None if z is None else self.scored(z))
            C += damping * self.data.curvature(None) if damping else 0.0
            return WoodburyByDifferences(self.form, inverse, size, C)
        P = np.full((self.r, self.rows), 1 / self.r)
        if z is not None:
            scores = self.form.features @ self.data.coefficients(self.scored(z)).T
            P = (np.exp(log_posterior(scores, np.log(P[:, 0]))).T + damping * P) / (1 + damping)
        weight = np.ones(self.rows) if self.data.weight is None else self.data.weight
        return Woodbury(self.form, inverse, size, P, (1 + damping) / self.size * weight, self.doubt_threshold)

    def _curvature_of_part(self, z: Array | None, damping: float) -> Curvature | Diagonal:
        part = self.part or self
        if self.dense:
            return part.curvature(z, damping)
        if not self.by_class:
            V = np.zeros((self.data.free, self.width))
            h, flat = (self.data.diagonal(B).ravel() for B in (V if z is None else self.scored(z), V))
            return Diagonal(np.maximum(h + damping * flat, EPS * np.where(flat > 0, flat, 1.0)))
        # letter as QDA reaches the optimum in half the time without rows that say little of a class; a ridge bends the
        # directions that they alone tell of, which with fewer rows than features would be most of them
        blocks = part.blocks(z, COARSE_TOL if self.data.l2 and part.rows > self.width else 0.0)
        if damping:
            blocks = [block + damping * flat for block, flat in zip(blocks, part.blocks(None))]
        return Curvature.from_blocks(blocks)

    def blocks(self, z: Array | None, negligible: float = 0.0) -> list[Array]:
        """The diagonal blocks of H: of each class, but for rows of ``negligible`` weight, and of shared features."""
        blocks = list(self.data.curvature(None if z is None else self.scored(z), full=False, negligible=negligible))
        if not self.joint:
            return blocks
        E, K = self._joint_moments(z), self.width
        share, mean = self.share * self.joint.size, E.per_class[:, :, 0]
        blocks = [C + share * (sums[:, :K] - np.outer(mu, mu)) for C, sums, mu in zip(blocks, E.per_class, mean)]
        of_shared = E.per_class[:, 0, K:].sum(axis=0)
        return blocks + [share * (E.shared - np.outer(of_shared, of_shared))] * bool(len(of_shared))

    def product(self, z: Array, damping: float) -> Callable[[Array], Array]:
        V, places = self.scored(z), [(1.0, z), *[(damping, None)] * bool(damping)]
        of_rows = [(share, self.data.hessian(V if point is not None else None)) for share, point in places]
        of_target = []
        if self.joint:
            E = (self._joint_moments(point) for _, point in places)
            of_target = [(share * self.share * self.joint.size, each) for (share, _), each in zip(places, E)]

        def times(d: Array) -> Array:
            self._passes += 1
            D, out = self.scored(d), np.zeros_like(d)
            self.scored(out)[:] = sum(share * product(D) for share, product in of_rows)
            for share, moments in of_target:
                out += share * self.pulled(self.form.times_covariance(moments, self.beta(d)))
            return out

        return times

    def is_attained(self, point: Iterate) -> bool:
        """Whether a point without a target is near a finite optimum: one more step hardly moves the log-odds of any
        row, and no direction is flat for want of rows that doubt, as on the way to no optimum where rows are separable,
        wholly or in part. Of each class alone, or each coefficient, where the Hessian is too large."""
        D = self.data.coefficients(self.scored(point.newton_step))
        # Newton's step along e⁻ᵗ, the loss of a row that is separated, is 1; near an optimum, over 150 tables, 3e-4
        if any(np.ptp(linear_scores(D, block), axis=0).max() > 0.5 for _, block in self.data.features.blocks()):
            return False
        # rows that are not flat for some of them are not so for all
        return self.penalised or any(
            not self.is_flat(point.z, data) for data in dict.fromkeys(((self.part or self).data, self.data))
        )

    def is_flat(self, z: Array, data: LogisticObjective) -> bool:
        """Whether a direction has next to no curvature at z for the rows of ``data``, without a penalty."""
        if not (self.dense or self.by_class):
            h, flat = (data.diagonal(V) for V in (self.scored(z), self.scored(0 * z)))
            return bool(np.any(h < SINGULAR_RATIO * flat))
        order, unseen = self.data.size if self.dense else self.width, self.unseen if self.dense else None
        pairs = zip(*(data.information(V, full=self.dense).reshape(-1, order, order) for V in (self.scored(z), None)))
        kept = 0.0 if unseen is None else unseen
        return any(not cholesky(H - SINGULAR_RATIO * flat + kept).pivot for H, flat in pairs)

    # --- where to begin -----------------------------------------------------------------------------------------------

    @property
    def anchor(self) -> Array:
        """z of a model that is sure of nothing but the target: its own, or equal posteriors."""
        if not self.joint:
            return np.zeros(self.data.size)
        return self.form.contrasts(self.joint.mode) if self.dense else self.joint.mode

    def better_start(self, point: Iterate) -> Iterate:
        """The better one of a point and of the first Newton step from a model that is sure of nothing, the target or
        equal posteriors."""
        flat = self.iterate(self.anchor)
        g = flat.evaluation.gradient
        if self.dense or self.by_class:
            flat_curvature = self.curvature(None) if self.lacks_states else self._curvature_of_part(None, 0.0)
            step = flat_curvature.solve(g)
            # where g adds up to zero over the classes, they act apart at equal posteriors
            step *= 1 if self.dense else 1 - 1 / self.r
        else:
            step = 0.0
        return min(point, flat, self.iterate(flat.z - step), key=lambda each: each.evaluation.value)


class Fibre(Smooth):
    """The joint log-likelihood of the rows along the models with the posteriors of one of them, its sign changed.

    The directions v that no training row sees are those with ⟨v, s(x_i, y) − s(x_i, 1)⟩ = 0 for all rows and classes:
    what is added to the coefficients of all classes alike, the coefficients that classes share, and for each class but
    the first whatever combinations of features vanish on all rows. Posteriors of these rows stay, and with them those
    of every row whose features are in the span of theirs. z = (c, N's coefficients of class 2, …, of class r).
    """

    def __init__(self, form: MinimalForm, objective: Objective, beta: Array, null: Array) -> None:
        self.form, self.source, self.family, self.null, self.origin = form, objective, objective.family, null, beta
        self.size = self.total_weight = objective.total_weight
        self.losses = Losses(np.nan, np.nan, np.nan)
        self.joint = JointLikelihood(form, form.sums(objective.labels) / self.size, 1.0)
        self.of_all = form.width - 1 + form.map.n_shared
        self.dimension = self.of_all + (form.r - 1) * null.shape[1]

    def moved(self, z: Array) -> Array:
        """β of z."""
        others = z[self.of_all :].reshape(self.form.r - 1, -1) @ self.null.T
        return self.origin + self.form.combined(np.concatenate([[0.0], z[: self.of_all], others.ravel()]))

    def _pulled(self, sums: Array) -> Array:
        """Statistics, or the rows of a matrix, in the coordinates of `MinimalForm.differences` as those along z."""
        first, lead = self.form.width + self.form.map.n_shared, sums.shape[:-1]
        others = sums[..., first:].reshape(-1, self.form.width) @ self.null  # one product: many small ones take longer
        return np.concatenate([sums[..., 1:first], others.reshape(*lead, -1)], axis=-1)

    def __call__(self, z: Array) -> Evaluation:
        value, g = self.joint(self.moved(z))
        return Evaluation(value, self._pulled(self.form.differences(g)), self.losses, False)

    def hessian(self, z: Array | None) -> Array:
        E = self.joint.second_moments(self.moved(np.zeros(self.dimension) if z is None else z))
        if not self.null.shape[1]:
            return self.form.covariance(E, common=True)[1:, 1:]
        return self._pulled(self._pulled(self.form.covariance(E)).T)

    def natural(self, z: Array) -> Statistics:
        return self.form.natural(self.moved(z))

    def parameters(self, z: Array) -> Any:
        return self.joint.parameters(self.moved(z))


def conjugate(
    g: Array, product: Callable[[Array], Array], solve: Callable[[Array], Array], radius: float = np.inf
) -> Array:
    """About H⁻¹g by conjugate gradients, preconditioned by ``solve``, which is about H⁻¹, too.

    They end when what is left of g is, in its metric, a tenth to a hundredth of it, the less the nearer the optimum is,
    so that Newton's method gains two to four digits of its promise a step; far from the optimum also when a product
    gains less of the fall of the quadratic model than all so far in the mean (Nash and Sofer, 1990, take half of it):
    there the model promises too much to be worth solving. They also end where a coefficient has gone farther than the
    ``radius``, since directions that they take up later are ever flatter.
    """
    x, rest, gained = np.zeros_like(g), g.copy(), 0.0
    z = solve(rest)
    squared = rest @ z
    far, search = squared > COARSE_TOL**2, z
    enough = squared * np.clip(np.sqrt(squared), COARSE_TOL**2, COARSE_TOL) ** 2
    for done in range(1, MOST_PRODUCTS + 1):
        bent = product(search)
        along = search @ bent
        if along <= EPS * squared:
            break
        x += (squared / along) * search
        rest -= (squared / along) * bent
        gain = squared**2 / along
        gained += gain
        z = solve(rest)
        squared, before = rest @ z, squared
        if squared <= enough or (far and done * gain < gained) or np.abs(x).max() > radius:
            break
        search = z + (squared / before) * search
    return x if x.any() else z


def null_space(parts: Sequence[Features]) -> Array:
    """A basis N, shape (p, k), of the combinations of features that vanish on all rows: Nᵀφ(x_i) = 0.

    Those of some rows, by a Cholesky factor with pivots, and of these the ones that vanish on the others, too. For the
    race to the optimum: without a ridge QDA on magic and naive Bayes on adult take .8 of the time that all rows at once
    take. The space is the same, since what vanishes on all rows vanishes on some.
    """
    n, p = sum(part.n for part in parts), parts[0].width
    ones = [(block, np.ones((1, rows.stop - rows.start))) for part in parts for rows, block in part.blocks()]
    squares = sum(weighted_sums(each, squared(block)) for block, each in ones)
    scale = np.sqrt(np.maximum(squares[0] / n, np.finfo(float).tiny))
    step = max(1, n // (ROWS_PER_COORDINATE * p))
    some = np.hstack([part.dense(np.arange(0, part.n, step)) for part in parts]) / scale[:, None]
    lower, order, rank, _ = dpstrf(some @ some.T / some.shape[1], tol=ROUNDING, lower=1)
    L, order = np.tril(lower[:, :rank]), order - 1
    N = np.zeros((p, p - rank))
    N[order[rank:], range(p - rank)] = 1.0
    N[order[:rank]] = -solve_triangular(L[:rank], L[rank:].T, lower=True, trans=1)
    N = np.linalg.qr(N)[0] / scale[:, None]
    if step > 1 and N.size:
        G = sum((S := linear_scores(N.T, block)) @ S.T for part in parts for _, block in part.blocks()) / n
        values, vectors = np.linalg.eigh(G)
        N = N @ vectors[:, values < ROUNDING]
    return N


def stratified(objective: LogisticObjective, size: float, least: int = 30) -> tuple[NDArray[np.intp], Array]:
    """About ``size`` rows, evenly spread over each class, ``least`` of each if it has them; the weight each stands for.

    A class of few rows needs them all: its coefficients are as many as those of others.
    """
    y, index, there = objective.y, [], np.bincount(objective.y, minlength=objective.r)
    for c, n in enumerate(there):
        take = min(n, max(round(n * size / len(y)), least))
        index.append(np.flatnonzero(y == c)[np.linspace(0, n - 1, take).astype(np.intp)])
    rows = np.sort(np.concatenate(index))
    count = (there / np.maximum(np.bincount(y[rows], minlength=len(there)), 1))[y[rows]]
    return rows, count if objective.weight is None else count * objective.weight[rows]


def pooled_parameters(objective: Objective) -> Any:
    """Pooled parameters of the rows, which have their units, and as many of a target, which may be wider, if these have
    a positive definite covariance."""
    F, family = objective, objective.family
    if not can(family, "target='pooled'"):
        return None
    rows = F.labels + F.target.statistics * (F.total_weight / F.target.size) if F.target else F.labels
    try:
        return family.pooled_parameters(rows)[0]
    except InvalidStatistics:
        return family.pooled_parameters(F.start)[0]


def closed_form_of(objective: Objective, statistics: Statistics | None = None) -> Statistics:
    """η of the closed form, with a target of where its path begins, or of ``statistics``."""
    F, family = objective, objective.family
    if statistics is not None:
        parameters = family.parameters(statistics)
    else:
        parameters = F.closed_form if F.closed_form is not None and not F.target else family.parameters(F.start)
    return family.natural_parameters(parameters)


def finite_natural(natural: Statistics) -> Statistics:
    """η with the logarithms of zero probabilities replaced by that of rounding."""

    def replaced(part: Statistics | Array) -> Statistics | Array:
        return finite_natural(part) if isinstance(part, Statistics) else np.where(np.isneginf(part), np.log(EPS), part)

    return natural.map(replaced)
