"""Pieces of the named divergences, written so that no digits cancel."""

from collections.abc import Callable

import numpy as np
from scipy.special import hyp1f1, kl_div, softmax, xlogy

from rcpkg.linalg import Array


def _log_gap_series(u: Array) -> Array:
    """u - log(1 + u) for |u| < 0.1: with s = u/(2 + u) it is u s - 2 (s^3/3 + s^5/5 + ... + s^13/13)."""
    s = u / (2 + u)
    t = s * s
    odd = 1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t / 13))))
    return s * (u - 2 * t * odd)


def i_term(x: Array, y: Array) -> Array:
    """x log(x/y) - x + y with 0 log 0 = 0 and infinity at y = 0 < x; relative precision also near x = y."""
    near = np.abs(y - x) < 0.1 * x
    u = np.where(near, y - x, 0.0) / np.where(near, x, 1.0)
    return np.where(near, x * _log_gap_series(u), kl_div(x, y))


def itakura_saito_term(x: Array, y: Array) -> Array:
    """x/y - log(x/y) - 1, with relative precision also near x = y."""
    near = np.abs(x - y) < 0.1 * y
    series = _log_gap_series(np.where(near, x - y, 0.0) / y)
    with np.errstate(over="ignore"):
        return np.where(near, series, x / y - (np.log(x) - np.log(y)) - 1)


def exponential_term(x: Array, y: Array) -> Array:
    """e^y (e^t - 1 - t), t = x - y; for t > 0 as e^x (1 - (1 + t) e^-t), near 0 as e^y t^2/2 1F1(1; 3; t)."""
    t = x - y
    near, top, down = np.abs(t) < 0.5, np.maximum(x, y), np.exp(-np.abs(t))
    small = np.where(near, t, 0.0)
    far = np.where(t > 0, 1 - (1 + t) * down, down - 1 - t)
    bracket = np.where(near, np.exp(np.minimum(-t, 0.0)) * small**2 / 2 * hyp1f1(1, 3, small), far)
    # half of the exponential on each side: 0 times an overflow would be undefined
    with np.errstate(over="ignore"):
        return np.exp(top / 2) * bracket * np.exp(top / 2)


def spectral(x: Array, function: Callable[[Array], Array]) -> Array:
    """f(X) = V f(lambda) V' of symmetric matrices."""
    values, vectors = np.linalg.eigh(x)
    return (vectors * function(values)[..., None, :]) @ vectors.mT


def spectral_derivative(x: Array, v: Array, function: Callable, derivative: Callable) -> Array:
    """Derivative of X -> f(X) in the direction V, by divided differences in the eigenbasis of X."""
    values, vectors = np.linalg.eigh(x)
    rise = function(values)[:, None] - function(values)[None, :]
    run = values[:, None] - values[None, :]
    # of nearer ones the quotient keeps fewer than ten digits, and the derivative between them stands for it
    close = np.abs(run) < 1e-6 * (np.abs(values).max() + 1e-300)
    quotient = np.where(close, derivative((values[:, None] + values[None, :]) / 2), rise / np.where(close, 1.0, run))
    return vectors @ (quotient * (vectors.T @ v @ vectors)) @ vectors.T


def log_det_form(x: Array, y: Array) -> Array:
    """tr(X Y^-1) - log det(X Y^-1) - d, from the eigenvalues of L^-1 X L^-T with Y = L L'."""
    factor = np.linalg.cholesky(y)
    half = np.linalg.solve(factor, x)
    whitened = np.linalg.solve(factor, half.mT)
    return np.sum(itakura_saito_term(np.linalg.eigvalsh((whitened + whitened.mT) / 2), 1.0), axis=-1)


def von_neumann_form(x: Array, y: Array) -> Array:
    """sum_ij <v_i, w_j>^2 (l_i log(l_i/m_j) - l_i + m_j) over the eigenpairs (l, v) of X and (m, w) of Y."""
    values_x, vectors_x = np.linalg.eigh(x)
    values_y, vectors_y = np.linalg.eigh(y)
    overlap = (vectors_x.mT @ vectors_y) ** 2
    return np.sum(overlap * i_term(np.maximum(values_x, 0.0)[..., :, None], values_y[..., None, :]), axis=(-2, -1))


def log_det(x: Array) -> Array:
    return 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(x), axis1=-2, axis2=-1)), axis=-1)


def sandwich(x: Array, v: Array) -> Array:
    """X^-1 V X^-1."""
    return np.linalg.solve(x, np.linalg.solve(x, v).mT).mT


def entropy_of_eigenvalues(x: Array) -> Array:
    values = np.maximum(np.linalg.eigvalsh(x), 0.0)
    return np.sum(xlogy(values, values) - values, axis=-1)


def softmax_hessian(u: Array, v: Array) -> Array:
    p = softmax(u, axis=-1)
    return p * (v - np.sum(p * v, axis=-1, keepdims=True))
