"""Semismooth Newton on the augmented Lagrangian: the main solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Certified
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, WarmStart, solution_of, start_of
from fenchel.solvers.loop import Iterate, Loop
from fenchel.solvers.newton_spaces import Function, Move, Space, choose_space
from fenchel.solvers.newton_system import Kinks

_FIRST_STEP = 20.0  # in units of mean loss / spread²: kinks within 1/20 of the spread of y
_FEW = 5.0  # outputs that move as one with the same step: 5 levels take one certificate less
_GROWTH = 4.0
_ROUNDING = 1e-12
_PATIENCE = 6  # steps of the outer loop without a better gap
_COARSE_ROWS = 50_000
_ROUNDED = (
    "rounding errors allow no better; increase alpha, or rescale the features if the values of "
    "the kernel are huge"
)
_COARSE_TOL = 1e-4
_COARSE_STEP = 18.0


@dataclass(frozen=True)
class Newton:
    r"""Proximal point method on the dual, each step solved in the primal by Newton.

    Given dual vectors :math:`\beta^k` and a step t, minimize over (V, b)

    .. math:: \Psi(V, b) = \tfrac12 \|V\|_F^2 + \tfrac{\rho}{2} \|b - b^k\|^2
        + \sum_i c_i \max_\beta \left[\langle \beta, r_i \rangle - \ell^*(\beta)
        - \tfrac{1}{2t} \|\beta - \beta_i^k\|^2\right],
        \quad r_i = y_i - S V^\top \varphi_i - b,

    which is convex with a continuous gradient; the maximizers are the next dual vectors, and
    only rows at a kink enter the Hessian. Then t grows and ρ shrinks. It stops on the
    certificate of a feasible dual point.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Limit on the number of Newton steps in all.
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Any loss of the protocol will do."""
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
        loop: Loop[Certified] | None = None,
    ) -> Solution:
        """Return the best certified point; see :class:`fenchel.solvers.base.Solver`.

        ``loop`` is one that has begun before this call.
        """
        loop = Loop(self.tol, callback) if loop is None else loop
        run = _Run(self, problem, loop)
        loop.run(run.iterates(warm_start))
        return run.finish()


@dataclass(frozen=True)
class _Scale:
    """What makes the algorithm equivariant: units of residuals and of their dual."""

    spread: float
    step: float

    @classmethod
    def of(cls, problem: Problem) -> _Scale:
        """Spread of y around the best constant, and mean loss over its square."""
        centred = problem.targets - problem.best_constant
        squares = np.einsum("ij,ij->i", centred, centred)
        spread = float(np.sqrt(np.average(squares, weights=problem.weight) / problem.n_outputs))
        mean_loss = problem.baseline
        return cls(spread, mean_loss / spread**2 if spread > 0.0 and mean_loss > 0.0 else 1.0)


class _Point(NamedTuple):
    """Value, proximal dual and kinks of the inner problem at a function and an offset."""

    function: Function
    offset: FloatArray
    residual: FloatArray
    dual: FloatArray
    value: float
    kinks: Kinks
    pull: FloatArray | None
    """Φᵀ (c β), where the pass over the rows brought it."""


class _Gradient(NamedTuple):
    function: Function
    offset: FloatArray
    worth: float
    """Bound on what is left to gain: Ψ is 1-strongly convex in the function."""


@dataclass(frozen=True)
class _Inner:
    """The inner problem Ψ for an anchor β^k, a centre b^k, a step t and a ridge ρ."""

    problem: Problem
    space: Space
    scale: _Scale
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
    ) -> _Point:
        """Evaluate in one pass over the rows; with the residual known, save a product."""
        problem, design = self.problem, self.problem.design
        if residual is None:
            residual = self.space.residual(function, offset)
        known = residual is not None
        if residual is None:
            residual = np.empty((problem.n_rows, problem.n_outputs))
            directions = design.directions(self.space.weights(function))
        dual = np.empty_like(residual)
        active, jacobians = [], []

        def task(rows: slice) -> tuple[FloatArray | float, ...]:
            mine, weight = residual[rows], problem.weight[rows]
            if not known:
                design.predict(rows, directions, out=mine)
                mine += offset
                np.subtract(problem.targets[rows], mine, out=mine)
            envelope = problem.loss.at(rows).envelope(self.anchor[rows], mine, self.step)
            dual[rows] = envelope.dual
            active.append(envelope.active + rows.start)
            stiffness = self.step * weight[envelope.active]
            jacobians.append((envelope.jacobian.T * stiffness).T)
            value = float(weight @ envelope.value)
            if known or not with_pull:
                return (value,)
            envelope.dual[...] *= weight[:, None]
            return value, design.pull(rows, envelope.dual)

        value, *pull = design.blocks.sum(task)
        away = offset - self.centre
        objective = float(value) + 0.5 * function.dot(function)
        objective += 0.5 * self.ridge * float(away @ away)
        kinks = Kinks(np.concatenate(active), np.concatenate(jacobians))
        return _Point(
            function, offset, residual, dual, objective, kinks, pull[0] if pull else None
        )

    def gradient(self, point: _Point) -> _Gradient:
        """Gradient of Ψ, and what it is worth."""
        problem = self.problem
        offset = np.zeros(problem.n_outputs)
        if problem.fit_intercept:
            offset = self.ridge * (point.offset - self.centre) - problem.weight @ point.dual
        function = self.space.gradient(point.function, point.dual, point.pull)
        worth = 0.5 * function.dot(function) + self.scale.spread * float(np.abs(offset).sum())
        return _Gradient(function, offset, worth)

    def minimize(
        self, point: _Point, tolerance: float, budget: int, loop: Loop[Certified] | None = None
    ) -> tuple[_Point, int]:
        """Newton until the gradient is worth less than ``tolerance``; counts its steps.

        Or until the time of a loop is over.
        """
        full_steps = True
        gradient = self.gradient(point)
        for steps in range(budget):
            late = loop is not None and steps > 0 and loop.seconds_left <= 0.0
            if late or gradient.worth <= tolerance:
                return point, steps
            move = self.space.move(
                point.kinks, gradient.function, gradient.offset, self._damping(point, gradient)
            )
            slope = gradient.function.dot(move.function) + float(gradient.offset @ move.offset)
            if not slope < 0.0:
                return point, steps
            trial = self._end(point, move, full_steps)
            new = None
            if -slope <= _ROUNDING * abs(point.value):  # values are blind here, gradients not
                new = self.gradient(trial)
                if not new.worth < 0.5 * gradient.worth:
                    return point, steps
            else:
                full_steps = trial.value <= point.value + 1e-4 * slope
                if not full_steps:
                    trial = self._along(point, trial, move, slope)
                    if not trial.value < point.value:
                        return point, steps
            point = trial
            gradient = self.gradient(point) if new is None else new
        return point, budget

    def _end(self, point: _Point, move: Move, with_pull: bool) -> _Point:
        """The point a full step away."""
        known = None if move.prediction is None else point.residual - move.prediction
        function = point.function.plus(1.0, move.function)
        return self.at(function, point.offset + move.offset, known, with_pull)

    def _damping(self, point: _Point, gradient: _Gradient) -> FloatArray:
        """ρ for each output, raised where too few kinks hold its offset within the spread."""
        jacobian = point.kinks.jacobian
        held = jacobian.sum(axis=0) if jacobian.ndim == 2 else np.einsum("ijj->j", jacobian)
        wanted = np.abs(gradient.offset) / max(self.scale.spread, np.finfo(float).tiny)
        return np.asarray(self.ridge + np.maximum(0.0, wanted - held))

    def _along(self, point: _Point, end: _Point, move: Move, slope: float) -> _Point:
        """Point between two others where the slope of Ψ has nearly vanished.

        On the segment Ψ is convex and piecewise quadratic: a bracketed secant on its slope,
        which needs the residuals of both ends and no further pass over the features.
        """
        weight, loss = self.problem.weight, self.problem.loss
        change = point.residual - end.residual
        away = point.offset - self.centre
        linear = point.function.dot(move.function) + self.ridge * float(away @ move.offset)
        bend = move.function.dot(move.function)
        bend += self.ridge * float(move.offset @ move.offset)
        fixed = 0.5 * (point.function.dot(point.function) + self.ridge * float(away @ away))

        def residual_at(size: float) -> FloatArray:
            return point.residual - size * change

        def ray(size: float) -> tuple[float, float]:
            envelope = loss.envelope(self.anchor, residual_at(size), self.step)
            value = fixed + size * (linear + 0.5 * size * bend)
            slope = linear + size * bend
            return (
                value + float(weight @ envelope.value),
                slope - float(weight @ np.einsum("ij,ij->i", envelope.dual, change)),
            )

        size = _least_on_ray(ray, point.value, slope)
        function = point.function.plus(size, move.function)
        return self.at(function, point.offset + size * move.offset, residual_at(size))


def _least_on_ray(
    ray: Callable[[float], tuple[float, float]], value: float, slope: float
) -> float:
    """Nearly minimize a convex function on (0, 1], given its value and slope < 0 in 0.

    Secant and bisection in turn on the slope, until that is a tenth of what it was and the
    value is lower; the lower end of the bracket always is.
    """
    low, slope_low = 0.0, slope
    high, slope_high = 1.0, ray(1.0)[1]
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


def _together(problem: Problem) -> float:
    """How many outputs move as one: 1 if they are independent, p if they are the same function.

    The losses of as many add up in that function, so their kinks are to be as many times wider:
    else few are active at the start, and full steps lead far beyond where they hold.
    """
    coupling = problem.design.coupling
    if coupling is None or problem.n_outputs == 1:
        return float(problem.n_outputs)
    largest = np.linalg.norm(coupling, 2) ** 2
    return float(problem.n_outputs * largest / np.linalg.norm(coupling) ** 2)


class _Run:
    """The outer loop on one problem."""

    def __init__(self, solver: Newton, problem: Problem, loop: Loop[Certified]) -> None:
        self.solver, self.problem, self.loop = solver, problem, loop
        self.steps = 0
        self._last: tuple[_Inner, _Point, float] | None = None

    def iterates(self, warm_start: WarmStart | None) -> Iterator[Iterate[Certified]]:
        """Yield certified points; what remains to be said of the end is the loop's reason."""
        problem, tol = self.problem, self.solver.tol
        scale = _Scale.of(problem)
        step = _FIRST_STEP * scale.step / max(1.0, _together(problem) / _FEW)
        ridge = 1e-7 * float(problem.weight.sum()) * scale.step
        space = choose_space(problem)
        dual, offset = start_of(self.problem, warm_start)
        first = problem.certify(dual, offset)
        yield Iterate(0, first)
        many = problem.n_rows >= _COARSE_ROWS
        if warm_start is None and not problem.design.by_rows and many:
            weights, offset = self._coarse()
            function = Function(weights, weights)
            step *= _COARSE_STEP
        else:
            before = getattr(warm_start, "alpha", None) or problem.alpha
            function = space.start(first, problem.alpha / before)
        unit = problem.baseline / problem.alpha  # of Ψ, where the certificate has the mean loss
        stale = 0
        while self.steps < self.solver.max_iter:
            inner = _Inner(problem, space, scale, dual, offset, step, ridge)
            tolerance = 0.02 * unit * max(tol, 0.1 * min(self.loop.gap, 1e-3))
            try:
                budget = self.solver.max_iter - self.steps
                at = inner.at(function, offset)
                point, used = inner.minimize(at, tolerance, budget, self.loop)
            except np.linalg.LinAlgError:
                self.loop.reason = _ROUNDED
                return
            self.steps += used
            self._last = inner, point, tolerance
            before_gap = self.loop.gap
            new = problem.certify(point.dual, point.offset, space.weights(point.function))
            yield Iterate(self.steps, problem.best_of(new, self.loop.best))
            stale = 0 if self.loop.gap < before_gap else stale + 1
            dual, function, offset = point.dual, point.function, point.offset
            step *= _GROWTH
            ridge /= 10.0
            if stale == _PATIENCE or not step <= 1e18 * scale.step:
                self.loop.reason = _ROUNDED
                return
        self.loop.reason = f"max_iter={self.solver.max_iter} was reached; increase max_iter or tol"
        with suppress(NotImplementedError):  # designs need not know their diagonal
            size = float(problem.design.diagonal().mean())
            if problem.alpha < np.finfo(float).eps * scale.step * size:
                self.loop.reason = _ROUNDED

    def _coarse(self) -> tuple[FloatArray, FloatArray]:
        """Weights and offset of a seeded sample of the rows: a start near the solution."""
        n = self.problem.n_rows
        rows = np.random.default_rng(0).choice(n, n // 16, replace=False)
        sample = self.problem.subset(np.sort(rows))
        solution = Newton(tol=_COARSE_TOL, max_iter=self.solver.max_iter).solve(sample)
        return solution.weights, solution.offset

    def _tightened(self, best: Certified) -> Certified:
        """Solve more exactly until the model that the dual point stands for is good too."""
        if self._last is None or not self.loop.reached:
            return best
        inner, point, tolerance = self._last
        for _ in range(8):
            linked = self.problem.certify(point.dual, point.offset)
            if linked.certificate.relative_gap <= self.solver.tol:
                return linked
            tolerance *= 1e-2
            try:
                point, used = inner.minimize(point, tolerance, 50)
            except np.linalg.LinAlgError:
                break
            self.steps += used
            if used == 0:
                break
        return best

    def finish(self) -> Solution:
        """Settle the model: that of the dual point, with the exact offset where one is known."""
        problem = self.problem
        assert self.loop.best is not None
        best = self._tightened(self.loop.best)
        enough = max(best.certificate.relative_gap, self.solver.tol)
        for offset in (None, best.offset) if problem.separable else (best.offset,):
            linked = problem.certify(best.dual, offset)
            if linked.certificate.relative_gap <= enough:
                break
        else:
            linked = best
        self.loop.count = self.steps
        status = self.loop.status("", "steps", linked.certificate.relative_gap)
        return solution_of(self.loop, status, linked)
