"""Greedy dual ascent on a dense kernel, followed by Newton's method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.design.tiled import multiplied
from fenchel.problem import Problem
from fenchel.solvers.ascent import Ascent
from fenchel.solvers.base import Solution, WarmStart, needs_scalar_kernel, solution_of, threads_for
from fenchel.solvers.loop import Loop
from fenchel.solvers.newton import Newton, first_of_few, low_rank_start
from fenchel.solvers.working_sets import READ, OnSets

_SLOPE = 0.3  # where Newton takes over, in units of the spread of y and of the root of tol
_FINER = 0.2  # the same where values are computed, and Newton's steps are dear
_SHARP, _BLUNT = 1e-4, 0.1
_TURNS = 2  # steps for each coordinate, on all rows at first
# Of coupled outputs, slow steps are left to Newton's method where it has few unknowns: once they
# have read as many values as some of its systems cost, if more than 7 for each of the matrix. Data
# H at C=100 then take 0.7 to 0.9 of the time; of one output they take the same.
_SYSTEMS, _LEAST_READ = 2.0, 7.0

_SHARE = 0.2  # of its slope that a round leaves
_FEWEST = 512  # coordinates of a round
_NEAR_END = 0.25  # whatever is nearer to an end than to the middle starts there


@dataclass(frozen=True)
class SMO(CheckedWhenMade):
    r"""Sequential minimal optimization, followed by Newton's method.

    .. math:: \min_a \tfrac12 a^\top K a - y^\top a + \sum_i c_i \ell^*(a_i / c_i),
              \qquad \sum_i a_i = 0

    Each step updates a pair of coordinates: the one with the steepest slope, and the partner with
    the largest second-order gain (without an offset, the single coordinate with the largest gain).
    The kernel matrix and its product with a are in single precision. After a first round over all
    rows, steps run in rounds on the rows that still change, with a small part of the matrix. When
    no slope exceeds 0.3 times the root of the tolerance, in units of the spread of y, Newton's
    method in double precision takes over. SMO is the cheapest way to the first digits if the
    kernel has full rank. ``n_iter`` counts Newton steps; it is one if SMO was sufficient.

    With several outputs, coupled or not, a has one coordinate for each row and output, and K is
    their kernel. The sum over each output is zero, so both coordinates of a pair have one output.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of Newton steps at the end.

    References
    ----------
    Platt (1998); Fan, Chen, Lin (2005), Working set selection using second order information.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import SMO
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, features="kernel_rows", solver=SMO(tol=1e-8))
    >>> model.fit(X, y).status_.converged
    True
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Return None for a box loss on a Gram matrix, else what is missing."""
        missing = needs_scalar_kernel(problem)
        if missing is not None:
            return missing
        box = problem.loss.box(problem.n_outputs)
        if box is None:
            return (
                "needs the loss of quantiles, expectiles, SVR, Huber or squares; solver='newton' "
                "takes any loss"
            )
        if problem.n_outputs > 1 and box.epsilon > 0.0:
            return (
                f"needs epsilon=0 where there are several outputs, got {box.epsilon:g}; "
                "solver='newton' takes any"
            )
        if problem.design.gram is None and not problem.design.is_gram:
            return (
                "needs kernel values, and the kernel has been factored into "
                f"{problem.design.width} features; solver='newton' takes features, "
                "features='kernel_rows' keeps kernel values"
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
        share = _FINER if problem.design.gram is None else _SLOPE
        slope = min(max(share * math.sqrt(self.tol), _SHARP), _BLUNT)
        with threads_for(problem):
            if first_of_few(problem, loop):
                start = loop.in_time(lambda: self._start(problem, warm_start, slope, loop))
                if loop.stopped or loop.reached:
                    return solution_of(loop, loop.status("decrease tol"))
            else:
                start = self._start(problem, warm_start, slope, loop)
        solution = Newton(self.tol, self.max_iter).solve(problem, start, loop=loop)
        ascended = warm_start is None and solution.n_iter == 0
        return replace(solution, n_iter=1) if ascended else solution

    def _start(
        self, problem: Problem, warm_start: WarmStart | None, slope: float, loop: Loop[Certified]
    ) -> WarmStart | None:
        """Where Newton's method starts."""
        solved = warm_start is not None and self._is_solved(problem, warm_start)
        return warm_start if solved else ascend(problem, warm_start, slope, loop)

    def _is_solved(self, problem: Problem, start: WarmStart) -> bool:
        """Whether a start is good enough: worth a look where it is of the same strength."""
        if start.alpha != problem.alpha:
            return False
        return problem.certify(problem.feasible(start.dual)).certificate.relative_gap <= self.tol


class _OnMatrix(Ascent):
    """With the whole matrix in single precision: values of rows, that all outputs share."""

    def __init__(self, problem: Problem, spread: float) -> None:
        super().__init__(problem, spread, np.float32)
        gram = problem.design.gram
        assert gram is not None
        self.gram, self.factors = gram.astype(np.float32), self.outputs.astype(np.float32)

    def times(self, vector: FloatArray) -> AnyArray:
        return self._product(self.gram, self.by_output(vector))

    def _product(self, gram: AnyArray, vector: FloatArray) -> AnyArray:
        """K times a vector (p, k), from the columns that belong to its rows."""
        single = vector.T.astype(np.float32)
        return (self.factors @ multiplied(gram, single).T).ravel()

    def run(self, slope: float) -> None:
        """First on all rows, until each has had its turn; then in rounds on those that move."""
        n, done = self.problem.n_rows, 0
        rows, goal, limit = np.arange(n), slope, _TURNS * len(self.dual)
        while True:
            steps = self._round(rows, goal, limit)
            done += 1 + steps * len(rows) // n
            left, rest = self.steepest(), self._may_read() * len(self.dual) - done
            if left <= slope or steps == 0 or rest <= 0:
                return
            rows = self._moving()
            goal = max(0.5 * slope, _SHARE * left)
            limit = int(rest) * n // len(rows)

    def _may_read(self) -> float:
        """How often steps may read a value of the matrix of all coordinates."""
        if self.problem.n_outputs == 1:
            return READ
        system = np.count_nonzero(self.inside()) ** 3 / 3.0
        return min(max(_SYSTEMS * system / len(self.dual) ** 2, _LEAST_READ), READ)

    def _round(self, rows: IntArray, slope: float, limit: int) -> int:
        """Ascend on some of the rows; return the number of steps."""
        n = self.problem.n_rows
        if len(rows) == n:
            arguments = self.gram, self.factors, self.dual, self.pull, self.box, self.ends
            return int(self.loop(*arguments, self.epsilon, slope, limit))
        places = np.add.outer(n * np.arange(self.problem.n_outputs), rows).ravel()
        before = self.dual[places]
        done = self.steps_among(places, self.gram[np.ix_(rows, rows)], slope, limit)
        change = (self.dual[places] - before).reshape(-1, len(rows))
        moved = change.any(axis=0)
        self.pull += self._product(self.gram[rows[moved]].T, change[:, moved])
        return done.steps

    def _moving(self) -> IntArray:
        """As many rows as are free and some more: those that gain most, or lose least."""
        gain = self.by_output(np.maximum(*self.gains())).max(axis=0)
        free = np.count_nonzero(self.by_output(self.inside()).any(axis=0))
        size = min(len(gain), _FEWEST // self.problem.n_outputs + int(free))
        if 2 * size > len(gain):
            return np.arange(len(gain))
        return np.sort(np.argpartition(-gain, size - 1)[:size])


def ascend(
    problem: Problem, warm_start: WarmStart | None, slope: float, loop: Loop[Certified]
) -> WarmStart | None:
    """Dual point and offsets at which no pair gains more than ``slope`` spreads of y per unit."""
    centred = problem.targets - problem.best_constant
    spread = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=problem.weight)))
    if not spread > 0.0:
        return warm_start
    stored = problem.design.gram is not None
    if warm_start is None and not stored:
        box = problem.loss.box(problem.n_outputs)
        linear = box is not None and box.is_linear  # nearly all coordinates will be on an end
        warm_start = low_rank_start(problem, loop, *([_NEAR_END] if linear else []))
    ascent = _OnMatrix(problem, spread) if stored else OnSets(problem, spread)
    if warm_start is not None:
        ascent.start(warm_start.dual)
    ascent.run(slope)
    if warm_start is not None and not ascent.objective() > 0.0:
        ascent.forget()  # of rows without noise, low rank knows nothing that could be mended
        ascent.run(slope)
    return ascent.result() if ascent.finite else warm_start
