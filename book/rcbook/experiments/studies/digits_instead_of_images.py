"""Digits in place of the network features of images, which were not published (chapter 17).

"digits-instead-of-images": the protocols of rc2024 and rc2025 on three sets of digits. "digits-curves": training errors
on one of them, over as many iterations as rc2024 Figures 1-4 show.
"""

from collections.abc import Iterator
from itertools import product

from rcbook.experiments.cells import STUDY, Cell, Record, name_of
from rcbook.experiments.studies.tables_of_rc2024 import all_rows_history, calibrated_cells, rc2024_all_rows
from rcbook.experiments.studies.tables_of_rc2025 import PRINTED_REPETITIONS, rc2025_splits

CURVE_ITERATIONS = 128  # of rc2024 Figures 1-4
DIGITS = ("pendigits", "usps", "mnist")
TOO_LARGE = {  # passes over hundreds of features in thousands of rows, dozens of times
    ("QDA", "all rows"): {"mnist"},
    ("QDA", "splits"): {"usps", "mnist"},
    ("NB", "splits"): {"mnist"},
}


def training_curve(cell: Cell, seed: int) -> list[Record]:
    """Training error of iterations 1 to 128, as in rc2024 Figures 1-3; metrics are ``error|<iteration>``."""
    errors = all_rows_history(cell, cell.method, CURVE_ITERATIONS).error
    return [Record(cell.method, f"error|{t}", float(error)) for t, error in enumerate(errors, start=1)]


def cells(study: str) -> Iterator[Cell]:
    """The cells of one of the two studies."""
    return {"digits-instead-of-images": _table_cells, "digits-curves": _curve_cells}[study](study)


def _table_cells(study: str) -> Iterator[Cell]:
    """The protocols of both papers on digits in place of the network features of images."""
    for name, classifier, closed_form in product(DIGITS, ("NB", "QDA", "LR"), ("ML", "MAP")):
        protocol_of = {"all rows": rc2024_all_rows}
        if classifier != "LR" and closed_form == "ML":
            protocol_of["splits"] = rc2025_splits
        for rows, protocol in protocol_of.items():
            if name in TOO_LARGE.get((classifier, rows), ()):
                continue
            arguments = {"name": name, "variant": "rc2024-nb" if classifier == "NB" else "rc2024"}
            arguments |= {"classifier": classifier, "closed_form": closed_form}
            for method in (closed_form, "RC", "GD", "DFE"):
                yield Cell(
                    STUDY,
                    study,
                    name,
                    method,
                    name_of(protocol),
                    arguments | ({"repetitions": PRINTED_REPETITIONS} if rows == "splits" else {}),
                    setting_value=f"{classifier} {closed_form} {rows}",
                    stream=name,
                )


def _curve_cells(study: str) -> Iterator[Cell]:
    for cell in calibrated_cells():
        if cell.stream == "optdigits":
            for method in ("RC", "GD"):
                yield cell.in_study(study, method=method, protocol=name_of(training_curve))
