"""A model of few rows, for fits whose time ends before they have a better one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._typing import IntArray
from fenchel.certificate import Callback
from fenchel.positive._solution import PSDSolution
from fenchel.positive.problem import Model, PSDProblem
from fenchel.positive.solvers import solve
from fenchel.solvers.loop import Watch, credible_gap, time_left

_MANY_ROWS, _FEW_ROWS = 1000, 200
_TOL, _SHARE, _LEAST = 1e-2, 0.2, 0.2  # of the time that is left; seconds


def some_rows(n_rows: int, watch: Callback | None) -> IntArray | None:
    """Numbers of few of many rows; None where these are not many, or time has no limit."""
    if n_rows < _MANY_ROWS or np.isinf(time_left(watch)):
        return None
    return np.sort(np.random.default_rng(0).choice(n_rows, _FEW_ROWS, replace=False))


def model_of(
    problem: PSDProblem, solver: Any, max_iter: int, watch: Callback | None
) -> Model | None:
    """The model of a problem of few rows, in a part of the time; None where its end fails."""
    limit = Watch("", max_time=max(_SHARE * time_left(watch), _LEAST))
    try:
        return solve(problem, solver, _TOL, max_iter, None, limit).model
    except np.linalg.LinAlgError:
        return None


def better_of(problem: PSDProblem, found: PSDSolution, model: Model | None) -> PSDSolution:
    """The solution with another model of the same features where that has the lower objective.

    The dual point and its bound are those of the solution.
    """
    if model is None or found.status.converged:
        return found
    known, primal = found.certificate, problem.primal(model)
    if not primal < known.primal:
        return found
    certificate = problem.certificate(primal, known.dual, model)
    said = f"a relative gap of {credible_gap(certificate):.1e} of a model of {_FEW_ROWS} rows"
    message = found.status.message.replace(f"a relative gap of {credible_gap(known):.1e}", said)
    return replace(
        found, model=model, certificate=certificate, status=replace(found.status, message=message)
    )
