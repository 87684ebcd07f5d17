"""The inner problem of Newton's method, a smooth convex function of functions and offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fenchel._clock import OutOfTime, within
from fenchel._memory import empty
from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Certified
from fenchel.design import multiply_rows, subtract_from
from fenchel.problem import Problem
from fenchel.solvers.loop import Loop
from fenchel.solvers.newton_spaces import Function, Move, Space
from fenchel.solvers.newton_system import Kinks

_ROUNDING = 1e-12
_SHORT = 0.03  # of a Newton step: most after it are short too; 0.01 takes 8 % more of them


@dataclass(frozen=True)
class Scale:
    """Units of residuals and of dual vectors, which make the algorithm equivariant."""

    spread: float
    step: float

    @classmethod
    def of(cls, problem: Problem) -> Scale:
        """Spread of y around the best constant, and mean loss over its square."""
        constant = problem.best_constant  # by threads of its own
        one = problem.targets.shape[1] == 1  # for all outputs: squares about their mean tell those
        centre = constant.mean(keepdims=True) if one else constant

        def task(rows: slice) -> tuple[float]:
            centred = problem.targets[rows] - centre
            return (float(np.dot(problem.share[rows], np.einsum("ij,ij->i", centred, centred))),)

        square = float(problem.design.blocks.sum(task)[0]) / len(centre)
        spread = float(np.sqrt(square + np.var(constant) if one else square))
        mean_loss = problem.baseline
        return cls(spread, mean_loss / spread**2 if spread > 0.0 and mean_loss > 0.0 else 1.0)


class Point(NamedTuple):
    """Value, proximal dual and kinks of the inner problem at a function and an offset."""

    function: Function
    offset: FloatArray
    residual: FloatArray | None
    """Kept where a space brings it; else it is cheaper made anew than written down."""
    dual: FloatArray
    value: float
    kinks: Kinks
    pushed: FloatArray
    """Σ c_i β_i, (p,)."""
    pull: FloatArray | None
    """Φᵀ (c β), where the pass over the rows brought it."""
    made: FloatArray | None = None
    """Residuals that the pass made, where all rows are one block."""


class Gradient(NamedTuple):
    """Gradient of Ψ."""

    function: Function
    offset: FloatArray
    worth: float
    """Bound on what is left to gain: Ψ is 1-strongly convex in the function."""


class Minimized(NamedTuple):
    """Where Newton's method ended."""

    point: Point
    steps: int
    stuck: bool = False
    """Whether it did because a step was short."""


@dataclass(frozen=True)
class Inner:
    """The inner problem Ψ for an anchor β^k, a centre b^k, a step t and a ridge ρ."""

    problem: Problem
    space: Space
    scale: Scale
    anchor: FloatArray
    centre: FloatArray
    step: float
    ridge: float

    def at(
        self,
        function: Function,
        offset: FloatArray,
        residual: FloatArray | None = None,
        with_pull: bool = True,
    ) -> Point:
        """Evaluate Ψ in one pass over the rows; a known residual saves a product."""
        problem, design = self.problem, self.problem.design
        if residual is None:
            residual = self.space.residual(function, offset)
        directions = None
        if residual is None:
            directions = design.directions(self.space.weights(function))
        dual = empty((problem.n_rows, problem.n_outputs))
        kinks: dict[int, tuple[IntArray, FloatArray]] = {}
        made: FloatArray | None = None

        def task(rows: slice) -> tuple[FloatArray | float, ...]:
            nonlocal made
            weight = problem.weight[rows]
            mine = self._residual(rows, directions, offset) if residual is None else residual[rows]
            made = mine
            envelope = problem.loss.at(rows).envelope(self.anchor[rows], mine, self.step)
            dual[rows] = envelope.dual
            stiffness = self.step * weight[envelope.active]
            kinks[rows.start] = (envelope.active + rows.start, (envelope.jacobian.T * stiffness).T)
            sums = float(np.dot(weight, envelope.value)), np.dot(weight, envelope.dual)
            if residual is not None or not with_pull:
                return sums
            multiply_rows(envelope.dual, weight)
            return *sums, design.pull(rows, envelope.dual)

        value, pushed, *pull = design.blocks.sum(task)
        away = offset - self.centre
        objective = float(value) + 0.5 * function.dot(function)
        objective += 0.5 * self.ridge * float(away @ away)
        if len(kinks) == 1:
            found = Kinks(*kinks[0])
        else:
            active, jacobians = zip(*(kinks[start] for start in sorted(kinks)), strict=True)
            found, made = Kinks(np.concatenate(active), np.concatenate(jacobians)), None
        pulled = pull[0] if pull else None
        return Point(function, offset, residual, dual, objective, found, pushed, pulled, made)

    def _residual(self, rows: slice, directions: Any, offset: FloatArray) -> FloatArray:
        """Residuals of some rows."""
        mine = np.empty((rows.stop - rows.start, self.problem.n_outputs))
        self.problem.design.predict(rows, directions, out=mine)
        subtract_from(self.problem.targets[rows], offset, mine)
        return mine

    def gradient(self, point: Point) -> Gradient:
        """Gradient of Ψ, and the decrease of the objective to expect from it."""
        problem = self.problem
        offset = np.zeros(problem.n_outputs)
        if problem.fit_intercept:
            offset = self.ridge * (point.offset - self.centre) - point.pushed
        function = self.space.gradient(point.function, point.dual, point.pull)
        worth = 0.5 * function.dot(function) + self.scale.spread * float(np.abs(offset).sum())
        return Gradient(function, offset, worth)

    def minimize(
        self,
        point: Point,
        tolerance: float,
        budget: int,
        loop: Loop[Certified] | None = None,
        may_be_stuck: bool = False,
    ) -> Minimized:
        """Run Newton's method until the expected decrease is below ``tolerance``.

        It also ends when the time of ``loop`` is over, and if it ``may_be_stuck`` after a step
        that is a small share of what it was to be. Steps are counted.
        """
        full_steps, size = True, 1.0
        gradient = self.gradient(point)
        for steps in range(budget):
            left = float("inf") if loop is None else loop.seconds_left
            if (left <= 0.0 and steps > 0) or gradient.worth <= tolerance:
                return Minimized(point, steps)
            if may_be_stuck and size < _SHORT:
                return Minimized(point, steps, stuck=True)
            damping = self._damping(point, gradient)
            try:
                with within(left):
                    move = self.space.move(
                        point.kinks, gradient.function, gradient.offset, damping
                    )
            except OutOfTime:
                return Minimized(point, steps)
            slope = gradient.function.dot(move.function) + float(gradient.offset @ move.offset)
            if not slope < 0.0:
                return Minimized(point, steps)
            trial = self._moved(point, move, 1.0, full_steps)
            new = None
            if -slope <= _ROUNDING * abs(point.value):  # values are blind here, gradients not
                new = self.gradient(trial)
                if not new.worth < 0.5 * gradient.worth:
                    return Minimized(point, steps)
            else:
                full_steps = trial.value <= point.value + 1e-4 * slope
                size = 1.0
                if not full_steps:
                    end = trial.dual
                    del trial  # of many rows, each array is memory
                    size = self._size(point, move, slope, end)
                    del end
                    trial = self._moved(point, move, size)
                    if not trial.value < point.value:
                        return Minimized(point, steps)
            point = trial
            gradient = self.gradient(point) if new is None else new
        return Minimized(point, budget)

    def _moved(self, point: Point, move: Move, size: float, with_pull: bool = True) -> Point:
        """The point a share of a move away."""
        known = None
        if move.prediction is not None:
            assert point.residual is not None
            known = point.residual - size * move.prediction
        function = point.function.plus(size, move.function)
        return self.at(function, point.offset + size * move.offset, known, with_pull)

    def _damping(self, point: Point, gradient: Gradient) -> FloatArray:
        """ρ for each output, raised where too few kinks hold its offset within the spread."""
        jacobian = point.kinks.jacobian
        if jacobian.ndim == 2:
            held = np.dot(np.ones(len(jacobian)), jacobian)  # in a seventh of the time of a sum
        else:
            held = np.einsum("ijj->j", jacobian)
        wanted = np.abs(gradient.offset) / max(self.scale.spread, np.finfo(float).tiny)
        return np.asarray(self.ridge + np.maximum(0.0, wanted - held))

    def _size(self, point: Point, move: Move, slope: float, end: FloatArray) -> float:
        """Share of a move to go, where the slope of Ψ has nearly vanished.

        On the segment Ψ is convex and piecewise quadratic: a bracketed secant on its slope,
        which needs the residuals of both ends and no further pass over the features. ``end``
        is the dual point of the whole move.
        """
        problem = self.problem
        here, change = self._ends(point, move)
        away = point.offset - self.centre
        linear = point.function.dot(move.function) + self.ridge * float(away @ move.offset)
        bend = move.function.dot(move.function)
        bend += self.ridge * float(move.offset @ move.offset)
        fixed = 0.5 * (point.function.dot(point.function) + self.ridge * float(away @ away))

        weighted = None if point.made is None else problem.weight[:, None] * change

        def falling(rows: slice, dual: FloatArray) -> float:
            if weighted is not None:  # a single block: memory for it costs nothing
                return float(np.vdot(dual, weighted))
            return float(np.dot(problem.weight[rows], np.einsum("ij,ij->i", dual, change[rows])))

        def ray(size: float) -> tuple[float, float]:
            def task(rows: slice) -> tuple[float, float]:
                residual = here[rows] - size * change[rows]
                envelope = problem.loss.at(rows).envelope(self.anchor[rows], residual, self.step)
                value = float(np.dot(problem.weight[rows], envelope.value))
                return value, falling(rows, envelope.dual)

            value, falls = (float(part) for part in problem.design.blocks.sum(task))
            along = fixed + size * (linear + 0.5 * size * bend)
            return along + value, linear + size * bend - falls

        falls = problem.design.blocks.sum(lambda rows: (falling(rows, end[rows]),))[0]
        return _least_on_ray(ray, point.value, slope, linear + bend - float(falls))

    def _ends(self, point: Point, move: Move) -> tuple[FloatArray, FloatArray]:
        """Residuals of a point, and what a whole move takes off them."""
        if point.residual is not None:
            assert move.prediction is not None
            return point.residual, move.prediction
        problem, design = self.problem, self.problem.design
        known = point.made is not None
        shape = problem.n_rows, problem.n_outputs
        here = empty(shape) if point.made is None else point.made
        change = empty(shape)
        at = None if known else design.directions(self.space.weights(point.function))
        to = design.directions(self.space.weights(move.function))

        def task(rows: slice) -> None:
            if not known:
                here[rows] = self._residual(rows, at, point.offset)
            design.predict(rows, to, out=change[rows])
            change[rows] += move.offset

        design.blocks.map(task)
        return here, change


def _least_on_ray(
    ray: Callable[[float], tuple[float, float]], value: float, slope: float, slope_high: float
) -> float:
    """Nearly minimize a convex function on (0, 1], given value and slope < 0 in 0, slope in 1.

    Secant and bisection in turn on the slope, until that is a tenth of what it was and the
    value is lower; the lower end of the bracket always is.
    """
    low, slope_low = 0.0, slope
    high = 1.0
    for k in range(80):
        if slope_high <= 0.0:
            return high
        share = 0.5 if k % 2 else slope_low / (slope_low - slope_high)
        size = low + (high - low) * min(max(share, 0.05), 0.95)
        here, slope_here = ray(size)
        if abs(slope_here) <= 0.1 * abs(slope) and here < value:
            return size
        if slope_here < 0.0:
            low, slope_low = size, slope_here
        else:
            high, slope_high = size, slope_here
    return low
