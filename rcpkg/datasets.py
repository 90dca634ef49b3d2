"""The public data sets of the sources: found or downloaded, checked by sha256, cut to what each source used.

``data/datasets.csv`` registers the files, ``data/variants.csv`` the rows and columns of each source. The data
themselves are not part of the package: a file is looked for in the folder named by the environment variable
``RCPKG_DATA``, then in the user's cache, then downloaded.
"""

import bz2
import contextlib
import csv
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import struct
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from rcpkg._files import data_folder

MISSING = ("", "?", "nan", "NaN")


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


def _read_csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@lru_cache
def registry() -> tuple[DataFile, ...]:
    """All registered files."""
    columns = [field.name for field in fields(DataFile)]
    table = _read_csv(data_folder() / "datasets.csv")
    return tuple(DataFile(**row) for row in table[columns].to_dict("records"))


@lru_cache
def _variants() -> pd.DataFrame:
    return _read_csv(data_folder() / "variants.csv")


def names() -> list[str]:
    """Names of the registered data sets, in alphabetical order."""
    return sorted({item.name for item in registry()})


# Files --------------------------------------------------------------------------------------------


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_checked(path: Path, item: DataFile, remedy: str) -> bytes:
    content = path.read_bytes()
    if path.name == Path(item.file).name + ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise CorruptDataFile(f"{path} is not a complete gzip file ({error}); {remedy}") from error
    if (found := _sha256(content)) != item.checksum:
        raise CorruptDataFile(f"{path} has sha256 {found}, registered is {item.checksum}; {remedy}")
    return content


def _find(folder: Path, item: DataFile) -> Path | None:
    """The file in a folder, as it is or compressed by gzip."""
    for path in (folder / item.file, folder / f"{item.file}.gz"):
        if path.is_file():
            return path
    return None


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


def cache_folder() -> Path:
    """The user's cache, where downloaded files are kept."""
    return Path(_pooch().os_cache("rcpkg"))


def _sweep(cache: Path, max_age: float = 86400.0) -> None:
    """Remove what a killed download left behind more than a day ago."""
    for folder in cache.glob(".partial-*"):
        with contextlib.suppress(FileNotFoundError):  # another download has just finished and removed its own
            if time.time() - folder.stat().st_mtime > max_age:
                shutil.rmtree(folder, ignore_errors=True)


def download(item: DataFile, cache: Path, timeout: float = 30.0, progressbar: bool = False) -> Path:
    """Download one file into the cache: all of it, with the registered sha256, or nothing.

    The bytes arrive in a folder of their own, are checked and transformed there, and are moved into place by
    one atomic rename; concurrent downloads of the same file therefore do not disturb each other.

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

    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    fetcher = pooch.HTTPDownloader(timeout=timeout, progressbar=progressbar)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as folder:
        try:
            part = Path(pooch.retrieve(item.url, None, fname="part", path=folder, downloader=fetcher))
        except requests.RequestException as error:
            raise DataNotAvailable(
                f"the file {item.file} of data set {item.name!r} is not on this machine and could not be "
                f"downloaded from {item.url} ({type(error).__name__}): run `python -m rcpkg fetch {item.name}` with a "
                "network, or name a folder that holds the files in the environment variable RCPKG_DATA"
            ) from error
        content = part.read_bytes()
        if (found := _sha256(content)) != item.sha256:
            raise CorruptDataFile(
                f"{item.url} gave {len(content)} bytes with sha256 {found} for {item.file}, registered is "
                f"{item.sha256}; nothing was kept: try again, and report it if it happens twice"
            )
        if item.transform:
            part.write_bytes(_TRANSFORMS[item.transform](content))
        _read_checked(part, item, "the registered transformation does not fit this file: report it")
        target = cache / item.file
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, target)
    return target


_TRANSFORMS: dict[str, Callable[[bytes], bytes]] = {
    "drop_first_line": lambda content: content.partition(b"\n")[2],
    "gunzip": gzip.decompress,
}


def _content(item: DataFile, timeout: float = 30.0, progressbar: bool = False) -> bytes:
    if (folder := os.environ.get("RCPKG_DATA")) and (path := _find(Path(folder), item)):
        return _read_checked(path, item, "replace it, or take it out of RCPKG_DATA to have it downloaded")
    cache = cache_folder()
    path = _find(cache, item)
    if path is None and not item.url:
        raise DataNotAvailable(
            f"the file {item.file} of data set {item.name!r} is not on this machine, and no single download gives its "
            "bytes: put it into a folder that the environment variable RCPKG_DATA names (data/datasets.csv says "
            "whence it comes)"
        )
    path = path or download(item, cache, timeout, progressbar)
    return _read_checked(path, item, "delete it to have it downloaded again")


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
        _check_name(name)
    for item in registry():
        if item.name not in chosen:
            continue
        try:
            _content(item, timeout, progressbar)
        except DataNotAvailable as error:
            if which or item.url:
                raise
            warnings.warn(str(error), stacklevel=2)
            chosen.remove(item.name)
    return chosen


def _check_name(name: str) -> None:
    if name not in names():
        raise ValueError(f"name must be one of {', '.join(names())}; got {name!r}")


# Formats: bytes -> rows of strings or a matrix ----------------------------------------------------


@dataclass
class _Raw:
    """Columns of one file as strings or numbers, the class among them; ``nominal``: declared categories."""

    columns: list[NDArray]
    names: list[str]
    nominal: list[bool]


def _rows_to_raw(
    rows: list[list[str]], item: DataFile, names: list[str] | None = None, nominal: list[bool] | None = None
) -> _Raw:
    width = int(item.fields) if item.fields else len(rows[0])
    kept = [row[:width] for row in rows if len(row) >= width]
    columns = [np.array([value.strip() for value in column], dtype=object) for column in zip(*kept, strict=True)]
    return _Raw(columns, names or [f"x{j + 1}" for j in range(width)], nominal or [False] * width)


def _parse_delimited(content: bytes, item: DataFile) -> _Raw:
    lines = content.decode("latin-1").splitlines()
    if item.parser == "blank":
        rows = [line.split() for line in lines]
    else:
        rows = list(csv.reader(lines, delimiter={"semicolon": ";", "tab": "\t"}.get(item.parser, ",")))
    header, names = item.header.split(), None
    if "names" in header:
        names = rows[header.index("names")]
    body = [row for row in rows[len(header) :] if any(value.strip() for value in row)]
    if names is not None and len(names) < len(body[0]):
        names = None
    return _rows_to_raw(body, item, names)


def _parse_arff(content: bytes, item: DataFile) -> _Raw:
    names, nominal, rows, in_data = [], [], [], False
    for line in content.decode("latin-1").splitlines():
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if in_data:
            rows.append(next(csv.reader([line], quotechar="'", skipinitialspace=True)))
        elif line.lower().startswith("@data"):
            in_data = True
        elif match := re.match(r"@attribute\s+('[^']*'|\S+)\s*(.*)", line, re.IGNORECASE):
            names.append(match[1].strip("'"))
            nominal.append(match[2].startswith("{"))
    return _rows_to_raw(rows, item, names, nominal)


def _matrix_to_raw(matrix: NDArray) -> _Raw:
    d = matrix.shape[1]
    return _Raw(list(matrix.T), [f"x{j + 1}" for j in range(d)], [False] * d)


def _parse_numbers(content: bytes, item: DataFile) -> _Raw:
    """Numbers between commas and nothing else, in many rows."""
    return _matrix_to_raw(pd.read_csv(io.BytesIO(content), header=None).to_numpy(float))


def _parse_idx(content: bytes, item: DataFile) -> _Raw:
    """The idx format of the MNIST files: unsigned bytes, the shape in the head."""
    content = gzip.decompress(content)
    n_axes = content[3]
    shape = struct.unpack(f">{n_axes}I", content[4 : 4 + 4 * n_axes])
    return _matrix_to_raw(np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape[0], -1).astype(float))


def _parse_rdata(content: bytes, item: DataFile) -> _Raw:
    """The one numeric matrix of an RData file in R's binary (XDR) serialisation."""
    for opened in (gzip.decompress, bz2.decompress, lzma.decompress):
        try:
            content = opened(content)
            break
        except (OSError, lzma.LZMAError):
            continue
    if content[:7] != b"RDX2\nX\n":
        raise CorruptDataFile(f"{item.file} is not an RData file of version 2 in XDR form")
    # pairlist cell, tag symbol, its characters; then the REAL vector with its length, values and attributes
    stream = io.BytesIO(content[7 + 12 :])

    def integer() -> int:
        return struct.unpack(">i", stream.read(4))[0]

    integer(), integer(), integer()
    stream.read(integer())
    integer()
    length = integer()
    values = np.frombuffer(stream.read(8 * length), ">f8").astype(float)
    integer(), integer(), integer()
    stream.read(integer())
    integer()
    if integer() != 2:
        raise CorruptDataFile(f"{item.file} does not hold one matrix")
    return _matrix_to_raw(values.reshape(integer(), integer(), order="F"))


_PARSERS: dict[str, Callable[[bytes, DataFile], _Raw]] = {
    "csv": _parse_delimited,
    "semicolon": _parse_delimited,
    "blank": _parse_delimited,
    "tab": _parse_delimited,
    "numbers": _parse_numbers,
    "arff": _parse_arff,
    "idx": _parse_idx,
    "rdata": _parse_rdata,
}


# Variants: which rows and columns a source used ---------------------------------------------------


@dataclass
class _Table:
    """The working state of a load: features as strings or numbers, classes, and the part of each row."""

    columns: list[NDArray]
    names: list[str]
    nominal: list[bool]
    target: NDArray
    part: NDArray

    def rows(self, keep: NDArray) -> None:
        self.columns = [column[keep] for column in self.columns]
        self.target, self.part = self.target[keep], self.part[keep]

    def features(self, keep: Iterable[int]) -> None:
        keep = list(keep)
        self.columns = [self.columns[j] for j in keep]
        self.names = [self.names[j] for j in keep]
        self.nominal = [self.nominal[j] for j in keep]


def _missing(column: NDArray) -> NDArray[np.bool_]:
    return np.isin(column, MISSING) if column.dtype == object else np.isnan(column)


def _smallest_class_variance(column: NDArray, target: NDArray) -> float:
    values = column.astype(float)
    return min(values[target == label].var() for label in np.unique(target))


def _drop_missing(table: _Table) -> None:
    table.rows(~np.any([_missing(column) for column in table.columns], axis=0))


def _min_class_size(table: _Table, size: str) -> None:
    _, inverse, counts = np.unique(table.target, return_inverse=True, return_counts=True)
    table.rows((counts >= int(size))[inverse])


def _min_within_class_variance(table: _Table, cut: str) -> None:
    spread = [_smallest_class_variance(column, table.target) for column in table.columns]
    table.features(np.flatnonzero(np.array(spread) >= float(cut)))


def _drop_constant(table: _Table) -> None:
    table.features(j for j, column in enumerate(table.columns) if np.any(column != column[0]))


def _bin_class(table: _Table, *upper: str) -> None:
    table.target = (
        np.digitize(table.target.astype(float), [float(u) for u in upper], right=True).astype(str).astype(object)
    )


def _strip_class(table: _Table, suffix: str) -> None:
    table.target = np.array([label.removesuffix(suffix) for label in table.target], dtype=object)


def _class_from(table: _Table, column: str) -> None:
    at = int(column) - 1
    table.target = table.columns[at]
    table.features(j for j in range(len(table.columns)) if j != at)


def _class_letter(table: _Table) -> None:
    table.target = np.array([label[0] for label in table.target], dtype=object)


def _nominal(table: _Table, *which: str) -> None:
    table.nominal = [nominal or not which or str(j + 1) in which for j, nominal in enumerate(table.nominal)]


_RULES: dict[str, Callable[..., None]] = {
    "skip_rows": lambda table, count: table.rows(np.arange(len(table.target)) >= int(count)),
    "drop_missing": _drop_missing,
    "min_class_size": _min_class_size,
    "min_within_class_variance": _min_within_class_variance,
    "drop_constant": _drop_constant,
    "drop_features": lambda table, *which: table.features(
        j for j in range(len(table.columns)) if str(j + 1) not in which
    ),
    "bin_class": _bin_class,
    "strip_class": _strip_class,
    "class_from": _class_from,  # a feature takes the place of the class
    "class_letter": _class_letter,  # the first letter of the class is the class
    "drop_unlabelled": lambda table: table.rows(~_missing(table.target)),
    "nominal": _nominal,  # features, by default all, whose numbers are codes of categories
}


def _column_index(spec: str, width: int) -> int:
    """Position of the class column: ``first``, ``last``, or a number counted from 1."""
    return {"first": 0, "last": width - 1}[spec] if spec in ("first", "last") else int(spec) - 1


def _file_table(file: str, name: str) -> _Table:
    """One file, or several joined side by side (``a+b``)."""
    items = [next(i for i in registry() if i.file == f"{name}/{part}") for part in file.split("+")]
    raws = [_PARSERS[item.parser](_content(item), item) for item in items]
    raw = _Raw(*([entry for raw in raws for entry in getattr(raw, field.name)] for field in fields(_Raw)))
    target = raw.columns[at := _column_index(items[0].class_column, len(raw.columns))]
    ignored = {at, *(int(j) - 1 for j in items[0].ignore.split())}
    if target.dtype != object:
        target = target.astype(int).astype(str).astype(object)
    table = _Table(raw.columns, raw.names, raw.nominal, target, np.full(len(target), items[0].part, dtype=object))
    table.features(j for j in range(len(raw.columns)) if j not in ignored)
    return table


def _files_of(name: str, files: str) -> list[DataFile]:
    return [item for item in registry() if item.file in {f"{name}/{file}" for file in re.split(r"[|+]", files)}]


def _stack(tables: list[_Table]) -> _Table:
    first = tables[0]
    return _Table(
        [np.concatenate(columns) for columns in zip(*(t.columns for t in tables), strict=True)],
        first.names,
        first.nominal,
        np.concatenate([t.target for t in tables]),
        np.concatenate([t.part for t in tables]),
    )


def _encode(column: NDArray) -> tuple[NDArray[np.float64], list[str] | None]:
    """Numbers as they are; other categories by their rank in alphabetical order; missing values as NaN."""
    missing = _missing(column)
    try:
        return np.where(missing, "nan", column).astype(float) if column.dtype == object else column, None
    except ValueError:
        categories = sorted(set(column[~missing]))
        rank = {category: float(code) for code, category in enumerate(categories)}
        return np.array([rank.get(value, np.nan) for value in column]), categories


def variants(name: str) -> list[str]:
    """The variants of the data set ``name``: ``original`` and the sources that use it."""
    _check_name(name)
    table = _variants()
    return table.variant[table.name == name].tolist()


def load(name: str, variant: str = "original") -> Bunch:
    """Load a data set with the rows and columns that a source used.

    Parameters
    ----------
    name : str
        A name out of `names`.
    variant : str
        ``"original"`` (all rows and columns) or the key of a source, see `variants`.

    Returns
    -------
    Bunch
        ``data`` (n, d) floats (categories as ranks, missing values NaN), ``target`` (n,), ``feature_names``,
        ``target_names``, ``categories`` (feature name -> category names), ``nominal`` (d,) bool, ``part``
        (n,) the source's own division into train and test where files hold one, ``DESCR``.

    Raises
    ------
    ValueError
        If ``name`` or ``variant`` is unknown.
    DataNotAvailable, CorruptDataFile
        If a file is missing and cannot be downloaded, or is not the registered one.
    """
    if variant not in variants(name):
        raise ValueError(f"variant of {name!r} must be one of {', '.join(variants(name))}; got {variant!r}")
    table = _variants()
    row = table[(table.name == name) & (table.variant == variant)].iloc[0]
    general = table.rules[(table.name == "*") & (table.variant == variant)].tolist()
    state = _stack([_file_table(file, name) for file in row.files.split("|")])
    for rule in filter(None, (rule.strip() for rule in ";".join([row.rules, *general]).split(";"))):
        keyword, *arguments = rule.split()
        _RULES[keyword](state, *arguments)
    encoded = [_encode(column) for column in state.columns]
    categories = {n: names for n, (_, names) in zip(state.names, encoded, strict=True) if names is not None}
    target = _as_labels(state.target)
    used = _files_of(name, row.files)
    return Bunch(
        data=np.column_stack([column for column, _ in encoded]),
        target=target,
        feature_names=state.names,
        target_names=np.unique(target),
        categories=categories,
        nominal=np.array(state.nominal) | np.isin(state.names, list(categories)),
        part=state.part.astype(str),
        DESCR=_describe(name, variant, row, general, used),
    )


def _as_labels(target: NDArray) -> NDArray:
    """Integers where all labels are integers, else strings."""
    try:
        return target.astype(float).astype(int) if np.all(target.astype(float) % 1 == 0) else target.astype(str)
    except ValueError:
        return target.astype(str)


def _describe(name: str, variant: str, row: pd.Series, general: list[str], used: list[DataFile]) -> str:
    def lines(attribute: str) -> str:
        return "\n".join(dict.fromkeys(f"  {getattr(item, attribute)}" for item in used))

    rules = "; ".join(filter(None, [row.rules, *general])) or "all rows and columns"
    return (
        f"{name}, variant {variant}: {row.n_rows} rows, {row.n_features} features, {row.n_classes} classes\n"
        f"Rules: {rules}\n{f'Note: {row.note}' + chr(10) if row.note else ''}"
        f"Licence:\n{lines('licence')}\nCitation:\n{lines('citation')}\nPage:\n{lines('page')}\nFiles:\n{lines('url')}\n"
    )


def table() -> pd.DataFrame:
    """All data sets and variants: one row each, with n, d, r, the rules, the licence and the citation."""
    shown = _variants()
    general = shown[shown.name == "*"].set_index("variant").rules
    shown = shown[shown.name != "*"].reset_index(drop=True)
    every = shown.variant.map(general).fillna("")
    used = [_files_of(name, files)[0] for name, files in zip(shown.name, shown.files, strict=True)]
    numbers = shown[["n_rows", "n_features", "n_classes"]].astype(int)
    return pd.concat(
        [
            shown[["name", "variant"]],
            numbers,
            (shown.rules + "; " + every).str.strip("; ").rename("rules"),
            shown.stated_in,
            shown.note,
            pd.Series([item.licence for item in used], name="licence"),
            pd.Series([item.citation for item in used], name="citation"),
        ],
        axis=1,
    )
