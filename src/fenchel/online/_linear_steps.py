"""Compiled loops of the linear learners: one step of gradient descent for each row.

Sums run over the columns in their order, without reassociation, so that a stream gives the
same bits in blocks of any size.
"""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
from fenchel.online._pace import ABSURD, AVERAGED, LARGEST_TARGET, ROWS, SQUARES, next_step

Three = tuple[FloatArray, FloatArray, FloatArray]
_LEAST = 1e-100  # square of the column of the offset where all rows so far are zero


@njit(cache=True, nogil=True, error_model="numpy")
def _column(
    track: FloatArray, pace: FloatArray, offset: float, square: float, d: int, least: float
) -> tuple[float, float]:
    """The square that the column of the offset has, and 0 where a row moves the offset alone.

    1 with a step. Without one it has the unit of the rows: it is the mean square of the entries
    so far, and a first row, which says nothing of slopes or of the size of the next, moves none.
    It is at least what a penalty adds to the curvature, or a strong one would hold the offset up.
    """
    track[SQUARES] += (square / d - track[SQUARES]) / (track[ROWS] + 1.0)
    if offset == 0.0 or not np.isnan(pace[0]):
        return offset, 1.0
    return max(track[SQUARES], least, _LEAST), 0.0 if track[ROWS] == 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def squared_steps(
    rows: Three, order: IntArray, state: Three, pace: FloatArray, alpha: float, offset: float
) -> int:
    """w - 2η s [(w·x - y) x + αw] for the rows in this order, in place.

    ``rows`` are X, y and their weights, ``state`` is w, its mean and the track: w is (1, d + 1)
    with the offset, which is not shrunk, last; ``offset`` is 1 or 0. Returns the place in
    ``order`` at which the weights have diverged, or -1.
    """
    (X, y, weight), (w, mean, track) = rows, state
    d = X.shape[1]
    for k in range(order.size):
        x, s = X[order[k]], weight[order[k]]
        guess, square = offset * w[0, d], 0.0
        for j in range(d):
            guess += w[0, j] * x[j]
            square += x[j] * x[j]
        one, moves = _column(track, pace, offset, square, d, alpha)
        size = (square + one + alpha) * s
        error = guess - y[order[k]]
        eta = next_step(track, pace, size, y[order[k]], False)
        if _diverged(error, eta * size > 1.0, track):
            return k
        gain, shrink = 2.0 * eta * s * error, 1.0 - 2.0 * eta * s * alpha
        for j in range(d):
            w[0, j] = shrink * w[0, j] - moves * gain * x[j]
        w[0, d] -= one * gain
        if track[ROWS] >= pace[3]:
            track[AVERAGED] += 1.0
            for j in range(d + 1):
                mean[j] += (w[0, j] - mean[j]) / track[AVERAGED]
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def lasso_steps(
    rows: Three, order: IntArray, state: Three, pace: FloatArray, alpha: float, offset: float
) -> int:
    """max(0, w± - η s [α ∓ (y - (w⁺ - w⁻)·x) x]); as :func:`squared_steps`, with w (2, d + 1)."""
    (X, y, weight), (w, mean, track) = rows, state
    d = X.shape[1]
    for k in range(order.size):
        x, s = X[order[k]], weight[order[k]]
        guess, square = offset * w[0, d], 0.0
        for j in range(d):
            guess += (w[0, j] - w[1, j]) * x[j]
            square += x[j] * x[j]
        one, moves = _column(track, pace, offset, square, d, 0.0)
        error = guess - y[order[k]]
        eta = next_step(track, pace, s * (square + one), y[order[k]], False)
        if _diverged(error, eta * s * (2.0 * square + one) > 2.0, track):
            return k
        for j in range(d):
            w[0, j] = max(0.0, w[0, j] - eta * s * (alpha + moves * error * x[j]))
            w[1, j] = max(0.0, w[1, j] - eta * s * (alpha - moves * error * x[j]))
        w[0, d] -= one * eta * s * error
        if track[ROWS] >= pace[3]:
            track[AVERAGED] += 1.0
            for j in range(d + 1):
                mean[j] += (w[0, j] - w[1, j] - mean[j]) / track[AVERAGED]
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _diverged(error: float, expands: bool, track: FloatArray) -> bool:
    return not np.isfinite(error) or (expands and abs(error) > ABSURD * track[LARGEST_TARGET])
