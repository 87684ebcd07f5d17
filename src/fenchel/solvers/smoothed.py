r"""Fast fits of smoothed losses, which are differentiable with respect to all their inputs.

.. math:: \min_{h, b}\; \tfrac{\alpha}{2} \|h\|^2 + \sum_i \bar s_i\, \ell_t(y_i - h(x_i) - b),
          \qquad \ell_t(r) = \max_\beta \langle\beta, r\rangle - \ell^*(\beta)
          - \tfrac{1}{2t} \|\beta\|^2

ℓ_t is the Moreau envelope of the loss: within 1/t of kinks it is a parabola. This is the inner
problem of Newton's method with its anchor at zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel.problem import Problem
from fenchel.solvers.kept_factor import KeptFactor
from fenchel.solvers.newton_inner import Inner, Point, Scale
from fenchel.solvers.newton_spaces import Function, KernelSpace
from fenchel.solvers.newton_system import Kinks
from fenchel.solvers.sensitivity import adjoint

_RIDGE = 1e-12  # on offsets that no kink holds, in units of the problem


class Smoothed(NamedTuple):
    """A fit of a smoothed loss."""

    dual: FloatArray
    """β, (n, p)."""
    offset: FloatArray
    coef: FloatArray
    """Dual coefficients of the function, (n, p)."""
    residual: FloatArray
    kinks: Kinks
    alpha: float
    n_steps: int


def unit_step(problem: Problem) -> float:
    """Unit of the step: with t times this unit, kinks are 1/t of the spread wide."""
    return Scale.of(problem).step


def fit_smoothed(
    problem: Problem,
    step: float,
    start: Smoothed | None,
    tol: float,
    max_steps: int = 50,
    kept: KeptFactor | None = None,
) -> Smoothed:
    """Minimize the smoothed objective on kernel rows, to ``tol`` times the loss of a constant."""
    scale = Scale.of(problem)
    zero = np.zeros((problem.n_rows, problem.n_outputs))
    ridge = _RIDGE * float(problem.weight.sum()) * scale.step

    def at(coef: FloatArray, image: FloatArray, offset: FloatArray) -> tuple[Inner, Point]:
        space = KernelSpace(problem, kept)
        inner = Inner(problem, space, scale, zero, offset, step, ridge)
        return inner, inner.at(Function(coef, image), offset)

    inner, point = at(zero.copy(), zero.copy(), problem.best_constant)
    if start is not None:
        coef, offset = _predicted(problem, start, kept)
        guess = at(coef, problem.design.image(coef), offset)
        if guess[1].value <= point.value:  # of nearly singular systems it may be anywhere
            inner, point = guess
    tolerance = tol * problem.baseline / problem.alpha
    point, n_steps, _ = inner.minimize(point, tolerance, max_steps)
    assert point.residual is not None
    return Smoothed(
        point.dual,
        point.offset,
        point.function.coef,
        point.residual,
        point.kinks,
        problem.alpha,
        n_steps,
    )


def from_residuals(problem: Problem, step: float, residual: FloatArray) -> Smoothed:
    """Return a start for a fit whose residuals (n, p) are approximately known."""
    envelope = problem.loss.envelope(np.zeros_like(residual), residual, step)
    stiffness = step * problem.weight[envelope.active]
    kinks = Kinks(envelope.active, (envelope.jacobian.T * stiffness).T)
    coef = problem.weight[:, None] * envelope.dual
    offset = problem.best_constant
    return Smoothed(envelope.dual, offset, coef, residual, kinks, problem.alpha, 0)


def _predicted(
    problem: Problem, start: Smoothed, kept: KeptFactor | None
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and offset to first order in the change of kernel and alpha.

    As if rows stayed on their pieces of the loss: the residuals that the old coefficients leave
    would put many on others, and Newton's method would have to bring them back.
    """
    coef = problem.weight[:, None] * start.dual
    residual = problem.targets - problem.design.image(coef) - start.offset
    rows, jacobian = start.kinks
    kinks = Kinks(rows, jacobian * (start.alpha / problem.alpha))
    change, total = residual - start.residual, -coef.sum(axis=0)
    move = adjoint(problem, kinks, change, total, kept)
    return coef + move.push, start.offset + move.offset
