"""Solvers: each returns a dual point with its certificate."""

from __future__ import annotations

from collections.abc import Callable

from fenchel.problem import Problem
from fenchel.solvers.augmented_lagrangian import AugmentedLagrangian
from fenchel.solvers.base import Callback, Progress, Solution, Solver, Status, WarmStart
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.conic import Conic
from fenchel.solvers.fista import Fista
from fenchel.solvers.newton import Newton
from fenchel.solvers.pdcd import PDCD

SOLVERS: dict[str, Callable[[float, int], Solver]] = {
    "augmented_lagrangian": AugmentedLagrangian,
    "closed_form": lambda tol, max_iter: ClosedForm(tol),
    "conic": Conic,
    "fista": Fista,
    "newton": Newton,
    "pdcd": PDCD,
}
AUTOMATIC = ("closed_form", "newton")


def takes_gram(solver: str | Solver) -> bool:
    """Whether the solver can do with a Gram matrix in place of features."""
    if isinstance(solver, str):
        names = AUTOMATIC if solver == "auto" else (solver,)
        return all(name in SOLVERS and SOLVERS[name](1.0, 1).takes_gram for name in names)
    return bool(getattr(solver, "takes_gram", False))


def make_solver(solver: str | Solver, problem: Problem, tol: float, max_iter: int) -> Solver:
    """Return the solver of that name, or the given one, if it can solve the problem.

    ``"auto"`` takes the closed form where the loss is plainly squared and Newton elsewhere.
    """
    if solver == "auto":
        candidates = (SOLVERS[name](tol, max_iter) for name in AUTOMATIC)
        return next(each for each in candidates if each.requires(problem) is None)
    if isinstance(solver, str) and solver in SOLVERS:
        chosen = SOLVERS[solver](tol, max_iter)
    elif isinstance(solver, str) or not hasattr(solver, "solve"):
        allowed = ("auto", *SOLVERS)
        raise ValueError(f"solver must be one of {allowed} or a Solver, got {solver!r}")
    else:
        chosen = solver
    missing = chosen.requires(problem)
    if missing is not None:
        raise ValueError(f"solver={solver!r} cannot solve this problem: it {missing}")
    return chosen


__all__ = [
    "AUTOMATIC",
    "PDCD",
    "SOLVERS",
    "AugmentedLagrangian",
    "Callback",
    "ClosedForm",
    "Conic",
    "Fista",
    "Newton",
    "Progress",
    "Solution",
    "Solver",
    "Status",
    "WarmStart",
    "make_solver",
    "takes_gram",
]
