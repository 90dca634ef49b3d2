"""Stored cells: each is one line of a file, with its records; the lines above it say what computed it.

A file ``<source>_table_<id>.jsonl`` in the folder of the results has lines of three kinds: ``{"provenance": …}``, which
holds for all cells below until the next; ``{"code": {protocol: definitions}}``, likewise of each protocol
(`rcbook.experiments.code`); and the cells. A line is flushed at once, so that a kill costs at most the cells in
flight; a line that a kill cut short is dropped.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rcbook._files import results_folder
from rcbook.experiments import code
from rcbook.experiments.cells import Cell, Record

NAMED = ("row", "method", "setting_value", "stream", "dataset", "protocol", "arguments")  # what a line keeps of a cell


def table_path(source: str, table: str, folder: Path | None = None) -> Path:
    """The file of cells of one table."""
    return (folder or results_folder()) / f"{source}_table_{table}.jsonl"


@dataclass(frozen=True)
class Done:
    """A finished cell as it is stored: its records, or rows of a table, or why it failed, and what computed it."""

    cell: Cell
    seed: int
    records: list[Record]
    failure: str
    seconds: float | None  # unknown of what was computed before cells kept it
    provenance: dict[str, Any] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Name of the cell within its table."""
        return self.cell.key

    @property
    def arguments(self) -> dict[str, Any]:
        """What its protocol was told."""
        return self.cell.arguments

    def changes(self, cell: Cell) -> list[str]:
        """What is no longer as it was computed: "arguments", and definitions that its protocol used or uses now.

        Of a cell that is carried over from before there was its protocol, the provenance alone says what made it.
        """
        carried_over = "carried_over" in self.provenance
        changed = [] if carried_over else code.changes(self.definitions, code.definitions(cell.protocol))
        return changed if self.arguments == cell.arguments else ["arguments", *changed]

    def is_of(self, cell: Cell) -> bool:
        """Whether it was computed as the cell says now, by the code as it stands."""
        return self.key == cell.key and not self.changes(cell)


def lines(done: Iterable[Done], above: Done | None = None) -> Iterator[str]:
    """Lines of cells, each below what holds for it where that changes; ``above`` is the last cell of the file."""
    provenance = above.provenance if above else None
    known: dict[str, dict[str, str]] = {above.cell.protocol: above.definitions} if above else {}
    for one in done:
        if one.provenance != provenance:
            provenance = one.provenance
            yield json.dumps({"provenance": provenance}) + "\n"
        protocol = one.cell.protocol
        if one.definitions != known.get(protocol):
            known[protocol] = one.definitions
            yield json.dumps({"code": {protocol: one.definitions}}) + "\n"
        kept = {name: value for name in NAMED if (value := getattr(one.cell, name))}
        records = [list(record if record[3:] != (None, 1) else record[:3]) for record in one.records]
        kept |= {"seed": one.seed, "seconds": one.seconds, "records": records}
        if one.rows:
            columns = list(dict.fromkeys(column for row in one.rows for column in row))
            kept |= {"columns": columns, "rows": [[row.get(column) for column in columns] for row in one.rows]}
        yield json.dumps(kept | ({"failure": one.failure} if one.failure else {})) + "\n"


def read(path: Path) -> list[Done]:
    """All cells that a file holds, none if there is no file.

    Raises
    ------
    ValueError
        If a line is damaged; the message names it.
    """
    if not path.is_file():
        return []
    source, _, table = path.stem.partition("_table_")
    found: dict[str, Done] = {}
    provenance: dict[str, Any] = {}
    definitions: dict[str, dict[str, str]] = {}
    *complete, _ = path.read_bytes().split(b"\n")
    for number, line in enumerate(complete, 1):
        try:
            fields = json.loads(line)
            if "records" not in fields:
                provenance = fields.get("provenance", provenance)
                definitions |= fields.get("code", {})
                continue
            cell = Cell(source, table, **{"method": ""} | {name: fields[name] for name in NAMED if name in fields})
            found[cell.key] = Done(
                cell,
                fields["seed"],
                [Record(*record) for record in fields["records"]],
                fields.get("failure", ""),
                fields["seconds"],
                provenance,
                definitions[cell.protocol],
                [dict(zip(fields["columns"], row, strict=True)) for row in fields.get("rows", [])],
            )
        except (ValueError, TypeError, KeyError) as error:
            remedy = "restore the file, or delete the line, and a run computes its cell anew"
            raise ValueError(f"{path}, line {number} is damaged ({error!r}): {remedy}") from None
    return list(found.values())


def write(path: Path, done: Iterable[Done]) -> None:
    """Write a file of cells as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text("".join(lines(done)))
    os.replace(temporary, path)
