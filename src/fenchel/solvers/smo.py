"""Greedy dual ascent for one output on a dense kernel, finished by Newton."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Callback, Certified
from fenchel.problem import Problem
from fenchel.solvers import _greedy
from fenchel.solvers.base import Solution, WarmStart, needs_scalar_kernel
from fenchel.solvers.loop import Loop
from fenchel.solvers.newton import Newton

_SLOPE = 0.3  # where Newton takes over, in units of the spread of y and of the root of tol
_SHARP, _BLUNT = 1e-4, 0.1
_TURNS = 2  # steps for each row, on all rows at first
_WORK = 20.0  # entries of kernel rows that steps may read, for each entry of the matrix
_SHARE = 0.2  # of its slope that a round leaves
_FEWEST_ROWS = 512
_NO_BOUND = 1e30


@dataclass(frozen=True)
class SMO:
    r"""Sequential minimal optimization, then Newton to the tolerance.

    .. math:: \min_a \tfrac12 a^\top K a - y^\top a + \sum_i c_i \ell^*(a_i / c_i),
              \qquad \sum_i a_i = 0

    over pairs of coordinates: the one with the steepest slope, and the partner that gains
    most by second order (without an offset: the one coordinate that gains most). The kernel
    matrix and its product with a are kept in single precision. Once each row has had its turn,
    steps run in rounds on the rows that still move, against a small part of the matrix. Where
    no step has a slope above 0.3 times the root of the tolerance, in units of the spread of y,
    Newton's method in double precision takes over. The cheapest first digits where the kernel
    has full rank. Steps of Newton's method are counted; the ascent is one where it was enough.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Limit on the number of Newton steps at the end.

    References
    ----------
    Platt (1998); Fan, Chen, Lin (2005), Working set selection using second order information.
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Return None for one output of a box loss on a Gram matrix, else what is missing."""
        missing = needs_scalar_kernel(problem)
        if missing is not None:
            return missing
        if problem.n_outputs != 1:
            return f"needs one output, got {problem.n_outputs}; solver='newton' takes any number"
        if problem.loss.box(1) is None:
            return (
                "needs a loss whose conjugate is a quadratic on a box (quantile, expectile, SVR, "
                "Huber or squared loss); solver='newton' takes any loss"
            )
        if problem.design.gram is None:
            return (
                f"needs a dense kernel matrix, which {problem.design.width} features of "
                f"{problem.n_rows} rows are no reason to form; solver='newton' takes features"
            )
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point; see :class:`fenchel.solvers.base.Solver`."""
        loop: Loop[Certified] = Loop(self.tol, callback)
        slope = min(max(_SLOPE * math.sqrt(self.tol), _SHARP), _BLUNT)
        start = ascend(problem, warm_start, slope)
        solution = Newton(self.tol, self.max_iter).solve(problem, start, loop=loop)
        ascended = warm_start is None and solution.n_iter == 0
        return replace(solution, n_iter=1) if ascended else solution


class _Ascent:
    """Dual coordinates a, bounds and slopes, in units where residuals and kernel are near one."""

    def __init__(self, problem: Problem, spread: float) -> None:
        gram, coupling, box = problem.design.gram, problem.design.coupling, problem.loss.box(1)
        assert gram is not None
        assert coupling is not None
        assert box is not None
        output = float(coupling[0] @ coupling[0])
        kernel = output * float(np.mean(gram.diagonal())) or 1.0  # zero: nothing but the offset
        self.problem, self.spread = problem, spread
        self.unit = problem.weight * (kernel / spread)
        self.gram = np.empty(gram.shape, np.float32)
        np.multiply(gram, output / kernel, out=self.gram, casting="same_kind")
        lower, upper, below, above = (float(v[0]) for v in box[:4])
        curved = 1.0 / (problem.weight * kernel)
        scaled = np.stack([lower * self.unit, upper * self.unit, below * curved, above * curved])
        self.box = np.clip(scaled, -_NO_BOUND, _NO_BOUND)
        self.epsilon = box.epsilon / spread
        self.targets = (problem.targets[:, 0] - problem.best_constant[0]) / spread
        self.dual = np.zeros(len(gram))
        self.pull = -self.targets.astype(np.float32)
        self.offset = 0.0
        self.loop = _greedy.ascend_in_pairs if problem.fit_intercept else _greedy.ascend_alone

    def start(self, dual: FloatArray) -> None:
        """Start from a feasible dual vector β."""
        self.dual = np.clip(self.unit * dual, self.box[0], self.box[1])
        curvature = np.where(self.dual > 0.0, self.box[3], self.box[2])
        image = self.gram @ self.dual.astype(np.float32)
        self.pull = (image + curvature * self.dual - self.targets).astype(np.float32)

    def run(self, slope: float) -> None:
        """Ascend until no step gains more than ``slope``, or progress is slow.

        First on all rows, until each has had its turn; then in rounds on the rows that move.
        """
        n = len(self.dual)
        budget = int(_WORK * n)
        rows, goal, limit = np.arange(n), slope, _TURNS * n
        while True:
            steps = self._round(rows, goal, limit)
            budget -= 1 + steps * len(rows) // n
            left, self.offset = self._slope()
            if left <= slope or steps == 0 or budget <= 0:
                return
            rows = self._moving()
            goal = max(0.5 * slope, _SHARE * left)
            limit = budget * n // len(rows)

    def _round(self, rows: IntArray, slope: float, limit: int) -> int:
        """Ascend on some of the rows; return the number of steps."""
        if len(rows) == len(self.dual):
            arguments = self.gram, self.dual, self.pull, self.box
            return int(self.loop(*arguments, self.epsilon, slope, limit)[0])
        dual, pull = self.dual[rows], self.pull[rows]
        before = dual.copy()
        arguments = self.gram[np.ix_(rows, rows)], dual, pull, self.box[:, rows]
        steps, _, _ = self.loop(*arguments, self.epsilon, slope, limit)
        self.dual[rows] = dual
        change = dual - before
        moved = change != 0.0
        curvature = np.where(dual > 0.0, self.box[3, rows], self.box[2, rows])
        curvature_before = np.where(before > 0.0, self.box[3, rows], self.box[2, rows])
        self.pull += self.gram[rows[moved]].T @ change[moved].astype(np.float32)
        self.pull[rows] += (curvature * dual - curvature_before * before).astype(np.float32)
        return int(steps)

    def _edges(self) -> tuple[FloatArray, FloatArray]:
        """Slopes of growing (negative if it gains) and of shrinking (positive if it gains)."""
        a, eps = self.dual, self.epsilon
        grow = np.where(a >= 0.0, eps, -eps) + self.pull
        shrink = np.where(a > 0.0, eps, -eps) + self.pull
        return (
            np.where(a >= self.box[1], np.inf, grow),
            np.where(a <= self.box[0], -np.inf, shrink),
        )

    def _slope(self) -> tuple[float, float]:
        grow, shrink = self._edges()
        if not self.problem.fit_intercept:
            return max(-float(grow.min()), float(shrink.max())), 0.0
        return float(shrink.max() - grow.min()), -0.5 * float(shrink.max() + grow.min())

    def _moving(self) -> IntArray:
        """As many rows as are free and some more: those that gain most, or lose least."""
        grow, shrink = self._edges()
        gain = np.maximum(-self.offset - grow, shrink + self.offset)
        inside = (self.dual > self.box[0]) & (self.dual < self.box[1]) & (self.dual != 0.0)
        size = min(len(gain), _FEWEST_ROWS + int(np.count_nonzero(inside)))
        if 2 * size > len(gain):
            return np.arange(len(gain))
        return np.sort(np.argpartition(-gain, size - 1)[:size])

    def result(self) -> WarmStart:
        """Return the dual vector β and the offset."""
        offset = self.problem.best_constant + self.offset * self.spread
        return WarmStart((self.dual / self.unit)[:, None], offset)


def ascend(problem: Problem, warm_start: WarmStart | None, slope: float) -> WarmStart | None:
    """Dual point and offset where no pair gains by more than ``slope`` spreads of y per unit."""
    centred = problem.targets[:, 0] - problem.best_constant[0]
    spread = float(np.sqrt(np.average(centred**2, weights=problem.weight)))
    if not spread > 0.0:
        return warm_start
    ascent = _Ascent(problem, spread)
    if warm_start is not None:
        ascent.start(problem.feasible(warm_start.dual)[:, 0])
    ascent.run(slope)
    return ascent.result()
