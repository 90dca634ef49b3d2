"""What an experiment is made of: cells, their records, and the grids by which studies declare them.

A printed table, or a study of ours, is a list of cells. A module of `rcbook.experiments.studies` declares each as a
`Study`, which enters the register when the module is imported. What computes a cell is its protocol, a pure function
(cell, seed) -> records, named by ``"module:function"``, so that a worker process finds it by itself. It returns one
`Record` for each number; the means, ranks, counts and "reach" that a table prints beside them are numbers like the
others. In their place a protocol may return rows of a table of its own columns, as where a learner is asked for
seconds, memory, iterations and why it ended.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rcbook import published
from rcbook._files import nearest

STUDY = "study"  # in place of a source: experiments that no source prints
QUICK_REPETITIONS = 3
NO_PROTOCOL = "no protocol yet"
# of studies that end at optima found by a search with a tolerance of its own (1e-6 of a gradient; the root of machine
# precision where only values are compared, as for a temperature); within it another processor ends elsewhere
SEARCHED = 1e-5


class Record(NamedTuple):
    """One recomputed number: of a deterministic protocol, or the mean of ``n_runs`` runs."""

    method: str
    metric: str
    value: float | None
    std: float | None = None
    n_runs: int = 1


@dataclass(frozen=True)
class Cell:
    """What is computed at a time: the numbers of one method in one row of a table.

    Cells of the same ``stream`` draw the same random numbers, so that methods meet the same divisions of the data.
    ``reason`` says why a cell is not attempted, ``dataset`` which of the printed rows that are alike but for it.
    """

    source: str
    table: str
    row: str
    method: str
    protocol: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    setting_value: str = ""
    stream: str = ""
    quick: bool = False
    reason: str = ""
    dataset: str = ""

    @property
    def key(self) -> str:
        """Name of the cell within its table."""
        return "/".join(filter(None, (self.row, self.method, self.setting_value, self.dataset)))


def mean_record(method: str, metric: str, runs: Iterable[float]) -> Record:
    """The mean of runs with their standard deviation, of which a single run has none."""
    values = np.asarray(list(runs), dtype=float)
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    return Record(method, metric, float(values.mean()), std, len(values))


Row = dict[str, Any]  # of a table of its own columns
Protocol = Callable[[Cell, int], list[Record] | list[Row]]


def name_of(protocol: Protocol) -> str:
    """``"module:function"``."""
    return f"{protocol.__module__}:{protocol.__name__}"


# Grids of cells ------------------------------------------------------------------------------------


def _value(given: Any, cell: Cell) -> Any:
    """What is given, or what it says of a cell if it is a function."""
    return given(cell) if callable(given) else given


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The cells of all rows, methods and settings, the settings varying fastest.

    Parameters
    ----------
    rows : iterable of str or Cell, or a function that gives one
        Names; or cells, of which the study changes what is given here. The setting of a cell of another table becomes
        ``"source:table"`` of that table.
    methods, settings : iterable, or a function of the cell that gives one, optional
        Of each row, and of each row and method.
    protocol : callable, optional
        What computes the cells: (cell, seed) -> records.
    arguments : mapping, or a function of the cell that gives one
        What the protocol is told, beside the arguments of a cell that is taken up.
    stream, quick : optional
        Values of all cells, or functions of the cell; see `Cell`.
    where : callable, optional
        Which cells there are.
    """

    rows: Iterable[Any] | Callable[[], Iterable[Any]]
    methods: Iterable[str] | Callable[[Cell], Iterable[str]] | None = None
    settings: Iterable[Any] | Callable[[Cell], Iterable[Any]] | None = None
    protocol: Protocol | None = None
    arguments: Mapping[str, Any] | Callable[[Cell], Mapping[str, Any]] = field(default_factory=dict)
    stream: str | Callable[[Cell], str] | None = None
    quick: bool | Callable[[Cell], bool] | None = None
    where: Callable[[Cell], bool] | None = None

    def cells(self, source: str, table: str) -> Iterator[Cell]:
        """The cells as those of a table."""
        for row in self.rows() if callable(self.rows) else self.rows:
            first = _taken_up(row, source, table) if isinstance(row, Cell) else Cell(source, table, str(row), "")
            for second in _each(first, "method", self.methods):
                for cell in _each(second, "setting_value", self.settings):
                    if self.where is None or self.where(cell):
                        yield self._complete(cell)

    def _complete(self, cell: Cell) -> Cell:
        changes: dict[str, Any] = {"arguments": {**cell.arguments, **_value(self.arguments, cell)}}
        if self.protocol is not None:
            changes["protocol"] = name_of(self.protocol)
        changes |= {
            name: _value(given, cell)
            for name, given in (("stream", self.stream), ("quick", self.quick))
            if given is not None
        }
        return replace(cell, **changes)


def _taken_up(cell: Cell, source: str, table: str) -> Cell:
    if (cell.source, cell.table) == (source, table):
        return cell
    return replace(cell, source=source, table=table, setting_value=f"{cell.source}:{cell.table}")


def _each(cell: Cell, name: str, values: Any) -> Iterator[Cell]:
    if values is None:
        yield cell
    else:
        yield from (replace(cell, **{name: str(value)}) for value in _value(values, cell))


REGISTER: dict[tuple[str, str], "Study"] = {}


class Study:
    """A printed table or a study of ours, entered in `REGISTER`: its cells are those of one or more grids.

    Parameters
    ----------
    name : str
        Number of the table as printed, or name of the study.
    *grids : Grid
        One below the other.
    source : str, optional
        Key of the source of a printed table.
    tolerance : float, optional
        Relative and absolute; to which its numbers come out on another processor.
    metered : sequence of str, optional
        Metrics and columns that a clock or another meter gave, which never come out again.
    by_rounding : callable, optional
        (cell, record) -> whether a number is left to how a processor rounds, so that it need not come out.
    former : sequence of str, optional
        Methods whose records its protocol no longer makes: they are kept from the run that made them.
    **grid
        The parameters of `Grid`, where there is one.
    """

    def __init__(
        self,
        name: str,
        *grids: Grid,
        source: str = STUDY,
        tolerance: float = 1e-10,
        metered: Sequence[str] = (),
        by_rounding: Callable[[Cell, Record], bool] = lambda cell, record: False,
        former: Sequence[str] = (),
        **grid: Any,
    ) -> None:
        self.name, self.source = name, source
        self.tolerance, self.metered, self.by_rounding, self.former = tolerance, metered, by_rounding, former
        self.grids = (*grids, Grid(**grid)) if grid else grids
        self._cells: list[Cell] | None = None
        if (source, name) in REGISTER:
            raise ValueError(f"there are two studies {source}:{name}: give one of them another name")
        REGISTER[source, name] = self

    def cells(self) -> list[Cell]:
        """All cells, in the order in which they are run; they are made once."""
        if self._cells is None:
            self._cells = [cell for grid in self.grids for cell in grid.cells(self.source, self.name)]
        return list(self._cells)


@cache
def _import_studies() -> None:
    package = importlib.import_module(".studies", __package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def register() -> dict[tuple[str, str], Study]:
    """All printed tables that have a protocol, in printed order, and below them the studies by name."""
    _import_studies()
    printed = published.index()[["source", "table"]].itertuples(index=False, name=None)
    return {key: REGISTER[key] for key in printed if key in REGISTER} | {
        key: study for key, study in sorted(REGISTER.items()) if key[0] == STUDY
    }


def tables() -> list[str]:
    """Names ``source:table`` of the published tables that have a protocol, and of the studies."""
    return [":".join(key) for key in register()]


def cells_of(source: str, table: str, quick: bool = False) -> list[Cell]:
    """The cells of a ``table`` of a ``source``, or of a study; ``quick``: of small data sets, with few repetitions.

    Raises
    ------
    ValueError
        If the sources print no such table, or no protocol is written for it yet.
    """
    if source != STUDY:
        published.table(source, table)
    study = REGISTER.get((source, table)) or register().get((source, table))
    if study is None:
        name = f"{source}:{table}"
        raise ValueError(
            f"there is no protocol yet for {name}{nearest(name, tables())}: `python -m rcbook status` lists all tables"
        )
    if not quick:
        return study.cells()
    few = {"repetitions": QUICK_REPETITIONS}
    return [
        replace(cell, arguments=cell.arguments | (few if "repetitions" in cell.arguments else {}))
        for cell in study.cells()
        if cell.quick
    ]
