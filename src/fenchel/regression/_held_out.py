"""Held-out residuals of fits to a part of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.learning.held_out import NEAR, Residuals
from fenchel.problem import Problem
from fenchel.solvers import Solution, WarmStart


def residuals_of_parts(
    problem: Problem, solution: Solution, solve: Callable[[Problem, WarmStart], Solution]
) -> Residuals:
    """Return a function that gives the residuals of some rows for the fit to all others.

    ``solve`` solves the problem of a subset of the rows from a starting point.
    """
    near = NEAR * solution.certificate.unit

    def residuals(held: IntArray, outside: IntArray) -> FloatArray | None:
        part = replace(problem, radius=None).subset(outside)  # the penalty of the fit in a ball
        if part.baseline == 0.0:  # a constant without loss, of which there is no relative gap
            return np.asarray(problem.targets[held] - part.best_constant)
        start = WarmStart(solution.dual[outside], solution.offset, problem.alpha)
        found = solve(part, start)
        if not (found.status.converged or found.certificate.gap <= near):
            return None
        design = problem.design
        # a dual point that is feasible to the tolerance may stand for a function far from these
        weights = design.from_subset(outside, found.weights)
        values = design.predict(held, design.directions(weights))
        return np.asarray(problem.targets[held] - values - found.offset)

    return residuals
