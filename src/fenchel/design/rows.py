"""Rows in blocks: the only place that knows in which pieces rows are passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fenchel._typing import FloatArray

BLOCK_VALUES = 2**17  # 1 MiB of numbers: a block and its temporaries stay in cache
_LEAST_ROWS = 2048  # fewer cost more in calls than they save in cache misses


class RowBlocks:
    """Consecutive rows, block by block.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    width : int
        Numbers that are read for each row.
    """

    def __init__(self, n_rows: int, width: int) -> None:
        self.n_rows = n_rows
        self.block_rows = max(_LEAST_ROWS, BLOCK_VALUES // max(width, 1))

    def __iter__(self) -> Iterator[slice]:
        for start in range(0, self.n_rows, self.block_rows):
            yield slice(start, min(start + self.block_rows, self.n_rows))

    def sum(
        self, task: Callable[[slice], tuple[FloatArray | float, ...]]
    ) -> tuple[FloatArray, ...]:
        """Add up, entry by entry, what ``task`` returns for each block."""
        blocks = iter(self)
        total = [np.asarray(part, dtype=np.float64) for part in task(next(blocks))]
        for block in blocks:
            total = [a + b for a, b in zip(total, task(block), strict=True)]
        return tuple(total)
