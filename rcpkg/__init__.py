"""Generative classifiers that are learnt to classify."""

from rcpkg import bregman, functional, uniform
from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.bregman import BregmanClustering, BregmanDivergence

__all__ = [
    "BregmanClustering",
    "BregmanDivergence",
    "GenerativeClassifier",
    "InvalidStatistics",
    "__version__",
    "bregman",
    "functional",
    "uniform",
]
