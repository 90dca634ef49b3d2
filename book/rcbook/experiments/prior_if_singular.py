"""How the printed tables of thesis2007 treat a singular covariance."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from rcpkg.base import GenerativeClassifier, InvalidStatistics
from rcpkg.choice import log_class_prior
from rcpkg.linalg import Array


class PriorIfSingular(GenerativeClassifier):
    """What the wrapped classifier says or, where its covariance is singular, the largest class prior.

    The rule by which the printed tables 5.1-5.22 of thesis2007 treat LDA and QDA, in the reading that their numbers
    allow: where the wrapped classifier raises `InvalidStatistics` in ``fit``, every row gets the class of the largest
    prior (n_h + 1)/(n + r), ties to the first one. The tables wrap ``LDA(class_prior_strength=r, singular_ridge=0)``,
    or `QDA` likewise: with the ridge that these have by default no covariance is singular.
    """

    def __init__(self, estimator: GenerativeClassifier) -> None:
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit a clone of the estimator, ``estimator_``, which is None where singular."""
        X, y = self._check_X_y(X, y)
        try:
            self.estimator_ = clone(self.estimator).fit(X, self.classes_[y])
            self.class_log_prior_ = self.estimator_.class_log_prior_
        except InvalidStatistics:
            self.estimator_ = None
            self.class_log_prior_ = log_class_prior(np.bincount(y))
        return self

    def _joint_log_proba(self, X: Array) -> Array:
        if self.estimator_ is None:
            return np.full((len(X), len(self.classes_)), -np.inf)
        return self.estimator_.predict_joint_log_proba(X)
