"""A test whether calibration would gain more than chance: is the first update larger than if the model were right?"""

import warnings
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.constants import MOST_KEPT
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.objective import log_posterior_of
from rcpkg.checks import check_number
from rcpkg.families import ClosedFormClassifier, ConjugateClassifier, Family, Unsupported, one_hot, require
from rcpkg.linalg import EPS, jittered_cholesky
from rcpkg.rows import Rows

LEARNT = (
    "the structure is learnt from the rows that are tested, and p values are too large where its dependences are "
    "chance: for exact ones give a structure, such as parents_ of a model fitted to other rows"
)


class CalibrationTest(NamedTuple):
    """Outcome of `calibration_test`.

    A small p value says that calibration gains more on the training rows than chance explains: the posterior of the
    closed form is wrong, or it is right in the limit and the closed form, wrong about the features alone, wastes rows.
    A large one says that chance explains the gain, because the model is nearly right or because rows are few: it is no
    reason not to calibrate.

    Attributes
    ----------
    statistic : float
        T, about twice the log-likelihood of the labels that calibration would gain on these rows.
    dof : float
        Mean of T over redraws with the same statistics, if the model is right: that of a χ² with so many degrees of
        freedom. Where T is more than twice as large the calibrated model is, to first order, the better one on new rows
        as well.
    p_value : float
        Chance of a T as large if the model is right.

    References
    ----------
    This book's; draws given sufficient statistics: Lockhart, O'Reilly and Stephens (2007); score tests: Rao (1948).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import GaussianNB, calibration_test
    >>> X, y = load_iris(return_X_y=True)
    >>> test = calibration_test(GaussianNB(), X[50:], y[50:], random_state=0)
    >>> test.p_value < 0.05, test.statistic > 2 * test.dof  # the features depend on each other: calibrate
    (True, True)
    """

    statistic: float
    dof: float
    p_value: float


def calibration_test(
    estimator: ConjugateClassifier,
    X: ArrayLike | Rows,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_bootstrap: int = 199,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationTest:
    r"""Score test of the closed form: :math:`T = g^T (n C + J)^{-1} g`, g = s(X, Y − P) at its parameters.

    C is the conditional information of a row, J the covariance of the statistics of the rows, both without statistics
    that the classes share. `CalibrationTest` says what a small p value means, and a large one. If the model is right
    p ≤ α has at most the probability α, whatever the parameters and however few the rows are. A structure that is
    learnt is learnt again on each draw, with a warning: where it holds dependences by chance, p values are too large.

    Parameters
    ----------
    estimator : ConjugateClassifier
        An exponential-family model without a prior, such as ``QDA()``. The test is of maximum likelihood: a prior that
        ``fit`` would add because rows are few is left out, and so T is not that of the fitted model.
    sample_weight : array-like of shape (n,), optional
        Whole numbers of times that rows count.
    n_bootstrap : int, default=199
        Draws of the rows given their labels and s(X, Y), whose T* give the p value (1 + #{T* ≥ T}) / (n_bootstrap + 1).
    random_state : int or RandomState, optional
        For the draws.

    Raises
    ------
    InvalidStatistics
        Where the estimator asks for a prior or maximum likelihood does not exist, with what to do.
    ValueError
        For models that are no full exponential family, weights that are not whole, and too many rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, calibration_test
    >>> X, y = load_iris(return_X_y=True)
    >>> calibration_test(LDA(), X[50:, :2], y[50:], random_state=0).p_value > 0.05
    True
    """
    check_number("n_bootstrap", n_bootstrap, 1, integer=True)
    rng, null = check_random_state(random_state), null_of(estimator, X, y, sample_weight)
    if null.model.learns_structure:
        warnings.warn(LEARNT, stacklevel=2)
    drawn = np.array([null.drawn(rng) for _ in range(n_bootstrap)])
    p_value = (1 + np.count_nonzero(drawn >= null.least)) / (n_bootstrap + 1)
    return CalibrationTest(null.observed, float(drawn.mean()), float(p_value))


class Null:
    """A model without a prior on its rows: the statistic, and what it is on rows drawn given their statistics."""

    def __init__(self, model: Family, X: Array, y: NDArray[np.intp]) -> None:
        self.model, self.X, self.y = model, X, y
        self._learner = deepcopy(model) if model.learns_structure else model  # on each draw anew
        self.observed = self._statistic(X)

    @property
    def least(self) -> float:
        """The least T that is as large as the observed one, but for rounding."""
        return self.observed - np.sqrt(EPS) * (1 + self.observed)

    def drawn(self, rng: np.random.RandomState) -> float:
        """The statistic of rows with the same labels and statistics."""
        return self._statistic(self.model.redraw(self.X, self.y, rng))

    def _statistic(self, X: Array) -> float:
        model, Y = self._learner, one_hot(self.y, len(self.model.classes_))
        if model.learns_structure:
            model.learn_structure(Rows.from_arrays(X, self.y))
        encoded = model.encode(X)
        statistics = model.statistics(encoded, Y)
        P = np.exp(log_posterior_of(model, encoded, model.parameters(statistics)))
        return score_statistic(MinimalForm(model, encoded, statistics), P, Y)


def null_of(
    estimator: ConjugateClassifier,
    X: ArrayLike | Rows,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Null:
    """The null hypothesis of `calibration_test`, which says what is raised."""
    if not isinstance(estimator, ClosedFormClassifier):
        raise Unsupported(f"calibration_test needs a closed form such as QDA(); got {estimator!r}")
    require(estimator, "calibration_test")
    if estimator.priors is not None:
        raise ValueError(f"priors of the estimator must be None: its class weights must be free; got {estimator!r}")
    if isinstance(X, Rows):
        X, y, sample_weight, _ = X.without(y, sample_weight).only("calibration_test, which draws all rows anew,")
    classifier = clone(estimator)
    rows, labels, weight, _ = classifier._counting_rows(X, y, sample_weight)
    if weight is not None:
        repeated = np.repeat(np.arange(len(labels)), _repetitions(weight, rows.shape[1]))
        rows, labels = rows[repeated], labels[repeated]
    Y = one_hot(labels, len(classifier.classes_))
    classifier._prepare(rows)
    model = classifier.family_
    model.learn_structure(Rows.from_arrays(rows, labels))
    encoded = model.encode(rows)
    model.check_complete(encoded)
    model.check_full(encoded)
    statistics = model.statistics(encoded, Y)
    asked_for_prior = model.has_prior
    model.fix_prior(statistics, len(labels))
    if asked_for_prior:
        raise InvalidStatistics(
            "the test is of maximum likelihood, and the estimator asks for a prior: set its prior_strength (and "
            "class_prior_strength) to 0"
        )
    needed_prior, model = model.has_prior, model.without_prior()
    try:
        model.parameters(statistics)
    except InvalidStatistics as error:
        if needed_prior:
            raise InvalidStatistics(
                "the test is of maximum likelihood, which does not exist: leave out features that are constant or "
                "depend on others, and classes with fewer rows than parameters (LDA and GaussianNB take fewer than QDA)"
            ) from error
        raise
    return Null(model, rows, labels)


def _repetitions(weight: Array, n_features: int) -> NDArray[np.intp]:
    """Weights as whole numbers."""
    if np.any(weight % 1):
        raise ValueError("sample_weight must say how many times each row counts, in whole numbers")
    if weight.sum() > (most := MOST_KEPT // n_features):
        raise ValueError(
            f"sample_weight adds up to {weight.sum():.6g} rows, and at most {most:,.0f} are drawn anew: pass fewer"
        )
    return weight.astype(np.intp)


def score_statistic(form: MinimalForm, P: Array, W: Array) -> float:
    """T of `calibration_test`, for posteriors P of the closed form of labels or of weights W ≥ 0, both (n, r)."""
    features, weight, K, of_classes = form.features, W.sum(axis=1), form.width, slice(form.r * form.width)
    g, mean = ((part.T @ features).ravel() for part in (W - weight[:, None] * P, W))
    u = form.class_weights[of_classes]
    curvature = form.conditional_curvature(P, weight)[of_classes, of_classes] + np.outer(u, u)
    curvature -= np.outer(mean, mean) / weight.sum() ** 2
    for c in range(form.r):
        of_class = slice(c * K, (c + 1) * K)
        curvature[of_class, of_class] += (features * W[:, [c]]).T @ features / weight.sum()
    return float(g @ jittered_cholesky(curvature).solve(g[:, None])[:, 0])
