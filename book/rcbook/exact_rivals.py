"""Classifiers that are not ours and sum out exactly what a row lacks, for frames of floats and text (chapter 14).

They are short versions, for comparison. A category that no training row has counts as missing.
"""

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import GaussianMixture

from rcpkg.base import Array

LEAST_DEVIATION = 1.0  # of a standardised number in a leaf, as in the published code
REGULARISATION = 0.01  # of the variances of standardised numbers, in Gaussian mixtures
ROWS_A_COMPONENT = 5  # of a class, at least


def as_states(X: pd.DataFrame) -> pd.DataFrame:
    """Numbers of intervals as text, too."""
    return X.astype(str).where(X.notna(), None)


class JointLaw(ClassifierMixin, BaseEstimator):
    """A classifier that has log p(y, what there is of x)."""

    def fit(self, X: pd.DataFrame, y: NDArray) -> Self:
        """Learn the law, of numbers that are standardised and of categories."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        known = X.loc[:, X.notna().any()]
        self.numbers_ = list(known.select_dtypes("number").columns)
        self.states_ = {name: np.unique(X[name].dropna().to_numpy(str)) for name in known.drop(columns=self.numbers_)}
        numbers = X[self.numbers_].to_numpy(float)
        self.scale_ = np.nanmean(numbers, axis=0), np.maximum(np.nanstd(numbers, axis=0), 1e-9)
        self._learn(*self._parts(X), labels)
        return self

    def _parts(self, X: pd.DataFrame) -> tuple[Array, list[Array]]:
        """Standardised numbers, NaN where they are missing, and of each category an indicator for each state."""
        numbers = (X[self.numbers_].to_numpy(float) - self.scale_[0]) / self.scale_[1]
        return numbers, [(X[name].to_numpy()[:, None] == s).astype(float) for name, s in self.states_.items()]

    def _learn(self, numbers: Array, categories: list[Array], labels: NDArray[np.intp]) -> None:
        raise NotImplementedError

    def _log_joint(self, numbers: Array, categories: list[Array]) -> Array:
        raise NotImplementedError

    def predict_proba(self, X: pd.DataFrame) -> Array:
        """p(y | what there is of x)."""
        return softmax(self._log_joint(*self._parts(X)), axis=1)


class AODE(JointLaw):
    """Averaged one-dependence estimators, p(x, y) = 1/d Σ_i p(y, x_i) ∏_j p(x_j | y, x_i), of categories.

    Webb, Boughton and Wang (2005), without their least count of a parent's value, so that it is a law; a pseudo-row for
    each distribution. A parent that is missing is summed out, too.
    """

    def _learn(self, numbers: Array, categories: list[Array], labels: NDArray[np.intp]) -> None:
        Z, sizes = np.hstack(categories), np.array([c.shape[1] for c in categories])
        self._feature = np.repeat(np.arange(len(sizes)), sizes)
        starts, r = np.cumsum(sizes) - sizes, len(self.classes_)
        counts = np.array([Z[labels == y].T @ Z[labels == y] for y in range(r)])  # of a parent's state and a child's
        of_child = np.add.reduceat(counts, starts, axis=2)[:, :, self._feature]
        self._log_child = np.log((counts + 1 / sizes[self._feature]) / (of_child + 1))
        self._log_child[:, self._feature[:, None] == self._feature] = 0.0
        parents = np.diagonal(counts, axis1=1, axis2=2)
        total = np.add.reduceat(parents.sum(axis=0), starts)[self._feature]
        self._log_parent = np.log((parents + 1 / (r * sizes[self._feature])) / (total + 1))

    def _log_joint(self, numbers: Array, categories: list[Array]) -> Array:
        Z = np.hstack(categories)
        missing = np.column_stack([c.sum(axis=1) == 0 for c in categories])[:, self._feature]
        possible = np.where(missing | (Z > 0), 0.0, -np.inf)
        of_classes = zip(self._log_parent, self._log_child)
        return np.column_stack([logsumexp(possible + p + Z @ child.T, axis=1) for p, child in of_classes])


class MixturePerClass(JointLaw):
    """A Gaussian mixture of scikit-learn for the numbers of each class, with frequencies of each category in it.

    Means stand for what is missing in training.
    """

    def __init__(self, n_components: int = 1, covariance_type: Literal["full", "diag"] = "full") -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type

    def _learn(self, numbers: Array, categories: list[Array], labels: NDArray[np.intp]) -> None:
        of_class = [labels == y for y in range(len(self.classes_))]
        self._log_prior = np.log(np.mean(of_class, axis=1))
        sums = [np.array([c[rows].sum(axis=0) for rows in of_class]) + 1 / c.shape[1] for c in categories]
        self._tables = [np.log(s / s.sum(axis=1, keepdims=True)) for s in sums]
        self._mixtures = []
        for rows in of_class if self.numbers_ else ():
            k = int(np.clip(rows.sum() // ROWS_A_COMPONENT, 1, self.n_components))
            model = GaussianMixture(k, covariance_type=self.covariance_type, reg_covar=REGULARISATION, random_state=0)
            self._mixtures.append(model.fit(np.nan_to_num(numbers[rows])))

    def _log_joint(self, numbers: Array, categories: list[Array]) -> Array:
        joint = np.tile(self._log_prior, (len(numbers), 1))
        for c, table in zip(categories, self._tables):
            joint += c @ table.T
        there = ~np.isnan(numbers)
        for y, mixture in enumerate(self._mixtures):
            parts = []
            for log_weight, mean, S in zip(np.log(mixture.weights_), mixture.means_, mixture.covariances_):
                # a feature that is missing has variance one and lies at its mean
                S = np.where(there[:, :, None] & there[:, None], S if S.ndim == 2 else np.diag(S), np.eye(len(mean)))
                L = np.linalg.cholesky(S)
                u = np.linalg.solve(L, np.where(there, numbers - mean, 0.0)[..., None])[..., 0]
                logs = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1) + there.sum(axis=1) * np.log(2 * np.pi) / 2
                parts.append(log_weight - (u**2).sum(axis=1) / 2 - logs)
            joint[:, y] += logsumexp(parts, axis=0)
        return joint


class GenerativeForest(JointLaw):
    """A random forest whose leaves have a law of all features, as in Correia, Peharz and de Campos (2020).

    In a leaf the class and the features are independent: truncated normal numbers, and categories by frequency with a
    pseudo-row. The posteriors of the trees are averaged, so that on complete rows it is the forest; or their laws are,
    where ``mixture``. Means, and a state before all others, stand for what is missing where the trees are grown.
    """

    def __init__(self, min_samples_leaf: int = 1, mixture: bool = False, n_estimators: int = 50) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.mixture = mixture
        self.n_estimators = n_estimators

    def _codes(self, numbers: Array, categories: list[Array]) -> NDArray[np.float32]:
        codes = [np.where(c.sum(axis=1) > 0, c.argmax(axis=1), np.nan) for c in categories]
        return np.column_stack([numbers, *codes]).astype(np.float32)  # as trees compare them

    def _learn(self, numbers: Array, categories: list[Array], labels: NDArray[np.intp]) -> None:
        filled = np.hstack([np.zeros(numbers.shape[1]), np.full(len(categories), -1.0)])
        codes = self._codes(numbers, categories)
        rows = np.where(np.isnan(codes), filled, codes)
        self.forest_ = RandomForestClassifier(
            self.n_estimators, min_samples_leaf=self.min_samples_leaf, random_state=0
        ).fit(rows, labels)
        self._laws = [_leaves(tree.tree_, rows, numbers, categories) for tree in self.forest_.estimators_]

    def _log_joint(self, numbers: Array, categories: list[Array]) -> Array:
        codes = self._codes(numbers, categories)
        known, z = (~np.isnan(numbers)).astype(float), np.nan_to_num(numbers)
        features = np.hstack([known, z, z**2, *categories])
        joints = []
        for tree, (leaves, constant, coefficients) in zip(self.forest_.estimators_, self._laws):
            log_p = np.where(_reached(tree.tree_, codes)[:, leaves], constant + features @ coefficients, -np.inf)
            largest = log_p.max(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                joints.append(np.log(np.exp(log_p - largest) @ tree.tree_.value[leaves, 0]) + largest)
        if not self.mixture:
            joints = [joint - logsumexp(joint, axis=1, keepdims=True) for joint in joints]
        return logsumexp(joints, axis=0)


def _leaves(tree: Any, rows: Array, numbers: Array, categories: list[Array]) -> tuple[NDArray, Array, Array]:
    """The leaves of a tree, the logs of their weights, and coefficients of the log law of what there is, by leaf."""
    lower = np.full((tree.node_count, rows.shape[1]), -np.inf)
    upper = -lower
    for node, (left, right, j, t) in enumerate(
        zip(tree.children_left, tree.children_right, tree.feature, tree.threshold)
    ):
        if left >= 0:
            for child, side in ((left, upper), (right, lower)):
                lower[child], upper[child] = lower[node], upper[node]
                side[child, j] = t
    leaves, at = np.flatnonzero(tree.children_left < 0), tree.apply(rows.astype(np.float32))
    member = (at == leaves[:, None]).astype(float)
    lower, upper = lower[leaves], upper[leaves]
    known, z, d = (~np.isnan(numbers)).astype(float), np.nan_to_num(numbers), numbers.shape[1]
    size = np.maximum(member @ known, 1.0)
    mean = member @ z / size
    s = np.maximum(np.sqrt(np.maximum(member @ z**2 / size - mean**2, 0.0)), LEAST_DEVIATION)
    inside = ndtr((upper[:, :d] - mean) / s) - ndtr((lower[:, :d] - mean) / s)
    logs = -np.log(s * np.sqrt(2 * np.pi) * np.maximum(inside, 1e-300))
    found = [logs - (mean / s) ** 2 / 2, mean / s**2, -1 / (2 * s**2)]
    for j, c in enumerate(categories, start=d):
        states = np.arange(c.shape[1])
        possible = (states > lower[:, [j]]) & (states <= upper[:, [j]])
        counts = member @ c + possible / np.maximum(possible.sum(axis=1, keepdims=True), 1)
        with np.errstate(divide="ignore"):
            found.append(np.maximum(np.log(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)), -1e9))
    return leaves, np.log(tree.weighted_n_node_samples[leaves] / tree.weighted_n_node_samples[0]), np.hstack(found).T


def _reached(tree: Any, codes: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which nodes a row may be in, whatever it lacks: (n, nodes)."""
    reached = np.ones((tree.node_count, len(codes)), dtype=bool)
    for node, (left, right, j, t) in enumerate(
        zip(tree.children_left, tree.children_right, tree.feature, tree.threshold)
    ):
        if left >= 0:
            gone, missing = codes[:, j] <= t, np.isnan(codes[:, j])
            reached[left], reached[right] = reached[node] & (gone | missing), reached[node] & (~gone | missing)
    return reached.T
