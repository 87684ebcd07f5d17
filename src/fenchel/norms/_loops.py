"""Compiled loops for group norms: values, and proxes with one scalar root at most.

A vector is cut into groups by ``starts``: group j is ``v[starts[j]:starts[j + 1]]``. The norm
inside of groups is 1, 2 or, written as 0, the maximum.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel._typing import FloatArray, IntArray

_ROOT_STEPS = 200


@njit(cache=True, nogil=True)
def lengths(v: FloatArray, starts: IntArray, q: int, out: FloatArray) -> None:
    """The q-norms of the groups."""
    for j in range(len(out)):
        largest = 0.0
        total = 0.0
        for i in range(starts[j], starts[j + 1]):
            largest = max(largest, abs(v[i]))
            total += abs(v[i])
        if q == 1:
            out[j] = total
        elif q == 0 or largest == 0.0:
            out[j] = largest
        else:
            squares = 0.0
            for i in range(starts[j], starts[j + 1]):
                squares += (v[i] / largest) ** 2
            out[j] = largest * np.sqrt(squares)


@njit(cache=True, nogil=True)
def sort_descending(v: FloatArray, starts: IntArray) -> None:
    """Sort from large to small inside of groups, in place."""
    for j in range(len(starts) - 1):
        v[starts[j] : starts[j + 1]] = np.sort(v[starts[j] : starts[j + 1]])[::-1]


@njit(cache=True, nogil=True)
def l1_threshold(ordered: FloatArray, radius: float) -> float:
    """The t >= 0 with Σ max(0, ordered - t) = radius; 0 where the sum is no larger."""
    total = 0.0
    threshold = 0.0
    for k in range(len(ordered)):
        total += ordered[k]
        candidate = (total - radius) / (k + 1)
        if candidate >= ordered[k]:
            break
        threshold = candidate
    return max(threshold, 0.0)


@njit(cache=True, nogil=True)
def sum_of_maxima_threshold(ordered: FloatArray, starts: IntArray, radius: float) -> float:
    """The t with Σ_j c_j(t) = radius, c_j where Σ_i max(0, ordered_ji - c_j) = t.

    The c_j, maxima of the proxes of t‖·‖_∞, are piecewise linear, convex and decreasing in t:
    Newton's method from the left does not overshoot and ends after finitely many steps.
    """
    t = 0.0
    for _ in range(_ROOT_STEPS):
        total = 0.0
        slope = 0.0
        for j in range(len(starts) - 1):
            group = ordered[starts[j] : starts[j + 1]]
            running = 0.0
            level = 0.0
            for k in range(len(group)):
                running += group[k]
                candidate = (running - t) / (k + 1)
                if k + 1 == len(group) or candidate >= group[k + 1]:
                    if candidate > 0.0:
                        level = candidate
                        slope += 1.0 / (k + 1)
                    break
            total += level
        if total <= radius or slope == 0.0:
            break
        new = t + (total - radius) / slope
        if new <= t:
            break
        t = new
    return t


@njit(cache=True, nogil=True)
def squared_levels(
    ordered: FloatArray,
    starts: IntArray,
    q: int,
    nu: float,
    level: FloatArray,
    slope: FloatArray,
) -> None:
    """Per group the dual length of v - w, w the prox of ‖·‖_q² / (2 ν), and its slope in ν.

    For q = 1 this is the threshold S_k/(k + ν), for q = ∞ the cut-off sum S_k/(k ν + 1), with
    S_k the sum of the k entries that are larger than the threshold or than the level.
    """
    for j in range(len(starts) - 1):
        group = ordered[starts[j] : starts[j + 1]]
        total = 0.0
        for k in range(1, len(group) + 1):
            total += group[k - 1]
            below = k + nu if q == 1 else k * nu + 1.0
            value = total / below
            edge = value if q == 1 else nu * value
            if k == len(group) or edge >= group[k]:
                level[j] = value
                slope[j] = -value / below * (1.0 if q == 1 else k)
                break


@njit(cache=True, nogil=True)
def squared_root(ordered: FloatArray, starts: IntArray, q: int, t: float) -> float:
    """The ν > 0 at which the levels of :func:`squared_levels` have the length t.

    Newton on 1 / length, which is linear in ν for one group and almost for several, in a
    bracket. The length at ν = 0 must be above t.
    """
    level = np.zeros(len(starts) - 1)
    slope = np.zeros(len(starts) - 1)
    low = 0.0
    high = np.inf
    nu = 0.0
    for _ in range(_ROOT_STEPS):
        squared_levels(ordered, starts, q, nu, level, slope)
        length = np.sqrt(np.sum(level * level))
        if length > t:
            low = nu
        else:
            high = nu
        change = -np.sum(level * slope) / length**3
        new = nu + (1.0 / t - 1.0 / length) / change if change > 0.0 else np.inf
        if not low < new < high:
            new = 0.5 * (low + high) if np.isfinite(high) else 2.0 * nu + 1.0
        if abs(new - nu) <= 4e-16 * nu:
            return new
        nu = new
    return nu


@njit(cache=True, nogil=True)
def max_levels(ordered: FloatArray, starts: IntArray, t: float, levels: FloatArray) -> None:
    """Maxima of the proxes of t‖·‖_∞, group by group."""
    for j in range(len(levels)):
        levels[j] = l1_threshold(ordered[starts[j] : starts[j + 1]], t)
