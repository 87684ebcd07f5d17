"""A model of few rows, for fits whose time ends before they have a better one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.certificate import Callback
from fenchel.positive._solution import PSDSolution
from fenchel.positive.problem import Model, PSDProblem
from fenchel.positive.solvers import solve
from fenchel.solvers.loop import Watch, credible_gap, time_left

_MANY_ROWS, _FEW_ROWS = 1000, 200
_WORTHLESS = 0.5  # relative gap from which on a model may be worse than a constant
_WIDEST, _SIZES, _STAGES = 1e6, 17, 5  # sizes that are tried, in the end in steps of 0.04 %
TOL_OF_FEW = 1e-2
_SHARE, _LEAST = 0.2, 0.2  # of the time that is left; seconds


def some_rows(n_rows: int, watch: Callback | None) -> IntArray | None:
    """Numbers of few of many rows; None where these are not many, or time has no limit."""
    if n_rows < _MANY_ROWS or np.isinf(time_left(watch)):
        return None
    return np.sort(np.random.default_rng(0).choice(n_rows, _FEW_ROWS, replace=False))


def time_of_few(seconds: float) -> float:
    """Seconds for a model of few rows, where so many are left."""
    return max(_SHARE * seconds, _LEAST)


def model_of(
    problem: PSDProblem, solver: Any, max_iter: int, watch: Callback | None
) -> Model | None:
    """The model of a problem of few rows, in a part of the time; None where its end fails."""
    limit = Watch("", max_time=time_of_few(time_left(watch)))
    try:
        return solve(problem, solver, TOL_OF_FEW, max_iter, None, limit).model
    except np.linalg.LinAlgError:
        return None


def better_of(problem: PSDProblem, found: PSDSolution, model: Model | None) -> PSDSolution:
    """The solution with another model of the same features where that has the lower objective.

    That is the given model, and then either one, or constants, in other sizes if it is worth no
    more than a constant. The dual point and its bound are those of the solution.
    """
    if found.status.converged:
        return found
    if model is not None:
        said = f"a relative gap of {{}} of a model of {_FEW_ROWS} rows"
        found = _with(problem, found, model, said)
    if credible_gap(found.certificate) < _WORTHLESS or len(problem.cone.right):
        return found
    for other in (found.model, _nearly_constant(problem, found.model.offset)):
        found = _with(problem, found, _in_best_sizes(problem, other), "a relative gap of {}")
    return found


def _with(problem: PSDProblem, found: PSDSolution, model: Model, said: str) -> PSDSolution:
    known, primal = found.certificate, problem.primal(model)
    if not primal < known.primal:
        return found
    certificate = problem.certificate(primal, known.dual, model)
    now = said.format(f"{credible_gap(certificate):.1e}")
    before = f"a relative gap of {credible_gap(known):.1e}"
    message = found.status.message.replace(before, now)
    return replace(
        found, model=model, certificate=certificate, status=replace(found.status, message=message)
    )


def _nearly_constant(problem: PSDProblem, offset: FloatArray) -> Model:
    """The functions (φᵀw)² next to one at some of the rows, and linear parts of zero."""
    rows = np.linspace(0, len(problem.weight) - 1, min(len(problem.weight), _MANY_ROWS))
    some = np.unique(rows.astype(np.intp))
    parts = [np.asarray(part.features[some]) for part in problem.psd]
    one = np.ones((len(some), 1))
    factors = [np.asarray(np.linalg.lstsq(part, one)[0], np.float64) for part in parts]
    weights = [np.zeros(line.features.shape[1]) for line in problem.linear]
    return Model([factor @ factor.T for factor in factors], factors, weights, offset)


def _in_best_sizes(problem: PSDProblem, model: Model) -> Model:
    """The multiples of matrices and of weights that have the lowest objective.

    The first points of a path may be far from the size of the targets, where even a constant is
    better; with weights of zero, all that is left is next to one.
    """
    none = [np.zeros_like(weights) for weights in model.weights]
    level = problem.outward @ model.offset + np.zeros_like(problem.predictions(model))
    forms = problem.predictions(model._replace(weights=none)) - level
    lines = problem.predictions(model) - level - forms

    def of_sizes(size: float, share: float) -> Model:
        return Model(
            [size * matrix for matrix in model.matrices],
            [np.sqrt(size) * factor for factor in model.factors],
            [share * weights for weights in model.weights],
            model.offset,
        )

    best, center, width = (problem.primal(model), 1.0, 1.0), 1.0, _WIDEST
    shares = (0.0, 0.5, 1.0) if model.weights else (1.0,)
    for _ in range(_STAGES):
        for size in center * np.geomspace(1.0 / width, width, _SIZES):
            for share in shares:
                values = level + size * forms + share * lines
                value = problem.primal(of_sizes(float(size), share), values)
                if value < best[0]:
                    best = value, float(size), share
        center, width = best[1], width ** (2.0 / (_SIZES - 1))
    return of_sizes(*best[1:])
