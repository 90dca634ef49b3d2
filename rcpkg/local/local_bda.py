"""Local Bayesian discriminant analysis (thesis2007 ch. 6), at every neighbourhood size at once."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import gammaln

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, check_numbers
from rcpkg.local.base import PerClass
from rcpkg.local.neighbours import BATCH_BYTES, Index

GRAM_FEATURES = 128  # from so many on, looking inner products up is cheaper than forming them
GRAM_ROUNDING = 1e-12  # largest error that is accepted for it, beside the eigenvalues of I + G, which are at least 1


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
    LostSeed
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


class LostSeed(InvalidStatistics, np.linalg.LinAlgError):
    """The seed is lost in rounding beside the spread of the neighbours."""


class SharedGram:
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
            raise LostSeed("the seed vanishes beside the spread of the neighbours; standardise X or raise the seed")


class LocalBDA(PerClass, GenerativeClassifier):
    r"""Local Bayesian discriminant analysis: a Gaussian for the k nearest of each class.

    .. math:: \hat Y = \arg\min_g\sum_h C(g,h)\,E[N_h](x),\qquad E[N_h](x) \propto |S_h+B|^{-1/2}
        \Big(1+\tfrac{k}{k+1}(x-\bar x_h)^T(S_h+B)^{-1}(x-\bar x_h)\Big)^{-(k+d+4)/2}

    The Bayesian QDA of (4.22) with q = d + 3 and equal class priors. A class of fewer than k rows
    gives all it has; the constants of (4.22), which depend on k and d, then matter, and are always kept.
    ``predict_joint_log_proba`` is log E[N_h](x) - log r; as neighbours change with x it is no density of x.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
        Neighbours k of each class; "cv": the best of ``grid`` by leave-one-out.
    seed : float, "trace", "diag" or array of shape (d, d), default=1.0
        Seed matrix B of the prior, in squared units of the features: a multiple of I (the source has 1); the pooled
        within-class variance, as its mean over the features times I or feature by feature; or any positive definite
        matrix.
    grid : sequence of int, optional
        Sizes that "cv" tries; by default 1, ..., 20, 30, ..., 100 up to the size of the smallest class.
    scoring : {"error", "log_loss"}, default="error"
        What "cv" compares: the error rate (with a ``cost``, the mean cost), or the mean of -log p(y | x), the one to
        take where probabilities matter.
    ties : {"log_loss", "smallest"}, default="log_loss"
        Of equally good sizes: the one of least leave-one-out log-loss and then the smallest, or at once the smallest.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` ≥ 0: cost of predicting class g when the truth is class h; by default the 0-1 loss.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Neighbour search, as in `sklearn.neighbors.NearestNeighbors`; neighbours are the same by all.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        Equal log class probabilities.
    n_neighbors_ : int
        k, given or chosen.
    seed_ : array of shape (d, d)
        B.
    grid_ : array of int
        Sizes tried, in order; only after "cv".
    cv_costs_ : array
        Their leave-one-out average costs (error rates without ``cost``); only after "cv".
    cv_log_loss_ : array
        Their leave-one-out log-losses, over the rows whose class is possible at some size; only after "cv", where
        ``scoring`` or ``ties`` needs them.

    References
    ----------
    thesis2007 ch. 6, (6.1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LocalBDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocalBDA(n_neighbors="cv", grid=[5, 10, 40]).fit(X, y)
    >>> model.n_neighbors_, model.cv_costs_.round(3)
    (40, array([0.04 , 0.04 , 0.013]))
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.58, 0.42],
           [0.  , 0.11, 0.89]])
    """

    def __init__(
        self,
        *,
        n_neighbors: int | str = 5,
        seed: ArrayLike | str = 1.0,
        grid: Sequence[int] | None = None,
        scoring: str = "error",
        ties: str = "log_loss",
        cost: ArrayLike | None = None,
        algorithm: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.seed = seed
        self.grid = grid
        self.scoring = scoring
        self.ties = ties
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
        seed = seed * np.eye(d) if seed.ndim == 0 else seed.copy()
        if seed.shape != (d, d) or not np.allclose(seed, seed.T):
            raise ValueError(f"seed must be a number or a symmetric ({d}, {d}) matrix; got shape {seed.shape}")
        return seed

    def _whiten(self, X: Array) -> Array:
        """Coordinates in which the seed is I."""
        return X if self._root is None else solve_triangular(self._root, X.T, lower=True).T

    def _scorer(self, h: int, Q: Array, k: int) -> Callable[[Index, Index], Array]:
        X, Q = self._whitened[h], self._whiten(Q)
        n, d = X.shape
        if d >= GRAM_FEATURES and n * n <= min(len(Q) * k * k, BATCH_BYTES // 8):
            shared = SharedGram(X, Q)
            if shared.rounding <= GRAM_ROUNDING:
                return lambda neighbors, rows: shared.log_density(neighbors, rows) - self._half_log_det
        return lambda neighbors, rows: local_bda_log_density(X[neighbors] - Q[rows, None]) - self._half_log_det
