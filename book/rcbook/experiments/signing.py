"""Stored cells computed again: which numbers must come out, and when new code may be said to have made old numbers."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd

from rcbook._files import nearest
from rcbook.experiments import code, runner
from rcbook.experiments.cells import Cell, Record, Study, register
from rcbook.experiments.store import Done, read, table_path, write

COUNTED = ("iterations", "reach")  # metrics that are whole numbers, or numbers chosen from a few
SAMPLE = 3  # cells of each protocol that are computed again before its cells are signed, the shortest, as far as
FEW_SECONDS = 10  # they take no longer together; one in any case, but
LONGEST = 100  # none that takes longer


def _numbers(done: Done) -> Iterator[Record]:
    """The records of a cell; of rows, each number with the words of its row as its method."""
    yield from done.records
    for row in done.rows:
        words = ", ".join(value for value in row.values() if isinstance(value, str))
        known = {column: value for column, value in row.items() if not pd.isna(value)}
        yield from (Record(words, column, value) for column, value in known.items())


def is_compared(study: Study, cell: Cell, record: Record) -> bool:
    """Whether a number must come out again: times need not, nor what the study leaves to the processor."""
    metered = "seconds" in record.metric or record.metric in study.metered
    return not metered and not study.by_rounding(cell, record)


def differences(study: Study, cell: Cell, found: Done | tuple[str, str], stored: Done) -> list[str]:
    """What does not come out of a cell that is computed again, within the tolerance of its study; a line each."""
    if not isinstance(found, Done):
        return [f"{cell.key}: {found[1]}"]
    before = [record for record in _numbers(stored) if record.method not in study.former]
    now = list(_numbers(found))
    named = [[(*record[:2], record.n_runs) for record in records] for records in (before, now)]
    if (named[0], stored.seed, stored.failure) != (named[1], found.seed, found.failure):
        return [f"{cell.key}: other records, another seed or another failure ({found.failure or 'none'})"]
    return [
        f"{cell.key}, {new.method}, {new.metric}: {new.value} in place of {old.value}"
        for new, old in zip(now, before, strict=True)
        if is_compared(study, cell, new) and not _agree(new, old, study.tolerance)
    ]


def _agree(new: Record, old: Record, tolerance: float) -> bool:
    numbers = all(isinstance(record.value, float | int | np.number) for record in (new, old))
    if not numbers or new.metric in COUNTED:
        return new.value == old.value
    return bool(np.isclose(new.value, old.value, rtol=tolerance, atol=tolerance, equal_nan=True))


def comparable(study: Study, done: list[Done]) -> list[tuple[float, Done]]:
    """The cells of which a number must come out again, the shortest first, with the seconds that they took."""
    return sorted(
        (
            (one.seconds, one)
            for one in done
            if one.seconds is not None and any(is_compared(study, one.cell, record) for record in _numbers(one))
        ),
        key=itemgetter(0),
    )


def stale(study: Study, folder: Path | None = None) -> dict[str, list[str]]:
    """The stored cells of a study that are not of the code as it stands, each with what has changed."""
    cells = {cell.key: cell for cell in study.cells()}
    done = read(table_path(study.source, study.name, folder))
    found = {one.key: one.changes(cells[one.key]) if one.key in cells else ["the cell is gone"] for one in done}
    return {key: changed for key, changed in found.items() if changed}


def _sample(study: Study, done: list[Done]) -> list[Done]:
    shortest = comparable(study, done)[:SAMPLE]
    spent = itertools.accumulate(seconds for seconds, _ in shortest)
    fits = [one for (_, one), seconds in zip(shortest, spent) if seconds <= FEW_SECONDS]
    return fits or [one for seconds, one in shortest[:1] if seconds <= LONGEST]


def sign(study: Study, folder: Path | None = None) -> list[str]:
    """Write the present code beside the stored cells of a study that come out of it; what forbids it, a line each.

    Of each protocol the shortest cells are computed again, up to three as far as they are quick. Its stale cells are
    signed if all of these come out. Cells whose arguments have changed are left to a run.
    """
    path = table_path(study.source, study.name, folder)
    cells = {cell.key: cell for cell in study.cells()}
    stored, groups, refused = read(path), defaultdict(list), []
    for done in stored:
        cell = cells.get(done.key)
        if cell is not None and done.arguments == cell.arguments and not done.is_of(cell):
            groups[cell.protocol].append(done)
    signed: dict[str, Done] = {}
    for protocol, group in groups.items():
        sample = _sample(study, group)
        wrong = [
            line
            for done in sample
            for line in differences(study, cells[done.key], runner.execute(cells[done.key]), done)
        ]
        if not sample:
            wrong = [f"no cell of {protocol} is short enough to be computed again here: run it anew"]
        if not wrong:
            now = code.definitions(protocol)
            signed |= {d.key: replace(d, cell=cells[d.key], definitions=now) for d in group}
        refused += wrong
    if signed:
        write(path, [signed.get(done.key, done) for done in stored])
    return refused


def named(names: list[str]) -> Iterator[Study]:
    """The studies of these names, all without any.

    Raises
    ------
    ValueError
        If there is none of such a name.
    """
    known = {f"{source}:{name}": study for (source, name), study in register().items()}
    for name in names or known:
        if name not in known:
            raise ValueError(
                f"there is no table or study {name}{nearest(name, known)}: `python -m rcbook status` lists them"
            )
        yield known[name]
