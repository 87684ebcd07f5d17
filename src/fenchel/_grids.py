"""Points at which curves are observed, and the weights that make sums over them integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._sentences import check_no_dates
from fenchel._typing import FloatArray

RULES = ("monte-carlo", "trapezoid")
_ALLOWED = "'monte-carlo', 'trapezoid' or an array of positive weights, one for each point"


def as_grid(theta: Any, name: str = "theta") -> FloatArray:
    """Check points at which to evaluate curves: one-dimensional, finite, strictly increasing.

    Parameters
    ----------
    theta : array-like of shape (n_points,)
        The points.
    name : str
        What to call them in errors.

    Returns
    -------
    ndarray of shape (n_points,)
        The points.

    Raises
    ------
    TypeError, ValueError
        If they are not as stated.

    Examples
    --------
    >>> from fenchel.functional import as_grid
    >>> as_grid([0, 1, 3])
    array([0., 1., 3.])
    """
    grid = as_floats(theta, name, "an array of numbers")
    if grid.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional with at least one point, got shape {grid.shape}"
        )
    return as_points(grid, name, increasing=True)


def as_points(theta: Any, name: str = "theta", *, increasing: bool) -> FloatArray:
    """Points as an array: one or more finite numbers, increasing strictly if asked for."""
    grid = np.atleast_1d(as_floats(theta, name, "a number or an array of numbers"))
    if grid.ndim != 1 or not grid.size:
        raise ValueError(
            f"{name} must be one-dimensional with at least one point, got shape {grid.shape}"
        )
    finite = np.isfinite(grid)
    if not finite.all():
        first = int(np.argmin(finite))
        raise ValueError(f"{name} must be finite, got {grid[first]:g} at position {first}")
    falls = np.flatnonzero(np.diff(grid) <= 0.0)
    if increasing and len(falls):
        before, after = grid[falls[0]], grid[falls[0] + 1]
        raise ValueError(f"{name} must increase strictly, got {before:g} before {after:g}")
    return grid


def quadrature_weights(grid: FloatArray, rule: Any = "monte-carlo") -> FloatArray:
    r"""Weights μ of the points of a grid: :math:`\sum_j \mu_j f(\theta_j)` is an integral of f.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Strictly increasing points, see :func:`as_grid`.
    rule : {"monte-carlo", "trapezoid"} or array-like of shape (n_points,)
        ``"monte-carlo"``: 1/n_points each. ``"trapezoid"``: the trapezoidal rule, divided by
        the length of the interval, so that the sum is one; a single point has weight one. An
        array of positive weights is taken as it is.

    Returns
    -------
    ndarray of shape (n_points,)
        The weights.

    Raises
    ------
    TypeError, ValueError
        If the rule is none of these, or a weight is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.functional import quadrature_weights
    >>> quadrature_weights(np.array([0.0, 1.0, 4.0]), "trapezoid")
    array([0.125, 0.5  , 0.375])
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"quadrature must be {_ALLOWED}, got {rule!r}")
        return trapezoid(grid) if rule == "trapezoid" else np.full(len(grid), 1.0 / len(grid))
    weights = as_floats(rule, "quadrature", _ALLOWED)
    if weights.shape != grid.shape:
        raise ValueError(
            f"quadrature must have one weight for each of the {len(grid)} points of the grid, "
            f"got shape {weights.shape}"
        )
    allowed = (weights > 0.0) & (weights < np.inf)
    if not allowed.all():
        raise ValueError(
            f"quadrature must have positive and finite weights, got {weights[~allowed][0]:g}"
        )
    return weights


def trapezoid(points: FloatArray) -> FloatArray:
    """Trapezoidal rule, divided by the length of the interval; the whole mass on one point."""
    if len(points) == 1:
        return np.ones(1)
    half = np.diff(points) / (2.0 * (points[-1] - points[0]))
    weights = np.zeros(len(points))
    weights[:-1] += half
    weights[1:] += half
    return weights


def as_floats(value: Any, name: str, allowed: str) -> FloatArray:
    """An array of float64, NaN where masked or missing, or a sentence on what is allowed."""
    check_no_dates(value, name)
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex numbers are not supported")
        if isinstance(value, np.ma.MaskedArray):  # NumPy would show what is behind the mask
            return np.ma.filled(value.astype(np.float64), np.nan)
        if hasattr(value, "isna") and hasattr(value, "to_numpy"):  # pandas, with cells of its own
            return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be {allowed}, got {type(value).__name__} which is not"
        ) from None
