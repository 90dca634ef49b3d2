"""Naive Bayes for counts, such as words of documents: one distribution over all features, drawn from many times."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from rcpkg.base import Array, InvalidStatistics
from rcpkg.capabilities import Unsupported
from rcpkg.columns import BEYOND
from rcpkg.families.classifier import ConjugateClassifier
from rcpkg.families.cliques import Families, TableFeatures, most_frequent
from rcpkg.families.count_model import CategoricalParameters, CountFamily
from rcpkg.families.family import safe_counts
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import ratio


class MultinomialFamily(CountFamily):
    """Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}."""

    def prepare(self, X: Array | csr_array) -> None:
        super().prepare(X)
        self._check_counts(X)
        self._lay_out(X.shape[1])

    def fix_prior(self, statistics: Statistics, n_rows: int) -> None:
        self._check_positive(statistics.count.sum(keepdims=True))
        self.length_ = float(statistics.cells.sum() / statistics.count.sum())

    def _check_counts(self, X: Array | csr_array) -> None:
        counts = _data(X)
        with np.errstate(invalid="ignore"):  # of missing counts
            bad = (counts < 0) | (counts > BEYOND)
        if bad.any():
            place = np.unravel_index(bad.argmax(), bad.shape)
            name = self._feature_name(int(X.indices[place] if issparse(X) else place[1]))
            if counts[place] < 0:
                raise ValueError(f"Negative values in data passed to MultinomialNB (input X): {name}; counts are >= 0")
            raise ValueError(f"{name} holds counts beyond 2**53, to which floats add no one: rescale X")

    def _lay_out(self, d: int) -> None:
        self.families_ = Families([()], np.array([d]))
        self.families_.lay_out()

    def statistics(self, X: Array | csr_array, weights: Array) -> Statistics:
        """Class counts (r,) and summed counts (r, d)."""
        if not hasattr(self, "families_"):
            self._lay_out(X.shape[1])
        return Statistics(count=weights.sum(axis=0), cells=weights.T @ X)

    def _log_frequencies(self, cells: Array) -> Array:
        empty = cells.sum(axis=1) <= 0
        if empty.any():
            name = self._class_name(int(np.argmax(empty)))
            raise InvalidStatistics(
                f"nothing is left to count in {name}: give it rows with counts, or a prior_strength"
            )
        return super()._log_frequencies(cells)

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.full(n_columns, self.prior_strength / n_columns)

    def _cell_name(self, y: int, column: int) -> str:
        return f"{self._feature_name(column)} in {self._class_name(y)}"

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """Changed as the class counts are, so that with rows of one length L they stay L times these; with others the
        sum of all words of a class is no parameter, and by its own gradient it falls to zero."""
        sums = safe_counts(self.families_.sums(old.cells), self.length_ * change.count[:, None])
        return sums * ratio(count, safe_counts(old.count, change.count))[:, None]

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
        rows, columns = (index[missing] for index in X.tocoo().coords) if issparse(X) else np.nonzero(missing)
        filled = _data(known).copy()
        filled[missing] = np.einsum("iy,yi->i", rates[rows], np.exp(parameters.log_prob[:, columns]))
        return _with_data(known, filled)

    def feature_map(
        self, X: Array | csr_array, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> TableFeatures:
        """The counts; for the minimal ones rows must be of one length, and the most frequent word is left out."""
        if kind != "minimal":
            return TableFeatures(self.families_, X)
        self.check_full(X)
        total = statistics.cells.sum(axis=0)
        return TableFeatures(self.families_, X, most_frequent(self.families_, total), total <= 0, float(X[:1].sum()))

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


class MultinomialNB(ConjugateClassifier, family=MultinomialFamily):
    """Naive Bayes for counts: p(x, y) ∝ p(y) ∏_v p(v | y)^{x_v}.

    Statistics: class counts s_y and summed counts s_{y,v}. ML: p(v | y) = s_{y,v} / Σ_v' s_{y,v'}; MAP:
    (s_{y,v} + m₀/d) / (Σ_v' s_{y,v'} + m₀) with m₀ = ``prior_strength``.

    With documents of one length L = Σ_v x_v this is a full exponential family. With unequal lengths ``mean_parameters``
    and ``log_partition`` are those of documents of the mean length ``length_`` of the rows. Fixed and safe steps take
    rows of unequal sums; `ConditionalLikelihood` refuses them. Rows may be sparse; they are never made dense.

    A missing count (NaN, in predictions only) is not known; it is not zero. The words that were counted are then draws
    among the known columns O: p(x_O, y) ∝ p(y) ∏_{v ∈ O} (p(v | y) / p(O | y))^{x_v}. A missing count is expected to be
    p(v | y) / p(O | y) for each word counted.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Pseudo-counts m₀ ≥ 0 of each class, m₀/d a feature; 0 is maximum likelihood.
    class_prior_strength, priors, cost
        As in `CategoricalNB`.

    Attributes
    ----------
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, d), the summed counts.
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, d); None while the rows of ``partial_fit`` do not suffice.
    family_ : Family
        Its ``length_`` is the mean length L of the rows, by their weights.
    classes_, class_log_prior_
        As in `CategoricalNB`.

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
