"""Dual coefficients and their points, while rows come in and points are given up."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.online._points import Points, with_room


class Coordinates:
    """Points, the three numbers of each, and which of the rows of this call they are.

    Works on copies of what may be changed in place.
    """

    def __init__(self, kernel: Any, rows: FloatArray, dual: FloatArray, n_rows: int) -> None:
        self.points = Points(kernel, rows, len(dual))
        self.own: IntArray = np.zeros(0, dtype=np.intp)
        """Place of the point of each row in the block."""
        self.stored: AnyArray = np.zeros(0, dtype=bool)
        """Whether a point, or a row that may become one, has a coefficient."""
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
        return self._dual[: max(self.count, len(self.stored))]

    @property
    def state(self) -> tuple[IntArray, FloatArray, AnyArray]:
        """What steps read and change: ``own``, ``dual`` and ``stored``."""
        return self.own, self.dual, self.stored

    def enter(self, rows: FloatArray, block: IntArray) -> tuple[FloatArray, bool]:
        """Make room for a block of rows; their kernel with all points, as ``Points.against``."""
        self.own = self._point_of[block]
        new = self.own < 0
        before, after = self.count, self.count + int(np.count_nonzero(new))
        self.own[new] = np.arange(before, after)
        self.stored = np.arange(after) < before
        self._dual = with_room(self._dual, before, after)
        self._row_of = with_room(self._row_of, before, after)
        self._dual[before:after] = 0.0
        self._row_of[before:after] = block[new]
        return self.points.against(rows, new)

    def settle(self) -> None:
        """Keep the points that are stored."""
        kept = np.flatnonzero(self.stored)
        before = self.count
        start = before if np.all(self.stored[:before]) else 0
        self._point_of[self._row_of[before : len(self.stored)]] = -1
        for buffer in (self._dual, self._row_of):
            buffer[start : len(kept)] = buffer[kept[start:]]
        self.points.keep(self.stored)
        if start == 0:
            self._point_of[:] = -1
        mine = start + np.flatnonzero(self._row_of[start : len(kept)] >= 0)
        self._point_of[self._row_of[mine]] = mine
        self.stored = self.stored[:0]
