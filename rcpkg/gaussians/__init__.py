r"""Gaussian classes: their scatter, covariance estimates and predictive densities, and the classifiers made of them.

Notation: n_h rows of class h with the mean :math:`\bar x_h` and the scatter matrix S_h, d features, r classes.

Predictive densities are Gaussian ones with the parameters integrated out. Their prior is
:math:`p(\mathcal N_h)\propto|\Sigma_h|^{-q/2}\exp(-\tfrac12\operatorname{tr}\Sigma_h^{-1}B_h)`
(thesis2007 4.20) relative to :math:`|\Sigma|^{-(d+2)/2}d\mu\,d\Sigma` (measure "fisher", 4.16) or to
:math:`d\mu\,d\Sigma` ("lebesgue"). With

.. math:: a &= n_h + q \text{ (fisher)}, \\ a &= n_h + q - d - 2 \text{ (lebesgue)}, \\ D_h &= S_h + B_h,

the predictive is a multivariate t with :math:`\nu=a-d+1` degrees of freedom, location :math:`\bar x_h`, scale
:math:`\frac{n_h+1}{n_h\nu}D_h`. It exists if and only if :math:`n_h\ge1`, :math:`\nu>0` and :math:`D_h` is
positive definite. The noninformative prior (4.25) is :math:`B_h=0, q=d+1`.
"""

from rcpkg.gaussians.bayesian import BDA7, BayesianQDA, QuadraticBayes
from rcpkg.gaussians.discriminant import EDDA, FRIEDMAN_GAMMA, FRIEDMAN_LAMBDA, RDA, NearestMeans, shrunken_covariances
from rcpkg.gaussians.edda import EDDA_MODELS, edda_covariances
from rcpkg.gaussians.grid import BDA7_SEEDS, Seed, grid_log_predictive, seed_matrix
from rcpkg.gaussians.leave_one_out import grid_log_predictive_loo
from rcpkg.gaussians.predictive import PredictiveNotDefined, log_predictive, posterior_dof
from rcpkg.gaussians.scatter import ClassStatistics, Sample, class_statistics, log_normal

__all__ = [
    "BDA7",
    "BDA7_SEEDS",
    "EDDA",
    "EDDA_MODELS",
    "FRIEDMAN_GAMMA",
    "FRIEDMAN_LAMBDA",
    "RDA",
    "BayesianQDA",
    "ClassStatistics",
    "NearestMeans",
    "PredictiveNotDefined",
    "QuadraticBayes",
    "Sample",
    "Seed",
    "class_statistics",
    "edda_covariances",
    "grid_log_predictive",
    "grid_log_predictive_loo",
    "log_normal",
    "log_predictive",
    "posterior_dof",
    "seed_matrix",
    "shrunken_covariances",
]
