"""Functions of some rows by columns of the Gram matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel._typing import FloatArray, IntArray
from fenchel.design.base import Design


class KernelColumns:
    """Functions whose inner products are kernel values times those of mixed vectors.

    The design must have ``gram`` and ``coupling``.
    """

    def __init__(self, design: Design, rows: IntArray, vectors: FloatArray) -> None:
        assert design.gram is not None
        assert design.coupling is not None
        self._design, self._rows, self._vectors = design, rows, vectors
        self._kernel = design.gram
        self._mixed = vectors @ design.coupling

    def values(self, weights: FloatArray) -> FloatArray:
        """Inner products (k,) with the function of these weights."""
        image = self._design.predict(self._rows, self._design.directions(weights))
        return np.einsum("ip,ip->i", image, self._vectors)

    def gram(self) -> FloatArray:
        """Inner products among each other, (k, k)."""
        return self._kernel[np.ix_(self._rows, self._rows)] * (self._mixed @ self._mixed.T)

    def fill(self, matrix: FloatArray) -> None:
        """Write the lower triangle of the identity plus :meth:`gram`."""
        fill_lower(self._kernel, self._rows, self._mixed, matrix)

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Weights of the sum of ``sizes`` (k,) times the functions."""
        push = np.zeros((self._design.n_rows, self._design.n_outputs))
        np.add.at(push, self._rows, sizes[:, None] * self._vectors)
        return self._design.link(push)


@njit(cache=True, nogil=True)
def fill_lower(gram: FloatArray, rows: IntArray, mixed: FloatArray, matrix: FloatArray) -> None:
    """Lower triangle of I + UUᵀ, column by column."""
    k, q = mixed.shape
    for b in range(k):
        source = gram[rows[b]]
        for a in range(b, k):
            product = 0.0
            for m in range(q):
                product += mixed[a, m] * mixed[b, m]
            matrix[a, b] = product * source[rows[a]]
        matrix[b, b] += 1.0
