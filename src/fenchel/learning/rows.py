"""Rows to learn from, and their folds, by what they hold.

Which rows take part, and in which fold, depends neither on their order nor on their units, and
rows that are equal are one row with the sum of their weights: so a weight is a repetition for
what is learned too.

Units are positive factors and shifts of columns. Columns with the other sign, or rounded to single
precision, are other rows: they are dealt to other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.design.content import Keys, distinct_rows, row_keys
from fenchel.kernels import SparsePoints

_MOST_THERE = 0.8  # of the whole multiples of a step, where they are codes


@dataclass(frozen=True)
class Rows:
    """Distinct rows, fold after fold."""

    X: FloatArray
    targets: FloatArray
    weight: FloatArray
    starts: tuple[int, ...]
    """Where folds begin, and the number of rows."""
    codes: bool = False
    """Whether rows with equal features are in any fold, see :func:`are_codes`."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.starts) - 1

    def fold(self, k: int) -> slice:
        """Rows of a fold."""
        return slice(self.starts[k], self.starts[k + 1])

    def first(self, n_rows: int, n_folds: int) -> Rows:
        """About so many of these rows, in so many folds."""
        known = self.X, self.targets, self.weight
        return rows_by_content(*known, n_rows, n_folds, self.codes or None)


def rows_by_content(
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    n_rows: int,
    n_folds: int,
    codes: bool | None = None,
) -> Rows:
    """Choose at most ``n_rows`` distinct rows of positive weight, and deal them to folds.

    Rows with equal features are in one fold, unless there are too few different ones, or features
    are codes.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    targets : ndarray of shape (n, p)
    weight : ndarray of shape (n,)
    n_rows : int
    n_folds : int
    codes : bool, optional
        What :func:`are_codes` says of all rows, where these are some of them.

    Returns
    -------
    Rows
    """
    of_all = X
    table, X, targets, weight = distinct_rows(X, targets, weight, n_rows)
    keys, codes = _groups(table, of_all, codes)
    fold = _dealt(table, keys, n_folds)
    order = np.argsort(fold, kind="stable")
    counts = np.bincount(fold, minlength=n_folds)
    starts = tuple(np.concatenate([[0], np.cumsum(counts[counts > 0])]).tolist())
    return Rows(X[order], targets[order], weight[order], starts, codes)


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

    Unless there are too few different ones, or features are codes.

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
    return _dealt(distinct, _groups(distinct, X)[0], n_folds)[place], len(distinct)


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


def _groups(table: Keys, X: Any, codes: bool | None = None) -> tuple[Keys, bool]:
    """Keys of the rows to hold out together, and whether features are codes, if that is known."""
    features, rows = table.T
    different = len(np.unique(features))
    if 2 * different >= len(features):  # at most two rows with the same, on average
        return features, bool(codes)
    codes = are_codes(X) if codes is None else codes
    return (rows if codes else features), codes


def are_codes(X: Any) -> bool:
    """Whether equal features are those of a category, and not of a unit that was seen again.

    Where one column has nearly all whole multiples of a step between its ends, as codes and hours
    of the day, or all have at most half as many different values as there are different rows, as
    in a table of factors. A measured number is seldom the same for two units.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning.rows import are_codes
    >>> are_codes(np.arange(24.0)[:, None]), are_codes(np.sqrt(np.arange(24.0))[:, None])
    (True, False)
    """
    if isinstance(X, SparsePoints):
        return True
    columns = [np.unique(column) for column in np.asarray(X, dtype=np.float64).T]
    if len(columns) == 1:
        return _nearly_all_multiples(columns[0])
    different = len(np.unique(X, axis=0))
    return max(len(column) for column in columns) <= 0.5 * different


def _nearly_all_multiples(values: FloatArray) -> bool:
    """Whether sorted numbers are whole multiples of their least difference, most of them there."""
    steps = (values - values[0]) / np.diff(values).min(initial=np.inf)
    whole = np.abs(steps - np.rint(steps)) <= 1e-6 * np.maximum(steps, 1.0)
    return bool(whole.all() and len(values) >= _MOST_THERE * (steps[-1] + 1.0))
