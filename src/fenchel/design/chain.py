"""Covariance matrices of Markov chains, for example of the kernel exp(-|t - s|)."""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._memory import empty
from fenchel._typing import FloatArray

_LEAST = 24  # outputs from which on recursions are faster than products with the matrix
_TOLERANCE = 1e-13  # of entries in units of the roots of the diagonal
_CLOSEST = 1e-8  # 1 - r² of neighbours: the inverse loses digits in proportion to its inverse


class Chain:
    r"""Covariance matrix of a Markov chain.

    .. math:: B_{jk} = s_j s_k \prod_{l=j}^{k-1} r_l, \qquad j \le k

    Its inverse is tridiagonal. Products and solutions therefore cost O(p) for each row instead of
    O(p²), by numerically stable recursions. Each step of a recursion depends on the one before, so
    each step is done for all rows together.

    Parameters
    ----------
    scale : ndarray of shape (p,)
        s > 0.
    ratios : ndarray of shape (p - 1,)
        r, -1 < r < 1: correlations of neighbouring outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.chain import Chain
    >>> Chain(np.ones(3), np.array([0.5, 0.5])).times(np.eye(3))
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """

    def __init__(self, scale: FloatArray, ratios: FloatArray) -> None:
        self.scale, self.ratios = scale, ratios

    def times(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, p) times B."""
        columns = np.ascontiguousarray(rows.T)
        product = np.empty(columns.shape)
        _multiply(columns, self.scale, self.ratios, product)
        return product.T

    def forms(self, columns: FloatArray) -> FloatArray:
        """Return the quadratic forms cᵀ B c of columns (p, n), (n,)."""
        found = np.empty(columns.shape[1])
        _forms(np.ascontiguousarray(columns), self.scale, self.ratios, found)
        return found

    def smoother(self, strengths: FloatArray) -> Smoother:
        """Return the operator (c_i + B⁻¹)⁻¹ c_i on columns, for strengths c >= 0 (n,)."""
        left = 1.0 / ((1.0 - self.ratios) * (1.0 + self.ratios))
        diagonal = np.ones(len(self.scale))
        diagonal[:-1] += self.ratios**2 * left
        diagonal[1:] += self.ratios**2 * left
        diagonal /= self.scale**2
        beside = -self.ratios * left / (self.scale[:-1] * self.scale[1:])
        return Smoother(strengths, diagonal, beside)


class Smoother:
    """Operator (c_i + B⁻¹)⁻¹ c_i on columns i, each with its number c_i, by factors L D Lᵀ.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
        The numbers c.
    diagonal, beside : ndarrays of shape (p,) and (p - 1,)
        Diagonal and off-diagonal of B⁻¹.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.chain import Chain
    >>> smoother = Chain(np.ones(2), np.zeros(1)).smoother(np.array([1.0, 3.0]))
    >>> smoother(np.ones((2, 2)))
    array([[0.5 , 0.75],
           [0.5 , 0.75]])
    """

    def __init__(self, strengths: FloatArray, diagonal: FloatArray, beside: FloatArray) -> None:
        self._strengths = strengths
        self._factors = np.zeros((len(diagonal), len(strengths)))
        self._pivots = np.empty(self._factors.shape)
        _factor(strengths, diagonal, beside, self._factors, self._pivots)

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Apply the operator to columns (p, n)."""
        found = empty(columns.shape)
        _solve(self._factors, self._pivots, self._strengths, np.ascontiguousarray(columns), found)
        return found


def chain_of(matrix: FloatArray) -> Chain | None:
    """Return the Markov chain whose covariance matrix is ``matrix`` (p, p), or None.

    Also returns None if there are too few outputs for the chain to be faster.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design.chain import chain_of
    >>> points = np.linspace(0.0, 1.0, 30)
    >>> distances = np.abs(points[:, None] - points)
    >>> bool(chain_of(np.exp(-distances)).ratios[0] == np.exp(-points[1]))
    True
    >>> chain_of(np.exp(-(distances**2))) is None
    True
    """
    variances = matrix.diagonal()
    if len(matrix) < _LEAST or not np.all(variances > 0.0):
        return None
    scale = np.sqrt(variances)
    ratios = np.diagonal(matrix, 1) / (scale[:-1] * scale[1:])
    if np.any((1.0 - ratios) * (1.0 + ratios) < _CLOSEST):
        return None
    chain = Chain(scale, ratios)
    far = np.abs(chain.times(np.eye(len(matrix))) - matrix) / np.outer(scale, scale)
    return chain if far.max() <= _TOLERANCE * len(matrix) else None


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply(
    columns: FloatArray, scale: FloatArray, ratios: FloatArray, product: FloatArray
) -> None:
    p, n = columns.shape
    sums = np.zeros(n)
    for j in range(p):
        ratio = ratios[j - 1] if j > 0 else 0.0
        for i in range(n):
            sums[i] = ratio * sums[i] + scale[j] * columns[j, i]
            product[j, i] = scale[j] * sums[i]
    sums[:] = 0.0
    for j in range(p - 2, -1, -1):
        for i in range(n):
            sums[i] = ratios[j] * (sums[i] + scale[j + 1] * columns[j + 1, i])
            product[j, i] += scale[j] * sums[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _forms(columns: FloatArray, scale: FloatArray, ratios: FloatArray, found: FloatArray) -> None:
    p, n = columns.shape
    before = np.zeros(n)
    found[:] = 0.0
    for j in range(p):
        ratio = ratios[j - 1] if j > 0 else 0.0
        for i in range(n):
            mine = scale[j] * columns[j, i]
            sums = ratio * before[i]
            found[i] += mine * (mine + 2.0 * sums)
            before[i] = sums + mine


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(
    strengths: FloatArray,
    diagonal: FloatArray,
    beside: FloatArray,
    factors: FloatArray,
    pivots: FloatArray,
) -> None:
    """Of c_i + B⁻¹; ``pivots`` are the inverses of D."""
    p, n = factors.shape
    for i in range(n):
        pivots[0, i] = 1.0 / (strengths[i] + diagonal[0])
    for j in range(1, p):
        for i in range(n):
            factor = beside[j - 1] * pivots[j - 1, i]
            factors[j - 1, i] = factor
            pivots[j, i] = 1.0 / (strengths[i] + (diagonal[j] - factor * beside[j - 1]))


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(
    factors: FloatArray,
    pivots: FloatArray,
    strengths: FloatArray,
    columns: FloatArray,
    found: FloatArray,
) -> None:
    p, n = columns.shape
    for i in range(n):
        found[0, i] = strengths[i] * columns[0, i]
    for j in range(1, p):
        for i in range(n):
            found[j, i] = strengths[i] * columns[j, i] - factors[j - 1, i] * found[j - 1, i]
    for i in range(n):
        found[p - 1, i] *= pivots[p - 1, i]
    for j in range(p - 2, -1, -1):
        for i in range(n):
            found[j, i] = found[j, i] * pivots[j, i] - factors[j, i] * found[j + 1, i]
