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


class Rows(NamedTuple):
    """Rows, and the sizes of their entries, which rounding moves by a unit of these."""

    value: np.ndarray
    size: np.ndarray


def kernel_values(kernel: Any, X: np.ndarray, Z: np.ndarray) -> Values:
    """k(X, Z) of a kernel with numbers in it, by the name of its class."""
    return _values(kernel, Rows(wide(X), np.abs(wide(X))), Rows(wide(Z), np.abs(wide(Z))))


def _values(kernel: Any, X: Rows, Z: Rows) -> Values:
    name = type(kernel).__name__
    if name == "WithRanks":
        return _values(kernel.kernel, _with_ranks(kernel, X), _with_ranks(kernel, Z))
    if name in _RADIAL:
        return _radial(kernel, X, Z)
    if name in ("Linear", "Polynomial", "DotProduct"):
        return _of_products(kernel, X, Z)
    if name == "ConstantKernel":
        value = np.full((len(X.value), len(Z.value)), kernel.constant_value, dtype=Wide)
        return Values(value, UNIT * value)
    if name in ("Sum", "Product"):
        return _both(name, _values(kernel.k1, X, Z), _values(kernel.k2, X, Z))
    if name == "Exponentiation":
        base, power = _values(kernel.kernel, X, Z), kernel.exponent
        value = base.value**power
        slope = abs(power) * np.abs(base.value) ** (power - 1)
        return Values(value, slope * base.error + 4 * UNIT * np.abs(value))
    raise NotImplementedError(f"the judge knows no kernel {name}")


def _with_ranks(kernel: Any, rows: Rows) -> Rows:
    """Rows with a rank beside each value of some columns, on straight lines between knots.

    A rank is a knot's and a share, at most one, of a step to the next: a few units of rounding.
    """
    columns = [int(j) for j in kernel.columns]
    ranks = [_rank(rows.value[:, j], wide(k)) for j, k in zip(columns, kernel.knots, strict=True)]
    value = np.column_stack([rows.value, *ranks])
    return Rows(value, np.column_stack([rows.size, *(0 * r + _RANK for r in ranks)]))


def _rank(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """F of a column: the line through the last knot at or below a value and the next one."""
    at, rank = knots
    below = np.searchsorted(at, values, side="right") - 1
    first, last = np.clip(below, 0, len(at) - 1), np.clip(below + 1, 0, len(at) - 1)
    step = at[last] - at[first]
    share = np.where(step > 0, (values - at[first]) / np.where(step > 0, step, 1), 0)
    return np.asarray(rank[first] + share * (rank[last] - rank[first]))


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
_RANK = 4.0  # units of rounding of a rank
_RADIAL = ("Gaussian", "RBF", "Laplacian", "Matern")


def _radial(kernel: Any, X: Rows, Z: Rows) -> Values:
    """Kernels of the scaled distance; the second of a pair is the steepness there."""
    scale = wide(kernel.length_scale)
    squares = np.zeros((len(X.value), len(Z.value)), dtype=Wide)
    moved = np.zeros(squares.shape, dtype=Wide)
    for x, z in zip((X.value / scale).T, (Z.value / scale).T, strict=True):
        squares += np.subtract.outer(x, z) ** 2
    for x, z in zip((X.size / scale).T, (Z.size / scale).T, strict=True):
        moved += np.add.outer(x, z) ** 2
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


def _of_products(kernel: Any, X: Rows, Z: Rows) -> Values:
    products, sizes = X.value @ Z.value.T, X.size @ Z.size.T
    error = (X.value.shape[1] + 2) * UNIT * sizes
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
