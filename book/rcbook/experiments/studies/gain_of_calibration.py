"""When calibration pays: does the test foresee it, what does a chosen weight bring, at what cost (chapter 11; ours).

Fixed before the first run. The *development sets* are those of the honest comparison, on which the hypotheses were
formed; the *set-aside* ones are twelve numeric sets of Table I of wanbia2014 that it does not use. Classes of fewer
than 40 rows are left out. Two stratified divisions of each, a quarter of the rows for testing; of the others 150 or
600, if there are as many, train (sets of fewer than 300 training rows: all of them, once), and classes of fewer than
ten of those are left out. Features are made from the training rows as in the honest comparison: five bins for naive
Bayes, z-scores for QDA, which gets sets of at most 20 features. All learners of a cell meet the same rows. Seconds are
the processor's, for ``fit``, on one thread.

Hypotheses; the gain is the test log-loss of the closed form less that of `RiskCalibrationCV`, on one division.

1. The p value of `calibration_test` foresees the gain: over all divisions their rank correlation is negative, and the
   median gain is larger where p ≤ 0.05 than elsewhere.
2. Where p > 0.05 calibration does no harm: the gain is above −0.01 on nine divisions of ten.
3. `RiskCalibrationCV` has a lower log-loss than RC as published on more sets than not, for naive Bayes and for QDA.
4. It is level with `LogisticRegressionCV` on the same features: the mean difference over the sets is within 0.01.
5. It takes less time than `LogisticRegressionCV` on most divisions.
6. With many rows (the study ``many-rows``) calibration to the pooled target of the default weight comes within 0.005 of
   the log-loss of logistic regression on the same features, C = 1, in at most half of its time, on most of the sets.

Of ``many-rows`` there is one division, for the time. Logistic regression has `MANY_ITERATIONS` of L-BFGS; C is not
tuned, as at this size it hardly matters. Covertype has 70,000 of its 581,012 rows; all of them were added when the
scores and times of the other sets were known.

The test of the first two hypotheses is one that the library has no longer: of few rows a degree of freedom it rejected
far too often. Its outcomes are kept in the stored cells (`FORMER`). The study ``test-on-the-divisions`` puts the
present test to the same rows. It was written when the gains were known, so that it confirms nothing.

Changed while it ran, for the time, before a score of the set-aside sets was looked at: they have one division in place
of two; and `RiskCalibrationCV`, which takes minutes on shuttle and covertype, is not run on these.
"""

import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from rcbook import datasets
from rcbook.experiments.cells import SEARCHED, STUDY, Cell, Record, Study
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies import honest_comparison as honest
from rcbook.freezing import Freezing
from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration import Fixed, RiskCalibration, RiskCalibrationCV, calibration_test
from rcpkg.families import QDA, CategoricalNB

GAIN, MANY, TESTED = "gain-of-calibration", "many-rows", "test-on-the-divisions"
SET_ASIDE = dict.fromkeys(
    (
        "cmc",
        "led",
        "localization",
        "nursery",
        "page_blocks",
        "pendigits",
        "shuttle",
        "sign",
        "tae",
        "volcanoes",
        "wall_following",
        "yeast",
    ),
    "original",
)
VARIANTS = honest.DEVELOPMENT | SET_ASIDE
DIVISIONS, SIZES, FEW_ROWS = 2, (150, 600), 300
# numbers of rows at which the rule about small classes leaves one class
ONE_CLASS = {"climate_model": SIZES, "page_blocks": (150,), "volcanoes": (150,)}
LEAST_OF_A_CLASS, LEAST_IN_TRAINING = 40, 10
MOST_FEATURES = {"NB": np.inf, "QDA": 20}
DRAWS = 99  # of the test, whose p value is at least 0.01
LOGISTIC_ITERATIONS, MANY_ITERATIONS = 200, 300
PUBLISHED, CHOSEN = "RC as published", "RiskCalibrationCV"
CLOSED, FIXED, LOGISTIC, FOREST, TEST, FORMER = (
    "closed form",
    "RiskCalibration",
    "LogisticRegressionCV",
    "random forest",
    "calibration_test",
    "former test",
)
COVERTYPE_NUMERIC = 10
UNCHOSEN = ("shuttle", "covtype", "covtype, all")
# data set -> variant, family, rows of which a quarter is for testing
MANY_ROWS: dict[str, tuple[str, str, int | None]] = {
    "connect_4": ("wanbia2014", "NB", None),
    "adult": ("rc2024-nb", "NB", None),
    "nursery": ("original", "NB", None),
    "magic": ("rc2024-nb", "QDA", None),
    "sign": ("original", "QDA", None),
    "shuttle": ("original", "QDA", None),
    "covtype": ("wanbia2014", "QDA", 70_000),
    "covtype, all": ("wanbia2014", "QDA", None),
}


def rows_of(name: str, variant: str, most: int | None = None) -> tuple[Array, NDArray[np.intp]]:
    """Rows and labels as codes, at most so many, without small classes; of covertype the numeric features."""
    bunch = datasets.load(name, variant)
    X, y = np.asarray(bunch.data, dtype=float), np.unique(bunch.target, return_inverse=True)[1]
    X = X[:, :COVERTYPE_NUMERIC] if name == "covtype" else X
    if most is not None and len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    return kept_classes(X, y, y, LEAST_OF_A_CLASS)


def kept_classes(
    X: Array, y: NDArray[np.intp], counted: NDArray[np.intp], least: int
) -> tuple[Array, NDArray[np.intp]]:
    """The rows of classes with at least so many of the ``counted`` labels, their codes made consecutive."""
    kept = np.flatnonzero(np.bincount(counted, minlength=y.max() + 1) >= least)
    rows = np.isin(y, kept)
    return X[rows], np.searchsorted(kept, y[rows])


def division(X: Array, y: NDArray[np.intp], size: int | None, seed: int) -> tuple[Any, ...]:
    """Training rows, at most ``size``, and test rows: X, y, X, y."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    if size is not None and len(y) > size:
        X, _, y, _ = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
    test = kept_classes(X_test, y_test, y, LEAST_IN_TRAINING)
    return *kept_classes(X, y, y, LEAST_IN_TRAINING), *test


def prepared(family: str, X: Array, X_test: Array) -> tuple[Array, Array]:
    """Codes of bins, or z-scores, learnt from the training rows."""
    pipeline = make_pipeline(VarianceThreshold(), honest.KMeansBins() if family == "NB" else StandardScaler()).fit(X)
    return pipeline.transform(X), pipeline.transform(X_test)


def features(family: str) -> Any:
    """scikit-learn's transformer to features in which the scores of the family are linear."""
    if family == "NB":
        return OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(PolynomialFeatures(2, include_bias=False), VarianceThreshold(), StandardScaler())


def learners(family: str) -> dict[str, Any]:
    """Those of a family, at their defaults; a forest stands beside naive Bayes."""
    model = CategoricalNB(prior_strength=1.0) if family == "NB" else QDA()
    published = {"stopping": "best_soft_error", "step": Freezing() if family == "NB" else Fixed()}
    logistic = LogisticRegressionCV(
        Cs=honest.C_GRID, cv=5, scoring="neg_log_loss", max_iter=LOGISTIC_ITERATIONS, use_legacy_attributes=False
    )
    return {
        CLOSED: model,
        PUBLISHED: RiskCalibration.as_published(model, **published),
        FIXED: RiskCalibration(model, step="safe"),
        CHOSEN: RiskCalibrationCV(model, closed_form=False, **honest.WEIGHT_ALONE),
        LOGISTIC: make_pipeline(features(family), logistic),
    }


def judged(name: str, learner: Any, data: tuple[Any, ...]) -> tuple[Any, list[Record]]:
    """A fit, its scores on the test rows and its seconds."""
    X, y, X_test, y_test = data
    start = time.process_time()
    learner.fit(X, y)
    seconds = time.process_time() - start
    found = honest.scores(learner.predict_proba(X_test), y_test) | {"seconds": seconds}
    return learner, [Record(name, metric, float(value)) for metric, value in found.items()]


def gain(cell: Cell, seed: int) -> list[Record]:
    """Scores and seconds of all learners, and the weight chosen, on one division."""
    family, size = cell.arguments["family"], cell.arguments["rows"]
    X, y, X_test, y_test = division(*rows_of(cell.row, cell.arguments["variant"]), size, seed % 2**32)
    records = [Record("", "rows", float(len(y))), Record("", "features", float(X.shape[1]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = *prepared(family, X, X_test), y_test
        data = data[0], y, data[1], y_test
        for name, learner in learners(family).items():
            fit, found = judged(name, learner, data)
            records += found
            if name == CHOSEN:
                records.append(Record(name, "target_weight", fit.target_weight_))
        if family == "NB":
            forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=seed % 2**32)
            records += judged(FOREST, forest, (X, y, X_test, y_test))[1]
    return records


def tested(cell: Cell, seed: int) -> list[Record]:
    """The outcome of the test on the training rows of a division, empty where maximum likelihood does not exist."""
    family, size = cell.arguments["family"], cell.arguments["rows"]
    X, y, X_test, _ = division(*rows_of(cell.row, cell.arguments["variant"]), size, seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, _ = prepared(family, X, X_test)
    return outcome(family, X, y, seed)


def outcome(family: str, X: Array, y: NDArray[np.intp], seed: int) -> list[Record]:
    """Statistic, its expectation, p value and seconds of the test."""
    start, names = time.process_time(), ("statistic", "expected", "p_value")
    model = CategoricalNB() if family == "NB" else QDA()
    try:
        values = calibration_test(model, X, y, n_bootstrap=DRAWS, random_state=seed % 2**32)
    except InvalidStatistics:
        return [Record(TEST, name, None) for name in names]
    records = [Record(TEST, name, float(value)) for name, value in zip(names, values)]
    return [*records, Record(TEST, "seconds", time.process_time() - start)]


def many(cell: Cell, seed: int) -> list[Record]:
    """Scores and seconds of one learner on a large set."""
    variant, family, most = MANY_ROWS[cell.row]
    X, y, X_test, y_test = division(*rows_of(cell.row.split(",")[0], variant, most), None, 0)
    X, X_test = prepared(family, X, X_test)
    chosen = learners(family) | {
        "logistic regression": make_pipeline(features(family), LogisticRegression(max_iter=MANY_ITERATIONS))
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "(target_weight_=|cv=)", UserWarning)
        fit, records = judged(cell.method, chosen[cell.method], (X, y, X_test, y_test))
    last = fit[-1] if hasattr(fit, "steps") else fit
    if hasattr(last, "n_iter_"):
        records.append(Record(cell.method, "iterations", float(np.max(last.n_iter_))))
    return [*records, Record(cell.method, "rows", float(len(y)))]


@lru_cache
def _table() -> pd.DataFrame:
    return datasets.table().set_index(["name", "variant"])


def settings_of(cell: Cell) -> Iterator[str]:
    """Families, numbers of rows, and divisions."""
    entry = _table().loc[(cell.row, VARIANTS[cell.row])]
    sizes = SIZES if 0.75 * entry.n_rows >= FEW_ROWS else SIZES[1:]
    sizes = [size for size in sizes if size not in ONE_CLASS.get(cell.row, ())]
    for family, size in product((f for f, most in MOST_FEATURES.items() if entry.n_features <= most), sizes):
        yield from (f"{family}/{size}/{number}" for number in range(1 if cell.row in SET_ASIDE else DIVISIONS))


def arguments_of(cell: Cell) -> dict[str, Any]:
    """What the protocol is told of a setting ``family/rows/division``."""
    family, size, _ = cell.setting_value.split("/")
    return {"variant": VARIANTS[cell.row], "family": family, "rows": int(size)}


OF_DIVISIONS: dict[str, Any] = {
    "rows": VARIANTS,
    "settings": settings_of,
    "arguments": arguments_of,
    "stream": lambda cell: f"{cell.row}/{cell.setting_value.split('/')[-1]}",
    "quick": lambda cell: cell.row == "haberman",
}
Study(GAIN, protocol=gain, tolerance=SEARCHED, former=(TEST,), **OF_DIVISIONS)
Study(TESTED, protocol=tested, **OF_DIVISIONS)
Study(
    MANY,
    rows=MANY_ROWS,
    methods=(CLOSED, FIXED, CHOSEN, "logistic regression"),
    protocol=many,
    stream=lambda cell: cell.row,
    quick=lambda cell: cell.row == "nursery",
    where=lambda cell: cell.method != CHOSEN or cell.row not in UNCHOSEN,
)


# What the stored studies say ------------------------------------------------------------------------


def divisions() -> pd.DataFrame:
    """A row a division, with set, family, rows asked for, number and group; columns (method, metric)."""
    found = pd.concat([results(STUDY, GAIN).replace({"method": {TEST: FORMER}}), results(STUDY, TESTED)])
    keys = found.setting_value.str.split("/", expand=True).set_axis(["family", "size", "division"], axis=1)
    found = found.assign(**keys.astype({"size": int, "division": int}), set=found.row)
    index = ["set", "family", "size", "division"]
    wide = found.fillna({"method": ""}).pivot(index=index, columns=["method", "metric"], values="value")
    group = np.where(wide.index.get_level_values("set").isin(list(SET_ASIDE)), "set aside", "development")
    return wide.set_index(pd.Index(group, name="group"), append=True)


def gains(wide: pd.DataFrame) -> pd.Series:
    """Test log-loss of the closed form less that of `RiskCalibrationCV`, a division each."""
    return wide[CLOSED, "log_loss"] - wide[CHOSEN, "log_loss"]


def means(wide: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean over divisions and numbers of rows: a row each family and set, a column a method."""
    return wide.xs(metric, axis=1, level="metric").groupby(["family", "set"], sort=False).mean()


def many_rows() -> pd.DataFrame:
    """The study of many rows: a row each set and method, a column a metric."""
    found = results(STUDY, MANY)
    return found.pivot(index=["row", "method"], columns="metric", values="value").rename_axis(index=["set", "method"])
