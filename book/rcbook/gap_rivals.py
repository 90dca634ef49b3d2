"""Rows with gaps for classifiers that cannot sum them out: gaps made, filled in, or shown in training (chapter 13)."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics.pairwise import nan_euclidean_distances

from rcpkg.base import Array
from rcpkg.linalg import slices

GROUPS = 5  # of neighbouring columns that are lost together
ROUNDS = 5  # of chained regressions
DRAWS, DONORS = 5, 10  # of multiple imputation; nearest rows among which a donor is drawn
TIED = 1e-9  # share of the largest squared distance by which rounding may move one
BLOCK_ENTRIES = 2**20  # of the distances computed at once


# Gaps ----------------------------------------------------------------------------------------------

Mechanism = Callable[[Array, float, np.random.Generator], NDArray[np.bool_]]


def at_random(X: Array, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Each value is lost with the same probability."""
    return rng.uniform(size=X.shape) < share


def in_groups(X: Array, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Neighbouring columns, in at most `GROUPS` groups of about one size, are lost together."""
    n, d = X.shape
    groups = min(GROUPS, d)
    return (rng.uniform(size=(n, groups)) < share)[:, np.arange(d) * groups // d]


def by_value(X: Array, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """One feature, drawn at random, is always there; the others are lost with 2 ``share`` times its rank in (0, 1)."""
    n, d = X.shape
    reason = rng.integers(d)
    rank = (rankdata(X[:, reason]) - 0.5) / n
    lost = rng.uniform(size=(n, d)) < 2 * share * rank[:, None]
    lost[:, reason] = False
    return lost


def masked(X: Array, lost: NDArray[np.bool_]) -> Array:
    """The rows with NaN for what is lost."""
    return np.where(lost, np.nan, X)


# Codes ---------------------------------------------------------------------------------------------


def indicators(codes: Array, n_states: NDArray[np.intp]) -> Array:
    """One-hot rows of codes; NaN in all columns of a feature that is missing."""
    parts = [
        np.where(np.isnan(column)[:, None], np.nan, column[:, None] == np.arange(k))
        for column, k in zip(codes.T, n_states, strict=True)
    ]
    return np.hstack(parts)


def most_probable(rows: Array, n_states: NDArray[np.intp]) -> Array:
    """The code of the greatest indicator of each feature."""
    parts = np.split(rows, np.cumsum(n_states)[:-1], axis=1)
    return np.column_stack([part.argmax(axis=1) for part in parts]).astype(float)


# Values filled in ------------------------------------------------------------------------------------


def mean_filled(add_indicator: bool = False) -> SimpleImputer:
    """Means of the training rows, of indicators the shares of the states; on request with columns that tell gaps."""
    return SimpleImputer(keep_empty_features=True, add_indicator=add_indicator)


def chained(draws: bool = False, random_state: int = 0) -> IterativeImputer:
    """Chained Bayesian linear regressions; ``draws``: one draw from each.

    With its default ``tol`` the imputer would stop after one round if the training rows have no gap.
    """
    return IterativeImputer(
        max_iter=ROUNDS, tol=0.0, sample_posterior=draws, keep_empty_features=True, random_state=random_state
    )


class ChainedStates(BaseEstimator):
    """`chained` for indicators: those of each feature by ridge regression on those of the *other* features.

    On all other columns a regression would find that the indicators of a feature sum to one, and leave means as means.
    What is filled in are shares: none negative, with the sum one.
    """

    def __init__(self, n_states: NDArray[np.intp], ridge: float = 1.0) -> None:
        self.n_states = n_states
        self.ridge = ridge

    def fit(self, X: Array, y: Any = None) -> Self:
        """Regressions on what is filled in so far, in rounds."""
        self.means_ = mean_filled().fit(X)
        self.sequence_: list[list[Array]] = []
        filled = self.means_.transform(X)
        for _ in range(ROUNDS):
            self.sequence_.append([])
            for own in self._columns():
                there = ~np.isnan(X[:, own[0]])
                Z = self._others(filled, own)
                gram = Z[there].T @ Z[there] + self.ridge * np.eye(Z.shape[1])
                slopes = np.linalg.solve(gram, Z[there].T @ X[np.ix_(there, own)])
                self.sequence_[-1].append(slopes)
                filled[np.ix_(~there, own)] = self._shares(Z[~there] @ slopes)
        return self

    def transform(self, X: Array) -> Array:
        """The regressions in the same order."""
        filled = self.means_.transform(X)
        for slopes_of_round in self.sequence_:
            for own, slopes in zip(self._columns(), slopes_of_round, strict=True):
                gaps = np.isnan(X[:, own[0]])
                filled[np.ix_(gaps, own)] = self._shares(self._others(filled[gaps], own) @ slopes)
        return filled

    def _columns(self) -> list[NDArray[np.intp]]:
        return np.split(np.arange(self.n_states.sum()), np.cumsum(self.n_states)[:-1])

    @staticmethod
    def _others(filled: Array, own: NDArray[np.intp]) -> Array:
        return np.column_stack([np.ones(len(filled)), np.delete(filled, own, axis=1)])

    @staticmethod
    def _shares(values: Array) -> Array:
        shares = np.maximum(values, 1e-6)
        return shares / shares.sum(axis=1, keepdims=True)


class HotDeck(BaseEstimator):
    """What a row lacks is taken from one of the `DONORS` training rows that are nearest in what it has.

    What the donor lacks as well is filled by the mean.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Any = None) -> Self:
        """Keep the rows."""
        self.donors_ = X
        self.rng_ = np.random.default_rng(self.random_state)
        self.means_ = mean_filled().fit(X)
        return self

    def transform(self, X: Array) -> Array:
        """One draw for each row, another at each call; a row without any value gets any donor."""
        rng = self.rng_
        filled = X.copy()
        gaps = np.flatnonzero(np.isnan(X).any(axis=1))
        if len(gaps):
            distances = nan_euclidean_distances(X[gaps], self.donors_)
            distances = np.where(np.isnan(distances), np.inf, distances) + 1e-9 * rng.uniform(size=distances.shape)
            most = min(DONORS, len(self.donors_))
            nearest = np.argpartition(distances, most - 1, axis=1)[:, :most]
            nothing = np.isnan(X[gaps]).all(axis=1)
            nearest[nothing] = rng.integers(len(self.donors_), size=(nothing.sum(), most))
            donor = nearest[np.arange(len(gaps)), rng.integers(most, size=len(gaps))]
            filled[gaps] = np.where(np.isnan(X[gaps]), self.donors_[donor], X[gaps])
        return self.means_.transform(filled)


# Classifiers -----------------------------------------------------------------------------------------


class NeighboursWithGaps(ClassifierMixin, BaseEstimator):
    """(k p + π)/(k + 1), p the shares of classes among the k nearest rows in what both have, π those of all rows.

    Rows as far off as the k-th, of which there are many among categories, share the votes that are left.
    """

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Array, y: NDArray) -> Self:
        """Keep the rows."""
        self.classes_ = np.unique(y)
        self.rows_, self.labels_ = X, (y[:, None] == self.classes_).astype(float)
        self.prior_ = self.labels_.mean(axis=0)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Of any rows; π where nothing is there."""
        P, k = np.tile(self.prior_, (len(X), 1)), min(self.n_neighbors, len(self.rows_))
        something = np.flatnonzero(~np.isnan(X).all(axis=1))
        for part in slices(len(something), -(-BLOCK_ENTRIES // len(self.rows_))):
            index = something[part]
            P[index] = (self._votes(X[index], k) + self.prior_) / (k + 1)
        return P

    def _votes(self, X: Array, k: int) -> Array:
        """Votes of the k nearest rows, shape (n, r)."""
        D = nan_euclidean_distances(X, self.rows_, squared=True)
        D[np.isnan(D)] = np.inf  # nothing in common
        last = np.partition(D, k - 1, axis=1)[:, k - 1, None]
        rounding = TIED * D.max(axis=1, keepdims=True, initial=0.0, where=np.isfinite(D))
        nearer = last - rounding > D
        level = (last + rounding >= D) & ~nearer
        left = (k - nearer.sum(axis=1, keepdims=True)) / level.sum(axis=1, keepdims=True)
        return nearer @ self.labels_ + left * (level @ self.labels_)
