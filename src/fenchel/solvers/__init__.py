"""Solvers: each returns a dual point with its certificate."""

from __future__ import annotations

from fenchel.problem import Problem
from fenchel.solvers.base import Callback, Progress, Solution, Solver, Status, WarmStart
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.newton import Newton

SOLVERS = ("auto", "closed_form", "newton")


def make_solver(solver: str | Solver, problem: Problem, tol: float, max_iter: int) -> Solver:
    """Return the solver of that name, or the given one, if it can solve the problem.

    ``"auto"`` takes the closed form where the loss is plainly squared and Newton elsewhere.
    """
    candidate: Solver
    if solver == "newton":
        candidate = Newton(tol=tol, max_iter=max_iter)
    elif solver == "closed_form":
        candidate = ClosedForm(tol=tol)
    elif solver == "auto":
        candidate = ClosedForm(tol=tol)
        if candidate.requires(problem) is not None:
            candidate = Newton(tol=tol, max_iter=max_iter)
    elif isinstance(solver, str) or not hasattr(solver, "solve"):
        raise ValueError(f"solver must be one of {SOLVERS} or a Solver, got {solver!r}")
    else:
        candidate = solver
    missing = candidate.requires(problem)
    if missing is not None:
        raise ValueError(f"solver={solver!r} cannot solve this problem: it {missing}")
    return candidate


__all__ = [
    "SOLVERS",
    "Callback",
    "ClosedForm",
    "Newton",
    "Progress",
    "Solution",
    "Solver",
    "Status",
    "WarmStart",
    "make_solver",
]
