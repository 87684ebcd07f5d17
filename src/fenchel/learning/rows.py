"""Rows to learn from, and their folds, by what they hold.

Which rows take part, and in which fold, depends neither on their order nor on their units, and
rows that are equal are one row with the sum of their weights: so a weight is a repetition for
what is learned too.

Units are positive factors and shifts of columns. Columns with the other sign, or rounded to single
precision, are other rows: they are dealt to other folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.content import Keys, distinct_rows, row_keys
from fenchel.kernels import SparsePoints


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
    table, X, targets, weight = distinct_rows(X, targets, weight, n_rows)
    fold = _dealt(table, _to_learn_by(table, X), n_folds)
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
    return distinct_rows(X, targets, np.ones(len(X)), n_rows)[1]


def folds_by_content(X: FloatArray | SparsePoints, targets: FloatArray, n_folds: int) -> IntArray:
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
    return held_out_folds(X, targets, n_folds)[0]


def held_out_folds(
    X: FloatArray | SparsePoints, targets: FloatArray, n_folds: int
) -> tuple[IntArray, int]:
    """The same, and the number of different rows."""
    distinct, place = _distinct(X, targets)
    return _dealt(distinct, _to_judge_by(distinct), n_folds)[place], len(distinct)


def effective_number(
    X: FloatArray | SparsePoints, targets: FloatArray, weight: FloatArray
) -> float:
    """Kish's number of rows, (Σ s)² / Σ s², where equal rows are one with the sum of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.rows import effective_number
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> effective_number(X, X, np.ones(3))  # 3² / (2² + 1²)
    1.8
    """
    total = np.bincount(_distinct(X, targets)[1], weights=weight)
    return float(total.sum() ** 2 / (total @ total))


def _distinct(X: FloatArray | SparsePoints, targets: FloatArray) -> tuple[Keys, IntArray]:
    """Keys of distinct rows, and which of these each row has."""
    table = row_keys(X.matrix if isinstance(X, SparsePoints) else X, targets)
    distinct, place = np.unique(table, axis=0, return_inverse=True)
    return distinct, place.ravel()  # numpy 2.0 gives it a second axis


def _dealt(table: Keys, keys: Keys, n_folds: int) -> IntArray:
    """Fold of each row: groups of equal keys, in their order, to the fold with the fewest rows.

    But rows by themselves where that makes few groups, or one that does not fit into a fold.
    """
    counts = np.unique(keys, return_counts=True)[1]
    if len(counts) < 4 * n_folds or counts.max() * n_folds > len(table):
        keys = table[:, 1]
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    fold_of = np.zeros(len(counts), dtype=np.intp)
    sizes = [0] * n_folds
    for number, count in enumerate(counts.tolist()):
        fold = sizes.index(min(sizes))
        fold_of[number] = fold
        sizes[fold] += count
    return fold_of[group]


def _to_judge_by(table: Keys) -> Keys:
    """Keys of groups whose held-out rows are as new rows will be."""
    features, rows = table.T
    return features if _few_share_features(features) else rows


def _to_learn_by(table: Keys, X: FloatArray) -> Keys:
    """Keys of groups whose held-out rows tell good kernels from bad ones."""
    features, rows = table.T
    if _few_share_features(features):
        return features
    different = len(np.unique(features))
    if X.shape[1] == 1 or max(len(np.unique(column)) for column in X.T) <= 0.5 * different:
        return rows
    return np.where(features & np.uint64(1), features, rows)  # every other group: keys are mixed


def _few_share_features(features: Keys) -> bool:
    """Whether there are, on average, at most two rows with the same features."""
    return 2 * len(np.unique(features)) >= len(features)
