"""Where the project's own tables lie: the registry, the printed ones and the recomputed; names that are near to one."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def checkout() -> Path:
    """The root of the repository that the package lies in."""
    return _ROOT


def data_folder() -> Path:
    """The folder ``data/`` of the repository.

    Raises
    ------
    FileNotFoundError
        If the package lies in no checkout.
    """
    folder = _ROOT / "data"
    if not (folder / "datasets.csv").is_file():
        raise FileNotFoundError(
            f"there are no tables of the book in {folder}: run from a checkout of the repository, with "
            "pip install -e . -e book"
        )
    return folder


def results_folder() -> Path:
    """The folder in which recomputed tables are looked for and written.

    The one that the environment variable ``RCPKG_RESULTS`` names; without it ``data/results``.

    Raises
    ------
    FileNotFoundError
        If the variable is not set and the package lies in no checkout.
    NotADirectoryError
        If it is something else than a folder.
    """
    folder = Path(os.environ.get("RCPKG_RESULTS") or data_folder() / "results")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"the environment variable RCPKG_RESULTS names {folder}, which is no folder")
    return folder


def nearest(name: str, names: Iterable[str]) -> str:
    """Names that are spelt nearly so, for the message that there is none spelt so; empty where there are none."""
    near = get_close_matches(name, list(names))
    return f" (near to it: {', '.join(near)})" if near else ""


def stored_file(path: Path, remedy: str) -> Path:
    """The path of a recomputed table that is there.

    Raises
    ------
    FileNotFoundError
        If it is not; the message says where it was looked for, and the ``remedy``.
    """
    if path.is_file():
        return path
    raise FileNotFoundError(
        f"there is no {path.name} in {path.parent}: {remedy}, or let the environment variable RCPKG_RESULTS name the "
        "folder of the results (data/results in the repository)"
    )
