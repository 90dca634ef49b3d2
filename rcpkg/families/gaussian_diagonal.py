"""Gaussian classes with independent features, whose variances are of each class or of all."""

from rcpkg.families.covariance import Diagonal
from rcpkg.families.gaussian import GaussianFamily


class IndependentGaussian(GaussianFamily):
    """Variances of each class."""

    _form = Diagonal(shared=False)
    _remedies = "drop constant features, the class, or use SharedVarianceGaussianNB"


class SharedVarianceGaussian(GaussianFamily):
    """One variance a feature for all classes."""

    _form = Diagonal(shared=True)
    _remedies = "drop constant features"
