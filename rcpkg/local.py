"""Classifiers of a neighbourhood (thesis2007 ch. 3 and 6).

Local BDA at every neighbourhood size at once, local nearest means, local linear regression, SVM-KNN, and
nearest neighbours smoothed for the least Bregman risk. Pure functions of arrays first; the estimators below
find the neighbours, call them, and choose k by leave-one-out.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.spatial.distance import cdist
from scipy.special import gammaln
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, check_cost, check_number, check_numbers, log_posterior

Index = NDArray[np.intp]

GRID = (*range(1, 21), *range(30, 101, 10))
"""Neighbourhood sizes tried by ``n_neighbors="cv"``: those of thesis2007 §6.3."""

WEIGHTS = ("uniform", "distance", "kernel", "tricube")

_BATCH_BYTES = 32 * 2**20  # working arrays of one batch of queries: memory does not grow with their number
_CACHE_BYTES = 2**22  # neighbours gathered at a time, to stay in the processor's cache
_GRAM_FEATURES = 128  # from so many on, looking inner products up is cheaper than forming them
_GRAM_ROUNDING = 1e-12  # largest error that is accepted for it, beside the eigenvalues of I + G, which are at least 1


# --------------------------------------------------------------------------------------------- pure functions


def local_bda_log_density(Z: Array) -> Array:
    r"""Log predictive densities of local BDA for every neighbourhood size, from one Cholesky factor.

    For the k nearest rows of a class, :math:`z_i = x_i - x`, and the seed B = I, thesis2007 (6.1) is

    .. math:: \log E[N](x) = \log\frac{\Gamma(\frac{k+d+4}{2})}{\pi^{d/2}\,\Gamma(\frac{k+4}{2})}
        - \tfrac d2\log\tfrac{k+1}{k} - \tfrac{k+d+4}{2}\log\Big[\tfrac{k}{k+1}\big(1+\tfrac1{s_k}\big)\Big]
        - \tfrac12\Big[\log|I_k+G_k| + \log\tfrac{s_k}{k}\Big],

    :math:`G_k = Z_k Z_k^T` and :math:`s_k = 1^T(I_k+G_k)^{-1}1`. The factor of a leading block is the leading
    block of the factor, so all k ≤ K cost one K×K Cholesky factor and no d×d matrix.

    Parameters
    ----------
    Z : array of shape (..., K, d)
        Neighbours minus query, nearest first.

    Returns
    -------
    array of shape (..., K), entry k-1 for the size k

    Raises
    ------
    numpy.linalg.LinAlgError
        If B = I is lost in rounding beside the spread of the neighbours.
    """
    *batch, K, d = Z.shape
    bordered = np.empty((*batch, K + 1, K + 1))
    np.matmul(Z, Z.swapaxes(-1, -2), out=bordered[..., :K, :K])
    return _log_density_of_gram(bordered, d)


def _log_density_of_gram(bordered: Array, d: int) -> Array:
    """`local_bda_log_density` with G in the leading blocks of ``bordered`` (..., K+1, K+1), which is overwritten."""
    K = bordered.shape[-1] - 1
    sizes, diagonal = np.arange(1, K + 1), np.arange(K)
    bordered[..., diagonal, diagonal] += 1.0
    # the border of ones makes the factor's last row w = L^{-1} 1; s_K <= K, so K + 1 keeps it definite
    bordered[..., :K, K] = 1.0
    bordered[..., K, K] = K + 1.0
    _factor_in_place(bordered.reshape(-1, K + 1, K + 1))
    log_det = 2.0 * np.cumsum(np.log(bordered[..., diagonal, diagonal]), axis=-1)
    s = np.cumsum(bordered[..., :K, K] ** 2, axis=-1)
    power = (sizes + d + 4) / 2
    constant = gammaln(power) - gammaln((sizes + 4) / 2) - d / 2 * np.log(np.pi * (sizes + 1) / sizes)
    return constant - power * np.log(sizes / (sizes + 1) * (1 + 1 / s)) - 0.5 * (log_det + np.log(s / sizes))


class _SharedGram:
    """Local BDA at many queries from one Gram matrix of the class: z_i'z_j = x_i'x_j - x_i'x - x_j'x + x'x.

    Looking inner products up costs K², forming them K²d. The expansion rounds like eps times squared distances;
    rows and queries are centred to keep these small, and ``rounding`` bounds the error of the entries of G.
    """

    def __init__(self, X: Array, Q: Array):
        origin = X.mean(axis=0)
        X, Q = X - origin, Q - origin
        self.n, self.d = X.shape
        self.gram = X @ X.T
        squares = np.einsum("nd,nd->n", Q, Q)
        self.cross = Q @ X.T - 0.5 * squares[:, None]
        reach = np.sqrt(self.gram.diagonal().max()) + np.sqrt(squares.max())
        self.rounding = np.finfo(float).eps * reach**2

    def log_density(self, neighbors: Index, queries: Index) -> Array:
        """As `local_bda_log_density`, (m, K), for neighbours (m, K) of the queries (m,)."""
        rows = np.hstack([neighbors, neighbors[:, :1]])  # room for the border
        cross = self.cross[queries[:, None], rows]
        bordered = self.gram.take(rows[:, :, None] * self.n + rows[:, None, :])
        bordered -= cross[:, :, None]
        bordered -= cross[:, None, :]
        return _log_density_of_gram(bordered, self.d)


def _factor_in_place(A: Array) -> None:
    """Overwrite the upper triangle of each A[i], shape (m, m), by its transposed Cholesky factor."""
    for matrix in A:  # numpy's batched routine copies and transposes: a third slower
        _, info = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(
                "the seed vanishes beside the spread of the neighbours; standardise X or raise the seed"
            )


def local_mean_squared_distance(Z: Array) -> Array:
    r"""Squared distance :math:`\|\frac1k\sum_{i\le k} z_i\|^2` to the local mean, for every k ≤ K.

    Z has shape (..., K, d), neighbours minus query, nearest first; the result (..., K).
    """
    sizes = np.arange(1, Z.shape[-2] + 1)
    means = np.cumsum(Z, axis=-2) / sizes[:, None]
    return np.einsum("...kd,...kd->...k", means, means)


def linear_weights(X: Array, query: Array) -> Array:
    r"""Weights :math:`w^T = x^T (X^TX)^{+}X^T = x^T X^{+}` of local linear regression (thesis2007 §6.1.1).

    The least-norm weights among those for which :math:`X^Tw` is nearest to x.

    Parameters
    ----------
    X : array of shape (..., k, d)
        Neighbours.
    query : array of shape (..., d)

    Returns
    -------
    array of shape (..., k)
    """
    rtol = max(X.shape[-2:]) * np.finfo(float).eps
    return np.einsum("...d,...dk->...k", query, np.linalg.pinv(X, rtol=rtol))


def neighbor_weights(distances: Array, scheme: str) -> Array:
    r"""Normalised weights of k neighbours from the distances :math:`d_1\le\dots\le d_{k+1}` of k + 1.

    "uniform": 1/k; "distance": :math:`\propto 1/d_j` (all on the neighbours at distance zero, if any);
    "kernel": :math:`\propto\exp(-\frac12 d_j^2/d_k^2)`; "tricube": :math:`\propto(1-d_j^3/d_{k+1}^3)^3`.
    Where a scheme leaves no weight at all (every neighbour as far as the bandwidth) the weights are uniform.

    Parameters
    ----------
    distances : array of shape (n, k + 1)
    scheme : {"uniform", "distance", "kernel", "tricube"}

    Returns
    -------
    array of shape (n, k)
    """
    near, last, beyond = distances[:, :-1], distances[:, -2:-1], distances[:, -1:]
    if scheme == "uniform":
        raw = np.ones_like(near)
    elif scheme == "distance":
        coincide = near == 0
        raw = np.where(coincide.any(axis=1, keepdims=True), coincide, 1.0 / np.where(coincide, 1.0, near))
    elif scheme == "kernel":
        raw = np.exp(-0.5 * _ratio(near, last) ** 2)
    else:
        raw = (1.0 - _ratio(near, beyond) ** 3) ** 3
    raw = np.where(raw.sum(axis=1, keepdims=True) > 0, raw, 1.0)
    return raw / raw.sum(axis=1, keepdims=True)


def _ratio(distance: Array, bandwidth: Array) -> Array:
    return distance / np.where(bandwidth > 0, bandwidth, 1.0)


def smoothed_probabilities(counts: Array, smoothing: ArrayLike = 1.0) -> Array:
    r"""Class probabilities of least Bregman risk, thesis2007 (3.5), there with λ = 1.

    .. math:: \theta^*_g=(\alpha_g+\lambda_g)\big/\sum_h(\alpha_h+\lambda_h)

    Parameters
    ----------
    counts : array of shape (..., r)
        Weighted counts :math:`\alpha_g = k\sum_j w_j 1(y_j=g)` (3.6).
    smoothing : float or array of shape (r,)
        Pseudo-counts λ, the parameters of the Dirichlet prior: 1 is Laplace's correction, 0 gives (3.1).

    Returns
    -------
    array of shape (..., r)
    """
    total = counts + np.asarray(smoothing, dtype=float)
    return total / total.sum(axis=-1, keepdims=True)


def least_cost(P: Array, cost: Array | None) -> Index:
    r"""Class of least expected cost (3.2), :math:`\arg\min_g \sum_h C(g,h)P_h`, on axis 1; first of ties."""
    return np.argmax(P, axis=1) if cost is None else np.argmin(np.einsum("gh,nh...->ng...", cost, P), axis=1)


# ------------------------------------------------------------------------------------------------ neighbours


class _Neighbors:
    """The k nearest rows of a sample, nearest first, ties by row index; a row may be left out."""

    def __init__(self, X: Array, algorithm: str = "auto", metric: str = "euclidean"):
        self.X, self.metric = X, metric
        # the search expands |q - x|^2; centred data keep that accurate
        self.origin = X.mean(axis=0) if metric == "euclidean" else np.zeros(X.shape[1])
        centred = X - self.origin
        self.reach = np.linalg.norm(centred, axis=1).max()
        self.index = NearestNeighbors(algorithm=algorithm, metric=metric).fit(centred)

    def query(self, Q: Array, k: int, without: Index | None = None) -> tuple[Array, Index]:
        """Distances and rows, each (n, k); the row ``without[i]`` is left out for ``Q[i]``."""
        centred = Q - self.origin
        extra = 1 if without is None else 2
        distance, rows = self.index.kneighbors(centred, min(k + extra, len(self.X)))
        scale = self.reach + np.linalg.norm(centred, axis=1, keepdims=True)
        close = (np.diff(distance**2, axis=1) <= 1e-12 * scale**2).any(axis=1)
        if without is not None:
            other = rows != without[:, None]
            close |= other.all(axis=1)
            keep = np.argsort(~other, axis=1, kind="stable")
            distance, rows = np.take_along_axis(distance, keep, 1), np.take_along_axis(rows, keep, 1)
        distance, rows = distance[:, :k], rows[:, :k]
        if close.any():  # near ties: decided by exact distances, and equal ones by the row index
            excluded = None if without is None else without[close]
            distance[close], rows[close] = self._exact(Q[close], k, excluded)
        return distance, rows

    def _exact(self, Q: Array, k: int, without: Index | None) -> tuple[Array, Index]:
        distance = np.empty((len(Q), k))
        rows = np.empty((len(Q), k), dtype=np.intp)
        for part in _batches(len(Q), 24 * len(self.X)):
            D = _pairwise(Q[part], self.X, self.metric)
            if without is not None:
                D[np.arange(len(D)), without[part]] = np.inf
            rows[part] = np.argsort(D, axis=1, kind="stable")[:, :k]
            distance[part] = np.take_along_axis(D, rows[part], axis=1)
        return distance, rows


def _pairwise(Q: Array, X: Array, metric: str) -> Array:
    if metric == "euclidean":  # scikit-learn would expand the square here
        return cdist(Q, X)
    return pairwise_distances(Q, X, metric=metric)


def _batches(n: int, bytes_per_row: int, limit: int = _BATCH_BYTES) -> Iterator[slice]:
    size = max(1, limit // bytes_per_row)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


# ------------------------------------------------------------------------------------------------ estimators


class _LocalClassifier:
    """Fit, the choice of k, and prediction in batches; a subclass says what its neighbours say.

    ``_evidence(Q, sizes, own)`` gives the log joint densities of queries, classes and neighbourhood sizes,
    shape (n, r, len(sizes)); ``own`` holds the training rows the queries are, to be left out, or is None.
    """

    def fit(self, X: ArrayLike, y: ArrayLike):
        """Store the sample, index it for the neighbour search and, with ``n_neighbors="cv"``, choose k.

        Raises
        ------
        ValueError
            On bad data, fewer than two classes, a bad ``n_neighbors``, ``grid`` or ``cost``.
        """
        X, self._codes = self._check_Xy(X, y)
        self._cost = check_cost(self.cost, len(self.classes_))
        self.class_log_prior_ = np.full(len(self.classes_), -np.log(len(self.classes_)))
        self._index(X)
        if isinstance(self.n_neighbors, str) and self.n_neighbors == "cv":
            self._choose(X)
        else:
            self.n_neighbors_ = self._check_size(self.n_neighbors, "n_neighbors")
        return self

    def _check_size(self, k: int, name: str) -> int:
        if not isinstance(k, Integral) or isinstance(k, bool):
            raise ValueError(f"{name} must be a positive integer (or n_neighbors 'cv'); got {k!r}")
        if not 1 <= k <= self._largest:
            raise ValueError(f"{name} must lie between 1 and {self._largest}, the most neighbours there are; got {k}")
        return int(k)

    def _check_sizes(self, sizes: Sequence[int], name: str) -> list[int]:
        if np.ndim(sizes) != 1 or len(sizes) == 0:
            raise ValueError(f"{name} must be a sequence of one or more neighbourhood sizes; got {sizes!r}")
        return [self._check_size(k, name) for k in sizes]

    def _choose(self, X: Array) -> None:
        """Leave-one-out average cost over the grid; the smallest k among the best."""
        grid = GRID if self.grid is None else self.grid
        sizes = self._check_sizes([k for k in grid if k <= self._cap] if self.grid is None else grid, "grid")
        sizes = sorted(set(sizes))
        cost = 1.0 - np.eye(len(self.classes_)) if self._cost is None else self._cost
        total = np.zeros(len(sizes))
        for part in _batches(len(X), self._bytes_per_query(max(sizes), len(sizes))):
            rows = np.arange(part.start, part.stop)
            decided = self._decide(X[part], sizes, rows)
            total += cost[decided, self._codes[part, None]].sum(axis=0)
        self.grid_ = np.array(sizes)
        self.cv_costs_ = total / len(X)
        self.n_neighbors_ = int(self.grid_[np.argmin(self.cv_costs_)])

    def predict_path(self, X: ArrayLike, sizes: Sequence[int]) -> NDArray:
        """Class labels for several neighbourhood sizes at once, shape (n, len(sizes))."""
        check_is_fitted(self)
        X = self._check_X(X)
        sizes = self._check_sizes(sizes, "sizes")
        codes = np.empty((len(X), len(sizes)), dtype=np.intp)
        for part in _batches(len(X), self._bytes_per_query(max(sizes), len(sizes))):
            codes[part] = self._decide(X[part], sizes, None)
        return self.classes_[codes]

    def _decide(self, Q: Array, sizes: Sequence[int], own: Index | None) -> Index:
        """Class indices (n, len(sizes))."""
        evidence = self._evidence(Q, sizes, own)
        if self._cost is None:
            return np.argmax(evidence, axis=1)
        posterior = [np.exp(log_posterior(joint, self.class_log_prior_)) for joint in np.moveaxis(evidence, 2, 0)]
        return least_cost(np.stack(posterior, axis=2), self._cost)

    def _joint_log_proba(self, X: Array) -> Array:
        joint = np.empty((len(X), len(self.classes_)))
        for part in _batches(len(X), self._bytes_per_query(self.n_neighbors_, 1)):
            joint[part] = self._evidence(X[part], [self.n_neighbors_], None)[:, :, 0]
        return joint


class _PerClass(_LocalClassifier):
    """Neighbourhoods of k rows of each class; a class of fewer rows gives all it has."""

    def _index(self, X: Array) -> None:
        self._members = [np.flatnonzero(self._codes == h) for h in range(len(self.classes_))]
        self._searches = [_Neighbors(X[rows], self.algorithm) for rows in self._members]
        self._positions = np.empty(len(X), dtype=np.intp)
        for rows in self._members:
            self._positions[rows] = np.arange(len(rows))
        class_sizes = np.array([len(rows) for rows in self._members])
        self._largest, self._cap = int(class_sizes.max()), int(class_sizes.min())

    def _bytes_per_query(self, k: int, n_sizes: int) -> int:
        return 64 * (k + 2) + 24 * len(self.classes_) * n_sizes + 16 * self.n_features_in_

    def _evidence(self, Q: Array, sizes: Sequence[int], own: Index | None) -> Array:
        evidence = np.full((len(Q), len(self.classes_), len(sizes)), -np.inf)
        for h, search in enumerate(self._searches):
            if own is None:
                groups = [(np.arange(len(Q)), None)]
            else:
                mine = self._codes[own] == h
                groups = [
                    (np.flatnonzero(~mine), None),
                    (np.flatnonzero(mine), self._positions[own[mine]]),
                ]
            scores = self._scorer(h, Q, max(sizes))
            for rows, without in groups:
                available = len(search.X) - (without is not None)
                if len(rows) == 0 or available == 0:
                    continue
                k = min(max(sizes), available)
                _, neighbors = search.query(Q[rows], k, without)
                columns = np.minimum(sizes, k) - 1
                for part in _batches(len(rows), 8 * k * (k + Q.shape[1]), _CACHE_BYTES):
                    evidence[rows[part], h] = scores(neighbors[part], rows[part])[:, columns]
        return evidence + self.class_log_prior_[:, None]

    def _scorer(self, h: int, Q: Array, k: int) -> Callable[[Index, Index], Array]:
        """Function of neighbours (m, k) in class h and rows (m,) of Q: scores (m, k) for every size."""
        X = self._searches[h].X
        return lambda neighbors, rows: self._scores(X[neighbors] - Q[rows, None])


class _Pooled(_LocalClassifier):
    """One neighbourhood of k rows, whatever their classes."""

    metric = "euclidean"

    def _index(self, X: Array) -> None:
        self._search = _Neighbors(X, self.algorithm, self.metric)
        self._largest, self._cap = len(X), len(X) - 1

    def _bytes_per_query(self, k: int, n_sizes: int) -> int:
        r, d = len(self.classes_), self.n_features_in_
        return 64 * (k + 2) + 24 * r * (n_sizes + k) + 32 * (d + 1) * (k + 1)

    def _one_hot(self, rows: Index) -> Array:
        return (self._codes[rows][..., None] == np.arange(len(self.classes_))).astype(float)


class LocalBDA(_PerClass, GenerativeClassifier):
    r"""Local Bayesian discriminant analysis (thesis2007 ch. 6): a Gaussian for the k nearest of each class.

    .. math:: \hat Y = \arg\min_g\sum_h C(g,h)\,E[N_h](x),\qquad E[N_h](x) \propto |S_h+B|^{-1/2}
        \Big(1+\tfrac{k}{k+1}(x-\bar x_h)^T(S_h+B)^{-1}(x-\bar x_h)\Big)^{-(k+d+4)/2}

    (6.1): the Bayesian QDA of (4.22) with q = d + 3 and equal class priors. A class of fewer than k rows
    gives all it has; the constants of (4.22), which depend on k and d, then matter, and are always kept.
    ``predict_joint_log_proba`` is log E[N_h](x) - log r; as neighbours change with x it is no density of x.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
        Neighbours of each class; "cv": the least leave-one-out cost over ``grid``, ties to the smallest k.
    seed : float, "trace", "diag" or array of shape (d, d), default=1.0
        Seed matrix B of the prior: a multiple of I (the source has 1); the pooled within-class variance, as
        its mean over the features times I or feature by feature; or any positive definite matrix.
    grid : sequence of int, optional
        Sizes that "cv" tries; by default 1, ..., 20, 30, ..., 100 up to the size of the smallest class.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` is the cost of predicting class g when the truth is class h.
    algorithm : str, default="auto"
        Neighbour search, as in `sklearn.neighbors.NearestNeighbors`.

    Attributes
    ----------
    n_neighbors_ : int
    seed_ : array of shape (d, d)
    grid_, cv_costs_ : arrays
        Sizes tried and their leave-one-out average costs (error rates without ``cost``); only after "cv".
    """

    def __init__(self, *, n_neighbors=5, seed=1.0, grid=None, cost=None, algorithm="auto"):
        self.n_neighbors = n_neighbors
        self.seed = seed
        self.grid = grid
        self.cost = cost
        self.algorithm = algorithm

    def _index(self, X: Array) -> None:
        self.seed_ = self._seed_matrix(X)
        try:
            root = np.linalg.cholesky(self.seed_)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "seed must give a positive definite matrix; drop features constant within every class, "
                "or give a positive number"
            ) from error
        self._half_log_det = float(np.log(np.diag(root)).sum())
        self._root = None if np.array_equal(root, np.eye(len(root))) else root
        super()._index(X)
        self._whitened = [self._whiten(search.X) for search in self._searches]

    def _seed_matrix(self, X: Array) -> Array:
        d = X.shape[1]
        if isinstance(self.seed, str):
            if self.seed not in ("trace", "diag"):
                raise ValueError(f"seed must be a number, 'trace', 'diag' or a matrix; got {self.seed!r}")
            means = np.stack([X[self._codes == h].mean(axis=0) for h in range(len(self.classes_))])
            variances = ((X - means[self._codes]) ** 2).mean(axis=0)
            return np.diag(variances) if self.seed == "diag" else variances.mean() * np.eye(d)
        seed = check_numbers("seed", self.seed)
        seed = seed * np.eye(d) if seed.ndim == 0 else seed
        if seed.shape != (d, d) or not np.allclose(seed, seed.T):
            raise ValueError(f"seed must be a number or a symmetric ({d}, {d}) matrix; got shape {seed.shape}")
        return seed

    def _whiten(self, X: Array) -> Array:
        """Coordinates in which the seed is I."""
        return X if self._root is None else solve_triangular(self._root, X.T, lower=True).T

    def _scorer(self, h: int, Q: Array, k: int) -> Callable[[Index, Index], Array]:
        X, Q = self._whitened[h], self._whiten(Q)
        n, d = X.shape
        if d >= _GRAM_FEATURES and n * n <= min(len(Q) * k * k, _BATCH_BYTES // 8):
            shared = _SharedGram(X, Q)
            if shared.rounding <= _GRAM_ROUNDING:
                return lambda neighbors, rows: shared.log_density(neighbors, rows) - self._half_log_det
        return lambda neighbors, rows: local_bda_log_density(X[neighbors] - Q[rows, None]) - self._half_log_det


class LocalNearestMeans(_PerClass, GenerativeClassifier):
    r"""The class whose mean of the k nearest rows is nearest (Mitani and Hamamoto; thesis2007 §6.1.1).

    Probabilities, and with them costs, are those of spherical unit-variance Gaussians at the local means,
    :math:`\log p(x,h)=-\frac12\|x-\bar x_h\|^2-\frac d2\log 2\pi-\log r`. They depend on the units.

    Parameters
    ----------
    n_neighbors, grid, cost, algorithm
        As in `LocalBDA`.
    """

    def __init__(self, *, n_neighbors=5, grid=None, cost=None, algorithm="auto"):
        self.n_neighbors = n_neighbors
        self.grid = grid
        self.cost = cost
        self.algorithm = algorithm

    def _scores(self, Z: Array) -> Array:
        return -0.5 * (local_mean_squared_distance(Z) + Z.shape[-1] * np.log(2 * np.pi))


class LocalLinear(_Pooled, GenerativeClassifier):
    r"""Local linear regression of the class indicators, the "pinv" classifier (thesis2007 §6.1.1).

    The k nearest rows get the weights :math:`w^T = x^T X^{+}` and x the class of most weight. A one is appended
    to every row: the source's formula has no intercept, but its Table 6.1 does; without, the origin matters.
    ``predict_proba`` is the weight of each class, clipped at zero and normalised; without any positive weight
    all classes are equally probable.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
        Neighbours, of all classes together.
    fit_intercept : bool, default=True
    grid, cost, algorithm
        As in `LocalBDA`; the default grid goes up to n - 1.
    """

    def __init__(self, *, n_neighbors=5, fit_intercept=True, grid=None, cost=None, algorithm="auto"):
        self.n_neighbors = n_neighbors
        self.fit_intercept = fit_intercept
        self.grid = grid
        self.cost = cost
        self.algorithm = algorithm

    def _evidence(self, Q: Array, sizes: Sequence[int], own: Index | None) -> Array:
        _, rows = self._search.query(Q, min(max(sizes), self._largest - (own is not None)), own)
        X, labels = self._search.X[rows], self._one_hot(rows)
        if self.fit_intercept:
            X = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
            Q = np.concatenate([Q, np.ones((len(Q), 1))], axis=1)
        weight = [np.einsum("nk,nkh->nh", linear_weights(X[:, :k], Q), labels[:, :k]) for k in sizes]
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.stack(weight, axis=2), 0.0))


class BregmanKNN(_Pooled, GenerativeClassifier):
    r"""Nearest neighbours with class probabilities of least expected Bregman divergence (thesis2007 ch. 3).

    .. math:: \theta^*_g = \frac{\alpha_g + \lambda_g}{k + \sum_h\lambda_h},\quad
        \alpha_g = k\sum_{j=1}^k w_j 1(y_j=g),\quad \hat Y = \arg\min_g\sum_h C(g,h)\,\theta^*_h

    (3.5)-(3.7): Laplace's correction of a weighted vote. Neighbours say nothing of p(x), so
    ``predict_joint_log_proba`` is the log posterior.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
    weights : {"uniform", "distance", "kernel", "tricube"}, default="uniform"
        See `neighbor_weights`.
    smoothing : float or array of shape (r,), default=1.0
        Pseudo-counts λ; 0 is the usual nearest-neighbour estimate (3.1).
    grid, cost, algorithm
        As in `LocalBDA`; the default grid goes up to n - 1.
    metric : str or callable, default="euclidean"
        As in `sklearn.neighbors.NearestNeighbors`.
    """

    def __init__(
        self,
        *,
        n_neighbors=5,
        weights="uniform",
        smoothing=1.0,
        grid=None,
        cost=None,
        algorithm="auto",
        metric="euclidean",
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.smoothing = smoothing
        self.grid = grid
        self.cost = cost
        self.algorithm = algorithm
        self.metric = metric

    def _index(self, X: Array) -> None:
        smoothing = check_numbers("smoothing", self.smoothing)
        if smoothing.shape not in [(), (len(self.classes_),)]:
            raise ValueError(
                f"smoothing must be one number or {len(self.classes_)}, one a class; got {smoothing.shape}"
            )
        if np.any(smoothing < 0):
            raise ValueError("smoothing must hold non-negative numbers")
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}; got {self.weights!r}")
        super()._index(X)

    def _evidence(self, Q: Array, sizes: Sequence[int], own: Index | None) -> Array:
        available = self._largest - (own is not None)
        distance, rows = self._search.query(Q, min(max(sizes) + 1, available), own)
        labels = self._one_hot(rows)
        evidence = np.empty((len(Q), len(self.classes_), len(sizes)))
        for i, k in enumerate(np.minimum(sizes, available)):
            # with every row a neighbour there is none beyond, and the last one's distance is the bandwidth
            bandwidth = distance[:, [min(k, available - 1)]]
            weights = neighbor_weights(np.hstack([distance[:, :k], bandwidth]), self.weights)
            counts = k * np.einsum("nk,nkh->nh", weights, labels[:, :k])
            with np.errstate(divide="ignore"):
                evidence[:, :, i] = np.log(smoothed_probabilities(counts, self.smoothing))
        return evidence


class SVMKNN(_Pooled, ClassifierMixin, BaseEstimator):
    r"""A linear support vector machine on the k nearest rows (Zhang et al. 2006; thesis2007 §6.1.1).

    Neighbours of one class decide at once. Otherwise classes meet in pairs on a decision DAG: the first
    against the last of those present, the loser leaves. With costs, a pair trains with weights in the ratio of its
    losses.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
        Neighbours, of all classes together.
    C : float, default=1.0
        Penalty of `sklearn.svm.SVC`; 1 is libsvm's default, as in the source.
    grid, cost, algorithm
        As in `LocalBDA`; the default grid goes up to n - 1.
    """

    _x_dtype = np.float64
    # hard decisions only, so the mixin's validation without its probabilities
    _check_X = GenerativeClassifier._check_X
    _check_rows = GenerativeClassifier._check_rows
    _check_Xy = GenerativeClassifier._check_Xy

    def __init__(self, *, n_neighbors=5, C=1.0, grid=None, cost=None, algorithm="auto"):
        self.n_neighbors = n_neighbors
        self.C = C
        self.grid = grid
        self.cost = cost
        self.algorithm = algorithm

    def _index(self, X: Array) -> None:
        check_number("C", self.C, 0, above=True)
        super()._index(X)

    def predict(self, X: ArrayLike) -> NDArray:
        """Class labels, shape (n,)."""
        check_is_fitted(self)
        return self.predict_path(X, [self.n_neighbors_])[:, 0]

    def _decide(self, Q: Array, sizes: Sequence[int], own: Index | None) -> Index:
        _, rows = self._search.query(Q, min(max(sizes), self._largest - (own is not None)), own)
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
        machine = SVC(kernel="linear", C=self.C, decision_function_shape="ovo")
        margins = np.ravel(machine.fit(self._search.X[rows], self._codes[rows]).decision_function(x[None]))
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
        machine = SVC(kernel="linear", C=self.C, class_weight={first: loss[0], last: loss[1]})
        return machine.fit(self._search.X[rows], self._codes[rows]).decision_function(x[None])[0] <= 0
