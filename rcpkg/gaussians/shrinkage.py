"""Friedman's shrinkage of the covariances."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rcpkg.gaussians.constants import SINGULAR_RATIO
from rcpkg.gaussians.scatter import ClassStatistics, gaussian_log_density
from rcpkg.linalg import Array, cholesky

#: Friedman's grid of 25 points (1989, section 5; thesis2007 section 5.5.1)
FRIEDMAN_LAMBDA = (0.0, 0.125, 0.354, 0.65, 1.0)
FRIEDMAN_GAMMA = (0.0, 0.25, 0.5, 0.75, 1.0)


def shrunken_covariances(statistics: ClassStatistics, lam: float, gamma: float) -> Array:
    r"""Friedman's :math:`\hat\Sigma_h(\lambda,\gamma)` (thesis2007 5.1, 5.2), (..., r, d, d), λ and γ in [0, 1]:

    .. math:: (1-\gamma)\hat\Sigma_h(\lambda)+\tfrac{\gamma}{d}\operatorname{tr}(\hat\Sigma_h(\lambda))I,\quad
        \hat\Sigma_h(\lambda)=\frac{(1-\lambda)S_h+\lambda S}{(1-\lambda)n_h+\lambda n},

    with S the within-class scatter of the ``statistics`` and λ = ``lam``. An empty class at λ = 0 gets zeros. Leading
    axes of the statistics are independent samples.
    """
    n_h, d = statistics.counts, statistics.means.shape[-1]
    weight = (1 - lam) * n_h + lam * n_h.sum(axis=-1, keepdims=True)
    scatter = (1 - lam) * statistics.scatters + lam * statistics.scatters.sum(axis=-3, keepdims=True)
    sigma = scatter / np.where(weight > 0, weight, 1.0)[..., None, None]
    trace = np.trace(sigma, axis1=-2, axis2=-1) / d
    return (1 - gamma) * sigma + gamma * trace[..., None, None] * np.eye(d)


def shrunken_log_density(
    X: Array,
    statistics: ClassStatistics,
    lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
    gammas: Sequence[float] = FRIEDMAN_GAMMA,
) -> Array:
    """Gaussian log densities of every class under `shrunken_covariances`, for all (lambda, gamma).

    One eigendecomposition a class and lambda: gamma acts on the eigenvalues only.

    Parameters
    ----------
    X : array of shape (..., n, d)
    statistics : ClassStatistics
        Of one sample, or of a batch of samples that are independent problems, (...).
    lambdas, gammas : sequences of float in [0, 1]

    Returns
    -------
    array of shape (len(lambdas), len(gammas), ..., n, r)
        -inf for a class that is empty, or whose covariance is singular (see `SINGULAR_RATIO`).
    """
    d = X.shape[-1]
    deviations = X[..., None, :, :] - statistics.means[..., :, None, :]  # (..., r, n, d)
    out = np.full((len(lambdas), len(gammas), *deviations.shape[:-1]), -np.inf)
    for of_lambda, lam in zip(out, lambdas):
        covariances = shrunken_covariances(statistics, lam, 0.0)
        values, axes = np.linalg.eigh(covariances)
        squares = (deviations @ axes) ** 2
        for log_density, gamma in zip(of_lambda, gammas):
            if gamma == 0:
                log_det, quadratic, exists = _regular_forms(covariances, deviations)
            else:
                shrunken = (1 - gamma) * np.maximum(values, 0.0) + gamma * values.mean(axis=-1, keepdims=True)
                exists = shrunken[..., 0] > SINGULAR_RATIO * shrunken[..., -1]
                shrunken = np.where(exists[..., None], shrunken, 1.0)
                log_det, quadratic = np.log(shrunken).sum(axis=-1), (squares @ (1 / shrunken)[..., None])[..., 0]
            exists &= statistics.counts > 0
            value = gaussian_log_density(d, log_det[..., None], quadratic)
            np.copyto(log_density, value, where=exists[..., None])
    return out.swapaxes(-2, -1)


def _regular_forms(covariances: Array, deviations: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """log|Σ| (..., r), quadratic forms (..., r, n), and whether Σ is regular, by Cholesky factors: unlike eigenvalues
    the pivots of the correlation matrix do not depend on the units."""
    log_det, exists = np.zeros(covariances.shape[:-2]), np.zeros(covariances.shape[:-2], dtype=bool)
    quadratic = np.zeros(deviations.shape[:-1])
    for place in np.ndindex(log_det.shape):
        factor = cholesky(covariances[place])
        exists[place] = factor.pivot > SINGULAR_RATIO
        if exists[place]:
            log_det[place] = factor.log_det
            quadratic[place] = (factor.whiten(deviations[place].T) ** 2).sum(axis=0)
    return log_det, quadratic, exists
