r"""The divergence itself, and the named ones (thesis2007 (2.10), Table 2.1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, logsumexp, softmax, xlogy

from rcpkg.bregman.closed_forms import (
    entropy_of_eigenvalues,
    exponential_term,
    i_term,
    itakura_saito_term,
    log_det,
    log_det_form,
    sandwich,
    softmax_hessian,
    spectral,
    spectral_derivative,
    von_neumann_form,
)
from rcpkg.bregman.generators import (
    Domain,
    Generator,
    Interval,
    ProjectionError,
    Simplex,
    SymmetricMatrices,
    dual_newton,
)
from rcpkg.checks import refusal
from rcpkg.linalg import Array


@dataclass(eq=False, repr=False)
class BregmanDivergence:
    r"""The Bregman divergence :math:`d_\phi(x, y)` of a convex function :math:`\phi`.

    .. math:: d_\phi(x, y) = \phi(x) - \phi(y) - \langle\nabla\phi(y), x - y\rangle

    Parameters
    ----------
    name : str
        Name in messages, and the key if it is one of `divergences`.
    generator : Generator
        :math:`\phi`, its derivatives and its domain.
    conjugate : Generator, optional
        The Legendre conjugate, :math:`\nabla\phi^* = (\nabla\phi)^{-1}`; needed by `dual`, `project` and
        centroids of data in the second argument.
    closed_form : callable, optional
        d(x, y) without the cancellation of the formula; values at the boundary are its limits.
    elementwise : callable, optional
        For a divergence that is a sum over entries: the term of one entry.
    open_second : bool, default=True
        Whether y must lie in the relative interior. It need not where the closed form has limits on the
        boundary: 0 log 0 = 0, and infinity where x puts mass that y does not.

    References
    ----------
    thesis2007 (2.10).

    Examples
    --------
    >>> from rcpkg.bregman import BregmanDivergence, Generator, divergences
    >>> round(float(divergences["kl"]([0.5, 0.5], [0.25, 0.75])), 4)
    0.1438
    >>> power = Generator(lambda x: (x**4).sum(axis=-1), lambda x: 4 * x**3)
    >>> quartic = BregmanDivergence("quartic", power)
    >>> float(quartic([1.0, 2.0], [1.0, 1.0]))  # 17 - 2 - 4
    11.0
    >>> kl, P = divergences["kl"], np.array([[0.5, 0.5], [0.25, 0.75]])
    >>> kl.phi(P).round(3), kl.grad(P[0]).round(3), kl.pairwise(P, P)[0].round(3)
    (array([-0.693, -0.562]), array([0.307, 0.307]), array([0.   , 0.144]))
    >>> kl.centroid(P), round(kl.information(P), 4)
    (array([0.375, 0.625]), 0.0338)
    >>> kl.project(P[0], [[1.0, 0.0]], [0.25])  # the nearest x with x_1 = 1/4
    array([0.25, 0.75])
    >>> bool(np.isclose(kl.dual()(kl.grad(P[1]), kl.grad(P[0])), kl(P[0], P[1])))
    True
    """

    name: str
    generator: Generator
    conjugate: Generator | None = None
    closed_form: Callable[[Array, Array], Array] | None = field(default=None, kw_only=True)
    elementwise: Callable[[Array, Array], Array] | None = field(default=None, kw_only=True)
    open_second: bool = field(default=True, kw_only=True)

    def __repr__(self) -> str:
        return f"<BregmanDivergence {self.name}>"

    @property
    def _is_named(self) -> bool:
        return self.name in divergences and divergences[self.name].generator is self.generator

    # the named ones hold closures: they are saved by name, by pickle and (the other two) by skops
    def __reduce__(self):
        return (named_divergence, (self.name,)) if self._is_named else super().__reduce__()

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name} if self._is_named else self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(vars(named_divergence(state["name"])) if state.keys() == {"name"} else state)

    @property
    def domain(self) -> Domain:
        """Set on which the divergence is defined."""
        return self.generator.domain

    def _point(self, x: ArrayLike, argument: str, interior: bool = False) -> Array:
        x = np.asarray(x, dtype=float)
        event_ndim = self.domain.event_ndim
        if event_ndim == 1 and x.ndim == 0:
            x = x[None]
        if x.ndim < event_ndim:
            raise ValueError(f"{self.name}: {argument} must have at least {event_ndim} axes; got shape {x.shape}")
        self.domain.check(x, f"{self.name}: {argument}", interior)
        return x

    def phi(self, x: ArrayLike) -> Array:
        r"""Generator :math:`\phi(x)`, one number a point."""
        return self.generator.phi(self._point(x, "x"))

    def grad(self, x: ArrayLike) -> Array:
        r"""Gradient :math:`\nabla\phi(x)` at points of the relative interior: the dual coordinates of x."""
        return self.generator.grad(self._point(x, "x", interior=True))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Divergence d(x, y), broadcast over the batch axes; `DomainError` names an entry outside the domain."""
        x, y = self._point(x, "x"), self._point(y, "y", interior=self.open_second)
        k = self.domain.event_ndim
        if x.shape[-k:] != y.shape[-k:]:
            raise ValueError(f"{self.name}: x and y differ in dimension: {x.shape[-k:]} and {y.shape[-k:]}")
        if self.closed_form is not None:
            return self.closed_form(x, y)
        inner = np.sum(self.generator.grad(y) * (x - y), axis=tuple(range(-k, 0)))
        return self.generator.phi(x) - self.generator.phi(y) - inner

    def pairwise(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """All d(X[i], Y[j]), shape (n, m); unlike scikit-learn's ``pairwise_distances`` without symmetry."""
        Y = self._point(Y, "Y", interior=self.open_second)
        return np.stack([self(X, point) for point in Y], axis=-1)

    def dual(self) -> "BregmanDivergence":
        r"""The conjugate's: :math:`d_\phi(x, y) = d_{\phi^*}(\nabla\phi(y), \nabla\phi(x))`, as in (7.15)."""
        return BregmanDivergence(f"dual of {self.name}", self._conjugate("dual()"), self.generator)

    def _conjugate(self, needed_by: str) -> Generator:
        if self.conjugate is None:
            raise ValueError(f"{self.name}: {needed_by} needs the conjugate; construct the divergence with conjugate=")
        return self.conjugate

    def centroid(self, X: ArrayLike, weights: ArrayLike | None = None, side: str = "left") -> Array:
        r"""Minimiser of the weighted divergence of the data X, points along the first axis.

        Weights are made to sum to one. Data on the left, :math:`\sum_i w_i d(x_i, c)`: the mean, whatever
        :math:`\phi` (Theorem 2.3.1). On the right, :math:`\sum_i w_i d(c, x_i)`:
        :math:`\nabla\phi^*(\sum_i w_i\nabla\phi(x_i))`.
        """
        if side == "left":
            X = self._point(X, "X")
            return np.tensordot(_probabilities(weights, len(X)), X, axes=1)
        if side == "right":
            gradients = self.grad(X)
            mean = np.tensordot(_probabilities(weights, len(gradients)), gradients, axes=1)
            return self._conjugate("centroid(side='right')").grad(mean)
        raise refusal("side", "be 'left' or 'right', the side of the data in d", side)

    def information(self, X: ArrayLike, weights: ArrayLike | None = None) -> float:
        r"""Bregman information :math:`E\,d(X, EX) = E\phi(X) - \phi(EX)` of weighted points; of two their
        Jensen-Bregman divergence."""
        X = self._point(X, "X")
        w = _probabilities(weights, len(X))
        # a point of weight zero may have infinite divergence from the mean of the others
        return float(w[w > 0] @ self(X[w > 0], self.centroid(X, w)))

    def project(self, y: ArrayLike, A: ArrayLike, b: ArrayLike) -> Array:
        r"""Bregman projection :math:`\arg\min_x d(x, y)` subject to :math:`\langle A_j, x\rangle = b_j`, one a row.

        Newton's method on the convex dual; `ProjectionError` if the constraints are not met.
        """
        conjugate, start = self._conjugate("project"), self.grad(y)
        b = np.atleast_1d(np.asarray(b, dtype=float))
        A = np.asarray(A, dtype=float).reshape(-1, *start.shape)
        if start.ndim == 2:
            A = (A + A.mT) / 2
        if len(A) != len(b):
            raise ValueError(f"A and b must hold one constraint a row; got {len(A)} and {len(b)}")
        projection = dual_newton(conjugate, start, A, b)
        if projection is None:
            raise ProjectionError(
                f"{self.name}: no projection found; some interior point of the domain must satisfy A x = b"
            )
        return projection


def _probabilities(weights: ArrayLike | None, n: int) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError(f"weights must be {n} non-negative numbers, one a point, with a positive sum")
    return weights / weights.sum()


def separable(
    name: str,
    scalar: tuple[Callable, Callable, Callable],
    conjugate: tuple[Callable, Callable, Callable],
    domain: Interval,
    dual_domain: Interval,
    term: Callable[[Array, Array], Array],
) -> BregmanDivergence:
    r"""Sum over entries of a scalar divergence: :math:`\phi(x) = \sum_j\varphi(x_j)`.

    ``scalar`` and ``conjugate`` are :math:`\varphi, \varphi', \varphi''` and the same of :math:`\varphi^*`, on the
    intervals ``domain`` and ``dual_domain``; ``term`` is the scalar divergence in closed form, ``name`` for messages.

    >>> half, real = (lambda x: x**2 / 2, lambda x: x, np.ones_like), Interval()
    >>> separable("half", half, half, real, real, lambda x, y: (x - y) ** 2 / 2)([3.0], [1.0]).item()
    2.0
    """

    def generator(functions: tuple[Callable, Callable, Callable], domain: Interval) -> Generator:
        phi, grad, curvature = functions
        return Generator(lambda x: np.sum(phi(x), axis=-1), grad, lambda x, v: curvature(x) * v, domain)

    return BregmanDivergence(
        name,
        generator(scalar, domain),
        generator(conjugate, dual_domain),
        closed_form=lambda x, y: np.sum(term(x, y), axis=-1),
        elementwise=term,
        open_second=not domain.closed,
    )


def mahalanobis(matrix: ArrayLike | None = None) -> BregmanDivergence:
    r"""Mahalanobis divergence :math:`(x-y)^\top A\,(x-y)` of :math:`\phi(x) = x^\top A x`.

    The ``matrix`` A, (d, d), is the identity by default; it is symmetric and positive definite.

    >>> mahalanobis([[2.0, 0.0], [0.0, 1.0]])([1.0, 1.0], [0.0, 0.0]).round(4).item()
    3.0
    """
    if matrix is None:
        return divergences["mahalanobis"]
    matrix = np.asarray(matrix, dtype=float)
    SymmetricMatrices(+1).check(matrix, "matrix")
    return _Mahalanobis("mahalanobis", matrix)


class _Mahalanobis(BregmanDivergence):
    def __init__(self, name: str, matrix: Array | None) -> None:
        self.matrix = matrix
        factor = None if matrix is None else np.linalg.cholesky(matrix)

        def apply(v: Array) -> Array:
            return v if factor is None else v @ factor @ factor.T

        def solve(v: Array) -> Array:
            return v if matrix is None else np.linalg.solve(matrix, v[..., None])[..., 0]

        def norm(v: Array) -> Array:
            return np.sum((v if factor is None else v @ factor) ** 2, axis=-1)

        super().__init__(
            name,
            Generator(norm, lambda x: 2 * apply(x), lambda x, v: 2 * apply(v)),
            Generator(lambda u: np.sum(u * solve(u), axis=-1) / 4, lambda u: solve(u) / 2, lambda u, v: solve(v) / 2),
            closed_form=lambda x, y: norm(x - y),
            open_second=False,
        )

    def __reduce__(self):
        return super().__reduce__() if self._is_named else (type(self), (self.name, self.matrix))


_REAL, _HALF_LINE, _POSITIVE = Interval(), Interval(0.0, np.inf, closed=True), Interval(0.0, np.inf)

divergences: dict[str, BregmanDivergence] = {
    divergence.name: divergence
    for divergence in (
        separable(
            "squared",
            (np.square, lambda x: 2 * x, lambda x: np.full_like(x, 2.0)),
            (lambda u: u**2 / 4, lambda u: u / 2, lambda u: np.full_like(u, 0.5)),
            _REAL,
            _REAL,
            lambda x, y: (x - y) ** 2,
        ),
        separable(
            "generalized_i",
            (lambda x: xlogy(x, x), lambda x: 1 + np.log(x), lambda x: 1 / x),
            (lambda u: np.exp(u - 1),) * 3,
            _HALF_LINE,
            _REAL,
            i_term,
        ),
        separable(
            "logistic",
            (lambda x: xlogy(x, x) + xlogy(1 - x, 1 - x), logit, lambda x: 1 / (x * (1 - x))),
            (lambda u: np.logaddexp(0, u), expit, lambda u: expit(u) * expit(-u)),
            Interval(0.0, 1.0, closed=True),
            _REAL,
            lambda x, y: i_term(x, y) + i_term(1 - x, 1 - y),
        ),
        separable(
            "itakura_saito",
            (lambda x: -np.log(x), lambda x: -1 / x, lambda x: 1 / x**2),
            (lambda u: -1 - np.log(-u), lambda u: -1 / u, lambda u: 1 / u**2),
            _POSITIVE,
            Interval(-np.inf, 0.0),
            itakura_saito_term,
        ),
        separable(
            "exponential",
            (np.exp,) * 3,
            (lambda u: xlogy(u, u) - u, np.log, lambda u: 1 / u),
            _REAL,
            _HALF_LINE,
            exponential_term,
        ),
        BregmanDivergence(
            "kl",
            Generator(lambda x: np.sum(xlogy(x, x), axis=-1), lambda x: 1 + np.log(x), lambda x, v: v / x, Simplex()),
            Generator(partial(logsumexp, axis=-1), partial(softmax, axis=-1), softmax_hessian, _REAL),
            closed_form=lambda x, y: np.sum(i_term(x, y), axis=-1),
            open_second=False,
        ),
        _Mahalanobis("mahalanobis", None),
        BregmanDivergence(
            "log_det",
            Generator(lambda x: -log_det(x), lambda x: -np.linalg.inv(x), sandwich, SymmetricMatrices(+1)),
            Generator(
                lambda u: -u.shape[-1] - log_det(-u),
                lambda u: -np.linalg.inv(u),
                sandwich,
                SymmetricMatrices(-1),
            ),
            closed_form=log_det_form,
        ),
        BregmanDivergence(
            "von_neumann",
            Generator(
                entropy_of_eigenvalues,
                lambda x: spectral(x, np.log),
                lambda x, v: spectral_derivative(x, v, np.log, np.reciprocal),
                SymmetricMatrices(+1, closed=True),
            ),
            Generator(
                lambda u: np.sum(np.exp(np.linalg.eigvalsh(u)), axis=-1),
                lambda u: spectral(u, np.exp),
                lambda u, v: spectral_derivative(u, v, np.exp, np.exp),
                SymmetricMatrices(),
            ),
            closed_form=von_neumann_form,
        ),
    )
}


def named_divergence(name: str) -> BregmanDivergence:
    if not isinstance(name, str) or name not in divergences:
        raise ValueError(f"no divergence is called {name!r}; there are {', '.join(divergences)}")
    return divergences[name]


def gaussian_kl(mean_0: ArrayLike, cov_0: ArrayLike, mean_1: ArrayLike, cov_1: ArrayLike) -> Array:
    r"""Relative entropy of Gaussians, the sum of two Bregman divergences.

    .. math:: KL(N_0\|N_1) = {}&\tfrac12 d_{-\log\det}(\Sigma_0, \Sigma_1) \\
        &+ \tfrac12(\mu_0-\mu_1)^\top\Sigma_1^{-1}(\mu_0-\mu_1)

    ``mean_0`` and ``mean_1`` are (..., d), ``cov_0`` and ``cov_1`` (..., d, d).

    >>> gaussian_kl([0.0], [[1.0]], [1.0], [[1.0]]).item()
    0.5
    """
    gap = np.asarray(mean_0, dtype=float) - np.asarray(mean_1, dtype=float)
    scatter = divergences["log_det"](cov_0, cov_1)
    standardised = np.linalg.solve(np.linalg.cholesky(np.asarray(cov_1, dtype=float)), gap[..., None])
    return 0.5 * (scatter + np.sum(standardised**2, axis=(-2, -1)))
