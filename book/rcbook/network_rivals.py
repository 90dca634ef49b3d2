"""Rivals of calibrated networks: tables by hierarchical Dirichlet processes, selective k-dependence (chapter 10)."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from rcpkg.base import Array
from rcpkg.families import KDependenceBayes, one_hot
from rcpkg.families.structure import mutual_information
from rcpkg.rows import Rows

ROOT_CONCENTRATION = 2.0
SHAPE, RATE = 2.0, 1.0  # of the gamma distribution of a concentration a priori
LARGEST_CONCENTRATION = 4000.0


class Level(NamedTuple):
    """Distributions p(x_j | u) of all features j at one depth of their trees: u is nothing, then y, then a parent more.

    Only contexts u that occur are held. Cells of one context follow each other, those of all features in one array.

    Parameters
    ----------
    codes : list of d arrays
        Numbers of the contexts of each feature; empty where it has none at this depth.
    first, feature : arrays of shape (contexts,)
        First cell of each context, and the feature.
    context, above, own : arrays of shape (cells,)
        The context of each cell; the cell of the level above with the same state of the feature, none for the roots;
        and counts of rows where the context holds all parents of the feature, zero elsewhere.
    """

    codes: list[NDArray[np.intp]]
    first: NDArray[np.intp]
    feature: NDArray[np.intp]
    context: NDArray[np.intp]
    above: NDArray[np.intp]
    own: NDArray[np.intp]


def levels_of(
    places: NDArray[np.intp], y: NDArray[np.intp], parents: Sequence[Sequence[int]], n_states: NDArray[np.intp]
) -> list[Level]:
    """Levels from the roots, which have no context, over the class to the last of the parents."""
    n, d = places.shape
    found, none = [], np.empty(0, np.intp)
    codes = np.zeros((d, n), dtype=np.intp)  # of the context of each row, whether or not others occur
    starts = np.zeros((d, n), dtype=np.intp)  # first cell of the context of each row, in the level above
    for depth in range(2 + max(map(len, parents))):
        kept, first, feature, above, own = [none] * d, [none], [none], [none], [none]
        n_cells = 0
        for j in range(d):
            if depth > 1 + len(parents[j]):
                continue
            if depth == 1:
                codes[j] = y
            elif depth > 1:
                p = parents[j][depth - 2]
                codes[j] = codes[j] * n_states[p] + places[:, p]
            kept[j], one, of_row = np.unique(codes[j], return_index=True, return_inverse=True)
            states, m = int(n_states[j]), len(kept[j])
            if depth:
                above.append((starts[j, one][:, None] + np.arange(states)).ravel())
            counts = np.bincount(of_row * states + places[:, j], minlength=m * states)
            own.append(counts * (depth == 1 + len(parents[j])))
            first.append(n_cells + states * np.arange(m))
            feature.append(np.full(m, j))
            starts[j] = first[-1][of_row]
            n_cells += m * states
        of_first, of_feature = np.concatenate(first), np.concatenate(feature)
        context = np.repeat(np.arange(len(of_first)), n_states[of_feature])
        found.append(Level(kept, of_first, of_feature, context, np.concatenate(above), np.concatenate(own)))
    return found


def tables_at(counts: NDArray[np.intp], a: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draws of the number of tables at which so many guests sit who found a new one with probability a/(a + guests)."""
    tables = np.minimum(counts, 1)
    many = np.flatnonzero(counts > 1)
    later = counts[many] - 1
    ends = np.cumsum(later)
    before = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - later, later) + 1
    weight = np.repeat(a[many], later)
    opens = rng.random(len(before)) * (weight + before) < weight
    if len(many):
        tables[many] += np.add.reduceat(opens, ends - later, dtype=np.intp)
    return tables


def pass_up(
    levels: Sequence[Level], c: Sequence[Array], theta: Sequence[Array], rng: np.random.Generator
) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
    """Counts of each level, from the last to the first, those of a level above being tables below; and the tables."""
    counts, tables = [at.own for at in levels], [at.own for at in levels]
    for depth in range(len(levels) - 1, 0, -1):
        at = levels[depth]
        tables[depth] = tables_at(counts[depth], c[depth][at.feature][at.context] * theta[depth - 1][at.above], rng)
        passed = np.bincount(at.above, tables[depth], minlength=len(levels[depth - 1].own))
        counts[depth - 1] = levels[depth - 1].own + passed.astype(np.intp)
    return counts, tables


def concentrations(
    at: Level, c: Array, counts: NDArray[np.intp], tables: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """Draws of the concentrations of a level, one for each feature, given tables of its counts."""
    q = np.maximum(rng.beta(c[at.feature], np.add.reduceat(counts, at.first)), np.finfo(float).tiny)
    shape = SHAPE + np.bincount(at.feature[at.context], tables, minlength=len(c))
    rate = RATE - np.bincount(at.feature, np.log(q), minlength=len(c))
    return np.minimum(rng.gamma(shape) / rate, LARGEST_CONCENTRATION)


def pass_down(
    levels: Sequence[Level], c: Sequence[Array], counts: Sequence[NDArray[np.intp]], rng: np.random.Generator
) -> tuple[list[Array], list[Array]]:
    """Draws of θ of all levels but the last, and means of θ of all, given counts and concentrations."""
    theta, means = [], []
    for depth, at in enumerate(levels):
        strength = c[depth][at.feature][at.context]
        if depth:
            drawn, mean = theta[-1][at.above], means[-1][at.above]
        else:
            drawn = mean = 1.0 / np.bincount(at.context)[at.context]
        means.append(
            (strength * mean + counts[depth]) / (strength + np.add.reduceat(counts[depth], at.first)[at.context])
        )
        if depth < len(levels) - 1:
            drawn = rng.gamma(strength * drawn + counts[depth])
            theta.append(drawn / np.add.reduceat(drawn, at.first)[at.context])
    return theta, means


def hierarchical_means(levels: Sequence[Level], n_samples: int, burn_in: int, rng: np.random.Generator) -> list[Array]:
    """Posterior means of θ_u | θ_above(u) ~ Dirichlet(c θ_above(u)), of the cells of each level.

    The root is Dirichlet of `ROOT_CONCENTRATION` in all, with equal means; each feature has one concentration c for
    each level, Gamma(2, 1) a priori. From the last level to the first the counts n of a context pass t ~ tables of n
    with c θ_above on to the context above, where θ of the context itself is summed out; then each c is drawn, given t
    and a beta variable for each context, and the θ from the first level on. The mean of θ given t and c is averaged.

    Parameters
    ----------
    levels
        As from `levels_of`.
    n_samples, burn_in : int
        Sweeps that are averaged, and before them.

    References
    ----------
    Petitjean, Buntine, Webb and Zaidi (2018), with "level" tying; the gamma prior is that of their code, where the
    article has an improper one. Teh, Jordan, Beal and Blei (2006) for the auxiliary variables.
    """
    c = [np.full(len(levels[0].codes), ROOT_CONCENTRATION) for _ in levels]
    theta = [1.0 / np.bincount(at.context)[at.context] for at in levels]
    sums = [np.zeros(len(at.own)) for at in levels]
    for sweep in range(burn_in + n_samples):
        counts, tables = pass_up(levels, c, theta, rng)
        c[1:] = [concentrations(*of, rng) for of in zip(levels[1:], c[1:], counts[1:], tables[1:], strict=True)]
        theta, means = pass_down(levels, c, counts, rng)
        if sweep >= burn_in:
            sums = [total + mean for total, mean in zip(sums, means, strict=True)]
    return [total / n_samples for total in sums]


class HierarchicalDirichlet(ClassifierMixin, BaseEstimator):
    """A network whose tables are posterior means of hierarchical Dirichlet processes.

    p(x_j | u, y) is smoothed towards the context with one parent less, in the end towards p(x_j), by concentrations
    that are sampled; a context that does not occur has the mean of the next one above that does.

    Parameters
    ----------
    network : TAN or KDependenceBayes
        Gives structure, states and class weights. Its parents are taken in their order.
    n_samples, burn_in : int
        Sweeps of the sampler.
    random_state : int
        Seed.

    Notes
    -----
    What differs from the source: its sampler changes one number of tables at a time, within ±10, and is run for 50,000
    sweeps; this one draws all of a level at once from their joint distribution, given the probabilities of the level
    above, and is run for far fewer. The posterior is that of the source's code.

    References
    ----------
    Petitjean, Buntine, Webb and Zaidi (2018).
    """

    def __init__(
        self, network: KDependenceBayes, n_samples: int = 150, burn_in: int = 50, random_state: int = 0
    ) -> None:
        self.network = network
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.random_state = random_state

    def fit(self, X: Array, y: NDArray) -> Self:
        """Learn the structure, count contexts, and sample."""
        self.network_ = clone(self.network).fit(X, y)
        self.classes_ = self.network_.classes_
        labels = np.searchsorted(self.classes_, y)
        parents, families = self.network_.parents_, self.network_.family_.families_
        levels = levels_of(self.network_.family_.places(X), labels, parents, self.network_.n_states_)
        means = hierarchical_means(levels, self.n_samples, self.burn_in, np.random.default_rng(self.random_state))
        tables = []
        for j, shape in enumerate(families.shapes):
            table = np.empty((len(self.classes_), *shape))
            for depth in range(2 + len(parents[j])):
                at = levels[depth]
                of = means[depth][at.feature[at.context] == j].reshape(-1, shape[-1])
                table.reshape(int(np.prod(table.shape[:depth])), -1, shape[-1])[at.codes[j]] = of[:, None]
            tables.append(np.log(table))
        start = self.network_.parameters(self.network_.statistics_)
        self.parameters_ = start._replace(log_prob=families.join(tables))
        return self

    def predict_proba(self, X: Array) -> Array:
        """Posteriors, shape (n, r)."""
        return softmax(self.network_.log_joint(X, self.parameters_), axis=1)


def leave_one_out_losses(
    places: NDArray[np.intp],
    y: NDArray[np.intp],
    order: Sequence[int],
    parents: Sequence[Sequence[int]],
    n_states: NDArray[np.intp],
    strength: float,
) -> Array:
    """Mean of −log p(y_i | x_i) by the counts without row i, of a network with the first m features of an order.

    Relative frequencies have ``strength``/r_j pseudo-rows a state, class weights ``strength``/r a class.

    Returns
    -------
    array of shape (number of features + 1,)
        m = 0, 1, …
    """
    n, r = len(y), int(y.max()) + 1
    Y, rows = one_hot(y, r), np.arange(n)

    def log_frequencies(code: NDArray[np.intp], states: int) -> Array:
        """log p(own state | context) in each class, (n, r), for rows whose family is in the cell ``code``."""
        size = states * (1 + int(code.max()) // states)
        cells = np.bincount(y * size + code, minlength=r * size).reshape(r, -1, states)
        context, own = np.divmod(code, states)
        part, whole = cells[:, context, own].T - Y, cells.sum(axis=2)[:, context].T - Y
        return np.log((part + strength / states) / (whole + strength))

    joint = np.log(np.bincount(y, minlength=r) - Y + strength / r)
    losses = [-log_softmax(joint, axis=1)[rows, y].mean()]
    for j in order:
        code = np.zeros(n, dtype=np.intp)
        for p in parents[j]:
            code = code * n_states[p] + places[:, p]
        joint = joint + log_frequencies(code * n_states[j] + places[:, j], int(n_states[j]))
        losses.append(-log_softmax(joint, axis=1)[rows, y].mean())
    return np.array(losses)


class SelectiveKDB(ClassifierMixin, BaseEstimator):
    """k-dependence with k and the number of features, in the order of I(x_j; y), by leave-one-out in one more pass.

    A network of each k up to ``k_max`` has the first k parents of the greatest one, and all of its first m features
    are tried at once, since the posterior of a row is a product that grows feature by feature.

    Parameters
    ----------
    k_max : int
    n_states : array of int
        Numbers of states.
    prior_strength : float
        Pseudo-rows of each distribution.

    Attributes
    ----------
    k_ : int
    features_ : array of int
        Those that are kept.

    Notes
    -----
    The source takes the root mean square of 1 − p(y_i | x_i), and k up to 5. Here it is the log-loss, by which all
    learners of the study are chosen and judged. The order and the parents are learnt from all rows, as there.

    References
    ----------
    Martínez, Webb, Chen and Zaidi (2016).
    """

    def __init__(self, k_max: int = 3, n_states: NDArray[np.intp] | None = None, prior_strength: float = 1.0) -> None:
        self.k_max = k_max
        self.n_states = n_states
        self.prior_strength = prior_strength

    def fit(self, X: Array, y: NDArray) -> Self:
        """Learn the greatest network, choose, and count again."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        settings = {"prior_strength": self.prior_strength}
        k_max = min(self.k_max, X.shape[1] - 1)
        whole = KDependenceBayes(k=k_max, decomposable=False, n_states=self.n_states, **settings).fit(X, y)
        places, n_states = whole.family_.places(X), whole.n_states_
        of_class, _ = mutual_information(Rows.from_arrays(places, labels), n_states, len(self.classes_))
        order = np.argsort(-of_class, kind="stable")
        losses = [
            leave_one_out_losses(
                places, labels, order, [of[:k] for of in whole.parents_], n_states, self.prior_strength
            )[1:]
            for k in range(k_max + 1)
        ]
        self.k_, n_kept = np.unravel_index(np.argmin(losses), np.shape(losses))
        self.features_ = order[: n_kept + 1]
        number = {int(j): place for place, j in enumerate(self.features_)}
        structure = [[number[p] for p in whole.parents_[j][: self.k_]] for j in self.features_]
        self.network_ = KDependenceBayes(structure=structure, n_states=n_states[self.features_], **settings)
        self.network_.fit(X[:, self.features_], y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Posteriors, shape (n, r)."""
        return self.network_.predict_proba(X[:, self.features_])
