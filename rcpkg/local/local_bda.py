"""Local Bayesian discriminant analysis (thesis2007 ch. 6), at every neighbourhood size at once."""

from typing import ClassVar, Literal

import numpy as np

from rcpkg.base import GenerativeClassifier, constructed
from rcpkg.checks import check_numbers, refusal
from rcpkg.gaussians.constants import LEAST_REST
from rcpkg.linalg import ROUNDING, Array, Index, Numbers, cholesky
from rcpkg.local.base import PerClass, ScoreFunction
from rcpkg.local.density import by_updates, local_bda_log_density, neighborhood_log_density


@constructed
class LocalBDA(PerClass, GenerativeClassifier):
    r"""Local Bayesian discriminant analysis: a Gaussian for the k nearest of each class.

    .. math:: \hat Y &= \arg\min_g\sum_h C(g,h)\,E[N_h](x), \\ z &= x-\bar x_h, \\ E[N_h](x) &\propto |S_h+B|^{-1/2} \\
        &\quad \Big(1+\tfrac{k}{k+1}z^T(S_h+B)^{-1}z\Big)^{-(k+d+4)/2}

    The Bayesian QDA of (4.22) with q = d + 3 and equal class priors. A class of fewer than k rows gives all it has.
    ``predict_joint_log_proba`` is log E[N_h](x) - log r; as neighbours change with x it is no density of x.

    ``predict_proba``, and with it ``cost`` and log-losses, depends on what the seed weighs beside the scatter of k
    neighbours. Under a seed that stays as it is while n grows and k does not, every probability tends to 1/r: choose
    seed="neighborhood" where probabilities or costs matter. Where the seed weighs little, the probabilities are
    those under the *observed* class frequencies: costs should not allow for the frequencies once more.

    Parameters
    ----------
    seed : float, "trace", "diag", "neighborhood" or array of shape (d, d), default=1.0
        Matrix B of the prior (no random seed), in squared units of the features: a multiple of I (the source has 1);
        the pooled within-class variance, as its mean over the features times I or feature by feature; for each query,
        class and size the mean of :math:`\|x_i-x\|^2/d` over the neighbours, times I; or any positive definite matrix.
        Leave-one-out takes the seed of the rows that are left.
    n_neighbors : int, "cv" or sequence of int, default=5
        Number k of neighbours of each class. Of several sizes, leave-one-out chooses the best; "cv" tries
        1, ..., 20, 30, ..., 100 up to the size of the smallest class.
    scoring : {"error", "log_loss"}, default="error"
        What is compared on held-out rows: the error rate (with a ``cost``, the mean cost), or the mean of
        -log p(y | x), which suits uses of probabilities. The log-loss, then the smaller k, decides between equal sizes.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` ≥ 0 is the cost of predicting class g when the truth is class h. The default is the 0-1 loss.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        Log class probabilities, which are equal.
    n_neighbors_ : int
        The k that was given or chosen.
    grid_ : array of int
        Sizes tried, in order; like the next two only where k was chosen.
    cv_errors_ : array
        Leave-one-out error rates of these sizes or, with a ``cost``, mean costs.
    cv_log_loss_ : array
        Leave-one-out log-losses of these sizes, averaged over the rows whose class is possible at some size.
    seed_ : array of shape (d, d)
        B; not for "neighborhood".

    References
    ----------
    thesis2007 ch. 6, (6.1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LocalBDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocalBDA(n_neighbors=[5, 10, 40]).fit(X, y)
    >>> model.n_neighbors_, model.cv_errors_.round(3)
    (40, array([0.04 , 0.04 , 0.013]))
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.58, 0.42],
           [0.  , 0.11, 0.89]])
    """

    seed: float | Numbers | Literal["trace", "diag", "neighborhood"] = 1.0

    seed_: ClassVar[Array]

    def _index(self, X: Array) -> None:
        super()._index(X)
        vars(self).pop("seed_", None)  # of an earlier fit
        self._rule = self.seed if isinstance(self.seed, str) else "given"
        if self._rule not in ("given", "trace", "diag", "neighborhood"):
            raise refusal("seed", "be a number, 'trace', 'diag', 'neighborhood' or a matrix", self.seed)
        self._factor, self._half_log_det = None, 0.0
        if self._rule != "given":
            self._class_squares = np.stack([_squares(search.X) for search in self._searches])
            _check_variances(self._variances(X[:1], None), self._rule)
        if self._rule != "neighborhood":
            self.seed_ = self._seed_matrix(X)
            factor = cholesky(self.seed_)
            if not factor.pivot:
                raise ValueError("seed must give a positive definite matrix: give a positive number")
            self._half_log_det = factor.log_det / 2
            self._factor = None if np.array_equal(factor.lower, np.eye(X.shape[1])) else factor
        self._whitened = [self._whiten(search.X) for search in self._searches]

    def _seed_matrix(self, X: Array) -> Array:
        d = X.shape[1]
        if self._rule != "given":
            variances = self._variances(X[:1], None)[0]
            return np.diag(variances) if self._rule == "diag" else variances.mean() * np.eye(d)
        seed = check_numbers("seed", self.seed, self)
        seed = seed * np.eye(d) if seed.ndim == 0 else seed.copy()
        if seed.shape != (d, d) or not np.allclose(seed, seed.T):
            raise ValueError(f"seed must be a number or a symmetric ({d}, {d}) matrix; got shape {seed.shape}")
        return seed

    def _variances(self, Q: Array, left_out: Index | None) -> Array:
        """Pooled within-class variances of the features, (1, d), or without each of the rows Q = X[own], (n, d)."""
        total, n = self._class_squares.sum(axis=0), len(self._codes)
        if left_out is None:
            return total[None] / n
        rest = np.empty_like(Q)
        for h, search in enumerate(self._searches):
            mine = self._codes[left_out] == h
            count = len(search.X)
            share = (Q[mine] - search.X.mean(axis=0)) ** 2 * count / max(count - 1, 1)
            left = total - share
            for i in np.flatnonzero((left < LEAST_REST * total).any(axis=1)):  # a difference would be rounding
                others = _squares(np.delete(search.X, self._positions[left_out[mine][i]], axis=0))
                left[i] = np.delete(self._class_squares, h, axis=0).sum(axis=0) + others
            rest[mine] = left
        return rest / (n - 1)

    def _whiten(self, X: Array) -> Array:
        """Coordinates in which the seed is I."""
        return X if self._factor is None else self._factor.whiten(X.T).T

    def _bytes_per_score(self, k: int) -> int:
        d = self.n_features_in_
        return 8 * (k * (3 * d + 2) + d * d) if by_updates(k, d) else super()._bytes_per_score(k)

    def _scorer(self, h: int, Q: Array, left_out: Index | None) -> ScoreFunction:
        if self._rule == "neighborhood" or (left_out is not None and self._rule != "given"):
            return self._scorer_of_moving_seed(h, Q, left_out)
        X, Q = self._whitened[h], self._whiten(Q)
        return lambda near, rows, sizes: (
            local_bda_log_density(X[near] - Q[rows, None])[:, sizes - 1] - self._half_log_det
        )

    def _scorer_of_moving_seed(self, h: int, Q: Array, left_out: Index | None) -> ScoreFunction:
        """For a seed of its own for each query: on the neighbourhood's scale, or of the rows without the query."""
        X, variances = self._searches[h].X, self._variances(Q, left_out)
        if left_out is not None:
            _check_variances(variances, self._rule)
        if self._rule == "neighborhood":
            # of rows that coincide with the query: any share far below one decides for their class
            floor = np.broadcast_to(ROUNDING * variances.mean(axis=1), len(Q))
            return lambda near, rows, sizes: neighborhood_log_density(X[near] - Q[rows, None], sizes, floor[rows])
        if self._rule == "trace":
            variances = np.broadcast_to(variances.mean(axis=1, keepdims=True), Q.shape)
        deviations, half_log_det = np.sqrt(variances), 0.5 * np.log(variances).sum(axis=1)
        return lambda near, rows, sizes: (
            local_bda_log_density((X[near] - Q[rows, None]) / deviations[rows, None])[:, sizes - 1]
            - half_log_det[rows, None]
        )


def _squares(X: Array) -> Array:
    """Squared deviations of the rows from their mean, summed feature by feature."""
    return ((X - X.mean(axis=0)) ** 2).sum(axis=0) if len(X) else np.zeros(X.shape[1])


def _check_variances(variances: Array, rule: str) -> None:
    """All positive, or their mean where the rule asks for no more."""
    relevant = variances if rule == "diag" else variances.mean(axis=1)
    if not (relevant > 0).all():
        raise ValueError(
            f"seed={rule!r} is not positive definite, or is not without one of the rows that choose n_neighbors: "
            "drop features constant within every class, or give a positive number"
        )
