"""Friedman's shrinkage of the covariances, and its exact leave-one-out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rcpkg.gaussians.constants import LEAST_REST, NULL_PIVOT, SAFE_DOWNDATE, SINGULAR_RATIO
from rcpkg.gaussians.scatter import ClassStatistics, Sample, gaussian_log_density
from rcpkg.linalg import Array, Factor, cholesky

#: Friedman's grid of 25 points (1989, section 5; thesis2007 section 5.5.1)
FRIEDMAN_LAMBDA = (0.0, 0.125, 0.354, 0.65, 1.0)
FRIEDMAN_GAMMA = (0.0, 0.25, 0.5, 0.75, 1.0)


def shrunken_covariances(statistics: ClassStatistics, lam: float, gamma: float) -> Array:
    r"""Friedman's :math:`\hat\Sigma_h(\lambda,\gamma)` (thesis2007 5.1, 5.2), shape (r, d, d), for λ and γ in [0, 1]:

    .. math:: (1-\gamma)\hat\Sigma_h(\lambda)+\tfrac{\gamma}{d}\operatorname{tr}(\hat\Sigma_h(\lambda))I,\quad
        \hat\Sigma_h(\lambda)=\frac{(1-\lambda)S_h+\lambda S}{(1-\lambda)n_h+\lambda n},

    with S the within-class scatter of the ``statistics`` and λ = ``lam``. An empty class at λ = 0 gets zeros.
    """
    n_h, d = statistics.counts, statistics.means.shape[1]
    weight = (1 - lam) * n_h + lam * n_h.sum()
    scatter = (1 - lam) * statistics.scatters + lam * statistics.pooled
    sigma = scatter / np.where(weight > 0, weight, 1.0)[:, None, None]
    trace = np.trace(sigma, axis1=-2, axis2=-1) / d
    return (1 - gamma) * sigma + gamma * trace[:, None, None] * np.eye(d)


def shrunken_log_density(
    X: Array,
    statistics: ClassStatistics,
    lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
    gammas: Sequence[float] = FRIEDMAN_GAMMA,
    classes: Array | None = None,
) -> Array:
    """Gaussian log densities of every class under `shrunken_covariances`, for all (lambda, gamma).

    One eigendecomposition a class and lambda: gamma acts on the eigenvalues only.

    Parameters
    ----------
    X : array of shape (n, d)
    statistics : ClassStatistics
    lambdas, gammas : sequences of float in [0, 1]
    classes : array of int, optional
        Those that are asked for; all by default.

    Returns
    -------
    array of shape (len(lambdas), len(gammas), n, r)
        -inf for a class that is empty, not asked for, or whose covariance is singular (see `SINGULAR_RATIO`).
    """
    n_classes, d = statistics.means.shape
    out = np.full((len(lambdas), len(gammas), len(X), n_classes), -np.inf)
    for i, lam in enumerate(lambdas):
        covariances = shrunken_covariances(statistics, lam, 0.0)
        for h in np.flatnonzero(statistics.counts) if classes is None else classes:
            if statistics.counts[h] == 0:
                continue
            sigma = covariances[h]
            values, axes = np.linalg.eigh(sigma)
            centred = X - statistics.means[h]
            U = centred @ axes
            for j, gamma in enumerate(gammas):
                if gamma == 0:
                    factor = cholesky(sigma)
                    if factor.pivot > SINGULAR_RATIO:
                        quadratic = (factor.whiten(centred.T) ** 2).sum(axis=0)
                        out[i, j, :, h] = gaussian_log_density(d, factor.log_det, quadratic)
                    continue
                shrunken = (1 - gamma) * np.maximum(values, 0.0) + gamma * values.mean()
                if shrunken[0] > SINGULAR_RATIO * shrunken[-1]:
                    out[i, j, :, h] = gaussian_log_density(d, np.log(shrunken).sum(), U**2 @ (1 / shrunken))
    return out


def shrunken_log_density_loo(
    sample: Sample,
    lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
    gammas: Sequence[float] = FRIEDMAN_GAMMA,
    rows: Array | None = None,
) -> Array:
    r"""`shrunken_log_density`, (len(lambdas), len(gammas), n, r), of each row with the row left out of the fit: exact.

    With :math:`M=(1-\lambda)S_h+\lambda S`, leaving out :math:`x_i` subtracts :math:`\rho z_iz_i^T`,
    :math:`z_i` its deviation from the mean of its class of n rows: :math:`\rho=n/(n-1)` for its own class,
    :math:`\lambda n/(n-1)` for the others. So one eigendecomposition of M a class and lambda, and rank-one
    formulae, serve all rows and all gamma. Where the downdate is nearly singular, the class is refitted; in
    a sample with weights all are. With ``rows``, of these rows only."""
    rows = np.arange(len(sample.X)) if rows is None else rows
    counts, _, scatters = sample.statistics
    shape = len(rows), sample.n_classes
    out = np.full((len(lambdas), len(gammas), *shape), -np.inf)
    refit = np.full((len(lambdas), *shape), sample.weights is not None)
    for i, lam in enumerate(lambdas if sample.weights is None else ()):
        for h in np.flatnonzero(counts):
            M = (1 - lam) * scatters[h] + lam * sample.statistics.pooled
            values, axes = np.linalg.eigh(M)
            decomposed = _Decomposed(np.maximum(values, 0.0), axes, cholesky(M))
            for own_class in (False, True):
                places = np.flatnonzero((sample.y[rows] == h) == own_class)
                # a single row that is left of its class has no scatter of its own
                if len(places) and counts[h] - own_class > (own_class and lam == 0):
                    value, unsafe = _left_out_log_density(sample, decomposed, h, own_class, rows[places], lam, gammas)
                    out[i][:, places, h] = value
                    refit[i, places[unsafe], h] = True
    for place in np.flatnonzero(refit.any(axis=(0, 2))):
        X, statistics = sample.X[rows[place], None], sample.without(rows[place])
        for i in np.flatnonzero(refit[:, place].any(axis=1)):
            classes = np.flatnonzero(refit[i, place])
            fresh = shrunken_log_density(X, statistics, [lambdas[i]], gammas, classes)
            out[i][:, place, classes] = fresh[0, :, 0, classes].T
    return out


class _Decomposed(NamedTuple):
    """Eigenvalues (d,) and eigenvectors of a matrix, and its Cholesky factor."""

    values: Array
    axes: Array
    factor: Factor


def _left_out_log_density(
    sample: Sample, M: _Decomposed, h: int, own_class: bool, rows: Array, lam: float, gammas: Sequence[float]
) -> tuple[Array, Array]:
    """`shrunken_log_density_loo` of rows of class h (``own_class``) or of the others, under class h at one lambda, of
    shape (gammas, rows); and the rows to be refitted."""
    n, d = sample.X.shape
    count, kappa, z = sample.statistics.counts[h] - own_class, sample.kappa[rows], sample.deviations[rows]
    weight = (1 - lam) * count + lam * (n - 1)
    rho = kappa if own_class else lam * kappa
    deviation = kappa[:, None] * z if own_class else sample.X[rows] - sample.statistics.means[h]
    V, Z = deviation @ M.axes, z @ M.axes
    mean_value = (M.values.sum() - rho * (Z**2).sum(axis=1)) / d
    refit = mean_value <= LEAST_REST * M.values.mean()
    mean_value[refit] = 1.0
    out = np.full((len(gammas), len(rows)), -np.inf)
    for j, gamma in enumerate(gammas):
        if gamma == 1:
            quadratic = (deviation**2).sum(axis=1) * weight / mean_value
            out[j] = gaussian_log_density(d, d * np.log(mean_value / weight), quadratic)
            continue
        if gamma == 0:
            # what has a null direction, or too few rows for full rank, keeps it without the row
            if M.factor.pivot < NULL_PIVOT or (lam == 0 and count <= d):
                continue
            whitened = (M.factor.whiten(part.T).T for part in (deviation, z))
            log_det, quadratic, unsafe = _downdated(np.ones((1, d)), *whitened, rho, M.factor.pivot)
            log_det = log_det + M.factor.log_det
        else:
            shifted = M.values + gamma / (1 - gamma) * mean_value[:, None]
            log_det, quadratic, unsafe = _downdated(shifted, V, Z, rho, shifted[:, 0] / shifted[:, -1])
        refit |= unsafe
        log_det = log_det + d * np.log((1 - gamma) / weight)
        out[j] = gaussian_log_density(d, log_det, quadratic * weight / (1 - gamma))
    return out, refit


def _downdated(values: Array, V: Array, Z: Array, rho: Array, ratio: Array | float) -> tuple[Array, Array, Array]:
    """log|K - rho z z'|, v'(K - rho z z')^-1 v for K = diag(values) > 0, a row of V and of Z each; and
    the rows for which that matrix is too close to singular to be had by a downdate, given the smallest
    eigenvalue ratio of K."""
    inverse = 1 / values
    downdate = 1 - rho * np.einsum("nd,nd->n", Z**2, np.broadcast_to(inverse, Z.shape))
    unsafe = ratio * downdate < SAFE_DOWNDATE
    downdate[unsafe] = 1.0
    cross = np.einsum("nd,nd->n", V, Z * inverse)
    quadratic = np.einsum("nd,nd->n", V**2, np.broadcast_to(inverse, V.shape)) + rho * cross**2 / downdate
    return np.log(values).sum(axis=1) + np.log(downdate), quadratic, unsafe
