"""Design of operator-valued kernels, with a matrix of features for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Design, Functions, Rows, square_roots


class Operator(Design):
    r"""Design with a matrix of features :math:`\Phi_i` (p, r) for each row.

    .. math:: h(x_i) = \Phi_i w, \qquad \|h\|^2 = \|w\|^2, \qquad
              K(x_i, x_k) = \Phi_i \Phi_k^\top

    Parameters
    ----------
    features : ndarray of shape (n, p, r)
        The matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Operator
    >>> design = Operator(np.ones((5, 2, 3)))  # 5 rows, 2 outputs, 3 features
    >>> design.values(np.array([1.0, 2.0, 3.0])).shape
    (5, 2)
    """

    refusal = "needs a scalar kernel, with coupling for the outputs; solver='newton' takes any"

    def __init__(self, features: FloatArray) -> None:
        self.matrices = features
        self.n_rows, self.n_outputs, self._rank = features.shape
        self.width = self.n_outputs * self._rank

    def zero(self) -> FloatArray:
        return np.zeros(self._rank)

    def directions(self, weights: FloatArray) -> FloatArray:
        """Return the weights, (r,)."""
        return weights

    def predict(
        self, rows: Rows, directions: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        return np.matmul(self.matrices[rows], directions, out=out)

    def pull(self, rows: Rows, push: FloatArray) -> FloatArray:
        """Return Σ Φ_iᵀ push_i, (r,)."""
        return np.dot(push.ravel(), self.matrices[rows].reshape(push.size, -1))

    def weights_of(self, pulled: FloatArray) -> FloatArray:
        return pulled

    def functions(self, rows: IntArray, vectors: FloatArray) -> Functions:
        return _Combined(self._combined(rows, vectors))

    def _combined(self, rows: IntArray, vectors: FloatArray) -> FloatArray:
        """Φ_iᵀ u of each row and vector, (k, r)."""
        if np.count_nonzero(vectors) == len(rows) and vectors.any(axis=1).all():
            entry = np.abs(vectors).argmax(axis=1)  # one each: no need to gather all of Φ_i
            return vectors[np.arange(len(rows)), entry][:, None] * self.matrices[rows, entry]
        return np.matmul(vectors[:, None, :], self.matrices[rows])[:, 0]

    def subset(self, rows: IntArray) -> Operator:
        return Operator(self.matrices[rows])

    def left_out(self, push: FloatArray, residual: FloatArray) -> float:
        """Return ``(Σ |push_ij| √E_ij)²``, with E the diagonal (n, p) of rows and outputs."""
        return float(np.vdot(np.abs(push), np.sqrt(residual))) ** 2

    def square_by(self, push: FloatArray, forms: Callable[[FloatArray], FloatArray]) -> float:
        """Return the squared norm from forms of all rows and outputs as one column, (n p, 1)."""
        return float(forms(push.reshape(-1, 1))[0, 0])

    def hessian(self, rows: IntArray, jacobian: FloatArray) -> FloatArray:
        r, p = self._rank, self.n_outputs
        hessian = np.zeros((r + p, r + p))
        chunk = self.blocks.block_rows
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            kinks, vectors = square_roots(rows[part], jacobian[part])
            both = np.hstack([self._combined(kinks, vectors), vectors])
            hessian += both.T @ both
        return hessian

    def matrix(self) -> Any:
        return self.matrices.reshape(self.n_rows * self.n_outputs, -1)

    def diagonal(self) -> FloatArray:
        return np.einsum("ijr,ijr->i", self.matrices, self.matrices) / self.n_outputs


class _Combined:
    """Functions by their weights, (k, r)."""

    def __init__(self, functions: FloatArray) -> None:
        self._functions = functions

    def values(self, weights: FloatArray) -> FloatArray:
        return self._functions @ weights

    def gram(self) -> FloatArray:
        return self._functions @ self._functions.T

    def fill(self, matrix: FloatArray) -> None:
        np.matmul(self._functions, self._functions.T, out=matrix)
        np.einsum("ii->i", matrix)[:] += 1.0

    def weights(self, sizes: FloatArray) -> FloatArray:
        return self._functions.T @ sizes
