"""The conditional log-likelihood as a function of coefficients B: multinomial logistic regression on features φ(x)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.features import Features, gram, linear_scores, squared, weighted_sums
from rcpkg.calibration.rules import Losses
from rcpkg.linalg import AT_A_TIME, ROUNDING, Factored, jittered_cholesky, slices


def conditional_information(
    blocks: Iterable[tuple[Array, Array, Array]], k: int, p: int, full: bool = True, negligible: float = 0.0
) -> Array:
    """Σ_i w_i (diag p_i − p_i p_iᵀ) ⊗ φ_i φ_iᵀ over k classes, shape (k, p, k, p), or its diagonal blocks, (k, p, p).

    ``blocks`` are features (p, n), posteriors (k, n) of these classes, and weights (n,). Outside the diagonal blocks of
    the whole, and in these alone, rows that weigh less than ``negligible`` times the mean may be left out.
    """
    of_class, pairs = np.zeros((k, p, p)), np.zeros((k, p, k, p) if full and k > 1 else 0)
    # Pairs of few features all at once: `RiskCalibrationCV` of GaussianNB takes .85 of the time on ecoli and vowel, but
    # of QDA on vehicle, 190 features for 3 classes, 1.12 times as long. The sums are the same, reordered. With half of
    # the 10 one of nine fits goes the other way, GaussianNB on wine, in the same time, with twice none does.
    one_by_one = negligible > 0 or p > 10 * k**2
    for block, P, weight in blocks:
        space = np.empty_like(block)
        for a in range(k):
            some, doubt = block, P[a] * (1 - P[a]) * weight
            if negligible and not full:
                some, doubt = uncertain_rows(block, doubt, negligible)
            of_class[a] += gram(some, doubt, space[:, : len(doubt)])
        if pairs.size and one_by_one:
            for a, b in zip(*np.tril_indices(k, -1)):
                some, doubt = uncertain_rows(block, P[a] * P[b] * weight, negligible)
                pairs[a, :, b] -= gram(some, doubt, space[:, : len(doubt)])
        elif pairs.size:
            for part in slices(len(weight), -(-AT_A_TIME // (k * p))):
                roots = (P[:, None, part] * (block[:, part] * np.sqrt(weight[part]))).reshape(k * p, -1)
                pairs -= (roots @ roots.T).reshape(pairs.shape)
    if not full:
        return of_class
    if not pairs.size:
        return of_class[:, :, None]
    for a, b in zip(*np.triu_indices(k, 1)) if one_by_one else ():  # all at once they are symmetric
        pairs[a, :, b] = pairs[b, :, a]
    pairs[range(k), :, range(k)] = of_class
    return pairs


def uncertain_rows(block: Array, weight: Array, negligible: float) -> tuple[Array, Array]:
    """Features and weights of the rows that weigh more than ``negligible`` times the mean, if these are few.

    The bar is the race to the optimum: with a ridge QDA on letter takes 1.8 in place of 2.8 s, on pendigits .56 in
    place of .77 s. The optimum is the same, as what lacks rows only stands for the Hessian."""
    rows = np.flatnonzero(weight > negligible * weight.mean())
    if 2 * len(rows) > len(weight):
        return block, weight
    return block.take(rows, axis=1), weight[rows]


class Evaluation(NamedTuple):
    """What one pass over the rows tells of V: ``value``, the mean −log p(y | x) with the penalty, and its gradient.

    ``separated``: there is no penalty, and each row's own class alone has the highest score. No optimum is finite then.
    """

    value: float
    gradient: Array
    losses: Losses
    separated: bool


class LogisticObjective:
    """f(V) = −Σ_i w_i log p(y_i | x_i) / m + l2 ‖BM‖² / 2m.

    V has a row for each class, of B, or for each class but the first, B_y − B_0: ``free`` of them. With two classes
    the penalty is that of B_1 − B_0, as in scikit-learn; with more it is that of the B whose rows add up to zero.
    ``ridge`` is M, or the diagonal of one; by default BM are the slopes. ``total`` takes the place of m, if given.
    """

    sampled = False  # whether the rows stand for more

    def __init__(
        self,
        features: Features,
        y: NDArray[np.intp],
        r: int,
        weight: Array | None = None,
        l2: float = 0.0,
        free: int | None = None,
        ridge: Array | None = None,
        total: float | None = None,
    ) -> None:
        self.features, self.y, self.r, self.weight = features, y, r, weight
        self.counts = np.broadcast_to(1.0, len(y)) if weight is None else weight
        self.l2, self.penalised = l2, bool(l2)
        self.ridge = (np.arange(features.width) > 0).astype(float) if ridge is None else ridge
        self.free = r - 1 if free is None else free
        self.size = self.free * features.width  # entries of V
        self.between = (2 if r == 2 else 1) * (np.eye(self.free) - 1 / r)  # the penalty's metric of the classes
        self.rows_weight = float(len(y) if weight is None else weight.sum())
        self.total = self.rows_weight if total is None else total

    def contrasts(self, B: Array) -> Array:
        """V of B."""
        return B[1:] - B[0] if self.free < self.r else B

    def coefficients(self, V: Array) -> Array:
        """B of V, with rows that add up to zero."""
        B = np.vstack([np.zeros(V.shape[1]), V]) if self.free < self.r else V
        return B - B.mean(axis=0)

    def __call__(self, V: Array) -> Evaluation:
        """One pass over the rows."""
        gradient, sums, separated = np.zeros(V.shape), np.zeros(3), True
        lacking = self.r - self.free
        for rows, block in self.features.blocks():
            y, weight = self.y[rows], None if self.weight is None else self.weight[rows]
            W, labelled = posteriors(linear_scores(V, block), y, self.r)
            of_block, right = row_sums(W, labelled, y, self.r, weight)
            sums += of_block
            separated = separated and right
            W[y[labelled.columns] - lacking, labelled.columns] -= 1
            if weight is not None:
                W *= weight
            gradient += weighted_sums(W, block)
        losses = Losses(*(sums / self.rows_weight).tolist())
        penalty, pull = self.penalty(V)
        value = losses.log_loss * (self.rows_weight / self.total) + penalty
        return Evaluation(value, gradient / self.total + pull, losses, separated and not self.penalised)

    def penalty(self, V: Array) -> tuple[float, Array]:
        """The penalty of V, infinite where it overflows, and its gradient."""
        if not self.l2:
            return 0.0, np.zeros_like(V)
        if self.free == self.r:
            V = V - V.mean(axis=0)  # what the classes have in common costs nothing, and may be large
        M, matrix = self.ridge, self.ridge.ndim == 2
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = V @ M if matrix else V * M  # VMMᵀ at once would lose digits
            share = self.l2 / self.total * self.between @ slopes
            value = 0.5 * float(np.vdot(share, slopes))
            return np.inf if np.isnan(value) else value, share @ M.T if matrix else share * M

    @cached_property
    def ridge_square(self) -> Array:
        """M Mᵀ."""
        return self.ridge @ self.ridge.T if self.ridge.ndim == 2 else np.diag(self.ridge)

    def losses(self, V: Array) -> Array:
        """−log p(y | x) of each row."""
        scored = ((linear_scores(V, block), self.y[rows]) for rows, block in self.features.blocks())
        return np.concatenate([posteriors(S, y, self.r)[1].loss for S, y in scored])

    def _posteriors(self, V: Array, blocks: Iterable[tuple[slice, Any]]) -> Iterator[tuple[slice, Any, Array]]:
        for rows, block in blocks:
            yield rows, block, posteriors(linear_scores(V, block), self.y[rows], self.r)[0]

    def diagonal(self, B: Array) -> Array:
        """The diagonal of the Hessian of f at B, shape (r, p)."""
        h = np.zeros_like(B)
        for rows, block, P in self._posteriors(B, self.features.blocks()):
            h += weighted_sums(P * (1 - P) * self.counts[rows], squared(block))
        squares = np.einsum("jk,jk->j", self.ridge, self.ridge) if self.ridge.ndim == 2 else self.ridge
        return (h + self.l2 * np.outer(self.between.diagonal(), squares)) / self.total

    def hessian(self, V: Array | None) -> Callable[[Array], Array]:
        """The products of the Hessian of f at V with arrays of its shape, a pass each; for None at equal posteriors."""
        if V is None:
            equal = np.full((self.free, 1), 1 / self.r)
            P_of_blocks = [equal for _ in self.features.slices]
        else:
            P_of_blocks = [P for _, _, P in self._posteriors(V, self.features.blocks())]

        def product(D: Array) -> Array:
            out = np.zeros_like(D)
            for P, (rows, block) in zip(P_of_blocks, self.features.blocks()):
                T = linear_scores(D, block)
                T -= (P * T).sum(axis=0)
                T *= P
                if self.weight is not None:
                    T *= self.weight[rows]
                out += weighted_sums(T, block)
            return out / self.total + self.penalty(D)[1]

        return product

    def on(self, index: NDArray[np.intp], weight: Array) -> "LogisticObjective":
        """The objective on some rows, that count by ``weight``, made to add up to the weight of all."""
        weight = weight * (self.rows_weight / weight.sum())
        rows = self.features.take(index), self.y[index]
        part = LogisticObjective(*rows, self.r, weight, self.l2, self.free, self.ridge, self.total)
        part.sampled = True
        return part

    def information(self, V: Array | None, full: bool = True, negligible: float = 0.0) -> Array:
        """The Hessian of the mean log-loss at V, or, for None, at equal posteriors: `conditional_information` of all
        classes but the first, or of each in V."""
        k = self.r - 1 if full else self.free
        blocks = self.features.dense_blocks()
        if V is None:  # one matrix for all classes
            G = sum(gram(block, self.counts[rows] / self.total) for rows, block in blocks)
            between = (np.eye(k) - 1 / self.r) / self.r
            return between[:, None, :, None] * G[:, None] if full else np.repeat(between[:1, :1, None] * G, k, axis=0)
        with_posteriors = self._posteriors(V, blocks)
        weighted = ((block, P[-k:], self.counts[rows] / self.total) for rows, block, P in with_posteriors)
        return conditional_information(weighted, k, self.features.width, full, negligible)

    def curvature(self, V: Array | None, full: bool = True, negligible: float = 0.0) -> Array:
        """The Hessian of f, as a matrix, or, unless ``full``, its diagonal blocks, one for each row of V; like
        `information`."""
        H = self.information(V, full, negligible)
        if self.l2:
            penalty = self.l2 / self.total * self.ridge_square
            H += self.between[:, None, :, None] * penalty[:, None] if full else self.between[0, 0] * penalty
        return H.reshape(len(H) * self.features.width, -1) if full else H


class Curvature(NamedTuple):
    """H = LLᵀ, which may be singular but for rounding, by the factors of its diagonal blocks."""

    factors: Sequence[Factored]
    places: Sequence[slice]  # of the blocks

    @classmethod
    def from_blocks(cls, blocks: Sequence[Array]) -> "Curvature":
        """That with these diagonal blocks."""
        ends = accumulate(map(len, blocks), initial=0)
        return cls([jittered_cholesky(block) for block in blocks], [slice(*b) for b in pairwise(ends)])

    def solve(self, g: Array) -> Array:
        """H⁻¹g."""
        return np.concatenate([factor.solve(g[place]) for factor, place in zip(self.factors, self.places)])


class Diagonal(NamedTuple):
    """H = diag(h)."""

    h: Array

    def solve(self, g: Array) -> Array:
        """H⁻¹g."""
        return g / self.h


class OfLabels(NamedTuple):
    """What scores say of the rows' own classes.

    ``columns`` are the rows whose class has a score of its own, which is all where no class is left out; ``behind`` is
    the score of the own class less the largest, ``loss`` −log p(y | x) and ``soft`` 1 − p(y | x).
    """

    columns: NDArray[np.intp]
    behind: Array
    loss: Array
    soft: Array


def posteriors(S: Array, y: NDArray[np.intp], r: int) -> tuple[Array, OfLabels]:
    """Posteriors, of the shape of the scores S: (r, n), or (r − 1, n) where that of class 0 is zero."""
    lacking = r - len(S)
    if lacking and r == 2:
        return binary_posteriors(S[0], y)
    top = S.max(axis=0)
    if lacking:
        top = np.maximum(top, 0.0)
        columns = np.flatnonzero(y)
        behind = -top
        behind[columns] += S[y[columns] - 1, columns]
    else:
        columns = np.arange(len(y))
        behind = S[y, columns] - top
    P = np.exp(S - top)
    total = P.sum(axis=0)
    if lacking:
        total += np.exp(-top)
    P /= total
    loss = np.log(total) - behind
    return P, OfLabels(columns, behind, loss, -np.expm1(-loss))


def binary_posteriors(s: Array, y: NDArray[np.intp]) -> tuple[Array, OfLabels]:
    """Posteriors of class 1, shape (1, n), from its scores where those of class 0 are zero.

    Ties are one half exactly, which 1 − exp(−loss) misses by rounding; one exponential a row spares a fit 1 to 3 %."""
    small = np.exp(-np.abs(s))
    total = 1 + small
    small /= total
    large = 1 / total
    behind = np.minimum(np.where(y, s, -s), 0.0)
    labelled = OfLabels(y.nonzero()[0], behind, np.log(total) - behind, np.where(behind < 0, large, small))
    return np.where(s > 0, large, small)[None], labelled


def row_sums(P: Array, labelled: OfLabels, y: NDArray[np.intp], r: int, weight: Array | None) -> tuple[Array, bool]:
    """Sums of soft errors, errors and −log p(y | x), and whether each row that counts has its own class ahead, alone.

    Ties go to the first class; a class of a posterior above one half has none.
    """
    soft, right = labelled.soft, labelled.behind == 0
    alone, doubtful = right.copy(), (right & (soft >= 0.5)).nonzero()[0]
    if doubtful.size:
        among = P[:, doubtful]
        if len(P) < r:
            among = np.vstack([1 - among.sum(axis=0), among])
        highest = among >= (1 - ROUNDING) * among.max(axis=0)
        alone[doubtful] = highest.sum(axis=0) == 1
        right[doubtful] = highest.argmax(axis=0) == y[doubtful]
    if weight is None:
        return np.array([soft.sum(), len(y) - np.count_nonzero(right), labelled.loss.sum()]), bool(alone.all())
    counted = weight > 0
    weight = weight[counted]
    return np.array([weight @ part[counted] for part in (soft, ~right, labelled.loss)]), bool(alone[counted].all())
