r"""Bregman divergences between functions, on a discretised measure space.

.. math:: d_\phi[f, g] = \phi[f] - \phi[g] - \delta\phi[g; f - g]

for a convex functional :math:`\phi` with derivative :math:`\delta\phi[g; a] = \int G_g\,a\,d\nu` (thesis2007
(7.1), (7.14)). A function is its values at the nodes of a `Measure`, nodes along the last axis, other axes
batches; or a callable of the nodes.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rcpkg.bregman.divergence import BregmanDivergence, named_divergence
from rcpkg.bregman.generators import DomainError, Interval
from rcpkg.linalg import Array

Function = ArrayLike | Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Measure:
    r"""Discretised measure, :math:`\int f\,d\nu \approx \sum_i w_i f(x_i)`: nodes (n,) and positive weights (n,).

    >>> unit = Measure.lebesgue(0.0, 1.0)
    >>> unit.integrate(lambda x: x**2).round(4).item(), Measure.counting([1.0, 2.0]).integrate(np.square).item()
    (0.3333, 5.0)
    >>> Measure(np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.5, 0.25])).values(np.square)
    array([0.  , 0.25, 1.  ])
    """

    nodes: Array
    weights: Array

    def __post_init__(self) -> None:
        if np.shape(self.nodes) != np.shape(self.weights) or np.ndim(self.nodes) != 1:
            raise ValueError("nodes and weights must be two vectors of the same length")
        if not np.all(np.isfinite(self.weights)) or np.any(np.asarray(self.weights) <= 0):
            raise ValueError("weights must be positive and finite; leave out nodes without mass")

    @classmethod
    def counting(cls, points: ArrayLike) -> "Measure":
        r""":math:`\sum_i\delta_{c_i}`; functional divergences become vector ones (Proposition 7.2.2, A.4)."""
        points = np.asarray(points, dtype=float)
        return cls(points, np.ones_like(points))

    @classmethod
    def lebesgue(cls, lower: float, upper: float, breaks: Sequence[float] = (), n_nodes: int = 64) -> "Measure":
        """Length on [lower, upper], by Gauss-Legendre quadrature between ``breaks``, the jumps of integrands.

        An infinite ``upper`` is reached by x = s/t from the last break s > 0, exact for powers of x.
        """
        edges = [float(lower), *sorted(float(b) for b in breaks), float(upper)]
        if not np.all(np.diff(edges) > 0) or not np.isfinite(lower):
            raise ValueError("lower < breaks < upper must hold, with finite lower")
        if np.isinf(upper) and not edges[-2] > 0:
            raise ValueError("an infinite interval needs a positive break, where its tail begins")
        t, w = np.polynomial.legendre.leggauss(n_nodes)
        t, w = (t + 1) / 2, w / 2
        nodes, weights = [], []
        for a, b in itertools.pairwise(edges):
            finite = np.isfinite(b)
            nodes.append(a + (b - a) * t if finite else a / t)
            weights.append((b - a) * w if finite else a * w / t**2)
        return cls(np.concatenate(nodes), np.concatenate(weights))

    def values(self, f: Function, name: str = "f") -> Array:
        """Values at the nodes, shape (..., n)."""
        values = np.asarray(f(self.nodes) if callable(f) else f, dtype=float)
        if values.shape[-1:] != self.nodes.shape:
            raise ValueError(f"{name} must have one value a node ({len(self.nodes)}); got shape {values.shape}")
        if not np.all(np.isfinite(values)):
            place = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise ValueError(f"{name} is not finite at the node {self.nodes[place]:g}")
        return values

    def integrate(self, f: Function) -> Array:
        """Integral of f, shape (...)."""
        return self.values(f) @ self.weights


@dataclass(frozen=True, eq=False)
class FunctionalBregmanDivergence:
    r"""Functional Bregman divergence :math:`d_\phi[f, g]`, thesis2007 Definition 7.2.1.

    Of values and weights ``functional`` is :math:`\phi`, ``gradient`` :math:`G_g` with :math:`\delta\phi[g; a] = \int
    G_g a\,d\nu` and, of a third argument a, ``hessian`` H with :math:`\delta^2\phi[g; a, b] = \int H\,b\,d\nu`. A
    ``closed_form`` (f, g, weights) has no cancellation. The functions lie in the ``domain``, for gradients in its
    interior.

    >>> d, unit, f, g = total_squared_difference, Measure.lebesgue(0.0, 1.0), lambda x: 2 * x, np.ones(64)
    >>> d(f, g, unit).round(4).item(), d.phi(f, unit).round(4).item()
    (0.3333, 1.3333)
    >>> d.derivative(g, f, unit).round(4).item(), d.second_derivative(g, f, f, unit).round(4).item()
    (2.0, 2.6667)
    """

    name: str
    functional: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array], Array]
    hessian: Callable[[Array, Array, Array], Array]
    closed_form: Callable[[Array, Array, Array], Array] | None = None
    domain: Interval = field(default_factory=Interval)

    def _values(self, f: Function, measure: Measure, name: str, interior: bool = False) -> Array:
        values = measure.values(f, name)
        try:
            self.domain.check(values, name, interior)
        except DomainError as error:
            raise DomainError(f"{self.name}: {error}; the last index is that of the node") from None
        return values

    def phi(self, f: Function, measure: Measure) -> Array:
        r"""Functional :math:`\phi[f]`."""
        return self.functional(self._values(f, measure, "f"), measure.weights)

    def derivative(self, g: Function, a: Function, measure: Measure) -> Array:
        r"""First variation :math:`\delta\phi[g; a]` (B.1)."""
        gradient = self.gradient(self._values(g, measure, "g", interior=True), measure.weights)
        return (gradient * measure.values(a, "a")) @ measure.weights

    def second_derivative(self, g: Function, a: Function, b: Function, measure: Measure) -> Array:
        r"""Second variation :math:`\delta^2\phi[g; a, b]` (B.2)."""
        values = self._values(g, measure, "g", interior=True)
        curvature = self.hessian(values, measure.weights, measure.values(a, "a"))
        return (curvature * measure.values(b, "b")) @ measure.weights

    def __call__(self, f: Function, g: Function, measure: Measure) -> Array:
        """Divergence d[f, g] (7.1), broadcast over the batch axes."""
        f = self._values(f, measure, "f")
        g = self._values(g, measure, "g", interior=self.closed_form is None)
        if self.closed_form is not None:
            return self.closed_form(f, g, measure.weights)
        w = measure.weights
        return self.functional(f, w) - self.functional(g, w) - (self.gradient(g, w) * (f - g)) @ w


def pointwise(divergence: str | BregmanDivergence, name: str | None = None) -> FunctionalBregmanDivergence:
    r"""Csiszár's :math:`\int s(f) - s(g) - s'(g)(f - g)\,d\nu` (7.8) from a separable vector divergence.

    For it :math:`\phi[g] = \int s(g)\,d\nu`, :math:`\delta\phi[g; a] = \int s'(g)\,a\,d\nu` (A.12) and
    :math:`\delta^2\phi[g; a, b] = \int s''(g)\,a\,b\,d\nu`. The ``divergence``, or its name in
    ``rcpkg.bregman.divergences``, must be a sum over entries; ``name`` is "pointwise" and its name by default.

    >>> pointwise("itakura_saito")([1.0, 2.0], [1.0, 1.0], Measure.counting([0.0, 1.0])).round(4).item()
    0.3069
    """
    d = named_divergence(divergence) if isinstance(divergence, str) else divergence
    if d.elementwise is None:
        raise ValueError(f"{d.name} is not a sum over entries, so that it has no pointwise form")
    return FunctionalBregmanDivergence(
        name or f"pointwise {d.name}",
        # the vector generator sums over entries: one entry at a time is its integrand
        functional=lambda g, w: d.generator.phi(g[..., None]) @ w,
        gradient=lambda g, w: d.generator.grad(g),
        hessian=lambda g, w, a: d.generator.hessian(g, a),
        closed_form=lambda f, g, w: d.elementwise(f, g) @ w,
        domain=d.domain,
    )


def _constant(value: Array, like: Array) -> Array:
    return np.broadcast_to(np.asarray(value)[..., None], like.shape)


total_squared_difference = pointwise("squared", "total_squared_difference")
relative_entropy = pointwise("generalized_i", "relative_entropy")
squared_bias = FunctionalBregmanDivergence(
    "squared_bias",
    functional=lambda g, w: (g @ w) ** 2,
    gradient=lambda g, w: _constant(2 * (g @ w), g),
    hessian=lambda g, w, a: _constant(2 * (a @ w), np.broadcast_arrays(g, a)[0]),
    closed_form=lambda f, g, w: ((f - g) @ w) ** 2,
)
