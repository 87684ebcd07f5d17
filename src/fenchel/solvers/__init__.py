"""Solvers, which return a dual point with its certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fenchel._validation import Having, OneOf
from fenchel.certificate import Callback, Progress, Status
from fenchel.problem import Problem
from fenchel.solvers.augmented_lagrangian import AugmentedLagrangian
from fenchel.solvers.base import (
    NormSolver,
    Solution,
    Solver,
    WarmStart,
    judged_again,
    needs_plain_features,
    needs_scalar_kernel,
    settled,
    side_by_side,
    solution_of,
)
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.conic import Conic
from fenchel.solvers.conjugate_gradients import ConjugateGradients
from fenchel.solvers.derivatives import Sensitivity, sensitivity_of
from fenchel.solvers.fista import Fista
from fenchel.solvers.lars import Lars
from fenchel.solvers.lasso_descent import LassoDescent
from fenchel.solvers.least_squares import LeastSquares
from fenchel.solvers.loop import Iterate, Loop
from fenchel.solvers.newton import Newton
from fenchel.solvers.norm_fista import NormFista
from fenchel.solvers.norm_newton import NormNewton
from fenchel.solvers.outputwise import Outputwise
from fenchel.solvers.pdcd import PDCD
from fenchel.solvers.relaxed import Relaxed
from fenchel.solvers.smo import SMO
from fenchel.solvers.splitting import Splitting

SOLVERS: dict[str, Callable[[float, int], Solver]] = {
    "augmented_lagrangian": AugmentedLagrangian,
    "closed_form": lambda tol, max_iter: ClosedForm(tol),
    "conic": Conic,
    "conjugate_gradients": ConjugateGradients,
    "fista": Fista,
    "newton": Newton,
    "pdcd": PDCD,
    "smo": SMO,
    "splitting": Splitting,
}
SOLVER_CHOICE = OneOf(("auto",), SOLVERS) | Having("a Solver", ("requires", "solve"))
"""What ``solver`` may be."""
_MANY_UNKNOWNS = 256
_RELAXED_TOL = 1e-3  # of a start: 1e-2 and 1e-4 take as long in all


def takes_gram(solver: str | Solver) -> bool:
    """Whether the solver accepts a Gram matrix in place of features.

    Examples
    --------
    >>> from fenchel.solvers import takes_gram
    >>> takes_gram("smo"), takes_gram("pdcd")
    (True, False)
    """
    if solver == "auto":
        return True
    if isinstance(solver, str) and solver in SOLVERS:
        solver = SOLVERS[solver](1.0, 1)
    return bool(getattr(solver, "takes_gram", False))


def _automatic(problem: Problem, tol: float, max_iter: int) -> Solver:
    by_products = ConjugateGradients(tol, max_iter)
    for squared in (ClosedForm(tol, singular_values=True), ClosedForm(tol), by_products):
        if squared.requires(problem) is None:
            return squared
    design = problem.design
    on_gram = design.is_gram
    one_by_one = Outputwise(lambda part: _automatic(part, tol, max_iter), tol)
    large = on_gram or design.zero().size > _MANY_UNKNOWNS
    if large and one_by_one.requires(problem) is None:
        return one_by_one
    greedy = SMO(tol, max_iter)
    if on_gram and greedy.requires(problem) is None:
        return greedy
    relaxed = Relaxed(lambda part: _automatic(part, _RELAXED_TOL, max_iter), tol, max_iter)
    return relaxed if relaxed.requires(problem) is None else Newton(tol, max_iter)


def first_that_can(solvers: Sequence[Solver], problem: Problem) -> Solver:
    """Return the first solver that can solve the problem; the last one must be able to.

    Examples
    --------
    >>> from fenchel.solvers import ClosedForm, Newton, first_that_can
    >>> from fenchel.testing import small_problems
    >>> first_that_can([ClosedForm(), Newton()], small_problems()[2])
    Newton(tol=1e-06, max_iter=1000)
    """
    return next(solver for solver in solvers if solver.requires(problem) is None)


def make_solver(solver: str | Solver, problem: Problem, tol: float, max_iter: int) -> Solver:
    """Return the solver of a name, or the given solver, if it can solve the problem.

    ``"auto"`` chooses the closed form for the squared loss. It solves each output separately if
    several outputs do not interact and one system for all would be large. It chooses SMO on a Gram
    matrix (kernels of nearly full rank), for one output or coupled outputs; otherwise Newton,
    which starts from the solution without the constraint if the loss has one.

    Examples
    --------
    >>> from fenchel.solvers import make_solver
    >>> from fenchel.testing import small_problems
    >>> make_solver("auto", small_problems()[0], tol=1e-6, max_iter=100)
    ClosedForm(tol=1e-06, singular_values=True, of_weights=False)
    """
    SOLVER_CHOICE(solver, "solver")
    if solver == "auto":
        return _automatic(problem, tol, max_iter)
    chosen = SOLVERS[solver](tol, max_iter) if isinstance(solver, str) else solver
    missing = chosen.requires(problem)
    if missing is not None:
        raise ValueError(f"solver={solver!r} cannot solve this problem: it {missing}")
    return chosen


__all__ = [
    "PDCD",
    "SMO",
    "SOLVERS",
    "AugmentedLagrangian",
    "Callback",
    "ClosedForm",
    "Conic",
    "ConjugateGradients",
    "Fista",
    "Iterate",
    "Lars",
    "LassoDescent",
    "LeastSquares",
    "Loop",
    "Newton",
    "NormFista",
    "NormNewton",
    "NormSolver",
    "Outputwise",
    "Progress",
    "Relaxed",
    "Sensitivity",
    "Solution",
    "Solver",
    "Splitting",
    "Status",
    "WarmStart",
    "first_that_can",
    "judged_again",
    "make_solver",
    "needs_plain_features",
    "needs_scalar_kernel",
    "sensitivity_of",
    "settled",
    "side_by_side",
    "solution_of",
    "takes_gram",
]

__dir__ = __all__.copy
