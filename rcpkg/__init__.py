"""Generative classifiers that are learnt to classify."""

from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.calibration import TM, DiscriminativeFrequencyEstimate, RiskCalibration, SoftErrorCalibration
from rcpkg.generative import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ClosedFormClassifier,
    GaussianNB,
    MultinomialNB,
    ProductModel,
    SharedVarianceGaussianNB,
    Statistics,
)
from rcpkg.local import SVMKNN, BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans

__all__ = [
    "LDA",
    "QDA",
    "SVMKNN",
    "TM",
    "BernoulliNB",
    "BregmanKNN",
    "CategoricalNB",
    "ClosedFormClassifier",
    "DiscriminativeFrequencyEstimate",
    "GaussianNB",
    "GenerativeClassifier",
    "InvalidStatistics",
    "LocalBDA",
    "LocalLinear",
    "LocalNearestMeans",
    "MultinomialNB",
    "ProductModel",
    "RiskCalibration",
    "SharedVarianceGaussianNB",
    "SoftErrorCalibration",
    "Statistics",
    "__version__",
]
