"""Matrices that pay for their trace alone: the limit of small squared norms, certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel.certificate import Certificate, Status
from fenchel.positive._faces import face_of
from fenchel.positive._solution import PSDSolution, Start, lifted
from fenchel.positive.problem import PSDProblem
from fenchel.solvers.loop import credible_gap

_SHARE = 0.3  # of the tolerance, for the fit with a squared norm
_FIRST = 1e-2  # of the squared trace penalty over the unit of the loss: the first strength
_LESS = 0.1  # by which it falls at least
_ROUNDS = 12
_INSIDE = 1e-13  # by how much a point stays inside of its domain, against rounding


Solve = Callable[[PSDProblem, float, Start | None], PSDSolution]


def solve_trace_alone(problem: PSDProblem, solve: Solve, tol: float) -> PSDSolution:
    r"""Solve a problem in which some matrices have ``alpha=0``.

    ``solve`` takes problems with a small alpha in the place of 0. Their matrices are feasible for
    the problem as it is, and of a dual point (β, ν) the multiple

    .. math:: t\,(\beta, \nu), \qquad t = \min\Bigl(1, \min_k \frac{\lambda_k}
              {-\lambda_{\min}(G_k - \lambda_k I)}\Bigr), \qquad \text{so that } G_k \succeq 0,

    is in the domain of its dual. alpha falls until the gap of these two is within the tolerance:
    it is at most alpha/2 ‖A‖² and what the multiple loses, which both vanish.
    """
    if (face := face_of(problem)) is not None:
        return lifted(face, solve_trace_alone(face.problem, solve, tol))
    unit = problem.loss.unit or 1.0
    least = min(part.trace_penalty for part in problem.psd if part.alpha == 0.0)
    alpha, start = _FIRST * least**2 / unit, None
    best: PSDSolution | None = None
    count = 0
    for _ in range(_ROUNDS):
        found = solve(_smoothed(problem, alpha), _SHARE * tol, start)
        count += found.n_iter
        judged = _judged(problem, found)
        gap = credible_gap(judged.certificate)
        if best is None or gap < credible_gap(best.certificate):
            best = judged
        if gap <= tol or not found.status.converged:
            break
        start = Start(found.dual, found.multipliers)
        size = sum(float(np.vdot(a, a)) for a in found.model.matrices)
        enough = _SHARE * tol * unit / size if size > 0.0 else alpha
        alpha = min(_LESS * alpha, enough)
    assert best is not None
    gap = credible_gap(best.certificate)
    if gap <= tol:
        status = Status(True, f"converged to a relative gap of {gap:.1e} in {count} steps")
    else:
        status = Status(
            False,
            f"stopped at a relative gap of {gap:.1e} > tol={tol:g} after {count} steps: increase "
            "max_iter, trace_penalty, or tol",
        )
    return replace(best, status=status, n_iter=count)


def _smoothed(problem: PSDProblem, alpha: float) -> PSDProblem:
    parts = [part if part.alpha > 0.0 else replace(part, alpha=alpha) for part in problem.psd]
    return replace(problem, psd=parts)


def _judged(problem: PSDProblem, found: PSDSolution) -> PSDSolution:
    """The solution with a dual point and a certificate of the problem as it is."""
    push, share = problem.push(found.dual), 1.0
    shifted = problem.cone.shifted(push.gram, found.multipliers)
    for part, matrix in zip(problem.psd, shifted, strict=True):
        if part.alpha == 0.0:
            lowest = float(np.linalg.eigvalsh(matrix)[0]) - part.trace_penalty
            if lowest < -part.trace_penalty:
                share = min(share, (1.0 - _INSIDE) * part.trace_penalty / -lowest)
    dual, multipliers = share * found.dual, share * found.multipliers
    primal, lower = problem.primal(found.model), problem.dual(dual, multipliers)
    violation = found.certificate.feasibility
    certificate = Certificate(primal, lower, problem.loss.unit, violation)
    return replace(found, dual=dual, multipliers=multipliers, certificate=certificate)
