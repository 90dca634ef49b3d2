"""The other classifiers of a neighbourhood (thesis2007 ch. 3 and 6).

Local nearest means, local linear regression, SVM-KNN, and nearest neighbours smoothed for the least Bregman risk.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Classifier, GenerativeClassifier, constructed
from rcpkg.checks import check_choice, check_number, check_numbers, warn
from rcpkg.gaussians.scatter import gaussian_log_density
from rcpkg.linalg import EPS, Array, Index, one_hot, ratio
from rcpkg.local.base import PerClass, Pooled
from rcpkg.local.constants import LONGEST_RUN, LOST_DISTANCE
from rcpkg.rows import Rows, by_block

WEIGHTS = ("uniform", "distance", "kernel", "tricube")


def local_mean_squared_distance(Z: Array) -> Array:
    r"""Squared distance :math:`\|\frac1k\sum_{i\le k} z_i\|^2` to the local mean, for every k ≤ K.

    Z has shape (..., K, d), neighbours minus query, nearest first; the result (..., K).

    >>> local_mean_squared_distance(np.array([[1.0], [-1.0], [3.0]]))
    array([1., 0., 1.])
    """
    sizes = np.arange(1, Z.shape[-2] + 1)
    means = np.cumsum(Z, axis=-2) / sizes[:, None]
    return np.einsum("...kd,...kd->...k", means, means)


def linear_weights(X: Array, query: Array) -> Array:
    """Weights :math:`w^T = x^T (X^TX)^{+}X^T = x^T X^{+}` of local linear regression (thesis2007 §6.1.1), (..., k).

    The least-norm weights among those for which :math:`X^Tw` is nearest to x, the query (..., d), for neighbours X
    (..., k, d).

    >>> linear_weights(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0])).round(2)
    array([1. , 0.5])
    """
    return np.einsum("...d,...dk->...k", query, np.linalg.pinv(X, rtol=max(X.shape[-2:]) * EPS))


def neighbor_weights(distances: Array, scheme: str) -> Array:
    r"""Normalised weights (n, k) of k neighbours from distances :math:`d_1\le\dots\le d_{k+1}`, (n, k + 1), of k + 1.

    "uniform": 1/k; "distance": :math:`\propto 1/d_j` (all on the neighbours at distance zero, if any);
    "kernel": :math:`\propto\exp(-\frac12 d_j^2/d_k^2)`; "tricube": :math:`\propto(1-d_j^3/d_{k+1}^3)^3`.
    Where a ``scheme`` leaves no weight at all (every neighbour as far as the bandwidth) the weights are uniform.

    >>> neighbor_weights(np.array([[1.0, 3.0, 4.0]]), "distance")
    array([[0.75, 0.25]])
    """
    near, last, beyond = distances[:, :-1], distances[:, -2:-1], distances[:, -1:]
    if scheme == "uniform":
        raw = np.ones_like(near)
    elif scheme == "distance":
        coincide = near == 0
        raw = np.where(coincide.any(axis=1, keepdims=True), coincide, 1.0 / np.where(coincide, 1.0, near))
    elif scheme == "kernel":
        raw = np.exp(-0.5 * ratio(near, last) ** 2)
    else:
        raw = (1.0 - ratio(near, beyond) ** 3) ** 3
    raw = np.where(raw.sum(axis=1, keepdims=True) > 0, raw, 1.0)
    return raw / raw.sum(axis=1, keepdims=True)


def smoothed_probabilities(counts: Array, smoothing: ArrayLike = 1.0) -> Array:
    r"""Class probabilities (..., r) of least Bregman risk, thesis2007 (3.5), there with λ = 1.

    .. math:: \theta^*_g=(\alpha_g+\lambda_g)\big/\sum_h(\alpha_h+\lambda_h)

    ``counts`` are the weighted :math:`\alpha_g = k\sum_j w_j 1(y_j=g)` (3.6), (..., r); ``smoothing`` the λ, one
    number or r, pseudo-counts of the Dirichlet prior: 1 is Laplace's correction, 0 gives (3.1).

    >>> smoothed_probabilities(np.array([3.0, 0.0]))
    array([0.8, 0.2])
    """
    total = counts + np.asarray(smoothing, dtype=float)
    return total / total.sum(axis=-1, keepdims=True)


class LocalNearestMeans(PerClass, GenerativeClassifier):
    r"""The class whose mean of the k nearest rows is nearest.

    Probabilities, and with them costs, are those of spherical unit-variance Gaussians at the local means:

    .. math:: \log p(x,h)=-\tfrac12\|x-\bar x_h\|^2-\tfrac d2\log 2\pi-\log r.

    They depend on the units, and where these are so large that the constants leave distances no digits, ``fit`` warns.

    Parameters
    ----------
    n_neighbors, scoring, cost
        As in `LocalBDA`.

    Attributes
    ----------
    classes_, class_log_prior_, n_neighbors_, grid_, cv_errors_, cv_log_loss_
        As in `LocalBDA`.

    References
    ----------
    Mitani and Hamamoto (2006); thesis2007 §6.1.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LocalNearestMeans
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocalNearestMeans(n_neighbors=3).fit(X[::2], y[::2])
    >>> model.predict_path(X[[1, 71]], sizes=[1, 3, 5])  # several k at once
    array([[0, 0, 0],
           [1, 1, 1]])
    """

    def _index(self, X: Array) -> None:
        super()._index(X)
        spread = X.var(axis=0).sum()
        if 0 < spread < LOST_DISTANCE:
            warn(
                f"squared distances, {spread:.2g} from the mean of the rows, are lost beside constants of densities "
                "with unit variances: rescale X, for example by StandardScaler"
            )

    def _scores(self, Z: Array) -> Array:
        return gaussian_log_density(Z.shape[-1], 0.0, local_mean_squared_distance(Z))


@constructed
class LocalLinear(Pooled, GenerativeClassifier):
    """Local linear regression of the class indicators, the "pinv" classifier.

    The k nearest rows get the weights :math:`w^T = x^T X^{+}` and x the class of most weight. A one is appended to
    every row, as in the source's Table 6.1. ``predict_proba`` is the weight of each class, clipped at zero and
    normalised.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the one is appended.
    n_neighbors : int, "cv" or sequence of int, default=5
        Number k of neighbours of all classes together. Of several sizes, leave-one-out chooses the best; "cv" tries
        1, ..., 20, 30, ..., 100 up to n - 1.
    scoring, cost
        As in `LocalBDA`.

    Attributes
    ----------
    classes_, class_log_prior_, n_neighbors_, grid_, cv_errors_, cv_log_loss_
        As in `LocalBDA`.

    References
    ----------
    thesis2007 §6.1.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LocalLinear
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocalLinear(n_neighbors=20).fit(X[::2], y[::2])
    >>> model.predict_proba(X[[71, 107]]).round(2)
    array([[0.  , 0.95, 0.05],
           [0.  , 0.11, 0.89]])
    """

    fit_intercept: bool = True

    def _evidence(self, Q: Array, sizes: Sequence[int], left_out: Index | None) -> Array:
        _, rows = self._search.query(Q, min(max(sizes), self._largest - (left_out is not None)), left_out)
        X, labels = self._search.X[rows], one_hot(self._codes[rows], len(self.classes_))
        if self.fit_intercept:
            X = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
            Q = np.concatenate([Q, np.ones((len(Q), 1))], axis=1)
        weight = [np.einsum("nk,nkh->nh", linear_weights(X[:, :k], Q), labels[:, :k]) for k in sizes]
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.stack(weight, axis=2), 0.0))


@constructed
class BregmanKNN(Pooled, GenerativeClassifier):
    r"""Nearest neighbours with class probabilities of least expected Bregman divergence.

    .. math:: \theta^*_g &= \frac{\alpha_g + \lambda_g}{k + \sum_h\lambda_h},\quad
        \alpha_g = k\sum_{j=1}^k w_j 1(y_j=g), \\ \hat Y &= \arg\min_g\sum_h C(g,h)\,\theta^*_h

    Laplace's correction of a weighted vote. Neighbours say nothing of p(x), so ``predict_joint_log_proba`` is the log
    posterior.

    Parameters
    ----------
    weights : {"uniform", "distance", "kernel", "tricube"}, default="uniform"
        The :math:`w_j`: 1/k; in proportion to 1/distance; a Gaussian or a tricube kernel of it. See `neighbor_weights`.
    smoothing : float or array of shape (r,), default=1.0
        Pseudo-counts λ ≥ 0 of the classes; 0 is the usual nearest-neighbour estimate (3.1).
    n_neighbors, scoring, cost
        As in `LocalLinear`.

    Attributes
    ----------
    classes_, class_log_prior_, n_neighbors_, grid_, cv_errors_, cv_log_loss_
        As in `LocalBDA`.

    References
    ----------
    thesis2007 ch. 3, (3.5)-(3.7).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import BregmanKNN
    >>> X, y = load_iris(return_X_y=True)
    >>> cost = [[0, 1, 1], [1, 0, 9], [1, 1, 0]]
    >>> model = BregmanKNN(n_neighbors=5, cost=cost).fit(X, y)
    >>> model.predict_proba(X[[106]])
    array([[0.125, 0.625, 0.25 ]])
    >>> model.predict(X[[106]])  # to take class 2 for class 1 costs 9
    array([2])
    """

    weights: Literal["uniform", "distance", "kernel", "tricube"] = "uniform"
    smoothing: ArrayLike = 1.0

    def _index(self, X: Array) -> None:
        smoothing = check_numbers("smoothing", self.smoothing, self)
        if smoothing.shape not in [(), (len(self.classes_),)]:
            raise ValueError(
                f"smoothing must be one number or {len(self.classes_)}, one a class; got {smoothing.shape}"
            )
        if np.any(smoothing < 0):
            raise ValueError("smoothing must hold non-negative numbers")
        check_choice("weights", self.weights, WEIGHTS)
        super()._index(X)

    def _evidence(self, Q: Array, sizes: Sequence[int], left_out: Index | None) -> Array:
        available = self._largest - (left_out is not None)
        distance, rows = self._search.query(Q, min(max(sizes) + 1, available), left_out)
        labels = one_hot(self._codes[rows], len(self.classes_))
        evidence = np.empty((len(Q), len(self.classes_), len(sizes)))
        for i, k in enumerate(np.minimum(sizes, available)):
            # with every row a neighbour there is none beyond, and the last one's distance is the bandwidth
            bandwidth = distance[:, [min(k, available - 1)]]
            weights = neighbor_weights(np.hstack([distance[:, :k], bandwidth]), self.weights)
            counts = k * np.einsum("nk,nkh->nh", weights, labels[:, :k])
            with np.errstate(divide="ignore"):
                evidence[:, :, i] = np.log(smoothed_probabilities(counts, self.smoothing))
        return evidence


@constructed
class SVMKNN(Pooled, Classifier):
    """A linear support vector machine on the k nearest rows.

    Neighbours of one class decide at once. Otherwise classes meet in pairs on a decision DAG: the first
    against the last of those present, the loser leaves. With costs, a pair trains with weights in the ratio of its
    losses. There are no probabilities.

    Parameters
    ----------
    C : float, default=1.0
        Penalty > 0 of `sklearn.svm.SVC`; 1 is libsvm's default, as in the source.
    n_neighbors, cost
        As in `LocalLinear`.

    Attributes
    ----------
    classes_, class_log_prior_, n_neighbors_, grid_, cv_errors_
        As in `LocalBDA`.

    References
    ----------
    Zhang et al. (2006); thesis2007 §6.1.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import SVMKNN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMKNN(n_neighbors=10).fit(X[::2], y[::2])
    >>> model.predict(X[[1, 71, 107]])
    array([0, 1, 2])
    """

    C: float = 1.0
    scoring: str = field(init=False, default="error")  # without probabilities there is no other choice of k

    def _index(self, X: Array) -> None:
        check_number("C", self.C, 0, above=True)
        super()._index(X)

    @by_block
    def predict(self, X: ArrayLike | Rows) -> NDArray:
        """Class labels, shape (n,)."""
        check_is_fitted(self)
        return self.predict_path(X, [self.n_neighbors_])[:, 0]

    def _left_out(self, Q: Array, sizes: Sequence[int], left_out: Index) -> tuple[Index, None]:
        return self._decide(Q, sizes, left_out), None

    def _decide(self, Q: Array, sizes: Sequence[int], left_out: Index | None) -> Index:
        _, rows = self._search.query(Q, min(max(sizes), self._largest - (left_out is not None)), left_out)
        return np.array([[self._tournament(x, near[:k]) for k in sizes] for x, near in zip(Q, rows)])

    def _tournament(self, x: Array, rows: Index) -> int:
        present = list(np.unique(self._codes[rows]))
        if len(present) == 1:
            return int(present[0])
        stays = self._pairs_at_once(x, rows, present) if self._cost is None else partial(self._weighted_pair, x, rows)
        while len(present) > 1:
            present.remove(present[-1] if stays(present[0], present[-1]) else present[0])
        return int(present[0])

    def _pairs_at_once(self, x: Array, rows: Index, present: list[int]) -> Callable[[int, int], bool]:
        """Whether the first of two classes stays; libsvm trains all pairs in one call."""
        margins = self._margins(x, rows, decision_function_shape="ovo")
        if len(present) == 2:  # scikit-learn turns the sign of a single pair
            margins = -margins
        table = dict(zip(combinations(present, 2), margins, strict=True))
        return lambda first, last: table[first, last] >= 0

    def _weighted_pair(self, x: Array, rows: Index, first: int, last: int) -> bool:
        """Whether the first class stays at x; it does in a draw."""
        # of being taken for the other
        loss = np.maximum(0.0, self._cost[[last, first], [first, last]] - self._cost[[first, last], [first, last]])
        if loss.min() == 0:
            return loss[1] == 0
        loss /= loss.mean()
        rows = rows[np.isin(self._codes[rows], (first, last))]
        return self._margins(x, rows, class_weight={first: loss[0], last: loss[1]})[0] <= 0

    def _margins(self, x: Array, rows: Index, **settings: Any) -> Array:
        """Decision values at x. The origin is the mean of the rows: far from it inner products lose their digits."""
        from sklearn.svm import SVC  # here, as it takes long to import

        machine = SVC(kernel="linear", C=self.C, max_iter=LONGEST_RUN, random_state=0, **settings)
        near = self._search.X[rows]
        origin = near.mean(axis=0)
        try:
            machine.fit(near - origin, self._codes[rows])
        except ValueError as error:
            size = np.abs(near - origin).max()
            raise ValueError(f"neighbours in X lie {size:.3g} apart, too far for libsvm: rescale X") from error
        return np.ravel(machine.decision_function((x - origin)[None]))
