"""Exponentials of arrays, and kernels computed from them, in place.

The functions are compiled: NumPy uses vector instructions for exponentials in double precision
on some processors only. On the others these functions are six times faster, and they are slower
on none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from fenchel._compiling import INSIDE, njit
from fenchel._typing import AnyArray, FloatArray

# exp(x) = 2^k exp(r), exp(r) = 1 + r + r² q(r), |r| <= log(2)/2: q is interpolated at the points
# of Chebyshev by degree 9, which leaves less than 2e-17, and in single precision by degree 4, 1e-8
_C2, _C3, _C4 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
_C5, _C6, _C7 = 0.008333333333330062, 0.0013888888917213717, 0.00019841269863053618
_C8, _C9 = 2.4801521295954376e-05, 2.7557268459997064e-06
_C10, _C11 = 2.7620088445409746e-07, 2.510038549551032e-08
_S2, _S3, _S4 = 0.5, 0.16666576989698775, 0.041666554617204574
_S5, _S6 = 0.008363179052722578, 0.0013926183587713494
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SHIFT = 6755399441055744.0  # 1.5 * 2^52: added to a number, its last bits are the integer part
_LOWEST = -708.0  # exponentials below it are less than 3e-308, and zero here
_MANTISSA = 52
_HIGH_SINGLE, _LOW_SINGLE = 0.693359375, -2.12194440e-4  # the first with ten bits
_SHIFT_SINGLE, _LOWEST_SINGLE, _MANTISSA_SINGLE = 12582912.0, -87.0, 23
GAUSSIAN = 0  # in the place of twice the smoothness
QUICK: Any = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "nsz"},
    "error_model": "numpy",
}
"""Options of loops over pairs of rows."""


@njit(**QUICK, **INSIDE)
def _double(value: Any) -> float:
    """Exponential of a number <= 0."""
    x = _LOWEST if value < _LOWEST else value
    shifted = x * _PER_LOG2 + _SHIFT
    k = shifted - _SHIFT
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = ((_C11 * r + _C10) * r + _C9) * r + _C8
    p = ((p * r + _C7) * r + _C6) * r + _C5
    p = ((p * r + _C4) * r + _C3) * r + _C2
    p = (p * r + 1.0) * r + 1.0
    power = np.float64(shifted).view(np.int64) << _MANTISSA
    found = np.int64(np.float64(p).view(np.int64) + power).view(np.float64)
    # what is not a number stays that; 0 * x changes nothing else
    return 0.0 if value < _LOWEST else found + 0.0 * x


@njit(**QUICK, **INSIDE)
def _single(value: Any) -> np.float32:
    """The same in single precision, within two units in the last place."""
    low, per, shift = np.float32(_LOWEST_SINGLE), np.float32(_PER_LOG2), np.float32(_SHIFT_SINGLE)
    one, high, rest = np.float32(1.0), np.float32(_HIGH_SINGLE), np.float32(_LOW_SINGLE)
    c2, c3, c4 = np.float32(_S2), np.float32(_S3), np.float32(_S4)
    c5, c6 = np.float32(_S5), np.float32(_S6)
    x = low if value < low else value
    shifted = x * per + shift
    k = shifted - shift
    r = (x - k * high) - k * rest
    p = ((c6 * r + c5) * r + c4) * r + c3
    p = ((p * r + c2) * r + one) * r + one
    power = np.int32(np.float32(shifted).view(np.int32) << np.int32(_MANTISSA_SINGLE))
    found = np.int32(np.float32(p).view(np.int32) + power).view(np.float32)
    return np.float32(0.0) if value < low else found + np.float32(0.0) * x


def exponential(value: Any) -> Any:
    """Of either precision: compiled functions call the one for their numbers.

    Where nothing is compiled, as with ``NUMBA_DISABLE_JIT``, it is NumPy's.
    """
    return np.exp(value)


@overload(exponential)
def _choose(value: Any) -> Any:
    chosen = _single if value == types.float32 else _double

    def call(value: Any) -> Any:  # the same annotations: numba compares them
        return chosen(value)

    return call


@njit(**QUICK)
def shape(squares: AnyArray, twice: int) -> None:
    """Replace squared distances by Matérn kernels of smoothness twice / 2, Gaussian for 0."""
    number = squares.dtype.type
    half, factor, one, third = number(-0.5), number(twice), number(1.0), number(1.0 / 3.0)
    if twice == GAUSSIAN:
        for i in range(squares.size):
            squares[i] = exponential(half * squares[i])
    elif twice == 1:
        for i in range(squares.size):
            squares[i] = exponential(-np.sqrt(squares[i]))
    elif twice == 3:
        for i in range(squares.size):
            root = np.sqrt(factor * squares[i])
            squares[i] = (one + root) * exponential(-root)
    else:
        for i in range(squares.size):
            root = np.sqrt(factor * squares[i])
            squares[i] = (one + root + third * root * root) * exponential(-root)


@njit(**QUICK)
def _shape_with_slopes(squares: AnyArray, slopes: AnyArray) -> None:
    """The same for smoothness 3/2, and slopes."""
    number = squares.dtype.type
    one, three = number(1.0), number(3.0)
    for i in range(squares.size):
        root = np.sqrt(three * squares[i])
        value = exponential(-root)
        squares[i] = (one + root) * value
        slopes[i] = three * value


def shaped(squares: FloatArray, twice: int | None) -> FloatArray:
    """Replace squared distances by the kernel values that :func:`shape` defines for ``twice``."""
    assert twice is not None
    shape(_flat(squares), twice)
    return squares


def gaussian(squares: FloatArray) -> FloatArray:
    """Replace squared distances by exp(-d²/2)."""
    return shaped(squares, GAUSSIAN)


def matern(squares: FloatArray, nu: float) -> FloatArray:
    """Replace squared distances by Matérn kernels of smoothness 1/2, 3/2 or 5/2."""
    return shaped(squares, round(2 * nu))


def matern32_with_slopes(squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for 3/2, with 3 exp(-√3 d): derivatives over the differences of two rows."""
    slopes = np.empty_like(squares)
    _shape_with_slopes(_flat(squares), _flat(slopes))
    return squares, slopes


def _flat(values: FloatArray) -> FloatArray:
    """All values in a row, without a copy."""
    if not values.flags.c_contiguous:
        raise ValueError("values must be contiguous in memory, row by row")
    return values.reshape(-1)
