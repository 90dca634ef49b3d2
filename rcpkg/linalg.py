"""Positive definite matrices, factored through their correlation matrices: the scale of a feature costs no digits."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

Array = NDArray[np.float64]
Index = NDArray[np.intp]  # numbers of rows, or of columns
Numbers = NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]  # without text, which ArrayLike takes
EPS = float(np.finfo(float).eps)
LOG_2PI = float(np.log(2 * np.pi))
#: Share of a sum of many numbers, or of a matrix of correlations, that is rounding: far above what it is, and far below
#: what rows tell, so that half or twice decides otherwise for rounding alone
ROUNDING = 1e-12
#: Half of the digits: share of a largest singular value or curvature that counts, least share by which a downdate
#: divides, and nats a row that rounding may cost a model. With half or twice of 83 fits those of one table differ,
#: by safe steps: 13 more or one less of 308, and posteriors by 5e-4, within what ends them.
RESOLVED = ROUNDING**0.5
#: Least eigenvalue of a correlation matrix, ratio of the volumes of two classes, or curvature relative to that at equal
#: posteriors, that counts as none: far above the rounding of some features, and far below what real ones have. Of 150
#: searches finite optima had at least 1e-7, and ways to none at most 3e-12; half or twice changes none of 83 fits.
SINGULAR_RATIO = 1e-10
#: Nats by which log densities and mean log-losses differ in rounding alone: far above what rounding does to them, and
#: far below what rows tell: half or twice changes none of 35 choices by cross-validation
LOG_ROUNDING = 1e-9
#: Entries of arrays that are made at a time, 8 MB, on which memory depends. Half or twice changes the time of
#: GaussianNB on 20,000 rows, of QDA with gaps and of RDA by less than an eighth, a tenth by less than a fifth.
AT_A_TIME = 2**20
#: Entries of a block that stays in the processor's cache, 1 MB; half or twice costs up to a tenth of the time
IN_CACHE = 2**17
#: Steps of a search that nobody limits, after which it warns or gives up: those that converge take up to some hundreds.
#: Half would warn of calibrations of iris with a row of 700 times the weight of the others, which take up to 647 steps;
#: twice doubles the time of a search without an end.
MOST_STEPS = 1000
#: Times that a step is halved or doubled at most, 40, after which it is rounding; and the part of what its slope
#: promises that it gains at least: Armijo's condition with the usual number. Near an optimum a whole step gains half:
#: half or twice refuses the same.
HALVINGS, SUFFICIENT_GAIN = round(-np.log2(ROUNDING)), 1e-4


class Factor(NamedTuple):
    """A Cholesky factor, A = L Lᵀ."""

    lower: Array  # L, of no use where A is singular
    pivot: float  # least squared pivot of the correlation matrix of A; 0 where A is singular
    weakest: int  # number of the row of that pivot, which depends most on those before it

    @property
    def log_det(self) -> float:
        """log |A|."""
        return 2 * float(np.log(self.lower.diagonal()).sum())

    def whiten(self, B: Array, transposed: bool = False, overwrite: bool = False) -> Array:
        """L⁻¹ B, whose columns have the squared lengths bᵀ A⁻¹ b, or L⁻ᵀ B; in the place of B where that may be."""
        return dtrtrs(self.lower, B, lower=1, trans=int(transposed), overwrite_b=overwrite)[0]

    def solve(self, B: Array, overwrite: bool = False) -> Array:
        """A⁻¹ B; likewise."""
        return dpotrs(self.lower, B, lower=1, overwrite_b=overwrite)[0]

    def inverse(self) -> Array:
        """A⁻¹, for many quadratic forms in parts of it; a third of the work of solving for unit vectors."""
        half = dpotri(self.lower, lower=1)[0]  # with zeros above its diagonal, as L has them
        inverse = half + half.T
        np.fill_diagonal(inverse, half.diagonal())
        return inverse


class Factored(Protocol):
    """A matrix A with which systems are solved: A⁻¹ b, and a vector of the squared length bᵀ A⁻¹ b."""

    def solve(self, B: Array, /) -> Array: ...

    def whiten(self, B: Array, /) -> Array: ...


def backtracked(
    function: Callable[[Array], tuple[float, Any]], x: Array, value: float, direction: Array, slope: float
) -> tuple[float, Array, float, Any] | None:
    """The first of ever shorter steps, from 1 on, that lowers a function as its ``slope`` lets expect but for rounding:
    its length, where it ends, the value there and what the function gives beside it; None if none does.

    The next step is the least point of the parabola through both values, a tenth to a half of the last; a half where
    the function is infinite, outside its domain."""
    step = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(HALVINGS):
            end = x + step * direction
            after, beside = function(end)
            if after <= value + SUFFICIENT_GAIN * step * slope + 4 * EPS * abs(value):
                return step, end, after, beside
            bend = after - value - step * slope
            step *= float(np.clip(-step * slope / (2 * bend), 0.1, 0.5)) if np.isfinite(bend) else 0.5
    return None


def slices(n: int, size: int) -> list[slice]:
    """Blocks of ``size`` of n rows, one after another, so that what is made of each stays small."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def extremes(X: Array) -> tuple[Array, Array]:
    """The least and the greatest value of each column, in a fifth of the time that numpy takes over short rows.

    The bar is the race to the optimum: QDA on 768 rows. Blocks of columns have the same extremes."""
    parts = (np.ascontiguousarray(X[rows].T) for rows in slices(len(X), max(1, IN_CACHE // X.shape[1])))
    low, high = zip(*((part.min(axis=1), part.max(axis=1)) for part in parts))
    return np.min(low, axis=0), np.max(high, axis=0)


def one_hot(y: NDArray[np.intp], n_classes: int) -> Array:
    """Label matrix Y of shape (..., ``n_classes``): Y_iy = 1 where y is the class number of row i, else 0.

    >>> one_hot(np.array([1, 0]), 3)
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """
    return np.moveaxis(np.equal.outer(np.arange(n_classes), y).astype(float), 0, -1)  # class by class, as posteriors


def log_sum_exp(table: Array) -> Array:
    """log Σ exp over the last axis, −∞ where all is −∞; scipy's `logsumexp` takes twice the passes."""
    top = table.max(axis=-1)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(table - top[..., None]).sum(axis=-1)) + top


def ratio(part: Array, whole: Array) -> Array:
    """part / whole, and zero where the whole is zero, as in a distribution of which nothing was counted."""
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)


def correlations(A: Array) -> tuple[Array, Array]:
    """A, shape (..., d, d), scaled to ones on its diagonal, and the scales (..., d): 1 where there is no variance."""
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return A / (scale[..., :, None] * scale[..., None, :]), scale


def is_definite(A: Array, tol: float = ROUNDING) -> Array:
    """Whether the correlation matrix of each of A, shape (..., d, d), has eigenvalues > ``tol`` only."""
    positive, correlation, d = (np.diagonal(A, axis1=-2, axis2=-1) > 0).all(axis=-1), correlations(A)[0], A.shape[-1]
    # The bar is RDA, which asks for each row left out: on wine a fit takes .6 of the time that it takes by eigenvalues
    # alone. A factor proves these to be > tol; where there is none they decide, so that the answer is the same.
    try:  # a factor of what is less by tol and by the rounding of a factor (Higham 2002, Theorem 10.7)
        factor = np.linalg.cholesky(correlation - (tol + d * (d + 1) * EPS) * np.eye(d))
    except np.linalg.LinAlgError:
        return positive & (np.linalg.eigvalsh(correlation)[..., 0] > tol)
    return positive & ~np.isnan(factor[..., -1, -1])  # NaN anywhere reaches the last pivot, and LAPACK may let it


def cholesky(A: Array) -> Factor:
    """The factor of a covariance or scatter matrix A, shape (d, d), as it is."""
    variances = A.diagonal()
    if not (variances > 0).all():
        return Factor(np.zeros_like(A), 0.0, int(np.argmin(variances)))
    return _scaled(*correlations(A))


def jittered_cholesky(A: Array) -> Factor:
    """The factor of A + share · diag(A), A semi-definite but for rounding, by the first share that gives one of a tenth
    of `ROUNDING`, all of it, ten times as much, …

    A direction without curvature, a diagonal entry of at most eps times the largest, gets that of the largest.

    Raises
    ------
    LinAlgError
        If no share does.
    """
    diagonal = A.diagonal()
    largest = diagonal.max(initial=0.0)
    scale = np.sqrt(np.where(diagonal > EPS * largest, diagonal, largest or 1.0))
    unit = 1 / scale
    for power in range(-1, 15):
        share = ROUNDING * 10.0**power
        R = A * unit
        R *= unit[:, None]
        R.flat[:: len(R) + 1] = 1 + share
        factor = _scaled(R, scale)
        if factor.pivot:
            return factor
    raise np.linalg.LinAlgError(
        "a matrix is not positive definite beyond rounding: standardise features, and clip weights that lie far apart"
    )


def _scaled(R: Array, scale: Array) -> Factor:
    """The factor of diag(scale) R diag(scale), R being symmetric: its columns are its rows, as LAPACK wants them, which
    overwrites it."""
    lower, failed = dpotrf(R.T, lower=1, clean=1, overwrite_a=1)
    pivots = lower.diagonal()
    weakest = failed - 1 if failed else int(pivots.argmin())
    pivot = 0.0 if failed else float(pivots[weakest] ** 2)
    lower *= scale[:, None]
    return Factor(lower, pivot, weakest)
