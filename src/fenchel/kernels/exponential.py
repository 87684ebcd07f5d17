"""Exponentials of arrays, and the kernels made of them, in place.

Compiled, because NumPy has vector instructions for exponentials in double precision on some
processors only: elsewhere these are six times faster, and nowhere slower.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from fenchel._typing import AnyArray, FloatArray

# exp(x) = 2^k exp(r), |r| <= log(2)/2: Taylor's polynomial of degree 13 leaves less than 1e-17
_INVERSES = [1.0 / factorial(k) for k in range(2, 14)]
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = _INVERSES
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SHIFT = 6755399441055744.0  # 1.5 * 2^52: added to a number, its last bits are the integer part
_LOWEST = -708.0  # exponentials below it are less than 3e-308, and zero here
_MANTISSA = 52
_HIGH_SINGLE, _LOW_SINGLE = 0.693359375, -2.12194440e-4  # the first with ten bits
_SHIFT_SINGLE, _LOWEST_SINGLE, _MANTISSA_SINGLE = 12582912.0, -87.0, 23
_CHUNK = 256  # values that stay in the nearest cache


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def _exponential(values: FloatArray, shifted: FloatArray) -> None:
    """Replace values <= 0 by their exponentials; as many numbers ``shifted`` are overwritten."""
    for i in range(values.size):
        x = _LOWEST if values[i] < _LOWEST else values[i]
        shifted[i] = x * _PER_LOG2 + _SHIFT
    powers = shifted.view(np.int64)
    for i in range(values.size):
        x = _LOWEST if values[i] < _LOWEST else values[i]
        k = shifted[i] - _SHIFT
        r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
        p = _C13 * r + _C12
        p = ((p * r + _C11) * r + _C10) * r + _C9
        p = ((p * r + _C8) * r + _C7) * r + _C6
        p = ((p * r + _C5) * r + _C4) * r + _C3
        p = ((p * r + _C2) * r + 1.0) * r + 1.0
        # what is not a number stays that; 0 * x changes nothing else
        values[i] = 0.0 if values[i] < _LOWEST else p + 0.0 * values[i]
    bits = values.view(np.int64)
    for i in range(values.size):
        bits[i] += (powers[i] << _MANTISSA) if values[i] > 0.0 else np.int64(0)


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def _exponential_single(values: AnyArray, shifted: AnyArray) -> None:
    """The same in single precision, within two units in the last place."""
    low, per, shift = np.float32(_LOWEST_SINGLE), np.float32(_PER_LOG2), np.float32(_SHIFT_SINGLE)
    for i in range(values.size):
        x = low if values[i] < low else values[i]
        shifted[i] = x * per + shift
    powers = shifted.view(np.int32)
    one, high, rest = np.float32(1.0), np.float32(_HIGH_SINGLE), np.float32(_LOW_SINGLE)
    c2, c3, c4 = np.float32(_C2), np.float32(_C3), np.float32(_C4)
    c5, c6, c7 = np.float32(_C5), np.float32(_C6), np.float32(_C7)
    for i in range(values.size):
        x = low if values[i] < low else values[i]
        k = shifted[i] - shift
        r = (x - k * high) - k * rest
        p = ((c7 * r + c6) * r + c5) * r + c4
        p = (((p * r + c3) * r + c2) * r + one) * r + one
        values[i] = np.float32(0.0) if values[i] < low else p + np.float32(0.0) * values[i]
    bits = values.view(np.int32)
    for i in range(values.size):
        shifted_power = np.int32(powers[i] << np.int32(_MANTISSA_SINGLE))
        bits[i] += shifted_power if values[i] > np.float32(0.0) else np.int32(0)


def _exponentials(values: AnyArray, shifted: AnyArray) -> None:
    """Of either precision: compiled functions call the one for their arrays."""


@overload(_exponentials)
def _choose(values: Any, shifted: Any) -> Any:
    chosen = _exponential_single if values.dtype == types.float32 else _exponential

    def call(values: Any, shifted: Any) -> Any:  # the same annotations: numba compares them
        chosen(values, shifted)

    return call


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def _gaussian(squares: AnyArray) -> None:
    shifted = np.empty(_CHUNK, squares.dtype)
    half = squares.dtype.type(-0.5)
    for start in range(0, squares.size, _CHUNK):
        part = squares[start : start + _CHUNK]
        for i in range(part.size):
            part[i] *= half
        _exponentials(part, shifted[: part.size])


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def _matern(squares: AnyArray, slopes: AnyArray, twice: int) -> None:
    """Matérn kernels of smoothness twice / 2, and their slopes where there is room for them."""
    shifted, distance = np.empty(_CHUNK, squares.dtype), np.empty(_CHUNK, squares.dtype)
    number = squares.dtype.type
    factor, one, three, third = number(twice), number(1.0), number(3.0), number(1.0 / 3.0)
    for start in range(0, squares.size, _CHUNK):
        part = squares[start : start + _CHUNK]
        root = distance[: part.size]
        for i in range(part.size):
            root[i] = np.sqrt(factor * part[i])
        for i in range(part.size):
            part[i] = -root[i]
        _exponentials(part, shifted[: part.size])
        if slopes.size:
            slope = slopes[start : start + _CHUNK]
            for i in range(part.size):
                slope[i] = three * part[i]
        if twice == 3:
            for i in range(part.size):
                part[i] *= one + root[i]
        elif twice == 5:
            for i in range(part.size):
                part[i] *= one + root[i] + third * root[i] * root[i]


def gaussian(squares: FloatArray) -> FloatArray:
    """Replace squared distances by exp(-d²/2)."""
    _gaussian(_flat(squares))
    return squares


def matern(squares: FloatArray, nu: float) -> FloatArray:
    """Replace squared distances by Matérn kernels of smoothness 1/2, 3/2 or 5/2."""
    _matern(_flat(squares), np.empty(0, squares.dtype), round(2 * nu))
    return squares


def matern32_with_slopes(squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for 3/2, with 3 exp(-√3 d): derivatives over the differences of two rows."""
    slopes = np.empty_like(squares)
    _matern(_flat(squares), _flat(slopes), 3)
    return squares, slopes


def _flat(values: FloatArray) -> FloatArray:
    """All values in a row, without a copy."""
    if not values.flags.c_contiguous:
        raise ValueError("values must be contiguous in memory, row by row")
    return values.reshape(-1)
