"""The conditional log-likelihood as a function of coefficients B: multinomial logistic regression on features φ(x)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.features import Features, Sample, dense_blocks, moments, products, squared
from rcpkg.calibration.rules import Losses
from rcpkg.linalg import JITTER, Factor, jittered_cholesky

EPS = np.finfo(float).eps
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
    ``ridge`` is M; by default BM are the slopes.
    """

    def __init__(
        self,
        features: Features | Sample,
        y: NDArray[np.intp],
        r: int,
        weight: Array | None = None,
        l2: float = 0.0,
        free: int | None = None,
        ridge: Array | None = None,
    ) -> None:
        self.features, self.y, self.r, self.weight, self.l2 = features, y, r, weight, l2
        self.ridge = ridge
        self.of_own = 1.0 if r == 2 else 1 - 1 / r  # part of the penalty's curvature that moving one class meets
        self.free = r - 1 if free is None else free
        self.total = float(len(y) if weight is None else weight.sum())

    def of(self, B: Array) -> Array:
        """V of B."""
        return B[1:] - B[0] if self.free < self.r else B

    def coefficients(self, V: Array) -> Array:
        """B of V, with rows that add up to zero."""
        B = np.vstack([np.zeros(V.shape[1]), V]) if self.free < self.r else V
        return B - B.mean(axis=0)

    def __call__(self, V: Array) -> Evaluation:
        """One pass over the rows."""
        gradient, sums, separated = np.zeros_like(V), np.zeros(3), True
        lacking = self.r - self.free
        for rows, block in self.features.blocks():
            y, weight = self.y[rows], None if self.weight is None else self.weight[rows]
            W, own = posteriors(products(V, block), y, self.r)
            of_block, right = row_sums(W, own, y, self.r, weight)
            sums += of_block
            separated = separated and right
            W[y[own.columns] - lacking, own.columns] -= 1
            if weight is not None:
                W *= weight
            gradient += moments(W, block)
        gradient /= self.total
        losses = Losses(*(sums / self.total).tolist())
        penalty, slope = self.penalty(V)
        return Evaluation(losses.log_loss + penalty, gradient + slope, losses, separated and not self.l2)

    def penalty(self, V: Array) -> tuple[float, Array]:
        """The penalty of V, and its gradient."""
        if not self.l2:
            return 0.0, np.zeros_like(V)
        if self.free == self.r:
            V = V - V.mean(axis=0)  # what the classes have in common costs nothing, and may be large
        slopes = V[:, 1:] if self.ridge is None else V @ self.ridge  # VMMᵀ at once would lose digits
        share = slopes * (self.l2 / self.total * (2 if self.free == self.r == 2 else 1))
        if self.r > 2 and self.free < self.r:
            share -= share.sum(axis=0) / self.r
        value = 0.5 * float(np.vdot(share, slopes))
        if self.ridge is None:
            return value, np.hstack([np.zeros((len(V), 1)), share])
        return value, share @ self.ridge.T

    def penalty_matrix(self) -> Array:
        """l2 M Mᵀ / m, the Hessian of the penalty of one class."""
        p = self.features.width
        squared = np.diag(np.arange(p) > 0).astype(float) if self.ridge is None else self.ridge @ self.ridge.T
        return self.l2 / self.total * squared

    def diagonal(self, B: Array) -> Array:
        """The diagonal of the Hessian of f at B, shape (r, p)."""
        h = np.zeros_like(B)
        for rows, block in self.features.blocks():
            P, _ = posteriors(products(B, block), self.y[rows], self.r)
            W = P * (1 - P) if self.weight is None else P * (1 - P) * self.weight[rows]
            h += moments(W, squared(block))
        of_penalty = np.arange(len(h[0])) > 0 if self.ridge is None else np.einsum("jk,jk->j", self.ridge, self.ridge)
        return (h + self.of_own * self.l2 * of_penalty) / self.total

    def squares(self) -> Array:
        """Σ_i w_i φ(x_i)² / m, shape (p,)."""
        total = np.zeros((1, self.features.width))
        for rows, block in self.features.blocks():
            weight = np.ones(rows.stop - rows.start) if self.weight is None else self.weight[rows]
            total += moments(weight[None], squared(block))
        return total[0] / self.total

    def hessian(self, V: Array) -> Callable[[Array], Array]:
        """The products of the Hessian of f at V with arrays of its shape, a pass each."""
        P_of_blocks = [
            posteriors(products(V, block), self.y[rows], self.r)[0] for rows, block in self.features.blocks()
        ]

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
        for rows, block in dense_blocks(self.features):
            weight = np.ones(block.shape[1]) if self.weight is None else self.weight[rows]
            G += block @ block.T if self.weight is None else gram(block, weight)
            sums += np.where(self.y[rows] == np.arange(self.r)[:, None], weight, 0.0) @ block.T
        return G / self.total, sums / self.total

    def on(self, index: NDArray[np.intp], weight: Array) -> "LogisticObjective":
        """The objective on some rows, that count by ``weight``, made to add up to the weight of all."""
        weight = weight * (self.total / weight.sum())
        rows = Sample(self.features, index), self.y[index]
        return LogisticObjective(*rows, self.r, weight, self.l2, self.free, self.ridge)

    def curvature(
        self, V: Array, full: bool, blur: float = 0.0, pseudo: Array | None = None, negligible: float = 0.0
    ) -> "Curvature":
        """The Hessian of f at V; ``full``, or its diagonal blocks, one for each row of V.

        Posteriors are mixed with ``blur`` of equal ones, so that it does not vanish where they are sure. ``pseudo``
        are the squares of each feature, per row, in rows that stand for those with a feature that is rare in a sample.
        Outside the diagonal blocks a row that weighs less than ``negligible`` times the mean, since it hardly doubts
        between the two classes, may be left out: its p_a p_b (z_a − z_b)² becomes p_a p_b (z_a² + z_b²), no less than
        half of it.
        """
        k, p = V.shape
        H = np.zeros((k, k, p, p)) if full else np.zeros((k, p, p))
        variance = np.zeros(k)
        for rows, block in dense_blocks(self.features):
            P, _ = posteriors(V @ block, self.y[rows], self.r)
            P = (1 - blur) * P + blur / self.r
            weight = 1 / self.total if self.weight is None else self.weight[rows] / self.total
            space = np.empty_like(block)
            for a in range(k):
                spread = P[a] * (1 - P[a]) * weight
                variance[a] += spread.sum()
                own = gram(block, spread, space)
                if not full:
                    H[a] += own
                    continue
                H[a, a] += own
                for b in range(a):
                    some, doubt = uncertain_rows(block, P[a] * P[b] * weight, negligible)
                    H[a, b] -= gram(some, doubt, space[:, : len(doubt)])
        added = np.zeros((k, p)) if pseudo is None else variance[:, None] * pseudo
        return self._with_penalty(H, added)

    def _with_penalty(self, H: Array, added: Array) -> "Curvature":
        """H, of the lower classes or of each, with the curvature of the penalty and more on its diagonal."""
        k, p = added.shape
        penalty, diagonal = self.penalty_matrix(), np.arange(p)
        if H.ndim == 3:
            H += self.of_own * penalty
            H[:, diagonal, diagonal] += added
            return Curvature([curvature_factor(part) for part in H])
        for a in range(k):
            H[a, a, diagonal, diagonal] += added[a]
            for b in range(a):
                H[b, a] = H[a, b]
        share = np.eye(k) if self.r == 2 else np.eye(k) - 1 / self.r  # of the classes, between them
        H += share[:, :, None, None] * penalty
        return Curvature([curvature_factor(H.transpose(0, 2, 1, 3).reshape(k * p, k * p))])


class Curvature(NamedTuple):
    """H = LLᵀ by the factors of its diagonal blocks, which are of one size."""

    factors: list[Factor]

    def _blocks(self, g: Array) -> zip:
        return zip(self.factors, g.reshape(len(self.factors), -1))

    def solve(self, g: Array) -> Array:
        """H⁻¹g."""
        return np.concatenate([factor.solve(part) for factor, part in self._blocks(g)])

    def length(self, g: Array) -> float:
        """√(gᵀH⁻¹g), the length of a Newton step in the metric of H; half its square is what that step gains."""
        return float(np.linalg.norm([np.linalg.norm(factor.whiten(part)) for factor, part in self._blocks(g)]))


def uncertain_rows(block: Array, weight: Array, negligible: float) -> tuple[Array, Array]:
    """Features and weights of the rows that weigh more than ``negligible`` times the mean, if these are few."""
    rows = np.flatnonzero(weight > negligible * weight.mean())
    return (block, weight) if 2 * len(rows) > len(weight) else (block.take(rows, axis=1), weight[rows])


def gram(block: Array, weight: Array, space: Array | None = None) -> Array:
    """Σ_i w_i φ(x_i) φ(x_i)ᵀ, w ≥ 0, with ``space`` for what is the size of the block."""
    root = np.multiply(block, np.sqrt(weight), out=space)
    return root @ root.T


def curvature_factor(H: Array) -> Factor:
    """The factor of a curvature that may be singular."""
    return jittered_cholesky(H, JITTER[1:])


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
