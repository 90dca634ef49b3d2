r"""Closed-form generative classifiers, a = θ∘s: additive statistics s, then a parameter map θ (rc2025 §3).

A `Family` is three functions of arrays, ``statistics``, ``parameters`` and ``log_joint``. Exponential families also
give natural parameters η, mean parameters μ = E[s(x, y)] and the log-partition ψ, ∇ψ(η) = μ. Statistics, η and μ have
one and the same structure. `ClosedFormClassifier` is the scikit-learn classifier that has a family.
"""

from rcpkg.capabilities import Unsupported, can, require
from rcpkg.families.binary import BernoulliNB
from rcpkg.families.classifier import ClosedFormClassifier, ConjugateClassifier
from rcpkg.families.count_model import CategoricalParameters
from rcpkg.families.family import Family, dampened, safe_class_counts, safe_counts
from rcpkg.families.features import FeatureMap
from rcpkg.families.gaussian_classifiers import LDA, QDA, GaussianNB, SharedVarianceGaussianNB
from rcpkg.families.gaussian_prior import GaussianParameters
from rcpkg.families.hooks import Hooks
from rcpkg.families.mixture import Mixture
from rcpkg.families.multinomial import MultinomialNB
from rcpkg.families.networks import TAN, CategoricalNB, KDependenceBayes
from rcpkg.families.product import ProductModel, ProductParameters
from rcpkg.families.scorer import Scorer
from rcpkg.families.statistics import Statistics, class_counts
from rcpkg.linalg import one_hot

__all__ = [
    "LDA",
    "QDA",
    "TAN",
    "BernoulliNB",
    "CategoricalNB",
    "CategoricalParameters",
    "ClosedFormClassifier",
    "ConjugateClassifier",
    "Family",
    "FeatureMap",
    "GaussianNB",
    "GaussianParameters",
    "Hooks",
    "KDependenceBayes",
    "Mixture",
    "MultinomialNB",
    "ProductModel",
    "ProductParameters",
    "Scorer",
    "SharedVarianceGaussianNB",
    "Statistics",
    "Unsupported",
    "can",
    "class_counts",
    "dampened",
    "one_hot",
    "require",
    "safe_class_counts",
    "safe_counts",
]
