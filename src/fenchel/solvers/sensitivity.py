r"""How a fit changes with what it was made of: one linear solve for all derivatives.

At the solution, dual vectors are :math:`\beta_i = P(\beta_i + t r_i)` with P the prox of t ℓ*, or
:math:`\beta_i = P(t r_i)` where the loss is smoothed, and residuals are
:math:`r = y - K (c \beta) B - b`. Where P is differentiable, with a change :math:`\dot f` of
predictions at fixed dual vectors,

.. math:: \mathrm{d}\beta_i = -J_i\, \mathrm{d}f_i, \qquad
          \mathrm{d}f = \dot f + K (c\, \mathrm{d}\beta) B + \mathrm{d}b, \qquad
          \sum_i c_i\, \mathrm{d}\beta_i = 0,

where J_i is t P'(t r_i) for a smoothed loss and t (I - P')⁻¹ P' for the loss itself: infinite
stiffness at a kink. The matrix is that of a Newton step; it is symmetric, so one solve with the
derivatives of any smooth function of predictions gives them in all parameters at once.

References
----------
Bertrand, Klopfenstein, Massias, Blondel, Vaiter, Gramfort, Salmon (2022), Implicit
differentiation for fast hyperparameter selection in non-smooth convex learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design.base import square_roots
from fenchel.problem import Problem
from fenchel.solvers.newton_system import Kinks, cholesky, solve_cholesky

_STIFF = 1e9  # of a kink, in place of infinity: the share of a change that is not held


@dataclass(frozen=True)
class Adjoint:
    r"""Derivatives of a smooth function L of predictions through a fit.

    With values :math:`q_{ip}` on the training rows of the function
    :math:`\sum_v K(\cdot, x_v) \nabla_v L`, and σ the sum of the gradients, a change that moves
    predictions by :math:`\dot f` on the training rows and dual coefficients
    :math:`c_i \beta_i` by :math:`\dot a_i` directly, moves L through the fit by

    .. math:: - \langle U, \dot f \rangle + \langle q - K U B - w, \dot a \rangle.

    What it moves of the predictions that L is made of, directly, comes on top.
    """

    push: FloatArray
    """U, (n, p)."""
    offset: FloatArray
    """w, (p,)."""

    def through(self, change: FloatArray) -> float:
        """Derivative of L for a change of the values on the training rows, (n, p)."""
        return -float(np.vdot(self.push, change))


def kinks_of(
    problem: Problem, dual: FloatArray, residual: FloatArray, step: float, *, smoothed: bool
) -> Kinks:
    """Rows whose dual vectors move with their residuals, and how stiffly: c_i J_i."""
    anchor = np.zeros_like(dual) if smoothed else dual
    jacobian = problem.loss.conjugate_prox_jacobian(anchor + step * residual, step)
    rows = np.flatnonzero(jacobian.reshape(len(jacobian), -1).any(axis=1))
    jacobian = jacobian[rows]
    if not smoothed:
        jacobian = _unsmoothed(jacobian)
    return Kinks(rows, (jacobian.T * (step * problem.weight[rows])).T)


def _unsmoothed(jacobian: FloatArray) -> FloatArray:
    """(I - P')⁻¹ P', with a large number for infinity."""
    if jacobian.ndim == 2:
        return np.asarray(jacobian / (1.0 - jacobian + 1.0 / _STIFF))
    values, bases = np.linalg.eigh(jacobian)
    values = values / (1.0 - values + 1.0 / _STIFF)
    return np.asarray((bases * values[:, None, :]) @ bases.transpose(0, 2, 1))


def adjoint(problem: Problem, kinks: Kinks, values: FloatArray, total: FloatArray) -> Adjoint:
    """Solve with the matrix of the kinks; see :class:`Adjoint` for ``values`` q and ``total`` σ.

    An offset that no kink holds does not move.
    """
    p = problem.n_outputs
    rows, vectors = square_roots(*kinks)
    push = np.zeros((problem.n_rows, p))
    if len(rows) == 0:
        return Adjoint(push, np.zeros(p))
    factor = cholesky(problem.design.functions(rows, vectors).fill, len(rows))
    pulled = np.einsum("ip,ip->i", values[rows], vectors)
    offset = np.zeros(p)
    if problem.fit_intercept:
        solved = solve_cholesky(factor, np.column_stack([vectors, pulled]))
        square = vectors.T @ solved[:, :p]
        right = vectors.T @ solved[:, p] - total
        offset = np.asarray(np.linalg.lstsq(square, right, rcond=1e-12)[0], float)
        sizes = solved[:, p] - solved[:, :p] @ offset
    else:
        sizes = solve_cholesky(factor, pulled)
    np.add.at(push, rows, sizes[:, None] * vectors)
    return Adjoint(push, offset)


__all__ = ["Adjoint", "adjoint", "kinks_of"]
