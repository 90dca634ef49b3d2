"""Structure of Bayesian network classifiers by conditional mutual information: trees, Sahami's order, k-trees."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from rcpkg.base import Array

LARGEST_COUNTS = 2**23  # pairs of states that are counted at a time, for all classes: 64 MB
LARGEST_BLOCK = 2**21  # entries of indicators that are made dense at a time
DECIMALS = 12  # of a mutual information in nats; beyond them is rounding, which must not decide between equals


def mutual_information(places: NDArray[np.intp], Y: Array, n_states: NDArray[np.intp]) -> tuple[Array, Array]:
    """I(x_j; y) and I(x_i; x_j | y) = Σ p(x_i, x_j, y) log p(x_i, x_j | y) / (p(x_i | y) p(x_j | y)), in nats.

    Of each pair the rows count in which both features are known. The pairs of states are counted by products of
    indicators, as many features at a time as `LARGEST_COUNTS` allows; more passes are made only where these are many.

    Parameters
    ----------
    places : array of int, shape (n, d)
        States 0 … r_j − 1, −1 where they are not known.
    Y : array of shape (n, r)
        Labels, times the weights of the rows.
    n_states : array of int, shape (d,)
        Numbers of states r_j.

    Returns
    -------
    array of shape (d,) and array of shape (d, d)
        Symmetric, rounded to `DECIMALS`, with zeros on the diagonal.
    """
    starts, r = np.cumsum(n_states) - n_states, Y.shape[1]
    with_class = np.zeros((r, int(n_states.sum())))
    pairs, d = np.zeros((len(n_states), len(n_states))), len(n_states)
    first = 0
    while first < d:
        most = LARGEST_COUNTS // (r * with_class.shape[1])
        last = max(first + 1, int(np.searchsorted(np.cumsum(n_states[first:]), most, side="right")) + first)
        counts = pair_counts(places, Y, n_states, slice(first, last))
        own = slice(int(starts[first]), int(starts[first]) + counts.shape[1])
        with_class[:, own] = counts[:, np.arange(counts.shape[1]), np.arange(own.start, own.stop)]
        pairs[first:last] = _of_pairs(counts, starts[first:last] - starts[first], starts)
        first = last
    np.fill_diagonal(pairs, 0.0)
    of_class = np.maximum(_of_classes(with_class, starts), 0.0)
    return of_class.round(DECIMALS), np.maximum((pairs + pairs.T) / 2, 0.0).round(DECIMALS)


def pair_counts(places: NDArray[np.intp], Y: Array, n_states: NDArray[np.intp], chosen: slice) -> Array:
    """Weights of the rows of each class with the states u of a ``chosen`` feature and v of any: shape (r, K', K)."""
    starts, K = np.cumsum(n_states) - n_states, int(n_states.sum())
    own = slice(int(starts[chosen][0]), int(starts[chosen][-1] + n_states[chosen][-1]))
    counts = np.zeros((Y.shape[1], own.stop - own.start, K))
    size = max(1, LARGEST_BLOCK // K)
    for y in range(Y.shape[1]):
        rows = np.flatnonzero(Y[:, y])
        for block in (rows[start : start + size] for start in range(0, len(rows), size)):
            Z = np.zeros((len(block), K + 1))  # with a column for what is not known
            columns = np.where(places[block] < 0, K, places[block] + starts)
            Z[np.arange(len(block))[:, None], columns] = 1.0
            counts[y] += (Z[:, own] * Y[block, y, None]).T @ Z[:, :K]
    return counts


def _of_pairs(counts: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """Conditional mutual informations from pair counts, whose features start at these rows and columns."""
    by_row = np.add.reduceat(counts, columns, axis=2)
    by_column = np.add.reduceat(counts, rows, axis=1)
    total = np.add.reduceat(by_row, rows, axis=1)
    cells = np.add.reduceat(xlogy(counts, counts).sum(axis=0), rows, axis=0)
    bits = np.add.reduceat(cells, columns, axis=1) + xlogy(total, total).sum(axis=0)
    bits -= np.add.reduceat(xlogy(by_row, by_row).sum(axis=0), rows, axis=0)
    bits -= np.add.reduceat(xlogy(by_column, by_column).sum(axis=0), columns, axis=1)
    weight = total.sum(axis=0)
    return np.divide(bits, weight, out=np.zeros_like(bits), where=weight > 0)


def _of_classes(counts: Array, starts: NDArray[np.intp]) -> Array:
    """Mutual informations with the class from cell counts (r, K)."""
    by_class, by_state = np.add.reduceat(counts, starts, axis=1), counts.sum(axis=0)
    total = by_class.sum(axis=0)
    nats = np.add.reduceat(xlogy(counts, counts).sum(axis=0) - xlogy(by_state, by_state), starts)
    nats += xlogy(total, total) - xlogy(by_class, by_class).sum(axis=0)
    return np.divide(nats, total, out=np.zeros_like(nats), where=total > 0)


def tree(of_class: Array, pairs: Array) -> list[tuple[int, ...]]:
    """Parents in the tree of greatest Σ I(x_j; x_pa(j) | y) (Chow and Liu, 1968; Friedman and others, 1997).

    It grows from the feature that tells most of the class. Edges of information zero are left out, so that it may be a
    forest; ties go to the first feature.
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
    or with which a table would have more than ``most`` cells. Ties go to the first feature.
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
        parents[j] = max(found, key=lambda of: round(float(pairs[j, list(of)].sum()), DECIMALS), default=())
    return parents
