"""The registered files: found in a folder or in the cache, or downloaded, and always checked by sha256."""

import gzip
import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import pandas as pd

from rcbook._files import data_folder, nearest


class DataNotAvailable(OSError):
    """A data file is neither on this machine nor to be had from its address."""


class CorruptDataFile(OSError):
    """A data file does not have the registered sha256."""


@dataclass(frozen=True)
class DataFile:
    """One row of ``data/datasets.csv``.

    ``sha256`` is that of the bytes which ``url`` yields, ``sha256_used`` that of the bytes after
    ``transform`` (empty: the same). ``header`` names the leading lines (``names`` or ``skip``), ``ignore`` the
    columns, counted from 1, that are neither feature nor class, ``fields`` the length of a row: longer rows
    are cut, shorter ones left out. Without a ``url`` the file cannot be downloaded and must be provided.
    """

    name: str
    file: str
    url: str
    sha256: str
    transform: str = ""
    sha256_used: str = ""
    parser: str = "csv"
    header: str = ""
    class_column: str = "last"
    ignore: str = ""
    fields: str = ""
    part: str = ""
    licence: str = ""
    citation: str = ""
    page: str = ""
    notes: str = ""

    @property
    def checksum(self) -> str:
        """The sha256 of the bytes that are kept and parsed."""
        return self.sha256_used or self.sha256


def read_csv(path: Path) -> pd.DataFrame:
    """A table of strings; an empty cell is an empty string."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@lru_cache
def registry() -> tuple[DataFile, ...]:
    """All registered files."""
    columns = [field.name for field in fields(DataFile)]
    table = read_csv(data_folder() / "datasets.csv")
    return tuple(DataFile(**row) for row in table[columns].to_dict("records"))


def names() -> list[str]:
    """Names of the registered data sets, in alphabetical order."""
    return sorted({item.name for item in registry()})


def checked(content: bytes, item: DataFile, path: Path) -> bytes:
    """The bytes that are parsed: those of ``path``, or what the registered transformation makes of them."""
    found = hashlib.sha256(content).hexdigest()
    if item.transform and found == item.sha256:
        content = _TRANSFORMS[item.transform](content)
        found = hashlib.sha256(content).hexdigest()
    if found != item.checksum:
        raise CorruptDataFile(
            f"{path} has sha256 {found}, registered is {item.checksum}; replace it, or delete it to have it downloaded"
        )
    return content


_TRANSFORMS: dict[str, Callable[[bytes], bytes]] = {
    "drop_first_line": lambda content: content.partition(b"\n")[2],
    "gunzip": gzip.decompress,
}


def provided(folder: Path, item: DataFile) -> bytes | None:
    """The checked bytes of a file in a folder, as it is or compressed by gzip; none where it is not there."""
    for path, read in ((folder / item.file, bytes), (folder / f"{item.file}.gz", gzip.decompress)):
        if path.is_file():
            try:
                content = read(path.read_bytes())
            except (OSError, EOFError) as error:
                raise CorruptDataFile(f"{path} is not a complete gzip file ({error}); delete it") from error
            return checked(content, item, path)
    return None


def cache_folder() -> Path:
    """The user's cache, where pooch keeps what it downloads."""
    return Path(_pooch().os_cache("rcpkg"))


def _pooch():
    try:
        import pooch
    except ImportError as error:
        raise DataNotAvailable(
            "the data sets need the package pooch, which is not installed: pip install pooch, or "
            "name a folder that holds the files in the environment variable RCPKG_DATA"
        ) from error
    pooch.get_logger().setLevel("WARNING")
    return pooch


def download(item: DataFile, cache: Path, timeout: float = 30.0, progressbar: bool = False) -> Path:
    """The file in the cache, where pooch puts all of it, with the registered sha256, or nothing.

    Parameters
    ----------
    item, cache : DataFile and Path
        The registered file, and the folder to keep it in.
    timeout : float, default=30.0
        Seconds of silence after which the download is given up.
    progressbar : bool, default=False

    Raises
    ------
    DataNotAvailable
        If the address cannot be reached, answers with an error, or stops sending for ``timeout`` seconds.
    CorruptDataFile
        If it yields other bytes than registered.
    """
    pooch = _pooch()
    import requests

    fetcher = pooch.HTTPDownloader(timeout=timeout, progressbar=progressbar)
    try:
        return Path(pooch.retrieve(item.url, f"sha256:{item.sha256}", item.file, cache, downloader=fetcher))
    except requests.RequestException as error:
        raise DataNotAvailable(
            f"the file {item.file} of data set {item.name!r} is not on this machine and could not be "
            f"downloaded from {item.url} ({type(error).__name__}): run `python -m rcbook fetch {item.name}` with a "
            "network, or name a folder that holds the files in the environment variable RCPKG_DATA"
        ) from error
    except ValueError as error:
        raise CorruptDataFile(f"{error} Nothing was kept: try again, and report it if it happens twice") from error


def content_of(item: DataFile, timeout: float = 30.0, progressbar: bool = False) -> bytes:
    """The checked bytes of a file: from the folder of ``RCPKG_DATA``, from the cache, or downloaded into it."""
    given = os.environ.get("RCPKG_DATA")
    if given and (content := provided(Path(given), item)) is not None:
        return content
    cache = cache_folder()
    if (content := provided(cache, item)) is not None:
        return content
    if not item.url:
        raise DataNotAvailable(
            f"the file {item.file} of data set {item.name!r} is not on this machine, and no single download gives its "
            "bytes: put it into a folder that the environment variable RCPKG_DATA names (data/datasets.csv says "
            "whence it comes)"
        )
    path = download(item, cache, timeout, progressbar)
    return checked(path.read_bytes(), item, path)


def fetch(which: Iterable[str] = (), timeout: float = 30.0, progressbar: bool = False) -> list[str]:
    """Make the files of the named data sets available offline; returns the names.

    Where all are asked for, a warning names the sets with a file that must be provided, and they are left out.

    Parameters
    ----------
    which : iterable of str, default=()
        Names out of `names`; none named: all.
    timeout : float, default=30.0
        Seconds of silence after which a download is given up.
    progressbar : bool, default=False
        Whether to show one for each file.

    Raises
    ------
    ValueError
        If a name is not registered.
    DataNotAvailable, CorruptDataFile
        As in `download`, for the first file that fails.
    """
    which = list(which)
    chosen = list(which) or names()
    for name in chosen:
        check_name(name)
    for item in registry():
        if item.name not in chosen:
            continue
        try:
            content_of(item, timeout, progressbar)
        except DataNotAvailable as error:
            if which or item.url:
                raise
            warnings.warn(str(error), stacklevel=2)
            chosen.remove(item.name)
    return chosen


def check_name(name: str) -> None:
    """Raise a ValueError if no data set has the name."""
    if name not in names():
        raise ValueError(
            f"name must be that of a data set; got {name!r}{nearest(name, names())}: `rcbook.datasets.names()` and the "
            f"page book/datasets.md have all {len(names())}"
        )
