"""The curvature of conditional and joint likelihood, in minimal coordinates of an exponential family.

With features f(x) = (1, own(x)) of each class and shared(x) of all, s(x, y) = (e_y ⊗ f(x), shared(x)), and η is a
vector β of r(1 + k) + l entries, without redundancy but that of the class weights, whose statistics add up to one.
I = ∇²ψ = Cov s(x, y) under the model is the information of the joint model, and C = Σ_i w_i Cov(s(x_i, y) | x_i), but
for its sign, the Hessian of the conditional log-likelihood.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.features import Features, JointCodes, gram
from rcpkg.families import Family, Statistics, class_counts, require
from rcpkg.linalg import Factored, slices

BLOCK_ENTRIES = 2**20  # of the features of all classes in a block
FARTHEST = 5.0  # that the log-odds of a state may go in one step
Solved = TypeVar("Solved", bound=Factored)


def conditional_information(
    blocks: Iterable[tuple[Array | JointCodes, Array, Array]],
    k: int,
    p: int,
    full: bool = True,
    negligible: float = 0.0,
) -> Array:
    """Σ_i w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ over k classes, shape (k, p, k, p), or its diagonal blocks, (k, p, p).

    ``blocks`` are features (p, n) or joint codes, posteriors (k, n) of these classes, and weights (n,). Outside the
    diagonal blocks rows that weigh less than ``negligible`` times the mean may be left out: what is left is at least
    half of it.
    """
    own, pairs = np.zeros((k, p, p)), np.zeros((k, p, k, p) if full and k > 1 else 0)
    for block, P, weight in blocks:
        dense = isinstance(block, np.ndarray)
        space = np.empty_like(block) if dense else None
        for a in range(k):
            own[a] += gram(block, P[a] * (1 - P[a]) * weight, space)
        if pairs.size and (negligible or not dense):
            for a, b in zip(*np.tril_indices(k, -1)):
                some, doubt = uncertain_rows(block, P[a] * P[b] * weight, negligible)
                pairs[a, :, b] -= gram(some, doubt, space[:, : len(doubt)] if dense else None)
        elif pairs.size:  # all at once: features of one factor are few where classes are many
            for part in slices(len(weight), -(-BLOCK_ENTRIES // (k * p))):
                roots = (P[:, None, part] * (block[:, part] * np.sqrt(weight[part]))).reshape(k * p, -1)
                pairs -= (roots @ roots.T).reshape(pairs.shape)
    if not full:
        return own
    if not pairs.size:
        return own[:, :, None]
    for a, b in zip(*np.triu_indices(k)):
        pairs[a, :, b] = own[a] if a == b else pairs[b, :, a]
    return pairs


def uncertain_rows(block: Array | JointCodes, weight: Array, negligible: float) -> tuple[Array | JointCodes, Array]:
    """Features and weights of the rows that weigh more than ``negligible`` times the mean, if these are few."""
    rows = np.flatnonzero(weight > negligible * weight.mean())
    if 2 * len(rows) > len(weight):
        return block, weight
    return block.take(rows) if isinstance(block, JointCodes) else block.take(rows, axis=1), weight[rows]


class SecondMoments(NamedTuple):
    """E s sᵀ under a joint model: of the features of each class by these and the shared ones, (r, K, K + l), and of the
    latter, (l, l). The first feature is 1."""

    own: Array
    shared: Array

    @property
    def mean(self) -> Array:
        """μ = E s."""
        K = self.own.shape[1]
        return np.concatenate([self.own[:, :, 0].ravel(), self.own[:, 0, K:].sum(axis=0)])

    @property
    def variances(self) -> Array:
        """Var s."""
        squares = np.einsum("ykk->yk", self.own[:, :, : self.own.shape[1]])
        return np.concatenate([squares.ravel(), self.shared.diagonal()]) - self.mean**2


class MinimalForm:
    """A model on its rows in minimal coordinates: vectors β of a natural parameter, or of statistics."""

    def __init__(self, model: Family, X: Any, statistics: Statistics) -> None:
        require(model, "Newton's method")
        self.model = model
        self.map = model.feature_map(X, "minimal", statistics=statistics)
        self.r, self.width = len(model.classes_), 1 + self.map.own
        self.size = self.r * self.width + self.map.shared

    @cached_property
    def rows(self) -> Features:
        """f of the rows, block by block."""
        return Features(self.map, self.r)

    @cached_property
    def features(self) -> Array:
        """f(x_i), shape (n, 1 + k)."""
        return np.ascontiguousarray(self.rows.dense(slice(None)).T)

    @cached_property
    def shared_features(self) -> Array:
        """Shared features of the rows, shape (n, l)."""
        return self.map.features()[1]

    def _vector(self, constant: Array, own: Array, shared: Array) -> Array:
        return np.concatenate([np.hstack([constant[:, None], own]).ravel(), shared])

    def _parts(self, vector: Array) -> tuple[Array, Array, Array]:
        of_class = self.by_class(vector)
        return of_class[:, 0], of_class[:, 1:], vector[self.r * self.width :]

    def by_class(self, vector: Array) -> Array:
        """The entries of the constant and the own features, shape (r, 1 + k)."""
        return vector[: self.r * self.width].reshape(self.r, self.width)

    def sums(self, statistics: Statistics) -> Array:
        """Statistics as a vector."""
        return self._vector(class_counts(statistics), *self.map.sums(statistics))

    def statistics(self, vector: Array) -> Statistics:
        """The statistics of a vector: the inverse of `sums`."""
        return self.map.statistics(*self._parts(vector))

    def coefficients(self, natural: Statistics) -> Array:
        """A natural parameter as a vector β."""
        return self._vector(*self.map.coefficients(natural))

    def natural(self, beta: Array) -> Statistics:
        """The natural parameter of a vector β."""
        return self.map.natural(*self._parts(beta))

    def mean(self, parameters: Any) -> Array:
        """μ of a joint model."""
        return self.sums(self.model.mean_parameters(parameters))

    def second_moments(self, parameters: Any) -> SecondMoments:
        """Those of the statistics under a joint model."""
        centres, covariances = self.map.moments(parameters)
        prior, K = np.exp(parameters.log_prior), self.width
        centre = np.hstack([np.ones((self.r, 1)), centres])
        share = prior[:, None] * centre
        own = np.empty((self.r, K, centre.shape[1]))
        for of_class, mean, times, more, scaled in zip(own, centre, share, covariances, prior):
            np.outer(times[:K], mean, out=of_class)
            of_class[1:, 1:] += scaled * more[: K - 1]
        shared = np.tensordot(prior, covariances[:, K - 1 :, K - 1 :], 1)
        return SecondMoments(own, shared + share[:, K:].T @ centre[:, K:])

    def information(self, parameters: Any) -> Array:
        """I = ∇²ψ, the covariance of the statistics s(x, y) under a joint model, shape (p, p)."""
        (own, shared), K, end = self.second_moments(parameters), self.width, self.r * self.width
        mean, I = self.mean(parameters), np.zeros((self.size, self.size))
        I[:end, end:] = own[:, :, K:].reshape(end, -1)
        I[end:, :end] = I[:end, end:].T
        I[end:, end:] = shared
        for y in range(self.r):
            I[y * K : (y + 1) * K, y * K : (y + 1) * K] = own[y, :, :K]
        return I - np.outer(mean, mean)

    def conditional_curvature(self, P: Array, weight: Array) -> Array:
        """C = Σ_i w_i Cov(s(x_i, y) | x_i) for posteriors P (n, r), shape (p, p); zero for the shared features."""
        blocks = ((block, P[rows, 1:].T, weight[rows]) for rows, block in self.rows.gram_blocks())
        of_others = conditional_information(blocks, self.r - 1, self.width)  # the first has what they lack to zero
        C, K, end = np.zeros((self.size, self.size)), self.width, self.r * self.width
        C[K:end, K:end] = of_others.reshape(end - K, end - K)
        C[:K, K:end] = -of_others.sum(axis=0).reshape(K, end - K)
        C[K:end, :K] = C[:K, K:end].T
        C[:K, :K] = -C[:K, K:end].reshape(K, -1, K).sum(axis=1)
        return C

    def times_statistics(self, matrix: Array, y: NDArray[np.intp], rows: slice) -> Array:
        """The columns M s(x_i, y_i) for a matrix M and some rows."""
        K, own = self.width, self.features[rows]
        out = self.shared_features[rows] @ matrix[:, self.r * K :].T
        for c in range(self.r):
            of_class = np.flatnonzero(y[rows] == c)
            out[of_class] += own[of_class] @ matrix[:, c * K : (c + 1) * K].T
        return out.T

    @property
    def totalled(self) -> NDArray[np.intp]:
        """Places of the sums of the first class that a pooled or grand target adds up over the classes."""
        return 1 + np.flatnonzero(self.map.totalled)

    @property
    def class_weights(self) -> Array:
        """The direction that adds the same to all classes' constants: no model depends on it."""
        u = np.zeros(self.size)
        u[: self.r * self.width : self.width] = 1.0
        return u


def is_state(variance: Array, mean: Array) -> NDArray[np.bool_]:
    """Which statistics show a state, being 0 or 1: their variances are μ(1 − μ)."""
    return np.abs(variance - mean * (1 - mean)) <= 1e-6 * mean


def within_reach(curvature: Callable[[Array], Solved], fall: Array, states: Array) -> tuple[Solved, float]:
    """A ``curvature`` with so much added on its diagonal, at ``states``, that Newton's step for a slope ``fall`` takes
    the log-odds of none farther than `FARTHEST`, and how much: where neither rows nor model show a state the curvature
    all but vanishes, and the step would run away."""
    more, factor = 0.0, curvature(0.0 * states)
    while states.any() and (far := np.abs(step := states * factor.solve(fall)).max()) > FARTHEST:
        # Newton's method for a step half as long as may be, as Moré and Sorensen (1983) have it
        step = step / far  # whose square may be infinite
        more += max(more, (step @ step) / (step @ factor.solve(step)) * (2 * far / FARTHEST - 1))
        factor = curvature(more * states)
    return factor, more
