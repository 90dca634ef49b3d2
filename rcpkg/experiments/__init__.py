"""The published experiments, recomputed: protocols, a resumable runner, and the verdicts."""

from rcpkg.experiments.claims import check_claims
from rcpkg.experiments.protocols import tables
from rcpkg.experiments.runner import run
from rcpkg.experiments.scorecard import exact_rows, matches, results, scorecard, status, tolerance

__all__ = ["check_claims", "exact_rows", "matches", "results", "run", "scorecard", "status", "tables", "tolerance"]
