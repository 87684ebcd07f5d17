"""Dual vectors whose lengths are known by an equation: what ε does to any loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel._typing import FloatArray

_ROUNDING = 8.0 * float(np.finfo(float).eps)  # of a length over another
_HALVINGS = 70  # of a bracket of lengths: 2**-70 of it is less than the rounding of any number


def fixed_length(
    dual_of_length: Callable[[FloatArray], FloatArray], high: FloatArray
) -> FloatArray:
    """Find, row by row, the dual vector whose length is the one that it was made with.

    Lengths over those that they lead to grow with them, in a line for the squared loss and for
    dual vectors on a bound. The line through both ends, moved towards the middle where it is far
    from it, needs few steps there, and never more than two beyond those of bisection (the ITP
    method of Oliveira and Takahashi 2020, ACM Transactions on Mathematical Software 47(1), with
    their constants).
    """

    def excess(rho: FloatArray) -> FloatArray:
        length = np.linalg.norm(dual_of_length(rho), axis=1, keepdims=True)
        return np.where(length > 0.0, rho / np.where(length > 0.0, length, 1.0), np.inf) - 1.0

    smallest = high * 2.0**-_HALVINGS
    low, pace = smallest, 0.2 / high
    at_low, at_high = excess(low), excess(high)
    alive = at_low < -_ROUNDING  # what has shrunk all the way down to 0 is 0, exactly
    for halvings in range(_HALVINGS + 1, -1, -1):
        width = high - low
        near = np.minimum(np.abs(at_low), np.abs(at_high)) <= _ROUNDING
        done = ~alive | near | (at_high <= 0.0) | (width <= 2.0 * np.spacing(high))
        if done.all():
            break
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore", invalid="ignore"):  # of rows that are done
            line = low - at_low * width / (at_high - at_low)
        side = np.sign(middle - np.where(np.isfinite(line), line, middle))
        line = np.where(np.isfinite(line), line, middle)
        cut = pace * width**2
        rho = np.where(cut <= np.abs(middle - line), line + side * cut, middle)
        reach = np.maximum(smallest * 2.0**halvings - 0.5 * width, 0.0)
        rho = np.where(np.abs(rho - middle) <= reach, rho, middle - side * reach)
        rho = np.where(done, high, rho)
        at_rho = excess(rho)
        short = at_rho < 0.0
        low, at_low = np.where(~done & short, rho, low), np.where(~done & short, at_rho, at_low)
        high = np.where(~done & ~short, rho, high)
        at_high = np.where(~done & ~short, at_rho, at_high)
    best = np.where(np.abs(at_low) < np.abs(at_high), low, high)
    return np.where(alive, dual_of_length(best), 0.0)
