"""What the checks of the page *Exact where others approximate* try: steps of EM, values of sets, votes and sums."""

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from rcbook.checking import Part, exceeds, gap, holds
from rcpkg import CategoricalNB, GaussianNB, KDependenceBayes, class_prior
from rcpkg.base import Array, GenerativeClassifier
from rcpkg.explain import contributions, sufficient_sets

Mask = NDArray[np.bool_]


def calibrated_at(joint: Array) -> tuple[Array, Array, Array]:
    """Weights π (r,), posteriors (n, r) and laws of the rows within classes (n, r), of a joint distribution."""
    prior = joint.sum(axis=0)
    return prior, joint / joint.sum(axis=1, keepdims=True), joint / prior


def step_of_em(P: Array, share: Array, prior: Array, weights: Array) -> Array:
    """A step in the mean, of posteriors P at the weights ``prior`` that have these shares."""
    corrected = P * weights / prior
    return share @ (corrected / corrected.sum(axis=1, keepdims=True))


def one_step(joint: Array, rng: np.random.Generator) -> tuple[list[Array], Array, Array, Array, list[Array], Array]:
    """Of three classes: one and two steps from drawn rows less the formulas, the matrix C of the law of a step, the
    first step less this law, a step from the true weights less these; and, of posteriors that are not calibrated, a
    step without a shift and the mean posterior less the weights, and a step from the true weights less these."""
    prior, P, within = calibrated_at(joint)
    truth = np.array([0.7, 0.2, 0.1])
    new_rows = within @ truth
    C = within.T @ P
    first = step_of_em(P, new_rows, prior, prior)
    sure = P**3 / (P**3).sum(axis=1, keepdims=True)  # not calibrated
    unshifted = joint.sum(axis=1)
    stays = unshifted @ sure - prior
    still = step_of_em(sure, unshifted, prior, prior) - prior
    astray = step_of_em(sure, new_rows, prior, truth) - truth
    sample = P[rng.choice(12, 500, p=new_rows)]
    mean = sample.mean(axis=0)
    by_code = sample * mean / (prior + 1e-8)
    by_code /= by_code.sum(axis=1, keepdims=True)
    steps = [class_prior.em(sample / prior, prior, 0.0, k)[0] for k in (1, 2)]
    return (
        [steps[0] - mean, steps[1] - by_code.mean(axis=0)],
        C,
        first - prior - (truth - prior) @ C,
        step_of_em(P, new_rows, prior, truth) - truth,
        [still, stays],
        astray,
    )


def two_classes(joint: Array) -> list[Part]:
    """The share of the way to the true weights that a step goes, where two classes overlap and where they do not."""
    pair = np.column_stack([joint[:, 0], joint[:, 1:].sum(axis=1)])
    apart = np.repeat(np.eye(2), 6, axis=0) * pair  # classes that never overlap
    moved = []
    for two in pair, apart / apart.sum():
        of_two, P_two, within_two = calibrated_at(two)
        went = step_of_em(P_two, within_two @ [0.9, 0.1], of_two, of_two) - of_two
        moved.append((went / ([0.9, 0.1] - of_two), np.trace(within_two.T @ P_two) - 1))
    (shares, formula), (whole_way, _) = moved
    return [
        gap("two classes, share of the way", shares - formula, 1e-12),
        exceeds("what is left of it where they overlap", 1 - shares, 0.01),
        gap("the whole way where they do not", whole_way - 1, 1e-12),
    ]


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


def less_by_components(known: dict[tuple[bool, ...], Array], structure: list[list[int]]) -> list[Array]:
    """log p(x_S, y) by sums over the components of what is hidden, less those of the model, for all sets S."""
    every = (True,) * len(structure)
    return [
        known[every] + sum(known[tuple(~C)] - known[every] for C in components(~np.array(S), structure)) - log_p
        for S, log_p in known.items()
    ]


def independent_features(codes: Array, labels: Array) -> Array:
    """Shapley log odds of naive Bayes on the first row, less those of each feature alone."""
    alone = CategoricalNB().fit(codes, labels)
    one = np.where(np.eye(codes.shape[1], dtype=bool), codes[0], np.nan)
    terms = alone.predict_joint_log_proba(one) - alone.class_log_prior_
    return np.diff(contributions(alone, codes[:1], "shapley", "log_odds")) - np.diff(terms)


def connected(structure: list[list[int]]) -> int:
    """How many sets of features are connected in a forest."""
    return sum(len(components(S, structure)) == 1 for S in masks(len(structure)))


def leaves(structure: list[list[int]]) -> int:
    """How many features of a tree have one neighbour."""
    ends = [end for j, of in enumerate(structure) for k in of for end in (j, k)]
    return int((np.bincount(ends) == 1).sum())


def connected_sets(structure: list[list[int]]) -> list[Part]:
    """How many sets of a chain, a star and a tree of six features are connected, beside formulas and bounds."""
    shapes = [[], *([j] for j in range(5))], [[], *[[0]] * 5], structure
    counts = [connected(shape) for shape in shapes]
    less = np.subtract(counts[:2], [6 * 7 / 2, 2**5 + 5])
    bounds = [6 ** leaves(shape) for shape in shapes]
    return [
        gap("connected sets of a chain and a star, less the formulas", less, 0),
        holds("at most d to the number of leaves", np.less_equal(counts, bounds)),
    ]


def index_of_votes(votes: Array, quota: int, B: float = 60.0) -> Array:
    """The Shapley–Shubik index read off the values of posteriors log(1 + e^t) of naive Bayes, less the index."""

    def of_votes(q):
        return over_orders(lambda seen: np.logaddexp(0, B * (votes[seen].sum() - q + 1.5)), len(votes))

    index = over_orders(lambda seen: float(votes[seen].sum() >= quota), len(votes))
    return (of_votes(quota) - of_votes(quota + 1)) / B - index


def star(codes: Array, labels: Array, rng: np.random.Generator) -> Array:
    """log p(x_S) of naive Bayes less those of a star without its hub, which is in place of the class."""
    n, d = codes.shape
    hub = (codes[:, :1] + rng.integers(2, size=(n, 1))) % 3  # within one class
    of_class = labels == 0
    network = KDependenceBayes(prior_strength=0.0, structure=[[], *[[0]] * (d - 1)])
    starred = network.fit(np.column_stack([hub, codes[:, 1:]]), labels)
    without_hub = np.column_stack([np.full(n, np.nan), codes[:, 1:]])
    log_p = starred.predict_joint_log_proba(without_hub)[:, 0] - starred.class_log_prior_[0]
    mixed = CategoricalNB().fit(codes[of_class, 1:], hub[of_class, 0]).score_samples(codes[:, 1:])
    return log_p - mixed


def smallest_set(rng: np.random.Generator) -> int:
    """Size of the smallest sufficient set by sorting, less that by all sets."""
    model, row = evidence(rng)
    every_set = masks(9)
    c = model.predict_proba(row).argmax()
    enough = model.predict_proba(np.where(every_set, row, np.nan))[:, c] >= 0.8
    found = sufficient_sets(model, row, 0.8).features[0]
    return found.sum() - every_set[enough].sum(axis=1).min()


def odds_lost(S: Mask, numbers: Array, k: int, T: int, M: float) -> float:
    """1/p(c | x_S) − 1 of the three classes of which a set with the sum T is looked for."""
    h, u, size = 1 / T, numbers[S].sum(), S.sum()
    return float(np.exp(-M * size - h * u) + np.exp(-M * size - h * (2 * T * size / k - u)))


def evidence(rng: np.random.Generator, d: int = 9) -> tuple[GaussianNB, Array]:
    """Naive Bayes of two classes, and a row."""
    y = np.arange(200) % 2
    return GaussianNB().fit(rng.normal(size=(200, d)) + y[:, None], y), rng.normal(size=(1, d)) + 0.4
