"""Resumable execution of experiments: what is stored, and of the code as it stands, is not computed again."""

import importlib
import os
import platform
import subprocess
import threading
import time
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from rcbook import published
from rcbook._files import checkout, results_folder
from rcbook.experiments import code
from rcbook.experiments.cells import STUDY, Cell, Record, cells_of
from rcbook.experiments.store import Done, lines, read, table_path, write
from rcpkg import __version__
from rcpkg.base import InvalidStatistics

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")
SEED = 2007


def cell_seed(cell: Cell) -> int:
    """Seed of a cell: fixed by the name of its stream, whatever the order or the number of workers."""
    stream = f"{cell.source}:{cell.stream}" if cell.stream else f"{cell.source}:{cell.table}:{cell.key}"
    return SEED + zlib.crc32(stream.encode())


# Provenance ----------------------------------------------------------------------------------------


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(checkout()), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit() -> dict[str, Any]:
    """The commit of the code, and whether code or data tables differ from it; None outside a checkout."""
    changes = _git("status", "--porcelain", "--", "rcpkg", "book/rcbook", ":(glob)data/*.csv", "data/published")
    return {"commit": _git("rev-parse", "HEAD"), "modified": None if changes is None else bool(changes)}


@lru_cache
def environment() -> dict[str, Any]:
    """Versions and a summary of the hardware, without any name of the machine."""
    processor = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    return {
        "rcpkg": __version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "hardware": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor,
            "cores": os.cpu_count(),
        },
    }


# Execution -----------------------------------------------------------------------------------------


def execute(cell: Cell) -> Done | tuple[str, str]:
    """Run one cell where it is called, a worker process as a rule; an unexpected error is returned, not raised."""
    module, name = cell.protocol.split(":")
    start, records, failure = time.perf_counter(), [], ""
    try:
        records = getattr(importlib.import_module(module), name)(cell, cell_seed(cell))
    except InvalidStatistics as error:
        failure = f"{type(error).__name__}: {error}"
    except Exception as error:
        return cell.key, f"{type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - start, 3)
    of_table = bool(records) and isinstance(records[0], dict)
    records, rows = ([], records) if of_table else (records, [])
    definitions = code.definitions(cell.protocol)
    return Done(cell, cell_seed(cell), records, failure, seconds, environment(), definitions, rows)


def run_cells(
    cells: Iterable[Cell], path: Path, jobs: int = 1, backend: str | None = None, progress: bool = True
) -> dict[str, str]:
    """Run the cells that are not stored yet, or by other code; returns the unexpected errors by key.

    Parameters
    ----------
    cells : iterable of Cell
        Cells with a ``reason`` are left out.
    path : Path
        File of cells; those that are no longer asked for are dropped.
    jobs : int
        Number of parallel workers, as joblib's ``n_jobs``.
    backend : str, optional
        A joblib backend (``"loky"``, ``"threading"``, ``"dask"``, …).
    progress : bool
        A bar with the time left, on stderr.
    """
    wanted = {cell.key: cell for cell in cells if not cell.reason}
    kept = {done.key: done for done in read(path) if done.key in wanted and done.is_of(wanted[done.key])}
    write(path, kept.values())
    todo = [joblib.delayed(execute)(cell) for key, cell in wanted.items() if key not in kept]
    state, errors = commit(), {}
    with joblib.parallel_config(backend=backend) if backend else nullcontext():
        outcomes = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(todo)
    from tqdm import tqdm  # not where results are only read, as on a page that runs

    # a lock within the process is enough for one bar; the semaphore that tqdm takes outlives workers that are stopped
    tqdm.set_lock(threading.RLock())
    bar = tqdm(outcomes, total=len(wanted), initial=len(kept), desc=path.stem, unit="cell", disable=not progress)
    above = None
    with path.open("a") as file:
        for outcome in bar:
            if isinstance(outcome, Done):
                done = replace(outcome, provenance=state | outcome.provenance)
                file.write("".join(lines([done], above)))
                file.flush()
                kept[done.key] = above = done
            else:
                errors[outcome[0]] = outcome[1]
    write(path, [kept[key] for key in wanted if key in kept])
    return errors


def run(
    source: str,
    table: str,
    *,
    quick: bool = False,
    jobs: int = 1,
    backend: str | None = None,
    progress: bool = True,
    folder: Path | None = None,
) -> dict[str, str]:
    """Recompute a published table, as far as it is not done, and write it in its printed columns.

    Parameters
    ----------
    source, table : str
        Key of the source and number of the table, or of a study; see `tables`.
    quick : bool, default=False
        Run the small data sets only, with few repetitions, and store them apart.
    jobs, backend, progress
        Processes that work at once, their backend of joblib, and whether to show a bar.
    folder : Path, optional
        Where the results are; by default what ``RCPKG_RESULTS`` names, else that of `results_folder`.

    Returns
    -------
    dict
        The unexpected errors, by the key of their cell.

    Raises
    ------
    ValueError
        If ``jobs`` is 0 or there is no such table.
    """
    if jobs == 0:
        raise ValueError("jobs must be the number of workers, or -1 for one a processor; got 0")
    path = table_path(source, table, (folder or results_folder()) / ("quick" if quick else ""))
    return run_cells(cells_of(source, table, quick), path, jobs, backend, progress)


def kept(source: str, table: str, *, quick: bool = False) -> str:
    """How many cells of a table are stored, and where, in a sentence."""
    path = table_path(source, table, results_folder() / ("quick" if quick else ""))
    wanted = sum(not cell.reason for cell in cells_of(source, table, quick))
    if not wanted:
        return f"{source}:{table} has no cell to run" + (" that is small enough for --quick" if quick else "")
    return f"{source}:{table}: {len(read(path))} of {wanted} cells are kept in {path}"


# Results in the columns of the printed tables ------------------------------------------------------

STUDY_COLUMNS = ["source", "table", "row", "dataset", "setting_value", "method", "metric"]
STUDY_COLUMNS += ["value", "std", "value_se", "n_runs"]
COLUMNS = ["source", "table", "row", "dataset", "n_instances", "n_features", "method", "setting_name"]
COLUMNS += ["setting_value", "metric", "value", "std", "value_se", "n_runs"]


def origin(provenance: dict[str, Any]) -> dict[str, str]:
    """Commit, with a + if the code differed from it, versions and hardware."""
    return {
        "commit": provenance.get("commit", "") + ("+" if provenance.get("modified") else ""),
        "versions": ", ".join(f"{name} {number}" for name, number in provenance["packages"].items()),
        "hardware": ", ".join(str(part) for part in provenance.get("hardware", {}).values()),
    }


def as_printed(source: str, table: str, path: Path) -> pd.DataFrame:
    """What a file of cells holds of a table, in its printed columns; ``value`` is empty where a dash belongs.

    A study has no printed columns: its own are row, dataset, setting, method, metric and the numbers; or those of its
    rows, with commit, versions and hardware.
    """
    stored = read(path)
    if any(done.rows for done in stored):
        return pd.DataFrame([row | origin(done.provenance) for done in stored for row in done.rows])
    rows = [
        (source, table, done.cell.row, done.cell.dataset or done.cell.stream, done.cell.setting_value, *record)
        for done in stored
        for record in done.records
    ]
    ours = pd.DataFrame(rows, columns=[*STUDY_COLUMNS[:5], *Record._fields])
    ours[["value", "std"]] = ours[["value", "std"]].apply(pd.to_numeric)
    ours["value_se"] = ours["std"] / ours["n_runs"] ** 0.5
    if source == STUDY:
        return ours[STUDY_COLUMNS]
    keys = ["row", "method", "metric", "setting_value"]
    if not ours.setting_value.any():  # one setting for the whole table
        keys = keys[:3]
    if any(done.cell.dataset for done in stored):
        keys.append("dataset")
    ours = ours[[*keys, "value", "std", "value_se", "n_runs"]]
    return published.table(source, table).drop(columns=["value", "std"]).merge(ours, on=keys)[COLUMNS]


def write_tables(directory: str | Path, tables: dict[str, pd.DataFrame], digits: int = 10) -> None:
    """Write what is computed at once, without cells, as CSV files: name -> table, to so many significant digits."""
    for name, table in tables.items():
        table.to_csv(Path(directory) / name, index=False, float_format=f"%.{digits}g", lineterminator="\n")
