"""Exact leave-one-out of a grid of predictive densities."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dsytrd

from rcpkg.gaussians.grid import (
    BDA7_SEEDS,
    SPHERICAL_BASES,
    Models,
    Seed,
    cholesky_forms,
    eigen_forms,
    fill,
    grid_log_predictive,
    models_by_base,
    shifted_forms,
)
from rcpkg.gaussians.scatter import Sample
from rcpkg.linalg import IN_CACHE, RESOLVED, Array


def tridiagonal_forms(
    scatter: Array, drop: Array | None, diagonal: Array, V: Array, multiples: Array
) -> tuple[Array, Array]:
    r"""log|A_i| and v_i' A_i^-1 v_i, both (n, m), for :math:`A_i=S-w_iw_i^T+c\operatorname{diag}(\lambda_i)`: exact.

    Here V, ``drop`` and ``diagonal`` hold v, w and λ, (n, d), and ``multiples`` c, (m,). A Householder reduction of
    :math:`R=\Lambda^{-1/2}(S-ww^T)\Lambda^{-1/2}` bordered by :math:`u=\Lambda^{-1/2}v` leaves a tridiagonal T whose
    first basis vector is u/|u|, so that the pivots :math:`\delta_j=t_j+c-e_j^2/\delta_{j+1}` from the bottom up give
    :math:`\log|R+cI|=\sum\log\delta_j` and :math:`u^T(R+cI)^{-1}u=|u|^2/\delta_1`: O(d) a multiple."""
    n, d = V.shape
    log_det, quadratic = np.empty((n, len(multiples))), np.empty((n, len(multiples)))
    step = max(1, int(IN_CACHE / (d + 1) ** 2))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        inverse_root = 1 / np.sqrt(diagonal[rows])
        size = len(inverse_root)
        A = np.zeros((size, d + 1, d + 1))
        A[:, 1:, 1:] = scatter * inverse_root[:, :, None] * inverse_root[:, None, :]
        if drop is not None:
            w = drop[rows] * inverse_root
            A[:, 1:, 1:] -= w[:, :, None] * w[:, None, :]
        A[:, 0, 1:] = V[rows] * inverse_root
        A[:, 1:, 0] = A[:, 0, 1:]
        main, off = np.empty((size, d + 1)), np.empty((size, d))
        for i in range(size):
            _, main[i], off[i], _, _ = dsytrd(A[i].T, lower=1, lwork=d + 1, overwrite_a=1)
        off **= 2
        pivot = main[:, d, None] + multiples
        total = np.log(pivot)
        for j in range(d - 1, 0, -1):
            pivot = main[:, j, None] + multiples - off[:, j, None] / pivot
            total += np.log(pivot)
        log_det[rows] = total + np.log(diagonal[rows]).sum(axis=1)[:, None]
        quadratic[rows] = off[:, 0, None] / pivot
    return log_det, quadratic


class _Case(NamedTuple):
    """Rows left out that belong to class h (``own_class``), or to the others: their places among those left out, their
    deviations V from the mean of the class, how many rows it keeps, a, and how many times as many it had."""

    h: int
    own_class: bool
    places: Array
    V: Array
    count: float
    a: Array
    kappa: float


class LeaveOneOut:
    """A grid of predictive densities under which each of some ``rows`` is left out in turn.

    What leaving a row out makes of a class is taken from the statistics of all rows, by the results of the chapter on
    Bayesian QDA, whose table of times is the bar. Refits, which the tests compare, take over for the (row, class) in
    ``refit``: the class of a row that dominates it, every class where the row dominates the pooled scatter, and all
    with weights.
    """

    def __init__(self, sample: Sample, rows: Array, dofs: Sequence[float], seeds: Sequence[Seed]):
        self.sample, self.rows = sample, rows
        self.dofs, self.seeds = np.asarray(dofs, dtype=float), seeds
        self.models = models_by_base(self.dofs, seeds)
        self.X, self.y, self.z = sample.X[rows], sample.y[rows], sample.deviations[rows]
        self.removed = sample.kappa[rows, None] * self.z**2  # what the class's sums of squares lose with the row
        self.dominates = sample.dominating()[rows]
        # of two rows the other one has no scatter
        several = self.dominates & (sample.statistics.counts[self.y] > 2)
        self.refit = several[:, None] & (self.y[:, None] == np.arange(sample.n_classes))
        self.refit |= sample.dominating(pooled=True)[rows, None] | (sample.weights is not None)

    def blank(self, n_models: int) -> Array:
        """Room for the log densities of models, shape (len(dofs), n_models, rows, r): no density yet."""
        return np.full((len(self.dofs), n_models, len(self.rows), self.sample.n_classes), -np.inf)

    def log_density(self) -> Array:
        """Exact log densities, shape (len(dofs), len(seeds), rows, r)."""
        out, refit = self.blank(len(self.seeds)), self.refit.copy()
        for base, models in self.models.items():
            if base in SPHERICAL_BASES:
                refit |= self.spherical(out, base, models)
            else:
                self.diagonal(out, base, models)
        for i in np.flatnonzero(refit.any(axis=1)):
            statistics, classes = self.sample.without(self.rows[i]), np.flatnonzero(refit[i])
            fresh = grid_log_predictive(self.X[i : i + 1], statistics, self.dofs, self.seeds, classes)
            out[:, :, i, classes] = fresh[:, :, 0, classes]
        return out

    def _cases(self) -> Iterator[_Case]:
        """The rows that need no refit, by class, and by whether they are its own."""
        counts, means, _ = self.sample.statistics
        for h in np.flatnonzero(counts):
            usable = np.flatnonzero(~self.refit[:, h])
            for own_class in (False, True):
                places, count = usable[(self.y[usable] == h) == own_class], counts[h] - own_class
                if len(places) and count:
                    a = count + self.dofs
                    yield _Case(h, own_class, places, self.X[places] - means[h], count, a, counts[h] / count)

    def _multiplier(self, base: str, h: int) -> Array:
        """The sigma of B = c * sigma * I for class h without each row, shape (rows,)."""
        counts, _, scatters = self.sample.statistics
        n, d = self.sample.X.shape
        traces, removed = np.trace(scatters, axis1=1, axis2=2), self.removed.sum(axis=1)
        if base == "trace_pooled":
            return (traces.sum() - removed) / (d * (n - 1))
        if base == "trace_class":
            without_row = (traces[h] - removed) / (d * (counts[h] - 1)) if counts[h] > 2 else 0.0
            return np.where(self.y == h, without_row, traces[h] / (d * counts[h]))
        return np.ones(len(self.rows))

    def spherical(self, out: Array, base: str, models: Models) -> Array:
        """Write exact log densities for B = c * sigma * I, from one eigendecomposition a class and case; returns the
        (row, class) to be refitted."""
        d, refit = self.X.shape[1], np.zeros_like(self.refit)
        for case in self._cases():
            sigma = self._multiplier(base, case.h)[case.places]
            places, V = case.places[sigma > 0], case.V[sigma > 0]
            shift = sigma[sigma > 0, None] * models.multiples
            scatter, ratio = self.sample.statistics.scatters[case.h], 1.0
            if case.own_class and case.count == 1:
                log_det, quadratic = d * np.log(shift), 4 * (V**2).sum(axis=1)[:, None] / shift
            elif base == "identity":
                log_det, quadratic, ratio = cholesky_forms(scatter, V, models.multiples)
            else:
                values, axes = np.linalg.eigh(scatter)
                log_det, quadratic = shifted_forms(values, V @ axes, shift)
            if case.own_class and case.count > 1:
                downdate = 1 - case.kappa * quadratic
                unsafe = (ratio * downdate < RESOLVED).any(axis=1)
                refit[places[unsafe], case.h] = True
                downdate[unsafe] = 1.0
                log_det, quadratic = log_det + np.log(downdate), case.kappa**2 * quadratic / downdate
            fill(out, models, places, case.h, case.count, case.a, d, log_det, quadratic)
        return refit

    def _diagonal_cases(self, base: str) -> Iterator[tuple[_Case, Array, int]]:
        """The cases in which a diagonal base has a density; and what it is before a row is taken from it, the sums of
        squares and their divisor."""
        spread = np.einsum("hjj->hj", self.sample.statistics.scatters)
        pooled = spread.sum(axis=0)
        for case in self._cases():
            reference = pooled if base == "diag_pooled" else spread[case.h]
            if (reference > 0).all() and not (base == "diag_class" and case.own_class and case.count == 1):
                yield case, reference, len(self.sample.X) - 1 if base == "diag_pooled" else case.count

    def diagonal(self, out: Array, base: str, models: Models) -> None:
        """Write exact log densities for B = c * diag(lambda): one tridiagonal reduction a row and class (the class's
        own rows only for "diag_class", whose other rows share one eigendecomposition)."""
        d = self.X.shape[1]
        for case, reference, divisor in self._diagonal_cases(base):
            scatter = self.sample.statistics.scatters[case.h]
            diagonal = (reference - self.removed[case.places]) / divisor
            if base == "diag_class" and not case.own_class:
                log_det, quadratic = eigen_forms(scatter, case.V, reference / divisor, models.multiples)
            elif case.own_class and case.count == 1:
                log_det = np.log(diagonal).sum(axis=1)[:, None] + d * np.log(models.multiples)
                quadratic = 4 * (case.V**2 / diagonal).sum(axis=1)[:, None] / models.multiples
            elif case.own_class:
                drop = np.sqrt(case.kappa) * case.V
                log_det, quadratic = tridiagonal_forms(scatter, drop, diagonal, case.kappa * case.V, models.multiples)
            else:
                log_det, quadratic = tridiagonal_forms(scatter, None, diagonal, case.V, models.multiples)
            fill(out, models, case.places, case.h, case.count, case.a, d, log_det, quadratic)


def grid_log_predictive_loo(
    sample: Sample,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    rows: Array | None = None,
) -> Array:
    r"""Log predictive densities of each row under every class and (q, seed), all fitted without that row: exact.

    Data-dependent seeds are recomputed without the row too. With r classes and m distinct multiples of a base, trace
    and identity seeds cost O(n r d (d + m)) after one eigendecomposition a class, diagonal seeds one tridiagonal
    reduction, :math:`\frac43d^3`, a row and class. A class that a row dominates is refitted without it; in a sample
    with weights all are.

    Parameters
    ----------
    sample : Sample
        n rows of r classes.
    dofs, seeds
        The grid, as in `grid_log_predictive`.
    rows : array of int, optional
        Those to be left out, each in turn; all by default.

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist, such as for the class that the left-out row was the last of.

    Examples
    --------
    >>> sample = Sample(np.array([[0.0], [2.0], [4.0], [5.0], [9.0]]), np.array([0, 0, 0, 1, 1]), 2)
    >>> grid_log_predictive_loo(sample, dofs=[3], seeds=[Seed("identity")])[0, 0].argmax(axis=1)  # row 2 errs
    array([0, 0, 1, 0, 1])
    """
    rows = np.arange(len(sample.X)) if rows is None else rows
    return LeaveOneOut(sample, rows, dofs, seeds).log_density()
