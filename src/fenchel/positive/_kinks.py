"""Newton steps in the coordinates with a kink: few unknowns where losses are piecewise linear."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from fenchel._clock import check_time
from fenchel._typing import FloatArray, IntArray
from fenchel.positive._system import Curvature, NewtonSystem
from fenchel.solvers.newton_system import cholesky_of


class RowGrams:
    """For each part the matrix T = Q_k Q_kᵀ over all rows, made once for a Hessian."""

    def __init__(self, curvature: Curvature) -> None:
        self.curvature = curvature
        self._grams: list[FloatArray] | None = None

    def smaller(self, jacobian: FloatArray) -> bool:
        """Whether they fit, and there are fewer kinks than columns."""
        fit = jacobian.ndim == 2 and self.curvature.in_grams
        return fit and int(np.count_nonzero(jacobian)) < self.curvature.width

    def between(self, rows: IntArray, outputs: IntArray) -> FloatArray:
        """Q Qᵀ between coordinates (row, output)."""
        if self._grams is None:
            n = len(self.curvature.problem.weight)
            check_time(2.0 * n * n * self.curvature.width)
            self._grams = [part.gram() for part in self.curvature.parts]
        total = np.zeros((len(rows), len(rows)))
        pairs = np.ix_(rows, rows)
        for gram, along in zip(self._grams, self.curvature.directions, strict=True):
            chosen = along[outputs]
            touched = np.flatnonzero(chosen)
            if len(touched) == len(rows):
                total += (chosen[:, None] * gram[pairs]) * chosen
            elif len(touched):
                own, some = rows[touched], chosen[touched]
                total[np.ix_(touched, touched)] += (some[:, None] * gram[np.ix_(own, own)]) * some
        return total


class KinkSystem(NewtonSystem):
    """The same system for a diagonal S, solved in the coordinates where S is not zero."""

    def __init__(self, grams: RowGrams, diagonal: FloatArray, ridge: float) -> None:
        curvature = self.curvature = grams.curvature
        problem = curvature.problem
        self.weight = problem.weight[:, None]
        self.shape = diagonal.shape
        self.where = np.nonzero(diagonal)
        self.root = np.sqrt(diagonal[self.where])
        check_time(len(self.root) ** 3)
        matrix = grams.between(*self.where)
        matrix *= self.root[:, None] * self.root
        matrix.flat[:: len(matrix) + 1] += 1.0
        self.factor = cholesky_of(matrix), True
        outward = problem.outward
        m = outward.shape[1]
        pushed = diagonal[:, :, None] * outward
        crossed = np.empty((curvature.width, m))
        for j in range(m):
            crossed[:, j] = -curvature.pull(pushed[:, :, j] / self.weight)
        self._set_border(crossed, np.einsum("ijk,jl->kl", pushed, outward) + ridge * np.eye(m))

    def _main(self, right: FloatArray) -> FloatArray:
        if right.ndim == 2:
            return np.array([self._main(column) for column in right.T]).T
        inner = np.zeros(self.shape)
        values = self.root * self.curvature.predict(right)[self.where]
        inner[self.where] = self.root * cho_solve(self.factor, values, check_finite=False)
        return np.asarray(right - self.curvature.pull(inner / self.weight))
