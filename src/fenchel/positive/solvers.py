"""Solvers of non-negative models: Newton and proximal Newton on the dual, and FISTA."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from fenchel._clock import check_time
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import Having, OneOf
from fenchel.positive._barrier import begin
from fenchel.positive._fista import DualFista
from fenchel.positive._kinks import KinkSystem, RowGrams
from fenchel.positive._row_system import ARMIJO, HALVINGS, RowSteps, RowSystem, takes_rows
from fenchel.positive._sampled import SampledSystem, system_of
from fenchel.positive._solution import (
    ROUNDING,
    Certified,
    Point,
    PSDSolution,
    PSDSolver,
    Record,
    Start,
    feasible,
    point_of,
    total,
)
from fenchel.positive._system import Curvature, NewtonSystem, apply_blocks, inverse_blocks
from fenchel.positive._trace_alone import solve_trace_alone
from fenchel.positive.problem import PSDProblem
from fenchel.solvers import Callback
from fenchel.solvers.loop import Iterate

# Measured on 86 fits of all estimators with 40 to 300 rows, a third of them random data and
# strengths. Numbers are sums of Newton's and of proximal Newton's steps: 683 and 494 as it is. All
# fits converge unless said otherwise.
# share of the tolerance left to it: 699 with 0.001, 683 with 0.1, 668 with 1; and where the prox
# goes on: 524, 494 and 674
_LAST, _LAST_PROX = 0.5, 0.1
_ROUGH = 1e-4  # a tolerance that does not need the kinks
_PATIENCE = 20  # steps of the prox in which the gap must halve
_REFINEMENTS = 2  # of a Newton step without conditions: those of pinball losses need them
_REFINED = 1e-12  # share of the squared residual of a step that is left alone
# share of a dual point with kinks where a barrier begins: within the unit of its gap, and beyond
_INSIDE, _FAR_INSIDE = 0.95, 0.65  # 1590 steps of a search of 90 fits with 0.95 for both
# The proximal step over the natural step of the loss, and by what it is multiplied after a full
# step, a shortened one, and one that fails; proximal Newton's steps only.
_FIRST_PROX = 3.0  # 532 with 0.1, 597 with 100
_LONGER = 5.0  # 480 with 2, 575 with 10, 753 with 30
_SHORTER = 0.7  # 476 with 0.5, 511 with 0.9
_RETREAT = 0.1  # 509 with 0.01, 543 with 0.3
_LEAST_PROX, _LARGEST_PROX = 1e-6, 1e12
_HOLD = 1e-6  # what holds offsets in place: 493 with 1e-8, 564 with 1e-4; with 0.01 9 fits fail
_INNER = 1e-6  # share of the first slope where inner steps end: 628 with 1e-4, 451 with 1e-8


@dataclass(frozen=True)
class DualNewton(PSDSolver):
    """Damped Newton method on the dual, for losses with a smooth conjugate.

    If the conjugate is quadratic on a box, as for the pinball loss, a barrier makes it smooth. It
    decreases together with the barrier of the matrices.

    A step solves a linear system in the directions in which the squared negative part of the
    matrices has curvature, about rank(A) times the number of features, or in the rows if there are
    fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import DualNewton, Poisson, PSDPart, PSDProblem
    >>> part = PSDPart(np.array([[1.0, 0.0], [1.0, 1.0]]), alpha=1e-3)
    >>> problem = PSDProblem(Poisson([1, 4]), [part], np.ones(2))
    >>> DualNewton(tol=1e-8).solve(problem).status.converged
    True
    """

    tol: float = 1e-6
    max_iter: int = 100

    def requires(self, problem: PSDProblem) -> str | None:
        """Return None if the solver applies to this problem, else a sentence with the reason."""
        if not problem.loss.smooth and problem.loss.interior(1.0) is None:
            return (
                f"needs a conjugate with derivatives, which {type(problem.loss).__name__} lacks; "
                "solver='proximal_newton' takes any loss"
            )
        return None

    def _joint(self, problem: PSDProblem) -> bool:
        return bool(problem.cone.equality.all())

    def _iterates(self, record: Record, warm_start: Start | None) -> Generator[Iterate[Certified]]:
        problem, joint = record.problem, record.joint
        path, point = begin(record, warm_start, _LAST)
        offset = np.zeros(problem.outward.shape[1])
        if warm_start is not None and not warm_start.barrier > 0.0:
            yield Iterate(0, record.certified(point, offset))  # a solution of this problem, maybe
        if not problem.loss.smooth:
            nu = point.spectra.multipliers
            inside = _INSIDE if path.barrier < path.unit else _FAR_INSIDE
            push = point.push.moved(point.push, inside - 1.0)
            point = point_of(problem, inside * point.dual, push, nu, path.barrier, joint)
        if np.isfinite(record.loop.seconds_left):  # what comes now may take longer than steps
            yield Iterate(0, record.certified(point, offset))
            if record.loop.in_time(lambda: problem.squares) is None:
                return
        eased, point = path.eased(point)
        rows = RowSteps.of(problem)
        decrease, step, first = np.inf, 0, 0 if warm_start is None else -1  # certified already
        while True:
            worth = record.worth(path.barrier)
            known = not (decrease > worth and first < step < self.max_iter)
            if known:
                true = replace(point, conjugates=problem.conjugates(point.dual))
                found = record.certified(true, offset, given=step > 0)
                yield Iterate(step, found)
                if step == self.max_iter:
                    return
            if rows is not None:
                worth, most = max(worth, path.enough), self.max_iter - step
                done, moved, offset, decrease = rows.advance(eased, point, worth, most)
                step += done
            else:
                if known:
                    z = found.predictions - problem.outward @ found.model.offset
                else:
                    z = problem.values(point.push, point.spectra)
                towards = partial(self._direction, eased, point, z)
                if (direction := record.loop.in_time(towards)) is None:
                    return
                change, offset, decrease, turn = direction
                # how far from the centre a point is, the whole step says: a shortened one gains
                # little near the border, and would shrink the barrier too early
                share = eased.loss.reach(point.dual, change)
                change, turn = share * change, share * turn
                moved = _walk(eased, point, change, share * decrease, turn if joint else None)
                step += 1
            if moved is None and path.ended:  # rounding: what is left is how good it gets
                true = replace(point, conjugates=problem.conjugates(point.dual))
                yield Iterate(step, record.certified(true, offset))
                return
            point = point if moved is None else moved
            if moved is None or decrease < path.enough:
                eased, point = path.eased(path.shrunk(point, joint))

    def _direction(
        self, problem: PSDProblem, point: Point, z: FloatArray
    ) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        slope, hessian = problem.loss.conjugate_derivatives(point.dual)
        if hessian.ndim == 2 and takes_rows(problem):
            rest = z - slope
            change, offset = RowSystem(problem, point.spectra, hessian).solve(rest, point.dual)
            decrease = float(np.vdot(problem.weight[:, None] * rest, change))
            return change, offset, decrease, np.zeros(0)
        inverse = inverse_blocks(hessian)
        weight = problem.weight
        blocks = weight.reshape(-1, *[1] * (inverse.ndim - 1)) * inverse
        curvature = Curvature(problem, point.spectra, blocks)
        system = system_of(curvature, np.arange(len(weight)), blocks, 0.0)
        miss = problem.cone.right - point.spectra.attained
        missing, rest, outward = curvature.missing(miss), z - slope, problem.outward
        change, offset = np.zeros_like(rest), np.zeros(outward.shape[1])
        change_nu, least = np.zeros(len(miss)), np.inf
        enough = _REFINED * _squared(weight, rest, inverse)
        for _ in range(1 if len(miss) else 1 + _REFINEMENTS):
            free = apply_blocks(inverse, rest)
            balance = -outward.T @ (weight @ (free + point.dual + change))
            w, more, turn = system.solve(curvature.pull(free), balance, missing)
            step = free + apply_blocks(inverse, outward @ more - curvature.predict(w))
            rest = z - slope + outward @ (offset + more) - apply_blocks(hessian, change + step)
            rest -= curvature.predict(curvature.pull(change + step))
            left = _squared(weight, rest, inverse)
            if least < np.inf and not left < least:  # rounding is larger than what is refined
                break
            change, offset, least = change + step, offset + more, left
            change_nu += curvature.multipliers(turn)
            if left <= enough:
                break
        decrease = float(np.vdot(weight[:, None] * (z - slope), change))
        return change, offset, decrease - float(miss @ change_nu), change_nu


def _squared(weight: FloatArray, rest: FloatArray, inverse: FloatArray) -> float:
    return float(weight @ np.einsum("ij,ij->i", rest, apply_blocks(inverse, rest)))


@dataclass(frozen=True)
class ProximalNewton(PSDSolver):
    """Proximal Newton method on the dual, for any loss.

    The part of the dual that is not a sum over rows is replaced by its quadratic model, and a
    proximal term is added. The result is the problem of a linear model whose features are the
    columns of the Hessian's factor. It is solved in the weights by a semismooth Newton method,
    with the prox of the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Absolute
    >>> from fenchel.positive import ProximalNewton, PSDPart, PSDProblem, Residual
    >>> loss = Residual(Absolute(), np.array([[1.0], [4.0]]))
    >>> part = PSDPart(np.array([[1.0, 0.0], [1.0, 1.0]]), alpha=1e-3)
    >>> ProximalNewton().solve(PSDProblem(loss, [part], np.ones(2))).status.converged
    True
    """

    tol: float = 1e-6
    max_iter: int = 200
    inner_iter: int = 30

    def _iterates(self, record: Record, warm_start: Start | None) -> Generator[Iterate[Certified]]:
        problem = record.problem
        path, point = begin(record, warm_start, _LAST_PROX)
        offset = np.zeros(problem.outward.shape[1])
        sigma = _FIRST_PROX * problem.loss.step
        for step in range(self.max_iter + 1):
            found = record.certified(point, offset)
            yield Iterate(step, found)
            if step == self.max_iter:
                return
            offset = found.model.offset
            z = found.predictions - problem.outward @ offset
            towards = partial(_proposed, problem, point, z, sigma, offset, self.inner_iter)
            if (proposed := record.loop.in_time(towards)) is None:
                return
            change, offset, decrease = proposed
            moved = _walk(problem, point, change, decrease)
            if moved is None:
                sigma *= _RETREAT
                if sigma < _LEAST_PROX * problem.loss.step:
                    if path.ended:
                        return
                    sigma = problem.loss.step
                    point = path.shrunk(point, joint=False)
                continue
            full = bool(np.array_equal(moved.dual, point.dual + change))
            sigma *= _LONGER if full else _SHORTER
            sigma = min(sigma, _LARGEST_PROX * problem.loss.step)
            point = moved
            if decrease < path.enough:
                point = path.shrunk(point, joint=False)


@dataclass(frozen=True)
class BarrierFirst(ProximalNewton):
    """A barrier method for the first iterations, followed by proximal Newton.

    The barrier method is several times faster to a rough solution. Proximal Newton reaches the
    kinks of the loss exactly. If it makes no progress, as with nearly contradictory conditions,
    the barrier method continues.
    """

    def _joint(self, problem: PSDProblem) -> bool:
        return self._barrier()._joint(problem)

    def _barrier(self) -> DualNewton:
        return DualNewton(self.tol, self.max_iter)

    def _iterates(self, record: Record, warm_start: Start | None) -> Generator[Iterate[Certified]]:
        if warm_start is not None and self.tol < _ROUGH:  # what is precise already stays so
            yield from super()._iterates(record, warm_start)
            return
        joint, done, others = record.joint, 0, 0
        with closing(self._barrier()._iterates(record, warm_start)) as barrier:
            for step, found in barrier:
                done = others + step
                yield Iterate(done, found)
                if done >= self.max_iter:
                    return
                if record.loop.gap <= _ROUGH and not others:
                    others = (yield from self._at_kinks(record, done, _PATIENCE)) - done
                    record.joint = joint
                if record.loop.stopped:
                    return
        yield from self._at_kinks(record, done, self.max_iter)

    def _at_kinks(
        self, record: Record, done: int, patience: int
    ) -> Generator[Iterate[Certified], None, int]:
        """The prox from the best point on, as long as the gap halves; returns all steps."""
        best, before, count = record.loop.best, record.loop.gap, done
        if best is None or done >= self.max_iter:
            return done
        start = Start(best.point.dual, best.point.spectra.multipliers)
        record.joint = False
        rest = replace(self, max_iter=self.max_iter - done)
        with closing(ProximalNewton._iterates(rest, record, start)) as last:
            for step, found in last:
                count = done + step
                yield Iterate(count, found)
                if step and step % patience == 0:
                    if record.loop.gap > 0.5 * before:
                        break
                    before = record.loop.gap
        return count


def _proposed(
    problem: PSDProblem, point: Point, z: FloatArray, sigma: float, offset: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, float]:
    """The step to the solution of the model around a point: change, offsets, and its gain."""
    model = _Model(problem, point, z, sigma)
    dual, offset = model.solve(offset, steps)
    change = feasible(problem, dual) - point.dual
    return change, offset, model.decrease(change)


class _Model:
    """The quadratic model around a point, in the weights w of its features and offsets b."""

    def __init__(self, problem: PSDProblem, point: Point, z: FloatArray, sigma: float) -> None:
        self.problem, self.z, self.sigma, self.anchor = problem, z, sigma, point.dual
        broad = np.broadcast_to(sigma * problem.weight[:, None], z.shape)
        if problem.loss.conjugate_prox_jacobian(point.dual + sigma * z, sigma).ndim > 2:
            broad = broad[:, :, None] * np.eye(z.shape[1])  # of coupled outputs
        self.curvature = Curvature(problem, point.spectra, broad)
        self.grams = RowGrams(self.curvature)
        self.pulled = self.curvature.pull(point.dual)

    def evaluate(
        self, w: FloatArray, qw: FloatArray, b: FloatArray, b0: FloatArray, rho: float
    ) -> tuple[float, FloatArray]:
        """Value and dual point."""
        problem, sigma = self.problem, self.sigma
        u = self.z + problem.outward @ b - qw
        x = problem.loss.conjugate_prox(self.anchor + sigma * u, sigma)
        move = x - self.anchor
        rows = np.einsum("ij,ij->i", x, u) - problem.loss.conjugate(x)
        rows -= np.einsum("ij,ij->i", move, move) / (2.0 * sigma)
        rows += np.einsum("ij,ij->i", self.anchor, qw)
        value = 0.5 * float(w @ w) + float(problem.weight @ rows)
        return value + 0.5 * rho * float((b - b0) @ (b - b0)), x

    def solve(self, b0: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
        """Semismooth Newton with backtracking."""
        problem, curvature, sigma = self.problem, self.curvature, self.sigma
        weight = problem.weight
        w, b = np.zeros(curvature.width), b0.copy()
        qw = np.zeros_like(self.z)
        rho = _HOLD * min(sigma, problem.loss.step)  # a large one would hold the offsets
        value, x = self.evaluate(w, qw, b, b0, rho)
        first = None
        for _ in range(steps):
            check_time()
            gradient = w - curvature.pull(x) + self.pulled
            gradient -= curvature.rows.T @ (curvature.rows @ gradient)
            slope_b = problem.outward.T @ (weight @ x) + rho * (b - b0)
            point = self.anchor + sigma * (self.z + problem.outward @ b - qw)
            jacobian = problem.loss.conjugate_prox_jacobian(point, sigma)
            active = np.flatnonzero(jacobian.reshape(len(jacobian), -1).any(axis=1))
            broad = (sigma * weight[active]).reshape(-1, *[1] * (jacobian.ndim - 1))
            blocks = broad * jacobian[active]
            system: NewtonSystem
            if SampledSystem.pays(curvature, int(np.count_nonzero(jacobian))):
                system = SampledSystem(curvature, active, blocks, rho)
            elif self.grams.smaller(jacobian):
                system = KinkSystem(self.grams, sigma * weight[:, None] * jacobian, rho)
            else:
                system = NewtonSystem(curvature, active, blocks, rho)
            dw, db, _ = system.solve(-gradient, -slope_b)
            slope = float(gradient @ dw + slope_b @ db)
            first = slope if first is None else first
            if -slope <= 1e-16 * (abs(value) + 1e-300):
                break
            dq = curvature.predict(dw)
            size = 1.0
            for _ in range(HALVINGS):
                trial, tx = self.evaluate(w + size * dw, qw + size * dq, b + size * db, b0, rho)
                if trial <= value + ARMIJO * size * slope + ROUNDING * abs(value):
                    break
                size *= 0.5
            else:
                break
            w, qw, b, value, x = w + size * dw, qw + size * dq, b + size * db, trial, tx
            if slope >= _INNER * first:
                break
        return x, b

    def decrease(self, change: FloatArray) -> float:
        """By how much the model says that a change lowers minus the dual: a positive number."""
        problem = self.problem
        before = problem.conjugates(self.anchor)
        after = problem.conjugates(self.anchor + change)
        earned = float(np.vdot(problem.weight[:, None] * self.z, change))
        return earned - (after - before)


def _walk(
    problem: PSDProblem,
    point: Point,
    change: FloatArray,
    decrease: float,
    turn: FloatArray | None = None,
) -> Point | None:
    """Backtrack along a change of the dual until minus the dual falls; None if it never does.

    Multipliers move by ``turn``, or are maximized out where it is None.
    """
    push, spectra = problem.push(change), point.spectra
    value = total(problem, point)
    size, rounding = 1.0, ROUNDING * max(abs(value), abs(point.conjugates), problem.loss.unit)
    if not decrease > -rounding:
        return None
    for _ in range(HALVINGS):
        dual = point.dual + size * change
        known = problem.conjugates(dual)
        if np.isfinite(known):
            moved = point.push.moved(push, size)
            nu = spectra.multipliers if turn is None else spectra.multipliers + size * turn
            joint = turn is not None
            trial = point_of(problem, dual, moved, nu, spectra.barrier, joint, known)
            if total(problem, trial) <= value - ARMIJO * size * decrease + rounding:
                return trial
        size *= 0.5
    return None


SOLVERS: dict[str, Any] = {
    "newton": DualNewton,
    "proximal_newton": ProximalNewton,
    "fista": DualFista,
}
SOLVER_CHOICE = OneOf(("auto",), SOLVERS) | Having("a solver", ("requires", "solve"))
"""Valid values of ``solver``."""


def make_solver(
    solver: str | PSDSolver, problem: PSDProblem, tol: float, max_iter: int
) -> PSDSolver:
    """Return the solver of this name; "auto" chooses by the loss and the penalties."""
    SOLVER_CHOICE(solver, "solver")
    if not isinstance(solver, str):
        return solver
    if solver == "auto":
        barrier = not problem.loss.smooth and problem.loss.interior(1.0) is not None
        if barrier and not problem.of_traces_alone:  # the prox is slow where alpha is tiny
            return BarrierFirst(tol=tol, max_iter=max_iter)
        solver = "newton" if problem.loss.smooth or barrier else "proximal_newton"
    made: PSDSolver = SOLVERS[solver](tol=tol, max_iter=max_iter)
    return made


def solve(
    problem: PSDProblem,
    solver: str | PSDSolver = "auto",
    tol: float = 1e-6,
    max_iter: int = 200,
    warm_start: Start | None = None,
    callback: Callback | None = None,
) -> PSDSolution:
    """Solve a problem to a relative duality gap.

    Parameters
    ----------
    problem : PSDProblem
        The problem. Matrices with alpha=0 are supported too.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        Name of the solver, or a solver with its own ``tol`` and ``max_iter``.
    tol : float, default=1e-6
        Duality gap to reach, relative to ``problem.loss.unit``.
    max_iter : int, default=200
        Maximum number of iterations.
    warm_start : Start, optional
        Dual point of a similar problem to start from.
    callback : callable, optional
        As in :class:`fenchel.QuantileRegressor`.

    Returns
    -------
    PSDSolution
        Best model found, with its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> from fenchel.positive import PSDPart, PSDProblem, Residual, solve
    >>> loss = Residual(Squared(), np.array([[1.0], [4.0]]))
    >>> part = PSDPart(np.array([[1.0, 0.0], [1.0, 1.0]]), alpha=1e-3)
    >>> solve(PSDProblem(loss, [part], np.ones(2)), tol=1e-8).status.converged
    True
    """
    chosen: Any = make_solver(solver, problem, tol, max_iter)
    with threads_that_pay(max(problem.cone.sizes)):
        if not problem.of_traces_alone:
            found: PSDSolution = chosen.solve(problem, warm_start, callback)
            return found

        def smoothed(near: PSDProblem, finer: float, start: Start | None) -> PSDSolution:
            solution = replace(chosen, tol=finer).solve(near, start or warm_start, callback)
            return cast(PSDSolution, solution)

        return solve_trace_alone(problem, smoothed, chosen.tol)
