"""Does the soft error fall? Training losses of RC and of gradient descent on all rows, as in rc2024 (chapter 18)."""

import numpy as np

from rcbook.experiments.cells import Cell, Record, Study
from rcbook.experiments.studies.data_and_models_of_rc import DESCENTS
from rcbook.experiments.studies.tables_of_rc2024 import all_rows_history, calibrated_cells
from rcpkg.base import Array

RISE = 1e-12  # what counts as one; smaller changes are rounding


def _rises(values: Array) -> int:
    """Number of updates that raise a loss; one that is infinite before and after does not rise."""
    with np.errstate(invalid="ignore"):
        return int(np.sum(values[1:] > values[:-1] + RISE))


def training_history(cell: Cell, seed: int) -> list[Record]:
    """Training losses of a learner on all rows, as in rc2024: at the start, the least, at the end; updates that raise.

    Metrics are ``<loss>_<what>`` for error, soft_error and log_loss, and the number of ``updates``.
    """
    history = all_rows_history(cell, cell.method)
    records = [Record(cell.method, "updates", len(history) - 1)]
    for name in ("error", "soft_error", "log_loss"):
        values = history[name].to_numpy()
        summary = {
            "first": float(values[0]),
            "least": float(values.min()),
            "last": float(values[-1]),
            "rises": _rises(values),
        }
        records += [Record(cell.method, f"{name}_{what}", value) for what, value in summary.items()]
    return records


Study(
    "training-histories",
    rows=calibrated_cells,
    methods=lambda cell: ("RC", *(DESCENTS if cell.arguments["classifier"] != "LR" else ("GD",))),
    protocol=training_history,
)
