"""Gaussian classes with full covariance matrices, of each class or of all."""

from collections.abc import Callable

import numpy as np

from rcpkg.base import Array
from rcpkg.families.covariance import Full
from rcpkg.families.gaussian import GaussianFamily
from rcpkg.families.gaussian_features import products
from rcpkg.families.gaussian_prior import GaussianParameters
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import EPS, slices

BLOCK_ENTRIES = 2**17  # of blocks of quadratic features, which differ in width
LARGEST_ROUNDING = 1e-9  # of a log density; beyond it the products class by class are used, which lose no digits
FUSED_CLASSES_PER_FEATURE = 0.3  # from this ratio r/d on, quadratic features beat class-by-class products


class QuadraticGaussian(GaussianFamily):
    """A covariance matrix of each class."""

    _form = Full(shared=False)
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features, the class, or use LDA"

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks; where classes are many and features few, by quadratic features.

        The d(d+1)/2 + d + 1 monomials of a block serve the densities and the statistics, in one wide matrix product
        each, at half the arithmetic of the products class by class.
        """
        r, d = parameters.mean.shape
        if r < FUSED_CLASSES_PER_FEATURE * d or self._lacks(X):
            return super().weighted_statistics(X, parameters, weigh)
        X, origin = self.encode(X), self._origin
        features = self.feature_map(X[:0], "natural")
        constant, slopes, _ = features.coefficients(self.natural_parameters(parameters))
        coefficients = np.hstack([constant[:, None], slopes])
        if self._rounding(parameters, coefficients) > LARGEST_ROUNDING:
            return super().weighted_statistics(X, parameters, weigh)
        moments = np.zeros_like(coefficients)
        size = max(64, min(1024, BLOCK_ENTRIES // coefficients.shape[1]))
        monomials = np.empty((coefficients.shape[1], size))
        for rows in slices(len(X), size):
            x = (X[rows] - origin).T.copy()
            block = monomials[:, : x.shape[1]]
            block[0], block[1 : d + 1] = 1.0, x
            products(x, block[d + 1 :])
            moments += weigh((coefficients @ block).T, rows).T @ block.T
        return features.statistics(moments[:, 0], moments[:, 1:], np.empty(0))

    def _rounding(self, parameters: GaussianParameters, coefficients: Array) -> float:
        """Rounding error of the polynomial at rows of typical size: near singularity, its terms cancel."""
        mean = parameters.mean - self._origin
        size = np.sqrt((self._form.diagonal(parameters.covariance) + mean**2).mean(axis=0))
        typical = np.ones(coefficients.shape[1])
        typical[1 : len(size) + 1] = size
        products(size[:, None], typical[len(size) + 1 :, None])
        return EPS * float((np.abs(coefficients) @ typical).max())


class LinearGaussian(GaussianFamily):
    """One covariance matrix for all classes."""

    _form = Full(shared=True)
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features"
