"""The published experiments, recomputed: a register of cells, a resumable runner, and the verdicts.

What is computed, and how, is in ``rcbook.experiments.studies``: a module for each group of tables and for each study.
"""

from rcbook.experiments.cells import tables
from rcbook.experiments.claims import check_claims
from rcbook.experiments.runner import run
from rcbook.experiments.scorecard import exact_rows, results, scorecard, status, tolerance

__all__ = ["check_claims", "exact_rows", "results", "run", "scorecard", "status", "tables", "tolerance"]
