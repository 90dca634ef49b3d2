"""Exact leave-one-out of a grid of predictive densities, and its errors at less cost."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dsytrd

from rcpkg.base import Array
from rcpkg.covariance import SAFE_DOWNDATE, dominates, left_out, without_row
from rcpkg.predictive.density import posterior_dof
from rcpkg.predictive.grid import (
    BDA7_SEEDS,
    DIAGONAL_BASES,
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
from rcpkg.selection import own_scores, wrong_predictions


def tridiagonal_forms(
    scatter: Array, drop: Array | None, diagonal: Array, V: Array, multiples: Array
) -> tuple[Array, Array]:
    r"""log|A_i| and v_i' A_i^-1 v_i for :math:`A_i=S-w_iw_i^T+c\operatorname{diag}(\lambda_i)`, every i and
    c: exact.

    A Householder reduction of :math:`R=\Lambda^{-1/2}(S-ww^T)\Lambda^{-1/2}` bordered by
    :math:`u=\Lambda^{-1/2}v` leaves a tridiagonal T whose first basis vector is u/|u|, so that the pivots
    :math:`\delta_j=t_j+c-e_j^2/\delta_{j+1}` from the bottom up give :math:`\log|R+cI|=\sum\log\delta_j` and
    :math:`u^T(R+cI)^{-1}u=|u|^2/\delta_1`: O(d) a multiple.

    Parameters
    ----------
    scatter : (d, d);  drop : w (n, d) or None;  diagonal : lambda (n, d);  V : v (n, d);  multiples : c (m,)

    Returns
    -------
    two arrays of shape (n, m)
    """
    n, d = V.shape
    log_det, quadratic = np.empty((n, len(multiples))), np.empty((n, len(multiples)))
    step = max(1, int(2**19 / (d + 1) ** 2))
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


class _DiagonalCase(NamedTuple):
    """Rows left out that belong to class h (own), or to the others: their deviations V from its mean, what is left
    of the class (count, a, kappa), and the seed reference / divisor before the rows are taken from it."""

    h: int
    own: bool
    rows: Array
    V: Array
    count: int
    a: Array
    kappa: float
    reference: Array
    divisor: int


class _LeaveOneOut:
    """A grid of predictive densities under which each row is left out in turn.

    The rows that dominate their class, ``refit``, are to be fitted anew; the others are taken from the statistics.
    """

    def __init__(self, X: Array, y: Array, n_classes: int, dofs: Sequence[float], seeds: Sequence[Seed], measure: str):
        self.left = left_out(X, y, n_classes)
        self.dofs, self.seeds, self.measure = np.asarray(dofs, dtype=float), seeds, measure
        self.models = models_by_base(self.dofs, seeds)
        self.refit = dominates(X, y, self.left.statistics)

    def blank(self, n_models: int) -> Array:
        """Room for the log densities of models, shape (len(dofs), n_models, n, r): no density yet."""
        return np.full((len(self.dofs), n_models, len(self.left.X), len(self.left.statistics.counts)), -np.inf)

    def refitted(self, i: int) -> Array:
        """Log densities of row i from a refit without it, shape (len(dofs), len(seeds), r)."""
        statistics = without_row(self.left.X, self.left.y, self.left.statistics, i)
        return grid_log_predictive(self.left.X[i : i + 1], statistics, self.dofs, self.seeds, self.measure)[:, :, 0]

    def _multiplier(self, base: str, h: int) -> Array:
        """The sigma of B = c * sigma * I for class h without each row, shape (n,)."""
        counts, _, scatters = self.left.statistics
        n, d = self.left.X.shape
        traces = np.trace(scatters, axis1=1, axis2=2)
        dropped = self.left.kappa * (self.left.z**2).sum(axis=1)
        if base == "trace_pooled":
            return (traces.sum() - dropped) / (d * (n - 1))
        if base == "trace_class":
            own = (traces[h] - dropped) / (d * max(counts[h] - 1, 1))
            return np.where(self.left.y == h, own, traces[h] / (d * counts[h]))
        return np.ones(n)

    def spherical(self, out: Array, base: str, models: Models) -> Array:
        """Write exact log densities for B = c * sigma * I, from one eigendecomposition a class; returns the rows to
        be refitted."""
        counts, means, scatters = self.left.statistics
        d, refit = self.left.X.shape[1], np.zeros(len(self.left.X), dtype=bool)
        for h in np.flatnonzero(counts):
            own, sigma = self.left.y == h, self._multiplier(base, h)
            usable = (sigma > 0) & ~self.refit
            if base != "identity":
                values, V = np.linalg.eigh(scatters[h])
            for rows, lost in ((usable & ~own, 0), (usable & own, 1)):
                rows = np.flatnonzero(rows)
                if len(rows) == 0 or counts[h] == lost:
                    continue
                count = counts[h] - lost
                a = posterior_dof(count, d, self.dofs, self.measure)
                U = self.left.X[rows] - means[h]
                ratio = 1.0
                if base == "identity":
                    log_det, quadratic, ratio = cholesky_forms(scatters[h], U, models.multiples)
                else:
                    log_det, quadratic = shifted_forms(values, U @ V, sigma[rows, None] * models.multiples)
                if lost:
                    kappa = counts[h] / count
                    downdate = 1 - kappa * quadratic
                    unsafe = (ratio * downdate < SAFE_DOWNDATE).any(axis=1)
                    refit[rows[unsafe]] = True
                    downdate[unsafe] = 1.0
                    log_det, quadratic = log_det + np.log(downdate), kappa**2 * quadratic / downdate
                fill(out, models, rows, h, count, a, d, log_det, quadratic)
        return refit

    def _diagonal_cases(self, base: str, folds: Array) -> Iterator[_DiagonalCase]:
        """The cases of a diagonal base for the left-out rows ``folds``, those without a density passed over."""
        counts, means, scatters = self.left.statistics
        n, d = self.left.X.shape
        spread = np.einsum("hjj->hj", scatters)
        for h in np.flatnonzero(counts):
            reference = spread.sum(axis=0) if base == "diag_pooled" else spread[h]
            for own in (False, True):
                rows, count = folds[(self.left.y[folds] == h) == own], counts[h] - own
                if len(rows) == 0 or count == 0 or not (reference > 0).all():
                    continue
                a = posterior_dof(count, d, self.dofs, self.measure)
                kappa = counts[h] / count if own else 1.0
                divisor = n - 1 if base == "diag_pooled" else count
                yield _DiagonalCase(h, own, rows, self.left.X[rows] - means[h], count, a, kappa, reference, divisor)

    def diagonal(self, out: Array, base: str, models: Models, folds: Array) -> None:
        """Write exact log densities of the rows ``folds`` for B = c * diag(lambda): one tridiagonal reduction a row
        and class (the class's own rows only for "diag_class", whose other rows share one eigendecomposition)."""
        dropped = self.left.kappa[:, None] * self.left.z**2
        for case in self._diagonal_cases(base, folds):
            scatter, rows = self.left.statistics.scatters[case.h], case.rows
            if base == "diag_class" and not case.own:
                log_det, quadratic = eigen_forms(scatter, case.V, case.reference / case.divisor, models.multiples)
            else:
                diagonal = (case.reference - dropped[rows]) / case.divisor
                drop = np.sqrt(case.kappa) * case.V if case.own else None
                log_det, quadratic = tridiagonal_forms(scatter, drop, diagonal, case.kappa * case.V, models.multiples)
            fill(out, models, rows, case.h, case.count, case.a, self.left.X.shape[1], log_det, quadratic)

    def bounds(self, base: str, models: Models) -> tuple[Array, Array]:
        """Lower and upper bounds on the log densities of the models of a diagonal base, shape (len(dofs), models, n,
        r), but for the rows to be refitted."""
        low, high = self.blank(len(models.columns)), self.blank(len(models.columns))
        dropped = self.left.kappa[:, None] * self.left.z**2
        for case in self._diagonal_cases(base, np.flatnonzero(~self.refit)):
            scatter, diagonal = self.left.statistics.scatters[case.h], case.reference / case.divisor
            if base == "diag_class" and not case.own:
                ends = (eigen_forms(scatter, case.V, diagonal, models.multiples),) * 2
            else:
                share = dropped[case.rows] / case.reference
                ends = _expand(scatter, case.V, diagonal, share, models.multiples)
            for bound, (log_det, quadratic) in zip((high, low), ends):
                if case.own:
                    downdate = 1 - case.kappa * quadratic
                    possible = downdate > 0
                    downdate = np.where(possible, downdate, 1.0)
                    log_det = np.where(possible, log_det + np.log(downdate), np.inf)
                    quadratic = case.kappa**2 * quadratic / downdate
                fill(bound, models, case.rows, case.h, case.count, case.a, self.left.X.shape[1], log_det, quadratic)
        return low, high


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
    X: Array,
    y: Array,
    n_classes: int,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    measure: str = "fisher",
) -> Array:
    r"""Log predictive densities of each row under every class and (q, seed), all fitted without that row:
    exact.

    Data-dependent seeds are recomputed without the row too. With r classes and m distinct multiples of a
    base: trace and identity seeds cost O(n r d (d + m)) after one eigendecomposition a class, diagonal seeds
    one tridiagonal reduction, :math:`\frac43d^3`, a row and class. Rows that dominate their class are
    refitted.

    Parameters
    ----------
    X : array of shape (n, d)
    y : integer array of shape (n,), values 0, ..., n_classes - 1
    n_classes : int
    dofs, seeds : sequences of float and of Seed
        The grid.
    measure : {"fisher", "lebesgue"}, default="fisher"
        Distribution-based or parameter-based.

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist, such as for the class that the left-out row was the last of.
    """
    grid = _LeaveOneOut(X, y, n_classes, dofs, seeds, measure)
    out, refit = grid.blank(len(seeds)), grid.refit.copy()
    for base, models in grid.models.items():
        if base in SPHERICAL_BASES:
            refit |= grid.spherical(out, base, models)
        else:
            grid.diagonal(out, base, models, np.flatnonzero(~grid.refit))
    for i in np.flatnonzero(refit):
        out[:, :, i] = grid.refitted(i)
    return out


class LooErrors(NamedTuple):
    """Leave-one-out errors ``wrong``, boolean, shape (len(dofs), len(seeds), n), and ``exact_share``, the share of
    rows that needed the exact route.
    """

    wrong: Array
    exact_share: float


def grid_loo_errors(
    X: Array,
    y: Array,
    log_prior: Array,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    measure: str = "fisher",
) -> LooErrors:
    r"""The errors of `grid_log_predictive_loo`, by a second-order expansion with a certificate.

    With the divisor that holds without it, leaving a row out lowers a diagonal seed by :math:`E\succeq0`. With
    :math:`D_0` the matrix before,
    :math:`M=D_0^{-1/2}ED_0^{-1/2}\preceq\rho I`, where :math:`\rho` is the largest share of the row in the
    seed's entries:

    .. math::
        0\le-\log|I-M|-\operatorname{tr}M-\tfrac12\operatorname{tr}M^2\le\tfrac{\rho}{3(1-\rho)}\operatorname{tr}M^2,\qquad
        0\le v^T(D_0-E)^{-1}v-(Q_0+Q_1+Q_2)\le\tfrac{\rho}{1-\rho}Q_2.

    So every score lies in a known interval, at O(n r d^2) a multiple. Rows that the intervals leave undecided
    go through the exact route: the errors are the exact ones.

    Parameters
    ----------
    X, y, dofs, seeds, measure
        As in `grid_log_predictive_loo`.
    log_prior : array of shape (n, r)
        Log class probabilities without the row.
    """
    grid = _LeaveOneOut(X, y, log_prior.shape[1], dofs, seeds, measure)
    wrong = np.empty((len(grid.dofs), len(seeds), len(y)), dtype=bool)
    doubtful, refit = np.zeros(len(y), dtype=bool), grid.refit.copy()
    for base, models in grid.models.items():
        alone = Models(np.arange(len(models.columns)), models.multiples, models.where)
        if base in SPHERICAL_BASES:
            scores = grid.blank(len(models.columns))
            refit |= grid.spherical(scores, base, alone)
            wrong[:, models.columns] = wrong_predictions(scores + log_prior, y)
        else:
            low, high = grid.bounds(base, alone)
            wrong[:, models.columns], sure = _decide(low + log_prior, high + log_prior, y)
            doubtful |= ~sure.all(axis=(0, 1))
    _settle(wrong, grid, log_prior, np.flatnonzero(doubtful & ~refit))
    for i in np.flatnonzero(refit):
        scores = grid.refitted(i) + log_prior[i]
        wrong[:, :, i] = wrong_predictions(scores[:, :, None], y[i : i + 1])[:, :, 0]
    return LooErrors(wrong, float(np.mean(doubtful | refit)))


def _settle(wrong: Array, grid: _LeaveOneOut, log_prior: Array, folds: Array) -> None:
    """Write the errors of the diagonal bases on the rows ``folds``, by the exact route."""
    for base, models in grid.models.items():
        if base in DIAGONAL_BASES and len(folds):
            scores = grid.blank(len(grid.seeds))
            grid.diagonal(scores, base, models, folds)
            picked = np.ix_(np.arange(len(grid.dofs)), models.columns, folds)
            wrong[picked] = wrong_predictions(scores[picked] + log_prior[folds], grid.left.y[folds])


def _decide(low: Array, high: Array, y: Array) -> tuple[Array, Array]:
    """From bounds on the scores (..., n, r): whether the row is wrongly classified, and whether the bounds
    prove it."""
    own_low, own_high = own_scores(low, y), own_scores(high, y)
    index = np.broadcast_to(y[:, None], (*low.shape[:-1], 1))
    np.put_along_axis(low, index, -np.inf, axis=-1)
    np.put_along_axis(high, index, -np.inf, axis=-1)
    rounding = 1e-9 * (1 + np.abs(np.where(np.isfinite(own_low), own_low, 0.0)))
    wrong = (own_high + rounding < low.max(axis=-1)) | np.isneginf(own_high)
    return wrong, wrong | (own_low - rounding > high.max(axis=-1))
