r"""Derivatives of a fit with respect to all its inputs, by one linear solve.

At the solution, dual vectors are :math:`\beta_i = P(\beta_i + t r_i)` with P the prox of t ℓ*, or
:math:`\beta_i = P(t r_i)` where the loss is smoothed, and residuals are
:math:`r = y - K (c \beta) B - b`. Where P is differentiable, with a change :math:`\dot f` of
predictions at fixed dual vectors,

.. math:: \mathrm{d}\beta_i = -J_i\, \mathrm{d}f_i, \qquad
          \mathrm{d}f = \dot f + K (c\, \mathrm{d}\beta) B + \mathrm{d}b, \qquad
          \sum_i c_i\, \mathrm{d}\beta_i = 0,

where J_i is t P'(t r_i) for a smoothed loss and t (I - P')⁻¹ P' for the loss itself: infinite
stiffness at a kink. The matrix is that of a Newton step; it is symmetric, so one solve with the
derivatives of any smooth function of predictions gives them in all parameters at once:
:class:`fenchel.solvers.Sensitivity` says which.

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
from fenchel.solvers.kept_factor import KeptFactor
from fenchel.solvers.newton_system import Kinks, cholesky_of, solve_cholesky, solver_in_kinks

_STIFF = 1e9  # of a kink, in place of infinity: the share of a change that is not held
_HELD = 1e-12  # least rcond at which kinks hold an offset
_FEW = 2000  # kinks whose system is solved in them even where weights are fewer: to more digits


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


def stiffness(problem: Problem, jacobian: FloatArray, step: float, *, smoothed: bool) -> Kinks:
    """Rows whose dual vectors change with their residuals, and their stiffness, from P'."""
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


class _InKinks:
    """With D = Σ v vᵀ and U = Σ z v: I + V K V."""

    def __init__(self, problem: Problem, kinks: Kinks, kept: KeptFactor | None) -> None:
        self.problem = problem
        self.rows, self.vectors = square_roots(*kinks)
        self.solver = solver_in_kinks(problem, kinks, self.rows, self.vectors, kept)

    def solve(self, values: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        p, vectors = self.problem.n_outputs, self.vectors
        push, offset = np.zeros((self.problem.n_rows, p)), np.zeros(p)
        if len(self.rows) == 0:
            return push, offset
        pulled = np.einsum("ip,ip->i", values[self.rows], vectors)
        if self.problem.fit_intercept:
            solved = self.solver(np.column_stack([vectors, pulled]))
            square = vectors.T @ solved[:, :p]
            offset = _held(square, vectors.T @ solved[:, p] - total)
            sizes = solved[:, p] - solved[:, :p] @ offset
        else:
            sizes = self.solver(pulled[:, None])[:, 0]
        np.add.at(push, self.rows, sizes[:, None] * vectors)
        return push, offset


class _InWeights:
    """With W the weights of the function of U: (I + Φᵀ D Φ) W = Φᵀ D (q - w)."""

    def __init__(self, problem: Problem, kinks: Kinks, hessian: FloatArray) -> None:
        self.problem, self.kinks, self.hessian = problem, kinks, hessian
        self.size = problem.design.zero().size
        inner = hessian[: self.size, : self.size]
        np.einsum("ii->i", inner)[...] += 1.0
        self.factor = cholesky_of(inner)

    def solve(self, values: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        design, p = self.problem.design, self.problem.n_outputs
        pushed = self._stiff(values)
        right, offset = design.link(pushed).ravel(), np.zeros(p)
        if self.problem.fit_intercept:
            border = self.hessian[: self.size, self.size :]
            solved = solve_cholesky(self.factor, np.column_stack([border, right]))
            square = self.hessian[self.size :, self.size :] - border.T @ solved[:, :p]
            offset = _held(square, pushed.sum(axis=0) - total - border.T @ solved[:, p])
            inner = solved[:, p] - solved[:, :p] @ offset
        else:
            inner = solve_cholesky(self.factor, right)
        image = design.values(inner.reshape(design.zero().shape))
        return self._stiff(values - image - offset), offset

    def _stiff(self, values: FloatArray) -> FloatArray:
        """D times values."""
        rows, jacobian = self.kinks
        pushed = np.zeros((self.problem.n_rows, self.problem.n_outputs))
        mine = values[rows]
        full = jacobian.ndim == 3
        pushed[rows] = np.einsum("ijk,ik->ij", jacobian, mine) if full else jacobian * mine
        return pushed


System = _InKinks | _InWeights
r"""The symmetric system of some kinks, D the block diagonal of c_i J_i.

``solve`` returns U (n, p) and w (p,) for values q (n, p) and a total σ (p,):

.. math:: U = D\,(q - K U B - w), \qquad \sum_i U_i = \sigma

w = 0 without intercept. An offset that no kink holds does not move.
"""


def system_of(problem: Problem, kinks: Kinks, kept: KeptFactor | None = None) -> System:
    """The system in one unknown for each kink, or in the weights if these are fewer."""
    if kinks.size > max(_FEW, problem.design.zero().size + problem.n_outputs):
        hessian = problem.design.hessian(kinks.rows, kinks.jacobian)
        if hessian is not None:
            return _InWeights(problem, kinks, hessian)
    return _InKinks(problem, kinks, kept)


def _held(square: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(square, right, rcond=_HELD)[0], float)


def adjoint(
    problem: Problem,
    kinks: Kinks,
    values: FloatArray,
    total: FloatArray,
    kept: KeptFactor | None = None,
) -> Adjoint:
    """Solve with the matrix of the kinks; see :class:`Adjoint` for ``values`` q and ``total`` σ.

    An offset without any kink does not change.
    """
    return Adjoint(*system_of(problem, kinks, kept).solve(values, total))
