"""Naive Bayes for what is counted: categories, and words of documents."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln, logsumexp
from sklearn.utils.metaestimators import available_if

from rcpkg.base import Array, constructed
from rcpkg.capabilities import Unsupported
from rcpkg.checks import gaps_refused
from rcpkg.families._docs import documented
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.count_model import CategoricalParameters, CountFamily, IndicatorFeatures, StateFeatures
from rcpkg.families.family import ClassPrior, safe_counts
from rcpkg.families.named_categories import CategoricalClassifier
from rcpkg.families.projections import categorical_step
from rcpkg.families.states import STATE_OF_GAPS, CodedCategories, counted_in_parts, row_blocks
from rcpkg.families.statistics import Statistics, one_hot
from rcpkg.rows import Rows


@constructed
class CategoricalSettings(ClassPrior):
    """Settings of naive Bayes for categories."""

    n_states: int | ArrayLike | None = None
    prior_strength: float | ArrayLike = 0.0
    class_prior_strength: float | None = None
    priors: ArrayLike | None = None
    unknown: str = "skip"


class CategoricalFamily(CategoricalSettings, CodedCategories):
    """Naive Bayes for categories: p(x, y) = p(y) ∏_j p(x_j | y)."""

    projected_step = categorical_step

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
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

    def raw_statistics(self, rows: Rows) -> Statistics:
        """Encoded a part of a block at a time; sparse rows take no more memory when encoded."""
        return rows.sum(partial(counted_in_parts, self))

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
        state = repr(self.names[j][state]) if j in self.names else state
        return f"state {state} of {self._feature_name(j)} in {self._class_name(y)}"

    def _message_of_empty(self, y: int, column: int) -> str:
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

    @available_if(lambda self: self.unknown == "skip")
    def expected_rows(self, X: Array, weights: Array, parameters: CategoricalParameters) -> list[Array]:
        """Probabilities of the states of each feature, (n, r_j): one of a known state, Σ_y W_iy p(v | y) of others."""
        places, filled = self.places(X), []
        for j, p in enumerate(np.split(np.exp(parameters.log_prob), self.starts_[1:], axis=1)):
            known = places[:, j] >= 0
            of_states = weights @ p
            of_states[known] = one_hot(places[known, j], p.shape[1])
            filled.append(of_states)
        return filled

    def feature_map(
        self, X: csr_array, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> StateFeatures:
        """Indicators of the states, of each feature but the most frequent where that makes them independent."""
        complete = X.nnz == X.shape[0] * len(self.n_states_)
        if kind == "minimal":
            total = statistics.cells.sum(axis=0)
        elif kind == "natural" or not complete:
            return StateFeatures(X, np.ones(X.shape[1]), self.starts_, "natural")
        else:
            total = np.bincount(X.indices, minlength=X.shape[1])
        if complete:
            return IndicatorFeatures(X, total, self.starts_, kind, self.n_states_)
        return StateFeatures(X, total, self.starts_, kind)

    def check_complete(self, X: csr_array) -> None:
        seen = np.add.reduceat(X.sum(axis=0), self.starts_)
        if seen.min() < X.shape[0]:
            self._refuse_missing(int(np.argmin(seen)))

    def _refuse_missing(self, j: int) -> None:
        raise gaps_refused(self._feature_name(j), STATE_OF_GAPS)

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
        X = np.empty(u.shape, dtype=object if self.names else float)
        for j, p in enumerate(blocks):
            # inverse of the distribution function; the last state takes what rounding leaves
            place = (u[:, [j]] > np.cumsum(p, axis=1)[y, :-1]).sum(axis=1)
            X[:, j] = (self.names[j] if j in self.names else self._states[j])[place]
        return X


@documented()
class CategoricalNB(CategoricalSettings, CategoricalClassifier, family=CategoricalFamily):
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
    %(n_states)s
    prior_strength : float or array of shape (d,), default=0.0
        Pseudo-rows m₀ ≥ 0 of each conditional distribution, m₀/r_j a state; 0 is maximum likelihood.
    %(class_prior_strength or none)s
    %(priors)s
    unknown : {"skip", "impossible"}, default="skip"
        "impossible" is the rule of the sources' tables: states are the codes 0 to the largest, a row with a code
        beyond gets the class prior, whatever its other features, and missing values are refused.

    Attributes
    ----------
    %(classes and prior)s
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, K), the K states of all features side by side.
    %(log_prob)s
    n_states_ : array of shape (d,)
        Numbers of states, declared or learnt.
    categories_ : list of d arrays
        The states of each feature, codes or names, in the order of ``cells``.

    Notes
    -----
    Missing values in training: the closed form is that of the values that are there, the maximum of Σ log p of the
    rows' own marginals. Those have log-partitions of their own, so that conditional likelihood is no longer concave in
    η: `RiskCalibration` accepts such rows, with safe steps checked one by one but without a global claim;
    `ConditionalLikelihood` refuses them. Which values are missing must not depend on what they would have been.

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.unknown == "skip"
        return tags


class MultinomialFamily(CountFamily):
    """Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}."""

    def prepare(self, X: Array | csr_array) -> None:
        super().prepare(X)
        self._check_counts(X)

    def settle(self, statistics: Statistics, n_rows: int) -> None:
        self._check_positive(statistics.count.sum(keepdims=True))
        self.length_ = float(statistics.cells.sum() / statistics.count.sum())

    def _check_counts(self, X: Array | csr_array) -> None:
        counts = X.data if issparse(X) else X
        if np.fmin.reduce(counts, axis=None, initial=0) < 0:
            j = X.indices[np.nanargmin(counts)] if issparse(X) else int(np.argmax((counts < 0).any(axis=0)))
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
        """log p(y) + Σ_v x_v log p(v | y), with 0 log 0 = 0, up to the multinomial coefficient of x; where counts are
        missing less Σ_v x_v log p(O | y), with O the known columns."""
        self._check_counts(X)
        X, share = _known(X, parameters)
        zero = np.isneginf(parameters.log_prob)
        joint = X @ np.where(zero, 0.0, parameters.log_prob).T + parameters.log_prior
        if share is not None:
            joint -= X.sum(axis=1)[:, None] * np.log(share, out=np.zeros_like(share), where=share > 0)
        if zero.any():
            joint[X @ zero.T.astype(float) > 0] = -np.inf
        return joint

    def log_base(self, X: Array | csr_array) -> Array:
        """The multinomial coefficient of the counts that are known."""
        X = _with_data(X, np.nan_to_num(_data(X)))
        return gammaln(X.sum(axis=1) + 1) - _with_data(X, gammaln(_data(X) + 1)).sum(axis=1)

    def expected_rows(
        self, X: Array | csr_array, weights: Array, parameters: CategoricalParameters
    ) -> Array | csr_array:
        """Counts, Σ_y W_iy p(v | y) / p(O | y) for each word counted where they are missing."""
        known, share = _known(X, parameters)
        if share is None:
            return known
        words = np.where(share > 0, known.sum(axis=1)[:, None], self.length_)
        rates = weights * words / np.where(share > 0, share, 1.0)
        missing = np.isnan(_data(X))
        rows, columns = (of[missing] for of in X.tocoo().coords) if issparse(X) else np.nonzero(missing)
        filled = _data(known).copy()
        filled[missing] = np.einsum("iy,yi->i", rates[rows], np.exp(parameters.log_prob[:, columns]))
        return _with_data(known, filled)

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

    def redraw(self, X: Array | csr_array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """The words of a class shuffled among its documents, which keep their lengths."""
        if np.any(_data(X) % 1):
            raise ValueError(
                "X must hold whole counts, whose words are drawn anew: take the counts themselves, not shares"
            )
        documents, words = [], []
        for c in np.unique(y):
            rows = np.flatnonzero(y == c)
            words.append(rng.permutation(np.repeat(np.arange(X.shape[1]), X[rows].sum(axis=0).astype(int))))
            documents.append(np.repeat(rows, X[rows].sum(axis=1).astype(int)))
        places = np.concatenate(documents), np.concatenate(words)
        drawn = csr_array((np.ones(len(places[0])), places), shape=X.shape)
        return drawn if issparse(X) else drawn.toarray()


@documented()
class MultinomialNB(ConjugateClassifier, family=MultinomialFamily):
    """Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}.

    Statistics: class counts s_y and summed counts s_{y,v}. ML: p(v | y) = s_{y,v} / Σ_v' s_{y,v'}; MAP:
    (s_{y,v} + m₀/d) / (Σ_v' s_{y,v'} + m₀) with m₀ = ``prior_strength``.

    With documents of one length L = Σ_v x_v this is a full exponential family. With unequal lengths it is not: the
    summed counts Σ_v s_{y,v} are then free of the class counts s_y, but the model's mean ties them, so that
    ``mean_parameters`` and ``log_partition`` are those of documents of the mean length ``length_`` of the rows, by
    their weights. Fixed and safe steps take rows of unequal sums; `ConditionalLikelihood` refuses
    them. Rows may be sparse; they are never made dense.

    A missing count (NaN, in predictions only) is not known; it is not zero. The words that were counted are then draws
    among the known columns O: p(x_O, y) ∝ p(y) ∏_{v ∈ O} (p(v | y) / p(O | y))^{x_v}. That is their probability given
    their number, whatever the length of the document. A missing count is expected to be p(v | y) / p(O | y) for each
    word counted. A row with gaps only gets the class weights, and expected counts of length ``length_``.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Pseudo-counts m₀ ≥ 0 of each class, m₀/d a feature; 0 is maximum likelihood.
    %(class_prior_strength)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, d), the summed counts.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, d); None while the rows of ``partial_fit`` do not suffice.
    family_ : Family
        Its ``length_`` is the mean length L of the rows, by their weights.

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


def _data(X: Array | csr_array) -> Array:
    """Entries of rows, of sparse ones those that are stored."""
    return X.data if issparse(X) else X


def _with_data(X: Array | csr_array, data: Array) -> Array | csr_array:
    """The rows with other entries in the same places."""
    return csr_array((data, X.indices, X.indptr), shape=X.shape) if issparse(X) else data


def _known(X: Array | csr_array, parameters: CategoricalParameters) -> tuple[Array | csr_array, Array | None]:
    """Counts, zero where they are missing, and p(O | y) of the columns O that are known; None if all are."""
    missing = np.isnan(_data(X))
    if not missing.any():
        return X, None
    p = np.exp(parameters.log_prob)
    gone = _with_data(X, missing.astype(float))
    share = np.maximum(1 - gone @ p.T, 0.0) if issparse(X) else (1 - gone) @ p.T
    return _with_data(X, np.where(missing, 0.0, _data(X))), share
