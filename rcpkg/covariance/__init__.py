"""Scatter matrices and the covariance estimates made of them: Friedman's shrinkage and the fourteen
eigen-constrained models.

Notation: n_h rows of class h, W_h its scatter matrix (S_h in the sources), W = sum_h W_h, N = sum_h n_h, r
classes.
"""

from rcpkg.covariance.edda import EDDA_ITERATIVE, EDDA_MODELS, VANISHING_VOLUME, edda_covariances
from rcpkg.covariance.shrinkage import (
    FRIEDMAN_GAMMA,
    FRIEDMAN_LAMBDA,
    SAFE_DOWNDATE,
    SINGULAR_RATIO,
    shrunken_covariances,
    shrunken_log_density,
    shrunken_log_density_loo,
)
from rcpkg.covariance.statistics import (
    ClassStatistics,
    LeftOut,
    class_statistics,
    dominates,
    is_definite,
    leave_one_out_statistics,
    left_out,
    log_normal,
    reduced_weights,
    scaled_cholesky,
    without_row,
)

__all__ = [
    "EDDA_ITERATIVE",
    "EDDA_MODELS",
    "FRIEDMAN_GAMMA",
    "FRIEDMAN_LAMBDA",
    "SAFE_DOWNDATE",
    "SINGULAR_RATIO",
    "VANISHING_VOLUME",
    "ClassStatistics",
    "LeftOut",
    "class_statistics",
    "dominates",
    "edda_covariances",
    "is_definite",
    "leave_one_out_statistics",
    "left_out",
    "log_normal",
    "reduced_weights",
    "scaled_cholesky",
    "shrunken_covariances",
    "shrunken_log_density",
    "shrunken_log_density_loo",
    "without_row",
]
