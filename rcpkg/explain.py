"""Why this prediction: what the posterior says of a row some of whose features are hidden.

A joint model sums hidden features out, so that p(y | x_S), S being the features that are seen, is exact: nothing is
filled in and nothing drawn. By coherence it is also the mean of p(y | x) over what the hidden ones may be.
"""

from contextlib import suppress
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import beta
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import GenerativeClassifier
from rcpkg.capabilities import MARGINALS, require
from rcpkg.checks import check_choice, check_number
from rcpkg.columns import in_columns
from rcpkg.linalg import AT_A_TIME, Array, slices
from rcpkg.rows import Rows

#: Sets of features in Shapley values, each a pass over the rows: those of 16 features; half or twice is a feature less
#: or more, and half or twice the time
MOST_SETS = 2**16


class Sufficient(NamedTuple):
    """Sets of features, shape (n, d), and the posterior that each gives to the class predicted, shape (n,)."""

    features: NDArray[np.bool_]
    probability: Array


def contributions(
    model: GenerativeClassifier | Pipeline,
    X: ArrayLike,
    method: Literal["hidden", "shapley"] = "hidden",
    value: Literal["log_proba", "log_odds", "proba"] = "log_proba",
) -> pd.DataFrame:
    r"""How far each feature of a row moves the posterior of each class.

    "hidden": v(all) − v(all but x_j). "shapley": the mean of v(S and j) − v(S) over all orders in which features may
    become known, S being those before j; these add up to v(all) − v(none). The value v(S) is log p(y | x_S); for
    "log_odds" this less its mean over the classes: differences between two classes, the log odds, are the same; for
    "proba" p(y | x_S), which under the model is the mean of p(y | x) over the hidden features given x_S.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        A fitted one with marginals. Of a pipeline, also in `RiskCalibrationCV`, the last step is explained, by the
        features that this step is given, and of `TableClassifier` or a search what it has taken, ``best_estimator_``.
    X : array-like of shape (n, d)
        Rows; what is missing already contributes nothing.
    method : {"hidden", "shapley"}, default="hidden"
    value : {"log_proba", "log_odds", "proba"}, default="log_proba"
        Shapley values of log odds take at most 65,536 sets of features that are connected in the graph of the model (d
        of naive Bayes, d (d + 1)/2 of a chain), those of the others all 2^d sets of at most 16 features.

    Returns
    -------
    DataFrame
        A line for each row and feature, n d in all, and a column for each class, in nats but for "proba".

    References
    ----------
    Robnik-Šikonja and Kononenko (2008), Štrumbelj and Kononenko (2010), with the marginals of the model in place of
    approximations. The formula over connected sets is proved on the page *Exact answers*.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = QDA().fit(X, y)
    >>> explain.contributions(model, X.iloc[[70]]).round(2)
                                0     1     2
    row feature
    70  sepal length (cm)    0.42 -0.40  0.28
        sepal width (cm)    -5.33  1.39 -0.31
        petal length (cm) -123.91  0.27 -0.11
        petal width (cm)   -47.45 -0.27  0.16
    """
    model, X, names = _table(model, X)
    check_choice("method", method, ("hidden", "shapley"))
    check_choice("value", value, ("log_proba", "log_odds", "proba"))
    d, found = X.shape[1], np.empty((*X.shape, len(model.classes_)))
    graph, missing = _dependence(model, X)
    if method == "hidden":
        found[:] = _weighted(model, X, value, ~np.eye(d + 1, d, dtype=bool), np.vstack([-np.eye(d), np.ones(d)]))
    else:
        graph = graph | (value != "log_odds")  # for posteriors all sets
        missing &= not graph.all()  # of which what is missing makes two of the same value
        for pattern in np.unique(missing, axis=0):
            rows = (missing == pattern).all(axis=1)
            found[rows] = _weighted(model, X[rows], value, *_connected_sets(graph, pattern))
    if value == "log_odds":
        found = found - found.mean(axis=2, keepdims=True)
    index = pd.MultiIndex.from_product([X.index, names], names=["row", "feature"])
    return pd.DataFrame(found.reshape(len(index), -1), index, model.classes_)


def _weighted(model: GenerativeClassifier, X: pd.DataFrame, value: str, seen: NDArray[np.bool_], share: Array) -> Array:
    """Σ_S w_Sj v(S), shape (n, d, r), for sets S of features that are ``seen``, whose ``share`` is w, both (s, d)."""
    found: Array | float = 0.0
    for sets in slices(len(seen), max(1, AT_A_TIME // X.size)):
        log_P = _log_posteriors(model, X, seen[sets, None])
        if value != "proba" and not np.isfinite(log_P).all():
            raise ValueError("X has rows of which a class has the posterior zero: give the model a prior_strength > 0")
        found = found + np.tensordot(share[sets], np.exp(log_P) if value == "proba" else log_P, (0, 0))
    return found.swapaxes(0, 1)


def _connected_sets(graph: NDArray[np.bool_], missing: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Array]:
    r"""Sets of features outside of connected ones C, and their shares in Shapley values, both (s, d).

    .. math:: \phi_j = \sum_{\partial C \ni j} \frac{(b-1)!\,c!}{(b+c)!}\, w_C - \sum_{C \ni j}
              \frac{b!\,(c-1)!}{(b+c)!}\, w_C, \qquad w_C = v(-C) - v(\text{all}),

    over the connected sets C of c features, with b in the boundary ∂C. For log odds v(S) = log p(y | x_S) stands in the
    place of log p(x_S | y): they differ by what all classes share. In a graph that joins all features it is the
    definition for any v. What is ``missing`` is summed out: its neighbours are joined.
    """
    one, before = np.eye(len(graph), dtype=bool), np.tri(len(graph), k=-1, dtype=bool)
    joined = graph & ~one
    for j in np.flatnonzero(missing):
        joined |= np.outer(joined[j], joined[j]) & ~one
        joined[j] = joined[:, j] = False
    # a set grows by a feature of its boundary, and what comes before this one there is barred: each is met once
    C, edge, barred = one[~missing], joined[~missing], before[~missing]
    found, n_sets = [np.zeros((2, 1, len(graph)), dtype=bool)], 1 + len(C)  # of the empty set
    while len(C):
        found.append(np.stack([C, edge]))
        grown, j = (edge & ~barred).nonzero()
        if (n_sets := n_sets + len(grown)) > MOST_SETS:
            raise ValueError(
                f"more than {MOST_SETS:,} connected sets of features: Shapley values are exact for 16 features at most "
                "or, by value='log_odds', for any number of features that depend on few others"
            )
        barred = barred[grown] | edge[grown] & before[j]
        C = C[grown] | one[j]
        edge = (edge[grown] | joined[j]) & ~C
    C, edge = np.concatenate(found, axis=1)
    c, b = C.sum(axis=1, keepdims=True), edge.sum(axis=1, keepdims=True)
    share = edge * beta(np.maximum(b, 1), c + 1) - C * beta(b + 1, np.maximum(c, 1))
    share[0] = -share.sum(axis=0)  # of the empty C, in all w_C
    return ~C, share


def sufficient_sets(
    model: GenerativeClassifier | Pipeline, X: ArrayLike, level: float = 0.95, max_size: int | None = None
) -> Sufficient:
    """Smallest sets S of features that alone give p(c | x_S) ≥ ``level`` to the class c predicted from the whole row.

    Of several the one with the greatest posterior. If features are independent given two classes, they are found by
    sorting; elsewhere all sets of a size are tried. Under the model, the probability that the other features bring
    p(c | x) down to t or less is then at most (1 − level)/(1 − t).

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        A fitted one with marginals. Of a pipeline the last step is explained; as in `contributions`.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = QDA().fit(X, y)
    >>> explain.sufficient_sets(model, X.iloc[[0]]).features  # the petal's length says enough
    array([[False, False,  True, False]])
    """
    model, X, _ = _table(model, X)
    check_number("level", level, 0, 1, above=True)
    if max_size is not None:
        check_number("max_size", max_size, 0, integer=True)
    P, d = model.predict_proba(X), X.shape[1]
    c, probability, left = P.argmax(axis=1), P.max(axis=1), np.arange(len(P))
    features, each = np.ones((len(P), d), dtype=bool), np.eye(d, dtype=bool)
    if sums := P.shape[1] == 2 and not (_dependence(model, X)[0] & ~each).any():  # log odds are
        told = np.diff(_log_posteriors(model, X, each[:, None]))[..., 0] * np.where(c == 1, 1, -1)
        ranks = np.argsort(np.argsort(-told.T, axis=1, kind="stable"), axis=1)
    for size in range(d if max_size is None else min(max_size + 1, d)):
        if not len(left):
            break
        if sums:
            seen = ranks[None, left] < size
        else:
            seen = each[np.array([*combinations(range(d), size)], dtype=np.intp)].any(axis=1)[:, None]
        posterior = np.exp(_log_posteriors(model, X.iloc[left], seen)[:, np.arange(len(left)), c[left]])
        best, place = posterior.max(axis=0), posterior.argmax(axis=0)
        enough, seen = best >= level, np.broadcast_to(seen, (len(seen), len(left), d))
        features[left[enough]] = seen[place[enough], enough.nonzero()[0]]
        probability[left[enough]], left = best[enough], left[~enough]
    return Sufficient(features, probability)


def _dependence(model: GenerativeClassifier, X: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which features may depend on each other, without a family any two, (d, d); which values say nothing, (n, d)."""
    rows, d = model._check_X(X), X.shape[1]
    return model.family_.dependence(rows) if hasattr(model, "family_") else (np.ones((d, d), bool), np.isnan(rows))


def _table(model: GenerativeClassifier | Pipeline, X: Any) -> tuple[GenerativeClassifier, pd.DataFrame, Any]:
    """The model, or the last step of a pipeline, its rows as a frame, and the names of their features."""
    check_is_fitted(model)
    if isinstance(X, Rows):
        X = X.only("An explanation").X
    named, model = None, getattr(model, "best_estimator_", model)
    while (is_pipeline := isinstance(model, Pipeline)) or hasattr(model, "preprocessing_"):
        steps, model = (model[:-1], model[-1]) if is_pipeline else (model.preprocessing_, model.estimator_)
        if len(steps):
            X, named = steps.transform(X), None
            if not isinstance(X, pd.DataFrame):
                with suppress(AttributeError):  # of a step that has no names for what it makes
                    named = steps.get_feature_names_out()
    require(model, MARGINALS)
    model._check_X(X)  # which says what is no table
    rows = pd.DataFrame(X.toarray() if issparse(X) else in_columns(X))
    return model, rows, rows.columns if named is None else named


def _log_posteriors(model: GenerativeClassifier, X: pd.DataFrame, seen: NDArray[np.bool_]) -> Array:
    """log p(y | x_S), shape (s, n, r), for sets S of features that are ``seen``: (s, n, d), of all rows (s, 1, d)."""
    parts = []
    for sets in slices(len(seen), max(1, AT_A_TIME // X.size)):
        shown = np.broadcast_to(seen[sets], (len(seen[sets]), *X.shape))
        rows = X.iloc[np.tile(np.arange(len(X)), len(shown))].where(shown.reshape(-1, X.shape[1]))
        parts.append(model.predict_log_proba(rows).reshape(*shown.shape[:2], -1))
    return np.concatenate(parts)
