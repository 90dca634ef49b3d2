"""Rows in blocks that can be gone through again, and *ordered* sums of a task over them.

A sum is added up block after block, in the order of the blocks, whoever computed which: in memory, from Parquet and on
Dask the same blocks give the same bits. What is in memory is one block, unless it is divided.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce, wraps
from itertools import islice
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from rcpkg.capabilities import Unsupported
from rcpkg.checks import check_number
from rcpkg.linalg import Array, slices

BLOCK_SIZE = 2**16  # rows of a block that is read from a file


class Block(NamedTuple):
    """Some of the rows: X, an array, a frame, a sparse array or a tuple of these; their labels y, or class numbers, or
    weights of the classes (n, r); their weights, if any; and what the block is called in errors."""

    X: Any
    y: Any = None
    weight: Any = None
    name: str = ""

    @property
    def n(self) -> int:
        """Number of rows."""
        X = self.X[0] if isinstance(self.X, tuple) else self.X
        return X.shape[0] if hasattr(X, "shape") else len(X)

    @property
    def total_weight(self) -> float:
        """Weight of the rows."""
        return float(self.n if self.weight is None else self.weight.sum())

    def weights(self, n_classes: int) -> Array:
        """diag(w) Y, shape (n, ``n_classes``), of class numbers."""
        if np.ndim(self.y) == 2:
            return self.y
        Y = np.equal.outer(self.y, np.arange(n_classes)).astype(float)
        return Y if self.weight is None else Y * self.weight[:, None]

    def part(self, index: Any) -> Block:
        """Some of the rows."""

        def of(part: Any) -> Any:
            return part if part is None else part.iloc[index] if hasattr(part, "iloc") else part[index]

        return self._replace(X=of(self.X), y=of(self.y), weight=of(self.weight))

    def counting(self) -> Block:
        """The rows of positive weight: others tell nothing, not even which states there are."""
        if self.weight is None or (present := self.weight > 0).all():
            return self
        return self.part(present)


class Rows:
    """Blocks of rows that can be gone through again.

    ``Rows.of`` takes what is in memory, ``Rows.from_parquet`` files, ``Rows.from_dask`` the collections of a cluster. A
    classifier is fitted to them by ``fit(rows)``, the labels and the weights being those of the blocks. Classes and
    names may first appear in a late block; a block may be empty. Errors name the block.
    """

    def __iter__(self) -> Iterator[Block]:
        raise NotImplementedError

    def each(self, task: Callable[[Block], Any]) -> Iterable[Any]:
        """What a ``task``, which can be pickled, makes of each block, in the order of the blocks."""
        return map(Named(task), self)

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

    def only(self, what: str) -> Block:
        """The one block; raises `Unsupported` where there are more, which ``what`` does not take."""
        first, *more = islice(self, 2)
        if more:
            raise Unsupported(f"{what} takes rows that are one block: give it the rows in memory, X and y")
        return first

    def collected(self, function: Callable[[Any], Array]) -> Any:
        """A ``function`` of the X of each block, such as predictions, one below the other."""
        return np.concatenate(list(self.each(_OfX(function))))

    @staticmethod
    def of(
        X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, block_size: int | None = None
    ) -> Rows:
        """Rows that are in memory, as one block, or in blocks of ``block_size`` rows."""
        whole = Block(X, y, None if sample_weight is None else np.asarray(sample_weight, dtype=float))
        if block_size is None:
            return Blocks([whole])
        check_number("block_size", block_size, 1, integer=True)
        parts = enumerate(slices(whole.n, block_size))
        return Blocks([whole.part(rows)._replace(name=f"block {k}") for k, rows in parts])

    @staticmethod
    def from_parquet(
        path: str | Path,
        label: str | None = None,
        features: Sequence[str] | None = None,
        weights: str | None = None,
        block_size: int = BLOCK_SIZE,
    ) -> Rows:
        """Rows of a Parquet file, or of all in a folder, by their names; needs pyarrow.

        Columns go by their names: ``label`` and ``weights``, and ``features``, by default all others.
        Text is read by its dictionary. A block is ``block_size`` rows of a row group, and no more is in memory; a fit
        that goes through the rows often writes them, encoded, to a temporary folder first.
        """
        return _Parquet(Path(path), label, features, weights, block_size)

    @staticmethod
    def from_dask(
        X: Any, y: Any = None, sample_weight: Any = None, label: str | None = None, weights: str | None = None
    ) -> Rows:
        """Rows of a Dask array, or frame with the columns ``label`` and ``weights``; a block is a partition.

        They stay with the workers, as ``X.persist()`` does, and a pass is one call a worker. Passes are faster without
        ``MALLOC_TRIM_THRESHOLD_``, which Dask's ``distributed.nanny.pre-spawn-environ`` sets for its workers.
        """
        return _Dask.of(X, y, sample_weight, label, weights)


class Named:
    """A task whose errors tell of which block they are."""

    def __init__(self, task: Callable[[Block], Any]) -> None:
        self.task = task

    def __call__(self, block: Block) -> Any:
        try:
            return self.task(block)
        except ValueError as error:
            if not block.name or str(error).startswith(block.name):
                raise
            raise type(error)(f"{block.name}: {error}") from error


class _OfX:
    """A function of the X of a block."""

    def __init__(self, function: Callable[[Any], Array]) -> None:
        self.function = function

    def __call__(self, block: Block) -> Array:
        return self.function(block.X)


class Blocks(Rows):
    """Blocks that are in memory."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def map(self, change: Callable[[Block], Block]) -> Rows:
        """The changed blocks, which are in memory too."""
        return Blocks(list(self.each(change)))

    def kept(self) -> Rows:
        return self


class _Changed(Rows):
    """Rows whose blocks are changed when they are gone through."""

    def __init__(self, rows: Rows, change: Callable[[Block], Block]) -> None:
        self.rows, self.change = rows, change

    def __iter__(self) -> Iterator[Block]:
        return iter(self.rows.each(self.change))


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
        self, path: Path, label: str | None, features: Sequence[str] | None, weights: str | None, block_size: int
    ) -> None:
        self.files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not self.files:
            raise ValueError(f"path={str(path)!r} is a folder without files named *.parquet")
        check_number("block_size", block_size, 1, integer=True)
        self.label, self.weights, self.block_size = label, weights, block_size
        self.states = [self._state(file) for file in self.files]
        schema = self._opened(self.files[0], ()).schema_arrow
        others = [name for name in schema.names if name not in (label, weights)]
        self.features = others if features is None else list(features)
        taken = [name for name in self.features if name in (label, weights)]
        if taken:
            raise ValueError(f"features must be without {taken[0]!r}, which is the label or the weights")
        self.columns = [*self.features, *filter(None, (label, weights))]
        absent = [name for name in self.columns if name not in schema.names]
        if absent:
            raise ValueError(f"{self.files[0].name} has no column {absent[0]!r}; it has {schema.names}")
        self.types = {name: schema.field(name).type for name in self.columns}

    @staticmethod
    def _state(file: Path) -> tuple[int, int]:
        status = file.stat()
        return status.st_mtime_ns, status.st_size

    @staticmethod
    def _opened(file: Path, text: Sequence[str]) -> Any:
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError("Rows.from_parquet needs pyarrow: pip install pyarrow") from error
        # with pre_buffer, the default, pyarrow keeps all that it has read
        return ParquetFile(file, pre_buffer=False, read_dictionary=list(text))

    def __iter__(self) -> Iterator[Block]:
        text, number = [name for name, of in self.types.items() if str(of) in ("string", "large_string")], 0
        for file, state in zip(self.files, self.states):
            self._check_columns(file)
            table = self._opened(file, text)
            for group in range(table.num_row_groups):  # whether batches would cross these is told by no rule
                for batch in table.iter_batches(self.block_size, row_groups=[group], columns=self.columns):
                    yield self._block(batch, f"block {number} ({file.name})")
                    number += 1
            if self._state(file) != state:
                raise ValueError(f"{file.name} has changed since its rows were first read: make the Rows anew")
        if not number:
            raise ValueError(f"{self.files[0].name} holds no rows")

    def _check_columns(self, file: Path) -> None:
        schema = self._opened(file, ()).schema_arrow
        for name, of in self.types.items():
            if name not in schema.names:
                raise ValueError(f"{file.name} has no column {name!r}, which {self.files[0].name} has")
            here = schema.field(name).type
            if here != of:
                raise ValueError(
                    f"column {name!r} is {here} in {file.name} and {of} in {self.files[0].name}: make them one type"
                )

    def _block(self, batch: Any, name: str) -> Block:
        frame = batch.to_pandas()
        y, weight = (None if of is None else frame[of].to_numpy() for of in (self.label, self.weights))
        return Block(frame[self.features], y, weight, name)


class _Dask(Rows):
    """Blocks that the workers of Dask hold, or make anew if one is lost."""

    def __init__(self, parts: Sequence[Any]) -> None:
        import dask

        self.parts = dask.persist(*parts)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, label: str | None, weights: str | None) -> Self:
        """The partitions of collections."""
        try:
            import dask
        except ImportError as error:
            raise ImportError("Rows.from_dask needs dask: pip install 'dask[dataframe,distributed]'") from error
        if not hasattr(X, "to_delayed"):
            raise ValueError(f"X must be a Dask array or frame; got {type(X).__name__}, which Rows.of may take")
        if getattr(X, "numblocks", (1, 1))[1:] not in ((), (1,)):
            X = X.rechunk({1: -1})
        parts = [np.ravel(c.to_delayed()) if c is not None else None for c in (X, y, sample_weight)]
        wrong = [len(of) for of in parts if of is not None and len(of) != len(parts[0])]
        if wrong:
            raise ValueError(f"X has {len(parts[0])} partitions, and its labels or weights {wrong[0]}: rechunk them")
        made = dask.delayed(_block_of, pure=True)
        given = (parts[0], *(of if of is not None else [None] * len(parts[0]) for of in parts[1:]))
        return cls([made(*of, label, weights, f"partition {k}") for k, of in enumerate(zip(*given))])

    def __iter__(self) -> Iterator[Block]:
        return (block for part in self.parts if (block := part.compute()).n)

    def map(self, change: Callable[[Block], Block]) -> Rows:
        """The changed blocks, where these are."""
        import dask

        changed = dask.delayed(_UnlessEmpty(Named(change)), pure=False)
        return _Dask([changed(part) for part in self.parts])

    def kept(self) -> Rows:
        return self

    def each(self, task: Callable[[Block], Any]) -> Iterable[Any]:
        """One call a worker; under a scheduler without workers a task a block."""
        import dask

        share, client = _Share(Named(task)), _client()
        if client is None:
            results = dask.compute(*[dask.delayed(share, pure=False)([part]) for part in self.parts])
            return [result for (of_block,) in results for result in of_block]
        futures = [client.futures_of(part)[0] for part in self.parts]
        shares = _shares(client, futures)
        calls = [
            client.submit(share, [futures[k] for k in own], workers=[worker], allow_other_workers=True, pure=False)
            for worker, own in shares.items()
        ]
        found = {k: of for own, results in zip(shares.values(), client.gather(calls)) for k, of in zip(own, results)}
        return [result for k in sorted(found) for result in found[k]]

    def collected(self, function: Callable[[Any], Array]) -> Any:
        """A Dask array, which is not computed."""
        from dask import array as da
        from dask import delayed

        like = function(next(iter(self)).X)[:0]
        made = delayed(_Predictions(function, like), pure=False)
        shape = np.nan, *like.shape[1:]
        return da.concatenate([da.from_delayed(made(part), shape, dtype=like.dtype) for part in self.parts])


def _client() -> Any:
    """The client of the workers that are there, if there are some."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _shares(client: Any, futures: Sequence[Any]) -> dict[str, list[int]]:
    """Equally many blocks for each worker: those that it has, and where it has too few others, which stay with it."""
    from distributed import wait

    wait(futures)  # of a block that nobody has yet any worker would do, and one would get them all
    where = client.who_has(futures)
    shares: dict[str, list[int]] = {worker: [] for worker in client.nthreads()}
    most = -(-len(futures) // len(shares))
    for k, future in enumerate(futures):
        own = [worker for worker in where.get(future.key, ()) if len(shares.get(worker, range(most))) < most]
        shares[min(own or shares, key=lambda worker: len(shares[worker]))].append(k)
    return {worker: own for worker, own in shares.items() if own}


def _block_of(X: Any, y: Any, weight: Any, label: str | None, weights: str | None, name: str) -> Block:
    """The block of a partition."""
    taken = [of for of in (label, weights) if of is not None]
    absent = [of for of in taken if of not in X.columns]
    if absent:
        raise ValueError(f"{name} has no column {absent[0]!r}; it has {list(X.columns)}")
    y = X[label].to_numpy() if label is not None else None if y is None else np.asarray(y)
    weight = X[weights].to_numpy() if weights is not None else None if weight is None else np.asarray(weight)
    return Block(X.drop(columns=taken) if taken else X, y, weight, name)


class _Share:
    """What a task makes of some blocks: a list for each, of one result, or empty as the block is."""

    def __init__(self, task: Callable[[Block], Any]) -> None:
        self.task = task

    def __call__(self, blocks: list[Block]) -> list[list[Any]]:
        return [[self.task(block)] if block.n else [] for block in blocks]


class _UnlessEmpty(_Share):
    """The change of a block, if it has rows."""

    def __call__(self, block: Block) -> Any:  # type: ignore[override]
        return self.task(block) if block.n else block


class _Predictions:
    """A function of the X of a block, and what is ``like`` it where there are no rows."""

    def __init__(self, function: Callable[[Any], Array], like: Array) -> None:
        self.function, self.like = function, like

    def __call__(self, block: Block) -> Array:
        return Named(_OfX(self.function))(block) if block.n else self.like


Method = TypeVar("Method", bound=Callable[..., Any])


def by_block(method: Method) -> Method:
    """Decorator of predictions for X, which are made block by block of `Rows`."""

    @wraps(method)
    def whole(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(X, Rows):
            return X.collected(_Predicted(self, method.__name__, args, kwargs))
        return method(self, X, *args, **kwargs)

    return cast(Method, whole)


class _Predicted(NamedTuple):
    """A method of a model as a function of X."""

    model: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, X: Any) -> Array:
        return getattr(self.model, self.method)(X, *self.args, **self.kwargs)
