"""Predictive densities under every seed and every number of degrees of freedom of a grid."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rcpkg.gaussians.predictive import log_bracket, log_t
from rcpkg.gaussians.scatter import ClassStatistics
from rcpkg.linalg import EPS, Array, cholesky


class Seed(NamedTuple):
    """Rule of a seed matrix, B = scale * q**power * base.

    Bases, with the maximum-likelihood covariances of class h and within classes: "diag_class" and
    "diag_pooled" (their diagonals), "trace_class" and "trace_pooled" (their mean eigenvalue times I),
    "identity" (I).

    >>> BDA7_SEEDS[6]  # the mean pooled variance over q, times I
    Seed(base='trace_pooled', power=-1, scale=1.0)
    """

    base: str
    power: int = 0
    scale: float = 1.0


DIAGONAL_BASES = ("diag_class", "diag_pooled")
SPHERICAL_BASES = ("trace_class", "trace_pooled", "identity")

#: The seven seeds of BDA7 in the order of thesis2007 (5.13)
BDA7_SEEDS = (
    Seed("diag_pooled", 1), Seed("diag_class", 1), Seed("diag_pooled", -1), Seed("diag_class", -1),
    Seed("diag_pooled"), Seed("diag_class"), Seed("trace_pooled", -1),
)  # fmt: skip


class Models(NamedTuple):
    """The models of one base: the distinct multiples c of the base, and where each (q, seed) finds its own."""

    columns: Array
    multiples: Array
    where: Array


def models_by_base(dofs: Array, seeds: Sequence[Seed]) -> dict[str, Models]:
    groups = {}
    for base in dict.fromkeys(seed.base for seed in seeds):
        if base not in DIAGONAL_BASES + SPHERICAL_BASES:
            raise ValueError(f"seed base must be one of {', '.join(DIAGONAL_BASES + SPHERICAL_BASES)}; got {base!r}")
        columns = np.array([j for j, seed in enumerate(seeds) if seed.base == base])
        c = np.array([[seeds[j].scale * q ** float(seeds[j].power) for j in columns] for q in dofs])
        multiples, where = np.unique(c, return_inverse=True)
        groups[base] = Models(columns, multiples, where.reshape(c.shape))
    return groups


def base_diagonal(base: str, statistics: ClassStatistics, h: int) -> Array:
    """Diagonal of the base matrix for class h, shape (d,)."""
    d = statistics.means.shape[1]
    if base == "identity":
        return np.ones(d)
    if base.endswith("pooled"):
        diagonal = np.einsum("hjj->j", statistics.scatters) / statistics.counts.sum()
    else:
        diagonal = np.diag(statistics.scatters[h]) / statistics.counts[h]
    return diagonal if base.startswith("diag") else np.full(d, diagonal.mean())


def seed_matrix(seed: Seed, dof: float, statistics: ClassStatistics, h: int) -> Array:
    """The matrix B of class h, shape (d, d), that the rule ``seed`` gives for q = ``dof`` and these ``statistics``.

    >>> from rcpkg.gaussians import class_statistics
    >>> s = class_statistics(np.array([[0.0, 1.0], [2.0, 1.5], [5.0, 0.0]]), np.array([0, 0, 1]), 2)
    >>> seed_matrix(Seed("diag_class", power=1), 5.0, s, h=0)
    array([[5.    , 0.    ],
           [0.    , 0.3125]])
    """
    return np.diag(seed.scale * dof ** float(seed.power) * base_diagonal(seed.base, statistics, h))


def seed_matrices(seed: Seed, dof: float, statistics: ClassStatistics) -> Array:
    """`seed_matrix` of every class, shape (r, d, d)."""
    return np.stack([seed_matrix(seed, dof, statistics, h) for h in range(len(statistics.counts))])


def fill(out: Array, models: Models, rows, h: int, count, a: Array, d: int, log_det: Array, quadratic: Array) -> None:
    """Write log densities of one base for class h from log determinants and quadratic forms (rows, multiples)."""
    for position, column in enumerate(models.columns):
        which = models.where[:, position]
        bracket = log_bracket(count, quadratic[:, which].T)
        out[:, column, rows, h] = log_t(count, a[:, None], d, log_det[:, which].T, bracket)


def grid_log_predictive(
    X: Array,
    statistics: ClassStatistics,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    classes: Array | None = None,
) -> Array:
    r"""Log predictive densities of every class under every (q, seed): thesis2007 (4.22) with (5.13) and beyond.

    One eigendecomposition of :math:`\Lambda^{-1/2}S_h\Lambda^{-1/2}` a class and base :math:`\Lambda` serves
    all multiples c:

    .. math:: S_h+c\Lambda=\Lambda^{1/2}(V\operatorname{diag}(l)V^T+cI)\Lambda^{1/2}.

    Parameters
    ----------
    X : array of shape (n, d)
    statistics : ClassStatistics
    dofs, seeds : sequences of float and of Seed
        The grid.
    classes : array of int, optional
        Those that are asked for; all by default.

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist, and for a class that is not asked for.

    Examples
    --------
    >>> from rcpkg.gaussians import class_statistics
    >>> s = class_statistics(np.array([[0.0, 1.0], [2.0, 1.5], [5.0, 0.0]]), np.array([0, 0, 1]), 2)
    >>> grid_log_predictive(np.zeros((4, 2)), s, dofs=[2, 4]).shape  # of 7 seeds, 4 rows and 2 classes
    (2, 7, 4, 2)
    """
    n_classes, d = statistics.means.shape
    out = np.full((len(dofs), len(seeds), len(X), n_classes), -np.inf)
    groups = models_by_base(np.asarray(dofs, dtype=float), seeds)
    for h in np.arange(n_classes) if classes is None else classes:
        if statistics.counts[h] == 0:
            continue
        a = statistics.counts[h] + np.asarray(dofs, dtype=float)
        for base, models in groups.items():
            diagonal = base_diagonal(base, statistics, h)
            if not (diagonal > 0).all():
                continue
            U = X - statistics.means[h]
            if base == "identity":
                log_det, quadratic, _ = cholesky_forms(statistics.scatters[h], U, models.multiples)
            else:
                log_det, quadratic = eigen_forms(statistics.scatters[h], U, diagonal, models.multiples)
            fill(out, models, slice(None), h, statistics.counts[h], a, d, log_det, quadratic)
    return out


def cholesky_forms(scatter: Array, U: Array, multiples: Array) -> tuple[Array, Array, Array]:
    """log|S + cI|, u'(S + cI)^-1 u (n, m) and smallest pivots (m,): a factorisation a multiple, which keeps digits
    that an eigendecomposition loses when features differ in scale; infinite log determinant where singular."""
    log_det, quadratic = np.full((len(U), len(multiples)), np.inf), np.zeros((len(U), len(multiples)))
    pivots = np.zeros(len(multiples))
    for j, c in enumerate(multiples):
        factor = cholesky(scatter + c * np.eye(len(scatter)))
        pivots[j] = factor.pivot
        if factor.pivot > len(scatter) * EPS:
            log_det[:, j] = factor.log_det
            quadratic[:, j] = (factor.whiten(U.T) ** 2).sum(axis=0)
    return log_det, quadratic, pivots


def eigen_forms(scatter: Array, U: Array, diagonal: Array, multiples: Array) -> tuple[Array, Array]:
    """log|S + cL| and u'(S + cL)^-1 u, both (n, m), L diagonal, by the eigenvalues of L^-1/2 S L^-1/2."""
    root = np.sqrt(diagonal)
    values, V = np.linalg.eigh(scatter / np.outer(root, root))
    log_det, quadratic = shifted_forms(values, U / root @ V, multiples[None, :])
    return np.broadcast_to(log_det + np.log(diagonal).sum(), quadratic.shape), quadratic


def shifted_forms(values: Array, U: Array, shift: Array) -> tuple[Array, Array]:
    """log|V diag(l) V' + sI| and u'(diag(l) + sI)^-1 u for rotated rows U (n, d) and shifts (n or 1, m)."""
    shifted = np.maximum(values, 0.0) + shift[:, :, None]
    log_det = np.log(shifted).sum(axis=-1)
    if len(shift) == 1:
        return log_det, U**2 @ (1 / shifted[0]).T
    return log_det, np.einsum("nd,nmd->nm", U**2, 1 / shifted)
