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

__all__ = [
    "LDA",
    "QDA",
    "TM",
    "BernoulliNB",
    "CategoricalNB",
    "ClosedFormClassifier",
    "DiscriminativeFrequencyEstimate",
    "GaussianNB",
    "GenerativeClassifier",
    "InvalidStatistics",
    "MultinomialNB",
    "ProductModel",
    "RiskCalibration",
    "SharedVarianceGaussianNB",
    "SoftErrorCalibration",
    "Statistics",
    "__version__",
]
