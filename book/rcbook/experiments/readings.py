"""Stored studies as tables: what their names and settings hold, and printed numbers under other readings of a protocol.

``data/readings.csv`` states each reading with what had been seen of its columns before it was run; the setting of its
cells is ``"table|reading"``, or ``"table|setting|reading"`` where a table has settings of its own.
"""

from collections.abc import Callable, Sequence

import pandas as pd

from rcbook import published
from rcbook._files import data_folder
from rcbook.experiments.cells import STUDY
from rcbook.experiments.scorecard import judged_beside, results

SETTING = r"(?P<table>[^|]+)\|(?:(?P<setting_value>[^|]+)\|)?(?P<reading>[^|]+)"
NAMES = ("row", "setting_value", "method", "metric")


def tidy(study: str, **parse: str) -> pd.DataFrame:
    """A stored study: its names and settings, each metric, its standard error and the runs.

    Parameters
    ----------
    study : str
        Its name.
    **parse : str
        For ``row``, ``setting_value``, ``method`` or ``metric`` what stands in its place: a name, or a regular
        expression with a named group for each of several columns. Of these, and of settings, methods and metrics,
        columns of nothing but numbers are numbers.
    """
    found = results(STUDY, study)
    columns = {}
    for name in NAMES:
        new = parse.get(name, name)
        part = found[name].str.extract(new if "(" in new else f"(?P<{new}>.*)")
        for column, values in part.items():
            numbers = pd.to_numeric(values, errors="coerce")
            columns[column] = numbers if numbers.notna().all() and new != parse.get("row") else values
    return pd.DataFrame(columns).join(found[["value", "value_se", "n_runs"]])


def stated() -> pd.DataFrame:
    """The readings of ``data/readings.csv``, indexed by name."""
    return pd.read_csv(data_folder() / "readings.csv", dtype=str, keep_default_na=False).set_index("reading")


def by_setting(study: str, pattern: str = SETTING) -> pd.DataFrame:
    """A stored study with its table, setting and reading in columns of their own, as far as its settings have them."""
    ours = results(STUDY, study)
    return ours.assign(**ours.setting_value.str.extract(pattern).dropna(axis=1, how="all"))


def judged_readings(
    study: str,
    sources: Sequence[str],
    by: Sequence[str] = ("row", "method", "metric"),
    pattern: str = SETTING,
    chosen: Callable[[str, str, pd.DataFrame], pd.DataFrame] = lambda reading, table, part: part,
) -> pd.DataFrame:
    """Each printed number of the columns concerned under each reading that has been run, by the scorecard's tolerance.

    Parameters
    ----------
    study : str
        Name of the study whose settings are the tables and readings.
    sources : sequence of str
        Where the tables are printed: of each the first source that has one of its number.
    by : sequence of str
        What tells the numbers of a table apart.
    pattern : str
        What a setting is.
    chosen : callable, optional
        Of a reading, a table and its numbers: those that count.

    Returns
    -------
    DataFrame
        The printed numbers beside ours, whether they agree under the reading (``agrees``) and as stated (``agreed``).
    """
    ours = by_setting(study, pattern)
    ours = ours.assign(reading=ours.get("reading", ""))
    parts = []
    for (reading, table), part in ours.groupby(["reading", "table"], sort=False):
        parts.append(judged_beside(_printing(table, sources), table, chosen(reading, table, part), by=by))
    return pd.concat(parts, ignore_index=True)


def _printing(table: str, sources: Sequence[str]) -> str:
    known = published.index()
    return next(source for source in sources if table in set(known.table[known.source == source]))
