"""Kernel matrices of rows, stored in memory; computed ones are in ``fenchel.kernels``."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Design
from fenchel.design.factored import Factored
from fenchel.design.tiled import multiplied

# times the rows whose copy pays for a product with them alone: of one vector, and of several
_GATHERED = 6, 2
_STRIP = 128  # rows of a block at a time


class KernelValues(Protocol):
    """Interface of a Gram matrix K, as :class:`fenchel.design.Gram` uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import KernelValues
    >>> from fenchel.kernels import Computed, Gaussian
    >>> values: KernelValues = Computed(np.array([[0.0], [1.0]]), Gaussian(1.0))
    >>> values.block(np.array([0]), np.array([0, 1])).round(3)
    array([[1.   , 0.607]])
    """

    size: int
    diagonal: FloatArray
    left_factor: Factored | None
    """The factor that is now in the place of stored values, see :meth:`factored`."""

    @property
    def matrix(self) -> FloatArray | None:
        """The matrix K, if it is stored."""
        ...

    def factored(self, shift: FloatArray) -> Factored:
        """Return the factor of K + diag(shift), in the array of K if K is stored."""
        ...

    def restore(self) -> None:
        """Restore stored values that a factor has overwritten."""
        ...

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the kernel values of rows and columns, (k, m)."""
        ...

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return K times vectors (n, p), or its columns at ``rows`` times vectors (k, p)."""
        ...

    @property
    def in_single(self) -> KernelValues:
        """The matrix in single precision, if that saves time."""
        ...

    def subset(self, rows: IntArray) -> KernelValues:
        """Return the matrix of some rows."""
        ...

    def low_rank(self) -> FloatArray | None:
        """Return features (n, r) whose products approximate K, if they are needed."""
        ...


class Stored(KernelValues):
    """Gram matrix stored in memory."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self.size = len(matrix)
        self.diagonal: FloatArray = matrix.diagonal().copy()
        self.left_factor: Factored | None = None

    @property
    def matrix(self) -> FloatArray:
        self.restore()
        return self._matrix

    def factored(self, shift: FloatArray) -> Factored:
        matrix = self.matrix
        if not (matrix.flags.carray and matrix.dtype == np.float64):
            return Factored(np.array(matrix, np.float64, order="C")).factor(shift)
        self.left_factor = Factored(matrix)
        return self.left_factor.factor(shift)

    def restore(self) -> None:
        if self.left_factor is not None:
            self.left_factor.restore()
            self.left_factor = None

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.matrix[np.ix_(rows, columns)]

    def times(self, vectors: FloatArray, rows: IntArray | None = None) -> FloatArray:
        if rows is not None and _GATHERED[vectors.shape[1] > 1] * len(rows) < self.size:
            return multiplied(self.matrix[rows].T, vectors)
        if rows is not None:
            whole = np.zeros((self.size, vectors.shape[1]))
            whole[rows] = vectors
            vectors = whole
        left = self.left_factor
        return multiplied(self._matrix, vectors) if left is None else left.product(vectors)

    @property
    def in_single(self) -> Stored:
        return self

    def subset(self, rows: IntArray) -> Stored:
        return Stored(self.block(rows, rows))

    def low_rank(self) -> None:
        return None


class KernelColumns:
    """Functions whose inner products are kernel values times products of output vectors."""

    def __init__(
        self, design: Design, values: KernelValues, rows: IntArray, vectors: FloatArray
    ) -> None:
        assert design.coupling is not None
        self._design, self._kernel = design, values
        self._rows, self._vectors = rows, vectors
        self._mixed = vectors @ design.coupling

    def values(self, weights: FloatArray) -> FloatArray:
        """Return inner products (k,) with the function of these weights."""
        image = self._design.predict(self._rows, self._design.directions(weights))
        return np.einsum("ip,ip->i", image, self._vectors)

    def gram(self) -> FloatArray:
        """Return the inner products of the functions with each other, (k, k)."""
        return self._kernel.block(self._rows, self._rows) * (self._mixed @ self._mixed.T)

    def fill(self, matrix: FloatArray) -> None:
        """Write the lower triangle of the identity plus :meth:`gram`."""
        whole = self._kernel.matrix
        if whole is not None:
            fill_lower(whole, self._rows, self._rows, self._mixed, matrix, 0)
            return
        unique, place = np.unique(self._rows, return_inverse=True)
        for start in range(0, len(self._rows), _STRIP):
            mine, source = np.unique(self._rows[start : start + _STRIP], return_inverse=True)
            fill_lower(self._kernel.block(mine, unique), source, place, self._mixed, matrix, start)

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Return the weights of the sum of ``sizes`` (k,) times the functions."""
        push = np.zeros((self._design.n_rows, self._design.n_outputs))
        np.add.at(push, self._rows, sizes[:, None] * self._vectors)
        return self._design.link(push)


@njit(cache=True, nogil=True)
def fill_lower(
    kernel: FloatArray,
    source: IntArray,
    place: IntArray,
    mixed: FloatArray,
    matrix: FloatArray,
    first: int,
) -> None:
    """Write the lower triangle of I + UUᵀ, some columns from ``first`` on.

    Column ``first + b`` has kernel values ``kernel[source[b], place]``.
    """
    k, q = mixed.shape
    for b in range(first, first + source.size):
        values = kernel[source[b - first]]
        for a in range(b, k):
            product = 0.0
            for m in range(q):
                product += mixed[a, m] * mixed[b, m]
            matrix[a, b] = product * values[place[a]]
        matrix[b, b] += 1.0
