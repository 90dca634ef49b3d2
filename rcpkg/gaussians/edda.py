"""The fourteen eigen-constrained covariance models of EDDA."""

from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.checks import refusal, warn
from rcpkg.gaussians.constants import ABSENT
from rcpkg.linalg import SINGULAR_RATIO, Array, is_definite

#: The fourteen models of Bensmail and Celeux: volume, shape and orientation are equal (E) or vary (V) over
#: the classes, or are trivial (I): the spherical, the diagonal and the general family in turn
EDDA_MODELS = (
    "EII", "VII",
    "EEI", "VEI", "EVI", "VVI",
    "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV",
)  # fmt: skip


def _geometric_mean(w: Array) -> Array:
    return np.exp(np.log(w).mean(axis=-1))


def _volume_and_shape(kind: str, n: Array, w: Array, tol: float, max_iter: int) -> Array:
    r"""Maximum-likelihood eigenvalues (..., r, d) of the covariances, from the scatters' diagonals w in a fixed basis.

    With volumes :math:`\lambda_h` and shapes :math:`A_h`, :math:`|A_h|=1`, minimises :math:`\sum_h\sum_j
    w_{hj}/(\lambda_hA_{hj})+d\,n_h\log\lambda_h`. ``kind``: EI and VI spherical, EE, VE (iterative), EV, VV."""
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
    present = n > ABSENT
    largest = np.where(present, scale, -np.inf).max(axis=-1, keepdims=True)
    smallest = np.where(present, scale, np.inf).min(axis=-1, keepdims=True)
    return np.where(smallest > SINGULAR_RATIO * largest, scale, np.nan)


def _iterate(sweep: Callable, data: tuple[Array, ...], state: tuple[Array, ...], tol: float, max_iter: int) -> tuple:
    """Apply ``sweep(*data, *state)``, which returns the next state and the criterion, to problems along the first
    axis; each stops when its own criterion falls by at most tol, or is NaN."""
    final = tuple(np.empty_like(part) for part in state)
    active, previous = np.arange(len(state[0])), np.full(len(state[0]), np.inf)
    for _ in range(max_iter):
        with np.errstate(over="ignore"):  # of the weight of a feature of next to no variance
            state, criterion = sweep(*data, *state)
        falls = previous - criterion > tol
        if not falls.all():
            for whole, part in zip(final, state):
                whole[active[~falls]] = part[~falls]
            active, criterion = active[falls], criterion[falls]
            data, state = (tuple(part[falls] for part in parts) for parts in (data, state))
        if len(active) == 0:
            return final
        previous = criterion
    for whole, part in zip(final, state):
        whole[active] = part
    message = f"an EDDA model has not converged after {max_iter} sweeps; its last iterate is used"
    warn(message, ConvergenceWarning)
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
        both = (p < d) & (q < d)
        rounds.append((p[both], q[both]))
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
    """EVE and VVE: eigenvalues for given axes, and a sweep of rotations of the axes for these, in turn."""
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
    counts: Array, scatters: Array, model: str, tol: float = 1e-8, max_iter: int = 500, rows: Array | None = None
) -> tuple[Array, Array]:
    r"""Maximum-likelihood :math:`\Sigma_h=\lambda_hD_hA_hD_h^T` of one of the 14 models (thesis2007 section 5.1.2).

    Minimises :math:`\sum_h\operatorname{tr}(W_h\Sigma_h^{-1})+n_h\log|\Sigma_h|`. VEI, VEE, EVE, VVE and VEV iterate
    until the criterion per row falls by at most ``tol`` in a sweep, or ``max_iter`` sweeps. Where the likelihood has no
    maximum (for VEI, VEE and VEV also: see `SINGULAR_RATIO`) the problem is reported as not feasible.

    Parameters
    ----------
    counts : array of shape (..., r)
        Rows of each class; classes of 0 rows take no part. Leading axes are independent problems.
    scatters : array of shape (..., r, d, d)
    model : one of `EDDA_MODELS`
        Volume, shape, orientation: E equal, V variable, I identity.
    rows : array of shape (..., r), optional
        Different rows of each class, which bound the rank of its scatter; ``counts`` unless these are sums of weights.

    Returns
    -------
    covariances : array of shape (..., r, d, d)
        The identity where not feasible.
    feasible : boolean array of shape (...)

    Examples
    --------
    >>> W = np.array([[[4.0, 0.0], [0.0, 2.0]], [[8.0, 0.0], [0.0, 4.0]]])
    >>> edda_covariances(np.array([4, 4]), W, "VII")[0].tolist()
    [[[0.75, 0.0], [0.0, 0.75]], [[1.5, 0.0], [0.0, 1.5]]]
    """
    if model not in EDDA_MODELS:
        raise refusal("model", f"be one of {', '.join(EDDA_MODELS)}", model)
    lead, (r, d) = counts.shape[:-1], scatters.shape[-3:-1]
    counts, scatters = counts.reshape(-1, r), scatters.reshape(-1, r, d, d)
    present, identity = counts > 0, np.eye(d)
    feasible = _feasible(model, counts if rows is None else rows.reshape(-1, r), present, scatters)
    covariances = np.broadcast_to(identity, scatters.shape).copy()
    if feasible.any():
        # an absent class is given a spherical scatter of negligible weight: it moves no estimate
        n = np.where(present, counts, ABSENT)[feasible]
        W = np.where(present[..., None, None], scatters, ABSENT * identity)[feasible]
        with np.errstate(divide="ignore", invalid="ignore"):  # where variances are rounding beside others
            estimate = _estimate(model, n, W, tol, max_iter)
        bounded = np.isfinite(estimate).all(axis=(-3, -2, -1))
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
    if model == "VVV":  # not by eigenvalues, of which rounding loses those of small units
        return W / n[..., None, None]
    if model == "VEE":
        return _proportional(n, W, tol, max_iter)
    if orientation == "E":
        return _common_axes(kind, n, W, tol, max_iter)
    values, axes = np.linalg.eigh(W)
    values = _volume_and_shape(kind, n, np.maximum(values, 0.0), tol, max_iter)
    return (axes * values[..., None, :]) @ axes.swapaxes(-2, -1)


def _feasible(model: str, rows: Array, present: Array, scatters: Array) -> Array:
    """Whether the likelihood of the model has a maximum at positive definite covariances."""
    w = np.diagonal(scatters, axis1=-2, axis2=-1)
    d, spread, absent = w.shape[-1], w.sum(axis=-1) > 0, ~present
    each_volume = (spread | absent).all(axis=-1)  # whether that of each class is positive
    if model == "EII":
        return spread.any(axis=-1)
    if model == "VII":
        return each_volume
    if model in ("EVI", "VVI"):
        return ((w > 0).all(axis=-1) | absent).all(axis=-1)
    if model in ("EEI", "VEI"):
        return (w.sum(axis=-2) > 0).all(axis=-1) & (each_volume | (model == "EEI"))
    if model in ("EEE", "VEE"):
        enough = rows.sum(axis=-1) - present.sum(axis=-1) >= d
        pooled = enough & is_definite(scatters.sum(axis=-3)) if enough.any() else enough
        return pooled & (each_volume | (model == "EEE"))
    enough = rows > d
    definite = enough & is_definite(scatters) if enough.any() else enough
    if model in ("EEV", "VEV"):
        return definite.any(axis=-1) & each_volume
    return (definite | absent).all(axis=-1)
