"""Forms that the MAP covariance of QDA may have in rc2024 Table V, and the training errors of each (chapter 18)."""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.preprocessing import StandardScaler

from rcpkg.base import Array

GRID = list(product(
    ("raw", "standardised"),
    ("zero", "mean"),
    ("identity", "all rows", "diagonal", "within"),
    ("sample mean", "shrunk mean", "raw moments", "with the neglected term"),
    ("weights", "joint mode"),
    (10.0, 1.0),
))  # fmt: skip


def map_errors(X: Array, y: NDArray) -> Array:
    """Training errors of QDA under each form of the grid; NaN where a covariance is singular."""
    return np.array([map_error(StandardScaler().fit_transform(X) if f[0] != "raw" else X, y, *f[1:]) for f in GRID])


def map_error(X: Array, y: NDArray, centre: str, target: str, about: str, divisor: str, m0: float) -> float:
    classes, counts = np.unique(y, return_counts=True)
    d, mu0 = X.shape[1], np.zeros(X.shape[1]) if centre == "zero" else X.mean(axis=0)
    scatters = [np.cov(X[y == label].T, bias=True) * n for label, n in zip(classes, counts, strict=True)]
    whole = np.cov(X.T, bias=True)
    prior = {
        "identity": np.eye(d),
        "all rows": whole,
        "diagonal": np.diag(np.diag(whole)),
        "within": sum(scatters) / len(y),
    }[target]
    scores = []
    for label, n, scatter in zip(classes, counts, scatters, strict=True):
        mean = X[y == label].mean(axis=0)
        shrunk = (m0 * mu0 + n * mean) / (m0 + n)
        S = m0 * prior + scatter
        if about == "shrunk mean":
            S = S + n * np.outer(mean - shrunk, mean - shrunk)
        elif about == "raw moments":
            S = S + n * np.outer(mean, mean) - (m0 + n) * np.outer(shrunk, shrunk)
        elif about == "with the neglected term":
            S = S + m0 * n / (m0 + n) * np.outer(mean - mu0, mean - mu0)
        covariance = S / (m0 + n + (d + 2 if divisor == "joint mode" else 0))
        sign, log_det = np.linalg.slogdet(covariance)
        if sign <= 0:
            return np.nan
        z = np.linalg.solve(covariance, (X - shrunk).T)
        distance = np.sum((X - shrunk).T * z, axis=0)
        scores.append(np.log((n + 1) / (len(y) + len(counts))) - 0.5 * (log_det + distance))
    return float(np.mean(classes[np.argmax(scores, axis=0)] != y))


WIDE = list(product(
    ("raw", "standardised"),
    ("zero", "mean"),
    (0.0, 1.0, 10.0, "classes"),
    ("identity", "all rows"),
    (0.0, 1.0, 10.0, "features"),
    ("sample mean", "shrunk mean", "rows", "rows and pseudo-rows"),
    ("rows", "rows and pseudo-rows", "joint mode"),
))  # fmt: skip


def wide_errors(X: Array, y: NDArray) -> Array:
    """Training errors of QDA under each form of `WIDE`; NaN where a covariance is not positive definite."""
    scales = {"raw": X, "standardised": StandardScaler().fit_transform(X)}
    return np.array([wide_error(scales[form[0]], y, *form[1:]) for form in WIDE])


def wide_error(
    X: Array, y: NDArray, centre: str, m1: float | str, target: str, m2: float | str, about: str, divisor: str
) -> float:
    """m1 pseudo-rows of the mean, m2 of the covariance."""
    classes, counts = np.unique(y, return_counts=True)
    d, mu0 = X.shape[1], np.zeros(X.shape[1]) if centre == "zero" else X.mean(axis=0)
    m1, m2 = (float({"classes": len(classes), "features": d}.get(m, m)) for m in (m1, m2))
    prior = np.eye(d) if target == "identity" else np.cov(X.T, bias=True)
    scores = []
    for label, n in zip(classes, counts, strict=True):
        mean = X[y == label].mean(axis=0)
        shrunk = (m1 * mu0 + n * mean) / (m1 + n)
        S = m2 * prior + n * np.cov(X[y == label].T, bias=True)
        if about == "shrunk mean":
            S = S + n * np.outer(mean - shrunk, mean - shrunk)
        elif about != "sample mean":
            subtracted = n + (m2 if about == "rows and pseudo-rows" else 0.0)
            S = S + n * np.outer(mean, mean) - subtracted * np.outer(shrunk, shrunk)
        S = S / {"rows": n, "rows and pseudo-rows": n + m2, "joint mode": n + m2 + d + 2}[divisor]
        try:
            L = np.linalg.cholesky(S)
        except np.linalg.LinAlgError:
            return np.nan
        z = solve_triangular(L, (X - shrunk).T, lower=True)
        log_det = 2 * np.sum(np.log(np.diag(L)))
        scores.append(np.log((n + 1) / (len(y) + len(counts))) - 0.5 * (log_det + np.sum(z**2, axis=0)))
    return float(np.mean(classes[np.argmax(scores, axis=0)] != y))


FORMS = {"qda-map-grid": map_errors, "qda-map-wide": wide_errors}
