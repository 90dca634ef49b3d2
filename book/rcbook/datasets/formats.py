"""The formats of the files: from bytes to columns of strings or numbers."""

import bz2
import csv
import gzip
import io
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rcbook.datasets.files import CorruptDataFile, DataFile

with suppress(ModuleNotFoundError):  # in a browser, where no such file is read
    import lzma


@dataclass
class Raw:
    """Columns of one file as strings or numbers, the class among them; ``nominal``: declared categories."""

    columns: list[NDArray]
    names: list[str]
    nominal: list[bool]


def _rows_to_raw(
    rows: list[list[str]], item: DataFile, names: list[str] | None = None, nominal: list[bool] | None = None
) -> Raw:
    width = int(item.fields) if item.fields else len(rows[0])
    kept = [row[:width] for row in rows if len(row) >= width]
    columns = [np.array([value.strip() for value in column], dtype=object) for column in zip(*kept, strict=True)]
    return Raw(columns, names or [f"x{j + 1}" for j in range(width)], nominal or [False] * width)


def _parse_delimited(content: bytes, item: DataFile) -> Raw:
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


def _parse_arff(content: bytes, item: DataFile) -> Raw:
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


def _matrix_to_raw(matrix: NDArray) -> Raw:
    d = matrix.shape[1]
    return Raw(list(matrix.T), [f"x{j + 1}" for j in range(d)], [False] * d)


def _parse_numbers(content: bytes, item: DataFile) -> Raw:
    """Numbers between commas and nothing else, in many rows."""
    return _matrix_to_raw(pd.read_csv(io.BytesIO(content), header=None).to_numpy(float))


def _parse_idx(content: bytes, item: DataFile) -> Raw:
    """The idx format of the MNIST files: unsigned bytes, the shape in the head."""
    content = gzip.decompress(content)
    n_axes = content[3]
    shape = struct.unpack(f">{n_axes}I", content[4 : 4 + 4 * n_axes])
    return _matrix_to_raw(np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape[0], -1).astype(float))


def _parse_rdata(content: bytes, item: DataFile) -> Raw:
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


PARSERS: dict[str, Callable[[bytes, DataFile], Raw]] = {
    "csv": _parse_delimited,
    "semicolon": _parse_delimited,
    "blank": _parse_delimited,
    "tab": _parse_delimited,
    "numbers": _parse_numbers,
    "arff": _parse_arff,
    "idx": _parse_idx,
    "rdata": _parse_rdata,
}
