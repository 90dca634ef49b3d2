"""The result tables printed in the sources, in tidy form: one row per printed number."""

from functools import lru_cache

import pandas as pd

from rcpkg._files import data_folder

NUMERIC = ["n_instances", "n_features", "value", "std"]


@lru_cache
def _index() -> pd.DataFrame:
    return pd.read_csv(data_folder() / "published" / "index.csv", dtype={"table": str})


def index() -> pd.DataFrame:
    """The 49 tables: source, table, caption, file, n_cells."""
    return _index().copy()


def table(source: str, table: str) -> pd.DataFrame:
    """One printed table, one row per number.

    Parameters
    ----------
    source : str
        Key of the source, such as ``"thesis2007"``.
    table : str
        Number of the table as printed; a string, since "5.1" and "5.10" differ.

    Returns
    -------
    DataFrame
        ``row``, ``dataset``, ``n_instances``, ``n_features``, ``method``, ``setting_name``, ``setting_value``
        ``metric``, ``value`` (NaN where a dash is printed), ``std``, ``value_printed``, ``note``.

    Raises
    ------
    ValueError
        If there is no such table.
    """
    known = _index()
    found = known[(known.source == source) & (known.table == table)]
    if found.empty:
        if source not in set(known.source):
            raise ValueError(f"source must be one of {', '.join(known.source.unique())}; got {source!r}")
        tables = ", ".join(known.table[known.source == source])
        raise ValueError(f"table of {source!r} must be one of {tables}; got {table!r}")
    cells = pd.read_csv(data_folder() / "published" / found.file.item(), dtype=str, keep_default_na=False)
    cells[NUMERIC] = cells[NUMERIC].apply(pd.to_numeric)
    return cells


def tables() -> pd.DataFrame:
    """All printed tables one below the other."""
    return pd.concat([table(row.source, row.table) for row in _index().itertuples()], ignore_index=True)


def half_unit(value_printed: pd.Series) -> pd.Series:
    """Half of the last printed digit: 0.0005 for ``0.250``, 0.5 for ``04 ± 01``, NaN for a dash."""
    number = value_printed.str.extract(r"^\s*(\d*)(?:\.(\d*))?")
    decimals = number[1].fillna("").str.len()
    return (0.5 * 10.0**-decimals).where(number[0].fillna("").str.len() + decimals > 0)
