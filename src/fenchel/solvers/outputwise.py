"""Outputs that do not interact, solved one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses.box import BoxQuadratic
from fenchel.operator_problem import OperatorProblem
from fenchel.problem import GramProblem, Problem
from fenchel.solvers.base import (
    NEEDS_SCALAR_KERNEL,
    Callback,
    Solution,
    Solver,
    WarmStart,
    settled,
)


@dataclass(frozen=True)
class Outputwise:
    r"""Independent outputs one after the other.

    Where B = S Sᵀ is diagonal and the loss a sum over outputs, the problem is a sum of
    problems of one output each: p small systems in place of one with p times the unknowns.
    The solution is certified as a whole.

    Parameters
    ----------
    choose : callable
        Returns the solver for a problem of one output.
    tol : float
        Relative gap at which it stops.
    """

    takes_gram: ClassVar[bool] = True
    choose: Callable[[Problem], Solver]
    tol: float = 1e-6

    def requires(self, problem: Problem) -> str | None:
        """Return None for independent outputs, else a sentence on what is missing."""
        if isinstance(problem, OperatorProblem):
            return NEEDS_SCALAR_KERNEL
        loss, output = problem.loss, problem.coupling @ problem.coupling.T
        if problem.n_outputs == 1 or np.any(output - np.diag(output.diagonal())):
            return "needs several outputs with a diagonal coupling; solver='newton' takes any"
        if not (isinstance(loss, BoxQuadratic) and loss.separable):
            return "needs a loss that is a sum over outputs; solver='newton' takes any"
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the solutions of all outputs, certified together."""
        started = time.perf_counter()
        parts = []
        for j in range(problem.n_outputs):
            part = _output(problem, j)
            start = warm_start
            if start is not None:
                start = start._replace(dual=start.dual[:, [j]], offset=start.offset[[j]])
            parts.append(self.choose(part).solve(part, start))
        dual = np.hstack([part.dual for part in parts])
        offset = np.concatenate([part.offset for part in parts])
        steps = sum(part.n_iter for part in parts)
        failed = [part.status.message for part in parts if not part.status.converged]
        how = "solved output by output; " + (failed[0] if failed else "decrease tol")
        weights = _joined(problem, [part.weights for part in parts])
        certified = problem.certify(dual, offset, weights)
        return settled(certified, started, steps, how, self.tol, callback)


def _joined(problem: Problem, parts: list[FloatArray]) -> FloatArray:
    """Weights of all outputs from those of each, which differ from the dual's by rounding."""
    columns = np.hstack(parts)
    if isinstance(problem, GramProblem):
        return columns
    sizes = np.linalg.norm(problem.coupling, axis=1, keepdims=True)
    return columns @ (problem.coupling / np.where(sizes > 0.0, sizes, 1.0))


def _output(problem: Problem, j: int) -> Problem:
    """The problem of one output."""
    assert isinstance(problem.loss, BoxQuadratic)
    column = j if problem.targets.shape[1] > 1 else 0
    size = float(np.linalg.norm(problem.coupling[j]))
    return replace(
        problem,
        loss=problem.loss.output(j, problem.n_outputs),
        targets=problem.targets[:, [column]],
        coupling=np.array([[size]]),
    )
