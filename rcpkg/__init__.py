"""Generative classifiers that are learnt to classify."""

from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics

__all__ = [
    "GenerativeClassifier",
    "InvalidStatistics",
    "__version__",
]
