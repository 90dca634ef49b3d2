"""Rows in blocks that can be gone through again, and *ordered* sums of a task over them.

A sum is added up block after block, in the order of the blocks, whoever computed which: in memory, from Parquet and on
Dask the same blocks give the same bits. What is in memory is one block, unless it is divided.
"""

from rcpkg.rows.block import Block, OfX, check_lengths
from rcpkg.rows.rows import Blocks, Rows, by_block, in_memory

__all__ = ["Block", "Blocks", "OfX", "Rows", "by_block", "check_lengths", "in_memory"]
