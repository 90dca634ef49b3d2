"""A family: what a closed-form learner a = θ∘s knows of its rows (rc2025 §3), apart from the estimator that has it.

What a family gives, and what for, is in the reference: A model of your own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from rcpkg.base import Array, InvalidStatistics, constructed
from rcpkg.capabilities import FOLLOWS, gives
from rcpkg.checks import check_number, check_priors, feature_name, gaps_refused
from rcpkg.families.features import FeatureMap
from rcpkg.families.portions import counted, encoded, typical_rows
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import ratio
from rcpkg.rows import Rows

#: Weights of the classes, (m, r), for rows of a part of the training rows, by their log p(x, y)
Weigh = Callable[[Array, slice], Array]


@constructed
class PriorSettings:
    r"""Settings of a prior, which a family and its estimator share.

    The MAP class probabilities are (s_y + m₀/r) / (Σ s_y + m₀), m₀ = ``class_prior_strength`` (rc2025 app. C).
    """

    prior_strength: float | ArrayLike = 0.0
    class_prior_strength: float | None = None
    priors: ArrayLike | None = None


class Family(PriorSettings, ABC):
    """A model of rows and classes: its settings, what it has learnt of the training rows, and functions of arrays.

    A subclass gives ``statistics``, ``parameters`` and ``log_joint``; what else it may give is in the reference: A
    model of your own. An estimator tells it in ``describe`` what the rows are: ``classes_``, ``n_features_in_``,
    ``feature_names_in_`` and the ``names`` of categories in columns of text, by the numbers of these.

    Examples
    --------
    >>> from rcpkg.families import ConjugateClassifier
    >>> class Waiting(Family):  # exponential waiting times
    ...     def statistics(self, X, weights):
    ...         return Statistics(count=weights.sum(axis=0), total=weights.T @ X)
    ...     def parameters(self, statistics):
    ...         return statistics.total / statistics.count[:, None]
    ...     def log_joint(self, X, parameters):
    ...         return -(X[:, None] / parameters + np.log(parameters)).sum(axis=2)
    >>> class WaitingNB(ConjugateClassifier, family=Waiting): ...
    >>> WaitingNB().fit([[1.0], [2.0], [9.0]], ["bus", "bus", "ferry"]).predict([[1.5], [8.0]]).tolist()
    ['bus', 'ferry']
    """

    classes_: NDArray
    n_features_in_: int
    feature_names_in_: NDArray
    names: Mapping[int, NDArray[np.object_]] = MappingProxyType({})

    learns_structure = False  # whether `learn_structure` chooses among families, by the labels

    @abstractmethod
    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Statistics Σ_i Σ_y W_iy s(x_i, y) for weights W of shape (n, r), soft, hard or signed."""

    @abstractmethod
    def parameters(self, statistics: Statistics) -> Any:
        """Parameter map θ(s); raises `InvalidStatistics` where s gives no valid model."""

    @abstractmethod
    def log_joint(self, X: Array, parameters: Any) -> Array:
        """Joint log density log p(x, y), shape (n, r), of encoded rows: a new array, which the caller may overwrite."""

    def log_class_probabilities(self, parameters: Any) -> Array:
        """log p(y), shape (r,): ``parameters.log_prior``, or equal where the parameters have none."""
        r = len(self.classes_)
        return getattr(parameters, "log_prior", np.full(r, -np.log(r)))

    def describe(self, **rows: Any) -> Self:
        """This family, which now knows of the ``rows`` their ``classes_``, ``feature_names_in_``, ``names``, …."""
        vars(self).update(rows)
        return self

    def representatives(self, X: Array) -> Array:
        """Rows whose columns, each by itself, tell ``prepare`` what those of X do: typical ones, and the extremes."""
        return typical_rows(X)

    def learn_structure(self, rows: Rows) -> None:
        """Learn what else the three functions need from the training rows and their labels."""

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """Statistics of the rows so far in the form that these further rows ask for (states that are new)."""
        return statistics

    def log_posterior_without_blocks(
        self, X: Any, weights: Array, statistics: Statistics, n_blocks: int
    ) -> Array | None:
        """log p(y | x), (n, r), of encoded rows at the parameters of ``statistics`` without those of their block, rows
        i, i + ``n_blocks``, …, for all blocks at once; None where blocks had better be taken one by one."""
        return None

    def encode(self, X: Array) -> Any:
        """Training rows in the form in which ``statistics`` and ``log_joint`` are fastest."""
        return X

    def encode_new(self, X: Array) -> Any:
        """The same for rows that predictions are asked for; where ``log_joint`` encodes them, the rows as they are."""
        return self.encode(X)

    def expected_statistics(self, X: Any, weights: Array, parameters: Any) -> Statistics:
        """Σ_i Σ_y W_iy E[s(x_i, y) | what there is of x_i, y; θ] of encoded rows: s(X, W) where they lack nothing.

        With W = Y − P it is the gradient of Σ_i log p(y_i | what there is of x_i) by η.
        """
        return self.statistics(X, weights)

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        """The statistics s of the closed form of encoded rows: s(X, Y), or where they have gaps what EM leads to, with
        s = E[s(X, Y) | what there is; θ(s)]."""
        return rows.sum(partial(counted, self))

    def raw_statistics(self, rows: Rows) -> Statistics:
        """The statistics of training rows that are used once, and need not be encoded all at a time."""
        return self.closed_form_statistics(rows.map(partial(encoded, copy(self))))

    def check_complete(self, X: Any) -> None:
        """Refuse encoded rows with missing values by `Unsupported`: each has the log-partition of its own marginal, not
        ψ(η)."""
        for part in X if isinstance(X, tuple) else (X,):
            if isinstance(part, np.ndarray) and part.dtype.kind == "f" and np.isnan(part).any():
                raise gaps_refused("X", "impute them")

    def check_full(self, X: Any) -> None:
        """Refuse encoded rows on which the model is no full exponential family."""

    def fix_prior(self, statistics: Statistics, n_rows: int) -> Any:
        """Decide, by the statistics of the closed form of so many rows, on what θ adds to statistics from now on; the
        parameters at these, or None if they were not needed for that."""

    def log_base(self, X: Array) -> Array | float:
        """What ``log_joint`` leaves out of log p(x, y), the same for every class: (n,), or a number."""
        return 0.0

    def dependence(self, X: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which features of validated rows may depend on each other given the class and all others, (d, d), here any
        two; and which values say nothing, since they are missing or unknown, (n, d)."""
        return np.ones((X.shape[1], X.shape[1]), dtype=bool), np.isnan(X)

    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """``change``, smaller where the model expects less than ``expected`` = s(X, P), its posteriors on the rows."""
        return change

    def weighted_statistics(self, X: Any, parameters: Any, weigh: Weigh) -> Statistics:
        """One pass over the data: the statistics s(X, W) with W = ``weigh(log_joint, rows)`` for those rows of X, which
        may take the place of log_joint; of rows with gaps the expected ones."""
        return self.expected_statistics(X, weigh(self.log_joint(X, parameters), slice(None)), parameters)

    @available_if(gives(*FOLLOWS["log_partition"]))
    def log_partition(self, natural: Statistics) -> float:
        """Log-partition ψ(η) = log Σ_y exp(η_0y + A_y(η)) of the joint model; ∇ψ(η) = μ."""
        return float(np.logaddexp.reduce(self.class_log_partition(natural)))

    @available_if(gives(*FOLLOWS["scores"]))
    def scores(self, X: Any, natural: Statistics) -> Array:
        """Scores ⟨η, s(x, y)⟩ for any η, shape (n, r): log p(x, y) up to what does not depend on y."""
        count, *parts = natural
        return self.features(X) @ np.hstack([part.reshape(len(part), -1) for part in parts]).T + count

    @available_if(gives(*FOLLOWS["feature_map"]))
    def feature_map(
        self, X: Any, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> FeatureMap:
        """The features of encoded rows and the coordinates that they give, of one of the kinds of `FeatureMap`."""
        return FeatureMap(self, X)

    def same_form(self, other: object) -> bool:
        """Whether another fitted model is of the same type, for the same classes, features and states."""
        names = "classes_", "n_features_in_", "feature_names_in_", "n_states_"
        return type(other) is type(self) and all(
            np.array_equal(getattr(self, name, None), getattr(other, name, None)) for name in names
        )

    @property
    def has_prior(self) -> bool:
        """Whether parameters are those of MAP."""
        return bool(np.any(self.prior_strength) or self.class_prior_strength)

    def without_prior(self) -> Self:
        """This model with the parameters of maximum likelihood."""
        model = copy(self)
        model.prior_strength = model.class_prior_strength = 0.0
        return model

    def prepare(self, X: Array) -> None:
        self._check_strengths(X.shape[1])

    def _check_strengths(self, d: int) -> None:
        check_number("prior_strength", self.prior_strength, 0)
        if self.class_prior_strength is not None:
            check_number("class_prior_strength", self.class_prior_strength, 0)

    def class_log_prior(self, count: Array) -> Array:
        """Log class probabilities; refuses classes without positive weight."""
        smoothed = count + self._class_pseudo_rows(len(count))
        self._check_positive(smoothed)
        priors = check_priors(self.priors, len(count), estimator=self)
        if priors is None:
            priors = smoothed / smoothed.sum()
        with np.errstate(divide="ignore"):
            return np.log(priors)

    def _check_positive(self, count: Array) -> None:
        if not (count > 0).all():
            y = int(np.argmin(count))
            raise InvalidStatistics(
                f"{self._class_name(y)} has weight {count[y]:.6g}; each class needs a positive one: "
                "give it rows, or take it out"
            )

    def _class_pseudo_rows(self, r: int) -> float:
        """Pseudo-rows m₀/r of each class."""
        by_default = self.prior_strength if np.ndim(self.prior_strength) == 0 else 0.0
        return (by_default if self.class_prior_strength is None else self.class_prior_strength) / r

    def _class_name(self, y: int) -> str:
        return f"class {self.classes_[y]!s}" if hasattr(self, "classes_") else f"class number {y}"

    @property
    def unseen(self) -> NDArray[np.intp]:
        """Numbers of the columns of which the training rows hold no value; they say nothing, as constant ones."""
        return np.empty(0, dtype=np.intp)

    def _feature_name(self, j: int) -> str:
        return feature_name(self, j)


def if_all_have(method: Callable[..., Any]) -> Any:
    """Decorator of a method that a family made of others, its ``families``, has where all of these have it."""
    name = method.__name__
    return available_if(lambda family: all(hasattr(part, name) for part in family.families))(method)


def dampened(ratio: Array) -> Array:
    """A positive map of a ``ratio`` ρ, with value 1 and slope 1 at 1: ρ where ρ ≥ 1, 1/(2 − ρ) where ρ < 1.

    >>> dampened(np.array([2.0, 1.0, 0.0, -2.0]))
    array([2.  , 1.  , 0.5 , 0.25])
    """
    damped = np.asarray(1 / (2 - np.minimum(ratio, 1)))
    np.copyto(damped, ratio, where=ratio >= 1)
    return damped


def safe_counts(old: Array, change: Array) -> Array:
    """``old`` counts after a ``change``, increases added and decreases dampened; zeros stay zero.

    >>> safe_counts(np.array([2.0, 2.0, 0.0]), np.array([1.0, -4.0, 1.0])).round(2)
    array([3.  , 0.67, 0.  ])
    """
    with np.errstate(over="ignore"):  # of a count next to zero nothing is left
        return np.where(old > 0, np.maximum(change, 0.0), 0.0) + old * dampened(1 + ratio(np.minimum(change, 0.0), old))


def safe_class_counts(old: Array, change: Array) -> Array:
    """``old`` class counts after a ``change``, with the total that the change gives.

    >>> safe_class_counts(np.array([2.0, 2.0]), np.array([1.0, -4.0])).round(2)
    array([0.82, 0.18])
    """
    count = safe_counts(old, change)
    return count * ((old + change).sum() / count.sum())


def equal_class_weights(log_prior: Array) -> Array:
    """Equal log class probabilities, as many as are given."""
    return np.full_like(log_prior, -np.log(len(log_prior)))
