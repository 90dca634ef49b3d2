"""Bayesian network classifiers as closed-form learners: the class is a parent of each feature, and so are others."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if

from rcpkg.base import Array, constructed
from rcpkg.capabilities import Unsupported
from rcpkg.checks import check_number, gaps_refused
from rcpkg.families._docs import documented
from rcpkg.families.cliques import LARGEST_TABLES, Families, Parents, TableFeatures, is_decomposable
from rcpkg.families.count_model import CategoricalParameters, CountFamily, StateFeatures
from rcpkg.families.em import led_to
from rcpkg.families.family import ClassPrior, safe_counts
from rcpkg.families.missing_states import expected_cells, log_marginal, state_probabilities
from rcpkg.families.named_categories import CategoricalClassifier
from rcpkg.families.portions import encoded, has_gaps
from rcpkg.families.states import STATE_OF_GAPS, CodedCategories, placed
from rcpkg.families.statistics import Statistics
from rcpkg.families.structure import k_dependence, mutual_information, tree
from rcpkg.rows import Block, Rows


def _of_full_family(method: Callable[..., Any]) -> Any:
    """A method that only networks have which are full exponential families."""
    return available_if(lambda model: model._is_full)(method)


@constructed
class NetworkSettings(ClassPrior):
    """Settings of the networks."""

    n_states: int | ArrayLike | None = None
    prior_strength: float | ArrayLike = 1.0


class NetworkFamily(NetworkSettings, CodedCategories):
    """What the Bayesian network classifiers share: p(x, y) = p(y) ∏_j p(x_j | x_pa(j), y).

    A decomposable network is a full exponential family. Any other is a curved one: it has η, the logarithms of its
    probabilities, but neither μ nor ψ here, which would take sums over more than its families.
    """

    unknown = "skip"
    _layout = "families_"
    structure = None

    def _learn_parents(self, of_class: Array, pairs: Array, most: int) -> Parents:
        """Parents of each feature by I(x_j; y) and I(x_i; x_j | y); no table may exceed ``most`` cells a class."""
        raise NotImplementedError

    @property
    def _promises_decomposable(self) -> bool:
        """Whether the structure that is learnt will be decomposable."""
        return True

    @property
    def _is_full(self) -> bool:
        if hasattr(self, "families_"):
            return self.families_.decomposable
        return self._promises_decomposable if self.structure is None else is_decomposable(self._given_parents())

    @property
    def learns_structure(self) -> bool:  # type: ignore[override]
        return self.structure is None

    @property
    def parents_(self) -> list[list[int]]:
        """Parents of each feature, beside the class, by their numbers; the one that tells most of it first."""
        return [list(of) for of in self.families_.parents]

    def _given_parents(self) -> list[tuple[int, ...]]:
        """Parents that ``structure`` names, each a sequence of integers."""
        try:
            given = [tuple(int(p) for p in of) for of in self.structure]
            plain = all(p == q for of, kept in zip(self.structure, given) for p, q in zip(of, kept))
        except (TypeError, ValueError):
            plain = False
        if not plain or any(
            p < 0 or p >= len(given) or of.count(p) > 1 or p == j for j, of in enumerate(given) for p in of
        ):
            raise ValueError(
                "structure must list the parents of each feature, other features by their numbers 0, 1, …, such as "
                f"[[], [0], [0, 1]]; got {self.structure!r}"
            )
        return given

    def learn_structure(self, rows: Rows) -> None:
        """Learn the parents from these rows, or take those that are given."""
        d, r = len(self.n_states_), len(self.classes_) if hasattr(self, "classes_") else next(iter(rows)).y.shape[1]
        if self.structure is None:
            most = max(1, LARGEST_TABLES // (r * d))
            of_class, pairs = mutual_information(rows.map(partial(placed, copy(self))), self.n_states_, r)
            parents = self._learn_parents(of_class, pairs, most)
        else:
            parents = self._given_parents()
            if len(parents) != d:
                raise ValueError(f"structure must list the parents of each of {d} features; got {len(parents)} lists")
        self._lay_out(parents, r)

    def _lay_out(self, parents: Parents, r: int) -> None:
        families = Families(parents, self.n_states_)
        if families.width * r > LARGEST_TABLES:
            j = int(np.argmax(families.sizes))
            raise ValueError(
                f"the tables of the network have {families.width * r:,} cells, more than {LARGEST_TABLES:,}; that of "
                f"{self._feature_name(j)} alone has {families.sizes[j] * r:,}: give it fewer parents, or merge states"
            )
        families.lay_out()
        self.families_ = families

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        """Statistics of the rows so far, with empty cells for the states that these rows are the first to hold."""
        old, families = self._states, self.families_
        self._set_states(old, X)
        self._lay_out(families.parents, len(statistics.count))
        places = [np.searchsorted(new, of) for new, of in zip(self._states, old)]
        return Statistics(count=statistics.count, cells=families.moved(statistics.cells, self.families_, places))

    def indicators(self, places: NDArray[np.integer]) -> csr_array:
        """A one for the cell of each family in which no value is missing."""
        return self.families_.indicators(places)

    def _pseudo_rows(self, n_columns: int) -> Array:
        return np.repeat(np.asarray(self.prior_strength) / self.n_states_, self.families_.sizes)

    def _distribution_sums(self, cells: Array) -> Array:
        return self.families_.sums(cells)

    def _spread(self, of_distribution: Array) -> Array:
        return self.families_.spread(of_distribution)

    def _log_frequencies(self, cells: Array) -> Array:
        """Logarithms of relative frequencies; where nothing is counted the states are equally probable."""
        sums = self._distribution_sums(cells)
        counted = sums > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            frequencies = cells / self._spread(sums)
            log_frequencies = np.log(frequencies, out=frequencies)
        if not counted.all():
            nothing = ~self._spread(counted)
            equal = -np.log(np.repeat(self.n_states_, self.families_.sizes))
            np.copyto(log_frequencies, equal, where=nothing)
        return log_frequencies

    def _cell_name(self, y: int, column: int) -> str:
        families = self.families_
        j = int(np.searchsorted(families.starts, column, side="right")) - 1
        values = np.unravel_index(column - families.starts[j], families.shapes[j])
        *of, own = (f"{self._feature_name(f)} = {self.categories_[f][v]}" for f, v in zip(families.members[j], values))
        return f"{own}{' given ' + ', '.join(of) if of else ''} in {self._class_name(y)}"

    def log_joint(self, X: Array | csr_array, parameters: CategoricalParameters) -> Array:
        """log p(y) + Σ_j log p(x_j | x_pa(j), y), summed over the values that are missing.

        A cell of probability zero in every class, of which no training row tells, is skipped.
        """
        log_prob, counted = parameters.log_prob, self._counted(parameters.log_prob)
        if issparse(X):
            return X @ counted.T + parameters.log_prior
        indicators, places = X if isinstance(X, tuple) else self._with_indicators(self.places(X))
        joint = indicators @ counted.T + parameters.log_prior
        if places.min(initial=0) < 0:
            joint = joint + log_marginal(self.families_, places, self.families_.split(log_prob))
        return joint

    def _with_indicators(self, places: NDArray[np.intp]) -> tuple[csr_array, NDArray[np.intp]]:
        return self.indicators(places), places

    def encode(self, X: Array) -> csr_array | tuple[csr_array, NDArray[np.intp]]:
        """Indicators of training rows and, where values are missing, the places of their states, too."""
        rows = self._with_indicators(self.known_places(X))
        return rows if rows[1].min(initial=0) < 0 else rows[0]

    def statistics(self, X: Array | csr_array | tuple, weights: Array) -> Statistics:
        """Class counts (r,) and cell counts (r, K); a cell counts the rows in which all that it tells of is known."""
        return super().statistics(X[0] if isinstance(X, tuple) else X, weights)

    def raw_statistics(self, rows: Rows) -> Statistics:
        """Where values are missing, those of EM."""
        if not any(rows.each(has_gaps)):
            return super().raw_statistics(rows)
        return self.closed_form_statistics(rows.map(partial(encoded, copy(self))).kept())

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        """Where values are missing, those that EM leads to from the families of which all is known."""
        known = super().closed_form_statistics(rows)
        return led_to(self, rows, self.parameters(known)) if any(rows.each(_is_pair)) else known

    def expected_statistics(
        self, X: Array | csr_array | tuple, weights: Array, parameters: CategoricalParameters
    ) -> Statistics:
        """Σ W_iy (1, p(x_pa(j), x_j | what there is of x_i, y))."""
        X = X if isinstance(X, tuple) or issparse(X) else self.encode(X)
        known = self.statistics(X, weights)
        if not isinstance(X, tuple):
            return known
        tables = self.families_.split(parameters.log_prob)
        return known + Statistics(
            count=np.zeros_like(known.count), cells=expected_cells(self.families_, X[1], tables, weights)
        )

    def expected_rows(self, X: Array, weights: Array, parameters: CategoricalParameters) -> list[Array]:
        """Probabilities of the states of each feature, (n, r_j): Σ_y W_iy p(v | what is there, y), one if known."""
        families = self.families_
        return state_probabilities(families, self.places(X), families.split(parameters.log_prob), weights)

    def check_complete(self, X: csr_array | tuple) -> None:
        if isinstance(X, tuple):
            j = int((X[1] < 0).any(axis=0).argmax())
            raise gaps_refused(self._feature_name(j), STATE_OF_GAPS)

    def feature_map(
        self, X: csr_array, kind: str = "minimal", statistics: Statistics | None = None, pooled: Any = None
    ) -> StateFeatures:
        """Indicators of all cells or, for the minimal ones of a decomposable network, of independent ones."""
        if kind != "minimal":
            return StateFeatures(X, np.ones(X.shape[1]), np.zeros(1, dtype=np.intp), "natural")
        self.check_full(X)
        return TableFeatures(self.families_, X, statistics.cells.sum(axis=0))

    def check_full(self, X: csr_array) -> None:
        """Refuse a network that is not decomposable."""
        if not self._is_full:
            raise Unsupported("a network that is not decomposable is no full exponential family")

    def same_form(self, other: object) -> bool:
        """With the same states and parents of each feature, too."""
        return (
            super().same_form(other)
            and all(map(np.array_equal, self.categories_, other.categories_))
            and self.parents_ == other.parents_
        )

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """Counts increase by addition and decrease by a factor; of a full family they become those of the model, mμ."""
        new = super().safe_update(old, change)
        if self.has_prior or not self._is_full:
            return new
        return new.count.sum() * self.mean_parameters(self.parameters(new))

    def _safe_sums(self, old: Statistics, change: Statistics, count: Array) -> Array:
        """In a curved family each distribution keeps its total, which is but the length of its steps: the changes of
        the totals are no gradient, and nothing would bring them back."""
        totals = self._distribution_sums(old.cells)
        return safe_counts(totals, self._distribution_sums(change.cells)) if self._is_full else totals

    @_of_full_family
    def mean_parameters(self, parameters: CategoricalParameters) -> Statistics:
        """μ = (p(y), p(x_pa(j), x_j, y)), from the parents to the children."""
        prior, families = np.exp(parameters.log_prior), self.families_
        joint = families.distribute(families.split(np.exp(parameters.log_prob)))
        return Statistics(count=prior, cells=prior[:, None] * families.join(joint))

    @_of_full_family
    def class_log_partition(self, natural: Statistics) -> Array:
        """η_y + log Σ_x exp Σ_j η_y(x_pa(j), x_j), summed from the children to the parents."""
        return natural.count + self.families_.collect(self.families_.split(natural.cells))[1]

    @_of_full_family
    def from_natural(self, natural: Statistics) -> CategoricalParameters:
        """p(y) ∝ exp(η_y + A_y), and p(x_j | x_pa(j), y) ∝ the exponential of η and of what the children add."""
        conditionals, total = self.families_.collect(self.families_.split(natural.cells))
        log_prior = natural.count + total
        return CategoricalParameters(log_prior - logsumexp(log_prior), self.families_.join(conditionals))

    pooled_parameters = _of_full_family(CountFamily.pooled_parameters)

    @_of_full_family
    def nested_parameters(self, statistics: Statistics) -> tuple[CategoricalParameters, float]:
        """The network in which each feature has lost the last of its parents; r q pseudo-rows, where no feature has
        more than q states of its parents: one for each distribution of the richest."""
        tables, n_parents = [], [len(of) for of in self.families_.parents]
        strength = np.broadcast_to(np.asarray(self.prior_strength) / self.n_states_, self.n_states_.shape)
        for table, of, m in zip(self.families_.split(statistics.cells), n_parents, strength):
            fewer = table.sum(axis=of, keepdims=True) if of else table
            tables.append(np.broadcast_to(fewer + m, table.shape))
        size = len(statistics.count) * float(np.max(self.families_.sizes // self.n_states_))
        log_prob = self._log_frequencies(self.families_.join(tables))
        return CategoricalParameters(self.class_log_prior(statistics.count), log_prob), size

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Each feature permuted among the rows of a class and of the same values of its parents, which come first."""
        places, source = self.places(X), np.empty(X.shape, dtype=np.intp)
        for j in self.families_.order:
            parents = self.parents_[j]
            shape = (y.max() + 1, *self.n_states_[parents])
            groups = (places[:, parents], places[source[:, parents], parents])
            source[:, j] = _matched(*(np.ravel_multi_index((y, *of.T), shape) for of in groups), rng)
        return np.take_along_axis(X, source, axis=0)

    def draw(self, parameters: CategoricalParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        families = self.families_
        u = rng.uniform(size=(len(y), len(families.parents)))
        places = np.empty(u.shape, dtype=np.intp)
        tables = families.split(np.exp(parameters.log_prob))
        for j in families.order:
            p = tables[j][(y, *places[:, list(families.parents[j])].T)]
            # inverse of the distribution function; the last state takes what rounding leaves
            places[:, j] = (u[:, [j]] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        X = np.empty(u.shape, dtype=object if self.names else float)
        for j, names in enumerate(self.categories_):
            X[:, j] = names[places[:, j]]
        return X


class NetworkClassifier(NetworkSettings, CategoricalClassifier):
    """What the Bayesian network classifiers share."""

    @property
    def parents_(self) -> list[list[int]]:
        """Parents of each feature, beside the class, by their numbers; the one that tells most of it first."""
        return self.family_.parents_


class TreeFamily(NetworkFamily):
    """Tree-augmented naive Bayes."""

    def _learn_parents(self, of_class: Array, pairs: Array, most: int) -> Parents:
        pairs[np.multiply.outer(self.n_states_, self.n_states_) > most] = 0.0
        return tree(of_class, pairs)


@documented()
class TAN(NetworkClassifier, family=TreeFamily):
    """Tree-augmented naive Bayes: p(x, y) = p(y) ∏_j p(x_j | x_pa(j), y), with at most one feature as a parent.

    The tree is that of greatest likelihood, by I(x_i; x_j | y), the conditional mutual information (Chow and Liu);
    it is directed away from the feature that tells most of the class. Statistics: class counts and the counts of
    (x_pa(j), x_j, y). ML: relative frequencies; MAP: with m₀/r_j pseudo-rows a state, m₀ = ``prior_strength``.

    Parameters
    ----------
    %(n_states)s
    %(prior of tables)s
    %(class_prior_strength or none)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    parents_ : list of d lists
        Parents of each feature, beside the class.
    %(tables)s

    Notes
    -----
    Features are taken as `CategoricalNB` takes them; make numbers codes with `MDLDiscretizer` or `KBinsDiscretizer`.
    A tree is a full exponential family, so that all of calibration applies. A feature that is missing, or holds a
    category unseen in training, is summed over, exactly. In training EM starts from the tables of the rows in which all
    their features are known; calibration takes such rows by safe steps. ``partial_fit`` learns the tree from its first
    rows.

    References
    ----------
    Friedman, Geiger and Goldszmidt (1997); Chow and Liu (1968).

    Examples
    --------
    >>> import numpy as np
    >>> from rcpkg import TAN, CategoricalNB
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(2, size=(2, 200))
    >>> X, y = np.column_stack([a, b, a]), a ^ b  # no feature alone tells the class
    >>> CategoricalNB(prior_strength=1.0).fit(X, y).score(X, y) < 0.6
    True
    >>> model = TAN().fit(X, y)
    >>> model.parents_, model.score(X, y)
    ([[1], [], [1]], 1.0)
    """


@constructed
class KDependenceSettings(NetworkSettings):
    """Settings of the networks of at most k parents a feature."""

    k: int = 1
    decomposable: bool = True
    structure: Parents | None = None


class KDependenceFamily(KDependenceSettings, NetworkFamily):
    """Features with at most k parents each."""

    def prepare(self, X: Array) -> None:
        check_number("k", self.k, 0, integer=True)
        if self.structure is None and self.k >= X.shape[1]:
            raise ValueError(
                f"k must be less than the number of features; got k={self.k} with n_features = {X.shape[1]}"
            )
        super().prepare(X)

    @property
    def _promises_decomposable(self) -> bool:
        return bool(self.decomposable) or self.k in (0, 1)

    def _learn_parents(self, of_class: Array, pairs: Array, most: int) -> Parents:
        return k_dependence(of_class, pairs, self.k, self.n_states_, most, bool(self.decomposable))


@documented()
class KDependenceBayes(KDependenceSettings, NetworkClassifier, family=KDependenceFamily):
    """k-dependence Bayesian classifier: p(x, y) = p(y) ∏_j p(x_j | x_pa(j), y), with at most k features as parents.

    Features in the order of I(x_j; y); the parents of each are chosen among those before it by I(x_i; x_j | y), the
    conditional mutual information (Sahami). With ``decomposable`` they are chosen within the family of one feature,
    so that the network is part of a k-tree and a full exponential family. Statistics, ML and MAP are those of `TAN`.

    Parameters
    ----------
    k : int, default=1
        Greatest number of parents of a feature, beside the class: 0 ≤ k < d; 0 is naive Bayes.
    decomposable : bool, default=True
        Whether the parents of a feature must be joined themselves; False is Sahami's choice.
    structure : list of d lists of int, optional
        Parents of each feature, the most important first, in place of what k and ``decomposable`` ask for.
    %(n_states)s
    %(prior of tables)s
    %(class_prior_strength or none)s
    %(priors)s

    Attributes
    ----------
    %(classes and prior)s
    parents_ : list of d lists
        Parents of each feature, beside the class, the one that tells most of it first.
    %(tables)s

    Notes
    -----
    What `TAN` says of features, missing values and ``partial_fit`` holds here. A network that is not decomposable is a
    curved exponential family: safe steps climb, but there is neither a target nor `ConditionalLikelihood`.

    The tables of all features and classes have 2²⁴ cells at most. A parent is passed over with which the table of a
    feature would exceed its share of them; a ``structure`` that does raises ValueError.

    References
    ----------
    Sahami (1996). The decomposable choice is this book's.

    Examples
    --------
    Numbers are cut into intervals first, by the training rows:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from rcpkg import KDependenceBayes, MDLDiscretizer, RiskCalibration
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> network = RiskCalibration(KDependenceBayes(k=2), target="nested")
    >>> pipeline = make_pipeline(MDLDiscretizer(), network)
    >>> round(pipeline.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.93
    """


def _matched(before: NDArray[np.intp], after: NDArray[np.intp], rng: np.random.RandomState) -> NDArray[np.intp]:
    """For each row a row, no row twice: at random one whose group ``before`` is the group of this one ``after``."""
    source = np.empty(len(before), dtype=np.intp)
    source[np.lexsort((rng.uniform(size=len(after)), after))] = np.argsort(before, kind="stable")
    return source


def _is_pair(block: Block) -> bool:
    """Whether an encoded block has rows with gaps."""
    return isinstance(block.X, tuple)
