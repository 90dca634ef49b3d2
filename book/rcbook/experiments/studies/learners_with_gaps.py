"""The learners of the study of gaps: their settings, and the ways in which rows with gaps reach them (chapter 13)."""

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.gappy_divisions import CATEGORIES, NUMBERS, Division, division
from rcbook.experiments.studies.honest_comparison import VALIDATION, scores
from rcbook.gap_rivals import DRAWS, ChainedStates, HotDeck, NeighboursWithGaps, at_random, chained, masked, mean_filled
from rcpkg.base import Array
from rcpkg.calibration import RiskCalibration, RiskCalibrationCV
from rcpkg.families import QDA, TAN, CategoricalNB, GaussianNB

# Values filled in --------------------------------------------------------------------------------------

MEAN, INDICATED, CHAINED, MULTIPLE = "mean", "mean and indicators", "chained", "multiple"


class Filled(NamedTuple):
    """Encoded training and test rows, once a draw; processor seconds of fitting and of filling in one kind's rows."""

    train: list[Array]
    tests: dict[str, list[Array]]
    fit_seconds: float
    seconds: float


@lru_cache(maxsize=15)
def filled(way: str, seed: int, *of_division: Any) -> Filled:
    """A division with its gaps filled in one of the ways."""
    data = division(*of_division)
    of_codes = data.n_states is not None
    imputer = {
        MEAN: mean_filled(),
        INDICATED: mean_filled(add_indicator=True),
        CHAINED: ChainedStates(data.n_states) if of_codes else chained(),
        MULTIPLE: HotDeck(seed) if of_codes else chained(draws=True, random_state=seed),
    }[way]
    times = DRAWS if way == MULTIPLE else 1
    start = time.process_time()
    X = data.encoded(data.X)
    imputer.fit(X)
    train = [imputer.transform(X) for _ in range(times)] if np.isnan(X).any() else [X]
    fitted = time.process_time()
    tests = {kind: [imputer.transform(data.encoded(rows)) for _ in range(times)] for kind, rows in data.tests.items()}
    return Filled(train, tests, fitted - start, (time.process_time() - fitted) / len(tests))


# Learners ----------------------------------------------------------------------------------------------

SHOWN = (0.0, 0.2, 0.4, 0.6, 0.8)  # shares that are hidden in the masked copies of a training row
WEIGHTS = (0.3, 3.0, 30.0)
RATES_IN_VIEW = (0.25, 0.5)
WEIGHTS_IN_VIEW = {"QDA": WEIGHTS, "TAN": (0.03, 0.3, 3.0)}  # of the pooled and of the generative target
NATIVE = ""


class Tuned(ClassifierMixin, BaseEstimator):
    """The setting of least log-loss on a stratified fifth of the rows, refitted on all of them.

    The number of rounds of boosting is tuned as well, for nothing. With ``copies`` all rows, those of the fifth too,
    stand `SHOWN` times, with so much of each hidden at random: the classifier, which takes gaps, learns what they are.
    """

    def __init__(
        self, estimator: BaseEstimator, grid: Mapping[str, list], *, copies: bool = False, random_state: int = 0
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.copies = copies
        self.random_state = random_state

    def fit(self, X: Array, y: NDArray) -> Self:
        """Try each setting, ties to the first."""
        rng = np.random.default_rng(self.random_state)
        train, held = train_test_split(
            np.arange(len(y)), test_size=VALIDATION, stratify=y, random_state=self.random_state
        )
        trial, judge = self._shown(X[train], y[train], rng), self._shown(X[held], y[held], rng)
        tried = []
        for setting in ParameterGrid(self.grid):
            model = clone(self.estimator).set_params(**setting).fit(*trial)
            if hasattr(model, "staged_predict_proba"):
                losses = [scores(P, judge[1])["log_loss"] for P in model.staged_predict_proba(judge[0])]
                tried.append((min(losses), setting | {"max_iter": 1 + int(np.argmin(losses))}))
            else:
                tried.append((scores(model.predict_proba(judge[0]), judge[1])["log_loss"], setting))
        self.setting_ = min(tried, key=lambda pair: pair[0])[1]
        self.estimator_ = clone(self.estimator).set_params(**self.setting_).fit(*self._shown(X, y, rng))
        self.classes_ = self.estimator_.classes_
        return self

    def _shown(self, X: Array, y: NDArray, rng: np.random.Generator) -> tuple[Array, NDArray]:
        if not self.copies:
            return X, y
        return np.vstack([masked(X, at_random(X, share, rng)) for share in SHOWN]), np.tile(y, len(SHOWN))

    def predict_proba(self, X: Array) -> Array:
        """Of the refitted classifier."""
        return self.estimator_.predict_proba(X)


class Learner(NamedTuple):
    """Made of a division and a seed; the ways in which gaps reach it; whether it takes encoded rows."""

    make: Callable[[Division, int], Any]
    ways: tuple[str, ...] = (NATIVE,)
    encoded: bool = False


def _boosting(copies: bool) -> Callable[[Division, int], Tuned]:
    def make(data: Division, seed: int) -> Tuned:
        states = None if data.n_states is None else data.n_states <= 255
        model = HistGradientBoostingClassifier(
            max_iter=100, categorical_features=states, early_stopping=False, random_state=seed
        )
        return Tuned(model, {"max_leaf_nodes": [4, 8, 31]}, copies=copies, random_state=seed)

    return make


def _logistic(copies: bool) -> Callable[[Division, int], Tuned]:
    def make(data: Division, seed: int) -> Tuned:
        steps = [mean_filled(add_indicator=True)] if copies else []
        model = make_pipeline(*steps, StandardScaler(), LogisticRegression(max_iter=300, tol=1e-3))
        return Tuned(model, {"logisticregression__C": [0.1, 1.0, 10.0]}, copies=copies, random_state=seed)

    return make


def _forest(data: Division, seed: int) -> Tuned:
    return Tuned(RandomForestClassifier(100, random_state=seed), {"min_samples_leaf": [1, 3, 10]}, random_state=seed)


def _neighbours(data: Division, seed: int) -> Tuned:
    return Tuned(NeighboursWithGaps(), {"n_neighbors": [5, 10, 30]}, random_state=seed)


def _shrunk(data: Division, seed: int) -> Tuned:
    return Tuned(QDA(prior_covariance="pooled"), {"prior_strength": [1.0, 10.0, 100.0]}, random_state=seed)


Model = Callable[[Division], Any]
MODELS: dict[str, Model] = {
    "QDA": lambda data: QDA(),
    "GaussianNB": lambda data: GaussianNB(),
    "TAN": lambda data: TAN(n_states=data.n_states),
    "NB": lambda data: CategoricalNB(n_states=data.n_states, prior_strength=1.0),
}
TARGETS = {"QDA": "pooled", "TAN": "generative", "GaussianNB": "pooled", "NB": "pooled"}


def _of_model(name: str, learner: Callable[[Any], Any]) -> Learner:
    return Learner(lambda data, seed: learner(MODELS[name](data)))


def _calibrated(name: str, target: str) -> Learner:
    def make(data: Division, seed: int) -> RiskCalibrationCV:
        as_they_are = 0.0 if np.isnan(data.X).any() else None  # rows with gaps, of which none is filled, by five folds
        settings = {"target": target, "target_weights": WEIGHTS, "gaps_in_view": as_they_are, "cv": "loo"}
        return RiskCalibrationCV(MODELS[name](data), **settings)

    return Learner(make)


def _in_view(name: str) -> Learner:
    def make(data: Division, seed: int) -> RiskCalibrationCV:
        settings = {"target": TARGETS[name], "target_weights": WEIGHTS_IN_VIEW[name], "gaps_in_view": RATES_IN_VIEW}
        return RiskCalibrationCV(MODELS[name](data), **settings, cv=5, random_state=seed)

    return Learner(make)


BOOSTING, SHOWN_BOOSTING = "boosting", "boosting, masked copies"
SHOWN_LOGISTIC = "logistic regression, masked copies"
RIVALS = {
    BOOSTING: Learner(_boosting(False), (NATIVE, MEAN, CHAINED, MULTIPLE)),
    SHOWN_BOOSTING: Learner(_boosting(True)),
    "logistic regression": Learner(_logistic(False), (MEAN, CHAINED, MULTIPLE), encoded=True),
    SHOWN_LOGISTIC: Learner(_logistic(True), encoded=True),
    "forest": Learner(_forest, (NATIVE, CHAINED), encoded=True),
    "nearest neighbours": Learner(_neighbours, encoded=True),
}
CLOSED = {name: _of_model(name, lambda model: model) for name in MODELS} | {"QDA, shrunk": Learner(_shrunk)}
CALIBRATED = {f"{name}, calibrated": _calibrated(name, target) for name, target in TARGETS.items()}
POOLED_TREES = "TAN, calibrated, pooled target"
CALIBRATED[POOLED_TREES] = _calibrated("TAN", "pooled")
CONFORMANT = {
    f"{name}, conformant": _of_model(name, lambda model: RiskCalibration(model, target_weight=0.0)) for name in MODELS
}
OURS = {NUMBERS: "QDA, gaps in view", CATEGORIES: "TAN, gaps in view"}
IN_VIEW = {name: _in_view(name.split(",")[0]) for name in OURS.values()}
LEARNERS: dict[str, Learner] = RIVALS | CLOSED | CALIBRATED | IN_VIEW | CONFORMANT
OF_ARM = {NUMBERS: ("QDA", "GaussianNB"), CATEGORIES: ("TAN", "NB")}
# The hypotheses need all but conformant learning; what takes little time is run first
ORDER = ((*CLOSED, *CALIBRATED, *OURS.values()), (SHOWN_BOOSTING, "nearest neighbours"), tuple(RIVALS), tuple(LEARNERS))


def name_of_way(method: str, way: str) -> str:
    """A learner and how its gaps are filled."""
    return f"{method}, {way}" if way else method


# What hypothesis 1 calls every rival trained on complete rows
COMPLETE = tuple(name_of_way(name, way) for name in RIVALS if "masked copies" not in name for way in RIVALS[name].ways)
