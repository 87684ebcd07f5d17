"""Compiled loops of greedy dual ascent, in single precision.

Minimizes, over a in a box and (with offsets) of sum zero within each output,

    ½ aᵀKa + Σ_i ½ q_i^± a_i² - yᵀa + ε Σ_i |a_i|,

q^- where a is negative and q^+ where it is positive. ``pull`` is the slope of the smooth part;
``up`` and ``down`` are what ε and the bounds add to it for a coordinate that grows or shrinks.
Coordinates of one output lie one after the other. ``gram`` has the kernel values of coordinates,
and a value for each pair of outputs multiplies them; or, if it is smaller, those of rows, which
all outputs have in the same order: a p²-th of the values, that stay in cache.
The loops are such that compilers vectorize each: largest gains are those of the bits of floats,
read as integers in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._compiling import INSIDE, njit
from fenchel._typing import AnyArray, FloatArray, IntArray

_FAR = np.float32(1e30)
_ZERO, _TWO, _TEN = np.float32(0.0), np.float32(2.0), np.float32(10.0)
_CURVED = np.float32(1e-6)  # least curvature of a step, in units of the kernel
Costs = tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]
_SIGN, _REST, _LEAST = np.int32(31), np.int32(2**31 - 1), np.int32(-(2**31))


_HOW: Any = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}


def _compiled(function):  # type: ignore[no-untyped-def]  # NumPy scalars are ints only when compiled
    return njit(**_HOW)(function)


def _inside(function):  # type: ignore[no-untyped-def]  # as above
    return njit(**_HOW, **INSIDE)(function)


@_inside
def _place(bits: IntArray, value: np.int32) -> np.int32:
    """Last place of a value that is there."""
    place = np.int32(-1)
    for k in range(bits.size):
        place = max(place, np.int32(k) if bits[k] == value else np.int32(-1))
    return place


@_inside
def _flipped(bits: np.int32) -> np.int32:
    """Bits of a float to an integer in the same order, and back."""
    return np.int32(bits ^ np.int32(np.int32(bits >> _SIGN) & _REST))


@_inside
def _growing(pull: AnyArray, up: AnyArray, bits: IntArray) -> np.int32:
    """Gains per unit of coordinates that grow, as integers in their order, and the largest."""
    most = _LEAST
    for k in range(pull.size):
        bits[k] = _flipped(np.float32(-(pull[k] + up[k])).view(np.int32))
        most = max(most, bits[k])
    return most


@_inside
def _shrinking(pull: AnyArray, down: AnyArray) -> np.int32:
    """The largest gain per unit of coordinates that shrink, as such an integer."""
    most = _LEAST
    for k in range(pull.size):
        most = max(most, _flipped(np.float32(pull[k] + down[k]).view(np.int32)))
    return most


@_inside
def _widest(
    ends: IntArray, pull: AnyArray, up: AnyArray, down: AnyArray, bits: IntArray
) -> tuple[np.int32, np.float32, int, int]:
    """Of the outputs, the one whose steepest pair gains most, and where its coordinates are.

    First the coordinate of the pair that grows, and the gain per unit of the one that shrinks.
    """
    found, widest, start = (np.int32(0), -_FAR, 0, 0), -_TEN * _FAR, 0
    for k in range(ends.size):
        stop = ends[k]
        if stop > start:
            own = slice(start, stop)
            grow, shrink = (
                _growing(pull[own], up[own], bits[own]),
                _shrinking(pull[own], down[own]),
            )
            rise = np.int32(_flipped(grow)).view(np.float32)
            fall = np.int32(_flipped(shrink)).view(np.float32)
            if rise + fall > widest:
                i = np.int32(start + _place(bits[own], grow))
                found, widest = (i, fall, start, stop), rise + fall
        start = stop
    return found


@_inside
def _partner(
    pull: AnyArray,
    down: AnyArray,
    bend: AnyArray,
    row: AnyArray,
    slope: np.float32,
    own: np.float32,
    factor: np.float32,
    bits: IntArray,
) -> np.int32:
    """Coordinate to shrink with the largest gain (slope²/curvature) for a growing one.

    ``row`` times ``factor`` are its kernel values.
    """
    most, twice = _LEAST, _TWO * factor
    for k in range(pull.size):
        steep = max(pull[k] + down[k] - slope, _ZERO)
        gain = steep * steep / max(own + bend[k] - twice * row[k], _CURVED)
        bits[k] = np.float32(gain).view(np.int32)  # none is negative: in the same order
        most = max(most, bits[k])
    return _place(bits, most)


@_inside
def _alone(pull: AnyArray, costs: Costs, bits: IntArray) -> np.int32:
    """Coordinate with the largest gain by itself."""
    _, up, down, bend_up, bend_down = costs
    most = _LEAST
    for k in range(pull.size):
        grow = max(-(pull[k] + up[k]), _ZERO)
        shrink = max(pull[k] + down[k], _ZERO)
        gain = max(grow * grow / bend_up[k], shrink * shrink / bend_down[k])
        bits[k] = np.float32(gain).view(np.int32)
        most = max(most, bits[k])
    return _place(bits, most)


@_inside
def _shift(pull: AnyArray, size: np.float32, plus: AnyArray, minus: AnyArray) -> None:
    for k in range(pull.size):
        pull[k] += size * (plus[k] - minus[k])


@_inside
def _shift_alone(pull: AnyArray, size: np.float32, row: AnyArray) -> None:
    for k in range(pull.size):
        pull[k] += size * row[k]


@_inside
def _output(ends: IntArray, k: np.int32) -> int:
    """The output of a coordinate."""
    found = 0
    while ends[found] <= k:
        found += 1
    return found


@_inside
def _settle(
    k: np.int32, dual: FloatArray, box: FloatArray, epsilon: np.float32, costs: Costs
) -> None:
    """What a coordinate allows and costs from where it is; box has rows l, u, q⁻, q⁺."""
    diagonal, up, down, bend_up, bend_down = costs
    here = dual[k]
    up[k] = _FAR if here >= box[1, k] else (epsilon if here >= 0.0 else -epsilon)
    down[k] = -_FAR if here <= box[0, k] else (epsilon if here > 0.0 else -epsilon)
    bend_up[k] = max(diagonal[k] + np.float32(box[3 if here >= 0.0 else 2, k]), _CURVED)
    bend_down[k] = max(diagonal[k] + np.float32(box[3 if here > 0.0 else 2, k]), _CURVED)


@_inside
def _settled(
    gram: AnyArray,
    coupling: AnyArray,
    dual: FloatArray,
    box: FloatArray,
    ends: IntArray,
    epsilon: np.float32,
) -> Costs:
    """Diagonal of the kernel, and up, down and their curvatures for all coordinates."""
    n, output, start = dual.size, 0, 0
    diagonal, up, down = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    costs = diagonal, up, down, np.empty(n, np.float32), np.empty(n, np.float32)
    for k in range(n):
        while k >= ends[output]:
            output, start = output + 1, ends[output]
        place = k - start if len(gram) < n else k
        diagonal[k] = coupling[output, output] * gram[place, place]
        _settle(np.int32(k), dual, box, epsilon, costs)  # compiled once, for one type
    return costs


@_compiled
def _couple(
    gram: AnyArray, rows: IntArray, coupling: AnyArray, outputs: IntArray, values: AnyArray
) -> None:
    n, row = rows.size, np.empty(values.shape[1], np.float32)
    for i in range(n):
        for k in range(row.size):
            row[k] = np.float32(values[rows[i], k])
        for j in range(n):
            gram[i, j] = row[rows[j]] * coupling[outputs[i], outputs[j]]


def coupled(values: AnyArray, rows: IntArray, coupling: AnyArray, outputs: IntArray) -> AnyArray:
    """Kernel values of coordinates, each a row and an output, in single precision."""
    gram = np.empty((len(rows), len(rows)), np.float32)
    _couple(gram, rows, coupling, outputs, values)
    return gram


@_compiled
def ascend_in_pairs(
    gram: AnyArray,
    coupling: AnyArray,
    dual: FloatArray,
    pull: AnyArray,
    box: FloatArray,
    ends: IntArray,
    epsilon: float,
    tol: float,
    max_steps: int,
) -> int:
    """Update pairs of coordinates of one output: the most violating and its best partner.

    The sum over each output does not change. Outputs are stored one after the other, up to
    ``ends``. ``dual`` and ``pull`` are updated in place. Stops when the largest slope of a pair
    is ``tol``; returns the number of steps.
    """
    n, eps, by_row = dual.size, np.float32(epsilon), len(gram) < dual.size
    costs = _settled(gram, coupling, dual, box, ends, eps)
    _, up, down, bend_up, bend_down = costs
    bits, steps = np.empty(n, np.int32), 0
    while True:
        i, top, start, stop = _widest(ends, pull, up, down, bits)
        slope = pull[i] + up[i]
        if top - slope <= tol or steps >= max_steps:
            return steps
        origin, output = (start if by_row else 0), _output(ends, i)
        row, factor = gram[i - origin], coupling[output, output]
        own, mine = slice(start, stop), slice(start - origin, stop - origin)
        j = np.int32(start) + _partner(
            pull[own], down[own], bend_down[own], row[mine], slope, bend_up[i], factor, bits[own]
        )
        curvature = max(bend_up[i] + bend_down[j] - _TWO * factor * row[j - origin], _CURVED)
        size = float(pull[j] + down[j] - slope) / curvature
        qi = box[3 if dual[i] >= 0.0 else 2, i]
        qj = box[3 if dual[j] > 0.0 else 2, j]
        end_i = 0.0 if dual[i] < 0.0 else box[1, i]
        end_j = 0.0 if dual[j] > 0.0 else box[0, j]
        room_i, room_j = end_i - dual[i], dual[j] - end_j
        size = min(size, room_i, room_j)
        dual[i] = end_i if size == room_i else dual[i] + size
        dual[j] = end_j if size == room_j else dual[j] - size
        other, start = gram[j - origin], 0
        for k in range(ends.size):
            part = slice(start, ends[k])
            there = slice(0, ends[k] - start) if by_row else part
            _shift(pull[part], np.float32(size) * coupling[output, k], row[there], other[there])
            start = ends[k]
        pull[i] += np.float32(qi * size)
        pull[j] -= np.float32(qj * size)
        _settle(i, dual, box, eps, costs)
        _settle(np.int32(j), dual, box, eps, costs)
        steps += 1


@_compiled
def ascend_alone(
    gram: AnyArray,
    coupling: AnyArray,
    dual: FloatArray,
    pull: AnyArray,
    box: FloatArray,
    ends: IntArray,
    epsilon: float,
    tol: float,
    max_steps: int,
) -> int:
    """Update the coordinate that gains most; as :func:`ascend_in_pairs`, without offset."""
    n, eps, by_row = dual.size, np.float32(epsilon), len(gram) < dual.size
    costs, bits = _settled(gram, coupling, dual, box, ends, eps), np.empty(n, np.int32)
    _, up, down, bend_up, bend_down = costs
    steps = 0
    while True:
        i = _alone(pull, costs, bits)
        rise, fall = -(pull[i] + up[i]), pull[i] + down[i]
        # the gain is the squared slope over the curvature: both are needed to stop
        if max(rise, fall) <= tol or steps >= max_steps:
            return steps
        grows = rise > fall
        curvature = bend_up[i] if grows else bend_down[i]
        q = box[3 if dual[i] > 0.0 or (grows and dual[i] == 0.0) else 2, i]
        if grows:
            end = 0.0 if dual[i] < 0.0 else box[1, i]
            size = min(float(rise) / curvature, end - dual[i])
        else:
            end = 0.0 if dual[i] > 0.0 else box[0, i]
            size = max(-float(fall) / curvature, end - dual[i])
        dual[i] = end if size == end - dual[i] else dual[i] + size
        output, start = _output(ends, i), 0
        row = gram[i - (ends[output - 1] if by_row and output > 0 else 0)]
        for k in range(ends.size):
            part = slice(start, ends[k])
            there = slice(0, ends[k] - start) if by_row else part
            _shift_alone(pull[part], np.float32(size) * coupling[output, k], row[there])
            start = ends[k]
        pull[i] += np.float32(q * size)
        _settle(i, dual, box, eps, costs)
        steps += 1
