"""The conditional log-likelihood as a function of coefficients B: multinomial logistic regression on features φ(x)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import issparse

from rcpkg.base import Array
from rcpkg.calibration.features import Features, Sample, moments, products, with_constant
from rcpkg.calibration.rules import Losses

EPS = np.finfo(float).eps
JITTER = 1e-13  # added to a curvature with ones on its diagonal, so that it has a Cholesky factor
RIDGE = 1e-4  # likewise, where the curvature is that of a sample, which may lack what other rows have


class Evaluation(NamedTuple):
    """Mean −log p(y | x) with the penalty, its gradient in V, the losses, and whether each row is classified right."""

    value: float
    gradient: Array
    losses: Losses
    separated: bool


class LogisticObjective:
    """f(V) = −Σ_i w_i log p(y_i | x_i) / m + l2 ‖B‖² / 2m, the slopes alone counting in the norm.

    V has a row for each class, of B, or for each class but the first, B_y − B_0: ``free`` of them. With two classes
    the penalty is that of B_1 − B_0, as in scikit-learn; with more it is that of the B whose rows add up to zero.
    """

    def __init__(
        self,
        features: Features | Sample,
        y: NDArray[np.intp],
        r: int,
        weight: Array | None = None,
        l2: float = 0.0,
        free: int | None = None,
    ) -> None:
        self.features, self.y, self.r, self.weight, self.l2 = features, y, r, weight, l2
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
        for rows, block in self.features.blocks():
            y, weight = self.y[rows], None if self.weight is None else self.weight[rows]
            W, found, right = posteriors_and_losses(products(V, block), y, self.r)
            columns = np.flatnonzero(y >= self.r - self.free)
            W[y[columns] - (self.r - self.free), columns] -= 1
            if weight is not None:
                W *= weight
                found, right = found[:, weight > 0] * weight[weight > 0], right[weight > 0]
            sums += found.sum(axis=1)
            separated = separated and bool(right.all())
            gradient += moments(W, block)
        gradient /= self.total
        losses = Losses(*(sums / self.total).tolist())
        penalty, slope = self._penalty(V)
        return Evaluation(losses.log_loss + penalty, gradient + slope, losses, separated)

    def _penalty(self, V: Array) -> tuple[float, Array]:
        if not self.l2:
            return 0.0, np.zeros_like(V)
        slope = V.copy()
        slope[:, 0] = 0.0
        if self.free < self.r > 2:
            slope -= slope.sum(axis=0) / self.r
        slope *= self.l2 / self.total
        return 0.5 * float(np.sum(slope * V)), slope

    def diagonal(self, B: Array) -> Array:
        """The diagonal of the Hessian of f at B, shape (r, p)."""
        h = np.zeros_like(B)
        for rows, block in self.features.blocks():
            P, _, _ = posteriors_and_losses(products(B, block), self.y[rows], self.r)
            W = P * (1 - P) if self.weight is None else P * (1 - P) * self.weight[rows]
            h += moments(W, block.multiply(block) if issparse(block) else block * block)
        h[:, 1:] += self.l2
        return h / self.total

    def second_moments(self) -> Array:
        """Σ_i w_i φ(x_i) φ(x_i)ᵀ / m."""
        G = np.zeros((self.features.width, self.features.width))
        for rows, block in self.features.blocks():
            weight = np.ones(len(self.y[rows])) if self.weight is None else self.weight[rows]
            G += gram(with_constant(block), weight)
        return G / self.total

    def on(self, index: NDArray[np.intp], weight: Array) -> "LogisticObjective":
        """The objective on some rows, that count by ``weight``, which adds up to the weight of all."""
        return LogisticObjective(Sample(self.features, index), self.y[index], self.r, weight, self.l2, self.free)

    def curvature(
        self, V: Array, index: NDArray[np.intp], weight: Array, ridge: float, full: bool, blur: float
    ) -> "Curvature":
        """The Hessian of f at V, from the rows of ``index``, that count by ``weight``; ``full``, or its diagonal
        blocks, one for each row of V. Posteriors are mixed with ``blur`` of equal ones."""
        block = self.features.dense(index)
        P, _, _ = posteriors_and_losses(products(V, block), self.y[index], self.r)
        P = (1 - blur) * P + blur / self.r
        weight = weight / weight.sum()
        k, p = V.shape
        penalty = np.full(p, self.l2 / self.total)
        penalty[0] = 0.0
        if not full:
            blocks = [gram(block, P[a] * (1 - P[a]) * weight) + np.diag(penalty) for a in range(k)]
            return Curvature([factor(H, ridge) for H in blocks], p)
        H = np.empty((k, p, k, p))
        for a in range(k):
            H[a, :, a, :] = gram(block, P[a] * (1 - P[a]) * weight)
            for b in range(a):
                H[a, :, b, :] = H[b, :, a, :] = -gram(block, P[a] * P[b] * weight)
        diagonal = np.arange(p)
        share = np.eye(k) if self.r == 2 else np.eye(k) - 1 / self.r
        H[:, diagonal, :, diagonal] += penalty[:, None, None] * share
        return Curvature([factor(H.reshape(k * p, k * p), ridge)], k * p)


class Curvature:
    """H = RRᵀ by Cholesky factors R of its diagonal blocks."""

    def __init__(self, factors: list[Array], size: int) -> None:
        self.factors, self.size = factors, size

    def _parts(self, g: Array) -> zip:
        return zip(self.factors, g.reshape(len(self.factors), self.size))

    def solve(self, g: Array) -> Array:
        """H⁻¹g."""
        return np.concatenate([cho_solve((R, True), part, check_finite=False) for R, part in self._parts(g)])

    def length(self, g: Array) -> float:
        """√(gᵀH⁻¹g), the length of a Newton step in the metric of H; half its square is what that step gains."""
        parts = [solve_triangular(R, part, lower=True, check_finite=False) for R, part in self._parts(g)]
        return float(np.sqrt(sum(part @ part for part in parts)))


def gram(block: Array, weight: Array) -> Array:
    """Σ_i w_i φ(x_i) φ(x_i)ᵀ, w ≥ 0."""
    root = block * np.sqrt(weight)
    return root @ root.T


def factor(H: Array, ridge: float) -> Array:
    """Lower Cholesky factor of H plus ``ridge`` times its diagonal; a diagonal of zero counts as the largest."""
    diagonal = H.diagonal().copy()
    diagonal[diagonal <= EPS * diagonal.max(initial=0.0)] = diagonal.max(initial=0.0) or 1.0
    scale = np.sqrt(diagonal)
    H = H / scale / scale[:, None]
    index = np.arange(len(H))
    while True:
        H[index, index] = 1 + ridge
        try:
            return np.tril(cho_factor(H, lower=True, check_finite=False)[0]) * scale[:, None]
        except np.linalg.LinAlgError:
            ridge *= 100


def posteriors_and_losses(S: Array, y: NDArray[np.intp], r: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Posteriors, shape of the scores S (r, n), or (r − 1, n) where that of class 0 is zero; soft error, error and
    −log p(y | x) of each row, shape (3, n); and whether its own class has the largest score, alone."""
    free = len(S)
    columns = np.arange(len(y))
    top = S.max(axis=0) if free == r else np.maximum(S.max(axis=0), 0.0)
    own = S[y, columns] if free == r else np.where(y > 0, S[np.maximum(y - 1, 0), columns], 0.0)
    ties = (top == S).sum(axis=0) + (0 if free == r else top == 0)
    first = own == top
    right = first & (ties == 1)
    tied = np.flatnonzero(first & (ties > 1))
    if tied.size:  # they go to the first class
        among = S[:, tied] if free == r else np.vstack([np.zeros(len(tied)), S[:, tied]])
        first[tied] = among.argmax(axis=0) == y[tied]
    P = np.exp(S - top)
    total = P.sum(axis=0) if free == r else P.sum(axis=0) + np.exp(-top)
    P /= total
    loss = np.log(total) + top - own
    return P, np.stack([-np.expm1(-loss), ~first, loss]), right
