r"""Closed-form generative classifiers, a = θ∘s: additive statistics s, then a parameter map θ (rc2025 §3).

A model is three functions of arrays: ``statistics(X, weights)``, ``parameters(statistics)`` and
``log_joint(X, parameters)``; `ClosedFormClassifier` makes a scikit-learn classifier of them. The models that are
exponential families also give natural parameters η, mean parameters μ = E[s(x, y)] and the log-partition ψ, with
∇ψ(η) = μ. Statistics, η and μ have one and the same structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, issparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, check_number, check_priors

EPS = np.finfo(float).eps
LOG_2PI = np.log(2 * np.pi)
LARGEST_CODE = 2**20  # a category beyond it is taken for an identifier or a measurement
INDEFINITE = 1e-12  # least eigenvalue of a precision, relative to the mean size of all, that counts as positive
LEAST_PRECISION = 0.1  # what it is raised to if it does not
BLOCK = 256  # rows a block: the intermediate products of a block stay in cache
BLOCK_ENTRIES = 2**17  # likewise, for blocks of quadratic features, which differ in width
PASS_BLOCK = 16 * BLOCK  # rows of one call of `weigh`
LARGEST_ROUNDING = 1e-9  # of a log density; beyond it the products class by class are used, which lose no digits
FUSED_CLASSES_PER_FEATURE = 0.3  # from this ratio r/d on, quadratic features beat class-by-class products


class Statistics:
    """Named arrays that add, subtract and scale as one vector; a part may itself be `Statistics`.

    ``Statistics(count=c, first=f)`` has the parts ``.count`` and ``.first``, and unpacks in that order.
    """

    def __init__(self, /, **parts: Any) -> None:
        for name in parts:
            if hasattr(type(self), name):
                raise ValueError(f"a part of Statistics cannot be named {name!r}, which is one of its methods")
        self.__dict__.update(
            {name: part if isinstance(part, Statistics) else np.asarray(part, float) for name, part in parts.items()}
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.values())

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{name}={part!r}' for name, part in self.__dict__.items())})"

    def _map(self, function: Callable, *others: Statistics) -> Statistics:
        names = self.__dict__
        return Statistics(**{n: function(names[n], *(other.__dict__[n] for other in others)) for n in names})

    def __add__(self, other: Statistics) -> Statistics:
        return self._map(lambda a, b: a + b, other)

    def __sub__(self, other: Statistics) -> Statistics:
        return self._map(lambda a, b: a - b, other)

    def __mul__(self, factor: float) -> Statistics:
        return self._map(lambda a: a * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Statistics:
        return self * (1.0 / divisor)

    def ravel(self) -> Array:
        """All entries as one vector."""
        return np.concatenate([part.ravel() for part in self])

    def unravel(self, vector: Array) -> Statistics:
        """Statistics of this structure with the entries of a vector: the inverse of ``ravel``."""
        parts, start = {}, 0
        for name, part in self.__dict__.items():
            piece = vector[start : start + part.ravel().size]
            parts[name] = part.unravel(piece) if isinstance(part, Statistics) else piece.reshape(part.shape)
            start += len(piece)
        return Statistics(**parts)

    def dot(self, natural: Statistics) -> float:
        """Inner product ⟨s, η⟩, with 0 · (−∞) = 0."""
        s, eta = self.ravel(), natural.ravel()
        return float(s[s != 0] @ eta[s != 0])


def one_hot(y: NDArray[np.intp], n_classes: int) -> Array:
    """Label matrix Y of shape (n, r): Y_iy = 1 where y is the class of row i, else 0."""
    return np.equal.outer(y, np.arange(n_classes)).astype(float)


class ClosedFormClassifier(GenerativeClassifier):
    """Base of all models with a closed-form learner a = θ∘s (rc2025 §3).

    A subclass gives the three functions below. ``_prepare(X)`` may learn from the training rows what is not a
    parameter (numbers of states, an origin for moments); ``_draw(parameters, y, rng)`` makes ``sample`` work;
    parameters with a ``log_prior`` give the class probabilities, which are equal otherwise.
    """

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

    def _prepare(self, X: Array) -> None:
        """Learn from the training rows what the three functions need beside the parameters."""

    def _encode(self, X: Array) -> Any:
        """Training rows in the form in which ``statistics`` and ``log_joint`` are fastest."""
        return X

    def _draw(self, parameters: Any, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        raise NotImplementedError(f"{type(self).__name__} cannot sample: it has no _draw(parameters, y, rng)")

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """``new``, where what would give invalid parameters keeps its value of ``old`` (rc2024 §III)."""
        raise NotImplementedError(f"{type(self).__name__} does not say which of its statistics to freeze")

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """``old`` + ``change`` to first order, and valid for any change that leaves a positive total weight."""
        raise NotImplementedError(f"{type(self).__name__} has no update that is valid for any change")

    def conditioned(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """``change``, smaller where the model expects less than ``expected`` = s(X, P), its posteriors on the rows."""
        return change

    def weighted_statistics(self, X: Any, parameters: Any, weigh: Callable[[Array, slice], Array]) -> Statistics:
        """One pass over the data: the statistics s(X, W) with W = ``weigh(log_joint, rows)`` for those rows of X."""
        return self.statistics(X, weigh(self.log_joint(X, parameters), slice(None)))

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form θ(s(X, Y)); rows count ``sample_weight`` times."""
        X, Y = self._training_data(X, y, sample_weight)
        return self._set(self.statistics(self._encode(X), Y))

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
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}; got {classes!r}")
        X, y = self._check_rows(X, y, reset=first)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds labels that were not named in classes: {unknown.tolist()}")
        if first:
            self._prepare(X)
        Y = self._weighted_labels(X, np.searchsorted(self.classes_, y), sample_weight)
        statistics = self.statistics(self._encode(X), Y)
        if not first:
            statistics = self.statistics_ + statistics
        try:
            self._set(statistics)
        except InvalidStatistics as error:
            self.statistics_ = statistics
            self.parameters_, self._insufficient = None, str(error)
            self.class_log_prior_ = self.log_class_probabilities(None)
        return self

    def _set_classes(self, classes: ArrayLike | None) -> None:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        self.classes_ = np.unique(classes)
        if len(self.classes_) < 2:
            raise ValueError(f"classes must name at least 2 classes; got {classes!r}")

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, NDArray]:
        """Draw rows and labels (X, y) from the fitted joint distribution p(x, y)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        y = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        return self._draw(self._fitted_parameters(), y, rng), self.classes_[y]

    def _training_data(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array]:
        """Validated rows and the weighted label matrix diag(w) Y; sets ``classes_`` and prepares the model."""
        X, y = self._check_Xy(X, y)
        Y = self._weighted_labels(X, y, sample_weight)
        self._prepare(X)
        return X, Y

    def _weighted_labels(self, X: Array, y: NDArray[np.intp], sample_weight: ArrayLike | None) -> Array:
        Y = one_hot(y, len(self.classes_))
        if sample_weight is None:
            return Y
        return Y * _check_sample_weight(sample_weight, X, dtype=float, ensure_non_negative=True)[:, None]

    def _set(self, statistics: Statistics, parameters: Any = None) -> Self:
        """Take on statistics, and the parameters they give."""
        self.parameters_ = self.parameters(statistics) if parameters is None else parameters
        self.statistics_ = statistics
        self.class_log_prior_ = self.log_class_probabilities(self.parameters_)
        return self

    def _fitted_parameters(self) -> Any:
        if self.parameters_ is None:
            raise InvalidStatistics(f"not enough data so far: {self._insufficient}")
        return self.parameters_

    def _joint_log_proba(self, X: Array) -> Array:
        return self.log_joint(X, self._fitted_parameters())

    def _class_name(self, y: int) -> str:
        return f"class {self.classes_[y]!s}" if hasattr(self, "classes_") else f"class number {y}"

    def _feature_name(self, j: int) -> str:
        return f"feature {self.feature_names_in_[j]!r}" if hasattr(self, "feature_names_in_") else f"feature {j}"


class ConjugateClassifier(ClosedFormClassifier):
    r"""A closed-form classifier with a categorical class distribution, fitted by ML or conjugate MAP.

    The MAP class probabilities are (s_y + m₀/r) / (Σ s_y + m₀), m₀ = ``class_prior_strength`` (rc2025 app. C).
    """

    def __init__(
        self,
        *,
        prior_strength: float = 0.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
    ) -> None:
        self.prior_strength = prior_strength
        self.class_prior_strength = class_prior_strength
        self.priors = priors

    def natural_parameters(self, parameters: Any) -> Statistics:
        """Natural parameters η, normalised so that log p(x, y) = ⟨η, s(x, y)⟩ + log h(x), that is ψ(η) = 0."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> Any:
        """Parameters with the posteriors of the scores ⟨η, s(x, y)⟩; the inverse of `natural_parameters` up to ψ(η).

        Where η is not that of a model (a precision is not positive definite), what all classes share is added to it:
        the joint density changes, the posteriors do not.
        """
        raise NotImplementedError

    def scores(self, X: Any, natural: Statistics) -> Array:
        """Scores ⟨η, s(x, y)⟩ for any η, shape (n, r): log p(x, y) up to what does not depend on y."""
        raise NotImplementedError

    def mean_parameters(self, parameters: Any) -> Statistics:
        """Mean parameters μ = E[s(x, y)] under the model, those of ``statistics`` with total weight one."""
        raise NotImplementedError

    def log_partition(self, natural: Statistics) -> float:
        """Log-partition ψ(η) = log Σ_y exp(η_0y + A_y(η)) of the joint model; ∇ψ(η) = μ."""
        return float(logsumexp(self.class_log_partition(natural)))

    def pooled_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """Parameters with what distinguishes the classes pooled, and the pseudo-rows they count for."""
        raise NotImplementedError

    def grand_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """Parameters that are the same for every class, and the pseudo-rows they count for."""
        raise NotImplementedError

    def class_log_partition(self, natural: Statistics) -> Array:
        """The terms η_0y + A_y(η) of the log-partition, shape (r,); A_y is that of p(x | y)."""
        raise NotImplementedError

    def same_form(self, other: object) -> bool:
        """Whether another fitted model is of the same type, for the same classes, features and states."""
        names = "classes_", "n_features_in_", "feature_names_in_", "n_states_"
        return type(other) is type(self) and all(
            np.array_equal(getattr(self, name, None), getattr(other, name, None)) for name in names
        )

    @property
    def has_prior(self) -> bool:
        """Whether parameters are those of MAP."""
        return bool(self.prior_strength or self.class_prior_strength)

    def without_prior(self) -> Self:
        """This model with the parameters of maximum likelihood."""
        model = copy(self)
        model.prior_strength = model.class_prior_strength = 0.0
        return model

    def _prepare(self, X: Array) -> None:
        check_number("prior_strength", self.prior_strength, 0)
        if self.class_prior_strength is not None:
            check_number("class_prior_strength", self.class_prior_strength, 0)

    def _log_prior(self, count: Array) -> Array:
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
        return (self.prior_strength if self.class_prior_strength is None else self.class_prior_strength) / r


def _dampened(ratio: Array) -> Array:
    """A positive map with value 1 and slope 1 at 1: ρ where ρ ≥ 1, 1/(2 − ρ) where ρ < 1."""
    return np.where(ratio >= 1, ratio, 1 / (2 - np.minimum(ratio, 1)))


def _safe_counts(old: Array, change: Array) -> Array:
    """Counts after a change, increases added and decreases dampened; zeros stay zero."""
    return old * _dampened(1 + np.divide(change, old, out=np.zeros_like(old), where=old > 0))


def _safe_class_counts(old: Array, change: Array) -> Array:
    """Class counts after a change, with the total that the change gives."""
    count = _safe_counts(old, change)
    return count * ((old + change).sum() / count.sum())


def _uniform(log_prior: Array) -> Array:
    return np.full_like(log_prior, -np.log(len(log_prior)))


class CategoricalParameters(NamedTuple):
    """Class log probabilities (r,), and log p(x_j = v | y) as (r, K), features side by side."""

    log_prior: Array
    log_prob: Array


class _CountModel(ConjugateClassifier):
    """What the models with counts for statistics share: distributions side by side in the columns of ``cells``."""

    def _pseudo_rows(self, n_columns: int) -> Array:
        """Pseudo-rows of each column of ``cells``."""
        raise NotImplementedError

    def _totals(self, cells: Array) -> Array:
        """Sum of the distribution that each column belongs to, in a shape that divides ``cells``."""
        raise NotImplementedError

    def _cell_name(self, y: int, column: int) -> str:
        raise NotImplementedError

    def parameters(self, statistics: Statistics) -> CategoricalParameters:
        """Relative frequencies, each distribution normalised over its own states."""
        log_prior = self._log_prior(statistics.count)
        cells = statistics.cells + self._pseudo_rows(statistics.cells.shape[1])
        y, column = np.unravel_index(cells.argmin(), cells.shape)
        if not cells[y, column] >= -1e-12 * np.abs(cells).sum():
            raise InvalidStatistics(f"negative count {cells[y, column]:.6g} of {self._cell_name(y, column)}")
        return CategoricalParameters(log_prior, self._log_frequencies(np.maximum(cells, 0.0)))

    def _log_frequencies(self, cells: Array) -> Array:
        totals = self._totals(cells)
        if np.any(totals <= 0):
            raise InvalidStatistics(f"nothing is left to count in {self._class_name(np.argwhere(totals <= 0)[0][0])}")
        with np.errstate(divide="ignore"):
            return np.log(cells / totals)

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """Each count that would turn negative keeps its value; the parameter map normalises what results."""
        of_class, of_cell = self._class_pseudo_rows(len(old.count)), self._pseudo_rows(old.cells.shape[1])
        return Statistics(
            count=np.where(new.count + of_class > 0, new.count, old.count),
            cells=np.where(new.cells + of_cell >= 0, new.cells, old.cells),
        )

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts, those of the prior included, increase by addition and decrease by a factor."""
        of_class, of_cell = self._class_pseudo_rows(len(old.count)), self._pseudo_rows(old.cells.shape[1])
        old = Statistics(count=old.count + of_class, cells=old.cells + of_cell)
        count = _safe_class_counts(old.count, change.count)
        totals = self._safe_totals(old, change, count)
        cells = _safe_counts(old.cells, change.cells)
        return Statistics(count=count - of_class, cells=cells * (totals / self._totals(cells)) - of_cell)

    def conditioned(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """Δ log θ_v = (g_v − λ θ_v) / max(s_v, s(X, P)_v) for the change g of cells s, λ such that Σ θ_v Δ log θ_v = 0.

        Without the maximum this is ``change``. Where a row counts one state, the curvature of the conditional
        likelihood along log θ_v is at most s(X, P)_v: so a near-empty cell to which the rows' posteriors give much
        does not shorten the step of all others.
        """
        cells = old.cells + self._pseudo_rows(old.cells.shape[1])
        theta, total = cells / self._totals(cells), self._totals(change.cells)
        scale = np.where(cells > 0, np.maximum(cells, expected.cells), 1.0)
        excess = self._totals(theta * change.cells / scale) / self._totals(theta * theta / scale)
        return Statistics(count=change.count, cells=cells * (change.cells - excess * theta) / scale + theta * total)

    def _safe_totals(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Totals after a change that gives the class counts ``count``: changed as these are, so that with rows of one
        length ℓ they stay ℓ times these."""
        totals = _safe_counts(self._totals(old.cells), self._totals(change.cells))
        return totals * (count / _safe_counts(old.count, change.count))[:, None]

    def pooled_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """Observed class weights, and the same distributions for all classes; r pseudo-rows."""
        cells = statistics.cells.sum(axis=0, keepdims=True)
        pooled = self._log_frequencies(cells + self._pseudo_rows(cells.shape[1]))
        r = len(statistics.count)
        return CategoricalParameters(self._log_prior(statistics.count), np.tile(pooled, (r, 1))), float(r)

    def grand_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """As pooled, with equal class weights."""
        parameters, size = self.pooled_parameters(statistics)
        return parameters._replace(log_prior=_uniform(parameters.log_prior)), size

    def natural_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """η = (log p(y), log p(x_j = v | y)), or (log p(y), log p(v | y))."""
        return Statistics(count=parameters.log_prior, cells=parameters.log_prob)

    def _log_totals(self, log_cells: Array) -> Array:
        """log Σ exp over the distribution that each column belongs to, in a shape to subtract from ``log_cells``."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> CategoricalParameters:
        """p(y) ∝ exp(η_y + A_y), and each distribution normalised."""
        log_prior = self.class_log_partition(natural)
        return CategoricalParameters(log_prior - logsumexp(log_prior), natural.cells - self._log_totals(natural.cells))

    def scores(self, X: Array | csr_array, natural: Statistics) -> Array:
        """η_y + Σ of the η of what is counted."""
        return (X if issparse(X) else self._encode(X)) @ natural.cells.T + natural.count


class CategoricalNB(_CountModel):
    r"""Naive Bayes for categorical features: p(x, y) = p(y) ∏_j p(x_j | y) (rc2025 §3.1).

    Statistics: class counts s_y and cell counts s_{y,j,v}. ML: p(x_j = v | y) = s_{y,j,v} / Σ_v' s_{y,j,v'};
    MAP: (s_{y,j,v} + m₀/r_j) / (Σ_v' s_{y,j,v'} + m₀) with m₀ = ``prior_strength`` (rc2025 app. C).
    Under ML an unseen state has probability zero; a row impossible under every class gets the class prior.

    Parameters
    ----------
    n_states : int or array of shape (d,), optional
        Number of states r_j of each feature, coded 0 … r_j − 1; learnt as the largest code + 1 when not declared.
    prior_strength, class_prior_strength : float
        Pseudo-rows m₀ of each conditional distribution, and of the class distribution (None: the same).
    priors : array of shape (r,), optional
        Class probabilities, instead of estimated ones.
    """

    def __init__(
        self,
        *,
        n_states: int | ArrayLike | None = None,
        prior_strength: float = 0.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
    ) -> None:
        super().__init__(prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors)
        self.n_states = n_states

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags

    def _prepare(self, X: Array) -> None:
        super()._prepare(X)
        largest = self._codes(X).max(axis=0) + 1
        if self.n_states is None:
            self.n_states_ = largest
            return
        declared = np.asarray(self.n_states)
        if declared.dtype.kind not in "iu" or declared.shape not in ((), largest.shape):
            raise ValueError(
                f"n_states must be an integer or {len(largest)} of them, one a feature; got {self.n_states!r}"
            )
        self.n_states_ = np.broadcast_to(declared, largest.shape).astype(np.intp)
        if np.any(self.n_states_ < largest):
            j = int(np.argmax(self.n_states_ < largest))
            raise ValueError(
                f"{self._feature_name(j)} holds the state {largest[j] - 1}, but n_states declares {self.n_states_[j]}; "
                "states are coded 0, 1, … and n_states must exceed the largest"
            )

    def _codes(self, X: Array) -> NDArray[np.intp]:
        for bad, fault in (
            (X < 0, "Negative values in data"),
            (np.floor(X) != X, "Values that are not integers"),
            (X > LARGEST_CODE, f"Values above {LARGEST_CODE}"),
        ):
            if bad.any():
                j = int(np.argmax(bad.any(axis=0)))
                raise ValueError(
                    f"{fault}: {self._feature_name(j)}; categories must be coded 0, 1, 2, … "
                    "(the classes OrdinalEncoder and KBinsDiscretizer of sklearn.preprocessing do so)"
                )
        return X.astype(np.intp)

    @property
    def _starts(self) -> NDArray[np.intp]:
        """Column of the first state of each feature among the K columns of all states."""
        return np.concatenate([[0], np.cumsum(self.n_states_)[:-1]])

    def _indicators(self, codes: NDArray[np.intp]) -> csr_array:
        n, d = codes.shape
        columns = (codes + self._starts).astype(np.int32).ravel()
        rows = np.arange(0, n * d + 1, d, dtype=np.int32 if n * d < 2**31 else np.int64)
        return csr_array((np.ones(n * d), columns, rows), shape=(n, int(self.n_states_.sum())))

    def _encode(self, X: Array) -> csr_array:
        """One-hot rows, sparse; raises where a state was not declared."""
        codes = self._codes(X)
        if np.any(codes >= self.n_states_):
            j = int(np.argmax(np.any(codes >= self.n_states_, axis=0)))
            raise ValueError(
                f"{self._feature_name(j)} holds the state {codes[:, j].max()}, but only {self.n_states_[j]} states "
                "are known; declare n_states"
            )
        return self._indicators(codes)

    def statistics(self, X: Array | csr_array, weights: Array) -> Statistics:
        """Class counts (r,) and cell counts (r, K)."""
        if not issparse(X):
            if not hasattr(self, "n_states_"):
                self._prepare(X)
            X = self._encode(X)
        return Statistics(count=weights.sum(axis=0), cells=np.ascontiguousarray((X.T @ weights).T))

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.repeat(self.prior_strength / self.n_states_, self.n_states_)

    def _totals(self, cells: Array) -> Array:
        return np.repeat(np.add.reduceat(cells, self._starts, axis=1), self.n_states_, axis=1)

    def _cell_name(self, y: int, column: int) -> str:
        j = int(np.searchsorted(self._starts, column, side="right")) - 1
        return f"state {column - self._starts[j]} of {self._feature_name(j)} in {self._class_name(y)}"

    def log_joint(self, X: Array | csr_array, parameters: CategoricalParameters) -> Array:
        """log p(y) + Σ_j log p(x_j | y)."""
        if issparse(X):
            return X @ parameters.log_prob.T + parameters.log_prior
        codes = self._codes(X)
        unknown = codes >= self.n_states_
        joint = self._indicators(np.where(unknown, 0, codes)) @ parameters.log_prob.T + parameters.log_prior
        joint[unknown.any(axis=1)] = -np.inf
        return joint

    def _safe_totals(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Each feature takes in the rows that its class does."""
        before, rows = self._totals(old.cells), (count - old.count)[:, None]
        # with more pseudo-rows for the class than for the feature a class may lose more rows than a feature has
        return np.where(before + rows > 0, before + rows, _safe_counts(before, rows))

    def mean_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """μ = (p(y), p(y) p(x_j = v | y))."""
        prior = np.exp(parameters.log_prior)
        return Statistics(count=prior, cells=prior[:, None] * np.exp(parameters.log_prob))

    def _log_totals(self, log_cells: Array) -> Array:
        by_feature = np.split(log_cells, self._starts[1:], axis=1)
        return np.hstack([np.tile(logsumexp(b, axis=1, keepdims=True), (1, b.shape[1])) for b in by_feature])

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_y + Σ_j log Σ_v exp η_{y,j,v}."""
        by_feature = np.split(natural.cells, self._starts[1:], axis=1)
        return natural.count + sum(logsumexp(block, axis=1) for block in by_feature)

    def _draw(self, parameters: CategoricalParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        u = rng.uniform(size=(len(y), len(self.n_states_)))
        blocks = np.split(np.exp(parameters.log_prob), self._starts[1:], axis=1)
        # inverse of the distribution function; the last state takes what rounding leaves
        return np.column_stack(
            [(u[:, [j]] > np.cumsum(p, axis=1)[y, :-1]).sum(axis=1) for j, p in enumerate(blocks)]
        ).astype(float)


class BernoulliNB(CategoricalNB):
    """Naive Bayes for binary features: `CategoricalNB` with two states, x > ``binarize`` being state 1.

    With ``binarize=None`` the features must be 0 or 1 already. The other parameters are those of `CategoricalNB`.
    """

    def __init__(
        self,
        *,
        binarize: float | None = 0.0,
        prior_strength: float = 0.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
    ) -> None:
        ConjugateClassifier.__init__(
            self, prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors
        )
        self.binarize = binarize

    def __sklearn_tags__(self):
        tags = ConjugateClassifier.__sklearn_tags__(self)
        tags.classifier_tags.poor_score = True  # on the Gaussian blobs of check_estimator, which are not binary
        return tags

    def _prepare(self, X: Array) -> None:
        ConjugateClassifier._prepare(self, X)
        self.n_states_ = np.full(X.shape[1], 2)

    def _codes(self, X: Array) -> NDArray[np.intp]:
        if self.binarize is not None:
            return (self.binarize < X).astype(np.intp)
        if np.any((X != 0) & (X != 1)):
            j = int(np.argmax(np.any((X != 0) & (X != 1), axis=0)))
            raise ValueError(f"{self._feature_name(j)} holds values other than 0 and 1; set binarize to a threshold")
        return X.astype(np.intp)


class MultinomialNB(_CountModel):
    r"""Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}.

    Statistics: class counts s_y and summed counts s_{y,v}. ML: p(v | y) = s_{y,v} / Σ_v' s_{y,v'}; MAP adds
    ``prior_strength`` / d to each s_{y,v}.

    With documents of one length L = Σ_v x_v this is a full exponential family. With unequal lengths it is not: the
    summed counts Σ_v s_{y,v} are then free of the class counts s_y, but the model's mean ties them, so that
    ``mean_parameters`` and ``log_partition`` are those of documents of the mean length ``length_`` of the rows that
    the model was first fitted to.
    The other parameters are those of `CategoricalNB`.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on the Gaussian blobs of check_estimator, which are no counts
        return tags

    def _prepare(self, X: Array) -> None:
        super()._prepare(X)
        self._check_counts(X)
        self.length_ = float(X.sum(axis=1).mean())

    def _check_counts(self, X: Array) -> None:
        if X.min() < 0:
            j = int(np.argmin(X.min(axis=0)))
            raise ValueError(f"Negative values in data: {self._feature_name(j)}; MultinomialNB needs counts >= 0")

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Class counts (r,) and summed counts (r, d)."""
        return Statistics(count=weights.sum(axis=0), cells=weights.T @ X)

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.full(n_columns, self.prior_strength / n_columns)

    def _totals(self, cells: Array) -> Array:
        return cells.sum(axis=1, keepdims=True)

    def _cell_name(self, y: int, column: int) -> str:
        return f"{self._feature_name(column)} in {self._class_name(y)}"

    def log_joint(self, X: Array, parameters: CategoricalParameters) -> Array:
        """log p(y) + Σ_v x_v log p(v | y), with 0 log 0 = 0, up to the multinomial coefficient of x."""
        self._check_counts(X)
        zero = np.isneginf(parameters.log_prob)
        joint = X @ np.where(zero, 0.0, parameters.log_prob).T + parameters.log_prior
        if zero.any():
            joint[X @ zero.T.astype(float) > 0] = -np.inf
        return joint

    def mean_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """μ = (p(y), L p(y) p(v | y)) for documents of length L = ``length_``."""
        prior = np.exp(parameters.log_prior)
        return Statistics(count=prior, cells=self.length_ * prior[:, None] * np.exp(parameters.log_prob))

    def _log_totals(self, log_cells: Array) -> Array:
        return logsumexp(log_cells, axis=1, keepdims=True)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_y + L log Σ_v exp η_{y,v} for documents of length L = ``length_``."""
        return natural.count + self.length_ * logsumexp(natural.cells, axis=1)

    def _draw(self, parameters: CategoricalParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        p = np.exp(parameters.log_prob)
        return np.array([rng.multinomial(round(self.length_), p[c]) for c in y], dtype=float)


class GaussianParameters(NamedTuple):
    """Class log probabilities (r,), means (r, d), and covariances.

    ``covariance`` is (r, d, d) or, shared by the classes, (d, d); for independent features the variances (r, d) or
    (d,). ``whitener`` is A = L⁻¹ with L the Cholesky factor of the covariance, or 1/σ: A(x − μ) has unit covariance.
    """

    log_prior: Array
    mean: Array
    covariance: Array
    whitener: Array


class _Gaussian(ConjugateClassifier):
    """What the four Gaussian models share.

    Statistics: Σ W_iy (1, x_i, x_i ⊗ x_i), where ⊗ is the outer product or, for independent features, the product
    feature by feature; the last is summed over the classes where they share their covariance (``_shared``). Moments
    are taken about ``origin_``, the mean of the rows that the model was first fitted to (zero before any fit), so
    that no digits are lost to a large mean.
    """

    _shared: bool
    _remedies: str  # what to do about an invalid covariance, beside a prior

    def __init__(
        self,
        *,
        prior_strength: float = 0.0,
        prior_mean: float | ArrayLike = 0.0,
        prior_covariance: float | ArrayLike = 1.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
    ) -> None:
        super().__init__(prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors)
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance

    def _outer(self, a: Array, b: Array) -> Array:
        """a_y ⊗ b_y for each class y."""
        raise NotImplementedError

    def _diagonal(self, covariance: Array) -> Array:
        raise NotImplementedError

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        """Whitening factors A; `InvalidStatistics` where a covariance is not positive definite beyond rounding.

        The covariance is the difference of ``power`` and a square, and bears rounding errors in proportion to it.
        """
        raise NotImplementedError

    def _target_size(self, r: int, d: int) -> float:
        """Size of the pooled and grand targets: as many rows as make their statistics interior."""
        raise NotImplementedError

    def _dampen(self, trial: Array, old: Array) -> Array:
        """``trial`` covariances made positive definite: its eigenvalues relative to ``old`` go through `_dampened`."""
        raise NotImplementedError

    def _prepare(self, X: Array) -> None:
        super()._prepare(X)
        self._check_prior(X.shape[1])
        self.origin_ = X.mean(axis=0)

    def _check_prior(self, d: int) -> None:
        mean, covariance = np.asarray(self.prior_mean, dtype=float), self._prior_covariance(d)
        if mean.shape not in ((), (d,)) or not np.isfinite(mean).all():
            raise ValueError(
                f"prior_mean must be a finite number or {d} of them, one a feature; got {self.prior_mean!r}"
            )
        shape = self._outer(np.zeros((1, d)), np.zeros((1, d))).shape[1:]
        try:
            if covariance.shape != shape or not np.allclose(covariance, covariance.T):
                raise InvalidStatistics
            self._whitener(covariance, covariance, np.ones(1))
        except InvalidStatistics:
            raise ValueError(
                "prior_covariance must be a positive number, or a symmetric and positive definite array of shape "
                f"{shape}; got {self.prior_covariance!r}"
            ) from None

    @property
    def _origin(self) -> Array | float:
        return getattr(self, "origin_", 0.0)

    def _sum(self, by_class: Array) -> Array:
        return by_class.sum(axis=0) if self._shared else by_class

    def _moments(self, s: Statistics) -> tuple[Array, Array, Array]:
        """Sample means, the scatter about them, and its weight; the last two summed over the classes where shared."""
        mean = s.first / s.count[:, None]
        outer = self._outer(mean, mean)
        count = _like(s.count, outer)
        return mean, s.second - self._sum(count * outer), self._sum(count)

    def _from_moments(self, count: Array, mean: Array, scatter: Array) -> Statistics:
        first = count[:, None] * mean
        return Statistics(count=count, first=first, second=scatter + self._sum(self._outer(first, mean)))

    def _log_prior(self, count: Array) -> Array:
        """Refuses also classes to which only the prior gives weight: they have no mean."""
        self._check_positive(count)
        return super()._log_prior(count)

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means s_y/s_0y and covariances S_y/s_0y − μ_y ⊗ μ_y, or their MAP versions (rc2025 §3.1, app. C)."""
        log_prior = self._log_prior(statistics.count)
        m, prior = self.prior_strength, self._prior_covariance(statistics.first.shape[1])
        mean = (m * (np.asarray(self.prior_mean) - self._origin) + statistics.first) / (m + statistics.count)[:, None]
        _, scatter, weight = self._moments(statistics)
        covariance = (m * prior + scatter) / (m + weight)
        power = (m * prior + statistics.second) / (m + weight)
        whitener = self._whitener(covariance, power, statistics.count)
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener)

    def _check_variances(self, covariance: Array, power: Array, count: Array) -> None:
        low = ~(self._diagonal(covariance) > 100 * EPS * np.abs(self._diagonal(power)))
        if low.any():
            y, j = np.argwhere(np.atleast_2d(low))[0]
            self._refuse(f"{self._feature_name(j)} has no positive variance", y, count, low.shape[-1])

    def _refuse(self, fault: str, y: int, count: Array, d: int) -> None:
        where = "the classes" if self._shared else self._class_name(y)
        n = count.sum() if self._shared else count[y]
        raise InvalidStatistics(
            f"{fault} within {where}, with n = {n:.6g} rows for d = {d} features (too few or degenerate rows, or an "
            f"update of the statistics that went too far): {self._remedies}, or set prior_strength > 0"
        )

    def _prior_covariance(self, d: int) -> Array:
        """Σ₀ as an array, a number standing for its multiple of the identity."""
        raise NotImplementedError

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """Class after class takes on its new statistics where they give a positive definite covariance."""
        kept = old
        for y in range(len(old.count)):
            mine = np.arange(len(old.count)) == y
            second = kept.second if self._shared else np.where(_like(mine, old.second), new.second, kept.second)
            kept = self._if_valid(
                Statistics(
                    count=np.where(mine, new.count, kept.count),
                    first=np.where(mine[:, None], new.first, kept.first),
                    second=second,
                ),
                kept,
            )
        if self._shared:
            kept = self._if_valid(Statistics(count=kept.count, first=kept.first, second=new.second), kept)
        return kept

    def _if_valid(self, trial: Statistics, otherwise: Statistics) -> Statistics:
        try:
            self.parameters(trial)
        except InvalidStatistics:
            return otherwise
        return trial

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts as those of categories, and the means and covariances that ``old`` + ``change`` has with these counts,
        covariances with their shrinkage dampened, so that they stay positive definite."""
        m, prior = self.prior_strength, self._prior_covariance(old.first.shape[1])
        mean, scatter, weight = self._moments(old)
        count = _safe_class_counts(old.count, change.count)
        shift = change.first - mean * change.count[:, None]
        about_mean = self._outer(mean, shift) + self._outer(change.first, mean)
        trial = scatter + change.second - self._sum(about_mean + self._outer(shift, shift / count[:, None]))
        new_weight = self._sum(_like(count, about_mean))
        covariance = self._dampen((m * prior + trial) / (m + new_weight), (m * prior + scatter) / (m + weight))
        return self._from_moments(count, mean + shift / count[:, None], (m + new_weight) * covariance - m * prior)

    def pooled_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Observed class weights and means, and the pooled within-class covariance; r(d + 1) pseudo-rows, or 2r for
        independent features."""
        log_prior = self._log_prior(statistics.count)
        mean, scatter, _ = self._moments(statistics)
        within = scatter if self._shared else scatter.sum(axis=0)
        return self._common_covariance(log_prior, mean, within, statistics.count.sum())

    def grand_parameters(self, statistics: Statistics) -> tuple[GaussianParameters, float]:
        """Equal class weights, and for every class the mean and the covariance of all rows."""
        log_prior = _uniform(self._log_prior(statistics.count))
        _, scatter, _ = self._moments(statistics)
        total, r = statistics.count.sum(), len(statistics.count)
        mean = np.tile(statistics.first.sum(axis=0) / total, (r, 1))
        within = scatter if self._shared else scatter.sum(axis=0)
        deviation = statistics.first / statistics.count[:, None] - mean
        between = self._outer(deviation * statistics.count[:, None], deviation).sum(axis=0)
        return self._common_covariance(log_prior, mean, within + between, total)

    def _common_covariance(
        self, log_prior: Array, mean: Array, scatter: Array, total: float
    ) -> tuple[GaussianParameters, float]:
        """Parameters with the ML or MAP covariance of all rows, and the pseudo-rows they count for."""
        r, d = mean.shape
        m, prior = self.prior_strength, self._prior_covariance(d)
        covariance = (m * prior + scatter) / (m + total)
        if not self._shared:
            covariance = np.tile(covariance, (r, *[1] * covariance.ndim))
        power = covariance + self._outer(mean, mean).max(axis=0)
        whitener = self._whitener(covariance, power, np.full(r, total))
        return GaussianParameters(log_prior, mean + self._origin, covariance, whitener), self._target_size(r, d)

    def mean_parameters(self, parameters: GaussianParameters) -> Statistics:
        """μ = p(y) (1, μ_y, Σ_y + μ_y ⊗ μ_y), the last summed over y where shared."""
        prior, mean = np.exp(parameters.log_prior), parameters.mean - self._origin
        outer = self._outer(mean, mean)
        return Statistics(
            count=prior,
            first=prior[:, None] * mean,
            second=self._sum(_like(prior, outer) * (parameters.covariance + outer)),
        )

    def _solved(self, precision: Array, first: Array) -> tuple[Array, Array, Array]:
        """Means, covariances and whiteners of precisions P and linear terms P μ."""
        raise NotImplementedError

    def _definite(self, precision: Array) -> Array:
        """Precisions of shape (r, …), a common one added where they are not all positive definite."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> GaussianParameters:
        """P_y = −2 η_2y, μ_y = P_y⁻¹ η_1y, p(y) ∝ exp(η_0y + A_y), with a common precision added if need be."""
        precision = -2 * natural.second
        precision = self._definite(precision[None])[0] if self._shared else self._definite(precision)
        log_prior = self.class_log_partition(
            Statistics(count=natural.count, first=natural.first, second=-0.5 * precision)
        )
        mean, covariance, whitener = self._solved(precision, natural.first)
        return GaussianParameters(log_prior - logsumexp(log_prior), mean + self._origin, covariance, whitener)


def _like(by_class: Array, array: Array) -> Array:
    """One number a class, shaped to multiply ``array``, whose first axis is the class."""
    return by_class.reshape(-1, *[1] * (array.ndim - 1))


def _blocks(n: int, size: int = BLOCK) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class _FullGaussian(_Gaussian):
    """Gaussian classes with full covariance matrices, (r, d, d), or (d, d) where shared."""

    def _outer(self, a: Array, b: Array) -> Array:
        return a[:, :, None] * b[:, None, :]

    def _diagonal(self, covariance: Array) -> Array:
        return covariance.diagonal(axis1=-2, axis2=-1)

    def _target_size(self, r: int, d: int) -> float:
        return float(r * (d + 1))

    def _prior_covariance(self, d: int) -> Array:
        prior = np.asarray(self.prior_covariance, dtype=float)
        return prior * np.eye(d) if prior.ndim == 0 else prior

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        self._check_variances(covariance, power, count)
        d = covariance.shape[-1]
        scale = np.sqrt(self._diagonal(covariance))
        noise = EPS * (self._diagonal(power) / scale**2).max(axis=-1).ravel()
        A = covariance / (scale[..., :, None] * scale[..., None, :])
        for y, matrix in enumerate(A.reshape(-1, d, d)):  # correlations, overwritten by their whitening factors
            try:
                matrix[:] = solve_triangular(np.linalg.cholesky(matrix), np.eye(d), lower=True)
            except np.linalg.LinAlgError:
                matrix[:] = np.inf
            # ‖A‖² is the trace of the inverse correlation: about 1/λ for its least eigenvalue λ
            if not np.sum(matrix * matrix) * noise[y] < 0.01:
                self._refuse("the covariance matrix is not positive definite", y, count, d)
        A /= scale[..., None, :]
        return A

    def _dampen(self, trial: Array, old: Array) -> Array:
        L = np.linalg.cholesky(old)
        half = np.linalg.solve(L, trial)
        values, vectors = np.linalg.eigh(np.linalg.solve(L, half.swapaxes(-1, -2)))
        root = L @ (vectors * np.sqrt(_dampened(values))[..., None, :])
        return root @ root.swapaxes(-1, -2)

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i x_iᵀ): count (r,), first (r, d), second (r, d, d), or (d, d) where shared."""
        r, d = weights.shape[1], X.shape[1]
        first = np.zeros((r, d))
        second = np.zeros((1 if self._shared else r, d, d))
        row_weights = weights.sum(axis=1, keepdims=True) if self._shared else weights
        for rows in _blocks(len(X)):
            x = X[rows] - self._origin
            first += weights[rows].T @ x
            for total, w in zip(second, row_weights[rows].T):
                total += (x * w[:, None]).T @ x
        return Statistics(count=weights.sum(axis=0), first=first, second=second[0] if self._shared else second)

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + log N(x; μ_y, Σ_y), by the inverse Cholesky factors and one matrix product a block of rows."""
        log_prior, mean, _, A = parameters
        r, d = mean.shape
        centre = mean.mean(axis=0)
        constant = log_prior + np.log(self._diagonal(A)).sum(axis=-1) - 0.5 * d * LOG_2PI
        white_mean = (A @ (mean - centre)[:, :, None])[:, :, 0]
        joint = np.empty((len(X), r))
        for rows in _blocks(len(X)):
            x = X[rows] - centre
            if self._shared:
                # one whitening for all classes, whose distances differ by what is linear in x
                Z = x @ A.T
                joint[rows] = Z @ white_mean.T - 0.5 * (white_mean**2).sum(axis=1)
                joint[rows] -= 0.5 * np.einsum("id,id->i", Z, Z)[:, None]
            else:
                Z = x @ A.reshape(r * d, d).T
                Z -= white_mean.ravel()
                Z = Z.reshape(-1, r, d)
                joint[rows] = -0.5 * np.einsum("iyd,iyd->iy", Z, Z)
        return joint + constant

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks, which keeps nothing of a row."""
        blocks = (
            self.statistics(X[rows], weigh(self.log_joint(X[rows], parameters), rows))
            for rows in _blocks(len(X), PASS_BLOCK)
        )
        return reduce(add, blocks)

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η = (log p(y) − ½ μᵀΣ⁻¹μ − ½ log|2πΣ|, Σ⁻¹μ, −½ Σ⁻¹), with μ about the origin."""
        log_prior, mean, _, A = parameters
        mean = mean - self._origin
        precision = A.swapaxes(-1, -2) @ A
        first = (precision @ mean[:, :, None])[:, :, 0]
        log_det = np.log(self._diagonal(A)).sum(axis=-1)
        count = log_prior - 0.5 * (mean * first).sum(axis=1) + log_det - 0.5 * mean.shape[1] * LOG_2PI
        return Statistics(count=count, first=first, second=-0.5 * precision)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + ½ η_1yᵀ P_y⁻¹ η_1y − ½ log|P_y/2π| with P_y = −2 η_2y."""
        precision = -2 * natural.second
        log_det = np.linalg.slogdet(precision / (2 * np.pi))[1]
        solved = np.linalg.solve(precision, natural.first[:, :, None])[:, :, 0]
        return natural.count + 0.5 * (natural.first * solved).sum(axis=1) - 0.5 * log_det

    def _solved(self, precision: Array, first: Array) -> tuple[Array, Array, Array]:
        whitener = np.linalg.cholesky(precision).swapaxes(-1, -2)
        root = np.linalg.solve(whitener, np.eye(precision.shape[-1]))
        covariance = root @ root.swapaxes(-1, -2)
        return (covariance @ first[:, :, None])[:, :, 0], covariance, whitener

    def _definite(self, precision: Array) -> Array:
        values, vectors = np.linalg.eigh(precision)
        common = ((vectors * np.abs(values)[:, None, :]) @ vectors.swapaxes(-1, -2)).mean(axis=0)
        common += max(EPS * np.trace(common), np.finfo(float).tiny) * np.eye(len(common))
        factor = np.linalg.cholesky(common)
        half = np.linalg.solve(factor, precision)
        lowest = np.linalg.eigvalsh(np.linalg.solve(factor, half.swapaxes(-1, -2))).min()
        return precision if lowest > INDEFINITE else precision + (LEAST_PRECISION - lowest) * common

    def scores(self, X: Array, natural: Statistics) -> Array:
        """η_0y + η_1yᵀ x + xᵀ η_2y x, with x about the origin."""
        X = X - self._origin
        scores = X @ natural.first.T + natural.count
        for y, second in enumerate(natural.second[None] if self._shared else natural.second):
            square = np.einsum("id,id->i", X @ second, X)
            if self._shared:
                scores += square[:, None]
            else:
                scores[:, y] += square
        return scores

    def _draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        X = rng.standard_normal((len(y), parameters.mean.shape[1]))
        factors = np.linalg.cholesky(parameters.covariance)
        for c, mean in enumerate(parameters.mean):
            X[y == c] = mean + X[y == c] @ (factors if self._shared else factors[c]).T
        return X


class QDA(_FullGaussian):
    r"""Quadratic discriminant analysis: x | y ~ N(μ_y, Σ_y) (rc2025 §3.1).

    ML: μ_y = s_y/s_0y, Σ_y = S_y/s_0y − μ_y μ_yᵀ. MAP with m = ``prior_strength`` (rc2025 app. C, m₁ = m₂ = m):
    μ_y = (m μ₀ + s_y)/(m + s_0y), Σ_y = (m Σ₀ + s_0y Σ̂_y)/(m + s_0y); the default prior suits z-scores.

    Parameters
    ----------
    prior_strength : float
        Pseudo-rows m of the prior of each class; 0 is maximum likelihood.
    prior_mean : float or array of shape (d,)
        μ₀, in the units of X.
    prior_covariance : float or array of shape (d, d)
        Σ₀, in squared units of X; a number stands for a multiple of the identity.
    class_prior_strength : float, optional
        Pseudo-rows m₀ of the class distribution; None: ``prior_strength``.
    priors : array of shape (r,), optional
        Class probabilities, instead of estimated ones.
    """

    _shared = False
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features, the class, or use LDA"

    def weighted_statistics(
        self, X: Array, parameters: GaussianParameters, weigh: Callable[[Array, slice], Array]
    ) -> Statistics:
        """One pass in row blocks; where classes are many and features few, by quadratic features.

        The d(d+1)/2 + d + 1 monomials of a block serve the densities and the statistics, in one wide matrix product
        each, at half the arithmetic of the products class by class.
        """
        r, d = parameters.mean.shape
        if r < FUSED_CLASSES_PER_FEATURE * d:
            return super().weighted_statistics(X, parameters, weigh)
        upper = np.triu_indices(d)
        coefficients = self._quadratic_coefficients(parameters, upper)
        if self._rounding(parameters, coefficients, upper) > LARGEST_ROUNDING:
            return super().weighted_statistics(X, parameters, weigh)
        moments = np.zeros_like(coefficients)
        size = max(64, min(1024, BLOCK_ENTRIES // coefficients.shape[1]))
        monomials = np.empty((coefficients.shape[1], size))
        for rows in _blocks(len(X), size):
            x = (X[rows] - self._origin).T.copy()
            block = monomials[:, : x.shape[1]]
            block[0], block[1 : d + 1], start = 1.0, x, d + 1
            for j in range(d):
                np.multiply(x[j], x[j:], out=block[start : start + d - j])
                start += d - j
            moments += weigh((coefficients @ block).T, rows).T @ block.T
        second = np.empty((r, d, d))
        second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = moments[:, d + 1 :]
        return Statistics(count=moments[:, 0], first=moments[:, 1 : d + 1], second=second)

    def _quadratic_coefficients(self, parameters: GaussianParameters, upper: tuple) -> Array:
        """log p(x, y) as a quadratic polynomial: its coefficients on 1, x_a and x_a x_b (a ≤ b)."""
        eta = self.natural_parameters(parameters)
        second = eta.second[:, upper[0], upper[1]] * np.where(upper[0] == upper[1], 1.0, 2.0)
        return np.hstack([eta.count[:, None], eta.first, second])

    def _rounding(self, parameters: GaussianParameters, coefficients: Array, upper: tuple) -> float:
        """Rounding error of the polynomial at rows of typical size: near singularity, its terms cancel."""
        mean = parameters.mean - self._origin
        size = np.sqrt((self._diagonal(parameters.covariance) + mean**2).mean(axis=0))
        terms = np.abs(coefficients) @ np.concatenate([[1.0], size, size[upper[0]] * size[upper[1]]])
        return EPS * float(terms.max())


class LDA(_FullGaussian):
    r"""Linear discriminant analysis: x | y ~ N(μ_y, Σ), one covariance for all classes.

    ML: Σ = (S − Σ_y s_0y μ̂_y μ̂_yᵀ) / Σ_y s_0y, the pooled within-class covariance. The parameters are those of `QDA`.
    """

    _shared = True
    _remedies = "a covariance matrix needs more than d rows; drop constant or collinear features"


class _DiagonalGaussian(_Gaussian):
    """Gaussian classes with independent features, variances (r, d), or (d,) where shared."""

    def _outer(self, a: Array, b: Array) -> Array:
        return a * b

    def _diagonal(self, covariance: Array) -> Array:
        return covariance

    def _whitener(self, covariance: Array, power: Array, count: Array) -> Array:
        self._check_variances(covariance, power, count)
        return 1 / np.sqrt(covariance)

    def _target_size(self, r: int, d: int) -> float:
        return float(2 * r)

    def _prior_covariance(self, d: int) -> Array:
        prior = np.asarray(self.prior_covariance, dtype=float)
        return np.full(d, prior) if prior.ndim == 0 else prior

    def _dampen(self, trial: Array, old: Array) -> Array:
        return old * _dampened(trial / old)

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Σ W_iy (1, x_i, x_i²): count (r,), first (r, d), second (r, d), or (d,) where shared."""
        X = X - self._origin
        square = X * X
        second = weights.sum(axis=1) @ square if self._shared else weights.T @ square
        return Statistics(count=weights.sum(axis=0), first=weights.T @ X, second=second)

    def log_joint(self, X: Array, parameters: GaussianParameters) -> Array:
        """log p(y) + Σ_j log N(x_j; μ_yj, σ²_yj), by one matrix product for x and one for x²."""
        log_prior, mean, _, A = parameters
        centre = mean.mean(axis=0)
        X, mean, precision = X - centre, mean - centre, A * A
        constant = log_prior + np.log(A).sum(axis=-1) - 0.5 * mean.shape[1] * LOG_2PI
        joint = X @ (mean * precision).T + (constant - 0.5 * (mean * mean * precision).sum(axis=1))
        np.multiply(X, X, out=X)
        square = X @ (-0.5 * precision).T
        joint += square[:, None] if self._shared else square
        return joint

    def natural_parameters(self, parameters: GaussianParameters) -> Statistics:
        """η = (log p(y) − ½ Σ_j (μ_j²/σ_j² + log 2πσ_j²), μ/σ², −1/(2σ²)), with μ about the origin."""
        log_prior, mean, _, A = parameters
        mean, precision = mean - self._origin, A * A
        count = log_prior - 0.5 * (mean**2 * precision + LOG_2PI).sum(axis=1) + np.log(A).sum(axis=-1)
        return Statistics(count=count, first=mean * precision, second=-0.5 * precision)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + Σ_j [η_1yj² / (2 p_yj) − ½ log(p_yj / 2π)] with p_y = −2 η_2y."""
        precision = -2 * natural.second
        gaussian = 0.5 * natural.first**2 / precision - 0.5 * np.log(precision / (2 * np.pi))
        return natural.count + gaussian.sum(axis=1)

    def _solved(self, precision: Array, first: Array) -> tuple[Array, Array, Array]:
        return first / precision, 1 / precision, np.sqrt(precision)

    def _definite(self, precision: Array) -> Array:
        common = np.maximum(np.abs(precision).mean(axis=0), np.finfo(float).tiny)
        lowest = (precision / common).min()
        return precision if lowest > INDEFINITE else precision + (LEAST_PRECISION - lowest) * common

    def scores(self, X: Array, natural: Statistics) -> Array:
        """η_0y + Σ_j (η_1yj x_j + η_2yj x_j²), with x about the origin."""
        X = X - self._origin
        square = (X * X) @ natural.second.T
        return X @ natural.first.T + natural.count + (square[:, None] if self._shared else square)

    def _draw(self, parameters: GaussianParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        deviation = np.broadcast_to(np.sqrt(parameters.covariance), parameters.mean.shape)
        return parameters.mean[y] + deviation[y] * rng.standard_normal((len(y), parameters.mean.shape[1]))


class GaussianNB(_DiagonalGaussian):
    """Naive Bayes with Gaussian features: x_j | y ~ N(μ_yj, σ²_yj).

    The parameters are those of `QDA`; a ``prior_covariance`` of shape (d,) holds the prior variances.
    """

    _shared = False
    _remedies = "drop constant features, the class, or use SharedVarianceGaussianNB"


class SharedVarianceGaussianNB(_DiagonalGaussian):
    r"""The closed-form logistic regression of rc2024 §VI-A: x_j | y ~ N(μ_yj, σ²_j), variances shared by the classes.

    ML: σ² = s²/Σ_y s_0y − Σ_y p(y) μ_y². The posterior is a softmax of linear functions of x. The parameters are
    those of `QDA`; a ``prior_covariance`` of shape (d,) holds the prior variances.
    """

    _shared = True
    _remedies = "drop constant features"


class ProductParameters(NamedTuple):
    """Class log probabilities (r,), and the parameters of each block."""

    log_prior: Array
    blocks: tuple


class ProductModel(ConjugateClassifier, _BaseComposition):
    r"""Conditionally independent blocks of features: p(x, y) = p(y) ∏_b p_b(x_b | y).

    Mixed data, say: ``ProductModel([("code", CategoricalNB(), [0, 3]), ("size", QDA(), [1, 2])])``. Its statistics,
    parameters, η and μ are those of its blocks; the class distribution is its own. Parameters of a block are reached
    by its name: ``set_params(size__prior_strength=1.0)``.

    Parameters
    ----------
    blocks : list of (name, model, columns)
        Columns as integers, a slice or, where X is a DataFrame, names.
    class_prior_strength : float
        Pseudo-rows of the class distribution; 0 is maximum likelihood.
    priors : array of shape (r,), optional
        Class probabilities, instead of estimated ones.
    """

    def __init__(
        self,
        blocks: list[tuple[str, ConjugateClassifier, Any]],
        *,
        class_prior_strength: float = 0.0,
        priors: ArrayLike | None = None,
    ) -> None:
        self.blocks = blocks
        self.class_prior_strength = class_prior_strength
        self.priors = priors

    prior_strength = 0.0  # the blocks have their own

    @property
    def _named_models(self) -> list[tuple[str, ConjugateClassifier]]:
        try:
            return [(name, model) for name, model, _ in self.blocks]
        except (TypeError, ValueError):  # blocks of another form, which fit refuses
            return []

    @_named_models.setter
    def _named_models(self, pairs: list[tuple[str, ConjugateClassifier]]) -> None:
        self.blocks = [(*pair, columns) for pair, (_, _, columns) in zip(pairs, self.blocks)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with the blocks and theirs by name if ``deep``."""
        return self._get_params("_named_models", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name`` replaces the model of a block, ``name__parameter`` sets one of its parameters."""
        return self._set_params("_named_models", **params)

    def _prepare(self, X: Array) -> None:
        super()._prepare(X)
        names = [name for name, _ in self._named_models]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"blocks must be a non-empty list of (name, model, columns) with different names; got {self.blocks!r}"
            )
        Statistics(**dict.fromkeys(names, 0.0))  # refuses names that a part cannot have
        self.columns_ = [self._columns(columns, X.shape[1]) for _, _, columns in self.blocks]
        used = np.concatenate(self.columns_)
        if len(np.unique(used)) < len(used):
            raise ValueError("blocks must not share columns; conditionally independent blocks have none in common")
        self.models_ = []
        for (name, model, _), columns in zip(self.blocks, self.columns_):
            if not isinstance(model, ConjugateClassifier) or isinstance(model, ProductModel):
                raise ValueError(
                    f"block {name!r} must be one of the models of rcpkg.generative, not a product itself; got {model!r}"
                )
            model = clone(model)
            if hasattr(self, "classes_"):
                model.classes_ = self.classes_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_[columns]
            model._prepare(X[:, columns])
            self.models_.append(model)

    def _columns(self, columns: Any, d: int) -> NDArray[np.intp]:
        if isinstance(columns, slice):
            return np.arange(d)[columns]
        columns = np.atleast_1d(columns)
        if columns.dtype.kind in "UO":
            if not hasattr(self, "feature_names_in_"):
                raise ValueError(
                    "blocks name columns by strings, but X has no column names; pass a DataFrame or integers"
                )
            names = self.feature_names_in_.tolist()
            missing = [name for name in columns.tolist() if name not in names]
            if missing:
                raise ValueError(f"blocks name columns that X does not have: {missing}")
            return np.array([names.index(name) for name in columns], dtype=np.intp)
        if columns.size == 0 or columns.min() < -d or columns.max() >= d:
            raise ValueError(f"blocks must name columns between 0 and {d - 1}; got {columns.tolist()}")
        return columns.astype(np.intp) % d

    def _parts(self, X: Array | tuple) -> tuple:
        if isinstance(X, tuple):
            return X
        if not hasattr(self, "models_"):
            self._prepare(X)
        return tuple(X[:, columns] for columns in self.columns_)

    def _encode(self, X: Array) -> tuple:
        return tuple(model._encode(x) for model, x in zip(self.models_, self._parts(X)))

    def statistics(self, X: Array | tuple, weights: Array) -> Statistics:
        """The statistics of each block, by its name."""
        parts = self._parts(X)
        return Statistics(
            **{name: model.statistics(x, weights) for (name, _, _), model, x in zip(self.blocks, self.models_, parts)}
        )

    def parameters(self, statistics: Statistics) -> ProductParameters:
        """The parameters of each block, and the class distribution from the counts that all blocks share."""
        parts = list(statistics)
        return ProductParameters(
            self._log_prior(parts[0].count), tuple(m.parameters(s) for m, s in zip(self.models_, parts))
        )

    def log_joint(self, X: Array | tuple, parameters: ProductParameters) -> Array:
        """log p(y) + Σ_b [log p_b(x_b, y) − log p_b(y)]."""
        joint = parameters.log_prior
        for model, x, block in zip(self.models_, self._parts(X), parameters.blocks):
            joint = joint + model.log_joint(x, block) - np.where(np.isneginf(block.log_prior), 0.0, block.log_prior)
        return joint

    def natural_parameters(self, parameters: ProductParameters) -> Statistics:
        """The η of each block; the class term log p(y) once, in the first block."""
        parts = {}
        for (name, _, _), model, block in zip(self.blocks, self.models_, parameters.blocks):
            log_prior = np.zeros_like(block.log_prior) if parts else parameters.log_prior
            parts[name] = model.natural_parameters(block._replace(log_prior=log_prior))
        return Statistics(**parts)

    def from_natural(self, natural: Statistics) -> ProductParameters:
        """Those of the blocks; the class distribution is their normalised product."""
        blocks = tuple(model.from_natural(part) for model, part in zip(self.models_, natural))
        log_prior = np.sum([block.log_prior for block in blocks], axis=0)
        return ProductParameters(log_prior - logsumexp(log_prior), blocks)

    def scores(self, X: Array | tuple, natural: Statistics) -> Array:
        """The sum of those of the blocks."""
        return np.sum([m.scores(x, part) for m, x, part in zip(self.models_, self._parts(X), natural)], axis=0)

    def mean_parameters(self, parameters: ProductParameters) -> Statistics:
        """The μ of each block, with the class distribution of the product."""
        return Statistics(
            **{
                name: model.mean_parameters(block._replace(log_prior=parameters.log_prior))
                for (name, _, _), model, block in zip(self.blocks, self.models_, parameters.blocks)
            }
        )

    def class_log_partition(self, natural: Statistics) -> Array:
        """The sum of those of the blocks."""
        return np.sum([model.class_log_partition(part) for model, part in zip(self.models_, natural)], axis=0)

    def _blockwise(self, method: str, *statistics: Statistics) -> Statistics:
        return Statistics(
            **{
                name: getattr(model, method)(*parts)
                for (name, _, _), model, *parts in zip(self.blocks, self.models_, *statistics)
            }
        )

    def frozen(self, old: Statistics, new: Statistics) -> Statistics:
        """Block by block."""
        return self._blockwise("frozen", old, new)

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Block by block."""
        return self._blockwise("safe_update", old, change)

    def conditioned(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """Block by block."""
        return self._blockwise("conditioned", old, expected, change)

    def same_form(self, other: object) -> bool:
        """With the same blocks."""
        return (
            super().same_form(other)
            and [name for name, _ in self._named_models] == [name for name, _ in other._named_models]
            and all(map(np.array_equal, self.columns_, other.columns_))
            and all(mine.same_form(theirs) for mine, theirs in zip(self.models_, other.models_))
        )

    @property
    def has_prior(self) -> bool:
        """Of the classes or of a block."""
        return super().has_prior or any(part.has_prior for part in self.models_)

    def without_prior(self) -> Self:
        """Of the classes and of each block."""
        model = super().without_prior()
        model.models_ = [part.without_prior() for part in self.models_]
        model._named_models = [(name, part.without_prior()) for name, part in self._named_models]
        return model

    def pooled_parameters(self, statistics: Statistics) -> tuple[ProductParameters, float]:
        """Observed class weights and the pooled blocks, with the pseudo-rows of the block that needs most."""
        pooled = [model.pooled_parameters(part) for model, part in zip(self.models_, statistics)]
        return self._joined(self._log_prior(next(iter(statistics)).count), pooled)

    def grand_parameters(self, statistics: Statistics) -> tuple[ProductParameters, float]:
        """Equal class weights and the grand blocks, with the pseudo-rows of the block that needs most."""
        grand = [model.grand_parameters(part) for model, part in zip(self.models_, statistics)]
        return self._joined(grand[0][0].log_prior, grand)

    def _joined(self, log_prior: Array, targets: list[tuple[Any, float]]) -> tuple[ProductParameters, float]:
        blocks, sizes = zip(*targets)
        return ProductParameters(log_prior, blocks), max(sizes)

    def _draw(self, parameters: ProductParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        unused = np.setdiff1d(np.arange(self.n_features_in_), np.concatenate(self.columns_))
        if unused.size:
            raise ValueError(f"columns {unused.tolist()} belong to no block, so that rows cannot be sampled")
        X = np.empty((len(y), self.n_features_in_))
        for model, columns, block in zip(self.models_, self.columns_, parameters.blocks):
            X[:, columns] = model._draw(block, y, rng)
        return X
