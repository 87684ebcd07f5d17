"""Dual coordinates of greedy ascent for one output, in units where nothing has units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.problem import Problem
from fenchel.solvers import _greedy
from fenchel.solvers.base import WarmStart

_NO_BOUND = 1e30


class Round(NamedTuple):
    """What steps among some rows have done: their number, and the rows that moved by how much."""

    steps: int
    rows: IntArray
    change: FloatArray


class Ascent:
    """Dual coordinates a, bounds and slopes, in units where residuals and kernel are near one.

    ``pull`` is K a + q a - y, the slope of the smooth part, in the precision that it is kept in.
    """

    def __init__(self, problem: Problem, spread: float, precision: type) -> None:
        coupling, box = problem.design.coupling, problem.loss.box(1)
        assert coupling is not None
        assert box is not None
        output = float(coupling[0] @ coupling[0])
        kernel = float(problem.design.diagonal().mean()) or 1.0  # zero: nothing but the offset
        self.problem, self.spread = problem, spread
        self.scale = output / kernel
        self.unit = problem.weight * (kernel / spread)
        lower, upper, below, above = (float(v[0]) for v in box[:4])
        curved = 1.0 / (problem.weight * kernel)
        scaled = np.stack([lower * self.unit, upper * self.unit, below * curved, above * curved])
        self.box = np.clip(scaled, -_NO_BOUND, _NO_BOUND)
        self.epsilon = box.epsilon / spread
        self.targets = (problem.targets[:, 0] - problem.best_constant[0]) / spread
        self.dual = np.zeros(problem.n_rows)
        self.pull: AnyArray = -self.targets.astype(precision)
        self.offset = 0.0
        self.loop = _greedy.ascend_in_pairs if problem.fit_intercept else _greedy.ascend_alone

    def times(self, vector: FloatArray) -> AnyArray:
        """K times a vector."""
        raise NotImplementedError

    def run(self, slope: float) -> None:
        """Ascend until no step gains more than ``slope`` per unit, or progress is slow."""
        raise NotImplementedError

    def start(self, dual: FloatArray) -> None:
        """Start from a feasible dual vector β."""
        self.dual = np.clip(self.unit * dual, self.box[0], self.box[1])
        curved = curvature(self.dual, self.box) * self.dual
        self.pull = (self.times(self.dual) + curved - self.targets).astype(self.pull.dtype)

    def steps_among(self, rows: IntArray, gram: AnyArray, slope: float, limit: int) -> Round:
        """Ascend on some of the rows, K among them in single precision."""
        pull = self.pull[rows].astype(np.float32)
        box, before = self.box[:, rows], self.dual[rows]
        after = before.copy()
        steps, _, _ = self.loop(gram, after, pull, box, self.epsilon, slope, limit)
        self.dual[rows] = after
        change = after - before
        bent = curvature(after, box) * after - curvature(before, box) * before
        self.pull[rows] += bent.astype(self.pull.dtype)
        moved = change != 0.0
        return Round(int(steps), rows[moved], change[moved])

    def edges(self) -> tuple[FloatArray, FloatArray]:
        """Slopes of growing (negative if it gains) and of shrinking (positive if it gains)."""
        a, eps = self.dual, self.epsilon
        grow = np.where(a >= 0.0, eps, -eps) + self.pull
        shrink = np.where(a > 0.0, eps, -eps) + self.pull
        return (
            np.where(a >= self.box[1], np.inf, grow),
            np.where(a <= self.box[0], -np.inf, shrink),
        )

    def steepest(self) -> tuple[float, float]:
        """Return the largest slope of a step, and the offset that goes with these slopes."""
        grow, shrink = self.edges()
        if not self.problem.fit_intercept:
            return max(-float(grow.min()), float(shrink.max())), 0.0
        return float(shrink.max() - grow.min()), -0.5 * float(shrink.max() + grow.min())

    def gains(self) -> FloatArray:
        """What each row gains per unit, at the present offset; the less, the more negative."""
        grow, shrink = self.edges()
        return np.maximum(-self.offset - grow, shrink + self.offset)

    def inside(self) -> AnyArray:
        """Which rows are neither at a bound nor at zero."""
        return (self.dual > self.box[0]) & (self.dual < self.box[1]) & (self.dual != 0.0)

    def result(self) -> WarmStart:
        """Return the dual vector β and the offset."""
        offset = self.problem.best_constant + self.offset * self.spread
        return WarmStart((self.dual / self.unit)[:, None], offset)


def curvature(dual: FloatArray, box: FloatArray) -> FloatArray:
    """What the conjugate adds to the curvature of each coordinate where it is."""
    return np.where(dual > 0.0, box[3], box[2])
