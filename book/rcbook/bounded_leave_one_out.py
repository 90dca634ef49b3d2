"""The errors of leave-one-out of a grid of predictive densities, by bounds that decide most rows (chapter 15).

The tables of thesis2007 need errors alone, thousands of times; the classifiers of the library need log-losses as well,
which bounds do not give.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rcpkg.choice import own_scores, wrong_predictions
from rcpkg.gaussians import BDA7_SEEDS, Sample, Seed
from rcpkg.gaussians.grid import SPHERICAL_BASES, Models, eigen_forms, fill
from rcpkg.gaussians.leave_one_out import LeaveOneOut
from rcpkg.linalg import Array

CERTAIN = 1e-9  # share of a score by which a bound must decide, for rounding


class BoundedLeaveOneOut(LeaveOneOut):
    """Leave-one-out of a grid of predictive densities, with the errors decided by bounds where these are enough."""

    def bounds(self, base: str, models: Models) -> tuple[Array, Array]:
        """Lower and upper bounds on the log densities under the models of a diagonal base, shape (len(dofs), models,
        rows, r), but for the classes to be refitted."""
        low, high = self.blank(len(models.columns)), self.blank(len(models.columns))
        for case, reference, divisor in self._diagonal_cases(base):
            scatter, diagonal = self.sample.statistics.scatters[case.h], reference / divisor
            if base == "diag_class" and not case.own_class:
                ends = (eigen_forms(scatter, case.V, diagonal, models.multiples),) * 2
            else:
                share = self.removed[case.places] / reference
                ends = _expand(scatter, case.V, diagonal, share, models.multiples)
            for bound, (log_det, quadratic) in zip((high, low), ends):
                if case.own_class:
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

    def _some(self, places: Array) -> "BoundedLeaveOneOut":
        return BoundedLeaveOneOut(self.sample, self.rows[places], self.dofs, self.seeds)


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


class LooErrors(NamedTuple):
    """Leave-one-out errors, boolean, (len(dofs), len(seeds), n), and the share of rows that took the exact route."""

    wrong: Array
    exact_share: float


def grid_loo_errors(
    sample: Sample,
    log_prior: Array,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
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
    sample, dofs, seeds, rows
        As in `grid_log_predictive_loo`; without weights.
    log_prior : array of shape (n, r)
        Log class probabilities without the row.
    """
    rows = np.arange(len(sample.X)) if rows is None else rows
    return BoundedLeaveOneOut(sample, rows, dofs, seeds).errors(log_prior)


def _decide(low: Array, high: Array, y: Array) -> tuple[Array, Array]:
    """From bounds on the scores (..., n, r): whether the row is classified wrongly, and whether they prove it."""
    own_low, own_high = own_scores(low, y), own_scores(high, y)
    index = np.broadcast_to(y[:, None], (*low.shape[:-1], 1))
    np.put_along_axis(low, index, -np.inf, axis=-1)
    np.put_along_axis(high, index, -np.inf, axis=-1)
    rounding = CERTAIN * (1 + np.abs(np.where(np.isfinite(own_low), own_low, 0.0)))
    wrong = (own_high + rounding < low.max(axis=-1)) | np.isneginf(own_high)
    return wrong, wrong | (own_low - rounding > high.max(axis=-1))
