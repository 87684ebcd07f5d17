"""Conversion of inputs X and curves y to arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import check_length
from fenchel.functional.curves import Curves, are_pairs, as_curves

_CURVES = (list, tuple, np.ndarray)


def as_rows(X: Any) -> Any:
    """Flatten curves to one row each; leave other inputs as they are."""
    if hasattr(X, "grid_points") and hasattr(X, "data_matrix"):
        X = np.asarray(X.data_matrix, dtype=np.float64)
    elif hasattr(X, "argument_names"):  # other kinds of functional data of scikit-fda
        raise TypeError(
            f"X must be an array of numbers or an FDataGrid, got {type(X).__name__}: evaluate it "
            "on a grid"
        )
    X = _without_lists(X)
    if getattr(X, "ndim", 2) == 3:
        return np.reshape(X, (len(X), -1))
    return X


def _without_lists(X: Any) -> Any:
    """The array of lists; ragged ones get their message where all rows are validated."""
    if isinstance(X, (list, tuple)):
        with suppress(ValueError):
            return np.asarray(X)
    return X


def points_and_channels(X: Any) -> tuple[int, int] | None:
    """Numbers of points and channels of the curves that are rows; None of one row of numbers."""
    if hasattr(X, "grid_points") and hasattr(X, "data_matrix"):
        X = X.data_matrix
    X = _without_lists(X)
    return (X.shape[1], X.shape[2]) if getattr(X, "ndim", 2) == 3 else None


def grid_of_rows(X: Any) -> tuple[FloatArray, ...] | None:
    """Points of the curves that are rows, along each of their variables; None of an array."""
    if not (hasattr(X, "grid_points") and hasattr(X, "data_matrix")):
        return None
    return tuple(np.asarray(points, dtype=np.float64) for points in X.grid_points)


def check_rows(X: Any, grid: tuple[FloatArray, ...] | None, shape: tuple[int, int] | None) -> None:
    """Raise an error for input curves on another grid, or of another shape, than in the fit."""
    _check_grid(X, grid)
    given = points_and_channels(X)
    if given is not None and shape is not None and given != shape:
        old, new = (f"(n, {points}, {channels})" for points, channels in (shape, given))
        raise ValueError(f"X must have the shape {old} of the fit, got {new}")


def _check_grid(X: Any, known: tuple[FloatArray, ...] | None) -> None:
    given = grid_of_rows(X)
    if given is None or known is None:
        return
    same = len(given) == len(known) and all(map(_are_same_points, given, known))
    if not same:
        old, new = (" by ".join(map(_points_in_words, grid)) for grid in (known, given))
        other = "as many others" if old == new else new
        raise ValueError(
            f"X must be curves on the grid of the fit, {old}, got {other}: evaluate them there"
        )


def _are_same_points(one: FloatArray, other: FloatArray) -> bool:
    """Up to rounding."""
    near = 1e-9 * float(np.ptp(other)) if len(other) else 0.0
    return one.shape == other.shape and bool(np.all(np.abs(one - other) <= near))


def _points_in_words(points: FloatArray) -> str:
    return f"{len(points)} points from {points[0]:g} to {points[-1]:g}"


def is_array(y: Any) -> bool:
    """Whether curves are an array or data frame, which do not contain their grid.

    Parameters
    ----------
    y : array-like, list of pairs, FDataGrid or Curves
        Curves in a format of :func:`as_curves`.

    Returns
    -------
    bool
        False for lists of pairs and for objects that contain their grid.

    Examples
    --------
    >>> from fenchel.functional import is_array
    >>> is_array([[0.0, 1.0]]), is_array([[[0.0, 0.5], [1.0, 2.0]]])
    (True, False)
    """
    y = unpacked(y)
    if isinstance(y, (list, tuple)):
        return not are_pairs(y)
    of_scikit_fda = hasattr(y, "data_matrix") or hasattr(y, "argument_names")
    return hasattr(y, "__array__") and not of_scikit_fda


def unpacked(y: Any) -> Any:
    """The list of curves that a column of pandas, or an array of objects, consists of."""
    if getattr(getattr(y, "dtype", None), "kind", "") != "O" or np.ndim(y) != 1:
        return y
    cells = list(np.asarray(y))
    return cells if cells and all(isinstance(cell, _CURVES) for cell in cells) else y


def as_columns(y: Any) -> Any:
    y = unpacked(y)
    return np.asanyarray(y)[:, None] if is_flat(y) else y  # masks stay


def is_flat(y: Any) -> bool:
    """Whether curves are an array of one dimension; a ragged list is none."""
    y = unpacked(y)
    if not is_array(y):
        return False
    with suppress(ValueError):
        return np.asarray(y).ndim == 1
    return False


def curves_of(y: Any, n_rows: int, theta: Any, quadrature: Any, sample_weight: Any) -> Curves:
    """Curves as :func:`as_curves` has them, one for each row of X."""
    y = as_columns(y)
    if are_pairs(y):  # their weights are read with them: say first that they are too few
        check_length(len(y), n_rows)
    curves = as_curves(y, theta, quadrature, sample_weight)
    check_length(len(curves), n_rows)
    return curves


def sentence_on_range(theta: FloatArray, grid: FloatArray) -> str | None:
    """What to warn of where points are further from a grid than its own from each other."""
    low, high = float(theta.min()), float(theta.max())
    step = float(np.diff(grid).max(initial=0.0))
    if max(grid[0] - low, high - grid[-1]) <= step:
        return None
    return (
        f"theta must be between {grid[0]:g} and {grid[-1]:g}, where the training curves are, for "
        f"predictions to rest on them, got points from {low:g} to {high:g}"
    )
