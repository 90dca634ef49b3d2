"""The public names of rcpkg, and the module of each: type checkers read this file, and so does the package itself."""

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
    Mixture,
    MultinomialNB,
    ProductModel,
    Scorer,
    SharedVarianceGaussianNB,
    Statistics,
)
from rcpkg.gaussians import PredictiveNotDefined
from rcpkg.gaussians.bayesian import BDA7, BayesianQDA, QuadraticBayes
from rcpkg.gaussians.discriminant import EDDA, RDA, NearestMeans
from rcpkg.local import SVMKNN, BregmanKNN, LocalBDA, LocalLinear, LocalNearestMeans
from rcpkg.rivals import Comparison, compare, mask_copies
from rcpkg.rows import Rows
from rcpkg.table import TableClassifier

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
    "Comparison",
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
    "Mixture",
    "MultinomialNB",
    "NearestMeans",
    "PredictiveNotDefined",
    "ProductModel",
    "QuadraticBayes",
    "RiskCalibration",
    "RiskCalibrationCV",
    "Rows",
    "Scorer",
    "SharedVarianceGaussianNB",
    "SoftErrorCalibration",
    "Statistics",
    "TableClassifier",
    "__version__",
    "bregman",
    "calibration_test",
    "class_prior_of",
    "climb",
    "compare",
    "explain",
    "functional",
    "mask_copies",
    "uniform",
]
