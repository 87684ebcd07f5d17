"""Rows to learn from, and their folds, by what they hold.

Which rows take part, and in which fold, depends neither on their order nor on their units, and
rows that are equal are one row with the sum of their weights: so a weight is a repetition for
what is learned too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray, IntArray
from fenchel.design import RowBlocks

_GRID = 2.0**20  # values are told apart by so many steps of their column's range
_LOOKED_AT = 4  # times the rows that are asked for, at first
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth, volume 3, section 6.4

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Rows:
    """Distinct rows, fold after fold."""

    X: FloatArray
    targets: FloatArray
    weight: FloatArray
    starts: tuple[int, ...]
    """Where folds begin, and the number of rows."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.starts) - 1

    def fold(self, k: int) -> slice:
        """Rows of a fold."""
        return slice(self.starts[k], self.starts[k + 1])

    def first(self, n_rows: int, n_folds: int) -> Rows:
        """About so many of these rows, in so many folds."""
        return rows_by_content(self.X, self.targets, self.weight, n_rows, n_folds)


def rows_by_content(
    X: FloatArray, targets: FloatArray, weight: FloatArray, n_rows: int, n_folds: int
) -> Rows:
    """Choose at most ``n_rows`` distinct rows of positive weight, and deal them to folds.

    Rows with equal features are in one fold, unless there are too few different ones.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    targets : ndarray of shape (n, p)
    weight : ndarray of shape (n,)
    n_rows : int
    n_folds : int

    Returns
    -------
    Rows
    """
    table, X, targets, weight = _distinct(X, targets, weight, n_rows)
    fold = _dealt(table, n_folds)
    order = np.argsort(fold, kind="stable")
    counts = np.bincount(fold, minlength=n_folds)
    starts = tuple(np.concatenate([[0], np.cumsum(counts[counts > 0])]).tolist())
    return Rows(X[order], targets[order], weight[order], starts)


def sample_by_content(X: FloatArray, targets: FloatArray, n_rows: int) -> FloatArray:
    """Choose at most so many distinct rows, in an order that says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import sample_by_content
    >>> X = np.arange(100.0)[:, None]
    >>> sample_by_content(X, X, 10).shape
    (10, 1)
    """
    return _distinct(X, targets, np.ones(len(X)), n_rows)[1]


def _distinct(
    X: FloatArray, targets: FloatArray, weight: FloatArray, n_rows: int
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Keys of at most so many distinct rows, and these."""
    found = _chosen(X, targets, weight, n_rows, (X, targets))
    keys = np.sort(found[0][:, 1])
    if (keys[1:] == keys[:-1]).any():  # a few values are far from all others
        found = _chosen(X, targets, weight, n_rows, (_ranked(X), _ranked(targets)))
    return found


def folds_by_content(X: FloatArray, targets: FloatArray, n_folds: int) -> IntArray:
    """Fold of each row: equal rows are in one, and so are those with equal features.

    Unless there are too few different ones.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import folds_by_content
    >>> X = np.array([[1.0], [5.0], [1.0], [2.0], [7.0]])
    >>> fold = folds_by_content(X, X, 2)
    >>> bool(fold[0] == fold[2]), np.bincount(np.unique(fold))
    (True, array([1, 1]))
    """
    features, of_targets = _keys(_ranked(X)), _keys(_ranked(targets))
    table = np.column_stack([features, _mixed(features + _ODD * of_targets)])
    distinct, place = np.unique(table, axis=0, return_inverse=True)
    return _dealt(distinct, n_folds)[place.ravel()]  # numpy 2.0 gives it a second axis


def _chosen(
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    n_rows: int,
    told: tuple[FloatArray, FloatArray],
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Keys of at most so many rows, and these; keys are of what ``told`` says of each row.

    They are those with the smallest keys of features, and of targets where these are equal; of
    many rows only some are looked at, more of them where they turn out to be repeats.
    """
    features, of_targets = (_keys(values) for values in told)
    size = _LOOKED_AT * n_rows
    while True:
        some = np.arange(len(X))
        if size < len(X):
            some = np.flatnonzero(features <= np.partition(features, size)[size])
        by_features = features[some]
        by_all = _mixed(by_features + _ODD * of_targets[some])
        order = np.lexsort((by_all, by_features))
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.diff(by_all[order]) != 0
        count = np.cumsum(new)
        if count[-1] >= n_rows or len(some) == len(X):
            break
        size *= 4
    order = order[count <= n_rows]
    table, some = np.column_stack([by_features[order], by_all[order]]), some[order]
    return _merged(table, X[some], targets[some], weight[some])


def _ranked(values: FloatArray) -> FloatArray:
    """Each value as its number among the different values of its column."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in values.T]
    return np.column_stack(ranks).astype(np.float64)


def _keys(values: FloatArray) -> Keys:
    """A number for each row that tells what it holds, in units of the columns' ranges.

    Constant columns do not change it.
    """
    low = values.min(axis=0)
    span = values.max(axis=0) - low
    keys = np.zeros(len(values), dtype=np.uint64)

    def task(rows: slice) -> None:
        mine = keys[rows]
        for j in np.flatnonzero(span > 0.0):
            steps = np.rint(_GRID * ((values[rows, j] - low[j]) / span[j])).astype(np.uint64)
            mine[...] = _mixed(mine * _ODD + steps + np.uint64(1))

    RowBlocks(len(values), values.shape[1]).map(task)
    return keys


def _mixed(keys: Keys) -> Keys:
    """Spread keys over all numbers, by the finalizer of SplitMix64 (Steele et al., 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _merged(
    table: Keys, X: FloatArray, targets: FloatArray, weight: FloatArray
) -> tuple[Keys, FloatArray, FloatArray, FloatArray]:
    """Equal rows as one, in an order that knows nothing but what they hold."""
    columns = [*targets.T, *X.T, table[:, 1], table[:, 0]]
    order = np.lexsort(columns)
    table, X, targets, weight = table[order], X[order], targets[order], weight[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(X, axis=0) != 0).any(axis=1) | (np.diff(targets, axis=0) != 0).any(axis=1)
    first = np.flatnonzero(new)
    return table[first], X[first], targets[first], np.add.reduceat(weight, first)


def _dealt(table: Keys, n_folds: int) -> npt.NDArray[np.intp]:
    """Fold of each row: groups of equal keys, in their order, to the fold with the fewest rows."""
    for column in (0, 1):
        _, group, counts = np.unique(table[:, column], return_inverse=True, return_counts=True)
        if len(counts) >= 4 * n_folds and counts.max() * n_folds <= len(table):
            break
    fold_of = np.zeros(len(counts), dtype=np.intp)
    sizes = [0] * n_folds
    for number, count in enumerate(counts.tolist()):
        fold = sizes.index(min(sizes))
        fold_of[number] = fold
        sizes[fold] += count
    return fold_of[group]
