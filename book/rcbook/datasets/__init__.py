"""The public data sets of the sources: found or downloaded, checked by sha256, cut to what each source used.

``data/datasets.csv`` registers the files, ``data/variants.csv`` the rows and columns of each source. The data
themselves are not part of the package: a file is looked for in the folder named by the environment variable
``RCPKG_DATA``, then in the user's cache, then downloaded.
"""

import re
from dataclasses import fields
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from rcbook._files import data_folder
from rcbook.datasets.files import (
    CorruptDataFile,
    DataFile,
    DataNotAvailable,
    cache_folder,
    check_name,
    content_of,
    download,
    fetch,
    names,
    read_csv,
    registry,
)
from rcbook.datasets.formats import PARSERS, Raw
from rcbook.datasets.rules import RULES, Table, encode, stack

__all__ = [
    "CorruptDataFile",
    "DataFile",
    "DataNotAvailable",
    "cache_folder",
    "download",
    "fetch",
    "load",
    "names",
    "registry",
    "table",
    "variants",
]


@lru_cache
def _variants() -> pd.DataFrame:
    return read_csv(data_folder() / "variants.csv")


def _column_index(spec: str, width: int) -> int:
    """Position of the class column: ``first``, ``last``, or a number counted from 1."""
    return {"first": 0, "last": width - 1}[spec] if spec in ("first", "last") else int(spec) - 1


def _file_table(file: str, name: str) -> Table:
    """One file, or several joined side by side (``a+b``)."""
    items = [next(i for i in registry() if i.file == f"{name}/{part}") for part in file.split("+")]
    raws = [PARSERS[item.parser](content_of(item), item) for item in items]
    raw = Raw(*([entry for raw in raws for entry in getattr(raw, field.name)] for field in fields(Raw)))
    target = raw.columns[at := _column_index(items[0].class_column, len(raw.columns))]
    ignored = {at, *(int(j) - 1 for j in items[0].ignore.split())}
    if target.dtype != object:
        target = target.astype(int).astype(str).astype(object)
    table = Table(raw.columns, raw.names, raw.nominal, target, np.full(len(target), items[0].part, dtype=object))
    table.features(j for j in range(len(raw.columns)) if j not in ignored)
    return table


def _files_of(name: str, files: str) -> list[DataFile]:
    wanted = {f"{name}/{file}" for file in re.split(r"[|+]", files)}
    return [item for item in registry() if item.file in wanted]


def variants(name: str) -> list[str]:
    """The variants of the data set ``name``: ``original`` and the sources that use it."""
    check_name(name)
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
    state = stack([_file_table(file, name) for file in row.files.split("|")])
    for rule in filter(None, (rule.strip() for rule in ";".join([row.rules, *general]).split(";"))):
        keyword, *arguments = rule.split()
        RULES[keyword](state, *arguments)
    encoded = [encode(column) for column in state.columns]
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
    return _table().copy()


@lru_cache
def _table() -> pd.DataFrame:
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
