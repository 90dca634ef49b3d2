r"""Predictive densities of Gaussian classes with the parameters integrated out, and their exact
leave-one-out.

Prior :math:`p(\mathcal N_h)\propto|\Sigma_h|^{-q/2}\exp(-\tfrac12\operatorname{tr}\Sigma_h^{-1}B_h)`
(thesis2007 4.20) relative to :math:`|\Sigma|^{-(d+2)/2}d\mu\,d\Sigma` (measure "fisher", 4.16) or to
:math:`d\mu\,d\Sigma` ("lebesgue"). With

.. math:: a = n_h + q \text{ (fisher)}, \qquad a = n_h + q - d - 2 \text{ (lebesgue)}, \qquad D_h = S_h + B_h,

the predictive is a multivariate t with :math:`\nu=a-d+1` degrees of freedom, location :math:`\bar x_h`, scale
:math:`\frac{n_h+1}{n_h\nu}D_h`. It exists if and only if :math:`n_h\ge1`, :math:`\nu>0` and :math:`D_h` is
positive definite. The noninformative prior (4.25) is :math:`B_h=0, q=d+1`.
"""

from rcpkg.predictive.density import (
    PredictiveNotDefined,
    log_marginal_likelihood,
    log_predictive,
    log_predictive_loo,
    posterior_dof,
)
from rcpkg.predictive.grid import BDA7_SEEDS, Seed, grid_log_predictive, seed_matrix
from rcpkg.predictive.leave_one_out import LooErrors, grid_log_predictive_loo, grid_loo_errors

__all__ = [
    "BDA7_SEEDS",
    "LooErrors",
    "PredictiveNotDefined",
    "Seed",
    "grid_log_predictive",
    "grid_log_predictive_loo",
    "grid_loo_errors",
    "log_marginal_likelihood",
    "log_predictive",
    "log_predictive_loo",
    "posterior_dof",
    "seed_matrix",
]
