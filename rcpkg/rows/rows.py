"""Rows, their sources, and methods that take them."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce, wraps
from inspect import signature
from itertools import islice
from operator import add
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from rcpkg.capabilities import Unsupported
from rcpkg.checks import check_number
from rcpkg.columns import as_numbers, in_table
from rcpkg.linalg import Array, slices
from rcpkg.rows.block import Block, OfX, attempt, check_lengths, check_names
from rcpkg.rows.cluster import changed, lazy_array, partitions, results_of


class Rows:
    """Blocks of rows that can be gone through again.

    ``Rows.from_arrays`` takes what is in memory, ``Rows.from_parquet`` files, ``Rows.from_dask`` the collections of a
    cluster. A classifier is fitted to them by ``fit(rows)``, the labels and the weights being those of the blocks.
    Classes and names may first appear in a late block; a block may be empty. Errors name the block.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA, Rows
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = Rows.from_arrays(X, y)  # or Rows.from_parquet("iris.parquet", "kind")
    >>> QDA().fit(rows).score(X, y) == QDA().fit(X, y).score(X, y)
    True
    """

    def __iter__(self) -> Iterator[Block]:
        raise NotImplementedError

    def each(self, task: Callable[[Block], Any]) -> Iterable[Any]:
        """What a ``task``, which can be pickled, makes of each block, in the order of the blocks."""
        return map(partial(attempt, task), self)

    def sum(self, task: Callable[[Block], Any]) -> Any:
        """What a ``task`` makes of the blocks, added up in their order."""
        return reduce(add, self.each(task))

    def map(self, change: Callable[[Block], Block]) -> Rows:
        """The rows with each block changed."""
        return _Changed(self, change)

    def kept(self) -> Rows:
        """These rows in a form for many passes: where they would be read and changed in each, written to a folder."""
        return _Spooled(self)

    @property
    def is_one_block(self) -> bool:
        """Whether there is no second block."""
        return len(list(islice(self, 2))) == 1

    def without(self, *given: Any) -> Rows:
        """The rows; refuses labels or weights that are given beside those of the blocks."""
        if any(values is not None for values in given):
            raise ValueError("y and sample_weight must be None with Rows, whose blocks have labels and weights")
        return self

    def only(self, what: str) -> Block:
        """The one block; raises `Unsupported` where there are more, which ``what`` does not take."""
        first, *others = islice(self, 2)
        if others:
            raise Unsupported(f"{what} takes rows that are one block: give it the rows in memory, X and y")
        return first

    def collected(self, function: Callable[[Any], Array]) -> Any:
        """A ``function`` of the X of each block, such as predictions, one below the other."""
        return np.concatenate(list(self.each(OfX(function))))

    @staticmethod
    def from_arrays(
        X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, block_size: int | None = None
    ) -> Rows:
        """Rows that are in memory, as one block, or in blocks of ``block_size`` rows."""
        weight = None if sample_weight is None else as_numbers(sample_weight, "sample_weight")
        X = csr_array(X) if issparse(X) else in_table(X)
        whole = check_lengths(Block(X, in_table(y), weight))
        if block_size is None:
            return Blocks([whole])
        check_number("block_size", block_size, 1, integer=True)
        parts = enumerate(slices(whole.n, block_size))
        return Blocks([whole.part(rows)._replace(name=f"block {k}") for k, rows in parts])

    @staticmethod
    def from_parquet(
        path: str | Path | Sequence[str | Path],
        label: str | None = None,
        features: Sequence[str] | None = None,
        weights: str | None = None,
        block_size: int = 2**17,
    ) -> Rows:
        """Rows of a Parquet file, of several, or of all in a folder, by their names; needs pyarrow.

        Columns go by the names that they have in the files: ``label`` and ``weights``, and ``features``, by default all
        others but those that pandas has written as the index of a frame. Below a folder, the value of a folder named
        ``key=value`` is that of a column ``key`` of its files.
        Text is read by its dictionary. A block is ``block_size`` rows of a row group, and no more is in memory; a fit
        that goes through the rows often writes them, encoded, to a temporary folder first.
        """
        return _Parquet(path, label, features, weights, block_size)

    @staticmethod
    def from_dask(
        X: Any, y: Any = None, sample_weight: Any = None, label: str | None = None, weights: str | None = None
    ) -> Rows:
        """Rows of a Dask array, or frame with the columns ``label`` and ``weights``; a block is a partition.

        Labels are given as y, of the same partitions, or by the name ``label``, and weights likewise.
        They stay with the workers, as ``X.persist()`` does, and a pass is one call a worker. Passes are faster without
        ``MALLOC_TRIM_THRESHOLD_``, which Dask's ``distributed.nanny.pre-spawn-environ`` sets for its workers.

        >>> import dask.array
        >>> rows = Rows.from_dask(dask.array.zeros((6, 2), chunks=(3, 2)), dask.array.arange(6, chunks=3))
        >>> [block.n for block in rows]
        [3, 3]
        """
        return _Dask(partitions(X, y, sample_weight, label, weights))


class Blocks(Rows):
    """Blocks that are in memory."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def map(self, change: Callable[[Block], Block]) -> Rows:
        """The changed blocks that have rows, which are in memory too."""
        return Blocks([block for block in self.each(change) if block.n])

    def kept(self) -> Rows:
        return self


class _Changed(Rows):
    """Rows whose blocks are changed when they are gone through."""

    def __init__(self, rows: Rows, change: Callable[[Block], Block]) -> None:
        self.rows, self.change = rows, change

    def __iter__(self) -> Iterator[Block]:
        return (block for block in self.rows.each(self.change) if block.n)


class _Spooled(Rows):
    """Blocks in a temporary folder, which goes when nobody holds them."""

    def __init__(self, rows: Rows) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rcpkg-"))
        weakref.finalize(self, shutil.rmtree, self.folder, True)
        self.files = [self._written(k, block) for k, block in enumerate(rows)]

    def _written(self, k: int, block: Block) -> Path:
        file = self.folder / f"{k}.pickle"
        file.write_bytes(pickle.dumps(block, protocol=5))
        return file

    def __iter__(self) -> Iterator[Block]:
        return (pickle.loads(file.read_bytes()) for file in self.files)

    def kept(self) -> Rows:
        return self


class _Parquet(Rows):
    """Blocks of Parquet files, read one after another in each pass."""

    def __init__(
        self,
        path: str | Path | Sequence[str | Path],
        label: str | None,
        features: Sequence[str] | None,
        weights: str | None,
        block_size: int,
    ) -> None:
        paths = [path] if isinstance(path, str | Path) else path
        found = [file for one in paths for file in _files(Path(one))]
        if not found:
            raise ValueError("path must name a file; got an empty list")
        self.files = [file for file, _ in found]
        self.keys = _keys([keys for _, keys in found])
        check_number("block_size", block_size, 1, integer=True)
        check_names(label, weights)
        self._refuse_repeated(self.files, "path names twice")
        self.label, self.weights, self.block_size = label, weights, block_size
        self.states = [self._state(file) for file in self.files]
        schema = self._opened(self.files[0], ()).schema_arrow
        names = [*schema.names, *self.keys[0]]
        self._refuse_repeated(names, f"{self.files[0].name} has several columns named")
        if isinstance(features, str):
            raise ValueError(f"features must be a list of names; got {features!r}: [{features!r}] is one")
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        known = label, weights, *(name for name in index if isinstance(name, str))
        others = [name for name in names if name not in known]
        self.features = others if features is None else list(features)
        self._refuse_repeated(self.features, "features names twice")
        taken = [name for name in self.features if name in (label, weights)]
        if taken:
            raise ValueError(f"features must be without {taken[0]!r}, which is the label or the weights")
        columns = [*self.features, *filter(None, (label, weights))]
        absent = [name for name in columns if name not in names]
        if absent:
            raise ValueError(f"{self.files[0].name} has no column {absent[0]!r}; it has {names}")
        self.types = {name: schema.field(name).type for name in columns if name in schema.names}

    @staticmethod
    def _refuse_repeated(names: Sequence[Any], what: str) -> None:
        if repeated := [name for name, times in Counter(map(str, names)).items() if times > 1]:
            raise ValueError(f"{what} {repeated[0]!r}")

    @staticmethod
    def _state(file: Path) -> tuple[int, int]:
        status = file.stat()
        return status.st_mtime_ns, status.st_size

    @staticmethod
    def _opened(file: Path, text: Sequence[str]) -> Any:
        try:
            from pyarrow import ArrowInvalid
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError("Rows.from_parquet needs pyarrow: pip install pyarrow") from error
        # with pre_buffer, the default, pyarrow keeps all that it has read
        try:
            return ParquetFile(file, pre_buffer=False, read_dictionary=list(text))
        except ArrowInvalid as error:
            raise ValueError(f"{file.name} is no Parquet file, or damaged: {error}") from None

    def __iter__(self) -> Iterator[Block]:
        text, number = [name for name, kind in self.types.items() if str(kind) in ("string", "large_string")], 0
        for file, state, keys in zip(self.files, self.states, self.keys):
            self._check_columns(file)
            table = self._opened(file, text)
            for group in range(table.num_row_groups):  # whether batches would cross these is told by no rule
                for batch in table.iter_batches(self.block_size, row_groups=[group], columns=list(self.types)):
                    yield self._block(batch, keys, f"block {number} ({file.name})")
                    number += 1
            if self._state(file) != state:
                raise ValueError(f"{file.name} has changed since its rows were first read: make the Rows anew")
        if not number:
            raise ValueError(f"{self.files[0].name} holds no rows")

    def _check_columns(self, file: Path) -> None:
        schema = self._opened(file, ()).schema_arrow
        self._refuse_repeated([name for name in schema.names if name in self.types], f"{file.name} has twice")
        for name, kind in self.types.items():
            if name not in schema.names:
                raise ValueError(f"{file.name} has no column {name!r}, which {self.files[0].name} has")
            here = schema.field(name).type
            if here != kind:
                raise ValueError(
                    f"column {name!r} is {here} in {file.name} and {kind} in {self.files[0].name}: make them one type"
                )

    def _block(self, batch: Any, keys: dict[str, Any], name: str) -> Block:
        from pyarrow import int64, uint64

        # what the metadata of pandas say of an index and of types is for frames, whose index is no column
        exact = {int64(): pd.Int64Dtype(), uint64(): pd.UInt64Dtype()}.get
        frame = partial(batch.to_pandas, ignore_metadata=True, types_mapper=exact)

        def column(feature: str) -> Any:
            if feature in keys:
                return np.full(batch.num_rows, keys[feature], dtype=object if isinstance(keys[feature], str) else None)
            return batch.column(feature).to_pandas(types_mapper=exact).to_numpy()

        y = None if self.label is None else column(self.label)
        weight = None if self.weights is None else as_numbers(column(self.weights), f"the column {self.weights!r}")
        if any(str(self.types.get(feature)) != "double" for feature in self.features):
            X = frame().assign(**{feature: column(feature) for feature in keys})[self.features]
            return Block(X, y, weight, name)
        columns = np.empty((len(self.features), batch.num_rows))
        for values, feature in zip(columns, self.features):
            values[:] = batch.column(feature).to_numpy(zero_copy_only=False)
        return Block(pd.DataFrame(columns.T, columns=self.features, copy=False), y, weight, name)


def _files(path: Path) -> list[tuple[Path, dict[str, str]]]:
    """A file, or those of a folder and of the folders below it, with the keys and values that name these."""
    if not path.is_dir():
        return [(path, {})]
    inside = {file: file.relative_to(path).parts for file in sorted(path.rglob("*.parquet"))}
    visible = {file: parts[:-1] for file, parts in inside.items() if not any(part[0] in "._" for part in parts)}
    if not visible:
        raise ValueError(f"path={str(path)!r} is a folder without files named *.parquet")
    return [(file, dict(part.split("=", 1) for part in parts if "=" in part)) for file, parts in visible.items()]


def _keys(of_files: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The values of the keys of folders: integers where all of a key are, or text; None where it is missing."""
    names = list(of_files[0])
    if any(list(keys) != names for keys in of_files):
        raise ValueError(f"the folders of the files must name the same keys; got {names} and others")
    values = {name: [unquote(keys[name]) for keys in of_files] for name in names}
    for name, given in values.items():
        known = [None if value == "__HIVE_DEFAULT_PARTITION__" else value for value in given]
        whole = all(value is None or value.removeprefix("-").isdecimal() for value in known)
        values[name] = [int(value) if whole and value is not None else value for value in known]
    return [dict(zip(names, row)) for row in zip(*values.values())] if names else of_files


class _Dask(Rows):
    """Blocks that the workers of Dask hold, or make anew if one is lost."""

    def __init__(self, parts: Sequence[Any]) -> None:
        import dask

        self.parts = dask.persist(*parts)

    def __iter__(self) -> Iterator[Block]:
        return (block for part in self.parts if (block := part.compute()).n)

    def map(self, change: Callable[[Block], Block]) -> Rows:
        """The changed blocks, where these are."""
        return _Dask(changed(self.parts, change))

    def kept(self) -> Rows:
        return self

    def each(self, task: Callable[[Block], Any]) -> Iterable[Any]:
        return results_of(self.parts, task)

    def collected(self, function: Callable[[Any], Array]) -> Any:
        """A Dask array, which is not computed."""
        return lazy_array(self.parts, function, function(next(iter(self)).X)[:0])


Method = TypeVar("Method", bound=Callable[..., Any])


def by_block(method: Method) -> Method:
    """Decorator of predictions for X, which are made block by block of `Rows`."""

    @wraps(method)
    def whole(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(X, Rows):
            return X.collected(partial(_prediction, self, method.__name__, args, kwargs))
        return method(self, X, *args, **kwargs)

    return cast(Method, whole)


def in_memory(fit: Method) -> Method:
    """Decorator of a ``fit`` to all rows at once: of `Rows` it takes one block, and refuses more."""
    weighted = "sample_weight" in signature(fit).parameters

    @wraps(fit)
    def whole(self: Any, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(X, Rows):
            X, y, weight, _ = X.without(y, *args, kwargs.pop("sample_weight", None)).only(type(self).__name__)
            if weight is not None and not weighted:
                raise Unsupported(f"{type(self).__name__} takes rows without weights")
            kwargs |= {} if weight is None else {"sample_weight": weight}
        return fit(self, X, y, *args, **kwargs)

    return cast(Method, whole)


def _prediction(model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], X: Any) -> Array:
    """A method of a model as a function of X."""
    return getattr(model, method)(X, *args, **kwargs)
