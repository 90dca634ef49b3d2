"""Generative classifiers that are learnt to classify."""

from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.local import BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans, SVMKNN

__all__ = [
    "BregmanKNN",
    "GenerativeClassifier",
    "InvalidStatistics",
    "LocalBDA",
    "LocalLinear",
    "LocalNearestMeans",
    "SVMKNN",
    "__version__",
]
