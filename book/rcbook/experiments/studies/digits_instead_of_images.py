"""Digits in place of the network features of images, which were not published (chapter 17).

"digits-instead-of-images": the protocols of rc2024 and rc2025 on three sets of digits. "digits-curves": training errors
on one of them, over as many iterations as rc2024 Figures 1-4 show.
"""

from collections.abc import Iterator
from itertools import product

from rcbook.experiments.cells import Cell, Grid, Record, Study
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


def _grids() -> Iterator[Grid]:
    """The protocols of both papers on digits in place of the network features of images."""
    for name, classifier, closed_form in product(DIGITS, ("NB", "QDA", "LR"), ("ML", "MAP")):
        variant = "rc2024-nb" if classifier == "NB" else "rc2024"
        models = {"name": name, "variant": variant, "classifier": classifier, "closed_form": closed_form}
        for rows, protocol, number in (
            ("all rows", rc2024_all_rows, {}),
            ("splits", rc2025_splits, {"repetitions": PRINTED_REPETITIONS}),
        ):
            divided = classifier != "LR" and closed_form == "ML"
            if name not in TOO_LARGE.get((classifier, rows), ()) and (divided or rows == "all rows"):
                yield Grid(
                    rows=(name,),
                    methods=(closed_form, "RC", "GD", "DFE"),
                    settings=(f"{classifier} {closed_form} {rows}",),
                    protocol=protocol,
                    arguments=models | number,
                    stream=name,
                )


Study("digits-instead-of-images", *_grids())


Study(
    "digits-curves",
    rows=calibrated_cells,
    methods=("RC", "GD"),
    protocol=training_curve,
    where=lambda cell: cell.stream == "optdigits",
)
