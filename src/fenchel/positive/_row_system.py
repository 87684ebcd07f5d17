"""Newton steps in the dual points themselves: exact where strengths are small, for few rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel._typing import FloatArray
from fenchel.positive._cone import Spectra
from fenchel.positive._system import PairColumns
from fenchel.positive.problem import PSDProblem

_FEW = 400  # dual entries that are worth it anyhow: 300 cost as much as 80 columns
_MOST_FEATURES = 64  # all products of two of them are made


def takes_rows(problem: PSDProblem) -> bool:
    """Whether no conditions, few features, and dual entries fewer than columns of Q, or few."""
    if problem.constraints or max(problem.cone.sizes) > _MOST_FEATURES:
        return False
    width = sum(line.features.shape[1] for line in problem.linear)
    for part, square in zip(problem.psd, problem.squares, strict=True):
        r = part.features.shape[1]
        width += r * (r + 1) // 2 if square is None else square.features.shape[1]
    return len(problem.weight) * problem.n_outputs <= max(width, _FEW)


class RowSystem:
    r"""Solves the system of a Newton step without conditions, in dual points and offsets.

    .. math:: \begin{pmatrix} H / c + Q Q^\top & -O \\ O^\top & 0 \end{pmatrix}
              \begin{pmatrix} c\, \delta \\ b \end{pmatrix}
              = \begin{pmatrix} r \\ -O^\top c\, \beta \end{pmatrix}

    H is diagonal, and Q as in :class:`Curvature`. The matrix is scaled to ones besides
    :math:`Q Q^\top`, and factored as it is: what a step gains by it is positive in spite of
    rounding, which differences of solutions in the coordinates of Q are not where alpha is small.
    """

    def __init__(self, problem: PSDProblem, spectra: Spectra, hessian: FloatArray) -> None:
        self.problem = problem
        self.root = np.sqrt(problem.weight[:, None] / hessian)
        scale = self.root.T.ravel()
        matrix = self._gram(spectra, hessian.shape[1])
        matrix *= scale[:, None]
        matrix *= scale
        matrix.flat[:: len(matrix) + 1] += 1.0
        self.factor, failed = dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError(f"a Newton step has no Cholesky factor ({failed})")
        self.border = (self.root.T[:, :, None] * problem.outward[:, None]).reshape(len(scale), -1)
        self.reduced = self._solved(self.border)

    def _gram(self, spectra: Spectra, p: int) -> FloatArray:
        """Q Qᵀ, output by output, (p n, p n)."""
        problem, n, along = self.problem, len(self.root), self.problem.directions
        grams = np.empty((len(along), n, n))
        for k, part in enumerate(problem.psd):
            block = PairColumns(spectra, k, spectra.pairs(k), part).columns(slice(None))
            np.matmul(block.T, block, out=grams[k])
        for k, gram in enumerate(problem.linear_grams, start=len(problem.psd)):
            grams[k] = gram
        both = (along[:, :, None] * along[:, None, :]).reshape(len(along), -1)
        blocks = (both.T @ grams.reshape(len(along), -1)).reshape(p, p, n, n)
        return blocks.swapaxes(1, 2).reshape(p * n, p * n)

    def _solved(self, right: FloatArray) -> FloatArray:
        return right if not right.size else dpotrs(self.factor, right, lower=1)[0]

    def solve(self, rest: FloatArray, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """δ (n, p) and b (m,) for the right-hand sides r and β."""
        inner = self._solved((self.root * rest).T.ravel())
        offset: FloatArray = np.zeros(self.border.shape[1])
        weight = self.problem.weight
        if len(offset):
            missing = self.problem.outward.T @ (weight @ dual) + self.border.T @ inner
            offset = np.asarray(-np.linalg.solve(self.border.T @ self.reduced, missing))
            inner = np.asarray(inner + self.reduced @ offset)
        change = self.root * inner.reshape(rest.shape[1], -1).T / weight[:, None]
        return change, offset
