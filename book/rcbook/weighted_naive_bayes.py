"""The maximum of wanbia2014 for any scale of the weights: of naive Bayes, of logistic regression, or another.

A row is its indicators: a leading one for the class weights, and a one for each state that it holds. ``scale`` holds
log π and log θ, a column a class, and ``weights`` w likewise; ones in the place of ``scale`` are logistic regression.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse import csr_array, hstack, issparse

from rcpkg.base import Array
from rcpkg.calibration.logistic import LogisticObjective


def with_intercept(indicators: csr_array) -> csr_array:
    """``indicators`` of states, shape (n, K), behind a column of ones."""
    return csr_array(hstack([np.ones((indicators.shape[0], 1)), indicators], format="csr"))


class Given:
    """Features of rows, as `LogisticObjective` reads them: sparse ones behind a column of ones, or dense ones."""

    def __init__(self, rows: csr_array | Array) -> None:
        (self.n, self.width), sparse = rows.shape, issparse(rows)
        self.block = rows[:, 1:] if sparse else np.ascontiguousarray(rows.T)

    def blocks(self) -> Iterator[tuple[slice, csr_array | Array]]:
        """All rows at a time."""
        yield slice(0, self.n), self.block


def weighted_objective(
    rows: csr_array | Array, Y: Array, scale: Array, penalty: float, center: float
) -> Callable[[Array], tuple[float, Array]]:
    """f(w) = −CLL + C Σ (w − c)² and its gradient, as functions of a vector."""
    likelihood = LogisticObjective(Given(rows), Y.argmax(axis=1), Y.shape[1], Y.sum(axis=1), free=Y.shape[1])

    def objective(w: Array) -> tuple[float, Array]:
        W = w.reshape(scale.shape)
        at, beyond = likelihood((W * scale).T), W - center
        value = likelihood.total * at.value + penalty * float(np.sum(beyond**2))
        return value, (likelihood.total * at.gradient.T * scale + 2 * penalty * beyond).ravel()

    return objective


def maximise_weighted(
    rows: csr_array | Array,
    Y: Array,
    scale: Array,
    *,
    penalty: float = 0.0,
    center: float = 1.0,
    start: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    relative: float = 0.0,
    callback: Callable[[OptimizeResult], None] | None = None,
) -> OptimizeResult:
    """Maximum of CLL(w ∘ scale) − C Σ (w − c)² by L-BFGS, C = ``penalty``, c = ``center``.

    CLL(β) = Σ_i Σ_y Y_iy log p(y | x_i), p(y | x) ∝ exp(β_y · x); its gradient in w is scale ∘ xᵀ(Y − P).

    Parameters
    ----------
    rows : array of shape (n, 1 + K), sparse or dense
        Indicators, see `with_intercept`, or other features, dense.
    Y : array of shape (n, r)
        One-hot labels, times the weights of the rows.
    scale : array of shape (1 + K, r)
        Log probabilities log π and log θ, or ones.
    penalty, center : float
        C ≥ 0 and c.
    start : array of shape (1 + K, r), optional
        By default all weights are ``center``.
    max_iter, tol, relative : int, float, float
        Ends after so many iterations, where no entry of the gradient per row exceeds ``tol``, or where the objective
        f = −[CLL − C Σ (w − c)²] falls by no more than ``relative`` · max(f, 1) in an iteration.
    callback : callable, optional
        Is given each iterate as ``intermediate_result``, with ``x``, the weights as a vector, and ``fun``, that is f.

    References
    ----------
    wanbia2014, equations (2), (4), (5), and §VI with the sign that makes it a penalty.
    """
    objective, total = weighted_objective(rows, Y, scale, penalty, center), float(Y.sum())
    first = np.full(scale.shape, center, dtype=float) if start is None else start
    options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "gtol": tol * total, "ftol": relative}
    optimum = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", callback=callback, options=options)
    optimum.x = optimum.x.reshape(scale.shape)
    return optimum
