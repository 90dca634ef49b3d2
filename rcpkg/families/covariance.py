"""Covariances of Gaussian classes, full or diagonal, of each class or shared by all: what models do with them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from rcpkg.base import Array
from rcpkg.families.family import dampened
from rcpkg.gaps import GappyRows
from rcpkg.linalg import EPS, cholesky, correlations, slices

ROUNDING = 100 * EPS  # a variance is positive if it exceeds this share of the second moment beneath it
INDEFINITE = 1e-12  # least eigenvalue of a precision, relative to the mean size of all, that counts as positive
LEAST_PRECISION = 0.1  # what it is raised to if it does not
BLOCK = 256  # rows a block: the intermediate products of a block stay in cache
CACHED = 2**17  # numbers in a block of many rows
MANY = 2**15  # rows from which it pays to go through them in such blocks, and to take those of each class apart


class Fault(NamedTuple):
    """Why no whitener exists: the number of the class, that of the feature, and whether it varies, but with others."""

    y: int
    feature: int
    depends: bool


@dataclass(frozen=True)
class Form:
    """The form of the covariances Σ_y: of shape (r, …) or, if ``shared`` by the classes, that of one of them.

    Moments and precisions have this form, too. A whitener A is the inverse of a Cholesky factor, or 1/σ: A(x − μ) has
    unit covariance. A weight of a class may differ from feature to feature where features are independent.
    """

    shared: bool

    def sum(self, by_class: Array) -> Array:
        """What the form holds of something of each class: the sum where shared."""
        return by_class.sum(axis=0) if self.shared else by_class

    def total(self, held: Array) -> Array:
        """The sum over the classes of what `sum` gives, which where shared it is already."""
        return held if self.shared else held.sum(axis=0)

    def each(self, common: Array, r: int) -> Array:
        """One covariance, or whitener, for all of r classes."""
        return common if self.shared else np.tile(common, (r, *[1] * common.ndim))

    def by_class(self, held: Array) -> Array:
        """With a first axis for the class, of length 1 where shared."""
        return held[None] if self.shared else held

    def log_det(self, A: Array) -> Array:
        """log |A| of whiteners."""
        return np.log(self.diagonal(A)).sum(axis=-1)

    def diagonal(self, S: Array) -> Array:
        """Variances, or other diagonals."""
        raise NotImplementedError

    def not_varying(self, S: Array, power: Array) -> Fault | None:
        """The first variance that is not positive beyond the rounding of second moments ``power``."""
        low = ~(self.diagonal(S) > ROUNDING * np.abs(power))
        return Fault(*map(int, np.argwhere(np.atleast_2d(low))[0]), False) if low.any() else None


class Full(Form):
    """Covariance matrices (r, d, d), or (d, d) where shared."""

    full = True
    block_of_rows = BLOCK

    def pseudo_rows(self, d: int) -> int:
        """Rows that make the covariance of a class interior."""
        return d + 1

    def diagonal(self, S: Array) -> Array:
        return S.diagonal(axis1=-2, axis2=-1)

    def from_diagonal(self, variances: Array) -> Array:
        """A covariance without correlations."""
        return np.diag(variances)

    def block(self, index: NDArray[np.intp]) -> tuple:
        """Index of the covariances of some features."""
        return ..., index[:, None], index

    def over(self, weight: Array) -> Array:
        """Weights of moments, shaped to multiply or divide them."""
        return weight[..., None]

    def outer(self, a: Array, b: Array) -> Array:
        """a_y b_yᵀ, summed over the classes where shared."""
        return a.T @ b if self.shared else a[:, :, None] * b[:, None, :]

    def times(self, S: Array, a: Array) -> Array:
        """S_y a_y."""
        return a @ S.T if self.shared else (S @ a[:, :, None])[:, :, 0]

    def transformed(self, rows: Array, S: Array) -> Array:
        """S x of rows x, for one S."""
        return rows @ S.T

    def with_scatter_of(self, Z: Array, X: Array) -> Array:
        """Normal rows Z, given that their scatter is that of rows X, both with means of zero."""
        Q, R = np.linalg.qr(Z)
        return Q * np.sign(R.diagonal()) @ np.linalg.qr(X, mode="r")

    def precision(self, A: Array) -> Array:
        """AᵀA of whiteners."""
        return A.swapaxes(-1, -2) @ A

    def square(self, L: Array) -> Array:
        """LLᵀ."""
        return L @ L.swapaxes(-1, -2)

    def congruent(self, S: Array, M: Array) -> Array:
        """MᵀSM, for one M."""
        return M.T @ S @ M

    def inverted(self, M: Array) -> Array:
        """M⁻¹, for one M."""
        return np.linalg.solve(M, np.eye(len(M)))

    def exp_diagonal(self, z: Array) -> Array:
        """Lower triangles of z, with exp taken of the diagonal."""
        return np.tril(z, -1) + np.exp(self.diagonal(z))[..., None] * np.eye(z.shape[-1])

    def log_root(self, S: Array) -> Array:
        """The z of which `exp_diagonal` gives the Cholesky factor of S."""
        L = np.linalg.cholesky(S)
        return np.tril(L, -1) + np.log(self.diagonal(L))[..., None] * np.eye(L.shape[-1])

    def lower_gradient(self, S: Array, L: Array) -> Array:
        """Half the gradient of tr(SLLᵀ) in the z of L, as `exp_diagonal` has it."""
        G = np.tril(S @ L)
        return np.tril(G, -1) + (self.diagonal(G) * self.diagonal(L))[..., None] * np.eye(L.shape[-1])

    def solve(self, P: Array, a: Array) -> Array:
        """P_y⁻¹ a_y."""
        return np.linalg.solve(P, a[:, :, None])[:, :, 0]

    def log_det_of(self, P: Array) -> Array:
        """log |P| of precisions."""
        return np.linalg.slogdet(P)[1]

    def inverse(self, P: Array) -> tuple[Array, Array]:
        """Covariances P⁻¹, and whiteners."""
        A, root = np.empty((2, *P.shape))  # in C order, as a saved one is read
        for of_class, whitener, inverse in zip(*map(self.by_class, (P, A, root))):
            whitener[:], failed = dpotrf(of_class, lower=0, clean=1)
            if failed:
                raise np.linalg.LinAlgError("a precision is not positive definite")
            inverse[:] = dtrtri(whitener)[0]
        return self.square(root), A

    def root(self, S: Array) -> Array:
        """A matrix whose square is the covariance: that of `transformed` white noise."""
        return np.linalg.cholesky(S)

    def forms(self, X: Array, S: Array) -> Array:
        """xᵀ S_y x, shape (n, r), or (n, 1) where shared."""
        return np.stack([np.einsum("id,id->i", X @ one, X) for one in self.by_class(S)], axis=1)

    def rows_at_once(self, W: Array, d: int) -> int:
        """How many rows `add_moments` takes: more than `BLOCK` of labels, where each counts in one class at most."""
        labels = not self.shared and len(W) >= MANY and np.count_nonzero(W) <= len(W)
        return max(BLOCK, CACHED // max(d, 1)) if labels else BLOCK

    def add_moments(self, total: Array, X: Array, W: Array) -> None:
        """Add Σ_i W_iy x_i x_iᵀ of rows that may be overwritten."""
        if len(X) <= BLOCK:
            for of_class, w in zip(total, W.T):
                of_class += (X * w[:, None]).T @ X
            return
        columns = np.ascontiguousarray(X.T)
        for of_class, w in zip(total, W.T):
            counts = w != 0
            x = columns.compress(counts, axis=1)
            of_class += (x * w.compress(counts)) @ x.T

    def whitener(self, S: Array, power: Array) -> Array | Fault:
        """Whiteners, or why there are none: S is a difference of second moments ``power`` and a square, and bears
        rounding errors in proportion to the former."""
        fault = self.not_varying(S, power)
        if fault:
            return fault
        d = S.shape[-1]
        A, scale = correlations(S)
        noise = EPS * (power / scale**2).max(axis=-1).ravel()
        for y, matrix in enumerate(A.reshape(-1, d, d)):  # correlations, overwritten by their whiteners
            root, failed = dpotrf(matrix.T, lower=0, clean=1)  # of columns, as LAPACK has them
            if not failed:
                matrix[:] = dtrtri(root)[0].T
            # ‖A‖² is the trace of the inverse correlation: about 1/λ for its least eigenvalue λ
            if failed or not np.vdot(matrix, matrix) * noise[y] < 0.01:
                return Fault(y, cholesky(S.reshape(-1, d, d)[y]).weakest, True)
        A /= scale[..., None, :]
        return A

    def distances(self, X: Array, mean: Array, A: Array) -> Array:
        """(x − μ_y)ᵀ Σ_y⁻¹ (x − μ_y), shape (n, r), by one matrix product a block of rows."""
        r, d = mean.shape
        centre = mean.mean(axis=0)
        white_mean = self.times(A, mean - centre)
        out = np.empty((len(X), r))
        for rows in slices(len(X), BLOCK):
            x = X[rows] - centre
            if self.shared:  # one whitening for all classes, whose distances differ by what is linear in x
                Z = x @ A.T
                out[rows] = (white_mean**2).sum(axis=1) - 2 * (Z @ white_mean.T)
                out[rows] += np.einsum("id,id->i", Z, Z)[:, None]
            else:
                Z = x @ A.reshape(r * d, d).T
                Z -= white_mean.ravel()
                Z = Z.reshape(-1, r, d)
                out[rows] = np.einsum("iyd,iyd->iy", Z, Z)
        return out

    def marginals(self, X: Array, mean: Array, S: Array, A: Array) -> tuple[Array, Array]:
        """The same of what rows with gaps have, (n, r), and the log determinants of its covariances."""
        rows = GappyRows(X)
        if self.shared:
            squares, log_det = rows.marginals(mean, S)
            return squares, log_det[:, None]
        return rows.marginals_of_classes(mean, S)

    def expected(self, X: Array, weights: Array, mean: Array, S: Array) -> Array:
        """Σ_y W_iy E[x_i | what row i has, y], for weights that sum to one."""
        return GappyRows(X).expected(weights, mean, np.broadcast_to(S, (len(mean), *S.shape[-2:])))

    def completed_moments(
        self, X: Array, weights: Array, mean: Array, S: Array, origin: Array | float
    ) -> tuple[Array, Array]:
        """Σ_i W_iy E[x_i − o | what row i has, y] and Σ_i W_iy E[(x_i − o) ⊗ (x_i − o) | …], class by class."""
        first, second = np.zeros_like(mean), np.zeros((len(mean), X.shape[1], X.shape[1]))
        S = np.broadcast_to(S, second.shape)
        for y, w in enumerate(weights.T):
            counts = np.flatnonzero(w)
            rows, spread = GappyRows(X[counts]).completed(mean[y], S[y], w[counts])
            rows -= origin
            first[y] = w[counts] @ rows
            second[y] = (rows * w[counts, None]).T @ rows + spread
        return first, second

    def _scaled(self, S: Array, power: Array) -> tuple[Array, Array, float]:
        """Correlations, zero of features without variance; scales; the eigenvalue below which there is but rounding."""
        variances = self.diagonal(S)
        varies = variances > ROUNDING * power
        scale = np.sqrt(np.where(varies, variances, 1.0))
        noise = EPS * (power[varies] / variances[varies]).max(initial=1.0)
        correlation = np.where(varies[:, None] & varies, S / (scale[:, None] * scale), 0.0)
        return correlation, scale, 100 * len(scale) * noise

    def n_constant(self, S: Array, power: Array) -> int:
        """Number of the directions in which S has no variance."""
        correlation, _, noise = self._scaled(S, power)
        return int((np.linalg.eigvalsh(correlation) < noise).sum())

    def constant_directions(self, S: Array, power: Array) -> Array:
        """A covariance, with variances 1 in proper units, of these directions."""
        correlation, scale, noise = self._scaled(S, power)
        values, vectors = np.linalg.eigh(correlation)
        vectors = vectors[:, values < noise] * scale[:, None]
        return vectors @ vectors.T

    def dampen(self, trial: Array, old: Array) -> Array:
        """``trial`` made positive definite: its eigenvalues relative to ``old`` go through `dampened`."""
        L = np.linalg.cholesky(old)
        half = np.linalg.solve(L, trial)
        values, vectors = np.linalg.eigh(np.linalg.solve(L, half.swapaxes(-1, -2)))
        root = L @ (vectors * np.sqrt(dampened(values))[..., None, :])
        return self.square(root)

    def definite(self, P: Array) -> Array:
        """Precisions, with a common one added where they are not all positive definite."""
        size = np.abs(self.diagonal(self.by_class(P))).mean(axis=0)
        unit = 1 / np.sqrt(np.where(size > 0, size, 1.0))
        values = np.linalg.eigvalsh(P * unit * unit[:, None])
        if values.min() > 2 * INDEFINITE * values.max():  # the mean of all is at most the largest
            return P
        values, vectors = np.linalg.eigh(self.by_class(P))
        common = ((vectors * np.abs(values)[:, None, :]) @ vectors.swapaxes(-1, -2)).mean(axis=0)
        common += max(EPS * np.trace(common), np.finfo(float).tiny) * np.eye(len(common))
        factor = np.linalg.cholesky(common)
        half = np.linalg.solve(factor, P)
        lowest = np.linalg.eigvalsh(np.linalg.solve(factor, half.swapaxes(-1, -2))).min()
        return P if lowest > INDEFINITE else P + (LEAST_PRECISION - lowest) * common


class Diagonal(Form):
    """Variances (r, d), or (d,) where shared, of independent features."""

    full = False
    block_of_rows = 2**16

    def pseudo_rows(self, d: int) -> int:
        return 2

    def diagonal(self, S: Array) -> Array:
        return S

    def from_diagonal(self, variances: Array) -> Array:
        return variances

    def block(self, index: NDArray[np.intp]) -> tuple:
        return ..., index

    def over(self, weight: Array) -> Array:
        return weight

    def outer(self, a: Array, b: Array) -> Array:
        return self.sum(a * b)

    def times(self, S: Array, a: Array) -> Array:
        return S * a

    def transformed(self, rows: Array, S: Array) -> Array:
        return rows * S

    def with_scatter_of(self, Z: Array, X: Array) -> Array:
        return Z * np.sqrt((X**2).sum(axis=0) / (Z**2).sum(axis=0))

    def precision(self, A: Array) -> Array:
        return A * A

    def square(self, L: Array) -> Array:
        return L * L

    def congruent(self, S: Array, M: Array) -> Array:
        return S * M * M

    def inverted(self, M: Array) -> Array:
        return 1 / M

    def exp_diagonal(self, z: Array) -> Array:
        return np.exp(z)

    def log_root(self, S: Array) -> Array:
        return 0.5 * np.log(S)

    def lower_gradient(self, S: Array, L: Array) -> Array:
        return S * L * L

    def solve(self, P: Array, a: Array) -> Array:
        return a / P

    def log_det_of(self, P: Array) -> Array:
        return np.log(P).sum(axis=-1)

    def inverse(self, P: Array) -> tuple[Array, Array]:
        return 1 / P, np.sqrt(P)

    def root(self, S: Array) -> Array:
        return np.sqrt(S)

    def forms(self, X: Array, S: Array) -> Array:
        return (X * X) @ self.by_class(S).T

    def rows_at_once(self, W: Array, d: int) -> int:
        return max(BLOCK, CACHED // max(d, 1)) if len(W) >= MANY else self.block_of_rows

    def add_moments(self, total: Array, X: Array, W: Array) -> None:
        np.multiply(X, X, out=X)
        total += W.T @ X

    def whitener(self, S: Array, power: Array) -> Array | Fault:
        return self.not_varying(S, power) or 1 / np.sqrt(S)

    def distances(self, X: Array, mean: Array, A: Array) -> Array:
        """Σ_j (x_j − μ_yj)² / σ²_yj, by one matrix product for x and one for x²."""
        centre = mean.mean(axis=0)
        X, mean, P = X - centre, mean - centre, A * A
        out = X @ (-2 * mean * P).T
        out += (mean * mean * P).sum(axis=1)
        np.multiply(X, X, out=X)
        out += X @ self.by_class(P).T
        return out

    def marginals(self, X: Array, mean: Array, S: Array, A: Array) -> tuple[Array, Array]:
        centre = mean.mean(axis=0)
        seen, P, mean = ~np.isnan(X), A * A, mean - centre
        X = np.where(seen, X - centre, 0.0)
        squares = seen @ (mean * mean * P).T - 2 * X @ (mean * P).T + (X * X) @ self.by_class(P).T
        return squares, -2 * (seen @ np.log(self.by_class(A)).T)

    def expected(self, X: Array, weights: Array, mean: Array, S: Array) -> Array:
        return np.where(np.isnan(X), weights @ mean, X)

    def completed_moments(
        self, X: Array, weights: Array, mean: Array, S: Array, origin: Array | float
    ) -> tuple[Array, Array]:
        missing, mean = np.isnan(X), mean - origin
        X = np.where(missing, 0.0, X - origin)
        hidden = weights.T @ missing
        return weights.T @ X + hidden * mean, weights.T @ (X * X) + hidden * (mean * mean + S)

    def n_constant(self, S: Array, power: Array) -> int:
        return int(self.constant_directions(S, power).sum())

    def constant_directions(self, S: Array, power: Array) -> Array:
        return (~(self.diagonal(S) > ROUNDING * power)).astype(float)

    def dampen(self, trial: Array, old: Array) -> Array:
        return old * dampened(trial / old)

    def definite(self, P: Array) -> Array:
        common = np.maximum(np.abs(self.by_class(P)).mean(axis=0), np.finfo(float).tiny)
        lowest = (P / common).min()
        return P if lowest > INDEFINITE else P + (LEAST_PRECISION - lowest) * common
