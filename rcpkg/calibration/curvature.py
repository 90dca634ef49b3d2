"""The curvature of conditional and joint likelihood, in minimal coordinates of an exponential family.

With features f(x) = (1, own(x)) of each class and shared(x) of all, s(x, y) = (e_y ⊗ f(x), shared(x)), and η is a
vector β of r(1 + k) + l entries, without redundancy but that of the class weights, whose statistics add up to one.
I = ∇²ψ = Cov s(x, y) under the model is the information of the joint model, and C = Σ_i w_i Cov(s(x_i, y) | x_i), but
for its sign, the Hessian of the conditional log-likelihood.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.features import Features
from rcpkg.calibration.logistic import conditional_information
from rcpkg.families import Family, Statistics, class_counts, require


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


class MinimalForm:
    """A model on its rows in minimal coordinates: vectors β of a natural parameter, or of statistics."""

    def __init__(
        self, model: Family, X: Any, statistics: Statistics, pooled: Any = None, kind: str = "minimal"
    ) -> None:
        require(model, "Newton's method")
        self.model = model
        self.map = model.feature_map(X, kind, statistics=statistics, pooled=pooled)
        self.r, self.width = len(model.classes_), 1 + self.map.own
        self.size = self.r * self.width + self.map.shared

    @cached_property
    def rows(self) -> Features:
        """f of the rows, block by block."""
        return Features(self.map)

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
        for of_class, mean, times, covariance, scaled in zip(own, centre, share, covariances, prior):
            np.outer(times[:K], mean, out=of_class)
            of_class[1:, 1:] += scaled * covariance[: K - 1]
        shared = np.tensordot(prior, covariances[:, K - 1 :, K - 1 :], 1)
        return SecondMoments(own, shared + share[:, K:].T @ centre[:, K:])

    def information(self, parameters: Any) -> Array:
        """I = ∇²ψ, the covariance of the statistics s(x, y) under a joint model, shape (p, p)."""
        return self.covariance(self.second_moments(parameters))

    def covariance(self, E: SecondMoments) -> Array:
        """I of the model with these second moments."""
        (own, shared), K, end, mean = E, self.width, self.r * self.width, E.mean
        I = np.outer(-mean, mean)
        across = own[:, :, K:].reshape(end, -1)
        I[:end, end:] += across
        I[end:, :end] += across.T
        I[end:, end:] += shared
        np.einsum("ykyl->ykl", I[:end, :end].reshape(self.r, K, self.r, K))[:] += own[:, :, :K]
        return I

    def times_covariance(self, E: SecondMoments, d: Array) -> Array:
        """I d."""
        (own, shared), K, mean = E, self.width, E.mean
        D, of_shared = self.by_class(d), d[self.r * K :]
        each = np.einsum("ykl,yl->yk", own, np.hstack([D, np.tile(of_shared, (self.r, 1))]))
        rest = np.einsum("ykl,yk->l", own[:, :, K:], D) + shared @ of_shared
        return np.concatenate([each.ravel(), rest]) - mean * (mean @ d)

    def conditional_curvature(self, P: Array, weight: Array) -> Array:
        """C = Σ_i w_i Cov(s(x_i, y) | x_i) for posteriors P (n, r), shape (p, p); zero for the shared features."""
        blocks = ((block, P[rows, 1:].T, weight[rows]) for rows, block in self.rows.dense_blocks())
        return self.of_all_classes(conditional_information(blocks, self.r - 1, self.width))

    def of_all_classes(self, of_others: Array) -> Array:
        """C, shape (p, p), from its part of all classes but the first, which has what they lack to zero."""
        C, K, end = np.zeros((self.size, self.size)), self.width, self.r * self.width
        of_others = of_others.reshape(self.r - 1, K, -1)
        C[K:end, K:end] = of_others.reshape(end - K, end - K)
        C[:K, K:end] = -of_others.sum(axis=0)
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
