"""Classifiers of a neighbourhood (thesis2007 ch. 3 and 6).

Local BDA at every neighbourhood size at once, local nearest means, local linear regression, SVM-KNN, and
nearest neighbours smoothed for the least Bregman risk. Below the estimators stand pure functions of arrays; the
estimators find the neighbours, call them, and choose k by leave-one-out.
"""

from rcpkg.local.base import GRID, least_cost
from rcpkg.local.classifiers import (
    SVMKNN,
    WEIGHTS,
    BregmanKNN,
    LocalLinear,
    LocalNearestMeans,
    linear_weights,
    local_mean_squared_distance,
    neighbor_weights,
    smoothed_probabilities,
)
from rcpkg.local.density import local_bda_log_density, neighborhood_log_density
from rcpkg.local.local_bda import LocalBDA

__all__ = [
    "GRID",
    "SVMKNN",
    "WEIGHTS",
    "BregmanKNN",
    "LocalBDA",
    "LocalLinear",
    "LocalNearestMeans",
    "least_cost",
    "linear_weights",
    "local_bda_log_density",
    "local_mean_squared_distance",
    "neighbor_weights",
    "neighborhood_log_density",
    "smoothed_probabilities",
]
