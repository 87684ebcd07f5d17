"""Blocks of rows, which define how all passes over rows are divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fenchel._compiling import announce_compilation, njit
from fenchel._threads import in_threads
from fenchel._typing import FloatArray

BLOCK_VALUES = 2**17  # 1 MiB of numbers: a block and its temporaries stay in cache
_LEAST_ROWS = 2048  # fewer cost more in calls than they save in cache misses
_MOST_PARTS = 128  # of a pass, for threads to share: 16 threads wait little for the last one
MOST_SUMS = 2**24  # 128 MiB of numbers: partial sums of a pass, in memory at once

announce_compilation()  # every estimator has a design

_Result = TypeVar("_Result")
Sums: TypeAlias = tuple[FloatArray | float, ...]


class RowBlocks:
    """Consecutive rows in blocks, for passes in several threads.

    A pass uses as many threads as the user allows. Which blocks are processed together, and in
    which order results are added, depends only on the numbers of rows and blocks. The results are
    therefore bit for bit the same for any number of threads.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    width : int
        Number of values that are read for each row.
    most_parts : int, default=128
        Maximum number of partial sums in memory; more than 128 count as 128.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import RowBlocks
    >>> values = np.ones(5000)
    >>> blocks = RowBlocks(n_rows=5000, width=100)
    >>> list(blocks)
    [slice(0, 2048, None), slice(2048, 4096, None), slice(4096, 5000, None)]
    >>> blocks.sum(lambda rows: (values[rows].sum(),))
    (array(5000.),)
    """

    def __init__(self, n_rows: int, width: int, most_parts: int = _MOST_PARTS) -> None:
        self.n_rows, self.most_parts = n_rows, min(max(most_parts, 1), _MOST_PARTS)
        self.block_rows = max(_LEAST_ROWS, BLOCK_VALUES // max(width, 1))

    def __iter__(self) -> Iterator[slice]:
        return self._within(slice(0, self.n_rows))

    def _within(self, part: slice) -> Iterator[slice]:
        for start in range(part.start, part.stop, self.block_rows):
            yield slice(start, min(start + self.block_rows, part.stop))

    @property
    def _parts(self) -> list[slice]:
        """Blocks that one thread passes over, one after the other."""
        n_blocks = -(-self.n_rows // self.block_rows)
        size = -(-n_blocks // self.most_parts) * self.block_rows
        starts = range(0, self.n_rows, max(size, 1))
        return [slice(start, min(start + size, self.n_rows)) for start in starts]

    def map(self, task: Callable[[slice], _Result]) -> list[_Result]:
        """Return the results of ``task`` for each block, in order.

        The task may write to arrays, but only to the rows of its block.
        """
        if 0 < self.n_rows <= self.block_rows:
            return [task(slice(0, self.n_rows))]
        found = in_threads(lambda part: [task(block) for block in self._within(part)], self._parts)
        return [each for part in found for each in part]

    def sum(self, task: Callable[[slice], Sums]) -> tuple[Any, ...]:
        """Return the sums, entry by entry, of the numbers and arrays that ``task`` returns.

        For a single block, the result of the task is returned unchanged, which is faster for few
        rows.
        """
        if self.n_rows <= self.block_rows:
            return task(slice(0, self.n_rows))

        def run(part: slice) -> list[FloatArray]:
            blocks = self._within(part)
            total = [np.array(each, dtype=np.float64) for each in task(next(blocks))]
            for block in blocks:
                for k, each in enumerate(task(block)):
                    total[k] += each
            return total

        first, *others = in_threads(run, self._parts)
        for other in others:
            for k, each in enumerate(other):
                first[k] += each
        return tuple(first)

    def sizes_and_sums(
        self, weight: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Sums of ``c_i |v_i|`` and ``c_i v_i``, (p,), for weights c (n,) and values v (n, p)."""
        p = values.shape[1]

        def task(rows: slice) -> Sums:
            sums = np.zeros((2, p))
            _add_sizes_and_values(weight[rows], values[rows], sums)
            return (sums,)

        sizes, sums = self.sum(task)[0]
        return sizes, sums


@njit(cache=True, nogil=True)
def _add_sizes_and_values(weight: FloatArray, values: FloatArray, sums: FloatArray) -> None:
    """Add ``c_i |v_i|`` to the first row of the sums (2, p), and ``c_i v_i`` to the second."""
    m, p = values.shape
    for i in range(m):
        for j in range(p):
            part = weight[i] * values[i, j]
            sums[0, j] += abs(part)
            sums[1, j] += part


@njit(cache=True, nogil=True)
def subtract_from(targets: FloatArray, offset: FloatArray, values: FloatArray) -> None:
    """Replace values (m, p) by targets (m, p) or (m, 1) minus values minus offset (p,).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import subtract_from
    >>> values = np.array([[1.0], [2.0]])
    >>> subtract_from(np.array([[5.0], [5.0]]), np.array([0.5]), values)
    >>> values[:, 0]
    array([3.5, 2.5])
    """
    m, p = values.shape
    single = targets.shape[1] == 1
    for i in range(m):
        for j in range(p):
            values[i, j] = targets[i, 0 if single else j] - (values[i, j] + offset[j])


@njit(cache=True, nogil=True)
def row_products(values: FloatArray, targets: FloatArray, products: FloatArray) -> None:
    """Write inner products (m,) of rows of values (m, p) with targets (m, p) or (m, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import row_products
    >>> products = np.empty(2)
    >>> row_products(np.eye(2), np.array([[5.0, 1.0], [1.0, 7.0]]), products)
    >>> products
    array([5., 7.])
    """
    m, p = values.shape
    single = targets.shape[1] == 1
    for i in range(m):
        total = 0.0
        for j in range(p):
            total += values[i, j] * targets[i, 0 if single else j]
        products[i] = total


@njit(cache=True, nogil=True)
def multiply_rows(values: FloatArray, weight: FloatArray) -> None:
    """Multiply each row of values (m, p) by its weight, in place.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import multiply_rows
    >>> values = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> multiply_rows(values, np.array([2.0, 0.0]))
    >>> values
    array([[2., 4.],
           [0., 0.]])
    """
    m, p = values.shape
    for i in range(m):
        for j in range(p):
            values[i, j] *= weight[i]
