"""Linear coordinates of natural parameters in which L-BFGS may move; they differ in how fast it gets there.

They are diagonal or other linear changes of the coefficients B of scores B_y · φ(x): wanbia2014's is the one by the
closed form. A family gives its free coordinates itself, which keep η in its domain where a target asks for it.
"""

from typing import NamedTuple

import numpy as np

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.families import Statistics

LEAST_CURVATURE = 1e-6  # of a coordinate, relative to its second moment: saturated posteriors have none
LARGEST_WHITENED = 3000  # features, whose square is kept
LEAST_VARIANCE = 1e-13  # of a combination of as many features of size one: what is less is rounding


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
