"""Generative classifiers, trained to classify.

Start here. Of which kind is your table, and which model takes it?

=====================================  ==================================================================
Table                                  Model
=====================================  ==================================================================
numbers                                `LDA`, `QDA` or `GaussianNB`
categories, as text or codes           `CategoricalNB`; `TAN` where they depend on each other
zeros and ones; counts, such as words  `BernoulliNB`; `MultinomialNB`; both take sparse rows
numbers and categories                 `ProductModel`, a model for each block of columns
=====================================  ==================================================================

``RiskCalibrationCV(model)`` trains any of them to classify. This recipe takes a frame of both, with gaps, as it is:

>>> from sklearn.compose import make_column_selector
>>> from rcpkg import CategoricalNB, GaussianNB, ProductModel, RiskCalibrationCV
>>> numbers = GaussianNB(prior_strength=1.0, prior_mean="grand", prior_covariance="diagonal")
>>> categories = CategoricalNB(prior_strength=1.0)
>>> model = ProductModel(
...     [
...         ("numbers", numbers, make_column_selector(dtype_include="number")),
...         ("categories", categories, make_column_selector(dtype_exclude="number")),
...     ]
... )
>>> classifier = RiskCalibrationCV(model)  # classifier.fit(frame, labels).predict_proba(frame)

Docstrings name their sources: rc2024 and rc2025 are Pérez, Echegoyen and Santafé (2024, 2025), thesis2007 is the
dissertation of Srivastava (2007), wanbia2014 is Zaidi, Carman, Cerquides and Webb (2014).
"""

from rcpkg import bregman, explain
from rcpkg._version import __version__
from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.bregman import BregmanClustering, BregmanDivergence, functional, uniform
from rcpkg.calibration import (
    TM,
    WANBIAC,
    CalibrationTest,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    RiskCalibration,
    RiskCalibrationCV,
    SoftErrorCalibration,
    calibration_test,
    climb,
)
from rcpkg.class_prior import class_prior_of
from rcpkg.discretization import MDLDiscretizer
from rcpkg.families import (
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    ClosedFormClassifier,
    Family,
    GaussianNB,
    KDependenceBayes,
    MultinomialNB,
    ProductModel,
    SharedVarianceGaussianNB,
    Statistics,
)
from rcpkg.gaussians import PredictiveNotDefined
from rcpkg.gaussians.bayesian import BDA7, BayesianQDA, QuadraticBayes
from rcpkg.gaussians.discriminant import EDDA, RDA, NearestMeans
from rcpkg.local import SVMKNN, BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans
from rcpkg.rows import Rows

__all__ = [
    "BDA7",
    "EDDA",
    "LDA",
    "QDA",
    "RDA",
    "SVMKNN",
    "TAN",
    "TM",
    "WANBIAC",
    "BayesianQDA",
    "BernoulliNB",
    "BregmanClustering",
    "BregmanDivergence",
    "BregmanKNN",
    "CalibrationTest",
    "CategoricalNB",
    "ClosedFormClassifier",
    "ConditionalLikelihood",
    "DiscriminativeFrequencyEstimate",
    "Family",
    "GaussianNB",
    "GenerativeClassifier",
    "InvalidStatistics",
    "KDependenceBayes",
    "LocalBDA",
    "LocalLinear",
    "LocalNearestMeans",
    "MDLDiscretizer",
    "MultinomialNB",
    "NearestMeans",
    "PredictiveNotDefined",
    "ProductModel",
    "QuadraticBayes",
    "RiskCalibration",
    "RiskCalibrationCV",
    "Rows",
    "SharedVarianceGaussianNB",
    "SoftErrorCalibration",
    "Statistics",
    "__version__",
    "bregman",
    "calibration_test",
    "class_prior_of",
    "climb",
    "explain",
    "functional",
    "uniform",
]
