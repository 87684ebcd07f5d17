"""Compiled loop of the dual learners: one coordinate of the dual problem for each row."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
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
    coef: FloatArray, dual: FloatArray, arrival: IntArray, spared: int, oldest: bool
) -> float:
    """Drop the oldest point, or the oldest of the smallest coefficients; return what it had."""
    found, least = -1, np.inf
    for j in range(coef.size):
        size = 0.0 if oldest else abs(coef[j])
        if arrival[j] < 0 or j == spared:
            continue
        if size < least or (size == least and arrival[j] < arrival[found]):
            found, least = j, size
    lost = coef[found]
    coef[found], dual[found], arrival[found] = 0.0, 0.0, -1
    return lost


@njit(cache=True, nogil=True, error_model="numpy")
def dual_steps(
    kernel: tuple[FloatArray, bool],
    data: tuple[FloatArray, FloatArray, FloatArray],
    points: tuple[IntArray, FloatArray, IntArray],
    track: FloatArray,
    pace: FloatArray,
    shape: FloatArray,
    limit: tuple[int, bool],
) -> int:
    """Coordinate steps for the rows of a block, in place.

    ``kernel`` are its values (b, m) for the rows and all points that may be stored, and whether
    these are logarithms; ``data`` its diagonal, targets and weights of the rows. Of the
    ``points``, ``own`` (b,) is the one that a row is, ``dual`` (m, 3) holds a', a and the sum of
    a' - a over the averaged iterates, ``arrival`` the order in which those that have any came, and
    -1 of the others. ``shape`` is (ε, C, bend, offset): the bound of a row of weight s is C s, and
    the dual objective has bend/s and the kernel plus offset on its diagonal. ``limit`` is the
    number of points, and whether the oldest is given up. Returns the place of the row at which the
    coefficients diverge, or -1.
    """
    (values, logarithm), (diagonal, y, weight), (own, dual, arrival) = kernel, data, points
    budget, oldest = limit
    epsilon, offset = shape[0], shape[3]
    coef = dual[:, 0] - dual[:, 1]
    total = offset * coef.sum()
    n_stored = reach = latest = (arrival >= 0).sum()  # new points stand behind these
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
            n_stored += int(now) - int(arrival[c] >= 0)
            if not now:
                arrival[c] = -1
            elif arrival[c] < 0:  # one that was given up and comes back is the latest
                arrival[c] = latest
                latest += 1
            while n_stored > budget:
                total -= offset * _give_up(coef, dual, arrival, c, oldest)
                n_stored -= 1
        if track[ROWS] >= pace[3]:
            track[AVERAGED] += 1.0
    for j in range(coef.size):
        dual[j, 2] += coef[j] * (track[AVERAGED] - since[j])
    return -1
