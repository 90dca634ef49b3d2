"""Where the project's own tables lie: the registry and the printed tables, and those that were recomputed."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The root of the repository that the package lies in; None for an installed wheel."""
    root = _PACKAGE.parent
    return root if (root / "data" / "datasets.csv").is_file() else None


def data_folder() -> Path:
    """The folder ``data/``: beside the package in a checkout, inside it in an installed wheel.

    Raises
    ------
    FileNotFoundError
        If the installation holds neither.
    """
    folder = (checkout() or _PACKAGE) / "data"
    if not (folder / "datasets.csv").is_file():
        raise FileNotFoundError(
            f"the tables of rcpkg (data/datasets.csv, ...) are neither in {_PACKAGE.parent} nor in {_PACKAGE}: "
            "reinstall rcpkg, or run from a checkout of the repository"
        )
    return folder


def results_folder() -> Path:
    """The folder in which recomputed tables are looked for and written.

    The one that the environment variable ``RCPKG_RESULTS`` names; without it ``data/results`` in a checkout, and
    ``.rcpkg/results`` in the user's home for an installed wheel, which carries no results.
    """
    if named := os.environ.get("RCPKG_RESULTS"):
        return Path(named)
    root = checkout()
    return root / "data" / "results" if root else Path.home() / ".rcpkg" / "results"


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
        "folder of the results (data/results in a checkout of the repository; an installed wheel carries none)"
    )
