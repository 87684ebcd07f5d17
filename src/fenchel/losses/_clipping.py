"""Pointwise Huber and insensitive losses of curves, computed in a single pass."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import ORDER_IS_FREE, njit
from fenchel._memory import empty
from fenchel._typing import FloatArray


def clipped(point: FloatArray, root: FloatArray, radius: float | FloatArray) -> FloatArray:
    """Clip entries (n, m) to ±R √μ; R is common or (n, 1), √μ is (1, m) or (n, m)."""
    result = empty(point.shape)
    _clip(np.ascontiguousarray(point), root, _radii(radius, len(point)), result)
    return result


def bounded_values(residual: FloatArray, root: FloatArray, kappa: float) -> FloatArray:
    """Σ_j x_j (r_j - x_j / 2), with x the residuals r brought into ±κ √μ: (n,)."""
    values = np.empty(len(residual))
    _bounded(np.ascontiguousarray(residual), root, float(kappa), values)
    return values


def excess_values(residual: FloatArray, root: FloatArray, epsilon: float) -> FloatArray:
    """Half the sum of squares of the excess of residuals over ±ε √μ, (n,)."""
    values = np.empty(len(residual))
    _excess(np.ascontiguousarray(residual), root, float(epsilon), values)
    return values


def bounded_conjugates(dual: FloatArray, root: FloatArray, most: float) -> FloatArray:
    """Half the squared length (n,) of dual vectors; inf if an entry exceeds ±most √μ, μ > 0."""
    values = np.empty(len(dual))
    _conjugates_of_bounded(np.ascontiguousarray(dual), root, float(most), values)
    return values


def insensitive_conjugates(dual: FloatArray, root: FloatArray, epsilon: float) -> FloatArray:
    """Σ_j d_j² / 2 + ε √μ_j |d_j| of dual vectors, (n,)."""
    values = np.empty(len(dual))
    _conjugates_of_excess(np.ascontiguousarray(dual), root, float(epsilon), values)
    return values


def _radii(radius: float | FloatArray, n: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(radius, (n, 1))[:, 0], dtype=np.float64)


@njit(cache=True, nogil=True)
def _clip(point: FloatArray, root: FloatArray, radii: FloatArray, result: FloatArray) -> None:
    n, m = point.shape
    own = len(root) > 1
    for i in range(n):
        scale, radius = root[i if own else 0], radii[i]
        for j in range(m):  # without branches, and NaN stays what it is
            bound = radius * scale[j]
            value = point[i, j]
            value = bound if value > bound else value
            result[i, j] = -bound if value < -bound else value


@njit(cache=True, nogil=True, fastmath=ORDER_IS_FREE)
def _bounded(residual: FloatArray, root: FloatArray, kappa: float, values: FloatArray) -> None:
    n, m = residual.shape
    own = len(root) > 1
    for i in range(n):
        scale, total = root[i if own else 0], 0.0
        for j in range(m):
            bound = kappa * scale[j]
            value = residual[i, j]
            value = bound if value > bound else value
            value = -bound if value < -bound else value
            total += value * (residual[i, j] - 0.5 * value)
        values[i] = total


@njit(cache=True, nogil=True, fastmath=ORDER_IS_FREE)
def _excess(residual: FloatArray, root: FloatArray, epsilon: float, values: FloatArray) -> None:
    n, m = residual.shape
    own = len(root) > 1
    for i in range(n):
        scale, total = root[i if own else 0], 0.0
        for j in range(m):
            bound = epsilon * scale[j]
            value = residual[i, j]
            value = bound if value > bound else value
            value = -bound if value < -bound else value
            left = residual[i, j] - value
            total += left * left
        values[i] = 0.5 * total


@njit(cache=True, nogil=True, fastmath=ORDER_IS_FREE)
def _conjugates_of_bounded(
    dual: FloatArray, root: FloatArray, most: float, values: FloatArray
) -> None:
    n, m = dual.shape
    own = len(root) > 1
    for i in range(n):
        scale, total, outside = root[i if own else 0], 0.0, 0
        for j in range(m):
            size = abs(dual[i, j])
            outside += (size > most * scale[j]) & (scale[j] > 0.0)
            total += size * size
        values[i] = np.inf if outside > 0 else 0.5 * total


@njit(cache=True, nogil=True, fastmath=ORDER_IS_FREE)
def _conjugates_of_excess(
    dual: FloatArray, root: FloatArray, epsilon: float, values: FloatArray
) -> None:
    n, m = dual.shape
    own = len(root) > 1
    for i in range(n):
        scale, total = root[i if own else 0], 0.0
        for j in range(m):
            size = abs(dual[i, j])
            total += size * (0.5 * size + epsilon * scale[j])
        values[i] = total
