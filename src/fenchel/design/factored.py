"""A Cholesky factor that is stored in the array of the factored matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, lapack

from fenchel._clock import check_time
from fenchel._compiling import njit
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel.design.tiled import factor_lower, inverse_lengths, symmetric_product

_TILE = 64


class Factored:
    r"""Cholesky factor of K + diag(d), stored in the array of K.

    .. math:: K + \mathrm{diag}(d) = L L^\top

    The factor uses one triangle of the array. K remains in the other triangle, so products with K
    are still available. :meth:`restore` restores K. No second (n, n) array is allocated.

    Parameters
    ----------
    values : ndarray of shape (n, n)
        K, symmetric and in C order; overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Factored
    >>> factor = Factored(np.array([[2.0, 1.0], [1.0, 2.0]])).factor(np.ones(2))
    >>> factor.solve(np.array([[4.0], [4.0]]))[:, 0]
    array([1., 1.])
    """

    def __init__(self, values: FloatArray) -> None:
        self._values = values
        self.diagonal = values.diagonal().copy()
        self.shift = np.zeros(len(values))

    @property
    def size(self) -> int:
        """Number of entries of the array."""
        return self._values.size

    def factor(self, shift: FloatArray) -> Factored:
        """Factor K + diag(shift), shift (n,); raises LinAlgError if not positive definite."""
        check_time(0.7 * len(shift) ** 3)
        self.shift = shift
        np.einsum("ii->i", self._values)[:] += shift
        try:
            if not factor_lower(self._values.T):
                raise LinAlgError("the matrix is not positive definite")
        except BaseException:  # also where the time is over in the middle of it
            self.restore()
            raise
        return self

    def restore(self) -> None:
        """Restore K in the array of the factor."""
        _mirror(self._values)
        np.einsum("ii->i", self._values)[:] = self.diagonal

    def product(self, right: FloatArray) -> FloatArray:
        """Return K @ right, (n, p)."""
        return self.diagonal[:, None] * right + symmetric_product(self._values, right)

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve (K + diag(d)) u = right for u (n, p), with one step of iterative refinement."""
        solution = self.solve_once(right)
        left = right - self.product(solution) - self.shift[:, None] * solution
        return solution + self.solve_once(left)

    def solve_once(self, right: FloatArray) -> FloatArray:
        """Solve as :meth:`solve`, without refinement."""
        with threads_that_pay(0):
            return np.asarray(lapack.dpotrs(self._values.T, right, lower=1)[0])

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse of K + diag(d), (n,)."""
        return inverse_lengths(self._values.T)

    def inverse(self) -> FloatArray:
        """Return the inverse of K + diag(d), (n, n), in a third of the time of solving for it."""
        found = np.array(self._values.T, order="C")
        with threads_that_pay(0):
            lapack.dpotri(found.T, lower=0, overwrite_c=1)
        _mirror(found)
        return found

    def inverse_among(self, rows: IntArray) -> FloatArray:
        """Return the entries of the inverse of K + diag(d) for some rows, (m, m)."""
        return self.solve_once(np.eye(len(self._values))[:, rows])[rows]


@njit(cache=True, nogil=True)
def _mirror(values: FloatArray) -> None:
    """Copy what is below the diagonal to above it, in tiles that stay in the cache."""
    n = values.shape[0]
    for i in range(0, n, _TILE):
        for j in range(0, i + 1, _TILE):
            for a in range(i, min(i + _TILE, n)):
                for b in range(j, min(j + _TILE, a)):
                    values[b, a] = values[a, b]
