"""Every printed number beside ours, with a verdict by a tolerance fixed beforehand."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from rcbook import published
from rcbook._files import data_folder, results_folder, stored_file
from rcbook.experiments import runner
from rcbook.experiments.cells import NO_PROTOCOL, STUDY, cells_of, register
from rcbook.published import KEY

VERDICTS = (
    "reproduced",
    "statistically consistent",
    "differs: explained",
    "differs: unexplained",
    "printed value impossible",
    "not attempted",
)
ROUNDING = 1e-9  # of binary floating point, relative to numbers below 1e5


@lru_cache
def _rules(name: str) -> pd.DataFrame:
    return pd.read_csv(data_folder() / name, dtype=str, keep_default_na=False).fillna("")


@cache
def _explanations(source: str, table: str) -> list[dict[str, str]]:
    """Those that fit a table."""
    rules = _rules("explanations.csv").to_dict("records")
    return [rule for rule in rules if fnmatchcase(source, rule["source"]) and fnmatchcase(table, rule["table"])]


@cache
def tolerance(source: str, table: str, metric: str) -> dict[str, str]:
    """The first row of ``data/tolerances.csv`` that fits a printed number.

    Parameters
    ----------
    source, table, metric : str
        Key of the source, number of the table, and the name of the metric.

    Raises
    ------
    LookupError
        If none does: each number needs its tolerance before it is recomputed.
    """
    for rule in _rules("tolerances.csv").to_dict("records"):
        if rule["source"] == source and fnmatchcase(table, rule["table"]) and fnmatchcase(metric, rule["metric"]):
            return rule
    raise LookupError(f"no tolerance is fixed for {metric} of {source}:{table}")


def printed_interval(value: float, half_unit: float, read_as: str) -> tuple[float, float]:
    """Numbers that print as ``value``: within half a unit of it if rounded, up to one unit above if truncated."""
    if read_as == "truncated":
        return value, value + 2 * half_unit
    return value - half_unit, value + half_unit


def verdict(row: Mapping, rule: Mapping) -> str:
    """Compare one recomputed number with the printed one.

    Deterministic: reproduced if ours prints as printed. Statistical: consistent if the distance from ours to the
    numbers that print so is at most z σ sqrt(1/n_runs + 1/published_runs) + slack, σ being our standard
    deviation between runs.

    Parameters
    ----------
    row : mapping
        ``printed``, ``half_unit``, ``value``, ``std``, ``n_runs``; a dash is a NaN in ``printed`` or ``value``.
    rule : mapping
        A row of the tolerances.
    """
    if np.isnan(row["printed"]) or np.isnan(row["value"]):
        return "reproduced" if np.isnan(row["printed"]) and np.isnan(row["value"]) else "differs"
    low, high = printed_interval(row["printed"], row["half_unit"], rule["read_as"])
    distance = max(low - row["value"], row["value"] - high, 0.0)
    if rule["read_as"] == "truncated" and row["value"] > high - ROUNDING:
        distance = max(distance, 2 * ROUNDING)  # the upper end itself prints as the next number
    if distance <= ROUNDING:
        return "reproduced"
    if rule["rule"] == "deterministic" or not row["n_runs"] > 1:
        return "differs"
    spread = row["std"] * np.sqrt(1 / row["n_runs"] + 1 / float(rule["published_runs"]))
    if distance <= float(rule["z"]) * spread + float(rule["slack"]) + ROUNDING:
        return "statistically consistent"
    return "differs"


def results(source: str, table: str) -> pd.DataFrame:
    """Our numbers for a published table: its columns, with ``value_se`` and ``n_runs``; or those of a study.

    Parameters
    ----------
    source, table : str
        Key of the source and number of the table, or of a study; see `tables`.

    Raises
    ------
    ValueError
        If there is no such table.
    FileNotFoundError
        If none of it has been recomputed in the folder of the results (`rcbook.experiments.run`).
    """
    if source != STUDY:
        published.table(source, table)
    path = runner.table_path(source, table)
    if (whole := path.with_suffix(".csv")).is_file():  # a table of one formula has no cells (Table 2.2 of thesis2007)
        return pd.read_csv(whole, dtype=dict.fromkeys(KEY, str), keep_default_na=False, na_values={"std": [""]})
    remedy = f"recompute it by `python -m rcbook run {source}:{table}`"
    path = stored_file(path, remedy)
    return _as_printed(source, table, path, path.stat().st_mtime_ns).copy()


@lru_cache(maxsize=8)  # the tables of one page, which its cells ask for again and again
def _as_printed(source: str, table: str, path: Path, changed: int) -> pd.DataFrame:
    """The numbers of a file as it was when it ``changed`` last."""
    return runner.as_printed(source, table, path)


@cache
def _printed(source: str, table: str) -> pd.DataFrame:
    """A table that many readings are judged by, with the half units of its numbers."""
    printed = published.table(source, table)
    return printed.assign(half_unit=published.half_unit(printed.value_printed), printed=printed.value)


def judged(
    source: str, table: str, ours: pd.DataFrame, by: Sequence[str] = ("row", "method", "metric")
) -> pd.DataFrame:
    """Printed numbers of a table beside ``ours``, with ``agrees``: whether they pass the tolerance of the scorecard.

    ``ours`` has the columns ``by``, which tell its numbers apart, value, std and n_runs; further columns are kept.
    """
    printed = _printed(source, table)[["table", *by, "dataset", "value_printed", "printed", "half_unit"]]
    cells = printed.merge(ours.drop(columns=["table", "dataset"], errors="ignore"), on=list(by))
    fits = [verdict(cell, tolerance(source, table, cell["metric"])) != "differs" for cell in cells.to_dict("records")]
    return cells.assign(agrees=fits)


def judged_beside(
    source: str, table: str, ours: pd.DataFrame, by: Sequence[str] = ("row", "method", "metric")
) -> pd.DataFrame:
    """`judged`, with ``agreed``: whether the number of the stated protocol agrees; False where it gives none."""
    keys = list(by)
    as_stated = _as_stated(source, table, tuple(by), results_folder())
    cells = judged(source, table, ours.drop(columns="source"), by=keys)
    return cells.assign(agreed=as_stated.reindex(pd.MultiIndex.from_frame(cells[keys])).eq(True).to_numpy())


@cache
def _as_stated(source: str, table: str, by: tuple[str, ...], folder: Path) -> pd.Series:
    """Which numbers of the stated protocol agree: judged once for a folder of results."""
    return judged(source, table, results(source, table), by=by).set_index(list(by)).agrees


def _no_estimate(failure: str) -> str:
    """Why a run has no estimate, in words for a reader, from the message with which it failed."""
    sizes = re.search(r"n = (\d+)(?: rows)? for d = (\d+)", failure)
    if "no positive variance" in failure:
        cause = "a feature has no variance within a class"
    elif "not positive definite" in failure and sizes:
        few = int(sizes[1]) <= int(sizes[2])
        cause = "a class has no more rows than features" if few else "features of a class depend linearly on each other"
    else:
        return "no valid estimate: " + failure.partition(": ")[2].split(";")[0]
    return f"no estimate exists: {cause}, so its covariance matrix is singular"


def _not_attempted(source: str, table: str, printed: pd.DataFrame) -> pd.Series:
    """Why a printed number has no counterpart."""
    if (source, table) not in register():
        return pd.Series(NO_PROTOCOL, index=printed.index)
    cells = {(cell.row, cell.method): cell.reason for cell in cells_of(source, table)}
    failed = {
        done.key: _no_estimate(done.failure) for done in runner.read(runner.table_path(source, table)) if done.failure
    }
    reasons = []
    for row in printed.itertuples():
        reason = cells.get((row.row, row.method)) or failed.get(f"{row.row}/{row.method}")
        if row.metric == "reach" and not reason:
            other = [key for key in cells if key[0] == row.row and key[1] in ("GD", "DFE")]
            reason = next((cells[key] for key in other if cells[key]), None)
        if row.metric == "p_value_sign_test":
            reason = "a p value of counts over other sets"
        if row.dataset.startswith("(all"):
            reason = "no number is printed" if row.value_printed == "-" else "a summary"
        reasons.append(reason or "not run yet")
    return pd.Series(reasons, index=printed.index)


def _explanation(row: dict) -> tuple[str, str]:
    """Why a number differs, and the label of the section that shows it; empty if nothing is known. A rule with
    ``setting_value`` holds for those settings only, separated by "|"."""
    for rule in _explanations(row["source"], row["table"]):
        fits = all(fnmatchcase(row[column], rule[column]) for column in ("row", "method", "metric"))
        if fits and (not rule["setting_value"] or row["setting_value"] in rule["setting_value"].split("|")):
            return rule["explanation"], rule["section"]
    return "", ""


def scorecard() -> pd.DataFrame:
    """One row for each printed number: printed, ours, standard error, rule, verdict, and why.

    Returns
    -------
    DataFrame
        The key columns of the published tables, ``dataset``, ``value_printed``, ``value``, ``value_se``, ``n_runs``,
        ``rule``, ``verdict`` (one of `VERDICTS`), ``why`` and ``section`` (label of the section that explains it).
    """
    return _scorecard(results_folder()).copy()


@cache
def _scorecard(folder: Path) -> pd.DataFrame:
    """Computed once for a folder of results."""
    parts = []
    summaries = published.summaries()
    impossible = set(summaries[~summaries.possible][KEY].itertuples(index=False, name=None))
    for source, table in published.index()[["source", "table"]].itertuples(index=False):
        printed = published.table(source, table)
        printed = printed.assign(half_unit=published.half_unit(printed.value_printed)).rename(
            columns={"value": "printed"}
        )
        printed = printed.drop(columns=["std", "note"])
        below = printed.value_printed.str.startswith("<")  # "<0.001" is read as 0.0005 ± 0.0005
        printed.loc[below, "half_unit"] = printed.printed[below] / 2
        printed.loc[below, "printed"] = printed.printed[below] / 2
        try:
            ours = results(source, table)[[*KEY, "value", "std", "value_se", "n_runs"]]
        except FileNotFoundError:
            ours = pd.DataFrame(columns=[*KEY, "value", "std", "value_se", "n_runs"])
        card = printed.merge(ours, on=KEY, how="left")
        numbers = ["value", "std", "value_se", "n_runs"]
        card[numbers] = card[numbers].apply(pd.to_numeric)
        parts.append(_judge(card, _not_attempted(source, table, printed), impossible))
    card = pd.concat(parts, ignore_index=True)
    is_summary = card.why == "a summary"
    tables = dict(tuple(card.groupby(["source", "table"])))
    card.loc[is_summary, "why"] = [_why_no_summary(row, tables) for row in card[is_summary].to_dict("records")]
    return card


def _why_no_summary(row: dict, tables: dict[tuple[str, str], pd.DataFrame]) -> str:
    """A mean, rank or count over data sets needs all of them: over how many it goes, and how many are missing."""
    source, table, metric, method = (row[name] for name in ("source", "table", "metric", "method"))
    if metric.startswith("count_"):
        cells, kind = tables[source, str(int(table) - 1)], "count"
        metric = {"Training": "train_error_percent", "Test": "test_error_percent"}[row["row"]]
        cells = cells[(cells.metric == metric) & cells.method.isin(method.split(" vs "))]
    elif metric.endswith("_avg_rank"):
        cells, kind = tables[source, table], "mean rank"
        cells = cells[cells.metric == metric.replace("avg_rank", "error_percent")]
    else:
        cells, kind = tables[source, table], "mean"
        cells = cells[(cells.metric == metric.removeprefix("mean_")) & (cells.method == method)]
    cells = cells[cells.value_printed != "-"]
    missing = cells.n_runs.isna().groupby(cells.row).any()
    return (
        f"a {kind} over {len(missing)} data sets, {missing.sum()} of which have no counterpart here; "
        "the printed numbers that it sums up allow it"
    )


def _judge(card: pd.DataFrame, reasons: pd.Series, impossible: set[tuple]) -> pd.DataFrame:
    verdicts = []
    for row, reason in zip(card.to_dict("records"), reasons, strict=True):
        rule = tolerance(row["source"], row["table"], row["metric"])
        found, why, section = "not attempted", reason, ""
        if np.isfinite(row["n_runs"]):
            found, why = verdict(row, rule), ""
        if tuple(row[name] for name in KEY) in impossible:
            found, why = "printed value impossible", "its own table does not allow it"
        if found == "differs":
            why, section = _explanation(row)
            found = "differs: explained" if why else "differs: unexplained"
        verdicts.append((f"{rule['read_as']}, {rule['rule']}", found, why, section))
    card[["rule", "verdict", "why", "section"]] = verdicts
    shown = ["value_printed", "value", "value_se", "n_runs", "rule", "verdict", "why", "section"]
    return card[[*KEY, *shown]]


def exact_rows(metrics: tuple[str, ...], card: pd.DataFrame | None = None) -> pd.DataFrame:
    """How many rows of each table and method come out to the last printed digit in all the given metrics.

    Parameters
    ----------
    metrics : tuple of str
        Names of the metrics.
    card : DataFrame, optional
        Rows of the `scorecard`; all of them by default.

    Returns
    -------
    DataFrame
        Indexed by ``source, table, method``: ``compared``, the rows in which all printed numbers of these metrics
        have a counterpart, and ``exact``, those among them in which all are reproduced.
    """
    card = scorecard() if card is None else card
    card = card[card.metric.isin(metrics)]
    by = ["source", "table", "method"]
    row = card.assign(
        compared=~card.verdict.isin(["not attempted", "printed value impossible"]), exact=card.verdict == "reproduced"
    ).groupby([*by, "row"], sort=False)[["compared", "exact"]]
    return row.all().groupby(by, sort=False).sum()


def status(folder: Path | None = None) -> pd.DataFrame:
    """One row for each published table and study: cells to run, done, stale, carried over from before
    there was a protocol, failed, not attempted; seconds spent.

    Stale are stored cells that the code as it stands did not make; ``rcbook.experiments.signing.stale`` says why.

    Parameters
    ----------
    folder : Path, optional
        Folder of the results; by default ``RCPKG_RESULTS`` if that is set, else ``data/results``.

    Raises
    ------
    NotADirectoryError
        If there is no such folder.
    """
    printed = list(published.index()[["source", "table"]].itertuples(index=False, name=None))
    known = register()
    folder = folder or results_folder()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"there is no folder {folder}: a run makes it, or let the environment variable RCPKG_RESULTS name another"
        )
    rows = []
    for source, table in printed + [key for key in known if key[0] == STUDY]:
        cells = known[source, table].cells() if (source, table) in known else []
        wanted = {cell.key: cell for cell in cells}
        done = runner.read(runner.table_path(source, table, folder))
        rows.append(
            {
                "table": f"{source}:{table}",
                "cells": sum(not cell.reason for cell in cells),
                "done": len(done),
                "stale": sum(d.key not in wanted or not d.is_of(wanted[d.key]) for d in done),
                "carried_over": sum("carried_over" in d.provenance for d in done),
                "failed": sum(bool(d.failure) for d in done),
                "not_attempted": sum(bool(cell.reason) for cell in cells),
                "seconds": round(sum(d.seconds or 0.0 for d in done), 1),
                "printed_numbers": 0 if source == STUDY else len(published.table(source, table)),
            }
        )
    return pd.DataFrame(rows)
