"""Coordinates of natural parameters in which L-BFGS may move; they differ in how fast it gets there.

`Standardised` ones keep Gaussian parameters in their domain where a target asks for it. `linear_coordinates` are
diagonal or other linear changes of the coefficients B of scores B_y · φ(x): wanbia2014's is the one by the closed form.
"""

from typing import Any, NamedTuple

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.families import ConjugateClassifier, ProductModel, Statistics
from rcpkg.families.gaussian import GaussianClassifier
from rcpkg.families.gaussian_full import FullGaussian

LEAST_CURVATURE = 1e-6  # of a coordinate, relative to its second moment: saturated posteriors have none
LARGEST_WHITENED = 3000  # features, whose square is kept
LEAST_VARIANCE = 1e-13  # of a combination of as many features of size one: what is less is rounding


class Standardised:
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
            self.parts = [Standardised(m, p, definite) for m, p in zip(model.models_, pooled.blocks)]
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


class Linear(NamedTuple):
    """B = z · scale, or B = zT with a matrix T of orthogonal rows; ``start`` is the z of the start."""

    start: Array
    scale: Array | None = None
    map: Array | None = None

    def coefficients(self, z: Array) -> Array:
        """B of z."""
        if self.map is not None:
            return z @ self.map
        return z if self.scale is None else z * self.scale

    def gradient(self, slope: Array) -> Array:
        """The gradient in z of a function whose gradient in B is ``slope``."""
        if self.map is not None:
            return slope @ self.map.T
        return slope if self.scale is None else slope * self.scale


def linear_coordinates(name: str, objective: LogisticObjective, B: Array) -> Linear:
    """Coordinates of the coefficients B, shape (r, p), by their name, with B for the start.

    "natural": z = B. "closed_form": B = z B°, with B° that of the closed form, 1 at the start (wanbia2014 eq. 3).
    "curvature": z = √h B, h the diagonal of the Hessian at the closed form. "whitened": B = z Λ^(−1/2) Uᵀ, with UΛUᵀ
    the second moments of the features over the rows and the Hessian of the penalty, without what has neither.
    """
    if name == "natural":
        return Linear(B)
    if name == "closed_form":
        return Linear((B != 0).astype(float), scale=B)
    if name == "curvature":
        squares = objective.squares()
        root = np.sqrt(np.maximum(objective.diagonal(B), LEAST_CURVATURE * np.where(squares > 0, squares, 1.0)))
        return Linear(B * root, scale=1 / root)
    p = B.shape[1]
    if p > LARGEST_WHITENED:
        raise ValueError(
            f"coordinates='whitened' keeps the square of {p} features, more than {LARGEST_WHITENED}: choose 'curvature'"
        )
    G = objective.second_moments()[0] + objective.penalty_matrix()
    scale = np.sqrt(np.maximum(G.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(G / scale / scale[:, None])  # of features of one size, whatever their units
    seen = values > LEAST_VARIANCE * p
    values, vectors = values[seen], vectors[:, seen]
    return Linear((B * scale) @ vectors * np.sqrt(values), map=(vectors / np.sqrt(values)).T / scale)


def refuse_zero_probabilities(natural: Statistics) -> None:
    """Complain of −∞, at which a coordinate relative to the closed form cannot start."""
    if np.isneginf(natural.ravel()).any():
        raise InvalidStatistics(
            "a state has probability zero in the closed form, of which coordinates='closed_form' are multiples; set "
            "prior_strength > 0 of the estimator, or choose other coordinates"
        )
