"""Exact leave-one-out of a grid of predictive densities, and its errors at less cost."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dsytrd

from rcpkg.choice import own_scores, wrong_predictions
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
from rcpkg.gaussians.predictive import posterior_dof
from rcpkg.gaussians.scatter import Sample
from rcpkg.gaussians.shrinkage import SAFE_DOWNDATE
from rcpkg.linalg import Array

BATCH_ENTRIES = 2**19  # of the bordered matrices that are reduced at a time
CERTAIN = 1e-9  # share of a score by which a bound must decide, for rounding


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
    step = max(1, int(BATCH_ENTRIES / (d + 1) ** 2))
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
    """Rows left out that belong to class h (``own``), or to the others: their places among those left out, their
    deviations V from the mean of the class, how many rows it keeps, a, and how many times as many it had."""

    h: int
    own: bool
    places: Array
    V: Array
    count: float
    a: Array
    kappa: float


class LeaveOneOut:
    """A grid of predictive densities under which each of some ``rows`` is left out in turn.

    What leaving a row out makes of a class is taken from the statistics of all rows, but for ``refit``, (rows, r): the
    own class of a row that dominates it, every class where the row dominates the pooled scatter, and all with weights.
    """

    def __init__(self, sample: Sample, rows: Array, dofs: Sequence[float], seeds: Sequence[Seed], measure: str):
        self.sample, self.rows = sample, rows
        self.dofs, self.seeds, self.measure = np.asarray(dofs, dtype=float), seeds, measure
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
            fresh = grid_log_predictive(self.X[i : i + 1], statistics, self.dofs, self.seeds, self.measure, classes)
            out[:, :, i, classes] = fresh[:, :, 0, classes]
        return out

    def _cases(self) -> Iterator[_Case]:
        """The rows that need no refit, by class, and by whether they are its own."""
        counts, means, _ = self.sample.statistics
        for h in np.flatnonzero(counts):
            usable = np.flatnonzero(~self.refit[:, h])
            for own in (False, True):
                places, count = usable[(self.y[usable] == h) == own], counts[h] - own
                if len(places) and count:
                    a = posterior_dof(count, self.X.shape[1], self.dofs, self.measure)
                    yield _Case(h, own, places, self.X[places] - means[h], count, a, counts[h] / count)

    def _multiplier(self, base: str, h: int) -> Array:
        """The sigma of B = c * sigma * I for class h without each row, shape (rows,)."""
        counts, _, scatters = self.sample.statistics
        n, d = self.sample.X.shape
        traces, removed = np.trace(scatters, axis1=1, axis2=2), self.removed.sum(axis=1)
        if base == "trace_pooled":
            return (traces.sum() - removed) / (d * (n - 1))
        if base == "trace_class":
            own = (traces[h] - removed) / (d * (counts[h] - 1)) if counts[h] > 2 else 0.0
            return np.where(self.y == h, own, traces[h] / (d * counts[h]))
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
            if case.own and case.count == 1:
                log_det, quadratic = d * np.log(shift), 4 * (V**2).sum(axis=1)[:, None] / shift
            elif base == "identity":
                log_det, quadratic, ratio = cholesky_forms(scatter, V, models.multiples)
            else:
                values, axes = np.linalg.eigh(scatter)
                log_det, quadratic = shifted_forms(values, V @ axes, shift)
            if case.own and case.count > 1:
                downdate = 1 - case.kappa * quadratic
                unsafe = (ratio * downdate < SAFE_DOWNDATE).any(axis=1)
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
            if (reference > 0).all() and not (base == "diag_class" and case.own and case.count == 1):
                yield case, reference, len(self.sample.X) - 1 if base == "diag_pooled" else case.count

    def diagonal(self, out: Array, base: str, models: Models) -> None:
        """Write exact log densities for B = c * diag(lambda): one tridiagonal reduction a row and class (the class's
        own rows only for "diag_class", whose other rows share one eigendecomposition)."""
        d = self.X.shape[1]
        for case, reference, divisor in self._diagonal_cases(base):
            scatter = self.sample.statistics.scatters[case.h]
            diagonal = (reference - self.removed[case.places]) / divisor
            if base == "diag_class" and not case.own:
                log_det, quadratic = eigen_forms(scatter, case.V, reference / divisor, models.multiples)
            elif case.own and case.count == 1:
                log_det = np.log(diagonal).sum(axis=1)[:, None] + d * np.log(models.multiples)
                quadratic = 4 * (case.V**2 / diagonal).sum(axis=1)[:, None] / models.multiples
            elif case.own:
                drop = np.sqrt(case.kappa) * case.V
                log_det, quadratic = tridiagonal_forms(scatter, drop, diagonal, case.kappa * case.V, models.multiples)
            else:
                log_det, quadratic = tridiagonal_forms(scatter, None, diagonal, case.V, models.multiples)
            fill(out, models, case.places, case.h, case.count, case.a, d, log_det, quadratic)

    def bounds(self, base: str, models: Models) -> tuple[Array, Array]:
        """Lower and upper bounds on the log densities under the models of a diagonal base, shape (len(dofs), models,
        rows, r), but for the classes to be refitted."""
        low, high = self.blank(len(models.columns)), self.blank(len(models.columns))
        for case, reference, divisor in self._diagonal_cases(base):
            scatter, diagonal = self.sample.statistics.scatters[case.h], reference / divisor
            if base == "diag_class" and not case.own:
                ends = (eigen_forms(scatter, case.V, diagonal, models.multiples),) * 2
            else:
                share = self.removed[case.places] / reference
                ends = _expand(scatter, case.V, diagonal, share, models.multiples)
            for bound, (log_det, quadratic) in zip((high, low), ends):
                if case.own:
                    downdate = 1 - case.kappa * quadratic
                    possible = downdate > 0
                    downdate = np.where(possible, downdate, 1.0)
                    log_det = np.where(possible, log_det + np.log(downdate), np.inf)
                    quadratic = case.kappa**2 * quadratic / downdate
                fill(bound, models, case.places, case.h, case.count, case.a, self.X.shape[1], log_det, quadratic)
        return low, high

    def errors(self, log_prior: Array) -> "LooErrors":
        """The errors of `log_density`, by bounds where they are enough; log_prior has the shape (rows, r)."""
        wrong = np.empty((len(self.dofs), len(self.seeds), len(self.rows)), dtype=bool)
        undecided = self.dominates | self.refit.any(axis=1)
        places = np.flatnonzero(~undecided)
        part, prior, y = self._some(places), log_prior[places], self.y[places]
        for base, models in self.models.items() if len(places) else ():
            alone = Models(np.arange(len(models.columns)), models.multiples, models.where)
            if base in SPHERICAL_BASES:
                scores = part.blank(len(models.columns))
                undecided[places] |= part.spherical(scores, base, alone).any(axis=1)
                errors = wrong_predictions(scores + prior, y)
            else:
                low, high = part.bounds(base, alone)
                errors, certain = _decide(low + prior, high + prior, y)
                undecided[places] |= ~certain.all(axis=(0, 1))
            wrong[:, models.columns[:, None], places] = errors
        places = np.flatnonzero(undecided)
        if len(places):
            scores = self._some(places).log_density() + log_prior[places]
            wrong[:, :, places] = wrong_predictions(scores, self.y[places])
        return LooErrors(wrong, float(np.mean(undecided)))

    def _some(self, places: Array) -> "LeaveOneOut":
        return LeaveOneOut(self.sample, self.rows[places], self.dofs, self.seeds, self.measure)


def _expand(scatter: Array, V: Array, diagonal: Array, share: Array, multiples: Array):
    r"""Lower and upper ends of log|A_i| and v_i' A_i^-1 v_i for
    :math:`A_i=S+c\,\Lambda(I-\operatorname{diag}(s_i))`, shares :math:`0\le s_i<1` (n, d), by the expansion
    of `grid_loo_errors`: ((log_det, quadratic), (log_det, quadratic))."""
    root = np.sqrt(diagonal)
    values, axes = np.linalg.eigh(scatter / np.outer(root, root))
    U, rho = V / root, share.max(axis=1)
    tail = rho / (1 - rho)
    lower, upper = (np.empty((2, len(V), len(multiples))) for _ in range(2))
    for j, c in enumerate(multiples):
        eigenvalues = np.maximum(values, 0.0) + c
        P = (axes / eigenvalues) @ axes.T
        first = c * share @ np.diag(P)
        second = c**2 * np.einsum("nd,nd->n", share @ (P * P), share)
        upper[0, :, j] = np.log(eigenvalues).sum() + np.log(diagonal).sum() - first - second / 2
        lower[0, :, j] = upper[0, :, j] - tail * second / 3
        w = U @ P
        shared = share * w
        third = c**2 * np.einsum("nd,nd->n", shared @ P, shared)
        lower[1, :, j] = np.einsum("nd,nd->n", U + c * shared, w) + third
        upper[1, :, j] = lower[1, :, j] + tail * third
    return lower, upper


def grid_log_predictive_loo(
    sample: Sample,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    measure: str = "fisher",
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
    dofs, seeds, measure
        The grid, as in `grid_log_predictive`.
    rows : array of int, optional
        Those to be left out, each in turn; all by default.

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist, such as for the class that the left-out row was the last of.
    """
    rows = np.arange(len(sample.X)) if rows is None else rows
    return LeaveOneOut(sample, rows, dofs, seeds, measure).log_density()


class LooErrors(NamedTuple):
    """Leave-one-out errors, boolean, (len(dofs), len(seeds), n), and the share of rows that took the exact route."""

    wrong: Array
    exact_share: float


def grid_loo_errors(
    sample: Sample,
    log_prior: Array,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    measure: str = "fisher",
    rows: Array | None = None,
) -> LooErrors:
    r"""The errors of `grid_log_predictive_loo`, by a second-order expansion with a certificate.

    With the divisor that holds without it, leaving a row out lowers a diagonal seed by :math:`E\succeq0`. With
    :math:`D_0` the matrix before, :math:`M=D_0^{-1/2}ED_0^{-1/2}\preceq\rho I`, where :math:`\rho` is the largest share
    of the row in the seed's entries:

    .. math::
        0\le-\log|I-M|-\operatorname{tr}M-\tfrac12\operatorname{tr}M^2\le\tfrac\rho{3(1-\rho)}\operatorname{tr}M^2,
        \qquad 0\le v^T(D_0-E)^{-1}v-(Q_0+Q_1+Q_2)\le\tfrac{\rho}{1-\rho}Q_2.

    So every score lies in an interval, at O(n r d^2) a multiple; the exact route decides what the intervals do not.

    Parameters
    ----------
    sample, dofs, seeds, measure, rows
        As in `grid_log_predictive_loo`; without weights.
    log_prior : array of shape (n, r)
        Log class probabilities without the row.
    """
    rows = np.arange(len(sample.X)) if rows is None else rows
    return LeaveOneOut(sample, rows, dofs, seeds, measure).errors(log_prior)


def _decide(low: Array, high: Array, y: Array) -> tuple[Array, Array]:
    """From bounds on the scores (..., n, r): whether the row is classified wrongly, and whether they prove it."""
    own_low, own_high = own_scores(low, y), own_scores(high, y)
    index = np.broadcast_to(y[:, None], (*low.shape[:-1], 1))
    np.put_along_axis(low, index, -np.inf, axis=-1)
    np.put_along_axis(high, index, -np.inf, axis=-1)
    rounding = CERTAIN * (1 + np.abs(np.where(np.isfinite(own_low), own_low, 0.0)))
    wrong = (own_high + rounding < low.max(axis=-1)) | np.isneginf(own_high)
    return wrong, wrong | (own_low - rounding > high.max(axis=-1))
