"""Densities of one column of rows given the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from fenchel._sentences import said_of
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import Number, shown
from fenchel.distributions import GridDistribution
from fenchel.positive._panels import pieces_of
from fenchel.positive._quadrature import decay_range
from fenchel.positive.model import PSDModel

_SHARE = 1.0 / 32.0  # of a length scale from a point to the next
_EQUAL = 1024  # cells where there is no length scale
_SMALL = 1e-200  # densities of a row all below it are compared by their logarithms
_LARGE = 1e12  # logarithms beyond it have errors of a thousandth and more
_AT_ONCE = 2**14  # rows of the grid whose features are made at once


def conditional_density(
    model: PSDModel, X: ArrayLike, column: Any, names: AnyArray | None = None
) -> GridDistribution:
    """Conditional distributions of a column at rows of the others, from the joint density.

    ``names`` are those of all columns of the fit, if it had any.
    """
    d = model.n_features_in_
    if d < 2:
        raise ValueError(
            "predict_distribution predicts one column from the others, and the fit has a single "
            "one: its density is score_samples, its values sample"
        )
    place = int(Number(-d, d - 1, integer=True)(column, "column")) % d
    if names is not None:
        _check_names(X, np.delete(names, place).tolist())
    with said_of("X"):
        given = check_array(X, dtype=np.float64, input_name="X")
    if given.shape[1] != d - 1:
        raise ValueError(
            f"X must have the {d - 1} other columns of the fit, got {given.shape[1]} columns"
        )
    ends = decay_range(model.feature_map_, *model.support_.bounds)
    if ends is None:
        raise ValueError(
            "support must be bounded for a conditional distribution with a kernel that does not "
            f"decay, got {shown(model.feature_map_.kernel_)}"
        )
    pieces = pieces_of(model.feature_map_, place, float(ends[0][place]), float(ends[1][place]))
    cells = [piece.edges(_SHARE, _EQUAL) for piece in pieces]
    grid = np.concatenate(cells)
    density = np.empty((len(given), len(grid)))
    size = max(1, _AT_ONCE // len(grid))
    for start in range(0, len(given), size):
        rows = given[start : start + size]
        density[start : start + size] = _along(model, rows, grid, place)
    gaps = np.cumsum([len(each) for each in cells])[:-1]
    far = np.flatnonzero(density.max(axis=1) < _SMALL)
    for row in far:
        density[row] = _far_along(model, given[row : row + 1], grid, place)
    density[:, gaps - 1] = density[:, gaps] = 0.0  # what is left there would fill the gap
    nowhere = np.flatnonzero(~(density.max(axis=1) > 0.0))
    if len(nowhere):
        raise ValueError(
            f"X must lie where the density of the fit is positive, and row {nowhere[0]} does not"
        )
    return GridDistribution(grid, density / density.max(axis=1, keepdims=True))


def _check_names(X: Any, expected: list[str]) -> None:
    """Refuse a table whose columns have other names, or another order."""
    found = list(getattr(X, "columns", ()))
    if found and all(isinstance(name, str) for name in found) and found != expected:
        raise ValueError(
            f"X must have the other columns of the fit in their order, {shown(expected)}, got "
            f"{shown(found)}"
        )


def _along(model: PSDModel, rows: FloatArray, grid: FloatArray, place: int) -> FloatArray:
    """Values of the model at each row with each point of the grid put in, (n, m)."""
    return model(_with_points(rows, grid, place)).reshape(len(rows), len(grid))


def _far_along(model: PSDModel, row: FloatArray, grid: FloatArray, place: int) -> FloatArray:
    """The same of one row over the largest value, which may be too small to be a number, (m,)."""
    logs = model.log_values(_with_points(row, grid, place))
    largest = logs.max()
    return np.exp(logs - largest) if largest > -_LARGE else np.zeros(len(grid))


def _with_points(rows: FloatArray, grid: FloatArray, place: int) -> FloatArray:
    """Each row with each point of the grid put in."""
    whole = np.insert(np.repeat(rows, len(grid), axis=0), place, 0.0, axis=1)
    whole[:, place] = np.tile(grid, len(rows))
    return whole
