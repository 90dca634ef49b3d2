"""What the pages of the book print of stored results: files of ``data/pages``, which a build only reads.

They are made anew, after results have changed, by ``python -m rcbook.pages``; a test compares them with the results.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from rcbook._files import data_folder, results_folder

NAMES = {
    "reproduced": "reproduced",
    "statistically consistent": "consistent",
    "differs: explained": "explained",
    "differs: unexplained": "unexplained",
    "printed value impossible": "impossible",
    "not attempted": "not_attempted",
}
TEXTS = ("source", "table", "row", "dataset", "method", "setting_name", "setting_value", "metric", "value_printed")


def folder() -> Path:
    """Where the files lie."""
    return data_folder() / "pages"


@cache
def table(name: str) -> pd.DataFrame:
    """One of the stored tables ``scorecard``, ``power`` and ``claims``; texts are never missing, numbers may be."""
    texts = str if name == "claims" else dict.fromkeys(TEXTS, str)
    frame = pd.read_csv(folder() / f"{name}.csv", dtype=texts, keep_default_na=False, na_values=[""])
    texts = frame.columns[frame.dtypes.map(pd.api.types.is_string_dtype)]
    return frame.assign(**frame[texts].fillna(""))


@cache
def record(name: str) -> dict[str, Any]:
    """One of the stored records ``numbers`` and ``moving_pictures``."""
    return json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))


@cache
def _worth(results: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Of a folder of results what each verdict is worth, and whether the metrics of a table fit jointly."""
    from rcbook.experiments.power import power, table_tests

    card = power()
    return card, table_tests(card).fits


def scorecard_table() -> pd.DataFrame:
    """Every printed number, its verdict, and what the verdict is worth."""
    return _worth(results_folder())[0]


def power_table() -> pd.DataFrame:
    """For each compared table what its verdicts are worth, and whether they fit jointly."""
    from rcbook.experiments.power import WEIGHED, power_by_table

    cells, as_wholes = _worth(results_folder())
    decided = cells[cells.decidable & (cells.weighed != "")]
    counts = pd.crosstab([decided.source, decided.table], decided.weighed).reindex(columns=WEIGHED)
    fits = as_wholes.groupby(level=["source", "table"]).all().map({True: "yes", False: "no"})
    by_table = power_by_table(cells)
    jointly = fits.reindex(by_table.index).fillna("").rename("jointly")
    return by_table.join(counts.reindex(by_table.index).fillna(0).astype(int)).join(jointly).reset_index()


def claims_table() -> pd.DataFrame:
    """What the texts say of their tables, and what the tables give."""
    from rcbook.experiments import check_claims

    return check_claims()


def numbers() -> dict[str, str]:
    """What a page names as ``{{ name }}``: numbers of the findings and of the scorecard, as words for the text."""
    from rcbook import findings, published

    card, as_wholes = _worth(results_folder())
    verdicts = card.verdict.value_counts()
    found = {name: int(verdicts.get(verdict, 0)) for verdict, name in NAMES.items()}
    found |= {"printed": len(card), "tables": len(published.index())}
    found["compared"] = found["printed"] - found["not_attempted"] - found["impossible"]
    decidable = card[card.decidable]
    found["decidable"] = len(decidable)
    found["decidable_agree"] = int(decidable.verdict.isin(["reproduced", "statistically consistent"]).sum())
    found["decidable_unexplained"] = int((decidable.weighed == "differs: unexplained").sum())
    found |= {"wholes": len(as_wholes), "wholes_fit": int(as_wholes.sum())}
    return findings.numbers() | {name: f"{number:,}" if number else "none" for name, number in found.items()}


def moving_pictures() -> dict[str, Any]:
    """What the pictures with sliders are drawn from."""
    from rcbook.moving_pictures import PICTURES

    return {name: make() for name, make in PICTURES.items()}


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "scorecard": scorecard_table,
    "power": power_table,
    "claims": claims_table,
}
RECORDS: dict[str, Callable[[], dict[str, Any]]] = {"numbers": numbers, "moving_pictures": moving_pictures}


def write() -> None:
    """Compute every file anew."""
    folder().mkdir(exist_ok=True)
    for name, make in TABLES.items():
        make().to_csv(folder() / f"{name}.csv", index=False, lineterminator="\n")
    for name, make in RECORDS.items():
        text = json.dumps(make(), indent=1 if name == "numbers" else None, ensure_ascii=False)
        (folder() / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
