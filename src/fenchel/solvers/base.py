"""The interface of solvers: their input and their result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certificate, Certified, Progress, Status
from fenchel.design import Masked, Operator
from fenchel.norm_problem import NormProblem
from fenchel.problem import Problem
from fenchel.solvers.loop import Iterate, Loop

_SUMS = 1e-13  # relative rounding errors of sums over rows


@dataclass(frozen=True)
class Solution:
    """Result of a solver: the best certified point it found.

    Attributes
    ----------
    dual : ndarray of shape (n, p)
        Feasible dual vectors β, in units of the subgradient of the loss.
    weights : ndarray
        Weights of the model's function, in the form of the design.
    offset : ndarray of shape (p,)
        The offset b; exactly zero without intercept.
    certificate : Certificate
        Primal objective of this model and dual objective of this point.
    status : Status
        Whether the solver converged, and what to do if not.
    n_iter : int
        Number of iterations: Newton steps, sweeps or others, depending on the solver.
    history : list of Progress
        One entry per outer iteration.
    source : ndarray of shape (n, p) or None
        The dual point whose function is the model, usually ``dual``; None if unknown.
    nearby : ndarray of shape (n, p) or None
        A better warm start than ``dual`` for similar problems, if there is one.
    nearby_values : ndarray of shape (n, p) or None
        Values of the function of ``nearby`` on the rows, if known.

    Examples
    --------
    >>> from fenchel.solvers import Newton
    >>> from fenchel.testing import small_problems
    >>> solution = Newton(tol=1e-8).solve(small_problems()[0])
    >>> solution.dual.shape, solution.certificate.relative_gap <= 1e-8
    ((30, 1), True)
    """

    dual: FloatArray
    weights: FloatArray
    offset: FloatArray
    certificate: Certificate
    status: Status
    n_iter: int
    history: list[Progress] = field(default_factory=list)
    source: FloatArray | None = None
    nearby: FloatArray | None = None
    nearby_values: FloatArray | None = None


class WarmStart(NamedTuple):
    """Warm start: a dual point and an offset from a similar problem.

    With the ``alpha`` of that problem, the solver starts at the function that solved it. Without,
    it starts at the function of the dual point for the new strength, which is a multiple of it.
    ``values`` (n, p), if known, are the values on the rows of the function that the dual point
    defines in the new problem. :class:`Splitting` then starts without a kernel product.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from fenchel.solvers import Newton, WarmStart
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[1]
    >>> first = Newton().solve(problem)
    >>> start = WarmStart(first.dual, first.offset, problem.alpha)
    >>> Newton().solve(replace(problem, alpha=problem.alpha / 2), start).status.converged
    True
    """

    dual: FloatArray
    offset: FloatArray
    alpha: float | None = None
    values: FloatArray | None = None


def start_of(
    problem: Problem, warm_start: WarmStart | None
) -> tuple[FloatArray, FloatArray, Certified]:
    """Return a feasible dual point and an offset to start from, and the certificate of both.

    If the warm start fits worse than the best constant, for example because it is from other
    targets, the best constant is used. Distant offsets and much too large dual points need more
    steps to recover from.
    """
    if warm_start is not None:
        offset = warm_start.offset if problem.fit_intercept else np.zeros(problem.n_outputs)
        dual = problem.feasible(warm_start.dual)
        first = problem.certify(dual, offset)
        if not _worse_than_constant(problem, warm_start, first, dual, offset):
            return dual, offset, first
    first = problem.constant()
    return first.dual, first.offset, first


def _worse_than_constant(
    problem: Problem, start: WarmStart, first: Certified, dual: FloatArray, offset: FloatArray
) -> bool:
    """Whether a start fits worse than the best constant, with the function of its own strength."""
    if first.certificate.primal <= problem.baseline:
        return False
    if start.alpha is None or start.alpha == problem.alpha:
        return True
    scaled = first.weights * (problem.alpha / start.alpha)
    return problem.certify(dual, offset, scaled).certificate.primal > problem.baseline


def needs_plain_features(problem: Problem) -> str | None:
    """Return what is missing for a solver that accepts only features (n, r), or None.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from fenchel.design import Gram
    >>> from fenchel.solvers import needs_plain_features
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> needs_plain_features(problem) is None
    True
    >>> needs_plain_features(replace(problem, design=Gram(np.eye(30), np.eye(1))))
    "needs features, and the fit has kernel values: set features='cholesky'"
    """
    return problem.design.refusal if problem.design.features is None else None


def needs_scalar_kernel(problem: Problem) -> str | None:
    """Return what is missing for a solver of scalar kernels and complete rows, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from fenchel.design import Operator
    >>> from fenchel.solvers import needs_scalar_kernel
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> needs_scalar_kernel(problem) is None
    True
    >>> needs_scalar_kernel(replace(problem, design=Operator(np.ones((30, 1, 4)))))
    "needs a scalar kernel, with coupling for the outputs; solver='newton' takes any"
    """
    design = problem.design
    if design.coupling is None:
        return Operator.refusal
    if design.mask is not None:
        return Masked.refusal
    on_disk = design.features is None and design.kernel_values is None
    return design.refusal if on_disk else None


def needs_squares(problem: Problem) -> str | None:
    """Return what is missing for a solver of the squared loss, or None."""
    box = problem.loss.box(problem.n_outputs)
    if box is not None and box.is_squared:
        return None
    return "needs the squared loss with epsilon=0; solver='newton' takes any loss"


class Solver(Protocol):
    """Interface of algorithms that maximize the dual of a problem.

    ``takes_gram`` says whether the solver accepts a Gram matrix in place of features.

    Examples
    --------
    >>> from fenchel.solvers import ClosedForm, Solver
    >>> from fenchel.testing import small_problems
    >>> solver: Solver = ClosedForm()
    >>> solver.requires(small_problems()[2])
    "needs the squared loss with epsilon=0; solver='newton' takes any loss"
    """

    takes_gram: ClassVar[bool] = False

    def requires(self, problem: Problem) -> str | None:
        """Return None if it can solve this problem, else a sentence that says what is missing."""
        ...

    def solve(
        self,
        problem: Problem,
        warm_start: WarmStart | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified point."""
        ...


def threads_for(problem: Any) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread on kernel rows, whose tiles are computed in several threads.

    Fits are then bit for bit the same for any number of threads.
    """
    design = getattr(problem, "design", None)  # problems of norms have none
    return nullcontext() if design is None else threads_that_pay(0)


class LoopSolver(CheckedWhenMade):
    """Base class of solvers that yield certified points until the gap is small."""

    tol: float
    remedy: ClassVar[str] = "increase max_iter, or use solver='newton'"
    unit: ClassVar[str] = "steps"

    def _iterates(self, problem: Any, warm_start: Any) -> Iterator[Iterate[Certified]]:
        raise NotImplementedError

    def solve(
        self, problem: Any, warm_start: Any = None, callback: Callback | None = None
    ) -> Solution:
        """Return the best certified point."""
        loop: Loop[Certified] = Loop(self.tol, callback)
        with threads_for(problem):
            loop.run(self._iterates(problem, warm_start))
            return solution_of(loop, loop.status(self.remedy, self.unit))


class NormSolver(Protocol):
    """Interface of algorithms for least squares with a norm as penalty or bound, or without.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import LeastSquares
    >>> absolute = GroupNorm(np.arange(3), q=1.0, p=1.0)
    >>> problem = NormProblem(np.eye(3), np.ones((3, 1)), 3.0, absolute, 0.1)
    >>> LeastSquares().requires(problem)
    'needs strength=0; NormFista takes any'
    """

    def requires(self, problem: NormProblem) -> str | None:
        """Return None if it can solve this problem, else a sentence that says what is missing."""
        ...

    def solve(
        self,
        problem: NormProblem,
        warm_start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified weights, starting from weights (d, outputs)."""
        ...


def solution_of(
    loop: Loop[Certified],
    status: Status,
    point: Certified | None = None,
    nearby: FloatArray | None = None,
    nearby_values: FloatArray | None = None,
) -> Solution:
    """Return the solution of a loop that has ended: its best point, or the given one.

    Examples
    --------
    >>> from fenchel.solvers import Iterate, Loop, solution_of
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> loop = Loop(tol=1e-6)
    >>> best = loop.run(Iterate(k, problem.certify(k * problem.targets)) for k in range(2))
    >>> solution = solution_of(loop, loop.status("take more steps"))
    >>> solution.n_iter, solution.status.converged
    (1, False)
    """
    point = loop.best if point is None else point
    assert point is not None
    return Solution(
        point.dual,
        point.weights,
        point.offset,
        point.certificate,
        status,
        loop.count,
        loop.history,
        point.source,
        nearby,
        nearby_values,
    )


def judged_again(solution: Solution, primal: float, tol: float) -> Solution:
    """Return the solution with the objective of the stored model.

    The two objectives differ by the rounding errors of predictions. If the difference is only the
    rounding error of sums, the known gap is kept, which is more precise than a difference.

    Examples
    --------
    >>> from fenchel.solvers import Newton, judged_again
    >>> from fenchel.testing import small_problems
    >>> solution = Newton().solve(small_problems()[0])
    >>> stored = judged_again(solution, 1.1 * solution.certificate.primal, tol=1e-6)
    >>> stored.status.converged
    False
    """
    known = solution.certificate.primal
    if abs(primal - known) <= _SUMS * known:
        return solution
    certificate = replace(solution.certificate, primal=primal)
    gap, status = certificate.relative_gap, solution.status
    if status.converged and not abs(gap) <= tol:
        message = f"rounding errors of predictions leave a relative gap of {gap:.1e}, beyond "
        message += f"tol={tol:g}: take the means off the columns of X, or scale them"
        status = Status(False, message)
    return replace(solution, certificate=certificate, status=status)


def settled(loop: Loop[Certified], point: Certified, count: int, how: str) -> Solution:
    """Return the solution of a solver that certifies only once, at its end.

    ``how`` says what the solver did and, after a semicolon, what to do if the gap is too large.

    Examples
    --------
    >>> from fenchel.solvers import Loop, settled
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> point = problem.certify(0.0 * problem.targets)
    >>> settled(Loop(tol=10.0), point, 1, "guessed; decrease tol").status.message
    'guessed to a relative gap of 1.0e+00'
    """
    loop.run(iter([Iterate(count, point)]))
    deed, _, remedy = how.partition("; ")
    message = f"{deed} to a relative gap of {loop.gap:.1e}"
    if not loop.reached:
        message += f" > tol={loop.tol:g}: {remedy}"
    return solution_of(loop, Status(loop.reached, message))


def side_by_side(parts: Sequence[Solution], tol: float) -> Solution:
    """Return the joint solution of separately solved outputs, with summed certificates.

    Examples
    --------
    >>> from fenchel.solvers import Newton, side_by_side
    >>> from fenchel.testing import small_problems
    >>> parts = [Newton().solve(problem) for problem in small_problems()[:2]]
    >>> side_by_side(parts, tol=1e-6).dual.shape
    (30, 2)
    """
    if len(parts) == 1:
        return parts[0]
    loop: Loop[Certified] = Loop(tol)
    together = Certified(
        np.hstack([part.dual for part in parts]),
        np.hstack([part.weights for part in parts]),
        np.concatenate([part.offset for part in parts]),
        Certificate.of_sum(part.certificate for part in parts),
    )
    failed = [part.status.message for part in parts if not part.status.converged]
    how = "solved output by output; " + (failed[0] if failed else "decrease tol")
    return settled(loop, together, max(part.n_iter for part in parts), how)
