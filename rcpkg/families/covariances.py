"""Covariances of Gaussian classes: blocks of features that depend on each other, of each class or shared by all.

A full covariance is one block of all d features, independent features are d blocks of one. What a model stores has
the shape that a reader expects: (r, d, d) or (r, d), and no first axis where the classes share it. Here it is taken as
(…, B, s, s), B blocks of s features, so that one line of linear algebra serves all four.
"""

from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from rcpkg.base import Array
from rcpkg.families.constants import BLOCK, LEAST_DIGITS, LEAST_PRECISION, TILE, VARIANCE_ROUNDING
from rcpkg.families.family import dampened
from rcpkg.linalg import EPS, ROUNDING, cholesky, correlations, jittered_cholesky, slices


class Fault(NamedTuple):
    """Why no whitener exists: the number of the class, that of the feature, and whether it varies, but with others."""

    y: int
    feature: int
    depends: bool


@dataclass(frozen=True)
class CovarianceForm:
    """Whether all classes have ``shared`` covariances, and features are ``independent`` within the classes.

    A whitener A is the inverse of the Cholesky factor of a covariance: A(x − μ) has unit covariance.
    """

    shared: bool
    independent: bool

    # shapes ---------------------------------------------------------------------------------------------------------

    def open(self, S: Array) -> Array:
        """Covariances as (…, B, s, s)."""
        return S[..., None, None] if self.independent else S[..., None, :, :]

    def close(self, S: Array) -> Array:
        """The inverse of `open`."""
        return S[..., 0, 0] if self.independent else S[..., 0, :, :]

    def vectors(self, x: Array) -> Array:
        """Vectors (…, d) as (…, B, s)."""
        return x[..., None] if self.independent else x[..., None, :]

    def sum(self, by_class: Array) -> Array:
        """The sum over the classes where they share a covariance; else each class keeps its own."""
        return by_class.sum(axis=0) if self.shared else by_class

    def total(self, stored: Array) -> Array:
        """The sum over the classes of what `sum` gives, which where shared it is already."""
        return stored if self.shared else stored.sum(axis=0)

    def each(self, common: Array, r: int) -> Array:
        """One covariance, or whitener, for all of r classes."""
        return common if self.shared else np.repeat(common[None], r, axis=0)

    def by_class(self, stored: Array) -> Array:
        """Give a stored array a first axis for the class, which has length 1 where classes share it."""
        return stored[None] if self.shared else stored

    def index(self, features: NDArray[np.intp]) -> tuple:
        """Index of the covariances of some features."""
        return (..., features) if self.independent else (..., features[:, None], features)

    def over(self, weight: Array) -> Array:
        """Weights of moments, which may differ by independent feature, shaped to multiply or divide them."""
        return weight if self.independent else weight[..., None]

    def pseudo_rows(self, d: int) -> int:
        """Rows that make the covariance of a class interior: one more than a block has features."""
        return 1 + (1 if self.independent else d)

    def diagonal(self, S: Array) -> Array:
        """Variances, or other diagonals."""
        return S if self.independent else S.diagonal(axis1=-2, axis2=-1)

    def from_diagonal(self, variances: Array) -> Array:
        """A covariance without correlations."""
        return variances if self.independent else np.diag(variances)

    # products -------------------------------------------------------------------------------------------------------

    def outer(self, a: Array, b: Array) -> Array:
        """a_y b_yᵀ within the blocks, summed over the classes where shared."""
        a, b = self.vectors(a), self.vectors(b)
        if self.shared:
            return self.close(a.transpose(1, 2, 0) @ b.swapaxes(0, 1))
        return self.close(a[..., :, None] * b[..., None, :])

    def times(self, S: Array, a: Array) -> Array:
        """S_y a_y."""
        return (self.open(S) @ self.vectors(a)[..., None]).reshape(a.shape)

    def transformed(self, rows: Array, S: Array) -> Array:
        """S x of rows x, for one S, by one matrix product a block."""
        return (self.vectors(rows).swapaxes(0, 1) @ self.open(S).mT).swapaxes(0, 1).reshape(rows.shape)

    def precision(self, A: Array) -> Array:
        """AᵀA of whiteners."""
        return self.square(self.close(self.open(A).mT))

    def square(self, L: Array) -> Array:
        """LLᵀ."""
        return self.close(self.open(L) @ self.open(L).mT)

    def congruent(self, S: Array, M: Array) -> Array:
        """MᵀSM, for one M."""
        return self.close(self.open(M).mT @ self.open(S) @ self.open(M))

    def forms(self, X: Array, S: Array) -> Array:
        """xᵀ S_y x, shape (n, r), or (n, 1) where shared."""
        return np.stack([np.einsum("id,id->i", self.transformed(X, one.T), X) for one in self.by_class(S)], axis=1)

    def inverted(self, M: Array) -> Array:
        """M⁻¹, for one M."""
        return self.close(np.linalg.inv(self.open(M)))

    # roots, logarithms ----------------------------------------------------------------------------------------------

    def root(self, S: Array) -> Array:
        """The Cholesky factor."""
        return self.close(np.linalg.cholesky(self.open(S)))

    def log_det(self, A: Array) -> Array:
        """log |A| of whiteners."""
        return np.log(self.diagonal(A)).sum(axis=-1)

    def precision_roots(self, P: Array) -> Array | None:
        """Cholesky factors (…, B, s, s) of precisions, if all of these are positive definite beyond rounding."""
        if self.independent:  # calls of LAPACK for many single numbers take a fifth of a search
            return np.sqrt(self.open(P)) if (np.isfinite(P) & (P > 0)).all() else None
        try:
            roots = np.linalg.cholesky(self.open(P))
        except np.linalg.LinAlgError:
            return None
        pivots = roots.diagonal(axis1=-2, axis2=-1) ** 2
        return roots if (pivots > ROUNDING * self.vectors(self.diagonal(P))).all() else None

    def quadratic_forms(self, P: Array, a: Array) -> tuple[Array, Array] | None:
        """⟨a_y, P_y⁻¹ a_y⟩ and log |P_y|, if precisions are positive definite."""
        roots = self.precision_roots(P)
        if roots is None:
            return None
        a = self.vectors(a)[..., None]
        white = a / roots if self.independent else np.linalg.solve(roots, a)
        log_det = 2 * np.log(roots.diagonal(axis1=-2, axis2=-1)).sum(axis=(-2, -1))
        return (white * white).sum(axis=(-3, -2, -1)), log_det

    def inverse(self, P: Array) -> tuple[Array, Array]:
        """Covariances P⁻¹ and whiteners, with a common precision added where P are not all positive definite."""
        roots = self.precision_roots(P)
        roots = np.linalg.cholesky(self.open(self._definite(P))) if roots is None else roots
        upper = roots.mT  # P = UᵀU, so that U is a whitener
        inverse = 1 / upper if self.independent else np.linalg.inv(upper)
        return self.square(self.close(inverse)), np.ascontiguousarray(self.close(upper))

    def conditioner(self, S: Array, variance: float) -> Array:
        """T with TTᵀ = (S + ``variance`` I)⁻¹, for one S."""
        if self.independent:
            return 1 / np.sqrt(S + variance)
        identity = np.eye(len(S))
        return jittered_cholesky(S + variance * identity).whiten(identity).T

    # definite covariances -------------------------------------------------------------------------------------------

    def whitener(self, S: Array, power: Array) -> Array | Fault:
        """Whiteners, or why there are none: S is a difference of second moments ``power`` and a square, and bears
        rounding errors in proportion to the former."""
        variances = self.diagonal(S)
        low = ~(variances > VARIANCE_ROUNDING * np.abs(power))
        if low.any():
            return Fault(*map(int, np.argwhere(np.atleast_2d(low))[0, -2:]), False)
        if self.independent:
            return 1 / np.sqrt(S)
        A, scale = correlations(S)
        noise = EPS * (power / variances).max(axis=-1).ravel()
        for y, matrix in enumerate(A.reshape(-1, *S.shape[-2:])):  # correlations, overwritten by their whiteners
            root, failed = dpotrf(matrix.T, lower=0, clean=1)  # of columns, as LAPACK has them
            if not failed:
                matrix[:] = dtrtri(root)[0].T
            # ‖A‖² is the trace of the inverse correlation: about 1/λ for its least eigenvalue λ
            if failed or not np.vdot(matrix, matrix) * noise[y] < LEAST_DIGITS:
                return Fault(y, cholesky(S.reshape(-1, *S.shape[-2:])[y]).weakest, True)
        A /= scale[..., None, :]
        return A

    def constant_directions(self, S: Array, power: Array) -> tuple[Array, int]:
        """The covariance that has, in proper units, variance 1 in the directions in which S has none beyond rounding;
        and the number of these directions."""
        variances = self.diagonal(S)
        varies = variances > VARIANCE_ROUNDING * power
        units = self.vectors(np.sqrt(np.where(varies, variances, 1.0)))
        both = self.vectors(varies)[..., :, None] & self.vectors(varies)[..., None, :]
        correlation = np.where(both, self.open(S) / (units[..., :, None] * units[..., None, :]), 0.0)
        values, vectors = np.linalg.eigh(correlation)
        constant = values < VARIANCE_ROUNDING * varies.size * (power[varies] / variances[varies]).max(initial=1.0)
        vectors = vectors * units[..., :, None] * constant[..., None, :]
        return self.close(vectors @ vectors.mT), int(constant.sum())

    def dampen(self, trial: Array, old: Array) -> Array:
        """``trial`` made positive definite: its eigenvalues relative to ``old`` go through `dampened`."""
        L = np.linalg.cholesky(self.open(old))
        half = np.linalg.solve(L, self.open(trial))
        values, vectors = np.linalg.eigh(np.linalg.solve(L, half.mT))
        root = L @ (vectors * np.sqrt(dampened(values))[..., None, :])
        return self.close(root @ root.mT)

    def _definite(self, P: Array) -> Array:
        """Precisions, with a common one added where they are not all positive definite."""
        values, vectors = np.linalg.eigh(self.open(self.by_class(P)))
        common = ((vectors * np.abs(values)[..., None, :]) @ vectors.mT).mean(axis=0)
        traces = np.trace(common, axis1=-2, axis2=-1)[:, None, None]
        common = common + np.maximum(EPS * traces, np.finfo(float).tiny) * np.eye(common.shape[-1])
        factor = np.linalg.cholesky(common)
        half = np.linalg.solve(factor, self.open(P))
        lowest = np.linalg.eigvalsh(np.linalg.solve(factor, half.mT)).min()
        return P if lowest > ROUNDING else P + (LEAST_PRECISION - lowest) * self.close(common)

    # rows -----------------------------------------------------------------------------------------------------------

    def with_scatter_of(self, Z: Array, X: Array) -> Array:
        """Normal rows Z, given that their scatter is that of rows X, both with means of zero."""
        if self.independent:
            return Z * np.sqrt((X**2).sum(axis=0) / (Z**2).sum(axis=0))
        Q, R = np.linalg.qr(Z)
        return Q * np.sign(R.diagonal()) @ np.linalg.qr(X, mode="r")


shape_of = lru_cache(CovarianceForm)  # one of each kind: families ask for theirs in each line


class SecondMoments:
    """Σ_i W_iy x_i x_iᵀ of rows that are added block by block.

    A tile of its rows, up to the tile's last column, is one matrix product for all classes, as the bar for iterations
    of QDA asks for: class by class, and with both halves of what is symmetric, it takes up to 1.7 times as long. The
    sums are the same but for the order of their terms.
    """

    def __init__(self, form: CovarianceForm, r: int, d: int) -> None:
        self.form, self.shape = form, (1 if form.shared else r, d)
        self.tiles = [] if form.independent else slices(d, TILE)
        self.squares = np.zeros(self.shape)
        self.lower = [np.zeros((self.shape[0] * (tile.stop - tile.start), tile.stop)) for tile in self.tiles]

    def add(self, X: Array, W: Array) -> None:
        """Add rows, which may be overwritten."""
        W = W.sum(axis=1, keepdims=True) if self.form.shared else W
        if self.form.independent:
            self.squares += W.T @ np.multiply(X, X, out=X)
            return
        x = X.T.copy()
        for tile, total in zip(self.tiles, self.lower):
            weighted = W.T[:, None] * x[tile]
            total += weighted.reshape(len(total), -1) @ X[:, : tile.stop]

    def total(self) -> Array:
        """The sums, as a model stores them."""
        total = self.squares if self.form.independent else np.empty((*self.shape, self.shape[1]))
        for tile, lower in zip(self.tiles, self.lower):
            rows = lower.reshape(len(total), -1, tile.stop)
            total[:, : tile.stop, tile], total[:, tile, : tile.stop] = rows.mT, rows
        return total[0] if self.form.shared else total


class Distances:
    """(x − μ_y)ᵀ Σ_y⁻¹ (x − μ_y), shape (n, r), of rows; NaN where a value is missing.

    Rows (1, x) are whitened for all classes by one matrix product for each ``tile`` of features, of which A asks for no
    later ones, as the bar for iterations of QDA wants: class by class, and with the zeros of A, it takes up to 1.7
    times as long. It is the same sum of squares, whatever the order of the products. Where classes share A, distances
    differ by what is linear in x: one whitening serves them all. Independent features take a product for x and one for
    x². What no row changes is computed once, for a scorer of single rows, which takes all features for one tile.
    """

    def __init__(self, form: CovarianceForm, mean: Array, A: Array, tile: int = TILE) -> None:
        self.form, self.centre = form, mean.mean(axis=0)
        mean = mean - self.centre
        if form.independent:
            P = A * A
            self.linear, self.offset, self.square = -2 * mean * P, (mean * mean * P).sum(axis=1), form.by_class(P)
            return
        white_mean = form.times(A, mean)
        if form.shared:
            self.A, self.white_mean, self.white_square = A, white_mean, (white_mean**2).sum(axis=1)
            return
        tile = len(self.centre) if np.triu(A, 1).any() else tile  # roots of precisions are upper triangular
        A = np.concatenate([-white_mean[..., None], A], axis=2)  # of (1, x)
        tiles = [A[:, part, : part.stop + 1] for part in slices(len(self.centre), tile)]
        self.tiles = [(part.reshape(-1, part.shape[2]), (*part.shape[:2], -1)) for part in tiles]

    def __call__(self, X: Array) -> Array:
        if len(X) <= BLOCK or self.form.independent:
            return self._of_block(X)
        return np.concatenate([self._of_block(X[rows]) for rows in slices(len(X), BLOCK)])

    def _of_block(self, X: Array) -> Array:
        if not (self.form.independent or self.form.shared):
            return self._of_classes(X)
        x = X - self.centre
        if self.form.independent:
            out = x.dot(self.linear.T) + self.offset
            out += np.multiply(x, x, out=x).dot(self.square.T)
            return out
        Z = x.dot(self.A.T)
        out = self.white_square - 2 * Z.dot(self.white_mean.T)
        out += np.einsum("id,id->i", Z, Z)[:, None]
        return out

    def _of_classes(self, X: Array) -> Array:
        """Those of classes with covariances of their own."""
        x = np.ones((1 + X.shape[1], len(X)))
        np.subtract(X.T, self.centre[:, None], out=x[1:])
        white = (A.dot(x[: A.shape[1]]).reshape(shape) for A, shape in self.tiles)
        return reduce(add, [np.einsum("ydi,ydi->yi", Z, Z) for Z in white]).T
