"""Studies around the RC tables (chapter 6): histories, the corrected gradient, digits for images, and what fits."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from rcpkg import published
from rcpkg.base import Array
from rcpkg.calibration import calibration_weights
from rcpkg.experiments import protocols
from rcpkg.experiments.protocols import (
    DESCENTS,
    RC_PRIOR,
    STUDY,
    Cell,
    Record,
    all_rows_history,
    calibrated,
    mean_record,
    rc2024_all_rows,
    rc2025_splits,
    rc_data,
    rc_model,
    small_sets,
)
from rcpkg.experiments.scorecard import results, tolerance, verdict
from rcpkg.generative import one_hot

RISE = 1e-12  # what counts as one; smaller changes are rounding
PRINTED_REPETITIONS = 5  # of rc2025
CURVE_ITERATIONS = 128  # of rc2024 Figures 1-4
DIGITS = ("pendigits", "usps", "mnist")
TOO_LARGE = {  # passes over hundreds of features in thousands of rows, dozens of times
    ("QDA", "all rows"): {"mnist"},
    ("QDA", "splits"): {"usps", "mnist"},
    ("NB", "splits"): {"mnist"},
}


def _rises(values: Array) -> int:
    """Number of updates that raise a loss; one that is infinite before and after does not rise."""
    with np.errstate(invalid="ignore"):
        return int(np.sum(values[1:] > values[:-1] + RISE))


def training_history(cell: Cell, seed: int) -> list[Record]:
    """Training losses of a learner on all rows, as in rc2024: at the start, the least, at the end; updates that raise.

    Metrics are ``<loss>_<what>`` for error, soft_error and log_loss, and the number of ``updates``.
    """
    history = all_rows_history(cell, cell.method)
    records = [Record(cell.method, "updates", len(history) - 1)]
    for name in ("error", "soft_error", "log_loss"):
        values = history[name].to_numpy()
        summary = {
            "first": float(values[0]),
            "least": float(values.min()),
            "last": float(values[-1]),
            "rises": _rises(values),
        }
        records += [Record(cell.method, f"{name}_{what}", value) for what, value in summary.items()]
    return records


def training_curve(cell: Cell, seed: int) -> list[Record]:
    """Training error of iterations 1 to 128, as in rc2024 Figures 1-3; metrics are ``error|<iteration>``."""
    errors = all_rows_history(cell, cell.method, CURVE_ITERATIONS).error
    return [Record(cell.method, f"error|{t}", float(error)) for t, error in enumerate(errors, start=1)]


def best_iterate(cell: Cell, seed: int) -> list[Record]:
    """The stated protocol of rc2025 for RC, but with the iterate of least *test* error: no choice of one is better."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    least = []
    for split in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=int(split))
        model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier]).fit(X[train], y[train])
        codes, encoded = np.searchsorted(model.classes_, y), model._encode(X)
        of_train = np.isin(np.arange(len(y)), train)[:, None]
        iterates = calibrated(
            model,
            encoded,
            one_hot(codes, len(model.classes_)),
            model.statistics_,
            lambda P, Y, of_train=of_train: of_train * calibration_weights(P, Y),
        )
        least.append(min(100 * np.mean(log_P[test].argmax(axis=1) != codes[test]) for log_P in iterates))
    return [mean_record("RC", "test_error_percent", least)]


# Cells ---------------------------------------------------------------------------------------------


def _study(cell: Cell, study: str, **changes) -> Cell:
    """A cell of a printed table as one of a study; the table becomes the setting."""
    return replace(cell, source=STUDY, table=study, setting_value=f"{cell.source}:{cell.table}", **changes)


def _all_rows_cells() -> Iterable[Cell]:
    """RC on each data set, once for each of rc2024 Tables II-VII."""
    for table in ("II", "III", "IV", "V", "VI", "VII"):
        yield from (c for c in protocols.cells("rc2024", table) if c.method == "RC" and not c.reason)


def _history_cells() -> Iterable[Cell]:
    for cell in _all_rows_cells():
        for method in ("RC", *(DESCENTS if cell.arguments["classifier"] != "LR" else ("GD",))):
            yield _study(cell, "training-histories", method=method, protocol=f"{__name__}:training_history")


def _corrected_cells() -> Iterable[Cell]:
    """All rows of rc2024; small sets of rc2025, where all learners meet the same divisions."""
    for cell in _all_rows_cells():
        if cell.arguments["classifier"] != "LR":
            yield _study(cell, "gd-corrected", method="GD corrected")
    small = small_sets()
    for table in ("3", "5", "7", "9"):
        for cell in protocols.cells("rc2025", table):
            if cell.method == "RC" and cell.row in small and not cell.reason:
                arguments = cell.arguments | {"repetitions": PRINTED_REPETITIONS}
                for method in ("RC", *DESCENTS):
                    yield _study(cell, "gd-corrected", method=method, arguments=arguments)


def _best_iterate_cells() -> Iterable[Cell]:
    small = small_sets()
    for table in ("3", "5", "7", "9"):
        for cell in protocols.cells("rc2025", table):
            if cell.method == "RC" and cell.row in small and not cell.reason:
                arguments = cell.arguments | {"repetitions": PRINTED_REPETITIONS}
                yield _study(cell, "best-iterate", protocol=f"{__name__}:best_iterate", arguments=arguments)


def _digit_cells() -> Iterable[Cell]:
    """The protocols of both papers on digits in place of the network features of images."""
    for name, classifier, closed_form in product(DIGITS, ("NB", "QDA", "LR"), ("ML", "MAP")):
        protocol_of = {"all rows": rc2024_all_rows}
        if classifier != "LR" and closed_form == "ML":
            protocol_of["splits"] = rc2025_splits
        for rows, protocol in protocol_of.items():
            if name in TOO_LARGE.get((classifier, rows), ()):
                continue
            arguments = {"name": name, "variant": "rc2024-nb" if classifier == "NB" else "rc2024"}
            arguments |= {"classifier": classifier, "closed_form": closed_form}
            for method in (closed_form, "RC", "GD", "DFE"):
                yield Cell(
                    STUDY,
                    "digits-instead-of-images",
                    name,
                    method,
                    f"{protocols.__name__}:{protocol.__name__}",
                    arguments | ({"repetitions": PRINTED_REPETITIONS} if rows == "splits" else {}),
                    setting_value=f"{classifier} {closed_form} {rows}",
                    stream=name,
                )


def _curve_cells() -> Iterable[Cell]:
    for cell in _all_rows_cells():
        if cell.stream == "optdigits":
            for method in ("RC", "GD"):
                yield _study(cell, "digits-curves", method=method, protocol=f"{__name__}:training_curve")


def cells(study: str) -> list[Cell]:
    """The cells of one of the studies."""
    return list(
        {
            "training-histories": _history_cells,
            "gd-corrected": _corrected_cells,
            "digits-instead-of-images": _digit_cells,
            "digits-curves": _curve_cells,
            "best-iterate": _best_iterate_cells,
        }[study]()
    )


# What the printed columns of rc2025 are consistent with ---------------------------------------------

READINGS = ("75/25", "train", "all")


def judged(source: str, table: str, ours: pd.DataFrame) -> pd.DataFrame:
    """Printed numbers of a table beside ``ours``, with ``agrees``: whether they pass the tolerance of the scorecard.

    ``ours`` has the columns row, method, metric, value, std and n_runs; further columns are kept.
    """
    printed = published.table(source, table)
    printed = printed.assign(half_unit=published.half_unit(printed.value_printed), printed=printed.value)
    keys = ["row", "method", "metric"]
    printed = printed[["table", *keys, "dataset", "value_printed", "printed", "half_unit"]]
    cells = printed.merge(ours.drop(columns=["table", "dataset"], errors="ignore"), on=keys)
    fits = [verdict(cell, tolerance(source, table, cell["metric"])) != "differs" for cell in cells.to_dict("records")]
    return cells.assign(agrees=fits)


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
    study = results(STUDY, "rc2025-updates-on-all-rows")
    study[["table", "reading"]] = study.setting_value.str.split("|", expand=True)
    # Table 11 prints the RC columns of Table 3 again
    again = study[(study.table == "3") & (study.method == "RC")].assign(table="11")
    study = pd.concat([study, again])
    parts = []
    for table in protocols.RC2025_MODELS:
        ours = pd.concat([results("rc2025", table).assign(reading="75/25"), study[study.table == table]])
        ours = ours[ours.row.isin(small_sets()) & (ours.metric != "reach")]
        parts.append(judged("rc2025", table, ours))
    index = ["table", "row", "method", "metric", "dataset", "value_printed"]
    wide = pd.concat(parts).pivot(index=index, columns="reading", values=["value", "agrees"])
    wide = wide[[(part, reading) for part in ("value", "agrees") for reading in READINGS]].dropna()
    return wide.astype({("agrees", reading): bool for reading in READINGS})
