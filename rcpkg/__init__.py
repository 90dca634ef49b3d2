"""Generative classifiers that are learnt to classify."""

from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.calibration import TM, DiscriminativeFrequencyEstimate, RiskCalibration, SoftErrorCalibration
from rcpkg.conditional import ConditionalLikelihood, ProjectedGradientDescent
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
    "ConditionalLikelihood",
    "DiscriminativeFrequencyEstimate",
    "GaussianNB",
    "GenerativeClassifier",
    "InvalidStatistics",
    "MultinomialNB",
    "ProductModel",
    "ProjectedGradientDescent",
    "RiskCalibration",
    "SharedVarianceGaussianNB",
    "SoftErrorCalibration",
    "Statistics",
    "__version__",
]
