"""Why this prediction: what the posterior says of a row some of whose features are hidden.

A joint model sums hidden features out, so that p(y | x_S), S being the features that are seen, is exact: nothing is
filled in and nothing drawn. By coherence it is also the mean of p(y | x) over what the hidden ones may be.
"""

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from rcpkg.base import GenerativeClassifier
from rcpkg.capabilities import MARGINALS, require
from rcpkg.checks import check_choice, check_number
from rcpkg.linalg import Array, slices

LARGEST_TABLE = 2**15  # rows, with features hidden, of which a model is asked at a time
MOST_FEATURES = 16  # where all sets of them are taken


class Sufficient(NamedTuple):
    """Sets of features, shape (n, d), and the posterior that each gives to the class predicted, shape (n,)."""

    features: NDArray[np.bool_]
    probability: Array


def contributions(model: GenerativeClassifier, X: ArrayLike, method: str = "hidden") -> Array:
    """How far each feature of a row moves the log posterior of each class.

    "hidden": log p(y | x) − log p(y | x without x_j), the others being known. "shapley": the mean of
    log p(y | x_S, x_j) − log p(y | x_S) over all orders in which features may become known, S being those before j;
    these add up to log p(y | x) − log p(y).

    Parameters
    ----------
    model : GenerativeClassifier
        A fitted one with marginals.
    X : array-like of shape (n, d)
        Rows; what is missing already contributes nothing.
    method : {"hidden", "shapley"}, default="hidden"
        The latter takes all 2^d sets of at most 16 features.

    Returns
    -------
    array of shape (n, d, r)
        In nats; the difference between two classes is the contribution to their log odds.

    Raises
    ------
    ValueError
        Where a class has the posterior zero, or the features are too many.

    References
    ----------
    Robnik-Šikonja and Kononenko (2008), Štrumbelj and Kononenko (2010), with the marginals of the model in place of
    approximations.
    """
    X = _table(model, X)
    check_choice("method", method, ("hidden", "shapley"))
    d, values = X.shape[1], []
    if method == "hidden":
        log_P = _finite_log_posteriors(model, X, ~np.eye(d + 1, d, dtype=bool))
        return (log_P[-1] - log_P[:-1]).swapaxes(0, 1)
    if d > MOST_FEATURES:
        raise ValueError(f"X has {d} features: method='shapley' takes all 2^d sets of at most {MOST_FEATURES}")
    sets = np.arange(2**d)
    seen = (sets[:, None] >> np.arange(d)) % 2 == 1
    weight = np.array([1 / (d * comb(d - 1, size)) for size in range(d)])[np.minimum(seen.sum(axis=1), d - 1)]
    for rows in slices(max(1, len(X)), max(1, LARGEST_TABLE >> d)):  # no rows: the model refuses them
        log_P = _finite_log_posteriors(model, X.iloc[rows], seen)
        without = [sets[~seen[:, j]] for j in range(d)]
        gains = [np.tensordot(weight[S], log_P[S + 2**j] - log_P[S], 1) for j, S in enumerate(without)]
        values.append(np.stack(gains, axis=1))
    return np.concatenate(values)


def sufficient_sets(
    model: GenerativeClassifier, X: ArrayLike, level: float = 0.95, max_size: int | None = None
) -> Sufficient:
    """Smallest sets S of features that alone give p(c | x_S) ≥ ``level`` to the class c predicted from the whole row.

    Of several the one with the greatest posterior. Under the model, the probability that the other features bring
    p(c | x) down to t or less is then at most (1 − level)/(1 − t).

    Parameters
    ----------
    model : GenerativeClassifier
        A fitted one with marginals.
    X : array-like of shape (n, d)
        Rows.
    level : float, default=0.95
        Between 0 and 1.
    max_size : int, optional
        Size of the largest sets that are tried, of which there are d over ``max_size``; all by default.

    Returns
    -------
    Sufficient
        All features, with their posterior, for a row in which no set that was tried is sufficient.

    References
    ----------
    Wang, Khosravi and Van den Broeck (2021), whose expected prediction is the posterior of a joint model.
    """
    X = _table(model, X)
    check_number("level", level, 0, above=True)
    if level >= 1:
        raise ValueError(f"level must be less than 1; got {level!r}")
    if max_size is not None:
        check_number("max_size", max_size, 0, integer=True)
    P, d = model.predict_proba(X), X.shape[1]
    c, probability, left = P.argmax(axis=1), P.max(axis=1), np.arange(len(P))
    features = np.ones((len(P), d), dtype=bool)
    for size in range(d if max_size is None else min(max_size + 1, d)):
        if not len(left):
            break
        sets = np.array(list(combinations(range(d), size)), dtype=np.intp)
        seen = np.zeros((len(sets), d), dtype=bool)
        seen[np.arange(len(sets))[:, None], sets] = True
        posterior = np.exp(_log_posteriors(model, X.iloc[left], seen)[:, np.arange(len(left)), c[left]])
        best, place = posterior.max(axis=0), posterior.argmax(axis=0)
        enough = best >= level
        features[left[enough]], probability[left[enough]] = seen[place[enough]], best[enough]
        left = left[~enough]
    return Sufficient(features, probability)


def _table(model: GenerativeClassifier, X: Any) -> pd.DataFrame:
    """Rows of which features can be hidden, with the names of their columns, if they have any."""
    require(model, MARGINALS)
    return pd.DataFrame(X.toarray() if issparse(X) else X)


def _log_posteriors(model: GenerativeClassifier, X: pd.DataFrame, seen: NDArray[np.bool_]) -> Array:
    """log p(y | x_S), shape (p, n, r), of rows for sets S of features that are ``seen``, shape (p, d)."""
    parts = []
    for some in np.array_split(seen, max(1, -(-len(seen) * len(X) // LARGEST_TABLE))):
        rows = pd.concat([X] * len(some), ignore_index=True).where(np.repeat(some, len(X), axis=0))
        parts.append(model.predict_log_proba(rows).reshape(len(some), len(X), -1))
    return np.concatenate(parts)


def _finite_log_posteriors(model: GenerativeClassifier, X: pd.DataFrame, seen: NDArray[np.bool_]) -> Array:
    log_P = _log_posteriors(model, X, seen)
    if not np.isfinite(log_P).all():
        raise ValueError("X has rows of which a class has the posterior zero: give the model a prior_strength > 0")
    return log_P
