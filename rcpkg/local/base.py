"""What the classifiers of a neighbourhood share: fit, the choice of k by leave-one-out, prediction in batches."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import SquareableRows, constructed, log_posterior
from rcpkg.checks import check_choice, check_cost, refusal
from rcpkg.choice import choose
from rcpkg.linalg import IN_CACHE, Array, Index
from rcpkg.local.neighbours import Neighbors, batches
from rcpkg.rows import Rows, in_memory

GRID = (*range(1, 21), *range(30, 101, 10))
"""Neighbourhood sizes tried by ``n_neighbors="cv"``: those of thesis2007 §6.3."""

ScoreFunction = Callable[[Index, Index, Index], Array]
"""Function of neighbours (m, k), queries (m,) and sizes ≤ k: scores (m, len(sizes))."""


def least_cost(P: Array, cost: Array | None) -> Index:
    r"""Class of least expected cost (3.2), :math:`\arg\min_g \sum_h C(g,h)P_h`, shape (n, ...); the first of ties.

    Class probabilities P have the shape (n, r, ...); C None is the 0-1 loss.

    >>> least_cost(np.array([[0.25, 0.75]]), np.array([[0.0, 1.0], [9.0, 0.0]]))  # to say 1 for 0 costs 9
    array([0])
    """
    return np.argmax(P, axis=1) if cost is None else np.argmin(np.einsum("gh,nh...->ng...", cost, P), axis=1)


@constructed
class LocalClassifier(SquareableRows):
    """Fit, the choice of k, and prediction in batches; a subclass says what its neighbours say.

    ``_evidence(Q, sizes, left_out)`` gives the log joint densities of queries, classes and neighbourhood sizes,
    shape (n, r, len(sizes)); ``left_out`` holds the training rows the queries are, to be left out, or is None.

    Rows with gaps are refused, in training and in prediction.
    """

    n_neighbors: int | Literal["cv"] | Sequence[int] = 5
    scoring: Literal["error", "log_loss"] = "error"
    cost: ArrayLike | None = None

    n_neighbors_: ClassVar[int]
    grid_: ClassVar[NDArray[np.intp]]
    cv_errors_: ClassVar[Array]
    cv_log_loss_: ClassVar[Array]
    _why_no_gaps = (
        "for which {name} has no rule: distances over fewer features choose other neighbours, and no joint model sums "
        "them out; impute them, or take BDA7, whose densities have marginals"
    )

    @in_memory
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None) -> Self:
        """Store the sample, index it for the neighbour search and, if there are several ``n_neighbors``, choose k.

        There is no ``sample_weight``: a row that counts w times would take w of the k places of a neighbourhood, so
        that weights change which rows are near, and a fraction of a row has no place. Repeat the rows instead."""
        X, self._codes = self._check_X_y(X, y)
        for name in ("grid_", "cv_errors_", "cv_log_loss_"):
            vars(self).pop(name, None)  # of an earlier choice
        self._cost = None if self.cost is None else check_cost(self.cost, self.classes_).copy()
        self.class_log_prior_ = np.full(len(self.classes_), -np.log(len(self.classes_)))
        self._index(X)
        if np.ndim(self.n_neighbors) == 1 or (isinstance(self.n_neighbors, str) and self.n_neighbors == "cv"):
            sizes = [k for k in GRID if k <= self._cap] if np.ndim(self.n_neighbors) == 0 else self.n_neighbors
            self.n_neighbors_ = self._by_leave_one_out(X, sorted(set(self._check_sizes(sizes, "n_neighbors"))))
        else:
            self.n_neighbors_ = self._check_size(self.n_neighbors, "n_neighbors")
        return self

    def _check_size(self, k: int, name: str) -> int:
        if not isinstance(k, Integral) or isinstance(k, bool):
            raise refusal(name, "be a positive integer (n_neighbors also several, or 'cv')", k)
        if not 1 <= k <= self._largest:
            raise ValueError(f"{name} must lie between 1 and {self._largest}, the most neighbours there are; got {k}")
        return int(k)

    def _check_sizes(self, sizes: Sequence[int], name: str) -> list[int]:
        if np.ndim(sizes) != 1 or len(sizes) == 0:
            raise refusal(name, "be a sequence of one or more neighbourhood sizes", sizes)
        return [self._check_size(k, name) for k in sizes]

    def _by_leave_one_out(self, X: Array, sizes: list[int]) -> int:
        """The best of the sizes by leave-one-out cost or log-loss; the smallest where ties are left."""
        check_choice("scoring", self.scoring, ("error", "log_loss"))
        cost = 1.0 - np.eye(len(self.classes_)) if self._cost is None else self._cost
        errors, losses = [], []
        for part in batches(len(X), self._bytes_per_query(max(sizes), len(sizes))):
            rows = np.arange(part.start, part.stop)
            decided, of_classes = self._left_out(X[part], sizes, rows)
            errors.append(cost[decided, self._codes[part, None]].T)
            if of_classes is not None:
                losses.append(-np.take_along_axis(of_classes, self._codes[part, None, None], axis=1)[:, 0].T)
        log_losses = np.concatenate(losses, axis=1) if losses else None
        choice = choose(np.concatenate(errors, axis=1), log_losses, scoring=self.scoring)
        self.grid_, self.cv_errors_ = np.array(sizes), choice.errors
        if losses:
            self.cv_log_loss_ = choice.log_loss
        return sizes[choice.place[0]]

    def _left_out(self, Q: Array, sizes: Sequence[int], left_out: Index) -> tuple[Index, Array | None]:
        """Decisions (n, sizes) for the training rows ``left_out``, and log p(y | x), (n, r, sizes), or None
        of a classifier without probabilities."""
        evidence = self._evidence(Q, sizes, left_out)
        return self._decision(evidence), self._log_posterior(evidence)

    def predict_path(self, X: ArrayLike, sizes: Sequence[int]) -> NDArray:
        """Class labels for several neighbourhood sizes at once, shape (n, len(sizes))."""
        check_is_fitted(self)
        X = self._check_X(X)
        sizes = self._check_sizes(sizes, "sizes")
        codes = np.empty((len(X), len(sizes)), dtype=np.intp)
        for part in batches(len(X), self._bytes_per_query(max(sizes), len(sizes))):
            codes[part] = self._decide(X[part], sizes, None)
        return self.classes_[codes]

    def _decide(self, Q: Array, sizes: Sequence[int], left_out: Index | None) -> Index:
        """Class indices (n, len(sizes))."""
        return self._decision(self._evidence(Q, sizes, left_out))

    def _log_posterior(self, evidence: Array) -> Array:
        """log p(y | x) by log joint densities, both of shape (n, r, sizes)."""
        return np.moveaxis(log_posterior(np.moveaxis(evidence, 1, 2), self.class_log_prior_), 2, 1)

    def _decision(self, evidence: Array) -> Index:
        """Class indices (n, sizes) by log joint densities (n, r, sizes)."""
        if self._cost is None:
            return np.argmax(evidence, axis=1)
        return least_cost(np.exp(self._log_posterior(evidence)), self._cost)

    def _joint_log_proba(self, X: Array) -> Array:
        joint = np.empty((len(X), len(self.classes_)))
        for part in batches(len(X), self._bytes_per_query(self.n_neighbors_, 1)):
            joint[part] = self._evidence(X[part], [self.n_neighbors_], None)[:, :, 0]
        return joint


class PerClass(LocalClassifier):
    """Neighbourhoods of k rows of each class; a class of fewer rows gives all it has."""

    def _index(self, X: Array) -> None:
        self._members = [np.flatnonzero(self._codes == h) for h in range(len(self.classes_))]
        self._searches = [Neighbors(X[rows]) for rows in self._members]
        self._positions = np.empty(len(X), dtype=np.intp)
        for rows in self._members:
            self._positions[rows] = np.arange(len(rows))
        class_sizes = np.array([len(rows) for rows in self._members])
        self._largest, self._cap = int(class_sizes.max()), int(class_sizes.min())

    def _bytes_per_query(self, k: int, n_sizes: int) -> int:
        return 64 * (k + 2) + 24 * len(self.classes_) * n_sizes + 16 * self.n_features_in_

    def _evidence(self, Q: Array, sizes: Sequence[int], left_out: Index | None) -> Array:
        evidence = np.full((len(Q), len(self.classes_), len(sizes)), -np.inf)
        for h, search in enumerate(self._searches):
            if left_out is None:
                groups = [(np.arange(len(Q)), None)]
            else:
                mine = self._codes[left_out] == h
                groups = [
                    (np.flatnonzero(~mine), None),
                    (np.flatnonzero(mine), self._positions[left_out[mine]]),
                ]
            scores = self._scorer(h, Q, left_out)
            for rows, without in groups:
                available = len(search.X) - (without is not None)
                if len(rows) == 0 or available == 0:
                    continue
                k = min(max(sizes), available)
                _, neighbors = search.query(Q[rows], k, without)
                for part in batches(len(rows), self._bytes_per_score(k), 8 * IN_CACHE):
                    evidence[rows[part], h] = scores(neighbors[part], rows[part], np.minimum(sizes, k))
        return evidence + self.class_log_prior_[:, None]

    def _bytes_per_score(self, k: int) -> int:
        return 8 * k * (k + self.n_features_in_)

    def _scorer(self, h: int, Q: Array, left_out: Index | None) -> ScoreFunction:
        """The scores in class h of the queries Q, which are the training rows ``left_out`` or new."""
        X = self._searches[h].X
        return lambda neighbors, rows, sizes: self._scores(X[neighbors] - Q[rows, None])[:, sizes - 1]


class Pooled(LocalClassifier):
    """One neighbourhood of k rows, whatever their classes."""

    @property
    def _calibrated_at(self) -> Array:
        return np.log(np.bincount(self._codes) / len(self._codes))

    def _index(self, X: Array) -> None:
        self._search = Neighbors(X.copy())
        self._largest, self._cap = len(X), len(X) - 1

    def _bytes_per_query(self, k: int, n_sizes: int) -> int:
        r, d = len(self.classes_), self.n_features_in_
        return 64 * (k + 2) + 24 * r * (n_sizes + k) + 32 * (d + 1) * (k + 1)
