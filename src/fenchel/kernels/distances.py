"""Squared distances between rows, fast and without cancellation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist

from fenchel._typing import FloatArray

_SUMMED_FEATURES = 8  # up to here summing squared differences beats a matrix product
_FEW_ROWS = 8  # likewise, whatever the number of features
_BLOCK = 64
_CANCELLED = 1e-8  # share of ||x||² + ||y||² below which the product has lost digits


def squared_distances(X: FloatArray, Y: FloatArray) -> FloatArray:
    r"""Squared Euclidean distances :math:`\|x - y\|^2` of all pairs, (n_X, n_Y).

    Summed feature by feature, or for many features by one matrix product of the centred
    rows. Symmetric to the last bit where Y is X, and exactly zero between identical rows.
    """
    if X.shape[1] == 1:
        squares = np.subtract.outer(X[:, 0], Y[:, 0])
        return np.multiply(squares, squares, out=squares)
    if len(Y) < _FEW_ROWS:
        return np.asarray(cdist(Y, X, "sqeuclidean").T)  # the inner loop is the long one
    if X.shape[1] <= _SUMMED_FEATURES or len(X) < _FEW_ROWS:
        return np.asarray(cdist(X, Y, "sqeuclidean"))
    centre = X.mean(axis=0)
    same = Y is X
    X = X - centre
    Y = X if same else Y - centre
    x = np.einsum("ij,ij->i", X, X)
    y = x if same else np.einsum("ij,ij->i", Y, Y)
    products = X @ Y.T
    _expand(products, X, Y, x, y)
    return products


def symmetric(
    function: Callable[[FloatArray, FloatArray], FloatArray], X: FloatArray
) -> FloatArray:
    """Matrix of a symmetric function of two sets of rows, each pair computed once.

    In blocks of rows that stay in the processor's cache from the distances to the values.
    """
    n = len(X)
    if n <= 2 * _BLOCK:
        return function(X, X)
    matrix = np.empty((n, n))
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        matrix[start:stop, start:] = function(X[start:stop], X[start:])
        _mirror(matrix, start, stop)
    return matrix


@njit(cache=True, nogil=True)
def _mirror(matrix: FloatArray, start: int, stop: int) -> None:
    """Copy what is above the diagonal in some rows to below it."""
    for i in range(start, matrix.shape[0]):
        for j in range(start, min(i, stop)):
            matrix[i, j] = matrix[j, i]


@njit(cache=True, nogil=True)
def _expand(
    products: FloatArray, X: FloatArray, Y: FloatArray, x: FloatArray, y: FloatArray
) -> None:
    """Turn inner products into ||x||² + ||y||² - 2<x, y>, in place, close pairs anew."""
    for i in range(products.shape[0]):
        row = products[i]
        n_close = 0
        for j in range(row.size):
            total = x[i] + y[j]
            row[j] = total - 2.0 * row[j]
            n_close += row[j] < _CANCELLED * total
        if n_close == 0:
            continue
        for j in range(row.size):
            if row[j] < _CANCELLED * (x[i] + y[j]):
                row[j] = 0.0
                for k in range(X.shape[1]):
                    row[j] += (X[i, k] - Y[j, k]) ** 2
