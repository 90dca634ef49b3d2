"""Stochastic gradient ascent of weighted naive Bayes, row by row: of a stream, with probabilities that grow with it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array

DECAY = 1e-2  # λ of the source's schedule η₀/(1 + λt)


@dataclass
class Counts:
    """Counts (1 + K, r) behind naive Bayes, that grow row by row; the first feature is the class itself.

    ``totals`` (1 + d, r) are those of each feature, ``feature`` (1 + K,) is that of each state, and each distribution
    has ``strength`` pseudo-rows, ``pseudo`` (1 + K,) a state.
    """

    cells: Array
    totals: Array
    feature: NDArray[np.intp]
    strength: float
    pseudo: Array

    @classmethod
    def none(cls, n_states: NDArray[np.intp], n_classes: int, strength: float) -> "Counts":
        """No rows yet, of features with so many states."""
        return cls.of(np.zeros((1 + n_states.sum(), n_classes)), n_states, strength)

    @classmethod
    def of(cls, cells: Array, n_states: NDArray[np.intp], strength: float) -> "Counts":
        """Given counts, of features with so many states."""
        sizes, r = np.concatenate([[1], n_states]), cells.shape[1]
        pseudo = strength / np.concatenate([[r], np.repeat(n_states, n_states)])
        totals = np.add.reduceat(cells, np.cumsum(sizes) - sizes, axis=0)
        totals[0] = cells[0].sum()
        return cls(cells, totals, np.repeat(np.arange(len(sizes)), sizes), strength, pseudo)

    def log_probabilities(self, columns: NDArray[np.intp]) -> Array:
        """log π or log θ of some states, shape (states, r): MAP with symmetric Dirichlet priors (wanbia2014 §II)."""
        total = self.totals[self.feature[columns]] + self.strength
        return np.log((self.cells[columns] + self.pseudo[columns][:, None]) / total)

    def add(self, columns: NDArray[np.intp], y: int, weight: float = 1.0) -> None:
        """Count one row, the first of whose columns is the class itself, so many times."""
        self.cells[columns, y] += weight
        self.totals[self.feature[columns[1:]], y] += weight
        self.totals[0] += weight


class Steps(NamedTuple):
    """Stochastic steps η_t = η₀/(1 + λt), with ``rate`` η₀ and ``decay`` λ; ``penalty`` is C/n, ``center`` c."""

    rate: float
    decay: float = DECAY
    penalty: float = 0.0
    center: float = 1.0


def stochastic_pass(
    columns: NDArray[np.intp],
    y: NDArray[np.intp],
    weights: Array,
    scale: Array | Counts,
    steps: Steps,
    *,
    done: int = 0,
    sample_weight: Array | None = None,
) -> Array:
    """One pass of stochastic gradient ascent; returns the posteriors P (n, r) of each row before it was learnt from.

    w ← w + η_t [scale ∘ x(Y_t − P_t) − 2C(w − c)/n], with η_t = η₀/(1 + λt) after ``done`` rows (wanbia2014 §V).

    Parameters
    ----------
    columns : array of shape (n, 1 + d)
        The indicators that are one: 0, and then a state of each feature, −1 where it is missing.
    y : array of shape (n,)
        Class numbers.
    weights : array of shape (1 + K, r)
        Changed in place.
    scale : array of shape (1 + K, r) or Counts
        Log probabilities, or ones; or counts of the rows before, which take in each row after it.
    steps, done : Steps, int
        η₀, λ, C/n and c; and how many rows were learnt from before.
    sample_weight : array of shape (n,), optional
        A row counts so many times, and its slope likewise.
    """
    P, complete = np.empty((len(y), weights.shape[1])), columns.min(initial=0) >= 0
    for i, at in enumerate(columns):
        here = at if complete else at[at >= 0]
        log_prob = scale.log_probabilities(here) if isinstance(scale, Counts) else scale[here]
        score = np.einsum("jy,jy->y", weights[here], log_prob)
        P[i] = np.exp(score - score.max())
        P[i] /= P[i].sum()
        slope = -P[i]
        slope[y[i]] += 1
        step, weight = steps.rate / (1 + steps.decay * (done + i)), 1.0 if sample_weight is None else sample_weight[i]
        if steps.penalty:
            weights -= 2 * step * steps.penalty * (weights - steps.center)
        weights[here] += step * weight * slope * log_prob
        if isinstance(scale, Counts):
            scale.add(here, y[i], weight)
    return P
