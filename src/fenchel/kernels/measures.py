"""Measures for integrals of functions: boxes, normal densities and weighted points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._grids import as_floats
from fenchel._typing import FloatArray
from fenchel._validation import shown

_ASYMMETRIC = 1e-8  # of the largest entry: more is not rounding


@dataclass(frozen=True, eq=False)
class Box:
    """Lebesgue measure on a product of intervals, or on all of R^d where they are infinite.

    Parameters
    ----------
    low, high : array-like of shape (d,)
        Lower and upper ends of the intervals, low < high.

    Examples
    --------
    >>> from fenchel.kernels import Box
    >>> Box([0.0, 0.0], [1.0, 2.0]).dimension
    2
    """

    low: npt.ArrayLike
    high: npt.ArrayLike

    def __post_init__(self) -> None:
        low = np.atleast_1d(np.asarray(self.low, dtype=np.float64))
        high = np.atleast_1d(np.asarray(self.high, dtype=np.float64))
        if low.ndim != 1 or low.shape != high.shape or not np.all(low < high):
            raise ValueError(
                f"a box must have low < high in each coordinate, got {shown(self.low)} and "
                f"{self.high!r}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(np.asarray(self.low))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, (d,) each."""
        return np.asarray(self.low, dtype=np.float64), np.asarray(self.high, dtype=np.float64)

    @property
    def whole(self) -> bool:
        """Whether the box is all of R^d."""
        low, high = self.bounds
        return bool(np.all(np.isinf(low)) and np.all(np.isinf(high)))

    def contains(self, X: FloatArray) -> npt.NDArray[np.bool_]:
        """Return a mask (n,) of the rows of X (n, d) that are inside or on the border."""
        low, high = self.bounds
        return np.asarray(np.all((low <= X) & (high >= X), axis=1))

    def intersection(self, other: Box) -> Box | None:
        """Return the intersection of two boxes, or None if it has no volume."""
        low = np.maximum(self.bounds[0], other.bounds[0])
        high = np.minimum(self.bounds[1], other.bounds[1])
        return Box(low, high) if np.all(low < high) else None


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal density.

    Parameters
    ----------
    mean : array-like of shape (d,)
        Mean of the density.
    covariance : array-like of shape (d, d), (d,) or float
        Covariance: a matrix, its diagonal, or a multiple of the identity; positive definite.

    Examples
    --------
    >>> from fenchel.kernels import Normal
    >>> Normal([0.0, 0.0], 2.0).matrix
    array([[2., 0.],
           [0., 2.]])
    """

    mean: npt.ArrayLike
    covariance: npt.ArrayLike = 1.0

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.centre)

    @property
    def centre(self) -> FloatArray:
        """The mean as an array."""
        mean = np.atleast_1d(np.asarray(self.mean, dtype=np.float64))
        if mean.ndim != 1 or not np.isfinite(mean).all():
            raise ValueError(f"mean must be finite numbers, got {shown(self.mean)}")
        return mean

    @property
    def matrix(self) -> FloatArray:
        """The covariance matrix, (d, d)."""
        given = np.asarray(self.covariance, dtype=np.float64)
        d = self.dimension
        if given.shape not in ((), (1,), (d,), (d, d)):
            raise ValueError(f"covariance must have shape ({d}, {d}), got {given.shape}")
        matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, d))
        largest = np.abs(matrix).max(initial=0.0)
        symmetric = np.abs(matrix - matrix.T).max(initial=0.0) <= _ASYMMETRIC * largest
        try:
            np.linalg.cholesky(matrix)  # which reads one triangle
        except np.linalg.LinAlgError:
            symmetric = False
        if not symmetric:
            raise ValueError(
                f"covariance must be symmetric and positive definite, got {shown(self.covariance)}"
            )
        return matrix


@dataclass(frozen=True, eq=False)
class Points:
    """Weighted points: a user-defined quadrature rule, or an empirical distribution.

    Parameters
    ----------
    points : array-like of shape (m, d)
        The points.
    weights : array-like of shape (m,)
        Their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> from fenchel.kernels import Linear
    >>> from fenchel.positive import Points, moment
    >>> trapezoids = Points([[0.0], [0.5], [1.0]], weights=[0.25, 0.5, 0.25])
    >>> feature_map = PivotedCholesky(Linear(), rank=1).fit([[1.0], [2.0]])
    >>> moment(feature_map, trapezoids).matrix.round(3)  # of x²
    array([[0.375]])
    """

    points: npt.ArrayLike
    weights: npt.ArrayLike


Measure = Box | Normal | Points


def as_measure(domain: Any, dimension: int, name: str = "domain") -> Measure:
    """Return the measure for None (all of R^d), a pair (low, high), or a measure.

    Examples
    --------
    >>> from fenchel.kernels import as_measure
    >>> as_measure(None, dimension=2).dimension
    2
    """
    if domain is None:
        return Box(np.full(dimension, -np.inf), np.full(dimension, np.inf))
    if isinstance(domain, Points):
        if np.shape(domain.points)[1:] != (dimension,):
            raise ValueError(
                f"points must have {dimension} columns, got shape {np.shape(domain.points)}"
            )
        return domain
    if isinstance(domain, (Box, Normal)):
        measure: Box | Normal = domain
    else:
        try:
            low, high = domain
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must be None, a pair (low, high), Box, Normal or Points, got "
                f"{shown(domain)}"
            ) from error
        ends = [as_floats(end, name, "a pair (low, high) of numbers") for end in (low, high)]
        if any(end.shape not in ((), (1,), (dimension,)) for end in ends):
            shapes = " and ".join(str(end.shape) for end in ends)
            raise ValueError(f"{name} must have {dimension} coordinates, got shapes {shapes}")
        low, high = (np.broadcast_to(end, dimension) for end in ends)
        if not np.all(low < high):
            raise ValueError(
                f"{name} must be a pair (low, high) with low < high, each a number or an array "
                f"of a number for each column, got {shown(domain)}"
            )
        measure = Box(low, high)
    if measure.dimension != dimension:
        raise ValueError(f"{name} must have {dimension} coordinates, got {measure.dimension}")
    return measure


def as_box(domain: Any, dimension: int, name: str = "domain") -> Box:
    """Return the box for None (all of R^d), a pair (low, high), or a box.

    Examples
    --------
    >>> from fenchel.kernels import as_box
    >>> as_box((0.0, 1.0), dimension=2)
    Box(low=array([0., 0.]), high=array([1., 1.]))
    """
    measure = as_measure(domain, dimension, name)
    if not isinstance(measure, Box):
        raise ValueError(f"{name} must be None, a pair (low, high) or Box, got {shown(domain)}")
    return measure
