"""Convex functions, which generate divergences, the sets on which they are defined, and projections on affine sets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rcpkg.linalg import EPS, MOST_STEPS, Array, backtracked

#: What a projection's constraints may lack, relative to one plus the largest b. On constraints in units of 1e-3 to 1e3
#: 420 projections by seven divergences take 1,619 steps, with half 13 more and with twice 15 less; with the rounding of
#: sums, 1e-12, two are not found.
CONSTRAINT_TOL = 1e-10
#: By how much the sum of given probabilities may differ from one, and by which share a given matrix from its transpose.
#: What is computed differs by some 1e-15, and what is printed to four digits by 1e-5: half or twice refuses the same.
TOTAL_TOL, SYMMETRY_TOL = 1e-8, 1e-10


class DomainError(ValueError):
    """A point outside the set on which a divergence is defined."""


@dataclass(frozen=True)
class Interval:
    """Vectors whose entries lie between two bounds; ``closed``: finite bounds belong to the set.

    >>> Interval(0.0, 1.0, closed=True).check(np.array([0.0, 0.5]), "x")  # in the set: nothing is raised
    """

    lower: float = -np.inf
    upper: float = np.inf
    closed: bool = False
    event_ndim = 1

    def check(self, x: Array, argument: str, interior: bool = False) -> None:
        """Raise `DomainError` naming the first entry outside the set (or outside its interior)."""
        if self.closed and not interior:
            outside = (x < self.lower) | (x > self.upper)
        else:
            outside = (x <= self.lower) | (x >= self.upper)
        outside |= ~np.isfinite(x)
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            sign = "<=" if self.closed and not interior else "<"
            raise DomainError(
                f"{argument}{list(place)} = {x[place]:g} violates {self.lower:g} {sign} x {sign} {self.upper:g}"
            )


class Simplex:
    """Probability vectors; the relative interior holds those without a zero.

    >>> Simplex().check(np.array([[0.5, 0.25]]), "x")
    Traceback (most recent call last):
        ...
    rcpkg.bregman.generators.DomainError: x[0] sums to 0.75, not 1; divide it by its sum
    """

    event_ndim = 1

    def check(self, x: Array, argument: str, interior: bool = False) -> None:
        """Raise `DomainError` naming the first negative entry or the first row that does not sum to one."""
        Interval(0.0, np.inf, closed=True).check(x, argument, interior)
        total = x.sum(axis=-1)
        wrong = np.abs(total - 1) > TOTAL_TOL
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise DomainError(f"{argument}{list(place)} sums to {total[place]:g}, not 1; divide it by its sum")


@dataclass(frozen=True)
class SymmetricMatrices:
    """Symmetric matrices; ``sign`` ±1: positive or negative definite ones, ``closed``: semi-definite ones.

    >>> SymmetricMatrices(+1).check(np.array([[2.0, 1.0], [1.0, 2.0]]), "x")  # in the set: nothing is raised
    """

    sign: int = 0
    closed: bool = False
    event_ndim = 2

    def check(self, x: Array, argument: str, interior: bool = False) -> None:
        """Raise `DomainError` naming the first matrix outside the set (or outside its interior)."""
        if x.shape[-1] != x.shape[-2] or not np.all(np.isfinite(x)):
            raise DomainError(f"{argument} must hold finite square matrices; got shape {x.shape}")
        size = np.abs(x).max(axis=(-2, -1), initial=0.0)
        wrong = np.abs(x - x.mT).max(axis=(-2, -1), initial=0.0) > SYMMETRY_TOL * size
        reason = "is not symmetric; average it with its transpose"
        if self.sign and not wrong.any():
            smallest = np.linalg.eigvalsh(self.sign * x)[..., 0]
            rounding = x.shape[-1] * EPS * size
            semi = self.closed and not interior
            wrong = smallest < -rounding if semi else smallest <= rounding
            kind = ("positive" if self.sign > 0 else "negative") + (" semi-definite" if semi else " definite")
            reason = f"is not {kind}"
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise DomainError(f"the matrix {argument}{list(place)} {reason}")


Domain = Interval | Simplex | SymmetricMatrices


class Generator(NamedTuple):
    """A convex function and its derivatives; ``hessian(x, v)`` applies the second one to a direction v.

    >>> Generator(lambda x: np.cosh(x).sum(axis=-1), np.sinh).domain
    Interval(lower=-inf, upper=inf, closed=False)
    """

    phi: Callable[[Array], Array]
    grad: Callable[[Array], Array]
    hessian: Callable[[Array, Array], Array] | None = None
    domain: Domain = Interval()


class ProjectionError(ValueError):
    """A Bregman projection that was not found: the constraints miss the domain, or contradict each other.

    >>> from rcpkg.bregman import divergences
    >>> divergences["kl"].project([0.5, 0.5], [[1.0, 0.0]], [2.0])
    Traceback (most recent call last):
        ...
    rcpkg.bregman.generators.ProjectionError: kl: no projection found; some interior point of the ...
    """


def dual_newton(conjugate: Generator, start: Array, A: Array, b: Array) -> Array | None:
    r"""A projection by Newton's method on the dual problem.

    It is the point :math:`\nabla\phi^*(u)`, :math:`u = \nabla\phi(y) + A^\top\lambda`, that satisfies the constraints.
    Minimises :math:`\lambda\mapsto\phi^*(\nabla\phi(y) + A^\top\lambda) - b^\top\lambda`, which is convex; ``start``
    is :math:`\nabla\phi(y)`. None where the constraints are not met to `CONSTRAINT_TOL` after `MOST_STEPS` steps.
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
    for _ in range(MOST_STEPS):
        residual = rows @ conjugate.grad(u).ravel() - b
        if np.abs(residual).max() <= CONSTRAINT_TOL * (1 + np.abs(b).max()):
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
