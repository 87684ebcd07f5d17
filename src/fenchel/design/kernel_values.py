"""Kernel values among rows: stored as a matrix, or computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from fenchel._compiling import njit
from fenchel._threads import in_threads, threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Design
from fenchel.design.factored import Factored
from fenchel.design.tiled import multiplied

_GATHERED = 6  # times the rows whose copy pays for a product with them alone
_TILE_BYTES, _TILE_COLUMNS = 2**19, 512  # half a MiB of kernel values stays in cache
_TASK_COLUMNS = 4 * _TILE_COLUMNS
_STRIP = 128  # rows of a block at a time
_PARTS = 16  # sums that are held at once, however many threads there are
_LEAST_SHARED = 4096  # rows from which on threads save more than waking them costs
_SMALLEST = 1e-30  # largest value of a kernel, or its inverse, that single precision has room for
_Result = TypeVar("_Result")


class KernelValues(Protocol):
    """A Gram matrix K as :class:`fenchel.design.Gram` asks for it.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Computed, KernelValues
    >>> from fenchel.kernels import Gaussian
    >>> values: KernelValues = Computed(np.array([[0.0], [1.0]]), Gaussian(1.0))
    >>> values.block(np.array([0]), np.array([0, 1])).round(3)
    array([[1.   , 0.607]])
    """

    size: int
    diagonal: FloatArray
    left_factor: Factored | None
    """The factor that is now in the place of stored values, see :meth:`factored`."""

    @property
    def matrix(self) -> FloatArray | None:
        """All of K, where it is stored."""
        ...

    def factored(self, shift: FloatArray) -> Factored:
        """Return the factor of K + diag(shift), in the array of K where it is stored."""
        ...

    def restore(self) -> None:
        """Put stored values back where a factor is."""
        ...

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the values between some rows and others, (k, m)."""
        ...

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return K times vectors (n, p), or its columns at ``rows`` times vectors (k, p)."""
        ...

    @property
    def in_single(self) -> KernelValues:
        """The same in single precision, where that saves time."""
        ...

    def subset(self, rows: IntArray) -> KernelValues:
        """Return the values among some rows."""
        ...

    def low_rank(self) -> FloatArray | None:
        """Return features (n, r) with products near these values, if there is need of them."""
        ...


class Stored(KernelValues):
    """A Gram matrix in memory."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self.size = len(matrix)
        self.diagonal: FloatArray = matrix.diagonal().copy()
        self.left_factor: Factored | None = None

    @property
    def matrix(self) -> FloatArray:
        self.restore()
        return self._matrix

    def factored(self, shift: FloatArray) -> Factored:
        matrix = self.matrix
        if not (matrix.flags.carray and matrix.dtype == np.float64):
            return Factored(np.array(matrix, np.float64, order="C")).factor(shift)
        self.left_factor = Factored(matrix)
        return self.left_factor.factor(shift)

    def restore(self) -> None:
        if self.left_factor is not None:
            self.left_factor.restore()
            self.left_factor = None

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.matrix[np.ix_(rows, columns)]

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        if rows is not None and _GATHERED * len(rows) < self.size:
            return multiplied(self.matrix[rows].T, vectors)
        if rows is not None:
            whole = np.zeros((self.size, vectors.shape[1]))
            whole[rows] = vectors
            vectors = whole
        left = self.left_factor
        return multiplied(self._matrix, vectors) if left is None else left.product(vectors)

    @property
    def in_single(self) -> Stored:
        return self

    def subset(self, rows: IntArray) -> Stored:
        return Stored(self.block(rows, rows))

    def low_rank(self) -> None:
        return None


class Computed(KernelValues):
    """Kernel values computed in tiles, and never all at once.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        What ``kernel`` takes.
    kernel : object
        Has ``fill(X, Y, out)``, which writes values into an array of either precision, and
        ``diag(X)``.
    make_low_rank : callable, optional
        Returns what :meth:`low_rank` does.
    in_threads : bool, default=True
        Whether ``fill`` may be called from several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Computed, Gram
    >>> from fenchel.kernels import Gaussian
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
        kernel: Any,
        make_low_rank: Callable[[], FloatArray] | None = None,
        *,
        in_threads: bool = True,
    ) -> None:
        self._rows, self._kernel, self._make_low_rank = rows, kernel, make_low_rank
        self._in_threads = in_threads
        self._tile_rows = _TILE_BYTES // (_TILE_COLUMNS * rows.itemsize)
        self.size = len(rows)
        self.diagonal: FloatArray = np.asarray(kernel.diag(rows), dtype=np.float64)

    def factored(self, shift: FloatArray) -> Factored:
        everything = np.arange(self.size)
        values = np.asarray(self.block(everything, everything), dtype=np.float64)
        return Factored(values).factor(shift)

    def restore(self) -> None:
        pass

    @cached_property
    def in_single(self) -> Computed:
        """The same values in single precision, in half of the time, where it can hold them."""
        if not _SMALLEST < float(self.diagonal.max()) < 1.0 / _SMALLEST:
            return self
        shift = self._rows.mean(axis=0) if self._kernel.is_stationary() else 0.0
        centred = self._rows - shift
        return Computed(centred.astype(np.float32), self._kernel, in_threads=self._in_threads)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        own, others = self._rows[rows], self._rows[columns]
        values = np.empty((len(rows), len(columns)), self._rows.dtype)

        def task(start: int) -> None:
            part = slice(start, start + _STRIP)
            self._kernel.fill(own[part], others, values[part])

        self._share(task, range(0, len(rows), _STRIP))
        return values

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        vectors = np.asarray(vectors, self._rows.dtype)
        if rows is None:
            return self._all_times(vectors)
        among, product = self._rows[rows], np.zeros((self.size, vectors.shape[1]))

        def task(task_start: int) -> None:
            tiles, stop = self._tiles(), min(task_start + _TASK_COLUMNS, self.size)
            for start in range(task_start, stop, _TILE_COLUMNS):
                columns = slice(start, min(start + _TILE_COLUMNS, stop))
                for first in range(0, len(rows), self._tile_rows):
                    part = slice(first, first + self._tile_rows)
                    tile = tiles.values(among[part], self._rows[columns])
                    product[columns] += tile.T @ vectors[part]

        self._share(task, range(0, self.size, _TASK_COLUMNS))
        return product

    def _all_times(self, vectors: FloatArray) -> FloatArray:
        """Each value once, for itself and for its mirror image.

        In parts, each of tiles of rows from both ends of the triangle, that are added up in order.
        """
        starts = list(range(0, self.size, self._tile_rows))

        def task(part: int) -> FloatArray:
            product, tiles = np.zeros((self.size, vectors.shape[1])), self._tiles()
            for first in starts[part::_PARTS]:
                self._add_tiles(tiles, first, vectors, product)
            return product

        first, *others = self._share(task, range(min(_PARTS, len(starts))))
        for other in others:
            first += other
        return first

    def _add_tiles(
        self, tiles: _Tiles, first: int, vectors: FloatArray, product: FloatArray
    ) -> None:
        """Add what some rows and those behind them have of K times vectors."""
        part = slice(first, min(first + self._tile_rows, self.size))
        own = self._rows[part]
        product[part] += tiles.values(own, own) @ vectors[part]
        for start in range(part.stop, self.size, _TILE_COLUMNS):
            columns = slice(start, start + _TILE_COLUMNS)
            tile = tiles.values(own, self._rows[columns])
            product[part] += tile @ vectors[columns]
            product[columns] += tile.T @ vectors[part]

    def _tiles(self) -> _Tiles:
        return _Tiles(self._kernel, self._rows.dtype)

    def _share(self, task: Callable[[int], _Result], parts: Sequence[int]) -> list[_Result]:
        """Results of parts, in threads if the kernel may be evaluated in several.

        Linear algebra has one: its products are those of tiles.
        """
        if self._in_threads and self.size >= _LEAST_SHARED:
            return in_threads(task, parts)
        with threads_that_pay(0):
            return [task(part) for part in parts]

    def subset(self, rows: IntArray) -> Computed:
        return Computed(self._rows[rows], self._kernel, in_threads=self._in_threads)

    def low_rank(self) -> FloatArray | None:
        return None if self._make_low_rank is None else self._make_low_rank()


class _Tiles:
    """Kernel values in memory that is used again and again."""

    def __init__(self, kernel: Any, precision: Any) -> None:
        self._kernel = kernel
        self._memory = np.empty(_TILE_BYTES // np.dtype(precision).itemsize, precision)

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        tile = self._memory[: len(X) * len(Y)].reshape(len(X), len(Y))
        self._kernel.fill(X, Y, tile)
        return tile


class KernelColumns:
    """Functions whose inner products are kernel values times those of mixed vectors."""

    def __init__(
        self, design: Design, values: KernelValues, rows: IntArray, vectors: FloatArray
    ) -> None:
        assert design.coupling is not None
        self._design, self._kernel = design, values
        self._rows, self._vectors = rows, vectors
        self._mixed = vectors @ design.coupling

    def values(self, weights: FloatArray) -> FloatArray:
        """Inner products (k,) with the function of these weights."""
        image = self._design.predict(self._rows, self._design.directions(weights))
        return np.einsum("ip,ip->i", image, self._vectors)

    def gram(self) -> FloatArray:
        """Inner products among each other, (k, k)."""
        return self._kernel.block(self._rows, self._rows) * (self._mixed @ self._mixed.T)

    def fill(self, matrix: FloatArray) -> None:
        """Write the lower triangle of the identity plus :meth:`gram`."""
        whole = self._kernel.matrix
        if whole is not None:
            fill_lower(whole, self._rows, self._rows, self._mixed, matrix, 0)
            return
        unique, place = np.unique(self._rows, return_inverse=True)
        for start in range(0, len(self._rows), _STRIP):
            mine, source = np.unique(self._rows[start : start + _STRIP], return_inverse=True)
            fill_lower(self._kernel.block(mine, unique), source, place, self._mixed, matrix, start)

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Weights of the sum of ``sizes`` (k,) times the functions."""
        push = np.zeros((self._design.n_rows, self._design.n_outputs))
        np.add.at(push, self._rows, sizes[:, None] * self._vectors)
        return self._design.link(push)


@njit(cache=True, nogil=True)
def fill_lower(
    kernel: FloatArray,
    source: IntArray,
    place: IntArray,
    mixed: FloatArray,
    matrix: FloatArray,
    first: int,
) -> None:
    """Lower triangle of I + UUᵀ, some columns from the first on.

    Column ``first + b`` has kernel values ``kernel[source[b], place]``.
    """
    k, q = mixed.shape
    for b in range(first, first + source.size):
        values = kernel[source[b - first]]
        for a in range(b, k):
            product = 0.0
            for m in range(q):
                product += mixed[a, m] * mixed[b, m]
            matrix[a, b] = product * values[place[a]]
        matrix[b, b] += 1.0
