"""Studies around the RC tables (chapter 6): histories, the corrected gradient, digits for images, and what fits."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from rcpkg import published
from rcpkg.base import Array
from rcpkg.experiments import protocols
from rcpkg.experiments.protocols import (
    DESCENTS,
    STUDY,
    Cell,
    Record,
    all_rows_history,
    rc2024_all_rows,
    rc2025_splits,
    small_sets,
)
from rcpkg.experiments.scorecard import results, tolerance, verdict

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
        }[study]()
    )


# What the printed columns of rc2025 are consistent with ---------------------------------------------

READINGS = {"75/25": "split", "train": "start on train, updates on all", "all": "everything on all rows"}


def consistency() -> pd.DataFrame:
    """Each printed error and iteration of rc2025 on small sets against three readings of how it came about.

    ``75/25``: the stated protocol. ``train``: the start is fitted to the training rows, the updates use all rows.
    ``all``: start and updates use all rows. A printed number is consistent with a reading if the verdict of the
    scorecard, by its tolerances (z = 3), is not that it differs.

    Returns
    -------
    DataFrame
        ``table``, ``row``, ``dataset``, ``method``, ``metric``, ``value_printed``, and for each reading our mean and
        whether it is consistent; only cells that all three readings have.
    """
    study = results(STUDY, "rc2025-updates-on-all-rows")
    setting = study.setting_value.str.split("|", expand=True)
    study = study.assign(table=setting[0], reading=setting[1])
    keys = ["table", "row", "method", "metric"]
    parts = []
    for table in protocols.RC2025_MODELS:
        printed = published.table("rc2025", table)
        printed = printed[printed.row.isin(small_sets()) & (printed.metric != "reach")]
        printed = printed.assign(half_unit=published.half_unit(printed.value_printed), printed=printed.value)
        ours = results("rc2025", table).assign(reading="75/25")
        ours = pd.concat([ours, study[study.table == table]])[[*keys, "reading", "value", "std", "n_runs"]]
        cells = printed[[*keys, "dataset", "value_printed", "printed", "half_unit"]].merge(ours, on=keys)
        rules = [tolerance("rc2025", table, metric) for metric in cells.metric]
        fits = [verdict(row, rule) != "differs" for row, rule in zip(cells.to_dict("records"), rules, strict=True)]
        parts.append(cells.assign(consistent=fits))
    wide = pd.concat(parts).pivot(
        index=[*keys, "dataset", "value_printed"], columns="reading", values=["value", "consistent"]
    )
    return wide.dropna()[[(part, reading) for part in ("value", "consistent") for reading in READINGS]]
