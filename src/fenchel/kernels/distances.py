"""Fast squared distances between rows, without cancellation errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from fenchel._compiling import njit
from fenchel._threads import in_threads
from fenchel._typing import AnyArray, FloatArray
from fenchel.kernels.exponential import QUICK, shape
from fenchel.kernels.sparse import SparsePoints

_SUMMED_FEATURES = 16  # up to here summing squared differences beats a matrix product
_FEW_ROWS = 8  # likewise, whatever the number of features
_BLOCK = 64
_CHUNK_BYTES, _STEP = 3 * 2**13, 64  # of rows that stay in the nearest cache, so many at a time
_LINE = 8  # numbers that the processor's cache reads at once
_NO_SHAPE = -1
_CANCELLED = {8: 1e-8, 4: 1e-4}  # share of ||x||² + ||y||² where the product has lost digits


def squared_distances(X: FloatArray, Y: FloatArray, out: FloatArray | None = None) -> FloatArray:
    r"""Squared Euclidean distances :math:`\|x - y\|^2` of all pairs, (n_X, n_Y).

    They are summed feature by feature, or, for many features, computed by one matrix product of
    the centred rows. They are exactly symmetric if Y is X, and exactly zero between identical
    rows. They have the precision of X and Y. If ``out``, a C-contiguous array, is given, they are
    written into it and it is returned.
    """
    if isinstance(X, SparsePoints):
        return X.squared_distances(cast(SparsePoints, Y))
    if out is None:
        out = np.empty((len(X), len(Y)), X.dtype)
    if min(len(X), len(Y)) < _FEW_ROWS or X.shape[1] <= _SUMMED_FEATURES:
        return sums(X, Y, out, _NO_SHAPE)
    centre = X.mean(axis=0)
    same = Y is X
    X = X - centre
    Y = X if same else Y - centre
    x = np.einsum("ij,ij->i", X, X)
    y = x if same else np.einsum("ij,ij->i", Y, Y)
    np.matmul(X, Y.T, out=out)
    _expand(out, X, Y, x, y, X.dtype.type(_CANCELLED[X.dtype.itemsize]))
    return out


def values_of_sums(X: FloatArray, Y: FloatArray, out: FloatArray, twice: int) -> bool:
    """Write kernel values of squared distances, see :func:`~fenchel.kernels.exponential.shape`.

    Distances and values are computed in one pass if summing feature by feature is faster.
    Otherwise nothing is written, and the function returns False.
    """
    if X.shape[1] > _SUMMED_FEATURES and min(len(X), len(Y)) >= _FEW_ROWS:
        return False
    sums(X, Y, out, twice)
    return True


def sums(X: FloatArray, Y: FloatArray, out: FloatArray, twice: int) -> FloatArray:
    """Squared differences, summed, and what is made of them; the inner loop is the long one."""
    X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
    if len(Y) < min(_FEW_ROWS, len(X)):
        squares = np.empty((len(Y), len(X)), out.dtype)
        sum_squares(Y, X, squares, twice)
        out[...] = squares.T
    else:
        sum_squares(X, Y, out, twice)
    return out


def symmetric(
    function: Callable[[FloatArray, FloatArray], FloatArray], X: FloatArray
) -> FloatArray:
    """Matrix of a symmetric function of two sets of rows, each pair computed once.

    Computed in blocks of rows that fit the processor's cache, by as many threads as the user
    allows.
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


@njit(**QUICK)
def sum_squares(X: AnyArray, Y: AnyArray, out: AnyArray, twice: int) -> None:
    """Sum the squared differences of all pairs, and turn them into kernel values, see ``shape``.

    Computed in pieces that fit the processor's first cache. The sum of a pair depends only on
    the two rows.
    """
    (n, d), number = Y.shape, out.dtype.type
    fitting = _CHUNK_BYTES // (out.itemsize * max(d, 1))
    width = max(fitting - fitting % _STEP, _STEP)  # what is left beside whole vectors is slow
    memory = np.empty(max(d, 1) * width, out.dtype)
    for start in range(0, n, width):
        size = min(width, n - start)
        for j in range(d):
            for k in range(size):
                memory[j * size + k] = number(Y[start + k, j])
        for i in range(out.shape[0]):
            total = out[i, start : start + size]
            _sum_of_row(X[i], memory, total)
            if twice >= 0:
                shape(total, twice)


@njit(**QUICK)
def _sum_of_row(x: AnyArray, columns: AnyArray, total: AnyArray) -> None:
    """Squared distances of one row to some others, which lie column by column: four at a time."""
    size, number = total.size, total.dtype.type
    for k in range(size):
        total[k] = number(0.0)
    fours, twos = x.size - x.size % 4, x.size - x.size % 2
    for j in range(0, fours, 4):
        one, two = columns[j * size : (j + 1) * size], columns[(j + 1) * size : (j + 2) * size]
        three = columns[(j + 2) * size : (j + 3) * size]
        four = columns[(j + 3) * size : (j + 4) * size]
        a, b, c, e = number(x[j]), number(x[j + 1]), number(x[j + 2]), number(x[j + 3])
        for k in range(size):
            first, second = one[k] - a, two[k] - b
            third, fourth = three[k] - c, four[k] - e
            total[k] += first * first + second * second + third * third + fourth * fourth
    if fours < twos:
        one, two = columns[fours * size : (fours + 1) * size], columns[(fours + 1) * size :]
        a, b = number(x[fours]), number(x[fours + 1])
        for k in range(size):
            first, second = one[k] - a, two[k] - b
            total[k] += first * first + second * second
    if twos < x.size:
        one, a = columns[twos * size :], number(x[twos])
        for k in range(size):
            total[k] += (one[k] - a) * (one[k] - a)


@njit(cache=True, nogil=True)
def _mirror(matrix: FloatArray, start: int, stop: int) -> None:
    """Copy what is above the diagonal in some rows to below it."""
    n = matrix.shape[0]
    for first in range(start, n, _LINE):
        last = min(first + _LINE, n)
        for j in range(start, min(last, stop)):
            for i in range(max(first, j + 1), last):
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
