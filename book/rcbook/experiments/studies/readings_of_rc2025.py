"""What the printed columns of rc2025 are consistent with: four readings, and a bound that holds for each (chapter 18).

"rc2025-updates-on-all-rows": the tables of rc2025 on small sets, if the updates, or the start too, had used the test
rows. "rc2025-first-rise": the same with the iterate before the first rise of the soft error. "best-iterate": the stated
protocol with the iterate of least test error. "rc2025-freezing": the stated protocol for naive Bayes (Tables 3, 7 and
11), but with the rule of rc2024 where an update turns statistics invalid: those keep their values and the others go on,
where Algorithm 1 of rc2025 ends. It was stated before it was run that the reading is accepted if more of the printed
errors and iterations of RC and DFE agree with it than with the stated protocol, in each of the three tables. When it
had been run and refused, the same was stated for "rc2025-held", RC's columns with the form of freezing that was found
in Tables II, III and IX of rc2024: a whole distribution is held as soon as one of its counts would be negative.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from rcbook.experiments.cells import Cell, Record, Study, cells_of, mean_record
from rcbook.experiments.readings import by_setting
from rcbook.experiments.scorecard import judged, results
from rcbook.experiments.studies.data_and_models_of_rc import (
    LEARNERS,
    RC_PRIOR,
    descent_from,
    path_from,
    rc_data,
    rc_model,
)
from rcbook.experiments.studies.readings_of_rc2024 import EXACT_RULES, smoothed_joints
from rcbook.experiments.studies.tables_of_rc2025 import (
    RC2025_MODELS,
    small_calibrated_cells,
    small_cells,
    small_sets,
)
from rcpkg.base import log_posterior
from rcpkg.calibration import calibration_weights, frequency_weights, mean_losses, row_losses
from rcpkg.families import one_hot

READINGS = ("75/25", "train", "all")
STOPPED = (*LEARNERS, "GD")
FREEZING, HELD, OF_NAIVE_BAYES = "rc2025-freezing", "rc2025-held", ("3", "7", "11")


def _updates_on_all_rows(cell: Cell, seed: int) -> tuple[float, float, int]:
    """One random division: errors in per cent of a learner whose updates use the test rows too, and best iteration.

    The start is the closed form of the training rows or of all rows; the iterate of least soft error on the rows of
    the start is taken, as far as the statistics stay valid, or the one before it first rises.
    """
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
    begin = train if cell.arguments["start"] == "train" else np.arange(len(y))
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier]).fit(X[begin], y[begin])
    codes, X = np.searchsorted(model.classes_, y), model.family_.encode(X)
    Y = one_hot(codes, len(model.classes_))
    if cell.method == "GD":
        path = descent_from(model, X, Y, model.parameters_)
    else:
        rule = frequency_weights if cell.method == "DFE" else calibration_weights
        path = path_from(model, X, Y, model.statistics_, rule)
    runs: list[tuple[float, float, float]] = []
    at_first_rise = cell.arguments.get("stopping") == "first rise"
    for point in path.points if cell.method in STOPPED else path.points[:1]:
        log_P = point.log_posterior(X)
        wrong = 100.0 * (log_P.argmax(axis=1) != codes)
        soft_error = mean_losses(row_losses(log_P[begin], codes[begin])).soft_error
        if at_first_rise and runs and soft_error > runs[-1][0]:
            break
        runs.append((soft_error, wrong[train].mean(), wrong[test].mean()))
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


def best_iterate(cell: Cell, seed: int) -> list[Record]:
    """The stated protocol of rc2025 for RC, but with the iterate of least *test* error: no choice of one is better."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    least = []
    for split in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=int(split))
        model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier]).fit(X[train], y[train])
        rows, held = (model.family_.encode(X[part]) for part in (train, test))
        codes = np.searchsorted(model.classes_, y)
        path = path_from(
            model, rows, one_hot(codes[train], len(model.classes_)), model.statistics_, calibration_weights
        )
        wrong = (point.log_posterior(held).argmax(axis=1) != codes[test] for point in path.points)
        least.append(min(100 * np.mean(of_test) for of_test in wrong))
    return [mean_record("RC", "test_error_percent", least)]


def held_distributions(cell: Cell, seed: int) -> list[Record]:
    """The stated protocol of rc2025 for RC of naive Bayes, whole distributions held as in rc2024."""
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    codes = np.unique(y, return_inverse=True)[1]
    rule = EXACT_RULES["nb-hold-exact" if cell.arguments["closed_form"] == "MAP" else "nb-hold-exact-ml"]
    runs = []
    for split in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=int(split))
        path, log_frequency = [], np.log(np.bincount(codes[train]) / len(train))
        for joint in smoothed_joints(X[train], y[train], rule, X):
            wrong = 100.0 * (joint.argmax(axis=1) != codes)
            soft_error = mean_losses(row_losses(log_posterior(joint[train], log_frequency), codes[train])).soft_error
            path.append((soft_error, wrong[train].mean(), wrong[test].mean()))
        best = int(np.argmin([soft_error for soft_error, _, _ in path]))
        runs.append((path[best][1], path[best][2], best + 1))
    metrics = "train_error_percent", "test_error_percent", "iterations"
    return [mean_record("RC", metric, values) for metric, values in zip(metrics, zip(*runs, strict=True))]


def _stated_cells() -> Iterator[Cell]:
    """The tables on their small sets; the RC columns of Table 11 are those of Table 3 once more."""
    for table in RC2025_MODELS:
        yield from (cell for cell in small_cells(table) if (table, cell.method) != ("11", "RC"))


def _starts(cell: Cell) -> list[str]:
    return [f"{cell.setting_value.split(':')[1]}|{start}" for start in ("train", "all")]


def _with_start(cell: Cell) -> dict[str, Any]:
    return {"start": cell.setting_value.split("|")[1]}


Study("best-iterate", rows=small_calibrated_cells, protocol=best_iterate)
Study(
    "rc2025-updates-on-all-rows",
    rows=_stated_cells,
    settings=_starts,
    protocol=rc2025_updates_on_all_rows,
    arguments=_with_start,
)
Study(
    "rc2025-first-rise",
    rows=_stated_cells,
    settings=_starts,
    protocol=rc2025_updates_on_all_rows,
    arguments=lambda cell: _with_start(cell) | {"stopping": "first rise", "repetitions": 8},
    where=lambda cell: cell.method in STOPPED,
)
Study(
    FREEZING,
    rows=lambda: (cell for table in OF_NAIVE_BAYES for cell in cells_of("rc2025", table) if not cell.reason),
    settings=lambda cell: [f"{cell.setting_value.split(':')[1]}|freeze"],
    arguments={"on_invalid": "freeze"},
    where=lambda cell: cell.method in LEARNERS,
)
Study(
    HELD,
    rows=lambda: (cell for table in OF_NAIVE_BAYES for cell in cells_of("rc2025", table) if not cell.reason),
    settings=lambda cell: [f"{cell.setting_value.split(':')[1]}|hold"],
    protocol=held_distributions,
    where=lambda cell: cell.method == "RC",
)


def consistency() -> pd.DataFrame:
    """Each printed error and iteration of rc2025 on small sets against three readings of how it came about.

    ``75/25``: the stated protocol. ``train``: the start is fitted to the training rows, the updates use all rows.
    ``all``: start and updates use all rows. A printed number agrees with a reading if it passes the tolerance of the
    scorecard (z = 3).

    Returns
    -------
    DataFrame
        Indexed by table, row, method, metric, dataset and value_printed; for each reading our mean ``value`` and
        whether the print ``agrees``; only cells that all three readings have.
    """
    study = by_setting("rc2025-updates-on-all-rows")
    # Table 11 prints the RC columns of Table 3 again
    again = study[(study.table == "3") & (study.method == "RC")].assign(table="11")
    study = pd.concat([study, again])
    parts = []
    for table in RC2025_MODELS:
        ours = pd.concat([results("rc2025", table).assign(reading="75/25"), study[study.table == table]])
        ours = ours[ours.row.isin(small_sets()) & (ours.metric != "reach")]
        parts.append(judged("rc2025", table, ours))
    index = ["table", "row", "method", "metric", "dataset", "value_printed"]
    wide = pd.concat(parts).pivot(index=index, columns="reading", values=["value", "agrees"])
    wide = wide[[(part, reading) for part in ("value", "agrees") for reading in READINGS]].dropna()
    return wide.astype({("agrees", reading): bool for reading in READINGS})


def stopping_rules() -> pd.DataFrame:
    """Each printed error and iteration of RC, DFE and GD on small sets under either stopping rule, by the scorecard.

    Returns
    -------
    DataFrame
        ``table, row, method, metric, printed``, ``start`` ("train" or "all", the rows of the start; the updates use
        all) and, for the rules ``least`` soft error and ``first`` rise, our value and whether the print agrees.
    """
    index = ["table", "start", "row", "method", "metric", "dataset", "printed"]
    parts = []
    for rule, study in (("least", "rc2025-updates-on-all-rows"), ("first", "rc2025-first-rise")):
        ours = by_setting(study).rename(columns={"reading": "start"})
        ours = ours[ours.method.isin(STOPPED)]
        for (table, start), part in ours.groupby(["table", "start"]):
            cells = judged("rc2025", str(table), part).assign(start=start)
            parts.append(cells.set_index(index)[["value", "agrees"]].add_suffix(f"_{rule}"))
    wide = pd.concat(parts).groupby(level=index).first().dropna()
    return wide.astype({"agrees_least": bool, "agrees_first": bool}).reset_index()


def frozen() -> pd.DataFrame:
    """Each printed error and iteration of RC for naive Bayes, as stated or with a rule of freezing.

    Returns
    -------
    DataFrame
        Indexed by table, row, metric, dataset and value_printed; for each rule, ``halt``, ``freeze`` and ``hold``, our
        mean ``value`` and whether the print ``agrees`` by the tolerance of the scorecard.
    """
    study = pd.concat([by_setting(FREEZING), by_setting(HELD)])
    parts = []
    for table in OF_NAIVE_BAYES:
        stated = results("rc2025", table).assign(reading="halt")
        ours = pd.concat([stated, study[study.table == table]])
        ours = ours[(ours.method == "RC") & (ours.metric != "reach")]
        parts.append(judged("rc2025", table, ours))
    index = ["table", "row", "metric", "dataset", "value_printed"]
    wide = pd.concat(parts).pivot(index=index, columns="reading", values=["value", "agrees"]).dropna()
    return wide.astype({("agrees", rule): bool for rule in ("halt", "freeze", "hold")})
