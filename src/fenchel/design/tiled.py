"""Dense linear algebra in tiles, with identical results for any number of threads.

The tiles, and the order of additions to each, depend only on the size of the matrix. BLAS uses one
thread for each tile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from scipy.linalg import lapack

from fenchel._threads import in_threads, threads_that_pay
from fenchel._typing import AnyArray, FloatArray
from fenchel.design.rows import MOST_SUMS, RowBlocks

_TILE = 256
_LEAST = 512  # rows from which on tiles pay
_BLOCK_VALUES = 2**18  # of a matrix, that a thread multiplies at a time
_FEW_PARTS = 48  # of the rows, each with a square of its own: with fewer, tiles pay
_LEAST_ROWS = 2048  # scaled at a time
_KINDS: dict[type, Any] = {bytes: ctypes.c_char, int: ctypes.c_int}
_REALS: dict[str, Any] = {"d": ctypes.c_double, "s": ctypes.c_float}


def factor_lower(matrix: AnyArray) -> bool:
    """Replace the lower triangle of a matrix by its Cholesky factor; return False if none exists.

    ``matrix`` is in Fortran order, in single or double precision. Entries above the diagonal are
    neither read nor written.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.tiled import factor_lower
    >>> matrix = np.array([[4.0, 7.0], [2.0, 2.0]], order="F")
    >>> factor_lower(matrix)
    True
    >>> matrix
    array([[2., 7.],
           [1., 1.]])
    """
    n = len(matrix)
    size, kind = matrix.itemsize, "d" if matrix.dtype == np.float64 else "s"
    if n < _LEAST:  # in a wrapper that costs less than the calls below
        with threads_that_pay(0):
            wrapped = lapack.dpotrf if kind == "d" else lapack.spotrf
            return n == 0 or wrapped(matrix, lower=1, clean=0, overwrite_a=1)[1] == 0
    tile = _TILE

    def at(i: int, j: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(matrix.ctypes.data + size * (i + j * n))

    def divide(i: int) -> None:  # rows from i on, of the columns from k on
        height = min(tile, n - i)
        _call(kind + "trsm", b"R", b"L", b"T", b"N", height, width, 1.0, at(k, k), n, at(i, k), n)

    def subtract(j: int) -> None:  # from the columns from j on
        wide = min(tile, n - j)
        _call(kind + "syrk", b"L", b"N", wide, width, -1.0, at(j, k), n, 1.0, at(j, j), n)
        if (high := n - j - wide) > 0:
            below, own = at(j + wide, k), at(j, k)
            sizes = high, wide, width
            _call(
                kind + "gemm", b"N", b"T", *sizes, -1.0, below, n, own, n, 1.0, at(j + wide, j), n
            )

    with threads_that_pay(0):
        for k in range(0, n, tile):
            width, info = min(tile, n - k), ctypes.c_int(0)
            _call(
                kind + "potrf", b"L", width, at(k, k), n, ctypes.c_void_p(ctypes.addressof(info))
            )
            if info.value:
                return False
            in_threads(divide, range(k + width, n, tile))
            in_threads(subtract, range(k + width, n, tile))
    return True


def inverse_lengths(factor: FloatArray) -> FloatArray:
    """Squared lengths (n,) of the columns of L⁻¹, the diagonal of the inverse of L Lᵀ.

    ``factor`` is in Fortran order. Only its lower triangle L is read.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.tiled import inverse_lengths
    >>> inverse_lengths(np.array([[2.0, 0.0], [0.0, 4.0]], order="F"))
    array([0.25  , 0.0625])
    """
    n = len(factor)
    lengths = np.empty(n)

    def task(j: int) -> None:
        wide, high = min(_TILE, n - j), n - j
        columns = np.eye(high, wide, order="F")
        own = ctypes.c_void_p(factor.ctypes.data + 8 * (j + j * n))
        into = ctypes.c_void_p(columns.ctypes.data)
        _call("dtrsm", b"L", b"L", b"N", b"N", high, wide, 1.0, own, n, into, high)
        lengths[j : j + wide] = np.einsum("ij,ij->j", columns, columns)

    in_threads(task, range(0, n, _TILE))
    return lengths


def solve_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Replace rows k (m, r) by L⁻¹ k, L the lower triangle of ``factor`` (r, r); return them.

    The result is in C order, and computed in place if the rows are in C order. The lock of the
    interpreter is released.
    """
    rows = np.ascontiguousarray(rows)
    m, r = rows.shape
    if rows.size:
        lower = np.asfortranarray(factor)
        at, into = (ctypes.c_void_p(each.ctypes.data) for each in (lower, rows))
        _call("dtrsm", b"L", b"L", b"N", b"N", r, m, 1.0, at, r, into, r)
    return rows


def multiplied(matrix: AnyArray, vectors: AnyArray) -> AnyArray:
    """Return a matrix (n, m), or the transpose of one, times vectors (m, p) or (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.tiled import multiplied
    >>> multiplied(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    if matrix.size <= _BLOCK_VALUES:
        with threads_that_pay(0):
            return np.asarray(np.dot(matrix, vectors))
    product = np.empty((len(matrix), *vectors.shape[1:]), matrix.dtype)
    _in_blocks(
        len(matrix), matrix.shape[1], lambda rows: _multiply(matrix, vectors, rows, product)
    )
    return product


def _multiply(matrix: AnyArray, vectors: AnyArray, rows: slice, product: AnyArray) -> None:
    np.dot(matrix[rows], vectors, out=product[rows])


def symmetric_product(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return a symmetric matrix, given by its strict lower triangle, times ``right`` (n, p).

    The diagonal is taken as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.tiled import symmetric_product
    >>> symmetric_product(np.array([[5.0, 7.0], [2.0, 5.0]]), np.array([[1.0], [10.0]]))
    array([[20.],
           [ 2.]])
    """
    n = len(lower)
    product = np.empty((n, right.shape[1]))

    def task(rows: slice) -> None:
        before, after = slice(0, rows.start), slice(rows.stop, n)
        own = np.tril(lower[rows, rows], -1)
        product[rows] = np.dot(own + own.T, right[rows])
        product[rows] += np.dot(lower[rows, before], right[before])
        product[rows] += np.dot(lower[after, rows].T, right[after])

    _in_blocks(n, n, task)
    return product


def weighted_square(features: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return Φᵀ diag(weight) Φ, (r, r), for features Φ (n, r).

    It is computed in blocks of rows, and in tiles if large. Only some rows of the features are
    copied and scaled at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.tiled import weighted_square
    >>> weighted_square(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([2.0, 3.0]))
    array([[ 2.,  4.],
           [ 4., 11.]])
    """
    n, r = features.shape
    root = None if weight is None else np.sqrt(weight)[:, None]

    def scaled(rows: slice) -> FloatArray:
        return features[rows] if root is None else root[rows] * features[rows]

    def task(rows: slice) -> tuple[FloatArray]:
        mine = scaled(rows)
        return (np.dot(mine.T, mine),)

    most = MOST_SUMS // max(r * r, 1)
    if n == 0 or most >= _FEW_PARTS:
        return RowBlocks(n, r, most).sum(task)[0] if n else np.zeros((r, r))
    square, size = np.zeros((r, r)), max(_LEAST_ROWS, 2 * r)
    for start in range(0, n, size):
        mine = scaled(slice(start, min(start + size, n)))

        def add(j: int, mine: FloatArray = mine) -> None:
            square[j : j + _TILE, j:] += np.dot(mine[:, j : j + _TILE].T, mine[:, j:])

        in_threads(add, range(0, r, _TILE))
    return np.triu(square) + np.triu(square, 1).T


def _in_blocks(n: int, width: int, task: Callable[[slice], None]) -> None:
    """Do a task for some of n rows at a time."""
    size = max(16, _BLOCK_VALUES // max(width, 1))
    with threads_that_pay(0):
        in_threads(lambda start: task(slice(start, min(start + size, n))), range(0, n, size))


@cache
def _routine(name: str, number: int) -> Any:
    """What scipy has of BLAS and LAPACK; other threads of Python run meanwhile."""
    module = "scipy.linalg.cython_lapack" if name.endswith("potrf") else "scipy.linalg.cython_blas"
    address = get_cython_function_address(module, name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * number)(address)


def _call(name: str, *arguments: Any) -> None:
    """Call a routine that takes addresses: those of arrays as they are, numbers by theirs."""
    kinds = {**_KINDS, float: _REALS[name[0]]}
    kept = [
        each if isinstance(each, ctypes.c_void_p) else kinds[type(each)](each)
        for each in arguments
    ]
    _routine(name, len(kept))(
        *(
            each if isinstance(each, ctypes.c_void_p) else ctypes.c_void_p(ctypes.addressof(each))
            for each in kept
        )
    )
