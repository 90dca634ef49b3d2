"""The published experiments, recomputed: protocols, a resumable runner, and the verdicts."""

from rcpkg.experiments.protocols import tables
from rcpkg.experiments.runner import run
from rcpkg.experiments.scorecard import exact_rows, matches, results, scorecard, status, tolerance

__all__ = ["exact_rows", "matches", "results", "run", "scorecard", "status", "tables", "tolerance"]
