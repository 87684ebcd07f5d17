"""Gram matrices whose entries are computed in tiles when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from fenchel._threads import in_threads, threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel.design import Factored, KernelValues
from fenchel.kernels.resolving import as_scalar_kernel
from fenchel.kernels.tiles import Filler, KernelFunctions, against, for_threads

_TILE_BYTES, _TILE_COLUMNS = 2**19, 512  # half a MiB of kernel values stays in cache
_STRIP = 128  # rows of a block at a time
_PARTS = 16  # sums that are held at once, however many threads there are
_LEAST_SHARED = 4096  # rows from which on threads save more than waking them costs
_SMALLEST = 1e-30  # largest value of a kernel, or its inverse, that single precision has room for
_Result = TypeVar("_Result")


class Computed(KernelValues):
    """Gram matrix whose entries are computed in tiles and never stored as a whole.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The rows. All kernel values have their precision, double or single.
    kernel : kernel
        A kernel whose length scales are numbers, not rules.
    make_low_rank : callable, optional
        Function that returns the result of :meth:`low_rank`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Gram
    >>> from fenchel.kernels import Computed, Gaussian
    >>> values = Computed(np.array([[0.0], [1.0]]), Gaussian(1.0))
    >>> values.times(np.ones((2, 1))).round(3)[:, 0]
    array([1.607, 1.607])
    >>> design = Gram(values, np.eye(1))
    """

    matrix: FloatArray | None = None
    left_factor: Factored | None = None

    def __init__(
        self,
        rows: FloatArray,
        kernel: Kernel,
        make_low_rank: Callable[[], FloatArray] | None = None,
    ) -> None:
        self._rows, self._kernel = as_scalar_kernel(kernel).reduced(rows)
        self._make_low_rank, self._in_threads = make_low_rank, for_threads(kernel)
        self.size = len(rows)
        self.diagonal: FloatArray = np.asarray(self._kernel.diag(self._rows), dtype=np.float64)

    def factored(self, shift: FloatArray) -> Factored:
        everything = np.arange(self.size)
        values = np.asarray(self.block(everything, everything), dtype=np.float64)
        return Factored(values).factor(shift)

    def restore(self) -> None:
        pass

    @cached_property
    def in_single(self) -> Computed:
        """The matrix in single precision, in half the time, if single precision can hold it."""
        if not _SMALLEST < float(self.diagonal.max()) < 1.0 / _SMALLEST:
            return self
        shift = self._rows.mean(axis=0) if self._kernel.is_stationary() else 0.0
        return Computed((self._rows - shift).astype(np.float32), self._kernel)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        values = np.empty((len(rows), len(columns)), self._rows.dtype)
        fill = against(self._kernel, self._rows[columns])(self._rows[rows])

        def task(start: int) -> None:
            part = slice(start, start + _STRIP)
            fill(part, slice(None), values[part])

        self._share(task, range(0, len(rows), _STRIP))
        return values

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        vectors = np.asarray(vectors, self._rows.dtype)
        if rows is None:
            return self._all_times(vectors)
        return KernelFunctions(self._kernel, self._rows[rows]).combined(self._rows, vectors)

    def _all_times(self, vectors: FloatArray) -> FloatArray:
        """Each value once, for itself and for its mirror image.

        In parts, each of tiles of rows from both ends of the triangle, that are added up in order.
        """
        fill = against(self._kernel, self._rows)(self._rows)
        height = _TILE_BYTES // (_TILE_COLUMNS * self._rows.itemsize)
        starts = list(range(0, self.size, height))

        def task(part: int) -> FloatArray:
            product = np.zeros((self.size, vectors.shape[1]), self._rows.dtype)
            work = np.empty(height * _TILE_COLUMNS, self._rows.dtype)
            for first in starts[part::_PARTS]:
                rows = slice(first, min(first + height, self.size))
                self._add_tiles(fill, rows, vectors, product, work)
            return product

        first, *others = self._share(task, range(min(_PARTS, len(starts))))
        for other in others:
            first += other
        return first

    def _add_tiles(
        self, fill: Filler, rows: slice, vectors: FloatArray, product: FloatArray, work: FloatArray
    ) -> None:
        """Add what some rows and those behind them have of K times vectors."""
        n_rows = rows.stop - rows.start

        def tile(columns: slice) -> FloatArray:
            values = work[: n_rows * (columns.stop - columns.start)].reshape(n_rows, -1)
            fill(rows, columns, values)
            return values

        product[rows] += np.dot(tile(rows), vectors[rows])
        for start in range(rows.stop, self.size, _TILE_COLUMNS):
            columns = slice(start, min(start + _TILE_COLUMNS, self.size))
            values = tile(columns)
            product[rows] += np.dot(values, vectors[columns])
            product[columns] += np.dot(values.T, vectors[rows])

    def _share(self, task: Callable[[int], _Result], parts: Sequence[int]) -> list[_Result]:
        """Results of parts, in threads if the kernel may be evaluated in several.

        Linear algebra has one: its products are those of tiles.
        """
        if self._in_threads and self.size >= _LEAST_SHARED:
            return in_threads(task, parts)
        with threads_that_pay(0):
            return [task(part) for part in parts]

    def subset(self, rows: IntArray) -> Computed:
        return Computed(self._rows[rows], self._kernel)

    def low_rank(self) -> FloatArray | None:
        return None if self._make_low_rank is None else self._make_low_rank()
