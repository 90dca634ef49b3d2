"""Predictive densities of one Gaussian class, its mean and covariance integrated out; densities of all classes, also of
rows with gaps, of which each has marginals of its own kind."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from rcpkg.base import InvalidStatistics
from rcpkg.checks import check_choice
from rcpkg.gaps import GappyRows
from rcpkg.gaussians.scatter import gaussian_log_density
from rcpkg.linalg import EPS, Array, Factor, cholesky


class PredictiveNotDefined(InvalidStatistics):
    """The integral over means and covariances diverges: there is no predictive density.

    Examples
    --------
    >>> from rcpkg import BayesianQDA
    >>> BayesianQDA(dof=-2.0).fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    Traceback (most recent call last):
        ...
    rcpkg.gaussians.predictive.PredictiveNotDefined: 0 degrees of freedom: raise dof = -2 by more than 0
    """


def posterior_dof(count: Array | float, d: int, dof: Array | float, measure: str = "fisher") -> Array | float:
    """a = n + q (Fisher ``measure``) or n + q - d - 2 (Lebesgue), with n = ``count`` rows and q = ``dof``.

    >>> posterior_dof(50, d=4, dof=7), posterior_dof(50, d=4, dof=7, measure="lebesgue")
    (57, 51)
    """
    check_choice("measure", measure, ("fisher", "lebesgue"))
    return count + dof - (d + 2 if measure == "lebesgue" else 0)


def log_t(count: Array | float, a: Array | float, d: int, log_det: Array | float, log_bracket: Array) -> Array:
    r""":math:`\log\frac{\Gamma(\frac{a+1}2)}{\Gamma(\frac{a-d+1}2)}-\frac
    d2\log\frac{\pi(n+1)}n-\frac12\log|D|-\frac{a+1}2\log\bigl(1+\frac n{n+1}Q\bigr)`, thesis2007 (5.4), with the
    logarithm of the bracket given; -inf where the density does not exist for lack of degrees of freedom."""
    exists = a > d - 1
    a = np.where(exists, a, d)
    value = gammaln((a + 1) / 2) - gammaln((a - d + 1) / 2) - d / 2 * np.log(np.pi * (count + 1) / count)
    return np.where(exists, value - log_det / 2 - (a + 1) / 2 * log_bracket, -np.inf)


def log_bracket(count: Array | float, quadratic: Array) -> Array:
    """log(1 + n/(n+1) Q) from the quadratic form Q = (x - mean)' D⁻¹ (x - mean) and the ``count`` n."""
    return np.log1p(count / (count + 1) * quadratic)


def posterior_factor(
    count: float, scatter: Array, seed: Array, dof: float, measure: str = "fisher"
) -> tuple[Factor, float]:
    """Cholesky factor of S + B and a, or PredictiveNotDefined."""
    d = len(scatter)
    a = posterior_dof(count, d, dof, measure)
    if count <= 0:
        raise PredictiveNotDefined("no row of the class is left: the flat prior of the mean needs at least one")
    if a <= d - 1:
        raise PredictiveNotDefined(f"{a - d + 1:g} degrees of freedom: raise dof = {dof:g} by more than {d - 1 - a:g}")
    factor = cholesky(scatter + seed)
    if factor.pivot <= d * EPS:
        raise PredictiveNotDefined(
            f"S + B is singular (d = {d}): choose a positive definite seed on the scale of the features; the "
            f"noninformative prior needs at least {d + 1} rows in general position"
        )
    return factor, a


def log_predictive(
    X: Array, count: float, mean: Array, scatter: Array, *, seed: Array, dof: float, measure: str = "fisher"
) -> Array:
    r"""Log predictive density :math:`\log E[\mathcal N_h](x)` of a class (thesis2007 4.22, 4.24, 4.26, 4.28, 5.4, A.8).

    .. math:: &\frac{\Gamma(\frac{a+1}2)}{\Gamma(\frac{a-d+1}2)}\Bigl|\pi\tfrac{n+1}nD\Bigr|^{-\frac12} \\
        &\quad \Bigl(1+\tfrac n{n+1}(x-\bar x)^TD^{-1}(x-\bar x)\Bigr)^{-\frac{a+1}2}

    Parameters
    ----------
    X : array of shape (n, d)
    count, mean, scatter : rows of the class, their mean (d,) and scatter matrix (d, d)
    seed, dof, measure
        B, (d, d), q and "fisher" or "lebesgue"; zeros with q = d + 1 are the noninformative prior.

    Raises
    ------
    PredictiveNotDefined
        Without a row, without degrees of freedom, or with S + B singular.

    Examples
    --------
    >>> X, mean, one = np.array([[0.0], [3.0]]), np.array([0.0]), np.array([[1.0]])
    >>> np.exp(log_predictive(X, 4, mean, 3 * one, seed=one, dof=3)).round(3)
    array([0.456, 0.007])
    """
    factor, a = posterior_factor(count, scatter, seed, dof, measure)
    quadratic = (factor.whiten((X - mean).T) ** 2).sum(axis=0)
    return log_t(count, a, len(scatter), factor.log_det, log_bracket(count, quadratic))


class Gaussians(NamedTuple):
    """Gaussians N(μ_h, Σ_h): means (r, d) and scales Σ_h, positive definite, (r, d, d) or, of all classes, (d, d)."""

    means: Array
    scales: Array

    def log_density(self, X: Array) -> Array:
        """log p(x | h) of what each row has, shape (n, r): the marginals are Gaussians of sub-blocks."""
        rows = GappyRows(X)
        squares, log_det = rows.marginals_of_classes(self.means, self.scales)
        return gaussian_log_density(rows.n_seen[:, None], log_det, squares)


class StudentTs(NamedTuple):
    """Predictive t densities: rows (r,) and means (r, d) of the classes, scales D = S + B (r, d, d), and a (r,)."""

    counts: Array
    means: Array
    scales: Array
    a: Array

    def log_density(self, X: Array) -> Array:
        """log p(x | h) of what each row has, shape (n, r): the marginals have the sub-blocks of D and as many degrees
        of freedom a − d + 1."""
        rows = GappyRows(X)
        squares, log_det = rows.marginals_of_classes(self.means, self.scales)
        seen = rows.n_seen[:, None]
        a = self.a - X.shape[1] + seen
        return log_t(self.counts, a, seen, log_det, log_bracket(self.counts, squares))
