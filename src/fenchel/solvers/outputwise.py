"""Separate solution of outputs that do not interact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certificate, Certified, Progress
from fenchel.problem import Problem
from fenchel.solvers.base import Solution, Solver, WarmStart, needs_scalar_kernel, settled
from fenchel.solvers.loop import Loop


@dataclass(frozen=True)
class Outputwise(CheckedWhenMade):
    r"""Solver of independent outputs, one after the other.

    If B = S Sᵀ is diagonal and the loss is a sum over outputs, the problem separates into problems
    of one output each. There are then p small systems in place of one with p times the unknowns.
    The solution is certified as a whole.

    Parameters
    ----------
    choose : callable
        Function that returns the solver for a problem of one output.
    tol : float
        Relative gap at which it stops.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.solvers import Newton, Outputwise
    >>> X, y = load_engel(return_X_y=True)
    >>> one_by_one = Outputwise(lambda problem: Newton())
    >>> model = QuantileRegressor([0.1, 0.9], level_gamma=np.inf, learn=False, solver=one_by_one)
    >>> model.fit(X, y).status_.converged
    True
    """

    takes_gram: ClassVar[bool] = True
    choose: Callable[[Problem], Solver]
    tol: float = 1e-6

    def requires(self, problem: Problem) -> str | None:
        """Return None for independent outputs, else a sentence that says what is missing."""
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
        problems = [_output(problem, j) for j in range(problem.n_outputs)]
        whole, parts = _Whole(loop, problems), []
        for j, part in enumerate(problems):
            start = warm_start
            if start is not None:
                start = WarmStart(start.dual[:, [j]], start.offset[[j]], start.alpha)
            parts.append(self.choose(part).solve(part, start, _Part(whole, j)))
            whole.end(j, parts[-1])
        dual = np.hstack([part.dual for part in parts])
        offset = np.concatenate([part.offset for part in parts])
        steps = sum(part.n_iter for part in parts)
        failed = [part.status.message for part in parts if not part.status.converged]
        how = "solved output by output; " + (failed[0] if failed else "decrease tol")
        weights = problem.design.join([part.weights for part in parts])
        return settled(loop, problem.certify(dual, offset, weights), steps, how)


class _Whole:
    """What the callbacks of the parts tell that of the whole: the sum of their certificates.

    Outputs that have not been solved count with their best constants and a bound of zero. Once
    it was asked to stop, the others end at their first certificate.
    """

    def __init__(self, loop: Loop[Certified], problems: list[Problem]) -> None:
        self.loop = loop
        self.known = [Certificate(part.baseline, 0.0, part.baseline) for part in problems]
        self.steps = 0

    def take(self, j: int, progress: Progress) -> str | None:
        """Put a certificate of output j in its place; return why to stop, or None."""
        self.known[j] = replace(self.known[j], primal=progress.primal, dual=progress.dual)
        self.loop.tell(self.steps + progress.iteration, Certificate.of_sum(self.known))
        return self.loop.reason

    def end(self, j: int, solution: Solution) -> None:
        """Go on to the next output."""
        self.steps += solution.n_iter
        self.known[j] = solution.certificate


@dataclass(frozen=True)
class _Part:
    """The callback of one part."""

    whole: _Whole
    j: int

    def __call__(self, progress: Progress) -> str | None:
        return self.whole.take(self.j, progress)

    def seconds_left(self) -> float:
        return self.whole.loop.seconds_left


def _output(problem: Problem, j: int) -> Problem:
    """The problem of one output."""
    loss, design = problem.loss.output(j, problem.n_outputs), problem.design.output(j)
    assert loss is not None
    assert design is not None
    column = j if problem.targets.shape[1] > 1 else 0
    return replace(problem, loss=loss, design=design, targets=problem.targets[:, [column]])
