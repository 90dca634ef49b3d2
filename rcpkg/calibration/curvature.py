"""The curvature of a regularised conditional likelihood, in minimal coordinates of an exponential family.

With features f(x) = (1, own(x)) that each class has for itself and shared(x) that all classes have in common, the
statistics are s(x, y) = (e_y ⊗ f(x), shared(x)), and a natural parameter η is a vector β of r(1 + k) + l entries. In
these coordinates, which carry no redundancy but that of the class weights (their statistics add up to one),

    I = ∇²ψ = Cov s(x, y) under the model,        C = Σ_i w_i Cov(s(x_i, y) | x_i)

are the information of the joint model and, up to its sign, the Hessian of the conditional log-likelihood.
"""

from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.families import ConjugateClassifier, Statistics, class_counts, require
from rcpkg.linalg import slices

BLOCK_ENTRIES = 2**18  # of the features that are weighted at a time, which then stay in the cache


class MinimalForm:
    """A model on its rows in minimal coordinates: vectors β of a natural parameter, or of statistics."""

    def __init__(self, model: ConjugateClassifier, X: Any, statistics: Statistics) -> None:
        require(model, "Newton's method")
        self.model = model
        self.map = model.feature_map(X, "minimal", statistics=statistics)
        self.r, self.width = len(model.classes_), 1 + self.map.own
        self.size = self.r * self.width + self.map.shared

    @cached_property
    def _formed(self) -> tuple[Array, Array]:
        own, shared = self.map.features()
        return np.hstack([np.ones((len(own), 1)), own]), shared

    @property
    def features(self) -> Array:
        """f(x_i), shape (n, 1 + k)."""
        return self._formed[0]

    @property
    def shared_features(self) -> Array:
        """Shared features of the rows, shape (n, l)."""
        return self._formed[1]

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

    def is_inside(self, natural: Statistics) -> bool:
        """Whether ψ(η) is finite."""
        return self.map.is_inside(natural)

    def mean(self, parameters: Any) -> Array:
        """μ of a joint model."""
        return self.sums(self.model.mean_parameters(parameters))

    def information(self, parameters: Any) -> Array:
        """I = ∇²ψ, the covariance of the statistics s(x, y) under a joint model, shape (p, p)."""
        centres, covariances = self.map.moments(parameters)
        prior, K = np.exp(parameters.log_prior), self.width
        I, common = np.zeros((self.size, self.size)), slice(self.r * self.width, self.size)
        for y in range(self.r):
            centre = np.concatenate([[1.0], centres[y]])
            second = np.outer(centre, centre)
            second[1:, 1:] += covariances[y]
            second *= prior[y]
            own = slice(y * K, (y + 1) * K)
            I[own, own] = second[:K, :K]
            I[own, common], I[common, own] = second[:K, K:], second[K:, :K]
            I[common, common] += second[K:, K:]
        mean = self.mean(parameters)
        return I - np.outer(mean, mean)

    def conditional_curvature(self, P: Array, weight: Array) -> Array:
        """C = Σ_i w_i Cov(s(x_i, y) | x_i) for posteriors P, shape (p, p); zero for the shared features.

        Its rows add up to zero over the classes, so that the blocks of two different classes give the others.
        """
        C, K = np.zeros((self.size, self.size)), self.width
        of_class = [slice(y * K, (y + 1) * K) for y in range(self.r)]
        for rows in slices(len(P), max(1, BLOCK_ENTRIES // K)):
            Phi, weighted = self.features[rows], P[rows] * weight[rows, None]
            for a, b in combinations(range(self.r), 2):
                block = (Phi * (weighted[:, a] * P[rows, b])[:, None]).T @ Phi
                C[of_class[a], of_class[a]] += block
                C[of_class[b], of_class[b]] += block
                C[of_class[a], of_class[b]] -= block
                C[of_class[b], of_class[a]] -= block
        return C

    def times_statistics(self, matrix: Array, y: NDArray[np.intp], rows: slice) -> Array:
        """The columns M s(x_i, y_i) for a matrix M and some rows."""
        K, own = self.width, self.features[rows]
        out = np.empty((len(matrix), len(own)))
        for c in range(self.r):
            of_class = np.flatnonzero(y[rows] == c)
            out[:, of_class] = matrix[:, c * K : (c + 1) * K] @ own[of_class].T
        return out + matrix[:, self.r * K :] @ self.shared_features[rows].T

    def weighted_sums(self, W: Array) -> Array:
        """s(X, W) for weights that add up to zero in each row, as a vector: nothing is left of the shared features."""
        return np.concatenate([(W.T @ self.features).ravel(), np.zeros(self.size - self.r * self.width)])

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
