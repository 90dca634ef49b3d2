"""The result tables printed in the sources, in tidy form: one row per printed number."""

from functools import lru_cache

import numpy as np
import pandas as pd

from rcbook._files import data_folder

NUMERIC = ["n_instances", "n_features", "value", "std"]
KEY = ["source", "table", "row", "dataset", "method", "setting_name", "setting_value", "metric"]


@lru_cache
def _index() -> pd.DataFrame:
    return pd.read_csv(data_folder() / "published" / "index.csv", dtype={"table": str})


@lru_cache
def _cells(file: str) -> pd.DataFrame:
    cells = pd.read_csv(data_folder() / "published" / file, dtype=str, keep_default_na=False)
    cells[NUMERIC] = cells[NUMERIC].apply(pd.to_numeric)
    return cells


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
    return _cells(found.file.item()).copy()


def tables() -> pd.DataFrame:
    """All printed tables one below the other."""
    return pd.concat([table(row.source, row.table) for row in _index().itertuples()], ignore_index=True)


def figures() -> pd.DataFrame:
    """The figures of the five sources, panel by panel where these differ: source, figure, what it shows, ``label`` of
    the figure of the book that shows the same, and a ``note`` on how it differs."""
    return pd.read_csv(data_folder() / "published_figures.csv", dtype=str, keep_default_na=False)


def wide(source: str, number: str, metric: str) -> pd.DataFrame:
    """One metric of a printed table as printed: a row for each data set, a column for each method; no summary rows.

    Parameters
    ----------
    source, number : str
        Key of the source and number of the table, as in `table`.
    metric : str
        One of the metrics that the table prints.

    Raises
    ------
    ValueError
        If there is no such table, or it does not print this metric.
    """
    cells = table(source, number)
    metrics = cells.metric.unique()
    if metric not in metrics:
        raise ValueError(f"metric of {source}:{number} must be one of {', '.join(metrics)}; got {metric!r}")
    cells = cells[(cells.metric == metric) & ~cells.dataset.str.startswith("(all")]
    values = cells.pivot(index="row", columns="method", values="value")
    return values.loc[cells.row.unique(), cells.method.unique()]


def half_unit(value_printed: pd.Series) -> pd.Series:
    """Half of the last digit of each ``value_printed``: 0.0005 for ``0.250``, 0.5 for ``04 ± 01``, NaN for a dash."""
    number = value_printed.str.extract(r"^\s*(\d*)(?:\.(\d*))?")
    decimals = number[1].fillna("").str.len()
    return (0.5 * 10.0**-decimals).where(number[0].fillna("").str.len() + decimals > 0)


# What the printed summaries can be, given the printed cells ----------------------------------------


def _mean_bounds(cells: pd.DataFrame) -> tuple[float, float]:
    """Lowest and highest mean of numbers that were rounded to the printed digits; dashes are left out."""
    printed = cells[cells.value.notna()]
    half = half_unit(printed.value_printed).mean() if (printed.value % 1 != 0).any() else 0.0
    return printed.value.mean() - half, printed.value.mean() + half


def _order(a: float, b: float) -> tuple[int, int]:
    """Lowest and highest possible sign of x - y when only the whole parts a of x and b of y are known."""
    return (-1, 1) if a == b else (int(a > b) - int(a < b),) * 2


@lru_cache
def _errors(source: str, number: str, split: str) -> pd.DataFrame:
    return wide(source, number, f"{split}_error_percent")


def _rank_bounds(errors: pd.DataFrame, method: str) -> tuple[float, float]:
    """Lowest and highest mean rank of a method (1 best, ties share) that the printed whole per cents allow."""
    signs = [
        [_order(row[method], row[other]) for other in errors.columns if other != method] for _, row in errors.iterrows()
    ]
    low, high = (np.mean([sum((1 + sign[end]) / 2 for sign in row) for row in signs]) for end in (0, 1))
    return 1 + low, 1 + high


def _count_bounds(errors: pd.DataFrame, pair: str, outcome: str) -> tuple[int, int]:
    """Lowest and highest number of data sets on which the first method of a pair is better, equal or worse."""
    first, second = pair.split(" vs ")
    sign = {"better": -1, "equal": 0, "worse": 1}[outcome]
    bounds = [_order(a, b) for a, b in zip(errors[first], errors[second], strict=True)]
    return sum(b == (sign, sign) for b in bounds), sum(b[0] <= sign <= b[1] for b in bounds)


def summaries() -> pd.DataFrame:
    """Each printed summary of rc2024 and rc2025 with the lowest and highest value its own cells allow.

    The means of rc2024 follow from the printed cells up to their rounding, the ranks and counts of rc2025 up to
    its cut of errors to whole per cents. ``possible`` is False where no table of errors that prints as this one
    does can have the printed summary.

    Returns
    -------
    DataFrame
        ``source, table, row, method, setting_value, metric, value, lowest, highest, possible``.
    """
    found = []
    for source, number in _index()[["source", "table"]].itertuples(index=False):
        if source not in ("rc2024", "rc2025"):
            continue
        cells = table(source, number)
        for cell in cells[cells.value.notna() & cells.dataset.isin(["(all)", "(all 20)"])].itertuples():
            if source == "rc2024":
                same = cells[(cells.metric == cell.metric.removeprefix("mean_")) & (cells.method == cell.method)]
                bounds = _mean_bounds(same)
            elif cell.metric.endswith("_avg_rank"):
                bounds = _rank_bounds(_errors(source, number, cell.metric.split("_")[0]), cell.method)
            else:
                errors = _errors(source, str(int(number) - 1), cell.row.lower().replace("ing", ""))
                bounds = _count_bounds(errors, cell.method, cell.metric.removeprefix("count_"))
            slack = half_unit(pd.Series([cell.value_printed])).item() + 1e-9
            found.append(
                {
                    **{name: getattr(cell, name) for name in KEY},
                    "value": cell.value,
                    "lowest": bounds[0],
                    "highest": bounds[1],
                    "possible": bounds[0] - slack <= cell.value <= bounds[1] + slack,
                }
            )
    return pd.DataFrame(found)
