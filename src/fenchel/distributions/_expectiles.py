"""From expectiles to a piecewise linear distribution function that has them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from fenchel._typing import AnyArray, FloatArray
from fenchel.metrics import position_of_level

_ROUNDING = 1e-9
_NARROWEST = 1e-12  # of the range of a row's expectiles: those closer together touch


def knots_of_expectiles(
    levels: FloatArray, expectiles: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, AnyArray]:
    """Shares and knots (n, k), scales of the tails, and rows that were put right, (n,) each.

    Levels are in increasing order, and so are the expectiles of each row.
    """
    middle = position_of_level(levels, 0.5)
    if middle is None or not levels[0] < levels[middle] < levels[-1]:
        raise ValueError(
            "levels must hold 0.5, the mean, and at least one on either side for the distribution "
            f"of expectiles, got {levels.tolist()}"
        )
    mean = expectiles[:, [middle]]
    taus, points = np.delete(levels, middle), np.delete(expectiles, middle, axis=1)
    below = taus * (mean - points) / (1.0 - 2.0 * taus)  # areas below F up to the expectiles
    widths = np.diff(points)
    least = _NARROWEST * (points[:, [-1]] - points[:, [0]])
    weights = np.maximum(widths, np.where(least > 0.0, least, 1.0))
    wanted = np.diff(below) / weights
    allowed = np.clip(wanted, 0.5 * taus[0], 0.5 + 0.5 * taus[-1])
    means = _rising(allowed, weights)
    away = np.abs(means - wanted) * widths
    repaired = np.any(away > _ROUNDING * np.ptp(points, axis=1, keepdims=True), axis=1)
    areas = below[:, 0], (mean - points + below)[:, -1]
    found = _pieces(points, means, *areas)
    # pieces that were given one mean are one piece: a density of zero between is not meant
    joined = repaired[:, None] & (np.diff(means) <= _ROUNDING)
    for pattern in np.unique(joined[joined.any(axis=1)], axis=0):
        rows = np.flatnonzero((joined == pattern).all(axis=1))
        kept, first = np.append(~pattern, True), np.insert(~pattern, 0, True)
        fewer = points[rows][:, np.insert(kept, 0, True)]
        own = _pieces(fewer, means[rows][:, first], *(area[rows] for area in areas))
        for values, new in zip(found, own, strict=True):
            values[rows] = new[..., -1:] if new.ndim > 1 else new
            if new.ndim > 1:  # what is missing at the end repeats the last knot
                values[rows, : new.shape[1]] = new
    return (*found, repaired)


def _pieces(
    points: FloatArray, means: FloatArray, lower_area: FloatArray, upper_area: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Shares and knots (n, 2k - 1), and scales of the tails, from means of F between points."""
    widths = np.diff(points)
    lower, first = _tail(lower_area, means[:, 0], widths[:, 0])
    upper, last = _tail(upper_area, 1.0 - means[:, -1], widths[:, -1])
    inner = widths[:, 1:] + widths[:, :-1]
    between = means[:, :-1] * widths[:, 1:] + means[:, 1:] * widths[:, :-1]
    halves = 0.5 * (means[:, :-1] + means[:, 1:])
    inside = np.divide(between, inner, out=halves, where=inner > 0.0)
    ends = np.concatenate([first[:, None], inside, 1.0 - last[:, None]], axis=1)
    return (*_with_breaks(np.maximum.accumulate(ends, axis=1), means, points), lower, upper)


def _tail(area: FloatArray, mean: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale and probability of an exponential tail with this area, (n,) each.

    The one whose area would grow to that at the next knot, F having this mean up to it: its
    probability is below that mean.
    """
    known = (area > 0.0) & (width > 0.0)
    growth = np.log1p(np.divide(mean * width, area, out=np.ones_like(area), where=known))
    scale = np.divide(width, growth, out=np.zeros_like(area), where=known)
    return scale, np.divide(area, scale, out=0.5 * mean, where=known)


def _with_breaks(
    ends: FloatArray, means: FloatArray, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """F at the knots with a break in each piece, where it reaches its mean there."""
    n, k = points.shape
    rise = np.diff(ends)
    half = np.full_like(rise, 0.5)
    where = np.divide(ends[:, 1:] - means, rise, out=half, where=rise > 0.0)
    shares, knots = np.empty((n, 2 * k - 1)), np.empty((n, 2 * k - 1))
    shares[:, ::2], knots[:, ::2] = ends, points
    shares[:, 1::2] = means
    knots[:, 1::2] = points[:, :-1] + np.clip(where, 0.0, 1.0) * np.diff(points)
    return np.maximum.accumulate(shares, axis=1), np.maximum.accumulate(knots, axis=1)


def _rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The nearest values that rise along each row, in weighted least squares."""
    rising = values.copy()
    for row in np.flatnonzero(np.any(np.diff(values) < 0.0, axis=1)):
        rising[row] = isotonic_regression(values[row], weights=weights[row]).x
    return rising
