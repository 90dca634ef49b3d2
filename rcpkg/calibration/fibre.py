"""Of all joint models with the same posteriors, the most probable one.

Posteriors depend on differences between classes only: with c added to the coefficients of every class's own features,
and d to those of the shared ones, η has the same. On this fibre the log-likelihood of the rows is
m [⟨(c, d), t⟩ − ψ(η + (c, d))] but for a constant, concave, t being the means of the features over the rows; at its
maximum the model has these means, as all iterates of fixed steps from the closed form have.
"""

from functools import partial
from typing import Any

import numpy as np

from rcpkg.calibration.curvature import MinimalForm, is_state, within_reach
from rcpkg.calibration.objective import Objective
from rcpkg.families import Statistics, can
from rcpkg.linalg import Array, Factor, backtracked, jittered_cholesky

MOST_FEATURES = 1500  # beyond, whichever model with the posteriors comes first
MOST_STEPS = 200
TOL = 1e-12  # squared length of a Newton step, in nats a row


def most_probable(objective: Objective, natural: Statistics, near: Statistics) -> Any:
    """Parameters of the model of greatest likelihood with the posteriors of η, ``natural``, by Newton's method; another
    η that is finite, such as that of the closed form, is ``near``."""
    family = objective.family
    parameters = family.from_natural(natural)
    if not can(family, "Newton's method"):
        return parameters
    form = MinimalForm(family, objective.some, objective.labels)
    n_features = form.width - 1 + form.map.shared
    if not 0 < n_features <= MOST_FEATURES:
        return parameters
    t = _over_classes(form, form.sums(objective.labels)) / objective.total_weight
    beta = form.coefficients(natural)
    beta = beta + _of_all(form, _over_classes(form, form.coefficients(near) - beta) / _counts(form))

    def loss(c: Array) -> tuple[float, Any]:
        moved = form.natural(beta + _of_all(form, c))
        if not form.map.is_inside(moved):
            return np.inf, None
        try:
            return family.log_partition(moved) - t @ c, family.from_natural(moved)
        except np.linalg.LinAlgError:  # inside but for rounding
            return np.inf, None

    c = np.zeros(n_features)
    value, nearer = loss(c)
    if nearer is None:
        beta = form.coefficients(family.natural_parameters(parameters))
        value, _ = loss(c)
    else:
        parameters = nearer
    for _ in range(MOST_STEPS):
        mean, covariance = _over_rows(form, parameters)
        states = is_state(covariance.diagonal(), mean)
        curvature = partial(_with_diagonal, covariance)
        step = within_reach(curvature, t - mean, states)[0].solve(t - mean)
        slope = float((mean - t) @ step)
        end = backtracked(loss, c, value, step, slope) if slope < -TOL else None
        if end is None:
            break
        _, c, value, parameters = end
    return parameters


def _with_diagonal(covariance: Array, more: Array) -> Factor:
    return jittered_cholesky(covariance + np.diag(more))


def _over_classes(form: MinimalForm, vector: Array) -> Array:
    """Sums over the classes for the own features, without the constant, and the entries of the shared ones."""
    return np.concatenate([form.by_class(vector).sum(axis=0)[1:], vector[form.r * form.width :]])


def _of_all(form: MinimalForm, c: Array) -> Array:
    """The vector β of coefficients that all classes share."""
    own, shared = np.split(c, [form.width - 1])
    return np.concatenate([np.tile(np.append(0.0, own), form.r), shared])


def _counts(form: MinimalForm) -> Array:
    """Of how many entries each is the sum over the classes."""
    return np.append(np.full(form.width - 1, float(form.r)), np.ones(form.map.shared))


def _over_rows(form: MinimalForm, parameters: Any) -> tuple[Array, Array]:
    """Mean and covariance of the features under p(x)."""
    centres, covariances = form.map.moments(parameters)
    prior = np.exp(parameters.log_prior)
    mean = prior @ centres
    apart = centres - mean
    return mean, np.einsum("y,yab->ab", prior, covariances) + (apart * prior[:, None]).T @ apart
