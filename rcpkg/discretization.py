"""Supervised discretisation by the minimum description length principle (Fayyad and Irani 1993)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from rcpkg._bases import OneToOneFeatureMixin, TransformerMixin
from rcpkg.base import Estimator, constructed
from rcpkg.checks import refusal, refuse_labels, validate
from rcpkg.linalg import Array
from rcpkg.rows import Rows, by_block, in_memory


def _entropy(counts: Array) -> Array:
    """Σ_y of −p_y log₂ p_y of class counts (…, r), and 0 where there are none."""
    total = counts.sum(axis=-1)
    return (xlogy(total, total) - xlogy(counts, counts).sum(axis=-1)) / np.where(total > 0, total, 1.0) / np.log(2)


def _best_cut(sums: Array) -> int | None:
    """Where to cut an interval of values whose running class counts are ``sums`` (u + 1, r); None: nowhere."""
    whole, left = sums[-1] - sums[0], sums[1:-1] - sums[0]
    right, n = whole - left, whole.sum()
    left_entropy, right_entropy = _entropy(left), _entropy(right)
    expected = (left.sum(axis=1) * left_entropy + right.sum(axis=1) * right_entropy) / n
    cut = int(np.argmin(expected))
    k, k1, k2 = (int(np.count_nonzero(counts)) for counts in (whole, left[cut], right[cut]))
    entropy = float(_entropy(whole))
    # log₂(3ᵏ − 2), in a form that does not overflow
    delta = k * np.log2(3.0) + np.log1p(-2.0 * 3.0**-k) / np.log(2)
    delta += k1 * left_entropy[cut] + k2 * right_entropy[cut] - k * entropy
    return cut + 1 if entropy - expected[cut] > (np.log2(n - 1) + delta) / n else None


def mdl_cuts(x: ArrayLike, y: ArrayLike) -> Array:
    """Cut points of one feature by entropy and the stopping rule of minimum description length.

    The range is cut in two where the class entropy of the parts is least, halfway between two neighbouring values, and
    the parts in the same way, as long as the gain Ent(S) − E exceeds [log₂(N − 1) + Δ]/N,
    Δ = log₂(3ᵏ − 2) − [k Ent(S) − k₁ Ent(S₁) − k₂ Ent(S₂)].

    Parameters
    ----------
    x : array of shape (n,)
        Numbers; rows where they are missing (NaN) are left out.
    y : array of shape (n,)
        Labels.

    Returns
    -------
    array of shape (number of cuts,)
        Increasing; empty where the feature says nothing of the class.

    Raises
    ------
    ValueError
        If x and y differ in length.

    References
    ----------
    Fayyad and Irani (1993); wanbia2014 §IV.

    Examples
    --------
    >>> mdl_cuts(np.arange(20.0), np.arange(20) >= 8)
    array([7.5])
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x and y must be vectors of one length; got shapes {x.shape} and {y.shape}")
    known = ~np.isnan(x)
    classes, labels = np.unique(y[known], return_inverse=True)
    values, places = np.unique(x[known], return_inverse=True)
    r = len(classes)
    counts = np.bincount(places * r + labels, minlength=len(values) * r).reshape(len(values), r)
    sums = np.vstack([np.zeros((1, r)), counts.cumsum(axis=0)])
    cuts, intervals = [], [(0, len(values))]
    while intervals:
        start, end = intervals.pop()
        cut = _best_cut(sums[start : end + 1]) if end - start > 1 else None
        if cut is not None:
            cuts.append(start + cut)
            intervals += [(start, start + cut), (start + cut, end)]
    cut = np.array(sorted(cuts), dtype=np.intp)
    below, above = values[cut - 1], values[cut]
    with np.errstate(over="ignore"):
        middle = below + (above - below) / 2
    return np.where(middle < above, middle, below)  # where rounding leaves no number between, or the width overflows


@constructed
class MDLDiscretizer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Codes 0, 1, 2, … of intervals of each feature, cut where it tells the classes apart.

    The cuts of a feature are those of least class entropy, as long as the gain of a cut exceeds what its description
    costs, [log₂(N − 1) + Δ]/N: see `rcpkg.discretization.mdl_cuts`. A feature without a cut becomes constant. Missing
    values (NaN) stay missing. Fit it on training rows only: it reads their labels. A learner behind it that leaves rows
    out by itself judges rows that have had a say in the cuts, and may take too little weight: `RiskCalibrationCV` warns
    of that; it takes the pipeline in the place of a model, and cuts anew in each fold.

    Parameters
    ----------
    categorical_features : array of bool or of int, optional
        Features that are left as they are: a mask, or their numbers. By default there are none.

    Attributes
    ----------
    cuts_ : list of d arrays
        Cut points of each feature, increasing; values equal to a cut belong to the interval below it. None for a
        categorical feature.

    References
    ----------
    Fayyad and Irani (1993); wanbia2014 §IV.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import MDLDiscretizer
    >>> X, y = load_iris(return_X_y=True)
    >>> discretizer = MDLDiscretizer().fit(X, y)
    >>> [cuts.round(2).tolist() for cuts in discretizer.cuts_]
    [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
    >>> discretizer.transform(X[[0, 60, 120]])
    array([[0., 2., 0., 0.],
           [0., 0., 1., 1.],
           [2., 1., 2., 2.]])
    """

    categorical_features: ArrayLike | None = None

    cuts_: ClassVar[list[Array | None]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    @in_memory
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None) -> Self:
        """Find the cuts of each feature from rows and their labels."""
        X, y = validate(self, X, y, reset=True)
        check_classification_targets(y)
        categorical = self._categorical(X.shape[1])
        self.cuts_ = [None if j in categorical else mdl_cuts(column, y) for j, column in enumerate(X.T)]
        return self

    def _categorical(self, d: int) -> set[int]:
        """Numbers of the features that are left as they are."""
        refuse_labels("categorical_features", self.categorical_features, self)
        given = np.empty(0, np.intp) if self.categorical_features is None else np.asarray(self.categorical_features)
        if given.dtype == bool and given.shape == (d,):
            return set(np.flatnonzero(given).tolist())
        if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < d):
            need = f"be a mask of {d} truth values or numbers of features from 0 to {d - 1}"
            raise refusal("categorical_features", need, self.categorical_features)
        return set(given.tolist())

    @by_block
    def transform(self, X: ArrayLike | Rows) -> Array:
        """Number of the interval of each value, from 0; values beyond the training rows fall into the outer ones."""
        check_is_fitted(self)
        X = validate(self, X, reset=False)
        return np.column_stack([_codes(column, cuts) for column, cuts in zip(X.T, self.cuts_, strict=True)])


def _codes(column: Array, cuts: Sequence[float] | NDArray | None) -> Array:
    if cuts is None:
        return column
    return np.where(np.isnan(column), np.nan, np.searchsorted(cuts, column, side="left"))
