"""Curves as they are given, and as sampled functions with a measure on one grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fenchel._grids import as_floats, as_grid, quadrature_weights, trapezoid
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import check_weights

Given: TypeAlias = Literal["array", "fdatagrid", "pairs"]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Curves:
    r"""Functions sampled on one grid, with the measure that makes sums of them integrals.

    .. math:: \int y_i \, \mathrm{d}\mu \approx
              \sum_{j \,:\, y_{ij}\ \mathrm{observed}} \mu_j\, y_i(\theta_j),

    with :math:`\mu_{ij}` in place of :math:`\mu_j` where each row has weights of its own.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Points θ_j, strictly increasing.
    values : ndarray of shape (n_curves, n_points)
        Values y_i(θ_j); NaN where not observed.
    measure : ndarray of shape (n_points,) or (n_curves, n_points)
        Weights μ_j of a quadrature, common to all rows; or those of each row, zero where it was
        not observed.
    given : {"array", "fdatagrid", "pairs"}
        What :func:`as_curves` was given, so that predictions may be returned in kind.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.functional import Curves, quadrature_weights
    >>> grid = np.linspace(0.0, 1.0, 5)
    >>> curves = Curves(grid, np.array([grid, grid**2]), quadrature_weights(grid))
    >>> curves.values @ curves.measure  # the integrals
    array([0.5  , 0.375])
    """

    grid: FloatArray
    values: FloatArray
    measure: FloatArray
    given: Given = "array"

    @cached_property
    def observed(self) -> BoolArray | None:
        """Where the curves were observed, (n_curves, n_points); None if everywhere."""
        seen = ~np.isnan(self.values)
        return None if seen.all() else seen

    def subset(self, rows: IntArray | BoolArray | slice) -> Curves:
        """Some of the curves, on the same grid with the same measure."""
        measure = self.measure if self.measure.ndim == 1 else self.measure[rows]
        return Curves(self.grid, self.values[rows], measure, self.given)

    def __len__(self) -> int:
        """Return the number of curves."""
        return len(self.values)


def as_curves(
    Y: Any,
    theta: Any = None,
    quadrature: Any = "monte-carlo",
    sample_weight: npt.ArrayLike | None = None,
) -> Curves:
    r"""Take curves in any of the forms in which they come.

    Parameters
    ----------
    Y : array-like of shape (n_curves, n_points), list of pairs or FDataGrid
        Values on one grid, NaN where not observed; or a pair (θ, y) of arrays of the same length
        for each curve, observed at points of its own, which are put on the union of all
        points; or an ``FDataGrid`` of scikit-fda with values in R on an interval.
    theta : array-like of shape (n_points,), optional
        The grid, strictly increasing; by default equidistant points of [0, 1], both ends
        included. Pairs and an ``FDataGrid`` bring their own.
    quadrature : {"monte-carlo", "trapezoid"} or array-like of shape (n_points,)
        Weights of the points. ``"monte-carlo"``: 1/n_points each; for pairs, each observation
        has the weight of one over the mean number of observations of a curve.
        ``"trapezoid"``: the trapezoidal rule on the grid, divided by the length of the interval
        so that the sum is one; for pairs, of each curve on its own points. An array is taken
        as it is.
    sample_weight : array-like of shape (n_curves,), optional
        How many times each curve counts, >= 0, in that mean number of observations. A pair of
        weight zero brings no points to the grid. Other curves do not depend on it.

    Returns
    -------
    Curves
        The curves on one grid.

    Raises
    ------
    TypeError, ValueError
        If the grid does not increase strictly or has another number of points than Y has
        columns, if a weight of a point is not positive, if one of a curve is negative, if a value
        is infinite, or if a curve has no observation.

    Notes
    -----
    Weights belong to the points of the grid: where a value of an array is missing, its weight
    counts for nothing, and is not spread over the other points.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.functional import as_curves
    >>> as_curves([[1.0, 2.0, np.nan], [0.0, 1.0, 4.0]], quadrature="trapezoid").measure
    array([0.25, 0.5 , 0.25])
    >>> curves = as_curves([([0.0, 1.0], [5.0, 6.0]), ([0.5], [7.0])])
    >>> curves.grid
    array([0. , 0.5, 1. ])
    >>> curves.values
    array([[ 5., nan,  6.],
           [nan,  7., nan]])
    """
    given: Given
    if hasattr(Y, "grid_points") and hasattr(Y, "data_matrix"):
        _check_no_theta(theta, "an FDataGrid")
        given = "fdatagrid"
        grid, values = _from_fdatagrid(Y)
    elif are_pairs(Y):
        _check_no_theta(theta, "a list of pairs")
        return _from_pairs(Y, quadrature, sample_weight)
    else:
        given = "array"
        values = _as_values(Y)
        grid = np.linspace(0.0, 1.0, values.shape[1]) if theta is None else as_grid(theta)
    if len(grid) != values.shape[1]:
        raise ValueError(
            f"theta must have one point for each of the {values.shape[1]} columns of Y, "
            f"got {len(grid)} points"
        )
    _check_observed(values)
    return Curves(grid, values, quadrature_weights(grid, quadrature), given)


def to_fdatagrid(grid: FloatArray, values: FloatArray) -> Any:
    """Curves as an ``FDataGrid`` of scikit-fda, which must be installed."""
    import skfda  # noqa: PLC0415  # of no use to most, and slow to import

    return skfda.FDataGrid(data_matrix=values, grid_points=grid)


def _from_fdatagrid(Y: Any) -> tuple[FloatArray, FloatArray]:
    values = np.asarray(Y.data_matrix, dtype=np.float64)
    if len(Y.grid_points) != 1 or values.ndim != 3 or values.shape[2] != 1:
        raise ValueError(
            "Y must be an FDataGrid of functions of one variable with values in R, got "
            f"{len(Y.grid_points)} variables and values of dimension {values.shape[-1]}"
        )
    return as_grid(Y.grid_points[0]), _as_values(values[:, :, 0])


def are_pairs(Y: Any) -> bool:
    """Whether Y is a list of pairs of arrays; rows of two numbers are not."""
    return (
        isinstance(Y, (list, tuple))
        and len(Y) > 0
        and all(
            isinstance(pair, (list, tuple, np.ndarray))
            and len(pair) == 2
            and all(np.ndim(part) == 1 for part in pair)
            for pair in Y
        )
    )


def _from_pairs(pairs: Any, quadrature: Any, sample_weight: npt.ArrayLike | None) -> Curves:
    """Put curves with points of their own on the union of the points of those that count."""
    points, heights = [], []
    for row, (theta, y) in enumerate(pairs):
        own, heights_there = _one_curve(theta, y, row)
        seen = ~np.isnan(heights_there)
        points.append(own[seen])
        heights.append(heights_there[seen])
    lengths = np.array([len(theta) for theta in points])
    if not lengths.all():
        raise ValueError(_no_observation(int(np.argmin(lengths))))
    grid, column = np.unique(np.concatenate(points), return_inverse=True)
    rows = np.repeat(np.arange(len(points)), lengths)
    values = np.full((len(points), len(grid)), np.nan)
    values[rows, column] = np.concatenate(heights)
    _check_observed(values)
    weight = check_weights(values, sample_weight)
    if isinstance(quadrature, str) and quadrature == "trapezoid":
        measure = np.zeros_like(values)
        measure[rows, column] = np.concatenate([trapezoid(theta) for theta in points])
    elif isinstance(quadrature, str) and quadrature == "monte-carlo":
        measure = np.full(len(grid), 1.0 / np.average(lengths, weights=weight))
    else:
        measure = quadrature_weights(grid, quadrature)
    counted = ~np.isnan(values[weight > 0.0]).all(axis=0)
    return Curves(grid[counted], values[:, counted], measure[..., counted], "pairs")


def _one_curve(theta: Any, y: Any, row: int) -> tuple[FloatArray, FloatArray]:
    y = as_floats(y, f"y of curve {row}", "an array of numbers")
    theta = as_floats(theta, f"θ of curve {row}", "an array of numbers")
    if theta.shape != y.shape:
        raise ValueError(
            f"each curve of Y must have as many points as values, got {len(theta)} and "
            f"{len(y)} for curve {row}"
        )
    if not len(theta):
        raise ValueError(_no_observation(row))
    return as_grid(theta, f"θ of curve {row}"), y


def _as_values(Y: Any) -> FloatArray:
    values = as_floats(Y, "Y", "an array of numbers, a list of pairs (θ, y) or an FDataGrid")
    if values.ndim != 2 or not values.size:
        raise ValueError(
            "Y must be two-dimensional, a curve in each row, with at least one row and one "
            f"column, got shape {values.shape}"
        )
    return values


def _check_observed(values: FloatArray) -> None:
    """No infinite value, and an observation in each row."""
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, column = infinite[0]
        raise ValueError(
            f"Y must be finite, or NaN where not observed, got {values[row, column]:g} at point "
            f"{column} of curve {row}"
        )
    empty = np.isnan(values).all(axis=1)
    if empty.any():
        raise ValueError(_no_observation(int(np.argmax(empty))))


def _no_observation(row: int) -> str:
    return f"each curve of Y must be observed at one point or more, got none for curve {row}"


def _check_no_theta(theta: Any, what: str) -> None:
    if theta is not None:
        raise ValueError(f"theta must be None where Y is {what}, which has its own points")
