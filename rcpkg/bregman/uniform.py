r"""Estimates of the uniform distribution on :math:`[0, \theta]` from n draws (thesis2007 7.5, A.7).

All depend on the data through n and :math:`M = \max_i x_i`. With a measure :math:`a^{-c}\,da` on the uniform
distributions the posterior of the end point a is Pareto: :math:`P(a > t) = (M/t)^N` for :math:`t \ge M`, with
the *order* N = n + c - 1.

Examples
--------
>>> from rcpkg import uniform
>>> x = [1.0, 3.0, 2.0]
>>> estimates = uniform.maximum_likelihood(x), uniform.bayes_parameter(x), uniform.bayes_restricted(x)
>>> [estimate.support()[1].round(4).item() for estimate in estimates]
[3.0, 4.0697, 3.7798]
>>> mean = uniform.bayes_unrestricted(x)
>>> mean.pdf([2.5, 3.5, 6.0]).round(4), uniform.project(mean).support()[1].round(4).item()
(array([0.25  , 0.1349, 0.0156]), 3.7798)
>>> uniform.order(3).item(), uniform.parameter_mean(3.0, n=3).item()
(3.0, 4.0)
>>> uniform.uniform_squared_error(1.25).item(), uniform.unrestricted_squared_error(1.0, n=10).round(4).item()
(0.2, 0.0476)
>>> {name: round(uniform.expected_squared_error(name, 10), 4) for name in uniform.ESTIMATES[1:]}
{'bayes_parameter': 0.0756, 'bayes_restricted': 0.0744, 'bayes_unrestricted': 0.0529}
"""

import itertools

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize, stats
from scipy.special import hyp1f1

from rcpkg.linalg import Array

# exponent c of the measure a^-c da: Fisher's (A.33), and the thesis's "Lebesgue" element (A.32)
MEASURES = {"fisher": 1.0, "lebesgue": 1.5}

ESTIMATES = ("maximum_likelihood", "bayes_parameter", "bayes_restricted", "bayes_unrestricted")


class _UniformPareto(stats.rv_continuous):
    r"""Mean of the uniform densities on [0, a] when :math:`P(a > t) = t^{-N}`, t >= 1.

    .. math:: g(x) = \frac{N}{N + 1}\max(x, 1)^{-(N+1)}
    """

    def _pdf(self, x, N):
        return N / (N + 1) * np.maximum(x, 1.0) ** -(N + 1)

    def _cdf(self, x, N):
        return np.where(x < 1, N * x / (N + 1), 1 - np.maximum(x, 1.0) ** -N / (N + 1))

    def _sf(self, x, N):
        return np.where(x < 1, 1 - N * x / (N + 1), np.maximum(x, 1.0) ** -N / (N + 1))

    def _ppf(self, q, N):
        return self._isf(1 - q, N)

    def _isf(self, p, N):
        return np.where(p > 1 / (N + 1), (1 - p) * (N + 1) / N, np.minimum(p * (N + 1), 1.0) ** (-1 / N))

    def _munp(self, n, N):
        # E x^n = E a^n / (n + 1), and a is Pareto
        return np.where(n < N, N / np.where(n < N, N - n, 1.0) / (n + 1), np.inf)


uniform_pareto = _UniformPareto(a=0.0, name="uniform_pareto", shapes="N")


def order(n: ArrayLike, measure: str | float = "fisher") -> Array:
    """Order N = n + c - 1 of the Pareto posterior; ``measure`` is a name of `MEASURES` or c itself."""
    if isinstance(measure, str) and measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)} or an exponent; got {measure!r}")
    N = np.asarray(n, dtype=float) + (MEASURES[measure] if isinstance(measure, str) else float(measure)) - 1
    if not np.all(N > 0):
        raise ValueError("the posterior is improper: n + c must exceed 1; take more data or another measure")
    return N


def _summary(x: ArrayLike) -> tuple[int, float]:
    x = np.asarray(x, dtype=float)
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"x must be a non-empty vector of observations; got shape {x.shape}")
    if not np.all(np.isfinite(x)) or x.min() < 0 or not x.max() > 0:
        raise ValueError("x must hold finite non-negative numbers, not all of them zero")
    return len(x), float(x.max())


def maximum_likelihood(x: ArrayLike) -> stats.distributions.rv_frozen:
    """Uniform distribution on [0, M], M the largest of the draws x."""
    return stats.uniform(scale=_summary(x)[1])


def parameter_mean(maximum: ArrayLike, n: ArrayLike, t1: float = 1.0, t2: float = np.inf) -> Array:
    r"""Posterior mean of the end point; inverse-gamma prior :math:`\theta^{-t_1-1} e^{-1/(t_2\theta)}`.

    .. math:: E\theta &= \frac{M\,\alpha/h + 1/t_2}{\alpha - 1},\qquad \alpha = n + t_1, \\
        h &= {}_1F_1(1; \alpha+1; z) = \sum_k \frac{z^k}{(\alpha+1)_k},\quad z = \frac1{t_2 M},

    with M the ``maximum`` of n draws, t1 ≥ 0, n + t1 > 1; :math:`M\alpha/(\alpha-1)` for ``t2=inf``. It equals (7.22),
    whose two chi-squared probabilities vanish in floating point from some n on."""
    maximum, n = (np.asarray(v, dtype=float) for v in np.broadcast_arrays(maximum, n))
    if not t1 >= 0 or not t2 > 0:
        raise ValueError(f"t1 must be at least 0 and t2 positive; got {t1} and {t2}")
    alpha = n + t1
    if not np.all((maximum > 0) & (maximum < np.inf)):
        raise ValueError("maximum must be a positive number, the largest of the draws")
    if not np.all(alpha > 1):
        raise ValueError("the posterior mean is infinite: n + t1 must exceed 1")
    z = np.minimum(1 / (t2 * maximum), 10 * (alpha + 100))  # beyond, the function is ∞, which takes long to find
    return (maximum * alpha / hyp1f1(1, alpha + 1, z) + 1 / t2) / (alpha - 1)


def bayes_parameter(x: ArrayLike, t1: float = 1.0, t2: float = 1.0) -> stats.distributions.rv_frozen:
    """Uniform distribution up to the posterior mean of the end point, (7.21)-(7.22), from the draws x.

    The prior of the end point has the parameters ``t1`` and ``t2`` of `parameter_mean`.
    """
    n, maximum = _summary(x)
    return stats.uniform(scale=float(parameter_mean(maximum, n, t1, t2)))


def bayes_restricted(x: ArrayLike, measure: str | float = "fisher") -> stats.distributions.rv_frozen:
    r"""Uniform distribution on :math:`[0, 2^{1/N}M]`: the least expected squared difference of all (A.31).

    Because :math:`\int(f_a - f_b)^2 = |1/a - 1/b|`, its end point is the posterior median. M is the largest of the
    draws x, and N their `order` under the ``measure``.
    """
    n, maximum = _summary(x)
    return stats.uniform(scale=float(2 ** (1 / order(n, measure)) * maximum))


def bayes_unrestricted(x: ArrayLike, measure: str | float = "fisher") -> stats.distributions.rv_frozen:
    r"""Posterior mean of the density, :math:`g(x) = \frac{N M^N}{(N+1)\max(x, M)^{N+1}}` (7.23).

    M is the largest of the draws, and N their `order` under the ``measure``. ``measure=0.0``, N = n - 1, is the best
    of all estimates that follow changes of the unit, and minimax with the error 1/(2n - 1) in units of the height.
    """
    n, maximum = _summary(x)
    return uniform_pareto(float(order(n, measure)), scale=maximum)


def project(distribution: stats.distributions.rv_frozen) -> stats.distributions.rv_frozen:
    r"""Uniform distribution nearest in :math:`L^2` to a non-increasing density on :math:`[0, \infty)` (7.24).

    Its end point solves :math:`G(a) - a\,g(a) = 1/2`. The left side is the distribution function of A when g
    is the mean of uniform densities on [0, A], so that the end point is the median of A.
    """
    if distribution.support()[0] != 0:
        raise ValueError("the density must live on [0, infinity)")

    def mixing_cdf(a: float) -> float:
        return float(distribution.cdf(a) - a * distribution.pdf(a))

    upper = float(distribution.median())
    while mixing_cdf(upper) < 0.5:
        upper *= 2
    lower = 0.0
    return stats.uniform(scale=optimize.bisect(lambda a: mixing_cdf(a) - 0.5, lower, upper, xtol=1e-14 * upper))


# ---- squared errors ----------------------------------------------------------------------------------------


def uniform_squared_error(end: ArrayLike, scale: float = 1.0) -> Array:
    r""":math:`\int(f_b - f_\theta)^2 = |b - \theta|/(b\theta)` for uniforms on [0, b] and [0, theta].

    b is the ``end`` of the estimate, theta the ``scale``.
    """
    end = np.asarray(end, dtype=float)
    return np.abs(end - scale) / (end * scale)


def unrestricted_squared_error(
    maximum: ArrayLike, n: ArrayLike, measure: str | float = "fisher", scale: float = 1.0
) -> Array:
    r"""Squared error of (7.23) when the maximum is M: with :math:`u = M/\theta` it is :math:`1/\theta` times

    .. math:: \frac{2N^2}{(N+1)(2N+1)\,u} - 1 + \frac{2u^N}{N+1}.

    The ``maximum`` is that of n draws, N their `order` under the ``measure``, the true end point theta the ``scale``.
    """
    N, u = order(n, measure), np.asarray(maximum, dtype=float) / scale
    return (2 * N**2 / ((N + 1) * (2 * N + 1) * u) - 1 + 2 * u**N / (N + 1)) / scale


def expected_squared_error(
    name: str,
    n: int,
    *,
    measure: str | float = "fisher",
    t1: float = 1.0,
    t2: float = np.inf,
    scale: float = 1.0,
) -> float:
    r"""Expectation of the integrated squared error over n draws from the uniform distribution on [0, scale].

    For n > 1 the error of an estimate on :math:`[0, cM]` with c >= 1 is

    .. math:: 1 - \frac{n}{c(n-1)} + \frac{2c^{-n}}{n-1},

    and that of the unrestricted one

    .. math:: \frac{2nN^2}{(n-1)(N+1)(2N+1)} - 1 + \frac{2n}{(N+1)(n+N)}.

    At n = 1 all are infinite, but for the Bayesian parameter estimate with finite ``t2``, which is integrated
    numerically.

    The ``name`` is one of `ESTIMATES`. The two distribution estimates have a ``measure``; the parameter estimate has t1
    and t2, with a closed form for ``t2=inf``, c = (n + t1)/(n + t1 - 1). Errors are in units of 1/scale."""
    if n < 1 or n != int(n):
        raise ValueError(f"n must be a positive whole number; got {n}")
    if not scale > 0:
        raise ValueError(f"scale must be positive; got {scale}")
    if name == "bayes_parameter" and np.isfinite(t2):
        return _parameter_error(n, t1, t2 * scale) / scale
    if name == "bayes_unrestricted":
        N = order(n, measure)
        spread = 2 * n * N**2 / ((n - 1) * (N + 1) * (2 * N + 1)) if n > 1 else np.inf
        return float(spread - 1 + 2 * n / ((N + 1) * (n + N))) / scale
    if name == "maximum_likelihood":
        c = 1.0
    elif name == "bayes_restricted":
        c = float(2 ** (1 / order(n, measure)))
    elif name == "bayes_parameter":
        c = float(parameter_mean(1.0, n, t1))
    else:
        raise ValueError(f"name must be one of {', '.join(ESTIMATES)}; got {name!r}")
    return np.inf if n == 1 else (1 - n / (c * (n - 1)) + 2 * c**-n / (n - 1)) / scale


def _parameter_error(n: int, t1: float, t2: float) -> float:
    """Quadrature over e with M = exp(-e/n), e standard exponential, between the integrand's kinks."""

    def end(e: ArrayLike) -> Array:
        return parameter_mean(np.exp(-np.asarray(e) / n), n, t1, t2)

    def integrand(e: Array) -> Array:
        return np.exp(-e) * uniform_squared_error(end(e))

    # beyond the knee, M < 1/(alpha t2), the prior takes over and the integrand falls like exp(-e)
    knee = max(n * np.log((n + t1) * t2), 0.0)
    far = min(knee, 40.0) + 60.0
    breaks = {0.0, min(knee, 40.0), far}
    if end(0.0) > 1 > end(far):
        breaks.add(optimize.brentq(lambda e: float(end(e)) - 1, 0.0, far, xtol=1e-14))
    pieces = itertools.pairwise(sorted(breaks))
    return float(sum(integrate.fixed_quad(integrand, a, b, n=200)[0] for a, b in pieces))
