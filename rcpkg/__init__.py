"""Generative classifiers that are learnt to classify."""

from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.local import SVMKNN, BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans

__all__ = [
    "SVMKNN",
    "BregmanKNN",
    "GenerativeClassifier",
    "InvalidStatistics",
    "LocalBDA",
    "LocalLinear",
    "LocalNearestMeans",
    "__version__",
]
