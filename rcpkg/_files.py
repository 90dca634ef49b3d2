"""Where the project's own tables (registry, published and recomputed tables) lie."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder() -> Path:
    """The folder ``data/``: beside the package in a checkout, inside it in an installed wheel.

    Raises
    ------
    FileNotFoundError
        If the installation holds neither.
    """
    for folder in (_PACKAGE.parent / "data", _PACKAGE / "data"):
        if (folder / "datasets.csv").is_file():
            return folder
    raise FileNotFoundError(
        f"the tables of rcpkg (data/datasets.csv, ...) are neither in {_PACKAGE.parent} nor in {_PACKAGE}: "
        "reinstall rcpkg, or run from a checkout of the repository"
    )
