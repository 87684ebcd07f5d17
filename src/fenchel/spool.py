"""Rows of numbers in a temporary file: read in pieces, so that they take no memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from fenchel._typing import AnyArray, FloatArray

_PIECE = 2**14  # numbers that are read at once where single rows are asked for
_BYTES = 8


class RowsOnDisk:
    """Rows (n, d) that are read when they are asked for: ``rows[10:20]``, ``rows[[3, 5]]``.

    A subclass defines ``_read(start, stop)``, which may be called from several threads. Arrays
    that are returned are not to be written into: a thread that asks for the same slice twice
    gets the same array.
    """

    ndim = 2
    dtype = np.dtype(np.float64)
    passed: Callable[[int, int], object] | None = None
    """Is told how many of all rows a pass over them has done, and how many there are."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.shape = n_rows, n_columns
        self._last = local()

    def __len__(self) -> int:
        return self.shape[0]

    def _read(self, start: int, stop: int) -> FloatArray:
        raise NotImplementedError

    def some(self, numbers: AnyArray) -> RowsOnDisk:
        """Rows by their numbers, as rows on disk themselves: nothing is read or copied yet."""
        return _Some(self, numbers)

    def forget(self) -> None:
        """Forget what was read last."""
        self._last = local()

    def __getitem__(self, rows: slice | AnyArray | list[int]) -> FloatArray:
        if not isinstance(rows, slice):
            return self._gathered(np.asarray(rows, dtype=np.intp))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self._gathered(np.arange(start, stop, step))
        known = getattr(self._last, "found", None)
        if known is None or known[0] != (start, stop):
            known = (start, stop), self._read(start, max(start, stop))
            self._last.found = known
        return known[1]

    def _gathered(self, rows: AnyArray) -> FloatArray:
        """Rows by their numbers, in any order, piece by piece of the file."""
        found = np.empty((len(rows), self.shape[1]))
        size = max(1, _PIECE // max(1, self.shape[1]))
        order = np.argsort(rows, kind="stable")
        pieces = rows[order] // size
        begins = np.flatnonzero(np.diff(pieces, prepend=-1)).tolist()
        for begin, end in pairwise([*begins, len(rows)]):
            some = order[begin:end]
            start = int(pieces[begin]) * size
            found[some] = self._read(start, min(start + size, len(self)))[rows[some] - start]
        return found


class _Some(RowsOnDisk):
    """Some of other rows."""

    def __init__(self, rows: RowsOnDisk, numbers: AnyArray) -> None:
        super().__init__(len(numbers), rows.shape[1])
        self.passed = rows.passed
        self._rows, self._numbers = rows, numbers

    def _read(self, start: int, stop: int) -> FloatArray:
        return self._rows[self._numbers[start:stop]]


class Spool(RowsOnDisk):
    """Rows in a temporary file, which is gone with them.

    Parameters
    ----------
    n_columns : int
    n_rows : int, default=0
        Rows that will be written by :meth:`write`; others are added by :meth:`append`.
    """

    def __init__(self, n_columns: int, n_rows: int = 0) -> None:
        super().__init__(n_rows, n_columns)
        number, path = tempfile.mkstemp(prefix="fenchel-")
        self._number = number
        weakref.finalize(self, os.close, number)
        Path(path).unlink()  # what is open is there until it is closed
        try:
            os.ftruncate(number, _BYTES * n_rows * n_columns)
        except OSError as error:
            raise _unwritten(error) from error

    def append(self, rows: FloatArray) -> None:
        """Add rows behind the others."""
        start = len(self)
        self.write(start, rows)
        self.shape = start + len(rows), self.shape[1]

    def write(self, start: int, rows: FloatArray) -> None:
        """Write rows from a number on, maybe from several threads."""
        left = _bytes(np.ascontiguousarray(rows, dtype=np.float64))
        place = _BYTES * start * self.shape[1]
        try:
            while left:
                done = os.pwrite(self._number, left, place)
                left, place = left[done:], place + done
        except OSError as error:
            raise _unwritten(error) from error

    def read(self, start: int, stop: int) -> FloatArray:
        """Rows in an array of the caller's, who may write into it."""
        found = np.empty((stop - start, self.shape[1]))
        left = _bytes(found)
        place = _BYTES * start * self.shape[1]
        while left:
            done = os.preadv(self._number, [left], place)
            if done == 0:
                raise OSError("a temporary file is shorter than what was written into it")
            left, place = left[done:], place + done
        return found

    _read = read


def _bytes(values: Any) -> memoryview:
    return memoryview(values).cast("B") if values.size else memoryview(b"")


def _unwritten(error: OSError) -> OSError:
    """What the system says, such as that a disk is full, with what to do."""
    return OSError(
        error.errno,
        f"rows are kept in a temporary file in {tempfile.gettempdir()}, which cannot be written "
        f"({error.strerror}): free space there, or set the environment variable TMPDIR to a "
        "folder on another disk",
    )


def fits_on_disk(n_rows: int, n_columns: int) -> bool:
    """Whether a temporary file of so many rows leaves as much room as it takes."""
    status = os.statvfs(tempfile.gettempdir())
    return 2 * _BYTES * n_rows * n_columns <= status.f_bavail * status.f_frsize
