"""Hard clustering by a Bregman divergence."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg._bases import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from rcpkg.base import Estimator, constructed
from rcpkg.bregman.divergence import BregmanDivergence, named_divergence
from rcpkg.checks import check_magnitude, check_number, check_weights, validate
from rcpkg.linalg import Array


@constructed
class BregmanClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    r"""Hard clustering by a Bregman divergence: minimises :math:`\sum_i w_i \min_k d(x_i, c_k)`.

    Lloyd's two steps hold for every divergence, because the best centre of a cluster is its mean. Squared error gives
    k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, from 1 to that of the rows.
    divergence : str or BregmanDivergence, default="squared"
        A name of `divergences` or a divergence of vectors; the rows must lie in its domain.
    n_init : int, default=10
        Restarts from k-means++ seeds, drawn in proportion to the divergence; the best is kept.
    max_iter : int, default=300
        Greatest number of updates of the centres in a run.
    tol : float, default=1e-6
        Stop when an iteration lowers the loss by no more than this fraction.
    random_state : int or RandomState, optional
        For the seeds; None: anew in each fit.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, d)
        The centres c_k.
    labels_ : array of shape (n,)
        The cluster of each row.
    inertia_ : float
        The loss.
    n_iter_ : int
        Updates of the centres in the best run.

    References
    ----------
    thesis2007 Theorem 2.3.1; Banerjee et al., "Clustering with Bregman divergences" (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import BregmanClustering
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = BregmanClustering(n_clusters=3, divergence="kl", random_state=0)
    >>> model = model.fit(X / X.sum(axis=1, keepdims=True))  # proportions
    >>> np.sort(np.bincount(model.labels_)), round(model.inertia_, 3)
    (array([49, 50, 51]), 0.325)
    >>> P = model.cluster_centers_
    >>> model.predict(P).tolist() == [0, 1, 2], model.transform(P).shape, abs(model.score(P)) < 1e-9
    (True, (3, 3), True)
    """

    n_clusters: int = 8
    divergence: str | BregmanDivergence = "squared"
    n_init: int = 10
    max_iter: int = 300
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = None

    cluster_centers_: ClassVar[Array]
    labels_: ClassVar[NDArray[np.intp]]
    inertia_: ClassVar[float]
    n_iter_: ClassVar[int]

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    @property
    def _divergence(self) -> BregmanDivergence:
        if isinstance(self.divergence, BregmanDivergence):
            return self.divergence
        return named_divergence(self.divergence)

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> "BregmanClustering":
        """Cluster the rows of X, shape (n, d); a row counts ``sample_weight`` times."""
        for name, least in ("n_clusters", 1), ("n_init", 1), ("max_iter", 0):
            check_number(name, getattr(self, name), least, integer=True)
        check_number("tol", self.tol, 0)
        X = check_magnitude(validate(self, X, reset=True), fitting=True, names=self)
        weights = check_weights(sample_weight, len(X))
        divergence = self._divergence
        divergence.domain.check(X, f"{divergence.name}: X")
        # equal rows become one of added weight: weights and repetitions then lead to the same random choices
        points, row = np.unique(X[weights > 0], axis=0, return_inverse=True)
        weights = np.bincount(row.ravel(), weights[weights > 0])
        if self.n_clusters > len(row):
            raise ValueError(f"n_clusters={self.n_clusters} must lie between 1 and n_samples={len(row)}")
        rng = check_random_state(self.random_state)
        runs = [self._lloyd(points, weights, self._seeds(points, weights, rng)) for _ in range(self.n_init)]
        self.inertia_, self.cluster_centers_, self.n_iter_ = min(runs, key=lambda run: run[0])
        self.labels_ = self._losses(X).argmin(axis=1)
        return self

    def _seeds(self, X: Array, weights: Array, rng: np.random.RandomState) -> Array:
        centers = [X[rng.choice(len(X), p=weights / weights.sum())]]
        loss = self._divergence(X, centers[0])
        while len(centers) < self.n_clusters:
            chance = weights * (np.isinf(loss) if np.isinf(loss).any() else loss)
            chance = chance if chance.sum() > 0 else weights
            centers.append(X[rng.choice(len(X), p=chance / chance.sum())])
            loss = np.minimum(loss, self._divergence(X, centers[-1]))
        return np.array(centers)

    def _lloyd(self, X: Array, weights: Array, centers: Array) -> tuple[float, Array, int]:
        inertia, n_iter = np.inf, 0
        while True:
            losses = self._divergence.pairwise(X, centers)
            labels = losses.argmin(axis=1)
            nearest = weights * losses[np.arange(len(X)), labels]
            previous, inertia = inertia, float(nearest.sum())
            converged = np.isfinite(previous) and previous - inertia <= self.tol * previous
            if converged or n_iter == self.max_iter:
                return inertia, centers, n_iter
            members = weights * (labels == np.arange(self.n_clusters)[:, None])
            totals = members.sum(axis=1)
            centers = members @ X / np.where(totals > 0, totals, 1.0)[:, None]
            # an empty cluster moves to a point that is served worst
            empty = np.flatnonzero(totals == 0)
            centers[empty] = X[np.resize(np.argsort(nearest)[::-1], len(empty))]
            n_iter += 1

    def _losses(self, X: Array) -> Array:
        return self._divergence.pairwise(X, self.cluster_centers_)

    def transform(self, X: ArrayLike) -> Array:
        """Divergence of each row from each centre, shape (n, n_clusters)."""
        check_is_fitted(self)
        return self._losses(check_magnitude(validate(self, X, reset=False), names=self))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Index of the nearest centre."""
        return self.transform(X).argmin(axis=1)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the loss of X."""
        return -float(self.transform(X).min(axis=1).sum())
