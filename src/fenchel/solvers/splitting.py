"""Splitting in the two eigenbases of a decomposable kernel, for many coupled outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import ClassVar, Self

import numpy as np

from fenchel._compiling import ORDER_IS_FREE, njit
from fenchel._memory import empty, reused_memory
from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade, Number, declared
from fenchel.certificate import Callback, Certified
from fenchel.design import Operator
from fenchel.problem import Problem
from fenchel.solvers.anderson import Anderson
from fenchel.solvers.base import Solution, WarmStart, solution_of
from fenchel.solvers.eigenbases import Eigenbases
from fenchel.solvers.fista import Fista
from fenchel.solvers.loop import Iterate, Loop, credible_gap
from fenchel.solvers.newton import Newton

# Evidence is the number of turns, and of certificates (each costs about a turn), on 695 random
# problems: 12 losses, 20 x 15 to 80 x 80 numbers, alpha from 1e-6 to 0.1, a third with gaps. Where
# nothing else is said, half and twice the value change the geometric mean by less than 2 %.
_FIRST_CHECK = 2  # turn of the first certificate; 5 is alike, 10 costs 8 % more
_FIRST_WARM = 1  # the same from a start: a third of the fits of paths are done there
_WAIT, _LONGEST_WAIT = 3, 10  # turns between certificates: half of those so far, within these.
# 10 for both costs as much on 540 problems of curves, two thirds of them from a start, to 1 %, but
# 37 % more turns along the paths of a search to a gap of 1e-2. More than 10 saves 1 %
_GOAL = 2.0  # of the step that should reach the tolerance; 1 saves 4 %, but not along paths
_BALANCE_AT = (3, 10, 25, 60, 120, 240)  # turns; later by two saves 5 %, but not for easy fits;
# without any of them hard problems take ten times as long
_RELAXATION = 1.6  # 1 costs 3 % more, and 1.8 made some problems ten times slower. The first step
# is without it, before there is anything to extrapolate from: of seven losses on 20 problems
# of curves, Huber losses take 4 and 9 % less from nothing, others from 6 % less to 5 % more
_SHIFTS = (0.3, 1e6)  # limits of ρ in units of the curvature: they hardly ever matter
_SHIFT = 0.5  # of the ratio of gradient and point; half of it costs 6 % more
_SHIFT_POWER = 0.6  # of that where the loss bounds every coordinate; 1 costs 5 % more
_SHIFT_SHARE = 0.3  # of the ratio that is left at least: nearly interpolating curves, which were
# not among the problems, take a third to a sixth of the turns; 1 costs 13 % more for the others
_SHIFT_WITH_ZEROS = 2.0  # times that for smooth losses with exact zeros; 1 costs 20 % more, 4 10 %
_SHIFT_OF_LENGTHS = 1.7  # times that where a smooth loss bounds the lengths of rows alone, on 24
# problems of curves: 1 costs 6 % more turns, and 11 % along paths of 12 thresholds; 3 11 and 13 %
_WORTH_A_NEW_SHIFT = 1.5  # factor; 3 saves 7 %, but costs a half more for easy fits
_CHECK = 5  # steps of gradients where time is short: certificates are of no cost beside five
_PATIENT = 500  # limits from which on half of the turns are enough to see that more will not do
_KINKED = 0.1  # of the curvature of losses without any: 1 doubles the turns of absolute values


@dataclass(frozen=True)
class Splitting(CheckedWhenMade):
    r"""Douglas-Rachford splitting in the two eigenbases, with Anderson acceleration.

    The method alternates two exact steps. One minimizes the quadratic part of the dual, in the
    eigenbases of the kernel of the rows and of the output matrix. The other is the prox of the
    loss. A few dozen iterations suffice where gradient methods need a thousand, because the
    conditioning of the kernels has no effect. The weight ρ between the parts balances their
    gradients. The fixed point is extrapolated from the last ten iterations. The primal model may
    come from the point of the quadratic step, whose function is less sensitive. The point of the
    prox has the exact zeros.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of iterations.
    small : int
        Maximum number of dual variables for which Newton's method continues if half of
        ``max_iter``, and at least 250 iterations, were not enough. If nearly all variables are
        at a bound, extrapolation may cycle, and Newton's method needs only a few steps.

    References
    ----------
    Eckstein, Bertsekas (1992); Walker, Ni (2011) for the extrapolation.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import Splitting
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, fit_intercept=False, solver=Splitting())
    >>> model.fit(X, y).status_.converged
    True
    """

    constraints = declared(small=Number(0, integer=True))

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000
    small: int = 4096

    def requires(self, problem: Problem) -> str | None:
        """Return None for decomposable kernels without intercept; outputs may be masked."""
        design = problem.design
        if design.coupling is None:
            return Operator.refusal
        if problem.fit_intercept:
            return "needs fit_intercept=False; solver='newton' takes both"
        if design.mask is not None and not np.all((design.mask == 0.0) | (design.mask == 1.0)):
            return "needs the same weights of the outputs in all rows; solver='fista' takes any"
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Iterate until the gap is small."""
        with reused_memory():
            return self._solved(problem, warm_start, callback)

    def _solved(
        self, problem: Problem, warm_start: WarmStart | None, callback: Callback | None
    ) -> Solution:
        loop: Loop[Certified] = Loop(self.tol, callback)
        few = problem.n_rows * problem.n_outputs <= self.small and self.max_iter >= _PATIENT
        limit = self.max_iter // 2 if few else self.max_iter
        turns = _Turns(replace(self, max_iter=limit), problem, loop)
        best = loop.run(turns.iterates(warm_start))
        if turns.too_long:
            return Fista(self.tol, check=_CHECK).solve(problem, warm_start, callback)
        if few and not loop.reached and not loop.stopped:
            start = WarmStart(best.dual, best.offset, problem.alpha)
            newton = Newton(self.tol, self.max_iter - limit).solve(problem, start, loop=loop)
            return replace(newton, n_iter=newton.n_iter + limit)
        status = loop.status("increase max_iter, alpha or tol", "turns")
        return solution_of(loop, status, None, turns.nearby, turns.nearby_values)


class _Both:
    """A point (n, p) and its coordinates in one vector, to be extrapolated together."""

    def __init__(self, flat: FloatArray, shape: tuple[int, ...], bases: Eigenbases) -> None:
        size = flat.size - prod(bases.shape)
        self.flat = flat
        self.values, self.inside = flat[:size].reshape(shape), flat[size:].reshape(bases.shape)

    @classmethod
    def empty(cls, shape: tuple[int, ...], bases: Eigenbases) -> Self:
        return cls(empty((prod(shape) + prod(bases.shape),)), shape, bases)


class _Turns:
    """The turns on one problem; ``nearby`` is the last point of the quadratic part.

    ``inside`` are its coordinates, where they are precise enough to stand for its function.
    """

    def __init__(self, solver: Splitting, problem: Problem, loop: Loop[Certified]) -> None:
        self.solver, self.problem, self.loop = solver, problem, loop
        self.too_long = False
        """Whether the eigenbases would take longer than there is time."""
        self.unit = typical_curvature(problem)
        self.nearby: FloatArray | None = None
        self.nearby_values: FloatArray | None = None
        self.inside: FloatArray | None = None

    def iterates(self, warm_start: WarmStart | None) -> Iterator[Iterate[Certified]]:
        """Yield certified points."""
        problem, loss, limit = self.problem, self.problem.loss, self.solver.max_iter
        yield Iterate(0, problem.constant())
        bases = self.loop.in_time(self._bases)
        if bases is None:
            self.too_long = True
            return
        root, known = bases.root, problem.design.mask is None and loss.cone is None
        rho, point, goal, waited = self._start(warm_start, bases)
        shape, turn = point.values.shape, Anderson(point.values.size, point.inside.size)
        inverse = 1.0 / root
        targets = np.multiply(root, problem.targets, out=empty(shape))  # one column may be for all
        moved, exact, work, smooth = True, 0, empty(shape), empty(shape)
        for iteration in range(1, limit + 1):
            state = point.values
            if moved:  # else they were extrapolated with the point
                np.divide(targets, rho, out=work)
                work += state
                bases.coordinates(work, out=point.inside)
                moved = False
            image, near = bases.image(point.inside, rho)
            _half_step(state, targets, image, inverse, rho, smooth, work)
            np.subtract(point.inside, near, out=near)
            dual = self._prox(work, rho)
            step = _Both.empty(shape, bases)
            np.multiply(root, dual, out=work)
            inside = bases.coordinates(work, out=empty(bases.shape))
            length = sqrt(_apart(work, smooth, _RELAXATION, step.values))
            _apart(inside, near, _RELAXATION, step.inside)
            waited += 1
            if length <= goal or waited >= _wait(iteration) or iteration == limit:
                self.nearby = np.multiply(inverse, smooth, out=empty(shape))
                due = iteration >= exact + _LONGEST_WAIT or iteration == limit
                if known:  # by the condition of optimality of the quadratic part
                    self.nearby_values = np.multiply(rho * inverse, image, out=image)
                found: Certified | None
                self.inside = near if known and bases.exact(rho, self.solver.tol) else None
                if due or not known or self.loop.callback is not None:
                    found, gap = self._judged(dual, bases)
                else:
                    found, gap = self._judged_inside(dual, bases, inside)
                if found is not None:
                    exact = iteration
                    yield Iterate(iteration, found)
                # gaps fall like the square of steps
                goal, waited = _GOAL * length * np.sqrt(self.solver.tol / gap), 0
            if iteration in _BALANCE_AT:
                new = self._shift(rho * (state - smooth), work)
                if max(new / rho, rho / new) > _WORTH_A_NEW_SHIFT:
                    turn.forget()
                    state -= smooth
                    state *= rho / new
                    state += smooth
                    rho, moved = new, True
                    continue
            following = turn(point.flat, step.flat, length)
            if iteration == 1:
                np.divide(step.flat, _RELAXATION, out=following)
                following += point.flat
            point = _Both(following, shape, bases)

    def _prox(self, work: FloatArray, rho: float) -> FloatArray:
        """Point of the prox of the loss, in memory of its own."""
        if self.problem.design.mask is not None:
            work *= self.problem.design.mask
        dual = self.problem.loss.conjugate_prox(work, 1.0 / rho)
        # a prox may return what it was given
        return dual.copy() if np.may_share_memory(dual, work) else dual

    def _bases(self) -> Eigenbases:
        least = 0.1 * _SHIFTS[0] * np.finfo(float).eps
        return Eigenbases(self.problem, self.unit, self.solver.tol, least)

    def _start(
        self, warm_start: WarmStart | None, bases: Eigenbases
    ) -> tuple[float, _Both, float, int]:
        """Weight ρ, state, length of steps to wait for, and turns waited."""
        problem, root = self.problem, bases.root
        point = _Both.empty((problem.n_rows, problem.n_outputs), bases)
        state = point.values
        if warm_start is None:
            scaled = np.multiply(root, problem.targets, out=empty(state.shape))
            np.subtract(scaled, bases.image(bases.coordinates(scaled), self.unit)[0], out=state)
            state /= self.unit
            return self.unit, point, 0.0, _WAIT - _FIRST_CHECK
        start, values = warm_start.dual, warm_start.values
        if values is None:
            values = problem.design.values(problem.link(start))
        near = problem.loss.conjugate_prox(start, np.finfo(float).tiny)
        slope = np.subtract(values, problem.targets, out=empty(state.shape))
        slope *= root
        rho = self._shift(slope, np.multiply(root, near, out=state))
        slope /= rho
        np.multiply(root, start, out=state)
        state += slope
        return rho, point, 0.0, _WAIT - _FIRST_WARM

    def _judged_inside(
        self, dual: FloatArray, bases: Eigenbases, inside: FloatArray
    ) -> tuple[Certified | None, float]:
        """Certificate of a dual point with the model of the quadratic part, or None; the gap.

        The values of that model are known, and the norm of the other's function in the bases:
        a gap above the tolerance takes no product, and there is no certificate of it.
        """
        problem, tol = self.problem, self.solver.tol
        primal = self._objective()
        earned, square = problem.earned(dual), bases.square(inside)
        gap = credible_gap(problem.certificate(primal, earned - problem.paid(square), dual))
        if tol < gap < np.inf:
            return None, gap
        rest = None if self.inside is None else bases.rest(bases.root * dual)
        lower = problem.dual(dual) if rest is None else earned - problem.paid(square + rest)
        found = self._with_nearby(dual, lower, bases, primal)
        if not 0.0 <= found.certificate.relative_gap <= tol:  # of zero up to rounding, mostly
            return self._judged(dual, bases)
        return found, found.certificate.relative_gap

    def _judged(self, dual: FloatArray, bases: Eigenbases) -> tuple[Certified, float]:
        """Certificate of a dual point, with its own model or that of the quadratic part."""
        problem, tol = self.problem, self.solver.tol
        found = problem.certify(dual)
        if found.certificate.relative_gap > tol:
            other = self._with_nearby(found.dual, found.certificate.dual, bases)
            found = problem.best_of(found, other)
        return found, credible_gap(found.certificate)

    def _objective(self) -> float:
        """Objective of the model of the quadratic part, up to rounding of its coordinates."""
        assert self.nearby is not None
        assert self.nearby_values is not None
        return self.problem.estimate(self.nearby, self.nearby_values)

    def _with_nearby(
        self, dual: FloatArray, lower: float, bases: Eigenbases, primal: float | None = None
    ) -> Certified:
        """A dual point with its objective and the model of the quadratic part.

        Without what the bases leave out, where its values are those that are known; ``primal``
        is its objective, if that is known too.
        """
        problem = self.problem
        assert self.nearby is not None
        if self.inside is None:
            return problem.with_model(dual, lower, self.nearby)
        assert self.nearby_values is not None
        primal = self._objective() if primal is None else primal
        certificate = problem.certificate(primal, lower, dual)
        weights, offset = bases.weights(self.inside), np.zeros(problem.n_outputs)
        problem.design.remember(weights, self.nearby_values)
        return Certified(dual, weights, offset, certificate)

    def _shift(self, slope: FloatArray, dual: FloatArray) -> float:
        """The weight ρ of the splitting, from the gradient of the quadratic part and the point.

        A power of their ratio, which exaggerates where the loss bounds every coordinate.
        """
        size = max(float(np.linalg.norm(dual)), 1e-300) * self.unit
        ratio = _SHIFT * float(np.linalg.norm(slope)) / size
        loss = self.problem.loss
        if loss.bounded:
            ratio = max(ratio**_SHIFT_POWER, _SHIFT_SHARE * ratio)
        elif np.isfinite(loss.smoothness):
            if loss.epsilon > 0.0:
                ratio *= _SHIFT_WITH_ZEROS
            elif loss.radial and np.isfinite(loss.lipschitz):
                ratio *= _SHIFT_OF_LENGTHS
        return self.unit * float(np.clip(ratio, *_SHIFTS))


def _wait(iteration: int) -> int:
    """Turns between two certificates."""
    return min(max(iteration // 2, _WAIT), _LONGEST_WAIT)


def typical_curvature(problem: Problem) -> float:
    """Curvature of the conjugate near the solution: 1 for the squared loss.

    For smooth losses it is that of the loss. Otherwise it is that of the squared loss that is as
    large for the best constant.
    """
    smoothness = problem.loss.smoothness
    if np.isfinite(smoothness) and smoothness > 0.0:
        return 1.0 / float(smoothness)
    residual = problem.targets - problem.best_constant
    squares = np.einsum("ij,ij->i", residual, residual)
    spread = problem.alpha * float(problem.weight @ squares)
    unit = _KINKED * spread / (2.0 * problem.baseline) if problem.baseline > 0.0 else 0.0
    return unit if unit > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _half_step(
    state: FloatArray,
    targets: FloatArray,
    image: FloatArray,
    inverse: FloatArray,
    rho: float,
    smooth: FloatArray,
    reflected: FloatArray,
) -> None:
    """The point of the quadratic part, and the state reflected at it, over √c: for the prox."""
    n, p = state.shape
    for i in range(n):
        for j in range(p):
            move = targets[i, j] / rho - image[i, j]
            smooth[i, j] = state[i, j] + move
            reflected[i, j] = (state[i, j] + 2.0 * move) * inverse[i, 0]


@njit(cache=True, nogil=True, fastmath=ORDER_IS_FREE)
def _apart(one: FloatArray, other: FloatArray, scale: float, found: FloatArray) -> float:
    """Write scaled differences; return the sum of squares of the differences."""
    n, p = found.shape
    total = 0.0
    for i in range(n):
        for j in range(p):
            apart = one[i, j] - other[i, j]
            found[i, j] = scale * apart
            total += apart * apart
    return total
