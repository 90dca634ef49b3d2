"""What the learners of the study of gaps need of memory (chapter 13).

Fixed before anything was measured: of each arm the two sets of 2,000 training rows that are widest or have most classes
(`SETS`), one division of each, all learners but conformant learning. A learner has a process of its own on one thread,
which makes the division, gives back what it no longer needs, notes its resident set, and then fills in, tunes, fits and
predicts the rows of all kinds of gaps, in every way in which gaps reach the learner. ``megabytes`` is how far the
resident set rises above that note. Linux only: the kernel is told to forget the peak before.

"""

import ctypes
import gc
import warnings
from pathlib import Path

from rcbook.experiments.cells import Cell, Grid, Row, Study
from rcbook.experiments.gappy_divisions import CATEGORIES, NUMBERS, division
from rcbook.experiments.measuring import apart
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


def measure(cell: Cell, seed: int) -> list[Row]:
    """A measurement, in a process of its own."""
    found = apart(one, cell.setting_value, cell.row, cell.method)
    return [{"arm": cell.setting_value, "data set": cell.row, "learner": cell.method, "megabytes": found}]


Study(
    "memory-with-gaps",
    *(
        Grid(
            rows=names,
            methods=[name for name in LEARNERS if name not in CONFORMANT and not name.startswith(OF_ARM[OTHER[arm]])],
            settings=(arm,),
            protocol=measure,
        )
        for arm, names in SETS.items()
    ),
    metered=("megabytes",),
)
