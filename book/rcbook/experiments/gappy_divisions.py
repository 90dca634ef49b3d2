"""Divisions of data sets into training rows and test rows with gaps, for the study of gaps (chapter 13)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rcbook import datasets
from rcbook.gap_rivals import Mechanism, at_random, by_value, in_groups, indicators, masked, most_probable
from rcpkg.base import Array

TRAINING_ROWS, TEST_ROWS, LEAST_CLASS, LEAST_VALUES, BINS = 2_000, 1_000, 10, 5, 6
TRAINING_ROWS_WITH_GAPS = 1_000
REPETITIONS = {400: 3, 10**9: 1}  # by the greatest number of rows that is divided so often
SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.8)
KINDS: dict[str, tuple[Mechanism, float]] = {
    **{f"{share:.0%} at random": (at_random, share) for share in SHARES},
    "35% in groups": (in_groups, 0.35),
    "35% by value": (by_value, 0.35),
}

NUMBERS, CATEGORIES = "numbers", "categories"
SPENT = {
    NUMBERS: {
        "wine": "original",
        "vehicle": "original",
        "segment": "original",
        "waveform": "original",
        "satellite": "original",
        "pendigits": "original",
    },
    CATEGORIES: {"car": "original", "splice": "wanbia2014", "kr_vs_kp": "original", "pendigits": "original"},
}
BINNED = {"vowel": "original", "page_blocks": "original", "magic": "original"}
ASIDE = {
    NUMBERS: {
        "iris": "original",
        "sonar": "original",
        "glass": "original",
        "new_thyroid": "original",
        "heart": "rc2024-nb",
        "ecoli": "rc2024-nb",
        "liver_disorder": "original",
        "ionosphere": "original",
        "climate_model": "rc2024-nb",
        "indian_liver": "rc2024-nb",
        "synthetic_control": "original",
        "balance_scale": "wanbia2014",
        "breast_cancer_wisconsin": "original",
        "blood_transfusion": "rc2024-nb",
        "diabetes": "original",
        "vowel": "original",
        "qsar": "rc2024-nb",
        "svmguide3": "rc2024-nb",
        "yeast": "original",
        "redwine": "rc2024-nb",
        "abalone": "wanbia2014",
        "spambase": "original",
        "wall_following": "original",
        "page_blocks": "original",
        "localization": "original",
        "pulsar": "rc2024-nb",
        "magic": "original",
        "letter": "original",
        "covtype": "original",
        "adult": "wanbia2014",
        "shuttle": "original",
    },
    CATEGORIES: {
        "lymphography": "original",
        "hepatitis": "original",
        "heart_hungarian": "original",
        "dermatology": "original",
        "horse_colic": "original",
        "house_votes_84": "original",
        "chess_551": "original",
        "credit_screening": "original",
        "annealing": "original",
        "tic_tac_toe": "original",
        "german": "wanbia2014",
        "led": "original",
        "cmc": "original",
        "sick": "original",
        "mushroom": "original",
        "thyroid_0387": "original",
        "sign": "original",
        "nursery": "original",
        "adult": "wanbia2014",
        "connect_4": "original",
        **BINNED,
    },
}


# Data ------------------------------------------------------------------------------------------------


class Division(NamedTuple):
    """Rows of one division; ``n_states`` of the codes, None for numbers; test rows of each kind of gaps."""

    X: Array
    y: NDArray[np.intp]
    tests: dict[str, Array]
    y_test: NDArray[np.intp]
    n_states: NDArray[np.intp] | None

    def encoded(self, X: Array) -> Array:
        """Numbers as they are, codes as indicators."""
        return X if self.n_states is None else indicators(X, self.n_states)

    def decoded(self, rows: Array) -> Array:
        """Of filled rows what `encoded` was made of."""
        return rows if self.n_states is None else most_probable(rows, self.n_states)


def _parts(X: Array, y: NDArray[np.intp], most: int, seed: int) -> tuple[Array, NDArray[np.intp], NDArray, NDArray]:
    """Rows and labels of large classes, and which are for training, ``most`` at most, and for testing."""
    n_test = min(TEST_ROWS, len(y) // 3)
    n_train = min(most, len(y) - n_test)
    kept = np.bincount(y)[y] * n_train / len(y) >= LEAST_CLASS
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    n_test = min(TEST_ROWS, len(y) // 3)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=min(most, len(y) - n_test),
        test_size=n_test,
        stratify=y,
        random_state=seed,
    )
    return X, y, train, test


def _numbers(X: Array, train: NDArray) -> Array:
    X = X[:, np.ptp(X[train], axis=0) > 0]
    return StandardScaler().fit(X[train]).transform(X)


def _codes(X: Array, nominal: NDArray[np.bool_], train: NDArray) -> Array:
    """Codes 0, 1, … of all features that vary on the training rows; a value missing in the set is the last one."""
    columns = []
    for column, states in zip(X.T, nominal, strict=True):
        known = ~np.isnan(column)
        codes = np.full(len(column), np.nan)
        if states:
            codes[known] = np.unique(column[known], return_inverse=True)[1]
        else:
            cuts = np.unique(np.nanquantile(column[train], np.arange(1, BINS) / BINS))
            codes[known] = np.unique(np.searchsorted(cuts, column[known]), return_inverse=True)[1]
        codes[~known] = np.nanmax(codes, initial=-1) + 1
        if np.ptp(codes[train]) > 0:
            columns.append(codes)
    return np.column_stack(columns)


@lru_cache(maxsize=5)
def division(arm: str, name: str, variant: str, seed: int, share: float) -> Division:
    """A division; with ``share`` > 0 so much is lost in its training rows, and in its test rows at random."""
    bunch = datasets.load(name, variant)
    X, y = bunch.data, np.unique(bunch.target, return_inverse=True)[1]
    if arm == NUMBERS:
        many = np.array([len(np.unique(column[~np.isnan(column)])) >= LEAST_VALUES for column in X.T])
        X = X[:, many & ~bunch.nominal]
        whole = ~np.isnan(X).any(axis=1)
        X, y = X[whole], y[whole]
    X, y, train, test = _parts(X, y, TRAINING_ROWS_WITH_GAPS if share else TRAINING_ROWS, seed)
    X = _numbers(X, train) if arm == NUMBERS else _codes(X, bunch.nominal, train)
    kinds = {f"{share:.0%} at random": (at_random, share)} if share else KINDS
    streams = np.random.SeedSequence(seed).spawn(len(kinds) + 1)
    tests = {
        kind: masked(X[test], mechanism(X[test], rate, np.random.default_rng(stream)))
        for (kind, (mechanism, rate)), stream in zip(kinds.items(), streams[1:], strict=True)
    }
    rows = masked(X[train], at_random(X[train], share, np.random.default_rng(streams[0])))
    n_states = None if arm == NUMBERS else X.max(axis=0).astype(np.intp) + 1
    return Division(rows, y[train], tests, y[test], n_states)
