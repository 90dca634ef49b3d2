"""Random functions, and their risk under a functional Bregman divergence (thesis2007 ch. 7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rcpkg.bregman.functional import Function, FunctionalBregmanDivergence, Measure
from rcpkg.linalg import Array


@dataclass(frozen=True, eq=False)
class RandomFunction:
    """Random function F with finitely many values: :math:`P(F = f_k) = p_k`.

    The K ``members`` are functions, or an array (K, n); the ``probabilities`` (K,) are made to sum to one."""

    members: Sequence[Callable[[Array], Array]] | Array
    probabilities: Array

    def __post_init__(self) -> None:
        p = np.asarray(self.probabilities, dtype=float)
        if p.shape != (len(self.members),) or not np.all(np.isfinite(p)) or np.any(p < 0) or not p.sum() > 0:
            raise ValueError(f"probabilities must be {len(self.members)} non-negative numbers, one a member")
        object.__setattr__(self, "probabilities", p / p.sum())

    @classmethod
    def parametric(
        cls, family: Callable[[Array, float], Array], posterior: Callable[[Array], Array], parameters: Measure
    ) -> "RandomFunction":
        r"""Densities :math:`f_\theta(x)` under a posterior of :math:`\theta`, by quadrature."""
        members = [lambda x, theta=theta: family(x, theta) for theta in parameters.nodes]
        return cls(members, parameters.values(posterior, "posterior") * parameters.weights)

    def values(self, measure: Measure) -> Array:
        """Values of the members at the nodes, shape (K, n)."""
        if isinstance(self.members, np.ndarray):
            return measure.values(self.members, "members")
        return np.stack([measure.values(f, "members") for f in self.members])

    def mean(self, measure: Measure) -> Array:
        """Values of the mean function E[F] (7.18) at the nodes, shape (n,)."""
        return self.probabilities @ self.values(measure)

    def expected_divergence(self, divergence: FunctionalBregmanDivergence, g: Function, measure: Measure) -> Array:
        """Risk E d[F, g] (A.18), for one g or a batch of shape (..., n)."""
        g = measure.values(g, "g")
        return np.tensordot(self.probabilities, divergence(_lift(self.values(measure), g), g, measure), axes=1)

    def information(self, divergence: FunctionalBregmanDivergence, measure: Measure) -> float:
        """Smallest risk, E d[F, E F]."""
        return float(self.expected_divergence(divergence, self.mean(measure), measure))


def _lift(members: Array, g: Array) -> Array:
    """Members (K, n) with axes for the batch of g, (K, ..., n)."""
    return members.reshape(len(members), *(1,) * (g.ndim - 1), members.shape[-1])
