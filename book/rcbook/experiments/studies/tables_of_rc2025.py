"""The tables of rc2025: errors over random divisions, and its toy example (chapter 18)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.model_selection import train_test_split

from rcbook import published
from rcbook.experiments.cells import Cell, Record, Study, cells_of, mean_record
from rcbook.experiments.studies.data_and_models_of_rc import (
    DESCENTS,
    ITERATIONS,
    LEARNERS,
    RC_PRIOR,
    REPETITIONS,
    data_rows,
    first_reach,
    fitted,
    rc_cells,
    rc_data,
    rc_learner,
    rc_model,
    rc_size,
)
from rcpkg.base import Array
from rcpkg.calibration import RiskCalibration
from rcpkg.families import ClosedFormClassifier, Family, Statistics

PRINTED_REPETITIONS = 5
SMALL = 2_000  # rows; beyond, a quarter of the rows has nearly the error of the others anyway
SUMMARIES = ("4", "6", "8", "10", "12")  # counts, made from the tables they count in: they have no cells of their own
RC2025_MODELS = {
    "3": ("NB", "ML"),
    "5": ("QDA", "ML"),
    "7": ("NB", "MAP"),
    "9": ("QDA", "MAP"),
    "11": ("NB", "ML"),
}


def _split_run(cell: Cell, method: str, seed: int, n_iterations: int = ITERATIONS) -> tuple[float, float, int, Array]:
    """One random division: train and test error in per cent, best iteration, soft errors of all iterations."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier])
    on_invalid = cell.arguments.get("on_invalid", "halt")
    learner = fitted(rc_learner(method, model, "best_soft_error", on_invalid, n_iterations), X_train, y_train)
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


class ToyFamily(Family):
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


class ToyGaussians(ClosedFormClassifier, family=ToyFamily):
    """The classifier of `ToyFamily`."""


def rc2025_toy(cell: Cell, seed: int) -> list[Record]:
    """rc2025 Table 1: RC with learning rate 1/2 on (0, 1), (1, 2), (4, 2)."""
    X, y = np.array([[0.0], [1.0], [4.0]]), np.array([1, 2, 2])
    settings = {"learning_rate": 0.5, "max_iter": int(cell.setting_value), "stopping": "none"}
    learner = RiskCalibration.as_published(ToyGaussians(), **settings).fit(X, y)
    if cell.row == "soft":
        return [Record("RC", "train_soft_error", float(learner.history_.soft_error.iloc[-1]))]
    point = [0.0, 1.0, 4.0].index(float(cell.row.split(",")[0]))
    posterior = learner.predict_proba(X)[point, y[point] - 1]
    return [Record("RC", "prob_of_true_label", float(posterior))]


# Cells ---------------------------------------------------------------------------------------------


def _toy_rows() -> Iterator[Cell]:
    for printed in data_rows("rc2025", "1").itertuples():
        yield Cell("rc2025", "1", printed.row, printed.method, setting_value=printed.setting_value)


Study("1", source="rc2025", rows=_toy_rows, protocol=rc2025_toy, quick=True)
Study("2", source="rc2025", rows=partial(rc_cells, "rc2025", "2", rc_size, "rc2025"))
for _table in SUMMARIES:
    Study(_table, source="rc2025")
for _table, (_classifier, _closed_form) in RC2025_MODELS.items():
    # QDA needs the features that vary within every class, which are those of rc2024
    _variant = "rc2024" if _classifier == "QDA" else "rc2025"
    _settings = {"classifier": _classifier, "closed_form": _closed_form, "repetitions": REPETITIONS}
    Study(_table, source="rc2025", rows=partial(rc_cells, "rc2025", _table, rc2025_splits, _variant, **_settings))


def small_sets() -> set[str]:
    """Rows of rc2025 Table 2 with at most `SMALL` rows."""
    sizes = published.table("rc2025", "2")
    return set(sizes.row[(sizes.metric == "m_instances") & (sizes.value <= SMALL)])


def small_cells(table: str) -> Iterator[Cell]:
    """The cells of a table on its small sets: what the studies of divisions take up."""
    small = small_sets()
    return (cell for cell in cells_of("rc2025", table) if cell.row in small and not cell.reason)


def small_calibrated_cells() -> Iterator[Cell]:
    """RC on the small sets, once for each of Tables 3, 5, 7 and 9, with as many divisions as were printed."""
    for table in ("3", "5", "7", "9"):
        for cell in small_cells(table):
            if cell.method == "RC":
                yield replace(cell, arguments=cell.arguments | {"repetitions": PRINTED_REPETITIONS})
