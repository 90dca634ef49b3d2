"""Rows with gaps: calibrated joint models and what a practitioner would run instead (chapter 13; ours).

All below was fixed before the first cell of a set set aside was run.

**Sets.** Two arms. *Numbers*: the features of numbers with at least five values, z-scores by the training rows; rows
with a gap of their own are left out. *Categories*: states as they are, a value missing in the set being a state of
its own, and numbers cut at the sixths of the training rows. Three sets serve in both arms, marked by `BINNED`. The
`SPENT` sets were looked at in trials before this study: everything is developed on them, and no conclusion rests on
them. Of the others, `ASIDE`, no score was seen before this was written. Stratified divisions, `REPETITIONS` by the
rows of the set: a third of the rows, at most `TEST_ROWS`, for testing, at most `TRAINING_ROWS` of the others for
training; classes that would have fewer than `LEAST_CLASS` training rows are left out, and features that are constant
on them.

**Gaps** are made by us. In the first study (``gaps``) all training rows are complete. At prediction each value is
lost at random with one of `SHARES`; or neighbouring columns, in five groups, are lost together, each group with 35 %;
or values are lost by the value of another feature, which is always there, the others with 35 % on average. In the
second study (``gaps-in-training``) 20 % or 50 % are lost at random in training and prediction.

**Learners** know nothing of gaps to come, but for two that are shown masked copies of the training rows and for
calibration *with gaps in view*. Each is tuned by three settings on a fifth of the training rows, or by its own
cross-validation over three weights. What takes gaps is run so: boosting, forest, nearest neighbours. Boosting, forest
and logistic regression run behind imputation too: by means, by chained regressions, and, five draws with averaged
probabilities, by chained regressions drawn from (numbers) or from near rows, a hot deck (categories). The imputer is
told to go on for five rounds also when the training rows are complete, where by default it would stop after one.

**Our candidate** is calibration with gaps in view: of QDA with the pooled target for numbers, of TAN with the
generative target for categories (`OURS`). Its other parameters are set on the spent sets before it is run on others.

**Hypotheses**, on sets set aside, for each arm and each kind of gaps, by log-loss:

1. From 20 % on (the four shares, groups, and by value) ours has less than *every* rival trained on complete rows
   (`COMPLETE`) on at least 80 % of the sets. 1c: the same with closed forms, plain calibration and conformant learning
   among the rivals.
2. From 35 % on (three shares, groups, by value) ours is level with or ahead of boosting on masked copies.
3. In all eight kinds ours is no worse than the better of the closed form and plain calibration of the same model with
   the same target.

1 is tested by the binomial test of a share of 80 %, 2 and 3 by Wilcoxon's signed-rank test of the differences; Holm's
correction is over all tests of the study. 1 holds as stated where the share observed is at least 80 % and is refuted
where the test finds it smaller; between them it is open. 2 holds where the test finds ours ahead, or finds nothing and
the median difference is at most `ROPE`; it is refuted where the test finds ours behind. 3 holds where no set is worse
by more than `ROPE` (the wording: anywhere); it is refuted where the test finds ours behind, and open otherwise.

**Order.** Small sets first in each arm, arms in turn; on all sets the joint models, then boosting on masked copies and
nearest neighbours, the other rivals, conformant learning, and gaps in training. A run that is cut off says of how many
sets each comparison is.

**Times** are processor seconds: of the fit with tuning and imputer; of a prediction of all test rows with filling in,
in the mean over the kinds of gaps. Memory was not measured.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
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

from rcbook import datasets
from rcbook.experiments.cells import Cell, Grid, Record, Study, mean_record
from rcbook.experiments.gappy_divisions import ASIDE, CATEGORIES, NUMBERS, REPETITIONS, SPENT, Division, division
from rcbook.experiments.studies.honest_comparison import VALIDATION, scores
from rcbook.gap_rivals import DRAWS, ChainedStates, HotDeck, NeighboursWithGaps, at_random, chained, masked, mean_filled
from rcpkg.base import Array
from rcpkg.calibration import RiskCalibration, RiskCalibrationCV
from rcpkg.families import QDA, TAN, CategoricalNB, GaussianNB

STUDY_NAME, TRAINING_NAME = "gaps", "gaps-in-training"
IN_TRAINING = {"20% in training": 0.2, "50% in training": 0.5}


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
PLAIN = {"QDA": "pooled", "TAN": "generative", "GaussianNB": "pooled", "NB": "pooled"}


def _of_model(name: str, learner: Callable[[Any], Any]) -> Learner:
    return Learner(lambda data, seed: learner(MODELS[name](data)))


def _calibrated(name: str, target: str) -> Learner:
    return _of_model(name, lambda model: RiskCalibrationCV(model, target=target, target_weights=WEIGHTS))


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
CALIBRATED = {f"{name}, calibrated": _calibrated(name, target) for name, target in PLAIN.items()}
CALIBRATED["TAN, calibrated, pooled target"] = _calibrated("TAN", "pooled")
CONFORMANT = {
    f"{name}, conformant": _of_model(name, lambda model: RiskCalibration(model, target_weight=0.0)) for name in MODELS
}
LEARNERS: dict[str, Learner] = RIVALS | CLOSED | CALIBRATED | CONFORMANT
OF_ARM = {NUMBERS: ("QDA", "GaussianNB"), CATEGORIES: ("TAN", "NB")}
OURS = {NUMBERS: "QDA, gaps in view", CATEGORIES: "TAN, gaps in view"}
# The hypotheses need all but conformant learning; what takes little time is run first
ORDER = ((*CLOSED, *CALIBRATED, *OURS.values()), (SHOWN_BOOSTING, "nearest neighbours"), tuple(RIVALS), tuple(LEARNERS))


def name_of_way(method: str, way: str) -> str:
    """A learner and how its gaps are filled."""
    return f"{method}, {way}" if way else method


# What hypothesis 1 calls every rival trained on complete rows
COMPLETE = tuple(name_of_way(name, way) for name in RIVALS if "masked copies" not in name for way in RIVALS[name].ways)


# Protocol ----------------------------------------------------------------------------------------------


def _averaged(fits: list[Any], draws: list[Array]) -> Array:
    """Posteriors averaged over draws; of one fit, or of one fit a draw."""
    fits = fits * len(draws) if len(fits) == 1 else fits
    return np.mean([fit.predict_proba(rows) for fit, rows in zip(fits, draws, strict=True)], axis=0)


def ways_of(method: str, share: float) -> tuple[str, ...]:
    """Those of a learner; with gaps in training means come with indicators, and boosting needs neither."""
    ways = LEARNERS[method].ways
    if share:
        ways = tuple(INDICATED if way == MEAN else way for way in ways)
        return (NATIVE, CHAINED) if method == BOOSTING else ways
    return ways


def _given(method: str, way: str, seed: int, *of_division: Any) -> Filled:
    """What a learner is given, as codes or encoded."""
    data, encoded = division(*of_division), LEARNERS[method].encoded
    if way == NATIVE:
        form: Callable[[Array], Array] = data.encoded if encoded else np.asarray
        return Filled([form(data.X)], {kind: [form(X)] for kind, X in data.tests.items()}, 0.0, 0.0)
    found = filled(way, seed, *of_division)
    form = np.asarray if encoded else data.decoded
    tests = {kind: [form(rows) for rows in draws] for kind, draws in found.tests.items()}
    return Filled([form(rows) for rows in found.train], tests, found.fit_seconds, found.seconds)


def _compared(method: str, seed: int, *of_division: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Of one division the numbers of a learner, for each way in which gaps reach it."""
    data, fits = division(*of_division), []
    share = of_division[-1]
    for way in ways_of(method, share):
        given = _given(method, way, seed, *of_division)
        if share or not fits:  # one fit serves all ways where training rows are complete
            start = time.process_time()
            fits = [LEARNERS[method].make(data, seed).fit(rows, data.y) for rows in given.train]
            fit_seconds = time.process_time() - start
        start = time.process_time()
        posteriors = {kind: _averaged(fits, draws) for kind, draws in given.tests.items()}
        seconds = (time.process_time() - start) / len(posteriors)
        yield (
            name_of_way(method, way),
            {
                f"{metric}, {kind}": value
                for kind, P in posteriors.items()
                for metric, value in scores(P, data.y_test).items()
            }
            | {"fit_seconds": fit_seconds + given.fit_seconds, "predict_seconds": seconds + given.seconds},
        )


def compare(cell: Cell, seed: int) -> list[Record]:
    """Means over divisions of four scores on the test rows of each kind of gaps, in each way, and of its times."""
    of_set = cell.arguments["arm"], cell.row, cell.arguments["variant"]
    runs: dict[tuple[str, str], list[float]] = {}
    for part in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        with warnings.catch_warnings(action="ignore"):
            for method, numbers in _compared(cell.method, int(part), *of_set, int(part), cell.arguments["share"]):
                for metric, value in numbers.items():
                    runs.setdefault((method, metric), []).append(value)
    return [mean_record(*names, values) for names, values in runs.items()]


def sets(aside: bool = True) -> list[tuple[str, str]]:
    """Arm and name of the sets, as they are run: the arms in turn."""
    of = ASIDE if aside else SPENT
    ranked = [(place / len(names), arm, name) for arm, names in of.items() for place, name in enumerate(names)]
    return [(arm, name) for _, arm, name in sorted(ranked)]


def repetitions(name: str) -> int:
    """How often a set is divided, by its rows."""
    table = datasets.table()
    rows = table.n_rows[(table.name == name) & (table.variant == "original")].item()
    return next(times for most, times in REPETITIONS.items() if rows <= most)


def _methods(arm: str) -> list[str]:
    other = OF_ARM[CATEGORIES if arm == NUMBERS else NUMBERS]
    return [name for name in LEARNERS if not name.startswith(other)]


def _grids(learners: Iterable[str], share: float = 0.0, setting: str = "") -> Iterator[Grid]:
    """Some learners on all sets."""
    for arm, name in sets():
        yield Grid(
            rows=(name,),
            methods=[method for method in _methods(arm) if method in learners],
            settings=(", ".join(filter(None, (arm, setting))),),
            protocol=compare,
            arguments={"arm": arm, "variant": ASIDE[arm][name], "share": share, "repetitions": repetitions(name)},
            stream=f"{arm}: {name}",
            quick=name in ("iris", "hepatitis"),
        )


def _in_order() -> Iterator[Grid]:
    before: set[str] = set()
    for learners in ORDER:
        yield from _grids(set(learners) - before)
        before |= set(learners)


Study(STUDY_NAME, *_in_order())
Study(
    TRAINING_NAME,
    *(
        grid
        for setting, share in IN_TRAINING.items()
        for grid in _grids({*RIVALS, *CLOSED} - {SHOWN_BOOSTING, SHOWN_LOGISTIC}, share, setting)
    ),
)
