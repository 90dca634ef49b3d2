"""The tables of rc2024 and rc2025 with the gradients of the mean log-loss in place of the printed ones (chapter 17)."""

from collections.abc import Iterator

from rcbook.experiments.cells import Cell
from rcbook.experiments.studies.data_and_models_of_rc import DESCENTS
from rcbook.experiments.studies.tables_of_rc2024 import calibrated_cells
from rcbook.experiments.studies.tables_of_rc2025 import small_calibrated_cells


def cells(study: str = "gd-corrected") -> Iterator[Cell]:
    """All rows of rc2024; small sets of rc2025, where all learners meet the same divisions."""
    for cell in calibrated_cells():
        if cell.arguments["classifier"] != "LR":
            yield cell.in_study(study, method="GD corrected")
    for cell in small_calibrated_cells():
        for method in ("RC", *DESCENTS):
            yield cell.in_study(study, method=method)
