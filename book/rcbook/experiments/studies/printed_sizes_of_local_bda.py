"""What comes out at the neighbourhood sizes that thesis2007 Table 6.3 prints (chapter 20; ours).

"local-curves": the whole cross-validation curve whose minimum Table 6.3 prints, on the same divisions.
"local-test-errors": the test errors of Table 6.2 at the printed sizes, with one thing changed at a time.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from rcbook import published
from rcbook.experiments.cells import STUDY, Cell, Record, Study, cells_of, mean_record
from rcbook.experiments.runner import cell_seed
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies.tables_of_local_bda import (
    CHOSEN_ROWS,
    SLOW,
    cross_validated,
    data,
    least,
    path,
    repetitions,
)

REFERENCES = ("training rows", "all rows", "none")
SHARES = (0.8, 0.9)
SUBSAMPLES = 20  # at most: as many as the tables have divisions


def local_curves(cell: Cell, seed: int) -> list[Record]:
    """Cross-validation error at every size, and its excess over the least one, paired by division.

    ``seed`` is not used: the divisions are those of the tables, whose seed is an argument.
    """
    sizes, errors = cross_validated(
        cell.arguments["row"], cell.method, cell.arguments["repetitions"], cell.arguments["divisions"]
    )
    excess = errors - errors[:, [least(errors)]]
    return [
        mean_record(cell.method, f"{name}|k={k}", runs)
        for name, table in (("cv_error_percent", errors), ("excess_percent", excess))
        for k, runs in zip(sizes, table.T, strict=True)
    ]


def local_test_errors(cell: Cell, seed: int) -> list[Record]:
    """Test error at the printed size k: of all training rows, and of random shares of them.

    Metrics are ``share=1``, ``share=0.9`` and ``share=0.8``; the shares of one run are nested, and those of all methods
    are the same.
    """
    X, y, T, t = data(cell.arguments["row"], cell.setting_value)
    size = cell.arguments["size"]

    def error(rows: np.ndarray) -> float:
        return 100 * float(np.mean(path(cell.method, X[rows], y[rows], T, [size], seed)[:, 0] != t))

    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(y)) for _ in range(cell.arguments["repetitions"])]
    records = [Record(cell.method, "share=1", error(np.arange(len(y))))]
    for share in cell.arguments["shares"]:
        errors = [error(order[: round(share * len(y))]) for order in orders]
        records.append(mean_record(cell.method, f"share={share}", errors))
    return records


def _chosen_sizes() -> Iterator[Cell]:
    """The cells of Table 6.3 by the row names of Tables 6.1 and 6.2, with the seed of their divisions."""
    for cell in cells_of("thesis2007", "6.3"):
        arguments = cell.arguments | {"divisions": cell_seed(cell)}
        yield replace(cell, row=cell.arguments["row"], arguments=arguments)


@lru_cache
def printed_sizes() -> dict[tuple[str, str], int]:
    """Table 6.3 by the row names of Tables 6.1 and 6.2, and method."""
    table = published.table("thesis2007", "6.3")
    names = table.row.str.replace(r" \(\d+ classes\)", "", regex=True).replace(CHOSEN_ROWS)
    return dict(zip(zip(names, table.method), table.value.astype(int), strict=True))


# the whole curves, on the divisions of the tables; slow methods without the smaller share and with the stated
# normalisation only
Study(
    "local-curves",
    rows=_chosen_sizes,
    settings=("",),
    protocol=local_curves,
    stream=lambda cell: cell.row,
)
Study(
    "local-test-errors",
    rows=lambda: published.table("thesis2007", "6.2").row.unique(),
    methods=lambda cell: published.table("thesis2007", "6.2").query("row == @cell.row").method,
    settings=REFERENCES,
    protocol=local_test_errors,
    arguments=lambda cell: {
        "row": cell.row,
        "size": printed_sizes()[cell.row, cell.method],
        "shares": list(SHARES[1:] if cell.method in SLOW else SHARES),
        "repetitions": min(SUBSAMPLES, repetitions(cell.row, cell.method)),
    },
    stream=lambda cell: cell.row,
    where=lambda cell: cell.setting_value == "training rows" or not (cell.method in SLOW or "(raw)" in cell.row),
)


# What the stored studies say ------------------------------------------------------------------------


def curves() -> pd.DataFrame:
    """The stored curves: dataset, method, k, error and excess over the least with their standard errors."""
    study = results(STUDY, "local-curves")
    study[["quantity", "k"]] = study["metric"].str.extract(r"(\w+)_percent\|k=(\d+)")
    keys = ["dataset", "method", "k"]
    wide = study.astype({"k": int}).pivot(index=keys, columns="quantity", values=["value", "value_se"])
    wide.columns = [{"cv_error": "error"}.get(name, name) + "_se" * (kind == "value_se") for kind, name in wide.columns]
    return wide.reset_index()


def flatness() -> pd.DataFrame:
    """How many sizes are within two paired standard errors of the least error, and whether the printed one is.

    Columns: dataset, method, size (the best), printed_size, tried, near, excess of the printed size with excess_se
    (missing where it was not tried), and printed_near.
    """
    sizes = printed_sizes()
    rows = []
    for (dataset, method), curve in curves().groupby(["dataset", "method"], sort=False):
        curve = curve.set_index("k")
        near = curve.excess <= 2 * curve.excess_se
        printed = sizes[dataset, method]
        at_printed = curve.reindex([printed]).iloc[0]
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "size": int(curve.excess_se.idxmin()),  # zero at the best size, whatever ties with it
                "printed_size": printed,
                "tried": len(curve),
                "near": int(near.sum()),
                "excess": at_printed.excess,
                "excess_se": at_printed.excess_se,
                "printed_near": bool(near.get(printed, False)),
            }
        )
    return pd.DataFrame(rows)


def at_printed_sizes() -> pd.DataFrame:
    """Table 6.1 beside our cross-validation error (error, error_se) at the printed size.

    z is their distance in standard errors of the difference, both being means over a hundred divisions.
    """
    keys = ["dataset", "method"]
    table = published.table("thesis2007", "6.1").drop(columns="dataset")
    table = table.rename(columns={"row": "dataset", "value": "printed"})[[*keys, "printed"]]
    found = table.merge(flatness()[[*keys, "size", "printed_size"]])
    found = found.merge(curves(), left_on=[*keys, "printed_size"], right_on=[*keys, "k"])
    return found.assign(z=(found.printed - found.error) / (np.sqrt(2) * found.error_se))


def shares() -> pd.DataFrame:
    """Printed test errors beside those at the printed size: of all training rows, and of random shares of them.

    Columns: dataset, reference (of the normalisation), method, printed, all_rows, and for each share its mean, sd and
    z, the distance of the printed error from the mean in standard deviations of one further draw.
    """
    study = results(STUDY, "local-test-errors")
    keys = ["dataset", "setting_value", "method"]
    wide = study.pivot(index=keys, columns="metric", values=["value", "std", "n_runs"])
    table = published.table("thesis2007", "6.2").set_index(["row", "method"])["value"]
    found = wide.index.to_frame(index=False).rename(columns={"setting_value": "reference"})
    found["printed"] = [table[row, method] for row, _, method in wide.index]
    found["all_rows"] = wide["value", "share=1"].to_numpy()
    for share in SHARES:
        mean, sd, n = (wide[column, f"share={share}"].to_numpy() for column in ("value", "std", "n_runs"))
        found[f"mean_{share}"], found[f"sd_{share}"] = mean, sd
        found[f"z_{share}"] = (found["printed"] - mean) / (sd * np.sqrt(1 + 1 / n))
    return found
