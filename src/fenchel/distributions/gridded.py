"""Distributions defined by their densities on a grid."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel.distributions.base import Distribution

_NODES = np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])  # exact for squares of quadratic functions
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0


def within_cell(
    left: FloatArray, right: FloatArray, step: float | FloatArray, rest: FloatArray
) -> FloatArray:
    """The t <= step with left t + (right - left) t² / (2 step) = rest, without cancellation."""
    root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * rest / step, 0.0))
    total = left + root
    move = np.divide(2.0 * rest, total, out=np.zeros_like(rest), where=total > 0.0)
    return np.minimum(move, step)


class GridDistribution(Distribution):
    r"""Distributions with a piecewise linear density on a grid, one for each row.

    The density is zero outside of the grid, and is normalized to integrate to one. Moments,
    quantiles and CRPS of the piecewise linear density are computed in closed form.

    Parameters
    ----------
    grid : array-like of shape (m,)
        Grid points in increasing order.
    density : array-like of shape (n, m)
        Densities at the grid points, >= 0, up to a constant factor for each row.

    Examples
    --------
    >>> from fenchel.distributions import GridDistribution
    >>> triangle = GridDistribution([0.0, 1.0, 2.0], [[0.0, 1.0, 0.0]])
    >>> triangle.cdf(0.5)
    array([0.125])
    >>> triangle.ppf([0.125, 0.5])
    array([[0.5, 1. ]])
    >>> triangle.var().round(4)
    array([0.1667])
    """

    def __init__(self, grid: ArrayLike, density: ArrayLike) -> None:
        self.grid = np.asarray(grid, dtype=np.float64)
        values = np.atleast_2d(np.asarray(density, dtype=np.float64))
        if self.grid.ndim != 1 or len(self.grid) < 2 or not np.all(np.diff(self.grid) > 0.0):
            raise ValueError("grid must be at least two points in increasing order")
        if values.shape[1:] != self.grid.shape or not np.all(values >= 0.0):
            raise ValueError(
                f"density must be >= 0 and of shape (n, {len(self.grid)}), one column for each "
                f"point of the grid, got shape {values.shape}"
            )
        self._step = np.diff(self.grid)
        whole = (0.5 * self._step * (values[:, 1:] + values[:, :-1])).sum(axis=1)
        if not np.all((whole > 0.0) & np.isfinite(whole)):
            raise ValueError("density must have a finite integral > 0 in each row")
        self.density = values / whole[:, None]
        cells = 0.5 * self._step * (self.density[:, 1:] + self.density[:, :-1])
        zeros = np.zeros((len(cells), 1))
        below = np.concatenate([zeros, np.cumsum(cells, axis=1)], axis=1)
        self._below = below / below[:, [-1]]  # one where all mass is below: sums are rounded

    def __len__(self) -> int:
        return len(self.density)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.grid, self.density[rows])

    def __repr__(self) -> str:
        low, high = self.grid[0], self.grid[-1]
        return f"GridDistribution of {len(self)} rows, from {low:g} to {high:g}"

    def mean(self) -> FloatArray:
        """Return the means, (n,)."""
        return self._moment(1, np.zeros(len(self)))

    def var(self) -> FloatArray:
        """Return the variances, (n,)."""
        return self._moment(2, self.mean())

    def _moment(self, power: int, centre: FloatArray) -> FloatArray:
        """Means of a power of the distance to a centre for each row."""
        middles = 0.5 * (self.grid[1:] + self.grid[:-1])
        ends = self.density * (self.grid - centre[:, None]) ** power
        inside = 0.5 * (self.density[:, 1:] + self.density[:, :-1])
        inside = inside * (middles - centre[:, None]) ** power
        # Simpson's rule is exact for polynomials of degree three
        cells = self._step * (ends[:, 1:] + ends[:, :-1] + 4.0 * inside) / 6.0
        return np.asarray(cells.sum(axis=1))

    def _cell(self, y: FloatArray) -> AnyArray:
        """Cells that values are in, those outside in the nearest."""
        cell = np.searchsorted(self.grid, y, side="right") - 1
        cell = np.clip(cell, 0, len(self._step) - 1)
        return np.broadcast_to(cell, (len(self), cell.shape[1]))

    def _taken(self, values: FloatArray, cell: AnyArray) -> FloatArray:
        return np.asarray(np.take_along_axis(values, cell, axis=1))

    def _cdf(self, y: FloatArray) -> FloatArray:
        cell = self._cell(y)
        move = np.clip(y - self.grid[cell], 0.0, self._step[cell])
        left, right = self._taken(self.density, cell), self._taken(self.density, cell + 1)
        rise = 0.5 * (right - left) / self._step[cell]
        return np.minimum(self._taken(self._below, cell) + move * (left + rise * move), 1.0)

    def _pdf(self, y: FloatArray) -> FloatArray:
        cell = self._cell(y)
        share = (y - self.grid[cell]) / self._step[cell]
        left, right = self._taken(self.density, cell), self._taken(self.density, cell + 1)
        inside = (share >= 0.0) & (share <= 1.0)
        return np.where(inside, left + share * (right - left), 0.0)

    def _ppf(self, levels: FloatArray) -> FloatArray:
        levels = np.broadcast_to(levels, (len(self), levels.shape[1]))
        # the first cell that ends at the level or later: those of no mass come after it, but for
        # the level 0, which is where there is mass
        cell = np.stack(
            [
                np.searchsorted(row, np.maximum(wanted, np.finfo(float).tiny), side="left") - 1
                for row, wanted in zip(self._below[:, :-1], levels, strict=True)
            ]
        )
        rest = np.maximum(levels - self._taken(self._below, cell), 0.0)
        left, right = self._taken(self.density, cell), self._taken(self.density, cell + 1)
        step = self._step[cell]
        return np.asarray(self.grid[cell] + within_cell(left, right, step, rest))

    def _crps(self, y: FloatArray) -> FloatArray:
        cell = self._cell(y)
        inside = np.clip(y, self.grid[0], self.grid[-1])
        ends = self.grid[:-1], self.grid[1:]
        cells = self._squares(*(np.broadcast_to(e, (len(self), len(e))) for e in ends))
        zeros = np.zeros((len(self), 1))
        below, above = (np.cumsum(np.concatenate([zeros, c], axis=1), axis=1) for c in cells)
        cut = np.broadcast_to(inside, cell.shape)
        score = self._taken(below, cell) + self._squares(self.grid[cell], cut)[0]
        score = score + above[:, [-1]] - self._taken(above, cell + 1)
        score = score + self._squares(cut, self.grid[cell + 1])[1]
        return np.asarray(score + np.abs(y - inside))

    def _squares(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Integrals of F² and of (1 - F)² between points (n, k) that are in one cell each."""
        below, above = np.zeros(low.shape), np.zeros(low.shape)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            level = self._cdf(0.5 * (low + high) + 0.5 * node * (high - low))
            below += weight * (high - low) * level**2
            above += weight * (high - low) * (1.0 - level) ** 2
        return below, above
