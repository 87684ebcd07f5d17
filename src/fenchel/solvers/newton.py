"""Semismooth Newton on the augmented Lagrangian: the main solver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from fenchel._memory import reused_memory
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified, FeasiblePoint
from fenchel.losses import Box
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, WarmStart, solution_of, start_of, threads_for
from fenchel.solvers.loop import InTime, Iterate, Loop
from fenchel.solvers.newton_inner import Inner, Point, Scale
from fenchel.solvers.newton_spaces import Function, choose_space

_FIRST_STEP = 20.0  # in units of mean loss / spread²: kinks within 1/20 of the spread of y
_FEW = 5.0  # outputs that move as one with the same step: 5 levels take one certificate less
_GROWTH = 4.0
_SHRINKAGE, _MOST_SHRINKS = 16.0, 8
"""With these, a hundred random fits with penalties from 1e-2 to 1e-9 took 2234 Newton steps, and
4997 without. With 4 or 64 in place of 16 there were some more."""
_PATIENCE = 6  # steps of the outer loop without a better gap
_COARSE_ROWS = 50_000
_ROUNDED = (
    "rounding errors allow no better; increase alpha, or rescale the features if the values of "
    "the kernel are huge"
)
_LOW_RANK_TOL = 1e-2
_SOME = 1024  # rows and outputs, as many as a system that takes a tenth of a second
_TOL, _STEPS = 1e-2, 20  # which take less than a second whatever the strength
_NEAR_BOUND = 1e-6  # of the room between bounds: as near to one, a coordinate is put on it
_MOST_COARSE_ROWS = 2**18  # which are in memory, wherever the others are
_COARSE_TOL = 1e-4
_COARSE_STEP = 18.0


@dataclass(frozen=True)
class Newton(CheckedWhenMade):
    r"""Proximal point method on the dual, with each step solved in the primal by Newton's method.

    Given dual vectors :math:`\beta^k` and a step t, minimize over (V, b)

    .. math:: \Psi(V, b) = \tfrac12 \|V\|_F^2 + \tfrac{\rho}{2} \|b - b^k\|^2
        + \sum_i c_i \max_\beta \left[\langle \beta, r_i \rangle - \ell^*(\beta)
        - \tfrac{1}{2t} \|\beta - \beta_i^k\|^2\right],
        \quad r_i = y_i - S V^\top \varphi_i - b,

    which is convex with a continuous gradient. The maximizers are the next dual vectors. Only rows
    at a kink enter the Hessian. After each step, t is increased and ρ is decreased. If
    Newton's method makes short steps, t is decreased first. The solver stops when the certificate
    of a feasible dual point reaches ``tol``.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum total number of Newton steps.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import Newton
    >>> X, y = load_engel(return_X_y=True)
    >>> model = QuantileRegressor(0.9, learn=False, solver=Newton(tol=1e-9)).fit(X, y)
    >>> model.status_.converged
    True
    """

    takes_gram: ClassVar[bool] = True
    tol: float = 1e-6
    max_iter: int = 1000

    def requires(self, problem: Problem) -> str | None:
        """Return None: this solver takes any loss."""
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
        loop: Loop[Certified] | None = None,
    ) -> Solution:
        """Return the best certified point; see :class:`fenchel.solvers.base.Solver`.

        ``loop`` is a loop that has been started before this call, if any.
        """
        loop = Loop(self.tol, callback) if loop is None else loop
        with reused_memory(), threads_for(problem):
            if loop.best is None and warm_start is None:
                first_of_few(problem, loop)
            run = _Run(self, problem, loop)
            if not loop.stopped:
                if warm_start is None:
                    warm_start = low_rank_start(problem, loop)
                loop.run(run.iterates(warm_start))
            return run.finish()


def starts_from_some(problem: Problem) -> bool:
    """Whether there are so many rows that the method starts from a fit to some of them."""
    return problem.n_rows >= _COARSE_ROWS and not problem.design.by_rows


def _together(problem: Problem) -> float:
    """How many outputs move as one in units of ``_FEW``, and at least 1.

    It is 1 of them if they are independent, and p if they are the same function. The losses of as
    many add up in that function, so their kinks are to be as many times wider: else few are active
    at the start, and full steps lead far beyond where they hold.
    """
    together, coupling = float(problem.n_outputs), problem.design.coupling
    if together <= _FEW:  # whatever the coupling, whose norm takes long beside a small fit
        return 1.0
    if coupling is not None:
        largest = np.linalg.norm(coupling, 2) ** 2
        together = float(problem.n_outputs * largest / np.linalg.norm(coupling) ** 2)
    return max(1.0, together / _FEW)


class _Steps:
    """Steps t of the outer loop: they grow, and shrink where Newton's method gets stuck.

    With a weak penalty few rows are at a kink at the start, and nearly all are in the end: from
    step to step some of them come to theirs. With a small t all of them are at once.
    """

    def __init__(self, first: float) -> None:
        self.size = self._first = first
        self._good: float | None = None
        self._shrinks = 0

    @property
    def may_shrink(self) -> bool:
        """Whether it may shrink once more: above the first one, fits with a start would lose."""
        return self._shrinks < _MOST_SHRINKS and self.size <= self._first

    @property
    def are_large(self) -> bool:
        """Whether they are no smaller than the first."""
        return self.size >= self._first

    def shrink(self) -> None:
        """Take a smaller one, between the last one that was good, if any, and this one."""
        self._shrinks += 1
        if self._good is None:
            self.size /= _SHRINKAGE
        else:
            self.size = float(np.sqrt(self.size * self._good))

    def grow(self) -> None:
        """Take a larger one, as this one was good."""
        self._good = self.size
        self.size *= _GROWTH


class _Run:
    """The outer loop on one problem."""

    def __init__(self, solver: Newton, problem: Problem, loop: Loop[Certified]) -> None:
        self.solver, self.problem, self.loop = solver, problem, loop
        self.steps = 0
        self._last: tuple[Inner, Point, float] | None = None
        self._feasible: FeasiblePoint | None = None  # of the last point

    def iterates(self, warm_start: WarmStart | None) -> Iterator[Iterate[Certified]]:
        """Yield certified points; what remains to be said of the end is the loop's reason."""
        problem, tol = self.problem, self.solver.tol
        scale = Scale.of(problem)
        step = _FIRST_STEP * scale.step / _together(problem)
        ridge = 1e-7 * float(problem.weight.sum()) * scale.step
        space = choose_space(problem)
        dual, offset, first = start_of(problem, warm_start)
        yield Iterate(0, first)
        if starts_from_some(problem) and (warm_start is None or not dual.any()):
            weights, offset = self._coarse()
            function = Function(weights, weights)
            step *= _COARSE_STEP
        else:
            before = getattr(warm_start, "alpha", None) or problem.alpha
            function = space.start(first, problem.alpha / before)
        del first  # of many rows, each array is memory
        unit = problem.baseline / problem.alpha  # of Ψ, where the certificate has the mean loss
        stale, steps = 0, _Steps(step)
        while self.steps < self.solver.max_iter:
            self._last = self._feasible = None
            inner = Inner(problem, space, scale, dual, offset, steps.size, ridge)
            tolerance = 0.02 * unit * max(tol, 0.1 * min(self.loop.gap, 1e-3))
            try:
                budget = self.solver.max_iter - self.steps
                point, used, stuck = inner.minimize(
                    inner.at(function, offset), tolerance, budget, self.loop, steps.may_shrink
                )
            except np.linalg.LinAlgError:
                self.loop.reason = _ROUNDED
                return
            self.steps += used
            if stuck:
                steps.shrink()
                function, offset = point.function, point.offset
                continue
            self._last = inner, point, tolerance
            before_gap = self.loop.gap
            self._feasible = near = problem.feasible_point(point.dual)
            new = problem.with_offset(near, point.offset, space.weights(point.function))
            yield Iterate(self.steps, problem.best_of(new, self.loop.best))
            if steps.are_large:
                stale = 0 if self.loop.gap < before_gap else stale + 1
                ridge /= 10.0
            dual, function, offset = point.dual, point.function, point.offset
            del new, near, point
            steps.grow()
            if stale == _PATIENCE or not steps.size <= 1e18 * scale.step:
                self.loop.reason = _ROUNDED
                return
        self.loop.reason = f"max_iter={self.solver.max_iter} was reached; increase max_iter or tol"
        with suppress(NotImplementedError):  # designs need not know their diagonal
            size = float(problem.design.diagonal().mean())
            if problem.alpha < np.finfo(float).eps * scale.step * size:
                self.loop.reason = _ROUNDED

    def _coarse(self) -> tuple[FloatArray, FloatArray]:
        """Weights and offset of a sample of the rows, one of each part: near the solution."""
        n = self.problem.n_rows
        ends = np.linspace(0, n, min(n // 16, _MOST_COARSE_ROWS) + 1).astype(np.intp)
        sample = self.problem.subset(np.random.default_rng(0).integers(ends[:-1], ends[1:]))
        solution = Newton(tol=_COARSE_TOL, max_iter=self.solver.max_iter).solve(sample)
        return solution.weights, solution.offset

    def _tightened(self) -> Certified | None:
        """Solve more exactly until the model that the dual point stands for is good too.

        Its offset is exact where one is known. None if there is no such model.
        """
        if self._last is None or not self.loop.reached:
            return None
        problem, (inner, point, tolerance) = self.problem, self._last
        near = self._feasible
        for _ in range(8):
            near = problem.feasible_point(point.dual) if near is None else near
            linked = problem.with_offset(near, None if problem.separable else point.offset)
            near = None
            if linked.certificate.relative_gap <= self.solver.tol:
                return linked
            tolerance *= 1e-2
            try:
                point, used, _ = inner.minimize(point, tolerance, 50)
            except np.linalg.LinAlgError:
                break
            self.steps += used
            if used == 0:
                break
        return None

    def _settled(self, best: Certified) -> Certified:
        """The model of a dual point, if it is as good; the exact offset where one is known."""
        problem = self.problem
        enough = max(best.certificate.relative_gap, self.solver.tol)
        for offset in (None, best.offset) if problem.separable else (best.offset,):
            linked = problem.certify(best.dual, offset)
            if linked.certificate.relative_gap <= enough:
                return linked
        return best

    def finish(self) -> Solution:
        """Settle the model: that of the dual point, with the exact offset where one is known."""
        assert self.loop.best is not None
        linked = self._tightened()
        self._last = self._feasible = None
        if linked is None:
            linked = self._settled(self.loop.best)
        else:
            self.loop.best = linked
        self.loop.count = self.steps
        status = self.loop.status("", "steps", linked.certificate.relative_gap)
        return solution_of(self.loop, status, linked)


def low_rank_start(
    problem: Problem, loop: Loop[Certified], near: float = _NEAR_BOUND
) -> WarmStart | None:
    """Solve with a low-rank kernel for a warm start; coordinates near a bound are put there.

    For insensitive losses, coordinates near zero are set to zero. ``near`` is a share of the
    distance between two such values. Returns None if kernel values are stored, as they then cost
    no more than such features.
    """
    with threads_that_pay(0):  # small systems, and the same bits for any number of threads
        design = problem.design.low_rank()
        if design is None:
            return None
        few = replace(problem, design=design)
        solution = Newton(_LOW_RANK_TOL).solve(few, None, InTime(loop.callback))
    dual, box = solution.dual, problem.loss.box(problem.n_outputs)
    dual = dual if box is None else _on_ends(dual, box, near)
    return WarmStart(dual, solution.offset, problem.alpha)


def _on_ends(dual: FloatArray, box: Box, near: float) -> FloatArray:
    zero = np.zeros_like(box.lower)
    ends = (box.lower, zero, box.upper) if box.epsilon > 0.0 else (box.lower, box.upper)
    for low, high in pairwise(ends):
        room = high - low
        if np.all(np.isfinite(room)):
            within = (low <= dual) & (dual <= high)
            dual = np.where(within & (dual - low <= near * room), low, dual)
            dual = np.where(within & (high - dual <= near * room), high, dual)
    return dual


def of_few_rows(problem: Problem) -> Certified:
    """Fit a model to some of the rows, and certify it on all of them.

    The dual point is zero, so only kernel values with these rows are needed. The relative gap is
    the objective of the model divided by the mean loss of the best constant.

    Examples
    --------
    >>> from fenchel.solvers.newton import of_few_rows
    >>> from fenchel.testing import small_problems
    >>> of_few_rows(small_problems()[0]).certificate.dual
    0.0
    """
    n, p = problem.n_rows, problem.n_outputs
    size = min(n, max(_SOME // p, 1))
    rows = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    found = Newton(_TOL, _STEPS).solve(problem.subset(rows))
    weights = problem.design.from_subset(rows, found.weights)
    return problem.certify(np.zeros((n, p)), found.offset, weights)


def first_of_few(problem: Problem, loop: Loop[Certified]) -> bool:
    """Start a loop with a constant and a model of few rows if necessary; return whether it was.

    This is done if there is a time limit and a pass over all rows may take longer.
    """
    design = problem.design
    in_memory = design.is_gram or design.features is not None
    many = in_memory and problem.n_rows * problem.n_outputs >= 2 * _SOME
    if not (many and np.isfinite(loop.seconds_left)):
        return False
    constant = problem.constant()
    few = of_few_rows(problem)  # quantiles of few rows may be worse than constants
    loop.take(0, min(few, constant, key=lambda point: point.certificate.primal))
    return True
