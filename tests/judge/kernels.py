"""Kernels from their formulas, each value with a bound on what rounding may do to it.

A bound is that of an evaluation in double precision which sees every entry of X moved by a unit
of rounding: no library can be asked for more, and where rows are far from zero beside their
distances, it is much more than a unit of rounding of the value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from judge.findings import UNIT, Wide, wide


class Values(NamedTuple):
    """Kernel values (n, m), and how far rounding may move them."""

    value: np.ndarray
    error: np.ndarray


def kernel_values(kernel: Any, X: np.ndarray, Z: np.ndarray) -> Values:
    """k(X, Z) of a kernel with numbers in it, by the name of its class."""
    name = type(kernel).__name__
    if name in _RADIAL:
        return _radial(kernel, X, Z)
    if name in ("Linear", "Polynomial", "DotProduct"):
        return _of_products(kernel, X, Z)
    if name == "ConstantKernel":
        value = np.full((len(X), len(Z)), kernel.constant_value, dtype=Wide)
        return Values(value, UNIT * value)
    if name in ("Sum", "Product"):
        return _both(name, kernel_values(kernel.k1, X, Z), kernel_values(kernel.k2, X, Z))
    if name == "Exponentiation":
        base, power = kernel_values(kernel.kernel, X, Z), kernel.exponent
        value = base.value**power
        slope = abs(power) * np.abs(base.value) ** (power - 1)
        return Values(value, slope * base.error + 4 * UNIT * np.abs(value))
    raise NotImplementedError(f"the judge knows no kernel {name}")


def _both(name: str, first: Values, second: Values) -> Values:
    if name == "Sum":
        value = first.value + second.value
        return Values(value, first.error + second.error + UNIT * np.abs(value))
    value = first.value * second.value
    error = np.abs(first.value) * second.error + np.abs(second.value) * first.error
    return Values(value, error + UNIT * np.abs(value))


def _matern12(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = np.exp(-d)
    return value, value


def _matern32(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(wide(3)) * d
    decay = np.exp(-root)
    return (1 + root) * decay, 3 * d * decay


def _matern52(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(wide(5)) * d
    decay = np.exp(-root)
    return (1 + root + root * root / 3) * decay, wide(5) / 3 * d * (1 + root) * decay


def _gaussian(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = np.exp(-d * d / 2)
    return value, d * value


_MATERN = {0.5: _matern12, 1.5: _matern32, 2.5: _matern52}
_RADIAL = ("Gaussian", "RBF", "Laplacian", "Matern")


def _radial(kernel: Any, X: np.ndarray, Z: np.ndarray) -> Values:
    """Kernels of the scaled distance; the second of a pair is the steepness there."""
    scale = wide(kernel.length_scale)
    X, Z = wide(X) / scale, wide(Z) / scale
    squares = np.zeros((len(X), len(Z)), dtype=Wide)
    moved = np.zeros((len(X), len(Z)), dtype=Wide)
    for x, z in zip(X.T, Z.T, strict=True):
        squares += np.subtract.outer(x, z) ** 2
        moved += np.add.outer(np.abs(x), np.abs(z)) ** 2
    distance, moved = np.sqrt(squares), 2 * UNIT * np.sqrt(moved)
    name = type(kernel).__name__
    if name in ("Gaussian", "RBF"):
        shape = _gaussian
    else:
        shape = _MATERN[0.5 if name == "Laplacian" else float(kernel.nu)]
    value, slope = shape(distance)
    # the steepest is below one for all of them, and slopes change by no more than 5/3 of moves
    steep = np.minimum(1.0, slope + 2 * moved) if name != "Laplacian" else np.minimum(1.0, slope)
    relative = 4 * UNIT * (1 + distance * distance) * value
    return Values(value, steep * (moved + 8 * UNIT * distance) + relative)


def _of_products(kernel: Any, X: np.ndarray, Z: np.ndarray) -> Values:
    X, Z = wide(X), wide(Z)
    products, sizes = X @ Z.T, np.abs(X) @ np.abs(Z).T
    error = (X.shape[1] + 2) * UNIT * sizes
    name = type(kernel).__name__
    if name == "Linear":
        return Values(products, error)
    if name == "DotProduct":
        return Values(products + wide(kernel.sigma_0) ** 2, error + 2 * UNIT * kernel.sigma_0**2)
    base = kernel.gain * products + kernel.offset
    size = kernel.gain * sizes + kernel.offset
    error = kernel.gain * error + 2 * UNIT * size
    degree = int(kernel.degree)
    value = base**degree
    return Values(value, degree * size ** (degree - 1) * error + 2 * degree * UNIT * np.abs(value))
