"""Resumable execution of experiments: each finished cell is one line of a file, with its provenance.

``<source>_table_<id>.jsonl`` in the folder of the results holds the cells, ``….csv`` the same numbers in the columns
of the printed table. A line is appended and flushed to disk at once; a line cut short by a kill is dropped at the next
start, so that a kill at any moment costs at most the cells in flight. A line damaged otherwise is set aside, in
``….damaged``, and its cell computed anew. One run of a table at a time.
"""

import importlib
import json
import os
import platform
import subprocess
import threading
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple

import joblib
import pandas as pd
from tqdm import tqdm

from rcbook import published
from rcbook._files import checkout, results_folder
from rcbook.experiments.cells import STUDY, Cell, Record, cells_of, present_name
from rcpkg import __version__
from rcpkg.base import InvalidStatistics

# a lock within the process is enough for one bar; the semaphore that tqdm would take outlives workers that are stopped
tqdm.set_lock(threading.RLock())

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")
SEED = 2007


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


class DamagedLine(UserWarning):
    """A line of a file of cells cannot be read."""


class Content(NamedTuple):
    """What a file of cells holds: the last line of each key, and the damaged lines, as they are, by their numbers."""

    done: list[Done]
    damaged: dict[int, bytes]


def content(path: Path) -> Content:
    """The content of a file of cells; each damaged line is named in a warning. A line cut short at the end is none."""
    found, damaged = {}, {}
    *lines, _ = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    for number, line in enumerate(lines, 1):
        try:
            fields = json.loads(line)
            fields["records"] = [Record(**record) for record in fields["records"]]
            fields["protocol"] = present_name(fields["protocol"])
            found[fields["key"]] = Done(**fields)
        except (ValueError, TypeError, KeyError) as error:
            damaged[number] = line
            message = f"{path}, line {number} is damaged and set aside ({error}); a run of the table computes it anew"
            warnings.warn(message, DamagedLine, stacklevel=2)
    return Content(list(found.values()), damaged)


def read(path: Path) -> list[Done]:
    """All cells that a file holds."""
    return content(path).done


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of writing, those of a full disk among them, name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w") as file:
            _write(file, text)
        os.replace(temporary, path)


def _append(path: Path, lines: str | bytes) -> None:
    with _naming(path), path.open("a" if isinstance(lines, str) else "ab") as file:
        _write(file, lines)


def _write(file: IO, content: str | bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


class RunInProgress(OSError):
    """Another process computes the cells of this table."""


@contextmanager
def sole_run(path: Path) -> Iterator[None]:
    """One run of a table at a time: a lock of the operating system, which ends with the process that holds it.

    Raises
    ------
    RunInProgress
        If another process holds it.
    """
    lock = path.with_name(f".{path.name}.lock")
    with _naming(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    with file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            raise RunInProgress(f"another run of {path.stem} is writing {path}: wait for it, or end it") from None
        yield


def _lock(file: IO) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
        File of cells; lines of cells that are no longer asked for are dropped, damaged lines moved to a file beside.
    jobs : int
        Number of parallel workers, as joblib's ``n_jobs``.
    backend : str, optional
        A joblib backend (``"loky"``, ``"threading"``, ``"dask"``, …).
    progress : bool
        A bar with the time left, on stderr.
    """
    wanted = {cell.key: cell for cell in cells if not cell.reason}
    stored, damaged = content(path)
    kept = {done.key: done for done in stored if done.key in wanted and done.is_of(wanted[done.key])}
    if damaged:
        _append(path.with_suffix(".damaged"), b"".join(line + b"\n" for line in damaged.values()))
    _replace(path, "".join(done.line() for done in kept.values()))
    todo = [cell for key, cell in wanted.items() if key not in kept]
    code, errors = commit(), {}
    outcomes = _outcomes(todo, jobs, backend) if todo else ()
    bar = tqdm(outcomes, total=len(wanted), initial=len(kept), desc=path.stem, unit="cell", disable=not progress)
    for outcome in bar:
        if isinstance(outcome, Done):
            done = Done(**{**vars(outcome), "provenance": code | outcome.provenance})
            _append(path, done.line())
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
    ValueError, RunInProgress
        If ``jobs`` is 0 or there is no such table; if another process runs it.
    KeyboardInterrupt
        On Ctrl-C; the message says how many cells are kept, and where.
    """
    if jobs == 0:
        raise ValueError("jobs must be the number of workers, or -1 for one a processor; got 0")
    folder = (folder or results_folder()) / ("quick" if quick else "")
    path = table_path(source, table, folder)
    cells = cells_of(source, table, quick)
    with sole_run(path):
        try:
            errors = run_cells(cells, path, jobs, backend, progress)
        except KeyboardInterrupt:
            n, wanted = len(read(path)), sum(not cell.reason for cell in cells)
            message = f"stopped: {n} of {wanted} cells of {source}:{table} are kept in {path}; run it again to go on"
            raise KeyboardInterrupt(message) from None
        _replace(path.with_suffix(".csv"), as_printed(source, table, folder).to_csv(index=False, lineterminator="\n"))
    return errors


def kept(source: str, table: str, *, quick: bool = False) -> str:
    """How many cells of a table are stored, and where the table is, in a sentence."""
    path = table_path(source, table, results_folder() / ("quick" if quick else ""))
    wanted = sum(not cell.reason for cell in cells_of(source, table, quick))
    if not wanted:
        return f"{source}:{table} has no cell to run" + (" that is small enough for --quick" if quick else "")
    return f"{source}:{table}: {len(read(path))} of {wanted} cells are kept; the table is {path.with_suffix('.csv')}"


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
            "dataset": cell.dataset or cell.stream,
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
    if any(cell.dataset for cell in cells_of(source, table)):
        keys.append("dataset")
    ours = ours[[*keys, "value", "std", "value_se", "n_runs"]]
    return published.table(source, table).drop(columns=["value", "std"]).merge(ours, on=keys)[COLUMNS]


def write_tables(directory: str | Path, tables: dict[str, pd.DataFrame], digits: int = 10) -> None:
    """Write what is computed at once, without cells, as CSV files: name -> table, to so many significant digits."""
    for name, table in tables.items():
        table.to_csv(Path(directory) / name, index=False, float_format=f"%.{digits}g", lineterminator="\n")
