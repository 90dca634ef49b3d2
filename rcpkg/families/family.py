"""Closed-form learners a = θ∘s: additive statistics s, then a parameter map θ (rc2025 §3).

What a family gives, and what for, is in the reference: A model of your own.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, atomic, constructed, one_thread_if_small
from rcpkg.capabilities import gives, require
from rcpkg.checks import check_number, check_priors, check_weights, number_labels
from rcpkg.families.features import FeatureMap, FreeCoordinates
from rcpkg.families.portions import Seen, agree, check_blocks, counted, counted_anew, look, numbered, typical_rows
from rcpkg.families.statistics import Statistics
from rcpkg.rows import Block, Blocks, Rows


class ClosedFormClassifier(GenerativeClassifier):
    """Base of all models with a closed-form learner a = θ∘s (rc2025 §3).

    A subclass gives the three functions below; what else it may give is in the reference: A model of your own.
    Parameters with a ``log_prior`` give the class probabilities, which are equal otherwise.
    """

    learns_structure = False  # whether `learn_structure` chooses among families, by the labels

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Statistics Σ_i Σ_y W_iy s(x_i, y) for weights W of shape (n, r), soft, hard or signed."""
        raise NotImplementedError

    def parameters(self, statistics: Statistics) -> Any:
        """Parameter map θ(s); raises `InvalidStatistics` where s gives no valid model."""
        raise NotImplementedError

    def log_joint(self, X: Array, parameters: Any) -> Array:
        """Joint log density log p(x, y), shape (n, r)."""
        raise NotImplementedError

    def log_class_probabilities(self, parameters: Any) -> Array:
        """log p(y), shape (r,): ``parameters.log_prior``, or equal where the parameters have none."""
        r = len(self.classes_)
        return getattr(parameters, "log_prior", np.full(r, -np.log(r)))

    def prepare(self, X: Array) -> None:
        """Learn from the training rows what the three functions need beside the parameters."""

    def representatives(self, X: Array) -> Array:
        """Rows whose columns, each by itself, tell ``prepare`` what those of X do: typical ones, and the extremes."""
        return typical_rows(X)

    def part_at_sight(self, block: Block) -> Any:
        """What of validated rows with labels can be added to the parts of other blocks before these are known, so that
        ``raw_statistics`` needs no pass of its own; None if nothing can."""

    def learn_structure(self, rows: Rows) -> None:
        """Learn what else the three functions need from the training rows and their labels."""

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """Statistics of the rows so far in the form that these further rows ask for (states that are new)."""
        return statistics

    def encode(self, X: Array) -> Any:
        """Training rows in the form in which ``statistics`` and ``log_joint`` are fastest."""
        return X

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
        return rows.sum(partial(counted_anew, self))

    def check_complete(self, X: Any) -> None:
        """Refuse encoded rows with missing values: each has the log-partition of its own marginal, not ψ(η)."""

    def check_full(self, X: Any) -> None:
        """Refuse encoded rows on which the model is no full exponential family."""

    def settle(self, statistics: Statistics, n_rows: int) -> Any:
        """Decide, by the statistics of the closed form of so many rows, on what θ adds to statistics from now on; the
        parameters at these, or None if they were not needed for that."""

    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """``change``, smaller where the model expects less than ``expected`` = s(X, P), its posteriors on the rows."""
        return change

    def weighted_statistics(self, X: Any, parameters: Any, weigh: Callable[[Array, slice], Array]) -> Statistics:
        """One pass over the data: the statistics s(X, W) with W = ``weigh(log_joint, rows)`` for those rows of X; of
        rows with gaps the expected ones."""
        return self.expected_statistics(X, weigh(self.log_joint(X, parameters), slice(None)), parameters)

    @atomic
    @one_thread_if_small
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form θ(s(X, Y)); rows count ``sample_weight`` times. ``fit(rows)`` takes `Rows`, of any size.

        Where a model takes rows with gaps (NaN), what is missing is taken to be missing at random (Rubin, 1976).
        """
        rows = self.training_rows(X, y, sample_weight, sums=True)
        self.learn_structure(rows)
        statistics = self.raw_statistics(rows)
        return self.set_statistics(statistics, self.settle(statistics, self._n_rows))

    @atomic
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add the statistics of further rows; the first call names all ``classes``.

        While the statistics do not suffice (too few rows of a class so far), predictions raise `InvalidStatistics`.
        """
        first = not hasattr(self, "statistics_")
        if first:
            self._set_classes(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as on last call to partial_fit, {self.classes_.tolist()}"
            )
        X, y = self._check_rows(X, y, reset=first)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"The target label(s) {unknown.tolist()} in y do not exist in the initial classes "
                f"{self.classes_.tolist()}: name them in the first call to partial_fit"
            )
        rows = self._of_arrays(X, np.searchsorted(self.classes_, y), sample_weight)
        (block,) = rows
        if first:
            self.prepare(block.X)
            self.learn_structure(rows)
        else:
            self.statistics_ = self.extend_statistics(block.X, self.statistics_)
        statistics = self.raw_statistics(rows)
        self._n_rows = block.n + (0 if first else getattr(self, "_n_rows", 0))
        if not first:
            statistics = self.statistics_ + statistics
        if not np.isfinite(statistics.ravel()).all():
            raise ValueError("X holds numbers so large that the statistics of the rows overflow: rescale it")
        try:
            self.set_statistics(statistics, self.settle(statistics, self._n_rows))
        except InvalidStatistics as error:
            self.statistics_ = statistics
            self.parameters_, self._insufficient = None, str(error)
            self.class_log_prior_ = self.log_class_probabilities(None)
        return self

    def _set_classes(self, classes: ArrayLike | None) -> None:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        self.classes_ = np.unique(classes)
        if len(self.classes_) < 2:
            raise ValueError(f"classes must name at least 2 classes; got {classes!r}")

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, NDArray]:
        """Draw rows and labels (X, y) from the fitted joint distribution p(x, y)."""
        check_is_fitted(self)
        require(self, "sampling")
        check_number("n_samples", n_samples, 0, integer=True)
        rng = check_random_state(random_state)
        y = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        return self.draw(self.fitted_parameters(), y, rng), self.classes_[y]

    def training_rows(
        self, X: ArrayLike | Rows, y: ArrayLike | None, sample_weight: ArrayLike | None, sums: bool = False
    ) -> Rows:
        """Validated rows of positive weight with class numbers; sets ``classes_`` and prepares the model.

        With ``sums`` the rows may bring what the parts of several blocks add up to (`part_at_sight`)."""
        if isinstance(X, Rows):
            return self._of_blocks(X.without(y, sample_weight), sums)
        X, y = self.check_X_y(X, y)
        rows = self._of_arrays(X, y, sample_weight)
        block = rows.only("prepare")
        self.prepare(block.X)
        self._n_rows = block.n
        return rows

    def check_labelled(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        """Validated rows and labels, which say what the columns are, unless it is known and they are further rows."""
        return self._check_rows(X, y, reset=reset)

    def _of_arrays(self, X: Array, y: NDArray[np.intp], sample_weight: ArrayLike | None) -> Rows:
        """Validated arrays as rows, without those of weight zero."""
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        return Blocks([Block(X, y, weight).counting()])

    def _of_blocks(self, rows: Rows, sums: bool) -> Rows:
        """Validated blocks; what one of them would tell the model, all of them tell it together."""
        seen: list[Seen] = []
        summed = None
        for of in rows.each(partial(look, self, sums)):
            seen.append(of._replace(part=None))
            agree(seen[0], of)
            summed = of.part if summed is None else summed if of.part is None else summed + of.part
        check_blocks(seen)
        self._take_on(seen)
        self._n_rows = sum(of.n for of in seen)  # by the same pass, which may read files
        self._set_labels(number_labels(np.concatenate([of.labels for of in seen]))[0])
        self.prepare(self._gathered([of for of in seen if of.n]))
        rows = rows.map(partial(numbered, copy(self)))
        if len(seen) == 1:  # which needs no representatives
            self.prepare(rows.only("prepare").X)
        else:
            rows.summed = summed
        return rows

    def _take_on(self, seen: list[Seen]) -> None:
        """Names and numbers of the columns, as the blocks have them."""
        vars(self).update(seen[0].columns)

    def _gathered(self, seen: list[Seen]) -> Array:
        """The representatives of all blocks."""
        parts = [of.X for of in seen]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def set_statistics(self, statistics: Statistics, parameters: Any = None) -> Self:
        """Take on statistics, and the parameters they give."""
        self.parameters_ = self.parameters(statistics) if parameters is None else parameters
        self.statistics_ = statistics
        self.class_log_prior_ = self.log_class_probabilities(self.parameters_)
        return self

    def fitted_parameters(self) -> Any:
        """The parameters; raises `InvalidStatistics` while the rows of ``partial_fit`` do not suffice."""
        if self.parameters_ is None:
            raise InvalidStatistics(f"not enough data so far: {self._insufficient}")
        return self.parameters_

    def _joint_log_proba(self, X: Array) -> Array:
        return self.log_joint(X, self.fitted_parameters())

    def _expected_rows(self, X: Array, weights: Array) -> Any:
        return self.expected_rows(X, weights, self.fitted_parameters())

    def _class_name(self, y: int) -> str:
        return f"class {self.classes_[y]!s}" if hasattr(self, "classes_") else f"class number {y}"

    def _feature_name(self, j: int) -> str:
        return f"feature {self.feature_names_in_[j]!r}" if hasattr(self, "feature_names_in_") else f"feature {j}"


@constructed
class ConjugateClassifier(ClosedFormClassifier):
    r"""A closed-form classifier with a categorical class distribution, fitted by ML or conjugate MAP.

    The MAP class probabilities are (s_y + m₀/r) / (Σ s_y + m₀), m₀ = ``class_prior_strength`` (rc2025 app. C).
    """

    prior_strength: float | ArrayLike = 0.0
    class_prior_strength: float | None = None
    priors: ArrayLike | None = None

    @available_if(gives("class_log_partition"))
    def log_partition(self, natural: Statistics) -> float:
        """Log-partition ψ(η) = log Σ_y exp(η_0y + A_y(η)) of the joint model; ∇ψ(η) = μ."""
        return float(np.logaddexp.reduce(self.class_log_partition(natural)))

    @available_if(gives("features"))
    def scores(self, X: Any, natural: Statistics) -> Array:
        """Scores ⟨η, s(x, y)⟩ for any η, shape (n, r): log p(x, y) up to what does not depend on y."""
        count, *parts = natural
        return self.features(X) @ np.hstack([part.reshape(len(part), -1) for part in parts]).T + count

    @available_if(gives("features"))
    def feature_map(
        self, X: Any, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> FeatureMap:
        """The features of encoded rows and the coordinates that they give, of one of the kinds of `FeatureMap`."""
        return FeatureMap(self, X)

    def free_coordinates(self, pooled: Any, definite: bool) -> FreeCoordinates:
        """Coordinates of η, in units of parameters ``pooled``; if ``definite``, such that ψ is finite everywhere."""
        return FreeCoordinates()

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
        priors = check_priors(self.priors, len(count))
        if priors is None:
            priors = smoothed / smoothed.sum()
        with np.errstate(divide="ignore"):
            return np.log(priors)

    def _check_positive(self, count: Array) -> None:
        if not np.all(count > 0):
            y = int(np.argmin(count))
            raise InvalidStatistics(
                f"{self._class_name(y)} has weight {count[y]:.6g}; each class needs a positive one: "
                "give it rows, or take it out"
            )

    def _class_pseudo_rows(self, r: int) -> float:
        """Pseudo-rows m₀/r of each class."""
        by_default = self.prior_strength if np.ndim(self.prior_strength) == 0 else 0.0
        return (by_default if self.class_prior_strength is None else self.class_prior_strength) / r


def dampened(ratio: Array) -> Array:
    """A positive map of a ``ratio`` ρ, with value 1 and slope 1 at 1: ρ where ρ ≥ 1, 1/(2 − ρ) where ρ < 1."""
    damped = np.asarray(1 / (2 - np.minimum(ratio, 1)))
    np.copyto(damped, ratio, where=ratio >= 1)
    return damped


def safe_counts(old: Array, change: Array) -> Array:
    """``old`` counts after a ``change``, increases added and decreases dampened; zeros stay zero."""
    ratio = np.divide(change, old, out=np.zeros_like(old), where=old > 0)
    ratio += 1
    return old * dampened(ratio)


def safe_class_counts(old: Array, change: Array) -> Array:
    """``old`` class counts after a ``change``, with the total that the change gives."""
    count = safe_counts(old, change)
    return count * ((old + change).sum() / count.sum())


def equal_class_weights(log_prior: Array) -> Array:
    """Equal log class probabilities, as many as are given."""
    return np.full_like(log_prior, -np.log(len(log_prior)))
