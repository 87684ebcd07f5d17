"""Pivoted Cholesky: the kernel to a stated accuracy, at the rank that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from fenchel._typing import FloatArray, IntArray
from fenchel.features.base import FeatureMap, not_positive
from fenchel.kernels import Precomputed

_BLOCK = 64
_DENSE_ROWS = 5000
_NEGATIVE = 1e-8


class PivotedCholesky(FeatureMap):
    r"""Greedy partial Cholesky factorization of the Gram matrix.

    .. math:: \varphi(x) = L_{ZZ}^{-1} k(Z, x), \qquad L_{ZZ} L_{ZZ}^\top = k(Z, Z)

    The rows Z are chosen one after the other where the residual diagonal
    :math:`k(x, x) - \|\varphi(x)\|^2` is largest, until it is nowhere above
    ``tol`` times the largest diagonal entry. Smooth kernels need few rows however many there
    are (a Gaussian kernel in one dimension a dozen), rough ones all of them. No (n, n) array
    is formed unless the rank may be n.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        See :func:`fenchel.kernels.as_kernel`.
    tol : float
        Accuracy relative to the largest diagonal entry.
    rank : int, optional
        Cap on the rank; by default min(n, max(100, 25 000 000 / n)).
    random_state : int, RandomState or None
        Seed for length scales that are read off a subsample.

    Attributes
    ----------
    pivots_ : ndarray of shape (rank_,)
        Chosen rows.
    landmarks_ : ndarray of shape (rank_, n_features)
        The rows themselves (absent with a precomputed kernel).
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

    def __init__(
        self,
        kernel: Any = None,
        tol: float = 1e-10,
        rank: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.tol = tol
        self.rank = rank
        self.random_state = random_state

    def _fit(self, X: FloatArray) -> FloatArray:
        n = len(X)
        cap = min(n, max(100, int(2.5e7 / n)) if self.rank is None else self.rank)
        given = isinstance(self.kernel_, Precomputed)
        gram = _Gram(self.kernel_, X, given)
        if given and cap == n:
            features, pivots, left = self._dense(X)
        else:
            features, pivots, left = self._greedy(gram, min(cap, _BLOCK))
            unfinished = left.max(initial=0.0) > self.tol * gram.diagonal.max()
            if unfinished and len(pivots) < cap and cap == n <= _DENSE_ROWS:
                features, pivots, left = self._dense(self.kernel_(X))
            elif unfinished and len(pivots) < cap:
                features, pivots, left = self._blocked(gram, cap, features, pivots, left)
        self.pivots_ = pivots
        self.factor_ = features[pivots]
        if not given:
            self.landmarks_ = X[pivots]
        trace = float(gram.diagonal.sum())
        self.kernel_error_ = float(np.maximum(left, 0.0).sum()) / trace if trace > 0.0 else 0.0
        return features

    def _greedy(self, gram: _Gram, cap: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """One column after the other: features, pivots, residual diagonal."""
        n = gram.n_rows
        columns = np.empty((cap, n))  # features as rows: each step streams through them once
        left = gram.diagonal.copy()
        level = self.tol * left.max(initial=0.0)
        pivots: list[int] = []
        for k in range(cap):
            pivot = int(np.argmax(left))
            if left[pivot] <= level:
                break
            column = gram.columns([pivot])[:, 0]
            if k:
                column -= columns[:k, pivot] @ columns[:k]
            column /= np.sqrt(left[pivot])
            column[pivots] = 0.0
            columns[k] = column
            left -= column * column
            pivots.append(pivot)
            left[pivots] = 0.0
            gram.check(left)
        chosen = np.array(pivots, dtype=np.intp)
        return np.ascontiguousarray(columns[: len(pivots)].T), chosen, left

    def _blocked(
        self, gram: _Gram, cap: int, start: FloatArray, pivots: IntArray, left: FloatArray
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Go on in blocks of pivots, so that the work is matrix products."""
        features = np.zeros((gram.n_rows, cap))
        rank = len(pivots)
        features[:, :rank] = start
        chosen = [pivots]
        level = self.tol * gram.diagonal.max()
        while rank < cap:
            block = np.argpartition(left, -_BLOCK)[-_BLOCK:] if len(left) > _BLOCK else None
            block = np.flatnonzero(left > level) if block is None else block[left[block] > level]
            if len(block) == 0:
                break
            # half of what is left at the best pivot: near-duplicates wait for the next round
            columns = gram.columns(block) - features[:, :rank] @ features[block, :rank].T
            inner, order = _small_factor(columns[block], max(level, 0.1 * left[block].max()))
            order = order[: cap - rank]
            inner = inner[: len(order), : len(order)]
            new = solve_triangular(inner, columns[:, order].T, lower=True, check_finite=False).T
            block = block[order]
            new[np.concatenate(chosen)] = 0.0
            new[block] = inner
            features[:, rank : rank + len(block)] = new
            left -= np.einsum("ij,ij->i", new, new)
            chosen.append(block)
            left[block] = 0.0
            gram.check(left)
            rank += len(block)
        return np.ascontiguousarray(features[:, :rank]), np.concatenate(chosen), left

    def _dense(self, K: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """The whole matrix at once, by LAPACK."""
        diagonal = K.diagonal()
        largest = float(diagonal.max())
        if diagonal.min() < 0.0 or largest < 0.0:
            raise not_positive(float(diagonal.min()))
        factor, order, rank, _ = lapack.dpstrf(K, tol=self.tol * largest, lower=1)
        lower = np.tril(factor)[:, :rank]
        order = order - 1
        features = np.empty((len(K), rank))
        features[order] = lower
        left = diagonal - np.einsum("ij,ij->i", features, features)
        if rank < len(K):
            rest = order[rank:]
            residual = K[np.ix_(rest, rest)] - features[rest] @ features[rest].T
            worst = max(float(np.abs(residual).max()), -float(left.min()))
            if worst > 1e-6 * largest:
                raise not_positive(-worst)
        left[order[:rank]] = 0.0
        return features, order[:rank].astype(np.intp), left

    def _map(self, X: FloatArray) -> FloatArray:
        given = isinstance(self.kernel_, Precomputed)
        values = X[:, self.pivots_] if given else self.kernel_(X, self.landmarks_)
        return np.ascontiguousarray(
            solve_triangular(self.factor_, values.T, lower=True, check_finite=False).T
        )


class _Gram:
    """Columns and diagonal of the Gram matrix, evaluated or given."""

    def __init__(self, kernel: Any, X: FloatArray, given: bool) -> None:
        self.kernel, self.X, self.given = kernel, X, given
        self.n_rows = len(X)
        self.diagonal = np.array(np.diag(X) if given else kernel.diag(X), dtype=np.float64)
        self.check(self.diagonal)

    def columns(self, pivots: Any) -> FloatArray:
        """k(X, X[pivots])."""
        if self.given:
            return self.X[:, pivots].copy()
        return np.asarray(self.kernel(self.X, self.X[pivots]), dtype=np.float64)

    def check(self, left: FloatArray) -> None:
        """Refuse a residual diagonal that rounding cannot explain."""
        lowest = float(left.min())
        if lowest < -_NEGATIVE * max(float(self.diagonal.max()), 0.0) or not np.isfinite(lowest):
            raise not_positive(lowest)


def _small_factor(matrix: FloatArray, level: float) -> tuple[FloatArray, IntArray]:
    """Pivoted Cholesky factor (rank, rank) of a small matrix, down to ``level``."""
    factor, order, rank, _ = lapack.dpstrf(matrix, tol=level, lower=1)
    rank = max(int(rank), 1)
    return np.tril(factor[:rank, :rank]), (order[:rank] - 1).astype(np.intp)
