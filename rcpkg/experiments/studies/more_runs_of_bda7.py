"""More runs of the simulations of thesis2007 chapter 5, where they decide a lead that its text speaks of (chapter 14).

The methods that cross-validate have 25 runs in the tables, and EDDA has 10; the source has 100. `LEADS` are the pairs
of methods that section 5.6.1 compares. Where the printed difference of a pair is less than the half-width of
acceptance of either number, this study has as many runs more as are missing, by other seeds. ``data/more_runs.csv``
lists the cells.
"""

from collections.abc import Iterator

import pandas as pd

from rcpkg._files import data_folder
from rcpkg.experiments.cells import STUDY, Cell
from rcpkg.experiments.power import power
from rcpkg.experiments.scorecard import judged, results
from rcpkg.experiments.studies import tables_of_bda7 as tables

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


def leads_within_reach() -> pd.DataFrame:
    """The columns in which the printed lead of a pair is less than a half-width of acceptance.

    Returns
    -------
    DataFrame
        ``table, method, setting_value, runs``: the cells concerned, with the runs that are missing to the stated 100.
    """
    cells = power().query("source == 'thesis2007'").set_index(["table", "method", "setting_value"])
    cells = cells.assign(printed=pd.to_numeric(cells.value_printed, errors="coerce")).sort_index()
    found = set()
    for table, first, second in LEADS:
        a, b = cells.loc[table, first], cells.loc[table, second]
        lead = (a.printed - b.printed).abs()
        for setting in lead.index[lead < a.half_width.clip(lower=b.half_width)]:
            found |= {(table, first, setting), (table, second, setting)}
    rows = [(*key, 100 - tables.runs(key[0], key[1])) for key in found]
    frame = pd.DataFrame(rows, columns=["table", "method", "setting_value", "runs"])
    order = frame.setting_value.astype(int)
    frame = frame.assign(order=order).sort_values(["table", "method", "order"])
    return frame.drop(columns="order").reset_index(drop=True)


def cells(study: str) -> Iterator[Cell]:
    """The cells listed, cheap methods first."""
    listed = pd.read_csv(data_folder() / "more_runs.csv", dtype={"table": str, "setting_value": str})
    wanted = listed.set_index(["table", "method", "setting_value"]).runs
    for slow in (False, True):
        for table in listed.table.unique():
            for cell in tables.cells(table):
                key = (table, cell.method, cell.setting_value)
                if key in wanted.index and (cell.method == "EDDA") == slow:
                    arguments = cell.arguments | {"repetitions": int(wanted[key])}
                    setting = f"{table}|{cell.setting_value}"
                    yield cell.in_study(study, arguments=arguments, setting_value=setting, quick=False)


def judged_runs() -> pd.DataFrame:
    """Each printed number against the additional runs alone, by the scorecard's tolerance: fresh seeds, no mark.

    Returns
    -------
    DataFrame
        ``table, method, setting_value, printed, value, std, n_runs, agrees``, and ``agreed`` with the earlier runs.
    """
    ours = results(STUDY, STUDY_NAME)
    ours[["table", "setting_value"]] = ours.setting_value.str.split("|", expand=True)
    keys, parts = ["row", "method", "metric", "setting_value"], []
    for table, part in ours.groupby("table"):
        before = judged("thesis2007", str(table), results("thesis2007", str(table)), by=keys).set_index(keys).agrees
        found = judged("thesis2007", str(table), part.drop(columns=["source", "table"]), by=keys)
        parts.append(found.assign(agreed=before.reindex(pd.MultiIndex.from_frame(found[keys])).to_numpy()))
    return pd.concat(parts, ignore_index=True)
