r"""Bregman divergences of vectors and matrices.

.. math:: d_\phi(x, y) = \phi(x) - \phi(y) - \langle\nabla\phi(y),\, x - y\rangle

for a strictly convex generator :math:`\phi` (thesis2007 (2.10), Table 2.1). Vectors lie along the last axis,
matrices along the last two; all other axes are batches and broadcast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, hyp1f1, kl_div, logit, logsumexp, softmax, xlogy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

Array = NDArray[np.float64]


class DomainError(ValueError):
    """A point outside the set on which a divergence is defined."""


class ProjectionError(ValueError):
    """A Bregman projection that was not found: the constraints miss the domain, or contradict each other."""


# ---- domains -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Vectors whose entries lie between two bounds; ``closed``: finite bounds belong to the set."""

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
            at = tuple(int(i) for i in np.argwhere(outside)[0])
            sign = "<=" if self.closed and not interior else "<"
            raise DomainError(
                f"{argument}{list(at)} = {x[at]:g} violates {self.lower:g} {sign} x {sign} {self.upper:g}"
            )


@dataclass(frozen=True)
class Simplex:
    """Probability vectors; the relative interior holds those without a zero."""

    event_ndim = 1

    def check(self, x: Array, argument: str, interior: bool = False) -> None:
        """Raise `DomainError` naming the first negative entry or the first row that does not sum to one."""
        Interval(0.0, np.inf, closed=True).check(x, argument, interior)
        total = x.sum(axis=-1)
        wrong = np.abs(total - 1) > 1e-8
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise DomainError(f"{argument}{list(at)} sums to {total[at]:g}, not 1; divide it by its sum")


@dataclass(frozen=True)
class SymmetricMatrices:
    """Symmetric matrices; ``sign`` ±1: positive or negative definite ones, ``closed``: semi-definite ones."""

    sign: int = 0
    closed: bool = False
    event_ndim = 2

    def check(self, x: Array, argument: str, interior: bool = False) -> None:
        """Raise `DomainError` naming the first matrix outside the set (or outside its interior)."""
        if x.shape[-1] != x.shape[-2] or not np.all(np.isfinite(x)):
            raise DomainError(f"{argument} must hold finite square matrices; got shape {x.shape}")
        size = np.abs(x).max(axis=(-2, -1), initial=0.0)
        wrong = np.abs(x - x.mT).max(axis=(-2, -1), initial=0.0) > 1e-10 * size
        reason = "is not symmetric; average it with its transpose"
        if self.sign and not wrong.any():
            smallest = np.linalg.eigvalsh(self.sign * x)[..., 0]
            rounding = x.shape[-1] * np.finfo(float).eps * size
            semi = self.closed and not interior
            wrong = smallest < -rounding if semi else smallest <= rounding
            kind = ("positive" if self.sign > 0 else "negative") + (" semi-definite" if semi else " definite")
            reason = f"is not {kind}"
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise DomainError(f"the matrix {argument}{list(at)} {reason}")


Domain = Interval | Simplex | SymmetricMatrices


# ---- the divergence ----------------------------------------------------------------------------------------


class Generator(NamedTuple):
    """A convex function and its derivatives; ``hessian(x, v)`` applies the second one to a direction v."""

    phi: Callable[[Array], Array]
    grad: Callable[[Array], Array]
    hessian: Callable[[Array, Array], Array] | None = None
    domain: Domain = Interval()


class BregmanDivergence:
    r""":math:`d_\phi(x, y) = \phi(x) - \phi(y) - \langle\nabla\phi(y), x - y\rangle`, thesis2007 (2.10).

    Parameters
    ----------
    name : str
    generator : Generator
        :math:`\phi`, its derivatives and its domain.
    conjugate : Generator, optional
        The Legendre conjugate, :math:`\nabla\phi^* = (\nabla\phi)^{-1}`; needed by `dual`, `project` and
        centroids of data in the second argument.
    closed_form : callable, optional
        d(x, y) without the cancellation of (2.10); values at the boundary are its limits.
    elementwise : callable, optional
        For a divergence that is a sum over entries: the term of one entry.
    open_second : bool
        Whether y must lie in the relative interior. It need not where the closed form has limits on the
        boundary: 0 log 0 = 0, and infinity where x puts mass that y does not.
    """

    def __init__(
        self,
        name: str,
        generator: Generator,
        conjugate: Generator | None = None,
        *,
        closed_form: Callable[[Array, Array], Array] | None = None,
        elementwise: Callable[[Array, Array], Array] | None = None,
        open_second: bool = True,
    ) -> None:
        self.name = name
        self.generator = generator
        self.conjugate = conjugate
        self.closed_form = closed_form
        self.elementwise = elementwise
        self.open_second = open_second

    def __repr__(self) -> str:
        return f"<BregmanDivergence {self.name}>"

    def __reduce__(self):
        # the named ones hold closures: pickle them by name
        return (_named, (self.name,)) if divergences.get(self.name) is self else super().__reduce__()

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

    def _inner(self, u: Array, v: Array) -> Array:
        return np.sum(u * v, axis=tuple(range(-self.domain.event_ndim, 0)))

    def phi(self, x: ArrayLike) -> Array:
        r"""Generator :math:`\phi(x)`, one number a point."""
        return self.generator.phi(self._point(x, "x"))

    def grad(self, x: ArrayLike) -> Array:
        r"""Gradient :math:`\nabla\phi(x)` at points of the relative interior: the dual coordinates of x."""
        return self.generator.grad(self._point(x, "x", interior=True))

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Divergence d(x, y), broadcast over the batch axes.

        Raises
        ------
        DomainError
            If a point lies outside the domain; the message names the entry.
        """
        x, y = self._point(x, "x"), self._point(y, "y", interior=self.open_second)
        k = self.domain.event_ndim
        if x.shape[-k:] != y.shape[-k:]:
            raise ValueError(f"{self.name}: x and y differ in dimension: {x.shape[-k:]} and {y.shape[-k:]}")
        if self.closed_form is not None:
            return self.closed_form(x, y)
        return self.generator.phi(x) - self.generator.phi(y) - self._inner(self.generator.grad(y), x - y)

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
        raise ValueError(f"side must be 'left' or 'right', the side of the data in d; got {side!r}")

    def information(self, X: ArrayLike, weights: ArrayLike | None = None) -> float:
        r"""Bregman information :math:`E\,d(X, EX) = E\phi(X) - \phi(EX)` of weighted points."""
        X = self._point(X, "X")
        w = _probabilities(weights, len(X))
        # a point of weight zero may have infinite divergence from the mean of the others
        return float(w[w > 0] @ self(X[w > 0], self.centroid(X, w)))

    def jensen(self, x: ArrayLike, y: ArrayLike, weight: float = 0.5) -> Array:
        r"""Jensen-Bregman divergence :math:`w\phi(x) + (1-w)\phi(y) - \phi(wx + (1-w)y)`."""
        if not 0 < weight < 1:
            raise ValueError(f"weight must lie strictly between 0 and 1; got {weight}")
        x, y = self._point(x, "x"), self._point(y, "y")
        mean = weight * x + (1 - weight) * y
        return weight * self(x, mean) + (1 - weight) * self(y, mean)

    def pythagorean_gap(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
        r""":math:`d(x, z) - d(x, y) - d(y, z) = \langle\nabla\phi(y) - \nabla\phi(z), x - y\rangle`.

        The three-point identity; zero if y is the projection of z onto an affine set that holds x, and
        non-negative if onto a convex set.
        """
        y = self._point(y, "y", interior=True)
        return self._inner(self.grad(y) - self.grad(z), self._point(x, "x") - y)

    def project(self, y: ArrayLike, A: ArrayLike, b: ArrayLike, *, tol: float = 1e-10, max_iter: int = 100) -> Array:
        r"""Bregman projection :math:`\arg\min_x d(x, y)` subject to :math:`\langle A_j, x\rangle = b_j`.

        Newton's method on the convex dual
        :math:`\lambda\mapsto\phi^*(\nabla\phi(y) + A^\top\lambda) - b^\top\lambda`.

        Parameters
        ----------
        y : array of the shape of one point
        A : array of shape (q, \*point)
            One constraint a row.
        b : array of shape (q,)

        Raises
        ------
        ProjectionError
            If the constraints are not met to ``tol``, relative to one plus the largest b, after ``max_iter`` steps.
        """
        conjugate, start = self._conjugate("project"), self.grad(y)
        b = np.atleast_1d(np.asarray(b, dtype=float))
        A = np.asarray(A, dtype=float).reshape(-1, *start.shape)
        if start.ndim == 2:
            A = (A + A.mT) / 2
        if len(A) != len(b):
            raise ValueError(f"A and b must hold one constraint a row; got {len(A)} and {len(b)}")
        rows = A.reshape(len(A), -1)

        def dual_objective(lagrange: Array) -> tuple[float, Array]:
            u = start + np.tensordot(lagrange, A, axes=1)
            try:
                conjugate.domain.check(u, "u", interior=True)
            except DomainError:
                return np.inf, u
            return float(conjugate.phi(u) - b @ lagrange), u

        lagrange = np.zeros(len(b))
        value, u = dual_objective(lagrange)
        for _ in range(max_iter):
            residual = rows @ conjugate.grad(u).ravel() - b
            if np.abs(residual).max() <= tol * (1 + np.abs(b).max()):
                return conjugate.grad(u)
            with np.errstate(over="ignore"):
                curvature = rows @ np.stack([conjugate.hessian(u, row).ravel() for row in A], axis=1)
            if not np.all(np.isfinite(curvature)):
                break
            direction = -np.linalg.lstsq(curvature, residual)[0]
            step, slope = 1.0, residual @ direction
            with np.errstate(over="ignore", invalid="ignore"):
                while step > 1e-12:
                    new_value, new_u = dual_objective(lagrange + step * direction)
                    if new_value <= value + 1e-4 * step * slope + 1e-14 * abs(value):
                        break
                    step /= 2
            if step <= 1e-12:
                break
            lagrange, value, u = lagrange + step * direction, new_value, new_u
        raise ProjectionError(
            f"{self.name}: no projection found; some interior point of the domain must satisfy A x = b"
        )


def _probabilities(weights: ArrayLike | None, n: int) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError(f"weights must be {n} non-negative numbers, one a point, with a positive sum")
    return weights / weights.sum()


# ---- numerically careful pieces ----------------------------------------------------------------------------


def _log_gap_series(u: Array) -> Array:
    """u - log(1 + u) for |u| < 0.1: with s = u/(2 + u) it is u s - 2 (s^3/3 + s^5/5 + ... + s^13/13)."""
    s = u / (2 + u)
    t = s * s
    odd = 1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t / 13))))
    return s * (u - 2 * t * odd)


def _i_term(x: Array, y: Array) -> Array:
    """x log(x/y) - x + y with 0 log 0 = 0 and infinity at y = 0 < x; relative precision also near x = y."""
    near = np.abs(y - x) < 0.1 * x
    u = np.where(near, y - x, 0.0) / np.where(near, x, 1.0)
    return np.where(near, x * _log_gap_series(u), kl_div(x, y))


def _itakura_saito_term(x: Array, y: Array) -> Array:
    """x/y - log(x/y) - 1, with relative precision also near x = y."""
    near = np.abs(x - y) < 0.1 * y
    series = _log_gap_series(np.where(near, x - y, 0.0) / y)
    with np.errstate(over="ignore"):
        return np.where(near, series, x / y - (np.log(x) - np.log(y)) - 1)


def _exponential_term(x: Array, y: Array) -> Array:
    """e^y (e^t - 1 - t), t = x - y; for t > 0 as e^x (1 - (1 + t) e^-t), near 0 as e^y t^2/2 1F1(1; 3; t)."""
    t = x - y
    near, top, down = np.abs(t) < 0.5, np.maximum(x, y), np.exp(-np.abs(t))
    small = np.where(near, t, 0.0)
    far = np.where(t > 0, 1 - (1 + t) * down, down - 1 - t)
    bracket = np.where(near, np.exp(np.minimum(-t, 0.0)) * small**2 / 2 * hyp1f1(1, 3, small), far)
    # half of the exponential on each side: 0 times an overflow would be undefined
    with np.errstate(over="ignore"):
        return np.exp(top / 2) * bracket * np.exp(top / 2)


def _spectral(x: Array, function: Callable[[Array], Array]) -> Array:
    """f(X) = V f(lambda) V' of symmetric matrices."""
    values, vectors = np.linalg.eigh(x)
    return (vectors * function(values)[..., None, :]) @ vectors.mT


def _spectral_derivative(x: Array, v: Array, function: Callable, derivative: Callable) -> Array:
    """Derivative of X -> f(X) in the direction V, by divided differences in the eigenbasis of X."""
    values, vectors = np.linalg.eigh(x)
    rise = function(values)[:, None] - function(values)[None, :]
    run = values[:, None] - values[None, :]
    close = np.abs(run) < 1e-6 * (np.abs(values).max() + 1e-300)
    quotient = np.where(close, derivative((values[:, None] + values[None, :]) / 2), rise / np.where(close, 1.0, run))
    return vectors @ (quotient * (vectors.T @ v @ vectors)) @ vectors.T


# ---- the named divergences ---------------------------------------------------------------------------------


def separable(
    name: str,
    scalar: tuple[Callable, Callable, Callable],
    conjugate: tuple[Callable, Callable, Callable],
    domain: Interval,
    dual_domain: Interval,
    term: Callable[[Array, Array], Array],
) -> BregmanDivergence:
    r"""Sum over entries of a scalar divergence: :math:`\phi(x) = \sum_j\varphi(x_j)`.

    Parameters
    ----------
    scalar, conjugate : triples of callables
        :math:`\varphi, \varphi', \varphi''` and the same of :math:`\varphi^*`.
    domain, dual_domain : Interval
    term : callable
        The scalar divergence in closed form.
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
    r"""Mahalanobis divergence :math:`(x-y)^\top A\,(x-y)` of :math:`\phi(x) = x^\top A x`; A = I by default.

    Raises
    ------
    DomainError
        If A is not symmetric positive definite.
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
        return mahalanobis, (self.matrix,)


def _log_det_form(x: Array, y: Array) -> Array:
    """tr(X Y^-1) - log det(X Y^-1) - d, from the eigenvalues of L^-1 X L^-T with Y = L L'."""
    factor = np.linalg.cholesky(y)
    half = np.linalg.solve(factor, x)
    whitened = np.linalg.solve(factor, half.mT)
    return np.sum(_itakura_saito_term(np.linalg.eigvalsh((whitened + whitened.mT) / 2), 1.0), axis=-1)


def _von_neumann_form(x: Array, y: Array) -> Array:
    """sum_ij <v_i, w_j>^2 (l_i log(l_i/m_j) - l_i + m_j) over the eigenpairs (l, v) of X and (m, w) of Y."""
    values_x, vectors_x = np.linalg.eigh(x)
    values_y, vectors_y = np.linalg.eigh(y)
    overlap = (vectors_x.mT @ vectors_y) ** 2
    return np.sum(overlap * _i_term(np.maximum(values_x, 0.0)[..., :, None], values_y[..., None, :]), axis=(-2, -1))


def _log_det(x: Array) -> Array:
    return 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(x), axis1=-2, axis2=-1)), axis=-1)


def _sandwich(x: Array, v: Array) -> Array:
    """X^-1 V X^-1."""
    return np.linalg.solve(x, np.linalg.solve(x, v).mT).mT


def _inverse(x: Array) -> Array:
    return np.linalg.solve(x, np.broadcast_to(np.eye(x.shape[-1]), x.shape))


def _entropy_of_eigenvalues(x: Array) -> Array:
    values = np.maximum(np.linalg.eigvalsh(x), 0.0)
    return np.sum(xlogy(values, values) - values, axis=-1)


def _softmax_hessian(u: Array, v: Array) -> Array:
    p = softmax(u, axis=-1)
    return p * (v - np.sum(p * v, axis=-1, keepdims=True))


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
            _i_term,
        ),
        separable(
            "logistic",
            (lambda x: xlogy(x, x) + xlogy(1 - x, 1 - x), logit, lambda x: 1 / (x * (1 - x))),
            (lambda u: np.logaddexp(0, u), expit, lambda u: expit(u) * expit(-u)),
            Interval(0.0, 1.0, closed=True),
            _REAL,
            lambda x, y: _i_term(x, y) + _i_term(1 - x, 1 - y),
        ),
        separable(
            "itakura_saito",
            (lambda x: -np.log(x), lambda x: -1 / x, lambda x: 1 / x**2),
            (lambda u: -1 - np.log(-u), lambda u: -1 / u, lambda u: 1 / u**2),
            _POSITIVE,
            Interval(-np.inf, 0.0),
            _itakura_saito_term,
        ),
        separable(
            "exponential",
            (np.exp,) * 3,
            (lambda u: xlogy(u, u) - u, np.log, lambda u: 1 / u),
            _REAL,
            _HALF_LINE,
            _exponential_term,
        ),
        BregmanDivergence(
            "kl",
            Generator(lambda x: np.sum(xlogy(x, x), axis=-1), lambda x: 1 + np.log(x), lambda x, v: v / x, Simplex()),
            Generator(partial(logsumexp, axis=-1), partial(softmax, axis=-1), _softmax_hessian, _REAL),
            closed_form=lambda x, y: np.sum(_i_term(x, y), axis=-1),
            open_second=False,
        ),
        _Mahalanobis("mahalanobis", None),
        BregmanDivergence(
            "log_det",
            Generator(lambda x: -_log_det(x), lambda x: -_inverse(x), _sandwich, SymmetricMatrices(+1)),
            Generator(
                lambda u: -u.shape[-1] - _log_det(-u),
                lambda u: -_inverse(u),
                _sandwich,
                SymmetricMatrices(-1),
            ),
            closed_form=_log_det_form,
        ),
        BregmanDivergence(
            "von_neumann",
            Generator(
                _entropy_of_eigenvalues,
                lambda x: _spectral(x, np.log),
                lambda x, v: _spectral_derivative(x, v, np.log, np.reciprocal),
                SymmetricMatrices(+1, closed=True),
            ),
            Generator(
                lambda u: np.sum(np.exp(np.linalg.eigvalsh(u)), axis=-1),
                lambda u: _spectral(u, np.exp),
                lambda u, v: _spectral_derivative(u, v, np.exp, np.exp),
                SymmetricMatrices(),
            ),
            closed_form=_von_neumann_form,
        ),
    )
}


def _named(name: str) -> BregmanDivergence:
    try:
        return divergences[name]
    except KeyError:
        raise ValueError(f"no divergence is called {name!r}; there are {', '.join(divergences)}") from None


def gaussian_kl(mean_0: ArrayLike, cov_0: ArrayLike, mean_1: ArrayLike, cov_1: ArrayLike) -> Array:
    r"""Relative entropy of Gaussians, the sum of two Bregman divergences.

    .. math:: KL(N_0\|N_1) = \tfrac12 d_{-\log\det}(\Sigma_0, \Sigma_1)
        + \tfrac12(\mu_0-\mu_1)^\top\Sigma_1^{-1}(\mu_0-\mu_1)

    Parameters
    ----------
    mean_0, mean_1 : arrays of shape (..., d)
    cov_0, cov_1 : arrays of shape (..., d, d)
    """
    gap = np.asarray(mean_0, dtype=float) - np.asarray(mean_1, dtype=float)
    scatter = divergences["log_det"](cov_0, cov_1)
    standardised = np.linalg.solve(np.linalg.cholesky(np.asarray(cov_1, dtype=float)), gap[..., None])
    return 0.5 * (scatter + np.sum(standardised**2, axis=(-2, -1)))


# ---- clustering --------------------------------------------------------------------------------------------


class BregmanClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""Hard clustering by a Bregman divergence: minimises :math:`\sum_i w_i \min_k d(x_i, c_k)`.

    Lloyd's two steps hold for every divergence, because the best centre of a cluster is its mean
    (Theorem 2.3.1). Squared error gives k-means.

    Parameters
    ----------
    n_clusters : int
    divergence : str or BregmanDivergence
        A name of `divergences` or a divergence of vectors.
    n_init : int
        Restarts from k-means++ seeds, drawn in proportion to the divergence; the best is kept.
    max_iter : int
    tol : float
        Stop when an iteration lowers the loss by less than this fraction.
    random_state : int, RandomState or None

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, d)
    labels_ : array of shape (n,)
    inertia_ : float
        The loss.
    n_iter_ : int
    """

    def __init__(
        self,
        *,
        n_clusters: int = 8,
        divergence: str | BregmanDivergence = "squared",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state=None,
    ) -> None:
        self.n_clusters = n_clusters
        self.divergence = divergence
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    @property
    def _divergence(self) -> BregmanDivergence:
        return _named(self.divergence) if isinstance(self.divergence, str) else self.divergence

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> "BregmanClustering":
        """Cluster the rows of X, shape (n, d); a row counts ``sample_weight`` times."""
        X = validate_data(self, X, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        divergence = self._divergence
        divergence.domain.check(X, f"{divergence.name}: X")
        # equal rows become one of added weight: weights and repetitions then lead to the same random choices
        points, row = np.unique(X[weights > 0], axis=0, return_inverse=True)
        weights = np.bincount(row.ravel(), weights[weights > 0])
        if not 1 <= self.n_clusters <= len(row):
            raise ValueError(f"n_clusters={self.n_clusters} must lie between 1 and n_samples={len(row)}")
        rng = check_random_state(self.random_state)
        runs = [self._lloyd(points, weights, self._seeds(points, weights, rng)) for _ in range(self.n_init)]
        self.inertia_, self.cluster_centers_, self.n_iter_ = min(runs, key=lambda run: run[0])
        self.labels_ = self._losses(X).argmin(axis=1)
        return self

    def _seeds(self, X: Array, weights: Array, rng: np.random.RandomState) -> Array:
        centers = [X[rng.choice(len(X), p=weights / weights.sum())]]
        loss = self._divergence(X, centers[0])
        while len(centers) < self.n_clusters:
            chance = weights * (np.isinf(loss) if np.isinf(loss).any() else loss)
            chance = chance if chance.sum() > 0 else weights
            centers.append(X[rng.choice(len(X), p=chance / chance.sum())])
            loss = np.minimum(loss, self._divergence(X, centers[-1]))
        return np.array(centers)

    def _lloyd(self, X: Array, weights: Array, centers: Array) -> tuple[float, Array, int]:
        inertia, n_iter = np.inf, 0
        while True:
            losses = self._divergence.pairwise(X, centers)
            labels = losses.argmin(axis=1)
            nearest = weights * losses[np.arange(len(X)), labels]
            previous, inertia = inertia, float(nearest.sum())
            settled = np.isfinite(previous) and previous - inertia <= self.tol * previous
            if settled or n_iter == self.max_iter:
                return inertia, centers, n_iter
            members = weights * (labels == np.arange(self.n_clusters)[:, None])
            totals = members.sum(axis=1)
            centers = members @ X / np.where(totals > 0, totals, 1.0)[:, None]
            # an empty cluster moves to a point that is served worst
            empty = np.flatnonzero(totals == 0)
            centers[empty] = X[np.resize(np.argsort(nearest)[::-1], len(empty))]
            n_iter += 1

    def _losses(self, X: Array) -> Array:
        return self._divergence.pairwise(X, self.cluster_centers_)

    def transform(self, X: ArrayLike) -> Array:
        """Divergence of each row from each centre, shape (n, n_clusters)."""
        check_is_fitted(self)
        return self._losses(validate_data(self, X, reset=False, dtype=np.float64))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Index of the nearest centre."""
        return self.transform(X).argmin(axis=1)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the loss of X."""
        return -float(self.transform(X).min(axis=1).sum())
