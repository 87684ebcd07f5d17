"""Semismooth Newton on the augmented Lagrangian: the main solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.blocks import Block
from fenchel.problem import Certified, Problem
from fenchel.solvers.base import Callback, Progress, Solution, Status, WarmStart
from fenchel.solvers.newton_spaces import FeatureSpace, Function, Move, Space, choose_space
from fenchel.solvers.newton_system import Kinks

_FIRST_STEP = 20.0  # in units of mean loss / spread²: kinks within 1/20 of the spread of y
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
        started: float | None = None,
    ) -> Solution:
        """Return the best certified point; see :class:`fenchel.solvers.base.Solver`.

        ``started`` is when the clock of the history started, if before this call.
        """
        run = _Run(self, problem, callback, started or time.perf_counter())
        return run.finish(*run.iterate(warm_start))


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
        mean_loss = problem.baseline / float(problem.weight.sum())
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
        problem = self.problem
        if residual is None:
            residual = self.space.residual(function, offset)
        known = residual is not None
        if residual is None:
            residual = np.empty((problem.rows.n_rows, problem.n_outputs))
            directions = problem.directions(self.space.weights(function))
        dual = np.empty_like(residual)
        rows, jacobians = [], []

        def task(block: Block) -> tuple[FloatArray | float, ...]:
            mine = residual[block.rows]
            if not known:
                np.matmul(block.features, directions, out=mine)
                mine += offset
                np.subtract(block.targets, mine, out=mine)
            envelope = problem.loss.envelope(self.anchor[block.rows], mine, self.step)
            dual[block.rows] = envelope.dual
            rows.append(envelope.active + block.rows.start)
            stiffness = self.step * block.weight[envelope.active]
            jacobians.append((envelope.jacobian.T * stiffness).T)
            value = float(block.weight @ envelope.value)
            if known or not with_pull:
                return (value,)
            envelope.dual[...] *= block.weight[:, None]
            return value, problem.pulled(block, envelope.dual)

        value, *pull = problem.rows.sum(task)
        away = offset - self.centre
        objective = float(value) + 0.5 * function.dot(function)
        objective += 0.5 * self.ridge * float(away @ away)
        kinks = Kinks(np.concatenate(rows), np.concatenate(jacobians))
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

    def minimize(self, point: _Point, tolerance: float, budget: int) -> tuple[_Point, int]:
        """Newton until the gradient is worth less than ``tolerance``; counts its steps."""
        full_steps = True
        gradient = self.gradient(point)
        for steps in range(budget):
            if gradient.worth <= tolerance:
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


def _many(problem: Problem) -> bool:
    return problem.rows.n_rows >= _COARSE_ROWS


@dataclass
class _Run:
    """The outer loop on one problem."""

    solver: Newton
    problem: Problem
    callback: Callback | None
    started: float = field(default_factory=time.perf_counter)
    history: list[Progress] = field(default_factory=list)
    steps: int = 0

    def iterate(self, warm_start: WarmStart | None) -> tuple[Certified, str | None]:
        """Return the best certified point and, if it is not good enough, the reason."""
        problem, tol = self.problem, self.solver.tol
        scale = _Scale.of(problem)
        step = _FIRST_STEP * scale.step
        ridge = 1e-7 * float(problem.weight.sum()) * scale.step
        space = choose_space(problem)
        dual, offset = self._start(warm_start)
        best = problem.certify(dual, offset)
        if warm_start is None and isinstance(space, FeatureSpace) and _many(problem):
            weights, offset = self._coarse()
            function = space.function(weights)
            step *= _COARSE_STEP
        else:
            before = getattr(warm_start, "alpha", None) or problem.alpha
            function = space.start(best, problem.alpha / before)
        stale = 0
        while not self._report(best):
            if self.steps >= self.solver.max_iter:
                return (
                    best,
                    f"max_iter={self.solver.max_iter} was reached; increase max_iter or tol",
                )
            inner = _Inner(problem, space, scale, dual, offset, step, ridge)
            worth = 0.1 * min(best.certificate.gap, 1e-3 * problem.baseline)
            tolerance = 0.02 * max(tol * problem.baseline, worth)
            try:
                point, used = inner.minimize(
                    inner.at(function, offset), tolerance, self.solver.max_iter - self.steps
                )
            except np.linalg.LinAlgError:
                return best, _ROUNDED
            self.steps += used
            new = problem.certify(point.dual, point.offset, space.weights(point.function))
            stale = 0 if new.certificate.gap < best.certificate.gap else stale + 1
            best = best if stale else new
            if best.certificate.relative_gap <= tol:
                self._report(best)
                return self._tighten(inner, point, tolerance, best), None
            dual, function, offset = point.dual, point.function, point.offset
            step *= _GROWTH
            ridge /= 10.0
            if stale == _PATIENCE or not step <= 1e18 * scale.step:
                return best, _ROUNDED
        reached = best.certificate.relative_gap <= tol
        return best, None if reached else "the callback asked for it"

    def _start(self, warm_start: WarmStart | None) -> tuple[FloatArray, FloatArray]:
        problem = self.problem
        if warm_start is None:
            return np.zeros((problem.rows.n_rows, problem.n_outputs)), problem.best_constant
        offset = warm_start.offset if problem.fit_intercept else np.zeros(problem.n_outputs)
        return problem.feasible(warm_start.dual), offset

    def _coarse(self) -> tuple[FloatArray, FloatArray]:
        """Weights and offset of a seeded sample of the rows: a start near the solution."""
        n = self.problem.rows.n_rows
        rows = np.random.default_rng(0).choice(n, n // 16, replace=False)
        sample = self.problem.subset(np.sort(rows))
        solution = Newton(tol=_COARSE_TOL, max_iter=self.solver.max_iter).solve(sample)
        return solution.weights, solution.offset

    def _report(self, best: Certified) -> bool:
        """Write history, call back; say whether to stop."""
        certificate = best.certificate
        progress = Progress(
            iteration=self.steps,
            seconds=time.perf_counter() - self.started,
            primal=certificate.primal,
            dual=certificate.dual,
            relative_gap=certificate.relative_gap,
        )
        self.history.append(progress)
        asked = self.callback is not None and bool(self.callback(progress))
        return asked or certificate.relative_gap <= self.solver.tol

    def _tighten(
        self, inner: _Inner, point: _Point, tolerance: float, best: Certified
    ) -> Certified:
        """Solve more exactly until the model that the dual point stands for is good too."""
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

    def finish(self, best: Certified, reason: str | None) -> Solution:
        """Settle the model: that of the dual point, with the exact offset where one is known."""
        problem, tol = self.problem, self.solver.tol
        enough = max(best.certificate.gap, tol * problem.baseline)
        for offset in (None, best.offset) if problem.separable else (best.offset,):
            linked = problem.certify(best.dual, offset)
            if linked.certificate.gap <= enough:
                break
        else:
            linked = best
        certificate = linked.certificate
        if reason is None or certificate.relative_gap <= tol:
            status = Status(True, f"converged to a relative gap of {certificate.relative_gap:.1e}")
        else:
            status = Status(
                False,
                f"stopped at a relative gap of {certificate.relative_gap:.1e} > tol={tol:g}: "
                + str(reason),
            )
        return Solution(
            linked.dual,
            linked.weights,
            linked.offset,
            certificate,
            status,
            self.steps,
            self.history,
        )
