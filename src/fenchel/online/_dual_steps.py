"""Compiled loop of the dual learners: one coordinate of the dual problem for each row."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.kernels.exponential import exponential
from fenchel.online._pace import ABSURD, AVERAGED, LARGEST_TARGET, ROWS, next_step

_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _dot(first: FloatArray, second: FloatArray) -> float:
    total = 0.0
    for j in range(first.size):
        total += first[j] * second[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _dot_exp(first: FloatArray, logarithms: FloatArray) -> float:
    """Sum of first * exp(logarithms), these at most 0 up to rounding."""
    total = 0.0
    for j in range(first.size):
        total += first[j] * exponential(logarithms[j])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _give_up(
    coef: FloatArray, dual: FloatArray, stored: AnyArray, spared: int, oldest: bool
) -> float:
    """Drop the oldest point, or the oldest of the smallest coefficients; return what it had."""
    found, least = -1, np.inf
    for j in range(coef.size):
        if stored[j] and j != spared and abs(coef[j]) < least:
            found, least = j, abs(coef[j])
            if oldest:
                break
    lost = coef[found]
    coef[found], dual[found], stored[found] = 0.0, 0.0, False
    return lost


@njit(cache=True, nogil=True, error_model="numpy")
def dual_steps(
    kernel: tuple[FloatArray, bool],
    data: tuple[FloatArray, FloatArray, FloatArray],
    points: tuple[IntArray, FloatArray, AnyArray],
    track: FloatArray,
    pace: FloatArray,
    shape: FloatArray,
    limit: tuple[int, bool],
) -> int:
    """Coordinate steps for the rows of a block, in place.

    ``kernel`` are its values (b, m) for the rows and all points that may be stored, and whether
    these are logarithms; ``data`` its diagonal, targets and weights of the rows. Of the
    ``points``, ``own`` (b,) is the one that a row is, ``dual`` (m, 3) holds a', a and the sum of
    a' - a over the averaged iterates, ``stored`` says which have any. ``shape`` is (ε, C, bend,
    offset): the bound of a row of weight s is C s, and the dual objective has bend/s and the
    kernel plus offset on its diagonal. ``limit`` is the number of points, and whether the oldest
    is given up. Returns the place of the row at which the coefficients diverge, or -1.
    """
    (values, logarithm), (diagonal, y, weight), (own, dual, stored) = kernel, data, points
    budget, oldest = limit
    epsilon, offset = shape[0], shape[3]
    coef = dual[:, 0] - dual[:, 1]
    total = offset * coef.sum()
    n_stored = reach = stored.sum()  # new points stand behind those that are stored
    since = np.full(coef.size, track[AVERAGED])
    for i in range(y.size):
        c, s = own[i], weight[i]
        reach = max(reach, c + 1)
        known, row = coef[:reach], values[i, :reach]
        guess = total + (_dot_exp(known, row) if logarithm else _dot(known, row))
        bend = shape[2] / s
        curvature = diagonal[i] + offset + bend
        step = next_step(track, pace, curvature, y[i], True)
        error = y[i] - guess
        absurd = abs(error) > ABSURD * track[LARGEST_TARGET]
        if not np.isfinite(error) or (absurd and step * curvature > 1.0):
            return i
        slope = error - bend * coef[c]
        up = min(max(dual[c, 0] + step * (slope - epsilon), 0.0), shape[1] * s)
        down = min(max(dual[c, 1] + step * (-slope - epsilon), 0.0), shape[1] * s)
        if up != dual[c, 0] or down != dual[c, 1]:
            dual[c, 2] += coef[c] * (track[AVERAGED] - since[c])
            since[c], dual[c, 0], dual[c, 1] = track[AVERAGED], up, down
            total += offset * (up - down - coef[c])
            coef[c] = up - down
            # a point without coefficient may still be part of the average
            now = up > 0.0 or down > 0.0 or dual[c, 2] != 0.0
            n_stored += int(now) - int(stored[c])
            stored[c] = now
            while n_stored > budget:
                total -= offset * _give_up(coef, dual, stored, c, oldest)
                n_stored -= 1
        if track[ROWS] >= pace[3]:
            track[AVERAGED] += 1.0
    for j in range(coef.size):
        dual[j, 2] += coef[j] * (track[AVERAGED] - since[j])
    return -1
