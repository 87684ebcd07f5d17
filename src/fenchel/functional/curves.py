"""Curves in different input formats, and as sampled functions on a common grid."""

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
    r"""Functions sampled on a common grid, with quadrature weights.

    .. math:: \int y_i \, \mathrm{d}\mu \approx
              \sum_{j \,:\, y_{ij}\ \mathrm{observed}} \mu_j\, y_i(\theta_j),

    with :math:`\mu_{ij}` in place of :math:`\mu_j` if each row has its own weights.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Grid points θ_j, strictly increasing.
    values : ndarray of shape (n_curves, n_points)
        Values y_i(θ_j); NaN at unobserved points.
    measure : ndarray of shape (n_points,) or (n_curves, n_points)
        Quadrature weights μ_j, common to all rows or separate for each row. Separate weights are
        zero at unobserved points.
    given : {"array", "fdatagrid", "pairs"}
        Format of the input of :func:`as_curves`, so that predictions can be returned in it.

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
        """Mask of observed values, (n_curves, n_points); None if all are observed."""
        seen = ~np.isnan(self.values)
        return None if seen.all() else seen

    def subset(self, rows: IntArray | BoolArray | slice) -> Curves:
        """Return a subset of the curves, on the same grid with the same measure."""
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
    r"""Convert curves from any supported format to :class:`Curves`.

    Parameters
    ----------
    Y : array-like of shape (n_curves, n_points), list of pairs or FDataGrid
        Values on a common grid, NaN at unobserved points; or for each curve a pair (θ, y) of
        arrays of equal length, with its own points; or an ``FDataGrid`` of scikit-fda with real
        values on an interval. The grid of pairs is the union of all their points.
    theta : array-like of shape (n_points,), optional
        The grid, strictly increasing. The default is equidistant points of [0, 1], both ends
        included. Not used for pairs and ``FDataGrid``, which contain their points.
    quadrature : {"monte-carlo", "trapezoid"} or array-like of shape (n_points,)
        Quadrature weights. ``"monte-carlo"``: 1/n_points for each point; for pairs, the inverse of
        the mean number of observations of a curve. ``"trapezoid"``: the trapezoidal rule divided
        by the length of the interval, so that weights sum to one; for pairs, for each curve on its
        own points. An array is used unchanged.
    sample_weight : array-like of shape (n_curves,), optional
        Non-negative weights of the curves in this mean number of observations. The points of a
        pair with weight zero are not added to the grid. Results for other formats do not depend on
        the weights.

    Returns
    -------
    Curves
        The curves on a common grid.

    Raises
    ------
    TypeError, ValueError
        If the grid is not strictly increasing or its length is not the number of columns of Y, if
        a quadrature weight is not positive or a sample weight is negative, if a value is infinite,
        or if a curve has no observation.

    Notes
    -----
    Weights belong to grid points. If a value of an array is missing, the weight of its point is
    dropped and is not distributed over the other points.

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
    """Convert curves to an ``FDataGrid``; scikit-fda must be installed."""
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
    """Whether Y is a list of pairs of arrays; rows of two numbers are not pairs."""
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
    counted = ~np.isnan(values[weight > 0.0]).all(axis=0)
    if isinstance(quadrature, str) and quadrature == "trapezoid":
        measure = np.zeros_like(values)
        measure[rows, column] = np.concatenate([trapezoid(theta) for theta in points])
    elif isinstance(quadrature, str) and quadrature == "monte-carlo":
        measure = np.full(len(grid), 1.0 / np.average(lengths, weights=weight))
    else:
        measure = np.empty(len(grid))
        measure[counted] = quadrature_weights(grid[counted], quadrature)
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
