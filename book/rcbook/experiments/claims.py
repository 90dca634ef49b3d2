"""What the texts of four sources say of their results, worked out from the printed cells alone.

Where only figures show a result, as often in wanbia2014, it is worked out from a study of ours in their place.
``data/published_claims.csv`` lists the claims: where each stands, in which words, the quantity that it states or
implies as an expression in the printed columns, how that is summed up, and the value stated.
"""

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rcbook import published
from rcbook._files import data_folder
from rcbook.experiments.cells import STUDY
from rcbook.experiments.scorecard import results

SHORT = {
    "empirical_error_fraction": "",
    "train_error_percent": "_train",
    "test_error_percent": "_test",
    "train_avg_rank": "_train",
    "test_avg_rank": "_test",
    "iterations": "_iter",
    "m_instances": "m",
    "n_variables": "n",
    "p_value_sign_test": "_p",
}


def _name(method: str, metric: str) -> str:
    """``RC_iter``, ``GD_train``, ``reach``, ``m``; ``ML_better`` counts sets on which RC is better than ML."""
    metric = metric.removeprefix("mean_")
    if metric == "reach":
        return "reach"
    return method.split(" vs ")[-1] + SHORT.get(metric, metric.removeprefix("count").replace("count_", "_"))


def _of_study(study: str, rows: list[str]) -> pd.DataFrame:
    """Our numbers, a column ``"method metric"``, one row for each row named (by default all that have been run).

    Where a method has penalties, ``"method 1e-2"`` and so on, ``"method best rmse"`` is the least.
    """
    ours = results(STUDY, study)
    ours["name"] = (ours.method.fillna("") + " " + ours.metric).str.strip()
    frame = ours.pivot(index="row", columns="name", values="value")
    penalised = frame.columns.str.extract(r"^(.*) 1e-?\d+ rmse$", expand=False)
    best = {f"{name} best rmse": frame.loc[:, penalised == name].min(axis=1) for name in penalised.dropna().unique()}
    frame = frame.assign(**best)
    return frame.reindex(rows[0].split(",")) if rows else frame


def columns(tables: str) -> pd.DataFrame:
    """The printed numbers of ``"rc2024:II rc2024:III:20"``, one row for each row named (by default each data set).

    Of thesis2007 a row is a setting, or a data set where a table has none, and a column a method; in
    names "_" stands for a space. ``"study:name"`` are our numbers of a study.
    """
    frames = {}
    for part in tables.split():
        source, number, *rows = part.split(":")
        if source == STUDY:
            frames[number] = _of_study(number, rows)
            continue
        cells = published.table(source, number)
        if source == "thesis2007":
            index = "setting_value" if cells.setting_value.any() else "row"
            wide = cells.pivot(index=index, columns="method", values="value")
            named = rows[0].replace("_", " ").split(",") if rows else cells[index].unique()
            frames[number] = wide.loc[named]
            continue
        cells["row"] = cells.row.where(cells.dataset != "top_size_12", "largest " + cells.row)
        names = rows[0].split(",") if rows else cells.row[cells.row != "avg."].unique()
        cells = cells.assign(name=[_name(*pair) for pair in zip(cells.method, cells.metric, strict=True)])
        values = cells.pivot(index="row", columns="name", values="value")
        spread = cells[cells["std"].notna()].pivot(index="row", columns="name", values="std").add_suffix("_std")
        frames[number] = values.join(spread).loc[names]
    if len(frames) == 1:
        return frames.popitem()[1]
    return pd.concat([frame.set_axis(number + ":" + frame.index) for number, frame in frames.items()])


def _found(frame: pd.DataFrame, quantity: str, how: str) -> str:
    """The quantity as text; ``"0 to 9"`` if the printed digits leave it open. "most": of the rows that differ."""
    if how in ("significant", "p values"):  # rows with a two-sided sign test below 5 %, or as printed: cut, or "<0.001"
        won, lost, *printed = quantity.split(", ")
        p = np.array([binomtest(int(a), int(a + b)).pvalue for a, b in zip(frame[won], frame[lost], strict=True)])
        as_printed = [np.maximum(np.floor(1000 * p), 1) / 1000 == frame[column] for column in printed]
        return str(np.sum(as_printed[0] if printed else p < 0.05))
    if how == "values":
        return ", ".join(f"{value:g}" for part in quantity.split(", ") for value in frame.eval(part))
    if how == "least mean":
        return str(frame[quantity.split(", ")].mean().idxmin())
    if frame.isna().all(axis=None):  # rows of a study that have not been run
        return ""
    value = frame.eval(quantity)
    match how:
        case "most":
            return "yes" if value.sum() > (~value).sum() else "no"
        case "count":
            return str(int(value.sum()))
        case "at most":
            return f"0 to {int(value.sum())}"
        case "rows":
            return ", ".join(value.index[value])
        case "column":
            return ", ".join(f"{number:g}" for number in value)
        case "largest":
            return value.idxmax()
        case "range":
            return f"{value.min():g} to {value.max():g}"
        case "mean":
            return f"{value.mean():.0f}"
    raise ValueError(f"how must be a way to sum up a column of data/published_claims.csv; got {how!r}")


def _outcome(stated: str, found: str) -> str:
    if not found:
        return "not checkable"
    low, _, high = found.partition(" to ")
    if high and " to " not in stated:
        return "possible" if float(low) <= float(stated) <= float(high) else "does not hold"
    if stated.startswith("≤ "):
        return "holds" if float(found) <= float(stated[2:]) else "does not hold"
    return "holds" if found == stated else "does not hold"


def check_claims() -> pd.DataFrame:
    """Each claim of the texts of four sources about their tables, beside what the tables say.

    Returns
    -------
    DataFrame
        ``source, place, claim, stated, found, outcome, erratum``; the outcome is "holds", "possible" (the printed
        digits leave it open), "does not hold" (then ``erratum`` is the label of the entry) or "not checkable".
    """
    claims = pd.read_csv(data_folder() / "published_claims.csv", dtype=str, keep_default_na=False)
    frames = {tables: columns(tables) for tables in set(claims.tables[claims.how != ""])}
    checked = [
        _found(frames[tables], quantity, how) if how else ""
        for tables, quantity, how in claims[["tables", "quantity", "how"]].itertuples(index=False, name=None)
    ]
    claims["found"] = checked
    claims["outcome"] = [_outcome(*pair) for pair in zip(claims.stated, claims.found, strict=True)]
    return claims[["source", "place", "claim", "stated", "found", "outcome", "erratum"]]
