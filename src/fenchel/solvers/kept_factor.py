r"""Systems of Newton's method one after another, solved with the factor of an earlier one.

With a row K(·, x_i) u of U for each kink, the system I + U Uᵀ of a fit is close to that of the
fit before: kernel and alpha have moved a little, and some kinks are others. The inverse for the
kernel of before and the kinks of now is known exactly,

.. math:: \begin{pmatrix} M & W \\ W^\top & C \end{pmatrix}^{-1},

from the factor of M: W has a column of U Uᵀ for each kink that is new, and a unit vector for each
that is gone, whose unknown the border holds at zero. In single precision it is what conjugate
gradients are preconditioned by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.design.tiled import factor_lower
from fenchel.problem import Problem

LEAST_KINKS = 1500
"""Unknowns from which on a factor costs more than some steps of conjugate gradients."""
_FEW_STEPS, _MOST_STEPS = 7, 20  # after more, the next system is factored; after most, this one
_MOST_CHANGED = 300  # kinks
_SAME = 1e-9  # relative change of a stiffness that is none

Solve = Callable[[FloatArray], FloatArray]
"""From right sides (k, m) to solutions."""


class Unknowns(NamedTuple):
    """The kinks of a problem; each concerns one output of one row."""

    problem: Problem
    rows: IntArray
    outputs: IntArray
    sizes: FloatArray
    """u, of the output."""

    @classmethod
    def of(cls, problem: Problem, rows: IntArray, vectors: FloatArray) -> Unknowns:
        """Return the kinks of vectors (k, p) that have a single entry."""
        outputs = np.abs(vectors).argmax(axis=1)
        return cls(problem, rows, outputs, vectors[np.arange(len(rows)), outputs])

    @property
    def keys(self) -> IntArray:
        """Unique number of the row and output of each kink."""
        return self.rows * self.problem.n_outputs + self.outputs

    @property
    def vectors(self) -> FloatArray:
        """u, (k, p)."""
        found = np.zeros((len(self.rows), self.problem.n_outputs))
        found[np.arange(len(self.rows)), self.outputs] = self.sizes
        return found

    def some(self, which: IntArray) -> Unknowns:
        """Return some of the kinks."""
        return Unknowns(self.problem, self.rows[which], self.outputs[which], self.sizes[which])

    def against(self, others: Unknowns) -> FloatArray:
        """Return U Uᵀ between these kinks and others, (k, m), with the kernel of this problem."""
        design = self.problem.design
        coupled = design.output_matrix[np.ix_(self.outputs, others.outputs)]
        values = design.kernel_values.block(self.rows, others.rows)
        values *= coupled
        values *= self.sizes[:, None]
        values *= others.sizes
        return values

    def times(self, right: FloatArray, kernel_times: Solve | None = None) -> FloatArray:
        """Return (I + U Uᵀ) times (k, m); ``kernel_times`` optionally multiplies by K."""
        design, m = self.problem.design, right.shape[1]
        n, p = self.problem.n_rows, self.problem.n_outputs
        push = np.zeros((p, n, m))
        push[self.outputs, self.rows] = self.sizes[:, None] * right
        mixed = np.tensordot(push, design.output_matrix, (0, 1)).reshape(n, m * p)
        product = design.kernel_values.times if kernel_times is None else kernel_times
        image = product(mixed).reshape(n, m, p)
        return right + self.sizes[:, None] * image[self.rows, :, self.outputs]


class _Factor(NamedTuple):
    """What an earlier system was, and its factor."""

    unknowns: Unknowns
    lower: AnyArray

    def solve(self, right: AnyArray) -> AnyArray:
        """In single precision."""
        return np.asarray(lapack.spotrs(self.lower, right, lower=1)[0])

    def for_kinks(self, now: Unknowns) -> Solve | None:
        """The inverse for other kinks and the kernel of then; None where too many are others."""
        then = self.unknowns
        by_alpha = np.sqrt(now.problem.alpha / then.problem.alpha)
        as_then = now._replace(problem=then.problem, sizes=now.sizes * by_alpha)
        _, mine, theirs = np.intersect1d(now.keys, then.keys, return_indices=True)
        stayed = np.abs(as_then.sizes[mine] - then.sizes[theirs]) <= _SAME * then.sizes[theirs]
        mine, theirs = mine[stayed], theirs[stayed]
        new = np.setdiff1d(np.arange(len(now.rows)), mine, assume_unique=True)
        gone = np.setdiff1d(np.arange(len(then.rows)), theirs, assume_unique=True)
        if len(new) + len(gone) > _MOST_CHANGED:
            return None
        border, corner = self._border(as_then.some(new), gone)
        solved = self.solve(border) if border.size else border
        inverse = np.linalg.inv(corner - border.T @ solved)

        def solve(right: FloatArray) -> FloatArray:
            inner = np.zeros((len(self.lower), right.shape[1]), np.float32, order="F")
            inner[theirs] = right[mine]
            left = -np.asarray(solved.T @ inner, np.float64)
            left[: len(new)] += right[new]
            beside = inverse @ left
            found = np.empty_like(right)
            found[mine] = self.solve(inner - border @ beside.astype(np.float32))[theirs]
            found[new] = beside[: len(new)]
            return found

        return solve

    def _border(self, new: Unknowns, gone: IntArray) -> tuple[AnyArray, FloatArray]:
        """W and C of kinks that are new and of those that are gone."""
        m, size = len(new.rows), len(new.rows) + len(gone)
        border = np.zeros((len(self.lower), size), np.float32, order="F")
        border[:, :m] = self.unknowns.against(new)
        border[gone, m + np.arange(len(gone))] = 1.0
        corner = np.zeros((size, size))
        corner[:m, :m] = np.eye(m) + new.against(new)
        return border, corner


class KeptFactor:
    """Solver of a sequence of systems, which reuses a factor as long as that saves time."""

    def __init__(self) -> None:
        self._factor: _Factor | None = None

    def solve(self, unknowns: Unknowns, right: FloatArray, tol: float) -> FloatArray | None:
        """Return the solution (k, m), to ``tol`` in the norm of the preconditioner.

        Returns None if single precision cannot hold the system.
        """
        if self._factor is not None:
            inverse = self._factor.for_kinks(unknowns)
            if inverse is not None:
                solved, steps = conjugate_gradients(
                    unknowns.times, inverse, right, tol, _MOST_STEPS
                )
                if steps > _FEW_STEPS:
                    self._factor = None
                if steps < _MOST_STEPS:
                    return solved
            self._factor = None  # its memory is free before there is another one
        self._factor = _factored(unknowns)
        if self._factor is None:
            return None
        inverse = self._factor.for_kinks(unknowns)
        assert inverse is not None
        solved, steps = conjugate_gradients(unknowns.times, inverse, right, tol, _MOST_STEPS)
        return solved if steps < _MOST_STEPS else None


def _factored(unknowns: Unknowns) -> _Factor | None:
    """The factor in single precision, if there is one."""
    matrix: AnyArray = np.empty((len(unknowns.rows),) * 2, np.float32, order="F")
    design = unknowns.problem.design
    design.functions(unknowns.rows, unknowns.vectors).fill(matrix)
    return _Factor(unknowns, matrix) if factor_lower(matrix) else None


def conjugate_gradients(
    times: Solve, precondition: Solve, right: FloatArray, tol: float, most: int
) -> tuple[FloatArray, int]:
    """Return solutions for each right-hand side, and the number of steps: ``most`` on failure."""
    found = precondition(right)
    goal = tol**2 * np.einsum("ij,ij->j", right, found)
    residual = right - times(found)
    direction, before = np.zeros_like(right), np.ones(right.shape[1])
    for step in range(most):
        pulled = precondition(residual)
        square = np.einsum("ij,ij->j", residual, pulled)
        if (square < 0.0).any() or (goal < 0.0).any():
            break
        if (square <= goal).all():
            return found, step
        direction = pulled + (square / before) * direction
        image = times(direction)
        bend = np.einsum("ij,ij->j", direction, image)
        size = np.divide(square, bend, out=np.zeros_like(bend), where=bend > 0.0)
        found += size * direction
        residual -= size * image
        before = np.where(square > 0.0, square, 1.0)
    return found, most
