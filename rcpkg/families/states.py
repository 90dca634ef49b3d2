"""Features with states: codes 0, 1, 2, … of categories, those of the training rows or declared ones."""

from functools import reduce
from operator import add

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from rcpkg.base import Array
from rcpkg.checks import check_sequence, refusal, refuse_labels
from rcpkg.families.constants import LARGEST_CODE
from rcpkg.families.count_model import CountFamily
from rcpkg.families.statistics import Statistics
from rcpkg.linalg import AT_A_TIME, slices
from rcpkg.rows import Block


def row_blocks(X: Array | csr_array) -> list[slice]:
    """Blocks of rows, of some `AT_A_TIME` entries each; of sparse rows one, since these take no more memory when
    they are encoded."""
    return [slice(None)] if issparse(X) else slices(X.shape[0], max(1, AT_A_TIME // max(1, X.shape[1])))


class StateFamily(CountFamily):
    """What families of features with states share: the codes of the training rows, or 0 … r_j − 1 for declared numbers
    of states.

    Codes that are none of them, and missing ones, have no place among the states.
    """

    n_states: int | ArrayLike | None
    prior_strength: float | ArrayLike

    def _check_strengths(self, d: int) -> None:
        if np.ndim(self.prior_strength) == 0:
            super()._check_strengths(d)
        elif len(check_sequence("prior_strength", self.prior_strength, 0, estimator=self)) != d:
            raise ValueError(f"prior_strength must hold {d} numbers, one a feature; got {len(self.prior_strength)}")

    def representatives(self, X: Array) -> Array:
        """Each state of each feature."""
        columns = [np.unique(column) for column in X.T]
        return np.transpose([np.resize(column, max(map(len, columns))) for column in columns])

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        self._unseen = np.empty(0, dtype=np.intp)
        self._set_states([np.empty(0, dtype=np.intp)] * X.shape[1], X)

    def _set_states(self, known: list[NDArray[np.intp]], X: Array) -> None:
        """Take on the states of each feature: those ``known``, and those that rows X add."""
        found = self._find_states(known, X)
        self._unseen = np.union1d(self._unseen, np.flatnonzero([not len(states) for states in found])).astype(np.intp)
        self._states = [states if len(states) else np.zeros(1, dtype=np.intp) for states in found]
        self.categories_ = [
            self.names[j][s] if j in self.names and j not in self._unseen else s for j, s in enumerate(self._states)
        ]
        self.n_states_ = np.array([len(states) for states in self._states])

    @property
    def unseen(self) -> NDArray[np.intp]:
        return getattr(self, "_unseen", super().unseen)

    def _find_states(self, known: list[NDArray[np.intp]], X: Array) -> list[NDArray[np.intp]]:
        """The states of each feature: those declared, or those ``known`` and those of rows X."""
        for rows in row_blocks(X):
            known = [np.union1d(old, codes[codes >= 0]) for old, codes in zip(known, self._codes(X[rows]).T)]
        if self.n_states is None:
            return known
        return [np.arange(k) for k in self._declared(np.array([states.max(initial=-1) for states in known]) + 1)]

    def _declared(self, largest: NDArray[np.intp]) -> NDArray[np.intp]:
        """``n_states``, one a feature, checked against the least numbers that the rows need."""
        if self.names:
            text = self._feature_name(min(self.names))
            raise ValueError(f"n_states must be None for text, whose states are its names; {text} holds text")
        refuse_labels("n_states", self.n_states, self)
        declared = np.asarray(self.n_states)
        if declared.dtype.kind not in "iu" or declared.shape not in ((), largest.shape) or declared.min() < 1:
            raise refusal("n_states", f"be a positive integer or {len(largest)} of them, one a feature", self.n_states)
        declared = np.broadcast_to(declared, largest.shape).astype(np.intp)
        if np.any(declared < largest):
            j = int(np.argmax(declared < largest))
            raise ValueError(
                f"{self._feature_name(j)} holds the state {largest[j] - 1}, but n_states declares {declared[j]}; "
                "states are coded 0, 1, … and n_states must exceed the largest"
            )
        return declared

    def _codes(self, X: Array) -> NDArray[np.int32]:
        """Integers, −1 where values are missing."""
        largest = X.max()
        if np.isnan(largest):
            X = np.where(np.isnan(X), -1.0, X)
            largest = X.max()
        if X.min() < -1 or largest > LARGEST_CODE:
            self._refuse_codes(X < -1, "Negative values in data passed to the model (input X)")
            self._refuse_codes(X > LARGEST_CODE, f"Values above {LARGEST_CODE}")
        codes = X.astype(np.int32)
        self._refuse_codes(codes != X, "Values that are not integers")
        return codes

    def _refuse_codes(self, bad: NDArray[np.bool_], fault: str) -> None:
        """Complain of the first feature that has bad values, if there are any."""
        if bad.any():
            raise ValueError(
                f"{fault}: {self._feature_name(int(np.argmax(bad.any(axis=0))))}; categories must be coded 0, 1, 2, …, "
                "or be text (the classes OrdinalEncoder and KBinsDiscretizer of sklearn.preprocessing make codes)"
            )

    def places(self, X: Array) -> NDArray[np.int32]:
        """Place of each entry of rows X among the states of its feature, shape (n, d); −1 where it is none of them."""
        return self._places_of(self._codes(X))

    def _places_of(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        if all(len(states) == states[-1] + 1 for states in self._states):
            beyond = (codes.max(axis=0, initial=-1) >= self.n_states_).any()
            return np.where(codes >= self.n_states_, -1, codes) if beyond else codes
        places = np.full_like(codes, -1)
        for j, states in enumerate(self._states):
            place = np.searchsorted(states[:-1], codes[:, j])
            places[:, j] = np.where(states[place] == codes[:, j], place, -1)
        return places

    def known_places(self, X: Array) -> NDArray[np.int32]:
        """Places of training rows; raises where a state was not declared."""
        all_places = np.empty(X.shape, dtype=np.int32)
        for rows in row_blocks(X):
            codes = self._codes(X[rows])
            all_places[rows] = places = self._places_of(codes)
            if places is not codes and np.any(unknown := (places < 0) & (codes >= 0)):
                j = int(np.argmax(unknown.any(axis=0)))
                raise ValueError(
                    f"{self._feature_name(j)} holds the state {codes[unknown[:, j], j].max()}, but only "
                    f"{self.n_states_[j]} states are known; declare n_states"
                )
        return all_places


def code_states(family: StateFamily, block: Block) -> Block:
    """A block with the places of states, by a ``family``."""
    return block._replace(X=family.known_places(block.X))


def count_in_parts(family: StateFamily, block: Block) -> Statistics:
    """The statistics s(X, Y) of a block by a ``family``, encoded a part at a time."""
    X, weights = block.X, block.weights(len(family.classes_))
    return reduce(add, (family.statistics(family.encode(X[rows]), weights[rows]) for rows in row_blocks(X)))
