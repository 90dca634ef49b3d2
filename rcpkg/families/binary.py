"""Naive Bayes for binary features, such as whether a word occurs: two states each, of which the ones are stored."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, issparse

from rcpkg.base import Array, constructed
from rcpkg.checks import check_number, gaps_refused
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.cliques import TableFeatures
from rcpkg.families.count_model import CategoricalParameters
from rcpkg.families.family import Family
from rcpkg.families.named_categories import CategoricalClassifier
from rcpkg.families.networks import STATE_OF_GAPS, CategoricalFamily, CategoricalSettings
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import ROUNDING


class BinaryIndicators:
    """Indicators (n, 2d) of the states 0 and 1 of each feature in turn, of which are stored which entries are ``ones``
    and which are ``missing``, both (n, d): the zeros are all others."""

    __array_ufunc__ = None  # products from the left, too, are those below

    def __init__(self, ones: csr_array, missing: csr_array) -> None:
        self.ones, self.missing, self.shape = ones, missing, (ones.shape[0], 2 * ones.shape[1])

    def __getitem__(self, rows: Any) -> BinaryIndicators:
        return BinaryIndicators(self.ones[rows], self.missing[rows])

    def __matmul__(self, terms: Array) -> Array:
        """Sums (n, r) of the ``terms`` (2d, r) of the states that the rows have, 0 · (−∞) being 0."""
        impossible = np.isneginf(terms)
        total = self._product(np.where(impossible, 0.0, terms))
        if impossible.any():
            total[self._product(impossible.astype(float)) > 0.5] = -np.inf
        return total

    def _product(self, terms: Array) -> Array:
        zero, one = terms[::2], terms[1::2]
        total = self.ones @ (one - zero) + zero.sum(axis=0)
        return total - self.missing @ zero if self.missing.nnz else total

    def __rmatmul__(self, weights: Array) -> Array:
        """Counts (r, 2d) of the states by ``weights`` (r, n)."""
        one = weights @ self.ones
        zero = weights.sum(axis=1, keepdims=True) - one
        if self.missing.nnz:
            zero -= weights @ self.missing
        zero[np.abs(zero) <= ROUNDING * np.abs(weights).sum(axis=1, keepdims=True)] = 0.0
        return np.stack([zero, one], axis=2).reshape(len(weights), -1)


@constructed
class BernoulliSettings(CategoricalSettings):
    """Settings of naive Bayes for binary features."""

    binarize: float | None = 0.0
    n_states: None = field(init=False, default=None)


class BernoulliFamily(BernoulliSettings, CategoricalFamily):
    """Naive Bayes for binary features: b_j = 1 where x_j > ``binarize``."""

    def prepare(self, X: Array | csr_array) -> None:
        if self.binarize is not None:
            check_number("binarize", self.binarize, -np.inf)
        super().prepare(X)

    representatives = Family.representatives

    def _find_states(self, known: list[NDArray[np.intp]], X: Array | csr_array) -> list[NDArray[np.intp]]:
        return [np.arange(2)] * X.shape[1]

    def _is_encoded(self, X: Any) -> bool:
        return isinstance(X, BinaryIndicators)

    def encode(self, X: Array | csr_array) -> BinaryIndicators:
        """Which entries are one, and which are missing."""
        threshold = 0.0 if self.binarize is None else self.binarize
        if issparse(X) and threshold < 0:
            raise ValueError(f"binarize must be >= 0 for sparse rows, whose zeros are not stored; got {threshold!r}")
        values = X.data if issparse(X) else X
        missing, ones = np.isnan(values), values > threshold
        if self.binarize is None and np.any(bad := (values != 0) & (values != 1) & ~missing):
            j = X.indices[np.argmax(bad)] if issparse(X) else int(np.argmax(bad.any(axis=0)))
            raise ValueError(f"{self._feature_name(j)} holds values other than 0 and 1; set binarize to a threshold")
        return BinaryIndicators(_indicators(X, ones), _indicators(X, missing))

    _encode_unknown = encode

    def expected_rows(self, X: Array | csr_array, weights: Array, parameters: CategoricalParameters) -> Array:
        """Probability that each feature is one, (n, d): Σ_y W_iy p(1 | y) where it is missing."""
        encoded = self.encode(X)
        filled, gaps = encoded.ones.toarray(), encoded.missing.toarray() > 0
        filled[gaps] = (weights @ np.exp(parameters.log_prob[:, 1::2]))[gaps]
        return filled

    def frozen(self, parameters: CategoricalParameters) -> list[dict[str, Any]]:
        columns, threshold = np.arange(len(self.n_states_)), self.binarize or 0.0
        return [{"kind": "binary", "columns": columns, "binarize": threshold, **parameters._asdict()}]

    def feature_map(
        self, X: BinaryIndicators, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> BinaryFeatures:
        """The entries that are one; for the minimal ones only of features that have both states."""
        unused = statistics.cells.sum(axis=0) <= 0 if kind == "minimal" else np.zeros(X.shape[1], dtype=bool)
        return BinaryFeatures(self.families_, X, np.ravel([~unused[::2], unused[::2]], order="F"), unused)

    def check_complete(self, X: BinaryIndicators) -> None:
        if X.missing.nnz:
            raise gaps_refused(self._feature_name(int(X.missing.indices[0])), STATE_OF_GAPS)


class BinaryFeatures(TableFeatures):
    """Whether features are one: the ones alone are stored."""

    inverts = True

    def _columns(self, X: BinaryIndicators) -> csr_array:
        return X.ones if 2 * self.n_by_class == X.shape[1] else X.ones[:, self.kept // 2]

    def whitened(self, parameters: CategoricalParameters) -> tuple[Array, list[csr_array]]:
        """u = (1 − p)/√p(1 − p) where a feature is one."""
        log_p, log_q = parameters.log_prob[:, self.kept], parameters.log_prob[:, self.kept - 1]
        return np.exp(log_p), [diags_array(scale).tocsr() for scale in np.exp(-0.5 * (log_p + log_q))]


class BernoulliNB(BernoulliSettings, CategoricalClassifier, family=BernoulliFamily):
    """Naive Bayes for binary features: p(x, y) = p(y) ∏_j p(b_j | y), with b_j = 1 where x_j > ``binarize``.

    ML: p(b_j = v | y) = s_{y,j,v} / s_y, from the counts of the two states within a class; MAP:
    (s_{y,j,v} + m₀/2) / (s_y + m₀) with m₀ = ``prior_strength``. It is `CategoricalNB` with two states: a missing
    value (NaN) is skipped in the same way, and so is, under ML, a state that no training row has. Rows may be sparse;
    they are never made dense, an entry that is not stored being zero.

    Parameters
    ----------
    binarize : float or None, default=0.0
        Threshold, in the units of the features, ≥ 0 for sparse rows; None: they are 0 or 1, and all else is refused.
    prior_strength : float or array of shape (d,), default=0.0
        Pseudo-rows m₀ ≥ 0 of each conditional distribution, half of them a state; 0 is maximum likelihood. A feature
        that is missing in all rows of a class has probability 1/2 there.
    class_prior_strength, priors, cost
        As in `CategoricalNB`.

    Attributes
    ----------
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, 2d), states 0 and 1 of each feature in turn.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, 2d); None while the rows of ``partial_fit`` do not suffice.
    n_states_ : array of shape (d,)
        Twos.
    classes_, class_log_prior_
        As in `CategoricalNB`.

    Notes
    -----
    scikit-learn's ``BernoulliNB(alpha=a)`` is ``prior_strength = 2 * a`` with ``class_prior_strength=0.0``. What
    `CategoricalNB` says of missing values in training holds here.

    References
    ----------
    rc2025 §3.1, app. C, with two states.

    Examples
    --------
    >>> from rcpkg import BernoulliNB
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1]]
    >>> y = ["ham", "ham", "spam", "spam"]
    >>> model = BernoulliNB(prior_strength=1.0).fit(X, y)
    >>> model.predict_proba([[1, 0, 0], [0, 1, 0]]).round(3)
    array([[0.938, 0.062],
           [0.107, 0.893]])
    """

    def __sklearn_tags__(self):
        tags = ConjugateClassifier.__sklearn_tags__(self)
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True  # on the Gaussian blobs of check_estimator, which are not binary
        return tags


def _indicators(X: Array | csr_array, entries: NDArray[np.bool_]) -> csr_array:
    """Ones for some of the ``entries`` of an array, or of those that a sparse array stores."""
    if not issparse(X):
        return csr_array(entries, dtype=float)
    starts = np.concatenate([[0], np.cumsum(entries)])[X.indptr].astype(X.indptr.dtype)
    return csr_array((np.ones(starts[-1]), X.indices[entries], starts), shape=X.shape)
