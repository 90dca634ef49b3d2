"""A test whether calibration has anything to gain over the closed form: is the first update more than noise?"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.utils import check_random_state

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.objective import log_posterior_of
from rcpkg.checks import check_number, check_weights
from rcpkg.families import ConjugateClassifier, Statistics, one_hot, require
from rcpkg.linalg import jittered_cholesky

RESOLVED = 1e-8  # share of what a row does to g that must be left of it; the rest is rounding
JITTER = (1e-12, 1e-11, 1e-10)  # of a correlation matrix, which may be singular within rounding
ROWS_A_DEGREE = 4
LARGEST_SAMPLE = 10**7  # rows of a sample that is drawn
DRAWS = 20  # attempts at each row of the bootstrap, for models whose closed form need not exist


class CalibrationTest(NamedTuple):
    r"""Outcome of `calibration_test`: the statistic T, the rank of its covariance, and the p value.

    g is the first update of calibration and :math:`u_i = s(x_i, Y_i - P_i) - C I^{-1} (s(x_i, y_i) - \mu)` what row i
    does to it and to the closed form at which it is taken, with the conditional information C of the rows and the joint
    information I; if the model holds, u has the covariance :math:`C - C I^{-1} C`. Where no posterior
    of the family is better than the limit of the closed form, g has mean zero to first order, and T a χ² distribution
    as n grows, whether or not the model holds otherwise. With fewer than four rows for each of the (r − 1) K free
    components of g, of r classes and K coefficients of a score, no covariance is estimated: T is
    :math:`g^T I^{-1} g / n`. Its small p values say that the model is wrong, perhaps only in its distribution of X,
    with a posterior that is right.

    Attributes
    ----------
    statistic : float
        T.
    dof : int
        Degrees of freedom.
    p_value : float
        Chance of a statistic as large if the model holds.
    """

    statistic: float
    dof: int
    p_value: float


def calibration_test(
    estimator: ConjugateClassifier,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bootstrap: int = 199,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationTest:
    r"""Score test of the closed form: :math:`T = g^T (\sum_i w_i u_i u_i^T)^+ g`, g = s(X, Y − P) at its parameters.

    A small p value speaks for calibration, a large one not against it. `CalibrationTest` says which T is for few rows.

    Parameters
    ----------
    estimator : ConjugateClassifier
        An exponential-family model without a prior, such as ``QDA()``.
    sample_weight : array-like of shape (n,), optional
        Numbers of times that rows count.
    n_bootstrap : int, default=199
        Samples drawn from the fitted model, whose T* give the p value (1 + #{T* ≥ T}) / (n_bootstrap + 1); 0 takes it
        from the χ² distribution, which is off in small samples.
    random_state : int or RandomState, optional
        For the samples.

    Raises
    ------
    InvalidStatistics
        Where the estimator asks for a prior or maximum likelihood does not exist, with what to do.
    ValueError
        For models that are no full exponential family (networks that are not decomposable, documents of unequal
        lengths), and for rows too many to be drawn anew, or too few for the χ² distribution.

    References
    ----------
    This book's; score tests: Rao (1948), Hausman (1978).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, calibration_test
    >>> X, y = load_iris(return_X_y=True)
    >>> outcome = calibration_test(LDA(), X[50:, :2], y[50:], random_state=0)
    >>> outcome.dof, outcome.p_value > 0.05
    (3, True)
    """
    check_number("n_bootstrap", n_bootstrap, 0, integer=True)
    rng, null = check_random_state(random_state), _null_of(estimator, X, y, sample_weight)
    p_value = null.bootstrap_p_value(n_bootstrap, rng) if n_bootstrap else null.asymptotic_p_value()
    return CalibrationTest(*null.observed, p_value)


class Null:
    """The closed form of a sample, and what the statistic is on it and on samples of the same size drawn from it."""

    def __init__(self, model: ConjugateClassifier, X: Any, y: NDArray[np.intp], weight: Array) -> None:
        self.n, self.r = round(weight.sum()), len(model.classes_)
        statistics = model.statistics(X, one_hot(y, self.r) * weight[:, None])
        asked_for_prior = model.has_prior
        model.settle(statistics, int(np.count_nonzero(weight)))
        self.model = model.without_prior()
        if asked_for_prior:
            raise InvalidStatistics(
                "the test is of maximum likelihood, and the estimator asks for a prior: set its prior_strength (and "
                "class_prior_strength) to 0"
            )
        if model.has_prior and not _exists(self.model, statistics):
            raise InvalidStatistics(
                "the test is of maximum likelihood, which does not exist: leave out features that are constant or "
                "depend on others, and classes with fewer rows than parameters (LDA and GaussianNB take fewer than QDA)"
            )
        self.model.set_statistics(statistics)
        self.observed = self._statistic(X, y, weight)
        if hasattr(self.model, "feature_names_in_"):
            del self.model.feature_names_in_  # rows drawn from the model have none

    def asymptotic_p_value(self) -> float:
        """That of the χ² distribution."""
        statistic, dof = self.observed
        if self.n < ROWS_A_DEGREE * dof:
            raise ValueError(
                f"n_bootstrap must be positive with {self.n} rows for {dof} degrees of freedom: the χ² distribution "
                "does not hold"
            )
        return float(chi2.sf(statistic, dof)) if dof else 1.0

    def bootstrap_p_value(self, n_bootstrap: int, rng: np.random.RandomState) -> float:
        """Rank of the statistic among those of samples drawn from the model."""
        if self.n > LARGEST_SAMPLE:
            raise ValueError(
                f"n_bootstrap must be 0 with {self.n:.6g} rows, as sample_weight counts them: samples of so many are "
                "not drawn, and the χ² distribution holds"
            )
        least = self.observed[0] * (1 - RESOLVED)
        return (1 + sum(self.drawn(rng) >= least for _ in range(n_bootstrap))) / (n_bootstrap + 1)

    def drawn(self, rng: np.random.RandomState) -> float:
        """The statistic of a sample drawn from the model; of another one where its closed form does not exist."""
        for _ in range(DRAWS):
            X, y = self.model.sample(self.n, rng)
            labels = np.searchsorted(self.model.classes_, y)
            try:
                return self._statistic(self.model.encode(self.model.check_X(X)), labels, np.ones(self.n))[0]
            except InvalidStatistics:
                continue
        raise InvalidStatistics(
            f"{DRAWS} samples of {self.n} rows drawn from the fitted model had no closed form: some class has too few "
            "rows to be tested; leave it out, or set n_bootstrap=0"
        )

    def _statistic(self, X: Any, y: NDArray[np.intp], weight: Array) -> tuple[float, int]:
        """T and its degrees of freedom, at the closed form of these rows."""
        model = self.model
        statistics = model.statistics(X, one_hot(y, self.r) * weight[:, None])
        parameters = model.parameters(statistics)
        P = np.exp(log_posterior_of(model, X, parameters))
        return score_statistic(MinimalForm(model, X, statistics), parameters, P, y, weight)


def _exists(model: ConjugateClassifier, statistics: Statistics) -> bool:
    """Whether statistics give parameters."""
    try:
        model.parameters(statistics)
    except InvalidStatistics:
        return False
    return True


def _null_of(estimator: ConjugateClassifier, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Null:
    """The closed form of validated rows."""
    require(estimator, "calibration_test")
    if estimator.priors is not None:
        raise ValueError(f"priors of the estimator must be None: its class weights must be free; got {estimator!r}")
    model = clone(estimator)
    rows, labels = model.check_X_y(X, y)
    weight = check_weights(sample_weight, len(labels))
    if weight.sum() < len(model.classes_):
        raise ValueError(
            f"sample_weight must say how many times each row counts; it adds up to {weight.sum():.6g} for "
            f"{len(model.classes_)} classes"
        )
    model.prepare(rows)
    model.learn_structure(rows, one_hot(labels, len(model.classes_)) * weight[:, None])
    encoded = model.encode(rows)
    model.check_complete(encoded)
    model.check_full(encoded)
    return Null(model, encoded, labels, weight)


def score_statistic(
    form: MinimalForm, parameters: Any, P: Array, y: NDArray[np.intp], weight: Array
) -> tuple[float, int]:
    """T of `calibration_test` and its rank, for posteriors P of the closed form; the first class is left out of g, as
    its part of g is what those of the others lack to zero."""
    K, others = form.width, slice(form.width, form.r * form.width)
    root = np.sqrt(weight)
    miss = (one_hot(y, form.r) - P)[:, 1:]
    own = (miss[:, :, None] * form.features[:, None]).reshape(len(y), -1)
    g = weight @ own
    information = form.information(parameters) + np.outer(form.class_weights, form.class_weights)
    # a statistic that does not vary (a state of probability zero) takes no part, whatever its curvature
    solve = jittered_cholesky(information, JITTER).solve
    if weight.sum() < ROWS_A_DEGREE * len(g):
        whole = np.concatenate([-g.reshape(-1, K).sum(axis=0), g, np.zeros(form.size - form.r * K)])
        return float(whole @ solve(whole[:, None])[:, 0] / weight.sum()), len(g)
    pull = solve(form.conditional_curvature(P, weight)[:, others]).T / weight.sum()
    u = own - form.times_statistics(pull, y, slice(None)).T + pull @ form.mean(parameters)
    scale = np.linalg.norm(root[:, None] * own, axis=0)
    u = root[:, None] * u / np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(u.T @ u)
    resolved = values > RESOLVED
    along = (vectors.T @ (root @ u))[resolved]
    return float(np.sum(along**2 / values[resolved])), int(resolved.sum())
