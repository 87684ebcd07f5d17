r"""Fits for the kernel that was named, whatever features leave out of it.

Features φ span a part of the space of the kernel k, and E = k - φ·φ is a kernel too. A model
made of them is a function of the whole space with the same norm, so its primal objective is a
true one. A dual point β is feasible for either kernel, and with c its weights

.. math:: D_k(\beta) = D_\varphi(\beta)
          - \frac{\alpha}{2} \Bigl\|\sum_i E(\cdot, x_i)\, c_i \beta_i\Bigr\|^2.

The norm is bounded by the diagonal of E. Where that is too much, more features are taken: first
for a better bound, and for a better fit if the bound does not get small.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from fenchel._clock import OutOfTime, within
from fenchel._typing import FloatArray
from fenchel.certificate import Callback, Status
from fenchel.estimator import KeptRows
from fenchel.problem import Problem
from fenchel.solvers import Solution, WarmStart
from fenchel.solvers.loop import time_left

_LEAST_SHARE, _MOST_SHARE = 1e-6, 0.1  # by which the residual falls when features are added
_MOST_ROWS = 30_000  # of an exact pass: n²/2 kernel values, some five seconds
_LATE = 0.5  # seconds that it may take where the time is over


class Preparation(Protocol):
    """Rows that are ready for solvers.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> from fenchel.named_kernel import Preparation
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> prepared: Preparation = KernelRidge(learn=False).prepare(X, X[:, 0])
    >>> prepared.inputs.features.shape[0]
    20
    """

    inputs: KeptRows

    def wider(self, share: float) -> Self | None:
        """Return the same with features that leave out ``share`` as much, if there are any."""
        ...


P = TypeVar("P", bound=Preparation)


def solve_named(
    prepared: P,
    make: Callable[[P], Problem],
    solve: Callable[[Problem, WarmStart | None], Solution],
    start: WarmStart | None,
    tol: float,
    watch: Callback | None = None,
) -> tuple[P, Problem, Solution]:
    """Solve, with more features where the certificate of the kernel as given needs them.

    Returns the rows with the features of the solution, the problem that these make, and the
    solution with the certificate of the kernel as given. Where features lie outside of the
    space of the kernel there is none, and the status says so. Where the time of ``watch`` is over
    the bound is the one that is known by then.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> from fenchel.named_kernel import solve_named
    >>> from fenchel.solvers import Newton
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = KernelRidge(alpha=1e-3, learn=False)
    >>> prepared = model.prepare(X, np.sin(6.0 * X[:, 0]))
    >>> found = solve_named(prepared, model.make_problem, Newton().solve, None, 1e-6)
    >>> prepared, problem, solution = found
    >>> solution.certificate.relative_gap <= 1e-6
    True
    """
    while True:
        problem = make(prepared)
        solution = solve(problem, start)
        if not prepared.inputs.feature_map.in_space:
            return prepared, problem, _of_features(solution, prepared.inputs)
        bound = _Bound(prepared, make, problem, solution, tol, watch)
        if bound.reached or bound.finest is prepared or not solution.status.converged:
            return prepared, problem, bound.stated()
        near = solution.dual if solution.nearby is None else solution.nearby
        start = WarmStart(near, solution.offset, problem.alpha)
        prepared = bound.finest


def _of_features(solution: Solution, inputs: KeptRows) -> Solution:
    """The solution, with a status that says of which kernel it is one."""
    if inputs.feature_map.kernel_error_ == 0.0:
        return solution
    said = f"{solution.status.message}, of the approximated kernel"
    return replace(solution, status=replace(solution.status, message=said))


def _or_all(left: float) -> float:
    """What is left out; everything where terms overflow."""
    return np.inf if np.isnan(left) else left


class _Bound(Generic[P]):
    """The best lower bound that a dual point gives for the kernel as given."""

    def __init__(
        self,
        prepared: P,
        make: Callable[[P], Problem],
        problem: Problem,
        solution: Solution,
        tol: float,
        watch: Callback | None,
    ) -> None:
        self.prepared, self.make, self.finest = prepared, make, prepared
        self.problem, self.solution = problem, solution
        self.dual, certificate = solution.dual, solution.certificate
        self.tol, self.target = tol, max(tol * certificate.unit, certificate.gap)
        self.left = self._left_out(problem, prepared.inputs.residual)
        self.lower = certificate.dual - self.left
        with suppress(OutOfTime), within(time_left(watch)):
            self._widen()
        last = self.finest is prepared or not solution.status.converged
        if last and not self.reached:
            self._look_closely(max(time_left(watch), _LATE))

    @cached_property
    def push(self) -> FloatArray:
        """Coefficients of the function that the dual point stands for."""
        return self.problem.weight[:, None] * self.solution.dual

    @property
    def reached(self) -> bool:
        """Whether the gap is within the tolerance, or that of a solver that stopped early."""
        return self.solution.certificate.primal - self.lower <= self.target

    def _left_out(self, problem: Problem, residual: FloatArray) -> float:
        """Bound of what the dual objective loses by what features leave out."""
        if not residual.any():
            return 0.0
        # roots are taken of the residual: weights go there, and make no array for all outputs
        weight = self.problem.weight.reshape(-1, *(1,) * (residual.ndim - 1))
        size = problem.design.left_out(self.solution.dual, weight**2 * residual)
        return _or_all(0.5 * problem.alpha * size)

    def _widen(self) -> None:
        """Take more features until little is left out; what they hold is known exactly."""
        gap = max(self.solution.certificate.gap, 0.0)
        room = self.target - gap if self.solution.status.converged else 0.1 * gap
        while self.left > room:
            share = min(max(0.5 * room / self.left, _LEAST_SHARE), _MOST_SHARE)
            wider = self.finest.wider(share)
            if wider is None:
                return
            self.finest, problem = wider, self.make(wider)
            self.left = self._left_out(problem, wider.inputs.residual)
            self.lower = max(self.lower, problem.dual(self.solution.dual) - self.left)

    def _look_closely(self, seconds: float) -> None:
        """With no more features to be had: one pass over all kernel values, and a shorter point.

        The multiple t β of a dual point is feasible as well; with e its linear part, D(t β) is
        at least t e - t² α/2 ‖h_β‖², which is largest at t = e / (α ‖h_β‖²).
        """
        problem, dual = self.problem, self.solution.dual
        inner = problem.alpha * problem.design.squared_norm(problem.link(dual))
        self.left = self._left_out(problem, self.prepared.inputs.residual)
        if problem.n_rows <= _MOST_ROWS:
            with suppress(OutOfTime), within(seconds):
                square = problem.design.square_by(self.push, self.prepared.inputs.forms)
                self.left = max(_or_all(0.5 * (problem.alpha * square - inner)), 0.0)
        whole = self.solution.certificate.dual
        self.lower = max(self.lower, whole - self.left)
        linear, square_of_all = whole + 0.5 * inner, inner + 2.0 * self.left
        if linear < square_of_all:
            t = max(linear, 0.0) / square_of_all
            shorter = problem.dual(t * dual) - t**2 * self.left
            if shorter > self.lower:
                self.lower, self.dual = shorter, t * dual

    def stated(self) -> Solution:
        """The solution with this bound in its certificate, and a status that is true of it."""
        solution, inputs = self.solution, self.prepared.inputs
        certificate = replace(solution.certificate, dual=self.lower)
        status = solution.status
        if status.converged and not self.reached:
            rank = inputs.features.shape[-1]
            status = Status(
                False,
                f"stopped at a relative gap of {certificate.relative_gap:.1e} > "
                f"tol={self.tol:g}: {rank} features leave out a part of the kernel; increase rank "
                f"(the gap without that part is {solution.certificate.relative_gap:.1e})",
            )
        elif certificate.gap - solution.certificate.gap > 0.05 * abs(solution.certificate.gap):
            said = f", {certificate.relative_gap:.1e} with what the features leave out"
            status = replace(status, message=status.message + said)
        if self.dual is not solution.dual and solution.nearby is None:
            solution = replace(solution, nearby=solution.dual)  # the model's, not the bound's
        return replace(solution, dual=self.dual, certificate=certificate, status=status)


__all__ = ["Preparation", "solve_named"]

__dir__ = __all__.copy
