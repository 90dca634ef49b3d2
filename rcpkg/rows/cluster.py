"""Blocks that are partitions of Dask: its workers hold them, and go through theirs in one call a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rcpkg.linalg import Array
from rcpkg.rows.block import Block, OfX, attempt, check_names


def partitions(X: Any, y: Any, sample_weight: Any, label: str | None, weights: str | None) -> list[Any]:
    """The partitions of collections as blocks, which Dask has not yet made."""
    try:
        import dask
    except ImportError as error:
        raise ImportError("Rows.from_dask needs dask: pip install 'dask[dataframe,distributed]'") from error
    if not _is_table(X):
        raise ValueError(f"X must be a Dask array or frame; got {type(X).__name__}, which Rows.from_arrays may take")
    check_names(label, weights)
    for parameter, given, column, name in (
        ("y", y, "label", label),
        ("sample_weight", sample_weight, "weights", weights),
    ):
        if given is not None and name is not None:
            raise ValueError(f"{parameter} and {column} are two sources of the same: give one of them")
        if given is not None and not _is_table(given):
            raise ValueError(
                f"{parameter} must be a Dask array or series with the partitions of X; got {type(given).__name__}: "
                f"make it a column of X, which {column} names, or one of them by dask.array.from_array"
            )
        if name is not None and not hasattr(X, "columns"):
            raise ValueError(f"{column} names a column, and X is a Dask array: give {parameter}")
    if getattr(X, "numblocks", (1, 1))[1:] not in ((), (1,)):
        X = X.rechunk({1: -1})
    parts = [np.ravel(c.to_delayed()) if c is not None else None for c in (X, y, sample_weight)]
    wrong = [len(collection) for collection in parts if collection is not None and len(collection) != len(parts[0])]
    if wrong:
        raise ValueError(f"X has {len(parts[0])} partitions, and its labels or weights {wrong[0]}: rechunk them")
    made = dask.delayed(_block_of, pure=True)
    given = (parts[0], *(collection if collection is not None else [None] * len(parts[0]) for collection in parts[1:]))
    return [made(*collection, label, weights, f"partition {k}") for k, collection in enumerate(zip(*given))]


def _is_table(X: Any) -> bool:
    """Whether X is an array, frame or series of Dask, no bag and nothing delayed, which has whatever is asked for."""
    return hasattr(X, "to_delayed") and isinstance(getattr(X, "ndim", None), int)


def changed(parts: Sequence[Any], change: Callable[[Block], Block]) -> list[Any]:
    """The blocks with each changed, where it is."""
    import dask

    made = dask.delayed(partial(_changed_if_any, change), pure=False)
    return [made(part) for part in parts]


def results_of(parts: Sequence[Any], task: Callable[[Block], Any]) -> list[Any]:
    """What a task makes of each block, by one call a worker; under a scheduler without workers a task a block."""
    import dask

    share, client = partial(_results_of_blocks, task), _client()
    if client is None:
        results = dask.compute(*[dask.delayed(share, pure=False)([part]) for part in parts])
        return [result for (of_block,) in results for result in of_block]
    futures = [client.futures_of(part)[0] for part in parts]
    shares = _shares(client, futures)
    calls = [
        client.submit(share, [futures[k] for k in numbers], workers=[worker], allow_other_workers=True, pure=False)
        for worker, numbers in shares.items()
    ]
    found: dict[int, list[Any]] = {}
    for numbers, results in zip(shares.values(), client.gather(calls)):
        found.update(zip(numbers, results))
    return [result for k in sorted(found) for result in found[k]]


def lazy_array(parts: Sequence[Any], function: Callable[[Any], Array], like: Array) -> Any:
    """A Dask array, which is not computed: a ``function`` of the X of each block, ``like`` that of no rows."""
    from dask import array as da
    from dask import delayed

    made = delayed(partial(_prediction, function, like), pure=False)
    shape = np.nan, *like.shape[1:]
    return da.concatenate([da.from_delayed(made(part), shape, dtype=like.dtype) for part in parts])


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
        holders = [worker for worker in where.get(future.key, ()) if len(shares.get(worker, range(most))) < most]
        shares[min(holders or shares, key=lambda worker: len(shares[worker]))].append(k)
    return {worker: holders for worker, holders in shares.items() if holders}


def _block_of(X: Any, y: Any, weight: Any, label: str | None, weights: str | None, name: str) -> Block:
    """The block of a partition."""
    taken = [column for column in (label, weights) if column is not None]
    absent = [column for column in taken if column not in X.columns]
    if absent:
        raise ValueError(f"{name} has no column {absent[0]!r}; it has {list(X.columns)}")
    y = X[label].to_numpy() if label is not None else None if y is None else np.asarray(y)
    weight = X[weights].to_numpy() if weights is not None else None if weight is None else np.asarray(weight)
    return Block(X.drop(columns=taken) if taken else X, y, weight, name)


def _results_of_blocks(task: Callable[[Block], Any], blocks: list[Block]) -> list[list[Any]]:
    """What a task makes of some blocks: a list for each, of one result, or empty as the block is."""
    return [[attempt(task, block)] if block.n else [] for block in blocks]


def _changed_if_any(change: Callable[[Block], Block], block: Block) -> Block:
    """The block changed, if it has rows."""
    return attempt(change, block) if block.n else block


def _prediction(function: Callable[[Any], Array], like: Array, block: Block) -> Array:
    """A function of the X of a block, and what is ``like`` it where there are no rows."""
    return attempt(OfX(function), block) if block.n else like
