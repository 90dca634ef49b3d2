"""What lies behind thesis2007 Tables 6.2 and 6.3 (chapter 9; ours).

"local-curves": the whole cross-validation curve whose minimum Table 6.3 prints, on the same divisions.
"local-test-errors": the test errors of Table 6.2 at the printed sizes, with one thing changed at a time.
"""

import numpy as np

from rcpkg import published
from rcpkg.experiments.local_tables import CHOSEN_ROWS, SLOW, cross_validated, data, path, repetitions
from rcpkg.experiments.local_tables import cells as table_cells
from rcpkg.experiments.protocols import STUDY, Cell, Record
from rcpkg.experiments.runner import cell_seed

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
    excess = errors - errors[:, [errors.mean(axis=0).argmin()]]
    return [
        Record(cell.method, f"{name}|k={k}", float(runs.mean()), float(runs.std(ddof=1)), len(runs))
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
        records.append(
            Record(cell.method, f"share={share}", float(np.mean(errors)), float(np.std(errors, ddof=1)), len(errors))
        )
    return records


def cells(table: str) -> list[Cell]:
    """The cells of one of the two studies."""
    return _curve_cells() if table == "local-curves" else _test_cells()


def _curve_cells() -> list[Cell]:
    return [
        Cell(
            STUDY,
            "local-curves",
            cell.arguments["row"],
            cell.method,
            f"{__name__}:local_curves",
            {**cell.arguments, "divisions": cell_seed(cell)},
            stream=cell.arguments["row"],
            quick=cell.quick,
        )
        for cell in table_cells("6.3")
    ]


def printed_sizes() -> dict[tuple[str, str], int]:
    """Table 6.3 by the row names of Tables 6.1 and 6.2, and method."""
    table = published.table("thesis2007", "6.3")
    names = table.row.str.replace(r" \(\d+ classes\)", "", regex=True).replace(CHOSEN_ROWS)
    return dict(zip(zip(names, table.method), table.value.astype(int), strict=True))


def _test_cells() -> list[Cell]:
    """Slow methods without the smaller share and with the stated normalisation only."""
    sizes = printed_sizes()
    return [
        Cell(
            STUDY,
            "local-test-errors",
            row,
            method,
            f"{__name__}:local_test_errors",
            {
                "row": row,
                "size": sizes[row, method],
                "shares": list(SHARES[1:] if method in SLOW else SHARES),
                "repetitions": min(SUBSAMPLES, repetitions(row, method)),
            },
            setting_value=reference,
            stream=row,
        )
        for row, method in published.table("thesis2007", "6.2")[["row", "method"]].itertuples(index=False)
        for reference in REFERENCES
        if reference == "training rows" or not (method in SLOW or row.endswith("(raw)"))
    ]
