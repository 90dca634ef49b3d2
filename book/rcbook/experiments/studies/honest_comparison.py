"""The honest comparison: everything learnt from training rows only, judged on test rows (chapter 11; ours).

Twenty stratified splits, a quarter of the rows for testing, at most `TRAINING_ROWS` of the others for training, the
same for all learners; what is tuned is tuned by the log-loss on a fifth of the training rows, and refitted on all of
them. Of the `SET_ASIDE` no score was looked at until the conclusions were written, and the `LARGE` were run last.
Chapter 11 tells what was fixed before the first run, and what was changed on the way and why. The rescaled closed forms
were added when all of that had been written: they take part in no comparison that was, and have one of their own.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from rcbook import datasets
from rcbook.experiments.cells import SEARCHED, Cell, Grid, Record, Study, mean_record
from rcbook.experiments.comparisons import mean_scores
from rcbook.experiments.rescalings import RESCALINGS, rescaled
from rcbook.experiments.studies.data_and_models_of_rc import ITERATIONS, LEARNING_RATE, RC_PRIOR, rc_model
from rcbook.freezing import Freezing
from rcbook.projected_descent import ProjectedGradientDescent
from rcpkg.base import Array
from rcpkg.calibration import ConditionalLikelihood, Fixed, HeldOut, RiskCalibration
from rcpkg.calibration.choose_weight import TARGET_WEIGHTS
from rcpkg.families import CategoricalNB

STUDY_NAME = "honest"
REPETITIONS = 20
TRAINING_ROWS = 2_000
VALIDATION = 0.2
EARLY_STOPPING_ITERATIONS = 50  # of safe steps, beyond which the validation loss has long turned
PENALISED_ITERATIONS = 30  # where the penalised log-loss is within some 1e-3 of its end
TRIAL_ITERATIONS = 15  # of a penalty weight that is tried; enough to tell tenfold weights apart
BINS = 5
CALIBRATION_BINS = 10
METRICS = ("error_percent", "log_loss", "brier", "calibration_error")
# differences that matter to nobody: the region of practical equivalence, fixed before its results were looked at
ROPE = {"error_percent": 1.0, "log_loss": 0.01, "brier": 0.01, "calibration_error": 0.01}
# of RiskCalibrationCV where studies take it: they were run when it chose the weight alone
WEIGHT_ALONE = {"target": "pooled", "target_weights": TARGET_WEIGHTS, "cv": "loo"}
EPS = np.finfo(float).eps  # probabilities are clipped here for the log-loss, as scikit-learn clips them
FAMILIES = ("NB", "QDA", "LR")
# the tabular sets of rc2024: first those with at most 35 features, 10 classes and 20,000 rows
DEVELOPMENT = {
    name: "rc2024-nb"
    for name in (
        "blood_transfusion",
        "climate_model",
        "diabetes",
        "ecoli",
        "german",
        "glass",
        "haberman",
        "heart",
        "indian_liver",
        "ionosphere",
        "iris",
        "liver_disorder",
        "magic",
        "mammographic",
        "pulsar",
        "redwine",
        "svmguide3",
        "vehicle",
    )
}
LARGE = dict.fromkeys(("adult", "letter", "optdigits", "qsar", "satellite", "sonar", "splice"), "rc2024-nb")
SET_ASIDE = {
    "abalone": "wanbia2014",
    "balance_scale": "original",
    "car": "original",
    "new_thyroid": "original",
    "segment": "original",
    "tic_tac_toe": "original",
    "vowel": "original",
    "waveform": "original",
}


class KMeansBins(TransformerMixin, BaseEstimator):
    """Codes 0, 1, … of at most five bins a feature, from k-means on the training rows; fewer values keep their own."""

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the bin edges of each feature."""
        self.edges_ = [self._edges(column) for column in np.asarray(X).T]
        return self

    @staticmethod
    def _edges(column: Array) -> Array:
        values = np.unique(column)
        if len(values) <= BINS:
            return (values[1:] + values[:-1]) / 2
        binning = KBinsDiscretizer(n_bins=BINS, encode="ordinal", strategy="kmeans")
        return binning.fit(column[:, None]).bin_edges_[0][1:-1]

    def transform(self, X: ArrayLike) -> Array:
        """Codes of any rows; values beyond the training rows fall into the outer bins."""
        codes = [np.searchsorted(e, column, side="right") for e, column in zip(self.edges_, np.asarray(X).T)]
        return np.column_stack(codes).astype(float)


class Tuned(ClassifierMixin, BaseEstimator):
    """The setting of least log-loss on a stratified fifth of the rows, refitted on all rows.

    ``trial`` holds parameters of the trials only.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        grid: Mapping[str, list],
        random_state: int,
        trial: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.random_state = random_state
        self.trial = trial

    def fit(self, X: Array, y: NDArray) -> Self:
        """Try each setting, ties to the first."""
        train, held = train_test_split(
            np.arange(len(y)), test_size=VALIDATION, stratify=y, random_state=self.random_state
        )
        settings = list(ParameterGrid(self.grid))
        losses = []
        for setting in settings:
            model = clone(self.estimator).set_params(**setting, **(self.trial or {})).fit(X[train], y[train])
            losses.append(scores(model.predict_proba(X[held]), y[held])["log_loss"])
        self.setting_ = settings[int(np.argmin(losses))]
        self.estimator_ = clone(self.estimator).set_params(**self.setting_).fit(X, y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Of the refitted model."""
        return self.estimator_.predict_proba(X)


def scores(P: Array, y: NDArray) -> dict[str, float]:
    """Error in per cent, log-loss, Brier score Σ_k (P_k − Y_k)² and calibration error of posteriors (n, r).

    The calibration error is the mean distance between confidence and accuracy of the predicted class over ten bins of
    equally many rows, weighted by their rows.
    """
    rows = np.arange(len(y))
    true, predicted = P[rows, y], P.argmax(axis=1)
    confidence, right = P[rows, predicted], predicted == y
    order = np.argsort(confidence, kind="stable")
    bins = np.array_split(order, min(CALIBRATION_BINS, len(y)))
    gap = sum(len(b) * abs(confidence[b].mean() - right[b].mean()) for b in bins)
    return {
        "error_percent": 100 * float(np.mean(~right)),
        "log_loss": float(-np.log(np.maximum(true, EPS)).mean()),
        "brier": float(np.mean((P**2).sum(axis=1) - 2 * true + 1)),
        "calibration_error": float(gap / len(y)),
    }


class Split(NamedTuple):
    """One division, labels as codes; the features of each family are made from the training rows."""

    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]
    features: dict[str, tuple[Array, Array]]


@lru_cache(maxsize=REPETITIONS)
def split(name: str, variant: str, seed: int) -> Split:
    """A stratified division and the features of naive Bayes (codes of bins), or of the others (z-scores)."""
    bunch = datasets.load(name, variant)
    X, y = bunch.data, np.unique(bunch.target, return_inverse=True)[1]
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
    if len(train) > TRAINING_ROWS:
        train, _ = train_test_split(train, train_size=TRAINING_ROWS, stratify=y[train], random_state=seed)
    features = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(Bins whose width|Number of distinct clusters)")
        for kind, scaling in ("codes", KMeansBins()), ("z", StandardScaler()):
            pipeline = make_pipeline(VarianceThreshold(), scaling).fit(X[train])
            features[kind] = pipeline.transform(X[train]), pipeline.transform(X[test])
    return Split(y[train], y[test], features)


# Learners ------------------------------------------------------------------------------------------


def _gradient_descent(gradient: str) -> Callable[[Any, int], Any]:
    return lambda model, seed: ProjectedGradientDescent(
        model,
        learning_rate=LEARNING_RATE,
        max_iter=ITERATIONS - 1,
        stopping="best_soft_error",
        gradient=gradient,
    )


def _penalised(target: str, weights: list[float]) -> Callable[[Any, int], Any]:
    def make(model: Any, seed: int) -> Tuned:
        learner = RiskCalibration(model, step="safe", max_iter=PENALISED_ITERATIONS, target=target, tol=0.0)
        return Tuned(learner, {"target_weight": weights}, seed, {"max_iter": TRIAL_ITERATIONS})

    return make


class Learner(NamedTuple):
    """Made of a model and a seed; and for each family that it is run with, the closed forms that it starts from."""

    make: Callable[[Any, int], Any]
    starts: Mapping[str, tuple[str, ...]] = dict.fromkeys(FAMILIES, ("ML", "MAP"))


OF_A_MODEL = {
    "closed form": Learner(lambda model, seed: model),
    # lr, iterations and the iterate of least soft error: rc2025; naive Bayes cells that would turn invalid: rc2024
    "RC as published": Learner(
        lambda model, seed: RiskCalibration.as_published(
            model, step=Freezing() if isinstance(model, CategoricalNB) else Fixed(), stopping="best_soft_error"
        )
    ),
    "RC safe, early stopping": Learner(
        lambda model, seed: RiskCalibration(
            model,
            step="safe",
            stopping=HeldOut(VALIDATION),
            max_iter=EARLY_STOPPING_ITERATIONS,
            target_weight=0.0,
            tol=0.0,
            random_state=seed,
        ),
    ),
    "GD as printed": Learner(_gradient_descent("printed")),
    "GD corrected": Learner(_gradient_descent("corrected")),
    # the weights are tuned; a target lies in the interior, so that states unseen in some trial need the prior
    "RC safe, generative target": Learner(
        _penalised("generative", [0.01, 0.1, 1.0]), {"NB": ("MAP",), "QDA": ("MAP",)}
    ),
    "RC safe, pooled target": Learner(_penalised("pooled", [0.3, 3.0, 30.0]), {"NB": ("MAP",), "QDA": ("ML",)}),
    # a prior only sets the start
    "conditional optimum": Learner(
        lambda model, seed: ConditionalLikelihood(model, solver="lbfgs", max_iter=200, tol=1e-5),
        dict.fromkeys(FAMILIES, ("MAP",)),
    ),
}
# what is called calibration elsewhere; there is none where a class has fewer rows than folds
OF_RESCALED = {
    f"closed form, {name}": Learner(
        lambda model, seed, name=name: rescaled(model)[name], dict.fromkeys(FAMILIES, ("MAP",))
    )
    for name in RESCALINGS
}
OF_A_MODEL |= OF_RESCALED
LOGISTIC = "logistic regression, tuned"
C_GRID = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]


def _logistic(family: str, seed: int) -> Tuned:
    """Multinomial logistic regression on the features whose scores the family has, its penalty tuned."""
    first = {
        "NB": OneHotEncoder(handle_unknown="ignore"),
        "QDA": make_pipeline(PolynomialFeatures(2, include_bias=False), VarianceThreshold(), StandardScaler()),
        "LR": StandardScaler(),
    }[family]
    pipeline = make_pipeline(first, LogisticRegression(max_iter=200, tol=1e-3))
    return Tuned(pipeline, {"logisticregression__C": C_GRID}, seed)


OF_Z_SCORES: dict[str, Callable[[int, int], Any]] = {
    "SVM (RBF), tuned": lambda d, seed: Tuned(
        CalibratedClassifierCV(SVC(), method="temperature", cv=3, ensemble=False),
        {"estimator__C": [1.0, 10.0], "estimator__gamma": [0.3 / d, 1 / d]},
        seed,
    ),
    "random forest": lambda d, seed: RandomForestClassifier(200, min_samples_leaf=2, random_state=seed),
    "gradient boosting": lambda d, seed: HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_iter=100,
        early_stopping=True,
        validation_fraction=VALIDATION,
        random_state=seed,
    ),
}


# Protocol ------------------------------------------------------------------------------------------


def _learner(cell: Cell, X: Array, n_classes: int, seed: int) -> Any:
    family, closed_form = cell.arguments["family"], cell.arguments["closed_form"]
    if not family:
        return OF_Z_SCORES[cell.method](X.shape[1], seed)
    if cell.method == LOGISTIC:
        return _logistic(family, seed)
    return OF_A_MODEL[cell.method].make(rc_model(family, closed_form, X, n_classes, RC_PRIOR[family]), seed)


def honest(cell: Cell, seed: int) -> list[Record]:
    """Means over the splits of the four `scores` on the test rows; a learner that fails in one split has none."""
    runs = []
    for split_seed in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        split_seed = int(split_seed)
        data = split(cell.row, cell.arguments["variant"], split_seed)
        X, X_test = data.features["codes" if cell.arguments["family"] == "NB" else "z"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = _learner(cell, X, data.y_train.max() + 1, split_seed).fit(X, data.y_train)
        runs.append(scores(learner.predict_proba(X_test), data.y_test))
    return [mean_record(cell.method, metric, [run[metric] for run in runs]) for metric in runs[0]]


def _closed_forms(cell: Cell, family: str) -> tuple[str, ...]:
    """What a learner of a family starts from, if it does."""
    return OF_A_MODEL[cell.method].starts.get(family, ()) if cell.method in OF_A_MODEL else ("",)


def _grids() -> Iterator[Grid]:
    """Data set by data set; all learners of one meet the same splits."""
    for (name, variant), family in product((DEVELOPMENT | SET_ASIDE | LARGE).items(), (*FAMILIES, "")):
        yield Grid(
            rows=(name,),
            methods=(*OF_A_MODEL, LOGISTIC) if family else OF_Z_SCORES,
            settings=lambda cell, family=family: [f"{family} {start}".strip() for start in _closed_forms(cell, family)],
            protocol=honest,
            arguments=lambda cell, variant=variant, family=family: {
                "variant": variant,
                "family": family,
                "closed_form": cell.setting_value.removeprefix(family).strip(),
                "repetitions": REPETITIONS,
            },
            stream=name,
            quick=name in ("haberman", "iris", "wine") and family != "",
        )


Study(STUDY_NAME, *_grids(), tolerance=SEARCHED)


# What the stored study says -------------------------------------------------------------------------


def means(
    metric: str, sets: Iterable[str] = (*DEVELOPMENT, *SET_ASIDE, *LARGE), rescaled: bool = False
) -> pd.DataFrame:
    """Mean test score over the splits: a row for each data set, a column for each learner, less is better.

    The rescaled closed forms, which were added later, are left out unless ``rescaled``.
    """
    table = mean_scores(STUDY_NAME, metric, sets)
    later = table.columns.str.startswith(tuple(OF_RESCALED))
    return table if rescaled else table.loc[:, ~later]


def learners(family: str) -> list[str]:
    """The learners of a family, from the MAP model wherever the start is free.

    All exist on every data set but one, ``RC safe, pooled target (QDA ML)``: it starts from maximum likelihood, whose
    covariances are singular on some sets.
    """
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}; got {family!r}")
    names = ["closed form", "RC as published", "RC safe, early stopping", "GD as printed", "GD corrected"]
    if family != "LR":
        names += ["RC safe, generative target", "RC safe, pooled target"]
    starts = {name: "ML" if (name, family) == ("RC safe, pooled target", "QDA") else "MAP" for name in names}
    found = [f"{name} ({family} {start})" for name, start in starts.items()]
    return [*found, f"conditional optimum ({family} MAP)", f"{LOGISTIC} ({family})"]
