"""Points that grow in number: kernel values against rows, and dual coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.kernels import Gaussian

_SMALLEST = 64
_FAR = 1e3  # squared lengths up to which distances by one product lose no digits that matter


class Points:
    """Rows in a buffer that doubles, with the kernel between them and others.

    The rows up to ``count`` are never changed in place: a view of them stays what it is.
    """

    def __init__(self, kernel: Any, rows: FloatArray, count: int) -> None:
        self.kernel = kernel
        self.rows = rows
        self.count = count
        self._lift = None
        if type(kernel) is Gaussian and count:
            self._lift = _Lift(kernel, rows[:count])

    def against(self, rows: FloatArray, new: AnyArray) -> tuple[FloatArray, bool]:
        """Kernel of rows (b, d) with all points and then with ``rows[new]``, (b, count + new).

        If the second is True, it is the logarithm of the kernel. Good until the next call.
        """
        candidates = rows[new]
        stop = self.count + len(candidates)
        if len(candidates):
            self.rows = _with_room(self.rows, self.count, stop)
            self.rows[self.count : stop] = candidates
        if self._lift is None and type(self.kernel) is Gaussian and stop:
            self._lift = _Lift(self.kernel, self.rows[:stop])
        if self._lift is not None:
            exponents = self._lift.against(rows, new, self.count)
            if exponents is not None:
                return exponents, True
        return np.ascontiguousarray(self.kernel(rows, self.rows[:stop])), False

    def values(self, rows: FloatArray) -> FloatArray:
        """Kernel of rows (b, d) with all points, (b, count)."""
        found, logarithm = self.against(rows, np.zeros(len(rows), dtype=bool))
        return np.exp(found, out=found) if logarithm else found

    def keep(self, kept: IntArray, start: int) -> None:
        """Keep these of the points and candidates of the last call, in this order.

        The first ``start`` are all points there were, or none.
        """
        if start == 0:
            rows = np.zeros_like(self.rows)
            rows[: len(kept)] = self.rows[kept]
            self.rows = rows
        elif len(kept) > start:
            self.rows[start : len(kept)] = self.rows[kept[start:]]
        if self._lift is not None:
            self._lift.move(kept[start:], start)
        self.count = len(kept)


class Coordinates:
    """Points, the three numbers of each, and which of the rows of this call they are.

    Works on copies of what may be changed in place.
    """

    def __init__(self, kernel: Any, rows: FloatArray, dual: FloatArray, n_rows: int) -> None:
        self.points = Points(kernel, rows, len(dual))
        self.own: IntArray = np.zeros(0, dtype=np.intp)
        """Place of the point of each row in the block."""
        self.arrival: IntArray = np.zeros(0, dtype=np.intp)
        """Order in which points came that have a coefficient, -1 of rows that may become one."""
        self._dual = dual.copy()
        self._row_of = np.full(len(dual), -1)  # rows of earlier calls have no number
        self._point_of = np.full(n_rows, -1)

    @property
    def count(self) -> int:
        """Number of points."""
        return self.points.count

    @property
    def dual(self) -> FloatArray:
        """a', a and the sum over iterates, (m, 3), of the points and the new rows."""
        return self._dual[: max(self.count, len(self.arrival))]

    @property
    def state(self) -> tuple[IntArray, FloatArray, IntArray]:
        """What steps read and change: ``own``, ``dual`` and ``arrival``."""
        return self.own, self.dual, self.arrival

    def enter(self, rows: FloatArray, block: IntArray) -> tuple[FloatArray, bool]:
        """Make room for a block of rows; their kernel with all points, as ``Points.against``."""
        self.own = self._point_of[block]
        new = self.own < 0
        before, after = self.count, self.count + int(np.count_nonzero(new))
        self.own[new] = np.arange(before, after)
        self.arrival = np.arange(after)
        self.arrival[before:] = -1
        self._dual = _with_room(self._dual, before, after)
        self._row_of = _with_room(self._row_of, before, after)
        self._dual[before:after] = 0.0
        self._row_of[before:after] = block[new]
        return self.points.against(rows, new)

    def settle(self) -> None:
        """Keep the points that have a coefficient, in the order in which they came."""
        kept = np.flatnonzero(self.arrival >= 0)
        kept = kept[np.argsort(self.arrival[kept])]
        before = self.count
        start = before if np.array_equal(kept[:before], np.arange(before)) else 0
        self._point_of[self._row_of[before : len(self.arrival)]] = -1
        for buffer in (self._dual, self._row_of):
            buffer[start : len(kept)] = buffer[kept[start:]]
        self.points.keep(kept, start)
        if start == 0:
            self._point_of[:] = -1
        mine = start + np.flatnonzero(self._row_of[start : len(kept)] >= 0)
        self._point_of[self._row_of[mine]] = mine
        self.arrival = self.arrival[:0]


def _with_room(buffer: AnyArray, count: int, needed: int) -> AnyArray:
    """The buffer, or one of at least twice its length with the same first rows.

    A buffer that was loaded as read-only is never written to.
    """
    if needed <= len(buffer) and buffer.flags.writeable:
        return buffer
    larger = np.zeros((max(needed, 2 * len(buffer), _SMALLEST), *buffer.shape[1:]), buffer.dtype)
    larger[:count] = buffer[:count]
    return larger


class _Lift:
    """Gaussian kernel by one product: -½‖x - z‖² = (x, -½‖x‖², 1)·(z, 1, -½‖z‖²)."""

    def __init__(self, kernel: Gaussian, rows: FloatArray) -> None:
        self._scale = kernel.length_scale
        self._origin = rows[0].copy()
        self._scratch = np.zeros(0)  # fresh memory costs more than the values in it
        scaled, half = self._scaled(rows)
        self._lifted = np.zeros((0, rows.shape[1] + 2))
        self._longest = 0.0
        self._place(scaled, half, 0)

    def against(self, rows: FloatArray, new: AnyArray, count: int) -> FloatArray | None:
        """Logarithms of the kernel, or None where rows lie too far apart for this."""
        scaled, half = self._scaled(rows)
        if np.any(new):
            self._place(scaled[new], half[new], count)
        if max(self._longest, float(-2.0 * half.min())) > _FAR:
            return None
        left = np.empty((len(rows), scaled.shape[1] + 2))
        left[:, :-2], left[:, -2], left[:, -1] = scaled, half, 1.0
        columns = count + np.count_nonzero(new)
        size = len(rows) * columns
        if self._scratch.size < size:
            self._scratch = np.empty(2 * size)
        products = self._scratch[:size].reshape(len(rows), columns)
        return np.matmul(left, self._lifted[:columns].T, out=products)

    def move(self, kept: AnyArray, start: int) -> None:
        if len(kept):
            self._lifted[start : start + len(kept)] = self._lifted[kept]

    def _place(self, scaled: FloatArray, half: FloatArray, count: int) -> None:
        self._longest = max(self._longest, float(-2.0 * half.min()))
        stop = count + len(scaled)
        self._lifted = _with_room(self._lifted, count, stop)
        self._lifted[count:stop, :-2] = scaled
        self._lifted[count:stop, -2] = 1.0
        self._lifted[count:stop, -1] = half

    def _scaled(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scaled = (rows - self._origin) / self._scale
        return scaled, -0.5 * np.einsum("ij,ij->i", scaled, scaled)
