"""The center of curves with gaps, from its definition: least squares at each point, in loops."""

from __future__ import annotations

import numpy as np


def line_at(point, theta, y, weight, width):
    """Value at a point of the line that is fitted with Gaussian weights."""
    root = np.sqrt(weight * np.exp(-((theta - point) ** 2) / (2.0 * width**2)))
    columns = np.column_stack([np.ones_like(theta), (theta - point) / width])
    return np.linalg.lstsq(root[:, None] * columns, root * y, rcond=1e-30)[0][0]


def continued(grid, pairs, trend):
    """Curves on the grid, (n, m), about a trend (m,)."""
    filled = []
    for theta, y in pairs:
        beside = y - trend[np.searchsorted(grid, theta)]
        filled.append(trend + np.interp(grid, theta, beside))
    return np.array(filled)


def center(grid, pairs, weight):
    """Mean of curves that are continued about what ten passes make of a smooth of all pairs.

    For grids of at most 200 points, each of which some curve has.
    """
    width = 0.1 * (grid[-1] - grid[0])
    theta, y = (np.concatenate([pair[part] for pair in pairs]) for part in (0, 1))
    each = np.repeat(weight, [len(pair[0]) for pair in pairs])
    trend = np.array([line_at(point, theta, y, each, width) for point in grid])
    for _ in range(10):
        left = np.average(continued(grid, pairs, trend), axis=0, weights=weight) - trend
        ones = np.ones_like(grid)
        trend = trend + [line_at(point, grid, left, ones, width) for point in grid]
    return np.average(continued(grid, pairs, trend), axis=0, weights=weight)
