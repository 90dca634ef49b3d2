"""The conditional log-likelihood as a function of coefficients B: multinomial logistic regression on features φ(x)."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.curvature import conditional_information
from rcpkg.calibration.features import FeatureBlock, Features, JointCodes, gram, moments, products, squared
from rcpkg.calibration.rules import Losses
from rcpkg.linalg import JITTER, Factored, jittered_cholesky

TIED = 1e-14  # posteriors that differ by this share are equal


class Evaluation(NamedTuple):
    """Mean −log p(y | x) with the penalty, its gradient in V, the losses, and whether there is no penalty, and each row
    has its own class ahead: then no optimum is finite."""

    value: float
    gradient: Array
    losses: Losses
    separated: bool


class LogisticObjective:
    """f(V) = −Σ_i w_i log p(y_i | x_i) / m + l2 ‖BM‖² / 2m.

    V has a row for each class, of B, or for each class but the first, B_y − B_0: ``free`` of them. With two classes
    the penalty is that of B_1 − B_0, as in scikit-learn; with more it is that of the B whose rows add up to zero.
    ``ridge`` is M, or the diagonal of one; by default BM are the slopes.
    """

    divisible = True  # whether some of the rows may stand for all

    def __init__(
        self,
        features: Features,
        y: NDArray[np.intp],
        r: int,
        weight: Array | None = None,
        l2: float = 0.0,
        free: int | None = None,
        ridge: Array | None = None,
    ) -> None:
        self.features, self.y, self.r, self.weight = features, y, r, weight
        self.l2, self.penalised = l2, bool(l2)
        self.ridge = (np.arange(features.width) > 0).astype(float) if ridge is None else ridge
        self.free = r - 1 if free is None else free
        self.full = self.free < r  # whether curvatures are those of all classes, or of each class alone
        self.size = self.free * features.width  # entries of V
        self.between = (2 if r == 2 else 1) * (np.eye(self.free) - 1 / r)  # the penalty's metric of the classes
        self.rows_weight = self.total = float(len(y) if weight is None else weight.sum())

    def of(self, B: Array) -> Array:
        """V of B."""
        return B[1:] - B[0] if self.free < self.r else B

    def coefficients(self, V: Array) -> Array:
        """B of V, with rows that add up to zero."""
        B = np.vstack([np.zeros(V.shape[1]), V]) if self.free < self.r else V
        return B - B.mean(axis=0)

    def scored(self, V: Array) -> Array:
        """The coefficients of the scores in V, a view of shape (free, p)."""
        return V.reshape(-1)[: self.free * self.features.width].reshape(self.free, -1)

    def _counting(self, rows: slice) -> Array:
        return np.ones(rows.stop - rows.start) if self.weight is None else self.weight[rows]

    def __call__(self, V: Array) -> Evaluation:
        """One pass over the rows."""
        gradient, sums, separated = np.zeros(V.shape), np.zeros(3), True
        B, slope, lacking = self.scored(V), self.scored(gradient), self.r - self.free
        for rows, block in self.features.blocks():
            y, weight = self.y[rows], None if self.weight is None else self.weight[rows]
            W, own = posteriors(products(B, block), y, self.r)
            of_block, right = row_sums(W, own, y, self.r, weight)
            sums += of_block
            separated = separated and right
            W[y[own.columns] - lacking, own.columns] -= 1
            if weight is not None:
                W *= weight
            slope += moments(W, block)
        losses = Losses(*(sums / self.rows_weight).tolist())
        penalty, pull = self.penalty(V)
        value = losses.log_loss * (self.rows_weight / self.total) + penalty
        return Evaluation(value, gradient / self.total + pull, losses, separated and not self.penalised)

    def penalty(self, V: Array) -> tuple[float, Array]:
        """The penalty of V, and its gradient."""
        if not self.l2:
            return 0.0, np.zeros_like(V)
        if self.free == self.r:
            V = V - V.mean(axis=0)  # what the classes have in common costs nothing, and may be large
        M, matrix = self.ridge, self.ridge.ndim == 2
        slopes = V @ M if matrix else V * M  # VMMᵀ at once would lose digits
        share = self.l2 / self.total * self.between @ slopes
        return 0.5 * float(np.vdot(share, slopes)), share @ M.T if matrix else share * M

    def penalty_matrix(self) -> Array:
        """l2 M Mᵀ / m, the Hessian of the penalty of one class, but for ``between``."""
        return self.l2 / self.total * (self.ridge @ self.ridge.T if self.ridge.ndim == 2 else np.diag(self.ridge))

    def _posteriors(self, V: Array) -> Iterator[tuple[slice, FeatureBlock, Array]]:
        for rows, block in self.features.blocks():
            yield rows, block, posteriors(products(V, block), self.y[rows], self.r)[0]

    def diagonal(self, B: Array) -> Array:
        """The diagonal of the Hessian of f at B, shape (r, p)."""
        h = np.zeros_like(B)
        for rows, block, P in self._posteriors(B):
            h += moments(P * (1 - P) * self._counting(rows), squared(block))
        squares = np.einsum("jk,jk->j", self.ridge, self.ridge) if self.ridge.ndim == 2 else self.ridge
        return (h + self.l2 * np.outer(self.between.diagonal(), squares)) / self.total

    def hessian(self, V: Array) -> Callable[[Array], Array]:
        """The products of the Hessian of f at V with arrays of its shape, a pass each."""
        P_of_blocks = [P for _, _, P in self._posteriors(V)]

        def product(D: Array) -> Array:
            out = np.zeros_like(D)
            for P, (rows, block) in zip(P_of_blocks, self.features.blocks()):
                T = products(D, block)
                T -= np.einsum("yi,yi->i", P, T)
                T *= P
                if self.weight is not None:
                    T *= self.weight[rows]
                out += moments(T, block)
            return out / self.total + self.penalty(D)[1]

        return product

    def second_moments(self) -> tuple[Array, Array]:
        """Σ_i w_i φ(x_i) φ(x_i)ᵀ / m, and Σ_i w_i Y_iy φ(x_i) / m for each class y."""
        p = self.features.width
        G, sums = np.zeros((p, p)), np.zeros((self.r, p))
        for rows, block in self.features.gram_blocks():
            weight = self._counting(rows)
            G += gram(block, weight)
            sums += moments(np.where(self.y[rows] == np.arange(self.r)[:, None], weight, 0.0), block)
        return G / self.total, sums / self.total

    def on(self, index: NDArray[np.intp], weight: Array) -> "LogisticObjective":
        """The objective on some rows, that count by ``weight``, made to add up to the weight of all."""
        weight = weight * (self.total / weight.sum())
        rows = self.features.take(index), self.y[index]
        return LogisticObjective(*rows, self.r, weight, self.l2, self.free, self.ridge)

    def information(self, V: Array, blur: float = 0.0, negligible: float = 0.0) -> Array:
        """The Hessian of the mean log-loss at V: `conditional_information` of all classes but the first, or of each.

        Posteriors are mixed with ``blur`` of equal ones, so that it does not vanish where they are sure.
        """
        B, k = self.scored(V), self.r - 1 if self.full else self.free

        def weighted() -> Iterator[tuple[Array | JointCodes, Array, Array]]:
            for rows, block in self.features.gram_blocks():
                P, _ = posteriors(products(B, block), self.y[rows], self.r)
                yield block, (1 - blur) * P[-k:] + blur / self.r, self._counting(rows) / self.total

        return conditional_information(weighted(), k, self.features.width, self.full, negligible)

    def curvature(
        self, V: Array, blur: float = 0.0, pseudo: Array | None = None, negligible: float = 0.0
    ) -> "Curvature":
        """The Hessian of f at V, with all classes, or its diagonal blocks, one for each row of V.

        ``pseudo`` are the squares of each feature, per row, in rows that stand for those with a feature that is rare in
        a sample; `information` has the rest.
        """
        H = self.information(V, blur, negligible)
        diagonal = np.einsum("ajaj->aj" if self.full else "ajj->aj", H)  # a view
        if pseudo is not None:
            diagonal += np.outer(diagonal[:, 0], pseudo)  # φ_0 = 1
        if self.l2:
            penalty = self.penalty_matrix()
            H += np.einsum("ab,jl->ajbl", self.between, penalty) if self.full else self.between[0, 0] * penalty
        blocks = [H.reshape(self.size, -1)] if self.full else H
        return Curvature([jittered_cholesky(block, JITTER[1:]) for block in blocks])


class Curvature(NamedTuple):
    """H = LLᵀ, which may be singular but for rounding, by the factors of its diagonal blocks, which are of one size;
    for the next step alone if it serves once."""

    factors: Sequence[Factored]
    serves_once: bool = False

    def _blocks(self, g: Array) -> zip:
        return zip(self.factors, g.reshape(len(self.factors), -1))

    def solve(self, g: Array) -> Array:
        """H⁻¹g."""
        return np.concatenate([factor.solve(part) for factor, part in self._blocks(g)])

    def length(self, g: Array) -> float:
        """√(gᵀH⁻¹g), the length of a Newton step in the metric of H; half its square is what that step gains."""
        return float(np.linalg.norm([np.linalg.norm(factor.whiten(part)) for factor, part in self._blocks(g)]))


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
    """Posteriors of class 1, shape (1, n), from its scores where those of class 0 are zero: one exponential a row."""
    small = np.exp(-np.abs(s))
    total = 1 + small
    small /= total
    large = 1 / total
    behind = np.minimum(np.where(y, s, -s), 0.0)
    own = OfLabels(np.flatnonzero(y), behind, np.log(total) - behind, np.where(behind < 0, large, small))
    return np.where(s > 0, large, small)[None], own


def row_sums(P: Array, own: OfLabels, y: NDArray[np.intp], r: int, weight: Array | None) -> tuple[Array, bool]:
    """Sums of soft errors, errors and −log p(y | x), and whether each row that counts has its own class ahead, alone.

    Ties go to the first class; a class of a posterior above one half has none.
    """
    soft, right = own.soft, own.behind == 0
    alone, doubtful = right.copy(), np.flatnonzero(right & (soft >= 0.5))
    if doubtful.size:
        among = P[:, doubtful]
        if len(P) < r:
            among = np.vstack([1 - among.sum(axis=0), among])
        highest = among >= (1 - TIED) * among.max(axis=0)
        alone[doubtful] = highest.sum(axis=0) == 1
        right[doubtful] = highest.argmax(axis=0) == y[doubtful]
    if weight is None:
        return np.array([soft.sum(), len(y) - right.sum(), own.loss.sum()]), bool(alone.all())
    counted = weight > 0
    weight = weight[counted]
    return np.array([weight @ part[counted] for part in (soft, ~right, own.loss)]), bool(alone[counted].all())
