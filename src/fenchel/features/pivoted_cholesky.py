"""Pivoted Cholesky: a low-rank approximation of the kernel to a given accuracy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack, solve_triangular
from sklearn.utils.validation import check_is_fitted

from fenchel._clock import check_time
from fenchel._compiling import njit
from fenchel._parameters import parameters
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import NONE, Number, declared
from fenchel.design import RowBlocks
from fenchel.design.tiled import solve_rows
from fenchel.features.base import FeatureMap
from fenchel.features.gram import ROUNDING, UNEXPLAINED, Gram, not_positive, residual_diagonal
from fenchel.features.pivots import candidates, extremes, largest, slack
from fenchel.kernels import OperatorKernel, Precomputed, stacked

BLOCK = 64
_A_SECOND = 5e9  # rows times squared columns in a quarter of it
_CANDIDATES = 4 * BLOCK
_SHARE = 0.3  # of the largest residual, where a block ends
_DENSE_ROWS = 5000
_PIECE = 2048  # rows of a column that stay in the nearest cache: 16 KiB
_FIRST_TOL = 1e-10
_LEAST_TOL = 1e-14  # below that, residuals are rounding


@parameters
class PivotedCholesky(FeatureMap):
    r"""Greedy partial Cholesky factorization of the Gram matrix.

    .. math:: \varphi(x) = L_{ZZ}^{-1} k(Z, x), \qquad L_{ZZ} L_{ZZ}^\top = k(Z, Z)

    Each step adds to Z the row with the largest residual
    :math:`k(x, x) - \|\varphi(x)\|^2`, until no residual exceeds ``tol`` times the
    largest diagonal entry. Smooth kernels need few rows, however large n is (a Gaussian kernel in
    one dimension a dozen). Rough kernels need all of them. No (n, n) array is formed unless the
    rank may be n.

    If several rows have the same largest residual, the row nearest to the mean of up to 1000
    distinct rows is chosen, in units of the standard deviations. In the first step all rows tie if
    the kernel has a constant diagonal. The choice does not depend on the order of rows, units of
    columns or repeated rows. For sparse rows, zero takes the place of the mean; with a precomputed
    Gram matrix the row with the largest sum is chosen.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`.
    tol : float, optional
        Accuracy relative to the largest diagonal entry; at least 1e-14. By default 1e-10, or
        smaller if the certificate of an estimator requires it, see :meth:`wider`.
    rank : int, optional
        Maximum rank; by default min(n, max(100, 25 000 000 / n)).
    random_state : int, RandomState or None
        Seed for length scales that are computed from a subsample.

    Attributes
    ----------
    pivots_ : ndarray of shape (rank_,)
        Indices of the chosen rows.
    landmarks_ : ndarray of shape (rank_, n_features)
        The chosen rows (absent with a precomputed kernel).
    factor_ : ndarray of shape (rank_, rank_)
        The lower triangular L_ZZ.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import PivotedCholesky
    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> PivotedCholesky("gaussian").fit_transform(X).shape
    (1000, 13)

    References
    ----------
    Harbrecht, Peters, Schneider (2012), On the low-rank approximation by the pivoted Cholesky
    decomposition.
    """

    nested = True
    in_space = True

    constraints = declared(tol=NONE | Number(0.0, 1.0, open_high=True))

    kernel: Any = None
    tol: float | None = None
    rank: int | None = None
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        n = len(X)
        cap = self._cap(n)
        given = isinstance(self.kernel_, Precomputed)
        gram = self._gram(X)
        level = self._relative_level() * max(gram.largest, 0.0)
        if given and cap == n:
            features, pivots, left = _dense(gram, X, level)
        else:
            features, pivots, left = greedy(gram, min(cap, BLOCK), level)
            if left.max() <= level:
                gram.check_rest(features)
            elif cap == n <= _DENSE_ROWS and len(pivots) < cap:
                features, pivots, left = _dense(gram, self.kernel_(X), level)
            elif len(pivots) < cap:
                features, pivots, left = blocked(gram, cap, level, (features, pivots, left))
        self.pivots_, self.factor_ = pivots, features[pivots]
        if not len(pivots):  # no kernel value but zero: one feature that is
            features, self.pivots_, self.factor_ = np.zeros((n, 1)), np.array([0]), np.eye(1)
        if not given:
            self.landmarks_ = X[self.pivots_]
        self._set_kernel_error(gram.diagonal, left)
        return features

    def limited(self, seconds: float, n_rows: int) -> Self:
        """Limit the rank to what takes about a quarter of ``seconds``."""
        columns = max(BLOCK, int(np.sqrt(_A_SECOND * seconds / n_rows)))
        return self if columns >= self._cap(n_rows) else self.set_params(rank=columns)

    def _cap(self, n: int) -> int:
        cap = max(100, int(2.5e7 / n)) if self.rank is None else int(self.rank)
        return min(n, cap)

    def _relative_level(self) -> float:
        if self.tol is None:
            return _FIRST_TOL
        return max(float(self.tol), _LEAST_TOL)

    def residual(self, X: FloatArray, features: FloatArray) -> FloatArray:
        """Return the diagonal of the residual kernel matrix."""
        diagonal = self._gram(X).diagonal.reshape(features.shape[:-1])
        return residual_diagonal(diagonal, features)

    def fit_among(self, X: AnyArray, some: IntArray) -> FloatArray:
        """Fit with pivots from a subset of rows, and add pivots from all rows if necessary.

        This is faster for many rows, most of which are close to others: a well-spread subset of
        a few thousand rows finds nearly all pivots. ``kernel_error_`` is computed on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; a Gram matrix is not supported.
        some : ndarray of shape (m,)
            Indices of distinct rows, the subset.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            The features of all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from fenchel.features import PivotedCholesky
        >>> X = np.linspace(0, 1, 1000)[:, None]
        >>> PivotedCholesky("gaussian").fit_among(X, np.arange(0, 1000, 10)).shape
        (1000, 13)
        """
        self.check_parameters()
        X = self._rows(X, reset=True)
        self.kernel_ = self._resolved_kernel(X)
        self._fit(X[some])
        self.rank_, self.pivots_ = len(self.pivots_), some[self.pivots_]
        features, gram = self.transform(X), self._gram(X)
        if gram.diagonal[self.pivots_[0]] > 0.0:  # and not all kernel values are zero
            features[self.pivots_] = self.factor_
        left = gram.diagonal - np.einsum("ij,ij->i", features, features)
        left[self.pivots_] = 0.0
        gram.check(left)
        level, cap = self._relative_level() * max(gram.largest, 0.0), self._cap(gram.size)
        if left.max() > level and self.rank_ < cap:
            features, pivots, left = _further(gram, features, left, cap, level)
            self._extend(X, pivots, features[pivots])
        self._set_kernel_error(gram.diagonal, left)
        return features

    def wider(
        self, X: FloatArray, features: FloatArray, share: float
    ) -> tuple[Self, FloatArray] | None:
        """Continue the factorization, unless ``tol`` or ``rank`` ended it.

        It ends at ``share`` times the largest residual, or at rounding errors of each entry.
        """
        gram = self._gram(X)
        flat = features.reshape(-1, features.shape[-1])
        cap = self._cap(gram.size)
        if self.tol is not None or flat.shape[1] >= cap:
            return None
        left = gram.diagonal - np.einsum("ij,ij->i", flat, flat)
        level: float | FloatArray = share * float(left.max())
        if level < ROUNDING * gram.largest:
            level = np.maximum(level, ROUNDING * gram.diagonal)
        wide, pivots, left = _further(gram, flat, left, cap, level)
        if len(pivots) == 0:
            return None
        found = copy.copy(self)
        found._extend(X, pivots, wide[pivots])
        found._set_kernel_error(gram.diagonal, left)
        return found, wide.reshape(*features.shape[:-1], -1)

    def _extend(self, X: FloatArray, pivots: IntArray, factor: FloatArray) -> None:
        """Add pivots, of which these are the features."""
        above = np.zeros((self.rank_, len(pivots)))
        self.factor_ = np.block([[self.factor_, above], [factor]])
        self.pivots_ = np.concatenate([self.pivots_, pivots])
        self.rank_ = len(self.pivots_)
        self._add_landmarks(X, pivots)

    def _add_landmarks(self, X: FloatArray, pivots: IntArray) -> None:
        if not isinstance(self.kernel_, Precomputed):
            self.landmarks_ = stacked(self.landmarks_, X[pivots])

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Coefficients ``solve(factor_.T, weights)`` on the landmarks, (rank_, n_outputs)."""
        check_is_fitted(self)
        return np.asarray(solve_triangular(self.factor_, weights, lower=True, trans="T"))

    def from_kernel_values(self, values: FloatArray) -> FloatArray:
        """Return features ``solve(factor_, values.T).T``, (n, rank_)."""
        return solve_rows(self.factor_, np.array(values))

    def _at_landmarks(self, weights: FloatArray) -> FloatArray | None:
        """None for operator-valued kernels: predictions are made of features."""
        return None if isinstance(self.kernel_, OperatorKernel) else self.factor_ @ weights

    def _map(self, X: FloatArray) -> FloatArray:
        given = isinstance(self.kernel_, Precomputed)
        return self._solved(X[:, self.pivots_] if given else self.kernel_(X, self.landmarks_))

    def _solved(self, values: FloatArray) -> FloatArray:
        """Features of rows from their kernel values at the pivots, which are overwritten."""
        return solve_rows(self.factor_, values)


def greedy(
    gram: Gram,
    cap: int,
    level: float | FloatArray,
    start: tuple[FloatArray, IntArray, FloatArray] | None = None,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Compute up to ``cap`` columns one by one; return features, pivots, residual diagonal.

    Stops when no residual exceeds ``level``, a number or one for each row.
    """
    first, _, left = (None, None, gram.diagonal.copy()) if start is None else start
    n = len(left)
    columns = np.empty((cap, n))  # features as rows: each step streams through them once
    pivots = np.empty(cap, dtype=np.intp)
    # what a step reads beside rows streams by; smaller blocks cost more in calls
    rank, blocks = 0, RowBlocks(n, gram.X.shape[1] + 1)
    ends = blocks.map(lambda rows: extremes(left, level, rows))

    def step(rows: slice) -> tuple[float, float]:
        column = columns[rank, rows]
        if whole is None:
            gram.write_column(rows, pivot, column)
        else:
            column[...] = whole[rows, 0]
        if first is not None:
            column -= np.dot(first[rows], first[pivot])
        _next_column(columns, rank, before, root, left, rows.start, rows.stop)
        chosen = pivots[: rank + 1]
        left[chosen[(rows.start <= chosen) & (chosen < rows.stop)]] = 0.0
        return extremes(left, level, rows)

    while rank < cap:
        next_one = largest(gram, left, level, blocks, [most for _, most in ends])
        if next_one is None:
            break
        pivot = next_one
        root, before = np.sqrt(left[pivot]), columns[:rank, pivot].copy()
        in_pieces = gram.in_pieces and n > blocks.block_rows
        whole = None if in_pieces else gram.columns(np.array([pivot]))
        pivots[rank] = pivot
        ends = blocks.map(step)
        gram.check(np.array([least for least, _ in ends]))
        columns[rank, pivots[:rank]] = 0.0
        columns[rank, pivot] = root
        rank += 1
    features = np.empty((n, rank))

    def turn(rows: slice) -> None:
        for k in range(rank):
            features[rows, k] = columns[k, rows]

    RowBlocks(n, 2 * rank).map(turn)
    if first is not None:
        features = np.hstack([first, features])
    return features, pivots[:rank].copy(), left


@njit(cache=True, nogil=True, error_model="numpy")
def _next_column(
    columns: FloatArray,
    rank: int,
    before: FloatArray,
    root: float,
    left: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Make a column of kernel values one of the factor, for some rows.

    Multiples of the columns before are taken off, and its squares off what is left.
    """
    for first in range(start, stop, _PIECE):
        last = min(first + _PIECE, stop)
        column, rest = columns[rank, first:last], left[first:last]
        for k in range(rank):
            other, factor = columns[k, first:last], before[k]
            for i in range(len(column)):
                column[i] -= factor * other[i]
        for i in range(len(column)):
            column[i] /= root
            rest[i] -= column[i] * column[i]


def _further(
    gram: Gram, features: FloatArray, left: FloatArray, cap: int, level: float | FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """More columns beside known ones: all features, the new pivots, residual diagonal."""
    start = features, np.empty(0, dtype=np.intp), left
    found = greedy(gram, min(cap - features.shape[1], BLOCK), level, start)
    return blocked(gram, cap, level, found) if len(found[1]) == BLOCK else found


def _columns(gram: Gram, pivots: IntArray) -> Callable[[slice], FloatArray]:
    """What gives columns of kernel values for some rows: all at once if it has to be."""
    if not gram.in_pieces:
        whole = gram.columns(pivots)
        return lambda rows: whole[rows]

    def values(rows: slice) -> FloatArray:
        found = gram.block(rows, pivots)
        here = np.flatnonzero((rows.start <= pivots) & (pivots < rows.stop))
        gram.check_own(found[pivots[here] - rows.start, here], pivots[here])
        return found

    return values


def blocked(
    gram: Gram, cap: int, level: float | FloatArray, start: tuple[FloatArray, IntArray, FloatArray]
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Continue in blocks of pivots, with matrix products.

    Stops when no residual exceeds ``level``, a number or one for each row. The pivots of a block
    are chosen by a small factorization of the rows with the largest residuals. It ends when their
    residuals have fallen to a share, so near-duplicates are left to a later block.
    """
    first, pivots, left = start
    n, rank = first.shape
    features = np.empty((n, cap))
    features[:, :rank] = first
    chosen = pivots
    blocks = RowBlocks(n, gram.X.shape[1] + 2 * BLOCK)
    while rank < cap:
        check_time()
        block = candidates(gram, left, level, _CANDIDATES)
        if len(block) == 0:
            break
        mine, most = features[block, :rank], float(left[block].max())
        inner, order = _small_factor(
            gram.block(block, block) - mine @ mine.T,
            min(BLOCK, cap - rank),
            max(float(np.min(level)), _SHARE * most),
            slack(gram, most),
        )
        block, mine = block[order], mine[order]
        new = slice(rank, rank + len(block))
        _extend_columns(_columns(gram, block), features, left, inner, mine, blocks)
        features[chosen, new] = 0.0
        features[block, new] = inner
        chosen = np.concatenate([chosen, block])
        left[chosen] = 0.0
        gram.check(left)
        rank += len(block)
    return np.ascontiguousarray(features[:, :rank]), chosen, left


def _extend_columns(
    kernel_values: Callable[[slice], FloatArray],
    features: FloatArray,
    left: FloatArray,
    inner: FloatArray,
    known: FloatArray,
    blocks: RowBlocks,
) -> None:
    """Write the features of further pivots behind those that are there, and update ``left``.

    ``known`` (k, rank) are the features that the pivots have, ``inner`` (k, k) the factor of
    what these leave out.
    """
    rank = known.shape[1]
    new = slice(rank, rank + len(inner))

    def step(rows: slice) -> None:
        added = kernel_values(rows)
        added -= np.dot(features[rows, :rank], known.T)
        added = solve_rows(inner, added)
        features[rows, new] = added
        left[rows] -= np.einsum("ij,ij->i", added, added)

    blocks.map(step)


def _small_factor(
    matrix: FloatArray, cap: int, level: float, slack: float
) -> tuple[FloatArray, IntArray]:
    """Pivoted Cholesky factor (rank, rank) of a small matrix, down to ``level``.

    Of residuals that differ by no more than ``slack`` the first is the pivot.
    """
    cap = min(cap, len(matrix))
    columns, order = np.zeros((cap, len(matrix))), np.zeros(cap, dtype=np.intp)
    left = matrix.diagonal().copy()
    order = order[: _small_columns(matrix, left, level, slack, columns, order)]
    rank = len(order)
    return np.tril(columns[:rank, order].T), order


@njit(cache=True, nogil=True, error_model="numpy")
def _small_columns(
    matrix: FloatArray,
    left: FloatArray,
    level: float,
    slack: float,
    columns: FloatArray,
    order: IntArray,
) -> int:
    """Write columns, as rows, and their pivots; return how many."""
    for k in range(len(columns)):
        largest = left.max()
        if k > 0 and largest <= level:
            return k
        pivot = 0
        while left[pivot] < largest - slack:
            pivot += 1
        order[k] = pivot
        root = np.sqrt(left[pivot])
        column = columns[k]
        column[:] = matrix[pivot]
        _next_column(columns, k, columns[:k, pivot].copy(), root, left, 0, len(column))
        for j in range(k + 1):  # the residual of a pivot is zero
            left[order[j]] = 0.0
        for j in range(k):
            column[order[j]] = 0.0
        column[pivot] = root
    return len(columns)


def _dense(gram: Gram, K: FloatArray, level: float) -> tuple[FloatArray, IntArray, FloatArray]:
    """The whole matrix at once, by LAPACK, whose first pivot is the first of equal ones."""
    diagonal, n = K.diagonal(), len(K)
    given = np.arange(n)
    every = slice(0, n)
    most = extremes(diagonal, level, every)[1]
    swapped = [0, largest(gram, diagonal, level, [every], [most]) or 0]
    given[swapped] = given[swapped[::-1]]
    work = np.array(K.T, order="F")  # leaves K alone
    work[swapped] = work[swapped[::-1]]
    work[:, swapped] = work[:, swapped[::-1]]
    factor, order, rank, _ = lapack.dpstrf(work, tol=level, lower=1, overwrite_a=1)
    order = given[order - 1]
    features = np.empty((n, rank))
    features[order] = np.tril(factor)[:, :rank]  # what stands beyond the rank is unfinished
    left = diagonal - np.einsum("ij,ij->i", features, features)
    rest = order[rank:]
    if len(rest):
        residual = K[np.ix_(rest, rest)] - features[rest] @ features[rest].T
        worst = max(float(np.abs(residual).max()), -float(left.min()))
        if not worst <= UNEXPLAINED * max(float(diagonal.max()), 0.0):
            raise not_positive(-worst)
    left[order[:rank]] = 0.0
    return features, order[:rank].astype(np.intp), left
