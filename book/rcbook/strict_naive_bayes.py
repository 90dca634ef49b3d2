"""Naive Bayes by the rule of the sources' tables: a row with a state that the model does not know is impossible."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rcpkg import CategoricalNB
from rcpkg.base import Array
from rcpkg.families import CategoricalParameters
from rcpkg.families.networks import CategoricalFamily

__all__ = ["StrictCategoricalNB"]


class StrictFamily(CategoricalFamily):
    """Naive Bayes for categories, whose states are the codes from 0 to the largest."""

    def _find_states(self, known: list[NDArray[np.intp]], X: Array) -> list[NDArray[np.intp]]:
        return [np.arange(states[-1] + 1) for states in super()._find_states(known, X)]

    def _codes(self, X: Array) -> NDArray[np.int32]:
        self._refuse_codes(X < 0, "Negative values in data passed to StrictCategoricalNB (input X)")
        return super()._codes(X)

    def _skipping(self, log_prob: Array) -> Array:
        """Nothing is skipped: with a state of no row, a row is impossible under maximum likelihood."""
        return log_prob

    @property
    def expected_rows(self) -> None:  # type: ignore[override]
        """There is none, since a row with an unknown state has no marginal."""
        raise AttributeError("expected_rows")

    def log_joint(self, X: Array | csr_array, parameters: CategoricalParameters) -> Array:
        """−∞ for all classes in rows with an unknown state."""
        joint = super().log_joint(X, parameters)
        if not self._is_encoded(X):
            joint[(self.places(X) < 0).any(axis=1)] = -np.inf
        return joint


class StrictCategoricalNB(CategoricalNB, family=StrictFamily):
    """`CategoricalNB` with the states 0 to the largest code, to which a row with a code beyond is impossible, whatever
    its other features: it gets the class prior. Missing values are refused."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags
