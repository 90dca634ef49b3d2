"""Why this prediction: what the posterior says of a row some of whose features are hidden.

A joint model sums hidden features out, so that p(y | x_S), S being the features that are seen, is exact: nothing is
filled in and nothing drawn. By coherence it is also the mean of p(y | x) over what the hidden ones may be.
"""

from itertools import combinations
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import gammaln, log_softmax
from sklearn.pipeline import Pipeline

from rcpkg.base import GenerativeClassifier
from rcpkg.capabilities import MARGINALS, require
from rcpkg.checks import check_choice, check_number
from rcpkg.linalg import Array, slices

LARGEST_TABLE = 2**15  # rows, with features hidden, of which a model is asked at a time
MOST_FEATURES = 16  # where all sets of them are taken
MOST_SETS = 2**MOST_FEATURES  # that are connected


class Contributions(np.ndarray):
    """An array of shape (n, d, r) that knows what its axes are called: ``features`` and ``classes``."""

    features: NDArray[Any]
    classes: NDArray[Any]

    def frame(self, row: int = 0) -> pd.DataFrame:
        """The contributions to one row: one line a feature, one column a class."""
        return pd.DataFrame(np.asarray(self[row]), index=self.features, columns=self.classes)

    def __array_finalize__(self, other: Any) -> None:
        self.features, self.classes = getattr(other, "features", None), getattr(other, "classes", None)


class Sufficient(NamedTuple):
    """Sets of features, shape (n, d), and the posterior that each gives to the class predicted, shape (n,)."""

    features: NDArray[np.bool_]
    probability: Array


def contributions(
    model: GenerativeClassifier | Pipeline,
    X: ArrayLike,
    method: Literal["hidden", "shapley"] = "hidden",
    value: Literal["log_proba", "log_odds", "proba"] = "log_proba",
) -> Contributions:
    r"""How far each feature of a row moves the posterior of each class.

    "hidden": v(all) − v(all but x_j). "shapley": the mean of v(S and j) − v(S) over all orders in which features may
    become known, S being those before j; these add up to v(all) − v(none). The value v(S) is log p(y | x_S); for
    "log_odds" this less its mean over the classes: differences between two classes, the log odds, are the same; for
    "proba" p(y | x_S), which under the model is the mean of p(y | x) over the hidden features given x_S.

    Shapley values of log odds need but the sets C of features that are connected in the graph of the model, in which
    features are joined that may depend on each other given the class and all others (`Family.graph`):

    .. math:: \phi_j = \sum_{C \ni j} -\frac{b!\,(c-1)!}{(b+c)!}\, w_C
              + \sum_{\partial C \ni j} \frac{(b-1)!\,c!}{(b+c)!}\, w_C,
              \qquad w_C = \log p(x_{-C} \mid y) - \log p(x \mid y),

    with c features in C and b in its boundary ∂C. Of naive Bayes these are d sets, of a chain d (d + 1)/2.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        A fitted one with marginals. Of a pipeline the last step is explained, by the features that this step is given.
    X : array-like of shape (n, d)
        Rows; what is missing already contributes nothing.
    method : {"hidden", "shapley"}, default="hidden"
    value : {"log_proba", "log_odds", "proba"}, default="log_proba"
        Shapley values of log odds take at most 65,536 connected sets, those of the others all 2^d sets of at most 16
        features.

    Returns
    -------
    Contributions
        An array of shape (n, d, r), in nats but for "proba", with the names ``features`` and ``classes``; its
        ``frame(row)`` gives the table of one row. Differences between two classes are contributions to their log odds.

    References
    ----------
    Robnik-Šikonja and Kononenko (2008), Štrumbelj and Kononenko (2010), with the marginals of the model in place of
    approximations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> from rcpkg.explain import contributions
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = QDA().fit(X[["sepal width (cm)", "petal width (cm)"]], y)
    >>> contributions(model, X[["sepal width (cm)", "petal width (cm)"]].iloc[[70]]).frame().round(2)
                           0     1     2
    sepal width (cm)   -8.30  0.88 -0.16
    petal width (cm) -117.06  0.09  0.62
    """
    model, X, names = _table(model, X)
    check_choice("method", method, ("hidden", "shapley"))
    check_choice("value", value, ("log_proba", "log_odds", "proba"))
    if method == "hidden":
        v = _values(_log_posteriors(model, X, ~np.eye(X.shape[1] + 1, X.shape[1], dtype=bool)), value)
        found = (v[-1] - v[:-1]).swapaxes(0, 1)
    elif value == "log_odds" and not _graph(model, X.shape[1]).all():
        found = _over_connected_sets(model, X)
    else:
        found = _over_all_sets(model, X, value)
    named = (found - found.mean(axis=2, keepdims=True) if value == "log_odds" else found).view(Contributions)
    named.features, named.classes = np.asarray(names), model.classes_
    return named


def shapley_values(values: Array) -> Array:
    r"""Shapley values of any function v of sets, :math:`\phi_j = \sum_{S \not\ni j} \frac{|S|!\,(d-1-|S|)!}{d!}
    [v(S \cup j) - v(S)]`.

    Parameters
    ----------
    values : array of shape (2^d, ...)
        v(S) of all sets S of d features, each at the number whose bits are S: first that of no feature.

    Returns
    -------
    array of shape (d, ...)
    """
    sets, d = np.arange(len(values)), len(values).bit_length() - 1
    size = np.bitwise_count(sets).astype(np.intp)
    weight = np.array([1 / (d * comb(d - 1, k)) for k in range(d)])[np.minimum(size, d - 1)]
    without = [sets[(sets >> j) % 2 == 0] for j in range(d)]
    return np.stack([np.tensordot(weight[S], values[S + 2**j] - values[S], 1) for j, S in enumerate(without)])


def _over_all_sets(model: GenerativeClassifier, X: pd.DataFrame, value: str) -> Array:
    """Shapley values by their definition."""
    d = X.shape[1]
    if d > MOST_FEATURES:
        raise ValueError(
            f"X has {d} features: Shapley values of {'log ' * (value != 'proba')}posteriors take all 2^d sets of at "
            f"most {MOST_FEATURES}; value='log_odds' takes fewer where features depend on few others"
        )
    parts = slices(max(1, len(X)), max(1, LARGEST_TABLE >> d))  # no rows: the model refuses them
    found = [shapley_values(_values(_of_all_sets(model, X.iloc[rows]), value)) for rows in parts]
    return np.concatenate(found, axis=1).swapaxes(0, 1)


def _values(log_P: Array, value: str) -> Array:
    """The values of sets, from the log posteriors that they give."""
    return np.exp(log_P) if value == "proba" else _finite(log_P)


def _of_all_sets(model: GenerativeClassifier, X: pd.DataFrame) -> Array:
    """log p(y | x_S), shape (2^d, n, r), of all sets S, the bits of their numbers; a family may know a faster way."""
    d, rows, family = X.shape[1], model._check_X(X), getattr(model, "family_", None)
    if hasattr(family, "log_joint_of_sets") and not _missing(model, X).any():
        while hasattr(model, "estimator_"):  # of a calibrated one the joint model
            model = model.estimator_
        return log_softmax(family.log_joint_of_sets(rows, model._fitted_parameters()), axis=2)
    return _log_posteriors(model, X, (np.arange(2**d)[:, None] >> np.arange(d)) % 2 == 1)


def _over_connected_sets(model: GenerativeClassifier, X: pd.DataFrame) -> Array:
    """Shapley values of log odds: of log p(y | x_S) but for a term that is the same for all classes."""
    missing, graph = _missing(model, X), _graph(model, X.shape[1])
    found = np.zeros((*X.shape, len(model.classes_)))
    patterns, of_row = np.unique(missing, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(of_row.ravel() == k)
        inside, edge = _connected_sets(graph, pattern)
        c, b = inside.sum(axis=1), edge.sum(axis=1)
        joins, leaves = (
            np.exp(gammaln(i) + gammaln(j) - gammaln(b + c + 1)) for i, j in ((np.maximum(b, 1), c + 1), (b + 1, c))
        )
        share = edge * joins[:, None] - inside * leaves[:, None]
        for part in slices(len(rows), max(1, LARGEST_TABLE // len(inside))):
            log_P = _finite(_log_posteriors(model, X.iloc[rows[part]], np.vstack([~inside, ~pattern])))
            found[rows[part]] = np.einsum("sd,snr->ndr", share, log_P[:-1] - log_P[-1])
    return found


def _connected_sets(
    graph: NDArray[np.bool_], missing: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Connected sets of features that are not ``missing``, and their boundaries, both of shape (s, d).

    What is missing is summed out: its neighbours are joined.
    """
    joined = graph & ~np.eye(len(graph), dtype=bool)
    for j in np.flatnonzero(missing):
        joined |= np.outer(joined[j], joined[j])
        joined[j] = joined[:, j] = False
    np.fill_diagonal(joined, False)
    near = [sum(1 << int(k) for k in np.flatnonzero(row)) for row in joined]  # sets are the bits of integers
    found = []
    to_grow = [(1 << int(j), near[j], (2 << int(j)) - 1) for j in np.flatnonzero(~missing)]
    while to_grow:  # a set grows by neighbours that no set before it has taken, so that each is found once
        inside, edge, taken = to_grow.pop()
        found.append((inside, edge))
        if len(found) > MOST_SETS:
            raise ValueError(
                f"the graph of the model has more than {MOST_SETS:,} connected sets of features: Shapley values are "
                "exact for fewer features, or for features that depend on fewer others"
            )
        open_ = edge & ~taken
        while open_:
            bit = open_ & -open_
            open_ ^= bit
            taken |= bit
            grown = inside | bit
            to_grow.append((grown, (edge | near[bit.bit_length() - 1]) & ~grown, taken))
    bits = np.array([[(s >> j) & 1 for s in of for j in range(len(graph))] for of in found], dtype=bool)
    inside, edge = bits.reshape(len(found), 2, len(graph)).swapaxes(0, 1)
    return inside, edge


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
        A fitted one with marginals. Of a pipeline the last step is explained.
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
    >>> from rcpkg import QDA
    >>> from rcpkg.explain import sufficient_sets
    >>> X, y = load_iris(return_X_y=True)
    >>> found = sufficient_sets(QDA().fit(X, y), X[[0]])
    >>> found.features, found.probability.round(3)  # the petal's length says enough
    (array([[False, False,  True, False]]), array([1.]))
    """
    model, X, _ = _table(model, X)
    check_number("level", level, 0, above=True)
    if level >= 1:
        raise ValueError(f"level must be less than 1; got {level!r}")
    if max_size is not None:
        check_number("max_size", max_size, 0, integer=True)
    P, d = model.predict_proba(X), X.shape[1]
    c, probability, left = P.argmax(axis=1), P.max(axis=1), np.arange(len(P))
    features = np.ones((len(P), d), dtype=bool)
    ranks = _ranks_of_evidence(model, X, c)
    for size in range(d if max_size is None else min(max_size + 1, d)):
        if not len(left):
            break
        if ranks is None:
            sets = np.array(list(combinations(range(d), size)), dtype=np.intp)
            seen = np.zeros((len(sets), 1, d), dtype=bool)
            seen[np.arange(len(sets))[:, None], 0, sets] = True
        else:
            seen = ranks[None, left] < size
        posterior = np.exp(_log_posteriors(model, X.iloc[left], seen)[:, np.arange(len(left)), c[left]])
        best, place = posterior.max(axis=0), posterior.argmax(axis=0)
        enough = best >= level
        of_row = np.arange(len(left)) if ranks is not None else np.zeros(len(left), dtype=np.intp)
        features[left[enough]], probability[left[enough]] = seen[place, of_row][enough], best[enough]
        left = left[~enough]
    return Sufficient(features, probability)


def _ranks_of_evidence(model: GenerativeClassifier, X: pd.DataFrame, c: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Ranks (n, d) of the features by what they tell for the classes c, if there are two and features are independent
    given them: log odds are sums, so that the first k are the best set of k. None elsewhere."""
    d = X.shape[1]
    if len(model.classes_) > 2 or (_graph(model, d) & ~np.eye(d, dtype=bool)).any():
        return None
    log_P = _log_posteriors(model, X, np.eye(d, dtype=bool))
    told = np.where(c == 1, 1, -1) * (log_P[..., 1] - log_P[..., 0])
    return np.argsort(np.argsort(-told.T, axis=1, kind="stable"), axis=1)


def _graph(model: GenerativeClassifier, d: int) -> NDArray[np.bool_]:
    """The graph of the family of a model; without one any two features may depend on each other."""
    family = getattr(model, "family_", None)
    return np.ones((d, d), dtype=bool) if family is None else family.graph(d)


def _missing(model: GenerativeClassifier, X: pd.DataFrame) -> NDArray[np.bool_]:
    """Which values say nothing, (n, d)."""
    rows, family = model._check_X(X), getattr(model, "family_", None)
    return np.isnan(rows) if family is None else family.missing(rows)


def _table(model: GenerativeClassifier | Pipeline, X: Any) -> tuple[GenerativeClassifier, pd.DataFrame, Any]:
    """The model, which may be the last step of a pipeline, and rows of which its features can be hidden, and the
    names of these."""
    named = None
    if isinstance(model, Pipeline):
        X, named, model = model[:-1].transform(X), model[:-1].get_feature_names_out(), model[-1]
    require(model, MARGINALS)
    rows = pd.DataFrame(X.toarray() if issparse(X) else X)
    return model, rows, rows.columns if named is None else named


def _log_posteriors(model: GenerativeClassifier, X: pd.DataFrame, seen: NDArray[np.bool_]) -> Array:
    """log p(y | x_S), shape (p, n, r), of rows for sets S of features that are ``seen``, shape (p, d) or, where each
    row has sets of its own, (p, n, d)."""
    seen = seen[:, None] if seen.ndim == 2 else seen
    parts = []
    for some in np.array_split(seen, max(1, -(-len(seen) * len(X) // LARGEST_TABLE))):
        shown = np.broadcast_to(some, (len(some), *X.shape)).reshape(-1, X.shape[1])
        rows = pd.concat([X] * len(some), ignore_index=True).where(shown)
        parts.append(model.predict_log_proba(rows).reshape(len(some), len(X), -1))
    return np.concatenate(parts)


def _finite(log_P: Array) -> Array:
    if not np.isfinite(log_P).all():
        raise ValueError("X has rows of which a class has the posterior zero: give the model a prior_strength > 0")
    return log_P
