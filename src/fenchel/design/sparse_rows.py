"""Centred and weighted rows of a sparse array, available by products only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fenchel._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SparseRows:
    r"""Centred and weighted sparse rows, :math:`\operatorname{diag}(\rho) (X - 1 m^\top)`.

    It has the parts of the interface of an array that algorithms for linear models need:
    ``shape``; ``size``, the number of stored entries; ``@``; and the transpose ``T`` with its
    own ``@``.

    Parameters
    ----------
    matrix : sparse array of shape (n, d)
        X, stored by columns.
    means : ndarray of shape (d,)
        m.
    root : ndarray of shape (n, 1)
        ρ, square roots of weights with mean 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from fenchel.design import SparseRows
    >>> X = sparse.csc_array([[0.0, 2.0], [4.0, 0.0]])
    >>> rows = SparseRows(X, means=np.array([2.0, 1.0]), root=np.ones((2, 1)))
    >>> rows @ np.eye(2)
    array([[-2.,  1.],
           [ 2., -1.]])
    """

    matrix: Any
    means: FloatArray
    root: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        rows, columns = self.matrix.shape
        return int(rows), int(columns)

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return int(self.matrix.nnz)

    @property
    def T(self) -> Transposed:
        """The transpose."""
        return Transposed(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, other: FloatArray) -> FloatArray:
        root = self.root if other.ndim == 2 else self.root[:, 0]
        return np.asarray(root * (self.matrix @ other - self.means @ other))

    def weighted(self, root: FloatArray) -> SparseRows:
        """Return the rows multiplied by these numbers (n, 1)."""
        return SparseRows(self.matrix, self.means, self.root * root)

    def copies(self, columns: IntArray, scales: FloatArray) -> SparseRows:
        """Return some of the columns, each divided by a number."""
        chosen = self.matrix[:, columns] @ sparse.diags_array(1.0 / scales)
        return SparseRows(chosen.tocsc(), self.means[columns] / scales, self.root)


@dataclass(frozen=True, eq=False)
class Transposed:
    """Transpose of sparse rows."""

    rows: SparseRows

    @property
    def shape(self) -> tuple[int, int]:
        """(d, n)."""
        n, d = self.rows.shape
        return d, n

    @property
    def T(self) -> SparseRows:
        """The rows, the transpose of the transpose."""
        return self.rows

    def __matmul__(self, other: FloatArray) -> FloatArray:
        rows = self.rows
        scaled = (rows.root if other.ndim == 2 else rows.root[:, 0]) * other
        taken = np.multiply.outer(rows.means, scaled.sum(axis=0))
        return np.asarray(rows.matrix.T @ scaled - taken)
