"""Structure of Bayesian network classifiers by conditional mutual information: trees, Sahami's order, k-trees."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy

from rcpkg.base import Array
from rcpkg.families.cliques import Families
from rcpkg.families.constants import DECIMALS, LARGEST_TABLES
from rcpkg.linalg import ratio
from rcpkg.rows import Block, Rows


def mutual_information(rows: Rows, n_states: NDArray[np.intp], n_classes: int) -> tuple[Array, Array]:
    """I(x_j; y) and I(x_i; x_j | y) = Σ p(x_i, x_j, y) log p(x_i, x_j | y) / (p(x_i | y) p(x_j | y)), in nats.

    Of each pair the rows count in which both features are known. The pairs of states are counted by products of
    indicators, for as many features at a time as `LARGEST_TABLES` allows; more passes are made only where there are
    many. A feature of more pairs of states than half of it, being nearly an identifier, has the information zero.

    X of the ``rows`` are states 0 … r_j − 1, r_j = ``n_states``, and −1 where they are not known; y are numbers of
    ``n_classes`` classes, or weights of these. Arrays (d,) and (d, d), the latter symmetric with zeros on its diagonal,
    are rounded to `DECIMALS`.

    >>> rows = Rows.from_arrays(np.array([[0, 0], [0, 0], [1, 1], [1, 1]]), np.array([0, 1, 0, 1]))
    >>> mutual_information(rows, np.array([2, 2]), 2)[1].round(3)
    array([[0.   , 0.693],
           [0.693, 0.   ]])
    """
    d, K = len(n_states), int(n_states.sum())
    pairs, few = np.zeros((d, d)), 2 * n_states * K <= LARGEST_TABLES
    first = 0
    while first < d:
        within = np.searchsorted(np.cumsum(n_states[first:]), LARGEST_TABLES // (K * n_classes), side="right")
        last = first + max(1, int(within))
        if few[first]:
            counts = rows.sum(partial(_pairs, n_states, n_classes, slice(first, last)))
            pairs[first:last] = _of_pairs(counts, n_states, first, last)
        first = last
    pairs = np.maximum((pairs + pairs.T) / 2, 0.0) * np.multiply.outer(few, few)
    np.fill_diagonal(pairs, 0.0)
    of_class = _of_classes(rows.sum(partial(_counts, n_states, n_classes)), n_states)
    return np.maximum(of_class, 0.0).round(DECIMALS), pairs.round(DECIMALS)


def _indicators(block: Block, n_states: NDArray[np.intp]) -> csr_array:
    """Rows (n, K) with a one for the state of each feature that is known."""
    states = Families([()] * len(n_states), n_states)
    states.lay_out()
    return states.indicators(block.X)


def _of_pairs(counts_of_classes: Array, n_states: NDArray[np.intp], first: int, last: int) -> Array:
    """I(x_i; x_j | y) of some features i with all j, from Σ c log c over cells c less that over their margins."""
    starts = np.cumsum(n_states) - n_states
    rows = starts[first:last] - starts[first]
    nats, weight = np.zeros((2, len(rows), len(n_states)))
    for counts in counts_of_classes:
        by_row, by_column = np.add.reduceat(counts, starts, axis=1), np.add.reduceat(counts, rows, axis=0)
        total = np.add.reduceat(by_row, rows, axis=0)
        xlogy(counts, counts, out=counts)
        nats += np.add.reduceat(np.add.reduceat(counts, rows, axis=0), starts, axis=1) + xlogy(total, total)
        nats -= np.add.reduceat(xlogy(by_row, by_row), rows, axis=0)
        nats -= np.add.reduceat(xlogy(by_column, by_column), starts, axis=1)
        weight += total
    return ratio(nats, weight)


def _counts(n_states: NDArray[np.intp], n_classes: int, block: Block) -> Array:
    """Weights of the rows of a block with each state, by class, shape (r, K)."""
    return block.weights(n_classes).T @ _indicators(block, n_states)


def _pairs(n_states: NDArray[np.intp], n_classes: int, chosen: slice, block: Block) -> Array:
    """Weights of the rows of a block with a state of ``chosen`` features and one of any, by class, shape (r, K', K)."""
    Z, counts = _indicators(block, n_states), []
    ours = slice(int(n_states[: chosen.start].sum()), int(n_states[: chosen.stop].sum()))
    for w in block.weights(n_classes).T:
        rows = np.flatnonzero(w)
        counts.append(((Z[rows, ours] * w[rows, None]).T @ Z[rows]).toarray())
    return np.array(counts)


def _of_classes(counts: Array, n_states: NDArray[np.intp]) -> Array:
    """I(x_j; y), from the weights of the states by class."""
    starts = np.cumsum(n_states) - n_states
    by_class, by_state = np.add.reduceat(counts, starts, axis=1), counts.sum(axis=0)
    total = by_class.sum(axis=0)
    nats = np.add.reduceat(xlogy(counts, counts).sum(axis=0) - xlogy(by_state, by_state), starts)
    nats += xlogy(total, total) - xlogy(by_class, by_class).sum(axis=0)
    return ratio(nats, total)


def tree(of_class: Array, pairs: Array) -> list[tuple[int, ...]]:
    """Parents in the tree of greatest Σ I(x_j; x_pa(j) | y) (Chow and Liu, 1968; Friedman and others, 1997).

    It grows from the feature that tells most of the class. Edges of information zero are left out, so that it may be a
    forest; ties go to the first feature. ``of_class`` are I(x_j; y), (d,), and ``pairs`` I(x_i; x_j | y), (d, d).

    >>> tree(np.array([0.3, 0.2, 0.1]), np.array([[0.0, 0.2, 0.0], [0.2, 0.0, 0.1], [0.0, 0.1, 0.0]]))
    [(), (0,), (1,)]
    """
    d = len(of_class)
    parents: list[tuple[int, ...]] = [()] * d
    best, source, left = np.zeros(d), np.full(d, -1), np.ones(d, dtype=bool)
    for _ in range(d):
        if np.where(left, best, 0.0).max() > 0:
            j = int(np.argmax(np.where(left, best, -1.0)))
            parents[j] = (int(source[j]),)
        else:
            j = int(np.argmax(np.where(left, of_class, -1.0)))
        left[j] = False
        closer = left & (pairs[j] > best)
        best[closer], source[closer] = pairs[j][closer], j
    return parents


def k_dependence(
    of_class: Array, pairs: Array, k: int, n_states: NDArray[np.intp], most: int, decomposable: bool
) -> list[tuple[int, ...]]:
    """Parents of each feature among those that tell more of the class, at most k (Sahami, 1996, algorithm KDB).

    Those of greatest I(x_j; x_i | y), in this order; if ``decomposable``, chosen within the family of one feature, so
    that they are joined themselves and the network is a part of a k-tree. A parent is passed over that tells nothing,
    or with which a table would have more than ``most`` cells, of features with ``n_states`` (d,). Ties go to the first
    feature; ``of_class`` and ``pairs`` are those of `tree`.

    >>> pairs = np.array([[0.0, 0.2, 0.3], [0.2, 0.0, 0.1], [0.3, 0.1, 0.0]])
    >>> k_dependence(np.array([0.3, 0.2, 0.1]), pairs, 2, np.array([2, 2, 2]), 64, decomposable=False)
    [(), (0,), (0, 1)]
    """
    order = [int(j) for j in np.argsort(-of_class, kind="stable")]
    parents: list[tuple[int, ...]] = [()] * len(order)

    def strongest(j: int, candidates: list[int]) -> tuple[int, ...]:
        chosen, cells = [], int(n_states[j])
        for i in sorted(candidates, key=lambda i: (-pairs[j, i], i)):
            if len(chosen) < k and pairs[j, i] > 0 and cells * int(n_states[i]) <= most:
                chosen.append(i)
                cells *= int(n_states[i])
        return tuple(chosen)

    for place, j in enumerate(order):
        earlier = order[:place]
        if not decomposable:
            parents[j] = strongest(j, earlier)
            continue
        found = [strongest(j, [i, *parents[i]]) for i in earlier]
        parents[j] = max(found, key=lambda pa: round(float(pairs[j, list(pa)].sum()), DECIMALS), default=())
    return parents
