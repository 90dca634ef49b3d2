"""Resumable execution of experiments: each finished cell is one line of a file, with its provenance.

``data/results/<source>_table_<id>.jsonl`` holds the cells, ``….csv`` the same numbers in the columns of the printed
table. A line is appended and flushed to disk at once; a line cut short by a kill is dropped at the next start, so
that a kill at any moment costs at most the cells in flight. One run of a table at a time.
"""

import importlib
import json
import os
import platform
import subprocess
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from tqdm import tqdm

from rcpkg import __version__, published
from rcpkg._files import data_folder
from rcpkg.base import InvalidStatistics
from rcpkg.experiments.cells import STUDY, Cell, Record, cells_of

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")
SEED = 2007


def results_folder() -> Path:
    """Folder of the results: ``RCPKG_RESULTS`` if that is set, else ``data/results``."""
    return Path(os.environ.get("RCPKG_RESULTS") or data_folder() / "results")


def table_path(source: str, table: str, folder: Path | None = None) -> Path:
    """The file of cells of one table."""
    return (folder or results_folder()) / f"{source}_table_{table}.jsonl"


def cell_seed(cell: Cell) -> int:
    """Seed of a cell: fixed by the name of its stream, whatever the order or the number of workers."""
    stream = f"{cell.source}:{cell.stream}" if cell.stream else f"{cell.source}:{cell.table}:{cell.key}"
    return SEED + zlib.crc32(stream.encode())


# Provenance ----------------------------------------------------------------------------------------


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(data_folder().parent), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit() -> dict[str, Any]:
    """The commit of the code, and whether code or data tables differ from it; None outside a checkout."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--", "rcpkg", ":(glob)data/*.csv", "data/published")),
    }


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


# Store ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """A finished cell as it is stored: its records or why it failed, and its provenance."""

    key: str
    protocol: str
    arguments: dict[str, Any]
    seed: int
    records: list[Record]
    failure: str
    seconds: float
    provenance: dict[str, Any]

    def line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self) | {"records": [record._asdict() for record in self.records]}) + "\n"

    def is_of(self, cell: Cell) -> bool:
        """Whether it was computed as the cell says now."""
        return (self.key, self.protocol, self.arguments) == (cell.key, cell.protocol, cell.arguments)


def read(path: Path) -> list[Done]:
    """All complete lines of a file of cells; the last one of each key counts."""
    if not path.is_file():
        return []
    found = {}
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        fields = json.loads(line)
        fields["records"] = [Record(**record) for record in fields["records"]]
        found[fields["key"]] = Done(**fields)
    return list(found.values())


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _append(path: Path, done: Done) -> None:
    with path.open("a") as file:
        file.write(done.line())
        file.flush()
        os.fsync(file.fileno())


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
    arguments = cell.arguments
    return Done(cell.key, cell.protocol, arguments, cell_seed(cell), records, failure, seconds, environment())


def _outcomes(todo: list[Cell], jobs: int, backend: str | None) -> Iterator[Done | tuple[str, str]]:
    """Outcomes as they come in; in small batches where the joblib backend cannot hand them over one by one."""
    tasks = [joblib.delayed(execute)(cell) for cell in todo]
    with joblib.parallel_config(backend=backend) if backend else joblib.parallel_config(n_jobs=jobs):
        streams = joblib.parallel.get_active_backend()[0].supports_return_generator
        if streams:
            yield from joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(tasks)
            return
        size = 2 * joblib.effective_n_jobs(jobs)
        for start in range(0, len(tasks), size):
            yield from joblib.Parallel(n_jobs=jobs)(tasks[start : start + size])


def run_cells(
    cells: Iterable[Cell], path: Path, jobs: int = 1, backend: str | None = None, progress: bool = True
) -> dict[str, str]:
    """Run the cells that are not stored yet; returns the unexpected errors by key.

    Parameters
    ----------
    cells : iterable of Cell
        Cells with a ``reason`` are left out.
    path : Path
        File of cells; lines of cells that are no longer asked for are dropped.
    jobs : int
        Number of parallel workers, as joblib's ``n_jobs``.
    backend : str, optional
        A joblib backend (``"loky"``, ``"threading"``, ``"dask"``, …).
    progress : bool
        A bar with the time left, on stderr.
    """
    wanted = {cell.key: cell for cell in cells if not cell.reason}
    kept = {done.key: done for done in read(path) if done.key in wanted and done.is_of(wanted[done.key])}
    _replace(path, "".join(done.line() for done in kept.values()))
    todo = [cell for key, cell in wanted.items() if key not in kept]
    code, errors = commit(), {}
    outcomes = _outcomes(todo, jobs, backend) if todo else ()
    bar = tqdm(outcomes, total=len(wanted), initial=len(kept), desc=path.stem, unit="cell", disable=not progress)
    for outcome in bar:
        if isinstance(outcome, Done):
            done = Done(**{**vars(outcome), "provenance": code | outcome.provenance})
            _append(path, done)
            kept[done.key] = done
        else:
            errors[outcome[0]] = outcome[1]
    _replace(path, "".join(kept[key].line() for key in wanted if key in kept))
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
    jobs : int, default=1
        Processes that work at once.
    backend : str, optional
        Of joblib; its own choice by default.
    progress : bool, default=True
        Whether to show a bar.
    folder : Path, optional
        Folder of the results; by default ``RCPKG_RESULTS`` if that is set, else ``data/results``.

    Returns
    -------
    dict
        The unexpected errors, by the key of their cell.
    """
    folder = folder or results_folder()
    if quick:
        folder = folder / "quick"
    path = table_path(source, table, folder)
    cells = cells_of(source, table, quick)
    errors = run_cells(cells, path, jobs, backend, progress)
    _replace(path.with_suffix(".csv"), as_printed(source, table, folder).to_csv(index=False, lineterminator="\n"))
    return errors


# Results in the columns of the printed tables ------------------------------------------------------

STUDY_COLUMNS = ["source", "table", "row", "dataset", "setting_value", "method", "metric"]
STUDY_COLUMNS += ["value", "std", "value_se", "n_runs"]
COLUMNS = ["source", "table", "row", "dataset", "n_instances", "n_features", "method", "setting_name"]
COLUMNS += ["setting_value", "metric", "value", "std", "value_se", "n_runs"]


def _recomputed(source: str, table: str, folder: Path) -> pd.DataFrame:
    """One row for each record: row, method, setting and metric, with its numbers."""
    by_key = {done.key: done for done in read(table_path(source, table, folder))}
    cells = [cell for cell in cells_of(source, table) if cell.key in by_key]
    rows = [
        {
            "source": source,
            "table": table,
            "row": cell.row,
            "dataset": cell.stream,
            "setting_value": cell.setting_value,
            **record._asdict(),
        }
        for cell in cells
        for record in by_key[cell.key].records
    ]
    return pd.DataFrame(rows, columns=[*STUDY_COLUMNS[:5], *Record._fields])


def as_printed(source: str, table: str, folder: Path | None = None) -> pd.DataFrame:
    """What has been recomputed of a table, in its printed columns; ``value`` is empty where a dash belongs.

    A study has no printed columns: its own are row, dataset, setting, method, metric and the numbers.
    """
    folder = folder or results_folder()
    ours = _recomputed(source, table, folder)
    ours["std"] = pd.to_numeric(ours["std"])
    ours["value_se"] = ours["std"] / ours["n_runs"] ** 0.5
    if source == STUDY:
        return ours[STUDY_COLUMNS]
    keys = ["row", "method", "metric", "setting_value"]
    if not ours.setting_value.any():  # one setting for the whole table
        keys = keys[:3]
    ours = ours[[*keys, "value", "std", "value_se", "n_runs"]]
    return published.table(source, table).drop(columns=["value", "std"]).merge(ours, on=keys)[COLUMNS]


def write_tables(directory: str | Path, tables: dict[str, pd.DataFrame], digits: int = 10) -> None:
    """Write what is computed at once, without cells, as CSV files: name -> table, to so many significant digits."""
    for name, table in tables.items():
        table.to_csv(Path(directory) / name, index=False, float_format=f"%.{digits}g", lineterminator="\n")
