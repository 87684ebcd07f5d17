"""Rows in blocks: the only place that knows where the n-sized arrays live."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray

_BLOCK_VALUES = 2**17  # 1 MiB of features and targets: a block and its temporaries stay in cache


class Block(NamedTuple):
    """Consecutive rows of a problem."""

    rows: slice
    features: FloatArray
    targets: FloatArray
    weight: FloatArray


class RowBlocks:
    """Features (n, r) or (n, p, r), targets (n, p) or (n, 1), weights (n,): block by block.

    Anything that slices like an array will do, a memory-mapped one included: solvers ask
    for sums over rows through :meth:`sum` and never touch the whole.
    """

    def __init__(self, features: FloatArray, targets: FloatArray, weight: FloatArray) -> None:
        self.features = features
        self.targets = targets
        self.weight = weight
        self.n_rows = len(features)
        width = math.prod(features.shape[1:]) + targets.shape[1]
        self.block_rows = max(2048, _BLOCK_VALUES // width)

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            rows = slice(start, min(start + self.block_rows, self.n_rows))
            yield Block(rows, self.features[rows], self.targets[rows], self.weight[rows])

    def sum(
        self, task: Callable[[Block], tuple[FloatArray | float, ...]]
    ) -> tuple[FloatArray, ...]:
        """Add up, entry by entry, what ``task`` returns for each block."""
        blocks = iter(self)
        total = [np.asarray(part, dtype=np.float64) for part in task(next(blocks))]
        for block in blocks:
            total = [a + b for a, b in zip(total, task(block), strict=True)]
        return tuple(total)
