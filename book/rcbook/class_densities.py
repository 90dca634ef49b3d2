"""What the theorems on predictive densities of one class state beside them: leave-one-out for a fixed seed, marginal
likelihoods (thesis2007 ch. 4)."""

import numpy as np
from scipy.special import multigammaln

from rcpkg.gaussians import PredictiveNotDefined
from rcpkg.gaussians.predictive import log_t, posterior_factor
from rcpkg.gaussians.scatter import class_statistics
from rcpkg.linalg import Array


def log_predictive_loo(X: Array, *, seed: Array, dof: float, measure: str = "fisher") -> Array:
    r"""Log predictive density of each row of a class given the others, for a seed that does not depend on the data.

    Leaving :math:`x_i` out: :math:`S'=S-\kappa z_iz_i^T`, :math:`x_i-\bar x'=\kappa z_i`, with :math:`z_i=x_i-\bar
    x`, :math:`\kappa=n/(n-1)`; hence, with :math:`t_i=z_i^TD^{-1}z_i` and a for n - 1 rows, :math:`\log
    E[\mathcal N](x_i)=\text{const} -\frac12\log|D|+\frac a2\log(1-\kappa t_i)`; -inf for a single row.

    X are the rows of the class, (n, d); seed, dof, measure and errors are those of `rcpkg.gaussians.log_predictive`.
    """
    n, d = X.shape
    if n == 1:
        return np.array([-np.inf])
    statistics = class_statistics(X, np.zeros(n, dtype=int), 1)
    factor, a = posterior_factor(n, statistics.scatters[0], seed, dof, measure)
    a = a - 1
    t = (factor.whiten((X - statistics.means[0]).T) ** 2).sum(axis=0)
    downdate = 1 - n / (n - 1) * t
    if a <= d - 1 or (downdate <= 1e-12).any():
        raise PredictiveNotDefined(f"with {n - 1} rows left the density does not exist: raise dof or the seed")
    log_downdate = np.log(downdate)
    return log_t(n - 1, a, d, factor.log_det + log_downdate, -log_downdate)


def log_marginal_likelihood(count: float, scatter: Array, *, seed: Array, dof: float, measure: str = "fisher") -> float:
    r"""Log of :math:`\alpha_h=\int\!\!\int\ell(\mathcal N_h,\mathcal
    T_h)\,|\Sigma|^{-q/2}e^{-\frac12\operatorname{tr}\Sigma^{-1}B}dM` (thesis2007 A.7, A.9):

    .. math:: \alpha_h=(2\pi)^{-\frac{n_hd}2}\Bigl(\frac{2\pi}{n_h}\Bigr)^{\frac d2}\Gamma_d(\tfrac
        a2)\,\bigl|\tfrac D2\bigr|^{-\frac a2}.

    The prior of the mean is flat, so only ratios at equal d, q, B are meaningful: alpha with x over alpha without is
    the predictive at x. The parameters count, scatter, seed, dof and measure, and errors, are those of
    `rcpkg.gaussians.log_predictive`.
    """
    factor, a = posterior_factor(count, scatter, seed, dof, measure)
    d = len(scatter)
    log_det = factor.log_det - d * np.log(2)
    normal = -count * d / 2 * np.log(2 * np.pi) + d / 2 * np.log(2 * np.pi / count)
    return float(normal + multigammaln(a / 2, d) - a / 2 * log_det)
