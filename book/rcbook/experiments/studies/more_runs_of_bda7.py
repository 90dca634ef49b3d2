"""More runs of the simulations of thesis2007 chapter 5, where they decide a lead that its text speaks of (chapter 19).

The methods that cross-validate have 25 runs in the tables, and EDDA has 10; the source has 100. `LEADS` are the pairs
of methods that section 5.6.1 compares. Where the printed difference of a pair is less than the half-width of
acceptance of either number, this study has as many runs more as are missing, by other seeds. ``data/more_runs.csv``
lists the cells.
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from rcbook._files import data_folder
from rcbook.experiments import readings
from rcbook.experiments.cells import STUDY, Cell, Study, cells_of
from rcbook.experiments.studies import tables_of_bda7 as tables

STUDY_NAME = "bda7-more-runs"
LEADS = (
    ("5.13", "BDA7", "QB"),
    ("5.14", "RDA", "BDA7"),
    ("5.14", "EDDA", "BDA7"),
    ("5.15", "EDDA", "RDA"),
    ("5.15", "BDA7", "QB"),
    ("5.16", "RDA", "BDA7"),
    ("5.16", "EDDA", "BDA7"),
    ("5.17", "BDA7", "RDA"),
    ("5.18", "BDA7", "RDA"),
    ("5.19", "QB", "BDA7"),
    ("5.20", "QB", "BDA7"),
    ("5.20", "QB", "RDA"),
    ("5.21", "BDA7", "QB"),
    ("5.22", "BDA7", "QB"),
)


def _listed() -> Iterator[Cell]:
    """The cells listed, cheap methods first."""
    listed = pd.read_csv(data_folder() / "more_runs.csv", dtype={"table": str, "setting_value": str})
    wanted = listed.set_index(["table", "method", "setting_value"]).runs
    for slow in (False, True):
        for table in listed.table.unique():
            for cell in cells_of("thesis2007", table):
                key = (table, cell.method, cell.setting_value)
                if key in wanted.index and (cell.method == "EDDA") == slow:
                    arguments = cell.arguments | {"repetitions": int(wanted[key])}
                    setting = f"{table}|{cell.setting_value}"
                    yield replace(cell, source=STUDY, table=STUDY_NAME, setting_value=setting, arguments=arguments)


Study(STUDY_NAME, rows=_listed, quick=False)


def judged_runs() -> pd.DataFrame:
    """Each printed number against the additional runs alone, by the scorecard's tolerance: fresh seeds, no mark.

    Returns
    -------
    DataFrame
        ``table, method, setting_value, printed, value, std, n_runs, agrees``, and ``agreed`` with the earlier runs.
    """
    setting = r"(?P<table>[^|]+)\|(?P<setting_value>.+)"
    return readings.judged_readings(STUDY_NAME, ["thesis2007"], by=tables.NUMBER, pattern=setting)


def leads_of_new_runs(cells: pd.DataFrame) -> pd.DataFrame:
    """The columns of `LEADS` of which both methods have new runs: the printed lead, ours, and its standard error.

    Parameters
    ----------
    cells : DataFrame
        Rows of `judged_runs`.

    Returns
    -------
    DataFrame
        ``table, first, second, setting_value``; ``printed`` and ``ours``, the error of the second method less that of
        the first; ``se`` of ours, whose two means come from independent draws.
    """
    cells = cells.assign(variance=cells["std"] ** 2 / cells.n_runs).set_index("setting_value")
    parts = []
    for table, first, second in LEADS:
        a, b = (cells[(cells.table == table) & (cells.method == method)] for method in (first, second))
        lead = {"printed": b.printed - a.printed, "ours": b.value - a.value, "se": (a.variance + b.variance) ** 0.5}
        lead = pd.DataFrame(lead).dropna().rename_axis("setting_value").reset_index()
        parts.append(lead.assign(table=table, first=first, second=second))
    return pd.concat(parts, ignore_index=True)
