"""What the checks of the page *Exact where others approximate* try: steps of EM, values of sets, votes and sums."""

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from rcpkg import GaussianNB
from rcpkg.base import Array, GenerativeClassifier

Mask = NDArray[np.bool_]


def calibrated_at(joint: Array) -> tuple[Array, Array, Array]:
    """Weights π (r,), posteriors (n, r) and laws of the rows within classes (n, r), of a joint distribution."""
    prior = joint.sum(axis=0)
    return prior, joint / joint.sum(axis=1, keepdims=True), joint / prior


def step_of_em(P: Array, share: Array, prior: Array, weights: Array) -> Array:
    """A step in the mean, of posteriors P at the weights ``prior`` that have these shares."""
    corrected = P * weights / prior
    return share @ (corrected / corrected.sum(axis=1, keepdims=True))


def masks(d: int) -> Mask:
    """All sets of d features, (2^d, d)."""
    return np.array(list(product((False, True), repeat=d)))


def over_orders(value: Callable[[Mask], Array | float], d: int) -> Array:
    """Shapley values by their definition, of a function of sets."""
    orders = list(permutations(range(d)))
    found = np.zeros((d, *np.shape(value(np.zeros(d, dtype=bool)))))
    for order in orders:
        seen = np.zeros(d, dtype=bool)
        for j in order:
            before = value(seen.copy())
            seen[j] = True
            found[j] += (value(seen) - before) / len(orders)
    return found


def tree_rows(rng: np.random.Generator, structure: list[list[int]], n: int = 400) -> tuple[Array, Array]:
    """Codes of which each depends on its parent, if it has one, and on the label."""
    labels, codes = rng.integers(2, size=n), rng.integers(3, size=(n, len(structure)))
    for j, parents in enumerate(structure):
        for k in parents:
            codes[:, j] = np.where(rng.uniform(size=n) < 0.6, (codes[:, k] + labels) % 3, codes[:, j])
    return codes, labels


def values_of_sets(model: GenerativeClassifier, row: Array) -> dict[tuple[bool, ...], Array]:
    """log p(x_S, y), shape (r,), of all sets S."""
    found = {tuple(S): np.where(S, row, np.nan) for S in masks(row.size)}
    return {S: model.predict_joint_log_proba(hidden[None])[0] for S, hidden in found.items()}


def components(hidden: Mask, structure: list[list[int]]) -> list[Mask]:
    """The connected components of the hidden features of a forest."""
    edges, found, left = [(j, k) for j, of in enumerate(structure) for k in of], [], hidden.copy()
    while left.any():
        part = np.arange(len(left)) == np.flatnonzero(left)[0]
        for _ in left:
            for j, k in edges:
                if (part[j] or part[k]) and hidden[j] and hidden[k]:
                    part[[j, k]] = True
        found.append(part)
        left &= ~part
    return found


def connected(structure: list[list[int]]) -> int:
    """How many sets of features are connected in a forest."""
    return sum(len(components(S, structure)) == 1 for S in masks(len(structure)))


def leaves(structure: list[list[int]]) -> int:
    """How many features of a tree have one neighbour."""
    ends = [end for j, of in enumerate(structure) for k in of for end in (j, k)]
    return int((np.bincount(ends) == 1).sum())


def odds_lost(S: Mask, numbers: Array, k: int, T: int, M: float) -> float:
    """1/p(c | x_S) − 1 of the three classes of which a set with the sum T is looked for."""
    h, u, size = 1 / T, numbers[S].sum(), S.sum()
    return float(np.exp(-M * size - h * u) + np.exp(-M * size - h * (2 * T * size / k - u)))


def evidence(rng: np.random.Generator, d: int = 9) -> tuple[GaussianNB, Array]:
    """Naive Bayes of two classes, and a row."""
    y = np.arange(200) % 2
    return GaussianNB().fit(rng.normal(size=(200, d)) + y[:, None], y), rng.normal(size=(1, d)) + 0.4
