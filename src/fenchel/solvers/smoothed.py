r"""Fits of smoothed losses: differentiable in all that they are made of, and fast.

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
from fenchel.solvers.newton_inner import Inner, Scale
from fenchel.solvers.newton_spaces import Function, KernelSpace
from fenchel.solvers.newton_system import Kinks


_RIDGE = 1e-9  # on offsets that no kink holds, in units of the problem


class Smoothed(NamedTuple):
    """A fit of a smoothed loss."""

    dual: FloatArray
    """β, (n, p)."""
    offset: FloatArray
    coef: FloatArray
    """Dual coefficients of the function, (n, p)."""
    kinks: Kinks
    n_steps: int


def unit_step(problem: Problem) -> float:
    """Step t in units of the problem: with t times this, kinks are 1/t of the spread wide."""
    return Scale.of(problem).step


def fit_smoothed(
    problem: Problem, step: float, start: Smoothed | None, tol: float, max_steps: int = 50
) -> Smoothed:
    """Minimize the smoothed objective on kernel rows to ``tol`` times the best constant's loss."""
    scale = Scale.of(problem)
    zero = np.zeros((problem.n_rows, problem.n_outputs))
    dual, offset = (zero, problem.best_constant) if start is None else (start.dual, start.offset)
    coef = problem.weight[:, None] * dual
    ridge = _RIDGE * float(problem.weight.sum()) * scale.step
    inner = Inner(problem, KernelSpace(problem), scale, zero, offset, step, ridge)
    point = inner.at(Function(coef, problem.design.image(coef)), offset)
    tolerance = tol * problem.baseline / problem.alpha
    point, n_steps = inner.minimize(point, tolerance, max_steps)
    return Smoothed(point.dual, point.offset, point.function.coef, point.kinks, n_steps)
