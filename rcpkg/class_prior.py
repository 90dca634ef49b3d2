"""Unknown class weights of new rows, from the posteriors of a classifier that was trained with other weights."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.stats import norm

from rcpkg.checks import check_class_prior, warn
from rcpkg.linalg import LOG_ROUNDING, Array

#: Steps of EM, after which it warns. It takes 25 where the means of two Gaussians are two deviations apart, 100 at one,
#: 400 at a half and 1,500 to 8,000 at a tenth to a fifth, where a tenth of it leaves weights up to .05 off. Half warns
#: of some of these, twice of fewer below a tenth.
STEPS = 10_000
#: Width of an interval of a class weight from which on the rows say next to nothing about it: for two Gaussians a
#: deviation apart that of 70 rows; half is that of 300, twice is never reached
WIDE = 0.5


class ClassPrior(NamedTuple):
    """Outcome of `class_prior_of`: estimated class weights π' (r,), in the order of ``classes_``, which
    ``predict_proba(X, class_prior)`` takes if none is zero; their 95 % intervals (r, 2), by the normal approximation;
    L(π') − L(π) in nats, by how much the rows prefer the estimate to the weights of training; and steps of EM."""

    class_prior: Array
    interval: Array
    log_likelihood: float
    n_iter: int


def class_prior_of(model: Any, X: ArrayLike, *, training_prior: ArrayLike | Mapping | None = None) -> ClassPrior:
    r"""Class weights π' that maximise :math:`L(\pi') = \sum_i \log \sum_y \pi'_y\, p(y \mid x_i) / \pi_y`, by EM.

    If p(x | y) is that of training, L is the log-likelihood of the rows up to a constant. It is concave, and a step of
    EM takes for π' the mean of the posteriors that are corrected to π', :math:`p'(y \mid x) \propto p(y \mid x)\,
    \pi'_y / \pi_y`. The posteriors must be calibrated: an overconfident classifier leads EM astray.

    Parameters
    ----------
    model : classifier
        A fitted one with ``predict_log_proba`` or ``predict_proba``; rows may have the missing values that it takes.
    X : array-like of shape (n, d)
        Rows without labels.
    training_prior : array-like of shape (r,) or mapping, optional
        Class weights π of the rows on which the model was trained, by label or in the order of ``classes_``; a model
        of this library knows them.

    Warns
    -----
    UserWarning
        Where the rows leave a weight all but open, or EM has not converged.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), equations 2.8 and 2.9; Lindsay (1983) for what can still be gained.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, class_prior_of
    >>> X, y = load_iris(return_X_y=True)
    >>> class_prior_of(LDA().fit(X, y), X[25:]).class_prior.round(2)
    array([0.2, 0.4, 0.4])
    """
    with np.errstate(divide="ignore"):
        log_P = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.log(model.predict_proba(X))
    if training_prior is not None:
        log_prior = np.log(check_class_prior(training_prior, model.classes_))
    elif (log_prior := getattr(model, "_calibrated_at", None)) is None:
        raise ValueError("training_prior must name the class weights of the training rows: np.bincount(y) / len(y)")
    elif (never := np.isneginf(log_prior)).any():
        label = np.asarray(model.classes_)[never].tolist()[0]
        raise ValueError(f"the weight of {label!r} is zero in the model: no row can tell how frequent the class is")
    log_ratio, prior = log_P - log_prior, np.exp(log_prior)  # the first is log p(x_i | y) up to a constant of the row
    ratio = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
    weights, n_iter = em(ratio, prior, LOG_ROUNDING, STEPS)
    density = ratio @ weights
    if n_iter == STEPS:
        warn(f"EM has not converged in {STEPS:,} steps: the rows hardly tell the weights")
    interval = _interval(ratio / density[:, None], weights)
    if (wide := np.ptp(interval, axis=1) > WIDE).any():
        label, (low, high) = np.asarray(model.classes_)[wide].tolist()[0], interval[wide][0]
        message = f"{len(ratio)} rows leave the weight of {label!r} between {low:.2f} and {high:.2f}"
        warn(f"{message}: take more rows, or weights that you know")
    return ClassPrior(weights, interval, float(np.log(density / (ratio @ prior)).sum()), n_iter)


def em(ratio: Array, weights: Array, tol: float, max_iter: int) -> tuple[Array, int]:
    """Weights π' that maximise Σ_i log Σ_y π'_y ρ_iy, for ratios ρ (n, r) ∝ p(x_i | y), from some ``weights``, and the
    steps π'_y ← π'_y mean_i ρ_iy / Σ_k π'_k ρ_ik that it took."""
    for n_iter in range(max_iter + 1):
        gain = (ratio / (ratio @ weights)[:, None]).mean(axis=0)
        # of a concave function: what is still to be gained is at most the largest slope towards one class
        if gain.max() - 1 <= tol or n_iter == max_iter:
            break
        weights = weights * gain / (weights @ gain)
    return weights, n_iter


def _interval(relative: Array, weights: Array) -> Array:
    """Normal 95 % intervals of weights that sum to one, from −∇²L = Σ_i q_i q_iᵀ, q_i = p'(y | x_i) / π'_y."""
    along = null_space(np.ones((1, len(weights))))  # orthonormal directions in which the sum stays
    values, vectors = np.linalg.eigh(along.T @ (relative.T @ relative) @ along)
    with np.errstate(divide="ignore"):
        spread = (along @ vectors) ** 2 @ (1 / np.maximum(values, 0.0))
    half = norm.ppf(0.975) * np.sqrt(spread)
    return np.clip(np.column_stack([weights - half, weights + half]), 0.0, 1.0)
