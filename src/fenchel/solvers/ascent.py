"""Dual coordinates of greedy ascent, in dimensionless units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.problem import Problem
from fenchel.solvers import _greedy
from fenchel.solvers.base import WarmStart

_NO_BOUND = 1e30
_ROUNDED = 1e-12  # share of a bound within which a coordinate is on it


class Round(NamedTuple):
    """Result of steps on some coordinates: their number, and the changes of coordinates."""

    steps: int
    places: IntArray
    change: FloatArray


class Ascent:
    """Dual coordinates a, bounds and slopes, scaled so that residuals and kernel are near one.

    There are p times n coordinates, one output after the other. ``pull`` is K a + q a - y, the
    slope of the smooth part, in its stored precision. K is the kernel of all coordinates.
    """

    def __init__(self, problem: Problem, spread: float, precision: type) -> None:
        box = problem.loss.box(problem.n_outputs)
        assert box is not None
        kernel = float(problem.design.diagonal().mean()) or 1.0  # zero: nothing but the offset
        p, n = problem.n_outputs, problem.n_rows
        self.problem, self.spread = problem, spread
        self.outputs = problem.design.output_matrix / kernel
        self.factors = np.ones((p, p), np.float32)  # of the values that loops are given
        self.unit = np.tile(problem.weight * (kernel / spread), p)
        lower, upper, below, above = (np.repeat(value, n) for value in box[:4])
        curved = np.tile(1.0 / (problem.weight * kernel), p)
        scaled = np.stack([lower * self.unit, upper * self.unit, below * curved, above * curved])
        self.box = np.clip(scaled, -_NO_BOUND, _NO_BOUND)
        self.epsilon = box.epsilon / spread
        centred = (problem.targets - problem.best_constant) / spread
        self.targets = centred.T.ravel()
        self.dual = np.zeros(p * n)
        self.pull: AnyArray = -self.targets.astype(precision)
        self.offset = np.zeros(p)
        self.loop = _greedy.ascend_in_pairs if problem.fit_intercept else _greedy.ascend_alone

    def times(self, vector: FloatArray) -> AnyArray:
        """Return K times a vector."""
        raise NotImplementedError

    def run(self, slope: float) -> None:
        """Ascend until no step gains more than ``slope`` per unit, or progress is slow."""
        raise NotImplementedError

    def start(self, dual: FloatArray) -> None:
        """Start near dual vectors β, (n, p); if possible, values at a bound or zero stay there."""
        placed = np.clip(self.unit * dual.T.ravel(), self.box[0], self.box[1])
        for end in self.box[:2]:
            placed = np.where(np.abs(placed - end) <= _ROUNDED * np.abs(end), end, placed)
        if self.problem.fit_intercept and not self._balance_inside(placed):
            balanced = self.problem.feasible(self.by_output(placed / self.unit).T)
            placed = np.clip(self.unit * balanced.T.ravel(), self.box[0], self.box[1])
        self.dual = placed
        self.renew()

    def forget(self) -> None:
        """Start at zero again."""
        self.dual = np.zeros_like(self.dual)
        self.renew()

    def objective(self) -> float:
        """Objective of the dual problem, which is zero at zero; dimensionless."""
        a, bent = self.dual, curvature(self.dual, self.box) * self.dual
        image = self.pull.astype(np.float64) - bent + self.targets
        linear = float(self.targets @ a) - self.epsilon * float(np.abs(a).sum())
        return linear - 0.5 * float(a @ (image + bent))

    def _balance_inside(self, dual: FloatArray) -> bool:
        """Take the sums off coordinates inside, by a share of the room of each; whether that does.

        To shrink all of one sign instead would take half of them off their bounds.
        """
        inside = (dual > self.box[0]) & (dual < self.box[1]) & (dual != 0.0)
        least = np.where(inside & (dual < 0.0), self.box[0], 0.0)
        most = np.where(inside & (dual > 0.0), self.box[1], 0.0)
        for own, places, low, high in zip(
            *(self.by_output(each) for each in (dual, inside, least, most)), strict=True
        ):
            excess = float(own.sum())
            room = np.where(places, own - low if excess > 0.0 else own - high, 0.0)
            whole = float(room.sum())
            if abs(excess) > abs(whole):
                return False
            if excess != 0.0:
                np.subtract(own, room * (excess / whole), out=own)
        return True

    def renew(self) -> None:
        """Recompute the slopes."""
        curved = curvature(self.dual, self.box) * self.dual
        self.pull = (self.times(self.dual) + curved - self.targets).astype(self.pull.dtype)

    def steps_among(self, places: IntArray, gram: AnyArray, slope: float, limit: int) -> Round:
        """Ascend on some coordinates, in increasing order.

        ``gram`` is K of these coordinates in single precision, or the kernel values of their
        rows, if all outputs have the same rows.
        """
        pull = self.pull[places].astype(np.float32)
        box, before = self.box[:, places], self.dual[places]
        after = before.copy()
        ends = np.searchsorted(places, self.ends)
        arguments = gram, self.factors, after, pull, box, ends
        steps = self.loop(*arguments, self.epsilon, slope, limit)
        self.dual[places] = after
        change = after - before
        bent = curvature(after, box) * after - curvature(before, box) * before
        self.pull[places] += bent.astype(self.pull.dtype)
        moved = change != 0.0
        return Round(int(steps), places[moved], change[moved])

    @property
    def ends(self) -> IntArray:
        """End index of the coordinates of each output."""
        return self.problem.n_rows * np.arange(1, self.problem.n_outputs + 1)

    def by_output(self, vector: AnyArray) -> AnyArray:
        """Reshape a vector of all coordinates to one row for each output, (p, n)."""
        return vector.reshape(self.problem.n_outputs, self.problem.n_rows)

    def edges(self) -> tuple[FloatArray, FloatArray]:
        """Slopes of increases (negative if they gain) and of decreases (positive if they gain)."""
        a, eps = self.dual, self.epsilon
        grow = np.where(a >= 0.0, eps, -eps) + self.pull
        shrink = np.where(a > 0.0, eps, -eps) + self.pull
        return (
            np.where(a >= self.box[1], np.inf, grow),
            np.where(a <= self.box[0], -np.inf, shrink),
        )

    def steepest(self) -> float:
        """Return the largest slope of a step, and store the corresponding offsets."""
        grow, shrink = (self.by_output(edge) for edge in self.edges())
        if not self.problem.fit_intercept:
            return max(-float(grow.min()), float(shrink.max()))
        least, most = grow.min(axis=1), shrink.max(axis=1)
        self.offset = -0.5 * (most + least)
        return float((most - least).max())

    def gains(self) -> tuple[FloatArray, FloatArray]:
        """Gains per unit of increasing and decreasing each coordinate, at the current offsets."""
        grow, shrink = self.edges()
        offset = np.repeat(self.offset, self.problem.n_rows)
        return -offset - grow, shrink + offset

    @property
    def finite(self) -> bool:
        """Whether all values are finite; rounding may make unbounded coordinates diverge."""
        return bool(np.isfinite(self.dual).all() and np.isfinite(self.offset).all())

    def inside(self) -> AnyArray:
        """Mask of the coordinates that are neither at a bound nor at zero."""
        return (self.dual > self.box[0]) & (self.dual < self.box[1]) & (self.dual != 0.0)

    def result(self) -> WarmStart:
        """Return the dual vectors β and the offsets."""
        offset = self.problem.best_constant + self.offset * self.spread
        return WarmStart(self.by_output(self.dual / self.unit).T.copy(), offset)


def curvature(dual: FloatArray, box: FloatArray) -> FloatArray:
    """Curvature of the conjugate at the current value of each coordinate."""
    return np.where(dual > 0.0, box[3], box[2])
