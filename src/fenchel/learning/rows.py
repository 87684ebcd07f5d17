"""Rows to learn from, and their folds, by what they hold.

Which rows take part, and in which fold, depends neither on their order nor on their units, and
rows that are equal are one row with the sum of their weights: so a weight is a repetition for
what is learned too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray

_GRID = 2.0**20  # values are told apart by so many steps of their column's range
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
    by_features = _keys(X)
    by_all = _mixed(by_features + _ODD * _keys(targets))
    order = np.lexsort((by_all, by_features))
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.diff(by_all[order]) != 0
    chosen = order[np.cumsum(new) <= n_rows]
    table = np.hstack([by_features[chosen, None], by_all[chosen, None]])
    table, X, targets, weight = _merged(table, X[chosen], targets[chosen], weight[chosen])
    fold = _dealt(table, n_folds)
    order = np.argsort(fold, kind="stable")
    counts = np.bincount(fold, minlength=n_folds)
    starts = tuple(np.concatenate([[0], np.cumsum(counts[counts > 0])]).tolist())
    return Rows(X[order], targets[order], weight[order], starts)


def sample_by_content(X: FloatArray, targets: FloatArray, n_rows: int) -> FloatArray:
    """Choose at most so many distinct rows, in an order that says nothing."""
    return rows_by_content(X, targets, np.ones(len(X)), n_rows, 1).X


def _keys(values: FloatArray) -> Keys:
    """A number for each row that tells what it holds, in units of the columns' ranges.

    Constant columns do not change it.
    """
    low = values.min(axis=0)
    span = values.max(axis=0) - low
    varies = span > 0.0
    steps = (values[:, varies] - low[varies]) / span[varies]
    steps = np.rint(_GRID * steps).astype(np.uint64)
    keys = np.zeros(len(values), dtype=np.uint64)
    for column in steps.T:
        keys = _mixed(keys * _ODD + column + np.uint64(1))
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
