"""Triangular systems for many rows, in place and without the lock of the interpreter."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from fenchel._typing import FloatArray


@cache
def _trsm() -> Any:
    """BLAS's routine as scipy has it, of which the wrapper in Python lets no other thread run."""
    address = get_cython_function_address("scipy.linalg.cython_blas", "dtrsm")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(address)


def solve_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    r"""Replace rows k by :math:`L^{-1} k`, and return them.

    Parameters
    ----------
    factor : ndarray of shape (r, r)
        L, of which only the lower triangle is read.
    rows : ndarray of shape (m, r)
        Overwritten where it is in C order, and else a copy of it.

    Returns
    -------
    ndarray of shape (m, r)
        In C order.
    """
    rows = np.ascontiguousarray(rows)
    m, r = rows.shape
    if m == 0 or r == 0:
        return rows
    lower = np.asfortranarray(factor)
    size, number, one = ctypes.c_int(r), ctypes.c_int(m), ctypes.c_double(1.0)
    letters = [ctypes.c_char(letter) for letter in (b"L", b"L", b"N", b"N")]
    arguments: list[Any] = [*letters, size, number, one]
    pointers = [ctypes.addressof(each) for each in arguments]
    _trsm()(*pointers, lower.ctypes.data, pointers[4], rows.ctypes.data, pointers[4])
    return rows
