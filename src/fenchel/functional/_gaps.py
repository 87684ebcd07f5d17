r"""Center of incomplete curves, and their extension to the whole grid.

A curve is extended around a common trend: its difference from the trend is linear between its
points and constant beyond them. The trend is the mean of the extended curves. So a curve on a
short window is not taken for a constant, and differences in level do not bend the trend where
other curves begin.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.functional.curves import Curves
from fenchel.losses import Absolute, Loss
from fenchel.losses.registry import spread_of

USUAL = 0.1
"""Length scale of the output kernel over the length of the grid."""
_NODES = 200  # twenty in a width: linear between them
_PASSES = 10  # seen on a fifth of the grid, curves leave 0.8^10 of an error, a tenth
_REWEIGHTED = 20  # each takes an outlier's pull down by its share of the points nearby
_SMALLEST = 1e-3  # of the spread of residuals: smaller ones weigh no more


def usual_width(grid: FloatArray) -> float:
    """Default length scale of the output kernel: a tenth of the grid's length."""
    return USUAL * float(grid[-1] - grid[0]) or 1.0


def center_of(center: str | Loss | None, curves: Curves, weight: FloatArray) -> FloatArray:
    """Mean or median curve, (m,), zero for None; of curves with gaps, as these are continued.

    For a loss of numbers what has the least loss at each point.
    """
    if center is None or not weight.any():
        return np.zeros(len(curves.grid))
    values = curves.values
    if curves.observed is not None:
        common = center if isinstance(center, str) else "median"
        values = without_gaps(curves, _trend(common, curves, weight))
    return _middle(center, values, weight)


def filled_in(center: str | Loss | None, curves: Curves, weight: FloatArray) -> Curves:
    """Return the complete curves for learning, without center, with the mean of their measures."""
    trend = center_of(center or "mean", curves, weight)
    values = without_gaps(curves, trend)
    if center is not None:
        values = values - trend
    return Curves(curves.grid, values, common_measure(curves, weight), curves.given)


def common_measure(curves: Curves, weight: FloatArray) -> FloatArray:
    """The measure (m,) of what is observed, on average: that of complete curves is their own."""
    if curves.observed is None and curves.measure.ndim == 1:
        return curves.measure
    measure = np.where(~np.isnan(curves.values), curves.measure, 0.0)
    return np.asarray(weight @ measure / weight.sum())


def spread_of_curves(curves: Curves, weight: FloatArray) -> float:
    """Spread of the values about their pointwise median."""
    distances = np.abs(curves.values - center_of("median", curves, weight))
    share = weight[:, None] * np.broadcast_to(curves.measure, distances.shape)
    seen = ~np.isnan(distances)
    return spread_of(distances[seen][:, None], share[seen])


def without_gaps(curves: Curves, trend: FloatArray) -> FloatArray:
    """Values (n, m), continued about a trend (m,).

    Curves of weight zero may have no point of the grid: they stay NaN.
    """
    if curves.observed is None:
        return curves.values
    pairs = _Pairs.of(curves, np.arange(len(curves)))
    filled = curves.values.copy()
    filled[pairs.rows] = pairs.continued(trend[pairs.columns], curves.grid) + trend
    filled[curves.observed] = curves.values[curves.observed]
    return filled


class _Pairs(NamedTuple):
    """What is observed of some curves, one after the other."""

    rows: IntArray
    """The curves that have a point, (r,)."""
    ends: IntArray
    columns: IntArray
    points: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, curves: Curves, rows: IntArray) -> Self:
        seen = ~np.isnan(curves.values[rows])
        lengths = seen.sum(axis=1)
        columns = np.nonzero(seen)[1]
        values = curves.values[rows][seen]
        ends = np.cumsum(lengths[lengths > 0])
        return cls(rows[lengths > 0], ends, columns, curves.grid[columns], values)

    def continued(self, trend: FloatArray, points: FloatArray) -> FloatArray:
        """What the curves have beside a trend at their points, continued to others, (r, k)."""
        beside = self.values - trend
        starts = np.append(0, self.ends[:-1])
        found = np.empty((len(self.rows), len(points)))
        for row, start, end in zip(found, starts, self.ends, strict=True):
            row[:] = np.interp(points, self.points[start:end], beside[start:end])
        return found


class _Smoother(NamedTuple):
    r"""Local linear regression with Gaussian weights, at nodes t.

    .. math:: \min_{a, b} \sum_j w_j\, e^{-(\theta_j - t)^2 / 2 h^2}
              (y_j - a - b (\theta_j - t))^2, \qquad a \text{ is the value}

    A constant where all of the weight is on one point.
    """

    near: FloatArray
    """Weights (k, m) of points, before those of the pairs."""
    apart: FloatArray

    @classmethod
    def of(cls, nodes: FloatArray, points: FloatArray, width: float) -> Self:
        apart = (points - nodes[:, None]) / width
        return cls(np.exp(-0.5 * apart**2), apart)

    def __call__(self, weight: FloatArray, sums: FloatArray) -> FloatArray:
        """Values at the nodes, of weights of points and of sums of weights times values there."""
        first = self.near * self.apart
        zero, one, two = self.near @ weight, first @ weight, (first * self.apart) @ weight
        value, slope = self.near @ sums, first @ sums
        spread = zero * two - one**2
        flat = spread <= 1e-12 * zero * two
        line = (two * value - one * slope) / np.where(flat, 1.0, spread)
        return np.where(flat, value / zero, line)


def _trend(center: str, curves: Curves, weight: FloatArray) -> FloatArray:
    """The trend that is the mean or median of the curves continued about it, (m,).

    In passes from a smooth of all pairs. Each is corrected by a smooth, as what only the
    points of one curve say is nothing that they have in common.
    """
    pairs = _Pairs.of(curves, np.flatnonzero(weight))
    grid, known = curves.grid, np.unique(pairs.columns)
    nodes, width = grid[known], usual_width(grid)
    if len(nodes) > _NODES:
        nodes = np.linspace(nodes[0], nodes[-1], _NODES)
    share = weight[pairs.rows] / weight.max()
    level = float(np.median(pairs.values))  # sums of large numbers would cancel
    pairs = pairs._replace(values=pairs.values - level)
    trend = _pooled(center, pairs, share, nodes, _Smoother.of(nodes, grid, width))
    smooth, ones = _Smoother.of(nodes, nodes, width), np.ones(len(nodes))
    for _ in range(_PASSES):
        beside = pairs.continued(np.interp(pairs.points, nodes, trend), nodes)
        trend = trend + smooth(ones, _middle(center, beside, share))
    return np.interp(grid, nodes, trend) + level


def _pooled(
    center: str, pairs: _Pairs, share: FloatArray, nodes: FloatArray, smooth: _Smoother
) -> FloatArray:
    """A smooth of all pairs, at the nodes; for medians the least sum of lengths of residuals.

    Those by weights of one over the residual.
    """
    lengths = np.diff(pairs.ends, prepend=0)
    weight, m = np.repeat(share, lengths), smooth.near.shape[1]

    def smoothed(each: FloatArray) -> FloatArray:
        sums = (np.bincount(pairs.columns, some, m) for some in (each, each * pairs.values))
        return smooth(*(np.asarray(some, dtype=np.float64) for some in sums))

    trend = smoothed(weight)
    for _ in range(_REWEIGHTED if center == "median" else 0):
        size = np.abs(pairs.values - np.interp(pairs.points, nodes, trend))
        least = _SMALLEST * spread_of(size[:, None], weight)
        trend = smoothed(weight * least / np.maximum(size, least))
    return trend


def _middle(center: str | Loss, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Mean or median of each column, or what has the least loss."""
    share = np.where(np.isnan(values), 0.0, weight[:, None])
    total = share.sum(axis=0)
    if center == "mean":
        return _mean(values, share, total)
    loss = Absolute() if isinstance(center, str) else center
    return _least(loss, values, share, total)


def _mean(values: FloatArray, share: FloatArray, total: FloatArray) -> FloatArray:
    mean = (share * np.nan_to_num(values)).sum(axis=0)
    return np.asarray(np.divide(mean, total, where=total > 0.0, out=np.zeros_like(total)))


def _least(loss: Loss, values: FloatArray, share: FloatArray, total: FloatArray) -> FloatArray:
    found = np.zeros(len(total))
    for j in np.flatnonzero(total > 0.0):
        seen = share[:, j] > 0.0
        found[[j]] = loss.minimizing_offset(values[seen, j, None], share[seen, j])
    return found
