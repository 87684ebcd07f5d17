"""Outputs that do not interact, solved one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel.certificate import Callback, Certified
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, Solver, WarmStart, needs_scalar_kernel, settled
from fenchel.solvers.loop import Loop


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
        missing = needs_scalar_kernel(problem)
        if missing is not None:
            return missing
        if problem.n_outputs == 1 or problem.design.output(0) is None:
            return "needs several outputs with a diagonal coupling; solver='newton' takes any"
        if problem.loss.output(0, problem.n_outputs) is None:
            return "needs a loss that is a sum over outputs; solver='newton' takes any"
        return None

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the solutions of all outputs, certified together."""
        loop: Loop[Certified] = Loop(self.tol, callback)
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
        weights = problem.design.join([part.weights for part in parts])
        return settled(loop, problem.certify(dual, offset, weights), steps, how)


def _output(problem: Problem, j: int) -> Problem:
    """The problem of one output."""
    loss, design = problem.loss.output(j, problem.n_outputs), problem.design.output(j)
    assert loss is not None
    assert design is not None
    column = j if problem.targets.shape[1] > 1 else 0
    return replace(problem, loss=loss, design=design, targets=problem.targets[:, [column]])
