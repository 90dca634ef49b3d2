r"""Predictive densities of Gaussian classes with the parameters integrated out, and their exact
leave-one-out.

Prior :math:`p(\mathcal N_h)\propto|\Sigma_h|^{-q/2}\exp(-\tfrac12\operatorname{tr}\Sigma_h^{-1}B_h)`
(thesis2007 4.20) relative to :math:`|\Sigma|^{-(d+2)/2}d\mu\,d\Sigma` (measure "fisher", 4.16) or to
:math:`d\mu\,d\Sigma` ("lebesgue"). With

.. math:: a = n_h + q \text{ (fisher)}, \qquad a = n_h + q - d - 2 \text{ (lebesgue)}, \qquad D_h = S_h + B_h,

the predictive is a multivariate t with :math:`\nu=a-d+1` degrees of freedom, location :math:`\bar x_h`, scale
:math:`\frac{n_h+1}{n_h\nu}D_h`. It exists if and only if :math:`n_h\ge1`, :math:`\nu>0` and :math:`D_h` is
positive definite. The noninformative prior (4.25) is :math:`B_h=0, q=d+1`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dsytrd
from scipy.special import gammaln, multigammaln

from rcpkg.base import Array, InvalidStatistics
from rcpkg.covariance import SAFE_DOWNDATE, ClassStatistics, class_statistics, dominates, scaled_cholesky, without_row
from rcpkg.selection import own_scores, wrong_predictions


class PredictiveNotDefined(InvalidStatistics):
    """The integral over means and covariances diverges: there is no predictive density."""


class Seed(NamedTuple):
    """Rule of a seed matrix, B = scale * q**power * base.

    Bases, with the maximum-likelihood covariances of class h and within classes: "diag_class" and
    "diag_pooled" (their diagonals), "trace_class" and "trace_pooled" (their mean eigenvalue times I),
    "identity" (I).
    """

    base: str
    power: int = 0
    scale: float = 1.0


DIAGONAL_BASES = ("diag_class", "diag_pooled")
SPHERICAL_BASES = ("trace_class", "trace_pooled", "identity")

#: The seven seeds of BDA7 in the order of thesis2007 (5.13)
BDA7_SEEDS = (
    Seed("diag_pooled", 1), Seed("diag_class", 1), Seed("diag_pooled", -1), Seed("diag_class", -1),
    Seed("diag_pooled"), Seed("diag_class"), Seed("trace_pooled", -1),
)  # fmt: skip


def posterior_dof(count: Array | float, d: int, dof: Array | float, measure: str = "fisher") -> Array | float:
    """a = n + q (Fisher measure) or n + q - d - 2 (Lebesgue measure)."""
    if measure not in ("fisher", "lebesgue"):
        raise ValueError(f'measure must be "fisher" or "lebesgue"; got {measure!r}')
    return count + dof - (d + 2 if measure == "lebesgue" else 0)


def _log_t(count, a, d: int, log_det, quadratic):
    r""":math:`\log\frac{\Gamma(\frac{a+1}2)}{\Gamma(\frac{a-d+1}2)}-\frac
    d2\log\frac{\pi(n+1)}n-\frac12\log|D|-\frac{a+1}2 \log(1+\frac n{n+1}Q)`, thesis2007 (5.4); -inf where the
    density does not exist for lack of degrees of freedom."""
    exists = a > d - 1
    a = np.where(exists, a, d)
    value = gammaln((a + 1) / 2) - gammaln((a - d + 1) / 2) - d / 2 * np.log(np.pi * (count + 1) / count)
    value = value - log_det / 2 - (a + 1) / 2 * np.log1p(count / (count + 1) * quadratic)
    return np.where(exists, value, -np.inf)


def _cholesky(D: Array) -> Array:
    """Cholesky factor of D = S + B, or PredictiveNotDefined where D is numerically singular."""
    L, pivot = scaled_cholesky(D)
    if pivot <= len(D) * np.finfo(float).eps:
        raise PredictiveNotDefined(
            f"S + B is singular (d = {len(D)}): choose a positive definite seed on the scale of the features; the "
            f"noninformative prior needs at least {len(D) + 1} rows in general position"
        )
    return L


def _posterior(count: float, scatter: Array, seed: Array, dof: float, measure: str) -> tuple[Array, float]:
    """Cholesky factor of S + B and a, or PredictiveNotDefined."""
    d = len(scatter)
    a = posterior_dof(count, d, dof, measure)
    if count < 1:
        raise PredictiveNotDefined("no row of the class is left: the flat prior of the mean needs at least one")
    if a <= d - 1:
        raise PredictiveNotDefined(f"{a - d + 1:g} degrees of freedom: raise dof = {dof:g} by more than {d - 1 - a:g}")
    return _cholesky(scatter + seed), a


def log_predictive(
    X: Array, count: float, mean: Array, scatter: Array, *, seed: Array, dof: float, measure: str = "fisher"
) -> Array:
    r"""Log predictive density :math:`\log E[\mathcal N_h](x)` of a class (thesis2007 4.22, 4.24, 4.26, 4.28,
    5.4, A.8).

    .. math:: \frac{\Gamma(\frac{a+1}2)}{\Gamma(\frac{a-d+1}2)}\Bigl|\pi\tfrac{n+1}nD\Bigr|^{-\frac12}
        \Bigl(1+\tfrac n{n+1}(x-\bar x)^TD^{-1}(x-\bar x)\Bigr)^{-\frac{a+1}2}

    Parameters
    ----------
    X : array of shape (n, d)
    count, mean, scatter : rows of the class, their mean (d,) and scatter matrix (d, d)
    seed : array of shape (d, d)
        B; zeros with dof = d + 1 for the noninformative prior.
    dof : float
        q.
    measure : "fisher" or "lebesgue"

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    PredictiveNotDefined
        Without a row, without degrees of freedom, or with S + B singular.
    """
    L, a = _posterior(count, scatter, seed, dof, measure)
    U = solve_triangular(L, (X - mean).T, lower=True)
    return _log_t(count, a, len(L), 2 * np.log(np.diag(L)).sum(), (U**2).sum(axis=0))


def log_predictive_loo(X: Array, *, seed: Array, dof: float, measure: str = "fisher") -> Array:
    r"""Log predictive density of each row of a class given the others, for a seed that does not depend on the
    data.

    Leaving :math:`x_i` out: :math:`S'=S-\kappa z_iz_i^T`, :math:`x_i-\bar x'=\kappa z_i`, with :math:`z_i=x_i-\bar
    x`, :math:`\kappa=n/(n-1)`; hence, with :math:`t_i=z_i^TD^{-1}z_i` and a for n - 1 rows, :math:`\log
    E[\mathcal N](x_i)=\text{const}
    -\frac12\log|D|+\frac a2\log(1-\kappa t_i)`. Shape (n,); -inf for a single row.

    Raises
    ------
    PredictiveNotDefined
        If the density does not exist with one row fewer.
    """
    n, d = X.shape
    if n == 1:
        return np.array([-np.inf])
    statistics = class_statistics(X, np.zeros(n, dtype=int), 1)
    L, a = _posterior(n, statistics.scatters[0], seed, dof, measure)
    a = a - 1
    t = (solve_triangular(L, (X - statistics.means[0]).T, lower=True) ** 2).sum(axis=0)
    downdate = 1 - n / (n - 1) * t
    if a <= d - 1 or (downdate <= 1e-12).any():
        raise PredictiveNotDefined(f"with {n - 1} rows left the density does not exist: raise dof or the seed")
    constant = gammaln((a + 1) / 2) - gammaln((a - d + 1) / 2) - d / 2 * np.log(np.pi * n / (n - 1))
    return constant - np.log(np.diag(L)).sum() + a / 2 * np.log(downdate)


def log_marginal_likelihood(count: float, scatter: Array, *, seed: Array, dof: float, measure: str = "fisher") -> float:
    r"""Log of :math:`\alpha_h=\int\!\!\int\ell(\mathcal N_h,\mathcal
    T_h)\,|\Sigma|^{-q/2}e^{-\frac12\operatorname{tr}\Sigma^{-1}B}dM` (thesis2007 A.7, A.9):

    .. math:: \alpha_h=(2\pi)^{-\frac{n_hd}2}\Bigl(\frac{2\pi}{n_h}\Bigr)^{\frac d2}\Gamma_d(\tfrac
        a2)\,\bigl|\tfrac D2\bigr|^{-\frac a2}.

    The prior of the mean is flat, so only ratios at equal d, q, B are meaningful: alpha with x over alpha
    without is the predictive at x.

    Raises
    ------
    PredictiveNotDefined
        As `log_predictive`.
    """
    L, a = _posterior(count, scatter, seed, dof, measure)
    d = len(L)
    log_det = 2 * np.log(np.diag(L)).sum() - d * np.log(2)
    normal = -count * d / 2 * np.log(2 * np.pi) + d / 2 * np.log(2 * np.pi / count)
    return float(normal + multigammaln(a / 2, d) - a / 2 * log_det)


class _Models(NamedTuple):
    """The models of one base: the distinct multiples c of the base, and where each (q, seed) finds its
    multiple."""

    columns: Array
    multiples: Array
    where: Array


def _by_base(dofs: Array, seeds: Sequence[Seed]) -> dict[str, _Models]:
    groups = {}
    for base in dict.fromkeys(seed.base for seed in seeds):
        if base not in DIAGONAL_BASES + SPHERICAL_BASES:
            raise ValueError(f"seed base must be one of {', '.join(DIAGONAL_BASES + SPHERICAL_BASES)}; got {base!r}")
        columns = np.array([j for j, seed in enumerate(seeds) if seed.base == base])
        c = np.array([[seeds[j].scale * q ** float(seeds[j].power) for j in columns] for q in dofs])
        multiples, where = np.unique(c, return_inverse=True)
        groups[base] = _Models(columns, multiples, where.reshape(c.shape))
    return groups


def _base_diagonal(base: str, statistics: ClassStatistics, h: int) -> Array:
    """Diagonal of the base matrix for class h, shape (d,)."""
    d = statistics.means.shape[1]
    if base == "identity":
        return np.ones(d)
    if base.endswith("pooled"):
        diagonal = np.einsum("hjj->j", statistics.scatters) / statistics.counts.sum()
    else:
        diagonal = np.diag(statistics.scatters[h]) / statistics.counts[h]
    return diagonal if base.startswith("diag") else np.full(d, diagonal.mean())


def seed_matrix(seed: Seed, dof: float, statistics: ClassStatistics, h: int) -> Array:
    """The matrix B of class h, shape (d, d), that a rule gives."""
    return np.diag(seed.scale * dof ** float(seed.power) * _base_diagonal(seed.base, statistics, h))


def _fill(out: Array, models: _Models, rows, h: int, count, a: Array, d: int, log_det: Array, quadratic: Array) -> None:
    """Write the log densities of the models of one base for class h; log_det and quadratic are (rows,
    multiples)."""
    for k, dof in enumerate(a):
        value = _log_t(count, dof, d, log_det[:, models.where[k]], quadratic[:, models.where[k]])
        for position, column in enumerate(models.columns):
            out[k, column, rows, h] = value[:, position]


def grid_log_predictive(
    X: Array,
    statistics: ClassStatistics,
    dofs: Sequence[float],
    seeds: Sequence[Seed] = BDA7_SEEDS,
    measure: str = "fisher",
) -> Array:
    r"""Log predictive densities of every class under every (q, seed): thesis2007 (4.22) with (5.13) and
    beyond.

    One eigendecomposition of :math:`\Lambda^{-1/2}S_h\Lambda^{-1/2}` a class and base :math:`\Lambda` serves
    all multiples c: :math:`S_h+c\Lambda=\Lambda^{1/2}(V\operatorname{diag}(l)V^T+cI)\Lambda^{1/2}`.

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist.
    """
    n_classes, d = statistics.means.shape
    out = np.full((len(dofs), len(seeds), len(X), n_classes), -np.inf)
    groups = _by_base(np.asarray(dofs, dtype=float), seeds)
    for h in np.flatnonzero(statistics.counts):
        a = posterior_dof(statistics.counts[h], d, np.asarray(dofs, dtype=float), measure)
        for base, models in groups.items():
            diagonal = _base_diagonal(base, statistics, h)
            if not (diagonal > 0).all():
                continue
            U = X - statistics.means[h]
            if base == "identity":
                log_det, quadratic, _ = _cholesky_forms(statistics.scatters[h], U, models.multiples)
            else:
                log_det, quadratic = _eigen_forms(statistics.scatters[h], U, diagonal, models.multiples)
            _fill(out, models, slice(None), h, statistics.counts[h], a, d, log_det, quadratic)
    return out


def _cholesky_forms(scatter: Array, U: Array, multiples: Array) -> tuple[Array, Array, Array]:
    """log|S + cI|, u'(S + cI)^-1 u (n, m) and smallest pivots (m,): a factorisation a multiple, which keeps digits
    that an eigendecomposition loses when features differ in scale; infinite log determinant where singular."""
    log_det, quadratic = np.full((len(U), len(multiples)), np.inf), np.zeros((len(U), len(multiples)))
    pivots = np.zeros(len(multiples))
    for j, c in enumerate(multiples):
        L, pivots[j] = scaled_cholesky(scatter + c * np.eye(len(scatter)))
        if pivots[j] > len(L) * np.finfo(float).eps:
            log_det[:, j] = 2 * np.log(np.diag(L)).sum()
            quadratic[:, j] = (solve_triangular(L, U.T, lower=True) ** 2).sum(axis=0)
    return log_det, quadratic, pivots


def _eigen_forms(scatter: Array, U: Array, diagonal: Array, multiples: Array) -> tuple[Array, Array]:
    """log|S + cL| and u'(S + cL)^-1 u, L diagonal, from one eigendecomposition of L^-1/2 S L^-1/2; both (n,
    m)."""
    root = np.sqrt(diagonal)
    values, V = np.linalg.eigh(scatter / np.outer(root, root))
    log_det, quadratic = _shifted(values, U / root @ V, multiples[None, :])
    return np.broadcast_to(log_det + np.log(diagonal).sum(), quadratic.shape), quadratic


def _shifted(values: Array, U: Array, shift: Array) -> tuple[Array, Array]:
    """log|V diag(l) V' + sI| and u'(diag(l) + sI)^-1 u for rotated rows U (n, d) and shifts (n or 1, m)."""
    shifted = np.maximum(values, 0.0) + shift[:, :, None]
    log_det = np.log(shifted).sum(axis=-1)
    if len(shift) == 1:
        return log_det, U**2 @ (1 / shifted[0]).T
    return log_det, np.einsum("nd,nmd->nm", U**2, 1 / shifted)


def _tridiagonal_forms(
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


class _LeftOut(NamedTuple):
    """What leaving each row out does: z_i = x_i - mean of its class, kappa_i = n/(n-1), and the rows that must be
    refitted."""

    X: Array
    y: Array
    statistics: ClassStatistics
    z: Array
    kappa: Array
    refit: Array


def _leave_out(X: Array, y: Array, n_classes: int) -> _LeftOut:
    statistics = class_statistics(X, y, n_classes)
    z = X - statistics.means[y]
    n = statistics.counts[y]
    kappa = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
    return _LeftOut(X, y, statistics, z, kappa, dominates(X, y, statistics))


def _refit(left: _LeftOut, i: int, dofs, seeds, measure: str) -> Array:
    """Log densities of row i from a refit without it, shape (len(dofs), len(seeds), r)."""
    statistics = without_row(left.X, left.y, left.statistics, i)
    return grid_log_predictive(left.X[i : i + 1], statistics, dofs, seeds, measure)[:, :, 0]


def _spherical_loo(out: Array, left: _LeftOut, base: str, models: _Models, dofs: Array, measure: str) -> Array:
    """Exact leave-one-out for B = c * sigma * I, from one eigendecomposition a class; returns the rows to be
    refitted."""
    counts, means, scatters = left.statistics
    (n, d), refit = left.X.shape, np.zeros(len(left.X), dtype=bool)
    dropped = left.kappa * (left.z**2).sum(axis=1)
    traces = np.trace(scatters, axis1=1, axis2=2)
    for h in np.flatnonzero(counts):
        own = left.y == h
        sigma = np.ones(n)
        if base == "trace_pooled":
            sigma = (traces.sum() - dropped) / (d * (n - 1))
        elif base == "trace_class":
            sigma = np.where(own, (traces[h] - dropped) / (d * max(counts[h] - 1, 1)), traces[h] / (d * counts[h]))
        usable = (sigma > 0) & ~left.refit
        if base != "identity":
            values, V = np.linalg.eigh(scatters[h])
        for rows, lost in ((usable & ~own, 0), (usable & own, 1)):
            rows = np.flatnonzero(rows)
            if len(rows) == 0 or counts[h] == lost:
                continue
            count = counts[h] - lost
            a = posterior_dof(count, d, dofs, measure)
            U = left.X[rows] - means[h]
            ratio = 1.0
            if base == "identity":
                log_det, quadratic, ratio = _cholesky_forms(scatters[h], U, models.multiples)
            else:
                log_det, quadratic = _shifted(values, U @ V, sigma[rows, None] * models.multiples)
            if lost:
                kappa = counts[h] / count
                downdate = 1 - kappa * quadratic
                unsafe = (ratio * downdate < SAFE_DOWNDATE).any(axis=1)
                refit[rows[unsafe]] = True
                downdate[unsafe] = 1.0
                log_det, quadratic = log_det + np.log(downdate), kappa**2 * quadratic / downdate
            _fill(out, models, rows, h, count, a, d, log_det, quadratic)
    return refit


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


def _diagonal_cases(left: _LeftOut, base: str, folds: Array, dofs: Array, measure: str) -> Iterator[_DiagonalCase]:
    """The cases of a diagonal base for the left-out rows ``folds``, those without a density passed over."""
    counts, means, scatters = left.statistics
    n, d = left.X.shape
    spread = np.einsum("hjj->hj", scatters)
    for h in np.flatnonzero(counts):
        reference = spread.sum(axis=0) if base == "diag_pooled" else spread[h]
        for own in (False, True):
            rows, count = folds[(left.y[folds] == h) == own], counts[h] - own
            if len(rows) == 0 or count == 0 or not (reference > 0).all():
                continue
            a = posterior_dof(count, d, dofs, measure)
            kappa = counts[h] / count if own else 1.0
            divisor = n - 1 if base == "diag_pooled" else count
            yield _DiagonalCase(h, own, rows, left.X[rows] - means[h], count, a, kappa, reference, divisor)


def _diagonal_loo(
    out: Array, left: _LeftOut, base: str, models: _Models, dofs: Array, measure: str, folds: Array
) -> None:
    """Exact leave-one-out of the rows ``folds`` for B = c * diag(lambda): one tridiagonal reduction a row and
    class (the class's own rows only for "diag_class", whose other rows share one eigendecomposition)."""
    dropped = left.kappa[:, None] * left.z**2
    for case in _diagonal_cases(left, base, folds, dofs, measure):
        scatter, rows = left.statistics.scatters[case.h], case.rows
        if base == "diag_class" and not case.own:
            log_det, quadratic = _eigen_forms(scatter, case.V, case.reference / case.divisor, models.multiples)
        else:
            diagonal = (case.reference - dropped[rows]) / case.divisor
            drop = np.sqrt(case.kappa) * case.V if case.own else None
            log_det, quadratic = _tridiagonal_forms(scatter, drop, diagonal, case.kappa * case.V, models.multiples)
        _fill(out, models, rows, case.h, case.count, case.a, left.X.shape[1], log_det, quadratic)


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

    Returns
    -------
    array of shape (len(dofs), len(seeds), n, r)
        -inf where the density does not exist, such as for the class that the left-out row was the last of.
    """
    dofs = np.asarray(dofs, dtype=float)
    left = _leave_out(X, y, n_classes)
    out = np.full((len(dofs), len(seeds), len(X), n_classes), -np.inf)
    refit = left.refit.copy()
    for base, models in _by_base(dofs, seeds).items():
        if base in SPHERICAL_BASES:
            refit |= _spherical_loo(out, left, base, models, dofs, measure)
        else:
            _diagonal_loo(out, left, base, models, dofs, measure, np.flatnonzero(~left.refit))
    for i in np.flatnonzero(refit):
        out[:, :, i] = _refit(left, i, dofs, seeds, measure)
    return out


class LooErrors(NamedTuple):
    """Leave-one-out errors ``wrong`` (len(dofs), len(seeds), n), boolean, and the share of rows that needed
    the exact route."""

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
    log_prior : array of shape (n, r)
        Log class probabilities without the row.
    """
    dofs = np.asarray(dofs, dtype=float)
    n, n_classes = log_prior.shape
    left = _leave_out(X, y, n_classes)
    wrong = np.empty((len(dofs), len(seeds), n), dtype=bool)
    doubtful, refit = np.zeros(n, dtype=bool), left.refit.copy()
    for base, models in _by_base(dofs, seeds).items():
        columns = models.columns
        alone = _Models(np.arange(len(columns)), models.multiples, models.where)
        low = np.full((len(dofs), len(columns), n, n_classes), -np.inf)
        if base in SPHERICAL_BASES:
            refit |= _spherical_loo(low, left, base, alone, dofs, measure)
            wrong[:, columns] = wrong_predictions(low + log_prior, y)
            continue
        high = low.copy()
        _bounds(low, high, left, base, alone, dofs, measure)
        wrong[:, columns], sure = _decide(low + log_prior, high + log_prior, y)
        doubtful |= ~sure.all(axis=(0, 1))
    folds = np.flatnonzero(doubtful & ~refit)
    for base, models in _by_base(dofs, seeds).items():
        if base in DIAGONAL_BASES and len(folds):
            scores = np.full((len(dofs), len(seeds), n, n_classes), -np.inf)
            _diagonal_loo(scores, left, base, models, dofs, measure, folds)
            picked = np.ix_(np.arange(len(dofs)), models.columns, folds)
            wrong[picked] = wrong_predictions(scores[picked] + log_prior[folds], y[folds])
    for i in np.flatnonzero(refit):
        scores = _refit(left, i, dofs, seeds, measure) + log_prior[i]
        wrong[:, :, i] = wrong_predictions(scores[:, :, None], y[i : i + 1])[:, :, 0]
    return LooErrors(wrong, float(np.mean(doubtful | refit)))


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


def _bounds(low: Array, high: Array, left: _LeftOut, base: str, models: _Models, dofs: Array, measure: str) -> None:
    """Write bounds on the leave-one-out log densities of the models of a diagonal base, but for the rows to
    be refitted."""
    dropped = left.kappa[:, None] * left.z**2
    for case in _diagonal_cases(left, base, np.flatnonzero(~left.refit), dofs, measure):
        scatter, diagonal = left.statistics.scatters[case.h], case.reference / case.divisor
        if base == "diag_class" and not case.own:
            ends = (_eigen_forms(scatter, case.V, diagonal, models.multiples),) * 2
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
            _fill(bound, models, case.rows, case.h, case.count, case.a, left.X.shape[1], log_det, quadratic)


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
