"""What the learners of the study of gaps need of memory: writes data/results/benchmark_gaps_memory.csv.

Fixed before anything was measured: of each arm the two sets of 2,000 training rows that are widest or have most classes
(`SETS`), one division of each, all learners but conformant learning. A learner has a process of its own on one thread,
which makes the division, gives back what it no longer needs, notes its resident set, and then fills in, tunes, fits and
predicts the rows of all kinds of gaps, in every way in which gaps reach the learner. ``megabytes`` is how far the
resident set rises above that note. Linux only: the kernel is told to forget the peak before.

To regenerate (needs RCPKG_DATA):

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=.:book python tests/benchmarks/compare_memory_with_gaps.py \
        data/results
"""

import ctypes
import gc
import json
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from rcbook.experiments.gappy_divisions import CATEGORIES, NUMBERS, division
from rcbook.experiments.runner import commit, environment
from rcbook.experiments.studies import gaps
from rcbook.experiments.studies.learners_with_gaps import CONFORMANT, LEARNERS, OF_ARM

SETS = {NUMBERS: ("spambase", "letter"), CATEGORIES: ("mushroom", "connect_4")}
OTHER = {NUMBERS: CATEGORIES, CATEGORIES: NUMBERS}
SEED = 0


def resident(what: str) -> float:
    """A line of the kernel's account of this process, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def one(arm: str, name: str, method: str) -> float:
    """A measurement, in this process."""
    of_division = arm, name, gaps.ASIDE[arm][name], SEED, 0.0
    division(*of_division)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    with warnings.catch_warnings(action="ignore"):
        for _ in gaps.compared(method, SEED, *of_division):
            pass
    return resident("VmHWM") - before


def apart(arm: str, name: str, method: str) -> dict[str, Any]:
    """A measurement, in a process of its own."""
    command = [sys.executable, __file__, "--one", arm, name, method]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {"arm": arm, "data set": name, "learner": method, "megabytes": json.loads(out.splitlines()[-1])}


def main(results: Path) -> None:
    """Write the table."""
    jobs = [
        (arm, name, method)
        for arm, names in SETS.items()
        for name in names
        for method in LEARNERS
        if method not in CONFORMANT and not method.startswith(OF_ARM[OTHER[arm]])
    ]
    with ThreadPoolExecutor(2) as pool:
        found = pd.DataFrame(pool.map(apart, *zip(*jobs, strict=True)))
    found = found.assign(commit=str(commit()), environment=str(environment()))
    found.to_csv(results / "benchmark_gaps_memory.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(one(*sys.argv[2:])))
    else:
        main(Path(sys.argv[1]))
