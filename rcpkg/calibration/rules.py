"""Rules, which make signed weights of posteriors and labels, and the losses that tell how a calibration goes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array

Rule = Callable[[Array, Array], Array]


def calibration_weights(P: Array, Y: Array) -> Array:
    """W = Y − P, shape (n, r), of posteriors P and labels Y: risk-based calibration (rc2025 eqs. 3-4), and TM.

    >>> calibration_weights(np.array([[0.75, 0.25]]), np.array([[1.0, 0.0]]))
    array([[ 0.25, -0.25]])
    """
    return Y - P


def frequency_weights(P: Array, Y: Array) -> Array:
    """W = Y ∘ (1 − P), shape (n, r), of posteriors P and labels Y: discriminative frequency estimates (rc2025 §5.1).

    >>> frequency_weights(np.array([[0.75, 0.25]]), np.array([[1.0, 0.0]]))
    array([[0.25, 0.  ]])
    """
    return Y * (1 - P)


def soft_error_weights(P: Array, Y: Array) -> Array:
    """W_iy = P_i,y_i (Y_iy − P_iy), shape (n, r), of posteriors P and labels Y.

    It gives ∇_η of the sum of P_i,y_i, which is minus the summed soft 0-1 loss up to a constant (rc2025 eq. 2).

    >>> soft_error_weights(np.array([[0.75, 0.25]]), np.array([[1.0, 0.0]]))
    array([[ 0.1875, -0.1875]])
    """
    return (P * Y).sum(axis=1, keepdims=True) * (Y - P)


class Losses(NamedTuple):
    """Means over the rows: soft 0-1 loss 1 − p(y_i | x_i), 0-1 loss, and −log p(y_i | x_i)."""

    soft_error: float
    error: float
    log_loss: float


def row_losses(log_posterior: Array, y: NDArray[np.intp]) -> Array:
    """The three `Losses` of each row, shape (3, n), from ``log_posterior`` (n, r) at labels y; ties go to the first.

    >>> row_losses(np.log([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 0])).round(2)
    array([[0.25, 0.75],
           [0.  , 1.  ],
           [0.29, 1.39]])
    """
    true = log_posterior[np.arange(len(y)), y]
    by_class = log_posterior.T
    # without ties in half of the time of `argmax`, as the bar for iterations of QDA with many classes asks for
    if np.count_nonzero(by_class == true) == len(y):
        wrong = (by_class > true).any(axis=0)
    else:
        wrong = log_posterior.argmax(axis=1) != y
    return np.stack([-np.expm1(true), wrong, -true])


def sum_of_losses(rows: Array, sample_weight: Array | None = None) -> Array:
    """Sums of the losses ``rows``, shape (3, n), weighted by ``sample_weight``: (3,)."""
    if sample_weight is None:
        return rows.sum(axis=1)
    counted = sample_weight > 0
    return (rows[:, counted] * sample_weight[counted]).sum(axis=1)


def mean_losses(rows: Array, sample_weight: Array | None = None) -> Losses:
    """Means of the losses ``rows``, shape (3, n), weighted by ``sample_weight``, shape (n,).

    A row of weight zero does not count, even if its loss is infinite.

    >>> mean_losses(np.array([[0.25, 0.75], [0.0, 1.0], [0.5, 1.5]]))
    Losses(soft_error=0.5, error=0.5, log_loss=1.0)
    """
    total = rows.shape[1] if sample_weight is None else sample_weight.sum()
    return Losses(*(sum_of_losses(rows, sample_weight) / total).tolist())


def losses(log_posterior: Array, y: NDArray[np.intp], sample_weight: Array | None = None) -> Losses:
    """Mean losses of ``log_posterior``, shape (n, r), at class numbers y, weighted by ``sample_weight``, shape (n,).

    >>> losses(np.log([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 0]), np.array([3.0, 1.0])).error
    0.25
    """
    return mean_losses(row_losses(log_posterior, y), sample_weight)
