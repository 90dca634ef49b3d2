r"""Bregman divergences of vectors and matrices.

.. math:: d_\phi(x, y) = \phi(x) - \phi(y) - \langle\nabla\phi(y),\, x - y\rangle

for a strictly convex generator :math:`\phi` (thesis2007 (2.10), Table 2.1). Vectors lie along the last axis,
matrices along the last two; all other axes are batches and broadcast. For matrices :math:`\phi(X) = \operatorname{tr}
f(X)` with a convex f of one variable has the gradient :math:`f'(X)`.
"""

from rcpkg.bregman import functional, uniform
from rcpkg.bregman.clustering import BregmanClustering
from rcpkg.bregman.divergence import BregmanDivergence, divergences, gaussian_kl, mahalanobis, separable
from rcpkg.bregman.generators import (
    DomainError,
    Generator,
    Interval,
    ProjectionError,
    Simplex,
    SymmetricMatrices,
)

__all__ = [
    "BregmanClustering",
    "BregmanDivergence",
    "DomainError",
    "Generator",
    "Interval",
    "ProjectionError",
    "Simplex",
    "SymmetricMatrices",
    "divergences",
    "functional",
    "gaussian_kl",
    "mahalanobis",
    "separable",
    "uniform",
]
