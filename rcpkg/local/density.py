"""Predictive densities of local BDA (thesis2007 6.1) at every neighbourhood size at once."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf

from rcpkg.base import InvalidStatistics
from rcpkg.gaussians.predictive import log_bracket, log_t
from rcpkg.linalg import EPS, Array, Index
from rcpkg.local.constants import FACTOR_ROUNDING, LOST_SEED, UPDATED_NEIGHBOURS


class LostSeed(InvalidStatistics, np.linalg.LinAlgError):
    """The seed is lost in rounding beside the spread of the neighbours."""


def by_updates(K: int, d: int) -> bool:
    """Whether growing a d×d factor row by row is faster than one K×K factor, for d up to about K/25: for 569 rows of
    one feature k is chosen in half the time, of two in .8 of it."""
    return UPDATED_NEIGHBOURS * d <= K


def local_bda_log_density(Z: Array) -> Array:
    r"""Log predictive densities of local BDA for every neighbourhood size, from one factor.

    For the k nearest rows of a class, :math:`z_i = x_i - x`, :math:`D_k = I + S_k` and the seed B = I, (6.1) is

    .. math:: \log E[N](x) = {}&\log\frac{\Gamma(\frac{k+d+4}{2})}{\pi^{d/2}\,\Gamma(\frac{k+4}{2})}
        - \tfrac d2\log\tfrac{k+1}{k} - \tfrac12\log|D_k| \\
        &- \tfrac{k+d+4}{2}\log\Big[1+\tfrac k{k+1}\bar z_k^TD_k^{-1}\bar z_k\Big].

    Where d is small against K the factor of :math:`D_k` grows row by row, at about 1.5 K d² multiplications for all
    k ≤ K (`by_updates` decides). Else, with :math:`G_k = Z_k Z_k^T` and :math:`s_k = 1^T(I_k+G_k)^{-1}1`,
    :math:`|D_k| = |I_k+G_k|s_k/k` and the bracket is :math:`\frac k{k+1}(1+\frac1{s_k})`, so that all k come from the
    leading blocks of one K×K Cholesky factor, at K² d/2 + K³/6. Its error grows like the square of the distances, that
    of the updates like the distances: queries for which a bound on the first exceeds 1e-5 take the updates, in at most
    K dimensions.

    Parameters
    ----------
    Z : array of shape (..., K, d)
        Neighbours minus query, nearest first.

    Returns
    -------
    array of shape (..., K), entry k-1 for the size k

    Raises
    ------
    LostSeed
        If B = I is lost in rounding beside the spread of the neighbours, by either route.

    Examples
    --------
    >>> local_bda_log_density(np.array([[[0.1], [-0.2], [3.0]]])).round(3)
    array([[-0.525, -0.295, -1.485]])
    """
    *batch, K, d = Z.shape
    rows = Z.reshape(-1, K, d)
    squares = np.einsum("nkd,nkd->n", rows, rows)
    if by_updates(K, d):
        return _by_updates(rows, squares).reshape(*batch, K)
    density = np.empty((len(rows), K))
    sound = factor_rounding(squares, K, d) <= FACTOR_ROUNDING
    if sound.any():
        near = rows if sound.all() else rows[sound]
        bordered = np.empty((len(near), K + 1, K + 1))
        np.matmul(near, near.swapaxes(-1, -2), out=bordered[:, :K, :K])
        density[sound] = log_density_of_gram(bordered, d)
    if not sound.all():
        density[~sound] = _by_updates(rows[~sound], squares[~sound])
    return density.reshape(*batch, K)


def factor_rounding(squares: Array, K: int, d: int) -> Array:
    """Bound on the error of the log densities by the K×K factor of I + G, ``squares`` the trace of G.

    The factor is exact for a matrix at a distance of at most (K + d + 1) eps tr(I + G); the eigenvalues being at
    least 1, the relative change of s_k is at most that, and the change of the log determinant k times as large.
    """
    return (K + (d + 5) / 2) * (K + d + 1) * EPS * (K + squares)


def log_density_of_gram(bordered: Array, d: int) -> Array:
    """`local_bda_log_density` with G in the leading blocks of ``bordered`` (..., K+1, K+1), which is overwritten."""
    K = bordered.shape[-1] - 1
    sizes, diagonal = np.arange(1, K + 1), np.arange(K)
    bordered[..., diagonal, diagonal] += 1.0
    # the border of ones makes the factor's last row w = L^{-1} 1; s_K <= K, so K + 1 keeps it definite
    bordered[..., :K, K] = 1.0
    bordered[..., K, K] = K + 1.0
    for matrix in bordered.reshape(-1, K + 1, K + 1):  # numpy's batched routine copies and transposes: a third slower
        if dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)[1]:
            raise LostSeed("the seed vanishes beside the spread of the neighbours; standardise X or raise the seed")
    log_det = 2.0 * np.cumsum(np.log(bordered[..., diagonal, diagonal]), axis=-1)
    s = np.cumsum(bordered[..., :K, K] ** 2, axis=-1)
    return log_t(sizes, sizes + d + 3, d, log_det + np.log(s / sizes), np.log(sizes / (sizes + 1) * (1 + 1 / s)))


def _by_updates(Z: Array, squares: Array) -> Array:
    """Log densities (n, K) for neighbours (n, K, d) from the factor LPL' of D_k, P diagonal, grown row by row.

    Adding z to k rows of mean m gives D + k/(k+1) uu', u = z - m. Neither the scatter nor its inverse is formed, and
    nothing is subtracted from the seed, so that the error is that of rounding Z.
    """
    n, K, d = Z.shape
    if (EPS * (K + d) * np.sqrt(squares) > LOST_SEED).any():
        raise LostSeed("the seed vanishes beside the spread of the neighbours; standardise X or raise the seed")
    if d > K:  # a rotation puts the rows into K dimensions; in the others D_k is the seed
        Z = np.linalg.qr(Z.swapaxes(1, 2), mode="r").swapaxes(1, 2)
    dims = Z.shape[2]
    rows = np.ascontiguousarray(Z.transpose(1, 2, 0))  # queries last: every step is one operation on all of them
    mean, pivots, L = np.zeros((dims, n)), np.ones((dims, n)), np.zeros((dims, dims, n))
    log_det, form = np.empty((K, n)), np.empty((K, n))
    for k, z in enumerate(rows):
        change = z - mean
        mean += change / (k + 1)
        form[k] = _grow(L, pivots, np.full(n, k / (k + 1)), change, mean.copy())
        log_det[k] = np.log(pivots).sum(axis=0)
    sizes = np.arange(1, K + 1)
    return log_t(sizes, sizes + d + 3, d, log_det.T, log_bracket(sizes, form.T))


def _grow(L: Array, pivots: Array, weight: Array, u: Array, v: Array) -> Array:
    """Add ``weight`` uu' to LPL' in place (method C1 of Gill, Golub, Murray, Saunders 1974) and return v'(LPL')^-1 v.

    Columns of L are ``L[j]``, queries the last axis; u, v and ``weight`` are overwritten.
    """
    for j, (column, pivot) in enumerate(zip(L, pivots, strict=True)):
        below = column[j + 1 :]
        gain = weight * u[j]
        new_pivot = pivot + gain * u[j]
        u[j + 1 :] -= u[j] * below
        below += gain / new_pivot * u[j + 1 :]
        weight *= pivot / new_pivot
        pivots[j] = new_pivot
        v[j + 1 :] -= v[j] * below
    return (v * v / pivots).sum(axis=0)


def neighborhood_log_density(Z: Array, sizes: Sequence[int] | Index, floor: Array) -> Array:
    r"""As `local_bda_log_density`, for the seed :math:`B = \sigma_k^2I` on the neighbourhood's own scale.

    .. math:: \sigma_k^2=\frac1{kd}\sum_{i\le k}\|z_i\|^2,

    the mean squared distance of the k rows from the query, a feature, for Z (n, K, d). It moves with k, so each of the
    ``sizes`` has its own factor, and its own column of the result. ``floor`` (n,), > 0, is its least value, for
    neighbours that coincide with the query.

    >>> neighborhood_log_density(np.array([[[0.1], [-0.2], [3.0]]]), [1, 3], np.array([1e-9])).round(3)
    array([[ 0.576, -1.53 ]])
    """
    d = Z.shape[-1]
    squares = np.cumsum(np.einsum("nkd,nkd->nk", Z, Z), axis=1)
    densities = {}
    for k in np.unique(sizes):
        scale = np.maximum(squares[:, k - 1] / (k * d), floor)
        scaled = Z[:, :k] / np.sqrt(scale)[:, None, None]
        densities[k] = local_bda_log_density(scaled)[:, -1] - d / 2 * np.log(scale)
    return np.stack([densities[k] for k in sizes], axis=1)
