"""Newton steps of many rows and many pairs of features, by conjugate gradients."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from fenchel._clock import check_time
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.positive._kinks import KinkSystem, RowGrams
from fenchel.positive._system import (
    Curvature,
    NewtonSystem,
    apply_blocks,
    between_outputs,
    operations,
    roots_of,
)
from fenchel.solvers.newton_system import cholesky_of

# Coordinates of the sample. On 8000 rows of 25 columns 500 take a quarter more iterations, and
# 2000 a quarter less, but more time for the factor.
_ROWS = 1000
_LEFT_OUT = 0.1  # of products beside S
_NEAR, _PRECISE = 1e-2, 1e-8  # relative residuals, without and with conditions or offsets. What is
# missing without them is found by the next step: with 1e-4 8000 rows of 25 columns take 1.4 times
# as long, with 1e-6 1.5 times
_ITERATIONS, _MOST_ITERATIONS = 30, 200


class SampledSystem(NewtonSystem):
    """The same system, solved with that of a sample of the rows as a preconditioner.

    Its products with Q take two products of the features with small matrices. Neither Q nor any
    matrix of its rows or columns is made.
    """

    def __init__(
        self, curvature: Curvature, active: IntArray, blocks: FloatArray, ridge: float
    ) -> None:
        self.curvature, self.active, self.blocks = curvature, active, blocks
        outward = curvature.problem.outward
        m = outward.shape[1]
        self.tol = _PRECISE if m + len(curvature.rows) else _NEAR
        count = max(1, min(len(active), _ROWS // blocks.shape[1]))
        some = np.sort(np.random.RandomState(0).permutation(len(active))[:count])
        self.parts = [part.some(active[some]) for part in curvature.parts]
        root = np.sqrt(len(active) / count) * roots_of(blocks[some])
        self.along = [root @ along for along in curvature.directions]
        size = count * root.shape[1]
        check_time(float(size) ** 3)
        matrix = np.eye(size)
        for part, along in zip(self.parts, self.along, strict=True):
            products = along[:, :, None, None] * part.gram(_LEFT_OUT)[:, None, :, None] * along
            matrix += products.reshape(size, size)
        self.factor = cholesky_of(matrix), True
        crossed = np.empty((curvature.width, m))
        for j, column in enumerate(outward.T):
            crossed[:, j] = -self._pulled(np.broadcast_to(column, (len(active), len(column))))
        self._set_border(crossed, between_outputs(outward, blocks) + ridge * np.eye(m))

    @staticmethod
    def pays(curvature: Curvature, count: int) -> bool:
        """Whether it takes less time than a factor of the system, for so many coordinates."""
        problem, width = curvature.problem, curvature.width
        few = min(count, width) <= 2 * _ROWS
        if few or any(part.combinations is not None for part in problem.psd):
            return False
        features = [part.features for part in problem.psd]
        features += [line.features for line in problem.linear]
        product = 4.0 * sum(float(each.size) * each.shape[1] for each in features)
        return operations(width, count) > 2.0 * _ITERATIONS * product

    def _pulled(self, change: FloatArray) -> FloatArray:
        """Qᵀ S of a change of the active rows."""
        whole = np.zeros((len(self.curvature.problem.weight), change.shape[1]))
        whole[self.active] = apply_blocks(self.blocks, change)
        whole /= self.curvature.problem.weight[:, None]
        return self.curvature.pull(whole)

    def _times(self, w: FloatArray) -> FloatArray:
        """I + QᵀSQ times w."""
        check_time()
        return np.asarray(w + self._pulled(self.curvature.predict(w)[self.active]))

    def _nearly(self, w: FloatArray) -> FloatArray:
        """The inverse of the same of the sample, times w."""
        slices = self.curvature.slices
        values = np.zeros_like(self.along[0])
        for part, along, where in zip(self.parts, self.along, slices, strict=True):
            values += part.predict(w[where])[:, None] * along
        inner = cho_solve(self.factor, values.ravel(), check_finite=False).reshape(values.shape)
        pulled = [
            part.pull(np.einsum("ij,ij->i", along, inner))
            for part, along in zip(self.parts, self.along, strict=True)
        ]
        return np.asarray(w - np.concatenate(pulled))

    def _main(self, right: FloatArray) -> FloatArray:
        if right.ndim == 2:
            return np.array([self._main(column) for column in right.T]).T.reshape(right.shape)
        shape = len(right), len(right)
        found, _ = cg(
            LinearOperator(shape, self._times, dtype=np.float64),
            right,
            rtol=self.tol,
            maxiter=_MOST_ITERATIONS,
            M=LinearOperator(shape, self._nearly, dtype=np.float64),
        )
        return np.asarray(found)


def system_of(
    curvature: Curvature, active: IntArray | AnyArray, blocks: FloatArray, ridge: float
) -> NewtonSystem:
    """The system of a Newton step, solved in the way that takes the least time."""
    if SampledSystem.pays(curvature, len(active) * blocks.shape[1]):
        return SampledSystem(curvature, active, blocks, ridge)
    grams = RowGrams(curvature)
    if curvature.by_differences and len(active) == len(blocks) and grams.smaller(blocks):
        return KinkSystem(grams, blocks, ridge)
    return NewtonSystem(curvature, active, blocks, ridge)
