"""Generative classifiers, trained to classify: scikit-learn's interface, a joint model p(x, y) inside.

Start here
----------
A raw table, its columns numbers and categories, values missing or not::

    from rcpkg import TableClassifier, compare
    model = TableClassifier().fit(X, y)   # chooses a model by cross-validation: model.report_, model.advice_
    print(compare(X, y))                  # beside logistic regression and boosting: use it, tie, or take another

==========================================  ====================================================================
kind of table                               model
==========================================  ====================================================================
any, no time to choose                      TableClassifier()
numbers                                     RiskCalibrationCV(QDA()); LDA() for few rows, GaussianNB() for many features
categories                                  RiskCalibrationCV(CategoricalNB(prior_strength=1.0)); TAN() if they depend
numbers and categories                      RiskCalibrationCV(ProductModel([(name, model, columns), …]))
counts of words, sparse rows                RiskCalibrationCV(MultinomialNB(prior_strength=1.0))
clouds of several clumps a class            Mixture(QDA())
few rows, numbers                           BDA7(), LDA(), RDA()
boundaries that bend from place to place    LocalBDA(n_neighbors="cv")
more rows than memory holds                 RiskCalibration(model).fit(Rows.from_parquet(file, label=column))
a stream                                    model.partial_fit, of a closed form or of RiskCalibration
==========================================  ====================================================================

Rows to predict may have missing values: each joint model sums them out. `class_prior_of` estimates new class weights,
`explain.contributions` gives reasons, `calibration_test` tells whether calibration has anything to gain.

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
