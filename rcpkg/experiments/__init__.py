"""The published experiments, recomputed: protocols, a resumable runner, and the verdicts."""

from rcpkg.experiments.runner import run
from rcpkg.experiments.scorecard import results, scorecard, status, tolerance

__all__ = ["results", "run", "scorecard", "status", "tolerance"]
