"""Inner products and distances of the rows of a sparse array."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.gaussian_process.kernels as sk
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import AnyArray, FloatArray

_CANCELLED = 1e-8  # share of ‖x‖² + ‖y‖² below which a distance has lost digits
_PAIRS = 2**14  # whose differences are stored at a time
_SUMS = (sk.Sum, sk.Product, sk.ConstantKernel)


class SparsePoints:
    """Rows of a sparse array, used in place of a dense array of shape (n, d).

    Parameters
    ----------
    matrix : sparse array of shape (n, d)
        The rows.

    Attributes
    ----------
    shape : (int, int)
        (n, d).
    squares : ndarray of shape (n,)
        Squared lengths of the rows.

    Examples
    --------
    >>> from scipy import sparse
    >>> from fenchel.kernels import Linear, SparsePoints
    >>> points = SparsePoints(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> Linear()(points)
    array([[4., 0.],
           [0., 1.]])
    """

    def __init__(self, matrix: Any) -> None:
        rows = sparse.csr_array(matrix, dtype=np.float64)
        rows.sum_duplicates()  # products then add up in one order, whichever row comes first
        self.shape = int(rows.shape[0]), int(rows.shape[1])
        self.data, self.indices, self.indptr = rows.data, rows.indices, rows.indptr
        self.squares: FloatArray = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64)

    @property
    def matrix(self) -> Any:
        """The rows as a scipy sparse array."""
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return len(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> SparsePoints:
        return SparsePoints(self.matrix[rows])

    def __array__(self, *args: Any, **options: Any) -> AnyArray:
        raise TypeError("X must be a dense array for this kernel, got a sparse one")

    def copy(self) -> SparsePoints:
        """Return a copy of the rows."""
        return SparsePoints(self.matrix.copy())

    def toarray(self) -> FloatArray:
        """Return the rows as a dense array."""
        return np.asarray(self.matrix.toarray())

    def over(self, scale: float | FloatArray) -> SparsePoints:
        """Return the rows divided by a length scale: a number, or one for each column."""
        factors = np.broadcast_to(1.0 / np.asarray(scale), self.shape[1])
        return SparsePoints(self.matrix @ sparse.diags_array(factors))

    def products(self, others: SparsePoints) -> FloatArray:
        """Return the inner products with other rows, (n, m)."""
        return np.asarray((self.matrix @ others.matrix.T).toarray())

    def squared_distances(self, others: SparsePoints) -> FloatArray:
        """Return squared distances from other rows, (n, m); for close rows from differences."""
        total = self.squares[:, None] + others.squares
        squares = total - 2.0 * self.products(others)
        first, second = np.nonzero(squares < _CANCELLED * total)
        squares[first, second] = self.squares_of_pairs(first, others, second)
        return squares

    def squares_of_pairs(
        self, first: AnyArray, others: SparsePoints, second: AnyArray
    ) -> FloatArray:
        """Return the squared distances between these rows and ``others`` for given pairs."""
        mine, theirs, squares = self.matrix, others.matrix, np.empty(len(first))
        for start in range(0, len(first), _PAIRS):
            some = slice(start, start + _PAIRS)
            difference = mine[first[some]] - theirs[second[some]]
            squares[some] = difference.multiply(difference).sum(axis=1)
        return squares

    def deviations(self, weight: FloatArray) -> FloatArray:
        """Return the weighted standard deviation of each column; 1 for constant columns."""
        share, columns = weight / weight.sum(), self.matrix.tocsc()
        mean = columns.T @ share
        places = np.repeat(np.arange(self.shape[1]), np.diff(columns.indptr))
        of_entry = share[columns.indices]
        off = columns.data - mean[places]
        variance = np.bincount(places, of_entry * off**2, self.shape[1])
        absent = 1.0 - np.bincount(places, of_entry, self.shape[1])
        variance += np.maximum(absent, 0.0) * mean**2
        constant = self._ptp(weight) == 0.0
        return np.where(constant | (variance == 0.0), 1.0, np.sqrt(variance))

    def ranges(self, weight: FloatArray) -> FloatArray:
        """Return the range of each column over rows of positive weight; 1 for constant ones."""
        found = self._ptp(weight)
        return np.where(found > 0.0, found, 1.0)

    def _ptp(self, weight: FloatArray) -> FloatArray:
        kept = self.matrix[np.flatnonzero(weight)]
        return np.asarray((kept.max(axis=0) - kept.min(axis=0)).toarray().ravel())


def over(X: Any, scale: float | FloatArray) -> Any:
    """Return the rows divided by a length scale."""
    return X.over(scale) if isinstance(X, SparsePoints) else X / scale


def products(X: Any, Y: Any) -> FloatArray:
    """Return the inner products of dense or sparse rows."""
    return X.products(Y) if isinstance(X, SparsePoints) else np.matmul(X, Y.T)


def stacked(first: Any, second: Any) -> Any:
    """Stack dense or sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import stacked
    >>> stacked(np.array([[0.0, 1.0]]), np.array([[2.0, 0.0]]))
    array([[0., 1.],
           [2., 0.]])
    """
    if isinstance(first, SparsePoints):
        return SparsePoints(sparse.vstack([first.matrix, second.matrix], format="csr"))
    return np.concatenate([first, second])


def takes_sparse(kernel: Kernel) -> bool:
    """Whether a kernel needs only inner products and distances of rows, and thus takes sparse X.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, Linear, WithRanks, takes_sparse
    >>> takes_sparse(Gaussian() + Linear()), takes_sparse(WithRanks(Gaussian()))
    (True, False)
    """
    if isinstance(kernel, _SUMS):
        parts = [getattr(kernel, name) for name in ("k1", "k2") if hasattr(kernel, name)]
        return all(map(takes_sparse, parts))
    return bool(getattr(kernel, "of_whole_rows", False))
