"""Naive Bayes for what is counted: categories, and words of documents."""

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import logsumexp

from rcpkg.base import Array, InvalidStatistics
from rcpkg.families.capabilities import Unsupported
from rcpkg.families.family import ConjugateClassifier, equal_class_weights, safe_class_counts, safe_counts
from rcpkg.families.features import IndicatorFeatures, StateFeatures
from rcpkg.families.states import CodedCategories, row_blocks
from rcpkg.families.statistics import Statistics

UNKNOWN = ("skip", "impossible")
ROUNDING = 1e-12  # of sums over rows, relative to the sum of magnitudes


class CategoricalParameters(NamedTuple):
    """Class log probabilities (r,), and log p(x_j = v | y) as (r, K), features side by side."""

    log_prior: Array
    log_prob: Array


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, and zero where the whole is zero, as in a distribution of which nothing was counted."""
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)


class CountModel(ConjugateClassifier):
    """What the models with counts for statistics share: distributions side by side in the columns of ``cells``."""

    def _pseudo_rows(self, n_columns: int) -> Array:
        """Pseudo-rows of each column of ``cells``."""
        raise NotImplementedError

    def _distribution_sums(self, cells: Array) -> Array:
        """Sum of each distribution."""
        raise NotImplementedError

    def _spread(self, of_distribution: Array) -> Array:
        """Numbers of distributions, such as their sums, in a shape that goes with ``cells``."""
        raise NotImplementedError

    def totals(self, cells: Array) -> Array:
        """Sum of the distribution that each column belongs to, in a shape that divides ``cells``."""
        return self._spread(self._distribution_sums(cells))

    def _cell_name(self, y: int, column: int) -> str:
        raise NotImplementedError

    def _nothing(self, y: int, column: int) -> str:
        """Complaint that the distribution of a column has nothing to count in class y."""
        return f"nothing is left to count in {self._class_name(y)}: give it rows with counts, or a prior_strength"

    def parameters(self, statistics: Statistics) -> CategoricalParameters:
        """Relative frequencies, each distribution normalised over its own states."""
        log_prior = self._log_prior(statistics.count)
        cells = self.with_pseudo_rows(statistics).cells
        y, column = np.unravel_index(cells.argmin(), cells.shape)
        if not cells[y, column] >= 0:
            if not cells[y, column] >= -ROUNDING * np.abs(cells).sum():
                raise InvalidStatistics(f"negative count {cells[y, column]:.6g} of {self._cell_name(y, column)}")
            cells = np.maximum(cells, 0.0)
        return CategoricalParameters(log_prior, self._log_frequencies(cells))

    def _log_frequencies(self, cells: Array) -> Array:
        totals = self.totals(cells)
        if np.any(totals <= 0):
            raise InvalidStatistics(self._nothing(*np.argwhere(totals <= 0)[0]))
        with np.errstate(divide="ignore"):
            return np.log(cells / totals)

    def with_pseudo_rows(self, statistics: Statistics) -> Statistics:
        """Statistics with those of the prior, whose maximum likelihood is the MAP of ``statistics``."""
        if not self.has_prior:
            return statistics
        of_class, of_cell = self._class_pseudo_rows(len(statistics.count)), self._pseudo_rows(statistics.cells.shape[1])
        return Statistics(count=statistics.count + of_class, cells=statistics.cells + of_cell)

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
        old = self.with_pseudo_rows(old)
        count = safe_class_counts(old.count, change.count)
        totals = self._safe_sums(old, change, count)
        cells = safe_counts(old.cells, change.cells)
        cells *= self._spread(_ratio(totals, self._distribution_sums(cells)))
        cells -= of_cell
        return Statistics(count=count - of_class, cells=cells)

    def conditioned(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        """Δ log θ_v = (g_v − ω θ_v) / max(s_v, s(X, P)_v) for the change g of cells s, ω such that Σ θ_v Δ log θ_v = 0.

        Without the maximum this is ``change``. The curvature of the conditional likelihood is at most d + 1 times
        diag s(X, P), for d features or words a row: so a near-empty cell to which the rows' posteriors give much does
        not shorten the step of all others.
        """
        cells = old.cells + self._pseudo_rows(old.cells.shape[1])
        theta, total = _ratio(cells, self.totals(cells)), self.totals(change.cells)
        scale = np.where(cells > 0, np.maximum(cells, expected.cells), 1.0)
        slope, curvature = theta * change.cells, theta * theta
        slope /= scale
        curvature /= scale
        excess = _ratio(self._distribution_sums(slope), self._distribution_sums(curvature))
        steps = cells * (change.cells - self._spread(excess) * theta)
        steps /= scale
        steps += theta * total
        return Statistics(count=change.count, cells=steps)

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Sums after a change that gives the class counts ``count``: changed as these are, so that with rows of one
        length ℓ they stay ℓ times these."""
        sums = safe_counts(self._distribution_sums(old.cells), self._distribution_sums(change.cells))
        return sums * (count / safe_counts(old.count, change.count))[:, None]

    def pooled_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """Observed class weights, and the same distributions for all classes; r pseudo-rows."""
        cells = statistics.cells.sum(axis=0, keepdims=True)
        pooled = self._log_frequencies(cells + self._pseudo_rows(cells.shape[1]))
        r = len(statistics.count)
        return CategoricalParameters(self._log_prior(statistics.count), np.tile(pooled, (r, 1))), float(r)

    def grand_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """As pooled, with equal class weights."""
        parameters, size = self.pooled_parameters(statistics)
        return parameters._replace(log_prior=equal_class_weights(parameters.log_prior)), size

    def natural_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """η = (log p(y), log p(x_j = v | y)), or (log p(y), log p(v | y))."""
        return Statistics(count=parameters.log_prior, cells=parameters.log_prob)

    def _log_totals(self, log_cells: Array) -> Array:
        """log Σ exp over the distribution that each column belongs to, in a shape to subtract from ``log_cells``."""
        raise NotImplementedError

    def from_natural(self, natural: Statistics) -> CategoricalParameters:
        """p(y) ∝ exp(η_y + A_y), and each distribution normalised."""
        log_prior = self.class_log_partition(natural)
        log_prior -= np.logaddexp.reduce(log_prior)
        return CategoricalParameters(log_prior, natural.cells - self._log_totals(natural.cells))

    def scores(self, X: Array | csr_array, natural: Statistics) -> Array:
        """η_y + Σ of the η of what is counted."""
        return (X if issparse(X) else self.encode(X)) @ natural.cells.T + natural.count


class CategoricalNB(CodedCategories, CountModel):
    """Naive Bayes for categorical features: p(x, y) = p(y) ∏_j p(x_j | y).

    Statistics: class counts s_y and cell counts s_{y,j,v}. ML: p(x_j = v | y) = s_{y,j,v} / Σ_v' s_{y,j,v'};
    MAP: (s_{y,j,v} + m₀/r_j) / (Σ_v' s_{y,j,v'} + m₀) with m₀ = ``prior_strength``.

    Features are codes 0, 1, 2, …, or text, whose names are remembered. A feature that is missing (NaN, None, −1) or
    holds a category unseen in training is *marginalised*: Σ_v p(x, y) over the states v of x_j is the product without
    the factor j, which is skipped. A state that is declared, but of no row, is none that is unknown: MAP gives it the
    pseudo-rows m₀/r_j; under ML, where it has probability zero in each class, it is skipped too, as the limit of
    probabilities that are small and the same for all. A state of some other class has probability zero under ML; a
    row impossible under every class gets the class prior.

    Parameters
    ----------
    n_states : int or array of shape (d,), optional
        Number of states r_j of each feature, coded 0 … r_j − 1; by default the states are those of the training rows.
    prior_strength : float or array of shape (d,), default=0.0
        Pseudo-rows m₀ ≥ 0 of each conditional distribution, m₀/r_j a state; 0 is maximum likelihood.
    class_prior_strength : float, optional
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; by default as many as ``prior_strength``, or none
        where that is an array.
    priors : array of shape (r,), optional
        Class probabilities, in the order of ``classes_``; by default they are estimated.
    unknown : {"skip", "impossible"}, default="skip"
        "impossible" is the rule of the sources' tables: states are the codes 0 to the largest, a row with a code
        beyond gets the class prior, whatever its other features, and missing values are refused.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y).
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, K), the K states of all features side by side.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, K); None while the rows of ``partial_fit`` do not suffice.
    n_states_ : array of shape (d,)
        Numbers of states, declared or learnt.
    categories_ : list of d arrays
        The states of each feature, codes or names, in the order of ``cells``.

    Notes
    -----
    Missing values in training: the closed form is that of the values that are there, the maximum of Σ log p of the
    rows' own marginals. Those have log-partitions of their own, so that conditional likelihood is no longer concave in
    η: `RiskCalibration` accepts such rows, with safe steps checked one by one but without a global claim; targets and
    `ConditionalLikelihood` refuse them. Which values are missing must not depend on what they would have been.

    scikit-learn's ``alpha`` counts for each state: ``CategoricalNB(alpha=a)`` is ``prior_strength = a * r_j``, an
    array where the numbers of states differ, with ``class_prior_strength=0.0``. It takes all codes up to the largest
    for states, as ``unknown="impossible"`` does.

    References
    ----------
    rc2025 §3.1, app. C.

    Examples
    --------
    >>> from rcpkg import CategoricalNB
    >>> X, y = [[0, 1], [1, 0], [1, 2], [0, 2]], ["no", "no", "yes", "yes"]
    >>> model = CategoricalNB(prior_strength=1.0).fit(X, y)
    >>> model.n_states_
    array([2, 3])
    >>> model.predict_proba([[1, 2], [1, 0], [1, 7]]).round(3)
    array([[0.125, 0.875],
           [0.8  , 0.2  ],
           [0.5  , 0.5  ]])
    >>> colours = [["red", "02"], ["blue", "2"], ["red", "2"]]
    >>> CategoricalNB().fit(colours, ["a", "b", "a"]).categories_
    [array(['blue', 'red'], dtype=object), array(['02', '2'], dtype=object)]
    """

    def __init__(
        self,
        *,
        n_states: int | ArrayLike | None = None,
        prior_strength: float | ArrayLike = 0.0,
        class_prior_strength: float | None = None,
        priors: ArrayLike | None = None,
        unknown: str = "skip",
    ) -> None:
        super().__init__(prior_strength=prior_strength, class_prior_strength=class_prior_strength, priors=priors)
        self.n_states = n_states
        self.unknown = unknown

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be one of {', '.join(UNKNOWN)}; got {self.unknown!r}")
        self._set_states([np.empty(0, dtype=np.intp)] * X.shape[1], X)

    def extended(self, X: Array, statistics: Statistics) -> Statistics:
        """Statistics of the rows so far, with empty cells for the states that these rows are the first to hold."""
        old = self._states
        self._set_states(old, X)
        places = [s + np.searchsorted(new, of) for s, new, of in zip(self.starts_, self._states, old)]
        cells = np.zeros((len(statistics.count), int(self.n_states_.sum())))
        cells[:, np.concatenate(places)] = statistics.cells
        return Statistics(count=statistics.count, cells=cells)

    @property
    def starts_(self) -> NDArray[np.intp]:
        """Column of the first state of each feature among the K columns of all states."""
        return np.cumsum(self.n_states_) - self.n_states_

    def indicators(self, places: NDArray[np.integer]) -> csr_array:
        """One-hot rows, sparse; a place −1 counts nothing."""
        n, d = places.shape
        columns, index = places + self.starts_.astype(np.int32), np.int32 if n * d < 2**31 else np.int64
        if places.min(initial=0) < 0:
            there = places >= 0
            columns, rows = columns[there], np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(index)
        else:
            columns, rows = columns.ravel(), np.arange(0, n * d + 1, d, dtype=index)
        return csr_array((np.ones(len(columns)), columns, rows), shape=(n, int(self.n_states_.sum())))

    def encode(self, X: Array) -> csr_array:
        """One-hot rows, sparse, of training rows; raises where a state was not declared."""
        return self.indicators(self._known_places(X))

    def raw_statistics(self, X: Array, weights: Array) -> Statistics:
        """Encoded block by block, sparse rows, which take no more memory when encoded, all at once."""
        blocks = [slice(None)] if issparse(X) else row_blocks(X)
        return reduce(add, (self.statistics(self.encode(X[rows]), weights[rows]) for rows in blocks))

    def statistics(self, X: Array | csr_array, weights: Array) -> Statistics:
        """Class counts (r,) and cell counts (r, K)."""
        if not issparse(X):
            if not hasattr(self, "n_states_"):
                self.prepare(X)
            X = self.encode(X)
        return Statistics(count=weights.sum(axis=0), cells=np.ascontiguousarray((X.T @ weights).T))

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.repeat(np.asarray(self.prior_strength) / self.n_states_, self.n_states_)

    def _distribution_sums(self, cells: Array) -> Array:
        return np.add.reduceat(cells, self.starts_, axis=1)

    def _spread(self, of_distribution: Array) -> Array:
        return np.repeat(of_distribution, self.n_states_, axis=1)

    def _feature_of(self, column: int) -> int:
        return int(np.searchsorted(self.starts_, column, side="right")) - 1

    def _cell_name(self, y: int, column: int) -> str:
        j = self._feature_of(column)
        state = self._states[j][column - self.starts_[j]]
        state = repr(self._names[j][state]) if j in self._names else state
        return f"state {state} of {self._feature_name(j)} in {self._class_name(y)}"

    def _nothing(self, y: int, column: int) -> str:
        return (
            f"nothing is left to count in {self._class_name(y)}: {self._feature_name(self._feature_of(column))} is "
            "missing in all its rows; set prior_strength > 0, or leave the feature out"
        )

    def log_joint(self, X: Array | csr_array, parameters: CategoricalParameters) -> Array:
        """log p(y) + Σ_j log p(x_j | y), over the features whose states are known unless ``unknown="impossible"``."""
        if issparse(X):
            return X @ self._counted(parameters.log_prob).T + parameters.log_prior
        terms, joint = self._counted(parameters.log_prob).T, np.empty((len(X), len(parameters.log_prior)))
        for rows in row_blocks(X):
            places = self.places(X[rows])
            joint[rows] = self.indicators(places) @ terms + parameters.log_prior
            if self.unknown == "impossible":
                joint[rows][(places < 0).any(axis=1)] = -np.inf
        return joint

    def _counted(self, log_prob: Array) -> Array:
        """log p(x_j = v | y), with 0 for the states that have probability zero in every class, which are skipped."""
        nowhere = np.isneginf(log_prob).all(axis=0)
        return np.where(nowhere, 0.0, log_prob) if self.unknown == "skip" and nowhere.any() else log_prob

    def feature_map(
        self, X: csr_array, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> StateFeatures:
        """Indicators of the states, of each feature but the most frequent where that makes them independent."""
        if kind == "minimal":
            return StateFeatures(X, statistics.cells.sum(axis=0), self.starts_, kind)
        if kind == "natural" or X.nnz < X.shape[0] * len(self.n_states_):
            return StateFeatures(X, np.ones(X.shape[1]), self.starts_, "natural")
        counts = np.bincount(X.indices, minlength=X.shape[1])
        return IndicatorFeatures(X, counts, self.starts_, kind, self.n_states_)

    def check_complete(self, X: csr_array) -> None:
        seen = np.add.reduceat(X.sum(axis=0), self.starts_)
        if seen.min() < X.shape[0]:
            self._refuse_missing(int(np.argmin(seen)))

    def _refuse_missing(self, j: int) -> None:
        raise ValueError(
            f"{self._feature_name(j)} holds missing values: each row then has a marginal of its own, and conditional "
            "likelihood is not concave. Leave such rows out, give missing values a state of their own, or calibrate "
            "with target_weight=0, whose steps are checked one by one"
        )

    def same_form(self, other: object) -> bool:
        """With the same states of each feature, too."""
        return super().same_form(other) and all(map(np.array_equal, self.categories_, other.categories_))

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Each feature takes in the rows that its class does."""
        before, rows = self._distribution_sums(old.cells), (count - old.count)[:, None]
        # with more pseudo-rows for the class than for the feature a class may lose more rows than a feature has
        return np.where(before + rows > 0, before + rows, safe_counts(before, rows))

    def mean_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """μ = (p(y), p(y) p(x_j = v | y))."""
        prior = np.exp(parameters.log_prior)
        return Statistics(count=prior, cells=prior[:, None] * np.exp(parameters.log_prob))

    def _log_totals(self, log_cells: Array) -> Array:
        return np.repeat(np.logaddexp.reduceat(log_cells, self.starts_, axis=1), self.n_states_, axis=1)

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_y + Σ_j log Σ_v exp η_{y,j,v}."""
        return natural.count + np.logaddexp.reduceat(natural.cells, self.starts_, axis=1).sum(axis=1)

    def draw(self, parameters: CategoricalParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        u = rng.uniform(size=(len(y), len(self.n_states_)))
        blocks = np.split(np.exp(parameters.log_prob), self.starts_[1:], axis=1)
        X = np.empty(u.shape, dtype=object if self._names else float)
        for j, p in enumerate(blocks):
            # inverse of the distribution function; the last state takes what rounding leaves
            place = (u[:, [j]] > np.cumsum(p, axis=1)[y, :-1]).sum(axis=1)
            X[:, j] = (self._names[j] if j in self._names else self._states[j])[place]
        return X


class MultinomialNB(CountModel):
    """Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}.

    Statistics: class counts s_y and summed counts s_{y,v}. ML: p(v | y) = s_{y,v} / Σ_v' s_{y,v'}; MAP:
    (s_{y,v} + m₀/d) / (Σ_v' s_{y,v'} + m₀) with m₀ = ``prior_strength``.

    With documents of one length L = Σ_v x_v this is a full exponential family. With unequal lengths it is not: the
    summed counts Σ_v s_{y,v} are then free of the class counts s_y, but the model's mean ties them, so that
    ``mean_parameters`` and ``log_partition`` are those of documents of the mean length ``length_`` of the rows, by
    their weights. Fixed and safe steps take rows of unequal sums; `ConditionalLikelihood` refuses
    them. Rows may be sparse; they are never made dense.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Pseudo-counts m₀ ≥ 0 of each class, m₀/d a feature; 0 is maximum likelihood.
    class_prior_strength : float, optional
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; by default as many as ``prior_strength``.
    priors : array of shape (r,), optional
        Class probabilities, in the order of ``classes_``; by default they are estimated.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y).
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, d), the summed counts.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, d); None while the rows of ``partial_fit`` do not suffice.
    length_ : float
        Mean length L of the rows, by their weights.

    Notes
    -----
    scikit-learn's ``MultinomialNB(alpha=a)`` is ``prior_strength = a * d`` with ``class_prior_strength=0.0``.

    References
    ----------
    rc2025 §3.1, app. C, with a count in the place of a category.

    Examples
    --------
    >>> from rcpkg import MultinomialNB
    >>> X = [[3, 0, 1], [2, 1, 1], [0, 3, 1], [1, 2, 1]]  # "ball", "king", "match"
    >>> y = ["tennis", "tennis", "chess", "chess"]
    >>> model = MultinomialNB(prior_strength=1.0).fit(X, y)
    >>> model.predict_proba([[2, 1, 1], [0, 1, 0]]).round(3)
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # on the Gaussian blobs of check_estimator, which are no counts
        return tags

    def prepare(self, X: Array | csr_array) -> None:
        super().prepare(X)
        self._check_counts(X)

    def settle(self, statistics: Statistics, n_rows: int) -> None:
        self._check_positive(statistics.count.sum(keepdims=True))
        self.length_ = float(statistics.cells.sum() / statistics.count.sum())

    def _check_counts(self, X: Array | csr_array) -> None:
        counts = X.data if issparse(X) else X
        if counts.min(initial=0) < 0:
            j = X.indices[np.argmin(counts)] if issparse(X) else int(np.argmin(X.min(axis=0)))
            raise ValueError(
                f"Negative values in data passed to MultinomialNB (input X): {self._feature_name(j)}; counts are >= 0"
            )

    def statistics(self, X: Array | csr_array, weights: Array) -> Statistics:
        """Class counts (r,) and summed counts (r, d)."""
        return Statistics(count=weights.sum(axis=0), cells=weights.T @ X)

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.full(n_columns, self.prior_strength / n_columns)

    def _distribution_sums(self, cells: Array) -> Array:
        return cells.sum(axis=1, keepdims=True)

    def _spread(self, of_distribution: Array) -> Array:
        return of_distribution

    def _cell_name(self, y: int, column: int) -> str:
        return f"{self._feature_name(column)} in {self._class_name(y)}"

    def log_joint(self, X: Array | csr_array, parameters: CategoricalParameters) -> Array:
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

    def feature_map(
        self, X: Array | csr_array, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> StateFeatures:
        """The counts; for the minimal ones rows must be of one length, and the most frequent word is left out."""
        if kind != "minimal":
            return StateFeatures(X, np.ones(X.shape[1]), np.zeros(1, dtype=np.intp), "natural")
        self.check_full(X)
        return StateFeatures(X, statistics.cells.sum(axis=0), np.zeros(1, dtype=np.intp), kind, float(X[:1].sum()))

    def check_full(self, X: Array | csr_array) -> None:
        """Refuse documents of unequal lengths: their scores are more than one model can express."""
        if np.ptp(X.sum(axis=1)) > 0:
            raise Unsupported(
                "X holds rows of unequal sums: documents of unequal lengths are no full exponential family"
            )

    def draw(self, parameters: CategoricalParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        p = np.exp(parameters.log_prob)
        return np.array([rng.multinomial(round(self.length_), p[c]) for c in y], dtype=float)
