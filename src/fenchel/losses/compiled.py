"""Compiled loops for conjugates of the form quadratic + box + epsilon * l2 norm.

Per output j and sign of beta the conjugate has a curvature q and a bound: those of a ``Box``.
"""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray

Sides = tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]
"""What a ``Box`` holds, as a plain tuple, which compiled functions take in a microsecond less."""
Curve = tuple[float, float, float, float, float]
"""The same of one output."""


@njit(cache=True, nogil=True)
def row_length(
    point: FloatArray, slope: FloatArray, bound: FloatArray, shift: float, size: int
) -> float:
    """Solve sum_j min(|point_j| / (rho slope_j + shift), bound_j / rho)² = 1 for rho > 0.

    The length of the row that the prox (slope = 1 + step * curvature, shift = step * epsilon)
    or the exact primal value (slope = curvature, shift = epsilon) of an epsilon-insensitive
    loss is after. 0 when no such rho exists, that is when ||point|| <= shift. Newton on
    1 / sqrt(left side), which is piecewise almost linear and increasing, kept in a bracket.
    """
    squares = 0.0
    corner = 0.0
    for j in range(size):
        if point[j] != 0.0 and bound[j] > 0.0:
            squares += point[j] * point[j]
            limit = bound[j]
            if slope[j] > 0.0:
                limit = min(limit, abs(point[j]) / slope[j])
            corner += limit * limit
    if squares <= shift * shift:
        return 0.0
    high = np.sqrt(corner)
    low = 0.0
    rho = high
    for _ in range(100):
        total = 0.0
        change = 0.0
        for j in range(size):
            if point[j] == 0.0:
                continue
            free = abs(point[j]) / (rho * slope[j] + shift)
            fixed = bound[j] / rho
            if free < fixed:
                total += free * free
                change -= free * free * slope[j] / (rho * slope[j] + shift)
            else:
                total += fixed * fixed
                change -= fixed * fixed / rho
        if total == 0.0:
            return 0.0
        inverse = 1.0 / np.sqrt(total)
        if inverse > 1.0:
            high = rho
        else:
            low = rho
        gradient = -change * inverse * inverse * inverse
        step = (1.0 - inverse) / gradient if gradient > 0.0 else np.inf
        new = rho + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - rho) <= 4e-16 * rho:
            return new
        rho = new
    return rho


@njit(cache=True, nogil=True)
def prox_separable(
    point: FloatArray, steps: FloatArray, box: Sides, dual: FloatArray, jacobian: FloatArray
) -> None:
    """Compute the prox and its diagonal Jacobian, coordinate by coordinate."""
    lower, upper, below, above, epsilon = box
    n, p = point.shape
    for i in range(n):
        step = steps[i]
        threshold = step * epsilon
        for j in range(p):
            v = point[i, j]
            if v > threshold or (v == threshold == 0.0):
                slope = 1.0 / (1.0 + step * above[j])
                x = (v - threshold) * slope
                free = x < upper[j]
                dual[i, j] = x if free else upper[j]
                jacobian[i, j] = slope if free else 0.0
            elif v < -threshold:
                slope = 1.0 / (1.0 + step * below[j])
                x = (v + threshold) * slope
                free = x > lower[j]
                dual[i, j] = x if free else lower[j]
                jacobian[i, j] = slope if free else 0.0
            else:
                dual[i, j] = 0.0
                jacobian[i, j] = 0.0


@njit(cache=True, nogil=True)
def envelope_separable(
    anchor: FloatArray,
    residual: FloatArray,
    step: float,
    box: Sides,
    dual: FloatArray,
    value: FloatArray,
    active: IntArray,
    jacobian: FloatArray,
) -> int:
    """Proximal dual, value, and Jacobian of rows where it is not zero; return their number."""
    lower, upper, below, above, epsilon = box
    n, p = residual.shape
    threshold = step * epsilon
    half = 0.5 / step
    up, down, m = np.empty(p), np.empty(p), 0
    for j in range(p):  # compiled sooner than the same of whole arrays
        up[j], down[j] = 1.0 / (1.0 + step * above[j]), 1.0 / (1.0 + step * below[j])
    for i in range(n):
        total = 0.0
        moves = 0
        for j in range(p):  # without branches, which could not be foreseen
            r = residual[i, j]
            a = anchor[i, j]
            v = a + step * r
            x = max(v - threshold, 0.0) * up[j] + min(v + threshold, 0.0) * down[j]
            free = (x != 0.0 or threshold == 0.0) & (x > lower[j]) & (x < upper[j])
            x = min(max(x, lower[j]), upper[j])
            dual[i, j] = x
            jacobian[m, j] = (up[j] if v > 0.0 else down[j]) * free
            moves += free
            q = above[j] if v > 0.0 else below[j]
            total += x * r - 0.5 * q * x * x - epsilon * abs(x) - half * (x - a) * (x - a)
        value[i] = total
        active[m] = i
        m += moves > 0
    return m


@njit(cache=True, nogil=True)
def _side(
    point: FloatArray, box: Sides, step: float, one: float, slope: FloatArray, bound: FloatArray
) -> None:
    """Curvature (one + step * q) and bound on the side that each coordinate points to."""
    lower, upper, below, above, _ = box
    for j in range(len(point)):
        positive = point[j] > 0.0
        slope[j] = one + step * (above[j] if positive else below[j])
        bound[j] = upper[j] if positive else -lower[j]


@njit(cache=True, nogil=True)
def _fill_row(
    point: FloatArray,
    shift: float,
    slope: FloatArray,
    bound: FloatArray,
    x: FloatArray,
    jacobian: FloatArray,
) -> bool:
    """Prox of one row and its (p, p) Jacobian; says whether the Jacobian is not zero."""
    p = len(point)
    rho = row_length(point, slope, bound, shift, p)
    for j in range(p):
        x[j] = 0.0
        for k in range(p):
            jacobian[j, k] = 0.0
    if rho == 0.0:
        return False
    denominator = rho
    any_free = False
    for j in range(p):
        scale = rho / (rho * slope[j] + shift)
        size = abs(point[j]) * scale
        if size < bound[j]:
            x[j] = point[j] * scale
            jacobian[j, j] = scale
            denominator -= x[j] * x[j] * scale * shift / (rho * rho)
            any_free = True
        else:
            x[j] = bound[j] if point[j] > 0.0 else -bound[j]
    if any_free and denominator > 0.0:
        factor = shift / (rho * rho * denominator)
        for j in range(p):
            bound[j] = jacobian[j, j] * x[j]  # the bounds have served: reused as a buffer
        for j in range(p):
            for k in range(p):
                jacobian[j, k] += factor * bound[j] * bound[k]
    return any_free


@njit(cache=True, nogil=True)
def prox_row(
    point: FloatArray, step: float, box: Sides, coupled: bool, slope: FloatArray, bound: FloatArray
) -> None:
    """Compute the prox of one row in place; ``slope`` and ``bound`` are buffers of its length."""
    lower, upper, below, above, epsilon = box
    threshold = step * epsilon
    rho = 1.0
    if coupled:
        _side(point, box, step, 1.0, slope, bound)
        rho = row_length(point, slope, bound, threshold, len(point))
    for j in range(len(point)):
        v = point[j]
        q = above[j] if v > 0.0 else below[j]
        if coupled:
            x = abs(v) * rho / (rho * (1.0 + step * q) + threshold)
        else:
            x = max(abs(v) - threshold, 0.0) / (1.0 + step * q)
        point[j] = min(x, upper[j]) if v > 0.0 else -min(x, -lower[j])


@njit(cache=True, nogil=True)
def prox_coupled(
    point: FloatArray, steps: FloatArray, box: Sides, dual: FloatArray, jacobian: FloatArray
) -> None:
    """Prox and Jacobian with the l2 norm of the row."""
    n, p = point.shape
    slope = np.empty(p)
    bound = np.empty(p)
    for i in range(n):
        step = steps[i]
        _side(point[i], box, step, 1.0, slope, bound)
        _fill_row(point[i], step * box[4], slope, bound, dual[i], jacobian[i])


@njit(cache=True, nogil=True)
def envelope_coupled(
    anchor: FloatArray,
    residual: FloatArray,
    step: float,
    box: Sides,
    dual: FloatArray,
    value: FloatArray,
    active: IntArray,
    jacobian: FloatArray,
) -> int:
    """As :func:`envelope_separable`, with the l2 norm of the row in the conjugate."""
    _, _, below, above, epsilon = box
    n, p = residual.shape
    point = np.empty(p)
    slope = np.empty(p)
    bound = np.empty(p)
    half = 0.5 / step
    m = 0
    for i in range(n):
        for j in range(p):
            point[j] = anchor[i, j] + step * residual[i, j]
        _side(point, box, step, 1.0, slope, bound)
        moves = _fill_row(point, step * epsilon, slope, bound, dual[i], jacobian[m])
        total = 0.0
        squares = 0.0
        for j in range(p):
            x = dual[i, j]
            q = above[j] if x > 0.0 else below[j]
            d = x - anchor[i, j]
            total += x * residual[i, j] - 0.5 * q * x * x - half * d * d
            squares += x * x
        value[i] = total - epsilon * np.sqrt(squares)
        if moves:
            active[m] = i
            m += 1
    return m


@njit(cache=True, nogil=True)
def value_separable(residual: FloatArray, box: Sides, value: FloatArray) -> None:
    """Value of the loss of each row, output by output."""
    lower, upper, below, above, epsilon = box
    n, p = residual.shape
    for i in range(n):
        total = 0.0
        for j in range(p):
            r = residual[i, j]
            size = max(abs(r) - epsilon, 0.0)
            q = above[j] if r > 0.0 else below[j]
            slope = upper[j] if r > 0.0 else -lower[j]
            if size < q * slope:
                slope = size / q
            total += slope * (size - 0.5 * q * slope)
        value[i] = total


@njit(cache=True, nogil=True)
def conjugate(dual: FloatArray, box: Sides, slack: float, value: FloatArray) -> None:
    """Conjugate of each row, inf outside the box widened by the factor ``slack``."""
    lower, upper, below, above, epsilon = box
    n, p = dual.shape
    for i in range(n):
        total = 0.0
        squares = 0.0
        for j in range(p):
            x = dual[i, j]
            q = above[j] if x > 0.0 else below[j]
            total += 0.5 * q * x * x
            squares += x * x
            if not slack * lower[j] <= x <= slack * upper[j]:
                total = np.inf
        value[i] = total + epsilon * np.sqrt(squares)


@njit(cache=True, nogil=True)
def scale_by_sign(dual: FloatArray, up: FloatArray, down: FloatArray, scaled: FloatArray) -> None:
    """Multiply positive entries by a factor of their output, and negative ones by another."""
    n, p = dual.shape
    for i in range(n):
        for j in range(p):
            scaled[i, j] = max(dual[i, j], 0.0) * up[j] + min(dual[i, j], 0.0) * down[j]


@njit(cache=True, nogil=True)
def value_coupled(residual: FloatArray, box: Sides, value: FloatArray) -> None:
    """Exact value of the infimal convolution: the maximum over dual vectors of each row."""
    n, p = residual.shape
    epsilon = box[4]
    slope = np.empty(p)
    bound = np.empty(p)
    for i in range(n):
        _side(residual[i], box, 1.0, 0.0, slope, bound)
        rho = row_length(residual[i], slope, bound, epsilon, p)
        total = 0.0
        if rho > 0.0:
            squares = 0.0
            for j in range(p):
                size = min(abs(residual[i, j]) * rho / (rho * slope[j] + epsilon), bound[j])
                total += size * abs(residual[i, j]) - 0.5 * slope[j] * size * size
                squares += size * size
            total -= epsilon * np.sqrt(squares)
        value[i] = max(total, 0.0)


@njit(cache=True, nogil=True)
def weighted_dual_sum(
    residual: FloatArray, weight: FloatArray, offset: float, curve: Curve
) -> tuple[float, float]:
    """Sum of weight * gradient at (residual - offset), and minus its derivative."""
    lower, upper, below, above, epsilon = curve
    total = 0.0
    slope = 0.0
    for i in range(len(residual)):
        r = residual[i] - offset
        if r > epsilon:
            x = (r - epsilon) / above
            if x < upper:
                slope += weight[i] / above
            else:
                x = upper
            total += weight[i] * x
        elif r < -epsilon:
            x = (r + epsilon) / below
            if x > lower:
                slope += weight[i] / below
            else:
                x = lower
            total += weight[i] * x
    return total, slope
