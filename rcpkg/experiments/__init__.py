"""The published experiments, recomputed: protocols, a resumable runner, and the verdicts."""

from rcpkg.experiments.protocols import tables
from rcpkg.experiments.runner import run
from rcpkg.experiments.scorecard import results, scorecard, status, tolerance

__all__ = ["results", "run", "scorecard", "status", "tables", "tolerance"]
