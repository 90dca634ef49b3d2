"""The tables of rc2024 and rc2025 with the gradients of the mean log-loss in place of the printed ones (chapter 18)."""

from rcbook.experiments.cells import Grid, Study
from rcbook.experiments.studies.data_and_models_of_rc import DESCENTS
from rcbook.experiments.studies.tables_of_rc2024 import calibrated_cells
from rcbook.experiments.studies.tables_of_rc2025 import small_calibrated_cells

# all rows of rc2024; small sets of rc2025, where all learners meet the same divisions
Study(
    "gd-corrected",
    Grid(rows=calibrated_cells, methods=("GD corrected",), where=lambda cell: cell.arguments["classifier"] != "LR"),
    Grid(rows=small_calibrated_cells, methods=("RC", *DESCENTS)),
)
