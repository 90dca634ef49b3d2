"""What an experiment is made of: cells, their records, and the register of the modules that list them.

A printed table, or a study of ours, is a list of cells. The module of `rcbook.experiments.studies` that `TABLES` names
lists them: ``cells(table)``. What computes a cell is its protocol, a pure function (cell, seed) -> records, named by
``"module:function"``, so that a worker process finds it by itself. It returns one `Record` for each number; the means,
ranks, counts and "reach" that a table prints beside them are numbers like the others.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rcbook import published

STUDY = "study"  # in place of a source: experiments that no source prints
QUICK_REPETITIONS = 3
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
    ``reason`` says why a cell is not attempted, ``dataset`` which of the printed rows that are alike but for it.
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
    dataset: str = ""

    @property
    def key(self) -> str:
        """Name of the cell within its table."""
        return "/".join(filter(None, (self.row, self.method, self.setting_value, self.dataset)))

    def in_study(self, study: str, **changes: Any) -> "Cell":
        """The same of a study; its printed table becomes the setting, unless ``changes`` say otherwise."""
        setting = {"setting_value": f"{self.source}:{self.table}"}
        return replace(self, source=STUDY, table=study, **setting | changes)


def mean_record(method: str, metric: str, runs: Iterable[float]) -> Record:
    """The mean of runs with their standard deviation, of which a single run has none."""
    values = np.asarray(list(runs), dtype=float)
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    return Record(method, metric, float(values.mean()), std, len(values))


def name_of(protocol: Callable[[Cell, int], list[Record]]) -> str:
    """``"module:function"``."""
    return f"{protocol.__module__}:{protocol.__name__}"


# Former beginnings of the names of protocols, as stored cells have them, and what they are now
FORMER_NAMES = {"rcpkg.experiments.": "rcbook.experiments."}


def present_name(protocol: str) -> str:
    """The name that a protocol has now, of one that a stored cell may have by a former name."""
    for former, present in FORMER_NAMES.items():
        if protocol.startswith(former):
            return present + protocol.removeprefix(former)
    return protocol


# Table -> the module of `rcbook.experiments.studies` that lists its cells, in the order in which they are run
TABLES: dict[tuple[str, str], str] = {
    **{("rc2024", k): "tables_of_rc2024" for k in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")},
    **{("rc2025", f"{k}"): "tables_of_rc2025" for k in range(1, 13)},
    **{("thesis2007", f"5.{k}"): "tables_of_bda7" for k in range(1, 23)},
    **{("thesis2007", f"6.{k}"): "tables_of_local_bda" for k in range(1, 4)},
    **{("wanbia2014", k): "tables_of_wanbia2014" for k in ("I", "II")},
    (STUDY, "wanbiac-sets"): "tables_of_wanbia2014",
    **{(STUDY, f"wanbiac-{k}"): "figures_of_wanbia2014" for k in ("coordinates", "traces", "penalties", "streams")},
    (STUDY, "rc2025-updates-on-all-rows"): "readings_of_rc2025",
    (STUDY, "rc2025-first-rise"): "readings_of_rc2025",
    (STUDY, "training-histories"): "training_histories_of_rc",
    (STUDY, "gd-corrected"): "gradient_descent_corrected",
    (STUDY, "digits-instead-of-images"): "digits_instead_of_images",
    (STUDY, "digits-curves"): "digits_instead_of_images",
    (STUDY, "best-iterate"): "readings_of_rc2025",
    (STUDY, "knn-costs"): "costs_of_neighbour_votes",
    (STUDY, "honest"): "honest_comparison",
    (STUDY, "local-curves"): "printed_sizes_of_local_bda",
    (STUDY, "local-test-errors"): "printed_sizes_of_local_bda",
    (STUDY, "local-2026"): "local_bda_among_todays_classifiers",
    (STUDY, "figures-4.1-4.2"): "distribution_or_parameter_based",
    (STUDY, "bda7-2026"): "bda7_among_todays_classifiers",
    (STUDY, "bda7-probabilities"): "probabilities_of_bda7",
    (STUDY, "bda7-readings"): "readings_of_bda7",
    (STUDY, "bda7-more-runs"): "more_runs_of_bda7",
    (STUDY, "rc-readings"): "readings_of_rc2024",
    **{(STUDY, k): "readings_of_local_bda" for k in ("gmm-readings", "pinv-intercept")},
    (STUDY, "local-seeds"): "seeds_of_local_bda",
    (STUDY, "law-of-the-iterates"): "laws_of_calibration",
    (STUDY, "size-of-the-test"): "laws_of_calibration",
    (STUDY, "size-of-the-test-again"): "laws_of_calibration",
    (STUDY, "power-of-the-test"): "laws_of_calibration",
    (STUDY, "rows-left-out"): "rows_left_out",
    (STUDY, "gain-of-calibration"): "gain_of_calibration",
    (STUDY, "many-rows"): "gain_of_calibration",
    (STUDY, "efficiency-of-logistic-regression"): "generative_or_discriminative",
    (STUDY, "generative-or-discriminative"): "generative_or_discriminative",
    (STUDY, "networks"): "calibrated_networks",
    (STUDY, "networks-curves"): "calibrated_networks",
}


def tables() -> list[str]:
    """Names ``source:table`` of the published tables that have a protocol, and of the studies."""
    return [":".join(key) for key in TABLES]


def cells_of(source: str, table: str, quick: bool = False) -> list[Cell]:
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
    found = list(importlib.import_module(f".studies.{TABLES[source, table]}", __package__).cells(table))
    if not quick:
        return found
    few = {"repetitions": QUICK_REPETITIONS}
    return [
        replace(cell, arguments=cell.arguments | (few if "repetitions" in cell.arguments else {}))
        for cell in found
        if cell.quick
    ]
