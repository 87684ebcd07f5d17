"""Compiled loops of Newton steps on few rows, for arrays too small for NumPy to be fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray

_HOW: Any = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_HOW)
def sizes_of(
    values: FloatArray, strengths: FloatArray, barrier: float, sizes: FloatArray, roots: FloatArray
) -> float:
    """The numbers a and s of eigenvalues g, and what they add to minus the dual."""
    total = 0.0
    for j in range(values.size):
        g, alpha = values[j], strengths[j]
        s = np.hypot(g, 2.0 * np.sqrt(alpha * barrier))
        a = 2.0 * barrier / (s + g) if g > 0.0 else (s - g) / (2.0 * alpha)
        sizes[j], roots[j] = a, s
        total -= a * (g + 0.5 * alpha * a)
        if barrier > 0.0:
            total += barrier * np.log(a)
    return total


@njit(**_HOW)
def pair_columns(
    turned: FloatArray, sizes: FloatArray, roots: FloatArray, columns: FloatArray
) -> None:
    """Products of two turned features (r, n), weighted by the curvature, (r (r + 1) / 2, n)."""
    r, n = turned.shape
    row = 0
    for j in range(r):
        for k in range(j, r):
            below = roots[j] + roots[k]
            curvature = (sizes[j] + sizes[k]) / below if below > 0.0 else 0.0
            root = np.sqrt(curvature if j == k else 2.0 * curvature)
            for i in range(n):
                columns[row, i] = root * turned[j, i] * turned[k, i]
            row += 1


@njit(**_HOW)
def row_matrix(
    grams: FloatArray, directions: FloatArray, root: FloatArray, matrix: FloatArray
) -> None:
    """I + R Σ (d dᵀ ⊗ gram) R, output by output, its lower triangle; R is diagonal, (p, n)."""
    parts, n, _ = grams.shape
    p = root.shape[0]
    for j in range(p):
        for k in range(j + 1):
            for i in range(n):
                last = i + 1 if j == k else n
                row = matrix[j * n + i, k * n : k * n + last]
                row[:] = 0.0
                for part in range(parts):
                    weight = directions[part, j] * directions[part, k] * root[j, i]
                    if weight != 0.0:
                        for other in range(last):
                            row[other] += weight * grams[part, i, other]
                for other in range(last):
                    row[other] *= root[k, other]
                if j == k:
                    row[i] += 1.0


@njit(**_HOW)
def barrier_conjugate(
    dual: FloatArray,
    targets: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    curvature: FloatArray,
    barrier: float,
    value: FloatArray,
) -> None:
    """Conjugates of rows: a linear function, a quadratic, and a barrier; inf out of the box."""
    n, p = dual.shape
    for i in range(n):
        total = 0.0
        for j in range(p):
            x = dual[i, j]
            if not lower[j] < x < upper[j]:
                total = np.inf
                break
            total += x * targets[i, j] + 0.5 * curvature[j] * x * x
            total -= barrier * (np.log(x - lower[j]) + np.log(upper[j] - x))
        value[i] = total


@njit(**_HOW)
def barrier_derivatives(
    dual: FloatArray,
    targets: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    curvature: FloatArray,
    barrier: float,
    slope: FloatArray,
    hessian: FloatArray,
) -> None:
    """Their derivatives inside of the box."""
    n, p = dual.shape
    for i in range(n):
        for j in range(p):
            low, high = 1.0 / (dual[i, j] - lower[j]), 1.0 / (upper[j] - dual[i, j])
            slope[i, j] = targets[i, j] + curvature[j] * dual[i, j] - barrier * (low - high)
            hessian[i, j] = curvature[j] + barrier * (low * low + high * high)


@njit(**_HOW)
def steps_to_border(
    dual: FloatArray, change: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """The multiple of a change at which the first entry leaves the box."""
    n, p = dual.shape
    least = np.inf
    for i in range(n):
        for j in range(p):
            size = change[i, j]
            if size > 0.0:
                least = min(least, (upper[j] - dual[i, j]) / size)
            elif size < 0.0:
                least = min(least, (lower[j] - dual[i, j]) / size)
    return least


@njit(**_HOW)
def middle_of_falls(
    residual: FloatArray, order: IntArray, weight: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """Where Σ weight_i ρ_j(residual_ij - t) is least, in the middle if there is an interval.

    The slopes of ρ_j are lower_j and upper_j, and ``order`` is that of all residuals.
    """
    p = residual.shape[1]
    slope = jumps = 0.0
    for j in range(p):
        slope += upper[j]
        jumps += upper[j] - lower[j]
    total = weight.sum()
    slope, flat = slope * total, 1e-12 * jumps * total
    first = last = order[order.size - 1]
    found = False
    for place in order:  # minus the slope beyond each residual falls from one to the next
        i, j = place // p, place % p
        slope -= weight[i] * (upper[j] - lower[j])
        if not found and slope <= flat:
            first, found = place, True
        if slope < -flat:
            last = place
            break
    return 0.5 * (residual[first // p, first % p] + residual[last // p, last % p])
