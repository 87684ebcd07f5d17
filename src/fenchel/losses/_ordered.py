"""Compiled loops for a separable box loss on residuals that are in decreasing order.

A box is three arrays: the order in which the entries of a row are visited, and lower <= 0 <= upper
in the order of the entries themselves, the slopes of a piecewise linear loss.
"""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray

Ordered = tuple[IntArray, FloatArray, FloatArray]
"""Order of the entries, lower, upper."""
Pools = tuple[IntArray, FloatArray, FloatArray]
"""Buffers: where each pool stops, sums over it, and its value."""


@njit(cache=True, nogil=True)
def _pools(point: FloatArray, box: Ordered, pools: Pools) -> int:
    """Minimize the loss of s plus ||s - point||²/2 over decreasing s; return how many pools.

    Pool adjacent violators: ``ends`` is where each pool stops, ``values`` the common value of s
    on it. ``sums`` (3, p) holds the sums of point, lower and upper over each pool.
    """
    order, lower, upper = box
    ends, sums, values = pools
    m = 0
    for k in range(len(order)):
        j = order[k]
        ends[m] = k + 1
        sums[0, m] = point[j]
        sums[1, m] = lower[j]
        sums[2, m] = upper[j]
        values[m] = _common(sums, m, 1)
        while m > 0 and values[m - 1] < values[m]:
            for part in range(3):
                sums[part, m - 1] += sums[part, m]
            ends[m - 1] = ends[m]
            m -= 1
            start = ends[m - 1] if m > 0 else 0
            values[m] = _common(sums, m, ends[m] - start)
        m += 1
    return m


@njit(cache=True, nogil=True)
def _common(sums: FloatArray, pool: int, size: int) -> float:
    """Best common value of a pool: its mean, less the slope of its loss, or the kink at 0."""
    total = sums[0, pool]
    if total > sums[2, pool]:
        return (total - sums[2, pool]) / size
    if total < sums[1, pool]:
        return (total - sums[1, pool]) / size
    return 0.0


@njit(cache=True, nogil=True)
def _fill_dual(
    point: FloatArray, order: IntArray, n_pools: int, pools: Pools, dual: FloatArray
) -> None:
    """Write point - s, so that a pool of one gets its slope exactly."""
    ends, sums, values = pools
    start = 0
    for m in range(n_pools):
        size = ends[m] - start
        mean = sums[0, m] / size
        for k in range(start, ends[m]):
            j = order[k]
            if values[m] > 0.0:
                dual[j] = (point[j] - mean) + sums[2, m] / size
            elif values[m] < 0.0:
                dual[j] = (point[j] - mean) + sums[1, m] / size
            else:
                dual[j] = point[j]
        start = ends[m]


@njit(cache=True, nogil=True)
def _fill_jacobian(order: IntArray, n_pools: int, pools: Pools, jacobian: FloatArray) -> bool:
    """Write the derivative of point - s; return whether it is not zero."""
    ends, _, values = pools
    jacobian[:] = 0.0
    moves = False
    start = 0
    for m in range(n_pools):
        size = ends[m] - start
        shared = 1.0 / size if values[m] != 0.0 else 0.0
        if size > 1 or shared == 0.0:
            moves = True
            for a in range(start, ends[m]):
                for b in range(start, ends[m]):
                    jacobian[order[a], order[b]] = -shared
                jacobian[order[a], order[a]] += 1.0
        start = ends[m]
    return moves


@njit(cache=True, nogil=True)
def project(point: FloatArray, box: Ordered, dual: FloatArray, residual: FloatArray) -> None:
    """Split each row of ``point`` into its projection ``dual`` on the domain and the rest."""
    order = box[0]
    n, p = point.shape
    pools = np.empty(p, np.int64), np.empty((3, p)), np.empty(p)
    ends, _, values = pools
    for i in range(n):
        n_pools = _pools(point[i], box, pools)
        _fill_dual(point[i], order, n_pools, pools, dual[i])
        start = 0
        for m in range(n_pools):
            for k in range(start, ends[m]):
                residual[i, order[k]] = values[m]
            start = ends[m]


@njit(cache=True, nogil=True)
def projection_jacobian(point: FloatArray, box: Ordered, jacobian: FloatArray) -> None:
    """Jacobian of the projection of each row."""
    order = box[0]
    n, p = point.shape
    pools = np.empty(p, np.int64), np.empty((3, p)), np.empty(p)
    for i in range(n):
        n_pools = _pools(point[i], box, pools)
        _fill_jacobian(order, n_pools, pools, jacobian[i])


@njit(cache=True, nogil=True)
def envelope(
    anchor: FloatArray,
    residual: FloatArray,
    step: float,
    box: Ordered,
    dual: FloatArray,
    value: FloatArray,
    active: IntArray,
    jacobian: FloatArray,
) -> int:
    """Compute all results of :meth:`Loss.envelope`; return the number of active rows."""
    order = box[0]
    n, p = residual.shape
    pools = np.empty(p, np.int64), np.empty((3, p)), np.empty(p)
    point = np.empty(p)
    half = 0.5 / step
    m = 0
    for i in range(n):
        for j in range(p):
            point[j] = anchor[i, j] + step * residual[i, j]
        n_pools = _pools(point, box, pools)
        _fill_dual(point, order, n_pools, pools, dual[i])
        total = 0.0
        for j in range(p):
            move = dual[i, j] - anchor[i, j]
            total += dual[i, j] * residual[i, j] - half * move * move
        value[i] = total
        if _fill_jacobian(order, n_pools, pools, jacobian[m]):
            active[m] = i
            m += 1
    return m


@njit(cache=True, nogil=True)
def value(residual: FloatArray, box: Ordered, total: FloatArray) -> None:
    """Loss of each row, inf where an entry is larger than the one before it."""
    order, lower, upper = box
    n, p = residual.shape
    for i in range(n):
        total[i] = 0.0
        for k in range(p):
            j = order[k]
            r = residual[i, j]
            total[i] += upper[j] * r if r > 0.0 else lower[j] * r
            if k > 0 and r > residual[i, order[k - 1]]:
                total[i] = np.inf


@njit(cache=True, nogil=True)
def excess(dual: FloatArray, box: Ordered, excess: FloatArray) -> None:
    """Violation of the bounds on sums of first and of last entries, relative to the terms."""
    order, lower, upper = box
    n, p = dual.shape
    for i in range(n):
        size = 0.0
        first = 0.0
        last = 0.0
        most = 0.0
        for k in range(p):
            a, b = order[k], order[p - 1 - k]
            first += dual[i, a] - upper[a]
            last += dual[i, b] - lower[b]
            most = max(most, first, -last)
            size += abs(dual[i, a]) + max(upper[a], -lower[a])
        excess[i] = most / size


@njit(cache=True, nogil=True)
def split(dual: FloatArray, box: Ordered, inside: FloatArray, rest: FloatArray) -> None:
    """Write each row as a point of the box plus a rest: sums of its first entries <= 0, total 0.

    What is above the box is handed to earlier entries, what is below is taken from later ones.
    A row outside the domain has something left over at an end, which is dropped.
    """
    order, lower, upper = box
    n, p = dual.shape
    flow = np.empty(p + 1)  # from entry k of the order to entry k - 1
    for i in range(n):
        flow[0] = flow[p] = 0.0
        carry = 0.0
        for k in range(p - 1, -1, -1):
            j = order[k]
            x = dual[i, j] + carry
            inside[i, j] = min(x, upper[j])
            carry = x - inside[i, j]
            if k > 0:
                flow[k] = carry
        carry = 0.0
        for k in range(p):
            j = order[k]
            if k > 0:
                flow[k] += carry
            x = inside[i, j] - carry
            inside[i, j] = max(x, lower[j])
            carry = inside[i, j] - x
        for k in range(p):
            rest[i, order[k]] = flow[k] - flow[k + 1]
