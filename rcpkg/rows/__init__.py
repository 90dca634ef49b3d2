"""Rows in blocks that can be gone through again, and *ordered* sums of a task over them.

A sum is added up block after block, in the order of the blocks, whoever computed which: in memory, from Parquet and on
Dask the same blocks give the same bits. What is in memory is one block, unless it is divided.
"""

from rcpkg.rows.block import Block as Block
from rcpkg.rows.block import OfX as OfX
from rcpkg.rows.block import check_lengths as check_lengths
from rcpkg.rows.rows import Blocks as Blocks
from rcpkg.rows.rows import Rows
from rcpkg.rows.rows import by_block as by_block
from rcpkg.rows.rows import in_memory as in_memory

__all__ = ["Rows"]  # the others are for the rooms above
