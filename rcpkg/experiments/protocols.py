"""The published experiments: each table a list of cells, each protocol a pure function (cell, seed) -> records.

A protocol is named by ``"module:function"``, so that a worker process finds it by itself. It returns one `Record`
for each number; the means, ranks, counts and "reach" that a table prints beside them are numbers like the others.
"""

import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from rcpkg import datasets, published
from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration import (
    DiscriminativeFrequencyEstimate,
    RiskCalibration,
    calibration_weights,
    frequency_weights,
    mean_losses,
    row_losses,
)
from rcpkg.conditional import ProjectedGradientDescent, categorical_step, linear_step, quadratic_step
from rcpkg.generative import (
    QDA,
    CategoricalNB,
    ClosedFormClassifier,
    GaussianParameters,
    SharedVarianceGaussianNB,
    Statistics,
    one_hot,
)

LEARNING_RATE = 0.1  # of all tables; DFE, printed without one, comes out with the same
ITERATIONS = 64  # as printed; the first is the closed-form model
REPETITIONS = 20  # of each random split; the sources used 5
STUDY = "study"  # in place of a source: experiments that no source prints
QUICK_SIZE = 12_000  # rows times features up to which a data set belongs to a quick run
STUDY_ROWS = 2_000  # beyond, a quarter of the rows has nearly the error of the others anyway
IMAGE_SETS = ("catsvsdogs", "cifar10", "fashion mnist", "mnist", "yearbook")

NO_IMAGES = "the 512 network features of this image set were not published"
NO_PROTOCOL = "no protocol yet"


class Record(NamedTuple):
    """One recomputed number: of a deterministic protocol, or the mean of ``n_runs`` runs."""

    method: str
    metric: str
    value: float | None
    std: float | None = None
    n_runs: int = 1


@dataclass(frozen=True)
class Cell:
    """What is computed at a time: the numbers of one method in one row of a table.

    Cells of the same ``stream`` draw the same random numbers, so that methods meet the same divisions of the data.
    ``reason`` says why a cell is not attempted.
    """

    source: str
    table: str
    row: str
    method: str
    protocol: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    setting_value: str = ""
    stream: str = ""
    quick: bool = False
    reason: str = ""

    @property
    def key(self) -> str:
        """Name of the cell within its table."""
        return "/".join(filter(None, (self.row, self.method, self.setting_value)))


def mean_record(method: str, metric: str, runs: Iterable[float]) -> Record:
    """The mean of runs with their standard deviation."""
    values = np.asarray(list(runs), dtype=float)
    return Record(method, metric, float(values.mean()), float(values.std(ddof=1)), len(values))


# Data and models as the RC papers used them --------------------------------------------------------


@lru_cache
def _registered(source: str) -> dict[str, str]:
    """Printed name of a data set -> name in our registry."""
    table = datasets.table()
    stated = table[(table.variant == source) & (table.stated_in != "")]
    return dict(zip(stated.stated_in.str.split(":").str[2], stated.name, strict=True))


@lru_cache(maxsize=4)
def rc_data(name: str, variant: str, classifier: str) -> tuple[Array, NDArray]:
    """Discretised for naive Bayes (five k-means bins a feature), z-scored otherwise; both on all rows."""
    bunch = datasets.load(name, variant)
    if classifier == "NB":
        return _five_bins(bunch.data), bunch.target
    return StandardScaler().fit_transform(bunch.data), bunch.target


def _five_bins(X: Array) -> Array:
    """Codes 0, 1, … of five k-means bins; features of fewer values keep them, and some fill four bins only."""
    codes = np.empty_like(X)
    binning = KBinsDiscretizer(n_bins=5, encode="ordinal", strategy="kmeans")
    for j, column in enumerate(X.T):
        values, codes[:, j] = np.unique(column, return_inverse=True)
        if len(values) >= 5:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
                codes[:, j] = binning.fit_transform(column[:, None])[:, 0]
    return codes


def rc_model(
    classifier: str, closed_form: str, X: Array, n_classes: int, prior: dict[str, float]
) -> ClosedFormClassifier:
    """The papers' model by maximum likelihood or with their prior; a class counts as one pseudo-row (m0 = r)."""
    strength = prior if closed_form == "MAP" else {}
    if strength:
        strength = {**strength, "class_prior_strength": float(n_classes)}
    if classifier == "NB":
        return CategoricalNB(n_states=X.max(axis=0).astype(int) + 1, **strength)
    return {"QDA": QDA, "LR": SharedVarianceGaussianNB}[classifier](**strength)


# m1 = m2 = 10 of rc2025 app. C. The text has m0 = r for naive Bayes; one pseudo-row was chosen out of 176 priors
# because the printed MAP column of rc2024 Table III comes out best with it: agreement there is partly by choice.
RC_PRIOR = {
    "NB": {"prior_strength": 1.0},
    "QDA": {"prior_strength": 10.0},
    "LR": {"prior_strength": 10.0},
}
LEARNERS: dict[str, type[RiskCalibration]] = {"RC": RiskCalibration, "DFE": DiscriminativeFrequencyEstimate}
DESCENTS = ("GD", "GD corrected")  # as the tables have it, and with the gradient of the mean log-loss


def _learner(
    method: str, model: ClosedFormClassifier, stopping: str, on_invalid: str, iterations: int = ITERATIONS
) -> RiskCalibration:
    """The papers' settings of a learner; any other method is the closed form, which RC without an update is.

    The GD columns come out with the gradients of NB and QDA as they are printed, errors included. The rule printed
    for LR has no posteriors in it; the column comes out with them.
    """
    settings = {"learning_rate": LEARNING_RATE, "stopping": stopping, "max_iter": iterations - 1}
    if method in DESCENTS:
        printed = method == "GD" and not isinstance(model, SharedVarianceGaussianNB)
        return ProjectedGradientDescent(model, gradient="printed" if printed else "corrected", **settings)
    if method not in LEARNERS:
        settings["max_iter"] = 0
    return LEARNERS.get(method, RiskCalibration)(model, on_invalid=on_invalid, **settings)


def rc_size(cell: Cell, seed: int) -> list[Record]:
    """rc2024 Table I, rc2025 Table 2: numbers of rows and features after the papers' selection."""
    n, d = datasets.load(cell.arguments["name"], cell.arguments["variant"]).data.shape
    return [Record("", "m_instances", n), Record("", "n_variables", d)]


def all_rows_history(cell: Cell, method: str, iterations: int = ITERATIONS) -> pd.DataFrame:
    """Training losses of iterations 1 (the closed form) to 64 on all rows (rc2024 §IV)."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier])
    on_invalid = "freeze" if classifier == "NB" else "halt"
    learner = _learner(method, model, "best_error", on_invalid, iterations)
    return learner.fit(X, y).history_


def rc2024_all_rows(cell: Cell, seed: int) -> list[Record]:
    """rc2024 Tables II-VII and IX: least training error of 64 iterations on all rows, and where it is reached.

    "Reach" is the first iteration at which RC is as good as the other learner at its best; it is printed in RC's
    columns and computed with the other learner.
    """
    errors = all_rows_history(cell, cell.method).error.to_numpy()
    records = [Record(cell.method, "empirical_error_fraction", float(errors.min()))]
    if cell.method in ("ML", "MAP"):
        return records
    records.append(Record(cell.method, "iterations", int(errors.argmin()) + 1))
    if cell.method != "RC":
        records.append(Record("RC", "reach", first_reach(all_rows_history(cell, "RC").error.to_numpy(), errors)))
    return records


def first_reach(ours: Array, others: Array) -> int | None:
    """The first iteration, from 1, at which ``ours`` is as low as the least of ``others``; None if there is none."""
    reached = np.flatnonzero(ours <= others.min())
    return int(reached[0]) + 1 if reached.size else None


def _split_run(cell: Cell, method: str, seed: int, n_iterations: int = ITERATIONS) -> tuple[float, float, int, Array]:
    """One random division: train and test error in per cent, best iteration, soft errors of all iterations."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier])
    learner = _learner(method, model, "best_soft_error", "halt", n_iterations).fit(X_train, y_train)
    errors = (100 * float(np.mean(learner.predict(A) != b)) for A, b in ((X_train, y_train), (X_test, y_test)))
    return *errors, learner.best_iter_ + 1, learner.history_.soft_error.to_numpy()


def _split_reach(cell: Cell, seed: int, others: Array) -> int | None:
    """First iteration at which RC is as good as the best of ``others``; a few iterations are tried before all."""
    for n_iterations in (8, ITERATIONS):
        if reach := first_reach(_split_run(cell, "RC", seed, n_iterations)[3], others):
            return reach
    return None


def rc2025_splits(cell: Cell, seed: int) -> list[Record]:
    """rc2025 Tables 3, 5, 7, 9 and 11 as the text states them: trained on 75 % of the rows, tested on 25 %.

    "Reach" has a value only where RC is at least as good as the other learner in every division.
    """
    seeds = np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"])
    runs = [_split_run(cell, cell.method, int(s)) for s in seeds]
    train, test, iterations, soft_errors = zip(*runs, strict=True)
    records = [
        mean_record(cell.method, "train_error_percent", train),
        mean_record(cell.method, "test_error_percent", test),
    ]
    if cell.method in (*LEARNERS, *DESCENTS):
        records.append(mean_record(cell.method, "iterations", iterations))
    if cell.method in ("DFE", "GD"):
        reach = [_split_reach(cell, int(s), other) for s, other in zip(seeds, soft_errors, strict=True)]
        if None in reach:
            records.append(Record("RC", "reach", None, None, len(reach)))
        else:
            records.append(mean_record("RC", "reach", reach))
    return records


def calibrated(model: ClosedFormClassifier, X: Any, Y: Array, statistics: Statistics, rule: Callable) -> Iterator:
    """Log posteriors of the iterates of s ← s + lr s(X, W) from given statistics, as far as these stay valid."""
    for _ in range(ITERATIONS):
        try:
            parameters = model.parameters(statistics)
        except InvalidStatistics:
            return
        log_P = log_posterior(model.log_joint(X, parameters), model.log_class_probabilities(parameters))
        yield log_P
        statistics = statistics + LEARNING_RATE * model.statistics(X, rule(np.exp(log_P), Y))


def _descended(model: ClosedFormClassifier, X: Any, Y: Array, parameters: Any) -> Iterator:
    """Log posteriors of the iterates of the papers' gradient descent from given parameters."""
    for _ in range(ITERATIONS):
        log_P = log_posterior(model.log_joint(X, parameters), model.log_class_probabilities(parameters))
        yield log_P
        change = (LEARNING_RATE / len(Y)) * model.statistics(X, calibration_weights(np.exp(log_P), Y))
        try:
            if isinstance(model, CategoricalNB):
                parameters = categorical_step(model, parameters, change, printed=True)
            elif isinstance(model, QDA):
                parameters = quadratic_step(model, parameters, change, printed=True)
            else:
                parameters = linear_step(model, parameters, change)
        except InvalidStatistics:
            return


def _updates_on_all_rows(cell: Cell, seed: int) -> tuple[float, float, int]:
    """One random division: errors in per cent of a learner whose updates use the test rows too, and best iteration.

    The start is the closed form of the training rows or of all rows; the iterate of least soft error on the rows of
    the start is taken, as far as the statistics stay valid.
    """
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
    begin = train if cell.arguments["start"] == "train" else np.arange(len(y))
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier]).fit(X[begin], y[begin])
    codes, X = np.searchsorted(model.classes_, y), model._encode(X)
    Y = one_hot(codes, len(model.classes_))
    if cell.method == "GD":
        iterates = _descended(model, X, Y, model.parameters_)
    else:
        rule = frequency_weights if cell.method == "DFE" else calibration_weights
        iterates = calibrated(model, X, Y, model.statistics_, rule)
    runs = []
    for log_P in iterates if cell.method in (*LEARNERS, "GD") else islice(iterates, 1):
        wrong = 100.0 * (log_P.argmax(axis=1) != codes)
        runs.append(
            (mean_losses(row_losses(log_P[begin], codes[begin])).soft_error, wrong[train].mean(), wrong[test].mean())
        )
    best = int(np.argmin([soft_error for soft_error, _, _ in runs]))
    return runs[best][1], runs[best][2], best + 1


def rc2025_updates_on_all_rows(cell: Cell, seed: int) -> list[Record]:
    """What the test columns of rc2025 would be if the updates, or the start too, had used the test rows."""
    seeds = np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"])
    train, test, iterations = zip(*(_updates_on_all_rows(cell, int(s)) for s in seeds), strict=True)
    return [
        mean_record(cell.method, "train_error_percent", train),
        mean_record(cell.method, "test_error_percent", test),
        mean_record(cell.method, "iterations", iterations),
    ]


def random_model(n_classes: int, n_features: int, rng: np.random.Generator) -> GaussianParameters:
    """p(y) from the uniform distribution on the simplex, class means from N(0, 1), variances one."""
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    ones = np.ones(n_features)
    return GaussianParameters(log_prior, rng.standard_normal((n_classes, n_features)), ones, ones)


def rc2024_random(cell: Cell, seed: int) -> list[Record]:
    """rc2024 Table VIII: RC and GD for LR from one random model of the z-scores, the same for both, many times over.

    How the parameters were drawn is not stated; `random_model` is our choice. RC starts from the statistics that
    this model expects of m rows. "Reach" is the mean over the runs in which RC gets there.
    """
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "LR")
    model = SharedVarianceGaussianNB().fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    Y = one_hot(codes, len(model.classes_))
    runs, reach = [], []
    for stream in np.random.SeedSequence(seed).spawn(cell.arguments["repetitions"]):
        start = random_model(Y.shape[1], X.shape[1], np.random.default_rng(stream))
        statistics = len(y) * model.mean_parameters(start)
        ours = (_error(log_P, codes) for log_P in calibrated(model, X, Y, statistics, calibration_weights))
        if cell.method == "Random":
            runs.append(np.array([next(ours)]))
        elif cell.method == "RC":
            runs.append(np.array(list(ours)))
        else:
            runs.append(np.array([_error(log_P, codes) for log_P in _descended(model, X, Y, start)]))
            reach.append(next((t for t, error in enumerate(ours, start=1) if error <= runs[-1].min()), None))
    records = [mean_record(cell.method, "empirical_error_fraction", (run.min() for run in runs))]
    if cell.method != "Random":
        records.append(mean_record(cell.method, "iterations", (run.argmin() + 1 for run in runs)))
    if cell.method == "GD":
        reached = [t for t in reach if t is not None]
        records.append(mean_record("RC", "reach", reached) if len(reached) > 1 else Record("RC", "reach", None))
    return records


def _error(log_P: Array, codes: NDArray) -> float:
    return float(np.mean(log_P.argmax(axis=1) != codes))


class ToyGaussians(ClosedFormClassifier):
    """rc2025 §4.1: two classes of weight 1/2, x | y ~ N(mu_y, 1), with mu_y = s_y / n_y.

    The printed density lacks the factor 1/2 in the exponent; the printed posterior (0.65, 0.35) at x = 1 has it.
    """

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """(Σ W_iy, Σ W_iy x_i)."""
        return Statistics(count=weights.sum(axis=0), first=weights.T @ X[:, 0])

    def parameters(self, statistics: Statistics) -> Array:
        """Class means, shape (r,)."""
        return statistics.first / statistics.count

    def log_joint(self, X: Array, parameters: Array) -> Array:
        """log p(x, y) up to a constant."""
        return -0.5 * (X - parameters) ** 2


def rc2025_toy(cell: Cell, seed: int) -> list[Record]:
    """rc2025 Table 1: RC with learning rate 1/2 on (0, 1), (1, 2), (4, 2)."""
    X, y = np.array([[0.0], [1.0], [4.0]]), np.array([1, 2, 2])
    learner = RiskCalibration(ToyGaussians(), learning_rate=0.5, max_iter=int(cell.setting_value), stopping="none")
    learner.fit(X, y)
    if cell.row == "soft":
        return [Record("RC", "train_soft_error", float(learner.history_.soft_error.iloc[-1]))]
    point = [0.0, 1.0, 4.0].index(float(cell.row.split(",")[0]))
    posterior = learner.predict_proba(X)[point, y[point] - 1]
    return [Record("RC", "prob_of_true_label", float(posterior))]


# Tables: the cells of each -------------------------------------------------------------------------


def _rows(source: str, table: str):
    """One entry for each method and setting of each data row of a printed table."""
    cells = published.table(source, table)
    return cells[~cells.dataset.str.startswith("(all")].drop_duplicates(["row", "method", "setting_value"])


def _rc_cells(source: str, table: str, protocol: Callable, variant: str, **arguments: Any):
    """Cells of an RC table."""
    names = _registered(source)
    for row in _rows(source, table).itertuples():
        cell = Cell(source, table, row.row, row.method, setting_value="")
        if row.dataset in IMAGE_SETS:
            yield replace(cell, reason=NO_IMAGES)
        else:
            yield replace(
                cell,
                protocol=f"{__name__}:{protocol.__name__}",
                arguments={"name": names[row.dataset], "variant": variant, **arguments},
                stream=names[row.dataset],
                quick=row.n_instances * row.n_features <= QUICK_SIZE,
            )


def small_sets() -> set[str]:
    """Rows of rc2025 Table 2 with at most `STUDY_ROWS` rows."""
    sizes = published.table("rc2025", "2")
    return set(sizes.row[(sizes.metric == "m_instances") & (sizes.value <= STUDY_ROWS)])


def _toy_cells():
    for row in _rows("rc2025", "1").itertuples():
        yield Cell(
            "rc2025",
            "1",
            row.row,
            row.method,
            f"{__name__}:rc2025_toy",
            {},
            setting_value=row.setting_value,
            quick=True,
        )


def _all_rows_study():
    """rc2025 Tables 3, 5, 7, 9 and 11 with updates on all rows, from either start, where the sets are small."""
    small = small_sets()
    for table in RC2025_MODELS:
        for cell in TABLES["rc2025", table]():
            if cell.reason or cell.row not in small or (table == "11" and cell.method == "RC"):
                continue
            for start in ("train", "all"):
                yield replace(
                    cell,
                    source=STUDY,
                    table="rc2025-updates-on-all-rows",
                    protocol=f"{__name__}:rc2025_updates_on_all_rows",
                    arguments=cell.arguments | {"start": start},
                    setting_value=f"{table}|{start}",
                )


def _elsewhere(module: str, table: str) -> Callable[[], Iterable[Cell]]:
    """The cells that a module of this package lists; it imports this one, so that it is imported when asked."""
    return lambda: importlib.import_module(f"rcpkg.experiments.{module}").cells(table)


def _summary_cells() -> Iterable[Cell]:
    """Tables of counts are made from the tables they count in; they have no cells of their own."""
    return ()


def _rc2024(table: str) -> Callable[[], Iterable[Cell]]:
    classifier, closed_form = RC2024_MODELS[table]
    variant = "rc2024-nb" if classifier == "NB" else "rc2024"
    protocol, settings = rc2024_all_rows, {"classifier": classifier, "closed_form": closed_form}
    if closed_form == "Random":
        protocol, settings = rc2024_random, {"repetitions": REPETITIONS}
    return lambda: _rc_cells("rc2024", table, protocol, variant, **settings)


def _rc2025(table: str) -> Callable[[], Iterable[Cell]]:
    classifier, closed_form = RC2025_MODELS[table]
    # QDA needs the features that vary within every class, which are those of rc2024
    variant = "rc2024" if classifier == "QDA" else "rc2025"
    settings = {"classifier": classifier, "closed_form": closed_form, "repetitions": REPETITIONS}
    return lambda: _rc_cells("rc2025", table, rc2025_splits, variant, **settings)


RC2024_MODELS = {
    "II": ("NB", "ML"),
    "III": ("NB", "MAP"),
    "IV": ("QDA", "ML"),
    "V": ("QDA", "MAP"),
    "VI": ("LR", "ML"),
    "VII": ("LR", "MAP"),
    "VIII": ("LR", "Random"),
    "IX": ("NB", "ML"),
}
RC2025_MODELS = {
    "3": ("NB", "ML"),
    "5": ("QDA", "ML"),
    "7": ("NB", "MAP"),
    "9": ("QDA", "MAP"),
    "11": ("NB", "ML"),
}
TABLES: dict[tuple[str, str], Callable[[], Iterable[Cell]]] = {
    ("rc2024", "I"): lambda: _rc_cells("rc2024", "I", rc_size, "rc2024"),
    **{("rc2024", table): _rc2024(table) for table in RC2024_MODELS},
    ("rc2025", "1"): _toy_cells,
    ("rc2025", "2"): lambda: _rc_cells("rc2025", "2", rc_size, "rc2025"),
    ("rc2025", "3"): _rc2025("3"),
    ("rc2025", "4"): _summary_cells,
    ("rc2025", "5"): _rc2025("5"),
    ("rc2025", "6"): _summary_cells,
    ("rc2025", "7"): _rc2025("7"),
    ("rc2025", "8"): _summary_cells,
    ("rc2025", "9"): _rc2025("9"),
    ("rc2025", "10"): _summary_cells,
    ("rc2025", "11"): _rc2025("11"),
    ("rc2025", "12"): _summary_cells,
    **{("thesis2007", f"5.{k}"): _elsewhere("studies.tables_of_bda7", f"5.{k}") for k in range(1, 23)},
    ("thesis2007", "6.1"): _elsewhere("studies.tables_of_local_bda", "6.1"),
    ("thesis2007", "6.2"): _elsewhere("studies.tables_of_local_bda", "6.2"),
    ("thesis2007", "6.3"): _elsewhere("studies.tables_of_local_bda", "6.3"),
    (STUDY, "rc2025-updates-on-all-rows"): _all_rows_study,
    (STUDY, "training-histories"): _elsewhere("rc_studies", "training-histories"),
    (STUDY, "gd-corrected"): _elsewhere("rc_studies", "gd-corrected"),
    (STUDY, "digits-instead-of-images"): _elsewhere("rc_studies", "digits-instead-of-images"),
    (STUDY, "digits-curves"): _elsewhere("rc_studies", "digits-curves"),
    (STUDY, "best-iterate"): _elsewhere("rc_studies", "best-iterate"),
    (STUDY, "knn-costs"): _elsewhere("studies.costs_of_neighbour_votes", "knn-costs"),
    (STUDY, "honest"): _elsewhere("studies.honest_comparison", "honest"),
    (STUDY, "local-curves"): _elsewhere("studies.printed_sizes_of_local_bda", "local-curves"),
    (STUDY, "local-test-errors"): _elsewhere("studies.printed_sizes_of_local_bda", "local-test-errors"),
    (STUDY, "local-2026"): _elsewhere("studies.printed_sizes_of_local_bda", "local-2026"),
    (STUDY, "figures-4.1-4.2"): _elsewhere("studies.distribution_or_parameter_based", "figures-4.1-4.2"),
    (STUDY, "bda7-2026"): _elsewhere("studies.bda7_among_todays_classifiers", "bda7-2026"),
}


def tables() -> list[str]:
    """Names ``source:table`` of the published tables that have a protocol."""
    return [":".join(key) for key in TABLES]


def cells(source: str, table: str, quick: bool = False) -> list[Cell]:
    """The cells of a published table or a study; ``quick``: those of small data sets, with few repetitions.

    Raises
    ------
    ValueError
        If the sources print no such table, or no protocol is written for it yet.
    """
    if source != STUDY:
        published.table(source, table)
    if (source, table) not in TABLES:
        raise ValueError(f"there is no protocol yet for {source}:{table}; there is one for {', '.join(tables())}")
    found = list(TABLES[source, table]())
    if not quick:
        return found
    return [
        replace(cell, arguments=cell.arguments | ({"repetitions": 3} if "repetitions" in cell.arguments else {}))
        for cell in found
        if cell.quick
    ]
