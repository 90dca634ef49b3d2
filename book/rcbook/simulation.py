"""Simulated problems: the clouds that go through the book, and the two- and three-class problems of thesis2007 sections
4.5 and 5.6, after Friedman (1989)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from rcpkg.base import Array


def clouds(n_samples: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Rows of the clouds: class 1 is one cloud, class 0 has a second cluster far off.

    Parameters
    ----------
    n_samples : int
        Number of rows n.
    rng : Generator
        Draws them.

    Returns
    -------
    X : array of shape (n, 2)
    y : array of shape (n,)
        Of classes 0 and 1, equally likely.
    """
    y = rng.integers(2, size=n_samples)
    X = rng.normal(scale=0.6, size=(n_samples, 2)) + np.where(y[:, None], [1.4, 0.0], [-0.6, 0.0])
    far = (y == 0) & (rng.uniform(size=n_samples) < 0.35)
    return X + np.where(far[:, None], [-3.5, 3.0], [0.0, 0.0]), y


@dataclass(frozen=True)
class GaussianProblem:
    """Gaussian classes of equal probability.

    Parameters
    ----------
    name : str
        Of the problem, for messages.
    means : array of shape (r, d)
        Means of the classes.
    roots : array of shape (r, d, d)
        Roots B of their covariances BBᵀ, which may be singular.
    """

    name: str
    means: Array
    roots: Array

    @property
    def covariances(self) -> Array:
        """Covariances of the classes, shape (r, d, d)."""
        return self.roots @ self.roots.swapaxes(1, 2)

    def sample(
        self, n_samples: int, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Rows X (n, d), x = μ_y + B_y z with z standard normal, and labels y (n,), drawn independently and uniformly
        (thesis2007 section 4.5)."""
        rng = check_random_state(random_state)
        n_classes, d = self.means.shape
        y = rng.randint(n_classes, size=n_samples)
        X = np.einsum("njk,nk->nj", self.roots[y], rng.standard_normal((n_samples, d)))
        return X + self.means[y], y

    def log_density(self, X: Array) -> Array:
        """Log densities of the classes, shape (n, r); ValueError where a covariance is singular."""
        values, axes = np.linalg.eigh(self.covariances)
        if (values[:, 0] <= 1e-14 * values[:, -1]).any():
            raise ValueError(f"{self.name}: a class covariance is singular, so that class has no density")
        U = np.einsum("nhj,hjk->nhk", X[:, None, :] - self.means, axes)
        return -0.5 * (np.log(2 * np.pi * values).sum(axis=-1) + (U**2 / values).sum(axis=-1))


CHAPTER4_CASES = (
    "equal spherical",
    "unequal spherical",
    "equal ellipsoidal, low-variance means",
    "equal ellipsoidal, high-variance means",
    "unequal ellipsoidal, same means",
    "unequal ellipsoidal, different means",
)


def _axis_parallel(name: str, means: Array, *variances: Array) -> GaussianProblem:
    """With independent features. The columns of the roots go from the least variance on, as the stored results have
    them."""
    orders = [np.argsort(of_class, kind="stable") for of_class in variances]
    axes = np.eye(means.shape[1])
    return GaussianProblem(name, means, np.stack([axes[:, o] * np.sqrt(v[o]) for o, v in zip(orders, variances)]))


def _eigenvalues(d: int) -> Array:
    """(4.29), (5.14): e_i = (9(i-1)/(d-1) + 1)^2, from 1 to 100."""
    return (9 * np.arange(d) / (d - 1) + 1) ** 2


def _low_variance_mean(d: int) -> Array:
    """2.5 sqrt(e_i/d) (d-i)/(d/2-1)."""
    return 2.5 * np.sqrt(_eigenvalues(d) / d) * np.arange(d - 1, -1, -1) / (d / 2 - 1)


def _high_variance_mean(d: int) -> Array:
    """2.5 sqrt(e_i/d) (i-1)/(d/2-1)."""
    return 2.5 * np.sqrt(_eigenvalues(d) / d) * np.arange(d) / (d / 2 - 1)


def _check_dimension(d: int, smallest: int, name: str) -> None:
    if d < smallest:
        raise ValueError(f"{name} needs d >= {smallest}: its formulas divide by zero below; got d = {d}")


def chapter4_problem(case: str, d: int) -> GaussianProblem:
    """One of the six two-class problems of thesis2007 section 4.5.

    Parameters
    ----------
    case : str
        One of `CHAPTER4_CASES`.
    d : int
        Number of features; from 1, 2 or 3 on, as the formulas of the case allow.

    Returns
    -------
    GaussianProblem
    """
    if case not in CHAPTER4_CASES:
        raise ValueError(f"case must be one of {CHAPTER4_CASES}; got {case!r}")
    _check_dimension(d, 3 if "variance" in case else 2 if "ellipsoidal" in case else 1, case)
    zero, ones = np.zeros(d), np.ones(d)
    if "spherical" in case:
        return _axis_parallel(case, np.stack([zero, 3 * ones]), ones, ones * (1 if case.startswith("equal") else 2))
    e = _eigenvalues(d)
    if case.startswith("equal"):
        second = _low_variance_mean(d) if "low" in case else _high_variance_mean(d)
        return _axis_parallel(case, np.stack([zero, second]), e, e)
    second = zero if "same" in case else np.full(d, 14 / np.sqrt(d))
    return _axis_parallel(case, np.stack([zero, second]), e, e[::-1])


def chapter5_problem(case: int, d: int, random_state: int | np.random.RandomState | None = None) -> GaussianProblem:
    r"""One of the ten three-class problems of thesis2007 section 5.6.1.

    Cases 7 to 10 draw their covariances (and, for 8 and 10, their means) by ``random_state``. Two printed
    formulas need a reading: the third eigenvalues of cases 5 and 6, :math:`(9(i-\frac{d-1}2)/(d-1))^2`,
    vanish at one i when d is odd (the class is then sampled from its degenerate Gaussian); and the covariance
    of cases 9 and 10, printed as :math:`R_iR_i^TR_i^TR_i`, is not symmetric:
    :math:`(R_i^TR_i)^2=R_i^TR_iR_i^TR_i` is taken, the one product of these four factors that is the square
    of the covariance of cases 7 and 8. The roots are :math:`R_i^T` and :math:`R_i^TR_i`: eigenvectors would do
    as well, but their signs depend on how a processor rounds, and with them the rows drawn.

    Parameters
    ----------
    case : int
        From 1 to 10.
    d : int
        Number of features; from 2 on, in cases 3 and 4 from 3 on.
    random_state : int or RandomState, optional
        For the draws.
    """
    if case not in range(1, 11):
        raise ValueError(f"case must be 1, ..., 10; got {case!r}")
    name = f"case {case}"
    _check_dimension(d, 3 if case in (3, 4) else 2, name)
    rng = check_random_state(random_state)
    ones, e = np.ones(d), _eigenvalues(d)
    means = np.zeros((3, d))
    alternating = np.where(np.arange(1, d + 1) % 2 == 1, -1.0, 1.0)
    if case in (1, 2):
        means[1, 0], means[2, -1] = 3, 3 if case == 1 else 4
        return _axis_parallel(name, means, ones, *((ones, ones) if case == 1 else (2 * ones, 3 * ones)))
    if case in (3, 4):
        means[1] = _low_variance_mean(d) if case == 3 else _high_variance_mean(d)
        means[2] = alternating * means[1]
        return _axis_parallel(name, means, e, e, e)
    if case in (5, 6):
        third = (9 * (np.arange(1, d + 1) - (d - 1) / 2) / (d - 1)) ** 2
        if case == 6:
            means[1] = 14 / np.sqrt(d)
            means[2] = alternating * means[1]
        return _axis_parallel(name, means, e, e[::-1], third)
    R = rng.uniform(size=(3, d, d))
    if case in (8, 10):
        means = rng.standard_normal((3, d))
    transposed = R.swapaxes(1, 2)
    return GaussianProblem(name, means, transposed if case <= 8 else transposed @ R)
