"""Weighted naive Bayes of a stream, by stochastic gradients a row at a time (wanbia2014 §V, chapter 8).

One section of chapter 8 and one figure of the source need it. For data of one's own, `rcpkg.RiskCalibration` learns
from a stream by ``partial_fit``.
"""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rcpkg import WANBIAC, CategoricalNB
from rcpkg.base import Array, constructed
from rcpkg.checks import check_number

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
        return cls.from_cells(np.zeros((1 + n_states.sum(), n_classes)), n_states, strength)

    @classmethod
    def from_cells(cls, cells: Array, n_states: NDArray[np.intp], strength: float) -> "Counts":
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


def columns_of(codes: Array, n_states: NDArray[np.intp]) -> NDArray[np.intp]:
    """Columns of the indicators that are one, the leading one first; −1 where a value is missing."""
    known = ~np.isnan(codes)
    places = np.where(known, codes, 0).astype(np.intp) + np.cumsum(n_states) - n_states + 1
    return np.column_stack([np.zeros(len(codes), np.intp), np.where(known, places, -1)])


@constructed
class StreamedWANBIAC(WANBIAC):
    """`rcpkg.WANBIAC` in one pass over a stream: probabilities and weights are learnt together by ``partial_fit``.

    Parameters
    ----------
    learning_rate : float, default=0.1
        η₀ > 0 of the steps η₀/(1 + λt).
    decay : float, default=0.01
        λ ≥ 0; the source has 0.01.
    penalty, center, prior_strength, max_iter, tol
        As in `rcpkg.WANBIAC`; the last two matter for ``fit`` only.
    """

    learning_rate: float = 0.1
    decay: float = DECAY

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn probabilities and weights from further rows, one at a time and in their order.

        Each row is learnt from with the probabilities of the rows before it, so that a stream is read once; the states
        of a feature are those of all calls up to this one, and a penalty counts for the rows of a call. The first call
        names all ``classes``. Rows that are refused, here or by a ``ValueError`` of steps that leave the range of
        numbers, leave the model as it was.
        """
        self._check_parameters()
        check_number("learning_rate", self.learning_rate, 0, above=True)
        check_number("decay", self.decay, 0)
        begun = hasattr(self, "weights_")
        before = self.naive_bayes_ if begun else None
        nb = copy(before) if begun else CategoricalNB(prior_strength=self.prior_strength)
        nb.partial_fit(X, y, classes)
        codes, labels = nb._check_X(X), np.searchsorted(nb.classes_, np.asarray(y))
        cells, W = (np.full((1 + nb.n_states_.sum(), len(nb.classes_)), fill) for fill in (0.0, float(self.center)))
        if begun:
            known = np.concatenate([np.isin(*states) for states in zip(nb.categories_, before.categories_)])
            for table, old in (cells, before.statistics_), (W, self.weights_):
                table[0], table[1:][known] = old.count, old.cells.T
        counts, seen = Counts.from_cells(cells, nb.n_states_, self.prior_strength), self._seen if begun else 0
        steps = Steps(self.learning_rate, self.decay, self.penalty / len(labels), self.center)
        stochastic_pass(columns_of(codes, nb.n_states_), labels, W, counts, steps, done=seen)
        if not np.isfinite(W).all():
            raise ValueError(
                f"the stochastic steps diverge with learning_rate={self.learning_rate!r} and penalty={self.penalty!r}: "
                "lower learning_rate, or the penalty"
            )
        self._seen = seen + len(labels)
        return self._adopt(nb, W.T, 1, False, None)
