"""Tables that follow from stored files alone, kept on disk under a digest of all that they are made from."""

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from rcbook._files import checkout, results_folder

KEPT = 8  # files of one table: of so many states, the last used
VERSIONS = repr((sys.version, np.__version__, pd.__version__, scipy.__version__))


def cache_folder() -> Path:
    """Where the tables are kept: a folder of the checkout that git ignores."""
    return checkout() / "_build" / "cache"


def _digest(files: Iterable[Path], *more: str) -> str:
    """Of names and contents."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return hashlib.sha256("\0".join([found.hexdigest(), *more]).encode()).hexdigest()


def _code_and_tables() -> str:
    """A digest of what a process reads once: the code of both packages and the tables of ``data/``."""
    root = checkout()
    code = [*(root / "book" / "rcbook").rglob("*.py"), *(root / "rcpkg").rglob("*.py")]
    tables = [*(root / "data").glob("*.csv"), *(root / "data" / "published").glob("*")]
    return _digest([*code, *tables], VERSIONS)


_READ = _code_and_tables()


def state() -> str | None:
    """A digest of code, tables and results; None if code or tables are no longer those that this process has read."""
    if _code_and_tables() != _READ:
        return None
    folder = results_folder()
    return _digest([*folder.glob("*.csv"), *folder.glob("*.jsonl")], _READ)


def remembered(function: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """The function, computed once for each `state` of its inputs, whichever process asks."""

    @wraps(function)
    def recall() -> pd.DataFrame:
        if (now := state()) is None:
            return function()
        path = cache_folder() / f"{function.__name__}-{now}.pickle"
        try:
            with path.open("rb") as file:
                return pickle.load(file)
        except Exception:  # whatever is wrong with the file, the table can be computed
            pass
        table = function()
        if state() == now:
            with contextlib.suppress(OSError):  # nothing can be written here
                _keep(path, table)
        return table

    return recall


def _keep(path: Path, table: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(pickle.dumps(table))
    os.replace(temporary, path)
    same = path.parent.glob(f"{path.name.partition('-')[0]}-*.pickle")
    for old in sorted(same, key=lambda file: file.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
