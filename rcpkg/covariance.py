"""Scatter matrices and the covariance estimates made of them: Friedman's shrinkage and the fourteen
eigen-constrained models.

Notation: n_h rows of class h, W_h its scatter matrix (S_h in the sources), W = sum_h W_h, N = sum_h n_h, r
classes.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array

#: Friedman's grid of 25 points (1989, section 5; thesis2007 section 5.5.1)
FRIEDMAN_LAMBDA = (0.0, 0.125, 0.354, 0.65, 1.0)
FRIEDMAN_GAMMA = (0.0, 0.25, 0.5, 0.75, 1.0)

#: The fourteen models of Bensmail and Celeux: volume, shape and orientation are equal (E) or vary (V) over
#: the classes, or are trivial (I): the spherical, the diagonal and the general family in turn
EDDA_MODELS = (
    "EII", "VII",
    "EEI", "VEI", "EVI", "VVI",
    "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV",
)  # fmt: skip
EDDA_ITERATIVE = frozenset({"VEI", "VEE", "EVE", "VVE", "VEV"})
#: Under VEI, VEE and VEV the likelihood counts as unbounded once a class's volume falls below this share of another's
VANISHING_VOLUME = 1e-10


class ClassStatistics(NamedTuple):
    """Rows (r,), means (r, d) and scatter matrices (r, d, d) of the classes."""

    counts: Array
    means: Array
    scatters: Array

    @property
    def pooled(self) -> Array:
        """Within-class scatter matrix, summed over the classes."""
        return self.scatters.sum(axis=0)


def class_statistics(X: Array, y: Array, n_classes: int) -> ClassStatistics:
    r""":math:`n_h`, :math:`\bar x_h` and :math:`S_h=\sum_{y_i=h}(x_i-\bar x_h)(x_i-\bar x_h)^T` (thesis2007
    4.5, 4.6).

    A feature that is constant within a class gets a variance of exactly zero. An empty class has mean and
    scatter 0.

    Parameters
    ----------
    X : array of shape (n, d)
    y : integer array of shape (n,), values 0, ..., n_classes - 1
    n_classes : int
    """
    d = X.shape[1]
    means, scatters = np.zeros((n_classes, d)), np.zeros((n_classes, d, d))
    counts = np.bincount(y, minlength=n_classes)
    for h in np.flatnonzero(counts):
        rows = X[y == h]
        means[h] = rows.mean(axis=0)
        constant = rows.max(axis=0) == rows.min(axis=0)
        means[h, constant] = rows[0, constant]
        centred = rows - means[h]
        scatters[h] = centred.T @ centred
    return ClassStatistics(counts, means, scatters)


def shrunken_covariances(statistics: ClassStatistics, lam: float, gamma: float) -> Array:
    r"""Friedman's
    :math:`\hat\Sigma_h(\lambda,\gamma)=(1-\gamma)\hat\Sigma_h(\lambda)+\frac{\gamma}{d}\operatorname{tr}
    (\hat\Sigma_h(\lambda))I`, :math:`\hat\Sigma_h(\lambda)=\frac{(1-\lambda)S_h+\lambda
    S}{(1-\lambda)n_h+\lambda n}` (thesis2007 5.1, 5.2; S is the within-class scatter), shape (r, d, d). An
    empty class at lambda = 0 gets zeros.

    Parameters
    ----------
    statistics : ClassStatistics
    lam, gamma : float in [0, 1]
    """
    n_h, d = statistics.counts, statistics.means.shape[1]
    weight = (1 - lam) * n_h + lam * n_h.sum()
    scatter = (1 - lam) * statistics.scatters + lam * statistics.pooled
    sigma = scatter / np.where(weight > 0, weight, 1.0)[:, None, None]
    trace = np.trace(sigma, axis1=-2, axis2=-1) / d
    return (1 - gamma) * sigma + gamma * trace[:, None, None] * np.eye(d)


def scaled_cholesky(A: Array) -> tuple[Array, float]:
    """Lower Cholesky factor of a covariance or scatter matrix A, taken through its correlation matrix so that
    the features' scales cost no digits, and the smallest squared pivot of the latter: 0 where the matrix is
    singular (the factor is then of no use).
    """
    if not (np.diag(A) > 0).all():
        return np.zeros_like(A), 0.0
    scale = np.sqrt(np.diag(A))
    factor, info = dpotrf(A / np.outer(scale, scale), lower=1, clean=1)
    return scale[:, None] * factor, float(np.diag(factor).min() ** 2) if info == 0 else 0.0


def is_definite(A: Array, tol: float = 1e-12) -> Array:
    """Whether each symmetric matrix of A, shape (..., d, d), is numerically positive definite: its correlation
    matrix has eigenvalues > tol.
    """
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    positive = (diagonal > 0).all(axis=-1)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    smallest = np.linalg.eigvalsh(A * scale[..., :, None] * scale[..., None, :])[..., 0]
    return positive & (smallest > tol)


def _geometric_mean(w: Array) -> Array:
    return np.exp(np.log(w).mean(axis=-1))


def _volume_and_shape(kind: str, n: Array, w: Array, tol: float, max_iter: int) -> Array:
    r"""Maximum-likelihood eigenvalues (..., r, d) of the covariances, given the scatters' diagonals w in a
    fixed basis.

    With volumes :math:`\lambda_h` and shapes :math:`A_h`, :math:`|A_h|=1`, minimises :math:`\sum_h\sum_j
    w_{hj}/(\lambda_hA_{hj})+d\,n_h\log\lambda_h`. ``kind``: EI and VI spherical, EE, VE (iterative), EV, VV.
    """
    d, total = w.shape[-1], n.sum(axis=-1)[..., None, None]
    if kind == "EI":
        return np.broadcast_to(w.sum(axis=(-2, -1), keepdims=True) / (d * total), w.shape)
    if kind == "VI":
        return np.broadcast_to(w.mean(axis=-1, keepdims=True) / n[..., None], w.shape)
    if kind == "EE":
        return np.broadcast_to(w.sum(axis=-2, keepdims=True) / total, w.shape)
    if kind == "VV":
        return w / n[..., None]
    if kind == "EV":
        volume = _geometric_mean(w)[..., None]
        return w / volume * volume.sum(axis=-2, keepdims=True) / total

    def sweep(n: Array, w: Array, shape: Array, scale: Array) -> tuple[tuple[Array, ...], Array]:
        shape = (w / scale[..., None]).sum(axis=-2)
        shape = shape / _geometric_mean(shape)[..., None]
        scale = _volumes((w / shape[..., None, :]).mean(axis=-1), n)
        return (shape, scale), d * (n * np.log(scale)).sum(axis=-1) / n.sum(axis=-1)

    shape, scale = _iterate(sweep, (n, w), (w[..., 0, :], w.mean(axis=-1) / n), tol, max_iter)
    return scale[..., None] * shape[..., None, :]


def _volumes(spread: Array, n: Array) -> Array:
    """Volumes spread / n (..., r) of the classes; NaN for a problem in which one vanishes beside another, where
    the likelihood grows without bound."""
    scale = spread / n
    present = n > 0.5  # an absent class has a negligible weight
    largest = np.where(present, scale, -np.inf).max(axis=-1, keepdims=True)
    smallest = np.where(present, scale, np.inf).min(axis=-1, keepdims=True)
    return np.where(smallest > VANISHING_VOLUME * largest, scale, np.nan)


def _iterate(sweep: Callable, data: tuple[Array, ...], state: tuple[Array, ...], tol: float, max_iter: int) -> tuple:
    """Apply ``sweep(*data, *state)``, which returns the next state and the criterion, to problems along the first
    axis; each stops when its own criterion falls by at most tol, or is NaN."""
    final = tuple(np.empty_like(part) for part in state)
    active, previous = np.arange(len(state[0])), np.full(len(state[0]), np.inf)
    for _ in range(max_iter):
        state, criterion = sweep(*data, *state)
        going = previous - criterion > tol
        if not going.all():
            for whole, part in zip(final, state):
                whole[active[~going]] = part[~going]
            active, criterion = active[going], criterion[going]
            data, state = (tuple(part[going] for part in parts) for parts in (data, state))
        if len(active) == 0:
            return final
        previous = criterion
    for whole, part in zip(final, state):
        whole[active] = part
    message = f"an EDDA model has not converged after {max_iter} sweeps; its last iterate is used"
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return final


def _proportional(n: Array, W: Array, tol: float, max_iter: int) -> Array:
    r"""VEE: :math:`\Sigma_h=\lambda_hC`, :math:`|C|=1`: :math:`C\propto\sum_hW_h/\lambda_h` and
    :math:`\lambda_h= \operatorname{tr}(W_hC^{-1})/(dn_h)` in turn."""
    d = W.shape[-1]

    def sweep(n: Array, W: Array, C: Array, scale: Array) -> tuple[tuple[Array, ...], Array]:
        C = (W / scale[..., None, None]).sum(axis=-3)
        C = C / np.exp(np.linalg.slogdet(C)[1] / d)[..., None, None]
        scale = _volumes(np.trace(np.linalg.solve(C[..., None, :, :], W), axis1=-2, axis2=-1) / d, n)
        return (C, scale), d * (n * np.log(scale)).sum(axis=-1) / n.sum(axis=-1)

    start = np.trace(W, axis1=-2, axis2=-1) / (d * n)
    C, scale = _iterate(sweep, (n, W), (W[..., 0, :, :], start), tol, max_iter)
    return scale[..., None, None] * C[..., None, :, :]


def _disjoint_pairs(d: int) -> list[tuple[Array, Array]]:
    """All pairs of axes in rounds of disjoint ones (a round-robin tournament)."""
    players = np.arange(d + d % 2)
    rounds = []
    for _ in range(len(players) - 1):
        p, q = players[: len(players) // 2], players[: len(players) // 2 - 1 : -1]
        kept = (p < d) & (q < d)
        rounds.append((p[kept], q[kept]))
        players = np.r_[players[0], players[-1], players[1:-1]]
    return rounds


def _rotate(D: Array, G: Array, weights: Array) -> None:
    r"""One sweep of plane rotations of D, in place, each the exact minimiser of :math:`\sum_h\sum_j
    u_{hj}(D^TW_hD)_{jj}`.

    G holds the current :math:`D^TW_hD` (..., r, d, d), weights u (..., r, d).
    """
    for p, q in _disjoint_pairs(D.shape[-1]):
        a = weights[..., p] - weights[..., q]
        cross = (a * G[..., p, q]).sum(axis=-2)
        difference = (a * (G[..., p, p] - G[..., q, q])).sum(axis=-2)
        angle = np.where((cross == 0) & (difference <= 0), 0.0, 0.5 * np.arctan2(-2 * cross, -difference))
        c, s = np.cos(angle), np.sin(angle)
        for A in (D, G):
            axes = (..., None, slice(None)) if A is D else (..., None, None, slice(None))
            left, right = A[..., p], A[..., q]
            A[..., p], A[..., q] = c[axes] * left + s[axes] * right, c[axes] * right - s[axes] * left
        c, s = c[..., None, :, None], s[..., None, :, None]
        top, bottom = G[..., p, :], G[..., q, :]
        G[..., p, :], G[..., q, :] = c * top + s * bottom, c * bottom - s * top


def _common_axes(kind: str, n: Array, W: Array, tol: float, max_iter: int) -> Array:
    """EVE and VVE: eigenvalues for given axes, then a sweep of rotations of the axes for given eigenvalues,
    in turn."""
    D = np.linalg.eigh(W.sum(axis=-3))[1]
    G = D.swapaxes(-2, -1)[..., None, :, :] @ W @ D[..., None, :, :]

    def values(n: Array, G: Array) -> Array:
        return _volume_and_shape(kind, n, np.diagonal(G, axis1=-2, axis2=-1), tol, max_iter)

    def sweep(n: Array, D: Array, G: Array, eigenvalues: Array) -> tuple[tuple[Array, ...], Array]:
        _rotate(D, G, 1 / eigenvalues)
        eigenvalues = values(n, G)
        return (D, G, eigenvalues), (n[..., None] * np.log(eigenvalues)).sum(axis=(-2, -1)) / n.sum(axis=-1)

    D, _, eigenvalues = _iterate(sweep, (n,), (D, G, values(n, G)), tol, max_iter)
    return (D[..., None, :, :] * eigenvalues[..., None, :]) @ D.swapaxes(-2, -1)[..., None, :, :]


def edda_covariances(
    counts: Array, scatters: Array, model: str, tol: float = 1e-8, max_iter: int = 500
) -> tuple[Array, Array]:
    r"""Maximum-likelihood :math:`\Sigma_h=\lambda_hD_hA_hD_h^T` of one of the fourteen models (thesis2007
    section 5.1.2).

    Minimises :math:`\sum_h\operatorname{tr}(W_h\Sigma_h^{-1})+n_h\log|\Sigma_h|`. The models VEI, VEE, EVE,
    VVE and VEV iterate until the criterion per row falls by at most ``tol`` in a sweep, or ``max_iter``
    sweeps. Where the likelihood has no maximum (for VEI, VEE and VEV also: see `VANISHING_VOLUME`) the problem
    is reported as not feasible.

    Parameters
    ----------
    counts : array of shape (..., r)
        Rows of each class; classes of 0 rows take no part. Leading axes are independent problems.
    scatters : array of shape (..., r, d, d)
    model : one of `EDDA_MODELS`
        Volume, shape, orientation: E equal, V variable, I identity.

    Returns
    -------
    covariances : array of shape (..., r, d, d)
        The identity where not feasible.
    feasible : boolean array of shape (...)

    Raises
    ------
    ValueError
        If the model is unknown.
    """
    if model not in EDDA_MODELS:
        raise ValueError(f"model must be one of {', '.join(EDDA_MODELS)}; got {model!r}")
    lead, (r, d) = counts.shape[:-1], scatters.shape[-3:-1]
    counts, scatters = counts.reshape(-1, r), scatters.reshape(-1, r, d, d)
    present, identity = counts > 0, np.eye(d)
    feasible = _feasible(model, counts, present, scatters)
    covariances = np.broadcast_to(identity, scatters.shape).copy()
    if feasible.any():
        # an absent class is given a spherical scatter of negligible weight: it moves no estimate
        n = np.where(present, counts, 1e-300)[feasible]
        W = np.where(present[..., None, None], scatters, 1e-300 * identity)[feasible]
        estimate = _estimate(model, n, W, tol, max_iter)
        bounded = ~np.isnan(estimate).any(axis=(-3, -2, -1))
        feasible[feasible] = bounded
        covariances[feasible] = estimate[bounded]
    return covariances.reshape(*lead, r, d, d), feasible.reshape(lead)


def _estimate(model: str, n: Array, W: Array, tol: float, max_iter: int) -> Array:
    kind, orientation = model[:2], model[2]
    if orientation == "I":
        w = np.diagonal(W, axis1=-2, axis2=-1)
        return _volume_and_shape(kind, n, w, tol, max_iter)[..., None] * np.eye(W.shape[-1])
    if model == "EEE":
        return W.sum(axis=-3, keepdims=True) / n.sum(axis=-1)[..., None, None, None]
    if model == "VEE":
        return _proportional(n, W, tol, max_iter)
    if orientation == "E":
        return _common_axes(kind, n, W, tol, max_iter)
    values, axes = np.linalg.eigh(W)
    values = _volume_and_shape(kind, n, np.maximum(values, 0.0), tol, max_iter)
    return (axes * values[..., None, :]) @ axes.swapaxes(-2, -1)


def _feasible(model: str, counts: Array, present: Array, scatters: Array) -> Array:
    """Whether the likelihood of the model has a maximum at positive definite covariances."""
    w = np.diagonal(scatters, axis1=-2, axis2=-1)
    d = w.shape[-1]
    absent = ~present
    some_spread = w.sum(axis=-1) > 0
    if model == "EII":
        return some_spread.any(axis=-1)
    if model == "VII":
        return (some_spread | absent).all(axis=-1)
    if model in ("EVI", "VVI"):
        return ((w > 0).all(axis=-1) | absent).all(axis=-1)
    if model in ("EEI", "VEI"):
        pooled = (w.sum(axis=-2) > 0).all(axis=-1)
        return pooled if model == "EEI" else pooled & (some_spread | absent).all(axis=-1)
    if model in ("EEE", "VEE"):
        enough = counts.sum(axis=-1) - present.sum(axis=-1) >= d
        pooled = enough & is_definite(scatters.sum(axis=-3)) if enough.any() else enough
        return pooled if model == "EEE" else pooled & (some_spread | absent).all(axis=-1)
    enough = counts > d
    definite = enough & is_definite(scatters) if enough.any() else enough
    if model in ("EEV", "VEV"):
        return definite.any(axis=-1) & (some_spread | absent).all(axis=-1)
    return (definite | absent).all(axis=-1)


#: A covariance counts as singular, and its class has no density, where the eigenvalues (for gamma = 0, which
#: commutes with rescaling: the squared pivots of the correlation matrix) span more than this ratio
SINGULAR_RATIO = 1e-10
#: A downdate by the factor 1 - rho z'K^-1 z loses about eps / (condition ratio of K * that factor); rows are
#: refitted where the product is smaller than this
SAFE_DOWNDATE = 1e-6
#: A row that holds more than this share of its class's scatter in some feature is refitted, not downdated
_LARGEST_SHARE = 1 - 1e-3


def _log_normal(d: int, log_det, quadratic):
    return -0.5 * (d * np.log(2 * np.pi) + log_det + quadratic)


def log_normal(deviations: Array, covariances: Array) -> Array:
    """Gaussian log densities (..., n, r) of deviations from the class means (..., n, r, d) under covariances
    (..., r, d, d); -inf where a covariance is numerically singular."""
    d = covariances.shape[-1]
    definite = is_definite(covariances, d * np.finfo(float).eps)
    covariances = np.where(definite[..., None, None], covariances, np.eye(d))
    root = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    L = np.linalg.cholesky(covariances / (root[..., :, None] * root[..., None, :]))
    U = np.linalg.solve(L, np.moveaxis(deviations / root[..., None, :, :], -3, -1))
    log_det = 2 * np.log(root * np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    value = _log_normal(d, log_det[..., None, :], (U**2).sum(axis=-2).swapaxes(-2, -1))
    return np.where(definite[..., None, :], value, -np.inf)


def shrunken_log_density(
    X: Array,
    statistics: ClassStatistics,
    lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
    gammas: Sequence[float] = FRIEDMAN_GAMMA,
) -> Array:
    """Gaussian log densities of every class under `shrunken_covariances`, for all (lambda, gamma).

    One eigendecomposition a class and lambda: gamma acts on the eigenvalues only.

    Parameters
    ----------
    X : array of shape (n, d)
    statistics : ClassStatistics
    lambdas, gammas : sequences of float in [0, 1]

    Returns
    -------
    array of shape (len(lambdas), len(gammas), n, r)
        -inf for a class that is empty or whose covariance is singular (see `SINGULAR_RATIO`).
    """
    n_classes, d = statistics.means.shape
    out = np.full((len(lambdas), len(gammas), len(X), n_classes), -np.inf)
    for i, lam in enumerate(lambdas):
        for h, sigma in enumerate(shrunken_covariances(statistics, lam, 0.0)):
            if statistics.counts[h] == 0:
                continue
            values, axes = np.linalg.eigh(sigma)
            centred = X - statistics.means[h]
            U = centred @ axes
            for j, gamma in enumerate(gammas):
                if gamma == 0:
                    L, pivot = scaled_cholesky(sigma)
                    if pivot > SINGULAR_RATIO:
                        quadratic = (solve_triangular(L, centred.T, lower=True) ** 2).sum(axis=0)
                        out[i, j, :, h] = _log_normal(d, 2 * np.log(np.diag(L)).sum(), quadratic)
                    continue
                shrunken = (1 - gamma) * np.maximum(values, 0.0) + gamma * values.mean()
                if shrunken[0] > SINGULAR_RATIO * shrunken[-1]:
                    out[i, j, :, h] = _log_normal(d, np.log(shrunken).sum(), U**2 @ (1 / shrunken))
    return out


class LeftOut(NamedTuple):
    """What leaving each row out takes: its deviation z from the mean of its class of n rows, kappa = n/(n - 1)."""

    X: Array
    y: Array
    statistics: ClassStatistics
    z: Array
    kappa: Array


def left_out(X: Array, y: Array, n_classes: int) -> LeftOut:
    """Each row left out of its class; X, y, n_classes as in `class_statistics`, kappa 1 for the only row of a class."""
    statistics = class_statistics(X, y, n_classes)
    n = statistics.counts[y]
    kappa = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
    return LeftOut(X, y, statistics, X - statistics.means[y], kappa)


def shrunken_log_density_loo(
    X: Array,
    y: Array,
    n_classes: int,
    lambdas: Sequence[float] = FRIEDMAN_LAMBDA,
    gammas: Sequence[float] = FRIEDMAN_GAMMA,
) -> Array:
    r"""`shrunken_log_density` of each row with the row left out of the fit: exact.

    With :math:`M=(1-\lambda)S_h+\lambda S`, leaving out :math:`x_i` subtracts :math:`\rho z_iz_i^T`,
    :math:`z_i` its deviation from the mean of its class of n rows: :math:`\rho=n/(n-1)` for its own class,
    :math:`\lambda n/(n-1)` for the others. So one eigendecomposition of M a class and lambda, and rank-one
    formulae, serve all rows and all gamma. Rows for which the downdate is nearly singular are refitted.

    Parameters
    ----------
    X, y, n_classes
        As in `class_statistics`.
    lambdas, gammas : sequences of float in [0, 1]

    Returns
    -------
    array of shape (len(lambdas), len(gammas), n, r)
    """
    left = left_out(X, y, n_classes)
    counts, _, scatters = left.statistics
    out = np.full((len(lambdas), len(gammas), len(X), n_classes), -np.inf)
    refit = np.zeros(len(X), dtype=bool)
    for i, lam in enumerate(lambdas):
        for h in np.flatnonzero(counts):
            M = (1 - lam) * scatters[h] + lam * left.statistics.pooled
            values, axes = np.linalg.eigh(M)
            decomposed = _Decomposed(np.maximum(values, 0.0), axes, *scaled_cholesky(M))
            for own in (False, True):
                rows = np.flatnonzero((y == h) == own)
                if counts[h] > own and len(rows):
                    out[i][:, rows, h], unsafe = _left_out_log_density(left, decomposed, h, own, rows, lam, gammas)
                    refit[rows[unsafe]] = True
    for i in np.flatnonzero(refit):
        statistics = without_row(X, y, left.statistics, i)
        out[:, :, i] = shrunken_log_density(X[i : i + 1], statistics, lambdas, gammas)[:, :, 0]
    return out


class _Decomposed(NamedTuple):
    """Eigenvalues (d,) and eigenvectors of a matrix, and its Cholesky factor with the smallest squared pivot."""

    values: Array
    axes: Array
    factor: Array
    pivot: float


def _left_out_log_density(
    left: LeftOut, M: _Decomposed, h: int, own: bool, rows: Array, lam: float, gammas: Sequence[float]
) -> tuple[Array, Array]:
    """`shrunken_log_density_loo` of rows of class h (``own``) or of the others, under class h at one lambda, (gammas,
    rows); and the rows to be refitted."""
    n, d = left.X.shape
    count, kappa, z = left.statistics.counts[h] - own, left.kappa[rows], left.z[rows]
    weight = (1 - lam) * count + lam * (n - 1)
    rho = kappa if own else lam * kappa
    deviation = kappa[:, None] * z if own else left.X[rows] - left.statistics.means[h]
    rotated, lost = deviation @ M.axes, z @ M.axes
    mean_value = (M.values.sum() - rho * (lost**2).sum(axis=1)) / d
    refit = mean_value <= 1e-3 * M.values.mean()
    mean_value[refit] = 1.0
    out = np.full((len(gammas), len(rows)), -np.inf)
    for j, gamma in enumerate(gammas):
        if gamma == 1:
            quadratic = (deviation**2).sum(axis=1) * weight / mean_value
            out[j] = _log_normal(d, d * np.log(mean_value / weight), quadratic)
            continue
        if gamma == 0:
            # what has a null direction, or too few rows for full rank, keeps it without the row
            if M.pivot < 1e-13 or (lam == 0 and count <= d):
                continue
            whitened = (solve_triangular(M.factor, part.T, lower=True).T for part in (deviation, z))
            log_det, quadratic, unsafe = _downdated(np.ones((1, d)), *whitened, rho, M.pivot)
            log_det = log_det + 2 * np.log(np.diag(M.factor)).sum()
        else:
            shifted = M.values + gamma / (1 - gamma) * mean_value[:, None]
            log_det, quadratic, unsafe = _downdated(shifted, rotated, lost, rho, shifted[:, 0] / shifted[:, -1])
        refit |= unsafe
        log_det = log_det + d * np.log((1 - gamma) / weight)
        out[j] = _log_normal(d, log_det, quadratic * weight / (1 - gamma))
    return out, refit


def without_row(X: Array, y: Array, statistics: ClassStatistics, i: int) -> ClassStatistics:
    """The ``statistics`` of the rows X with classes y, without row i: those of its class computed afresh, the others
    taken over.
    """
    others = y == y[i]
    others[i] = False
    fresh = class_statistics(X[others], np.zeros(others.sum(), dtype=int), 1)
    reduced = ClassStatistics(*(part.copy() for part in statistics))
    for part, value in zip(reduced, fresh):
        part[y[i]] = value[0]
    return reduced


def dominates(X: Array, y: Array, statistics: ClassStatistics) -> Array:
    """The rows of X, with classes y, that hold nearly all of their class's scatter in some feature: without them a
    difference of sums would leave rounding where little or nothing is left, so the ``statistics`` must be refitted.
    """
    n = statistics.counts[y]
    share = np.where(n > 1, n / np.maximum(n - 1, 1), 0.0)[:, None] * (X - statistics.means[y]) ** 2
    spread = np.einsum("hjj->hj", statistics.scatters)[y]
    return (share > _LARGEST_SHARE * spread).any(axis=1, where=spread > 0)


def leave_one_out_statistics(X: Array, y: Array, n_classes: int, rows: Array) -> ClassStatistics:
    r"""Class statistics without each of the given rows in turn, stacked: :math:`\bar x'=\bar x-z/(n-1)`,
    :math:`S'=S-\frac n{n-1}zz^T` for the row's own class, z its deviation from the mean.

    Parameters
    ----------
    X, y, n_classes
        As in `class_statistics`.
    rows : array of int
        Which rows.
    """
    statistics = class_statistics(X, y, n_classes)
    size, own = np.arange(len(rows)), y[rows]
    counts, means, scatters = (np.repeat(part[None], len(rows), axis=0) for part in statistics)
    left = counts[size, own] - 1
    z = X[rows] - statistics.means[own]
    counts[size, own] = left
    means[size, own] -= z / np.maximum(left, 1)[:, None]
    scatters[size, own] -= ((left + 1) / np.maximum(left, 1))[:, None, None] * z[:, :, None] * z[:, None, :]
    means[size[left == 0], own[left == 0]] = 0.0
    batch = ClassStatistics(counts, means, scatters)
    for k in np.flatnonzero(dominates(X, y, statistics)[rows]):
        for part, value in zip(batch, without_row(X, y, statistics, rows[k])):
            part[k] = value
    return batch


def _downdated(values: Array, V: Array, lost: Array, rho: Array, ratio) -> tuple[Array, Array, Array]:
    """log|K - rho z z'|, v'(K - rho z z')^-1 v for K = diag(values) > 0, a row of V and of lost (z) each; and
    the rows for which that matrix is too close to singular to be had by a downdate, given the smallest
    eigenvalue ratio of K."""
    inverse = 1 / values
    downdate = 1 - rho * np.einsum("nd,nd->n", lost**2, np.broadcast_to(inverse, lost.shape))
    unsafe = ratio * downdate < SAFE_DOWNDATE
    downdate[unsafe] = 1.0
    cross = np.einsum("nd,nd->n", V, lost * inverse)
    quadratic = np.einsum("nd,nd->n", V**2, np.broadcast_to(inverse, V.shape)) + rho * cross**2 / downdate
    return np.log(values).sum(axis=1) + np.log(downdate), quadratic, unsafe
