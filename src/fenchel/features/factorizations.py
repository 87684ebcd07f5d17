"""Partial Cholesky factorizations with pivots: column by column, in blocks, and by LAPACK."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from fenchel._clock import check_time
from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks
from fenchel.design.tiled import solve_rows
from fenchel.features.gram import UNEXPLAINED, Gram, not_positive
from fenchel.features.pivots import candidates, extremes, largest, least_tied, slack

Factorization = tuple[FloatArray, IntArray, FloatArray]
"""Features, pivots and the diagonal of the residual."""
BLOCK = 64
_CANDIDATES = 4 * BLOCK
_SHARE = 0.3  # of the largest residual, where a block ends
_TILE = 128  # rows: their residuals stay in the second cache
_PIECE = 2048  # rows of a column that stay in the nearest cache: 16 KiB


def greedy(
    gram: Gram,
    cap: int,
    level: float | FloatArray,
    start: Factorization | None = None,
) -> Factorization:
    """Compute up to ``cap`` columns one by one; return features, pivots, residual diagonal.

    Stops when no residual exceeds ``level``, a number or one for each row.
    """
    if start is None and gram.few and isinstance(level, float):
        return _of_few(gram, cap, level)
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
        features[rows] = columns[:rank, rows].T

    RowBlocks(n, 2 * rank).map(turn)
    if first is not None:
        features = np.hstack([first, features])
    return features, pivots[:rank].copy(), left


def _of_few(gram: Gram, cap: int, level: float) -> Factorization:
    """The same of few rows, all of whose kernel values are computed."""
    values, left = gram.block(slice(None), slice(None)), gram.diagonal.copy()
    values = np.require(values, np.float64, ["C", "W"])  # for which loops have been compiled
    n, rank, every = len(left), 0, slice(0, len(left))
    gram.check_own(values.diagonal(), np.arange(n))
    columns, pivots = np.empty((cap, n)), np.empty(cap, dtype=np.intp)
    while rank < cap:
        pivot = largest(gram, left, level, [every], [float(left.max())])
        if pivot is None:
            break
        known = values, gram.largest, level
        rank = _columns_from(pivot, *known, columns, pivots, left, rank)
        gram.check(left)
    return np.ascontiguousarray(columns[:rank].T), pivots[:rank].copy(), left


@njit(cache=True, nogil=True, error_model="numpy")
def _columns_from(
    pivot: int,
    values: FloatArray,
    most: float,
    level: float,
    columns: FloatArray,
    pivots: IntArray,
    left: FloatArray,
    rank: int,
) -> int:
    """Write columns from this pivot on, until residuals tie or are small; return the rank.

    ``values`` is the matrix, ``most`` its largest diagonal entry.
    """
    while True:
        _write_column(columns, pivots, left, rank, pivot, values[:, pivot])
        rank += 1
        size = _most(left)
        if rank == len(columns) or size <= level:
            return rank
        least, ties = least_tied(most, size, level), 0
        for i in range(len(left)):
            if left[i] >= least:
                pivot = i
                ties += 1
        if ties != 1:
            return rank


@njit(cache=True, nogil=True, error_model="numpy")
def _most(values: FloatArray) -> float:
    """The largest value, NaN if there is one; compiled sooner than NumPy's."""
    most = values[0]
    for i in range(1, len(values)):
        if values[i] > most or np.isnan(values[i]):
            most = values[i]
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def _write_column(
    columns: FloatArray,
    pivots: IntArray,
    left: FloatArray,
    k: int,
    pivot: int,
    values: FloatArray,
) -> None:
    """Write the k-th column, of this pivot, from its kernel values with all rows."""
    column, root, before = columns[k], np.sqrt(left[pivot]), np.empty(k)
    for i in range(len(column)):  # column[:] = values takes seconds to compile
        column[i] = values[i]
    for j in range(k):
        before[j] = columns[j, pivot]
    pivots[k] = pivot
    _next_column(columns, k, before, root, left, 0, len(column))
    for j in range(k + 1):  # the residual of a pivot is zero
        left[pivots[j]] = 0.0
        column[pivots[j]] = 0.0
    column[pivot] = root


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
    gram: Gram, cap: int, level: float | FloatArray, start: Factorization
) -> Factorization:
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


def further(
    gram: Gram, features: FloatArray, left: FloatArray, cap: int, level: float | FloatArray
) -> Factorization:
    """More columns beside known ones: all features, the new pivots, residual diagonal."""
    start = features, np.empty(0, dtype=np.intp), left
    found = greedy(gram, min(cap - features.shape[1], BLOCK), level, start)
    return blocked(gram, cap, level, found) if len(found[1]) == BLOCK else found


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
        largest = _most(left)
        if k > 0 and largest <= level:
            return k
        pivot = 0
        while left[pivot] < largest - slack:
            pivot += 1
        _write_column(columns, order, left, k, pivot, matrix[:, pivot])
    return len(columns)


def dense(gram: Gram, K: FloatArray, level: float) -> Factorization:
    """The whole matrix at once, by LAPACK, whose first pivot is the first of equal ones.

    ``K`` is overwritten, unless it may be in use elsewhere.
    """
    diagonal, n = K.diagonal().copy(), len(K)
    given, every = np.arange(n), slice(0, n)
    most = extremes(diagonal, level, every)[1]
    swapped = [0, largest(gram, diagonal, level, [every], [most]) or 0]
    given[swapped] = given[swapped[::-1]]
    if gram.shares_values or not (K.flags.c_contiguous and K.flags.writeable):
        K = np.array(K, order="C")
    K[swapped] = K[swapped[::-1]]
    K[:, swapped] = K[:, swapped[::-1]]
    factor, order, rank, _ = lapack.dpstrf(K.T, tol=level, lower=1, overwrite_a=1)
    place = order - 1
    features = np.empty((n, rank))
    features[given[place]] = np.tril(factor[:, :rank])  # K stands above, unfinished beyond rank
    left = diagonal - np.einsum("ij,ij->i", features, features)
    rest = np.sort(place[rank:])
    if len(rest):
        worst = max(_beside(K, rest, features[given[rest]]), -float(left.min()))
        if not worst <= UNEXPLAINED * max(float(diagonal.max()), 0.0):
            raise not_positive(-worst)
    left[given[place[:rank]]] = 0.0
    return features, given[place[:rank]].astype(np.intp), left


def _beside(K: FloatArray, rows: IntArray, features: FloatArray) -> float:
    """Largest residual of K between two different ones of the rows, K read below its diagonal."""
    worst = 0.0
    for start in range(0, len(rows), _TILE):
        stop = start + _TILE
        product = features[start:stop] @ features[:stop].T
        product -= K[np.ix_(rows[start:stop], rows[:stop])]
        residual = np.abs(np.tril(product, start - 1)).max()
        worst = max(worst, float(residual) if np.isfinite(residual) else np.inf)
    return worst
