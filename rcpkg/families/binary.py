"""Naive Bayes for binary features, such as whether a word occurs: two states each, from counts of the ones alone."""

from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array, constructed
from rcpkg.checks import check_number
from rcpkg.families._docs import documented
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.count_model import ROUNDING, CategoricalParameters, StateFeatures
from rcpkg.families.counts import CategoricalFamily, CategoricalSettings
from rcpkg.families.family import Family
from rcpkg.families.named_categories import CategoricalClassifier
from rcpkg.families.statistics import Statistics


@constructed
class BernoulliSettings(CategoricalSettings):
    """Settings of naive Bayes for binary features."""

    binarize: float | None = 0.0
    prior_strength: float | ArrayLike = 0.0
    n_states: None = field(init=False, default=None)
    unknown: str = field(init=False, default="skip")  # NaN, and under ML a state that no row has


class BernoulliFamily(BernoulliSettings, CategoricalFamily):
    """Naive Bayes for binary features: b_j = 1 where x_j > ``binarize``."""

    same_form = Family.same_form

    def prepare(self, X: Array | csr_array) -> None:
        Family.prepare(self, X)
        if self.binarize is not None:
            check_number("binarize", self.binarize, -np.inf)
        self._states = [np.arange(2)] * X.shape[1]
        self.n_states_ = np.full(X.shape[1], 2)

    def extend_statistics(self, X: Array | csr_array, statistics: Statistics) -> Statistics:
        return statistics

    def encode(self, X: Array | csr_array) -> tuple[csr_array, csr_array]:
        """Which entries are one, and which are missing."""
        threshold = 0.0 if self.binarize is None else self.binarize
        if issparse(X) and threshold < 0:
            raise ValueError(f"binarize must be >= 0 for sparse rows, whose zeros are not stored; got {threshold!r}")
        values = X.data if issparse(X) else X
        missing, ones = np.isnan(values), values > threshold
        if self.binarize is None and np.any(bad := (values != 0) & (values != 1) & ~missing):
            j = X.indices[np.argmax(bad)] if issparse(X) else int(np.argmax(bad.any(axis=0)))
            raise ValueError(f"{self._feature_name(j)} holds values other than 0 and 1; set binarize to a threshold")
        if issparse(X):
            return _selected(X, ones), _selected(X, missing)
        return _marked(ones), _marked(missing)

    def statistics(self, X: Array | csr_array | tuple, weights: Array) -> Statistics:
        """Class counts (r,) and cell counts (r, 2d): zeros are the rows of a class but for ones and missing values."""
        if not isinstance(X, tuple):
            if not hasattr(self, "n_states_"):
                self.prepare(X)
            X = self.encode(X)
        ones, missing = X
        count, one = weights.sum(axis=0), (ones.T @ weights).T
        zero = count[:, None] - one
        if missing.nnz:
            zero -= (missing.T @ weights).T
        zero[np.abs(zero) <= ROUNDING * np.abs(weights).sum(axis=0)[:, None]] = 0.0
        return Statistics(count=count, cells=np.stack([zero, one], axis=2).reshape(len(count), -1))

    def log_joint(self, X: Array | csr_array | tuple, parameters: CategoricalParameters) -> Array:
        """log p(y) + Σ_j log p(b_j | y), over the features that are not missing."""
        X = X if isinstance(X, tuple) else self.encode(X)
        log_prob = self._counted(parameters.log_prob)
        zero = np.isneginf(log_prob)
        joint = _summed(X, np.where(zero, 0.0, log_prob)) + parameters.log_prior
        if zero.any():
            joint[_summed(X, zero.astype(float)) > 0.5] = -np.inf
        return joint

    def expected_rows(self, X: Array | csr_array, weights: Array, parameters: CategoricalParameters) -> Array:
        """Probability that each feature is one, (n, d): Σ_y W_iy p(1 | y) where it is missing."""
        ones, missing = self.encode(X)
        filled = ones.toarray()
        there = missing.toarray() > 0
        filled[there] = (weights @ np.exp(parameters.log_prob[:, 1::2]))[there]
        return filled

    def scores(self, X: Array | csr_array | tuple, natural: Statistics) -> Array:
        """η_y + Σ of the η of what is counted."""
        return _summed(X if isinstance(X, tuple) else self.encode(X), natural.cells) + natural.count

    def feature_map(
        self, X: tuple, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> "BinaryFeatures":
        """The entries that are one; for the minimal ones only of features that have both states."""
        total = statistics.cells.sum(axis=0) if kind == "minimal" else np.ones(2 * X[0].shape[1])
        return BinaryFeatures(X[0], total)

    def check_complete(self, X: tuple[csr_array, csr_array]) -> None:
        if X[1].nnz:
            self._refuse_missing(int(X[1].indices[0]))


@documented()
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
        Pseudo-rows m₀ ≥ 0 of each conditional distribution, half of them a state; 0 is maximum likelihood.
    %(class_prior_strength or none)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, 2d), states 0 and 1 of each feature in turn.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, 2d); None while the rows of ``partial_fit`` do not suffice.
    n_states_ : array of shape (d,)
        Twos.

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


class BinaryFeatures(StateFeatures):
    """Whether binary features are one, where both states occur; one that is always one has that state for reference."""

    def __init__(self, ones: csr_array, total: Array) -> None:
        super().__init__(ones, total, np.arange(0, len(total), 2), "minimal")
        both = ~self.unused[::2] & ~self.unused[1::2]
        self.reference = 2 * np.arange(len(both)) + self.unused[::2]
        self._keep(np.flatnonzero(both) * 2 + 1)

    @cached_property
    def table(self) -> csr_array:  # type: ignore[override]
        self._hold(self.rows if 2 * self.own == len(self.group) else self.rows[:, self.kept // 2])
        return self.__dict__["table"]


def _marked(entries: NDArray[np.bool_]) -> csr_array:
    """Indicators of the entries that are true."""
    starts = np.concatenate([[0], entries.sum(axis=1).cumsum()])
    columns = np.broadcast_to(np.arange(entries.shape[1], dtype=np.int32), entries.shape)[entries]
    return csr_array((np.ones(len(columns)), columns, starts), shape=entries.shape)


def _selected(X: csr_array, entries: NDArray[np.bool_]) -> csr_array:
    """Indicators of some of the entries that a sparse array stores."""
    starts = np.concatenate([[0], np.cumsum(entries)])[X.indptr].astype(X.indptr.dtype)
    return csr_array((np.ones(starts[-1]), X.indices[entries], starts), shape=X.shape)


def _summed(X: tuple[csr_array, csr_array], terms: Array) -> Array:
    """Σ_j of the terms (r, 2d) of the states that binary features have, missing ones left out: shape (n, r)."""
    ones, missing = X
    of_zero, of_one = terms[:, ::2], terms[:, 1::2]
    total = ones @ (of_one - of_zero).T + of_zero.sum(axis=1)
    return total - missing @ of_zero.T if missing.nnz else total
