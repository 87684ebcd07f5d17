"""Compiled loops of the linear learners: one step of gradient descent for each row.

Sums run over the columns in their order, without reassociation, so that a stream gives the
same bits in blocks of any size.
"""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
from fenchel.online._pace import ABSURD, AVERAGED, LARGEST_TARGET, ROWS, next_step

Three = tuple[FloatArray, FloatArray, FloatArray]


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
        guess, size = offset * w[0, d], offset + alpha
        for j in range(d):
            guess += w[0, j] * x[j]
            size += x[j] * x[j]
        size *= s
        error = guess - y[order[k]]
        eta = next_step(track, pace, size, y[order[k]], False)
        if _diverged(error, eta * size > 1.0, track):
            return k
        gain, shrink = 2.0 * eta * s * error, 1.0 - 2.0 * eta * s * alpha
        for j in range(d):
            w[0, j] = shrink * w[0, j] - gain * x[j]
        w[0, d] -= offset * gain
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
        guess, size = offset * w[0, d], offset
        for j in range(d):
            guess += (w[0, j] - w[1, j]) * x[j]
            size += x[j] * x[j]
        error = guess - y[order[k]]
        eta = next_step(track, pace, s * size, y[order[k]], False)
        if _diverged(error, eta * s * (2.0 * size - offset) > 2.0, track):
            return k
        for j in range(d):
            w[0, j] = max(0.0, w[0, j] - eta * s * (alpha + error * x[j]))
            w[1, j] = max(0.0, w[1, j] - eta * s * (alpha - error * x[j]))
        w[0, d] -= offset * eta * s * error
        if track[ROWS] >= pace[3]:
            track[AVERAGED] += 1.0
            for j in range(d + 1):
                mean[j] += (w[0, j] - w[1, j] - mean[j]) / track[AVERAGED]
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _diverged(error: float, expands: bool, track: FloatArray) -> bool:
    return not np.isfinite(error) or (expands and abs(error) > ABSURD * track[LARGEST_TARGET])
