"""Squared distances between rows, fast and without cancellation."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numba import njit

from fenchel._threads import in_threads
from fenchel._typing import AnyArray, FloatArray
from fenchel.kernels.sparse import SparsePoints

_SUMMED_FEATURES = 8  # up to here summing squared differences beats a matrix product
_FEW_ROWS = 8  # likewise, whatever the number of features
_BLOCK = 64
_CHUNK = 512  # distances that stay in the nearest cache
_CANCELLED = {8: 1e-8, 4: 1e-4}  # share of ||x||² + ||y||² where the product has lost digits


def squared_distances(X: FloatArray, Y: FloatArray, out: FloatArray | None = None) -> FloatArray:
    r"""Squared Euclidean distances :math:`\|x - y\|^2` of all pairs, (n_X, n_Y).

    Summed feature by feature, or for many features by one matrix product of the centred
    rows. Symmetric to the last bit where Y is X, and exactly zero between identical rows.
    ``out``, contiguous by rows, is written into and returned. In the precision of X and Y.
    """
    if isinstance(X, SparsePoints):
        return X.squared_distances(cast(SparsePoints, Y))
    if out is None:
        out = np.empty((len(X), len(Y)), X.dtype)
    if min(len(X), len(Y)) < _FEW_ROWS or X.shape[1] <= _SUMMED_FEATURES:
        few = len(Y) < min(_FEW_ROWS, len(X))  # the inner loop is the long one
        long, short = (X, Y) if few else (Y, X)
        squares = np.empty((len(short), len(long)), X.dtype) if few else out
        _sum(np.ascontiguousarray(short), np.ascontiguousarray(long.T).reshape(-1), squares)
        if few:
            out[...] = squares.T
        return out
    centre = X.mean(axis=0)
    same = Y is X
    X = X - centre
    Y = X if same else Y - centre
    x = np.einsum("ij,ij->i", X, X)
    y = x if same else np.einsum("ij,ij->i", Y, Y)
    np.matmul(X, Y.T, out=out)
    _expand(out, X, Y, x, y, X.dtype.type(_CANCELLED[X.dtype.itemsize]))
    return out


def symmetric(
    function: Callable[[FloatArray, FloatArray], FloatArray], X: FloatArray
) -> FloatArray:
    """Matrix of a symmetric function of two sets of rows, each pair computed once.

    In blocks of rows that stay in the processor's cache from the distances to the values, shared
    by as many threads as the user allows.
    """
    n = len(X)
    if n <= 2 * _BLOCK:
        return function(X, X)
    matrix = np.empty((n, n))

    def task(start: int) -> None:
        stop = min(start + _BLOCK, n)
        matrix[start:stop, start:] = function(X[start:stop], X[start:])
        _mirror(matrix, start, stop)

    in_threads(task, range(0, n, _BLOCK))
    return matrix


@njit(cache=True, nogil=True)
def _sum(X: AnyArray, columns: AnyArray, out: AnyArray) -> None:
    """Sum squared differences, with the other rows column by column in one array."""
    n = out.shape[1]
    total = np.empty(_CHUNK, out.dtype)
    for i in range(out.shape[0]):
        row = out[i]
        for start in range(0, n, _CHUNK):
            size = min(_CHUNK, n - start)
            _sum_in_cache(X[i], columns, n, start, total[:size])
            part = row[start : start + size]
            for k in range(size):
                part[k] = total[k]


@njit(cache=True, nogil=True)
def _sum_in_cache(x: AnyArray, columns: AnyArray, n: int, start: int, total: AnyArray) -> None:
    """Squared distances of one row to some others, two features at a time."""
    total[:] = 0.0
    size, even = total.size, x.size - x.size % 2
    for j in range(0, even, 2):
        first = columns[j * n + start : j * n + start + size]
        second = columns[(j + 1) * n + start : (j + 1) * n + start + size]
        a, b = x[j], x[j + 1]
        for k in range(size):
            total[k] += (first[k] - a) * (first[k] - a) + (second[k] - b) * (second[k] - b)
    if even < x.size:
        last = columns[even * n + start : even * n + start + size]
        a = x[even]
        for k in range(size):
            total[k] += (last[k] - a) * (last[k] - a)


@njit(cache=True, nogil=True)
def _mirror(matrix: FloatArray, start: int, stop: int) -> None:
    """Copy what is above the diagonal in some rows to below it."""
    for i in range(start, matrix.shape[0]):
        for j in range(start, min(i, stop)):
            matrix[i, j] = matrix[j, i]


@njit(cache=True, nogil=True)
def _expand(
    products: AnyArray, X: AnyArray, Y: AnyArray, x: AnyArray, y: AnyArray, share: float
) -> None:
    """Turn inner products into ||x||² + ||y||² - 2<x, y>, in place, close pairs anew."""
    two = products.dtype.type(2.0)
    for i in range(products.shape[0]):
        row = products[i]
        n_close = 0
        for j in range(row.size):
            total = x[i] + y[j]
            row[j] = total - two * row[j]
            n_close += row[j] < share * total
        if n_close == 0:
            continue
        for j in range(row.size):
            if row[j] < share * (x[i] + y[j]):
                row[j] = 0.0
                for k in range(X.shape[1]):
                    row[j] += (X[i, k] - Y[j, k]) ** 2
