"""A test whether calibration has anything to gain over the closed form: is the first update more than noise?"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from rcpkg.base import Array, InvalidStatistics, check_number, log_posterior
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.generative import ConjugateClassifier, one_hot

RESOLVED = 1e-8  # eigenvalues of a correlation matrix that count, relative to the largest; the rest is rounding
DRAWS = 20  # attempts at each row of the bootstrap, for models whose closed form need not exist


class CalibrationTest(NamedTuple):
    """Outcome of `calibration_test`."""

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
    r"""Score test of the closed form: :math:`T = g^T (C - C I^{-1} C)^+ g`, g = s(X, Y − P) at maximum likelihood.

    If the model holds, the first update g of calibration has mean zero and the covariance :math:`C - C I^{-1} C`, with
    the conditional information C and the joint information I of the rows, and T has a χ² distribution as n grows. A
    small p value says that the class probabilities of the closed form are wrong in a way that calibration mends; a
    model that is wrong only in what posteriors do not depend on passes.

    Parameters
    ----------
    estimator : ConjugateClassifier
        An exponential-family model without a prior, such as ``QDA()``; it is cloned.
    X, y : array-like
        Rows and labels.
    sample_weight : array-like of shape (n,), optional
        Numbers of times that rows count.
    n_bootstrap : int, default=199
        Samples drawn from the fitted model, whose T give the p value (1 + #{T* ≥ T}) / (n_bootstrap + 1); 0 takes it
        from the χ² distribution, which rejects too often in small samples.
    random_state : int or RandomState, optional
        For the samples.

    Returns
    -------
    CalibrationTest
        statistic T, dof (the rank of its covariance) and p_value.

    Raises
    ------
    InvalidStatistics
        Where maximum likelihood does not exist, with what to do.

    References
    ----------
    This book's; score tests: Rao (1948), Hausman (1978).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, calibration_test
    >>> X, y = load_iris(return_X_y=True)
    >>> found = calibration_test(LDA(), X[50:, :2], y[50:], random_state=0)
    >>> found.dof, found.p_value > 0.05
    (3, True)
    """
    check_number("n_bootstrap", n_bootstrap, 0, integer=True)
    if not isinstance(estimator, ConjugateClassifier) or estimator.priors is not None:
        raise ValueError(
            f"estimator must be an exponential family of rcpkg whose class weights are free (priors=None); got "
            f"{estimator!r}"
        )
    rng = check_random_state(random_state)
    model = clone(estimator)
    rows, labels = model._check_Xy(X, y)
    weight = np.ones(len(labels))
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, rows, dtype=float, ensure_non_negative=True)
    model._prepare(rows)
    encoded = model._encode(rows)
    model._check_complete(encoded)
    null = Null(model, encoded, labels, weight)
    statistic, dof = null.observed
    if n_bootstrap == 0:
        return CalibrationTest(statistic, dof, float(chi2.sf(statistic, dof)) if dof else 1.0)
    drawn = [null.drawn(rng) for _ in range(n_bootstrap)]
    above = sum(value >= statistic * (1 - RESOLVED) for value in drawn)
    return CalibrationTest(statistic, dof, (1 + above) / (n_bootstrap + 1))


class Null:
    """The closed form of a sample, and what the statistic is on it and on samples of the same size drawn from it."""

    def __init__(self, model: ConjugateClassifier, X: Any, y: NDArray[np.intp], weight: Array) -> None:
        self.model, self.n, self.r = model, int(round(weight.sum())), len(model.classes_)
        statistics = model.statistics(X, one_hot(y, self.r) * weight[:, None])
        model._settle(statistics)
        if model.has_prior:
            raise InvalidStatistics(
                "the test is of maximum likelihood: set the priors of the estimator to zero, and leave out features that "
                "are constant or depend on others, and classes with fewer rows than parameters (LDA or GaussianNB ask "
                "for less than QDA)"
            )
        model._set(statistics)
        self.observed = self._statistic(X, y, weight)

    def drawn(self, rng: np.random.RandomState) -> float:
        """The statistic of a sample drawn from the model; of another one where its closed form does not exist."""
        for _ in range(DRAWS):
            X, y = self.model.sample(self.n, rng)
            labels = np.searchsorted(self.model.classes_, y)
            try:
                return self._statistic(self.model._encode(self.model._check_X(X)), labels, np.ones(self.n))[0]
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
        log_P = log_posterior(model.log_joint(X, parameters), model.log_class_probabilities(parameters))
        form = MinimalForm(model, X, statistics)
        return score_statistic(form.features, form.shared_features, np.exp(log_P), y, weight)


def score_statistic(
    features: Array, shared: Array, P: Array, y: NDArray[np.intp], weight: Array
) -> tuple[float, int]:
    r"""T = ḡᵀ(C⁻¹ + R⁻¹)ḡ and its rank, from features f (n, K), shared ones (n, l) and posteriors P (n, r).

    ḡ are the sums of (Y_iy − P_iy) f_i for each class but the first, C their conditional covariance
    Σ_i Cov(e_y ⊗ f_i | x_i), and R the scatter of P_iy f_i about their regression on (f_i, shared_i). With
    I = C + Cov E(s | x), the law of total covariance on the rows, (C − C I⁻¹ C)⁻¹ is C⁻¹ + R⁻¹ there.
    """
    r, K = P.shape[1], features.shape[1]
    root = np.sqrt(weight)[:, None]
    own = [P[:, [c]] * features for c in range(1, r)]
    expected = np.hstack(own)
    gradient = np.concatenate([((y == c) - P[:, c]) * weight @ features for c in range(1, r)])
    C = np.zeros((len(gradient), len(gradient)))
    for a in range(1, r):
        block = slice((a - 1) * K, a * K)
        C[block] = -(own[a - 1] * weight[:, None]).T @ expected
        C[block, block] += (own[a - 1] * weight[:, None]).T @ features
    Q, _ = np.linalg.qr(root * np.hstack([features, shared]))
    residual = root * expected
    residual -= Q @ (Q.T @ residual)
    scale = np.sqrt(((root * expected) ** 2).sum(axis=0))
    scale[scale == 0] = 1.0
    of_C, _ = _resolved(C / np.outer(scale, scale))
    of_R, kept = _resolved((residual / scale).T @ (residual / scale))
    g = gradient / scale
    # what R does not resolve is linear in the features: there the closed form has the rows' own class frequencies
    inside = kept @ (kept.T @ g)
    return float(inside @ of_C @ inside + inside @ of_R @ inside), kept.shape[1]


def _resolved(M: Array) -> tuple[Array, Array]:
    """The pseudo-inverse of a symmetric matrix, and the eigenvectors that it has been made of."""
    values, vectors = np.linalg.eigh(M)
    vectors = vectors[:, values > RESOLVED * max(values.max(initial=0.0), np.finfo(float).tiny)]
    values = values[values > RESOLVED * max(values.max(initial=0.0), np.finfo(float).tiny)]
    return (vectors / values) @ vectors.T, vectors
