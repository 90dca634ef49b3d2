"""Bregman projections on affine sets, by Newton's method on the dual problem."""

import numpy as np

from rcpkg.bregman.generators import DomainError, Generator
from rcpkg.linalg import Array, backtracked

TOL, MAX_STEPS = 1e-10, 100  # of the constraints, relative to one plus the largest b


class ProjectionError(ValueError):
    """A Bregman projection that was not found: the constraints miss the domain, or contradict each other."""


def dual_newton(conjugate: Generator, start: Array, A: Array, b: Array) -> Array | None:
    r"""The point :math:`\nabla\phi^*(u)`, :math:`u = \nabla\phi(y) + A^\top\lambda`, that satisfies the constraints.

    Minimises :math:`\lambda\mapsto\phi^*(\nabla\phi(y) + A^\top\lambda) - b^\top\lambda`, which is convex; ``start``
    is :math:`\nabla\phi(y)`. None where the constraints are not met to `TOL` after `MAX_STEPS` steps.
    """
    rows = A.reshape(len(A), -1)

    def objective(lagrange: Array) -> tuple[float, Array]:
        u = start + np.tensordot(lagrange, A, axes=1)
        try:
            conjugate.domain.check(u, "u", interior=True)
        except DomainError:
            return np.inf, u
        return float(conjugate.phi(u) - b @ lagrange), u

    lagrange = np.zeros(len(b))
    value, u = objective(lagrange)
    for _ in range(MAX_STEPS):
        residual = rows @ conjugate.grad(u).ravel() - b
        if np.abs(residual).max() <= TOL * (1 + np.abs(b).max()):
            return conjugate.grad(u)
        with np.errstate(over="ignore"):
            curvature = rows @ np.stack([conjugate.hessian(u, row).ravel() for row in A], axis=1)
        if not np.all(np.isfinite(curvature)):
            return None
        direction = -np.linalg.lstsq(curvature, residual)[0]
        end = backtracked(objective, lagrange, value, direction, residual @ direction)
        if end is None:
            return None
        _, lagrange, value, u = end
    return None
